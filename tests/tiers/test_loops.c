/* Elementwise loops of every tier: near the reference, the same bits on all tiers, no element outside the operands, repeated operands. */
#include "tiers.h"
#include "math_rows.h"

typedef struct op_row {
    const char *name;
    dvti_op op;
    int operands;
} op_row;

#define UNARY(name, rule, f, i, g, lo, hi, doc) {#name, DVTI_OP_##name, 1},
#define BINARY(name, rule, f, i, ga, gb, la, ha, lb, hb, doc) {#name, DVTI_OP_##name, 2},
static const op_row op_rows[] = {DVTI_UNARY_TABLE(UNARY)
                                     DVTI_BINARY_TABLE(BINARY){"where", DVTI_OP_where, 3},
                                 {"clip", DVTI_OP_clip, 1}};
#undef UNARY
#undef BINARY

enum { ROWS = (int)(sizeof op_rows / sizeof op_rows[0]), LONGEST = 83 };

/* Ordinary numbers, and what is special about floats. */
static void fill(float *to, int n) {
    static const float special[] = {0.f,      -0.f,    1.f,     -1.f,  INFINITY, -INFINITY,
                                    NAN,      0.5f,    2.5f,    -2.5f, 1e-40f,   -1e-40f,
                                    -FLT_MAX, FLT_MAX, FLT_MIN, -0.5f, 1e20f,    8388609.f};
    int i;
    for (i = 0; i < n; i++)
        to[i] = i % 3 == 0 ? special[(int)dvt_test_random(0, 18)] : (float)dvt_test_random(-4, 4);
}

static dvti_view row_of(void *data, int64_t n, int step) {
    dvti_view view;
    memset(&view, 0, sizeof view);
    view.data = data;
    view.dtype = DVT_F32;
    view.ndim = 1;
    view.dim[0] = n;
    view.stride[0] = step;
    return view;
}

static void reference(const op_row *row, float *const *in, const int *step, float *out, int64_t n) {
    dvti_launch launch;
    int k;
    memset(&launch, 0, sizeof launch);
    launch.kernel = DVTI_K_ELEMENTWISE;
    launch.op = row->op;
    launch.compute = DVTI_F32;
    launch.n_in = row->operands;
    launch.n_out = 1;
    for (k = 0; k < row->operands; k++)
        launch.in[k] = row_of(in[k], n, step[k]);
    launch.out[0] = row_of(out, n, 1);
    launch.f[1] = -1.5;
    launch.f[2] = 2.5;
    CHECK(dvt_set_cpu_isa("reference") == DVT_OK);
    dvti_cpu_run(&launch);
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
    /* Far below 0 the reference's formula cancels, and a tier's does not. */
    for (k = 0; row->op == DVTI_OP_gelu && k < n; k++)
        out[k] = (float)gelu_f64((double)in[0][k * step[0]]);
}

/* Results within some units in the last place of the reference's; flags and arithmetic exactly. */
static bool near(float got, float expected) {
    float scale = fabsf(expected) < FLT_MIN ? FLT_MIN : fabsf(expected);
    return same_bits_f32(got, expected) || got == expected ||
           fabsf(got - expected) <= 6 * FLT_EPSILON * scale;
}

static void check_run(const dvti_simd *tier, const op_row *row, const int *step, int n, bool at_end,
                      const guard *memory, float *const *in, const float *expected, float *first) {
    dvti_loop loop;
    float *out;
    int k, i, bad = -1;
    memset(&loop, 0, sizeof loop);
    for (k = 0; k < row->operands; k++) {
        size_t bytes = sizeof(float) * (size_t)(step[k] ? n : 1);
        void *at = at_end ? guard_end(memory[k], bytes) : guard_start(memory[k]);
        memcpy(at, in[k], bytes);
        loop.in[k] = at;
        loop.step[k] = step[k];
    }
    out = (float *)(at_end ? guard_end(memory[3], sizeof(float) * (size_t)n)
                           : guard_start(memory[3]));
    loop.out = out;
    loop.op = row->op;
    loop.n = n;
    loop.low = -1.5;
    loop.high = 2.5;
    tier->loop_f32(row->op)(&loop);
    for (i = 0; i < n; i++)
        if (!near(out[i], expected[i]) || (first && !same_bits_f32(out[i], first[i])))
            bad = i;
    dvt_test_check(
        bad < 0, __FILE__, __LINE__,
        "%s, %s, %d elements, steps %d %d: element %d is %.9g, reference %.9g, other tier "
        "%.9g",
        tier->name, row->name, n, step[0], step[1], bad, bad < 0 ? 0 : (double)out[bad],
        bad < 0 ? 0 : (double)expected[bad], bad < 0 || !first ? 0 : (double)first[bad]);
}

DVT_TEST(loops_of_every_tier) {
    static float operand[3][LONGEST], expected[LONGEST], first[LONGEST];
    float *in[3] = {operand[0], operand[1], operand[2]};
    guard memory[4] = {guard_new(sizeof operand[0]), guard_new(sizeof operand[0]),
                       guard_new(sizeof operand[0]), guard_new(sizeof operand[0])};
    int r, n, form;
    for (r = 0; r < ROWS; r++)
        for (n = 1; n <= LONGEST; n = n < 36 ? n + 1 : n + 47)
            for (form = 0; form < 1 << op_rows[r].operands; form++) {
                const int step[3] = {!(form & 1), !(form & 2), !(form & 4)};
                bool have_first = false;
                fill(operand[0], LONGEST);
                fill(operand[1], LONGEST);
                fill(operand[2], LONGEST);
                reference(&op_rows[r], in, step, expected, n);
                FOR_EACH_TIER(if (tier->loop_f32(op_rows[r].op)) {
                    check_run(tier, &op_rows[r], step, n, true, memory, in, expected,
                              have_first ? first : NULL);
                    if (!have_first)
                        memcpy(first, guard_end(memory[3], sizeof(float) * (size_t)n),
                               sizeof(float) * (size_t)n);
                    have_first = true;
                    check_run(tier, &op_rows[r], step, n, false, memory, in, expected, first);
                });
            }
    guard_free(memory[0]);
    guard_free(memory[1]);
    guard_free(memory[2]);
    guard_free(memory[3]);
}

DVT_TEST(a_tier_is_chosen_by_name) {
    const char *best = dvt_cpu_isa();
    CHECK_ERROR(dvt_set_cpu_isa("sse9"), DVT_ERR_VALUE);
    CHECK_STR(dvt_cpu_isa(), best);
    FOR_EACH_TIER({
        CHECK(dvt_set_cpu_isa(tier->name) == DVT_OK);
        CHECK_STR(dvt_cpu_isa(), tier->name);
        CHECK(dvti_simd_now() == tier);
    });
    CHECK(dvt_set_cpu_isa("reference") == DVT_OK);
    CHECK_STR(dvt_cpu_isa(), "reference");
    CHECK(dvti_simd_now() == NULL);
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
}
