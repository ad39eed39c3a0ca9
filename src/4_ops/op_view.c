/* Views: new shapes and strides on the same memory. */
#include "4_ops/dvt_op.h"

static dvt_array *dvti_reshaped(const char *name, dvt_array *x, dvt_shape shape,
                                const int64_t *stride) {
    dvt_array *view = dvti_view_new(name, x, shape, stride, x->offset);
    return dvti_finish(view, DVTI_OP_reshape, name, &x, 1, NULL);
}

/* ---- slice ---- */
/* Resolves a bound by Python's rules: a negative one counts from the end, and any is clipped to the
   axis. */
static int64_t dvti_bound(int64_t at, int64_t extent, int64_t low, int64_t high) {
    if (at < 0)
        at = at < -extent ? low : at + extent;
    return at < low ? low : at > high ? high : at;
}

DVT_API dvt_array *dvt_slice(dvt_array *x, int axis, int64_t start, int64_t stop, int64_t step) {
    dvti_attr attr = dvti_attr_none();
    int64_t extent, n, offset;
    dvt_shape shape;
    int64_t stride[DVT_MAX_DIMS];
    dvt_array *view;
    if (!dvti_check("dvt_slice", &x, 1) || !dvti_axis("dvt_slice", &axis, x))
        return NULL;
    if (step == 0 || step == INT64_MIN) {
        dvti_fail(DVT_ERR_VALUE, "dvt_slice: step is %lld; expected any other number",
                  (long long)step);
        return NULL;
    }
    extent = x->shape.dim[axis];
    if (step > 0) {
        start = dvti_bound(start, extent, 0, extent);
        stop = stop == DVT_END ? extent : dvti_bound(stop, extent, 0, extent);
        n = stop > start ? (stop - start - 1) / step + 1 : 0;
    } else {
        start = dvti_bound(start, extent, -1, extent - 1);
        stop = stop == DVT_END ? -1 : dvti_bound(stop, extent, -1, extent - 1);
        n = start > stop ? (start - stop - 1) / -step + 1 : 0;
    }
    if (n == 0)
        start = 0;
    shape = x->shape;
    shape.dim[axis] = n;
    memcpy(stride, x->stride, sizeof stride);
    offset = x->offset;
    if (dvt_shape_size(shape) > 0) { /* otherwise the strides are never used */
        offset += start * x->stride[axis];
        if (n > 1)
            stride[axis] *= step; /* n > 1 bounds |step| by the extent, so this fits */
    }
    view = dvti_view_new("dvt_slice", x, shape, stride, offset);
    attr.i[0] = axis;
    attr.i[1] = start;
    attr.i[2] = step;
    attr.i[3] = extent;
    return dvti_finish(view, DVTI_OP_slice, "dvt_slice", &x, 1, &attr);
}

DVTI_FN dvt_array *dvti_unslice(dvt_array *g, int axis, int64_t start, int64_t step,
                                int64_t extent) {
    dvti_attr attr = dvti_attr_none();
    dvt_scope_guard scope;
    dvt_array *out, *window;
    dvt_shape shape;
    int64_t stride[DVT_MAX_DIMS];
    if (!dvti_check("dvt_slice", &g, 1))
        return NULL;
    shape = g->shape;
    shape.dim[axis] = extent;
    scope = dvt_scope_begin();
    out = dvt_zeros(shape, g->dtype, g->storage->ctx);
    if (out && dvt_size(g) > 0) {
        memcpy(stride, out->stride, sizeof stride);
        if (g->shape.dim[axis] > 1)
            stride[axis] *= step;
        window = dvti_view_new("dvt_slice", out, g->shape, stride, start * out->stride[axis]);
        if (!window || dvti_copy_elements("dvt_slice", window, g) != DVT_OK)
            out = NULL;
    }
    dvt_keep(out);
    dvt_scope_end(&scope);
    attr.i[0] = axis;
    attr.i[1] = start;
    attr.i[2] = step;
    attr.i[3] = extent;
    return dvti_finish(out, DVTI_OP_unslice, "dvt_slice", &g, 1, &attr);
}

DVT_API dvt_array *dvt_rows(dvt_array *x, int64_t start, int64_t stop) {
    if (!dvti_check("dvt_rows", &x, 1))
        return NULL;
    if (x->shape.ndim == 0) {
        dvti_fail(DVT_ERR_SHAPE, "dvt_rows: x (%s) has no axis to cut; reshape it first",
                  dvti_describe(x));
        return NULL;
    }
    return dvt_slice(x, 0, start, stop, 1);
}

DVT_API dvt_array *dvt_index(dvt_array *x, int64_t i) {
    int64_t extent, at;
    dvt_scope_guard scope;
    dvt_array *row;
    dvt_shape shape;
    if (!dvti_check("dvt_index", &x, 1))
        return NULL;
    if (x->shape.ndim == 0) {
        dvti_fail(DVT_ERR_SHAPE, "dvt_index: x (%s) has no axis to index; use dvt_item",
                  dvti_describe(x));
        return NULL;
    }
    extent = x->shape.dim[0];
    at = i < 0 ? i + extent : i;
    if (at < 0 || at >= extent) {
        dvti_fail(DVT_ERR_RANGE, "dvt_index: index %lld of x (%s); expected %s", (long long)i,
                  dvti_describe(x), dvti_range_text(-extent, extent - 1));
        return NULL;
    }
    shape = x->shape;
    shape.ndim--;
    memmove(shape.dim, shape.dim + 1, sizeof shape.dim[0] * (size_t)shape.ndim);
    scope = dvt_scope_begin();
    row = dvt_slice(x, 0, at, at + 1, 1);
    if (row)
        row = dvti_reshaped("dvt_index", row, shape, row->stride + 1);
    dvt_keep(row);
    dvt_scope_end(&scope);
    return row;
}

/* ---- order of axes ---- */
static dvt_array *dvti_permuted(const char *name, dvt_array *x, const int *order) {
    dvti_attr attr = dvti_attr_none();
    dvt_shape shape = x->shape;
    int64_t stride[DVT_MAX_DIMS];
    dvt_array *view;
    int i;
    for (i = 0; i < shape.ndim; i++) {
        shape.dim[i] = x->shape.dim[order[i]];
        stride[i] = x->stride[order[i]];
        attr.i[i] = order[i];
    }
    view = dvti_view_new(name, x, shape, stride, x->offset);
    return dvti_finish(view, DVTI_OP_transpose, name, &x, 1, &attr);
}

static dvt_array *dvti_reversed(const char *name, dvt_array *x) {
    int order[DVT_MAX_DIMS], i;
    for (i = 0; i < x->shape.ndim; i++)
        order[i] = x->shape.ndim - 1 - i;
    return dvti_permuted(name, x, order);
}

DVT_API dvt_array *dvt_t(dvt_array *x) {
    if (!dvti_check("dvt_t", &x, 1))
        return NULL;
    if (x->shape.ndim <= 2)
        return dvti_reversed("dvt_t", x);
    dvti_fail(DVT_ERR_SHAPE,
              "dvt_t: x is %s; expected at most 2 axes: use dvt_swapaxes(x, -1, -2) for a batch of "
              "matrices, or dvt_transpose(x, DVT_ALL) to reverse all axes",
              dvti_describe(x));
    return NULL;
}

DVT_API dvt_array *dvt_transpose(dvt_array *x, dvt_axes order) {
    unsigned mask;
    int i;
    if (!dvti_check("dvt_transpose", &x, 1))
        return NULL;
    if (order.keepdims) {
        dvti_fail(DVT_ERR_VALUE, "dvt_transpose: keepdims is set, and no axis is dropped: use "
                                 "DVT_AXES or DVT_ALL");
        return NULL;
    }
    if (order.n == 0)
        return dvti_reversed("dvt_transpose", x);
    if (!dvti_axes_mask("dvt_transpose", order, x, &mask))
        return NULL;
    if (order.n != x->shape.ndim) {
        dvti_fail(DVT_ERR_AXIS, "dvt_transpose: %d axes for x (%s); name every axis once", order.n,
                  dvti_describe(x));
        return NULL;
    }
    for (i = 0; i < order.n; i++)
        if (order.axis[i] < 0)
            order.axis[i] += order.n;
    return dvti_permuted("dvt_transpose", x, order.axis);
}

DVT_API dvt_array *dvt_swapaxes(dvt_array *x, int axis1, int axis2) {
    int order[DVT_MAX_DIMS], i;
    if (!dvti_check("dvt_swapaxes", &x, 1) || !dvti_axis("dvt_swapaxes", &axis1, x) ||
        !dvti_axis("dvt_swapaxes", &axis2, x))
        return NULL;
    for (i = 0; i < x->shape.ndim; i++)
        order[i] = i == axis1 ? axis2 : i == axis2 ? axis1 : i;
    return dvti_permuted("dvt_swapaxes", x, order);
}

/* ---- reshape ---- */
/* Replaces one -1 by the remaining extent. Returns false with SHAPE set when the sizes disagree. */
static bool dvti_reshape_resolve(dvt_array *x, dvt_shape *shape) {
    dvt_shape known = *shape;
    int64_t size = dvt_shape_size(x->shape), rest;
    int free_axis = -1, i;
    bool good;
    if (shape->ndim < 0 || shape->ndim > DVT_MAX_DIMS) {
        dvti_fail(DVT_ERR_SHAPE, "dvt_reshape: x is %s and the new shape %s; expected 0 to %d axes",
                  dvti_describe(x), dvti_shape_text(*shape), DVT_MAX_DIMS);
        return false;
    }
    for (i = 0; i < shape->ndim; i++)
        if (shape->dim[i] == -1) {
            if (free_axis >= 0) {
                dvti_fail(DVT_ERR_SHAPE,
                          "dvt_reshape: x is %s and the new shape %s; expected at most one -1, the "
                          "extent that the others leave",
                          dvti_describe(x), dvti_shape_text(*shape));
                return false;
            }
            free_axis = i;
            known.dim[i] = 1;
        }
    rest = dvt_shape_size(known);
    if (free_axis >= 0) {
        good = rest > 0 && size % rest == 0;
        if (good)
            shape->dim[free_axis] = size / rest;
    } else
        good = rest == size;
    if (!good)
        dvti_fail(DVT_ERR_SHAPE,
                  "dvt_reshape: x is %s with %lld elements, and the new shape is %s; expected as "
                  "many elements (one extent may be -1)",
                  dvti_describe(x), (long long)size, dvti_shape_text(*shape));
    return good;
}

/* Computes strides of `shape` on x's memory when no copy is needed. Old and new axes are matched in
   runs of equal size. Within a run the old axes must be contiguous with one another:

   old axes   ( 4 | 2, 3 )        runs of 4 and of 6 elements
   new axes   ( 2, 2 | 6 ) */
static bool dvti_reshape_strides(const dvt_array *x, dvt_shape shape, int64_t *stride) {
    int64_t dim[DVT_MAX_DIMS], step[DVT_MAX_DIMS];
    int n = 0, i, o = 0, s = 0;
    if (dvt_shape_size(shape) == 0 || dvt_is_contiguous(x)) {
        dvti_strides_c(shape, stride);
        return true;
    }
    for (i = 0; i < x->shape.ndim; i++)
        if (x->shape.dim[i] != 1) {
            dim[n] = x->shape.dim[i];
            step[n++] = x->stride[i];
        }
    while (o < n && s < shape.ndim) {
        int o_end = o + 1, s_end = s + 1, k;
        int64_t old_size = dim[o], new_size = shape.dim[s];
        while (old_size != new_size)
            if (new_size < old_size)
                new_size *= shape.dim[s_end++];
            else
                old_size *= dim[o_end++];
        for (k = o; k < o_end - 1; k++)
            if (step[k] != dim[k + 1] * step[k + 1])
                return false;
        stride[s_end - 1] = step[o_end - 1];
        for (k = s_end - 1; k > s; k--)
            stride[k - 1] = stride[k] * shape.dim[k];
        o = o_end;
        s = s_end;
    }
    for (; s < shape.ndim; s++) /* the remaining axes have extent 1 */
        stride[s] = 1;
    return true;
}

DVT_API dvt_array *dvt_reshape(dvt_array *x, dvt_shape shape) {
    int64_t stride[DVT_MAX_DIMS];
    dvt_scope_guard scope;
    dvt_array *packed, *out = NULL;
    if (!dvti_check("dvt_reshape", &x, 1) || !dvti_reshape_resolve(x, &shape))
        return NULL;
    if (dvti_reshape_strides(x, shape, stride))
        return dvti_reshaped("dvt_reshape", x, shape, stride);
    scope = dvt_scope_begin();
    packed = dvt_copy(x);
    if (packed) {
        dvti_strides_c(shape, stride);
        out = dvti_reshaped("dvt_reshape", packed, shape, stride);
    }
    dvt_keep(out);
    dvt_scope_end(&scope);
    return out;
}

DVT_API dvt_array *dvt_flatten(dvt_array *x) {
    dvt_shape row;
    if (!dvti_check("dvt_flatten", &x, 1))
        return NULL;
    if (x->shape.ndim == 0)
        return dvt_reshape(x, DVT_SHAPE(1, 1));
    /* A -1 would fail for an empty batch: its number of elements does not determine the width of a
       row. */
    row = x->shape;
    row.dim[0] = 1;
    return dvt_reshape(x, DVT_SHAPE(x->shape.dim[0], dvt_shape_size(row)));
}

DVT_API dvt_array *dvt_expand_dims(dvt_array *x, int axis) {
    dvt_shape shape = DVT_SCALAR;
    int64_t stride[DVT_MAX_DIMS];
    int i;
    if (!dvti_check("dvt_expand_dims", &x, 1))
        return NULL;
    if (x->shape.ndim == DVT_MAX_DIMS) {
        dvti_fail(DVT_ERR_SHAPE,
                  "dvt_expand_dims: x (%s) has %d axes already, the most there can be",
                  dvti_describe(x), DVT_MAX_DIMS);
        return NULL;
    }
    shape.ndim = x->shape.ndim + 1;
    if (!dvti_new_axis("dvt_expand_dims", &axis, x))
        return NULL;
    for (i = 0; i < shape.ndim; i++) {
        shape.dim[i] = i == axis ? 1 : x->shape.dim[i - (i > axis)];
        stride[i] = i == axis ? 1 : x->stride[i - (i > axis)];
    }
    return dvti_reshaped("dvt_expand_dims", x, shape, stride);
}

DVT_API dvt_array *dvt_squeeze(dvt_array *x, dvt_axes axes) {
    dvt_shape shape = DVT_SCALAR;
    int64_t stride[DVT_MAX_DIMS];
    unsigned mask;
    int i;
    if (!dvti_check("dvt_squeeze", &x, 1) || !dvti_axes_mask("dvt_squeeze", axes, x, &mask))
        return NULL;
    if (axes.keepdims) {
        dvti_fail(DVT_ERR_VALUE, "dvt_squeeze: keepdims is set, and squeezing drops axes: use "
                                 "DVT_AXES or DVT_ALL");
        return NULL;
    }
    for (i = 0; i < x->shape.ndim; i++) {
        bool one = x->shape.dim[i] == 1;
        if (axes.n && mask & 1u << i && !one) {
            dvti_fail(
                DVT_ERR_SHAPE,
                "dvt_squeeze: axis %d of x (%s) has extent %lld; only extents of 1 can be dropped",
                i, dvti_describe(x), (long long)x->shape.dim[i]);
            return NULL;
        }
        if (!(mask & 1u << i) || !one) {
            stride[shape.ndim] = x->stride[i];
            shape.dim[shape.ndim++] = x->shape.dim[i];
        }
    }
    return dvti_reshaped("dvt_squeeze", x, shape, stride);
}

DVT_API dvt_array *dvt_broadcast_to(dvt_array *x, dvt_shape shape) {
    dvt_shape common;
    int64_t bytes;
    dvti_view view;
    dvt_array *out;
    if (!dvti_check("dvt_broadcast_to", &x, 1) ||
        !dvti_nbytes("dvt_broadcast_to", shape, x->dtype, &bytes) ||
        !dvti_broadcast("dvt_broadcast_to", &x->shape, &shape, &common))
        return NULL;
    if (!dvt_shape_equal(common, shape)) {
        dvti_fail(
            DVT_ERR_SHAPE,
            "dvt_broadcast_to: x (%s) does not broadcast to %s; extents of x must be 1 or equal",
            dvti_describe(x), dvti_shape_text(shape));
        return NULL;
    }
    dvti_view_broadcast_into(&view, x, &shape);
    out = dvti_view_new("dvt_broadcast_to", x, shape, view.stride, x->offset);
    return dvti_finish(out, DVTI_OP_broadcast_to, "dvt_broadcast_to", &x, 1, NULL);
}
