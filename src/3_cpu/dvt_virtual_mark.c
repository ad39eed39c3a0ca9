/* Points in the queue of a virtual GPU: their times are those of the real clock, which modeled work
   takes too. */
#include "3_cpu/dvt_virtual.h"

static void dvti_virtual_mark_unref(dvti_virtual_mark *mark) {
    if (dvti_atomic_add(&mark->references, -1) == 0)
        dvti_free(mark);
}

DVTI_FN void dvti_virtual_mark_reached(dvti_virtual_mark *mark) {
    mark->at = dvti_now();
    dvti_virtual_mark_unref(mark);
}

static dvt_status dvti_virtual_mark_record(dvti_device *device, const char *function, void **out) {
    dvti_virtual *v = dvti_virtual_of(device);
    dvt_status status = dvti_virtual_usable(device, function);
    dvti_virtual_mark *mark;
    if (status != DVT_OK)
        return status;
    mark = (dvti_virtual_mark *)dvti_alloc_zero(sizeof *mark);
    if (!mark)
        return dvti_fail_memory(function, (int64_t)sizeof *mark);
    mark->references = 2;
    *out = mark;
    if (v->threaded) {
        dvti_virtual_slot(v, DVTI_COMMAND_MARK)->dst = mark;
        mark->number = v->put + 1; /* with the lock, which dvti_virtual_put releases */
        dvti_virtual_put(v);
    } else
        dvti_virtual_mark_reached(mark);
    return DVT_OK;
}

static dvt_status dvti_virtual_mark_wait(dvti_device *device, const char *function, void *at,
                                         bool wait, bool *done) {
    dvti_virtual *v = dvti_virtual_of(device);
    dvti_virtual_mark *mark = (dvti_virtual_mark *)at;
    dvt_status status = dvti_virtual_usable(device, function);
    *done = false;
    if (status != DVT_OK)
        return status;
    if (wait)
        dvti_virtual_await(v, mark->number);
    dvti_mutex_lock(&v->lock);
    *done = v->completed >= mark->number;
    dvti_mutex_unlock(&v->lock);
    return wait ? dvti_virtual_pending(v) : DVT_OK;
}

static dvt_status dvti_virtual_mark_elapsed(dvti_device *device, const char *function, void *begin,
                                            void *end, double *milliseconds) {
    (void)device;
    (void)function;
    *milliseconds = (((dvti_virtual_mark *)end)->at - ((dvti_virtual_mark *)begin)->at) * 1e3;
    return DVT_OK;
}

static void dvti_virtual_mark_drop(dvti_device *device, void *mark) {
    (void)device;
    dvti_virtual_mark_unref((dvti_virtual_mark *)mark);
}

DVTI_FN const dvti_marks *dvti_virtual_marks(void) {
    static const dvti_marks marks = {dvti_virtual_mark_record, dvti_virtual_mark_wait,
                                     dvti_virtual_mark_elapsed, dvti_virtual_mark_drop};
    return &marks;
}
