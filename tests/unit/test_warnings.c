/* Tests of warnings about calls that are valid but rarely intended, and of messages that advise
   what to do instead. */
#include "dvt_test.h"

static char warned[2000];

static void keep_warnings(void *user, dvt_log_level level, const char *message) {
    (void)user;
    if (level == DVT_LOG_WARNING && strlen(warned) + strlen(message) < sizeof warned)
        strcat(warned, message);
}

static void listen(void) {
    warned[0] = 0;
    dvt_set_logger(keep_warnings, NULL);
}

/* Checks that the error has this code and that its message contains both texts. */
static void check_error(dvt_status code, const char *a, const char *b) {
    CHECK_INT(dvt_error_code(), code);
    if (!strstr(dvt_error(), a))
        CHECK_STR(dvt_error(), a);
    if (!strstr(dvt_error(), b))
        CHECK_STR(dvt_error(), b);
    dvt_clear_error();
}

DVT_TEST(warnings_cpu_with_a_negative_number) {
    dvt_ctx odd;
    CHECK(dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu_id(-3)) == NULL);
    check_error(DVT_ERR_NO_DEVICE, "dvt_ones: cpu(-3) does not exist", "use dvt_cpu()");
    memset(&odd, 0, sizeof odd);
    odd.type = (dvt_device_type)7;
    odd.id = 1;
    CHECK(dvt_ones(DVT_SHAPE(2), DVT_F32, odd) == NULL);
    check_error(DVT_ERR_NO_DEVICE, "a context of type 7 and number 1", "dvt_gpu(0)");
}

#if !defined(DEVTENSOR_NO_CUDA)
DVT_TEST(warnings_cuda_sharing_without_a_gpu) {
    dvt_array *x;
    NEEDS_NO_GPU("GPUs made of host memory");
    CHECK(dvt_cuda_stream(dvt_gpu(0)) == NULL);
    CHECK(dvt_cuda_stream(dvt_cpu()) == NULL);
    CHECK_INT(dvt_error_code(), DVT_OK);
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    CHECK(dvt_cuda_stream(dvt_gpu(0)) == NULL);
    CHECK(dvt_cuda_stream(dvt_gpu(5)) == NULL);
    CHECK_INT(dvt_error_code(), DVT_OK);
    CHECK_INT(dvt_set_cuda_stream(NULL, dvt_gpu(0)), DVT_ERR_UNSUPPORTED);
    check_error(DVT_ERR_UNSUPPORTED, "gpu(0) has no CUDA stream", "leave this call out");
    CHECK_INT(dvt_cuda_order_after(NULL, dvt_gpu(0)), DVT_ERR_UNSUPPORTED);
    check_error(DVT_ERR_UNSUPPORTED, "dvt_cuda_order_after: gpu(0)", "leave this call out");
    CHECK_INT(dvt_cuda_order_before(NULL, dvt_cpu()), DVT_ERR_UNSUPPORTED);
    check_error(DVT_ERR_UNSUPPORTED, "dvt_cuda_order_before: cpu(0)", "leave this call out");
    DVT_SCOPE {
        x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_gpu(0));
        CHECK_INT(dvt_cuda_address(x), 0);
        check_error(DVT_ERR_CONTEXT, "a virtual GPU has no addresses", "dvt_copyto(x, dvt_cpu())");
        CHECK_INT(dvt_cuda_address(dvt_copyto(x, dvt_cpu())), 0);
        check_error(DVT_ERR_CONTEXT, "not memory of an NVIDIA GPU", "use dvt_data");
    }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}
#endif

#if !defined(DEVTENSOR_NO_NN)
DVT_TEST(warnings_pattern_without_a_match) {
    dvt_block *net = dvt_nn_sequential();
    dvt_params *params;
    char name[80];
    DVT_NN_ADD(net, dvt_nn_flatten(), dvt_nn_dense(2, DVT_IDENTITY));
    snprintf(name, sizeof name, "'%s'",
             dvt_param_name(dvt_block_param(dvt_block_at(net, 1), "weight")));
    listen();
    CHECK_INT(dvt_params_len(dvt_block_collect_params(net, ".*weight")), 1);
    CHECK_INT(dvt_params_len(dvt_block_collect_params(dvt_nn_sequential(), NULL)), 0);
    CHECK_STR(warned, "");
    params = dvt_block_collect_params(net, "weight");
    CHECK_INT(dvt_params_len(params), 0);
    CHECK(strstr(warned, "the pattern \"weight\" matches no parameter") != NULL);
    CHECK(strstr(warned, name) != NULL && strstr(warned, "\".*weight\"") != NULL);
    warned[0] = 0;
    CHECK(dvt_trainer_new(params, dvt_optimizer_sgd(0.1)) != NULL);
    CHECK(strstr(warned, "nothing will be trained") != NULL);
    warned[0] = 0;
    CHECK_INT(dvt_params_len(dvt_block_collect_params(dvt_nn_sequential(), "a")), 0);
    dvt_set_logger(NULL, NULL);
    CHECK(strstr(warned, "the net has no parameters") != NULL);
    CHECK_INT(dvt_error_code(), DVT_OK);
}

DVT_TEST(warnings_labels_of_another_shape) {
    dvt_array *p = DVT_ARRAY(float, DVT_SHAPE(4, 1), dvt_cpu(), 1, 2, 3, 4);
    dvt_array *same = DVT_ARRAY(float, DVT_SHAPE(4), dvt_cpu(), 1, 2, 3, 6);
    dvt_array *fewer = dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_cpu());
    CHECK_VALUES(dvt_loss_l2(p, same), 0, 0, 0, 0, 2);
    CHECK_VALUES(dvt_loss_l1(same, p), 0, 0, 0, 0, 2);
    CHECK(dvt_loss_l2(p, fewer) == NULL);
    check_error(DVT_ERR_SHAPE, "dvt_loss_l2: prediction is ", "dvt_reshape or dvt_broadcast_to");
}

static dvt_array *own_forward(dvt_block *self, void *user, dvt_array *x) {
    (void)self;
    (void)user;
    return x;
}

static dvt_block *own_block(const char *kind) {
    dvt_block_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.kind = kind;
    desc.forward = own_forward;
    return dvt_block_new(&desc);
}

DVT_TEST(warnings_own_block_without_children_prints_in_a_line) {
    char text[80];
    dvt_block *leaf = own_block("Leaf"), *parent = own_block("Parent");
    dvt_block_format(leaf, text, sizeof text);
    CHECK_STR(text, "Leaf()");
    CHECK_INT(dvt_block_add_child(parent, leaf), DVT_OK);
    dvt_block_format(parent, text, sizeof text);
    CHECK_STR(text, "Parent(\n  (0): Leaf()\n)");
}
#endif
