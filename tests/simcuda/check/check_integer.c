/* Integer arithmetic: every width, carries, high and low words of products, saturation, packed
   16-bit operands. */
#include <stdlib.h>

#include "check.h"
#include "expect.h"

EXPECT(add, a + b)
EXPECT(sub, a - b)
EXPECT(negate, 0 - a)
EXPECT(mul, a *b)
EXPECT(mad, a *b + c)

static s64 clamp32(s128 x) {
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (s64)x;
}

EXPECT(add_sat, clamp32((s128)(s32)a + (s32)b))
EXPECT(sub_sat, clamp32((s128)(s32)a - (s32)b))
EXPECT(mul_hi_u16, (u32)a *(u32)b >> 16)
EXPECT(mul_hi_s16, (s32)(s16)a *(s16)b >> 16)
EXPECT(mul_hi_u32, a *b >> 32)
EXPECT(mul_hi_s32, ((s64)(s32)a * (s32)b) >> 32)
EXPECT(mul_hi_u64, (u128)a *b >> 64)
EXPECT(mul_hi_s64, (s128)(s64)a *(s64)b >> 64)
EXPECT(wide_u16, (u32)a *(u32)b)
EXPECT(wide_s16, (s32)(s16)a *(s16)b)
EXPECT(wide_s32, (s64)(s32)a *(s32)b)
EXPECT(mad_hi_s32, (u64)(((s64)(s32)a * (s32)b) >> 32) + c)
EXPECT(mad_hi_sat, clamp32((((s64)(s32)a * (s32)b) >> 32) + (s64)(s32)c))
EXPECT(mad_hi_u64, ((u128)a * b >> 64) + c)
EXPECT(mad_wide_s32, (u64)((s64)(s32)a *(s32)b) + c)
EXPECT(mad_wide_u16, (u32)a *(u32)b + c)

/* 24-bit products by long multiplication */
static s64 extend24(u64 x) {
    return (x & 0x800000) ? (s64)(x & 0xffffff) - 0x1000000 : (s64)(x & 0xffffff);
}
EXPECT(mul24_u, (a & 0xffffff) * (b & 0xffffff))
EXPECT(mul24_s, extend24(a) * extend24(b))
EXPECT(mul24_hi_s, (extend24(a) * extend24(b)) >> 16)
EXPECT(mul24_hi_u, ((a & 0xffffff) * (b & 0xffffff)) >> 16)
EXPECT(mad24_s, (u64)(extend24(a) * extend24(b)) + c)

EXPECT(div_u32, b ? a / b : 0xffffffff)
EXPECT(div_s32, (s32)b == 0 ? -1 : (s64)(s32)a / (s32)b)
EXPECT(rem_u32, b ? a % b : a)
EXPECT(rem_s32, (s32)b == 0 ? (s64)(s32)a : (s64)(s32)a % (s32)b)
EXPECT(div_u64, b ? a / b : ~0ull)
EXPECT(div_s64, b == 0 ? (s128)-1 : (s128)(s64)a / (s64)b)
EXPECT(rem_s64, b == 0 ? (s128)(s64)a : (s128)(s64)a % (s64)b)
EXPECT(rem_u64, b ? a % b : a)
EXPECT(div_s16, (s16)b == 0 ? -1 : (s16)a / (s16)b)
EXPECT(div_u16, b ? a / b : 0xffff)
EXPECT(rem_s16, (s16)b == 0 ? (s16)a : (s16)a % (s16)b)

EXPECT(abs_s32, llabs((s64)(s32)a))
EXPECT(abs_s16, llabs((s64)(s16)a))
EXPECT(abs_s64, (s64)a < 0 ? 0 - a : a)
EXPECT(min_u32, a < b ? a : b)
EXPECT(max_u32, a < b ? b : a)
EXPECT(min_s32, (s32)a < (s32)b ? a : b)
EXPECT(max_s32, (s32)a < (s32)b ? b : a)
EXPECT(min_s16, (s16)a < (s16)b ? a : b)
EXPECT(max_s16, (s16)a < (s16)b ? b : a)
EXPECT(max_s64, (s64)a < (s64)b ? b : a)
EXPECT(min_s64, (s64)a < (s64)b ? a : b)
EXPECT(max_relu, (s32)a <= 0 && (s32)b <= 0 ? 0 : (s32)a < (s32)b ? b : a)
EXPECT(sad_u32, c + (a > b ? a - b : b - a))
EXPECT(sad_s32, c + (u64)llabs((s64)(s32)a - (s32)b))
EXPECT(sad_s16, c + (u64)llabs((s64)(s16)a - (s16)b))

/* Both 16-bit operands of a register, one after the other. */
#define PACKED16(name, T, expression)                                                              \
    static uint64_t name(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {                        \
        uint64_t r = 0;                                                                            \
        (void)c, (void)e;                                                                          \
        for (int i = 0; i < 32; i += 16) {                                                         \
            T x = (T)(a >> i), y = (T)(b >> i);                                                    \
            r |= (uint64_t)(u16)(expression) << i;                                                 \
        }                                                                                          \
        return r;                                                                                  \
    }
PACKED16(add_packed16, u16, x + y)
PACKED16(min_packed16_s, s16, x < y ? x : y)
PACKED16(max_packed16_u, u16, x < y ? y : x)
PACKED16(max_relu_packed16, s16, x <= 0 && y <= 0 ? 0 : x < y ? y : x)

/* Two words as one number: add.cc and addc together form a 64-bit (or 128-bit) sum. */
static uint64_t wide_sum(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {
    (void)c;
    *e = (a + b) >> 32;
    return a + b;
}

static uint64_t wide_difference(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {
    (void)c;
    *e = (a - b) >> 32;
    return a - b;
}

static uint64_t carry_out(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {
    u128 sum = (u128)a + b;
    *e = c + (u64)(sum >> 64);
    return (u64)sum;
}

static uint64_t borrow_out(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {
    *e = c - (a < b);
    return a - b;
}

/* The same with a third word, through which the carry propagates. */
static uint64_t longer_sum(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {
    *e = c + (u64)(((u128)a + b) >> 64);
    return a + b;
}

static uint64_t longer_difference(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {
    *e = c - (a < b);
    return a - b;
}

/* The 128-bit product of a and b plus c, built from 32-bit pieces by the code under test. */
static uint64_t long_product(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {
    u128 r = (u128)a * b + c;
    *e = (u64)(r >> 64);
    return (u64)r;
}

#define LONG_PRODUCT                                                                               \
    "mov.b64 {%t0, %t1}, %a; mov.b64 {%t2, %t3}, %b;"                                              \
    ".reg .b32 c0, c1, r0, r1, r2, r3; mov.b64 {c0, c1}, %c;"                                      \
    "mad.lo.cc.u32 r0, %t0, %t2, c0; madc.hi.cc.u32 r1, %t0, %t2, c1; madc.hi.cc.u32 r2, %t0, "    \
    "%t3, 0;"                                                                                      \
    "madc.hi.u32 r3, %t1, %t3, 0; mad.lo.cc.u32 r1, %t0, %t3, r1; madc.lo.cc.u32 r2, %t1, %t3, "   \
    "r2;"                                                                                          \
    "addc.u32 r3, r3, 0; mad.lo.cc.u32 r1, %t1, %t2, r1; madc.hi.cc.u32 r2, %t1, %t2, r2;"         \
    "addc.u32 r3, r3, 0; mov.b64 %d, {r0, r1}; mov.b64 %e, {r2, r3};"

static uint64_t dot4_us(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {
    s64 r = (s64)c;
    (void)e;
    for (int i = 0; i < 32; i += 8)
        r += (s64)(u8)(a >> i) * (s8)(b >> i);
    return (uint64_t)r;
}

static uint64_t dot4_uu(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {
    (void)e;
    for (int i = 0; i < 32; i += 8)
        c += (a >> i & 255) * (b >> i & 255);
    return c;
}

static uint64_t dot4_ss(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {
    s64 r = (s64)c;
    (void)e;
    for (int i = 0; i < 32; i += 8)
        r += (s64)(s8)(a >> i) * (s8)(b >> i);
    return (uint64_t)r;
}
EXPECT(dot2_lo, c + (u64)((s64)(s16)a * (u8)b) + (u64)((s64)(s16)(a >> 16) * (u8)(b >> 8)))
EXPECT(dot2_hi, c + (u64)((s64)(s16)a * (s8)(b >> 16)) + (u64)((s64)(s16)(a >> 16) * (s8)(b >> 24)))

static const form forms[] = {
    FORM("add.u16 %d, %a, %b;", 16, 16, 0, 16, add),
    FORM("add.s16 %d, %a, %b;", 16, 16, 0, 16, add),
    FORM("add.s32 %d, %a, %b;", 32, 32, 0, 32, add),
    FORM("add.u32 %d, %a, -7; add.u32 %d, %d, 7; add.u32 %d, %d, %b;", 32, 32, 0, 32, add),
    FORM("add.s64 %d, %a, %b;", 64, 64, 0, 64, add),
    FORM("add.sat.s32 %d, %a, %b;", 32, 32, 0, 32, add_sat),
    FORM("sub.s16 %d, %a, %b;", 16, 16, 0, 16, sub),
    FORM("sub.u32 %d, %a, %b;", 32, 32, 0, 32, sub),
    FORM("sub.u64 %d, %a, %b;", 64, 64, 0, 64, sub),
    FORM("sub.s32 %d, %a, %b;", 32, 32, 0, 32, sub),
    FORM("sub.s64 %d, %a, %b;", 64, 64, 0, 64, sub),
    FORM("sub.sat.s32 %d, %a, %b;", 32, 32, 0, 32, sub_sat),
    FORM("add.u16x2 %d, %a, %b;", 32, 32, 0, 32, add_packed16),
    FORM("add.s16x2 %d, %a, %b;", 32, 32, 0, 32, add_packed16),
    FORM("neg.s32 %d, %a;", 32, 0, 0, 32, negate),
    FORM("neg.s64 %d, %a;", 64, 0, 0, 64, negate),
    FORM("neg.s16 %d, %a;", 16, 0, 0, 16, negate),
    {"mov.b64 {%t0, %t1}, %a; mov.b64 {%t2, %t3}, %b; .reg .b32 lo, hi;"
     "add.cc.u32 lo, %t0, %t2; addc.u32 hi, %t1, %t3; mov.b64 %d, {lo, hi}; mov.b32 %e, hi;",
     64, 64, 0, 64, 32, wide_sum, NULL},
    {"mov.b64 {%t0, %t1}, %a; mov.b64 {%t2, %t3}, %b; .reg .b32 lo, hi;"
     "sub.cc.u32 lo, %t0, %t2; subc.u32 hi, %t1, %t3; mov.b64 %d, {lo, hi}; mov.b32 %e, hi;",
     64, 64, 0, 64, 32, wide_difference, NULL},
    {"mov.b64 {%t0, %t1}, %a; mov.b64 {%t2, %t3}, %b; .reg .b32 lo, hi; add.cc.u32 lo, %t0, %t2; "
     "addc.cc.u32 hi, %t1, %t3; addc.u32 %e, %c, 0; mov.b64 %d, {lo, hi};",
     64, 64, 32, 64, 32, longer_sum, NULL},
    {"mov.b64 {%t0, %t1}, %a; mov.b64 {%t2, %t3}, %b; .reg .b32 lo, hi; sub.cc.u32 lo, %t0, %t2; "
     "subc.cc.u32 hi, %t1, %t3; subc.u32 %e, %c, 0; mov.b64 %d, {lo, hi};",
     64, 64, 32, 64, 32, longer_difference, NULL},
    {"add.cc.u64 %d, %a, %b; addc.u64 %e, %c, 0;", 64, 64, 64, 64, 64, carry_out, NULL},
    {"sub.cc.s64 %d, %a, %b; subc.s64 %e, %c, 0;", 64, 64, 64, 64, 64, borrow_out, NULL},
    {LONG_PRODUCT, 64, 64, 64, 64, 64, long_product, NULL},
    FORM("mul.lo.u16 %d, %a, %b;", 16, 16, 0, 16, mul),
    FORM("mul.lo.s16 %d, %a, %b;", 16, 16, 0, 16, mul),
    FORM("mul.lo.s32 %d, %a, %b;", 32, 32, 0, 32, mul),
    FORM("mul.lo.s64 %d, %a, %b;", 64, 64, 0, 64, mul),
    FORM("mul.hi.u16 %d, %a, %b;", 16, 16, 0, 16, mul_hi_u16),
    FORM("mul.hi.s16 %d, %a, %b;", 16, 16, 0, 16, mul_hi_s16),
    FORM("mul.hi.u32 %d, %a, %b;", 32, 32, 0, 32, mul_hi_u32),
    FORM("mul.hi.s32 %d, %a, %b;", 32, 32, 0, 32, mul_hi_s32),
    FORM("mul.hi.u64 %d, %a, %b;", 64, 64, 0, 64, mul_hi_u64),
    FORM("mul.hi.s64 %d, %a, %b;", 64, 64, 0, 64, mul_hi_s64),
    FORM("mul.wide.u16 %d, %a, %b;", 16, 16, 0, 32, wide_u16),
    FORM("mul.wide.s16 %d, %a, %b;", 16, 16, 0, 32, wide_s16),
    FORM("mul.wide.u32 %d, %a, %b;", 32, 32, 0, 64, mul),
    FORM("mul.wide.s32 %d, %a, %b;", 32, 32, 0, 64, wide_s32),
    FORM("mul24.lo.u32 %d, %a, %b;", 32, 32, 0, 32, mul24_u),
    FORM("mul24.lo.s32 %d, %a, %b;", 32, 32, 0, 32, mul24_s),
    FORM("mul24.hi.s32 %d, %a, %b;", 32, 32, 0, 32, mul24_hi_s),
    FORM("mul24.hi.u32 %d, %a, %b;", 32, 32, 0, 32, mul24_hi_u),
    FORM("mad24.lo.s32 %d, %a, %b, %c;", 32, 32, 32, 32, mad24_s),
    FORM("mad.lo.s32 %d, %a, %b, %c;", 32, 32, 32, 32, mad),
    FORM("mad.lo.u16 %d, %a, %b, %c;", 16, 16, 16, 16, mad),
    FORM("mad.lo.s64 %d, %a, %b, %c;", 64, 64, 64, 64, mad),
    FORM("mad.hi.s32 %d, %a, %b, %c;", 32, 32, 32, 32, mad_hi_s32),
    FORM("mad.hi.sat.s32 %d, %a, %b, %c;", 32, 32, 32, 32, mad_hi_sat),
    FORM("mad.hi.u64 %d, %a, %b, %c;", 64, 64, 64, 64, mad_hi_u64),
    FORM("mad.wide.s32 %d, %a, %b, %c;", 32, 32, 64, 64, mad_wide_s32),
    FORM("mad.wide.u16 %d, %a, %b, %c;", 16, 16, 32, 32, mad_wide_u16),
    FORM("div.u32 %d, %a, %b;", 32, 32, 0, 32, div_u32),
    FORM("div.s32 %d, %a, %b;", 32, 32, 0, 32, div_s32),
    FORM("rem.u32 %d, %a, %b;", 32, 32, 0, 32, rem_u32),
    FORM("rem.s32 %d, %a, %b;", 32, 32, 0, 32, rem_s32),
    FORM("div.u64 %d, %a, %b;", 64, 64, 0, 64, div_u64),
    FORM("div.s64 %d, %a, %b;", 64, 64, 0, 64, div_s64),
    FORM("rem.u64 %d, %a, %b;", 64, 64, 0, 64, rem_u64),
    FORM("rem.s64 %d, %a, %b;", 64, 64, 0, 64, rem_s64),
    FORM("div.s16 %d, %a, %b;", 16, 16, 0, 16, div_s16),
    FORM("div.u16 %d, %a, %b;", 16, 16, 0, 16, div_u16),
    FORM("rem.u16 %d, %a, %b;", 16, 16, 0, 16, rem_u32),
    FORM("rem.s16 %d, %a, %b;", 16, 16, 0, 16, rem_s16),
    FORM("abs.s32 %d, %a;", 32, 0, 0, 32, abs_s32),
    FORM("abs.s16 %d, %a;", 16, 0, 0, 16, abs_s16),
    FORM("abs.s64 %d, %a;", 64, 0, 0, 64, abs_s64),
    FORM("min.u32 %d, %a, %b;", 32, 32, 0, 32, min_u32),
    FORM("max.u32 %d, %a, %b;", 32, 32, 0, 32, max_u32),
    FORM("min.s32 %d, %a, %b;", 32, 32, 0, 32, min_s32),
    FORM("max.s32 %d, %a, %b;", 32, 32, 0, 32, max_s32),
    FORM("min.s16 %d, %a, %b;", 16, 16, 0, 16, min_s16),
    FORM("max.s16 %d, %a, %b;", 16, 16, 0, 16, max_s16),
    FORM("max.u16 %d, %a, %b;", 16, 16, 0, 16, max_u32),
    FORM("max.s64 %d, %a, %b;", 64, 64, 0, 64, max_s64),
    FORM("min.s64 %d, %a, %b;", 64, 64, 0, 64, min_s64),
    FORM("min.u64 %d, %a, %b;", 64, 64, 0, 64, min_u32),
    FORM("max.relu.s32 %d, %a, %b;", 32, 32, 0, 32, max_relu),
    FORM("min.s16x2 %d, %a, %b;", 32, 32, 0, 32, min_packed16_s),
    FORM("max.u16x2 %d, %a, %b;", 32, 32, 0, 32, max_packed16_u),
    FORM("max.relu.s16x2 %d, %a, %b;", 32, 32, 0, 32, max_relu_packed16),
    FORM("sad.u32 %d, %a, %b, %c;", 32, 32, 32, 32, sad_u32),
    FORM("sad.s32 %d, %a, %b, %c;", 32, 32, 32, 32, sad_s32),
    FORM("sad.s16 %d, %a, %b, %c;", 16, 16, 16, 16, sad_s16),
    FORM("dp4a.u32.s32 %d, %a, %b, %c;", 32, 32, 32, 32, dot4_us),
    FORM("dp4a.u32.u32 %d, %a, %b, %c;", 32, 32, 32, 32, dot4_uu),
    FORM("dp4a.s32.s32 %d, %a, %b, %c;", 32, 32, 32, 32, dot4_ss),
    FORM("dp2a.lo.s32.u32 %d, %a, %b, %c;", 32, 32, 32, 32, dot2_lo),
    FORM("dp2a.hi.s32.s32 %d, %a, %b, %c;", 32, 32, 32, 32, dot2_hi),
};

int main(void) {
    check_forms("sm_90", forms, COUNT(forms), integers, 512);
    return check_end();
}
