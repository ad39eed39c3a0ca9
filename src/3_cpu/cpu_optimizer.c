/* Optimizer steps. The ISA target's kernels compute arrays that are all float32. Others are
   computed element by element in float64 and rounded once per array. Both include the same formulas
   (2_core/math/optimizer_steps.inl), so results are bitwise equal. */
#include "3_cpu/simd/dvt_simd.h"

/* ---- one element of any dtype ---- */
#if defined(__GNUC__) && !defined(__clang__)
/* Without this, GCC fuses a multiplication and an addition where the CPU can. */
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#endif
#define DVTI_TARGET element
#include "3_cpu/simd/primitives_begin.inl"
typedef double V(d);
DVTI_REG1(d, dset, d, a)
DVTI_REG2(d, dadd, d, d, a + b)
DVTI_REG2(d, dsub, d, d, a - b)
DVTI_REG2(d, dmul, d, d, a *b)
DVTI_REG2(d, ddiv, d, d, a / b)
DVTI_REG2(d, dmin, d, d, a < b ? a : b)
DVTI_REG2(d, dmax, d, d, a > b ? a : b)
DVTI_REG1(d, dsqrt, d, sqrt(a))
#include "2_core/math/optimizer_steps.inl"

static void dvti_update_element(dvti_op op, const double *f, bool flag, int states, V(step) * e) {
    switch ((int)op) {
#define DVTI_ROW(name, kind, make, epsilon, few, many, states_, flag_, p0, p1, p2, p3, doc)        \
    case DVTI_OP_##name:                                                                           \
        V(update_##name)(f, flag, states, e);                                                      \
        break;
        DVTI_OPTIMIZER_TABLE(DVTI_ROW)
#undef DVTI_ROW
    default:
        break;
    }
}

static void dvti_update_elements(void *user, int64_t begin, int64_t end) {
    const dvti_launch *l = (const dvti_launch *)user;
    const int states = l->n_out - 1;
    V(step) e;
    double f[8];
    int64_t at;
    int k;
    memcpy(f, l->f, sizeof f);
    f[3] = f[3] > 0 ? f[3] : (double)INFINITY;
    for (at = begin; at < end; at++) {
        e.g = V(step_gradient)(f, dvti_load_f64(l->in[0].data, l->in[0].dtype, at));
        e.w = dvti_load_f64(l->out[0].data, l->out[0].dtype, at);
        for (k = 0; k < states; k++)
            e.s[k] = dvti_load_f64(l->out[1 + k].data, l->out[1 + k].dtype, at);
        dvti_update_element(l->op, f, l->i[0] != 0, states, &e);
        dvti_store_f64(l->out[0].data, l->out[0].dtype, at, e.w);
        for (k = 0; k < states; k++)
            dvti_store_f64(l->out[1 + k].data, l->out[1 + k].dtype, at, e.s[k]);
    }
}

#include "3_cpu/simd/primitives_end.inl"
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

/* ---- vectors of float32 ---- */
typedef struct dvti_update_plan {
    dvti_update step; /* pointers to the first elements */
    dvti_update_fn run;
    int states;
} dvti_update_plan;

/* Steps the last elements, fewer than 16, in buffers. */
static void dvti_update_tail(const dvti_update_plan *plan, const dvti_update *from, int64_t n) {
    const size_t bytes = (size_t)n * sizeof(float);
    dvti_update step = *from;
    float buffer[5][16] = {{0}};
    int k;
    memcpy(buffer[0], from->g, bytes);
    memcpy(buffer[1], from->w, bytes);
    for (k = 0; k < plan->states; k++) {
        memcpy(buffer[2 + k], from->s[k], bytes);
        step.s[k] = buffer[2 + k];
    }
    step.g = buffer[0];
    step.w = buffer[1];
    step.n = 16;
    plan->run(&step);
    memcpy(from->w, buffer[1], bytes);
    for (k = 0; k < plan->states; k++)
        memcpy(from->s[k], buffer[2 + k], bytes);
}

static void dvti_update_range(void *user, int64_t begin, int64_t end) {
    const dvti_update_plan *plan = (const dvti_update_plan *)user;
    const int64_t whole = (end - begin) / 16 * 16;
    dvti_update step = plan->step;
    int k;
    step.g += begin;
    step.w += begin;
    for (k = 0; k < plan->states; k++)
        step.s[k] += begin;
    step.n = whole;
    if (whole)
        plan->run(&step);
    if (begin + whole == end)
        return;
    step.g += whole;
    step.w += whole;
    for (k = 0; k < plan->states; k++)
        step.s[k] += whole;
    dvti_update_tail(plan, &step, end - begin - whole);
}

static bool dvti_update_is_f32(const dvti_launch *launch) {
    int k;
    for (k = 0; k < launch->n_out; k++)
        if (launch->out[k].dtype != DVT_F32)
            return false;
    return launch->in[0].dtype == DVT_F32;
}

DVTI_FN void dvti_cpu_optimizer(const dvti_launch *launch) {
    const dvti_simd *simd = dvti_simd_now();
    const int64_t n = dvti_view_size(&launch->out[0]);
    dvti_update_plan plan;
    int k;
    plan.states = launch->n_out - 1;
    plan.run = simd && dvti_update_is_f32(launch)
                   ? dvti_simd_optimizer_of(simd)->step(launch->op, plan.states)
                   : NULL;
    if (!plan.run) {
        dvti_parallel_for(n, 4, dvti_update_elements, (void *)(uintptr_t)launch);
        return;
    }
    memcpy(plan.step.f, launch->f, sizeof plan.step.f);
    if (!(plan.step.f[3] > 0))
        plan.step.f[3] = (double)INFINITY;
    plan.step.flag = launch->i[0] != 0;
    plan.step.g = (const float *)launch->in[0].data;
    plan.step.w = (float *)launch->out[0].data;
    for (k = 0; k < plan.states; k++)
        plan.step.s[k] = (float *)launch->out[1 + k].data;
    dvti_parallel_for(n, 0.08 + 0.15 * plan.states, dvti_update_range, &plan);
}
