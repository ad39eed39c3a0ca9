/* Transposed convolution: the gradient of a convolution to its data, as an operation of its own.
   Its x plays the gradient, so conv2d_data and its gradients compute everything. */
#include "4_ops/dvt_op.h"

/* Returns the extent of the result along axis k (0: height, 1: width), or -1 with the error set. */
static int64_t dvti_deconv_extent(const char *name, int k, int64_t x, int64_t w,
                                  const dvti_attr *attr, int output_padding) {
    const char *axis = k ? "width" : "height";
    int64_t stride = attr->i[k], padding = attr->i[2 + k], reach, y;
    if (output_padding < 0 || output_padding >= stride) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: along the %s, output_padding is %d and stride %lld; expected 0 or more, and "
                  "less than the stride",
                  name, axis, output_padding, (long long)stride);
        return -1;
    }
    if (x < 1 || w < 1) {
        dvti_fail(DVT_ERR_SHAPE, "%s: the %s of x is %lld and that of w %lld; expected at least 1",
                  name, axis, (long long)x, (long long)w);
        return -1;
    }
    if (!dvti_mul(x - 1, stride, &y) || !dvti_mul(w - 1, attr->i[4 + k], &reach) ||
        !dvti_sum(y, reach, &y) || !dvti_sum(y, 1 + output_padding, &y)) {
        dvti_fail(DVT_ERR_SHAPE, "%s: the %s of the result overflows; use a smaller stride", name,
                  axis);
        return -1;
    }
    if (y > 2 * padding)
        return y - 2 * padding;
    dvti_fail(DVT_ERR_SHAPE,
              "%s: the %s of the result is %lld - 2 * %lld; expected at least 1: use less padding",
              name, axis, (long long)y, (long long)padding);
    return -1;
}

/* Computes the result's shape for images; returns false with the error set. of_w serves the message
   only and may be NULL. */
static bool dvti_deconv_shape(const char *name, const dvt_array *of_x, dvt_shape w,
                              const dvt_array *of_w, const dvti_attr *attr,
                              const int *output_padding, dvt_shape *y) {
    dvt_shape x = dvti_conv_image(of_x->shape);
    int64_t groups = attr->i[6];
    int k;
    if (x.dim[1] != w.dim[0] || x.dim[1] % groups) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: x is %s and w is %s; expected the channels of x as first extent of w, in a "
                  "number that groups (%lld) divide",
                  name, dvti_describe(of_x), of_w ? dvti_describe(of_w) : dvti_shape_text(w),
                  (long long)groups);
        return false;
    }
    *y = x;
    if (!dvti_mul(w.dim[1], groups, &y->dim[1]))
        return false; /* not reached: groups divides an extent, and w's fit in memory */
    for (k = 0; k < 2; k++) {
        y->dim[2 + k] =
            dvti_deconv_extent(name, k, x.dim[2 + k], w.dim[2 + k], attr, output_padding[k]);
        if (y->dim[2 + k] < 0)
            return false;
    }
    return true;
}

DVTI_FN bool dvti_deconv_accepts(const char *name, dvt_array *x, dvt_shape w,
                                 const dvt_conv2d_options *p, const int *output_padding) {
    dvti_attr attr;
    dvt_shape y;
    return dvti_conv2d_resolve(name, p, &attr) && dvti_conv2d_floats(name, &x, 1) &&
           dvti_deconv_shape(name, x, dvti_conv_image(w), NULL, &attr, output_padding, &y);
}

static dvt_array *dvti_deconv_run(const char *name, int axes, dvt_array **in, dvt_array *bias,
                                  dvt_shape shape, const dvti_attr *attr) {
    dvt_array *y = NULL;
    int k;
    for (k = 0; axes == 1 && k < 2; k++)
        in[k] = dvt_expand_dims(in[k], 2);
    if (in[0] && in[1])
        y = dvti_conv2d_ready(name, DVTI_OP_conv2d_data, in, 2, shape, attr, false);
    if (y && bias)
        y = dvt_add(y, dvti_along(bias, y, 1));
    return y && axes == 1 ? dvt_squeeze(y, DVT_AXES(2)) : y;
}

DVTI_FN dvt_array *dvti_deconv(int axes, dvt_array *x, dvt_array *w, dvt_array *bias,
                               const dvt_conv2d_options *p, const int *output_padding) {
    const char *name = axes == 1 ? "dvt_conv1d_transpose" : "dvt_conv2d_transpose";
    dvt_array *in[3], *y;
    dvti_attr attr;
    dvt_shape shape;
    dvt_scope_guard scope;
    in[0] = x;
    in[1] = w;
    in[2] = bias;
    if (!x || !w) {
        dvti_null(name, x ? "w" : "x");
        return NULL;
    }
    if (!dvti_conv2d_resolve(name, p, &attr) || !dvti_conv2d_floats(name, in, bias ? 3 : 2) ||
        !dvti_conv_axes_ok(name, axes, x, w, true) ||
        !dvti_deconv_shape(name, x, dvti_conv_image(w->shape), w, &attr, output_padding, &shape))
        return NULL;
    if (bias && (bias->shape.ndim != 1 || bias->shape.dim[0] != shape.dim[1])) {
        dvti_fail(DVT_ERR_SHAPE,
                  "%s: bias is %s; expected shape (%lld,), one value per channel of the result",
                  name, dvti_describe(bias), (long long)shape.dim[1]);
        return NULL;
    }
    scope = dvt_scope_begin();
    y = dvti_deconv_run(name, axes, in, bias, shape, &attr);
    dvt_keep(y);
    dvt_scope_end(&scope);
    return y;
}

DVT_API dvt_array *dvt_conv2d_transpose(dvt_array *x, dvt_array *w, dvt_array *bias,
                                        const dvt_conv2d_transpose_options *p) {
    dvt_conv2d_options options;
    int output_padding[2] = {0, 0};
    memset(&options, 0, sizeof options);
    if (p) {
        options = p->conv;
        dvti_padding(p->output_padding, output_padding);
    }
    return dvti_optional("dvt_conv2d_transpose", "bias", bias)
               ? dvti_deconv(2, x, w, bias, &options, output_padding)
               : NULL;
}

DVT_API dvt_array *dvt_conv1d_transpose(dvt_array *x, dvt_array *w, dvt_array *bias,
                                        const dvt_conv1d_transpose_options *p) {
    const dvt_conv2d_options options = dvti_conv1d_pairs(p ? &p->conv : NULL);
    int output_padding[2] = {0, 0};
    output_padding[1] = p ? p->output_padding : 0;
    return dvti_optional("dvt_conv1d_transpose", "bias", bias)
               ? dvti_deconv(1, x, w, bias, &options, output_padding)
               : NULL;
}
