/* Logarithms; see basics.inl. */

/* Returns whether some lane is not a positive normal number. */
DVTI_INLINE bool V(log_rare)(V(f) x) {
    V(i) bits = V(iadd)(V(as_i)(x), V(iset)(0x7f800000));
    return V(mbits)(V(igt)(V(iset)(-0x1000000), bits)) != 0xffff;
}

/* Splits x = 2^n m, sqrt(1/2) <= m < sqrt(2). */
DVTI_INLINE V(f) V(log_split)(V(f) x, V(i) * n) {
    V(i) bits = V(as_i)(x);
    *n = V(isar)(V(isub)(bits, V(iset)(0x3f3504f3)), 23);
    return V(as_f)(V(isub)(bits, V(ishl)(*n, 23)));
}

/* The same with n as a float, also for denormal numbers if `rare`. */
DVTI_INLINE V(f) V(log_reduce)(V(f) x, bool rare, V(f) * e) {
    V(f) less = V(zero)(), m;
    V(i) n;
    if (rare) {
        V(m) tiny = V(lt)(x, V(set)(FLT_MIN));
        x = V(select)(tiny, V(mul)(x, V(set)(8388608)), x);
        less = V(select)(tiny, V(set)(23), less);
    }
    m = V(log_split)(x, &n);
    *e = V(sub)(V(to_f)(n), less);
    return m;
}

/* Returns the result for x that is not positive and finite, else `result`. */
DVTI_INLINE V(f) V(log_special)(V(f) x, V(f) result) {
    result = V(select)(V(lt)(x, V(set)(INFINITY)), result, x);
    result = V(select)(V(lt)(x, V(zero)()), V(set)(NAN), result);
    return V(select)(V(eq)(x, V(zero)()), V(set)(-INFINITY), result);
}

/* Returns log(1 + f) - f + f^2 / 2, sqrt(1/2) <= 1 + f <= sqrt(2). */
DVTI_INLINE V(f) V(log_poly)(V(f) f, V(f) f2) {
    const V(f) f4 = V(mul)(f2, f2);
    V(f) p = V(fma)(V(set)(0.0674681216f), f2, DVTI_P1(f, 0.118881412f, -0.11675743f)), q;
    p = V(fma)(p, f2, DVTI_P1(f, 0.142195523f, -0.124055736f));
    q = V(fma)(DVTI_P1(f, 0.200021192f, -0.166679963f), f2,
               DVTI_P1(f, 0.333333135f, -0.250000089f));
    p = V(fma)(p, f4, q);
    return V(mul)(V(mul)(p, f), f2);
}

/* Returns e ln 2 + log(1 + f), adding small terms first. */
DVTI_INLINE V(f) V(log_of)(V(f) e, V(f) f) {
    V(f) f2 = V(mul)(f, f);
    V(f) low = V(fma)(e, V(set)(DVTI_LN2_LOW), V(log_poly)(f, f2));
    low = V(fnma)(V(set)(0.5f), f2, low);
    return V(fma)(e, V(set)(DVTI_LN2_HIGH), V(add)(f, low));
}

DVTI_INLINE V(f) V(log)(V(f) x) {
    bool rare = V(log_rare)(x);
    V(f) e, f = V(sub)(V(log_reduce)(x, rare, &e), V(set)(1)), result = V(log_of)(e, f);
    return rare ? V(log_special)(x, result) : result;
}

/* Returns the logarithm to another base: log(1 + f) (high + low) + e (e_high + e_low). The product
   of e and e_high is exact. */
DVTI_INLINE V(f) V(log_base)(V(f) x, float high, float low, float e_high, float e_low) {
    bool rare = V(log_rare)(x);
    V(f) e, f = V(sub)(V(log_reduce)(x, rare, &e), V(set)(1)), f2 = V(mul)(f, f), small, result;
    small = V(fnma)(V(set)(0.5f), f2, V(log_poly)(f, f2));
    small = V(fma)(small, V(set)(high), V(fma)(f, V(set)(low), V(mul)(e, V(set)(e_low))));
    result = V(fma)(e, V(set)(e_high), V(fma)(f, V(set)(high), small));
    return rare ? V(log_special)(x, result) : result;
}

DVTI_INLINE V(f) V(log2)(V(f) x) {
    return V(log_base)(x, DVTI_LOG2E, 1.92596299e-8f, 1, 0);
}

DVTI_INLINE V(f) V(log10)(V(f) x) {
    return V(log_base)(x, 0.434294492f, -1.01046469e-8f, 0.301025391f, 4.60503907e-6f);
}

/* Computes log(u), where u is 1 + x rounded, and corrects by the rounding error c, scaled as f
   is. */
DVTI_INLINE V(f) V(log1p)(V(f) x) {
    const V(f) one = V(set)(1);
    V(f) u = V(add)(x, one), back = V(sub)(u, one), f, e, c, result;
    bool rare = V(log_rare)(u);
    V(i) n;
    c = V(add)(V(sub)(one, V(sub)(u, back)), V(sub)(x, back));
    f = V(sub)(V(log_split)(u, &n), one);
    e = V(to_f)(n);
    c = V(mul)(c, V(as_f)(V(isub)(V(iset)(0x3f800000), V(ishl)(n, 23))));
    f = V(add)(f, V(select)(V(lt)(x, V(set)(67108864)), c, V(zero)()));
    result = V(bit_or)(V(log_of)(e, f), V(sign_bit)(x));
    return rare ? V(log_special)(u, result) : result;
}
