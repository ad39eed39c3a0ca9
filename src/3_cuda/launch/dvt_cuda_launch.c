/* The door of all kernels: which family serves a launch, and how much workspace it wants. */
#include "3_cuda/device/dvt_cuda_device.h"

DVTI_FN int64_t dvti_cuda_workspace(dvti_device *device, dvti_launch *launch) {
    const dvti_cuda_gpu *gpu = dvti_cuda_gpu_of(device);
    switch (launch->kernel) {
    case DVTI_K_REDUCE:
        return dvti_cuda_reduce_workspace(gpu, launch);
    case DVTI_K_SCAN:
        return dvti_cuda_scan_workspace(gpu, launch);
    case DVTI_K_SORT:
        return dvti_cuda_order_workspace(gpu, launch);
    case DVTI_K_MATMUL:
        return dvti_cuda_matmul_workspace(gpu, launch);
    case DVTI_K_CONV2D:
        return dvti_cuda_conv_workspace(gpu, launch);
    case DVTI_K_POOL2D:
        return dvti_cuda_pool_workspace(gpu, launch);
    case DVTI_K_TAKE:
    case DVTI_K_TAKE_ALONG:
    case DVTI_K_ONE_HOT:
        return dvti_cuda_index_workspace(gpu, launch);
    case DVTI_K_RANDOM:
        return dvti_cuda_random_workspace(gpu, launch);
    default:
        return 0;
    }
}

DVTI_FN dvt_status dvti_cuda_run(dvti_cuda_gpu *gpu, const dvti_launch *launch) {
    if (dvti_cuda_view_size(&launch->out[0]) == 0)
        return DVT_OK;
    switch (launch->kernel) {
    case DVTI_K_FILL:
    case DVTI_K_ARANGE:
    case DVTI_K_EYE:
        return dvti_cuda_fill(gpu, launch);
    case DVTI_K_ELEMENTWISE:
        return dvti_cuda_elementwise(gpu, launch);
    case DVTI_K_REDUCE:
        return dvti_cuda_reduce(gpu, launch);
    case DVTI_K_SOFTMAX:
        return dvti_cuda_softmax(gpu, launch);
    case DVTI_K_SCAN:
        return dvti_cuda_scan(gpu, launch);
    case DVTI_K_SORT:
        return dvti_cuda_order(gpu, launch);
    case DVTI_K_MATMUL:
        return dvti_cuda_matmul(gpu, launch);
    case DVTI_K_CONV2D:
        return dvti_cuda_conv(gpu, launch);
    case DVTI_K_POOL2D:
        return dvti_cuda_pool(gpu, launch);
    case DVTI_K_TAKE:
    case DVTI_K_TAKE_ALONG:
    case DVTI_K_ONE_HOT:
        return dvti_cuda_index(gpu, launch);
    case DVTI_K_RANDOM:
        return dvti_cuda_random(gpu, launch);
    case DVTI_K_OPTIMIZER:
        return dvti_cuda_optimizer(gpu, launch);
    case DVTI_K_COUNT:
        break;
    }
    return DVT_OK;
}
