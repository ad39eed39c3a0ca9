/* Loads and stores of every type and vector length in each state space. Each check compares the
   bytes read, the bytes changed and the bytes that must stay. */
#include <string.h>

#include "check.h"
#include "expect.h"
#include "kernels.h"

/* ---- loads: a and b are the 16 bytes in memory ---- */
EXPECT(byte, (u8)a)
EXPECT(signed_byte, (s8)a)
EXPECT(half, (u16)a)
EXPECT(signed_half, (s16)a)
EXPECT(word, (u32)a)
EXPECT(signed_word, (s32)a)
EXPECT(wide, a)
EXPECT(two_bytes, (a & 255) | (a & 0xff00) << 8)
EXPECT(four_bytes, (a & 255) | (a & 0xff00) << 8 | (a & 0xff0000) << 16 | (a & 0xff000000) << 24)

static uint64_t all(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {
    (void)c;
    *e = b;
    return a;
}

/* Destination of a load: one register, or several that are combined. */
#define ONE(load, from) load " %d, " from ";"
#define BYTES2(load, from) load " {%h0, %h1}, " from "; mov.b32 %d, {%h0, %h1};"
#define SHORTS4(load, from)                                                                        \
    load " {%h0, %h1, %h2, %h3}, " from "; mov.b64 %d, {%h0, %h1, %h2, %h3};"
#define WORDS2(load, from) load " {%t0, %t1}, " from "; mov.b64 %d, {%t0, %t1};"
#define WORDS4(load, from)                                                                         \
    load " {%t0, %t1, %t2, %t3}, " from "; mov.b64 %d, {%t0, %t1}; mov.b64 %e, {%t2, %t3};"
#define WIDE2(load, from) load " {%d, %e}, " from ";"

/* The loads of a state space; `prepare` brings a and b to `at`. */
#define L1(prepare, space, at, type, bits, expected)                                               \
    FORM(prepare ONE("ld." space "." type, "[" at "]"), 64, 64, 0, bits, expected)
#define L2(prepare, space, at, to, type, bits, expected)                                           \
    FORM(prepare to("ld." space "." type, "[" at "]"), 64, 64, 0, bits, expected)
#define LE(prepare, space, at, to, type)                                                           \
    { prepare to("ld." space "." type, "[" at "]"), 64, 64, 0, 64, 64, all, NULL }
#define LOADS(prepare, space, at)                                                                  \
    L1(prepare, space, at, "u8", 16, byte), L1(prepare, space, at, "s8", 16, signed_byte),         \
        L1(prepare, space, at, "b8", 16, byte), L1(prepare, space, at, "u16", 16, half),           \
        L1(prepare, space, at, "b16", 16, half), L1(prepare, space, at, "s16", 32, signed_half),   \
        L1(prepare, space, at, "u32", 32, word), L1(prepare, space, at, "b32", 32, word),          \
        L1(prepare, space, at, "s32", 64, signed_word), L1(prepare, space, at, "f32", 32, word),   \
        L1(prepare, space, at, "u64", 64, wide), L1(prepare, space, at, "b64", 64, wide),          \
        L1(prepare, space, at, "s64", 64, wide), L1(prepare, space, at, "f64", 64, wide),          \
        L2(prepare, space, at, BYTES2, "v2.u8", 32, two_bytes),                                    \
        L2(prepare, space, at, SHORTS4, "v4.u8", 64, four_bytes),                                  \
        L2(prepare, space, at, BYTES2, "v2.u16", 32, word),                                        \
        L2(prepare, space, at, SHORTS4, "v4.u16", 64, wide),                                       \
        L2(prepare, space, at, WORDS2, "v2.u32", 64, wide),                                        \
        L2(prepare, space, at, WORDS2, "v2.b32", 64, wide),                                        \
        L2(prepare, space, at, WORDS2, "v2.f32", 64, wide),                                        \
        LE(prepare, space, at, WORDS4, "v4.b32"), LE(prepare, space, at, WIDE2, "v2.b64"),         \
        LE(prepare, space, at, WORDS4, "v4.u32"), LE(prepare, space, at, WORDS4, "v4.f32"),        \
        LE(prepare, space, at, WIDE2, "v2.u64"), LE(prepare, space, at, WIDE2, "v2.f64")

/* ---- stores: a and b are stored over bytes of all ones ---- */
static u64 over(u64 value, int bits) {
    return bits == 64 ? value : ~0ull << bits | (value & ((1ull << bits) - 1));
}

#define STORED(name, low, high)                                                                    \
    static uint64_t name(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {                        \
        (void)b, (void)c;                                                                          \
        *e = (high);                                                                               \
        return (low);                                                                              \
    }
STORED(store8, over(a, 8), ~0ull)
STORED(store16, over(a, 16), ~0ull)
STORED(store32, over(a, 32), ~0ull)
STORED(store64, a, ~0ull)
STORED(store128, a, b)
STORED(store8x2, over((a & 255) | (a >> 16 & 255) << 8, 16), ~0ull)
STORED(store8x4,
       over((a & 255) | (a >> 8 & 0xff00) | (a >> 16 & 0xff0000) | (a >> 24 & 0xff000000), 32),
       ~0ull)

#define SPLIT16 "mov.b64 {%h0, %h1, %h2, %h3}, %a;"
#define SPLIT32 "mov.b64 {%t0, %t1}, %a; mov.b64 {%t2, %t3}, %b;"
#define S(prepare, space, at, type, split, from, expected)                                         \
    {                                                                                              \
        prepare "st." space ".b64 [" at "], -1; st." space ".b64 [" at "+8], -1;" split            \
                "st." space "." type " [" at "], " from ";"                                        \
                "ld." space ".b64 %d, [" at "]; ld." space ".b64 %e, [" at "+8];",                 \
            64, 64, 0, 64, 64, expected, NULL                                                      \
    }
#define STORES(prepare, space, at)                                                                 \
    S(prepare, space, at, "u8", SPLIT16, "%h0", store8),                                           \
        S(prepare, space, at, "b8", SPLIT16, "%h0", store8),                                       \
        S(prepare, space, at, "s8", SPLIT16, "%h0", store8),                                       \
        S(prepare, space, at, "u16", SPLIT16, "%h0", store16),                                     \
        S(prepare, space, at, "b16", SPLIT16, "%h0", store16),                                     \
        S(prepare, space, at, "u32", SPLIT32, "%t0", store32),                                     \
        S(prepare, space, at, "b32", SPLIT32, "%t0", store32),                                     \
        S(prepare, space, at, "f32", SPLIT32, "%t0", store32),                                     \
        S(prepare, space, at, "u64", "", "%a", store64),                                           \
        S(prepare, space, at, "b64", "", "%a", store64),                                           \
        S(prepare, space, at, "f64", "", "%a", store64),                                           \
        S(prepare, space, at, "v2.u8", SPLIT16, "{%h0, %h1}", store8x2),                           \
        S(prepare, space, at, "v4.u8", SPLIT16, "{%h0, %h1, %h2, %h3}", store8x4),                 \
        S(prepare, space, at, "v2.u16", SPLIT16, "{%h0, %h1}", store32),                           \
        S(prepare, space, at, "v4.u16", SPLIT16, "{%h0, %h1, %h2, %h3}", store64),                 \
        S(prepare, space, at, "v2.u32", SPLIT32, "{%t0, %t1}", store64),                           \
        S(prepare, space, at, "v2.b32", SPLIT32, "{%t0, %t1}", store64),                           \
        S(prepare, space, at, "v4.b32", SPLIT32, "{%t0, %t1, %t2, %t3}", store128),                \
        S(prepare, space, at, "v2.b64", "", "{%a, %b}", store128),                                 \
        S(prepare, space, at, "v2.f32", SPLIT32, "{%t0, %t1}", store64),                           \
        S(prepare, space, at, "v4.u32", SPLIT32, "{%t0, %t1, %t2, %t3}", store128),                \
        S(prepare, space, at, "v4.f32", SPLIT32, "{%t0, %t1, %t2, %t3}", store128),                \
        S(prepare, space, at, "v2.u64", "", "{%a, %b}", store128),                                 \
        S(prepare, space, at, "v2.f64", "", "{%a, %b}", store128)

/* ---- state spaces ---- */
#define SHARED                                                                                     \
    ".shared .align 16 .b8 cells[4096]; .reg .b64 at; mov.u64 at, cells; mad.wide.u32 at, %i, "    \
    "16, at;"
#define SHARED_NAME ".shared .align 16 .b8 cell[16];" /* one thread at a time */
#define LOCAL ".local .align 16 .b8 array[16]; .reg .b64 at; mov.u64 at, array;"
#define LOCAL_NAME ".local .align 16 .b8 array[16];"
#define FILLED(prepare, space, at)                                                                 \
    prepare "st." space ".b64 [" at "], %a; st." space ".b64 [" at "+8], %b;"

static const form forms[] = {
    LOADS("", "global", "%in"),
    LOADS("cvta.to.global.u64 %w0, %in;", "global.nc", "%w0"),
    LOADS(FILLED(SHARED, "shared", "at"), "shared", "at"),
    LOADS(FILLED(SHARED_NAME, "shared", "cell"), "shared", "cell"),
    LOADS(FILLED(LOCAL, "local", "at"), "local", "at"),
    LOADS(FILLED(LOCAL_NAME, "local", "array"), "local", "array"),
    STORES("", "global", "%out"),
    STORES(SHARED, "shared", "at"),
    STORES(SHARED_NAME, "shared", "cell"),
    STORES(LOCAL, "local", "at"),
    STORES(LOCAL_NAME, "local", "array"),
};

/* ---- parameters and constants ---- */
/* clang-format off */
static const char kernels[] = HEAD("sm_80")
    ".const .align 8 .f64 doubles[3] = {0d3FF8000000000000, 0dC000000000000000, 2.25};\n"
    ".const .align 4 .f32 singles[2] = {0f3F800000, 0fBF800000};\n"
    ".func (.param .f64 r) apart(.param .f64 x, .param .f64 y) {\n"
    ".reg .f64 %a, %b; ld.param.f64 %a, [x]; ld.param.f64 %b, [y]; sub.f64 %a, %a, %b;\n"
    "st.param.f64 [r], %a; ret; }\n"
    ".func (.param .f32 r) apart32(.param .f32 x, .param .f32 y) {\n"
    ".reg .f32 %a, %b; ld.param.f32 %a, [x]; ld.param.f32 %b, [y]; sub.f32 %a, %a, %b;\n"
    "st.param.f32 [r], %a; ret; }\n"
    /* p1, p2, p3 by name and by address, whole and in parts, to 10 words of 64 bits */
    KERNEL("parameters", "ld.param.f64 %w1, [p1]; st.global.f64 [%p0], %w1;\n"
        "ld.param.u32 %r0, [p1]; ld.param.u32 %r1, [p1+4]; st.global.v2.u32 [%p0+8], {%r1, %r0};\n"
        "ld.param.v2.u32 {%r0, %r1}, [p2]; st.global.v2.u32 [%p0+16], {%r1, %r0};\n"
        "mov.b64 %w0, p2; ld.param.f64 %w1, [%w0+8]; st.global.f64 [%p0+24], %w1;\n"
        "ld.param.u64 %w1, [%w0]; st.global.u64 [%p0+32], %w1;\n"
        "ld.param.v2.u32 {%r0, %r1}, [%w0+8]; st.global.v2.u32 [%p0+40], {%r1, %r0};\n"
        "ld.param.u32 %r0, [%w0+4]; ld.param.u8 %r1, [%w0+9]; "
        "st.global.v2.u32 [%p0+48], {%r0, %r1};\n"
        "ld.param.u8 %r0, [p3+7]; ld.param.f32 %r1, [p3]; st.global.v2.u32 [%p0+56], {%r0, %r1};\n"
        "ld.param.s32 %w1, [%w0+12]; st.global.u64 [%p0+64], %w1; "
        "ld.param.s32 %w1, [p2]; st.global.u64 [%p0+72], %w1;")
    /* thread i: doubles[i], the same as float, and differences computed by a function */
    KERNEL("constants", "mov.u64 %w0, doubles; mad.wide.u32 %w0, %i, 8, %w0; "
        "ld.const.f64 %w1, [%w0]; mov.u64 %w0, singles; and.b32 %r0, %i, 1; "
        "mad.wide.u32 %w0, %r0, 4, %w0; ld.const.f32 %r1, [%w0];\n"
        "cvt.f64.f32 %w2, %r1; cvt.rn.f32.f64 %r2, %w1;\n"
        "{ .param .f64 x; .param .f64 y; .param .f64 r; st.param.f64 [x], %w1; "
        "st.param.f64 [y], %w2; call.uni (r), apart, (x, y); ld.param.f64 %w3, [r]; }\n"
        "{ .param .f32 x; .param .f32 y; .param .f32 r; st.param.f32 [x], %r1; "
        "st.param.f32 [y], %r2; call.uni (r), apart32, (x, y); ld.param.f32 %r3, [r]; }\n"
        "cvt.f64.f32 %w4, %r3; mad.wide.u32 %w0, %i, 32, %p0; st.global.v2.f64 [%w0], {%w1, %w2};\n"
        "st.global.v2.f64 [%w0+16], {%w3, %w4};");

/* clang-format on */

static u64 turned(u64 x) {
    return x >> 32 | x << 32;
}

static void check_parameters(exec *e) {
    u64 *out = exec_buffer(80);
    u64 p[3] = {check_random(), check_random(), check_random()};
    if (!run(e, "parameters", THREADS(1), P(out), p[0], p[1], p[2]))
        return;
    const u64 expected[] = {p[0],
                            turned(p[0]),
                            turned(p[1]),
                            p[2],
                            p[1],
                            turned(p[2]),
                            p[1] >> 32 | (p[2] >> 8 & 255) << 32,
                            p[2] >> 56 | p[2] << 32,
                            (u64)(s64)(s32)(p[2] >> 32),
                            (u64)(s64)(s32)p[1]};
    for (unsigned i = 0; i < COUNT(expected); i++)
        check_that(out[i] == expected[i], "parameters, word %u: %llx, expected %llx", i,
                   (unsigned long long)out[i], (unsigned long long)expected[i]);
}

static void check_constants(exec *e) {
    static const double doubles[] = {1.5, -2, 2.25}, singles[] = {1, -1};
    double *out = exec_buffer(3 * 32);
    if (!run(e, "constants", THREADS(3), P(out), 0, 0, 0))
        return;
    for (int i = 0; i < 3; i++) {
        double x = doubles[i], y = singles[i & 1];
        CHECK(out[4 * i] == x && out[4 * i + 1] == y);
        CHECK(out[4 * i + 2] == x - y && out[4 * i + 3] == y - x);
    }
}

int main(void) {
    check_forms("sm_80", forms, COUNT(forms), integers, 256);
    exec *e = exec_unit(kernels);
    for (int round = 0; e && round < 20; round++)
        check_parameters(e);
    if (e)
        check_constants(e);
    exec_close(e);
    exec_forget();
    return check_end();
}
