/* Changes of several parameters at once. Everything that can fail happens in plans; committing
   cannot fail. */
#include "6_nn/dvt_nn_internal.h"

static dvti_mutex dvti_param_mutex = DVTI_MUTEX_INIT;

/* The lock is recursive: an error while values are made asks the block for its description, which
   reads shapes. */
static DVTI_TLS int dvti_param_depth;

DVTI_FN void dvti_params_lock(void) {
    if (dvti_param_depth++ == 0)
        dvti_mutex_lock(&dvti_param_mutex);
}

DVTI_FN void dvti_params_unlock(void) {
    if (--dvti_param_depth == 0)
        dvti_mutex_unlock(&dvti_param_mutex);
}

DVTI_FN bool dvti_ctxs_resolve(const char *function, dvt_ctx_list given, dvt_ctx_list *out) {
    dvt_ctx_list list;
    int i, k;
    if (given.n < 0 || given.n > DVT_MAX_CONTEXTS) {
        dvti_fail(DVT_ERR_RANGE, "%s: a list of %d contexts; expected 0 to %d", function, given.n,
                  DVT_MAX_CONTEXTS);
        return false;
    }
    if (given.n == 0) {
        given.n = 1;
        given.ctx[0] = dvt_default_ctx();
    }
    memset(&list, 0, sizeof list);
    for (i = 0; i < given.n; i++) {
        dvt_ctx ctx = dvti_ctx(given.ctx[i]);
        if (ctx.type == DVT_DEVICE_META && dvti_inferring())
            return dvti_fail_inferring(function) == DVT_OK;
        for (k = 0; k < list.n && !dvt_ctx_equal(list.ctx[k], ctx); k++)
            continue;
        if (k == list.n && !dvti_device_exists(function, ctx))
            return false;
        if (k == list.n)
            list.ctx[list.n++] = ctx;
    }
    *out = list;
    return true;
}

DVTI_FN bool dvti_ctxs_repeat(const dvt_ctx_list *given) {
    int i, k;
    for (i = 0; i < given->n; i++)
        for (k = 0; k < i; k++)
            if (dvt_ctx_equal(given->ctx[i], given->ctx[k]))
                return true;
    return false;
}

DVTI_FN dvti_plan *dvti_plans_new(const char *function, size_t n) {
    dvti_plan *plans = NULL;
    if (n <= SIZE_MAX / sizeof *plans)
        plans = (dvti_plan *)dvti_alloc_zero(n * sizeof *plans);
    if (!plans)
        dvti_fail_memory(function, (int64_t)(n * sizeof *plans));
    return plans;
}

DVTI_FN void dvti_plans_drop(dvti_plan *plans, size_t n) {
    size_t i;
    int k;
    for (i = 0; plans && i < n; i++)
        for (k = 0; k < DVT_MAX_CONTEXTS; k++)
            dvti_disown(plans[i].copy[k]);
    dvti_free(plans);
}

DVTI_FN bool dvti_plan_fill_each(dvti_plan *plan, dvt_array *const *values) {
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_record_guard record = dvt_record_begin(DVT_OFF, DVT_UNCHANGED);
    dvt_array *converted = NULL;
    bool good = true;
    int i;
    for (i = 0; good && i < plan->ctxs.n; i++) {
        dvt_array *copy;
        if (i == 0 || values[i] != values[i - 1])
            converted = dvt_as_in_dtype(values[i], plan->param->dtype);
        copy = converted ? dvt_copyto(converted, plan->ctxs.ctx[i]) : NULL;
        good = copy && (plan->param->grad_req == DVT_GRAD_NULL ||
                        dvt_attach_grad(copy, plan->param->grad_req) == DVT_OK);
        if (good) {
            dvti_scope_take(copy);
            copy->grad_sums = plan->sums;
            plan->copy[i] = copy;
        }
    }
    dvt_record_end(&record);
    dvt_scope_end(&scope);
    return good;
}

DVTI_FN bool dvti_plan_fill(dvti_plan *plan, dvt_array *values) {
    dvt_array *each[DVT_MAX_CONTEXTS];
    int i;
    for (i = 0; i < plan->ctxs.n; i++)
        each[i] = values;
    return dvti_plan_fill_each(plan, each);
}

/* Swaps the memory of two arrays of one shape, dtype and context, so that pointers to `kept` see
   the new values. The version tells a tape that recorded the old ones. */
static void dvti_copy_exchange(dvt_array *kept, dvt_array *fresh) {
    dvti_storage *old = kept->storage;
    dvti_atomic_store(&fresh->storage->version, dvti_atomic_load(&old->version) + 1);
    kept->storage = fresh->storage;
    fresh->storage = old;
}

static void dvti_copy_renew(dvt_array *kept, dvt_array *fresh) {
    dvti_copy_exchange(kept, fresh);
    if (kept->grad && fresh->grad && !kept->grad->node)
        dvti_copy_exchange(kept->grad, fresh->grad);
    else { /* none before or after, or one that belongs to a recorded computation */
        dvt_array *grad = kept->grad;
        kept->grad = fresh->grad;
        fresh->grad = grad;
    }
    kept->grad_req = fresh->grad_req;
    kept->attached = fresh->attached;
    kept->grad_fresh = false;
    kept->grad_holds = 0;
    kept->grad_sums = fresh->grad_sums;
}

static void dvti_plan_commit_values(dvti_plan *plan) {
    dvt_param *p = plan->param;
    dvt_array *now[DVT_MAX_CONTEXTS];
    int i, k;
    dvti_param_drop_casts(p);
    memset(now, 0, sizeof now);
    for (i = 0; i < plan->ctxs.n; i++) {
        now[i] = plan->copy[i];
        plan->copy[i] = NULL;
        for (k = 0; k < p->ctxs.n; k++)
            if (p->copy[k] && dvt_ctx_equal(p->ctxs.ctx[k], plan->ctxs.ctx[i])) {
                dvti_copy_renew(p->copy[k], now[i]);
                dvti_disown(now[i]);
                now[i] = p->copy[k];
                p->copy[k] = NULL;
            }
    }
    for (k = 0; k < p->ctxs.n; k++)
        dvti_disown(p->copy[k]);
    memcpy(p->copy, now, sizeof now);
    p->ctxs = plan->ctxs;
    p->sums = plan->sums;
    p->shape = plan->shape;
    dvti_atomic_store(&p->state, DVTI_PARAM_READY);
}

DVTI_FN void dvti_plan_commit_locked(dvti_plan *plan) {
    if (!plan->param)
        return;
    if (!plan->deferred) {
        dvti_plan_commit_values(plan);
        return;
    }
    plan->param->pending = plan->init;
    plan->param->ctxs = plan->ctxs;
    plan->param->sums = plan->sums;
    dvti_atomic_store(&plan->param->state, DVTI_PARAM_DEFERRED);
}

DVTI_FN void dvti_plans_commit(dvti_plan *plans, size_t n) {
    size_t i;
    dvti_params_lock();
    for (i = 0; i < n; i++)
        dvti_plan_commit_locked(&plans[i]);
    dvti_params_unlock();
}
