/* setp, set, selp, slct: every comparison, ordered and unordered, combinations, pairs. */
#include <math.h>

#include "check.h"
#include "expect.h"
#include "nearest.h"

EXPECT(eq, a == b)
EXPECT(ne, a != b)
EXPECT(lt_u, a < b)
EXPECT(ge_u, a >= b)
EXPECT(hi, a > b)
EXPECT(ls, a <= b)
EXPECT(lt_s32, (s32)a < (s32)b)
EXPECT(le_s32, (s32)a <= (s32)b)
EXPECT(gt_s64, (s64)a > (s64)b)
EXPECT(ge_s16, (s16)a >= (s16)b)

#define X f32_of(a)
#define Y f32_of(b)
#define UNORDERED (isnan(X) || isnan(Y))
EXPECT(feq, X == Y)
EXPECT(fne, !UNORDERED && X != Y)
EXPECT(flt, X < Y)
EXPECT(fle, X <= Y)
EXPECT(fgt, X > Y)
EXPECT(fge, X >= Y)
EXPECT(fequ, UNORDERED || X == Y)
EXPECT(fneu, UNORDERED || X != Y)
EXPECT(fltu, UNORDERED || X < Y)
EXPECT(fleu, UNORDERED || X <= Y)
EXPECT(fgtu, UNORDERED || X > Y)
EXPECT(fgeu, UNORDERED || X >= Y)
EXPECT(fnum, !UNORDERED)
EXPECT(fnan, UNORDERED)

static float flush(float x) {
    return fpclassify(x) == FP_SUBNORMAL ? 0 : x;
}
EXPECT(flt_ftz, flush(X) < flush(Y))
EXPECT(dgt, f64_of(a) > f64_of(b))
EXPECT(dneu, !(f64_of(a) == f64_of(b)))

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
    *e = (X <= Y || UNORDERED) != (c & 1);
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

#define SETP(comparison, type, width, expected)                                                    \
    FORM("setp." comparison "." type " %p, %a, %b; selp.b32 %d, 1, 0, %p;", width, width, 0, 32,   \
         expected)
#define THIRD "and.b32 %t0, %c, 1; setp.ne.u32 %p, %t0, 0; .reg .pred x, y;"
#define BOTH "selp.b32 %d, 1, 0, x; selp.b32 %e, 1, 0, y;"

static const form integer_forms[] = {
    SETP("eq", "s32", 32, eq),
    SETP("ne", "b32", 32, ne),
    SETP("eq", "b64", 64, eq),
    SETP("ne", "u16", 16, ne),
    SETP("lt", "u32", 32, lt_u),
    SETP("ge", "u64", 64, ge_u),
    SETP("hi", "u32", 32, hi),
    SETP("ls", "u16", 16, ls),
    SETP("lo", "u64", 64, lt_u),
    SETP("hs", "u32", 32, ge_u),
    SETP("lt", "s32", 32, lt_s32),
    SETP("le", "s32", 32, le_s32),
    SETP("gt", "s64", 64, gt_s64),
    SETP("ge", "s16", 16, ge_s16),
    {THIRD "setp.lt.and.s32 x|y, %a, %b, %p;" BOTH, 32, 32, 32, 32, 32, lt_and, NULL},
    {THIRD "setp.eq.or.u64 x|y, %a, %b, !%p;" BOTH, 64, 64, 32, 32, 32, eq_or_not, NULL},
    FORM("set.eq.f32.s32 %d, %a, %b;", 32, 32, 0, 32, set_f32),
    FORM(THIRD "selp.b32 %d, %a, %b, %p;", 32, 32, 32, 32, selp),
    FORM(THIRD "selp.b64 %d, %a, %b, %p;", 64, 64, 32, 64, selp),
    FORM(THIRD "selp.u16 %d, %a, %b, %p;", 16, 16, 32, 16, selp),
    FORM("slct.u32.s32 %d, %a, %b, %c;", 32, 32, 32, 32, slct_s32),
};

static const form float_forms[] = {
    SETP("eq", "f32", 32, feq),
    SETP("ne", "f32", 32, fne),
    SETP("lt", "f32", 32, flt),
    SETP("le", "f32", 32, fle),
    SETP("gt", "f32", 32, fgt),
    SETP("ge", "f32", 32, fge),
    SETP("equ", "f32", 32, fequ),
    SETP("neu", "f32", 32, fneu),
    SETP("ltu", "f32", 32, fltu),
    SETP("leu", "f32", 32, fleu),
    SETP("gtu", "f32", 32, fgtu),
    SETP("geu", "f32", 32, fgeu),
    SETP("num", "f32", 32, fnum),
    SETP("nan", "f32", 32, fnan),
    SETP("lt.ftz", "f32", 32, flt_ftz),
    SETP("gt", "f64", 64, dgt),
    SETP("neu", "f64", 64, dneu),
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
    check_forms("sm_90", integer_forms, COUNT(integer_forms), integers, 1000);
    check_forms("sm_90", float_forms, COUNT(float_forms), floats, 1000);
    check_forms("sm_90", half_forms, COUNT(half_forms), pairs, 1000);
    return check_end();
}
