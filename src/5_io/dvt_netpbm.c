/* Netpbm's PGM and PPM images: P2 and P3 in decimal, P5 and P6 in bytes. A header of words (magic
   number, width, height, largest value) with comments, then the samples, row by row. */
#include "5_io/dvt_formats.h"

typedef struct dvti_netpbm {
    dvti_source *in;
    bool plain; /* decimal */
    int64_t width, height, largest;
    int channels;
} dvti_netpbm;

static bool dvti_netpbm_blank(int c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Skips white space and comments, which go from # to the end of the line. Returns whether there
   was any. */
static bool dvti_netpbm_blanks(dvti_source *in) {
    bool comment = false, any = false;
    while (dvti_source_peek(in, 1) && (comment || *in->at == '#' || dvti_netpbm_blank(*in->at))) {
        comment = *in->at == '#' || (comment && *in->at != '\n' && *in->at != '\r');
        dvti_source_skip(in, 1);
        any = true;
    }
    return any;
}

/* Reads white space and a number of at most `most`. */
static bool dvti_netpbm_number(dvti_source *in, int64_t most, int64_t *value) {
    bool digits = false;
    if (!dvti_netpbm_blanks(in))
        return false;
    for (*value = 0; dvti_source_peek(in, 1) && *in->at >= '0' && *in->at <= '9'; digits = true) {
        *value = 10 * *value + (*in->at - '0');
        if (*value > most)
            return false;
        dvti_source_skip(in, 1);
    }
    return digits;
}

static bool dvti_netpbm_header(dvti_netpbm *image) {
    dvti_source *in = image->in;
    char kind = (char)in->at[1];
    image->plain = kind < '4';
    image->channels = kind == '3' || kind == '6' ? 3 : 1;
    dvti_source_skip(in, 2);
    if (!dvti_netpbm_number(in, 0x7fffffff, &image->width) ||
        !dvti_netpbm_number(in, 0x7fffffff, &image->height) ||
        !dvti_netpbm_number(in, 65535, &image->largest) || image->width == 0 ||
        image->height == 0 || image->largest == 0)
        return dvti_source_wrong(in,
                                 "its header is damaged; expected width, height and the largest "
                                 "value (1 to 65535): fetch or write the file again");
    if (image->plain)
        return true;
    if (!dvti_source_peek(in, 1) || !dvti_netpbm_blank(*in->at))
        return dvti_source_wrong(in, "its header does not end with white space; fetch or write the "
                                     "file again");
    return dvti_source_skip(in, 1);
}

/* Compares the size in the header with the bytes of the file: digits need one and a blank. */
static bool dvti_netpbm_fits(dvti_netpbm *image) {
    dvti_source *in = image->in;
    int64_t n, left = dvti_source_left(in), least;
    bool fits = dvti_mul(image->width, image->height, &n) && dvti_mul(n, image->channels, &n);
    if (image->plain)
        fits = fits && n <= left / 2;
    else
        fits = fits && dvti_mul(n, image->largest > 255 ? 2 : 1, &least) &&
               (in->known ? least == left : least <= left);
    return fits || dvti_source_wrong(
                       in,
                       "its header says %lld x %lld pixels with a largest value of %lld, but %s "
                       "bytes follow it; the file is cut off, damaged, or followed by something "
                       "else: fetch or write it again",
                       (long long)image->width, (long long)image->height, (long long)image->largest,
                       dvti_source_size_text(in, in->taken, INT64_MAX));
}

/* Writes sample i, scaled to 0..255 or 0..65535. */
static bool dvti_netpbm_put(const dvti_netpbm *image, unsigned char *to, int64_t i, int64_t value) {
    int64_t top = image->largest > 255 ? 65535 : 255;
    int32_t wide;
    if (value > image->largest)
        return dvti_source_wrong(image->in,
                                 "a sample is %lld, above its largest value of %lld; fetch or "
                                 "write the file again",
                                 (long long)value, (long long)image->largest);
    wide = (int32_t)((value * top + image->largest / 2) / image->largest);
    if (top > 255)
        memcpy(to + 4 * i, &wide, 4);
    else
        to[i] = (unsigned char)wide;
    return true;
}

/* Reads sample i. */
static bool dvti_netpbm_sample(dvti_netpbm *image, unsigned char *to, int64_t i) {
    dvti_source *in = image->in;
    int64_t value;
    if (image->plain) {
        if (!dvti_netpbm_number(in, 65535, &value))
            return dvti_source_wrong(in,
                                     "sample %lld is missing or not a number of 0 to 65535; "
                                     "fetch or write the file again",
                                     (long long)i);
    } else {
        value = (int64_t)dvti_source_be(in, image->largest > 255 ? 2 : 1);
        if (in->ended)
            return dvti_source_wrong(in, "it ends in the middle; fetch or write the file again");
    }
    return dvti_netpbm_put(image, to, i, value);
}

static bool dvti_netpbm_fill(void *user, dvt_array *host) {
    dvti_netpbm *image = (dvti_netpbm *)user;
    dvti_source *in = image->in;
    unsigned char *to = (unsigned char *)dvti_view_of(host).data;
    int64_t n = dvt_size(host), i;
    if (!image->plain && image->largest == 255) {
        if (!dvti_source_read(in, to, n))
            return dvti_source_wrong(in, "it ends in the middle; fetch or write the file again");
    } else
        for (i = 0; i < n; i++)
            if (!dvti_netpbm_sample(image, to, i))
                return false;
    if (image->plain)
        dvti_netpbm_blanks(in);
    return dvti_source_at_end(in) ||
           dvti_source_wrong(in, "something follows the image; expected a single image: fetch or "
                                 "write the file again");
}

DVTI_FN dvt_array *dvti_netpbm_read(dvti_source *in, dvt_ctx ctx) {
    dvti_netpbm image;
    dvt_shape shape = DVT_SCALAR;
    memset(&image, 0, sizeof image);
    image.in = in;
    if (!dvti_netpbm_header(&image) || !dvti_netpbm_fits(&image))
        return NULL;
    shape.ndim = 3;
    shape.dim[0] = image.height;
    shape.dim[1] = image.width;
    shape.dim[2] = image.channels;
    return dvti_stored_filled(in->function, shape, image.largest > 255 ? DVT_I32 : DVT_U8, ctx,
                              dvti_netpbm_fill, &image);
}

DVTI_FN bool dvti_netpbm_write(dvti_file_out *out, const dvti_image *image) {
    int64_t n = image->width * image->channels * image->bytes, y;
    unsigned char *row = (uint64_t)n > SIZE_MAX ? NULL : (unsigned char *)dvti_alloc((size_t)n);
    char header[80];
    if (!row) {
        dvti_fail_memory(image->function, n);
        return false;
    }
    snprintf(header, sizeof header, "P%c\n%lld %lld\n%d\n", image->channels == 3 ? '6' : '5',
             (long long)image->width, (long long)image->height, image->bytes == 2 ? 65535 : 255);
    dvti_file_write(out, header, strlen(header));
    for (y = 0; y < image->height; y++) {
        dvti_image_row(image, y, row);
        dvti_file_write(out, row, (size_t)n);
    }
    dvti_free(row);
    return true;
}
