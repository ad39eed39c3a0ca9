/* Elementwise loops of double: near the reference, the same bits on all tiers, no element outside the operands, repeated operands; rows of
   other dtypes; and whole launches with every layout that has a way of its own. */
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

static bool same_bits(double a, double b) {
    uint64_t x, y;
    memcpy(&x, &a, 8);
    memcpy(&y, &b, 8);
    return x == y || (a != a && b != b);
}

/* Ordinary numbers, and what is special about doubles. */
static void fill(double *to, int n) {
    static const double special[] = {0.,       -0.,     1.,      -1.,  INFINITY, -INFINITY,
                                     NAN,      0.5,     2.5,     -2.5, 1e-310,   -1e-310,
                                     -DBL_MAX, DBL_MAX, DBL_MIN, -0.5, 1e200,    4503599627370497.};
    int i;
    for (i = 0; i < n; i++)
        to[i] = i % 3 == 0 ? special[(int)dvt_test_random(0, 18)] : dvt_test_random(-4, 4);
}

static dvti_view row_of(void *data, dvt_dtype dtype, int64_t n, int64_t step) {
    dvti_view view;
    memset(&view, 0, sizeof view);
    view.data = data;
    view.dtype = dtype;
    view.ndim = 1;
    view.dim[0] = n;
    view.stride[0] = step;
    return view;
}

static dvti_launch launch_of(const op_row *row) {
    dvti_launch launch;
    memset(&launch, 0, sizeof launch);
    launch.kernel = DVTI_K_ELEMENTWISE;
    launch.op = row->op;
    launch.compute = DVTI_F64;
    launch.n_in = row->operands;
    launch.n_out = 1;
    launch.f[1] = -1.5;
    launch.f[2] = 2.5;
    return launch;
}

static void run_on(const char *isa, const dvti_launch *launch) {
    CHECK(dvt_set_cpu_isa(isa) == DVT_OK);
    dvti_cpu_run(launch);
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
}

static void reference(const op_row *row, double *const *in, const int *step, double *out, int n) {
    dvti_launch launch = launch_of(row);
    int k;
    for (k = 0; k < row->operands; k++)
        launch.in[k] = row_of(in[k], DVT_F64, n, step[k]);
    launch.out[0] = row_of(out, DVT_F64, n, 1);
    run_on("reference", &launch);
    /* Far below 0 the reference's formula cancels, and a tier's does not. */
    for (k = 0; row->op == DVTI_OP_gelu && k < n; k++)
        out[k] = (double)gelu_f80((long double)in[0][k * step[0]]);
}

/* Functions within some units in the last place; the rest exactly, where one zero is as good as the other. */
static bool near(dvti_op op, double got, double expected) {
    double scale = fabs(expected) < DBL_MIN ? DBL_MIN : fabs(expected);
    bool function = (op >= DVTI_OP_exp && op <= DVTI_OP_gelu) || op == DVTI_OP_pow ||
                    op == DVTI_OP_atan2 || op == DVTI_OP_hypot;
    return same_bits(got, expected) || got == expected ||
           (function && fabs(got - expected) <= 5 * DBL_EPSILON * scale);
}

static void check_run(const dvti_simd *tier, const op_row *row, const int *step, int n, bool at_end,
                      const guard *memory, double *const *in, const double *expected,
                      double *first) {
    dvti_loop loop;
    double *out;
    int k, i, bad = -1;
    memset(&loop, 0, sizeof loop);
    for (k = 0; k < row->operands; k++) {
        size_t bytes = sizeof(double) * (size_t)(step[k] ? n : 1);
        void *at = at_end ? guard_end(memory[k], bytes) : guard_start(memory[k]);
        memcpy(at, in[k], bytes);
        loop.in[k] = at;
        loop.step[k] = step[k];
    }
    out = (double *)(at_end ? guard_end(memory[3], sizeof(double) * (size_t)n)
                            : guard_start(memory[3]));
    loop.out = out;
    loop.op = row->op;
    loop.n = n;
    loop.low = -1.5;
    loop.high = 2.5;
    tier->f64->loop(row->op)(&loop);
    for (i = 0; i < n; i++)
        if (!near(row->op, out[i], expected[i]) || (first && !same_bits(out[i], first[i])))
            bad = i;
    dvt_test_check(
        bad < 0, __FILE__, __LINE__,
        "%s, %s, %d elements, steps %d %d: element %d, of %.17g, is %.17g, reference %.17g, other "
        "tier %.17g",
        tier->name, row->name, n, step[0], step[1], bad, bad < 0 ? 0 : in[0][bad * step[0]],
        bad < 0 ? 0 : out[bad], bad < 0 ? 0 : expected[bad], bad < 0 || !first ? 0 : first[bad]);
}

DVT_TEST(loops_of_double_of_every_tier) {
    static double operand[3][LONGEST], expected[LONGEST], first[LONGEST];
    double *in[3] = {operand[0], operand[1], operand[2]};
    guard memory[4] = {guard_new(sizeof operand[0]), guard_new(sizeof operand[0]),
                       guard_new(sizeof operand[0]), guard_new(sizeof operand[0])};
    int r, n, form;
    for (r = 0; r < ROWS; r++)
        for (n = 1; n <= LONGEST; n = n < 20 ? n + 1 : n + 21)
            for (form = 0; form < 1 << op_rows[r].operands; form++) {
                const int step[3] = {!(form & 1), !(form & 2), !(form & 4)};
                bool have_first = false;
                fill(operand[0], LONGEST);
                fill(operand[1], LONGEST);
                fill(operand[2], LONGEST);
                reference(&op_rows[r], in, step, expected, n);
                FOR_EACH_TIER({
                    CHECK(tier->f64->loop(op_rows[r].op) != NULL);
                    check_run(tier, &op_rows[r], step, n, true, memory, in, expected,
                              have_first ? first : NULL);
                    if (!have_first)
                        memcpy(first, guard_end(memory[3], sizeof(double) * (size_t)n),
                               sizeof(double) * (size_t)n);
                    have_first = true;
                    check_run(tier, &op_rows[r], step, n, false, memory, in, expected, first);
                });
            }
    for (n = 0; n < 4; n++)
        guard_free(memory[n]);
}

/* ---- rows ---- */
static const dvt_dtype row_dtypes[] = {DVT_F32, DVT_F16, DVT_BF16, DVT_I8, DVT_U8, DVT_BOOL};

/* Every byte pattern is a number, or a NaN, of some dtype. */
DVT_TEST(rows_to_and_from_doubles) {
    enum { MOST = 150 };

    static double got[MOST], expected[MOST];
    static unsigned char narrow[MOST * 4];
    guard wide = guard_new(MOST * 8), small = guard_new(MOST * 4);
    int d, n, i;
    for (d = 0; d < 6; d++)
        for (n = 1; n <= MOST; n = n < 36 ? n + 1 : n + 19)
            FOR_EACH_TIER({
                const dvt_dtype dtype = row_dtypes[d];
                const size_t bytes = (size_t)n * (size_t)dvt_dtype_size(dtype);
                char *src = (char *)guard_end(small, bytes);
                double *dst = (double *)guard_end(wide, (size_t)n * 8);
                bool ok = true;
                for (i = 0; i < (int)bytes; i++)
                    src[i] = (char)(int)dvt_test_random(-128, 128);
                dvti_load_row_f64(src, dtype, 1, n, expected);
                CHECK(tier->f64->load_row(src, dtype, n, dst));
                for (i = 0; i < n; i++)
                    ok = ok && same_bits(dst[i], expected[i]);
                dvt_test_check(ok, __FILE__, __LINE__, "%s: %d of dtype %d to double", tier->name,
                               n, (int)dtype);
                if (dtype != DVT_F32 && dtype != DVT_BOOL)
                    continue;
                fill(got, n);
                memcpy(dst, got, (size_t)n * 8);
                dvti_store_row_f64(narrow, dtype, 1, n, got);
                CHECK(tier->f64->store_row(src, dtype, n, dst));
                for (i = 0, ok = true; i < n; i++)
                    ok = ok && (got[i] != got[i] && dtype == DVT_F32
                                    ? ((float *)(void *)src)[i] != ((float *)(void *)src)[i]
                                    : !memcmp(src + i * dvt_dtype_size(dtype),
                                              narrow + i * dvt_dtype_size(dtype),
                                              (size_t)dvt_dtype_size(dtype)));
                dvt_test_check(ok, __FILE__, __LINE__, "%s: %d doubles to dtype %d", tier->name, n,
                               (int)dtype);
                if (dtype == DVT_F32) { /* the way of launches in float */
                    CHECK(tier->load_row(dst, DVT_F64, n, (float *)(void *)src));
                    for (i = 0, ok = true; i < n; i++)
                        ok = ok && same_bits_f32(((float *)(void *)src)[i], (float)got[i]);
                    dvt_test_check(ok, __FILE__, __LINE__, "%s: %d doubles to float", tier->name,
                                   n);
                    src = (char *)guard_end(small, bytes);
                    dst = (double *)guard_end(wide, (size_t)n * 8);
                    CHECK(tier->store_row(dst, DVT_F64, n, (const float *)(void *)src));
                    for (i = 0, ok = true; i < n; i++)
                        ok = ok && same_bits(dst[i], (double)((float *)(void *)src)[i]);
                    dvt_test_check(ok, __FILE__, __LINE__, "%s: %d floats to double", tier->name,
                                   n);
                }
            });
    guard_free(wide);
    guard_free(small);
}

/* ---- whole launches ---- */
enum { HEIGHT = 61, WIDTH = 150 };

static dvti_view matrix_of(void *data, dvt_dtype dtype, int64_t down, int64_t across) {
    dvti_view view = row_of(data, dtype, HEIGHT, down);
    view.ndim = 2;
    view.dim[1] = WIDTH;
    view.stride[1] = across;
    return view;
}

/* A matrix and a row, a column, one element, the turned matrix, every second element, floats; results that are doubles, floats and bool;
   one and two threads. Exact operations: so the reference's bits. */
DVT_TEST(launches_of_double_in_every_layout) {
    static const op_row rows[] = {{"add", DVTI_OP_add, 2},
                                  {"div", DVTI_OP_div, 2},
                                  {"maximum", DVTI_OP_maximum, 2},
                                  {"less", DVTI_OP_less, 2}};
    static double a[HEIGHT * WIDTH], b[2 * HEIGHT * WIDTH], expected[HEIGHT * WIDTH],
        got[HEIGHT * WIDTH];
    static float floats[HEIGHT * WIDTH];
    int r, form, i, threads;
    fill(a, HEIGHT * WIDTH);
    fill(b, 2 * HEIGHT * WIDTH);
    for (i = 0; i < HEIGHT * WIDTH; i++)
        floats[i] = (float)b[i];
    for (r = 0; r < 4; r++)
        for (form = 0; form < 8; form++) {
            static const dvt_dtype results[] = {DVT_F64, DVT_F32, DVT_BOOL};
            static const int strides[8][2] = {{WIDTH, 1},  {0, 1},         {1, 0},     {0, 0},
                                              {1, HEIGHT}, {2 * WIDTH, 2}, {WIDTH, 1}, {WIDTH, 1}};
            dvti_launch launch = launch_of(&rows[r]);
            dvt_dtype result = results[rows[r].op == DVTI_OP_less ? 2 : form == 7 ? 1 : 0];
            launch.in[0] = matrix_of(a, DVT_F64, WIDTH, 1);
            launch.in[1] =
                matrix_of(form == 6 ? (void *)floats : (void *)b, form == 6 ? DVT_F32 : DVT_F64,
                          strides[form][0], strides[form][1]);
            if (form == 3) {
                launch.i[0] = 2;
                launch.f[0] = 1.25;
            }
            memset(expected, 0, sizeof expected);
            launch.out[0] = matrix_of(expected, result, WIDTH, 1);
            run_on("reference", &launch);
            launch.out[0].data = got;
            FOR_EACH_TIER(for (threads = 1; threads <= 2; threads++) {
                CHECK(dvt_set_num_threads(threads) == DVT_OK);
                memset(got, 0, sizeof got);
                run_on(tier->name, &launch);
                CHECK(dvt_set_num_threads(0) == DVT_OK);
                for (i = 0; i < HEIGHT * WIDTH; i++) {
                    double mine = dvti_load_f64(got, result, i);
                    double other = dvti_load_f64(expected, result, i);
                    if (!same_bits(mine, other) && mine != other)
                        break;
                }
                dvt_test_check(i == HEIGHT * WIDTH, __FILE__, __LINE__,
                               "%s, %s, layout %d, %d threads: element %d", tier->name,
                               rows[r].name, form, threads, i);
            });
        }
}
