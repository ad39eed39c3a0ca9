/* Tests when a convolution may round to TF32. Only internal data tells which GPUs can, so this file
   has a private copy of the library. */
#define DEVTENSOR_STATIC
#define DEVTENSOR_NO_SIMD /* the copy compiles in a quarter of the time */
#include "on_gpu.h"

/* Returns the largest element, on cpu(). */
static double largest(dvt_array *x) {
    return dvt_item(dvt_max(dvt_copyto(x, dvt_cpu()), DVT_ALL));
}

/* 1 + 2^-12 rounds to 1 in TF32, and must do so only where TF32 is allowed. */
DVT_TEST(gpu_conv_tf32_only_on_request) {
    const double exact = 8 + 8.0 / 4096;
    bool before;
    NEEDS_GPU;
    before = dvt_allow_tf32(false);
    DVT_SCOPE {
        dvt_array *x = dvt_full(DVT_SHAPE(1, 8, 4, 4), 1 + 1.0 / 4096, DVT_F32, dvt_gpu(0));
        dvt_array *w = dvt_ones(DVT_SHAPE(16, 8, 1, 1), DVT_F32, dvt_gpu(0));
        CHECK_CLOSE(largest(dvt_conv2d(x, w, NULL, NULL)), exact, 0);
        CHECK(!dvt_allow_tf32(true));
        CHECK_CLOSE(largest(dvt_conv2d(x, w, NULL, NULL)),
                    dvti_cuda_physical_gpus[0].cc >= 80 ? 8 : exact, 0);
        CHECK(dvt_allow_tf32(false));
    }
    dvt_allow_tf32(before);
}
