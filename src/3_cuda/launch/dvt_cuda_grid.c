/* Code that all families share: views and divisors for kernels, grids, and the launch in the
   compute stream. */
#include "3_cuda/device/dvt_cuda_device.h"

DVTI_FN void dvti_cuda_view(dvti_kview *k, const dvti_view *view) {
    int axis;
    k->data = view->data;
    k->ndim = view->ndim;
    DVTI_ZERO_8(k->dim);
    DVTI_ZERO_8(k->stride);
    for (axis = 0; axis < view->ndim; axis++) {
        k->dim[axis] = view->dim[axis];
        k->stride[axis] = view->stride[axis];
    }
}

DVTI_FN int64_t dvti_cuda_view_size(const dvti_view *view) {
    int64_t size = 1;
    int axis;
    for (axis = 0; axis < view->ndim; axis++) {
        if (view->dim[axis] == 0)
            return 0;
        size *=
            view->dim[axis]; /* cannot overflow: the memory exists, or broadcasting was checked */
    }
    return size;
}

DVTI_FN dvti_kdivisor dvti_cuda_divisor(int64_t divisor) {
    dvti_kdivisor d;
    d.divisor = DVTI_MAX(divisor, 1);
    d.multiplier = d.shift = 0;
    if (d.divisor > INT32_MAX)
        return d;
    if (d.divisor > 1) /* the divisor's logarithm, rounded up */
        d.shift = 1 + (unsigned)dvti_highest_bit((uint64_t)d.divisor - 1);
    d.multiplier = (unsigned)((uint64_t)(((int64_t)1 << d.shift) - d.divisor) *
                                  ((uint64_t)1 << 32) / (uint64_t)d.divisor +
                              1);
    return d;
}

/* Returns a grid for n elements. Sixteen waves of blocks are enough to keep any GPU full until the
   end; more would only add launch cost. */
DVTI_FN dvti_cuda_grid dvti_cuda_grid_for(const dvti_cuda_gpu *gpu, int64_t n, int threads,
                                          int64_t each) {
    const int64_t waves = (int64_t)gpu->physical->processors * 16;
    dvti_cuda_grid grid;
    grid.x = DVTI_MAX((n - 1) / (threads * each) + 1, 1);
    if (grid.x > waves)
        grid.x = DVTI_MIN(grid.x, waves * (2048 / threads));
    grid.y = grid.z = 1;
    grid.threads = threads;
    grid.shared = 0;
    return grid;
}

/* Compiles the program without the lock. Other threads may queue work meanwhile: the order between
   threads is theirs to keep. So the launch is counted again, and its time begins again. */
static dvt_status dvti_cuda_prepare_unlocked(dvti_cuda_gpu *gpu, const char *name,
                                             const dvti_cuda_program *program) {
    const bool timed = gpu->timed != NULL;
    const int64_t number = timed ? gpu->timed->number : 0;
    dvt_status status;
    gpu->timed = NULL;
    dvti_mutex_unlock(&gpu->lock);
    status = dvti_cuda_prepare(gpu->physical, name, *program);
    dvti_mutex_lock(&gpu->lock);
    if (status == DVT_OK)
        status = dvti_cuda_usable(gpu, name);
    if (status != DVT_OK)
        return status;
    dvti_cuda_remember_again(gpu, name);
    if (timed)
        gpu->timed = dvti_cuda_time_begin(gpu, name, number);
    return DVT_OK;
}

DVTI_FN dvt_status dvti_cuda_find_function(dvti_cuda_gpu *gpu, const char *name,
                                           const dvti_cuda_program *program, const char *entry,
                                           dvti_cu_function *function) {
    dvt_status status;
    if (dvti_cuda_loaded_function(gpu->physical, program, entry, function))
        return DVT_OK;
    if (!gpu->in_group) {
        status = dvti_cuda_prepare_unlocked(gpu, name, program);
        if (status != DVT_OK)
            return status;
    }
    return dvti_cuda_function(gpu->physical, name, *program, entry, function);
}

DVTI_FN dvt_status dvti_cuda_start_zeros(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                         const dvti_view *out) {
    const size_t bytes = (size_t)(dvti_cuda_view_size(out) * dvt_dtype_size(out->dtype));
    dvti_cu_address at = (dvti_cu_address)(uintptr_t)out->data;
    return dvti_cuda_failed(gpu, launch->name, "cuMemsetD8Async",
                            dvti_cuda()->cuMemsetD8Async(at, 0, bytes, gpu->compute));
}

DVTI_FN dvt_status dvti_cuda_start_function(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                            dvti_cu_function function, dvti_cuda_grid grid,
                                            const void *args, size_t bytes) {
    const dvti_cuda_driver *cu = dvti_cuda();
    dvti_cu_result result;
    void *extra[5];
    extra[0] = DVTI_CU_PARAM_POINTER;
    extra[1] = (void *)args; /* the driver does not write to it */
    extra[2] = DVTI_CU_PARAM_SIZE;
    extra[3] = &bytes;
    extra[4] = DVTI_CU_PARAM_END;
    result = cu->cuLaunchKernel(function, (unsigned)grid.x, (unsigned)grid.y, (unsigned)grid.z,
                                (unsigned)grid.threads, 1, 1, (unsigned)grid.shared, gpu->compute,
                                NULL, extra);
    return dvti_cuda_failed(gpu, launch->name, "cuLaunchKernel", result);
}

DVTI_FN dvt_status dvti_cuda_start(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                   const dvti_cuda_program *program, const char *entry,
                                   dvti_cuda_grid grid, const void *args, size_t bytes) {
    dvti_cu_function function;
    dvt_status status = dvti_cuda_find_function(gpu, launch->name, program, entry, &function);
    if (status != DVT_OK)
        return status;
    return dvti_cuda_start_function(gpu, launch, function, grid, args, bytes);
}
