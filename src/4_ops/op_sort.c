/* Sorting along an axis, and the first k elements. When a gradient will be needed, a sorted array
   is recorded as its elements taken by index. So sort has no gradient of its own. topk always does
   so, because its index is small. */
#include "4_ops/dvt_op.h"

/* Sorts rows along the last axis and returns k results of each. The wanted axis is swapped with the
   last one, and back. Nothing is recorded. */
static dvt_array *dvti_sort_rows(const char *name, dvti_op op, dvt_array *x, int64_t k, int axis,
                                 bool descending) {
    dvti_launch launch;
    int last = x->shape.ndim - 1;
    dvt_shape shape;
    dvt_array *rows = dvt_contiguous(axis == last ? x : dvt_swapaxes(x, axis, last)), *out;
    if (!rows)
        return NULL;
    dvti_launch_begin(&launch, name, dvti_kernel_sort(), op);
    shape = rows->shape;
    shape.dim[last] = k;
    out = dvti_array_new(name, shape, op == DVTI_OP_sort ? x->dtype : DVT_I64, x->storage->ctx);
    if (!out || dvt_size(out) == 0)
        return out && axis != last ? dvt_swapaxes(out, axis, last) : out;
    dvti_view_into(&launch.in[0], rows);
    dvti_view_into(&launch.out[0], out);
    launch.in[0].ndim = launch.out[0].ndim = 2;
    launch.in[0].dim[1] = rows->shape.dim[last];
    launch.in[0].dim[0] = dvti_extents(rows->shape.dim, last);
    launch.in[0].stride[0] = launch.in[0].dim[1];
    launch.in[0].stride[1] = 1;
    launch.out[0].dim[0] = launch.in[0].dim[0];
    launch.out[0].dim[1] = launch.out[0].stride[0] = k;
    launch.out[0].stride[1] = 1;
    launch.n_in = launch.n_out = 1;
    launch.i[0] = descending;
    launch.compute = dvti_class_of(x->dtype);
    if (dvti_run(out->storage->device, &launch) != DVT_OK)
        return NULL;
    return axis == last ? out : dvt_contiguous(dvt_swapaxes(out, axis, last));
}

static dvt_array *dvti_sorted(const char *name, dvti_op op, dvt_array *x, int64_t k, int axis,
                              bool descending) {
    dvt_array *out = NULL;
    dvt_scope_guard scope = dvt_scope_begin();
    DVT_PAUSE {
        out = dvti_sort_rows(name, op, x, k, axis, descending);
    }
    dvt_keep(out);
    dvt_scope_end(&scope);
    return out;
}

DVT_API dvt_array *dvt_argsort(dvt_array *x, int axis, dvt_order order) {
    static const char name[] = "dvt_argsort";
    if (!dvti_check(name, &x, 1) || !dvti_axis(name, &axis, x) ||
        !dvti_choice(name, "order", (int)order, "DVT_ASCENDING", "DVT_DESCENDING"))
        return NULL;
    return dvti_sorted(name, DVTI_OP_argsort, x, x->shape.dim[axis], axis, order == DVT_DESCENDING);
}

DVT_API dvt_array *dvt_sort(dvt_array *x, int axis, dvt_order order) {
    static const char name[] = "dvt_sort";
    dvt_array *index, *out = NULL;
    dvt_scope_guard scope;
    if (!dvti_check(name, &x, 1) || !dvti_axis(name, &axis, x) ||
        !dvti_choice(name, "order", (int)order, "DVT_ASCENDING", "DVT_DESCENDING"))
        return NULL;
    if (!dvt_is_recording() || !dvt_has_history(x) || !dvt_dtype_is_float(x->dtype))
        return dvti_sorted(name, DVTI_OP_sort, x, x->shape.dim[axis], axis,
                           order == DVT_DESCENDING);
    scope = dvt_scope_begin();
    index =
        dvti_sorted(name, DVTI_OP_argsort, x, x->shape.dim[axis], axis, order == DVT_DESCENDING);
    if (index)
        out = dvti_take_along_of(name, x, index, axis);
    dvt_keep(out);
    dvt_scope_end(&scope);
    return out;
}

DVT_API dvt_array *dvt_topk(dvt_array *x, int64_t k, int axis, dvt_extreme extreme,
                            dvt_array **indices) {
    static const char name[] = "dvt_topk";
    dvt_array *index, *out = NULL;
    dvt_scope_guard scope;
    if (indices)
        *indices = NULL;
    if (!dvti_check(name, &x, 1) || !dvti_axis(name, &axis, x) ||
        !dvti_choice(name, "extreme", (int)extreme, "DVT_LARGEST", "DVT_SMALLEST"))
        return NULL;
    if (k < 0 || k > x->shape.dim[axis]) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: k is %lld for axis %d of x (%s); expected %s, the number of elements there: "
                  "ask for fewer, or for another axis",
                  name, (long long)k, axis, dvti_describe(x),
                  dvti_range_text(0, x->shape.dim[axis]));
        return NULL;
    }
    scope = dvt_scope_begin();
    index = dvti_sorted(name, DVTI_OP_topk, x, k, axis, extreme == DVT_LARGEST);
    if (index)
        out = dvti_take_along_of(name, x, index, axis);
    dvt_keep(out);
    if (out && indices) {
        dvt_keep(index);
        *indices = index;
    }
    dvt_scope_end(&scope);
    return out;
}
