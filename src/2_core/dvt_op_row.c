/* The columns of the op table and of the table of reductions that are needed at run time, by the
   number of the operation. */
#include "2_core/dvt_core.h"

DVTI_FN const dvti_op_row *dvti_op_row_of(dvti_op op) {
    /* in the order of dvti_op */
    static const dvti_op_row rows[DVTI_OP_COUNT] = {
#define DVTI_UNARY(name, rule, cost, f, i, vector, math, grad, reads, lo, hi, doc)                 \
    {1, DVTI_RULE_##rule, DVTI_COST_##cost, DVTI_READS_##reads},
#define DVTI_BINARY(name, rule, cost, f, i, vector, math, ga, reads_a, gb, reads_b, la, ha, lb,    \
                    hb, doc)                                                                       \
    {2, DVTI_RULE_##rule, DVTI_COST_##cost, DVTI_READS_##reads_a | DVTI_READS_##reads_b << 4},
#define DVTI_SPECIAL(name, operands, rule, cost, f, i, vector, reads, doc)                         \
    {operands, DVTI_RULE_##rule, DVTI_COST_##cost, DVTI_EACH_##reads},
#define DVTI_OTHER(name, family, reads, doc)                                                       \
    {0, DVTI_RULE_SAME, DVTI_COST_QUICK, DVTI_EACH_##reads},
#define DVTI_REDUCE(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)        \
    {0, DVTI_RULE_SAME, DVTI_COST_QUICK, DVTI_EACH_##reads},
#define DVTI_OPTIMIZER(name, ...) {0, DVTI_RULE_SAME, DVTI_COST_QUICK, DVTI_EACH_NONE},
        DVTI_UNARY_TABLE(DVTI_UNARY) DVTI_BINARY_TABLE(DVTI_BINARY) DVTI_SPECIAL_TABLE(DVTI_SPECIAL)
            DVTI_OTHER_TABLE(DVTI_OTHER) DVTI_REDUCE_TABLE(DVTI_REDUCE)
                DVTI_OPTIMIZER_TABLE(DVTI_OPTIMIZER)
#undef DVTI_UNARY
#undef DVTI_BINARY
#undef DVTI_SPECIAL
#undef DVTI_OTHER
#undef DVTI_REDUCE
#undef DVTI_OPTIMIZER
    };

    return &rows[op];
}

/* ---- reductions ---- */
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
