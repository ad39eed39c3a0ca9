/* Tests of nets: children and owners, LeNet, gradients of all parameters, a small training, the
   summary. They run on the CPU and on virtual GPUs. */
#include "dvt_test.h"
#if !defined(DEVTENSOR_NO_NN)
#if !defined(_WIN32)
#include <pthread.h>
#include <unistd.h>
#endif

static dvt_init default_init(void) {
    dvt_init init;
    memset(&init, 0, sizeof init);
    return init;
}

static dvt_ctx_list no_contexts(void) {
    dvt_ctx_list list;
    memset(&list, 0, sizeof list);
    return list;
}

static int error_has(const char *part) {
    return dvt_test_check(strstr(dvt_error(), part) != NULL, __FILE__, __LINE__,
                          "the error is <<%s>>, expected <<%s>> in it", dvt_error(), part);
}

#define CHECK_PRINTS(block, expected)                                                              \
    do {                                                                                           \
        char check_text_[2000];                                                                    \
        size_t check_n_ = dvt_block_format(block, check_text_, sizeof check_text_);                \
        CHECK_STR(check_text_, expected);                                                          \
        CHECK_INT(check_n_, strlen(expected));                                                     \
    } while (0)

static dvt_block *lenet(void) {
    dvt_block *net = dvt_nn_sequential();
    DVT_NN_ADD(net, dvt_nn_conv2d(6, 5, DVT_RELU), dvt_nn_max_pool2d(2, 2),
               dvt_nn_conv2d(16, 3, DVT_RELU), dvt_nn_max_pool2d(2, 2), dvt_nn_dense(120, DVT_RELU),
               dvt_nn_dense(84, DVT_RELU), dvt_nn_dense(10, DVT_IDENTITY));
    return net;
}

/* ---- nets ---- */
DVT_TEST(nets_sequential) {
    dvt_block *net = dvt_nn_sequential(), *a = dvt_nn_flatten(), *b = dvt_nn_dropout(0);
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_test_ctx());
    CHECK(dvt_block_forward(net, x) == x); /* an empty net returns its input */
    CHECK_INT(dvt_block_len(net), 0);
    CHECK_INT(DVT_NN_ADD(net, a, b), DVT_OK);
    CHECK_INT(dvt_block_len(net), 2);
    CHECK(dvt_block_at(net, 0) == a && dvt_block_at(net, 1) == b);
    CHECK(dvt_block_at(net, -1) == b && dvt_block_at(net, -2) == a);
    CHECK_ERROR(dvt_block_at(net, 2), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_block_at(net, -3), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_block_at(NULL, 0), DVT_ERR_NULL_ARGUMENT);
    CHECK_STR(dvt_block_kind(net), "Sequential");
    CHECK_STR(dvt_block_kind(dvt_nn_conv2d(1, 1, DVT_IDENTITY)), "Conv2D");
    CHECK(dvt_block_user(net) == NULL);
    CHECK_ERROR(DVT_NN_ADD(net, dvt_nn_flatten(), NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_INT(dvt_block_len(net), 2); /* no block was added */
    CHECK_ERROR(DVT_NN_ADD(NULL, a), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(DVT_NN_ADD(net, net), DVT_ERR_VALUE);
    CHECK_ERROR(DVT_NN_ADD(a, b), DVT_ERR_VALUE); /* Flatten is not a Sequential */
    CHECK_INT(DVT_NN_ADD(net, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a), DVT_OK);
    CHECK_INT(dvt_block_len(net), 18);
}

DVT_TEST(nets_refuse_cycles) {
    dvt_block *a = dvt_nn_sequential(), *b = dvt_nn_sequential(), *c = dvt_nn_sequential();
    CHECK_INT(DVT_NN_ADD(a, b), DVT_OK);
    CHECK_INT(DVT_NN_ADD(b, c), DVT_OK);
    CHECK_INT(DVT_NN_ADD(c, a), DVT_ERR_VALUE);
    error_has("cycle");
    dvt_clear_error();
    CHECK_INT(dvt_block_add_child(c, a), DVT_ERR_VALUE);
    dvt_clear_error();
    CHECK_INT(DVT_NN_ADD(a, c), DVT_OK); /* two paths to one block are no cycle */
}

/* A layer that is added twice has one set of parameters. */
DVT_TEST(nets_with_shared_layers) {
    dvt_block *net = dvt_nn_sequential(), *shared = dvt_nn_dense(2, DVT_IDENTITY);
    dvt_array *y = NULL;
    DVT_NN_ADD(net, shared, shared);
    CHECK_INT(dvt_params_len(dvt_block_collect_params(net, NULL)), 2);
    dvt_param_set_init(dvt_block_param(shared, "weight"), dvt_init_one());
    dvt_block_initialize(net, default_init(), no_contexts());
    DVT_RECORD {
        y = dvt_block_forward(net, DVT_ARRAY(float, DVT_SHAPE(1, 2), dvt_test_ctx(), 1, 2));
    }
    CHECK_VALUES(y, 1e-6, 6, 6);
    CHECK_INT(dvt_backward(y), DVT_OK);
    /* dy/dW: the second use gets (3, 3), the first use gets (1, 2) with factor 2 */
    CHECK_VALUES(dvt_param_grad(dvt_block_param(shared, "weight"), dvt_test_ctx()), 1e-6, 5, 7, 5,
                 7);
}

/* Parameters created in a scope outlive it with the net, and are released with the net. */
DVT_TEST(nets_ownership) {
    dvt_block *net = dvt_nn_sequential();
    DVT_SCOPE {
        DVT_NN_ADD(net, dvt_nn_dense(2, DVT_IDENTITY));
        dvt_block_initialize(net, default_init(), no_contexts());
        dvt_block_forward(net, dvt_ones(DVT_SHAPE(1, 2), DVT_F32, dvt_test_ctx()));
    }
    CHECK_INT(dvt_get_stats().arrays, 4);
    CHECK(dvt_block_data(dvt_block_at(net, 0), "weight", dvt_test_ctx()) != NULL);
}

/* Without a tape the intermediate results are freed during forward. */
DVT_TEST(nets_intermediates_are_freed) {
    dvt_block *net = dvt_nn_sequential();
    dvt_device_info info;
    int64_t before = 0, mebibyte = 1 << 20;
    int i;
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    for (i = 0; i < 12; i++)
        DVT_NN_ADD(net, dvt_nn_activation(DVT_TANH));
    DVT_SCOPE {
        dvt_array *x = dvt_ones(DVT_SHAPE(mebibyte / 4), DVT_F32, dvt_gpu(0));
        dvt_device_query(dvt_gpu(0), &info);
        before = info.memory_used;
        CHECK(dvt_block_forward(net, x) != NULL);
        dvt_wait(x);
    }
    dvt_device_query(dvt_gpu(0), &info);
    dvt_test_check(info.memory_peak - before <= 3 * mebibyte, __FILE__, __LINE__,
                   "the peak is %lld bytes above the input",
                   (long long)(info.memory_peak - before));
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

static void check_lenet(dvt_ctx ctx) {
    dvt_block *net = lenet();
    dvt_array *x = dvt_uniform(0, 1, DVT_SHAPE(2, 1, 28, 28), DVT_F32, ctx), *y;
    dvt_params *params;
    int64_t count = 0;
    int i;
    CHECK_INT(dvt_block_initialize(net, dvt_init_xavier(), DVT_CONTEXTS(ctx)), DVT_OK);
    y = dvt_block_forward(net, x);
    CHECK(dvt_shape_equal(dvt_shape_of(y), DVT_SHAPE(2, 10)));
    CHECK(dvt_ctx_equal(dvt_ctx_of(y), ctx));
    CHECK_CLOSE(dvt_item(dvt_all(dvt_isfinite(y), DVT_ALL)), 1, 0);
    params = dvt_block_collect_params(net, NULL);
    for (i = 0; i < dvt_params_len(params); i++)
        count += dvt_shape_size(dvt_param_shape(dvt_params_at(params, i)));
    CHECK_INT(count, 60170);
    CHECK_PRINTS(dvt_block_at(net, 4), "Dense(400 -> 120, Activation(relu))");
    CHECK_PRINTS(dvt_block_at(net, 2),
                 "Conv2D(6 -> 16, kernel_size=(3, 3), stride=(1, 1), Activation(relu))");
    y = x;
    for (i = 0; i < 4; i++)
        y = dvt_block_forward(dvt_block_at(net, i), y);
    CHECK(dvt_shape_equal(dvt_shape_of(y), DVT_SHAPE(2, 16, 5, 5)));
}

DVT_TEST(nets_lenet) {
    check_lenet(dvt_cpu());
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    check_lenet(dvt_gpu(1));
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* The same net on two contexts gives the same values for equal data and parameters. */
DVT_TEST(nets_lenet_on_two_contexts) {
    dvt_block *net = lenet();
    dvt_array *x, *a, *b;
    double difference;
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    dvt_block_initialize(net, default_init(), DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(1)));
    x = dvt_uniform(0, 1, DVT_SHAPE(3, 1, 28, 28), DVT_F32, dvt_gpu(0));
    a = dvt_block_forward(net, x);
    b = dvt_block_forward(net, dvt_as_in_ctx(x, dvt_gpu(1)));
    difference = dvt_item(dvt_max(dvt_abs(dvt_sub(a, dvt_as_in_ctx(b, dvt_gpu(0)))), DVT_ALL));
    CHECK_CLOSE(difference, 0, 0);
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

#if !defined(_WIN32) && !defined(DEVTENSOR_NO_THREADS)
/* Several threads call the first forward at once: one of them sets the values, and all get the same
   result. */
typedef struct first_forward {
    dvt_block *net;
    dvt_ctx ctx;
    double sum;
} first_forward;

static void *forward_once(void *user) {
    first_forward *job = (first_forward *)user;
    DVT_SCOPE {
        dvt_array *x = dvt_full(DVT_SHAPE(2, 1, 28, 28), 0.5, DVT_F32, job->ctx);
        job->sum = dvt_item(dvt_sum(dvt_block_forward(job->net, x), DVT_ALL));
    }
    return NULL;
}

DVT_TEST(nets_first_forward_of_several_threads) {
    dvt_block *net = lenet();
    dvt_ctx_list ctxs = DVT_CONTEXTS(dvt_cpu_id(0), dvt_cpu_id(1), dvt_cpu_id(2), dvt_cpu_id(3));
    first_forward jobs[4];
    pthread_t threads[4];
    int i;
    dvt_block_initialize(net, default_init(), ctxs);
    for (i = 0; i < 4; i++) {
        jobs[i].net = net;
        jobs[i].ctx = ctxs.ctx[i];
        jobs[i].sum = NAN;
        CHECK_INT(pthread_create(&threads[i], NULL, forward_once, &jobs[i]), 0);
    }
    for (i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (i = 0; i < 4; i++) {
        CHECK(isfinite(jobs[i].sum) && jobs[i].sum != 0);
        CHECK_CLOSE(jobs[i].sum, jobs[0].sum, 0);
    }
}
#endif

/* Gradients of every parameter match differences of the loss, in float64. */
DVT_TEST(nets_parameter_gradients) {
    dvt_block *net = dvt_nn_sequential();
    dvt_nn_dense_desc desc;
    dvt_array *x, *y, *loss = NULL;
    dvt_params *params;
    double h = 1e-5;
    int i;
    memset(&desc, 0, sizeof desc);
    desc.units = 3;
    desc.activation = DVT_TANH;
    desc.dtype = DVT_F64;
    desc.weight_init = dvt_init_uniform(0.5);
    desc.bias_init = dvt_init_uniform(0.5);
    DVT_NN_ADD(net, dvt_nn_dense_with(&desc));
    desc.activation = DVT_IDENTITY;
    desc.units = 2;
    DVT_NN_ADD(net, dvt_nn_dense_with(&desc));
    dvt_block_initialize(net, default_init(), DVT_CONTEXTS(dvt_cpu()));
    x = dvt_uniform(-1, 1, DVT_SHAPE(4, 3), DVT_F64, dvt_cpu());
    y = dvt_uniform(-1, 1, DVT_SHAPE(4, 2), DVT_F64, dvt_cpu());
    DVT_RECORD {
        loss = dvt_sum(dvt_loss_l2(dvt_block_forward(net, x), y), DVT_ALL);
    }
    CHECK_INT(dvt_backward(loss), DVT_OK);
    params = dvt_block_collect_params(net, NULL);
    CHECK_INT(dvt_params_len(params), 4);
    for (i = 0; i < dvt_params_len(params); i++) {
        dvt_array *w = dvt_param_data(dvt_params_at(params, i), dvt_cpu());
        double *at = (double *)dvt_data(w), value = at[1], up, down;
        double *g = (double *)dvt_data(dvt_param_grad(dvt_params_at(params, i), dvt_cpu()));
        at[1] = value + h;
        up = dvt_item(dvt_sum(dvt_loss_l2(dvt_block_forward(net, x), y), DVT_ALL));
        at[1] = value - h;
        down = dvt_item(dvt_sum(dvt_loss_l2(dvt_block_forward(net, x), y), DVT_ALL));
        at[1] = value;
        CHECK_CLOSE(g[1], (up - down) / (2 * h), 1e-7);
        CHECK(fabs(g[1]) > 1e-6);
    }
}

/* Each context has its own gradients, for every parameter with a gradient and every kind of
   layer. */
DVT_TEST(nets_gradients_reach_all_parameters) {
    dvt_block *net = dvt_nn_sequential();
    dvt_params *params;
    dvt_array *loss = NULL;
    int i, with_gradient = 0;
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    DVT_NN_ADD(net, dvt_nn_conv2d(3, 3, DVT_IDENTITY), dvt_nn_batch_norm(),
               dvt_nn_activation(DVT_TANH), dvt_nn_avg_pool2d(2, 2), dvt_nn_dense(4, DVT_GELU),
               dvt_nn_layer_norm(), dvt_nn_dropout(0.2), dvt_nn_dense(2, DVT_IDENTITY));
    dvt_block_initialize(net, dvt_init_xavier(), DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(1)));
    DVT_RECORD {
        loss = dvt_loss_l2(
            dvt_block_forward(net, dvt_uniform(-1, 1, DVT_SHAPE(5, 2, 8, 8), DVT_F32, dvt_gpu(1))),
            dvt_ones(DVT_SHAPE(5, 2), DVT_F32, dvt_gpu(1)));
    }
    CHECK_INT(dvt_backward(loss), DVT_OK);
    params = dvt_block_collect_params(net, NULL);
    for (i = 0; i < dvt_params_len(params); i++) {
        dvt_param *p = dvt_params_at(params, i);
        dvt_array *here, *there;
        if (strstr(dvt_param_name(p), "running_"))
            continue;
        here = dvt_param_grad(p, dvt_gpu(1));
        there = dvt_param_grad(p, dvt_gpu(0));
        /* the bias before BatchNorm has gradient zero, because BatchNorm subtracts the mean */
        if (!(strncmp(dvt_param_name(p), "conv", 4) == 0 && strstr(dvt_param_name(p), "_bias")))
            dvt_test_check(dvt_item(dvt_norm(here, DVT_ALL)) > 1e-6, __FILE__, __LINE__,
                           "%s has no gradient", dvt_param_name(p));
        CHECK_CLOSE(dvt_item(dvt_norm(there, DVT_ALL)), 0, 0);
        with_gradient++;
    }
    CHECK_INT(with_gradient, 10);
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* Fits y = sin(3 x) by plain gradient descent. Returns the ratio of the last loss to the first. */
static double regression(dvt_ctx ctx) {
    dvt_block *net = dvt_nn_sequential();
    dvt_array *x = dvt_reshape(dvt_linspace(-1, 1, 64, DVT_F32, ctx), DVT_SHAPE(64, 1));
    dvt_array *y = dvt_sin(dvt_mul_scalar(x, 3));
    dvt_params *params;
    double first = 0, last = 0;
    int step, i;
    DVT_NN_ADD(net, dvt_nn_dense(16, DVT_TANH), dvt_nn_dense(1, DVT_IDENTITY));
    dvt_block_initialize(net, dvt_init_xavier(), DVT_CONTEXTS(ctx));
    params = dvt_block_collect_params(net, NULL);
    for (step = 0; step < 300; step++)
        DVT_SCOPE {
            dvt_array *loss = NULL;
            DVT_RECORD {
                loss = dvt_mean(dvt_loss_l2(dvt_block_forward(net, x), y), DVT_ALL);
            }
            CHECK_INT(dvt_backward(loss), DVT_OK);
            last = dvt_item(loss);
            if (step == 0)
                first = last;
            for (i = 0; i < dvt_params_len(params); i++) {
                dvt_param *p = dvt_params_at(params, i);
                dvt_sub_(dvt_param_data(p, ctx), dvt_mul_scalar(dvt_param_grad(p, ctx), 0.5));
            }
        }
    return last / first;
}

DVT_TEST(nets_regression_trains) {
    double on_cpu = regression(dvt_cpu()), on_gpu;
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    dvt_seed(0);
    on_gpu = regression(dvt_gpu(0));
    dvt_test_check(on_cpu < 0.1, __FILE__, __LINE__, "the loss fell to %g of the first", on_cpu);
    CHECK_CLOSE(on_gpu, on_cpu, 1e-3);
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* ---- the summary ---- */
#if !defined(_WIN32)
/* Stores what a function prints to standard output. */
static dvt_status captured_summary(dvt_block *net, dvt_shape input, char *text, size_t size) {
    FILE *file = tmpfile();
    int out;
    dvt_status status;
    size_t n;
    fflush(stdout);
    out = dup(1);
    dup2(fileno(file), 1);
    status = dvt_block_print_summary(net, input);
    fflush(stdout);
    dup2(out, 1);
    close(out);
    rewind(file);
    n = fread(text, 1, size - 1, file);
    text[n] = 0;
    fclose(file);
    return status;
}

/* Returns the first line with that beginning, with runs of blanks replaced by one. */
static const char *line_of(const char *text, const char *begin) {
    static char line[200];
    const char *at = text;
    size_t n = 0;
    while (at && strncmp(at, begin, strlen(begin)) != 0) {
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    for (; at && *at && *at != '\n' && n + 1 < sizeof line; at++)
        if (*at != ' ' || (n && line[n - 1] != ' '))
            line[n++] = *at;
    line[n] = 0;
    return line;
}

DVT_TEST(nets_summary) {
    dvt_block *net = lenet(), *norm = dvt_nn_batch_norm();
    dvt_array *mean;
    char text[4000];
    CHECK_INT(captured_summary(net, DVT_SHAPE(1, 2, 3, 4), text, sizeof text), DVT_ERR_SHAPE);
    CHECK_STR(text, "");
    dvt_clear_error();
    /* without values: the lines are those of cpu() */
    CHECK_INT(captured_summary(net, DVT_SHAPE(1, 1, 28, 28), text, sizeof text), DVT_OK);
    CHECK_STR(line_of(text, "Memory:"), "Memory: 235.0 KiB of parameters, 25.5 KiB of results");
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    dvt_block_initialize(net, default_init(), DVT_CONTEXTS(dvt_gpu(0)));
    CHECK_INT(captured_summary(net, DVT_SHAPE(1, 1, 28, 28), text, sizeof text), DVT_OK);
    CHECK_STR(line_of(text, "Input"), "Input (1, 1, 28, 28)");
    CHECK_STR(line_of(text, "Sequential"), "Sequential (1, 10) 0 0 0 B 0");
    if (!dvt_test_on_gpus()) { /* GPUs compute bias and relu in operations of their own */
        CHECK_STR(line_of(text, "  (0)"), "(0): Conv2D (1, 6, 24, 24) 156 0 13.5 KiB 86,400");
        CHECK_STR(line_of(text, "  (2)"), "(2): Conv2D (1, 16, 10, 10) 880 0 6.2 KiB 86,400");
        CHECK_STR(line_of(text, "  (4)"), "(4): Dense (1, 120) 48,120 0 480 B 48,000");
        CHECK_STR(line_of(text, "  (5)"), "(5): Dense (1, 84) 10,164 0 336 B 10,080");
        CHECK_STR(line_of(text, "  (6)"), "(6): Dense (1, 10) 850 0 40 B 840");
        CHECK_STR(line_of(text, "Memory:"), "Memory: 235.0 KiB of parameters, 25.5 KiB of results");
    }
    CHECK_STR(line_of(text, "  (1)"), "(1): MaxPool2D (1, 6, 12, 12) 0 0 3.3 KiB 0");
    CHECK_STR(line_of(text, "  (3)"), "(3): MaxPool2D (1, 16, 5, 5) 0 0 1.5 KiB 0");
    CHECK_STR(line_of(text, "Parameters:"), "Parameters: 60,170 (each counted once)");
    CHECK_STR(line_of(text, "  trained:"), "trained: 60,170");
    CHECK_STR(line_of(text, "  not trained:"), "not trained: 0");
    CHECK_STR(line_of(text, "Multiply-adds:"), "Multiply-adds: 231,720");
    /* running statistics do not change, even in train mode */
    dvt_block_initialize(norm, default_init(), no_contexts());
    DVT_TRAIN_MODE {
        CHECK_INT(captured_summary(norm, DVT_SHAPE(2, 3), text, sizeof text), DVT_OK);
    }
    mean = dvt_block_data(norm, "running_var", dvt_test_ctx());
    CHECK_VALUES(mean, 0, 1, 1, 1);
    CHECK(strncmp(line_of(text, "BatchNorm"), "BatchNorm (2, 3) 6 6 ", 21) == 0);
    CHECK_STR(line_of(text, "  trained:"), "trained: 6");
    CHECK_STR(line_of(text, "  not trained:"), "not trained: 6");
    CHECK_ERROR(dvt_block_print_summary(NULL, DVT_SHAPE(1)), DVT_ERR_NULL_ARGUMENT);
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}
#endif

/* A block of the program: two products, one of which is too small for a launch of its own. */
static dvt_array *products_forward(dvt_block *self, void *user, dvt_array *x) {
    dvt_array *w = dvt_block_data(self, "weight", dvt_ctx_of(x));
    (void)user;
    return dvt_matmul(dvt_matmul(x, w), dvt_t(w));
}

DVT_TEST(nets_measure) {
    dvt_block_desc desc;
    dvt_block_cost cost;
    dvt_block *net;
    memset(&desc, 0, sizeof desc);
    memset(&cost, 0xff, sizeof cost);
    desc.kind = "Products";
    desc.forward = products_forward;
    net = dvt_block_new(&desc);
    dvt_block_add_param(net, "weight", DVT_SHAPE(3, 200), DVT_F32, dvt_init_one());
    CHECK_ERROR(dvt_block_measure(net, DVT_SHAPE(2, 4), &cost), DVT_ERR_SHAPE);
    CHECK_INT(cost.trained, -1);
    CHECK_INT(dvt_block_measure(net, DVT_SHAPE(2, 3), &cost), DVT_OK);
    CHECK_INT(cost.result_bytes, 4 * (2 * 200 + 2 * 3));
    /* Drawing initial values does not count. */
    dvt_block_initialize(net, default_init(), no_contexts());
    CHECK_INT(dvt_block_measure(net, DVT_SHAPE(2, 3), &cost), DVT_OK);
    CHECK_INT(cost.trained, 600);
    CHECK_INT(cost.fixed, 0);
    CHECK_INT(cost.param_bytes, 2400);
    CHECK_INT(cost.multiply_adds, 2 * 2 * 3 * 200);
    CHECK_INT(cost.result_bytes, 4 * (2 * 200 + 2 * 3));
    dvt_clear_error();
    CHECK(dvt_block_measure(net, DVT_SHAPE(2, 4), &cost) == DVT_ERR_SHAPE);
    CHECK(strstr(dvt_error(), "dvt_block_measure: Products: ") == dvt_error());
    dvt_clear_error();
    CHECK_ERROR(dvt_block_measure(NULL, DVT_SHAPE(2, 4), &cost), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_block_measure(net, DVT_SHAPE(2, 3), NULL), DVT_ERR_NULL_ARGUMENT);
}

#endif
