/* The step of the optimizer, after all checks and allocations: the same numbers for every copy of a
   parameter. Where the backend can, one launch updates all parameters of a context that have the
   same dtypes; elsewhere there is one launch each. Both give the same bits. */
#include "7_train/dvt_train_internal.h"

static dvti_step_numbers dvti_trainer_numbers(const dvt_trainer *t, int i, double rate,
                                              double rescale) {
    const dvti_trained *trained = &t->trained[i];
    dvti_step_numbers step;
    step.rate = rate * trained->param->lr_mult;
    step.decay = t->optimizer.weight_decay * trained->param->wd_mult;
    step.rescale = rescale;
    step.count = trained->count + 1;
    return step;
}

/* Returns the launch that updates copy k of parameter i. */
static dvti_launch dvti_trainer_launch_of(const char *function, const dvt_trainer *t, int i, int k,
                                          const dvti_step_numbers *step) {
    const dvti_replica *at = dvti_trainer_at(t, i, k);
    dvti_launch launch = dvti_optimizer_launch(function, &t->optimizer, step);
    int s;
    launch.n_in = 1;
    launch.n_out = 1 + t->states;
    launch.compute = dvti_class_of(at->weight->dtype);
    launch.in[0] = dvti_view_of(at->gradient);
    launch.out[0] = dvti_view_of(at->weight);
    for (s = 0; s < t->states; s++)
        launch.out[1 + s] = dvti_view_of(at->state[s]);
    return launch;
}

/* ---- one launch for many parameters ---- */
static bool dvti_trainer_alike(const dvt_trainer *t, int i, int j, int k) {
    const dvti_replica *a = dvti_trainer_at(t, i, k), *b = dvti_trainer_at(t, j, k);
    int s;
    for (s = 0; s < t->states; s++)
        if (a->state[s]->dtype != b->state[s]->dtype)
            return false;
    return a->weight->dtype == b->weight->dtype && a->gradient->dtype == b->gradient->dtype;
}

static dvti_update_of dvti_trainer_update_of(const dvti_launch *launch, int64_t n) {
    dvti_update_of u;
    int s;
    memset(&u, 0, sizeof u);
    u.w = launch->out[0].data;
    u.g = launch->in[0].data;
    for (s = 1; s < launch->n_out; s++)
        u.state[s - 1] = launch->out[s].data;
    u.n = n;
    memcpy(u.f, launch->f, sizeof u.f);
    return u;
}

/* Updates parameter `first` and all later ones of the same dtypes on context k. */
static dvt_status dvti_trainer_apply_alike(const char *function, dvt_trainer *t, int first, int k,
                                           double rate, double rescale) {
    dvti_step_numbers step = dvti_trainer_numbers(t, first, rate, rescale);
    dvti_launch launch = dvti_trainer_launch_of(function, t, first, k, &step), other;
    int64_t n = 0;
    int i;
    for (i = first; i < t->n; i++) {
        const int64_t size = dvt_size(dvti_trainer_at(t, i, k)->weight);
        if (!t->trained[i].taken || t->trained[i].applied || !size ||
            !dvti_trainer_alike(t, first, i, k))
            continue;
        step = dvti_trainer_numbers(t, i, rate, rescale);
        other = dvti_trainer_launch_of(function, t, i, k, &step);
        t->update[n++] = dvti_trainer_update_of(&other, size);
        t->trained[i].applied = true;
    }
    launch.updates = t->update;
    launch.n_updates = n;
    return dvti_run(dvti_trainer_at(t, first, k)->weight->storage->device, &launch);
}

/* ---- all parameters ---- */
/* Launches the steps of the table's optimizers on context k. */
static dvt_status dvti_trainer_apply_on(const char *function, dvt_trainer *t, int k, double rate,
                                        double rescale) {
    dvt_status status = DVT_OK;
    int i;
    for (i = 0; i < t->n; i++)
        t->trained[i].applied = false;
    for (i = 0; i < t->n && status == DVT_OK; i++) {
        const dvti_replica *at = dvti_trainer_at(t, i, k);
        dvti_step_numbers step;
        dvti_launch launch;
        if (!t->trained[i].taken || t->trained[i].applied || !dvt_size(at->weight))
            continue;
        step = dvti_trainer_numbers(t, i, rate, rescale);
        launch = dvti_trainer_launch_of(function, t, i, k, &step);
        status = dvti_supports(at->weight->storage->device, launch.kernel, launch.op,
                               at->weight->dtype, DVTI_CAN_MANY)
                     ? dvti_trainer_apply_alike(function, t, i, k, rate, rescale)
                     : dvti_run(at->weight->storage->device, &launch);
    }
    return status;
}

/* Records that parameter i has taken its step, or that a failed step may have written it. */
static void dvti_trainer_stepped(dvt_trainer *t, int i, bool whole) {
    int k;
    for (k = 0; k < t->ctxs.n; k++) {
        dvti_replica *at = dvti_trainer_at(t, i, k);
        at->weight->grad_fresh = at->weight->grad_fresh && !whole;
        dvti_written(at->weight);
    }
    t->trained[i].count += whole;
}

/* Runs the program's step on one copy after the other. A failing parameter and those behind it keep
   their count. */
static dvt_status dvti_trainer_apply_custom(const char *function, dvt_trainer *t, double rate,
                                            double rescale) {
    dvt_status status = DVT_OK;
    int i, k;
    for (i = 0; i < t->n && status == DVT_OK; i++) {
        const dvti_step_numbers step = dvti_trainer_numbers(t, i, rate, rescale);
        for (k = 0; t->trained[i].taken && k < t->ctxs.n && status == DVT_OK; k++)
            status = dvti_optimizer_custom_step(function, &t->optimizer, &step,
                                                dvti_trainer_at(t, i, k));
        if (t->trained[i].taken)
            dvti_trainer_stepped(t, i, status == DVT_OK);
    }
    return status;
}

DVTI_FN dvt_status dvti_trainer_apply_all(const char *function, dvt_trainer *t,
                                          int64_t batch_size) {
    const double rate = dvt_trainer_learning_rate(t), rescale = 1.0 / (double)batch_size;
    dvt_status status = DVT_OK;
    int i, k;
    if (!(rate >= 0 && rate <= DBL_MAX))
        return dvti_fail(
            DVT_ERR_RANGE,
            "%s: the schedule gives the learning rate %g at step %lld; expected a finite "
            "number that is not negative",
            function, rate, (long long)t->steps);
    if (t->optimizer.kind == DVT_OPTIMIZER_CUSTOM) {
        status = dvti_trainer_apply_custom(function, t, rate, rescale);
    } else {
        for (k = 0; k < t->ctxs.n && status == DVT_OK; k++)
            status = dvti_trainer_apply_on(function, t, k, rate, rescale);
        for (i = 0; i < t->n; i++)
            if (t->trained[i].taken)
                dvti_trainer_stepped(t, i, status == DVT_OK);
    }
    t->steps += status == DVT_OK;
    return status;
}
