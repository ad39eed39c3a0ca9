/* Prewarming compiles kernels before a program waits for them. It runs small operations on the
   device, those that networks in float32 consist of. The backend decides which GPU programs they
   need; this file lists only what networks compute. Results are discarded.

   Prewarming has no side effect that a program could notice. Random numbers come from keys, not
   from the device's stream. Nothing is recorded; the caller's modes, defaults and arrays stay
   unchanged. A step ends at its first failure. */
#include "4_ops/dvt_op.h"

static dvt_array *dvti_warm_full(dvt_shape shape, dvt_ctx ctx) {
    return dvt_full(shape, 0.5, DVT_F32, ctx);
}

/* ---- elementwise ---- */
static bool dvti_warm_unary(dvt_array *x) {
    return dvt_relu(x) && dvt_sigmoid(x) && dvt_tanh(x) && dvt_exp(x) && dvt_log(x) &&
           dvt_sqrt(x) && dvt_square(x) && dvt_neg(x) && dvt_abs(x) && dvt_sign(x) && dvt_copy(x);
}

/* Warms operands of the same shape, a row broadcast to all rows, and a column broadcast to all
   columns. */
static bool dvti_warm_binary(dvt_array *x, dvt_array *row, dvt_array *column) {
    dvt_array *other[3];
    int i;
    other[0] = x;
    other[1] = row;
    other[2] = column;
    for (i = 0; i < 3; i++)
        if (!dvt_add(x, other[i]) || !dvt_sub(x, other[i]) || !dvt_mul(x, other[i]) ||
            !dvt_div(x, other[i]))
            return false;
    return dvt_maximum(x, x) && dvt_greater(x, x) && dvt_equal(x, x);
}

static bool dvti_warm_scalar(dvt_array *x) {
    return dvt_add_scalar(x, 1) && dvt_sub_scalar(x, 1) && dvt_mul_scalar(x, 2) &&
           dvt_div_scalar(x, 2) && dvt_pow_scalar(x, 2) && dvt_scalar_sub(1, x) &&
           dvt_scalar_div(1, x) && dvt_maximum_scalar(x, 0) && dvt_greater_scalar(x, 0) &&
           dvt_clip(x, 0, 1) && dvt_add_(x, x) && dvt_mul_scalar_(x, 1);
}

static bool dvti_warm_casts(dvt_array *x) {
    dvt_array *flags = dvt_greater_scalar(x, 0);
    return flags && dvt_astype(flags, DVT_F32) && dvt_where(flags, x, x) &&
           dvt_where_scalar(x, x, 0) && /* relu's gradient */
           dvt_astype(x, DVT_I64) && dvt_astype(x, DVT_I32) &&
           dvt_astype(dvt_full(x->shape, 1, DVT_I64, x->storage->ctx), DVT_F32) &&
           dvt_astype(dvt_full(x->shape, 1, DVT_U8, x->storage->ctx), DVT_F32);
}

static bool dvti_warm_elementwise(dvt_ctx ctx) {
    dvt_array *x = dvti_warm_full(DVT_SHAPE(64, 128), ctx);
    dvt_array *odd = dvti_warm_full(DVT_SHAPE(7, 10, 3), ctx);
    dvt_array *row = dvti_warm_full(DVT_SHAPE(128), ctx);
    dvt_array *column = dvti_warm_full(DVT_SHAPE(64, 1), ctx);
    return x && odd && row && column && dvti_warm_unary(x) && dvti_warm_binary(x, row, column) &&
           dvti_warm_scalar(x) && dvti_warm_casts(x) && dvti_warm_unary(odd) &&
           dvt_contiguous(dvt_t(x)) && dvt_add(x, dvt_full(DVT_SHAPE(1), 1, DVT_F32, ctx));
}

/* ---- along axes, by index ---- */
/* The loss of class numbers, and its gradient. */
static bool dvti_warm_entropy(dvt_ctx ctx, dvt_dtype labels) {
    dvt_array *x = dvti_warm_full(DVT_SHAPE(64, 10), ctx), *in[3];
    in[1] = dvt_zeros(DVT_SHAPE(64), labels, ctx);
    in[0] = x && in[1] ? dvti_cross_entropy("dvt_prewarm", x, in[1]) : NULL;
    in[2] = x;
    return in[0] && dvti_cross_entropy_launch("dvt_prewarm", DVTI_OP_cross_entropy_data, in, 3, &x,
                                              1) != NULL;
}

static bool dvti_warm_reductions(dvt_ctx ctx) {
    dvt_array *x = dvti_warm_full(DVT_SHAPE(8, 6, 14, 14), ctx);
    dvt_array *scores = dvti_warm_full(DVT_SHAPE(64, 10), ctx);
    dvt_array *many = dvti_warm_full(DVT_SHAPE(100000), ctx);
    return x && scores && many && dvt_sum(x, DVT_AXES(0, 2, 3)) && dvt_sum(scores, DVT_AXES(0)) &&
           dvt_sum(scores, DVT_KEEPDIMS(1)) && dvt_sum(many, DVT_ALL) &&
           dvt_mean(scores, DVT_ALL) && dvt_mean(scores, DVT_AXES(1)) &&
           dvt_mean(x, DVT_KEEPDIMS(0, 2, 3)) && dvt_max(scores, DVT_AXES(1)) &&
           dvt_norm(many, DVT_ALL) && dvt_argmax(scores, DVT_AXES(1)) && dvt_softmax(scores, 1) &&
           dvt_log_softmax(scores, 1) && dvti_warm_entropy(ctx, DVT_I32) &&
           dvti_warm_entropy(ctx, DVT_I64);
}

/* Normalizes x over the last axis, or over all but axis 1, and computes the gradients. */
static bool dvti_warm_norm(dvt_array *x, bool batch) {
    static const bool need[] = {true, true, true, false};
    const dvt_ctx ctx = x->storage->ctx;
    const dvt_shape shape = DVT_SHAPE(x->shape.dim[batch ? 1 : x->shape.ndim - 1]);
    dvt_array *in[4], *out[3], *mean = dvti_warm_full(shape, ctx),
                               *var = dvti_warm_full(shape, ctx);
    dvti_node node;
    in[0] = x;
    in[1] = dvti_warm_full(shape, ctx);
    in[2] = dvti_warm_full(shape, ctx);
    in[3] = dvti_warm_full(DVT_SHAPE(2, x->shape.dim[0] + x->shape.dim[1]), ctx); /* statistics */
    if (!mean || !var || !in[1] || !in[2] || !in[3])
        return false;
    memset(&node, 0, sizeof node);
    node.in = in;
    node.attr.i[0] = batch;
    node.attr.i[1] = node.attr.i[4] = 1;
    node.attr.i[2] = 2;
    node.attr.i[3] = 3;
    DVT_TRAIN_MODE {
        out[0] = batch ? dvt_batch_norm(x, in[1], in[2], mean, var, 1, 0.9, 1e-5)
                       : dvt_layer_norm(x, in[1], in[2], 1e-5);
    }
    return out[0] && dvti_norm_gradients("dvt_prewarm",
                                         batch ? DVTI_OP_batch_norm_data : DVTI_OP_layer_norm_data,
                                         &node, x, need, out);
}

static bool dvti_warm_norms(dvt_ctx ctx) {
    dvt_array *x = dvti_warm_full(DVT_SHAPE(8, 6, 14, 14), ctx);
    dvt_array *rows = dvti_warm_full(DVT_SHAPE(256, 260), ctx);
    return x && rows && dvti_warm_norm(x, true) && dvti_warm_norm(rows, false);
}

static bool dvti_warm_indices(dvt_ctx ctx) {
    dvt_array *x = dvti_warm_full(DVT_SHAPE(64, 10), ctx);
    dvt_array *labels = dvt_zeros(DVT_SHAPE(64), DVT_I64, ctx), *column, *rows;
    if (!x || !labels || !(column = dvt_reshape(labels, DVT_SHAPE(64, 1))))
        return false;
    rows = dvt_take(x, labels, 0);
    return rows && dvti_take_add(rows, labels, 0, 64) && dvt_pick(x, labels, DVT_AXES(1)) &&
           dvti_take_along_add(dvt_take_along_axis(x, column, 1), column, 1, 10) &&
           dvt_one_hot(labels, 10, DVT_F32) && dvt_equal(dvt_argmax(x, DVT_AXES(1)), labels);
}

/* ---- products, convolution, pooling: the result and the gradients ---- */
static bool dvti_warm_linear(dvt_ctx ctx, int64_t n, int64_t in, int64_t units) {
    dvt_array *x = dvti_warm_full(DVT_SHAPE(n, in), ctx), *w, *g, *bias;
    w = dvti_warm_full(DVT_SHAPE(units, in), ctx);
    g = dvti_warm_full(DVT_SHAPE(n, units), ctx);
    bias = dvti_warm_full(DVT_SHAPE(units), ctx);
    return x && w && g && bias && dvti_linear(x, w, bias, false) && dvt_matmul(g, w) &&
           dvti_matmul("dvt_prewarm", g, x, true, false) && dvt_sum(g, DVT_AXES(0));
}

static bool dvti_warm_conv(dvt_ctx ctx, dvt_shape x_shape, dvt_shape w_shape, int64_t padding) {
    dvt_array *x = dvti_warm_full(x_shape, ctx), *w = dvti_warm_full(w_shape, ctx), *y;
    dvt_array *bias = dvti_warm_full(DVT_SHAPE(w_shape.dim[0]), ctx);
    dvti_attr attr = dvti_attr_none();
    attr.i[0] = attr.i[1] = attr.i[4] = attr.i[5] = attr.i[6] = 1;
    attr.i[2] = attr.i[3] = padding;
    y = x && w && bias ? dvti_conv2d(x, w, bias, &attr) : NULL;
    return y && dvti_conv2d(x, w, NULL, &attr) && dvti_conv2d_data(y, w, x_shape, &attr) &&
           dvti_conv2d_weight(x, y, w_shape, &attr) && dvt_sum(y, DVT_AXES(0, 2, 3));
}

static bool dvti_warm_pool(dvt_ctx ctx) {
    dvt_array *x = dvti_warm_full(DVT_SHAPE(4, 6, 14, 14), ctx), *y, *z;
    dvti_attr attr = dvti_attr_none();
    dvt_pool2d_options p;
    memset(&p, 0, sizeof p);
    p.size[0] = 2;
    p.stride[0] = 2;
    attr.i[0] = attr.i[1] = attr.i[2] = attr.i[3] = 2;
    attr.i[7] = attr.i[8] = 7;
    y = x ? dvt_max_pool2d(x, &p) : NULL;
    z = y ? dvt_avg_pool2d(x, &p) : NULL;
    return z && dvti_max_pool2d_data(y, x, &attr, false) &&
           dvti_avg_pool2d_data(z, x->shape, &attr);
}

/* ---- random numbers, steps ---- */
static bool dvti_warm_random(dvt_ctx ctx) {
    dvt_key key = dvt_key_new(0);
    dvt_shape shape = DVT_SHAPE(64);
    return dvt_key_uniform(key, 0, 1, shape, DVT_F32, ctx) &&
           dvt_key_normal(key, 0, 1, shape, DVT_F32, ctx) &&
           dvt_key_bernoulli(key, 0.5, shape, DVT_BOOL, ctx);
}

/* Runs an optimizer step with this number of states. All factors are 0, so the contents of the
   memory do not matter. */
static bool dvti_warm_step(const char *name, dvt_ctx ctx, dvti_op op, int states, double f4) {
    dvti_launch launch;
    dvt_array *array[4];
    int i;
    dvti_launch_begin(&launch, name, dvti_kernel_optimizer(), op);
    for (i = 0; i < states + 2; i++) {
        array[i] = dvti_warm_full(DVT_SHAPE(64), ctx);
        if (!array[i])
            return false;
    }
    launch.n_out = states + 1;
    launch.n_in = 1;
    for (i = 0; i < launch.n_out; i++)
        dvti_view_into(&launch.out[i], array[i]);
    dvti_view_into(&launch.in[0], array[i]);
    launch.f[4] = f4;
    launch.f[6] = 1;
    return dvti_run(array[0]->storage->device, &launch) == DVT_OK;
}

static bool dvti_warm_all(const char *name, dvt_ctx ctx) {
    return dvti_warm_elementwise(ctx) && dvti_warm_reductions(ctx) && dvti_warm_norms(ctx) &&
           dvti_warm_indices(ctx) && dvti_warm_linear(ctx, 8, 400, 120) &&
           dvti_warm_linear(ctx, 64, 128, 64) && dvti_warm_linear(ctx, 64, 50, 10) &&
           dvti_warm_conv(ctx, DVT_SHAPE(4, 1, 28, 28), DVT_SHAPE(6, 1, 5, 5), 2) &&
           dvti_warm_conv(ctx, DVT_SHAPE(4, 6, 14, 14), DVT_SHAPE(16, 6, 5, 5), 0) &&
           dvti_warm_conv(ctx, DVT_SHAPE(2, 16, 8, 8), DVT_SHAPE(32, 16, 3, 3), 1) &&
           dvti_warm_pool(ctx) && dvti_warm_random(ctx) &&
           dvti_warm_step(name, ctx, DVTI_OP_sgd, 0, 0) &&
           dvti_warm_step(name, ctx, DVTI_OP_sgd, 1, 0.9) &&
           dvti_warm_step(name, ctx, DVTI_OP_adam, 2, 0.9);
}

DVT_API dvt_status dvt_prewarm(dvt_ctx ctx) {
    const char *name = "dvt_prewarm";
    dvti_device *device = dvti_device_begin(name, dvti_ctx(ctx));
    dvt_status status = DVT_OK;
    if (!device)
        return dvti_failure();
    if (device->backend->compiles)
        DVT_MODE_SCOPE(DVT_OFF, DVT_UNCHANGED) {
            DVT_SCOPE {
                status = dvti_warm_all(name, device->ctx) ? device->backend->wait(device)
                                                          : dvti_failure();
            }
        }
    dvti_device_end(device);
    return status;
}
