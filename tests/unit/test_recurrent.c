/* Tests of RNN, LSTM and GRU: values and gradients against PyTorch's and against differences,
   states, printed forms, parameters, devices, and arguments that are refused. */
#include "dvt_golden.h"
#include "gradient_check.h"
#if !defined(DEVTENSOR_NO_NN)

typedef dvt_block *(*make_fn)(const dvt_nn_recurrent_desc *);

static const make_fn makers[] = {dvt_nn_rnn_with, dvt_nn_lstm_with, dvt_nn_gru_with};

static dvt_nn_recurrent_desc recurrent_desc(int64_t hidden) {
    dvt_nn_recurrent_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.hidden_size = hidden;
    return desc;
}

/* Returns an initialized block with weights and biases from U(-0.7, 0.7), or from one value. */
static dvt_block *ready(make_fn make, dvt_nn_recurrent_desc desc, dvt_ctx_list ctxs) {
    dvt_block *block;
    desc.i2h_bias_init = desc.h2h_bias_init = dvt_init_uniform(0.7);
    dvt_seed(5);
    block = make(&desc);
    CHECK_INT(dvt_block_initialize(block, dvt_init_uniform(0.7), ctxs), DVT_OK);
    return block;
}

static dvt_array *waves(dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx) {
    dvt_array *x = dvt_arange(0, (double)dvt_shape_size(shape), 1, dtype, ctx);
    return dvt_reshape(dvt_sin(dvt_mul_scalar(x, 1.7)), shape);
}

/* ---- against PyTorch ---- */
#if !defined(DEVTENSOR_NO_FILES)
typedef struct torch_case {
    const char *name;
    make_fn make;
    int64_t hidden;
    int layers;
    bool both, ntc, no_bias;
    dvt_activation activation;
} torch_case;

static dvt_array *torch_array(dvt_array_list *list, const char *name, const char *what) {
    char key[80];
    snprintf(key, sizeof key, "%s.%s", name, what);
    return dvt_array_list_find(list, key);
}

static void check_close(const torch_case *c, const char *what, dvt_array *x, dvt_array *expected) {
    dvt_test_check(dvt_shape_equal(dvt_shape_of(x), dvt_shape_of(expected)) &&
                       dvt_allclose(x, expected, 1e-9, 1e-11, DVT_NAN_DIFFERS),
                   __FILE__, __LINE__, "%s: %s differs: %s", c->name, what, dvt_error());
}

/* Calls `each` for every parameter, with its name in PyTorch. */
static void each_param(dvt_block *block, const torch_case *c, dvt_array_list *list,
                       void (*each)(const torch_case *, dvt_array_list *, dvt_param *,
                                    const char *)) {
    dvt_params *all = dvt_block_collect_params(block, NULL);
    int i;
    CHECK_INT(dvt_params_len(all), c->layers * (c->both ? 2 : 1) * (c->no_bias ? 2 : 4));
    for (i = 0; i < dvt_params_len(all); i++) {
        dvt_param *p = dvt_params_at(all, i);
        const char *name = strchr(dvt_param_name(p), '_') + 1; /* "r1_h2h_weight" */
        char torch[60];
        snprintf(torch, sizeof torch, "%s_%s_l%c%s", name + 7, name[3] == 'i' ? "ih" : "hh",
                 name[1], name[0] == 'r' ? "_reverse" : "");
        each(c, list, p, torch);
    }
}

static void set_from_torch(const torch_case *c, dvt_array_list *list, dvt_param *p,
                           const char *torch) {
    char what[80];
    snprintf(what, sizeof what, "weight.%s", torch);
    CHECK_INT(dvt_param_set_data(p, torch_array(list, c->name, what)), DVT_OK);
}

static void check_gradient(const torch_case *c, dvt_array_list *list, dvt_param *p,
                           const char *torch) {
    char what[80];
    snprintf(what, sizeof what, "grad.%s", torch);
    check_close(c, what, dvt_param_grad(p, dvt_test_ctx()), torch_array(list, c->name, what));
}

static dvt_array *weighed(dvt_array *x) {
    dvt_array *n = dvt_arange(0, (double)dvt_size(x), 1, DVT_F64, dvt_ctx_of(x));
    return dvt_sum(dvt_mul(x, dvt_reshape(dvt_cos(n), dvt_shape_of(x))), DVT_ALL);
}

static void check_case(const torch_case *c, dvt_array_list *list) {
    dvt_nn_recurrent_desc desc = recurrent_desc(c->hidden);
    dvt_block *block;
    int n = c->make == dvt_nn_lstm_with ? 2 : 1, k;
    dvt_array *x = torch_array(list, c->name, "x"), *state[2], *next[2] = {NULL, NULL}, *y = NULL,
              *sum = NULL;
    desc.layers = c->layers;
    desc.bidirectional = c->both;
    desc.layout = c->ntc ? DVT_NTC : DVT_TNC;
    desc.no_bias = c->no_bias;
    desc.activation = c->activation;
    desc.dtype = DVT_F64;
    block = c->make(&desc);
    CHECK_INT(dvt_block_initialize(block, dvt_init_constant(NAN), DVT_CONTEXTS(dvt_test_ctx())),
              DVT_OK);
    dvt_block_forward(block, x);
    each_param(block, c, list, set_from_torch);
    check_close(c, "y of zero states", dvt_block_forward(block, x),
                torch_array(list, c->name, "zeros"));
    for (k = 0; k < n; k++) {
        state[k] = torch_array(list, c->name, k ? "c0" : "h0");
        CHECK_INT(dvt_attach_grad(state[k], DVT_GRAD_WRITE), DVT_OK);
    }
    CHECK_INT(dvt_attach_grad(x, DVT_GRAD_WRITE), DVT_OK);
    DVT_RECORD {
        y = dvt_recurrent_forward(block, x, state, n, next);
        sum = weighed(y);
        for (k = 0; k < n; k++)
            sum = dvt_add(sum, weighed(next[k]));
    }
    CHECK_INT(dvt_backward(sum), DVT_OK);
    check_close(c, "y", y, torch_array(list, c->name, "y"));
    check_close(c, "hn", next[0], torch_array(list, c->name, "hn"));
    check_close(c, "grad.x", dvt_grad(x), torch_array(list, c->name, "grad.x"));
    check_close(c, "grad.h0", dvt_grad(state[0]), torch_array(list, c->name, "grad.h0"));
    if (n == 2) {
        check_close(c, "cn", next[1], torch_array(list, c->name, "cn"));
        check_close(c, "grad.c0", dvt_grad(state[1]), torch_array(list, c->name, "grad.c0"));
    }
    each_param(block, c, list, check_gradient);
}

DVT_TEST(recurrent_layers_match_pytorch) {
    static const torch_case cases[] = {
        {"rnn", dvt_nn_rnn_with, 4, 1, false, false, false, DVT_IDENTITY},
        {"rnn_relu", dvt_nn_rnn_with, 3, 2, false, false, false, DVT_RELU},
        {"lstm", dvt_nn_lstm_with, 4, 1, false, false, false, DVT_IDENTITY},
        {"lstm_all", dvt_nn_lstm_with, 2, 2, true, false, false, DVT_IDENTITY},
        {"lstm_no_bias", dvt_nn_lstm_with, 2, 1, false, true, true, DVT_IDENTITY},
        {"gru", dvt_nn_gru_with, 4, 1, false, false, false, DVT_IDENTITY},
        {"gru_all", dvt_nn_gru_with, 2, 2, true, true, false, DVT_IDENTITY},
        {"gru_no_bias", dvt_nn_gru_with, 2, 1, false, false, true, DVT_IDENTITY}};
    dvt_array_list *list =
        dvt_load_safetensors(golden_path(__FILE__, "torch/layers.safetensors"), dvt_test_ctx());
    int i;
    if (!CHECK(list != NULL))
        return;
    for (i = 0; i < COUNT(cases); i++)
        DVT_SCOPE {
            check_case(&cases[i], list);
        }
}
#endif

/* ---- gradients ---- */
static dvt_array *run_block(dvt_array *const *x, const void *user) {
    dvt_block *block = (dvt_block *)(uintptr_t)user;
    return dvt_block_forward(block, dvt_astype(x[0], DVT_F64));
}

/* PyTorch's gradients of first order are above; these include the second order. */
DVT_TEST(recurrent_gradients_of_second_order) {
    int i;
    if (dvt_test_ctx().type == DVT_DEVICE_GPU)
        SKIP("the parameters are float64");
    for (i = 0; i < COUNT(makers); i++) {
        dvt_nn_recurrent_desc desc = recurrent_desc(2);
        desc.dtype = DVT_F64;
        desc.bidirectional = i == 1;
        check_one("recurrent", run_block, ready(makers[i], desc, DVT_CONTEXTS(dvt_cpu())),
                  DVT_SHAPE(3, 1, 2), -1, 1);
    }
}

/* ---- states ---- */
/* A sequence in two parts, with the states of the first for the second, is the sequence at once. */
DVT_TEST(recurrent_states_continue_a_sequence) {
    int i, k;
    for (i = 0; i < COUNT(makers); i++) {
        dvt_nn_recurrent_desc desc = recurrent_desc(3);
        dvt_block *block;
        dvt_array *x = waves(DVT_SHAPE(5, 2, 4), DVT_F32, dvt_test_ctx()), *state[2], *last[2];
        dvt_array *part[2], *y;
        int n = i == 1 ? 2 : 1;
        desc.layers = 2;
        block = ready(makers[i], desc, DVT_CONTEXTS(dvt_test_ctx()));
        y = dvt_recurrent_forward(block, x, NULL, n, last);
        part[0] = dvt_recurrent_forward(block, dvt_rows(x, 0, 2), NULL, n, state);
        part[1] = dvt_recurrent_forward(block, dvt_rows(x, 2, 5), state, n, state);
        CHECK(dvt_allclose(dvt_concat(part, 2, 0), y, 1e-6, 1e-7, DVT_NAN_DIFFERS));
        CHECK(dvt_allclose(y, dvt_block_forward(block, x), 0, 0, DVT_NAN_DIFFERS));
        for (k = 0; k < n; k++) {
            CHECK(dvt_shape_equal(dvt_shape_of(state[k]), DVT_SHAPE(2, 2, 3)));
            CHECK(dvt_allclose(state[k], last[k], 1e-6, 1e-7, DVT_NAN_DIFFERS));
        }
        /* the last h of the last layer is the last result */
        CHECK(dvt_array_equal(dvt_index(last[0], -1), dvt_index(y, -1), DVT_NAN_DIFFERS));
        CHECK(dvt_recurrent_forward(block, x, last, n, NULL) != NULL);
    }
}

/* Detached states end the gradients: x of the first part gets none. */
DVT_TEST(recurrent_detached_states_end_gradients) {
    dvt_block *block = ready(dvt_nn_gru_with, recurrent_desc(2), DVT_CONTEXTS(dvt_test_ctx()));
    int detached;
    for (detached = 0; detached < 2; detached++) {
        dvt_array *x = waves(DVT_SHAPE(4, 1, 1), DVT_F32, dvt_test_ctx()), *state = NULL, *y = NULL;
        dvt_attach_grad(x, DVT_GRAD_WRITE);
        DVT_RECORD {
            dvt_recurrent_forward(block, dvt_rows(x, 0, 2), NULL, 1, &state);
            if (detached)
                state = dvt_detach(state);
            y = dvt_recurrent_forward(block, dvt_rows(x, 2, 4), &state, 1, NULL);
        }
        CHECK_INT(dvt_backward(y), DVT_OK);
        CHECK((dvt_item_at(dvt_grad(x), DVT_SHAPE(0, 0, 0)) == 0) == (detached == 1));
        CHECK(dvt_item_at(dvt_grad(x), DVT_SHAPE(2, 0, 0)) != 0);
    }
}

/* ---- parameters and printing ---- */
#define CHECK_PRINTS(block, expected)                                                              \
    do {                                                                                           \
        char check_text_[400];                                                                     \
        dvt_block_format(block, check_text_, sizeof check_text_);                                  \
        CHECK_STR(check_text_, expected);                                                          \
    } while (0)

/* The texts are those of Gluon. */
DVT_TEST(recurrent_blocks_print_as_gluon) {
    dvt_nn_recurrent_desc desc = recurrent_desc(100);
    dvt_block *block = dvt_nn_lstm(256);
    CHECK_PRINTS(dvt_nn_rnn(7), "RNN(None -> 7, TNC)");
    CHECK_PRINTS(dvt_nn_gru(7), "GRU(None -> 7, TNC)");
    CHECK_PRINTS(block, "LSTM(None -> 256, TNC)");
    dvt_block_initialize(block, dvt_init_xavier(), DVT_CONTEXTS(dvt_test_ctx()));
    dvt_block_forward(block, dvt_zeros(DVT_SHAPE(1, 1, 28), DVT_F32, dvt_test_ctx()));
    CHECK_PRINTS(block, "LSTM(28 -> 256, TNC)");
    desc.input_size = 50;
    desc.layers = 3;
    desc.dropout = 0.5;
    desc.bidirectional = true;
    desc.layout = DVT_NTC;
    CHECK_PRINTS(dvt_nn_lstm_with(&desc),
                 "LSTM(50 -> 100, NTC, num_layers=3, dropout=0.5, bidirectional)");
}

DVT_TEST(recurrent_parameters) {
    static const char *const names[] = {"l0_i2h_weight", "l0_h2h_weight", "l0_i2h_bias",
                                        "l0_h2h_bias",   "r0_i2h_weight", "r0_h2h_weight",
                                        "r0_i2h_bias",   "r0_h2h_bias",   "l1_i2h_weight"};
    dvt_nn_recurrent_desc desc = recurrent_desc(3);
    dvt_block *block;
    dvt_params *all;
    dvt_array *bias;
    char text[80];
    int i;
    desc.layers = 2;
    desc.bidirectional = true;
    desc.h2h_bias_init = dvt_init_one();
    desc.dtype = DVT_F16;
    block = dvt_nn_gru_with(&desc);
    all = dvt_block_collect_params(block, NULL);
    CHECK_INT(dvt_params_len(all), 16);
    for (i = 0; i < COUNT(names); i++) {
        /* the number counts the blocks of this kind in all tests */
        snprintf(text, sizeof text, "%s", dvt_param_name(dvt_params_at(all, i)));
        CHECK(strncmp(text, "gru", 3) == 0);
        CHECK_STR(strchr(text, '_') + 1, names[i]);
    }
    CHECK_INT(dvt_block_initialize(block, dvt_init_xavier(), DVT_CONTEXTS(dvt_test_ctx())), DVT_OK);
    CHECK_INT(dvt_dtype_of(
                  dvt_block_forward(block, dvt_ones(DVT_SHAPE(2, 1, 5), DVT_F16, dvt_test_ctx()))),
              DVT_F16);
    CHECK(
        dvt_shape_equal(dvt_param_shape(dvt_block_param(block, "r0_i2h_weight")), DVT_SHAPE(9, 5)));
    CHECK(
        dvt_shape_equal(dvt_param_shape(dvt_block_param(block, "r0_h2h_weight")), DVT_SHAPE(9, 3)));
    CHECK(
        dvt_shape_equal(dvt_param_shape(dvt_block_param(block, "l1_i2h_weight")), DVT_SHAPE(9, 6)));
    bias = dvt_block_data(block, "l1_i2h_bias", dvt_test_ctx());
    CHECK_VALUES(bias, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    bias = dvt_block_data(block, "l1_h2h_bias", dvt_test_ctx());
    CHECK_VALUES(bias, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1);
}

/* Dropout is between layers only, and only in train mode. */
DVT_TEST(recurrent_dropout) {
    int layers, i;
    for (layers = 1; layers < 3; layers++) {
        dvt_nn_recurrent_desc desc = recurrent_desc(3);
        dvt_array *x = waves(DVT_SHAPE(3, 4, 2), DVT_F32, dvt_test_ctx()), *y[2] = {NULL, NULL};
        dvt_block *block;
        desc.layers = layers;
        desc.dropout = 0.5;
        block = ready(dvt_nn_lstm_with, desc, DVT_CONTEXTS(dvt_test_ctx()));
        for (i = 0; i < 2; i++)
            DVT_RECORD {
                y[i] = dvt_block_forward(block, x);
            }
        CHECK(dvt_array_equal(y[0], y[1], DVT_NAN_DIFFERS) == (layers == 1));
        y[0] = dvt_block_forward(block, x);
        CHECK(dvt_array_equal(y[0], dvt_block_forward(block, x), DVT_NAN_DIFFERS));
    }
}

/* ---- devices ---- */
DVT_TEST(recurrent_stays_on_its_device) {
    dvt_nn_recurrent_desc desc = recurrent_desc(3);
    dvt_stats before, after;
    int i;
    NEEDS_NO_GPU("virtual GPUs");
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    desc.bidirectional = true;
    desc.layers = 2;
    for (i = 0; i < COUNT(makers); i++)
        DVT_SCOPE {
            dvt_block *block = ready(makers[i], desc, DVT_CONTEXTS(dvt_cpu(), dvt_gpu(1)));
            dvt_array *x = waves(DVT_SHAPE(3, 2, 4), DVT_F32, dvt_cpu()), *y, *on_gpu = NULL, *h[2];
            y = dvt_block_forward(block, x);
            x = dvt_copyto(x, dvt_gpu(1));
            dvt_wait_all();
            before = dvt_get_stats();
            DVT_RECORD {
                on_gpu = dvt_recurrent_forward(block, x, NULL, i == 1 ? 2 : 1, h);
            }
            CHECK_INT(dvt_backward(on_gpu), DVT_OK);
            after = dvt_get_stats();
            CHECK_INT(after.to_host_count - before.to_host_count, 0);
            CHECK_INT(after.to_device_count - before.to_device_count, 0);
            CHECK_INT(after.between_devices_count - before.between_devices_count, 0);
            CHECK(dvt_ctx_equal(dvt_ctx_of(h[0]), dvt_gpu(1)));
            CHECK(dvt_array_equal(dvt_copyto(on_gpu, dvt_cpu()), y, DVT_NAN_DIFFERS));
        }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* ---- exhausted memory ---- */
static dvt_block *fault_block;
static dvt_array *fault_x;

static int train_step(void) {
    dvt_array *y = NULL, *next[2];
    DVT_RECORD {
        y = dvt_recurrent_forward(fault_block, fault_x, NULL, 2, next);
    }
    return y && dvt_backward(y) == DVT_OK;
}

DVT_TEST(recurrent_without_memory) {
    dvt_nn_recurrent_desc desc = recurrent_desc(2);
    desc.bidirectional = true;
    fault_block = ready(dvt_nn_lstm_with, desc, DVT_CONTEXTS(dvt_cpu()));
    fault_x = waves(DVT_SHAPE(2, 1, 2), DVT_F32, dvt_cpu());
    CHECK(train_step());
    CHECK(golden_out_of_memory(train_step) >= 20);
}

/* ---- refused arguments ---- */
static dvt_block *with(make_fn make, int64_t hidden, int64_t inputs, int layers, double dropout,
                       dvt_activation activation, int layout, dvt_dtype dtype) {
    dvt_nn_recurrent_desc desc = recurrent_desc(hidden);
    desc.input_size = inputs;
    desc.layers = layers;
    desc.dropout = dropout;
    desc.activation = activation;
    desc.layout = (dvt_sequence_layout)layout;
    desc.dtype = dtype;
    return make(&desc);
}

DVT_TEST(recurrent_refuses_descriptions) {
    CHECK_REFUSED(dvt_nn_rnn(0), DVT_ERR_RANGE, "dvt_nn_rnn: hidden_size 0");
    CHECK_REFUSED(dvt_nn_gru(INT64_MAX), DVT_ERR_RANGE, "dvt_nn_gru: hidden_size 9223");
    CHECK_REFUSED(dvt_nn_lstm_with(NULL), DVT_ERR_NULL_ARGUMENT, "dvt_nn_lstm_with: desc");
    CHECK_REFUSED(with(dvt_nn_gru_with, 1, -1, 1, 0, DVT_IDENTITY, 0, DVT_F32), DVT_ERR_RANGE,
                  "input_size -1");
    CHECK_REFUSED(with(dvt_nn_gru_with, 1, 0, -2, 0, DVT_IDENTITY, 0, DVT_F32), DVT_ERR_RANGE,
                  "layers -2");
    CHECK_REFUSED(with(dvt_nn_gru_with, 1, 0, 1, 1, DVT_IDENTITY, 0, DVT_F32), DVT_ERR_RANGE,
                  "dropout 1");
    CHECK_REFUSED(with(dvt_nn_gru_with, 1, 0, 1, NAN, DVT_IDENTITY, 0, DVT_F32), DVT_ERR_RANGE,
                  "dropout");
    CHECK_REFUSED(with(dvt_nn_rnn_with, 1, 0, 1, 0, DVT_GELU, 0, DVT_F32), DVT_ERR_RANGE,
                  "expected DVT_TANH (also by 0) or DVT_RELU");
    CHECK_REFUSED(with(dvt_nn_lstm_with, 1, 0, 1, 0, DVT_TANH, 0, DVT_F32), DVT_ERR_RANGE,
                  "activations of the gates are fixed");
    CHECK_REFUSED(with(dvt_nn_lstm_with, 1, 0, 1, 0, DVT_IDENTITY, 2, DVT_F32), DVT_ERR_VALUE,
                  "layout");
    CHECK_REFUSED(with(dvt_nn_lstm_with, 1, 0, 1, 0, DVT_IDENTITY, 0, DVT_I32), DVT_ERR_DTYPE,
                  "dtype int32");
}

DVT_TEST(recurrent_refuses_inputs) {
    dvt_ctx ctx = dvt_test_ctx();
    dvt_nn_recurrent_desc desc = recurrent_desc(3);
    dvt_block *block, *dense = dvt_nn_dense(1, DVT_IDENTITY);
    dvt_array *x = dvt_ones(DVT_SHAPE(2, 1, 4), DVT_F32, ctx), *state[2], *next[2] = {x, x};
    dvt_array *good = dvt_zeros(DVT_SHAPE(1, 1, 3), DVT_F32, ctx);
    desc.layout = DVT_NTC;
    block = dvt_nn_lstm_with(&desc);
    CHECK_INT(dvt_block_initialize(block, dvt_init_zero(), DVT_CONTEXTS(ctx)), DVT_OK);
    CHECK_REFUSED(dvt_block_forward(block, dvt_ones(DVT_SHAPE(2, 4), DVT_F32, ctx)), DVT_ERR_SHAPE,
                  "expected (N, T, C) with at least one time step T");
    CHECK_REFUSED(dvt_block_forward(block, dvt_ones(DVT_SHAPE(2, 0, 4), DVT_F32, ctx)),
                  DVT_ERR_SHAPE, "dvt_block_forward: LSTM(None -> 3, NTC): x is");
    CHECK_REFUSED(dvt_block_forward(block, dvt_ones(DVT_SHAPE(2, 1, 0), DVT_F32, ctx)),
                  DVT_ERR_SHAPE, "expected (N, T, C)");
    CHECK(dvt_block_forward(block, x) != NULL);
    CHECK(dvt_block_forward(block, dvt_ones(DVT_SHAPE(0, 2, 4), DVT_F32, ctx)) != NULL);
    CHECK_REFUSED(dvt_block_forward(block, dvt_ones(DVT_SHAPE(2, 1, 5), DVT_F32, ctx)),
                  DVT_ERR_SHAPE, "expected (N, T, 4)");
    state[0] = good;
    state[1] = dvt_zeros(DVT_SHAPE(1, 2, 3), DVT_F32, ctx);
    CHECK_REFUSED(dvt_recurrent_forward(block, dvt_rows(x, 0, 1), state, 2, next), DVT_ERR_SHAPE,
                  "the state c is float32 (1, 2, 3)");
    CHECK(next[0] == x && next[1] == x);
    state[1] = NULL;
    CHECK_REFUSED(dvt_recurrent_forward(block, x, state, 2, next), DVT_ERR_NULL_ARGUMENT,
                  "a state is NULL");
    CHECK_REFUSED(dvt_recurrent_forward(block, x, &good, 1, next), DVT_ERR_RANGE,
                  "n is 1 states; expected 2 for a LSTM: h and c");
    CHECK_REFUSED(dvt_recurrent_forward(dense, x, NULL, 1, NULL), DVT_ERR_VALUE,
                  "the block is a Dense");
    CHECK_REFUSED(dvt_recurrent_forward(NULL, x, NULL, 1, NULL), DVT_ERR_NULL_ARGUMENT, "block");
    CHECK_REFUSED(dvt_recurrent_forward(block, NULL, NULL, 1, NULL), DVT_ERR_NULL_ARGUMENT, "x is");
}
#endif
