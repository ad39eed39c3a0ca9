/* Physical GPUs and the gpu(i) on them: opening, closing, queries. */
#include "3_cuda/device/dvt_cuda_device.h"

static dvti_cuda_physical dvti_cuda_physical_gpus[DVT_MAX_GPUS];
static dvti_cuda_gpu *dvti_cuda_gpus[DVT_MAX_GPUS]; /* open ones, by number */
static dvti_mutex dvti_cuda_gpus_lock = DVTI_MUTEX_INIT;

/* ---- a gpu(i), its physical GPU, and the current context ---- */
DVTI_FN dvti_cuda_gpu *dvti_cuda_gpu_of(const dvti_device *device) {
    return (dvti_cuda_gpu *)device->impl;
}

DVTI_FN const dvti_cuda_physical *dvti_cuda_physical_of(const dvti_cuda_gpu *gpu) {
    return gpu->physical;
}

DVTI_FN dvti_cu_result dvti_cuda_enter(dvti_cuda_physical *physical, bool *pushed) {
    /* Also if it is current already: asking for that costs a call of the driver as well. */
    dvti_cu_result result = dvti_cuda()->cuCtxPushCurrent_v2(physical->context);
    *pushed = result == DVTI_CU_OK;
    return result;
}

DVTI_FN void dvti_cuda_leave(bool pushed) {
    dvti_cu_context popped;
    if (pushed)
        dvti_cuda()->cuCtxPopCurrent_v2(&popped);
}

/* ---- opening ---- */
static dvti_cu_result dvti_cuda_query(dvti_cuda_physical *physical, int index) {
    const dvti_cuda_driver *cu = dvti_cuda();
    int major = 0, minor = 0;
    size_t memory = 0;
    dvti_cu_result result = cu->cuDeviceGet(&physical->device, index);
    if (result == DVTI_CU_OK)
        result = cu->cuDeviceGetAttribute(&major, DVTI_CU_ATTR_MAJOR, physical->device);
    if (result == DVTI_CU_OK)
        result = cu->cuDeviceGetAttribute(&minor, DVTI_CU_ATTR_MINOR, physical->device);
    if (result == DVTI_CU_OK)
        result = cu->cuDeviceGetAttribute(&physical->processors, DVTI_CU_ATTR_PROCESSORS,
                                          physical->device);
    if (result == DVTI_CU_OK)
        result = cu->cuDeviceTotalMem_v2(&memory, physical->device);
    physical->memory = (int64_t)memory;
    physical->index = index;
    physical->cc = major * 10 + minor;
    return result;
}

static dvt_status dvti_cuda_open_physical(dvti_cuda_physical *physical, int index) {
    dvti_mutex fresh = DVTI_MUTEX_INIT;
    dvti_cu_result result;
    if (physical->open)
        return DVT_OK;
    memset(physical, 0, sizeof *physical);
    memcpy(&physical->lock, &fresh, sizeof fresh);
    result = dvti_cuda_query(physical, index);
    if (result != DVTI_CU_OK)
        return dvti_cuda_fail("opening a GPU", "cuDeviceGetAttribute", result);
    result = dvti_cuda()->cuDevicePrimaryCtxRetain(&physical->context, physical->device);
    if (result != DVTI_CU_OK)
        return dvti_cuda_fail("opening a GPU", "cuDevicePrimaryCtxRetain", result);
    physical->open = true;
    return DVT_OK;
}

static dvti_cu_result dvti_cuda_open_streams(dvti_cuda_gpu *gpu) {
    const dvti_cuda_driver *cu = dvti_cuda();
    dvti_cu_stream *streams[4];
    dvti_cu_result result;
    bool pushed;
    int i;
    streams[0] = &gpu->compute;
    streams[1] = &gpu->upload;
    streams[2] = &gpu->download;
    streams[3] = &gpu->copy;
    result = dvti_cuda_enter(gpu->physical, &pushed);
    for (i = 0; i < 4 && result == DVTI_CU_OK; i++)
        result = cu->cuStreamCreateWithPriority(streams[i], DVTI_CU_STREAM_NON_BLOCKING, 0);
    for (i = 0; i < 4 && result != DVTI_CU_OK; i++)
        if (*streams[i])
            cu->cuStreamDestroy_v2(*streams[i]);
    dvti_cuda_leave(pushed);
    gpu->own_compute = gpu->compute;
    return result;
}

DVTI_FN dvt_status dvti_cuda_open(dvti_device *device, int index) {
    dvti_mutex fresh = DVTI_MUTEX_INIT;
    dvti_cuda_physical *physical = &dvti_cuda_physical_gpus[index];
    dvti_cuda_gpu *gpu;
    dvti_cu_result result;
    dvt_status status;
    device->backend = dvti_cuda_backend();
    if (dvti_cuda_forked())
        return dvti_fail(DVT_ERR_FORKED,
                         "%s: CUDA was initialized before this process was forked, and cannot be "
                         "used in a forked child; count and use GPUs only in the parent, or only "
                         "after the fork",
                         dvt_ctx_name(device->ctx));
    status = dvti_cuda_open_physical(physical, index);
    if (status != DVT_OK)
        return status;
    if (physical->lost)
        return dvti_fail(
            DVT_ERR_DEVICE_LOST,
            "%s: its GPU is lost, since %.400s; use another context or restart the program",
            dvt_ctx_name(device->ctx), physical->reason);
    gpu = (dvti_cuda_gpu *)dvti_alloc_zero(sizeof *gpu);
    if (!gpu)
        return dvti_fail_memory("opening a GPU", (int64_t)sizeof *gpu);
    memcpy(&gpu->lock, &fresh, sizeof fresh);
    gpu->physical = physical;
    gpu->ctx = device->ctx;
    gpu->device = device;
    gpu->process = dvti_process_id();
    result = dvti_cuda_open_streams(gpu);
    if (result != DVTI_CU_OK) {
        status = dvti_cuda_failed(gpu, "opening a GPU", "cuStreamCreateWithPriority", result);
        dvti_free(gpu);
        return status;
    }
    device->impl = gpu;
    dvti_mutex_lock(&dvti_cuda_gpus_lock);
    dvti_cuda_gpus[gpu->ctx.id] = gpu;
    dvti_mutex_unlock(&dvti_cuda_gpus_lock);
    return DVT_OK;
}

/* ---- closing ---- */
DVTI_FN dvti_cu_result dvti_cuda_drain(dvti_cuda_gpu *gpu) {
    const dvti_cuda_driver *cu = dvti_cuda();
    dvti_cu_result result = cu->cuStreamSynchronize(gpu->upload);
    if (result == DVTI_CU_OK)
        result = cu->cuStreamSynchronize(gpu->copy);
    if (result == DVTI_CU_OK)
        result = cu->cuStreamSynchronize(gpu->compute);
    return result;
}

DVTI_FN void dvti_cuda_close(dvti_device *device) {
    const dvti_cuda_driver *cu = dvti_cuda();
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    bool pushed = false;
    dvti_mutex_lock(&dvti_cuda_gpus_lock);
    dvti_cuda_gpus[gpu->ctx.id] = NULL;
    dvti_mutex_unlock(&dvti_cuda_gpus_lock);
    if (gpu->process == dvti_process_id() && !gpu->physical->lost &&
        dvti_cuda_enter(gpu->physical, &pushed) == DVTI_CU_OK) {
        dvti_cuda_drain(gpu);
        dvti_cuda_trim(&gpu->memory);
        dvti_cuda_order_close(gpu);
        dvti_cuda_time_close(gpu, true);
        dvti_cuda_staging_close(gpu);
        cu->cuStreamDestroy_v2(gpu->own_compute);
        cu->cuStreamDestroy_v2(gpu->upload);
        cu->cuStreamDestroy_v2(gpu->download);
        cu->cuStreamDestroy_v2(gpu->copy);
        dvti_cuda_leave(pushed);
    }
    dvti_cuda_time_close(gpu, false);
    dvti_cuda_forget(&gpu->memory);
    device->impl = NULL;
    dvti_free(gpu);
}

/* ---- freeing the cached memory of other gpus on the same physical GPU ---- */
DVTI_FN int64_t dvti_cuda_trim_others(const dvti_cuda_gpu *except) {
    int64_t bytes = 0;
    bool pushed;
    int i;
    dvti_mutex_lock(&dvti_cuda_gpus_lock);
    for (i = 0; i < DVT_MAX_GPUS; i++) {
        dvti_cuda_gpu *gpu = dvti_cuda_gpus[i];
        if (!gpu || gpu == except || gpu->physical != except->physical ||
            !dvti_cuda_begin(gpu, "trim", &pushed))
            continue;
        if (dvti_cuda_drain(gpu) == DVTI_CU_OK)
            bytes += dvti_cuda_trim(&gpu->memory);
        dvti_cuda_end(gpu, pushed);
    }
    dvti_mutex_unlock(&dvti_cuda_gpus_lock);
    return bytes;
}

/* ---- queries that open nothing ---- */
DVTI_FN void dvti_cuda_describe(int index, const dvti_device *device, dvt_device_info *out) {
    const dvti_cuda_driver *cu = dvti_cuda();
    dvti_cu_device physical = 0;
    dvti_cuda_gpu *gpu;
    size_t total = 0, available = 0;
    int processors = 0;
    bool pushed;
    out->memory_total = out->memory_free = -1;
    out->driver_version = dvti_cuda_driver_version();
    if (cu->cuDeviceGet(&physical, index) != DVTI_CU_OK ||
        cu->cuDeviceGetName(out->name, (int)sizeof out->name, physical) != DVTI_CU_OK)
        snprintf(out->name, sizeof out->name, "a GPU that does not respond");
    out->name[sizeof out->name - 1] = 0;
    if (cu->cuDeviceTotalMem_v2(&total, physical) == DVTI_CU_OK)
        out->memory_total = (int64_t)total;
    if (cu->cuDeviceGetAttribute(&processors, DVTI_CU_ATTR_PROCESSORS, physical) == DVTI_CU_OK)
        out->threads = processors;
    out->memory_free = dvti_nvml_free(physical);
    if (out->memory_free >= 0 || !device || !device->impl)
        return;
    gpu = dvti_cuda_gpu_of(device);
    if (gpu->physical->lost || gpu->process != dvti_process_id() ||
        !dvti_cuda_begin(gpu, "dvt_device_query", &pushed))
        return;
    if (cu->cuMemGetInfo_v2(&available, &total) == DVTI_CU_OK)
        out->memory_free = (int64_t)available;
    dvti_cuda_end(gpu, pushed);
}
