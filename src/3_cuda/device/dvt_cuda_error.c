/* Errors of a GPU. Most errors belong to the call that returned them. Some end the context, such as
   an illegal access by a kernel, or a GPU that drops off the bus. These appear late, at any later
   call, and all calls after it fail too. So the first such error is kept with the operations in
   progress, and reported once. Later calls only report that the GPU is lost. */
#include "3_cuda/device/dvt_cuda_device.h"

/* Results after which all calls on the context fail, as documented in cuda.h. */
static bool dvti_cuda_ends_context(dvti_cu_result result) {
    static const int fatal[] = {4,   46,  214, 220, 226, 700, 702, 709,
                                710, 714, 715, 716, 717, 718, 719, 999};
    int i;
    for (i = 0; i < DVTI_LENGTH(fatal); i++)
        if (result == fatal[i])
            return true;
    return false;
}

static const char *dvti_cuda_result_text(dvti_cu_result result) {
    const dvti_cuda_driver *cu = dvti_cuda();
    const char *name = NULL, *text = NULL;
    char *buffer = dvti_name_buffer();
    if (cu->cuGetErrorName(result, &name) != DVTI_CU_OK || !name)
        name = "CUDA error";
    if (cu->cuGetErrorString(result, &text) != DVTI_CU_OK || !text)
        text = "the driver has no text for it";
    snprintf(buffer, DVTI_NAME_SIZE, "%s (%d), %s", name, result, text);
    return buffer;
}

/* ---- operations in progress ---- */
static const char *dvti_cuda_recent_text(const dvti_cuda_recent *one) {
    char *buffer = dvti_name_buffer();
    if (one->file)
        snprintf(buffer, DVTI_NAME_SIZE, "%s at %.100s:%d", one->name, one->file, one->line);
    else
        snprintf(buffer, DVTI_NAME_SIZE, "%s", one->name);
    return buffer;
}

static const void *dvti_cuda_this_thread(void) {
    static DVTI_TLS char here;
    return &here;
}

DVTI_FN void dvti_cuda_advance(dvti_cuda_gpu *gpu) {
    gpu->recent[gpu->position++ % DVTI_CUDA_RECENT].name = NULL;
}

DVTI_FN void dvti_cuda_remember(dvti_cuda_gpu *gpu, const char *name) {
    dvti_cuda_recent *one = &gpu->recent[gpu->position++ % DVTI_CUDA_RECENT];
    one->name = name;
    one->file = NULL;
    one->thread = dvti_cuda_this_thread();
}

DVTI_FN void dvti_cuda_remember_again(dvti_cuda_gpu *gpu, const char *name) {
    const void *thread = dvti_cuda_this_thread();
    int64_t at;
    for (at = gpu->position - 1; at >= 0 && at >= gpu->position - DVTI_CUDA_RECENT; at--) {
        dvti_cuda_recent *one = &gpu->recent[at % DVTI_CUDA_RECENT];
        if (one->name != name || one->thread != thread)
            continue;
        one->name = NULL;
        break;
    }
    dvti_cuda_remember(gpu, name);
}

/* Attributes this thread's operations without a source position to the call at file:line. */
DVTI_FN void dvti_cuda_note(dvti_device *device, const char *file, int line) {
    dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    const void *thread = dvti_cuda_this_thread();
    int64_t at;
    if (!gpu)
        return;
    dvti_mutex_lock(&gpu->lock);
    for (at = gpu->position - 1; at >= 0 && at >= gpu->position - DVTI_CUDA_RECENT; at--) {
        dvti_cuda_recent *one = &gpu->recent[at % DVTI_CUDA_RECENT];
        if (!one->name || one->thread != thread)
            continue;
        if (one->file)
            break;
        one->file = file;
        one->line = line;
    }
    dvti_mutex_unlock(&gpu->lock);
}

static void dvti_cuda_suspects(dvti_cuda_gpu *gpu, dvti_text *text) {
    int64_t first = DVTI_MAX(gpu->verified, gpu->position - DVTI_CUDA_RECENT), last = gpu->position;
    const dvti_cuda_recent *oldest = NULL, *newest = NULL;
    int64_t n = 0;
    for (; first < last; first++) {
        const dvti_cuda_recent *one = &gpu->recent[first % DVTI_CUDA_RECENT];
        if (!one->name)
            continue;
        if (!oldest)
            oldest = one;
        newest = one;
        n++;
    }
    if (n == 0)
        dvti_text_add(text, "work on %s", dvt_ctx_name(gpu->ctx));
    else if (n == 1)
        dvti_text_add(text, "%s on %s", dvti_cuda_recent_text(newest), dvt_ctx_name(gpu->ctx));
    else
        dvti_text_add(text,
                      "one of the last %lld operations on %s, from %s to %s (DEVTENSOR_SYNC=1 "
                      "shows which),",
                      (long long)n, dvt_ctx_name(gpu->ctx), dvti_cuda_recent_text(oldest),
                      dvti_cuda_recent_text(newest));
}

static void dvti_cuda_lose(dvti_cuda_gpu *gpu, const char *call, dvti_cu_result result) {
    dvti_cuda_physical *physical = gpu->physical;
    dvti_text text;
    if (physical->lost)
        return;
    text = dvti_text_begin(physical->reason, sizeof physical->reason);
    dvti_cuda_suspects(gpu, &text);
    dvti_text_add(&text, " failed: %s gave %s", call, dvti_cuda_result_text(result));
    physical->reported = false;
    physical->lost = true;
}

static dvt_status dvti_cuda_report_lost(dvti_cuda_gpu *gpu, const char *function) {
    dvti_cuda_physical *physical = gpu->physical;
    if (!physical->reported) {
        physical->reported = true;
        return dvti_fail(DVT_ERR_INTERNAL,
                         "%.440s; %s is lost for this process: release the arrays on it, and use "
                         "another context or restart the program",
                         physical->reason, dvt_ctx_name(gpu->ctx));
    }
    return dvti_fail(DVT_ERR_DEVICE_LOST,
                     "%s: %s is lost, since %.400s; use another context or restart the program",
                     function, dvt_ctx_name(gpu->ctx), physical->reason);
}

DVTI_FN dvt_status dvti_cuda_failed(dvti_cuda_gpu *gpu, const char *function, const char *call,
                                    dvti_cu_result result) {
    if (result == DVTI_CU_OK)
        return DVT_OK;
    if (gpu->physical->lost || dvti_cuda_ends_context(result)) {
        dvti_cuda_lose(gpu, call, result);
        return dvti_cuda_report_lost(gpu, function);
    }
    return dvti_cuda_fail(function, call, result);
}

/* Recording an event fails on a context that has ended. */
static bool dvti_cuda_has_ended(dvti_cuda_gpu *gpu) {
    dvti_cu_event event;
    dvti_cu_result result;
    bool pushed;
    result = dvti_cuda_enter(gpu->physical, &pushed);
    if (result == DVTI_CU_OK) {
        event = dvti_cuda_event(gpu, &result);
        if (event) {
            result = dvti_cuda()->cuEventRecord(event, gpu->compute);
            dvti_cuda_event_done(gpu, event);
        }
        dvti_cuda_leave(pushed);
    }
    return gpu->physical->lost || dvti_cuda_ends_context(result);
}

DVTI_FN dvt_status dvti_cuda_failed_among(dvti_cuda_gpu *const *gpu, int n, const char *function,
                                          const char *call, dvti_cu_result result) {
    int k = 0;
    if (dvti_cuda_ends_context(result))
        while (k < n - 1 && !dvti_cuda_has_ended(gpu[k]))
            k++;
    return dvti_cuda_failed(gpu[k], function, call, result);
}

DVTI_FN void dvti_cuda_failed_quietly(dvti_cuda_gpu *gpu, const char *call, dvti_cu_result result) {
    if (result != DVTI_CU_OK && dvti_cuda_ends_context(result))
        dvti_cuda_lose(gpu, call, result);
}

DVTI_FN void dvti_cuda_settle(dvti_cuda_gpu *gpu, dvti_cu_stream stream) {
    bool pushed;
    if (gpu->physical->lost || dvti_cuda_enter(gpu->physical, &pushed) != DVTI_CU_OK)
        return;
    dvti_cuda_failed_quietly(gpu, "cuStreamSynchronize", dvti_cuda()->cuStreamSynchronize(stream));
    dvti_cuda_leave(pushed);
}

/* ---- entry and exit ---- */
DVTI_FN dvt_status dvti_cuda_usable(dvti_cuda_gpu *gpu, const char *function) {
    return gpu->physical->lost ? dvti_cuda_report_lost(gpu, function) : DVT_OK;
}

DVTI_FN bool dvti_cuda_lock(dvti_cuda_gpu *gpu, const char *function) {
    if (gpu->process != dvti_process_id()) { /* the parent may have held the lock */
        dvti_fail(DVT_ERR_FORKED,
                  "%s: %s was opened before this process was forked, and CUDA cannot be used in a "
                  "forked child; use GPUs only in the parent, or only after the fork",
                  function, dvt_ctx_name(gpu->ctx));
        return false;
    }
    dvti_mutex_lock(&gpu->lock);
    if (dvti_cuda_usable(gpu, function) == DVT_OK)
        return true;
    dvti_mutex_unlock(&gpu->lock);
    return false;
}

DVTI_FN bool dvti_cuda_begin(dvti_cuda_gpu *gpu, const char *function, bool *pushed) {
    dvti_cu_result result;
    *pushed = false;
    if (!dvti_cuda_lock(gpu, function))
        return false;
    result = dvti_cuda_enter(gpu->physical, pushed);
    if (result == DVTI_CU_OK)
        return true;
    dvti_cuda_failed(gpu, function, "cuCtxPushCurrent_v2", result);
    dvti_mutex_unlock(&gpu->lock);
    return false;
}

DVTI_FN bool dvti_cuda_begin_quietly(dvti_cuda_gpu *gpu, bool *pushed) {
    *pushed = false;
    if (gpu->process != dvti_process_id())
        return false;
    dvti_mutex_lock(&gpu->lock);
    if (!gpu->physical->lost && dvti_cuda_enter(gpu->physical, pushed) == DVTI_CU_OK)
        return true;
    dvti_mutex_unlock(&gpu->lock);
    return false;
}

DVTI_FN void dvti_cuda_end(dvti_cuda_gpu *gpu, bool pushed) {
    dvti_cuda_leave(pushed);
    dvti_mutex_unlock(&gpu->lock);
}
