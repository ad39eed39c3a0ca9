/* Elementwise operations. What every row of the op table promises is checked by loops over the table: values against formulas written
   here a second time in double precision, dtypes, views, forms that write in place, numbers on either side, devices. A new row
   needs its formula in reference_unary or reference_binary. */
#include "../../src/2_core/dvt_op_table.h"
#include "dvt_test.h"

typedef enum rule { RULE_SAME, RULE_NOBOOL, RULE_FLOAT, RULE_BOOL } rule;

typedef struct unary_row {
    const char *name;
    dvti_op op;
    rule kind;
    dvt_array *(*call)(dvt_array *);
    dvt_array *(*in_place)(dvt_array *);
    double low, high;
} unary_row;

typedef struct binary_row {
    const char *name;
    dvti_op op;
    rule kind;
    dvt_array *(*call)(dvt_array *, dvt_array *);
    dvt_array *(*with_scalar)(dvt_array *, double);
    dvt_array *(*scalar_with)(double, dvt_array *);
    dvt_array *(*in_place)(dvt_array *, dvt_array *);
    dvt_array *(*scalar_in_place)(dvt_array *, double);
    double low[2], high[2];
} binary_row;

#define IN_PLACE_SAME(f) f
#define IN_PLACE_NOBOOL(f) f
#define IN_PLACE_FLOAT(f) f
#define IN_PLACE_BOOL(f) NULL
#define ROW(name, rule, f, i, g, lo, hi, doc)                                                      \
    {#name, DVTI_OP_##name, RULE_##rule, dvt_##name, IN_PLACE_##rule(dvt_##name##_), lo, hi},
static const unary_row unary_rows[] = {DVTI_UNARY_TABLE(ROW)};
#undef ROW
#define ROW(name, rule, f, i, ga, gb, la, ha, lb, hb, doc)                                         \
    {#name,                                                                                        \
     DVTI_OP_##name,                                                                               \
     RULE_##rule,                                                                                  \
     dvt_##name,                                                                                   \
     dvt_##name##_scalar,                                                                          \
     dvt_scalar_##name,                                                                            \
     IN_PLACE_##rule(dvt_##name##_),                                                               \
     IN_PLACE_##rule(dvt_##name##_scalar_),                                                        \
     {la, lb},                                                                                     \
     {ha, hb}},
static const binary_row binary_rows[] = {DVTI_BINARY_TABLE(ROW)};
#undef ROW

#define LENGTH(a) ((int)(sizeof(a) / sizeof((a)[0])))

/* ---- the same formulas once more ---- */
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
        return 1e300; /* no formula: fails */
    }
}

static double reference_floor_div(double a, double b) {
    return b == 0 ? a / b : floor(a / b);
}

static double reference_binary(dvti_op op, double a, double b) {
    switch ((int)op) {
    case DVTI_OP_add:
        return a + b;
    case DVTI_OP_sub:
        return a - b;
    case DVTI_OP_mul:
        return a * b;
    case DVTI_OP_div:
        return a / b;
    case DVTI_OP_floor_div:
        return reference_floor_div(a, b);
    case DVTI_OP_mod:
        return b == 0 ? NAN : a - floor(a / b) * b;
    case DVTI_OP_pow:
        return pow(a, b);
    case DVTI_OP_minimum:
        return a < b ? a : b;
    case DVTI_OP_maximum:
        return a < b ? b : a;
    case DVTI_OP_atan2:
        return atan2(a, b);
    case DVTI_OP_hypot:
        return sqrt(a * a + b * b);
    case DVTI_OP_equal:
        return !(a < b || a > b);
    case DVTI_OP_not_equal:
        return a < b || a > b;
    case DVTI_OP_less:
        return b - a > 0;
    case DVTI_OP_less_equal:
        return b - a >= 0;
    case DVTI_OP_greater:
        return a - b > 0;
    case DVTI_OP_greater_equal:
        return a - b >= 0;
    case DVTI_OP_logical_and:
        return a && b;
    case DVTI_OP_logical_or:
        return a || b;
    case DVTI_OP_logical_xor:
        return !a != !b;
    default:
        return 1e300;
    }
}

/* Integers, as they are stored: wrapped to the dtype; x / 0 and x mod 0 are 0, negative powers are cut. */
static double wrapped(double v, dvt_dtype dtype) {
    switch ((int)dtype) {
    case DVT_I8:
        return v - 256 * floor((v + 128) / 256);
    case DVT_U8:
        return v - 256 * floor(v / 256);
    case DVT_BOOL:
        return v != 0;
    default:
        return v;
    }
}

static double reference_integer(dvti_op op, double a, double b, dvt_dtype dtype) {
    double v;
    if ((op == DVTI_OP_floor_div || op == DVTI_OP_mod) && b == 0)
        return 0;
    v = op == DVTI_OP_pow && b < 0 && a == 0 ? 0 : trunc(reference_binary(op, a, b));
    return wrapped(v, dtype);
}

/* ---- inputs ---- */
static double tolerance_of(dvt_dtype dtype) {
    return dtype == DVT_F64 ? 1e-12 : dtype == DVT_F32 ? 3e-6 : dtype == DVT_F16 ? 1e-3 : 8e-3;
}

static dvt_array *random_array(dvt_shape shape, dvt_dtype dtype, double low, double high,
                               dvt_ctx ctx) {
    int64_t n = dvt_shape_size(shape), i;
    double *values = (double *)malloc(sizeof(double) * (size_t)(n ? n : 1));
    dvt_array *x;
    if (!dvt_dtype_is_float(dtype)) {
        low = dtype == DVT_U8 || dtype == DVT_BOOL ? 0 : -4;
        high = dtype == DVT_BOOL ? 2 : 6;
    }
    for (i = 0; i < n; i++) {
        values[i] = dvt_test_random(low, high);
        if (!dvt_dtype_is_float(dtype))
            values[i] = floor(values[i]);
    }
    x = dvt_astype(dvt_from_host(values, shape, DVT_F64, ctx), dtype, false);
    free(values);
    return x;
}

/* The same (7, 90) values, or some of them, in different memory layouts. */
enum { LAYOUTS = 7 };

static dvt_array *layout(dvt_array *x, int which) {
    switch (which) {
    case 0:
        return x;
    case 1:
        return dvt_t(dvt_contiguous(dvt_t(x))); /* column by column */
    case 2:
        return dvt_slice(x, 1, 1, DVT_END, 3); /* with gaps */
    case 3:
        return dvt_slice(dvt_slice(x, 1, -1, DVT_END, -1), 0, -1, DVT_END, -2); /* backwards */
    case 4:
        return dvt_broadcast_to(dvt_slice(x, 1, 4, 5, 1), DVT_SHAPE(7, 600));
    case 5:
        return dvt_index(dvt_index(x, 3), 2); /* no axes */
    default:
        return dvt_slice(x, 0, 2, 2, 1); /* no elements */
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

static dvt_dtype expected_dtype(rule kind, dvt_dtype dtype) {
    return kind == RULE_BOOL                                  ? DVT_BOOL
           : kind == RULE_FLOAT && !dvt_dtype_is_float(dtype) ? DVT_F32
                                                              : dtype;
}

/* What it is computed in, up to the class. */
static dvt_dtype computed_dtype(rule kind, dvt_dtype dtype) {
    return expected_dtype(kind == RULE_BOOL ? RULE_SAME : kind, dtype);
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

/* Written into a view: the view has the results, everything else is as it was. */
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
                                       DVT_ALL, false)) == 1);
                CHECK_ERROR(row->in_place(dvt_broadcast_to(x, DVT_SHAPE(2, 6, 40))), DVT_ERR_VALUE);
            }
}

/* 16-bit floats are computed in float32 and rounded once. */
DVT_TEST(unary_small_floats_round_once) {
    int r, half;
    for (r = 0; r < LENGTH(unary_rows); r++)
        for (half = 0; half < 2; half++)
            DVT_SCOPE {
                const unary_row *row = &unary_rows[r];
                dvt_dtype dtype = half ? DVT_F16 : DVT_BF16;
                dvt_array *x = random_array(DVT_SHAPE(600), dtype, row->low, row->high, dvt_cpu());
                dvt_array *y = row->call(x);
                dvt_array *wide =
                    dvt_astype(row->call(dvt_astype(x, DVT_F32, false)), dvt_dtype_of(y), false);
                CHECK(dvt_item(dvt_all(dvt_equal(y, wide), DVT_ALL, false)) == 1);
            }
}

/* ---- two arguments ---- */
static bool check_binary(const binary_row *row, dvt_array *a, dvt_array *b, dvt_array *y,
                         dvt_dtype computed) {
    dvt_array *wide_a = dvt_broadcast_to(a, dvt_shape_of(y)),
              *wide_b = dvt_broadcast_to(b, dvt_shape_of(y));
    double *p = wide_a ? dvt_test_values(wide_a) : NULL,
           *q = wide_b ? dvt_test_values(wide_b) : NULL;
    double *out = y ? dvt_test_values(y) : NULL;
    dvt_dtype dtype = dvt_dtype_of(y);
    bool ok = dvt_test_check(p && q && out, __FILE__, __LINE__, "dvt_%s of %s and %s: %s",
                             row->name, dvt_dtype_name(dvt_dtype_of(a)),
                             dvt_dtype_name(dvt_dtype_of(b)), dvt_error());
    int64_t i;
    for (i = 0; ok && i < dvt_size(y); i++) {
        bool integer = !dvt_dtype_is_float(computed);
        double v = integer ? reference_integer(row->op, p[i], q[i], dtype)
                           : reference_binary(row->op, p[i], q[i]);
        double tolerance = dvt_dtype_is_float(dtype) ? tolerance_of(dtype) : 0;
        ok = dvt_test_check(dvt_test_close(out[i], v, tolerance), __FILE__, __LINE__,
                            "dvt_%s of %s %.17g and %s %.17g is %.17g, expected %.17g", row->name,
                            dvt_dtype_name(dvt_dtype_of(a)), p[i], dvt_dtype_name(dvt_dtype_of(b)),
                            q[i], out[i], v);
    }
    free(p);
    free(q);
    free(out);
    return ok;
}

static bool refuses_bools(const binary_row *row, dvt_dtype a, dvt_dtype b) {
    return row->kind == RULE_NOBOOL && a == DVT_BOOL && b == DVT_BOOL;
}

DVT_TEST(binary_values_and_dtypes) {
    int r, d;
    for (r = 0; r < LENGTH(binary_rows); r++)
        for (d = 0; d < DVT_DTYPE_COUNT * DVT_DTYPE_COUNT; d++)
            DVT_SCOPE {
                const binary_row *row = &binary_rows[r];
                dvt_dtype da = (dvt_dtype)(d / DVT_DTYPE_COUNT),
                          db = (dvt_dtype)(d % DVT_DTYPE_COUNT);
                dvt_dtype common = dvt_promote(da, db);
                dvt_array *a =
                    random_array(DVT_SHAPE(35), da, row->low[0], row->high[0], dvt_cpu());
                dvt_array *b =
                    random_array(DVT_SHAPE(35), db, row->low[1], row->high[1], dvt_cpu());
                dvt_array *y;
                if (refuses_bools(row, da, db)) {
                    CHECK_ERROR(row->call(a, b), DVT_ERR_DTYPE);
                    continue;
                }
                y = row->call(a, b);
                CHECK(check_binary(row, a, b, y, computed_dtype(row->kind, common)));
                CHECK_INT(dvt_dtype_of(y), expected_dtype(row->kind, common));
            }
}

DVT_TEST(binary_broadcasting_and_views) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_I32, DVT_I64};
    int r, d, k;
    for (r = 0; r < LENGTH(binary_rows); r++)
        for (d = 0; d < LENGTH(dtypes); d++)
            DVT_SCOPE {
                const binary_row *row = &binary_rows[r];
                dvt_dtype computed = computed_dtype(row->kind, dtypes[d]);
                dvt_array *a =
                    random_array(DVT_SHAPE(7, 90), dtypes[d], row->low[0], row->high[0], dvt_cpu());
                dvt_array *b =
                    random_array(DVT_SHAPE(7, 90), dtypes[d], row->low[1], row->high[1], dvt_cpu());
                dvt_array *partner[8];
                partner[0] = b;
                partner[1] = layout(b, 1);
                partner[2] = dvt_slice(b, 1, -1, DVT_END, -1);
                partner[3] = dvt_index(b, 2);               /* a row */
                partner[4] = dvt_slice(b, 1, 3, 4, 1);      /* a column */
                partner[5] = dvt_index(dvt_index(b, 1), 1); /* a number */
                partner[6] = dvt_expand_dims(b, 1);         /* (7, 1, 90): a third axis */
                partner[7] = dvt_broadcast_to(b, DVT_SHAPE(2, 7, 90));
                for (k = 0; k < 8; k++) {
                    CHECK(check_binary(row, a, partner[k], row->call(a, partner[k]), computed));
                    CHECK(check_binary(row, partner[k], layout(a, 1),
                                       row->call(partner[k], layout(a, 1)), computed));
                }
                CHECK_INT(dvt_size(row->call(layout(a, 6), partner[3])), 0);
                CHECK_ERROR(row->call(a, dvt_slice(b, 1, 0, 89, 1)), DVT_ERR_SHAPE);
            }
}

/* A number of either side; whole numbers leave integers integer. */
DVT_TEST(binary_with_numbers) {
    static const double numbers[] = {2, 0.5, -3, 1, 0};
    int r, d, k;
    for (r = 0; r < LENGTH(binary_rows); r++)
        for (d = 0; d < DVT_DTYPE_COUNT; d++)
            DVT_SCOPE {
                const binary_row *row = &binary_rows[r];
                dvt_dtype dtype = (dvt_dtype)d;
                dvt_array *x =
                    random_array(DVT_SHAPE(9, 3), dtype, row->low[0], row->high[0], dvt_cpu());
                for (k = 0; k < LENGTH(numbers); k++) {
                    double s = numbers[k];
                    dvt_array *number = dvt_scalar(s, DVT_F64, dvt_cpu()), *y, *z;
                    dvt_dtype common = dvt_dtype_is_float(dtype)               ? dtype
                                       : s == 0.5                              ? DVT_F32
                                       : dtype == DVT_BOOL && s != 1 && s != 0 ? DVT_I64
                                                                               : dtype;
                    if (refuses_bools(row, common, common)) {
                        CHECK_ERROR(row->with_scalar(x, s), DVT_ERR_DTYPE);
                        continue;
                    }
                    y = row->with_scalar(dvt_t(x), s);
                    z = row->scalar_with(s, x);
                    CHECK(
                        check_binary(row, dvt_t(x), number, y, computed_dtype(row->kind, common)));
                    CHECK(check_binary(row, number, x, z, computed_dtype(row->kind, common)));
                    CHECK_INT(dvt_dtype_of(y), expected_dtype(row->kind, common));
                    CHECK_INT(dvt_dtype_of(z), expected_dtype(row->kind, common));
                }
            }
}

static bool same_values(dvt_array *a, dvt_array *b) {
    double *p = dvt_test_values(a), *q = dvt_test_values(b);
    int64_t i, n = dvt_size(a);
    bool same = p && q && n == dvt_size(b);
    for (i = 0; same && i < n; i++)
        same = dvt_test_close(p[i], q[i], 0);
    free(p);
    free(q);
    return same;
}

DVT_TEST(binary_in_place) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_I32, DVT_U8};
    int r, d;
    for (r = 0; r < LENGTH(binary_rows); r++)
        for (d = 0; d < LENGTH(dtypes); d++)
            DVT_SCOPE {
                const binary_row *row = &binary_rows[r];
                dvt_dtype dtype = dtypes[d];
                dvt_array *a, *b, *x, *view;
                if (!row->in_place)
                    continue;
                a = random_array(DVT_SHAPE(8, 20), dtype, row->low[0], row->high[0], dvt_cpu());
                b = random_array(DVT_SHAPE(20), dtype, row->low[1], row->high[1], dvt_cpu());
                x = dvt_copy(a);
                if (row->kind == RULE_FLOAT && !dvt_dtype_is_float(dtype)) {
                    CHECK_ERROR(row->in_place(x, b), DVT_ERR_DTYPE);
                    CHECK_ERROR(row->scalar_in_place(x, 2), DVT_ERR_DTYPE);
                    CHECK(same_values(x, a));
                    continue;
                }
                CHECK(row->in_place(x, b) == x);
                CHECK(same_values(x, row->call(a, b)));
                x = dvt_copy(a);
                view = dvt_slice(x, 0, 1, DVT_END, 2);
                CHECK(row->scalar_in_place(view, 2) == view);
                CHECK(same_values(view, row->with_scalar(dvt_slice(a, 0, 1, DVT_END, 2), 2)));
                CHECK(same_values(dvt_slice(x, 0, 0, DVT_END, 2), dvt_slice(a, 0, 0, DVT_END, 2)));
                x = dvt_copy(a); /* both arguments are the array itself */
                CHECK(row->in_place(x, x) == x);
                CHECK(same_values(x, row->call(a, a)));
                CHECK_ERROR(row->in_place(dvt_copy(b), a), DVT_ERR_SHAPE);
                if (!dvt_dtype_is_float(dtype)) {
                    CHECK_ERROR(row->in_place(x, dvt_astype(b, DVT_F32, false)), DVT_ERR_DTYPE);
                    CHECK_ERROR(row->scalar_in_place(x, 0.5), DVT_ERR_DTYPE);
                } else if (dtype == DVT_F32) { /* computed in float64, rounded into the array */
                    dvt_array *wide = dvt_astype(b, DVT_F64, false);
                    x = dvt_copy(a);
                    row->in_place(x, wide);
                    CHECK_INT(dvt_dtype_of(x), DVT_F32);
                    CHECK(same_values(x, dvt_astype(row->call(a, wide), DVT_F32, false)));
                }
            }
}

/* The result as if the other window had been read before anything was written. */
DVT_TEST(binary_in_place_overlapping) {
    dvt_array *x = dvt_arange(0, 10, 1, DVT_F32, dvt_cpu()), *m;
    dvt_add_(dvt_slice(x, 0, 1, DVT_END, 1), dvt_slice(x, 0, 0, 9, 1));
    CHECK_VALUES(x, 0, 0, 1, 3, 5, 7, 9, 11, 13, 15, 17);
    x = dvt_arange(0, 6, 1, DVT_I32, dvt_cpu());
    dvt_sub_(x, dvt_slice(x, 0, -1, DVT_END, -1));
    CHECK_VALUES(x, 0, -5, -3, -1, 1, 3, 5);
    m = dvt_reshape(dvt_arange(0, 9, 1, DVT_F64, dvt_cpu()), DVT_SHAPE(3, 3));
    dvt_add_(m, dvt_t(m));
    CHECK_VALUES(m, 0, 0, 4, 8, 4, 8, 12, 8, 12, 16);
    dvt_mul_(m, dvt_index(m, 1));
    CHECK_VALUES(m, 0, 0, 32, 96, 16, 64, 144, 32, 96, 192);
}

/* ---- NULL, devices, threads: every row ---- */
DVT_TEST(elementwise_null_passes_through) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    int r;
    for (r = 0; r < LENGTH(unary_rows); r++)
        CHECK_ERROR(unary_rows[r].call(NULL), DVT_ERR_NULL_ARGUMENT);
    for (r = 0; r < LENGTH(binary_rows); r++) {
        CHECK_ERROR(binary_rows[r].call(NULL, x), DVT_ERR_NULL_ARGUMENT);
        CHECK_ERROR(binary_rows[r].call(x, NULL), DVT_ERR_NULL_ARGUMENT);
        CHECK_ERROR(binary_rows[r].with_scalar(NULL, 1), DVT_ERR_NULL_ARGUMENT);
    }
    CHECK(dvt_exp(dvt_add(x, dvt_sub(x, NULL))) == NULL);
    CHECK(strstr(dvt_error(), "dvt_sub"));
    dvt_clear_error();
}

DVT_TEST(elementwise_same_on_a_virtual_gpu) {
    int r;
    dvt_set_virtual_gpus(1, 0);
    for (r = 0; r < LENGTH(unary_rows) + LENGTH(binary_rows); r++)
        DVT_SCOPE {
            bool two = r >= LENGTH(unary_rows);
            const unary_row *u = &unary_rows[two ? 0 : r];
            const binary_row *b = &binary_rows[two ? r - LENGTH(unary_rows) : 0];
            dvt_array *x = random_array(DVT_SHAPE(5, 7), DVT_F32, two ? b->low[0] : u->low,
                                        two ? b->high[0] : u->high, dvt_cpu());
            dvt_array *gx = dvt_copyto(x, dvt_gpu(0)), *y, *gy;
            y = two ? b->call(x, dvt_index(x, 0)) : u->call(x);
            gy = two ? b->call(gx, dvt_index(gx, 0)) : u->call(gx);
            CHECK(gy && dvt_ctx_equal(dvt_ctx_of(gy), dvt_gpu(0)));
            CHECK(same_values(y, gy));
        }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

DVT_TEST(elementwise_same_for_any_number_of_threads) {
    dvt_array *x = random_array(DVT_SHAPE(301, 701), DVT_F32, -2, 2, dvt_cpu());
    dvt_array *row = random_array(DVT_SHAPE(701), DVT_F16, -2, 2, dvt_cpu());
    dvt_array *y[2];
    int before = dvt_num_threads(), k;
    for (k = 0; k < 2; k++) {
        dvt_set_num_threads(k ? 3 : 1);
        y[k] = dvt_maximum(dvt_tanh(dvt_add(x, row)),
                           dvt_t(dvt_contiguous(dvt_t(dvt_mul_scalar(x, 0.3)))));
    }
    dvt_set_num_threads(before);
    CHECK(same_values(y[0], y[1]));
}

/* Large operands that lie across the result go through it in strips. */
DVT_TEST(elementwise_large_transposed_operands) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F16, DVT_I64};
    int before = dvt_num_threads(), d, threads;
    for (d = 0; d < 3; d++)
        for (threads = 1; threads < 4; threads += 2)
            DVT_SCOPE {
                dvt_array *a = random_array(DVT_SHAPE(300, 130), dtypes[d], -2, 2, dvt_cpu());
                dvt_array *b = random_array(DVT_SHAPE(130, 300), dtypes[d], -2, 2, dvt_cpu());
                dvt_array *images =
                    random_array(DVT_SHAPE(9, 41, 67, 3), dtypes[d], -2, 2, dvt_cpu());
                dvt_array *planes = dvt_transpose(images, DVT_AXES(0, 3, 1, 2)), *y, *column;
                dvt_set_num_threads(threads);
                y = dvt_add(dvt_t(a), b);
                CHECK(check_binary(&binary_rows[0], dvt_t(a), b, y, dtypes[d]));
                column = dvt_slice(a, 1, 3, 4, 1);
                y = dvt_add(dvt_t(b), column);
                CHECK(check_binary(&binary_rows[0], dvt_t(b), column, y, dtypes[d]));
                y = dvt_copy(planes);
                CHECK(dvt_is_contiguous(y) && same_values(y, planes));
                CHECK(same_values(dvt_transpose(y, DVT_AXES(0, 2, 3, 1)), images));
                y = dvt_empty(DVT_SHAPE(130, 300), dtypes[d], dvt_cpu());
                dvt_copy_into(dvt_t(y), a);
                CHECK(same_values(dvt_t(y), a));
                y = dvt_where(dvt_greater(dvt_t(a), b), dvt_t(a), b);
                CHECK(same_values(y, dvt_maximum(dvt_contiguous(dvt_t(a)), b)));
            }
    dvt_set_num_threads(before);
}
