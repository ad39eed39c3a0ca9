/* Branches, switches, calls, recursion, barriers of all kinds, exits in divergent code, faults, the
   instruction budget, special registers. */
#include <string.h>

#include "check.h"
#include "expect.h"
#include "kernels.h"

/* clang-format off */
static const char code[] = HEAD("sm_90")
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
        ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 "
        "g, .param .b64 s);\n"
        ".global .align 1 .b8 text[6] = {110, 61, 37, 100, 10, 0};\n"
        ".visible .func (.param .b32 r) fib(.param .b32 n);\n"
        ".visible .func (.param .b32 r) fib(.param .b32 n) {\n"
        ".reg .b32 %n, %a, %b; .reg .pred %p; ld.param.u32 %n, [n]; setp.lt.u32 %p, %n, 2; "
        "@%p bra ONE;\n"
        "{ .param .b32 x; .param .b32 y; add.u32 %a, %n, -1; st.param.b32 [x], %a; "
        "call.uni (y), fib, (x); ld.param.b32 %a, [y]; }\n"
        "{ .param .b32 x; .param .b32 y; add.u32 %b, %n, -2; st.param.b32 [x], %b; "
        "call.uni (y), fib, (x); ld.param.b32 %b, [y]; }\n"
        "add.u32 %a, %a, %b; st.param.b32 [r], %a; ret;\n"
        "ONE: st.param.b32 [r], %n; ret; }\n"
        ".func leave(.param .b32 when) {\n"
        ".reg .b32 %a; .reg .pred %p; ld.param.b32 %a, [when]; setp.eq.u32 %p, %a, 3; "
        "@%p exit; ret; }\n"
        ".func (.param .align 8 .b8 r[16]) swap(.param .align 8 .b8 v[16]) {\n"
        ".reg .b64 %a, %b; ld.param.v2.b64 {%a, %b}, [v]; st.param.v2.b64 [r], {%b, %a}; ret; "
        "}\n"
        ".shared .align 4 .u32 counter;\n"
        ".func bump() {\n"
        ".reg .b32 %a; atom.shared.add.u32 %a, [counter], 1; ret; }\n"
    KERNEL("loop", "mov.u32 %r0, 0; mov.u32 %r1, 0; L: add.u32 %r0, %r0, %r1; "
        "add.u32 %r1, %r1, 1; setp.le.u32 %q0, %r1, %i; @%q0 bra L;\n"
        MINE "st.global.u32 [%w0], %r0;")
    /* the same sum with uniform branches, also a forward branch past the end */
    KERNEL("uniform", "mov.u32 %r0, 0; mov.u32 %r1, 0; L: setp.gt.u32 %q0, %r1, 20; "
        "@%q0 bra.uni E; add.u32 %r0, %r0, %r1; add.u32 %r1, %r1, 1; bra.uni L; "
        "E: add.u32 %r0, %r0, %i;\n"
        MINE "st.global.u32 [%w0], %r0;")
    /* each block writes its position in the grid, in execution order */
    KERNEL("grid", "mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ctaid.y; mov.u32 %r2, %ctaid.z; "
        "mov.u32 %r3, %nctaid.x; mov.u32 %r4, %nctaid.y; mov.u32 %r5, %nctaid.z; "
        "atom.global.add.u32 %r6, [%p1], 1; mul.lo.u32 %r6, %r6, 24;\n"
        "cvt.u64.u32 %w0, %r6; add.u64 %w0, %w0, %p0; st.global.v2.u32 [%w0], {%r0, %r1}; "
        "st.global.v2.u32 [%w0+8], {%r2, %r3}; st.global.v2.u32 [%w0+16], {%r4, %r5};")
    KERNEL("cases", "rem.u32 %r0, %i, 4; ts: .branchtargets A, B, C, D; brx.idx.uni %r0, ts; "
        "A: mov.u32 %r1, 10; bra.uni Z; B: mov.u32 %r1, 20; bra Z;\n"
        "C: mov.u32 %r1, 30; bra Z; D: mov.u32 %r1, 40; Z:" MINE "st.global.u32 [%w0], %r1;")
    KERNEL("beyond", "ts: .branchtargets A; brx.idx %i, ts; A:")
    KERNEL("fibonacci", "{ .param .b32 x; .param .b32 y; st.param.b32 [x], %i; "
        "call (y), fib, (x); ld.param.b32 %r0, [y]; }" MINE "st.global.u32 [%w0], %r0;")
    KERNEL("leaving", MINE "st.global.u32 [%w0], 1; { .param .b32 x; st.param.b32 [x], %i; "
        "call leave, (x); } st.global.u32 [%w0], 2; setp.eq.u32 %q0, %i, 5;\n"
        "@%q0 exit; st.global.u32 [%w0], 4; bar.warp.sync 0xffffffff; st.global.u32 [%w0], 8;")
    KERNEL("pairs", "{ .param .align 8 .b8 x[16]; .param .align 8 .b8 y[16]; "
        "st.param.v2.b64 [x], {%p1, %p2}; call (y), swap, (x); "
        "ld.param.v2.b64 {%w1, %w2}, [y]; }\n"
        "st.global.v2.b64 [%p0], {%w1, %w2};")
    KERNEL("bumps", ".shared .align 16 .b8 mine[48]; st.shared.u32 [counter], 0; bar.sync 0; "
        "call bump; bar.sync 0; ld.shared.u32 %r0, [counter];\n" MINE
        "st.global.u32 [%w0], %r0; st.shared.u32 [mine+44], 1;")
    KERNEL("pointer", "mov.u64 %w3, fib; { .param .b32 x; .param .b32 y; st.param.b32 [x], %i; "
        "p: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
        "call (y), %w3, (x), p; ld.param.b32 %r0, [y]; }" MINE "st.global.u32 [%w0], %r0;")
    KERNEL("printing", ".local .align 8 .b8 args[8]; st.local.u32 [args], %i; { .param .b64 f; "
        ".param .b64 a; .param .b32 r; mov.u64 %w0, text; cvta.global.u64 %w0, %w0;\n"
        "mov.u64 %w1, args; cvta.local.u64 %w1, %w1; st.param.b64 [f], %w0; "
        "st.param.b64 [a], %w1; call.uni (r), vprintf, (f, a); }")
    KERNEL("asserting", "{ .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 g; "
        ".param .b64 s; mov.u64 %w0, text; st.param.b64 [m], %w0; st.param.b64 [f], %w0;\n"
        "st.param.b32 [l], 42; st.param.b64 [g], %w0; st.param.b64 [s], 1; "
        "call __assertfail, (m, f, l, g, s); }")
    KERNEL("rotate",
        /* read the cell of the next thread after a barrier */
        ".shared .align 4 .b8 s[512]; mov.u32 %r0, s; mad.lo.u32 %r1, %i, 4, %r0; "
        "st.shared.u32 [%r1], %i; barrier.sync.aligned 0; add.u32 %r2, %i, 1; "
        "rem.u32 %r2, %r2, %n;\n"
        "mad.lo.u32 %r1, %r2, 4, %r0; ld.shared.u32 %r3, [%r1];" MINE "st.global.u32 [%w0], %r3;")
    KERNEL("named",
        /* the first warp consumes what the second produces */
        ".shared .align 4 .b8 s[128]; mov.u32 %r0, s; setp.lt.u32 %q0, %i, 32; @%q0 bra USE; "
        "sub.u32 %r1, %i, 32; mad.lo.u32 %r1, %r1, 4, %r0; mul.lo.u32 %r2, %i, 3;\n"
        "st.shared.u32 [%r1], %r2; bar.arrive 3, 64; ret;\n"
        "USE: bar.sync 3, 64; mad.lo.u32 %r1, %i, 4, %r0; ld.shared.u32 %r2, [%r1];" MINE
        "st.global.u32 [%w0], %r2;")
    KERNEL("folds", "and.b32 %r0, %i, 1; setp.eq.u32 %q0, %r0, 1; bar.red.popc.u32 %r1, 0, %q0; "
        "barrier.red.popc.aligned.u32 %r2, 1, 64, !%q0; bar.red.and.pred %q1, 0, %q0;\n"
        "bar.red.or.pred %q2, 0, %q0; setp.lt.u32 %q3, %i, 1000; bar.red.and.pred %q4, 2, %q3; "
        "selp.u32 %r3, 1, 0, %q1; selp.u32 %r4, 2, 0, %q2; selp.u32 %r5, 4, 0, %q4;\n"
        "add.u32 %r3, %r3, %r4; add.u32 %r3, %r3, %r5; mad.wide.u32 %w0, %i, 16, %p0; "
        "st.global.v4.u32 [%w0], {%r1, %r2, %r3, %r0};")
    KERNEL("divided", "setp.lt.u32 %q0, %i, 16; @%q0 bra A; bar.sync 0; ret; A: bar.sync 1;")
    KERNEL("endless", "L: bra L;")
    KERNEL("endless_wait", "L: ld.volatile.global.u32 %r0, [%p0]; setp.eq.u32 %q0, %r0, 0; "
        "@%q0 bra L;")
    /* lane 0 waits for a write of lane 1, so the wait must yield */
    KERNEL("handshake", "setp.ne.u32 %q0, %i, 0; @%q0 bra W; "
        "L: ld.acquire.gpu.global.u32 %r0, [%p0]; setp.eq.u32 %q1, %r0, 0; @%q1 bra L; "
        "st.global.u32 [%p0+4], %r0; ret;\n"
        "W: membar.gl; fence.acq_rel.gpu; fence.sc.cta; st.release.gpu.global.u32 [%p0], 9;")
    KERNEL("trapping", "setp.eq.u32 %q0, %i, 2; @%q0 trap;")
    KERNEL("special", "mov.u32 %r0, %ctaid.x; mad.lo.u32 %r0, %r0, %n, %i; mov.u32 %r1, %tid.y; "
        "mov.u32 %r2, %tid.z; mov.u32 %r3, %ntid.y; mov.u32 %r4, %ntid.z; "
        "mov.u32 %r5, %nctaid.x;\n"
        "mad.lo.u32 %r6, %r2, %r3, %r1; mad.lo.u32 %r6, %r6, %n, %i; mov.u32 %r7, %laneid; "
        "mov.u32 %r8, %warpid; mad.lo.u32 %r8, %r8, 32, %r7; setp.eq.u32 %q0, %r6, %r8; "
        "@!%q0 trap;\n"
        "mov.u64 %w1, %clock64; mov.u64 %w2, %clock64; setp.lt.u64 %q0, %w1, %w2; @!%q0 trap; "
        "mov.u32 %r9, %dynamic_smem_size; mov.u64 %w3, %gridid; cvt.u32.u64 %r10, %w3;\n"
        "mov.u32 %r11, %smid; mov.u32 %r12, %nsmid; mov.u32 %r13, %nwarpid; "
        "mov.u32 %r14, WARP_SZ; add.u32 %r14, %r14, %r13; mov.u32 %r15, %ctaid.x;\n"
        "mad.wide.u32 %w0, %r15, 32, %p0; st.global.v4.u32 [%w0], {%r3, %r4, %r5, %r9}; "
        "st.global.v4.u32 [%w0+16], {%r10, %r11, %r12, %r14};");

/* clang-format on */

static u32 fib(u32 n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static void check_branches(exec *e) {
    u32 *out = exec_buffer(128 * 4);
    if (run(e, "loop", THREADS(100), P(out), 0, 0, 0))
        for (u32 i = 0; i < 100; i++)
            CHECK_INT(out[i], i * (i + 1) / 2);
    if (run(e, "uniform", THREADS(100), P(out), 0, 0, 0))
        for (u32 i = 0; i < 100; i++)
            CHECK_INT(out[i], 210 + i);
    if (run(e, "cases", THREADS(32), P(out), 0, 0, 0))
        for (u32 i = 0; i < 32; i++)
            CHECK_INT(out[i], 10 * (i % 4 + 1));
    run_fails(e, "beyond", THREADS(2), "beyond the branch targets", 0, 0, 0, 0);
    if (run(e, "fibonacci", THREADS(15), P(out), 0, 0, 0))
        for (u32 i = 0; i < 15; i++)
            CHECK_INT(out[i], fib(i));
    if (run(e, "pointer", THREADS(10), P(out), 0, 0, 0))
        for (u32 i = 0; i < 10; i++)
            CHECK_INT(out[i], fib(i));
    if (run(e, "leaving", THREADS(32), P(out), 0, 0, 0))
        for (u32 i = 0; i < 32; i++)
            CHECK_INT(out[i], i == 3 ? 1 : i == 5 ? 2 : 8);
    if (run(e, "pairs", THREADS(1), P(out), 111, 222, 0))
        CHECK(out[0] == 222 && out[2] == 111);
    if (run(e, "bumps", THREADS(96), P(out), 0, 0, 0))
        for (u32 i = 0; i < 96; i++)
            CHECK_INT(out[i], 96);
}

static void check_grid(exec *e) {
    enum { X = 3, Y = 4, Z = 2 };

    u32(*out)[6] = exec_buffer(X * Y * Z * sizeof *out);
    u32 *ticket = exec_buffer(4);
    *ticket = 0;
    exec_launch launch = {.grid = X, .grid_y = Y, .grid_z = Z, .block = 1};
    if (!run(e, "grid", launch, P(out), P(ticket), 0, 0))
        return;
    for (u32 i = 0; i < X * Y * Z; i++) {
        const u32 expected[6] = {i % X, i / X % Y, i / X / Y, X, Y, Z};
        check_that(!memcmp(out[i], expected, sizeof expected), "block %u is elsewhere", i);
    }
}

static void check_facts(exec *e) {
    const sim_kernel *k = exec_kernel(e, "bumps");
    CHECK(k && k->static_shared == 64 && k->shareds == 2 && k->needs_fibers);
    k = exec_kernel(e, "loop");
    CHECK(k && k->static_shared == 0 && !k->needs_fibers && !k->recursive);
    k = exec_kernel(e, "fibonacci");
    CHECK(k && k->recursive && !k->needs_fibers);
    k = exec_kernel(e, "pointer");
    CHECK(k && k->recursive && k->needs_fibers);
    k = exec_kernel(e, "handshake");
    CHECK(k && k->needs_fibers);
    k = exec_kernel(e, "leaving");
    CHECK(k && k->needs_fibers && k->stack_bytes > 0);
}

static void check_barriers(exec *e) {
    for (int reverse = 0; reverse < 2; reverse++) {
        u32 *out = exec_buffer(128 * 16);
        exec_launch all = {.grid = 2, .block = 128, .reverse = reverse};
        exec_launch two = {.grid = 1, .block = 64, .reverse = reverse};
        if (run(e, "rotate", all, P(out), 0, 0, 0))
            for (u32 i = 0; i < 128; i++)
                CHECK_INT(out[i], (i + 1) % 128);
        if (run(e, "named", two, P(out), 0, 0, 0))
            for (u32 i = 0; i < 32; i++)
                CHECK_INT(out[i], 3 * (i + 32));
        if (run(e, "folds", two, P(out), 0, 0, 0))
            for (u32 i = 0; i < 64; i++)
                CHECK(out[4 * i] == 32 && out[4 * i + 1] == 32 && out[4 * i + 2] == 6);
        memset(out, 0, 8);
        if (run(e, "handshake", (exec_launch){.grid = 1, .block = 2, .reverse = reverse}, P(out), 0,
                0, 0)) {
            CHECK_INT(out[1], 9);
            CHECK_INT(exec_fences(), 3);
        }
    }
    run_fails(e, "divided", THREADS(32), "deadlock", 0, 0, 0, 0);
}

static void check_ends(exec *e) {
    u32 *out = exec_buffer(64);
    memset(out, 0, 64);
    run_fails(e, "endless", THREADS(1), "never ends", 0, 0, 0, 0);
    run_fails(e, "endless_wait", THREADS(2), "never ends", P(out), 0, 0, 0);
    run_fails(e, "trapping", THREADS(3), "trap instruction", 0, 0, 0, 0);
    run(e, "trapping", THREADS(2), 0, 0, 0, 0);
    run_fails(e, "asserting", THREADS(1), "fault 3: n=%d\n:42: n=%d\n: assertion `n=%d\n' failed",
              0, 0, 0, 0);
    if (run(e, "printing", THREADS(3), 0, 0, 0, 0))
        CHECK(!strcmp(exec_printed(), "n=%d\n|0;n=%d\n|1;n=%d\n|2;"));
    exec_launch launch = {.grid = 2, .block = 8, .block_y = 4, .block_z = 2, .dynamic_shared = 40};
    if (run(e, "special", launch, P(out), 0, 0, 0)) {
        CHECK(out[0] == 4 && out[1] == 2 && out[2] == 2 && out[3] == 40);
        CHECK(out[4] == 77 && out[5] == 0 && out[6] == 4 && out[7] == 34);
        CHECK(out[13] == 1);
    }
}

int main(void) {
    exec *e = exec_unit(code);
    if (e) {
        check_branches(e);
        check_grid(e);
        check_facts(e);
        check_barriers(e);
        check_ends(e);
    }
    exec_close(e);
    exec_forget();
    return check_end();
}
