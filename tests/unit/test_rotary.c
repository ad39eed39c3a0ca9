/* Tests of dvt_rotary: values by the formula, positions, gradients, refused arguments. */
#include "dvt_golden.h"
#include "gradient_check.h"
#if !defined(DEVTENSOR_NO_NN)

static dvt_rotary_options rotary_options(int64_t offset, bool interleaved) {
    dvt_rotary_options p;
    memset(&p, 0, sizeof p);
    p.offset = offset;
    p.base = 100;
    p.interleaved = interleaved;
    return p;
}

static dvt_array *rotate(dvt_array *const *x, const void *user) {
    dvt_rotary_options p = rotary_options(3, user != NULL);
    return dvt_rotary(x[0], &p);
}

/* Angles of row t with base 100 and size 4: t and t / 10. */
DVT_TEST(rotary_rotates_pairs) {
    dvt_array *x = DVT_ARRAY(double, DVT_SHAPE(2, 4), dvt_test_ctx(), 1, 2, 3, 4, 5, 6, 7, 8);
    dvt_rotary_options p = rotary_options(1, false);
    double c[2][2], s[2][2];
    int t, i;
    for (t = 0; t < 2; t++)
        for (i = 0; i < 2; i++) {
            c[t][i] = cos((t + 1) * (i ? 0.1 : 1));
            s[t][i] = sin((t + 1) * (i ? 0.1 : 1));
        }
    CHECK_VALUES(dvt_rotary(x, &p), 1e-12, c[0][0] - 3 * s[0][0], 2 * c[0][1] - 4 * s[0][1],
                 3 * c[0][0] + s[0][0], 4 * c[0][1] + 2 * s[0][1], 5 * c[1][0] - 7 * s[1][0],
                 6 * c[1][1] - 8 * s[1][1], 7 * c[1][0] + 5 * s[1][0], 8 * c[1][1] + 6 * s[1][1]);
    p.interleaved = true;
    CHECK_VALUES(dvt_rotary(x, &p), 1e-12, c[0][0] - 2 * s[0][0], 2 * c[0][0] + s[0][0],
                 3 * c[0][1] - 4 * s[0][1], 4 * c[0][1] + 3 * s[0][1], 5 * c[1][0] - 6 * s[1][0],
                 6 * c[1][0] + 5 * s[1][0], 7 * c[1][1] - 8 * s[1][1], 8 * c[1][1] + 7 * s[1][1]);
    p = rotary_options(0, false);
    p.positions = DVT_ARRAY(int, DVT_SHAPE(2), dvt_test_ctx(), 0, 2);
    CHECK_VALUES(dvt_rows(dvt_rotary(x, &p), 0, 1), 0, 1, 2, 3, 4);
    CHECK_CLOSE(dvt_item_at(dvt_rotary(x, &p), DVT_SHAPE(1, 0)), 5 * c[1][0] - 7 * s[1][0], 1e-12);
    p.base = 0; /* 10000: angles t and t / 100 */
    CHECK_CLOSE(dvt_item_at(dvt_rotary(x, &p), DVT_SHAPE(1, 1)), 6 * cos(0.02) - 8 * sin(0.02),
                1e-12);
    CHECK_INT(dvt_dtype_of(dvt_rotary(dvt_astype(x, DVT_BF16), NULL)), DVT_BF16);
}

DVT_TEST(rotary_gradients) {
    check_one("half", rotate, NULL, DVT_SHAPE(2, 3, 4), -1, 1);
    check_one("interleaved", rotate, "", DVT_SHAPE(2, 3, 4), -1, 1);
}

DVT_TEST(rotary_refuses) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2, 4), DVT_F32, dvt_test_ctx());
    dvt_rotary_options p = rotary_options(0, false);
    CHECK_REFUSED(dvt_rotary(NULL, NULL), DVT_ERR_NULL_ARGUMENT, "x is NULL");
    CHECK_REFUSED(dvt_rotary(dvt_slice(x, 1, 0, 3, 1), NULL), DVT_ERR_SHAPE, "an even size");
    p.positions = dvt_ones(DVT_SHAPE(3), DVT_I32, dvt_test_ctx());
    CHECK_REFUSED(dvt_rotary(x, &p), DVT_ERR_SHAPE, "positions is int32 (3,)");
    p.positions = NULL;
    p.base = -1;
    CHECK_REFUSED(dvt_rotary(x, &p), DVT_ERR_RANGE, "base is -1");
}
#endif
