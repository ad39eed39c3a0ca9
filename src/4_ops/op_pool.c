/* Pooling: parameters, shapes, and the recorded operations, which are each other's gradients.
   Windows are clipped to x: padding is never the maximum, and counts in a mean only on request. */
#include "4_ops/dvt_op.h"

DVTI_FN void dvti_pool2d_pairs(const dvt_pool2d_options *p, int *size, int *stride, int *padding) {
    dvti_pair(p->size, 0, size);
    if (p->stride[0] == 0 && p->stride[1] == 0)
        memcpy(stride, size, 2 * sizeof *stride);
    else
        dvti_pair(p->stride, size[0], stride);
    dvti_padding(p->padding, padding);
}

DVTI_FN dvt_pool2d_options dvti_pool1d_pairs(const dvt_pool1d_options *p) {
    dvt_pool2d_options pairs;
    memset(&pairs, 0, sizeof pairs);
    pairs.size[0] = p->size != 0; /* (0, 0) is refused; (1, 0) would mean (1, 1) */
    pairs.stride[0] = 1;
    pairs.size[1] = p->size;
    pairs.stride[1] = p->stride ? p->stride : p->size;
    pairs.padding[1] = p->padding;
    pairs.ceil_mode = p->ceil_mode;
    pairs.exclude_padding = p->exclude_padding;
    pairs.global = p->global;
    return pairs;
}

/* Replaces zeros by defaults, in this one place. A global pooling takes its window from x. */
static void dvti_pool2d_resolve(const dvt_pool2d_options *p, const dvt_array *x, dvti_attr *attr) {
    int i, pair[6];
    *attr = dvti_attr_none();
    if (!p->global) {
        dvti_pool2d_pairs(p, pair, pair + 2, pair + 4);
        for (i = 0; i < 6; i++)
            attr->i[i] = pair[i];
    } else
        for (i = 0; i < 2; i++) {
            attr->i[i] = x->shape.dim[2 + i];
            attr->i[2 + i] = 1;
        }
    attr->i[6] = p->exclude_padding;
}

static bool dvti_pool2d_valid(const char *name, const dvti_attr *attr) {
    int i;
    for (i = 0; i < 2; i++) {
        int64_t size = attr->i[i], stride = attr->i[2 + i], padding = attr->i[4 + i];
        const char *axis = i ? "width" : "height";
        if (size < 1 || stride < 1) {
            dvti_fail(DVT_ERR_RANGE,
                      "%s: along the %s, size is %lld and stride %lld; expected at least 1 (a "
                      "stride of 0 means the "
                      "size)",
                      name, axis, (long long)size, (long long)stride);
            return false;
        }
        if (padding < 0 || padding > size / 2) {
            dvti_fail(DVT_ERR_RANGE,
                      "%s: along the %s, padding is %lld; expected 0 to %lld, half the size of the "
                      "window",
                      name, axis, (long long)padding, (long long)(size / 2));
            return false;
        }
    }
    return true;
}

/* Returns the number of windows along one axis, or -1 with the error set. */
static int64_t dvti_pool2d_extent(const char *name, const char *axis, int64_t x, int64_t size,
                                  int64_t stride, int64_t padding, bool ceil_mode) {
    int64_t padded = x, n;
    if (!dvti_sum(x, 2 * padding, &padded) || x < 1 || size > padded) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: x has a %s of %lld, with padding on both sides %lld; expected at least 1 "
                  "and at least the window's %lld",
                  name, axis, (long long)x, (long long)padded, (long long)size);
        return -1;
    }
    n = (padded - size) / stride + 1;
    /* ceil_mode rounds up when the additional window still begins inside x. */
    if (ceil_mode && (padded - size) % stride && n <= (x + padding - 1) / stride)
        n++;
    return n;
}

static bool dvti_pool2d_begin(const char *name, dvt_array *x, const dvt_pool2d_options *p,
                              dvti_attr *attr) {
    int i;
    if (!x || !p) {
        dvti_null(name, x ? "p" : "x");
        return false;
    }
    if (x->shape.ndim != 4) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: x is %s; expected (batch, channels, height, width): reshape it", name,
                  dvti_describe(x));
        return false;
    }
    if (!dvt_dtype_is_float(x->dtype)) {
        dvti_fail(DVT_ERR_DTYPE, "%s: x is %s; expected floats: convert it with dvt_astype", name,
                  dvti_describe(x));
        return false;
    }
    dvti_pool2d_resolve(p, x, attr);
    if (p->global && (attr->i[0] < 1 || attr->i[1] < 1)) {
        dvti_fail(DVT_ERR_SHAPE, "%s: x is %s; expected a height and width of at least 1", name,
                  dvti_describe(x));
        return false;
    }
    if (!dvti_pool2d_valid(name, attr))
        return false;
    for (i = 0; i < 2; i++) {
        attr->i[7 + i] =
            dvti_pool2d_extent(name, i ? "width" : "height", x->shape.dim[2 + i], attr->i[i],
                               attr->i[2 + i], attr->i[4 + i], p->ceil_mode);
        if (attr->i[7 + i] < 0)
            return false;
    }
    return true;
}

/* Makes the inputs contiguous (copies are recorded), launches, and records. */
static dvt_array *dvti_pool2d_run(const char *name, dvti_op op, dvt_array *const *in, int n,
                                  dvt_shape shape, const dvti_attr *attr) {
    dvti_launch launch;
    dvt_array *ready[2], *out;
    int i;
    dvti_launch_begin(&launch, name, dvti_kernel_pool2d(), op);
    if (!dvti_check(name, in, n))
        return NULL;
    for (i = 0; i < n; i++) {
        if (!(ready[i] = dvt_contiguous(in[i])))
            return NULL;
        dvti_view_into(&launch.in[i], ready[i]);
    }
    out = dvti_array_new(name, shape, in[0]->dtype, in[0]->storage->ctx);
    if (!out)
        return NULL;
    launch.n_in = n;
    dvti_view_into(&launch.out[0], out);
    launch.n_out = 1;
    memcpy(launch.i, attr->i, 7 * sizeof launch.i[0]);
    launch.i[7] = attr->i[9];
    if (dvt_shape_size(shape) > 0 && dvti_run(out->storage->device, &launch) != DVT_OK)
        return NULL;
    return dvti_finish(out, op, name, ready, n, attr);
}

static dvt_array *dvti_pool2d(const char *name, dvti_op op, dvt_array *const *in, int n,
                              dvt_shape shape, const dvti_attr *attr) {
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_array *out = (dvt_array *)dvt_keep(dvti_pool2d_run(name, op, in, n, shape, attr));
    dvt_scope_end(&scope);
    return out;
}

/* Returns the shape of the result of pooling x. */
static dvt_shape dvti_pool2d_result(dvt_shape x, const dvti_attr *attr) {
    x.dim[2] = attr->i[7];
    x.dim[3] = attr->i[8];
    return x;
}

DVT_API dvt_array *dvt_max_pool2d(dvt_array *x, const dvt_pool2d_options *p) {
    dvti_attr attr;
    if (!dvti_pool2d_begin("dvt_max_pool2d", x, p, &attr))
        return NULL;
    return dvti_pool2d("dvt_max_pool2d", DVTI_OP_max_pool2d, &x, 1,
                       dvti_pool2d_result(x->shape, &attr), &attr);
}

DVT_API dvt_array *dvt_avg_pool2d(dvt_array *x, const dvt_pool2d_options *p) {
    dvti_attr attr;
    return dvti_pool2d_begin("dvt_avg_pool2d", x, p, &attr) ? dvti_avg_pool2d(x, &attr) : NULL;
}

DVTI_FN dvt_array *dvti_avg_pool2d(dvt_array *x, const dvti_attr *attr) {
    if (!dvti_check("dvt_avg_pool2d", &x, 1))
        return NULL;
    return dvti_pool2d("dvt_avg_pool2d", DVTI_OP_avg_pool2d, &x, 1,
                       dvti_pool2d_result(x->shape, attr), attr);
}

/* Pools images of height 1. */
static dvt_array *dvti_pool1d(const char *name, dvt_array *x, const dvt_pool1d_options *p,
                              bool average) {
    dvt_pool2d_options pairs;
    dvt_scope_guard scope;
    dvti_attr attr;
    dvt_array *y = NULL;
    if (!x || !p) {
        dvti_null(name, x ? "p" : "x");
        return NULL;
    }
    if (x->shape.ndim != 3) {
        dvti_fail(DVT_ERR_SHAPE, "%s: x is %s; expected (batch, channels, width): reshape it", name,
                  dvti_describe(x));
        return NULL;
    }
    pairs = dvti_pool1d_pairs(p);
    scope = dvt_scope_begin();
    x = dvt_expand_dims(x, 2);
    if (x && dvti_pool2d_begin(name, x, &pairs, &attr))
        y = dvti_pool2d(name, average ? DVTI_OP_avg_pool2d : DVTI_OP_max_pool2d, &x, 1,
                        dvti_pool2d_result(x->shape, &attr), &attr);
    y = y ? dvt_squeeze(y, DVT_AXES(2)) : NULL;
    dvt_keep(y);
    dvt_scope_end(&scope);
    return y;
}

DVT_API dvt_array *dvt_max_pool1d(dvt_array *x, const dvt_pool1d_options *p) {
    return dvti_pool1d("dvt_max_pool1d", x, p, false);
}

DVT_API dvt_array *dvt_avg_pool1d(dvt_array *x, const dvt_pool1d_options *p) {
    return dvti_pool1d("dvt_avg_pool1d", x, p, true);
}

/* Checks the shape of a gradient against that of the forward call, before anything reads it. */
static bool dvti_pool2d_agree(const char *name, dvt_shape given, dvt_shape expected) {
    if (dvt_shape_equal(given, expected))
        return true;
    dvti_fail(DVT_ERR_SHAPE, "%s: the gradient has shape %s; expected %s", name,
              dvti_shape_text(given), dvti_shape_text(expected));
    return false;
}

DVTI_FN dvt_array *dvti_avg_pool2d_data(dvt_array *g, dvt_shape x_shape, const dvti_attr *attr) {
    if (!dvti_check("dvt_avg_pool2d", &g, 1) ||
        !dvti_pool2d_agree("dvt_avg_pool2d", g->shape, dvti_pool2d_result(x_shape, attr)))
        return NULL;
    return dvti_pool2d("dvt_avg_pool2d", DVTI_OP_avg_pool2d_data, &g, 1, x_shape, attr);
}

static dvt_array *dvti_max_pool2d_pair(dvti_op op, dvt_array *a, dvt_array *x,
                                       const dvti_attr *attr) {
    bool pick = op == DVTI_OP_max_pool2d_pick;
    dvt_array *in[2];
    dvt_shape result;
    in[0] = a;
    in[1] = x;
    if (!dvti_check("dvt_max_pool2d", in, 2))
        return NULL;
    result = dvti_pool2d_result(x->shape, attr);
    if (!dvti_pool2d_agree("dvt_max_pool2d", a->shape, pick ? x->shape : result))
        return NULL;
    in[0] = dvt_as_in_dtype(a, x->dtype);
    return dvti_pool2d("dvt_max_pool2d", op, in, 2, pick ? result : x->shape, attr);
}

DVTI_FN dvt_array *dvti_max_pool2d_data(dvt_array *g, dvt_array *x, const dvti_attr *attr,
                                        bool relu_masked) {
    dvti_attr with = *attr;
    with.i[9] = relu_masked;
    return dvti_max_pool2d_pair(DVTI_OP_max_pool2d_data, g, x, &with);
}

DVTI_FN dvt_array *dvti_max_pool2d_pick(dvt_array *v, dvt_array *x, const dvti_attr *attr) {
    return dvti_max_pool2d_pair(DVTI_OP_max_pool2d_pick, v, x, attr);
}
