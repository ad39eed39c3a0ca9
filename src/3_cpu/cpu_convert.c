/* Conversion of elements, singly and by rows: every dtype to float, double or int64_t and back. No
   other file of this backend knows how a dtype is stored. Floats are truncated to integers and
   clamped to the range; NaN becomes 0. An int64_t wraps in a narrower integer. A bool is true for
   nonzero values. */
#include "3_cpu/dvt_cpu.h"

static int64_t dvti_clamp_real(double v, int64_t low, int64_t high) {
    if (v != v)
        return 0;
    if (v <= (double)low)
        return low;
    return v >= (double)high ? high : (int64_t)v;
}

static int64_t dvti_real_to_i64(double v) {
    return dvti_clamp_real(v, INT64_MIN, INT64_MAX);
}

/* Returns v as a double that rounds to a 16-bit float as v itself would. Above 2^53 a plain
   conversion would round twice, so the bits cut off are kept as one sticky bit, which breaks
   ties. */
static double dvti_i64_sticky(int64_t v) {
    const int64_t exact = (int64_t)1 << 53;
    if (v > -exact && v < exact)
        return (double)v;
    return (double)((v & ~(int64_t)0x7ff) | ((v & 0x7ff) ? 0x400 : 0));
}

/* Rows: dst[i] = s[i * step], for one class. REAL converts floats; integers are cast. */
#define DVTI_LOAD(S, value)                                                                        \
    {                                                                                              \
        const S *s = (const S *)src;                                                               \
        if (step == 1)                                                                             \
            for (i = 0; i < n; i++) {                                                              \
                const S v = s[i];                                                                  \
                dst[i] = value;                                                                    \
            }                                                                                      \
        else                                                                                       \
            for (i = 0; i < n; i++) {                                                              \
                const S v = s[i * step];                                                           \
                dst[i] = value;                                                                    \
            }                                                                                      \
    }                                                                                              \
    break;
#define DVTI_DEFINE_LOAD(name, T, REAL)                                                            \
    DVTI_FN void name(const void *src, dvt_dtype dtype, int64_t step, int64_t n, T *dst) {         \
        int64_t i;                                                                                 \
        switch (dtype) {                                                                           \
        case DVT_F32:                                                                              \
            DVTI_LOAD(float, REAL(v))                                                              \
        case DVT_F64:                                                                              \
            DVTI_LOAD(double, REAL(v))                                                             \
        case DVT_F16:                                                                              \
            DVTI_LOAD(uint16_t, REAL(dvti_f16_to_f32(v)))                                          \
        case DVT_BF16:                                                                             \
            DVTI_LOAD(uint16_t, REAL(dvti_bf16_to_f32(v)))                                         \
        case DVT_I8:                                                                               \
            DVTI_LOAD(int8_t, (T)v)                                                                \
        case DVT_U8:                                                                               \
            DVTI_LOAD(uint8_t, (T)v)                                                               \
        case DVT_I32:                                                                              \
            DVTI_LOAD(int32_t, (T)v)                                                               \
        case DVT_I64:                                                                              \
            DVTI_LOAD(int64_t, (T)v)                                                               \
        case DVT_BOOL:                                                                             \
            DVTI_LOAD(uint8_t, (T)(v != 0))                                                        \
        }                                                                                          \
    }

#define DVTI_CAST_F32(v) ((float)(v))
#define DVTI_CAST_F64(v) ((double)(v))
#define DVTI_CAST_I64(v) dvti_real_to_i64((double)(v))
DVTI_DEFINE_LOAD(dvti_load_row_f32, float, DVTI_CAST_F32)
DVTI_DEFINE_LOAD(dvti_load_row_f64, double, DVTI_CAST_F64)
DVTI_DEFINE_LOAD(dvti_load_row_i64, int64_t, DVTI_CAST_I64)
#undef DVTI_CAST_F32
#undef DVTI_CAST_F64
#undef DVTI_CAST_I64
#undef DVTI_LOAD
#undef DVTI_DEFINE_LOAD

#define DVTI_STORE(S, value)                                                                       \
    {                                                                                              \
        S *d = (S *)dst;                                                                           \
        if (step == 1)                                                                             \
            for (i = 0; i < n; i++)                                                                \
                d[i] = (S)(value);                                                                 \
        else                                                                                       \
            for (i = 0; i < n; i++)                                                                \
                d[i * step] = (S)(value);                                                          \
    }                                                                                              \
    break;
#define DVTI_DEFINE_STORE(name, T, F16, BF16, INT)                                                 \
    DVTI_FN void name(void *dst, dvt_dtype dtype, int64_t step, int64_t n, const T *src) {         \
        int64_t i;                                                                                 \
        switch (dtype) {                                                                           \
        case DVT_F32:                                                                              \
            DVTI_STORE(float, src[i])                                                              \
        case DVT_F64:                                                                              \
            DVTI_STORE(double, src[i])                                                             \
        case DVT_F16:                                                                              \
            DVTI_STORE(uint16_t, F16(src[i]))                                                      \
        case DVT_BF16:                                                                             \
            DVTI_STORE(uint16_t, BF16(src[i]))                                                     \
        case DVT_I8:                                                                               \
            DVTI_STORE(int8_t, INT(src[i], INT8_MIN, INT8_MAX))                                    \
        case DVT_U8:                                                                               \
            DVTI_STORE(uint8_t, INT(src[i], 0, UINT8_MAX))                                         \
        case DVT_I32:                                                                              \
            DVTI_STORE(int32_t, INT(src[i], INT32_MIN, INT32_MAX))                                 \
        case DVT_I64:                                                                              \
            DVTI_STORE(int64_t, INT(src[i], INT64_MIN, INT64_MAX))                                 \
        case DVT_BOOL:                                                                             \
            DVTI_STORE(uint8_t, src[i] != 0)                                                       \
        }                                                                                          \
    }

#define DVTI_CLAMP(v, low, high) dvti_clamp_real((double)(v), low, high)
#define DVTI_WRAPS(v, low, high) (v)
#define DVTI_I64_TO_F16(v) dvti_f64_to_f16(dvti_i64_sticky(v))
#define DVTI_I64_TO_BF16(v) dvti_f64_to_bf16(dvti_i64_sticky(v))
DVTI_DEFINE_STORE(dvti_store_row_f32, float, dvti_f32_to_f16, dvti_f32_to_bf16, DVTI_CLAMP)
DVTI_DEFINE_STORE(dvti_store_row_f64, double, dvti_f64_to_f16, dvti_f64_to_bf16, DVTI_CLAMP)
DVTI_DEFINE_STORE(dvti_store_row_i64, int64_t, DVTI_I64_TO_F16, DVTI_I64_TO_BF16, DVTI_WRAPS)
#undef DVTI_CLAMP
#undef DVTI_WRAPS
#undef DVTI_I64_TO_F16
#undef DVTI_I64_TO_BF16
#undef DVTI_STORE
#undef DVTI_DEFINE_STORE

/* ---- single elements ---- */
static const char *dvti_element_at(const void *data, dvt_dtype dtype, int64_t at) {
    return (const char *)data + at * dvt_dtype_size(dtype);
}

DVTI_FN double dvti_load_f64(const void *data, dvt_dtype dtype, int64_t at) {
    double v = 0;
    dvti_load_row_f64(dvti_element_at(data, dtype, at), dtype, 1, 1, &v);
    return v;
}

DVTI_FN int64_t dvti_load_i64(const void *data, dvt_dtype dtype, int64_t at) {
    int64_t v = 0;
    dvti_load_row_i64(dvti_element_at(data, dtype, at), dtype, 1, 1, &v);
    return v;
}

DVTI_FN void dvti_store_f64(void *data, dvt_dtype dtype, int64_t at, double value) {
    dvti_store_row_f64((char *)data + at * dvt_dtype_size(dtype), dtype, 1, 1, &value);
}

DVTI_FN void dvti_store_i64(void *data, dvt_dtype dtype, int64_t at, int64_t value) {
    dvti_store_row_i64((char *)data + at * dvt_dtype_size(dtype), dtype, 1, 1, &value);
}
