/* Kernels that are correct under every order. */
#include "kernels.h"

void fill(sim_thread *t) {
    ARGS(fill);
    if ((int)GLOBAL_ID < a->n)
        STORE(a->x + GLOBAL_ID, a->v);
}

void add(sim_thread *t) {
    ARGS(add);
    int i = (int)GLOBAL_ID;
    if (i < a->n)
        STORE(a->x + i, LOAD(a->x + i) + LOAD(a->y + i));
}

/* Computes one sum for each block: shared memory, barriers, then shuffles. */
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

void reduce(sim_thread *t) {
    ARGS(reduce);
    int i = (int)GLOBAL_ID;
    float v = block_sum(t, i < a->n ? LOAD(a->x + i) : 0);
    if (TID == 0)
        STORE(a->sums + BLOCK, v);
}

/* The last block to finish adds the sums of all: fence, ticket, read. */
void ticket(sim_thread *t) {
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

/* The same without a fence, by an atomic with release and acquire semantics. */
void ticket_release(sim_thread *t) {
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
void matmul(sim_thread *t) {
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

/* Every block waits for every other, which only a cooperative launch allows. */
void grid(sim_thread *t) {
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

/* The first warp writes for the second through a named barrier and does not wait itself. */
void named(sim_thread *t) {
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

/* Lanes exchange values through shared memory with __syncwarp, also of one and two bytes. */
void syncwarp(sim_thread *t) {
    ARGS(named);
    float *s = SHARED(float);
    unsigned char *bytes = (unsigned char *)(s + 64);
    STORE(s + TID, (float)TID);
    STORE(bytes + TID, (unsigned char)TID);
    SYNCWARP(0xFFFFFFFFu);
    uint32_t other = TID ^ 31;
    STORE(a->x + TID, LOAD(s + other) + LOAD(bytes + other));
}

void votes(sim_thread *t) {
    ARGS(votes);
    STORE(a->x + TID, (int)SYNC_COUNT(TID % 3 == 0));
}

/* Blocks that write the same value to the same address do not race. */
void flag(sim_thread *t) {
    ARGS(flag);
    STORE(a->flag, 1);
}

/* Each block writes its own bytes of one word. */
void bytes(sim_thread *t) {
    ARGS(bytes);
    STORE(a->x + GLOBAL_ID, (unsigned char)GLOBAL_ID);
}

void histogram(sim_thread *t) {
    ARGS(histogram);
    ATOMIC_ADD(a->bins + GLOBAL_ID % 7, 1u);
}

/* A compare-and-swap loop usually begins with a plain read. */
void swap_loop(sim_thread *t) {
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
void *counter_slot, *table_slot, *pointer_slot;

void variables(sim_thread *t) {
    ARGS(votes);
    const int *table = (const int *)table_slot;
    int *const *pointer = (int *const *)pointer_slot;
    int *counter = LOAD(pointer);
    STORE(a->x + TID, LOAD(table + TID % 4) + LOAD(counter));
}

int descend(sim_thread *t, int n) {
    volatile char frame[1024];
    frame[0] = (char)n;
    return n == 0 ? 0 : 1 + descend(t, n - 1) + (frame[0] - (char)n);
}

void deep(sim_thread *t) {
    ARGS(deep);
    STORE(a->x + TID, descend(t, 600));
}

void leave(sim_thread *t) {
    ARGS(votes);
    STORE(a->x + GLOBAL_ID, 1);
    t->driver->exit(t);
    STORE(a->x + GLOBAL_ID, 2);
}

void speak(sim_thread *t) {
    struct {
        int i;
        int pad;
        double d;
        const char *s;
    } args = {42, 0, 1.5, "words"};

    if (TID == 0)
        t->driver->print(t, "device says %d %.1f %s %%\n", &args, SITE("vprintf"));
}
