/* What a tier offers for float64: loops of the op table, rows of other dtypes, reductions. Vectors have 8 lanes. */
#ifndef DVTI_SIMD_F64_H
#define DVTI_SIMD_F64_H
#include "3_cpu/dvt_cpu.h"

/* One run of elements. An operand with step 0 is one value for all of them; else the step is 1. out may be an operand; what says yes or no
   is written as bool (dvti_loop_dtype). */
typedef struct dvti_loop {
    dvti_op op;
    const void *in[3];
    int step[3];
    void *out;
    int64_t n;
    double low, high; /* clip */
} dvti_loop;

typedef void (*dvti_loop_fn)(const dvti_loop *loop);

/* What a loop of float32 or float64 writes. */
DVTI_FN dvt_dtype dvti_loop_dtype(dvti_op op, dvt_dtype dtype);

/* n <= DVTI_BLOCK neighbouring results; the elements of a reduced position lie `step` behind those of the one before. */
typedef struct dvti_fold64 {
    dvti_op op;
    int64_t n, step, first; /* the first reduced position that is given */
} dvti_fold64;

typedef struct dvti_simd_f64 {
    /* NULL for an operation that this tier has no loop for. */
    dvti_loop_fn (*loop)(dvti_op op);
    /* n elements in one piece, of another dtype, to or from doubles. False: not of this one; nothing is done. */
    bool (*load_row)(const void *src, dvt_dtype dtype, int64_t n, double *to);
    bool (*store_row)(void *dst, dvt_dtype dtype, int64_t n, const double *from);
    /* sum, mean and square (the sum), norm (the sum of squares), prod, min, max, and argmin and argmax, which alone set `at`: where the first extreme
       or NaN stands. n > 0 elements in one run. */
    void (*fold_row)(dvti_op op, const double *x, int64_t n, double *value, int64_t *at);
    /* Goes on with value and at, which have room for DVTI_BLOCK. */
    void (*fold_columns)(const dvti_fold64 *fold, const double *x, int64_t rows, double *value,
                         int64_t *at);
} dvti_simd_f64;

#endif
