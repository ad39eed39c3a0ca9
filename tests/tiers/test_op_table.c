/* What backends ask about the rows of the op table, for every row: how many arguments, how much
   work. */
#include "tiers.h"
#if !defined(DEVTENSOR_NO_CUDA)
#include "3_cuda/dvt_cuda.h"

/* The text of a program for that operation, in a class, over float32. */
static int operands_on_gpu(dvti_op op, int compute) {
    static char buffer[1 << 17];
    dvti_text text = dvti_text_begin(buffer, sizeof buffer);
    const char *at;
    dvti_cuda_describe_elementwise((uint64_t)op | (uint64_t)compute << 8, &text);
    at = strstr(buffer, "#define N_IN ");
    return at ? at[13] - '0' : -1;
}

static void check_row(dvti_op op, const char *name, int arguments, bool computes) {
    int compute;
    for (compute = DVTI_F32; compute <= DVTI_I64; compute++)
        dvt_test_check(operands_on_gpu(op, compute) == arguments, __FILE__, __LINE__,
                       "%s has %d arguments, on a GPU %d", name, arguments,
                       operands_on_gpu(op, compute));
    /* A function that counts as a move of memory stays on one thread up to 20,000 elements. */
    if (computes)
        dvt_test_check(dvti_op_work_of(op) != DVTI_WORK_MOVE, __FILE__, __LINE__,
                       "%s computes a function, and counts as a move", name);
    dvt_test_check((int)op >= (arguments == 2 ? DVTI_UNARY_END : 0) &&
                       (int)op < (arguments == 2 ? DVTI_BINARY_END : DVTI_UNARY_END),
                   __FILE__, __LINE__, "%s is not among the rows of %d arguments", name, arguments);
}

#define IS_SAME false
#define IS_NOBOOL false
#define IS_BOOL false
#define IS_FLOAT true

DVT_TEST(op_table_rows) {
#define UNARY(name, rule, f, i, grad, lo, hi, doc) check_row(DVTI_OP_##name, #name, 1, IS_##rule);
#define BINARY(name, rule, f, i, ga, gb, la, ha, lb, hb, doc)                                      \
    check_row(DVTI_OP_##name, #name, 2, IS_##rule);
    DVTI_UNARY_TABLE(UNARY)
    DVTI_BINARY_TABLE(BINARY)
#undef UNARY
#undef BINARY
    CHECK_INT(operands_on_gpu(DVTI_OP_where, DVTI_F32), 3);
    CHECK_INT(operands_on_gpu(DVTI_OP_copy, DVTI_F32), 1);
    CHECK_INT(operands_on_gpu(DVTI_OP_clip, DVTI_F32), 1);
}
#endif

/* Operations whose text takes several functions or corrections. */
DVT_TEST(op_table_long_rows) {
    static const dvti_op ops[] = {DVTI_OP_pow, DVTI_OP_atan2, DVTI_OP_hypot, DVTI_OP_mod,
                                  DVTI_OP_floor_div};
    size_t i;
    for (i = 0; i < sizeof ops / sizeof *ops; i++)
        CHECK_INT(dvti_op_work_of(ops[i]), DVTI_WORK_LONG);
    CHECK_INT(dvti_op_work_of(DVTI_OP_div), DVTI_WORK_DIVISION);
    CHECK_INT(dvti_op_work_of(DVTI_OP_add), DVTI_WORK_MOVE);
    CHECK_INT(dvti_op_work_of(DVTI_OP_where), DVTI_WORK_MOVE);
}
