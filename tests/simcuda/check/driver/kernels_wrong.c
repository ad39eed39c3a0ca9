/* Kernels with one mistake each, which the driver must report. */
#include "kernels.h"

void no_barrier(sim_thread *t) {
    ARGS(named);
    float *s = SHARED(float);
    STORE(s + TID, (float)TID);
    STORE(a->x + TID, LOAD(s + THREADS - 1 - TID));
}

void overwritten(sim_thread *t) { /* overwritten while other threads still read */
    ARGS(named);
    float *s = SHARED(float);
    STORE(s + TID, (float)TID);
    SYNC();
    STORE(a->x + TID, LOAD(s + (TID + 1) % THREADS));
    STORE(s + TID, 0.f);
}

void warp_synchronous(sim_thread *t) {
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

void half_syncwarp(sim_thread *t) { /* orders only the lanes that it names */
    ARGS(named);
    float *s = SHARED(float);
    STORE(s + TID, (float)TID);
    SYNCWARP(TID < 16 ? 0xFFFFu : 0xFFFF0000u);
    STORE(a->x + TID, LOAD(s + (TID ^ 16)));
}

void divergent_barrier(sim_thread *t) {
    if (TID < 32)
        SYNC();
    else
        SYNC();
}

void barrier_after_exit(sim_thread *t) {
    if (TID >= 40)
        return;
    SYNC();
}

void bad_mask(sim_thread *t) {
    if (TID < 16)
        SHUFFLE_DOWN(0xFFFFFFFFu, 1.f, 1);
}

void not_in_mask(sim_thread *t) {
    SHUFFLE_DOWN(0xFFFFu, 1.f, 1);
}

void tangled(sim_thread *t) { /* half of a warp at a barrier, the other half waits for it */
    if (TID < 16)
        SYNC();
    else
        SYNCWARP(0xFFFFFFFFu);
}

void beyond_shared(sim_thread *t) {
    STORE(SHARED(float) + 64 + TID, 1.f);
}

void blocks_write(sim_thread *t) {
    ARGS(named);
    STORE(a->x, (float)BLOCK);
}

void blocks_read(sim_thread *t) { /* in place across blocks: x[i] = x[i + 1] */
    ARGS(named);
    float v = LOAD(a->x + GLOBAL_ID + 1);
    STORE(a->x + GLOBAL_ID, v);
}

void peek(sim_thread *t) { /* a plain read of what others count */
    ARGS(histogram);
    if (BLOCK == 0)
        ATOMIC_ADD(a->bins, 1u);
    else if (LOAD(a->bins) != 1)
        STORE(a->bins + 1 + GLOBAL_ID, 1u);
}

void unwritten(sim_thread *t) { /* no error, but the result is NaN */
    ARGS(named);
    STORE(a->x + TID, LOAD(SHARED(float) + TID));
}

void one_writes(sim_thread *t) { /* one thread writes what all the others read */
    ARGS(named);
    float v = LOAD(a->x);
    if (BLOCK == BLOCKS - 1)
        STORE(a->x, v + 1);
}

void ticket_without_fence(sim_thread *t) {
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

void spin(sim_thread *t) {
    ARGS(grid);
    while (POLL(a->arrived) != 12345)
        ;
}

void write_constant(sim_thread *t) {
    STORE((int *)table_slot + TID, 1);
}

void wild(sim_thread *t) {
    volatile uintptr_t address = 64; /* hides the value from the compiler's analysis */
    STORE((int *)address, (int)TID);
}

void endless(sim_thread *t) {
    ARGS(deep);
    STORE(a->x, descend(t, 1 << 20));
}

void assertion(sim_thread *t) {
    t->driver->fault(t, SIM_FAULT_ASSERT, "x > 0", SITE("assert"));
}
