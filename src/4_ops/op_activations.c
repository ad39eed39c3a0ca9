/* Activations that are composed of recorded operations. float16 and bfloat16 are computed in
   float32 and rounded once. relu, sigmoid, tanh, softplus and gelu are rows of the table of
   operations. */
#include "4_ops/dvt_op.h"

/* Computes an activation of x, which is float32 or float64. */
typedef dvt_array *(*dvti_activation_fn)(dvt_array *x, double parameter);

static dvt_array *dvti_activation_of(const char *name, dvti_activation_fn compute, dvt_array *x,
                                     const char *what, double parameter) {
    dvt_scope_guard scope;
    dvt_dtype dtype;
    dvt_array *y;
    if (!dvti_check(name, &x, 1))
        return NULL;
    if (parameter - parameter != 0) {
        dvti_fail(DVT_ERR_RANGE, "%s: %s is %g; expected a finite number", name, what, parameter);
        return NULL;
    }
    scope = dvt_scope_begin();
    dtype = dvti_float_dtype(x->dtype);
    y = compute(dvti_compute_float(x), parameter);
    y = dvt_as_in_dtype(y, dtype);
    dvt_keep(y);
    dvt_scope_end(&scope);
    return y;
}

/* As PyTorch's, the gradient at 0 is that of the negative side. */
static dvt_array *dvti_leaky_relu(dvt_array *x, double slope) {
    return dvt_where(dvt_greater_scalar(x, 0), x, dvt_mul_scalar(x, slope));
}

/* Returns scale * (x > 0 ? x : alpha * expm1(x)). One of the two terms is 0. The clip keeps the
   exponential of a large x from making an infinity, which the gradient would multiply by 0. */
static dvt_array *dvti_elu_scaled(dvt_array *x, double scale, double scaled_alpha) {
    dvt_array *low = dvt_expm1(dvt_clip(x, -(double)INFINITY, 0)), *high = dvt_relu(x);
    if (scale != 1)
        high = dvt_mul_scalar(high, scale);
    if (scaled_alpha != 1)
        low = dvt_mul_scalar(low, scaled_alpha);
    return dvt_add(high, low);
}

static dvt_array *dvti_elu(dvt_array *x, double alpha) {
    return dvti_elu_scaled(x, 1, alpha);
}

static dvt_array *dvti_selu(dvt_array *x, double unused) {
    (void)unused;
    return dvti_elu_scaled(x, 1.0507009873554804934, 1.7580993408473768599);
}

static dvt_array *dvti_silu(dvt_array *x, double unused) {
    (void)unused;
    return dvt_mul(x, dvt_sigmoid(x));
}

static dvt_array *dvti_mish(dvt_array *x, double unused) {
    (void)unused;
    return dvt_mul(x, dvt_tanh(dvt_softplus(x)));
}

/* x + 3 comes first: it is exact near -3. */
static dvt_array *dvti_hard_sigmoid(dvt_array *x, double unused) {
    (void)unused;
    return dvt_div_scalar(dvt_clip(dvt_add_scalar(x, 3), 0, 6), 6);
}

static dvt_array *dvti_hard_swish(dvt_array *x, double unused) {
    return dvt_mul(x, dvti_hard_sigmoid(x, unused));
}

DVT_API dvt_array *dvt_leaky_relu(dvt_array *x, double slope) {
    return dvti_activation_of("dvt_leaky_relu", dvti_leaky_relu, x, "slope", slope);
}

DVT_API dvt_array *dvt_elu(dvt_array *x, double alpha) {
    return dvti_activation_of("dvt_elu", dvti_elu, x, "alpha", alpha);
}

DVT_API dvt_array *dvt_selu(dvt_array *x) {
    return dvti_activation_of("dvt_selu", dvti_selu, x, NULL, 0);
}

DVT_API dvt_array *dvt_silu(dvt_array *x) {
    return dvti_activation_of("dvt_silu", dvti_silu, x, NULL, 0);
}

DVT_API dvt_array *dvt_mish(dvt_array *x) {
    return dvti_activation_of("dvt_mish", dvti_mish, x, NULL, 0);
}

DVT_API dvt_array *dvt_hard_sigmoid(dvt_array *x) {
    return dvti_activation_of("dvt_hard_sigmoid", dvti_hard_sigmoid, x, NULL, 0);
}

DVT_API dvt_array *dvt_hard_swish(dvt_array *x) {
    return dvti_activation_of("dvt_hard_swish", dvti_hard_swish, x, NULL, 0);
}

/* ---- a learned slope ---- */
DVT_API dvt_array *dvt_prelu(dvt_array *x, dvt_array *slope) {
    static const char *const names[] = {"x", "slope"};
    dvt_scope_guard scope;
    dvt_dtype dtype;
    dvt_array *in[2], *y;
    int64_t channels;
    in[0] = x;
    in[1] = slope;
    if (!dvti_check_named("dvt_prelu", in, 2, names))
        return NULL;
    channels = x->shape.ndim > 1 ? x->shape.dim[1] : 1;
    if (slope->shape.ndim != 1 || (slope->shape.dim[0] != 1 && slope->shape.dim[0] != channels)) {
        dvti_fail(DVT_ERR_SHAPE,
                  "dvt_prelu: slope is %s and x is %s; expected shape (1,), or one slope for each "
                  "channel on axis 1 of x",
                  dvti_describe(slope), dvti_describe(x));
        return NULL;
    }
    scope = dvt_scope_begin();
    dtype = dvt_promote(dvti_float_dtype(x->dtype), slope->dtype);
    x = dvti_compute_float(x);
    if (x && x->shape.ndim > 1)
        slope = dvti_along(slope, x, 1);
    y = dvt_where(dvt_greater_scalar(x, 0), x, dvt_mul(x, slope));
    y = dvt_as_in_dtype(y, dtype);
    dvt_keep(y);
    dvt_scope_end(&scope);
    return y;
}

/* ---- gated linear units ---- */
static dvt_array *dvti_glu(const char *name, dvt_array *x, int axis, bool swish) {
    dvt_scope_guard scope;
    dvt_array *half[2], *y = NULL;
    dvt_dtype dtype;
    if (!dvti_check(name, &x, 1) || !dvti_axis(name, &axis, x))
        return NULL;
    if (x->shape.dim[axis] % 2) {
        dvti_fail(DVT_ERR_SHAPE, "%s: x is %s; expected an even extent on axis %d", name,
                  dvti_describe(x), axis);
        return NULL;
    }
    scope = dvt_scope_begin();
    dtype = dvti_float_dtype(x->dtype);
    x = dvti_compute_float(x);
    if (x && dvt_split(x, 2, axis, half) == DVT_OK) {
        y = dvt_mul(half[0], dvt_sigmoid(half[swish ? 0 : 1]));
        y = dvt_as_in_dtype(swish ? dvt_mul(y, half[1]) : y, dtype);
    }
    dvt_keep(y);
    dvt_scope_end(&scope);
    return y;
}

DVT_API dvt_array *dvt_glu(dvt_array *x, int axis) {
    return dvti_glu("dvt_glu", x, axis, false);
}

DVT_API dvt_array *dvt_swiglu(dvt_array *x, int axis) {
    return dvti_glu("dvt_swiglu", x, axis, true);
}
