/* Runs every operation of the table on arrays with an extent of 0. Free memory is filled with a
   pattern before each call. Results and gradients must have the same bytes for two patterns, which
   shows that every byte is written. A new operation of the table needs a function or a line here.
   Used by unit/test_empty_written.c and cuda/test_gpu_empty.c. */
#ifndef EMPTY_SWEEP_H
#define EMPTY_SWEEP_H
#include "../../src/2_core/dvt_optimizer_table.h"
#include "../../src/2_core/dvt_reduce_table.h"
#include "../../src/2_core/dvt_op_table.h"
#include "dvt_test.h"
#include "matmul_forms.h"

/* x has three axes, of which at most one is empty. b broadcasts with x and is never empty. */
typedef dvt_array *(*sweep_fn)(dvt_array *x, dvt_array *b, int axis);

typedef struct sweep_call {
    const char *name;
    sweep_fn call;
} sweep_call;

/* Returns an empty slice of x. */
static dvt_array *sweep_part(dvt_array *x, int axis) {
    return dvt_slice(x, axis, 1, 1, 1);
}

static dvt_array *sweep_index(dvt_array *x, int64_t n) {
    return dvt_zeros(DVT_SHAPE(n), DVT_I64, dvt_ctx_of(x));
}

/* ---- one function for each operation and use ---- */
static dvt_array *sweep_copy(dvt_array *x, dvt_array *b, int axis) {
    (void)b;
    return dvt_copy(dvt_astype(sweep_part(x, axis), DVT_F32));
}

static dvt_array *sweep_where(dvt_array *x, dvt_array *b, int axis) {
    (void)axis;
    return dvt_where(dvt_greater(x, b), x, b);
}

static dvt_array *sweep_clip(dvt_array *x, dvt_array *b, int axis) {
    (void)b;
    return dvt_clip(sweep_part(x, axis), -1, 1);
}

static dvt_array *sweep_reshape(dvt_array *x, dvt_array *b, int axis) {
    (void)b;
    return dvt_reshape(dvt_transpose(sweep_part(x, axis), DVT_ALL), DVT_SHAPE(3, 0, 5));
}

static dvt_array *sweep_transpose(dvt_array *x, dvt_array *b, int axis) {
    (void)b;
    return dvt_contiguous(dvt_swapaxes(x, axis, 0));
}

static dvt_array *sweep_slice(dvt_array *x, dvt_array *b, int axis) {
    (void)b;
    return dvt_slice(x, axis, -1, -1, -2);
}

static dvt_array *sweep_broadcast_to(dvt_array *x, dvt_array *b, int axis) {
    (void)x;
    (void)axis;
    return dvt_broadcast_to(b, DVT_SHAPE(0, 2, 3, 4));
}

#define SWEEP_SUM(name)                                                                            \
    static dvt_array *sweep_##name(dvt_array *x, dvt_array *b, int axis) {                         \
        dvt_array *some = dvt_##name(x, DVT_AXES(axis));                                           \
        (void)b;                                                                                   \
        dvt_clear_error(); /* an empty extreme is an error */                                      \
        return axis == 1 ? dvt_##name(x, DVT_KEEPDIMS(0, 2)) : some;                               \
    }
#define SWEEP_FLOAT(name) SWEEP_SUM(name)
#define SWEEP_SAME(name) SWEEP_SUM(name)
#define SWEEP_BOOL(name) SWEEP_SUM(name)
#define SWEEP_PLACE(name)                                                                          \
    static dvt_array *sweep_##name(dvt_array *x, dvt_array *b, int axis) {                         \
        (void)b;                                                                                   \
        return axis == 1 ? dvt_##name(x, DVT_KEEPDIMS(axis))                                       \
                         : dvt_##name(sweep_part(x, (axis + 1) % 3), DVT_AXES(axis));              \
    }
#define SWEEP_REDUCE(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)       \
    SWEEP_##rule(name)
DVTI_REDUCE_TABLE(SWEEP_REDUCE)
#undef SWEEP_REDUCE
#undef SWEEP_SUM
#undef SWEEP_FLOAT
#undef SWEEP_SAME
#undef SWEEP_BOOL
#undef SWEEP_PLACE

static dvt_array *sweep_variance(dvt_array *x, dvt_array *b, int axis) {
    (void)b;
    return dvt_var(x, DVT_AXES(axis), 1);
}

static dvt_array *sweep_std(dvt_array *x, dvt_array *b, int axis) {
    (void)b;
    return dvt_std(x, DVT_AXES(axis), 1);
}

static dvt_array *sweep_cumsum(dvt_array *x, dvt_array *b, int axis) {
    (void)b;
    return dvt_cumsum(sweep_part(x, 1), axis);
}

static dvt_array *sweep_sort(dvt_array *x, dvt_array *b, int axis) {
    (void)b;
    return dvt_sort(sweep_part(x, 1), axis, DVT_DESCENDING);
}

static dvt_array *sweep_argsort(dvt_array *x, dvt_array *b, int axis) {
    (void)b;
    return dvt_argsort(x, axis, DVT_ASCENDING);
}

static dvt_array *sweep_topk(dvt_array *x, dvt_array *b, int axis) {
    (void)b;
    return dvt_topk(x, 0, axis, DVT_LARGEST, NULL);
}

static dvt_array *sweep_softmax(dvt_array *x, dvt_array *b, int axis) {
    (void)b;
    return dvt_softmax(sweep_part(x, 2), axis);
}

static dvt_array *sweep_log_softmax(dvt_array *x, dvt_array *b, int axis) {
    (void)b;
    return dvt_log_softmax(sweep_part(x, 0), axis);
}

/* axis selects which of n, k and m is the empty extent. */
static dvt_array *sweep_matmul(dvt_array *x, dvt_array *b, int axis) {
    dvt_array *rows = axis == 0 ? dvt_slice(x, 1, 0, 0, 1) : x;
    (void)b;
    if (axis == 1)
        return dvt_matmul(dvt_slice(x, 2, 0, 0, 1), dvt_slice(dvt_t(x), 0, 0, 0, 1));
    return matmul_t(rows, axis == 2 ? dvt_slice(x, 1, 0, 0, 1) : x, false, true);
}

static dvt_array *sweep_dot(dvt_array *x, dvt_array *b, int axis) {
    dvt_array *row = dvt_reshape(dvt_slice(x, axis, 0, 0, 1), DVT_SHAPE(-1));
    (void)b;
    return dvt_dot(row, row);
}

static dvt_array *sweep_linear(dvt_array *x, dvt_array *b, int axis) {
    dvt_array *w = dvt_reshape(dvt_index(x, 0), DVT_SHAPE(dvt_dim(x, 1), dvt_dim(x, 2)));
    (void)b;
    return axis == 0 ? dvt_linear(dvt_slice(x, 1, 0, 0, 1), w, NULL)
                     : dvt_linear(x, axis == 1 ? dvt_slice(w, 0, 0, 0, 1) : w, NULL);
}

static dvt_array *sweep_concat(dvt_array *x, dvt_array *b, int axis) {
    dvt_array *three[3];
    (void)b;
    three[0] = three[2] = sweep_part(x, axis);
    three[1] = x;
    return dvt_concat(three, 3, axis);
}

static dvt_array *sweep_stack(dvt_array *x, dvt_array *b, int axis) {
    dvt_array *two[2];
    (void)b;
    two[0] = two[1] = sweep_part(x, 2 - axis);
    return dvt_stack(two, 2, axis);
}

static dvt_array *sweep_take(dvt_array *x, dvt_array *b, int axis) {
    (void)b;
    return dvt_take(x, sweep_index(x, 0), axis);
}

static dvt_array *sweep_take_some(dvt_array *x, dvt_array *b, int axis) {
    (void)b;
    return dvt_take(sweep_part(x, (axis + 1) % 3), sweep_index(x, 2), axis);
}

static dvt_array *sweep_take_along(dvt_array *x, dvt_array *b, int axis) {
    dvt_shape shape = dvt_shape_of(x);
    (void)b;
    shape.dim[axis] = 0;
    return dvt_take_along_axis(x, dvt_zeros(shape, DVT_I64, dvt_ctx_of(x)), axis);
}

static dvt_array *sweep_pick(dvt_array *x, dvt_array *b, int axis) {
    dvt_array *part = sweep_part(x, axis ? 0 : 1);
    (void)b;
    return dvt_pick(part,
                    dvt_zeros(dvt_shape_of(dvt_sum(part, DVT_AXES(axis))), DVT_I64, dvt_ctx_of(x)),
                    DVT_AXES(axis));
}

#if !defined(DEVTENSOR_NO_NN)
static dvt_array *sweep_cross_entropy(dvt_array *x, dvt_array *b, int axis) {
    dvt_array *part = sweep_part(x, axis ? 0 : 1);
    dvt_array *rows = dvt_sum(part, DVT_AXES(-1));
    (void)b;
    return dvt_loss_softmax_cross_entropy(part,
                                          dvt_zeros(dvt_shape_of(rows), DVT_I64, dvt_ctx_of(x)));
}
#else
#define sweep_cross_entropy sweep_log_softmax
#endif

static dvt_array *sweep_one_hot(dvt_array *x, dvt_array *b, int axis) {
    (void)b;
    return dvt_one_hot(sweep_index(x, axis == 0 ? 0 : 3), axis == 1 ? 0 : 4, dvt_dtype_of(x));
}

/* Convolves x (2, 3, 4) as images of one or two channels. axis selects which of images, channels
   and kernels is empty. */
static dvt_array *sweep_conv2d(dvt_array *x, dvt_array *b, int axis) {
    dvt_array *image = dvt_expand_dims(x, 1), *w = dvt_expand_dims(dvt_slice(x, 2, 0, 2, 1), 1);
    dvt_conv2d_options p;
    (void)b;
    memset(&p, 0, sizeof p);
    p.padding[0] = p.padding[1] = 1;
    if (axis == 1)
        w = dvt_slice(w, 1, 0, 0, 1);
    return dvt_conv2d(axis < 2 ? dvt_slice(image, axis, 0, 0, 1) : image,
                      axis == 2 ? dvt_slice(w, 0, 0, 0, 1) : w, NULL, &p);
}

static dvt_array *sweep_pool(dvt_array *x, int axis, bool max) {
    dvt_array *image = dvt_expand_dims(axis == 0 ? sweep_part(x, 0) : x, axis == 2 ? 0 : 1);
    dvt_pool2d_options p;
    memset(&p, 0, sizeof p);
    p.size[0] = 2;
    image = axis == 1 ? dvt_slice(image, 1, 0, 0, 1) : image;
    return max ? dvt_max_pool2d(image, &p) : dvt_avg_pool2d(image, &p);
}

static dvt_array *sweep_max_pool2d(dvt_array *x, dvt_array *b, int axis) {
    (void)b;
    return sweep_pool(x, axis, true);
}

static dvt_array *sweep_avg_pool2d(dvt_array *x, dvt_array *b, int axis) {
    (void)b;
    return sweep_pool(x, axis, false);
}

static dvt_array *sweep_layer_norm(dvt_array *x, dvt_array *b, int axis) {
    (void)b;
    return dvt_layer_norm(sweep_part(x, axis), NULL, NULL, 1e-5);
}

static dvt_array *sweep_batch_norm(dvt_array *x, dvt_array *b, int axis) {
    int64_t n = dvt_dim(x, axis);
    dvt_array *mean = dvt_zeros(DVT_SHAPE(n), DVT_F32, dvt_ctx_of(x)), *y = NULL;
    (void)b;
    DVT_TRAIN_MODE {
        y = dvt_batch_norm(sweep_part(x, (axis + 1) % 3), mean, mean, mean, dvt_ones_like(mean),
                           axis, 0.5, 1e-5);
    }
    return y ? dvt_add(dvt_sum(y, DVT_ALL), dvt_sum(mean, DVT_ALL)) : NULL;
}

static dvt_array *sweep_dropout(dvt_array *x, dvt_array *b, int axis) {
    dvt_array *y = NULL;
    (void)b;
    DVT_TRAIN_MODE {
        y = dvt_dropout(sweep_part(x, axis), 0.5);
    }
    return y;
}

static dvt_array *sweep_arange(dvt_array *x, dvt_array *b, int axis) {
    (void)b;
    return dvt_arange(axis, 0, 1, dvt_dtype_of(x), dvt_ctx_of(x));
}

static dvt_array *sweep_eye(dvt_array *x, dvt_array *b, int axis) {
    (void)b;
    return dvt_eye(axis == 0 ? 0 : 3, axis == 1 ? 0 : 3, 9, dvt_dtype_of(x), dvt_ctx_of(x));
}

static dvt_array *sweep_fill(dvt_array *x, dvt_array *b, int axis) {
    (void)b;
    return dvt_fill(sweep_part(dvt_zeros_like(x), axis), 3);
}

static double sweep_twice(void *user, const double *value) {
    (void)user;
    return value[0] + value[0];
}

static dvt_array *sweep_custom(dvt_array *x, dvt_array *b, int axis) {
    dvt_kernel *twice = dvt_kernel_expression("x", "x + x");
    (void)b;
    if (dvt_kernel_set_element(twice, sweep_twice, NULL) != DVT_OK)
        return NULL;
    return dvt_kernel_apply(twice, DVT_ARGS(DVT_IN(dvt_detach(sweep_part(x, axis)))));
}

#define SWEEP_RANDOM(name, call)                                                                   \
    static dvt_array *sweep_##name(dvt_array *x, dvt_array *b, int axis) {                         \
        dvt_shape shape = dvt_shape_of(x);                                                         \
        (void)b;                                                                                   \
        shape.dim[axis] = 0;                                                                       \
        return call;                                                                               \
    }
SWEEP_RANDOM(uniform, dvt_uniform(0, 1, shape, DVT_F32, dvt_ctx_of(x)))
SWEEP_RANDOM(normal, dvt_normal(0, 1, shape, DVT_F64, dvt_ctx_of(x)))
SWEEP_RANDOM(randint, dvt_randint(0, 9, shape, DVT_I8, dvt_ctx_of(x)))
SWEEP_RANDOM(bernoulli, dvt_bernoulli(0.5, shape, DVT_F16, dvt_ctx_of(x)))
SWEEP_RANDOM(permutation, dvt_permutation(shape.dim[axis], dvt_ctx_of(x)))
#undef SWEEP_RANDOM

/* Gradients of the operations above. */
#define sweep_unslice sweep_slice
#define sweep_cross_entropy_data sweep_cross_entropy
#define sweep_layer_norm_data sweep_layer_norm
#define sweep_batch_norm_data sweep_batch_norm
#define sweep_take_add sweep_take_some
#define sweep_take_along_add sweep_take_along
#define sweep_conv2d_data sweep_conv2d
#define sweep_conv2d_weight sweep_conv2d
#define sweep_max_pool2d_data sweep_max_pool2d
#define sweep_max_pool2d_pick sweep_max_pool2d
#define sweep_avg_pool2d_data sweep_avg_pool2d

#define SWEEP_UNARY(name, rule, ...)                                                               \
    static dvt_array *sweep_##name(dvt_array *x, dvt_array *b, int axis) {                         \
        (void)b;                                                                                   \
        return dvt_##name(sweep_part(x, axis));                                                    \
    }
#define SWEEP_BINARY(name, rule, ...)                                                              \
    static dvt_array *sweep_##name(dvt_array *x, dvt_array *b, int axis) {                         \
        dvt_array *y = dvt_##name(sweep_part(x, axis), b);                                         \
        return axis == 2 ? dvt_##name##_scalar(sweep_part(x, axis), 2) : y;                        \
    }
DVTI_UNARY_TABLE(SWEEP_UNARY)
DVTI_BINARY_TABLE(SWEEP_BINARY)
#undef SWEEP_UNARY
#undef SWEEP_BINARY

#define SWEEP_UNARY(name, rule, ...) {#name, sweep_##name},
#define SWEEP_BINARY(name, rule, ...) {#name, sweep_##name},
#define SWEEP_OTHER(name, ...) {#name, sweep_##name},
#define SWEEP_REDUCE(name, ...) {#name, sweep_##name},
/* clang-format off */
static const sweep_call sweep_calls[] = {
    DVTI_UNARY_TABLE(SWEEP_UNARY)
    DVTI_BINARY_TABLE(SWEEP_BINARY)
    DVTI_SPECIAL_TABLE(SWEEP_OTHER)
    DVTI_OTHER_TABLE(SWEEP_OTHER)
    DVTI_REDUCE_TABLE(SWEEP_REDUCE)
    {"std", sweep_std}, {"dot", sweep_dot}, {"linear", sweep_linear}, {"stack", sweep_stack},
    {"take_some", sweep_take_some}, {"pick", sweep_pick},
    {"dropout", sweep_dropout}};
/* clang-format on */
#undef SWEEP_UNARY
#undef SWEEP_BINARY
#undef SWEEP_OTHER
#undef SWEEP_REDUCE

enum { SWEEP_CALLS = (int)(sizeof sweep_calls / sizeof *sweep_calls), SWEEP_BYTES = 8192 };

/* ---- one call ---- */
/* Allocates, fills and releases blocks of the result sizes, so that the call reuses them. */
static void sweep_soil(int pattern, dvt_ctx ctx) {
    DVT_SCOPE {
        int size, k;
        for (size = 64; size <= 512; size += 64)
            for (k = 0; k < (size <= 256 ? 6 : 2); k++)
                dvt_full(DVT_SHAPE(size), pattern, DVT_U8, ctx);
    }
}

typedef struct sweep_bytes {
    unsigned char byte[SWEEP_BYTES];
    int64_t n;
} sweep_bytes;

static void sweep_collect(dvt_array *x, sweep_bytes *to) {
    int64_t n = x ? dvt_nbytes(x) : 0;
    if (n == 0)
        return;
    if (dvt_test_check(to->n + n <= SWEEP_BYTES, __FILE__, __LINE__, "more bytes than expected") &&
        dvt_test_check(dvt_to_host(dvt_contiguous(x), to->byte + to->n, n) == DVT_OK, __FILE__,
                       __LINE__, "%s", dvt_error()))
        to->n += n;
}

static void sweep_run(const sweep_call *row, dvt_dtype dtype, int empty, int axis, int pattern,
                      dvt_ctx ctx, sweep_bytes *to) {
    to->n = 0;
    DVT_SCOPE {
        dvt_shape shape = DVT_SHAPE(2, 3, 4), other = DVT_SHAPE(1, 3, 1);
        dvt_array *x, *b, *y = NULL;
        bool graded = dvt_dtype_is_float(dtype);
        if (empty >= 0)
            shape.dim[empty] = 0;
        if (empty == 1)
            other.dim[1] = 1;
        x = dvt_ones(shape, dtype, ctx);
        b = dvt_ones(other, dtype, ctx);
        if (graded) {
            dvt_attach_grad(x, DVT_GRAD_WRITE);
            dvt_attach_grad(b, DVT_GRAD_WRITE);
        }
        sweep_soil(pattern, ctx);
        DVT_RECORD {
            y = row->call(x, b, axis);
        }
        dvt_clear_error(); /* some calls have no result on empty axes */
        sweep_collect(y, to);
        if (y && graded && dvt_has_history(y)) {
            sweep_soil(pattern, ctx);
            dvt_test_check(dvt_backward(y) == DVT_OK, __FILE__, __LINE__, "%s: %s", row->name,
                           dvt_error());
            sweep_collect(dvt_grad(x), to);
            sweep_collect(dvt_grad(b), to);
        }
        dvt_clear_error();
    }
}

/* Runs the sweep for each dtype. rows includes the unary and binary operations, which are many
   programs where those must be compiled. */
static void sweep_dtypes(const dvt_dtype *dtypes, int n_dtypes, bool rows, dvt_ctx ctx) {
    const int first_other = (int)DVTI_OP_copy;
    static sweep_bytes one, two;
    int d, row, empty, axis;
    for (d = 0; d < n_dtypes; d++)
        for (row = rows ? 0 : first_other; row < SWEEP_CALLS; row++)
            for (empty = -1; empty < 3; empty++)
                for (axis = row < first_other ? 1 : 0; axis < 3; axis++) {
                    const sweep_call *call = &sweep_calls[row];
                    sweep_run(call, dtypes[d], empty, axis, 0xa5, ctx, &one);
                    sweep_run(call, dtypes[d], empty, axis, 0x5a, ctx, &two);
                    dvt_test_check(one.n == two.n && memcmp(one.byte, two.byte, (size_t)one.n) == 0,
                                   __FILE__, __LINE__,
                                   "%s of %s, extent %d empty, axis %d: bytes were not written",
                                   call->name, dvt_dtype_name(dtypes[d]), empty, axis);
                }
}

#endif
