/* Splits a batch into one part per context. Source of the rule for uneven parts: NumPy's
   array_split. */
#include "7_train/dvt_train_internal.h"

static dvt_status dvti_split_check(const char *function, dvt_array *x, const dvt_ctx_list *ctxs,
                                   bool even_split) {
    char list[256];
    if (!x)
        return dvti_null(function, "x");
    if (ctxs->n < 1 || ctxs->n > DVT_MAX_CONTEXTS)
        return dvti_fail(DVT_ERR_RANGE, "%s: %d contexts; expected 1 to %d", function, ctxs->n,
                         DVT_MAX_CONTEXTS);
    if (x->shape.ndim < 1)
        return dvti_fail(DVT_ERR_SHAPE, "%s: x (%s) has no axis that could be cut", function,
                         dvti_describe(x));
    if (!even_split || x->shape.dim[0] % ctxs->n == 0)
        return DVT_OK;
    dvt_ctx_list_format(*ctxs, list, sizeof list);
    return dvti_fail(DVT_ERR_SHAPE,
                     "%s: data with shape %s cannot be evenly split into %d slices along axis 0, "
                     "one for each of %s; use a batch size that is a multiple of %d, or "
                     "dvt_array_split_and_load, which allows uneven parts",
                     function, dvti_shape_text(x->shape), ctxs->n, list, ctxs->n);
}

DVTI_FN dvt_status dvti_split_and_load(const char *function, dvt_array *x, dvt_ctx_list ctxs,
                                       bool even_split, dvt_array **out) {
    dvt_array *part[DVT_MAX_CONTEXTS];
    dvt_status status;
    dvt_scope_guard scope;
    int64_t each, extra, start = 0;
    int i;
    if (!out)
        return dvti_null(function, "out");
    for (i = 0; i < ctxs.n && i < DVT_MAX_CONTEXTS; i++)
        out[i] = NULL;
    status = dvti_split_check(function, x, &ctxs, even_split);
    if (status != DVT_OK)
        return status;
    each = x->shape.dim[0] / ctxs.n;
    extra = x->shape.dim[0] % ctxs.n;
    scope = dvt_scope_begin();
    for (i = 0; i < ctxs.n && status == DVT_OK; i++) {
        int64_t stop = start + each + (i < extra ? 1 : 0);
        dvt_array *rows = ctxs.n == 1 ? x : dvt_rows(x, start, stop);
        part[i] = rows ? dvt_as_in_ctx(rows, ctxs.ctx[i]) : NULL;
        status = part[i] ? DVT_OK : dvti_failure();
        start = stop;
    }
    for (i = 0; i < ctxs.n && status == DVT_OK; i++)
        out[i] = (dvt_array *)dvt_keep(part[i]);
    dvt_scope_end(&scope);
    return status;
}

DVT_API dvt_status dvt_split_and_load(dvt_array *x, dvt_ctx_list ctxs, dvt_array **out) {
    return dvti_split_and_load("dvt_split_and_load", x, ctxs, true, out);
}

DVT_API dvt_status dvt_array_split_and_load(dvt_array *x, dvt_ctx_list ctxs, dvt_array **out) {
    return dvti_split_and_load("dvt_array_split_and_load", x, ctxs, false, out);
}
