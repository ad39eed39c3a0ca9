/* Races in global memory between blocks of one launch: two blocks access the same bytes, one of
   them writes, and nothing orders them. Only messages order blocks. A fence followed by an atomic
   or strong store to some address releases all that the block did before the fence. An atomic or
   strong load of that address acquires it for the whole block. The "last block" pattern and
   grid-wide barriers work this way. Races inside a block are not checked here.

   Two blocks that write the same value are accepted (setting a flag): a store over another block's
   store is checked again after it has executed.

   A record holds the last writing block and one reading block, or the fact that there were many.
   With many readers a write is a race unless the block has acquired something. Then it is trusted,
   which may miss a race but never reports a false one. */
#define _GNU_SOURCE
#include "exec.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MANY = 0x7FFFFFFF };

#define STRONG 0x80000000u

typedef struct record {
    uint32_t launch;
    uint32_t writer, reader; /* block number + 1, 0: none; with STRONG */
    uint16_t write_clock, read_clock;
} record;

typedef struct release {
    uint32_t block, previous; /* number + 1 of the block's previous entry, 0: none */
    uint16_t clock;
} release;

typedef struct channel { /* an address that carries messages */
    uint64_t address;
    release *log;
    uint32_t count, capacity;
    uint32_t *latest; /* when the log is long: for each block its last entry + 1 */
    struct channel *next;
} channel;

typedef struct acquired { /* what a block has received: the log of a channel up to here */
    channel *channel;
    uint32_t upto;
    struct acquired *next;
} acquired;

enum { BUCKETS = 1024, LONG_LOG = 64 };

static channel *channels[BUCKETS];
static unsigned channel_count;

static struct { /* a store that is a race if it changes a value */
    bool open;
    uint64_t address;
    uint32_t size, other;
    sim_u3 block, tid;
    const sim_site *site;
    unsigned char before[64];
} suspect;

void region_forget_shadow(region *r) {
    if (r->shadow)
        munmap(r->shadow, r->shadow_bytes);
    r->shadow = NULL;
}

static record *records_of(region *r) {
    if (!r->shadow) {
        size_t bytes = ((r->size >> r->shadow_shift) + 1) * sizeof(record);
        void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            abort();
        r->shadow = p;
        r->shadow_bytes = bytes;
    }
    return r->shadow;
}

/* Splits all records when an access is smaller than one record. */
static void refine(region *r, unsigned shift) {
    record *old = r->shadow;
    size_t bytes = r->shadow_bytes, count = bytes / sizeof *old;
    unsigned by = r->shadow_shift - shift;
    r->shadow = NULL;
    r->shadow_shift = shift;
    for (size_t i = 0; old && i < count; i++)
        if (old[i].launch == now->id)
            for (size_t k = 0; k < (size_t)1 << by; k++) {
                size_t to = (i << by) + k;
                if (to <= r->size >> shift)
                    records_of(r)[to] = old[i];
            }
    if (old)
        munmap(old, bytes);
}

/* ---- messages ---- */

static channel *channel_of(uint64_t address, bool make) {
    channel **bucket = &channels[(address >> 2) % BUCKETS], *c;
    for (c = *bucket; c; c = c->next)
        if (c->address == address)
            return c;
    if (!make || !(c = calloc(1, sizeof *c)))
        return NULL;
    c->address = address;
    c->next = *bucket;
    *bucket = c;
    channel_count++;
    return c;
}

/* Indexes the log, because the last block of a large grid looks up each of the others. */
static void index_entry(channel *c, uint32_t i) {
    c->log[i].previous = c->latest[c->log[i].block];
    c->latest[c->log[i].block] = i + 1;
}

static void publish(channel *c, uint32_t block, uint16_t clock) {
    if (c->count == c->capacity) {
        c->capacity = c->capacity ? 2 * c->capacity : 16;
        c->log = realloc(c->log, c->capacity * sizeof *c->log);
        if (!c->log)
            abort();
    }
    c->log[c->count++] = (release){block, 0, clock};
    if (c->latest) {
        index_entry(c, c->count - 1);
    } else if (c->count == LONG_LOG) {
        c->latest = calloc(now->blocks + 1, sizeof *c->latest);
        if (!c->latest)
            abort();
        for (uint32_t i = 0; i < c->count; i++)
            index_entry(c, i);
    }
}

/* Releases what the block did and what it has acquired from others. Its own log needs no copy. */
static void release_to(const resident *r, uint64_t address, uint16_t clock) {
    channel *c = channel_of(address, true);
    if (!c)
        abort();
    for (const acquired *a = r->acquired; a; a = a->next)
        for (uint32_t i = 0; a->channel != c && i < a->upto; i++)
            publish(c, a->channel->log[i].block, a->channel->log[i].clock);
    publish(c, (uint32_t)r->number + 1, clock);
}

static void acquire_from(resident *r, uint64_t address) {
    channel *c = channel_count ? channel_of(address, false) : NULL;
    acquired *a;
    if (!c)
        return;
    for (a = r->acquired; a; a = a->next)
        if (a->channel == c) {
            a->upto = c->count;
            return;
        }
    if (!(a = calloc(1, sizeof *a)))
        abort();
    a->channel = c;
    a->upto = c->count;
    a->next = r->acquired;
    r->acquired = a;
}

static bool said(const channel *c, uint32_t upto, uint32_t block, uint16_t clock) {
    if (c->latest) {
        uint32_t i = c->latest[block];
        while (i > upto)
            i = c->log[i - 1].previous;
        return i && c->log[i - 1].clock >= clock; /* the clocks of a block only grow */
    }
    for (uint32_t i = upto; i-- > 0;)
        if (c->log[i].block == block && c->log[i].clock >= clock)
            return true;
    return false;
}

static bool ordered(const resident *r, uint32_t block, uint16_t clock) {
    for (const acquired *a = r->acquired; a; a = a->next)
        if (said(a->channel, a->upto, block, clock))
            return true;
    return false;
}

void global_check_fence(fiber *f, int scope) {
    resident *r = f->home;
    if (scope != 'c' && now->race_global && r->clock < UINT16_MAX)
        r->clock++;
}

/* Returns the clock that a message releases: everything up to the latest fence of any thread of the
   block. A common pattern is that all threads write and fence, a barrier follows, and one thread
   sends the message; so it does not matter whose fence it was. When the clock overflows, everything
   counts as released: fewer findings, but no false one. */
static uint16_t released(const resident *r) {
    return r->clock == UINT16_MAX ? UINT16_MAX : (uint16_t)(r->clock - 1);
}

static bool orders(const sim_site *site) {
    return site && site->text && (strstr(site->text, ".release") || strstr(site->text, ".acq_rel"));
}

static void message(fiber *f, uint64_t address, sim_access_kind kind, const sim_site *site) {
    resident *r = f->home;
    if (kind != SIM_STORE_STRONG)
        acquire_from(r, address);
    if (kind == SIM_LOAD_STRONG)
        return;
    if (orders(site))
        release_to(r, address, r->clock);
    else if (r->clock > 0)
        release_to(r, address, released(r));
}

/* ---- accesses ---- */

static uint32_t region_offset(uint64_t address) {
    const region *r = region_at(address);
    return r ? (uint32_t)(address - r->address) : 0;
}

static _Noreturn void race(const fiber *f, uint64_t address, const char *mine, uint32_t other,
                           const char *theirs, const sim_site *site) {
    sim_u3 b = position((other & ~STRONG) - 1, now->plan->grid);
    if ((other & ~STRONG) == MANY)
        launch_abort(CUDA_ERROR_LAUNCH_FAILED, f, site,
                     "global-memory race at %#llx (offset %u): %s here, %s by "
                     "other blocks, and nothing orders them",
                     (unsigned long long)address, region_offset(address), mine, theirs);
    launch_abort(CUDA_ERROR_LAUNCH_FAILED, f, site,
                 "global-memory race at %#llx (offset %u): %s here, %s by block "
                 "%u,%u,%u, and nothing orders them",
                 (unsigned long long)address, region_offset(address), mine, theirs, b.x, b.y, b.z);
}

void global_check_settle(void) {
    if (!suspect.open)
        return;
    suspect.open = false;
    if (memcmp(suspect.before, (void *)(uintptr_t)suspect.address, suspect.size) == 0)
        return;
    sim_u3 b = position((suspect.other & ~STRONG) - 1, now->plan->grid);
    launch_report(CUDA_ERROR_LAUNCH_FAILED, NULL, suspect.site,
                  "global-memory race at %#llx (offset %u): block %u,%u,%u thread %u,%u,%u writes "
                  "another value than block %u,%u,%u, and nothing orders them",
                  (unsigned long long)suspect.address, region_offset(suspect.address),
                  suspect.block.x, suspect.block.y, suspect.block.z, suspect.tid.x, suspect.tid.y,
                  suspect.tid.z, b.x, b.y, b.z);
    if (now->running)
        fiber_leave();
}

static void suspect_store(fiber *f, uint64_t address, uint32_t size, uint32_t other,
                          const sim_site *site) {
    if (size > sizeof suspect.before)
        race(f, address, "write", other, "write", site);
    suspect.open = true;
    suspect.address = address;
    suspect.size = size;
    suspect.other = other;
    suspect.block = f->home->block.ctaid;
    suspect.tid = f->thread.tid;
    suspect.site = site;
    memcpy(suspect.before, (void *)(uintptr_t)address, size);
}

typedef struct attempt {
    fiber *fiber;
    uint64_t address;
    uint32_t size, me;
    bool write, strong;
    sim_access_kind kind;
    const sim_site *site;
} attempt;

static void touch(const attempt *a, record *k) {
    resident *r = a->fiber->home;
    uint32_t writer = k->writer & ~STRONG, reader = k->reader & ~STRONG;
    bool atomics = k->writer & STRONG && a->kind == SIM_LOAD;
    if (writer && writer != a->me && !(a->strong && k->writer & STRONG) &&
        !ordered(r, writer, k->write_clock)) {
        if (atomics)
            guess_open(a->fiber, a->address, a->size, a->site);
        else if (a->kind == SIM_STORE || a->kind == SIM_STORE_STRONG)
            suspect_store(a->fiber, a->address, a->size, k->writer, a->site);
        else
            race(a->fiber, a->address, a->write ? "atomic" : "read", k->writer, "write", a->site);
    }
    if (a->write) {
        bool fine = !reader || reader == a->me || (a->strong && k->reader & STRONG) ||
                    (reader == MANY ? r->acquired != NULL : ordered(r, reader, k->read_clock));
        if (!fine)
            race(a->fiber, a->address, "write", k->reader, "read", a->site);
        k->writer = a->me | (a->strong ? STRONG : 0);
        k->write_clock = r->clock;
        k->reader = 0;
        return;
    }
    if (!reader || reader == a->me)
        k->reader = a->me | (a->strong && (!reader || k->reader & STRONG) ? STRONG : 0);
    else
        k->reader = MANY | (a->strong ? k->reader & STRONG : 0);
    k->read_clock = r->clock;
}

void global_check_access(fiber *f, region *r, uint64_t address, uint32_t size, sim_access_kind kind,
                         const sim_site *site) {
    attempt a = {.fiber = f, .address = address, .size = size, .kind = kind, .site = site};
    uint64_t offset = address - r->address;
    record *k, *last;
    global_check_settle();
    a.me = (uint32_t)f->home->number + 1;
    a.strong = kind == SIM_ATOMIC || kind == SIM_LOAD_STRONG || kind == SIM_STORE_STRONG;
    a.write = kind == SIM_ATOMIC || kind == SIM_STORE || kind == SIM_STORE_STRONG;
    if (a.strong)
        message(f, address, kind, site);
    if ((offset | size) & (((uint64_t)1 << r->shadow_shift) - 1))
        refine(r, (offset | size) & 1 ? 0 : 1);
    k = records_of(r) + (offset >> r->shadow_shift);
    last = records_of(r) + ((offset + size - 1) >> r->shadow_shift);
    for (; k <= last; k++) {
        if (k->launch != now->id) {
            memset(k, 0, sizeof *k);
            k->launch = now->id;
        }
        touch(&a, k);
    }
}

/* ---- launches and blocks ---- */

static void forget_acquired(resident *r) {
    while (r->acquired) {
        acquired *a = r->acquired;
        r->acquired = a->next;
        free(a);
    }
}

void global_check_start(launch *l) {
    l->race_global = settings.races && l->blocks > 1 && l->blocks < MANY;
    suspect.open = false;
}

void global_check_block(resident *r) {
    r->clock = 0;
    forget_acquired(r);
}

void global_check_end(launch *l) {
    for (uint32_t i = 0; i < l->resident_count; i++)
        forget_acquired(l->residents[i]);
    for (unsigned b = 0; b < BUCKETS && channel_count; b++)
        while (channels[b]) {
            channel *c = channels[b];
            channels[b] = c->next;
            free(c->log);
            free(c->latest);
            free(c);
            channel_count--;
        }
}
