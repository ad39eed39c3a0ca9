/* cvt: integers, floats, float16, bfloat16, small floats, tf32, with every rounding mode and with
   clamping. */
#include <fenv.h>
#include <math.h>

#include "check.h"
#include "expect.h"
#include "nearest.h"

/* ---- between integers ---- */
EXPECT(u8_to_u32, (u8)a)
EXPECT(s8_to_s32, (s8)a)
EXPECT(s8_to_s64, (s8)a)
EXPECT(s16_to_s64, (s16)a)
EXPECT(s32_to_s64, (s32)a)
EXPECT(same, a)

static u64 clamp(s128 x, s128 low, s128 high) {
    return (u64)(x < low ? low : x > high ? high : x);
}
EXPECT(clamp_s32_u8, clamp((s32)a, 0, 255))
EXPECT(clamp_s32_s8, (u32)clamp((s32)a, -128, 127))
EXPECT(clamp_s64_s32, clamp((s64)a, INT32_MIN, INT32_MAX))
EXPECT(clamp_u64_s32, clamp((s128)a, INT32_MIN, INT32_MAX))
EXPECT(clamp_s64_u64, clamp((s64)a, 0, (s128)UINT64_MAX))
EXPECT(clamp_u32_s16, clamp((s128)a, INT16_MIN, INT16_MAX))
EXPECT(pack_s8,
       clamp((s32)b, -128, 127) % 256 | clamp((s32)a, -128, 127) % 256 << 8 | (c & 0xffff) << 16)
EXPECT(pack_u16, clamp((s32)b, 0, 65535) | clamp((s32)a, 0, 65535) << 16)

/* ---- integers to floats: the host's conversion under each rounding mode ---- */
#define TO_FLOAT(name, I, T, bits, mode)                                                           \
    static uint64_t name(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {                        \
        volatile I x = (I)a;                                                                       \
        (void)b, (void)c, (void)e;                                                                 \
        fesetround(mode);                                                                          \
        volatile T r = (T)x;                                                                       \
        fesetround(FE_TONEAREST);                                                                  \
        return bits(r);                                                                            \
    }
TO_FLOAT(s32_f32_rn, s32, float, bits_of_f32, FE_TONEAREST)
TO_FLOAT(u32_f32_rn, u32, float, bits_of_f32, FE_TONEAREST)
TO_FLOAT(u32_f32_rz, u32, float, bits_of_f32, FE_TOWARDZERO)
TO_FLOAT(s64_f32_rn, s64, float, bits_of_f32, FE_TONEAREST)
TO_FLOAT(s64_f32_rm, s64, float, bits_of_f32, FE_DOWNWARD)
TO_FLOAT(s64_f32_rp, s64, float, bits_of_f32, FE_UPWARD)
TO_FLOAT(u64_f32_rn, u64, float, bits_of_f32, FE_TONEAREST)
TO_FLOAT(u64_f64_rn, u64, double, bits_of_f64, FE_TONEAREST)
TO_FLOAT(s64_f64_rz, s64, double, bits_of_f64, FE_TOWARDZERO)
TO_FLOAT(s64_f64_rp, s64, double, bits_of_f64, FE_UPWARD)
TO_FLOAT(s32_f64, s32, double, bits_of_f64, FE_TONEAREST)
TO_FLOAT(u8_f32, u8, float, bits_of_f32, FE_TONEAREST)
TO_FLOAT(u16_f32, u16, float, bits_of_f32, FE_TONEAREST)
TO_FLOAT(u16_f64, u16, double, bits_of_f64, FE_TONEAREST)
TO_FLOAT(s16_f64, s16, double, bits_of_f64, FE_TONEAREST)
TO_FLOAT(s64_f64_rn, s64, double, bits_of_f64, FE_TONEAREST)
TO_FLOAT(s64_f32_rz, s64, float, bits_of_f32, FE_TOWARDZERO)
TO_FLOAT(s16_f32, s16, float, bits_of_f32, FE_TONEAREST)
EXPECT(s32_f16, format_round(&f16, (quad)(s32)a, 0, NEAREST, 0))
EXPECT(s64_f16_rz, format_round(&f16, (quad)(s64)a, 0, TOWARD_ZERO, 0))
EXPECT(u16_f16, format_round(&f16, (quad)(u16)a, 0, NEAREST, 0))
EXPECT(u64_bf16, format_round(&bf16, (quad)a, 0, NEAREST, 0))

/* ---- floats to integers: rounded exactly, then clamped; NaN as the manual specifies ---- */
static u64 to_integer(double x, double rounded, int bits, int is_signed, int wide) {
    quad low = is_signed ? -(quad)ldexp(1, bits - 1) : 0;
    quad high = (quad)ldexp(1, is_signed ? bits - 1 : bits) - 1;
    quad q = (quad)rounded;
    if (x != x)
        return wide ? 1ull << (bits - 1) : 0;
    q = q < low ? low : q > high ? high : q;
    return is_signed ? (u64)(s64)q : (u64)q;
}
EXPECT(f32_s32_rz, to_integer(f32_of(a), trunc(f32_of(a)), 32, 1, 0))
EXPECT(f32_s32_rn, to_integer(f32_of(a), nearbyint(f32_of(a)), 32, 1, 0))
EXPECT(f32_s32_rm, to_integer(f32_of(a), floor(f32_of(a)), 32, 1, 0))
EXPECT(f32_s32_rp, to_integer(f32_of(a), ceil(f32_of(a)), 32, 1, 0))
EXPECT(f32_u32_rz, to_integer(f32_of(a), trunc(f32_of(a)), 32, 0, 0))
EXPECT(f32_u8_rz, to_integer(f32_of(a), trunc(f32_of(a)), 8, 0, 0))
EXPECT(f32_s16_rn, to_integer(f32_of(a), nearbyint(f32_of(a)), 16, 1, 0))
EXPECT(f32_s64_rz, to_integer(f32_of(a), trunc(f32_of(a)), 64, 1, 1))
EXPECT(f32_u64_rz, to_integer(f32_of(a), trunc(f32_of(a)), 64, 0, 1))
EXPECT(f64_s32_rz, to_integer(f64_of(a), trunc(f64_of(a)), 32, 1, 1))
EXPECT(f64_s32_rn, to_integer(f64_of(a), nearbyint(f64_of(a)), 32, 1, 1))
EXPECT(f64_s64_rz, to_integer(f64_of(a), trunc(f64_of(a)), 64, 1, 1))
EXPECT(f64_s64_rm, to_integer(f64_of(a), floor(f64_of(a)), 64, 1, 1))
EXPECT(f64_u64_rn, to_integer(f64_of(a), nearbyint(f64_of(a)), 64, 0, 1))
EXPECT(f64_u32_rp, to_integer(f64_of(a), ceil(f64_of(a)), 32, 0, 1))

static double half(u64 a) {
    return format_value(&f16, (u32)a & 0xffff);
}
EXPECT(f16_s32_rz, to_integer(half(a), trunc(half(a)), 32, 1, 0))
EXPECT(f16_u16_rn, to_integer(half(a), nearbyint(half(a)), 16, 0, 0))
EXPECT(bf16_s32_rz,
       to_integer(format_value(&bf16, (u32)a), trunc(format_value(&bf16, (u32)a)), 32, 1, 0))

/* ---- between floats ---- */
static u64 small(const format *f, double x, rule r, int finite) {
    return format_round(f, (quad)x, 0, r, finite);
}

#define NARROW(name, T, mode)                                                                      \
    static uint64_t name(uint64_t a, uint64_t b, uint64_t c, uint64_t *e) {                        \
        volatile double x = f64_of(a);                                                             \
        (void)b, (void)c, (void)e;                                                                 \
        fesetround(mode);                                                                          \
        volatile T r = (T)x;                                                                       \
        fesetround(FE_TONEAREST);                                                                  \
        return bits_of_f32(r);                                                                     \
    }
NARROW(f64_f32_rn, float, FE_TONEAREST)
NARROW(f64_f32_rz, float, FE_TOWARDZERO)
NARROW(f64_f32_rm, float, FE_DOWNWARD)
NARROW(f64_f32_rp, float, FE_UPWARD)
EXPECT(f32_f64, bits_of_f64(f32_of(a)))
EXPECT(f32_f16_rn, small(&f16, f32_of(a), NEAREST, 0))
EXPECT(f32_f16_rz, small(&f16, f32_of(a), TOWARD_ZERO, 0))
EXPECT(f64_f16_rn, small(&f16, f64_of(a), NEAREST, 0))
EXPECT(f64_f16_rm, small(&f16, f64_of(a), DOWN, 0))
EXPECT(f64_f16_rp, small(&f16, f64_of(a), UP, 0))
EXPECT(f32_bf16_rn, small(&bf16, f32_of(a), NEAREST, 0))
EXPECT(f32_bf16_rz, small(&bf16, f32_of(a), TOWARD_ZERO, 0))
EXPECT(f32_bf16_relu, small(&bf16, f32_of(a) < 0 ? 0 : f32_of(a) == 0 ? 0 : f32_of(a), NEAREST, 0))
EXPECT(f16_f32, bits_of_f32((float)half(a)))
EXPECT(f16_f64, bits_of_f64(half(a)))
EXPECT(bf16_f32, bits_of_f32((float)format_value(&bf16, (u32)a)))
EXPECT(f16_bf16, small(&bf16, half(a), NEAREST, 0))
EXPECT(pair_f16, small(&f16, f32_of(b), NEAREST, 0) | small(&f16, f32_of(a), NEAREST, 0) << 16)
EXPECT(pair_bf16, small(&bf16, f32_of(b), TOWARD_ZERO, 0) | small(&bf16, f32_of(a), TOWARD_ZERO, 0)
                                                                << 16)
EXPECT(pair_e4m3, small(&e4m3, f32_of(b), NEAREST, 1) | small(&e4m3, f32_of(a), NEAREST, 1) << 8)
EXPECT(pair_e5m2, small(&e5m2, f32_of(b), NEAREST, 1) | small(&e5m2, f32_of(a), NEAREST, 1) << 8)
EXPECT(e4m3_pair, small(&f16, format_value(&e4m3, a & 255), NEAREST, 0) |
                      small(&f16, format_value(&e4m3, a >> 8 & 255), NEAREST, 0) << 16)
EXPECT(e5m2_pair, small(&f16, format_value(&e5m2, a & 255), NEAREST, 0) |
                      small(&f16, format_value(&e5m2, a >> 8 & 255), NEAREST, 0) << 16)
EXPECT(round_f32, bits_of_f32(nearbyintf(f32_of(a))))
EXPECT(floor_f32, bits_of_f32(floorf(f32_of(a))))
EXPECT(ceil_f32, bits_of_f32(ceilf(f32_of(a))))
EXPECT(trunc_f32, bits_of_f32(truncf(f32_of(a))))
EXPECT(round_f64, bits_of_f64(nearbyint(f64_of(a))))
EXPECT(floor_f64, bits_of_f64(floor(f64_of(a))))
EXPECT(trunc_f64, bits_of_f64(trunc(f64_of(a))))
EXPECT(ceil_f64, bits_of_f64(ceil(f64_of(a))))
EXPECT(trunc_f16, small(&f16, trunc(half(a)), NEAREST, 0))
EXPECT(sat_f32, bits_of_f32(!(f32_of(a) > 0) ? 0 : f32_of(a) > 1 ? 1 : f32_of(a)))
EXPECT(ftz_f32,
       bits_of_f32(fpclassify(f32_of(a)) == FP_SUBNORMAL ? copysignf(0, f32_of(a)) : f32_of(a)))

/* tf32 is a float with a fraction of 10 bits, so it is described as a format */
static const format tf32 = {8, 10, 0x3fbff, 0x3fc00, 0x3ffff};

static u64 tf32_of(float x) {
    return isnan(x) ? 0x7fffffff : (u64)format_round(&tf32, (quad)x, 0, TIES_AWAY, 0) << 13;
}
EXPECT(f32_tf32, tf32_of(f32_of(a)))

static int same_nan(u64 got, u64 expected) {
    return got == expected || (isnan(f64_of(got)) && isnan(f64_of(expected)));
}

static const form integer_forms[] = {
    FORM("cvt.u32.u8 %d, %a;", 32, 0, 0, 32, u8_to_u32),
    FORM("cvt.s32.s8 %d, %a;", 32, 0, 0, 32, s8_to_s32),
    FORM("cvt.s64.s8 %d, %a;", 16, 0, 0, 64, s8_to_s64),
    FORM("cvt.s64.s16 %d, %a;", 16, 0, 0, 64, s16_to_s64),
    FORM("cvt.s64.s32 %d, %a;", 32, 0, 0, 64, s32_to_s64),
    FORM("cvt.u64.u32 %d, %a;", 32, 0, 0, 64, same),
    FORM("cvt.u32.u64 %d, %a;", 64, 0, 0, 32, same),
    FORM("cvt.s8.s32 %d, %a;", 32, 0, 0, 32, s8_to_s32),
    FORM("cvt.s16.s8 %d, %a;", 16, 0, 0, 16, s8_to_s32),
    FORM("cvt.u16.u32 %d, %a;", 32, 0, 0, 16, same),
    FORM("cvt.u32.u16 %d, %a;", 16, 0, 0, 32, same),
    FORM("cvt.u64.u16 %d, %a;", 16, 0, 0, 64, same),
    FORM("cvt.s8.s64 %d, %a;", 64, 0, 0, 32, s8_to_s32),
    FORM("cvt.u16.u64 %d, %a;", 64, 0, 0, 16, same),
    FORM("cvt.sat.u8.s32 %d, %a;", 32, 0, 0, 32, clamp_s32_u8),
    FORM("cvt.sat.s8.s32 %d, %a;", 32, 0, 0, 32, clamp_s32_s8),
    FORM("cvt.sat.s32.s64 %d, %a;", 64, 0, 0, 32, clamp_s64_s32),
    FORM("cvt.sat.s32.u64 %d, %a;", 64, 0, 0, 32, clamp_u64_s32),
    FORM("cvt.sat.u64.s64 %d, %a;", 64, 0, 0, 64, clamp_s64_u64),
    FORM("cvt.sat.s16.u32 %d, %a;", 32, 0, 0, 16, clamp_u32_s16),
    FORM("cvt.pack.sat.s8.s32.b32 %d, %a, %b, %c;", 32, 32, 32, 32, pack_s8),
    FORM("cvt.pack.sat.u16.s32 %d, %a, %b;", 32, 32, 0, 32, pack_u16),
    FORM("cvt.rn.f32.s32 %d, %a;", 32, 0, 0, 32, s32_f32_rn),
    FORM("cvt.rn.f32.u32 %d, %a;", 32, 0, 0, 32, u32_f32_rn),
    FORM("cvt.rz.f32.u32 %d, %a;", 32, 0, 0, 32, u32_f32_rz),
    FORM("cvt.rn.f32.s64 %d, %a;", 64, 0, 0, 32, s64_f32_rn),
    FORM("cvt.rm.f32.s64 %d, %a;", 64, 0, 0, 32, s64_f32_rm),
    FORM("cvt.rp.f32.s64 %d, %a;", 64, 0, 0, 32, s64_f32_rp),
    FORM("cvt.rn.f32.u64 %d, %a;", 64, 0, 0, 32, u64_f32_rn),
    FORM("cvt.rn.f64.u64 %d, %a;", 64, 0, 0, 64, u64_f64_rn),
    FORM("cvt.rz.f64.s64 %d, %a;", 64, 0, 0, 64, s64_f64_rz),
    FORM("cvt.rp.f64.s64 %d, %a;", 64, 0, 0, 64, s64_f64_rp),
    FORM("cvt.rn.f64.s32 %d, %a;", 32, 0, 0, 64, s32_f64),
    FORM("cvt.rn.f32.u8 %d, %a;", 16, 0, 0, 32, u8_f32),
    FORM("cvt.rn.f32.s16 %d, %a;", 16, 0, 0, 32, s16_f32),
    FORM("cvt.rn.f32.u16 %d, %a;", 16, 0, 0, 32, u16_f32),
    FORM("cvt.rn.f64.u16 %d, %a;", 16, 0, 0, 64, u16_f64),
    FORM("cvt.rn.f64.s16 %d, %a;", 16, 0, 0, 64, s16_f64),
    FORM("cvt.rn.f64.s64 %d, %a;", 64, 0, 0, 64, s64_f64_rn),
    FORM("cvt.rz.f32.s64 %d, %a;", 64, 0, 0, 32, s64_f32_rz),
    FORM("cvt.rn.f16.s32 %d, %a;", 32, 0, 0, 16, s32_f16),
    FORM("cvt.rz.f16.s64 %d, %a;", 64, 0, 0, 16, s64_f16_rz),
    FORM("cvt.rn.f16.u16 %d, %a;", 16, 0, 0, 16, u16_f16),
    FORM("cvt.rn.bf16.u64 %d, %a;", 64, 0, 0, 16, u64_bf16),
};

static const form float_forms[] = {
    FORM("cvt.rzi.s32.f32 %d, %a;", 32, 0, 0, 32, f32_s32_rz),
    FORM("cvt.rni.s32.f32 %d, %a;", 32, 0, 0, 32, f32_s32_rn),
    FORM("cvt.rmi.s32.f32 %d, %a;", 32, 0, 0, 32, f32_s32_rm),
    FORM("cvt.rpi.s32.f32 %d, %a;", 32, 0, 0, 32, f32_s32_rp),
    FORM("cvt.rzi.ftz.u32.f32 %d, %a;", 32, 0, 0, 32, f32_u32_rz),
    FORM("cvt.rzi.u8.f32 %d, %a;", 32, 0, 0, 32, f32_u8_rz),
    FORM("cvt.rni.s16.f32 %d, %a;", 32, 0, 0, 16, f32_s16_rn),
    FORM("cvt.rzi.s64.f32 %d, %a;", 32, 0, 0, 64, f32_s64_rz),
    FORM("cvt.rzi.u64.f32 %d, %a;", 32, 0, 0, 64, f32_u64_rz),
    FORM("cvt.rzi.s32.f64 %d, %a;", 64, 0, 0, 32, f64_s32_rz),
    FORM("cvt.rni.s32.f64 %d, %a;", 64, 0, 0, 32, f64_s32_rn),
    FORM("cvt.rzi.s64.f64 %d, %a;", 64, 0, 0, 64, f64_s64_rz),
    FORM("cvt.rmi.s64.f64 %d, %a;", 64, 0, 0, 64, f64_s64_rm),
    FORM("cvt.rni.u64.f64 %d, %a;", 64, 0, 0, 64, f64_u64_rn),
    FORM("cvt.rpi.u32.f64 %d, %a;", 64, 0, 0, 32, f64_u32_rp),
    FORM("cvt.rzi.s32.f16 %d, %a;", 16, 0, 0, 32, f16_s32_rz),
    FORM("cvt.rni.u16.f16 %d, %a;", 16, 0, 0, 16, f16_u16_rn),
    FORM("cvt.rzi.s32.bf16 %d, %a;", 16, 0, 0, 32, bf16_s32_rz),
    FORM("cvt.rn.f32.f64 %d, %a;", 64, 0, 0, 32, f64_f32_rn),
    FORM("cvt.rz.f32.f64 %d, %a;", 64, 0, 0, 32, f64_f32_rz),
    FORM("cvt.rm.f32.f64 %d, %a;", 64, 0, 0, 32, f64_f32_rm),
    FORM("cvt.rp.f32.f64 %d, %a;", 64, 0, 0, 32, f64_f32_rp),
    {"cvt.f64.f32 %d, %a;", 32, 0, 0, 64, 0, f32_f64, same_nan},
    FORM("cvt.rn.f16.f32 %d, %a;", 32, 0, 0, 16, f32_f16_rn),
    FORM("cvt.rz.f16.f32 %d, %a;", 32, 0, 0, 16, f32_f16_rz),
    FORM("cvt.rn.f16.f64 %d, %a;", 64, 0, 0, 16, f64_f16_rn),
    FORM("cvt.rm.f16.f64 %d, %a;", 64, 0, 0, 16, f64_f16_rm),
    FORM("cvt.rp.f16.f64 %d, %a;", 64, 0, 0, 16, f64_f16_rp),
    FORM("cvt.rn.bf16.f32 %d, %a;", 32, 0, 0, 16, f32_bf16_rn),
    FORM("cvt.rz.bf16.f32 %d, %a;", 32, 0, 0, 16, f32_bf16_rz),
    FORM("cvt.rn.relu.bf16.f32 %d, %a;", 32, 0, 0, 16, f32_bf16_relu),
    FORM("cvt.f32.f16 %d, %a;", 16, 0, 0, 32, f16_f32),
    {"cvt.f64.f16 %d, %a;", 16, 0, 0, 64, 0, f16_f64, same_nan},
    FORM("cvt.f32.bf16 %d, %a;", 16, 0, 0, 32, bf16_f32),
    FORM("cvt.rn.bf16.f16 %d, %a;", 16, 0, 0, 16, f16_bf16),
    FORM("cvt.rn.f16x2.f32 %d, %a, %b;", 32, 32, 0, 32, pair_f16),
    FORM("cvt.rz.bf16x2.f32 %d, %a, %b;", 32, 32, 0, 32, pair_bf16),
    FORM("cvt.rn.satfinite.e4m3x2.f32 %d, %a, %b;", 32, 32, 0, 16, pair_e4m3),
    FORM("cvt.rn.satfinite.e5m2x2.f32 %d, %a, %b;", 32, 32, 0, 16, pair_e5m2),
    FORM("cvt.rn.f16x2.e4m3x2 %d, %a;", 16, 0, 0, 32, e4m3_pair),
    FORM("cvt.rn.f16x2.e5m2x2 %d, %a;", 16, 0, 0, 32, e5m2_pair),
    FORM("cvt.rni.f32.f32 %d, %a;", 32, 0, 0, 32, round_f32),
    FORM("cvt.rmi.f32.f32 %d, %a;", 32, 0, 0, 32, floor_f32),
    FORM("cvt.rpi.f32.f32 %d, %a;", 32, 0, 0, 32, ceil_f32),
    FORM("cvt.rzi.f32.f32 %d, %a;", 32, 0, 0, 32, trunc_f32),
    {"cvt.rni.f64.f64 %d, %a;", 64, 0, 0, 64, 0, round_f64, same_nan},
    {"cvt.rmi.f64.f64 %d, %a;", 64, 0, 0, 64, 0, floor_f64, same_nan},
    {"cvt.rzi.f64.f64 %d, %a;", 64, 0, 0, 64, 0, trunc_f64, same_nan},
    {"cvt.rpi.f64.f64 %d, %a;", 64, 0, 0, 64, 0, ceil_f64, same_nan},
    FORM("cvt.rzi.f16.f16 %d, %a;", 16, 0, 0, 16, trunc_f16),
    FORM("cvt.sat.f32.f32 %d, %a;", 32, 0, 0, 32, sat_f32),
    FORM("cvt.ftz.f32.f32 %d, %a;", 32, 0, 0, 32, ftz_f32),
    FORM("cvt.rna.tf32.f32 %d, %a;", 32, 0, 0, 32, f32_tf32),
};

/* Every float16 pattern in turn. */
static u64 all_float16(unsigned width, unsigned index, unsigned n) {
    static u64 next;
    (void)width, (void)index, (void)n;
    return next++ & 0xffff;
}

int main(void) {
    static const form widen[] = {FORM("cvt.f32.f16 %d, %a;", 16, 0, 0, 32, f16_f32)};
    static const form narrow[] = {FORM("cvt.rn.f16x2.e4m3x2 %d, %a;", 16, 0, 0, 32, e4m3_pair)};
    check_forms("sm_100", integer_forms, COUNT(integer_forms), integers, 1000);
    check_forms("sm_100", float_forms, COUNT(float_forms), floats, 1000);
    for (int i = 0; i < 64; i++)
        check_forms("sm_75", widen, COUNT(widen), all_float16, 1024);
    for (int i = 0; i < 64; i++)
        check_forms("sm_89", narrow, COUNT(narrow), all_float16, 1024);
    return check_end();
}
