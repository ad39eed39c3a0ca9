/* The formulas of the built-in optimizers: one step of one element, or of a vector of elements, in
   float64. Included for the vectors of every ISA target and for single elements of every dtype on
   the CPU, and embedded as CUDA source. Every operation rounds separately, so a step has the same
   bits everywhere.

   g is rescale * gradient, clipped; w the weight, d the weight decay, a the learning rate:

     sgd       w <- w - a (g + d w); with momentum u: m <- u m - a (g + d w), w <- w + m;
               Nesterov: w <- w + u m - a (g + d w), with the new m.
               Source: MXNet; Sutskever et al., 2013
     adam      h = g + d w; m <- b1 m + (1 - b1) h, v <- b2 v + (1 - b2) h h,
               w <- w - a' m / (sqrt(v) + e) with a' = a sqrt(1 - b2^t) / (1 - b1^t).
               Source: Kingma and Ba, 2014
     adamw     the same with h = g, and w <- w - a' m / (sqrt(v) + e) - a d w.
               Source: Loshchilov and Hutter, 2017
     rmsprop   h = g + d w; n <- r n + (1 - r) h h, w <- w - a h / sqrt(n + e).
               Source: Tieleman and Hinton, 2012
               centered: s <- r s + (1 - r) h, m <- u m - a h / sqrt(n - s s + e), w <- w + m.
               Source: Graves, 2013
     adagrad   n <- n + g g, w <- w - a (g / sqrt(n + e) + d w). Source: Duchi et al., 2011 */

/* The operands of one step. */
typedef struct V(step) {
    V(d) g, w, s[3];
} V(step);

/* f of a launch: rate, decay, rescale, clip (may be infinite), then the row's p0 .. p3. */
#define DVTI_RATE V(dset)(f[0])
#define DVTI_DECAY V(dset)(f[1])
#define DVTI_P(k) V(dset)(f[4 + k])
/* Computes p s + (1 - p) x. */
#define DVTI_AVERAGE(p, s, x) V(dadd)(V(dmul)(V(dset)(p), s), V(dmul)(V(dset)(1 - (p)), x))

DVTI_INLINE V(d) V(step_gradient)(const double *f, V(d) gradient) {
    const V(d) clip = V(dset)(f[3]), g = V(dmul)(V(dset)(f[2]), gradient);
    return V(dmax)(V(dset)(-f[3]), V(dmin)(clip, g)); /* NaN stays */
}

DVTI_INLINE V(d) V(step_decayed)(const double *f, const V(step) * e) {
    return V(dadd)(e->g, V(dmul)(DVTI_DECAY, e->w));
}

/* ---- one function for each row of the table ---- */
/* p0 momentum; flag: Nesterov */
DVTI_INLINE void V(update_sgd)(const double *f, bool flag, int states, V(step) * e) {
    V(d) change = V(dmul)(V(dset)(-f[0]), V(step_decayed)(f, e));
    if (states) {
        e->s[0] = V(dadd)(V(dmul)(DVTI_P(0), e->s[0]), change);
        change = flag ? V(dadd)(V(dmul)(DVTI_P(0), e->s[0]), change) : e->s[0];
    }
    e->w = V(dadd)(e->w, change);
}

/* p0 beta1, p1 beta2, p2 epsilon, p3 the bias-corrected rate */
DVTI_INLINE V(d) V(step_adam)(const double *f, V(d) h, V(step) * e) {
    e->s[0] = DVTI_AVERAGE(f[4], e->s[0], h);
    e->s[1] = V(dadd)(V(dmul)(DVTI_P(1), e->s[1]), V(dmul)(V(dmul)(V(dset)(1 - f[5]), h), h));
    return V(ddiv)(V(dmul)(DVTI_P(3), e->s[0]), V(dadd)(V(dsqrt)(e->s[1]), DVTI_P(2)));
}

DVTI_INLINE void V(update_adam)(const double *f, bool flag, int states, V(step) * e) {
    (void)flag;
    (void)states;
    e->w = V(dsub)(e->w, V(step_adam)(f, V(step_decayed)(f, e), e));
}

DVTI_INLINE void V(update_adamw)(const double *f, bool flag, int states, V(step) * e) {
    const V(d) change = V(step_adam)(f, e->g, e);
    (void)flag;
    (void)states;
    e->w = V(dsub)(e->w, V(dadd)(change, V(dmul)(V(dset)(f[0] * f[1]), e->w)));
}

/* p0 rho, p1 momentum, p2 epsilon; flag: centered */
DVTI_INLINE void V(update_rmsprop)(const double *f, bool flag, int states, V(step) * e) {
    const V(d) h = V(step_decayed)(f, e);
    V(d) variance;
    (void)flag;
    e->s[0] = V(dadd)(V(dmul)(DVTI_P(0), e->s[0]), V(dmul)(V(dmul)(V(dset)(1 - f[4]), h), h));
    if (states == 1) {
        e->w = V(dsub)(e->w, V(ddiv)(V(dmul)(DVTI_RATE, h), V(dsqrt)(V(dadd)(e->s[0], DVTI_P(2)))));
        return;
    }
    e->s[1] = DVTI_AVERAGE(f[4], e->s[1], h);
    /* Rounding may leave the variance slightly below 0. */
    variance = V(dmax)(V(dsub)(e->s[0], V(dmul)(e->s[1], e->s[1])), V(dset)(0));
    e->s[2] = V(dsub)(V(dmul)(DVTI_P(1), e->s[2]),
                      V(ddiv)(V(dmul)(DVTI_RATE, h), V(dsqrt)(V(dadd)(variance, DVTI_P(2)))));
    e->w = V(dadd)(e->w, e->s[2]);
}

/* p2 epsilon */
DVTI_INLINE void V(update_adagrad)(const double *f, bool flag, int states, V(step) * e) {
    V(d) change;
    (void)flag;
    (void)states;
    e->s[0] = V(dadd)(e->s[0], V(dmul)(e->g, e->g));
    change = V(ddiv)(e->g, V(dsqrt)(V(dadd)(e->s[0], DVTI_P(2))));
    e->w = V(dsub)(e->w, V(dmul)(DVTI_RATE, V(dadd)(change, V(dmul)(DVTI_DECAY, e->w))));
}

#undef DVTI_RATE
#undef DVTI_DECAY
#undef DVTI_P
#undef DVTI_AVERAGE
