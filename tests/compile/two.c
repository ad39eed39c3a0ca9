/* The first of two translation units, see other.c. */
#include "devtensor.h"

#ifdef __cplusplus
extern "C"
#endif
    double
    other(double value);

int main(void) {
    dvt_array *x = dvt_full(DVT_SHAPE(2), other(41), DVT_F64, dvt_cpu());
    return dvt_item(dvt_sum(x, DVT_ALL)) == 84 ? 0 : 1;
}
