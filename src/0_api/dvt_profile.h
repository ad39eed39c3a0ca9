/* [dvt:profile] Points in a context's work with their times, and named ranges for profilers. */

/* A point in the work of a context. It never changes, so any thread may use it. */
typedef struct dvt_event dvt_event;
/* Records the point after all work that was started on ctx so far. On cpu() that work is done, and
   the point is now.
   Waits: no.  Owns: the innermost scope. Errors: NO_DEVICE, HOST_MEMORY, and earlier failures of
   the device. */
DVT_API dvt_event *dvt_event_record(dvt_ctx ctx);
/* Returns whether the work up to the event is done. Waits: no.  Errors: earlier failures of the
   device; false is returned. */
DVT_API bool dvt_event_done(dvt_event *event);
/* Waits until the work up to the event is done; later work may still be running. Errors: as
   dvt_wait. */
DVT_API dvt_status dvt_event_wait(dvt_event *event);
/* Returns the milliseconds between two events of one device, negative if `end` came first. On a GPU
   its own clock measures them, to half a microsecond.
   Waits: for both.  Errors: CONTEXT (two devices), and as dvt_wait; NaN is returned. */
DVT_API double dvt_event_elapsed(dvt_event *begin, dvt_event *end);

/* Begin and end a named range of this thread, which may contain others. Nsight Systems and other
   tools that set NVTX_INJECTION64_PATH show it. So does a trace (dvt_trace_begin), which cuts names
   after 47 bytes and has the 16 outermost ranges. Without both, a call takes nanoseconds. Ranges
   say what the thread does, not what a GPU does later.
   Waits: no.  Errors: NULL_ARGUMENT, VALUE (no range of this thread has begun). */
DVT_API dvt_status dvt_range_push(const char *name);
DVT_API dvt_status dvt_range_pop(void);
