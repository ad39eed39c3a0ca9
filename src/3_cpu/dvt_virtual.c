/* Virtual GPUs: a memory space with a limit, and a command queue with a thread of its own
   (dvt_virtual_queue.c). The CPU's kernels compute. Like real GPUs, calls return at once, several
   devices work at the same time, and a later wait reports errors.

   A forked child has the memory but not the thread. There every call except releasing fails. No
   lock is touched, since the thread may have held it. */
#include "3_cpu/dvt_virtual.h"

DVTI_FN dvt_status dvti_virtual_usable(dvti_device *device, const char *what) {
    dvti_virtual *v = dvti_virtual_of(device);
    char reason[sizeof v->lost_text];
    bool lost;
    if (dvti_virtual_forked(v))
        return dvti_fail(DVT_ERR_FORKED,
                         "%s: %s was opened before this process was forked, and its queue stayed "
                         "in the parent; use it there, or call dvt_set_virtual_gpus here",
                         what, dvt_ctx_name(device->ctx));
    dvti_mutex_lock(&v->lock);
    lost = v->lost && v->pending == DVT_OK;
    if (lost)
        memcpy(reason, v->lost_text, sizeof reason);
    dvti_mutex_unlock(&v->lock);
    if (lost)
        return dvti_fail(DVT_ERR_DEVICE_LOST,
                         "%s: %s is lost, since %.400s; release the arrays on it and call "
                         "dvt_set_virtual_gpus to start again",
                         what, dvt_ctx_name(device->ctx), reason);
    return DVT_OK;
}

/* ---- the backend ---- */
static dvt_status dvti_virtual_wait(dvti_device *device) {
    dvti_virtual *v = dvti_virtual_of(device);
    dvt_status status = dvti_virtual_usable(device, "waiting");
    if (status != DVT_OK)
        return status;
    dvti_virtual_await(v, dvti_virtual_now(v));
    dvti_virtual_catch_up(v);
    return dvti_virtual_pending(v);
}

DVTI_FN dvt_status dvti_virtual_pending(dvti_virtual *v) {
    char text[sizeof v->pending_text];
    dvt_status status;
    dvti_mutex_lock(&v->lock);
    status = v->pending;
    v->pending = DVT_OK;
    memcpy(text, v->pending_text, sizeof text);
    dvti_mutex_unlock(&v->lock);
    return status == DVT_OK ? DVT_OK : dvti_fail(status, "%s", text);
}

static bool dvti_virtual_count(dvti_device *device, int64_t bytes, int64_t *used) {
    dvti_virtual *v = dvti_virtual_of(device);
    int64_t limit = dvti_atomic_load(&device->limit);
    bool fits;
    dvti_mutex_lock(&v->lock);
    *used = dvti_atomic_load(&device->used);
    fits = !limit || bytes <= limit - *used;
    if (fits) {
        int64_t now = dvti_atomic_add(&device->used, bytes);
        if (now > dvti_atomic_load(&device->peak))
            dvti_atomic_store(&device->peak, now);
    }
    dvti_mutex_unlock(&v->lock);
    return fits;
}

static dvt_status dvti_virtual_acquire(dvti_device *device, const char *function, int64_t bytes,
                                       void **out) {
    dvti_virtual *v = dvti_virtual_of(device);
    dvt_status status = dvti_virtual_usable(device, function);
    int64_t used;
    if (status != DVT_OK)
        return status;
    if (!dvti_virtual_count(device, bytes, &used))
        return dvti_fail(DVT_ERR_DEVICE_MEMORY,
                         "%s: %lld bytes wanted%s on %s, where %lld of %lld are in use; free "
                         "arrays there, use a smaller batch, or another device",
                         function, (long long)bytes, dvti_wanted_text(), dvt_ctx_name(device->ctx),
                         (long long)used, (long long)dvti_atomic_load(&device->limit));
    *out = dvti_heap_take(&v->heap, bytes);
    if (!*out) { /* released blocks may still be in the queue */
        dvti_virtual_await(v, dvti_virtual_now(v));
        *out = dvti_heap_take(&v->heap, bytes);
    }
    if (*out)
        return DVT_OK;
    dvti_atomic_add(&device->used, -bytes);
    return dvti_fail_array_memory(function, bytes);
}

static void dvti_virtual_release(dvti_device *device, void *block, int64_t bytes) {
    dvti_virtual *v = dvti_virtual_of(device);
    dvti_atomic_add(&device->used, -bytes);
    if (dvti_virtual_forked(v)) {
        dvti_heap_drop(block);
        return;
    }
    if (!v->threaded || dvti_virtual_idle(v)) {
        dvti_heap_give(&v->heap, block);
        return;
    }
    dvti_virtual_slot(v, DVTI_COMMAND_RELEASE)->dst = block;
    dvti_virtual_put(v);
}

static dvt_status dvti_virtual_upload(dvti_device *device, void *dst, const void *src,
                                      int64_t bytes) {
    dvti_virtual *v = dvti_virtual_of(device);
    dvt_status status = dvti_virtual_usable(device, "upload");
    dvti_command *command;
    dvt_virtual_model model;
    void *staging = NULL;
    double seconds = 0;
    if (status != DVT_OK || bytes == 0)
        return status;
    if (dvti_model(&model))
        seconds = dvti_model_copy(&model, bytes);
    if (!v->threaded || (seconds <= 0 && dvti_virtual_idle(v))) {
        memcpy(dst, src, (size_t)bytes);
        if (seconds > 0)
            dvti_virtual_book(v, *dvti_model_clock(), seconds);
        return DVT_OK;
    }
    if (bytes > DVTI_INLINE_BYTES && !(staging = dvti_alloc((size_t)bytes))) {
        /* Without memory for a staging buffer, waits for the queue and writes directly. */
        dvti_virtual_await(v, dvti_virtual_now(v));
        memcpy(dst, src, (size_t)bytes);
        return DVT_OK;
    }
    if (staging)
        memcpy(staging, src, (size_t)bytes);
    if (seconds > 0)
        dvti_virtual_book(v, *dvti_model_clock(), seconds);
    command = dvti_virtual_slot(v, DVTI_COMMAND_COPY);
    command->seconds = seconds;
    if (!staging)
        memcpy(command->bytes, src, (size_t)bytes);
    command->dst = dst;
    command->src = staging ? staging : command->bytes;
    command->size = bytes;
    command->staging = staging;
    dvti_virtual_put(v);
    return DVT_OK;
}

static dvt_status dvti_virtual_download(dvti_device *device, void *dst, const void *src,
                                        int64_t bytes) {
    dvti_virtual *v = dvti_virtual_of(device);
    dvt_status status = dvti_virtual_wait(device);
    dvt_virtual_model model;
    if (status != DVT_OK || bytes <= 0)
        return status;
    if (dvti_model(&model)) {
        double begin = dvti_now(), seconds = dvti_model_copy(&model, bytes);
        *dvti_model_clock() = dvti_virtual_book(v, *dvti_model_clock(), seconds);
        memcpy(dst, src, (size_t)bytes);
        if (v->threaded)
            dvti_model_wait(&model, begin, seconds);
    } else
        memcpy(dst, src, (size_t)bytes);
    return DVT_OK;
}

/* ---- copies that are polled ---- */
typedef struct dvti_virtual_fetch {
    char *at;
    int64_t number; /* of the command that copies */
} dvti_virtual_fetch;

static void *dvti_virtual_fetch_make(dvti_device *device, const char *function, int64_t bytes,
                                     char **at) {
    dvti_virtual_fetch *fetch = (dvti_virtual_fetch *)dvti_alloc(sizeof *fetch + (size_t)bytes);
    (void)device;
    if (!fetch) {
        dvti_fail_memory(function, bytes);
        return NULL;
    }
    fetch->number = 0;
    *at = fetch->at = (char *)(fetch + 1);
    return fetch;
}

static dvt_status dvti_virtual_fetch_start(dvti_device *device, void *fetch, const void *src,
                                           int64_t bytes) {
    dvti_virtual *v = dvti_virtual_of(device);
    dvti_virtual_fetch *f = (dvti_virtual_fetch *)fetch;
    dvt_status status = dvti_virtual_usable(device, "download");
    dvti_command *command;
    dvt_virtual_model model;
    double seconds = 0;
    if (status != DVT_OK)
        return status;
    if (dvti_model(&model)) {
        seconds = dvti_model_copy(&model, bytes);
        dvti_virtual_book(v, *dvti_model_clock(), seconds);
    }
    if (!v->threaded) {
        memcpy(f->at, src, (size_t)bytes);
        return DVT_OK;
    }
    command = dvti_virtual_slot(v, DVTI_COMMAND_COPY);
    command->dst = f->at;
    command->src = src;
    command->size = bytes;
    command->seconds = seconds;
    f->number = dvti_virtual_put(v);
    return DVT_OK;
}

static dvt_status dvti_virtual_fetch_poll(dvti_device *device, void *fetch, bool wait, bool *done) {
    dvti_virtual *v = dvti_virtual_of(device);
    const dvti_virtual_fetch *f = (const dvti_virtual_fetch *)fetch;
    dvt_status status = dvti_virtual_usable(device, "download");
    bool failed;
    *done = false;
    if (status != DVT_OK)
        return status;
    if (wait)
        dvti_virtual_await(v, f->number);
    dvti_mutex_lock(&v->lock);
    *done = v->completed >= f->number;
    failed = v->pending != DVT_OK;
    dvti_mutex_unlock(&v->lock);
    return *done && failed ? dvti_virtual_wait(device) : DVT_OK;
}

static void dvti_virtual_fetch_end(dvti_device *device, void *fetch) {
    dvti_virtual *v = dvti_virtual_of(device);
    if (!dvti_virtual_forked(v))
        dvti_virtual_await(v, ((const dvti_virtual_fetch *)fetch)->number);
    dvti_free(fetch);
}

static const dvti_fetches *dvti_virtual_fetches(void) {
    static const dvti_fetches fetches = {dvti_virtual_fetch_make, dvti_virtual_fetch_start,
                                         dvti_virtual_fetch_poll, dvti_virtual_fetch_end,
                                         dvti_free};
    return &fetches;
}

static dvt_status dvti_virtual_copy_from(dvti_device *device, void *dst, dvti_device *from,
                                         const void *src, int64_t bytes) {
    dvti_virtual *v = dvti_virtual_of(device), *source = dvti_virtual_of(from);
    dvt_status status = dvti_virtual_usable(device, "copy");
    dvti_command *command;
    dvt_virtual_model model;
    double seconds = 0;
    int64_t number;
    if (status == DVT_OK)
        status = dvti_virtual_usable(from, "copy");
    if (status != DVT_OK || bytes == 0)
        return status;
    if (dvti_model(&model)) { /* both queues are busy until the copy ends */
        seconds = dvti_model_copy(&model, bytes);
        dvti_virtual_book(
            source,
            dvti_virtual_book(v, dvti_virtual_book(source, *dvti_model_clock(), 0), seconds), 0);
    }
    number = dvti_virtual_now(source);
    if (!v->threaded) {
        dvti_virtual_await(source, number);
        dvti_virtual_check_source(v, source);
        memcpy(dst, src, (size_t)bytes);
        return DVT_OK;
    }
    command = dvti_virtual_slot(v, DVTI_COMMAND_COPY);
    command->dst = dst;
    command->src = src;
    command->size = bytes;
    command->seconds = seconds;
    dvti_virtual_order(command, source, number);
    number = dvti_virtual_put(v);
    if (source->threaded) {
        command = dvti_virtual_slot(source, DVTI_COMMAND_AWAIT);
        dvti_virtual_order(command, v, number);
        dvti_virtual_put(source);
    } else
        dvti_virtual_await(v, number);
    return DVT_OK;
}

static dvt_status dvti_virtual_launch(dvti_device *device, const dvti_launch *launch) {
    dvti_virtual *v = dvti_virtual_of(device);
    dvt_status status = dvti_virtual_usable(device, launch->name);
    dvti_command *command;
    dvt_virtual_model model;
    void *custom = NULL;
    double seconds = 0;
    if (status != DVT_OK)
        return status;
    if (launch->custom && v->threaded) {
        custom = dvti_alloc(sizeof *launch->custom);
        if (!custom)
            return dvti_fail_memory(launch->name, (int64_t)sizeof *launch->custom);
        memcpy(custom, launch->custom, sizeof *launch->custom);
    }
    if (dvti_model(&model)) {
        *dvti_model_clock() += model.launch;
        if (v->threaded)
            dvti_model_wait(&model, dvti_now(), model.launch);
        seconds = dvti_model_launch(&model, launch);
        dvti_virtual_book(v, *dvti_model_clock(), seconds);
    }
    if (!v->threaded) {
        dvti_command now;
        now.kind = DVTI_COMMAND_LAUNCH;
        now.launch = *launch;
        now.staging = NULL;
        now.after = NULL;
        now.seconds = 0;
        dvti_virtual_do(v, &now);
        return DVT_OK;
    }
    command = dvti_virtual_slot(v, DVTI_COMMAND_LAUNCH);
    command->launch = *launch;
    command->seconds = seconds;
    if (custom) {
        command->launch.custom = (const dvti_custom *)custom;
        command->staging = custom;
    }
    dvti_virtual_put(v);
    return DVT_OK;
}

/* Waits for the queue first: queued commands may still use released blocks, which RELEASE commands
   return to the heap. */
static int64_t dvti_virtual_trim(dvti_device *device) {
    dvti_virtual *v = dvti_virtual_of(device);
    if (dvti_virtual_usable(device, "dvt_trim_memory") != DVT_OK)
        return 0;
    dvti_virtual_await(v, dvti_virtual_now(v));
    return dvti_heap_trim(&v->heap);
}

/* Queues of other devices that read the memory are awaited by this one's. */
static void dvti_virtual_settle(dvti_device *device, const void *at, int64_t bytes) {
    dvti_virtual *v = dvti_virtual_of(device);
    (void)at;
    (void)bytes;
    if (!dvti_virtual_forked(v))
        dvti_virtual_await(v, dvti_virtual_now(v));
}

static void dvti_virtual_memory(dvti_device *device, dvt_memory_stats *out) {
    dvti_heap_stats(&dvti_virtual_of(device)->heap, out);
}

/* A launch may run after the call returns, so it cannot change generator states in host memory. */
static bool dvti_virtual_supports(const dvti_device *device, const dvti_kernel *kernel, dvti_op op,
                                  dvt_dtype dtype, dvti_feature feature) {
    return feature != DVTI_CAN_HOST_STATE && dvti_cpu_supports(device, kernel, op, dtype, feature);
}

/* The device's thread runs the launch serially. */
static int64_t dvti_virtual_plan(dvti_device *device, dvti_launch *launch) {
    (void)device;
    return dvti_cpu_plan_for(launch, 1);
}

static const dvti_backend dvti_virtual_backend = {"virtual",
                                                  dvti_virtual_acquire,
                                                  dvti_virtual_release,
                                                  dvti_virtual_upload,
                                                  dvti_virtual_download,
                                                  dvti_virtual_copy_from,
                                                  dvti_virtual_supports,
                                                  dvti_virtual_plan,
                                                  dvti_virtual_launch,
                                                  dvti_virtual_wait,
                                                  NULL,
                                                  dvti_virtual_trim,
                                                  dvti_virtual_memory,
                                                  NULL,
                                                  NULL,
                                                  NULL,
                                                  false,
                                                  NULL,
                                                  dvti_virtual_settle,
                                                  NULL,
                                                  dvti_virtual_marks,
                                                  NULL,
                                                  dvti_virtual_fetches};

/* ---- opening and closing ---- */
static dvt_status dvti_virtual_open(dvti_device *device, int index) {
    dvti_virtual *v = (dvti_virtual *)dvti_alloc_zero(sizeof *v);
    if (!v)
        return dvti_fail_memory("opening a virtual GPU", (int64_t)sizeof *v);
    (void)index;
    dvti_model_ready();
    device->backend = &dvti_virtual_backend;
    v->references = 1;
    v->ctx = device->ctx;
    v->process = dvti_process_id();
    if (!dvti_virtual_start(v))
        dvti_log(DVT_LOG_INFO, "%s gets no thread of its own; it computes in the calling thread",
                 dvt_ctx_name(device->ctx));
    dvti_heap_open(&v->heap);
    device->impl = v;
    return DVT_OK;
}

static void dvti_virtual_close(dvti_device *device) {
    dvti_virtual *v = dvti_virtual_of(device);
    dvti_virtual_stop(v);
    device->impl = NULL;
    dvti_heap_close(&v->heap);
    dvti_virtual_unref(v);
}

DVTI_FN void dvti_virtual_fail_next(dvti_device *device, const char *reason) {
    dvti_virtual *v = dvti_virtual_of(device);
    dvti_mutex_lock(&v->lock);
    v->fail_next = reason;
    dvti_mutex_unlock(&v->lock);
}

static int dvti_virtual_count_devices(void) {
    return 0;
}

static const char *dvti_virtual_reason(void) {
    return "";
}

static void dvti_virtual_describe(int index, const dvti_device *device, dvt_device_info *out) {
    (void)index;
    (void)device;
    out->threads = 1;
    out->memory_total = out->memory_free = -1;
    snprintf(out->name, sizeof out->name, "virtual GPU");
}

DVTI_FN const dvti_backend_kind *dvti_virtual_kind(void) {
    static const dvti_backend_kind kind = {"virtual",
                                           DVT_DEVICE_GPU,
                                           true,
                                           dvti_virtual_count_devices,
                                           dvti_virtual_reason,
                                           dvti_virtual_open,
                                           dvti_virtual_close,
                                           dvti_virtual_describe,
                                           NULL,
                                           NULL,
                                           0};
    return &kind;
}
