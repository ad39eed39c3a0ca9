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

/* ---- exp and exp2, by a table of the eighths of 2 ----
   x / ln 2 rounds to t = n + i / 8, and x = t ln 2 + r. Adding 1.5 * 2^20 + bias rounds: the bits
   of the sum end with n + bias and i, which select s without a conversion.

     exp(x) = s + s q     s = 2^n 2^(i/8)     q = exp(r) - 1, |r| <= ln 2 / 16

     bits of the sum:  31 .. 22   21 .. 3    2 1 0
                                  n + bias     i

   s is a float; its relative error is added to r. The last rounding is nearly the only one: exp
   rounds correctly for 99.6 % of inputs, so programs print the same digits as with C libraries. */

/* Bias of the sum, for results of any size and for results below 1; exp_table needs them. */
#define DVTI_EXP_BIAS 159 /* 127 + 32 */
#define DVTI_EXP_BIAS_BELOW 64

/* Returns t; factor is 1 / ln 2 for exp. */
DVTI_INLINE V(f) V(exp_round)(V(f) x, float factor, float bias, V(i) * at) {
    const V(f) shift = V(set)(1572864 + bias);
    V(f) sum = V(fma)(x, V(set)(factor), shift);
    *at = V(as_i)(sum);
    return V(sub)(sum, shift);
}

/* Returns the relative error of the float of 2^(i/8). */
DVTI_INLINE V(f) V(exp_residual)(V(i) at) {
    static const float residual[8] = {0,
                                      -1.19921575e-08f,
                                      3.19341815e-08f,
                                      -3.09907193e-08f,
                                      1.71142709e-08f,
                                      5.23333421e-09f,
                                      -1.47196051e-08f,
                                      -6.12825968e-09f};
    return V(lookup)(residual, at);
}

DVTI_INLINE V(f) V(exp_q)(V(f) r) {
    return V(fma)(V(mul)(r, r), DVTI_P2(r, 0.5f, 0.166680455f, 0.0416734479f), r);
}

/* Returns q of exp. The product of t and the higher part of ln 2 is exact. */
DVTI_INLINE V(f) V(exp_reduce)(V(f) x, V(f) t, V(i) at) {
    V(f) low = V(fnma)(t, V(set)(3.19461833e-5f), V(exp_residual)(at));
    return V(exp_q)(V(add)(V(fnma)(t, V(set)(0.693115234f), x), low));
}

#if defined(DVTI_HAS_SCALEF)
/* The instruction takes 2^floor(t). */
DVTI_INLINE V(f) V(exp_power)(V(i) at) {
    static const float power[8] = {1,           1.09050775f, 1.18920708f, 1.29683959f,
                                   1.41421354f, 1.54221082f, 1.68179286f, 1.8340081f};
    return V(lookup)(power, at);
}

DVTI_INLINE V(f) V(exp_join)(V(f) t, V(i) at, V(f) q) {
    V(f) s = V(exp_power)(at);
    return V(scalef)(V(fma)(s, q, s), t);
}

DVTI_INLINE V(f) V(exp_scale_below)(V(f) a, V(f) t) {
    return V(scalef)(a, t);
}
#else
/* Results down to 2^-150 and up to 2^128 need two factors: 2^h, and the rest of 2^n, which adds to
   the exponent of the table. Its entries are 2^-32 2^(i/8); their bits lack those of i, which the
   bits of the sum add. */
DVTI_INLINE V(f) V(exp_table)(V(i) at, V(i) more) {
    static const float power[8] = {2.32830644e-10f, 2.28815217e-10f, 2.25753416e-10f,
                                   2.23731575e-10f, 2.22843785e-10f, 2.23192714e-10f,
                                   2.24890287e-10f, 2.28058558e-10f};
    return V(as_f)(V(iadd)(V(as_i)(V(lookup)(power, at)), more));
}

DVTI_INLINE V(f) V(exp_join)(V(f) t, V(i) at, V(f) q) {
    V(i) n = V(ishl)(at, 20), h = V(iand)(V(ishr)(n, 1), V(iset)(0x7f800000));
    V(f) s = V(exp_table)(at, V(isub)(n, h));
    (void)t;
    return V(mul)(V(fma)(s, q, s), V(as_f)(h));
}

/* For t <= 0 the second factor is constant: s is 2^32 times as large. */
DVTI_INLINE V(f) V(exp_power)(V(i) at) {
    return V(exp_table)(at, V(ishl)(at, 20));
}

DVTI_INLINE V(f) V(exp_scale_below)(V(f) a, V(f) t) {
    (void)t;
    return V(mul)(a, V(set)(2.32830644e-10f));
}
#endif

DVTI_INLINE V(f) V(exp)(V(f) x) {
    V(f) y = V(within)(x, -104, 89), t, q;
    V(i) at;
    t = V(exp_round)(y, DVTI_LOG2E, DVTI_EXP_BIAS, &at);
    q = V(exp_reduce)(y, t, at);
    return V(exp_join)(t, at, q);
}

/* The same for x <= 0 and NaN, with fewer steps and the same bits. */
DVTI_INLINE V(f) V(exp_below)(V(f) x) {
    V(f) y = V(max)(V(set)(-104), x), t, q, s;
    V(i) at;
    t = V(exp_round)(y, DVTI_LOG2E, DVTI_EXP_BIAS_BELOW, &at);
    q = V(exp_reduce)(y, t, at);
    s = V(exp_power)(at);
    return V(exp_scale_below)(V(fma)(s, q, s), t);
}

DVTI_INLINE V(f) V(exp2)(V(f) x) {
    V(f) y = V(within)(x, -151, 129), t, r;
    V(i) at;
    t = V(exp_round)(y, 1, DVTI_EXP_BIAS, &at);
    r = V(fma)(V(sub)(y, t), V(set)(DVTI_LN2), V(exp_residual)(at));
    return V(exp_join)(t, at, V(exp_q)(r));
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

/* Computes q = over / (1 + e), where e = exp(-|x|), and over is 1 or for negative x e. The
   remainder over - q (1 + e) has the rounding errors of q; its first difference is exact. */
DVTI_INLINE V(f) V(sigmoid)(V(f) x) {
    const V(f) one = V(set)(1);
    V(f) e = V(exp_below)(V(bit_or)(V(set)(-0.f), x)), p = V(div)(one, V(add)(one, e)), q;
    /* Compilers make one instruction of an integer comparison with 0 and its selection. */
    V(f) over = V(select)(V(igt)(V(iset)(0), V(as_i)(x)), e, one);
    q = V(mul)(over, p);
    return V(fma)(V(fnma)(q, e, V(sub)(over, q)), p, q);
}
