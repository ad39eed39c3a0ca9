/* A plug-in with a private copy of the library. It exports two functions; everything else is
   hidden. */
#define DEVTENSOR_STATIC
#define DEVTENSOR_NO_SIMD /* the copy compiles in a quarter of the time */
#include "devtensor.h"

#define SHOWN __attribute__((__visibility__("default")))

SHOWN int plugin_compute(int seed, int gpus);
SHOWN int plugin_idle(void);

static void quiet(void *user, dvt_log_level level, const char *message) {
    (void)user;
    (void)level;
    (void)message;
}

/* Starts everything that outlives a call: threads of the pool, queues of virtual GPUs, workers of a
   loader, thread-exit handlers, a stored error. Returns 0 when everything computed correctly. A
   forked child cannot use the GPUs of its parent. */
int plugin_compute(int seed, int gpus) {
    int i, wrong = 0;
    dvt_array *x, *y, *kept = dvt_full(DVT_SHAPE(3), seed, DVT_F32, dvt_cpu());
    dvt_set_logger(quiet, NULL);
    dvt_set_num_threads(4);
    for (i = 0; i <= gpus; i++) {
        DVT_SCOPED;
        dvt_ctx ctx = i ? dvt_try_gpu(i - 1) : dvt_cpu();
        dvt_array *a = dvt_full(DVT_SHAPE(40, 300), seed, DVT_F64, ctx);
        wrong |= dvt_item(dvt_sum(dvt_exp(dvt_mul_scalar(a, 0)), DVT_ALL)) != 12000;
        if (i == 2) { /* released when the thread ends */
            dvt_keep(a);
            wrong |= dvt_add(a, kept) != NULL;
        }
    }
    wrong |= gpus == 2 && dvt_error_code() != DVT_ERR_CONTEXT;
    dvt_clear_error();
    x = dvt_arange(0, 64, 1, DVT_F32, dvt_cpu());
    {
        DVT_SCOPED;
        dvt_loader_desc desc = {8, true, DVT_LAST_KEEP, 2, 1, DVT_CONTEXTS(dvt_cpu())};
        dvt_loader *loader = dvt_loader_new(dvt_dataset_arrays(x, x), &desc);
        int64_t seen = 0;
        DVT_FOR_BATCHES(loader, x, y) {
            seen += dvt_dim(y, 0);
        }
        wrong |= seen != 64;
    }
    return wrong || dvt_item(dvt_mean(kept, DVT_ALL)) != seed || dvt_error_code() != DVT_OK;
}

/* Starts nothing, so that the object can be unloaded. */
int plugin_idle(void) {
    return dvt_promote(DVT_F16, DVT_BF16) != DVT_F32;
}
