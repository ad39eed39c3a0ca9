/* What people run nvidia-smi for: the devices, their memory and versions, as data and as a table. */
#include "2_core/dvt_core.h"

static void dvti_host_memory(int64_t *total, int64_t *available) {
    *total = *available = -1;
#if defined(_WIN32)
    {
        MEMORYSTATUSEX status;
        status.dwLength = sizeof status;
        if (GlobalMemoryStatusEx(&status)) {
            *total = (int64_t)status.ullTotalPhys;
            *available = (int64_t)status.ullAvailPhys;
        }
    }
#elif defined(__linux__)
    {
        FILE *file = fopen("/proc/meminfo", "r");
        char line[160];
        long long kib;
        while (file && fgets(line, sizeof line, file)) {
            if (sscanf(line, "MemTotal: %lld kB", &kib) == 1)
                *total = kib * 1024;
            if (sscanf(line, "MemAvailable: %lld kB", &kib) == 1)
                *available = kib * 1024;
        }
        if (file)
            fclose(file);
    }
#elif defined(_SC_PHYS_PAGES)
    *total = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
#endif
}

static void dvti_cpu_model(char *name, size_t size) {
    snprintf(name, size, "CPU");
#if defined(__linux__)
    {
        FILE *file = fopen("/proc/cpuinfo", "r");
        char line[256];
        while (file && fgets(line, sizeof line, file)) {
            char *colon = strchr(line, ':');
            if (strncmp(line, "model name", 10) == 0 && colon) {
                colon[strcspn(colon, "\n")] = 0;
                snprintf(name, size, "%s", colon + 2);
                break;
            }
        }
        if (file)
            fclose(file);
    }
#endif
}

/* A gpu(i) that nobody has used yet is not opened for being asked: that would take memory on the card. */
static void dvti_gpu_query(const dvti_device *device, int card, int64_t limit,
                           dvt_device_info *out) {
    out->is_virtual = true;
    out->threads = 1;
    out->memory_total = out->memory_free = -1;
    snprintf(out->name, sizeof out->name, "virtual GPU");
    if (card >= 0) {
        out->is_virtual = false;
        dvti_cuda_describe(card, device, out);
    }
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
    int64_t limit;
    int card;
    if (!out)
        return dvti_null("dvt_device_query", "out");
    ctx = dvti_ctx(ctx);
    memset(out, 0, sizeof *out);
    out->ctx = ctx;
    if (dvti_device_look(ctx, &device, &card, &limit)) {
        dvti_gpu_query(device, card, limit, out);
        if (device)
            dvti_device_end(device);
        return DVT_OK;
    }
    device = dvti_device_begin("dvt_device_query", ctx);
    if (!device)
        return dvti_failure();
    out->memory_used = dvti_atomic_load(&device->used);
    out->memory_peak = dvti_atomic_load(&device->peak);
    dvti_cpu_model(out->name, sizeof out->name);
    dvti_host_memory(&out->memory_total, &out->memory_free);
    out->threads = dvt_num_threads();
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
    int driver = dvti_cuda_driver_version(), n = dvt_num_gpus(), i;
    char version[32] = "none";
    if (driver)
        snprintf(version, sizeof version, "%d.%d", driver / 1000, driver % 1000 / 10);
    dvti_text_add(&text, "devtensor %s, CUDA driver: %s, threads of cpu(): %d\n%s",
                  DVT_VERSION_STRING, version, dvt_num_threads(), line);
    dvti_text_add(&text, "| %-8s | %-36s | %11s | %11s | %11s |\n%s", "context", "name", "memory",
                  "free", "used here", line);
    dvti_device_row(&text, dvt_cpu());
    for (i = 0; i < n; i++)
        dvti_device_row(&text, dvt_gpu(i));
    dvti_text_add(&text, "%s", line);
    if (!n)
        dvti_text_add(&text, "no GPU: %s\n", dvt_gpu_reason());
    return text.length;
}

DVT_API void dvt_print_devices(void) {
    char buffer[8192];
    dvt_devices_format(buffer, sizeof buffer);
    fputs(buffer, stdout);
}
