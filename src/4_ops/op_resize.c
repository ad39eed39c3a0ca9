/* Up-sampling and adaptive pooling of images, composed of recorded operations. Both work along one
   axis after the other. Positions are computed on the context of x, so nothing is copied. */
#include "4_ops/dvt_op.h"

static bool dvti_resize_ok(const char *name, dvt_array *x, const int64_t *size) {
    if (!dvti_check(name, &x, 1))
        return false;
    if (x->shape.ndim != 4 || x->shape.dim[2] < 1 || x->shape.dim[3] < 1) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: x is %s; expected (batch, channels, height, width), with a height and width "
                  "of at least 1",
                  name, dvti_describe(x));
        return false;
    }
    if (size[0] > 0 && size[1] > 0)
        return true;
    dvti_fail(DVT_ERR_RANGE, "%s: the result would be %lld x %lld; expected at least 1 x 1", name,
              (long long)size[0], (long long)size[1]);
    return false;
}

/* Returns 0, 1 .. n - 1. */
static dvt_array *dvti_resize_count(dvt_array *x, int64_t n, dvt_dtype dtype) {
    return dvt_arange(0, (double)n, 1, dtype, x->storage->ctx);
}

/* ---- nearest ---- */
static dvt_array *dvti_nearest(dvt_array *x, const int64_t *size) {
    dvt_shape shape = x->shape, wide;
    dvt_array *at;
    int k;
    if (size[0] % shape.dim[2] == 0 && size[1] % shape.dim[3] == 0) {
        shape = DVT_SHAPE(shape.dim[0], shape.dim[1], shape.dim[2], 1, shape.dim[3], 1);
        wide = shape;
        wide.dim[3] = size[0] / shape.dim[2];
        wide.dim[5] = size[1] / shape.dim[4];
        x = dvt_copy(dvt_broadcast_to(dvt_reshape(x, shape), wide));
        return dvt_reshape(x, DVT_SHAPE(shape.dim[0], shape.dim[1], size[0], size[1]));
    }
    for (k = 0; x && k < 2; k++) {
        at = dvt_mul_scalar(dvti_resize_count(x, size[k], DVT_I64), (double)x->shape.dim[2 + k]);
        x = dvt_take(x, dvt_floor_div_scalar(at, (double)size[k]), 2 + k);
    }
    return x;
}

/* ---- bilinear ---- */
/* Interpolates along one axis: x[low] * (1 - share) + x[low + 1] * share. */
static dvt_array *dvti_linear_axis(dvt_array *x, int axis, int64_t n, bool align_corners) {
    int64_t last = x->shape.dim[axis] - 1;
    dvt_array *at = dvti_resize_count(x, n, DVT_F64), *low, *share, *next;
    if (align_corners)
        at = dvt_div_scalar(dvt_mul_scalar(at, (double)last), n > 1 ? (double)(n - 1) : 1);
    else {
        at = dvt_mul_scalar(dvt_add_scalar(at, 0.5), (double)(last + 1));
        at = dvt_sub_scalar(dvt_div_scalar(at, (double)n), 0.5);
    }
    at = dvt_clip(at, 0, (double)last);
    low = dvt_floor(at);
    share = dvt_as_in_dtype(dvt_sub(at, low), x->dtype);
    low = dvt_as_in_dtype(low, DVT_I64);
    next = dvt_minimum_scalar(dvt_add_scalar(low, 1), (double)last);
    if (!share || !next)
        return NULL;
    share = dvti_along(share, x, axis);
    low = dvt_mul(dvt_take(x, low, axis), dvt_scalar_sub(1, share));
    return dvt_add(low, dvt_mul(dvt_take(x, next, axis), share));
}

static dvt_array *dvti_bilinear(dvt_array *x, const int64_t *size, bool align_corners) {
    int k;
    x = dvti_compute_float(x);
    for (k = 0; x && k < 2; k++)
        x = dvti_linear_axis(x, 2 + k, size[k], align_corners);
    return x;
}

/* Resolves the options to the extents of the result. Returns false with the error set. */
static bool dvti_upsample_size(const char *name, const dvt_array *x,
                               const dvt_upsample2d_options *p, int64_t *size) {
    int scale[2], k;
    dvti_pair(p->scale, 0, scale);
    size[0] = p->size[0];
    size[1] = p->size[1] ? p->size[1] : p->size[0];
    if ((scale[0] != 0) == (size[0] != 0) || scale[0] < 0 || scale[1] < 0) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: scale is (%d, %d) and size (%lld, %lld); expected one of them, positive",
                  name, scale[0], scale[1], (long long)size[0], (long long)size[1]);
        return false;
    }
    for (k = 0; k < 2; k++)
        if (scale[0] && x && x->shape.ndim == 4 &&
            !dvti_mul(x->shape.dim[2 + k], scale[k], &size[k])) {
            dvti_fail(DVT_ERR_SHAPE, "%s: the extents of the result overflow; use a smaller scale",
                      name);
            return false;
        }
    return true;
}

DVT_API dvt_array *dvt_upsample2d(dvt_array *x, const dvt_upsample2d_options *p) {
    const char *name = "dvt_upsample2d";
    dvt_scope_guard scope;
    dvt_array *y;
    int64_t size[2];
    if (!p) {
        dvti_null(name, "p");
        return NULL;
    }
    if (!dvti_upsample_size(name, x, p, size) || !dvti_resize_ok(name, x, size))
        return NULL;
    scope = dvt_scope_begin();
    if (p->bilinear)
        y = dvt_as_in_dtype(dvti_bilinear(x, size, p->align_corners), dvti_float_dtype(x->dtype));
    else
        y = dvti_nearest(x, size);
    dvt_keep(y);
    dvt_scope_end(&scope);
    return y;
}

/* ---- adaptive pooling ---- */
/* Returns means over windows [i * in / n, ceil((i + 1) * in / n)) along one axis. All windows are
   gathered with the largest extent; elements behind their ends count as 0. */
static dvt_array *dvti_adaptive_axis(dvt_array *x, int axis, int64_t n) {
    int64_t in = x->shape.dim[axis], most = in / n + 2;
    dvt_array *begin = dvt_mul_scalar(dvti_resize_count(x, n, DVT_I64), (double)in), *end, *at,
              *in_it;
    end = dvt_floor_div_scalar(dvt_add_scalar(begin, (double)(in + n - 1)), (double)n);
    begin = dvt_floor_div_scalar(begin, (double)n);
    at = dvt_add(dvt_expand_dims(begin, 1), dvti_resize_count(x, most, DVT_I64));
    in_it = dvt_less(at, dvt_expand_dims(end, 1));
    x = dvt_take(x, dvt_minimum_scalar(at, (double)(in - 1)), axis);
    if (axis == 2)
        in_it = dvt_expand_dims(in_it, 2);
    x = dvt_sum(dvt_where_scalar(in_it, x, 0), DVT_AXES(axis + 1));
    end = x ? dvt_as_in_dtype(dvt_sub(end, begin), x->dtype) : NULL;
    return end ? dvt_div(x, axis == 2 ? dvt_expand_dims(end, 1) : end) : NULL;
}

DVT_API dvt_array *dvt_adaptive_avg_pool2d(dvt_array *x, int64_t height, int64_t width) {
    const char *name = "dvt_adaptive_avg_pool2d";
    dvt_scope_guard scope;
    dvt_array *y;
    int64_t size[2];
    int k;
    size[0] = height;
    size[1] = width;
    if (!dvti_resize_ok(name, x, size))
        return NULL;
    scope = dvt_scope_begin();
    y = dvti_compute_float(x);
    if (y && x->shape.dim[2] % height == 0 && x->shape.dim[3] % width == 0 &&
        x->shape.dim[2] / height <= INT_MAX && x->shape.dim[3] / width <= INT_MAX) {
        dvt_pool2d_options p;
        memset(&p, 0, sizeof p);
        p.size[0] = (int)(x->shape.dim[2] / height);
        p.size[1] = (int)(x->shape.dim[3] / width);
        y = dvt_avg_pool2d(y, &p);
    } else
        for (k = 0; y && k < 2; k++)
            y = dvti_adaptive_axis(y, 2 + k, size[k]);
    y = dvt_as_in_dtype(y, dvti_float_dtype(x->dtype));
    dvt_keep(y);
    dvt_scope_end(&scope);
    return y;
}
