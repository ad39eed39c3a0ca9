/* Tests that operations with an extent of 0 write every byte of results and gradients, on cpu() and
   on a virtual GPU. */
#include "empty_sweep.h"

DVT_TEST(empty_written) {
    dvt_dtype dtypes[DVT_DTYPE_COUNT];
    int d;
    for (d = 0; d < DVT_DTYPE_COUNT; d++)
        dtypes[d] = (dvt_dtype)d;
    sweep_dtypes(dtypes, DVT_DTYPE_COUNT, true, dvt_cpu());
}

DVT_TEST(empty_written_virtual_gpu) {
    static const dvt_dtype dtypes[] = {DVT_F16};
    NEEDS_NO_GPU("virtual GPUs");
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    sweep_dtypes(dtypes, 1, true, dvt_gpu(0));
    dvt_set_virtual_gpus(0, 0);
}
