/* Counts what a model of a GPU's time needs: memory sectors, wavefronts of shared memory,
   instructions. Only modules that count (SIMCUDA_COUNT=1) come here.

   A lane runs alone until it waits, so its accesses are logged and merged later into the requests
   of its warp: when all lanes wait at one barrier or collective, and at the end of the block. The
   lane whose next access stands first in the program goes first, with all lanes that are at the
   same place. So lanes that skip a branch or leave a loop early meet the others again, as on a GPU.
   The result does not depend on the order in which lanes ran. */
#define SIM_CONTROL_IMPLEMENTATION
#include "count.h"
#include "entry.h"
#include <stdlib.h>
#include <string.h>

_Static_assert((int)SIM_COUNT_CLASSES == (int)SIM_CLASSES, "sim_control.h has another number");

typedef struct log_entry {
    uint64_t address;
    uint32_t site;
    uint8_t size, kind;
} log_entry;

typedef struct lane_log {
    log_entry *entry;
    uint32_t count, capacity, next;
} lane_log;

typedef struct warp_log {
    lane_log lane[SIM_WARP];
    uint32_t waiting; /* entries in all lanes */
} warp_log;

struct block_counts {
    uint32_t warps;
    warp_log *warp;
    uint32_t *trips; /* of each fiber */
    uint32_t *most;  /* of each warp: the most trips of a lane */
};

static sim_kernel_counts *totals;
static int n_totals, capacity_of_totals;

/* ---- totals ---- */

void sim_counts_clear(void) {
    sim_lock();
    n_totals = 0;
    sim_unlock();
}

int sim_counts_get(int i, sim_kernel_counts *counts_out) {
    int found;
    sim_lock();
    found = i >= 0 && i < n_totals;
    if (found)
        *counts_out = totals[i];
    sim_unlock();
    return found;
}

static sim_kernel_counts *total_of(const sim_kernel_counts *sum) {
    for (int i = 0; i < n_totals; i++)
        if (strcmp(totals[i].kernel, sum->kernel) == 0)
            return &totals[i];
    if (n_totals == capacity_of_totals) {
        int more = capacity_of_totals ? 2 * capacity_of_totals : 16;
        sim_kernel_counts *grown = realloc(totals, (size_t)more * sizeof *grown);
        if (!grown)
            return NULL;
        totals = grown;
        capacity_of_totals = more;
    }
    memset(&totals[n_totals], 0, sizeof totals[n_totals]);
    strcpy(totals[n_totals].kernel, sum->kernel);
    totals[n_totals].resident = sum->resident;
    return &totals[n_totals++];
}

static void add_global(sim_global_counts *to, const sim_global_counts *from) {
    to->requests += from->requests;
    to->sectors += from->sectors;
    to->bytes += from->bytes;
    to->touched += from->touched;
}

static void add_shared(sim_shared_counts *to, const sim_shared_counts *from) {
    to->requests += from->requests;
    to->wavefronts += from->wavefronts;
    to->least += from->least;
}

static int larger(int a, int b) {
    return a > b ? a : b;
}

static void add_launch(sim_kernel_counts *to, const sim_kernel_counts *from) {
    to->launches += from->launches;
    to->blocks += from->blocks;
    to->warps += from->warps;
    add_global(&to->load, &from->load);
    add_global(&to->store, &from->store);
    add_shared(&to->shared_load, &from->shared_load);
    add_shared(&to->shared_store, &from->shared_store);
    to->atomics += from->atomics;
    to->atomic_lanes += from->atomic_lanes;
    to->local += from->local;
    to->barriers += from->barriers;
    for (int i = 0; i < SIM_CLASSES; i++)
        to->instructions[i] += from->instructions[i];
    to->registers = larger(to->registers, from->registers);
    to->shared = larger(to->shared, from->shared);
    to->spills = larger(to->spills, from->spills);
    to->threads = larger(to->threads, from->threads);
    if (from->resident < to->resident)
        to->resident = from->resident;
}

/* cp.async is a load and a store of one site; lanes out of bounds only store. */
static bool stands_before(const log_entry *a, const log_entry *b) {
    return a->site != b->site ? a->site < b->site : a->kind < b->kind;
}

/* Merges the logs of a warp's lanes, and empties them. */
static void merge(resident *r, warp_log *w) {
    launch_counts *c = r->launch->counts;
    while (w->waiting > 0) {
        const log_entry *first = NULL;
        request q = {.lanes = 0};
        for (uint32_t l = 0; l < SIM_WARP; l++) {
            const lane_log *g = &w->lane[l];
            if (g->next < g->count && (!first || stands_before(&g->entry[g->next], first)))
                first = &g->entry[g->next];
        }
        q.size = first->size;
        q.kind = (sim_access_kind)first->kind;
        for (uint32_t l = 0; l < SIM_WARP; l++) {
            lane_log *g = &w->lane[l];
            const log_entry *e = &g->entry[g->next];
            if (g->next == g->count || e->site != first->site || e->kind != first->kind)
                continue;
            q.lane[q.lanes] = l;
            q.address[q.lanes++] = e->address;
            g->next++;
            w->waiting--;
        }
        count_request(c, r, &q);
    }
    for (uint32_t l = 0; l < SIM_WARP; l++)
        w->lane[l].next = w->lane[l].count = 0;
}

/* ---- hooks ---- */

void on_count(sim_thread *t, uint64_t address, uint32_t size, sim_access_kind kind,
              const sim_site *site) {
    fiber *f = (fiber *)t;
    warp_log *w;
    lane_log *g;
    if (kind == SIM_PROBE)
        return;
    w = &f->home->counts->warp[t->warp];
    g = &w->lane[t->lane];
    if (g->count == g->capacity) {
        uint32_t capacity = g->capacity ? 2 * g->capacity : 64;
        log_entry *grown = realloc(g->entry, capacity * sizeof *grown);
        if (!grown)
            launch_abort(CUDA_ERROR_OUT_OF_MEMORY, f, site, "no memory for counts");
        g->entry = grown;
        g->capacity = capacity;
    }
    g->entry[g->count++] = (log_entry){address, (uint32_t)(site - now->code->site), (uint8_t)size,
                                       (uint8_t)(kind == SIM_LOAD_STRONG    ? SIM_LOAD
                                                 : kind == SIM_STORE_STRONG ? SIM_STORE
                                                                            : kind)};
    w->waiting++;
}

bool count_launch(launch *l) {
    kernel_usage usage;
    const function *f = l->function;
    launch_counts *c;
    if (!l->code->counted)
        return true;
    if (!(c = calloc(1, sizeof *c)) || !count_pages(c)) {
        free(c);
        return false;
    }
    l->counts = c;
    strncpy(c->sum.kernel, l->kernel->name, sizeof c->sum.kernel - 1);
    c->sum.launches = 1;
    c->sum.threads = (int)(l->plan->block.x * l->plan->block.y * l->plan->block.z);
    c->sum.shared = (int)l->kernel->static_shared + (int)l->plan->dynamic;
    if (function_usage(f, &usage)) {
        c->sum.registers = usage.registers;
        c->sum.spills = usage.spills;
        c->sum.resident =
            (int)occupancy_blocks(l->dev, f, (uint32_t)c->sum.threads, l->plan->dynamic);
    }
    return true;
}

void count_launch_end(launch *l) {
    launch_counts *c = l->counts;
    sim_kernel_counts *total;
    if (!c)
        return;
    c->sum.load.touched = count_touched(c, 0);
    c->sum.store.touched = count_touched(c, 1);
    if (!l->failed && (total = total_of(&c->sum)) != NULL)
        add_launch(total, &c->sum);
    else if (!l->failed)
        say("no memory for the counts of %s", c->sum.kernel);
    free(c->page);
    free(c);
    l->counts = NULL;
}

bool count_resident(resident *r) {
    const launch *l = r->launch;
    block_counts *b;
    size_t blocks = l->code->code_blocks, fibers = l->direct ? 1 : r->threads;
    if (!l->code->counted)
        return true;
    if (!l->counts || !(b = calloc(1, sizeof *b)))
        return false;
    r->counts = b;
    b->warps = (r->threads + SIM_WARP - 1) / SIM_WARP;
    b->warp = calloc(b->warps, sizeof *b->warp);
    b->trips = calloc(fibers * blocks + 1, sizeof *b->trips);
    b->most = calloc(b->warps * blocks + 1, sizeof *b->most);
    if (!b->warp || !b->trips || !b->most)
        return false;
    for (size_t i = 0; i < fibers; i++)
        r->fibers[i].thread.trips = b->trips + i * blocks;
    return true;
}

void count_resident_free(resident *r) {
    block_counts *b = r->counts;
    if (!b)
        return;
    for (uint32_t i = 0; b->warp && i < b->warps; i++)
        for (uint32_t l = 0; l < SIM_WARP; l++)
            free(b->warp[i].lane[l].entry);
    free(b->warp);
    free(b->trips);
    free(b->most);
    free(b);
    r->counts = NULL;
}

/* A warp executes a basic block as often as the lane that enters it most: exact unless lanes enter
   it in different iterations of a loop. */
void count_thread_end(fiber *f) {
    block_counts *b = f->home->counts;
    uint32_t blocks = now->code->code_blocks, *most;
    if (!b)
        return;
    most = b->most + (size_t)f->thread.warp * blocks;
    for (uint32_t i = 0; i < blocks; i++)
        if (f->thread.trips[i] > most[i])
            most[i] = f->thread.trips[i];
    memset(f->thread.trips, 0, blocks * sizeof *most);
}

void count_block_end(resident *r) {
    block_counts *b = r->counts;
    sim_kernel_counts *sum;
    uint32_t blocks;
    if (!b || r->launch->failed)
        return;
    sum = &r->launch->counts->sum;
    blocks = r->launch->code->code_blocks;
    for (uint32_t i = 0; i < b->warps; i++)
        merge(r, &b->warp[i]);
    for (uint32_t i = 0; i < b->warps * blocks; i++)
        for (int k = 0; k < SIM_CLASSES && b->most[i]; k++)
            sum->instructions[k] +=
                (uint64_t)b->most[i] * r->launch->code->code_block[i % blocks].instructions[k];
    memset(b->most, 0, (size_t)b->warps * blocks * sizeof *b->most);
}

void count_block_start(resident *r) {
    if (!r->counts)
        return;
    r->launch->counts->sum.blocks++;
    r->launch->counts->sum.warps += r->counts->warps;
}

void count_barrier(resident *r, const barrier *b) {
    if (!r->counts)
        return;
    for (uint32_t i = 0; i < r->counts->warps; i++) {
        r->launch->counts->sum.barriers += b->waiting[i] != 0;
        if ((b->waiting[i] | r->warps[i].exited) == ~0u)
            merge(r, &r->counts->warp[i]);
    }
}

void count_collective(resident *r, uint32_t number, uint32_t arrived) {
    if (r->counts && (arrived | r->warps[number].exited) == ~0u && r->counts->warp[number].waiting)
        merge(r, &r->counts->warp[number]);
}
