/* The rows of the table of reductions at run time. */
#include "2_core/dvt_core.h"

DVTI_FN const dvti_reduce_row *dvti_reduce_row_of(dvti_op op) {
#define DVTI_ROW(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)           \
    {"dvt_" #name, DVTI_RESULT_##rule, DVTI_METHOD_##method, DVTI_JOIN_##join},
    static const dvti_reduce_row rows[] = {DVTI_REDUCE_TABLE(DVTI_ROW)};
#undef DVTI_ROW
    const int number = (int)op - DVTI_REDUCE_BEGIN;
    return number >= 0 && number < DVTI_LENGTH(rows) ? &rows[number] : NULL;
}

#define DVTI_HIGHEST ((double)INFINITY)
#define DVTI_LOWEST (-(double)INFINITY)
#define W(word) dvti_f64_##word

DVTI_FN double dvti_reduce_start_f64(dvti_op op) {
    double x;
    switch ((int)op) {
#define DVTI_ROW(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)           \
    case DVTI_OP_##name:                                                                           \
        x = none;                                                                                  \
        return term;
        DVTI_REDUCE_TABLE(DVTI_ROW)
#undef DVTI_ROW
    default:
        return 0;
    }
}

DVTI_FN double dvti_reduce_finish_f64(dvti_op op, double s, double n) {
    (void)n;
    switch ((int)op) {
#define DVTI_ROW(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)           \
    case DVTI_OP_##name:                                                                           \
        return finish;
        DVTI_REDUCE_TABLE(DVTI_ROW)
#undef DVTI_ROW
    default:
        return s;
    }
}

#undef W
#undef DVTI_HIGHEST
#undef DVTI_LOWEST
#define DVTI_HIGHEST INT64_MAX
#define DVTI_LOWEST INT64_MIN
#define W(word) dvti_i64_##word

DVTI_FN int64_t dvti_reduce_start_i64(dvti_op op) {
    int64_t x;
    switch ((int)op) {
#define DVTI_ROW(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)           \
    DVTI_INTEGERS_##rule(case DVTI_OP_##name : x = none; return term;)
        DVTI_REDUCE_TABLE(DVTI_ROW)
#undef DVTI_ROW
    default:
        return 0;
    }
}

#undef W
#undef DVTI_HIGHEST
#undef DVTI_LOWEST
