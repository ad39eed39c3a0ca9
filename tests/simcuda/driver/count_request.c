/* Counts requests of warps: sectors of global memory, passes through the banks of shared memory. */
#include "count.h"
#include <stdlib.h>

enum { SECTOR = 32, BANKS = 32, WORD = 4 };

/* ---- the sectors that a launch touches ---- */

bool count_pages(launch_counts *c) {
    size_t capacity = c->capacity ? 2 * c->capacity : 1024;
    page *grown = calloc(capacity, sizeof *grown);
    if (!grown)
        return false;
    for (size_t i = 0; i < c->capacity; i++) {
        size_t at = (size_t)(c->page[i].number * 0x9E3779B97F4A7C15u >> 20) % capacity;
        if (!c->page[i].number)
            continue;
        while (grown[at].number)
            at = (at + 1) % capacity;
        grown[at] = c->page[i];
    }
    free(c->page);
    c->page = grown;
    c->capacity = capacity;
    c->last = 0;
    return true;
}

static void touch(launch_counts *c, uint64_t sector, bool stores) {
    uint64_t number = sector * SECTOR / PAGE + 1;
    unsigned bit = (unsigned)(sector % (PAGE / SECTOR));
    size_t at = c->last;
    if (c->page[at].number != number) {
        if (2 * c->pages >= c->capacity && !count_pages(c)) {
            launch_report(CUDA_ERROR_OUT_OF_MEMORY, NULL, NULL, "no memory for counts");
            return;
        }
        at = (size_t)(number * 0x9E3779B97F4A7C15u >> 20) % c->capacity;
        while (c->page[at].number && c->page[at].number != number)
            at = (at + 1) % c->capacity;
        c->pages += !c->page[at].number;
        c->page[at].number = number;
        c->last = at;
    }
    c->page[at].bits[stores][bit / 64] |= (uint64_t)1 << bit % 64;
}

uint64_t count_touched(const launch_counts *c, int stores) {
    uint64_t n = 0;
    for (size_t i = 0; i < c->capacity; i++)
        for (int k = 0; k < 2; k++)
            n += (uint64_t)__builtin_popcountll(c->page[i].bits[stores][k]);
    return n;
}

/* ---- requests ---- */

static void count_global(launch_counts *c, const request *q, sim_global_counts *to, bool stores) {
    uint64_t sector[SIM_WARP];
    uint32_t bytes[SIM_WARP];
    int n = 0;
    for (int i = 0; i < q->lanes; i++) {
        uint64_t s = q->address[i] / SECTOR;
        uint32_t mask = (uint32_t)((((uint64_t)1 << q->size) - 1) << q->address[i] % SECTOR);
        int k = n;
        while (k > 0 && sector[k - 1] != s)
            k--;
        if (k == 0) {
            sector[n] = s;
            bytes[n++] = mask;
            touch(c, s, stores);
        } else {
            bytes[k - 1] |= mask;
        }
    }
    to->requests++;
    to->sectors += (uint64_t)n;
    for (int i = 0; i < n; i++)
        to->bytes += (uint64_t)__builtin_popcount(bytes[i]);
}

/* Returns the passes through the banks for the lanes of which bit i is in `members`. Sets the
   different words. */
static uint32_t passes(const request *q, uint32_t members, uint32_t *words) {
    uint64_t seen[BANKS][SIM_WARP];
    uint32_t n[BANKS] = {0}, most = 0;
    *words = 0;
    for (int i = 0; i < q->lanes; i++) {
        if (!(members >> q->lane[i] & 1))
            continue;
        for (uint64_t w = q->address[i] / WORD; w <= (q->address[i] + q->size - 1) / WORD; w++) {
            uint32_t bank = (uint32_t)(w % BANKS), k = 0;
            while (k < n[bank] && seen[bank][k] != w)
                k++;
            if (k < n[bank])
                continue;
            seen[bank][n[bank]++] = w;
            ++*words;
            if (n[bank] > most)
                most = n[bank];
        }
    }
    return most;
}

/* Tells whether each lane reads the address of the lane whose number differs in this bit. */
static bool pairs_agree(const request *q, uint32_t bit) {
    uint64_t at[SIM_WARP];
    uint32_t there = 0;
    for (int i = 0; i < q->lanes; i++) {
        at[q->lane[i]] = q->address[i];
        there |= 1u << q->lane[i];
    }
    for (int i = 0; i < q->lanes; i++) {
        uint32_t other = q->lane[i] ^ bit;
        if ((there >> other & 1) && at[other] != q->address[i])
            return false;
    }
    return true;
}

/* 64-bit accesses take each half of the warp in turn, 128-bit accesses each quarter. Two adjacent
   parts merge when all lanes i and i XOR 1, or i and i XOR 2, name the same address: so
   microbenchmarks of sm_70 and later report. */
static void count_shared(const request *q, sim_shared_counts *to) {
    uint32_t parts = q->size <= 4 ? 1 : q->size / 4, width = SIM_WARP / parts, words;
    bool merge = parts > 1 && (pairs_agree(q, 1) || pairs_agree(q, 2));
    uint32_t step = merge ? 2 * width : width;
    for (uint32_t first = 0; first < SIM_WARP; first += step) {
        uint32_t members = step == SIM_WARP ? ~0u : ((1u << step) - 1) << first;
        to->wavefronts += passes(q, members, &words);
    }
    passes(q, ~0u, &words);
    to->requests++;
    to->least += (words + BANKS - 1) / BANKS;
}

void count_request(launch_counts *c, const resident *r, const request *q) {
    uint64_t at = q->address[0];
    bool stores = q->kind == SIM_STORE || q->kind == SIM_STORE_STRONG;
    sim_kernel_counts *sum = &c->sum;
    if (q->kind == SIM_ATOMIC) {
        sum->atomics++;
        sum->atomic_lanes += (uint64_t)q->lanes;
    }
    if (at - (uint64_t)(uintptr_t)r->block.shared < r->block.shared_size) {
        if (q->kind != SIM_ATOMIC)
            count_shared(q, stores ? &sum->shared_store : &sum->shared_load);
        return;
    }
    if (in_device_space(at) || region_host((void *)(uintptr_t)at)) {
        const region *in = in_device_space(at) ? region_at(at) : NULL;
        if (q->kind != SIM_ATOMIC && !(in && in->constant))
            count_global(c, q, stores ? &sum->store : &sum->load, stores);
        return;
    }
    if (at - (uint64_t)(uintptr_t)r->block.params >= r->block.params_size)
        sum->local++;
}
