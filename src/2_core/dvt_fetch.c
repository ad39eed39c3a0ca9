/* Copies to host memory that the caller polls instead of waiting. Devices that cannot do it copy
   when the fetch starts. */
#include "1_base/dvt_float_mode.h"
#include "2_core/dvt_core.h"

struct dvti_fetch {
    dvti_device *device;     /* NULL: it was left */
    const dvti_fetches *own; /* NULL: the device has none */
    void *handle;
    char *at;
};

DVTI_FN dvti_fetch *dvti_fetch_new(const char *function, dvt_ctx ctx, int64_t bytes) {
    dvti_device *device = dvti_device_begin(function, ctx);
    dvti_fetch *f = device ? (dvti_fetch *)dvti_alloc_zero(sizeof *f) : NULL;
    if (!device)
        return NULL;
    if (f) {
        f->device = device;
        f->own = device->backend->fetches ? device->backend->fetches() : NULL;
        if (f->own)
            f->handle = f->own->make(device, function, bytes, &f->at);
        else
            f->at = (char *)dvti_alloc((size_t)bytes);
        if (f->own ? f->handle != NULL : f->at != NULL)
            return f;
    }
    if (!f || !f->own)
        dvti_fail_memory(function, bytes);
    dvti_free(f);
    dvti_device_end(device);
    return NULL;
}

DVTI_FN dvt_status dvti_fetch_start(const char *function, dvti_fetch *f, dvt_array *src) {
    const int64_t bytes = dvt_nbytes(src);
    const void *from = dvti_view_of(src).data;
    dvti_float_mode mode;
    dvt_status status;
    if (!bytes)
        return DVT_OK;
    dvti_atomic_add(&dvti_stats()->to_host_count, 1);
    dvti_atomic_add(&dvti_stats()->to_host_bytes, bytes);
    mode = dvti_float_mode_begin(); /* the modeled times of virtual GPUs are floats */
    status = f->own ? f->own->start(f->device, f->handle, from, bytes)
                    : f->device->backend->download(f->device, f->at, from, bytes);
    dvti_float_mode_end(&mode);
    if (status == DVT_OK && dvti_listened()) {
        dvti_event event = dvti_event_begin(DVTI_EVENT_COPY, function, dvt_cpu());
        event.from = src->storage->ctx;
        event.bytes = bytes;
        dvti_note_later(f->device);
        dvti_event_end(&event);
    }
    return status;
}

DVTI_FN bool dvti_fetch_done(dvti_fetch *f, bool wait, dvt_status *status) {
    bool done = true;
    if (f->own && f->device)
        *status = f->own->poll(f->device, f->handle, wait, &done);
    return done && *status == DVT_OK;
}

DVTI_FN char *dvti_fetch_bytes(const dvti_fetch *f) {
    return f->at;
}

DVTI_FN void dvti_fetch_leave(dvti_fetch *f) {
    if (!f->device || (f->own && !f->own->end_alone))
        return;
    dvti_device_end(f->device);
    f->device = NULL;
}

DVTI_FN void dvti_fetch_end(dvti_fetch *f) {
    if (!f)
        return;
    if (f->own && !f->device)
        f->own->end_alone(f->handle);
    else if (f->own)
        f->own->end(f->device, f->handle);
    else
        dvti_free(f->at);
    if (f->device)
        dvti_device_end(f->device);
    dvti_free(f);
}
