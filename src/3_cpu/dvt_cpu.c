/* The backend of cpu(): host memory and synchronous kernels. Also selects between the ISA target's
   kernels and the portable ones of each family, for cpu() and virtual GPUs. */
#include "3_cpu/simd/dvt_simd.h"

/* ---- launches of any kernel ---- */
DVTI_FN bool dvti_cpu_supports(const dvti_device *device, const dvti_kernel *kernel, dvti_op op,
                               dvt_dtype dtype, dvti_feature feature) {
    const dvti_cpu_kernel *cpu = kernel->cpu;
    (void)device;
    if (cpu->supports)
        return cpu->supports(op, dtype, feature);
    return feature == DVTI_CAN_RUN;
}

DVTI_FN int64_t dvti_cpu_plan_for(dvti_launch *launch, int threads) {
    const dvti_cpu_kernel *cpu = launch->kernel->cpu;
    return cpu->plan ? cpu->plan(launch, threads) : 0;
}

DVTI_FN int64_t dvti_cpu_plan(dvti_device *device, dvti_launch *launch) {
    (void)device;
    return dvti_cpu_plan_for(launch, 0);
}

DVTI_FN void dvti_cpu_run(const dvti_launch *launch) {
    launch->kernel->cpu->run(launch);
}

/* ---- families: the ISA target's kernels if they support the launch, else the portable ones
   ---- */
DVTI_FN void dvti_cpu_elementwise(const dvti_launch *launch) {
    const dvti_simd *simd = dvti_simd_now();
    if (simd)
        dvti_fast_elementwise(launch, simd);
    else
        dvti_ref_elementwise(launch);
}

DVTI_FN bool dvti_cpu_variance_supports(dvti_op op, dvt_dtype dtype, dvti_feature feature) {
    (void)op;
    return feature == DVTI_CAN_RUN && (dtype == DVT_F32 || dtype == DVT_F64);
}

DVTI_FN bool dvti_cpu_layer_norm_supports(dvti_op op, dvt_dtype dtype, dvti_feature feature) {
    return feature == DVTI_CAN_RUN && dtype == DVT_F32 && op == DVTI_OP_layer_norm;
}

DVTI_FN bool dvti_cpu_batch_norm_supports(dvti_op op, dvt_dtype dtype, dvti_feature feature) {
    (void)op, (void)dtype, (void)feature;
    return false;
}

DVTI_FN void dvti_cpu_pool2d(const dvti_launch *launch) {
    const dvti_simd *simd = dvti_simd_now();
    if (!simd || !dvti_fast_pool2d(launch, simd))
        dvti_ref_pool2d(launch);
}

DVTI_FN int64_t dvti_cpu_order_plan(dvti_launch *launch, int threads) {
    return dvti_topk_pays(launch) ? dvti_topk_plan_of(launch, threads)
                                  : dvti_sort_plan_of(launch, threads);
}

DVTI_FN void dvti_cpu_order(const dvti_launch *launch) {
    if (dvti_topk_pays(launch))
        dvti_cpu_topk(launch);
    else
        dvti_cpu_sort(launch);
}

DVTI_FN int64_t dvti_cpu_take_plan(dvti_launch *launch, int threads) {
    (void)threads;
    return dvti_cpu_index_workspace(launch);
}

/* Returns the support of the random kernel. A launch with DVTI_CAN_HOST_STATE changes generator
   states in host memory during the call. The queue of a virtual GPU cannot do that
   (dvti_virtual_supports). */
DVTI_FN bool dvti_cpu_random_supports(dvti_op op, dvt_dtype dtype, dvti_feature feature) {
    (void)dtype;
    return feature == DVTI_CAN_RUN || (feature == DVTI_CAN_HOST_STATE && op == DVTI_OP_uniform);
}

DVTI_FN int64_t dvti_cpu_random_plan(dvti_launch *launch, int threads) {
    (void)threads;
    return dvti_cpu_random_workspace(launch);
}

/* ---- memory ---- */
static dvti_heap dvti_cpu_heap;

/* Raises the peak to `used`. The lock keeps the larger value when two threads do so at once. */
static void dvti_cpu_devices_peak(dvti_device *device, int64_t used) {
    static dvti_mutex lock = DVTI_MUTEX_INIT;
    if (used <= dvti_atomic_load(&device->peak))
        return;
    dvti_mutex_lock(&lock);
    if (used > dvti_atomic_load(&device->peak))
        dvti_atomic_store(&device->peak, used);
    dvti_mutex_unlock(&lock);
}

/* Adds bytes to those in use, or returns false if that exceeds the limit. Compare-and-swap prevents
   several threads from taking the last bytes. */
static bool dvti_cpu_use(dvti_device *device, int64_t bytes, int64_t *used) {
    int64_t limit = dvti_atomic_load(&device->limit);
    if (!limit) {
        *used = dvti_atomic_add(&device->used, bytes);
        return true;
    }
    do {
        *used = dvti_atomic_load(&device->used);
        if (bytes > limit - *used)
            return false;
    } while (!dvti_atomic_swap(&device->used, *used, *used + bytes));
    *used += bytes;
    return true;
}

static dvt_status dvti_cpu_acquire(dvti_device *device, const char *function, int64_t bytes,
                                   void **out) {
    int64_t used;
    void *block;
    if (!dvti_cpu_use(device, bytes, &used))
        return dvti_fail(DVT_ERR_HOST_MEMORY,
                         "%s: %lld bytes wanted%s on cpu(), where %lld of %lld are in use; free "
                         "arrays, or raise the limit with dvt_set_memory_limit",
                         function, (long long)bytes, dvti_wanted_text(), (long long)used,
                         (long long)dvti_atomic_load(&device->limit));
    block = dvti_heap_take(&dvti_cpu_heap, bytes);
    if (!block) {
        dvti_atomic_add(&device->used, -bytes);
        return dvti_fail_array_memory(function, bytes);
    }
    dvti_cpu_devices_peak(device, used);
    *out = block;
    return DVT_OK;
}

static void dvti_cpu_release(dvti_device *device, void *block, int64_t bytes) {
    dvti_atomic_add(&device->used, -bytes);
    dvti_heap_give(&dvti_cpu_heap, block);
}

static int64_t dvti_cpu_trim(dvti_device *device) {
    (void)device;
    return dvti_heap_trim(&dvti_cpu_heap);
}

static void dvti_cpu_memory(dvti_device *device, dvt_memory_stats *out) {
    (void)device;
    dvti_heap_stats(&dvti_cpu_heap, out);
}

static dvt_status dvti_cpu_move(dvti_device *device, void *dst, const void *src, int64_t bytes) {
    (void)device;
    if (bytes > 0)
        memmove(dst, src, (size_t)bytes);
    return DVT_OK;
}

static dvt_status dvti_cpu_copy_from(dvti_device *device, void *dst, dvti_device *from,
                                     const void *src, int64_t bytes) {
    (void)from;
    return dvti_cpu_move(device, dst, src, bytes);
}

/* ---- the backend ---- */
static dvt_status dvti_cpu_launch(dvti_device *device, const dvti_launch *launch) {
    (void)device;
    dvti_cpu_run(launch);
    return DVT_OK;
}

static dvt_status dvti_cpu_wait(dvti_device *device) {
    (void)device;
    return DVT_OK;
}

static bool dvti_cpu_multiply_small(const dvti_kernel *kernel, const dvti_matrices *product) {
    return kernel->cpu->multiply_small(product);
}

static dvt_status dvti_cpu_open(dvti_device *device, int index) {
    static const dvti_backend backend = {"cpu",
                                         dvti_cpu_acquire,
                                         dvti_cpu_release,
                                         dvti_cpu_move,
                                         dvti_cpu_move,
                                         dvti_cpu_copy_from,
                                         dvti_cpu_supports,
                                         dvti_cpu_plan,
                                         dvti_cpu_launch,
                                         dvti_cpu_wait,
                                         NULL,
                                         dvti_cpu_trim,
                                         dvti_cpu_memory,
                                         NULL,
                                         NULL,
                                         dvti_cpu_multiply_small,
                                         false,
                                         NULL,
                                         NULL,
                                         NULL,
                                         NULL,
                                         NULL,
                                         NULL};
    (void)index;
    dvti_heap_open(&dvti_cpu_heap);
    device->backend = &backend;
    return DVT_OK;
}

static void dvti_cpu_close(dvti_device *device) {
    (void)device;
}

static int dvti_cpu_devices(void) {
    return 1;
}

static const char *dvti_cpu_no_reason(void) {
    return "";
}

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

static DVTI_RARE void dvti_cpu_describe(int index, const dvti_device *device,
                                        dvt_device_info *out) {
    (void)index;
    (void)device;
    dvti_cpu_model(out->name, sizeof out->name);
    dvti_host_memory(&out->memory_total, &out->memory_free);
    out->threads = dvt_num_threads();
}

DVTI_FN const dvti_backend_kind *dvti_cpu_kind(void) {
    static const dvti_backend_kind kind = {"cpu",
                                           DVT_DEVICE_CPU,
                                           false,
                                           dvti_cpu_devices,
                                           dvti_cpu_no_reason,
                                           dvti_cpu_open,
                                           dvti_cpu_close,
                                           dvti_cpu_describe,
                                           NULL,
                                           dvti_cpu_notes,
                                           DVT_DL_CPU};
    return &kind;
}
