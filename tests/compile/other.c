/* A second translation unit: with the implementation elsewhere, or with DEVTENSOR_STATIC and a
   private copy of the library. */
#include "devtensor.h"

#ifdef __cplusplus
extern "C"
#endif
    double
    other(double value);

double other(double value) {
    return dvt_item(dvt_add_scalar(dvt_full(DVT_SHAPE(1), value, DVT_F64, dvt_cpu()), 1));
}
