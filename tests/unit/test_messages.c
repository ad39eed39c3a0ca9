/* Tests of error messages: they name the called function and the arguments, and state bounds that
   exist. */
#include "parameter_files.h"

/* Checks that the latest call failed with that status, and that the message begins and continues
   so; NULL matches anything. */
static void check_message(dvt_status status, const char *begin, const char *a, const char *b) {
    const char *text = dvt_error();
    CHECK_INT(dvt_error_code(), status);
    if (strncmp(text, begin, strlen(begin)) != 0 || (a && !strstr(text, a)) ||
        (b && !strstr(text, b))) {
        CHECK_STR(text, begin);
        CHECK(!a || strstr(text, a));
        CHECK(!b || strstr(text, b));
    }
    dvt_clear_error();
}

static dvt_array *here(dvt_shape shape) {
    return dvt_ones(shape, DVT_F32, dvt_cpu());
}

static dvt_array *there(dvt_shape shape) {
    return dvt_ones(shape, DVT_F32, dvt_cpu_id(1));
}

/* Mixed contexts: the message names both arguments and a fix that compiles. */
#define CHECK_MIXED(call, function, first, second)                                                 \
    do {                                                                                           \
        dvt_clear_error();                                                                         \
        (void)(call);                                                                              \
        check_message(DVT_ERR_CONTEXT, function ": ", ", but " first " is ",                       \
                      "dvt_as_in_ctx(" second ", dvt_cpu())");                                     \
    } while (0)

DVT_TEST(messages_name_arguments_of_operations) {
    dvt_array *x = here(DVT_SHAPE(2, 2)), *y = there(DVT_SHAPE(2, 2)), *v = here(DVT_SHAPE(2));
    dvt_array *image = here(DVT_SHAPE(1, 1, 4, 4)), *kernel = there(DVT_SHAPE(1, 1, 2, 2));
    dvt_array *index = dvt_zeros(DVT_SHAPE(2), DVT_I64, dvt_cpu_id(1));
    CHECK_MIXED(dvt_add(x, y), "dvt_add", "a", "b");
    CHECK_MIXED(dvt_where(x, x, y), "dvt_where", "condition", "b");
    CHECK_MIXED(dvt_linear(x, y, NULL), "dvt_linear", "x", "w");
    CHECK_MIXED(dvt_linear(x, x, there(DVT_SHAPE(2))), "dvt_linear", "x", "bias");
    CHECK_MIXED(dvt_conv2d(image, kernel, NULL, NULL), "dvt_conv2d", "x", "w");
    CHECK_MIXED(dvt_take(x, index, 0), "dvt_take", "x", "indices");
    CHECK_MIXED(dvt_take_along_axis(x, index, 0), "dvt_take_along_axis", "x", "indices");
    CHECK_MIXED(dvt_pick(x, index, DVT_AXES(0)), "dvt_pick", "x", "indices");
    CHECK_MIXED(dvt_layer_norm(x, NULL, there(DVT_SHAPE(2)), 1e-5), "dvt_layer_norm", "x", "beta");
    CHECK_MIXED(dvt_layer_norm(x, v, there(DVT_SHAPE(2)), 1e-5), "dvt_layer_norm", "x", "beta");
    CHECK_MIXED(dvt_batch_norm(x, v, v, v, there(DVT_SHAPE(2)), 1, 0.9, 1e-5), "dvt_batch_norm",
                "x", "running_var");
    dvt_layer_norm(x, NULL, here(DVT_SHAPE(3)), 1e-5);
    check_message(DVT_ERR_SHAPE, "dvt_layer_norm: beta is ", "(2,)", NULL);
    dvt_copy_into(NULL, x);
    check_message(DVT_ERR_NULL_ARGUMENT, "dvt_copy_into: dst is NULL", NULL, NULL);
    dvt_copy_into(x, NULL);
    check_message(DVT_ERR_NULL_ARGUMENT, "dvt_copy_into: src is NULL", NULL, NULL);
    dvt_take(x, NULL, 0);
    check_message(DVT_ERR_NULL_ARGUMENT, "dvt_take: indices is NULL", NULL, NULL);
}

DVT_TEST(messages_number_joined_arrays) {
    dvt_array *list[3];
    int k;
    for (k = 1; k < 3; k++) {
        list[0] = list[1] = list[2] = here(DVT_SHAPE(2));
        list[k] = there(DVT_SHAPE(2));
        dvt_concat(list, 3, 0);
        check_message(DVT_ERR_CONTEXT, "dvt_concat: ", "but array 0 is ",
                      k == 1 ? "dvt_as_in_ctx(arrays[1], " : "dvt_as_in_ctx(arrays[2], ");
        dvt_stack(list, k + 1, 0);
        check_message(DVT_ERR_CONTEXT, "dvt_stack: ", "but array 0 is ",
                      k == 1 ? "and array 1 is " : "and array 2 is ");
        list[k] = NULL;
        dvt_concat(list, 3, 0);
        check_message(DVT_ERR_NULL_ARGUMENT,
                      k == 1 ? "dvt_concat: array 1 is NULL" : "dvt_concat: array 2 is NULL", NULL,
                      NULL);
    }
    list[0] = NULL;
    dvt_stack(list, 1, 0);
    check_message(DVT_ERR_NULL_ARGUMENT, "dvt_stack: array 0 is NULL", NULL, NULL);
}

/* The message never says "expected 0 to -1". */
DVT_TEST(messages_of_joined_arrays_name_the_axis) {
    dvt_array *list[3];
    list[0] = list[1] = here(DVT_SHAPE(2, 3, 4));
    list[2] = here(DVT_SHAPE(2, 5, 4));
    dvt_concat(list, 3, 0);
    check_message(DVT_ERR_SHAPE, "dvt_concat: array 2 (float32 (2, 5, 4)",
                  "differ on axis 1: 5 and 3;", "only axis 0 may differ");
    CHECK(dvt_concat(list, 3, 1) != NULL);
    dvt_concat(list, 3, -1);
    check_message(DVT_ERR_SHAPE, "dvt_concat: array 2 ", "on axis 1: 5 and 3;",
                  "only axis 2 may differ");
    dvt_stack(list, 3, 0);
    check_message(DVT_ERR_SHAPE, "dvt_stack: array 2 ", "on axis 1: 5 and 3;",
                  "expected equal shapes");
    list[1] = here(DVT_SHAPE(2, 3));
    dvt_concat(list, 3, 1);
    check_message(DVT_ERR_SHAPE, "dvt_concat: array 1 (float32 (2, 3)", "have 2 and 3 axes",
                  "and array 0 (float32 (2, 3, 4)");
}

/* Advice for arguments on a GPU names that GPU, also GPU 0. */
DVT_TEST(messages_name_the_gpu_to_copy_to) {
    dvt_array *x, *y;
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    DVT_SCOPE {
        x = here(DVT_SHAPE(2));
        y = dvt_copyto(x, dvt_gpu(0));
        dvt_add(y, x);
        check_message(DVT_ERR_CONTEXT, "dvt_add: ", "dvt_as_in_ctx(b, dvt_gpu(0))", NULL);
        dvt_add(x, y);
        check_message(DVT_ERR_CONTEXT, "dvt_add: ", "dvt_as_in_ctx(b, dvt_cpu())", NULL);
        dvt_add(dvt_copyto(x, dvt_gpu(1)), y);
        check_message(DVT_ERR_CONTEXT, "dvt_add: ", "dvt_as_in_ctx(b, dvt_gpu(1))", NULL);
        dvt_add(there(DVT_SHAPE(2)), y);
        check_message(DVT_ERR_CONTEXT, "dvt_add: ", "dvt_as_in_ctx(b, dvt_cpu_id(1))", NULL);
    }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* Out of memory: the message has the array's shape, dtype and bytes. */
DVT_TEST(messages_of_memory_say_the_shape) {
    CHECK_INT(dvt_set_virtual_gpus(1, 4096), DVT_OK);
    dvt_zeros(DVT_SHAPE(1 << 20, 1 << 30), DVT_F32, dvt_cpu());
    check_message(DVT_ERR_HOST_MEMORY, "dvt_zeros: no host memory left for an array of shape ",
                  "(1048576, 1073741824), float32,", "4503599627370496 bytes");
    dvt_ones(DVT_SHAPE(100, 20), DVT_F64, dvt_gpu(0));
    check_message(DVT_ERR_DEVICE_MEMORY, "dvt_ones: 16000 bytes wanted for an array of shape ",
                  "(100, 20), float64, on gpu(0)", "of 4096 are in use");
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
    CHECK_INT(dvt_set_memory_limit(1000, dvt_cpu_id(1)), DVT_OK);
    dvt_ones(DVT_SHAPE(7, 50), DVT_F32, dvt_cpu_id(1));
    check_message(DVT_ERR_HOST_MEMORY, "dvt_ones: 1400 bytes wanted for an array of shape ",
                  "(7, 50), float32,", NULL);
    CHECK_INT(dvt_set_memory_limit(0, dvt_cpu_id(1)), DVT_OK);
}

DVT_TEST(messages_of_empty_ranges) {
    dvt_array *empty = here(DVT_SHAPE(0, 3)), *index = dvt_zeros(DVT_SHAPE(1), DVT_I64, dvt_cpu());
    dvt_take(empty, index, 0);
    check_message(DVT_ERR_RANGE, "dvt_take: ", "extent 0", "; expected none, since it is empty");
    dvt_pick(here(DVT_SHAPE(1, 0)), index, DVT_AXES(1));
    check_message(DVT_ERR_RANGE, "dvt_pick: ", "extent 0", "; expected none, since it is empty");
    dvt_index(empty, 0);
    check_message(DVT_ERR_RANGE, "dvt_index: index 0", NULL, "; expected none, since it is empty");
    dvt_item_at(empty, DVT_SHAPE(0, 0));
    check_message(DVT_ERR_RANGE, "dvt_item_at: index 0 on axis 0", NULL,
                  "; expected none, since it is empty");
    dvt_take(here(DVT_SHAPE(4)), dvt_full(DVT_SHAPE(1), 4, DVT_I64, dvt_cpu()), 0);
    check_message(DVT_ERR_RANGE, "dvt_take: index 4", NULL, "; expected -4 to 3");
}

/* An axis that does not exist: the message describes the array and lists its axes. */
DVT_TEST(messages_of_axes) {
    dvt_array *x = here(DVT_SHAPE(2, 3)), *one = here(DVT_SHAPE(4)), *none = here(DVT_SCALAR);
    dvt_sum(x, DVT_AXES(0, 2));
    check_message(DVT_ERR_AXIS, "dvt_sum: axis 2 of float32 (2, 3) on cpu(0)", "; expected -2 to 1",
                  NULL);
    dvt_sum(x, DVT_AXES(1, -1));
    check_message(DVT_ERR_AXIS, "dvt_sum: axis -1 of float32 (2, 3)", "is named twice", NULL);
    dvt_dim(x, 7);
    check_message(DVT_ERR_AXIS, "dvt_dim: axis 7 of float32 (2, 3)", "; expected -2 to 1", NULL);
    dvt_pick(x, x, DVT_ALL);
    check_message(DVT_ERR_AXIS, "dvt_pick: 0 axes for x (float32 (2, 3)", "DVT_AXES(-1)", NULL);
    dvt_sort(one, -2, DVT_ASCENDING);
    check_message(DVT_ERR_AXIS, "dvt_sort: axis -2 of float32 (4,)", "; expected -1 to 0", NULL);
    dvt_softmax(none, 0);
    check_message(DVT_ERR_AXIS, "dvt_softmax: axis 0 of float32 ()", "no axes; reshape it", NULL);
    dvt_stack(&x, 1, 3);
    check_message(DVT_ERR_AXIS, "dvt_stack: new axis 3 of float32 (2, 3)", "; expected -3 to 2",
                  NULL);
    dvt_expand_dims(none, 1);
    check_message(DVT_ERR_AXIS, "dvt_expand_dims: new axis 1 of float32 ()", "; expected -1 to 0",
                  NULL);
}

/* The message names the argument whose gradient would be lost. */
DVT_TEST(messages_of_writing_while_recording) {
    dvt_array *w = here(DVT_SHAPE(2)), *x = here(DVT_SHAPE(2)), *y = NULL;
    CHECK(dvt_attach_grad(w, DVT_GRAD_WRITE) == DVT_OK);
    DVT_RECORD {
        y = dvt_exp(w);
        dvt_mul_(x, w);
        check_message(DVT_ERR_GRAD, "dvt_mul_: b (float32 (2,)", "belongs to a recorded",
                      "use the form without _");
        dvt_mul_(y, x);
        check_message(DVT_ERR_GRAD, "dvt_mul_: the array to write into (float32 (2,)", NULL, NULL);
    }
}

DVT_TEST(messages_of_incompatible_shapes) {
    dvt_array *a = here(DVT_SHAPE(2, 3)), *b = here(DVT_SHAPE(4)), *c = here(DVT_SHAPE(2, 1));
    dvt_add(a, b);
    check_message(DVT_ERR_SHAPE, "dvt_add: float32 (2, 3) on cpu(0)", " and float32 (4,) on cpu(0)",
                  "do not broadcast");
#if !defined(DEVTENSOR_NO_CALL_SITES)
    dvt_mul(b, a);
    check_message(DVT_ERR_SHAPE, "dvt_mul: ", "test_messages.c", "do not broadcast");
#endif
    dvt_where(b, a, c);
    check_message(DVT_ERR_SHAPE, "dvt_where: shapes (2, 3) and (4,)", NULL, NULL);
    dvt_where(c, b, a);
    check_message(DVT_ERR_SHAPE, "dvt_where: float32 (4,)", " and float32 (2, 3)", NULL);
    dvt_reshape(a, DVT_SHAPE(-1, 2, -1));
    check_message(DVT_ERR_SHAPE, "dvt_reshape: x is float32 (2, 3)", "(-1, 2, -1)",
                  "at most one -1");
}

DVT_TEST(messages_of_integers_without_gradients) {
    dvt_array *x = here(DVT_SHAPE(3)), *y = NULL;
    CHECK(dvt_attach_grad(x, DVT_GRAD_WRITE) == DVT_OK);
    DVT_RECORD {
        y = dvt_argmax(x, DVT_AXES(0));
    }
    dvt_backward(y);
    check_message(DVT_ERR_GRAD, "dvt_backward: ", "int64", "expected a floating dtype");
}

/* A shape stores at most eight extents; the message still describes the requested shape. */
DVT_TEST(messages_of_shapes_with_too_many_axes) {
    dvt_shape nine = DVT_SHAPE(1, 2, 1, 1, 1, 1, 1, 3, 5), negative = DVT_SHAPE(1);
    negative.ndim = -2;
    dvt_zeros(nine, DVT_F32, dvt_cpu());
    check_message(DVT_ERR_SHAPE,
                  "dvt_zeros: shape (1, 2, 1, 1, 1, 1, 1, 3, ...: 9 axes); expected 0 to 8 axes",
                  NULL, NULL);
    /* DVT_COUNT counts more than 16 arguments as 17. */
    CHECK(!dvt_zeros(DVT_SHAPE(2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2), DVT_F32,
                     dvt_cpu()));
    check_message(DVT_ERR_SHAPE, "dvt_zeros: ", "17 axes); expected 0 to 8 axes", NULL);
    dvt_reshape(here(DVT_SHAPE(30)), nine);
    check_message(DVT_ERR_SHAPE, "dvt_reshape: x is float32 (30,)", "3, ...: 9 axes)",
                  "expected 0 to 8 axes");
    dvt_broadcast_to(here(DVT_SHAPE(5)), nine);
    check_message(DVT_ERR_SHAPE, "dvt_broadcast_to: ", "3, ...: 9 axes)", NULL);
    dvt_reshape(here(DVT_SHAPE(1)), negative);
    check_message(DVT_ERR_SHAPE, "dvt_reshape: ", "(...: -2 axes)", NULL);
}

#if !defined(DEVTENSOR_NO_NN)
DVT_TEST(messages_name_arguments_of_losses_and_metrics) {
    dvt_array *x = here(DVT_SHAPE(2, 2)), *y = there(DVT_SHAPE(2, 2));
    dvt_array *labels = dvt_zeros(DVT_SHAPE(2), DVT_I64, dvt_cpu());
    CHECK_MIXED(dvt_loss_l2(x, y), "dvt_loss_l2", "prediction", "label");
    CHECK_MIXED(dvt_loss_softmax_cross_entropy(x, y), "dvt_loss_softmax_cross_entropy",
                "prediction", "label");
    CHECK_MIXED(dvt_metric_update(dvt_metric_accuracy(), labels, y), "dvt_metric_update", "labels",
                "predictions");
    CHECK_MIXED(dvt_metric_update(dvt_metric_top_k_accuracy(2), labels, y), "dvt_metric_update",
                "labels", "predictions");
    dvt_loss_l1(NULL, x);
    check_message(DVT_ERR_NULL_ARGUMENT, "dvt_loss_l1: prediction is NULL", NULL, NULL);
    dvt_loss_softmax_cross_entropy(here(DVT_SHAPE(2, 0)), labels);
    check_message(DVT_ERR_RANGE, "dvt_loss_softmax_cross_entropy: ", NULL, "expected none");
    dvt_block_at(dvt_nn_sequential(), 0);
    check_message(DVT_ERR_RANGE, "dvt_block_at: ", NULL, "; expected none, since it is empty");
    dvt_params_at(dvt_block_collect_params(dvt_nn_sequential(), NULL), 0);
    check_message(DVT_ERR_RANGE, "dvt_params_at: ", NULL, "; expected none, since it is empty");
}

/* The summary runs a forward pass, but its errors name the summary. */
DVT_TEST(messages_of_the_summary) {
    dvt_block *net = dvt_nn_dense(2, DVT_IDENTITY);
    CHECK_INT(dvt_block_initialize(net, dvt_init_one(), DVT_CONTEXTS(dvt_cpu())), DVT_OK);
    dvt_block_print_summary(net, DVT_SHAPE(-1, 3));
    check_message(DVT_ERR_SHAPE, "dvt_block_print_summary: shape (-1, 3)", NULL, NULL);
    CHECK(dvt_block_forward(net, here(DVT_SHAPE(1, 3))) != NULL);
    dvt_block_print_summary(net, DVT_SHAPE(1, 4));
    check_message(DVT_ERR_SHAPE, "dvt_block_print_summary: Dense(3", "x is float32 (1, 4)", NULL);
    dvt_block_forward(net, here(DVT_SHAPE(1, 4)));
    check_message(DVT_ERR_SHAPE, "dvt_block_forward: Dense(3", "x is float32 (1, 4)", NULL);
}

DVT_TEST(messages_of_units) {
    dvt_nn_dense(0, DVT_IDENTITY);
    check_message(DVT_ERR_RANGE, "dvt_nn_dense: units is 0", "expected 1 or more outputs", NULL);
}

static dvt_status failing_step(void *user, const dvt_optimizer_step *step) {
    (void)user;
    (void)step;
    return DVT_ERR_VALUE;
}

static dvt_status failing_update(void *user, dvt_array *labels, dvt_array *predictions,
                                 dvt_metric_total *total) {
    (void)user;
    (void)labels;
    (void)predictions;
    (void)total;
    return DVT_ERR_VALUE;
}

/* A program's function that fails without a failed call: the message names it and its status. */
DVT_TEST(messages_of_functions_of_the_program) {
    dvt_block *net = dvt_nn_dense(1, DVT_IDENTITY);
    dvt_array *x = here(DVT_SHAPE(1, 2)), *y = NULL;
    dvt_optimizer_desc optimizer = {"mine", 0, failing_step, NULL};
    dvt_metric_desc metric = {"own", failing_update, NULL, NULL, NULL};
    dvt_trainer *trainer;
    dvt_metric_update(dvt_metric_custom(&metric), x, x);
    check_message(DVT_ERR_VALUE, "dvt_metric_update: update of the metric own returned ",
                  "DVT_ERR_VALUE, and no call in it failed", "given to dvt_metric_custom");
    CHECK_INT(dvt_block_initialize(net, dvt_init_one(), DVT_CONTEXTS(dvt_cpu())), DVT_OK);
    trainer =
        dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_custom(&optimizer, 1));
    DVT_RECORD {
        y = dvt_block_forward(net, x);
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
    dvt_trainer_step(trainer, 1);
    check_message(DVT_ERR_VALUE, "dvt_trainer_step: step of the optimizer mine returned ",
                  "DVT_ERR_VALUE, and no call in it failed", "given to dvt_optimizer_custom");
}

/* The message names the failed call, the parameter, and the fix. */
DVT_TEST(messages_of_trainers_without_values) {
    dvt_block *net = dvt_nn_dense(2, DVT_IDENTITY);
    dvt_params *params = dvt_block_collect_params(net, NULL);
    dvt_trainer *t = dvt_trainer_new(params, dvt_optimizer_sgd(1));
    const char *name = dvt_param_name(dvt_params_at(params, 0)), *fix = "call dvt_block_initialize";
    int round;
    for (round = 0; round < 2; round++) {
        dvt_trainer_step(t, 1);
        check_message(DVT_ERR_UNINITIALIZED, "dvt_trainer_step: ", name, fix);
        dvt_trainer_step_partial(t, 1);
        check_message(DVT_ERR_UNINITIALIZED, "dvt_trainer_step_partial: ", name, fix);
        dvt_trainer_allreduce(t);
        check_message(DVT_ERR_UNINITIALIZED, "dvt_trainer_allreduce: ", name, fix);
        dvt_trainer_update(t, 1);
        check_message(DVT_ERR_UNINITIALIZED, "dvt_trainer_update: ", name, fix);
        dvt_trainer_clip_global_norm(t, 1);
        check_message(DVT_ERR_UNINITIALIZED, "dvt_trainer_clip_global_norm: ", name, fix);
        CHECK_INT(dvt_block_initialize(net, dvt_init_one(), DVT_CONTEXTS(dvt_cpu())), DVT_OK);
        fix = "Pass one batch of data";
    }
}

#if !defined(DEVTENSOR_NO_FILES)
DVT_TEST(messages_of_parameter_files_name_the_call) {
    const char *nowhere = "/no folder of this name/net.params";
    dvt_block *dense = dvt_nn_dense(2, DVT_IDENTITY);
    dvt_ctx_list none = no_contexts();
    FILE *file;
    open_file("messages.params");
    dvt_block_load(dense, nowhere, none);
    check_message(DVT_ERR_IO, "dvt_block_load: ", nowhere, NULL);
    dvt_load_params(nowhere, dvt_cpu());
    check_message(DVT_ERR_IO, "dvt_load_params: ", nowhere, NULL);
    CHECK((file = fopen(path, "wb")) != NULL);
    fputs("no parameters at all", file);
    fclose(file);
    dvt_block_load(dense, path, none);
    check_message(DVT_ERR_FORMAT, "dvt_block_load: ", path, NULL);
    remove_file();
    dvt_block_save(dense, nowhere);
    check_message(DVT_ERR_UNINITIALIZED, "dvt_block_save: ", "dense", NULL);
    CHECK_INT(dvt_block_initialize(dense, dvt_init_one(), none), DVT_OK);
    dvt_block_forward(dense, here(DVT_SHAPE(1, 3)));
    dvt_block_save(dense, nowhere);
    check_message(DVT_ERR_IO, "dvt_block_save: ", nowhere, NULL);
    dvt_save_params(nowhere, NULL, NULL, 0);
    check_message(DVT_ERR_IO, "dvt_save_params: ", nowhere, NULL);
}
#endif
#endif
