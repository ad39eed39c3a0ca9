/* The loss scale in a step: the check of the gradients, the skipped step, and the change of the
   scale. 6_nn/dvt_mixed.c applies the scale. Source: Micikevicius et al., 2017; the rule of the
   scale is that of PyTorch's GradScaler. */
#include "7_train/dvt_train_internal.h"

DVTI_FN dvti_mixed *dvti_trainer_mixed(const dvt_trainer *t) {
    int i;
    for (i = 0; i < t->n; i++) {
        const dvt_block *block = t->trained[i].param->block;
        if (block && block->mixed)
            return block->mixed;
    }
    return NULL;
}

/* Checks that all parameters with mixed precision are of one net: one scale follows one check. */
static dvt_status dvti_mixed_is_one(const char *function, const dvt_trainer *t,
                                    const dvti_mixed *mixed) {
    int i;
    for (i = 0; i < t->n; i++) {
        const dvt_block *block = t->trained[i].param->block;
        if (block && block->mixed && block->mixed != mixed)
            return dvti_fail(DVT_ERR_VALUE,
                             "%s: the trainer has parameters of two nets with mixed precision, for "
                             "example %s; expected one: make both parts of one block, and call "
                             "dvt_block_set_mixed_precision for that",
                             function, dvt_param_name(t->trained[i].param));
    }
    return DVT_OK;
}

/* Writes the norm of a gradient, a single number, to norms[at]. It is not finite if an element is
   not. */
static dvt_status dvti_norm_into(const char *function, dvt_array *gradient, dvt_array *norms,
                                 int at) {
    dvt_array *x = dvt_as_in_dtype(gradient, DVT_F32);
    dvti_launch launch;
    if (!x)
        return dvti_failure();
    dvti_launch_begin(&launch, function, dvti_kernel_reduce(), DVTI_OP_norm);
    launch.compute = DVTI_F32;
    launch.n_in = launch.n_out = 1;
    launch.in[0] = dvti_view_of(x);
    launch.out[0] = dvti_view_of(norms);
    launch.out[0].data = (char *)launch.out[0].data + at * (int64_t)sizeof(float);
    launch.out[0].ndim = 0;
    launch.i[0] = 0;
    launch.f[0] = (double)dvt_size(x);
    return dvti_run(x->storage->device, &launch);
}

/* After the sum all copies have the same bits, so those of the first context decide for every
   context and process: one launch for each parameter, and one read. */
DVTI_FN dvt_status dvti_trainer_check_overflow(const char *function, const dvt_trainer *t,
                                               bool *overflow) {
    const dvti_mixed *mixed = dvti_trainer_mixed(t);
    dvt_array *norms;
    float *values;
    dvt_status status = DVT_OK;
    int i, n = 0;
    *overflow = false;
    if (!mixed || (status = dvti_mixed_is_one(function, t, mixed)) != DVT_OK || !mixed->scaling)
        return status;
    norms = dvt_zeros(DVT_SHAPE(t->n), DVT_F32, t->ctxs.ctx[0]);
    values = (float *)dvti_alloc((size_t)t->n * sizeof *values);
    if (!norms)
        status = dvti_failure();
    else if (!values)
        status = dvti_fail_memory(function, t->n * (int64_t)sizeof *values);
    for (i = 0; i < t->n && status == DVT_OK; i++)
        if (t->trained[i].taken && dvt_size(dvti_trainer_at(t, i, 0)->gradient))
            status = dvti_norm_into(function, dvti_trainer_at(t, i, 0)->gradient, norms, n++);
    if (status == DVT_OK)
        status = dvti_read(function, norms, DVT_F32, values);
    for (i = 0; i < n && status == DVT_OK; i++)
        *overflow = *overflow || !(values[i] <= FLT_MAX);
    dvti_free(values);
    return status;
}

DVTI_FN void dvti_trainer_skip(const dvt_trainer *t) {
    int i, k;
    for (i = 0; i < t->n; i++)
        for (k = 0; t->trained[i].taken && k < t->ctxs.n; k++)
            dvti_trainer_at(t, i, k)->weight->grad_fresh = false;
}

DVTI_FN void dvti_trainer_next_scale(const char *function, const dvt_trainer *t, bool overflow) {
    dvti_mixed *mixed = dvti_trainer_mixed(t);
    if (!mixed || !mixed->scaling)
        return;
    mixed->skipped += overflow;
    mixed->good = overflow ? 0 : mixed->good + 1;
    if (mixed->fixed)
        return;
    if (overflow && mixed->scale == 1 - DVTI_SCALE_LIMIT)
        dvti_log(DVT_LOG_WARNING,
                 "%s: gradients are not finite at the smallest loss scale, 2^-%d, either; look for "
                 "NaN and infinities in data, weights and losses",
                 function, DVTI_SCALE_LIMIT);
    if (overflow && mixed->scale > -DVTI_SCALE_LIMIT)
        mixed->scale--;
    if (mixed->good >= mixed->interval) {
        mixed->good = 0;
        if (mixed->scale < DVTI_SCALE_LIMIT)
            mixed->scale++;
    }
}
