/* Conv1D, Conv2D and their transposes: one block with different settings, which are checked once,
   when it is made. Printing and computing resolve pairs with the same functions, dvti_pair and
   dvti_padding. */
#include "6_nn/dvt_nn_internal.h"

DVTI_FN bool dvti_nn_pair_ok(const char *function, const char *what, const int *pair, int least) {
    if (pair[0] >= least && pair[1] >= least)
        return true;
    dvti_fail(DVT_ERR_RANGE, "%s: %s is (%d, %d); expected at least %d in both places", function,
              what, pair[0], pair[1], least);
    return false;
}

/* One axis is the second place of each pair, with 1 or 0 in the first. */
typedef struct dvti_conv_settings {
    dvt_nn_conv2d_desc d;
    int output_padding[2];
    int axes; /* 1 or 2 */
    bool transpose;
} dvti_conv_settings;

static const char *dvti_conv_block_axes(const dvti_conv_settings *c) {
    return c->axes == 1 ? "width" : "height, width";
}

/* Returns the shape of the weight: (out, in / groups, ...), transposed (in, out / groups, ...). */
static dvt_shape dvti_conv_block_weight(const dvti_conv_settings *c, int64_t in) {
    const dvt_nn_conv2d_desc *d = &c->d;
    int64_t first = c->transpose ? in : d->channels, second = c->transpose ? d->channels : in;
    second /= d->options.groups;
    return c->axes == 1 ? DVT_SHAPE(first, second, d->kernel[1])
                        : DVT_SHAPE(first, second, d->kernel[0], d->kernel[1]);
}

/* Checks that x is a batch of images, or rows, with this number of channels. */
static bool dvti_conv_block_accepts(const dvti_conv_settings *c, const dvt_array *x,
                                    int64_t channels) {
    bool axes = x->shape.ndim == c->axes + 2;
    bool nhwc = axes && x->shape.dim[c->axes + 1] == channels;
    if (axes && x->shape.dim[1] == channels)
        return true;
    dvti_fail(DVT_ERR_SHAPE,
              "x is %s; expected (batch, %lld, %s): %s, or make the block for other channels",
              dvti_describe(x), (long long)channels, dvti_conv_block_axes(c),
              nhwc ? "transpose it with dvt_transpose" : "reshape it");
    return false;
}

static dvt_array *dvti_conv_block_forward(dvt_block *self, void *user, dvt_array *x) {
    const dvti_conv_settings *c = (const dvti_conv_settings *)user;
    const dvt_nn_conv2d_desc *d = &c->d;
    dvt_ctx ctx = dvt_ctx_of(x);
    dvt_array *w = dvt_block_data(self, "weight", ctx), *b = NULL;
    if (!w || (!d->no_bias && !(b = dvt_block_data(self, "bias", ctx))))
        return NULL;
    if (!dvti_conv_block_accepts(
            c, x, c->transpose ? w->shape.dim[0] : w->shape.dim[1] * d->options.groups))
        return NULL;
    if (c->transpose)
        x = dvti_deconv(c->axes, x, w, b, &d->options, c->output_padding);
    else
        x = dvti_conv_layer(c->axes, x, w, b, &d->options, d->activation == DVT_RELU);
    if (!x || (d->activation == DVT_RELU && !c->transpose))
        return x;
    return dvti_activate(x, d->activation);
}

static dvt_status dvti_conv_block_infer(dvt_block *self, void *user, dvt_array *x) {
    const dvti_conv_settings *c = (const dvti_conv_settings *)user;
    const dvt_conv2d_options *p = &c->d.options;
    dvt_shape w;
    if (x->shape.ndim != c->axes + 2 || x->shape.dim[1] == 0 || x->shape.dim[1] % p->groups != 0)
        return dvti_fail(DVT_ERR_SHAPE,
                         "in_channels cannot be inferred from x %s; expected (batch, channels, "
                         "%s) with channels that groups (%d) divide",
                         dvti_describe(x), dvti_conv_block_axes(c), p->groups);
    w = dvti_conv_block_weight(c, x->shape.dim[1]);
    if (c->transpose
            ? !dvti_deconv_accepts(c->axes == 1 ? "dvt_conv1d_transpose" : "dvt_conv2d_transpose",
                                   x, w, p, c->output_padding)
            : !dvti_conv_accepts(c->axes == 1 ? "dvt_conv1d" : "dvt_conv2d", x, w, p))
        return dvti_failure();
    return dvt_param_set_shape(dvt_block_param(self, "weight"), w);
}

/* Adds ", what=(3, 3)", or "(3,)" for one axis. */
static void dvti_conv_block_pair(dvti_text *text, const dvti_conv_settings *c, const char *what,
                                 const int *pair) {
    if (c->axes == 1)
        dvti_text_add(text, ", %s=(%d,)", what, pair[1]);
    else
        dvti_text_add(text, ", %s=(%d, %d)", what, pair[0], pair[1]);
}

/* Describes the block as Gluon does, which prints the weight's second extent as number of inputs.
   The transposes print the number itself. */
static size_t dvti_conv_block_describe(const dvt_block *self, void *user, char *buffer,
                                       size_t size) {
    const dvti_conv_settings *c = (const dvti_conv_settings *)user;
    const dvt_nn_conv2d_desc *d = &c->d;
    const dvt_conv2d_options *p = &d->options;
    int64_t in = dvt_param_shape(self->param[0]).dim[c->transpose ? 0 : 1];
    dvti_text text = dvti_text_begin(buffer, size);
    int padding[2];
    dvti_text_add(&text, "%s(", self->desc.kind);
    if (in)
        dvti_text_add(&text, "%lld", (long long)in);
    else
        dvti_text_add(&text, "None");
    dvti_text_add(&text, " -> %lld", (long long)d->channels);
    dvti_conv_block_pair(&text, c, "kernel_size", d->kernel);
    dvti_conv_block_pair(&text, c, "stride", p->stride);
    dvti_padding(p->padding, padding);
    if (padding[0] || padding[1])
        dvti_conv_block_pair(&text, c, "padding", padding);
    if (p->dilation[0] != 1 || p->dilation[1] != 1)
        dvti_conv_block_pair(&text, c, "dilation", p->dilation);
    if (c->output_padding[0] || c->output_padding[1])
        dvti_conv_block_pair(&text, c, "output_padding", c->output_padding);
    if (p->groups != 1)
        dvti_text_add(&text, ", groups=%d", p->groups);
    if (d->no_bias)
        dvti_text_add(&text, ", bias=False");
    if (d->activation != DVT_IDENTITY)
        dvti_text_add(&text, ", %s", dvti_activation_text(d->activation));
    dvti_text_add(&text, ")");
    return text.length;
}

/* Fills in the defaults and checks the settings. The padding stays as given: the operation resolves
   it. */
static bool dvti_conv_block_resolve(const char *function, dvti_conv_settings *c) {
    dvt_nn_conv2d_desc *d = &c->d;
    int padding[2], k;
    dvti_pair(d->kernel, 0, d->kernel);
    dvti_pair(d->options.stride, 1, d->options.stride);
    dvti_pair(d->options.dilation, 1, d->options.dilation);
    dvti_padding(d->options.padding, padding);
    dvti_padding(c->output_padding, c->output_padding);
    if (d->options.groups == 0)
        d->options.groups = 1;
    if (!dvti_nn_pair_ok(function, "kernel", d->kernel, 1) ||
        !dvti_nn_pair_ok(function, "stride", d->options.stride, 1) ||
        !dvti_nn_pair_ok(function, "padding", padding, 0) ||
        !dvti_nn_pair_ok(function, "dilation", d->options.dilation, 1) ||
        !dvti_nn_pair_ok(function, "output_padding", c->output_padding, 0))
        return false;
    for (k = 0; k < 2; k++)
        if (c->output_padding[k] >= d->options.stride[k]) {
            dvti_fail(DVT_ERR_RANGE,
                      "%s: output_padding is (%d, %d) and stride (%d, %d); expected less than the "
                      "stride",
                      function, c->output_padding[0], c->output_padding[1], d->options.stride[0],
                      d->options.stride[1]);
            return false;
        }
    if (d->channels < 1 || d->in_channels < 0 || d->options.groups < 1 ||
        d->channels % d->options.groups != 0 || d->in_channels % d->options.groups != 0) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: %lld channels from %lld in %d groups; expected at least 1 channel, and both "
                  "numbers divisible by groups",
                  function, (long long)d->channels, (long long)d->in_channels, d->options.groups);
        return false;
    }
    if (!dvt_dtype_is_float(d->dtype)) {
        dvti_fail(DVT_ERR_DTYPE, "%s: dtype %s; expected a float dtype", function,
                  dvt_dtype_name(d->dtype));
        return false;
    }
    return dvti_activation_ok(function, d->activation);
}

static dvt_block *dvti_conv_block_make(const char *function, dvti_conv_settings *c) {
    static const char *const names[2][2] = {{"Conv1D", "Conv1DTranspose"},
                                            {"Conv2D", "Conv2DTranspose"}};
    dvti_nn_kind kind = {NULL, "conv", dvti_conv_block_forward, dvti_conv_block_infer,
                         dvti_conv_block_describe};
    dvt_block *block;
    if (!dvti_conv_block_resolve(function, c))
        return NULL;
    kind.kind = names[c->axes - 1][c->transpose];
    block = dvti_nn_block(function, &kind, c, sizeof *c);
    if (block && (!dvt_block_add_param(block, "weight", dvti_conv_block_weight(c, c->d.in_channels),
                                       c->d.dtype, c->d.weight_init) ||
                  (!c->d.no_bias && !dvt_block_add_param(block, "bias", DVT_SHAPE(c->d.channels),
                                                         c->d.dtype, c->d.bias_init))))
        return dvti_block_discard(block);
    return block;
}

/* Returns the settings of the short constructors. */
static dvti_conv_settings dvti_conv_settings_of(int axes, bool transpose, int64_t channels,
                                                int kernel, int stride, dvt_activation activation) {
    dvti_conv_settings c;
    memset(&c, 0, sizeof c);
    c.axes = axes;
    c.transpose = transpose;
    c.d.channels = channels;
    c.d.kernel[axes == 1] = kernel;
    c.d.options.stride[axes == 1] = stride;
    c.d.activation = activation;
    if (axes == 1) {
        c.d.kernel[0] = kernel != 0; /* (0, 0) is refused; (1, 0) would mean (1, 1) */
        c.d.options.stride[0] = c.d.options.dilation[0] = 1;
    }
    return c;
}

/* Copies the fields that all descriptors have. */
#define DVTI_CONV_BLOCK_FIELDS(c, desc)                                                            \
    ((c).d.in_channels = (desc)->in_channels, (c).d.no_bias = (desc)->no_bias,                     \
     (c).d.weight_init = (desc)->weight_init, (c).d.bias_init = (desc)->bias_init,                 \
     (c).d.dtype = (desc)->dtype)

static dvt_block *dvti_conv1d_block(const char *function, const dvt_nn_conv1d_desc *desc,
                                    bool transpose) {
    dvti_conv_settings c;
    if (!desc) {
        dvti_null(function, "desc");
        return NULL;
    }
    c = dvti_conv_settings_of(1, transpose, desc->channels, desc->kernel, 0, desc->activation);
    DVTI_CONV_BLOCK_FIELDS(c, desc);
    c.d.options = dvti_conv1d_pairs(&desc->options);
    c.output_padding[1] = desc->output_padding;
    if (desc->output_padding && !transpose) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: output_padding is %d; expected 0: only transposed convolutions have one",
                  function, desc->output_padding);
        return NULL;
    }
    return dvti_conv_block_make(function, &c);
}

DVT_API dvt_block *dvt_nn_conv2d_with(const dvt_nn_conv2d_desc *desc) {
    dvti_conv_settings c = dvti_conv_settings_of(2, false, 0, 0, 0, DVT_IDENTITY);
    if (!desc) {
        dvti_null("dvt_nn_conv2d_with", "desc");
        return NULL;
    }
    c.d = *desc;
    return dvti_conv_block_make("dvt_nn_conv2d_with", &c);
}

DVT_API dvt_block *dvt_nn_conv2d(int64_t channels, int kernel, dvt_activation activation) {
    dvti_conv_settings c = dvti_conv_settings_of(2, false, channels, kernel, 0, activation);
    return dvti_conv_block_make("dvt_nn_conv2d", &c);
}

DVT_API dvt_block *dvt_nn_conv2d_transpose_with(const dvt_nn_conv2d_transpose_desc *desc) {
    dvti_conv_settings c = dvti_conv_settings_of(2, true, 0, 0, 0, DVT_IDENTITY);
    if (!desc) {
        dvti_null("dvt_nn_conv2d_transpose_with", "desc");
        return NULL;
    }
    c.d.channels = desc->channels;
    memcpy(c.d.kernel, desc->kernel, sizeof c.d.kernel);
    c.d.activation = desc->activation;
    DVTI_CONV_BLOCK_FIELDS(c, desc);
    c.d.options = desc->options.conv;
    memcpy(c.output_padding, desc->options.output_padding, sizeof c.output_padding);
    return dvti_conv_block_make("dvt_nn_conv2d_transpose_with", &c);
}

DVT_API dvt_block *dvt_nn_conv2d_transpose(int64_t channels, int kernel, int stride,
                                           dvt_activation activation) {
    dvti_conv_settings c = dvti_conv_settings_of(2, true, channels, kernel, stride, activation);
    return dvti_conv_block_make("dvt_nn_conv2d_transpose", &c);
}

DVT_API dvt_block *dvt_nn_conv1d_with(const dvt_nn_conv1d_desc *desc) {
    return dvti_conv1d_block("dvt_nn_conv1d_with", desc, false);
}

DVT_API dvt_block *dvt_nn_conv1d(int64_t channels, int kernel, dvt_activation activation) {
    dvti_conv_settings c = dvti_conv_settings_of(1, false, channels, kernel, 0, activation);
    return dvti_conv_block_make("dvt_nn_conv1d", &c);
}

DVT_API dvt_block *dvt_nn_conv1d_transpose_with(const dvt_nn_conv1d_desc *desc) {
    return dvti_conv1d_block("dvt_nn_conv1d_transpose_with", desc, true);
}

DVT_API dvt_block *dvt_nn_conv1d_transpose(int64_t channels, int kernel, int stride,
                                           dvt_activation activation) {
    dvti_conv_settings c = dvti_conv_settings_of(1, true, channels, kernel, stride, activation);
    return dvti_conv_block_make("dvt_nn_conv1d_transpose", &c);
}

#undef DVTI_CONV_BLOCK_FIELDS
