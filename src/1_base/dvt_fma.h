/* a * b + c with one rounding: fma of the C library, except on MinGW, whose fma rounds twice. */
#ifndef DVTI_FMA_H
#define DVTI_FMA_H
#include "1_base/dvt_platform.h"

typedef struct dvti_two {
    double high, low; /* high + low is the exact result, high its rounding */
} dvti_two;

/* Returns a + b without error. Source: Knuth, The Art of Computer Programming, 4.2.2. */
static inline dvti_two dvti_two_sum(double a, double b) {
    dvti_two r;
    double part;
    r.high = a + b;
    part = r.high - a;
    r.low = (a - (r.high - part)) + (b - part);
    return r;
}

/* Returns a * b without error. 2^27 + 1 splits a factor into two of 26 bits, whose products are
   exact. Source: Dekker, A floating-point technique for extending the available precision, 1971. */
static inline dvti_two dvti_two_product(double a, double b) {
    const double split = 134217729; /* 2^27 + 1 */
    const double x = a * split, y = b * split;
    const double a_high = x - (x - a), b_high = y - (y - b), a_low = a - a_high, b_low = b - b_high;
    dvti_two r;
    r.high = a * b;
    r.low = ((a_high * b_high - r.high) + a_high * b_low + a_low * b_high) + a_low * b_low;
    return r;
}

/* Returns a + b rounded to odd: an inexact sum has its last bit set. So a second rounding to fewer
   bits gives the result of a single rounding. */
static inline double dvti_sum_to_odd(double a, double b) {
    dvti_two sum = dvti_two_sum(a, b);
    uint64_t bits;
    memcpy(&bits, &sum.high, sizeof bits);
    if ((sum.low < 0 || sum.low > 0) && !(bits & 1)) {
        bits += (sum.low > 0) == (sum.high > 0) ? 1 : (uint64_t)-1;
        memcpy(&sum.high, &bits, sizeof bits);
    }
    return sum.high;
}

/* Computes fma for finite numbers whose product and sum are far from overflow and underflow.
   Source: Boldo and Melquiond, Emulation of FMA and correctly rounded sums: proved algorithms using
   rounding to odd, 2008. */
static inline double dvti_fma_emulated(double a, double b, double c) {
    dvti_two product = dvti_two_product(a, b), sum = dvti_two_sum(c, product.low);
    dvti_two most = dvti_two_sum(product.high, sum.high);
    return most.high + dvti_sum_to_odd(most.low, sum.low);
}

/* The product of two floats is exact in double. */
static inline float dvti_fmaf_emulated(float a, float b, float c) {
    return (float)dvti_sum_to_odd((double)a * (double)b, (double)c);
}

#if defined(__MINGW64__) && !defined(__FMA__)
#define dvti_fma dvti_fma_emulated
#define dvti_fmaf dvti_fmaf_emulated
#else
#define dvti_fma fma
#define dvti_fmaf fmaf
#endif
#endif
