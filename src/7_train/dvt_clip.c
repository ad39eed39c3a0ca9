/* Clipping by the common norm of several arrays, on any contexts. Source: Pascanu, Mikolov and
   Bengio, 2013. */
#include "1_base/dvt_float_mode.h"
#include "7_train/dvt_train_internal.h"

/* Returns the norms of the arrays on ctx, as float64 on ctx, or NULL with the error set. */
static dvt_array *dvti_norms_on(dvt_array *const *arrays, int n, dvt_ctx ctx, dvt_array **norm,
                                int *count) {
    int i;
    *count = 0;
    for (i = 0; i < n; i++)
        if (dvt_ctx_equal(arrays[i]->storage->ctx, ctx)) {
            /* The largest float16 is 65504, less than the norms of many gradients. */
            dvt_dtype wide = arrays[i]->dtype == DVT_F64 ? DVT_F64 : DVT_F32;
            norm[*count] =
                dvt_as_in_dtype(dvt_norm(dvt_as_in_dtype(arrays[i], wide), DVT_ALL), DVT_F64);
            if (!norm[(*count)++])
                return NULL;
        }
    return dvt_stack(norm, *count, 0);
}

/* Sums the squares with one read per context. */
static bool dvti_sum_of_squares(const char *function, dvt_array *const *arrays, int n,
                                dvt_array **norm, double *values, double *sum) {
    int i, k, count;
    *sum = 0;
    for (i = 0; i < n; i++) {
        dvt_array *norms;
        for (k = 0; k < i; k++)
            if (dvt_ctx_equal(arrays[k]->storage->ctx, arrays[i]->storage->ctx))
                break;
        if (k < i)
            continue;
        norms = dvti_norms_on(arrays, n, arrays[i]->storage->ctx, norm, &count);
        if (!norms || dvti_read(function, norms, DVT_F64, values) != DVT_OK)
            return false;
        for (k = 0; k < count; k++)
            *sum += values[k] * values[k];
    }
    return true;
}

DVTI_FN DVTI_NOINLINE bool dvti_global_norm(const char *function, dvt_array *const *arrays, int n,
                                            double max_norm, double *out) {
    size_t count = (size_t)DVTI_MAX(n, 1);
    dvt_array **norm;
    double *values, sum = 0;
    bool ok;
    if (!(max_norm > 0)) {
        dvti_fail(DVT_ERR_RANGE, "%s: max_norm is %g; expected a positive number", function,
                  max_norm);
        return false;
    }
    norm = (dvt_array **)dvti_alloc(count * sizeof *norm);
    values = (double *)dvti_alloc(count * sizeof *values);
    ok = norm && values;
    if (!ok)
        dvti_fail_memory(function, (int64_t)(count * (sizeof *norm + sizeof *values)));
    ok = ok && dvti_sum_of_squares(function, arrays, n, norm, values, &sum);
    if (ok)
        *out = sqrt(sum);
    dvti_free(norm);
    dvti_free(values);
    return ok;
}

DVTI_FN DVTI_NOINLINE bool dvti_clip_to_norm(const char *function, dvt_array *const *arrays, int n,
                                             double norm, double max_norm) {
    double scale = max_norm / (norm + 1e-8);
    int i;
    if (!(norm <= DBL_MAX)) {
        dvti_log(DVT_LOG_WARNING,
                 "%s: the norm is %g, so the arrays are left as they are; a NaN or an infinity is "
                 "among their elements",
                 function, norm);
        return true;
    }
    for (i = 0; i < n && norm > max_norm; i++)
        if (!dvt_mul_scalar_(arrays[i], scale))
            return false;
    return true;
}

static bool dvti_clip_check(const char *function, dvt_array *const *arrays, int n) {
    int i;
    if (n < 0 || (n > 0 && !arrays)) {
        if (n < 0)
            dvti_fail(DVT_ERR_RANGE, "%s: n is %d; expected 0 or more", function, n);
        else
            dvti_null(function, "arrays");
        return false;
    }
    for (i = 0; i < n; i++) {
        if (!arrays[i]) {
            dvti_null(function, "one of the arrays");
            return false;
        }
        if (!dvt_dtype_is_float(arrays[i]->dtype)) {
            dvti_fail(DVT_ERR_DTYPE, "%s: array %d is %s; expected floats", function, i,
                      dvti_describe(arrays[i]));
            return false;
        }
        if (!dvti_writable(function, arrays[i]))
            return false;
    }
    return true;
}

DVT_API double dvt_clip_global_norm(dvt_array *const *arrays, int n, double max_norm) {
    static const char *const function = "dvt_clip_global_norm";
    double norm = (double)NAN;
    dvt_record_guard record;
    dvt_scope_guard scope;
    dvti_float_mode mode;
    if (!dvti_clip_check(function, arrays, n))
        return norm;
    record = dvt_record_begin(DVT_OFF, DVT_UNCHANGED);
    scope = dvt_scope_begin();
    mode = dvti_float_mode_begin();
    if (!dvti_global_norm(function, arrays, n, max_norm, &norm) ||
        !dvti_clip_to_norm(function, arrays, n, norm, max_norm))
        norm = (double)NAN;
    dvti_float_mode_end(&mode);
    dvt_scope_end(&scope);
    dvt_record_end(&record);
    return norm;
}
