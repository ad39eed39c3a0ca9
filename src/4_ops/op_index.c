/* Joining, splitting and indexing. A node's attr.i[0] is the axis, not negative, of concat, take,
   take_add, take_along and take_along_add. The last four have the inputs (array, index); the index
   is int64 and contiguous. */
#include "4_ops/dvt_op.h"

/* ---- concat, stack, split ---- */
/* Checks that arrays[k] has the shape of arrays[0] except along `axis` (-1: no exception). */
static bool dvti_fits_first(const char *name, dvt_array *const *arrays, int k, int axis) {
    const dvt_shape *first = &arrays[0]->shape, *other = &arrays[k]->shape;
    char rule[40] = "expected equal shapes";
    int i = 0;
    if (axis >= 0)
        snprintf(rule, sizeof rule, "only axis %d may differ", axis);
    if (other->ndim != first->ndim) {
        dvti_fail(
            DVT_ERR_SHAPE,
            "%s: array %d (%s) and array 0 (%s) have %d and %d axes; expected equal numbers of "
            "axes: reshape one of them",
            name, k, dvti_describe(arrays[k]), dvti_describe(arrays[0]), other->ndim, first->ndim);
        return false;
    }
    while (i < first->ndim && (i == axis || other->dim[i] == first->dim[i]))
        i++;
    if (i == first->ndim)
        return true;
    dvti_fail(DVT_ERR_SHAPE,
              "%s: array %d (%s) and array 0 (%s) differ on axis %d: %lld and %lld; %s: reshape or "
              "slice one of them",
              name, k, dvti_describe(arrays[k]), dvti_describe(arrays[0]), i,
              (long long)other->dim[i], (long long)first->dim[i], rule);
    return false;
}

static bool dvti_concat_shape(const char *name, dvt_array *const *arrays, int n, int axis,
                              dvt_shape *shape, dvt_dtype *dtype) {
    int k;
    *shape = arrays[0]->shape;
    *dtype = arrays[0]->dtype;
    for (k = 1; k < n; k++) {
        dvt_shape other = arrays[k]->shape;
        if (!dvti_fits_first(name, arrays, k, axis))
            return false;
        if (!dvti_sum(shape->dim[axis], other.dim[axis], &shape->dim[axis])) {
            dvti_fail(DVT_ERR_SHAPE, "%s: the extents along axis %d add up to more than 2^63", name,
                      axis);
            return false;
        }
        *dtype = dvt_promote(*dtype, arrays[k]->dtype);
    }
    return true;
}

static dvt_array *dvti_concat(const char *name, dvt_array *const *arrays, int n, int axis) {
    dvti_attr attr = dvti_attr_none();
    dvt_shape shape;
    dvt_dtype dtype;
    dvt_array *out;
    int64_t at = 0;
    int k;
    if (!dvti_axis(name, &axis, arrays[0]) ||
        !dvti_concat_shape(name, arrays, n, axis, &shape, &dtype))
        return NULL;
    out = dvti_array_new(name, shape, dtype, arrays[0]->storage->ctx);
    if (!out)
        return NULL;
    for (k = 0; k < n; k++) {
        dvti_launch launch;
        int64_t extent = arrays[k]->shape.dim[axis];
        dvti_launch_begin(&launch, name, dvti_kernel_elementwise(), DVTI_OP_copy);
        dvti_view_into(&launch.in[0], arrays[k]);
        dvti_view_into(&launch.out[0], out);
        launch.out[0].dim[axis] = extent;
        launch.n_in = launch.n_out = 1;
        launch.compute = dvti_class_of(arrays[k]->dtype);
        if (dvt_size(arrays[k]) > 0) {
            launch.out[0].data =
                (char *)launch.out[0].data + at * out->stride[axis] * dvt_dtype_size(dtype);
            if (dvti_run(out->storage->device, &launch) != DVT_OK)
                return NULL;
        }
        at += extent;
    }
    attr.i[0] = axis;
    return dvti_finish(out, DVTI_OP_concat, name, arrays, n, &attr);
}

static bool dvti_several(const char *name, dvt_array *const *arrays, int n) {
    if (n < 1) {
        dvti_fail(DVT_ERR_RANGE, "%s: n is %d; expected at least 1 array", name, n);
        return false;
    }
    if (!arrays) {
        dvti_null(name, "arrays");
        return false;
    }
    return dvti_check_named(name, arrays, n, NULL);
}

DVT_API dvt_array *dvt_concat(dvt_array *const *arrays, int n, int axis) {
    return dvti_several("dvt_concat", arrays, n) ? dvti_concat("dvt_concat", arrays, n, axis)
                                                 : NULL;
}

DVT_API dvt_array *dvt_stack(dvt_array *const *arrays, int n, int axis) {
    dvt_array **rows, *out = NULL;
    dvt_scope_guard scope;
    bool good = true;
    int k;
    if (!dvti_several("dvt_stack", arrays, n) || !dvti_new_axis("dvt_stack", &axis, arrays[0]))
        return NULL;
    for (k = 1; k < n; k++)
        if (!dvti_fits_first("dvt_stack", arrays, k, -1))
            return NULL;
    rows = (dvt_array **)dvti_alloc(sizeof *rows * (size_t)n);
    if (!rows) {
        dvti_fail_memory("dvt_stack", (int64_t)(sizeof *rows * (size_t)n));
        return NULL;
    }
    scope = dvt_scope_begin();
    for (k = 0; k < n && good; k++)
        good = (rows[k] = dvt_expand_dims(arrays[k], axis)) != NULL;
    if (good)
        out = dvti_concat("dvt_stack", rows, n, axis);
    dvt_keep(out);
    dvt_scope_end(&scope);
    dvti_free(rows);
    return out;
}

static dvt_status dvti_split(const char *name, dvt_array *x, int n, int axis, bool even,
                             dvt_array **out) {
    int64_t extent, begin = 0;
    dvt_scope_guard scope;
    int k;
    if (!dvti_check(name, &x, 1))
        return dvti_failure();
    if (!out)
        return dvti_null(name, "out");
    if (n < 1)
        return dvti_fail(DVT_ERR_RANGE, "%s: n is %d; expected at least 1 part", name, n);
    if (!dvti_axis(name, &axis, x))
        return DVT_ERR_AXIS;
    extent = x->shape.dim[axis];
    if (even && extent % n)
        return dvti_fail(DVT_ERR_SHAPE,
                         "%s: axis %d of x (%s) has extent %lld, which %d does not divide; ask for "
                         "another number of parts, or use dvt_array_split",
                         name, axis, dvti_describe(x), (long long)extent, n);
    scope = dvt_scope_begin();
    for (k = 0; k < n; k++) {
        int64_t end = begin + extent / n + (k < extent % n);
        out[k] = dvt_slice(x, axis, begin, end, 1);
        if (!out[k])
            break;
        begin = end;
    }
    if (k < n) /* the scope releases the parts made so far */
        memset((void *)out, 0, sizeof *out * (size_t)n);
    else
        for (k = 0; k < n; k++)
            dvt_keep(out[k]);
    dvt_scope_end(&scope);
    return out[0] ? DVT_OK : dvti_failure();
}

DVT_API dvt_status dvt_split(dvt_array *x, int n, int axis, dvt_array **out) {
    return dvti_split("dvt_split", x, n, axis, true, out);
}

DVT_API dvt_status dvt_array_split(dvt_array *x, int n, int axis, dvt_array **out) {
    return dvti_split("dvt_array_split", x, n, axis, false, out);
}

/* ---- indices ---- */
static const char *const dvti_index_names[] = {"x", "indices"};

/* Returns the indices as a contiguous int64 array. Checks their range only in host memory, where
   reading them needs neither a wait nor a copy. */
static dvt_array *dvti_index_ready(const char *name, dvt_array *indices, int64_t extent, int axis) {
    dvt_array *index = NULL;
    const int64_t *value;
    int64_t i, n = dvt_size(indices);
    if (!dvt_dtype_is_int(indices->dtype)) {
        dvti_fail(DVT_ERR_DTYPE,
                  "%s: indices are %s; expected an integer dtype: convert them with dvt_astype",
                  name, dvti_describe(indices));
        return NULL;
    }
    DVT_PAUSE {
        index = dvt_contiguous(dvt_as_in_dtype(indices, DVT_I64));
    }
    if (!index || !dvti_is_host_memory(index->storage->ctx) || extent < 0)
        return index;
    value = (const int64_t *)dvti_view_of(index).data;
    for (i = 0; i < n; i++)
        if (value[i] < -extent || value[i] >= extent) {
            dvti_fail(DVT_ERR_RANGE,
                      "%s: index %lld (number %lld) is out of range for axis %d with extent %lld; "
                      "expected %s",
                      name, (long long)value[i], (long long)i, axis, (long long)extent,
                      dvti_range_text(-extent, extent - 1));
            return NULL;
        }
    return index;
}

static bool dvti_index_empty(const char *name, const dvt_array *x, const dvt_array *out, int axis) {
    if (x->shape.dim[axis] > 0 || dvt_size(out) == 0)
        return false;
    dvti_fail(DVT_ERR_RANGE, "%s: axis %d of x (%s) is empty; there is nothing to take from it",
              name, axis, dvti_describe(x));
    return true;
}

/* Returns a contiguous array as (A, N, B), where N covers `count` axes starting at `axis`:

   x         (d0, d1,  d2, d3,  d4)      axis 2, count 2
   view      (  A   ,    N   ,  B )      strides N * B, B, 1 */
static dvti_view dvti_around_axis(const dvt_array *x, int axis, int count) {
    dvti_view view = dvti_view_of(x);
    const int64_t *dim = x->shape.dim;
    int behind = axis + count;
    view.ndim = 3;
    view.dim[0] = dvti_extents(dim, axis);
    view.dim[1] = dvti_extents(dim + axis, count);
    view.dim[2] = dvti_extents(dim + behind, x->shape.ndim - behind);
    view.stride[2] = 1;
    view.stride[1] = view.dim[2];
    view.stride[0] = dvti_extents(view.dim + 1, 2);
    return view;
}

/* Replaces `count` axes of x's shape, starting at `axis`, by those of `by`. */
static bool dvti_replace_axis(const char *name, const dvt_array *x, int axis, int count,
                              dvt_shape by, dvt_shape *shape) {
    int i, ndim = x->shape.ndim - count + by.ndim;
    *shape = x->shape;
    if (ndim > DVT_MAX_DIMS) {
        dvti_fail(DVT_ERR_SHAPE, "%s: the result would have %d axes; the most there can be are %d",
                  name, ndim, DVT_MAX_DIMS);
        return false;
    }
    shape->ndim = ndim;
    for (i = 0; i < by.ndim; i++)
        shape->dim[axis + i] = by.dim[i];
    for (i = axis + count; i < x->shape.ndim; i++)
        shape->dim[i - count + by.ndim] = x->shape.dim[i];
    return true;
}

/* Launches take or take_add. x is contiguous. */
static bool dvti_take_run(const char *name, dvti_op op, dvt_array *x, dvt_array *index,
                          dvt_array *out, int axis) {
    dvti_launch launch;
    int many = index->shape.ndim;
    dvti_launch_begin(&launch, name, dvti_kernel_take(), op);
    launch.in[0] = dvti_around_axis(x, axis, op == DVTI_OP_take ? 1 : many);
    launch.out[0] = dvti_around_axis(out, axis, op == DVTI_OP_take ? many : 1);
    dvti_view_into(&launch.in[1], index);
    launch.in[1].ndim = 1;
    launch.in[1].dim[0] = dvt_size(index);
    launch.in[1].stride[0] = 1;
    launch.n_in = 2;
    launch.n_out = 1;
    launch.compute = dvti_class_of(x->dtype);
    return dvt_size(out) == 0 || dvti_run(out->storage->device, &launch) == DVT_OK;
}

static dvt_array *dvti_take(const char *name, dvti_op op, dvt_array *x, dvt_array *index, int axis,
                            dvt_shape shape) {
    dvti_attr attr = dvti_attr_none();
    dvt_array *in[2], *packed = NULL, *out = dvti_array_new(name, shape, x->dtype, x->storage->ctx);
    in[0] = x;
    in[1] = index;
    if (!out || (op == DVTI_OP_take && dvti_index_empty(name, x, out, axis)))
        return NULL;
    DVT_PAUSE {
        packed = dvt_contiguous(x);
    }
    if (!packed || !dvti_take_run(name, op, packed, index, out, axis))
        return NULL;
    attr.i[0] = axis;
    return dvti_finish(out, op, name, in, 2, &attr);
}

DVT_API dvt_array *dvt_take(dvt_array *x, dvt_array *indices, int axis) {
    dvt_array *in[2], *index, *out = NULL;
    dvt_scope_guard scope;
    dvt_shape shape;
    in[0] = x;
    in[1] = indices;
    if (!dvti_check_named("dvt_take", in, 2, dvti_index_names) ||
        !dvti_axis("dvt_take", &axis, x) ||
        !dvti_replace_axis("dvt_take", x, axis, 1, indices->shape, &shape))
        return NULL;
    scope = dvt_scope_begin();
    index = dvti_index_ready("dvt_take", indices, x->shape.dim[axis], axis);
    if (index)
        out = dvti_take("dvt_take", DVTI_OP_take, x, index, axis, shape);
    dvt_keep(out);
    dvt_scope_end(&scope);
    return out;
}

DVTI_FN dvt_array *dvti_take_add(dvt_array *g, dvt_array *index, int axis, int64_t n) {
    dvt_array *in[2], *out;
    dvt_scope_guard scope;
    dvt_shape shape, one = DVT_SHAPE(n);
    in[0] = g;
    in[1] = index;
    if (!dvti_check("dvt_take", in, 2) ||
        !dvti_replace_axis("dvt_take", g, axis, index->shape.ndim, one, &shape))
        return NULL;
    scope = dvt_scope_begin();
    out = dvti_take("dvt_take", DVTI_OP_take_add, g, index, axis, shape);
    dvt_keep(out);
    dvt_scope_end(&scope);
    return out;
}

/* ---- one element per position ---- */
/* Broadcasts the shapes of x and the indices on all axes but one, where the result has `extent`. */
static bool dvti_along_shape(const char *name, const dvt_array *x, const dvt_array *indices,
                             int axis, int64_t extent, dvt_shape *shape) {
    dvt_shape a = x->shape, b = indices->shape;
    if (a.ndim != b.ndim) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: x is %s and indices are %s; expected the same number of axes: use "
                  "dvt_expand_dims or dvt_pick",
                  name, dvti_describe(x), dvti_describe(indices));
        return false;
    }
    a.dim[axis] = b.dim[axis] = extent;
    return dvti_broadcast(name, &a, &b, shape);
}

static dvt_array *dvti_take_along(const char *name, dvti_op op, dvt_array *x, dvt_array *index,
                                  int axis, dvt_shape shape, int64_t extent) {
    dvti_launch launch;
    dvti_attr attr = dvti_attr_none();
    dvt_array *in[2], *out;
    dvt_shape positions = shape, source = shape;
    dvti_launch_begin(&launch, name, dvti_kernel_take_along(), op);
    out = dvti_array_new(name, shape, x->dtype, x->storage->ctx);
    if (!out || (op == DVTI_OP_take_along && dvti_index_empty(name, x, out, axis)))
        return NULL;
    positions.dim[axis] = extent;
    source.dim[axis] = x->shape.dim[axis];
    dvti_view_broadcast_into(&launch.in[0], x, &source);
    dvti_view_broadcast_into(&launch.in[1], index, &positions);
    dvti_view_into(&launch.out[0], out);
    launch.n_in = 2;
    launch.n_out = 1;
    launch.i[0] = axis;
    launch.compute = dvti_class_of(x->dtype);
    if (dvt_size(out) > 0 && dvti_run(out->storage->device, &launch) != DVT_OK)
        return NULL;
    in[0] = x;
    in[1] = index;
    attr.i[0] = axis;
    return dvti_finish(out, op, name, in, 2, &attr);
}

DVTI_FN dvt_array *dvti_take_along_of(const char *name, dvt_array *x, dvt_array *index, int axis) {
    return dvti_take_along(name, DVTI_OP_take_along, x, index, axis, index->shape,
                           index->shape.dim[axis]);
}

static dvt_array *dvti_take_along_checked(const char *name, dvt_array *x, dvt_array *indices,
                                          int axis) {
    dvt_array *in[2], *index, *out = NULL;
    dvt_scope_guard scope;
    dvt_shape shape;
    in[0] = x;
    in[1] = indices;
    if (!dvti_check_named(name, in, 2, dvti_index_names) || !dvti_axis(name, &axis, x) ||
        !dvti_along_shape(name, x, indices, axis,
                          axis < indices->shape.ndim ? indices->shape.dim[axis] : 0, &shape))
        return NULL;
    scope = dvt_scope_begin();
    index = dvti_index_ready(name, indices, x->shape.dim[axis], axis);
    if (index)
        out = dvti_take_along(name, DVTI_OP_take_along, x, index, axis, shape, shape.dim[axis]);
    dvt_keep(out);
    dvt_scope_end(&scope);
    return out;
}

DVT_API dvt_array *dvt_take_along_axis(dvt_array *x, dvt_array *indices, int axis) {
    return dvti_take_along_checked("dvt_take_along_axis", x, indices, axis);
}

DVTI_FN dvt_array *dvti_take_along_add(dvt_array *g, dvt_array *index, int axis, int64_t n) {
    dvt_array *in[2];
    dvt_shape shape;
    in[0] = g;
    in[1] = index;
    if (!dvti_check("dvt_take_along_axis", in, 2))
        return NULL;
    shape = g->shape;
    shape.dim[axis] = n;
    return dvti_take_along("dvt_take_along_axis", DVTI_OP_take_along_add, g, index, axis, shape,
                           g->shape.dim[axis]);
}

DVT_API dvt_array *dvt_pick(dvt_array *x, dvt_array *indices, dvt_axes axes) {
    dvt_array *in[2], *out;
    dvt_scope_guard scope;
    dvt_shape row;
    int axis = axes.axis[0];
    bool flat;
    in[0] = x;
    in[1] = indices;
    if (!dvti_check_named("dvt_pick", in, 2, dvti_index_names))
        return NULL;
    if (axes.n != 1) {
        dvti_fail(DVT_ERR_AXIS, "dvt_pick: %d axes for x (%s); expected one, as in DVT_AXES(-1)",
                  axes.n, dvti_describe(x));
        return NULL;
    }
    if (!dvti_axis("dvt_pick", &axis, x))
        return NULL;
    row = x->shape;
    row.dim[axis] = 1;
    flat = indices->shape.ndim == x->shape.ndim - 1;
    if (flat)
        memmove(row.dim + axis, row.dim + axis + 1, sizeof *row.dim * (size_t)(--row.ndim - axis));
    if (!dvt_shape_equal(row, indices->shape)) {
        dvti_fail(DVT_ERR_SHAPE,
                  "dvt_pick: x is %s and indices are %s; expected one index per row: %s",
                  dvti_describe(x), dvti_describe(indices), dvti_shape_text(row));
        return NULL;
    }
    scope = dvt_scope_begin();
    if (flat)
        indices = dvt_expand_dims(indices, axis);
    out = dvti_take_along_checked("dvt_pick", x, indices, axis);
    if (!axes.keepdims)
        out = dvt_squeeze(out, DVT_AXES(axis));
    dvt_keep(out);
    dvt_scope_end(&scope);
    return out;
}

/* ---- one_hot ---- */
DVT_API dvt_array *dvt_one_hot(dvt_array *indices, int64_t depth, dvt_dtype dtype) {
    dvti_launch launch;
    dvt_array *index, *out = NULL;
    dvt_scope_guard scope;
    dvt_shape shape;
    dvti_launch_begin(&launch, "dvt_one_hot", dvti_kernel_one_hot(), DVTI_OP_one_hot);
    if (!dvti_check("dvt_one_hot", &indices, 1))
        return NULL;
    if (depth < 0 || indices->shape.ndim == DVT_MAX_DIMS) {
        dvti_fail(depth < 0 ? DVT_ERR_RANGE : DVT_ERR_SHAPE,
                  "dvt_one_hot: depth %lld for indices %s; expected depth >= 0 and fewer than %d "
                  "axes",
                  (long long)depth, dvti_describe(indices), DVT_MAX_DIMS);
        return NULL;
    }
    shape = indices->shape;
    shape.dim[shape.ndim++] = depth;
    scope = dvt_scope_begin();
    index = dvti_index_ready("dvt_one_hot", indices, -1, -1);
    if (index)
        out = dvti_array_new("dvt_one_hot", shape, dtype, indices->storage->ctx);
    if (out) {
        dvti_view_into(&launch.in[0], index);
        dvti_view_into(&launch.out[0], out);
        launch.n_in = launch.n_out = 1;
        if (dvt_size(out) > 0 && dvti_run(out->storage->device, &launch) != DVT_OK)
            out = NULL;
    }
    dvt_keep(out);
    dvt_scope_end(&scope);
    return out;
}
