/* Optimiser steps by a tier's loops, where weights, gradients and state are float32. Centered RMSProp, whose variance is a small difference,
   stays with the reference. */
#include "3_cpu/simd/dvt_simd.h"

typedef struct dvti_update_plan {
    dvti_update step; /* of all elements */
    dvti_update_fn run;
    int states;
} dvti_update_plan;

static void dvti_update_range(void *user, int64_t begin, int64_t end) {
    const dvti_update_plan *plan = (const dvti_update_plan *)user;
    dvti_update step = plan->step;
    int k;
    step.g += begin;
    step.w += begin;
    for (k = 0; k < plan->states; k++)
        step.s[k] += begin;
    step.n = end - begin;
    plan->run(&step);
}

static void dvti_update_constants(const dvti_launch *l, dvti_update *step) {
    bool adam = l->op == DVTI_OP_adam || l->op == DVTI_OP_adamw;
    step->rate = l->f[adam ? 7 : 0];
    step->decay = (l->op == DVTI_OP_adamw ? l->f[0] * l->f[1] : l->f[1]);
    step->rescale = l->f[2];
    step->clip = l->f[3] > 0 ? l->f[3] : INFINITY;
    step->flag = l->op == DVTI_OP_adamw || (l->op == DVTI_OP_sgd && l->i[0]);
    step->c[0] = l->f[4];
    step->c[1] = l->f[5];
    step->c[2] = (1 - l->f[4]);
    step->c[3] = (1 - l->f[5]);
    step->c[4] = l->f[6];
}

DVTI_FN bool dvti_fast_optimizer(const dvti_launch *launch, const dvti_simd *simd) {
    dvti_update_plan plan;
    int k;
    plan.states = launch->n_out - 1;
    plan.run = simd->step(launch->op, plan.states);
    if (!plan.run || launch->in[0].dtype != DVT_F32)
        return false;
    for (k = 0; k < launch->n_out; k++)
        if (launch->out[k].dtype != DVT_F32)
            return false;
    dvti_update_constants(launch, &plan.step);
    plan.step.g = (const float *)launch->in[0].data;
    plan.step.w = (float *)launch->out[0].data;
    for (k = 0; k < 2; k++)
        plan.step.s[k] = k < plan.states ? (float *)launch->out[1 + k].data : NULL;
    dvti_parallel_for(dvti_view_size(&launch->out[0]), 0.08 + 0.15 * plan.states, dvti_update_range,
                      &plan);
    return true;
}
