/* What can be asked and set about a device's memory; the backends keep it. */
#include "2_core/dvt_core.h"

DVT_API dvt_status dvt_memory_query(dvt_ctx ctx, dvt_memory_stats *out) {
    dvti_device *device;
    if (!out)
        return dvti_null("dvt_memory_query", "out");
    device = dvti_device_begin("dvt_memory_query", dvti_ctx(ctx));
    if (!device)
        return dvti_failure();
    memset(out, 0, sizeof *out);
    out->used = out->reserved = dvti_atomic_load(&device->used);
    out->used_peak = out->reserved_peak = dvti_atomic_load(&device->peak);
    if (device->backend->memory)
        device->backend->memory(device, out);
    dvti_device_end(device);
    return DVT_OK;
}

DVT_API int64_t dvt_trim_memory(dvt_ctx ctx) {
    dvti_device *device = dvti_device_begin("dvt_trim_memory", dvti_ctx(ctx));
    int64_t bytes = 0;
    if (!device)
        return 0;
    if (device->backend->trim)
        bytes = device->backend->trim(device);
    dvti_device_end(device);
    return bytes;
}

DVT_API dvt_status dvt_set_memory_limit(int64_t bytes, dvt_ctx ctx) {
    dvti_device *device;
    if (bytes < 0)
        return dvti_fail(DVT_ERR_RANGE,
                         "dvt_set_memory_limit: got %lld bytes; expected 0 (no limit) or more",
                         (long long)bytes);
    device = dvti_device_begin("dvt_set_memory_limit", dvti_ctx(ctx));
    if (!device)
        return dvti_failure();
    dvti_atomic_store(&device->limit, bytes);
    dvti_device_end(device);
    return DVT_OK;
}
