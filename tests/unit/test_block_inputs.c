/* Tests of inputs that a block refuses: the error names the block and what it expected. A refused
   input leaves unknown shapes unknown. */
#include "../dvt_test.h"
#if !defined(DEVTENSOR_NO_NN)

static dvt_array *ones(dvt_shape shape) {
    return dvt_ones(shape, DVT_F32, dvt_test_ctx());
}

static void initialize(dvt_block *net) {
    CHECK_INT(dvt_block_initialize(net, dvt_init_one(), DVT_CONTEXTS(dvt_test_ctx())), DVT_OK);
}

/* Checks that the call fails with all of these texts in its message. */
static void check_error(dvt_block *net, dvt_array *x, dvt_status status, const char *a,
                        const char *b) {
    dvt_clear_error();
    CHECK(dvt_block_forward(net, x) == NULL);
    CHECK_INT(dvt_error_code(), status);
    CHECK(strncmp(dvt_error(), "dvt_block_forward: ", 13) == 0);
    if (!strstr(dvt_error(), a) || !strstr(dvt_error(), b))
        CHECK_STR(dvt_error(), a);
    dvt_clear_error();
}

/* ---- shapes that are not known yet ---- */
/* Checks that x is refused and leaves the shape of the parameter unknown; `good` then sets it. */
static void check_deferred(dvt_block *block, const char *name, dvt_array *x, dvt_status status,
                           const char *expected, dvt_array *good) {
    dvt_param *p = dvt_block_param(block, name);
    dvt_shape before = dvt_param_shape(p);
    initialize(block);
    check_error(block, x, status, expected, dvt_block_kind(block));
    CHECK(dvt_shape_equal(dvt_param_shape(p), before));
    CHECK_ERROR(dvt_param_data(p, dvt_test_ctx()), DVT_ERR_UNINITIALIZED);
    CHECK(dvt_block_forward(block, good) != NULL);
    CHECK(dvt_shape_size(dvt_param_shape(p)) > 0);
}

static dvt_block *dense_last_axis(void) {
    dvt_nn_dense_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.units = 3;
    desc.no_flatten = true;
    return dvt_nn_dense_with(&desc);
}

DVT_TEST(block_inputs_refused_by_dense_leave_shapes_unknown) {
    dvt_array *scalar = dvt_scalar(2, DVT_F32, dvt_test_ctx());
    dvt_array *good = ones(DVT_SHAPE(2, 4));
    check_deferred(dvt_nn_dense(3, DVT_IDENTITY), "weight", scalar, DVT_ERR_SHAPE, "float32 ()",
                   good);
    check_deferred(dvt_nn_dense(3, DVT_IDENTITY), "weight", scalar, DVT_ERR_SHAPE,
                   "expected (batch, features)", good);
    check_deferred(dvt_nn_dense(3, DVT_IDENTITY), "weight", ones(DVT_SHAPE(2, 0)), DVT_ERR_SHAPE,
                   "at least one element per row", good);
    check_deferred(dense_last_axis(), "weight", scalar, DVT_ERR_SHAPE, "(..., features)", good);
    /* One axis is a batch of scalars. */
    check_deferred(dvt_nn_dense(3, DVT_IDENTITY), "weight", scalar, DVT_ERR_SHAPE, "(None -> 3",
                   ones(DVT_SHAPE(5)));
}

DVT_TEST(block_inputs_refused_by_conv_leave_shapes_unknown) {
    dvt_array *good = ones(DVT_SHAPE(1, 2, 6, 6));
    dvt_shape wrong[4];
    int i;
    wrong[0] = DVT_SCALAR;
    wrong[1] = DVT_SHAPE(4, 6);
    wrong[2] = DVT_SHAPE(2, 6, 6);
    wrong[3] = DVT_SHAPE(1, 0, 6, 6);
    for (i = 0; i < 4; i++)
        check_deferred(dvt_nn_conv2d(3, 5, DVT_RELU), "weight", ones(wrong[i]), DVT_ERR_SHAPE,
                       "expected (batch, channels, height, width)", good);
    /* Shapes that only the convolution itself refuses. */
    check_deferred(dvt_nn_conv2d(3, 5, DVT_RELU), "weight", ones(DVT_SHAPE(1, 7, 4, 4)),
                   DVT_ERR_SHAPE, "kernel 5", good);
    check_deferred(dvt_nn_conv2d(3, 5, DVT_RELU), "weight",
                   dvt_ones(DVT_SHAPE(1, 7, 6, 6), DVT_I32, dvt_test_ctx()), DVT_ERR_DTYPE,
                   "expected floats", good);
}

DVT_TEST(block_inputs_refused_by_norms_leave_shapes_unknown) {
    dvt_array *scalar = dvt_scalar(2, DVT_F32, dvt_test_ctx()), *good = ones(DVT_SHAPE(2, 4));
    const char *names[] = {"gamma", "beta", "running_mean", "running_var"};
    int i;
    for (i = 0; i < 4; i++) {
        check_deferred(dvt_nn_batch_norm(), names[i], scalar, DVT_ERR_AXIS, "axis 1", good);
        check_deferred(dvt_nn_batch_norm(), names[i], ones(DVT_SHAPE(3)), DVT_ERR_AXIS, "axis 1",
                       good);
        check_deferred(dvt_nn_batch_norm(), names[i],
                       dvt_ones(DVT_SHAPE(2, 7), DVT_I64, dvt_test_ctx()), DVT_ERR_DTYPE,
                       "dvt_astype", good);
    }
    for (i = 0; i < 2; i++) {
        check_deferred(dvt_nn_layer_norm(), names[i], scalar, DVT_ERR_SHAPE, "last axis", good);
        check_deferred(dvt_nn_layer_norm(), names[i], ones(DVT_SHAPE(3, 0)), DVT_ERR_SHAPE,
                       "last axis", good);
    }
}

/* The table of an embedding has a known shape, so indices may have any shape, and may be a
   scalar. */
DVT_TEST(block_inputs_of_an_embedding) {
    dvt_block *e = dvt_nn_embedding(4, 3);
    initialize(e);
    dvt_params_reset_ctx(dvt_block_collect_params(e, NULL), DVT_CONTEXTS(dvt_cpu()));
    CHECK_INT(dvt_dim(dvt_block_forward(e, dvt_scalar(2, DVT_I64, dvt_cpu())), 0), 3);
    check_error(e, dvt_scalar(4, DVT_I64, dvt_cpu()), DVT_ERR_RANGE, "Embedding(4 -> 3, float32)",
                "index 4");
}

/* On a GPU the library reads nothing back to check indices: it uses the nearest row and the nearest
   class. */
DVT_TEST(block_inputs_out_of_range_on_a_gpu) {
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    DVT_SCOPE {
        dvt_block *e = dvt_nn_embedding(3, 2);
        dvt_array *table =
            dvt_reshape(dvt_arange(0, 6, 1, DVT_F32, dvt_test_ctx()), DVT_SHAPE(3, 2));
        dvt_array *numbers = DVT_ARRAY(int64_t, DVT_SHAPE(3), dvt_gpu(0), 7, -9, -1), *p, *hot;
        CHECK_INT(dvt_block_initialize(e, dvt_init_one(), DVT_CONTEXTS(dvt_gpu(0))), DVT_OK);
        CHECK_INT(dvt_param_set_data(dvt_block_param(e, "weight"), table), DVT_OK);
        CHECK_VALUES(dvt_block_forward(e, numbers), 0, 4, 5, 0, 1, 4, 5);
        p = dvt_block_forward(e, DVT_ARRAY(int64_t, DVT_SHAPE(1), dvt_gpu(0), 0));
        CHECK_CLOSE(dvt_item(dvt_loss_softmax_cross_entropy(
                        p, DVT_ARRAY(int64_t, DVT_SHAPE(1), dvt_gpu(0), 5))),
                    log(1 + exp(-1.0)), 1e-6);
        hot = dvt_one_hot(numbers, 2, DVT_F32);
        CHECK_VALUES(dvt_sum(hot, DVT_ALL), 0, 0);
    }
    dvt_set_virtual_gpus(0, 0);
}

/* The input is on a context without parameters. */
DVT_TEST(block_inputs_of_other_contexts_leave_shapes_unknown) {
    dvt_block *dense = dvt_nn_dense(3, DVT_IDENTITY);
    dvt_param *p = dvt_block_param(dense, "weight");
    initialize(dense);
    check_error(dense, dvt_ones(DVT_SHAPE(2, 4), DVT_F32, dvt_cpu_id(1)), DVT_ERR_CONTEXT,
                dvt_param_name(p), "dvt_as_in_ctx");
    CHECK_INT(dvt_param_shape(p).dim[1], 0);
}

/* ---- the error names the block ---- */
static dvt_array *forward_add_row(dvt_block *self, void *user, dvt_array *x) {
    (void)user;
    return dvt_add(dvt_block_forward(dvt_block_at(self, 0), x), ones(DVT_SHAPE(3)));
}

static dvt_array *forward_nothing(dvt_block *self, void *user, dvt_array *x) {
    (void)self;
    (void)user;
    (void)x;
    return NULL;
}

/* Describes a block that has no such child, and fails. The earlier error must remain the first
   one. */
static size_t describe_and_fail(const dvt_block *self, void *user, char *buffer, size_t size) {
    (void)user;
    dvt_block_at((dvt_block *)self, 7);
    return (size_t)snprintf(buffer, size, "Bad");
}

static dvt_status infer_fails_silently(dvt_block *self, void *user, dvt_array *x) {
    (void)self;
    (void)user;
    (void)x;
    return DVT_ERR_SHAPE;
}

static void check_names_layer(dvt_block *net, int i, dvt_array *x, const char *text) {
    char name[80], *end;
    dvt_block *layer = dvt_block_at(net, i);
    snprintf(name, sizeof name, "dvt_block_forward: %s",
             dvt_param_name(dvt_block_param(layer, "weight")));
    end = strrchr(name, '_');
    snprintf(end, 3, " (");
    check_error(net, x, DVT_ERR_SHAPE, name, text);
}

DVT_TEST(block_inputs_errors_name_the_layer) {
    dvt_block *net = dvt_nn_sequential();
    DVT_NN_ADD(net, dvt_nn_dense(84, DVT_RELU), dvt_nn_dense(10, DVT_IDENTITY),
               dvt_nn_conv2d(6, 5, DVT_RELU), dense_last_axis());
    initialize(net);
    CHECK(dvt_block_forward(dvt_block_at(net, 0), ones(DVT_SHAPE(2, 20))) != NULL);
    CHECK(dvt_block_forward(dvt_block_at(net, 1), ones(DVT_SHAPE(2, 84))) != NULL);
    CHECK(dvt_block_forward(dvt_block_at(net, 2), ones(DVT_SHAPE(2, 1, 8, 8))) != NULL);
    CHECK(dvt_block_forward(dvt_block_at(net, 3), ones(DVT_SHAPE(2, 7))) != NULL);
    check_names_layer(net, 0, ones(DVT_SHAPE(256, 80)),
                      "(Dense(20 -> 84, Activation(relu))): x is float32 (256, 80)");
    check_names_layer(net, 0, ones(DVT_SHAPE(256, 4, 4)), "expected (batch, 20)");
    check_error(dvt_block_at(net, 1), ones(DVT_SHAPE(256, 80)), DVT_ERR_SHAPE,
                "(Dense(84 -> 10, linear)): x is float32 (256, 80)", "expected (batch, 84)");
    check_error(dvt_block_at(net, 1), dvt_scalar(1, DVT_F32, dvt_test_ctx()), DVT_ERR_SHAPE,
                "float32 ()", "expected (batch, 84)");
    check_error(dvt_block_at(net, 2), ones(DVT_SHAPE(2, 3, 8, 8)), DVT_ERR_SHAPE, "Conv2D(1 -> 6",
                "expected (batch, 1, height, width)");
    check_error(dvt_block_at(net, 2), ones(DVT_SHAPE(2, 1, 8)), DVT_ERR_SHAPE, "Conv2D(1 -> 6",
                "(batch, 1, height, width)");
    check_error(dvt_block_at(net, 2), ones(DVT_SHAPE(2, 1, 4, 4)), DVT_ERR_SHAPE, "Conv2D(1 -> 6",
                "dvt_conv2d: the window spans");
    check_error(dvt_block_at(net, 3), ones(DVT_SHAPE(2, 5, 6)), DVT_ERR_SHAPE, "(7 -> 3",
                "expected (..., 7)");
    /* The settings identify a block without a number and without parameters. */
    check_error(dvt_nn_max_pool2d(3, 2), ones(DVT_SHAPE(1, 1, 2, 2)), DVT_ERR_SHAPE,
                "dvt_block_forward: MaxPool2D(size=(3, 3)", "dvt_max_pool2d: ");
}

DVT_TEST(block_inputs_errors_name_norms) {
    dvt_block *net = dvt_nn_sequential();
    DVT_NN_ADD(net, dvt_nn_batch_norm(), dvt_nn_layer_norm());
    initialize(net);
    CHECK(dvt_block_forward(net, ones(DVT_SHAPE(2, 5))) != NULL);
    check_error(net, ones(DVT_SHAPE(2, 4)), DVT_ERR_SHAPE, "BatchNorm(axis=1",
                "expected an extent of 5 on axis 1");
    check_error(net, ones(DVT_SHAPE(5)), DVT_ERR_AXIS, "BatchNorm(axis=1",
                "expected an extent of 5 on axis 1");
    check_error(dvt_block_at(net, 1), ones(DVT_SHAPE(5, 4)), DVT_ERR_SHAPE, "LayerNorm(",
                "expected (..., 5)");
    check_error(dvt_block_at(net, 1), dvt_scalar(1, DVT_F32, dvt_test_ctx()), DVT_ERR_SHAPE,
                "LayerNorm(", "float32 ()");
}

DVT_TEST(block_inputs_errors_name_custom_blocks) {
    dvt_block_desc desc;
    dvt_block *outer, *net = dvt_nn_sequential();
    memset(&desc, 0, sizeof desc);
    desc.kind = "AddRow";
    desc.forward = forward_add_row;
    outer = dvt_block_new(&desc);
    dvt_block_add_child(outer, dvt_nn_dense(4, DVT_IDENTITY));
    DVT_NN_ADD(net, outer);
    initialize(net);
    /* The inner block has returned when the addition fails. */
    check_error(net, ones(DVT_SHAPE(2, 6)), DVT_ERR_SHAPE, "(AddRow): dvt_add: ", "(2, 4)");
    /* The message names the inner block, not the outer one. */
    CHECK(dvt_block_forward(net, ones(DVT_SHAPE(2, 5))) == NULL);
    CHECK(strstr(dvt_error(), "dvt_block_forward: dense") && !strstr(dvt_error(), "AddRow"));
    /* Later errors do not mention the block. */
    dvt_clear_error();
    dvt_add(ones(DVT_SHAPE(2)), ones(DVT_SHAPE(3)));
    CHECK(strncmp(dvt_error(), "dvt_add: ", 9) == 0);
    dvt_clear_error();
    desc.forward = forward_nothing;
    desc.kind = "Nothing";
    check_error(dvt_block_new(&desc), ones(DVT_SHAPE(2)), DVT_ERR_VALUE,
                "dvt_block_forward: Nothing: ", "without an error");
    desc.describe = describe_and_fail;
    check_error(dvt_block_new(&desc), ones(DVT_SHAPE(2)), DVT_ERR_VALUE,
                "dvt_block_forward: Bad: ", "without an error");
    desc.describe = NULL;
    desc.kind = "NoInfer";
    outer = dvt_block_new(&desc);
    dvt_block_add_param(outer, "weight", DVT_SHAPE(0), DVT_F32, dvt_init_one());
    initialize(outer);
    check_error(outer, ones(DVT_SHAPE(2)), DVT_ERR_UNINITIALIZED, "noinfer",
                "Cannot initialize Parameter");
    desc.describe = describe_and_fail;
    desc.infer = infer_fails_silently;
    outer = dvt_block_new(&desc);
    dvt_block_add_param(outer, "weight", DVT_SHAPE(0), DVT_F32, dvt_init_one());
    initialize(outer);
    check_error(outer, ones(DVT_SHAPE(2)), DVT_ERR_SHAPE, "Bad: the infer function failed",
                "float32 (2,)");
}

/* Errors before the first forward has set the values of the parameters. */
DVT_TEST(block_inputs_errors_of_deferred_parameters) {
    CHECK_INT(dvt_set_virtual_gpus(2, 100000), DVT_OK);
    DVT_SCOPE {
        dvt_block *net = dvt_nn_dense(300, DVT_IDENTITY);
        CHECK_INT(dvt_block_initialize(net, dvt_init_one(), DVT_CONTEXTS(dvt_gpu(0))), DVT_OK);
        check_error(net, dvt_ones(DVT_SHAPE(1, 3), DVT_F32, dvt_gpu(1)), DVT_ERR_CONTEXT,
                    " (Dense(None -> 300, linear)): dvt_param_data: Parameter 'dense",
                    "was not initialized on context gpu(1)");
        check_error(net, dvt_ones(DVT_SHAPE(1, 300), DVT_F32, dvt_gpu(0)), DVT_ERR_DEVICE_MEMORY,
                    " (Dense(300 -> 300, linear)): dvt_copyto: ", "360000 bytes");
        /* Errors after the call do not mention the block. */
        CHECK(dvt_add(ones(DVT_SHAPE(2)), ones(DVT_SHAPE(3))) == NULL);
        CHECK(strncmp(dvt_error(), "dvt_add: ", 9) == 0);
        dvt_clear_error();
    }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}
#endif
