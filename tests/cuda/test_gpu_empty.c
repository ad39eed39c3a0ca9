/* Checks that every byte of results and gradients is written when an extent is 0, on a GPU. */
#include "../unit/empty_sweep.h"
#include "on_gpu.h"

DVT_TEST(gpu_empty_written) {
    static const dvt_dtype dtypes[] = {DVT_F16, DVT_BF16, DVT_F32, DVT_I32};
    bool full = getenv("DVT_TEST_FULL") != NULL;
    NEEDS_GPU;
    sweep_dtypes(dtypes, full ? 4 : 1, full, dvt_gpu(0));
}
