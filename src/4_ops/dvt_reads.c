/* Which values a gradient reads, per operation: the one list behind two decisions. The tape keeps the memory of results that
   are read, and backward refuses values that were overwritten since they were recorded. An operation that is not listed
   reads everything; one that is must name at least what its gradient function in 5_grad uses: a test overwrites every value
   and looks for gradients that change in silence. */
#include "4_ops/dvt_op.h"

#define DVTI_READS_X 1u
#define DVTI_READS_A 1u
#define DVTI_READS_B 2u

static unsigned dvti_reads_unary(dvti_op op) {
    switch (op) {
    case DVTI_OP_neg:
    case DVTI_OP_sign:
    case DVTI_OP_floor:
    case DVTI_OP_ceil:
    case DVTI_OP_round:
    case DVTI_OP_trunc:
        return 0;
    case DVTI_OP_relu:
    case DVTI_OP_reciprocal:
    case DVTI_OP_sqrt:
    case DVTI_OP_rsqrt:
    case DVTI_OP_exp:
    case DVTI_OP_exp2:
    case DVTI_OP_tan:
    case DVTI_OP_tanh:
    case DVTI_OP_sigmoid:
        return DVTI_READS_RESULT;
    case DVTI_OP_abs:
    case DVTI_OP_square:
    case DVTI_OP_expm1:
    case DVTI_OP_log:
    case DVTI_OP_log2:
    case DVTI_OP_log10:
    case DVTI_OP_log1p:
    case DVTI_OP_sin:
    case DVTI_OP_cos:
    case DVTI_OP_asin:
    case DVTI_OP_acos:
    case DVTI_OP_atan:
    case DVTI_OP_sinh:
    case DVTI_OP_cosh:
    case DVTI_OP_softplus:
    case DVTI_OP_erf:
    case DVTI_OP_gelu:
        return DVTI_READS_X;
    default:
        return DVTI_READS_X | DVTI_READS_RESULT;
    }
}

/* to_b: the gradient to the second operand is asked for. */
static unsigned dvti_reads_binary(dvti_op op, bool to_b) {
    switch (op) {
    case DVTI_OP_add:
    case DVTI_OP_sub:
    case DVTI_OP_floor_div:
        return 0;
    case DVTI_OP_mul:
        return to_b ? DVTI_READS_A : DVTI_READS_B;
    case DVTI_OP_div:
        return to_b ? DVTI_READS_B | DVTI_READS_RESULT : DVTI_READS_B;
    case DVTI_OP_mod:
        return to_b ? DVTI_READS_A | DVTI_READS_B : 0;
    case DVTI_OP_pow:
        return to_b ? DVTI_READS_A | DVTI_READS_RESULT : DVTI_READS_A | DVTI_READS_B;
    case DVTI_OP_hypot:
        return DVTI_READS_RESULT | (to_b ? DVTI_READS_B : DVTI_READS_A);
    case DVTI_OP_minimum:
    case DVTI_OP_maximum:
    case DVTI_OP_atan2:
        return DVTI_READS_A | DVTI_READS_B;
    default:
        return DVTI_READS_A | DVTI_READS_B | DVTI_READS_RESULT;
    }
}

/* The gradient of pow by a number s. */
static unsigned dvti_reads_power(double s) {
    return s == 0 || s == 1 ? 0 : s == 0.5 || s == -1 ? DVTI_READS_RESULT : DVTI_READS_X;
}

static unsigned dvti_reads_other(dvti_op op, int input) {
    switch (op) {
    case DVTI_OP_where: /* the condition */
        return DVTI_READS_A;
    case DVTI_OP_clip:
    case DVTI_OP_max_pool2d:
        return DVTI_READS_X;
    case DVTI_OP_softmax:
    case DVTI_OP_log_softmax:
        return DVTI_READS_RESULT;
    case DVTI_OP_matmul: /* products: the other operand */
    case DVTI_OP_conv2d:
    case DVTI_OP_conv2d_data:
    case DVTI_OP_conv2d_weight:
        return input == 2 ? 0 : input ? DVTI_READS_A : DVTI_READS_B;
    case DVTI_OP_take: /* the indices, or the places of the maxima */
    case DVTI_OP_take_add:
    case DVTI_OP_take_along:
    case DVTI_OP_take_along_add:
    case DVTI_OP_max_pool2d_data:
    case DVTI_OP_max_pool2d_pick:
        return DVTI_READS_B;
    case DVTI_OP_copy: /* shapes are enough */
    case DVTI_OP_reshape:
    case DVTI_OP_transpose:
    case DVTI_OP_slice:
    case DVTI_OP_unslice:
    case DVTI_OP_broadcast_to:
    case DVTI_OP_concat:
    case DVTI_OP_cumsum:
    case DVTI_OP_avg_pool2d:
    case DVTI_OP_avg_pool2d_data:
        return 0;
    default:
        return dvti_reduce_reads(op);
    }
}

DVTI_FN unsigned dvti_grad_reads(const dvti_node *node, int input) {
    unsigned reads;
    if ((int)node->op < DVTI_UNARY_END)
        return dvti_reads_unary(node->op);
    if ((int)node->op >= DVTI_BINARY_END)
        return dvti_reads_other(node->op, input);
    if (node->attr.i[0] == 0)
        return dvti_reads_binary(node->op, input == 1);
    /* One operand is the scalar attr.f[0]: before the array (1) or behind it (2). */
    reads = dvti_reads_binary(node->op, node->attr.i[0] == 1);
    if (node->attr.i[0] == 1)
        return (reads & DVTI_READS_RESULT) | (reads & DVTI_READS_B ? DVTI_READS_X : 0);
    return node->op == DVTI_OP_pow ? dvti_reads_power(node->attr.f[0]) : reads & ~DVTI_READS_B;
}

#undef DVTI_READS_X
#undef DVTI_READS_A
#undef DVTI_READS_B
