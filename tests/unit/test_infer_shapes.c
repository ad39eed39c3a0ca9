/* Tests of dvt_block_infer_shapes: every block of the library, blocks of the program, and that
   nothing is computed, drawn, counted or half done. */
#include "custom_block.h"
#if !defined(DEVTENSOR_NO_NN)

/* ---- a block of the program, with attention, constants of every kind and its own infer ---- */
static dvt_status mixer_infer(dvt_block *self, void *user, dvt_array *x) {
    (void)user;
    return dvt_param_set_shape(dvt_block_param(self, "scale"), DVT_SHAPE(dvt_dim(x, -1)));
}

/* x (N, T, C), two heads */
static dvt_array *mixer_forward(dvt_block *self, void *user, dvt_array *x) {
    static const float factors[] = {1, 2};
    dvt_ctx dev = dvt_ctx_of(x), usual_one;
    int64_t n = dvt_dim(x, 0), t = dvt_dim(x, 1), c = dvt_dim(x, 2);
    dvt_array *heads, *y, *positions = dvt_arange(0, (double)t, 1, DVT_F32, dev);
    dvt_array *constant = dvt_full(DVT_SHAPE(1), 0.5, DVT_F32, dvt_cpu());
    dvt_rotary_options rotary;
    dvt_attention_options causal;
    (void)user;
    memset(&usual_one, 0, sizeof usual_one);
    memset(&rotary, 0, sizeof rotary);
    memset(&causal, 0, sizeof causal);
    causal.causal = true;
    rotary.positions = positions;
    heads = dvt_transpose(dvt_reshape(x, DVT_SHAPE(n, t, 2, c / 2)), DVT_AXES(0, 2, 1, 3));
    heads = dvt_rotary(heads, &rotary);
    y = dvt_attention(heads, heads, heads, NULL, &causal);
    y = dvt_mul(y, dvt_from_host(factors, DVT_SHAPE(2, 1, 1), DVT_F32, dev));
    y = dvt_add(y, dvt_as_in_ctx(constant, dev));
    y = dvt_reshape(dvt_transpose(y, DVT_AXES(0, 2, 1, 3)), DVT_SHAPE(n, t, c));
    y = dvt_mul(y, dvt_block_data(self, "scale", dev));
    if (dvt_test_ctx().type == DVT_DEVICE_CPU) /* the default context, whatever it is now */
        y = dvt_add(y, dvt_zeros(DVT_SHAPE(c), DVT_F32, usual_one));
    y = dvt_add_(dvt_copy(y), dvt_cumsum(dvt_slice(y, 1, -1, DVT_END, -1), 1));
    return dvt_block_forward(dvt_block_at(self, 0), dvt_where(dvt_greater_scalar(y, 0), y, x));
}

static dvt_block *mixer(void) {
    dvt_block_desc desc;
    dvt_nn_dense_desc dense;
    dvt_block *block;
    memset(&desc, 0, sizeof desc);
    memset(&dense, 0, sizeof dense);
    desc.kind = "Mixer";
    desc.forward = mixer_forward;
    desc.infer = mixer_infer;
    block = dvt_block_new(&desc);
    dvt_block_add_param(block, "scale", DVT_SHAPE(0), DVT_F32, dvt_init_normal(1));
    dense.units = 5;
    dense.no_flatten = true;
    dvt_block_add_child(block, dvt_nn_dense_with(&dense));
    return block;
}

/* ---- every block ---- */
static dvt_block *recurrent(int kind) {
    dvt_nn_recurrent_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.hidden_size = 4;
    desc.layers = 2;
    desc.bidirectional = true;
    desc.dropout = 0.5;
    desc.layout = kind == 1 ? DVT_NTC : DVT_TNC;
    return kind == 0   ? dvt_nn_rnn_with(&desc)
           : kind == 1 ? dvt_nn_lstm_with(&desc)
                       : dvt_nn_gru_with(&desc);
}

/* Returns net number k with the shape and dtype of its input; NULL after the last one. */
static dvt_block *net_of(int k, dvt_shape *input, dvt_dtype *dtype) {
    const dvt_shape image = DVT_SHAPE(2, 4, 10, 9), line = DVT_SHAPE(2, 4, 11);
    dvt_block *net = dvt_nn_sequential();
    dvt_nn_conv2d_desc conv;
    *input = image;
    *dtype = DVT_F32;
    switch (k) {
    case 0:
        *input = DVT_SHAPE(3, 7);
        DVT_NN_ADD(net, dvt_nn_dense(8, DVT_RELU), dvt_nn_dropout(0.5), dvt_nn_layer_norm(),
                   dvt_nn_activation(DVT_GELU), dvt_nn_dense(2, DVT_TANH));
        break;
    case 1:
        DVT_NN_ADD(net, dvt_nn_conv2d(6, 3, DVT_RELU), dvt_nn_batch_norm(), dvt_nn_max_pool2d(2, 2),
                   dvt_nn_flatten(), dvt_nn_dense(3, DVT_IDENTITY));
        break;
    case 2:
        memset(&conv, 0, sizeof conv);
        conv.channels = 6;
        conv.kernel[0] = 3;
        conv.options.groups = 2;
        conv.options.stride[0] = 2;
        conv.options.padding[0] = 1;
        DVT_NN_ADD(net, dvt_nn_conv2d_with(&conv), dvt_nn_group_norm(2), dvt_nn_prelu(6),
                   dvt_nn_avg_pool2d(2, 0), dvt_nn_global_avg_pool2d());
        break;
    case 3:
        DVT_NN_ADD(net, dvt_nn_conv2d_transpose(3, 4, 2, DVT_SILU), dvt_nn_instance_norm(true),
                   dvt_nn_upsample2d(2, true), dvt_nn_upsample2d(3, false),
                   dvt_nn_adaptive_avg_pool2d(4, 5), dvt_nn_leaky_relu(0.1), dvt_nn_elu(1));
        break;
    case 4:
        *input = line;
        DVT_NN_ADD(net, dvt_nn_conv1d(5, 3, DVT_HARD_SWISH), dvt_nn_max_pool1d(2, 1),
                   dvt_nn_conv1d_transpose(2, 3, 2, DVT_IDENTITY), dvt_nn_avg_pool1d(3, 2),
                   dvt_nn_batch_norm(), dvt_nn_global_avg_pool1d());
        break;
    case 5:
        *input = DVT_SHAPE(4, 6);
        *dtype = DVT_I32;
        DVT_NN_ADD(net, dvt_nn_embedding(10, 8), dvt_nn_rms_norm(0), recurrent(1), mixer());
        break;
    case 6:
        *input = DVT_SHAPE(5, 2, 3);
        DVT_NN_ADD(net, recurrent(0), recurrent(2), dvt_nn_lstm(3));
        break;
    case 7: /* float64 by a conversion of the input */
        *input = DVT_SHAPE(2, 3);
        *dtype = DVT_F16;
        DVT_NN_ADD(net, dvt_nn_dense(2, DVT_IDENTITY), dvt_nn_dense(2, DVT_IDENTITY));
        break;
    default:
        return NULL;
    }
    return net;
}

static void check_same_parameters(dvt_block *a, dvt_block *b, dvt_ctx ctx, int k) {
    dvt_params *p = dvt_block_collect_params(a, NULL), *q = dvt_block_collect_params(b, NULL);
    int i;
    CHECK_INT(dvt_params_len(p), dvt_params_len(q));
    for (i = 0; i < dvt_params_len(p); i++)
        dvt_test_check(dvt_array_equal(dvt_param_data(dvt_params_at(p, i), ctx),
                                       dvt_param_data(dvt_params_at(q, i), ctx), DVT_NAN_DIFFERS),
                       __FILE__, __LINE__, "net %d: %s differs", k,
                       dvt_param_name(dvt_params_at(p, i)));
}

/* Inferring gives the shape of the result, and the parameters that the first forward pass draws. */
DVT_TEST(infer_shapes_of_every_block) {
    dvt_ctx ctx = dvt_test_ctx();
    int k;
    for (k = 0; k < 100; k++) {
        dvt_shape input, output = DVT_SCALAR;
        dvt_dtype dtype;
        dvt_block *net = net_of(k, &input, &dtype), *again;
        dvt_array *x, *y;
        if (!net)
            break;
        again = net_of(k, &input, &dtype);
        dvt_seed(5);
        CHECK_INT(dvt_block_initialize(net, usual(), DVT_CONTEXTS(ctx)), DVT_OK);
        CHECK_INT(dvt_block_infer_shapes(net, input, dtype, &output), DVT_OK);
        dvt_seed(5);
        CHECK_INT(dvt_block_initialize(again, usual(), DVT_CONTEXTS(ctx)), DVT_OK);
        x = dvt_astype(
            dvt_mod_scalar(dvt_arange(0, (double)dvt_shape_size(input), 1, DVT_F32, ctx), 7),
            dtype);
        x = dvt_reshape(x, input);
        y = dvt_block_forward(again, x);
        dvt_test_check(y && dvt_shape_equal(dvt_shape_of(y), output), __FILE__, __LINE__,
                       "net %d: the result's shape is not the inferred one", k);
        check_same_parameters(net, again, ctx, k);
        CHECK(dvt_array_equal(dvt_block_forward(net, x), y, DVT_NAN_DIFFERS));
        dvt_discard_all();
    }
    CHECK_INT(k, 8);
}

/* ---- nothing is computed ---- */
static void *modest_alloc(void *user, size_t bytes) {
    (void)user;
    return bytes > 1 << 20 ? NULL : malloc(bytes);
}

static void *modest_resize(void *user, void *block, size_t bytes) {
    (void)user;
    return bytes > 1 << 20 ? NULL : realloc(block, bytes);
}

static void modest_release(void *user, void *block) {
    (void)user;
    free(block);
}

static dvt_block *deep(void) {
    dvt_block *net = dvt_nn_sequential();
    int i;
    for (i = 0; i < 6; i++)
        DVT_NN_ADD(net, dvt_nn_conv2d(16, 3, DVT_RELU), dvt_nn_batch_norm(),
                   dvt_nn_max_pool2d(2, 2));
    DVT_NN_ADD(net, dvt_nn_dropout(0.5), dvt_nn_dense(10, DVT_IDENTITY));
    return net;
}

/* An input of 600 GB: no block of memory above 1 MiB is needed. */
DVT_TEST(infer_shapes_of_a_huge_input) {
    dvt_allocator modest = {modest_alloc, modest_resize, modest_release, NULL};
    const dvt_shape input = DVT_SHAPE(1000000, 3, 224, 224);
    dvt_block_cost one, two, cost;
    dvt_shape output;
    dvt_block *net;
    double begin = dvt_seconds();
    dvt_discard_all();
    net = deep();
    dvt_block_initialize(net, usual(), DVT_CONTEXTS(dvt_cpu()));
    dvt_set_allocator(&modest);
    CHECK_INT(dvt_block_infer_shapes(net, input, DVT_F32, &output), DVT_OK);
    CHECK(dvt_shape_equal(output, DVT_SHAPE(1000000, 10)));
    CHECK(dvt_block_data(dvt_block_at(net, 0), "weight", dvt_cpu()) != NULL);
    CHECK_INT(dvt_block_measure(net, DVT_SHAPE(1, 3, 224, 224), &one), DVT_OK);
    CHECK_INT(dvt_block_measure(net, DVT_SHAPE(2, 3, 224, 224), &two), DVT_OK);
    CHECK_INT(dvt_block_measure(net, input, &cost), DVT_OK);
    CHECK_INT(cost.multiply_adds, one.multiply_adds * 1000000);
    CHECK_INT(cost.result_bytes, one.result_bytes + (two.result_bytes - one.result_bytes) * 999999);
    CHECK_INT(cost.trained, one.trained);
    CHECK_INT(dvt_block_measure(net, DVT_SHAPE(1000000000000000, 3, 224, 224), &cost),
              DVT_ERR_SHAPE); /* its bytes overflow */
    dvt_clear_error();
    CHECK_INT(dvt_block_measure(net, DVT_SHAPE(2000000000000, 3, 224, 224), &cost), DVT_OK);
    CHECK_INT(cost.multiply_adds, INT64_MAX);
    dvt_set_allocator(NULL);
    CHECK(dvt_seconds() - begin < 5);
}

static void check_same_stats(dvt_stats a, dvt_stats b) {
    CHECK_INT(a.kernels, b.kernels);
    CHECK_INT(a.waits, b.waits);
    CHECK_INT(a.to_device_count, b.to_device_count);
    CHECK_INT(a.to_host_count, b.to_host_count);
    CHECK_INT(a.between_devices_count, b.between_devices_count);
    CHECK_INT(a.implicit_reads, b.implicit_reads);
    CHECK_INT(a.arrays, b.arrays);
    CHECK_INT(a.blocks_of_memory, b.blocks_of_memory);
}

/* Draws, copies from the host, waits and writes into its running mean. */
static dvt_array *busy_forward(dvt_block *self, void *user, dvt_array *x) {
    dvt_ctx dev = dvt_ctx_of(x);
    dvt_array *mean = dvt_block_data(self, "running_mean", dev);
    dvt_key key = dvt_key_new(3);
    (void)user;
    x = dvt_add(x, dvt_uniform(0, 1, dvt_shape_of(x), DVT_F32, dev));
    x = dvt_add(x, dvt_normal(0, 1, dvt_shape_of(x), DVT_F32, dev));
    x = dvt_add(x, dvt_key_uniform(key, 0, 1, dvt_shape_of(x), DVT_F32, dev));
    x = dvt_add(x, DVT_ARRAY(float, DVT_SHAPE(3), dev, 1, 2, 3));
    CHECK_INT(dvt_wait(x), DVT_OK);
    CHECK_INT(dvt_synchronize(dev), DVT_OK);
    dvt_copy_into(mean, dvt_mean(x, DVT_AXES(0)));
    dvt_fill(mean, 9);
    CHECK(!dvt_is_recording() && !dvt_is_training() && !dvt_has_history(x));
    return x;
}

DVT_TEST(infer_shapes_changes_nothing_else) {
    dvt_block *net = custom(busy_forward, NULL);
    dvt_rng_engine engines[] = {DVT_RNG_PHILOX, DVT_RNG_MXNET, DVT_RNG_JAX};
    dvt_shape output;
    dvt_init none = usual();
    dvt_ctx ctx;
    int i, virtual_one;
    dvt_block_add_param(net, "running_mean", DVT_SHAPE(3), DVT_F32, none);
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    for (virtual_one = 0; virtual_one < 2; virtual_one++)
        for (i = 0; i < 3; i++) {
            dvt_rng_engine before = dvt_set_rng_engine(engines[i]);
            dvt_array *expected, *w;
            dvt_stats stats;
            ctx = virtual_one ? dvt_gpu(0) : dvt_cpu();
            dvt_block_reinitialize(net, none, DVT_CONTEXTS(ctx));
            dvt_seed(7);
            expected = dvt_uniform(0, 1, DVT_SHAPE(200), DVT_F32, ctx);
            dvt_seed(7);
            w = dvt_block_data(net, "running_mean", ctx);
            dvt_synchronize(ctx);
            stats = dvt_get_stats();
            DVT_RECORD {
                CHECK_INT(dvt_block_infer_shapes(net, DVT_SHAPE(400, 3), DVT_F32, &output), DVT_OK);
                CHECK(dvt_is_recording() && dvt_is_training());
            }
            check_same_stats(dvt_get_stats(), stats);
            CHECK(dvt_array_equal(dvt_uniform(0, 1, DVT_SHAPE(200), DVT_F32, ctx), expected,
                                  DVT_NAN_DIFFERS));
            CHECK_VALUES(w, 0, 0, 0, 0);
            dvt_set_rng_engine(before);
        }
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* Returns the sum of numbers drawn in the parts of a batch. */
static double drawn_in_parts(bool infers) {
    dvt_block *net = dvt_nn_dense(1, DVT_IDENTITY), *busy = custom(busy_forward, NULL);
    dvt_array *x = dvt_ones(DVT_SHAPE(4, 2), DVT_F32, dvt_cpu()), *px, *py;
    dvt_trainer *trainer;
    double sum = 0;
    dvt_seed(11);
    dvt_block_add_param(busy, "running_mean", DVT_SHAPE(3), DVT_F32, usual());
    dvt_block_initialize(net, usual(), DVT_CONTEXTS(dvt_cpu()));
    CHECK_INT(dvt_block_infer_shapes(net, DVT_SHAPE(4, 2), DVT_F32, NULL), DVT_OK);
    trainer = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_sgd(0.1));
    CHECK_INT(dvt_trainer_set_parts(trainer, 2), DVT_OK);
    DVT_FOR_TRAINER_PARTS(trainer, x, x, px, py) {
        dvt_array *loss = NULL;
        if (infers)
            CHECK_INT(dvt_block_infer_shapes(busy, DVT_SHAPE(2, 3), DVT_F32, NULL), DVT_OK);
        sum += dvt_item(dvt_uniform(0, 1, DVT_SHAPE(1), DVT_F32, dvt_cpu()));
        DVT_RECORD {
            loss = dvt_loss_l2(dvt_block_forward(net, px), dvt_slice(py, 1, 0, 1, 1));
        }
        dvt_backward(loss);
    }
    CHECK_INT(dvt_trainer_step(trainer, 4), DVT_OK);
    return sum;
}

DVT_TEST(infer_shapes_within_a_part) {
    CHECK_CLOSE(drawn_in_parts(true), drawn_in_parts(false), 0);
}

/* ---- all or nothing ---- */
DVT_TEST(infer_shapes_sets_all_or_nothing) {
    dvt_block *net = dvt_nn_sequential(), *first = dvt_nn_dense(4, DVT_RELU), *norm, *last;
    dvt_nn_dense_desc desc;
    dvt_shape output = DVT_SHAPE(77);
    dvt_array *before;
    memset(&desc, 0, sizeof desc);
    desc.units = 2;
    desc.in_units = 5;
    norm = dvt_nn_batch_norm();
    last = dvt_nn_dense_with(&desc);
    DVT_NN_ADD(net, first, norm, last);
    dvt_block_initialize(net, usual(), DVT_CONTEXTS(dvt_test_ctx()));
    dvt_seed(3);
    CHECK_INT(dvt_block_infer_shapes(net, DVT_SHAPE(2, 3), DVT_F32, &output), DVT_ERR_SHAPE);
    error_begins("dvt_block_infer_shapes: dense", "expected (batch, 5)");
    dvt_clear_error();
    CHECK(dvt_shape_equal(output, DVT_SHAPE(77)));
    CHECK(dvt_shape_equal(dvt_param_shape(dvt_block_param(first, "weight")), DVT_SHAPE(4, 0)));
    CHECK(dvt_shape_equal(dvt_param_shape(dvt_block_param(norm, "gamma")), DVT_SHAPE(0)));
    CHECK_ERROR(dvt_block_data(first, "weight", dvt_test_ctx()), DVT_ERR_UNINITIALIZED);
    before = dvt_uniform(0, 1, DVT_SHAPE(3), DVT_F32, dvt_cpu());
    dvt_seed(3);
    CHECK(dvt_array_equal(dvt_uniform(0, 1, DVT_SHAPE(3), DVT_F32, dvt_cpu()), before,
                          DVT_NAN_DIFFERS));
    /* errors of the arguments */
    CHECK_ERROR(dvt_block_infer_shapes(NULL, DVT_SHAPE(2), DVT_F32, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_block_infer_shapes(net, DVT_SHAPE(-2), DVT_F32, NULL), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_block_infer_shapes(net, DVT_SHAPE(2), (dvt_dtype)99, NULL), DVT_ERR_DTYPE);
    /* an inferred net refuses other widths, as after a forward pass */
    CHECK_INT(dvt_block_infer_shapes(first, DVT_SHAPE(1, 3), DVT_F32, NULL), DVT_OK);
    CHECK_ERROR(dvt_block_infer_shapes(first, DVT_SHAPE(1, 4), DVT_F32, NULL), DVT_ERR_SHAPE);
    CHECK_INT(dvt_dim(dvt_block_data(first, "weight", dvt_test_ctx()), 1), 3);
    /* an empty batch */
    CHECK_INT(dvt_block_infer_shapes(first, DVT_SHAPE(0, 3), DVT_F32, &output), DVT_OK);
    CHECK(dvt_shape_equal(output, DVT_SHAPE(0, 4)));
}

/* A net without values only gets its shapes. */
DVT_TEST(infer_shapes_before_initialization) {
    dvt_block *net = deep(), *other = deep();
    dvt_param *weight = dvt_block_param(dvt_block_at(net, 0), "weight");
    dvt_block_cost cost;
    CHECK_INT(dvt_block_measure(other, DVT_SHAPE(2, 3, 224, 224), &cost), DVT_OK);
    CHECK_INT(dvt_block_infer_shapes(net, DVT_SHAPE(2, 3, 224, 224), DVT_F32, NULL), DVT_OK);
    CHECK(dvt_shape_equal(dvt_param_shape(weight), DVT_SHAPE(16, 3, 3, 3)));
    CHECK_INT(cost.trained + cost.fixed,
              16 * (3 + 5 * 16) * 9 + 6 * 16 + 6 * 4 * 16 + 10 * 16 + 10);
    CHECK_ERROR(dvt_param_data(weight, dvt_cpu()), DVT_ERR_UNINITIALIZED);
    CHECK_ERROR(dvt_block_infer_shapes(net, DVT_SHAPE(2, 4, 224, 224), DVT_F32, NULL),
                DVT_ERR_SHAPE);
    dvt_seed(1);
    CHECK_INT(dvt_block_initialize(net, usual(), DVT_CONTEXTS(dvt_cpu())), DVT_OK);
    CHECK(dvt_param_data(weight, dvt_cpu()) != NULL);
    CHECK(dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_adam(0.1)) != NULL);
    dvt_seed(1);
    CHECK_INT(dvt_block_initialize(other, usual(), DVT_CONTEXTS(dvt_cpu())), DVT_OK);
    check_same_parameters(net, other, dvt_cpu(), 0);
}

#endif
