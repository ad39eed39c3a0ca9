/* Random inputs of matrix product tests, and expected results: one chain of fused multiply-adds per
   element. */
#ifndef GEMM_INPUTS_H
#define GEMM_INPUTS_H
#include "isa.h"

enum { GAP = 3 }; /* elements between rows */

static uint32_t seed = 1;

static inline uint32_t draw(void) {
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

static inline int64_t pick(const int64_t *from, size_t bytes) {
    return from[draw() % (bytes / sizeof *from)];
}

#define PICK(list) pick(list, sizeof(list))

static inline void fill(void *data, dvt_dtype dtype, int64_t n) {
    int64_t i;
    for (i = 0; i < n; i++)
        dvti_store_f64(data, dtype, i, ((int)(draw() % 2001) - 1000) / 512.);
}

static inline double chain(dvt_dtype dtype, double a, double b, double c) {
    return dtype == DVT_F64 ? fma(a, b, c) : (double)fmaf((float)a, (float)b, (float)c);
}

static inline bool same_bits(double a, double b) {
    return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
}

static inline void *place(guard g, int64_t bytes, bool at_start) {
    return at_start ? guard_start(g) : guard_end(g, (size_t)bytes);
}

#endif
