/* What is left of CUDA under DEVTENSOR_NO_CUDA. */
#include "2_core/dvt_core.h"

#if defined(DEVTENSOR_NO_CUDA)

DVT_API dvt_jit_stats dvt_get_jit_stats(void) {
    dvt_jit_stats stats;
    memset(&stats, 0, sizeof stats);
    return stats;
}

DVT_API void *dvt_cuda_stream(dvt_ctx ctx) {
    (void)ctx;
    return NULL;
}

DVT_API dvt_status dvt_set_cuda_stream(void *stream, dvt_ctx ctx) {
    (void)ctx;
    (void)stream;
    return dvti_fail(DVT_ERR_NOT_BUILT, "dvt_set_cuda_stream: %s", dvti_cuda_reason());
}

DVT_API uint64_t dvt_cuda_address(dvt_array *x) {
    if (!x)
        dvti_null("dvt_cuda_address", "x");
    else
        dvti_fail(DVT_ERR_NOT_BUILT, "dvt_cuda_address: %s", dvti_cuda_reason());
    return 0;
}

DVTI_FN const char *dvti_cuda_reason(void) {
    return "this build leaves CUDA out (DEVTENSOR_NO_CUDA)";
}

DVTI_FN int dvti_cuda_driver_version(void) {
    return 0;
}

DVTI_FN int dvti_cuda_count(void) {
    return 0;
}

DVTI_FN dvt_status dvti_cuda_open(dvti_device *device, int index) {
    (void)index;
    return dvti_fail(DVT_ERR_NOT_BUILT, "%s: %s", dvt_ctx_name(device->ctx), dvti_cuda_reason());
}

DVTI_FN void dvti_cuda_close(dvti_device *device) {
    (void)device;
}

DVTI_FN void dvti_cuda_describe(int index, const dvti_device *device, dvt_device_info *out) {
    (void)index;
    (void)device;
    (void)out;
}

DVTI_FN const dvti_backend *dvti_cuda_backend(void) {
    return NULL;
}

#endif
