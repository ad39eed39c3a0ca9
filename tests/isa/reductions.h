/* The rows of the reduction table; every ISA target computes all of them. */
#ifndef REDUCTIONS_H
#define REDUCTIONS_H
#include "isa.h"

#define ROW(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)                \
    {#name, DVTI_OP_##name},

static const struct {
    const char *name;
    dvti_op op;
} reductions[] = {DVTI_REDUCE_TABLE(ROW)};

#undef ROW

enum { REDUCTIONS = (int)(sizeof reductions / sizeof reductions[0]) };

static inline bool places(dvti_op op) {
    const dvti_reduce_row *row = dvti_reduce_row_of(op); /* NULL: variance */
    return row && row->rule == DVTI_RESULT_PLACE;
}

#endif
