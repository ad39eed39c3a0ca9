/* Tests of conversion between dtypes: every pair with special values, all codes of the 16-bit
   floats, and rounding between them. */
#include "dvt_test.h"
#include <float.h>

/* Returns v rounded to `digits` binary digits, ties to even. `least` is the smallest exponent of
   the last digit. */
static double rounded(long double v, int digits, int least, double largest) {
    int exponent;
    long double unit, result;
    if (v != v || v == 0 || v - v != 0)
        return (double)v;
    frexpl(v, &exponent);
    unit = ldexpl(1, exponent - digits > least ? exponent - digits : least);
    result = rintl(v / unit) * unit;
    if (fabsl(result) > (long double)largest)
        return v > 0 ? (double)INFINITY : -(double)INFINITY;
    return (double)result;
}

static double clamped(long double v, double low, double high) {
    if (v != v)
        return 0;
    return v <= (long double)low ? low : v >= (long double)high ? high : (double)truncl(v) + 0.0;
}

/* Returns v of one dtype as another dtype stores it. Integers wrap in narrower ones. */
static double converted(long double v, dvt_dtype from, dvt_dtype to) {
    int is_integer = !dvt_dtype_is_float(from);
    int64_t i = is_integer ? (int64_t)v : 0;
    switch (to) {
    case DVT_F32:
        return (double)(float)v;
    case DVT_F64:
        return (double)v;
    case DVT_F16:
        return rounded(v, 11, -24, 65504);
    case DVT_BF16:
        return rounded(v, 8, -133, 3.3895313892515355e38);
    case DVT_I8:
        return is_integer ? (int8_t)(uint8_t)(uint64_t)i : clamped(v, -128, 127);
    case DVT_U8:
        return is_integer ? (uint8_t)(uint64_t)i : clamped(v, 0, 255);
    case DVT_I32:
        return is_integer ? (int32_t)(uint32_t)(uint64_t)i : clamped(v, INT32_MIN, INT32_MAX);
    case DVT_I64:
        return is_integer ? (double)i : clamped(v, -9223372036854775808.0, 9223372036854775807.0);
    default:
        return v != 0;
    }
}

static const double reals[] = {0,
                               -0.0,
                               1,
                               -1,
                               0.5,
                               -0.5,
                               0.999,
                               1.5,
                               2.5,
                               -2.7,
                               127,
                               127.9,
                               128,
                               -128.9,
                               -129,
                               255,
                               255.5,
                               256,
                               300,
                               1e-8,
                               5.9604644775390625e-8,
                               2.98e-8,
                               6.1e-5,
                               1e-40,
                               1e-45,
                               4e-46,
                               9.2e-41,
                               65504,
                               65519.99,
                               65520,
                               1e6,
                               2147483647,
                               2147483648.0,
                               -2147483648.0,
                               -2147483649.0,
                               16777217,
                               33554433,
                               9007199254740993.0,
                               9.2e18,
                               9.3e18,
                               -9.3e18,
                               3.4e38,
                               3.3961775e38,
                               1e39,
                               -1e300,
                               0.1,
                               1.0 / 3,
                               (double)INFINITY,
                               -(double)INFINITY,
                               (double)NAN};
static const int64_t integers[] = {0,
                                   1,
                                   -1,
                                   2,
                                   127,
                                   128,
                                   -128,
                                   -129,
                                   255,
                                   256,
                                   257,
                                   300,
                                   32767,
                                   65504,
                                   65519,
                                   65520,
                                   65535,
                                   2147483647,
                                   2147483648,
                                   -2147483648,
                                   -2147483649,
                                   16777217,
                                   33554435,
                                   9007199254740993,
                                   INT64_MAX,
                                   INT64_MIN,
                                   9223371761976868863,
                                   9223372036854775295,
                                   4611686018427387905,
                                   1 << 20};

/* Returns all special values that the dtype can represent; n values, exact in `values`. */
static dvt_array *specials(dvt_dtype dtype, long double *values, int *n) {
    unsigned char bytes[64 * 8];
    int i;
    if (dvt_dtype_is_float(dtype)) {
        dvt_array *x;
        *n = (int)(sizeof reals / sizeof reals[0]);
        x = dvt_astype(dvt_from_host(reals, DVT_SHAPE(*n), DVT_F64, dvt_cpu()), dtype);
        for (i = 0; i < *n; i++)
            values[i] = (long double)converted((long double)reals[i], DVT_F64, dtype);
        return x;
    }
    *n = (int)(sizeof integers / sizeof integers[0]);
    for (i = 0; i < *n; i++) {
        int64_t v = integers[i];
#if LDBL_MANT_DIG < 64 /* special values must be exact in this long double */
        if (v > (int64_t)1 << 53 || v < -((int64_t)1 << 53))
            v = v / 4096 * 4096;
#endif
        int8_t b = (int8_t)(uint8_t)(uint64_t)v;
        int32_t w = (int32_t)(uint32_t)(uint64_t)v;
        uint8_t u = (uint8_t)(uint64_t)v, o = v != 0;
        int size = (int)dvt_dtype_size(dtype);
        const void *at = dtype == DVT_I64   ? (const void *)&v
                         : dtype == DVT_I32 ? (const void *)&w
                         : dtype == DVT_I8  ? (const void *)&b
                         : dtype == DVT_U8  ? (const void *)&u
                                            : (const void *)&o;
        memcpy(bytes + i * size, at, (size_t)size);
        values[i] = dtype == DVT_I64   ? v
                    : dtype == DVT_I32 ? w
                    : dtype == DVT_I8  ? b
                    : dtype == DVT_U8  ? u
                                       : o;
    }
    return dvt_from_host(bytes, DVT_SHAPE(*n), dtype, dvt_cpu());
}

/* Checks element i exactly: int64 values above 2^53 do not pass through double. */
static void check_conversion(dvt_array *x, int i, long double value, dvt_dtype from) {
    dvt_dtype to = dvt_dtype_of(x);
    double expected = converted(value, from, to);
    if (to == DVT_I64) {
        int64_t exact = dvt_dtype_is_float(from)
                            ? (expected >= 9223372036854775807.0 ? INT64_MAX : (int64_t)expected)
                            : (int64_t)value;
        CHECK_INT(dvt_item_int(dvt_index(x, i)), exact);
    } else {
        double got = dvt_item_at(x, DVT_SHAPE(i));
        dvt_test_check((got != got && expected != expected) ||
                           (got == expected && !signbit(got) == !signbit(expected)),
                       __FILE__, __LINE__, "%s %.20Lg as %s is %.17g, expected %.17g",
                       dvt_dtype_name(from), value, dvt_dtype_name(to), got, expected);
    }
}

DVT_TEST(conversions_every_pair) {
    int from, to, g, i, n;
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    for (g = 0; g < 2; g++)
        for (from = 0; from < DVT_DTYPE_COUNT; from++)
            for (to = 0; to < DVT_DTYPE_COUNT; to++)
                DVT_SCOPE {
                    long double values[64];
                    dvt_ctx ctx = g ? dvt_gpu(0) : dvt_cpu();
                    dvt_array *x = dvt_copyto(specials((dvt_dtype)from, values, &n), ctx), *y,
                              *wide, *z;
                    /* contiguous by astype, strided by copy_into */
                    y = dvt_copyto(dvt_astype(x, (dvt_dtype)to), dvt_cpu());
                    wide = dvt_zeros(DVT_SHAPE(n, 2), (dvt_dtype)to, ctx);
                    CHECK(dvt_copy_into(dvt_index(dvt_t(wide), 1), x) != NULL);
                    z = dvt_copyto(dvt_index(dvt_t(wide), 1), dvt_cpu());
                    for (i = 0; i < n; i++) {
                        check_conversion(y, i, values[i], (dvt_dtype)from);
                        check_conversion(z, i, values[i], (dvt_dtype)from);
                    }
                }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* Converts all 65536 codes of both 16-bit floats into every dtype and back. */
DVT_TEST(conversions_of_all_16_bit_codes) {
    static uint16_t codes[65536], back[65536];
    int dtype, to, i;
    for (i = 0; i < 65536; i++)
        codes[i] = (uint16_t)i;
    for (dtype = DVT_F16; dtype <= DVT_BF16; dtype++)
        DVT_SCOPE {
            dvt_array *x = dvt_from_host(codes, DVT_SHAPE(65536), (dvt_dtype)dtype, dvt_cpu());
            double *values = dvt_test_values(x);
            for (i = 0; values && i < 65536; i++) {
                int digits = dtype == DVT_F16 ? 10 : 7, top = dtype == DVT_F16 ? 31 : 255,
                    bias = dtype == DVT_F16 ? 15 : 127;
                int exponent = (i >> digits) & top, fraction = i & ((1 << digits) - 1);
                double v = exponent == top ? (fraction ? (double)NAN : (double)INFINITY)
                           : exponent ? ldexp((1 << digits) + fraction, exponent - bias - digits)
                                      : ldexp(fraction, 1 - bias - digits);
                if (i & 0x8000)
                    v = -v;
                if (v == v ? values[i] != v || !signbit(values[i]) != !signbit(v)
                           : values[i] == values[i])
                    CHECK_INT(i, -1);
            }
            for (to = 0; to < DVT_DTYPE_COUNT; to++)
                DVT_SCOPE {
                    double *got = dvt_test_values(dvt_astype(x, (dvt_dtype)to));
                    for (i = 0; got && values && i < 65536; i++) {
                        double expected =
                            converted((long double)values[i], (dvt_dtype)dtype, (dvt_dtype)to);
                        if (!(got[i] == expected || (got[i] != got[i] && expected != expected)))
                            dvt_test_check(0, __FILE__, __LINE__,
                                           "%s code %d as %s is %.17g, expected %.17g",
                                           dvt_dtype_name((dvt_dtype)dtype), i,
                                           dvt_dtype_name((dvt_dtype)to), got[i], expected);
                    }
                    free(got);
                    if (to != DVT_F32 && to != DVT_F64)
                        continue;
                    dvt_to_host(dvt_astype(dvt_astype(x, (dvt_dtype)to), (dvt_dtype)dtype), back,
                                sizeof back);
                    for (i = 0; values && i < 65536; i++)
                        if (values[i] == values[i] && back[i] != codes[i])
                            CHECK_INT(back[i], codes[i]);
                }
            free(values);
        }
}

/* Checks points between all neighbors: the quarters, the midpoint, and one step of the wider dtype
   next to the midpoint. */
DVT_TEST(conversions_round_to_16_bits) {
    static float points[5 * 0x7c00];
    static double wide[5 * 0x7c00];
    int dtype, i, k;
    for (dtype = DVT_F16; dtype <= DVT_BF16; dtype++)
        DVT_SCOPE {
            int n = dtype == DVT_F16 ? 0x7c00 : 0x7f80, count = 0;
            uint16_t code[2];
            double *got;
            /* bfloat16 has more finite codes than the buffer holds: every second pair */
            for (i = dtype == DVT_F16 ? 0 : 1; i + 1 < n && count + 5 <= 5 * 0x7c00;
                 i += dtype == DVT_F16 ? 1 : 2)
                DVT_SCOPE {
                    double v[2], middle;
                    code[0] = (uint16_t)i;
                    code[1] = (uint16_t)(i + 1);
                    v[0] =
                        dvt_item_at(dvt_from_host(code, DVT_SHAPE(2), (dvt_dtype)dtype, dvt_cpu()),
                                    DVT_SHAPE(0));
                    v[1] =
                        dvt_item_at(dvt_from_host(code, DVT_SHAPE(2), (dvt_dtype)dtype, dvt_cpu()),
                                    DVT_SHAPE(1));
                    middle = (v[0] + v[1]) / 2;
                    wide[count] = (v[0] * 3 + v[1]) / 4;
                    wide[count + 1] = middle;
                    wide[count + 2] = nextafter(middle, 0);
                    wide[count + 3] = nextafter(middle, (double)INFINITY);
                    wide[count + 4] = -middle;
                    for (k = 0; k < 5; k++)
                        points[count + k] = (float)wide[count + k];
                    points[count + 2] = nextafterf((float)middle, 0);
                    points[count + 3] = nextafterf((float)middle, (float)INFINITY);
                    count += 5;
                }
            got = dvt_test_values(dvt_astype(
                dvt_from_host(wide, DVT_SHAPE(count), DVT_F64, dvt_cpu()), (dvt_dtype)dtype));
            for (i = 0; got && i < count; i++)
                if (got[i] != converted((long double)wide[i], DVT_F64, (dvt_dtype)dtype))
                    dvt_test_check(0, __FILE__, __LINE__, "%.17g became %.17g", wide[i], got[i]);
            free(got);
            got = dvt_test_values(dvt_astype(
                dvt_from_host(points, DVT_SHAPE(count), DVT_F32, dvt_cpu()), (dvt_dtype)dtype));
            for (i = 0; got && i < count; i++)
                if (got[i] != converted((long double)points[i], DVT_F32, (dvt_dtype)dtype))
                    dvt_test_check(0, __FILE__, __LINE__, "%.9g became %.17g", (double)points[i],
                                   got[i]);
            free(got);
            CHECK(count > 80000);
        }
}
