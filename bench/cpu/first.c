/* The least that a program can do with the library: how long until its first result, and how large it is. */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"
#include <stdio.h>

int main(void) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    printf("%g\n", dvt_item(dvt_sum(dvt_add(x, x), DVT_ALL)));
    return 0;
}
