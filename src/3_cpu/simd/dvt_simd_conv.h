/* What an ISA target offers for convolutions besides products: patches that come and go, channels
   by themselves, and Winograd's transforms. Kernels for one thread; cpu_conv*.c drive them. `at` is
   the table of taps: where each one looks, relative to a window's corner. */
#ifndef DVTI_SIMD_CONV_H
#define DVTI_SIMD_CONV_H
#include "3_cpu/dvt_cpu.h"

/* Elements behind the operands that a kernel may touch where its comment says so. */
#define DVTI_CONV_SLACK 16

/* Some images, and one channel or more of their results: rows times cols windows, one element apart
   in a row, and src_row elements from one row to the next; y_row likewise, which is cols. */
typedef struct dvti_conv_plane {
    const float *src;
    int64_t src_row, src_image;
    const int64_t *at;
    int64_t taps;
    int64_t images, rows, cols, y_row, y_image, y_out;
} dvti_conv_plane;

/* Winograd's F(4 x 4, 3 x 3). Each of a tile's 36 numbers has an array of its own, `_k` elements
   from one to the next. All work on whole vectors of 16: arrays have room for the rest of the last
   one, which is garbage. */
typedef struct dvti_simd_winograd {
    /* dst[i % 4 * phase + i / 4] = src[i] for i < n, a multiple of 64. */
    void (*deinterleave)(float *dst, int64_t phase, const float *src, int64_t n);
    /* Transforms a row of tiles from six deinterleaved rows of an image, the first tile at their
       first element. */
    void (*tiles)(float *v, int64_t v_k, const float *rows, int64_t phase, int64_t tiles);
    /* Transforms n kernels from the arrays of their nine weights. */
    void (*weights)(float *u, int64_t u_k, const float *g, int64_t g_k, int64_t n);
    /* Writes the four rows of results of a row of tiles, plus start. */
    void (*results)(float *y, int64_t y_row, const float *m, int64_t m_k, int64_t tiles,
                    float start);
} dvti_simd_winograd;

typedef struct dvti_simd_conv {
    /* dst[k * dst_k + i] = src[at[k] + i] for all taps k and i < count. Writes up to
       DVTI_CONV_SLACK - 1 elements behind each row. */
    void (*gather)(float *dst, int64_t dst_k, const float *src, const int64_t *at, int64_t taps,
                   int64_t count);
    /* The way back: dst[at[k] + i] += src[k * src_k + i], for k = channel * taps + tap of
       `channels`. Taps ascend in each channel, and consecutive additions are to different channels,
       whose elements lie far apart. Adds 0 to up to DVTI_CONV_SLACK - 1 elements behind. */
    void (*scatter)(float *dst, const int64_t *at, const float *src, int64_t src_k, int64_t taps,
                    int64_t channels, int64_t count);
    /* y = start + the sum over k of w[k] * src[at[k] ..]: chains like a product's. */
    void (*filter)(const dvti_conv_plane *plane, float *y, const float *w, float start);
    /* sums[(o * taps + k) * 16 + lane] += the products of y's channel o and src at tap k, column j
       in lane j % 16, images and rows ascending. */
    void (*correlate)(const dvti_conv_plane *plane, const float *y, int64_t outs, float *sums);
    /* to[i * step] = the sum of the 16 from sums[i * 16] on, for i < n. */
    void (*reduce_lanes)(float *to, int64_t step, const float *sums, int64_t n);
    /* dst[r * dst_row + i] = src[r * src_row + i] for i < count. */
    void (*copy_rows)(float *dst, int64_t dst_row, const float *src, int64_t src_row, int64_t rows,
                      int64_t count);
    const dvti_simd_winograd *winograd;
} dvti_simd_conv;

#endif
