/* Transforms of samples before batching: pixels to floats, normalization, one-hot labels, chains,
   user functions. They consist of public operations and run on the sample's context. */
#include "7_train/dvt_train_internal.h"

static void dvti_transform_destroy(void *object) {
    dvt_transform *transform = (dvt_transform *)object;
    int i;
    for (i = 0; transform->part && i < transform->n; i++)
        dvti_disown(transform->part[i]);
    dvti_free(transform->part);
    dvti_free(transform->mean);
    dvti_free(transform->deviation);
    dvti_free(transform);
}

DVTI_FN dvt_transform *dvti_transform_new(const char *function, dvti_transform_kind kind, int n) {
    dvt_transform *transform = (dvt_transform *)dvti_alloc_zero(sizeof *transform);
    size_t count = (size_t)DVTI_MAX(n, 1);
    bool ok = transform != NULL;
    if (ok && kind == DVTI_TRANSFORM_NORMALIZE) {
        transform->mean = (double *)dvti_alloc_zero(count * sizeof(double));
        transform->deviation = (double *)dvti_alloc_zero(count * sizeof(double));
        ok = transform->mean && transform->deviation;
    }
    if (ok && kind == DVTI_TRANSFORM_COMPOSE) {
        transform->part = (dvt_transform **)dvti_alloc_zero(count * sizeof *transform->part);
        ok = transform->part != NULL;
    }
    if (!ok)
        dvti_fail_memory(function, (int64_t)(count * sizeof(double)));
    if (!ok || !dvti_object_begin(transform, dvti_transform_destroy, function)) {
        if (transform)
            dvti_transform_destroy(transform);
        return NULL;
    }
    transform->kind = kind;
    transform->n = n;
    return transform;
}

DVT_API dvt_transform *dvt_transform_to_tensor(void) {
    return dvti_transform_new("dvt_transform_to_tensor", DVTI_TRANSFORM_TO_TENSOR, 0);
}

DVT_API dvt_transform *dvt_transform_normalize(const double *mean, const double *deviation, int n) {
    dvt_transform *transform;
    int i;
    if (!mean || !deviation) {
        dvti_null("dvt_transform_normalize", mean ? "deviation" : "mean");
        return NULL;
    }
    if (n < 1) {
        dvti_fail(DVT_ERR_RANGE,
                  "dvt_transform_normalize: n is %d; expected one value per channel, or 1", n);
        return NULL;
    }
    for (i = 0; i < n; i++)
        if (!(fabs(mean[i]) <= DBL_MAX) || !(deviation[i] > 0 && deviation[i] <= DBL_MAX)) {
            dvti_fail(DVT_ERR_RANGE,
                      "dvt_transform_normalize: mean %g and deviation %g of channel %d; expected a "
                      "finite "
                      "mean and a positive, finite deviation",
                      mean[i], deviation[i], i);
            return NULL;
        }
    transform = dvti_transform_new("dvt_transform_normalize", DVTI_TRANSFORM_NORMALIZE, n);
    for (i = 0; transform && i < n; i++) {
        transform->mean[i] = mean[i];
        transform->deviation[i] = deviation[i];
    }
    return transform;
}

DVT_API dvt_transform *dvt_transform_compose(dvt_transform *const *transforms, int n) {
    dvt_transform *transform;
    int i, nested = 0;
    if (n < 0) {
        dvti_fail(DVT_ERR_RANGE, "dvt_transform_compose: n is %d; expected 0 or more", n);
        return NULL;
    }
    for (i = 0; i < n; i++)
        if (!transforms || !transforms[i]) {
            dvti_null("dvt_transform_compose", transforms ? "one of the transforms" : "transforms");
            return NULL;
        }
    for (i = 0; i < n; i++)
        nested = DVTI_MAX(nested, transforms[i]->nested + 1);
    if (nested > DVTI_MOST_NESTED) {
        dvti_fail(DVT_ERR_VALUE,
                  "dvt_transform_compose: transforms would be nested more than %d deep; expected "
                  "fewer: give "
                  "all of them in one call",
                  DVTI_MOST_NESTED);
        return NULL;
    }
    transform = dvti_transform_new("dvt_transform_compose", DVTI_TRANSFORM_COMPOSE, n);
    if (transform)
        transform->nested = nested;
    for (i = 0; transform && i < n; i++)
        transform->part[i] = (dvt_transform *)dvti_own(transforms[i]);
    return transform;
}

DVT_API dvt_transform *dvt_transform_new(dvt_array *(*apply)(void *user, dvt_array *x),
                                         void *user) {
    dvt_transform *transform;
    if (!apply) {
        dvti_null("dvt_transform_new", "apply");
        return NULL;
    }
    transform = dvti_transform_new("dvt_transform_new", DVTI_TRANSFORM_CUSTOM, 0);
    if (transform) {
        transform->apply = apply;
        transform->user = user;
    }
    return transform;
}

DVT_API dvt_transform *dvt_transform_one_hot(int64_t classes) {
    dvt_transform *transform;
    if (classes < 1) {
        dvti_fail(DVT_ERR_RANGE, "dvt_transform_one_hot: classes is %lld; expected at least 1",
                  (long long)classes);
        return NULL;
    }
    transform = dvti_transform_new("dvt_transform_one_hot", DVTI_TRANSFORM_ONE_HOT, 0);
    if (transform)
        transform->extent[0] = classes;
    return transform;
}

/* ---- applying ---- */
/* Converts (H, W, C), or a stack of such, with the channels moved to the front. */
static dvt_array *dvti_to_tensor(dvt_array *x) {
    dvt_array *planes;
    if (x->dtype != DVT_U8) {
        dvti_fail(DVT_ERR_DTYPE, "dvt_transform_to_tensor: x is %s; expected uint8 pixels",
                  dvti_describe(x));
        return NULL;
    }
    if (x->shape.ndim != 3 && x->shape.ndim != 4) {
        dvti_fail(DVT_ERR_SHAPE,
                  "dvt_transform_to_tensor: x is %s; expected (height, width, channels), or "
                  "several such as "
                  "(N, height, width, channels)",
                  dvti_describe(x));
        return NULL;
    }
    planes = x->shape.ndim == 3 ? dvt_transpose(x, DVT_AXES(2, 0, 1))
                                : dvt_transpose(x, DVT_AXES(0, 3, 1, 2));
    return dvt_div_scalar(planes, 255);
}

/* Returns one value per channel as an array that broadcasts along height and width. */
static dvt_array *dvti_per_channel(const double *values, int n, dvt_array *x) {
    return dvt_as_in_ctx(
        dvt_as_in_dtype(dvt_from_host(values, DVT_SHAPE(n, 1, 1), DVT_F64, dvt_cpu()), x->dtype),
        x->storage->ctx);
}

static dvt_array *dvti_normalize(const dvt_transform *t, dvt_array *x) {
    int channel = x->shape.ndim - 3;
    if (!dvt_dtype_is_float(x->dtype)) {
        dvti_fail(DVT_ERR_DTYPE,
                  "dvt_transform_normalize: x is %s; expected floats: apply "
                  "dvt_transform_to_tensor first",
                  dvti_describe(x));
        return NULL;
    }
    if (channel < 0 || (t->n > 1 && x->shape.dim[channel] != t->n)) {
        dvti_fail(
            DVT_ERR_SHAPE,
            "dvt_transform_normalize: x is %s and there are %d means; expected (channels, height, "
            "width) and one mean, or one per channel",
            dvti_describe(x), t->n);
        return NULL;
    }
    if (t->n == 1)
        return dvt_div_scalar(dvt_sub_scalar(x, t->mean[0]), t->deviation[0]);
    return dvt_div(dvt_sub(x, dvti_per_channel(t->mean, t->n, x)),
                   dvti_per_channel(t->deviation, t->n, x));
}

static dvt_array *dvti_transform_run(dvt_transform *t, dvt_array *x) {
    dvt_array *y = x;
    int i;
    switch (t->kind) {
    case DVTI_TRANSFORM_TO_TENSOR:
        return dvti_to_tensor(x);
    case DVTI_TRANSFORM_NORMALIZE:
        return dvti_normalize(t, x);
    case DVTI_TRANSFORM_COMPOSE:
        for (i = 0; y && i < t->n; i++)
            y = dvti_transform_run(t->part[i], y);
        return y;
    case DVTI_TRANSFORM_ONE_HOT:
        return dvt_one_hot(x, t->extent[0], DVT_F32);
    case DVTI_TRANSFORM_CUSTOM:
        y = t->apply(t->user, x);
        if (!y && dvt_error_code() == DVT_OK)
            dvti_fail(DVT_ERR_VALUE,
                      "dvt_transform_apply: the function given to dvt_transform_new returned NULL "
                      "for x (%s) without an error; expected an array",
                      dvti_describe(x));
        return y;
    default:
        return dvti_transform_image(t, x);
    }
}

static DVTI_TLS dvti_nesting dvti_applications;

DVT_API dvt_array *dvt_transform_apply(dvt_transform *transform, dvt_array *x) {
    dvt_scope_guard scope;
    dvt_array *y;
    int depth;
    if (!transform || !x) {
        dvti_null("dvt_transform_apply", transform ? "x" : "transform");
        return NULL;
    }
    depth = dvti_nesting_enter(&dvti_applications);
    if (depth < 0) {
        dvti_fail(DVT_ERR_VALUE,
                  "dvt_transform_apply: it runs inside itself more than %d deep; expected fewer: "
                  "does a function given to dvt_transform_new apply its own transform?",
                  DVTI_MOST_NESTED);
        return NULL;
    }
    scope = dvt_scope_begin();
    y = (dvt_array *)dvt_keep(dvti_transform_run(transform, x));
    dvt_scope_end(&scope);
    dvti_nesting_leave(&dvti_applications, depth);
    return y;
}

DVTI_FN bool dvti_transform_by_pixel(const dvt_transform *transform, bool *as_tensor) {
    int i;
    switch (transform->kind) {
    case DVTI_TRANSFORM_TO_TENSOR:
        if (*as_tensor)
            return false;
        *as_tensor = true;
        return true;
    case DVTI_TRANSFORM_NORMALIZE:
        return *as_tensor;
    case DVTI_TRANSFORM_COMPOSE:
        for (i = 0; i < transform->n; i++)
            if (!dvti_transform_by_pixel(transform->part[i], as_tensor))
                return false;
        return true;
    default:
        return false;
    }
}
