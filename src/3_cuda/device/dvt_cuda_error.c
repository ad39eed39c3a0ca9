/* What goes wrong on a card. Most errors belong to the call that got them. Some end the card's context: a kernel that reads where it
   must not, a card that falls off the bus. Those show up late, at whatever call comes next, and every call after it fails too. So
   the first one is kept with the operations that were under way, told once, and after it the card is only "lost". */
#include "3_cuda/device/dvt_cuda_device.h"

/* Results after which no call on the context succeeds any more (cuda.h says so of each). */
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

/* ---- what was under way ---- */
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

/* The operations of this thread that are not placed yet were launched by the call that stands there. */
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
    dvti_cuda_card *card = gpu->card;
    dvti_text text;
    if (card->lost)
        return;
    text = dvti_text_begin(card->reason, sizeof card->reason);
    dvti_cuda_suspects(gpu, &text);
    dvti_text_add(&text, " failed: %s gave %s", call, dvti_cuda_result_text(result));
    card->told = false;
    card->lost = true;
}

static dvt_status dvti_cuda_tell(dvti_cuda_gpu *gpu, const char *function) {
    dvti_cuda_card *card = gpu->card;
    if (!card->told) {
        card->told = true;
        return dvti_fail(DVT_ERR_INTERNAL,
                         "%.440s; %s is lost for this process: release the arrays on it, and use "
                         "another context or start again",
                         card->reason, dvt_ctx_name(gpu->ctx));
    }
    return dvti_fail(DVT_ERR_DEVICE_LOST,
                     "%s: %s is lost, since %.400s; use another context or start again", function,
                     dvt_ctx_name(gpu->ctx), card->reason);
}

DVTI_FN dvt_status dvti_cuda_failed(dvti_cuda_gpu *gpu, const char *function, const char *call,
                                    dvti_cu_result result) {
    if (result == DVTI_CU_OK)
        return DVT_OK;
    if (gpu->card->lost || dvti_cuda_ends_context(result)) {
        dvti_cuda_lose(gpu, call, result);
        return dvti_cuda_tell(gpu, function);
    }
    return dvti_cuda_fail(function, call, result);
}

/* A card whose context has ended refuses to record an event. */
static bool dvti_cuda_has_ended(dvti_cuda_gpu *gpu) {
    dvti_cu_event event;
    dvti_cu_result result;
    bool pushed;
    result = dvti_cuda_enter(gpu->card, &pushed);
    if (result == DVTI_CU_OK) {
        event = dvti_cuda_event(gpu, &result);
        if (event) {
            result = dvti_cuda()->cuEventRecord(event, gpu->compute);
            dvti_cuda_event_done(gpu, event);
        }
        dvti_cuda_leave(pushed);
    }
    return gpu->card->lost || dvti_cuda_ends_context(result);
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
    if (gpu->card->lost || dvti_cuda_enter(gpu->card, &pushed) != DVTI_CU_OK)
        return;
    dvti_cuda_failed_quietly(gpu, "cuStreamSynchronize", dvti_cuda()->cuStreamSynchronize(stream));
    dvti_cuda_leave(pushed);
}

/* ---- the way in and out ---- */
DVTI_FN bool dvti_cuda_begin(dvti_cuda_gpu *gpu, const char *function, bool *pushed) {
    dvti_cu_result result;
    *pushed = false;
    if (gpu->process != dvti_process_id()) { /* the lock may have been held in the parent */
        dvti_fail(DVT_ERR_FORKED,
                  "%s: %s was opened before this process was forked, and CUDA cannot be used in a "
                  "forked child; use GPUs only in the parent, or only after the fork",
                  function, dvt_ctx_name(gpu->ctx));
        return false;
    }
    dvti_mutex_lock(&gpu->lock);
    if (gpu->card->lost) {
        dvti_cuda_tell(gpu, function);
        dvti_mutex_unlock(&gpu->lock);
        return false;
    }
    result = dvti_cuda_enter(gpu->card, pushed);
    if (result == DVTI_CU_OK)
        return true;
    dvti_cuda_failed(gpu, function, "cuCtxPushCurrent_v2", result);
    dvti_mutex_unlock(&gpu->lock);
    return false;
}

DVTI_FN void dvti_cuda_end(dvti_cuda_gpu *gpu, bool pushed) {
    dvti_cuda_leave(pushed);
    dvti_mutex_unlock(&gpu->lock);
}
