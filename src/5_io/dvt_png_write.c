/* Writes PNG: gray or RGB, with or without alpha, of 8 or 16 bits. Every row gets the filter whose
   result has the smallest sum of absolute values, which the PNG specification suggests. */
#include "5_io/dvt_formats.h"

typedef struct dvti_png_out {
    dvti_file_out *file;
    dvti_crc crc;
} dvti_png_out;

static void dvti_png_be_32(unsigned char *to, uint32_t value) {
    int i;
    for (i = 0; i < 4; i++)
        to[i] = (unsigned char)(value >> (24 - 8 * i));
}

static void dvti_png_chunk(dvti_png_out *out, const char *type, const void *bytes, size_t n) {
    unsigned char head[8], tail[4];
    uint32_t sum = dvti_crc_more(&out->crc, 0, type, 4);
    dvti_png_be_32(head, (uint32_t)n);
    memcpy(head + 4, type, 4);
    dvti_png_be_32(tail, dvti_crc_more(&out->crc, sum, bytes, n));
    dvti_file_write(out->file, head, 8);
    dvti_file_write(out->file, bytes, n);
    dvti_file_write(out->file, tail, 4);
}

static void dvti_png_sink(void *user, const void *bytes, size_t n) {
    dvti_png_chunk((dvti_png_out *)user, "IDAT", bytes, n);
}

static void dvti_png_write_header(dvti_png_out *out, const dvti_image *image) {
    static const unsigned char colors[5] = {0, 0, 4, 2, 6}; /* by channels */
    unsigned char header[13];
    memset(header, 0, sizeof header);
    dvti_png_be_32(header, (uint32_t)image->width);
    dvti_png_be_32(header + 4, (uint32_t)image->height);
    header[8] = (unsigned char)(8 * image->bytes);
    header[9] = colors[image->channels];
    dvti_file_write(out->file, "\x89PNG\r\n\x1a\n", 8);
    dvti_png_chunk(out, "IHDR", header, sizeof header);
}

/* Filters a row of n bytes. Returns the sum of the absolute values, read as signed. */
static int64_t dvti_png_filter(int filter, unsigned char *to, const unsigned char *row,
                               const unsigned char *above, int64_t n, int step) {
    int64_t sum = 0, i;
    for (i = 0; i < n; i++) {
        int left = i < step ? 0 : row[i - step], corner = i < step ? 0 : above[i - step];
        to[i] = (unsigned char)(row[i] - dvti_png_predict(filter, left, above[i], corner));
        sum += to[i] < 128 ? to[i] : 256 - to[i];
    }
    return sum;
}

/* Compresses all rows; `space` has four rows of n bytes and their filters. */
static void dvti_png_write_rows(dvti_deflater *deflater, const dvti_image *image,
                                unsigned char *space, int64_t n) {
    unsigned char *row = space, *above = row + n, *best = above + n, *trial = best + n + 1;
    int step = image->channels * image->bytes, filter;
    int64_t y;
    memset(above, 0, (size_t)n);
    for (y = 0; y < image->height; y++) {
        int64_t least = INT64_MAX;
        unsigned char *before;
        dvti_image_row(image, y, row);
        for (filter = 0; filter < 5; filter++) {
            int64_t sum = dvti_png_filter(filter, trial + 1, row, above, n, step);
            if (sum < least) {
                before = best;
                best = trial;
                trial = before;
                best[0] = (unsigned char)filter;
                least = sum;
            }
        }
        dvti_deflate(deflater, best, (size_t)n + 1);
        before = above;
        above = row;
        row = before;
    }
}

DVTI_FN bool dvti_png_write(dvti_file_out *file, const dvti_image *image) {
    int64_t n = image->width * image->channels * image->bytes;
    unsigned char *space =
        (uint64_t)n > SIZE_MAX / 8 ? NULL : (unsigned char *)dvti_alloc(4 * (size_t)n + 2);
    dvti_deflater *deflater = NULL;
    dvti_png_out out;
    if (!space)
        dvti_fail_memory(image->function, 4 * n + 2);
    out.file = file;
    dvti_crc_build(&out.crc);
    if (space)
        deflater = dvti_deflate_begin(image->function, true, dvti_png_sink, &out);
    if (deflater) {
        dvti_png_write_header(&out, image);
        dvti_png_write_rows(deflater, image, space, n);
        dvti_deflate_end(deflater);
        dvti_png_chunk(&out, "IEND", "", 0);
    }
    dvti_free(space);
    return deflater != NULL;
}
