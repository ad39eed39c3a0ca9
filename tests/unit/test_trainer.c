/* Tests of the trainer: Gluon's rules on one and several contexts, all-or-nothing steps, and
   replicas with the same bits. */
#include "plus_block.h"
#if !defined(DEVTENSOR_NO_NN)

/* A case of MXNet: x = 0 on two contexts, loss (x + 1) on each; step(1) with rate 1 gives -2 on
   both. */
DVT_TEST(trainer_sums_over_contexts) {
    dvt_ctx_list lists[4];
    int i, n = context_lists(lists);
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    for (i = 0; i < n; i++) {
        DVT_SCOPE {
            dvt_block *net = plus(0);
            dvt_ctx a = lists[i].ctx[0], b = lists[i].ctx[1];
            dvt_trainer *t;
            CHECK_INT(dvt_block_initialize(net, dvt_init_zero(), lists[i]), DVT_OK);
            t = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_sgd(1));
            back(net, a, 1);
            back(net, b, 1);
            CHECK_INT(dvt_trainer_step(t, 1), DVT_OK);
            CHECK_CLOSE(weight_on(net, a), -2, 0);
            CHECK_CLOSE(weight_on(net, b), -2, 0);
            back(net, b, 3);
            back(net, a, 5);
            CHECK_INT(dvt_trainer_step(t, 4), DVT_OK);
            CHECK_CLOSE(weight_on(net, a), -4, 0);
            CHECK_CLOSE(weight_on(net, b), -4, 0);
            CHECK_INT(dvt_trainer_steps(t), 2);
        }
    }
    dvt_set_virtual_gpus(0, 0);
}

static int words_in(const char *text) {
    int n = *text != 0;
    for (; *text; text++)
        n += *text == ' ';
    return n;
}

DVT_TEST(trainer_stale_gradients) {
    dvt_ctx_list lists[4];
    int i, n = context_lists(lists);
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    for (i = 0; i < n; i++) {
        DVT_SCOPE {
            dvt_block *net = plus(0);
            dvt_ctx a = lists[i].ctx[0], b = lists[i].ctx[1];
            dvt_trainer *t;
            CHECK_INT(dvt_block_initialize(net, dvt_init_zero(), lists[i]), DVT_OK);
            t = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_sgd(1));
            CHECK_ERROR(dvt_trainer_step(t, 1), DVT_ERR_STALE_GRAD);
            back(net, a, 1);
            dvt_clear_error();
            CHECK_INT(dvt_trainer_step(t, 1), DVT_ERR_STALE_GRAD);
            CHECK(strstr(dvt_error(), dvt_param_name(dvt_block_param(net, "weight"))) &&
                  strstr(dvt_error(), dvt_ctx_name(b)) &&
                  strstr(dvt_error(), "dvt_trainer_step_partial"));
            CHECK(words_in(dvt_error()) <= 30);
            dvt_clear_error();
            CHECK_CLOSE(weight_on(net, a), 0, 0);
            CHECK_CLOSE(weight_on(net, b), 0, 0);
            CHECK_INT(dvt_trainer_steps(t), 0);
            /* The second context completes the gradients. */
            back(net, b, 1);
            CHECK_INT(dvt_trainer_step(t, 1), DVT_OK);
            CHECK_CLOSE(weight_on(net, b), -2, 0);
            CHECK_ERROR(dvt_trainer_step(t, 1), DVT_ERR_STALE_GRAD);
            /* Stale on all contexts: skipped. Stale on one context: its gradient counts as 0, and
               the replicas stay equal. */
            CHECK_INT(dvt_trainer_step_partial(t, 1), DVT_OK);
            CHECK_CLOSE(weight_on(net, a), -2, 0);
            back(net, b, 3);
            CHECK_INT(dvt_trainer_step_partial(t, 1), DVT_OK);
            CHECK_CLOSE(weight_on(net, a), -5, 0);
            CHECK_CLOSE(weight_on(net, b), -5, 0);
            back(net, a, 4);
            CHECK_INT(dvt_trainer_step_partial(t, 1), DVT_OK);
            CHECK_CLOSE(weight_on(net, a), -9, 0);
            CHECK_CLOSE(weight_on(net, b), -9, 0);
        }
    }
    dvt_set_virtual_gpus(0, 0);
}

/* The returned status is not that of an older failure, which dvt_error_code() still returns. */
DVT_TEST(trainer_status_is_of_its_own_call) {
    dvt_array *x = dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_cpu()), *parts[1];
    dvt_clear_error();
    CHECK(dvt_reshape(x, DVT_SHAPE(2)) == NULL);
    CHECK_INT(dvt_array_split_and_load(x, DVT_CONTEXTS(dvt_gpu(7)), parts), DVT_ERR_NO_DEVICE);
    CHECK_INT(dvt_block_initialize(plus(0), dvt_init_zero(), DVT_CONTEXTS(dvt_gpu(7))),
              DVT_ERR_NO_DEVICE);
    CHECK_INT(dvt_error_code(), DVT_ERR_SHAPE);
    dvt_clear_error();
}

DVT_TEST(trainer_allreduce_and_update) {
    dvt_ctx_list lists[4];
    int i, n = context_lists(lists);
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    for (i = 0; i < n; i++) {
        DVT_SCOPE {
            dvt_block *net = plus(0);
            dvt_ctx a = lists[i].ctx[0], b = lists[i].ctx[1];
            dvt_trainer *t;
            CHECK_INT(dvt_block_initialize(net, dvt_init_zero(), lists[i]), DVT_OK);
            t = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_sgd(1));
            back(net, a, 3);
            back(net, b, 5);
            CHECK_ERROR(dvt_trainer_update(t, 1), DVT_ERR_VALUE); /* the replicas would differ */
            CHECK_CLOSE(weight_on(net, a), 0, 0);
            CHECK_INT(dvt_trainer_allreduce(t), DVT_OK);
            CHECK_CLOSE(dvt_item(dvt_param_grad(dvt_block_param(net, "weight"), a)), 8, 0);
            CHECK_CLOSE(dvt_item(dvt_param_grad(dvt_block_param(net, "weight"), b)), 8, 0);
            CHECK_CLOSE(dvt_trainer_clip_global_norm(t, 4), 8, 0);
            CHECK_CLOSE(dvt_item(dvt_param_grad(dvt_block_param(net, "weight"), b)), 4, 1e-6);
            CHECK_CLOSE(dvt_trainer_clip_global_norm(t, 6), 4, 1e-6); /* below: unchanged */
            back(net, a, 3);
            back(net, b, 5); /* new gradients, not summed yet */
            CHECK_ERROR(dvt_trainer_update(t, 2), DVT_ERR_VALUE);
            CHECK_INT(dvt_trainer_allreduce(t), DVT_OK);
            CHECK_CLOSE(dvt_trainer_clip_global_norm(t, 4), 8, 0);
            CHECK_INT(dvt_trainer_update(t, 2), DVT_OK);
            CHECK_CLOSE(weight_on(net, a), -2, 1e-6);
            CHECK(weight_on(net, a) == weight_on(net, b));
            CHECK_ERROR(dvt_trainer_update(t, 2), DVT_ERR_STALE_GRAD);
        }
    }
    dvt_set_virtual_gpus(0, 0);
}

DVT_TEST(trainer_errors) {
    dvt_block *net = plus(1), *other = plus(1), *both = dvt_nn_sequential();
    dvt_trainer *t = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_sgd(0.5));
    CHECK_ERROR(dvt_trainer_step(t, 1), DVT_ERR_UNINITIALIZED);
    CHECK_ERROR(dvt_trainer_allreduce(t), DVT_ERR_UNINITIALIZED);
    CHECK_ERROR(dvt_trainer_clip_global_norm(t, 1), DVT_ERR_UNINITIALIZED);
    CHECK_INT(dvt_block_initialize(net, dvt_init_zero(), DVT_CONTEXTS(dvt_cpu())), DVT_OK);
    CHECK_ERROR(dvt_trainer_step(t, 0), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_trainer_step(NULL, 1), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_trainer_clip_global_norm(NULL, 1), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_trainer_clip_global_norm(t, 0), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_trainer_learning_rate(NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_trainer_set_learning_rate(t, -1), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_trainer_set_learning_rate(t, (double)NAN), DVT_ERR_RANGE);
    CHECK_INT(dvt_trainer_steps(NULL), 0);
    CHECK_INT(dvt_trainer_set_learning_rate(t, 0.25), DVT_OK);
    CHECK_CLOSE(dvt_trainer_learning_rate(t), 0.25, 0);
    back(net, dvt_cpu(), 2);
    CHECK_INT(dvt_trainer_step(t, 1), DVT_OK);
    CHECK_CLOSE(weight_on(net, dvt_cpu()), 0.5, 0);
    /* Different lists of contexts: the message has both. */
    CHECK_INT(dvt_block_initialize(other, dvt_init_zero(), DVT_CONTEXTS(dvt_cpu_id(1), dvt_cpu())),
              DVT_OK);
    DVT_NN_ADD(both, net, other);
    dvt_clear_error();
    CHECK(dvt_trainer_new(dvt_block_collect_params(both, NULL), dvt_optimizer_sgd(1)) == NULL);
    CHECK_INT(dvt_error_code(), DVT_ERR_CONTEXT);
    CHECK(strstr(dvt_error(), "[cpu(1), cpu(0)]") && strstr(dvt_error(), "on [cpu(0)]"));
    dvt_clear_error();
    /* A deferred net: creating the trainer succeeds, a step fails. */
    net = dvt_nn_dense(2, DVT_IDENTITY);
    CHECK_INT(dvt_block_initialize(net, dvt_init_zero(), DVT_CONTEXTS(dvt_cpu())), DVT_OK);
    t = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_sgd(1));
    CHECK(t != NULL);
    CHECK_ERROR(dvt_trainer_step(t, 1), DVT_ERR_UNINITIALIZED);
}

/* A parameter without gradient does not change, and is never stale. */
DVT_TEST(trainer_skips_parameters_without_gradient) {
    dvt_block *net = plus(1), *fixed = plus(5), *both = dvt_nn_sequential();
    dvt_trainer *t;
    dvt_array *y = NULL;
    DVT_NN_ADD(both, net, fixed);
    CHECK_INT(dvt_block_initialize(both, dvt_init_zero(), DVT_CONTEXTS(dvt_cpu())), DVT_OK);
    t = dvt_trainer_new(dvt_block_collect_params(both, NULL), dvt_optimizer_adam(0.5));
    CHECK_INT(dvt_param_set_grad_req(dvt_block_param(fixed, "weight"), DVT_GRAD_NULL), DVT_OK);
    DVT_RECORD {
        y = dvt_block_forward(both, dvt_ones(DVT_SHAPE(1), DVT_F32, dvt_cpu()));
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_INT(dvt_trainer_step(t, 1), DVT_OK);
    CHECK_CLOSE(weight_on(net, dvt_cpu()), 0.5, 1e-6);
    CHECK_CLOSE(weight_on(fixed, dvt_cpu()), 5, 0);
}

/* A list may name one context twice, as in programs for two GPUs on a machine without GPUs. There
   is one replica, and both slices of the batch count. */
DVT_TEST(trainer_merges_repeated_contexts) {
    dvt_ctx_list twice = DVT_CONTEXTS(dvt_cpu(), dvt_cpu());
    dvt_block *net = plus(0), *deferred = dvt_nn_dense(1, DVT_IDENTITY);
    dvt_trainer *t;
    dvt_array *parts[2], *losses[2] = {NULL, NULL};
    dvt_array *x = DVT_ARRAY(float, DVT_SHAPE(4, 1), dvt_cpu(), 1, 2, 3, 4);
    int i;
    CHECK_INT(dvt_block_initialize(net, dvt_init_zero(), twice), DVT_OK);
    CHECK_INT(dvt_param_ctxs(dvt_block_param(net, "weight")).n, 1);
    t = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_sgd(1));
    for (i = 1; i <= 2; i++) {
        back(net, dvt_cpu(), 1);
        back(net, dvt_cpu(), 2);
        CHECK_INT(dvt_trainer_step(t, 1), DVT_OK);
        CHECK_CLOSE(weight_on(net, dvt_cpu()), -3.0 * i, 0);
    }
    /* The same holds when the first batch sets the shapes, and after moving. */
    CHECK_INT(dvt_block_initialize(deferred, dvt_init_zero(), twice), DVT_OK);
    t = dvt_trainer_new(dvt_block_collect_params(deferred, NULL), dvt_optimizer_sgd(1));
    CHECK_INT(dvt_split_and_load(x, twice, parts), DVT_OK);
    DVT_RECORD {
        for (i = 0; i < 2; i++)
            losses[i] = dvt_block_forward(deferred, parts[i]);
    }
    for (i = 0; i < 2; i++)
        CHECK_INT(dvt_backward(losses[i]), DVT_OK);
    CHECK_INT(dvt_trainer_step(t, 1), DVT_OK);
    CHECK_VALUES(dvt_block_data(deferred, "weight", dvt_cpu()), 0, -10);
    CHECK_INT(dvt_params_reset_ctx(dvt_block_collect_params(net, NULL), DVT_CONTEXTS(dvt_cpu())),
              DVT_OK);
    back(net, dvt_cpu(), 1);
    back(net, dvt_cpu(), 2);
    CHECK_CLOSE(dvt_item(dvt_param_grad(dvt_block_param(net, "weight"), dvt_cpu())), 2, 0);
}

/* ---- clipping ---- */
DVT_TEST(clip_global_norm_of_arrays) {
    dvt_array *in[3];
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    DVT_SCOPE {
        in[0] = DVT_ARRAY(float, DVT_SHAPE(2), dvt_cpu(), 3, 0);
        in[1] = DVT_ARRAY(double, DVT_SHAPE(1, 2), dvt_gpu(1), 4, 0);
        in[2] = dvt_astype(DVT_ARRAY(float, DVT_SHAPE(1), dvt_gpu(0), 12), DVT_BF16);
        CHECK_CLOSE(dvt_clip_global_norm(in, 3, 13), 13, 1e-12);
        CHECK_VALUES(in[0], 1e-7, 3, 0);
        CHECK_CLOSE(dvt_clip_global_norm(in, 3, 6.5), 13, 1e-12);
        CHECK_VALUES(in[0], 1e-6, 1.5, 0);
        CHECK_VALUES(in[1], 1e-6, 2, 0);
        CHECK_VALUES(in[2], 1e-6, 6);
        CHECK_CLOSE(dvt_clip_global_norm(in, 0, 1), 0, 0);
        CHECK_CLOSE(dvt_clip_global_norm(NULL, 0, 1), 0, 0);
        /* The norm 300 * 1000 overflows float16. */
        in[0] = dvt_full(DVT_SHAPE(300, 300), 1000, DVT_F16, dvt_cpu());
        CHECK_CLOSE(dvt_clip_global_norm(in, 1, 300), 300000, 1e-6);
        CHECK_CLOSE(dvt_item_at(in[0], DVT_SHAPE(7, 7)), 1, 1e-3);
        in[0] = DVT_ARRAY(float, DVT_SHAPE(2), dvt_cpu(), 3, (float)NAN);
        CHECK(isnan(dvt_clip_global_norm(in, 1, 1)));
        CHECK_INT(dvt_error_code(), DVT_OK);
        CHECK_VALUES(in[0], 0, 3, (double)NAN);
        in[0] = DVT_ARRAY(float, DVT_SHAPE(2), dvt_cpu(), 3, (float)INFINITY);
        CHECK(isinf(dvt_clip_global_norm(in, 1, 1)));
        CHECK_VALUES(in[0], 0, 3, (double)INFINITY);
        in[0] = dvt_zeros(DVT_SHAPE(0, 4), DVT_F32, dvt_cpu());
        CHECK_CLOSE(dvt_clip_global_norm(in, 1, 1), 0, 0);
        /* Nothing is scaled when scaling one of them fails. */
        in[0] = dvt_full(DVT_SHAPE(2), 8, DVT_F32, dvt_cpu());
        in[1] = dvt_broadcast_to(dvt_ones(DVT_SHAPE(1), DVT_F32, dvt_cpu()), DVT_SHAPE(3));
        CHECK_ERROR(dvt_clip_global_norm(in, 2, 1), DVT_ERR_VALUE);
        in[1] = dvt_ones(DVT_SHAPE(1), DVT_I32, dvt_cpu());
        CHECK_ERROR(dvt_clip_global_norm(in, 2, 1), DVT_ERR_DTYPE);
        in[1] = NULL;
        CHECK_ERROR(dvt_clip_global_norm(in, 2, 1), DVT_ERR_NULL_ARGUMENT);
        CHECK_ERROR(dvt_clip_global_norm(in, 1, 0), DVT_ERR_RANGE);
        CHECK_ERROR(dvt_clip_global_norm(in, 1, (double)NAN), DVT_ERR_RANGE);
        CHECK_ERROR(dvt_clip_global_norm(in, -1, 1), DVT_ERR_RANGE);
        CHECK_VALUES(in[0], 0, 8, 8);
    }
    dvt_set_virtual_gpus(0, 0);
}

/* When parameters move during training, the optimizer's state moves with them. */
DVT_TEST(trainer_state_moves_with_the_parameters) {
    dvt_optimizer o = dvt_optimizer_adam(0.1);
    double expected[2];
    int round, i;
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    for (round = 0; round < 2; round++) {
        DVT_SCOPE {
            dvt_block *net = plus(1);
            dvt_params *params = dvt_block_collect_params(net, NULL);
            dvt_trainer *t;
            CHECK_INT(dvt_block_initialize(net, dvt_init_zero(), DVT_CONTEXTS(dvt_cpu())), DVT_OK);
            t = dvt_trainer_new(params, o);
            for (i = 0; i < 3; i++) {
                back(net, dvt_cpu(), 1 + i);
                CHECK_INT(dvt_trainer_step(t, 1), DVT_OK);
            }
            if (round == 1)
                CHECK_INT(dvt_params_reset_ctx(params, DVT_CONTEXTS(dvt_gpu(1), dvt_cpu())),
                          DVT_OK);
            for (i = 0; i < 2; i++) {
                back(net, dvt_cpu(), 2);
                if (round == 1)
                    back(net, dvt_gpu(1), 0);
                CHECK_INT(dvt_trainer_step(t, 1), DVT_OK);
                if (round == 0)
                    expected[i] = weight_on(net, dvt_cpu());
                else
                    CHECK(weight_on(net, dvt_gpu(1)) == expected[i] &&
                          weight_on(net, dvt_cpu()) == expected[i]);
            }
        }
    }
    dvt_set_virtual_gpus(0, 0);
}

/* ---- exhausted memory ---- */
typedef struct failing {
    long countdown; /* allocations that still succeed; negative: unlimited */
    bool for_ever;
} failing;

static bool fails(failing *f) {
    if (f->countdown < 0)
        return false;
    if (f->countdown > 0) {
        f->countdown--;
        return false;
    }
    if (!f->for_ever)
        f->countdown = -1;
    return true;
}

static void *failing_alloc(void *user, size_t bytes) {
    return fails((failing *)user) ? NULL : malloc(bytes);
}

static void *failing_resize(void *user, void *block, size_t bytes) {
    return fails((failing *)user) ? NULL : realloc(block, bytes);
}

static void failing_release(void *user, void *block) {
    (void)user;
    free(block);
}

/* Checks that a first step changes no weight and no gradient when one of its allocations fails, and
   succeeds when it is repeated. */
static void check_step_without_memory(dvt_ctx_list ctxs, bool for_ever) {
    failing f;
    dvt_allocator allocator;
    long n, failed = 0;
    allocator.alloc = failing_alloc;
    allocator.resize = failing_resize;
    allocator.release = failing_release;
    allocator.user = &f;
    for (n = 0; n < 200; n++) {
        dvt_status status = DVT_OK;
        DVT_SCOPE {
            dvt_block *net = plus(1);
            dvt_trainer *t;
            int k;
            CHECK_INT(dvt_block_initialize(net, dvt_init_zero(), ctxs), DVT_OK);
            t = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_adam(0.25));
            for (k = 0; k < ctxs.n; k++)
                back(net, ctxs.ctx[k], k + 1);
            CHECK_INT(dvt_wait_all(), DVT_OK);
            f.countdown = n;
            f.for_ever = for_ever;
            dvt_set_allocator(&allocator);
            status = dvt_trainer_step(t, 1);
            f.countdown = -1;
            /* The queues must release their blocks before the allocator changes. */
            CHECK_INT(dvt_wait_all(), DVT_OK);
            dvt_set_allocator(NULL);
            if (status != DVT_OK) {
                failed++;
                CHECK_INT(status, DVT_ERR_HOST_MEMORY);
                dvt_clear_error();
                CHECK_INT(dvt_trainer_steps(t), 0);
                for (k = 0; k < ctxs.n; k++) {
                    dvt_param *p = dvt_block_param(net, "weight");
                    CHECK_CLOSE(weight_on(net, ctxs.ctx[k]), 1, 0);
                    CHECK_CLOSE(dvt_item(dvt_param_grad(p, ctxs.ctx[k])), k + 1, 0);
                }
                CHECK_INT(dvt_trainer_step(t, 1), DVT_OK);
            }
            for (k = 0; k < ctxs.n; k++)
                CHECK_CLOSE(weight_on(net, ctxs.ctx[k]), 0.75, 1e-6);
        }
        if (status == DVT_OK && n > 20)
            break;
    }
    CHECK(failed > 3);
    CHECK(n < 200);
}

DVT_TEST(trainer_without_memory) {
    dvt_ctx_list lists[4];
    int i, n = context_lists(lists);
    check_step_without_memory(DVT_CONTEXTS(dvt_cpu()), false);
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    for (i = 0; i < n; i++) {
        check_step_without_memory(lists[i], false);
        check_step_without_memory(lists[i], true);
    }
    dvt_set_virtual_gpus(0, 0);
}
#endif
