/* Tests of sorting against a plain stable merge sort by the documented order, in every dtype,
   layout and length class, and of edge cases. */
#include "dvt_test.h"

static const dvt_dtype all_dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16, DVT_I8,
                                       DVT_U8,  DVT_I32, DVT_I64, DVT_BOOL};

/* Returns random values; a small `levels` gives many ties. `special` adds NaN, infinities and both
   zeros. */
static dvt_array *random_array(dvt_shape shape, dvt_dtype dtype, double levels, bool special) {
    static const double specials[] = {NAN, INFINITY, -INFINITY, 0., -0., -NAN};
    int64_t n = dvt_shape_size(shape), i;
    double *values = (double *)malloc(sizeof(double) * (size_t)(n + 1));
    bool is_float = dvt_dtype_is_float(dtype);
    dvt_array *x;
    for (i = 0; i < n; i++) {
        values[i] = floor(dvt_test_random(dtype == DVT_U8 ? 0 : -levels, levels));
        if (is_float)
            values[i] /= 8;
        if (special && is_float && dvt_test_random(0, 1) < 0.3)
            values[i] = specials[(int)dvt_test_random(0, 6)];
    }
    x = dvt_as_in_dtype(dvt_from_host(values, shape, DVT_F64, dvt_cpu()), dtype);
    free(values);
    return x;
}

/* Tells whether a precedes b. */
static bool before(double a, double b, bool descending) {
    if (descending)
        return a != a ? b == b : a > b;
    return b != b ? a == a : a < b;
}

/* Sorts indices by a stable merge sort. */
static void sort_numbers(const double *x, int64_t *at, int64_t *other, int64_t n, int64_t step,
                         bool descending) {
    int64_t half = n / 2, i = 0, j = half, k;
    if (n < 2)
        return;
    sort_numbers(x, at, other, half, step, descending);
    sort_numbers(x, at + half, other, n - half, step, descending);
    for (k = 0; k < n; k++)
        other[k] = j == n || (i < half && !before(x[at[j] * step], x[at[i] * step], descending))
                       ? at[i++]
                       : at[j++];
    memcpy(at, other, sizeof *at * (size_t)n);
}

static bool same(double a, double b) {
    return a != a ? b != b : a == b && signbit(a) == signbit(b);
}

static void check_sort(dvt_array *x, int axis, bool descending) {
    dvt_array *y = dvt_sort(x, axis, descending ? DVT_DESCENDING : DVT_ASCENDING),
              *where = dvt_argsort(x, axis, descending ? DVT_DESCENDING : DVT_ASCENDING);
    dvt_shape shape = dvt_shape_of(x);
    double *from = dvt_test_values(x), *got = dvt_test_values(y), *at = dvt_test_values(where);
    int a = axis < 0 ? axis + shape.ndim : axis, k;
    int64_t n = shape.dim[a], step = 1, line, i, bad = -1;
    int64_t *number = (int64_t *)malloc(sizeof *number * 2 * (size_t)n);
    if (!dvt_test_check(got && at, __FILE__, __LINE__, "dvt_sort: %s", dvt_error()))
        return;
    CHECK_INT(dvt_dtype_of(y), dvt_dtype_of(x));
    CHECK_INT(dvt_dtype_of(where), DVT_I64);
    CHECK(dvt_shape_equal(dvt_shape_of(y), shape) && dvt_shape_equal(dvt_shape_of(where), shape));
    CHECK(dvt_is_contiguous(y) && dvt_is_contiguous(where));
    for (k = a + 1; k < shape.ndim; k++)
        step *= shape.dim[k];
    for (line = 0; line < dvt_size(x) / n; line++) {
        int64_t first = line / step * step * n + line % step;
        for (i = 0; i < n; i++)
            number[i] = i;
        sort_numbers(from + first, number, number + n, n, step, descending);
        for (i = 0; i < n && bad < 0; i++)
            if (at[first + i * step] != (double)number[i] ||
                !same(got[first + i * step], from[first + number[i] * step]))
                bad = first + i * step;
    }
    dvt_test_check(bad < 0, __FILE__, __LINE__, "%s, axis %d of extent %lld, descending %d: [%lld]",
                   dvt_dtype_name(dvt_dtype_of(x)), axis, (long long)n, descending, (long long)bad);
    free(number);
    free(from);
    free(got);
    free(at);
}

DVT_TEST(sort_values) {
    for (int d = 0; d < 9; d++)
        for (int k = 0; k < 4; k++)
            DVT_SCOPE {
                bool descending = k % 2 != 0;
                dvt_array *x = random_array(DVT_SHAPE(5, 17, 60), all_dtypes[d], 100, k > 1);
                for (int axis = -3; axis < 3; axis++)
                    check_sort(x, axis, descending);
                check_sort(dvt_swapaxes(x, 0, 2), 2, descending);
                check_sort(dvt_slice(x, 2, -1, DVT_END, -2), 2, descending);
                check_sort(dvt_broadcast_to(dvt_slice(x, 1, 0, 1, 1), DVT_SHAPE(5, 3, 60)), 1,
                           descending);
            }
}

/* Lengths for insertion sort and radix sort by 8 and by 11 bits, and lengths between them; one row
   and several. */
DVT_TEST(sort_lengths) {
    static const int64_t lengths[] = {1, 2, 3, 39, 40, 41, 42, 300, 8191, 8192, 20000};
    for (int d = 0; d < 9; d++)
        for (int i = 0; i < 11; i++)
            DVT_SCOPE {
                int64_t rows = lengths[i] < 1000 ? 7 : 1;
                dvt_shape shape = DVT_SHAPE(rows, lengths[i]);
                check_sort(random_array(shape, all_dtypes[d], 1e9, false), 1, false);
                check_sort(random_array(shape, all_dtypes[d], 1e9, true), 1, true);
                check_sort(random_array(shape, all_dtypes[d], 3, i % 2 != 0), 1, i % 3 == 0);
            }
}

/* Rows sorted in lockstep: all remainders of lengths and of groups, infinities, and rows that need
   the general path. Also without SIMD. */
DVT_TEST(sort_short_rows) {
    int64_t n, rows, reference;
    for (reference = 0; reference < 2; reference++) {
        CHECK_INT(dvt_set_cpu_isa(reference ? "reference" : NULL), DVT_OK);
        for (n = 2; n < 70; n++)
            for (rows = 3; rows < 40; rows += 1 + rows % 3)
                DVT_SCOPE {
                    dvt_array *x = random_array(DVT_SHAPE(rows, n), DVT_F32, 40, false);
                    dvt_fill(dvt_slice(dvt_rows(x, 1, 2), 1, 0, 1, 1), -INFINITY);
                    dvt_fill(dvt_slice(dvt_rows(x, 2, 3), 1, 1, 2, 1), INFINITY);
                    check_sort(x, 1, n % 2 != 0);
                    dvt_fill(dvt_slice(dvt_rows(x, 0, 1), 1, 0, 1, 1), n % 3 ? -0. : NAN);
                    check_sort(x, 1, n % 2 == 0);
                    x = random_array(DVT_SHAPE(rows, n), DVT_I32, n % 3 ? 40 : 2e9, false);
                    dvt_fill(dvt_slice(dvt_rows(x, 1, 2), 1, 0, 1, 1), -2147483648.);
                    dvt_fill(dvt_slice(dvt_rows(x, 2, 3), 1, 1, 2, 1), 2147483647.);
                    check_sort(x, 1, n % 2 != 0);
                }
    }
    CHECK_INT(dvt_set_cpu_isa(NULL), DVT_OK);
    for (n = 1024; n <= 4097; n = n == 1024 ? 1025 : n == 1025 ? 4096 : n + 1)
        for (rows = 4; rows <= 24; rows += 10)
            DVT_SCOPE {
                check_sort(random_array(DVT_SHAPE(rows, n), DVT_F32, 1e9, false), 1, n % 2 != 0);
            }
}

/* Zeros and NaN keep their order and their bits, including NaN payloads. */
DVT_TEST(sort_keeps_bits) {
    static const uint32_t bits[] = {0x7fc00001, 0x80000000, 0, 0xffc00002, 0x80000000, 0x3f800000};
    static const uint32_t up[] = {0x80000000, 0, 0x80000000, 0x3f800000, 0x7fc00001, 0xffc00002};
    static const uint32_t down[] = {0x7fc00001, 0xffc00002, 0x3f800000, 0x80000000, 0, 0x80000000};
    dvt_array *x = dvt_from_host(bits, DVT_SHAPE(6), DVT_F32, dvt_cpu());
    CHECK(memcmp(dvt_data(dvt_sort(x, 0, DVT_ASCENDING)), up, sizeof up) == 0);
    CHECK(memcmp(dvt_data(dvt_sort(x, 0, DVT_DESCENDING)), down, sizeof down) == 0);
    CHECK_VALUES(dvt_argsort(x, 0, DVT_ASCENDING), 0, 1, 2, 4, 5, 0, 3);
    CHECK_VALUES(dvt_argsort(x, 0, DVT_DESCENDING), 0, 0, 3, 5, 1, 2, 4);
}

DVT_TEST(sort_corners_and_errors) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu()), *none = dvt_slice(x, 0, 0, 0, 1);
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_sort(none, 0, DVT_ASCENDING)), DVT_SHAPE(0, 3)));
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_argsort(none, 0, DVT_DESCENDING)), DVT_SHAPE(0, 3)));
    CHECK_INT(dvt_size(dvt_sort(none, 1, DVT_ASCENDING)), 0);
    CHECK_ERROR(dvt_sort(x, 2, DVT_ASCENDING), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_argsort(x, -3, DVT_ASCENDING), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_sort(x, 0, (dvt_order)2), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_argsort(x, 0, (dvt_order)-1), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_sort(dvt_scalar(1, DVT_F32, dvt_cpu()), 0, DVT_ASCENDING), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_sort(NULL, 0, DVT_ASCENDING), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_argsort(NULL, 0, DVT_ASCENDING), DVT_ERR_NULL_ARGUMENT);
}

/* The result does not depend on the number of threads. */
DVT_TEST(sort_threads) {
    dvt_array *x = random_array(DVT_SHAPE(300, 500), DVT_F32, 1000, true);
    int threads;
    for (threads = 1; threads <= 3; threads++) {
        CHECK(dvt_set_num_threads(threads) == DVT_OK);
        check_sort(x, 1, false);
        check_sort(x, 0, true);
    }
    CHECK(dvt_set_num_threads(0) == DVT_OK);
}

/* Rows that threads share: floats and int32, both orders, keys that cannot be cut, and rows that
   NaN and -0 send to the general path. */
DVT_TEST(sort_shared_rows) {
    int threads, form;
    for (threads = 1; threads <= 5; threads += 2) {
        CHECK(dvt_set_num_threads(threads) == DVT_OK);
        for (form = 0; form < 10; form++)
            DVT_SCOPE {
                const dvt_dtype dtype = form % 2 ? DVT_I32 : DVT_F32;
                const double levels = form < 4 ? 1e9 : form < 6 ? 1 : 0.5;
                dvt_array *x = random_array(DVT_SHAPE(1 + form % 3 / 2, 65536 + form), dtype,
                                            levels, form == 8);
                check_sort(x, 1, form % 4 > 1);
            }
    }
    CHECK(dvt_set_num_threads(0) == DVT_OK);
}
