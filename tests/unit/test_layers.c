/* Tests of layers as functions: linear, dropout, batch and layer normalization, against plain loops
   in double. */
#include "dvt_test.h"

static dvt_array *random_array(dvt_shape shape, dvt_dtype dtype) {
    int64_t n = dvt_shape_size(shape), i;
    double *values = (double *)malloc(sizeof(double) * (size_t)(n ? n : 1));
    dvt_array *x;
    for (i = 0; i < n; i++)
        values[i] = dvt_test_random(-2, 2);
    x = dvt_as_in_dtype(dvt_from_host(values, shape, DVT_F64, dvt_test_ctx()), dtype);
    free(values);
    return x;
}

/* ---- linear ---- */
static void check_linear(dvt_shape shape, int64_t units, bool with_bias, int how) {
    DVT_SCOPE {
        int64_t k = shape.dim[shape.ndim - 1], rows = k ? dvt_shape_size(shape) / k : 0, i, j, p;
        dvt_array *x = random_array(shape, DVT_F32), *y;
        dvt_array *w = random_array(how ? DVT_SHAPE(k, units) : DVT_SHAPE(units, k), DVT_F32);
        dvt_array *b = with_bias ? random_array(DVT_SHAPE(units), DVT_F32) : NULL;
        double *vx, *vw, *vb = b ? dvt_test_values(b) : NULL;
        double *expected = (double *)malloc(sizeof(double) * (size_t)(rows * units + 1));
        if (how) {
            w = dvt_t(w);
            x = dvt_slice(x, 0, -1, DVT_END, -1);
        }
        vx = dvt_test_values(x);
        vw = dvt_test_values(w);
        for (i = 0; i < rows; i++)
            for (j = 0; j < units; j++) {
                double sum = vb ? vb[j] : 0;
                for (p = 0; p < k; p++)
                    sum += vx[i * k + p] * vw[j * k + p];
                expected[i * units + j] = sum;
            }
        y = dvt_linear(x, w, b);
        CHECK_INT(dvt_ndim(y), shape.ndim);
        CHECK_INT(dvt_dim(y, -1), units);
        dvt_test_equal(y, expected, rows * units, 1e-5, __FILE__, __LINE__);
        free(vx);
        free(vw);
        free(vb);
        free(expected);
    }
}

DVT_TEST(layers_linear) {
    int bias, how;
    for (bias = 0; bias < 2; bias++)
        for (how = 0; how < 2; how++) {
            check_linear(DVT_SHAPE(4, 5), 3, bias, how);
            check_linear(DVT_SHAPE(5), 7, bias, how);
            check_linear(DVT_SHAPE(2, 3, 4), 6, bias, how);
            check_linear(DVT_SHAPE(2, 1, 3, 4), 1, bias, how);
            check_linear(DVT_SHAPE(1, 30), 20, bias, how);
            check_linear(DVT_SHAPE(0, 3), 2, bias, how);
        }
    CHECK_VALUES(dvt_linear(dvt_zeros(DVT_SHAPE(2, 0), DVT_F32, dvt_test_ctx()),
                            dvt_zeros(DVT_SHAPE(3, 0), DVT_F32, dvt_test_ctx()),
                            DVT_ARRAY(float, DVT_SHAPE(3), dvt_test_ctx(), 1, 2, 3)),
                 0, 1, 2, 3, 1, 2, 3);
}

/* An optional array whose creation failed must not count as absent: the result would be complete
   and wrong. */
DVT_TEST(layers_refuse_failed_optional_arrays) {
    dvt_ctx cpu = dvt_test_ctx();
    dvt_array *x = dvt_ones(DVT_SHAPE(2, 3), DVT_F32, cpu), *y = NULL;
    dvt_array *w = dvt_ones(DVT_SHAPE(4, 3), DVT_F32, cpu),
              *g = dvt_ones(DVT_SHAPE(3), DVT_F32, cpu);
    dvt_array *image = dvt_ones(DVT_SHAPE(1, 1, 2, 2), DVT_F32, cpu);
    dvt_status status = DVT_OK;
    int k;
    dvt_attach_grad(x, DVT_GRAD_WRITE);
    for (k = 0; k < 2; k++) {
        dvt_array *bad = k ? dvt_add(x, w) : NULL; /* shapes that do not broadcast */
        DVT_RECORD {
            y = dvt_square(x);
        }
        CHECK((dvt_linear(x, w, bad) == NULL) == k);
        CHECK((dvt_conv2d(image, image, bad, NULL) == NULL) == k);
        CHECK((dvt_layer_norm(x, bad, g, 1e-5) == NULL) == k);
        CHECK((dvt_layer_norm(x, g, bad, 1e-5) == NULL) == k);
        status = dvt_backward_from(&y, &bad, 1, DVT_RETAIN_GRAPH);
        CHECK_INT(status, k ? DVT_ERR_SHAPE : DVT_OK);
        CHECK_INT(dvt_error_code(), k ? DVT_ERR_SHAPE : DVT_OK);
        CHECK_INT(dvt_backward_from(&y, NULL, 1, DVT_RETAIN_GRAPH),
                  DVT_OK); /* no head gradient is no failed option */
        dvt_clear_error();
    }
}

DVT_TEST(layers_linear_errors) {
    dvt_array *x = dvt_zeros(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu());
    dvt_array *w = dvt_zeros(DVT_SHAPE(4, 3), DVT_F32, dvt_cpu());
    dvt_array *b = dvt_zeros(DVT_SHAPE(3), DVT_F32, dvt_cpu());
    CHECK_ERROR(dvt_linear(NULL, w, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_linear(x, NULL, NULL), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_linear(x, w, b), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_linear(x, dvt_t(w), NULL), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_linear(x, b, NULL), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_linear(dvt_scalar(1, DVT_F32, dvt_cpu()), w, NULL), DVT_ERR_SHAPE);
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    DVT_SCOPE {
        CHECK_ERROR(dvt_linear(x, dvt_copyto(w, dvt_gpu(0)), NULL), DVT_ERR_CONTEXT);
        CHECK_ERROR(dvt_linear(x, w, dvt_zeros(DVT_SHAPE(4), DVT_F32, dvt_gpu(0))),
                    DVT_ERR_CONTEXT);
    }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* ---- dropout ---- */
DVT_TEST(layers_dropout) {
    dvt_array *x = dvt_full(DVT_SHAPE(100, 100), 3, DVT_F32, dvt_test_ctx()), *y = NULL;
    dvt_array *wild = dvt_full(DVT_SHAPE(1000), INFINITY, DVT_F32, dvt_test_ctx());
    double *v, *g;
    int64_t i, dropped = 0;
    CHECK(dvt_dropout(x, 0.5) == x);
    dvt_attach_grad(x, DVT_GRAD_WRITE);
    DVT_RECORD {
        CHECK(dvt_dropout(x, 0) == x);
        y = dvt_dropout(x, 0.25);
        dvt_backward(y);
    }
    v = dvt_test_values(y);
    g = dvt_test_values(dvt_grad(x));
    for (i = 0; i < 10000; i++) {
        CHECK_CLOSE(v[i], v[i] == 0 ? 0 : 4, 1e-6);
        CHECK_CLOSE(g[i], v[i] / 3, 1e-6);
        dropped += v[i] == 0;
    }
    CHECK(dropped > 2200 && dropped < 2800);
    free(v);
    free(g);
    DVT_TRAIN_MODE {
        double sum;
        y = dvt_dropout(wild, 0.5);
        sum = dvt_item(dvt_sum(dvt_as_in_dtype(dvt_isnan(y), DVT_I32), DVT_ALL));
        CHECK_CLOSE(sum, 0, 0);
        CHECK_INT(dvt_dtype_of(dvt_dropout(dvt_ones_like(wild), 0.5)), DVT_F32);
        CHECK_INT(dvt_dtype_of(dvt_dropout(dvt_ones(DVT_SHAPE(3), DVT_I32, dvt_test_ctx()), 0.5)),
                  DVT_F32);
        CHECK_INT(dvt_dtype_of(dvt_dropout(dvt_ones(DVT_SHAPE(3), DVT_F16, dvt_test_ctx()), 0.5)),
                  DVT_F16);
        CHECK_INT(dvt_size(dvt_dropout(dvt_ones(DVT_SHAPE(0, 3), DVT_F32, dvt_test_ctx()), 0.5)),
                  0);
        CHECK_ERROR(dvt_dropout(x, 1), DVT_ERR_RANGE);
        CHECK_ERROR(dvt_dropout(x, -0.1), DVT_ERR_RANGE);
        CHECK_ERROR(dvt_dropout(x, NAN), DVT_ERR_RANGE);
        CHECK_ERROR(dvt_dropout(NULL, 0.5), DVT_ERR_NULL_ARGUMENT);
    }
}

/* ---- batch normalization ---- */
typedef struct norm_values {
    double *y, *mean, *variance;
} norm_values;

/* Normalizes elements of x, indexed by (outer, channel, inner). */
static norm_values naive_norm(const double *x, int64_t outer, int64_t channels, int64_t inner,
                              const double *gamma, const double *beta, double epsilon) {
    norm_values v;
    int64_t o, c, i, count = outer * inner;
    v.y = (double *)malloc(sizeof(double) * (size_t)(outer * channels * inner + 1));
    v.mean = (double *)calloc((size_t)channels + 1, sizeof(double));
    v.variance = (double *)calloc((size_t)channels + 1, sizeof(double));
    for (c = 0; c < channels; c++) {
        for (o = 0; o < outer; o++)
            for (i = 0; i < inner; i++)
                v.mean[c] += x[(o * channels + c) * inner + i] / (double)count;
        for (o = 0; o < outer; o++)
            for (i = 0; i < inner; i++) {
                double d = x[(o * channels + c) * inner + i] - v.mean[c];
                v.variance[c] += d * d / (double)count;
            }
        for (o = 0; o < outer; o++)
            for (i = 0; i < inner; i++) {
                int64_t at = (o * channels + c) * inner + i;
                v.y[at] = gamma[c] * (x[at] - v.mean[c]) / sqrt(v.variance[c] + epsilon) + beta[c];
            }
    }
    return v;
}

static void check_batch_norm(dvt_shape shape, int axis, dvt_dtype dtype) {
    DVT_SCOPE {
        int64_t outer = 1, inner = 1, channels, i;
        int real = axis < 0 ? axis + shape.ndim : axis, d;
        double momentum = 0.75, epsilon = 1e-3;
        double tolerance = dtype == DVT_F64 ? 1e-12 : dtype == DVT_F32 ? 1e-5 : 2e-2;
        dvt_dtype statistics = dtype == DVT_F16 ? DVT_F32 : dtype;
        dvt_array *x = random_array(shape, dtype), *gamma, *beta, *mean, *variance, *y = NULL;
        double *vx = dvt_test_values(x), *vg, *vb, *vm, *vv;
        norm_values v;
        for (d = 0; d < shape.ndim; d++) {
            outer *= d < real ? shape.dim[d] : 1;
            inner *= d > real ? shape.dim[d] : 1;
        }
        channels = shape.dim[real];
        gamma = random_array(DVT_SHAPE(channels), dtype);
        beta = random_array(DVT_SHAPE(channels), dtype);
        mean = random_array(DVT_SHAPE(channels), statistics);
        variance = dvt_square(random_array(DVT_SHAPE(channels), statistics));
        vg = dvt_test_values(gamma);
        vb = dvt_test_values(beta);
        vm = dvt_test_values(mean);
        vv = dvt_test_values(variance);
        v = naive_norm(vx, outer, channels, inner, vg, vb, epsilon);
        DVT_TRAIN_MODE {
            y = dvt_batch_norm(x, gamma, beta, mean, variance, axis, momentum, epsilon);
        }
        dvt_test_equal(y, v.y, dvt_size(x), tolerance, __FILE__, __LINE__);
        for (i = 0; i < channels; i++) {
            vm[i] = momentum * vm[i] + (1 - momentum) * v.mean[i];
            vv[i] = momentum * vv[i] + (1 - momentum) * v.variance[i];
        }
        dvt_test_equal(mean, vm, channels, tolerance, __FILE__, __LINE__);
        dvt_test_equal(variance, vv, channels, tolerance, __FILE__, __LINE__);
        /* Without training the running statistics are used and not changed. */
        y = dvt_batch_norm(x, gamma, beta, mean, variance, axis, momentum, epsilon);
        for (i = 0; i < outer * channels * inner; i++) {
            int64_t c = i / inner % channels;
            v.y[i] = vg[c] * (vx[i] - vm[c]) / sqrt(vv[c] + epsilon) + vb[c];
        }
        dvt_test_equal(y, v.y, dvt_size(x), 4 * tolerance, __FILE__, __LINE__);
        dvt_test_equal(mean, vm, channels, tolerance, __FILE__, __LINE__);
        free(v.y);
        free(v.mean);
        free(v.variance);
        free(vx);
        free(vg);
        free(vb);
        free(vm);
        free(vv);
    }
}

DVT_TEST(layers_batch_norm) {
    check_batch_norm(DVT_SHAPE(6, 3), 1, DVT_F32);
    check_batch_norm(DVT_SHAPE(6, 3), -1, DVT_F64);
    check_batch_norm(DVT_SHAPE(6, 3), 0, DVT_F64);
    check_batch_norm(DVT_SHAPE(2, 3, 4, 5), 1, DVT_F32);
    check_batch_norm(DVT_SHAPE(2, 3, 4, 5), -1, DVT_F32);
    check_batch_norm(DVT_SHAPE(2, 3, 4), 1, DVT_F16);
    check_batch_norm(DVT_SHAPE(2, 2, 3, 1, 2, 2, 1, 2), 2, DVT_F64);
}

DVT_TEST(layers_batch_norm_corners) {
    dvt_array *ones = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_test_ctx());
    dvt_array *zeros = dvt_zeros(DVT_SHAPE(2), DVT_F32, dvt_test_ctx());
    dvt_array *mean = dvt_zeros(DVT_SHAPE(2), DVT_F32, dvt_test_ctx());
    dvt_array *variance = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_test_ctx()), *y = NULL;
    dvt_array *x = DVT_ARRAY(float, DVT_SHAPE(2, 2), dvt_test_ctx(), 1, 5, 3, 5);
    DVT_TRAIN_MODE {
        /* An empty batch does not change the statistics. */
        y = dvt_batch_norm(dvt_zeros(DVT_SHAPE(0, 2), DVT_F32, dvt_test_ctx()), ones, zeros, mean,
                           variance, 1, 0.5, 1e-5);
        CHECK(dvt_shape_equal(dvt_shape_of(y), DVT_SHAPE(0, 2)));
        CHECK_VALUES(mean, 0, 0, 0);
        CHECK_VALUES(variance, 0, 1, 1);
        /* A channel of equal values causes no division by zero. */
        y = dvt_batch_norm(x, ones, zeros, mean, variance, 1, 0, 1e-5);
        CHECK_VALUES(y, 1e-4, -1, 0, 1, 0);
        CHECK_VALUES(mean, 0, 2, 5);
        CHECK_VALUES(variance, 0, 1, 0);
        y = dvt_batch_norm(x, ones, zeros, mean, variance, 1, 1, 1e-5);
        CHECK_VALUES(mean, 0, 2, 5);
    }
    /* Recorded, the statistics still change, and are not part of the gradient. */
    dvt_attach_grad(x, DVT_GRAD_WRITE);
    DVT_RECORD {
        y = dvt_batch_norm(x, ones, zeros, mean, variance, 1, 0.5, 1e-5);
        CHECK_INT(dvt_backward(y), DVT_OK);
    }
    CHECK(!dvt_has_history(mean));
    CHECK_VALUES(dvt_grad(x), 1e-4, 0, 0, 0, 0);
}

DVT_TEST(layers_batch_norm_errors) {
    dvt_array *x = dvt_ones(DVT_SHAPE(4, 2), DVT_F32, dvt_test_ctx());
    dvt_array *two = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_test_ctx());
    dvt_array *three = dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_test_ctx());
    dvt_array *spread =
        dvt_broadcast_to(dvt_ones(DVT_SHAPE(1), DVT_F32, dvt_test_ctx()), DVT_SHAPE(2));
    DVT_TRAIN_MODE {
        CHECK_ERROR(dvt_batch_norm(NULL, two, two, two, two, 1, 0.9, 1e-5), DVT_ERR_NULL_ARGUMENT);
        CHECK_ERROR(dvt_batch_norm(x, two, two, NULL, two, 1, 0.9, 1e-5), DVT_ERR_NULL_ARGUMENT);
        CHECK_ERROR(dvt_batch_norm(x, three, two, two, two, 1, 0.9, 1e-5), DVT_ERR_SHAPE);
        CHECK_ERROR(dvt_batch_norm(x, two, two, two, three, 1, 0.9, 1e-5), DVT_ERR_SHAPE);
        CHECK_ERROR(dvt_batch_norm(x, two, two, two, two, 2, 0.9, 1e-5), DVT_ERR_AXIS);
        CHECK_ERROR(dvt_batch_norm(x, two, two, two, two, 1, 1.5, 1e-5), DVT_ERR_RANGE);
        CHECK_ERROR(dvt_batch_norm(x, two, two, two, two, 1, NAN, 1e-5), DVT_ERR_RANGE);
        CHECK_ERROR(dvt_batch_norm(x, two, two, two, two, 1, 0.9, -1), DVT_ERR_RANGE);
        CHECK_ERROR(dvt_batch_norm(x, two, two, spread, two, 1, 0.9, 1e-5), DVT_ERR_VALUE);
        CHECK_ERROR(dvt_batch_norm(dvt_as_in_dtype(x, DVT_I32), two, two, two, two, 1, 0.9, 1e-5),
                    DVT_ERR_DTYPE);
    }
}

/* ---- layer normalization ---- */
DVT_TEST(layers_layer_norm) {
    dvt_shape shape = DVT_SHAPE(2, 3, 5);
    dvt_array *x = random_array(shape, DVT_F64), *gamma = random_array(DVT_SHAPE(5), DVT_F64);
    dvt_array *beta = random_array(DVT_SHAPE(5), DVT_F64);
    double *vx = dvt_test_values(x), *vg = dvt_test_values(gamma), *vb = dvt_test_values(beta);
    double plain[30], scaled[30];
    int row, i;
    for (row = 0; row < 6; row++) {
        double mean = 0, variance = 0;
        for (i = 0; i < 5; i++)
            mean += vx[row * 5 + i] / 5;
        for (i = 0; i < 5; i++)
            variance += (vx[row * 5 + i] - mean) * (vx[row * 5 + i] - mean) / 5;
        for (i = 0; i < 5; i++) {
            plain[row * 5 + i] = (vx[row * 5 + i] - mean) / sqrt(variance + 1e-3);
            scaled[row * 5 + i] = plain[row * 5 + i] * vg[i] + vb[i];
        }
    }
    dvt_test_equal(dvt_layer_norm(x, gamma, beta, 1e-3), scaled, 30, 1e-12, __FILE__, __LINE__);
    dvt_test_equal(dvt_layer_norm(x, NULL, NULL, 1e-3), plain, 30, 1e-12, __FILE__, __LINE__);
    free(vx);
    free(vg);
    free(vb);
    CHECK_VALUES(
        dvt_layer_norm(dvt_full(DVT_SHAPE(3), 7, DVT_F32, dvt_test_ctx()), NULL, NULL, 1e-5), 0, 0,
        0, 0);
    CHECK_INT(dvt_size(dvt_layer_norm(dvt_zeros(DVT_SHAPE(0, 3), DVT_F32, dvt_test_ctx()), NULL,
                                      NULL, 1e-5)),
              0);
    CHECK_ERROR(dvt_layer_norm(NULL, NULL, NULL, 1e-5), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_layer_norm(dvt_scalar(1, DVT_F32, dvt_test_ctx()), NULL, NULL, 1e-5),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_layer_norm(x, dvt_ones(DVT_SHAPE(3), DVT_F64, dvt_test_ctx()), NULL, 1e-5),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_layer_norm(x, NULL, x, 1e-5), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_layer_norm(x, NULL, NULL, -1), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_layer_norm(x, NULL, NULL, NAN), DVT_ERR_RANGE);
}

/* ---- one launch or several ---- */
static bool same_bytes(dvt_array *a, dvt_array *b) {
    int64_t n = a && b ? dvt_size(a) : 0, k;
    double *va = a ? dvt_test_values(a) : NULL, *vb = b ? dvt_test_values(b) : NULL;
    bool same = va && vb && dvt_size(b) == n;
    for (k = 0; same && k < n; k++)
        same = va[k] == vb[k] && !signbit(va[k]) == !signbit(vb[k]);
    free(va);
    free(vb);
    return same;
}

/* The fused computation without gradients has the bits of the recorded operations. */
DVT_TEST(layers_same_bits_when_recorded) {
    static const char *const isas[] = {"avx512", "avx2", "neon"};
    static const int64_t extents[][2] = {{3, 1},    {5, 7},    {2, 16},     {70, 10},  {4, 100},
                                         {3, 1030}, {1, 5000}, {2100, 600}, {1, 40000}};
    int isa, e, axis;
    for (isa = 0; isa < 3; isa++) {
        if (dvt_set_cpu_isa(isas[isa]) != DVT_OK) {
            dvt_clear_error();
            continue;
        }
        for (e = 0; e < 2 * (int)(sizeof extents / sizeof extents[0]); e++)
            DVT_SCOPE {
                const int64_t n = extents[e / 2][1];
                const dvt_dtype dtype = e % 2 ? DVT_F64 : DVT_F32;
                dvt_array *x =
                    dvt_as_in_ctx(random_array(DVT_SHAPE(extents[e / 2][0], n), dtype), dvt_cpu());
                dvt_array *gamma = dvt_as_in_ctx(random_array(DVT_SHAPE(n), dtype), dvt_cpu());
                dvt_array *beta = dvt_as_in_ctx(random_array(DVT_SHAPE(n), dtype), dvt_cpu());
                dvt_array *tracked = dvt_copy(x), *y = NULL, *z = NULL, *v[3], *plain[3];
                const dvt_axes over[3] = {DVT_AXES(0), DVT_KEEPDIMS(1), DVT_ALL};
                x = dvt_copy(dvt_add_scalar(x, 3));
                tracked = dvt_copy(x);
                CHECK(dvt_attach_grad(tracked, DVT_GRAD_WRITE) == DVT_OK);
                for (axis = 0; axis < 3; axis++)
                    plain[axis] = dvt_var(x, over[axis], 0);
                DVT_RECORD {
                    y = dvt_layer_norm(tracked, gamma, beta, 1e-5);
                    z = dvt_layer_norm(tracked, NULL, NULL, 0.1);
                    for (axis = 0; axis < 3; axis++)
                        v[axis] = dvt_var(tracked, over[axis], 0);
                }
                CHECK(dvt_has_history(y) && dvt_has_history(v[0]));
                CHECK(same_bytes(dvt_layer_norm(x, gamma, beta, 1e-5), y));
                CHECK(same_bytes(dvt_layer_norm(x, NULL, NULL, 0.1), z));
                for (axis = 0; axis < 3; axis++)
                    CHECK(same_bytes(plain[axis], v[axis]));
            }
    }
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
}

/* The reference sums in another order. */
DVT_TEST(layers_fused_by_the_reference) {
    DVT_SCOPE {
        dvt_array *x = dvt_as_in_ctx(random_array(DVT_SHAPE(5, 300), DVT_F32), dvt_cpu());
        dvt_array *gamma = dvt_as_in_ctx(random_array(DVT_SHAPE(300), DVT_F32), dvt_cpu());
        dvt_array *y = dvt_layer_norm(x, gamma, NULL, 1e-5), *v[2], *other;
        int axis;
        for (axis = 0; axis < 2; axis++)
            v[axis] = dvt_var(x, DVT_AXES(axis), 1);
        CHECK(dvt_set_cpu_isa("reference") == DVT_OK);
        other = dvt_layer_norm(x, gamma, NULL, 1e-5);
        CHECK(dvt_item(dvt_max(dvt_abs(dvt_sub(y, other)), DVT_ALL)) < 1e-5);
        for (axis = 0; axis < 2; axis++) {
            other = dvt_var(x, DVT_AXES(axis), 1);
            CHECK(dvt_item(dvt_max(dvt_abs(dvt_sub(v[axis], other)), DVT_ALL)) < 1e-5);
        }
        CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
    }
}
