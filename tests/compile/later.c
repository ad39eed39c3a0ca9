/* The declarations first, code that uses them, then the implementation. */
#include "devtensor.h"

static dvt_array *made_before(void) {
    return dvt_ones(DVT_SHAPE(2, 2), DVT_F32, dvt_cpu());
}

#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"
#include "devtensor.h"

int main(void) {
    dvt_array *x = made_before(), *y = dvt_zeros(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    if (!strstr(dvt_made_at(x), "later.c:5") || !strstr(dvt_made_at(y), "later.c:13"))
        return 1;
    return dvt_item(dvt_sum(dvt_add(x, y), DVT_ALL)) == 4 ? 0 : 2;
}
