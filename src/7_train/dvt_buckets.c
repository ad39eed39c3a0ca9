/* Sums over ranks while backward runs. Gradients are grouped into buckets, in the order in which
   backward completes them. A bucket goes through four stages; each backward pass moves all buckets
   on whenever another gradient is complete, and the step waits for the rest:

     packed    all contexts of this rank have completed its gradients, whose sum is queued
     started   it is on the way: messages have slices for the ranks that add them
     added     messages: the slices of all ranks have arrived, and the sum is on the way to all
     complete  the sums have arrived

   dvt_bucket_pack.c has the first stage, dvt_bucket_send.c the others. All ranks start the buckets
   in one order, also those of several trainers (dvt_bucket_turn.c), so messages match without
   numbers of their own. The order of additions is that of dvti_trainer_sum and dvti_ranks_merge, so
   the bits are equal too; NCCL has its own order.

   A rank cannot know that a backward pass is the last one before the step. So the step compares the
   gradients with those that were sent, bit by bit. If they differ on any rank, because of another
   backward pass or a change by the caller, all ranks complete the buckets that any rank has
   started, drop them, and sum as if nothing had been sent. Two such steps in a row end the use of
   buckets. Attached gradients are those of this rank until the step writes the sums. */
#include "1_base/dvt_float_mode.h"
#include "5_grad/dvt_grad.h"
#include "7_train/dvt_buckets.h"

#if defined(DEVTENSOR_MPI)
#define DVTI_BUCKET_PATIENCE 1.0 /* seconds in an exchange, before zeros are sent */

static dvti_buckets *dvti_buckets_list;
static DVTI_TLS bool dvti_buckets_here; /* this thread joined the processes */

DVTI_FN dvti_buckets *dvti_buckets_first(void) {
    return dvti_buckets_list;
}

/* ---- all buckets of a trainer ---- */
DVTI_FN dvt_status dvti_buckets_move(const char *function, dvti_buckets *o, int most, bool wait) {
    const dvti_bucket_transport *way = o->transport;
    dvti_bucket *b = o->bucket;
    dvt_status status = DVT_OK;
    most = DVTI_MIN(most, o->packed);
    /* `wait` is for the first stage that is not complete. Then the others get their turn again. */
    for (; o->started < most && way->start(function, &b[o->started], o->number, wait, &status);
         wait = false)
        o->started++;
    wait = wait && o->started == most;
    for (; status == DVT_OK && o->added < o->started &&
           way->add(function, &b[o->added], o->number, wait, &status);
         wait = false)
        o->added++;
    wait = wait && o->added == most;
    for (; status == DVT_OK && o->complete < o->added &&
           way->finish(function, &b[o->complete], o->number, wait, &status);
         wait = false)
        o->complete++;
    return status;
}

DVTI_FN bool dvti_buckets_prepare_next(const char *function, dvti_buckets *o) {
    dvti_bucket *b = &o->bucket[o->packed];
    if (!dvti_bucket_sum(function, o, b) || !o->transport->prepare(function, b, o->ctxs.ctx[0]))
        return false;
    o->packed++;
    return true;
}

DVTI_FN bool dvti_buckets_prepare_zeros(const char *function, dvti_buckets *o) {
    dvti_bucket *b = &o->bucket[o->packed];
    const dvt_ctx ctx = o->transport->on_device ? o->ctxs.ctx[0] : dvt_cpu();
    dvti_fetch_end(b->fetch);
    b->fetch = NULL;
    dvti_disown(b->total);
    b->total = (dvt_array *)dvti_own(dvt_zeros(DVT_SHAPE(b->size), b->dtype, ctx));
    if (!b->total || !o->transport->prepare(function, b, ctx))
        return false;
    o->why = o->changed ? o->why : DVTI_BUCKETS_ZEROS;
    o->changed = true;
    o->packed++;
    return true;
}

static void dvti_bucket_clear(const dvti_buckets *o, dvti_bucket *b) {
    int k;
    o->transport->clear(b);
    for (k = 0; k < o->ctxs.n; k++) {
        dvti_disown(b->own[k]);
        b->own[k] = NULL;
    }
    dvti_disown(b->total);
    b->total = NULL;
    b->missing = (b->end - b->first) * o->ctxs.n;
}

DVTI_FN void dvti_buckets_reset(dvti_buckets *o) {
    int i;
    for (i = 0; i < o->n_buckets; i++)
        dvti_bucket_clear(o, &o->bucket[i]);
    for (i = 0; o->leaf && i < o->n; i++)
        o->leaf[i].heard = 0;
    o->heard = o->packed = o->started = o->added = o->complete = 0;
    o->changed = false;
    o->why = DVTI_BUCKETS_CHANGED;
}

static void dvti_buckets_drop_checks(dvti_buckets *o) {
    int k;
    for (k = 0; o->check && k < o->ctxs.n; k++) {
        dvti_fetch_end(o->check[k].fetch);
        dvti_disown(o->check[k].result);
    }
    dvti_free(o->check);
    o->check = NULL;
}

DVTI_FN void dvti_buckets_drop_plan(dvti_buckets *o) {
    int i;
    dvti_buckets_reset(o);
    for (i = 0; i < o->n_buckets; i++) {
        dvti_fetch_end(o->bucket[i].fetch);
        dvti_free(o->bucket[i].own);
    }
    dvti_buckets_drop_checks(o);
    o->n_buckets = 0;
    o->over = false;
}

static void dvti_buckets_destroy(dvti_buckets *o) {
    dvti_buckets_drop_plan(o);
    dvti_free(o->bucket);
    dvti_free(o->leaf);
    dvti_free(o->weight);
    dvti_free(o->order);
    dvti_free(o);
}

/* Allocates the list of weights for a number of contexts. */
static dvt_status dvti_buckets_make_weights(const char *function, dvti_buckets *o, int contexts) {
    const size_t n = (size_t)o->n * (size_t)contexts;
    dvti_bucket_weight *weight;
    size_t at;
    if (o->weight && (size_t)o->n_weights == n)
        return DVT_OK;
    weight = (dvti_bucket_weight *)dvti_alloc_zero(n * sizeof *weight);
    if (!weight)
        return dvti_fail_memory(function, (int64_t)(n * sizeof *weight));
    for (at = 0; at < n; at++) {
        weight[at].i = (int)at / contexts;
        weight[at].k = (int)at % contexts;
    }
    dvti_free(o->weight);
    o->weight = weight;
    o->n_weights = (int)n;
    return DVT_OK;
}

static dvt_status dvti_buckets_new(const char *function, dvt_trainer *t) {
    const size_t n = (size_t)t->n;
    dvti_buckets *o = (dvti_buckets *)dvti_alloc_zero(sizeof *o);
    if (o) {
        o->leaf = (dvti_bucket_leaf *)dvti_alloc_zero(n * sizeof *o->leaf);
        o->order = (int *)dvti_alloc_zero(n * sizeof *o->order);
        o->n = t->n;
    }
    if (!o || !o->leaf || !o->order ||
        dvti_buckets_make_weights(function, o, t->ctxs.n) != DVT_OK) {
        if (o)
            dvti_buckets_destroy(o);
        return dvti_fail_memory(function, (int64_t)(sizeof *o + n * sizeof *o->leaf));
    }
    o->off_bytes = -1;
    t->buckets = o;
    return DVT_OK;
}

DVTI_FN dvt_status dvti_buckets_make(const char *function, dvt_trainer *t) {
    dvti_buckets *o = t->buckets;
    const dvt_status status =
        o ? dvti_buckets_make_weights(function, o, t->ctxs.n) : dvti_buckets_new(function, t);
    o = t->buckets;
    if (status != DVT_OK || o->listed)
        return status;
    o->listed = true;
    o->next = dvti_buckets_list;
    dvti_buckets_list = o;
    return DVT_OK;
}

/* ---- destroyed trainers ---- */
/* Frees the memory of a bucket that has started, as far as its messages do not need it. */
static void dvti_bucket_release_started(const dvti_buckets *o, dvti_bucket *b) {
    int k;
    for (k = 0; k < o->ctxs.n; k++) {
        dvti_disown(b->own[k]);
        b->own[k] = NULL;
    }
    if (!b->fetch) /* the messages or the sum read `total` */
        return;
    dvti_disown(b->total);
    b->total = NULL;
    dvti_fetch_leave(b->fetch);
}

/* Frees the memory of a destroyed trainer's buckets: what is on its way to other ranks stays. */
static void dvti_buckets_release(dvti_buckets *o) {
    int i;
    for (i = 0; i < o->n_buckets; i++) {
        if (i >= o->complete && i < o->started) {
            dvti_bucket_release_started(o, &o->bucket[i]);
            continue;
        }
        dvti_bucket_clear(o, &o->bucket[i]);
        dvti_fetch_end(o->bucket[i].fetch);
        o->bucket[i].fetch = NULL;
    }
    dvti_buckets_drop_checks(o);
    o->packed = o->started;
    o->released = true;
}

/* Frees the buckets of destroyed trainers whose messages are complete, and that get no more
   turns. */
static void dvti_buckets_reap(void) {
    dvti_buckets **at = &dvti_buckets_list, *o;
    while ((o = *at) != NULL) {
        if (!o->released || o->complete < o->started || (o->n_buckets && !o->over)) {
            at = &o->next;
            continue;
        }
        *at = o->next;
        dvti_buckets_destroy(o);
    }
}

DVTI_FN dvt_status dvti_buckets_poll(const char *function) {
    dvt_status status = DVT_OK;
    dvti_buckets *o;
    if (!dvti_buckets_list)
        return DVT_OK;
    for (o = dvti_buckets_list; o; o = o->next)
        if (dvti_atomic_load(&o->orphan) && !o->released)
            dvti_buckets_release(o);
    while (status == DVT_OK && dvti_turn_take(function, false, false, &status))
        continue;
    for (o = dvti_buckets_list; o && status == DVT_OK; o = o->next)
        status = dvti_buckets_move(function, o, o->started, false);
    dvti_buckets_reap();
    return status;
}

/* Moves buckets within another call. Failures are those of a later call. */
static void dvti_buckets_move_aside(const char *function, bool waits, double waited) {
    dvt_record_guard record = dvt_record_begin(DVT_OFF, DVT_UNCHANGED);
    const dvti_float_mode mode = dvti_float_mode_begin();
    const dvti_attempt attempt = dvti_attempt_begin();
    dvt_scope_guard scope = dvt_scope_begin();
    if (waits)
        dvti_turns_attend(function, waited > DVTI_BUCKET_PATIENCE);
    else
        dvti_buckets_poll(function);
    dvt_scope_end(&scope);
    dvti_attempt_end(&attempt);
    dvti_float_mode_end(&mode);
    dvt_record_end(&record);
}

DVTI_FN void dvti_buckets_attend(const char *function, double waited) {
    if (dvti_buckets_list)
        dvti_buckets_move_aside(function, true, waited);
}

DVTI_FN void dvti_buckets_free(dvti_buckets *o) {
    if (o && o->listed) {
        dvti_atomic_store(&o->orphan, 1);
        if (dvti_buckets_here) /* other threads must not call MPI */
            dvti_buckets_move_aside("destroying a trainer", false, 0);
    } else if (o) {
        dvti_buckets_destroy(o);
    }
}

DVTI_FN dvt_status dvti_buckets_end(const char *function) {
    dvt_status status = dvt_num_ranks() > 1 ? dvti_turns_end(function) : DVT_OK;
    dvti_buckets *o;
    for (o = dvti_buckets_list; o && status == DVT_OK; o = o->next)
        while (o->complete < o->started && status == DVT_OK)
            status = dvti_buckets_move(function, o, o->started, true);
    while (status == DVT_OK && (o = dvti_buckets_list) != NULL) {
        dvti_buckets_list = o->next;
        o->listed = false;
        dvti_buckets_drop_plan(o);
        if (dvti_atomic_load(&o->orphan))
            dvti_buckets_destroy(o);
    }
    dvti_watch_gradients(NULL);
    dvti_buckets_here = false;
    return status;
}

/* ---- while backward runs ---- */
/* Returns the entry of this weight; NULL: none. */
static const dvti_bucket_weight *dvti_buckets_find(const dvti_buckets *o, const dvt_array *weight) {
    int low = 0, high = o->n_weights;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if ((uintptr_t)o->weight[middle].weight < (uintptr_t)weight)
            low = middle + 1;
        else
            high = middle;
    }
    return low < o->n_weights && o->weight[low].weight == weight ? &o->weight[low] : NULL;
}

/* Records that a gradient is complete on a context. Returns false if it was so before. */
static bool dvti_buckets_mark(dvti_buckets *o, int i, int k) {
    const uint32_t all = (uint32_t)(((uint64_t)1 << o->ctxs.n) - 1), one = (uint32_t)1 << k;
    dvti_bucket_leaf *leaf = &o->leaf[i];
    if (leaf->heard & one)
        return false;
    leaf->heard |= one;
    if (leaf->heard == all && !o->n_buckets)
        o->order[o->heard++] = i;
    return true;
}

static bool dvti_buckets_pack(const char *function, dvti_buckets *o, const dvti_bucket_leaf *leaf,
                              int k, dvt_array *gradient, bool first) {
    dvti_bucket *b = &o->bucket[leaf->bucket];
    if (!dvti_bucket_pack(function, o, leaf, k, gradient))
        return false;
    b->missing -= first;
    while (o->packed < o->n_buckets && !o->bucket[o->packed].missing)
        if (!dvti_buckets_prepare_next(function, o))
            return false;
    return true;
}

/* Packs a complete gradient, and prepares the bucket that it completes. A rank without memory for
   that goes on: the step sums without buckets. */
static void dvti_buckets_take(const char *function, dvti_buckets *o, int i, int k,
                              dvt_array *gradient) {
    const dvti_bucket_leaf *leaf = &o->leaf[i];
    const dvti_bucket *b = o->n_buckets && leaf->bucket >= 0 ? &o->bucket[leaf->bucket] : NULL;
    const bool first = dvti_buckets_mark(o, i, k);
    dvti_attempt attempt;
    if (!b || o->changed || leaf->bucket < o->packed || gradient->dtype != b->dtype ||
        leaf->at + dvt_size(gradient) > b->size) {
        o->changed = o->changed || b != NULL;
        return;
    }
    attempt = dvti_attempt_begin();
    if (!dvti_buckets_pack(function, o, leaf, k, gradient, first)) {
        o->changed = true;
        o->why = DVTI_BUCKETS_SCARCE;
    }
    dvti_attempt_end(&attempt);
}

static bool dvti_buckets_hear(void *user, const char *function, dvt_array *leaf,
                              dvt_array *gradient) {
    dvt_scope_guard scope = dvt_scope_begin();
    const dvti_float_mode mode = dvti_float_mode_begin();
    const dvti_bucket_weight *found;
    dvti_buckets *o;
    bool good;
    for (o = dvti_buckets_list; o; o = o->next) {
        found = dvti_atomic_load(&o->orphan) ? NULL : dvti_buckets_find(o, leaf);
        if (found)
            dvti_buckets_take(function, o, found->i, found->k, gradient);
    }
    good = dvti_buckets_poll(function) == DVT_OK;
    dvti_float_mode_end(&mode);
    dvt_scope_end(&scope);
    (void)user;
    return good;
}

DVTI_FN void dvti_buckets_begin(void) {
    static const dvti_grad_watch watch = {dvti_buckets_hear, NULL};
    dvti_watch_gradients(&watch);
    dvti_buckets_here = true;
}

#undef DVTI_BUCKET_PATIENCE
#else
DVTI_FN void dvti_buckets_free(dvti_buckets *buckets) {
    (void)buckets;
}

DVTI_FN dvt_status dvti_buckets_end(const char *function) {
    (void)function;
    return DVT_OK;
}
#endif
