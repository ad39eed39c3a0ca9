/* Convolution: parameters, shapes, and the recorded operation. Its two gradients are operations
   too. One axis is a height of 1. Pooling is in op_pool.c. */
#include "4_ops/dvt_op.h"

DVTI_FN void dvti_pair(const int *pair, int first, int *out) {
    out[0] = pair[0] ? pair[0] : first;
    out[1] = pair[1] ? pair[1] : out[0];
}

DVTI_FN void dvti_padding(const int *pair, int *out) {
    int i;
    dvti_pair(pair, 0, out);
    for (i = 0; i < 2; i++)
        if (out[i] == DVT_PAD_NONE)
            out[i] = 0;
}

/* This is the only place that replaces zeros by defaults. */
DVTI_FN bool dvti_conv2d_resolve(const char *name, const dvt_conv2d_options *p, dvti_attr *attr) {
    static const dvt_conv2d_options none = {{0, 0}, {0, 0}, {0, 0}, 0};
    int i, pair[6];
    *attr = dvti_attr_none();
    p = p ? p : &none;
    dvti_pair(p->stride, 1, pair);
    dvti_padding(p->padding, pair + 2);
    dvti_pair(p->dilation, 1, pair + 4);
    for (i = 0; i < 6; i++)
        attr->i[i] = pair[i];
    attr->i[6] = p->groups ? p->groups : 1;
    for (i = 0; i < 7; i++)
        if (attr->i[i] < 0) {
            static const char *const field[] = {"stride", "padding", "dilation", "groups"};
            dvti_fail(DVT_ERR_RANGE, "%s: %s is %lld; expected %s, or 0 for the default", name,
                      field[i / 2], (long long)attr->i[i],
                      i / 2 == 1 ? "a positive number, DVT_PAD_NONE for none"
                                 : "a positive number");
            return false;
        }
    return true;
}

/* Returns the extent of the result along one axis, or -1 with the error set. */
static int64_t dvti_conv2d_extent(const char *name, const char *axis, int64_t x, int64_t w,
                                  int64_t stride, int64_t padding, int64_t dilation) {
    int64_t padded, reach;
    if (!dvti_sum(x, 2 * padding, &padded) || !dvti_mul(w - 1, dilation, &reach) ||
        !dvti_sum(reach, 1, &reach)) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: the %s of the window overflows; use a smaller dilation or padding", name,
                  axis);
        return -1;
    }
    if (reach > padded) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: the window spans a %s of %lld (kernel %lld, dilation %lld), but x with its "
                  "padding has %lld "
                  "(%lld + 2 * %lld); use a smaller kernel or more padding",
                  name, axis, (long long)reach, (long long)w, (long long)dilation,
                  (long long)padded, (long long)x, (long long)padding);
        return -1;
    }
    return (padded - reach) / stride + 1;
}

/* Returns the description of an operand for an error: the array's, or only its shape when array is
   NULL. */
static const char *dvti_conv2d_text(const dvt_array *array, dvt_shape shape) {
    return array ? dvti_describe(array) : dvti_shape_text(shape);
}

/* Computes the result's shape; returns false with the error set. of_x and of_w serve the message
   only and may be NULL. */
static bool dvti_conv2d_shape(const char *name, dvt_shape x, dvt_shape w, const dvt_array *of_x,
                              const dvt_array *of_w, const dvti_attr *attr, dvt_shape *y) {
    int64_t groups = attr->i[6];
    if (x.ndim != 4 || w.ndim != 4) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: x is %s and w is %s; expected x (batch, channels, height, width) and w "
                  "(channels out, channels "
                  "in / groups, height, width); reshape them",
                  name, dvti_conv2d_text(of_x, x), dvti_conv2d_text(of_w, w));
        return false;
    }
    if (x.dim[1] % groups || w.dim[0] % groups) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: %lld groups do not divide the %lld channels of x and the %lld of the result "
                  "(x is %s and w is "
                  "%s); choose a common divisor",
                  name, (long long)groups, (long long)x.dim[1], (long long)w.dim[0],
                  dvti_conv2d_text(of_x, x), dvti_conv2d_text(of_w, w));
        return false;
    }
    if (x.dim[1] / groups != w.dim[1]) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: x is %s and w is %s; with %lld groups w's second extent must be %lld", name,
                  dvti_conv2d_text(of_x, x), dvti_conv2d_text(of_w, w), (long long)groups,
                  (long long)(x.dim[1] / groups));
        return false;
    }
    if (w.dim[2] < 1 || w.dim[3] < 1) {
        dvti_fail(DVT_ERR_SHAPE, "%s: w is %s; expected a kernel of at least 1 x 1", name,
                  dvti_conv2d_text(of_w, w));
        return false;
    }
    *y = x;
    y->dim[1] = w.dim[0];
    y->dim[2] =
        dvti_conv2d_extent(name, "height", x.dim[2], w.dim[2], attr->i[0], attr->i[2], attr->i[4]);
    if (y->dim[2] < 0)
        return false;
    y->dim[3] =
        dvti_conv2d_extent(name, "width", x.dim[3], w.dim[3], attr->i[1], attr->i[3], attr->i[5]);
    return y->dim[3] >= 0;
}

/* Runs and records one of the three operations. `in` is contiguous and of one dtype. */
static dvt_array *dvti_conv2d_launch(const char *name, dvti_op op, dvt_array *const *in, int n,
                                     dvt_shape shape, const dvti_attr *attr, bool relu) {
    dvti_launch launch;
    dvt_array *out = dvti_array_new(name, shape, in[0]->dtype, in[0]->storage->ctx);
    bool fused = relu && dvti_supports(in[0]->storage->device, dvti_kernel_conv2d(), op,
                                       in[0]->dtype, DVTI_CAN_EPILOGUE);
    int i;
    dvti_launch_begin(&launch, name, dvti_kernel_conv2d(), op);
    if (!out)
        return NULL;
    for (i = 0; i < n; i++)
        dvti_view_into(&launch.in[i], in[i]);
    launch.n_in = n;
    dvti_view_into(&launch.out[0], out);
    launch.n_out = 1;
    memcpy(launch.i, attr->i, 7 * sizeof launch.i[0]);
    launch.i[7] = (in[0]->dtype == DVT_F32 && dvti_tf32_allowed() ? 1 : 0) +
                  (dvti_winograd_allowed() ? 2 : 0);
    launch.epilogue.activation = fused ? DVTI_RELU : DVTI_NO_ACTIVATION;
    if (dvt_shape_size(shape) > 0 && dvti_run(out->storage->device, &launch) != DVT_OK)
        return NULL;
    out = dvti_finish(out, op, name, in, n, attr);
    if (fused)
        return dvti_record_epilogue(out, DVTI_OP_relu, "dvt_relu", NULL);
    return out && relu ? dvt_relu(out) : out;
}

DVTI_FN dvt_array *dvti_conv2d_ready(const char *name, dvti_op op, dvt_array *const *in, int n,
                                     dvt_shape shape, const dvti_attr *attr, bool relu) {
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_dtype dtype = in[0]->dtype;
    dvt_array *ready[3], *out = NULL;
    int i;
    for (i = 1; i < n; i++)
        dtype = dvt_promote(dtype, in[i]->dtype);
    for (i = 0; i < n; i++)
        if (!(ready[i] = dvt_contiguous(dvt_as_in_dtype(in[i], dtype))))
            break;
    if (i == n)
        out = (dvt_array *)dvt_keep(dvti_conv2d_launch(name, op, ready, n, shape, attr, relu));
    dvt_scope_end(&scope);
    return out;
}

DVTI_FN dvt_array *dvti_conv2d(dvt_array *x, dvt_array *w, dvt_array *bias, const dvti_attr *attr) {
    dvt_array *in[3];
    dvt_shape shape;
    in[0] = x;
    in[1] = w;
    in[2] = bias;
    if (!dvti_check("dvt_conv2d", in, bias ? 3 : 2) ||
        !dvti_conv2d_shape("dvt_conv2d", x->shape, w->shape, x, w, attr, &shape))
        return NULL;
    return dvti_conv2d_ready("dvt_conv2d", DVTI_OP_conv2d, in, bias ? 3 : 2, shape, attr, false);
}

DVTI_FN bool dvti_conv2d_floats(const char *name, dvt_array *const *in, int n) {
    static const char *const names[] = {"x", "w", "bias"};
    int i;
    for (i = 0; i < n; i++)
        if (!dvt_dtype_is_float(in[i]->dtype)) {
            dvti_fail(DVT_ERR_DTYPE, "%s: %s is %s; expected floats: convert it with dvt_astype",
                      name, names[i], dvti_describe(in[i]));
            return false;
        }
    return dvti_check_named(name, in, n, names);
}

DVTI_FN dvt_shape dvti_conv_image(dvt_shape shape) {
    return shape.ndim == 3 ? DVT_SHAPE(shape.dim[0], shape.dim[1], 1, shape.dim[2]) : shape;
}

DVTI_FN bool dvti_conv_axes_ok(const char *name, int axes, const dvt_array *x, const dvt_array *w,
                               bool transpose) {
    const char *height = axes == 1 ? "" : "height, ";
    if (x->shape.ndim == axes + 2 && w->shape.ndim == axes + 2)
        return true;
    dvti_fail(DVT_ERR_SHAPE,
              "%s: x is %s and w is %s; expected x (batch, channels, %swidth) and w (channels %s, "
              "channels %s / groups, %swidth); reshape them",
              name, dvti_describe(x), dvti_describe(w), height, transpose ? "in" : "out",
              transpose ? "out" : "in", height);
    return false;
}

DVTI_FN bool dvti_conv_accepts(const char *name, dvt_array *x, dvt_shape w,
                               const dvt_conv2d_options *p) {
    dvti_attr attr;
    dvt_shape y;
    return dvti_conv2d_resolve(name, p, &attr) && dvti_conv2d_floats(name, &x, 1) &&
           dvti_conv2d_shape(name, dvti_conv_image(x->shape), dvti_conv_image(w), x, NULL, &attr,
                             &y);
}

DVTI_FN dvt_array *dvti_conv_layer(int axes, dvt_array *x, dvt_array *w, dvt_array *bias,
                                   const dvt_conv2d_options *p, bool relu) {
    const char *name = axes == 1 ? "dvt_conv1d" : "dvt_conv2d";
    dvt_array *in[3], *y = NULL;
    dvti_attr attr;
    dvt_shape shape;
    dvt_scope_guard scope;
    int n = bias ? 3 : 2;
    in[0] = x;
    in[1] = w;
    in[2] = bias;
    if (!x || !w) {
        dvti_null(name, x ? "w" : "x");
        return NULL;
    }
    if (!dvti_conv2d_resolve(name, p, &attr) || !dvti_conv2d_floats(name, in, n))
        return NULL;
    if (bias &&
        (bias->shape.ndim != 1 || w->shape.ndim < 1 || bias->shape.dim[0] != w->shape.dim[0])) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: bias is %s and w is %s; expected one value per channel of the result", name,
                  dvti_describe(bias), dvti_describe(w));
        return NULL;
    }
    if (!dvti_conv_axes_ok(name, axes, x, w, false) ||
        !dvti_conv2d_shape(name, dvti_conv_image(x->shape), dvti_conv_image(w->shape), x, w, &attr,
                           &shape))
        return NULL;
    if (axes == 2)
        return dvti_conv2d_ready(name, DVTI_OP_conv2d, in, n, shape, &attr, relu);
    scope = dvt_scope_begin();
    in[0] = dvt_expand_dims(x, 2);
    in[1] = dvt_expand_dims(w, 2);
    if (in[0] && in[1])
        y = dvti_conv2d_ready(name, DVTI_OP_conv2d, in, n, shape, &attr, relu);
    y = y ? dvt_squeeze(y, DVT_AXES(2)) : NULL;
    dvt_keep(y);
    dvt_scope_end(&scope);
    return y;
}

DVT_API dvt_array *dvt_conv2d(dvt_array *x, dvt_array *w, dvt_array *bias,
                              const dvt_conv2d_options *p) {
    return dvti_optional("dvt_conv2d", "bias", bias) ? dvti_conv_layer(2, x, w, bias, p, false)
                                                     : NULL;
}

DVTI_FN dvt_conv2d_options dvti_conv1d_pairs(const dvt_conv1d_options *p) {
    dvt_conv2d_options pairs;
    memset(&pairs, 0, sizeof pairs);
    pairs.stride[0] = pairs.dilation[0] = 1;
    if (p) {
        pairs.stride[1] = p->stride;
        pairs.padding[1] = p->padding;
        pairs.dilation[1] = p->dilation;
        pairs.groups = p->groups;
    }
    return pairs;
}

DVT_API dvt_array *dvt_conv1d(dvt_array *x, dvt_array *w, dvt_array *bias,
                              const dvt_conv1d_options *p) {
    const dvt_conv2d_options pairs = dvti_conv1d_pairs(p);
    return dvti_optional("dvt_conv1d", "bias", bias) ? dvti_conv_layer(1, x, w, bias, &pairs, false)
                                                     : NULL;
}

/* Checks the shapes of a gradient against those of the forward call. Other shapes would read beyond
   a buffer. */
static bool dvti_conv2d_agree(const char *name, dvt_shape x, dvt_shape w, dvt_shape g,
                              const dvti_attr *attr) {
    dvt_shape y;
    if (!dvti_conv2d_shape(name, x, w, NULL, NULL, attr, &y))
        return false;
    if (!dvt_shape_equal(y, g)) {
        dvti_fail(DVT_ERR_SHAPE, "%s: the gradient has shape %s; expected %s, that of the result",
                  name, dvti_shape_text(g), dvti_shape_text(y));
        return false;
    }
    return true;
}

DVTI_FN dvt_array *dvti_conv2d_data(dvt_array *g, dvt_array *w, dvt_shape x_shape,
                                    const dvti_attr *attr) {
    dvt_array *in[2];
    in[0] = g;
    in[1] = w;
    if (!dvti_check("dvt_conv2d", in, 2) ||
        !dvti_conv2d_agree("dvt_conv2d", x_shape, w->shape, g->shape, attr))
        return NULL;
    return dvti_conv2d_ready("dvt_conv2d", DVTI_OP_conv2d_data, in, 2, x_shape, attr, false);
}

DVTI_FN dvt_array *dvti_conv2d_weight(dvt_array *x, dvt_array *g, dvt_shape w_shape,
                                      const dvti_attr *attr) {
    dvt_array *in[2];
    in[0] = x;
    in[1] = g;
    if (!dvti_check("dvt_conv2d", in, 2) ||
        !dvti_conv2d_agree("dvt_conv2d", x->shape, w_shape, g->shape, attr))
        return NULL;
    return dvti_conv2d_ready("dvt_conv2d", DVTI_OP_conv2d_weight, in, 2, w_shape, attr, false);
}
