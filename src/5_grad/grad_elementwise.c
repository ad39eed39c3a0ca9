/* Gradients of elementwise operations, and helpers of all gradient functions. The table's rows hold
   the gradients of their operations as text. This file has the functions that the texts name, and
   the gradients of copy, where and clip. */
#include "5_grad/dvt_grad.h"

/* ---- helpers of all gradient functions ---- */
DVTI_FN dvt_array *dvti_as_dtype_of(dvt_array *x, dvt_array *g) {
    return x && g ? dvt_as_in_dtype(x, g->dtype) : NULL;
}

/* One launch unless it is recorded. */
DVTI_FN dvt_array *dvti_rescaled(dvt_array *g, int shift, dvt_dtype dtype) {
    static const char name[] = "dvt_backward";
    const double factor = ldexp(1, shift);
    dvti_launch launch;
    dvt_dtype wide;
    dvt_array *out;
    if (!g || !shift)
        return g ? dvt_as_in_dtype(g, dtype) : NULL;
    wide = dvt_promote(g->dtype, dtype);
    if (dvt_is_recording())
        return dvt_as_in_dtype(dvt_mul_scalar(dvt_as_in_dtype(g, wide), factor), dtype);
    if (!(out = dvti_array_new(name, g->shape, dtype, g->storage->ctx)))
        return NULL;
    dvti_launch_begin(&launch, name, dvti_kernel_elementwise(), DVTI_OP_mul);
    launch.compute = dvti_class_of(wide);
    launch.in[0] = dvti_view_of(g);
    memset(&launch.in[1], 0, sizeof launch.in[1]);
    launch.out[0] = dvti_view_of(out);
    launch.n_in = 2;
    launch.n_out = 1;
    launch.f[0] = factor;
    launch.i[0] = 2; /* the second operand is the scalar */
    launch.i[1] = 0;
    return dvt_size(out) == 0 || dvti_run(out->storage->device, &launch) == DVT_OK ? out : NULL;
}

DVTI_FN dvt_array *dvti_no_gradient(dvt_array *g) {
    return dvt_zeros_like(g);
}

DVTI_FN dvt_array *dvti_number_like(dvt_array *g, double value) {
    return g ? dvt_full(DVT_SCALAR, value, g->dtype, g->storage->ctx) : NULL;
}

DVTI_FN dvt_array *dvti_unbroadcast(dvt_array *g, dvt_array *x) {
    dvt_axes axes = DVT_ALL;
    int lead, i;
    if (!g)
        return NULL;
    lead = g->shape.ndim - x->shape.ndim;
    for (i = 0; i < g->shape.ndim; i++)
        if (i < lead || (x->shape.dim[i - lead] == 1 && g->shape.dim[i] != 1))
            axes.axis[axes.n++] = i;
    if (axes.n)
        g = dvt_sum(g, dvt_keepdims(axes));
    if (g && !dvt_shape_equal(g->shape, x->shape))
        g = dvt_reshape(g, x->shape);
    return dvti_as_dtype_of(g, x);
}

/* ---- functions that rows name ---- */
/* Returns g * (Phi(x) + x phi(x)), with the normal distribution's function Phi and density phi.
   Below -1, Phi is computed as gelu(x) / x, which keeps the digits that 1 + erf loses there.
   Elsewhere that quotient is computed of -1, so that its own gradient is finite. */
static dvt_array *dvti_grad_gelu(dvt_array *g, dvt_array *x) {
    dvt_array *tail = dvt_less_scalar(x, -1), *phi, *cdf, *low;
    low = dvt_where_scalar(tail, x, -1);
    cdf = dvt_add_scalar(dvt_mul_scalar(dvt_erf(dvt_mul_scalar(x, 0.70710678118654752440)), 0.5),
                         0.5);
    cdf = dvt_where(tail, dvt_div(dvt_gelu(low), low), cdf);
    phi = dvt_mul_scalar(dvt_exp(dvt_mul_scalar(dvt_square(x), -0.5)), 0.39894228040143267794);
    return dvt_mul(g, dvt_add(cdf, dvt_mul(x, phi)));
}

/* Returns g / sqrt(1 - x^2). The factors (1 - x) and (1 + x) keep digits that 1 - x^2 would
   lose. */
static dvt_array *dvti_grad_asin(dvt_array *g, dvt_array *x) {
    dvt_array *product = dvt_mul(dvt_scalar_sub(1, x), dvt_add_scalar(x, 1));
    return dvt_mul(g, dvt_rsqrt(product));
}

/* Returns x / h^2. Dividing twice avoids the square, which may overflow or vanish. */
static dvt_array *dvti_over_square(dvt_array *x, dvt_array *h) {
    return dvt_div(dvt_div(x, h), h);
}

/* Returns g * b * a^(b - 1), in at least float32: in 16 bits b - 1 would lose digits of the
   exponent. Where b is 0 and 1 / a is infinite, a^0 replaces the power, so that the product with b
   is 0, not NaN. Where b is 0 and 1 / a is finite, the power matters only for the next derivative,
   d2/dadb = 1/a. When not recording, the exponents therefore keep b's shape, and one exponent for
   all elements stays one. */
static dvt_array *dvti_grad_pow_a(dvt_array *g, dvt_array *a, dvt_array *b) {
    dvt_array *flat;
    a = dvti_wide_float(a);
    b = dvti_wide_float(b);
    flat = dvt_equal_scalar(b, 0);
    if (dvt_is_recording())
        flat = dvt_logical_and(flat, dvt_isinf(dvt_reciprocal(a)));
    return dvt_mul(g, dvt_mul(b, dvt_pow(a, dvt_scalar_where(flat, 0, dvt_sub_scalar(b, 1)))));
}

/* Does the same for a scalar exponent. Like dvt_pow, it lists the cases that need no power;
   dvti_reads_of_power (dvt_tape.c) knows what each case reads. */
static dvt_array *dvti_grad_pow_scalar(dvt_array *g, dvt_array *x, double s, dvt_array *y) {
    if (x->dtype != DVT_F64)
        s = dvti_round_as(DVT_F32, s); /* as the operation rounded it */
    if (s == 0)
        return dvti_no_gradient(g);
    if (s == 1 && !dvt_is_recording())
        return g;
    if (s == 2)
        return dvt_mul(g, dvt_mul_scalar(x, 2));
    if (s == 0.5)
        return dvt_div(dvt_mul_scalar(g, 0.5), y);
    if (s == -1)
        return dvt_neg(dvt_mul(g, dvt_square(y)));
    return dvt_mul(g, dvt_mul_scalar(dvt_pow_scalar(x, s - 1), s));
}

/* Returns g * y * log(a), and 0 where a is 0 and y is not infinite: the limit for b > 0. */
static dvt_array *dvti_grad_pow_b(dvt_array *g, dvt_array *a, dvt_array *y) {
    dvt_array *flat = dvt_logical_and(dvt_equal_scalar(a, 0), dvt_isfinite(y));
    return dvt_mul(g, dvt_mul(y, dvt_log(dvt_scalar_where(flat, 1, a))));
}

/* ---- rows ---- */
static dvt_array *dvti_grad_unary_row(dvti_op op, dvt_array *g, dvt_array *x, dvt_array *y) {
    switch (op) {
#define DVTI_ROW(name, rule, cost, f, i, vector, math, grad, ...)                                  \
    case DVTI_OP_##name:                                                                           \
        return grad;
        DVTI_UNARY_TABLE(DVTI_ROW)
#undef DVTI_ROW
    default:
        return NULL;
    }
}

static dvt_array *dvti_grad_binary_row_a(dvti_op op, dvt_array *g, dvt_array *a, dvt_array *b,
                                         dvt_array *y) {
    (void)y;
    switch (op) {
#define DVTI_ROW(name, rule, cost, f, i, vector, math, ga, ...)                                    \
    case DVTI_OP_##name:                                                                           \
        return ga;
        DVTI_BINARY_TABLE(DVTI_ROW)
#undef DVTI_ROW
    default:
        return NULL;
    }
}

static dvt_array *dvti_grad_binary_row_b(dvti_op op, dvt_array *g, dvt_array *a, dvt_array *b,
                                         dvt_array *y) {
    switch (op) {
#define DVTI_ROW(name, rule, cost, f, i, vector, math, ga, reads_a, gb, ...)                       \
    case DVTI_OP_##name:                                                                           \
        return gb;
        DVTI_BINARY_TABLE(DVTI_ROW)
#undef DVTI_ROW
    default:
        return NULL;
    }
}

/* Handles x with the scalar s as the second operand. Common rows need no array that holds s. */
static dvt_array *dvti_grad_scalar_behind(dvti_op op, dvt_array *g, dvt_array *x, double s,
                                          dvt_array *y) {
    dvt_array *number;
    switch (op) {
    case DVTI_OP_add:
    case DVTI_OP_sub:
        return g;
    case DVTI_OP_mul:
        return dvt_mul_scalar(g, s);
    case DVTI_OP_div:
        return dvt_div_scalar(g, s);
    case DVTI_OP_pow:
        return dvti_grad_pow_scalar(g, x, s, y);
    default: /* some rows do not read the scalar, but a failure to make it must not be lost */
        number = dvti_number_like(g, s);
        return number ? dvti_grad_binary_row_a(op, g, x, number, y) : NULL;
    }
}

/* Handles the scalar s as the first operand and x as the second. */
static dvt_array *dvti_grad_scalar_before(dvti_op op, dvt_array *g, double s, dvt_array *x,
                                          dvt_array *y) {
    dvt_array *number;
    switch (op) {
    case DVTI_OP_add:
        return g;
    case DVTI_OP_sub:
        return dvt_neg(g);
    case DVTI_OP_mul:
        return dvt_mul_scalar(g, s);
    default:
        number = dvti_number_like(g, s);
        return number ? dvti_grad_binary_row_b(op, g, number, x, y) : NULL;
    }
}

static void dvti_grad_row(dvti_grad_call *call) {
    const dvti_node *node = call->node;
    dvti_op op = node->op;
    dvt_array *a = dvti_as_dtype_of(call->in[0], call->g), *b;
    /* also where the row does not read it: an error that stays set must come with a failure */
    if (!a)
        return;
    if (dvti_op_row_of(op)->operands == 1) {
        call->out[0] = dvti_grad_unary_row(op, call->g, a, call->y);
        return;
    }
    if (node->attr.i[0] == 1)
        call->out[0] = dvti_grad_scalar_before(op, call->g, node->attr.f[0], a, call->y);
    else if (node->attr.i[0] == 2)
        call->out[0] = dvti_grad_scalar_behind(op, call->g, a, node->attr.f[0], call->y);
    if (node->attr.i[0])
        return;
    /* The rows compute with a and b as the operation did, in the dtype of the result. */
    b = dvti_as_dtype_of(call->in[1], call->g);
    if (!b)
        return;
    if (call->need[0])
        call->out[0] = dvti_grad_binary_row_a(op, call->g, a, b, call->y);
    if (call->need[1])
        call->out[1] = dvti_grad_binary_row_b(op, call->g, a, b, call->y);
}

/* ---- select and copy ---- */
/* Computes the gradient of where. attr.i[0] is 0, or 2 or 3 for a scalar in place of a or b. */
static void dvti_grad_where(dvti_grad_call *call) {
    const int scalar_at = (int)call->node->attr.i[0], b = scalar_at == 2 ? 1 : 2;
    if (call->need[0]) /* a float condition only acts by being zero or not */
        call->out[0] = dvti_no_gradient(call->g);
    if (scalar_at != 2 && call->need[1])
        call->out[1] = dvt_where_scalar(call->in[0], call->g, 0);
    if (scalar_at != 3 && call->need[b])
        call->out[b] = dvt_scalar_where(call->in[0], 0, call->g);
}

/* Passes g inside the closed interval; the gradient at NaN is 0. */
static void dvti_grad_clip(dvti_grad_call *call) {
    double low = call->node->attr.f[1], high = call->node->attr.f[2];
    dvt_array *x = call->in[0];
    dvt_array *inside =
        dvt_logical_and(dvt_greater_equal_scalar(x, low), dvt_less_equal_scalar(x, high));
    call->out[0] = dvt_where_scalar(inside, call->g, 0);
}

/* Copies g back to the source's context and dtype. A cast between dtypes is where a net with mixed
   precision begins and ends: the loss scale is applied before g is rounded to 16 bits, and removed
   after it is float32 again. */
static void dvti_grad_copy(dvti_grad_call *call) {
    dvt_array *x = call->in[0];
    call->out[0] = dvt_as_in_ctx(dvti_rescaled(call->g, call->shift, x->dtype), x->storage->ctx);
    call->shift = 0;
}

DVTI_FN void dvti_grad_elementwise(dvti_grad_call *call) {
    dvti_op op = call->node->op;
    if (op == DVTI_OP_where)
        dvti_grad_where(call);
    else if (op == DVTI_OP_clip)
        dvti_grad_clip(call);
    else if (op == DVTI_OP_copy)
        dvti_grad_copy(call);
    else
        dvti_grad_row(call);
}
