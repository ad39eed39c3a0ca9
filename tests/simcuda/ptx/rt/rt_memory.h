/* Addresses, their checks, loads and stores, local arrays, cp.async, faults and the instruction
   budget. */
#ifndef RT_MEMORY_H
#define RT_MEMORY_H

#include "rt_base.h"

#ifndef SIM_CHECK
#define SIM_CHECK 1
#endif
#ifndef SIM_COUNT
#define SIM_COUNT 0
#endif
#ifndef SIM_ASYNC
#define SIM_ASYNC 0
#endif

extern void *malloc(size_t);
extern void *realloc(void *, size_t);
extern void free(void *);
extern int snprintf(char *, size_t, const char *, ...);

FAR void fault(sim_thread *T, sim_fault_code code, const char *message, const sim_site *site) {
    T->driver->fault(T, code, message, site);
    __builtin_trap();
}

enum { COST_POLL = 256 };

#define TICK(cost, site)                                                                           \
    do {                                                                                           \
        if (__builtin_expect((T->budget -= (cost)) < 0, 0))                                        \
            T->driver->yield(T, SIM_YIELD_BUDGET, site);                                           \
    } while (0)

/* ---- counts of accesses, for a model of their cost ---- */

INL void count_access(sim_thread *T, u64 address, u32 size, sim_access_kind kind,
                      const sim_site *site) {
    if (SIM_COUNT && T->driver->count)
        T->driver->count(T, address, size, kind, site);
}

/* ---- checks ---- */

FAR void misaligned(sim_thread *T, u64 address, u32 size, const sim_site *site) {
    char text[100];
    snprintf(text, sizeof text, "misaligned address 0x%llx for an access of %u bytes",
             (unsigned long long)address, size);
    fault(T, SIM_FAULT_MISALIGNED, text, site);
}

INL int in_local(const sim_thread *T, u64 address, u32 size) {
    for (const sim_local *l = T->locals; l; l = l->outer)
        if (address - l->address < l->size && size <= l->size - (address - l->address))
            return 1;
    return 0;
}

/* Checks an access outside the thread's cached range. A generic address may also be that of a local
   array or of a parameter. */
FAR void check_generic(sim_thread *T, u64 address, u32 size, sim_access_kind kind,
                       const sim_site *site) {
    if (address & (size - 1))
        misaligned(T, address, size, site);
    if (in_local(T, address, size))
        return;
    u64 into = address - (u64)(uintptr_t)T->block->params;
    int reads = kind == SIM_LOAD || kind == SIM_LOAD_STRONG || kind == SIM_PROBE;
    if (reads && into < T->block->params_size && size <= T->block->params_size - into)
        return;
    T->driver->access(T, address, size, kind, site);
}

FAR void check_global(sim_thread *T, u64 address, u32 size, sim_access_kind kind,
                      const sim_site *site) {
    if (address & (size - 1))
        misaligned(T, address, size, site);
    T->driver->access(T, address, size, kind, site);
}

/* Tells whether an access is aligned and inside the allocation that the thread accessed last: one
   test, one branch. */
INL int is_fast(const sim_thread *T, u64 address, u32 size) {
    u64 into = address - T->fast_base;
    int inside = into < T->fast_size && size <= T->fast_size - into;
    return __builtin_expect(inside && !(address & (size - 1)), 1);
}

INL u64 at_generic(sim_thread *T, u64 address, u32 size, sim_access_kind kind,
                   const sim_site *site) {
    count_access(T, address, size, kind, site);
    if (SIM_CHECK && !is_fast(T, address, size))
        check_generic(T, address, size, kind, site);
    return address;
}

INL u64 at_global(sim_thread *T, u64 address, u32 size, sim_access_kind kind,
                  const sim_site *site) {
    count_access(T, address, size, kind, site);
    if (SIM_CHECK && !is_fast(T, address, size))
        check_global(T, address, size, kind, site);
    return address;
}

FAR void outside_shared(sim_thread *T, u32 offset, u32 size, const sim_site *site) {
    char text[140];
    snprintf(text, sizeof text,
             "%u bytes at shared address 0x%x, outside the block's %u bytes of shared memory", size,
             offset, T->block->shared_size);
    fault(T, SIM_FAULT_ADDRESS, text, site);
}

FAR void check_shared(sim_thread *T, u32 offset, u32 size, sim_access_kind kind,
                      const sim_site *site) {
    if (offset & (size - 1))
        misaligned(T, offset, size, site);
    if ((u64)offset + size > T->block->shared_size)
        outside_shared(T, offset, size, site);
    T->driver->access(T, (u64)(uintptr_t)T->block->shared + offset, size, kind, site);
}

#if SIM_ASYNC
FAR void async_touch(sim_thread *T, u32 offset, u32 size, sim_access_kind kind,
                     const sim_site *site);
#endif

/* Reports every access to shared memory to the driver, which checks it for races. */
INL u64 at_shared(sim_thread *T, u32 offset, u32 size, sim_access_kind kind, const sim_site *site) {
    count_access(T, (u64)(uintptr_t)T->block->shared + offset, size, kind, site);
    if (SIM_CHECK)
        check_shared(T, offset, size, kind, site);
#if SIM_ASYNC
    async_touch(T, offset, size, kind, site);
#endif
    return (u64)(uintptr_t)T->block->shared + offset;
}

FAR void outside_local(sim_thread *T, u64 address, u32 size, const sim_site *site) {
    char text[120];
    const sim_local *l = T->locals;
    snprintf(text, sizeof text, "%u bytes at %lld of a local array of %llu bytes", size,
             l ? (long long)(address - l->address) : 0ll, l ? (unsigned long long)l->size : 0ull);
    fault(T, SIM_FAULT_ADDRESS, text, site);
}

INL u64 at_local(sim_thread *T, u64 address, u32 size, const sim_site *site) {
    count_access(T, address, size, SIM_LOAD, site);
    if (SIM_CHECK) {
        if (__builtin_expect((address & (size - 1)) != 0, 0))
            misaligned(T, address, size, site);
        if (__builtin_expect(!in_local(T, address, size), 0))
            outside_local(T, address, size, site);
    }
    return address;
}

/* Returns the host address of a kernel parameter at a computed address. */
INL u64 at_param(sim_thread *T, u64 address, u32 size, const sim_site *site) {
    u64 into = address - (u64)(uintptr_t)T->block->params;
    if (SIM_CHECK && !(into < T->block->params_size && size <= T->block->params_size - into))
        fault(T, SIM_FAULT_ADDRESS, "an address outside the kernel's parameters", site);
    return address;
}

/* ---- loads and stores of checked addresses ---- */

#define RT_ACCESS(T)                                                                               \
    INL T load_##T(u64 address) {                                                                  \
        T x;                                                                                       \
        __builtin_memcpy(&x, (const void *)(uintptr_t)address, sizeof x);                          \
        return x;                                                                                  \
    }                                                                                              \
    INL void store_##T(u64 address, T x) {                                                         \
        __builtin_memcpy((void *)(uintptr_t)address, &x, sizeof x);                                \
    }
RT_ACCESS(u8)
RT_ACCESS(u16)
RT_ACCESS(u32)
RT_ACCESS(u64)
RT_ACCESS(u128)
RT_ACCESS(s8)
RT_ACCESS(s16)
RT_ACCESS(s32)
RT_ACCESS(s64)
#undef RT_ACCESS

/* ---- local arrays ---- */

/* Lists an array while its function runs. Its contents start as NaN, because on the device they are
   undefined. */
INL void enter_local(sim_thread *T, sim_local *entry, void *array, u64 size) {
    entry->outer = T->locals;
    entry->address = (u64)(uintptr_t)array;
    entry->size = size;
    T->locals = entry;
    if (SIM_CHECK)
        __builtin_memset(array, 0xff, size);
}

/* ---- cp.async: executed only at the wait, so that a missing wait is detected ---- */

typedef struct async_copy {
    u64 to;    /* host address in shared memory */
    u64 from;  /* global address */
    u32 size;  /* bytes to write */
    u32 valid; /* bytes to read; the rest is zeros */
    u64 group;
    const sim_site *site;
} async_copy;

typedef struct async_queue {
    u64 group; /* the one that is being filled */
    u32 count, capacity;
    async_copy copy[];
} async_queue;

FAR async_queue *async_reserve(sim_thread *T, const sim_site *site) {
    async_queue *q = T->async;
    if (q && q->count < q->capacity)
        return q;
    u32 capacity = q ? 2 * q->capacity : 16;
    async_queue *grown = realloc(q, sizeof *q + capacity * sizeof *q->copy);
    if (!grown)
        fault(T, SIM_FAULT_TRAP, "cp.async: no memory in the simulator", site);
    if (!q)
        grown->group = grown->count = 0;
    grown->capacity = capacity;
    T->async = grown;
    return grown;
}

FAR void async_begin(sim_thread *T, u32 to, u64 from, u32 size, u32 valid, const sim_site *site) {
    if (valid > size)
        valid = size;
    if (SIM_CHECK) {
        if ((to | from) & (size - 1))
            misaligned(T, to & (size - 1) ? to : from, size, site);
        if ((u64)to + size > T->block->shared_size)
            outside_shared(T, to, size, site);
        if (valid)
            T->driver->access(T, from, valid, SIM_LOAD, site);
    }
    if (valid)
        count_access(T, from, size, SIM_LOAD, site);
    count_access(T, (u64)(uintptr_t)T->block->shared + to, size, SIM_STORE, site);
    async_queue *q = async_reserve(T, site);
    q->copy[q->count++] =
        (async_copy){(u64)(uintptr_t)T->block->shared + to, from, size, valid, q->group, site};
}

FAR void async_commit(sim_thread *T, const sim_site *site) {
    async_reserve(T, site)->group++;
}

static void async_copy_now(sim_thread *T, const async_copy *c) {
    if (SIM_CHECK) {
        if (c->valid)
            T->driver->access(T, c->from, c->valid, SIM_LOAD, c->site);
        T->driver->access(T, c->to, c->size, SIM_STORE, c->site);
    }
    char *to = (char *)(uintptr_t)c->to;
    __builtin_memcpy(to, (const void *)(uintptr_t)c->from, c->valid);
    __builtin_memset(to + c->valid, 0, c->size - c->valid);
}

/* Waits until at most `pending` committed groups are unfinished. all: waits for everything,
   committed or not. */
FAR void async_wait(sim_thread *T, u64 pending, int all) {
    async_queue *q = T->async;
    u32 kept = 0;
    for (u32 i = 0; q && i < q->count; i++)
        if (all || q->copy[i].group + pending < q->group)
            async_copy_now(T, &q->copy[i]);
        else
            q->copy[kept++] = q->copy[i];
    if (q)
        q->count = kept;
}

static void release_thread(sim_thread *T) {
    free(T->async);
    T->async = NULL;
}

/* ---- functions that device code expects; a parameter is a buffer, the result the first ---- */

INL u64 buffer_u64(const char *buffer) {
    return load_u64((u64)(uintptr_t)buffer);
}

FAR void rt_vprintf(sim_thread *T, char *result, const char *format, const char *args,
                    const sim_site *site) {
    int count = T->driver->print(T, (const char *)(uintptr_t)buffer_u64(format),
                                 (const void *)(uintptr_t)buffer_u64(args), site);
    store_u32((u64)(uintptr_t)result, (u32)count);
}

FAR void rt_assertfail(sim_thread *T, const char *message, const char *file, const char *line,
                       const char *function, const sim_site *site) {
    char text[600];
    snprintf(text, sizeof text, "%s:%u: %s: assertion `%s' failed",
             (const char *)(uintptr_t)buffer_u64(file), load_u32((u64)(uintptr_t)line),
             (const char *)(uintptr_t)buffer_u64(function),
             (const char *)(uintptr_t)buffer_u64(message));
    fault(T, SIM_FAULT_ASSERT, text, site);
}

#endif
