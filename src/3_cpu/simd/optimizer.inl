/* Optimiser steps, one pass over the weights and their state. The formulas stand in ref/ref_optimizer.c; as there, and as on a card, each is
   computed in double in that order, and rounded once per array: a step has the same bits on every device. */

/* Eight elements: the gradient, the weight, up to two values of state. */
typedef struct V(step_half) {
    V(d) g, w, s[2];
} V(step_half);

DVTI_INLINE V(d) V(step_gradient)(const dvti_update *step, V(d) g) {
    const V(d) clip = V(dset)(step->clip);
    g = V(dmul)(V(dset)(step->rescale), g);
    return V(dmax)(V(dneg)(clip), V(dmin)(clip, g)); /* NaN stays */
}

DVTI_INLINE V(d) V(step_decayed)(const dvti_update *step, const V(step_half) * e) {
    return V(dadd)(e->g, V(dmul)(V(dset)(step->decay), e->w));
}

/* c[0] momentum; flag: Nesterov */
DVTI_INLINE void V(half_sgd)(const dvti_update *step, V(step_half) * e) {
    const V(d) momentum = V(dset)(step->c[0]);
    V(d) change = V(dmul)(V(dset)(-step->rate), V(step_decayed)(step, e));
    if (!step->s[0]) {
        e->w = V(dadd)(e->w, change);
        return;
    }
    e->s[0] = V(dadd)(V(dmul)(momentum, e->s[0]), change);
    change = step->flag ? V(dadd)(V(dmul)(momentum, e->s[0]), change) : e->s[0];
    e->w = V(dadd)(e->w, change);
}

/* c[0] beta1, c[1] beta2, c[2] and c[3] one less them, c[4] epsilon; rate is the corrected one. flag: AdamW, whose decay has the
   plain rate as a factor already. */
DVTI_INLINE void V(half_adam)(const dvti_update *step, V(step_half) * e) {
    V(d) h = step->flag ? e->g : V(step_decayed)(step, e), change;
    e->s[0] = V(dadd)(V(dmul)(V(dset)(step->c[0]), e->s[0]), V(dmul)(V(dset)(step->c[2]), h));
    e->s[1] = V(dadd)(V(dmul)(V(dset)(step->c[1]), e->s[1]),
                      V(dmul)(V(dmul)(V(dset)(step->c[3]), h), h));
    change = V(ddiv)(V(dmul)(V(dset)(step->rate), e->s[0]),
                     V(dadd)(V(dsqrt)(e->s[1]), V(dset)(step->c[4])));
    if (step->flag)
        change = V(dadd)(change, V(dmul)(V(dset)(step->decay), e->w));
    e->w = V(dsub)(e->w, change);
}

/* c[0] rho, c[2] one less it, c[4] epsilon */
DVTI_INLINE void V(half_rmsprop)(const dvti_update *step, V(step_half) * e) {
    V(d) h = V(step_decayed)(step, e);
    e->s[0] = V(dadd)(V(dmul)(V(dset)(step->c[0]), e->s[0]),
                      V(dmul)(V(dmul)(V(dset)(step->c[2]), h), h));
    e->w = V(dsub)(e->w, V(ddiv)(V(dmul)(V(dset)(step->rate), h),
                                 V(dsqrt)(V(dadd)(e->s[0], V(dset)(step->c[4])))));
}

DVTI_INLINE void V(half_adagrad)(const dvti_update *step, V(step_half) * e) {
    V(d) change;
    e->s[0] = V(dadd)(e->s[0], V(dmul)(e->g, e->g));
    change = V(ddiv)(e->g, V(dsqrt)(V(dadd)(e->s[0], V(dset)(step->c[4]))));
    change = V(dadd)(change, V(dmul)(V(dset)(step->decay), e->w));
    e->w = V(dsub)(e->w, V(dmul)(V(dset)(step->rate), change));
}

/* Of a copy, which no store can change: so its constants stay in registers. */
#define DVTI_STEP(name, formula, states)                                                           \
    static void V(step_##name)(const dvti_update *given) {                                         \
        dvti_update step = *given;                                                                 \
        int64_t at;                                                                                \
        int k;                                                                                     \
        for (k = states; k < 2; k++)                                                               \
            step.s[k] = NULL;                                                                      \
        for (at = 0; at < step.n; at += 16) {                                                      \
            const int64_t n = step.n - at;                                                         \
            V(f) g = V(load_upto)(step.g + at, n), w = V(load_upto)(step.w + at, n);               \
            V(step_half) low, high;                                                                \
            low.g = V(step_gradient)(&step, V(widen_low)(g));                                      \
            high.g = V(step_gradient)(&step, V(widen_high)(g));                                    \
            low.w = V(widen_low)(w);                                                               \
            high.w = V(widen_high)(w);                                                             \
            DVTI_UNROLL                                                                            \
            for (k = 0; k < states; k++) {                                                         \
                V(f) s = V(load_upto)(step.s[k] + at, n);                                          \
                low.s[k] = V(widen_low)(s);                                                        \
                high.s[k] = V(widen_high)(s);                                                      \
            }                                                                                      \
            V(half_##formula)(&step, &low);                                                        \
            V(half_##formula)(&step, &high);                                                       \
            V(store_upto)(step.w + at, n, V(narrow)(low.w, high.w));                               \
            DVTI_UNROLL                                                                            \
            for (k = 0; k < states; k++)                                                           \
                V(store_upto)(step.s[k] + at, n, V(narrow)(low.s[k], high.s[k]));                  \
        }                                                                                          \
    }
DVTI_STEP(sgd, sgd, 0)
DVTI_STEP(momentum, sgd, 1)
DVTI_STEP(adam, adam, 2)
DVTI_STEP(rmsprop, rmsprop, 1)
DVTI_STEP(adagrad, adagrad, 1)

static dvti_update_fn V(step)(dvti_op op, int states) {
    switch ((int)op) {
    case DVTI_OP_sgd:
        return states ? V(step_momentum) : V(step_sgd);
    case DVTI_OP_adam:
    case DVTI_OP_adamw:
        return V(step_adam);
    case DVTI_OP_rmsprop:
        return states == 1 ? V(step_rmsprop) : NULL;
    case DVTI_OP_adagrad:
        return V(step_adagrad);
    default:
        return NULL;
    }
}

#undef DVTI_STEP
