/* What a ISA target offers for float64: loops of the op table, rows of other dtypes, reductions. Vectors have 8 lanes. */
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

/* What a kernel of reductions reads and writes. Each result is formed in an order that n decides, or
   for columns the number of rows. */
typedef struct dvti_reduction {
    dvti_op op;
    dvt_dtype dtype; /* of x: the kernel's own; sums of floats take 16-bit floats too */
    const void *x;
    int64_t step, rows, n;
    int64_t seen;     /* columns: the rows that came before */
    const void *mean; /* variance: of each result, in the kernel's own dtype; else NULL */
    double *value;    /* the results of floats */
    int64_t *integer; /* and of integers */
    int64_t *at;      /* where the first extreme stands; may be NULL */
} dvti_reduction;

typedef void (*dvti_reduce_fn)(const dvti_reduction *p);

typedef struct dvti_reduce_kernel {
    /* One result for each of `rows` runs of n > 0 elements, `step` apart. */
    dvti_reduce_fn rows;
    /* n <= DVTI_ACROSS neighboring results (of float64 and logsumexp DVTI_BLOCK) from `rows` > 0 runs,
       `step` apart. Continues from the values, which begin as the reduction's initial value, and from
       the positions, which begin as 0 and count from the first run. Both are whole vectors. */
    dvti_reduce_fn columns;
} dvti_reduce_kernel;

/* Rows of the loop's dtype, added one after the other to `sum`; y, if there is one, receives before + sum. sum and before have whole vectors. */
typedef struct dvti_running {
    const void *x;
    void *y;
    int64_t step, rows, columns;
    double *sum;
    const double *before;
} dvti_running;

typedef struct dvti_simd_f64 {
    /* NULL for an operation that this ISA target has no loop for. */
    dvti_loop_fn (*loop)(dvti_op op);
    /* n elements in one piece, of another dtype, to or from doubles. False: not of this one; nothing is done. */
    bool (*load_row)(const void *src, dvt_dtype dtype, int64_t n, double *to);
    bool (*store_row)(void *dst, dvt_dtype dtype, int64_t n, const double *from);
    /* As of floats, but for logsumexp. */
    dvti_reduce_kernel (*reduce)(dvti_op op);
    dvti_reduce_kernel variance;
    void (*running)(const dvti_running *rows);
    /* n doubles, each with `before`, to floats of any kind. The doubles are sums of such. */
    void (*store_sums)(void *dst, dvt_dtype dtype, int64_t n, const double *from, double before);
} dvti_simd_f64;

#endif
