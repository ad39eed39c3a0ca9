/* The backend of cpu(): main memory, and kernels that have finished when the call returns. Also the table of kernel families,
   which virtual GPUs share. */
#include "3_cpu/simd/dvt_simd.h"

/* What a tier of instructions has made for launches like this one. */
static bool dvti_cpu_run_fast(const dvti_launch *launch) {
    const dvti_simd *simd = dvti_simd_now();
    if (!simd)
        return false;
    switch ((int)launch->kernel) {
    case DVTI_K_REDUCE:
        return dvti_fast_reduce(launch, simd);
    case DVTI_K_OPTIMIZER:
        return dvti_fast_optimizer(launch, simd);
    case DVTI_K_POOL2D:
        return dvti_fast_pool2d(launch, simd);
    case DVTI_K_SOFTMAX:
        return launch->op == DVTI_OP_rsqrt ? dvti_fast_normalize(launch, simd)
                                           : dvti_fast_softmax(launch, simd);
    case DVTI_K_ELEMENTWISE:
        dvti_cpu_elementwise(launch, simd);
        return true;
    default:
        return false;
    }
}

DVTI_FN void dvti_cpu_run(const dvti_launch *launch) {
    if (dvti_cpu_run_fast(launch))
        return;
    switch (launch->kernel) {
    case DVTI_K_FILL:
    case DVTI_K_ARANGE:
    case DVTI_K_EYE:
        dvti_ref_fill(launch);
        break;
    case DVTI_K_ELEMENTWISE:
        dvti_ref_elementwise(launch);
        break;
    case DVTI_K_MATMUL:
        dvti_cpu_matmul(launch);
        break;
    case DVTI_K_REDUCE:
        dvti_ref_reduce(launch);
        break;
    case DVTI_K_SOFTMAX:
        dvti_ref_softmax(launch);
        break;
    case DVTI_K_SCAN:
        dvti_cpu_scan(launch);
        break;
    case DVTI_K_SORT:
        if (dvti_topk_pays(launch))
            dvti_cpu_topk(launch);
        else
            dvti_cpu_sort(launch);
        break;
    case DVTI_K_TAKE:
    case DVTI_K_TAKE_ALONG:
    case DVTI_K_ONE_HOT:
        dvti_ref_index(launch);
        break;
    case DVTI_K_RANDOM:
        dvti_ref_random(launch);
        break;
    case DVTI_K_CONV2D:
        dvti_cpu_conv2d(launch);
        break;
    case DVTI_K_POOL2D:
        dvti_ref_pool2d(launch);
        break;
    case DVTI_K_OPTIMIZER:
        dvti_ref_optimizer(launch);
        break;
    case DVTI_K_COUNT:
        break;
    }
}

/* Queues compute in their own thread alone. */
static int dvti_cpu_threads(const dvti_device *device) {
    return device->ctx.type == DVT_DEVICE_GPU ? 1 : dvti_parallel_width();
}

/* The tier may change between this question and the launch, so the answer is right for all. */
DVTI_FN int64_t dvti_cpu_workspace(dvti_device *device, dvti_launch *launch) {
    switch (launch->kernel) {
    case DVTI_K_REDUCE:
        return DVTI_MAX(dvti_ref_reduce_workspace(launch), dvti_fast_reduce_workspace(launch));
    case DVTI_K_MATMUL:
        return dvti_cpu_matmul_workspace(launch, device->ctx.type == DVT_DEVICE_GPU ? 1 : 0);
    case DVTI_K_SCAN:
        return dvti_scan_workspace(launch);
    case DVTI_K_SORT:
        return dvti_topk_pays(launch) ? dvti_topk_workspace(launch, dvti_cpu_threads(device))
                                      : dvti_cpu_sort_workspace(launch, dvti_cpu_threads(device));
    case DVTI_K_TAKE:
    case DVTI_K_TAKE_ALONG:
        return dvti_ref_index_workspace(launch);
    case DVTI_K_RANDOM:
        return dvti_ref_random_workspace(launch);
    case DVTI_K_CONV2D:
        return dvti_cpu_conv2d_workspace(launch, dvti_cpu_threads(device));
    default:
        return 0;
    }
}

static dvti_heap dvti_cpu_heap;

/* Two threads that grow `used` at once must not both miss the peak. */
static void dvti_cpu_count_peak(dvti_device *device, int64_t used) {
    static dvti_mutex lock = DVTI_MUTEX_INIT;
    if (used <= dvti_atomic_load(&device->peak))
        return;
    dvti_mutex_lock(&lock);
    if (used > dvti_atomic_load(&device->peak))
        dvti_atomic_store(&device->peak, used);
    dvti_mutex_unlock(&lock);
}

/* Adds bytes to those in use, unless that is more than the limit: several threads may want the last of them. */
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
    dvti_cpu_count_peak(device, used);
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

static dvt_status dvti_cpu_launch(dvti_device *device, const dvti_launch *launch) {
    (void)device;
    dvti_cpu_run(launch);
    return DVT_OK;
}

static dvt_status dvti_cpu_wait(dvti_device *device) {
    (void)device;
    return DVT_OK;
}

/* Asked for once, when the contexts are made. */
DVTI_FN const dvti_backend *dvti_cpu_backend(void) {
    static const dvti_backend backend = {"cpu",
                                         dvti_cpu_acquire,
                                         dvti_cpu_release,
                                         dvti_cpu_move,
                                         dvti_cpu_move,
                                         dvti_cpu_copy_from,
                                         dvti_cpu_workspace,
                                         dvti_cpu_launch,
                                         dvti_cpu_wait,
                                         NULL,
                                         dvti_cpu_trim,
                                         dvti_cpu_memory,
                                         NULL,
                                         NULL,
                                         dvti_cpu_multiply};
    dvti_heap_open(&dvti_cpu_heap);
    return &backend;
}
