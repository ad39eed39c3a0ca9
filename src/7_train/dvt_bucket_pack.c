/* The part of buckets (dvt_buckets.c) that needs no other rank: packing, the sum over the contexts
   of this process, and whether the gradients are still those that were packed.

   On a GPU all of it is queued, and nothing waits for the GPU. Gradients are compared there, as
   integers, with the packed ones; a byte for each bucket comes back. Versions of arrays would not
   do: they miss writes through an address from dvt_data or dvt_cuda_address. */
#include "7_train/dvt_buckets.h"

#if defined(DEVTENSOR_MPI)
/* ---- packing ---- */
DVTI_FN bool dvti_bucket_pack_begin(const char *function, dvti_buckets *o) {
    const size_t bytes = (size_t)o->ctxs.n * sizeof *o->check;
    int k;
    o->check = (dvti_bucket_check *)dvti_alloc_zero(bytes);
    if (!o->check) {
        dvti_fail_memory(function, (int64_t)bytes);
        return false;
    }
    for (k = 0; k < o->ctxs.n; k++)
        if (!dvti_is_host_memory(o->ctxs.ctx[k])) {
            o->check[k].fetch = dvti_fetch_new(function, o->ctxs.ctx[k], o->n_buckets);
            if (!o->check[k].fetch)
                return false;
        }
    return true;
}

static dvt_array *dvti_bucket_array(const char *function, const dvti_bucket *b, dvt_ctx ctx) {
    return (dvt_array *)dvti_own(dvti_array_new(function, DVT_SHAPE(b->size), b->dtype, ctx));
}

DVTI_FN bool dvti_bucket_pack(const char *function, const dvti_buckets *o,
                              const dvti_bucket_leaf *leaf, int k, dvt_array *gradient) {
    dvti_bucket *b = &o->bucket[leaf->bucket];
    dvt_array *view = NULL;
    if (!b->own[k])
        b->own[k] = dvti_bucket_array(function, b, o->ctxs.ctx[k]);
    if (b->own[k])
        view = dvt_slice(b->own[k], 0, leaf->at, leaf->at + dvt_size(gradient), 1);
    view = view ? dvt_reshape(view, gradient->shape) : NULL;
    return view && dvt_copy_into(view, gradient);
}

/* ---- the sum over the contexts ---- */
/* Lets the devices form the sum, as dvti_trainer_all_reduce does. Each needs a copy, because the
   packed gradients are compared later. */
static bool dvti_bucket_sum_on_devices(const char *function, const dvti_buckets *o, dvti_bucket *b,
                                       dvti_device *const *device) {
    dvt_array *copy[DVT_MAX_GPUS];
    dvti_reduce_part part;
    int k;
    part.dtype = b->dtype;
    part.count = b->size;
    for (k = 0; k < o->ctxs.n; k++) {
        copy[k] = dvti_array_new(function, b->own[k]->shape, b->dtype, o->ctxs.ctx[k]);
        if (!copy[k] || dvti_copy_elements(function, copy[k], b->own[k]) != DVT_OK)
            return false;
        part.at[k] = dvti_view_of(copy[k]).data;
    }
    if (dvti_all_reduce(function, device, o->ctxs.n, &part, 1) != DVT_OK)
        return false;
    b->total = (dvt_array *)dvti_own(copy[0]);
    return true;
}

/* Adds the gradients of context k to the sum on the first context. */
static bool dvti_bucket_add_context(const char *function, const dvti_buckets *o, dvti_bucket *b,
                                    int k) {
    dvt_array *other = b->own[k];
    dvti_launch launch;
    if (other->storage->device != b->total->storage->device) {
        other = dvti_array_new(function, other->shape, b->dtype, o->ctxs.ctx[0]);
        if (!other || dvti_copy_elements(function, other, b->own[k]) != DVT_OK)
            return false;
    }
    dvti_launch_begin(&launch, function, dvti_kernel_elementwise(), DVTI_OP_add);
    launch.compute = dvti_class_of(b->dtype);
    launch.in[0] = launch.out[0] = dvti_view_of(b->total);
    launch.in[1] = dvti_view_of(other);
    launch.n_in = 2;
    launch.n_out = 1;
    return !b->size || dvti_run(b->total->storage->device, &launch) == DVT_OK;
}

DVTI_FN bool dvti_bucket_sum(const char *function, const dvti_buckets *o, dvti_bucket *b) {
    dvti_device *device[DVT_MAX_GPUS];
    bool good;
    int k;
    dvti_disown(b->total); /* of an attempt that failed */
    b->total = NULL;
    if (o->ctxs.n == 1) {
        b->total = (dvt_array *)dvti_own(b->own[0]);
        return true;
    }
    if (dvti_arrays_can_all_reduce(b->own, o->ctxs.n, device))
        return dvti_bucket_sum_on_devices(function, o, b, device);
    b->total = dvti_bucket_array(function, b, o->ctxs.ctx[0]);
    good = b->total && dvti_copy_elements(function, b->total, b->own[0]) == DVT_OK;
    for (k = 1; k < o->ctxs.n && good; k++)
        good = dvti_bucket_add_context(function, o, b, k);
    return good;
}

/* ---- the comparison ---- */
/* Returns whether the gradient of context k can be compared with its place in the bucket. */
static bool dvti_bucket_fits(const dvti_bucket *b, const dvti_bucket_leaf *leaf, int k,
                             const dvt_array *gradient) {
    return gradient && dvt_is_contiguous(gradient) && gradient->dtype == b->dtype &&
           gradient->storage->device == b->own[k]->storage->device &&
           leaf->at + dvt_size(gradient) <= b->size;
}

static bool dvti_bucket_holds(const dvti_bucket *b, const dvti_bucket_leaf *leaf, int k,
                              dvt_array *gradient) {
    const int64_t size = dvt_dtype_size(b->dtype);
    return !dvt_size(gradient) || memcmp((const char *)dvt_data(b->own[k]) + leaf->at * size,
                                         dvt_data(gradient), (size_t)dvt_nbytes(gradient)) == 0;
}

/* Describes memory as int32, or as bytes where that does not fit. */
static dvti_view dvti_bucket_bits(char *at, int64_t bytes, bool words) {
    dvti_view view;
    memset(&view, 0, sizeof view);
    view.data = at;
    view.dtype = words ? DVT_I32 : DVT_U8;
    view.ndim = 1;
    view.dim[0] = words ? bytes / 4 : bytes;
    view.stride[0] = 1;
    return view;
}

/* Queues a comparison on context k. It writes a bool for each word to `out`, from *at on. */
static dvt_status dvti_bucket_differ(const char *function, const dvti_bucket *b,
                                     const dvti_bucket_leaf *leaf, int k, dvt_array *gradient,
                                     dvt_array *out, int64_t *at) {
    char *one = (char *)dvti_view_of(b->own[k]).data + leaf->at * dvt_dtype_size(b->dtype);
    char *other = (char *)dvti_view_of(gradient).data;
    const int64_t bytes = dvt_nbytes(gradient);
    const bool words = ((uintptr_t)one | (uintptr_t)other | (uintptr_t)bytes) % 4 == 0;
    dvti_launch launch;
    if (!bytes)
        return DVT_OK;
    dvti_launch_begin(&launch, function, dvti_kernel_elementwise(), DVTI_OP_not_equal);
    launch.compute = dvti_class_of(DVT_I32);
    launch.in[0] = dvti_bucket_bits(one, bytes, words);
    launch.in[1] = dvti_bucket_bits(other, bytes, words);
    launch.out[0] = launch.in[0];
    launch.out[0].data = (char *)dvti_view_of(out).data + *at;
    launch.out[0].dtype = DVT_BOOL;
    launch.n_in = 2;
    launch.n_out = 1;
    *at += launch.in[0].dim[0];
    return dvti_run(gradient->storage->device, &launch);
}

/* Queues the comparison of a bucket on context k, whose result is element `number` of `result`. */
static bool dvti_bucket_differ_all(const char *function, const dvt_trainer *t, int number, int k,
                                   dvt_array *result) {
    const dvti_buckets *o = t->buckets;
    const dvti_bucket *b = &o->bucket[number];
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_array *words = dvti_array_new(function, DVT_SHAPE(b->size * dvt_dtype_size(b->dtype)),
                                      DVT_BOOL, o->ctxs.ctx[k]);
    dvt_array *any = NULL;
    bool good = words != NULL;
    int64_t n = 0;
    int at;
    for (at = b->first; at < b->end && good; at++)
        good =
            dvti_bucket_differ(function, b, &o->leaf[o->order[at]], k,
                               dvti_trainer_at(t, o->order[at], k)->gradient, words, &n) == DVT_OK;
    if (good)
        any = dvt_any(dvt_slice(words, 0, 0, n, 1), DVT_KEEPDIMS(0));
    good = any && dvt_copy_into(dvt_slice(result, 0, number, number + 1, 1), any);
    dvt_scope_end(&scope);
    return good;
}

/* A kernel's first use loads it, which may wait for all work of the GPU (CUDA's lazy loading), and
   so for sums of other ranks. */
DVTI_FN bool dvti_buckets_rehearse(const char *function, const dvt_trainer *t) {
    const dvti_buckets *o = t->buckets;
    bool good = true;
    int number, at, k;
    for (k = 0; k < o->ctxs.n && !o->check[k].fetch;)
        k++;
    for (number = 0; number < o->n_buckets && k < o->ctxs.n && good; number++) {
        dvti_bucket *b = &o->bucket[number];
        int c;
        for (at = b->first; at < b->end; at++)
            for (c = 0; c < o->ctxs.n && good; c++)
                good = dvti_bucket_pack(function, o, &o->leaf[o->order[at]], c,
                                        dvti_trainer_at(t, o->order[at], c)->gradient);
        good = good && dvti_bucket_sum(function, o, b);
        for (c = 0; c < o->ctxs.n && good; c++) {
            dvt_array *result;
            if (!o->check[c].fetch)
                continue;
            result = dvti_array_new(function, DVT_SHAPE(o->n_buckets), DVT_BOOL, o->ctxs.ctx[c]);
            good = result && dvti_bucket_differ_all(function, t, number, c, result);
        }
    }
    return good;
}

/* Compares all packed buckets on context k, or queues that and the copy of the result. */
static bool dvti_buckets_compare_on(const char *function, const dvt_trainer *t, int k, bool *same) {
    const dvti_buckets *o = t->buckets;
    dvti_bucket_check *check = &o->check[k];
    dvt_array *result = NULL;
    int number, at;
    if (check->fetch) {
        dvt_status status = DVT_OK;
        dvti_fetch_done(check->fetch, true, &status); /* a copy that no one has waited for */
        dvti_disown(check->result);
        result = dvti_array_new(function, DVT_SHAPE(o->packed), DVT_BOOL, o->ctxs.ctx[k]);
        check->result = (dvt_array *)dvti_own(result);
        if (!result)
            return false;
    }
    for (number = 0; number < o->packed && *same; number++) {
        const dvti_bucket *b = &o->bucket[number];
        for (at = b->first; at < b->end && *same; at++) {
            dvt_array *gradient = dvti_trainer_at(t, o->order[at], k)->gradient;
            *same = dvti_bucket_fits(b, &o->leaf[o->order[at]], k, gradient) &&
                    (result || dvti_bucket_holds(b, &o->leaf[o->order[at]], k, gradient));
        }
        if (result && *same && !dvti_bucket_differ_all(function, t, number, k, result))
            return false;
    }
    return !result || dvti_fetch_start(function, check->fetch, result) == DVT_OK;
}

/* Waits for the results of the comparisons. Buckets whose bytes arrive meanwhile are sent. */
static dvt_status dvti_buckets_await_checks(const char *function, dvti_buckets *o, bool *same) {
    dvt_status status = DVT_OK;
    int k, number, turns = 0;
    for (k = 0; k < o->ctxs.n && status == DVT_OK; k++) {
        dvti_fetch *fetch = o->check[k].fetch;
        if (!fetch)
            continue;
        while (!dvti_fetch_done(fetch, false, &status) && status == DVT_OK) {
            status = dvti_buckets_poll(function);
            if (++turns > 1000)
                dvti_sleep(20e-6);
        }
        for (number = 0; number < o->packed && status == DVT_OK && *same; number++)
            *same = !dvti_fetch_bytes(fetch)[number];
    }
    return status;
}

DVTI_FN dvt_status dvti_buckets_compare(const char *function, const dvt_trainer *t, bool *same) {
    dvti_attempt attempt = dvti_attempt_begin(); /* without memory, the step sums again */
    int k;
    for (k = 0; k < t->ctxs.n && *same; k++)
        *same = dvti_buckets_compare_on(function, t, k, same) && *same;
    dvti_attempt_end(&attempt);
    return *same ? dvti_buckets_await_checks(function, t->buckets, same) : DVT_OK;
}
#endif
