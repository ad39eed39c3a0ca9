/* Checks that every byte of results and gradients is written when an extent is 0, on a GPU. */
#include "../unit/empty_sweep.h"
#include "on_gpu.h"

DVT_TEST(gpu_empty_written) {
    /* float32 first, because other tests use most of its programs */
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F16, DVT_BF16, DVT_I32};
    NEEDS_GPU;
    sweep_dtypes(dtypes, IN_FULL ? 4 : 1, IN_FULL, dvt_gpu(0));
}
