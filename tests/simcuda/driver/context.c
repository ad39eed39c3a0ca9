/* Primary contexts, the stack of current contexts, peer access. A context is destroyed by the last
   release or by a reset, with its memory, streams, events and modules. */
#include "entry.h"
#include <stdlib.h>

_Thread_local context *current;

typedef struct stacked {
    context *ctx;
    struct stacked *below;
} stacked;

static _Thread_local stacked *stack; /* contexts below `current` */

context *context_get(CUcontext handle) {
    for (int i = 0; i < device_count; i++)
        if ((CUcontext)&devices[i].ctx == handle)
            return &devices[i].ctx;
    return NULL;
}

/* ---- life cycle ---- */

static bool start(context *ctx) {
    ctx->sticky = CUDA_SUCCESS;
    ctx->peers = 0;
    ctx->limits[CU_LIMIT_STACK_SIZE] = 1024;
    ctx->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
    ctx->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
    ctx->null_stream = stream_new(ctx, 0, 0);
    if (!ctx->null_stream)
        return false;
    ctx->null_stream->is_null = true;
    ctx->alive = true;
    return true;
}

static object *next_of(const context *ctx, handle_kind kind) {
    for (object *o = object_first(); o; o = o->next)
        if (o->ctx == ctx && o->kind == (uint32_t)kind)
            return o;
    return NULL;
}

static void stream_discard(stream *s) {
    capture_abandon(s);
    stream_drain(s);
    free(s->after);
    object_retire(s);
}

void context_destroy(context *ctx) {
    object *o;
    region *r, *next;
    context_drain(ctx);
    while ((o = next_of(ctx, KIND_MODULE)))
        module_unload((module *)o);
    while ((o = next_of(ctx, KIND_EVENT))) {
        mark_drop(((event *)o)->mark);
        free(((event *)o)->after);
        object_retire(o);
    }
    while ((o = next_of(ctx, KIND_STREAM)))
        stream_discard((stream *)o);
    for (r = region_first(); r; r = next) {
        next = r->next;
        if (r->ctx == ctx && r->state != REGION_FREED &&
            (r->kind == REGION_DEVICE || r->kind == REGION_POOL))
            region_free(r);
    }
    ctx->alive = false;
    ctx->sticky = CUDA_SUCCESS;
    ctx->retains = 0;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice id) {
    device *d;
    ENTER(NEED_INIT);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!(d = device_get(id)))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!d->ctx.alive && !start(&d->ctx))
        return CUDA_ERROR_OUT_OF_MEMORY;
    d->ctx.retains++;
    *out = (CUcontext)&d->ctx;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice id) {
    device *d;
    ENTER(NEED_INIT);
    if (!(d = device_get(id)))
        return CUDA_ERROR_INVALID_DEVICE;
    if (d->ctx.retains == 0)
        return fail(CUDA_ERROR_INVALID_CONTEXT,
                    "cuDevicePrimaryCtxRelease: released more often than "
                    "retained");
    if (--d->ctx.retains == 0)
        context_destroy(&d->ctx);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice id) {
    device *d;
    int retains;
    ENTER(NEED_INIT);
    if (!(d = device_get(id)))
        return CUDA_ERROR_INVALID_DEVICE;
    retains = d->ctx.retains;
    if (d->ctx.alive)
        context_destroy(&d->ctx);
    d->ctx.retains = retains; /* each owner must still release it */
    return retains == 0 || start(&d->ctx) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice id, unsigned *flags, int *active) {
    device *d;
    ENTER(NEED_INIT);
    if (!(d = device_get(id)))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!flags || !active)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = d->ctx.flags;
    *active = d->ctx.alive;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice id, unsigned flags) {
    device *d;
    ENTER(NEED_INIT);
    if (!(d = device_get(id)))
        return CUDA_ERROR_INVALID_DEVICE;
    if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    d->ctx.flags = flags;
    return CUDA_SUCCESS;
}

/* ---- the current context ---- */

CUresult cuCtxSetCurrent(CUcontext handle) {
    context *ctx = context_get(handle);
    ENTER(NEED_INIT);
    if (handle && (!ctx || !ctx->alive))
        return CUDA_ERROR_INVALID_CONTEXT;
    current = ctx;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *out) {
    ENTER(NEED_INIT);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUcontext)current;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext handle) {
    context *ctx = context_get(handle);
    stacked *below;
    ENTER(NEED_INIT);
    if (!ctx || !ctx->alive)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!(below = malloc(sizeof *below)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    below->ctx = current;
    below->below = stack;
    stack = below;
    current = ctx;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *out) {
    stacked *below = stack;
    ENTER(NEED_INIT);
    if (!current)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (out)
        *out = (CUcontext)current;
    current = below ? below->ctx : NULL;
    stack = below ? below->below : NULL;
    free(below);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *out) {
    ENTER(NEED_CONTEXT);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = current->dev->id;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned *flags) {
    ENTER(NEED_CONTEXT);
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = current->flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned *version) {
    ENTER(NEED_INIT);
    if (handle && !context_get(handle))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = 3020; /* the value of all current drivers */
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void) {
    CUresult forbidden;
    ENTER(NEED_HEALTHY);
    forbidden = capture_forbids_context(current);
    if (forbidden != CUDA_SUCCESS)
        return forbidden;
    context_drain(current);
    pools_trim(current->dev, false);
    return current->sticky;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    ENTER(NEED_CONTEXT);
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit) {
    ENTER(NEED_CONTEXT);
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if ((unsigned)limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = current->limits[limit];
    return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
    ENTER(NEED_HEALTHY);
    if ((unsigned)limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    current->limits[limit] = value;
    return CUDA_SUCCESS;
}

/* ---- peers ---- */

CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned flags) {
    context *peer = context_get(handle);
    ENTER(NEED_HEALTHY);
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!peer || !peer->alive || peer == current)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (settings.peers == PEER_NO)
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (current->peers >> peer->dev->id & 1)
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    current->peers |= (uint64_t)1 << peer->dev->id;
    return CUDA_SUCCESS;
}

CUresult cuCtxDisablePeerAccess(CUcontext handle) {
    context *peer = context_get(handle);
    ENTER(NEED_HEALTHY);
    if (!peer || !peer->alive)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!(current->peers >> peer->dev->id & 1))
        return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    context_drain(current);
    current->peers &= ~((uint64_t)1 << peer->dev->id);
    return CUDA_SUCCESS;
}
