/* Sums over ranks while backward runs. Gradients are grouped into buckets, in the order in which
   backward completes them. A bucket goes through three stages; each backward pass moves all buckets
   on whenever another gradient is complete, and the step waits for the rest:

     started   own gradients are packed; their slices are on the way to the ranks that add them
     added     the slices of all ranks have arrived, and the sum is on the way to all ranks
     complete  the sums of all slices have arrived

   All ranks start the buckets in one order, so messages match without numbers of their own. The
   order of additions is that of dvti_ranks_merge, so the bits are equal too.

   A rank cannot know that a backward pass is the last one before the step. So the step compares the
   gradients with those that were sent, bit by bit. If they differ on any rank, because of another
   backward pass or a change by the caller, all ranks complete the buckets that any rank has
   started, drop them, and sum as if nothing had been sent. Two such steps in a row end the use of
   buckets. Attached gradients are those of this rank until the step writes the sums. */
#include "1_base/dvt_float_mode.h"
#include "5_grad/dvt_grad.h"
#include "7_train/dvt_buckets.h"

#if defined(DEVTENSOR_MPI)
static dvti_buckets *dvti_buckets_list;

/* ---- one bucket ---- */
static void dvti_bucket_clear(dvti_bucket *b) {
    dvti_ranks_land(b->slices);
    dvti_ranks_land(b->sums);
    dvti_ranks_land(b->sent);
    b->slices = b->sums = b->sent = NULL;
    dvti_disown(b->own);
    dvti_disown(b->sum);
    dvti_disown(b->result);
    b->own = b->sum = b->result = NULL;
    dvti_free(b->in);
    b->in = NULL;
    b->missing = b->end - b->first;
}

DVTI_FN dvt_array *dvti_bucket_array(const char *function, const dvti_bucket *b) {
    return (dvt_array *)dvti_own(dvti_array_new(function, DVT_SHAPE(b->size), b->dtype, dvt_cpu()));
}

DVTI_FN bool dvti_bucket_pack(const char *function, dvti_bucket *b, const dvti_bucket_leaf *leaf,
                              dvt_array *gradient) {
    dvt_array *view;
    if (!b->own)
        b->own = dvti_bucket_array(function, b);
    view = b->own ? dvt_slice(b->own, 0, leaf->at, leaf->at + dvt_size(gradient), 1) : NULL;
    view = view ? dvt_reshape(view, gradient->shape) : NULL;
    return view && dvt_copy_into(view, gradient);
}

/* How memory is divided among the messages to or from the ranks. */
typedef enum dvti_bucket_layout {
    DVTI_BUCKET_WHOLE, /* the bucket: each rank has its slice */
    DVTI_BUCKET_ROWS,  /* this rank's slice, once for each rank */
    DVTI_BUCKET_ONE    /* this rank's slice, the same for all */
} dvti_bucket_layout;

static void dvti_bucket_messages(const dvti_bucket *b, dvti_message *message, char *at,
                                 dvti_bucket_layout layout) {
    const int64_t size = dvt_dtype_size(b->dtype);
    const int rank = dvt_rank();
    const int64_t own = dvti_rank_row(b->size, rank + 1) - dvti_rank_row(b->size, rank);
    int r;
    for (r = 0; r < dvt_num_ranks() && at; r++) {
        const int64_t first = dvti_rank_row(b->size, r), end = dvti_rank_row(b->size, r + 1);
        message[r].at = at + (layout == DVTI_BUCKET_WHOLE  ? first * size
                              : layout == DVTI_BUCKET_ROWS ? r * own * size
                                                           : 0);
        message[r].bytes = (layout == DVTI_BUCKET_WHOLE ? end - first : own) * size;
    }
}

/* Starts messages from `out` and to `in`; NULL: none. */
static dvti_flight *dvti_bucket_post(const char *function, const dvti_bucket *b, int tag, char *out,
                                     dvti_bucket_layout out_layout, char *in,
                                     dvti_bucket_layout in_layout) {
    const size_t n = (size_t)dvt_num_ranks();
    dvti_message *message = (dvti_message *)dvti_alloc_zero(2 * n * sizeof *message);
    dvti_flight *flight;
    if (!message) {
        dvti_fail_memory(function, (int64_t)(2 * n * sizeof *message));
        return NULL;
    }
    dvti_bucket_messages(b, message, out, out_layout);
    dvti_bucket_messages(b, message + n, in, in_layout);
    flight = dvti_ranks_post(function, tag, message, message + n);
    dvti_free(message);
    return flight;
}

/* Sends the slices of a packed bucket, and expects those of the other ranks and all sums. */
static bool dvti_bucket_start(const char *function, dvti_bucket *b, int number) {
    const int64_t size = dvt_dtype_size(b->dtype);
    const int64_t first = dvti_rank_row(b->size, dvt_rank()) * size;
    const int64_t own = dvti_rank_row(b->size, dvt_rank() + 1) * size - first;
    char *from;
    b->in = (char *)dvti_alloc((size_t)(own * dvt_num_ranks()));
    b->result = dvti_bucket_array(function, b);
    if (b->result && !b->in)
        dvti_fail_memory(function, own * dvt_num_ranks());
    if (!b->result || !b->in)
        return false;
    from = (char *)dvt_data(b->own);
    if (own)
        memcpy(b->in + own * dvt_rank(), from + first, (size_t)own);
    b->slices = dvti_bucket_post(function, b, 2 * number + 1, from, DVTI_BUCKET_WHOLE, b->in,
                                 DVTI_BUCKET_ROWS);
    if (b->slices)
        b->sums = dvti_bucket_post(function, b, 2 * number + 2, NULL, DVTI_BUCKET_ONE,
                                   (char *)dvt_data(b->result), DVTI_BUCKET_WHOLE);
    return b->sums != NULL;
}

/* Adds the slices that have arrived, and sends the sum. */
static bool dvti_bucket_add(const char *function, dvti_bucket *b, int number) {
    const int64_t size = dvt_dtype_size(b->dtype), first = dvti_rank_row(b->size, dvt_rank());
    const int64_t length = dvti_rank_row(b->size, dvt_rank() + 1) - first;
    b->sum = dvti_ranks_add(function, b->dtype, length, b->in);
    if (!b->sum)
        return false;
    if (length)
        memcpy((char *)dvt_data(b->result) + first * size, dvt_data(b->sum),
               (size_t)(length * size));
    b->sent = dvti_bucket_post(function, b, 2 * number + 2, (char *)dvt_data(b->sum),
                               DVTI_BUCKET_ONE, NULL, DVTI_BUCKET_WHOLE);
    return b->sent != NULL;
}

/* ---- all buckets of a trainer ---- */
/* Moves the buckets on as far as messages have arrived. */
static bool dvti_buckets_move(const char *function, dvti_buckets *o) {
    dvt_status status = DVT_OK;
    while (o->added < o->started &&
           dvti_ranks_arrived(function, o->bucket[o->added].slices, &status)) {
        if (!dvti_bucket_add(function, &o->bucket[o->added], o->number))
            return false;
        o->added++;
    }
    while (status == DVT_OK && o->complete < o->added &&
           dvti_ranks_arrived(function, o->bucket[o->complete].sums, &status) &&
           dvti_ranks_arrived(function, o->bucket[o->complete].sent, &status))
        o->complete++;
    return status == DVT_OK;
}

DVTI_FN bool dvti_buckets_start_next(const char *function, dvti_buckets *o) {
    if (!dvti_bucket_start(function, &o->bucket[o->started], o->number))
        return false;
    o->started++;
    return true;
}

DVTI_FN dvt_status dvti_buckets_await(const char *function, dvti_buckets *o) {
    dvt_status status = DVT_OK;
    for (; o->added < o->started && status == DVT_OK; o->added += status == DVT_OK) {
        status = dvti_ranks_await(function, o->bucket[o->added].slices);
        if (status == DVT_OK && !dvti_bucket_add(function, &o->bucket[o->added], o->number))
            status = dvti_failure();
    }
    for (; o->complete < o->added && status == DVT_OK; o->complete += status == DVT_OK) {
        status = dvti_ranks_await(function, o->bucket[o->complete].sums);
        if (status == DVT_OK)
            status = dvti_ranks_await(function, o->bucket[o->complete].sent);
    }
    return status;
}

DVTI_FN void dvti_buckets_reset(dvti_buckets *o) {
    int i;
    for (i = 0; i < o->n_buckets; i++)
        dvti_bucket_clear(&o->bucket[i]);
    for (i = 0; i < o->n; i++)
        o->leaf[i].heard = false;
    o->heard = o->started = o->added = o->complete = 0;
    o->changed = false;
}

DVTI_FN void dvti_buckets_drop_plan(dvti_buckets *o) {
    dvti_buckets_reset(o);
    o->n_buckets = 0;
}

static void dvti_buckets_destroy(dvti_buckets *o) {
    dvti_buckets_drop_plan(o);
    dvti_free(o->bucket);
    dvti_free(o->leaf);
    dvti_free(o->weight);
    dvti_free(o->order);
    dvti_free(o);
}

DVTI_FN dvt_status dvti_buckets_make(const char *function, dvt_trainer *t) {
    dvti_buckets *o;
    const size_t n = (size_t)t->n;
    int i;
    if (t->buckets)
        return DVT_OK;
    o = (dvti_buckets *)dvti_alloc_zero(sizeof *o);
    if (o) {
        o->leaf = (dvti_bucket_leaf *)dvti_alloc_zero(n * sizeof *o->leaf);
        o->weight = (dvti_bucket_weight *)dvti_alloc_zero(n * sizeof *o->weight);
        o->order = (int *)dvti_alloc_zero(n * sizeof *o->order);
    }
    if (!o || !o->leaf || !o->weight || !o->order) {
        if (o)
            dvti_buckets_destroy(o);
        return dvti_fail_memory(function, (int64_t)(sizeof *o + n * sizeof *o->leaf));
    }
    for (i = 0; i < t->n; i++)
        o->weight[i].i = i;
    o->n = t->n;
    o->off_bytes = -1;
    o->listed = true;
    o->next = dvti_buckets_list;
    t->buckets = dvti_buckets_list = o;
    return DVT_OK;
}

DVTI_FN void dvti_buckets_reap(void) {
    dvti_buckets **at = &dvti_buckets_list, *o;
    while ((o = *at) != NULL) {
        if (!dvti_atomic_load(&o->orphan) || o->complete < o->started) {
            at = &o->next;
            continue;
        }
        *at = o->next;
        dvti_buckets_destroy(o);
    }
}

DVTI_FN void dvti_buckets_free(dvti_buckets *o) {
    if (o && o->listed) /* perhaps in another thread, which must not call MPI */
        dvti_atomic_store(&o->orphan, 1);
    else if (o)
        dvti_buckets_destroy(o);
}

DVTI_FN dvt_status dvti_buckets_end(const char *function) {
    dvt_status status = DVT_OK;
    dvti_buckets *o;
    for (o = dvti_buckets_list; o && status == DVT_OK; o = o->next)
        status = dvti_buckets_await(function, o);
    while (status == DVT_OK && (o = dvti_buckets_list) != NULL) {
        dvti_buckets_list = o->next;
        o->listed = false;
        dvti_buckets_drop_plan(o);
        if (dvti_atomic_load(&o->orphan))
            dvti_buckets_destroy(o);
    }
    dvti_watch_gradients(NULL);
    return status;
}

/* ---- while backward runs ---- */
/* Returns the number of the parameter with this weight; -1: none. */
static int dvti_buckets_find(const dvti_buckets *o, const dvt_array *weight) {
    int low = 0, high = o->n;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if ((uintptr_t)o->weight[middle].weight < (uintptr_t)weight)
            low = middle + 1;
        else
            high = middle;
    }
    return low < o->n && o->weight[low].weight == weight ? o->weight[low].i : -1;
}

/* Packs a complete gradient, and starts the bucket that it completes. */
static bool dvti_buckets_take(const char *function, dvti_buckets *o, int i, dvt_array *gradient) {
    dvti_bucket_leaf *leaf = &o->leaf[i];
    dvti_bucket *b = o->n_buckets && leaf->bucket >= 0 ? &o->bucket[leaf->bucket] : NULL;
    const bool again = leaf->heard;
    if (!again && !o->n_buckets)
        o->order[o->heard++] = i;
    leaf->heard = true;
    if (!b || o->changed || leaf->bucket < o->started || gradient->dtype != b->dtype ||
        leaf->at + dvt_size(gradient) > b->size) {
        o->changed = o->changed || b != NULL;
        return true;
    }
    if (!dvti_bucket_pack(function, b, leaf, gradient))
        return false;
    b->missing -= !again;
    while (o->started < o->n_buckets && !o->bucket[o->started].missing)
        if (!dvti_buckets_start_next(function, o))
            return false;
    return true;
}

static bool dvti_buckets_hear(void *user, const char *function, dvt_array *leaf,
                              dvt_array *gradient) {
    dvt_scope_guard scope = dvt_scope_begin();
    const dvti_float_mode mode = dvti_float_mode_begin();
    const bool host = dvti_is_host_memory(dvt_ctx_of(gradient));
    bool good = true;
    dvti_buckets *o;
    int i;
    for (o = dvti_buckets_list; o && good; o = o->next) {
        i = host && !dvti_atomic_load(&o->orphan) ? dvti_buckets_find(o, leaf) : -1;
        good = (i < 0 || dvti_buckets_take(function, o, i, gradient)) &&
               dvti_buckets_move(function, o);
    }
    dvti_float_mode_end(&mode);
    dvt_scope_end(&scope);
    (void)user;
    return good;
}

DVTI_FN void dvti_buckets_begin(void) {
    static const dvti_grad_watch watch = {dvti_buckets_hear, NULL};
    dvti_watch_gradients(&watch);
}
#else
DVTI_FN void dvti_buckets_free(dvti_buckets *buckets) {
    (void)buckets;
}

DVTI_FN dvt_status dvti_buckets_end(const char *function) {
    (void)function;
    return DVT_OK;
}
#endif
