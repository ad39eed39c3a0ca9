/* The functions of 2_core/dvt_backend.h for a GPU: memory, launches, waiting. Copies are in
   device/. */
#include "3_cuda/device/dvt_cuda_device.h"

/* ---- memory ---- */
/* Allocates when the GPU is full: frees the cached memory of this gpu(i), then of others on the
   same physical GPU. */
static dvti_cuda_block *dvti_cuda_take_after_trim(dvti_cuda_gpu *gpu, int64_t bytes,
                                                  dvti_cu_result *result) {
    dvti_cuda_block *block = dvti_cuda_take(&gpu->memory, bytes, result);
    if (block || *result != DVTI_CU_OUT_OF_MEMORY)
        return block;
    *result = dvti_cuda_drain(gpu);
    if (*result != DVTI_CU_OK)
        return NULL;
    dvti_cuda_trim(&gpu->memory);
    block = dvti_cuda_take(&gpu->memory, bytes, result);
    if (block || *result != DVTI_CU_OUT_OF_MEMORY)
        return block;
    dvti_mutex_unlock(&gpu->lock); /* never holds two gpus' locks */
    dvti_cuda_trim_others(gpu);
    dvti_mutex_lock(&gpu->lock);
    return dvti_cuda_take(&gpu->memory, bytes, result);
}

static dvt_status dvti_cuda_full(dvti_cuda_gpu *gpu, const char *function, int64_t bytes) {
    size_t available = 0, total = 0;
    dvti_cuda()->cuMemGetInfo_v2(&available, &total);
    return dvti_fail(
        DVT_ERR_DEVICE_MEMORY,
        "%s: %lld bytes wanted%s on %s, where %lld are in use by arrays, %lld are cached "
        "in blocks of at most %lld, and the GPU has %lld of %lld free; free arrays "
        "there, use a smaller batch, or another device",
        function, (long long)bytes, dvti_wanted_text(), dvt_ctx_name(gpu->ctx),
        (long long)dvti_atomic_load(&gpu->device->used),
        (long long)(gpu->memory.reserved - dvti_atomic_load(&gpu->device->used)),
        (long long)dvti_cuda_largest_free(&gpu->memory), (long long)available, (long long)total);
}

static dvt_status dvti_cuda_over_limit(dvti_device *device, const char *function, int64_t bytes) {
    return dvti_fail(DVT_ERR_DEVICE_MEMORY,
                     "%s: %lld bytes wanted%s on %s, where %lld of %lld are in use; free arrays "
                     "there, use a smaller batch, or another device",
                     function, (long long)bytes, dvti_wanted_text(), dvt_ctx_name(device->ctx),
                     (long long)dvti_atomic_load(&device->used),
                     (long long)dvti_atomic_load(&device->limit));
}

/* Returns a block of new memory, or NULL with the error set. */
static DVTI_RARE dvti_cuda_block *dvti_cuda_new_block(dvti_cuda_gpu *gpu, const char *function,
                                                      int64_t bytes) {
    dvti_cuda_block *block = NULL;
    bool pushed;
    dvti_cu_result result = dvti_cuda_enter(gpu->physical, &pushed);
    if (result != DVTI_CU_OK) {
        dvti_cuda_failed(gpu, function, "cuCtxPushCurrent_v2", result);
        return NULL;
    }
    block = dvti_cuda_take_after_trim(gpu, bytes, &result);
    if (!block && result == DVTI_CU_OUT_OF_MEMORY)
        dvti_cuda_full(gpu, function, bytes);
    else if (!block && result != DVTI_CU_OK)
        dvti_cuda_failed(gpu, function, "cuMemAlloc_v2", result);
    else if (!block)
        dvti_fail_memory(function, (int64_t)sizeof *block);
    dvti_cuda_leave(pushed);
    return block;
}

static dvt_status dvti_cuda_acquire_block(dvti_device *device, const char *function, int64_t bytes,
                                          void **out) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    dvti_cuda_block *block;
    int64_t used, limit = dvti_atomic_load(&device->limit);
    if (limit && bytes > limit - dvti_atomic_load(&device->used))
        return dvti_cuda_over_limit(device, function, bytes);
    block = dvti_cuda_take_free(&gpu->memory, bytes);
    if (!block)
        block = dvti_cuda_new_block(gpu, function, bytes);
    if (!block)
        return dvti_failure();
    dvti_atomic_bump(&device->used, bytes); /* with the lock held, as always */
    used = dvti_atomic_load(&device->used);
    if (used > dvti_atomic_load(&device->peak))
        dvti_atomic_store(&device->peak, used);
    dvti_cuda_note_fresh(gpu, block);
    *out = block->at;
    return DVT_OK;
}

static dvt_status dvti_cuda_acquire(dvti_device *device, const char *function, int64_t bytes,
                                    void **out) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    dvt_status status;
    if (!dvti_cuda_lock(gpu, function))
        return dvti_failure();
    status = dvti_cuda_acquire_block(device, function, bytes, out);
    dvti_mutex_unlock(&gpu->lock);
    return status;
}

/* Releases memory. Also called for a lost GPU, in a forked child and during exit, where it makes no
   driver calls. */
static void dvti_cuda_release(dvti_device *device, void *at, int64_t bytes) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    dvti_cuda_block *block;
    bool pushed = false;
    if (gpu->process != dvti_process_id())
        return;
    dvti_mutex_lock(&gpu->lock);
    dvti_atomic_bump(&device->used, -bytes);
    block = dvti_cuda_block_at(&gpu->memory, at);
    /* Without memory that other streams use, nothing is asked of the driver. */
    if (!gpu->physical->lost &&
        (gpu->n_places == 0 || dvti_cuda_enter(gpu->physical, &pushed) == DVTI_CU_OK)) {
        dvti_cuda_failed_quietly(gpu, "cuStreamWaitEvent",
                                 dvti_cuda_touch(gpu, block->at, block->size, true));
        dvti_cuda_leave(pushed);
    }
    /* The next mark covers work that others have queued with this memory; the last one does not. */
    if (gpu->shared)
        dvti_cuda_advance(gpu);
    dvti_cuda_give(&gpu->memory, block, gpu->position);
    dvti_mutex_unlock(&gpu->lock);
}

/* ---- memory of the caller ---- */
static dvt_status dvti_cuda_borrow(dvti_device *device, const char *function, const void *at,
                                   int64_t bytes) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    dvti_cu_result result;
    dvt_status status;
    bool pushed;
    int owner = -1;
    (void)bytes;
    if (!dvti_cuda_begin(gpu, function, &pushed))
        return dvti_failure();
    result = dvti_cuda()->cuPointerGetAttribute(&owner, DVTI_CU_POINTER_DEVICE,
                                                (dvti_cu_address)(uintptr_t)at);
    if (result == DVTI_CU_INVALID_VALUE)
        status = dvti_fail(DVT_ERR_VALUE,
                           "%s: the data is not in memory that CUDA knows; expected memory of %s: "
                           "use dvt_cpu() for host memory",
                           function, dvt_ctx_name(gpu->ctx));
    else if (result == DVTI_CU_OK && owner != gpu->physical->index)
        status = dvti_fail(DVT_ERR_VALUE,
                           "%s: the data is in memory of CUDA device %d; %s is device %d: use the "
                           "context of the data's device",
                           function, owner, dvt_ctx_name(gpu->ctx), gpu->physical->index);
    else
        status = dvti_cuda_failed(gpu, function, "cuPointerGetAttribute", result);
    dvti_cuda_end(gpu, pushed);
    return status;
}

/* Waits without the lock, as dvti_cuda_wait does, after work in other streams that uses the memory
   has joined the compute stream. */
static void dvti_cuda_settle_borrowed(dvti_device *device, const void *at, int64_t bytes) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    dvti_cu_result result;
    bool pushed;
    if (!dvti_cuda_begin_quietly(gpu, &pushed))
        return;
    result = dvti_cuda_touch(gpu, at, bytes, true);
    if (result == DVTI_CU_OK) {
        dvti_mutex_unlock(&gpu->lock);
        result = dvti_cuda_drain(gpu);
        dvti_mutex_lock(&gpu->lock);
    }
    if (result == DVTI_CU_OK)
        dvti_cuda_time_send(gpu);
    dvti_cuda_failed_quietly(gpu, "cuStreamSynchronize", result);
    dvti_cuda_end(gpu, pushed);
}

/* ---- work ---- */
static dvt_status dvti_cuda_launch(dvti_device *device, const dvti_launch *launch) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    dvt_status status;
    bool pushed;
    if (!dvti_cuda_begin(gpu, launch->name, &pushed))
        return dvti_failure();
    status = dvti_cuda_failed(gpu, launch->name, "cuStreamWaitEvent",
                              dvti_cuda_touch_launch(gpu, launch));
    if (status == DVT_OK) {
        dvti_cuda_remember(gpu, launch->name);
        if ((launch->custom && launch->custom->entry) || dvti_cuda_view_size(&launch->out[0]) > 0) {
            if (dvti_listened())
                gpu->timed = dvti_cuda_time_begin(gpu, launch->name, launch->number);
            status = launch->kernel->cuda->run(gpu, launch);
            if (gpu->timed)
                dvti_cuda_time_end(gpu, gpu->timed);
            gpu->timed = NULL;
        }
    }
    dvti_cuda_end(gpu, pushed);
    return status;
}

/* Waits without the lock, so that other threads can queue work. */
static dvt_status dvti_cuda_wait(dvti_device *device) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    dvti_cu_result result;
    dvt_status status;
    int64_t queued;
    bool pushed;
    if (!dvti_cuda_begin(gpu, "waiting", &pushed))
        return dvti_failure();
    queued = gpu->position;
    dvti_mutex_unlock(&gpu->lock);
    result = dvti_cuda_drain(gpu);
    dvti_mutex_lock(&gpu->lock);
    if (result == DVTI_CU_OK)
        gpu->verified = DVTI_MAX(gpu->verified, queued);
    status = dvti_cuda_failed(gpu, "waiting", "cuStreamSynchronize", result);
    if (status == DVT_OK)
        dvti_cuda_time_send(gpu);
    dvti_cuda_end(gpu, pushed);
    return status;
}

static int64_t dvti_cuda_trim_device(dvti_device *device) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    int64_t bytes = 0;
    bool pushed;
    if (!dvti_cuda_begin(gpu, "dvt_trim_memory", &pushed))
        return 0;
    if (dvti_cuda_drain(gpu) == DVTI_CU_OK)
        bytes = dvti_cuda_trim(&gpu->memory);
    dvti_cuda_end(gpu, pushed);
    return bytes;
}

static void dvti_cuda_memory_stats(dvti_device *device, dvt_memory_stats *out) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    if (gpu->process != dvti_process_id())
        return;
    dvti_mutex_lock(&gpu->lock);
    out->reserved = gpu->memory.reserved;
    out->reserved_peak = gpu->memory.reserved_peak;
    out->reused = gpu->memory.reused;
    out->taken = gpu->memory.fresh;
    dvti_mutex_unlock(&gpu->lock);
}

static bool dvti_cuda_supports(const dvti_device *device, const dvti_kernel *kernel, dvti_op op,
                               dvt_dtype dtype, dvti_feature feature) {
    (void)device;
    if (feature == DVTI_CAN_EPILOGUE)
        return dvt_dtype_is_float(dtype) && (op == DVTI_OP_matmul || op == DVTI_OP_conv2d);
    if (feature == DVTI_CAN_MASK)
        return dvt_dtype_is_float(dtype) && op == DVTI_OP_matmul;
    return (feature == DVTI_CAN_RUN || feature == DVTI_CAN_MANY || feature == DVTI_CAN_SOURCE) &&
           kernel->cuda->run;
}

static int64_t dvti_cuda_plan(dvti_device *device, dvti_launch *launch) {
    const dvti_cuda_kernel *kernel = launch->kernel->cuda;
    return kernel->plan ? kernel->plan(dvti_cuda_gpu_of(device), launch) : 0;
}

DVTI_FN const dvti_backend *dvti_cuda_backend(void) {
    static const dvti_backend backend = {"cuda",
                                         dvti_cuda_acquire,
                                         dvti_cuda_release,
                                         dvti_cuda_upload,
                                         dvti_cuda_download,
                                         dvti_cuda_copy_from,
                                         dvti_cuda_supports,
                                         dvti_cuda_plan,
                                         dvti_cuda_launch,
                                         dvti_cuda_wait,
                                         dvti_cuda_note,
                                         dvti_cuda_trim_device,
                                         dvti_cuda_memory_stats,
                                         dvti_cuda_can_all_reduce,
                                         dvti_cuda_all_reduce,
                                         NULL,
                                         true,
                                         dvti_cuda_borrow,
                                         dvti_cuda_settle_borrowed,
                                         dvti_cuda_process_sums,
                                         dvti_cuda_marks,
                                         dvti_cuda_page_locked,
                                         dvti_cuda_fetches};
    return &backend;
}

static void dvti_cuda_version_text(dvti_text *text) {
    int driver = dvti_cuda_driver_version();
    if (driver)
        dvti_text_add(text, ", CUDA driver: %d.%d", driver / 1000, driver % 1000 / 10);
    else
        dvti_text_add(text, ", CUDA driver: none");
}

DVTI_FN const dvti_backend_kind *dvti_cuda_kind(void) {
    static const dvti_backend_kind kind = {"cuda",
                                           DVT_DEVICE_GPU,
                                           false,
                                           dvti_cuda_count,
                                           dvti_cuda_reason,
                                           dvti_cuda_open,
                                           dvti_cuda_close,
                                           dvti_cuda_describe,
                                           dvti_cuda_version_text,
                                           NULL,
                                           DVT_DL_CUDA};
    return &kind;
}
