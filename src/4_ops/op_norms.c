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

/* Normalizes in one launch, with the same bits as the separate operations. */
static dvt_array *dvti_layer_norm_fused(dvt_array *x, dvt_array *gamma, dvt_array *beta,
                                        double epsilon) {
    dvti_launch launch;
    dvt_array *out = dvti_array_new("dvt_layer_norm", x->shape, DVT_F32, x->storage->ctx);
    if (!out)
        return NULL;
    dvti_launch_begin(&launch, "dvt_layer_norm", dvti_kernel_layer_norm(), DVTI_OP_layer_norm);
    dvti_clear(&launch.in[1], 2 * sizeof launch.in[1]); /* a cleared view means NULL */
    launch.compute = DVTI_F32;
    launch.n_in = 3;
    launch.n_out = 1;
    launch.in[0] = dvti_view_of(x);
    if (gamma)
        launch.in[1] = dvti_view_of(gamma);
    if (beta)
        launch.in[2] = dvti_view_of(beta);
    launch.out[0] = dvti_view_of(out);
    launch.f[0] = epsilon;
    return dvti_run(out->storage->device, &launch) == DVT_OK ? out : NULL;
}

/* Normalizes x of float32 or wider, or of integers. gamma and beta are float32 or wider, or
   NULL. */
static dvt_array *dvti_layer_norm_of(dvt_array *x, dvt_array *gamma, dvt_array *beta,
                                     double epsilon) {
    dvt_array *mean, *centered, *variance, *y;
    /* Longer rows are summed in several passes, which the single launch does not do. */
    if (dvti_fusible(x, gamma, beta) &&
        dvti_supports(x->storage->device, dvti_kernel_layer_norm(), DVTI_OP_layer_norm, x->dtype,
                      DVTI_CAN_RUN) &&
        x->shape.dim[x->shape.ndim - 1] <= 32768)
        return dvti_layer_norm_fused(x, gamma, beta, epsilon);
    mean = dvt_mean(x, DVT_KEEPDIMS(-1));
    centered = dvt_sub(x, mean);
    variance = dvt_mean(dvt_square(centered), DVT_KEEPDIMS(-1));
    y = dvt_mul(centered, dvt_rsqrt(dvt_add_scalar(variance, epsilon)));
    if (gamma)
        y = dvt_mul(y, gamma);
    return beta ? dvt_add(y, beta) : y;
}

DVT_API dvt_array *dvt_layer_norm(dvt_array *x, dvt_array *gamma, dvt_array *beta, double epsilon) {
    dvt_array *in[3], *y = NULL;
    dvt_scope_guard scope;
    dvt_dtype dtype;
    in[0] = x;
    in[1] = gamma;
    in[2] = beta;
    if (!dvti_norm_ok("dvt_layer_norm", in, 3, -1, epsilon, &dtype))
        return NULL;
    scope = dvt_scope_begin();
    if (dvti_norm_widen(in))
        y = dvt_as_in_dtype(dvti_layer_norm_of(in[0], in[1], in[2], epsilon), dtype);
    dvt_keep(y);
    dvt_scope_end(&scope);
    return y;
}

DVT_API dvt_array *dvt_rms_norm(dvt_array *x, dvt_array *gamma, double epsilon) {
    dvt_array *in[3], *y = NULL;
    dvt_scope_guard scope;
    dvt_dtype dtype;
    in[0] = x;
    in[1] = gamma;
    in[2] = NULL;
    if (!dvti_norm_ok("dvt_rms_norm", in, 2, -1, epsilon, &dtype))
        return NULL;
    scope = dvt_scope_begin();
    if (dvti_norm_widen(in)) {
        y = dvt_mean(dvt_square(in[0]), DVT_KEEPDIMS(-1));
        y = dvt_mul(in[0], dvt_rsqrt(dvt_add_scalar(y, epsilon)));
        y = dvt_as_in_dtype(in[1] ? dvt_mul(y, in[1]) : y, dtype);
    }
    dvt_keep(y);
    dvt_scope_end(&scope);
    return y;
}

/* Normalizes the rows of x as (batch, groups, the rest). */
static dvt_array *dvti_group_norm_of(dvt_array *const *in, int64_t groups, double epsilon) {
    dvt_array *x = in[0], *y;
    int64_t batch = x->shape.dim[0], rows = batch * groups;
    y = dvt_reshape(x, DVT_SHAPE(batch, groups, rows ? dvt_size(x) / rows : 0));
    y = y ? dvti_layer_norm_of(y, NULL, NULL, epsilon) : NULL;
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
        y = dvt_as_in_dtype(dvti_group_norm_of(in, groups, epsilon), dtype);
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
