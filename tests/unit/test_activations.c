/* Tests of composed activations: values and gradients against PyTorch's, differences of first and
   second order, the tails against float64, corners, 16-bit floats, errors, blocks. */
#include "golden_layers.h"
#include "gradient_check.h"

static dvt_array *times(dvt_array *x, double factor) {
    return dvt_mul_scalar(x, factor);
}

static dvt_array *leaky_relu(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_leaky_relu(times(x[0], 3), 0.125);
}

static dvt_array *elu(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_elu(times(x[0], 3), 0.75);
}

static dvt_array *selu(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_selu(times(x[0], 3));
}

static dvt_array *silu(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_silu(times(x[0], 3));
}

static dvt_array *mish(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_mish(times(x[0], 3));
}

static dvt_array *hard_sigmoid(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_hard_sigmoid(times(x[0], 1.9));
}

static dvt_array *hard_swish(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_hard_swish(times(x[0], 1.9));
}

static dvt_array *prelu(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_prelu(x[0], x[1]);
}

static dvt_array *glu(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_glu(x[0], 1);
}

static dvt_array *swiglu(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_swiglu(x[0], -2);
}

static const struct {
    const char *name;
    compute_fn compute;
} each[] = {{"leaky_relu", leaky_relu},
            {"elu", elu},
            {"selu", selu},
            {"silu", silu},
            {"mish", mish},
            {"hard_sigmoid", hard_sigmoid},
            {"hard_swish", hard_swish}};

DVT_TEST(activations_as_pytorch) {
    int i;
    for (i = 0; i < COUNT(each); i++)
        GOLDEN(each[i].name, each[i].compute, DVT_SHAPE(4, 17));
    GOLDEN("prelu1", prelu, DVT_SHAPE(3, 4, 5), DVT_SHAPE(1));
    GOLDEN("prelu4", prelu, DVT_SHAPE(3, 4, 5), DVT_SHAPE(4));
    GOLDEN("glu", glu, DVT_SHAPE(3, 4, 5));
    GOLDEN("swiglu", swiglu, DVT_SHAPE(3, 4, 5));
}

DVT_TEST(activations_gradients) {
    int i;
    for (i = 0; i < COUNT(each); i++)
        check_one(each[i].name, each[i].compute, NULL, DVT_SHAPE(7), -1.5, 1.5);
    check_two("prelu", prelu, NULL, DVT_SHAPE(2, 3), DVT_SHAPE(3));
    check_one("glu", glu, NULL, DVT_SHAPE(2, 4), -2, 2);
    check_one("swiglu", swiglu, NULL, DVT_SHAPE(2, 3), -2, 2);
}

/* ---- tails ---- */
static double elu_of(double x) {
    return x > 0 ? x : 0.75 * expm1(x);
}

static double selu_of(double x) {
    return 1.0507009873554804934 * (x > 0 ? x : 1.6732632423543772848 * expm1(x));
}

static double silu_of(double x) {
    return x / (1 + exp(-x));
}

static double mish_of(double x) {
    return x * tanh(x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)));
}

static dvt_array *elu_plain(dvt_array *x) {
    return dvt_elu(x, 0.75);
}

static dvt_array *leaky_plain(dvt_array *x) {
    return dvt_leaky_relu(x, 0.125);
}

static const struct {
    dvt_array *(*compute)(dvt_array *x);
    double (*of)(double x);
    double at_zero; /* gradient */
} tails[] = {
    {elu_plain, elu_of, 0.75},  {dvt_selu, selu_of, 1.0507009873554804934 * 1.6732632423543772848},
    {dvt_silu, silu_of, 0.5},   {dvt_mish, mish_of, 0.6},
    {leaky_plain, NULL, 0.125}, {dvt_hard_sigmoid, NULL, 1.0 / 6},
    {dvt_hard_swish, NULL, 0.5}};

static dvt_array *gradient_of(dvt_array *(*compute)(dvt_array *x), dvt_array *x) {
    dvt_array *y = NULL;
    dvt_attach_grad(x, DVT_GRAD_WRITE);
    DVT_RECORD {
        y = compute(x);
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
    return dvt_grad(x);
}

/* Relative errors of float32, also where results are tiny. */
DVT_TEST(activations_keep_digits_in_the_tails) {
    static const float at[] = {-80,    -40,   -17,   -5, -1e-3f, -1e-8f, -1e-20f,
                               1e-20f, 1e-8f, 1e-3f, 5,  17,     90,     1e30f};
    int i, k;
    for (i = 0; i < 4; i++) {
        dvt_array *x = dvt_from_host(at, DVT_SHAPE(COUNT(at)), DVT_F32, dvt_test_ctx());
        double *y = dvt_test_values(tails[i].compute(x));
        for (k = 0; y && k < COUNT(at); k++)
            CHECK_CLOSE(y[k] / tails[i].of(at[k]), 1, 8e-7);
        free(y);
    }
}

DVT_TEST(activations_gradients_are_finite) {
    static const float at[] = {-1e30f, -200, -90, 0, 90, 200, 1e30f};
    int i, k;
    for (i = 0; i < COUNT(tails); i++) {
        dvt_array *x = dvt_from_host(at, DVT_SHAPE(COUNT(at)), DVT_F32, dvt_test_ctx());
        double *g = dvt_test_values(gradient_of(tails[i].compute, x));
        for (k = 0; g && k < COUNT(at); k++)
            dvt_test_check(isfinite(g[k]), __FILE__, __LINE__, "activation %d at %g: %g", i, at[k],
                           g[k]);
        if (g)
            CHECK_CLOSE(g[3], tails[i].at_zero, 1e-6);
        free(g);
    }
}

DVT_TEST(activations_special_values) {
    static const float at[] = {-INFINITY, INFINITY, NAN};
    dvt_array *x = dvt_from_host(at, DVT_SHAPE(3), DVT_F32, dvt_test_ctx());
    CHECK_VALUES(dvt_leaky_relu(x, 0.5), 0, -INFINITY, INFINITY, NAN);
    CHECK_VALUES(dvt_elu(x, 2), 0, -2, INFINITY, NAN);
    CHECK_VALUES(dvt_hard_sigmoid(x), 0, 0, 1, NAN);
    CHECK_VALUES(dvt_silu(x), 0, NAN, INFINITY, NAN);
    CHECK_VALUES(dvt_mish(x), 0, NAN, INFINITY, NAN);
    CHECK_VALUES(dvt_hard_swish(x), 0, NAN, INFINITY, NAN);
    CHECK_VALUES(dvt_prelu(x, dvt_full(DVT_SHAPE(1), 0.5, DVT_F32, dvt_test_ctx())), 0, -INFINITY,
                 INFINITY, NAN);
    CHECK_INT(dvt_size(dvt_selu(dvt_zeros(DVT_SHAPE(0, 2), DVT_F32, dvt_test_ctx()))), 0);
}

/* ---- dtypes ---- */
DVT_TEST(activations_round_16_bits_once) {
    static const dvt_dtype half[] = {DVT_F16, DVT_BF16};
    int i, d;
    for (d = 0; d < 2; d++)
        for (i = 0; i < COUNT(tails); i++) {
            dvt_array *x = golden_wave(DVT_SHAPE(64), 1, half[d], dvt_test_ctx());
            dvt_array *wide = tails[i].compute(dvt_astype(x, DVT_F32)), *y = tails[i].compute(x);
            CHECK_INT(dvt_dtype_of(y), half[d]);
            CHECK(dvt_array_equal(y, dvt_astype(wide, half[d]), DVT_NAN_DIFFERS));
        }
}

DVT_TEST(activations_of_integers_are_float) {
    dvt_array *x = DVT_ARRAY(int32_t, DVT_SHAPE(2, 2), dvt_test_ctx(), -2, 0, 1, 3);
    dvt_array *y = dvt_leaky_relu(x, 0.25);
    CHECK_INT(dvt_dtype_of(y), DVT_F32);
    CHECK_VALUES(y, 0, -0.5, 0, 1, 3);
    CHECK_VALUES(dvt_prelu(x, DVT_ARRAY(float, DVT_SHAPE(2), dvt_test_ctx(), 0.5, 9)), 0, -1, 0, 1,
                 3);
    CHECK_VALUES(dvt_prelu(dvt_scalar(-2, DVT_F32, dvt_test_ctx()),
                           dvt_full(DVT_SHAPE(1), 0.5, DVT_F32, dvt_test_ctx())),
                 0, -1);
}

/* ---- errors ---- */
DVT_TEST(activations_errors) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_test_ctx());
    CHECK_SAYS(dvt_leaky_relu(x, NAN), DVT_ERR_RANGE, "dvt_leaky_relu: slope is nan; expected");
    CHECK_SAYS(dvt_elu(x, INFINITY), DVT_ERR_RANGE, "dvt_elu: alpha is inf; expected");
    CHECK_SAYS(dvt_selu(NULL), DVT_ERR_NULL_ARGUMENT, "dvt_selu: x is NULL");
    CHECK_SAYS(dvt_silu(NULL), DVT_ERR_NULL_ARGUMENT, "dvt_silu: x is NULL");
    CHECK_SAYS(dvt_mish(NULL), DVT_ERR_NULL_ARGUMENT, "dvt_mish: x is NULL");
    CHECK_SAYS(dvt_hard_sigmoid(NULL), DVT_ERR_NULL_ARGUMENT, "dvt_hard_sigmoid: x is NULL");
    CHECK_SAYS(dvt_hard_swish(NULL), DVT_ERR_NULL_ARGUMENT, "dvt_hard_swish: x is NULL");
    CHECK_SAYS(dvt_prelu(x, NULL), DVT_ERR_NULL_ARGUMENT, "dvt_prelu: slope is NULL");
    CHECK_SAYS(dvt_prelu(x, x), DVT_ERR_SHAPE, "one slope for each channel on axis 1");
    CHECK_SAYS(dvt_prelu(x, dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_test_ctx())), DVT_ERR_SHAPE,
               "dvt_prelu: slope is");
    CHECK_SAYS(dvt_glu(x, 1), DVT_ERR_SHAPE, "dvt_glu: x is");
    CHECK_SAYS(dvt_swiglu(x, 2), DVT_ERR_AXIS, "dvt_swiglu");
}

/* ---- blocks ---- */
#if !defined(DEVTENSOR_NO_NN)
static void check_text(dvt_block *block, const char *expected) {
    char text[200];
    dvt_block_format(block, text, sizeof text);
    CHECK_STR(text, expected);
}

DVT_TEST(activations_blocks) {
    dvt_block *net = dvt_nn_sequential(), *prelu3 = dvt_nn_prelu(3);
    dvt_array *x = DVT_ARRAY(float, DVT_SHAPE(2, 3), dvt_test_ctx(), -4, 0, 4, 8, -8, -1),
              *y = NULL;
    dvt_param *alpha;
    check_text(dvt_nn_activation(DVT_SELU), "Activation(selu)");
    check_text(dvt_nn_activation(DVT_SILU), "Activation(silu)");
    check_text(dvt_nn_activation(DVT_MISH), "Activation(mish)");
    check_text(dvt_nn_activation(DVT_HARD_SIGMOID), "Activation(hard_sigmoid)");
    check_text(dvt_nn_activation(DVT_HARD_SWISH), "Activation(hard_swish)");
    check_text(dvt_nn_leaky_relu(0.01), "LeakyReLU(0.01)");
    check_text(dvt_nn_elu(1), "ELU(1.0)");
    check_text(prelu3, "PReLU(in_channels=3)");
    DVT_NN_ADD(net, dvt_nn_leaky_relu(0.25), prelu3, dvt_nn_activation(DVT_IDENTITY),
               dvt_nn_dense(1, DVT_SILU));
    CHECK_INT(dvt_block_initialize(net, dvt_init_one(), DVT_CONTEXTS(dvt_test_ctx())), DVT_OK);
    DVT_RECORD {
        y = dvt_block_forward(net, x);
    }
    /* The initial slopes are 0.25, whatever the net's initializer is. */
    CHECK_VALUES(y, 1e-6, silu_of(-0.25 + 4), silu_of(8 - 0.5 - 0.0625));
    CHECK_INT(dvt_backward(y), DVT_OK);
    alpha = dvt_block_param(dvt_block_at(net, 1), "alpha");
    CHECK(strncmp(dvt_param_name(alpha), "prelu", 5) == 0 &&
          strstr(dvt_param_name(alpha), "_alpha") != NULL);
    CHECK_INT(dvt_size(dvt_param_grad(alpha, dvt_test_ctx())), 3);
    CHECK_VALUES(
        dvt_block_forward(dvt_nn_elu(0.5), DVT_ARRAY(float, DVT_SHAPE(2), dvt_test_ctx(), -1, 2)),
        1e-6, 0.5 * expm1(-1), 2);
    CHECK_VALUES(dvt_block_forward(dvt_nn_activation(DVT_HARD_SIGMOID), x), 1e-6, 0, 0.5, 1, 1, 0,
                 1 / 3.0);
}

DVT_TEST(activations_blocks_errors) {
    CHECK_SAYS(dvt_nn_activation((dvt_activation)(DVT_HARD_SWISH + 1)), DVT_ERR_RANGE,
               "dvt_nn_activation: activation number");
    CHECK_SAYS(dvt_nn_activation((dvt_activation)-1), DVT_ERR_RANGE, "expected one of");
    CHECK_SAYS(dvt_nn_leaky_relu(NAN), DVT_ERR_RANGE, "dvt_nn_leaky_relu: slope is nan");
    CHECK_SAYS(dvt_nn_elu(NAN), DVT_ERR_RANGE, "dvt_nn_elu: alpha is nan");
    CHECK_SAYS(dvt_nn_prelu(0), DVT_ERR_RANGE, "dvt_nn_prelu: channels is 0; expected 1");
}
#endif
