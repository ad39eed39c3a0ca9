/* Floating-point instructions: directed rounding, minimum and maximum in the order of PTX, the
   approximate functions. */
#ifndef RT_FLOAT_H
#define RT_FLOAT_H

#include "rt_base.h"

/* glibc's values of the rounding modes; the C library header is not included (rt_base.h). */
extern int fegetround(void);
extern int fesetround(int);

INL int host_rounding(int mode) {
#if defined(__x86_64__) || defined(__i386__)
    static const int host[] = {0, 0xc00, 0x400, 0x800};
#elif defined(__aarch64__)
    static const int host[] = {0, 0xc00000, 0x800000, 0x400000};
#else
#error "the numbers of this machine's rounding modes are not known"
#endif
    return host[mode];
}

INL f32 flush32(f32 x) {
    return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0, x) : x;
}

INL f32 saturate32(f32 x) {
    return !(x > 0) ? 0 : x > 1 ? 1 : x;
}

INL f64 saturate64(f64 x) {
    return !(x > 0) ? 0 : x > 1 ? 1 : x;
}

/* ---- f32 with directed rounding: exact or odd in f64, then rounded once ---- */

/* Returns the sign of an exactly zero sum: negative when rounding down, unless both operands are
   positive zeros. */
INL f64 zero_sign(f64 sum, f64 a, f64 b, int mode) {
    int both_positive_zero = a == 0 && b == 0 && !__builtin_signbit(a) && !__builtin_signbit(b);
    return sum == 0 && mode == RM && !both_positive_zero ? -0.0 : sum;
}

FAR f32 add_rounded_f32(f32 a, f32 b, int mode) {
    return f64_to_f32_rounded(zero_sign(odd_add(a, b), a, b, mode), mode);
}

FAR f32 mul_rounded_f32(f32 a, f32 b, int mode) {
    return f64_to_f32_rounded((f64)a * b, mode);
}

FAR f32 fma_rounded_f32(f32 a, f32 b, f32 c, int mode) {
    f64 product = (f64)a * b;
    return f64_to_f32_rounded(zero_sign(odd_add(product, c), product, c, mode), mode);
}

FAR f32 div_rounded_f32(f32 a, f32 b, int mode) {
    f64 q = (f64)a / b;
    if (q - q != 0 || q == 0)
        return (f32)q;
    f64 rest = __builtin_fma(-q, b, a);
    return f64_to_f32_rounded(make_odd(q, b < 0 ? -rest : rest), mode);
}

FAR f32 sqrt_rounded_f32(f32 a, int mode) {
    f64 q = __builtin_sqrt(a);
    if (q - q != 0 || q == 0)
        return (f32)q;
    return f64_to_f32_rounded(make_odd(q, __builtin_fma(-q, q, a)), mode);
}

/* ---- f64 with directed rounding: the host's rounding mode. Volatile keeps the operation between
   the two switches ---- */

#define RT_ROUNDED_F64(name, params, copy, operation)                                              \
    FAR f64 name params {                                                                          \
        copy int before = fegetround();                                                            \
        fesetround(host_rounding(mode));                                                           \
        volatile f64 r = operation;                                                                \
        fesetround(before);                                                                        \
        return r;                                                                                  \
    }
RT_ROUNDED_F64(add_rounded_f64, (f64 a, f64 b, int mode), volatile f64 x = a; volatile f64 y = b;
               , x + y)
RT_ROUNDED_F64(mul_rounded_f64, (f64 a, f64 b, int mode), volatile f64 x = a; volatile f64 y = b;
               , x *y)
RT_ROUNDED_F64(div_rounded_f64, (f64 a, f64 b, int mode), volatile f64 x = a; volatile f64 y = b;
               , x / y)
RT_ROUNDED_F64(fma_rounded_f64, (f64 a, f64 b, f64 c, int mode), volatile f64 x = a;
               volatile f64 y = b; volatile f64 z = c;, __builtin_fma(x, y, z))
RT_ROUNDED_F64(sqrt_rounded_f64, (f64 a, int mode), volatile f64 x = a;, __builtin_sqrt(x))
RT_ROUNDED_F64(s64_rounded_f64, (s64 a, int mode), volatile s64 x = a;, (f64)x)
RT_ROUNDED_F64(u64_rounded_f64, (u64 a, int mode), volatile u64 x = a;, (f64)x)
#undef RT_ROUNDED_F64

/* Products of two f16 or bf16 values are exact in f64; the odd sum rounds once. */
INL u16 fma_f16(f32 a, f32 b, f32 c, int relu, int saturate) {
    f64 r = odd_add((f64)a * b, c);
    if (saturate)
        r = saturate64(r);
    if (relu)
        r = r != r ? r : r > 0 ? r : 0;
    return (u16)f64_to_small(r, &format_f16, RN, 0);
}

INL u16 fma_bf16(f32 a, f32 b, f32 c, int relu) {
    f64 r = odd_add((f64)a * b, c);
    if (relu)
        r = r != r ? r : r > 0 ? r : 0;
    return (u16)f64_to_small(r, &format_bf16, RN, 0);
}

/* ---- minimum and maximum: -0 is less than +0; a NaN loses against a number, unless .NaN ---- */

#define RT_MIN_MAX(T, is_negative)                                                                 \
    INL T min_##T(T a, T b) {                                                                      \
        return a != a ? b : b != b ? a : a < b ? a : b < a ? b : is_negative(a) ? a : b;           \
    }                                                                                              \
    INL T max_##T(T a, T b) {                                                                      \
        return a != a ? b : b != b ? a : a > b ? a : b > a ? b : is_negative(a) ? b : a;           \
    }                                                                                              \
    INL T min_nan_##T(T a, T b) {                                                                  \
        return a != a || b != b ? (T)__builtin_nan("") : min_##T(a, b);                            \
    }                                                                                              \
    INL T max_nan_##T(T a, T b) {                                                                  \
        return a != a || b != b ? (T)__builtin_nan("") : max_##T(a, b);                            \
    }
RT_MIN_MAX(f32, __builtin_signbit)
RT_MIN_MAX(f64, __builtin_signbit)
#undef RT_MIN_MAX

/* .xorsign.abs: the smaller or larger magnitude with the product's sign. */
INL f32 xor_sign(f32 r, f32 a, f32 b) {
    u32 sign = (raw_f32(a) ^ raw_f32(b)) & 0x80000000u;
    return r != r ? r : as_f32((raw_f32(r) & 0x7fffffff) | sign);
}

INL f32 relu32(f32 x) {
    return x != x ? x : x > 0 ? x : 0;
}

/* ---- approximate functions: more accurate than the device's, within its error bounds ---- */

INL f32 reciprocal_sqrt32(f32 x) {
    return (f32)(1 / __builtin_sqrt((f64)x));
}

INL f32 sin_approx(f32 x) {
    return (f32)__builtin_sin((f64)x);
}

INL f32 cos_approx(f32 x) {
    return (f32)__builtin_cos((f64)x);
}

INL f32 log2_approx(f32 x) {
    return (f32)__builtin_log2((f64)x);
}

INL f32 exp2_approx(f32 x) {
    return (f32)__builtin_exp2((f64)x);
}

INL f32 tanh_approx(f32 x) {
    return (f32)__builtin_tanh((f64)x);
}

/* rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 read the upper 32 bits only and return a zero lower
   word. */
INL f64 upper_half(f64 x) {
    return as_f64(bits_f64(x) & 0xffffffff00000000ull);
}

INL f64 flush64(f64 x) {
    return __builtin_fabs(x) < 0x1p-1022 ? __builtin_copysign(0, x) : x;
}

INL f64 rcp_approx_f64(f64 x) {
    return upper_half(flush64(1 / flush64(upper_half(x))));
}

INL f64 rsqrt_approx_f64(f64 x) {
    return upper_half(1 / __builtin_sqrt(flush64(upper_half(x))));
}

enum { TEST_FINITE, TEST_INFINITE, TEST_NUMBER, TEST_NAN, TEST_NORMAL, TEST_SUBNORMAL };

INL int test_property(f64 x, f64 least_normal, int property) {
    f64 a = __builtin_fabs(x);
    switch (property) {
    case TEST_FINITE:
        return a <= 0x1.fffffffffffffp1023;
    case TEST_INFINITE:
        return a > 0x1.fffffffffffffp1023;
    case TEST_NUMBER:
        return x == x;
    case TEST_NAN:
        return x != x;
    case TEST_NORMAL:
        return a >= least_normal && a <= 0x1.fffffffffffffp1023;
    default:
        return a > 0 && a < least_normal;
    }
}

#endif
