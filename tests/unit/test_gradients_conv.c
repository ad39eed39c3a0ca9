/* Gradients of convolution, pooling, and layers as functions. */
#include "gradient_check.h"

static dvt_array *convolve(dvt_array *const *x, const void *user) {
    return dvt_conv2d(x[0], x[1], x[2], (const dvt_conv2d_params *)user);
}

static dvt_array *convolve_without_bias(dvt_array *const *x, const void *user) {
    return dvt_conv2d(x[0], x[1], NULL, (const dvt_conv2d_params *)user);
}

static dvt_array *convolve_views(dvt_array *const *x, const void *user) {
    return dvt_conv2d(dvt_transpose(x[0], DVT_AXES(3, 2, 0, 1)), dvt_slice(x[1], 3, 0, DVT_END, 2),
                      NULL, (const dvt_conv2d_params *)user);
}

static void check_conv(const dvt_conv2d_params *params, dvt_shape x, dvt_shape w) {
    problem p = problem_begin("conv2d", convolve, params);
    problem_input(&p, x, -1, 1);
    problem_input(&p, w, -1, 1);
    problem_input(&p, DVT_SHAPE(w.dim[0]), -1, 1);
    check_problem(&p);
    check_two("conv2d without bias", convolve_without_bias, params, x, w);
}

DVT_TEST(gradients_of_convolution) {
    static const dvt_conv2d_params plain = {{0, 0}, {0, 0}, {0, 0}, 0};
    static const dvt_conv2d_params strided = {{2, 1}, {1, 2}, {0, 0}, 0};
    static const dvt_conv2d_params dilated = {{0, 0}, {1, 1}, {2, 1}, 0};
    static const dvt_conv2d_params grouped = {{0, 0}, {0, 0}, {0, 0}, 2};
    static const dvt_conv2d_params leftover = {{3, 2}, {1, 0}, {0, 0}, 0};
    check_conv(&plain, DVT_SHAPE(2, 2, 4, 3), DVT_SHAPE(2, 2, 2, 2));
    check_conv(&plain, DVT_SHAPE(1, 1, 3, 3), DVT_SHAPE(2, 1, 3, 3));
    check_conv(&plain, DVT_SHAPE(1, 3, 2, 2), DVT_SHAPE(2, 3, 1, 1));
    check_conv(&strided, DVT_SHAPE(1, 2, 4, 3), DVT_SHAPE(2, 2, 3, 2));
    check_conv(&dilated, DVT_SHAPE(1, 1, 4, 3), DVT_SHAPE(2, 1, 2, 2));
    check_conv(&grouped, DVT_SHAPE(1, 4, 3, 2), DVT_SHAPE(2, 2, 2, 2));
    check_conv(&leftover, DVT_SHAPE(1, 1, 5, 4), DVT_SHAPE(1, 1, 2, 1));
    check_two("conv2d of views", convolve_views, &plain, DVT_SHAPE(2, 3, 3, 1),
              DVT_SHAPE(2, 3, 2, 3));
    check_conv(&plain, DVT_SHAPE(0, 1, 2, 2), DVT_SHAPE(1, 1, 2, 2));
}

/* ---- pooling ---- */
static dvt_array *max_pool(dvt_array *const *x, const void *user) {
    return dvt_max_pool2d(x[0], (const dvt_pool2d_params *)user);
}

static dvt_array *average_pool(dvt_array *const *x, const void *user) {
    return dvt_avg_pool2d(x[0], (const dvt_pool2d_params *)user);
}

static dvt_array *max_pool_of_view(dvt_array *const *x, const void *user) {
    return dvt_square(dvt_max_pool2d(dvt_swapaxes(x[0], 1, 3), (const dvt_pool2d_params *)user));
}

DVT_TEST(gradients_of_pooling) {
    static const dvt_pool2d_params p[] = {
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

DVT_TEST(gradients_of_pooling_go_to_the_first_of_equals) {
    static const dvt_pool2d_params p = {{2, 2}, {1, 1}, {0, 0}, false, false, false};
    const double values[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    dvt_array *x = leaf_of(values, DVT_SHAPE(1, 1, 3, 3)), *y = NULL;
    DVT_RECORD {
        y = dvt_max_pool2d(x, &p);
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 0, 1, 1, 0, 1, 1, 0, 0, 0, 0);
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

/* The running statistics are made anew, so that every call computes the same. */
static dvt_array *batch_norm(dvt_array *const *x, const void *user) {
    bool training = user != NULL;
    dvt_array *mean = dvt_full(DVT_SHAPE(2), 0.5, dvt_dtype_of(x[0]), dvt_ctx_of(x[0]));
    dvt_array *variance = dvt_full(DVT_SHAPE(2), 2, dvt_dtype_of(x[0]), dvt_ctx_of(x[0])),
              *y = NULL;
    DVT_RECORD_SCOPE(-1, training) {
        y = dvt_batch_norm(x[0], x[1], x[2], mean, variance, 1, 0.9, 1e-3);
    }
    return y;
}

static dvt_array *small_network(dvt_array *const *x, const void *user) {
    static const dvt_pool2d_params two = {{2, 2}, {0, 0}, {0, 0}, false, false, false};
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

/* The gradient goes exactly where values went, by the same factor. */
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
