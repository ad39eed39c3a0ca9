/* Streams as queues, and the three policies of their order. lazy: nothing runs until something
   waits for it, and then only the operations that this wait needs. eager: everything runs at once.
   random: like PCT (Burckhardt et al., ASPLOS 2010). Each stream has a random priority, and the
   highest runnable one runs first. Sometimes a priority is drawn again, and often nothing runs. A
   uniform choice would drain all queues evenly and find far fewer bugs. */
#define _GNU_SOURCE
#include "sim.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

double clock_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

uint64_t next_id(void) {
    static uint64_t id;
    return ++id;
}

/* ---- marks ---- */

mark *mark_hold(mark *m) {
    if (m)
        m->references++;
    return m;
}

void mark_drop(mark *m) {
    if (m && --m->references == 0)
        free(m);
}

static mark *mark_new(stream *s, uint64_t sequence) {
    mark *m = calloc(1, sizeof *m);
    if (!m)
        abort(); /* a test machine out of memory needs no error path */
    m->references = 1;
    m->stream = s;
    m->sequence = sequence;
    m->ctx = s->object.ctx;
    return m;
}

mark *stream_mark(stream *s) {
    if (!s->tail) {
        mark *m = mark_new(s, s->submitted);
        m->done = true;
        m->time = clock_now();
        return m;
    }
    if (!s->tail->mark)
        s->tail->mark = mark_new(s, s->tail->sequence);
    return mark_hold(s->tail->mark);
}

void mark_run(mark *m) {
    if (m && !m->done)
        stream_run_to(m->stream, m->sequence);
}

/* ---- running ---- */

void op_dispose(op *o) {
    mark_drop(o->mark);
    mark_drop(o->wait);
    free(o->staged);
    free(o->launch.params);
    free(o);
}

static bool waits(const stream *s) {
    return s->head && s->head->kind == OP_WAIT && !s->head->wait->done;
}

/* Runs the head operation, which stays at the head meanwhile, because a host function lets other
   threads in. */
static void run_head(stream *s) {
    op *o = s->head;
    s->busy = true;
    op_execute(o);
    s->busy = false;
    s->finished = o->sequence;
    if (o->mark) {
        o->mark->done = true;
        o->mark->time = clock_now();
    }
    s->head = o->next;
    if (!s->head)
        s->tail = NULL;
    if (o->kind == OP_HOST)
        stream_wake();
    op_dispose(o);
}

typedef struct need {
    stream *stream;
    uint64_t sequence;
} need;

/* Runs a stream up to an operation. Dependencies are kept in an explicit list, because a chain of
   waits may be deeper than the C stack. */
void stream_run_to(stream *s, uint64_t sequence) {
    size_t depth = 0, capacity = 16;
    need *needs = malloc(capacity * sizeof *needs);
    if (!needs)
        abort();
    needs[depth++] = (need){s, sequence};
    while (depth > 0) {
        need top = needs[depth - 1];
        op *o = top.stream->head;
        if (top.stream->busy) {
            stream_wait_idle(top.stream);
        } else if (!o || o->sequence > top.sequence) {
            depth--;
        } else if (!waits(top.stream)) {
            run_head(top.stream);
        } else {
            if (depth == capacity && !(needs = realloc(needs, (capacity *= 2) * sizeof *needs)))
                abort();
            needs[depth++] = (need){o->wait->stream, o->wait->sequence};
        }
    }
    free(needs);
}

void stream_drain(stream *s) {
    stream_run_to(s, s->submitted);
}

void stream_poke(stream *s) {
    while (waits(s))
        s = s->head->wait->stream;
    if (s->head && !s->busy)
        run_head(s);
}

/* Runs everything in a context. Host functions may change the list of objects, so each round starts
   again. */
void context_drain(context *ctx) {
    bool again = true;
    while (again) {
        again = false;
        for (object *o = object_first(); o && !again; o = o->next) {
            stream *s = (stream *)o;
            if (o->kind == KIND_STREAM && o->ctx == ctx && s->head) {
                stream_drain(s);
                again = true;
            }
        }
    }
}

static stream *most_urgent(void) {
    stream *best = NULL;
    for (object *o = object_first(); o; o = o->next) {
        stream *s = (stream *)o;
        if (o->kind != KIND_STREAM || !s->head || s->busy || waits(s))
            continue;
        if (s->urgency == 0 || random_next() % 32 == 0)
            s->urgency = 1 + random_next() % 1000;
        if (!best || s->urgency > best->urgency)
            best = s;
    }
    return best;
}

void streams_step(void) {
    for (uint64_t steps = random_next() % 4; steps > 0; steps--) {
        stream *s = most_urgent();
        if (!s || s->urgency < 400) /* even the most urgent one is sometimes delayed */
            return;
        run_head(s);
    }
}

/* ---- queueing ---- */

static void append(stream *s, const op *o) {
    op *copy = malloc(sizeof *copy);
    if (!copy)
        abort();
    *copy = *o;
    copy->next = NULL;
    copy->stream = s;
    copy->sequence = ++s->submitted;
    if (copy->kind == OP_RECORD) {
        copy->mark->stream = s;
        copy->mark->sequence = copy->sequence;
    }
    if (s->tail)
        s->tail->next = copy;
    else
        s->head = copy;
    s->tail = copy;
}

static void append_wait(stream *s, stream *other) {
    op o = {.kind = OP_WAIT};
    if (!other->tail)
        return;
    o.wait = stream_mark(other);
    append(s, &o);
}

/* Orders the legacy default stream after all earlier work on blocking streams, and later work after
   it. */
static CUresult implicit_waits(stream *s) {
    context *ctx = s->object.ctx;
    if (s->is_null) {
        CUresult code = capture_forbids_legacy(ctx);
        if (code != CUDA_SUCCESS)
            return code;
        for (object *o = object_first(); o; o = o->next) {
            stream *other = (stream *)o;
            if (o->kind == KIND_STREAM && o->ctx == ctx && other != s &&
                !(other->flags & CU_STREAM_NON_BLOCKING))
                append_wait(s, other);
        }
    } else if (!(s->flags & CU_STREAM_NON_BLOCKING)) {
        append_wait(s, ctx->null_stream);
    }
    return CUDA_SUCCESS;
}

/* Queues an operation and takes ownership of its memory, also on failure. */
CUresult stream_push(stream *s, const op *o) {
    CUresult code = CUDA_SUCCESS;
    if (capture_add(s, o, &code))
        return code;
    code = implicit_waits(s);
    if (code != CUDA_SUCCESS) {
        free(o->staged);
        free(o->launch.params);
        mark_drop(o->mark);
        mark_drop(o->wait);
        return code;
    }
    append(s, o);
    if (settings.policy == POLICY_EAGER)
        stream_drain(s);
    return CUDA_SUCCESS;
}

static bool overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size) {
    return a < b + b_size && b < a + a_size;
}

bool streams_touch_host(const void *p, uint64_t size) {
    uint64_t at = (uint64_t)(uintptr_t)p;
    for (object *each = object_first(); each; each = each->next) {
        if (each->kind != KIND_STREAM)
            continue;
        for (const op *o = ((stream *)each)->head; o; o = o->next) {
            const copy_plane *c = &o->copy;
            uint64_t rows = c->height ? c->height - 1 : 0;
            if (o->kind == OP_HOST) /* it may read anything */
                return true;
            if (o->kind == OP_COPY &&
                ((c->src_host && overlap(at, size, c->src, rows * c->src_pitch + c->width)) ||
                 (c->dst_host && overlap(at, size, c->dst, rows * c->dst_pitch + c->width))))
                return true;
        }
    }
    return false;
}
