/* Tests of 1-D and transposed convolution, 1-D and adaptive pooling, and up-sampling: values and
   gradients against PyTorch's, differences of first and second order, 16-bit floats, errors,
   blocks. */
#include "golden_layers.h"
#include "gradient_check.h"

static dvt_conv1d_options options1d(int stride, int padding, int dilation, int groups) {
    dvt_conv1d_options p;
    p.stride = stride;
    p.padding = padding;
    p.dilation = dilation;
    p.groups = groups;
    return p;
}

/* The options of the golden case deconv2d_all. */
static dvt_conv2d_transpose_options transpose_all(void) {
    dvt_conv2d_transpose_options p;
    memset(&p, 0, sizeof p);
    p.conv.stride[0] = 3;
    p.conv.stride[1] = 2;
    p.conv.padding[0] = 1;
    p.conv.padding[1] = 2;
    p.conv.dilation[0] = 1;
    p.conv.dilation[1] = 2;
    p.conv.groups = 2;
    p.output_padding[0] = 2;
    p.output_padding[1] = 1;
    return p;
}

static dvt_array *conv1d(dvt_array *const *x, const void *user) {
    const dvt_conv1d_options p = options1d(2, 1, 2, 2);
    (void)user;
    return dvt_conv1d(x[0], x[1], x[2], &p);
}

static dvt_array *conv1d_plain(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_conv1d(x[0], x[1], NULL, NULL);
}

static dvt_array *deconv2d(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_conv2d_transpose(x[0], x[1], x[2], NULL);
}

static dvt_array *deconv2d_all(dvt_array *const *x, const void *user) {
    const dvt_conv2d_transpose_options p = transpose_all();
    (void)user;
    return dvt_conv2d_transpose(x[0], x[1], x[2], &p);
}

static dvt_array *deconv1d(dvt_array *const *x, const void *user) {
    dvt_conv1d_transpose_options p;
    (void)user;
    p.conv = options1d(2, 1, 0, 0);
    p.output_padding = 1;
    return dvt_conv1d_transpose(x[0], x[1], x[2], &p);
}

DVT_TEST(conv_more_as_pytorch) {
    GOLDEN("conv1d", conv1d, DVT_SHAPE(2, 4, 9), DVT_SHAPE(6, 2, 3), DVT_SHAPE(6));
    GOLDEN("conv1d_plain", conv1d_plain, DVT_SHAPE(2, 3, 7), DVT_SHAPE(2, 3, 3));
    GOLDEN("deconv2d", deconv2d, DVT_SHAPE(2, 3, 4, 3), DVT_SHAPE(3, 2, 2, 3), DVT_SHAPE(2));
    GOLDEN("deconv2d_all", deconv2d_all, DVT_SHAPE(2, 4, 3, 4), DVT_SHAPE(4, 3, 2, 3),
           DVT_SHAPE(6));
    GOLDEN("deconv1d", deconv1d, DVT_SHAPE(2, 3, 5), DVT_SHAPE(3, 4, 3), DVT_SHAPE(4));
}

DVT_TEST(conv_more_gradients) {
    problem p = problem_begin("deconv2d_all", deconv2d_all, NULL);
    problem_input(&p, DVT_SHAPE(1, 2, 2, 3), -2, 2);
    problem_input(&p, DVT_SHAPE(2, 1, 2, 3), -2, 2);
    problem_input(&p, DVT_SHAPE(2), -2, 2);
    check_problem(&p);
    check_two("conv1d_plain", conv1d_plain, NULL, DVT_SHAPE(1, 2, 5), DVT_SHAPE(2, 2, 3));
}

/* <conv(x), g> = <x, conv_transpose(g)>, with the output padding that gives x's extents. */
DVT_TEST(conv_more_transpose_is_adjoint) {
    dvt_array *x = golden_wave(DVT_SHAPE(1, 2, 8, 7), 1, DVT_F64, dvt_cpu());
    dvt_array *w = golden_wave(DVT_SHAPE(3, 2, 3, 3), 2, DVT_F64, dvt_cpu()), *y, *g, *back;
    dvt_conv2d_transpose_options p;
    memset(&p, 0, sizeof p);
    p.conv.stride[0] = 2;
    p.conv.padding[0] = 1;
    p.output_padding[0] = 1;
    p.output_padding[1] = DVT_PAD_NONE;
    y = dvt_conv2d(x, w, NULL, &p.conv);
    g = golden_wave(dvt_shape_of(y), 5, DVT_F64, dvt_cpu());
    back = dvt_conv2d_transpose(g, w, NULL, &p);
    CHECK(dvt_shape_equal(dvt_shape_of(back), dvt_shape_of(x)));
    CHECK_CLOSE(dvt_item(dvt_sum(dvt_mul(y, g), DVT_ALL)),
                dvt_item(dvt_sum(dvt_mul(x, back), DVT_ALL)), 1e-12);
}

/* ---- pooling and resizing ---- */
static dvt_pool1d_options pool1d(int size, int stride, int padding) {
    dvt_pool1d_options p;
    memset(&p, 0, sizeof p);
    p.size = size;
    p.stride = stride;
    p.padding = padding;
    return p;
}

static dvt_array *max_pool1d(dvt_array *const *x, const void *user) {
    const dvt_pool1d_options p = pool1d(3, 2, 1);
    (void)user;
    return dvt_max_pool1d(x[0], &p);
}

static dvt_array *avg_pool1d(dvt_array *const *x, const void *user) {
    const dvt_pool1d_options p = pool1d(3, 2, 1);
    (void)user;
    return dvt_avg_pool1d(x[0], &p);
}

/* One case of resizing: GOLDEN passes no user pointer. */
static struct {
    int64_t height, width;
    bool bilinear, corners, adaptive;
} resize_to;

static dvt_array *resize(dvt_array *const *x, const void *user) {
    dvt_upsample2d_options p;
    (void)user;
    if (resize_to.adaptive)
        return dvt_adaptive_avg_pool2d(x[0], resize_to.height, resize_to.width);
    memset(&p, 0, sizeof p);
    p.size[0] = resize_to.height;
    p.size[1] = resize_to.width;
    p.bilinear = resize_to.bilinear;
    p.align_corners = resize_to.corners;
    return dvt_upsample2d(x[0], &p);
}

DVT_TEST(resize_as_pytorch) {
    static const struct {
        const char *name;
        int64_t height, width;
    } sizes[] = {{"x2", 6, 8}, {"odd", 5, 7}, {"down", 2, 3}, {"one", 1, 1}};

    static const char *const kinds[] = {"nearest", "bilinear0", "bilinear1", "adaptive"};
    char name[40];
    int i, k;
    for (i = 0; i < COUNT(sizes); i++)
        for (k = 0; k < COUNT(kinds); k++) {
            resize_to.height = sizes[i].height;
            resize_to.width = sizes[i].width;
            resize_to.bilinear = k == 1 || k == 2;
            resize_to.corners = k == 2;
            resize_to.adaptive = k == 3;
            snprintf(name, sizeof name, "%s_%s", kinds[k], sizes[i].name);
            GOLDEN(name, resize, k == 3 ? DVT_SHAPE(2, 2, 5, 4) : DVT_SHAPE(2, 2, 3, 4));
        }
    GOLDEN("max_pool1d", max_pool1d, DVT_SHAPE(2, 3, 8));
    GOLDEN("avg_pool1d", avg_pool1d, DVT_SHAPE(2, 3, 8));
}

DVT_TEST(resize_gradients) {
    int k;
    for (k = 0; k < 3; k++) {
        resize_to.height = 3;
        resize_to.width = 5;
        resize_to.bilinear = k == 1;
        resize_to.corners = false;
        resize_to.adaptive = k == 2;
        check_one(k ? "bilinear or adaptive" : "nearest", resize, NULL, DVT_SHAPE(1, 1, 2, 3), -2,
                  2);
    }
    check_one("max_pool1d", max_pool1d, NULL, DVT_SHAPE(1, 2, 6), -2, 2);
}

DVT_TEST(resize_values) {
    dvt_ctx ctx = dvt_test_ctx();
    dvt_array *x = DVT_ARRAY(int32_t, DVT_SHAPE(1, 1, 1, 2), ctx, 1, 3), *y;
    dvt_array *row = DVT_ARRAY(float, DVT_SHAPE(1, 1, 4), ctx, 1, 5, 2, 4);
    dvt_upsample2d_options p;
    dvt_pool1d_options all = pool1d(0, 0, 0);
    memset(&p, 0, sizeof p);
    p.scale[0] = 1;
    p.scale[1] = 2;
    y = dvt_upsample2d(x, &p);
    CHECK_INT(dvt_dtype_of(y), DVT_I32);
    CHECK_VALUES(y, 0, 1, 1, 3, 3);
    p.bilinear = true;
    y = dvt_upsample2d(x, &p);
    CHECK_INT(dvt_dtype_of(y), DVT_F32);
    CHECK_VALUES(y, 0, 1, 1.5, 2.5, 3);
    p.bilinear = false;
    p.scale[1] = 1;
    y = dvt_upsample2d(x, &p); /* a copy, not x */
    CHECK(dvt_fill(y, 7) != NULL);
    CHECK_VALUES(x, 0, 1, 3);
    CHECK_INT(dvt_size(dvt_upsample2d(dvt_zeros(DVT_SHAPE(0, 1, 2, 2), DVT_F32, ctx), &p)), 0);
    all.global = true;
    CHECK_VALUES(dvt_max_pool1d(row, &all), 0, 5);
    CHECK_VALUES(dvt_avg_pool1d(row, &all), 0, 3);
    all = pool1d(2, 0, 0);
    CHECK_VALUES(dvt_max_pool1d(row, &all), 0, 5, 4);
    CHECK_VALUES(
        dvt_adaptive_avg_pool2d(DVT_ARRAY(uint8_t, DVT_SHAPE(1, 1, 1, 3), ctx, 1, 2, 4), 1, 2), 0,
        1.5, 3);
}

DVT_TEST(conv_more_16_bits) {
    static const dvt_dtype half[] = {DVT_F16, DVT_BF16};
    dvt_upsample2d_options p;
    int d;
    memset(&p, 0, sizeof p);
    p.scale[0] = 3;
    p.bilinear = true;
    for (d = 0; d < 2; d++) {
        dvt_array *x = golden_wave(DVT_SHAPE(1, 2, 3, 4), 1, half[d], dvt_test_ctx());
        dvt_array *w = golden_wave(DVT_SHAPE(2, 2, 2, 2), 2, half[d], dvt_test_ctx());
        dvt_array *row = dvt_reshape(x, DVT_SHAPE(1, 2, 12)), *wide = dvt_astype(x, DVT_F32), *y;
        dvt_array *kernel = dvt_reshape(w, DVT_SHAPE(2, 2, 4)), *y32;
        CHECK(dvt_array_equal(dvt_upsample2d(x, &p), dvt_astype(dvt_upsample2d(wide, &p), half[d]),
                              DVT_NAN_DIFFERS));
        CHECK(dvt_array_equal(dvt_adaptive_avg_pool2d(x, 2, 3),
                              dvt_astype(dvt_adaptive_avg_pool2d(wide, 2, 3), half[d]),
                              DVT_NAN_DIFFERS));
        y = dvt_conv2d_transpose(x, w, NULL, NULL);
        y32 = dvt_conv2d_transpose(wide, dvt_astype(w, DVT_F32), NULL, NULL);
        CHECK_INT(dvt_dtype_of(y), half[d]);
        CHECK(dvt_allclose(dvt_astype(y, DVT_F32), y32, 1e-2, 1e-2, DVT_NAN_DIFFERS));
        y = dvt_conv1d(row, kernel, NULL, NULL);
        CHECK_INT(dvt_dtype_of(y), half[d]);
        y32 = dvt_conv1d(dvt_astype(row, DVT_F32), dvt_astype(kernel, DVT_F32), NULL, NULL);
        CHECK(dvt_allclose(dvt_astype(y, DVT_F32), y32, 1e-2, 1e-2, DVT_NAN_DIFFERS));
    }
}

/* ---- errors ---- */
DVT_TEST(conv_more_errors) {
    dvt_ctx ctx = dvt_test_ctx();
    dvt_array *x = dvt_ones(DVT_SHAPE(1, 4, 5), DVT_F32, ctx), *ints;
    dvt_array *w = dvt_ones(DVT_SHAPE(4, 4, 3), DVT_F32, ctx);
    dvt_array *image = dvt_ones(DVT_SHAPE(1, 4, 5, 5), DVT_F32, ctx);
    dvt_array *kernel = dvt_ones(DVT_SHAPE(4, 2, 3, 3), DVT_F32, ctx);
    dvt_conv1d_options p = options1d(-1, 0, 0, 0);
    dvt_conv2d_transpose_options t;
    memset(&t, 0, sizeof t);
    CHECK_SAYS(dvt_conv1d(NULL, w, NULL, NULL), DVT_ERR_NULL_ARGUMENT, "dvt_conv1d: x is NULL");
    CHECK_SAYS(dvt_conv1d(image, w, NULL, NULL), DVT_ERR_SHAPE,
               "dvt_conv1d: x is float32 (1, 4, 5, 5)");
    CHECK_SAYS(dvt_conv1d(x, kernel, NULL, NULL), DVT_ERR_SHAPE, "(batch, channels, width)");
    CHECK_SAYS(dvt_conv2d(x, w, NULL, NULL), DVT_ERR_SHAPE, "dvt_conv2d: x is float32 (1, 4, 5)");
    CHECK_SAYS(dvt_conv1d(x, w, NULL, &p), DVT_ERR_RANGE, "dvt_conv1d: stride is -1");
    p = options1d(0, 0, 4, 0);
    CHECK_SAYS(dvt_conv1d(x, w, NULL, &p), DVT_ERR_SHAPE, "dvt_conv1d: the window spans a width");
    p = options1d(0, 0, 0, 2);
    CHECK_SAYS(dvt_conv1d(x, w, NULL, &p), DVT_ERR_SHAPE, "w is float32 (4, 4, 3)");
    CHECK_SAYS(dvt_conv1d(x, w, x, NULL), DVT_ERR_SHAPE, "dvt_conv1d: bias is");
    ints = dvt_astype(x, DVT_I32);
    CHECK_SAYS(dvt_conv1d(ints, w, NULL, NULL), DVT_ERR_DTYPE, "dvt_conv1d: x is int32");
    CHECK_SAYS(dvt_conv2d_transpose(x, w, NULL, NULL), DVT_ERR_SHAPE,
               "w (channels in, channels out / groups, height, width)");
    CHECK_SAYS(dvt_conv1d_transpose(image, w, NULL, NULL), DVT_ERR_SHAPE,
               "dvt_conv1d_transpose: x is");
    t.output_padding[0] = 1;
    CHECK_SAYS(dvt_conv2d_transpose(image, kernel, NULL, &t), DVT_ERR_RANGE,
               "dvt_conv2d_transpose: along the height, output_padding is 1 and stride 1");
    memset(&t, 0, sizeof t);
    t.conv.padding[0] = 4;
    CHECK_SAYS(dvt_conv2d_transpose(image, kernel, NULL, &t), DVT_ERR_SHAPE, "use less padding");
    t.conv.padding[0] = 0;
    t.conv.groups = 3;
    CHECK_SAYS(dvt_conv2d_transpose(image, kernel, NULL, &t), DVT_ERR_SHAPE, "groups (3) divide");
    CHECK_SAYS(dvt_conv2d_transpose(image, kernel, x, NULL), DVT_ERR_SHAPE,
               "; expected shape (2,), one value per channel of the result");
}

DVT_TEST(resize_errors) {
    dvt_array *x = dvt_ones(DVT_SHAPE(1, 2, 4), DVT_F32, dvt_test_ctx());
    dvt_array *image = dvt_expand_dims(x, 0);
    dvt_pool1d_options p = pool1d(0, 0, 0);
    dvt_upsample2d_options u;
    memset(&u, 0, sizeof u);
    CHECK_SAYS(dvt_max_pool1d(x, &p), DVT_ERR_RANGE, "dvt_max_pool1d: along the");
    p = pool1d(2, -1, 0);
    CHECK_SAYS(dvt_avg_pool1d(x, &p), DVT_ERR_RANGE, "dvt_avg_pool1d: along the width");
    p = pool1d(5, 0, 0);
    CHECK_SAYS(dvt_max_pool1d(x, &p), DVT_ERR_SHAPE, "dvt_max_pool1d: x has a width of 4");
    CHECK_SAYS(dvt_max_pool1d(image, &p), DVT_ERR_SHAPE, "(batch, channels, width)");
    CHECK_SAYS(dvt_max_pool1d(x, NULL), DVT_ERR_NULL_ARGUMENT, "dvt_max_pool1d: p is NULL");
    CHECK_SAYS(dvt_upsample2d(image, &u), DVT_ERR_RANGE, "expected one of them, positive");
    u.scale[0] = u.size[0] = 2;
    CHECK_SAYS(dvt_upsample2d(image, &u), DVT_ERR_RANGE, "dvt_upsample2d: scale is (2, 2)");
    u.size[0] = 0;
    CHECK_SAYS(dvt_upsample2d(x, &u), DVT_ERR_SHAPE, "dvt_upsample2d: x is");
    CHECK_SAYS(dvt_upsample2d(NULL, &u), DVT_ERR_NULL_ARGUMENT, "dvt_upsample2d: x is NULL");
    CHECK_SAYS(dvt_adaptive_avg_pool2d(image, 0, 1), DVT_ERR_RANGE,
               "dvt_adaptive_avg_pool2d: the result would be 0 x 1");
}

/* ---- blocks ---- */
#if !defined(DEVTENSOR_NO_NN)
static void check_text(dvt_block *block, const char *expected) {
    char text[300];
    dvt_block_format(block, text, sizeof text);
    CHECK_STR(text, expected);
}

static dvt_array *forward(dvt_block *block, dvt_array *x) {
    CHECK_INT(dvt_block_initialize(block, dvt_init_xavier(), DVT_CONTEXTS(dvt_ctx_of(x))), DVT_OK);
    return dvt_block_forward(block, x);
}

static dvt_array *own(dvt_block *block, const char *name) {
    return dvt_block_data(block, name, dvt_test_ctx());
}

DVT_TEST(conv_more_blocks) {
    dvt_array *x = golden_wave(DVT_SHAPE(2, 4, 5, 5), 1, DVT_F32, dvt_test_ctx()), *y;
    dvt_array *row = golden_wave(DVT_SHAPE(2, 4, 6), 1, DVT_F32, dvt_test_ctx());
    dvt_nn_conv2d_transpose_desc desc;
    dvt_nn_conv1d_desc line;
    dvt_conv1d_transpose_options t;
    dvt_block *block = dvt_nn_conv1d(3, 2, DVT_RELU);
    check_text(block, "Conv1D(None -> 3, kernel_size=(2,), stride=(1,), Activation(relu))");
    y = forward(block, row);
    CHECK(dvt_array_equal(y,
                          dvt_relu(dvt_conv1d(row, own(block, "weight"), own(block, "bias"), NULL)),
                          DVT_NAN_DIFFERS));
    check_text(block, "Conv1D(4 -> 3, kernel_size=(2,), stride=(1,), Activation(relu))");
    CHECK(strstr(dvt_param_name(dvt_block_param(block, "weight")), "conv") != NULL);
    memset(&desc, 0, sizeof desc);
    desc.channels = 6;
    desc.kernel[0] = 3;
    desc.options = transpose_all();
    desc.no_bias = true;
    desc.activation = DVT_RELU;
    block = dvt_nn_conv2d_transpose_with(&desc);
    y = forward(block, x);
    CHECK(
        dvt_shape_equal(dvt_param_shape(dvt_block_param(block, "weight")), DVT_SHAPE(4, 3, 3, 3)));
    CHECK(dvt_array_equal(
        y, dvt_relu(dvt_conv2d_transpose(x, own(block, "weight"), NULL, &desc.options)),
        DVT_NAN_DIFFERS));
    check_text(block, "Conv2DTranspose(4 -> 6, kernel_size=(3, 3), stride=(3, 2), padding=(1, 2), "
                      "dilation=(1, 2), output_padding=(2, 1), groups=2, bias=False, "
                      "Activation(relu))");
    check_text(dvt_nn_conv2d_transpose(8, 2, 2, DVT_IDENTITY),
               "Conv2DTranspose(None -> 8, kernel_size=(2, 2), stride=(2, 2))");
    memset(&line, 0, sizeof line);
    line.channels = 2;
    line.kernel = 3;
    line.options = options1d(2, 1, 0, 0);
    line.output_padding = 1;
    line.activation = DVT_TANH;
    block = dvt_nn_conv1d_transpose_with(&line);
    y = forward(block, row);
    t.conv = line.options;
    t.output_padding = 1;
    CHECK(dvt_array_equal(
        y, dvt_tanh(dvt_conv1d_transpose(row, own(block, "weight"), own(block, "bias"), &t)),
        DVT_NAN_DIFFERS));
    check_text(block, "Conv1DTranspose(4 -> 2, kernel_size=(3,), stride=(2,), padding=(1,), "
                      "output_padding=(1,), Activation(tanh))");
    check_text(dvt_nn_conv1d_transpose(2, 4, 2, DVT_IDENTITY),
               "Conv1DTranspose(None -> 2, kernel_size=(4,), stride=(2,))");
    line.output_padding = 0;
    line.in_channels = 4;
    check_text(dvt_nn_conv1d_with(&line), "Conv1D(4 -> 2, kernel_size=(3,), stride=(2,), "
                                          "padding=(1,), Activation(tanh))");
}

DVT_TEST(resize_blocks) {
    dvt_array *x = golden_wave(DVT_SHAPE(1, 2, 4, 6), 1, DVT_F32, dvt_test_ctx());
    dvt_array *row = golden_wave(DVT_SHAPE(1, 2, 6), 1, DVT_F32, dvt_test_ctx());
    dvt_upsample2d_options p;
    dvt_pool1d_options pool = pool1d(3, 2, 0);
    memset(&p, 0, sizeof p);
    p.scale[0] = 2;
    CHECK(dvt_array_equal(forward(dvt_nn_upsample2d(2, false), x), dvt_upsample2d(x, &p),
                          DVT_NAN_DIFFERS));
    p.bilinear = p.align_corners = true;
    CHECK(dvt_array_equal(forward(dvt_nn_upsample2d_with(&p), x), dvt_upsample2d(x, &p),
                          DVT_NAN_DIFFERS));
    CHECK(dvt_array_equal(forward(dvt_nn_max_pool1d(3, 2), row), dvt_max_pool1d(row, &pool),
                          DVT_NAN_DIFFERS));
    CHECK(dvt_array_equal(forward(dvt_nn_avg_pool1d(3, 2), row), dvt_avg_pool1d(row, &pool),
                          DVT_NAN_DIFFERS));
    CHECK(dvt_allclose(forward(dvt_nn_global_avg_pool1d(), row), dvt_mean(row, DVT_KEEPDIMS(2)),
                       1e-6, 1e-6, DVT_NAN_DIFFERS));
    CHECK(dvt_array_equal(forward(dvt_nn_adaptive_avg_pool2d(2, 4), x),
                          dvt_adaptive_avg_pool2d(x, 2, 4), DVT_NAN_DIFFERS));
    check_text(dvt_nn_upsample2d(2, false), "UpSampling2D(scale=(2, 2), mode=nearest)");
    check_text(dvt_nn_upsample2d_with(&p),
               "UpSampling2D(scale=(2, 2), mode=bilinear, align_corners=True)");
    p.scale[0] = 0;
    p.size[0] = 5;
    check_text(dvt_nn_upsample2d_with(&p),
               "UpSampling2D(size=(5, 5), mode=bilinear, align_corners=True)");
    check_text(dvt_nn_adaptive_avg_pool2d(2, 4), "AdaptiveAvgPool2D(output_size=(2, 4))");
    check_text(dvt_nn_max_pool1d(3, 2),
               "MaxPool1D(size=(3,), stride=(2,), padding=(0,), ceil_mode=False, "
               "global_pool=False, pool_type=max, layout=NCW)");
    check_text(dvt_nn_avg_pool1d(3, 0),
               "AvgPool1D(size=(3,), stride=(3,), padding=(0,), ceil_mode=False, "
               "global_pool=False, pool_type=avg, layout=NCW)");
    check_text(dvt_nn_global_avg_pool1d(),
               "GlobalAvgPool1D(size=(1,), stride=(1,), padding=(0,), ceil_mode=True, "
               "global_pool=True, pool_type=avg, layout=NCW)");
}

DVT_TEST(conv_more_blocks_errors) {
    dvt_nn_conv1d_desc line;
    dvt_nn_conv2d_transpose_desc desc;
    dvt_upsample2d_options p;
    dvt_block *block = dvt_nn_conv2d_transpose(4, 3, 2, DVT_IDENTITY);
    memset(&line, 0, sizeof line);
    memset(&desc, 0, sizeof desc);
    memset(&p, 0, sizeof p);
    line.channels = 2;
    line.kernel = 3;
    line.output_padding = 1;
    CHECK_SAYS(dvt_nn_conv1d(4, 0, DVT_RELU), DVT_ERR_RANGE, "dvt_nn_conv1d: kernel is (0, 0)");
    CHECK_SAYS(dvt_nn_conv1d_with(&line), DVT_ERR_RANGE, "only transposed convolutions have one");
    CHECK_SAYS(dvt_nn_conv1d_transpose_with(&line), DVT_ERR_RANGE,
               "dvt_nn_conv1d_transpose_with: output_padding is (0, 1) and stride (1, 1)");
    CHECK_SAYS(dvt_nn_conv1d_with(NULL), DVT_ERR_NULL_ARGUMENT, "desc is NULL");
    CHECK_SAYS(dvt_nn_conv2d_transpose_with(NULL), DVT_ERR_NULL_ARGUMENT, "desc is NULL");
    CHECK_SAYS(dvt_nn_conv2d_transpose_with(&desc), DVT_ERR_RANGE,
               "dvt_nn_conv2d_transpose_with: kernel is (0, 0)");
    CHECK_SAYS(dvt_nn_max_pool1d(0, 1), DVT_ERR_RANGE, "dvt_nn_max_pool1d: size is (0, 0)");
    CHECK_SAYS(dvt_nn_upsample2d(0, true), DVT_ERR_RANGE, "dvt_nn_upsample2d: scale is (0, 0)");
    p.size[0] = -1;
    CHECK_SAYS(dvt_nn_upsample2d_with(&p), DVT_ERR_RANGE, "size (-1, -1)");
    CHECK_SAYS(dvt_nn_upsample2d_with(NULL), DVT_ERR_NULL_ARGUMENT, "p is NULL");
    CHECK_SAYS(dvt_nn_adaptive_avg_pool2d(1, 0), DVT_ERR_RANGE,
               "dvt_nn_adaptive_avg_pool2d: the result would be 1 x 0");
    CHECK_SAYS(forward(block, dvt_ones(DVT_SHAPE(2, 4, 5), DVT_F32, dvt_test_ctx())), DVT_ERR_SHAPE,
               "in_channels cannot be inferred from x float32 (2, 4, 5)");
    dvt_block_forward(block, dvt_ones(DVT_SHAPE(2, 4, 5, 5), DVT_F32, dvt_test_ctx()));
    CHECK_SAYS(dvt_block_forward(block, dvt_ones(DVT_SHAPE(2, 3, 5, 5), DVT_F32, dvt_test_ctx())),
               DVT_ERR_SHAPE, "expected (batch, 4, height, width): reshape it");
    CHECK_SAYS(dvt_block_forward(block, dvt_ones(DVT_SHAPE(2, 5, 6, 4), DVT_F32, dvt_test_ctx())),
               DVT_ERR_SHAPE,
               "expected (batch, 4, height, width): transpose it with dvt_transpose, or");
    CHECK_SAYS(dvt_block_forward(block, dvt_ones(DVT_SHAPE(2, 5, 4), DVT_F32, dvt_test_ctx())),
               DVT_ERR_SHAPE, "expected (batch, 4, height, width): reshape it");
    block = dvt_nn_conv1d(3, 3, DVT_IDENTITY);
    forward(block, dvt_ones(DVT_SHAPE(2, 4, 5), DVT_F32, dvt_test_ctx()));
    CHECK_SAYS(dvt_block_forward(block, dvt_ones(DVT_SHAPE(2, 5, 4), DVT_F32, dvt_test_ctx())),
               DVT_ERR_SHAPE, "expected (batch, 4, width): transpose it with dvt_transpose, or");
}

/* Names in files do not depend on the kind of convolution. */
#if !defined(DEVTENSOR_NO_FILES)
DVT_TEST(conv_more_blocks_save_and_load) {
    const char *path = "build/conv_more.safetensors";
    dvt_block *net = dvt_nn_sequential(), *again = dvt_nn_sequential();
    dvt_array *x = golden_wave(DVT_SHAPE(1, 2, 4, 4), 1, DVT_F32, dvt_test_ctx()), *y;
    dvt_array_list *file;
    DVT_NN_ADD(net, dvt_nn_conv2d_transpose(4, 2, 2, DVT_IDENTITY), dvt_nn_group_norm(2),
               dvt_nn_prelu(4));
    DVT_NN_ADD(again, dvt_nn_conv2d_transpose(4, 2, 2, DVT_IDENTITY), dvt_nn_group_norm(2),
               dvt_nn_prelu(4));
    y = forward(net, x);
    CHECK_INT(dvt_block_save(net, path), DVT_OK);
    file = dvt_load_arrays(path, dvt_cpu());
    CHECK(file && dvt_array_list_find(file, "0.weight") && dvt_array_list_find(file, "1.gamma") &&
          dvt_array_list_find(file, "2.alpha"));
    CHECK_INT(dvt_block_load(again, path, DVT_CONTEXTS(dvt_test_ctx())), DVT_OK);
    CHECK(dvt_array_equal(dvt_block_forward(again, x), y, DVT_NAN_DIFFERS));
    remove(path);
}
#endif
#endif
