/* Tests of parameters of networks on contexts: replicas, moving, setting values, gradients. They
   run on the CPU and on virtual GPUs. */
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

static dvt_ctx any_ctx(void) {
    dvt_ctx ctx;
    memset(&ctx, 0, sizeof ctx);
    return ctx;
}

static dvt_block *dense_in(int64_t units, int64_t in_units) {
    dvt_nn_dense_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.units = units;
    desc.in_units = in_units;
    return dvt_nn_dense_with(&desc);
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

/* ---- contexts ---- */
DVT_TEST(params_contexts) {
    dvt_block *net = dense_in(2, 2);
    dvt_param *w = dvt_block_param(net, "weight");
    dvt_array *on0;
    char list[64];
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    CHECK_INT(dvt_block_initialize(net, default_init(),
                                   DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(1), dvt_gpu(0), dvt_gpu(1))),
              DVT_OK);
    dvt_ctx_list_format(dvt_param_ctxs(w), list, sizeof list);
    CHECK_STR(list, "[gpu(0), gpu(1)]"); /* each context once */
    on0 = dvt_param_data(w, dvt_gpu(0));
    CHECK(dvt_ctx_equal(dvt_ctx_of(on0), dvt_gpu(0)));
    CHECK(dvt_param_data(w, dvt_gpu(1)) != on0);
    CHECK(same_values(on0, dvt_param_data(w, dvt_gpu(1))));
    CHECK(dvt_param_data(w, any_ctx()) == NULL); /* cpu(0), the default, has no replica */
    error_has(
        "was not initialized on context cpu(0). It was only initialized on [gpu(0), gpu(1)].");
    dvt_clear_error();
    DVT_WITH_CTX(dvt_gpu(1)) {
        CHECK(dvt_ctx_equal(dvt_ctx_of(dvt_param_data(w, any_ctx())), dvt_gpu(1)));
    }
    CHECK_INT(dvt_block_reinitialize(net, default_init(), DVT_CONTEXTS(dvt_gpu(1))), DVT_OK);
    CHECK(dvt_ctx_equal(dvt_ctx_of(dvt_param_data(w, any_ctx())), dvt_gpu(1))); /* single replica */
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

DVT_TEST(params_gpu_input_on_a_cpu_net) {
    dvt_block *net = dense_in(1, 3);
    char expected[160];
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    CHECK_INT(dvt_block_initialize(net, default_init(), no_contexts()), DVT_OK);
    snprintf(expected, sizeof expected,
             "Parameter '%s' was not initialized on context gpu(0). It was only initialized on "
             "[cpu(0)].",
             dvt_param_name(dvt_block_param(net, "weight")));
    CHECK(dvt_block_forward(net, dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_gpu(0))) == NULL);
    CHECK_INT(dvt_error_code(), DVT_ERR_CONTEXT);
    error_has(expected);
    dvt_clear_error();
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

DVT_TEST(params_empty_list_is_the_default_context) {
    dvt_block *net = dense_in(1, 3);
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    DVT_WITH_CTX(dvt_gpu(0)) {
        CHECK_INT(dvt_block_initialize(net, default_init(), no_contexts()), DVT_OK);
    }
    CHECK(dvt_ctx_equal(dvt_param_ctxs(dvt_block_param(net, "bias")).ctx[0], dvt_gpu(0)));
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

DVT_TEST(params_reset_ctx) {
    dvt_block *net = dvt_nn_sequential();
    dvt_params *params;
    dvt_param *w;
    dvt_array *kept;
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    DVT_NN_ADD(net, dense_in(1, 2), dvt_nn_dense(1, DVT_IDENTITY));
    params = dvt_block_collect_params(net, NULL);
    w = dvt_params_at(params, 0);
    CHECK_INT(dvt_params_reset_ctx(params, no_contexts()), DVT_ERR_UNINITIALIZED);
    error_has("Cannot reset context for Parameter");
    dvt_clear_error();
    CHECK_INT(dvt_params_initialize(params, dvt_init_one(), DVT_CONTEXTS(dvt_gpu(0), dvt_cpu())),
              DVT_OK);
    kept = dvt_param_data(w, dvt_cpu());
    dvt_fill(dvt_param_data(w, dvt_gpu(0)), 4); /* replicas that differ */
    CHECK_INT(dvt_params_reset_ctx(params, DVT_CONTEXTS(dvt_cpu(), dvt_gpu(1))), DVT_OK);
    CHECK_INT(dvt_param_ctxs(w).n, 2);
    CHECK(dvt_param_data(w, dvt_cpu()) == kept);
    CHECK_VALUES(dvt_param_data(w, dvt_cpu()), 0, 2.5, 2.5);
    CHECK_VALUES(dvt_param_data(w, dvt_gpu(1)), 0, 2.5, 2.5);
    CHECK_ERROR(dvt_param_data(w, dvt_gpu(0)), DVT_ERR_CONTEXT);
    /* the deferred parameter stores its new contexts */
    CHECK_INT(dvt_param_ctxs(dvt_params_at(params, 2)).n, 2);
    CHECK(dvt_ctx_equal(dvt_param_ctxs(dvt_params_at(params, 2)).ctx[1], dvt_gpu(1)));
    CHECK(dvt_block_forward(net, dvt_ones(DVT_SHAPE(1, 2), DVT_F32, dvt_gpu(1))) != NULL);
    CHECK_ERROR(dvt_params_reset_ctx(params, DVT_CONTEXTS(dvt_cpu(), dvt_gpu(5))),
                DVT_ERR_NO_DEVICE);
    CHECK(dvt_param_data(w, dvt_cpu()) == kept);
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* The average of equal replicas has the same bits, for any number of replicas. */
DVT_TEST(params_average_is_exact) {
    dvt_block *net = dense_in(40, 10);
    dvt_params *params = dvt_block_collect_params(net, NULL);
    dvt_param *w = dvt_params_at(params, 0);
    dvt_array *before;
    CHECK_INT(dvt_params_initialize(params, default_init(),
                                    DVT_CONTEXTS(dvt_cpu_id(0), dvt_cpu_id(1), dvt_cpu_id(2))),
              DVT_OK);
    before = dvt_copy(dvt_param_data(w, dvt_cpu_id(1)));
    CHECK_INT(dvt_params_reset_ctx(params, DVT_CONTEXTS(dvt_cpu_id(5))), DVT_OK);
    CHECK(same_values(dvt_param_data(w, any_ctx()), before));
}

DVT_TEST(params_out_of_device_memory) {
    dvt_block *net = dense_in(64, 64), *second;
    dvt_array *w;
    CHECK_INT(dvt_set_virtual_gpus(2, 40000), DVT_OK);
    CHECK_INT(dvt_block_initialize(net, dvt_init_one(), DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(1))),
              DVT_OK);
    w = dvt_block_data(net, "weight", dvt_gpu(1));
    second = dense_in(64, 64);
    CHECK_ERROR(dvt_block_initialize(second, dvt_init_one(), DVT_CONTEXTS(dvt_cpu(), dvt_gpu(1))),
                DVT_ERR_DEVICE_MEMORY);
    CHECK_ERROR(dvt_block_data(second, "weight", dvt_cpu()), DVT_ERR_UNINITIALIZED);
    CHECK_ERROR(dvt_block_reinitialize(net, dvt_init_zero(), DVT_CONTEXTS(dvt_gpu(1))),
                DVT_ERR_DEVICE_MEMORY);
    CHECK_INT(dvt_param_ctxs(dvt_block_param(net, "weight")).n, 2);
    CHECK_CLOSE(dvt_item_at(w, DVT_SHAPE(3, 3)), 1, 0);
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* ---- setting values ---- */
DVT_TEST(params_set_data) {
    dvt_block *net = dense_in(1, 2), *late = dvt_nn_dense(2, DVT_IDENTITY);
    dvt_param *w = dvt_block_param(net, "weight");
    dvt_array *x, *held;
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    x = DVT_ARRAY(double, DVT_SHAPE(1, 2), dvt_gpu(0), 3, 4);
    CHECK_ERROR(dvt_param_set_data(w, x), DVT_ERR_UNINITIALIZED);
    dvt_block_initialize(net, default_init(), DVT_CONTEXTS(dvt_cpu(), dvt_gpu(0)));
    held = dvt_param_data(w, dvt_cpu());
    CHECK_INT(dvt_param_set_data(w, x), DVT_OK);
    CHECK(dvt_param_data(w, dvt_cpu()) == held);
    CHECK_VALUES(held, 0, 3, 4);
    CHECK_INT(dvt_dtype_of(held), DVT_F32);
    CHECK_VALUES(dvt_param_data(w, dvt_gpu(0)), 0, 3, 4);
    CHECK_ERROR(dvt_param_set_data(w, dvt_ones(DVT_SHAPE(2, 1), DVT_F32, dvt_cpu())),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_param_set_data(w, NULL), DVT_ERR_NULL_ARGUMENT);
    dvt_fill(held, 8);
    CHECK_INT(dvt_param_set_data(w, held), DVT_OK); /* one value for all replicas */
    CHECK_VALUES(dvt_param_data(w, dvt_gpu(0)), 0, 8, 8);
    /* a deferred parameter gets its shape from the data */
    dvt_block_initialize(late, default_init(), DVT_CONTEXTS(dvt_gpu(0)));
    CHECK_INT(dvt_param_set_data(dvt_block_param(late, "weight"),
                                 dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu())),
              DVT_OK);
    CHECK_VALUES(dvt_block_forward(late, dvt_ones(DVT_SHAPE(1, 3), DVT_F32, dvt_gpu(0))), 0, 3, 3);
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

DVT_TEST(params_set_shape) {
    dvt_block *net = dvt_nn_dense(2, DVT_IDENTITY);
    dvt_param *w = dvt_block_param(net, "weight");
    CHECK_ERROR(dvt_param_set_shape(w, DVT_SHAPE(3, 4)), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_param_set_shape(w, DVT_SHAPE(2)), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_param_set_shape(w, DVT_SHAPE(2, -4)), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_param_set_shape(NULL, DVT_SHAPE(2)), DVT_ERR_NULL_ARGUMENT);
    CHECK_INT(dvt_param_set_shape(w, DVT_SHAPE(2, 4)), DVT_OK);
    CHECK_INT(dvt_param_set_shape(w, DVT_SHAPE(2, 4)), DVT_OK);
    CHECK_ERROR(dvt_param_set_shape(w, DVT_SHAPE(2, 5)), DVT_ERR_SHAPE);
    CHECK_INT(dvt_block_initialize(net, default_init(), no_contexts()), DVT_OK);
    CHECK(dvt_param_data(w, dvt_cpu()) != NULL);
}

/* ---- gradients ---- */
DVT_TEST(params_grad_req) {
    dvt_block *net = dense_in(1, 2);
    dvt_param *w = dvt_block_param(net, "weight");
    dvt_params *params = dvt_block_collect_params(net, NULL);
    dvt_array *x = DVT_ARRAY(float, DVT_SHAPE(1, 2), dvt_cpu(), 2, 3), *y = NULL;
    int i;
    dvt_block_initialize(net, dvt_init_one(), no_contexts());
    CHECK_VALUES(dvt_param_grad(w, dvt_cpu()), 0, 0, 0);
    for (i = 0; i < 2; i++) {
        DVT_RECORD {
            y = dvt_block_forward(net, x);
        }
        CHECK_INT(dvt_backward(y), DVT_OK);
    }
    CHECK_VALUES(dvt_param_grad(w, dvt_cpu()), 0, 2, 3); /* write */
    CHECK_INT(dvt_params_set_grad_req(params, DVT_GRAD_ADD), DVT_OK);
    CHECK_VALUES(dvt_param_grad(w, dvt_cpu()), 0, 0, 0);
    for (i = 0; i < 3; i++) {
        DVT_RECORD {
            y = dvt_block_forward(net, x);
        }
        CHECK_INT(dvt_backward(y), DVT_OK);
    }
    CHECK_VALUES(dvt_param_grad(w, dvt_cpu()), 0, 6, 9);
    CHECK_INT(dvt_params_zero_grad(params), DVT_OK);
    CHECK_VALUES(dvt_param_grad(w, dvt_cpu()), 0, 0, 0);
    CHECK_INT(dvt_param_set_grad_req(w, DVT_GRAD_NULL), DVT_OK);
    CHECK(dvt_param_grad(w, dvt_cpu()) == NULL);
    CHECK_INT(dvt_error_code(), DVT_ERR_GRAD);
    error_has("Cannot get gradient array for Parameter");
    error_has("because grad_req='null'");
    dvt_clear_error();
    CHECK_INT(dvt_params_zero_grad(params), DVT_OK);
    CHECK(!dvt_has_history(dvt_param_data(w, dvt_cpu())));
    CHECK_INT(dvt_param_set_grad_req(w, DVT_GRAD_WRITE), DVT_OK);
    CHECK_VALUES(dvt_param_grad(w, dvt_cpu()), 0, 0, 0);
    CHECK_ERROR(dvt_param_set_grad_req(w, (dvt_grad_req)9), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_param_set_grad_req(NULL, DVT_GRAD_ADD), DVT_ERR_NULL_ARGUMENT);
}

/* A grad_req that is set before the values exist applies when they are initialized. */
DVT_TEST(params_grad_req_before_initialize) {
    dvt_block *net = dvt_nn_dense(1, DVT_IDENTITY);
    dvt_stats before, after;
    CHECK_INT(dvt_params_set_grad_req(dvt_block_collect_params(net, NULL), DVT_GRAD_NULL), DVT_OK);
    dvt_block_initialize(net, default_init(), no_contexts());
    before = dvt_get_stats();
    DVT_SCOPE {
        dvt_block_forward(net, dvt_ones(DVT_SHAPE(1, 3), DVT_F32, dvt_cpu()));
    }
    after = dvt_get_stats();
    CHECK_INT(after.arrays - before.arrays, 1); /* the weight, without gradient */
    CHECK_ERROR(dvt_param_grad(dvt_block_param(net, "weight"), dvt_cpu()), DVT_ERR_GRAD);
}

DVT_TEST(params_running_statistics_have_no_gradient) {
    dvt_nn_batch_norm_desc desc;
    dvt_block *net;
    memset(&desc, 0, sizeof desc);
    desc.in_channels = 3;
    desc.no_scale = true;
    net = dvt_nn_batch_norm_with(&desc);
    dvt_block_initialize(net, default_init(), no_contexts());
    CHECK_INT(dvt_params_set_grad_req(dvt_block_collect_params(net, NULL), DVT_GRAD_WRITE), DVT_OK);
    CHECK(dvt_param_grad(dvt_block_param(net, "beta"), dvt_cpu()) != NULL);
    CHECK_ERROR(dvt_param_grad(dvt_block_param(net, "gamma"), dvt_cpu()), DVT_ERR_GRAD);
    CHECK_ERROR(dvt_param_grad(dvt_block_param(net, "running_mean"), dvt_cpu()), DVT_ERR_GRAD);
    CHECK_ERROR(dvt_param_grad(dvt_block_param(net, "running_var"), dvt_cpu()), DVT_ERR_GRAD);
}

DVT_TEST(params_rate_and_decay_factors) {
    dvt_param *w = dvt_block_param(dvt_nn_dense(1, DVT_IDENTITY), "weight");
    CHECK_INT(dvt_param_set_lr_mult(w, 0.5), DVT_OK);
    CHECK_INT(dvt_param_set_wd_mult(w, 0), DVT_OK);
    CHECK_ERROR(dvt_param_set_lr_mult(w, NAN), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_param_set_wd_mult(w, INFINITY), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_param_set_lr_mult(NULL, 1), DVT_ERR_NULL_ARGUMENT);
}

#endif
