/* Reads PNG: all color types and depths, palettes, transparency, Adam7 interlacing. CRCs, the
   Adler-32 and the order of chunks are checked. Rows are decoded into the array as they are
   inflated; only two are kept besides. Source: the PNG specification, third edition (W3C).

   | signature | IHDR | PLTE, tRNS, others | IDAT ..: zlib of filtered rows | others | IEND | */
#include "5_io/dvt_formats.h"

#define DVTI_PNG_GRAY 0
#define DVTI_PNG_RGB 2
#define DVTI_PNG_PALETTE 3
#define DVTI_PNG_GRAY_ALPHA 4
#define DVTI_PNG_RGB_ALPHA 6

typedef struct dvti_png {
    dvti_source *in;
    /* The current chunk: its type, its CRC so far, and its bytes that were not read yet. */
    char type[5];
    uint32_t sum;
    int64_t left;
    /* The image. */
    int64_t width, height;
    int depth, color;
    bool interlaced;
    int samples;  /* in a stored pixel */
    int channels; /* of the result */
    int n_palette;
    unsigned char palette[256][4];
    bool keyed; /* tRNS makes one color transparent: */
    unsigned key[3];
    /* Decoding. */
    dvti_source packed, rows; /* the bytes of all IDAT chunks; their content */
    unsigned char *out;       /* the first element of the result */
    dvti_crc crc;
} dvti_png;

static bool dvti_png_damaged(dvti_png *p, const char *wrong) {
    return dvti_source_wrong(p->in, "%s; fetch or write the file again", wrong);
}

/* ---- chunks ---- */
static bool dvti_png_begin_chunk(dvti_png *p) {
    int i;
    p->left = (int64_t)dvti_source_be(p->in, 4);
    if (!dvti_source_read(p->in, p->type, 4))
        return dvti_png_damaged(p, "it ends in the middle");
    for (i = 0; i < 4; i++)
        if ((p->type[i] | 32) < 'a' || (p->type[i] | 32) > 'z')
            return dvti_png_damaged(p, "a chunk has a type that is not four letters");
    if (p->left > 0x7fffffff || p->left > dvti_source_left(p->in) - 4)
        return dvti_source_wrong(
            p->in, "its chunk %s goes beyond the end; fetch or write the file again", p->type);
    p->sum = dvti_crc_more(&p->crc, 0, p->type, 4);
    return true;
}

/* Reads n bytes of the chunk, which has them. */
static bool dvti_png_read_chunk(dvti_png *p, void *to, int64_t n) {
    if (!dvti_source_read(p->in, to, n))
        return dvti_png_damaged(p, "it ends in the middle");
    p->sum = dvti_crc_more(&p->crc, p->sum, to, (size_t)n);
    p->left -= n;
    return true;
}

/* Skips what was not read of the chunk, and checks its CRC. */
static bool dvti_png_end_chunk(dvti_png *p) {
    unsigned char piece[512];
    uint32_t sum;
    while (p->left > 0)
        if (!dvti_png_read_chunk(p, piece, DVTI_MIN(p->left, (int64_t)sizeof piece)))
            return false;
    sum = (uint32_t)dvti_source_be(p->in, 4);
    if (p->in->ended)
        return dvti_png_damaged(p, "it ends in the middle");
    return sum == p->sum ||
           dvti_source_wrong(p->in,
                             "the checksum of its chunk %s is wrong; fetch or write the file again",
                             p->type);
}

static bool dvti_png_is(const dvti_png *p, const char *type) {
    return strcmp(p->type, type) == 0;
}

/* ---- header, palette, transparency ---- */
static bool dvti_png_header(dvti_png *p) {
    /* The depths that each color type may have, as bits. */
    static const unsigned depths[7] = {1 << 1 | 1 << 2 | 1 << 4 | 1 << 8 | 1 << 16,
                                       0,
                                       1 << 8 | 1 << 16,
                                       1 << 1 | 1 << 2 | 1 << 4 | 1 << 8,
                                       1 << 8 | 1 << 16,
                                       0,
                                       1 << 8 | 1 << 16};
    static const int samples[7] = {1, 0, 3, 1, 2, 0, 4};
    unsigned char h[13];
    if (!dvti_png_begin_chunk(p))
        return false;
    if (!dvti_png_is(p, "IHDR") || p->left != 13)
        return dvti_png_damaged(p, "it does not begin with a header (IHDR)");
    if (!dvti_png_read_chunk(p, h, 13) || !dvti_png_end_chunk(p))
        return false;
    p->width = (int64_t)dvti_bytes_value(h, 4, true);
    p->height = (int64_t)dvti_bytes_value(h + 4, 4, true);
    p->depth = h[8];
    p->color = h[9];
    p->interlaced = h[12] == 1;
    if (p->width < 1 || p->height < 1 || p->width > 0x7fffffff || p->height > 0x7fffffff)
        return dvti_source_wrong(p->in,
                                 "its header says %lld x %lld pixels; expected 1 to 2147483647 "
                                 "each: fetch or write the file again",
                                 (long long)p->width, (long long)p->height);
    if (p->color > 6 || p->depth > 16 || !(depths[p->color] >> p->depth & 1) || h[10] || h[11] ||
        h[12] > 1)
        return dvti_source_wrong(
            p->in,
            "its header has color type %d, depth %d, compression %d, filter %d, interlacing %d, "
            "which PNG does not define; fetch or write the file again",
            p->color, p->depth, h[10], h[11], h[12]);
    p->samples = p->channels = samples[p->color];
    if (p->color == DVTI_PNG_PALETTE)
        p->channels = 3;
    return true;
}

static bool dvti_png_palette(dvti_png *p) {
    unsigned char rgb[3 * 256];
    int i, most = p->color == DVTI_PNG_PALETTE ? 1 << p->depth : 256;
    int64_t n = p->left;
    if (p->color == DVTI_PNG_GRAY || p->color == DVTI_PNG_GRAY_ALPHA || p->n_palette > 0 ||
        p->keyed || n == 0 || n % 3 != 0 || n > 3 * most)
        return dvti_png_damaged(p, "its palette (PLTE) is damaged or not allowed");
    if (!dvti_png_read_chunk(p, rgb, n))
        return false;
    p->n_palette = (int)(n / 3);
    for (i = 0; i < p->n_palette; i++) {
        memcpy(p->palette[i], rgb + 3 * i, 3);
        p->palette[i][3] = 255;
    }
    return true;
}

/* tRNS has the alpha of palette entries, or the color that is transparent. It adds a channel. */
static bool dvti_png_transparency(dvti_png *p) {
    unsigned char value[256];
    bool palette = p->color == DVTI_PNG_PALETTE;
    int64_t n = p->left;
    int i;
    if (p->color > DVTI_PNG_PALETTE || p->channels > (palette ? 3 : p->samples) ||
        (palette ? n > p->n_palette || p->n_palette == 0 : n != 2 * p->samples))
        return dvti_png_damaged(p, "its transparency (tRNS) is damaged or not allowed");
    if (!dvti_png_read_chunk(p, value, n))
        return false;
    for (i = 0; palette && i < (int)n; i++)
        p->palette[i][3] = value[i];
    for (i = 0; !palette && i < p->samples; i++)
        p->key[i] = (unsigned)dvti_bytes_value(value + 2 * i, 2, true) & ((1u << p->depth) - 1);
    p->keyed = !palette;
    p->channels++;
    return true;
}

/* Reads the chunks before the image data. The first IDAT is then begun. */
static bool dvti_png_before(dvti_png *p) {
    while (dvti_png_begin_chunk(p)) {
        if (dvti_png_is(p, "IDAT"))
            return p->color != DVTI_PNG_PALETTE || p->n_palette > 0 ||
                   dvti_png_damaged(p, "its palette (PLTE) is missing");
        if (dvti_png_is(p, "PLTE") && !dvti_png_palette(p))
            return false;
        if (dvti_png_is(p, "tRNS") && !dvti_png_transparency(p))
            return false;
        /* A capital letter marks chunks without which the image cannot be understood. */
        if (p->type[0] < 'a' && !dvti_png_is(p, "PLTE"))
            return dvti_source_wrong(
                p->in,
                "its chunk %s is unknown or in the wrong place; fetch or write the file again",
                p->type);
        if (!dvti_png_end_chunk(p))
            return false;
    }
    return false;
}

/* Reads the chunks after the image data, to the end. */
static bool dvti_png_after(dvti_png *p) {
    while (dvti_png_begin_chunk(p)) {
        bool end = dvti_png_is(p, "IEND");
        if ((p->type[0] < 'a' && !end) || (end && p->left > 0) || dvti_png_is(p, "tRNS"))
            return dvti_source_wrong(
                p->in,
                "its chunk %s is unknown or in the wrong place; fetch or write the file again",
                p->type);
        if (!dvti_png_end_chunk(p))
            return false;
        if (end)
            return dvti_source_at_end(p->in) ||
                   dvti_png_damaged(p, "something follows its end (IEND)");
    }
    return false;
}

/* ---- image data ---- */
/* Reads the bytes of consecutive IDAT chunks. */
static size_t dvti_png_pull(dvti_source *packed, void *to, size_t n) {
    dvti_png *p = (dvti_png *)packed->user;
    dvti_source *in = p->in;
    bool ok = true;
    while (ok && p->left == 0) {
        ok = dvti_png_end_chunk(p);
        if (ok && (!dvti_source_peek(in, 8) || memcmp(in->at + 4, "IDAT", 4) != 0)) {
            packed->known = true;
            packed->remaining = 0;
            p->left = -1; /* the data has ended */
            packed->reported = in->reported;
            return 0;
        }
        ok = ok && dvti_png_begin_chunk(p);
    }
    if (p->left < 0)
        return 0;
    if ((uint64_t)p->left < n)
        n = (size_t)p->left;
    ok = ok && dvti_png_read_chunk(p, to, (int64_t)n);
    packed->reported = !ok;
    packed->remaining -= ok ? (int64_t)n : 0;
    return ok ? n : 0;
}

DVTI_FN int dvti_png_predict(int filter, int left, int up, int corner) {
    int to_left = abs(up - corner), to_up = abs(left - corner),
        to_corner = abs(left + up - 2 * corner);
    if (filter < 3)
        return filter == 0 ? 0 : filter == 1 ? left : up;
    if (filter == 3)
        return (left + up) / 2;
    /* Paeth: whichever is nearest to left + up - corner. */
    return to_left <= to_up && to_left <= to_corner ? left : to_up <= to_corner ? up : corner;
}

/* Removes the filter of a row of n bytes. `step`: bytes from a pixel to the next, at least 1. */
static void dvti_png_unfilter(int filter, unsigned char *row, const unsigned char *above, int64_t n,
                              int64_t step) {
    const uint64_t low = 0x7f7f7f7f7f7f7f7fu; /* all bits of 8 bytes but the highest of each */
    int64_t i = 0;
    for (; filter == 2 && i + 8 <= n; i += 8) { /* "up", the most frequent one, 8 bytes at once */
        uint64_t a, b;
        memcpy(&a, row + i, 8);
        memcpy(&b, above + i, 8);
        a = ((a & low) + (b & low)) ^ ((a ^ b) & ~low);
        memcpy(row + i, &a, 8);
    }
    for (; filter && i < n; i++) {
        int left = i < step ? 0 : row[i - step], corner = i < step ? 0 : above[i - step];
        row[i] = (unsigned char)(row[i] + dvti_png_predict(filter, left, above[i], corner));
    }
}

static unsigned dvti_png_sample(const unsigned char *row, int64_t i, int depth) {
    if (depth == 16)
        return (unsigned)row[2 * i] << 8 | row[2 * i + 1];
    if (depth == 8)
        return row[i];
    i *= depth; /* the first sample is in the high bits */
    return row[i / 8] >> (8 - depth - (int)(i % 8)) & ((1u << depth) - 1);
}

static void dvti_png_put(dvti_png *p, int64_t at, unsigned value) {
    int32_t wide = (int32_t)value;
    if (p->depth == 16)
        memcpy(p->out + 4 * at, &wide, 4);
    else
        p->out[at] = (unsigned char)value;
}

/* Writes pixel i of a row to element `at` of the result. */
static bool dvti_png_pixel(dvti_png *p, const unsigned char *row, int64_t i, int64_t at) {
    unsigned scale = p->depth < 8 ? 255u / ((1u << p->depth) - 1) : 1, value;
    bool clear = true;
    int k;
    if (p->color == DVTI_PNG_PALETTE) {
        value = dvti_png_sample(row, i, p->depth);
        if (value >= (unsigned)p->n_palette)
            return dvti_source_wrong(p->in,
                                     "a pixel has color %u of a palette of %d; fetch or write the "
                                     "file again",
                                     value, p->n_palette);
        memcpy(p->out + at, p->palette[value], (size_t)p->channels);
        return true;
    }
    for (k = 0; k < p->samples; k++) {
        value = dvti_png_sample(row, i * p->samples + k, p->depth);
        clear = clear && p->keyed && value == p->key[k];
        dvti_png_put(p, at + k, value * scale);
    }
    if (p->keyed)
        dvti_png_put(p, at + k, clear ? 0 : p->depth == 16 ? 65535 : 255);
    return true;
}

/* ---- passes: the whole image, or one of Adam7's subsets ---- */
typedef struct dvti_png_pass {
    int64_t x, y, dx, dy;         /* the first pixel, and the distances to the next ones */
    int64_t width, height, bytes; /* bytes: of a row, without its filter */
} dvti_png_pass;

static int dvti_png_passes(const dvti_png *p) {
    return p->interlaced ? 7 : 1;
}

static dvti_png_pass dvti_png_pass_of(const dvti_png *p, int i) {
    static const unsigned char adam7[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8},
                                              {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2},
                                              {0, 1, 1, 2}};
    dvti_png_pass pass;
    pass.x = p->interlaced ? adam7[i][0] : 0;
    pass.y = p->interlaced ? adam7[i][1] : 0;
    pass.dx = p->interlaced ? adam7[i][2] : 1;
    pass.dy = p->interlaced ? adam7[i][3] : 1;
    pass.width = (p->width - pass.x + pass.dx - 1) / pass.dx;
    pass.height = (p->height - pass.y + pass.dy - 1) / pass.dy;
    if (pass.width <= 0) /* a pass without pixels has no rows */
        pass.width = pass.height = 0;
    pass.bytes = (pass.width * p->samples * p->depth + 7) / 8;
    return pass;
}

/* Computes the bytes of all rows with their filters. Returns false on overflow. */
static bool dvti_png_bytes(const dvti_png *p, int64_t *bytes) {
    int i;
    *bytes = 0;
    for (i = 0; i < dvti_png_passes(p); i++) {
        dvti_png_pass pass = dvti_png_pass_of(p, i);
        int64_t n;
        if (!dvti_mul(pass.height, pass.bytes + 1, &n) || !dvti_sum(*bytes, n, bytes))
            return false;
    }
    return true;
}

static bool dvti_png_row(dvti_png *p, const dvti_png_pass *pass, int64_t y,
                         const unsigned char *row) {
    int64_t at = ((pass->y + y * pass->dy) * p->width + pass->x) * p->channels, i;
    if (p->depth == 8 && p->color != DVTI_PNG_PALETTE && !p->keyed && pass->dx == 1) {
        memcpy(p->out + at, row, (size_t)pass->bytes);
        return true;
    }
    for (i = 0; i < pass->width; i++, at += pass->dx * p->channels)
        if (!dvti_png_pixel(p, row, i, at))
            return false;
    return true;
}

/* Decodes a pass; `row` and `above` have space for a filter and a row each. */
static bool dvti_png_decode(dvti_png *p, const dvti_png_pass *pass, unsigned char *row,
                            unsigned char *above) {
    int64_t step = p->samples * p->depth / 8, y;
    memset(above, 0, (size_t)pass->bytes + 1);
    for (y = 0; y < pass->height; y++) {
        unsigned char *before = above;
        if (!dvti_source_read(&p->rows, row, pass->bytes + 1))
            return false; /* and the error is set, because the number of bytes is known */
        if (row[0] > 4)
            return dvti_png_damaged(p, "a row has an unknown filter");
        dvti_png_unfilter(row[0], row + 1, above + 1, pass->bytes, DVTI_MAX(step, 1));
        if (!dvti_png_row(p, pass, y, row + 1))
            return false;
        above = row;
        row = before;
    }
    return true;
}

static bool dvti_png_decode_all(dvti_png *p) {
    int64_t most = (p->width * p->samples * p->depth + 7) / 8 + 1;
    unsigned char *rows =
        (uint64_t)most > SIZE_MAX / 2 ? NULL : (unsigned char *)dvti_alloc(2 * (size_t)most);
    bool ok = rows != NULL;
    int i;
    if (!ok)
        dvti_fail_memory(p->in->function, 2 * most);
    for (i = 0; ok && i < dvti_png_passes(p); i++) {
        dvti_png_pass pass = dvti_png_pass_of(p, i);
        ok = dvti_png_decode(p, &pass, rows, rows + most);
    }
    dvti_free(rows);
    return ok;
}

/* Decodes the image into an array in host memory, and reads the file to its end. */
static bool dvti_png_fill(void *user, dvt_array *host) {
    dvti_png *p = (dvti_png *)user;
    int64_t bytes = 0;
    bool ok;
    p->out = (unsigned char *)dvti_view_of(host).data;
    dvti_png_bytes(p, &bytes); /* which did not overflow before */
    ok = dvti_source_part(&p->packed, p->in, dvti_png_pull, p, dvti_source_left(p->in), false) &&
         dvti_source_zlib(&p->rows, &p->packed, bytes) && dvti_png_decode_all(p);
    ok = ok && dvti_source_at_end(&p->rows);
    if (ok && !dvti_source_at_end(&p->packed))
        ok = dvti_png_damaged(p, "something follows its compressed image data");
    return ok && dvti_png_after(p);
}

/* Compares the size in the header with the bytes of the file: deflate has a maximum ratio. */
static bool dvti_png_fits(dvti_png *p) {
    int64_t bytes;
    return (dvti_png_bytes(p, &bytes) && bytes / DVTI_DEFLATE_RATIO <= dvti_source_left(p->in)) ||
           dvti_source_wrong(p->in,
                             "its header says %lld x %lld pixels, more than the file can hold; "
                             "fetch or write it again",
                             (long long)p->width, (long long)p->height);
}

DVTI_FN dvt_array *dvti_png_read(dvti_source *in, dvt_ctx ctx) {
    dvti_png p;
    dvt_array *x = NULL;
    dvt_shape shape = DVT_SCALAR;
    memset(&p, 0, sizeof p);
    dvti_source_memory(&p.packed, in->function, NULL, 0);
    dvti_source_memory(&p.rows, in->function, NULL, 0);
    p.in = in;
    dvti_crc_build(&p.crc);
    dvti_source_skip(in, 8); /* the signature */
    if (dvti_png_header(&p) && dvti_png_before(&p) && dvti_png_fits(&p)) {
        shape.ndim = 3;
        shape.dim[0] = p.height;
        shape.dim[1] = p.width;
        shape.dim[2] = p.channels;
        x = dvti_stored_filled(in->function, shape, p.depth == 16 ? DVT_I32 : DVT_U8, ctx,
                               dvti_png_fill, &p);
    }
    dvti_source_close(&p.rows);
    dvti_source_close(&p.packed);
    return x;
}

#undef DVTI_PNG_GRAY
#undef DVTI_PNG_RGB
#undef DVTI_PNG_PALETTE
#undef DVTI_PNG_GRAY_ALPHA
#undef DVTI_PNG_RGB_ALPHA
