/* Sums while backward runs: a deep net is trained with buckets and without, under everything that
   can happen between backward and the step. All parameters, and the gradients that a rank sees
   before the step, must have the same bits. Included by train.c after the implementation. */

enum {
    OVERLAP_PLAIN,
    OVERLAP_TWICE,   /* every second step has two backward passes */
    OVERLAP_SCALED,  /* rank 1 changes a gradient through its pointer */
    OVERLAP_FAILED,  /* a backward pass of rank 1 fails, and runs again */
    OVERLAP_FROZEN,  /* from step 3 on a layer has no gradients */
    OVERLAP_ADDED,   /* gradients are added up over two passes */
    OVERLAP_CLIPPED, /* dvt_trainer_allreduce, clipping, then update or step */
    OVERLAP_UNUSED,  /* a layer that no pass reaches, and dvt_trainer_step_partial */
    OVERLAP_ENDED,   /* another trainer is destroyed between its pass and its step */
    OVERLAP_MODES
};

enum { OVERLAP_STEPS = 6, OVERLAP_LAYERS = 8, OVERLAP_UNITS = 24 };

static int64_t sent_early, sent_late; /* bytes from the third step on */

/* Gives messages time to arrive, as in a pass of a larger net. */
static bool slow_complete(void *user, const char *function, dvt_array *leaf, dvt_array *grad) {
    bool good = dvti_buckets_hear(user, function, leaf, grad);
    dvti_sleep(1e-3);
    return good;
}

static dvt_array *deep_loss(dvt_block *net, int step, int pass) {
    const uint64_t key = (uint64_t)(100 * dvt_rank() + 10 * step + pass);
    dvt_array *x =
        dvt_key_uniform(dvt_key_new(key), -1, 1, DVT_SHAPE(4, OVERLAP_UNITS), DVT_F32, dvt_cpu());
    dvt_array *loss = NULL;
    DVT_RECORD {
        loss = dvt_loss_l2(dvt_block_forward(net, x), dvt_sum(x, DVT_AXES(1)));
    }
    return loss;
}

/* A pass that fails when it has sent some gradients: the first layer's input was overwritten. */
static void failing_pass(dvt_block *net, int step) {
    dvt_array *x = dvt_full(DVT_SHAPE(4, OVERLAP_UNITS), step, DVT_F32, dvt_cpu()), *loss = NULL;
    DVT_RECORD {
        loss = dvt_sum(dvt_block_forward(net, x), DVT_ALL);
    }
    dvt_fill(x, 0);
    if (dvt_backward(loss) == DVT_OK)
        fprintf(stderr, "the pass did not fail\n");
    dvt_clear_error();
}

static void hash_gradients(dvt_params *params, const dvt_param *except) {
    int i;
    for (i = 0; i < dvt_params_len(params); i++)
        if (dvt_params_at(params, i) != except) {
            dvt_array *g = dvt_param_grad(dvt_params_at(params, i), dvt_cpu());
            hash_bytes(dvt_data(g), (size_t)dvt_nbytes(g));
        }
}

static dvt_status deep_step(dvt_block *net, dvt_trainer *trainer, int mode, int step) {
    dvt_params *params = dvt_block_collect_params(net, NULL);
    dvt_param *last = dvt_params_at(params, 2 * (OVERLAP_LAYERS - 1));
    int64_t start, middle;
    dvt_status status = dvt_barrier_ranks();
    if (status != DVT_OK)
        return status;
    if (mode == OVERLAP_FAILED && dvt_rank() == 1)
        failing_pass(net, step);
    if (mode == OVERLAP_FROZEN && step == 3)
        dvt_param_set_grad_req(last, DVT_GRAD_NULL);
    if (mode == OVERLAP_ADDED)
        dvt_params_zero_grad(params);
    if (mode == OVERLAP_ADDED || (mode == OVERLAP_TWICE && step % 2))
        dvt_backward(deep_loss(net, step, 1));
    start = dvt_rank_bytes();
    dvt_backward(deep_loss(net, step, 0));
    middle = dvt_rank_bytes();
    if (mode == OVERLAP_SCALED && dvt_rank() == 1)
        ((float *)dvt_data(dvt_param_grad(last, dvt_cpu())))[3] += 1;
    hash_gradients(params, mode == OVERLAP_FROZEN ? last : NULL);
    if (mode == OVERLAP_CLIPPED) {
        status = dvt_trainer_allreduce(trainer);
        dvt_trainer_clip_global_norm(trainer, 0.5);
        if (status == DVT_OK)
            status = step % 2 ? dvt_trainer_update(trainer, 4) : dvt_trainer_step(trainer, 4);
    } else if (mode == OVERLAP_UNUSED) {
        status = dvt_trainer_step_partial(trainer, 4);
    } else {
        status = dvt_trainer_step(trainer, 4);
    }
    if (step >= 2) {
        sent_early += middle - start;
        sent_late += dvt_rank_bytes() - middle;
    }
    return status;
}

/* Trains with buckets of that size. Returns a hash; 0 on errors. */
static uint64_t deep_run(int mode, int64_t bucket) {
    dvt_block *net = dvt_nn_sequential(), *whole = net;
    dvt_trainer *trainer, *other;
    dvt_params *params;
    int i;
    hash = 1469598103934665603u;
    sent_early = sent_late = 0;
    dvt_seed(3);
    for (i = 0; i < OVERLAP_LAYERS; i++)
        DVT_NN_ADD(net, i + 1 < OVERLAP_LAYERS ? dvt_nn_dense(OVERLAP_UNITS, DVT_TANH)
                                               : dvt_nn_dense(1, DVT_IDENTITY));
    if (mode == OVERLAP_UNUSED) {
        whole = dvt_nn_sequential();
        DVT_NN_ADD(whole, net, dvt_nn_dense(5, DVT_IDENTITY));
    }
    dvt_block_initialize(whole, dvt_init_xavier(), DVT_CONTEXTS(dvt_cpu()));
    DVT_PREDICT_MODE {
        dvt_block_forward(whole, dvt_ones(DVT_SHAPE(1, OVERLAP_UNITS), DVT_F32, dvt_cpu()));
    }
    params = dvt_block_collect_params(whole, NULL);
    if (mode == OVERLAP_ADDED)
        for (i = 0; i < dvt_params_len(params); i++)
            dvt_param_set_grad_req(dvt_params_at(params, i), DVT_GRAD_ADD);
    trainer = dvt_trainer_new(params, dvt_optimizer_sgd(0.01));
    dvt_trainer_set_bucket_bytes(trainer, bucket);
    if (mode == OVERLAP_ENDED)
        DVT_SCOPE {
            other = dvt_trainer_new(params, dvt_optimizer_sgd(0.01));
            dvt_trainer_set_bucket_bytes(other, bucket);
            for (i = 0; i < 3; i++) {
                dvt_backward(deep_loss(net, 50 + i, 0));
                if (i < 2)
                    dvt_trainer_step(other, 4);
            }
        }
    for (i = 0; i < OVERLAP_STEPS; i++)
        DVT_SCOPE {
            if (deep_step(net, trainer, mode, i) != DVT_OK) {
                failed("step");
                return 0;
            }
        }
    for (i = 0; i < dvt_params_len(params); i++) {
        dvt_array *x = dvt_param_data(dvt_params_at(params, i), dvt_cpu());
        hash_bytes(dvt_data(x), (size_t)dvt_nbytes(x));
    }
    return dvt_error_code() == DVT_OK ? hash : 0;
}

static int overlap(void) {
    static const dvti_grad_watch slow = {slow_complete, NULL};
    int mode;
    for (mode = 0; mode < OVERLAP_MODES; mode++) {
        uint64_t without, with;
        dvti_buckets_begin();
        without = deep_run(mode, 0);
        if (mode == OVERLAP_PLAIN && (sent_early || (dvt_num_ranks() > 1 && !sent_late)))
            return failed("bytes were sent before the step");
        if ((mode == OVERLAP_PLAIN || mode == OVERLAP_CLIPPED) && dvt_num_ranks() > 1)
            dvti_watch_gradients(&slow);
        with = deep_run(mode, 2000);
        if (!without || with != without) {
            fprintf(stderr, "rank %d, mode %d: other bits with buckets: %s\n", dvt_rank(), mode,
                    dvt_error());
            return 1;
        }
        if ((mode == OVERLAP_PLAIN || mode == OVERLAP_CLIPPED) && sent_early < sent_late) {
            fprintf(stderr, "rank %d: %lld of %lld bytes were sent before the step\n", dvt_rank(),
                    (long long)sent_early, (long long)(sent_early + sent_late));
            return 1;
        }
    }
    return 0;
}

/* Rank 1 dies when its second bucket is on the way. */
static bool dying_complete(void *user, const char *function, dvt_array *leaf, dvt_array *grad) {
    bool good = dvti_buckets_hear(user, function, leaf, grad);
    if (dvt_rank() == 1 && dvti_buckets_list && dvti_buckets_list->started == 2)
        raise(SIGKILL);
    return good;
}

static int dies_early(void) {
    static const dvti_grad_watch dying = {dying_complete, NULL};
    dvti_watch_gradients(&dying);
    return deep_run(OVERLAP_PLAIN, 2000) ? 0 : 1;
}

/* Prints the best of 18 steps with buckets and without, three times each: `train time UNITS`. */
static int step_times(int64_t units) {
    int turn, i;
    for (turn = 0; turn < 6; turn++)
        DVT_SCOPE {
            dvt_block *net = dvt_nn_sequential();
            dvt_trainer *trainer;
            dvt_array *x = dvt_uniform(-1, 1, DVT_SHAPE(64, units), DVT_F32, dvt_cpu());
            double best = 1e9;
            sent_early = sent_late = 0;
            for (i = 0; i < 12; i++)
                DVT_NN_ADD(net, dvt_nn_dense(units, DVT_RELU));
            dvt_block_initialize(net, dvt_init_xavier(), DVT_CONTEXTS(dvt_cpu()));
            dvt_block_forward(net, x);
            trainer =
                dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_sgd(0.001));
            if (turn % 2 == 0)
                dvt_trainer_set_bucket_bytes(trainer, 0);
            for (i = 0; i < 22; i++)
                DVT_SCOPE {
                    const double begin = dvti_now();
                    const int64_t start = dvt_rank_bytes();
                    int64_t middle;
                    dvt_array *loss = NULL;
                    DVT_RECORD {
                        loss = dvt_loss_l2(dvt_block_forward(net, x), x);
                    }
                    dvt_backward(loss);
                    middle = dvt_rank_bytes();
                    if (dvt_trainer_step(trainer, 64) != DVT_OK)
                        return failed("step");
                    if (i < 4)
                        continue;
                    best = fmin(best, dvti_now() - begin);
                    sent_early += middle - start;
                    sent_late += dvt_rank_bytes() - middle;
                }
            if (dvt_rank() == 0)
                printf("%s buckets: %.1f ms, %.0f %% sent before the step\n",
                       turn % 2 ? "with" : "without", 1e3 * best,
                       100.0 * (double)sent_early / (double)(sent_early + sent_late));
        }
    return 0;
}
