/* Races in shared memory: two threads of a block access the same bytes, one of them writes, and no
   barrier or __syncwarp orders them (happens-before, as in ThreadSanitizer: Serebryany, WBIA 2009).

   A barrier of the whole block starts a new epoch, and records of an older epoch are void. A named
   barrier orders warps: known[w][v] is the barrier of warp v up to which all lanes of w know it.
   __syncwarp orders lanes: seen[l][m] is the moment of the warp up to which lane l knows lane m.

   A record covers 4 bytes until a smaller access is seen, then fewer. It holds the last writer and
   all readers since: a list with an entry for each warp and moment, with a mask of its lanes. */
#include "exec.h"
#include <stdlib.h>
#include <string.h>

typedef struct record {
    uint32_t epoch;
    uint32_t write_moment; /* 0: never written */
    uint16_t writer, write_barriers;
    uint32_t readers; /* first entry of the list, 0: none */
    bool write_strong;
} record;

typedef struct readers {
    uint32_t mask, moment, next;
    uint16_t warp, barriers;
    bool strong;
} readers;

typedef struct lanes { /* of one warp */
    uint32_t moment;
    bool used; /* has seen a __syncwarp since the last barrier of the block */
    uint32_t seen[SIM_WARP][SIM_WARP];
} lanes;

struct shared_check {
    uint32_t epoch;
    record *records;
    size_t count;
    readers *entries; /* entry 0 means none */
    uint32_t entry_count, entry_capacity;
    uint16_t barriers[SIM_WARP]; /* number of partial-block barriers that each warp has passed */
    uint16_t known[SIM_WARP][SIM_WARP];
    bool partial; /* set when any of these happened since the last barrier of the block */
    lanes lanes[SIM_WARP];
};

bool shared_check_start(resident *r) {
    shared_check *c;
    if (r->block.shared_size == 0 || !settings.races)
        return true;
    r->check = c = calloc(1, sizeof *c);
    if (!c)
        return false;
    c->count = ((size_t)r->block.shared_size >> r->launch->function->shared_shift) + 1;
    c->records = calloc(c->count, sizeof *c->records);
    c->entry_capacity = 1024;
    c->entries = malloc(c->entry_capacity * sizeof *c->entries);
    return c->records && c->entries;
}

void shared_check_free(resident *r) {
    if (!r->check)
        return;
    free(r->check->records);
    free(r->check->entries);
    free(r->check);
    r->check = NULL;
}

/* Starts an epoch: everything before is ordered before everything after. */
static void new_epoch(shared_check *c) {
    c->epoch++;
    c->entry_count = 1;
    if (c->partial) {
        memset(c->barriers, 0, sizeof c->barriers);
        memset(c->known, 0, sizeof c->known);
        c->partial = false;
    }
    for (int w = 0; w < SIM_WARP; w++) {
        if (c->lanes[w].used)
            memset(c->lanes[w].seen, 0, sizeof c->lanes[w].seen);
        c->lanes[w].used = false;
        c->lanes[w].moment = 1;
    }
}

void shared_check_block(resident *r) {
    if (r->check)
        new_epoch(r->check);
}

/* ---- ordering ---- */

void shared_check_barrier(resident *r, const barrier *b) {
    shared_check *c = r->check;
    uint16_t all[SIM_WARP] = {0};
    if (!c)
        return;
    if (b->expected == r->threads && memcmp(b->waiting, b->parties, sizeof b->waiting) == 0) {
        new_epoch(c);
        return;
    }
    c->partial = true;
    for (int w = 0; w < SIM_WARP; w++) {
        if (!b->parties[w])
            continue;
        for (int v = 0; v < SIM_WARP; v++)
            all[v] = c->known[w][v] > all[v] ? c->known[w][v] : all[v];
        all[w] = ++c->barriers[w];
        shared_check_warp(r, (uint32_t)w, b->waiting[w]);
    }
    for (int w = 0; w < SIM_WARP; w++)
        if (b->waiting[w]) /* a thread that only arrives neither waits nor acquires */
            memcpy(c->known[w], all, sizeof all);
}

void shared_check_warp(resident *r, uint32_t number, uint32_t mask) {
    lanes *w;
    uint32_t all[SIM_WARP] = {0};
    if (!r->check)
        return;
    w = &r->check->lanes[number];
    for (int l = 0; l < SIM_WARP; l++)
        for (int m = 0; m < SIM_WARP && mask >> l & 1; m++)
            all[m] = w->seen[l][m] > all[m] ? w->seen[l][m] : all[m];
    w->used = true;
    w->moment++;
    for (int l = 0; l < SIM_WARP; l++)
        if (mask >> l & 1)
            all[l] = w->moment;
    for (int l = 0; l < SIM_WARP; l++)
        if (mask >> l & 1)
            memcpy(w->seen[l], all, sizeof all);
}

/* Tells whether the thread knows what lane l of a warp did at this moment, after this many partial
   barriers. */
static bool known(const shared_check *c, const sim_thread *t, uint32_t number, uint32_t lane,
                  uint32_t moment, uint16_t barriers) {
    if (number == t->warp)
        return c->lanes[number].seen[t->lane][lane] > moment;
    return c->known[t->warp][number] > barriers;
}

/* ---- records ---- */

static uint32_t entry_new(shared_check *c) {
    if (c->entry_count == c->entry_capacity) {
        c->entry_capacity *= 2;
        c->entries = realloc(c->entries, c->entry_capacity * sizeof *c->entries);
        if (!c->entries)
            abort();
    }
    return c->entry_count++;
}

static uint32_t copy_readers(shared_check *c, uint32_t list) {
    uint32_t head = 0;
    for (uint32_t i = list; i; i = c->entries[i].next) {
        uint32_t n = entry_new(c);
        c->entries[n] = c->entries[i];
        c->entries[n].next = head;
        head = n;
    }
    return head;
}

static void refine_block(shared_check *c, unsigned by) {
    size_t count = c->count << by;
    record *records = calloc(count, sizeof *records);
    if (!records)
        abort();
    for (size_t k = 0; k < count; k++) {
        records[k] = c->records[k >> by];
        if (records[k].epoch == c->epoch && records[k].readers)
            records[k].readers = copy_readers(c, records[k].readers);
    }
    free(c->records);
    c->records = records;
    c->count = count;
}

/* Makes the records of this kernel smaller from now on, after an access smaller than one record. */
static void refine(launch *l, unsigned shift) {
    for (uint32_t i = 0; i < l->resident_count; i++)
        refine_block(l->residents[i]->check, l->function->shared_shift - shift);
    l->function->shared_shift = shift;
}

static _Noreturn void race(fiber *f, uint32_t offset, const char *mine, uint32_t other,
                           const char *theirs, const sim_site *site) {
    launch_abort(
        CUDA_ERROR_LAUNCH_FAILED, f, site,
        "shared-memory race at offset %u: %s here, %s by thread %u, and nothing orders them",
        offset, mine, theirs, other);
}

static void check_readers(fiber *f, shared_check *c, const record *k, uint32_t offset, bool strong,
                          const sim_site *site) {
    const sim_thread *t = &f->thread;
    for (uint32_t i = k->readers; i; i = c->entries[i].next) {
        const readers *e = &c->entries[i];
        uint32_t mask = e->mask;
        if (e->strong && strong)
            continue;
        if (e->warp == t->warp)
            mask &= ~(1u << t->lane);
        for (uint32_t l = 0; mask; l++, mask >>= 1)
            if ((mask & 1) && !known(c, t, e->warp, l, e->moment, e->barriers))
                race(f, offset, "write", e->warp * SIM_WARP + l, "read", site);
    }
}

static void add_reader(shared_check *c, record *k, const sim_thread *t, bool strong) {
    uint32_t moment = c->lanes[t->warp].moment, n;
    for (uint32_t i = k->readers; i; i = c->entries[i].next) {
        readers *e = &c->entries[i];
        if (e->warp == t->warp && e->moment == moment && e->barriers == c->barriers[t->warp] &&
            e->strong == strong) {
            e->mask |= 1u << t->lane;
            return;
        }
    }
    n = entry_new(c);
    c->entries[n] = (readers){1u << t->lane,        moment, k->readers, (uint16_t)t->warp,
                              c->barriers[t->warp], strong};
    k->readers = n;
}

static void touch(fiber *f, shared_check *c, record *k, uint32_t offset, sim_access_kind kind,
                  const sim_site *site) {
    const sim_thread *t = &f->thread;
    bool strong = kind == SIM_ATOMIC || kind == SIM_LOAD_STRONG || kind == SIM_STORE_STRONG;
    bool write = kind == SIM_ATOMIC || kind == SIM_STORE || kind == SIM_STORE_STRONG;
    if (k->epoch != c->epoch) {
        memset(k, 0, sizeof *k);
        k->epoch = c->epoch;
    }
    if (k->write_moment && k->writer != f->index && !(strong && k->write_strong) &&
        !known(c, t, k->writer / SIM_WARP, k->writer % SIM_WARP, k->write_moment,
               k->write_barriers)) {
        if (k->write_strong && kind == SIM_LOAD)
            guess_open(f, (uint64_t)(uintptr_t)f->home->block.shared + offset,
                       1u << f->home->launch->function->shared_shift, site);
        else
            race(f, offset, write ? "write" : "read", k->writer, "write", site);
    }
    if (!write) {
        add_reader(c, k, t, strong);
        return;
    }
    check_readers(f, c, k, offset, strong, site);
    k->writer = (uint16_t)f->index;
    k->write_moment = c->lanes[t->warp].moment;
    k->write_barriers = c->barriers[t->warp];
    k->write_strong = strong;
    k->readers = 0; /* all of them are ordered before this write */
}

void shared_check_access(fiber *f, uint32_t offset, uint32_t size, sim_access_kind kind,
                         const sim_site *site) {
    shared_check *c = f->home->check;
    unsigned *shift = &f->home->launch->function->shared_shift;
    uint32_t last;
    if (!c)
        return;
    if ((offset | size) & ((1u << *shift) - 1))
        refine(f->home->launch, size & 1 || offset & 1 ? 0 : 1);
    last = (offset + size - 1) >> *shift;
    for (uint32_t i = offset >> *shift; i <= last; i++)
        touch(f, c, &c->records[i], i << *shift, kind, site);
}
