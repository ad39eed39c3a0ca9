/* Virtual GPUs: devices with a memory space and a limit of their own, computed by the CPU's kernels. */
#include "3_cpu/dvt_cpu.h"

DVTI_FN dvt_status dvti_virtual_open(dvti_device *device) {
    (void)device;
    return DVT_OK;
}

DVTI_FN void dvti_virtual_close(dvti_device *device) {
    (void)device;
}

static dvt_status dvti_virtual_acquire(dvti_device *device, int64_t bytes, void **out) {
    int64_t used = dvti_atomic_add(&device->used, bytes);
    void *block = NULL;
    if (device->limit && used > device->limit) {
        dvti_atomic_add(&device->used, -bytes);
        return dvti_fail(DVT_ERR_DEVICE_MEMORY,
                         "no memory left on %s: %lld bytes wanted, %lld of %lld in use; "
                         "free arrays there, use a smaller batch, or another device",
                         dvt_ctx_name(device->ctx), (long long)bytes, (long long)(used - bytes),
                         (long long)device->limit);
    }
    block = dvti_alloc_aligned((size_t)bytes);
    if (!block) {
        dvti_atomic_add(&device->used, -bytes);
        return dvti_fail_memory("allocation on a virtual GPU", bytes);
    }
    dvti_cpu_count_peak(device, used);
    *out = block;
    return DVT_OK;
}

DVTI_FN const dvti_backend *dvti_virtual_backend(void) {
    static const dvti_backend backend = {
        "virtual",          dvti_virtual_acquire, dvti_cpu_release, dvti_cpu_move, dvti_cpu_move,
        dvti_cpu_copy_from, dvti_cpu_workspace,   dvti_cpu_launch,  dvti_cpu_wait};
    return &backend;
}
