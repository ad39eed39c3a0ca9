/* Stream capture: operations become nodes of a graph instead of being queued. A call that a capture
   cannot hold returns the code of the real driver. The capture is then invalid until it is
   ended. */
#include "entry.h"
#include "graph.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct capture {
    graph *graph;
    stream *origin;
    CUstreamCaptureMode mode;
    pthread_t thread;
    uint64_t id;
    bool invalid;
    struct capture *next;
} capture;

static capture *captures;
static _Thread_local CUstreamCaptureMode interaction = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* ---- sets of node numbers ---- */

static void set_add(int **set, int *count, int *capacity, int n) {
    for (int i = 0; i < *count; i++)
        if ((*set)[i] == n)
            return;
    if (*count == *capacity) {
        *capacity = *capacity ? 2 * *capacity : 4;
        *set = realloc(*set, (size_t)*capacity * sizeof **set);
        if (!*set)
            abort();
    }
    (*set)[(*count)++] = n;
}

static void follow(stream *s, const int *after, int count) {
    for (int i = 0; i < count; i++)
        set_add(&s->after, &s->after_count, &s->after_capacity, after[i]);
}

/* ---- forbidden calls ---- */

static CUresult invalidate(capture *c, CUresult code, const char *what) {
    c->invalid = true;
    return fail(code, "stream capture: %s", what);
}

CUresult capture_forbids(void) {
    if (interaction == CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    for (capture *c = captures; c; c = c->next) {
        bool mine = pthread_equal(c->thread, pthread_self());
        if (c->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
            continue;
        if (mine || (c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                     interaction == CU_STREAM_CAPTURE_MODE_GLOBAL))
            return invalidate(c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                              "a call that may wait for the device");
    }
    return CUDA_SUCCESS;
}

CUresult capture_forbids_stream(stream *s) {
    if (!s->capture)
        return CUDA_SUCCESS;
    return invalidate(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                      "a call that a capturing stream does not allow");
}

CUresult capture_forbids_context(const context *ctx) {
    for (capture *c = captures; c; c = c->next)
        if (c->origin->object.ctx == ctx)
            return invalidate(c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                              "a wait for the whole context");
    return CUDA_SUCCESS;
}

CUresult capture_forbids_legacy(const context *ctx) {
    for (object *o = object_first(); o; o = o->next) {
        stream *s = (stream *)o;
        if (o->kind == KIND_STREAM && o->ctx == ctx && s->capture &&
            !(s->flags & CU_STREAM_NON_BLOCKING))
            return invalidate(s->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                              "the legacy default stream waits for a capturing stream");
    }
    return CUDA_SUCCESS;
}

/* ---- captured operations ---- */

bool capture_add(stream *s, const op *o, CUresult *result) {
    capture *c = s->capture;
    int n;
    if (!c)
        return false;
    if (c->invalid) {
        free(o->staged);
        free(o->launch.params);
        *result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        return true;
    }
    n = graph_add(c->graph, o, s->after, s->after_count);
    s->after_count = 0;
    follow(s, &n, 1);
    *result = CUDA_SUCCESS;
    return true;
}

CUresult capture_record(stream *s, event *e) {
    if (s->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    mark_drop(e->mark);
    e->mark = NULL;
    e->captured = s->capture;
    e->capture_id = s->capture->id;
    e->after_count = 0;
    for (int i = 0; i < s->after_count; i++)
        set_add(&e->after, &e->after_count, &e->after_capacity, s->after[i]);
    return CUDA_SUCCESS;
}

bool event_is_captured(event *e) {
    return e->captured != NULL;
}

static capture *capture_of(const event *e) {
    for (capture *c = captures; c; c = c->next)
        if (c == e->captured && c->id == e->capture_id)
            return c;
    return NULL;
}

CUresult capture_wait(stream *s, event *e) {
    capture *c = capture_of(e);
    if (s->capture && s->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!c) {
        if (s->capture && (e->mark || e->captured))
            return invalidate(s->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                              "a wait for an event from outside the capture");
        return e->captured ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
    }
    if (s->is_null)
        return invalidate(c, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                          "the legacy default stream cannot join");
    if (s->capture && s->capture != c) {
        invalidate(s->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE, "two captures meet");
        return invalidate(c, CUDA_ERROR_STREAM_CAPTURE_MERGE, "two captures meet");
    }
    s->capture = c;
    follow(s, e->after, e->after_count);
    return CUDA_SUCCESS;
}

/* ---- begin and end ---- */

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
    stream *s;
    capture *c;
    ENTER(NEED_HEALTHY);
    if (!(s = stream_get(handle)))
        return CUDA_ERROR_INVALID_HANDLE;
    if (s->is_null)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (s->capture || (unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_ILLEGAL_STATE;
    c = calloc(1, sizeof *c);
    if (!c || !(c->graph = graph_new(KIND_GRAPH))) {
        free(c);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    c->origin = s;
    c->mode = mode;
    c->thread = pthread_self();
    c->id = next_id();
    c->next = captures;
    captures = c;
    s->capture = c;
    s->after_count = 0;
    return CUDA_SUCCESS;
}

static void capture_close(capture *c) {
    capture **at = &captures;
    for (object *o = object_first(); o; o = o->next) {
        stream *s = (stream *)o;
        if (o->kind == KIND_STREAM && s->capture == c) {
            s->capture = NULL;
            s->after_count = 0;
        }
    }
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    free(c);
}

void capture_abandon(stream *s) {
    capture *c = s->capture;
    if (!c)
        return;
    if (c->origin != s) { /* its work has not been joined into the origin stream */
        c->invalid = true;
        s->capture = NULL;
        return;
    }
    graph_destroy(c->graph);
    capture_close(c);
}

/* Tells whether everything that was captured leads to the current end of the origin stream. Nodes
   come after their dependencies. */
static bool joined(const capture *c) {
    const graph *g = c->graph;
    bool *led = calloc((size_t)g->count + 1, sizeof *led), all = true;
    if (!led)
        abort();
    for (int i = 0; i < c->origin->after_count; i++)
        led[c->origin->after[i]] = true;
    for (int i = g->count - 1; i >= 0; i--) {
        all = all && led[i];
        for (int k = 0; led[i] && k < g->nodes[i]->after_count; k++)
            led[g->nodes[i]->after[k]] = true;
    }
    free(led);
    return all;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *out) {
    stream *s;
    capture *c;
    CUresult code = CUDA_SUCCESS;
    ENTER(NEED_CONTEXT);
    s = stream_get(handle);
    if (!s || !out)
        return s ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    *out = NULL;
    if (!(c = s->capture))
        return CUDA_ERROR_ILLEGAL_STATE;
    if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(c->thread, pthread_self()))
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    if (c->origin != s)
        return invalidate(c, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
                          "ended on a stream that did not begin it");
    if (c->invalid)
        code = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (!joined(c))
        code = fail(CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
                    "cuStreamEndCapture: work on another stream was "
                    "not joined by an event");
    if (code == CUDA_SUCCESS)
        *out = (CUgraph)c->graph;
    else
        graph_destroy(c->graph);
    capture_close(c);
    return code;
}

static CUstreamCaptureStatus status(const stream *s) {
    return !s->capture           ? CU_STREAM_CAPTURE_STATUS_NONE
           : s->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *out) {
    stream *s;
    ENTER(NEED_HEALTHY);
    if (!(s = stream_get(handle)))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->is_null) {
        CUresult code = capture_forbids_legacy(s->object.ctx);
        if (code != CUDA_SUCCESS)
            return code;
    }
    *out = status(s);
    return CUDA_SUCCESS;
}

static CUresult info(CUstream handle, CUstreamCaptureStatus *out, cuuint64_t *id, CUgraph *g,
                     const CUgraphNode **after, size_t *count) {
    static _Thread_local CUgraphNode *list;
    stream *s = stream_get(handle);
    if (!s || !out)
        return s ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    *out = status(s);
    if (*out != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return CUDA_SUCCESS;
    if (id)
        *id = s->capture->id;
    if (g)
        *g = (CUgraph)s->capture->graph;
    if (count)
        *count = (size_t)s->after_count;
    if (after) { /* valid until the next call, as documented */
        free(list);
        list = malloc(((size_t)s->after_count + 1) * sizeof *list);
        if (!list)
            return CUDA_ERROR_OUT_OF_MEMORY;
        for (int i = 0; i < s->after_count; i++)
            list[i] = (CUgraphNode)s->capture->graph->nodes[s->after[i]];
        *after = list;
    }
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus *out, cuuint64_t *id,
                                   CUgraph *g, const CUgraphNode **after, size_t *count) {
    ENTER(NEED_HEALTHY);
    return info(handle, out, id, g, after, count);
}

CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus *out, cuuint64_t *id,
                                   CUgraph *g, const CUgraphNode **after,
                                   const CUgraphEdgeData **edges, size_t *count) {
    ENTER(NEED_HEALTHY);
    if (edges)
        *edges = NULL; /* only edges without data */
    return info(handle, out, id, g, after, count);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    CUstreamCaptureMode old = interaction;
    ENTER(NEED_INIT);
    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    interaction = *mode;
    *mode = old;
    return CUDA_SUCCESS;
}
