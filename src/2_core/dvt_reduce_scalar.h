/* The primitives of the table of reductions for scalars: W(add) is dvti_f64_add or dvti_i64_add.
   Integers wrap. If one of two elements is NaN, smaller and larger return NaN. */
#ifndef DVTI_REDUCE_SCALAR_H
#define DVTI_REDUCE_SCALAR_H
#include "1_base/dvt_platform.h"

static inline double dvti_f64_add(double a, double b) {
    return a + b;
}

static inline double dvti_f64_sub(double a, double b) {
    return a - b;
}

static inline double dvti_f64_mul(double a, double b) {
    return a * b;
}

static inline double dvti_f64_div(double a, double b) {
    return a / b;
}

static inline double dvti_f64_abs(double a) {
    return fabs(a);
}

static inline double dvti_f64_neg(double a) {
    return -a;
}

static inline double dvti_f64_sqrt(double a) {
    return sqrt(a);
}

static inline double dvti_f64_exp(double a) {
    return exp(a);
}

static inline double dvti_f64_log(double a) {
    return log(a);
}

static inline double dvti_f64_nonzero(double a) {
    return a != 0;
}

static inline double dvti_f64_smaller(double a, double b) {
    return a != a || a < b ? a : b;
}

static inline double dvti_f64_larger(double a, double b) {
    return a != a || a > b ? a : b;
}

static inline int64_t dvti_i64_add(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t dvti_i64_sub(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static inline int64_t dvti_i64_mul(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

static inline int64_t dvti_i64_neg(int64_t a) {
    return dvti_i64_sub(0, a);
}

static inline int64_t dvti_i64_abs(int64_t a) {
    return a < 0 ? dvti_i64_neg(a) : a;
}

static inline int64_t dvti_i64_nonzero(int64_t a) {
    return a != 0;
}

static inline int64_t dvti_i64_smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t dvti_i64_larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* Expands to `text` for the rules that allow integers, else to nothing. */
#define DVTI_INTEGERS_SUM(text) text
#define DVTI_INTEGERS_SAME(text) text
#define DVTI_INTEGERS_BOOL(text) text
#define DVTI_INTEGERS_PLACE(text) text
#define DVTI_INTEGERS_FLOAT(text)

#endif
