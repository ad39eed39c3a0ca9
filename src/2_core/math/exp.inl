/* exp, and functions that need only exp; see basics.inl. */

/* Returns p of exp(r) = 1 + r + r^2 p, |r| <= ln 2 / 2. */
DVTI_INLINE V(f) V(exp_poly)(V(f) r) {
    return DVTI_P5(r, 0.5f, 0.166666657f, 0.0416662954f, 0.00833349675f, 0.00139446475f,
                   0.000197903093f);
}

/* Splits exp(x) = 2^n (1 + result + low), low being small. The first step of the reduction is
   exact. The sum of both steps is accurate enough for the polynomial. */
DVTI_INLINE V(f) V(exp_split)(V(f) x, V(f) * n, V(f) * low) {
    V(f) high, r;
    *n = V(round)(V(mul)(x, V(set)(DVTI_LOG2E)));
    high = V(fnma)(*n, V(set)(DVTI_LN2_HIGH), x);
    *low = V(mul)(*n, V(set)(-DVTI_LN2_LOW));
    r = V(add)(high, *low);
    *low = V(fma)(V(mul)(r, r), V(exp_poly)(r), *low);
    return high;
}

/* Splits exp(x) = 2^n (result + low). result is 1 + r; low has its rounding error and the rest. */
DVTI_INLINE V(f) V(exp_parts)(V(f) x, V(f) * n, V(f) * low) {
    const V(f) one = V(set)(1);
    V(f) high = V(exp_split)(V(within)(x, -150, 150), n, low), sum = V(add)(one, high);
    *low = V(add)(*low, V(sub)(high, V(sub)(sum, one)));
    return sum;
}

/* Rounds correctly nearly always, like C libraries, so programs print the same digits. */
DVTI_INLINE V(f) V(exp)(V(f) x) {
    V(f) n, low, sum = V(exp_parts)(x, &n, &low);
    return V(scalef)(V(add)(sum, low), n);
}

DVTI_INLINE V(f) V(exp2)(V(f) x) {
    V(f) y = V(within)(x, -200, 200), n = V(round)(y);
    V(f) r = V(mul)(V(sub)(y, n), V(set)(DVTI_LN2));
    return V(scalef)(V(add)(V(fma)(V(mul)(r, r), V(exp_poly)(r), r), V(set)(1)), n);
}

/* Returns (exp(x) - 1) / 4, which is finite wherever exp(x) / 2 is. Not for |x| < 2^-100. */
DVTI_INLINE V(f) V(expm1_quarter)(V(f) x) {
    V(f) n, low, scale, high = V(exp_split)(V(within)(x, -18, 89.6f), &n, &low);
    scale = V(as_f)(V(ishl)(V(iadd)(V(to_i)(n), V(iset)(125)), 23));
    return V(fma)(scale, low, V(fma)(scale, high, V(sub)(scale, V(set)(0.25f))));
}

DVTI_INLINE V(f) V(expm1)(V(f) x) {
    V(f) t = V(mul)(V(set)(4), V(expm1_quarter)(x));
    return V(select)(V(lt)(V(abs)(x), V(set)(1e-8f)), x, t);
}

/* Returns exp(x) / 4, which is finite wherever exp(x) / 2 is; 0 <= x. */
DVTI_INLINE V(f) V(exp_quarter)(V(f) x) {
    V(f) n, low, high = V(exp_split)(V(within)(x, 0, 90), &n, &low);
    return V(scalef)(V(add)(V(set)(1), V(add)(high, low)), V(sub)(n, V(set)(2)));
}

/* Computes 2 (k - 1 / (16 k)) with k = exp(|x|) / 4. Below 1 that cancels; there a polynomial
   replaces it. */
DVTI_INLINE V(f) V(sinh)(V(f) x) {
    V(f) a = V(abs)(x), k = V(exp_quarter)(a), z = V(mul)(a, a), p;
    k = V(sub)(k, V(div)(V(set)(0.0625f), k));
    k = V(bit_or)(V(sign_bit)(x), V(add)(k, k));
    p = DVTI_P3(z, 0.166666672f, 0.00833331142f, 0.000198426351f, 2.78392577e-06f);
    p = V(fma)(V(mul)(x, z), p, x);
    return V(select)(V(lt)(a, V(set)(1)), p, k);
}

/* Computes 2 (k + 1 / (16 k)) with the same k. */
DVTI_INLINE V(f) V(cosh)(V(f) x) {
    V(f) k = V(exp_quarter)(V(abs)(x));
    k = V(add)(k, V(div)(V(set)(0.0625f), k));
    return V(add)(k, k);
}

/* Computes q = 1 / (1 + e), or for negative x q = e / (1 + e), with e = exp(-|x|). n is the power
   of two of e. The remainder over - q (1 + e) has the rounding errors of the sum and the division;
   its first difference is exact. dq / d over = 1 / (1 + e). */
DVTI_INLINE V(f) V(sigmoid)(V(f) x) {
    const V(f) one = V(set)(1);
    V(f)
    y = V(max)(V(set)(-150), V(bit_or)(V(set)(-0.f), x)),
    n = V(round)(V(mul)(y, V(set)(DVTI_LOG2E)));
    V(f)
    r = V(fnma)(n, V(set)(DVTI_LN2_LOW), V(fnma)(n, V(set)(DVTI_LN2_HIGH), y)),
    e, over, q, rate;
    V(m) negative = V(lt)(x, V(zero)());
    e = DVTI_P4(r, 0.49999994f, 0.166665167f, 0.0416681021f, 0.00836919248f, 0.00138389028f);
    e = V(scalef)(V(add)(one, V(fma)(V(mul)(r, r), e, r)), n);
    over = V(select)(negative, e, one);
    q = V(div)(over, V(add)(one, e));
    rate = V(select)(negative, V(sub)(one, q), q);
    return V(fma)(V(fnma)(q, e, V(sub)(over, q)), rate, q);
}
