/* Kernels of an ISA target for float64: loops of the op table, conversion of rows, reductions.
   Vectors have 8 lanes. */
#ifndef DVTI_SIMD_F64_H
#define DVTI_SIMD_F64_H
#include "3_cpu/dvt_cpu.h"

/* An elementwise operation on contiguous elements. An operand with step 0 is one value for all of
   them; otherwise the step is 1. out may be an operand. BOOL rows write bools (dvti_loop_dtype). */
typedef struct dvti_loop {
    dvti_op op;
    const void *in[3];
    int step[3];
    void *out;
    int64_t n;
    double low, high;          /* clip */
    int64_t low_int, high_int; /* clip, in class int64 */
    bool stream;               /* out is aligned to 64 bytes and not read soon: use non-temporal
                                  stores */
} dvti_loop;

typedef void (*dvti_loop_fn)(const dvti_loop *loop);

/* Computes n > 0 whole vectors, 64 bytes of each operand. Reads only step, op, low, high and
   stream of p. in[k] with step 0 is one vector with the value in all lanes. */
typedef void (*dvti_ew_body)(const dvti_loop *p, const void *const *in, void *out, int64_t n);

/* Returns the dtype that a loop of float32 or float64 writes. */
DVTI_FN dvt_dtype dvti_loop_dtype(dvti_op op, dvt_dtype dtype);

/* Arguments of a reduction kernel. The order of operations in each result depends only on
   n, or for columns on the number of rows. */
typedef struct dvti_reduction {
    dvti_op op;
    dvt_dtype dtype; /* of x, the kernel's own; sums of floats also take 16-bit floats */
    const void *x;
    int64_t step, rows, n;
    int64_t seen;     /* columns: the number of rows already reduced */
    const void *mean; /* variance: mean of each result, in the kernel's own dtype; else NULL */
    double *value;    /* results of floats */
    int64_t *integer; /* results of integers */
    int64_t *at;      /* index of the first extreme; may be NULL */
} dvti_reduction;

typedef void (*dvti_reduce_fn)(const dvti_reduction *p);

typedef struct dvti_reduce_kernel {
    /* Reduces each of `rows` runs of n > 0 elements, `step` apart, to one result. */
    dvti_reduce_fn rows;
    /* Reduces `rows` > 0 runs, `step` apart, to n <= DVTI_ACROSS neighboring results (float64 and
       logsumexp: DVTI_BLOCK). Continues from the values, which begin as the reduction's initial
       value. Positions begin as 0 and count from the first run. Values and positions have whole
       vectors. */
    dvti_reduce_fn columns;
} dvti_reduce_kernel;

/* Running sums of rows of the loop's dtype, added one after the other to `sum`. y, unless it is
   NULL, receives before + sum. sum and before have whole vectors. */
typedef struct dvti_running {
    const void *x;
    void *y;
    int64_t step, rows, columns;
    double *sum;
    const double *before;
} dvti_running;

typedef struct dvti_simd_f64 {
    /* Returns the loop of an operation, or NULL. */
    dvti_loop_fn (*loop)(dvti_op op);
    /* Convert n contiguous elements of another dtype to or from doubles. Return false, and do
       nothing, for a dtype without a vector loop. */
    bool (*load_row)(const void *src, dvt_dtype dtype, int64_t n, double *to);
    bool (*store_row)(void *dst, dvt_dtype dtype, int64_t n, const double *from);
} dvti_simd_f64;

#endif
