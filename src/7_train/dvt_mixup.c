/* Mixup (Zhang, Cisse, Dauphin, Lopez-Paz: mixup: Beyond empirical risk minimization. ICLR 2018):
   every sample of a batch is mixed with another one, and its labels too. */
#include "7_train/dvt_train_internal.h"

/* Draws from the symmetric beta distribution, by the t distribution of 2 alpha degrees of freedom.
   Source: Bailey: Polar generation of random variates with the t-distribution. Mathematics of
   Computation 62, 1994. */
static bool dvti_mixup_share(dvt_key key, double alpha, double *share) {
    dvt_array *uniform = dvt_key_uniform(key, 0, 1, DVT_SHAPE(2), DVT_F64, dvt_cpu());
    const double *u = uniform ? (const double *)dvt_data(uniform) : NULL;
    double t;
    if (!u)
        return false;
    t = sqrt(pow(u[0], -1 / alpha) - 1) * cos(6.283185307179586 * u[1]);
    if (fabs(t) < 1e100)
        *share = 0.5 + t / (2 * sqrt(1 + t * t));
    else
        *share = t > 0 ? 1 : 0;
    return true;
}

static dvt_status dvti_mixup_check(const char *function, dvt_array *x, dvt_array *y, double alpha) {
    if (!x || !y)
        return dvti_null(function, x ? "y" : "x");
    if (!dvt_dtype_is_float(x->dtype))
        return dvti_fail(DVT_ERR_DTYPE,
                         "%s: x is %s; expected floats: apply dvt_transform_to_tensor first",
                         function, dvti_describe(x));
    if (!dvt_dtype_is_float(y->dtype))
        return dvti_fail(DVT_ERR_DTYPE,
                         "%s: y is %s; expected floats: dvt_one_hot(y, classes, DVT_F32) makes "
                         "them of labels",
                         function, dvti_describe(y));
    if (x->shape.ndim < 1 || y->shape.ndim < 1 || x->shape.dim[0] != y->shape.dim[0] ||
        x->shape.dim[0] < 1)
        return dvti_fail(DVT_ERR_SHAPE,
                         "%s: x is %s and y is %s; expected one sample per entry of axis 0, as "
                         "many in both",
                         function, dvti_describe(x), dvti_describe(y));
    if (!(alpha > 0 && alpha <= DBL_MAX))
        return dvti_fail(DVT_ERR_RANGE, "%s: alpha is %g; expected a positive number", function,
                         alpha);
    return DVT_OK;
}

/* Returns share * x + (1 - share) * x[order]. */
static dvt_array *dvti_mix(dvt_array *x, dvt_array *order, double share) {
    return dvt_add(
        dvt_mul_scalar(x, share),
        dvt_mul_scalar(dvt_take(x, dvt_as_in_ctx(order, x->storage->ctx), 0), 1 - share));
}

DVT_API dvt_status dvt_mixup(dvt_array *x, dvt_array *y, double alpha, dvt_key key,
                             dvt_array **mixed_x, dvt_array **mixed_y) {
    static const char *const function = "dvt_mixup";
    dvt_array *order, *images = NULL, *labels = NULL;
    dvt_scope_guard scope;
    dvt_status status;
    double share;
    if (mixed_x)
        *mixed_x = NULL;
    if (mixed_y)
        *mixed_y = NULL;
    status = dvti_mixup_check(function, x, y, alpha);
    if (status != DVT_OK)
        return status;
    if (!mixed_x || !mixed_y)
        return dvti_null(function, mixed_x ? "mixed_y" : "mixed_x");
    scope = dvt_scope_begin();
    order = dvt_key_permutation(dvt_key_fold_in(key, 1), x->shape.dim[0], dvt_cpu());
    if (order && dvti_mixup_share(dvt_key_fold_in(key, 0), alpha, &share)) {
        images = dvti_mix(x, order, share);
        labels = images ? dvti_mix(y, order, share) : NULL;
    }
    if (labels) {
        *mixed_x = (dvt_array *)dvt_keep(images);
        *mixed_y = (dvt_array *)dvt_keep(labels);
    } else
        status = dvti_failure();
    dvt_scope_end(&scope);
    return status;
}
