/* Orders the streams of a gpu(i); see dvt_cuda_device.h. */
#include "3_cuda/device/dvt_cuda_device.h"

/* ---- events ---- */
DVTI_FN dvti_cu_event dvti_cuda_event(dvti_cuda_gpu *gpu, dvti_cu_result *result) {
    dvti_cu_event event = NULL;
    *result = DVTI_CU_OK;
    if (gpu->n_spare > 0)
        return gpu->spare[--gpu->n_spare];
    *result = dvti_cuda()->cuEventCreate(&event, DVTI_CU_EVENT_DISABLE_TIMING);
    return *result == DVTI_CU_OK ? event : NULL;
}

DVTI_FN void dvti_cuda_event_done(dvti_cuda_gpu *gpu, dvti_cu_event event) {
    if (gpu->n_spare < DVTI_LENGTH(gpu->spare))
        gpu->spare[gpu->n_spare++] = event;
    else
        dvti_cuda()->cuEventDestroy_v2(event);
}

/* ---- marks ---- */
static dvti_cuda_mark *dvti_cuda_latest_mark(dvti_cuda_gpu *gpu) {
    int n = DVTI_LENGTH(gpu->mark);
    dvti_cuda_mark *latest = &gpu->mark[(gpu->next_mark + n - 1) % n];
    return latest->event ? latest : NULL;
}

/* Returns the oldest mark that covers all work up to `position`, or NULL. */
static dvti_cuda_mark *dvti_cuda_mark_for(dvti_cuda_gpu *gpu, int64_t position) {
    int n = DVTI_LENGTH(gpu->mark), i;
    for (i = 0; i < n; i++) {
        dvti_cuda_mark *mark = &gpu->mark[(gpu->next_mark + i) % n];
        if (mark->event && mark->position >= position)
            return mark;
    }
    return NULL;
}

/* Returns a mark that covers everything queued so far. */
static dvti_cu_result dvti_cuda_mark_now(dvti_cuda_gpu *gpu, dvti_cuda_mark **out) {
    dvti_cuda_mark *mark = dvti_cuda_latest_mark(gpu);
    dvti_cu_result result = DVTI_CU_OK;
    if (mark && mark->position == gpu->position && !gpu->shared) {
        *out = mark;
        return DVTI_CU_OK;
    }
    mark = &gpu->mark[gpu->next_mark];
    if (!mark->event)
        mark->event = dvti_cuda_event(gpu, &result);
    if (result == DVTI_CU_OK)
        result = dvti_cuda()->cuEventRecord(mark->event, gpu->compute);
    if (result != DVTI_CU_OK)
        return result;
    mark->position = gpu->position;
    gpu->next_mark = (gpu->next_mark + 1) % DVTI_LENGTH(gpu->mark);
    *out = mark;
    return DVTI_CU_OK;
}

DVTI_FN dvti_cu_result dvti_cuda_after_compute(dvti_cuda_gpu *gpu, dvti_cu_stream stream) {
    dvti_cuda_mark *mark;
    dvti_cu_result result = dvti_cuda_mark_now(gpu, &mark);
    if (result == DVTI_CU_OK)
        result = dvti_cuda()->cuStreamWaitEvent(stream, mark->event, 0);
    return result;
}

/* ---- fresh blocks ---- */
DVTI_FN void dvti_cuda_note_fresh(dvti_cuda_gpu *gpu, const dvti_cuda_block *block) {
    dvti_cuda_fresh *fresh;
    if (block->size <= DVTI_CUDA_SMALL_BYTES)
        return;
    if (gpu->n_fresh == DVTI_LENGTH(gpu->fresh)) /* the oldest is treated as used */
        memmove(gpu->fresh, gpu->fresh + 1, (size_t)--gpu->n_fresh * sizeof *gpu->fresh);
    fresh = &gpu->fresh[gpu->n_fresh++];
    fresh->begin = block->at;
    fresh->end = block->at + block->size;
    fresh->released = block->released;
}

/* Drops the fresh block that contains the memory. Returns the position up to which compute work may
   still use it. */
static int64_t dvti_cuda_use_fresh(dvti_cuda_gpu *gpu, const char *begin, const char *end) {
    int i;
    for (i = 0; i < gpu->n_fresh; i++)
        if (begin < gpu->fresh[i].end && gpu->fresh[i].begin < end) {
            int64_t released = gpu->fresh[i].released;
            gpu->fresh[i] = gpu->fresh[--gpu->n_fresh];
            return released;
        }
    return gpu->position;
}

DVTI_FN dvti_cu_result dvti_cuda_before_write(dvti_cuda_gpu *gpu, const void *at, int64_t bytes,
                                              dvti_cu_stream stream) {
    const char *begin = (const char *)at;
    dvti_cuda_mark *mark, *now;
    /* Waits for foreign work on the memory join the compute stream, before the new mark. */
    dvti_cu_result result;
    int64_t used;
    int places = gpu->n_places;
    used = dvti_cuda_use_fresh(gpu, begin, begin + bytes);
    result = dvti_cuda_touch(gpu, at, bytes, true);
    if (gpu->n_places != places)
        used = gpu->position;
    mark = dvti_cuda_mark_for(gpu, used);
    if (result ==
        DVTI_CU_OK) /* also for later uploads, which may then start before the work that follows */
        result = dvti_cuda_mark_now(gpu, &now);
    if (result == DVTI_CU_OK)
        result = dvti_cuda()->cuStreamWaitEvent(stream, (mark ? mark : now)->event, 0);
    return result;
}

/* ---- foreign memory ---- */
static dvti_cu_result dvti_cuda_join_place(dvti_cuda_gpu *gpu, int i) {
    dvti_cu_result result = dvti_cuda()->cuStreamWaitEvent(gpu->compute, gpu->place[i].event, 0);
    if (result != DVTI_CU_OK)
        return result;
    if (gpu->place[i].physical == gpu->physical)
        dvti_cuda_event_done(gpu, gpu->place[i].event);
    else
        dvti_cuda()->cuEventDestroy_v2(gpu->place[i].event);
    gpu->n_places--;
    memmove(gpu->place + i, gpu->place + i + 1, (size_t)(gpu->n_places - i) * sizeof *gpu->place);
    dvti_cuda_advance(gpu);
    return DVTI_CU_OK;
}

DVTI_FN dvti_cu_result dvti_cuda_join_all(dvti_cuda_gpu *gpu) {
    dvti_cu_result result = DVTI_CU_OK;
    while (gpu->n_places > 0 && result == DVTI_CU_OK)
        result = dvti_cuda_join_place(gpu, gpu->n_places - 1);
    return result;
}

DVTI_FN dvti_cu_result dvti_cuda_touch(dvti_cuda_gpu *gpu, const void *at, int64_t bytes,
                                       bool writes) {
    const char *begin = (const char *)at, *end = begin + bytes;
    dvti_cu_result result = DVTI_CU_OK;
    int i;
    if (gpu->n_fresh)
        dvti_cuda_use_fresh(gpu, begin, end);
    for (i = gpu->n_places - 1; i >= 0 && result == DVTI_CU_OK; i--)
        if (begin < gpu->place[i].end && gpu->place[i].begin < end &&
            (writes || gpu->place[i].written))
            result = dvti_cuda_join_place(gpu, i);
    return result;
}

static dvti_cu_result dvti_cuda_touch_view(dvti_cuda_gpu *gpu, const dvti_view *view, bool writes) {
    int64_t size = dvt_dtype_size(view->dtype), below = 0, above = 0;
    int axis;
    for (axis = 0; axis < view->ndim; axis++) {
        int64_t reach;
        if (view->dim[axis] == 0)
            return DVTI_CU_OK;
        reach = (view->dim[axis] - 1) * view->stride[axis];
        if (reach < 0)
            below += reach;
        else
            above += reach;
    }
    return dvti_cuda_touch(gpu, (const char *)view->data + below * size, (above - below + 1) * size,
                           writes);
}

static dvti_cu_result dvti_cuda_touch_update(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                             const dvti_update_of *u) {
    dvti_cu_result result =
        dvti_cuda_touch(gpu, u->g, u->n * dvt_dtype_size(launch->in[0].dtype), false);
    int k;
    for (k = 0; k < launch->n_out && result == DVTI_CU_OK; k++)
        result = dvti_cuda_touch(gpu, k ? u->state[k - 1] : u->w,
                                 u->n * dvt_dtype_size(launch->out[k].dtype), true);
    return result;
}

static dvti_cu_result dvti_cuda_touch_custom(dvti_cuda_gpu *gpu, const dvti_custom *custom) {
    dvti_cu_result result = DVTI_CU_OK;
    int k;
    for (k = 0; k < custom->call.n_args && result == DVTI_CU_OK; k++)
        if (dvti_arg_is_array(custom->call.arg[k].kind))
            result =
                dvti_cuda_touch_view(gpu, &custom->view[k], custom->call.arg[k].kind != DVT_ARG_IN);
    return result;
}

DVTI_FN dvti_cu_result dvti_cuda_touch_launch(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    dvti_cu_result result = DVTI_CU_OK;
    int64_t i;
    int k;
    if (gpu->n_places == 0 && gpu->n_fresh == 0)
        return DVTI_CU_OK;
    for (k = 0; k < launch->n_in && result == DVTI_CU_OK; k++)
        if (launch->in[k].data)
            result = dvti_cuda_touch_view(gpu, &launch->in[k], false);
    for (k = 0; k < launch->n_out && result == DVTI_CU_OK; k++)
        if (launch->out[k].data)
            result = dvti_cuda_touch_view(gpu, &launch->out[k], true);
    if (launch->epilogue.bias.data && result == DVTI_CU_OK)
        result = dvti_cuda_touch_view(gpu, &launch->epilogue.bias, false);
    if (launch->epilogue.mask && result == DVTI_CU_OK) {
        dvti_view mask = launch->out[0];
        mask.data = (void *)(uintptr_t)launch->epilogue.mask;
        result = dvti_cuda_touch_view(gpu, &mask, false);
    }
    if (launch->workspace && result == DVTI_CU_OK)
        result = dvti_cuda_touch(gpu, launch->workspace, launch->workspace_bytes, true);
    if (launch->custom && result == DVTI_CU_OK)
        result = dvti_cuda_touch_custom(gpu, launch->custom);
    for (i = 0; i < launch->n_updates && result == DVTI_CU_OK; i++)
        result = dvti_cuda_touch_update(gpu, launch, &launch->updates[i]);
    return result;
}

DVTI_FN dvti_cu_result dvti_cuda_foreign(dvti_cuda_gpu *gpu, const void *at, int64_t bytes,
                                         bool written, dvti_cuda_gpu *owner,
                                         dvti_cu_stream stream) {
    dvti_cuda_place *place;
    dvti_cu_event event;
    dvti_cu_result result = DVTI_CU_OK;
    if (gpu->n_places == DVTI_LENGTH(gpu->place))
        result = dvti_cuda_join_place(gpu, 0);
    if (result != DVTI_CU_OK)
        return result;
    /* An event belongs to the context of the stream that records it, so it comes from that gpu. */
    event = dvti_cuda_event(owner, &result);
    if (event)
        result = dvti_cuda()->cuEventRecord(event, stream);
    if (result != DVTI_CU_OK) {
        if (event)
            dvti_cuda_event_done(owner, event);
        return result;
    }
    place = &gpu->place[gpu->n_places++];
    place->begin = (const char *)at;
    place->end = place->begin + bytes;
    place->written = written;
    place->physical = owner->physical;
    place->event = event;
    return DVTI_CU_OK;
}

DVTI_FN void dvti_cuda_order_close(dvti_cuda_gpu *gpu) {
    int i;
    for (i = 0; i < DVTI_LENGTH(gpu->mark); i++)
        if (gpu->mark[i].event)
            dvti_cuda()->cuEventDestroy_v2(gpu->mark[i].event);
    for (i = 0; i < gpu->n_places; i++)
        dvti_cuda()->cuEventDestroy_v2(gpu->place[i].event);
    for (i = 0; i < gpu->n_spare; i++)
        dvti_cuda()->cuEventDestroy_v2(gpu->spare[i]);
    memset(gpu->mark, 0, sizeof gpu->mark);
    gpu->n_places = gpu->n_spare = gpu->n_fresh = 0;
}
