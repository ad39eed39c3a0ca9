/* Elementwise operations on a card. */
#include "on_card.h"

DVT_TEST(card_astype) {
    int from, to;
    NEEDS_CARD;
    for (from = 0; from < DVT_DTYPE_COUNT; from++)
        for (to = 0; to < DVT_DTYPE_COUNT; to++) {
            dvt_array *x = random_on_cpu(DVT_SHAPE(5, 207), (dvt_dtype)from, -300, 300);
            SAME_ON_CARD(dvt_astype(dvt_copyto(x, dvt_gpu(0)), (dvt_dtype)to, true),
                         dvt_astype(x, (dvt_dtype)to, true), 0, "astype");
        }
}

DVT_TEST(card_add) {
    int from, to;
    NEEDS_CARD;
    for (from = 0; from < DVT_DTYPE_COUNT; from++)
        for (to = 0; to < DVT_DTYPE_COUNT; to++) {
            dvt_array *x = random_on_cpu(DVT_SHAPE(5, 207), (dvt_dtype)from, -300, 300);
            dvt_array *y = random_on_cpu(DVT_SHAPE(207), (dvt_dtype)to, -300, 300);
            SAME_ON_CARD(dvt_add(dvt_copyto(x, dvt_gpu(0)), dvt_copyto(y, dvt_gpu(0))),
                         dvt_add(x, y), 0, "add");
            SAME_ON_CARD(dvt_t(dvt_copyto(x, dvt_gpu(0))), dvt_t(x), 0, "t");
        }
}
