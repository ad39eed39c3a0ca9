/* The functions of 2_core/math, what they are in double, and how far from that they may be, in units of the last place. */
#ifndef MATH_ROWS_H
#define MATH_ROWS_H
#include <math.h>
#include <stdint.h>
#include <string.h>

/* name, function of double, bound */
#define MATH_TABLE(M)                                                                              \
    M(exp, exp, 0.8)                                                                               \
    M(exp2, exp2, 1)                                                                               \
    M(expm1, expm1, 1.5)                                                                           \
    M(log, log, 1)                                                                                 \
    M(log2, log2, 1.1)                                                                             \
    M(log10, log10, 1)                                                                             \
    M(log1p, log1p, 1.5)                                                                           \
    M(sinh, sinh, 2.5)                                                                             \
    M(cosh, cosh, 2)                                                                               \
    M(tanh, tanh, 1.5)                                                                             \
    M(sigmoid, sigmoid_f64, 2.5)                                                                   \
    M(softplus, softplus_f64, 2)                                                                   \
    M(sin, sin, 1)                                                                                 \
    M(cos, cos, 1)                                                                                 \
    M(tan, tan, 2.5)                                                                               \
    M(asin, asin, 2)                                                                               \
    M(acos, acos, 1.5)                                                                             \
    M(atan, atan, 1.5)                                                                             \
    M(erf, erf, 1.2)                                                                               \
    M(gelu, gelu_f64, 4.5)

static inline double sigmoid_f64(double x) {
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

static inline double softplus_f64(double x) {
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

static inline double gelu_f64(double x) {
    return x < -40 ? -0. : 0.5 * x * erfc(-x * 0.70710678118654752440);
}

/* The error in units of the last place of the result; 1e9 where NaN, an infinity or the sign of 0 is wrong. */
static inline double ulp_error(float got, double expected) {
    const float nearest = (float)expected;
    int exponent;
    if (expected != expected)
        return got != got ? 0 : 1e9;
    if (isinf(expected) || expected == 0)
        return got == nearest && !signbit(got) == !signbit(nearest) ? 0 : 1e9;
    if (isinf(got)) /* right when it is the nearest; else in units of the largest number's */
        return isinf(nearest)
                   ? 0
                   : fabs(340282366920938463463374607431768211456. - fabs(expected)) / 0x1p104;
    if (got != got)
        return 1e9;
    frexp(expected, &exponent);
    exponent = exponent < -125 ? -125 : exponent > 128 ? 128 : exponent;
    return fabs((double)got - expected) / ldexp(1, exponent - 24);
}

#endif
