/* Events and their listeners: what threads and devices do, for traces and summaries. Without a
   listener an operation loads one flag. */
#include "1_base/dvt_float_mode.h"
#include "2_core/dvt_core.h"

static dvti_atomic dvti_listeners; /* their number */
static dvti_atomic dvti_hears_all; /* a dvti_event_fn, or 0 */
static DVTI_TLS dvti_listener dvti_hears_here;

DVTI_FN bool dvti_listened(void) {
    return dvti_atomic_peek(&dvti_listeners) != 0;
}

DVTI_FN void dvti_listen_all(dvti_event_fn hear) {
    const bool before = dvti_atomic_load(&dvti_hears_all) != 0;
    dvti_atomic_store(&dvti_hears_all, (int64_t)(intptr_t)hear);
    dvti_atomic_add(&dvti_listeners, (hear != NULL) - before);
}

DVTI_FN dvti_listener dvti_listen_here(dvti_listener listener) {
    dvti_listener before = dvti_hears_here;
    dvti_hears_here = listener;
    dvti_atomic_add(&dvti_listeners, (listener.hear != NULL) - (before.hear != NULL));
    return before;
}

DVTI_FN dvti_event dvti_event_begin(dvti_event_kind kind, const char *name, dvt_ctx ctx) {
    dvti_event event;
    memset(&event, 0, sizeof event);
    event.kind = kind;
    event.name = name;
    event.ctx = event.from = ctx;
    event.begin = dvti_now();
    return event;
}

/* Listeners compute with floats, so they get the default floating-point mode. */
DVTI_FN void dvti_event_send(const dvti_event *event) {
    const dvti_float_mode mode = dvti_float_mode_begin();
    const dvti_event_fn hear = (dvti_event_fn)(intptr_t)dvti_atomic_load(&dvti_hears_all);
    if (hear && event->ctx.type != DVT_DEVICE_META) /* nothing happens there */
        hear(NULL, event);
    if (dvti_hears_here.hear)
        dvti_hears_here.hear(dvti_hears_here.user, event);
    dvti_float_mode_end(&mode);
}

DVTI_FN void dvti_event_end(dvti_event *event) {
    event->end = dvti_now();
    dvti_event_send(event);
}
