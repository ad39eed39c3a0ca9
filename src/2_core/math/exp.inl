/* exp and what is made of it alone; see basics.inl. */

/* exp(r) = 1 + r + r^2 p, |r| <= ln 2 / 2 */
DVTI_INLINE V(f) V(exp_poly)(V(f) r) {
    return DVTI_P5(r, 0.5f, 0.166666657f, 0.0416662954f, 0.00833349675f, 0.00139446475f,
                   0.000197903093f);
}

/* x = n ln 2 + r + low: low is what the rounding of r took away. */
DVTI_INLINE V(f) V(exp_reduce)(V(f) x, V(f) * n, V(f) * low) {
    V(f) high, r;
    *n = V(round)(V(mul)(x, V(set)(DVTI_LOG2E)));
    high = V(fnma)(*n, V(set)(DVTI_LN2_HIGH), x);
    r = V(fnma)(*n, V(set)(DVTI_LN2_LOW), high);
    *low = V(fnma)(*n, V(set)(DVTI_LN2_LOW), V(sub)(high, r));
    return r;
}

/* a * 2^n where that is a normal number, and so is 2^n. */
DVTI_INLINE V(f) V(scale)(V(f) a, V(f) n) {
#if defined(DVTI_HAS_SCALEF)
    return V(scalef)(a, n);
#else
    return V(mul)(a, V(as_f)(V(ishl)(V(iadd)(V(to_i)(n), V(iset)(127)), 23)));
#endif
}

/* x = n ln 2 + log(result), for |x| < 200 */
DVTI_INLINE V(f) V(exp_split)(V(f) x, V(f) * n) {
    V(f) r;
    *n = V(round)(V(mul)(x, V(set)(DVTI_LOG2E)));
    r = V(fnma)(*n, V(set)(DVTI_LN2_HIGH), x);
    r = V(fnma)(*n, V(set)(DVTI_LN2_LOW), r);
    return V(add)(V(fma)(V(mul)(r, r), V(exp_poly)(r), r), V(set)(1));
}

/* 1 + r, then what that rounded away and the rest: so the last place is nearly always that of the true result, as in C libraries, and
   programs print what they print elsewhere. */
DVTI_INLINE V(f) V(exp)(V(f) x) {
    const V(f) one = V(set)(1);
    V(f) n, low, r = V(exp_reduce)(V(within)(x, -150, 150), &n, &low), sum = V(add)(one, r);
    low = V(fma)(V(mul)(r, r), V(exp_poly)(r), low);
    low = V(add)(low, V(sub)(r, V(sub)(sum, one)));
    return V(scalef)(V(add)(sum, low), n);
}

/* For |x| < 87, where the result is a normal number. */
DVTI_INLINE V(f) V(exp_normal)(V(f) x) {
    V(f) n, p = V(exp_split)(x, &n);
    return V(scale)(p, n);
}

DVTI_INLINE V(f) V(exp2)(V(f) x) {
    V(f) y = V(within)(x, -200, 200), n = V(round)(y);
    V(f) r = V(mul)(V(sub)(y, n), V(set)(DVTI_LN2));
    return V(scalef)(V(add)(V(fma)(V(mul)(r, r), V(exp_poly)(r), r), V(set)(1)), n);
}

/* (exp(x) - 1) / 4, which does not overflow where exp(x) / 2 does not. Not for |x| < 2^-100. */
DVTI_INLINE V(f) V(expm1_quarter)(V(f) x) {
    V(f) n, low, scale, r = V(exp_reduce)(V(within)(x, -18, 89.6f), &n, &low);
    scale = V(as_f)(V(ishl)(V(iadd)(V(to_i)(n), V(iset)(125)), 23));
    low = V(fma)(V(mul)(r, r), V(exp_poly)(r), low);
    return V(fma)(scale, low, V(fma)(scale, r, V(sub)(scale, V(set)(0.25f))));
}

DVTI_INLINE V(f) V(expm1)(V(f) x) {
    V(f) t = V(mul)(V(set)(4), V(expm1_quarter)(x));
    return V(select)(V(lt)(V(abs)(x), V(set)(1e-8f)), x, t);
}

/* With h = (exp(|x|) - 1) / 2: h + h / (2 h + 1). */
DVTI_INLINE V(f) V(sinh)(V(f) x) {
    V(f) a = V(abs)(x), h = V(mul)(V(set)(2), V(expm1_quarter)(a)), s;
    s = V(div)(V(min)(V(set)(FLT_MAX), h), V(add)(V(add)(h, h), V(set)(1)));
    s = V(add)(h, s);
    return V(select)(V(lt)(a, V(set)(1e-4f)), x, V(bit_or)(V(sign_bit)(x), s));
}

/* With k = exp(|x|) / 4: twice k + 1 / (16 k). */
DVTI_INLINE V(f) V(cosh)(V(f) x) {
    V(f) n, p = V(exp_split)(V(within)(V(abs)(x), 0, 90), &n);
    V(f) k = V(scalef)(p, V(sub)(n, V(set)(2)));
    k = V(add)(k, V(div)(V(set)(0.0625f), k));
    return V(add)(k, k);
}

/* 1 - 2 / (exp(2 |x|) + 1); near 0 a polynomial. */
DVTI_INLINE V(f) V(tanh)(V(f) x) {
    V(f) a = V(min)(V(set)(9.1f), V(abs)(x)), z = V(mul)(a, a), e, p, q;
    e = V(add)(V(exp_normal)(V(add)(a, a)), V(set)(1));
    q = V(sub)(V(set)(1), V(div)(V(set)(2), e));
    p = DVTI_P4(z, -0.333332837f, 0.133314833f, -0.0537427738f, 0.0206480622f, -0.00571406353f);
    p = V(fma)(V(mul)(p, z), a, a);
    return V(bit_or)(V(sign_bit)(x), V(select)(V(lt)(a, V(set)(0.625f)), p, q));
}

/* With e = exp(-|x|), which does not overflow: 1 / (1 + e), or e / (1 + e). */
DVTI_INLINE V(f) V(sigmoid)(V(f) x) {
    const V(f) one = V(set)(1);
    V(f) e = V(exp)(V(bit_or)(V(set)(-0.f), x));
    return V(div)(V(select)(V(lt)(x, V(zero)()), e, one), V(add)(e, one));
}
