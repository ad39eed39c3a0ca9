/* Tests of training in mixed precision. It reaches the loss of float32. The loss scale rescues
   small gradients, skips steps that overflow, and grows. Resumed and parallel runs have the same
   bits. */
#include "dvt_test.h"
#if !defined(DEVTENSOR_NO_NN)

typedef struct run {
    dvt_block *net;
    dvt_params *params;
    dvt_trainer *trainer;
    dvt_ctx_list ctxs;
} run;

/* LeNet's kinds of blocks, or a recurrent net over rows. */
static dvt_block *make_net(int kind) {
    dvt_block *net = dvt_nn_sequential();
    if (kind == 0)
        DVT_NN_ADD(net, dvt_nn_conv2d(4, 3, DVT_RELU), dvt_nn_batch_norm(), dvt_nn_max_pool2d(2, 2),
                   dvt_nn_dense(12, DVT_TANH), dvt_nn_dropout(0.1), dvt_nn_dense(3, DVT_IDENTITY));
    else
        DVT_NN_ADD(net, dvt_nn_embedding(16, 8), dvt_nn_lstm(8), dvt_nn_layer_norm(),
                   dvt_nn_dense(3, DVT_IDENTITY));
    return net;
}

static dvt_array *make_x(int kind, int64_t rows) {
    return kind == 0
               ? dvt_key_normal(dvt_key_new(1), 0, 1, DVT_SHAPE(rows, 1, 6, 6), DVT_F32, dvt_cpu())
               : dvt_key_randint(dvt_key_new(1), 0, 16, DVT_SHAPE(rows, 5), DVT_I64, dvt_cpu());
}

static dvt_array *make_y(int64_t rows) {
    return dvt_key_randint(dvt_key_new(2), 0, 3, DVT_SHAPE(rows), DVT_I32, dvt_cpu());
}

static run run_new(int kind, dvt_dtype compute, dvt_optimizer optimizer, dvt_ctx_list ctxs) {
    run r;
    int k;
    r.ctxs = ctxs;
    dvt_seed(11);
    r.net = make_net(kind);
    if (compute != DVT_F32)
        CHECK_INT(dvt_block_set_mixed_precision(r.net, compute), DVT_OK);
    CHECK_INT(dvt_block_initialize(r.net, dvt_init_xavier(), ctxs), DVT_OK);
    for (k = 0; k < ctxs.n; k++) /* makes the values of all parameters */
        CHECK(dvt_block_forward(r.net, dvt_as_in_ctx(make_x(kind, 2), ctxs.ctx[k])) != NULL);
    r.params = dvt_block_collect_params(r.net, NULL);
    r.trainer = dvt_trainer_new(r.params, optimizer);
    return r;
}

static void set_scale(const run *r, double scale, int64_t interval, bool fixed) {
    dvt_loss_scaling options;
    memset(&options, 0, sizeof options);
    options.init_scale = scale;
    options.growth_interval = interval;
    options.fixed = fixed;
    CHECK_INT(dvt_block_set_loss_scaling(r->net, &options), DVT_OK);
}

/* Runs forward and backward with losses times `factor`. Returns the mean loss. */
static double gradients(run *r, dvt_array *x, dvt_array *y, double factor) {
    dvt_array *xs[DVT_MAX_CONTEXTS], *ys[DVT_MAX_CONTEXTS], *loss = NULL;
    double sum = 0;
    int k;
    CHECK_INT(dvt_split_and_load(x, r->ctxs, xs), DVT_OK);
    CHECK_INT(dvt_split_and_load(y, r->ctxs, ys), DVT_OK);
    for (k = 0; k < r->ctxs.n; k++) {
        DVT_RECORD {
            loss = dvt_loss_softmax_cross_entropy(dvt_block_forward(r->net, xs[k]), ys[k]);
            loss = dvt_mul_scalar(loss, factor);
        }
        sum += dvt_item(dvt_mean(loss, DVT_ALL)) / factor / r->ctxs.n;
        CHECK_INT(dvt_backward(loss), DVT_OK);
    }
    return sum;
}

static double run_steps(run *r, int kind, int n) {
    double loss = 0;
    while (n-- > 0)
        DVT_SCOPE {
            loss = gradients(r, make_x(kind, 12), make_y(12), 1);
            CHECK_INT(dvt_trainer_step(r->trainer, 12), DVT_OK);
        }
    return loss;
}

/* Returns a hash of the bits of all copies of all parameters. */
static uint64_t run_bits(const run *r) {
    uint64_t sum = 0;
    int i, k;
    for (i = 0; i < dvt_params_len(r->params); i++)
        for (k = 0; k < r->ctxs.n; k++)
            DVT_SCOPE {
                dvt_array *x = dvt_param_data(dvt_params_at(r->params, i), r->ctxs.ctx[k]);
                uint32_t word[2048];
                int64_t n = dvt_size(x), j;
                CHECK(n <= 2048 && dvt_dtype_of(x) == DVT_F32);
                CHECK_INT(dvt_to_host(x, word, dvt_nbytes(x)), DVT_OK);
                for (j = 0; j < n; j++)
                    sum = (sum ^ word[j]) * 1099511628211u;
            }
    return sum;
}

static dvt_mixed_precision state_of(const run *r) {
    return dvt_block_mixed_precision(r->net);
}

static dvt_optimizer momentum(void) {
    dvt_optimizer sgd = dvt_optimizer_sgd(0.1);
    sgd.momentum = 0.9;
    sgd.weight_decay = 0.001;
    sgd.schedule = dvt_schedule_factor(3, 0.9, 0);
    return sgd;
}

/* ---- the loss that it reaches ---- */
DVT_TEST(mixed_training_reaches_the_loss_of_float32) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F16, DVT_BF16};
    int kind, i;
    for (kind = 0; kind < 2; kind++) {
        double loss[3];
        for (i = 0; i < 3; i++)
            DVT_SCOPE {
                run r = run_new(kind, dtypes[i], dvt_optimizer_adam(0.02),
                                DVT_CONTEXTS(dvt_test_ctx()));
                double first = run_steps(&r, kind, 1);
                loss[i] = run_steps(&r, kind, 40);
                CHECK(first > 0.9);
                CHECK(loss[i] < 0.1 * first);
                CHECK(state_of(&r).skipped_steps <= 6); /* the first scale may be too large */
                CHECK_INT(dvt_trainer_steps(r.trainer), 41 - state_of(&r).skipped_steps);
            }
        CHECK_CLOSE(loss[1], loss[0], 0.03);
        CHECK_CLOSE(loss[2], loss[0], 0.06);
    }
}

/* ---- underflow ---- */
/* Gradients of the order 1e-9 are 0 in float16. */
DVT_TEST(mixed_scale_rescues_small_gradients) {
    dvt_ctx_list ctxs = DVT_CONTEXTS(dvt_test_ctx());
    dvt_optimizer sgd = dvt_optimizer_sgd(1e8);
    double last[2], first = 0;
    int scaled, step;
    for (scaled = 0; scaled < 2; scaled++)
        DVT_SCOPE {
            run r = run_new(1, DVT_F16, sgd, ctxs);
            set_scale(&r, scaled ? ldexp(1, 24) : 1, 0, true);
            for (step = 0; step < 30; step++)
                DVT_SCOPE {
                    last[scaled] = gradients(&r, make_x(1, 12), make_y(12), 1e-9);
                    if (step == 0)
                        first = last[scaled];
                    CHECK_INT(dvt_trainer_step(r.trainer, 12), DVT_OK);
                }
            CHECK_INT(state_of(&r).skipped_steps, 0);
        }
    CHECK_CLOSE(last[0], first, 0);
    CHECK(last[1] < 0.8 * first);
}

/* ---- overflow ---- */
DVT_TEST(mixed_overflow_skips_the_step) {
    dvt_ctx_list ctxs = DVT_CONTEXTS(dvt_test_ctx());
    run r = run_new(1, DVT_F16, momentum(), ctxs), other;
    dvt_array *x = make_x(1, 12), *y = make_y(12);
    uint64_t before = run_bits(&r);
    double rate = dvt_trainer_learning_rate(r.trainer);
    int step;
    CHECK_INT(dvt_trainer_steps(r.trainer), 0);
    for (step = 0; step < 4; step++) { /* infinite whatever the scale is */
        DVT_SCOPE {
            gradients(&r, x, y, 1e30);
        }
        CHECK_INT(dvt_trainer_step(r.trainer, 12), DVT_OK);
        CHECK(run_bits(&r) == before);
        CHECK_INT(dvt_trainer_steps(r.trainer), 0);
        CHECK_CLOSE(dvt_trainer_learning_rate(r.trainer), rate, 0);
        CHECK_INT(state_of(&r).skipped_steps, step + 1);
        CHECK_CLOSE(state_of(&r).loss_scale, ldexp(1, 15 - step), 0);
        /* its gradients are used */
        CHECK_ERROR(dvt_trainer_step(r.trainer, 12), DVT_ERR_STALE_GRAD);
    }
    /* it recovers: neither momentum nor counts know of the skipped steps */
    run_steps(&r, 1, 6);
    CHECK(dvt_trainer_steps(r.trainer) >= 4);
    CHECK_INT(dvt_trainer_steps(r.trainer), 10 - state_of(&r).skipped_steps);
    other = run_new(1, DVT_F16, momentum(), ctxs);
    set_scale(&other, 4096, 0, false);
    run_steps(&other, 1, 6);
    CHECK_INT(dvt_trainer_steps(other.trainer), dvt_trainer_steps(r.trainer));
    CHECK(run_bits(&other) == run_bits(&r));
}

DVT_TEST(mixed_scale_grows_within_limits) {
    dvt_ctx_list ctxs = DVT_CONTEXTS(dvt_test_ctx());
    run r = run_new(1, DVT_F16, dvt_optimizer_sgd(0), ctxs);
    set_scale(&r, 16, 3, false);
    run_steps(&r, 1, 2);
    CHECK_CLOSE(state_of(&r).loss_scale, 16, 0);
    run_steps(&r, 1, 1);
    CHECK_CLOSE(state_of(&r).loss_scale, 32, 0);
    run_steps(&r, 1, 2);
    DVT_SCOPE {
        gradients(&r, make_x(1, 12), make_y(12), 1e30);
    }
    CHECK_INT(dvt_trainer_step(r.trainer, 12), DVT_OK); /* the count begins again */
    run_steps(&r, 1, 2);
    CHECK_CLOSE(state_of(&r).loss_scale, 16, 0);
    run_steps(&r, 1, 1);
    CHECK_CLOSE(state_of(&r).loss_scale, 32, 0);
    set_scale(&r, ldexp(1, 24), 1, false);
    DVT_SCOPE {
        gradients(&r, make_x(1, 12), make_y(12), 1e-6);
    }
    CHECK_INT(dvt_trainer_step(r.trainer, 12), DVT_OK);
    CHECK_CLOSE(state_of(&r).loss_scale, ldexp(1, 24), 0);
    set_scale(&r, 8, 1, true);
    run_steps(&r, 1, 2);
    CHECK_CLOSE(state_of(&r).loss_scale, 8, 0);
}

static int warnings;

static void count_warnings(void *user, dvt_log_level level, const char *message) {
    (void)user;
    warnings += level == DVT_LOG_WARNING &&
                (strstr(message, " not finite") || strstr(message, "the norm is"));
}

DVT_TEST(mixed_warns_at_the_smallest_scale) {
    run r = run_new(1, DVT_F16, dvt_optimizer_sgd(0.1), DVT_CONTEXTS(dvt_cpu()));
    int step;
    set_scale(&r, ldexp(1, -22), 0, false);
    warnings = 0;
    dvt_set_logger(count_warnings, NULL);
    for (step = 0; step < 4; step++)
        DVT_SCOPE {
            gradients(&r, make_x(1, 4), make_y(4), (double)NAN);
            CHECK_INT(dvt_trainer_step(r.trainer, 4), DVT_OK);
        }
    dvt_set_logger(NULL, NULL);
    CHECK_INT(warnings, 1);
    CHECK_CLOSE(state_of(&r).loss_scale, ldexp(1, -24), 0);
    CHECK_INT(state_of(&r).skipped_steps, 4);
}

/* bfloat16 has no check unless a scale is set. */
DVT_TEST(mixed_bfloat16_has_no_scale) {
    run r = run_new(1, DVT_BF16, dvt_optimizer_sgd(0.1), DVT_CONTEXTS(dvt_cpu()));
    CHECK_CLOSE(state_of(&r).loss_scale, 1, 0);
    run_steps(&r, 1, 2);
    CHECK_INT(dvt_trainer_steps(r.trainer), 2);
    set_scale(&r, 0, 1, false);
    run_steps(&r, 1, 1);
    CHECK_CLOSE(state_of(&r).loss_scale, 2, 0);
}

/* ---- other ways to step ---- */
DVT_TEST(mixed_update_clip_and_added_gradients) {
    dvt_ctx_list ctxs = DVT_CONTEXTS(dvt_cpu(), dvt_cpu_id(1));
    run r = run_new(1, DVT_F16, dvt_optimizer_sgd(0.1), ctxs);
    run plain = run_new(1, DVT_F32, dvt_optimizer_sgd(0.1), ctxs);
    dvt_array *x = make_x(1, 12), *y = make_y(12);
    uint64_t before;
    double norm, expected;
    int i;
    set_scale(&r, 1024, 0, false);
    gradients(&r, x, y, 1);
    gradients(&plain, x, y, 1);
    CHECK_INT(dvt_trainer_allreduce(r.trainer), DVT_OK);
    CHECK_INT(dvt_trainer_allreduce(plain.trainer), DVT_OK);
    norm = dvt_trainer_clip_global_norm(r.trainer, 1e9); /* gradients without the scale */
    expected = dvt_trainer_clip_global_norm(plain.trainer, 1e9);
    CHECK_CLOSE(norm / expected, 1, 0.01);
    CHECK_INT(dvt_trainer_update(r.trainer, 12), DVT_OK);
    CHECK_INT(dvt_trainer_steps(r.trainer), 1);
    /* an overflow on the second context alone */
    before = run_bits(&r);
    DVT_RECORD {
        dvt_array *rows[2], *classes[2], *loss;
        CHECK_INT(dvt_split_and_load(x, ctxs, rows), DVT_OK);
        CHECK_INT(dvt_split_and_load(y, ctxs, classes), DVT_OK);
        for (i = 0; i < 2; i++) {
            loss = dvt_loss_softmax_cross_entropy(dvt_block_forward(r.net, rows[i]), classes[i]);
            CHECK_INT(dvt_backward(dvt_mul_scalar(loss, i ? 1e30 : 1)), DVT_OK);
        }
    }
    CHECK_INT(dvt_trainer_allreduce(r.trainer), DVT_OK);
    warnings = 0;
    dvt_set_logger(count_warnings, NULL);
    CHECK(!(dvt_trainer_clip_global_norm(r.trainer, 1) < INFINITY));
    CHECK_INT(warnings, 0);
    dvt_set_logger(NULL, NULL);
    CHECK_INT(dvt_trainer_update(r.trainer, 12), DVT_OK);
    CHECK(run_bits(&r) == before);
    CHECK_INT(state_of(&r).skipped_steps, 1);
    /* two backward passes between steps */
    CHECK_INT(dvt_params_set_grad_req(r.params, DVT_GRAD_ADD), DVT_OK);
    CHECK_INT(dvt_params_zero_grad(r.params), DVT_OK);
    gradients(&r, x, y, 1);
    gradients(&r, x, y, 1);
    CHECK_INT(dvt_trainer_step_partial(r.trainer, 24), DVT_OK);
    CHECK(run_bits(&r) != before);
    CHECK_INT(dvt_trainer_steps(r.trainer), 2);
}

DVT_TEST(mixed_predicts_with_the_same_bits) {
    run r = run_new(0, DVT_F16, momentum(), DVT_CONTEXTS(dvt_test_ctx()));
    dvt_array *x = dvt_as_in_ctx(make_x(0, 4), dvt_test_ctx()), *a, *b = NULL;
    set_scale(&r, 256, 0, false);
    run_steps(&r, 0, 2);
    a = dvt_block_forward(r.net, x);
    DVT_RECORD_PREDICT {
        b = dvt_block_forward(r.net, x);
    }
    CHECK_INT(dvt_dtype_of(a), DVT_F32);
    CHECK_CLOSE(dvt_item(dvt_max(dvt_abs(dvt_sub(a, b)), DVT_ALL)), 0, 0);
}

DVT_TEST(mixed_two_nets_in_one_trainer) {
    dvt_block *both = dvt_nn_sequential(), *a = dvt_nn_dense(2, DVT_RELU),
              *b = dvt_nn_dense(1, DVT_IDENTITY);
    dvt_array *x = dvt_ones(DVT_SHAPE(1, 2), DVT_F32, dvt_cpu()), *y = NULL;
    dvt_trainer *trainer;
    CHECK_INT(dvt_block_set_mixed_precision(a, DVT_F16), DVT_OK);
    CHECK_INT(dvt_block_set_mixed_precision(b, DVT_F16), DVT_OK);
    DVT_NN_ADD(both, a, b);
    CHECK_INT(dvt_block_initialize(both, dvt_init_constant(0.5), DVT_CONTEXTS(dvt_cpu())), DVT_OK);
    trainer = dvt_trainer_new(dvt_block_collect_params(both, NULL), dvt_optimizer_sgd(0.1));
    DVT_RECORD {
        y = dvt_mul_scalar(dvt_block_forward(both, x), 0.125);
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
    /* each net has its own scale, and the gradients are right */
    CHECK_VALUES(dvt_param_grad(dvt_block_param(a, "weight"), dvt_cpu()), 0, 0.0625, 0.0625, 0.0625,
                 0.0625);
    CHECK_ERROR(dvt_trainer_step(trainer, 1), DVT_ERR_VALUE);
    CHECK_INT(dvt_block_set_mixed_precision(b, DVT_F32), DVT_OK);
    CHECK_INT(dvt_trainer_step(trainer, 1), DVT_OK);
}

/* A block that outlives its net is a net of its own. */
DVT_TEST(mixed_after_the_net_is_freed) {
    dvt_block *dense = NULL;
    DVT_SCOPE {
        dvt_block *net = dvt_nn_sequential();
        dense = dvt_nn_dense(2, DVT_IDENTITY);
        DVT_NN_ADD(net, dense);
        CHECK_INT(dvt_block_set_mixed_precision(net, DVT_F16), DVT_OK);
        dvt_keep(dense);
    }
    CHECK_INT(dvt_block_mixed_precision(dense).compute, DVT_F16);
    CHECK_INT(dvt_block_set_mixed_precision(dense, DVT_BF16), DVT_OK);
    CHECK_INT(dvt_block_mixed_precision(dense).compute, DVT_BF16);
    CHECK_INT(dvt_block_set_mixed_precision(dense, DVT_F32), DVT_OK);
    CHECK_INT(dvt_block_mixed_precision(dense).compute, DVT_F32);
}

/* ---- the same bits ---- */
DVT_TEST(mixed_parts_have_the_same_bits_on_any_contexts) {
    dvt_ctx_list lists[3];
    uint64_t bits[3];
    int i, step;
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    lists[0] = DVT_CONTEXTS(dvt_cpu());
    lists[1] = DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(1));
    lists[2] = DVT_CONTEXTS(dvt_gpu(1), dvt_cpu(), dvt_gpu(0));
    if (dvt_test_on_gpus())
        lists[0] = DVT_CONTEXTS(dvt_gpu(0)), lists[2] = DVT_CONTEXTS(dvt_gpu(1), dvt_gpu(0));
    for (i = 0; i < 3; i++)
        DVT_SCOPE {
            run r = run_new(0, DVT_F16, momentum(), lists[i]);
            dvt_array *px, *py;
            set_scale(&r, 256, 0, false);
            CHECK_INT(dvt_trainer_set_parts(r.trainer, 4), DVT_OK);
            for (step = 0; step < 4; step++)
                DVT_SCOPE {
                    dvt_array *x = make_x(0, 12), *y = make_y(12), *loss = NULL;
                    DVT_FOR_TRAINER_PARTS(r.trainer, x, y, px, py) {
                        DVT_RECORD {
                            loss = dvt_block_forward(r.net, px);
                            loss = dvt_loss_softmax_cross_entropy(loss, py);
                            if (step == 1) /* one part of the batch overflows */
                                loss = dvt_mul_scalar(
                                    loss, dvt_item(dvt_sum(py, DVT_ALL)) > 2 ? 1e30 : 1);
                        }
                        CHECK_INT(dvt_backward(loss), DVT_OK);
                    }
                    CHECK_INT(dvt_trainer_step(r.trainer, 12), DVT_OK);
                }
            CHECK_INT(dvt_trainer_steps(r.trainer), 3);

            CHECK_INT(state_of(&r).skipped_steps, 1);
            r.ctxs.n = 1;
            bits[i] = run_bits(&r);
        }
    CHECK(bits[1] == bits[0]);
    CHECK(bits[2] == bits[0]);
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

#if !defined(DEVTENSOR_NO_FILES) && !defined(DEVTENSOR_NO_FORMATS)
static dvt_checkpoint described(const run *r) {
    dvt_checkpoint c;
    memset(&c, 0, sizeof c);
    c.net = r->net;
    c.trainer = r->trainer;
    return c;
}

DVT_TEST(mixed_resumes_with_the_same_bits) {
    dvt_ctx_list ctxs = DVT_CONTEXTS(dvt_cpu());
    run r = run_new(0, DVT_F16, momentum(), ctxs), other;
    dvt_checkpoint c = described(&r);
    dvt_mixed_precision before;
    char path[300];
    const char *base = getenv("TMPDIR");
    uint64_t expected;
    snprintf(path, sizeof path, "%s/dvt-mixed.safetensors", base && base[0] ? base : "/tmp");
    set_scale(&r, 128, 4, false); /* grows after 4 steps, the last one after the checkpoint */
    run_steps(&r, 0, 3);
    DVT_SCOPE {
        gradients(&r, make_x(0, 12), make_y(12), 1e30);
    }
    CHECK_INT(dvt_trainer_step(r.trainer, 12), DVT_OK);
    run_steps(&r, 0, 2);
    before = state_of(&r);
    CHECK_INT(dvt_checkpoint_save(&c, path), DVT_OK);
    run_steps(&r, 0, 3);
    expected = run_bits(&r);
    CHECK_CLOSE(state_of(&r).loss_scale, 128, 0);
    other = run_new(0, DVT_F16, momentum(), ctxs);
    set_scale(&other, 0, 4, false);
    c = described(&other);
    CHECK_INT(dvt_checkpoint_load(&c, path), DVT_OK);
    CHECK_CLOSE(state_of(&other).loss_scale, before.loss_scale, 0);
    CHECK_INT(state_of(&other).skipped_steps, 1);
    run_steps(&other, 0, 3);
    CHECK(run_bits(&other) == expected);
    CHECK_CLOSE(state_of(&other).loss_scale, 128, 0);
    /* another precision is another run */
    other = run_new(0, DVT_F32, momentum(), ctxs);
    c = described(&other);
    CHECK_ERROR(dvt_checkpoint_load(&c, path), DVT_ERR_VALUE);
    c.other_settings = true;
    CHECK_INT(dvt_checkpoint_load(&c, path), DVT_OK);
    c = described(&other);
    CHECK_INT(dvt_checkpoint_save(&c, path), DVT_OK);
    CHECK_INT(dvt_checkpoint_load(&c, path), DVT_OK);
    other = run_new(0, DVT_BF16, momentum(), ctxs);
    c = described(&other);
    CHECK_ERROR(dvt_checkpoint_load(&c, path), DVT_ERR_VALUE);
    remove(path);
}
#endif
#endif
