/* The functions of 2_core/math and simd/math64.inl: their value in double or long double, and their
   error bound in units of the last place. */
#ifndef MATH_ROWS_H
#define MATH_ROWS_H
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* name, function of double, bound. The largest errors over all 2^32 inputs, on AVX-512 (the other
   ISA targets agree):

        rsqrt     1.490  at 1.1828e-38      cosh      1.325  at 6.5911
        exp       0.770  at -87.542         tanh      1.185  at 0.25008
        exp2      0.770  at -126.18         sigmoid   1.480  at -4.8465
        expm1     1.233  at 16.636          softplus  1.719  at -0.83424
        log       0.854  at 0.70584         sin       0.877  at 1.6567e35
        log2      1.041  at 1.4109          cos       0.879  at 4.1016e8
        log10     0.932  at 0.65148         tan       1.340  at 2.3563
        log1p     1.382  at 0.41441         asin      1.662  at -0.52595
        sinh      1.620  at 1.4186          acos      1.153  at -0.61184
        erf       1.104  at 0.26246         atan      1.227  at 1.1211
        gelu      1.636  at -12.554 */
#define MATH_TABLE(M)                                                                              \
    M(reciprocal, reciprocal_f64, 0.501)                                                           \
    M(sqrt, sqrt, 0.501)                                                                           \
    M(rsqrt, rsqrt_f64, 1.5)                                                                       \
    M(exp, exp, 0.8)                                                                               \
    M(exp2, exp2, 0.8)                                                                             \
    M(expm1, expm1, 1.5)                                                                           \
    M(log, log, 1)                                                                                 \
    M(log2, log2, 1.1)                                                                             \
    M(log10, log10, 1)                                                                             \
    M(log1p, log1p, 1.5)                                                                           \
    M(sinh, sinh, 1.7)                                                                             \
    M(cosh, cosh, 2)                                                                               \
    M(tanh, tanh, 1.2)                                                                             \
    M(sigmoid, sigmoid_f64, 1.5)                                                                   \
    M(softplus, softplus_f64, 2)                                                                   \
    M(sin, sin, 1)                                                                                 \
    M(cos, cos, 1)                                                                                 \
    M(tan, tan, 1.4)                                                                               \
    M(asin, asin, 1.7)                                                                             \
    M(acos, acos, 1.5)                                                                             \
    M(atan, atan, 1.5)                                                                             \
    M(erf, erf, 1.2)                                                                               \
    M(gelu, gelu_f64, 1.7)

/* Functions of two arguments, tested on samples only. */
#define MATH2_TABLE(M)                                                                             \
    M(pow, pow, 0.51)                                                                              \
    M(hypot, hypot, 0.51)                                                                          \
    M(atan2, atan2, 2)

static inline double reciprocal_f64(double x) {
    return 1 / x;
}

static inline double rsqrt_f64(double x) {
    return 1 / sqrt(x);
}

static inline double sigmoid_f64(double x) {
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

static inline double softplus_f64(double x) {
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

static inline double gelu_f64(double x) {
    return x < -40 ? -0. : 0.5 * x * erfc(-x * 0.70710678118654752440);
}

/* Returns the error in units of the last place; 1e9 if NaN, an infinity or the sign of 0 is
   wrong. */
static inline double ulp_error(float got, double expected) {
    const float nearest = (float)expected;
    int exponent;
    if (expected != expected)
        return got != got ? 0 : 1e9;
    if (isinf(expected) || expected == 0)
        return got == nearest && !signbit(got) == !signbit(nearest) ? 0 : 1e9;
    if (isinf(got)) /* correct if nearest; else in units of the largest number */
        return isinf(nearest)
                   ? 0
                   : fabs(340282366920938463463374607431768211456. - fabs(expected)) / 0x1p104;
    if (got != got)
        return 1e9;
    frexp(expected, &exponent);
    exponent = exponent < -125 ? -125 : exponent > 128 ? 128 : exponent;
    return fabs((double)got - expected) / ldexp(1, exponent - 24);
}

/* ---- float64: the same with functions of long double, if it has more digits ---- */
#define MATH64_TABLE(M)                                                                            \
    M(reciprocal, reciprocal_f80, 0.501)                                                           \
    M(sqrt, sqrtl, 0.501)                                                                          \
    M(rsqrt, rsqrt_f80, 1.5)                                                                       \
    M(exp, expl, 0.9)                                                                              \
    M(exp2, exp2l, 0.9)                                                                            \
    M(expm1, expm1l, 1.1)                                                                          \
    M(log, logl, 0.9)                                                                              \
    M(log2, log2l, 1)                                                                              \
    M(log10, log10l, 0.9)                                                                          \
    M(log1p, log1pl, 1)                                                                            \
    M(sinh, sinhl, 1)                                                                              \
    M(cosh, coshl, 0.75)                                                                           \
    M(tanh, tanhl, 1)                                                                              \
    M(sigmoid, sigmoid_f80, 0.9)                                                                   \
    M(softplus, softplus_f80, 1.7)                                                                 \
    M(sin, sinl, 0.85)                                                                             \
    M(cos, cosl, 0.85)                                                                             \
    M(tan, tanl, 1)                                                                                \
    M(asin, asinl, 0.7)                                                                            \
    M(acos, acosl, 0.7)                                                                            \
    M(atan, atanl, 0.9)                                                                            \
    M(erf, erfl, 1.1)                                                                              \
    M(gelu, gelu_f80, 4)

#define MATH64_2_TABLE(M)                                                                          \
    M(pow, powl, 0.9)                                                                              \
    M(hypot, hypotl, 1)                                                                            \
    M(atan2, atan2l, 1.5)

static inline long double reciprocal_f80(long double x) {
    return 1 / x;
}

static inline long double rsqrt_f80(long double x) {
    return 1 / sqrtl(x);
}

static inline long double sigmoid_f80(long double x) {
    return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}

static inline long double softplus_f80(long double x) {
    return (x > 0 ? x : 0) + log1pl(expl(-fabsl(x)));
}

/* Rounding x / sqrt(2) matters where the tail is steep. */
static inline long double gelu_f80(long double x) {
    const long double root = 0.70710678118654752440084436210484904L;
    const long double rest = LDBL_MANT_DIG == 64 ? 1.8950325588932570797e-20L : 0;
    long double y = -x * root, lost = fmal(-x, root, -y) - x * rest;
    if (x < -60)
        return -0.L;
    if (x > 60)
        return x;
    return 0.5L * x * (erfcl(y) - 1.12837916709551257389615890312154517L * expl(-y * y) * lost);
}

static inline double ulp_error64(double got, long double expected) {
    const double nearest = (double)expected;
    int exponent;
    if (expected != expected)
        return got != got ? 0 : 1e9;
    if (isinf(expected) || expected == 0)
        return got == nearest && !signbit(got) == !signbit(nearest) ? 0 : 1e9;
    if (isinf(got) && isinf(nearest))
        return 0;
    if (got != got || isinf(got))
        return 1e9;
    frexpl(expected, &exponent);
    exponent = exponent < -1021 ? -1021 : exponent > 1024 ? 1024 : exponent;
    return (double)(fabsl((long double)got - expected) / ldexpl(1, exponent - 53));
}

#endif
