/* Tests that gradients are summed over the contexts exactly once, or that the call fails, for any
   order of allreduce, step and update. */
#include "plus_block.h"
#if !defined(DEVTENSOR_NO_NN)

typedef struct trained {
    dvt_block *net;
    dvt_params *params;
    dvt_trainer *trainer;
    dvt_ctx a, b;
} trained;

/* Returns a net with weight 0 on two contexts and learning rate 1. */
static trained trained_on(dvt_ctx_list ctxs) {
    trained t;
    t.net = plus(0);
    t.params = dvt_block_collect_params(t.net, NULL);
    t.a = ctxs.ctx[0];
    t.b = ctxs.ctx[1];
    CHECK_INT(dvt_block_initialize(t.net, dvt_init_zero(), ctxs), DVT_OK);
    t.trainer = dvt_trainer_new(t.params, dvt_optimizer_sgd(1));
    return t;
}

static void back_both(trained t, double on_a, double on_b) {
    back(t.net, t.a, on_a);
    back(t.net, t.b, on_b);
}

static void check_weights(trained t, double expected) {
    CHECK_CLOSE(weight_on(t.net, t.a), expected, 0);
    CHECK_CLOSE(weight_on(t.net, t.b), expected, 0);
}

static void check_gradients(trained t, double expected) {
    dvt_param *p = dvt_params_at(t.params, 0);
    CHECK_CLOSE(dvt_item(dvt_param_grad(p, t.a)), expected, 0);
    CHECK_CLOSE(dvt_item(dvt_param_grad(p, t.b)), expected, 0);
}

/* Checks that the second sum is refused and nothing has changed. The message names the call, the
   parameter and the alternative. */
static void check_refused(trained t, dvt_status status, const char *function, double weight) {
    CHECK_INT(status, DVT_ERR_VALUE);
    CHECK(strncmp(dvt_error(), function, strlen(function)) == 0);
    CHECK(strstr(dvt_error(), dvt_param_name(dvt_params_at(t.params, 0))) &&
          strstr(dvt_error(), "dvt_trainer_update"));
    dvt_clear_error();
    check_weights(t, weight);
}

static void each_list(void (*check)(dvt_ctx_list ctxs)) {
    dvt_ctx_list lists[4];
    int i, n = context_lists(lists);
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    for (i = 0; i < n; i++)
        DVT_SCOPE {
            check(lists[i]);
        }
    dvt_set_virtual_gpus(0, 0);
}

static void step_after_allreduce(dvt_ctx_list ctxs) {
    trained t = trained_on(ctxs);
    back_both(t, 3, 5);
    CHECK_INT(dvt_trainer_allreduce(t.trainer), DVT_OK);
    CHECK_INT(dvt_trainer_step(t.trainer, 1), DVT_OK);
    check_weights(t, -8);
    back_both(t, 1, 2);
    CHECK_INT(dvt_trainer_allreduce(t.trainer), DVT_OK);
    CHECK_INT(dvt_trainer_allreduce(t.trainer), DVT_OK);
    check_gradients(t, 3);
    CHECK_INT(dvt_trainer_step_partial(t.trainer, 1), DVT_OK);
    check_weights(t, -11);
    CHECK_ERROR(dvt_trainer_step(t.trainer, 1), DVT_ERR_STALE_GRAD);
    /* Nor are the sums of the last step summed again. */
    CHECK_INT(dvt_trainer_allreduce(t.trainer), DVT_OK);
    check_gradients(t, 3);
    /* An unused sum is discarded when every context has new gradients. */
    back_both(t, 10, 20);
    CHECK_INT(dvt_trainer_allreduce(t.trainer), DVT_OK);
    back_both(t, 1, 1);
    CHECK_INT(dvt_trainer_step(t.trainer, 1), DVT_OK);
    check_weights(t, -13);
}

DVT_TEST(trainer_step_after_allreduce_sums_once) {
    each_list(step_after_allreduce);
}

static void renewed_on_one(dvt_ctx_list ctxs) {
    trained t = trained_on(ctxs);
    back_both(t, 3, 5);
    CHECK_INT(dvt_trainer_allreduce(t.trainer), DVT_OK);
    back(t.net, t.b, 1);
    check_refused(t, dvt_trainer_step(t.trainer, 1), "dvt_trainer_step: ", 0);
    check_refused(t, dvt_trainer_allreduce(t.trainer), "dvt_trainer_allreduce: ", 0);
    CHECK_ERROR(dvt_trainer_update(t.trainer, 1), DVT_ERR_VALUE);
    back(t.net, t.a, 1);
    CHECK_INT(dvt_trainer_step(t.trainer, 1), DVT_OK);
    check_weights(t, -2);
    /* The other context did not contribute: its old sum is stale and counts as 0. */
    back(t.net, t.b, 4);
    CHECK_INT(dvt_trainer_step_partial(t.trainer, 1), DVT_OK);
    check_weights(t, -6);
}

DVT_TEST(trainer_refuses_sums_of_sums) {
    each_list(renewed_on_one);
}

static void added_to_a_sum(dvt_ctx_list ctxs) {
    trained t = trained_on(ctxs);
    CHECK_INT(dvt_params_set_grad_req(t.params, DVT_GRAD_ADD), DVT_OK);
    back_both(t, 1, 2);
    CHECK_INT(dvt_trainer_allreduce(t.trainer), DVT_OK);
    back_both(t, 3, 4);
    check_refused(t, dvt_trainer_step(t.trainer, 1), "dvt_trainer_step: ", 0);
    CHECK_ERROR(dvt_trainer_update(t.trainer, 1), DVT_ERR_VALUE);
    CHECK_INT(dvt_params_zero_grad(t.params), DVT_OK);
    back_both(t, 1, 2);
    back_both(t, 3, 4);
    CHECK_INT(dvt_trainer_allreduce(t.trainer), DVT_OK);
    check_gradients(t, 10);
    CHECK_INT(dvt_trainer_step(t.trainer, 1), DVT_OK);
    check_weights(t, -10);
    /* The same holds when the step itself computed the sum. */
    back_both(t, 1, 1);
    check_refused(t, dvt_trainer_step(t.trainer, 1), "dvt_trainer_step: ", -10);
    CHECK_INT(dvt_params_zero_grad(t.params), DVT_OK);
    back_both(t, 1, 1);
    CHECK_INT(dvt_trainer_step(t.trainer, 1), DVT_OK);
    check_weights(t, -12);
    /* Setting gradients to zero is a change by the caller: allreduce uses the other gradients. */
    back_both(t, 1, 1);
    CHECK_INT(dvt_params_zero_grad(t.params), DVT_OK);
    back_both(t, 0, 0);
    CHECK_INT(dvt_trainer_allreduce(t.trainer), DVT_OK);
    CHECK_INT(dvt_params_zero_grad(t.params), DVT_OK);
    CHECK_INT(dvt_trainer_update(t.trainer, 1), DVT_OK);
    check_weights(t, -12);
}

DVT_TEST(trainer_refuses_gradients_added_to_a_sum) {
    each_list(added_to_a_sum);
}

/* Parameters with new values have zero gradients that belong to no sum. */
DVT_TEST(trainer_sums_after_parameters_were_reset) {
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    DVT_SCOPE {
        dvt_ctx_list ctxs = DVT_CONTEXTS(dvt_gpu(0), dvt_cpu());
        trained t = trained_on(ctxs);
        back_both(t, 3, 5);
        CHECK_INT(dvt_trainer_allreduce(t.trainer), DVT_OK);
        CHECK_INT(dvt_params_reset_ctx(t.params, DVT_CONTEXTS(dvt_cpu(), dvt_gpu(1))), DVT_OK);
        t.a = dvt_cpu();
        t.b = dvt_gpu(1);
        CHECK_INT(dvt_trainer_allreduce(t.trainer), DVT_OK);
        check_gradients(t, 0);
        back_both(t, 2, 2);
        CHECK_INT(dvt_trainer_step(t.trainer, 1), DVT_OK);
        check_weights(t, -4);
    }
    dvt_set_virtual_gpus(0, 0);
}

/* A context that is listed twice adds up gradients within a batch, but not after the sum of that
   batch. */
DVT_TEST(trainer_repeated_contexts_add_within_a_batch) {
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    DVT_SCOPE {
        trained t = trained_on(DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(0), dvt_gpu(1)));
        t.b = dvt_gpu(1);
        back_both(t, 1, 4);
        back(t.net, t.a, 2);
        CHECK_INT(dvt_trainer_allreduce(t.trainer), DVT_OK);
        check_gradients(t, 7);
        back_both(t, 1, 1);
        back(t.net, t.a, 1);
        CHECK_INT(dvt_trainer_step(t.trainer, 1), DVT_OK);
        check_weights(t, -3);
    }
    dvt_set_virtual_gpus(0, 0);
}

/* On one context there is nothing to sum, so allreduce has no effect. */
DVT_TEST(trainer_step_after_allreduce_on_one_context) {
    dvt_block *net = plus(0);
    dvt_trainer *t;
    CHECK_INT(dvt_block_initialize(net, dvt_init_zero(), DVT_CONTEXTS(dvt_cpu())), DVT_OK);
    t = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_sgd(1));
    back(net, dvt_cpu(), 3);
    CHECK_INT(dvt_trainer_allreduce(t), DVT_OK);
    CHECK_INT(dvt_trainer_step(t, 1), DVT_OK);
    CHECK_CLOSE(weight_on(net, dvt_cpu()), -3, 0);
}
#endif
