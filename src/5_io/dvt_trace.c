/* Traces of a process in the Trace Event Format of Chrome, and the table of its copies.

   The file is an array of JSON objects, one on each line. Readers accept an array that does not
   end. A thread's events get their line when the public call ends, so they wait in its row:

       events of a thread -> its row, without their ends -> NOTE: line and end -> text -> file

   Queues of devices write theirs at once. Source: "Trace Event Format", Google, 2016. */
#include "5_io/dvt_trace.h"

#define DVTI_TRACE_TEXT 32768   /* bytes before the text is written */
#define DVTI_TRACE_ROW 120000   /* bytes of a row before it is written without lines */
#define DVTI_TRACE_SECONDS 0.25 /* between two writes at most */
#define DVTI_TRACE_LINES 256

/* Copies made by one line of the program. */
typedef struct dvti_line_copies {
    const char *file; /* NULL: not known */
    const char *name;
    int line;
    dvt_ctx from, to;
    int64_t count, bytes;
} dvti_line_copies;

typedef struct dvti_trace_row {
    struct dvti_trace_row *next;
    int number;
    dvti_writer events; /* without "}}", each followed by a newline */
    int n;
    double begin; /* of the first event */
    dvti_line_copies *copy;
    size_t n_copy, copy_capacity;
} dvti_trace_row;

typedef struct dvti_trace {
    bool open;
    dvti_atomic process;
    int64_t generation;
    double start, written;
    dvt_trace_fn write; /* NULL: to the file */
    void *user;
    char *path;
    int fd, error; /* error: errno of the first failed write; -1: it is not known */
    bool failed;
    dvti_writer text;
    dvti_trace_row *rows;
    int n_rows;
    unsigned devices; /* bit i: the row of gpu(i) has its name */
    int64_t dropped;
    dvti_line_copies copied[DVTI_TRACE_LINES + 1]; /* the last: all other lines */
    int n_copied;
} dvti_trace;

static dvti_mutex dvti_trace_lock = DVTI_MUTEX_INIT;
static dvti_trace dvti_the_trace; /* all but `process` is protected by the lock */
static DVTI_TLS dvti_trace_row *dvti_trace_my_row;
static DVTI_TLS int64_t dvti_trace_my_generation;

/* ---- writing ---- */
static void dvti_trace_flush(dvti_trace *t) {
    t->written = dvti_now();
    if (t->text.failed) /* the text up to a whole object is lost with the rest */
        t->dropped++;
    else if (t->write && t->text.length)
        t->write(t->user, t->text.at, t->text.length);
    else if (t->text.length && !t->failed) {
        errno = 0;
        t->failed = !dvti_live_write(t->fd, t->text.at, t->text.length);
        t->error = errno;
    }
    t->text.length = 0;
    t->text.failed = false;
}

static dvti_line_copies *dvti_trace_line_of(dvti_trace *t, const dvti_line_copies *copy) {
    dvti_line_copies *one;
    int i;
    for (i = 0; i < t->n_copied; i++) {
        one = &t->copied[i];
        if (one->line == copy->line && one->from.id == copy->from.id &&
            one->from.type == copy->from.type && one->to.id == copy->to.id &&
            one->to.type == copy->to.type && strcmp(one->name, copy->name) == 0 &&
            strcmp(one->file ? one->file : "", copy->file ? copy->file : "") == 0)
            return one;
    }
    if (t->n_copied == DVTI_TRACE_LINES)
        return &t->copied[DVTI_TRACE_LINES];
    one = &t->copied[t->n_copied++];
    *one = *copy;
    one->count = one->bytes = 0;
    return one;
}

/* Ends the events of a row: they belong to the call at that line; file NULL: not known. */
static void dvti_trace_row_end(dvti_trace *t, dvti_trace_row *row, const char *file, int line,
                               double now) {
    const char *at = row->events.at, *end;
    size_t left = row->events.length, i;
    for (; left; left -= (size_t)(end + 1 - at), at = end + 1) {
        end = (const char *)memchr(at, '\n', left);
        dvti_writer_bytes(&t->text, at, (size_t)(end - at));
        if (file) {
            dvti_writer_text(&t->text, ",\"line\":\"");
            dvti_trace_string(&t->text, file);
            dvti_writer_text(&t->text, ":");
            dvti_writer_int(&t->text, line);
            dvti_writer_text(&t->text, "\"");
        }
        dvti_writer_text(&t->text, "}},\n");
        if (t->text.length > DVTI_TRACE_TEXT)
            dvti_trace_flush(t);
    }
    if (file && row->n > 1) { /* a slice of the whole call */
        char name[200];
        snprintf(name, sizeof name, "%.180s:%d", file, line);
        dvti_trace_slice(&t->text, name, "line", 1, row->number, row->begin, now);
        dvti_writer_text(&t->text, "}},\n");
    }
    for (i = 0; i < row->n_copy; i++) {
        dvti_line_copies *one;
        row->copy[i].file = file;
        row->copy[i].line = line;
        one = dvti_trace_line_of(t, &row->copy[i]);
        one->count++;
        one->bytes += row->copy[i].bytes;
    }
    row->events.length = row->n_copy = 0;
    row->n = 0;
}

/* ---- events ---- */
/* Returns the row of this thread; NULL without memory. */
static dvti_trace_row *dvti_trace_row_here(dvti_trace *t) {
    dvti_trace_row *row = dvti_trace_my_row;
    if (row && dvti_trace_my_generation == t->generation)
        return row;
    row = (dvti_trace_row *)dvti_alloc_zero(sizeof *row);
    if (!row)
        return NULL;
    row->number = ++t->n_rows;
    row->events = dvti_writer_begin();
    row->next = t->rows;
    t->rows = row;
    dvti_trace_my_row = row;
    dvti_trace_my_generation = t->generation;
    dvti_trace_name(&t->text, 1, row->number, "thread ", row->number);
    return row;
}

/* Writes the work of a queue: process 2 + i is gpu(i). */
static void dvti_trace_run(dvti_trace *t, const dvti_event *e) {
    const int process = 2 + e->ctx.id;
    if (!(t->devices >> e->ctx.id & 1)) {
        t->devices |= 1u << e->ctx.id;
        dvti_trace_name(&t->text, process, 0, "gpu(", e->ctx.id);
        dvti_trace_name(&t->text, process, 1, "queue", -1);
    }
    dvti_trace_slice(&t->text, e->name, "queue", process, 1, e->begin - t->start,
                     e->end - t->start);
    if (e->bytes) {
        dvti_writer_text(&t->text, "\"bytes\":");
        dvti_writer_int(&t->text, e->bytes);
    }
    dvti_writer_text(&t->text, "}},\n");
    if (e->number)
        dvti_trace_arrow(&t->text, "f", e, process, 1, t->start);
}

static void dvti_trace_copy(dvti_writer *out, dvti_trace_row *row, const dvti_event *e) {
    dvti_writer_text(out, "\"from\":\"");
    dvti_trace_ctx(out, e->from);
    dvti_writer_text(out, "\",\"to\":\"");
    dvti_trace_ctx(out, e->ctx);
    dvti_writer_text(out, "\",\"bytes\":");
    dvti_writer_int(out, e->bytes);
    if (dvti_grow((void **)&row->copy, &row->copy_capacity, row->n_copy + 1, sizeof *row->copy)) {
        dvti_line_copies *copy = &row->copy[row->n_copy++];
        memset(copy, 0, sizeof *copy);
        copy->name = e->name;
        copy->from = e->from;
        copy->to = e->ctx;
        copy->bytes = e->bytes;
    } else
        out->failed = true;
}

/* Adds an event of this thread to its row. */
static void dvti_trace_add(dvti_trace *t, dvti_trace_row *row, const dvti_event *e) {
    static const char *const categories[] = {"operation", "queue", "transfer", "wait", "compile"};
    dvti_writer *out = &row->events;
    size_t before = out->length;
    if (!row->n++)
        row->begin = e->begin - t->start;
    dvti_trace_slice(out, e->name, categories[e->kind], 1, row->number, e->begin - t->start,
                     e->end - t->start);
    if (e->kind == DVTI_EVENT_COPY)
        dvti_trace_copy(out, row, e);
    else {
        dvti_writer_text(out, "\"ctx\":\"");
        dvti_trace_ctx(out, e->ctx);
        dvti_writer_text(out, "\"");
        if (e->launch)
            dvti_trace_launch(out, e->launch);
        else if (e->product)
            dvti_trace_product(out, e->product);
    }
    dvti_writer_text(out, "\n");
    if (out->failed) {
        out->length = before;
        out->failed = false;
        t->dropped++;
    } else if (e->number && !dvti_is_host_memory(e->ctx))
        dvti_trace_arrow(&t->text, "s", e, 1, row->number, t->start);
}

/* Writes a range at once: it ends outside of public calls with a line. */
static void dvti_trace_range(dvti_trace *t, const dvti_trace_row *row, const dvti_event *e) {
    if (e->begin < t->start) /* began before this trace, under a listener of before */
        return;
    dvti_trace_slice(&t->text, e->name, "range", 1, row->number, e->begin - t->start,
                     e->end - t->start);
    dvti_writer_text(&t->text, "}},\n");
}

static void dvti_trace_heard(dvti_trace *t, const dvti_event *e) {
    dvti_trace_row *row = NULL;
    if (e->kind == DVTI_EVENT_RUN)
        dvti_trace_run(t, e);
    else if ((row = dvti_trace_row_here(t)) == NULL)
        t->dropped++;
    else if (e->kind == DVTI_EVENT_RANGE)
        dvti_trace_range(t, row, e);
    else if (e->kind == DVTI_EVENT_NOTE)
        dvti_trace_row_end(t, row, e->name, e->line, e->end - t->start);
    else
        dvti_trace_add(t, row, e);
    if (row && row->events.length > DVTI_TRACE_ROW)
        dvti_trace_row_end(t, row, NULL, 0, 0);
    if (t->text.length > DVTI_TRACE_TEXT || e->end - t->written > DVTI_TRACE_SECONDS)
        dvti_trace_flush(t);
}

/* A forked child must not write to its parent's file, whose lock may be held. */
static void dvti_trace_hear(void *user, const dvti_event *e) {
    dvti_trace *t = &dvti_the_trace;
    (void)user;
    if (dvti_atomic_load(&t->process) != dvti_process_id())
        return;
    dvti_mutex_lock(&dvti_trace_lock);
    if (t->open)
        dvti_trace_heard(t, e);
    dvti_mutex_unlock(&dvti_trace_lock);
}

/* ---- begin and end ---- */
/* The caller holds the lock. */
static dvt_status dvti_trace_open(dvti_trace *t, const char *function, const char *path,
                                  dvt_trace_fn write, void *user) {
    if (t->open && dvti_atomic_load(&t->process) == dvti_process_id())
        return dvti_fail(DVT_ERR_VALUE,
                         "%s: a trace has begun already; expected one at a time: call "
                         "dvt_trace_end first",
                         function);
    t->fd = -1;
    t->path = path ? dvti_strdup(path) : NULL;
    if (path && !t->path)
        return dvti_fail_memory(function, (int64_t)strlen(path));
    if (path && (t->fd = dvti_live_open(function, path)) < 0) {
        dvti_free(t->path);
        return dvti_failure();
    }
    t->text = dvti_writer_begin();
    dvti_writer_text(&t->text, "[\n");
    t->start = t->written = dvti_now();
    dvti_trace_name(&t->text, 1, 0, "threads", -1);
    if (t->text.failed) {
        dvti_writer_free(&t->text);
        dvti_free(t->path);
        (void)(t->fd >= 0 && dvti_live_close(t->fd));
        return dvti_fail_memory(function, 64);
    }
    t->open = true;
    t->write = write;
    t->user = user;
    t->failed = false;
    t->rows = NULL;
    t->n_rows = t->n_copied = 0;
    t->devices = 0;
    t->dropped = 0;
    t->generation++;
    memset(t->copied, 0, sizeof t->copied);
    dvti_trace_flush(t);
    dvti_atomic_store(&t->process, dvti_process_id());
    dvti_listen_all(dvti_trace_hear);
    return DVT_OK;
}

static dvt_status dvti_trace_begin(const char *function, const char *path, dvt_trace_fn write,
                                   void *user) {
    dvti_trace *t = &dvti_the_trace;
    dvt_status status;
    dvti_mutex_lock(&dvti_trace_lock);
    status = dvti_trace_open(t, function, path, write, user);
    dvti_mutex_unlock(&dvti_trace_lock);
    return status;
}

DVT_API dvt_status dvt_trace_begin(const char *path) {
    return path ? dvti_trace_begin("dvt_trace_begin", path, NULL, NULL)
                : dvti_null("dvt_trace_begin", "path");
}

DVT_API dvt_status dvt_trace_begin_to(dvt_trace_fn write, void *user) {
    return write ? dvti_trace_begin("dvt_trace_begin_to", NULL, write, user)
                 : dvti_null("dvt_trace_begin_to", "write");
}

/* The caller holds the lock. The last object has no comma, so that the text is valid JSON. */
static dvt_status dvti_trace_close(dvti_trace *t) {
    static const char *const function = "dvt_trace_end";
    dvt_status status = DVT_OK;
    dvti_listen_all(NULL);
    while (t->rows) {
        dvti_trace_row *row = t->rows;
        dvti_trace_row_end(t, row, NULL, 0, 0);
        t->rows = row->next;
        dvti_writer_free(&row->events);
        dvti_free(row->copy);
        dvti_free(row);
    }
    dvti_trace_flush(t);
    dvti_trace_object(&t->text, "process_sort_index", "__metadata", "M", 1, 0, 0);
    dvti_writer_text(&t->text, ",\"args\":{\"sort_index\":-1}}\n]\n");
    dvti_trace_flush(t);
    dvti_writer_free(&t->text);
    t->open = false;
    if (t->fd >= 0) {
        errno = 0;
        if (!dvti_live_close(t->fd) && !t->failed) {
            t->failed = true;
            t->error = errno;
        }
    }
    if (t->failed)
        status = dvti_live_failed(function, t->path, t->error);
    else if (t->dropped)
        status = dvti_fail(DVT_ERR_HOST_MEMORY,
                           "%s: %lld events or parts of the text are missing, since no host memory "
                           "was left for them; trace a shorter time, or free arrays",
                           function, (long long)t->dropped);
    dvti_free(t->path);
    t->path = NULL;
    return status;
}

DVT_API dvt_status dvt_trace_end(void) {
    dvti_trace *t = &dvti_the_trace;
    const bool mine = dvti_atomic_load(&t->process) == dvti_process_id();
    dvt_status status = DVT_OK;
    bool open = false;
    if (mine) {
        dvti_settle_all();
        dvti_mutex_lock(&dvti_trace_lock);
        open = t->open;
        if (open)
            status = dvti_trace_close(t);
        dvti_mutex_unlock(&dvti_trace_lock);
    }
    if (!open)
        return dvti_fail(DVT_ERR_VALUE,
                         "dvt_trace_end: no trace has begun; expected a call of dvt_trace_begin "
                         "before: call it once for each end");
    return status;
}

/* ---- the table of copies ---- */
static void dvti_trace_line_text(dvti_text *text, const dvti_line_copies *one, bool others) {
    char from[24], to[24];
    snprintf(from, sizeof from, one->from.id < 0 ? "all GPUs" : "%s(%d)",
             dvti_is_host_memory(one->from) ? "cpu" : "gpu", one->from.id);
    snprintf(to, sizeof to, one->to.id < 0 ? "all GPUs" : "%s(%d)",
             dvti_is_host_memory(one->to) ? "cpu" : "gpu", one->to.id);
    dvti_text_add(text, "%14lld %8lld  %-8s %-8s  %-24s ", (long long)one->bytes,
                  (long long)one->count, others ? "" : from, others ? "" : to,
                  others ? "" : one->name);
    if (others)
        dvti_text_add(text, "other lines\n");
    else if (one->file)
        dvti_text_add(text, "%s:%d\n", one->file, one->line);
    else
        dvti_text_add(text, "not known\n");
}

DVT_API size_t dvt_transfers_format(char *buffer, size_t size) {
    dvti_trace *t = &dvti_the_trace;
    dvti_text text = dvti_text_begin(buffer, size);
    bool done[DVTI_TRACE_LINES + 1];
    int i, turn;
    memset(done, 0, sizeof done);
    dvti_text_add(&text, "%14s %8s  %-8s %-8s  %-24s Line\n", "Bytes", "Copies", "From", "To",
                  "Function");
    dvti_mutex_lock(&dvti_trace_lock);
    for (turn = 0; turn < t->n_copied; turn++) {
        int best = -1;
        for (i = 0; i < t->n_copied; i++)
            if (!done[i] && (best < 0 || t->copied[i].bytes > t->copied[best].bytes))
                best = i;
        done[best] = true;
        dvti_trace_line_text(&text, &t->copied[best], false);
    }
    if (t->copied[DVTI_TRACE_LINES].count)
        dvti_trace_line_text(&text, &t->copied[DVTI_TRACE_LINES], true);
    if (t->n_copied == 0)
        dvti_text_add(&text, "No copies since dvt_trace_begin, which starts the counts.\n");
    dvti_mutex_unlock(&dvti_trace_lock);
    return text.length;
}

/* The table may grow between the two calls; then it is cut. */
DVT_API void dvt_print_transfers(void) {
    size_t length = dvt_transfers_format(NULL, 0);
    char *buffer = (char *)dvti_alloc(length + 1);
    if (!buffer) {
        dvti_fail_memory("dvt_print_transfers", (int64_t)length + 1);
        return;
    }
    dvt_transfers_format(buffer, length + 1);
    fputs(buffer, stdout);
    dvti_free(buffer);
}

#undef DVTI_TRACE_TEXT
#undef DVTI_TRACE_ROW
#undef DVTI_TRACE_SECONDS
#undef DVTI_TRACE_LINES
