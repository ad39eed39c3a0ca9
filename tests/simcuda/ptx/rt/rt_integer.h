/* Integer instructions that need more than a C operator. */
#ifndef RT_INTEGER_H
#define RT_INTEGER_H

#include "rt_base.h"

/* Division by zero is unspecified in PTX. The device returns all ones and leaves the dividend; the
   host would raise SIGFPE. */
#define RT_DIVISION(T, UT, all_ones)                                                               \
    INL T div_##T(T a, T b) {                                                                      \
        if (b == 0)                                                                                \
            return (T)(all_ones);                                                                  \
        return (T)-1 < 0 && b == (T)-1 ? (T)(0 - (UT)a) : (T)(a / b);                              \
    }                                                                                              \
    INL T rem_##T(T a, T b) {                                                                      \
        if (b == 0)                                                                                \
            return a;                                                                              \
        return (T)-1 < 0 && b == (T)-1 ? (T)0 : (T)(a % b);                                        \
    }
RT_DIVISION(u16, u16, -1)
RT_DIVISION(u32, u32, -1)
RT_DIVISION(u64, u64, -1)
RT_DIVISION(s16, u16, -1)
RT_DIVISION(s32, u32, -1)
RT_DIVISION(s64, u64, -1)
#undef RT_DIVISION

INL s32 saturate_s32(s64 x) {
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (s32)x;
}

INL u32 bit_reverse32(u32 x) {
    x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
    x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
    x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(x);
}

INL u64 bit_reverse64(u64 x) {
    return (u64)bit_reverse32((u32)x) << 32 | bit_reverse32((u32)(x >> 32));
}

INL u32 leading_zeros(u64 x, u32 bits) {
    return x ? (u32)__builtin_clzll(x) - (64 - bits) : bits;
}

/* bfind: the index of the highest bit that differs from the sign; all ones when there is none. */
INL u32 find_bit(u64 x, u32 bits, int shift_amount) {
    if (!x)
        return 0xffffffffu;
    u32 place = 63 - (u32)__builtin_clzll(x);
    return shift_amount ? bits - 1 - place : place;
}

/* bfe: position and length are bytes; bits past the operand repeat the sign (or zero). */
INL u64 extract_field(u64 x, u32 position, u32 length, u32 bits, int is_signed) {
    position &= 255;
    length &= 255;
    u64 sign = 0;
    u32 last = position + length - 1 < bits - 1 ? position + length - 1 : bits - 1;
    if (is_signed && length)
        sign = x >> last & 1;
    u64 field = position < 64 ? x >> position : 0;
    u32 have = position < bits ? bits - position : 0;
    u32 valid = length < have ? length : have;
    u64 mask = valid < 64 ? (1ull << valid) - 1 : ~0ull;
    return (field & mask) | (sign ? ~mask : 0);
}

INL u64 insert_field(u64 field, u64 into, u32 position, u32 length, u32 bits) {
    position &= 255;
    length &= 255;
    if (position >= bits || !length)
        return into;
    u64 mask = (length < 64 ? (1ull << length) - 1 : ~0ull) << position;
    return (into & ~mask) | (field << position & mask);
}

INL u32 logic3(u32 a, u32 b, u32 c, u32 table) {
    u32 r = 0;
    for (u32 i = 0; i < 8; i++)
        if (table >> i & 1)
            r |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return r;
}

INL u32 permute(u32 a, u32 b, u32 selectors) {
    u64 bytes = (u64)b << 32 | a;
    u32 r = 0;
    for (int i = 0; i < 4; i++) {
        u32 s = selectors >> (4 * i) & 15;
        u32 byte = (u32)(bytes >> (8 * (s & 7))) & 255;
        if (s & 8)
            byte = byte & 128 ? 255 : 0;
        r |= byte << (8 * i);
    }
    return r;
}

/* prmt with a mode: the low two bits of the selector choose a row of four byte numbers. */
enum { PERMUTE_F4E, PERMUTE_B4E, PERMUTE_RC8, PERMUTE_ECL, PERMUTE_ECR, PERMUTE_RC16 };

INL u32 permute_mode(u32 a, u32 b, u32 c, int mode) {
    static const u16 rows[6][4] = {
        {0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123},
        {0x0000, 0x1111, 0x2222, 0x3333}, {0x3210, 0x3211, 0x3222, 0x3333},
        {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232}};
    return permute(a, b, rows[mode][c & 3]);
}

/* shf: the upper (left) or lower (right) word of the shifted pair high:low. */
INL u32 funnel_left(u32 low, u32 high, u32 n) {
    return (u32)(((u64)high << 32 | low) << n >> 32);
}

INL u32 funnel_right(u32 low, u32 high, u32 n) {
    return (u32)(((u64)high << 32 | low) >> n);
}

INL u32 find_nth_set(u32 mask, u32 base, s32 offset) {
    s32 count = offset < 0 ? -offset : offset, step = offset < 0 ? -1 : 1;
    s32 i = (s32)base;
    if (offset == 0)
        return base < 32 && mask >> base & 1 ? base : 0xffffffffu;
    for (; i >= 0 && i < 32; i += step)
        if (mask >> i & 1 && --count == 0)
            return (u32)i;
    return 0xffffffffu;
}

INL u32 bit_mask(u32 position, u32 length, int wraps) {
    position = wraps ? position & 31 : position;
    length = wraps ? length & 31 : length;
    u64 mask = length < 32 ? (1ull << length) - 1 : 0xffffffffu;
    return position < 32 ? (u32)(mask << position) : 0;
}

INL u32 extend_sign(u32 x, u32 from, int wraps, int is_signed) {
    from = wraps ? from & 31 : from;
    if (from >= 32)
        return x;
    if (from == 0)
        return 0;
    u32 mask = (1u << from) - 1;
    return is_signed && x >> (from - 1) & 1 ? x | ~mask : x & mask;
}

INL s32 dot4(u32 a, int a_signed, u32 b, int b_signed, s32 c) {
    u32 sum = (u32)c;
    for (int i = 0; i < 4; i++) {
        s32 x = a_signed ? (s8)(a >> (8 * i)) : (s32)(u8)(a >> (8 * i));
        s32 y = b_signed ? (s8)(b >> (8 * i)) : (s32)(u8)(b >> (8 * i));
        sum += (u32)(x * y);
    }
    return (s32)sum;
}

INL s32 dot2(u32 a, int a_signed, u32 b, int b_signed, int high, s32 c) {
    u32 sum = (u32)c;
    for (int i = 0; i < 2; i++) {
        s32 x = a_signed ? (s16)(a >> (16 * i)) : (s32)(u16)(a >> (16 * i));
        int at = 8 * (i + 2 * high);
        s32 y = b_signed ? (s8)(b >> at) : (s32)(u8)(b >> at);
        sum += (u32)(x * y);
    }
    return (s32)sum;
}

#endif
