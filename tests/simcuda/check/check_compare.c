/* setp, set, selp, slct: every comparison, ordered and unordered, with combinations and pairs. */
#include <math.h>

#include "check.h"
#include "expect.h"
#include "nearest.h"

/* The six comparisons of a type, computed from its values. */
#define ORDERS(suffix, x, y)                                                                       \
    EXPECT(eq_##suffix, (x) == (y))                                                                \
    EXPECT(ne_##suffix, (x) < (y) || (x) > (y))                                                    \
    EXPECT(lt_##suffix, (x) < (y))                                                                 \
    EXPECT(le_##suffix, (x) <= (y))                                                                \
    EXPECT(gt_##suffix, (x) > (y))                                                                 \
    EXPECT(ge_##suffix, (x) >= (y))
/* The comparisons that are true for a NaN, and the tests for a NaN. */
#define UNORDERED(suffix, x, y)                                                                    \
    EXPECT(equ_##suffix, isnan(x) || isnan(y) || (x) == (y))                                       \
    EXPECT(neu_##suffix, isnan(x) || isnan(y) || (x) != (y))                                       \
    EXPECT(ltu_##suffix, isnan(x) || isnan(y) || (x) < (y))                                        \
    EXPECT(leu_##suffix, isnan(x) || isnan(y) || (x) <= (y))                                       \
    EXPECT(gtu_##suffix, isnan(x) || isnan(y) || (x) > (y))                                        \
    EXPECT(geu_##suffix, isnan(x) || isnan(y) || (x) >= (y))                                       \
    EXPECT(num_##suffix, !isnan(x) && !isnan(y))                                                   \
    EXPECT(nan_##suffix, isnan(x) || isnan(y))

#define X f32_of(a)
#define Y f32_of(b)
ORDERS(unsigned, a, b)
ORDERS(s16, (s16)a, (s16)b)
ORDERS(s32, (s32)a, (s32)b)
ORDERS(s64, (s64)a, (s64)b)
ORDERS(f32, X, Y)
ORDERS(f64, f64_of(a), f64_of(b))
UNORDERED(f32, X, Y)
UNORDERED(f64, f64_of(a), f64_of(b))

static float flush(float x) {
    return fpclassify(x) == FP_SUBNORMAL ? 0 : x;
}
EXPECT(flt_ftz, flush(X) < flush(Y))

/* p|q with a third predicate, bit 0 of c */
static uint64_t lt_and(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {
    *e = !((s32)a < (s32)b) && (c & 1);
    return (s32)a < (s32)b && (c & 1);
}

static uint64_t eq_or_not(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {
    *e = a != b || !(c & 1);
    return a == b || !(c & 1);
}

static uint64_t gt_xor(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {
    *e = (X > Y) == (c & 1);
    return (X > Y) != (c & 1);
}

static double lane(u64 x, int i) {
    return format_value(&f16, (u32)(x >> i) & 0xffff);
}

static uint64_t pair_lt(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {
    (void)c;
    *e = lane(a, 16) < lane(b, 16);
    return lane(a, 0) < lane(b, 0);
}
EXPECT(pair_mask,
       (lane(a, 0) > lane(b, 0) ? 0xffff : 0) | (lane(a, 16) > lane(b, 16) ? 0xffff0000 : 0))
EXPECT(pair_ones,
       (lane(a, 0) == lane(b, 0) ? 0x3c00 : 0) | (lane(a, 16) == lane(b, 16) ? 0x3c000000 : 0))
EXPECT(bf16_ge, format_value(&bf16, (u32)a) >= format_value(&bf16, (u32)b))

EXPECT(set_u32, X < Y ? 0xffffffff : 0)
EXPECT(set_f32, (s32)a == (s32)b ? 0x3f800000 : 0)
EXPECT(set_and, (X >= Y) && (c & 1) ? 0xffffffff : 0)
EXPECT(selp, c & 1 ? a : b)
EXPECT(slct_s32, (s32)c >= 0 ? a : b)
EXPECT(slct_f32, f32_of(c) >= 0 ? a : b)

#define SHOW " selp.b32 %d, 1, 0, %p;"
#define SETP(comparison, type, width, expected)                                                    \
    FORM("setp." comparison "." type " %p, %a, %b;" SHOW, width, width, 0, 32, expected)
/* The second operand in a register, and as an immediate. */
#define WITH(mark, comparison, type, width, expected)                                              \
    SETP(comparison, #type, width, expected),                                                      \
        FORM("setp." comparison "." #type " %p, %a, " mark "b;" SHOW, width, width, 0, 32,         \
             expected)
#define SIX(mark, type, width, suffix)                                                             \
    WITH(mark, "eq", type, width, eq_##suffix), WITH(mark, "ne", type, width, ne_##suffix),        \
        WITH(mark, "lt", type, width, lt_##suffix), WITH(mark, "le", type, width, le_##suffix),    \
        WITH(mark, "gt", type, width, gt_##suffix), WITH(mark, "ge", type, width, ge_##suffix)
#define EIGHT(type, width)                                                                         \
    WITH("#", "equ", type, width, equ_##type), WITH("#", "neu", type, width, neu_##type),          \
        WITH("#", "ltu", type, width, ltu_##type), WITH("#", "leu", type, width, leu_##type),      \
        WITH("#", "gtu", type, width, gtu_##type), WITH("#", "geu", type, width, geu_##type),      \
        WITH("#", "num", type, width, num_##type), WITH("#", "nan", type, width, nan_##type)
#define THIRD "and.b32 %t0, %c, 1; setp.ne.u32 %p, %t0, 0; .reg .pred x, y;"
#define BOTH "selp.b32 %d, 1, 0, x; selp.b32 %e, 1, 0, y;"

static const form integer_forms[] = {
    SIX("$", u16, 16, unsigned),
    SIX("$", u32, 32, unsigned),
    SIX("$", u64, 64, unsigned),
    SIX("$", s16, 16, s16),
    SIX("$", s32, 32, s32),
    SIX("$", s64, 64, s64),
    WITH("$", "eq", b16, 16, eq_unsigned),
    WITH("$", "ne", b16, 16, ne_unsigned),
    WITH("$", "eq", b32, 32, eq_unsigned),
    WITH("$", "ne", b32, 32, ne_unsigned),
    WITH("$", "eq", b64, 64, eq_unsigned),
    WITH("$", "ne", b64, 64, ne_unsigned),
    SETP("hi", "u32", 32, gt_unsigned),
    SETP("ls", "u16", 16, le_unsigned),
    SETP("lo", "u64", 64, lt_unsigned),
    SETP("hs", "u32", 32, ge_unsigned),
    {THIRD "setp.lt.and.s32 x|y, %a, %b, %p;" BOTH, 32, 32, 32, 32, 32, lt_and, NULL},
    {THIRD "setp.eq.or.u64 x|y, %a, %b, !%p;" BOTH, 64, 64, 32, 32, 32, eq_or_not, NULL},
    FORM("set.eq.f32.s32 %d, %a, %b;", 32, 32, 0, 32, set_f32),
    FORM(THIRD "selp.b32 %d, %a, %b, %p;", 32, 32, 32, 32, selp),
    FORM(THIRD "selp.b64 %d, %a, %b, %p;", 64, 64, 32, 64, selp),
    FORM(THIRD "selp.u16 %d, %a, %b, %p;", 16, 16, 32, 16, selp),
    FORM("slct.u32.s32 %d, %a, %b, %c;", 32, 32, 32, 32, slct_s32),
};

static const form float_forms[] = {
    SIX("#", f32, 32, f32),
    SIX("#", f64, 64, f64),
    EIGHT(f32, 32),
    EIGHT(f64, 64),
    SETP("lt.ftz", "f32", 32, flt_ftz),
    SETP("ge", "bf16", 16, bf16_ge),
    {THIRD "setp.gt.xor.f32 x|y, %a, %b, %p;" BOTH, 32, 32, 32, 32, 32, gt_xor, NULL},
    FORM("set.lt.u32.f32 %d, %a, %b;", 32, 32, 0, 32, set_u32),
    FORM(THIRD "set.ge.and.s32.f32 %d, %a, %b, %p;", 32, 32, 32, 32, set_and),
    FORM("slct.b64.f32 %d, %a, %b, %c;", 64, 64, 32, 64, slct_f32),
};

static const form half_forms[] = {
    {".reg .pred x, y; setp.lt.f16x2 x|y, %a, %b;" BOTH, 32, 32, 0, 32, 32, pair_lt, NULL},
    FORM("set.gt.u32.f16x2 %d, %a, %b;", 32, 32, 0, 32, pair_mask),
    FORM("set.eq.f16x2.f16x2 %d, %a, %b;", 32, 32, 0, 32, pair_ones),
};

static u64 pairs(unsigned width, unsigned index, unsigned n) {
    return width == 32 ? floats(16, index, n) | floats(16, index, n) << 16
                       : floats(width, index, n);
}

int main(void) {
    check_forms("sm_90", integer_forms, COUNT(integer_forms), integers, 256);
    check_forms("sm_90", float_forms, COUNT(float_forms), floats, 256);
    check_forms("sm_90", half_forms, COUNT(half_forms), pairs, 1000);
    return check_end();
}
