/* Kernel resource usage, occupancy, and function attributes. Registers are not allocated: every
   kernel has 32 registers, or as many as its launch bounds allow. Modules that count carry the
   report of ptxas, whose registers are the real ones. */
#include "entry.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REGISTERS = 65536, PLAIN_SHARED = 49152, RESERVED_SHARED = 1024 };

/* Returns the number before `unit` in the text, 0 when there is none. */
static int number_before(const char *text, const char *unit) {
    const char *at = strstr(text, unit);
    while (at && at > text && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return at ? atoi(at) : 0;
}

bool function_usage(const function *f, kernel_usage *usage) {
    static const char begin[] = "Compiling entry function";
    char text[1024], named[512];
    const char *at = f->module->code->usage;
    snprintf(named, sizeof named, "%s '%.400s'", begin, f->kernel->name);
    at = at ? strstr(at, named) : NULL;
    memset(usage, 0, sizeof *usage);
    if (!at)
        return false;
    snprintf(text, sizeof text, "%s", at + strlen(named));
    at = text;
    if (strstr(text, begin))
        *strstr(text, begin) = 0; /* the next kernel */
    usage->registers = number_before(at, " registers");
    usage->shared = number_before(at, " bytes smem");
    usage->stack = number_before(at, " bytes stack frame");
    usage->spills =
        number_before(at, " bytes spill stores") + number_before(at, " bytes spill loads");
    return usage->registers > 0;
}

int function_registers(const function *f) {
    kernel_usage usage;
    if (function_usage(f, &usage))
        return usage.registers;
    uint32_t bound = f->kernel->max_threads;
    return bound && bound * 32 > REGISTERS ? (int)(REGISTERS / bound) : 32;
}

uint32_t function_max_threads(const function *f) {
    uint32_t bound = f->kernel->max_threads;
    return bound && bound < 1024 ? bound : 1024;
}

static int most_shared(const function *f) {
    return device_attribute(f->object.ctx->dev,
                            CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute name, CUfunction handle) {
    const function *f;
    const device *d;
    ENTER(NEED_INIT);
    if (!(f = object_get(handle, KIND_FUNCTION)))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    d = f->object.ctx->dev;
    switch (name) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = (int)function_max_threads(f);
        break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = (int)f->kernel->static_shared;
        break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = (int)f->kernel->local_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = function_registers(f);
        break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = 10 * d->major + d->minor;
        break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        *value = 0;
        break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = f->max_dynamic;
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = f->carveout;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute name, int value) {
    function *f;
    ENTER(NEED_HEALTHY);
    if (!(f = object_get(handle, KIND_FUNCTION)))
        return CUDA_ERROR_INVALID_HANDLE;
    if (name == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        if (value < 0 || value > most_shared(f) - (int)f->kernel->static_shared)
            return fail(CUDA_ERROR_INVALID_VALUE,
                        "cuFuncSetAttribute: %d bytes of dynamic shared memory, %s can have "
                        "%d",
                        value, f->kernel->name, most_shared(f) - (int)f->kernel->static_shared);
        f->max_dynamic = value;
        return CUDA_SUCCESS;
    }
    if (name == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT && value >= -1 && value <= 100) {
        f->carveout = value;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache preference) {
    ENTER(NEED_HEALTHY);
    if ((unsigned)preference > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    return object_get(handle, KIND_FUNCTION) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncGetModule(CUmodule *out, CUfunction handle) {
    const function *f;
    ENTER(NEED_INIT);
    f = object_get(handle, KIND_FUNCTION);
    if (!f || !out)
        return f ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    *out = (CUmodule)f->module;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction handle) {
    const function *f;
    ENTER(NEED_INIT);
    f = object_get(handle, KIND_FUNCTION);
    if (!f || !name)
        return f ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    *name = f->kernel->name;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t i, size_t *offset, size_t *size) {
    const function *f;
    ENTER(NEED_INIT);
    if (!(f = object_get(handle, KIND_FUNCTION)))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!offset || i >= f->kernel->params)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = f->kernel->param[i].offset;
    if (size)
        *size = f->kernel->param[i].size;
    return CUDA_SUCCESS;
}

/* ---- occupancy ---- */

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

uint32_t occupancy_blocks(const device *d, const function *f, uint32_t threads, uint32_t dynamic) {
    uint32_t warps = (threads + 31) / 32;
    uint32_t shared = f->kernel->static_shared + dynamic + (d->major >= 8 ? RESERVED_SHARED : 0);
    uint32_t registers = (uint32_t)function_registers(f) * 32 * warps;
    uint32_t blocks =
        (uint32_t)device_attribute(d, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    blocks = least(
        blocks, (uint32_t)device_attribute(d, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) /
                    32 / warps);
    blocks = least(blocks, REGISTERS / registers);
    if (shared > 0)
        blocks = least(blocks, (uint32_t)device_attribute(
                                   d, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) /
                                   shared);
    return blocks;
}

static CUresult active_blocks(int *blocks, CUfunction handle, int threads, size_t dynamic) {
    const function *f = object_get(handle, KIND_FUNCTION);
    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!blocks || threads <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    *blocks =
        threads > (int)function_max_threads(f) || dynamic > (size_t)most_shared(f)
            ? 0
            : (int)occupancy_blocks(f->object.ctx->dev, f, (uint32_t)threads, (uint32_t)dynamic);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction f, int threads,
                                                     size_t dynamic) {
    ENTER(NEED_HEALTHY);
    return active_blocks(blocks, f, threads, dynamic);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction f,
                                                              int threads, size_t dynamic,
                                                              unsigned flags) {
    ENTER(NEED_HEALTHY);
    if (flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
        return CUDA_ERROR_INVALID_VALUE;
    return active_blocks(blocks, f, threads, dynamic);
}

static CUresult potential(int *grid, int *block, CUfunction handle, CUoccupancyB2DSize size_of,
                          size_t dynamic, int limit) {
    const function *f = object_get(handle, KIND_FUNCTION);
    uint32_t best = 0;
    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!grid || !block)
        return CUDA_ERROR_INVALID_VALUE;
    *grid = *block = 0;
    for (uint32_t threads = function_max_threads(f) / 32 * 32; threads >= 32; threads -= 32) {
        size_t bytes = size_of ? size_of((int)threads) : dynamic;
        uint32_t blocks;
        if ((limit > 0 && threads > (uint32_t)limit) || bytes > (size_t)most_shared(f))
            continue;
        blocks = occupancy_blocks(f->object.ctx->dev, f, threads, (uint32_t)bytes);
        if (blocks * threads > best) {
            best = blocks * threads;
            *block = (int)threads;
            *grid = (int)blocks * settings.multiprocessors;
        }
    }
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction f,
                                          CUoccupancyB2DSize size_of, size_t dynamic, int limit) {
    ENTER(NEED_HEALTHY);
    return potential(grid, block, f, size_of, dynamic, limit);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction f,
                                                   CUoccupancyB2DSize size_of, size_t dynamic,
                                                   int limit, unsigned flags) {
    ENTER(NEED_HEALTHY);
    if (flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
        return CUDA_ERROR_INVALID_VALUE;
    return potential(grid, block, f, size_of, dynamic, limit);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamic, CUfunction handle, int blocks,
                                                 int threads) {
    const function *f;
    int whole, share;
    ENTER(NEED_HEALTHY);
    if (!(f = object_get(handle, KIND_FUNCTION)))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!dynamic || blocks <= 0 || threads <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    whole = device_attribute(f->object.ctx->dev,
                             CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    share = whole / blocks - RESERVED_SHARED - (int)f->kernel->static_shared;
    if (share > most_shared(f) - (int)f->kernel->static_shared)
        share = most_shared(f) - (int)f->kernel->static_shared;
    *dynamic = share > 0 ? (size_t)share : 0;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction handle,
                                      const CUlaunchConfig *shape) {
    ENTER(NEED_HEALTHY);
    (void)shape;
    if (!clusters || !object_get(handle, KIND_FUNCTION))
        return CUDA_ERROR_INVALID_VALUE;
    return fail(CUDA_ERROR_NOT_SUPPORTED,
                "cuOccupancyMaxActiveClusters: these devices have no clusters");
}

CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction handle,
                                            const CUlaunchConfig *shape) {
    ENTER(NEED_HEALTHY);
    (void)shape;
    if (!size || !object_get(handle, KIND_FUNCTION))
        return CUDA_ERROR_INVALID_VALUE;
    return fail(CUDA_ERROR_NOT_SUPPORTED,
                "cuOccupancyMaxPotentialClusterSize: these devices have no clusters");
}
