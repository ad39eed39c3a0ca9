/* Tests of RMSNorm, GroupNorm and InstanceNorm: values and gradients against PyTorch's, differences
   of first and second order, 16-bit floats, errors, blocks. */
#include "golden_layers.h"
#include "gradient_check.h"

static dvt_array *rms(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_rms_norm(x[0], x[1], 1e-5);
}

static dvt_array *rms_alone(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_rms_norm(x[0], NULL, 1e-5);
}

static dvt_array *group(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_group_norm(x[0], 2, x[1], x[2], 1e-5);
}

static dvt_array *group_alone(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_group_norm(x[0], 3, NULL, NULL, 1e-5);
}

static dvt_array *instance(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_instance_norm(x[0], x[1], x[2], 1e-5);
}

DVT_TEST(norms_as_pytorch) {
    GOLDEN("rms_norm", rms, DVT_SHAPE(2, 3, 6), DVT_SHAPE(6));
    GOLDEN("rms_norm_alone", rms_alone, DVT_SHAPE(2, 3, 6));
    GOLDEN("group_norm", group, DVT_SHAPE(2, 4, 3, 2), DVT_SHAPE(4), DVT_SHAPE(4));
    GOLDEN("group_norm_alone", group_alone, DVT_SHAPE(4, 6));
    GOLDEN("instance_norm", instance, DVT_SHAPE(2, 3, 5), DVT_SHAPE(3), DVT_SHAPE(3));
}

DVT_TEST(norms_gradients) {
    problem p = problem_begin("group_norm", group, NULL);
    check_two("rms_norm", rms, NULL, DVT_SHAPE(2, 3), DVT_SHAPE(3));
    problem_input(&p, DVT_SHAPE(1, 4, 2), -2, 2);
    problem_input(&p, DVT_SHAPE(4), -2, 2);
    problem_input(&p, DVT_SHAPE(4), -2, 2);
    check_problem(&p);
}

/* Without a tape one launch normalizes; with one, several do. */
DVT_TEST(norms_alike_when_recorded) {
    dvt_array *x = golden_wave(DVT_SHAPE(3, 6, 5), 2, DVT_F32, dvt_test_ctx()), *y = NULL;
    dvt_attach_grad(x, DVT_GRAD_WRITE);
    DVT_RECORD {
        y = dvt_group_norm(x, 3, NULL, NULL, 1e-5);
    }
    CHECK(dvt_allclose(y, dvt_group_norm(x, 3, NULL, NULL, 1e-5), 1e-6, 1e-6, DVT_NAN_DIFFERS));
    CHECK_INT(dvt_size(dvt_group_norm(dvt_zeros(DVT_SHAPE(0, 6, 2), DVT_F32, dvt_test_ctx()), 3,
                                      NULL, NULL, 1e-5)),
              0);
    CHECK_INT(dvt_size(dvt_rms_norm(dvt_zeros(DVT_SHAPE(2, 0), DVT_F32, dvt_test_ctx()), NULL, 0)),
              0);
}

/* Squares of these values overflow float16. */
DVT_TEST(norms_round_16_bits_once) {
    static const dvt_dtype half[] = {DVT_F16, DVT_BF16};
    int d;
    for (d = 0; d < 2; d++) {
        dvt_array *x = golden_wave(DVT_SHAPE(2, 4, 6), 1, half[d], dvt_test_ctx());
        dvt_array *g = golden_wave(DVT_SHAPE(6), 2, half[d], dvt_test_ctx()), *wide, *y;
        x = dvt_mul_scalar(x, 1024);
        wide = dvt_astype(x, DVT_F32);
        y = dvt_rms_norm(x, g, 1e-5);
        CHECK_INT(dvt_dtype_of(y), half[d]);
        CHECK(dvt_array_equal(y,
                              dvt_astype(dvt_rms_norm(wide, dvt_astype(g, DVT_F32), 1e-5), half[d]),
                              DVT_NAN_DIFFERS));
        y = dvt_group_norm(x, 2, NULL, NULL, 1e-5);
        CHECK_INT(dvt_dtype_of(y), half[d]);
        CHECK(dvt_array_equal(y, dvt_astype(dvt_group_norm(wide, 2, NULL, NULL, 1e-5), half[d]),
                              DVT_NAN_DIFFERS));
    }
}

/* ---- errors ---- */
DVT_TEST(norms_errors) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2, 4, 3), DVT_F32, dvt_test_ctx());
    dvt_array *g = dvt_ones(DVT_SHAPE(4), DVT_F32, dvt_test_ctx()), *y;
    CHECK_SAYS(dvt_rms_norm(NULL, g, 1), DVT_ERR_NULL_ARGUMENT, "dvt_rms_norm: x is NULL");
    CHECK_SAYS(dvt_rms_norm(x, g, 1), DVT_ERR_SHAPE, "dvt_rms_norm: gamma is");
    CHECK_SAYS(dvt_rms_norm(x, NULL, NAN), DVT_ERR_RANGE, "epsilon nan; expected");
    CHECK_SAYS(dvt_rms_norm(dvt_scalar(1, DVT_F32, dvt_test_ctx()), NULL, 1), DVT_ERR_SHAPE,
               "at least one axis");
    CHECK_SAYS(dvt_group_norm(x, 3, NULL, NULL, 1), DVT_ERR_SHAPE,
               "dvt_group_norm: 3 groups for x");
    CHECK_SAYS(dvt_group_norm(x, 0, NULL, NULL, 1), DVT_ERR_RANGE, "expected a divisor of its 4");
    CHECK_SAYS(dvt_group_norm(x, 2, g, x, 1), DVT_ERR_SHAPE, "dvt_group_norm: beta is");
    CHECK_SAYS(dvt_group_norm(g, 2, NULL, NULL, 1), DVT_ERR_SHAPE, "(batch, channels, ...)");
    CHECK_SAYS(dvt_instance_norm(x, x, NULL, 1), DVT_ERR_SHAPE,
               "dvt_instance_norm: gamma is float32 (2, 4, 3)");
    CHECK_SAYS(dvt_instance_norm(x, NULL, NULL, -1), DVT_ERR_RANGE, "dvt_instance_norm: x is");
    /* A NULL that a failed call returned does not count as "none". */
    dvt_add(x, g);
    y = dvt_rms_norm(x, NULL, 1);
    CHECK(y == NULL);
    dvt_clear_error();
}

/* ---- blocks ---- */
#if !defined(DEVTENSOR_NO_NN)
static void check_text(dvt_block *block, const char *expected) {
    char text[300];
    dvt_block_format(block, text, sizeof text);
    CHECK_STR(text, expected);
}

static dvt_array *forward(dvt_block *block, dvt_array *x) {
    dvt_init init;
    memset(&init, 0, sizeof init);
    CHECK_INT(dvt_block_initialize(block, init, DVT_CONTEXTS(dvt_ctx_of(x))), DVT_OK);
    return dvt_block_forward(block, x);
}

DVT_TEST(norms_blocks) {
    dvt_array *x = golden_wave(DVT_SHAPE(2, 4, 3), 3, DVT_F32, dvt_test_ctx());
    dvt_block *rms_block = dvt_nn_rms_norm(0), *group_block = dvt_nn_group_norm(2);
    dvt_block *plain = dvt_nn_instance_norm(false), *scaled = dvt_nn_instance_norm(true);
    check_text(rms_block, "RMSNorm(eps=1e-06, in_channels=0)");
    CHECK(dvt_allclose(forward(rms_block, x), dvt_rms_norm(x, NULL, 1e-6), 1e-6, 1e-6,
                       DVT_NAN_DIFFERS));
    CHECK(dvt_allclose(forward(group_block, x), dvt_group_norm(x, 2, NULL, NULL, 1e-5), 1e-6, 1e-6,
                       DVT_NAN_DIFFERS));
    CHECK(dvt_allclose(forward(plain, x), dvt_instance_norm(x, NULL, NULL, 1e-5), 1e-6, 1e-6,
                       DVT_NAN_DIFFERS));
    CHECK(dvt_allclose(forward(scaled, x), dvt_instance_norm(x, NULL, NULL, 1e-5), 1e-6, 1e-6,
                       DVT_NAN_DIFFERS));
    check_text(rms_block, "RMSNorm(eps=1e-06, in_channels=3)");
    check_text(group_block,
               "GroupNorm(eps=1e-05, num_groups=2, center=True, scale=True, in_channels=4)");
    check_text(plain, "InstanceNorm(eps=1e-05, axis=1, center=True, scale=False, in_channels=4)");
    check_text(scaled, "InstanceNorm(eps=1e-05, axis=1, center=True, scale=True, in_channels=4)");
    check_text(dvt_nn_rms_norm(0.5), "RMSNorm(eps=0.5, in_channels=0)");
}

/* gamma is 1 without scale, whatever it holds. */
DVT_TEST(norms_blocks_parameters) {
    dvt_array *x = golden_wave(DVT_SHAPE(2, 4, 3), 3, DVT_F32, dvt_test_ctx()), *y = NULL;
    dvt_array *two = dvt_full(DVT_SHAPE(4), 2, DVT_F32, dvt_test_ctx());
    dvt_block *plain = dvt_nn_instance_norm(false), *group_block = dvt_nn_group_norm(4);
    dvt_array *expected = dvt_instance_norm(x, NULL, two, 1e-5);
    forward(plain, x);
    forward(group_block, x);
    CHECK_INT(dvt_param_set_data(dvt_block_param(plain, "gamma"), two), DVT_OK);
    CHECK_INT(dvt_param_set_data(dvt_block_param(plain, "beta"), two), DVT_OK);
    CHECK_INT(dvt_param_set_data(dvt_block_param(group_block, "gamma"), two), DVT_OK);
    CHECK(dvt_allclose(dvt_block_forward(plain, x), expected, 1e-6, 1e-6, DVT_NAN_DIFFERS));
    DVT_RECORD {
        y = dvt_block_forward(group_block, x);
    }
    CHECK(dvt_allclose(y, dvt_instance_norm(x, two, NULL, 1e-5), 1e-6, 1e-6, DVT_NAN_DIFFERS));
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_VALUES(dvt_param_grad(dvt_block_param(group_block, "beta"), dvt_test_ctx()), 1e-6, 6, 6,
                 6, 6);
    CHECK(strstr(dvt_param_name(dvt_block_param(group_block, "gamma")), "groupnorm") != NULL);
}

DVT_TEST(norms_blocks_errors) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2, 4, 3), DVT_F32, dvt_test_ctx());
    dvt_block *group_block = dvt_nn_group_norm(3), *rms_block = dvt_nn_rms_norm(0);
    CHECK_SAYS(dvt_nn_group_norm(0), DVT_ERR_RANGE, "dvt_nn_group_norm: groups is 0");
    CHECK_SAYS(dvt_nn_rms_norm(-1), DVT_ERR_RANGE, "dvt_nn_rms_norm: epsilon is -1");
    CHECK_SAYS(dvt_nn_rms_norm(NAN), DVT_ERR_RANGE, "dvt_nn_rms_norm: epsilon is nan");
    CHECK_SAYS(forward(group_block, x), DVT_ERR_SHAPE, "GroupNorm(eps");
    CHECK_INT(dvt_param_shape(dvt_block_param(group_block, "gamma")).dim[0], 0);
    forward(rms_block, x);
    CHECK_SAYS(dvt_block_forward(rms_block, dvt_ones(DVT_SHAPE(2, 4), DVT_F32, dvt_test_ctx())),
               DVT_ERR_SHAPE, "expected an extent of 3 on axis -1");
}
#endif
