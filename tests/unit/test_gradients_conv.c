/* Tests of gradients of convolution, pooling, and layers as functions. */
#include "gradient_check.h"

static dvt_array *convolve(dvt_array *const *x, const void *user) {
    return dvt_conv2d(x[0], x[1], x[2], (const dvt_conv2d_options *)user);
}

static dvt_array *convolve_without_bias(dvt_array *const *x, const void *user) {
    return dvt_conv2d(x[0], x[1], NULL, (const dvt_conv2d_options *)user);
}

static dvt_array *convolve_views(dvt_array *const *x, const void *user) {
    return dvt_conv2d(dvt_transpose(x[0], DVT_AXES(3, 2, 0, 1)), dvt_slice(x[1], 3, 0, DVT_END, 2),
                      NULL, (const dvt_conv2d_options *)user);
}

static void check_conv(const dvt_conv2d_options *params, dvt_shape x, dvt_shape w) {
    problem p = problem_begin("conv2d", convolve, params);
    problem_input(&p, x, -1, 1);
    problem_input(&p, w, -1, 1);
    problem_input(&p, DVT_SHAPE(w.dim[0]), -1, 1);
    check_problem(&p);
    check_two("conv2d without bias", convolve_without_bias, params, x, w);
}

DVT_TEST(gradients_of_convolution) {
    static const dvt_conv2d_options plain = {{0, 0}, {0, 0}, {0, 0}, 0};
    static const dvt_conv2d_options strided = {{2, 1}, {1, 2}, {0, 0}, 0};
    static const dvt_conv2d_options dilated = {{0, 0}, {1, 1}, {2, 1}, 0};
    static const dvt_conv2d_options grouped = {{0, 0}, {0, 0}, {0, 0}, 2};
    static const dvt_conv2d_options leftover = {{3, 2}, {1, DVT_PAD_NONE}, {0, 0}, 0};
    static const dvt_conv2d_options repeated = {{0}, {1}, {0}, 0};
    check_conv(&plain, DVT_SHAPE(2, 2, 4, 3), DVT_SHAPE(2, 2, 2, 2));
    check_conv(&plain, DVT_SHAPE(1, 1, 3, 3), DVT_SHAPE(2, 1, 3, 3));
    check_conv(&plain, DVT_SHAPE(1, 3, 2, 2), DVT_SHAPE(2, 3, 1, 1));
    check_conv(&strided, DVT_SHAPE(1, 2, 4, 3), DVT_SHAPE(2, 2, 3, 2));
    check_conv(&dilated, DVT_SHAPE(1, 1, 4, 3), DVT_SHAPE(2, 1, 2, 2));
    check_conv(&grouped, DVT_SHAPE(1, 4, 3, 2), DVT_SHAPE(2, 2, 2, 2));
    check_conv(&leftover, DVT_SHAPE(1, 1, 5, 4), DVT_SHAPE(1, 1, 2, 1));
    check_conv(&repeated, DVT_SHAPE(1, 1, 3, 2), DVT_SHAPE(1, 1, 2, 3));
    check_two("conv2d of views", convolve_views, &plain, DVT_SHAPE(2, 3, 3, 1),
              DVT_SHAPE(2, 3, 2, 3));
    check_conv(&plain, DVT_SHAPE(0, 1, 2, 2), DVT_SHAPE(1, 1, 2, 2));
}

/* ---- pooling ---- */
static dvt_array *max_pool(dvt_array *const *x, const void *user) {
    return dvt_max_pool2d(x[0], (const dvt_pool2d_options *)user);
}

static dvt_array *average_pool(dvt_array *const *x, const void *user) {
    return dvt_avg_pool2d(x[0], (const dvt_pool2d_options *)user);
}

static dvt_array *max_pool_of_view(dvt_array *const *x, const void *user) {
    return dvt_square(dvt_max_pool2d(dvt_swapaxes(x[0], 1, 3), (const dvt_pool2d_options *)user));
}

DVT_TEST(gradients_of_pooling) {
    static const dvt_pool2d_options p[] = {
        {{2, 0}, {0, 0}, {0, 0}, false, false, false},
        {{3, 2}, {1, 2}, {0, 0}, false, false, false},
        {{2, 2}, {2, 1}, {1, 1}, false, false, false},
        {{2, 2}, {2, 2}, {1, 0}, false, true, false},
        {{2, 3}, {2, 2}, {0, 1}, true, false, false},
        {{2, 3}, {2, 2}, {0, 1}, true, true, false},
        {{0, 0}, {0, 0}, {0, 0}, false, false, true},
    };
    int i;
    for (i = 0; i < (int)(sizeof p / sizeof p[0]); i++) {
        check_one("max_pool2d", max_pool, &p[i], DVT_SHAPE(2, 1, 5, 4), -2, 2);
        check_one("avg_pool2d", average_pool, &p[i], DVT_SHAPE(1, 2, 5, 4), -2, 2);
    }
    check_one("max_pool2d of a view", max_pool_of_view, &p[0], DVT_SHAPE(1, 4, 5, 2), -2, 2);
}

DVT_TEST(gradients_of_pooling_go_to_the_first_of_ties) {
    static const dvt_pool2d_options p = {{2, 2}, {1, 1}, {0, 0}, false, false, false};
    const double values[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    dvt_array *x = leaf_of(values, DVT_SHAPE(1, 1, 3, 3)), *y = NULL;
    DVT_RECORD {
        y = dvt_max_pool2d(x, &p);
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 0, 1, 1, 0, 1, 1, 0, 0, 0, 0);
}

static void check_same_bits(dvt_array *a, dvt_array *b) {
    int64_t bytes = dvt_nbytes(a);
    char *x = (char *)malloc((size_t)bytes), *y = (char *)malloc((size_t)bytes);
    CHECK_INT(dvt_nbytes(b), bytes);
    CHECK_INT(dvt_to_host(a, x, bytes), DVT_OK);
    CHECK_INT(dvt_to_host(b, y, bytes), DVT_OK);
    CHECK(memcmp(x, y, (size_t)bytes) == 0);
    free(x);
    free(y);
}

/* Checks the gradient of pooling after relu. Unrecorded, max-pool backward applies the mask of relu
   and skips relu's own backward. Recorded, it computes both. The bits must be equal, also when the
   result of relu has other uses (`elsewhere`). */
static void check_fused_with_relu(const dvt_pool2d_options *p, dvt_dtype dtype, bool other_uses) {
    static const double special[] = {0.0, -0.0, (double)NAN, 1e-30, (double)INFINITY};
    double values[2 * 3 * 9 * 12];
    int64_t n = (int64_t)(sizeof values / sizeof values[0]), i;
    dvt_array *x, *r = NULL, *y[2] = {NULL, NULL}, *g[2], *vars[2], *once[1], *recorded[1],
                  *both[2], *zeros;
    for (i = 0; i < n; i++)
        values[i] = i % 13 ? dvt_test_random(-1, 1) : special[i / 13 % 5];
    x = dvt_as_in_dtype(constant_of(values, DVT_SHAPE(2, 3, 9, 12)), dtype);
    CHECK_INT(dvt_attach_grad(x, DVT_GRAD_WRITE), DVT_OK);
    DVT_RECORD {
        r = dvt_relu(x);
        y[0] = dvt_max_pool2d(r, p);
        y[1] = dvt_mul_scalar(r, 0.5);
    }
    for (i = 0; i < 2; i++)
        g[i] = dvt_normal(0, 1, dvt_shape_of(y[i]), dtype, dvt_ctx_of(x));
    vars[0] = x;
    vars[1] = r;
    i = other_uses ? 2 : 1;
    CHECK_INT(dvt_gradients(y, g, (int)i, vars, 1, DVT_CREATE_GRAPH, recorded), DVT_OK);
    CHECK_INT(dvt_gradients(y, g, (int)i, vars, 1, DVT_RETAIN_GRAPH, once), DVT_OK);
    check_same_bits(once[0], recorded[0]);
    /* the gradient of relu's result itself is unmasked */
    CHECK_INT(dvt_gradients(y, g, (int)i, vars, 2, DVT_RETAIN_GRAPH, both), DVT_OK);
    check_same_bits(both[0], recorded[0]);
    CHECK_INT(dvt_gradients(y, g, (int)i, vars + 1, 1, DVT_CREATE_GRAPH, recorded), DVT_OK);
    check_same_bits(both[1], recorded[0]);
    zeros = dvt_logical_and(dvt_equal_scalar(r, 0), dvt_not_equal_scalar(both[1], 0));
    if (other_uses || !p->global) /* the maximum of a whole plane is not zero */
        CHECK(dvt_item(dvt_sum(zeros, DVT_ALL)) > 0);
}

DVT_TEST(gradients_of_pooling_fused_with_relu) {
    static const dvt_pool2d_options p[] = {
        {{2, 2}, {2, 2}, {0, 0}, false, false, false},
        {{3, 2}, {2, 1}, {1, 0}, false, false, false},
        {{2, 3}, {2, 3}, {0, 1}, true, false, false},
        {{0, 0}, {0, 0}, {0, 0}, false, false, true},
    };
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_BF16};
    int i, k;
    for (i = 0; i < 4; i++)
        for (k = 0; k < 6; k++)
            DVT_SCOPE {
                check_fused_with_relu(&p[i], dtypes[k / 2], k % 2 != 0);
            }
}

/* The result of relu may be overwritten after pooling, but then backward must fail. */
DVT_TEST(gradients_of_pooling_fused_with_relu_detect_writes) {
    static const dvt_pool2d_options p = {{2, 2}, {0, 0}, {0, 0}, false, false, false};
    const double values[] = {1, -1, 2, -3};
    dvt_array *x = leaf_of(values, DVT_SHAPE(1, 1, 2, 2)), *r = NULL, *y = NULL;
    DVT_RECORD {
        r = dvt_relu(x);
        y = dvt_max_pool2d(r, &p);
    }
    CHECK(dvt_fill(r, 0) != NULL);
    CHECK_INT(dvt_backward(y), DVT_ERR_GRAD);
    dvt_clear_error();
}

/* ---- layers ---- */
static dvt_array *linear(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_square(dvt_linear(x[0], x[1], x[2]));
}

static dvt_array *layer_norm(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_layer_norm(x[0], x[1], x[2], 1e-3);
}

/* Creates the running statistics in each call, so that every call computes the same. */
static dvt_array *batch_norm(dvt_array *const *x, const void *user) {
    bool training = user != NULL;
    dvt_array *mean = dvt_full(DVT_SHAPE(2), 0.5, dvt_dtype_of(x[0]), dvt_ctx_of(x[0]));
    dvt_array *variance = dvt_full(DVT_SHAPE(2), 2, dvt_dtype_of(x[0]), dvt_ctx_of(x[0])),
              *y = NULL;
    DVT_MODE_SCOPE(DVT_UNCHANGED, training ? DVT_ON : DVT_OFF) {
        y = dvt_batch_norm(x[0], x[1], x[2], mean, variance, 1, 0.9, 1e-3);
    }
    return y;
}

static dvt_array *small_network(dvt_array *const *x, const void *user) {
    static const dvt_pool2d_options two = {{2, 2}, {0, 0}, {0, 0}, false, false, false};
    dvt_array *y = dvt_tanh(dvt_conv2d(x[0], x[1], NULL, NULL));
    (void)user;
    y = dvt_flatten(dvt_max_pool2d(y, &two));
    return dvt_log_softmax(dvt_linear(y, x[2], NULL), -1);
}

DVT_TEST(gradients_of_layers) {
    problem p = problem_begin("linear", linear, NULL);
    problem_input(&p, DVT_SHAPE(2, 2, 3), -2, 2);
    problem_input(&p, DVT_SHAPE(4, 3), -2, 2);
    problem_input(&p, DVT_SHAPE(4), -2, 2);
    check_problem(&p);
    p = problem_begin("layer_norm", layer_norm, NULL);
    problem_input(&p, DVT_SHAPE(2, 4), -2, 2);
    problem_input(&p, DVT_SHAPE(4), -2, 2);
    problem_input(&p, DVT_SHAPE(4), -2, 2);
    check_problem(&p);
    p = problem_begin("batch_norm", batch_norm, NULL);
    problem_input(&p, DVT_SHAPE(3, 2, 2), -2, 2);
    problem_input(&p, DVT_SHAPE(2), -2, 2);
    problem_input(&p, DVT_SHAPE(2), -2, 2);
    check_problem(&p);
    p.user = "training";
    check_problem(&p);
    p = problem_begin("network", small_network, NULL);
    problem_input(&p, DVT_SHAPE(2, 1, 5, 5), -2, 2);
    problem_input(&p, DVT_SHAPE(2, 1, 2, 2), -1, 1);
    problem_input(&p, DVT_SHAPE(3, 8), -1, 1);
    check_problem(&p);
}

/* The gradient is nonzero exactly where values passed, with the same factor. */
DVT_TEST(gradients_of_dropout) {
    dvt_array *x = dvt_full(DVT_SHAPE(100), 3, DVT_F64, dvt_test_ctx()), *y = NULL;
    double *kept, *gradient;
    int i, ones = 0;
    dvt_attach_grad(x, DVT_GRAD_WRITE);
    DVT_RECORD {
        y = dvt_dropout(x, 0.25);
    }
    kept = dvt_test_values(y);
    CHECK_INT(dvt_backward(y), DVT_OK);
    gradient = dvt_test_values(dvt_grad(x));
    for (i = 0; i < 100; i++) {
        CHECK_CLOSE(3 * gradient[i], kept[i], 1e-12);
        ones += kept[i] != 0;
    }
    CHECK(ones > 50 && ones < 98);
    free(kept);
    free(gradient);
}
