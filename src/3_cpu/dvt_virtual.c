/* Virtual GPUs: a memory space with a limit and a command queue with a thread of its own, computed
   by the CPU's kernels. They behave as cards do: calls return at once, several devices work at the
   same time, errors come out of a later wait.

   The queue is a ring of numbered commands. Other devices, and callers that wait, look at how many
   are completed: a copy between devices waits for the source's commands so far, and the source's
   next commands wait for the copy. Every command waits only for commands that were put in before
   it, so queues cannot wait for each other in a circle.

   A forked child has the memory but not the thread: everything except releasing is refused there,
   and no lock is touched, since the thread may have held it. */
#include "3_cpu/dvt_cpu.h"

#define DVTI_QUEUE_LENGTH 128
#define DVTI_INLINE_BYTES 512 /* uploads of this size travel inside the command */

typedef enum dvti_command_kind {
    DVTI_COMMAND_LAUNCH,
    DVTI_COMMAND_COPY,    /* src to dst; src may be bytes[], or be freed afterwards */
    DVTI_COMMAND_RELEASE, /* dst, to the heap */
    DVTI_COMMAND_AWAIT    /* only the wait that any command may begin with */
} dvti_command_kind;

typedef struct dvti_command {
    dvti_command_kind kind;
    dvti_launch launch;
    void *dst;
    const void *src;
    int64_t size;
    void *staging;
    double seconds; /* the model's, which pass before the command is completed; 0: none */
    unsigned char bytes[DVTI_INLINE_BYTES];
    struct dvti_virtual
        *after; /* holds a reference; until it has completed after_number commands */
    int64_t after_number;
} dvti_command;

typedef struct dvti_virtual {
    dvti_atomic references; /* the device, and commands of other queues that wait for this one */
    dvt_ctx ctx;
    int64_t process;
    bool threaded;
    dvti_heap heap;
#if DVTI_THREADS
    dvti_thread thread;
    dvti_cond work, done;
#endif
    dvti_mutex lock; /* of everything below */
    bool stop;
    int64_t put, completed; /* commands so far */
    double free_at;         /* when the modeled queue is done with them */
    const char *fail_next;  /* for tests: the next launch fails with this reason */
    bool lost;              /* a launch failed: what follows is skipped */
    char lost_text[512];
    dvt_status pending; /* comes out of the next wait */
    char pending_text[512];
    dvti_command ring[DVTI_QUEUE_LENGTH];
} dvti_virtual;

static dvti_virtual *dvti_virtual_of(dvti_device *device) {
    return (dvti_virtual *)device->impl;
}

static void dvti_virtual_unref(dvti_virtual *v) {
    if (dvti_atomic_add(&v->references, -1) == 0)
        dvti_free(v);
}

static bool dvti_virtual_forked(const dvti_virtual *v) {
    return v->process != dvti_process_id();
}

/* ---- modeled time (dvt_virtual_model.c) ---- */
/* The queue does something for that long, from when it is free and the caller is there. */
static double dvti_virtual_book(dvti_virtual *v, double not_before, double seconds) {
    double done;
    dvti_mutex_lock(&v->lock);
    done = DVTI_MAX(v->free_at, not_before) + seconds;
    v->free_at = done;
    dvti_mutex_unlock(&v->lock);
    return done;
}

/* The caller has waited for the queue. */
static void dvti_virtual_catch_up(dvti_virtual *v) {
    double *clock = dvti_model_clock();
    dvti_mutex_lock(&v->lock);
    *clock = DVTI_MAX(*clock, v->free_at);
    dvti_mutex_unlock(&v->lock);
}

/* ---- running commands ---- */
static void dvti_virtual_fails(dvti_virtual *v, const char *name, const char *reason) {
    dvti_mutex_lock(&v->lock);
    v->lost = true;
    v->pending = DVT_ERR_INTERNAL;
    snprintf(v->lost_text, sizeof v->lost_text, "%s on gpu(%d) failed: %s", name, v->ctx.id,
             reason);
    snprintf(
        v->pending_text, sizeof v->pending_text,
        "%.400s; release the arrays on that device and call dvt_set_virtual_gpus to start again",
        v->lost_text);
    dvti_mutex_unlock(&v->lock);
}

/* The number of commands that must be completed before what is put in now may be looked at. */
static int64_t dvti_virtual_now(dvti_virtual *v) {
    int64_t number;
    dvti_mutex_lock(&v->lock);
    number = v->put;
    dvti_mutex_unlock(&v->lock);
    return number;
}

static void dvti_virtual_await(dvti_virtual *v, int64_t number) {
    dvti_mutex_lock(&v->lock);
#if DVTI_THREADS
    while (v->completed < number)
        dvti_cond_wait(&v->done, &v->lock);
#else
    (void)number;
#endif
    dvti_mutex_unlock(&v->lock);
}

/* What was copied from a device that failed before is worthless: the destination's next wait says
   so. */
static void dvti_virtual_check_source(dvti_virtual *v, dvti_virtual *from) {
    char reason[sizeof from->lost_text];
    bool lost;
    dvti_mutex_lock(&from->lock);
    lost = from->lost;
    memcpy(reason, from->lost_text, sizeof reason);
    dvti_mutex_unlock(&from->lock);
    if (!lost || from == v)
        return;
    dvti_mutex_lock(&v->lock);
    if (v->pending == DVT_OK) {
        v->pending = DVT_ERR_DEVICE_LOST;
        snprintf(v->pending_text, sizeof v->pending_text,
                 "a copy from gpu(%d) to gpu(%d) has no valid values, since %.400s", from->ctx.id,
                 v->ctx.id, reason);
    }
    dvti_mutex_unlock(&v->lock);
}

static void dvti_virtual_do(dvti_virtual *v, dvti_command *command) {
    dvt_virtual_model model;
    const char *reason;
    double begin = 0;
    bool lost;
    if (command->after) {
        dvti_virtual_await(command->after, command->after_number);
        if (command->kind == DVTI_COMMAND_COPY)
            dvti_virtual_check_source(v, command->after);
        dvti_virtual_unref(command->after);
    }
    if (command->seconds > 0)
        begin = dvti_now();
    dvti_mutex_lock(&v->lock);
    lost = v->lost;
    reason = command->kind == DVTI_COMMAND_LAUNCH ? v->fail_next : NULL;
    if (reason)
        v->fail_next = NULL;
    dvti_mutex_unlock(&v->lock);
    if (command->kind == DVTI_COMMAND_RELEASE)
        dvti_heap_give(&v->heap, command->dst);
    else if (command->kind == DVTI_COMMAND_COPY && !lost)
        memcpy(command->dst, command->src, (size_t)command->size);
    else if (reason && !lost)
        dvti_virtual_fails(v, command->launch.name, reason);
    else if (command->kind == DVTI_COMMAND_LAUNCH && !lost)
        dvti_cpu_run(&command->launch);
    dvti_free(command->staging);
    if (command->seconds > 0 && dvti_model(&model))
        dvti_model_wait(&model, begin, command->seconds);
}

#if DVTI_THREADS
DVTI_THREAD_MAIN(dvti_virtual_worker) {
    dvti_virtual *v = (dvti_virtual *)user;
    dvti_parallel_off();
    dvti_mutex_lock(&v->lock);
    for (;;) {
        dvti_command *command;
        while (v->completed == v->put && !v->stop)
            dvti_cond_wait(&v->work, &v->lock);
        if (v->completed == v->put)
            break;
        command = &v->ring[v->completed % DVTI_QUEUE_LENGTH];
        dvti_mutex_unlock(&v->lock);
        dvti_virtual_do(v, command);
        dvti_mutex_lock(&v->lock);
        v->completed++;
        dvti_cond_broadcast(&v->done);
    }
    dvti_mutex_unlock(&v->lock);
    return 0;
}
#endif

/* ---- putting commands in ---- */
/* A slot to be filled, with the lock held when there is a thread; dvti_virtual_put gives it
   away. */
static dvti_command *dvti_virtual_slot(dvti_virtual *v, dvti_command_kind kind) {
    dvti_command *command;
    dvti_mutex_lock(&v->lock);
#if DVTI_THREADS
    while (v->put - v->completed == DVTI_QUEUE_LENGTH)
        dvti_cond_wait(&v->done, &v->lock);
#endif
    command = &v->ring[v->put % DVTI_QUEUE_LENGTH];
    command->kind = kind;
    command->staging = NULL;
    command->after = NULL;
    command->seconds = 0;
    return command;
}

static int64_t dvti_virtual_put(dvti_virtual *v) {
    int64_t number = ++v->put;
#if DVTI_THREADS
    dvti_cond_signal(&v->work);
#endif
    dvti_mutex_unlock(&v->lock);
    return number;
}

/* Nothing is queued or running, and nobody but this caller can put anything in that concerns the
   same memory. */
static bool dvti_virtual_idle(dvti_virtual *v) {
    bool idle;
    dvti_mutex_lock(&v->lock);
    idle = v->put == v->completed;
    dvti_mutex_unlock(&v->lock);
    return idle;
}

/* Forked children and lost devices take nothing. */
static dvt_status dvti_virtual_usable(dvti_device *device, const char *what) {
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
    char text[sizeof v->pending_text];
    if (status != DVT_OK)
        return status;
    dvti_virtual_await(v, dvti_virtual_now(v));
    dvti_virtual_catch_up(v);
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
    if (!*out) { /* blocks that are released, but still in the queue, may help */
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
        dvti_virtual_await(
            v, dvti_virtual_now(v)); /* no memory for a copy: write now, in the queue's order */
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

/* The command goes on when `after` has completed what it holds now. */
static void dvti_virtual_order(dvti_command *command, dvti_virtual *after, int64_t number) {
    dvti_atomic_add(&after->references, 1);
    command->after = after;
    command->after_number = number;
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
    if (dvti_model(&model)) { /* both queues are busy with it until its end */
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
    double seconds = 0;
    if (status != DVT_OK)
        return status;
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
    dvti_virtual_put(v);
    return DVT_OK;
}

/* Work that is queued may use what was released, but not what has come back to the heap. */
static int64_t dvti_virtual_trim(dvti_device *device) {
    dvti_virtual *v = dvti_virtual_of(device);
    if (dvti_virtual_usable(device, "dvt_trim_memory") != DVT_OK)
        return 0;
    dvti_virtual_await(v, dvti_virtual_now(v));
    return dvti_heap_trim(&v->heap);
}

static void dvti_virtual_memory(dvti_device *device, dvt_memory_stats *out) {
    dvti_heap_stats(&dvti_virtual_of(device)->heap, out);
}

/* A launch may run after the call, so it cannot change what the caller has in main memory. */
static bool dvti_virtual_supports(const dvti_device *device, const dvti_kernel *kernel, dvti_op op,
                                  dvt_dtype dtype, dvti_feature feature) {
    return feature != DVTI_CAN_HOST_STATE && dvti_cpu_supports(device, kernel, op, dtype, feature);
}

/* The device's own thread computes alone. */
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
                                                  false};

/* ---- opening and closing ---- */
static dvt_status dvti_virtual_open(dvti_device *device, int index) {
    dvti_mutex fresh_lock = DVTI_MUTEX_INIT;
    dvti_virtual *v = (dvti_virtual *)dvti_alloc_zero(sizeof *v);
    if (!v)
        return dvti_fail_memory("opening a virtual GPU", (int64_t)sizeof *v);
    (void)index;
    dvti_model_ready();
    device->backend = &dvti_virtual_backend;
    v->references = 1;
    v->ctx = device->ctx;
    v->process = dvti_process_id();
    memcpy(&v->lock, &fresh_lock, sizeof fresh_lock);
#if DVTI_THREADS
    {
        dvti_cond fresh_cond = DVTI_COND_INIT;
        memcpy(&v->work, &fresh_cond, sizeof fresh_cond);
        memcpy(&v->done, &fresh_cond, sizeof fresh_cond);
    }
    v->threaded = dvti_thread_start(&v->thread, dvti_virtual_worker, v);
    if (!v->threaded)
        dvti_log(DVT_LOG_INFO, "%s gets no thread of its own; it computes in the calling thread",
                 dvt_ctx_name(device->ctx));
#endif
    dvti_heap_open(&v->heap);
    device->impl = v;
    return DVT_OK;
}

static void dvti_virtual_close(dvti_device *device) {
    dvti_virtual *v = dvti_virtual_of(device);
#if DVTI_THREADS
    if (v->threaded && !dvti_virtual_forked(v)) {
        dvti_mutex_lock(&v->lock);
        v->stop = true;
        dvti_cond_signal(&v->work);
        dvti_mutex_unlock(&v->lock);
        dvti_thread_join(v->thread);
    }
#endif
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
                                           NULL};
    return &kind;
}

#undef DVTI_QUEUE_LENGTH
#undef DVTI_INLINE_BYTES
