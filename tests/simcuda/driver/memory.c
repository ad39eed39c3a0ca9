/* Device memory: address space, regions, bounds. Each device has an arena of addresses, and one
   more is for mapped memory (vmm.c). All arenas lie in one reservation, which maps one in-memory
   file twice. The front mapping has the addresses that users and kernels see. It is inaccessible
   except while a kernel runs, so a host access through a device pointer faults. The driver uses the
   back mapping.

   Addresses increase and are reused only when the arena is used up, so a stale pointer hits a dead
   region for as long as possible. Each region has its own pages and one guard page after it. */
#define _GNU_SOURCE
#include "sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char *front, *back;    /* the two mappings */
static uint64_t arena, total; /* bytes of one arena, of all */
static region **pages;        /* per page: the region that covers or last covered it */
static uint64_t *cursor;      /* per arena: where the next search for free space starts */
static bool open_now;
static region *regions;
static uint64_t numbers;

CUresult memory_start(void) {
    int file = memfd_create("simcuda", MFD_CLOEXEC);
    arena = settings.arena;
    total = arena * (uint64_t)(device_count + 1);
    if (file < 0 || ftruncate(file, (off_t)total) != 0)
        return fail(CUDA_ERROR_OUT_OF_MEMORY, "cuInit: no file in memory of %llu bytes",
                    (unsigned long long)total);
    front = mmap(NULL, total, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
    back = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    pages = mmap(NULL, total / PAGE * sizeof *pages, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cursor = calloc((size_t)device_count + 1, sizeof *cursor);
    close(file);
    if (front == MAP_FAILED || back == MAP_FAILED || (void *)pages == MAP_FAILED || !cursor)
        return fail(CUDA_ERROR_OUT_OF_MEMORY, "cuInit: no address space of twice %llu bytes",
                    (unsigned long long)total);
    /* After a fork the child must not use the parent's device. */
    madvise(front, total, MADV_DONTFORK);
    return CUDA_SUCCESS;
}

char *backdoor(uint64_t address) {
    return back + (address - (uint64_t)(uintptr_t)front);
}

bool in_device_space(uint64_t address) {
    return front && address - (uint64_t)(uintptr_t)front < total;
}

void memory_open(void) {
    if (!open_now && mprotect(front, total, PROT_READ | PROT_WRITE) != 0)
        abort();
    open_now = true;
}

void memory_close(void) {
    if (open_now && mprotect(front, total, PROT_NONE) != 0)
        abort();
    open_now = false;
}

region *region_first(void) {
    return regions;
}

region *region_at(uint64_t address) {
    return in_device_space(address) ? pages[(address - (uint64_t)(uintptr_t)front) / PAGE] : NULL;
}

/* ---- addresses ---- */

/* Returns the first address in the arena from `at` on where the span fits between regions in
   use. */
static uint64_t space_from(uint64_t at, uint64_t end, uint64_t span, uint64_t align) {
    at = (at + align - 1) & ~(align - 1);
    for (uint64_t p = at; at + span <= end;) {
        const region *r = pages[(p - (uint64_t)(uintptr_t)front) / PAGE];
        if (r && r->state != REGION_FREED) {
            at = (r->address + r->span + PAGE + align - 1) & ~(align - 1);
            p = at;
        } else if ((p += PAGE) >= at + span) {
            return at;
        }
    }
    return 0;
}

static void region_unlink(region *r) {
    if (r->prev)
        r->prev->next = r->next;
    else
        regions = r->next;
    if (r->next)
        r->next->prev = r->prev;
    region_forget_shadow(r);
    free(r);
}

uint64_t region_reserve(int number, uint64_t size, uint64_t align, uint64_t wanted) {
    uint64_t start = (uint64_t)(uintptr_t)front + arena * (uint64_t)number;
    uint64_t span = (size + PAGE - 1) / PAGE * PAGE, at = 0;
    if (span > arena || align > arena)
        return 0;
    if (align < PAGE)
        align = PAGE;
    if (wanted >= start && wanted + span <= start + arena && wanted % align == 0 &&
        space_from(wanted, wanted + span, span, align) == wanted)
        at = wanted;
    if (!at) /* the first page stays inaccessible */
        at = space_from(start + PAGE + cursor[number], start + arena, span + PAGE, align);
    if (!at)
        at = space_from(start + PAGE, start + arena, span + PAGE, align);
    if (at)
        cursor[number] = at + span + PAGE - start - PAGE;
    return at;
}

static void region_link(region *r) {
    r->shadow_shift = 2; /* records of 4 bytes, until a smaller access comes */
    r->number = ++numbers;
    r->next = regions;
    if (regions)
        regions->prev = r;
    regions = r;
}

void region_place(region *r) {
    region **page = &pages[(r->address - (uint64_t)(uintptr_t)front) / PAGE];
    /* Forgets regions that are covered even in part, because their addresses now belong to another
       region. */
    for (uint64_t i = 0; i < r->span / PAGE; i++) {
        region *old = page[i];
        if (old && old != r) {
            region **first = &pages[(old->address - (uint64_t)(uintptr_t)front) / PAGE];
            for (uint64_t j = 0; j < old->span / PAGE; j++)
                if (first[j] == old)
                    first[j] = NULL;
            region_unlink(old);
        }
        page[i] = r;
    }
    region_link(r);
}

void region_displace(region *r) {
    region **page = &pages[(r->address - (uint64_t)(uintptr_t)front) / PAGE];
    for (uint64_t i = 0; i < r->span / PAGE; i++)
        page[i] = NULL;
    region_unlink(r);
}

/* ---- regions ---- */

region *region_new(device *d, context *ctx, region_kind kind, uint64_t size, uint64_t align) {
    region *r;
    if (kind == REGION_DEVICE && (size > d->memory || d->used > d->memory - size)) {
        pools_trim(d, true);
        if (size > d->memory || d->used > d->memory - size)
            return NULL;
    }
    r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->size = size;
    r->span = (size + PAGE - 1) / PAGE * PAGE;
    r->kind = kind;
    r->dev = d;
    r->ctx = ctx;
    r->state = REGION_LIVE;
    r->address = region_reserve(d->id, r->span, align, 0);
    if (!r->address) {
        free(r);
        return NULL;
    }
    region_place(r);
    if (kind == REGION_DEVICE)
        d->used += size;
    memset(backdoor(r->address), 0xFF, r->span); /* NaN: exposes reads of unwritten memory */
    return r;
}

void region_free(region *r) {
    if (r->kind == REGION_DEVICE)
        r->dev->used -= r->size;
    if (r->kind == REGION_POOL)
        pool_give(r->pool, r->size);
    r->state = REGION_FREED;
    region_forget_shadow(r);
    madvise(backdoor(r->address), r->span, MADV_REMOVE);
}

/* ---- pinned host memory: few blocks, in a list of their own ---- */

static region *host_regions;

region *region_host(const void *p) {
    uint64_t address = (uint64_t)(uintptr_t)p;
    for (region *r = host_regions; r; r = r->physical)
        if (address - r->address < r->size)
            return r;
    return NULL;
}

region *region_host_new(void *p, uint64_t size, unsigned flags, bool registered) {
    region *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->address = (uint64_t)(uintptr_t)p;
    r->size = size;
    r->kind = REGION_HOST;
    r->state = REGION_LIVE;
    r->flags = flags;
    r->registered = registered;
    r->ctx = current;
    r->dev = current->dev;
    r->physical = host_regions;
    host_regions = r;
    region_link(r);
    return r;
}

void region_host_free(region *r) {
    region **at = &host_regions;
    while (*at != r)
        at = (region **)&(*at)->physical;
    *at = r->physical;
    region_unlink(r);
}

/* ---- bounds ---- */

/* Returns the region before or after a guard page, for messages; a live one if possible. */
static const region *adjacent_region(uint64_t address) {
    const region *below = region_at(address - PAGE), *above = region_at(address + PAGE);
    bool live_above = above && above->state != REGION_FREED;
    return below && (below->state != REGION_FREED || !live_above) ? below : above;
}

static void explain(const region *r, uint64_t address, uint64_t size, char *why, size_t capacity) {
    unsigned long long n = size, at = address, id = r->number, whole = r->size;
    if (address < r->address)
        snprintf(why, capacity,
                 "%llu bytes at %#llx start %llu bytes before allocation %llu of %llu bytes", n, at,
                 (unsigned long long)(r->address - address), id, whole);
    else if (r->state == REGION_FREED && address - r->address < r->span)
        snprintf(why, capacity,
                 "use after free: %llu bytes at %#llx, %llu bytes into allocation %llu of %llu "
                 "bytes, which "
                 "has been freed",
                 n, at, (unsigned long long)(address - r->address), id, whole);
    else
        snprintf(why, capacity,
                 "%llu bytes at %#llx end %llu bytes past the end of allocation %llu of %llu bytes",
                 n, at, (unsigned long long)(address + size - r->address - r->size), id, whole);
}

region *region_check(uint64_t address, uint64_t size, char *why, size_t capacity) {
    bool ours = in_device_space(address);
    region *r = ours ? region_at(address) : region_host((void *)(uintptr_t)address);
    const region *near = r;
    if (r && r->state != REGION_FREED && address - r->address < r->size &&
        size <= r->size - (address - r->address))
        return r;
    if (!near && ours)
        near = adjacent_region(address);
    if (near)
        explain(near, address, size, why, capacity);
    else
        snprintf(why, capacity,
                 ours ? "%#llx is outside every allocation" : "%#llx is not device memory",
                 (unsigned long long)address);
    return NULL;
}
