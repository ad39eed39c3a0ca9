/* Elementwise operations, driven by the op table. */
#include "dvt_test.h"

DVT_TEST(elementwise_first) {
    dvt_array *x = DVT_ARRAY2(dvt_cpu(), float, 2, 3, {{1, 2, 3}, {4, 5, 6}});
    CHECK_VALUES(dvt_add(x, x), 0, 2, 4, 6, 8, 10, 12);
    CHECK_VALUES(dvt_mul_scalar(dvt_t(x), 2), 0, 2, 8, 4, 10, 6, 12);
    CHECK_VALUES(dvt_exp(x), 1e-6, exp(1), exp(2), exp(3), exp(4), exp(5), exp(6));
    CHECK_VALUES(dvt_add(x, DVT_ARRAY1(dvt_cpu(), int32_t, 3, {1, 2, 3})), 0, 2, 4, 6, 5, 7, 9);
    CHECK_VALUES(dvt_greater_scalar(x, 2), 0, 0, 0, 1, 1, 1, 1);
    CHECK_VALUES(dvt_zeros(DVT_SHAPE(2), DVT_F16, dvt_cpu()), 0, 0, 0);
    CHECK_VALUES(dvt_arange(0, 5, 2, DVT_I32, dvt_cpu()), 0, 0, 2, 4);
    CHECK_VALUES(dvt_eye(2, 3, 1, DVT_I32, dvt_cpu()), 0, 0, 1, 0, 0, 0, 1);
}
