/* The kernels of the check programs. The first part is right under every order; each of the second has one
   mistake, which the driver must report. */
#include "device_code.h"
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

/* ---- right ---- */

struct fill_args {
    float *x;
    float v;
    int n;
};

static void fill(sim_thread *t) {
    ARGS(fill);
    if ((int)GLOBAL_ID < a->n)
        STORE(a->x + GLOBAL_ID, a->v);
}

struct add_args {
    float *x;
    const float *y;
    int n;
};

static void add(sim_thread *t) {
    ARGS(add);
    int i = (int)GLOBAL_ID;
    if (i < a->n)
        STORE(a->x + i, LOAD(a->x + i) + LOAD(a->y + i));
}

/* One sum for each block: shared memory, barriers, then shuffles. */
static float block_sum(sim_thread *t, float v) {
    float *s = SHARED(float);
    STORE(s + TID, v);
    for (uint32_t step = THREADS / 2; step >= 32; step /= 2) {
        SYNC();
        if (TID < step)
            STORE(s + TID, LOAD(s + TID) + LOAD(s + TID + step));
    }
    v = 0;
    if (TID < 32) {
        v = LOAD(s + TID);
        for (uint32_t delta = 16; delta > 0; delta /= 2)
            v += SHUFFLE_DOWN(0xFFFFFFFFu, v, delta);
    }
    return v;
}

struct reduce_args {
    const float *x;
    float *sums;
    int n;
};

static void reduce(sim_thread *t) {
    ARGS(reduce);
    int i = (int)GLOBAL_ID;
    float v = block_sum(t, i < a->n ? LOAD(a->x + i) : 0);
    if (TID == 0)
        STORE(a->sums + BLOCK, v);
}

/* The last block to finish adds the sums of all: fence, ticket, read. */
struct ticket_args {
    const float *x;
    float *sums;
    float *total;
    unsigned *ticket;
    int n;
};

static void ticket(sim_thread *t) {
    ARGS(ticket);
    unsigned *last = (unsigned *)(SHARED(float) + 1024);
    int i = (int)GLOBAL_ID;
    float v = block_sum(t, i < a->n ? LOAD(a->x + i) : 0);
    if (TID == 0) {
        STORE(a->sums + BLOCK, v);
        FENCE();
        STORE(last, ATOMIC_ADD(a->ticket, 1u) == BLOCKS - 1);
    }
    SYNC();
    if (LOAD(last) && TID == 0) {
        float total = 0;
        for (uint32_t b = 0; b < BLOCKS; b++)
            total += LOAD(a->sums + b);
        STORE(a->total, total);
    }
}

/* The same without a fence, by an atomic that releases and acquires. */
static void ticket_release(sim_thread *t) {
    ARGS(ticket);
    if (TID == 0) {
        STORE(a->sums + BLOCK, (float)BLOCK);
        TOUCH(a->ticket, SIM_ATOMIC, "atom.add.acq_rel.gpu.u32");
        if ((*a->ticket)++ == BLOCKS - 1) {
            float total = 0;
            for (uint32_t b = 0; b < BLOCKS; b++)
                total += LOAD(a->sums + b);
            STORE(a->total, total);
        }
    }
}

/* c = a b with 16 x 16 tiles; n is a multiple of 16. */
struct matmul_args {
    const float *x;
    const float *y;
    float *z;
    int n;
};

static void matmul(sim_thread *t) {
    ARGS(matmul);
    float *xs = SHARED(float), *ys = xs + 256, sum = 0;
    uint32_t i = t->tid.y, j = t->tid.x, n = (uint32_t)a->n;
    uint32_t row = t->block->ctaid.y * 16 + i, col = t->block->ctaid.x * 16 + j;
    for (uint32_t tile = 0; tile < n; tile += 16) {
        STORE(xs + 16 * i + j, LOAD(a->x + row * n + tile + j));
        STORE(ys + 16 * i + j, LOAD(a->y + (tile + i) * n + col));
        SYNC();
        for (uint32_t k = 0; k < 16; k++)
            sum += LOAD(xs + 16 * i + k) * LOAD(ys + 16 * k + j);
        SYNC();
    }
    STORE(a->z + row * n + col, sum);
}

/* Every block waits for every other: only a cooperative launch may do that. */
struct grid_args {
    unsigned *arrived;
    float *x;
};

static void grid(sim_thread *t) {
    ARGS(grid);
    STORE(a->x + GLOBAL_ID, (float)GLOBAL_ID);
    SYNC();
    if (TID == 0) {
        FENCE();
        ATOMIC_ADD(a->arrived, 1u);
        while (POLL(a->arrived) < BLOCKS)
            ;
        FENCE();
    }
    SYNC();
    uint32_t other = BLOCKS * THREADS - 1 - GLOBAL_ID;
    float v = LOAD(a->x + other);
    STORE(a->x + BLOCKS * THREADS + GLOBAL_ID, v);
}

/* The first warp writes for the second through a named barrier, and goes on. */
struct named_args {
    float *x;
};

static void named(sim_thread *t) {
    ARGS(named);
    float *s = SHARED(float);
    if (TID < 32) {
        STORE(s + TID, (float)TID);
        BARRIER(SIM_BARRIER_ARRIVE, 1, 64);
    } else {
        BARRIER(SIM_BARRIER_SYNC, 1, 64);
        STORE(a->x + TID - 32, LOAD(s + 63 - TID));
    }
}

/* Lanes exchange through shared memory with __syncwarp; bytes and halves too. */
static void syncwarp(sim_thread *t) {
    ARGS(named);
    float *s = SHARED(float);
    unsigned char *bytes = (unsigned char *)(s + 64);
    STORE(s + TID, (float)TID);
    STORE(bytes + TID, (unsigned char)TID);
    SYNCWARP(0xFFFFFFFFu);
    uint32_t other = TID ^ 31;
    STORE(a->x + TID, LOAD(s + other) + LOAD(bytes + other));
}

struct votes_args {
    int *x;
};

static void votes(sim_thread *t) {
    ARGS(votes);
    STORE(a->x + TID, (int)SYNC_COUNT(TID % 3 == 0));
}

/* Blocks that write the same value to the same place race with nobody. */
struct flag_args {
    int *flag;
};

static void flag(sim_thread *t) {
    ARGS(flag);
    STORE(a->flag, 1);
}

/* Each block its own bytes of one word. */
struct bytes_args {
    unsigned char *x;
};

static void bytes(sim_thread *t) {
    ARGS(bytes);
    STORE(a->x + GLOBAL_ID, (unsigned char)GLOBAL_ID);
}

struct histogram_args {
    unsigned *bins;
};

static void histogram(sim_thread *t) {
    ARGS(histogram);
    ATOMIC_ADD(a->bins + GLOBAL_ID % 7, 1u);
}

/* The loop around compare-and-swap begins with a plain read, everywhere. */
static void swap_loop(sim_thread *t) {
    ARGS(histogram);
    unsigned *counter = SHARED(unsigned);
    if (TID == 0)
        STORE(counter, 0u);
    SYNC();
    LOAD(counter);
    ATOMIC_ADD(counter, 1u);
    LOAD(a->bins);
    ATOMIC_ADD(a->bins, 1u);
    SYNC();
    if (TID == 0)
        STORE(a->bins + 1 + BLOCK, LOAD(counter));
}

/* A variable of the module and a constant, through pointers that a relocation sets. */
static void *counter_slot, *table_slot, *pointer_slot;
static const int table_init[4] = {10, 20, 30, 40};

static void variables(sim_thread *t) {
    ARGS(votes);
    const int *table = (const int *)table_slot;
    int *const *pointer = (int *const *)pointer_slot;
    int *counter = LOAD(pointer);
    STORE(a->x + TID, LOAD(table + TID % 4) + LOAD(counter));
}

struct deep_args {
    int *x;
};

static int descend(sim_thread *t, int n) {
    volatile char room[1024];
    room[0] = (char)n;
    return n == 0 ? 0 : 1 + descend(t, n - 1) + (room[0] - (char)n);
}

static void deep(sim_thread *t) {
    ARGS(deep);
    STORE(a->x + TID, descend(t, 600));
}

static void leave(sim_thread *t) {
    ARGS(votes);
    STORE(a->x + GLOBAL_ID, 1);
    t->driver->exit(t);
    STORE(a->x + GLOBAL_ID, 2);
}

static void speak(sim_thread *t) {
    struct {
        int i;
        int pad;
        double d;
        const char *s;
    } args = {42, 0, 1.5, "words"};

    if (TID == 0)
        t->driver->print(t, "device says %d %.1f %s %%\n", &args, SITE("vprintf"));
}

/* ---- one mistake each ---- */

static void no_barrier(sim_thread *t) {
    ARGS(named);
    float *s = SHARED(float);
    STORE(s + TID, (float)TID);
    STORE(a->x + TID, LOAD(s + THREADS - 1 - TID));
}

static void overwritten(sim_thread *t) { /* written anew while others still read */
    ARGS(named);
    float *s = SHARED(float);
    STORE(s + TID, (float)TID);
    SYNC();
    STORE(a->x + TID, LOAD(s + (TID + 1) % THREADS));
    STORE(s + TID, 0.f);
}

static void warp_synchronous(sim_thread *t) {
    ARGS(named);
    float *s = SHARED(float);
    for (uint32_t step = 16; step > 0; step /= 2)
        if (TID < step) {
            STORE(s + TID, 1.f);
            STORE(a->x + TID, LOAD(s + TID + step));
        } else {
            STORE(s + TID, 2.f);
        }
}

static void half_syncwarp(sim_thread *t) { /* orders only the lanes that it names */
    ARGS(named);
    float *s = SHARED(float);
    STORE(s + TID, (float)TID);
    SYNCWARP(TID < 16 ? 0xFFFFu : 0xFFFF0000u);
    STORE(a->x + TID, LOAD(s + (TID ^ 16)));
}

static void divergent_barrier(sim_thread *t) {
    if (TID < 32)
        SYNC();
    else
        SYNC();
}

static void barrier_after_exit(sim_thread *t) {
    if (TID >= 40)
        return;
    SYNC();
}

static void bad_mask(sim_thread *t) {
    if (TID < 16)
        SHUFFLE_DOWN(0xFFFFFFFFu, 1.f, 1);
}

static void not_in_mask(sim_thread *t) {
    SHUFFLE_DOWN(0xFFFFu, 1.f, 1);
}

static void tangled(sim_thread *t) { /* half of a warp at a barrier, the other half waits for it */
    if (TID < 16)
        SYNC();
    else
        SYNCWARP(0xFFFFFFFFu);
}

static void beyond_shared(sim_thread *t) {
    STORE(SHARED(float) + 64 + TID, 1.f);
}

static void blocks_write(sim_thread *t) {
    ARGS(named);
    STORE(a->x, (float)BLOCK);
}

static void
blocks_read(sim_thread *t) { /* in place, with a neighbour: x[i] = x[i + 1] across blocks */
    ARGS(named);
    float v = LOAD(a->x + GLOBAL_ID + 1);
    STORE(a->x + GLOBAL_ID, v);
}

static void peek(sim_thread *t) { /* a plain look at what others count */
    ARGS(histogram);
    if (BLOCK == 0)
        ATOMIC_ADD(a->bins, 1u);
    else if (LOAD(a->bins) != 1)
        STORE(a->bins + 1 + GLOBAL_ID, 1u);
}

static void unwritten(sim_thread *t) { /* no error, but NaN comes out */
    ARGS(named);
    STORE(a->x + TID, LOAD(SHARED(float) + TID));
}

static void one_writes(sim_thread *t) { /* what all the others read */
    ARGS(named);
    float v = LOAD(a->x);
    if (BLOCK == BLOCKS - 1)
        STORE(a->x, v + 1);
}

static void ticket_without_fence(sim_thread *t) {
    ARGS(ticket);
    if (TID == 0) {
        STORE(a->sums + BLOCK, 1.f);
        if (ATOMIC_ADD(a->ticket, 1u) == BLOCKS - 1) {
            float total = 0;
            for (uint32_t b = 0; b < BLOCKS; b++)
                total += LOAD(a->sums + b);
            STORE(a->total, total);
        }
    }
}

static void spin(sim_thread *t) {
    ARGS(grid);
    while (POLL(a->arrived) != 12345)
        ;
}

static void write_constant(sim_thread *t) {
    STORE((int *)table_slot + TID, 1);
}

static void wild(sim_thread *t) {
    volatile uintptr_t address = 64; /* hidden from the compiler, which knows better */
    STORE((int *)address, (int)TID);
}

static void endless(sim_thread *t) {
    ARGS(deep);
    STORE(a->x, descend(t, 1 << 20));
}

static void assertion(sim_thread *t) {
    t->driver->fault(t, SIM_FAULT_ASSERT, "x > 0", SITE("assert"));
}

/* ---- the module ---- */

#define P(kernel, member)                                                                          \
    {                                                                                              \
        offsetof(struct kernel##_args, member), sizeof(((struct kernel##_args *)0)->member),       \
            sizeof(((struct kernel##_args *)0)->member)                                            \
    }
static const sim_param fill_p[] = {P(fill, x), P(fill, v), P(fill, n)};
static const sim_param add_p[] = {P(add, x), P(add, y), P(add, n)};
static const sim_param reduce_p[] = {P(reduce, x), P(reduce, sums), P(reduce, n)};
static const sim_param ticket_p[] = {P(ticket, x), P(ticket, sums), P(ticket, total),
                                     P(ticket, ticket), P(ticket, n)};
static const sim_param matmul_p[] = {P(matmul, x), P(matmul, y), P(matmul, z), P(matmul, n)};
static const sim_param grid_p[] = {P(grid, arrived), P(grid, x)};
static const sim_param one_p[] = {P(named, x)};

/* The size of all is that of the last member's end, without padding. */
#define SIZE(p) ((p)[sizeof(p) / sizeof *(p)-1].offset + (p)[sizeof(p) / sizeof *(p)-1].size)
#define K(kernel, p, shared, stack, deep_, fibers)                                                 \
    {                                                                                              \
#kernel, kernel, p, sizeof(p) / sizeof *(p), SIZE_##p, shared, shared, 0, stack, deep_,    \
            fibers, 0, {0, 0, 0 }, NULL, 0                                                         \
    }

enum {
    SIZE_fill_p = 16,
    SIZE_add_p = 20,
    SIZE_reduce_p = 20,
    SIZE_ticket_p = 36,
    SIZE_matmul_p = 28,
    SIZE_grid_p = 16,
    SIZE_one_p = 8
};

static const sim_kernel kernels[] = {
    K(fill, fill_p, 0, 1024, 0, 0),
    K(add, add_p, 0, 1024, 0, 0),
    K(reduce, reduce_p, 4096, 1024, 0, 1),
    K(ticket, ticket_p, 4100, 1024, 0, 1),
    K(ticket_release, ticket_p, 0, 1024, 0, 0),
    K(matmul, matmul_p, 2048, 1024, 0, 1),
    K(grid, grid_p, 0, 1024, 0, 1),
    K(named, one_p, 256, 1024, 0, 1),
    K(syncwarp, one_p, 512, 1024, 0, 1),
    K(votes, one_p, 0, 1024, 0, 1),
    K(flag, one_p, 0, 1024, 0, 0),
    K(bytes, one_p, 0, 1024, 0, 0),
    K(histogram, one_p, 0, 1024, 0, 0),
    K(variables, one_p, 0, 1024, 0, 0),
    K(deep, one_p, 0, 700 * 1200, 0, 1),
    K(leave, one_p, 0, 1024, 0, 0),
    K(speak, one_p, 0, 8192, 0, 0),
    K(no_barrier, one_p, 4096, 1024, 0, 1),
    K(overwritten, one_p, 4096, 1024, 0, 1),
    K(warp_synchronous, one_p, 4096, 1024, 0, 1),
    K(half_syncwarp, one_p, 4096, 1024, 0, 1),
    K(divergent_barrier, one_p, 0, 1024, 0, 1),
    K(barrier_after_exit, one_p, 0, 1024, 0, 1),
    K(bad_mask, one_p, 0, 1024, 0, 1),
    K(not_in_mask, one_p, 0, 1024, 0, 1),
    K(tangled, one_p, 0, 1024, 0, 1),
    K(beyond_shared, one_p, 256, 1024, 0, 1),
    K(blocks_write, one_p, 0, 1024, 0, 0),
    K(blocks_read, one_p, 0, 1024, 0, 0),
    K(swap_loop, one_p, 4, 1024, 0, 1),
    K(peek, one_p, 0, 1024, 0, 0),
    K(unwritten, one_p, 128, 1024, 0, 1),
    K(one_writes, one_p, 0, 1024, 0, 0),
    K(ticket_without_fence, ticket_p, 0, 1024, 0, 0),
    K(spin, grid_p, 0, 1024, 0, 1),
    K(write_constant, one_p, 0, 1024, 0, 0),
    K(wild, one_p, 0, 1024, 0, 0),
    K(endless, one_p, 0, 1024, 0, 1),
    K(assertion, one_p, 0, 1024, 0, 0),
    {"bounded", fill, fill_p, 3, SIZE_fill_p, 0, 0, 0, 1024, 0, 0, 128, {0, 0, 0}, NULL, 0},
    {"required", fill, fill_p, 3, SIZE_fill_p, 0, 0, 0, 1024, 0, 0, 0, {32, 2, 1}, NULL, 0},
};

static const int seven = 7;
static const sim_global globals[] = {
    {"counter", 4, 4, &seven, &counter_slot, 0},
    {"table", sizeof table_init, 16, table_init, &table_slot, 1},
    {"pointer", 8, 8, NULL, &pointer_slot, 0},
};
static const sim_reloc relocs[] = {{2, 0, 0, NULL, 0}};

EXPORT const sim_module sim_module_export = {
    SIM_ABI, 1, 80, kernels, sizeof kernels / sizeof *kernels, globals, 3, relocs, 1, NULL};
