/* exp and what is made of it alone; see basics.inl. */

/* exp(r) = 1 + r + r^2 p, |r| <= ln 2 / 2 */
DVTI_INLINE V(f) V(exp_poly)(V(f) r) {
    return DVTI_P5(r, 0.5f, 0.166666657f, 0.0416662954f, 0.00833349675f, 0.00139446475f,
                   0.000197903093f);
}

/* exp(x) = 2^n (1 + result + low), low being small. The first step of the reduction is exact; the sum of both is good enough for the
   polynomial. */
DVTI_INLINE V(f) V(exp_split)(V(f) x, V(f) * n, V(f) * low) {
    V(f) high, r;
    *n = V(round)(V(mul)(x, V(set)(DVTI_LOG2E)));
    high = V(fnma)(*n, V(set)(DVTI_LN2_HIGH), x);
    *low = V(mul)(*n, V(set)(-DVTI_LN2_LOW));
    r = V(add)(high, *low);
    *low = V(fma)(V(mul)(r, r), V(exp_poly)(r), *low);
    return high;
}

/* exp(x) = 2^n (result + low): 1 + r, then what that rounded away and the rest. */
DVTI_INLINE V(f) V(exp_parts)(V(f) x, V(f) * n, V(f) * low) {
    const V(f) one = V(set)(1);
    V(f) high = V(exp_split)(V(within)(x, -150, 150), n, low), sum = V(add)(one, high);
    *low = V(add)(*low, V(sub)(high, V(sub)(sum, one)));
    return sum;
}

/* The last place is nearly always that of the true result, as in C libraries, and programs print what they print elsewhere. */
DVTI_INLINE V(f) V(exp)(V(f) x) {
    V(f) n, low, sum = V(exp_parts)(x, &n, &low);
    return V(scalef)(V(add)(sum, low), n);
}

DVTI_INLINE V(f) V(exp2)(V(f) x) {
    V(f) y = V(within)(x, -200, 200), n = V(round)(y);
    V(f) r = V(mul)(V(sub)(y, n), V(set)(DVTI_LN2));
    return V(scalef)(V(add)(V(fma)(V(mul)(r, r), V(exp_poly)(r), r), V(set)(1)), n);
}

/* (exp(x) - 1) / 4, which does not overflow where exp(x) / 2 does not. Not for |x| < 2^-100. */
DVTI_INLINE V(f) V(expm1_quarter)(V(f) x) {
    V(f) n, low, scale, high = V(exp_split)(V(within)(x, -18, 89.6f), &n, &low);
    scale = V(as_f)(V(ishl)(V(iadd)(V(to_i)(n), V(iset)(125)), 23));
    return V(fma)(scale, low, V(fma)(scale, high, V(sub)(scale, V(set)(0.25f))));
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
    V(f) n, low, high = V(exp_split)(V(within)(V(abs)(x), 0, 90), &n, &low), k;
    k = V(scalef)(V(add)(V(set)(1), V(add)(high, low)), V(sub)(n, V(set)(2)));
    k = V(add)(k, V(div)(V(set)(0.0625f), k));
    return V(add)(k, k);
}

/* With e = exp(-|x|) = 2^n (1 + m): 1 / (1 + e), and for negative x that times e, whose 1 + m is not rounded before. */
DVTI_INLINE V(f) V(sigmoid)(V(f) x) {
    const V(f) one = V(set)(1);
    V(f) y = V(within)(V(bit_or)(V(set)(-0.f), x), -150, 0), n = V(round)(V(mul)(y, V(set)(DVTI_LOG2E))), m, q;
    m = V(fnma)(n, V(set)(DVTI_LN2_LOW), V(fnma)(n, V(set)(DVTI_LN2_HIGH), y));
    m = V(fma)(V(mul)(m, m), V(exp_poly)(m), m);
    q = V(div)(one, V(add)(one, V(scalef)(V(add)(one, m), n)));
    return V(select)(V(lt)(x, V(zero)()), V(scalef)(V(fma)(m, q, q), n), q);
}
