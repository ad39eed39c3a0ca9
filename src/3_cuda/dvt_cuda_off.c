/* The CUDA functions of a build with DEVTENSOR_NO_CUDA. */
#include "3_cuda/dvt_cuda.h"

#if defined(DEVTENSOR_NO_CUDA)

static const char *dvti_cuda_off_reason(void) {
    return "this build leaves CUDA out (DEVTENSOR_NO_CUDA)";
}

static int dvti_cuda_off_count(void) {
    return 0;
}

static dvt_status dvti_cuda_off_open(dvti_device *device, int index) {
    (void)index;
    return dvti_fail(DVT_ERR_NOT_BUILT, "%s: %s", dvt_ctx_name(device->ctx),
                     dvti_cuda_off_reason());
}

static void dvti_cuda_off_close(dvti_device *device) {
    (void)device;
}

static void dvti_cuda_off_describe(int index, const dvti_device *device, dvt_device_info *out) {
    (void)index;
    (void)device;
    (void)out;
}

static void dvti_cuda_off_version(dvti_text *text) {
    dvti_text_add(text, ", CUDA driver: none");
}

/* Returns a kind without devices, with the reason. */
DVTI_FN const dvti_backend_kind *dvti_cuda_kind(void) {
    static const dvti_backend_kind kind = {"cuda",
                                           DVT_DEVICE_GPU,
                                           false,
                                           dvti_cuda_off_count,
                                           dvti_cuda_off_reason,
                                           dvti_cuda_off_open,
                                           dvti_cuda_off_close,
                                           dvti_cuda_off_describe,
                                           dvti_cuda_off_version,
                                           NULL,
                                           DVT_DL_CUDA};
    return &kind;
}

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
    return dvti_fail(DVT_ERR_NOT_BUILT, "dvt_set_cuda_stream: %s", dvti_cuda_off_reason());
}

DVT_API dvt_status dvt_cuda_order_after(void *stream, dvt_ctx ctx) {
    (void)ctx;
    (void)stream;
    return dvti_fail(DVT_ERR_NOT_BUILT, "dvt_cuda_order_after: %s", dvti_cuda_off_reason());
}

DVT_API dvt_status dvt_cuda_order_before(void *stream, dvt_ctx ctx) {
    (void)ctx;
    (void)stream;
    return dvti_fail(DVT_ERR_NOT_BUILT, "dvt_cuda_order_before: %s", dvti_cuda_off_reason());
}

DVT_API uint64_t dvt_cuda_address(dvt_array *x) {
    if (!x)
        dvti_null("dvt_cuda_address", "x");
    else
        dvti_fail(DVT_ERR_NOT_BUILT, "dvt_cuda_address: %s", dvti_cuda_off_reason());
    return 0;
}

#endif
