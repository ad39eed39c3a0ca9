/* Tests of reductions and softmax against plain loops over the elements, for random shapes, axes,
   views and dtypes; then edge cases. */
#include "dvt_test.h"
#include <float.h>

typedef enum kind { SUM, PROD, MEAN, MIN, MAX, ANY, ALL, NORM, LSE, KINDS } kind;

typedef struct reduction {
    const char *name;
    dvt_array *(*call)(dvt_array *, dvt_axes);
} reduction;

static const reduction reductions[KINDS] = {
    {"sum", dvt_sum}, {"prod", dvt_prod}, {"mean", dvt_mean},
    {"min", dvt_min}, {"max", dvt_max},   {"any", dvt_any},
    {"all", dvt_all}, {"norm", dvt_norm}, {"logsumexp", dvt_logsumexp}};

static double begin_of(kind k) {
    return k == PROD || k == ALL ? 1 : k == MIN ? INFINITY : k == MAX ? -INFINITY : 0;
}

static double step_of(kind k, double r, double v) {
    switch ((int)k) {
    case PROD:
        return r * v;
    case MIN:
        return isnan(r) || isnan(v) ? NAN : fmin(r, v);
    case MAX:
        return isnan(r) || isnan(v) ? NAN : fmax(r, v);
    case ANY:
        return r || v;
    case ALL:
        return r && v;
    case NORM:
        return r + v * v;
    case LSE:
        return r + exp(v);
    default:
        return r + v;
    }
}

static double end_of(kind k, double r, double count) {
    return k == MEAN ? r / count : k == NORM ? sqrt(r) : k == LSE ? log(r) : r;
}

static dvt_dtype dtype_of(kind k, dvt_dtype x) {
    bool floating = dvt_dtype_is_float(x);
    switch ((int)k) {
    case SUM:
    case PROD:
        return floating ? x : DVT_I64;
    case MIN:
    case MAX:
        return x;
    case ANY:
    case ALL:
        return DVT_BOOL;
    default:
        return floating ? x : DVT_F32;
    }
}

/* Returns the flat position in the result for each element of x. Reduced axes have extent 1 in the
   result. */
static int64_t target(dvt_shape x, unsigned mask, int64_t element) {
    int64_t index[DVT_MAX_DIMS], at = 0;
    int i;
    for (i = x.ndim - 1; i >= 0; i--) {
        index[i] = element % x.dim[i];
        element /= x.dim[i];
    }
    for (i = 0; i < x.ndim; i++)
        if (!(mask >> i & 1u))
            at = at * x.dim[i] + index[i];
    return at;
}

static double tolerance_of(dvt_dtype dtype) {
    return dtype == DVT_F64 ? 1e-12 : dtype == DVT_F16 ? 1e-3 : dtype == DVT_BF16 ? 8e-3 : 1e-6;
}

/* Returns the tolerance of a sum. Up to four floats may be added in float32: two roundings of at
   most their magnitudes. `sizes` is the sum of all magnitudes. */
static double sum_tolerance(kind k, dvt_dtype x, double sizes, double count) {
    bool narrow = dvt_dtype_is_float(x) && x != DVT_F64;
    return !narrow     ? 0
           : k == SUM  ? FLT_EPSILON * sizes
           : k == MEAN ? FLT_EPSILON * sizes / count
                       : 0;
}

static bool check_reduction(kind k, dvt_array *x, dvt_axes axes, unsigned mask) {
    dvt_array *y = reductions[k].call(x, axes);
    dvt_shape shape = dvt_shape_of(x), expected = DVT_SCALAR;
    double *in, *out, *r, *sizes;
    int64_t n = 1, count = 1, e;
    bool ok;
    int i;
    for (i = 0; i < shape.ndim; i++) {
        bool reduced = mask >> i & 1u;
        if (!reduced || axes.keepdims)
            expected.dim[expected.ndim++] = reduced ? 1 : shape.dim[i];
        *(reduced ? &count : &n) *= shape.dim[i];
    }
    ok = dvt_test_check(y != NULL, __FILE__, __LINE__, "dvt_%s: %s", reductions[k].name,
                        dvt_error());
    if (!ok)
        return false;
    ok = dvt_test_check(dvt_shape_equal(dvt_shape_of(y), expected), __FILE__, __LINE__,
                        "dvt_%s has a wrong shape", reductions[k].name) &&
         dvt_test_check(dvt_dtype_of(y) == dtype_of(k, dvt_dtype_of(x)), __FILE__, __LINE__,
                        "dvt_%s of %s is %s", reductions[k].name, dvt_dtype_name(dvt_dtype_of(x)),
                        dvt_dtype_name(dvt_dtype_of(y)));
    in = dvt_test_values(x);
    out = dvt_test_values(y);
    r = (double *)malloc(sizeof(double) * (size_t)(n + 1));
    sizes = (double *)calloc((size_t)(n + 1), sizeof(double));
    for (e = 0; e < n; e++)
        r[e] = begin_of(k);
    for (e = 0; e < dvt_size(x); e++) {
        int64_t to = target(shape, mask, e);
        r[to] = step_of(k, r[to], in[e]);
        sizes[to] += fabs(in[e]);
    }
    for (e = 0; ok && e < n; e++)
        ok = dvt_test_check(fabs(out[e] - end_of(k, r[e], (double)count)) <=
                                    sum_tolerance(k, dvt_dtype_of(x), sizes[e], (double)count) ||
                                dvt_test_close(out[e], end_of(k, r[e], (double)count),
                                               tolerance_of(dvt_dtype_of(y))),
                            __FILE__, __LINE__,
                            "dvt_%s of %s, axes %x: element %d is %.17g, expected %.17g",
                            reductions[k].name, dvt_dtype_name(dvt_dtype_of(x)), mask, (int)e,
                            out[e], end_of(k, r[e], (double)count));
    free(in);
    free(out);
    free(sizes);
    free(r);
    return ok;
}

/* Returns random values whose products stay small: near 1, or 1 and 2 for integers. */
static dvt_array *random_input(dvt_shape shape, dvt_dtype dtype, kind k) {
    int64_t n = dvt_shape_size(shape), i;
    double *values = (double *)malloc(sizeof(double) * (size_t)(n + 1));
    dvt_array *x;
    for (i = 0; i < n; i++) {
        if (dvt_dtype_is_float(dtype))
            values[i] = k == PROD ? dvt_test_random(0.9, 1.1) : dvt_test_random(-2, 2);
        else if (dtype == DVT_BOOL)
            values[i] = dvt_test_random(0, 1) < 0.8;
        else
            values[i] =
                k == PROD ? 1 + (dvt_test_random(0, 1) < 0.02) : floor(dvt_test_random(0, 100));
        if (k == ANY && dvt_test_random(0, 1) < 0.9)
            values[i] = 0;
    }
    x = dvt_as_in_dtype(dvt_from_host(values, shape, DVT_F64, dvt_cpu()), dtype);
    free(values);
    return x;
}

static dvt_axes axes_of(unsigned mask, int ndim) {
    dvt_axes axes = DVT_ALL;
    int i;
    for (i = ndim - 1; i >= 0; i--) /* in random order, some of them negative */
        if (mask >> i & 1u)
            axes.axis[axes.n++] = i % 2 ? i : i - ndim;
    return axes;
}

DVT_TEST(reductions_all_axes_dtypes_and_views) {
    int k, d;
    unsigned mask;
    for (k = 0; k < KINDS; k++)
        for (d = 0; d < DVT_DTYPE_COUNT; d++)
            for (mask = 1; mask < 8; mask++)
                DVT_SCOPE {
                    dvt_array *x = random_input(DVT_SHAPE(4, 5, 18), (dvt_dtype)d, (kind)k);
                    dvt_array *t = dvt_transpose(x, DVT_AXES(2, 0, 1));
                    dvt_array *s = dvt_slice(dvt_slice(x, 2, -1, DVT_END, -2), 0, 1, DVT_END, 1);
                    dvt_array *b = dvt_broadcast_to(dvt_slice(x, 1, 2, 3, 1), DVT_SHAPE(4, 3, 18));
                    dvt_axes axes = axes_of(mask, 3);
                    CHECK(check_reduction((kind)k, x, mask % 2 ? dvt_keepdims(axes) : axes, mask));
                    CHECK(check_reduction((kind)k, t, mask % 3 == 0 ? dvt_keepdims(axes) : axes,
                                          mask));
                    CHECK(check_reduction((kind)k, s, axes, mask));
                    CHECK(check_reduction((kind)k, b, dvt_keepdims(axes), mask));
                }
}

/* Long enough for blocks, chunks and their remainders, along rows and along columns. */
DVT_TEST(reductions_of_many_elements) {
    static const int64_t lengths[] = {7, 8, 9, 511, 512, 513, 1537, 32767, 32768, 32769, 70001};
    int k, l;
    for (k = 0; k < KINDS; k++)
        for (l = 0; l < (int)(sizeof lengths / sizeof *lengths); l++)
            DVT_SCOPE {
                dvt_array *x =
                    random_input(DVT_SHAPE(lengths[l]), DVT_F64, k == PROD ? NORM : (kind)k);
                if (k == PROD)
                    x = dvt_exp(dvt_mul_scalar(x, 1e-3));
                if (k == LSE || k == SUM || k == MEAN)
                    x = dvt_abs(x);
                CHECK(check_reduction((kind)k, x, DVT_ALL, 1));
            }
    for (k = 0; k < KINDS; k++)
        DVT_SCOPE {
            dvt_array *x = random_input(DVT_SHAPE(1100, 67), DVT_F32, k == PROD ? NORM : (kind)k);
            if (k == PROD)
                x = dvt_exp(dvt_mul_scalar(x, 1e-3));
            CHECK(check_reduction((kind)k, x, DVT_AXES(0), 1));
            CHECK(check_reduction((kind)k, dvt_t(x), DVT_AXES(0), 1));
            CHECK(check_reduction((kind)k, dvt_t(x), DVT_KEEPDIMS(1), 2));
        }
}

/* The order of a sum depends on the shape, not on the number of threads. */
DVT_TEST(reductions_same_bits_for_any_number_of_threads) {
    dvt_array *x = random_input(DVT_SHAPE(900, 130), DVT_F64, SUM), *y[3][3];
    int before = dvt_num_threads(), k, i;
    for (k = 0; k < 3; k++) {
        dvt_set_num_threads(k + 1);
        y[k][0] = dvt_sum(x, DVT_ALL);
        y[k][1] = dvt_logsumexp(x, DVT_AXES(0));
        y[k][2] = dvt_norm(dvt_t(x), DVT_AXES(0));
    }
    dvt_set_num_threads(before);
    for (k = 1; k < 3; k++)
        for (i = 0; i < 3; i++)
            CHECK(dvt_item(dvt_all(dvt_equal(y[k][i], y[0][i]), DVT_ALL)) == 1);
}

/* Accumulators are float64 and int64. */
DVT_TEST(reductions_accumulate_wide) {
    dvt_array *point_one = dvt_full(DVT_SHAPE(1000000), 0.1, DVT_F32, dvt_cpu());
    dvt_array *point_five = dvt_full(DVT_SHAPE(5000), 0.5, DVT_F16, dvt_cpu());
    dvt_array *bytes = dvt_full(DVT_SHAPE(1000), 255, DVT_U8, dvt_cpu());
    CHECK_CLOSE(dvt_item(dvt_sum(point_one, DVT_ALL)), (float)(1000000 * (double)0.1f), 0);
    CHECK_CLOSE(dvt_item(dvt_sum(point_five, DVT_ALL)), 2500, 0);
    CHECK_CLOSE(dvt_item(dvt_sum(bytes, DVT_ALL)), 255000, 0);
    CHECK_CLOSE(dvt_item(dvt_mean(bytes, DVT_ALL)), 255, 0);
    CHECK_CLOSE(dvt_item(dvt_sum(dvt_full(DVT_SHAPE(8), 60000, DVT_F16, dvt_cpu()), DVT_ALL)),
                INFINITY, 0);
    CHECK_CLOSE(dvt_item(dvt_mean(dvt_full(DVT_SHAPE(8), 60000, DVT_F16, dvt_cpu()), DVT_ALL)),
                60000, 1e-3);
    {
        static const int64_t big[] = {INT64_MAX, 1, INT64_MIN, 9007199254740993};
        dvt_array *x = dvt_from_host(big, DVT_SHAPE(4), DVT_I64, dvt_cpu());
        CHECK_INT(dvt_item_int(dvt_sum(x, DVT_ALL)), 9007199254740993);
        CHECK_INT(dvt_item_int(dvt_max(x, DVT_ALL)), INT64_MAX);
        CHECK_INT(dvt_item_int(dvt_min(x, DVT_ALL)), INT64_MIN);
        CHECK_INT(dvt_item_int(dvt_sum(dvt_rows(x, 0, 2), DVT_ALL)), INT64_MIN); /* wraps */
    }
}

DVT_TEST(reductions_of_empty_axes) {
    dvt_array *none = dvt_zeros(DVT_SHAPE(3, 0), DVT_F32, dvt_cpu());
    dvt_array *x = dvt_zeros(DVT_SHAPE(0, 3), DVT_I32, dvt_cpu());
    CHECK_VALUES(dvt_sum(none, DVT_AXES(1)), 0, 0, 0, 0);
    CHECK_VALUES(dvt_prod(none, DVT_AXES(1)), 0, 1, 1, 1);
    CHECK_VALUES(dvt_mean(none, DVT_AXES(1)), 0, NAN, NAN, NAN);
    CHECK_VALUES(dvt_any(none, DVT_AXES(1)), 0, 0, 0, 0);
    CHECK_VALUES(dvt_all(none, DVT_AXES(1)), 0, 1, 1, 1);
    CHECK_VALUES(dvt_norm(none, DVT_AXES(1)), 0, 0, 0, 0);
    CHECK_VALUES(dvt_logsumexp(none, DVT_AXES(1)), 0, -INFINITY, -INFINITY, -INFINITY);
    CHECK_VALUES(dvt_var(none, DVT_AXES(1), 0), 0, NAN, NAN, NAN);
    CHECK_VALUES(dvt_sum(x, DVT_AXES(0)), 0, 0, 0, 0);
    CHECK_INT(dvt_dtype_of(dvt_sum(x, DVT_ALL)), DVT_I64);
    CHECK_INT(dvt_size(dvt_sum(x, DVT_AXES(1))), 0);
    CHECK_INT(dvt_size(dvt_max(x, DVT_AXES(1))), 0);
    CHECK_ERROR(dvt_min(x, DVT_AXES(0)), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_max(x, DVT_ALL), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_argmax(x, DVT_AXES(0)), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_argmin(x, DVT_ALL), DVT_ERR_SHAPE);
    CHECK_INT(dvt_size(dvt_softmax(none, 1)), 0);
    CHECK_INT(dvt_size(dvt_softmax(none, 0)), 0);
}

DVT_TEST(reductions_without_axes_and_wrong_axes) {
    dvt_array *x = dvt_full(DVT_SCALAR, -3, DVT_F32, dvt_cpu());
    dvt_array *m = dvt_zeros(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu());
    CHECK_INT(dvt_ndim(dvt_sum(x, dvt_keepdims(DVT_ALL))), 0);
    CHECK_CLOSE(dvt_item(dvt_sum(x, DVT_ALL)), -3, 0);
    CHECK_CLOSE(dvt_item(dvt_norm(x, DVT_ALL)), 3, 0);
    CHECK_CLOSE(dvt_item(dvt_var(x, DVT_ALL, 0)), 0, 0);
    CHECK_CLOSE(dvt_item(dvt_argmax(x, DVT_ALL)), 0, 0);
    CHECK_ERROR(dvt_sum(x, DVT_AXES(0)), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_sum(m, DVT_AXES(2)), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_sum(m, DVT_AXES(-3)), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_mean(m, DVT_AXES(0, -2)), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_var(m, DVT_AXES(1, 1), 0), DVT_ERR_AXIS);
    CHECK(dvt_std(m, DVT_AXES(5), 0) == NULL);
    CHECK(strstr(dvt_error(), "dvt_std"));
    CHECK_ERROR(dvt_argmax(m, DVT_AXES(2)), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_softmax(m, 2), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_softmax(x, 0), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_sum(NULL, DVT_ALL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_var(NULL, DVT_ALL, 0), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_argmin(NULL, DVT_AXES(0)), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_log_softmax(NULL, 0), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_var(m, DVT_ALL, NAN), DVT_ERR_VALUE);
}

DVT_TEST(reductions_nan_and_infinity) {
    dvt_array *x = DVT_ARRAY(double, DVT_SHAPE(4, 3), dvt_cpu(), 1, NAN, 2, INFINITY, 0, -INFINITY,
                             -INFINITY, -INFINITY, -INFINITY, 1, INFINITY, 2);
    CHECK_VALUES(dvt_max(x, DVT_AXES(1)), 0, NAN, INFINITY, -INFINITY, INFINITY);
    CHECK_VALUES(dvt_min(x, DVT_AXES(1)), 0, NAN, -INFINITY, -INFINITY, 1);
    CHECK_VALUES(dvt_sum(x, DVT_AXES(1)), 0, NAN, NAN, -INFINITY, INFINITY);
    CHECK_VALUES(dvt_norm(x, DVT_AXES(1)), 0, NAN, INFINITY, INFINITY, INFINITY);
    CHECK_VALUES(dvt_any(x, DVT_AXES(1)), 0, 1, 1, 1, 1); /* NaN is not zero */
    CHECK_VALUES(dvt_all(x, DVT_AXES(1)), 0, 1, 0, 1, 1);
    CHECK_VALUES(dvt_logsumexp(x, DVT_AXES(1)), 0, NAN, INFINITY, -INFINITY, INFINITY);
    CHECK_VALUES(dvt_argmax(x, DVT_AXES(1)), 0, 1, 0, 0, 1);
    CHECK_VALUES(dvt_argmin(x, DVT_AXES(1)), 0, 1, 2, 0, 0);
    CHECK_VALUES(dvt_argmin(x, DVT_AXES(0)), 0, 2, 0, 1);
    /* Values far from 0, where exp alone would overflow or underflow; and leading minus
       infinity. */
    CHECK_VALUES(dvt_logsumexp(DVT_ARRAY(float, DVT_SHAPE(3, 2), dvt_cpu(), 1000, 1000, -1000,
                                         -1000, -INFINITY, 5),
                               DVT_AXES(1)),
                 1e-6, 1000 + log(2), -1000 + log(2), 5);
    {
        dvt_array *late = dvt_full(DVT_SHAPE(3000), -INFINITY, DVT_F32, dvt_cpu());
        dvt_fill(dvt_slice(late, 0, 2500, 2502, 1), 3);
        CHECK_VALUES(dvt_logsumexp(late, DVT_ALL), 1e-6, 3 + log(2));
    }
}

/* Ties give the first index, in any layout; indices follow C order. */
DVT_TEST(argmin_and_argmax) {
    dvt_array *x =
        DVT_ARRAY(int32_t, DVT_SHAPE(3, 4), dvt_cpu(), 3, 9, 9, 1, 1, 2, 9, 1, 3, 0, 0, 8);
    dvt_dtype dtypes[] = {DVT_I32, DVT_F32, DVT_F16, DVT_I64, DVT_U8};
    int64_t large = 100003, i;
    float *v;
    for (int d = 0; d < 5; d++) {
        dvt_array *y = dvt_as_in_dtype(x, dtypes[d]);
        CHECK_INT(dvt_dtype_of(dvt_argmax(y, DVT_AXES(0))), DVT_I64);
        CHECK_VALUES(dvt_argmax(y, DVT_AXES(0)), 0, 0, 0, 0, 2);
        CHECK_VALUES(dvt_argmax(y, DVT_AXES(-1)), 0, 1, 2, 3);
        CHECK_VALUES(dvt_argmin(y, DVT_AXES(0)), 0, 1, 2, 2, 0);
        CHECK_VALUES(dvt_argmin(y, DVT_KEEPDIMS(1)), 0, 3, 0, 1);
        CHECK(dvt_shape_equal(dvt_shape_of(dvt_argmin(y, DVT_KEEPDIMS(1))), DVT_SHAPE(3, 1)));
        CHECK_VALUES(dvt_argmax(y, DVT_ALL), 0, 1);
        CHECK_VALUES(dvt_argmax(dvt_t(y), DVT_ALL), 0, 3);
        CHECK_ERROR(dvt_argmax(y, DVT_AXES(0, 1)), DVT_ERR_AXIS); /* two axes have no index */
        CHECK_VALUES(dvt_argmin(y, dvt_keepdims(DVT_ALL)), 0, 9);
        CHECK(dvt_shape_equal(dvt_shape_of(dvt_argmin(y, dvt_keepdims(DVT_ALL))), DVT_SHAPE(1, 1)));
    }
    CHECK_VALUES(dvt_argmax(dvt_zeros(DVT_SHAPE(2), DVT_BOOL, dvt_cpu()), DVT_AXES(0)), 0, 0);
    /* Over several chunks, and by columns. */
    v = (float *)calloc((size_t)large, sizeof *v);
    v[40001] = v[90000] = 5;
    v[77777] = v[99999] = -5;
    CHECK_INT(dvt_item_int(
                  dvt_argmax(dvt_from_host(v, DVT_SHAPE(large), DVT_F32, dvt_cpu()), DVT_AXES(0))),
              40001);
    CHECK_INT(dvt_item_int(
                  dvt_argmin(dvt_from_host(v, DVT_SHAPE(large), DVT_F32, dvt_cpu()), DVT_AXES(0))),
              77777);
    v[66666] = v[66667] = NAN;
    CHECK_INT(dvt_item_int(
                  dvt_argmax(dvt_from_host(v, DVT_SHAPE(large), DVT_F32, dvt_cpu()), DVT_AXES(0))),
              66666);
    CHECK_INT(dvt_item_int(
                  dvt_argmin(dvt_from_host(v, DVT_SHAPE(large), DVT_F32, dvt_cpu()), DVT_AXES(0))),
              66666);
    {
        dvt_array *m = dvt_from_host(v, DVT_SHAPE(1250, 80), DVT_F32, dvt_cpu()),
                  *at = dvt_argmax(m, DVT_AXES(0));
        for (i = 0; i < 80; i++)
            CHECK_INT(dvt_item_at(at, DVT_SHAPE(i)), i == 40001 % 80   ? 500
                                                     : i == 0          ? 1125
                                                     : i == 66666 % 80 ? 833
                                                     : i == 66667 % 80 ? 833
                                                                       : 0);
    }
    free(v);
}

DVT_TEST(variance_and_deviation) {
    dvt_array *x = DVT_ARRAY(double, DVT_SHAPE(2, 4), dvt_cpu(), 1, 2, 3, 6, -1, 5, 0, 0), *far;
    CHECK_VALUES(dvt_var(x, DVT_AXES(1), 0), 1e-14, 3.5, 5.5);
    CHECK_VALUES(dvt_var(x, DVT_KEEPDIMS(1), 1), 1e-14, 14. / 3, 22. / 3);
    CHECK_VALUES(dvt_std(x, DVT_AXES(0), 0), 1e-14, 1, 1.5, 1.5, 3);
    CHECK_VALUES(dvt_std(x, DVT_ALL, 0), 1e-14, sqrt(38. / 8 - 0 + 38. / 8 - 4));
    CHECK_INT(dvt_dtype_of(dvt_var(dvt_as_in_dtype(x, DVT_I32), DVT_ALL, 0)), DVT_F32);
    CHECK_VALUES(dvt_var(dvt_as_in_dtype(x, DVT_I32), DVT_AXES(1), 0), 1e-6, 3.5, 5.5);
    CHECK_VALUES(dvt_var(x, DVT_AXES(0), 2), 0, INFINITY, INFINITY, INFINITY, INFINITY);
    CHECK_VALUES(dvt_var(x, DVT_AXES(0), 5), 0, INFINITY, INFINITY, INFINITY, INFINITY);
    /* With a large mean, and with squares that overflow float16. */
    far = dvt_add_scalar(dvt_as_in_dtype(x, DVT_F32), 10000);
    CHECK_VALUES(dvt_var(far, DVT_AXES(1), 0), 1e-6, 3.5, 5.5);
    CHECK_VALUES(dvt_std(dvt_as_in_dtype(dvt_mul_scalar(x, 1000), DVT_F16), DVT_AXES(1), 0), 1e-3,
                 1000 * sqrt(3.5), 1000 * sqrt(5.5));
    CHECK_INT(dvt_dtype_of(dvt_std(dvt_as_in_dtype(x, DVT_BF16), DVT_ALL, 0)), DVT_BF16);
}

static void check_softmax(dvt_array *x, int axis, double tolerance) {
    dvt_array *y = dvt_softmax(x, axis), *l = dvt_log_softmax(x, axis);
    dvt_axes axes = DVT_AXES(axis);
    dvt_array *wide = dvt_as_in_dtype(x, DVT_F64), *e;
    double *expected, *got, *logs;
    int64_t i;
    e = dvt_exp(dvt_sub(wide, dvt_max(wide, dvt_keepdims(axes))));
    e = dvt_div(e, dvt_sum(e, dvt_keepdims(axes)));
    expected = dvt_test_values(e);
    got = dvt_test_values(y);
    logs = dvt_test_values(l);
    if (CHECK(expected && got && logs))
        for (i = 0; i < dvt_size(x); i++) {
            CHECK_CLOSE(got[i], expected[i], tolerance);
            CHECK_CLOSE(logs[i], log(expected[i]), tolerance);
        }
    CHECK_INT(dvt_dtype_of(y), dvt_dtype_is_float(dvt_dtype_of(x)) ? dvt_dtype_of(x) : DVT_F32);
    free(expected);
    free(got);
    free(logs);
}

DVT_TEST(softmax_values) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16, DVT_I32};
    for (int d = 0; d < 5; d++)
        DVT_SCOPE {
            double tolerance = d == 1 ? 1e-13 : d == 2 ? 2e-3 : d == 3 ? 1e-2 : 1e-6;
            dvt_array *x = dvt_as_in_dtype(
                random_input(DVT_SHAPE(5, 6, 7), d == 4 ? DVT_F32 : dtypes[d], SUM), dtypes[d]);
            for (int axis = -3; axis < 3; axis++) {
                check_softmax(x, axis, tolerance);
                check_softmax(dvt_transpose(x, DVT_AXES(1, 2, 0)), axis, tolerance);
            }
        }
    check_softmax(random_input(DVT_SHAPE(2, 1700), DVT_F64, SUM), 1, 1e-12);
    check_softmax(dvt_t(random_input(DVT_SHAPE(1700, 2), DVT_F32, SUM)), 0, 1e-6);
    CHECK_VALUES(
        dvt_softmax(DVT_ARRAY(float, DVT_SHAPE(2, 2), dvt_cpu(), 1000, 1000, -1e30f, 0), 1), 0, 0.5,
        0.5, 0, 1);
    CHECK_VALUES(dvt_log_softmax(DVT_ARRAY(float, DVT_SHAPE(2), dvt_cpu(), -1000, 0), 0), 0, -1000,
                 0);
    CHECK_VALUES(dvt_softmax(DVT_ARRAY(float, DVT_SHAPE(3), dvt_cpu(), 1, -INFINITY, 1), 0), 0, 0.5,
                 0, 0.5);
    CHECK_VALUES(dvt_softmax(DVT_ARRAY(float, DVT_SHAPE(2), dvt_cpu(), NAN, 1), 0), 0, NAN, NAN);
    CHECK_VALUES(dvt_softmax(DVT_ARRAY(float, DVT_SHAPE(1), dvt_cpu(), 7), -1), 0, 1);
}

/* Columns of 16-bit elements are read in pairs. */
DVT_TEST(reduce_bfloat16_columns) {
    dvt_array *row = dvt_as_in_dtype(dvt_arange(0, 70, 1, DVT_F32, dvt_cpu()), DVT_BF16);
    double expected[70];
    int i;
    for (i = 0; i < 70; i++)
        expected[i] = 16 * i;
    dvt_test_equal(dvt_sum(dvt_contiguous(dvt_broadcast_to(row, DVT_SHAPE(16, 70))), DVT_AXES(0)),
                   expected, 70, 0, __FILE__, __LINE__);
}
