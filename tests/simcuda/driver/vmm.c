/* Virtual memory management: address reservations, separate from the memory mapped into them.
   Physical memory is an in-memory file, so mapping it twice shows the same bytes, as on a GPU. */
#define _GNU_SOURCE
#include "entry.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GRANULARITY = 2 << 20 };

typedef struct physical {
    object object;
    device *dev;
    uint64_t size;
    int file;
    int uses;      /* mappings */
    bool released; /* freed when the last mapping is removed */
} physical;

typedef struct reservation {
    uint64_t address, size;
    struct reservation *next;
} reservation;

static reservation *reservations;

static bool closed_personality(void) {
    return settings.no_vmm || settings.driver < 10020;
}

static reservation *reservation_of(uint64_t address, uint64_t size) {
    for (reservation *r = reservations; r; r = r->next)
        if (address >= r->address && size <= r->size && address - r->address <= r->size - size)
            return r;
    return NULL;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option) {
    ENTER(NEED_INIT);
    if (closed_personality())
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!granularity || !prop || (unsigned)option > 1 || !device_get(prop->location.id))
        return CUDA_ERROR_INVALID_VALUE;
    *granularity = GRANULARITY;
    return CUDA_SUCCESS;
}

static reservation *overlapping(uint64_t address, uint64_t size) {
    for (reservation *r = reservations; r; r = r->next)
        if (address < r->address + r->size && r->address < address + size)
            return r;
    return NULL;
}

/* Finds addresses that overlap no reservation. The table of regions does not contain reservations,
   so each try continues after the previous one. */
static uint64_t find_addresses(uint64_t size, uint64_t align, uint64_t wanted) {
    size_t tries = 2;
    for (const reservation *r = reservations; r; r = r->next)
        tries += 2;
    while (tries-- > 0) {
        uint64_t at = region_reserve(device_count, size, align, wanted);
        if (!at || !overlapping(at, size))
            return at;
        wanted = 0;
    }
    return 0;
}

CUresult cuMemAddressReserve(CUdeviceptr *out, size_t size, size_t align, CUdeviceptr wanted,
                             unsigned long long flags) {
    reservation *r;
    ENTER(NEED_INIT);
    if (closed_personality())
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!out || size == 0 || size % GRANULARITY || (align & (align - 1)) || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!(r = calloc(1, sizeof *r)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    r->size = size;
    r->address = find_addresses(size, align > GRANULARITY ? align : GRANULARITY, wanted);
    if (!r->address) {
        free(r);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    r->next = reservations;
    reservations = r;
    *out = r->address;
    return CUDA_SUCCESS;
}

static region *mapping_in(uint64_t address, uint64_t size) {
    for (uint64_t at = address; at < address + size; at += GRANULARITY) {
        region *r = region_at(at);
        if (r && r->kind == REGION_MAPPED && r->state != REGION_FREED)
            return r;
    }
    return NULL;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t size) {
    reservation **at = &reservations, *r;
    ENTER(NEED_INIT);
    while (*at && ((*at)->address != address || (*at)->size != size))
        at = &(*at)->next;
    if (!(r = *at))
        return CUDA_ERROR_INVALID_VALUE;
    if (mapping_in(address, size))
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "cuMemAddressFree: memory is still mapped in the range");
    *at = r->next;
    free(r);
    return CUDA_SUCCESS;
}

/* ---- physical memory ---- */

static void physical_drop(physical *p) {
    if (p->uses > 0 || !p->released)
        return;
    p->dev->used -= p->size;
    close(p->file);
    object_retire(p);
}

static bool poison(int file, uint64_t size) {
    char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (p == MAP_FAILED)
        return false;
    memset(p, 0xFF, size);
    munmap(p, size);
    return true;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t size,
                     const CUmemAllocationProp *prop, unsigned long long flags) {
    physical *p;
    device *d;
    ENTER(NEED_INIT);
    if (closed_personality())
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!out || !prop || flags || size == 0 || size % GRANULARITY ||
        prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!(d = device_get(prop->location.id)))
        return CUDA_ERROR_INVALID_DEVICE;
    if (size > d->memory || d->used > d->memory - size)
        pools_trim(d, true);
    if (size > d->memory || d->used > d->memory - size)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!(p = object_new(KIND_PHYSICAL, NULL, sizeof *p)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    p->dev = d;
    p->size = size;
    p->file = memfd_create("simcuda", MFD_CLOEXEC);
    d->used += size;
    if (p->file < 0 || ftruncate(p->file, (off_t)size) != 0 || !poison(p->file, size)) {
        p->released = true;
        physical_drop(p);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = (CUmemGenericAllocationHandle)(uintptr_t)p;
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    physical *p;
    ENTER(NEED_INIT);
    p = object_get((void *)(uintptr_t)handle, KIND_PHYSICAL);
    if (!p || p->released)
        return CUDA_ERROR_INVALID_VALUE;
    p->released = true;
    physical_drop(p);
    return CUDA_SUCCESS;
}

/* ---- mapping ---- */

static bool map_both(uint64_t address, uint64_t size, int file) {
    void *front = (void *)(uintptr_t)address;
    int flags =
        file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED : MAP_SHARED | MAP_FIXED;
    return mmap(front, size, PROT_NONE, flags, file, 0) != MAP_FAILED &&
           mmap(backdoor(address), size, PROT_READ | PROT_WRITE, flags, file, 0) != MAP_FAILED;
}

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
    physical *p;
    region *r;
    ENTER(NEED_INIT);
    p = object_get((void *)(uintptr_t)handle, KIND_PHYSICAL);
    if (!p || flags || offset != 0 || size == 0 || size != p->size || address % GRANULARITY ||
        !reservation_of(address, size) || mapping_in(address, size))
        return fail(
            CUDA_ERROR_INVALID_VALUE,
            "cuMemMap: the range must be reserved and free, and have the size of the memory");
    if (!(r = calloc(1, sizeof *r)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    memory_close();
    if (!map_both(address, size, p->file)) {
        free(r);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    r->address = address;
    r->size = r->span = size;
    r->kind = REGION_MAPPED;
    r->state = REGION_LIVE;
    r->dev = p->dev;
    r->ctx = &p->dev->ctx;
    r->physical = p;
    p->uses++;
    region_place(r);
    return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
    uint64_t at = address;
    ENTER(NEED_INIT);
    while (at < address + size) { /* whole mappings only */
        region *r = region_at(at);
        if (!r || r->kind != REGION_MAPPED || r->state == REGION_FREED || r->address != at)
            break;
        at += r->size;
    }
    if (size == 0 || at != address + size)
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "cuMemUnmap: the range is not made of whole mappings");
    for (int i = 0; i < device_count; i++)
        context_drain(&devices[i].ctx);
    memory_close();
    for (at = address; at < address + size;) {
        region *r = region_at(at);
        physical *p = r->physical;
        at += r->size;
        r->state = REGION_FREED;
        region_forget_shadow(r);
        if (!map_both(r->address, r->size, -1))
            return CUDA_ERROR_OUT_OF_MEMORY;
        p->uses--;
        physical_drop(p);
    }
    return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *list,
                        size_t count) {
    ENTER(NEED_INIT);
    if (!list || count == 0 || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (uint64_t at = address; at < address + size;) {
        region *r = region_at(at);
        if (!r || r->kind != REGION_MAPPED || r->state == REGION_FREED || r->address != at)
            return CUDA_ERROR_INVALID_VALUE;
        at += r->size;
        for (size_t i = 0; i < count; i++) {
            device *d = device_get(list[i].location.id);
            if (!d || list[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
                return CUDA_ERROR_INVALID_DEVICE;
            if (d != r->dev && settings.peers == PEER_NO)
                return CUDA_ERROR_INVALID_DEVICE;
            r->access &= ~((uint64_t)0x100000001 << d->id);
            if (list[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
                r->access |= (uint64_t)0x100000001 << d->id;
            else if (list[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
                r->access |= (uint64_t)0x100000000 << d->id;
        }
    }
    return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                        CUdeviceptr address) {
    region *r;
    ENTER(NEED_INIT);
    r = region_at(address);
    if (!flags || !location || !device_get(location->id) || !r || r->kind != REGION_MAPPED ||
        r->state == REGION_FREED)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = r->access >> location->id & 1          ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
             : r->access >> (32 + location->id) & 1 ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                                    : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                CUmemGenericAllocationHandle handle) {
    physical *p;
    ENTER(NEED_INIT);
    p = object_get((void *)(uintptr_t)handle, KIND_PHYSICAL);
    if (!p || !prop)
        return CUDA_ERROR_INVALID_VALUE;
    memset(prop, 0, sizeof *prop);
    prop->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop->location.id = p->dev->id;
    return CUDA_SUCCESS;
}
