/* Tests of matrix products against plain loops in double: shapes, strides, dtypes, threads,
   errors. */
#include "matmul_inputs.h"
#include "matmul_forms.h"

/* Computes (n, k) x (k, m) of doubles with plain loops. */
static void naive(const double *a, const double *b, double *out, int64_t n, int64_t k, int64_t m) {
    int64_t i, j, p;
    for (i = 0; i < n; i++)
        for (j = 0; j < m; j++) {
            double sum = 0;
            for (p = 0; p < k; p++)
                sum += a[i * k + p] * b[p * m + j];
            out[i * m + j] = sum;
        }
}

static double tolerance_of(dvt_dtype dtype, int64_t k) {
    double root = sqrt((double)k + 1);
    switch (dtype) {
    case DVT_F64:
        return 1e-14 * root;
    case DVT_F32:
        return 1e-6 * root;
    case DVT_F16:
        return 2e-3 * root;
    case DVT_BF16:
        return 2e-2 * root;
    default:
        return 0;
    }
}

static void check_product(int64_t n, int64_t k, int64_t m, dvt_dtype dtype, int how_a, int how_b) {
    DVT_SCOPE {
        dvt_array *a = random_array(DVT_SHAPE(n, k), dtype, dvt_cpu());
        dvt_array *b = random_array(DVT_SHAPE(k, m), dtype, dvt_cpu());
        double *va = dvt_test_values(a), *vb = dvt_test_values(b);
        double *expected = (double *)malloc(sizeof(double) * (size_t)(n * m + 1));
        dvt_array *out;
        naive(va, vb, expected, n, k, m);
        out = dvt_matmul(strided(a, how_a), strided(b, how_b));
        CHECK_INT(dvt_ndim(out), 2);
        CHECK_INT(dvt_dim(out, 0), n);
        CHECK_INT(dvt_dim(out, 1), m);
        CHECK_INT(dvt_dtype_of(out), dtype);
        if (!dvt_test_equal(out, expected, n * m, tolerance_of(dtype, k), __FILE__, __LINE__))
            printf("  (%lld, %lld, %lld) %s strides %d %d\n", (long long)n, (long long)k,
                   (long long)m, dvt_dtype_name(dtype), how_a, how_b);
        free(va);
        free(vb);
        free(expected);
    }
}

DVT_TEST(matmul_sizes) {
    static const int64_t size[] = {1, 2, 5, 6, 7, 8, 9, 31};
    int i, j, l;
    for (i = 0; i < 8; i++)
        for (j = 0; j < 8; j++)
            for (l = 0; l < 8; l++)
                check_product(size[i], size[l], size[j], DVT_F32, (i + j) % 4, (j + l) % 4);
    check_product(97, 257, 131, DVT_F32, 0, 1);
    check_product(100, 600, 129, DVT_F32, 1, 0);
    check_product(193, 3, 259, DVT_F32, 2, 3);
    check_product(1, 700, 1100, DVT_F32, 0, 0);
    check_product(1, 700, 1100, DVT_F32, 0, 1);
    check_product(1100, 700, 1, DVT_F32, 0, 0);
    check_product(1100, 300, 1, DVT_F32, 1, 0);
    check_product(1, 2000, 1, DVT_F32, 0, 0);
}

DVT_TEST(matmul_dtypes) {
    static const dvt_dtype dtype[] = {DVT_F64, DVT_F16, DVT_BF16, DVT_I8, DVT_I32, DVT_I64};
    int d, how;
    for (d = 0; d < 6; d++)
        for (how = 0; how < 4; how++) {
            check_product(7, dtype[d] == DVT_I8 ? 1 : 9, 5, dtype[d], how, (how + 1) % 4);
            check_product(1, 1, 13, dtype[d], how, 0);
            check_product(13, 1, 1, dtype[d], 0, how);
        }
    check_product(100, 300, 130, DVT_F64, 0, 0);
    check_product(1, 300, 130, DVT_F64, 0, 1);
    check_product(100, 300, 130, DVT_I64, 1, 0);
    check_product(1, 300, 130, DVT_I64, 0, 0);
    check_product(100, 300, 130, DVT_F16, 0, 1);
}

DVT_TEST(matmul_integers_wrap_and_bools_count) {
    dvt_array *big = dvt_full(DVT_SHAPE(2, 2), 100, DVT_I8, dvt_cpu());
    dvt_array *flags = dvt_ones(DVT_SHAPE(3, 4), DVT_BOOL, dvt_cpu());
    dvt_array *huge = dvt_full(DVT_SHAPE(7, 7), 4611686018427387904.0, DVT_I64, dvt_cpu());
    dvt_array *counts = dvt_matmul(flags, dvt_t(flags));
    CHECK_INT(dvt_dtype_of(dvt_matmul(big, big)), DVT_I8);
    CHECK_VALUES(dvt_matmul(big, big), 0, 32, 32, 32, 32); /* 20000 modulo 256 */
    CHECK_INT(dvt_dtype_of(counts), DVT_I64);
    CHECK_VALUES(counts, 0, 4, 4, 4, 4, 4, 4, 4, 4, 4);
    CHECK_INT(dvt_item_int(dvt_index(dvt_index(dvt_matmul(huge, dvt_full_like(huge, 4)), 0), 0)),
              0);
    CHECK_INT(dvt_dtype_of(dvt_matmul(big, dvt_ones(DVT_SHAPE(2, 2), DVT_U8, dvt_cpu()))), DVT_I32);
    CHECK_INT(dvt_dtype_of(dvt_matmul(big, dvt_ones(DVT_SHAPE(2, 2), DVT_F64, dvt_cpu()))),
              DVT_F64);
}

DVT_TEST(matmul_as_accumulates_in_the_dtype) {
    dvt_array *big = dvt_full(DVT_SHAPE(2, 600), 100, DVT_I8, dvt_cpu());
    dvt_array *low = dvt_full(DVT_SHAPE(600, 2), -128, DVT_I8, dvt_cpu());
    dvt_array *bytes = dvt_full(DVT_SHAPE(600, 2), 255, DVT_U8, dvt_cpu());
    dvt_array *half = dvt_full(DVT_SHAPE(2, 600), 100, DVT_F16, dvt_cpu());
    dvt_array *y = matmul_as(big, low, DVT_I32);
    CHECK_INT(dvt_dtype_of(y), DVT_I32);
    CHECK_VALUES(y, 0, -7680000, -7680000, -7680000, -7680000);
    CHECK_VALUES(matmul_as(big, bytes, DVT_I32), 0, 15300000, 15300000, 15300000, 15300000);
    CHECK_VALUES(dvt_matmul(big, bytes), 0, 15300000, 15300000, 15300000, 15300000);
    CHECK_VALUES(matmul_as(big, dvt_index(dvt_t(low), 0), DVT_I32), 0, -7680000, -7680000);
    CHECK_VALUES(matmul_as(dvt_index(big, 0), low, DVT_I64), 0, -7680000, -7680000);
    CHECK_VALUES(matmul_as(half, dvt_t(half), DVT_F32), 0, 6e6, 6e6, 6e6, 6e6);
    CHECK_ERROR(matmul_as(big, low, DVT_BOOL), DVT_ERR_DTYPE);
    CHECK_ERROR(matmul_as(big, low, (dvt_dtype)77), DVT_ERR_DTYPE);
    CHECK_ERROR(matmul_as(big, big, DVT_I32), DVT_ERR_SHAPE);
    CHECK_ERROR(matmul_as(big, NULL, DVT_I32), DVT_ERR_NULL_ARGUMENT);
}

DVT_TEST(matmul_as_gradients) {
    dvt_array *a = dvt_full(DVT_SHAPE(2, 3), 2, DVT_F16, dvt_cpu());
    dvt_array *b = dvt_full(DVT_SHAPE(3, 2), 3, DVT_F16, dvt_cpu());
    dvt_array *y = NULL;
    CHECK(dvt_attach_grad(a, DVT_GRAD_WRITE) == DVT_OK);
    DVT_RECORD {
        y = matmul_as(a, b, DVT_F32);
    }
    CHECK(dvt_backward(y) == DVT_OK);
    CHECK_INT(dvt_dtype_of(dvt_grad(a)), DVT_F16);
    CHECK_VALUES(dvt_grad(a), 0, 6, 6, 6, 6, 6, 6);
}

DVT_TEST(matmul_accumulates_float16_in_float32) {
    /* Sums of 4096 ones: counting by ones stops at 2048 in float16 and at 256 in bfloat16. */
    dvt_array *a = dvt_ones(DVT_SHAPE(2, 4096), DVT_F16, dvt_cpu());
    dvt_array *b = dvt_ones(DVT_SHAPE(2, 4096), DVT_BF16, dvt_cpu());
    CHECK_VALUES(matmul_t(a, a, false, true), 0, 4096, 4096, 4096, 4096);
    CHECK_VALUES(matmul_t(b, b, false, true), 0, 4096, 4096, 4096, 4096);
    CHECK_VALUES(dvt_matmul(dvt_index(b, 0), dvt_index(b, 1)), 0, 4096);
}

DVT_TEST(matmul_one_axis) {
    dvt_array *m = DVT_ARRAY(float, DVT_SHAPE(2, 3), dvt_cpu(), 1, 2, 3, 4, 5, 6);
    dvt_array *two = DVT_ARRAY(float, DVT_SHAPE(2), dvt_cpu(), 1, 10);
    dvt_array *three = DVT_ARRAY(float, DVT_SHAPE(3), dvt_cpu(), 1, 10, 100);
    dvt_array *batch = dvt_reshape(dvt_arange(0, 12, 1, DVT_F32, dvt_cpu()), DVT_SHAPE(2, 2, 3));
    dvt_array *y = dvt_matmul(m, three);
    CHECK_INT(dvt_ndim(y), 1);
    CHECK_VALUES(y, 0, 321, 654);
    CHECK_VALUES(dvt_matmul(two, m), 0, 41, 52, 63);
    CHECK_INT(dvt_ndim(dvt_matmul(two, two)), 0);
    CHECK_VALUES(dvt_matmul(two, two), 0, 101);
    y = dvt_matmul(batch, three);
    CHECK_INT(dvt_ndim(y), 2);
    CHECK_VALUES(y, 0, 210, 543, 876, 1209);
    y = dvt_matmul(two, batch);
    CHECK_INT(dvt_ndim(y), 2);
    CHECK_VALUES(y, 0, 30, 41, 52, 96, 107, 118);
    /* A transposition of an array of one axis changes nothing. */
    CHECK_VALUES(matmul_t(m, two, true, true), 0, 41, 52, 63);
}

DVT_TEST(matmul_transposed) {
    int t;
    for (t = 0; t < 4; t++)
        DVT_SCOPE {
            bool ta = (t & 1) != 0, tb = (t & 2) != 0;
            dvt_array *a =
                random_array(ta ? DVT_SHAPE(3, 9, 5) : DVT_SHAPE(3, 5, 9), DVT_F32, dvt_cpu());
            dvt_array *b = random_array(tb ? DVT_SHAPE(7, 9) : DVT_SHAPE(9, 7), DVT_F32, dvt_cpu());
            dvt_array *plain = dvt_matmul(ta ? dvt_contiguous(dvt_swapaxes(a, 1, 2)) : a,
                                          tb ? dvt_contiguous(dvt_t(b)) : b);
            double *expected = dvt_test_values(plain);
            dvt_test_equal(matmul_t(a, b, ta, tb), expected, 3 * 5 * 7, 0, __FILE__, __LINE__);
            free(expected);
        }
}

DVT_TEST(matmul_batches) {
    dvt_array *a = random_array(DVT_SHAPE(2, 1, 4, 5), DVT_F64, dvt_cpu());
    dvt_array *b = random_array(DVT_SHAPE(3, 5, 6), DVT_F64, dvt_cpu());
    dvt_array *out = dvt_matmul(a, b), *again;
    int i, j;
    CHECK(dvt_shape_equal(dvt_shape_of(out), DVT_SHAPE(2, 3, 4, 6)));
    for (i = 0; i < 2; i++)
        for (j = 0; j < 3; j++) {
            double *expected =
                dvt_test_values(dvt_matmul(dvt_index(dvt_index(a, i), 0), dvt_index(b, j)));
            dvt_test_equal(dvt_index(dvt_index(out, i), j), expected, 24, 0, __FILE__, __LINE__);
            free(expected);
        }
    again = dvt_matmul(dvt_broadcast_to(a, DVT_SHAPE(2, 3, 4, 5)), b);
    CHECK(memcmp(dvt_data(out), dvt_data(again), (size_t)dvt_nbytes(out)) == 0);
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_matmul(dvt_zeros(DVT_SHAPE(0, 2, 3), DVT_F32, dvt_cpu()),
                                                  dvt_zeros(DVT_SHAPE(3, 4), DVT_F32, dvt_cpu()))),
                          DVT_SHAPE(0, 2, 4)));
}

/* One b for all matrices of a, whose batch axes may or may not merge into one tall matrix; and vice
   versa. */
DVT_TEST(matmul_batch_times_one) {
    static const int64_t rows[] = {1, 5};
    int r, how, column;
    for (r = 0; r < 2; r++)
        for (how = 0; how < 4; how++)
            for (column = 0; column < 2; column++)
                DVT_SCOPE {
                    dvt_array *a = random_array(DVT_SHAPE(3, 2, rows[r], 4), DVT_F32, dvt_cpu());
                    dvt_array *b = random_array(DVT_SHAPE(4, column ? 1 : 6), DVT_F32, dvt_cpu());
                    dvt_array *out = dvt_matmul(strided(a, how), b);
                    dvt_array *transposed = matmul_t(b, strided(a, how), true, true);
                    int i, j;
                    for (i = 0; i < 3; i++)
                        for (j = 0; j < 2; j++) {
                            dvt_array *one = dvt_matmul(dvt_index(dvt_index(a, i), j), b);
                            double *expected = dvt_test_values(one);
                            double *across = dvt_test_values(dvt_t(one));
                            dvt_test_equal(dvt_index(dvt_index(out, i), j), expected, dvt_size(one),
                                           1e-6, __FILE__, __LINE__);
                            dvt_test_equal(dvt_index(dvt_index(transposed, i), j), across,
                                           dvt_size(one), 1e-6, __FILE__, __LINE__);
                            free(expected);
                            free(across);
                        }
                }
}

DVT_TEST(matmul_empty) {
    dvt_array *none = dvt_zeros(DVT_SHAPE(2, 0), DVT_F32, dvt_cpu());
    dvt_array *vector = dvt_zeros(DVT_SHAPE(0), DVT_F32, dvt_cpu());
    CHECK_VALUES(dvt_matmul(none, dvt_t(none)), 0, 0, 0, 0, 0);
    CHECK_VALUES(dvt_matmul(none, vector), 0, 0, 0);
    CHECK_VALUES(dvt_matmul(vector, vector), 0, 0);
    CHECK_VALUES(matmul_t(vector, none, false, true), 0, 0, 0);
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_matmul(dvt_t(none), none)), DVT_SHAPE(0, 0)));
    CHECK_VALUES(
        dvt_dot(dvt_as_in_dtype(none, DVT_I32), dvt_zeros(DVT_SHAPE(0, 3), DVT_I32, dvt_cpu())), 0,
        0, 0, 0, 0, 0, 0);
}

DVT_TEST(matmul_special_values) {
    dvt_array *a = DVT_ARRAY(double, DVT_SHAPE(1, 3), dvt_cpu(), 0, 1, INFINITY);
    dvt_array *b = DVT_ARRAY(double, DVT_SHAPE(3, 2), dvt_cpu(), NAN, 1, 1, 1, 1, -1);
    CHECK_VALUES(dvt_matmul(a, b), 0, NAN, -INFINITY);
    a = dvt_broadcast_to(a, DVT_SHAPE(2, 3));
    CHECK_VALUES(dvt_matmul(a, b), 0, NAN, -INFINITY, NAN, -INFINITY);
}

DVT_TEST(matmul_dot) {
    dvt_array *a = random_array(DVT_SHAPE(2, 3, 4), DVT_F64, dvt_cpu());
    dvt_array *b = random_array(DVT_SHAPE(5, 4, 6), DVT_F64, dvt_cpu());
    dvt_array *out = dvt_dot(a, b);
    double *va = dvt_test_values(a), *vb = dvt_test_values(b), expected[2 * 3 * 5 * 6];
    int i, j, l, at = 0, p;
    CHECK(dvt_shape_equal(dvt_shape_of(out), DVT_SHAPE(2, 3, 5, 6)));
    for (i = 0; i < 6; i++)
        for (j = 0; j < 5; j++)
            for (l = 0; l < 6; l++) {
                double sum = 0;
                for (p = 0; p < 4; p++)
                    sum += va[i * 4 + p] * vb[(j * 4 + p) * 6 + l];
                expected[at++] = sum;
            }
    dvt_test_equal(out, expected, at, 1e-14, __FILE__, __LINE__);
    free(va);
    free(vb);
    CHECK_VALUES(
        dvt_dot(dvt_scalar(3, DVT_F32, dvt_cpu()), dvt_arange(0, 3, 1, DVT_F32, dvt_cpu())), 0, 0,
        3, 6);
    CHECK_VALUES(
        dvt_dot(dvt_arange(0, 3, 1, DVT_F32, dvt_cpu()), dvt_arange(0, 3, 1, DVT_F32, dvt_cpu())),
        0, 5);
    out = dvt_dot(dvt_ones(DVT_SHAPE(4), DVT_F64, dvt_cpu()), b);
    CHECK(dvt_shape_equal(dvt_shape_of(out), DVT_SHAPE(5, 6)));
    out = dvt_dot(dvt_zeros(DVT_SHAPE(2, 0), DVT_F32, dvt_cpu()),
                  dvt_zeros(DVT_SHAPE(2, 0, 3), DVT_F32, dvt_cpu()));
    CHECK(dvt_shape_equal(dvt_shape_of(out), DVT_SHAPE(2, 2, 3)));
}

DVT_TEST(matmul_same_bits_for_any_threads) {
    static const int64_t n[] = {1, 6, 100, 193, 300}, k[] = {700, 1000, 300, 257, 64},
                         m[] = {1500, 259, 140, 1, 200};
    int i, threads;
    for (i = 0; i < 5; i++) {
        dvt_array *a = random_array(DVT_SHAPE(n[i], k[i]), DVT_F32, dvt_cpu());
        dvt_array *b = random_array(DVT_SHAPE(k[i], m[i]), DVT_F32, dvt_cpu());
        dvt_array *first = NULL;
        for (threads = 1; threads <= 3; threads++) {
            dvt_array *out;
            dvt_set_num_threads(threads);
            out = dvt_matmul(a, b);
            if (first)
                CHECK(memcmp(dvt_data(first), dvt_data(out), (size_t)dvt_nbytes(out)) == 0);
            else
                first = out;
        }
    }
    dvt_set_num_threads(0);
}

DVT_TEST(matmul_of_slices_has_the_bits_of_the_full_product) {
    dvt_array *a = random_array(DVT_SHAPE(200, 500), DVT_F32, dvt_cpu());
    dvt_array *b = random_array(DVT_SHAPE(500, 270), DVT_F32, dvt_cpu());
    dvt_array *product = dvt_matmul(a, b);
    dvt_array *part = dvt_matmul(dvt_rows(a, 11, 40), dvt_slice(b, 1, 100, 133, 1));
    dvt_array *same = dvt_slice(dvt_rows(product, 11, 40), 1, 100, 133, 1);
    double *expected = dvt_test_values(same);
    dvt_test_equal(part, expected, 29 * 33, 0, __FILE__, __LINE__);
    free(expected);
}

DVT_TEST(matmul_virtual_gpu) {
    dvt_set_virtual_gpus(2, 0);
    DVT_SCOPE {
        dvt_array *a = random_array(DVT_SHAPE(50, 60), DVT_F32, dvt_cpu());
        dvt_array *b = random_array(DVT_SHAPE(60, 70), DVT_F32, dvt_cpu());
        dvt_array *there = dvt_matmul(dvt_copyto(a, dvt_gpu(1)), dvt_copyto(b, dvt_gpu(1)));
        double *expected = dvt_test_values(dvt_matmul(a, b));
        CHECK(dvt_ctx_equal(dvt_ctx_of(there), dvt_gpu(1)));
        dvt_test_equal(there, expected, 50 * 70, dvt_test_on_gpus() ? 1e-5 : 0, __FILE__, __LINE__);
        free(expected);
        CHECK_ERROR(dvt_matmul(a, dvt_copyto(b, dvt_gpu(0))), DVT_ERR_CONTEXT);
    }
    dvt_set_virtual_gpus(0, 0);
}

DVT_TEST(matmul_errors) {
    dvt_array *m = dvt_zeros(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu());
    dvt_array *v = dvt_zeros(DVT_SHAPE(4), DVT_F32, dvt_cpu());
    dvt_array *batch = dvt_zeros(DVT_SHAPE(2, 3, 2), DVT_F32, dvt_cpu());
    dvt_array *wide = dvt_zeros(DVT_SHAPE(1, 1, 1, 1, 3, 3), DVT_F32, dvt_cpu());
    dvt_array *scalar = dvt_scalar(1, DVT_F32, dvt_cpu());
    CHECK(dvt_matmul(m, m) == NULL);
    CHECK(strstr(dvt_error(), "dvt_matmul: a is float32 (2, 3) on cpu(0)") != NULL);
    CHECK(strstr(dvt_error(), "expected equal extents where they meet, but a has 3 and b has 2") !=
          NULL);
    dvt_clear_error();
    CHECK_ERROR(dvt_matmul(m, v), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_matmul(v, m), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_matmul(scalar, m), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_matmul(m, scalar), DVT_ERR_SHAPE);
    CHECK_ERROR(matmul_t(m, m, true, true), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_matmul(dvt_zeros(DVT_SHAPE(3, 2, 3), DVT_F32, dvt_cpu()), batch),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_dot(m, batch), DVT_OK);
    CHECK_ERROR(dvt_dot(batch, batch), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_dot(wide, wide), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_matmul(NULL, m), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(matmul_t(m, NULL, false, false), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_dot(NULL, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_matmul(dvt_broadcast_to(dvt_zeros(DVT_SHAPE(1, 1), DVT_F32, dvt_cpu()),
                                            DVT_SHAPE(INT64_C(1) << 40, 1)),
                           dvt_broadcast_to(dvt_zeros(DVT_SHAPE(1, 1), DVT_F32, dvt_cpu()),
                                            DVT_SHAPE(1, INT64_C(1) << 40))),
                DVT_ERR_SHAPE);
}
