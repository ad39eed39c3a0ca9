/* f32 and f64 arithmetic. The expected values are the host's own operations under the host's
   rounding modes. */
#include <fenv.h>
#include <math.h>

#include "check.h"
#include "expect.h"

/* Volatile keeps the operation between the two changes of the rounding mode. */
#define ROUNDED(T, bits, mode, expression)                                                         \
    fesetround(mode);                                                                              \
    volatile T r = (expression);                                                                   \
    fesetround(FE_TONEAREST);                                                                      \
    return bits(r)
#define EXPECT32(name, mode, expression)                                                           \
    static uint64_t name(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {                        \
        volatile float x = f32_of(a), y = f32_of(b), z = f32_of(c);                                \
        (void)e, (void)x, (void)y, (void)z;                                                        \
        ROUNDED(float, bits_of_f32, mode, expression);                                             \
    }
#define EXPECT64(name, mode, expression)                                                           \
    static uint64_t name(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {                        \
        volatile double x = f64_of(a), y = f64_of(b), z = f64_of(c);                               \
        (void)e, (void)x, (void)y, (void)z;                                                        \
        ROUNDED(double, bits_of_f64, mode, expression);                                            \
    }
#define FOUR(EXPECTN, name, expression)                                                            \
    EXPECTN(name##_rn, FE_TONEAREST, expression)                                                   \
    EXPECTN(name##_rz, FE_TOWARDZERO, expression)                                                  \
    EXPECTN(name##_rm, FE_DOWNWARD, expression)                                                    \
    EXPECTN(name##_rp, FE_UPWARD, expression)

FOUR(EXPECT32, add, x + y)
FOUR(EXPECT32, sub, x - y)
FOUR(EXPECT32, mul, x *y)
FOUR(EXPECT32, fma, fmaf(x, y, z))
FOUR(EXPECT32, div, x / y)
FOUR(EXPECT32, rcp, 1.0f / x)
FOUR(EXPECT32, sqrt, sqrtf(x))
FOUR(EXPECT64, dadd, x + y)
FOUR(EXPECT64, dmul, x *y)
FOUR(EXPECT64, dfma, fma(x, y, z))
FOUR(EXPECT64, ddiv, x / y)
FOUR(EXPECT64, dsqrt, sqrt(x))
EXPECT64(dsub, FE_TONEAREST, x - y)
EXPECT64(drcp, FE_TONEAREST, 1.0 / x)

static float flush(float x) {
    return fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x;
}

static float clip(float x) {
    return x != x ? 0 : x < 0 ? 0 : x > 1 ? 1 : x;
}
EXPECT32(add_ftz, FE_TONEAREST, flush(flush(x) + flush(y)))
EXPECT32(mul_ftz, FE_TONEAREST, flush(flush(x) * flush(y)))
EXPECT32(fma_ftz, FE_TONEAREST, flush(fmaf(flush(x), flush(y), flush(z))))
EXPECT32(add_sat, FE_TONEAREST, clip(x + y) + 0.0f)
EXPECT32(fma_sat, FE_TONEAREST, clip(fmaf(x, y, z)) + 0.0f)
EXPECT32(mul_ftz_sat, FE_TONEAREST, clip(flush(flush(x) * flush(y))) + 0.0f)

/* the manual leaves the NaN patterns of the sign operations unspecified: compare numbers only */
static int same_number32(uint64_t got, uint64_t expected) {
    return got == expected || (isnan(f32_of(got)) && isnan(f32_of(expected)));
}

static int same_number64(uint64_t got, uint64_t expected) {
    return got == expected || (isnan(f64_of(got)) && isnan(f64_of(expected)));
}
EXPECT(abs32, a & 0x7fffffff)
EXPECT(neg32, a ^ 0x80000000)
EXPECT(abs64, a & ~(1ull << 63))
EXPECT(neg64, a ^ 1ull << 63)
EXPECT(copysign32, (a & 0x80000000) | (b & 0x7fffffff))
EXPECT(copysign64, (a >> 63) << 63 | (b << 1) >> 1)
EXPECT32(abs_ftz, FE_TONEAREST, flush(fabsf(x)))

/* -0 is less than +0. */
static float lesser(float x, float y) {
    if (isnan(x) || isnan(y))
        return isnan(x) ? y : x;
    return x == y ? (signbit(x) ? x : y) : x < y ? x : y;
}

static float greater(float x, float y) {
    return -lesser(-x, -y);
}

static double lesser64(double x, double y) {
    if (isnan(x) || isnan(y))
        return isnan(x) ? y : x;
    return x == y ? (signbit(x) ? x : y) : x < y ? x : y;
}

static float xorsign(float r, float x, float y) {
    return copysignf(r, (signbit(x) != 0) != (signbit(y) != 0) ? -1.0f : 1.0f);
}
EXPECT32(min32, FE_TONEAREST, lesser(x, y))
EXPECT32(max32, FE_TONEAREST, greater(x, y))
EXPECT32(max_ftz, FE_TONEAREST, flush(greater(flush(x), flush(y))))
EXPECT32(min_nan, FE_TONEAREST, isnan(x) || isnan(y) ? NAN : lesser(x, y))
EXPECT32(max_nan, FE_TONEAREST, isnan(x) || isnan(y) ? NAN : greater(x, y))
EXPECT32(min_xor, FE_TONEAREST, xorsign(lesser(fabsf(x), fabsf(y)), x, y))
EXPECT64(min64, FE_TONEAREST, lesser64(x, y))
EXPECT64(max64, FE_TONEAREST, -lesser64(-x, -y))

/* Approximations: within 2 ulp of the exact value where that is a normal number. */
static int near32(uint64_t got, uint64_t expected) {
    int64_t g = (int64_t)got, x = (int64_t)expected;
    return same_number32(got, expected) || (g - x <= 2 && x - g <= 2);
}
EXPECT32(times_one_and_a_half, FE_TONEAREST, x * 1.5f)
EXPECT32(rsqrt32, FE_TONEAREST, (float)(1 / sqrt((double)x)))
EXPECT32(sin32, FE_TONEAREST, (float)sin((double)x))
EXPECT32(cos32, FE_TONEAREST, (float)cos((double)x))
EXPECT32(lg232, FE_TONEAREST, (float)log2((double)x))
EXPECT32(ex232, FE_TONEAREST, (float)exp2((double)x))
EXPECT32(ex2_ftz, FE_TONEAREST, flush((float)exp2((double)flush(x))))
EXPECT32(tanh32, FE_TONEAREST, (float)tanh((double)x))
EXPECT32(div_full, FE_TONEAREST, x / y)
EXPECT64(rsqrt64, FE_TONEAREST, 1 / sqrt(x))
EXPECT64(rcp_half, FE_TONEAREST,
         f64_of(bits_of_f64(1 / f64_of(bits_of_f64(x) >> 32 << 32)) >> 32 << 32))

EXPECT32(rcp_ftz, FE_TONEAREST, flush(1 / flush(x)))
EXPECT32(rsqrt_ftz, FE_TONEAREST, flush((float)(1 / sqrt((double)flush(x)))))
EXPECT32(div_ftz, FE_TONEAREST, flush(flush(x) / flush(y)))

/* rsqrt.approx.ftz.f64 reads and writes the upper word only, and treats subnormal numbers as
   zero. */
static uint64_t rsqrt_half(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {
    double x = f64_of(a >> 32 << 32);
    (void)b, (void)c, (void)e;
    if (fpclassify(x) == FP_SUBNORMAL)
        x = copysign(0, x);
    return bits_of_f64(1 / sqrt(x)) >> 32 << 32;
}

static int near64(uint64_t got, uint64_t expected) {
    double g = f64_of(got), x = f64_of(expected);
    return same_number64(got, expected) || fabs(g - x) <= 0x1p-50 * fabs(x);
}

static int normal_or_flushed(uint64_t got, uint64_t expected) {
    return same_number64(got, expected) || fpclassify(f64_of(expected)) == FP_SUBNORMAL ||
           (fabs(f64_of(expected)) > 0x1p1021 && isinf(f64_of(got)));
}

EXPECT(is_finite, isfinite(f32_of(a)) != 0)
EXPECT(is_infinite, isinf(f32_of(a)) != 0)
EXPECT(is_number, !isnan(f32_of(a)))
EXPECT(is_nan, isnan(f32_of(a)) != 0)
EXPECT(is_normal, isnormal(f32_of(a)) != 0)
EXPECT(is_subnormal, fpclassify(f32_of(a)) == FP_SUBNORMAL)
EXPECT(is_subnormal64, fpclassify(f64_of(a)) == FP_SUBNORMAL)
EXPECT(is_finite64, isfinite(f64_of(a)) != 0)

#define LOOSE(code, a, b, c, d, expected, close)                                                   \
    { code, a, b, c, d, 0, expected, close }
#define MODES(op, type, a, b, c, d, operands, expected, close)                                     \
    LOOSE(op ".rn." type " %d, " operands ";", a, b, c, d, expected##_rn, close),                  \
        LOOSE(op ".rz." type " %d, " operands ";", a, b, c, d, expected##_rz, close),              \
        LOOSE(op ".rm." type " %d, " operands ";", a, b, c, d, expected##_rm, close),              \
        LOOSE(op ".rp." type " %d, " operands ";", a, b, c, d, expected##_rp, close)
#define TESTP(property, type, width, expected)                                                     \
    FORM("testp." property "." type " %p, %a; selp.b32 %d, 1, 0, %p;", width, 0, 0, 32, expected)

static const form forms[] = {
    FORM("add.f32 %d, %a, %b;", 32, 32, 0, 32, add_rn),
    MODES("add", "f32", 32, 32, 0, 32, "%a, %b", add, NULL),
    MODES("sub", "f32", 32, 32, 0, 32, "%a, %b", sub, NULL),
    MODES("mul", "f32", 32, 32, 0, 32, "%a, %b", mul, NULL),
    MODES("fma", "f32", 32, 32, 32, 32, "%a, %b, %c", fma, NULL),
    FORM("mad.rn.f32 %d, %a, %b, %c;", 32, 32, 32, 32, fma_rn),
    MODES("div", "f32", 32, 32, 0, 32, "%a, %b", div, NULL),
    MODES("rcp", "f32", 32, 0, 0, 32, "%a", rcp, NULL),
    MODES("sqrt", "f32", 32, 0, 0, 32, "%a", sqrt, NULL),
    MODES("add", "f64", 64, 64, 0, 64, "%a, %b", dadd, same_number64),
    LOOSE("sub.f64 %d, %a, %b;", 64, 64, 0, 64, dsub, same_number64),
    LOOSE("rcp.rn.f64 %d, %a;", 64, 0, 0, 64, drcp, same_number64),
    MODES("mul", "f64", 64, 64, 0, 64, "%a, %b", dmul, same_number64),
    MODES("fma", "f64", 64, 64, 64, 64, "%a, %b, %c", dfma, same_number64),
    MODES("div", "f64", 64, 64, 0, 64, "%a, %b", ddiv, same_number64),
    MODES("sqrt", "f64", 64, 0, 0, 64, "%a", dsqrt, same_number64),
    FORM("add.ftz.f32 %d, %a, %b;", 32, 32, 0, 32, add_ftz),
    FORM("mul.rn.ftz.f32 %d, %a, %b;", 32, 32, 0, 32, mul_ftz),
    FORM("fma.rn.ftz.f32 %d, %a, %b, %c;", 32, 32, 32, 32, fma_ftz),
    FORM("add.sat.f32 %d, %a, %b;", 32, 32, 0, 32, add_sat),
    FORM("fma.rn.sat.f32 %d, %a, %b, %c;", 32, 32, 32, 32, fma_sat),
    FORM("mul.ftz.sat.f32 %d, %a, %b;", 32, 32, 0, 32, mul_ftz_sat),
    LOOSE("abs.f32 %d, %a;", 32, 0, 0, 32, abs32, same_number32),
    LOOSE("neg.f32 %d, %a;", 32, 0, 0, 32, neg32, same_number32),
    LOOSE("abs.ftz.f32 %d, %a;", 32, 0, 0, 32, abs_ftz, same_number32),
    LOOSE("abs.f64 %d, %a;", 64, 0, 0, 64, abs64, same_number64),
    LOOSE("neg.f64 %d, %a;", 64, 0, 0, 64, neg64, same_number64),
    FORM("copysign.f32 %d, %a, %b;", 32, 32, 0, 32, copysign32),
    FORM("copysign.f64 %d, %a, %b;", 64, 64, 0, 64, copysign64),
    FORM("min.f32 %d, %a, %b;", 32, 32, 0, 32, min32),
    FORM("max.f32 %d, %a, %b;", 32, 32, 0, 32, max32),
    FORM("max.ftz.f32 %d, %a, %b;", 32, 32, 0, 32, max_ftz),
    FORM("min.NaN.f32 %d, %a, %b;", 32, 32, 0, 32, min_nan),
    FORM("max.NaN.f32 %d, %a, %b;", 32, 32, 0, 32, max_nan),
    LOOSE("min.xorsign.abs.f32 %d, %a, %b;", 32, 32, 0, 32, min_xor, same_number32),
    LOOSE("min.f64 %d, %a, %b;", 64, 64, 0, 64, min64, same_number64),
    LOOSE("max.f64 %d, %a, %b;", 64, 64, 0, 64, max64, same_number64),
    LOOSE("rcp.approx.f32 %d, %a;", 32, 0, 0, 32, rcp_rn, near32),
    LOOSE("sqrt.approx.f32 %d, %a;", 32, 0, 0, 32, sqrt_rn, near32),
    LOOSE("rsqrt.approx.f32 %d, %a;", 32, 0, 0, 32, rsqrt32, near32),
    LOOSE("sin.approx.f32 %d, %a;", 32, 0, 0, 32, sin32, near32),
    LOOSE("cos.approx.f32 %d, %a;", 32, 0, 0, 32, cos32, near32),
    LOOSE("lg2.approx.f32 %d, %a;", 32, 0, 0, 32, lg232, near32),
    LOOSE("ex2.approx.f32 %d, %a;", 32, 0, 0, 32, ex232, near32),
    LOOSE("ex2.approx.ftz.f32 %d, %a;", 32, 0, 0, 32, ex2_ftz, near32),
    LOOSE("tanh.approx.f32 %d, %a;", 32, 0, 0, 32, tanh32, near32),
    LOOSE("div.full.f32 %d, %a, %b;", 32, 32, 0, 32, div_full, near32),
    LOOSE("div.approx.f32 %d, %a, %b;", 32, 32, 0, 32, div_full, near32),
    LOOSE("rsqrt.approx.f64 %d, %a;", 64, 0, 0, 64, rsqrt64, near64),
    LOOSE("rcp.approx.ftz.f64 %d, %a;", 64, 0, 0, 64, rcp_half, normal_or_flushed),
    LOOSE("rcp.approx.ftz.f32 %d, %a;", 32, 0, 0, 32, rcp_ftz, near32),
    LOOSE("rsqrt.approx.ftz.f32 %d, %a;", 32, 0, 0, 32, rsqrt_ftz, near32),
    LOOSE("rsqrt.approx.ftz.f64 %d, %a;", 64, 0, 0, 64, rsqrt_half, same_number64),
    LOOSE("div.approx.ftz.f32 %d, %a, %b;", 32, 32, 0, 32, div_ftz, near32),
    TESTP("finite", "f32", 32, is_finite),
    TESTP("infinite", "f32", 32, is_infinite),
    TESTP("number", "f32", 32, is_number),
    TESTP("notanumber", "f32", 32, is_nan),
    TESTP("normal", "f32", 32, is_normal),
    TESTP("subnormal", "f32", 32, is_subnormal),
    TESTP("subnormal", "f64", 64, is_subnormal64),
    TESTP("finite", "f64", 64, is_finite64),
    FORM("mov.f32 %d, 0f3FC00000; mul.f32 %d, %d, %a; mov.b32 %t0, 0; add.f32 %d, %d, 0f80000000;",
         32, 0, 0, 32, times_one_and_a_half),
};

int main(void) {
    check_forms("sm_80", forms, COUNT(forms), floats, 1000);
    return check_end();
}
