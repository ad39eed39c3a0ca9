/* The smallest program: cc -I. examples/hello.c -lm -ldl -lpthread */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"

int main(void) {
    dvt_ctx dev = dvt_try_gpu(0); /* gpu(0) if it exists, else cpu() */
    dvt_array *x = dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dev);
    dvt_array *y = dvt_uniform(0, 1, DVT_SHAPE(2, 3), DVT_F32, dev);
    dvt_array *z = dvt_mul(dvt_exp(dvt_add_scalar(x, 2)), y);
    dvt_print(z); /* values, then <NDArray 2x3 @cpu(0)> */
    return dvt_error_code() != DVT_OK;
}
