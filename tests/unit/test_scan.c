/* Tests of cumulative sums against plain loops in the documented order, in every dtype, layout and
   length class, and of edge cases. */
#include "dvt_test.h"

static const dvt_dtype all_dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16, DVT_I8,
                                       DVT_U8,  DVT_I32, DVT_I64, DVT_BOOL};

static dvt_array *random_array(dvt_shape shape, dvt_dtype dtype) {
    int64_t n = dvt_shape_size(shape), i;
    double *values = (double *)malloc(sizeof(double) * (size_t)(n + 1));
    bool whole = !dvt_dtype_is_float(dtype);
    dvt_array *x;
    for (i = 0; i < n; i++) {
        values[i] = dvt_test_random(dtype == DVT_U8 || dtype == DVT_BOOL ? 0 : -9, 9);
        values[i] = whole ? floor(values[i]) : values[i];
    }
    x = dvt_as_in_dtype(dvt_from_host(values, shape, DVT_F64, dvt_cpu()), dtype);
    free(values);
    return x;
}

/* Computes one line in the documented order: chunks of 1024, each starting from -0, plus the sum of
   earlier chunks. */
static void line_sums(const double *x, int64_t n, int64_t step, double *y) {
    double before = -0., sum = -0.;
    int64_t j;
    for (j = 0; j < n; j++) {
        if (j && j % 1024 == 0) {
            before += sum;
            sum = -0.;
        }
        sum += x[j * step];
        y[j * step] = before + sum;
    }
}

static void check_cumsum(dvt_array *x, int axis) {
    dvt_array *y = dvt_cumsum(x, axis);
    dvt_shape shape = dvt_shape_of(x);
    double *from = dvt_test_values(x), *want, *got;
    int64_t n = dvt_size(x), step = 1, line, bad = -1, i;
    int at = axis < 0 ? axis + shape.ndim : axis, k;
    dvt_dtype dtype = dvt_dtype_is_float(dvt_dtype_of(x)) ? dvt_dtype_of(x) : DVT_I64;
    if (!dvt_test_check(y != NULL, __FILE__, __LINE__, "dvt_cumsum: %s", dvt_error()))
        return;
    CHECK_INT(dvt_dtype_of(y), dtype);
    CHECK(dvt_shape_equal(dvt_shape_of(y), shape));
    want = (double *)malloc(sizeof(double) * (size_t)(n + 1));
    for (k = at + 1; k < shape.ndim; k++)
        step *= shape.dim[k];
    for (line = 0; line < n / shape.dim[at]; line++) {
        int64_t first = line / step * step * shape.dim[at] + line % step;
        line_sums(from + first, shape.dim[at], step, want + first);
    }
    free(from);
    from = dvt_test_values(dvt_astype(dvt_from_host(want, shape, DVT_F64, dvt_cpu()), dtype));
    got = dvt_test_values(y);
    for (i = 0; i < n && bad < 0; i++)
        if (!(got[i] == from[i] || (got[i] != got[i] && from[i] != from[i])))
            bad = i;
    dvt_test_check(bad < 0, __FILE__, __LINE__,
                   "%s, axis %d of %lld elements: [%lld] is %.17g not %.17g",
                   dvt_dtype_name(dvt_dtype_of(x)), axis, (long long)n, (long long)bad,
                   bad < 0 ? 0 : got[bad], bad < 0 ? 0 : from[bad]);
    free(from);
    free(want);
    free(got);
}

DVT_TEST(cumsum_values) {
    for (int d = 0; d < 9; d++)
        DVT_SCOPE {
            dvt_array *x = random_array(DVT_SHAPE(3, 17, 20), all_dtypes[d]);
            for (int axis = -3; axis < 3; axis++)
                check_cumsum(x, axis);
            check_cumsum(dvt_swapaxes(x, 0, 2), 1);
            check_cumsum(dvt_slice(x, 1, -1, DVT_END, -2), 1);
            check_cumsum(dvt_slice(x, 2, 3, 19, 2), 2);
            check_cumsum(dvt_broadcast_to(dvt_slice(x, 1, 0, 1, 1), DVT_SHAPE(3, 5, 20)), 1);
        }
}

/* One chunk, exactly one, several; single lines, full groups of lines and remainders; columns in
   full tiles and remainders. */
DVT_TEST(cumsum_lengths) {
    static const int64_t lengths[] = {1, 2, 15, 16, 17, 500, 1023, 1024, 1025, 4096, 5000, 20001};
    static const int64_t lines[] = {1, 2, 4, 7, 19, 33};
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_I32, DVT_I64};
    for (int d = 0; d < 5; d++)
        for (int i = 0; i < 12; i++)
            for (int k = 0; k < 6; k++)
                DVT_SCOPE {
                    dvt_dtype dtype = dtypes[d];
                    check_cumsum(random_array(DVT_SHAPE(lines[k], lengths[i]), dtype), 1);
                    if (lengths[i] < 5000)
                        check_cumsum(random_array(DVT_SHAPE(lengths[i], lines[k]), dtype), 0);
                }
    check_cumsum(random_array(DVT_SHAPE(70000), DVT_F32), 0);
    check_cumsum(random_array(DVT_SHAPE(40, 1100), DVT_F32), 0);
    check_cumsum(random_array(DVT_SHAPE(40, 1100), DVT_F64), 0);
    check_cumsum(random_array(DVT_SHAPE(2, 9000, 3), DVT_F32), 1);
}

DVT_TEST(cumsum_specials) {
    double *values;
    dvt_array *x = DVT_ARRAY(float, DVT_SHAPE(6), dvt_cpu(), -0.f, -0.f, 1, INFINITY, -INFINITY, 2);
    CHECK_VALUES(dvt_cumsum(x, 0), 0, 0, 0, 1, INFINITY, NAN, NAN);
    values = dvt_test_values(dvt_cumsum(x, 0));
    CHECK(signbit(values[0]) && signbit(values[1])); /* as in NumPy */
    free(values);
    CHECK_VALUES(dvt_cumsum(DVT_ARRAY(uint8_t, DVT_SHAPE(3), dvt_cpu(), 200, 100, 255), 0), 0, 200,
                 300, 555);
    CHECK_VALUES(dvt_cumsum(dvt_full(DVT_SHAPE(3), 1, DVT_BOOL, dvt_cpu()), -1), 0, 1, 2, 3);
    /* float16 cannot represent 2049, so rounded partial sums would not change any more. */
    x = dvt_cumsum(dvt_ones(DVT_SHAPE(3000), DVT_F16, dvt_cpu()), 0);
    CHECK_CLOSE(dvt_item(dvt_index(x, 2999)), 3000, 0);
}

DVT_TEST(cumsum_corners_and_errors) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu());
    CHECK_INT(dvt_size(dvt_cumsum(dvt_slice(x, 0, 0, 0, 1), 0)), 0);
    CHECK_INT(dvt_size(dvt_cumsum(dvt_slice(x, 0, 0, 0, 1), 1)), 0);
    CHECK_ERROR(dvt_cumsum(x, 2), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_cumsum(x, -3), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_cumsum(dvt_scalar(1, DVT_F32, dvt_cpu()), 0), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_cumsum(NULL, 0), DVT_ERR_NULL_ARGUMENT);
    CHECK(dvt_cumsum(x, 2) == NULL);
    CHECK(strstr(dvt_error(), "dvt_cumsum"));
    dvt_clear_error();
}

/* The bits are the same on one thread and several, on every ISA target and on the reference. */
DVT_TEST(cumsum_same_bits_for_any_threads_and_isa) {
    dvt_array *rows = random_array(DVT_SHAPE(37, 9001), DVT_F32);
    dvt_array *want[2], *got[2];
    size_t bytes = (size_t)dvt_nbytes(rows);
    int threads, k, target;
    CHECK(dvt_set_cpu_isa("reference") == DVT_OK && dvt_set_num_threads(1) == DVT_OK);
    for (k = 0; k < 2; k++)
        want[k] = dvt_cumsum(rows, k);
    for (target = 0; target < 2; target++)
        for (threads = 1; threads <= 3; threads++) {
            CHECK(dvt_set_cpu_isa(target ? NULL : "reference") == DVT_OK);
            CHECK(dvt_set_num_threads(threads) == DVT_OK);
            for (k = 0; k < 2; k++) {
                got[k] = dvt_cumsum(rows, k);
                CHECK(memcmp(dvt_data(got[k]), dvt_data(want[k]), bytes) == 0);
            }
        }
    CHECK(dvt_set_num_threads(0) == DVT_OK && dvt_set_cpu_isa(NULL) == DVT_OK);
}
