/* The stream functions of the API. */
#include "entry.h"
#include <stdlib.h>

stream *stream_new(context *ctx, unsigned flags, int priority) {
    stream *s = object_new(KIND_STREAM, ctx, sizeof *s);
    if (!s)
        return NULL;
    s->flags = flags;
    s->priority = priority;
    s->id = next_id();
    return s;
}

/* Returns the calling thread's default stream in a context; it is a blocking stream like any
   other. */
static stream *per_thread_stream(context *ctx) {
    static _Thread_local struct {
        uint64_t id;
        stream *stream;
    } mine[32];

    stream *s = mine[ctx->dev->id].stream;
    if (s && s->object.kind == KIND_STREAM && s->id == mine[ctx->dev->id].id)
        return s;
    s = stream_new(ctx, 0, 0);
    if (s) {
        s->per_thread = true;
        mine[ctx->dev->id].stream = s;
        mine[ctx->dev->id].id = s->id;
    }
    return s;
}

stream *stream_get(CUstream handle) {
    if (handle == NULL || handle == CU_STREAM_LEGACY)
        return current->null_stream;
    if (handle == CU_STREAM_PER_THREAD)
        return per_thread_stream(current);
    stream *s = object_get(handle, KIND_STREAM);
    return s && !s->zombie ? s : NULL;
}

/* Frees destroyed streams after they have finished their work. */
static void reap(void) {
    for (object *o = object_first(), *next; o; o = next) {
        stream *s = (stream *)o;
        next = o->next;
        if (o->kind == KIND_STREAM && s->zombie && !s->head) {
            free(s->after);
            object_retire(s);
        }
    }
}

static CUresult create(CUstream *out, unsigned flags, int priority) {
    stream *s;
    if (!out || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING))
        return CUDA_ERROR_INVALID_VALUE;
    reap();
    s = stream_new(current, flags, priority);
    *out = (CUstream)s;
    return s ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuStreamCreate(CUstream *out, unsigned flags) {
    ENTER(NEED_HEALTHY);
    return create(out, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority) {
    ENTER(NEED_HEALTHY);
    return create(out, flags, priority > 0 ? 0 : priority < -5 ? -5 : priority);
}

CUresult cuStreamDestroy_v2(CUstream handle) {
    stream *s;
    ENTER(NEED_CONTEXT);
    s = stream_get(handle);
    if (!s || s->is_null || s->per_thread)
        return CUDA_ERROR_INVALID_HANDLE;
    capture_abandon(s);
    s->zombie = true;
    reap();
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream handle) {
    stream *s;
    CUresult forbidden;
    ENTER(NEED_HEALTHY);
    if (!(s = stream_get(handle)))
        return CUDA_ERROR_INVALID_HANDLE;
    forbidden = s->is_null ? capture_forbids_legacy(s->object.ctx) : capture_forbids_stream(s);
    if (forbidden == CUDA_SUCCESS)
        forbidden = capture_forbids();
    if (forbidden != CUDA_SUCCESS)
        return forbidden;
    stream_drain(s);
    pools_trim(s->object.ctx->dev, false);
    return s->object.ctx->sticky;
}

CUresult cuStreamQuery(CUstream handle) {
    stream *s;
    CUresult forbidden;
    ENTER(NEED_HEALTHY);
    if (!(s = stream_get(handle)))
        return CUDA_ERROR_INVALID_HANDLE;
    forbidden = s->is_null ? capture_forbids_legacy(s->object.ctx) : capture_forbids_stream(s);
    if (forbidden == CUDA_SUCCESS)
        forbidden = capture_forbids();
    if (forbidden != CUDA_SUCCESS)
        return forbidden;
    stream_poke(s);
    return s->head ? CUDA_ERROR_NOT_READY : s->object.ctx->sticky;
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned flags) {
    stream *s;
    event *e;
    op o = {.kind = OP_WAIT};
    ENTER(NEED_HEALTHY);
    s = stream_get(handle);
    e = object_get(event_handle, KIND_EVENT);
    if (!s || !e)
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->capture || event_is_captured(e))
        return capture_wait(s, e);
    if (!e->mark || e->mark->done)
        return CUDA_SUCCESS;
    o.wait = mark_hold(e->mark);
    return stream_push(s, &o);
}

CUresult cuStreamGetFlags(CUstream handle, unsigned *flags) {
    stream *s;
    ENTER(NEED_CONTEXT);
    if (!(s = stream_get(handle)))
        return CUDA_ERROR_INVALID_HANDLE;
    *flags = s->flags;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream handle, int *priority) {
    stream *s;
    ENTER(NEED_CONTEXT);
    if (!(s = stream_get(handle)))
        return CUDA_ERROR_INVALID_HANDLE;
    *priority = s->priority;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *out) {
    stream *s;
    ENTER(NEED_CONTEXT);
    if (!(s = stream_get(handle)))
        return CUDA_ERROR_INVALID_HANDLE;
    *out = (CUcontext)s->object.ctx;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream handle, unsigned long long *id) {
    stream *s;
    ENTER(NEED_CONTEXT);
    if (!(s = stream_get(handle)))
        return CUDA_ERROR_INVALID_HANDLE;
    *id = s->id;
    return CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn host, void *user) {
    stream *s;
    op o = {.kind = OP_HOST, .host = host, .user = user};
    ENTER(NEED_HEALTHY);
    if (!(s = stream_get(handle)))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!host)
        return CUDA_ERROR_INVALID_VALUE;
    return stream_push(s, &o);
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void *user,
                             unsigned flags) {
    stream *s;
    op o = {.kind = OP_HOST, .callback = callback, .user = user};
    ENTER(NEED_HEALTHY);
    if (!(s = stream_get(handle)))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!callback || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->capture)
        return capture_forbids_stream(s);
    return stream_push(s, &o);
}
