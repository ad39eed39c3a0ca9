/* The contract between the library and whatever computes: cpu(), virtual GPUs, CUDA.

   A *device* has memory and one command queue. Work that is put into a queue runs in order; `launch`, `copy` and
   `release` return at once and may run later, `wait` returns when everything put in so far is done. A backend that computes in
   the call (cpu()) is the special case of an empty queue.

   Memory is stream-ordered: `release` may be called while work that uses the block is still queued, and a block from `acquire`
   may be the one that was just released, because whatever uses it stands behind in the same queue. Across devices the
   library orders by waiting.

   Kernels never allocate: a launch that needs room for intermediate results says how much in `workspace`, and gets it. So
   once a launch is accepted, nothing can fail for lack of memory. Errors of work in the queue (a card that falls off the bus)
   are kept, with the name of the operation, and come out of the next `wait`, once. */
#ifndef DVTI_BACKEND_H
#define DVTI_BACKEND_H
#include "2_core/dvt_op_table.h"

/* A strided window on a device's memory. */
typedef struct dvti_view {
    void *data; /* the first element, already offset */
    dvt_dtype dtype;
    int ndim;
    int64_t dim[DVT_MAX_DIMS], stride[DVT_MAX_DIMS]; /* strides in elements, may be 0 or negative */
} dvti_view;

/* Families of kernels and what they read. "Contiguous" is a promise of the caller; other views have any strides.
   f[], i[] are parameters; unused ones are 0. Every view of an output has the dtype that is to be stored. */
typedef enum dvti_kernel {
    /* out[0] = f[0] (i[0] for integer dtypes). */
    DVTI_K_FILL,
    /* out[0] contiguous, 1-d: f[0] + index * f[1]; integer dtypes i[0] + index * i[1]. i[2] = 1: the last one is f[2]. */
    DVTI_K_ARANGE,
    /* out[0] (n, m): 1 where column - row == i[0]. */
    DVTI_K_EYE,
    /* op is a row of the op table, copy, where or clip. in[0..n_in) have out[0]'s shape (by strides of 0). Computed in
       the class `compute`: DVTI_F32, DVTI_F64 or DVTI_I64. Operand number i[0] - 1, when i[0] > 0, is no array but the
       scalar f[0] (i[1] in class I64). clip: bounds f[1], f[2] (NaN-free). in and out may be the same memory with the
       same strides, never overlap otherwise. */
    DVTI_K_ELEMENTWISE,
    /* op: sum, mean, prod, min, max, any, all, norm, logsumexp, argmin, argmax. in[0]'s first i[0] axes are kept, in order, and are
       out[0]'s axes, which is contiguous; the others are reduced. f[0]: the count, for mean. Sums in float64 or int64, in a fixed tree that the
       shape and the strides decide; four float32 or eight 16-bit floats may meet in float32 before (squares never). Reduced size 0: sum 0, prod 1, any 0, all 1, mean and logsumexp NaN and -inf.
       On cpu() alone also op square: sums of (in[0] - in[1])^2, where in[1], like out[0], has one float of in[0]'s dtype for each result;
       float32 or float64, distances and squares rounded to it. */
    DVTI_K_REDUCE,
    /* op: softmax, log_softmax. Along the last axis of in[0] and out[0], same shape.
       On cpu() alone also op rsqrt: each row of in[0] less its mean, over the root of its variance + f[0], times in[1] and plus in[2] (one
       row each; data NULL: none). All float32 and contiguous, rows of 1 to 32768 elements. */
    DVTI_K_SOFTMAX,
    /* op: cumsum. in[0] and out[0] (A, N, B), contiguous: out[a][j][b] is the sum of in[a][0..j][b]; i[0] = 1: of in[a][j..N-1][b]. In
       float64 or int64, in an order that the shape and the device decide. On cpu() one addition after the other, in chunks of
       1024 positions from where sums begin: the sum of all chunks before is added to each element of a chunk. */
    DVTI_K_SCAN,
    /* op: sort, argsort, topk. in[0] (rows, n) and out[0] (rows, k), contiguous: each row's elements in order, or their positions (int64).
       k is n; for topk, which gives positions, 1 to n: the first k of argsort. i[0] = 1:
       descending. Stable both ways: equal elements, to which -0 and +0 and any two NaN belong, keep their order. NaN is the largest. */
    DVTI_K_SORT,
    /* out[0] (batch..., n, m) contiguous = in[0] (batch..., n, k) * in[1] (batch..., k, m), all of one ndim >= 2,
       batch axes already broadcast by strides of 0; any strides; one dtype, except that on cpu() int32 may be made of factors of int8 and uint8. Accumulated in float32 for float32, float16,
       bfloat16, float64 for float64, int64 for integers; in an order that the shapes, the strides and the device decide: k ascending
       on cpu(), by 64 bytes' worth of lanes where a vector meets a matrix that lies along k; a card may add pieces of k that were summed
       side by side. i[0] = 1: factors of float32 may be rounded to 10
       bits of mantissa (TF32). On cpu(), in float32: in[2], when n_in is 3, is a row that is added to every row of the result, and with
       i[1] = 1 relu follows. */
    DVTI_K_MATMUL,
    /* All contiguous. i[0..1] stride, i[2..3] padding, i[4..5] dilation, i[6] groups, i[7] & 1: TF32, as i[0] of DVTI_K_MATMUL;
       & 2: cpu() may take Winograd's method; & 4, of conv2d in float32 on cpu() alone: relu follows.
       op conv2d:        out[0] y (N,O,OH,OW); in x (N,C,H,W), w (O,C/g,KH,KW), and b (O) when n_in is 3.
       op conv2d_data:   out[0] dx; in dy, w.      op conv2d_weight: out[0] dw; in x, dy. */
    DVTI_K_CONV2D,
    /* All contiguous, NCHW. i[0..1] window, i[2..3] stride, i[4..5] padding, i[6] = 1: divide by the elements inside.
       op max_pool2d, avg_pool2d: out[0] y; in x.
       op max_pool2d_data: out[0] dx; in dy, x (the first maximum of a window gets dy; with i[7] = 1, when x is a relu's result, nothing where
       that is 0: dx is what relu's gradient makes of it). op avg_pool2d_data: out[0] dx; in dy.
       op max_pool2d_pick: out[0] like y; in v (like x), x: v at the place of each window's first maximum. */
    DVTI_K_POOL2D,
    /* All contiguous; index int64, negative ones from the end, clamped to 0..n-1.
       op take:     out[0] (A, M, B) = in[0] (A, N, B) at in[1] (M).
       op take_add: out[0] (A, N, B) zeroed, then in[0] (A, M, B) added at in[1] (M), in the order of M. */
    DVTI_K_TAKE,
    /* i[0] axis. out[0] and in[1] (index, int64) have one shape; in[0] agrees on the other axes by strides.
       op take_along:     out[0][..j..] = in[0][..index[..j..]..]
       op take_along_add: out[0] (contiguous) zeroed, then in[0] added at in[1], where in[0] and in[1] have one shape. */
    DVTI_K_TAKE_ALONG,
    /* out[0] (..., depth) contiguous; in[0] (...) contiguous int64; zeros for an index outside 0..depth-1. */
    DVTI_K_ONE_HOT,
    /* out[0] contiguous, of i[6] > 0 elements. i[0] generator (dvti_rng in 1_base/dvt_rng.h), i[1] key (word 0 above word 1), i[2]
       first counter, i[3] words 2 and 3 of every counter (word 2 above word 3).
       op uniform: f[0] low, f[1] high, f[2] the largest result, all exact in out's dtype. normal: f[0] mean, f[1] deviation.
       randint: i[4] low, i[5] high - low modulo 2^64. bernoulli: f[0] p. permutation: out int64.
       Philox: counter i[2] + g gives element 4g + k its word k; two words, the first one above, for each element 2g + k of
       randint and of float64 uniform, and for draw 2g + k of permutation; both words pairs together for a pair of float64 normals.
       Threefry: JAX's layout, which needs no counter.
       MT19937, uniform only: out[1] (i[4], 625) int32 are the states (dvti_mt19937) in main memory, which the launch changes; state t
       gives elements t * step .. with step = ceil(i[6] / i[4]). Only on cpu(), where a launch runs in the call.
       cuRAND, uniform only: the same with i[4] subsequences, which begin at word i[2], or at in[0][t] when there is in[0] (int64). */
    DVTI_K_RANDOM,
    /* One optimiser step, in place, all contiguous and of one shape. out[0] w, out[1..] state; in[0] gradient.
       f: 0 rate, 1 weight decay, 2 rescale, 3 clip (<= 0: none), 4.. as the op says.
       sgd:     4 momentum; i[0] nesterov; state m when momentum != 0
       adam:    4 beta1, 5 beta2, 6 epsilon, 7 the bias-corrected rate; state m, v.   adamw: the same, decoupled decay
       rmsprop: 4 rho, 5 momentum, 6 epsilon; i[0] centered; state n, and g, m when centered
       adagrad: 6 epsilon; state h */
    DVTI_K_OPTIMIZER,
    DVTI_K_COUNT
} dvti_kernel;

typedef enum dvti_class { DVTI_F32, DVTI_F64, DVTI_I64 } dvti_class;

/* The columns of the op table that code asks for by number. */
typedef struct dvti_op_row {
    uint8_t operands; /* 1 to 3; 0: not elementwise */
    uint8_t rule;     /* dvti_rule */
    uint8_t cost;     /* dvti_cost */
    uint16_t reads;   /* by the gradients: DVTI_READS_*, four bits for each input */
} dvti_op_row;

DVTI_FN const dvti_op_row *dvti_op_row_of(dvti_op op);

#define DVTI_MAX_IN 4
#define DVTI_MAX_OUT 4

typedef struct dvti_launch {
    dvti_kernel kernel;
    dvti_op op;
    dvti_class compute;
    int n_in, n_out;
    bool at_once; /* the backend's own: on cpu(), one call of a kernel forms the product */
    double f[8];
    int64_t i[8];
    void *workspace; /* at least workspace_bytes, 64-byte aligned */
    int64_t workspace_bytes;
    const char *name; /* "dvt_add": for errors and traces */
    dvti_view in
        [DVTI_MAX_IN]; /* n_in of them are set, n_out of the others, and of each as many axes as it has */
    dvti_view out[DVTI_MAX_OUT];
} dvti_launch;

/* c (n, m), in C order, = a (n, k) * b (k, m), all float32 or all float64. Distances count elements. Numbers and addresses take turns
   for the reason that dvti_product gives. */
typedef struct dvti_matrices {
    dvt_dtype dtype;
    int64_t n;
    const void *a;
    int64_t a_row;
    const void *b;
    int64_t a_k;
    void *c;
    int64_t m, b_k, k, b_col;
} dvti_matrices;

typedef struct dvti_device dvti_device;

/* An array of an all-reduce: of one dtype and size, contiguous, once on each device. */
typedef struct dvti_reduce_part {
    dvt_dtype dtype;
    int64_t count;
    void *at[DVT_MAX_GPUS];
} dvti_reduce_part;

/* Every function up to `wait` is required. Statuses other than DVT_OK come with dvti_fail's message. */
typedef struct dvti_backend {
    const char *name;
    /* Memory, at least 64-byte aligned. `acquire` (function: the caller's name, for the
       message) fails with HOST_MEMORY or DEVICE_MEMORY; `release` never fails. */
    dvt_status (*acquire)(dvti_device *device, const char *function, int64_t bytes, void **out);
    void (*release)(dvti_device *device, void *block, int64_t bytes);
    /* Copies of plain bytes. upload: `src` may change as soon as it returns. download: waits; `dst` is ready when it returns.
       copy_from: both on devices of this backend, in order after what either queue holds now. */
    dvt_status (*upload)(dvti_device *device, void *dst, const void *src, int64_t bytes);
    dvt_status (*download)(dvti_device *device, void *dst, const void *src, int64_t bytes);
    dvt_status (*copy_from)(dvti_device *device, void *dst, dvti_device *from, const void *src,
                            int64_t bytes);
    /* Bytes of workspace that this launch needs (0 for most). May note in at_once what `launch` would have to find out again. */
    int64_t (*workspace)(dvti_device *device, dvti_launch *launch);
    /* Puts the launch into the queue; the structure is copied. */
    dvt_status (*launch)(dvti_device *device, const dvti_launch *launch);
    dvt_status (*wait)(dvti_device *device);
    /* What this thread has launched since its last call stands there: for the message when it fails later. NULL: not wanted. */
    void (*note)(dvti_device *device, const char *file, int line);
    /* Gives back memory that is kept for later, and says how much is. NULL: none is ever kept. */
    int64_t (*trim)(dvti_device *device);
    void (*memory)(dvti_device *device, dvt_memory_stats *out);
    /* Every array becomes the sum over the n devices, formed in their order, with the same bits on all of them; in order after what their
       queues hold now. can_all_reduce: the devices reach each other's memory. NULL: the library copies and adds. */
    bool (*can_all_reduce)(dvti_device *const *device, int n);
    dvt_status (*all_reduce)(const char *name, dvti_device *const *device, int n,
                             const dvti_reduce_part *part, int n_parts);
    /* Forms a product in the call, with the bits of DVTI_K_MATMUL, where it is so small that preparing a launch would be a good part
       of the time; otherwise false. NULL: nowhere. */
    bool (*multiply)(const dvti_matrices *product);
} dvti_backend;

/* What the library keeps per device; `impl` is the backend's. */
struct dvti_device {
    const dvti_backend *backend;
    dvt_ctx ctx;
    void *impl;
    dvti_atomic limit; /* bytes; 0: none */
    dvti_atomic used;  /* bytes held now */
    dvti_atomic peak;
    dvti_atomic users; /* buffers alive, and calls that look at the device now; not of cpu() */
};

#endif
