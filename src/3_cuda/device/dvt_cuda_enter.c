/* A gpu(i), its physical GPU, and the current context. All other files of this directory use these
   functions. */
#include "3_cuda/device/dvt_cuda_device.h"

DVTI_FN dvti_cuda_gpu *dvti_cuda_gpu_of(const dvti_device *device) {
    return (dvti_cuda_gpu *)device->impl;
}

DVTI_FN const dvti_cuda_physical *dvti_cuda_physical_of(const dvti_cuda_gpu *gpu) {
    return gpu->physical;
}

DVTI_FN dvti_cu_result dvti_cuda_enter(dvti_cuda_physical *physical, bool *pushed) {
    const dvti_cuda_driver *cu = dvti_cuda();
    dvti_cu_context current = NULL;
    dvti_cu_result result;
    *pushed = false;
    if (cu->cuCtxGetCurrent(&current) == DVTI_CU_OK && current == physical->context)
        return DVTI_CU_OK;
    result = cu->cuCtxPushCurrent_v2(physical->context);
    *pushed = result == DVTI_CU_OK;
    return result;
}

DVTI_FN void dvti_cuda_leave(bool pushed) {
    dvti_cu_context popped;
    if (pushed)
        dvti_cuda()->cuCtxPopCurrent_v2(&popped);
}
