/* Tests of elementwise operations at the edges: Python's rules for division and remainder, integer
   overflow, NaN, infinities, signed zeros. Also selection, clipping, and every conversion between
   dtypes. */
#include "dvt_test.h"
#include <stdarg.h>

static const double inf = INFINITY, nan_ = NAN;

static dvt_array *doubles(const double *values, int64_t n, dvt_dtype dtype) {
    return dvt_as_in_dtype(dvt_from_host(values, DVT_SHAPE(n), DVT_F64, dvt_cpu()), dtype);
}

/* Returns an array of n doubles: list(DVT_F32, 2, 0.5, 1.0). */
static dvt_array *list(dvt_dtype dtype, int n, ...) {
    double values[16];
    va_list args;
    va_start(args, n);
    for (int i = 0; i < n; i++)
        values[i] = va_arg(args, double);
    va_end(args);
    return doubles(values, n, dtype);
}

/* Compares exactly, including the sign of zeros. */
static void check_exact(dvt_array *x, const double *expected, int64_t n, int line) {
    double *values = x ? dvt_test_values(x) : NULL;
    int64_t i;
    if (!dvt_test_check(values && dvt_size(x) == n, __FILE__, line, "no values: %s", dvt_error()))
        return;
    for (i = 0; i < n; i++)
        dvt_test_check(
            (isnan(values[i]) && isnan(expected[i])) ||
                (values[i] == expected[i] && !signbit(values[i]) == !signbit(expected[i])),
            __FILE__, line, "element %d is %g, expected %g", (int)i, values[i], expected[i]);
    free(values);
}

typedef struct division {
    double a, b, quotient, rest;
} division;

DVT_TEST(floor_div_and_mod_by_pythons_rules) {
    static const division cases[] = {
        {7, 3, 2, 1},          {-7, 3, -3, 2},          {7, -3, -3, -2},
        {-7, -3, 2, -1},       {6, 3, 2, 0.0},          {6, -3, -2, -0.0},
        {-6, 3, -2, 0.0},      {-6, -3, 2, -0.0},       {0.0, 5, 0.0, 0.0},
        {-0.0, 5, -0.0, 0.0},  {0.0, -5, -0.0, -0.0},   {1, inf, 0.0, 1},
        {-1, inf, -1, inf},    {1, -inf, -1, -inf},     {-1, -inf, 0.0, -1},
        {inf, 1, nan_, nan_},  {-inf, inf, nan_, nan_}, {nan_, 1, nan_, nan_},
        {1, nan_, nan_, nan_}, {1, 0.0, inf, nan_},     {-1, 0.0, -inf, nan_},
        {1, -0.0, -inf, nan_}, {0.0, 0.0, nan_, nan_},  {5.5, 2, 2, 1.5},
        {-5.5, 2, -3, 0.5},    {1e-20, 3, 0.0, 1e-20}};
    double a[32], b[32], quotient[32], rest[32];
    int64_t n = (int64_t)(sizeof cases / sizeof *cases), i;
    for (i = 0; i < n; i++) {
        a[i] = cases[i].a;
        b[i] = cases[i].b;
        quotient[i] = cases[i].quotient;
        rest[i] = cases[i].rest;
    }
    check_exact(dvt_floor_div(doubles(a, n, DVT_F64), doubles(b, n, DVT_F64)), quotient, n,
                __LINE__);
    check_exact(dvt_mod(doubles(a, n, DVT_F64), doubles(b, n, DVT_F64)), rest, n, __LINE__);
    check_exact(dvt_floor_div(doubles(a, n - 1, DVT_F32), doubles(b, n - 1, DVT_F32)), quotient,
                n - 1, __LINE__);
    check_exact(dvt_mod(doubles(a, n - 1, DVT_F32), doubles(b, n - 1, DVT_F32)), rest, n - 1,
                __LINE__);
    /* The double 0.1 is slightly above 1/10, so 0.1 fits only nine times into 1. */
    CHECK_CLOSE(dvt_item(dvt_floor_div_scalar(dvt_ones(DVT_SCALAR, DVT_F64, dvt_cpu()), 0.1)), 9,
                0);
    CHECK_CLOSE(dvt_item(dvt_mod_scalar(dvt_ones(DVT_SCALAR, DVT_F64, dvt_cpu()), 0.1)), 0.1,
                1e-15);
}

static dvt_array *int64s(const int64_t *values, int64_t n) {
    return dvt_from_host(values, DVT_SHAPE(n), DVT_I64, dvt_cpu());
}

static void check_int64s(dvt_array *x, const int64_t *expected, int64_t n, int line) {
    int64_t values[16], i;
    if (!dvt_test_check(x && dvt_dtype_of(x) == DVT_I64 && dvt_to_host(x, values, n * 8) == DVT_OK,
                        __FILE__, line, "no int64 values: %s", dvt_error()))
        return;
    for (i = 0; i < n; i++)
        dvt_test_check(values[i] == expected[i], __FILE__, line,
                       "element %d is %lld, expected %lld", (int)i, (long long)values[i],
                       (long long)expected[i]);
}

DVT_TEST(integers_never_trap) {
    static const int64_t a[] = {INT64_MIN, INT64_MIN, INT64_MAX, 7, -7, 7, -7, 0, INT64_MIN};
    static const int64_t b[] = {-1, 0, -1, 0, 2, -2, -2, 0, INT64_MAX};
    static const int64_t quotient[] = {INT64_MIN, 0, -INT64_MAX, 0, -4, -4, 3, 0, -2};
    static const int64_t rest[] = {0, 0, 0, 0, 1, -1, -1, 0, INT64_MAX - 1};
    static const int64_t sum[] = {INT64_MAX, INT64_MIN, INT64_MAX - 1, 7, -5, 5, -9, 0, -1};
    static const int64_t product[] = {INT64_MIN, 0, -INT64_MAX, 0, -14, -14, 14, 0, INT64_MIN};
    dvt_array *x = int64s(a, 9), *y = int64s(b, 9);
    check_int64s(dvt_floor_div(x, y), quotient, 9, __LINE__);
    check_int64s(dvt_mod(x, y), rest, 9, __LINE__);
    check_int64s(dvt_add(x, y), sum, 9, __LINE__);
    check_int64s(dvt_mul(x, y), product, 9, __LINE__);
    CHECK_INT(dvt_item_int(dvt_index(dvt_neg(x), 0)), INT64_MIN);
    CHECK_INT(dvt_item_int(dvt_index(dvt_abs(x), 0)), INT64_MIN);
    CHECK_INT(dvt_item_int(dvt_index(dvt_square(x), 2)), 1);
    CHECK_INT(dvt_item_int(dvt_index(dvt_sign(x), 0)), -1);
    CHECK_VALUES(dvt_relu(x), 0, 0, 0, (double)INT64_MAX, 7, 0, 7, 0, 0, 0);
}

DVT_TEST(integers_wrap_in_their_dtype) {
    static const double small[] = {127, -128, -1, 0, 100};
    static const double bytes[] = {255, 0, 128, 1, 16};
    static const double words[] = {2147483647, -2147483648., 65536, -1, 0};
    dvt_array *i8 = doubles(small, 5, DVT_I8), *u8 = doubles(bytes, 5, DVT_U8);
    dvt_array *i32 = doubles(words, 5, DVT_I32);
    CHECK_VALUES(dvt_add_scalar(i8, 1), 0, -128, -127, 0, 1, 101);
    CHECK_VALUES(dvt_neg(i8), 0, -127, -128, 1, 0, -100);
    CHECK_VALUES(dvt_abs(i8), 0, 127, -128, 1, 0, 100);
    CHECK_VALUES(dvt_floor_div_scalar(i8, -1), 0, -127, -128, 1, 0, -100);
    CHECK_VALUES(dvt_square(i8), 0, 1, 0, 1, 0, 16);
    CHECK_VALUES(dvt_add_scalar(u8, 1), 0, 0, 1, 129, 2, 17);
    CHECK_VALUES(dvt_sub_scalar(u8, 1), 0, 254, 255, 127, 0, 15);
    CHECK_VALUES(dvt_neg(u8), 0, 1, 0, 128, 255, 240);
    CHECK_VALUES(dvt_square(u8), 0, 1, 0, 0, 1, 0);
    CHECK_VALUES(dvt_add_scalar(i32, 1), 0, -2147483648., -2147483647, 65537, 0, 1);
    CHECK_VALUES(dvt_square(i32), 0, 1, 0, 0, 1, 0);
    CHECK_INT(dvt_dtype_of(dvt_add(i8, u8)), DVT_I32);
    CHECK_VALUES(dvt_add(i8, u8), 0, 382, -128, 127, 1, 116);
    CHECK_VALUES(dvt_less(i8, u8), 0, 1, 1, 1, 1, 0);
}

DVT_TEST(integer_powers) {
    static const int64_t a[] = {3, 2, -2, -1, -1, 0, 0, 1, 2, 10};
    static const int64_t b[] = {50, 64, 63, 5, -3, 0, -1, -9, -1, 18};
    int64_t expected[] = {0, 0, INT64_MIN, -1, -1, 1, 0, 1, 0, 1000000000000000000};
    uint64_t power = 1;
    for (int i = 0; i < 50; i++)
        power *= 3;
    memcpy(&expected[0], &power, sizeof power);
    check_int64s(dvt_pow(int64s(a, 10), int64s(b, 10)), expected, 10, __LINE__);
}

DVT_TEST(bool_arithmetic) {
    dvt_array *t = dvt_ones(DVT_SHAPE(2), DVT_BOOL, dvt_cpu());
    dvt_array *m = list(DVT_BOOL, 2, 0.0, 1.0);
    CHECK_INT(dvt_dtype_of(dvt_add(t, m)), DVT_BOOL);
    CHECK_VALUES(dvt_add(t, m), 0, 1, 1); /* or */
    CHECK_VALUES(dvt_mul(t, m), 0, 0, 1); /* and */
    CHECK_VALUES(dvt_maximum(t, m), 0, 1, 1);
    CHECK_INT(dvt_dtype_of(dvt_add_scalar(t, 2)), DVT_I64);
    CHECK_VALUES(dvt_add_scalar(t, 2), 0, 3, 3);
    CHECK_ERROR(dvt_sub(t, m), DVT_ERR_DTYPE);
    CHECK_VALUES(dvt_logical_not(m), 0, 1, 0);
    CHECK_VALUES(dvt_div(t, dvt_add_scalar(t, 3)), 0, 0.25, 0.25);
    /* Any nonzero byte is true. */
    {
        static const unsigned char odd[] = {2, 0};
        dvt_array *x = dvt_from_host(odd, DVT_SHAPE(2), DVT_BOOL, dvt_cpu());
        CHECK_VALUES(dvt_add_scalar(dvt_as_in_dtype(x, DVT_I32), 0), 0, 1, 0);
        CHECK_VALUES(dvt_equal(x, t), 0, 1, 0);
    }
}

DVT_TEST(nan_and_infinity) {
    static const double v[] = {nan_, inf, -inf, 0.0, -0.0, 1, -1};
    static const double zero[7] = {0}, signs[] = {nan_, 1, -1, 0, 0, 1, -1};
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16};
    for (int d = 0; d < 4; d++) {
        dvt_array *x = doubles(v, 7, dtypes[d]), *o = doubles(zero, 7, dtypes[d]);
        CHECK_VALUES(dvt_isnan(x), 0, 1, 0, 0, 0, 0, 0, 0);
        CHECK_VALUES(dvt_isinf(x), 0, 0, 1, 1, 0, 0, 0, 0);
        CHECK_VALUES(dvt_isfinite(x), 0, 0, 0, 0, 1, 1, 1, 1);
        CHECK_VALUES(dvt_logical_not(x), 0, 0, 0, 0, 1, 1, 0, 0);
        check_exact(dvt_sign(x), signs, 7, __LINE__); /* NumPy's sign(-0) is +0 */
        CHECK_VALUES(dvt_relu(x), 0, nan_, inf, 0, 0, 0, 1, 0);
        CHECK_VALUES(dvt_abs(x), 0, nan_, inf, inf, 0, 0, 1, 1);
        CHECK_VALUES(dvt_minimum(x, o), 0, nan_, 0, -inf, 0, 0, 0, -1);
        CHECK_VALUES(dvt_maximum(o, x), 0, nan_, inf, 0, 0, 0, 1, 0);
        CHECK_VALUES(dvt_minimum(o, x), 0, nan_, 0, -inf, 0, 0, 0, -1);
        CHECK_VALUES(dvt_equal(x, x), 0, 0, 1, 1, 1, 1, 1, 1);
        CHECK_VALUES(dvt_not_equal(x, x), 0, 1, 0, 0, 0, 0, 0, 0);
        CHECK_VALUES(dvt_less(x, o), 0, 0, 0, 1, 0, 0, 0, 1);
        CHECK_VALUES(dvt_less_equal(x, o), 0, 0, 0, 1, 1, 1, 0, 1);
        CHECK_VALUES(dvt_logical_and(x, x), 0, 1, 1, 1, 0, 0, 1, 1);
        CHECK_VALUES(dvt_clip(x, -0.5, 0.5), 0, nan_, 0.5, -0.5, 0, 0, 0.5, -0.5);
        CHECK_VALUES(dvt_exp(x), 1e-2, nan_, inf, 0, 1, 1, exp(1), exp(-1));
        CHECK_VALUES(dvt_log(x), 0, nan_, inf, nan_, -inf, -inf, 0, nan_);
        CHECK_VALUES(dvt_sigmoid(x), 1e-2, nan_, 1, 0, 0.5, 0.5, 0.7310586, 0.2689414);
        CHECK_VALUES(dvt_softplus(x), 1e-2, nan_, inf, 0, log(2), log(2), 1.3132617, 0.3132617);
        CHECK_VALUES(dvt_tanh(x), 1e-2, nan_, 1, -1, 0, 0, tanh(1), -tanh(1));
        CHECK_VALUES(dvt_reciprocal(x), 0, nan_, 0, 0, inf, -inf, 1, -1);
        CHECK_VALUES(dvt_hypot(x, o), 0, nan_, inf, inf, 0, 0, 1, 1);
        check_exact(dvt_floor(x), v, 7, __LINE__);
        check_exact(dvt_trunc(x), v, 7, __LINE__);
        check_exact(dvt_round(x), v, 7, __LINE__);
    }
    CHECK_VALUES(dvt_sigmoid(list(DVT_F32, 2, -1000.0, 1000.0)), 0, 0, 1);
    CHECK_VALUES(dvt_softplus(list(DVT_F32, 2, -1000.0, 1000.0)), 0, 0, 1000);
    CHECK_VALUES(dvt_round(list(DVT_F64, 5, 0.5, 1.5, 2.5, -0.5, -1.5)), 0, 0, 2, 2, 0, -2);
    CHECK_VALUES(dvt_hypot(list(DVT_F64, 1, 1e300), list(DVT_F64, 1, 1e300)), 1e-12,
                 1.4142135623730951e300);
}

DVT_TEST(selection) {
    dvt_array *c = list(DVT_F32, 5, 0.0, 1.0, 0.5, nan_, -0.0);
    dvt_array *a = list(DVT_I32, 5, 1.0, 2.0, 3.0, 4.0, 5.0);
    dvt_array *b = list(DVT_I8, 5, -1.0, -2.0, -3.0, -4.0, -5.0), *m;
    /* The condition is evaluated in its own dtype: 0.5 is true next to integers, and a tiny float64
       next to float32. */
    CHECK_VALUES(dvt_where(c, a, b), 0, -1, 2, 3, 4, -5);
    CHECK_INT(dvt_dtype_of(dvt_where(c, a, b)), DVT_I32);
    c = list(DVT_F64, 5, 1e-300, 0.0, -1e-300, 0.0, 1.0);
    CHECK_VALUES(dvt_where(c, dvt_as_in_dtype(a, DVT_F32), b), 0, 1, -2, 3, -4, 5);
    CHECK_VALUES(dvt_where(dvt_greater_scalar(a, 3), a, dvt_scalar(0.5, DVT_F16, dvt_cpu())), 0,
                 0.5, 0.5, 0.5, 4, 5);
    m = dvt_where(dvt_reshape(c, DVT_SHAPE(5, 1)), a, dvt_expand_dims(b, 0));
    CHECK(dvt_shape_equal(dvt_shape_of(m), DVT_SHAPE(5, 5)));
    CHECK_VALUES(dvt_rows(m, 0, 2), 0, 1, 2, 3, 4, 5, -1, -2, -3, -4, -5);
    CHECK_VALUES(dvt_where(dvt_isnan(list(DVT_F32, 2, nan_, 1.0)),
                           dvt_scalar(0, DVT_F32, dvt_cpu()), list(DVT_F32, 2, nan_, 1.0)),
                 0, 0, 1);
    CHECK_ERROR(dvt_where(c, a, dvt_ones(DVT_SHAPE(4), DVT_F32, dvt_cpu())), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_where(NULL, a, b), DVT_ERR_NULL_ARGUMENT);
}

/* Scalars in place of arrays: the dtype follows the array, as in dvt_add_scalar. */
DVT_TEST(selection_of_scalars) {
    dvt_ctx ctx[2];
    int i;
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    ctx[0] = dvt_cpu();
    ctx[1] = dvt_gpu(0);
    for (i = 0; i < 2; i++)
        DVT_SCOPE {
            dvt_array *x = dvt_as_in_ctx(list(DVT_F32, 4, -1.0, 2.0, nan_, 4.0), ctx[i]), *m, *y;
            dvt_array *big = dvt_as_in_ctx(dvt_full(DVT_SHAPE(3), 1, DVT_I64, dvt_cpu()), ctx[i]);
            m = dvt_greater_scalar(x, 0);
            CHECK_VALUES(dvt_where_scalar(m, x, 0), 0, 0, 2, 0, 4);
            CHECK_VALUES(dvt_scalar_where(m, 7, x), 0, -1, 7, nan_, 7);
            CHECK_VALUES(dvt_where_scalar(m, x, -INFINITY), 0, -INFINITY, 2, -INFINITY, 4);
            CHECK_INT(dvt_dtype_of(dvt_where_scalar(m, x, 0.1)), DVT_F32);
            CHECK_INT(dvt_dtype_of(dvt_where_scalar(m, dvt_as_in_dtype(x, DVT_F16), 1)), DVT_F16);
            /* integral scalars keep integers, fractions give float32, bool with 2 gives int64 */
            y = dvt_as_in_dtype(x, DVT_I8);
            CHECK_INT(dvt_dtype_of(dvt_where_scalar(m, y, 3)), DVT_I8);
            CHECK_VALUES(dvt_scalar_where(m, 3, y), 0, -1, 3, 0, 3);
            CHECK_INT(dvt_dtype_of(dvt_scalar_where(m, 0.5, y)), DVT_F32);
            CHECK_VALUES(dvt_scalar_where(m, 0.5, y), 0, -1, 0.5, 0, 0.5);
            CHECK_INT(dvt_dtype_of(dvt_where_scalar(m, m, 1)), DVT_BOOL);
            CHECK_INT(dvt_dtype_of(dvt_where_scalar(m, m, 2)), DVT_I64);
            CHECK_VALUES(dvt_where_scalar(m, m, 2), 0, 2, 1, 2, 1);
            CHECK_INT(dvt_item_int(dvt_index(
                          dvt_scalar_where(dvt_ones_like(big), 9007199254740992., big), 2)),
                      INT64_C(9007199254740992));
            /* a float condition is evaluated in its own dtype, and everything broadcasts */
            y = dvt_where_scalar(
                dvt_reshape(dvt_as_in_ctx(list(DVT_F32, 2, 0.25, 0.0), ctx[i]), DVT_SHAPE(2, 1)),
                big, 5);
            CHECK(dvt_shape_equal(dvt_shape_of(y), DVT_SHAPE(2, 3)));
            CHECK_VALUES(y, 0, 1, 1, 1, 5, 5, 5);
            y = dvt_scalar_where(m, 1, dvt_scalar(0, DVT_F32, ctx[i]));
            CHECK_VALUES(y, 0, 0, 1, 0, 1);
            y = dvt_where_scalar(dvt_slice(m, 0, 0, 0, 1), dvt_slice(x, 0, 0, 0, 1), 0);
            CHECK(dvt_shape_equal(dvt_shape_of(y), DVT_SHAPE(0)));
            CHECK_ERROR(dvt_where_scalar(m, big, 0), DVT_ERR_SHAPE);
            CHECK_ERROR(dvt_where_scalar(NULL, x, 0), DVT_ERR_NULL_ARGUMENT);
            CHECK_ERROR(dvt_scalar_where(m, 0, NULL), DVT_ERR_NULL_ARGUMENT);
            CHECK_ERROR(dvt_scalar_where(m, 0, dvt_as_in_ctx(x, ctx[!i])), DVT_ERR_CONTEXT);
        }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

DVT_TEST(clipping) {
    dvt_array *x = list(DVT_I32, 5, -5.0, -1.0, 0.0, 2.0, 9.0), *y;
    CHECK_VALUES(dvt_clip(x, -1, 2), 0, -1, -1, 0, 2, 2);
    CHECK_VALUES(dvt_clip(x, -inf, 2), 0, -5, -1, 0, 2, 2);
    CHECK_VALUES(dvt_clip(x, -1, inf), 0, -1, -1, 0, 2, 9);
    CHECK_VALUES(dvt_clip(x, -1.5, 2.5), 0, -1, -1, 0, 2, 2);
    CHECK_INT(dvt_dtype_of(dvt_clip(x, -1.5, 2.5)), DVT_I32);
    y = dvt_as_in_dtype(x, DVT_I8);
    CHECK_VALUES(dvt_clip(y, -1000, 1000), 0, -5, -1, 0, 2, 9);
    CHECK_VALUES(dvt_clip(y, 500, 1000), 0, 127, 127, 127, 127, 127);
    CHECK(dvt_clip_(y, 0, 3) == y);
    CHECK_VALUES(y, 0, 0, 0, 0, 2, 3);
    CHECK_VALUES(dvt_clip(dvt_ones(DVT_SHAPE(2), DVT_BOOL, dvt_cpu()), -inf, 0), 0, 0, 0);
    CHECK_ERROR(dvt_clip(x, 2, 1), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_clip(x, nan_, 1), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_clip(x, 0, nan_), DVT_ERR_VALUE);
}

/* Converts every dtype into every other: values that both can represent stay unchanged. */
DVT_TEST(conversions_between_all_dtypes) {
    double values[1500];
    int from, to, i, low;
    for (from = 0; from < DVT_DTYPE_COUNT; from++)
        for (to = 0; to < DVT_DTYPE_COUNT; to++)
            DVT_SCOPE {
                bool boolean = from == DVT_BOOL || to == DVT_BOOL;
                dvt_array *x, *y;
                low = from == DVT_U8 || to == DVT_U8 || boolean ? 0 : -100;
                for (i = 0; i < 1500; i++)
                    values[i] = low + i % (boolean ? 2 : 100);
                x = dvt_astype(doubles(values, 1500, DVT_F64), (dvt_dtype)from);
                y = dvt_astype(dvt_reshape(x, DVT_SHAPE(30, 50)), (dvt_dtype)to);
                CHECK_INT(dvt_dtype_of(y), to);
                CHECK(dvt_test_equal(y, values, 1500, 0, __FILE__, __LINE__));
                CHECK_CLOSE(
                    dvt_item_at(dvt_astype(dvt_t(dvt_reshape(x, DVT_SHAPE(30, 50))), (dvt_dtype)to),
                                DVT_SHAPE(7, 1)),
                    values[57], 0);
            }
}

DVT_TEST(conversions_of_values_out_of_range) {
    static const double v[] = {nan_, inf, -inf, 1e30, -1e30, 3.9, -3.9, 300, -300};
    static const dvt_dtype floats[] = {DVT_F64, DVT_F32, DVT_BF16};
    for (int d = 0; d < 3; d++) {
        dvt_array *x = doubles(v, 9, floats[d]);
        CHECK_VALUES(dvt_as_in_dtype(x, DVT_I8), 0, 0, 127, -128, 127, -128, 3, -3, 127, -128);
        CHECK_VALUES(dvt_as_in_dtype(x, DVT_U8), 0, 0, 255, 0, 255, 0, 3, 0, 255, 0);
        CHECK_VALUES(dvt_as_in_dtype(x, DVT_I32), 0, 0, 2147483647, -2147483648., 2147483647,
                     -2147483648., 3, -3, 300, -300);
        CHECK_INT(dvt_item_int(dvt_index(dvt_as_in_dtype(x, DVT_I64), 1)), INT64_MAX);
        CHECK_INT(dvt_item_int(dvt_index(dvt_as_in_dtype(x, DVT_I64), 2)), INT64_MIN);
        CHECK_VALUES(dvt_as_in_dtype(x, DVT_BOOL), 0, 1, 1, 1, 1, 1, 1, 1, 1, 1);
        CHECK_VALUES(dvt_as_in_dtype(x, DVT_F16), 0.1, nan_, inf, -inf, inf, -inf, 3.9, -3.9, 300,
                     -300);
    }
    /* Integers wrap in narrower integers and stay exact in wider ones. */
    {
        static const int64_t big[] = {INT64_MAX, INT64_MIN, 9007199254740993, 256, -129};
        dvt_array *x = int64s(big, 5);
        CHECK_VALUES(dvt_as_in_dtype(x, DVT_I8), 0, -1, 0, 1, 0, 127);
        CHECK_VALUES(dvt_as_in_dtype(x, DVT_U8), 0, 255, 0, 1, 0, 127);
        CHECK_VALUES(dvt_as_in_dtype(x, DVT_I32), 0, -1, 0, 1, 256, -129);
        CHECK_INT(dvt_item_int(dvt_index(dvt_copy(x), 2)), 9007199254740993);
        CHECK_INT(
            dvt_item_int(dvt_index(dvt_where(dvt_ones(DVT_SHAPE(5), DVT_F32, dvt_cpu()), x, x), 2)),
            9007199254740993);
    }
}

/* Conversion rounds once to nearest, ties to even. Rounding through float32 would change these
   values. */
DVT_TEST(conversions_round_once) {
    static const double halfway = 1 + 0x1p-11, above = 1 + 0x1p-11 + 0x1p-40;
    static const int64_t tie[] = {0x4040000000000000, 0x4040000000000001, 0x40c0000000000000,
                                  0x40bfffffffffffff};
    double v[4];
    v[0] = halfway;
    v[1] = above;
    v[2] = 1 + 0x1p-8;
    v[3] = 1 + 0x1p-8 + 0x1p-40;
    CHECK_VALUES(dvt_as_in_dtype(doubles(v, 2, DVT_F64), DVT_F16), 0, 1, 1 + 0x1p-10);
    CHECK_VALUES(dvt_as_in_dtype(doubles(v + 2, 2, DVT_F64), DVT_BF16), 0, 1, 1 + 0x1p-7);
    /* 2^62 + 2^54 is halfway between two bfloat16 values; one more is above. */
    CHECK_VALUES(dvt_as_in_dtype(int64s(tie, 4), DVT_BF16), 0, 0x1p62, 0x1p62 + 0x1p55,
                 0x1p62 + 0x1p56, 0x1p62 + 0x1p55);
}

/* The logarithm needs more bits than a double has: without an exact product the error was 180
   ulp. */
DVT_TEST(pow_of_doubles_is_accurate) {
    int i;
    for (i = 0; i < 200; i++)
        DVT_SCOPE {
            const double a = 1.001 + 3.7 * i, b = 3.3 + (i % 17) * 4.1;
            dvt_array *power = dvt_pow(doubles(&a, 1, DVT_F64), doubles(&b, 1, DVT_F64));
            CHECK_CLOSE(dvt_item(power) / pow(a, b), 1, 2e-15);
        }
}
