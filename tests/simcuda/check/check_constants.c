/* Arithmetic, logic and selection with immediate operands, the form that compilers write most
   often; and moves of constants. */
#include <math.h>

#include "check.h"
#include "expect.h"

/* ---- integers ---- */
EXPECT(add, a + b)
EXPECT(and_, a &b)
EXPECT(or_, a | b)
EXPECT(xor_, a ^ b)
EXPECT(mul, a *b)
EXPECT(mad, a *b + c)
EXPECT(min_u, a < b ? a : b)
EXPECT(max_u, a > b ? a : b)
EXPECT(min_s32, (s32)a < (s32)b ? a : b)
EXPECT(max_s32, (s32)a > (s32)b ? a : b)
EXPECT(min_s64, (s64)a < (s64)b ? a : b)
EXPECT(max_s64, (s64)a > (s64)b ? a : b)
EXPECT(hi_s32, ((s64)(s32)a * (s32)b) >> 32)
EXPECT(hi_u32, a *b >> 32)
EXPECT(hi_s64, ((s128)(s64)a * (s64)b) >> 64)
EXPECT(hi_u64, ((u128)a * b) >> 64)
EXPECT(wide_s32, (s64)(s32)a *(s32)b)
EXPECT(mad_wide_u32, a *b + c)
EXPECT(mad_wide_s32, (u64)((s64)(s32)a *(s32)b) + c)

/* Shift counts from 0 to more than the width. The constant is not masked. */
EXPECT(shl16, b > 15 ? 0 : a << b)
EXPECT(shl32, b > 31 ? 0 : a << b)
EXPECT(shl64, b > 63 ? 0 : a << b)
EXPECT(shr16, b > 15 ? 0 : a >> b)
EXPECT(shr32, b > 31 ? 0 : a >> b)
EXPECT(shr64, b > 63 ? 0 : a >> b)
EXPECT(shr_s16, (s16)a >> (b > 15 ? 15 : b))
EXPECT(shr_s32, (s32)a >> (b > 31 ? 31 : b))
EXPECT(shr_s64, (s64)a >> (b > 63 ? 63 : b))
EXPECT(rotate, c & 31 ? a >> (32 - (c & 31)) | b << (c & 31) : b)
EXPECT(rotate_right, (b << 32 | a) >> (c & 31))

static u64 insert(u64 field, u64 into, int position, int length) {
    u64 mask = ((1ull << length) - 1) << position;
    return (into & ~mask) | (field << position & mask);
}
EXPECT(bfi_8_16, insert(a, b, 8, 16))
EXPECT(bfi_16_16, insert(a, b, 16, 16))
EXPECT(bfi_32_32, insert(a, b, 32, 32))
EXPECT(bfi_8_8, insert(a, b, 8, 8))
EXPECT(bfe_8_8, a >> 8 & 255)

static u64 permuted(u64 low, u64 high, u64 selectors) {
    u64 pair = high << 32 | low, r = 0;
    for (int i = 0; i < 4; i++) {
        u64 s = selectors >> (4 * i) & 15, byte = pair >> (8 * (s & 7)) & 255;
        r |= (s & 8 ? (byte >> 7) * 255 : byte) << (8 * i);
    }
    return r;
}
EXPECT(prmt, permuted(a, b, c))
EXPECT(sub, a - b)
EXPECT(div_s32, (s32)b == 0 ? -1 : (s64)(s32)a / (s32)b)
EXPECT(rem_u32, b ? a % b : a)
EXPECT(max_s16, (s16)a > (s16)b ? a : b)
EXPECT(min_s16, (s16)a < (s16)b ? a : b)

/* A field of 8 bits in the middle, with its sign. */
EXPECT(bfe_s_8_8, (s8)(a >> 8))
EXPECT(bfe_s_24_8, (s8)(a >> 24))
EXPECT(rem_s32, (s32)b == 0 ? (s64)(s32)a : (s64)(s32)a % (s32)b)

EXPECT(select, c & 1 ? a : b)
EXPECT(first, a)
EXPECT(sum, a + b)
EXPECT(mixed, 0x1234abcd)
#define THIRD "and.b32 %t0, %c, 1; setp.ne.u32 %p, %t0, 0;"
#define SELECT(type, x, y, bits)                                                                   \
    FORM(THIRD "selp." type " %d, " x ", " y ", %p;", bits, bits, 32, bits, select)
#define CONSTANT_SELECTIONS(type, mark, bits)                                                      \
    SELECT(type, mark "a", mark "b", bits), SELECT(type, mark "a", "%b", bits),                    \
        SELECT(type, "%a", mark "b", bits), SELECT(type, "%a", "%b", bits)
#define B(op, bits, expected) FORM(op " %d, %a, $b;", bits, bits, 0, bits, expected)
#define A(op, bits, expected) FORM(op " %d, $a, %b;", bits, bits, 0, bits, expected)
#define SHIFT(op, bits, expected) FORM(op " %d, %a, $b;", bits, 32, 0, bits, expected)
#define WIDE(op, bits, expected) FORM(op " %d, %a, $b;", bits, bits, 0, 2 * bits, expected)

static const form integer_forms[] = {
    B("add.s16", 16, add),
    B("add.s32", 32, add),
    B("add.u32", 32, add),
    B("add.s64", 64, add),
    B("add.u64", 64, add),
    B("and.b16", 16, and_),
    B("and.b32", 32, and_),
    B("and.b64", 64, and_),
    FORM("and.b64 %d, %a, %b;", 64, 64, 0, 64, and_),
    B("or.b16", 16, or_),
    B("or.b32", 32, or_),
    B("or.b64", 64, or_),
    FORM("or.b64 %d, %a, %b;", 64, 64, 0, 64, or_),
    B("xor.b16", 16, xor_),
    B("xor.b32", 32, xor_),
    B("xor.b64", 64, xor_),
    B("max.s32", 32, max_s32),
    B("max.u32", 32, max_u),
    B("max.s64", 64, max_s64),
    B("max.u64", 64, max_u),
    FORM("max.u64 %d, %a, %b;", 64, 64, 0, 64, max_u),
    B("max.s16", 16, max_s16),
    B("min.s16", 16, min_s16),
    B("min.s32", 32, min_s32),
    B("min.u32", 32, min_u),
    B("min.s64", 64, min_s64),
    B("min.u64", 64, min_u),
    B("mul.lo.s16", 16, mul),
    B("mul.lo.s32", 32, mul),
    FORM("mul.lo.u32 %d, %a, %b;", 32, 32, 0, 32, mul),
    B("mul.lo.s64", 64, mul),
    B("mul.hi.s32", 32, hi_s32),
    B("mul.hi.u32", 32, hi_u32),
    B("mul.hi.s64", 64, hi_s64),
    B("mul.hi.u64", 64, hi_u64),
    WIDE("mul.wide.u16", 16, mul),
    WIDE("mul.wide.u32", 32, mul),
    WIDE("mul.wide.s32", 32, wide_s32),
    FORM("mad.lo.s32 %d, %a, $b, %c;", 32, 32, 32, 32, mad),
    FORM("mad.lo.s32 %d, %a, $b, $c;", 32, 32, 32, 32, mad),
    FORM("mad.lo.s64 %d, %a, $b, %c;", 64, 64, 64, 64, mad),
    FORM("mad.wide.u32 %d, %a, %b, %c;", 32, 32, 64, 64, mad_wide_u32),
    FORM("mad.wide.s32 %d, %a, $b, %c;", 32, 32, 64, 64, mad_wide_s32),
    A("sub.s32", 32, sub),
    A("sub.s64", 64, sub),
    A("div.s32", 32, div_s32),
    A("rem.u32", 32, rem_u32),
    A("rem.u64", 64, rem_u32),
    B("div.s32", 32, div_s32),
    B("rem.u32", 32, rem_u32),
    B("rem.u64", 64, rem_u32),
    B("rem.s32", 32, rem_s32),
    SHIFT("shl.b16", 16, shl16),
    SHIFT("shl.b32", 32, shl32),
    SHIFT("shl.b64", 64, shl64),
    SHIFT("shr.u16", 16, shr16),
    SHIFT("shr.u32", 32, shr32),
    SHIFT("shr.u64", 64, shr64),
    SHIFT("shr.s16", 16, shr_s16),
    SHIFT("shr.s32", 32, shr_s32),
    SHIFT("shr.s64", 64, shr_s64),
    FORM("shf.l.wrap.b32 %d, %a, %b, $c;", 32, 32, 32, 32, rotate),
    FORM("shf.r.wrap.b32 %d, %a, %b, $c;", 32, 32, 32, 32, rotate_right),
    FORM("bfi.b32 %d, %a, %b, 8, 16;", 32, 32, 0, 32, bfi_8_16),
    FORM("bfi.b32 %d, %a, %b, 8, 8;", 32, 32, 0, 32, bfi_8_8),
    FORM("bfi.b64 %d, %a, %b, 16, 16;", 64, 64, 0, 64, bfi_16_16),
    FORM("bfi.b64 %d, %a, %b, 32, 32;", 64, 64, 0, 64, bfi_32_32),
    FORM("bfe.u32 %d, %a, 8, 8;", 32, 0, 0, 32, bfe_8_8),
    FORM("bfe.s32 %d, %a, 8, 8;", 32, 0, 0, 32, bfe_s_8_8),
    FORM("bfe.s32 %d, %a, 24, 8;", 32, 0, 0, 32, bfe_s_24_8),
    FORM("prmt.b32 %d, %a, %b, $c;", 32, 32, 32, 32, prmt),
    FORM("prmt.b32 %d, %a, $b, $c;", 32, 32, 32, 32, prmt),
    CONSTANT_SELECTIONS("b16", "$", 16),
    CONSTANT_SELECTIONS("u16", "$", 16),
    CONSTANT_SELECTIONS("b32", "$", 32),
    CONSTANT_SELECTIONS("u32", "$", 32),
    CONSTANT_SELECTIONS("s32", "$", 32),
    CONSTANT_SELECTIONS("b64", "$", 64),
    CONSTANT_SELECTIONS("u64", "$", 64),
    CONSTANT_SELECTIONS("s64", "$", 64),
    FORM("mov.u16 %h0, $a; mov.u16 %d, %h0;", 16, 0, 0, 16, first),
    FORM("mov.b16 %h0, $a; mov.b16 %d, %h0;", 16, 0, 0, 16, first),
    FORM("mov.u32 %t0, $a; mov.u32 %t1, %b; add.u32 %d, %t0, %t1;", 32, 32, 0, 32, sum),
    FORM("mov.b32 %t0, $a; mov.b32 %t1, %b; add.u32 %d, %t0, %t1;", 32, 32, 0, 32, sum),
    FORM("mov.u64 %w0, $a; mov.u64 %w1, %b; add.u64 %d, %w0, %w1;", 64, 64, 0, 64, sum),
    FORM("mov.b64 %w0, $a; mov.b64 %w1, %b; add.u64 %d, %w0, %w1;", 64, 64, 0, 64, sum),
    FORM("mov.b32 {%h0, %h1}, %a; mov.b32 %d, {%h0, %h1};", 32, 0, 0, 32, first),
    FORM("mov.u16 %h0, -21555; mov.b32 %d, {%h0, 4660};", 32, 0, 0, 32, mixed),
};

/* ---- predicates ---- */
#define PREDICATES                                                                                 \
    "and.b32 %t0, %a, 1; setp.ne.u32 %p, %t0, 0; and.b32 %t1, %b, 1; setp.ne.u32 %q, %t1, 0;"
#define SHOW " selp.b32 %d, 1, 0, %p;"
EXPECT(both, a &b & 1)
EXPECT(either, (a | b) & 1)
EXPECT(one, (a ^ b) & 1)
EXPECT(neither, ~a & 1)
EXPECT(is_odd, a & 1)
EXPECT(constant_predicates, a & 1 ? 1 : 2)

static const form predicate_forms[] = {
    FORM(PREDICATES "and.pred %p, %p, %q;" SHOW, 32, 32, 0, 32, both),
    FORM(PREDICATES "or.pred %p, %p, %q;" SHOW, 32, 32, 0, 32, either),
    FORM(PREDICATES "xor.pred %p, %p, %q;" SHOW, 32, 32, 0, 32, one),
    FORM(PREDICATES "not.pred %p, %p;" SHOW, 32, 32, 0, 32, neither),
    FORM(PREDICATES "mov.pred %q, %p; mov.pred %p, %q;" SHOW, 32, 32, 0, 32, is_odd),
    FORM(PREDICATES "mov.pred %q, 0; @%p mov.pred %q, -1; mov.pred %p, 1; @%q mov.pred %p, 0;"
                    "selp.b32 %d, 2, 0, %p; selp.b32 %t0, 1, 0, %q; or.b32 %d, %d, %t0;",
         32, 32, 0, 32, constant_predicates),
};

/* ---- floats ---- */
static int same32(uint64_t got, uint64_t expected) {
    return got == expected || (isnan(f32_of(got)) && isnan(f32_of(expected)));
}

static int same64(uint64_t got, uint64_t expected) {
    return got == expected || (isnan(f64_of(got)) && isnan(f64_of(expected)));
}

#define EXPECT32(name, expression) EXPECT(name, bits_of_f32(expression))
#define EXPECT64(name, expression) EXPECT(name, bits_of_f64(expression))
#define X f32_of(a)
#define Y f32_of(b)
#define Z f32_of(c)
#define DX f64_of(a)
#define DY f64_of(b)
#define DZ f64_of(c)

/* Returns the smaller of two. -0 is less than +0, and a number is preferred to a NaN. */
static double lesser(double x, double y) {
    if (isnan(x) || isnan(y))
        return isnan(x) ? y : x;
    return x == y ? (signbit(x) ? x : y) : x < y ? x : y;
}
EXPECT32(add32, X + Y)
EXPECT32(sub32, X - Y)
EXPECT32(mul32, X *Y)
EXPECT32(div32, X / Y)
EXPECT32(fma32, fmaf(X, Y, Z))
EXPECT32(min32, (float)lesser(X, Y))
EXPECT32(max32, (float)-lesser(-X, -Y))
EXPECT64(add64, DX + DY)
EXPECT64(sub64, DX - DY)
EXPECT64(mul64, DX *DY)
EXPECT64(div64, DX / DY)
EXPECT64(fma64, fma(DX, DY, DZ))
EXPECT64(min64, lesser(DX, DY))
EXPECT64(max64, -lesser(-DX, -DY))

#define CLOSE(code, a, b, c, d, expected, close)                                                   \
    { code, a, b, c, d, 0, expected, close }
#define TWO(op, bits, expected)                                                                    \
    CLOSE(op " %d, %a, #b;", bits, bits, 0, bits, expected, same##bits),                           \
        CLOSE(op " %d, #a, %b;", bits, bits, 0, bits, expected, same##bits),                       \
        CLOSE(op " %d, %a, %b;", bits, bits, 0, bits, expected, same##bits)
#define THREE(op, bits, x, y, z, expected)                                                         \
    CLOSE(op " %d, " x "a, " y "b, " z "c;", bits, bits, bits, bits, expected, same##bits)

static const form float_forms[] = {
    TWO("add.f32", 32, add32),
    TWO("add.rn.f32", 32, add32),
    TWO("sub.f32", 32, sub32),
    TWO("sub.rn.f32", 32, sub32),
    TWO("mul.f32", 32, mul32),
    TWO("mul.rn.f32", 32, mul32),
    TWO("div.rn.f32", 32, div32),
    TWO("min.f32", 32, min32),
    TWO("max.f32", 32, max32),
    TWO("add.f64", 64, add64),
    TWO("add.rn.f64", 64, add64),
    TWO("sub.f64", 64, sub64),
    TWO("sub.rn.f64", 64, sub64),
    TWO("mul.f64", 64, mul64),
    TWO("mul.rn.f64", 64, mul64),
    TWO("div.rn.f64", 64, div64),
    TWO("min.f64", 64, min64),
    TWO("max.f64", 64, max64),
    THREE("fma.rn.f32", 32, "%", "#", "%", fma32),
    THREE("fma.rn.f32", 32, "%", "%", "#", fma32),
    THREE("fma.rn.f32", 32, "%", "#", "#", fma32),
    THREE("fma.rn.f32", 32, "#", "#", "%", fma32),
    THREE("fma.rn.f64", 64, "#", "#", "%", fma64),
    THREE("fma.rn.f64", 64, "%", "#", "%", fma64),
    THREE("fma.rn.f64", 64, "%", "%", "#", fma64),
    THREE("fma.rn.f64", 64, "%", "#", "#", fma64),
    CONSTANT_SELECTIONS("f32", "#", 32),
    CONSTANT_SELECTIONS("f64", "#", 64),
    FORM("mov.f32 %t0, #a; mov.f32 %d, %t0;", 32, 0, 0, 32, first),
    FORM("mov.f64 %w0, #a; mov.f64 %d, %w0;", 64, 0, 0, 64, first),
    FORM("mov.b32 %d, #a;", 32, 0, 0, 32, first),
    FORM("mov.b64 %d, #a;", 64, 0, 0, 64, first),
};

int main(void) {
    check_forms("sm_80", integer_forms, COUNT(integer_forms), integers, 256);
    check_forms("sm_80", predicate_forms, COUNT(predicate_forms), integers, 256);
    check_forms("sm_80", float_forms, COUNT(float_forms), floats, 256);
    return check_end();
}
