/* The contract of 2_core/dvt_backend.h, kept on a card. */
#include "3_cuda/dvt_cuda.h"

static dvti_cuda_gpu *dvti_cuda_gpu_of(dvti_device *device) {
    return (dvti_cuda_gpu *)device->impl;
}

static dvt_status dvti_cuda_acquire(dvti_device *device, const char *function, int64_t bytes,
                                    void **out) {
    dvti_cu_address address = 0;
    dvti_cu_result result;
    bool pushed;
    if (!dvti_cuda_enter(dvti_cuda_gpu_of(device)->card, function, &pushed))
        return dvti_failure();
    result = dvti_cuda()->cuMemAlloc_v2(&address, (size_t)DVTI_MAX(bytes, 1));
    dvti_cuda_leave(pushed);
    if (result != DVTI_CU_OK)
        return dvti_cuda_fail(function, "cuMemAlloc_v2", result);
    dvti_atomic_add(&device->used, bytes);
    *out = (void *)(uintptr_t)address;
    return DVT_OK;
}

static void dvti_cuda_release(dvti_device *device, void *block, int64_t bytes) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    bool pushed;
    dvti_atomic_add(&device->used, -bytes);
    if (!dvti_cuda_enter(gpu->card, "releasing memory", &pushed))
        return;
    dvti_cuda()->cuStreamSynchronize(gpu->compute);
    dvti_cuda()->cuMemFree_v2((dvti_cu_address)(uintptr_t)block);
    dvti_cuda_leave(pushed);
}

static dvt_status dvti_cuda_wait(dvti_device *device) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    dvti_cu_result result;
    bool pushed;
    if (!dvti_cuda_enter(gpu->card, "waiting", &pushed))
        return dvti_failure();
    result = dvti_cuda()->cuStreamSynchronize(gpu->compute);
    dvti_cuda_leave(pushed);
    return result == DVTI_CU_OK ? DVT_OK : dvti_cuda_fail("waiting", "cuStreamSynchronize", result);
}

static dvt_status dvti_cuda_upload(dvti_device *device, void *dst, const void *src, int64_t bytes) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    dvti_cu_result result;
    bool pushed;
    if (bytes == 0)
        return DVT_OK;
    if (!dvti_cuda_enter(gpu->card, "upload", &pushed))
        return dvti_failure();
    result = dvti_cuda()->cuMemcpyHtoDAsync_v2((dvti_cu_address)(uintptr_t)dst, src, (size_t)bytes,
                                               gpu->compute);
    dvti_cuda_leave(pushed);
    if (result != DVTI_CU_OK)
        return dvti_cuda_fail("upload", "cuMemcpyHtoDAsync_v2", result);
    return dvti_cuda_wait(device);
}

static dvt_status dvti_cuda_download(dvti_device *device, void *dst, const void *src,
                                     int64_t bytes) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    dvti_cu_result result;
    bool pushed;
    if (bytes == 0)
        return DVT_OK;
    if (!dvti_cuda_enter(gpu->card, "download", &pushed))
        return dvti_failure();
    result = dvti_cuda()->cuMemcpyDtoHAsync_v2(dst, (dvti_cu_address)(uintptr_t)src, (size_t)bytes,
                                               gpu->compute);
    dvti_cuda_leave(pushed);
    if (result != DVTI_CU_OK)
        return dvti_cuda_fail("download", "cuMemcpyDtoHAsync_v2", result);
    return dvti_cuda_wait(device);
}

static dvt_status dvti_cuda_copy_from(dvti_device *device, void *dst, dvti_device *from,
                                      const void *src, int64_t bytes) {
    dvti_cuda_gpu *to = dvti_cuda_gpu_of(device), *source = dvti_cuda_gpu_of(from);
    dvti_cu_result result;
    bool pushed;
    dvt_status status = dvti_cuda_wait(from);
    if (status != DVT_OK)
        return status;
    if (bytes == 0)
        return DVT_OK;
    if (!dvti_cuda_enter(to->card, "copy", &pushed))
        return dvti_failure();
    result = dvti_cuda()->cuMemcpyPeerAsync((dvti_cu_address)(uintptr_t)dst, to->card->context,
                                            (dvti_cu_address)(uintptr_t)src, source->card->context,
                                            (size_t)bytes, to->compute);
    dvti_cuda_leave(pushed);
    if (result != DVTI_CU_OK)
        return dvti_cuda_fail("copy", "cuMemcpyPeerAsync", result);
    return dvti_cuda_wait(device);
}

static dvt_status dvti_cuda_launch(dvti_device *device, const dvti_launch *launch) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    bool pushed;
    dvt_status status;
    if (!dvti_cuda_enter(gpu->card, launch->name, &pushed))
        return dvti_failure();
    status = dvti_cuda_run(gpu, launch);
    dvti_cuda_leave(pushed);
    return status;
}

DVTI_FN const dvti_backend *dvti_cuda_backend(void) {
    static const dvti_backend backend = {"cuda",
                                         dvti_cuda_acquire,
                                         dvti_cuda_release,
                                         dvti_cuda_upload,
                                         dvti_cuda_download,
                                         dvti_cuda_copy_from,
                                         dvti_cuda_workspace,
                                         dvti_cuda_launch,
                                         dvti_cuda_wait};
    return &backend;
}
