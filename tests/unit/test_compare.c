/* Tests of dvt_isclose, dvt_allclose and dvt_array_equal by NumPy's rules, and of
   dvt_synchronize. */
#include "dvt_test.h"
#include <string.h>

#define INF ((float)INFINITY)
#define NOT ((float)NAN)

static dvt_array *four(float a, float b, float c, float d) {
    return DVT_ARRAY(float, DVT_SHAPE(4), dvt_test_ctx(), a, b, c, d);
}

static dvt_array *wide(double a, double b) {
    return DVT_ARRAY(double, DVT_SHAPE(2), dvt_test_ctx(), a, b);
}

static dvt_array *exact(dvt_dtype dtype, int a, int b) {
    return dvt_as_in_dtype(DVT_ARRAY(int64_t, DVT_SHAPE(2), dvt_test_ctx(), a, b), dtype);
}

DVT_TEST(compare_isclose_has_numpys_bound) {
    /* the bound is atol + rtol |b|, which is asymmetric in a and b */
    CHECK_VALUES(dvt_isclose(wide(10, 11), wide(11, 10), 0.095, 0, DVT_NAN_DIFFERS), 0, 1, 0);
    CHECK_VALUES(dvt_isclose(wide(0.25, 0), wide(0, 0.5), 0, 0.25, DVT_NAN_DIFFERS), 0, 1, 0);
    CHECK_VALUES(dvt_isclose(wide(1e-9, 1e-7), wide(0, 0), 1e-5, 1e-8, DVT_NAN_DIFFERS), 0, 1, 0);
    CHECK_VALUES(
        dvt_isclose(wide(1e10, 1e10), wide(1.00001e10, 1.0001e10), 1e-5, 1e-8, DVT_NAN_DIFFERS), 0,
        1, 0);
    CHECK_INT(dvt_dtype_of(dvt_isclose(wide(1, 2), wide(1, 2), 0, 0, DVT_NAN_DIFFERS)), DVT_BOOL);
}

DVT_TEST(compare_isclose_of_infinities_and_nan) {
    dvt_array *a = four(INF, 1, INF, NOT), *b = four(INF, INF, -INF, NOT);
    CHECK_VALUES(dvt_isclose(a, b, 1e-5, 1e-8, DVT_NAN_DIFFERS), 0, 1, 0, 0, 0);
    CHECK_VALUES(dvt_isclose(b, a, 1e-5, 1e-8, DVT_NAN_DIFFERS), 0, 1, 0, 0, 0);
    CHECK_VALUES(dvt_isclose(a, b, 1e-5, 1e-8, DVT_NAN_EQUALS), 0, 1, 0, 0, 1);
    CHECK_VALUES(dvt_isclose(a, b, 0, 0, DVT_NAN_EQUALS), 0, 1, 0, 0, 1);
    CHECK_VALUES(dvt_isclose(a, b, INFINITY, 0, DVT_NAN_DIFFERS), 0, 1, 0, 0, 0);
    CHECK_VALUES(dvt_isclose(four(NOT, 1, 2, 3), four(1, NOT, 2, 3), 1, 1, DVT_NAN_EQUALS), 0, 0, 0,
                 1, 1);
}

DVT_TEST(compare_isclose_of_dtypes) {
    dvt_array *half = dvt_astype(wide(1, 2), DVT_F16);
    CHECK_VALUES(
        dvt_isclose(exact(DVT_I32, 100, 7), exact(DVT_I32, 101, 9), 0.01, 0, DVT_NAN_DIFFERS), 0, 1,
        0);
    CHECK_VALUES(dvt_isclose(exact(DVT_U8, 0, 255), exact(DVT_U8, 255, 254), 0, 1, DVT_NAN_DIFFERS),
                 0, 0, 1); /* differences do not wrap */
    CHECK_VALUES(dvt_isclose(exact(DVT_BOOL, 0, 1), exact(DVT_BOOL, 1, 1), 0, 0.5, DVT_NAN_DIFFERS),
                 0, 0, 1);
    CHECK_VALUES(dvt_isclose(exact(DVT_I64, 1, 2), wide(1 + 1e-9, 2.1), 0, 1e-8, DVT_NAN_DIFFERS),
                 0, 1, 0);
    /* a tolerance that float16 cannot represent */
    CHECK_VALUES(
        dvt_isclose(half, dvt_astype(wide(1, 2.002), DVT_F16), 1e-9, 1e-9, DVT_NAN_DIFFERS), 0, 1,
        0);
    CHECK_VALUES(dvt_isclose(half, wide(1, 2.002), 0, 0.01, DVT_NAN_DIFFERS), 0, 1, 1);
}

DVT_TEST(compare_isclose_broadcasts) {
    dvt_array *rows = DVT_ARRAY(float, DVT_SHAPE(2, 1), dvt_test_ctx(), 1, 2);
    dvt_array *close = dvt_isclose(rows, wide(1, 2), 0, 0, DVT_NAN_DIFFERS);
    CHECK(dvt_shape_equal(dvt_shape_of(close), DVT_SHAPE(2, 2)));
    CHECK_VALUES(close, 0, 1, 0, 0, 1);
    CHECK(!dvt_allclose(rows, wide(1, 2), 0, 0, DVT_NAN_DIFFERS));
    CHECK(dvt_allclose(rows, wide(1, 2), 0, 1, DVT_NAN_DIFFERS));
    CHECK_ERROR(dvt_isclose(wide(1, 2), four(1, 2, 3, 4), 0, 0, DVT_NAN_DIFFERS), DVT_ERR_SHAPE);
}

DVT_TEST(compare_allclose) {
    dvt_array *x = four(1, 2, 3, NOT);
    CHECK(dvt_allclose(four(1, 2, 3, 4), four(1, 2, 3, 4.00003f), 1e-5, 1e-8, DVT_NAN_DIFFERS));
    CHECK(!dvt_allclose(four(1, 2, 3, 4), four(1, 2, 3, 4.0001f), 1e-5, 1e-8, DVT_NAN_DIFFERS));
    CHECK(!dvt_allclose(x, x, 1e-5, 1e-8, DVT_NAN_DIFFERS));
    CHECK(dvt_allclose(x, x, 1e-5, 1e-8, DVT_NAN_EQUALS));
    CHECK(dvt_allclose(dvt_zeros(DVT_SHAPE(0, 3), DVT_F32, dvt_test_ctx()),
                       dvt_ones(DVT_SHAPE(1, 3), DVT_F32, dvt_test_ctx()), 0, 0, DVT_NAN_DIFFERS));
    CHECK_INT(dvt_error_code(), DVT_OK);
}

DVT_TEST(compare_array_equal) {
    dvt_array *x = four(1, -0.0f, INF, NOT);
    CHECK(!dvt_array_equal(x, x, DVT_NAN_DIFFERS));
    CHECK(dvt_array_equal(x, four(1, 0, INF, NOT), DVT_NAN_EQUALS));
    CHECK(!dvt_array_equal(x, four(1, 0, -INF, NOT), DVT_NAN_EQUALS));
    CHECK(dvt_array_equal(exact(DVT_I8, 1, 2), wide(1, 2), DVT_NAN_DIFFERS));
    CHECK(!dvt_array_equal(exact(DVT_I8, 1, 2), wide(1, 2.5), DVT_NAN_EQUALS));
    CHECK(dvt_array_equal(exact(DVT_BOOL, 0, 1), exact(DVT_I64, 0, 1), DVT_NAN_EQUALS));
    /* shapes do not broadcast; another shape is no error */
    CHECK(!dvt_array_equal(wide(1, 1), dvt_ones(DVT_SHAPE(1), DVT_F64, dvt_test_ctx()),
                           DVT_NAN_DIFFERS));
    CHECK(!dvt_array_equal(wide(1, 1), dvt_ones(DVT_SHAPE(1, 2), DVT_F64, dvt_test_ctx()),
                           DVT_NAN_DIFFERS));
    CHECK(dvt_array_equal(dvt_zeros(DVT_SHAPE(2, 0), DVT_F32, dvt_test_ctx()),
                          dvt_zeros(DVT_SHAPE(2, 0), DVT_I32, dvt_test_ctx()), DVT_NAN_DIFFERS));
    CHECK(!dvt_array_equal(dvt_zeros(DVT_SHAPE(2, 0), DVT_F32, dvt_test_ctx()),
                           dvt_zeros(DVT_SHAPE(0, 2), DVT_F32, dvt_test_ctx()), DVT_NAN_DIFFERS));
    CHECK_INT(dvt_error_code(), DVT_OK);
}

DVT_TEST(compare_refuses) {
    dvt_array *x = wide(1, 2);
    CHECK_ERROR(dvt_isclose(NULL, x, 0, 0, DVT_NAN_DIFFERS), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_isclose(x, x, -1e-9, 0, DVT_NAN_DIFFERS), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_isclose(x, x, 0, NAN, DVT_NAN_DIFFERS), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_isclose(x, x, 0, 0, (dvt_nan_rule)2), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_allclose(x, NULL, 0, 0, DVT_NAN_DIFFERS), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_allclose(x, four(1, 2, 3, 4), 0, 0, DVT_NAN_DIFFERS), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_array_equal(x, NULL, DVT_NAN_DIFFERS), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_array_equal(x, x, (dvt_nan_rule)-1), DVT_ERR_VALUE);
#if !defined(DEVTENSOR_NO_CALL_SITES)
    CHECK(!dvt_allclose(x, x, -1, 0, DVT_NAN_DIFFERS));
    CHECK(strstr(dvt_error(), "dvt_allclose: rtol is -1") != NULL);
    CHECK(strstr(dvt_error_site(), "test_compare.c") != NULL);
    dvt_clear_error();
#endif
}

/* The comparisons record nothing, and leave only the result in the scope. */
DVT_TEST(compare_records_nothing) {
    dvt_array *x = wide(1, 2), *close = NULL;
    int64_t before;
    bool same = false;
    dvt_attach_grad(x, DVT_GRAD_WRITE);
    before = dvt_get_stats().arrays;
    DVT_RECORD {
        close = dvt_isclose(dvt_square(x), x, 0, 0, DVT_NAN_EQUALS);
        same = dvt_allclose(x, x, 0, 0, DVT_NAN_EQUALS) && dvt_array_equal(x, x, DVT_NAN_EQUALS);
        CHECK(dvt_is_recording());
    }
    CHECK(same && !dvt_has_history(close));
    CHECK_INT(dvt_get_stats().arrays, before + 2); /* the square and the result */
}

DVT_TEST(compare_stays_on_its_context) {
    dvt_stats before;
    dvt_array *x, *y;
    NEEDS_NO_GPU("GPUs made of host memory");
    dvt_set_virtual_gpus(2, 0);
    x = dvt_copyto(DVT_ARRAY(double, DVT_SHAPE(2), dvt_cpu(), 1, 2), dvt_gpu(0));
    y = dvt_copyto(x, dvt_gpu(1));
    before = dvt_get_stats();
    CHECK(dvt_ctx_equal(dvt_ctx_of(dvt_isclose(x, x, 0, 0, DVT_NAN_DIFFERS)), dvt_gpu(0)));
    CHECK_INT(dvt_get_stats().to_host_count, before.to_host_count);
    CHECK(dvt_allclose(x, x, 0, 0, DVT_NAN_DIFFERS));
    CHECK(dvt_array_equal(x, x, DVT_NAN_DIFFERS));
    CHECK_INT(dvt_get_stats().to_host_bytes, before.to_host_bytes + 2);
    CHECK_ERROR(dvt_isclose(x, y, 0, 0, DVT_NAN_DIFFERS), DVT_ERR_CONTEXT);
    CHECK_ERROR(dvt_allclose(x, y, 0, 0, DVT_NAN_DIFFERS), DVT_ERR_CONTEXT);
    CHECK_ERROR(dvt_array_equal(x, y, DVT_NAN_DIFFERS), DVT_ERR_CONTEXT);
    dvt_set_transfer_guard(DVT_TRANSFER_FORBID);
    CHECK_ERROR(dvt_allclose(x, x, 0, 0, DVT_NAN_DIFFERS), DVT_ERR_CONTEXT);
    dvt_set_transfer_guard(DVT_TRANSFER_ALLOW);
    dvt_discard_all();
    dvt_set_virtual_gpus(0, 0);
}

DVT_TEST(synchronize_waits_for_one_context) {
    dvt_stats before;
    dvt_array *x;
    NEEDS_NO_GPU("GPUs made of host memory");
    dvt_set_virtual_gpus(2, 0);
    CHECK_INT(dvt_synchronize(dvt_cpu()), DVT_OK);
    CHECK_INT(dvt_synchronize(dvt_gpu(1)), DVT_OK); /* unused so far */
    CHECK_ERROR(dvt_synchronize(dvt_gpu(2)), DVT_ERR_NO_DEVICE);
    x = dvt_exp(dvt_ones(DVT_SHAPE(1000), DVT_F32, dvt_gpu(0)));
    before = dvt_get_stats();
    CHECK_INT(dvt_synchronize(dvt_gpu(0)), DVT_OK);
    CHECK_INT(dvt_get_stats().waits, before.waits + 1);
    CHECK_CLOSE(dvt_item_at(x, DVT_SHAPE(999)), exp(1), 1e-6);
    DVT_WITH_CTX(dvt_gpu(0)) {
        dvt_ctx zero;
        memset(&zero, 0, sizeof zero);
        before = dvt_get_stats();
        CHECK_INT(dvt_synchronize(zero), DVT_OK); /* the default context */
        CHECK_INT(dvt_get_stats().waits, before.waits + 1);
    }
    dvt_discard_all();
    dvt_set_virtual_gpus(0, 0);
}
