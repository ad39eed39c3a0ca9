/* Elementwise loops of every ISA target, for float and double. Results are close to the reference,
   with the same bits on all ISA targets, and no access outside the operands. Operands may repeat.
   Also whole launches with every layout that has a path of its own. */
#include "isa.h"
#include "math_rows.h"

typedef struct op_row {
    const char *name;
    dvti_op op;
    int operands;
} op_row;

#define UNARY(name, rule, ...) {#name, DVTI_OP_##name, 1},
#define BINARY(name, rule, ...) {#name, DVTI_OP_##name, 2},
static const op_row op_rows[] = {DVTI_UNARY_TABLE(UNARY)
                                     DVTI_BINARY_TABLE(BINARY){"where", DVTI_OP_where, 3},
                                 {"clip", DVTI_OP_clip, 1}};
#undef UNARY
#undef BINARY

enum { ROWS = (int)(sizeof op_rows / sizeof op_rows[0]), LONGEST = 83, HEIGHT = 61, WIDTH = 150 };

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

static dvti_view matrix_of(void *data, dvt_dtype dtype, int64_t down, int64_t across) {
    dvti_view view = row_of(data, dtype, HEIGHT, down);
    view.ndim = 2;
    view.dim[1] = WIDTH;
    view.stride[1] = across;
    return view;
}

static void run_on(const char *isa, const dvti_launch *launch) {
    CHECK(dvt_set_cpu_isa(isa) == DVT_OK);
    dvti_cpu_run(launch);
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
}

static double ulps_f64(dvti_op op) {
    static const char *const files[] = {
#define FILES(name, rule, cost, f, i, vector, math, ...) math,
        DVTI_UNARY_TABLE(FILES) DVTI_BINARY_TABLE(FILES)
#undef FILES
    };

    return (size_t)op < sizeof files / sizeof *files && files[op] ? 5 : 0;
}

#define E float
#define T(name) name##_f32
#define OWN DVT_F32
#define COMPUTE DVTI_F32
#define OTHER double
#define LEAST ((double)FLT_MIN)
#define EPSILON ((double)FLT_EPSILON)
#define SPECIAL                                                                                    \
    0.f, -0.f, 1.f, -1.f, INFINITY, -INFINITY, NAN, 0.5f, 2.5f, -2.5f, 1e-40f, -1e-40f, -FLT_MAX,  \
        FLT_MAX, FLT_MIN, -0.5f, 1e20f, 8388609.f
#define LOOP(target, op) (target)->loop_f32(op)
#define ULPS(op) ((void)(op), 6)
#define GELU(x) (float)gelu_f64((double)(x))
#include "loops_typed.h"

#define E double
#define T(name) name##_f64
#define OWN DVT_F64
#define COMPUTE DVTI_F64
#define OTHER float
#define LEAST DBL_MIN
#define EPSILON DBL_EPSILON
#define SPECIAL                                                                                    \
    0., -0., 1., -1., INFINITY, -INFINITY, NAN, 0.5, 2.5, -2.5, 1e-310, -1e-310, -DBL_MAX,         \
        DBL_MAX, DBL_MIN, -0.5, 1e200, 4503599627370497.
#define LOOP(target, op) (target)->f64->loop(op)
#define ULPS(op) ulps_f64(op)
#define GELU(x) gelu_f80((long double)(x))
#include "loops_typed.h"

DVT_TEST(loops_of_every_target) {
    int r;
    check_loops_f32();
    check_loops_f64();
    for (r = 0; r < ROWS; r++)
        FOR_EACH_TARGET(CHECK(target->f64->loop(op_rows[r].op) != NULL));
}

DVT_TEST(launches_in_every_layout) {
    check_launches_f32();
    check_launches_f64();
}

DVT_TEST(a_target_is_chosen_by_name) {
    const char *best = dvt_cpu_isa();
    CHECK_ERROR(dvt_set_cpu_isa("sse9"), DVT_ERR_VALUE);
    CHECK_STR(dvt_cpu_isa(), best);
    FOR_EACH_TARGET({
        CHECK(dvt_set_cpu_isa(target->name) == DVT_OK);
        CHECK_STR(dvt_cpu_isa(), target->name);
        CHECK(dvti_simd_now() == target);
    });
    CHECK(dvt_set_cpu_isa("reference") == DVT_OK);
    CHECK_STR(dvt_cpu_isa(), "reference");
    CHECK(dvti_simd_now() == NULL);
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
}
