/* softmax. */
#include "3_cuda/dvt_cuda.h"

DVTI_FN void dvti_cuda_describe_softmax(uint64_t variant, dvti_text *text) {
    dvti_text_add(text, "#define VARIANT %d\n", (int)variant);
}

DVTI_FN dvt_status dvti_cuda_softmax(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    (void)gpu;
    return dvti_fail(DVT_ERR_UNSUPPORTED, "%s: its CUDA kernel is not written yet", launch->name);
}
