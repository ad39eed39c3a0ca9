/* Checks that the implementation gives the same results when compiled with -ffast-math or a part of
   it. */
#include "1_base/dvt_platform.h"
#include <stdint.h>

#if !DVTI_FAST_MATH
#error "the flag has not been noticed"
#endif

DVTI_NOINLINE int is_nan(double x) {
    return x != x;
}

DVTI_NOINLINE int is_finite(double x) {
    return x - x == 0;
}

DVTI_NOINLINE int is_not_at_least(double x, double y) {
    return !(x >= y);
}

DVTI_NOINLINE double rest_of_sum(double a, double b) {
    double sum = a + b, part = sum - a;
    return (a - (sum - part)) + (b - part);
}

DVTI_NOINLINE double plus_zero(double x) {
    return x + 0.0;
}

DVTI_NOINLINE double third(double x) {
    return x / 3.0;
}

DVTI_NOINLINE float sum_in_order(const float *x) {
    float sum = 0;
    int i;
    for (i = 0; i < 64; i++)
        sum += x[i];
    return sum;
}

#include "1_base/platform_end.inl"

int main(void) {
    const double nan = strtod("nan", NULL), infinite = strtod("inf", NULL);
    const double zero = plus_zero(strtod("-0", NULL));
    const uint64_t expected = UINT64_C(0x3ffaaaaaaaaaaaab);
    double quotient;
    float x[64];
    int i, failed = 0;
    for (i = 0; i < 64; i++)
        x[i] = i % 2 ? 1.f : 16777216.f; /* each odd addend alone is lost by rounding */
    failed |= !is_nan(nan) << 0 | is_nan(1) << 1;
    failed |= is_finite(infinite) << 2 | is_finite(nan) << 3 | !is_finite(1) << 4;
    failed |= !is_not_at_least(nan, 0) << 5;
    failed |= (rest_of_sum(1e16, 1) != 1) << 6;
    failed |= (memcmp(&zero, "\0\0\0\0\0\0\0\0", 8) != 0) << 7;
    quotient = third(5);
    failed |= (memcmp(&quotient, &expected, 8) != 0) << 8; /* 5 times the rounded 1 / 3 differs */
    failed |= (sum_in_order(x) != 16777216.f * 32) << 9;
    return failed != 0;
}
