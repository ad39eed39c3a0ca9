/* Values from nothing, on a card: every dtype, strided targets. */
#include "on_card.h"

DVT_TEST(card_full_of_every_dtype) {
    int dtype;
    NEEDS_CARD;
    for (dtype = 0; dtype < DVT_DTYPE_COUNT; dtype++) {
        double values[] = {0, 1, -1, 2.5, 300.75, -129, 1e30, (double)NAN};
        int i;
        for (i = 0; i < 8; i++)
            SAME_ON_CARD(dvt_full(DVT_SHAPE(3, 5), values[i], (dvt_dtype)dtype, dvt_gpu(0)),
                         dvt_full(DVT_SHAPE(3, 5), values[i], (dvt_dtype)dtype, dvt_cpu()), 0,
                         dvt_dtype_name((dvt_dtype)dtype));
    }
}

DVT_TEST(card_arange_and_eye) {
    int dtype;
    NEEDS_CARD;
    for (dtype = 0; dtype < DVT_BOOL; dtype++) {
        SAME_ON_CARD(dvt_arange(-3, 70, 2, (dvt_dtype)dtype, dvt_gpu(0)),
                     dvt_arange(-3, 70, 2, (dvt_dtype)dtype, dvt_cpu()), 0, "arange");
        SAME_ON_CARD(dvt_eye(4, 6, 1, (dvt_dtype)dtype, dvt_gpu(0)),
                     dvt_eye(4, 6, 1, (dvt_dtype)dtype, dvt_cpu()), 0, "eye");
    }
    SAME_ON_CARD(dvt_linspace(0.1, 0.7, 1000, DVT_F64, dvt_gpu(0)),
                 dvt_linspace(0.1, 0.7, 1000, DVT_F64, dvt_cpu()), 0, "linspace");
}

DVT_TEST(card_full_in_a_view) {
    dvt_array *x, *y;
    NEEDS_CARD;
    x = dvt_zeros(DVT_SHAPE(4, 6), DVT_F32, dvt_gpu(0));
    y = dvt_zeros(DVT_SHAPE(4, 6), DVT_F32, dvt_cpu());
    CHECK(dvt_fill(dvt_transpose(dvt_slice(x, 1, 1, 6, 2), DVT_ALL), 7) != NULL);
    CHECK(dvt_fill(dvt_transpose(dvt_slice(y, 1, 1, 6, 2), DVT_ALL), 7) != NULL);
    SAME_ON_CARD(x, y, 0, "fill of a transposed slice");
}
