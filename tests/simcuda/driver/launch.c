/* Launches: their limits and their parameters. */
#include "entry.h"
#include <stdlib.h>
#include <string.h>

static CUresult check_shape(const function *f, sim_u3 grid, sim_u3 block) {
    sim_u3 required = f->kernel->required_threads;
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    const char *name = f->kernel->name;
    if (threads == 0 || (uint64_t)grid.x * grid.y == 0 || grid.z == 0)
        return fail(CUDA_ERROR_INVALID_VALUE, "launch of %s: an empty grid or block", name);
    if (grid.x > 0x7FFFFFFF || grid.y > 65535 || grid.z > 65535)
        return fail(CUDA_ERROR_INVALID_VALUE, "launch of %s: a grid of %u,%u,%u is too large", name,
                    grid.x, grid.y, grid.z);
    if (block.x > 1024 || block.y > 1024 || block.z > 64 || threads > function_max_threads(f))
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "launch of %s: %llu threads in a block (%u,%u,%u), at most %u are "
                    "possible",
                    name, (unsigned long long)threads, block.x, block.y, block.z,
                    function_max_threads(f));
    if (required.x && (required.x != block.x || required.y != block.y || required.z != block.z))
        return fail(CUDA_ERROR_INVALID_VALUE, "launch of %s: compiled for blocks of %u,%u,%u", name,
                    required.x, required.y, required.z);
    if (threads * (uint64_t)function_registers(f) > 65536)
        return fail(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "launch of %s: too many registers", name);
    return CUDA_SUCCESS;
}

static CUresult pack(char *to, const sim_kernel *k, void **params) {
    for (uint32_t i = 0; i < k->params; i++) {
        if (!params[i])
            return fail(CUDA_ERROR_INVALID_VALUE, "launch of %s: parameter %u is NULL", k->name, i);
        memcpy(to + k->param[i].offset, params[i], k->param[i].size);
    }
    return CUDA_SUCCESS;
}

/* The real driver reads as many bytes as the kernel has and may accept a wrong size. Here the sizes
   must agree to the byte. */
static CUresult unpack(char *to, const sim_kernel *k, void **extra) {
    const void *buffer = NULL;
    const size_t *size = NULL;
    for (int i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[i + 1];
        else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = extra[i + 1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (!buffer || !size)
        return CUDA_ERROR_INVALID_VALUE;
    if (*size != k->params_size)
        return fail(CUDA_ERROR_INVALID_VALUE, "launch of %s: %zu bytes of parameters, it has %u",
                    k->name, *size, k->params_size);
    memcpy(to, buffer, *size);
    return CUDA_SUCCESS;
}

CUresult launch_plan_make(launch_plan *plan, void **params, void **extra) {
    const function *f = plan->function;
    const sim_kernel *k = f->kernel;
    CUresult code = check_shape(f, plan->grid, plan->block);
    if (code != CUDA_SUCCESS)
        return code;
    if (plan->dynamic > (uint32_t)(f->max_dynamic > 0 ? f->max_dynamic : 0))
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "launch of %s: %u bytes of dynamic shared memory, %d are possible; more than "
                    "48 KB must be asked "
                    "for with cuFuncSetAttribute",
                    k->name, plan->dynamic, f->max_dynamic);
    if ((params && extra) || (!params && !extra && k->params > 0))
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "launch of %s: parameters come either as a list or as a buffer", k->name);
    for (uint32_t i = 0; extra && i < k->params; i++)
        if (k->param[i].align > 16) /* the base of all parameters is a multiple of 16 */
            return fail(CUDA_ERROR_INVALID_VALUE,
                        "launch of %s: ptxas moves a parameter that is aligned to %u bytes, so "
                        "parameters come as a list",
                        k->name, k->param[i].align);
    if (plan->cooperative &&
        (uint64_t)plan->grid.x * plan->grid.y * plan->grid.z >
            (uint64_t)settings.multiprocessors *
                occupancy_blocks(f->object.ctx->dev, f,
                                 plan->block.x * plan->block.y * plan->block.z, plan->dynamic))
        return fail(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
                    "launch of %s: not all blocks fit on the device at once", k->name);
    plan->params = calloc(1, (size_t)k->params_size + 1);
    if (!plan->params)
        return CUDA_ERROR_OUT_OF_MEMORY;
    code = extra    ? unpack(plan->params, k, extra)
           : params ? pack(plan->params, k, params)
                    : CUDA_SUCCESS;
    if (code != CUDA_SUCCESS) {
        free(plan->params);
        plan->params = NULL;
    }
    return code;
}

static CUresult launch(CUfunction handle, sim_u3 grid, sim_u3 block, uint32_t dynamic,
                       CUstream stream_handle, void **params, void **extra, bool cooperative) {
    function *f = object_get(handle, KIND_FUNCTION);
    stream *s = stream_get(stream_handle);
    op o = {.kind = OP_KERNEL};
    CUresult code;
    if (!f || !s)
        return CUDA_ERROR_INVALID_HANDLE;
    if (f->object.ctx != s->object.ctx)
        return fail(CUDA_ERROR_INVALID_HANDLE,
                    "launch of %s: the kernel was loaded on device %d, the stream is of "
                    "device %d",
                    f->kernel->name, f->object.ctx->dev->id, s->object.ctx->dev->id);
    o.launch.function = f;
    o.launch.grid = grid;
    o.launch.block = block;
    o.launch.dynamic = dynamic;
    o.launch.cooperative = cooperative;
    code = launch_plan_make(&o.launch, params, extra);
    return code == CUDA_SUCCESS ? stream_push(s, &o) : code;
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned dynamic, CUstream s, void **params,
                        void **extra) {
    ENTER(NEED_HEALTHY);
    return launch(f, (sim_u3){gx, gy, gz}, (sim_u3){bx, by, bz}, dynamic, s, params, extra, false);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                   unsigned by, unsigned bz, unsigned dynamic, CUstream s,
                                   void **params) {
    ENTER(NEED_HEALTHY);
    return launch(f, (sim_u3){gx, gy, gz}, (sim_u3){bx, by, bz}, dynamic, s, params, NULL, true);
}

/* Attributes that are only hints may be ignored. Those that change what a kernel can do are
   rejected. */
static CUresult attribute(const CUlaunchAttribute *a, bool *cooperative) {
    switch (a->id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        *cooperative = a->value.cooperative != 0;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        if (a->value.clusterDim.x == 1 && a->value.clusterDim.y == 1 && a->value.clusterDim.z == 1)
            return CUDA_SUCCESS;
        return fail(CUDA_ERROR_NOT_SUPPORTED,
                    "cuLaunchKernelEx: clusters are not supported by this device");
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return CUDA_SUCCESS;
    default:
        return fail(CUDA_ERROR_NOT_SUPPORTED, "cuLaunchKernelEx: attribute %d is not simulated",
                    (int)a->id);
    }
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **params, void **extra) {
    bool cooperative = false;
    ENTER(NEED_HEALTHY);
    if (!c || (c->numAttrs && !c->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < c->numAttrs; i++) {
        CUresult code = attribute(&c->attrs[i], &cooperative);
        if (code != CUDA_SUCCESS)
            return code;
    }
    return launch(f, (sim_u3){c->gridDimX, c->gridDimY, c->gridDimZ},
                  (sim_u3){c->blockDimX, c->blockDimY, c->blockDimZ}, c->sharedMemBytes, c->hStream,
                  params, extra, cooperative);
}
