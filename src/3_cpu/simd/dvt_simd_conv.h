/* What a tier offers for convolutions beside products: how patches of pictures come and go, and what a single channel needs. Kernels for
   one thread; cpu_conv.c drives them. `at` is the table of taps: where each one looks, seen from a window's corner. */
#ifndef DVTI_SIMD_CONV_H
#define DVTI_SIMD_CONV_H
#include "3_cpu/dvt_cpu.h"

/* Elements that may be touched behind what is asked for, where a kernel says so. */
#define DVTI_CONV_SLACK 16

/* One channel of a picture and of a result: rows times cols windows, from one to the next one element, and src_row elements in the next
   row; y_row likewise. */
typedef struct dvti_conv_plane {
    const float *src;
    int64_t src_row;
    const int64_t *at;
    int64_t taps;
    int64_t rows, cols, y_row;
} dvti_conv_plane;

typedef struct dvti_simd_conv {
    /* dst[k * dst_k + i] = src[at[k] + i] for all taps k and i < count. Writes up to DVTI_CONV_SLACK - 1 elements behind each row. */
    void (*gather)(float *dst, int64_t dst_k, const float *src, const int64_t *at, int64_t taps,
                   int64_t count);
    /* The way back: dst[at[k] + i] += src[k * src_k + i], for k = channel * taps + tap of `channels`. Taps ascend in each channel, and
       neighbours in time are different channels, whose elements lie far apart. Adds 0 to up to DVTI_CONV_SLACK - 1 elements behind. */
    void (*scatter)(float *dst, const int64_t *at, const float *src, int64_t src_k, int64_t taps,
                    int64_t channels, int64_t count);
    /* y = start + the sum over k of w[k] * src[at[k] ..]: chains like a product's. */
    void (*filter)(const dvti_conv_plane *plane, float *y, const float *w, float start);
    /* sums[k * 16 + lane] += the products of y and src at tap k, column j in lane j % 16, rows ascending. */
    void (*correlate)(const dvti_conv_plane *plane, const float *y, float *sums);
} dvti_simd_conv;

#endif
