/* Layers as functions. They are composed of recorded operations, so they need no gradients of their
   own. */
#include "1_base/dvt_float_mode.h"
#include "4_ops/dvt_op.h"

/* Computes the layer in one launch where the backend and the inputs allow it. */
static dvt_array *dvti_linear_of(dvt_array *x, dvt_array *w, dvt_array *bias, bool relu) {
    dvt_array *y;
    if (x->dtype == w->dtype && dvt_dtype_is_float(x->dtype) &&
        dvti_supports(x->storage->device, dvti_kernel_matmul(), DVTI_OP_matmul, x->dtype,
                      DVTI_CAN_EPILOGUE) &&
        x->shape.ndim > 1 && (!bias || (bias->dtype == x->dtype && dvt_is_contiguous(bias))))
        return dvti_linear_fused(x, w, bias, relu);
    y = dvti_matmul("dvt_matmul_with", x, w, false, true);
    if (bias)
        y = dvt_add(y, bias);
    return y && relu ? dvt_relu(y) : y;
}

DVTI_FN dvt_array *dvti_linear(dvt_array *x, dvt_array *w, dvt_array *bias, bool relu) {
    static const char *const names[] = {"x", "w", "bias"};
    dvt_array *in[3], *y;
    dvt_scope_guard scope;
    in[0] = x;
    in[1] = w;
    in[2] = bias;
    if (!dvti_check_named("dvt_linear", in, bias ? 3 : 2, names))
        return NULL;
    if (x->shape.ndim < 1 || w->shape.ndim != 2 ||
        x->shape.dim[x->shape.ndim - 1] != w->shape.dim[1] ||
        (bias && (bias->shape.ndim != 1 || bias->shape.dim[0] != w->shape.dim[0]))) {
        dvti_fail(
            DVT_ERR_SHAPE,
            "dvt_linear: x is %s, w is %s and bias %s; expected (..., k), (units, k) and (units,)",
            dvti_describe(x), dvti_describe(w), bias ? dvti_describe(bias) : "none");
        return NULL;
    }
    scope = dvt_scope_begin();
    y = dvti_linear_of(x, w, bias, relu);
    dvt_keep(y);
    dvt_scope_end(&scope);
    return y;
}

DVT_API dvt_array *dvt_linear(dvt_array *x, dvt_array *w, dvt_array *bias) {
    return dvti_optional("dvt_linear", "bias", bias) ? dvti_linear(x, w, bias, false) : NULL;
}

static DVTI_NOINLINE dvt_array *dvti_dropout(dvt_array *x, double p) {
    dvt_scope_guard scope;
    dvt_array *kept, *y;
    if (!dvti_check("dvt_dropout", &x, 1))
        return NULL;
    if (!(p >= 0 && p < 1)) {
        dvti_fail(DVT_ERR_RANGE, "dvt_dropout: p is %g; expected 0 <= p < 1", p);
        return NULL;
    }
    if (!dvt_is_training() || p == 0)
        return x;
    scope = dvt_scope_begin();
    /* Selects instead of multiplying: dropped elements are 0 even where x is infinite or NaN. */
    kept = dvt_bernoulli(1 - p, x->shape, DVT_BOOL, x->storage->ctx);
    y = dvt_div_scalar(x, 1 - p);
    y = y ? dvt_where(kept, y, dvt_scalar(0, y->dtype, x->storage->ctx)) : NULL;
    dvt_keep(y);
    dvt_scope_end(&scope);
    return y;
}

DVT_API dvt_array *dvt_dropout(dvt_array *x, double p) {
    const dvti_float_mode mode = dvti_float_mode_begin();
    dvt_array *y = dvti_dropout(x, p);
    dvti_float_mode_end(&mode);
    return y;
}

/* ---- batch normalization ---- */
DVTI_FN dvt_array *dvti_along(dvt_array *v, const dvt_array *x, int axis) {
    dvt_shape shape = x->shape;
    int i;
    for (i = 0; v && i < shape.ndim; i++)
        shape.dim[i] = i == axis ? v->shape.dim[0] : 1;
    return v ? dvt_reshape(v, shape) : NULL;
}

static const char *const dvti_batch_norm_names[] = {"x", "gamma", "beta", "running_mean",
                                                    "running_var"};

static bool dvti_batch_norm_ok(dvt_array *const *in, int axis) {
    const char *const *names = dvti_batch_norm_names;
    dvt_array *x = in[0];
    int i;
    for (i = 1; i < 5; i++)
        if (in[i]->shape.ndim != 1 || in[i]->shape.dim[0] != x->shape.dim[axis]) {
            dvti_fail(
                DVT_ERR_SHAPE,
                "dvt_batch_norm: %s is %s; expected shape (%lld,), the extent of axis %d of x (%s)",
                names[i], dvti_describe(in[i]), (long long)x->shape.dim[axis], axis,
                dvti_describe(x));
            return false;
        }
    for (i = 0; i < 5; i++)
        if (!dvt_dtype_is_float(in[i]->dtype)) {
            dvti_fail(DVT_ERR_DTYPE, "dvt_batch_norm: %s is %s; expected a float dtype", names[i],
                      dvti_describe(in[i]));
            return false;
        }
    return true;
}

/* Checks the running statistics that training writes. They must hold every variance: float16 ends
   at 65504, and bfloat16 would lose changes below 0.4 %. */
static bool dvti_running_ok(dvt_array *const *in) {
    int i;
    for (i = 3; i < 5; i++) {
        if (in[i]->broadcast) {
            dvti_fail(DVT_ERR_VALUE,
                      "dvt_batch_norm: running statistics are written, and a broadcast "
                      "view cannot be; copy it first");
            return false;
        }
        if (in[i]->dtype == DVT_F16 || in[i]->dtype == DVT_BF16) {
            dvti_fail(DVT_ERR_DTYPE,
                      "dvt_batch_norm: %s is %s; expected float32 or float64 in train mode, "
                      "whatever x is: convert it with dvt_astype",
                      dvti_batch_norm_names[i], dvti_describe(in[i]));
            return false;
        }
    }
    return true;
}

/* Returns momentum * running + (1 - momentum) * batch. */
static DVTI_NOINLINE dvt_array *dvti_moved(dvt_array *running, dvt_array *batch, double momentum) {
    dvt_array *share = dvt_mul_scalar(dvt_reshape(batch, running->shape), 1 - momentum);
    return dvt_add(dvt_mul_scalar(running, momentum), share);
}

/* Updates both running statistics without recording. Both values are computed before either is
   written. */
static bool dvti_move_running(dvt_array *const *running, dvt_array *mean, dvt_array *variance,
                              double momentum) {
    const dvti_float_mode mode = dvti_float_mode_begin();
    bool good = false;
    DVT_MODE_SCOPE(DVT_OFF, DVT_UNCHANGED) {
        dvt_array *m = dvti_moved(running[0], mean, momentum),
                  *v = dvti_moved(running[1], variance, momentum);
        good = m && v && dvt_copy_into(running[0], m) && dvt_copy_into(running[1], v);
    }
    dvti_float_mode_end(&mode);
    return good;
}

/* Composes it of operations. x is float32 or float64. */
static dvt_array *dvti_batch_norm_composed(dvt_array *x, dvt_array *const *in, int axis,
                                           double momentum, double epsilon, dvt_dtype dtype) {
    const bool training = dvt_is_training();
    dvt_array *mean, *variance, *y;
    if (training) {
        dvt_axes others = DVT_ALL;
        int i;
        for (i = 0; i < x->shape.ndim; i++)
            if (i != axis)
                others.axis[others.n++] = i;
        /* With no other axis each element is a batch of one: it is its own mean, and its variance
           is 0. */
        mean = others.n ? dvt_mean(x, dvt_keepdims(others)) : x;
        variance = others.n ? dvt_mean(dvt_square(dvt_sub(x, mean)), dvt_keepdims(others))
                            : dvt_zeros_like(x);
    } else {
        mean = dvti_along(dvti_wide_float(in[3]), x, axis);
        variance = dvti_along(dvti_wide_float(in[4]), x, axis);
    }
    y = dvt_mul(dvt_sub(x, mean), dvt_rsqrt(dvt_add_scalar(variance, epsilon)));
    y = dvt_add(dvt_mul(y, dvti_along(in[1], x, axis)), dvti_along(in[2], x, axis));
    y = dvt_as_in_dtype(y, dtype);
    /* The statistics change last, so that a failure above leaves them as they were. An empty batch
       has no statistics. */
    if (y && training && dvt_shape_size(x->shape) > 0 &&
        !dvti_move_running(in + 3, mean, variance, momentum))
        y = NULL;
    return y;
}

/* Returns whether the running statistics suit the kernel. It computes in their dtype, and writes
   them while some of its blocks still read x, gamma and beta. */
static bool dvti_running_suits(dvt_array *const *in, dvt_dtype dtype) {
    int i, k;
    for (i = 3; i < 5; i++) {
        if (in[i]->dtype != (dtype == DVT_F64 ? DVT_F64 : DVT_F32) || !dvt_is_contiguous(in[i]) ||
            (dvt_is_recording() && dvt_has_history(in[i])))
            return false;
        for (k = 0; k < i; k++)
            if (dvti_storages_meet(in[i]->storage, in[k]->storage))
                return false;
    }
    return true;
}

static dvt_array *dvti_batch_norm(dvt_array *const *in, int axis, double momentum, double epsilon) {
    const dvt_dtype dtype = dvt_promote(dvt_promote(in[0]->dtype, in[1]->dtype), in[2]->dtype);
    const bool training = dvt_is_training();
    dvti_attr attr = dvti_attr_none();
    dvt_array *x, *y;
    if (in[0]->shape.ndim < 2 || !dvti_running_suits(in, dtype) ||
        !dvti_norm_is_kernel(DVTI_OP_batch_norm_data, in[0], in[1], in[2])) {
        x = dvti_wide_float(in[0]);
        return x ? dvti_batch_norm_composed(x, in, axis, momentum, epsilon, dtype) : NULL;
    }
    attr.f[0] = epsilon;
    attr.i[0] = training;
    attr.i[4] = axis;
    y = dvti_norm_launch("dvt_batch_norm", DVTI_OP_batch_norm, in, in + 3, &attr, momentum, dtype);
    if (y && training) {
        dvti_written(in[3]);
        dvti_written(in[4]);
    }
    return y;
}

DVT_API dvt_array *dvt_batch_norm(dvt_array *x, dvt_array *gamma, dvt_array *beta,
                                  dvt_array *running_mean, dvt_array *running_var, int axis,
                                  double momentum, double epsilon) {
    dvt_array *in[5], *y;
    dvt_scope_guard scope;
    in[0] = x;
    in[1] = gamma;
    in[2] = beta;
    in[3] = running_mean;
    in[4] = running_var;
    if (!dvti_check_named("dvt_batch_norm", in, 5, dvti_batch_norm_names) ||
        !dvti_axis("dvt_batch_norm", &axis, x) || !dvti_batch_norm_ok(in, axis))
        return NULL;
    if (!(momentum >= 0 && momentum <= 1) || !(epsilon >= 0)) {
        dvti_fail(DVT_ERR_RANGE,
                  "dvt_batch_norm: momentum %g and epsilon %g; expected 0 to 1, and 0 or more",
                  momentum, epsilon);
        return NULL;
    }
    if (dvt_is_training() && !dvti_running_ok(in))
        return NULL;
    scope = dvt_scope_begin();
    y = dvti_batch_norm(in, axis, momentum, epsilon);
    dvt_keep(y);
    dvt_scope_end(&scope);
    return y;
}
