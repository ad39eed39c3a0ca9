/* Events. */
#include "entry.h"
#include <stdlib.h>

CUresult cuEventCreate(CUevent *out, unsigned flags) {
    event *e;
    ENTER(NEED_HEALTHY);
    if (!out || (flags & ~7u) ||
        ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING)))
        return CUDA_ERROR_INVALID_VALUE;
    e = object_new(KIND_EVENT, current, sizeof *e);
    if (!e)
        return CUDA_ERROR_OUT_OF_MEMORY;
    e->flags = flags;
    *out = (CUevent)e;
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent handle) {
    event *e;
    ENTER(NEED_CONTEXT);
    if (!(e = object_get(handle, KIND_EVENT)))
        return CUDA_ERROR_INVALID_HANDLE;
    mark_drop(e->mark);
    free(e->after);
    object_retire(e);
    return CUDA_SUCCESS;
}

static CUresult record(CUevent handle, CUstream stream_handle) {
    event *e = object_get(handle, KIND_EVENT);
    stream *s = stream_get(stream_handle);
    op o = {.kind = OP_RECORD};
    if (!e || !s)
        return CUDA_ERROR_INVALID_HANDLE;
    if (e->object.ctx != s->object.ctx)
        return fail(CUDA_ERROR_INVALID_HANDLE,
                    "cuEventRecord: the event is of device %d, the stream of "
                    "device %d",
                    e->object.ctx->dev->id, s->object.ctx->dev->id);
    if (s->capture)
        return capture_record(s, e);
    o.mark = calloc(1, sizeof *o.mark);
    if (!o.mark)
        return CUDA_ERROR_OUT_OF_MEMORY;
    o.mark->references = 2; /* one for the operation, one for the event */
    o.mark->ctx = s->object.ctx;
    o.mark->stream = s;
    mark_drop(e->mark);
    e->mark = o.mark;
    e->captured = NULL;
    e->capture_id = 0;
    return stream_push(s, &o);
}

CUresult cuEventRecord(CUevent handle, CUstream stream_handle) {
    ENTER(NEED_HEALTHY);
    return record(handle, stream_handle);
}

CUresult cuEventRecordWithFlags(CUevent handle, CUstream stream_handle, unsigned flags) {
    ENTER(NEED_HEALTHY);
    if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    return record(handle, stream_handle);
}

CUresult cuEventSynchronize(CUevent handle) {
    event *e;
    CUresult forbidden;
    ENTER(NEED_HEALTHY);
    if (!(e = object_get(handle, KIND_EVENT)))
        return CUDA_ERROR_INVALID_HANDLE;
    if (event_is_captured(e))
        return fail(CUDA_ERROR_CAPTURED_EVENT,
                    "cuEventSynchronize: the event belongs to a capture");
    if ((forbidden = capture_forbids()) != CUDA_SUCCESS)
        return forbidden;
    mark_run(e->mark);
    return e->object.ctx->sticky;
}

CUresult cuEventQuery(CUevent handle) {
    event *e;
    CUresult forbidden;
    ENTER(NEED_HEALTHY);
    if (!(e = object_get(handle, KIND_EVENT)))
        return CUDA_ERROR_INVALID_HANDLE;
    if (event_is_captured(e))
        return fail(CUDA_ERROR_CAPTURED_EVENT, "cuEventQuery: the event belongs to a capture");
    if ((forbidden = capture_forbids()) != CUDA_SUCCESS)
        return forbidden;
    if (e->mark && !e->mark->done)
        stream_poke(e->mark->stream);
    return !e->mark || e->mark->done ? e->object.ctx->sticky : CUDA_ERROR_NOT_READY;
}

static CUresult elapsed(float *ms, CUevent start_handle, CUevent end_handle) {
    event *start = object_get(start_handle, KIND_EVENT), *end = object_get(end_handle, KIND_EVENT);
    if (!ms)
        return CUDA_ERROR_INVALID_VALUE;
    if (!start || !end || start->object.ctx != end->object.ctx || !start->mark || !end->mark ||
        ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!start->mark->done || !end->mark->done)
        return CUDA_ERROR_NOT_READY;
    *ms = (float)((end->mark->time - start->mark->time) * 1e3);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end) {
    ENTER(NEED_HEALTHY);
    return elapsed(ms, start, end);
}

CUresult old_event_elapsed(float *ms, CUevent start, CUevent end) {
    ENTER_AS("cuEventElapsedTime", NEED_HEALTHY);
    return elapsed(ms, start, end);
}
