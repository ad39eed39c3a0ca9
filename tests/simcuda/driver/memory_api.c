/* Allocation, pinned host memory, pointer attributes. */
#define _GNU_SOURCE
#include "entry.h"
#include <string.h>
#include <sys/mman.h>

/* ---- device memory ---- */

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t size) {
    region *r;
    ENTER(NEED_HEALTHY | UNSAFE);
    if (!pointer || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    r = region_new(current->dev, current, REGION_DEVICE, size, PAGE);
    if (!r)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pointer = r->address;
    return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
    region *r;
    ENTER(NEED_HEALTHY | UNSAFE);
    if (!pointer)
        return CUDA_SUCCESS;
    r = region_at(pointer);
    if (!r || r->address != pointer || (r->kind != REGION_DEVICE && r->kind != REGION_POOL))
        return fail(CUDA_ERROR_INVALID_VALUE, "cuMemFree: %#llx is not the start of an allocation",
                    (unsigned long long)pointer);
    if (r->freeing || r->state == REGION_FREED)
        return fail(CUDA_ERROR_INVALID_VALUE, "cuMemFree: allocation %llu has been freed before",
                    (unsigned long long)r->number);
    if (r->kind == REGION_DEVICE && r->ctx != current)
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "cuMemFree: allocation %llu is of device %d, the current context of device %d",
                    (unsigned long long)r->number, r->dev->id, current->dev->id);
    context_drain(&r->dev->ctx); /* waits for the device, as the real one does */
    context_drain(r->ctx);       /* a pool may belong to another device than the stream */
    region_free(r);
    return r->dev->ctx.sticky;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    ENTER(NEED_HEALTHY);
    *free_bytes = current->dev->memory - current->dev->used;
    *total = current->dev->memory;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr pointer) {
    region *r;
    ENTER(NEED_HEALTHY);
    r = region_at(pointer);
    if (!r || r->state == REGION_FREED || pointer - r->address >= r->size)
        return CUDA_ERROR_NOT_FOUND;
    if (base)
        *base = r->address;
    if (size)
        *size = r->size;
    return CUDA_SUCCESS;
}

/* ---- pinned host memory ---- */

static CUresult host_alloc(void **pointer, size_t size, unsigned flags) {
    size_t span = (size + PAGE - 1) / PAGE * PAGE;
    char *p;
    if (!pointer || size == 0 || (flags & ~7u))
        return CUDA_ERROR_INVALID_VALUE;
    p = mmap(NULL, span + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    mprotect(p + span, PAGE, PROT_NONE);
    memset(p, 0xFF, span);
    if (!region_host_new(p, size, flags, false)) {
        munmap(p, span + PAGE);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *pointer = p;
    return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **pointer, size_t size, unsigned flags) {
    ENTER(NEED_HEALTHY | UNSAFE);
    return host_alloc(pointer, size, flags);
}

CUresult cuMemAllocHost_v2(void **pointer, size_t size) {
    ENTER(NEED_HEALTHY | UNSAFE);
    return host_alloc(pointer, size, 0);
}

CUresult cuMemFreeHost(void *pointer) {
    region *r;
    size_t span;
    ENTER(NEED_HEALTHY | UNSAFE);
    if (!pointer)
        return CUDA_SUCCESS;
    r = region_host(pointer);
    if (!r || r->address != (uint64_t)(uintptr_t)pointer || r->registered)
        return fail(CUDA_ERROR_INVALID_VALUE, "cuMemFreeHost: %p is not from cuMemHostAlloc",
                    pointer);
    for (int i = 0; i < device_count; i++)
        context_drain(&devices[i].ctx);
    span = (r->size + PAGE - 1) / PAGE * PAGE;
    region_host_free(r);
    munmap(pointer, span + PAGE);
    return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void *pointer, size_t size, unsigned flags) {
    const char *end = (const char *)pointer + size;
    ENTER(NEED_HEALTHY);
    if (!pointer || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (region *r = region_first(); r; r = r->next)
        if (r->kind == REGION_HOST && (char *)(uintptr_t)r->address < end &&
            (uint64_t)(uintptr_t)pointer < r->address + r->size)
            return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    return region_host_new(pointer, size, flags, true) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemHostUnregister(void *pointer) {
    region *r;
    ENTER(NEED_HEALTHY);
    r = region_host(pointer);
    if (!r || !r->registered || r->address != (uint64_t)(uintptr_t)pointer)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    for (int i = 0; i < device_count; i++)
        context_drain(&devices[i].ctx);
    region_host_free(r);
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device_pointer, void *pointer, unsigned flags) {
    ENTER(NEED_HEALTHY);
    if (flags || !region_host(pointer))
        return CUDA_ERROR_INVALID_VALUE;
    *device_pointer = (CUdeviceptr)(uintptr_t)pointer; /* unified addressing */
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned *flags, void *pointer) {
    region *r;
    ENTER(NEED_HEALTHY);
    r = region_host(pointer);
    if (!r)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = r->flags | CU_MEMHOSTALLOC_DEVICEMAP;
    return CUDA_SUCCESS;
}

/* ---- pointer attributes ---- */

static CUresult pointer_attribute(void *data, CUpointer_attribute attribute, CUdeviceptr pointer) {
    region *r =
        in_device_space(pointer) ? region_at(pointer) : region_host((void *)(uintptr_t)pointer);
    bool host = r && r->kind == REGION_HOST;
    if (!r || r->state == REGION_FREED || pointer - r->address >= r->size)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data =
            (CUcontext)(r->kind == REGION_POOL || r->kind == REGION_MAPPED ? NULL : r->ctx);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(CUmemorytype *)data = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)data = pointer;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!host)
            return CUDA_ERROR_INVALID_VALUE;
        *(void **)data = (void *)(uintptr_t)pointer;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)data = r->number;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *(unsigned *)data = 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = r->dev->id;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)data = r->address;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)data = r->size;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned *)data = 1;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)data = (CUmemoryPool)r->pool;
        return CUDA_SUCCESS;
    default:
        return fail(CUDA_ERROR_NOT_SUPPORTED,
                    "cuPointerGetAttribute: attribute %d is not simulated", (int)attribute);
    }
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr pointer) {
    ENTER(NEED_CONTEXT);
    return data ? pointer_attribute(data, attribute, pointer) : CUDA_ERROR_INVALID_VALUE;
}

/* This form never fails for an ordinary host pointer: it returns zeros. */
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **data,
                                CUdeviceptr pointer) {
    ENTER(NEED_CONTEXT);
    if (!attributes || !data)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        CUresult code = pointer_attribute(data[i], attributes[i], pointer);
        if (code == CUDA_ERROR_NOT_SUPPORTED)
            return code;
        if (code == CUDA_SUCCESS)
            continue;
        if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            *(int *)data[i] = -2; /* the real driver's value for unknown memory */
        else if (attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE ||
                 attributes[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED ||
                 attributes[i] == CU_POINTER_ATTRIBUTE_MAPPED)
            *(unsigned *)data[i] = 0;
        else
            memset(data[i], 0, sizeof(void *));
    }
    return CUDA_SUCCESS;
}
