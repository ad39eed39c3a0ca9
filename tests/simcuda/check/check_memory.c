/* Loads and stores: widths, vectors, cache hints, state spaces, variables, bounds checks to the
   byte, cp.async. */
#include <string.h>

#include "check.h"
#include "expect.h"
#include "kernels.h"

/* clang-format off */
static const char accesses[] = HEAD("sm_80")
    ".const .align 4 .b8 table[16] = {1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 128, 63, 255, 255, 255, 255};"
        "\n"
        ".visible .global .align 8 .u32 numbers[4] = {7, 0xffffffff, 9};\n"
        ".global .align 4 .f32 reals[3] = {0f3F800000, 2.5, 0fBF800000};\n"
        ".global .align 8 .u64 pointers[3] = {generic(numbers), numbers+8, double_it};\n"
        ".global .align 4 .s16 shorts[2] = {-1, 5};\n"
        ".extern .shared .align 16 .b8 dynamic[];\n"
        ".func (.param .b32 r) double_it(.param .b32 x) {\n"
        ".reg .b32 %a; ld.param.b32 %a, [x]; shl.b32 %a, %a, 1;\n"
        "st.param.b32 [r], %a; ret; }\n"
    KERNEL("widths", "ld.global.u8 %r0, [%p0]; st.global.u32 [%p1], %r0;\n"
        "ld.global.s8 %r0, [%p0]; st.global.u32 [%p1+4], %r0;\n"
        "ld.global.s8 %h0, [%p0]; st.global.u16 [%p1+8], %h0;\n"
        "ld.global.nc.u16 %h0, [%p0+2]; st.global.b16 [%p1+10], %h0;\n"
        "ld.global.s16 %r0, [%p0+2]; st.global.b32 [%p1+12], %r0;\n"
        "ld.global.s32 %w0, [%p0+4]; st.global.b64 [%p1+16], %w0;\n"
        "ld.u32 %w0, [%p0+4]; st.b64 [%p1+24], %w0;\n"
        "ld.global.cs.L2::128B.b64 %w0, [%p0+8]; st.global.cs.b64 [%p1+32], %w0;\n"
        "ld.global.L1::no_allocate.v2.u32 {%r0, %r1}, [%p0+8]; "
        "st.global.v2.b32 [%p1+40], {%r1, %r0};\n"
        "ld.global.nc.v4.b32 {%r0, %r1, %r2, %r3}, [%p0]; "
        "st.global.cg.v4.b32 [%p1+48], {%r3, %r2, %r1, %r0};\n"
        "ld.global.v4.u8 {%h0, %h1, %h2, %h3}, [%p0+4]; "
        "st.global.v4.u8 [%p1+64], {%h3, %h2, %h1, %h0};\n"
        "ld.global.v2.b64 {%w0, %w1}, [%p0+16]; st.global.v2.b64 [%p1+80], {%w1, %w0};\n"
        "ld.volatile.global.u32 %r0, [%p0+4]; st.volatile.global.u32 [%p1+96], %r0;\n"
        "ld.relaxed.gpu.global.u32 %r0, [%p0+4]; st.relaxed.gpu.u32 [%p1+100], %r0;\n"
        "ld.acquire.sys.u32 %r0, [%p0+4]; st.release.cta.global.u32 [%p1+104], %r0;\n"
        "ld.global.v2.u64 {%p0, %w0}, [%p0+16]; st.global.u64 [%p1+112], %p0;\n"
        "prefetch.global.L2 [%p1]; prefetchu.L1 [%p1];\n"
        "{ .reg .b64 pol; createpolicy.fractional.L2::evict_first.b64 pol, 1.0;\n"
        "ld.global.L2::cache_hint.u32 %r0, [%p1], pol; "
        "st.global.L2::cache_hint.u32 [%p1+108], %r0, pol; }\n")
    KERNEL("variables", "ld.const.u32 %r0, [table+4]; st.global.u32 [%p1], %r0;\n"
        "mov.u64 %w0, table; ld.const.f32 %r0, [%w0+8]; st.global.u32 [%p1+4], %r0;\n"
        "ld.global.u32 %r0, [numbers+4]; st.global.u32 [%p1+8], %r0; "
        "ld.global.u32 %r0, [numbers+12]; st.global.u32 [%p1+12], %r0;\n"
        "mov.u64 %w0, reals; ld.global.nc.f32 %r0, [%w0+4]; st.global.f32 [%p1+16], %r0;\n"
        "ld.global.u64 %w0, [pointers]; ld.global.u32 %r0, [%w0]; st.global.u32 [%p1+20], %r0;"
        "\n"
        "ld.global.u64 %w0, [pointers+8]; ld.u32 %r0, [%w0]; st.global.u32 [%p1+24], %r0;\n"
        "ld.global.s16 %r0, [shorts]; st.global.u32 [%p1+28], %r0;\n"
        "ld.global.u64 %w0, [pointers+16]; { .param .b32 out; .param .b32 in; "
        "st.param.b32 [in], 21;\n"
        "proto: .callprototype (.param .b32 _) _ (.param .b32 _); "
        "call (out), %w0, (in), proto; ld.param.b32 %r0, [out]; }\n"
        "st.global.u32 [%p1+32], %r0; st.global.u32 [numbers], 100;\n")
    KERNEL("spaces", ".local .align 8 .b8 array[16]; .shared .align 8 .b8 tile[256]; "
        ".reg .b64 %SP;\n"
        "mov.u64 %SP, array; st.local.u32 [%SP+4], %i; cvta.local.u64 %w0, %SP; "
        "ld.u32 %r0, [%w0+4];\n"
        "shl.b32 %r1, %i, 2; mov.u32 %r2, tile; add.s32 %r1, %r1, %r2; "
        "st.shared.u32 [%r1], %r0;\n"
        "cvt.u64.u32 %w1, %r1; cvta.shared.u64 %w1, %w1; ld.u32 %r3, [%w1]; "
        "cvta.to.shared.u64 %w2, %w1; ld.shared.u32 %r4, [%w2];\n"
        "mov.u32 %r5, dynamic; mad.lo.u32 %r5, %i, 4, %r5; st.shared.u32 [%r5], 77; "
        "ld.shared.u32 %r6, [%r5];\n"
        "isspacep.shared %q1, %w1; isspacep.local %q2, %w0; isspacep.global %q3, %p1; "
        "isspacep.global %q4, %w1;\n"
        "selp.u32 %r7, 1, 0, %q1; selp.u32 %r8, 2, 0, %q2; selp.u32 %r9, 4, 0, %q3; "
        "selp.u32 %r10, 8, 0, %q4;\n"
        "or.b32 %r7, %r7, %r8; or.b32 %r9, %r9, %r10; or.b32 %r7, %r7, %r9;\n"
        "mov.b64 %w3, p1; ld.param.u64 %w4, [%w3]; setp.eq.u64 %q1, %w4, %p1; @!%q1 trap;\n"
        "mad.wide.u32 %w5, %i, 16, %p1; st.global.v4.b32 [%w5], {%r3, %r4, %r6, %r7};\n");

/* clang-format on */

static void check_widths(exec *e) {
    u8 *in = exec_buffer(32);
    u32 *out = exec_buffer(128);
    for (int i = 0; i < 32; i++)
        in[i] = (u8)(0x81 + 5 * i);
    if (!run(e, "widths", THREADS(1), P(in), P(out), 0, 0))
        return;
    u32 word[8];
    u64 wide[4];
    memcpy(word, in, 32);
    memcpy(wide, in, 32);
    CHECK_INT(out[0], in[0]);
    CHECK_INT((s32)out[1], (s8)in[0]);
    CHECK_INT((s16)out[2], (s8)in[0]);
    CHECK_INT(out[2] >> 16, in[2] | in[3] << 8);
    CHECK_INT((s32)out[3], (s16)(in[2] | in[3] << 8));
    CHECK(!memcmp(&out[4], &(s64){(s32)word[1]}, 8));
    CHECK(!memcmp(&out[6], &(u64){word[1]}, 8));
    CHECK(!memcmp(&out[8], &wide[1], 8));
    CHECK(out[10] == word[3] && out[11] == word[2]);
    CHECK(out[12] == word[3] && out[13] == word[2] && out[14] == word[1] && out[15] == word[0]);
    CHECK_INT(out[16], __builtin_bswap32(word[1]));
    CHECK(!memcmp(&out[20], &wide[3], 8) && !memcmp(&out[22], &wide[2], 8));
    CHECK(out[24] == word[1] && out[25] == word[1] && out[26] == word[1]);
    CHECK(!memcmp(&out[28], &wide[2], 8));
    CHECK_INT(out[27], in[0]);
}

static void check_variables(exec *e) {
    u32 *out = exec_buffer(64);
    uint64_t size = 0;
    u32 *numbers = exec_global(e, "numbers", &size);
    CHECK(numbers && size == 16);
    if (!run(e, "variables", THREADS(1), 0, P(out), 0, 0))
        return;
    static const u32 expected[] = {2, 0x3f800000, 0xffffffff, 0, 0x40200000, 7, 9, 0xffffffff, 42};
    for (unsigned i = 0; i < COUNT(expected); i++)
        check_that(out[i] == expected[i], "variable %u is %x, expected %x", i, out[i], expected[i]);
    CHECK_INT(numbers[0], 100);
}

static void check_spaces(exec *e) {
    u32 *out = exec_buffer(64 * 16);
    exec_launch launch = {.grid = 2, .block = 64, .dynamic_shared = 256};
    if (!run(e, "spaces", launch, 0, P(out), 0, 0))
        return;
    for (u32 i = 0; i < 64; i++)
        if (!check_that(out[4 * i] == i && out[4 * i + 1] == i && out[4 * i + 2] == 77 &&
                            out[4 * i + 3] == 7,
                        "spaces: thread %u has %u %u %u %u", i, out[4 * i], out[4 * i + 1],
                        out[4 * i + 2], out[4 * i + 3]))
            return;
    const sim_kernel *k = exec_kernel(e, "spaces");
    CHECK(k && k->static_shared == 256 && k->dynamic_offset == 256 && k->local_bytes == 16);
    CHECK(k && k->params == 4 && k->params_size == 32 && k->param[3].offset == 24);
}

/* Parameters of every size lie at multiples of their own alignment. */
static const char layout[] = HEAD(
    "sm_80") ".visible .entry layout(.param .u8 a, .param .u64 b, "
             ".param .u16 c, .param .align 4 .b8 d[6], .param .u32 .ptr .global .align 16 e)\n"
             "{ .reg .b64 %w; .reg .b32 %r; ld.param.u64 %w, [b]; ld.param.u8 %r, [a]; st.u32 "
             "[%w], %r;\n"
             "ld.param.u16 %r, [c]; st.u32 [%w+4], %r; ld.param.u16 %r, [d+4]; st.u32 [%w+8], %r;\n"
             "ld.param.u32 %r, [e]; st.u32 [%w+12], %r; ret; }";

static void check_layout(void) {
    static const sim_param expected[] = {{0, 1, 1}, {8, 8, 8}, {16, 2, 2}, {20, 6, 4}, {28, 4, 4}};
    exec *e = exec_unit(layout);
    const sim_kernel *k = e ? exec_kernel(e, "layout") : NULL;
    u32 *out = exec_buffer(16);
    u8 bytes[32] = {7};
    memcpy(bytes + 8, &out, 8);
    memcpy(bytes + 16, &(u16){600}, 2);
    memcpy(bytes + 24, &(u16){65000}, 2);
    memcpy(bytes + 28, &(u32){70000}, 4);
    CHECK(k && k->params == 5 && k->params_size == 32);
    CHECK(k && !memcmp(k->param, expected, sizeof expected));
    CHECK(k && !exec_run(e, "layout", THREADS(1), bytes));
    CHECK(out[0] == 7 && out[1] == 600 && out[2] == 65000 && out[3] == 70000);
    exec_close(e);
}

/* clang-format off */
static const char faults[] = HEAD("sm_80")
    ".const .u32 constant = 5;\n"
    ".func (.param .b64 r) leak() {\n.reg .b64 %a; .local .align 4 .b8 a[8];\n"
    "mov.u64 %a, a; st.local.u32 [%a], 1; st.param.b64 [r], %a; ret; }\n"
    KERNEL("dangling", "{ .param .b64 r; call (r), leak; ld.param.b64 %w0, [r]; }"
        "ld.local.u32 %r0, [%w0];")
    KERNEL("past_end", MINE "ld.global.u32 %r0, [%w0];")
    KERNEL("misaligned", "ld.global.u32 %r0, [%p0+2];")
    KERNEL("misaligned_vector", "ld.global.v2.u32 {%r0, %r1}, [%p0+4];")
    KERNEL("write_constant", "mov.u64 %w0, constant; st.global.u32 [%w0], 1;")
    KERNEL("past_local", ".local .align 4 .b8 a[8]; mov.u64 %w0, a; "
        "mad.wide.u32 %w0, %i, 4, %w0; st.local.u32 [%w0], 1;")
    KERNEL("past_local_generic", ".local .align 4 .b8 a[8]; mov.u64 %w0, a; "
        "cvta.local.u64 %w0, %w0; mad.wide.u32 %w0, %i, 4, %w0; st.u32 [%w0], 1;")
    KERNEL("past_shared", ".shared .align 4 .b8 s[64]; mov.u32 %r0, s; "
        "mad.lo.u32 %r0, %i, 4, %r0; st.shared.u32 [%r0], 1;")
    KERNEL("past_params", "mov.b64 %w0, p3; ld.param.u64 %w1, [%w0+8];")
    KERNEL("null", "ld.u32 %r0, [%p1];")
    KERNEL("past_atomic", MINE "atom.global.add.u32 %r0, [%w0], 1;");

/* clang-format on */

static void check_faults(void) {
    exec *e = exec_unit(faults);
    u32 *buffer = exec_buffer(40);
    run(e, "past_end", THREADS(10), P(buffer), 0, 0, 0);
    run_fails(e, "past_end", THREADS(11), "no memory: 4 bytes", P(buffer), 0, 0, 0);
    run_fails(e, "past_end", THREADS(11), "ld.global.u32 %r0, [%w0]", P(buffer), 0, 0, 0);
    run_fails(e, "misaligned", THREADS(1), "misaligned", P(buffer), 0, 0, 0);
    run_fails(e, "misaligned_vector", THREADS(1), "misaligned", P(buffer), 0, 0, 0);
    run_fails(e, "write_constant", THREADS(1), "constant", P(buffer), 0, 0, 0);
    run(e, "past_local", THREADS(2), 0, 0, 0, 0);
    run_fails(e, "past_local", THREADS(3), "4 bytes at 8 of a local array of 8 bytes", 0, 0, 0, 0);
    run_fails(e, "dangling", THREADS(1), "local array", 0, 0, 0, 0);
    run(e, "past_local_generic", THREADS(2), 0, 0, 0, 0);
    run_fails(e, "past_local_generic", THREADS(3), "no memory", 0, 0, 0, 0);
    run(e, "past_shared", THREADS(16), 0, 0, 0, 0);
    run_fails(e, "past_shared", THREADS(17), "outside the block's 64 bytes", 0, 0, 0, 0);
    run_fails(e, "past_params", THREADS(1), "parameters", 0, 0, 0, 0);
    run_fails(e, "null", THREADS(1), "no memory", 0, 0, 0, 0);
    run_fails(e, "past_atomic", THREADS(11), "kind 2", P(buffer), 0, 0, 0);
    exec_close(e);
}

#define COPY(bytes) "cp.async.ca.shared.global [%r0], [%w0], " bytes ";"
/* clang-format off */
static const char copies[] = HEAD("sm_80")
    /* 16 bytes per thread of one warp; p2: 1 to wait */
    KERNEL("wait", ".shared .align 16 .b8 s[512]; mov.u32 %r0, s; mad.lo.u32 %r0, %i, 16, %r0; "
        "mad.wide.u32 %w0, %i, 16, %p0;\n"
        "cp.async.cg.shared.global [%r0], [%w0], 16; cp.async.commit_group; "
        "cvt.u32.u64 %r1, %p2; setp.eq.u32 %q1, %r1, 1;\n"
        "@%q1 cp.async.wait_group 0; mad.wide.u32 %w1, %i, 16, %p1; "
        "ld.shared.v4.b32 {%r2, %r3, %r4, %r5}, [%r0];\n"
        "st.global.v4.b32 [%w1], {%r2, %r3, %r4, %r5};\n")
    /* sizes, source sizes below the copy size, a predicate, groups */
    KERNEL("groups", ".shared .align 16 .b8 s[64]; mov.u32 %r0, s; mov.b64 %w0, %p0; "
        "setp.ne.u32 %q1, %n, 0;\n" COPY("4") "cp.async.ca.shared.global [%r0+8], [%w0+8], 8; "
        "cp.async.commit_group; cp.async.ca.shared.global [%r0+16], [%w0+16], 16, 5;\n"
        "cp.async.commit_group; cp.async.cg.shared.global.L2::128B [%r0+32], [%w0+32], 16; "
        "cp.async.commit_group;\n"
        "cp.async.ca.shared.global [%r0+48], [%w0], 4, %q1; cp.async.wait_group 1;\n"
        "ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [s]; "
        "st.global.v4.b32 [%p1], {%r1, %r2, %r3, %r4};\n"
        "ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [s+16]; "
        "st.global.v4.b32 [%p1+16], {%r1, %r2, %r3, %r4};\n"
        "ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [s+32]; "
        "st.global.v4.b32 [%p1+32], {%r1, %r2, %r3, %r4};\n"
        "cp.async.wait_all; ld.shared.b32 %r1, [s+32]; ld.shared.b32 %r2, [s+48]; "
        "st.global.v2.b32 [%p1+48], {%r1, %r2};\n")
    /* thread i: i % 17 bytes of 16, 8 - i % 9 of 8, i % 5 of 4; the rest becomes zero */
    KERNEL("partial", ".shared .align 16 .b8 s[1024]; mov.u32 %r0, s; mad.lo.u32 %r0, %i, 32, %r0; "
        "mad.wide.u32 %w0, %i, 32, %p0; rem.u32 %r1, %i, 17; rem.u32 %r2, %i, 9; "
        "sub.u32 %r2, 8, %r2; rem.u32 %r3, %i, 5; st.shared.b32 [%r0+28], 7;\n"
        "cp.async.cg.shared.global [%r0], [%w0], 16, %r1; "
        "cp.async.ca.shared.global [%r0+16], [%w0+16], 8, %r2; "
        "cp.async.ca.shared.global [%r0+24], [%w0+24], 4, %r3; cp.async.wait_all;\n"
        "mad.wide.u32 %w1, %i, 32, %p1; ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r0]; "
        "st.global.v4.b32 [%w1], {%r4, %r5, %r6, %r7};\n"
        "ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r0+16]; "
        "st.global.v4.b32 [%w1+16], {%r4, %r5, %r6, %r7};")
    KERNEL("outside", ".shared .align 16 .b8 s[16]; mov.u32 %r0, s; "
        "cp.async.ca.shared.global [%r0+16], [%p0], 16;\n");

/* clang-format on */

static void check_partial(exec *e) {
    u8(*in)[32] = exec_buffer(1024), (*out)[32] = exec_buffer(1024);
    for (int i = 0; i < 1024; i++)
        in[0][i] = (u8)(i % 255 + 1);
    if (!run(e, "partial", THREADS(32), P(in), P(out), 0, 0))
        return;
    for (int i = 0; i < 32; i++) {
        u8 expected[32] = {[28] = 7};
        memcpy(expected, in[i], (size_t)(i % 17));
        memcpy(expected + 16, in[i] + 16, (size_t)(8 - i % 9));
        memcpy(expected + 24, in[i] + 24, (size_t)(i % 5));
        check_that(!memcmp(out[i], expected, 32), "cp.async of thread %d", i);
    }
}

static void check_copies(void) {
    exec *e = exec_unit(copies);
    u32 *in = exec_buffer(512), *out = exec_buffer(512);
    for (u32 i = 0; i < 128; i++)
        in[i] = i * 0x01010101u + 0x10;
    if (run(e, "wait", THREADS(32), P(in), P(out), 1, 0))
        CHECK(!memcmp(in, out, 512));
    if (run(e, "wait", THREADS(32), P(in), P(out), 0, 0)) /* without a wait nothing has arrived */
        CHECK(out[0] == 0xffffffff && out[127] == 0xffffffff);
    memset(out, 0, 512);
    if (run(e, "groups", THREADS(1), P(in), P(out), 0, 0)) {
        CHECK(out[0] == in[0] && out[1] == 0xffffffff && out[2] == in[2] && out[3] == in[3]);
        CHECK(out[4] == in[4] && out[5] == (in[5] & 0xff) && out[6] == 0 && out[7] == 0);
        /* the third group is still pending */
        CHECK(out[8] == 0xffffffff && out[11] == 0xffffffff);
        CHECK(out[12] == in[8] && out[13] == 0);
    }
    check_partial(e);
    run_fails(e, "outside", THREADS(1), "outside the block's 16 bytes", P(in), 0, 0, 0);
    exec_close(e);
}

int main(void) {
    exec *e = exec_unit(accesses);
    if (e) {
        check_widths(e);
        check_variables(e);
        check_spaces(e);
    }
    exec_close(e);
    exec_forget();
    check_layout();
    exec_forget();
    check_faults();
    exec_forget();
    check_copies();
    exec_forget();
    return check_end();
}
