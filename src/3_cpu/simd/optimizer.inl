/* Optimiser steps in float, one pass over the weights and their state. The formulas stand in ref/ref_optimizer.c. */

DVTI_INLINE void V(store_upto)(float *x, int64_t n, V(f) a) {
    if (n >= 16)
        V(store)(x, a);
    else
        V(store_n)(x, n, a);
}

/* The weight and up to two state values, read and written again around the statement; g is rescaled and clipped, NaN stays. */
#define DVTI_STEP(name, states, ...)                                                               \
    static void V(step_##name)(const dvti_update *step) {                                            \
        const V(f) rescale = V(set)(step->rescale), clip = V(set)(step->clip);                     \
        const V(f) rate = V(set)(step->rate), decay = V(set)(step->decay);                         \
        const V(f) c0 = V(set)(step->c[0]), c1 = V(set)(step->c[1]), c2 = V(set)(step->c[2]);      \
        const V(f) c3 = V(set)(step->c[3]), c4 = V(set)(step->c[4]);                               \
        const bool flag = step->flag;                                                              \
        int64_t at, n;                                                                             \
        (void)c0, (void)c1, (void)c2, (void)c3, (void)c4, (void)flag;                              \
        for (at = 0; at < step->n; at += 16) {                                                     \
            V(f) g, w, s0 = rate, s1 = rate;                                                       \
            n = step->n - at;                                                                      \
            g = V(mul)(V(load_upto)(step->g + at, n), rescale);                                    \
            g = V(max)(V(neg)(clip), V(min)(clip, g));                                             \
            w = V(load_upto)(step->w + at, n);                                                     \
            if (states > 0)                                                                        \
                s0 = V(load_upto)(step->s[0] + at, n);                                             \
            if (states > 1)                                                                        \
                s1 = V(load_upto)(step->s[1] + at, n);                                             \
            __VA_ARGS__                                                                            \
            V(store_upto)(step->w + at, n, w);                                                     \
            if (states > 0)                                                                        \
                V(store_upto)(step->s[0] + at, n, s0);                                             \
            if (states > 1)                                                                        \
                V(store_upto)(step->s[1] + at, n, s1);                                             \
        }                                                                                          \
    }

DVTI_STEP(sgd, 0, { w = V(fnma)(rate, V(fma)(decay, w, g), w); })

/* c0 momentum; flag: Nesterov */
DVTI_STEP(momentum, 1, {
    V(f) change = V(mul)(V(neg)(rate), V(fma)(decay, w, g));
    s0 = V(fma)(c0, s0, change);
    w = V(add)(w, flag ? V(fma)(c0, s0, change) : s0);
})

/* c0 beta1, c1 beta2, c2 and c3 one less them, c4 epsilon; rate is the corrected one. flag: AdamW, whose decay has the plain
   rate as a factor already. */
DVTI_STEP(adam, 2, {
    V(f) h = flag ? g : V(fma)(decay, w, g), change;
    s0 = V(fma)(c0, s0, V(mul)(c2, h));
    s1 = V(fma)(c1, s1, V(mul)(V(mul)(c3, h), h));
    change = V(div)(V(mul)(rate, s0), V(add)(V(sqrt)(s1), c4));
    w = V(sub)(w, flag ? V(fma)(decay, w, change) : change);
})

/* c0 rho, c2 one less it, c4 epsilon */
DVTI_STEP(rmsprop, 1, {
    V(f) h = V(fma)(decay, w, g);
    s0 = V(fma)(c0, s0, V(mul)(V(mul)(c2, h), h));
    w = V(sub)(w, V(div)(V(mul)(rate, h), V(sqrt)(V(add)(s0, c4))));
})

DVTI_STEP(adagrad, 1, {
    s0 = V(fma)(g, g, s0);
    w = V(fnma)(rate, V(fma)(decay, w, V(div)(g, V(sqrt)(V(add)(s0, c4)))), w);
})

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
