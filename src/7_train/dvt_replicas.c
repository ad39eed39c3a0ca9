/* The copies of the trained parameters: their contexts, the memory that a step needs in addition,
   and the sum of their gradients. The first context forms the sum in the order of the contexts, so
   every copy receives the same bits.

   parameter i   ctx 0: weight grad state       ctx 1: weight grad state       ...
                              |                            |
                              + <--- staging <--- copy ----+
                              then the sum is copied to the grad of every context */
#include "7_train/dvt_train_internal.h"

DVTI_FN dvti_replica *dvti_trainer_at(const dvt_trainer *t, int i, int k) {
    return &t->replica[(size_t)i * (size_t)t->ctxs.n + (size_t)k];
}

DVTI_FN void dvti_replicas_free(dvti_replica *replica, int64_t n) {
    int64_t i;
    int s;
    for (i = 0; replica && i < n; i++)
        for (s = 0; s < DVT_OPTIMIZER_STATES; s++)
            dvti_disown(replica[i].state[s]);
    dvti_free(replica);
}

/* ---- contexts ---- */
DVTI_FN bool dvti_same_ctxs(const dvt_ctx_list *a, const dvt_ctx_list *b) {
    int i;
    if (a->n != b->n)
        return false;
    for (i = 0; i < a->n; i++)
        if (!dvt_ctx_equal(a->ctx[i], b->ctx[i]))
            return false;
    return true;
}

DVTI_FN dvt_status dvti_trainer_ctxs(const char *function, const dvt_trainer *t,
                                     dvt_ctx_list *ctxs) {
    dvt_param *first = NULL;
    char here[256], there[256];
    int i;
    memset(ctxs, 0, sizeof *ctxs);
    for (i = 0; i < t->n; i++) {
        dvt_ctx_list own = dvt_param_ctxs(t->trained[i].param);
        if (own.n < 1)
            continue;
        if (!first) {
            first = t->trained[i].param;
            *ctxs = own;
        } else if (!dvti_same_ctxs(ctxs, &own)) {
            dvt_ctx_list_format(own, here, sizeof here);
            dvt_ctx_list_format(*ctxs, there, sizeof there);
            return dvti_fail(DVT_ERR_CONTEXT,
                             "%s: all parameters must be initialized on the same contexts, but "
                             "parameter %s is on %s while %s is on %s; move them with "
                             "dvt_params_reset_ctx",
                             function, dvt_param_name(t->trained[i].param), here,
                             dvt_param_name(first), there);
        }
    }
    return DVT_OK;
}

/* ---- looking up the parameters: checks only, nothing that a later failure must undo ---- */
/* Moves the state when parameters have moved to other contexts. A copy on a remaining context keeps
   its own state; others get a copy of the first. */
static bool dvti_replica_move(dvti_replica *to, const dvti_replica *own, const dvti_replica *first,
                              dvt_ctx ctx, int states) {
    int s;
    for (s = 0; s < states; s++) {
        if (own)
            to->state[s] = (dvt_array *)dvti_own(own->state[s]);
        else if (first->state[s]) {
            to->state[s] = dvt_copyto(first->state[s], ctx);
            if (!to->state[s])
                return false;
            dvti_scope_take(to->state[s]);
        }
    }
    return true;
}

static dvt_status dvti_trainer_place(const char *function, dvt_trainer *t,
                                     const dvt_ctx_list *ctxs) {
    dvti_replica *fresh;
    int i, k, old;
    int64_t n = (int64_t)t->n * ctxs->n;
    if (t->replica && dvti_same_ctxs(&t->ctxs, ctxs))
        return DVT_OK;
    fresh = (dvti_replica *)dvti_alloc_zero((size_t)n * sizeof *fresh);
    if (!fresh)
        return dvti_fail_memory(function, n * (int64_t)sizeof *fresh);
    for (k = 0; t->ctxs.n && k < ctxs->n; k++) {
        for (old = 0; old < t->ctxs.n; old++)
            if (dvt_ctx_equal(t->ctxs.ctx[old], ctxs->ctx[k]))
                break;
        for (i = 0; i < t->n; i++)
            if (!dvti_replica_move(&fresh[i * ctxs->n + k],
                                   old < t->ctxs.n ? dvti_trainer_at(t, i, old) : NULL,
                                   dvti_trainer_at(t, i, 0), ctxs->ctx[k], t->states)) {
                dvti_replicas_free(fresh, n);
                return dvti_failure();
            }
    }
    dvti_replicas_free(t->replica, (int64_t)t->n * t->ctxs.n);
    for (i = 0; i < t->n; i++) {
        dvti_disown(t->trained[i].staging);
        t->trained[i].staging = NULL;
    }
    t->replica = fresh;
    t->ctxs = *ctxs;
    return DVT_OK;
}

/* Finds weight and gradient of every copy; skips parameters without gradients. */
static dvt_status dvti_trainer_find(const char *function, dvt_trainer *t, int i) {
    dvti_trained *trained = &t->trained[i];
    int k;
    trained->taken = trained->summed = false;
    for (k = 0; k < t->ctxs.n; k++) {
        dvti_replica *at = dvti_trainer_at(t, i, k);
        at->weight = dvti_param_on(function, trained->param, t->ctxs.ctx[k]);
        if (!at->weight)
            return dvti_failure();
        at->gradient = at->weight->grad;
        if (!at->gradient || at->weight->grad_req == DVT_GRAD_NULL)
            return DVT_OK;
    }
    trained->taken = true;
    return DVT_OK;
}

DVTI_FN dvt_status dvti_trainer_look(const char *function, dvt_trainer *t) {
    dvt_ctx_list ctxs;
    dvt_status status = dvti_trainer_ctxs(function, t, &ctxs);
    int i;
    /* When nothing is initialized, the first parameter sets the error. */
    if (status == DVT_OK && t->n && ctxs.n < 1)
        return dvti_param_on(function, t->trained[0].param, dvt_default_ctx()) ? DVT_OK
                                                                               : dvti_failure();
    if (status == DVT_OK)
        status = dvti_trainer_place(function, t, &ctxs);
    for (i = 0; i < t->n && status == DVT_OK; i++)
        status = dvti_trainer_find(function, t, i);
    return status;
}

/* ---- memory for the step ---- */
/* Returns the dtype of states: float32 for 16-bit weights, because 16-bit sums would lose most of a
   small step. */
DVTI_FN dvt_dtype dvti_state_dtype(dvt_dtype dtype) {
    return dtype == DVT_F64 ? DVT_F64 : DVT_F32;
}

static dvt_array *dvti_owned_zeros(dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx) {
    dvt_array *x = dvt_zeros(shape, dtype, ctx);
    if (x)
        dvti_scope_take(x);
    return x;
}

static bool dvti_state_fits(const dvt_array *state, const dvt_array *weight) {
    return state && dvt_shape_equal(state->shape, weight->shape) &&
           state->dtype == dvti_state_dtype(weight->dtype);
}

/* Makes the states of parameter i. Missing states, and those of a weight of another shape, start as
   zeros. */
DVTI_FN dvt_status dvti_trainer_make_states(dvt_trainer *t, int i) {
    int k, s;
    for (k = 0; k < t->ctxs.n; k++)
        for (s = 0; s < t->states; s++) {
            dvti_replica *at = dvti_trainer_at(t, i, k);
            dvt_array *state;
            if (dvti_state_fits(at->state[s], at->weight))
                continue;
            state = dvti_owned_zeros(at->weight->shape, dvti_state_dtype(at->weight->dtype),
                                     t->ctxs.ctx[k]);
            if (!state)
                return dvti_failure();
            dvti_disown(at->state[s]);
            at->state[s] = state;
        }
    return DVT_OK;
}

/* Allocates the buffer for a gradient from another device. One buffer serves all devices, since the
   queue keeps the order. */
DVTI_FN dvt_status dvti_trainer_make_staging(dvt_trainer *t, int i) {
    dvt_array *gradient = dvti_trainer_at(t, i, 0)->gradient, *staging = t->trained[i].staging;
    bool needed = false;
    int k;
    for (k = 1; k < t->ctxs.n; k++)
        if (dvti_trainer_at(t, i, k)->gradient->storage->device != gradient->storage->device)
            needed = true;
    if (!needed || (staging && staging->dtype == gradient->dtype &&
                    dvt_shape_equal(staging->shape, gradient->shape)))
        return DVT_OK;
    staging = dvti_owned_zeros(gradient->shape, gradient->dtype, t->ctxs.ctx[0]);
    if (!staging)
        return dvti_failure();
    dvti_disown(t->trained[i].staging);
    t->trained[i].staging = staging;
    return DVT_OK;
}

/* ---- the sum ---- */
DVTI_FN bool dvti_trainer_counts(const dvt_trainer *t, int i, int k, bool fresh_only) {
    return t->trained[i].taken && !t->trained[i].summed &&
           (!fresh_only || dvti_trainer_at(t, i, k)->weight->grad_fresh);
}

DVTI_FN dvt_status dvti_trainer_check_sums(const char *function, dvt_trainer *t, bool fresh_only) {
    int i, k;
    for (i = 0; i < t->n; i++) {
        t->trained[i].summed = t->trained[i].taken;
        for (k = 0; t->trained[i].summed && k < t->ctxs.n; k++)
            if (dvti_trainer_at(t, i, k)->weight->grad_holds != DVTI_GRAD_SUM)
                t->trained[i].summed = false;
        for (k = 0; k < t->ctxs.n; k++)
            if (dvti_trainer_counts(t, i, k, fresh_only) &&
                (dvti_trainer_at(t, i, k)->weight->grad_holds & DVTI_GRAD_SUM))
                return dvti_fail(
                    DVT_ERR_VALUE,
                    "%s: the gradient of parameter %s on %s has in it a sum over the contexts, "
                    "which dvt_trainer_allreduce or a step made; backward has run since, and "
                    "another sum would count it twice: call dvt_trainer_update before the next "
                    "backward, or renew the gradients on every context (with DVT_GRAD_ADD, after "
                    "dvt_params_zero_grad)",
                    function, dvt_param_name(t->trained[i].param), dvt_ctx_name(t->ctxs.ctx[k]));
    }
    return DVT_OK;
}

/* Adds the gradient of context k to that of the first context. */
static dvt_status dvti_trainer_add(const char *function, const dvt_trainer *t, int i, int k) {
    dvt_array *sum = dvti_trainer_at(t, i, 0)->gradient;
    dvt_array *other = dvti_trainer_at(t, i, k)->gradient;
    dvti_launch launch;
    dvti_launch_begin(&launch, function, dvti_kernel_elementwise(), DVTI_OP_add);
    if (!dvt_size(sum))
        return DVT_OK;
    launch.compute = dvti_class_of(sum->dtype);
    launch.in[0] = launch.out[0] = dvti_view_of(sum);
    launch.in[1] = dvti_view_of(
        other->storage->device == sum->storage->device ? other : t->trained[i].staging);
    launch.n_in = 2;
    launch.n_out = 1;
    return dvti_run(sum->storage->device, &launch);
}

/* Starts the sum from zeros when the first context has no fresh gradient of its own. */
static dvt_status dvti_trainer_start_sum(const dvt_trainer *t, bool fresh_only) {
    dvt_status status = DVT_OK;
    int i;
    for (i = 0; i < t->n && status == DVT_OK; i++)
        if (t->trained[i].taken && !t->trained[i].summed &&
            !dvti_trainer_counts(t, i, 0, fresh_only) &&
            !dvt_fill(dvti_trainer_at(t, i, 0)->gradient, 0))
            status = dvti_failure();
    return status;
}

/* Waits for the first context when context k is a CPU and the first is not. A copy from host memory
   into a busy queue must buffer the bytes, and that could fail in the middle of the sum. */
static dvt_status dvti_trainer_drain(const dvt_trainer *t, int k) {
    if (!dvti_is_host_memory(t->ctxs.ctx[k]) || dvti_is_host_memory(t->ctxs.ctx[0]) || !t->n)
        return DVT_OK;
    return dvt_wait(dvti_trainer_at(t, 0, 0)->weight);
}

/* Processes context by context, and within one first all copies, then all sums. The queues then
   wait once per context, not once per parameter. */
static dvt_status dvti_trainer_copy_and_add(const char *function, const dvt_trainer *t,
                                            bool fresh_only) {
    dvt_status status = dvti_trainer_start_sum(t, fresh_only);
    int i, k;
    for (k = 1; k < t->ctxs.n; k++) {
        if (status == DVT_OK)
            status = dvti_trainer_drain(t, k);
        for (i = 0; i < t->n && status == DVT_OK; i++) {
            dvt_array *other = dvti_trainer_at(t, i, k)->gradient;
            if (dvti_trainer_counts(t, i, k, fresh_only) && t->trained[i].staging &&
                other->storage->device != t->trained[i].staging->storage->device)
                status = dvti_copy_elements(function, t->trained[i].staging, other);
        }
        for (i = 0; i < t->n && status == DVT_OK; i++)
            if (dvti_trainer_counts(t, i, k, fresh_only))
                status = dvti_trainer_add(function, t, i, k);
    }
    for (i = 0; i < t->n && status == DVT_OK; i++)
        for (k = 1; k < t->ctxs.n && dvti_trainer_counts(t, i, k, false) && status == DVT_OK; k++)
            status = dvti_copy_elements(function, dvti_trainer_at(t, i, k)->gradient,
                                        dvti_trainer_at(t, i, 0)->gradient);
    return status;
}

DVTI_FN dvt_status dvti_trainer_sum(const char *function, const dvt_trainer *t, bool fresh_only) {
    dvt_status status = DVT_OK;
    int i, k;
    if (!dvti_trainer_all_reduce(function, t, fresh_only, &status))
        status = dvti_trainer_copy_and_add(function, t, fresh_only);
    for (i = 0; i < t->n; i++)
        for (k = 0; k < t->ctxs.n && dvti_trainer_counts(t, i, k, false); k++) {
            dvti_written(dvti_trainer_at(t, i, k)->gradient);
            if (status == DVT_OK)
                dvti_trainer_at(t, i, k)->weight->grad_holds = DVTI_GRAD_SUM;
        }
    return status;
}
