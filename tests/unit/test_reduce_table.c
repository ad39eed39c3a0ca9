/* Tests of every row of the reduction table: values against an oracle. test_gradients_sums.c tests
   gradients. */
#include "../../src/2_core/dvt_optimizer_table.h"
#include "../../src/2_core/dvt_reduce_table.h"
#include "../../src/2_core/dvt_op_table.h"
#include "dvt_test.h"
#include <float.h>

/* Returns one of three forms of axes. */
static dvt_axes axes_of(int form) {
    return form == 0 ? DVT_ALL : form == 1 ? DVT_AXES(1) : DVT_AXES(0);
}

typedef dvt_array *(*reduce_fn)(dvt_array *x, int form);

#define CALL_SUM(name) dvt_##name(x, dvt_keepdims(axes_of(form)))
#define CALL_FLOAT(name) CALL_SUM(name)
#define CALL_SAME(name) CALL_SUM(name)
#define CALL_BOOL(name) CALL_SUM(name)
#define CALL_PLACE(name) CALL_SUM(name)
#define ROW(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)                \
    static dvt_array *call_##name(dvt_array *x, int form) {                                        \
        return CALL_##rule(name);                                                                  \
    }
DVTI_REDUCE_TABLE(ROW)
#undef ROW

typedef struct reduce_row {
    const char *name;
    reduce_fn call;
    dvti_reduce_rule rule;
    dvti_reduce_method method;
    double low, high;
} reduce_row;

#define ROW(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)                \
    {#name, call_##name, DVTI_RESULT_##rule, DVTI_METHOD_##method, lo, hi},
static const reduce_row rows[] = {DVTI_REDUCE_TABLE(ROW)};
#undef ROW

enum { ROWS = (int)(sizeof rows / sizeof rows[0]) };

/* ---- values ---- */
/* Returns the tolerance. Integers, indices, extremes and bools are exact. Sums of n float64 numbers
   in two orders differ by n roundings of their magnitudes, here all below 8. Results are rounded to
   their dtype. */
static double tolerance(const reduce_row *row, dvt_dtype dtype, int64_t n, double size) {
    const double unit = dtype == DVT_F64    ? DBL_EPSILON
                        : dtype == DVT_F32  ? (double)FLT_EPSILON
                        : dtype == DVT_F16  ? 0x1p-10
                        : dtype == DVT_BF16 ? 0x1p-7
                                            : 0;
    if (row->rule == DVTI_RESULT_BOOL || row->rule == DVTI_RESULT_PLACE ||
        row->rule == DVTI_RESULT_SAME)
        return 0;
    return unit * (1 + fabs(size)) + (unit ? 8 * DBL_EPSILON * (double)n * (1 + fabs(size)) : 0) +
           (unit > DBL_EPSILON ? (double)FLT_EPSILON * 8 * (double)n : 0);
}

static void check_values(const reduce_row *row, dvt_dtype dtype, dvt_shape shape, int form) {
    DVT_SCOPE {
        dvt_array *wide =
            dvt_key_uniform(dvt_key_new(3), row->low, row->high, shape, DVT_F64, dvt_cpu());
        dvt_array *x =
            dvt_as_in_dtype(dvt_dtype_is_float(dtype) ? wide : dvt_mul_scalar(wide, 5), dtype);
        dvt_array *got = row->call(x, form), *expected;
        double *a, *b;
        int64_t i, n;
        CHECK_INT(dvt_set_cpu_isa("reference"), DVT_OK);
        expected = row->call(x, form);
        CHECK_INT(dvt_set_cpu_isa(NULL), DVT_OK);
        CHECK(got && expected && dvt_shape_equal(dvt_shape_of(got), dvt_shape_of(expected)));
        CHECK_INT(dvt_dtype_of(got), dvt_dtype_of(expected));
        n = dvt_size(got);
        a = dvt_test_values(got);
        b = dvt_test_values(expected);
        for (i = 0; i < n; i++) {
            const bool near =
                fabs(a[i] - b[i]) <= tolerance(row, dvt_dtype_of(got), dvt_size(x) / n, b[i]);
            dvt_test_check(a[i] == b[i] || near, __FILE__, __LINE__,
                           "%s of %s, form %d, result %d: %.17g, oracle %.17g", row->name,
                           dvt_dtype_name(dtype), form, (int)i, a[i], b[i]);
        }
        free(a);
        free(b);
    }
}

DVT_TEST(reduce_table_values) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16, DVT_I8,
                                       DVT_U8,  DVT_I32, DVT_I64, DVT_BOOL};
    int r, d, form;
    for (r = 0; r < ROWS; r++)
        for (d = 0; d < 9; d++)
            for (form = 0; form < 3; form++) {
                check_values(&rows[r], dtypes[d], DVT_SHAPE(3, 7), form);
                check_values(&rows[r], dtypes[d], DVT_SHAPE(40, 37), form);
                check_values(&rows[r], dtypes[d], DVT_SHAPE(2, 1100), form);
            }
}

/* An empty reduction gives the finished initial value, or an error for an extreme. */
DVT_TEST(reduce_table_without_elements) {
    int r;
    for (r = 0; r < ROWS; r++) {
        dvt_array *x = dvt_zeros(DVT_SHAPE(2, 0), DVT_F32, dvt_cpu()), *y;
        if (rows[r].rule == DVTI_RESULT_SAME || rows[r].rule == DVTI_RESULT_PLACE) {
            CHECK_ERROR(rows[r].call(x, 1), DVT_ERR_SHAPE);
            continue;
        }
        y = rows[r].call(x, 1);
        CHECK(y && dvt_size(y) == 2);
        if (y)
            CHECK_INT(dvt_wait(y), DVT_OK);
    }
}
