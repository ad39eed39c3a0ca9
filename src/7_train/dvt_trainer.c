/* The trainer: checks, allocations, the sum of the gradients, then the same step for every copy.
   All allocations precede the first change of a value. */
#include "1_base/dvt_float_mode.h"
#include "7_train/dvt_ranks.h"

static void dvti_trainer_destroy(void *object) {
    dvt_trainer *t = (dvt_trainer *)object;
    int i;
    dvti_parts_free(t);
    dvti_buckets_free(t->buckets);
    dvti_replicas_free(t->replica, (int64_t)t->n * t->ctxs.n);
    for (i = 0; t->trained && i < t->n; i++)
        dvti_disown(t->trained[i].staging);
    dvti_free(t->trained);
    dvti_disown(t->params);
    dvti_free(t);
}

/* ---- creation ---- */
DVT_API dvt_trainer *dvt_trainer_new(dvt_params *params, dvt_optimizer optimizer) {
    static const char *const function = "dvt_trainer_new";
    const size_t each = sizeof(dvti_trained) + sizeof(dvti_update_of);
    dvt_trainer *t;
    dvt_ctx_list ctxs;
    int i, n;
    if (!params) {
        dvti_null(function, "params");
        return NULL;
    }
    if (dvti_optimizer_check(function, &optimizer) != DVT_OK)
        return NULL;
    n = dvt_params_len(params);
    if (!n)
        dvti_log(DVT_LOG_WARNING, "%s: the collection has no parameters; nothing will be trained",
                 function);
    t = (dvt_trainer *)dvti_alloc_zero(sizeof *t);
    if (t)
        t->trained = (dvti_trained *)dvti_alloc_zero((size_t)n * each);
    if (!t || !t->trained) {
        dvti_free(t);
        dvti_fail_memory(function, (int64_t)sizeof *t + n * (int64_t)each);
        return NULL;
    }
    t->optimizer = optimizer;
    t->update = (dvti_update_of *)(void *)(t->trained + n);
    t->states = dvti_optimizer_states(&optimizer);
    t->n = n;
    t->bucket_bytes = DVTI_BUCKET_BYTES;
    for (i = 0; i < n; i++)
        t->trained[i].param = dvt_params_at(params, i);
    if (dvti_trainer_ctxs(function, t, &ctxs) != DVT_OK ||
        !dvti_object_begin(t, dvti_trainer_destroy, function)) {
        dvti_trainer_destroy(t);
        return NULL;
    }
    t->params = (dvt_params *)dvti_own(params);
    return dvti_ranks_begin(function, t) == DVT_OK ? t : NULL;
}

/* ---- the step ---- */
/* Checks for gradients that backward has not written since the last step. With `partial`,
   parameters that are stale on all contexts are skipped. */
static dvt_status dvti_trainer_check_stale(const char *function, dvt_trainer *t, bool partial) {
    int i, k;
    for (i = 0; i < t->n; i++) {
        int stale = 0, first = -1;
        for (k = 0; t->trained[i].taken && k < t->ctxs.n; k++)
            if (!dvti_trainer_at(t, i, k)->weight->grad_fresh) {
                stale++;
                if (first < 0)
                    first = k;
            }
        if (stale && !partial)
            return dvti_fail(
                DVT_ERR_STALE_GRAD,
                "%s: the gradient of parameter %s on %s has not been updated by backward since the "
                "last step; run backward there, or call dvt_trainer_step_partial to skip it",
                function, dvt_param_name(t->trained[i].param), dvt_ctx_name(t->ctxs.ctx[first]));
        if (stale == t->ctxs.n)
            t->trained[i].taken = false;
    }
    return DVT_OK;
}

/* Returns whether all gradients come from dvt_trainer_allreduce, or were changed by the caller
   since: no backward pass came between. */
static bool dvti_trainer_summed(const dvt_trainer *t) {
    int i, k;
    for (i = 0; i < t->n; i++)
        for (k = 0; t->trained[i].taken && k < t->ctxs.n; k++)
            if (dvti_trainer_at(t, i, k)->weight->grad_holds & DVTI_GRAD_OWN)
                return false;
    return true;
}

typedef struct dvti_step_plan {
    bool sum, apply, partial;
} dvti_step_plan;

static DVTI_NOINLINE dvt_status dvti_trainer_run(const char *function, dvt_trainer *t,
                                                 int64_t batch_size, dvti_step_plan plan) {
    const bool many = dvt_num_ranks() > 1;
    dvt_status status;
    bool overflow = false;
    int i;
    if (many) { /* a rank may have no rows of a short batch */
        status = dvti_ranks_begin(function, t);
        if (status == DVT_OK)
            status =
                dvti_ranks_agree(function, t, NULL, plan.apply ? &batch_size : NULL, NULL, NULL);
        if (status != DVT_OK)
            return status;
    }
    if (plan.apply && batch_size < 1)
        return dvti_fail(DVT_ERR_RANGE,
                         "%s: batch_size is %lld; expected the number of samples, at least 1",
                         function, (long long)batch_size);
    status = dvti_trainer_look(function, t);
    if (status == DVT_OK && plan.sum && t->parts && t->parts->parts)
        status = dvti_parts_finish(function, t);
    if (status == DVT_OK && plan.apply)
        status = dvti_trainer_check_stale(function, t, plan.partial);
    if (status == DVT_OK && plan.apply && !plan.sum && (many || t->ctxs.n > 1) &&
        !dvti_trainer_summed(t))
        return dvti_fail(DVT_ERR_VALUE,
                         "%s: the gradients of %d contexts have not been summed, and the copies "
                         "would drift apart; call dvt_trainer_allreduce first, or dvt_trainer_step",
                         function, t->ctxs.n * dvt_num_ranks());
    if (status == DVT_OK && plan.sum && (many || t->ctxs.n > 1))
        status = dvti_trainer_check_sums(function, t, plan.partial);
    for (i = 0; i < t->n && status == DVT_OK; i++) {
        if (!t->trained[i].taken)
            continue;
        if (plan.apply)
            status = dvti_trainer_make_states(t, i);
        if (plan.sum && status == DVT_OK && !t->trained[i].summed)
            status = dvti_trainer_make_staging(t, i);
    }
    if (status == DVT_OK && plan.sum && many)
        status = dvti_ranks_sum(function, t, plan.partial);
    else if (status == DVT_OK && plan.sum && t->ctxs.n > 1)
        status = dvti_trainer_sum(function, t, plan.partial);
    if (status == DVT_OK && plan.apply)
        status = dvti_trainer_check_overflow(function, t, &overflow);
    if (status != DVT_OK || !plan.apply)
        return status;
    if (overflow)
        dvti_trainer_skip(t);
    else
        status = dvti_trainer_apply_all(function, t, batch_size);
    if (status == DVT_OK)
        dvti_trainer_next_scale(function, t, overflow);
    return status;
}

static dvt_status dvti_trainer_call(const char *function, dvt_trainer *t, int64_t batch_size,
                                    bool sum, bool apply, bool partial) {
    dvt_record_guard record;
    dvt_scope_guard scope;
    dvti_step_plan plan;
    dvti_float_mode mode;
    dvt_status status;
    if (!t)
        return dvti_null(function, "trainer");
    plan.sum = sum;
    plan.apply = apply;
    plan.partial = partial;
    record = dvt_record_begin(DVT_OFF, DVT_UNCHANGED);
    scope = dvt_scope_begin();
    mode = dvti_float_mode_begin();
    status = dvti_trainer_run(function, t, batch_size, plan);
    dvti_float_mode_end(&mode);
    dvt_scope_end(&scope);
    dvt_record_end(&record);
    return status;
}

DVT_API dvt_status dvt_trainer_step(dvt_trainer *trainer, int64_t batch_size) {
    return dvti_trainer_call("dvt_trainer_step", trainer, batch_size, true, true, false);
}

DVT_API dvt_status dvt_trainer_step_partial(dvt_trainer *trainer, int64_t batch_size) {
    return dvti_trainer_call("dvt_trainer_step_partial", trainer, batch_size, true, true, true);
}

DVT_API dvt_status dvt_trainer_allreduce(dvt_trainer *trainer) {
    return dvti_trainer_call("dvt_trainer_allreduce", trainer, 1, true, false, false);
}

DVT_API dvt_status dvt_trainer_update(dvt_trainer *trainer, int64_t batch_size) {
    return dvti_trainer_call("dvt_trainer_update", trainer, batch_size, false, true, false);
}

/* ---- getters and setters ---- */
DVT_API double dvt_trainer_learning_rate(const dvt_trainer *trainer) {
    if (!trainer) {
        dvti_null("dvt_trainer_learning_rate", "trainer");
        return (double)NAN;
    }
    return dvt_schedule_rate(&trainer->optimizer.schedule, trainer->optimizer.learning_rate,
                             trainer->steps);
}

DVT_API dvt_status dvt_trainer_set_learning_rate(dvt_trainer *trainer, double rate) {
    if (!trainer)
        return dvti_null("dvt_trainer_set_learning_rate", "trainer");
    if (!(rate >= 0 && rate <= DBL_MAX))
        return dvti_fail(DVT_ERR_RANGE,
                         "dvt_trainer_set_learning_rate: rate is %g; expected a finite number that "
                         "is not negative",
                         rate);
    trainer->optimizer.learning_rate = rate;
    return DVT_OK;
}

DVT_API int64_t dvt_trainer_steps(const dvt_trainer *trainer) {
    return trainer ? trainer->steps : 0;
}

/* ---- the norm of all gradients ---- */
static DVTI_NOINLINE double dvti_trainer_clip(dvt_trainer *t, dvt_array **list, double max_norm) {
    static const char *const function = "dvt_trainer_clip_global_norm";
    double norm = (double)NAN;
    int i, k, n = 0;
    /* After allreduce all copies are equal, so the norm is that of the first context. */
    for (i = 0; i < t->n; i++)
        if (t->trained[i].taken)
            list[n++] = dvti_trainer_at(t, i, 0)->gradient;
    if (!dvti_global_norm(function, list, n, max_norm, &norm))
        return (double)NAN;
    if (!(norm <= DBL_MAX) && dvti_trainer_mixed(t)) /* no warning: the step will be skipped */
        return norm;
    for (k = 1; k < t->ctxs.n; k++)
        for (i = 0; i < t->n; i++)
            if (t->trained[i].taken)
                list[n++] = dvti_trainer_at(t, i, k)->gradient;
    return dvti_clip_to_norm(function, list, n, norm, max_norm) ? norm : (double)NAN;
}

static double dvti_trainer_clip_in_mode(dvt_trainer *t, dvt_array **list, double max_norm) {
    const dvti_float_mode mode = dvti_float_mode_begin();
    double norm = dvti_trainer_clip(t, list, max_norm);
    dvti_float_mode_end(&mode);
    return norm;
}

DVT_API double dvt_trainer_clip_global_norm(dvt_trainer *trainer, double max_norm) {
    static const char *const function = "dvt_trainer_clip_global_norm";
    double norm = (double)NAN;
    dvt_record_guard record;
    dvt_scope_guard scope;
    dvt_array **list;
    size_t bytes;
    if (!trainer) {
        dvti_null(function, "trainer");
        return norm;
    }
    record = dvt_record_begin(DVT_OFF, DVT_UNCHANGED);
    scope = dvt_scope_begin();
    if (dvti_trainer_look(function, trainer) == DVT_OK) {
        bytes = (size_t)trainer->n * (size_t)trainer->ctxs.n * sizeof *list;
        list = (dvt_array **)dvti_alloc(bytes);
        if (!list)
            dvti_fail_memory(function, (int64_t)bytes);
        else
            norm = dvti_trainer_clip_in_mode(trainer, list, max_norm);
        dvti_free(list);
    }
    dvt_scope_end(&scope);
    dvt_record_end(&record);
    return norm;
}
