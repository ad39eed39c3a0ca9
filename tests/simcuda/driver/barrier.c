/* Barriers of a block: __syncthreads, the named ones, those that reduce a predicate.

   Stricter than a GPU, which waits only for threads that have not returned. Here a __syncthreads
   that some threads never reach is an error even where a GPU would let it pass. */
#include "exec.h"
#include <string.h>

void barriers_reset(resident *r) {
    memset(r->barriers, 0, sizeof r->barriers);
}

static void bit_set(uint32_t *set, uint32_t i) {
    set[i / 32] |= 1u << i % 32;
}

static const fiber *first_waiter(const resident *r, const barrier *b) {
    for (uint32_t i = 0; i < r->threads; i++)
        if (b->waiting[i / 32] >> i % 32 & 1)
            return &r->fibers[i];
    return NULL;
}

/* The first thread to arrive sets what the barrier waits for; the others must agree. */
static void join(fiber *f, barrier *b, sim_barrier_kind kind, uint32_t id, uint32_t count,
                 int aligned, const sim_site *site) {
    resident *r = f->home;
    uint32_t expected = count ? count : r->threads;
    if (id >= 16 || count % SIM_WARP != 0)
        launch_abort(CUDA_ERROR_ILLEGAL_INSTRUCTION, f, site,
                     "barrier %u for %u threads: 16 barriers, "
                     "whole warps",
                     id, count);
    if (expected > r->threads)
        launch_abort(CUDA_ERROR_LAUNCH_FAILED, f, site,
                     "barrier %u waits for %u threads, the block has %u", id, expected, r->threads);
    if (b->arrived == 0) {
        memset(b, 0, sizeof *b);
        b->expected = expected;
        b->whole = count == 0;
        b->kind = kind;
        b->site = site;
        return;
    }
    if (b->expected != expected)
        launch_abort(CUDA_ERROR_LAUNCH_FAILED, f, site,
                     "barrier %u: %u threads expected here, %u where the "
                     "first one came from",
                     id, expected, b->expected);
    if (kind != b->kind && kind != SIM_BARRIER_ARRIVE && b->kind != SIM_BARRIER_ARRIVE)
        launch_abort(CUDA_ERROR_LAUNCH_FAILED, f, site,
                     "barrier %u: different kinds of waiting meet", id);
    if (aligned && b->whole && site != b->site && kind != SIM_BARRIER_ARRIVE &&
        b->kind != SIM_BARRIER_ARRIVE) {
        const fiber *other = first_waiter(r, b);
        launch_abort(CUDA_ERROR_LAUNCH_FAILED, f, site,
                     "divergent barrier: threads wait at different "
                     "__syncthreads, thread %u at PTX line %u",
                     other ? other->index : 0, b->site ? b->site->ptx_line : 0);
    }
    if (kind != SIM_BARRIER_ARRIVE)
        b->kind = kind;
}

static uint32_t outcome(const barrier *b) {
    switch (b->kind) {
    case SIM_BARRIER_POPC:
        return b->votes;
    case SIM_BARRIER_AND:
        return b->votes == b->expected;
    case SIM_BARRIER_OR:
        return b->votes > 0;
    default:
        return 0;
    }
}

static void complete(resident *r, barrier *b) {
    uint32_t result = outcome(b);
    shared_check_barrier(r, b);
    count_barrier(r, b);
    now->idle = 0;
    b->arrived = 0;
    for (uint32_t i = r->threads; i-- > 0;)
        if (b->waiting[i / 32] >> i % 32 & 1) {
            r->fibers[i].result = result;
            fiber_wake(&r->fibers[i]);
        }
}

uint32_t on_barrier(sim_thread *t, sim_barrier_kind kind, uint32_t id, uint32_t count,
                    int predicate, int aligned, const sim_site *site) {
    fiber *f = (fiber *)t;
    barrier *b = &f->home->barriers[id % 16];
    join(f, b, kind, id, count, aligned, site);
    if (kind == SIM_BARRIER_ARRIVE && b->parties[f->index / 32] >> f->index % 32 & 1)
        launch_abort(CUDA_ERROR_LAUNCH_FAILED, f, site, "barrier %u: the thread arrives twice", id);
    bit_set(b->parties, f->index);
    b->arrived++;
    b->votes += predicate != 0;
    if (kind == SIM_BARRIER_ARRIVE) {
        if (b->arrived == b->expected)
            complete(f->home, b);
        return 0;
    }
    bit_set(b->waiting, f->index);
    f->barrier = id;
    f->state = FIBER_BARRIER;
    f->site = site;
    if (b->arrived == b->expected)
        complete(f->home, b); /* then yield to the other threads */
    fiber_leave();
    return f->result;
}

/* ---- no thread can continue ---- */

static const fiber *in_state(const resident *r, fiber_state state) {
    for (uint32_t i = 0; i < r->threads; i++)
        if (r->fibers[i].state == state)
            return &r->fibers[i];
    return NULL;
}

static uint32_t count_state(const resident *r, fiber_state state) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->threads; i++)
        n += r->fibers[i].state == state;
    return n;
}

void block_stuck(resident *r) {
    const fiber *at_barrier = in_state(r, FIBER_BARRIER), *in_warp = in_state(r, FIBER_WARP);
    uint32_t barriers = count_state(r, FIBER_BARRIER), meetings = count_state(r, FIBER_WARP);
    const fiber *f = at_barrier ? at_barrier : in_warp, *parked = in_state(r, FIBER_PARKED);
    if (parked) {
        launch_report(CUDA_ERROR_LAUNCH_FAILED, parked, parked->site,
                      "deadlock: %u threads wait for an mbarrier or for the rest of their "
                      "warpgroup, %u elsewhere, %u have returned",
                      count_state(r, FIBER_PARKED), barriers + meetings, r->done);
        return;
    }
    if (at_barrier && !in_warp && r->done > 0)
        launch_report(
            CUDA_ERROR_LAUNCH_FAILED, f, f->site,
            "barrier after exit: %u threads wait at a barrier that %u others will never reach, "
            "since they have returned (the first of them: thread %u)",
            barriers, r->done, r->divergent_exit);
    else if (at_barrier && !in_warp)
        launch_report(CUDA_ERROR_LAUNCH_FAILED, f, f->site,
                      "deadlock: %u threads wait at barriers that "
                      "nobody completes",
                      barriers);
    else
        launch_report(
            CUDA_ERROR_LAUNCH_FAILED, f, f ? f->site : NULL,
            "deadlock: %u threads wait at a barrier, %u at a warp collective, %u have returned",
            barriers, meetings, r->done);
}
