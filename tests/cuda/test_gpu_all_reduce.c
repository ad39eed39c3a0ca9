/* Sums of gradients over GPUs, through the trainer. All GPUs must get the same bits and the right
   sum by every algorithm. Sizes cover one and two stages; there are enough parameters for several
   launches. */
#include "on_gpu.h"
#if !defined(DEVTENSOR_NO_NN)
#if defined(__linux__)
#include <dlfcn.h>
#endif

/* Returns how many sums the NCCL of the simulated driver made with DEVTENSOR_NCCL=1; -1
   elsewhere. */
static int sums_by_nccl(void) {
    int n = -1;
#if defined(__linux__)
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
    int (*count)(void) = NULL;
    if (library)
        *(void **)&count = dlsym(library, "ncclReductionCount");
    if (count)
        n = count();
    if (library)
        dlclose(library);
#endif
    return n;
}

static void every_copy_agrees(dvt_params *params, dvt_ctx_list ctxs) {
    int i, k;
    for (i = 0; i < dvt_params_len(params); i++) {
        dvt_param *p = dvt_params_at(params, i);
        double *first = dvt_test_values(dvt_copyto(dvt_param_grad(p, ctxs.ctx[0]), dvt_cpu()));
        for (k = 1; k < ctxs.n; k++) {
            double *other = dvt_test_values(dvt_copyto(dvt_param_grad(p, ctxs.ctx[k]), dvt_cpu()));
            size_t bytes = sizeof(double) * (size_t)dvt_shape_size(dvt_param_shape(p));
            dvt_test_check(memcmp(first, other, bytes) == 0, __FILE__, __LINE__, "%s differs on %s",
                           dvt_param_name(p), dvt_ctx_name(ctxs.ctx[k]));
            free(other);
        }
        free(first);
    }
}

/* Checks d(sum of outputs)/dw of a dense layer, which is the sum of the inputs: exact in float32
   for integers. */
static void sum_over(dvt_ctx_list ctxs, int64_t inputs, int64_t outputs, int layers) {
    dvt_block *net = dvt_nn_sequential();
    dvt_params *params;
    dvt_trainer *trainer;
    dvt_array *heads[DVT_MAX_CONTEXTS];
    double *w;
    int64_t i, n = inputs * outputs;
    int k;
    for (k = 0; k < layers; k++)
        DVT_NN_ADD(net, dvt_nn_dense(k == layers - 1 ? outputs : inputs, DVT_IDENTITY));
    CHECK_INT(dvt_block_initialize(net, dvt_init_zero(), ctxs), DVT_OK);
    params = dvt_block_collect_params(net, NULL);
    trainer = dvt_trainer_new(params, dvt_optimizer_sgd(0.1));
    DVT_RECORD {
        for (k = 0; k < ctxs.n; k++)
            heads[k] =
                dvt_block_forward(net, dvt_full(DVT_SHAPE(3, inputs), k + 1, DVT_F32, ctxs.ctx[k]));
    }
    for (k = 0; k < ctxs.n; k++)
        CHECK_INT(dvt_backward(heads[k]), DVT_OK);
    CHECK_INT(dvt_trainer_allreduce(trainer), DVT_OK);
    every_copy_agrees(params, ctxs);
    if (layers == 1) {
        w = dvt_test_values(
            dvt_copyto(dvt_param_grad(dvt_params_at(params, 0), ctxs.ctx[ctxs.n - 1]), dvt_cpu()));
        for (i = 0; i < n && w[i] == 3 * ctxs.n * (ctxs.n + 1) / 2; i++)
            continue;
        dvt_test_check(i == n, __FILE__, __LINE__, "element %lld of the sum is %g", (long long)i,
                       i < n ? w[i] : 0);
        free(w);
    }
}

DVT_TEST(gpu_all_reduce) {
    dvt_ctx_list ctxs;
    NEEDS_GPU;
    if (dvt_num_gpus() < 2)
        SKIP("one GPU only");
    ctxs = dvt_try_all_gpus();
    DVT_SCOPE {
        sum_over(ctxs, 5, 3, 1);
    }
    DVT_SCOPE {
        sum_over(ctxs, 400, 250, 1);
    } /* above 256 KiB: two stages */
    DVT_SCOPE {
        sum_over(ctxs, 6, 6, 45);
    } /* more parts than one launch takes */
    DVT_SCOPE {
        sum_over(DVT_CONTEXTS(dvt_gpu(1), dvt_gpu(0)), 301, 223, 1);
    }
    if (sums_by_nccl() >= 0)
        CHECK(sums_by_nccl() >= 2 + 2 + 90 + 2);
}

#endif
