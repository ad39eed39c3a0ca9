/* What a tier offers for float64: loops of the op table, rows of other dtypes, reductions. Vectors have 8 lanes. */
#ifndef DVTI_SIMD_F64_H
#define DVTI_SIMD_F64_H
#include "3_cpu/dvt_cpu.h"

/* An elementwise operation on contiguous elements. An operand with step 0 is one value for all of
   them; else the step is 1. out may be an operand; BOOL rows write bools (dvti_loop_dtype). */
typedef struct dvti_loop {
    dvti_op op;
    const void *in[3];
    int step[3];
    void *out;
    int64_t n;
    double low, high;          /* clip */
    int64_t low_int, high_int; /* clip, in class int64 */
    bool stream;               /* out is at a multiple of 64 bytes and not read soon */
} dvti_loop;

typedef void (*dvti_loop_fn)(const dvti_loop *loop);

/* The same on n > 0 whole vectors, 64 bytes of each operand. Of p it reads step and what is a
   parameter: op, low, high. in[k] with step 0 is one vector, which holds a value in all lanes. */
typedef void (*dvti_ew_body)(const dvti_loop *p, const void *const *in, void *out, int64_t n);

/* What a loop of float32 or float64 writes. */
DVTI_FN dvt_dtype dvti_loop_dtype(dvti_op op, dvt_dtype dtype);

/* Reduces elements to sums, products, extremes, truth; to sums of squares of distances from means for op square. Each result is formed in an
   order that n, or for columns the number of rows, decides. */
typedef struct dvti_folding {
    dvti_op op;
    dvt_dtype dtype; /* of x: the loop's own; sums of floats take 16-bit floats too */
    const void *x;
    int64_t step, rows, n;
    int64_t seen;     /* columns: the rows that came before */
    const void *mean; /* of each result, in the loop's own dtype; NULL but for op square */
    double *value;
    int64_t *at; /* where the first extreme stands; may be NULL */
} dvti_folding;

typedef void (*dvti_fold_fn)(const dvti_folding *folding);

typedef struct dvti_fold {
    /* One result for each of `rows` runs of n > 0 elements, `step` apart. */
    dvti_fold_fn rows;
    /* n <= DVTI_BLOCK neighbouring results from `rows` > 0 runs, `step` apart: value goes on from what it is. It begins as 0, or 1 for a
       product and for all; at, which counts from the first run, need not begin. Both have room for DVTI_BLOCK. */
    dvti_fold_fn columns;
    /* Of floats: n results, divided for a mean, the root for a norm. f has room for whole vectors. */
    void (*finish)(dvti_op op, double divisor, const double *f, int64_t n, float *to);
} dvti_fold;

/* Rows of the loop's dtype, added one after the other to `sum`; y, if there is one, receives before + sum. sum and before have whole vectors. */
typedef struct dvti_running {
    const void *x;
    void *y;
    int64_t step, rows, columns;
    double *sum;
    const double *before;
} dvti_running;

typedef struct dvti_simd_f64 {
    /* NULL for an operation that this tier has no loop for. */
    dvti_loop_fn (*loop)(dvti_op op);
    /* n elements in one piece, of another dtype, to or from doubles. False: not of this one; nothing is done. */
    bool (*load_row)(const void *src, dvt_dtype dtype, int64_t n, double *to);
    bool (*store_row)(void *dst, dvt_dtype dtype, int64_t n, const double *from);
    /* As of floats, but for logsumexp. */
    dvti_fold (*fold)(dvti_op op);
    void (*running)(const dvti_running *rows);
    /* n doubles, each with `before`, to floats of any kind. The doubles are sums of such. */
    void (*store_sums)(void *dst, dvt_dtype dtype, int64_t n, const double *from, double before);
} dvti_simd_f64;

#endif
