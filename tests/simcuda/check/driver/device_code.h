/* Macros for hand-written kernels against sim_module.h, in the style of the translator: one
   function is one thread, and every access is announced. With them the driver is tested without
   NVRTC and without the translator. */
#ifndef SIM_DEVICE_CODE_H
#define SIM_DEVICE_CODE_H

#include "../../sim_module.h"

#define SITE(text)                                                                                 \
    ({                                                                                             \
        static const sim_site site_ = {__func__, text, __LINE__, __LINE__, __FILE__};              \
        &site_;                                                                                    \
    })
#define TOUCH(p, kind, text)                                                                       \
    t->driver->access(t, (uint64_t)(uintptr_t)(p), sizeof *(p), kind, SITE(text))
#define LOAD(p)                                                                                    \
    ({                                                                                             \
        __typeof__(&*(p)) p_ = (p);                                                                \
        TOUCH(p_, SIM_LOAD, "ld");                                                                 \
        *p_;                                                                                       \
    })
#define STORE(p, v)                                                                                \
    do {                                                                                           \
        __typeof__(&*(p)) to_ = (p);                                                               \
        __typeof__(*to_) value_ = (v);                                                             \
        TOUCH(to_, SIM_STORE, "st");                                                               \
        *to_ = value_;                                                                             \
    } while (0)
#define ATOMIC_ADD(p, v)                                                                           \
    ({                                                                                             \
        __typeof__(&*(p)) at_ = (p);                                                               \
        TOUCH(at_, SIM_ATOMIC, "atom.add");                                                        \
        t->budget -= 256;                                                                          \
        __typeof__(*at_) old_ = *at_;                                                              \
        *at_ = old_ + (v);                                                                         \
        old_;                                                                                      \
    })
/* A load in a loop that waits for another thread. */
#define POLL(p)                                                                                    \
    ({                                                                                             \
        __typeof__(&*(p)) p_ = (p);                                                                \
        TOUCH(p_, SIM_LOAD_STRONG, "ld.volatile");                                                 \
        __typeof__(*p_) v_ = *(volatile __typeof__(*p_) *)p_;                                      \
        if ((t->budget -= 256) < 0)                                                                \
            t->driver->yield(t, SIM_YIELD_BUDGET, SITE("bra"));                                    \
        v_;                                                                                        \
    })
#define FENCE() t->driver->fence(t, 'g', SITE("membar.gl"))
#define SYNC() t->driver->barrier(t, SIM_BARRIER_SYNC, 0, 0, 0, 1, SITE("bar.sync 0"))
#define BARRIER(kind, id, count) t->driver->barrier(t, kind, id, count, 0, 1, SITE("barrier"))
#define SYNC_COUNT(predicate)                                                                      \
    t->driver->barrier(t, SIM_BARRIER_POPC, 0, 0, predicate, 1, SITE("bar.red.popc"))
#define SYNCWARP(mask) t->driver->collective(t, nothing, mask, 0, SITE("bar.warp.sync"))
#define SHUFFLE_DOWN(mask, value, delta)                                                           \
    ({                                                                                             \
        float f_ = (value);                                                                        \
        t->in[0] = 0;                                                                              \
        __builtin_memcpy(&t->in[0], &f_, 4);                                                       \
        t->in[1] = (delta);                                                                        \
        t->driver->collective(t, shuffle_down, mask, 0, SITE("shfl.sync.down"));                   \
        __builtin_memcpy(&f_, &t->out[0], 4);                                                      \
        f_;                                                                                        \
    })

#define TID t->tid.x
#define BLOCK t->block->ctaid.x
#define THREADS t->block->ntid.x
#define BLOCKS t->block->nctaid.x
#define GLOBAL_ID (BLOCK * THREADS + TID)
#define SHARED(type) ((type *)(void *)t->block->shared)
/* Parameters are one struct per kernel, laid out by the rules of C. */
#define ARGS(kernel) const struct kernel##_args *a = (const void *)t->block->params

static inline void nothing(sim_thread *const lane[SIM_WARP], uint32_t arrived) {
    (void)lane;
    (void)arrived;
}

static inline void shuffle_down(sim_thread *const lane[SIM_WARP], uint32_t arrived) {
    (void)arrived;
    for (uint32_t l = 0; l < SIM_WARP; l++)
        if (lane[l]) {
            uint32_t from = l + (uint32_t)lane[l]->in[1];
            lane[l]->out[0] = from < SIM_WARP && lane[from] ? lane[from]->in[0] : lane[l]->in[0];
        }
}

#endif
