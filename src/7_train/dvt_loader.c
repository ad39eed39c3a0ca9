/* The loader: batches in the order of an epoch (dvt_order.c), in one part per context. Worker
   threads make batches in advance and copy their parts, into the slots of a ring. The caller takes
   them out in order, so the number of workers changes only the speed.

             taken                     making
               |                         |
   ring    [ ready | ready | a worker's | a worker's | empty | empty ]      2 slots per worker */
#include "7_train/dvt_ranks.h"

#define DVTI_MAX_WORKERS 64

typedef enum dvti_made_state { DVTI_MADE_EMPTY, DVTI_MADE_READY, DVTI_MADE_FAILED } dvti_made_state;

/* A batch made by a worker, or its error. */
typedef struct dvti_made {
    dvti_made_state state;
    dvt_array *part[2 * DVT_MAX_CONTEXTS]; /* of x on every context, then of y; owned */
    dvt_status status;
    bool logged; /* the error was logged when it happened */
    char message[1024];
} dvti_made;

typedef struct dvti_worker {
    dvt_loader *loader;
#if DVTI_THREADS
    dvti_thread thread;
#endif
    int64_t *index; /* the samples of its batch, a copy: the order may change meanwhile */
    uint32_t key[2];
    size_t capacity;
} dvti_worker;

struct dvt_loader {
    dvti_object object;
    dvt_loader_desc desc;
    dvti_batcher batcher;
    dvti_order order; /* of this epoch, or of the one before if none is open */
    int64_t taken;    /* batches */
    bool open;        /* an epoch has begun; the fields below belong to the workers */
    dvti_mutex lock;
    dvti_cond work, done;
    int64_t making;     /* the next batch that a worker will begin */
    int64_t generation; /* batches begun under another generation are discarded */
    bool tried, stop;
    int started, slots; /* running workers; length of the ring */
    int64_t process;
    dvti_worker *worker;
    dvti_made *slot;
};

/* Opens an epoch. Changes nothing when there is no memory for it. */
static bool dvti_epoch_open(dvt_loader *l) {
    if (!dvti_order_open(&l->order, "dvt_loader_next", &l->desc, l->batcher.data->length))
        return false;
    l->taken = l->making = 0;
    l->open = true;
    return true;
}

/* Finds the samples of a batch that this process makes: its share, or all. Returns their number. */
static int64_t dvti_batch_share(const dvt_loader *l, int64_t batch, const int64_t **sample) {
    int64_t at = batch * l->desc.batch_size, first = 0;
    int64_t n = DVTI_MIN(l->desc.batch_size, l->order.length - at);
    if (!l->desc.all_ranks) {
        first = dvti_rank_row(n, dvt_rank());
        n = dvti_rank_row(n, dvt_rank() + 1) - first;
    }
    *sample = l->order.sample + at + first;
    return n;
}

/* Makes a batch in the current scope: the parts of x, then those of y. */
static bool dvti_loader_make(const dvt_loader *l, const uint32_t key[2], const int64_t *index,
                             int64_t n, dvt_array **part) {
    static const char *const function = "dvt_loader_next";
    dvt_scope_guard scope = dvt_scope_begin();
    const dvt_ctx_list *ctxs = &l->desc.ctxs;
    dvt_array *x, *y;
    int i;
    bool ok = dvti_batch_make(function, &l->batcher, key, index, n, &x, &y) &&
              dvti_split_and_load(function, x, *ctxs, false, part) == DVT_OK &&
              dvti_split_and_load(function, y, *ctxs, false, part + ctxs->n) == DVT_OK;
    for (i = 0; ok && i < 2 * ctxs->n; i++)
        dvt_keep(part[i]);
    dvt_scope_end(&scope);
    return ok;
}

/* ---- workers; the lock protects what they share with the caller ---- */
static void dvti_made_clear(const dvt_loader *l, dvti_made *made) {
    int i;
    for (i = 0; made->state == DVTI_MADE_READY && i < 2 * l->desc.ctxs.n; i++)
        dvti_disown(made->part[i]);
    made->state = DVTI_MADE_EMPTY;
}

/* Empties the ring and restarts at the batch that the caller takes next. */
static void dvti_ring_restart(dvt_loader *l) {
    int i;
    for (i = 0; i < l->slots; i++)
        dvti_made_clear(l, &l->slot[i]);
    l->generation++;
    l->making = l->taken;
}

static void dvti_loader_unlock_all(dvt_loader *l) {
    static const dvti_mutex unlocked = DVTI_MUTEX_INIT;
    static const dvti_cond fresh = DVTI_COND_INIT;
    memcpy(&l->lock, &unlocked, sizeof unlocked);
    memcpy(&l->work, &fresh, sizeof fresh);
    memcpy(&l->done, &fresh, sizeof fresh);
}

#if DVTI_THREADS
static void dvti_worker_make(dvti_worker *w, int64_t n, dvti_made *made) {
    dvt_scope_guard scope = dvt_scope_begin();
    int i;
    dvt_clear_error();
    memset(made, 0, sizeof *made);
    made->state = DVTI_MADE_FAILED;
    if (dvti_loader_make(w->loader, w->key, w->index, n, made->part)) {
        for (i = 0; i < 2 * w->loader->desc.ctxs.n; i++)
            dvti_own(made->part[i]);
        made->state = DVTI_MADE_READY;
    } else {
        made->status = dvt_error_code();
        made->logged = true;
        snprintf(made->message, sizeof made->message, "%s", dvt_error());
    }
    dvt_scope_end(&scope);
}

/* Copies the sample numbers of the next batch, and the key. Returns false when there is no memory
   for them. */
static bool dvti_worker_begin(dvti_worker *w, const int64_t *sample, int64_t n) {
    const dvt_loader *l = w->loader;
    if (!dvti_grow((void **)&w->index, &w->capacity, (size_t)n, sizeof *w->index))
        return false;
    if (n)
        memcpy(w->index, sample, (size_t)n * sizeof *w->index);
    memcpy(w->key, l->order.key, sizeof w->key);
    return true;
}

DVTI_THREAD_MAIN(dvti_worker_run) {
    dvti_worker *w = (dvti_worker *)user;
    dvt_loader *l = w->loader;
    dvti_made made;
    dvti_parallel_off();
    dvti_mutex_lock(&l->lock);
    for (;;) {
        const int64_t *sample;
        int64_t batch, n, generation;
        while (!l->stop &&
               !(l->open && l->making < l->order.batches && l->making < l->taken + l->slots))
            dvti_cond_wait(&l->work, &l->lock);
        if (l->stop)
            break;
        batch = l->making++;
        n = dvti_batch_share(l, batch, &sample);
        generation = l->generation;
        if (dvti_worker_begin(w, sample, n)) {
            dvti_mutex_unlock(&l->lock);
            dvti_worker_make(w, n, &made);
            dvti_mutex_lock(&l->lock);
        } else {
            memset(&made, 0, sizeof made);
            made.state = DVTI_MADE_FAILED;
            made.status = DVT_ERR_HOST_MEMORY;
            snprintf(made.message, sizeof made.message,
                     "dvt_loader_next: no host memory left for the numbers of a batch's samples");
        }
        if (generation == l->generation) {
            l->slot[batch % l->slots] = made;
            dvti_cond_broadcast(&l->done);
        } else
            dvti_made_clear(l, &made);
    }
    dvti_mutex_unlock(&l->lock);
    return 0;
}

/* Starts the workers at the first batch. Fewer workers than requested, or none, only cost speed. */
static bool dvti_workers_start(dvt_loader *l) {
    int n = l->desc.num_workers, i;
    if (l->tried || n == 0)
        return true;
    l->worker = (dvti_worker *)dvti_alloc_zero((size_t)n * sizeof *l->worker);
    l->slot = (dvti_made *)dvti_alloc_zero((size_t)n * 2 * sizeof *l->slot);
    if (!l->worker || !l->slot) {
        dvti_free(l->worker);
        dvti_free(l->slot);
        l->worker = NULL;
        l->slot = NULL;
        dvti_fail_memory("dvt_loader_next", n * (int64_t)(sizeof *l->worker + 2 * sizeof *l->slot));
        return false;
    }
    l->tried = true;
    l->slots = 2 * n;
    l->process = dvti_process_id();
    for (i = 0; i < n; i++) {
        l->worker[i].loader = l;
        if (!dvti_thread_start(&l->worker[i].thread, dvti_worker_run, &l->worker[i]))
            break;
        l->started++;
    }
    if (l->started < n)
        dvti_log(DVT_LOG_WARNING, "dvt_loader_next: only %d of %d worker threads could be started",
                 l->started, n);
    return true;
}

static void dvti_workers_stop(dvt_loader *l) {
    int i;
    dvti_mutex_lock(&l->lock);
    l->stop = true;
    dvti_cond_broadcast(&l->work);
    dvti_mutex_unlock(&l->lock);
    for (i = 0; i < l->started; i++)
        dvti_thread_join(l->worker[i].thread);
    l->started = 0;
}

/* Abandons the workers in a forked child, which has none of the threads. Locks that they held stay
   locked, so the loader continues without workers. */
static void dvti_workers_forget(dvt_loader *l) {
    if (!l->started || l->process == dvti_process_id())
        return;
    dvti_loader_unlock_all(l);
    l->started = 0;
    dvti_ring_restart(l);
}

/* Moves all parts to the caller's scope, or none. */
static bool dvti_made_give(dvti_made *slot, int n) {
    int i = 0;
    while (i < n && dvti_scope_give(slot->part[i]))
        i++;
    if (i == n)
        return true;
    while (i > 0)
        dvti_scope_take(slot->part[--i]);
    return false;
}

/* Takes the next batch out of the ring. A failed batch is retried at the next call. */
static bool dvti_ring_take(dvt_loader *l, dvt_array **part) {
    dvti_made *slot = &l->slot[l->taken % l->slots];
    char message[sizeof slot->message];
    dvt_status status = DVT_OK;
    bool logged = false;
    dvti_mutex_lock(&l->lock);
    dvti_cond_broadcast(&l->work);
    while (slot->state == DVTI_MADE_EMPTY)
        dvti_cond_wait(&l->done, &l->lock);
    if (slot->state == DVTI_MADE_FAILED) {
        status = slot->status;
        logged = slot->logged;
        memcpy(message, slot->message, sizeof message);
        dvti_ring_restart(l);
    } else if (!dvti_made_give(slot, 2 * l->desc.ctxs.n)) {
        status = DVT_ERR_HOST_MEMORY;
        snprintf(message, sizeof message, "dvt_loader_next: no host memory left for the batch");
    } else {
        memcpy(part, slot->part, sizeof slot->part);
        slot->state = DVTI_MADE_EMPTY;
        l->taken++;
        dvti_cond_signal(&l->work);
    }
    dvti_mutex_unlock(&l->lock);
    if (logged)
        dvti_fail_relay(status, message);
    else if (status != DVT_OK)
        dvti_fail(status, "%s", message);
    return status == DVT_OK;
}
#else
static bool dvti_workers_start(dvt_loader *l) {
    (void)l;
    return true;
}

static void dvti_workers_stop(dvt_loader *l) {
    (void)l;
}

static void dvti_workers_forget(dvt_loader *l) {
    (void)l;
}

static bool dvti_ring_take(dvt_loader *l, dvt_array **part) {
    (void)l;
    (void)part;
    return false;
}
#endif

/* ---- making and destroying ---- */
static void dvti_loader_destroy(void *object) {
    dvt_loader *l = (dvt_loader *)object;
    int i;
    dvti_workers_forget(l);
    dvti_workers_stop(l);
    dvti_ring_restart(l);
    for (i = 0; l->worker && i < l->desc.num_workers; i++)
        dvti_free(l->worker[i].index);
    dvti_free(l->worker);
    dvti_free(l->slot);
    dvti_free(l->order.sample);
    dvti_batcher_end(&l->batcher);
    dvti_free(l);
}

static dvt_status dvti_loader_check(const char *function, const dvt_loader_desc *desc) {
    int i;
    if (desc->batch_size < 1)
        return dvti_fail(DVT_ERR_RANGE, "%s: batch_size is %lld; expected at least 1", function,
                         (long long)desc->batch_size);
    if ((int)desc->last_batch < DVT_LAST_KEEP || desc->last_batch > DVT_LAST_ROLLOVER)
        return dvti_fail(DVT_ERR_RANGE,
                         "%s: last_batch must be one of DVT_LAST_KEEP, DVT_LAST_DISCARD or "
                         "DVT_LAST_ROLLOVER, but got %d",
                         function, (int)desc->last_batch);
    if (desc->num_workers < 0 || desc->num_workers > DVTI_MAX_WORKERS)
        return dvti_fail(DVT_ERR_RANGE, "%s: num_workers is %d; expected 0 to %d", function,
                         desc->num_workers, DVTI_MAX_WORKERS);
    if (desc->ctxs.n < 0 || desc->ctxs.n > DVT_MAX_CONTEXTS)
        return dvti_fail(DVT_ERR_RANGE, "%s: %d contexts; expected 0 to %d", function, desc->ctxs.n,
                         DVT_MAX_CONTEXTS);
    for (i = 0; i < desc->ctxs.n; i++)
        if (!dvti_device_exists(function, dvti_ctx(desc->ctxs.ctx[i])))
            return dvti_failure();
    return DVT_OK;
}

DVT_API dvt_loader *dvt_loader_new(dvt_dataset *data, const dvt_loader_desc *desc) {
    static const char *const function = "dvt_loader_new";
    dvt_loader *l;
    int i;
    if (!data || !desc) {
        dvti_null(function, data ? "desc" : "data");
        return NULL;
    }
    if (dvti_loader_check(function, desc) != DVT_OK)
        return NULL;
    l = (dvt_loader *)dvti_alloc_zero(sizeof *l);
    if (!l) {
        dvti_fail_memory(function, (int64_t)sizeof *l);
        return NULL;
    }
    dvti_loader_unlock_all(l);
    l->desc = *desc;
    if (l->desc.ctxs.n == 0)
        l->desc.ctxs.ctx[l->desc.ctxs.n++] = dvt_cpu();
    for (i = 0; i < l->desc.ctxs.n; i++) /* the default context is the one of this thread, now */
        l->desc.ctxs.ctx[i] = dvti_ctx(l->desc.ctxs.ctx[i]);
    if (!dvti_object_begin(l, dvti_loader_destroy, function)) {
        dvti_free(l);
        return NULL;
    }
    dvti_batcher_begin(&l->batcher, data);
    return l;
}

DVT_API int64_t dvt_loader_len(const dvt_loader *loader) {
    if (!loader)
        return 0;
    return loader->open ? loader->order.batches
                        : dvti_order_next_batches(&loader->order, &loader->desc,
                                                  loader->batcher.data->length);
}

/* ---- batches ---- */
static void dvti_epoch_close(dvt_loader *l) {
    l->open = false;
    l->order.epoch++;
}

static bool dvti_loader_advance(dvt_loader *l, dvt_array **part) {
    static const char *const function = "dvt_loader_next";
    const int64_t *sample;
    int64_t n;
    bool ok;
    dvti_workers_forget(l);
    if (!dvti_batcher_ready(function, &l->batcher) || !dvti_workers_start(l))
        return false;
    if (!l->open) {
        dvti_mutex_lock(&l->lock);
        ok = dvti_epoch_open(l);
        dvti_mutex_unlock(&l->lock);
        if (!ok)
            return false;
    }
    if (l->taken >= l->order.batches) {
        dvti_mutex_lock(&l->lock);
        dvti_epoch_close(l);
        dvti_mutex_unlock(&l->lock);
        return false;
    }
    if (l->started)
        return dvti_ring_take(l, part);
    n = dvti_batch_share(l, l->taken, &sample);
    ok = dvti_loader_make(l, l->order.key, sample, n, part);
    if (ok)
        l->taken++;
    return ok;
}

static bool dvti_loader_parts(const char *function, dvt_loader *loader, int n, dvt_array **x,
                              dvt_array **y) {
    dvt_array *part[2 * DVT_MAX_CONTEXTS];
    const size_t bytes = (size_t)n * sizeof *part;
    bool ok;
    if (x)
        memset((void *)x, 0, bytes);
    if (y)
        memset((void *)y, 0, bytes);
    if (!loader || !x || !y) {
        dvti_null(function, !loader ? "loader" : !x ? "x" : "y");
        return false;
    }
    ok = dvti_loader_advance(loader, part);
    if (ok) {
        memcpy((void *)x, (void *)part, bytes);
        memcpy((void *)y, (void *)(part + n), bytes);
    }
    return ok;
}

DVT_API bool dvt_loader_next(dvt_loader *loader, dvt_array **x, dvt_array **y) {
    if (!loader || loader->desc.ctxs.n == 1)
        return dvti_loader_parts("dvt_loader_next", loader, 1, x, y);
    if (x)
        *x = NULL;
    if (y)
        *y = NULL;
    dvti_fail(
        DVT_ERR_VALUE,
        "dvt_loader_next: the loader has %d contexts; expected one, because a batch of several "
        "is no single array: use dvt_loader_next_parts",
        loader->desc.ctxs.n);
    return false;
}

DVT_API bool dvt_loader_next_parts(dvt_loader *loader, dvt_array **x, dvt_array **y) {
    return dvti_loader_parts("dvt_loader_next_parts", loader, loader ? loader->desc.ctxs.n : 0, x,
                             y);
}

/* Restarts at the first batch. If the last batch was taken, the epoch ends first, so a caller who
   counts batches still gets a new order. */
DVT_API void dvt_loader_reset(dvt_loader *loader) {
    if (!loader || !loader->open)
        return;
    dvti_workers_forget(loader);
    dvti_mutex_lock(&loader->lock);
    if (loader->taken >= loader->order.batches)
        dvti_epoch_close(loader);
    loader->taken = 0;
    dvti_ring_restart(loader);
    dvti_mutex_unlock(&loader->lock);
}

/* ---- the state ---- */
DVT_API dvt_loader_state dvt_loader_get_state(const dvt_loader *loader) {
    dvt_loader_state state;
    memset(&state, 0, sizeof state);
    if (!loader) {
        dvti_null("dvt_loader_get_state", "loader");
        return state;
    }
    state.seed = loader->desc.seed;
    state.epoch = loader->order.epoch;
    state.batch = loader->open ? loader->taken : 0;
    return state;
}

DVT_API dvt_status dvt_loader_set_state(dvt_loader *loader, const dvt_loader_state *state) {
    static const char *const function = "dvt_loader_set_state";
    dvt_status status;
    if (!loader || !state)
        return dvti_null(function, loader ? "state" : "loader");
    dvti_workers_forget(loader);
    dvti_mutex_lock(&loader->lock);
    status = dvti_order_seek(&loader->order, function, &loader->desc, loader->batcher.data->length,
                             state);
    if (status == DVT_OK) {
        loader->open = true;
        loader->taken = state->batch;
        dvti_ring_restart(loader);
    }
    dvti_mutex_unlock(&loader->lock);
    return status;
}

#if defined(DVTI_CHECKPOINTS)
DVTI_FN const dvt_loader_desc *dvti_loader_described(const dvt_loader *loader, int64_t *samples) {
    *samples = loader->batcher.data->length;
    return &loader->desc;
}
#endif

#undef DVTI_MAX_WORKERS
