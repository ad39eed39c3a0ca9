/* What a tier offers for float64: loops of the op table, rows of other dtypes, reductions. Vectors have 8 lanes. */
#ifndef DVTI_SIMD_F64_H
#define DVTI_SIMD_F64_H
#include "3_cpu/dvt_cpu.h"

/* One run of elements. An operand with step 0 is one value for all of them; else the step is 1. out may be an operand. */
typedef struct dvti_loop {
    dvti_op op;
    const void *in[3];
    int step[3];
    void *out;
    int64_t n;
    double low, high; /* clip */
} dvti_loop;

typedef void (*dvti_loop_fn)(const dvti_loop *loop);

typedef struct dvti_simd_f64 {
    /* NULL for an operation that this tier has no loop for. */
    dvti_loop_fn (*loop)(dvti_op op);
    /* n elements in one piece, of another dtype, to or from doubles. False: not of this one; nothing is done. */
    bool (*load_row)(const void *src, dvt_dtype dtype, int64_t n, double *to);
    bool (*store_row)(void *dst, dvt_dtype dtype, int64_t n, const double *from);
} dvti_simd_f64;

#endif
