/* What the op table says of an operation, for code that has its number: arity, rule, cost, reads.
   */
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
