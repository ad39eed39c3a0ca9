/* Conversions to integers, which clamp, and from integers to formats that C does not round to. */
#ifndef RT_CONVERT_H
#define RT_CONVERT_H

#include "rt_base.h"

/* x is already integral. A NaN becomes 0, or only the top bit for conversions with 64 bits on
   either side. */
#define RT_FLOAT_TO_INT(T, low, high)                                                              \
    INL T f64_to_##T(f64 x, int wide) {                                                            \
        if (x != x)                                                                                \
            return wide ? (T)(1ull << (sizeof(T) * 8 - 1)) : (T)0;                                 \
        return x < (low) ? (T)(low) : x > (high) ? (T)(high) : (T)x;                               \
    }
RT_FLOAT_TO_INT(s8, -128.0, 127.0)
RT_FLOAT_TO_INT(s16, -32768.0, 32767.0)
RT_FLOAT_TO_INT(s32, -2147483648.0, 2147483647.0)
RT_FLOAT_TO_INT(u8, 0.0, 255.0)
RT_FLOAT_TO_INT(u16, 0.0, 65535.0)
RT_FLOAT_TO_INT(u32, 0.0, 4294967295.0)
#undef RT_FLOAT_TO_INT

INL s64 f64_to_s64(f64 x, int wide) {
    (void)wide;
    return !(x >= -0x1p63) ? INT64_MIN : x >= 0x1p63 ? INT64_MAX : (s64)x;
}

INL u64 f64_to_u64(f64 x, int wide) {
    (void)wide;
    return x != x ? 1ull << 63 : x < 0 ? 0 : x >= 0x1p64 ? UINT64_MAX : (u64)x;
}

/* Converts any integer to an odd double, which rounds correctly to every smaller format. */
INL f64 s64_to_odd(s64 x) {
    return odd_add((f64)(x >> 32) * 0x1p32, (f64)(u32)x);
}

INL f64 u64_to_odd(u64 x) {
    return odd_add((f64)(x >> 32) * 0x1p32, (f64)(u32)x);
}

#define RT_CLAMP(T, low, high)                                                                     \
    INL T clamp_##T(s128 x) {                                                                      \
        return x < (s128)(low) ? (T)(low) : x > (s128)(high) ? (T)(high) : (T)x;                   \
    }
RT_CLAMP(s8, INT8_MIN, INT8_MAX)
RT_CLAMP(s16, INT16_MIN, INT16_MAX)
RT_CLAMP(s32, INT32_MIN, INT32_MAX)
RT_CLAMP(s64, INT64_MIN, INT64_MAX)
RT_CLAMP(u8, 0, UINT8_MAX)
RT_CLAMP(u16, 0, UINT16_MAX)
RT_CLAMP(u32, 0, UINT32_MAX)
RT_CLAMP(u64, 0, UINT64_MAX)
#undef RT_CLAMP

#endif
