/* Tests of mixed precision: gradients have the bits of casts that a program writes itself, whatever
   crosses the border of the net; parameters in 16 bits follow their values; errors. */
#include "dvt_test.h"
#include <setjmp.h>
#if !defined(DEVTENSOR_NO_NN)

#define ROWS 5
#define IN 6

static dvt_array *input(dvt_ctx ctx) {
    return dvt_key_normal(dvt_key_new(3), 0, 1, DVT_SHAPE(ROWS, IN), DVT_F32, ctx);
}

static dvt_array *labels(dvt_ctx ctx) {
    return dvt_key_randint(dvt_key_new(4), 0, 3, DVT_SHAPE(ROWS), DVT_I32, ctx);
}

static void same_bits(dvt_array *a, dvt_array *b, const char *what) {
    DVT_SCOPE {
        dvt_array *same = a && b ? dvt_all(dvt_equal(a, b), DVT_ALL) : NULL;
        dvt_test_check(same && dvt_dtype_of(a) == dvt_dtype_of(b) && dvt_item(same) == 1, __FILE__,
                       __LINE__, "%s differs", what);
    }
}

static dvt_block *small_net(dvt_ctx ctx) {
    dvt_block *net = dvt_nn_sequential();
    DVT_NN_ADD(net, dvt_nn_dense(8, DVT_TANH), dvt_nn_layer_norm(), dvt_nn_dense(3, DVT_IDENTITY));
    dvt_seed(7);
    CHECK_INT(dvt_block_initialize(net, dvt_init_xavier(), DVT_CONTEXTS(ctx)), DVT_OK);
    CHECK(dvt_block_forward(net, input(ctx)) != NULL);
    return net;
}

static void set_scale(dvt_block *net, double scale, bool fixed) {
    dvt_loss_scaling options;
    memset(&options, 0, sizeof options);
    options.init_scale = scale;
    options.fixed = fixed;
    CHECK_INT(dvt_block_set_loss_scaling(net, &options), DVT_OK);
}

static dvt_array *data_of(dvt_block *net, int child, const char *name, dvt_ctx ctx) {
    return dvt_block_data(dvt_block_at(net, child), name, ctx);
}

/* Does what small_net does in 16 bits, with casts by hand. */
static dvt_array *by_hand(dvt_block *net, dvt_array *x, dvt_dtype dtype) {
    dvt_ctx ctx = dvt_ctx_of(x);
    x = dvt_linear(dvt_astype(x, dtype), dvt_astype(data_of(net, 0, "weight", ctx), dtype),
                   dvt_astype(data_of(net, 0, "bias", ctx), dtype));
    x = dvt_layer_norm(dvt_tanh(x), data_of(net, 1, "gamma", ctx), data_of(net, 1, "beta", ctx),
                       1e-5);
    return dvt_linear(dvt_astype(x, dtype), dvt_astype(data_of(net, 2, "weight", ctx), dtype),
                      dvt_astype(data_of(net, 2, "bias", ctx), dtype));
}

static void hand_case(dvt_dtype dtype, double scale, dvt_ctx ctx) {
    dvt_block *net = small_net(ctx);
    dvt_params *params = dvt_block_collect_params(net, NULL);
    dvt_array *x = input(ctx), *y16 = NULL, *y, *g, *loss = NULL, *hand[8], *result = NULL;
    int i;
    /* the loss and its gradient to y, then y's gradient through the net */
    CHECK_INT(dvt_attach_grad(x, DVT_GRAD_WRITE), DVT_OK);
    DVT_RECORD {
        y16 = by_hand(net, x, dtype);
    }
    y = dvt_astype(dvt_detach(y16), DVT_F32);
    CHECK_INT(dvt_attach_grad(y, DVT_GRAD_WRITE), DVT_OK);
    DVT_RECORD {
        loss = dvt_loss_softmax_cross_entropy(y, labels(ctx));
    }
    CHECK_INT(dvt_backward(loss), DVT_OK);
    g = dvt_astype(dvt_mul_scalar(dvt_grad(y), scale), dtype);
    CHECK_INT(dvt_backward_from(&y16, &g, 1, DVT_FREE_GRAPH), DVT_OK);
    CHECK_INT(dvt_params_len(params), 6);
    for (i = 0; i < 6; i++)
        hand[i] = dvt_div_scalar(dvt_param_grad(dvt_params_at(params, i), ctx), scale);
    hand[6] = dvt_div_scalar(dvt_grad(x), scale);
    CHECK_INT(dvt_params_zero_grad(params), DVT_OK);
    /* the same by one call */
    CHECK_INT(dvt_block_set_mixed_precision(net, dtype), DVT_OK);
    if (scale != 1)
        set_scale(net, scale, true);
    DVT_RECORD {
        result = dvt_block_forward(net, x);
        loss = dvt_loss_softmax_cross_entropy(result, labels(ctx));
    }
    same_bits(result, y, "the result");
    CHECK_INT(dvt_backward(loss), DVT_OK);
    for (i = 0; i < 6; i++)
        same_bits(dvt_param_grad(dvt_params_at(params, i), ctx), hand[i],
                  dvt_param_name(dvt_params_at(params, i)));
    same_bits(dvt_grad(x), hand[6], "the gradient of x");
    CHECK(dvt_item(dvt_norm(hand[0], DVT_ALL)) > 0);
}

DVT_TEST(mixed_bits_are_those_of_casts_by_hand) {
    hand_case(DVT_F16, 1024, dvt_test_ctx());
    hand_case(DVT_F16, 1.0 / 64, dvt_test_ctx());
    hand_case(DVT_BF16, 1, dvt_test_ctx());
    hand_case(DVT_BF16, 65536, dvt_test_ctx());
}

/* ---- what crosses the border of the net otherwise ---- */
typedef struct crossing {
    dvt_array *factor; /* float32, from outside, with a gradient */
    dvt_array *side;   /* a second result */
    dvt_dtype of_block_data, of_param_data, of_running, of_nested;
} crossing;

/* y = x weight shift factor; shift is read in float32. */
static dvt_array *crossing_forward(dvt_block *self, void *user, dvt_array *x) {
    crossing *c = (crossing *)user;
    dvt_ctx ctx = dvt_ctx_of(x);
    dvt_array *weight = dvt_block_data(self, "weight", ctx);
    dvt_array *shift = dvt_param_data(dvt_block_param(self, "shift"), ctx), *y;
    c->of_block_data = dvt_dtype_of(weight);
    c->of_param_data = dvt_dtype_of(shift);
    c->of_running = dvt_dtype_of(dvt_block_data(self, "running_size", ctx));
    y = dvt_block_forward(dvt_block_at(self, 0), x);
    c->of_nested = dvt_dtype_of(y);
    c->side = (dvt_array *)dvt_retain(dvt_mul(y, weight));
    return dvt_mul(dvt_mul(c->side, shift), c->factor);
}

static dvt_block *crossing_block(crossing *c, dvt_ctx ctx) {
    dvt_block_desc desc;
    dvt_block *block;
    memset(&desc, 0, sizeof desc);
    desc.kind = "Crossing";
    desc.forward = crossing_forward;
    desc.user = c;
    block = dvt_block_new(&desc);
    CHECK(dvt_block_add_param(block, "weight", DVT_SHAPE(1), DVT_F32, dvt_init_constant(3)));
    CHECK(dvt_block_add_param(block, "shift", DVT_SHAPE(1), DVT_F32, dvt_init_constant(5)));
    CHECK(dvt_block_add_param(block, "running_size", DVT_SHAPE(1), DVT_F32, dvt_init_one()));
    CHECK_INT(dvt_block_add_child(block, dvt_nn_activation(DVT_RELU)), DVT_OK);
    CHECK_INT(dvt_block_initialize(block, dvt_init_one(), DVT_CONTEXTS(ctx)), DVT_OK);
    return block;
}

/* All numbers are exact in float16, and a missing scale would make a gradient wrong by 64. */
DVT_TEST(mixed_scale_wherever_gradients_cross) {
    dvt_ctx ctx = dvt_test_ctx();
    crossing c;
    dvt_block *block;
    dvt_array *x = dvt_full(DVT_SHAPE(2), 2, DVT_F32, ctx), *y = NULL, *out[2], *vars[2];
    memset(&c, 0, sizeof c);
    c.factor = dvt_full(DVT_SHAPE(2), 7, DVT_F32, ctx);
    CHECK_INT(dvt_attach_grad(x, DVT_GRAD_WRITE), DVT_OK);
    CHECK_INT(dvt_attach_grad(c.factor, DVT_GRAD_WRITE), DVT_OK);
    block = crossing_block(&c, ctx);
    CHECK_INT(dvt_block_set_mixed_precision(block, DVT_F16), DVT_OK);
    set_scale(block, 64, true);
    DVT_RECORD {
        y = dvt_block_forward(block, x);
        y = dvt_add(y, dvt_mul_scalar(c.side, 2)); /* 2 (3 5 7 + 3 2) */
    }
    CHECK_VALUES(y, 0, 222, 222);
    CHECK_INT(c.of_block_data, DVT_F16);
    CHECK_INT(c.of_nested, DVT_F16);
    CHECK_INT(c.of_param_data, DVT_F32);
    CHECK_INT(c.of_running, DVT_F32);
    CHECK_INT(dvt_backward_from(&y, NULL, 1, DVT_RETAIN_GRAPH), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 0, 111, 111);
    CHECK_VALUES(dvt_grad(c.factor), 0, 30, 30);
    CHECK_VALUES(dvt_param_grad(dvt_block_param(block, "weight"), ctx), 0, 148);
    CHECK_VALUES(dvt_param_grad(dvt_block_param(block, "shift"), ctx), 0, 84);
    /* a head and a variable inside of the net */
    vars[0] = x;
    vars[1] = c.side;
    CHECK_INT(dvt_gradients(&y, NULL, 1, vars, 2, DVT_RETAIN_GRAPH, out), DVT_OK);
    CHECK_VALUES(out[0], 0, 111, 111);
    CHECK_VALUES(out[1], 0, 37, 37);
    CHECK_INT(dvt_gradients(&c.side, NULL, 1, vars, 2, DVT_RETAIN_GRAPH, out), DVT_OK);
    CHECK_VALUES(out[0], 0, 3, 3);
    CHECK_VALUES(out[1], 0, 1, 1);
    /* gradients of gradients: d(3 5 factor + 6) / d factor */
    CHECK_INT(dvt_gradients(&y, NULL, 1, vars, 1, DVT_CREATE_GRAPH, out), DVT_OK);
    vars[0] = c.factor;
    CHECK_INT(dvt_gradients(out, NULL, 1, vars, 1, DVT_FREE_GRAPH, out + 1), DVT_OK);
    CHECK_VALUES(out[1], 0, 15, 15);
    dvt_release(c.side);
    /* outside of a forward pass: the parameter itself */
    CHECK_INT(dvt_dtype_of(dvt_block_data(block, "weight", ctx)), DVT_F32);
}

/* Slices of one array add their gradients in place, but not across the border. */
static dvt_array *slices_forward(dvt_block *self, void *user, dvt_array *x) {
    dvt_array *outside = (dvt_array *)user;
    (void)self;
    return dvt_add(dvt_mul(x, dvt_slice(outside, 0, 0, 2, 1)), dvt_slice(outside, 0, 1, 3, 1));
}

DVT_TEST(mixed_slices_from_outside) {
    dvt_ctx ctx = dvt_test_ctx();
    dvt_array *leaf = dvt_ones(DVT_SHAPE(3), DVT_F32, ctx), *y = NULL;
    dvt_array *x = dvt_full(DVT_SHAPE(2), 2, DVT_F32, ctx);
    dvt_block_desc desc;
    dvt_block *block;
    memset(&desc, 0, sizeof desc);
    desc.kind = "Slices";
    desc.forward = slices_forward;
    CHECK_INT(dvt_attach_grad(leaf, DVT_GRAD_WRITE), DVT_OK);
    DVT_RECORD {
        desc.user = dvt_mul_scalar(leaf, 1);
        block = dvt_block_new(&desc);
        CHECK_INT(dvt_block_set_mixed_precision(block, DVT_F16), DVT_OK);
        set_scale(block, 16, false);
        y = dvt_add(dvt_block_forward(block, x), dvt_slice((dvt_array *)desc.user, 0, 0, 2, 1));
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_VALUES(dvt_grad(leaf), 0, 3, 4, 1);
}

/* ---- kinds of input and of blocks ---- */
DVT_TEST(mixed_class_numbers_stay_exact) {
    dvt_block *net = dvt_nn_sequential();
    dvt_ctx ctx = dvt_test_ctx();
    dvt_array *weight, *x = dvt_full(DVT_SHAPE(1, 2), 2049, DVT_F32, ctx); /* 2048 in float16 */
    DVT_NN_ADD(net, dvt_nn_embedding(4096, 1), dvt_nn_flatten());
    CHECK_INT(dvt_block_initialize(net, dvt_init_zero(), DVT_CONTEXTS(ctx)), DVT_OK);
    weight = dvt_reshape(dvt_arange(0, 4096, 1, DVT_F32, ctx), DVT_SHAPE(4096, 1));
    CHECK_INT(dvt_param_set_data(dvt_block_param(dvt_block_at(net, 0), "weight"),
                                 dvt_sub_scalar(weight, 2000)),
              DVT_OK);
    CHECK_INT(dvt_block_set_mixed_precision(net, DVT_F16), DVT_OK);
    CHECK_VALUES(dvt_block_forward(net, x), 0, 49, 49);
    CHECK_VALUES(dvt_block_forward(net, dvt_astype(x, DVT_I64)), 0, 49, 49);
    net = dvt_nn_sequential();
    DVT_NN_ADD(net, dvt_nn_activation(DVT_RELU), dvt_nn_embedding(4096, 1));
    CHECK_INT(dvt_block_initialize(net, dvt_init_zero(), DVT_CONTEXTS(ctx)), DVT_OK);
    CHECK_INT(dvt_block_set_mixed_precision(net, DVT_BF16), DVT_OK);
    CHECK_ERROR(dvt_block_forward(net, x), DVT_ERR_DTYPE);
}

/* The same net in float32 and in mixed precision; every block keeps the net at 16 bits. */
static void close_case(dvt_block *net, dvt_array *x, dvt_dtype dtype, double tolerance) {
    dvt_ctx_list ctxs = DVT_CONTEXTS(dvt_ctx_of(x));
    dvt_array *expected = NULL, *y = NULL, *half;
    dvt_params *params;
    double *e, *m;
    int64_t i;
    dvt_seed(2);
    CHECK_INT(dvt_block_initialize(net, dvt_init_xavier(), ctxs), DVT_OK);
    DVT_RECORD {
        expected = dvt_block_forward(net, x);
    }
    CHECK_INT(dvt_block_set_mixed_precision(net, dtype), DVT_OK);
    set_scale(net, 16, false); /* gradients of 1 would overflow at 65536 */
    DVT_RECORD {
        y = dvt_block_forward(net, x);
    }
    CHECK_INT(dvt_dtype_of(y), DVT_F32);
    half = dvt_astype(dvt_astype(y, dtype), DVT_F32);
    same_bits(y, half, "a result that was 16 bits");
    e = dvt_test_values(expected);
    m = dvt_test_values(y);
    for (i = 0; e && m && i < dvt_size(y); i++)
        CHECK_CLOSE(m[i], e[i], tolerance);
    free(e);
    free(m);
    CHECK_INT(dvt_backward(y), DVT_OK);
    params = dvt_block_collect_params(net, ".*(weight|gamma|alpha)");
    for (i = 0; i < dvt_params_len(params); i++) {
        dvt_array *g = dvt_param_grad(dvt_params_at(params, (int)i), ctxs.ctx[0]);
        CHECK_INT(dvt_dtype_of(g), DVT_F32);
        CHECK_INT((int)dvt_item(dvt_all(dvt_isfinite(g), DVT_ALL)), 1);
    }
}

DVT_TEST(mixed_blocks_compute_in_16_bits) {
    dvt_ctx ctx = dvt_test_ctx();
    int i;
    for (i = 0; i < 2 && EACH_THERE(i, 2); i++)
        DVT_SCOPE {
            dvt_dtype dtype = i ? DVT_BF16 : DVT_F16;
            double tolerance = i ? 0.15 : 0.02;
            dvt_array *image =
                dvt_key_normal(dvt_key_new(5), 0, 1, DVT_SHAPE(2, 2, 8, 8), DVT_F32, ctx);
            dvt_array *row = dvt_key_normal(dvt_key_new(6), 0, 1, DVT_SHAPE(3, 2, 4), DVT_F32, ctx);
            dvt_block *net = dvt_nn_sequential();
            DVT_NN_ADD(net, dvt_nn_conv2d(4, 3, DVT_RELU), dvt_nn_batch_norm(),
                       dvt_nn_max_pool2d(2, 2), dvt_nn_group_norm(2), dvt_nn_prelu(1),
                       dvt_nn_conv2d_transpose(4, 2, 1, DVT_GELU), dvt_nn_instance_norm(true),
                       dvt_nn_avg_pool2d(2, 2), dvt_nn_dense(3, DVT_SIGMOID));
            close_case(net, image, dtype, tolerance);
            net = dvt_nn_sequential();
            DVT_NN_ADD(net, dvt_nn_lstm(4), dvt_nn_layer_norm(), dvt_nn_gru(3), dvt_nn_rms_norm(0));
            close_case(net, row, dtype, tolerance);
        }
}

DVT_TEST(mixed_running_statistics_are_float32) {
    dvt_block *net = dvt_nn_batch_norm();
    dvt_ctx ctx = dvt_test_ctx();
    dvt_array *x = dvt_reshape(dvt_arange(1000, 1008, 1, DVT_F32, ctx), DVT_SHAPE(8, 1));
    CHECK_INT(dvt_block_initialize(net, dvt_init_one(), DVT_CONTEXTS(ctx)), DVT_OK);
    CHECK_INT(dvt_block_set_mixed_precision(net, DVT_F16), DVT_OK);
    DVT_RECORD {
        CHECK(dvt_block_forward(net, x) != NULL);
    }
    CHECK_VALUES(dvt_block_data(net, "running_mean", ctx), 1e-6, 100.35);
    CHECK_INT(dvt_dtype_of(dvt_block_data(net, "running_var", ctx)), DVT_F32);
}

DVT_TEST(mixed_recurrent_states) {
    dvt_ctx ctx = dvt_test_ctx();
    dvt_block *lstm = dvt_nn_lstm(3);
    dvt_array *x = dvt_key_normal(dvt_key_new(6), 0, 1, DVT_SHAPE(2, 2, 4), DVT_F32, ctx);
    dvt_array *states[2], *next[2] = {NULL, NULL}, *y = NULL;
    int k;
    for (k = 0; k < 2; k++) {
        states[k] = dvt_full(DVT_SHAPE(1, 2, 3), 0.5, DVT_F32, ctx);
        CHECK_INT(dvt_attach_grad(states[k], DVT_GRAD_WRITE), DVT_OK);
    }
    CHECK_INT(dvt_block_initialize(lstm, dvt_init_xavier(), DVT_CONTEXTS(ctx)), DVT_OK);
    CHECK_INT(dvt_block_set_mixed_precision(lstm, DVT_F16), DVT_OK);
    set_scale(lstm, 256, false);
    DVT_RECORD {
        y = dvt_recurrent_forward(lstm, x, states, 2, next);
        y = dvt_add(dvt_sum(y, DVT_ALL), dvt_sum(next[1], DVT_ALL));
    }
    CHECK_INT(dvt_dtype_of(next[0]), DVT_F32);
    CHECK_INT(dvt_dtype_of(next[1]), DVT_F32);
    same_bits(next[1], dvt_astype(dvt_astype(next[1], DVT_F16), DVT_F32), "a 16-bit state");
    CHECK_INT(dvt_backward(y), DVT_OK);
    /* c passes two forget gates of about 0.5, once to y and once to next */
    CHECK(dvt_item(dvt_max(dvt_grad(states[1]), DVT_ALL)) < 2);
    CHECK(dvt_item(dvt_min(dvt_grad(states[1]), DVT_ALL)) > 0.05);
}

/* ---- 16-bit copies of the parameters ---- */
DVT_TEST(mixed_copies_follow_the_parameters) {
    dvt_ctx ctx = dvt_test_ctx();
    dvt_block *net = dvt_nn_dense(1, DVT_IDENTITY);
    dvt_param *w = dvt_block_param(net, "weight");
    dvt_array *x = dvt_ones(DVT_SHAPE(1, 1), DVT_F32, ctx), *y = NULL;
    dvt_ctx_list two = DVT_CONTEXTS(ctx, dvt_cpu_id(3));
    CHECK_INT(dvt_block_set_mixed_precision(net, DVT_F16), DVT_OK); /* before initialization */
    CHECK_INT(dvt_block_initialize(net, dvt_init_constant(2), DVT_CONTEXTS(ctx)), DVT_OK);
    CHECK_VALUES(dvt_block_forward(net, x), 0, 2);
    CHECK_INT(dvt_param_set_data(w, dvt_full(DVT_SHAPE(1, 1), 3, DVT_F32, ctx)), DVT_OK);
    CHECK_VALUES(dvt_block_forward(net, x), 0, 3);
    CHECK(dvt_fill(dvt_param_data(w, ctx), 4) != NULL);
    CHECK_VALUES(dvt_block_forward(net, x), 0, 4);
    DVT_RECORD {
        y = dvt_block_forward(net, x);
    }
    CHECK_INT(dvt_block_reinitialize(net, dvt_init_constant(5), two), DVT_OK);
    CHECK_VALUES(dvt_block_forward(net, x), 0, 5);
    CHECK_VALUES(dvt_block_forward(net, dvt_as_in_ctx(x, two.ctx[1])), 0, 5);
    CHECK_INT(
        dvt_params_reset_ctx(dvt_block_collect_params(net, NULL), DVT_CONTEXTS(dvt_cpu_id(3))),
        DVT_OK);
    CHECK_VALUES(dvt_block_forward(net, dvt_as_in_ctx(x, two.ctx[1])), 0, 5);
    CHECK_INT(dvt_block_set_mixed_precision(net, DVT_BF16), DVT_OK);
    CHECK_INT(dvt_param_set_data(w, dvt_full(DVT_SHAPE(1, 1), 257, DVT_F32, ctx)), DVT_OK);
    CHECK_VALUES(dvt_block_forward(net, dvt_as_in_ctx(x, two.ctx[1])), 0, 256);
    CHECK_INT(dvt_block_set_mixed_precision(net, DVT_F32), DVT_OK);
    CHECK_VALUES(dvt_block_forward(net, dvt_as_in_ctx(x, two.ctx[1])), 0, 257);
    CHECK(y != NULL);
}

#if !defined(DEVTENSOR_NO_FILES)
DVT_TEST(mixed_files_are_float32) {
    dvt_ctx ctx = dvt_cpu();
    dvt_block *net = small_net(ctx), *other;
    dvt_array *before, *x = input(ctx);
    char path[300];
    const char *base = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/dvt-mixed.params", base && base[0] ? base : "/tmp");
    before = dvt_copy(data_of(net, 0, "weight", ctx));
    CHECK_INT(dvt_block_set_mixed_precision(net, DVT_BF16), DVT_OK);
    CHECK(dvt_block_forward(net, x) != NULL);
    CHECK_INT(dvt_block_save(net, path), DVT_OK);
    other = small_net(ctx);
    CHECK_INT(dvt_block_reinitialize(other, dvt_init_zero(), DVT_CONTEXTS(ctx)), DVT_OK);
    CHECK_INT(dvt_block_set_mixed_precision(other, DVT_BF16), DVT_OK);
    CHECK(dvt_block_forward(other, x) != NULL);
    CHECK_INT(dvt_block_load(other, path, DVT_CONTEXTS(ctx)), DVT_OK);
    same_bits(data_of(other, 0, "weight", ctx), before, "a loaded weight");
    same_bits(dvt_block_forward(other, x), dvt_block_forward(net, x), "the result");
    remove(path);
}
#endif

/* ---- errors ---- */
static dvt_block *other_block(dvt_dtype dtype) {
    dvt_nn_dense_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.units = 2;
    desc.dtype = dtype;
    return dvt_nn_dense_with(&desc);
}

/* Blocks that join a net take its mixed precision, or are refused; those that outlive it are free
   to take another. */
DVT_TEST(mixed_blocks_that_join_and_leave) {
    dvt_ctx ctx = dvt_test_ctx();
    dvt_block *child = dvt_nn_dense(3, DVT_TANH), *net, *other = dvt_nn_sequential();
    dvt_nn_dense_desc wide;
    dvt_trainer *trainer;
    dvt_array *loss = NULL;
    memset(&wide, 0, sizeof wide);
    wide.units = 2;
    wide.dtype = DVT_F64;
    DVT_SCOPE {
        net = dvt_nn_sequential();
        CHECK_INT(dvt_block_set_mixed_precision(net, DVT_F16), DVT_OK);
        CHECK_ERROR(DVT_NN_ADD(net, child, dvt_nn_dense_with(&wide)), DVT_ERR_DTYPE);
        CHECK_INT(dvt_block_len(net), 0);
        CHECK_INT(dvt_block_mixed_precision(child).compute, DVT_F32);
        CHECK_INT(DVT_NN_ADD(net, child, dvt_nn_dense(1, DVT_IDENTITY)), DVT_OK);
        CHECK_INT(dvt_block_mixed_precision(child).compute, DVT_F16);
        CHECK_INT(dvt_block_initialize(net, dvt_init_xavier(), DVT_CONTEXTS(ctx)), DVT_OK);
        trainer = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_sgd(0.1));
        DVT_RECORD { /* 1e6 times the scale overflows in float16 */
            loss = dvt_mul_scalar(dvt_block_forward(net, dvt_ones(DVT_SHAPE(4, 2), DVT_F32, ctx)),
                                  1e6);
        }
        CHECK_INT(dvt_backward(loss), DVT_OK);
        CHECK_INT(dvt_trainer_step(trainer, 4), DVT_OK);
        CHECK_INT(dvt_block_mixed_precision(net).skipped_steps, 1);
    }
    CHECK_INT(DVT_NN_ADD(other, child), DVT_OK); /* which has outlived its net */
    CHECK_INT(dvt_block_set_mixed_precision(other, DVT_BF16), DVT_OK);
    CHECK_INT(dvt_block_mixed_precision(child).compute, DVT_BF16);
}

/* Shapes are inferred on arrays without memory, of which no 16-bit copies are kept. */
DVT_TEST(mixed_shapes_are_inferred) {
    dvt_ctx ctx = dvt_test_ctx();
    dvt_block *net = dvt_nn_sequential();
    dvt_shape out;
    DVT_NN_ADD(net, dvt_nn_dense(5, DVT_RELU), dvt_nn_layer_norm(), dvt_nn_dense(2, DVT_IDENTITY));
    CHECK_INT(dvt_block_set_mixed_precision(net, DVT_BF16), DVT_OK);
    CHECK_INT(dvt_block_initialize(net, dvt_init_xavier(), DVT_CONTEXTS(ctx)), DVT_OK);
    CHECK_INT(dvt_block_infer_shapes(net, DVT_SHAPE(3, 7), DVT_F32, &out), DVT_OK);
    CHECK(dvt_shape_equal(out, DVT_SHAPE(3, 2)));
    CHECK_INT(dvt_dtype_of(dvt_block_forward(net, dvt_ones(DVT_SHAPE(3, 7), DVT_F32, ctx))),
              DVT_F32);
    CHECK_INT(dvt_block_infer_shapes(net, DVT_SHAPE(9, 7), DVT_F32, &out), DVT_OK);
    CHECK(dvt_shape_equal(out, DVT_SHAPE(9, 2)));
}

DVT_TEST(mixed_errors) {
    dvt_ctx ctx = dvt_cpu();
    dvt_block *net = small_net(ctx), *outer = dvt_nn_sequential(), *twice = dvt_nn_sequential();
    dvt_block *first = dvt_block_at(net, 0);
    dvt_array *x = input(ctx);
    dvt_loss_scaling options;
    memset(&options, 0, sizeof options);
    CHECK_ERROR(dvt_block_set_mixed_precision(NULL, DVT_F16), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_block_set_mixed_precision(net, DVT_F64), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_block_set_mixed_precision(net, DVT_I8), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_block_set_mixed_precision(net, (dvt_dtype)77), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_block_set_mixed_precision(other_block(DVT_F64), DVT_F16), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_block_set_mixed_precision(other_block(DVT_F16), DVT_F16), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_block_set_loss_scaling(net, &options), DVT_ERR_VALUE);
    CHECK_INT(dvt_block_mixed_precision(net).compute, DVT_F32);
    CHECK_INT(dvt_block_set_mixed_precision(net, DVT_F32), DVT_OK); /* off already */
    CHECK_INT(dvt_block_set_mixed_precision(net, DVT_F16), DVT_OK);
    CHECK_INT(dvt_block_mixed_precision(first).compute, DVT_F16);
    CHECK_CLOSE(dvt_block_mixed_precision(first).loss_scale, 65536, 0);
    CHECK_ERROR(dvt_block_forward(net, dvt_astype(x, DVT_F64)), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_block_set_mixed_precision(first, DVT_F16), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_block_set_mixed_precision(first, DVT_F32), DVT_ERR_VALUE);
    options.init_scale = 3;
    CHECK_ERROR(dvt_block_set_loss_scaling(net, &options), DVT_ERR_RANGE);
    options.init_scale = ldexp(1, 25);
    CHECK_ERROR(dvt_block_set_loss_scaling(net, &options), DVT_ERR_RANGE);
    options.init_scale = -4;
    CHECK_ERROR(dvt_block_set_loss_scaling(net, &options), DVT_ERR_RANGE);
    options.init_scale = (double)NAN;
    CHECK_ERROR(dvt_block_set_loss_scaling(net, &options), DVT_ERR_RANGE);
    options.init_scale = 0;
    options.growth_interval = -1;
    CHECK_ERROR(dvt_block_set_loss_scaling(net, &options), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_block_set_loss_scaling(net, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_block_mixed_precision(NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_CLOSE(dvt_block_mixed_precision(net).loss_scale, 65536, 0);
    /* one block below two nets */
    DVT_NN_ADD(outer, net);
    CHECK_ERROR(dvt_block_set_mixed_precision(outer, DVT_BF16), DVT_ERR_VALUE);
    CHECK_INT(dvt_dtype_of(dvt_block_forward(outer, x)), DVT_F32); /* a region inside */
    CHECK_INT(dvt_block_set_mixed_precision(twice, DVT_BF16), DVT_OK);
    CHECK_ERROR(DVT_NN_ADD(twice, net), DVT_ERR_VALUE);
    CHECK_INT(dvt_block_len(twice), 0);
    CHECK(dvt_block_forward(net, x) != NULL);
    CHECK_INT(dvt_dtype_of(dvt_block_data(first, "weight", ctx)), DVT_F32);
    CHECK_INT(dvt_block_set_mixed_precision(net, DVT_F32), DVT_OK);
    CHECK_INT(dvt_block_mixed_precision(first).compute, DVT_F32);
    CHECK(dvt_block_forward(twice, x) != NULL);
}

/* A longjmp of the host program, or a C++ exception, leaves a region that never ends. */
#if !defined(_WIN32)
static jmp_buf left_by;

static dvt_array *jumps_out(dvt_block *self, void *user, dvt_array *x) {
    (void)self;
    (void)user;
    (void)x;
    longjmp(left_by, 1);
}

DVT_TEST(mixed_forward_left_by_longjmp) {
    dvt_ctx ctx = dvt_cpu();
    dvt_block_desc desc;
    dvt_block *jumper, *net;
    dvt_array *x = dvt_full(DVT_SHAPE(1), 2049, DVT_F32, ctx), *y = NULL;
    dvt_scope_guard scope;
    memset(&desc, 0, sizeof desc);
    desc.kind = "Jumper";
    desc.forward = jumps_out;
    jumper = dvt_block_new(&desc);
    net = dvt_nn_dense(1, DVT_IDENTITY);
    CHECK_INT(dvt_block_set_mixed_precision(jumper, DVT_F16), DVT_OK);
    CHECK_INT(dvt_block_initialize(net, dvt_init_one(), DVT_CONTEXTS(ctx)), DVT_OK);
    CHECK(dvt_block_forward(net, dvt_reshape(x, DVT_SHAPE(1, 1))) != NULL);
    scope = dvt_scope_begin();
    if (setjmp(left_by) == 0)
        dvt_block_forward(jumper, x);
    dvt_scope_end(&scope);
    CHECK_INT(dvt_dtype_of(dvt_block_data(net, "weight", ctx)), DVT_F32);
    CHECK_INT(dvt_attach_grad(x, DVT_GRAD_WRITE), DVT_OK);
    DVT_RECORD { /* what a thread records before its next forward is right too */
        y = dvt_mul_scalar(x, 3);
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 0, 3);
    CHECK_VALUES(dvt_block_forward(net, dvt_reshape(x, DVT_SHAPE(1, 1))), 0, 2049);
}
#endif
#endif
