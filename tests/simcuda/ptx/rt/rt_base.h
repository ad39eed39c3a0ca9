/* Base of the C that device code becomes: types, bit casts, small floats, correct rounding to any
   format.

   The files of this directory are prepended to every translated module, in the order of
   ptx_prelude.c, after sim_module.h. They include no system header, which cuts the time of
   compiling a module by 50 %. Compiler builtins replace the library. */
#ifndef RT_BASE_H
#define RT_BASE_H

#include "../../sim_module.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef unsigned __int128 u128;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef __int128 s128;
typedef float f32;
typedef double f64;

/* Not always_inline: a module is compiled once and runs briefly. Left to decide, the C compiler
   takes a third less time (6.2 instead of 9.9 s for 20 modules of reductions). Modules run no
   slower. */
#define INL static inline __attribute__((unused))
#define FAR static __attribute__((noinline, unused))

/* The rounding modifiers .rn .rz .rm .rp, and .rna: nearest, ties away from zero. */
enum { RN, RZ, RM, RP, RNA };

INL f32 as_f32(u32 bits) {
    f32 x;
    __builtin_memcpy(&x, &bits, 4);
    return x;
}

INL u32 raw_f32(f32 x) {
    u32 bits;
    __builtin_memcpy(&bits, &x, 4);
    return bits;
}

/* Converts a result of arithmetic to bits. The device has one f32 NaN, the host several, some of
   them negative. */
INL u32 bits_f32(f32 x) {
    return x != x ? 0x7fffffffu : raw_f32(x);
}

INL f64 as_f64(u64 bits) {
    f64 x;
    __builtin_memcpy(&x, &bits, 8);
    return x;
}

INL u64 bits_f64(f64 x) {
    u64 bits;
    __builtin_memcpy(&bits, &x, 8);
    return bits;
}

INL u32 pair32(u32 low, u32 high) {
    return (low & 0xffff) | high << 16;
}

INL u64 pair64(u64 low, u64 high) {
    return (low & 0xffffffffu) | high << 32;
}

INL f64 two_to(int e) { /* -1022 <= e <= 1023 */
    return as_f64((u64)(e + 1023) << 52);
}

INL f64 round_integral(f64 x, int mode) {
    switch (mode) {
    case RZ:
        return __builtin_trunc(x);
    case RM:
        return __builtin_floor(x);
    case RP:
        return __builtin_ceil(x);
    case RNA:
        return __builtin_round(x);
    default:
        return __builtin_nearbyint(x);
    }
}

/* ---- exact sums and round-to-odd: one rounding instead of two ---- */

/* Returns the neighbor of s towards the exact value, unless s is already odd. err has the sign of
   the difference between the exact value and s. An inexact odd double rounds to any format of at
   most 51 bits as the exact value would. */
INL f64 make_odd(f64 s, f64 err) {
    u64 bits = bits_f64(s);
    if (err == 0 || err != err || (bits & 1))
        return s;
    return as_f64((err > 0) == (s > 0) ? bits + 1 : bits - 1);
}

INL f64 odd_add(f64 a, f64 b) {
    f64 s = a + b;
    if (s - s != 0) /* infinite or NaN */
        return s;
    f64 t = s - a;
    return make_odd(s, (a - (s - t)) + (b - t));
}

/* Rounds x, exact or odd, to `fraction` bits after the leading one and exponents from `least` up.
   Returns a double without an upper limit. */
FAR f64 round_to(f64 x, int fraction, int least, int mode) {
    if (x - x != 0 || x == 0)
        return x;
    int e = (int)(bits_f64(x) >> 52 & 2047) - 1023;
    if (e < least)
        e = least;
    f64 y = round_integral(x * two_to(fraction - e), mode);
    return __builtin_copysign(y * two_to(e - fraction), x);
}

/* Tells whether a result above the largest finite number becomes infinite. */
INL int overflows_to_infinity(int negative, int mode) {
    return mode == RN || mode == RNA || (mode == RP && !negative) || (mode == RM && negative);
}

FAR f32 f64_to_f32_rounded(f64 x, int mode) {
    f64 y = round_to(x, 23, -126, mode);
    if (__builtin_fabs(y) <= 0x1.fffffep127 || y != y || x - x != 0)
        return (f32)y;
    f32 limit = overflows_to_infinity(y < 0, mode) ? __builtin_inff() : 0x1.fffffep127f;
    return y < 0 ? -limit : limit;
}

/* A small float: `exponent` and `fraction` bits; `top` and `infinity` are the bits of its largest
   finite number and of infinity. */
typedef struct small_float {
    int exponent, fraction;
    u32 top, infinity, nan;
} small_float;

static const small_float format_f16 __attribute__((unused)) = {5, 10, 0x7bff, 0x7c00, 0x7fff};
static const small_float format_bf16 __attribute__((unused)) = {8, 7, 0x7f7f, 0x7f80, 0x7fff};
static const small_float format_e4m3 __attribute__((unused)) = {4, 3, 0x7e, 0x7f, 0x7f};
static const small_float format_e5m2 __attribute__((unused)) = {5, 2, 0x7b, 0x7c, 0x7f};

FAR f64 small_to_f64(u32 bits, const small_float *f) {
    int bias = (1 << (f->exponent - 1)) - 1;
    int width = f->exponent + f->fraction;
    u32 magnitude = bits & ((1u << width) - 1);
    int e = (int)(magnitude >> f->fraction);
    u32 m = magnitude & ((1u << f->fraction) - 1);
    f64 x;
    if (magnitude > f->top)
        x = magnitude == f->infinity && f->infinity != f->nan ? __builtin_inf() : __builtin_nan("");
    else if (e)
        x = (m + (1u << f->fraction)) * two_to(e - bias - f->fraction);
    else
        x = m * two_to(1 - bias - f->fraction);
    return bits >> width & 1 ? -x : x;
}

/* Converts x, exact or odd, to a small format. finite: .satfinite, too large values become the
   largest finite number. */
FAR u32 f64_to_small(f64 x, const small_float *f, int mode, int finite) {
    int bias = (1 << (f->exponent - 1)) - 1;
    int width = f->exponent + f->fraction;
    if (x != x)
        return f->nan;
    u32 sign = (u32)(bits_f64(x) >> 63) << width;
    f64 y = __builtin_fabs(round_to(x, f->fraction, 1 - bias, mode));
    if (y > small_to_f64(f->top, f)) {
        int is_infinite = y - y != 0;
        int infinite = is_infinite || overflows_to_infinity(x < 0, mode);
        return sign | (infinite && !finite ? f->infinity : f->top);
    }
    if (y < two_to(1 - bias))
        return sign | (u32)(y * two_to(bias - 1 + f->fraction));
    u64 bits = bits_f64(y);
    u32 e = (u32)(bits >> 52) - 1023 + (u32)bias;
    return sign | e << f->fraction | (u32)((bits << 12) >> (64 - f->fraction));
}

INL f32 f16_to_f32(u16 h) {
    u32 sign = (u32)(h >> 15) << 31, e = h >> 10 & 31, m = h & 1023;
    if (e == 31)
        return as_f32(sign | 0x7f800000 | m << 13);
    if (e)
        return as_f32(sign | (e + 112) << 23 | m << 13);
    return as_f32(raw_f32((f32)m * 0x1p-24f) | sign);
}

INL u16 f32_to_f16(f32 x) {
    u32 bits = raw_f32(x), sign = bits >> 16 & 0x8000, a = bits & 0x7fffffff;
    if (a > 0x7f800000)
        return 0x7fff;
    if (a >= 0x477ff000)
        return (u16)(sign | 0x7c00);
    if (a < 0x38800000) /* subnormal: adding 0.5 puts the rounded integer into the low bits */
        return (u16)(sign | (raw_f32(as_f32(a) + 0.5f) - 0x3f000000));
    a += 0xfff + (a >> 13 & 1);
    return (u16)(sign | (a - 0x38000000) >> 13);
}

INL f32 bf16_to_f32(u16 h) {
    return as_f32((u32)h << 16);
}

INL u16 f32_to_bf16(f32 x) {
    u32 bits = raw_f32(x);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return 0x7fff;
    return (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif
