/* Warp collectives: shuffles, votes, __syncwarp, matrix instructions. Lanes with the same function
   and mask meet; the last one to arrive computes for all. */
#include "exec.h"
#include <string.h>

void warps_reset(resident *r) {
    for (uint32_t w = 0; w < SIM_WARP; w++) {
        uint32_t first = w * SIM_WARP, there = r->threads > first ? r->threads - first : 0;
        r->warps[w].meetings = 0;
        r->warps[w].exited = there >= SIM_WARP ? 0 : ~0u << there;
    }
}

static rendezvous *meeting_of(warp *w, sim_warp_fn *fn, uint32_t mask, const sim_site *site) {
    rendezvous *m;
    for (uint32_t i = 0; i < w->meetings; i++)
        if (w->meeting[i].fn == fn && w->meeting[i].mask == mask)
            return &w->meeting[i];
    m = &w->meeting[w->meetings++];
    m->fn = fn;
    m->mask = mask;
    m->arrived = 0;
    m->site = site;
    return m;
}

/* Only __syncwarp orders memory among its lanes; shuffles and votes do not. */
static bool orders_memory(const sim_site *site) {
    return site && site->text &&
           (strstr(site->text, "bar.warp") || strstr(site->text, "barrier.warp"));
}

static void finish(resident *r, uint32_t number, rendezvous *m) {
    warp *w = &r->warps[number];
    sim_thread *lanes[SIM_WARP];
    rendezvous done = *m;
    *m = w->meeting[--w->meetings];
    for (uint32_t l = 0; l < SIM_WARP; l++)
        lanes[l] = done.arrived >> l & 1 ? &r->fibers[number * SIM_WARP + l].thread : NULL;
    done.fn(lanes, done.arrived);
    count_collective(r, number, done.arrived);
    if (orders_memory(done.site))
        shared_check_warp(r, number, done.arrived);
    now->idle = 0;
    for (uint32_t l = SIM_WARP; l-- > 0;)
        if (done.arrived >> l & 1)
            fiber_wake(&r->fibers[number * SIM_WARP + l]);
}

void on_collective(sim_thread *t, sim_warp_fn *fn, uint32_t mask, int aligned,
                   const sim_site *site) {
    fiber *f = (fiber *)t;
    warp *w = &f->home->warps[t->warp];
    rendezvous *m;
    if (!(mask >> t->lane & 1))
        launch_abort(CUDA_ERROR_LAUNCH_FAILED, f, site,
                     "bad mask: %#010x does not name the calling lane %u", mask, t->lane);
    if ((mask & w->exited) && !settings.exited_lanes)
        launch_abort(CUDA_ERROR_LAUNCH_FAILED, f, site,
                     "bad mask: %#010x names lanes %#010x, which have "
                     "returned or do not exist",
                     mask, mask & w->exited);
    m = meeting_of(w, fn, mask, site);
    if (aligned && m->site != site)
        launch_abort(CUDA_ERROR_LAUNCH_FAILED, f, site,
                     "lanes of one warp come to this from different places");
    m->arrived |= 1u << t->lane;
    f->state = FIBER_WARP;
    f->site = site;
    if (m->arrived == (mask & ~w->exited)) {
        bool random = settings.policy == POLICY_RANDOM;
        f->state = random ? FIBER_WARP : FIBER_READY;
        finish(f->home, t->warp, m);
        if (!random)
            return;
    }
    fiber_leave();
}

void warp_exit(fiber *f) {
    warp *w = &f->home->warps[f->thread.warp];
    uint32_t bit = 1u << f->thread.lane;
    w->exited |= bit;
    for (uint32_t i = w->meetings; i-- > 0;) {
        rendezvous *m = &w->meeting[i];
        if (!(m->mask & bit))
            continue;
        if (!settings.exited_lanes) {
            launch_report(
                CUDA_ERROR_LAUNCH_FAILED, f, m->site,
                "bad mask: lanes %#010x wait for lanes %#010x, and lane %u of them has returned",
                m->arrived, m->mask, f->thread.lane);
            return;
        }
        if (m->arrived == (m->mask & ~w->exited))
            finish(f->home, f->thread.warp, m);
    }
}
