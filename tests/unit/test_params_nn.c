/* Tests of parameters of networks: names, initial values and their precedence, deferred
   initialization. */
#include "dvt_test.h"
#if !defined(DEVTENSOR_NO_NN)

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

static dvt_block *dense_in(int64_t units, int64_t in_units) {
    dvt_nn_dense_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.units = units;
    desc.in_units = in_units;
    return dvt_nn_dense_with(&desc);
}

static int number_in(const char *name) {
    while (*name && (*name < '0' || *name > '9'))
        name++;
    return atoi(name);
}

static int same_values(dvt_array *a, dvt_array *b) {
    double *x = dvt_test_values(a), *y = dvt_test_values(b);
    int same = x && y && dvt_size(a) == dvt_size(b) &&
               memcmp(x, y, sizeof(double) * (size_t)dvt_size(a)) == 0;
    free(x);
    free(y);
    return same;
}

static int error_has(const char *part) {
    int found = strstr(dvt_error(), part) != NULL;
    dvt_test_check(found, __FILE__, __LINE__, "the error is <<%s>>, expected <<%s>> in it",
                   dvt_error(), part);
    return found;
}

/* ---- names ---- */
DVT_TEST(params_names) {
    dvt_block *a = dvt_nn_dense(2, DVT_IDENTITY), *b = dvt_nn_dense(3, DVT_RELU);
    dvt_block *c = dvt_nn_conv2d(4, 3, DVT_IDENTITY), *n = dvt_nn_batch_norm();
    const char *first = dvt_param_name(dvt_block_param(a, "weight"));
    char expected[64];
    snprintf(expected, sizeof expected, "dense%d_weight", number_in(first));
    CHECK_STR(first, expected);
    snprintf(expected, sizeof expected, "dense%d_bias", number_in(first) + 1);
    CHECK_STR(dvt_param_name(dvt_block_param(b, "bias")), expected);
    snprintf(expected, sizeof expected, "conv%d_weight",
             number_in(dvt_param_name(dvt_block_param(c, "bias"))));
    CHECK_STR(dvt_param_name(dvt_block_param(c, "weight")), expected);
    CHECK(strncmp(dvt_param_name(dvt_block_param(n, "gamma")), "batchnorm", 9) == 0);
    CHECK(strstr(dvt_param_name(dvt_block_param(n, "running_var")), "_running_var") != NULL);
    CHECK(strncmp(dvt_param_name(dvt_block_param(dvt_nn_layer_norm(), "beta")), "layernorm", 9) ==
          0);
    CHECK(strncmp(dvt_param_name(dvt_block_param(dvt_nn_embedding(3, 2), "weight")), "embedding",
                  9) == 0);
    CHECK(dvt_block_param(a, "gamma") == NULL);
    CHECK_INT(dvt_error_code(), DVT_ERR_NAME);
    error_has("'weight', 'bias'");
    dvt_clear_error();
}

/* Numbers follow the order in the net, not the order in which C evaluates arguments. */
DVT_TEST(params_numbers_follow_the_net) {
    dvt_block *net = dvt_nn_sequential();
    int i, first;
    DVT_NN_ADD(net, dvt_nn_dense(1, DVT_IDENTITY), dvt_nn_dense(2, DVT_IDENTITY),
               dvt_nn_dense(3, DVT_IDENTITY));
    first = number_in(dvt_param_name(dvt_block_param(dvt_block_at(net, 0), "weight")));
    for (i = 0; i < 3; i++) {
        dvt_param *w = dvt_block_param(dvt_block_at(net, i), "weight");
        CHECK_INT(number_in(dvt_param_name(w)), first + i);
        CHECK_INT(dvt_param_shape(w).dim[0], i + 1);
    }
}

DVT_TEST(params_keep_their_names) {
    dvt_param *kept = NULL;
    DVT_SCOPE {
        kept = (dvt_param *)dvt_retain(dvt_block_param(dvt_nn_dense(1, DVT_IDENTITY), "bias"));
    }
    CHECK(strncmp(dvt_param_name(kept), "dense", 5) == 0);
    CHECK(strstr(dvt_param_name(kept), "_bias") != NULL);
    dvt_release(kept);
}

/* ---- initial values ---- */
DVT_TEST(params_own_initializer_overrides_the_nets) {
    dvt_block *net = dvt_nn_sequential();
    dvt_array *w, *b;
    DVT_NN_ADD(net, dense_in(4, 3), dvt_nn_dense(2, DVT_IDENTITY));
    CHECK_INT(dvt_block_initialize(net, dvt_init_constant(5), DVT_CONTEXTS(dvt_cpu())), DVT_OK);
    w = dvt_block_data(dvt_block_at(net, 0), "weight", dvt_cpu());
    b = dvt_block_data(dvt_block_at(net, 0), "bias", dvt_cpu());
    CHECK_VALUES(w, 0, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5);
    CHECK_VALUES(b, 0, 0, 0, 0, 0);
    CHECK_INT(dvt_param_set_init(dvt_block_param(dvt_block_at(net, 0), "bias"), dvt_init_one()),
              DVT_OK);
    CHECK_INT(
        dvt_param_set_init(dvt_block_param(dvt_block_at(net, 0), "weight"), dvt_init_constant(-2)),
        DVT_OK);
    CHECK_INT(dvt_block_reinitialize(net, dvt_init_constant(5), DVT_CONTEXTS(dvt_cpu())), DVT_OK);
    CHECK_CLOSE(
        dvt_item_at(dvt_block_data(dvt_block_at(net, 0), "weight", dvt_cpu()), DVT_SHAPE(1, 1)), -2,
        0);
    CHECK_VALUES(dvt_block_data(dvt_block_at(net, 0), "bias", dvt_cpu()), 0, 1, 1, 1, 1);
}

DVT_TEST(params_initializers_by_name) {
    dvt_nn_batch_norm_desc desc;
    dvt_block *net;
    memset(&desc, 0, sizeof desc);
    desc.in_channels = 2;
    net = dvt_nn_batch_norm_with(&desc);
    CHECK_INT(dvt_block_initialize(net, dvt_init_constant(9), DVT_CONTEXTS(dvt_cpu())), DVT_OK);
    CHECK_VALUES(dvt_block_data(net, "gamma", dvt_cpu()), 0, 1, 1);
    CHECK_VALUES(dvt_block_data(net, "beta", dvt_cpu()), 0, 0, 0);
    CHECK_VALUES(dvt_block_data(net, "running_mean", dvt_cpu()), 0, 0, 0);
    CHECK_VALUES(dvt_block_data(net, "running_var", dvt_cpu()), 0, 1, 1);
}

static void moments(dvt_array *x, double *mean, double *deviation, double *largest) {
    double *v = dvt_test_values(x), sum = 0, squares = 0;
    int64_t i, n = dvt_size(x);
    *largest = 0;
    for (i = 0; i < n; i++) {
        sum += v[i];
        squares += v[i] * v[i];
        if (fabs(v[i]) > *largest)
            *largest = fabs(v[i]);
    }
    *mean = sum / (double)n;
    *deviation = sqrt(squares / (double)n - *mean * *mean);
    free(v);
}

static void check_init(dvt_init init, double deviation, double bound) {
    double mean, is, largest;
    dvt_block *net = dense_in(100, 300);
    CHECK_INT(dvt_block_initialize(net, init, DVT_CONTEXTS(dvt_cpu())), DVT_OK);
    moments(dvt_block_data(net, "weight", dvt_cpu()), &mean, &is, &largest);
    CHECK_CLOSE(mean / deviation, 0, 0.03);
    CHECK_CLOSE(is / deviation, 1, 0.03);
    if (bound > 0)
        dvt_test_check(largest <= bound && largest > 0.98 * bound, __FILE__, __LINE__,
                       "largest is %g, bound %g", largest, bound);
    else
        CHECK(largest > 3 * deviation);
}

DVT_TEST(params_distributions) {
    double bound = sqrt(3 / ((100 + 300) / 2.0));
    dvt_init xavier = dvt_init_xavier();
    check_init(default_init(), 0.07 / sqrt(3), 0.07);
    check_init(dvt_init_uniform(2), 2 / sqrt(3), 2);
    check_init(dvt_init_normal(0.01), 0.01, 0);
    check_init(xavier, bound / sqrt(3), bound);
    xavier.value = 2;
    xavier.fan = DVT_FAN_IN;
    xavier.gaussian = true;
    check_init(xavier, sqrt(2 / 300.0), 0);
    xavier = dvt_init_xavier();
    xavier.fan = DVT_FAN_OUT;
    check_init(xavier, 0.1, sqrt(3 / 100.0));
    check_init(dvt_init_msra(DVT_FAN_IN, 0.25), sqrt(2 / (1 + 0.0625) / 300), 0);
}

/* The window of a filter multiplies both fans: (8, 4, 5, 5) has 100 inputs and 200 outputs. */
DVT_TEST(params_xavier_counts_the_window) {
    dvt_nn_conv2d_desc desc;
    double mean, deviation, largest, bound = sqrt(3 / 150.0);
    dvt_block *net;
    memset(&desc, 0, sizeof desc);
    desc.channels = 8;
    desc.in_channels = 4;
    desc.kernel[0] = 5;
    net = dvt_nn_conv2d_with(&desc);
    CHECK_INT(dvt_block_initialize(net, dvt_init_xavier(), no_contexts()), DVT_OK);
    moments(dvt_block_data(net, "weight", dvt_cpu()), &mean, &deviation, &largest);
    CHECK(largest <= bound && largest > 0.97 * bound);
    CHECK_CLOSE(deviation / bound, 1 / sqrt(3), 0.05);
}

/* Values come from the stream of cpu(0), in the order of the parameters, for any contexts. */
DVT_TEST(params_drawn_from_the_cpu_stream) {
    dvt_block *net = dvt_nn_sequential();
    dvt_array *first, *second;
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    DVT_NN_ADD(net, dense_in(3, 2), dense_in(2, 3));
    dvt_seed(7);
    first = dvt_uniform(-0.07, 0.07, DVT_SHAPE(3, 2), DVT_F32, dvt_cpu());
    second = dvt_uniform(-0.07, 0.07, DVT_SHAPE(2, 3), DVT_F32, dvt_cpu());
    dvt_seed(7);
    CHECK_INT(dvt_block_initialize(net, default_init(), DVT_CONTEXTS(dvt_gpu(1), dvt_gpu(0))),
              DVT_OK);
    CHECK(same_values(dvt_block_data(dvt_block_at(net, 0), "weight", dvt_gpu(0)), first));
    CHECK(same_values(dvt_block_data(dvt_block_at(net, 0), "weight", dvt_gpu(1)), first));
    CHECK(same_values(dvt_block_data(dvt_block_at(net, 1), "weight", dvt_gpu(1)), second));
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* With MXNet's generator, the first weights equal those of an MXNet process: Uniform(0.07) from its
   CPU stream. */
DVT_TEST(params_first_weights_of_mxnet) {
    dvt_block *net = dense_in(2, 3);
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    dvt_set_rng_engine(DVT_RNG_MXNET);
    dvt_seed(0);
    CHECK_INT(dvt_block_initialize(net, default_init(), DVT_CONTEXTS(dvt_gpu(0))), DVT_OK);
    CHECK_VALUES(dvt_block_data(net, "weight", dvt_gpu(0)), 1e-7, 0.14 * 0.5488135 - 0.07,
                 0.14 * 0.5928446 - 0.07, 0.14 * 0.71518934 - 0.07, 0.14 * 0.84426576 - 0.07,
                 0.14 * 0.60276335 - 0.07, 0.14 * 0.8579456 - 0.07);
    dvt_set_rng_engine(DVT_RNG_PHILOX);
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

DVT_TEST(params_bad_initializers) {
    dvt_block *net = dense_in(2, 2), *norm = dvt_nn_batch_norm();
    dvt_ctx_list here = DVT_CONTEXTS(dvt_cpu()), bad = here;
    dvt_init init = dvt_init_xavier();
    CHECK_ERROR(dvt_block_initialize(net, dvt_init_uniform(-1), here), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_block_initialize(net, dvt_init_normal(NAN), here), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_block_initialize(net, dvt_init_uniform(INFINITY), here), DVT_ERR_RANGE);
    init.kind = (dvt_init_kind)77;
    CHECK_ERROR(dvt_block_initialize(net, init, here), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_block_initialize(net, dvt_init_xavier(), DVT_CONTEXTS(dvt_gpu(3))),
                DVT_ERR_NO_DEVICE);
    bad.n = -1;
    CHECK_ERROR(dvt_block_initialize(net, dvt_init_xavier(), bad), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_block_data(net, "weight", dvt_cpu()), DVT_ERR_UNINITIALIZED);
    CHECK_ERROR(dvt_block_initialize(NULL, dvt_init_xavier(), here), DVT_ERR_NULL_ARGUMENT);
    dvt_param_set_init(dvt_block_param(net, "bias"), default_init());
    CHECK(dvt_param_set_init(dvt_block_param(norm, "gamma"), dvt_init_xavier()) == DVT_ERR_SHAPE);
    error_has("Xavier initializer cannot be applied to vector");
    error_has("It requires at least 2D");
    dvt_clear_error();
}

/* ---- order of initialization ---- */
DVT_TEST(params_initialized_twice) {
    dvt_block *net = dense_in(2, 2);
    dvt_array *w, *before;
    dvt_seed(3);
    CHECK_INT(dvt_block_initialize(net, default_init(), DVT_CONTEXTS(dvt_cpu())), DVT_OK);
    w = dvt_block_data(net, "weight", dvt_cpu());
    before = dvt_copy(w);
    CHECK_INT(dvt_block_initialize(net, dvt_init_one(), DVT_CONTEXTS(dvt_cpu())), DVT_OK);
    CHECK(same_values(dvt_block_data(net, "weight", dvt_cpu()), before));
    CHECK_INT(dvt_block_reinitialize(net, dvt_init_one(), DVT_CONTEXTS(dvt_cpu())), DVT_OK);
    CHECK(dvt_block_data(net, "weight", dvt_cpu()) == w); /* pointers remain valid */
    CHECK_VALUES(w, 0, 1, 1, 1, 1);
}

static char logged[2000];

static void append_log(void *user, dvt_log_level level, const char *message) {
    (void)user;
    if (level == DVT_LOG_WARNING && strlen(logged) + strlen(message) < sizeof logged)
        strcat(logged, message);
}

DVT_TEST(params_already_initialized_warning) {
    dvt_block *net = dense_in(2, 2);
    char expected[120];
    snprintf(expected, sizeof expected, "Parameter '%s' is already initialized, ignoring. Call",
             dvt_param_name(dvt_block_param(net, "weight")));
    logged[0] = 0;
    dvt_set_logger(append_log, NULL);
    dvt_block_initialize(net, default_init(), DVT_CONTEXTS(dvt_cpu()));
    CHECK_STR(logged, "");
    dvt_block_initialize(net, default_init(), DVT_CONTEXTS(dvt_cpu()));
    dvt_set_logger(NULL, NULL);
    CHECK(strstr(logged, expected) != NULL);
    CHECK(strstr(logged, "dvt_block_reinitialize") != NULL);
}

DVT_TEST(params_deferred) {
    dvt_block *net = dvt_nn_sequential(), *first = dvt_nn_dense(3, DVT_RELU);
    dvt_param *w = dvt_block_param(first, "weight");
    dvt_ctx_list ctxs;
    char list[64];
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    DVT_NN_ADD(net, first, dvt_nn_dense(2, DVT_IDENTITY));
    CHECK(dvt_param_data(w, dvt_cpu()) == NULL);
    CHECK_INT(dvt_error_code(), DVT_ERR_UNINITIALIZED);
    error_has("has not been initialized;");
    dvt_clear_error();
    CHECK_INT(dvt_param_ctxs(w).n, 0);
    CHECK_INT(dvt_block_initialize(net, dvt_init_one(), DVT_CONTEXTS(dvt_gpu(1), dvt_cpu())),
              DVT_OK);
    CHECK(dvt_shape_equal(dvt_param_shape(w), DVT_SHAPE(3, 0)));
    CHECK(dvt_param_data(w, dvt_gpu(1)) == NULL);
    CHECK_INT(dvt_error_code(), DVT_ERR_UNINITIALIZED);
    error_has("has not been initialized yet because initialization was deferred");
    error_has("in_units");
    dvt_clear_error();
    /* the bias has a known shape, so it is initialized already */
    CHECK_VALUES(dvt_block_data(first, "bias", dvt_cpu()), 0, 0, 0, 0);
    CHECK(dvt_block_forward(net, dvt_ones(DVT_SHAPE(5, 4), DVT_F32, dvt_cpu())) != NULL);
    CHECK(dvt_shape_equal(dvt_param_shape(w), DVT_SHAPE(3, 4)));
    CHECK_CLOSE(dvt_item(dvt_sum(dvt_param_data(w, dvt_gpu(1)), DVT_ALL)), 12, 0);
    ctxs = dvt_param_ctxs(w);
    dvt_ctx_list_format(ctxs, list, sizeof list);
    CHECK_STR(list, "[gpu(1), cpu(0)]");
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

DVT_TEST(params_forward_without_initialize) {
    dvt_block *net = dvt_nn_dense(2, DVT_IDENTITY);
    CHECK_ERROR(dvt_block_forward(net, dvt_ones(DVT_SHAPE(1, 2), DVT_F32, dvt_cpu())),
                DVT_ERR_UNINITIALIZED);
    CHECK_ERROR(dvt_block_forward(NULL, dvt_ones(DVT_SHAPE(1, 2), DVT_F32, dvt_cpu())),
                DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_block_forward(net, NULL), DVT_ERR_NULL_ARGUMENT);
}

#endif
