/* Sorting along an axis. Where a gradient will be asked for, a sorted array is recorded as what it is: its elements taken by index, so it
   has no gradient of its own. */
#include "4_ops/dvt_op.h"

/* Rows along the last axis, which is exchanged with the wanted one and back. Nothing is recorded. */
static dvt_array *dvti_sort_rows(const char *name, dvti_op op, dvt_array *x, int axis,
                                 bool descending) {
    dvti_launch launch;
    int last = x->shape.ndim - 1;
    dvt_array *rows = dvt_contiguous(axis == last ? x : dvt_swapaxes(x, axis, last)), *out;
    if (!rows)
        return NULL;
    dvti_launch_begin(&launch, name, DVTI_K_SORT, op);
    out = dvti_array_new(name, rows->shape, op == DVTI_OP_argsort ? DVT_I64 : x->dtype,
                         x->storage->ctx);
    if (!out || dvt_size(out) == 0)
        return out && axis != last ? dvt_swapaxes(out, axis, last) : out;
    launch.in[0] = dvti_view_of(rows);
    launch.out[0] = dvti_view_of(out);
    launch.in[0].ndim = launch.out[0].ndim = 2;
    launch.in[0].dim[1] = rows->shape.dim[last];
    launch.in[0].dim[0] = dvti_extents(rows->shape.dim, last);
    launch.in[0].stride[0] = launch.in[0].dim[1];
    launch.in[0].stride[1] = 1;
    memcpy(launch.out[0].dim, launch.in[0].dim, sizeof launch.in[0].dim);
    memcpy(launch.out[0].stride, launch.in[0].stride, sizeof launch.in[0].stride);
    launch.n_in = launch.n_out = 1;
    launch.i[0] = descending;
    launch.compute = dvti_class_of(x->dtype);
    if (dvti_run(out->storage->device, &launch) != DVT_OK)
        return NULL;
    return axis == last ? out : dvt_contiguous(dvt_swapaxes(out, axis, last));
}

static dvt_array *dvti_sorted(const char *name, dvti_op op, dvt_array *x, int axis,
                              bool descending) {
    dvt_array *out = NULL;
    dvt_scope_guard scope = dvt_scope_begin();
    DVT_PAUSE {
        out = dvti_sort_rows(name, op, x, axis, descending);
    }
    dvt_keep(out);
    dvt_scope_end(&scope);
    return out;
}

DVT_API dvt_array *dvt_argsort(dvt_array *x, int axis, bool descending) {
    static const char name[] = "dvt_argsort";
    if (!dvti_check(name, &x, 1) || !dvti_axis(name, &axis, x->shape.ndim))
        return NULL;
    return dvti_sorted(name, DVTI_OP_argsort, x, axis, descending);
}

DVT_API dvt_array *dvt_sort(dvt_array *x, int axis, bool descending) {
    static const char name[] = "dvt_sort";
    dvt_array *index, *out = NULL;
    dvt_scope_guard scope;
    if (!dvti_check(name, &x, 1) || !dvti_axis(name, &axis, x->shape.ndim))
        return NULL;
    if (!dvt_is_recording() || !dvt_has_history(x) || !dvt_dtype_is_float(x->dtype))
        return dvti_sorted(name, DVTI_OP_sort, x, axis, descending);
    scope = dvt_scope_begin();
    index = dvti_sorted(name, DVTI_OP_argsort, x, axis, descending);
    if (index)
        out = dvti_take_along_of(name, x, index, axis);
    dvt_keep(out);
    dvt_scope_end(&scope);
    return out;
}
