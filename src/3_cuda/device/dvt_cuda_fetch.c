/* Copies to host memory that the caller polls (dvti_fetches). The download stream copies behind the
   compute work so far, into page-locked memory of the fetch. */
#include "3_cuda/device/dvt_cuda_device.h"

typedef struct dvti_cuda_fetching {
    char *at;
    bool pinned; /* otherwise the driver copies while the caller waits */
    bool queued; /* until the event */
    dvti_cu_event event;
} dvti_cuda_fetching;

/* Waits for a queued copy without the lock, so that other threads can use the gpu. */
static dvti_cu_result dvti_cuda_fetch_wait(dvti_cuda_gpu *gpu, const dvti_cuda_fetching *f) {
    dvti_cu_result result;
    dvti_mutex_unlock(&gpu->lock);
    result = dvti_cuda()->cuEventSynchronize(f->event);
    dvti_mutex_lock(&gpu->lock);
    return result;
}

static void dvti_cuda_fetch_end(dvti_device *device, void *fetch) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    dvti_cuda_fetching *f = (dvti_cuda_fetching *)fetch;
    bool pushed;
    if (f->event || f->pinned) {
        if (!dvti_cuda_begin(gpu, "download", &pushed)) {
            dvti_free(f); /* the memory went with the GPU, or belongs to the parent process */
            return;
        }
        if (f->queued)
            dvti_cuda_fetch_wait(gpu, f);
        if (f->event)
            dvti_cuda_event_done(gpu, f->event);
        if (f->pinned)
            dvti_cuda()->cuMemFreeHost(f->at);
        dvti_cuda_end(gpu, pushed);
    }
    if (!f->pinned)
        dvti_free(f->at);
    dvti_free(f);
}

static void *dvti_cuda_fetch_make(dvti_device *device, const char *function, int64_t bytes,
                                  char **at) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    dvti_cuda_fetching *f = (dvti_cuda_fetching *)dvti_alloc_zero(sizeof *f);
    dvti_cu_result made = DVTI_CU_OK;
    void *memory = NULL;
    bool pushed;
    if (!f || !dvti_cuda_begin(gpu, function, &pushed)) {
        if (!f)
            dvti_fail_memory(function, bytes);
        dvti_free(f);
        return NULL;
    }
    f->pinned =
        dvti_cuda()->cuMemHostAlloc(&memory, (size_t)bytes, DVTI_CU_HOST_PORTABLE) == DVTI_CU_OK;
    f->event = dvti_cuda_event(gpu, &made);
    dvti_cuda_failed(gpu, function, "cuEventCreate", made);
    dvti_cuda_end(gpu, pushed);
    f->at = f->pinned ? (char *)memory : (char *)dvti_alloc((size_t)bytes);
    *at = f->at;
    if (f->at && f->event)
        return f;
    if (!f->at)
        dvti_fail_memory(function, bytes);
    dvti_cuda_fetch_end(device, f);
    return NULL;
}

static dvt_status dvti_cuda_fetch_start(dvti_device *device, void *fetch, const void *src,
                                        int64_t bytes) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    dvti_cuda_fetching *f = (dvti_cuda_fetching *)fetch;
    dvti_cu_result result;
    dvt_status status;
    bool pushed;
    if (!dvti_cuda_begin(gpu, "download", &pushed))
        return dvti_failure();
    result = dvti_cuda_touch(gpu, src, bytes, false);
    if (result == DVTI_CU_OK)
        result = dvti_cuda_after_compute(gpu, gpu->download);
    if (result == DVTI_CU_OK)
        result = dvti_cuda()->cuMemcpyDtoHAsync_v2(f->at, (dvti_cu_address)(uintptr_t)src,
                                                   (size_t)bytes, gpu->download);
    if (result == DVTI_CU_OK)
        result = dvti_cuda()->cuEventRecord(f->event, gpu->download);
    f->queued = result == DVTI_CU_OK;
    if (!f->queued)
        dvti_cuda_settle(gpu, gpu->download);
    status = dvti_cuda_failed(gpu, "download", "cuMemcpyDtoHAsync_v2", result);
    dvti_cuda_end(gpu, pushed);
    return status;
}

static dvt_status dvti_cuda_fetch_poll(dvti_device *device, void *fetch, bool wait, bool *done) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    dvti_cuda_fetching *f = (dvti_cuda_fetching *)fetch;
    dvti_cu_result result = DVTI_CU_OK;
    dvt_status status = DVT_OK;
    bool pushed;
    *done = false;
    if (!dvti_cuda_begin(gpu, "download", &pushed))
        return dvti_failure();
    if (f->queued)
        result = wait ? dvti_cuda_fetch_wait(gpu, f) : dvti_cuda()->cuEventQuery(f->event);
    if (result != DVTI_CU_NOT_READY) {
        status = dvti_cuda_failed(gpu, "download", "cuEventQuery", result);
        f->queued = false;
        *done = status == DVT_OK;
    }
    dvti_cuda_end(gpu, pushed);
    return status;
}

DVTI_FN const dvti_fetches *dvti_cuda_fetches(void) {
    static const dvti_fetches fetches = {dvti_cuda_fetch_make, dvti_cuda_fetch_start,
                                         dvti_cuda_fetch_poll, dvti_cuda_fetch_end, NULL};
    return &fetches;
}
