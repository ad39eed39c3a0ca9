/* Tests of losses of classes with options, of divergences, margins and embeddings: values and
   gradients against PyTorch's or the formula, 16-bit floats, errors. */
#include "golden_layers.h"
#include "gradient_check.h"
#if !defined(DEVTENSOR_NO_NN)

static dvt_array *names_on(dvt_array *x) {
    return DVT_ARRAY(int32_t, DVT_SHAPE(5), dvt_ctx_of(x), 0, 3, 1, 1, 2);
}

static dvt_array *like(dvt_array *numbers, dvt_array *x) {
    return dvt_as_in_dtype(numbers, dvt_dtype_of(x));
}

static dvt_array *weight_on(dvt_array *x) {
    return like(DVT_ARRAY(double, DVT_SHAPE(4), dvt_ctx_of(x), 0.5, 2, 1, 0.25), x);
}

static dvt_array *wave_on(dvt_array *x) {
    return golden_wave(DVT_SHAPE(5, 4), 3, dvt_dtype_of(x), dvt_ctx_of(x));
}

static dvt_array *shares_on(dvt_array *x) {
    return dvt_softmax(wave_on(x), -1);
}

static dvt_array *signs_on(dvt_array *x) {
    return DVT_ARRAY(int32_t, DVT_SHAPE(5), dvt_ctx_of(x), 1, -1, 1, -1, 1);
}

static dvt_cross_entropy_options no_options(void) {
    dvt_cross_entropy_options options;
    memset(&options, 0, sizeof options);
    return options;
}

static dvt_array *ce_smooth(dvt_array *const *x, const void *user) {
    dvt_cross_entropy_options o = no_options();
    (void)user;
    o.label_smoothing = 0.125;
    return dvt_loss_softmax_cross_entropy_with(x[0], names_on(x[0]), &o);
}

static dvt_array *ce_weight(dvt_array *const *x, const void *user) {
    dvt_cross_entropy_options o = no_options();
    (void)user;
    o.label_smoothing = 0.125;
    o.class_weight = weight_on(x[0]);
    return dvt_loss_softmax_cross_entropy_with(x[0], dvt_expand_dims(names_on(x[0]), 1), &o);
}

static dvt_array *ce_ignore(dvt_array *const *x, const void *user) {
    dvt_cross_entropy_options o = no_options();
    (void)user;
    o.class_weight = weight_on(x[0]);
    o.ignore = true;
    o.ignore_index = 1;
    return dvt_loss_softmax_cross_entropy_with(x[0], names_on(x[0]), &o);
}

static dvt_array *ce_shares(dvt_array *const *x, const void *user) {
    dvt_cross_entropy_options o = no_options();
    (void)user;
    o.label_smoothing = 0.125;
    o.class_weight = weight_on(x[0]);
    return dvt_loss_softmax_cross_entropy_with(x[0], shares_on(x[0]), &o);
}

static dvt_array *nll(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_loss_nll(dvt_log_softmax(x[0], -1), names_on(x[0]));
}

static dvt_array *kl(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_loss_kl_div(x[0], shares_on(x[0]), true);
}

static dvt_array *bce(dvt_array *const *x, const void *user) {
    dvt_array *label = dvt_mul_scalar(dvt_add_scalar(wave_on(x[0]), 2), 0.25);
    (void)user;
    return dvt_loss_sigmoid_bce_weighted(x[0], label, weight_on(x[0]));
}

static dvt_array *poisson(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_loss_poisson_nll(x[0], dvt_add_scalar(wave_on(x[0]), 2), true);
}

static dvt_array *poisson_rate(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_loss_poisson_nll(dvt_add_scalar(x[0], 3), dvt_add_scalar(wave_on(x[0]), 2), false);
}

static dvt_array *cosine(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_loss_cosine_embedding(x[0], x[1], signs_on(x[0]), 0.25);
}

static dvt_array *triplet(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_loss_triplet(x[0], x[1], x[2], 3);
}

static dvt_array *hinge(dvt_array *const *x, const void *user) {
    dvt_array *signs = dvt_broadcast_to(dvt_expand_dims(signs_on(x[0]), 1), DVT_SHAPE(5, 4));
    (void)user;
    return dvt_loss_hinge(x[0], signs, 1);
}

static dvt_array *squared_hinge(dvt_array *const *x, const void *user) {
    dvt_array *signs = dvt_broadcast_to(dvt_expand_dims(signs_on(x[0]), 1), DVT_SHAPE(5, 4));
    (void)user;
    return dvt_loss_squared_hinge(x[0], signs, 1);
}

static dvt_array *kl_logits(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_loss_kl_div(x[0], shares_on(x[0]), false);
}

DVT_TEST(losses_more_as_pytorch) {
    const dvt_shape p = DVT_SHAPE(5, 4);
    GOLDEN("ce_smooth", ce_smooth, p);
    GOLDEN("ce_weight", ce_weight, p);
    GOLDEN("ce_ignore", ce_ignore, p);
    GOLDEN("ce_shares", ce_shares, p);
    GOLDEN("nll", nll, p);
    GOLDEN("kl", kl, p);
    GOLDEN("bce", bce, p);
    GOLDEN("poisson", poisson, p);
    GOLDEN("poisson_rate", poisson_rate, p);
    GOLDEN("cosine", cosine, p, p);
    GOLDEN("triplet", triplet, p, p, p);
    GOLDEN("hinge", hinge, p);
}

DVT_TEST(losses_more_gradients) {
    static const struct {
        const char *name;
        compute_fn compute;
    } each[] = {{"ce_weight", ce_weight},
                {"ce_ignore", ce_ignore},
                {"ce_shares", ce_shares},
                {"kl_logits", kl_logits},
                {"bce", bce},
                {"squared_hinge", squared_hinge}};

    int i;
    for (i = 0; i < COUNT(each); i++)
        check_one(each[i].name, each[i].compute, NULL, DVT_SHAPE(5, 4), -2, 2);
    check_two("cosine", cosine, NULL, DVT_SHAPE(5, 2), DVT_SHAPE(5, 2));
}

/* ---- reductions of cross-entropy ---- */
/* Two sequences of three positions. The divisor is the number of positions that count. */
DVT_TEST(losses_more_ignore_counts_positions) {
    dvt_ctx ctx = dvt_test_ctx();
    dvt_array *p = golden_wave(DVT_SHAPE(2, 3, 4), 1, DVT_F32, ctx), *y = NULL;
    dvt_array *label = DVT_ARRAY(int32_t, DVT_SHAPE(2, 3), ctx, 0, -1, 2, -1, -1, -1);
    dvt_array *rows = dvt_neg(dvt_log_softmax(dvt_slice(p, 0, 0, 1, 1), -1));
    double *value = dvt_test_values(rows);
    dvt_cross_entropy_options o = no_options();
    o.ignore = true;
    o.ignore_index = -1;
    dvt_attach_grad(p, DVT_GRAD_WRITE);
    DVT_RECORD {
        y = dvt_loss_softmax_cross_entropy_with(p, label, &o);
    }
    CHECK_VALUES(y, 1e-6, (value[0] + value[10]) / 2, 0);
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_VALUES(dvt_slice(dvt_grad(p), 0, 1, 2, 1), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    /* as uint8, -1 is 255, which is not ignored */
    CHECK_ERROR(
        dvt_loss_softmax_cross_entropy_with(dvt_as_in_ctx(p, dvt_cpu()),
                                            dvt_full(DVT_SHAPE(2, 3), 255, DVT_U8, dvt_cpu()), &o),
        DVT_ERR_RANGE);
    free(value);
}

DVT_TEST(losses_more_no_options) {
    dvt_array *p = golden_wave(DVT_SHAPE(5, 4), 1, DVT_F32, dvt_test_ctx()), *l = names_on(p);
    dvt_cross_entropy_options o = no_options();
    dvt_array *plain = dvt_loss_softmax_cross_entropy(p, l);
    CHECK(dvt_array_equal(dvt_loss_softmax_cross_entropy_with(p, l, NULL), plain, DVT_NAN_DIFFERS));
    CHECK(dvt_array_equal(dvt_loss_softmax_cross_entropy_with(p, l, &o), plain, DVT_NAN_DIFFERS));
    o.from_logits = true;
    CHECK(dvt_array_equal(dvt_loss_softmax_cross_entropy_with(dvt_log_softmax(p, -1), l, &o), plain,
                          DVT_NAN_DIFFERS));
}

/* ---- corners ---- */
DVT_TEST(losses_more_kl_of_zero_shares) {
    dvt_ctx ctx = dvt_test_ctx();
    dvt_array *p = DVT_ARRAY(float, DVT_SHAPE(1, 2), ctx, 0, -INFINITY), *y = NULL;
    dvt_attach_grad(p, DVT_GRAD_WRITE);
    DVT_RECORD {
        y = dvt_loss_kl_div(p, DVT_ARRAY(float, DVT_SHAPE(1, 2), ctx, 1, 0), true);
    }
    CHECK_VALUES(y, 0, 0);
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_VALUES(dvt_grad(p), 0, -0.5, 0);
}

DVT_TEST(losses_more_cosine_of_zeros) {
    dvt_ctx ctx = dvt_test_ctx();
    dvt_array *a = dvt_zeros(DVT_SHAPE(1, 3), DVT_F32, ctx), *y = NULL;
    dvt_array *b = dvt_ones(DVT_SHAPE(1, 3), DVT_F32, ctx);
    double *g;
    dvt_attach_grad(a, DVT_GRAD_WRITE);
    DVT_RECORD {
        y = dvt_loss_cosine_embedding(a, b, dvt_ones(DVT_SHAPE(1), DVT_I32, ctx), 0);
    }
    CHECK_VALUES(y, 0, 1);
    CHECK_INT(dvt_backward(y), DVT_OK);
    g = dvt_test_values(dvt_grad(a));
    CHECK(g && isfinite(g[0]));
    free(g);
    y = dvt_loss_cosine_embedding(dvt_mul_scalar(b, 1e10), dvt_mul_scalar(b, 1e-10),
                                  dvt_ones(DVT_SHAPE(1), DVT_I32, ctx), 0);
    CHECK_VALUES(y, 1e-6, 0);
}

/* Labels of integers and bool; large logits of a weighted loss do not overflow. */
DVT_TEST(losses_more_labels) {
    dvt_ctx ctx = dvt_test_ctx();
    dvt_array *p = DVT_ARRAY(float, DVT_SHAPE(4), ctx, 800, -800, 800, -800);
    dvt_array *l = DVT_ARRAY(uint8_t, DVT_SHAPE(4), ctx, 1, 1, 0, 0), *w;
    w = DVT_ARRAY(float, DVT_SHAPE(1), ctx, 3);
    CHECK_VALUES(dvt_loss_sigmoid_bce_weighted(p, l, w), 1e-6, 0, 2400, 800, 0);
    CHECK_VALUES(dvt_loss_sigmoid_bce_weighted(p, dvt_astype(l, DVT_BOOL), w), 1e-6, 0, 2400, 800,
                 0);
    CHECK_VALUES(dvt_loss_hinge(DVT_ARRAY(int8_t, DVT_SHAPE(2), ctx, 3, -2),
                                DVT_ARRAY(int8_t, DVT_SHAPE(2), ctx, 1, 1), 1),
                 0, 0, 3);
    CHECK_VALUES(dvt_loss_triplet(DVT_ARRAY(uint8_t, DVT_SHAPE(1, 2), ctx, 1, 1),
                                  DVT_ARRAY(uint8_t, DVT_SHAPE(1, 2), ctx, 3, 1),
                                  DVT_ARRAY(uint8_t, DVT_SHAPE(1, 2), ctx, 1, 2), 1),
                 0, 4);
}

DVT_TEST(losses_more_round_16_bits_once) {
    static const compute_fn each[] = {ce_weight, ce_ignore, nll, bce, poisson, hinge};
    dvt_array *x = golden_wave(DVT_SHAPE(5, 4), 1, DVT_F16, dvt_test_ctx());
    dvt_array *wide = dvt_astype(x, DVT_F32), *y, *other, *in[3];
    int i;
    for (i = 0; i < COUNT(each); i++) {
        y = each[i](&x, NULL);
        CHECK_INT(dvt_dtype_of(y), DVT_F16);
        CHECK(dvt_allclose(y, dvt_astype(each[i](&wide, NULL), DVT_F16), 2e-3, 1e-3,
                           DVT_NAN_DIFFERS));
    }
    in[0] = dvt_mul_scalar(x, 500); /* squares overflow float16 */
    in[1] = in[2] = other = dvt_slice(in[0], 0, -1, DVT_END, -1);
    y = dvt_loss_triplet(in[0], in[1], in[2], 2);
    CHECK_INT(dvt_dtype_of(y), DVT_F16);
    CHECK_VALUES(y, 0, 2, 2, 2, 2, 2);
    y = dvt_loss_cosine_embedding(in[0], in[0], dvt_ones(DVT_SHAPE(5), DVT_I32, dvt_test_ctx()), 0);
    CHECK_INT(dvt_dtype_of(y), DVT_F16);
    CHECK_VALUES(y, 1e-6, 0, 0, 0, 0, 0);
    CHECK(other != NULL);
}

/* ---- errors ---- */
DVT_TEST(losses_more_errors) {
    dvt_array *p = dvt_ones(DVT_SHAPE(5, 4), DVT_F32, dvt_test_ctx()), *l = names_on(p);
    dvt_array *row = dvt_ones(DVT_SHAPE(5), DVT_F32, dvt_test_ctx());
    dvt_cross_entropy_options o = no_options();
    o.label_smoothing = 1.5;
    CHECK_SAYS(dvt_loss_softmax_cross_entropy_with(p, l, &o), DVT_ERR_RANGE,
               "dvt_loss_softmax_cross_entropy_with: label_smoothing is 1.5; expected 0 to 1");
    o.label_smoothing = NAN;
    CHECK_SAYS(dvt_loss_softmax_cross_entropy_with(p, l, &o), DVT_ERR_RANGE, "label_smoothing is");
    o = no_options();
    o.class_weight = row;
    CHECK_SAYS(dvt_loss_softmax_cross_entropy_with(p, l, &o), DVT_ERR_SHAPE,
               "class_weight is float32 (5,)");
    o = no_options();
    o.ignore = true;
    CHECK_SAYS(dvt_loss_softmax_cross_entropy_with(p, p, &o), DVT_ERR_VALUE, "ignore is set");
    CHECK_SAYS(dvt_loss_nll(p, dvt_ones(DVT_SHAPE(4), DVT_I32, dvt_test_ctx())), DVT_ERR_SHAPE,
               "dvt_loss_nll: prediction is");
    CHECK_SAYS(dvt_loss_kl_div(p, NULL, true), DVT_ERR_NULL_ARGUMENT, "dvt_loss_kl_div: label");
    CHECK_SAYS(dvt_loss_kl_div(p, row, true), DVT_ERR_SHAPE, "dvt_loss_kl_div: prediction is");
    CHECK_SAYS(dvt_loss_hinge(p, p, NAN), DVT_ERR_RANGE, "dvt_loss_hinge: margin is nan");
    CHECK_SAYS(dvt_loss_squared_hinge(p, p, INFINITY), DVT_ERR_RANGE,
               "dvt_loss_squared_hinge: margin is inf");
    CHECK_SAYS(dvt_loss_poisson_nll(NULL, p, true), DVT_ERR_NULL_ARGUMENT, "dvt_loss_poisson_nll");
    CHECK_SAYS(dvt_loss_sigmoid_bce_weighted(p, p, row), DVT_ERR_SHAPE,
               "dvt_loss_sigmoid_bce_weighted: pos_weight is float32 (5,)");
    CHECK_SAYS(dvt_loss_sigmoid_bce_weighted(p, p, NULL), DVT_ERR_NULL_ARGUMENT,
               "pos_weight is NULL");
    CHECK_SAYS(dvt_loss_triplet(p, p, row, 1), DVT_ERR_SHAPE, "dvt_loss_triplet: prediction is");
    CHECK_SAYS(dvt_loss_triplet(p, p, p, NAN), DVT_ERR_RANGE, "dvt_loss_triplet: margin");
    CHECK_SAYS(dvt_loss_cosine_embedding(p, row, l, 0), DVT_ERR_SHAPE, "expected the same shape");
    CHECK_SAYS(dvt_loss_cosine_embedding(p, p, p, 0), DVT_ERR_SHAPE, "one label for each row");
    CHECK_SAYS(dvt_loss_cosine_embedding(row, row, l, 0), DVT_ERR_SHAPE, "(N, ..., features)");
}

/* ---- cross-entropy in one launch ---- */
/* Compares values, the signs of zeros, and NaN with NaN. */
static bool same_bits(dvt_array *a, dvt_array *b) {
    double *x = dvt_test_values(a), *y = dvt_test_values(b);
    bool same = x && y && dvt_size(a) == dvt_size(b);
    int64_t i;
    for (i = 0; same && i < dvt_size(a); i++)
        same = x[i] != x[i] ? y[i] != y[i] : x[i] == y[i] && !signbit(x[i]) == !signbit(y[i]);
    free(x);
    free(y);
    return same;
}

/* Returns the gradient of the loss, from `weight` or from ones, computed by one operation or by its
   parts. */
static dvt_array *entropy_gradient(dvt_array *values, dvt_array *label, dvt_array *weight,
                                   bool fused, dvt_array **loss) {
    dvt_array *x = dvt_copy(values);
    CHECK_INT(dvt_attach_grad(x, DVT_GRAD_WRITE), DVT_OK);
    DVT_RECORD {
        *loss = fused ? dvt_loss_softmax_cross_entropy(x, label)
                      : dvt_neg(dvt_pick(dvt_log_softmax(x, -1), label, DVT_AXES(-1)));
    }
    CHECK_INT(dvt_backward_from(loss, weight ? &weight : NULL, 1, DVT_FREE_GRAPH), DVT_OK);
    return dvt_grad(x);
}

static void check_entropy(int64_t rows, int64_t n, dvt_dtype dtype, dvt_dtype labels) {
    dvt_ctx ctx = dvt_test_ctx();
    dvt_array *x = dvt_uniform(-4, 4, DVT_SHAPE(rows, n), dtype, ctx), *loss[2], *g[2];
    dvt_array *label = dvt_astype(dvt_randint(0, n, DVT_SHAPE(rows), DVT_I64, ctx), labels);
    dvt_array *weight = dvt_uniform(-1, 1, DVT_SHAPE(rows), dtype, ctx);
    int with, k;
    CHECK(dvt_fill(dvt_index(x, 0), -(double)INFINITY) != NULL);
    CHECK(dvt_fill(dvt_index(weight, 1), 0) != NULL);
    for (with = 0; with < 2; with++) {
        for (k = 0; k < 2; k++)
            g[k] = entropy_gradient(x, label, with ? weight : NULL, k == 0, &loss[k]);
        CHECK(same_bits(loss[0], loss[1]));
        CHECK(same_bits(g[0], g[1]));
    }
}

DVT_TEST(cross_entropy_has_the_bits_of_its_parts) {
    check_entropy(5, 10, DVT_F32, DVT_I32);
    check_entropy(3, 1000, DVT_F32, DVT_I64);
    check_entropy(300, 7, DVT_F32, DVT_U8);
    check_entropy(4, 33, DVT_F64, DVT_I8);
    check_entropy(2, 1, DVT_F32, DVT_I32);
}

/* The gradient of the gradient, which is recorded as operations of their own. */
DVT_TEST(cross_entropy_has_second_gradients) {
    dvt_ctx ctx = dvt_test_ctx();
    dvt_array *values = DVT_ARRAY(double, DVT_SHAPE(2, 3), ctx, 0.5, -1, 2, 1, 0.25, -0.75);
    dvt_array *label = DVT_ARRAY(int32_t, DVT_SHAPE(2), ctx, 2, 0), *second[2];
    int k;
    for (k = 0; k < 2; k++) {
        dvt_array *x = dvt_copy(values), *loss = NULL, *first = NULL;
        CHECK_INT(dvt_attach_grad(x, DVT_GRAD_WRITE), DVT_OK);
        DVT_RECORD {
            loss = k ? dvt_neg(dvt_pick(dvt_log_softmax(x, -1), label, DVT_AXES(-1)))
                     : dvt_loss_softmax_cross_entropy(x, label);
            CHECK_INT(dvt_gradients(&loss, NULL, 1, &x, 1, DVT_CREATE_GRAPH, &first), DVT_OK);
            first = dvt_sum(dvt_square(first), DVT_ALL);
        }
        CHECK_INT(dvt_backward(first), DVT_OK);
        second[k] = dvt_grad(x);
    }
    CHECK(dvt_allclose(second[0], second[1], 1e-12, 1e-12, DVT_NAN_EQUALS));
}
#endif
