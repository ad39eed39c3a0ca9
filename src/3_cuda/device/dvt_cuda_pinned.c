/* Page-locked host memory of arrays (2_core/dvt_pinned.c), and its transfers: one copy by the GPU,
   without staging buffers. Small transfers use those all the same: they cost less than an event. */
#include "3_cuda/device/dvt_cuda_device.h"

static dvt_status dvti_cuda_pin(dvti_device *device, const char *function, int64_t bytes,
                                void **out) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    dvti_cu_result result;
    dvt_status status;
    bool pushed;
    if (!dvti_cuda_begin(gpu, function, &pushed))
        return dvti_failure();
    result = dvti_cuda()->cuMemHostAlloc(out, (size_t)bytes, DVTI_CU_HOST_PORTABLE);
    if (result == DVTI_CU_OUT_OF_MEMORY)
        status = dvti_fail(DVT_ERR_HOST_MEMORY,
                           "%s: %lld bytes of page-locked memory wanted, and the driver has none; "
                           "release such arrays, or use dvt_empty",
                           function, (long long)bytes);
    else
        status = dvti_cuda_failed(gpu, function, "cuMemHostAlloc", result);
    dvti_cuda_end(gpu, pushed);
    return status;
}

static void dvti_cuda_unpin(dvti_device *device, void *block) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    bool pushed;
    if (!dvti_cuda_begin_quietly(gpu, &pushed))
        return;
    dvti_cuda_failed_quietly(gpu, "cuMemFreeHost", dvti_cuda()->cuMemFreeHost(block));
    dvti_cuda_end(gpu, pushed);
}

static dvt_status dvti_cuda_pinned_upload(dvti_device *device, void *dst, const void *src,
                                          int64_t bytes, void **mark) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    dvti_cu_result result;
    dvt_status status;
    bool pushed;
    if (bytes <= DVTI_CUDA_SMALL_BYTES)
        return dvti_cuda_upload(device, dst, src, bytes);
    if (!dvti_cuda_begin(gpu, "upload", &pushed))
        return dvti_failure();
    result = dvti_cuda_before_write(gpu, dst, bytes, gpu->upload);
    if (result == DVTI_CU_OK)
        result = dvti_cuda()->cuMemcpyHtoDAsync_v2((dvti_cu_address)(uintptr_t)dst, src,
                                                   (size_t)bytes, gpu->upload);
    if (result == DVTI_CU_OK)
        result = dvti_cuda_foreign(gpu, dst, bytes, true, gpu, gpu->upload);
    if (result == DVTI_CU_OK)
        *mark = dvti_cuda_mark_in(gpu, gpu->upload, DVTI_CU_EVENT_DISABLE_TIMING, &result);
    if (result != DVTI_CU_OK)
        dvti_cuda_settle(gpu, gpu->upload);
    status = dvti_cuda_failed(gpu, "upload", "cuMemcpyHtoDAsync_v2", result);
    dvti_cuda_end(gpu, pushed);
    return status;
}

/* Waits without the lock, so that other threads can use the gpu. */
static dvt_status dvti_cuda_pinned_download(dvti_device *device, void *dst, const void *src,
                                            int64_t bytes) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    dvti_cu_result result;
    dvt_status status;
    int64_t queued;
    bool pushed;
    if (bytes <= DVTI_CUDA_SMALL_BYTES)
        return dvti_cuda_download(device, dst, src, bytes);
    if (!dvti_cuda_begin(gpu, "download", &pushed))
        return dvti_failure();
    result = dvti_cuda_touch(gpu, src, bytes, false);
    if (result == DVTI_CU_OK)
        result = dvti_cuda_after_compute(gpu, gpu->download);
    queued = gpu->position;
    if (result == DVTI_CU_OK)
        result = dvti_cuda()->cuMemcpyDtoHAsync_v2(dst, (dvti_cu_address)(uintptr_t)src,
                                                   (size_t)bytes, gpu->download);
    if (result == DVTI_CU_OK) {
        dvti_mutex_unlock(&gpu->lock);
        result = dvti_cuda()->cuStreamSynchronize(gpu->download);
        dvti_mutex_lock(&gpu->lock);
    }
    if (result == DVTI_CU_OK)
        gpu->verified = DVTI_MAX(gpu->verified, queued);
    status = dvti_cuda_failed(gpu, "download", "cuMemcpyDtoHAsync_v2", result);
    dvti_cuda_end(gpu, pushed);
    return status;
}

DVTI_FN const dvti_page_locked *dvti_cuda_page_locked(void) {
    static const dvti_page_locked pinned = {dvti_cuda_pin,           dvti_cuda_unpin,
                                            dvti_cuda_pinned_upload, dvti_cuda_pinned_download,
                                            dvti_cuda_mark_settle,   dvti_cuda_mark_drop};
    return &pinned;
}
