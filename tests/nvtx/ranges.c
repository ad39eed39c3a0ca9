/* For run.sh: nested ranges, with work in them. */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"

int main(void) {
    dvt_array *x = dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_cpu());
    dvt_status status = dvt_range_push("step");
    if (status == DVT_OK)
        status = dvt_range_push("forward, with a name of more than forty-seven bytes");
    dvt_exp(x);
    if (status == DVT_OK)
        status = dvt_range_pop();
    if (status == DVT_OK)
        status = dvt_range_pop();
    return status != DVT_OK || dvt_range_pop() != DVT_ERR_VALUE;
}
