/* Tests of normalization, deviations and losses of float16 and bfloat16, at magnitudes whose
   squares overflow 16 bits. Values and gradients are compared with float64, on cpu() and on a
   virtual GPU. */
#include "dvt_test.h"

#define N 6 /* rows */
#define C 4 /* columns */

typedef dvt_array *(*half_fn)(dvt_array *x, dvt_dtype dtype, dvt_dtype statistics);

static dvt_array *ones_of(dvt_array *x, int64_t n, dvt_dtype dtype) {
    return dvt_ones(DVT_SHAPE(n), dtype, dvt_ctx_of(x));
}

static dvt_array *half_layer_norm(dvt_array *x, dvt_dtype dtype, dvt_dtype statistics) {
    (void)statistics;
    return dvt_layer_norm(x, ones_of(x, C, dtype), NULL, 1e-5);
}

static dvt_array *half_layer_norm_alone(dvt_array *x, dvt_dtype dtype, dvt_dtype statistics) {
    (void)dtype;
    (void)statistics;
    return dvt_layer_norm(x, NULL, NULL, 1e-5);
}

static dvt_array *half_batch_norm(dvt_array *x, dvt_dtype dtype, dvt_dtype statistics) {
    return dvt_batch_norm(x, ones_of(x, C, dtype), ones_of(x, C, dtype),
                          dvt_zeros(DVT_SHAPE(C), statistics, dvt_ctx_of(x)),
                          ones_of(x, C, statistics), 1, 0.9, 1e-5);
}

static dvt_array *half_std(dvt_array *x, dvt_dtype dtype, dvt_dtype statistics) {
    (void)dtype;
    (void)statistics;
    return dvt_std(x, DVT_AXES(0), 1);
}

static dvt_array *half_norm(dvt_array *x, dvt_dtype dtype, dvt_dtype statistics) {
    (void)dtype;
    (void)statistics;
    return dvt_norm(x, DVT_AXES(1));
}

/* y and the gradient of sum(y * weights), as doubles. */
typedef struct half_result {
    double *y, *dx;
    int64_t n;
} half_result;

static half_result half_run(half_fn compute, const double *values, dvt_dtype dtype, dvt_ctx ctx) {
    dvt_dtype statistics = dtype == DVT_F64 ? DVT_F64 : DVT_F32;
    half_result r;
    memset(&r, 0, sizeof r);
    DVT_SCOPE {
        double weight[N * C];
        dvt_array *x = dvt_from_host(values, DVT_SHAPE(N, C), DVT_F64, dvt_cpu()), *y = NULL, *w;
        int i;
        x = dvt_as_in_ctx(dvt_as_in_dtype(x, dtype), ctx);
        dvt_attach_grad(x, DVT_GRAD_WRITE);
        DVT_RECORD {
            y = compute(x, dtype, statistics);
        }
        CHECK(y != NULL);
        CHECK_INT(dvt_dtype_of(y), dtype);
        r.n = dvt_size(y);
        r.y = dvt_test_values(y);
        for (i = 0; i < N * C; i++)
            weight[i] = (i * 5 % 8 - 3.5) / 4; /* exact in every dtype */
        w = dvt_from_host(weight, dvt_shape_of(y), DVT_F64, dvt_cpu());
        w = dvt_as_in_ctx(dvt_as_in_dtype(w, dtype), ctx);
        CHECK_INT(dvt_backward_from(&y, &w, 1, DVT_FREE_GRAPH), DVT_OK);
        r.dx = dvt_test_values(dvt_grad(x));
    }
    return r;
}

static double largest_of(const double *x, int64_t n) {
    double most = 0;
    int64_t i;
    for (i = 0; i < n; i++)
        most = fmax(most, fabs(x[i]));
    return most;
}

/* Compares within `ulps` roundings of the largest element. */
static void half_compare(const double *got, const double *wanted, int64_t n, dvt_dtype dtype,
                         const char *what, double scale) {
    double unit = dtype == DVT_F16 ? 1.0 / 2048 : 1.0 / 256;
    double most = largest_of(wanted, n), least = dtype == DVT_F16 ? ldexp(1, -24) : 0;
    int64_t i;
    for (i = 0; got && wanted && i < n; i++)
        if (!dvt_test_check(fabs(got[i] - wanted[i]) <= 2 * unit * most + least, __FILE__, __LINE__,
                            "%s of %s, deviations of %g: element %d is %g, in float64 %g", what,
                            dvt_dtype_name(dtype), scale, (int)i, got[i], wanted[i]))
            break;
}

static void half_check(const char *what, half_fn compute, dvt_dtype dtype, double scale,
                       dvt_ctx ctx) {
    double values[N * C];
    half_result half, exact;
    dvt_array *x;
    double *rounded;
    int i;
    /* Row and column means are not 0, and all rows and columns differ. */
    for (i = 0; i < N * C; i++)
        values[i] = scale * ((i * 7 % 11) / 4.0 - (i % C) / 3.0 + (i * i % 5) / 8.0);
    x = dvt_as_in_dtype(dvt_from_host(values, DVT_SHAPE(N, C), DVT_F64, dvt_cpu()), dtype);
    rounded = dvt_test_values(x);
    half = half_run(compute, rounded, dtype, ctx);
    exact = half_run(compute, rounded, DVT_F64, dvt_cpu());
    half_compare(half.y, exact.y, exact.n, dtype, what, scale);
    half_compare(half.dx, exact.dx, N * C, dtype, what, scale);
    free(rounded);
    free(half.y);
    free(half.dx);
    free(exact.y);
    free(exact.dx);
}

static void half_check_all(dvt_ctx ctx) {
    static const double scales[] = {1e-4, 3e-3, 1e-2, 1, 300, 2000, 15000};
    static const dvt_dtype dtypes[] = {DVT_F16, DVT_BF16};
    int s, d;
    for (d = 0; d < 2; d++)
        for (s = 0; s < 7; s++)
            DVT_SCOPE {
                half_check("dvt_layer_norm", half_layer_norm, dtypes[d], scales[s], ctx);
                half_check("dvt_layer_norm alone", half_layer_norm_alone, dtypes[d], scales[s],
                           ctx);
                DVT_TRAIN_MODE {
                    half_check("dvt_batch_norm", half_batch_norm, dtypes[d], scales[s], ctx);
                }
                half_check("dvt_std", half_std, dtypes[d], scales[s], ctx);
                if (scales[s] < 15000) /* larger norms overflow float16 */
                    half_check("dvt_norm", half_norm, dtypes[d], scales[s], ctx);
            }
}

DVT_TEST(half_statistics) {
    half_check_all(dvt_test_ctx());
}

DVT_TEST(half_statistics_virtual_gpu) {
    NEEDS_NO_GPU("virtual GPUs");
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    half_check_all(dvt_gpu(0));
    dvt_set_virtual_gpus(0, 0);
}

/* The unrecorded single launch and the recorded operations give the same bits, as for float32. */
DVT_TEST(half_statistics_unrecorded) {
    const float row[] = {0, 1000, 2000, 3000};
    dvt_array *x =
        dvt_as_in_dtype(dvt_from_host(row, DVT_SHAPE(1, 4), DVT_F32, dvt_test_ctx()), DVT_F16);
    dvt_array *y = NULL, *z = dvt_layer_norm(x, NULL, NULL, 1e-5);
    double *a, *b;
    CHECK_VALUES(z, 1e-3, -1.3416, -0.4472, 0.4472, 1.3416);
    dvt_attach_grad(x, DVT_GRAD_WRITE);
    DVT_RECORD {
        y = dvt_layer_norm(x, NULL, NULL, 1e-5);
    }
    a = dvt_test_values(y);
    b = dvt_test_values(z);
    CHECK(memcmp(a, b, 4 * sizeof *a) == 0);
    free(a);
    free(b);
}

/* Running statistics must be float32 or float64, because a float16 variance above 65504 would be
   infinite. Without training they are only read. */
DVT_TEST(half_statistics_running_dtypes) {
    static const dvt_dtype dtypes[] = {DVT_F16, DVT_BF16};
    int d;
    for (d = 0; d < 2; d++) {
        dvt_ctx ctx = dvt_test_ctx();
        dvt_array *x = dvt_as_in_dtype(DVT_ARRAY(float, DVT_SHAPE(2, 1), ctx, 0, 2048), dtypes[d]);
        dvt_array *one = dvt_ones(DVT_SHAPE(1), dtypes[d], ctx), *y;
        dvt_array *mean = dvt_zeros(DVT_SHAPE(1), DVT_F32, ctx);
        dvt_array *variance = dvt_ones(DVT_SHAPE(1), DVT_F32, ctx);
        DVT_TRAIN_MODE {
            CHECK_VALUES(dvt_batch_norm(x, one, one, mean, variance, 1, 0.5, 1e-5), 1e-3, 0, 2);
            CHECK_ERROR(dvt_batch_norm(x, one, one, one, variance, 1, 0.5, 1e-5), DVT_ERR_DTYPE);
            CHECK_ERROR(dvt_batch_norm(x, one, one, mean, one, 1, 0.5, 1e-5), DVT_ERR_DTYPE);
        }
        CHECK_VALUES(mean, 0, 512);
        CHECK_VALUES(variance, 0, 0.5 + 0.5 * 1048576);
        y = dvt_batch_norm(x, one, one, mean, variance, 1, 0.5, 1e-5);
        CHECK_INT(dvt_dtype_of(y), dtypes[d]);
        CHECK_VALUES(y, 1e-2, 1 - 0.70711, 1 + 1536 / 724.077);
        CHECK_VALUES(dvt_batch_norm(x, one, one, one, one, 1, 0.5, 0), 1e-2, 0, 2048);
    }
}

#if !defined(DEVTENSOR_NO_NN)
/* Half the square of 300 fits float16, the square does not. Squares may overflow even where their
   mean fits. */
DVT_TEST(half_statistics_losses) {
    static const dvt_dtype dtypes[] = {DVT_F16, DVT_BF16};
    int d;
    for (d = 0; d < 2; d++) {
        dvt_ctx ctx = dvt_test_ctx();
        dvt_array *x =
            dvt_as_in_dtype(DVT_ARRAY(float, DVT_SHAPE(1, 4), ctx, 300, 400, 0, 0), dtypes[d]);
        dvt_array *zero = dvt_zeros(DVT_SHAPE(1, 4), dtypes[d], ctx), *y = NULL;
        dvt_attach_grad(x, DVT_GRAD_WRITE);
        DVT_RECORD {
            y = dvt_loss_l2(x, zero);
        }
        CHECK_INT(dvt_dtype_of(y), dtypes[d]);
        CHECK_VALUES(y, 2e-3, 31250);
        CHECK_INT(dvt_backward(y), DVT_OK);
        CHECK_VALUES(dvt_grad(x), 2e-3, 75, 100, 0, 0);
        CHECK_VALUES(dvt_loss_huber(x, zero, 1), 2e-3, 699.0 / 4);
        CHECK_VALUES(dvt_loss_huber(x, zero, 1000), 2e-3, 31.25);
        x = dvt_as_in_dtype(DVT_ARRAY(float, DVT_SHAPE(1, 4), ctx, -8, -8.5, -9, 0), dtypes[d]);
        dvt_attach_grad(x, DVT_GRAD_WRITE);
        DVT_RECORD {
            y = dvt_loss_softmax_cross_entropy(x, DVT_ARRAY(int32_t, DVT_SHAPE(1), ctx, 3));
        }
        CHECK_INT(dvt_dtype_of(y), dtypes[d]);
        CHECK_INT(dvt_backward(y), DVT_OK);
        /* A rounded logarithm would cause an error of 1 to 3 % in three of them in bfloat16. */
        CHECK_VALUES(dvt_mul_scalar(dvt_as_in_dtype(dvt_grad(x), DVT_F64), 1e4), 4e-3, 3.3524058,
                     2.0333369, 1.2332812, -6.6190240);
    }
}
#endif
