/* Shapes: sizes that cannot overflow, strides, broadcasting, axes. */
#include "2_core/dvt_core.h"

DVT_API dvt_shape dvt_shape_make(int ndim, int64_t d0, int64_t d1, int64_t d2, int64_t d3,
                                 int64_t d4, int64_t d5, int64_t d6, int64_t d7) {
    dvt_shape shape;
    shape.ndim = ndim;
    shape.dim[0] = d0;
    shape.dim[1] = d1;
    shape.dim[2] = d2;
    shape.dim[3] = d3;
    shape.dim[4] = d4;
    shape.dim[5] = d5;
    shape.dim[6] = d6;
    shape.dim[7] = d7;
    return shape;
}

DVT_API dvt_axes dvt_axes_make(int n, int a0, int a1, int a2, int a3, int a4, int a5, int a6,
                               int a7) {
    dvt_axes axes;
    axes.n = n;
    axes.axis[0] = a0;
    axes.axis[1] = a1;
    axes.axis[2] = a2;
    axes.axis[3] = a3;
    axes.axis[4] = a4;
    axes.axis[5] = a5;
    axes.axis[6] = a6;
    axes.axis[7] = a7;
    axes.keepdims = false;
    return axes;
}

DVT_API dvt_axes dvt_keepdims(dvt_axes axes) {
    axes.keepdims = true;
    return axes;
}

DVTI_FN bool dvti_same_shape(const dvt_shape *a, const dvt_shape *b) {
    int i;
    if (a->ndim != b->ndim)
        return false;
    for (i = 0; i < a->ndim && i < DVT_MAX_DIMS; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

DVT_API bool dvt_shape_equal(dvt_shape a, dvt_shape b) {
    return dvti_same_shape(&a, &b);
}

/* An extent of 0 makes the product 0 even if the other extents overflow: the array has no
   elements. */
DVT_API int64_t dvt_shape_size(dvt_shape shape) {
    int64_t size = 1;
    bool fits = true, empty = false;
    int i;
    if (shape.ndim < 0 || shape.ndim > DVT_MAX_DIMS)
        return -1;
    for (i = 0; i < shape.ndim; i++) {
        if (shape.dim[i] < 0)
            return -1;
        empty = empty || shape.dim[i] == 0;
        fits = fits && dvti_mul(size, shape.dim[i], &size);
    }
    return empty ? 0 : fits ? size : -1;
}

DVTI_FN bool dvti_has_elements(const dvt_shape *shape) {
    int i;
    for (i = 0; i < shape->ndim; i++)
        if (shape->dim[i] == 0)
            return false;
    return true;
}

DVTI_FN int64_t dvti_extents(const int64_t *dim, int n) {
    int64_t product = 1;
    bool fits = true;
    int i;
    for (i = 0; i < n; i++) {
        if (dim[i] == 0)
            return 0;
        fits = fits && dvti_mul(product, dim[i], &product);
    }
    return fits ? product : INT64_MAX;
}

DVTI_FN bool dvti_nbytes(const char *function, dvt_shape shape, dvt_dtype dtype, int64_t *bytes) {
    int64_t size;
    int i;
    if ((int)dtype == DVT_DTYPE_UNSIGNED) {
        dvti_fail(DVT_ERR_DTYPE,
                  "%s: unsigned integers of 32 and 64 bits have no dtype; use int32_t or int64_t "
                  "(DVT_I32, DVT_I64), or uint8_t (DVT_U8) for small ones",
                  function);
        return false;
    }
    if (!dvti_dtype_ok(dtype)) {
        dvti_fail(DVT_ERR_DTYPE, "%s: %d is not a dtype; use DVT_F32, DVT_I64 and the like",
                  function, (int)dtype);
        return false;
    }
    if (shape.ndim < 0 || shape.ndim > DVT_MAX_DIMS) {
        dvti_fail(DVT_ERR_SHAPE, "%s: shape %s; expected 0 to %d axes", function,
                  dvti_shape_text(shape), DVT_MAX_DIMS);
        return false;
    }
    for (i = 0; i < shape.ndim; i++)
        if (shape.dim[i] < 0) {
            dvti_fail(DVT_ERR_SHAPE,
                      "%s: shape %s has a negative extent; extents must be 0 or more", function,
                      dvti_shape_text(shape));
            return false;
        }
    size = dvt_shape_size(shape);
    if (size < 0 || !dvti_mul(size, dvt_dtype_size(dtype), bytes)) {
        dvti_fail(DVT_ERR_SHAPE, "%s: shape %s of %s has more than 2^63 bytes; use a smaller shape",
                  function, dvti_shape_text(shape), dvt_dtype_name(dtype));
        return false;
    }
    return true;
}

/* Computes strides in C order. Those of an empty array may overflow; they are never used, so they
   become 0. */
DVTI_FN void dvti_strides_c(dvt_shape shape, int64_t *stride) {
    int64_t step = 1;
    int i;
    for (i = shape.ndim - 1; i >= 0; i--) {
        stride[i] = step;
        if (!dvti_mul(step, shape.dim[i], &step))
            step = 0;
    }
}

DVTI_FN bool dvti_broadcasts(const dvt_shape *a, const dvt_shape *b, dvt_shape *out) {
    int ndim = DVTI_MAX(a->ndim, b->ndim), i;
    dvt_shape result;
    if (dvti_same_shape(a, b)) {
        if (out != a)
            *out = *a;
        return true;
    }
    memset(&result, 0, sizeof result);
    result.ndim = ndim;
    for (i = 0; i < ndim; i++) {
        int64_t da = i < ndim - a->ndim ? 1 : a->dim[i - (ndim - a->ndim)];
        int64_t db = i < ndim - b->ndim ? 1 : b->dim[i - (ndim - b->ndim)];
        if (da != db && da != 1 && db != 1)
            return false;
        result.dim[i] = da == 1 ? db : da;
    }
    *out = result;
    return true;
}

DVTI_FN bool dvti_broadcast(const char *function, const dvt_shape *a, const dvt_shape *b,
                            dvt_shape *out) {
    bool good = dvti_broadcasts(a, b, out);
    if (!good)
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: shapes %s and %s do not broadcast: extents must be equal or 1, counted from "
                  "the last; reshape or slice one of them",
                  function, dvti_shape_text(*a), dvti_shape_text(*b));
    return good;
}

/* Checks an axis of x with `more` axes in addition. */
static bool dvti_axis_among(const char *function, int *axis, const dvt_array *x, int more) {
    int n = x->shape.ndim + more;
    if (*axis < -n || *axis >= n) {
        if (n == 0)
            dvti_fail(DVT_ERR_AXIS, "%s: axis %d of %s, which has no axes; reshape it first",
                      function, *axis, dvti_describe(x));
        else
            dvti_fail(DVT_ERR_AXIS, "%s: %saxis %d of %s; expected %d to %d", function,
                      more ? "new " : "", *axis, dvti_describe(x), -n, n - 1);
        return false;
    }
    if (*axis < 0)
        *axis += n;
    return true;
}

DVTI_FN bool dvti_axis(const char *function, int *axis, const dvt_array *x) {
    return dvti_axis_among(function, axis, x, 0);
}

DVTI_FN bool dvti_new_axis(const char *function, int *axis, const dvt_array *x) {
    return dvti_axis_among(function, axis, x, 1);
}
