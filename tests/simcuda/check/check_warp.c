/* Warp collectives: every mode of shfl with clamps and segments, votes, matches, reductions,
   partial masks. */
#include <string.h>

#include "check.h"
#include "expect.h"
#include "kernels.h"

/* p0: a value per lane, p1: a second, p2: results; p3: the mask. */
#define IN                                                                                         \
    "cvt.u32.u64 %r9, %p3; mad.wide.u32 %w0, %i, 4, %p0; ld.global.u32 %r0, [%w0]; mad.wide.u32 "  \
    "%w1, %i, 4, %p1; ld.global.u32 %r1, [%w1];\n"                                                 \
    "mov.u32 %r8, %laneid; mov.u32 %r7, 1; shl.b32 %r7, %r7, %r8; and.b32 %r7, %r7, %r9; "         \
    "setp.eq.u32 %q7, %r7, 0; @%q7 bra END;\n"
#define OUT "mad.wide.u32 %w2, %i, 8, %p2; st.global.v2.u32 [%w2], {%r2, %r3};\nEND:"
#define SHFL(name, mode, c)                                                                        \
    KERNEL(name, IN "shfl.sync." mode ".b32 %r2|%q0, %r0, %r1, " c                                 \
                    ", %r9; selp.u32 %r3, 1, 0, %q0;\n" OUT)
/* The clamp in a register. */
#define SHFL_REGISTER(name, mode, c)                                                               \
    KERNEL(name, IN "mov.u32 %r10, " c "; shfl.sync." mode                                         \
                    ".b32 %r2|%q0, %r0, %r1, %r10, %r9; selp.u32 %r3, 1, 0, %q0;\n" OUT)
/* The mask is an immediate, and the distance too unless it is %r1. */
#define SHFL_ALL(name, mode, by, c)                                                                \
    KERNEL(name, IN "mov.u32 %r10, 31; shfl.sync." mode ".b32 %r2|%q0, %r0, " by ", " c            \
                    ", -1; selp.u32 %r3, 1, 0, %q0;\n" OUT)
#define VOTE(name, mode)                                                                           \
    KERNEL(name, IN "setp.ne.u32 %q1, %r0, 0; vote.sync." mode                                     \
                    ".pred %q0, !%q1, %r9; selp.u32 %r2, 1, 0, %q0; mov.u32 %r3, 0;\n" OUT)
#define REDUX(name, op) KERNEL(name, IN "redux.sync." op " %r2, %r0, %r9; mov.u32 %r3, 0;\n" OUT)

/* clang-format off */
static const char code[] = HEAD("sm_90")
    SHFL("up0", "up", "0")
    SHFL("down31", "down", "31")
    SHFL("bfly31", "bfly", "31")
    SHFL("idx31", "idx", "31")
    SHFL("up_8", "up", "0x1800")
    SHFL("down_8", "down", "0x181f")
    SHFL("bfly_4", "bfly", "0x1c1f")
    SHFL("idx_16", "idx", "0x101f")
    SHFL("down_clamp", "down", "20")
    SHFL("up_clamp", "up", "4")
    SHFL("idx_clamp", "idx", "7")
    SHFL_REGISTER("up_register", "up", "0x1000")
    SHFL_REGISTER("down_register", "down", "0x101f")
    SHFL_REGISTER("bfly_register", "bfly", "31")
    SHFL_REGISTER("idx_register", "idx", "31")
    SHFL_ALL("bfly_5", "bfly", "5", "31")
    SHFL_ALL("bfly_by", "bfly", "%r1", "31")
    SHFL_ALL("down_3", "down", "3", "31")
    SHFL_ALL("down_by", "down", "%r1", "31")
    SHFL_ALL("down_to", "down", "%r1", "%r10")
    SHFL_ALL("up_1", "up", "1", "0")
    SHFL_ALL("up_by", "up", "%r1", "0")
    SHFL_ALL("idx_9", "idx", "9", "31")
    VOTE("any", "any")
    VOTE("all", "all")
    VOTE("uni", "uni")
    KERNEL("ballot", IN "setp.ne.u32 %q1, %r0, 0; vote.sync.ballot.b32 %r2, %q1, %r9; "
        "mov.u32 %r3, 0;\n" OUT)
    KERNEL("match_any", IN "match.any.sync.b32 %r2, %r0, %r9; mov.u32 %r3, 0;\n" OUT)
    KERNEL("match_all", IN "match.all.sync.b32 %r2|%q0, %r1, %r9; selp.u32 %r3, 1, 0, %q0;\n" OUT)
    KERNEL("match_64", IN "mov.b64 %w3, {%r1, %r0}; match.any.sync.b64 %r2, %w3, %r9; "
        "match.all.sync.b64 %r3|%q0, %w3, %r9;\n" OUT)
    REDUX("redux_add", "add.s32")
    REDUX("redux_min_u", "min.u32")
    REDUX("redux_max_u", "max.u32")
    REDUX("redux_min_s", "min.s32")
    REDUX("redux_max_s", "max.s32")
    REDUX("redux_and", "and.b32")
    REDUX("redux_or", "or.b32")
    REDUX("redux_xor", "xor.b32")
    KERNEL("elect", IN "elect.sync %r2|%q0, %r9; selp.u32 %r3, 1, 0, %q0;\n" OUT)
    KERNEL("activemask", IN "activemask.b32 %r2; and.b32 %r3, %r2, %r7; bar.warp.sync %r9;\n" OUT)
    KERNEL("masks", IN "mov.u32 %r2, %lanemask_lt; mov.u32 %r3, %lanemask_ge; "
        "xor.b32 %r2, %r2, %r3; mov.u32 %r4, %lanemask_le; mov.u32 %r5, %lanemask_gt;\n"
        "mov.u32 %r6, %lanemask_eq; xor.b32 %r3, %r4, %r5; and.b32 %r2, %r2, %r3; "
        "and.b32 %r4, %r4, %r6; xor.b32 %r3, %r4, %r6; add.u32 %r3, %r3, %r8;\n" OUT)
    KERNEL("not_mine", "shfl.sync.idx.b32 %r0, %i, 0, 31, 1;")
    KERNEL("converge",
        /* a barrier of the warp between a write and a read of shared memory */
        ".shared .align 4 .b8 s[128]; mov.u32 %r0, s; mad.lo.u32 %r1, %i, 4, %r0; "
        "st.shared.u32 [%r1], %i; bar.warp.sync -1; xor.b32 %r2, %i, 5;\n"
        "mad.lo.u32 %r1, %r2, 4, %r0; ld.shared.u32 %r3, [%r1]; mad.wide.u32 %w0, %i, 4, %p0; "
        "st.global.u32 [%w0], %r3;\n");

/* clang-format on */

typedef struct lanes {
    u32 value[32], second[32], mask;
} lanes;

typedef struct pair {
    u32 result, predicate;
} pair;

/* Computes the shuffles by the formulas of the manual. */
static pair shuffle(const lanes *in, int lane, char mode, u32 c) {
    int b = (int)(in->second[lane] & 31), clamp = (int)(c & 31), segment = (int)(c >> 8 & 31);
    int last = (lane & segment) | (clamp & ~segment), first = lane & segment, from = lane, ok = 0;
    switch (mode) {
    case 'u':
        from = lane - b;
        ok = from >= last;
        break;
    case 'd':
        from = lane + b;
        ok = from <= last;
        break;
    case 'b':
        from = lane ^ b;
        ok = from <= last;
        break;
    default:
        from = first | (b & ~segment);
        ok = from <= last;
    }
    from = ok ? from : lane;
    return (pair){in->mask >> from & 1 ? in->value[from] : 0x7badf00d, (u32)ok};
}

static pair over_lanes(const lanes *in, int lane, const char *name) {
    u32 any = 0, all = 1, same = 0, all_same = 1, sum = 0, least = ~0u, most = 0;
    u32 conjunction = ~0u, disjunction = 0, parity = 0;
    s32 least_s = INT32_MAX, most_s = INT32_MIN;
    u32 nonzero = 0;
    int first = -1;
    for (int k = 0; k < 32; k++) {
        if (!(in->mask >> k & 1))
            continue;
        u32 v = in->value[k];
        if (first < 0)
            first = k;
        any |= v == 0; /* the kernels vote on "is zero" */
        all &= v == 0;
        nonzero |= (u32)(v != 0) << k;
        same |= (u32)(v == in->value[lane]) << k;
        all_same &= in->second[k] == in->second[lane];
        sum += v;
        least = v < least ? v : least;
        most = v > most ? v : most;
        least_s = (s32)v < least_s ? (s32)v : least_s;
        most_s = (s32)v > most_s ? (s32)v : most_s;
        conjunction &= v;
        disjunction |= v;
        parity ^= v;
    }

    const struct {
        const char *name;
        u32 result, predicate;
    } table[] = {{"any", any, 0},
                 {"all", all, 0},
                 {"uni", all || !any, 0},
                 {"ballot", nonzero, 0},
                 {"match_any", same, 0},
                 {"match_all", all_same ? in->mask : 0, all_same},
                 {"redux_add", sum, 0},
                 {"redux_min_u", least, 0},
                 {"redux_max_u", most, 0},
                 {"redux_min_s", (u32)least_s, 0},
                 {"redux_max_s", (u32)most_s, 0},
                 {"redux_and", conjunction, 0},
                 {"redux_or", disjunction, 0},
                 {"redux_xor", parity, 0},
                 {"elect", (u32)first, lane == first},
                 {"activemask", 1u << lane, 1u << lane},
                 {"masks", 0xffffffff, (u32)lane}};

    for (size_t i = 0; i < COUNT(table); i++)
        if (!strcmp(table[i].name, name))
            return (pair){table[i].result, table[i].predicate};
    /* match_64: both words */
    u32 both = 0, whole = 1;
    for (int k = 0; k < 32; k++) {
        int equal = in->value[k] == in->value[lane] && in->second[k] == in->second[lane];
        if (in->mask >> k & 1)
            both |= (u32)equal << k, whole &= (u32)equal;
    }
    return (pair){both, whole ? in->mask : 0};
}

static const struct {
    const char *name;
    char mode;
    u32 c;
    int all; /* all lanes are in the mask */
    int by;  /* the distance; 0: the second value of each lane */
} tests[] = {
    {"up0", 'u', 0, 0, 0},
    {"down31", 'd', 31, 0, 0},
    {"bfly31", 'b', 31, 0, 0},
    {"idx31", 'i', 31, 0, 0},
    {"up_8", 'u', 0x1800, 0, 0},
    {"down_8", 'd', 0x181f, 0, 0},
    {"bfly_4", 'b', 0x1c1f, 0, 0},
    {"idx_16", 'i', 0x101f, 0, 0},
    {"down_clamp", 'd', 20, 0, 0},
    {"up_clamp", 'u', 4, 0, 0},
    {"idx_clamp", 'i', 7, 0, 0},
    {"up_register", 'u', 0x1000, 0, 0},
    {"down_register", 'd', 0x101f, 0, 0},
    {"bfly_register", 'b', 31, 0, 0},
    {"idx_register", 'i', 31, 0, 0},
    {"bfly_5", 'b', 31, 1, 5},
    {"bfly_by", 'b', 31, 1, 0},
    {"down_3", 'd', 31, 1, 3},
    {"down_by", 'd', 31, 1, 0},
    {"down_to", 'd', 31, 1, 0},
    {"up_1", 'u', 0, 1, 1},
    {"up_by", 'u', 0, 1, 0},
    {"idx_9", 'i', 31, 1, 9},
    {"any", 0, 0, 0, 0},
    {"all", 0, 0, 0, 0},
    {"uni", 0, 0, 0, 0},
    {"ballot", 0, 0, 0, 0},
    {"match_any", 0, 0, 0, 0},
    {"match_all", 0, 0, 0, 0},
    {"match_64", 0, 0, 0, 0},
    {"redux_add", 0, 0, 0, 0},
    {"redux_min_u", 0, 0, 0, 0},
    {"redux_max_u", 0, 0, 0, 0},
    {"redux_min_s", 0, 0, 0, 0},
    {"redux_max_s", 0, 0, 0, 0},
    {"redux_and", 0, 0, 0, 0},
    {"redux_or", 0, 0, 0, 0},
    {"redux_xor", 0, 0, 0, 0},
    {"elect", 0, 0, 0, 0},
    {"activemask", 0, 0, 0, 0},
    {"masks", 0, 0, 0, 0},
};

static void fill(lanes *in, unsigned round) {
    static const u32 masks[] = {0xffffffff, 0x0000ffff, 0x55555555, 0x80000001, 0x00ff0ff0};
    in->mask = masks[round % COUNT(masks)];
    u32 same = (u32)check_random();
    for (int l = 0; l < 32; l++) {
        switch (round % 4) {
        case 0:
            in->value[l] = (u32)check_random();
            break;
        case 1:
            in->value[l] = (u32)check_random() % 3;
            break;
        case 2:
            in->value[l] = 0;
            break;
        default:
            in->value[l] = 5 + (u32)check_random() % 2 * 0x80000000u;
        }
        in->second[l] = round % 3 == 0 ? same : (u32)check_random() % 32;
    }
}

static void check_lanes(exec *e, size_t t, unsigned round) {
    lanes in;
    u32 *value = exec_buffer(128), *second = exec_buffer(128);
    pair *out = exec_buffer(256);
    fill(&in, round);
    in.mask = tests[t].all ? 0xffffffff : in.mask;
    memcpy(value, in.value, 128);
    memcpy(second, in.second, 128);
    exec_launch launch = {.grid = 1, .block = 32, .reverse = (int)(round & 1)};
    if (!run(e, tests[t].name, launch, P(value), P(second), P(out), in.mask))
        return;
    for (int l = 0; l < 32 && tests[t].by; l++)
        in.second[l] = (u32)tests[t].by;
    for (int l = 0; l < 32; l++) {
        if (!(in.mask >> l & 1))
            continue;
        pair x = tests[t].mode ? shuffle(&in, l, tests[t].mode, tests[t].c)
                               : over_lanes(&in, l, tests[t].name);
        if (!check_that(out[l].result == x.result && out[l].predicate == x.predicate,
                        "%s, round %u, lane %d: %x %x, expected %x %x", tests[t].name, round, l,
                        out[l].result, out[l].predicate, x.result, x.predicate))
            return;
    }
}

int main(void) {
    exec *e = exec_unit(code);
    for (size_t t = 0; e && t < COUNT(tests); t++)
        for (unsigned round = 0; round < 20; round++) {
            check_lanes(e, t, round);
            exec_forget();
        }
    run_fails(e, "not_mine", THREADS(32), "not in its own mask", 0, 0, 0, 0);
    u32 *out = exec_buffer(128);
    for (int reverse = 0; reverse < 2; reverse++) {
        run(e, "converge", (exec_launch){.grid = 1, .block = 32, .reverse = reverse}, P(out), 0, 0,
            0);
        for (u32 l = 0; l < 32; l++)
            CHECK_INT(out[l], l ^ 5);
    }
    exec_close(e);
    exec_forget();
    return check_end();
}
