/* Tests of layers: their printed form, computed values against values worked out by hand, and
   arguments that their constructors refuse. */
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

/* Sets a parameter to values in C order. */
static void set(dvt_block *block, const char *name, dvt_shape shape, const double *values) {
    CHECK_INT(dvt_param_set_data(dvt_block_param(block, name),
                                 dvt_from_host(values, shape, DVT_F64, dvt_test_ctx())),
              DVT_OK);
}

static dvt_array *counting(dvt_shape shape, dvt_ctx ctx) {
    return dvt_reshape(dvt_arange(0, (double)dvt_shape_size(shape), 1, DVT_F32, ctx), shape);
}

#define CHECK_PRINTS(block, expected)                                                              \
    do {                                                                                           \
        char check_text_[2000];                                                                    \
        size_t check_n_ = dvt_block_format(block, check_text_, sizeof check_text_);                \
        CHECK_STR(check_text_, expected);                                                          \
        CHECK_INT(check_n_, strlen(expected));                                                     \
    } while (0)

/* ---- printing ---- */
DVT_TEST(blocks_print_dense) {
    dvt_block *net = dvt_nn_sequential();
    dvt_nn_dense_desc desc;
    CHECK_PRINTS(net, "Sequential(\n\n)");
    DVT_NN_ADD(net, dvt_nn_dense(1, DVT_IDENTITY));
    CHECK_PRINTS(net, "Sequential(\n  (0): Dense(None -> 1, linear)\n)");
    dvt_block_initialize(net, default_init(), no_contexts());
    dvt_block_forward(net, dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_test_ctx()));
    CHECK_PRINTS(net, "Sequential(\n  (0): Dense(3 -> 1, linear)\n)");
    memset(&desc, 0, sizeof desc);
    desc.units = 120;
    desc.in_units = 400;
    desc.activation = DVT_RELU;
    CHECK_PRINTS(dvt_nn_dense_with(&desc), "Dense(400 -> 120, Activation(relu))");
    CHECK_PRINTS(dvt_nn_dense(2, DVT_SIGMOID), "Dense(None -> 2, Activation(sigmoid))");
    CHECK_PRINTS(dvt_nn_dense(2, DVT_TANH), "Dense(None -> 2, Activation(tanh))");
    CHECK_PRINTS(dvt_nn_dense(2, DVT_SOFTPLUS), "Dense(None -> 2, Activation(softrelu))");
    CHECK_PRINTS(dvt_nn_dense(2, DVT_GELU), "Dense(None -> 2, Activation(gelu))");
}

DVT_TEST(blocks_print_convolution) {
    dvt_nn_conv2d_desc desc;
    dvt_pool2d_options pool;
    memset(&desc, 0, sizeof desc);
    CHECK_PRINTS(dvt_nn_conv2d(6, 5, DVT_RELU),
                 "Conv2D(None -> 6, kernel_size=(5, 5), stride=(1, 1), Activation(relu))");
    desc.channels = 8;
    desc.kernel[0] = 3;
    desc.kernel[1] = 1;
    desc.in_channels = 4;
    desc.options.stride[0] = 2;
    desc.options.padding[0] = 1;
    desc.options.padding[1] = 2;
    desc.options.dilation[1] = 3;
    desc.options.groups = 2;
    desc.no_bias = true;
    CHECK_PRINTS(dvt_nn_conv2d_with(&desc),
                 "Conv2D(2 -> 8, kernel_size=(3, 1), stride=(2, 2), padding=(1, 2), "
                 "dilation=(1, 3), groups=2, bias=False)");
    memset(&desc, 0, sizeof desc);
    desc.channels = 8;
    desc.kernel[0] = 3;
    desc.options.padding[0] = 2;
    CHECK_PRINTS(dvt_nn_conv2d_with(&desc),
                 "Conv2D(None -> 8, kernel_size=(3, 3), stride=(1, 1), padding=(2, 2))");
    desc.options.padding[1] = DVT_PAD_NONE;
    CHECK_PRINTS(dvt_nn_conv2d_with(&desc),
                 "Conv2D(None -> 8, kernel_size=(3, 3), stride=(1, 1), padding=(2, 0))");
    desc.options.padding[0] = DVT_PAD_NONE;
    CHECK_PRINTS(dvt_nn_conv2d_with(&desc), "Conv2D(None -> 8, kernel_size=(3, 3), stride=(1, 1))");
    CHECK_PRINTS(dvt_nn_max_pool2d(2, 0),
                 "MaxPool2D(size=(2, 2), stride=(2, 2), padding=(0, 0), ceil_mode=False, "
                 "global_pool=False, pool_type=max, layout=NCHW)");
    CHECK_PRINTS(dvt_nn_avg_pool2d(3, 1),
                 "AvgPool2D(size=(3, 3), stride=(1, 1), padding=(0, 0), ceil_mode=False, "
                 "global_pool=False, pool_type=avg, layout=NCHW)");
    CHECK_PRINTS(dvt_nn_global_avg_pool2d(),
                 "GlobalAvgPool2D(size=(1, 1), stride=(1, 1), padding=(0, 0), ceil_mode=True, "
                 "global_pool=True, pool_type=avg, layout=NCHW)");
    memset(&pool, 0, sizeof pool);
    pool.size[0] = 3;
    pool.size[1] = 2;
    pool.padding[0] = 1;
    CHECK_PRINTS(dvt_nn_avg_pool2d_with(&pool),
                 "AvgPool2D(size=(3, 2), stride=(3, 2), padding=(1, 1), ceil_mode=False, "
                 "global_pool=False, pool_type=avg, layout=NCHW)");
    pool.padding[1] = DVT_PAD_NONE;
    pool.ceil_mode = true;
    CHECK_PRINTS(dvt_nn_max_pool2d_with(&pool),
                 "MaxPool2D(size=(3, 2), stride=(3, 2), padding=(1, 0), ceil_mode=True, "
                 "global_pool=False, pool_type=max, layout=NCHW)");
    memset(&pool, 0, sizeof pool);
    pool.global = true;
    CHECK_PRINTS(dvt_nn_max_pool2d_with(&pool),
                 "GlobalMaxPool2D(size=(1, 1), stride=(1, 1), padding=(0, 0), ceil_mode=True, "
                 "global_pool=True, pool_type=max, layout=NCHW)");
}

DVT_TEST(blocks_print_others) {
    dvt_nn_batch_norm_desc desc;
    dvt_block *norm = dvt_nn_layer_norm();
    memset(&desc, 0, sizeof desc);
    CHECK_PRINTS(dvt_nn_flatten(), "Flatten");
    CHECK_PRINTS(dvt_nn_activation(DVT_RELU), "Activation(relu)");
    CHECK_PRINTS(dvt_nn_dropout(0.5), "Dropout(p = 0.5, axes=())");
    CHECK_PRINTS(dvt_nn_dropout(0), "Dropout(p = 0.0, axes=())");
    CHECK_PRINTS(dvt_nn_dropout(0.125), "Dropout(p = 0.125, axes=())");
    CHECK_PRINTS(dvt_nn_embedding(10, 4), "Embedding(10 -> 4, float32)");
    CHECK_PRINTS(dvt_nn_batch_norm(), "BatchNorm(axis=1, eps=1e-05, momentum=0.9, fix_gamma=False, "
                                      "use_global_stats=False, in_channels=None)");
    desc.axis = -1;
    desc.momentum = 0.99;
    desc.epsilon = 0.00025;
    desc.no_scale = true;
    desc.in_channels = 16;
    CHECK_PRINTS(dvt_nn_batch_norm_with(&desc),
                 "BatchNorm(axis=-1, eps=0.00025, momentum=0.99, fix_gamma=True, "
                 "use_global_stats=False, in_channels=16)");
    CHECK_PRINTS(norm, "LayerNorm(eps=1e-05, axis=-1, center=True, scale=True, in_channels=0)");
    dvt_block_initialize(norm, default_init(), no_contexts());
    dvt_block_forward(norm, dvt_ones(DVT_SHAPE(2, 7), DVT_F32, dvt_test_ctx()));
    CHECK_PRINTS(norm, "LayerNorm(eps=1e-05, axis=-1, center=True, scale=True, in_channels=7)");
}

DVT_TEST(blocks_print_nested) {
    static const char expected[] = "Sequential(\n"
                                   "  (0): Sequential(\n"
                                   "    (0): Dense(None -> 2, linear)\n"
                                   "    (1): Sequential(\n"
                                   "      (0): Flatten\n"
                                   "    )\n"
                                   "  )\n"
                                   "  (1): Activation(tanh)\n"
                                   ")";
    dvt_block *net = dvt_nn_sequential(), *inner = dvt_nn_sequential(),
              *innermost = dvt_nn_sequential();
    char brief[10];
    DVT_NN_ADD(innermost, dvt_nn_flatten());
    DVT_NN_ADD(inner, dvt_nn_dense(2, DVT_IDENTITY), innermost);
    DVT_NN_ADD(net, inner, dvt_nn_activation(DVT_TANH));
    CHECK_PRINTS(net, expected);
    CHECK_INT(dvt_block_format(net, brief, sizeof brief), strlen(expected));
    CHECK_STR(brief, "Sequentia");
    CHECK_INT(dvt_block_format(net, NULL, 0), strlen(expected));
    CHECK_ERROR(dvt_block_format(NULL, brief, sizeof brief), DVT_ERR_NULL_ARGUMENT);
}

/* ---- what layers compute ---- */
DVT_TEST(blocks_dense_values) {
    static const double w[] = {1, 2, 3, -1, 0, 1}, b[] = {0.5, -10};
    dvt_block *net = dvt_nn_dense(2, DVT_IDENTITY), *rectified = dvt_nn_dense(2, DVT_RELU);
    dvt_array *x = DVT_ARRAY(float, DVT_SHAPE(2, 3), dvt_test_ctx(), 1, 0, 2, 0, 1, -1);
    dvt_block_initialize(net, default_init(), no_contexts());
    dvt_block_initialize(rectified, default_init(), no_contexts());
    set(net, "weight", DVT_SHAPE(2, 3), w);
    set(net, "bias", DVT_SHAPE(2), b);
    set(rectified, "weight", DVT_SHAPE(2, 3), w);
    CHECK_VALUES(dvt_block_forward(net, x), 1e-6, 7.5, -9, -0.5, -11);
    CHECK_VALUES(dvt_block_forward(rectified, x), 1e-6, 7, 1, 0, 0);
    /* the layer flattens all axes but the first */
    CHECK_VALUES(dvt_block_forward(net, dvt_reshape(x, DVT_SHAPE(2, 1, 3, 1))), 1e-6, 7.5, -9, -0.5,
                 -11);
    CHECK_ERROR(dvt_block_forward(net, dvt_ones(DVT_SHAPE(2, 4), DVT_F32, dvt_test_ctx())),
                DVT_ERR_SHAPE);
    CHECK(dvt_block_forward(net, dvt_ones(DVT_SHAPE(0, 3), DVT_F32, dvt_test_ctx())) != NULL);
}

DVT_TEST(blocks_dense_options) {
    dvt_nn_dense_desc desc;
    dvt_block *net;
    dvt_array *y;
    memset(&desc, 0, sizeof desc);
    desc.units = 2;
    desc.no_bias = desc.no_flatten = true;
    desc.weight_init = dvt_init_one();
    desc.dtype = DVT_F64;
    net = dvt_nn_dense_with(&desc);
    CHECK_INT(dvt_params_len(dvt_block_collect_params(net, NULL)), 1);
    dvt_block_initialize(net, default_init(), no_contexts());
    y = dvt_block_forward(net,
                          dvt_as_in_dtype(counting(DVT_SHAPE(1, 2, 3), dvt_test_ctx()), DVT_F64));
    CHECK(dvt_shape_equal(dvt_shape_of(y), DVT_SHAPE(1, 2, 2)));
    CHECK_INT(dvt_dtype_of(y), DVT_F64);
    CHECK_VALUES(y, 0, 3, 3, 12, 12);
    desc.units = 0;
    CHECK_ERROR(dvt_nn_dense_with(&desc), DVT_ERR_RANGE);
    desc.units = 1;
    desc.in_units = -1;
    CHECK_ERROR(dvt_nn_dense_with(&desc), DVT_ERR_RANGE);
    desc.in_units = 0;
    desc.dtype = DVT_I32;
    CHECK_ERROR(dvt_nn_dense_with(&desc), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_nn_dense(1, (dvt_activation)50), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_nn_dense_with(NULL), DVT_ERR_NULL_ARGUMENT);
}

DVT_TEST(blocks_deferred_from_an_empty_input) {
    dvt_block *net = dvt_nn_dense(2, DVT_IDENTITY);
    dvt_block_initialize(net, default_init(), no_contexts());
    CHECK_ERROR(dvt_block_forward(net, dvt_ones(DVT_SHAPE(2, 0), DVT_F32, dvt_test_ctx())),
                DVT_ERR_SHAPE);
    CHECK(dvt_block_forward(net, dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_test_ctx())) !=
          NULL); /* as (2, 1) */
    CHECK(dvt_shape_equal(dvt_param_shape(dvt_block_param(net, "weight")), DVT_SHAPE(2, 1)));
}

DVT_TEST(blocks_conv_values) {
    static const double w[] = {1, 0, 0, -1, 0, 2, 0, 0}, b[] = {0.5, 0};
    dvt_block *net = dvt_nn_conv2d(2, 2, DVT_RELU);
    dvt_nn_conv2d_desc desc;
    dvt_array *x = counting(DVT_SHAPE(1, 1, 3, 3), dvt_test_ctx());
    dvt_block_initialize(net, default_init(), no_contexts());
    set(net, "weight", DVT_SHAPE(2, 1, 2, 2), w);
    set(net, "bias", DVT_SHAPE(2), b);
    /* x[i,j] - x[i+1,j+1] + 0.5 = -3.5, which relu sets to 0; 2 x[i,j+1] */
    CHECK_VALUES(dvt_block_forward(net, x), 1e-6, 0, 0, 0, 0, 2, 4, 8, 10);
    memset(&desc, 0, sizeof desc);
    desc.channels = 2;
    desc.kernel[0] = 1;
    desc.options.stride[0] = 2;
    desc.options.groups = 2;
    desc.no_bias = true;
    desc.weight_init = dvt_init_constant(3);
    net = dvt_nn_conv2d_with(&desc);
    dvt_block_initialize(net, default_init(), no_contexts());
    CHECK_VALUES(dvt_block_forward(net, counting(DVT_SHAPE(1, 2, 2, 2), dvt_test_ctx())), 1e-6, 0,
                 12);
    CHECK(dvt_shape_equal(dvt_param_shape(dvt_block_param(net, "weight")), DVT_SHAPE(2, 1, 1, 1)));
}

DVT_TEST(blocks_conv_errors) {
    dvt_block *net = dvt_nn_conv2d(2, 2, DVT_IDENTITY);
    dvt_nn_conv2d_desc desc;
    memset(&desc, 0, sizeof desc);
    dvt_block_initialize(net, default_init(), no_contexts());
    CHECK_ERROR(dvt_block_forward(net, dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_test_ctx())),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_nn_conv2d(0, 2, DVT_IDENTITY), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_nn_conv2d(2, 0, DVT_IDENTITY), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_nn_conv2d(2, -1, DVT_IDENTITY), DVT_ERR_RANGE);
    desc.channels = 3;
    desc.kernel[0] = 1;
    desc.options.groups = 2;
    CHECK_ERROR(dvt_nn_conv2d_with(&desc), DVT_ERR_RANGE);
    desc.channels = 4;
    desc.in_channels = 3;
    CHECK_ERROR(dvt_nn_conv2d_with(&desc), DVT_ERR_RANGE);
    desc.in_channels = 4;
    desc.options.padding[1] = -1;
    CHECK_ERROR(dvt_nn_conv2d_with(&desc), DVT_ERR_RANGE);
    desc.options.padding[1] = 0;
    desc.dtype = DVT_BOOL;
    CHECK_ERROR(dvt_nn_conv2d_with(&desc), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_nn_conv2d_with(NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_nn_max_pool2d(0, 1), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_nn_avg_pool2d(2, -1), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_nn_max_pool2d_with(NULL), DVT_ERR_NULL_ARGUMENT);
}

/* A block computes with the pairs of sizes that it prints. */
DVT_TEST(blocks_compute_with_resolved_pairs) {
    dvt_array *x = counting(DVT_SHAPE(1, 1, 4, 5), dvt_test_ctx());
    dvt_nn_conv2d_desc desc;
    dvt_pool2d_options pool;
    dvt_block *conv;
    memset(&desc, 0, sizeof desc);
    memset(&pool, 0, sizeof pool);
    desc.channels = 1;
    desc.kernel[0] = 3;
    desc.options.padding[0] = 2;
    desc.options.padding[1] = DVT_PAD_NONE;
    conv = dvt_nn_conv2d_with(&desc);
    CHECK_INT(dvt_block_initialize(conv, default_init(), no_contexts()), DVT_OK);
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_block_forward(conv, x)), DVT_SHAPE(1, 1, 6, 3)));
    pool.size[0] = 4;
    pool.stride[0] = 1;
    pool.padding[0] = 2;
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_block_forward(dvt_nn_max_pool2d_with(&pool), x)),
                          DVT_SHAPE(1, 1, 5, 6)));
    pool.padding[1] = DVT_PAD_NONE;
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_block_forward(dvt_nn_avg_pool2d_with(&pool), x)),
                          DVT_SHAPE(1, 1, 5, 2)));
}

DVT_TEST(blocks_pool_values) {
    dvt_array *x = counting(DVT_SHAPE(1, 1, 4, 4), dvt_test_ctx());
    CHECK_VALUES(dvt_block_forward(dvt_nn_max_pool2d(2, 0), x), 0, 5, 7, 13, 15);
    CHECK_VALUES(dvt_block_forward(dvt_nn_max_pool2d(3, 1), x), 0, 10, 11, 14, 15);
    CHECK_VALUES(dvt_block_forward(dvt_nn_avg_pool2d(2, 2), x), 1e-6, 2.5, 4.5, 10.5, 12.5);
    CHECK_VALUES(dvt_block_forward(dvt_nn_global_avg_pool2d(), x), 1e-6, 7.5);
}

DVT_TEST(blocks_simple_values) {
    dvt_array *x = DVT_ARRAY(float, DVT_SHAPE(3), dvt_test_ctx(), -1, 0, 2), *y;
    CHECK_VALUES(dvt_block_forward(dvt_nn_activation(DVT_RELU), x), 0, 0, 0, 2);
    CHECK_VALUES(dvt_block_forward(dvt_nn_activation(DVT_TANH), x), 1e-6, tanh(-1), 0, tanh(2));
    CHECK_VALUES(dvt_block_forward(dvt_nn_activation(DVT_SIGMOID), x), 1e-6, 1 / (1 + exp(1)), 0.5,
                 1 / (1 + exp(-2)));
    CHECK_VALUES(dvt_block_forward(dvt_nn_activation(DVT_SOFTPLUS), x), 1e-6, log(1 + exp(-1)),
                 log(2), log(1 + exp(2)));
    CHECK_VALUES(dvt_block_forward(dvt_nn_activation(DVT_GELU), x), 1e-6,
                 -0.5 * (1 + erf(-1 / sqrt(2))), 0, 1 + erf(2 / sqrt(2)));
    CHECK(dvt_block_forward(dvt_nn_activation(DVT_IDENTITY), x) == x);
    y = dvt_block_forward(dvt_nn_flatten(), counting(DVT_SHAPE(2, 3, 4), dvt_test_ctx()));
    CHECK(dvt_shape_equal(dvt_shape_of(y), DVT_SHAPE(2, 12)));
    y = dvt_flatten(dvt_zeros(DVT_SHAPE(0, 3, 4), DVT_F32, dvt_test_ctx()));
    CHECK(dvt_shape_equal(dvt_shape_of(y), DVT_SHAPE(0, 12)));
    y = dvt_flatten(dvt_zeros(DVT_SHAPE(3, 0, 4), DVT_F32, dvt_test_ctx()));
    CHECK(dvt_shape_equal(dvt_shape_of(y), DVT_SHAPE(3, 0)));
    y = dvt_flatten(dvt_scalar(3, DVT_F32, dvt_test_ctx()));
    CHECK(dvt_shape_equal(dvt_shape_of(y), DVT_SHAPE(1, 1)));
    CHECK_ERROR(dvt_nn_activation((dvt_activation)-1), DVT_ERR_RANGE);
}

/* A context gets an empty batch when the last batch has fewer rows than there are contexts. */
DVT_TEST(blocks_empty_batch) {
    dvt_block *net = dvt_nn_sequential();
    dvt_array *y = NULL, *w;
    DVT_NN_ADD(net, dvt_nn_conv2d(2, 3, DVT_RELU), dvt_nn_max_pool2d(2, 2),
               dvt_nn_dense(4, DVT_IDENTITY));
    CHECK_INT(dvt_block_initialize(net, dvt_init_one(), DVT_CONTEXTS(dvt_test_ctx())), DVT_OK);
    CHECK(dvt_block_forward(net, dvt_ones(DVT_SHAPE(2, 1, 6, 6), DVT_F32, dvt_test_ctx())) != NULL);
    w = dvt_block_data(dvt_block_at(net, 2), "weight", dvt_test_ctx());
    CHECK(w && dvt_fill(dvt_grad(w), 7) != NULL);
    DVT_RECORD {
        y = dvt_block_forward(net, dvt_ones(DVT_SHAPE(0, 1, 6, 6), DVT_F32, dvt_test_ctx()));
    }
    CHECK(dvt_shape_equal(dvt_shape_of(y), DVT_SHAPE(0, 4)));
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_CLOSE(dvt_item(dvt_norm(dvt_grad(w), DVT_ALL)), 0, 0);
}

DVT_TEST(blocks_dropout) {
    dvt_block *net = dvt_nn_dropout(0.25);
    dvt_array *x = dvt_ones(DVT_SHAPE(4000), DVT_F32, dvt_test_ctx()), *y = NULL;
    double *values;
    int i, zeros = 0;
    CHECK(dvt_block_forward(net, x) == x);
    DVT_TRAIN_MODE {
        y = dvt_block_forward(net, x);
    }
    values = dvt_test_values(y);
    for (i = 0; i < 4000; i++) {
        zeros += values[i] == 0;
        if (values[i] != 0)
            CHECK_CLOSE(values[i], 1 / 0.75, 1e-6);
    }
    free(values);
    dvt_test_check(zeros > 880 && zeros < 1120, __FILE__, __LINE__, "%d of 4000 are 0", zeros);
    CHECK_ERROR(dvt_nn_dropout(1), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_nn_dropout(-0.1), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_nn_dropout(NAN), DVT_ERR_RANGE);
}

DVT_TEST(blocks_batch_norm) {
    static const double gamma[] = {2, 1}, beta[] = {0, 5};
    dvt_block *net = dvt_nn_batch_norm();
    dvt_array *x, *y = NULL;
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    x = DVT_ARRAY(float, DVT_SHAPE(2, 2), dvt_gpu(0), 1, 10, 3, 30);
    dvt_block_initialize(net, default_init(), DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(1)));
    CHECK_VALUES(dvt_block_forward(net, x), 1e-4, 1, 10, 3, 30); /* statistics 0 and 1 */
    set(net, "gamma", DVT_SHAPE(2), gamma);
    set(net, "beta", DVT_SHAPE(2), beta);
    DVT_TRAIN_MODE {
        y = dvt_block_forward(net, x);
    }
    CHECK_VALUES(y, 1e-4, -2, 4, 2, 6);
    CHECK_VALUES(dvt_block_data(net, "running_mean", dvt_gpu(0)), 1e-5, 0.2, 2);
    CHECK_VALUES(dvt_block_data(net, "running_var", dvt_gpu(0)), 1e-4, 0.9 + 0.1, 0.9 + 10);
    CHECK_VALUES(dvt_block_data(net, "running_mean", dvt_gpu(1)), 0, 0, 0); /* one per context */
    CHECK_ERROR(dvt_block_forward(dvt_nn_batch_norm(), dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_cpu())),
                DVT_ERR_UNINITIALIZED);
    net = dvt_nn_batch_norm();
    dvt_block_initialize(net, default_init(), DVT_CONTEXTS(dvt_cpu()));
    CHECK_ERROR(dvt_block_forward(net, dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_cpu())), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_block_forward(net, dvt_ones(DVT_SHAPE(3, 0), DVT_F32, dvt_cpu())),
                DVT_ERR_SHAPE);
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

DVT_TEST(blocks_batch_norm_without_scale_and_center) {
    static const double sevens[] = {7, 7};
    dvt_nn_batch_norm_desc desc;
    dvt_block *net;
    memset(&desc, 0, sizeof desc);
    desc.axis = -1;
    desc.no_scale = desc.no_center = true;
    net = dvt_nn_batch_norm_with(&desc);
    dvt_block_initialize(net, default_init(), no_contexts());
    dvt_block_forward(net, dvt_ones(DVT_SHAPE(3, 2), DVT_F32, dvt_test_ctx()));
    set(net, "gamma", DVT_SHAPE(2), sevens); /* unused: a file may hold values for them */
    set(net, "beta", DVT_SHAPE(2), sevens);
    CHECK_VALUES(dvt_block_forward(net, DVT_ARRAY(float, DVT_SHAPE(1, 2), dvt_test_ctx(), 1, -2)),
                 1e-4, 1, -2);
    desc.momentum = 2;
    CHECK_ERROR(dvt_nn_batch_norm_with(&desc), DVT_ERR_RANGE);
    desc.momentum = 0.5;
    desc.epsilon = -1;
    CHECK_ERROR(dvt_nn_batch_norm_with(&desc), DVT_ERR_RANGE);
    desc.epsilon = 0;
    desc.axis = 8;
    CHECK_ERROR(dvt_nn_batch_norm_with(&desc), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_nn_batch_norm_with(NULL), DVT_ERR_NULL_ARGUMENT);
}

DVT_TEST(blocks_layer_norm) {
    static const double gamma[] = {1, 2}, beta[] = {0, 10};
    dvt_block *net = dvt_nn_layer_norm();
    dvt_block_initialize(net, default_init(), no_contexts());
    CHECK_VALUES(
        dvt_block_forward(net, DVT_ARRAY(float, DVT_SHAPE(2, 2), dvt_test_ctx(), 1, 3, 10, 30)),
        1e-4, -1, 1, -1, 1);
    set(net, "gamma", DVT_SHAPE(2), gamma);
    set(net, "beta", DVT_SHAPE(2), beta);
    CHECK_VALUES(dvt_block_forward(net, DVT_ARRAY(float, DVT_SHAPE(1, 2), dvt_test_ctx(), 1, 3)),
                 1e-4, -1, 12);
    net = dvt_nn_layer_norm();
    dvt_block_initialize(net, default_init(), no_contexts());
    CHECK_ERROR(dvt_block_forward(net, dvt_scalar(1, DVT_F32, dvt_test_ctx())), DVT_ERR_SHAPE);
}

DVT_TEST(blocks_embedding) {
    static const double rows[] = {0, 1, 10, 11, 20, 21};
    dvt_block *net = dvt_nn_embedding(3, 2);
    dvt_array *y = NULL;
    dvt_block_initialize(net, default_init(), no_contexts());
    set(net, "weight", DVT_SHAPE(3, 2), rows);
    DVT_RECORD {
        y = dvt_block_forward(net, DVT_ARRAY(int32_t, DVT_SHAPE(1, 3), dvt_test_ctx(), 2, 0, 2));
    }
    CHECK(dvt_shape_equal(dvt_shape_of(y), DVT_SHAPE(1, 3, 2)));
    CHECK_VALUES(y, 0, 20, 21, 0, 1, 20, 21);
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_VALUES(dvt_param_grad(dvt_block_param(net, "weight"), dvt_test_ctx()), 0, 1, 1, 0, 0, 2,
                 2);
    CHECK_VALUES(dvt_block_forward(net, DVT_ARRAY(float, DVT_SHAPE(1), dvt_test_ctx(), 1)), 0, 10,
                 11);
    CHECK_ERROR(dvt_nn_embedding(0, 2), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_nn_embedding(2, 0), DVT_ERR_RANGE);
}

/* A block without bias works while the thread holds an old error. */
DVT_TEST(blocks_without_bias_under_an_old_error) {
    dvt_block *net = dvt_nn_sequential();
    dvt_nn_conv2d_desc conv;
    dvt_nn_dense_desc dense;
    memset(&conv, 0, sizeof conv);
    memset(&dense, 0, sizeof dense);
    conv.channels = 2;
    conv.kernel[0] = 1;
    dense.units = 3;
    conv.no_bias = dense.no_bias = true;
    DVT_NN_ADD(net, dvt_nn_conv2d_with(&conv), dvt_nn_dense_with(&dense));
    CHECK_INT(dvt_block_initialize(net, dvt_init_one(), no_contexts()), DVT_OK);
    CHECK(dvt_ones(DVT_SHAPE(-1), DVT_F32, dvt_test_ctx()) == NULL);
    CHECK_INT(dvt_error_code(), DVT_ERR_SHAPE);
    CHECK_VALUES(dvt_block_forward(net, dvt_ones(DVT_SHAPE(1, 1, 2, 2), DVT_F32, dvt_test_ctx())),
                 1e-6, 8, 8, 8);
    dvt_clear_error();
}

#endif
