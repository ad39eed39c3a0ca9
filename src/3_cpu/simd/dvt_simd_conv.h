/* Convolution kernels of an ISA target, apart from products: im2col and its reverse, depthwise
   filters, and Winograd transforms. They run on one thread; cpu_conv*.c call them. `at` is the
   table of taps: the offset of each tap from the corner of a window.

     3 x 3 window in an image         at = { 0, 1, 2,
     whose rows are src_row apart            src_row, src_row + 1, src_row + 2,
     +---+---+---+                           2 * src_row, .. }
     | 0 | 1 | 2 |
     +---+---+---+                    gathered matrix, one row per tap:
     | 3 | 4 | 5 |                    dst[k * dst_k + i] = src[at[k] + i]
     +---+---+---+
     | 6 | 7 | 8 |
     +---+---+---+ */
#ifndef DVTI_SIMD_CONV_H
#define DVTI_SIMD_CONV_H
#include "3_cpu/dvt_cpu.h"

/* Elements after the operands that a kernel may touch if its comment says so. */
#define DVTI_CONV_SLACK 16

/* Images of one input channel and results of one or more output channels. There are rows x cols
   windows, one element apart in a row; src_row elements separate rows of windows. Likewise y_row,
   which equals cols. */
typedef struct dvti_conv_plane {
    const float *src;
    int64_t src_row, src_image;
    const int64_t *at;
    int64_t taps;
    int64_t images, rows, cols, y_row, y_image, y_out;
} dvti_conv_plane;

/* Winograd's F(4 x 4, 3 x 3). Each of the 36 elements of a transformed tile has an array of its
   own, `_k` elements apart. All functions work on whole vectors of 16: arrays have space for a
   whole last vector, whose unused lanes are undefined. */
typedef struct dvti_simd_winograd {
    /* Sets dst[i % 4 * phase + i / 4] = src[i] for i < n, a multiple of 64. */
    void (*deinterleave)(float *dst, int64_t phase, const float *src, int64_t n);
    /* Transforms a row of tiles from six deinterleaved rows of an image. The first tile begins at
       their first element. */
    void (*tiles)(float *v, int64_t v_k, const float *rows, int64_t phase, int64_t tiles);
    /* Transforms n kernels from the arrays of their nine weights. */
    void (*weights)(float *u, int64_t u_k, const float *g, int64_t g_k, int64_t n);
    /* Writes the four rows of results of a row of tiles, plus start. */
    void (*results)(float *y, int64_t y_row, const float *m, int64_t m_k, int64_t tiles,
                    float start);
} dvti_simd_winograd;

typedef struct dvti_simd_conv {
    /* Sets dst[k * dst_k + i] = src[at[k] + i] for all taps k and i < count. Writes up to
       DVTI_CONV_SLACK - 1 elements after each row. */
    void (*gather)(float *dst, int64_t dst_k, const float *src, const int64_t *at, int64_t taps,
                   int64_t count);
    /* The reverse: dst[at[k] + i] += src[k * src_k + i], for k = channel * taps + tap of
       `channels`. Taps ascend in each channel. Consecutive additions are to different channels,
       whose elements are far apart. Adds 0 to up to DVTI_CONV_SLACK - 1 elements after each row. */
    void (*scatter)(float *dst, const int64_t *at, const float *src, int64_t src_k, int64_t taps,
                    int64_t channels, int64_t count);
    /* Sets y = start + the sum over k of w[k] * src[at[k] ..]. Sums are chains like those of a
       product. */
    void (*filter)(const dvti_conv_plane *plane, float *y, const float *w, float start);
    /* Adds the products of y's channel o and src at tap k to sums[(o * taps + k) * 16 + lane].
       Column j goes to lane j % 16; images and rows ascend. */
    void (*correlate)(const dvti_conv_plane *plane, const float *y, int64_t outs, float *sums);
    /* Sets to[i * step] = the sum of the 16 elements from sums[i * 16] on, for i < n. */
    void (*reduce_lanes)(float *to, int64_t step, const float *sums, int64_t n);
    /* Sets dst[r * dst_row + i] = src[r * src_row + i] for i < count. */
    void (*copy_rows)(float *dst, int64_t dst_row, const float *src, int64_t src_row, int64_t rows,
                      int64_t count);
    const dvti_simd_winograd *winograd;
} dvti_simd_conv;

#endif
