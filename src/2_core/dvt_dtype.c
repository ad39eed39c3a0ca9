/* dtypes: names, sizes, promotion, and the two 16-bit floats. */
#include "2_core/dvt_core.h"

static const char *const dvti_dtype_names[DVT_DTYPE_COUNT] = {
    "float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64", "bool"};
static const int dvti_dtype_sizes[DVT_DTYPE_COUNT] = {4, 8, 2, 2, 1, 1, 4, 8, 1};

DVTI_FN bool dvti_dtype_ok(dvt_dtype dtype) {
    return (int)dtype >= 0 && (int)dtype < DVT_DTYPE_COUNT;
}

DVT_API const char *dvt_dtype_name(dvt_dtype dtype) {
    return dvti_dtype_ok(dtype) ? dvti_dtype_names[dtype] : "?";
}

DVT_API int64_t dvt_dtype_size(dvt_dtype dtype) {
    return dvti_dtype_ok(dtype) ? dvti_dtype_sizes[dtype] : 0;
}

DVT_API dvt_status dvt_dtype_parse(const char *name, dvt_dtype *out) {
    int i;
    if (!name || !out)
        return dvti_null("dvt_dtype_parse", name ? "out" : "name");
    for (i = 0; i < DVT_DTYPE_COUNT; i++)
        if (strcmp(name, dvti_dtype_names[i]) == 0) {
            *out = (dvt_dtype)i;
            return DVT_OK;
        }
    return dvti_fail(
        DVT_ERR_NAME,
        "dvt_dtype_parse: \"%.40s\" is not a dtype; expected float32, float64, float16, bfloat16, "
        "int8, uint8, int32, int64 or bool",
        name);
}

DVT_API bool dvt_dtype_is_float(dvt_dtype dtype) {
    return (int)dtype >= DVT_F32 && (int)dtype <= DVT_BF16;
}

DVT_API bool dvt_dtype_is_int(dvt_dtype dtype) {
    return (int)dtype >= DVT_I8 && (int)dtype <= DVT_I64;
}

/* Follows the array API standard's table, except for int8 with uint8: int16 does not exist here, so
   it gives int32. */
DVT_API dvt_dtype dvt_promote(dvt_dtype a, dvt_dtype b) {
    if (a == b)
        return a;
    if (dvt_dtype_is_float(a) || dvt_dtype_is_float(b)) {
        if (!dvt_dtype_is_float(a))
            return b;
        if (!dvt_dtype_is_float(b))
            return a;
        return a == DVT_F64 || b == DVT_F64 ? DVT_F64 : DVT_F32;
    }
    if (a == DVT_BOOL)
        return b;
    if (b == DVT_BOOL)
        return a;
    if (a == DVT_I64 || b == DVT_I64)
        return DVT_I64;
    return DVT_I32;
}

DVTI_FN int64_t dvti_int_lowest(dvt_dtype dtype) {
    return dtype == DVT_I8    ? INT8_MIN
           : dtype == DVT_I32 ? INT32_MIN
           : dtype == DVT_I64 ? INT64_MIN
                              : 0;
}

DVTI_FN int64_t dvti_int_largest(dvt_dtype dtype) {
    return dtype == DVT_I8     ? INT8_MAX
           : dtype == DVT_U8   ? UINT8_MAX
           : dtype == DVT_I32  ? INT32_MAX
           : dtype == DVT_BOOL ? 1
                               : INT64_MAX;
}

DVTI_FN dvti_class dvti_class_of(dvt_dtype dtype) {
    return dtype == DVT_F64 ? DVTI_F64 : dvt_dtype_is_float(dtype) ? DVTI_F32 : DVTI_I64;
}

/* ---- 16-bit floats: round to nearest, ties to even; NaN stays NaN ---- */
static uint32_t dvti_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float dvti_from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

DVTI_FN float dvti_bf16_to_f32(uint16_t x) {
    return dvti_from_bits((uint32_t)x << 16);
}

DVTI_FN uint16_t dvti_f32_to_bf16(float x) {
    uint32_t bits = dvti_bits(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

DVTI_FN float dvti_f16_to_f32(uint16_t x) {
    uint32_t sign = (uint32_t)(x & 0x8000u) << 16, exponent = x >> 10 & 31u, fraction = x & 1023u;
    if (exponent == 31)
        return dvti_from_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) {
        float value = (float)fraction * 5.9604644775390625e-8f; /* 2^-24 */
        return sign ? -value : value;
    }
    return dvti_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

DVTI_FN uint16_t dvti_f32_to_f16(float x) {
    uint32_t bits = dvti_bits(x), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
    if (magnitude >= 0x477ff000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude <
        0x38800000u) { /* below 2^-14: the sum with 2^-1 leaves the 2^-24 grid in the low bits */
        float sum = dvti_from_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (dvti_bits(sum) - 0x3f000000u));
    }
    magnitude += 0xfffu + (magnitude >> 13 & 1u);
    return (uint16_t)(sign | (magnitude - 0x38000000u) >> 13);
}

/* Rounds a double to float32 by rounding to odd, so that the second rounding, to 16 bits, is exact.
   To nearest, the number would be rounded twice. */
static float dvti_round_to_odd(double x) {
    float nearest = (float)x;
    if ((double)nearest != x && x == x && nearest - nearest == 0.0f && !(dvti_bits(nearest) & 1u)) {
        bool up = (double)nearest < x;
        uint32_t bits = dvti_bits(nearest);
        if (nearest == 0.0f)
            return dvti_from_bits((x < 0 ? 0x80000000u : 0u) | 1u);
        bits = (nearest > 0) == up ? bits + 1 : bits - 1;
        return dvti_from_bits(bits);
    }
    return nearest;
}

DVTI_FN uint16_t dvti_f64_to_f16(double x) {
    return dvti_f32_to_f16(dvti_round_to_odd(x));
}

DVTI_FN uint16_t dvti_f64_to_bf16(double x) {
    return dvti_f32_to_bf16(dvti_round_to_odd(x));
}

DVTI_FN double dvti_round_as(dvt_dtype dtype, double x) {
    if (dtype == DVT_F16)
        return (double)dvti_f16_to_f32(dvti_f64_to_f16(x));
    if (dtype == DVT_BF16)
        return (double)dvti_bf16_to_f32(dvti_f64_to_bf16(x));
    return dtype == DVT_F32 ? (double)(float)x : x;
}

/* Returns the code of the next smaller value. Codes of one sign are ordered by magnitude. */
static uint16_t dvti_code_below(uint16_t code) {
    if (code & 0x8000u)
        return (uint16_t)(code + 1);
    return code ? (uint16_t)(code - 1) : (uint16_t)0x8001u;
}

DVTI_FN double dvti_below(dvt_dtype dtype, double x) {
    double nearest = dvti_round_as(dtype, x);
    if (nearest < x)
        return nearest;
    if (dtype == DVT_F16)
        return (double)dvti_f16_to_f32(dvti_code_below(dvti_f64_to_f16(nearest)));
    if (dtype == DVT_BF16)
        return (double)dvti_bf16_to_f32(dvti_code_below(dvti_f64_to_bf16(nearest)));
    return dtype == DVT_F32 ? (double)nextafterf((float)nearest, -(float)HUGE_VAL)
                            : nextafter(nearest, -HUGE_VAL);
}
