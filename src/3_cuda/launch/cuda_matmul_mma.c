/* matmul_mma. */
#include "3_cuda/launch/cuda_matmul.h"

DVTI_FN void dvti_cuda_describe_matmul_mma(uint64_t variant, dvti_text *text) {
    dvti_text_add(text, "#define VARIANT %d\n", (int)variant);
}

DVTI_FN bool dvti_cuda_mma_plan(const dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                dvti_cuda_mm *plan) {
    (void)gpu;
    (void)launch;
    (void)plan;
    return false;
}
