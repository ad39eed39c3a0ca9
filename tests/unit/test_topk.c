/* Tests of topk against sorting. Bits of values and positions are compared in every dtype and both
   orders. All algorithms are tested (a sorted buffer, a buffer that is cut back, chunks, sorting),
   with the best ISA target and with the reference; then edge cases. */
#include "dvt_test.h"

static const dvt_dtype all_dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16, DVT_I8,
                                       DVT_U8,  DVT_I32, DVT_I64, DVT_BOOL};

enum pattern { RANDOM, FEW, SPECIAL, RISING, FALLING, EQUAL, PATTERNS };

static double value_of(enum pattern pattern, int64_t i) {
    static const double specials[] = {NAN, INFINITY, -INFINITY, 0., -0., -NAN};
    switch (pattern) {
    case FEW:
        return floor(dvt_test_random(-3, 3));
    case SPECIAL:
        return dvt_test_random(0, 1) < 0.3 ? specials[(int)dvt_test_random(0, 6)]
                                           : dvt_test_random(-1, 1);
    case RISING:
        return (double)i;
    case FALLING:
        return (double)-i;
    case EQUAL:
        return 3;
    default: /* wider than float32, for wide dtypes */
        return dvt_test_random(-1, 1) * pow(10, dvt_test_random(-3, 9));
    }
}

static dvt_array *patterned(dvt_shape shape, dvt_dtype dtype, enum pattern pattern) {
    int64_t n = dvt_shape_size(shape), i;
    double *values = (double *)malloc(sizeof(double) * (size_t)(n + 1));
    dvt_array *x;
    for (i = 0; i < n; i++) {
        values[i] = value_of(pattern, i);
        if (!dvt_dtype_is_float(dtype) && !(fabs(values[i]) < 2e9)) /* also NaN */
            values[i] = 7;
    }
    x = dvt_as_in_dtype(dvt_from_host(values, shape, DVT_F64, dvt_cpu()), dtype);
    free(values);
    return x;
}

static bool same_bits(dvt_array *a, dvt_array *b) {
    a = dvt_contiguous(a);
    b = dvt_contiguous(b);
    return a && b && dvt_shape_equal(dvt_shape_of(a), dvt_shape_of(b)) &&
           dvt_dtype_of(a) == dvt_dtype_of(b) &&
           (dvt_size(a) == 0 ||
            memcmp(dvt_data(a), dvt_data(b),
                   (size_t)(dvt_size(a) * dvt_dtype_size(dvt_dtype_of(a)))) == 0);
}

static void check_topk(dvt_array *x, int64_t k, int axis, bool largest) {
    dvt_array *at = NULL, *y = dvt_topk(x, k, axis, largest ? DVT_LARGEST : DVT_SMALLEST, &at);
    dvt_array *sorted =
        dvt_slice(dvt_sort(x, axis, largest ? DVT_DESCENDING : DVT_ASCENDING), axis, 0, k, 1);
    dvt_array *order =
        dvt_slice(dvt_argsort(x, axis, largest ? DVT_DESCENDING : DVT_ASCENDING), axis, 0, k, 1);
    const char *dtype = dvt_dtype_name(dvt_dtype_of(x));
    if (!dvt_test_check(y && at, __FILE__, __LINE__, "dvt_topk: %s", dvt_error()))
        return;
    CHECK(dvt_is_contiguous(y) && dvt_is_contiguous(at));
    dvt_test_check(same_bits(y, sorted), __FILE__, __LINE__, "%s: values of %lld, largest %d",
                   dtype, (long long)k, largest);
    dvt_test_check(same_bits(at, order), __FILE__, __LINE__, "%s: positions of %lld, largest %d",
                   dtype, (long long)k, largest);
    CHECK(same_bits(y, dvt_topk(x, k, axis, largest ? DVT_LARGEST : DVT_SMALLEST, NULL)));
}

static void check_lengths(void) {
    static const struct {
        int64_t rows, n, k;
    } of[] = {{5, 1, 1},     {5, 7, 3},     {5, 40, 10},    {3, 64, 16},
              {4, 300, 40},  {3, 300, 41},  {7, 1000, 1},   {3, 1500, 60},
              {2, 700, 175}, {2, 700, 176}, {2, 5000, 600}, {2, 90, 90}};

    int d, i, p;
    for (d = 0; d < 9; d++)
        for (i = 0; i < 12; i++)
            for (p = 0; p < PATTERNS; p++)
                DVT_SCOPE {
                    dvt_array *x =
                        patterned(DVT_SHAPE(of[i].rows, of[i].n), all_dtypes[d], (enum pattern)p);
                    check_topk(x, of[i].k, 1, true);
                    check_topk(x, of[i].k, 1, false);
                }
}

DVT_TEST(topk_lengths) {
    check_lengths();
}

DVT_TEST(topk_by_the_reference) {
    CHECK_INT(dvt_set_cpu_isa("reference"), DVT_OK);
    check_lengths();
    CHECK_INT(dvt_set_cpu_isa(NULL), DVT_OK);
}

/* Rows processed in lockstep: all remainders of lengths and of groups, one row that needs the
   general path. Also without SIMD. */
DVT_TEST(topk_short_rows) {
    int64_t n, rows, reference;
    for (reference = 0; reference < 2; reference++) {
        CHECK_INT(dvt_set_cpu_isa(reference ? "reference" : NULL), DVT_OK);
        for (n = 4; n < 80; n++)
            for (rows = 3; rows < 40; rows += 1 + rows % 3)
                DVT_SCOPE {
                    dvt_array *x = patterned(DVT_SHAPE(rows, n), DVT_F32, n % 3 ? FEW : RISING);
                    x = dvt_add_scalar(x, 0); /* no -0 */
                    dvt_fill(dvt_slice(dvt_rows(x, 1, 2), 1, 0, n / 2, 1), -INFINITY);
                    check_topk(x, 1 + n / 5, 1, true);
                    check_topk(x, n / 4, 1, false);
                    dvt_fill(dvt_slice(dvt_rows(x, 0, 1), 1, 0, 2, 1), n % 2 ? -0. : NAN);
                    check_topk(x, n / 4, 1, n % 2 != 0);
                }
        for (n = 255; n < 258; n++)
            for (rows = 14; rows < 18; rows++)
                DVT_SCOPE {
                    dvt_array *x = patterned(DVT_SHAPE(rows, n), DVT_F32, RANDOM);
                    check_topk(x, 16, 1, true);
                    check_topk(x, 17, 1, false);
                }
    }
    CHECK_INT(dvt_set_cpu_isa(NULL), DVT_OK);
}

/* Rows that are read in chunks, with one thread and several. */
DVT_TEST(topk_chunks_and_threads) {
    int threads, p, many;
    for (threads = 1; threads <= 3; threads++) {
        CHECK_INT(dvt_set_num_threads(threads), DVT_OK);
        for (p = 0; p < PATTERNS; p++)
            for (many = 0; many < 2; many++)
                DVT_SCOPE {
                    dvt_array *x =
                        patterned(DVT_SHAPE(2, 270001), p % 2 ? DVT_F32 : DVT_I32, (enum pattern)p);
                    check_topk(x, many ? 3000 : 10, 1, p != FALLING);
                    check_topk(dvt_reshape(dvt_slice(x, 1, 0, 80000, 1), DVT_SHAPE(320, 500)),
                               many ? 50 : 10, 1, p != FALLING);
                }
    }
    CHECK_INT(dvt_set_num_threads(0), DVT_OK);
}

DVT_TEST(topk_axes_and_views) {
    int d, axis, k;
    for (d = 0; d < 9; d++)
        for (k = 0; k < 6; k += 5)
            for (axis = -3; axis < 3; axis++)
                DVT_SCOPE {
                    dvt_array *x = patterned(DVT_SHAPE(6, 7, 32), all_dtypes[d], FEW);
                    check_topk(x, k, axis, true);
                    check_topk(dvt_swapaxes(x, 0, 2), k, axis, false);
                    check_topk(dvt_slice(x, 2, -1, DVT_END, -3), k, axis, true);
                    check_topk(dvt_broadcast_to(dvt_slice(x, 1, 0, 1, 1), DVT_SHAPE(6, 5, 32)), k,
                               axis, false);
                }
}

/* Checks the order of equal elements, zeros and NaN, and the bits of all. */
DVT_TEST(topk_values) {
    static const uint32_t bits[] = {0x7fc00001, 0x80000000, 0, 0xffc00002, 0x80000000, 0x3f800000};
    static const uint32_t most[] = {0x7fc00001, 0xffc00002, 0x3f800000, 0x80000000};
    dvt_array *x = dvt_from_host(bits, DVT_SHAPE(6), DVT_F32, dvt_cpu()), *at = NULL;
    CHECK(memcmp(dvt_data(dvt_topk(x, 4, 0, DVT_LARGEST, &at)), most, sizeof most) == 0);
    CHECK_VALUES(at, 0, 0, 3, 5, 1);
    CHECK_VALUES(dvt_topk(x, 2, -1, DVT_SMALLEST, &at), 0, -0., 0);
    CHECK_VALUES(at, 0, 1, 2);
    x = DVT_ARRAY(int32_t, DVT_SHAPE(2, 3), dvt_cpu(), 4, 9, 4, 1, 2, 8);
    CHECK_VALUES(dvt_topk(x, 2, 1, DVT_LARGEST, &at), 0, 9, 4, 8, 2);
    CHECK_VALUES(at, 0, 1, 0, 2, 1);
    CHECK_VALUES(dvt_topk(x, 1, 0, DVT_SMALLEST, &at), 0, 1, 2, 4);
    CHECK_VALUES(at, 0, 1, 1, 0);
}

DVT_TEST(topk_corners_and_errors) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu()), *none = dvt_slice(x, 0, 0, 0, 1);
    dvt_array *at = x;
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_topk(x, 0, 0, DVT_LARGEST, &at)), DVT_SHAPE(0, 3)));
    CHECK(dvt_shape_equal(dvt_shape_of(at), DVT_SHAPE(0, 3)) && dvt_dtype_of(at) == DVT_I64);
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_topk(none, 0, 0, DVT_LARGEST, &at)), DVT_SHAPE(0, 3)));
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_topk(none, 2, 1, DVT_SMALLEST, &at)), DVT_SHAPE(0, 2)));
    CHECK(dvt_shape_equal(dvt_shape_of(at), DVT_SHAPE(0, 2)));
    CHECK_ERROR(dvt_topk(x, 4, 1, DVT_LARGEST, &at), DVT_ERR_RANGE);
    CHECK(at == NULL);
    CHECK_ERROR(dvt_topk(x, -1, 1, DVT_LARGEST, NULL), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_topk(none, 1, 0, DVT_LARGEST, NULL), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_topk(x, 1, 2, DVT_LARGEST, NULL), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_topk(x, 1, 1, (dvt_extreme)2, NULL), DVT_ERR_VALUE);
    at = x;
    CHECK_ERROR(dvt_topk(dvt_scalar(1, DVT_F32, dvt_cpu()), 1, 0, DVT_LARGEST, &at), DVT_ERR_AXIS);
    CHECK(at == NULL);
    CHECK_ERROR(dvt_topk(NULL, 1, 0, DVT_LARGEST, NULL), DVT_ERR_NULL_ARGUMENT);
}

/* Gradients go to the positions of the values; positions have no gradient. Also on a virtual
   GPU. */
DVT_TEST(topk_gradients_and_contexts) {
    int gpu;
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    for (gpu = 0; gpu < 2; gpu++)
        DVT_SCOPE {
            static const float values[] = {3, 1, 2, 5, 4, 6};
            dvt_array *x =
                dvt_from_host(values, DVT_SHAPE(2, 3), DVT_F32, gpu ? dvt_gpu(0) : dvt_cpu());
            dvt_array *y = NULL, *at = NULL;
            CHECK_INT(dvt_attach_grad(x, DVT_GRAD_WRITE), DVT_OK);
            DVT_RECORD {
                y = dvt_topk(x, 2, 1, DVT_LARGEST, &at);
                CHECK(dvt_has_history(y) && !dvt_has_history(at));
                y = dvt_mul(y, dvt_as_in_dtype(dvt_add_scalar(at, 10), DVT_F32));
            }
            CHECK_INT(dvt_backward(y), DVT_OK);
            CHECK_VALUES(y, 0, 30, 24, 72, 50);
            CHECK_VALUES(dvt_grad(x), 0, 10, 0, 12, 10, 0, 12);
        }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}
