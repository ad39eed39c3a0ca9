/* Queries of devices: their properties as a struct and as a table, their memory. */
#include "2_core/dvt_core.h"

/* Queries a GPU. Does not open a gpu(i) that is not in use, because opening takes memory on it. */
static void dvti_gpu_query(const dvti_device *device, const dvti_backend_kind *kind, int index,
                           int64_t limit, dvt_device_info *out) {
    out->is_virtual = kind->simulates;
    kind->describe(index, device, out);
    if (device) {
        out->memory_used = dvti_atomic_load(&device->used);
        out->memory_peak = dvti_atomic_load(&device->peak);
    }
    if (limit) {
        out->memory_total = limit;
        out->memory_free = limit - out->memory_used;
    }
}

DVT_API dvt_status dvt_device_query(dvt_ctx ctx, dvt_device_info *out) {
    dvti_device *device;
    const dvti_backend_kind *kind;
    int64_t limit;
    int index;
    if (!out)
        return dvti_null("dvt_device_query", "out");
    ctx = dvti_ctx(ctx);
    memset(out, 0, sizeof *out);
    out->ctx = ctx;
    if (dvti_device_look(ctx, &device, &kind, &index, &limit)) {
        dvti_gpu_query(device, kind, index, limit, out);
        if (device)
            dvti_device_end(device);
        return DVT_OK;
    }
    device = dvti_device_begin("dvt_device_query", ctx);
    if (!device)
        return dvti_failure();
    out->memory_used = dvti_atomic_load(&device->used);
    out->memory_peak = dvti_atomic_load(&device->peak);
    device->kind->describe(0, device, out);
    dvti_device_end(device);
    return DVT_OK;
}

static const char *dvti_mib(int64_t bytes) {
    char *buffer = dvti_name_buffer();
    if (bytes < 0)
        snprintf(buffer, DVTI_NAME_SIZE, "-");
    else
        snprintf(buffer, DVTI_NAME_SIZE, "%lld MiB", (long long)(bytes / (1024 * 1024)));
    return buffer;
}

static void dvti_device_row(dvti_text *text, dvt_ctx ctx) {
    dvt_device_info info;
    if (dvt_device_query(ctx, &info) == DVT_OK)
        dvti_text_add(text, "| %-8s | %-36.36s | %11s | %11s | %11s |\n", dvt_ctx_name(ctx),
                      info.name, dvti_mib(info.memory_total), dvti_mib(info.memory_free),
                      dvti_mib(info.memory_used));
}

DVT_API size_t dvt_devices_format(char *buffer, size_t size) {
    static const char line[] = "+----------+--------------------------------------+-------------+--"
                               "-----------+-------------+\n";
    dvti_text text = dvti_text_begin(buffer, size);
    int n = dvt_num_gpus(), i;
    dvti_text_add(&text, "devtensor %s", DVT_VERSION_STRING);
    for (i = 0; dvti_built()->kind[i]; i++) {
        const dvti_backend_kind *kind = dvti_built()->kind[i]();
        if (kind->version)
            kind->version(&text);
    }
    dvti_text_add(&text, ", threads of cpu(): %d\n%s", dvt_num_threads(), line);
    dvti_text_add(&text, "| %-8s | %-36s | %11s | %11s | %11s |\n%s", "context", "name", "memory",
                  "free", "used here", line);
    dvti_device_row(&text, dvt_cpu());
    for (i = 0; i < n; i++)
        dvti_device_row(&text, dvt_gpu(i));
    dvti_text_add(&text, "%s", line);
    for (i = 0; dvti_built()->kind[i]; i++) {
        const dvti_backend_kind *kind = dvti_built()->kind[i]();
        if (kind->notes)
            kind->notes(&text);
    }
    if (!n)
        dvti_text_add(&text, "no GPU: %s\n", dvt_gpu_reason());
    return text.length;
}

DVT_API void dvt_print_devices(void) {
    char buffer[8192];
    dvt_devices_format(buffer, sizeof buffer);
    fputs(buffer, stdout);
}

/* ---- memory ---- */
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
