/* Normalization over axes of each sample: LayerNorm, RMSNorm, GroupNorm, InstanceNorm. Sums of
   squares exceed float16's range at deviations of 256, so 16-bit floats are computed in float32 and
   rounded once. Batch normalization is in op_layers.c. */
#include "4_ops/dvt_op.h"

/* Checks the arguments x, gamma and beta. The last two may be NULL and have the extent of x's
   `axis`: 1, or -1 for the last one. Stores the result's dtype. */
static bool dvti_norm_ok(const char *name, dvt_array *const *in, int n_in, int axis, double epsilon,
                         dvt_dtype *dtype) {
    static const char *const names[] = {"x", "gamma", "beta"};
    const char *given_names[3];
    dvt_array *x = in[0], *given[3];
    int n = 0, i, least = axis < 0 ? 1 : 2;
    for (i = 0; i < n_in; i++)
        if (in[i] || i == 0) {
            given[n] = in[i];
            given_names[n++] = names[i];
        }
    if (!dvti_check_named(name, given, n, given_names))
        return false;
    for (i = 1; i < n_in; i++)
        if (!dvti_optional(name, names[i], in[i]))
            return false;
    if (x->shape.ndim < least || !(epsilon >= 0)) {
        dvti_fail(x->shape.ndim < least ? DVT_ERR_SHAPE : DVT_ERR_RANGE,
                  "%s: x is %s and epsilon %g; expected %s, and 0 or more", name, dvti_describe(x),
                  epsilon, axis < 0 ? "at least one axis" : "(batch, channels, ...)");
        return false;
    }
    *dtype = dvti_float_dtype(x->dtype);
    if (axis < 0)
        axis += x->shape.ndim;
    for (i = 1; i < n; i++) {
        if (given[i]->shape.ndim != 1 || given[i]->shape.dim[0] != x->shape.dim[axis]) {
            dvti_fail(DVT_ERR_SHAPE,
                      "%s: %s is %s; expected shape (%lld,), the extent of %s of x (%s)", name,
                      given_names[i], dvti_describe(given[i]), (long long)x->shape.dim[axis],
                      least == 1 ? "the last axis" : "axis 1", dvti_describe(x));
            return false;
        }
        *dtype = dvt_promote(*dtype, given[i]->dtype);
    }
    return true;
}

/* Replaces 16-bit inputs by float32. Returns false with the error set. */
static bool dvti_norm_widen(dvt_array **in) {
    int i;
    for (i = 0; i < 3; i++)
        if (in[i] && !(in[i] = dvti_wide_float(in[i])))
            return false;
    return true;
}

/* Returns whether one launch gives the bits of the separate operations where none is recorded, as
   on cpu(). Longer rows are summed in several passes, which it does not do. */
static bool dvti_layer_norm_is_fusible(dvt_array *const *in) {
    const dvt_array *x = in[0];
    return dvti_fusible(x, in[1], in[2]) &&
           dvti_supports(x->storage->device, dvti_kernel_layer_norm(), DVTI_OP_layer_norm, x->dtype,
                         DVTI_CAN_RUN) &&
           x->shape.dim[x->shape.ndim - 1] <= 32768;
}

/* Normalizes x = in[0] over the last axis, with in[1] gamma and in[2] beta, or NULL. rms: by the
   mean square alone. dtype: of the result. */
static dvt_array *dvti_layer_norm_of(const char *name, dvt_array *const *inputs, bool rms,
                                     double epsilon, dvt_dtype dtype) {
    dvt_array *in[3], *y, *variance;
    memcpy(in, inputs, sizeof in);
    if (dvti_norm_is_kernel(DVTI_OP_layer_norm_data, in[0], in[1], in[2]) ||
        (!rms && dvti_layer_norm_is_fusible(in))) {
        dvti_attr attr = dvti_attr_none();
        attr.f[0] = epsilon;
        attr.i[0] = rms;
        return dvti_norm_launch(name, DVTI_OP_layer_norm, in, NULL, &attr, 0, dtype);
    }
    if (!dvti_norm_widen(in))
        return NULL;
    if (!rms && dvti_layer_norm_is_fusible(in))
        return dvt_as_in_dtype(dvti_layer_norm_of(name, in, rms, epsilon, in[0]->dtype), dtype);
    y = rms ? in[0] : dvt_sub(in[0], dvt_mean(in[0], DVT_KEEPDIMS(-1)));
    variance = dvt_mean(dvt_square(y), DVT_KEEPDIMS(-1));
    y = dvt_mul(y, dvt_rsqrt(dvt_add_scalar(variance, epsilon)));
    if (in[1])
        y = dvt_mul(y, in[1]);
    return dvt_as_in_dtype(in[2] ? dvt_add(y, in[2]) : y, dtype);
}

DVT_API dvt_array *dvt_layer_norm(dvt_array *x, dvt_array *gamma, dvt_array *beta, double epsilon) {
    dvt_array *in[3], *y;
    dvt_scope_guard scope;
    dvt_dtype dtype;
    in[0] = x;
    in[1] = gamma;
    in[2] = beta;
    if (!dvti_norm_ok("dvt_layer_norm", in, 3, -1, epsilon, &dtype))
        return NULL;
    scope = dvt_scope_begin();
    y = dvti_layer_norm_of("dvt_layer_norm", in, false, epsilon, dtype);
    dvt_keep(y);
    dvt_scope_end(&scope);
    return y;
}

DVT_API dvt_array *dvt_rms_norm(dvt_array *x, dvt_array *gamma, double epsilon) {
    dvt_array *in[3], *y;
    dvt_scope_guard scope;
    dvt_dtype dtype;
    in[0] = x;
    in[1] = gamma;
    in[2] = NULL;
    if (!dvti_norm_ok("dvt_rms_norm", in, 2, -1, epsilon, &dtype))
        return NULL;
    scope = dvt_scope_begin();
    y = dvti_layer_norm_of("dvt_rms_norm", in, true, epsilon, dtype);
    dvt_keep(y);
    dvt_scope_end(&scope);
    return y;
}

/* Normalizes the rows of x as (batch, groups, the rest). */
static dvt_array *dvti_group_norm_of(const char *name, dvt_array *const *in, int64_t groups,
                                     double epsilon) {
    dvt_array *x = in[0], *rows_of[3], *y;
    int64_t batch = x->shape.dim[0], rows = batch * groups;
    rows_of[0] = dvt_reshape(x, DVT_SHAPE(batch, groups, rows ? dvt_size(x) / rows : 0));
    rows_of[1] = rows_of[2] = NULL;
    if (!rows_of[0])
        return NULL;
    y = dvti_layer_norm_of(name, rows_of, false, epsilon, dvti_float_dtype(x->dtype));
    y = y ? dvt_reshape(y, x->shape) : NULL;
    if (y && in[1])
        y = dvt_mul(y, dvti_along(in[1], x, 1));
    return y && in[2] ? dvt_add(y, dvti_along(in[2], x, 1)) : y;
}

/* groups is 0 for one group per channel. */
static dvt_array *dvti_group_norm(const char *name, dvt_array *x, int64_t groups, dvt_array *gamma,
                                  dvt_array *beta, double epsilon) {
    dvt_array *in[3], *y = NULL;
    dvt_scope_guard scope;
    dvt_dtype dtype;
    in[0] = x;
    in[1] = gamma;
    in[2] = beta;
    if (!dvti_norm_ok(name, in, 3, 1, epsilon, &dtype))
        return NULL;
    if (!groups)
        groups = x->shape.dim[1] ? x->shape.dim[1] : 1;
    if (groups < 1 || x->shape.dim[1] % groups) {
        dvti_fail(groups < 1 ? DVT_ERR_RANGE : DVT_ERR_SHAPE,
                  "%s: %lld groups for x (%s); expected a divisor of its %lld channels, on axis 1",
                  name, (long long)groups, dvti_describe(x), (long long)x->shape.dim[1]);
        return NULL;
    }
    scope = dvt_scope_begin();
    if (dvti_norm_widen(in))
        y = dvt_as_in_dtype(dvti_group_norm_of(name, in, groups, epsilon), dtype);
    dvt_keep(y);
    dvt_scope_end(&scope);
    return y;
}

DVT_API dvt_array *dvt_group_norm(dvt_array *x, int groups, dvt_array *gamma, dvt_array *beta,
                                  double epsilon) {
    return dvti_group_norm("dvt_group_norm", x, groups ? groups : -1, gamma, beta, epsilon);
}

DVT_API dvt_array *dvt_instance_norm(dvt_array *x, dvt_array *gamma, dvt_array *beta,
                                     double epsilon) {
    return dvti_group_norm("dvt_instance_norm", x, 0, gamma, beta, epsilon);
}
