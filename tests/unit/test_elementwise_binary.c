/* Tests of elementwise operations of two arguments, organized as in test_elementwise.c. Every
   row of the op table is compared with formulas written a second time: every pair of dtypes,
   broadcasting, scalars on either side, in place. A new row needs its formula in
   reference_binary. */
#include "elementwise_inputs.h"

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

#define ROW(name, rule, cost, f, i, vector, math, ga, reads_a, gb, reads_b, la, ha, lb, hb, doc)   \
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

/* Returns the dtype of the computation, up to the class. */
static dvt_dtype computed_dtype(rule kind, dvt_dtype dtype) {
    return expected_dtype(kind == RULE_BOOL ? RULE_SAME : kind, dtype);
}

/* ---- the same formulas, written a second time ---- */
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

static double reference_integer(dvti_op op, double a, double b, dvt_dtype dtype) {
    double v;
    if ((op == DVTI_OP_floor_div || op == DVTI_OP_mod) && b == 0)
        return 0;
    v = op == DVTI_OP_pow && b < 0 && a == 0 ? 0 : trunc(reference_binary(op, a, b));
    return wrapped(v, dtype);
}

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
                partner[5] = dvt_index(dvt_index(b, 1), 1); /* a scalar */
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

/* Scalars on either side; integral scalars keep integer dtypes. */
DVT_TEST(binary_with_scalars) {
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
                    CHECK_ERROR(row->in_place(x, dvt_as_in_dtype(b, DVT_F32)), DVT_ERR_DTYPE);
                    CHECK_ERROR(row->scalar_in_place(x, 0.5), DVT_ERR_DTYPE);
                } else if (dtype == DVT_F32) { /* computed in float64, rounded into the array */
                    dvt_array *wide = dvt_as_in_dtype(b, DVT_F64);
                    x = dvt_copy(a);
                    row->in_place(x, wide);
                    CHECK_INT(dvt_dtype_of(x), DVT_F32);
                    CHECK(same_values(x, dvt_as_in_dtype(row->call(a, wide), DVT_F32)));
                }
            }
}

/* The result is the same as if the other window had been read completely before the first write. */
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

DVT_TEST(binary_null_and_devices) {
    dvt_array *one = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    int r;
    dvt_set_virtual_gpus(1, 0);
    for (r = 0; r < LENGTH(binary_rows); r++)
        DVT_SCOPE {
            const binary_row *row = &binary_rows[r];
            dvt_array *x =
                random_array(DVT_SHAPE(5, 7), DVT_F32, row->low[0], row->high[0], dvt_cpu());
            dvt_array *gx = dvt_copyto(x, dvt_gpu(0)), *there = row->call(gx, dvt_index(gx, 0));
            CHECK(there && dvt_ctx_equal(dvt_ctx_of(there), dvt_gpu(0)));
            CHECK(same_values(row->call(x, dvt_index(x, 0)), there));
            CHECK_ERROR(row->call(x, gx), DVT_ERR_CONTEXT);
            CHECK_ERROR(row->call(NULL, one), DVT_ERR_NULL_ARGUMENT);
            CHECK_ERROR(row->call(one, NULL), DVT_ERR_NULL_ARGUMENT);
            CHECK_ERROR(row->with_scalar(NULL, 1), DVT_ERR_NULL_ARGUMENT);
            CHECK_ERROR(row->scalar_with(1, NULL), DVT_ERR_NULL_ARGUMENT);
        }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
    CHECK(dvt_exp(dvt_add(one, dvt_sub(one, NULL))) == NULL);
    CHECK(strstr(dvt_error(), "dvt_sub"));
    dvt_clear_error();
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

/* The kernel processes large transposed operands in tiles. */
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
