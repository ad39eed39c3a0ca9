/* Optimizer steps in float32: one pass over the weights and their state. Computes in float64 and
   rounds each array once. 2_core/math/optimizer_steps.inl has the formulas. */
#include "2_core/math/optimizer_steps.inl"

/* Copies the parameters, so that no store can alias them and constants stay in registers. */
#define DVTI_STEP_KERNEL(name, states)                                                             \
    static void V(name##_##states)(const dvti_update *given) {                                     \
        const dvti_update step = *given;                                                           \
        int64_t at;                                                                                \
        int k;                                                                                     \
        for (at = 0; at < step.n; at += 16) {                                                      \
            const V(f) g = V(load)(step.g + at), w = V(load)(step.w + at);                         \
            V(step) low, high;                                                                     \
            low.g = V(step_gradient)(step.f, V(widen_low)(g));                                     \
            high.g = V(step_gradient)(step.f, V(widen_high)(g));                                   \
            low.w = V(widen_low)(w);                                                               \
            high.w = V(widen_high)(w);                                                             \
            DVTI_UNROLL                                                                            \
            for (k = 0; k < states; k++) {                                                         \
                const V(f) s = V(load)(step.s[k] + at);                                            \
                low.s[k] = V(widen_low)(s);                                                        \
                high.s[k] = V(widen_high)(s);                                                      \
            }                                                                                      \
            V(update_##name)(step.f, step.flag, states, &low);                                     \
            V(update_##name)(step.f, step.flag, states, &high);                                    \
            V(store)(step.w + at, V(narrow)(low.w, high.w));                                       \
            DVTI_UNROLL                                                                            \
            for (k = 0; k < states; k++)                                                           \
                V(store)(step.s[k] + at, V(narrow)(low.s[k], high.s[k]));                          \
        }                                                                                          \
    }
/* A row whose two numbers of states are equal has one kernel. */
#define DVTI_STEP_KERNELS00(name) DVTI_STEP_KERNEL(name, 0)
#define DVTI_STEP_KERNELS11(name) DVTI_STEP_KERNEL(name, 1)
#define DVTI_STEP_KERNELS22(name) DVTI_STEP_KERNEL(name, 2)
#define DVTI_STEP_KERNELS01(name) DVTI_STEP_KERNEL(name, 0) DVTI_STEP_KERNEL(name, 1)
#define DVTI_STEP_KERNELS12(name) DVTI_STEP_KERNEL(name, 1) DVTI_STEP_KERNEL(name, 2)
#define DVTI_ROW(name, kind, make, epsilon, few, many, states, flag, p0, p1, p2, p3, doc)          \
    DVTI_STEP_KERNELS##few##many(name)
DVTI_OPTIMIZER_TABLE(DVTI_ROW)
#undef DVTI_ROW
#undef DVTI_STEP_KERNEL
#undef DVTI_STEP_KERNELS00
#undef DVTI_STEP_KERNELS11
#undef DVTI_STEP_KERNELS22
#undef DVTI_STEP_KERNELS01
#undef DVTI_STEP_KERNELS12

static dvti_update_fn V(step_kernel)(dvti_op op, int states) {
    switch ((int)op) {
#define DVTI_ROW(name, kind, make, epsilon, few, many, states_, flag, p0, p1, p2, p3, doc)         \
    case DVTI_OP_##name:                                                                           \
        return states == few ? V(name##_##few) : states == many ? V(name##_##many) : NULL;
        DVTI_OPTIMIZER_TABLE(DVTI_ROW)
#undef DVTI_ROW
    default:
        return NULL;
    }
}
