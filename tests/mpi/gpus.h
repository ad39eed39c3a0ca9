/* Sums over GPUs of several processes, on the simulated driver. The same training runs through host
   memory and by NCCL: the results are equal up to rounding, and all ranks have the same bits.
   Included by train.c after the implementation. */
#include <dlfcn.h>

enum { GPU_STEPS = 3 };

/* Returns how many sums the test double of NCCL has made in this process. */
static int sums_by_nccl(void) {
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
    int (*count)(void) = NULL;
    if (library)
        *(void **)&count = dlsym(library, "ncclReductionCount");
    return count ? count() : 0;
}

/* Trains on these contexts; writes the parameters to `out`. */
static int train_gpus(dvt_ctx_list ctxs, double out[15]) {
    dvt_block *net = dvt_nn_dense(3, DVT_IDENTITY);
    dvt_params *params;
    dvt_trainer *trainer;
    int step, i, k;
    dvt_seed(3 + (uint64_t)dvt_rank());
    dvt_block_initialize(net, dvt_init_xavier(), ctxs);
    DVT_PREDICT_MODE {
        for (k = 0; k < ctxs.n; k++)
            dvt_block_forward(net, dvt_zeros(DVT_SHAPE(1, 4), DVT_F32, ctxs.ctx[k]));
    }
    params = dvt_block_collect_params(net, NULL);
    trainer = dvt_trainer_new(params, dvt_optimizer_sgd(0.1));
    for (step = 0; step < GPU_STEPS; step++) {
        for (k = 0; k < ctxs.n; k++) {
            const uint64_t key = (uint64_t)(100 * step + 10 * dvt_rank() + k);
            dvt_array *x =
                dvt_key_uniform(dvt_key_new(key), -1, 1, DVT_SHAPE(2, 4), DVT_F32, dvt_cpu());
            dvt_array *y;
            DVT_RECORD {
                y = dvt_block_forward(net, dvt_copyto(x, ctxs.ctx[k]));
            }
            dvt_backward(y);
        }
        if (dvt_trainer_step(trainer, 2 * ctxs.n) != DVT_OK)
            return failed("step");
    }
    for (i = 0; i < 2; i++)
        for (k = 0; k < ctxs.n; k++) {
            dvt_array *x =
                dvt_copyto(dvt_param_data(dvt_params_at(params, i), ctxs.ctx[k]), dvt_cpu());
            hash_bytes(dvt_data(x), (size_t)dvt_nbytes(x));
            for (step = 0; step < dvt_size(x); step++)
                out[12 * i + step] = ((const float *)dvt_data(x))[step];
        }
    if (dvt_error_code() != DVT_OK)
        return failed("train");
    return same_on_all_ranks();
}

/* `how` is "own" (a GPU for each rank), "two" (two of them), "shared" (one for all), or "missing"
   (rank 1 has no NCCL). */
static int gpus(const char *how) {
    const int n = dvt_num_ranks(), rank = dvt_rank();
    const bool two = strcmp(how, "two") == 0;
    const bool used = n > 1 && (two || strcmp(how, "own") == 0);
    dvt_ctx_list ctxs = DVT_CONTEXTS(dvt_gpu(strcmp(how, "shared") == 0 ? 0 : rank));
    double host[15], device[15];
    int i, sums;
    if (two)
        ctxs = DVT_CONTEXTS(dvt_gpu(2 * rank), dvt_gpu(2 * rank + 1));
    if (strcmp(how, "missing") == 0 && rank == 1)
        unsetenv("DEVTENSOR_NCCL");
    dvti_rank_group.refused = true;
    if (train_gpus(ctxs, host) != 0)
        return 1;
    dvti_rank_group.refused = false;
    sums = sums_by_nccl();
    if (train_gpus(ctxs, device) != 0)
        return 1;
    for (i = 0; i < 15; i++)
        if (!(fabs(host[i] - device[i]) <= 1e-6))
            return failed("NCCL gives another result");
    /* Two steps sum two gradients, the third one bucket; also over the contexts of a rank, where
       the second step rehearses the bucket. */
    sums = sums_by_nccl() - sums;
    if (sums != (used ? (two ? 11 : 5) : 0)) {
        fprintf(stderr, "rank %d: NCCL made %d sums\n", rank, sums);
        return 1;
    }
    return 0;
}
