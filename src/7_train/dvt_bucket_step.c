/* The step of a trainer with buckets (dvt_buckets.c): whether the sums are valid, the rest of them,
   and the plan of the next backward passes. All ranks use the plan of rank 0. It has the order in
   which backward completed the gradients, so it exists from the second backward pass on. */
#include "7_train/dvt_buckets.h"

#if defined(DEVTENSOR_MPI)
#define DVTI_BUCKET_MISSES 2
#define DVTI_BUCKET_PLANS (DVTI_RANK_TAGS / 2 - 1) /* a plan has two tags */

static int dvti_buckets_plans; /* so far; that of rank 0 counts */

/* Records a step whose gradients were not those sent, and why. */
static void dvti_buckets_miss(const char *function, const dvt_trainer *t, int rank,
                              const char *why) {
    dvti_buckets *o = t->buckets;
    if (++o->misses < DVTI_BUCKET_MISSES)
        return;
    o->off_bytes = t->bucket_bytes;
    dvti_log(DVT_LOG_INFO,
             "%s: rank %d %s, so from now on all ranks send gradients in the step; "
             "dvt_trainer_set_bucket_bytes can change that",
             function, rank, why);
}

/* ---- the step ---- */
static bool dvti_bucket_sums(const dvt_trainer *t, int i) {
    return t->trained[i].taken && !t->trained[i].summed;
}

/* Returns whether the packed gradients are those of the step's plan: one gradient of every context
   for each parameter. */
static bool dvti_buckets_fit(const dvt_trainer *t, uint64_t shapes, bool fresh_only) {
    const dvti_buckets *o = t->buckets;
    bool fits = o->n_buckets > 0 && o->shapes == shapes && !o->changed &&
                dvti_same_ctxs(&o->ctxs, &t->ctxs);
    int i, k;
    for (i = 0; i < t->n; i++)
        for (k = 0; k < t->ctxs.n && fits; k++)
            fits = !dvti_bucket_sums(t, i) || dvti_trainer_counts(t, i, k, fresh_only);
    return fits;
}

/* Prepares the buckets that backward has not completed, from the gradients. Returns false without
   memory: then all ranks sum in the step. */
static bool dvti_buckets_prepare_rest(const char *function, const dvt_trainer *t) {
    dvti_buckets *o = t->buckets;
    const dvti_attempt attempt = dvti_attempt_begin();
    bool good = true;
    int at, k;
    while (o->packed < o->n_buckets && good) {
        const dvti_bucket *b = &o->bucket[o->packed];
        for (at = b->first; at < b->end; at++)
            for (k = 0; k < o->ctxs.n && good; k++)
                good = dvti_bucket_pack(function, o, &o->leaf[o->order[at]], k,
                                        dvti_trainer_at(t, o->order[at], k)->gradient);
        good = good && dvti_buckets_prepare_next(function, o);
    }
    dvti_attempt_end(&attempt);
    if (!good)
        o->why = DVTI_BUCKETS_SCARCE;
    return good;
}

DVTI_FN dvt_status dvti_buckets_report(const char *function, const dvt_trainer *t, bool fresh_only,
                                       dvti_rank_state *state) {
    dvti_buckets *o = t->buckets;
    dvt_status status = DVT_OK;
    int i;
    if (o->off_bytes != -1 && o->off_bytes != t->bucket_bytes) {
        o->off_bytes = -1;
        o->misses = 0;
    }
    state->bucket_bytes = o->off_bytes == -1 ? DVTI_MIN(t->bucket_bytes, DVTI_FLIGHT_BYTES) : 0;
    if (o->n_buckets && !dvti_same_ctxs(&o->ctxs, &t->ctxs)) /* all ranks drop the plan */
        state->bucket_bytes = 0;
    for (i = 0; i < t->n; i++)
        if (dvti_bucket_sums(t, i) &&
            dvt_nbytes(dvti_trainer_at(t, i, 0)->gradient) > DVTI_FLIGHT_BYTES)
            state->bucket_bytes = 0;
    state->same = dvti_buckets_fit(t, state->shapes, fresh_only);
    if (state->same)
        state->same = dvti_buckets_prepare_rest(function, t);
    if (state->same)
        status = dvti_buckets_compare(function, t, &state->same);
    if (status == DVT_OK)
        status = dvti_buckets_poll(function);
    state->started = o->started;
    state->heard = o->heard > 0;
    state->why = o->why;
    state->turns = dvti_turns_count();
    return status;
}

/* Writes the sums to the gradients. */
static dvt_status dvti_buckets_write(const char *function, const dvt_trainer *t) {
    const dvti_buckets *o = t->buckets;
    dvt_status status = DVT_OK;
    int b, at, k;
    for (b = 0; b < o->n_buckets; b++)
        for (at = o->bucket[b].first; at < o->bucket[b].end; at++)
            for (k = 0; k < t->ctxs.n && status == DVT_OK; k++) {
                dvti_replica *replica = dvti_trainer_at(t, o->order[at], k);
                status = o->transport->write(function, &o->bucket[b], o->leaf[o->order[at]].at,
                                             replica->gradient);
                dvti_written(replica->gradient);
                replica->weight->grad_holds = DVTI_GRAD_SUM;
            }
    return status;
}

DVTI_FN dvt_status dvti_buckets_sum(const char *function, dvt_trainer *t,
                                    const dvti_rank_state *all, bool *summed) {
    static const char *const why[DVTI_BUCKETS_REASONS] = {
        "changed gradients that backward had completed", "has no memory for a bucket of gradients",
        "sent zeros for gradients that backward had not completed"};
    dvti_buckets *o = t->buckets;
    dvt_status status = dvti_turns_catch_up(function, all[0].turns);
    int most = o->started, r, differs = -1; /* equal on all ranks: all have taken all turns */
    *summed = false;
    for (r = 0; r < dvt_num_ranks() && differs < 0; r++)
        if (!all[r].same)
            differs = r;
    if (status != DVT_OK)
        return status;
    if (!most && o->shapes == all[0].shapes) /* DVT_GRAD_ADD, or no backward */
        return DVT_OK;
    if (o->n_buckets && differs < 0)
        most = o->n_buckets;
    while (o->complete < most && status == DVT_OK)
        status = dvti_buckets_move(function, o, most, true);
    if (status == DVT_OK && o->n_buckets && differs < 0) {
        o->misses = 0;
        status = dvti_buckets_write(function, t);
        *summed = status == DVT_OK;
        return status;
    }
    if (status == DVT_OK && o->n_buckets) {
        dvti_buckets_drop_plan(o);
        dvti_buckets_miss(function, t, differs, why[(int)all[differs].why]);
    }
    return status;
}

/* ---- the plan ---- */
static int dvti_bucket_compare(const void *a, const void *b) {
    const uintptr_t x = (uintptr_t)((const dvti_bucket_weight *)a)->weight;
    const uintptr_t y = (uintptr_t)((const dvti_bucket_weight *)b)->weight;
    return x < y ? -1 : x > y;
}

/* Looks up the weights, which may have been replaced since the last step. */
static void dvti_buckets_look(const dvt_trainer *t) {
    dvti_buckets *o = t->buckets;
    bool sorted = true;
    int at;
    for (at = 0; at < o->n_weights; at++) {
        dvti_bucket_weight *entry = &o->weight[at];
        entry->weight =
            t->trained[entry->i].taken ? dvti_trainer_at(t, entry->i, entry->k)->weight : NULL;
        if (at && (uintptr_t)entry[-1].weight > (uintptr_t)entry->weight)
            sorted = false;
    }
    if (!sorted)
        qsort(o->weight, (size_t)o->n_weights, sizeof *o->weight, dvti_bucket_compare);
}

/* Returns whether a gradient has been complete on all contexts. */
static bool dvti_buckets_listed(const dvti_buckets *o, int i) {
    int at = 0;
    while (at < o->heard && o->order[at] != i)
        at++;
    return at < o->heard;
}

/* Writes the order of this rank to `out`: first the gradients in the order of their completion,
   then the others from the last parameter to the first; then -1. */
static void dvti_buckets_order(const dvt_trainer *t, int32_t *out) {
    const dvti_buckets *o = t->buckets;
    int i, n = 0;
    for (i = 0; i < o->heard; i++)
        if (dvti_bucket_sums(t, o->order[i]))
            out[n++] = o->order[i];
    for (i = t->n - 1; i >= 0; i--)
        if (dvti_bucket_sums(t, i) && !dvti_buckets_listed(o, i))
            out[n++] = i;
    while (n < t->n)
        out[n++] = -1;
}

/* Adds an empty bucket. */
static dvti_bucket *dvti_buckets_add(const char *function, dvti_buckets *o, dvt_dtype dtype,
                                     int at) {
    dvti_bucket *b = NULL;
    dvt_array **own = NULL;
    if (dvti_grow((void **)&o->bucket, &o->capacity, (size_t)o->n_buckets + 1, sizeof *o->bucket))
        own = (dvt_array **)dvti_alloc_zero((size_t)o->ctxs.n * sizeof(dvt_array *));
    if (!own) {
        dvti_fail_memory(function, (o->n_buckets + 1) * (int64_t)sizeof *o->bucket);
        return NULL;
    }
    b = &o->bucket[o->n_buckets++];
    memset(b, 0, sizeof *b);
    b->own = own;
    b->dtype = dtype;
    b->first = b->end = at;
    return b;
}

/* Adds parameter i to the last bucket, or to a new one. */
static bool dvti_buckets_append(const char *function, const dvt_trainer *t, int i, int at) {
    dvti_buckets *o = t->buckets;
    const dvt_array *gradient = dvti_trainer_at(t, i, 0)->gradient;
    dvti_bucket *b = o->n_buckets ? &o->bucket[o->n_buckets - 1] : NULL;
    if (!b || b->dtype != gradient->dtype ||
        b->size * dvt_dtype_size(b->dtype) + dvt_nbytes(gradient) > o->bytes)
        b = dvti_buckets_add(function, o, gradient->dtype, at);
    if (!b)
        return false;
    o->order[at] = i;
    o->leaf[i].bucket = o->n_buckets - 1;
    o->leaf[i].at = b->size;
    b->size += dvt_size(gradient);
    b->end++;
    return true;
}

/* Makes the plan of an order. */
static bool dvti_buckets_lay_out(const char *function, const dvt_trainer *t,
                                 const dvti_rank_state *first, const int32_t *order) {
    dvti_buckets *o = t->buckets;
    int i;
    o->bytes = first->bucket_bytes;
    o->shapes = first->shapes;
    o->number = order[t->n];
    for (i = 0; i < t->n; i++)
        o->leaf[i].bucket = -1;
    for (i = 0; i < t->n && order[i] >= 0; i++)
        if (!dvti_buckets_append(function, t, order[i], i))
            return false;
    return dvti_bucket_pack_begin(function, o);
}

/* Returns the number of the next plan of rank 0, which none has that still exists. */
static int dvti_buckets_next_number(void) {
    const dvti_buckets *o = dvti_buckets_first();
    while (o) {
        const bool taken = o->n_buckets && o->number == dvti_buckets_plans;
        if (taken)
            dvti_buckets_plans = (dvti_buckets_plans + 1) % DVTI_BUCKET_PLANS;
        o = taken ? dvti_buckets_first() : o->next;
    }
    return dvti_buckets_plans;
}

/* Makes the plan of rank 0, if all ranks can use one and rank 0 has heard a backward pass. Without
   memory on one rank there is none. */
static dvt_status dvti_buckets_new_plan(const char *function, const dvt_trainer *t,
                                        dvti_rank_state *all) {
    dvti_buckets *o = t->buckets;
    dvti_attempt attempt;
    dvt_status status = DVT_OK;
    dvti_rank_state first = all[0];
    dvt_array *order;
    char good, *goods = (char *)(void *)all;
    int r;
    for (r = 0; r < dvt_num_ranks(); r++)
        if (!all[r].bucket_bytes)
            return DVT_OK;
    if (!first.heard)
        return DVT_OK;
    order = dvt_empty(DVT_SHAPE(t->n + 1), DVT_I32, dvt_cpu());
    if (!order)
        return dvti_failure();
    ((int32_t *)dvt_data(order))[t->n] = dvti_buckets_next_number();
    dvti_buckets_order(t, (int32_t *)dvt_data(order));
    if (dvti_ranks_broadcast(function, order, 0) != DVT_OK)
        return dvti_failure();
    dvti_buckets_plans = (((int32_t *)dvt_data(order))[t->n] + 1) % DVTI_BUCKET_PLANS;
    attempt = dvti_attempt_begin(); /* the step does not need the plan */
    good = dvti_buckets_lay_out(function, t, &first, (const int32_t *)dvt_data(order)) &&
           dvti_buckets_rehearse(function, t);
    dvti_attempt_end(&attempt);
    status = dvti_ranks_gather(function, &good, 1, goods);
    for (r = 0; r < dvt_num_ranks() && status == DVT_OK && goods[r];)
        r++;
    if (r < dvt_num_ranks())
        dvti_buckets_drop_plan(o);
    if (r < dvt_num_ranks() && status == DVT_OK)
        dvti_buckets_miss(function, t, r, "has no memory for the buckets of gradients");
    return status;
}

DVTI_FN dvt_status dvti_buckets_plan(const char *function, dvt_trainer *t, dvti_rank_state *all) {
    dvti_buckets *o = t->buckets;
    const dvti_bucket_transport *transport =
        dvti_rank_devices_joined(all) ? dvti_bucket_devices() : dvti_bucket_messages();
    dvt_status status = DVT_OK;
    int r;
    for (r = 0; r < dvt_num_ranks() && o->n_buckets; r++)
        if (!all[r].bucket_bytes || all[0].bucket_bytes != o->bytes || o->transport != transport)
            dvti_buckets_drop_plan(o);
    o->transport = transport;
    if (!o->n_buckets) {
        o->ctxs = t->ctxs;
        status = dvti_buckets_new_plan(function, t, all);
    }
    dvti_buckets_reset(o);
    dvti_buckets_look(t);
    return status;
}

#undef DVTI_BUCKET_MISSES
#undef DVTI_BUCKET_PLANS
#endif
