/* Sums while backward runs: a deep net is trained with buckets and without, under everything that
   can happen between backward and the step. All parameters, and the gradients that a rank sees
   before the step, must have the same bits. Buckets leave from the contexts of overlap_ctxs, by
   messages or NCCL. Included by train.c after the implementation. */

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
    OVERLAP_DTYPES,  /* layers of another dtype */
    OVERLAP_MEMORY,  /* rank 1 has no memory for a bucket in a backward pass, which runs again */
    OVERLAP_STALE,   /* only the first context has a pass; dvt_trainer_step_partial */
    OVERLAP_MODES
};

enum { OVERLAP_STEPS = 5, OVERLAP_UNITS = 24 };

static dvt_ctx_list overlap_ctxs; /* of this rank */
static bool overlap_nccl;         /* buckets go by NCCL */
static dvt_dtype overlap_dtype;   /* of some layers */
static int overlap_layers;
static bool in_step;
static int64_t sent_early, sent_late; /* bytes, or sums by NCCL, from the third step on */

static int64_t sent(void) {
    return overlap_nccl ? sums_by_nccl() : dvt_rank_bytes();
}

/* Waits until the packed buckets are complete, as it happens in a pass of a larger net. */
static bool slow_complete(void *user, const char *function, dvt_array *leaf, dvt_array *grad) {
    dvti_buckets *o = dvti_buckets_list;
    bool good = dvti_buckets_hear(user, function, leaf, grad);
    while (good && o->complete < o->packed)
        good = dvti_buckets_poll(function) == DVT_OK;
    return good;
}

/* Fails requests of host memory while `no_memory` is set, and those of `no_memory_of` bytes in a
   step. */
static bool no_memory;
static size_t no_memory_of;
static int no_flight; /* the flight from now on that finds no memory; 0: none */

static bool fails_flight(size_t bytes) {
    const size_t each = 2 * sizeof(MPI_Status) + 2 * sizeof(MPI_Request) + sizeof(int);
    return no_flight && bytes == sizeof(dvti_flight) + (size_t)dvt_num_ranks() * each &&
           --no_flight == 0;
}

static void *scarce_alloc(void *user, size_t bytes) {
    (void)user;
    return no_memory || fails_flight(bytes) || (in_step && bytes == no_memory_of) ? NULL
                                                                                  : malloc(bytes);
}

static void *scarce_resize(void *user, void *block, size_t bytes) {
    (void)user;
    return no_memory ? NULL : realloc(block, bytes);
}

static void scarce_release(void *user, void *block) {
    (void)user;
    free(block);
}

/* Rank 1 has no memory while it hears the fifth gradient. */
static bool scarce_complete(void *user, const char *function, dvt_array *leaf, dvt_array *grad) {
    static int heard;
    bool good;
    no_memory = dvt_rank() == 1 && ++heard == 5;
    good = dvti_buckets_hear(user, function, leaf, grad);
    no_memory = false;
    return good;
}

static dvt_array *deep_forward(dvt_block *net, dvt_array *x) {
    int i;
    for (i = 0; i < dvt_block_len(net); i++) {
        dvt_block *layer = dvt_block_at(net, i);
        if (dvt_block_len(layer) == 0)
            x = dvt_as_in_dtype(x, dvt_block_param(layer, "weight")->dtype);
        x = dvt_block_forward(layer, x);
    }
    return dvt_as_in_dtype(x, DVT_F32);
}

static dvt_array *deep_loss(dvt_block *net, dvt_ctx ctx, int step, int pass) {
    const uint64_t key = (uint64_t)(1000 * ctx.id + 100 * dvt_rank() + 10 * step + pass);
    dvt_array *loss = NULL, *x = dvt_key_uniform(dvt_key_new(key), -1, 1,
                                                 DVT_SHAPE(4, OVERLAP_UNITS), DVT_F32, dvt_cpu());
    x = dvt_copyto(x, ctx);
    DVT_RECORD {
        loss = dvt_loss_l2(deep_forward(net, x), dvt_sum(x, DVT_AXES(1)));
    }
    return loss;
}

/* Backward on all contexts, or only on the first ones. */
static dvt_status deep_pass(dvt_block *net, int contexts, int step, int pass) {
    dvt_status status = DVT_OK;
    int k;
    for (k = 0; k < contexts && status == DVT_OK; k++)
        status = dvt_backward(deep_loss(net, overlap_ctxs.ctx[k], step, pass));
    return status;
}

/* Adds 1 to an element by its address: no version of the array tells that. */
static void poke(dvt_array *x, int64_t at) {
    dvt_array *host = dvt_copyto(x, dvt_cpu());
    float *value = (float *)dvt_data(host) + at;
    dvti_device *device = x->storage->device;
    *value += 1;
    device->backend->upload(device, (float *)dvti_view_of(x).data + at, value, sizeof *value);
}

/* A pass that fails when it has sent some gradients: the first layer's input was overwritten. */
static void failing_pass(dvt_block *net, int step) {
    dvt_array *x = dvt_full(DVT_SHAPE(4, OVERLAP_UNITS), step, DVT_F32, overlap_ctxs.ctx[0]),
              *loss = NULL;
    DVT_RECORD {
        loss = dvt_sum(deep_forward(net, x), DVT_ALL);
    }
    dvt_fill(x, 0);
    if (dvt_backward(loss) == DVT_OK)
        fprintf(stderr, "the pass did not fail\n");
    dvt_clear_error();
}

static void hash_gradients(dvt_params *params, const dvt_param *except) {
    int i, k;
    for (i = 0; i < dvt_params_len(params); i++)
        for (k = 0; k < overlap_ctxs.n && dvt_params_at(params, i) != except; k++) {
            dvt_array *g = dvt_copyto(dvt_param_grad(dvt_params_at(params, i), overlap_ctxs.ctx[k]),
                                      dvt_cpu());
            hash_bytes(dvt_data(g), (size_t)dvt_nbytes(g));
        }
}

/* Returns whether backward has handed over all buckets, and no GPU was waited for. */
static bool all_packed(const dvt_trainer *trainer, int64_t waits) {
    const dvti_buckets *o = trainer->buckets;
    const bool device = !dvti_is_host_memory(overlap_ctxs.ctx[0]);
    if (dvt_num_ranks() == 1 || (o->n_buckets > 2 && o->packed == o->n_buckets &&
                                 (!device || dvti_atomic_load(&dvti_stats()->waits) == waits)))
        return true;
    fprintf(stderr, "rank %d: %d of %d buckets are packed, %d waits\n", dvt_rank(), o->packed,
            o->n_buckets, (int)(dvti_atomic_load(&dvti_stats()->waits) - waits));
    return false;
}

static dvt_status deep_step(dvt_block *net, dvt_trainer *trainer, int mode, int step,
                            int64_t bucket) {
    dvt_params *params = dvt_block_collect_params(net, NULL);
    dvt_param *last = dvt_params_at(params, 2 * (overlap_layers - 1));
    const int contexts = mode == OVERLAP_STALE && step % 2 ? 1 : overlap_ctxs.n;
    const int64_t waits = dvti_atomic_load(&dvti_stats()->waits);
    const int64_t loaded = dvt_get_jit_stats().loaded;
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
        deep_pass(net, contexts, step, 1);
    if (mode == OVERLAP_MEMORY && step == 3) {
        static const dvti_grad_watch scarce = {scarce_complete, NULL};
        dvti_watch_gradients(&scarce);
        if (trainer->buckets && trainer->buckets->n_buckets &&
            (deep_pass(net, 1, step, 0) == DVT_ERR_HOST_MEMORY) != (dvt_rank() == 1))
            fprintf(stderr, "rank %d: a pass without memory\n", dvt_rank());
        dvt_clear_error();
        dvti_buckets_begin();
    }
    start = sent();
    status = deep_pass(net, contexts, step, 0);
    middle = sent();
    if (status != DVT_OK)
        return status;
    if (mode == OVERLAP_PLAIN && bucket && step >= 2 && !all_packed(trainer, waits))
        return DVT_ERR_INTERNAL;
    if (mode == OVERLAP_SCALED && dvt_rank() == 1)
        poke(dvt_param_grad(last, overlap_ctxs.ctx[overlap_ctxs.n - 1]), 3);
    hash_gradients(params, mode == OVERLAP_FROZEN ? last : NULL);
    in_step = true;
    if (mode == OVERLAP_CLIPPED) {
        status = dvt_trainer_allreduce(trainer);
        dvt_trainer_clip_global_norm(trainer, 0.5);
        if (status == DVT_OK)
            status = step % 2 ? dvt_trainer_update(trainer, 4) : dvt_trainer_step(trainer, 4);
    } else if (mode == OVERLAP_UNUSED || mode == OVERLAP_STALE) {
        status = dvt_trainer_step_partial(trainer, 4);
    } else {
        status = dvt_trainer_step(trainer, 4);
    }
    in_step = false;
    if (mode == OVERLAP_PLAIN && bucket && step >= 2 && dvt_get_jit_stats().loaded != loaded) {
        fprintf(stderr, "rank %d: step %d loads a kernel behind a bucket\n", dvt_rank(), step);
        return DVT_ERR_INTERNAL;
    }
    if (step >= 2) {
        sent_early += middle - start;
        sent_late += sent() - middle;
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
    for (i = 0; i < overlap_layers; i++) {
        dvt_nn_dense_desc desc = {0};
        desc.units = i + 1 < overlap_layers ? OVERLAP_UNITS : 1;
        desc.activation = i + 1 < overlap_layers ? DVT_TANH : DVT_IDENTITY;
        desc.dtype = mode == OVERLAP_DTYPES && i % 3 == 1 ? overlap_dtype : DVT_F32;
        DVT_NN_ADD(net, dvt_nn_dense_with(&desc));
    }
    if (mode == OVERLAP_UNUSED) {
        whole = dvt_nn_sequential();
        DVT_NN_ADD(whole, net, dvt_nn_dense(5, DVT_IDENTITY));
    }
    dvt_block_initialize(whole, dvt_init_xavier(), overlap_ctxs);
    DVT_PREDICT_MODE {
        for (i = 0; i < overlap_ctxs.n; i++) {
            dvt_ctx ctx = overlap_ctxs.ctx[i];
            deep_forward(net, dvt_ones(DVT_SHAPE(1, OVERLAP_UNITS), DVT_F32, ctx));
            if (whole != net)
                dvt_block_forward(dvt_block_at(whole, 1), dvt_ones(DVT_SHAPE(1, 1), DVT_F32, ctx));
        }
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
                deep_pass(net, overlap_ctxs.n, 50 + i, 0);
                if (i < 2)
                    dvt_trainer_step(other, 4);
            }
        }
    for (i = 0; i < OVERLAP_STEPS; i++)
        DVT_SCOPE {
            if (deep_step(net, trainer, mode, i, bucket) != DVT_OK) {
                failed("step");
                return 0;
            }
        }
    for (i = 0; i < dvt_params_len(params); i++) {
        dvt_array *x =
            dvt_copyto(dvt_param_data(dvt_params_at(params, i), overlap_ctxs.ctx[0]), dvt_cpu());
        hash_bytes(dvt_data(x), (size_t)dvt_nbytes(x));
    }
    return dvt_error_code() == DVT_OK ? hash : 0;
}

/* Sets the contexts of this rank. Returns false for an unknown name. */
static bool choose_contexts(const char *where) {
    const int rank = dvt_rank();
    overlap_layers = getenv("SIMCUDA_DEVICES") ? 4 : 8;
    overlap_nccl = strncmp(where, "nccl", 4) == 0;
    overlap_dtype = overlap_nccl ? DVT_F64 : DVT_F16; /* what the test double of NCCL sums */
    if (strcmp(where, "cpu") == 0)
        overlap_ctxs = DVT_CONTEXTS(dvt_cpu());
    else if (strcmp(where, "virtual") == 0)
        overlap_ctxs = DVT_CONTEXTS(dvt_gpu(0));
    else if (strcmp(where, "mixed") == 0)
        overlap_ctxs = DVT_CONTEXTS(dvt_cpu(), dvt_gpu(0));
    else if (strcmp(where, "gpu") == 0 || strcmp(where, "nccl") == 0)
        overlap_ctxs = DVT_CONTEXTS(dvt_gpu(rank));
    else if (strcmp(where, "gpus") == 0 || strcmp(where, "nccl2") == 0)
        overlap_ctxs = DVT_CONTEXTS(dvt_gpu(2 * rank), dvt_gpu(2 * rank + 1));
    else
        return false;
    if (!overlap_nccl)
        unsetenv("DEVTENSOR_NCCL");
    return true;
}

/* `modes` has a letter for each mode to run: "a" for the first. NULL: all. */
static int overlap(const char *where, const char *modes) {
    static const dvti_grad_watch slow = {slow_complete, NULL};
    const bool many = dvt_num_ranks() > 1;
    int mode;
    if (!choose_contexts(where))
        return failed("contexts");
    for (mode = 0; mode < OVERLAP_MODES; mode++) {
        const bool waits = mode == OVERLAP_CLIPPED;
        uint64_t without, with;
        if (modes && !strchr(modes, 'a' + mode))
            continue;
        dvti_buckets_begin();
        without = deep_run(mode, 0);
        if (waits && (sent_early || (many && !sent_late)))
            return failed("bytes were sent before the step");
        if (waits && many)
            dvti_watch_gradients(&slow);
        with = deep_run(mode, 2000);
        if (!without || with != without) {
            fprintf(stderr, "rank %d, mode %d: other bits with buckets: %s\n", dvt_rank(), mode,
                    dvt_error());
            return 1;
        }
        if (waits && sent_early < sent_late) {
            fprintf(stderr, "rank %d: %lld of %lld were sent before the step\n", dvt_rank(),
                    (long long)sent_early, (long long)(sent_early + sent_late));
            return 1;
        }
    }
    return 0;
}

/* Rank 1 dies when its second bucket is on the way. */
static bool dying_complete(void *user, const char *function, dvt_array *leaf, dvt_array *grad) {
    dvti_buckets *o = dvti_buckets_list;
    bool good = dvti_buckets_hear(user, function, leaf, grad);
    while (good && dvt_rank() == 1 && o && o->packed == 2)
        if (o->started == 2)
            raise(SIGKILL);
        else
            good = dvti_buckets_poll(function) == DVT_OK;
    return good;
}

/* Rank 1 dies in the step, when all buckets of all ranks are on their way. */
static dvti_bucket_transport dying_late;

static bool dying_add(const char *function, dvti_bucket *b, int number, bool wait,
                      dvt_status *status) {
    if (dvt_rank() == 1 && in_step)
        raise(SIGKILL);
    return in_step && dvti_bucket_messages()->add(function, b, number, wait, status);
}

static bool late_complete(void *user, const char *function, dvt_array *leaf, dvt_array *grad) {
    dvti_buckets *o = dvti_buckets_list;
    if (o && o->n_buckets) {
        dying_late = *dvti_bucket_messages();
        dying_late.add = dying_add;
        o->transport = &dying_late;
    }
    return dvti_buckets_hear(user, function, leaf, grad);
}

static int dies_late(const char *where) {
    static const dvti_grad_watch dying = {late_complete, NULL};
    if (!choose_contexts(where))
        return failed("contexts");
    dvti_watch_gradients(&dying);
    return deep_run(OVERLAP_PLAIN, 2000) ? 0 : 1;
}

/* Trains with buckets, for tests in which a rank stops. */
static int trains(const char *where) {
    return choose_contexts(where) && deep_run(OVERLAP_PLAIN, 2000) ? 0 : 1;
}

static int dies_early(const char *where) {
    static const dvti_grad_watch dying = {dying_complete, NULL};
    if (!choose_contexts(where))
        return failed("contexts");
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
