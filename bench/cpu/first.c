/* A minimal program with the library, for the time to its first result and its size. */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"
#include <stdio.h>

int main(void) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    printf("%g\n", dvt_item(dvt_sum(dvt_add(x, x), DVT_ALL)));
    return 0;
}
