/* Times of launches: two CUDA events around each launch in the compute stream, as long as there is
   a listener. A base event, complete at a known time of the host, relates both clocks:

       base            begin     end
       |---------------|---------|------> stream
       at (dvti_now)   + elapsed(base, begin)

   Elapsed times are float32 milliseconds, so the base is renewed every second, where the stream is
   empty anyway. A failure of these calls is none of the operation: its time is then missing. */
#include "3_cuda/device/dvt_cuda_device.h"

#define DVTI_CUDA_EVENT_TIMING 0

static bool dvti_cuda_time_record(dvti_cuda_gpu *gpu, dvti_cu_event *event) {
    const dvti_cuda_driver *cu = dvti_cuda();
    if (!*event && cu->cuEventCreate(event, DVTI_CUDA_EVENT_TIMING) != DVTI_CU_OK) {
        *event = NULL;
        return false;
    }
    return cu->cuEventRecord(*event, gpu->compute) == DVTI_CU_OK;
}

/* Renews the base. Waits for the stream, which is short: all measured launches are done. */
static bool dvti_cuda_time_base(dvti_cuda_gpu *gpu, dvti_cuda_timing *t) {
    bool done = dvti_cuda_time_record(gpu, &t->base) &&
                dvti_cuda()->cuEventSynchronize(t->base) == DVTI_CU_OK;
    t->at = done ? dvti_now() : 0;
    return done;
}

DVTI_FN dvti_cuda_timed *dvti_cuda_time_begin(dvti_cuda_gpu *gpu, const char *name,
                                              int64_t number) {
    dvti_cuda_timing *t = gpu->timing;
    dvti_cuda_timed *timed;
    if (!t)
        t = gpu->timing = (dvti_cuda_timing *)dvti_alloc_zero(sizeof *t);
    if (!t || !dvti_cuda()->elapsed)
        return NULL;
    if (t->n == DVTI_CUDA_TIMED)
        dvti_cuda_time_send(gpu);
    if (t->n == 0 && dvti_now() - t->at > 1 && !dvti_cuda_time_base(gpu, t))
        return NULL;
    timed = &t->item[t->n];
    timed->name = name;
    timed->number = number;
    return dvti_cuda_time_record(gpu, &timed->begin) ? timed : NULL;
}

DVTI_FN void dvti_cuda_time_end(dvti_cuda_gpu *gpu, dvti_cuda_timed *timed) {
    if (dvti_cuda_time_record(gpu, &timed->end))
        gpu->timing->n++;
}

DVTI_FN void dvti_cuda_time_send(dvti_cuda_gpu *gpu) {
    const dvti_cuda_driver *cu = dvti_cuda();
    dvti_cuda_timing *t = gpu->timing;
    int i;
    if (!t || !t->n)
        return;
    for (i = 0; i < t->n && (i || cu->cuEventSynchronize(t->item[t->n - 1].end) == DVTI_CU_OK);
         i++) {
        const dvti_cuda_timed *timed = &t->item[i];
        float before = 0, during = 0;
        if (cu->elapsed(&before, t->base, timed->begin) == DVTI_CU_OK &&
            cu->elapsed(&during, timed->begin, timed->end) == DVTI_CU_OK) {
            dvti_event event = dvti_event_begin(DVTI_EVENT_RUN, timed->name, gpu->ctx);
            event.number = timed->number;
            event.begin = t->at + (double)before * 1e-3;
            event.end = event.begin + (double)during * 1e-3;
            dvti_event_send(&event);
        }
    }
    t->n = 0;
}

DVTI_FN void dvti_cuda_time_close(dvti_cuda_gpu *gpu, bool usable) {
    dvti_cuda_timing *t = gpu->timing;
    int i;
    if (!t)
        return;
    if (usable) {
        if (t->base)
            dvti_cuda()->cuEventDestroy_v2(t->base);
        for (i = 0; i < DVTI_CUDA_TIMED; i++) {
            if (t->item[i].begin)
                dvti_cuda()->cuEventDestroy_v2(t->item[i].begin);
            if (t->item[i].end)
                dvti_cuda()->cuEventDestroy_v2(t->item[i].end);
        }
    }
    dvti_free(t);
    gpu->timing = NULL;
}

#undef DVTI_CUDA_EVENT_TIMING
