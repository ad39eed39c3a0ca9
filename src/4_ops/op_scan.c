/* Cumulative sums along an axis. A node's attr.i[0] is the axis, not negative; i[1] is
   `backwards`. */
#include "4_ops/dvt_op.h"

/* Returns a contiguous array as (A, N, B) around its axis. */
static dvti_view dvti_scan_view(const dvt_array *x, int axis) {
    dvti_view view = dvti_view_of(x);
    view.ndim = 3;
    view.dim[0] = dvti_extents(x->shape.dim, axis);
    view.dim[1] = x->shape.dim[axis];
    view.dim[2] = dvti_extents(x->shape.dim + axis + 1, x->shape.ndim - axis - 1);
    view.stride[2] = 1;
    view.stride[1] = view.dim[2];
    view.stride[0] = view.dim[1] * view.dim[2];
    return view;
}

static bool dvti_scan_run(const char *name, dvt_array *packed, dvt_array *out, int axis,
                          bool backwards) {
    dvti_launch launch;
    dvti_launch_begin(&launch, name, dvti_kernel_scan(), DVTI_OP_cumsum);
    if (dvt_size(out) == 0)
        return true;
    launch.in[0] = dvti_scan_view(packed, axis);
    launch.out[0] = dvti_scan_view(out, axis);
    launch.n_in = launch.n_out = 1;
    launch.i[0] = backwards;
    launch.compute = dvt_dtype_is_float(out->dtype) ? DVTI_F64 : DVTI_I64;
    return dvti_run(out->storage->device, &launch) == DVT_OK;
}

DVTI_FN dvt_array *dvti_cumsum(dvt_array *x, int axis, bool backwards) {
    static const char name[] = "dvt_cumsum";
    dvti_attr attr = dvti_attr_none();
    dvt_array *packed = NULL, *out = NULL;
    dvt_scope_guard scope;
    if (!dvti_check(name, &x, 1))
        return NULL;
    scope = dvt_scope_begin();
    DVT_PAUSE {
        packed = dvt_contiguous(x);
    }
    if (packed)
        out = dvti_array_new(name, x->shape, dvt_dtype_is_float(x->dtype) ? x->dtype : DVT_I64,
                             x->storage->ctx);
    if (out && !dvti_scan_run(name, packed, out, axis, backwards))
        out = NULL;
    attr.i[0] = axis;
    attr.i[1] = backwards;
    out = dvti_finish(out, DVTI_OP_cumsum, name, &x, 1, &attr);
    dvt_keep(out);
    dvt_scope_end(&scope);
    return out;
}

DVT_API dvt_array *dvt_cumsum(dvt_array *x, int axis) {
    if (!dvti_check("dvt_cumsum", &x, 1) || !dvti_axis("dvt_cumsum", &axis, x))
        return NULL;
    return dvti_cumsum(x, axis, false);
}
