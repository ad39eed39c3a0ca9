/* Events of the program (dvt_event): points in the queue of a device. The device stays in use while
   an event of it exists, as with arrays. */
#include "2_core/dvt_core.h"

struct dvt_event {
    dvti_object object;
    dvti_device *device;
    void *mark; /* NULL: the queue is always empty */
    double at;  /* the time without a mark */
};

static void dvti_queue_event_destroy(void *object) {
    dvt_event *event = (dvt_event *)object;
    if (event->mark)
        event->device->backend->marks()->drop(event->device, event->mark);
    dvti_device_end(event->device);
    dvti_small_free(event, sizeof *event);
}

DVT_API dvt_event *dvt_event_record(dvt_ctx ctx) {
    static const char *const function = "dvt_event_record";
    dvti_device *device = dvti_device_begin(function, dvti_ctx(ctx));
    dvt_event *event;
    if (!device)
        return NULL;
    event = (dvt_event *)dvti_small_alloc(sizeof *event);
    if (!event) {
        dvti_fail_memory(function, (int64_t)sizeof *event);
        dvti_device_end(device);
        return NULL;
    }
    event->device = device;
    event->mark = NULL;
    event->at = dvti_now();
    if ((device->backend->marks &&
         device->backend->marks()->record(device, function, &event->mark) != DVT_OK) ||
        !dvti_object_begin(event, dvti_queue_event_destroy, function)) {
        dvti_queue_event_destroy(event);
        return NULL;
    }
    return event;
}

static dvt_status dvti_queue_event_reached(const char *function, const dvt_event *event, bool wait,
                                           bool *done) {
    *done = true;
    if (!event->mark)
        return DVT_OK;
    if (wait)
        dvti_atomic_add(&dvti_stats()->waits, 1);
    return event->device->backend->marks()->reached(event->device, function, event->mark, wait,
                                                    done);
}

DVT_API bool dvt_event_done(dvt_event *event) {
    bool done = false;
    if (!event) {
        dvti_null("dvt_event_done", "event");
        return false;
    }
    return dvti_queue_event_reached("dvt_event_done", event, false, &done) == DVT_OK && done;
}

DVT_API dvt_status dvt_event_wait(dvt_event *event) {
    bool done;
    return event ? dvti_queue_event_reached("dvt_event_wait", event, true, &done)
                 : dvti_null("dvt_event_wait", "event");
}

DVT_API double dvt_event_elapsed(dvt_event *begin, dvt_event *end) {
    static const char *const function = "dvt_event_elapsed";
    double milliseconds = (double)NAN;
    bool done;
    if (!begin || !end) {
        dvti_null(function, begin ? "end" : "begin");
        return milliseconds;
    }
    if (begin->device != end->device) {
        char *first = dvti_name_buffer();
        snprintf(first, DVTI_NAME_SIZE, "%s", dvt_ctx_name(begin->device->ctx));
        dvti_fail(DVT_ERR_CONTEXT,
                  "%s: begin is an event of %s and end one of %s, which have different clocks; "
                  "record both on one context",
                  function, first, dvt_ctx_name(end->device->ctx));
        return milliseconds;
    }
    if (dvti_queue_event_reached(function, begin, true, &done) != DVT_OK ||
        dvti_queue_event_reached(function, end, true, &done) != DVT_OK)
        return milliseconds;
    if (!begin->mark)
        return (end->at - begin->at) * 1e3;
    begin->device->backend->marks()->elapsed(begin->device, function, begin->mark, end->mark,
                                             &milliseconds);
    return milliseconds;
}
