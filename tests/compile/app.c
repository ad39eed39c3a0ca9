/* A minimal user program: one file next to a copy of devtensor.h. */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"

int main(void) {
    dvt_ctx dev = dvt_try_gpu(0);
    dvt_array *x = dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dev);
    dvt_print(dvt_mul_scalar(x, 2));
    return dvt_error_code() != DVT_OK;
}
