/* Functions of vectors of floats. Coefficients are tools/fit_math.py's, lowest order first. Every step is one rounding that is
   written here, so all tiers give the same bits. How far each function may be from C's function of double, in units of the last place, stands
   in tests/tiers/math_rows.h; tests/tiers tries every 1021st input and the neighbourhood of special ones, tests/long all 2^32.
   NaN, infinities, denormal numbers and -0 are as in C's Annex F. */

DVTI_INLINE V(f) V(sign_bit)(V(f) a) {
    return V(bit_and)(V(set)(-0.f), a);
}

/* a where it lies within, else the bound. NaN passes: it is the second operand. */
DVTI_INLINE V(f) V(within)(V(f) a, float low, float high) {
    return V(min)(V(set)(high), V(max)(V(set)(low), a));
}

/* ---- exponentials ---- */
#define DVTI_LOG2E 1.44269504f
#define DVTI_LN2 0.693147181f
#define DVTI_LN2_HIGH 0.693145752f /* exact when multiplied by a whole number below 2^9 */
#define DVTI_LN2_LOW 1.42860677e-6f

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

/* ---- logarithms ---- */
/* Some lane is not a positive normal number. */
DVTI_INLINE bool V(log_rare)(V(f) x) {
    V(i) bits = V(iadd)(V(as_i)(x), V(iset)(0x7f800000));
    return V(mbits)(V(igt)(V(iset)(-0x1000000), bits)) != 0xffff;
}

/* x = 2^n m, sqrt(1/2) <= m < sqrt(2) */
DVTI_INLINE V(f) V(log_split)(V(f) x, V(i) * n) {
    V(i) bits = V(as_i)(x);
    *n = V(isar)(V(isub)(bits, V(iset)(0x3f3504f3)), 23);
    return V(as_f)(V(isub)(bits, V(ishl)(*n, 23)));
}

/* The same with n as a float, also for denormal numbers, where `rare`. */
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

/* The result for what is no positive finite number. */
DVTI_INLINE V(f) V(log_special)(V(f) x, V(f) result) {
    result = V(select)(V(lt)(x, V(set)(INFINITY)), result, x);
    result = V(select)(V(lt)(x, V(zero)()), V(set)(NAN), result);
    return V(select)(V(eq)(x, V(zero)()), V(set)(-INFINITY), result);
}

/* log(1 + f) = f - f^2 / 2 + this, sqrt(1/2) <= 1 + f <= sqrt(2) */
DVTI_INLINE V(f) V(log_poly)(V(f) f, V(f) f2) {
    const V(f) f4 = V(mul)(f2, f2);
    V(f) p = V(fma)(V(set)(0.0674681216f), f2, DVTI_P1(f, 0.118881412f, -0.11675743f)), q;
    p = V(fma)(p, f2, DVTI_P1(f, 0.142195523f, -0.124055736f));
    q = V(fma)(DVTI_P1(f, 0.200021192f, -0.166679963f), f2, DVTI_P1(f, 0.333333135f, -0.250000089f));
    p = V(fma)(p, f4, q);
    return V(mul)(V(mul)(p, f), f2);
}

/* e ln 2 + log(1 + f), small terms first */
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

/* To another base: the logarithm of 1 + f times high + low, and the powers of two times e_high + e_low, where the product with
   e_high is exact. */
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

/* 1 + x rounded is u, and c what that took away: log(u) with c brought to the scale of f. */
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

/* max(x, 0) + log1p(exp(-|x|)) */
DVTI_INLINE V(f) V(softplus)(V(f) x) {
    return V(add)(V(max)(V(zero)(), x), V(log1p)(V(exp)(V(bit_or)(V(set)(-0.f), x))));
}

/* ---- the error function ---- */
/* 1 - exp(-polynomial); near 0 a polynomial. */
DVTI_INLINE V(f) V(erf)(V(f) x) {
    V(f) a = V(min)(V(set)(4), V(abs)(x)), z = V(mul)(a, a), p, q;
    q = DVTI_P7(a, 0.000162123542f, -1.12945402f, -0.633471072f, -0.108142354f, 0.0250297245f,
                -0.00413679006f, 0.000427353021f, -2.04775679e-05f);
    q = V(sub)(V(set)(1), V(exp_normal)(q));
    p = DVTI_P6(z, 0.128379166f, -0.376126379f, 0.112837367f, -0.0268617738f, 0.00520721916f,
                 -0.000821654685f, 8.69896539e-05f);
    p = V(fma)(p, a, a);
    return V(bit_or)(V(sign_bit)(x), V(select)(V(lt)(a, V(set)(0.875f)), p, q));
}

/* x times the lower tail of the normal distribution at -|x|, which is exp(-x^2 / 2) s P(1 - 2 s) with s = |x| / (4 + |x|); for
   positive x what that leaves of x. */
DVTI_INLINE V(f) V(gelu)(V(f) x) {
    const V(f) one = V(set)(1), half = V(set)(-0.5f);
    V(f) a = V(min)(V(set)(15), V(abs)(x)), square = V(mul)(a, a), tail, n, low, r, e, s, t, p;
    tail = V(mul)(V(fma)(a, a, V(neg)(square)), half);
    r = V(exp_reduce)(V(mul)(square, half), &n, &low);
    low = V(fma)(V(mul)(r, r), V(exp_poly)(r), low);
    e = V(add)(one, V(add)(r, low));
    s = V(div)(a, V(add)(V(set)(4), a));
    t = V(fma)(V(set)(-2), s, one);
    p = DVTI_P10(t, 0.755285144f, 0.607896626f, 0.387137294f, 0.186521575f, 0.0603983514f,
                 0.00754261389f, -0.00349221961f, -0.00163548801f, 0.000171859618f, 0.000219286114f,
                 -4.50620464e-05f);
    p = V(scalef)(V(mul)(V(mul)(p, s), V(fma)(e, tail, e)), n);
    return V(select)(V(lt)(x, V(zero)()), V(neg)(p), V(sub)(x, p));
}

#undef DVTI_LOG2E
#undef DVTI_LN2
#undef DVTI_LN2_HIGH
#undef DVTI_LN2_LOW
