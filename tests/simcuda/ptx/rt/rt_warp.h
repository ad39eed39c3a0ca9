/* Warp collectives. Each lane stores its operands in thread->in and calls driver->collective. The
   last lane to arrive runs one of the functions here, which fills thread->out of all lanes. There
   is one function per combination of qualifiers, because the driver distinguishes collectives by
   it. */
#ifndef RT_WARP_H
#define RT_WARP_H

#include "rt_memory.h"

#define FOR_LANES(l, arrived)                                                                      \
    for (u32 l = 0; l < SIM_WARP; l++)                                                             \
        if ((arrived) >> l & 1)

/* ---- shfl: in = value, lane operand, clamp and segment; out = value, in range ---- */

typedef enum shuffle_mode { SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_BFLY, SHUFFLE_IDX } shuffle_mode;

enum { UNDEFINED_VALUE = 0x7badf00d };

static void shuffle(sim_thread *const lane[SIM_WARP], u32 arrived, shuffle_mode mode) {
    FOR_LANES(l, arrived) {
        u32 b = (u32)lane[l]->in[1] & 31, c = (u32)lane[l]->in[2];
        u32 clamp = c & 31, segment = c >> 8 & 31;
        u32 low = l & segment, high = low | (clamp & ~segment);
        u32 from;
        int inside;
        switch (mode) {
        case SHUFFLE_UP:
            from = l - b;
            inside = (s32)from >= (s32)high;
            break;
        case SHUFFLE_DOWN:
            from = l + b;
            inside = from <= high;
            break;
        case SHUFFLE_BFLY:
            from = l ^ b;
            inside = from <= high;
            break;
        default:
            from = low | (b & ~segment);
            inside = from <= high;
        }
        if (!inside)
            from = l;
        lane[l]->out[0] = arrived >> (from & 31) & 1 ? lane[from & 31]->in[0] : UNDEFINED_VALUE;
        lane[l]->out[1] = (u64)inside;
    }
}

#define RT_SHUFFLE(name, mode)                                                                     \
    __attribute__((unused)) static void shfl_##name(sim_thread *const lane[SIM_WARP],              \
                                                    u32 arrived) {                                 \
        shuffle(lane, arrived, mode);                                                              \
    }
RT_SHUFFLE(up, SHUFFLE_UP)
RT_SHUFFLE(down, SHUFFLE_DOWN)
RT_SHUFFLE(bfly, SHUFFLE_BFLY)
RT_SHUFFLE(idx, SHUFFLE_IDX)
#undef RT_SHUFFLE

INL u32 warp_shuffle(sim_thread *T, sim_warp_fn *fn, u32 value, u32 b, u32 c, u32 mask, u8 *inside,
                     const sim_site *site) {
    T->in[0] = value;
    T->in[1] = b;
    T->in[2] = c;
    T->driver->collective(T, fn, mask, 0, site);
    *inside = (u8)T->out[1];
    return (u32)T->out[0];
}

/* ---- vote, match, redux, elect: one operand, one result and in some a predicate ---- */

static u32 true_lanes(sim_thread *const lane[SIM_WARP], u32 arrived) {
    u32 r = 0;
    FOR_LANES(l, arrived)
    r |= (u32)(lane[l]->in[0] != 0) << l;
    return r;
}

#define RT_VOTE(name, result)                                                                      \
    __attribute__((unused)) static void vote_##name(sim_thread *const lane[SIM_WARP],              \
                                                    u32 arrived) {                                 \
        u32 yes = true_lanes(lane, arrived);                                                       \
        FOR_LANES(l, arrived) lane[l]->out[0] = (result);                                          \
    }
RT_VOTE(any, yes != 0)
RT_VOTE(all, yes == arrived)
RT_VOTE(uni, yes == arrived || yes == 0)
RT_VOTE(ballot, yes)
#undef RT_VOTE

__attribute__((unused)) static void match_any(sim_thread *const lane[SIM_WARP], u32 arrived) {
    FOR_LANES(l, arrived) {
        u32 same = 0;
        FOR_LANES(k, arrived)
        same |= (u32)(lane[k]->in[0] == lane[l]->in[0]) << k;
        lane[l]->out[0] = same;
    }
}

__attribute__((unused)) static void match_all(sim_thread *const lane[SIM_WARP], u32 arrived) {
    u64 first = lane[__builtin_ctz(arrived)]->in[0];
    int all = 1;
    FOR_LANES(l, arrived)
    all &= lane[l]->in[0] == first;
    FOR_LANES(l, arrived) {
        lane[l]->out[0] = all ? arrived : 0;
        lane[l]->out[1] = (u64)all;
    }
}

#define RT_REDUX(name, T, operation)                                                               \
    __attribute__((unused)) static void redux_##name(sim_thread *const lane[SIM_WARP],             \
                                                     u32 arrived) {                                \
        u32 left = arrived;                                                                        \
        T a = (T)lane[__builtin_ctz(left)]->in[0];                                                 \
        for (left &= left - 1; left; left &= left - 1) {                                           \
            T b = (T)lane[__builtin_ctz(left)]->in[0];                                             \
            a = (operation);                                                                       \
        }                                                                                          \
        FOR_LANES(l, arrived) lane[l]->out[0] = (u32)a;                                            \
    }
RT_REDUX(add, u32, a + b)
RT_REDUX(and, u32, a &b)
RT_REDUX(or, u32, a | b)
RT_REDUX(xor, u32, a ^ b)
RT_REDUX(min_u32, u32, a < b ? a : b)
RT_REDUX(max_u32, u32, a > b ? a : b)
RT_REDUX(min_s32, s32, a < b ? a : b)
RT_REDUX(max_s32, s32, a > b ? a : b)
#undef RT_REDUX

__attribute__((unused)) static void elect(sim_thread *const lane[SIM_WARP], u32 arrived) {
    u32 chosen = (u32)__builtin_ctz(arrived);
    FOR_LANES(l, arrived) {
        lane[l]->out[0] = chosen;
        lane[l]->out[1] = l == chosen;
    }
}

__attribute__((unused)) static void warp_sync(sim_thread *const lane[SIM_WARP], u32 arrived) {
    (void)lane;
    (void)arrived;
}

INL u32 warp_call(sim_thread *T, sim_warp_fn *fn, u64 value, u32 mask, u8 *second,
                  const sim_site *site) {
    T->in[0] = value;
    T->driver->collective(T, fn, mask, 0, site);
    *second = (u8)T->out[1];
    return (u32)T->out[0];
}

#endif
