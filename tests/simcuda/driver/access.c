/* Checks whether a thread may access some bytes: bounds to the byte, use after free, memory of
   another device; then the race checks. The plain checks cost two table look-ups. */
#include "exec.h"

static const char *verb(sim_access_kind kind) {
    return kind == SIM_STORE || kind == SIM_STORE_STRONG ? "write"
           : kind == SIM_ATOMIC                          ? "atomic"
                                                         : "read";
}

static bool writes(sim_access_kind kind) {
    return kind == SIM_STORE || kind == SIM_STORE_STRONG || kind == SIM_ATOMIC;
}

/* Returns which devices may access a region: its own, and peers as the kind of the region
   allows. */
static bool allowed(const launch *l, const region *r, bool write) {
    int id = l->dev->id;
    switch (r->kind) {
    case REGION_HOST:
        return true;
    case REGION_POOL:
        return pool_access(r->pool, id);
    case REGION_MAPPED:
        return (r->access >> id & 1) || (!write && (r->access >> (32 + id) & 1));
    default:
        return r->dev == l->dev || (l->ctx->peers >> r->dev->id & 1);
    }
}

static void refuse(fiber *f, const region *r, uint64_t address, uint32_t size, sim_access_kind kind,
                   const sim_site *site) {
    char why[256];
    if (!r || r->state == REGION_FREED || address + size > r->address + r->size) {
        if (!region_check(address, size, why, sizeof why))
            launch_abort(CUDA_ERROR_ILLEGAL_ADDRESS, f, site, "%s: %s", verb(kind), why);
    }
    if (r->state == REGION_PENDING)
        launch_abort(CUDA_ERROR_ILLEGAL_ADDRESS, f, site,
                     "%s of stream-ordered memory before its allocation "
                     "has happened: an event is missing",
                     verb(kind));
    if (r->constant && writes(kind))
        launch_abort(CUDA_ERROR_ILLEGAL_ADDRESS, f, site, "%s of constant memory", verb(kind));
    launch_abort(CUDA_ERROR_ILLEGAL_ADDRESS, f, site,
                 "%s of memory of device %d by a kernel on device %d "
                 "without peer access",
                 verb(kind), r->dev->id, now->dev->id);
}

static void beyond_shared(fiber *f, uint64_t offset, uint32_t size, sim_access_kind kind,
                          const sim_site *site) {
    launch_abort(CUDA_ERROR_ILLEGAL_ADDRESS, f, site,
                 "%s of %u bytes at offset %llu of shared memory, of which the block has %u",
                 verb(kind), size, (unsigned long long)offset, f->home->block.shared_size);
}

/* Reports an access that leaves a variable of shared memory: inside the block's memory, but still
   wrong. */
static void check_variable(fiber *f, uint32_t offset, uint32_t size, sim_access_kind kind,
                           const sim_site *site) {
    const sim_kernel *k = now->kernel;
    for (uint32_t i = 0; i < k->shareds; i++) {
        const sim_shared *s = &k->shared[i];
        uint32_t end = s->size ? s->offset + s->size : f->home->block.shared_size;
        if (offset >= s->offset && offset < end && offset + size > end)
            launch_abort(CUDA_ERROR_ILLEGAL_ADDRESS, f, site,
                         "%s of %u bytes past the end of shared %s", verb(kind),
                         offset + size - end, s->name);
    }
}

void guess_open(fiber *f, uint64_t address, uint32_t size, const sim_site *site) {
    if (f->guess)
        return; /* the first record of a larger read */
    f->guess = address;
    f->guess_size = size;
    f->guess_site = site;
}

void guess_end(fiber *f, uint64_t address, sim_access_kind kind) {
    uint64_t guess = f->guess;
    if (!guess || kind == SIM_PROBE)
        return;
    f->guess = 0;
    if (kind == SIM_ATOMIC && address == guess)
        return;
    launch_report(CUDA_ERROR_LAUNCH_FAILED, f, f->guess_site,
                  "%s-memory race at %#llx: a plain read of %u bytes that others change by "
                  "atomics, and nothing "
                  "orders them",
                  in_device_space(guess) ? "global" : "shared", (unsigned long long)guess,
                  f->guess_size);
    if (f->state == FIBER_READY)
        fiber_leave(); /* not from a thread that has already ended */
}

void on_access(sim_thread *t, uint64_t address, uint32_t size, sim_access_kind kind,
               const sim_site *site) {
    fiber *f = (fiber *)t;
    const sim_block *b = t->block;
    uint64_t offset = address - (uint64_t)(uintptr_t)b->shared;
    region *r;
    counts.accesses++;
    if (f->guess)
        guess_end(f, address, kind);
    if (kind == SIM_STORE)
        now->idle = 0; /* some thread made progress */
    if (offset < b->shared_size) {
        if (size > b->shared_size - offset)
            beyond_shared(f, offset, size, kind, site);
        check_variable(f, (uint32_t)offset, size, kind, site);
        if (kind != SIM_PROBE)
            shared_check_access(f, (uint32_t)offset, size, kind, site);
        return;
    }
    r = in_device_space(address) ? region_at(address) : region_host((void *)(uintptr_t)address);
    if (!r && offset < b->shared_size + (uint64_t)1024)
        beyond_shared(f, offset, size, kind, site);
    if (!r && stack_holds(f->stack, address))
        return; /* a local array, already checked by the module */
    if (!r || r->state != REGION_LIVE || address - r->address >= r->size ||
        size > r->size - (address - r->address) || !allowed(now, r, writes(kind)) ||
        (r->constant && writes(kind)))
        refuse(f, r, address, size, kind, site);
    if (kind == SIM_PROBE)
        return;
    if (now->race_global) {
        if (!r->constant)
            global_check_access(f, r, address, size, kind, site);
    } else if (!r->constant && (r->kind == REGION_DEVICE || r->kind == REGION_POOL)) {
        t->fast_base = r->address;
        t->fast_size = r->size;
    }
}
