/* Points in the compute stream for dvt_event: CUDA events with times. The stream first joins the
   others, so that copies that have been queued are before the point as well. */
#include "3_cuda/device/dvt_cuda_device.h"

#define DVTI_CUDA_MARK_TIMING 0

DVTI_FN dvti_cu_event dvti_cuda_mark_in(dvti_cuda_gpu *gpu, dvti_cu_stream stream, unsigned flags,
                                        dvti_cu_result *result) {
    const dvti_cuda_driver *cu = dvti_cuda();
    dvti_cu_event event = NULL;
    (void)gpu;
    *result = cu->cuEventCreate(&event, flags);
    if (*result != DVTI_CU_OK)
        return NULL;
    *result = cu->cuEventRecord(event, stream);
    if (*result == DVTI_CU_OK)
        return event;
    cu->cuEventDestroy_v2(event);
    return NULL;
}

static dvt_status dvti_cuda_mark_record(dvti_device *device, const char *function, void **mark) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    const char *call = "cuStreamWaitEvent";
    dvti_cu_result result;
    dvt_status status;
    bool pushed;
    if (!dvti_cuda_begin(gpu, function, &pushed))
        return dvti_failure();
    result = dvti_cuda_join_all(gpu);
    if (result == DVTI_CU_OK) {
        call = "cuEventRecord";
        *mark = dvti_cuda_mark_in(gpu, gpu->compute, DVTI_CUDA_MARK_TIMING, &result);
    }
    status = dvti_cuda_failed(gpu, function, call, result);
    dvti_cuda_end(gpu, pushed);
    return status;
}

/* Waits without the lock, so that other threads can queue work. */
static dvt_status dvti_cuda_mark_reached(dvti_device *device, const char *function, void *mark,
                                         bool wait, bool *done) {
    const dvti_cuda_driver *cu = dvti_cuda();
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    dvti_cu_result result;
    dvt_status status;
    bool pushed;
    *done = false;
    if (!dvti_cuda_begin(gpu, function, &pushed))
        return dvti_failure();
    if (wait) {
        dvti_mutex_unlock(&gpu->lock);
        result = cu->cuEventSynchronize(mark);
        dvti_mutex_lock(&gpu->lock);
    } else
        result = cu->cuEventQuery(mark);
    *done = result == DVTI_CU_OK;
    if (result == DVTI_CU_NOT_READY && !wait)
        result = DVTI_CU_OK;
    status = dvti_cuda_failed(gpu, function, wait ? "cuEventSynchronize" : "cuEventQuery", result);
    dvti_cuda_end(gpu, pushed);
    return status;
}

static dvt_status dvti_cuda_mark_elapsed(dvti_device *device, const char *function, void *begin,
                                         void *end, double *milliseconds) {
    const dvti_cuda_driver *cu = dvti_cuda();
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    dvti_cu_result result;
    dvt_status status;
    float elapsed = 0;
    bool pushed;
    if (!cu->elapsed)
        return dvti_fail(DVT_ERR_UNSUPPORTED,
                         "%s: the NVIDIA driver has no cuEventElapsedTime; expected one for CUDA "
                         "11.2 or newer: update it",
                         function);
    if (!dvti_cuda_begin(gpu, function, &pushed))
        return dvti_failure();
    result = cu->elapsed(&elapsed, begin, end);
    status = dvti_cuda_failed(gpu, function, "cuEventElapsedTime", result);
    if (status == DVT_OK)
        *milliseconds = (double)elapsed;
    dvti_cuda_end(gpu, pushed);
    return status;
}

DVTI_FN void dvti_cuda_mark_drop(dvti_device *device, void *mark) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    bool pushed;
    if (!dvti_cuda_begin_quietly(gpu, &pushed))
        return;
    dvti_cuda()->cuEventDestroy_v2(mark);
    dvti_cuda_end(gpu, pushed);
}

/* Waits without the lock, which the caller holds. */
static dvti_cu_result dvti_cuda_mark_await(dvti_cuda_gpu *gpu, dvti_cu_event event) {
    bool pushed = false;
    dvti_cu_result result = dvti_cuda_enter(gpu->physical, &pushed);
    if (result != DVTI_CU_OK)
        return result;
    dvti_mutex_unlock(&gpu->lock);
    result = dvti_cuda()->cuEventSynchronize(event);
    dvti_mutex_lock(&gpu->lock);
    dvti_cuda_leave(pushed);
    return result;
}

/* Tries twice, because no caller could receive a failure, and would go on to write the memory. */
DVTI_FN void dvti_cuda_mark_settle(dvti_device *device, void *mark) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    dvti_cu_result result = DVTI_CU_OK;
    if (gpu->process != dvti_process_id())
        return;
    dvti_mutex_lock(&gpu->lock);
    if (!gpu->physical->lost)
        result = dvti_cuda_mark_await(gpu, mark);
    dvti_cuda_failed_quietly(gpu, "cuEventSynchronize", result);
    if (result != DVTI_CU_OK && !gpu->physical->lost)
        dvti_cuda_mark_await(gpu, mark);
    dvti_mutex_unlock(&gpu->lock);
    dvti_cuda_mark_drop(device, mark);
}

DVTI_FN const dvti_marks *dvti_cuda_marks(void) {
    static const dvti_marks marks = {dvti_cuda_mark_record, dvti_cuda_mark_reached,
                                     dvti_cuda_mark_elapsed, dvti_cuda_mark_drop};
    return &marks;
}

#undef DVTI_CUDA_MARK_TIMING
