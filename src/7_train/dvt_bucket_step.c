/* The step of a trainer with buckets (dvt_buckets.c): whether the sums are valid, the rest of them,
   and the plan of the next backward passes. All ranks use the plan of rank 0. It has the order in
   which backward completed the gradients, so it exists from the second backward pass on. */
#include "7_train/dvt_buckets.h"

#if defined(DEVTENSOR_MPI)
#define DVTI_BUCKET_MISSES 2

static int dvti_buckets_plans; /* so far; that of rank 0 counts */

/* ---- the step ---- */
static bool dvti_bucket_sums(const dvt_trainer *t, int i) {
    return t->trained[i].taken && !t->trained[i].summed;
}

/* Returns whether a gradient has the bits that were packed. */
static bool dvti_bucket_holds(const dvti_bucket *b, const dvti_bucket_leaf *leaf,
                              dvt_array *gradient) {
    const int64_t size = dvt_dtype_size(b->dtype);
    return dvt_is_contiguous(gradient) && dvti_is_host_memory(dvt_ctx_of(gradient)) &&
           (!dvt_size(gradient) || memcmp((const char *)dvt_data(b->own) + leaf->at * size,
                                          dvt_data(gradient), (size_t)dvt_nbytes(gradient)) == 0);
}

DVTI_FN void dvti_buckets_report(const dvt_trainer *t, dvti_rank_state *state) {
    dvti_buckets *o = t->buckets;
    int b, at, i;
    if (o->off_bytes != -1 && o->off_bytes != t->bucket_bytes) {
        o->off_bytes = -1;
        o->misses = 0;
    }
    state->bucket_bytes =
        o->off_bytes == -1 && t->ctxs.n == 1 && dvti_is_host_memory(t->ctxs.ctx[0])
            ? t->bucket_bytes
            : 0;
    for (i = 0; i < t->n; i++)
        if (dvti_bucket_sums(t, i) &&
            dvt_nbytes(dvti_trainer_at(t, i, 0)->gradient) > DVTI_FLIGHT_BYTES)
            state->bucket_bytes = 0;
    state->started = o->started;
    state->heard = o->heard;
    state->same = o->n_buckets > 0 && o->shapes == state->shapes && !o->changed;
    for (b = 0; b < o->started && state->same; b++)
        for (at = o->bucket[b].first; at < o->bucket[b].end && state->same; at++) {
            i = o->order[at];
            state->same =
                dvti_bucket_holds(&o->bucket[b], &o->leaf[i], dvti_trainer_at(t, i, 0)->gradient);
        }
}

/* Writes the sums to the gradients. */
static bool dvti_buckets_write(const char *function, const dvt_trainer *t) {
    const dvti_buckets *o = t->buckets;
    bool good = true;
    int b, at, k;
    for (b = 0; b < o->n_buckets; b++)
        for (at = o->bucket[b].first; at < o->bucket[b].end; at++) {
            const dvti_bucket_leaf *leaf = &o->leaf[o->order[at]];
            const char *from = (const char *)dvt_data(o->bucket[b].result) +
                               leaf->at * dvt_dtype_size(o->bucket[b].dtype);
            for (k = 0; k < t->ctxs.n && good; k++) {
                dvti_replica *replica = dvti_trainer_at(t, o->order[at], k);
                good = dvti_write_host(function, replica->gradient, from) == DVT_OK;
                dvti_written(replica->gradient);
                replica->weight->grad_holds = DVTI_GRAD_SUM;
            }
        }
    return good;
}

/* Starts the next bucket in the step. With `values`, those of the gradients: backward may have run
   since some were packed. Otherwise no rank uses them. */
static bool dvti_buckets_start_late(const char *function, const dvt_trainer *t, bool values) {
    dvti_buckets *o = t->buckets;
    dvti_bucket *b = &o->bucket[o->started];
    int at;
    for (at = b->first; at < b->end && values; at++)
        if (!dvti_bucket_pack(function, b, &o->leaf[o->order[at]],
                              dvti_trainer_at(t, o->order[at], 0)->gradient))
            return false;
    if (!b->own) {
        b->own = dvti_bucket_array(function, b);
        if (!b->own || !dvt_fill(b->own, 0))
            return false;
    }
    return dvti_buckets_start_next(function, o);
}

DVTI_FN dvt_status dvti_buckets_sum(const char *function, dvt_trainer *t,
                                    const dvti_rank_state *all, bool *summed) {
    dvti_buckets *o = t->buckets;
    dvt_status status = DVT_OK;
    int most = 0, r, differs = -1;
    *summed = false;
    for (r = 0; r < dvt_num_ranks(); r++) {
        most = DVTI_MAX(most, all[r].started);
        if (!all[r].same && differs < 0)
            differs = r;
    }
    if (!most && o->shapes == all[0].shapes) /* DVT_GRAD_ADD, or no backward */
        return DVT_OK;
    if (o->n_buckets && differs < 0)
        most = o->n_buckets;
    while (o->started < most)
        if (!dvti_buckets_start_late(function, t, differs < 0))
            return dvti_failure();
    status = dvti_buckets_await(function, o);
    if (status == DVT_OK && o->n_buckets && differs < 0) {
        o->misses = 0;
        *summed = dvti_buckets_write(function, t);
        return *summed ? DVT_OK : dvti_failure();
    }
    if (status == DVT_OK && o->n_buckets) {
        dvti_buckets_drop_plan(o);
        if (++o->misses == DVTI_BUCKET_MISSES) {
            o->off_bytes = t->bucket_bytes;
            dvti_log(DVT_LOG_INFO,
                     "%s: gradients of rank %d changed after backward had completed them, so from "
                     "now on they are sent in the step; dvt_trainer_set_bucket_bytes can change "
                     "that",
                     function, differs);
        }
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
    int i;
    for (i = 0; i < t->n; i++) {
        const int number = o->weight[i].i;
        const dvt_array *weight =
            t->trained[number].taken ? dvti_trainer_at(t, number, 0)->weight : NULL;
        o->weight[i].weight = weight;
        if (i && (uintptr_t)o->weight[i - 1].weight > (uintptr_t)weight)
            sorted = false;
    }
    if (!sorted)
        qsort(o->weight, (size_t)t->n, sizeof *o->weight, dvti_bucket_compare);
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
        if (dvti_bucket_sums(t, i) && !o->leaf[i].heard)
            out[n++] = i;
    while (n < t->n)
        out[n++] = -1;
}

/* Adds parameter i to the last bucket, or to a new one. */
static bool dvti_buckets_append(const char *function, const dvt_trainer *t, int i, int at) {
    dvti_buckets *o = t->buckets;
    const dvt_array *gradient = dvti_trainer_at(t, i, 0)->gradient;
    dvti_bucket *b = o->n_buckets ? &o->bucket[o->n_buckets - 1] : NULL;
    if (!b || b->dtype != gradient->dtype ||
        b->size * dvt_dtype_size(b->dtype) + dvt_nbytes(gradient) > o->bytes) {
        if (!dvti_grow((void **)&o->bucket, &o->capacity, (size_t)o->n_buckets + 1,
                       sizeof *o->bucket)) {
            dvti_fail_memory(function, (o->n_buckets + 1) * (int64_t)sizeof *o->bucket);
            return false;
        }
        b = &o->bucket[o->n_buckets++];
        memset(b, 0, sizeof *b);
        b->dtype = gradient->dtype;
        b->first = b->end = at;
    }
    o->order[at] = i;
    o->leaf[i].bucket = o->n_buckets - 1;
    o->leaf[i].at = b->size;
    b->size += dvt_size(gradient);
    b->end++;
    b->missing++;
    return true;
}

/* Makes the plan of rank 0, if all ranks can use one and rank 0 has heard a backward pass. */
static dvt_status dvti_buckets_new_plan(const char *function, const dvt_trainer *t,
                                        const dvti_rank_state *all) {
    dvti_buckets *o = t->buckets;
    dvt_array *order;
    int32_t *number;
    int r, i;
    for (r = 0; r < dvt_num_ranks(); r++)
        if (!all[r].bucket_bytes)
            return DVT_OK;
    if (!all[0].heard)
        return DVT_OK;
    order = dvt_empty(DVT_SHAPE(t->n + 1), DVT_I32, dvt_cpu());
    if (!order)
        return dvti_failure();
    number = (int32_t *)dvt_data(order);
    number[t->n] = dvti_buckets_plans;
    dvti_buckets_order(t, number);
    if (dvti_ranks_broadcast(function, order, 0) != DVT_OK)
        return dvti_failure();
    o->bytes = all[0].bucket_bytes;
    o->shapes = all[0].shapes;
    o->number = number[t->n];
    dvti_buckets_plans = (o->number + 1) % (DVTI_RANK_TAGS / 2 - 1);
    for (i = 0; i < t->n; i++)
        o->leaf[i].bucket = -1;
    for (i = 0; i < t->n && number[i] >= 0; i++)
        if (!dvti_buckets_append(function, t, number[i], i))
            return dvti_failure();
    return DVT_OK;
}

DVTI_FN dvt_status dvti_buckets_plan(const char *function, dvt_trainer *t,
                                     const dvti_rank_state *all) {
    dvti_buckets *o = t->buckets;
    dvt_status status = DVT_OK;
    int r;
    for (r = 0; r < dvt_num_ranks() && o->n_buckets; r++)
        if (!all[r].bucket_bytes || all[0].bucket_bytes != o->bytes)
            dvti_buckets_drop_plan(o);
    if (!o->n_buckets)
        status = dvti_buckets_new_plan(function, t, all);
    dvti_buckets_reset(o);
    dvti_buckets_look(t);
    dvti_buckets_reap();
    return status;
}

#undef DVTI_BUCKET_MISSES
#endif
