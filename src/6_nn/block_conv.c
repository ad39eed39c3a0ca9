/* Conv2D and pooling. Settings are checked once, when the block is made. Printing and computing
   resolve pairs with the same functions, dvti_pair and dvti_padding. */
#include "6_nn/dvt_nn_internal.h"

static void *dvti_nn_conv_state(const char *function, const void *settings, size_t bytes) {
    void *state = dvti_alloc(bytes);
    if (state)
        memcpy(state, settings, bytes);
    else
        dvti_fail_memory(function, (int64_t)bytes);
    return state;
}

static bool dvti_nn_pair_ok(const char *function, const char *what, const int *pair, int least) {
    if (pair[0] >= least && pair[1] >= least)
        return true;
    dvti_fail(DVT_ERR_RANGE, "%s: %s is (%d, %d); expected at least %d in both places", function,
              what, pair[0], pair[1], least);
    return false;
}

/* ---- Conv2D ---- */
/* Checks that x is a batch of images with this number of channels. */
static bool dvti_conv_block_accepts(const dvt_array *x, int64_t channels) {
    if (x->shape.ndim == 4 && x->shape.dim[1] == channels)
        return true;
    dvti_fail(DVT_ERR_SHAPE,
              "x is %s; expected (batch, %lld, height, width): reshape it, or make the block for "
              "other channels",
              dvti_describe(x), (long long)channels);
    return false;
}

static dvt_array *dvti_conv_block_forward(dvt_block *self, void *user, dvt_array *x) {
    const dvt_nn_conv2d_desc *d = (const dvt_nn_conv2d_desc *)user;
    dvt_ctx ctx = dvt_ctx_of(x);
    dvt_array *w = dvt_block_data(self, "weight", ctx), *b = NULL;
    if (!w || (!d->no_bias && !(b = dvt_block_data(self, "bias", ctx))))
        return NULL;
    if (!dvti_conv_block_accepts(x, w->shape.dim[1] * d->options.groups))
        return NULL;
    x = dvti_conv2d_layer(x, w, b, &d->options, d->activation == DVT_RELU);
    return x && d->activation != DVT_RELU ? dvti_activate(x, d->activation) : x;
}

static dvt_status dvti_conv_block_infer(dvt_block *self, void *user, dvt_array *x) {
    const dvt_nn_conv2d_desc *d = (const dvt_nn_conv2d_desc *)user;
    dvt_shape w;
    if (x->shape.ndim != 4 || x->shape.dim[1] == 0 || x->shape.dim[1] % d->options.groups != 0)
        return dvti_fail(DVT_ERR_SHAPE,
                         "in_channels cannot be inferred from x %s; expected (batch, channels, "
                         "height, width) with channels that groups (%d) divide",
                         dvti_describe(x), d->options.groups);
    w = DVT_SHAPE(d->channels, x->shape.dim[1] / d->options.groups, d->kernel[0], d->kernel[1]);
    if (!dvti_conv2d_accepts("dvt_conv2d", x, w, &d->options))
        return dvti_failure();
    return dvt_param_set_shape(dvt_block_param(self, "weight"), w);
}

static size_t dvti_conv_block_describe(const dvt_block *self, void *user, char *buffer,
                                       size_t size) {
    const dvt_nn_conv2d_desc *d = (const dvt_nn_conv2d_desc *)user;
    const dvt_conv2d_options *p = &d->options;
    dvt_shape shape = dvt_param_shape(self->param[0]);
    dvti_text text = dvti_text_begin(buffer, size);
    int padding[2];
    dvti_text_add(&text, "Conv2D(");
    if (shape.dim[1])
        dvti_text_add(&text, "%lld", (long long)shape.dim[1]);
    else
        dvti_text_add(&text, "None");
    dvti_text_add(&text, " -> %lld, kernel_size=(%d, %d), stride=(%d, %d)", (long long)d->channels,
                  d->kernel[0], d->kernel[1], p->stride[0], p->stride[1]);
    dvti_padding(p->padding, padding);
    if (padding[0] || padding[1])
        dvti_text_add(&text, ", padding=(%d, %d)", padding[0], padding[1]);
    if (p->dilation[0] != 1 || p->dilation[1] != 1)
        dvti_text_add(&text, ", dilation=(%d, %d)", p->dilation[0], p->dilation[1]);
    if (p->groups != 1)
        dvti_text_add(&text, ", groups=%d", p->groups);
    if (d->no_bias)
        dvti_text_add(&text, ", bias=False");
    if (d->activation != DVT_IDENTITY)
        dvti_text_add(&text, ", %s", dvti_activation_text(d->activation));
    dvti_text_add(&text, ")");
    return text.length;
}

/* Fills in the defaults of d and checks it. The padding stays as given: dvt_conv2d resolves it. */
static bool dvti_conv_block_resolve(const char *function, dvt_nn_conv2d_desc *d) {
    int padding[2];
    dvti_pair(d->kernel, 0, d->kernel);
    dvti_pair(d->options.stride, 1, d->options.stride);
    dvti_pair(d->options.dilation, 1, d->options.dilation);
    dvti_padding(d->options.padding, padding);
    if (d->options.groups == 0)
        d->options.groups = 1;
    if (!dvti_nn_pair_ok(function, "kernel", d->kernel, 1) ||
        !dvti_nn_pair_ok(function, "stride", d->options.stride, 1) ||
        !dvti_nn_pair_ok(function, "padding", padding, 0) ||
        !dvti_nn_pair_ok(function, "dilation", d->options.dilation, 1))
        return false;
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

static dvt_block *dvti_conv_block_make(const char *function, dvt_nn_conv2d_desc d) {
    dvt_block_desc desc;
    dvt_block *block;
    void *state;
    if (!dvti_conv_block_resolve(function, &d) ||
        !(state = dvti_nn_conv_state(function, &d, sizeof d)))
        return NULL;
    memset(&desc, 0, sizeof desc);
    desc.kind = "Conv2D";
    desc.forward = dvti_conv_block_forward;
    desc.infer = dvti_conv_block_infer;
    desc.describe = dvti_conv_block_describe;
    block = dvti_block_make(function, &desc, "conv", state);
    if (block && (!dvt_block_add_param(block, "weight",
                                       DVT_SHAPE(d.channels, d.in_channels / d.options.groups,
                                                 d.kernel[0], d.kernel[1]),
                                       d.dtype, d.weight_init) ||
                  (!d.no_bias && !dvt_block_add_param(block, "bias", DVT_SHAPE(d.channels), d.dtype,
                                                      d.bias_init))))
        return dvti_block_discard(block);
    return block;
}

DVT_API dvt_block *dvt_nn_conv2d_with(const dvt_nn_conv2d_desc *desc) {
    if (desc)
        return dvti_conv_block_make("dvt_nn_conv2d_with", *desc);
    dvti_null("dvt_nn_conv2d_with", "desc");
    return NULL;
}

DVT_API dvt_block *dvt_nn_conv2d(int64_t channels, int kernel, dvt_activation activation) {
    dvt_nn_conv2d_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.channels = channels;
    desc.kernel[0] = kernel;
    desc.activation = activation;
    return dvti_conv_block_make("dvt_nn_conv2d", desc);
}

/* ---- pooling ---- */
typedef struct dvti_pool_block {
    dvt_pool2d_options params;
    bool average;
} dvti_pool_block;

static dvt_array *dvti_pool_block_forward(dvt_block *self, void *user, dvt_array *x) {
    const dvti_pool_block *pool = (const dvti_pool_block *)user;
    (void)self;
    return pool->average ? dvt_avg_pool2d(x, &pool->params) : dvt_max_pool2d(x, &pool->params);
}

/* Describes the block. As in Gluon, global pools print a window of 1 and ceil_mode. */
static size_t dvti_pool_block_describe(const dvt_block *self, void *user, char *buffer,
                                       size_t size) {
    const dvti_pool_block *pool = (const dvti_pool_block *)user;
    dvt_pool2d_options p = pool->params;
    dvti_text text = dvti_text_begin(buffer, size);
    int window[2], stride[2], padding[2];
    if (p.global) {
        memset(&p, 0, sizeof p);
        p.size[0] = p.stride[0] = 1;
        p.global = p.ceil_mode = true;
    }
    dvti_pool2d_pairs(&p, window, stride, padding);
    dvti_text_add(&text,
                  "%s(size=(%d, %d), stride=(%d, %d), padding=(%d, %d), ceil_mode=%s, "
                  "global_pool=%s, pool_type=%s, layout=NCHW)",
                  self->desc.kind, window[0], window[1], stride[0], stride[1], padding[0],
                  padding[1], p.ceil_mode ? "True" : "False", p.global ? "True" : "False",
                  pool->average ? "avg" : "max");
    return text.length;
}

/* Checks p and leaves it unchanged: the operations resolve it. */
static bool dvti_pool_block_ok(const char *function, const dvt_pool2d_options *p) {
    int size[2], stride[2], padding[2];
    if (p->global)
        return true;
    dvti_pool2d_pairs(p, size, stride, padding);
    if (!dvti_nn_pair_ok(function, "size", size, 1) ||
        !dvti_nn_pair_ok(function, "stride", stride, 1) ||
        !dvti_nn_pair_ok(function, "padding", padding, 0))
        return false;
    if (padding[0] > size[0] / 2 || padding[1] > size[1] / 2) {
        dvti_fail(DVT_ERR_RANGE,
                  "%s: padding is (%d, %d) and size (%d, %d); expected at most half the size",
                  function, padding[0], padding[1], size[0], size[1]);
        return false;
    }
    return true;
}

static dvt_block *dvti_pool_block_make(const char *function, const dvt_pool2d_options *p,
                                       bool average) {
    dvt_block_desc desc;
    dvti_pool_block pool;
    void *state;
    memset(&pool, 0, sizeof pool);
    pool.params = *p;
    pool.average = average;
    if (!dvti_pool_block_ok(function, p) ||
        !(state = dvti_nn_conv_state(function, &pool, sizeof pool)))
        return NULL;
    memset(&desc, 0, sizeof desc);
    desc.kind = average     ? p->global ? "GlobalAvgPool2D" : "AvgPool2D"
                : p->global ? "GlobalMaxPool2D"
                            : "MaxPool2D";
    desc.forward = dvti_pool_block_forward;
    desc.describe = dvti_pool_block_describe;
    return dvti_block_make(function, &desc, "pool", state);
}

static dvt_block *dvti_pool_block_simple(const char *function, int size, int stride, bool average) {
    dvt_pool2d_options p;
    memset(&p, 0, sizeof p);
    p.size[0] = size;
    p.stride[0] = stride;
    return dvti_pool_block_make(function, &p, average);
}

static dvt_block *dvti_pool_block_with(const char *function, const dvt_pool2d_options *p,
                                       bool average) {
    if (p)
        return dvti_pool_block_make(function, p, average);
    dvti_null(function, "p");
    return NULL;
}

DVT_API dvt_block *dvt_nn_max_pool2d(int size, int stride) {
    return dvti_pool_block_simple("dvt_nn_max_pool2d", size, stride, false);
}

DVT_API dvt_block *dvt_nn_avg_pool2d(int size, int stride) {
    return dvti_pool_block_simple("dvt_nn_avg_pool2d", size, stride, true);
}

DVT_API dvt_block *dvt_nn_max_pool2d_with(const dvt_pool2d_options *p) {
    return dvti_pool_block_with("dvt_nn_max_pool2d_with", p, false);
}

DVT_API dvt_block *dvt_nn_avg_pool2d_with(const dvt_pool2d_options *p) {
    return dvti_pool_block_with("dvt_nn_avg_pool2d_with", p, true);
}

DVT_API dvt_block *dvt_nn_global_avg_pool2d(void) {
    dvt_pool2d_options p;
    memset(&p, 0, sizeof p);
    p.global = true;
    return dvti_pool_block_make("dvt_nn_global_avg_pool2d", &p, true);
}
