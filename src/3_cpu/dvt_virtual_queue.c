/* The command queue of a virtual GPU: queuing commands, and the worker thread that runs them. */
#include "3_cpu/dvt_virtual.h"

DVTI_FN void dvti_virtual_unref(dvti_virtual *v) {
    if (dvti_atomic_add(&v->references, -1) == 0)
        dvti_free(v);
}

/* ---- modeled time (dvt_virtual_model.c) ---- */
DVTI_FN double dvti_virtual_book(dvti_virtual *v, double not_before, double seconds) {
    double done;
    dvti_mutex_lock(&v->lock);
    done = DVTI_MAX(v->free_at, not_before) + seconds;
    v->free_at = done;
    dvti_mutex_unlock(&v->lock);
    return done;
}

DVTI_FN void dvti_virtual_catch_up(dvti_virtual *v) {
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

DVTI_FN int64_t dvti_virtual_now(dvti_virtual *v) {
    int64_t number;
    dvti_mutex_lock(&v->lock);
    number = v->put;
    dvti_mutex_unlock(&v->lock);
    return number;
}

DVTI_FN void dvti_virtual_await(dvti_virtual *v, int64_t number) {
    dvti_mutex_lock(&v->lock);
#if DVTI_THREADS
    while (v->completed < number)
        dvti_cond_wait(&v->done, &v->lock);
#else
    (void)number;
#endif
    dvti_mutex_unlock(&v->lock);
}

DVTI_FN void dvti_virtual_check_source(dvti_virtual *v, dvti_virtual *from) {
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

static DVTI_RARE void dvti_virtual_heard(const dvti_virtual *v, const dvti_command *command,
                                         double begin) {
    const bool copies = command->kind == DVTI_COMMAND_COPY;
    dvti_event event =
        dvti_event_begin(DVTI_EVENT_RUN, copies ? "copy" : command->launch.name, v->ctx);
    event.begin = begin;
    event.bytes = copies ? command->size : 0;
    event.number = copies ? 0 : command->launch.number;
    dvti_event_end(&event);
}

DVTI_FN void dvti_virtual_do(dvti_virtual *v, dvti_command *command) {
    const bool computes =
        command->kind == DVTI_COMMAND_LAUNCH || command->kind == DVTI_COMMAND_COPY;
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
    if (command->seconds > 0 || dvti_listened())
        begin = dvti_now();
    dvti_mutex_lock(&v->lock);
    lost = v->lost;
    reason = command->kind == DVTI_COMMAND_LAUNCH ? v->fail_next : NULL;
    if (reason)
        v->fail_next = NULL;
    dvti_mutex_unlock(&v->lock);
    if (command->kind == DVTI_COMMAND_MARK)
        dvti_virtual_mark_reached((dvti_virtual_mark *)command->dst);
    else if (command->kind == DVTI_COMMAND_RELEASE)
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
    if (begin > 0 && computes && !lost && dvti_listened())
        dvti_virtual_heard(v, command, begin);
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

/* ---- queuing commands ---- */
DVTI_FN dvti_command *dvti_virtual_slot(dvti_virtual *v, dvti_command_kind kind) {
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

DVTI_FN int64_t dvti_virtual_put(dvti_virtual *v) {
    int64_t number = ++v->put;
#if DVTI_THREADS
    dvti_cond_signal(&v->work);
#endif
    dvti_mutex_unlock(&v->lock);
    return number;
}

DVTI_FN bool dvti_virtual_idle(dvti_virtual *v) {
    bool idle;
    dvti_mutex_lock(&v->lock);
    idle = v->put == v->completed;
    dvti_mutex_unlock(&v->lock);
    return idle;
}

DVTI_FN void dvti_virtual_order(dvti_command *command, dvti_virtual *after, int64_t number) {
    dvti_atomic_add(&after->references, 1);
    command->after = after;
    command->after_number = number;
}

/* ---- the worker ---- */
DVTI_FN bool dvti_virtual_start(dvti_virtual *v) {
    dvti_mutex fresh_lock = DVTI_MUTEX_INIT;
    memcpy(&v->lock, &fresh_lock, sizeof fresh_lock);
#if DVTI_THREADS
    {
        dvti_cond fresh_cond = DVTI_COND_INIT;
        memcpy(&v->work, &fresh_cond, sizeof fresh_cond);
        memcpy(&v->done, &fresh_cond, sizeof fresh_cond);
    }
    v->threaded = dvti_thread_start(&v->thread, dvti_virtual_worker, v);
    return v->threaded;
#else
    return true;
#endif
}

DVTI_FN void dvti_virtual_stop(dvti_virtual *v) {
#if DVTI_THREADS
    if (v->threaded && !dvti_virtual_forked(v)) {
        dvti_mutex_lock(&v->lock);
        v->stop = true;
        dvti_cond_signal(&v->work);
        dvti_mutex_unlock(&v->lock);
        dvti_thread_join(v->thread);
    }
#else
    (void)v;
#endif
}
