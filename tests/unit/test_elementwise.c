/* Tests of elementwise operations of one argument. Loops over the op table check every row: dtypes,
   views, in-place forms and devices. The values are compared with formulas written a second time in
   double precision. A new row needs its formula in reference_unary. */
#include "elementwise_inputs.h"

typedef struct unary_row {
    const char *name;
    dvti_op op;
    rule kind;
    dvt_array *(*call)(dvt_array *);
    dvt_array *(*in_place)(dvt_array *);
    double low, high;
} unary_row;

#define ROW(name, rule, cost, f, i, vector, math, grad, reads, lo, hi, doc)                        \
    {#name, DVTI_OP_##name, RULE_##rule, dvt_##name, IN_PLACE_##rule(dvt_##name##_), lo, hi},
static const unary_row unary_rows[] = {DVTI_UNARY_TABLE(ROW)};
#undef ROW

/* ---- the same formulas, written a second time ---- */
static double reference_unary(dvti_op op, double x) {
    switch ((int)op) {
    case DVTI_OP_neg:
        return -x;
    case DVTI_OP_abs:
        return fabs(x);
    case DVTI_OP_sign:
        return isnan(x) ? x : (double)((x > 0) - (x < 0));
    case DVTI_OP_square:
        return x * x;
    case DVTI_OP_relu:
        return isnan(x) ? x : fmax(x, 0);
    case DVTI_OP_floor:
        return floor(x);
    case DVTI_OP_ceil:
        return -floor(-x);
    case DVTI_OP_round:
        return fabs(x - trunc(x)) == 0.5 ? 2 * floor(x / 2 + 0.5) : floor(x + 0.5);
    case DVTI_OP_trunc:
        return x < 0 ? ceil(x) : floor(x);
    case DVTI_OP_reciprocal:
        return 1 / x;
    case DVTI_OP_sqrt:
        return x < 0 ? NAN : x == 0 ? x : exp(0.5 * log(x));
    case DVTI_OP_rsqrt:
        return x < 0 ? NAN : exp(-0.5 * log(x));
    case DVTI_OP_exp:
        return exp(x);
    case DVTI_OP_exp2:
        return exp(x * log(2));
    case DVTI_OP_expm1:
        return fabs(x) < 1e-5 ? x + x * x / 2 : exp(x) - 1;
    case DVTI_OP_log:
        return log(x);
    case DVTI_OP_log2:
        return log(x) / log(2);
    case DVTI_OP_log10:
        return log(x) / log(10);
    case DVTI_OP_log1p:
        return log(1 + x);
    case DVTI_OP_sin:
        return sin(x);
    case DVTI_OP_cos:
        return sin(x + 1.57079632679489661923);
    case DVTI_OP_tan:
        return sin(x) / cos(x);
    case DVTI_OP_asin:
        return atan2(x, sqrt(1 - x * x));
    case DVTI_OP_acos:
        return atan2(sqrt(1 - x * x), x);
    case DVTI_OP_atan:
        return atan2(x, 1);
    case DVTI_OP_sinh:
        return (exp(x) - exp(-x)) / 2;
    case DVTI_OP_cosh:
        return (exp(x) + exp(-x)) / 2;
    case DVTI_OP_tanh:
        return 1 - 2 / (exp(2 * x) + 1);
    case DVTI_OP_sigmoid:
        return 1 / (1 + exp(-x));
    case DVTI_OP_softplus:
        return fmax(x, 0) + log1p(exp(-fabs(x)));
    case DVTI_OP_erf:
        return 1 - erfc(x);
    case DVTI_OP_gelu:
        return x * 0.5 * erfc(-x / sqrt(2));
    case DVTI_OP_isnan:
        return isnan(x) != 0;
    case DVTI_OP_isinf:
        return isinf(x) != 0;
    case DVTI_OP_isfinite:
        return isfinite(x) != 0;
    case DVTI_OP_logical_not:
        return !x;
    default:
        return 1e300; /* a row without a formula: the test fails */
    }
}

static bool check_unary(const unary_row *row, dvt_array *x, dvt_array *y) {
    double *in = dvt_test_values(x), *out = y ? dvt_test_values(y) : NULL;
    dvt_dtype dtype = dvt_dtype_of(x);
    bool ok = dvt_test_check(in && out, __FILE__, __LINE__, "dvt_%s of %s: %s", row->name,
                             dvt_dtype_name(dtype), dvt_error());
    int64_t i;
    for (i = 0; ok && i < dvt_size(x); i++) {
        double v = reference_unary(row->op, in[i]), tolerance = tolerance_of(dvt_dtype_of(y));
        if (!dvt_dtype_is_float(dvt_dtype_of(y))) {
            v = wrapped(v, dvt_dtype_of(y));
            tolerance = 0;
        }
        ok = dvt_test_check(dvt_test_close(out[i], v, tolerance), __FILE__, __LINE__,
                            "dvt_%s of %s %.17g is %.17g, expected %.17g", row->name,
                            dvt_dtype_name(dtype), in[i], out[i], v);
    }
    free(in);
    free(out);
    return ok;
}

DVT_TEST(unary_values_dtypes_and_views) {
    int r, d, l;
    for (r = 0; r < LENGTH(unary_rows); r++)
        for (d = 0; d < DVT_DTYPE_COUNT; d++)
            DVT_SCOPE {
                const unary_row *row = &unary_rows[r];
                dvt_dtype dtype = (dvt_dtype)d;
                dvt_array *x =
                    random_array(DVT_SHAPE(7, 90), dtype, row->low, row->high, dvt_cpu());
                if (row->kind == RULE_NOBOOL && dtype == DVT_BOOL) {
                    CHECK_ERROR(row->call(x), DVT_ERR_DTYPE);
                    continue;
                }
                for (l = 0; l < LAYOUTS; l++) {
                    dvt_array *in = layout(x, l), *y = row->call(in);
                    CHECK(check_unary(row, in, y));
                    CHECK_INT(dvt_dtype_of(y), expected_dtype(row->kind, dtype));
                    CHECK(dvt_shape_equal(dvt_shape_of(y), dvt_shape_of(in)));
                    CHECK(dvt_is_contiguous(y) && !dvt_shares_memory(x, y));
                }
            }
}

/* Writes into a view: only the elements of the view change. */
DVT_TEST(unary_in_place) {
    int r, d;
    for (r = 0; r < LENGTH(unary_rows); r++)
        for (d = 0; d < DVT_DTYPE_COUNT; d++)
            DVT_SCOPE {
                const unary_row *row = &unary_rows[r];
                dvt_dtype dtype = (dvt_dtype)d;
                dvt_array *x, *before, *view, *others;
                if (!row->in_place)
                    continue;
                x = random_array(DVT_SHAPE(6, 40), dtype, row->low, row->high, dvt_cpu());
                if ((row->kind == RULE_FLOAT && !dvt_dtype_is_float(dtype)) ||
                    (row->kind == RULE_NOBOOL && dtype == DVT_BOOL)) {
                    CHECK_ERROR(row->in_place(x), DVT_ERR_DTYPE);
                    continue;
                }
                before = dvt_copy(x);
                view = dvt_t(dvt_slice(x, 1, 1, DVT_END, 2));
                others = dvt_slice(x, 1, 0, DVT_END, 2);
                CHECK(row->in_place(view) == view);
                CHECK(check_unary(row, dvt_t(dvt_slice(before, 1, 1, DVT_END, 2)), view));
                CHECK(dvt_item(dvt_all(dvt_equal(others, dvt_slice(before, 1, 0, DVT_END, 2)),
                                       DVT_ALL)) == 1);
                CHECK_ERROR(row->in_place(dvt_broadcast_to(x, DVT_SHAPE(2, 6, 40))), DVT_ERR_VALUE);
            }
}

/* 16-bit floats are computed in float32 and rounded once. */
DVT_TEST(unary_16_bit_floats_round_once) {
    int r, half;
    for (r = 0; r < LENGTH(unary_rows); r++)
        for (half = 0; half < 2; half++)
            DVT_SCOPE {
                const unary_row *row = &unary_rows[r];
                dvt_dtype dtype = half ? DVT_F16 : DVT_BF16;
                dvt_array *x = random_array(DVT_SHAPE(600), dtype, row->low, row->high, dvt_cpu());
                dvt_array *y = row->call(x);
                dvt_array *wide =
                    dvt_as_in_dtype(row->call(dvt_as_in_dtype(x, DVT_F32)), dvt_dtype_of(y));
                CHECK(dvt_item(dvt_all(dvt_equal(y, wide), DVT_ALL)) == 1);
            }
}

/* At minus infinity x times 0 would be NaN; the limit is -0. */
DVT_TEST(gelu_at_infinity) {
    static const double values[] = {-INFINITY, INFINITY, NAN, -3e38};
    static const dvt_dtype dtypes[] = {DVT_F16, DVT_BF16, DVT_F32, DVT_F64};
    int isa, d;
    for (isa = 0; isa < 2; isa++)
        for (d = 0; d < LENGTH(dtypes); d++)
            DVT_SCOPE {
                double *y;
                CHECK(dvt_set_cpu_isa(isa ? "reference" : NULL) == DVT_OK);
                y = dvt_test_values(dvt_gelu(dvt_as_in_dtype(
                    dvt_from_host(values, DVT_SHAPE(4), DVT_F64, dvt_cpu()), dtypes[d])));
                CHECK(y && y[0] == 0 && signbit(y[0]) && y[1] == INFINITY && y[2] != y[2]);
                CHECK(y && y[3] == 0 && signbit(y[3]));
                free(y);
            }
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
}

/* Far below 0 the result is small, but keeps full relative precision. */
DVT_TEST(gelu_keeps_relative_precision) {
    static const double values[] = {-2, -5, -8, -12};
    int isa, wide, i;
    for (isa = 0; isa < 2; isa++)
        for (wide = 0; wide < 2; wide++)
            DVT_SCOPE {
                double *y;
                CHECK(dvt_set_cpu_isa(isa ? "reference" : NULL) == DVT_OK);
                y = dvt_test_values(dvt_gelu(
                    dvt_as_in_dtype(dvt_from_host(values, DVT_SHAPE(4), DVT_F64, dvt_cpu()),
                                    wide ? DVT_F64 : DVT_F32)));
                for (i = 0; y && i < 4; i++) {
                    double exact = 0.5 * values[i] * erfc(-values[i] / sqrt(2));
                    CHECK(fabs(y[i] / exact - 1) < (wide ? 1e-13 : 1e-5));
                }
                CHECK(y != NULL);
                free(y);
            }
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
}

DVT_TEST(unary_null_and_devices) {
    int r;
    dvt_set_virtual_gpus(1, 0);
    for (r = 0; r < LENGTH(unary_rows); r++)
        DVT_SCOPE {
            const unary_row *row = &unary_rows[r];
            dvt_array *x = random_array(DVT_SHAPE(5, 7), DVT_F32, row->low, row->high, dvt_cpu());
            dvt_array *there = row->call(dvt_copyto(x, dvt_gpu(0)));
            CHECK(there && dvt_ctx_equal(dvt_ctx_of(there), dvt_gpu(0)));
            CHECK(same_values(row->call(x), there));
            CHECK_ERROR(row->call(NULL), DVT_ERR_NULL_ARGUMENT);
        }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}
