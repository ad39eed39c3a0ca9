/* What backends read from the rows of the op table, for every row: arguments, cost, and values
   without a vector expression. */
#include "isa.h"
#if !defined(DEVTENSOR_NO_CUDA)
#include "3_cuda/dvt_cuda.h"

/* Returns the source of a program for an operation of a class over float32. */
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
    CHECK_INT(dvti_op_row_of(op)->operands, arguments);
    /* A function of low cost stays on one thread up to 20,000 elements. */
    if (computes)
        dvt_test_check(dvti_op_row_of(op)->cost != DVTI_COST_QUICK, __FILE__, __LINE__,
                       "%s computes a function, and counts as quick", name);
}

#define IS_SAME false
#define IS_NOBOOL false
#define IS_BOOL false
#define IS_FLOAT true

DVT_TEST(op_table_rows) {
#define UNARY(name, rule, ...) check_row(DVTI_OP_##name, #name, 1, IS_##rule);
#define BINARY(name, rule, ...) check_row(DVTI_OP_##name, #name, 2, IS_##rule);
    DVTI_UNARY_TABLE(UNARY)
    DVTI_BINARY_TABLE(BINARY)
#undef UNARY
#undef BINARY
    CHECK_INT(operands_on_gpu(DVTI_OP_where, DVTI_F32), 3);
    CHECK_INT(operands_on_gpu(DVTI_OP_copy, DVTI_F32), 1);
    CHECK_INT(operands_on_gpu(DVTI_OP_clip, DVTI_F32), 1);
}
#endif

/* Computes every row by F, one element after the other, as rows of DVTI_NO_VECTOR are. One operand
   is repeated. Results must agree with the vectors. */
static const int64_t least_ulps = 8;

static double element(const void *data, bool bools, bool wide, int i) {
    return bools  ? (double)((const uint8_t *)data)[i]
           : wide ? ((const double *)data)[i]
                  : (double)((const float *)data)[i];
}

static void check_scalar_loop(dvti_op op, const char *name, int operands, bool wide) {
    enum { N = 35 };

    const bool bools = dvti_op_row_of(op)->rule == DVTI_RULE_BOOL;
    const double epsilon = wide ? DBL_EPSILON : (double)FLT_EPSILON;
    static double in[3][N], got[N], want[N];
    const dvti_simd *target[4];
    dvti_loop loop;
    int i, k;
    memset(&loop, 0, sizeof loop);
    for (k = 0; k < 3; k++)
        for (i = 0; i < N; i++)
            if (wide)
                in[k][i] = dvt_test_random(0.2, 0.9);
            else
                ((float *)(void *)in[k])[i] = (float)dvt_test_random(0.2, 0.9);
    for (k = 0; k < operands; k++) {
        loop.in[k] = in[k];
        loop.step[k] = k != 1;
    }
    loop.op = op;
    loop.n = N;
    loop.low = 0.4;
    loop.high = 0.6;
    if (!dvti_simd_targets(target))
        return;
    loop.out = want;
    (wide ? target[0]->f64->loop(op) : target[0]->loop_f32(op))(&loop);
    loop.out = got;
    (wide ? dvti_scalar_loop_f64 : dvti_scalar_loop_f32)(&loop);
    for (i = 0; i < N; i++) {
        const double a = element(got, bools, wide, i), b = element(want, bools, wide, i);
        dvt_test_check(fabs(a - b) <= (double)least_ulps * epsilon * fmax(fabs(b), 1), __FILE__,
                       __LINE__, "%s: element %d is %.17g by F, %.17g by vectors", name, i, a, b);
    }
}

DVT_TEST(op_table_rows_without_vectors) {
    int wide;
    for (wide = 0; wide < 2; wide++) {
#define UNARY(name, ...) check_scalar_loop(DVTI_OP_##name, #name, 1, wide != 0);
#define BINARY(name, ...) check_scalar_loop(DVTI_OP_##name, #name, 2, wide != 0);
        DVTI_UNARY_TABLE(UNARY)
        DVTI_BINARY_TABLE(BINARY)
#undef UNARY
#undef BINARY
        check_scalar_loop(DVTI_OP_where, "where", 3, wide != 0);
        check_scalar_loop(DVTI_OP_clip, "clip", 1, wide != 0);
    }
}
