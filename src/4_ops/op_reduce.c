/* Reductions over axes, and softmax along one. A node's attributes: for reductions i[0] is the bit
   mask of the reduced axes and i[1] is keepdims. For softmax and log_softmax i[0] is the axis, not
   negative. var and std are composed of recorded operations. Results of int64 and bool are never
   recorded. */
#include "1_base/dvt_float_mode.h"
#include "4_ops/dvt_op.h"

/* Returns the result's shape. Without keepdims it has the kept axes only, as the kernel's view
   does. */
static dvt_shape dvti_reduced_shape(dvt_shape x, unsigned mask, bool keepdims) {
    dvt_shape shape = DVT_SCALAR;
    int i;
    for (i = 0; i < x.ndim; i++)
        if (!(mask & 1u << i))
            shape.dim[shape.ndim++] = x.dim[i];
        else if (keepdims)
            shape.dim[shape.ndim++] = 1;
    return shape;
}

/* Sets the view of the result with the kept axes only. */
static void dvti_reduced_view(const dvt_array *out, const dvt_shape *x, unsigned mask,
                              dvti_view *view) {
    const bool keepdims = out->shape.ndim == x->ndim;
    int i, to = 0;
    dvti_view_into(view, out);
    for (i = 0; i < x->ndim; i++)
        if (!(mask >> i & 1u)) {
            view->dim[to] = x->dim[i];
            view->stride[to] = out->stride[keepdims ? i : to];
            to++;
        }
    view->ndim = to;
}

/* Sets the view of x with the kept axes first, then the reduced ones. Returns the number of
   elements per result. */
static int64_t dvti_reduction_view(const dvt_array *x, unsigned mask, dvti_view *view) {
    int pass, i, to = 0, kept = 0;
    dvti_view_into(view, x);
    for (pass = 0; pass < 2; pass++)
        for (i = 0; i < x->shape.ndim; i++)
            if ((int)(mask >> i & 1u) == pass) {
                view->dim[to] = x->shape.dim[i];
                view->stride[to++] = x->stride[i];
                kept += !pass;
            }
    return dvti_extents(view->dim + kept, to - kept);
}

static dvt_dtype dvti_reduction_dtype(dvti_reduce_rule rule, dvt_dtype dtype) {
    switch (rule) {
    case DVTI_RESULT_BOOL:
        return DVT_BOOL;
    case DVTI_RESULT_PLACE:
        return DVT_I64;
    case DVTI_RESULT_SAME:
        return dtype;
    case DVTI_RESULT_SUM:
        return dvt_dtype_is_float(dtype) ? dtype : DVT_I64;
    default:
        return dvti_float_dtype(dtype);
    }
}

/* Runs and records a reduction. mean is NULL, except for the variance. */
static dvt_array *dvti_reduce_mask(const char *name, dvti_op op, dvt_array *x, dvt_array *mean,
                                   unsigned mask, bool keepdims) {
    const dvti_reduce_rule rule = dvti_reduce_row_of(mean ? DVTI_OP_mean : op)->rule;
    dvti_launch launch;
    dvti_attr attr = dvti_attr_none();
    dvt_shape shape = dvti_reduced_shape(x->shape, mask, keepdims);
    int64_t count = dvti_reduction_view(x, mask, &launch.in[0]);
    dvt_array *out;
    dvti_launch_begin(&launch, name, mean ? dvti_kernel_variance() : dvti_kernel_reduce(), op);
    if (count == 0 && (rule == DVTI_RESULT_SAME || rule == DVTI_RESULT_PLACE)) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: x is %s and a reduced axis is empty; an extreme needs elements: "
                  "give at least one",
                  name, dvti_describe(x));
        return NULL;
    }
    out = dvti_array_new(name, shape, dvti_reduction_dtype(rule, x->dtype), x->storage->ctx);
    if (!out)
        return NULL;
    launch.compute = dvti_class_of(x->dtype);
    launch.n_in = launch.n_out = 1;
    dvti_reduced_view(out, &x->shape, mask, &launch.out[0]);
    if (mean) {
        launch.n_in = 2;
        dvti_reduced_view(mean, &x->shape, mask, &launch.in[1]);
    }
    launch.i[0] = launch.out[0].ndim;
    launch.f[0] = (double)count;
    if (dvt_shape_size(shape) > 0 && dvti_run(out->storage->device, &launch) != DVT_OK)
        return NULL;
    attr.i[0] = mask;
    attr.i[1] = keepdims;
    return dvti_finish(out, op, name, &x, 1, &attr);
}

static dvt_array *dvti_reduce(const char *name, dvti_op op, dvt_array *x, dvt_axes axes) {
    unsigned mask;
    if (!dvti_check(name, &x, 1) || !dvti_axes_mask(name, axes, x, &mask))
        return NULL;
    return dvti_reduce_mask(name, op, x, NULL, mask, axes.keepdims);
}

/* Reduces one axis or all of them: a position over several axes is not a single number. */
static dvt_array *dvti_reduce_place(const char *name, dvti_op op, dvt_array *x, dvt_axes axes) {
    if (axes.n > 1 && dvti_check(name, &x, 1)) {
        dvti_fail(DVT_ERR_AXIS,
                  "%s: %d axes for x (%s); expected one, or DVT_ALL for the position in the "
                  "flattened array: join axes with dvt_reshape first",
                  name, axes.n, dvti_describe(x));
        return NULL;
    }
    return dvti_reduce(name, op, x, axes);
}

/* The public functions of all rows. */
#define DVTI_DEFINE_AXES(name)                                                                     \
    DVT_API dvt_array *dvt_##name(dvt_array *x, dvt_axes axes) {                                   \
        return dvti_reduce("dvt_" #name, DVTI_OP_##name, x, axes);                                 \
    }
#define DVTI_DEFINE_SUM(name) DVTI_DEFINE_AXES(name)
#define DVTI_DEFINE_FLOAT(name) DVTI_DEFINE_AXES(name)
#define DVTI_DEFINE_SAME(name) DVTI_DEFINE_AXES(name)
#define DVTI_DEFINE_BOOL(name) DVTI_DEFINE_AXES(name)
#define DVTI_DEFINE_PLACE(name)                                                                    \
    DVT_API dvt_array *dvt_##name(dvt_array *x, dvt_axes axes) {                                   \
        return dvti_reduce_place("dvt_" #name, DVTI_OP_##name, x, axes);                           \
    }
#define DVTI_ROW(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)           \
    DVTI_DEFINE_##rule(name)
DVTI_REDUCE_TABLE(DVTI_ROW)
#undef DVTI_ROW
#undef DVTI_DEFINE_AXES
#undef DVTI_DEFINE_SUM
#undef DVTI_DEFINE_FLOAT
#undef DVTI_DEFINE_SAME
#undef DVTI_DEFINE_BOOL
#undef DVTI_DEFINE_PLACE

/* ---- variance ---- */
DVTI_FN bool dvti_fusible(const dvt_array *x, const dvt_array *y, const dvt_array *z) {
    const dvt_array *in[3];
    int i;
    in[0] = x;
    in[1] = y;
    in[2] = z;
    for (i = 0; i < 3; i++)
        if (in[i] && (in[i]->dtype != x->dtype || !dvt_is_contiguous(in[i]) ||
                      (dvt_is_recording() && dvt_has_history(in[i]))))
            return false;
    return dvt_size(x) > 0;
}

/* Computes the mean of squared distances from the mean, in at least float32: squares soon exceed
   the range of a 16-bit float. A negative divisor counts as 0, as in NumPy. */
static DVTI_NOINLINE dvt_array *dvti_variance_in_mode(const char *name, dvt_array *x, dvt_axes axes,
                                                      double ddof, bool root) {
    dvt_array *out = NULL, *wide, *mean;
    dvt_scope_guard scope;
    dvt_dtype dtype;
    dvti_view view;
    unsigned mask;
    double divisor;
    if (!dvti_check(name, &x, 1) || !dvti_axes_mask(name, axes, x, &mask))
        return NULL;
    if (ddof != ddof) {
        dvti_fail(DVT_ERR_VALUE, "%s: ddof is NaN; expected a number such as 0 or 1", name);
        return NULL;
    }
    scope = dvt_scope_begin();
    dtype = dvti_float_dtype(x->dtype);
    divisor = (double)dvti_reduction_view(x, mask, &view) - ddof;
    wide = dvt_as_in_dtype(x, dtype == DVT_F64 ? DVT_F64 : DVT_F32);
    mean = dvt_mean(wide, dvt_keepdims(axes));
    if (mean && dvti_fusible(wide, NULL, NULL) &&
        dvti_supports(wide->storage->device, dvti_kernel_variance(), DVTI_OP_variance, wide->dtype,
                      DVTI_CAN_RUN))
        out = dvti_reduce_mask(name, DVTI_OP_variance, wide, mean, mask, axes.keepdims);
    else
        out = dvt_sum(dvt_square(dvt_sub(wide, mean)), axes);
    out = dvt_div_scalar(out, DVTI_MAX(divisor, 0));
    out = dvt_as_in_dtype(root ? dvt_sqrt(out) : out, dtype);
    dvt_keep(out);
    dvt_scope_end(&scope);
    return out;
}

static dvt_array *dvti_variance(const char *name, dvt_array *x, dvt_axes axes, double ddof,
                                bool root) {
    const dvti_float_mode mode = dvti_float_mode_begin();
    dvt_array *out = dvti_variance_in_mode(name, x, axes, ddof, root);
    dvti_float_mode_end(&mode);
    return out;
}

DVT_API dvt_array *dvt_var(dvt_array *x, dvt_axes axes, double ddof) {
    return dvti_variance("dvt_var", x, axes, ddof, false);
}

DVT_API dvt_array *dvt_std(dvt_array *x, dvt_axes axes, double ddof) {
    return dvti_variance("dvt_std", x, axes, ddof, true);
}

/* ---- softmax ---- */
static void dvti_axis_last(dvti_view *view, int axis) {
    int last = view->ndim - 1;
    int64_t dim = view->dim[axis], stride = view->stride[axis];
    view->dim[axis] = view->dim[last];
    view->stride[axis] = view->stride[last];
    view->dim[last] = dim;
    view->stride[last] = stride;
}

static dvt_array *dvti_softmax(const char *name, dvti_op op, dvt_array *x, int axis) {
    dvti_launch launch;
    dvti_attr attr = dvti_attr_none();
    dvt_array *out;
    dvti_launch_begin(&launch, name, dvti_kernel_softmax(), op);
    if (!dvti_check(name, &x, 1) || !dvti_axis(name, &axis, x))
        return NULL;
    out = dvti_array_new(name, x->shape, dvti_float_dtype(x->dtype), x->storage->ctx);
    if (!out)
        return NULL;
    launch.compute = dvti_class_of(out->dtype);
    launch.n_in = launch.n_out = 1;
    dvti_view_into(&launch.in[0], x);
    dvti_view_into(&launch.out[0], out);
    dvti_axis_last(&launch.in[0], axis);
    dvti_axis_last(&launch.out[0], axis);
    if (dvt_size(out) > 0 && dvti_run(out->storage->device, &launch) != DVT_OK)
        return NULL;
    attr.i[0] = axis;
    return dvti_finish(out, op, name, &x, 1, &attr);
}

DVT_API dvt_array *dvt_softmax(dvt_array *x, int axis) {
    return dvti_softmax("dvt_softmax", DVTI_OP_softmax, x, axis);
}

DVT_API dvt_array *dvt_log_softmax(dvt_array *x, int axis) {
    return dvti_softmax("dvt_log_softmax", DVTI_OP_log_softmax, x, axis);
}
