/* Tests of losses: values against the formulas in double, shapes of labels, gradients, errors; on
   the CPU and on a virtual GPU. */
#include "dvt_test.h"
#if !defined(DEVTENSOR_NO_NN)

typedef dvt_array *(*loss_fn)(dvt_array *prediction, dvt_array *label);

static dvt_array *huber_2(dvt_array *prediction, dvt_array *label) {
    return dvt_loss_huber(prediction, label, 2);
}

static double softplus(double x) {
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

static double l1_of(double p, double l) {
    return fabs(p - l);
}

static double l2_of(double p, double l) {
    return (p - l) * (p - l) / 2;
}

static double bce_of(double p, double l) {
    return softplus(p) - p * l;
}

static double huber_of(double p, double l) {
    double d = fabs(p - l);
    return d <= 2 ? d * d / 4 : d - 1;
}

static const struct {
    loss_fn loss;
    double (*of)(double p, double l);
    double low, high; /* range of labels */
} cases[] = {{dvt_loss_l1, l1_of, -4, 4},
             {dvt_loss_l2, l2_of, -4, 4},
             {dvt_loss_sigmoid_bce, bce_of, 0, 1},
             {huber_2, huber_of, -4, 4}};

#define CASES ((int)(sizeof cases / sizeof cases[0]))

static dvt_array *random_f64(dvt_shape shape, double low, double high, dvt_ctx ctx) {
    int64_t n = dvt_shape_size(shape), i;
    double *values = (double *)malloc(sizeof(double) * (size_t)(n ? n : 1));
    dvt_array *x;
    for (i = 0; i < n; i++)
        values[i] = dvt_test_random(low, high);
    x = dvt_from_host(values, shape, DVT_F64, ctx);
    free(values);
    return x;
}

/* Checks the mean of each sample, for 3 samples of 8 values. */
static void check_formula(int c, dvt_array *p, dvt_array *l, double tolerance) {
    dvt_array *loss = cases[c].loss(p, l);
    double *x = dvt_test_values(p), *y = dvt_test_values(l), expected[3];
    int i, k;
    for (i = 0; i < 3; i++) {
        expected[i] = 0;
        for (k = 0; k < 8; k++)
            expected[i] += cases[c].of(x[i * 8 + k], y[i * 8 + k]) / 8;
    }
    CHECK(dvt_shape_equal(dvt_shape_of(loss), DVT_SHAPE(3)));
    CHECK(dvt_ctx_equal(dvt_ctx_of(loss), dvt_ctx_of(p)));
    CHECK_INT(dvt_dtype_of(loss), dvt_dtype_of(p));
    dvt_test_equal(loss, expected, 3, tolerance, __FILE__, __LINE__);
    free(x);
    free(y);
}

DVT_TEST(losses_formulas) {
    int c;
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    for (c = 0; c < CASES; c++)
        DVT_SCOPE {
            dvt_array *p = random_f64(DVT_SHAPE(3, 2, 4), -5, 5, dvt_gpu(0));
            dvt_array *l = random_f64(DVT_SHAPE(3, 2, 4), cases[c].low, cases[c].high, dvt_gpu(0));
            dvt_array *flat = dvt_reshape(l, DVT_SHAPE(3, 8));
            check_formula(c, p, l, 1e-12);
            check_formula(c, p, flat, 1e-12); /* the label is reshaped to the prediction's shape */
            check_formula(c, dvt_as_in_dtype(p, DVT_F32), dvt_as_in_dtype(l, DVT_F32), 1e-5);
        }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

DVT_TEST(losses_one_value_per_sample) {
    dvt_array *p = DVT_ARRAY(float, DVT_SHAPE(3), dvt_test_ctx(), 1, 2, 3);
    dvt_array *column = dvt_reshape(p, DVT_SHAPE(3, 1));
    dvt_array *l = DVT_ARRAY(int32_t, DVT_SHAPE(3), dvt_test_ctx(), 1, 0, 6);
    CHECK_VALUES(dvt_loss_l1(p, l), 0, 0, 2, 3);
    CHECK_VALUES(dvt_loss_l2(column, l), 0, 0, 2, 4.5); /* (3, 1) with (3): not (3, 3) */
    CHECK_VALUES(dvt_loss_huber(column, l, 1), 1e-6, 0, 1.5, 2.5);
    CHECK_VALUES(dvt_loss_l2(DVT_ARRAY(uint8_t, DVT_SHAPE(2), dvt_test_ctx(), 1, 9),
                             DVT_ARRAY(uint8_t, DVT_SHAPE(2), dvt_test_ctx(), 3, 9)),
                 0, 2, 0); /* 1 - 3 does not wrap */
    CHECK_INT(dvt_size(dvt_loss_l2(dvt_zeros(DVT_SHAPE(0, 4), DVT_F32, dvt_test_ctx()),
                                   dvt_zeros(DVT_SHAPE(0, 4), DVT_F32, dvt_test_ctx()))),
              0);
}

/* Checks gradients of the prediction against differences; the label gets none. */
DVT_TEST(losses_gradients) {
    double h = 1e-6;
    int c, i;
    for (c = 0; c < CASES; c++)
        DVT_SCOPE {
            dvt_array *p = random_f64(DVT_SHAPE(2, 3), -3, 3, dvt_cpu()), *loss = NULL;
            dvt_array *l = random_f64(DVT_SHAPE(2, 3), cases[c].low, cases[c].high, dvt_cpu());
            double *at = (double *)dvt_data(p), *g;
            dvt_attach_grad(p, DVT_GRAD_WRITE);
            dvt_attach_grad(l, DVT_GRAD_WRITE);
            DVT_RECORD {
                loss = cases[c].loss(p, l);
            }
            CHECK_INT(dvt_backward(loss), DVT_OK);
            g = dvt_test_values(dvt_grad(p));
            for (i = 0; i < 6; i++) {
                double value = at[i], up, down;
                at[i] = value + h;
                up = dvt_item(dvt_sum(cases[c].loss(p, l), DVT_ALL));
                at[i] = value - h;
                down = dvt_item(dvt_sum(cases[c].loss(p, l), DVT_ALL));
                at[i] = value;
                CHECK_CLOSE(g[i], (up - down) / (2 * h), 1e-6);
            }
            free(g);
            CHECK_VALUES(dvt_grad(l), 0, 0, 0, 0, 0, 0, 0);
        }
}

/* The formula with |p| has no derivative at 0, but the loss has one: sigmoid(0) - l. */
DVT_TEST(losses_sigmoid_bce_at_zero_and_large_values) {
    dvt_array *p = DVT_ARRAY(double, DVT_SHAPE(4), dvt_test_ctx(), 0, 0, 800, -800), *loss = NULL;
    dvt_attach_grad(p, DVT_GRAD_WRITE);
    DVT_RECORD {
        loss = dvt_loss_sigmoid_bce(p, DVT_ARRAY(float, DVT_SHAPE(4), dvt_test_ctx(), 0, 1, 0, 0));
    }
    CHECK_VALUES(loss, 1e-12, log(2), log(2), 800, 0);
    CHECK_INT(dvt_backward(loss), DVT_OK);
    CHECK_VALUES(dvt_grad(p), 1e-12, 0.5, -0.5, 1, 0);
}

/* ---- softmax cross-entropy ---- */
static double cross_entropy(const double *row, int n, int label) {
    double sum = 0;
    int i;
    for (i = 0; i < n; i++)
        sum += exp(row[i]);
    return log(sum) - row[label];
}

static void check_class_numbers(dvt_ctx ctx) {
    static const double rows[] = {1, 2, 3, -1, 0, 5};
    dvt_array *p = dvt_from_host(rows, DVT_SHAPE(2, 3), DVT_F64, ctx);
    double a = cross_entropy(rows, 3, 2), b = cross_entropy(rows + 3, 3, 0);
    CHECK_VALUES(dvt_loss_softmax_cross_entropy(p, DVT_ARRAY(int32_t, DVT_SHAPE(2), ctx, 2, 0)),
                 1e-12, a, b);
    CHECK_VALUES(dvt_loss_softmax_cross_entropy(p, DVT_ARRAY(float, DVT_SHAPE(2), ctx, 2, 0)),
                 1e-12, a, b);
    CHECK_VALUES(dvt_loss_softmax_cross_entropy(p, DVT_ARRAY(uint8_t, DVT_SHAPE(2), ctx, 2, 0)),
                 1e-12, a, b);
    CHECK_VALUES(dvt_loss_softmax_cross_entropy(p, DVT_ARRAY(int64_t, DVT_SHAPE(2, 1), ctx, 2, 0)),
                 1e-12, a, b);
    CHECK_VALUES(
        dvt_loss_softmax_cross_entropy(p, DVT_ARRAY(float, DVT_SHAPE(2, 3), ctx, 0, 0, 1, 1, 0, 0)),
        1e-12, a, b);
    CHECK_VALUES(dvt_loss_softmax_cross_entropy(
                     p, DVT_ARRAY(double, DVT_SHAPE(2, 3), ctx, 0.25, 0, 0.75, 0, 0.5, 0.5)),
                 1e-12, a * 0.75 + cross_entropy(rows, 3, 0) * 0.25,
                 cross_entropy(rows + 3, 3, 1) * 0.5 + cross_entropy(rows + 3, 3, 2) * 0.5);
}

DVT_TEST(losses_softmax_cross_entropy) {
    check_class_numbers(dvt_cpu());
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    check_class_numbers(dvt_gpu(0));
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* With more axes the loss is the mean over all but the first. */
DVT_TEST(losses_softmax_cross_entropy_positions) {
    static const double rows[] = {1, 2, 3, 4, -1, 5, 0, 0};
    dvt_array *p = dvt_from_host(rows, DVT_SHAPE(2, 2, 2), DVT_F64, dvt_test_ctx());
    dvt_array *l = DVT_ARRAY(int32_t, DVT_SHAPE(2, 2), dvt_test_ctx(), 0, 1, 1, 0);
    CHECK_VALUES(dvt_loss_softmax_cross_entropy(p, l), 1e-12,
                 (cross_entropy(rows, 2, 0) + cross_entropy(rows + 2, 2, 1)) / 2,
                 (cross_entropy(rows + 4, 2, 1) + cross_entropy(rows + 6, 2, 0)) / 2);
}

/* The gradient is softmax - one-hot, and large logits do not overflow. */
DVT_TEST(losses_softmax_cross_entropy_gradient) {
    dvt_array *p = DVT_ARRAY(float, DVT_SHAPE(2, 2), dvt_test_ctx(), 1000, 0, 0, 0), *loss = NULL;
    dvt_array *l = DVT_ARRAY(int32_t, DVT_SHAPE(2), dvt_test_ctx(), 1, 0);
    dvt_attach_grad(p, DVT_GRAD_WRITE);
    DVT_RECORD {
        loss = dvt_loss_softmax_cross_entropy(p, l);
    }
    CHECK_VALUES(loss, 1e-6, 1000, log(2));
    CHECK_INT(dvt_backward(loss), DVT_OK);
    CHECK_VALUES(dvt_grad(p), 1e-6, 1, -1, -0.5, 0.5);
}

DVT_TEST(losses_labels_get_no_gradient) {
    dvt_array *p = dvt_ones(DVT_SHAPE(1, 2), DVT_F32, dvt_test_ctx()), *loss = NULL;
    dvt_array *l = DVT_ARRAY(float, DVT_SHAPE(1, 2), dvt_test_ctx(), 0.5, 0.5);
    dvt_attach_grad(l, DVT_GRAD_WRITE);
    DVT_RECORD {
        loss = dvt_loss_softmax_cross_entropy(p, dvt_mul_scalar(l, 1));
    }
    CHECK(!dvt_has_history(loss));
}

/* ---- errors ---- */
DVT_TEST(losses_errors) {
    dvt_array *p = dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu());
    dvt_array *scalar = dvt_scalar(1, DVT_F32, dvt_cpu()), *elsewhere;
    int c;
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    elsewhere = dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_gpu(0));
    for (c = 0; c < CASES; c++) {
        CHECK_ERROR(cases[c].loss(NULL, p), DVT_ERR_NULL_ARGUMENT);
        CHECK_ERROR(cases[c].loss(p, NULL), DVT_ERR_NULL_ARGUMENT);
        CHECK_ERROR(cases[c].loss(p, elsewhere), DVT_ERR_CONTEXT);
        CHECK_ERROR(cases[c].loss(p, dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_cpu())), DVT_ERR_SHAPE);
        CHECK_ERROR(cases[c].loss(scalar, scalar), DVT_ERR_SHAPE);
    }
    CHECK_ERROR(dvt_loss_huber(p, p, 0), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_loss_huber(p, p, NAN), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_loss_huber(p, p, INFINITY), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_loss_softmax_cross_entropy(NULL, p), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_loss_softmax_cross_entropy(p, elsewhere), DVT_ERR_CONTEXT);
    CHECK_ERROR(dvt_loss_softmax_cross_entropy(p, dvt_ones(DVT_SHAPE(3), DVT_I32, dvt_cpu())),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_loss_softmax_cross_entropy(p, dvt_ones(DVT_SHAPE(2, 2), DVT_I32, dvt_cpu())),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_loss_softmax_cross_entropy(dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_cpu()), scalar),
                DVT_ERR_SHAPE);
    CHECK_ERROR(
        dvt_loss_softmax_cross_entropy(p, DVT_ARRAY(int32_t, DVT_SHAPE(2), dvt_cpu(), 0, 3)),
        DVT_ERR_RANGE);
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* Checks that the loss itself refused the labels of the latest call, before any operation. */
static void refused_labels(int which) {
    dvt_test_check(dvt_error_code() == DVT_ERR_SHAPE &&
                       strstr(dvt_error(), ": prediction is ") != NULL,
                   __FILE__, __LINE__, "shape %d: %s", which, dvt_error());
    dvt_clear_error();
}

/* Class numbers have the prediction's shape without its last axis, or with extent 1 there. */
DVT_TEST(cross_entropy_shapes_of_labels) {
    dvt_array *p = dvt_zeros(DVT_SHAPE(2, 3, 4), DVT_F32, dvt_cpu());
    const dvt_shape good[] = {DVT_SHAPE(2, 3), DVT_SHAPE(2, 3, 1)};
    const dvt_shape wrong[] = {DVT_SHAPE(2, 2),    DVT_SHAPE(3, 3),    DVT_SHAPE(3, 2),
                               DVT_SHAPE(2),       DVT_SHAPE(6),       DVT_SHAPE(2, 3, 2),
                               DVT_SHAPE(3, 2, 1), DVT_SHAPE(2, 2, 1), DVT_SHAPE(1, 3, 1),
                               DVT_SHAPE(2, 1),    DVT_SHAPE(2, 4),    DVT_SHAPE(1, 2, 3),
                               DVT_SHAPE(2, 3, 5), DVT_SCALAR,         DVT_SHAPE(2, 3, 4, 1)};
    size_t i;
    for (i = 0; i < sizeof good / sizeof good[0]; i++)
        CHECK_VALUES(dvt_loss_softmax_cross_entropy(p, dvt_zeros(good[i], DVT_I32, dvt_cpu())),
                     1e-6, log(4), log(4));
    for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK(dvt_loss_softmax_cross_entropy(p, dvt_zeros(wrong[i], DVT_I32, dvt_cpu())) == NULL);
        refused_labels((int)i);
    }
}

/* The other losses take as many labels as values, in any shape. */
DVT_TEST(losses_shapes_of_labels) {
    dvt_array *p = dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu());
    const dvt_shape good[] = {DVT_SHAPE(2, 3), DVT_SHAPE(6), DVT_SHAPE(2, 3, 1)};
    const dvt_shape wrong[] = {DVT_SHAPE(2), DVT_SHAPE(3),    DVT_SHAPE(2, 1), DVT_SHAPE(1, 3),
                               DVT_SCALAR,   DVT_SHAPE(2, 4), DVT_SHAPE(2, 0), DVT_SHAPE(7)};
    size_t i;
    int c;
    for (c = 0; c < CASES; c++) {
        for (i = 0; i < sizeof good / sizeof good[0]; i++) {
            dvt_array *loss = cases[c].loss(p, dvt_ones(good[i], DVT_F32, dvt_cpu()));
            CHECK(loss && dvt_shape_equal(dvt_shape_of(loss), DVT_SHAPE(2)));
        }
        for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
            CHECK(cases[c].loss(p, dvt_ones(wrong[i], DVT_F32, dvt_cpu())) == NULL);
            refused_labels((int)i);
        }
    }
}

DVT_TEST(cross_entropy_refuses_class_numbers_out_of_range) {
    dvt_array *p = dvt_zeros(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu());
    CHECK_ERROR(
        dvt_loss_softmax_cross_entropy(p, DVT_ARRAY(int32_t, DVT_SHAPE(2), dvt_cpu(), 0, 3)),
        DVT_ERR_RANGE);
    CHECK_ERROR(
        dvt_loss_softmax_cross_entropy(p, DVT_ARRAY(int32_t, DVT_SHAPE(2), dvt_cpu(), -1, 0)),
        DVT_ERR_RANGE);
    CHECK_ERROR(
        dvt_loss_softmax_cross_entropy(p, DVT_ARRAY(float, DVT_SHAPE(2), dvt_cpu(), NAN, 0)),
        DVT_ERR_RANGE);
    CHECK_VALUES(dvt_loss_softmax_cross_entropy(p, DVT_ARRAY(float, DVT_SHAPE(2), dvt_cpu(), 0, 2)),
                 1e-6, log(3), log(3));
}

#endif
