/* Tests that numbers in text are read as the nearest value: against strtod and strtof, which round
   correctly in the C locale of glibc, against the conversions of arrays, and by round trips. */
#include "comma_locale.h"
#include "dvt_golden.h"
#include <fenv.h>
#if defined(__GLIBC__) || defined(__APPLE__)
#define ROUNDS_CORRECTLY 1
#else
#define ROUNDS_CORRECTLY 0
#endif

#define NUMBERS 20000

static char text[NUMBERS * 60];

static dvt_array *read_as(dvt_dtype dtype) {
    dvt_csv_options options;
    memset(&options, 0, sizeof options);
    options.dtype = dtype;
    return dvt_read_csv(text, strlen(text), &options, dvt_cpu());
}

/* Compares all lines of the text with strtod and strtof. */
static void check_text(void) {
    const char *at = text;
    int64_t i, wrong = 0;
    DVT_SCOPE {
        dvt_array *wide = read_as(DVT_F64), *narrow = read_as(DVT_F32);
        const double *w = wide ? (const double *)dvt_data(wide) : NULL;
        const float *f = narrow ? (const float *)dvt_data(narrow) : NULL;
        if (CHECK(w != NULL && f != NULL))
            for (i = 0; *at && i < dvt_size(wide); i++, at = strchr(at, '\n') + 1) {
                double d = strtod(at, NULL);
                float g = strtof(at, NULL);
                if (memcmp(&d, w + i, sizeof d) != 0 || memcmp(&g, f + i, sizeof g) != 0) {
                    if (wrong++ < 3)
                        printf("%.*s: %.17g %.9g, expected %.17g %.9g\n", (int)strcspn(at, "\n"),
                               at, w[i], (double)f[i], d, (double)g);
                }
            }
        CHECK(*at == 0);
    }
    CHECK_INT(wrong, 0);
}

static int digit(void) {
    return '0' + (int)dvt_test_random(0, 10);
}

/* Random digits, points and exponents. */
DVT_TEST(csv_numbers_random) {
    size_t n = 0;
    int i, k;
    if (!ROUNDS_CORRECTLY)
        SKIP("this C library's strtod may round differently");
    for (i = 0; i < NUMBERS; i++) {
        int digits = 1 + (int)dvt_test_random(0, i % 4 ? 20 : 35);
        int point = (int)dvt_test_random(-1, digits);
        if (i % 3 == 0)
            text[n++] = '-';
        for (k = 0; k < digits; k++) {
            if (k == point)
                text[n++] = '.';
            text[n++] = (char)digit();
        }
        if (i % 5)
            n += (size_t)snprintf(
                text + n, 12, "e%d",
                (int)(i % 2 ? dvt_test_random(-30, 31) : dvt_test_random(-345, 315)));
        text[n++] = '\n';
    }
    text[n] = 0;
    check_text();
}

/* Random bits with 15 to 17 digits, and the exact digits of the midpoint to the next float64. */
DVT_TEST(csv_numbers_bits) {
    size_t n = 0;
    int i;
    if (!ROUNDS_CORRECTLY)
        SKIP("this C library's strtod may round differently");
    for (i = 0; i < NUMBERS; i++) {
        uint64_t bits = (uint64_t)dvt_test_random(0, 4294967296.0) << 32 |
                        (uint64_t)dvt_test_random(0, 4294967296.0);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!(fabs(value) < INFINITY))
            value = i;
        n += (size_t)snprintf(text + n, 40, "%.*g\n", 15 + i % 3, value);
    }
    check_text();
}

static const char *const hard[] = {
    "0", "-0", "00000", ".5", "5.", "+1", "1e0", "1E+05", "9007199254740993",
    "9007199254740992.99999999999999999999999", /* ties, and just below */
    "9007199254740993.00000000000000000000000000000000000001", "18446744073709551615",
    "18446744073709551616", "18446744073709550592", "18446744073709550591", "9999999999999999999",
    "10000000000000000000", "99999999999999999999", "1e22", "1e23", "8.5e22", "1e27", "1e28",
    "9999999999999999999e27", "9999999999999999999e-27", "1e-27", "1e-28",
    "123456789012345678901234567890e-30", "1.7976931348623157e308", "1.7976931348623158e308",
    "1.7976931348623159e308", "1e309", "1e310", "1e311", "1e99999999999", "-1e400",
    "1e-99999999999", "0e99999999999", "2.2250738585072014e-308", "2.2250738585072011e-308",
    "4.9406564584124654e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "2.47e-324",
    "2.48e-324", "1e-330", "1e-400", "3.4028234663852886e38", "3.4028235677973366e38",
    "3.4028235677973367e38", "1.1754943508222875e-38", "1.4012984643248171e-45",
    "7.0064923216240853e-46", "7.0064923216240854e-46", "16777217", "16777219",
    "1.00000005960464477539062500000000000001", "1.000000059604644775390625", "nan", "inf", "-inf",
    "INFINITY",
    /* Zeros before and after the digits, which cancel with the exponent. */
    "0.000000000000000000000000000000000000000000000000001e51",
    "1000000000000000000000000000000000000000000000000000e-51"};

DVT_TEST(csv_numbers_hard) {
    size_t n = 0, i;
    if (!ROUNDS_CORRECTLY)
        SKIP("this C library's strtod may round differently");
    for (i = 0; i < sizeof hard / sizeof *hard; i++)
        n += (size_t)snprintf(text + n, 100, "%s\n", hard[i]);
    check_text();
    /* Exact midpoints between float64, and one unit to either side in the last of 1100 digits. */
    n = 0;
    for (i = 0; i < 60; i++) {
        double low = i < 20 ? (double)i * 4.9406564584124654e-324
                            : ldexp(1 + dvt_test_random(0, 1), (int)dvt_test_random(-1060, 60));
        char digits[1400];
        int length, k;
        /* The midpoint has one more bit: it is the mean of two texts. */
        double high = nextafter(low, INFINITY);
        char a[1400], b[1400];
        int carry = 0;
        snprintf(a, sizeof a, "%.1100f", low);
        length = snprintf(b, sizeof b, "%.1100f", high);
        if (strlen(a) != strlen(b))
            continue;
        /* (a + b) / 2 in decimal: the sum first, from the end. */
        for (k = length - 1; k >= 0; k--) {
            if (a[k] == '.') {
                digits[k] = '.';
                continue;
            }
            carry += a[k] - '0' + (b[k] - '0');
            digits[k] = (char)(carry % 10);
            carry /= 10;
        }
        for (k = 0; k < length; k++) {
            if (digits[k] == '.')
                continue;
            carry = 10 * carry + digits[k];
            digits[k] = (char)('0' + carry / 2);
            carry %= 2;
        }
        digits[length] = 0;
        n += (size_t)snprintf(text + n, 3000, "%s\n%s1\n", digits, digits);
        for (k = length - 1; digits[k] == '0' || digits[k] == '.'; k--)
            if (k == 0)
                break;
        if (digits[k] > '0' && digits[k] <= '9') {
            digits[k]--;
            n += (size_t)snprintf(text + n, 1500, "%s9\n", digits);
        }
        if (n > sizeof text - 6000)
            break;
    }
    check_text();
}

/* Numbers depend neither on the rounding mode nor on the locale. */
DVT_TEST(csv_numbers_in_any_mode) {
    static const int modes[] = {
#if defined(FE_UPWARD)
        FE_UPWARD,
#endif
#if defined(FE_TOWARDZERO)
        FE_TOWARDZERO,
#endif
        FE_TONEAREST
    };
    const int found = set_comma_locale();
    int i;
    snprintf(text, sizeof text, "0.1\n-0.1\n1.234567890123456789e-40\n");
    for (i = 0; i < (int)(sizeof modes / sizeof *modes); i++) {
        dvt_array *x;
        fesetround(modes[i]);
        x = read_as(DVT_F64);
        fesetround(FE_TONEAREST);
        CHECK_VALUES(x, 0, 0.1, -0.1, 1.234567890123456789e-40);
    }
    setlocale(LC_ALL, "C");
    if (!found)
        SKIP(NO_COMMA_LOCALE);
}

/* Types of 16 bits are compared with the conversion of arrays, for exact digits. */
DVT_TEST(csv_numbers_of_16_bits) {
    static const dvt_dtype dtypes[] = {DVT_F16, DVT_BF16};
    static double values[2000];
    size_t n = 0;
    int i, k;
    for (i = 0; i < 2000; i++) {
        double value = ldexp(dvt_test_random(-2, 2), (int)dvt_test_random(-28, 17));
        if (i % 2) /* a midpoint of float16 or bfloat16, often */
            value = ldexp(floor(ldexp(value, i % 4 == 1 ? 12 : 9)), i % 4 == 1 ? -12 : -9);
        values[i] = value;
        n += (size_t)snprintf(text + n, 200, "%.100f\n", value);
    }
    for (k = 0; k < 2; k++)
        DVT_SCOPE {
            dvt_array *x = read_as(dtypes[k]);
            dvt_array *expected = dvt_astype(
                dvt_from_host(values, DVT_SHAPE(2000, 1), DVT_F64, dvt_cpu()), dtypes[k]);
            CHECK(dvt_array_equal(x, expected, DVT_NAN_DIFFERS));
        }
}

#if !defined(DEVTENSOR_NO_FILES)
/* Every dtype survives a file: all values of 16 bits, random ones of the others. */
DVT_TEST(csv_numbers_survive_files) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16, DVT_I8,
                                       DVT_U8,  DVT_I32, DVT_I64, DVT_BOOL};

    enum { N = 65536 };

    static uint64_t bits[N];
    char path[512];
    int i, k;
    snprintf(path, sizeof path, "%s", golden_temporary("numbers.csv"));
    for (k = 0; k < (int)(sizeof dtypes / sizeof *dtypes); k++) {
        size_t size = (size_t)dvt_dtype_size(dtypes[k]);
        dvt_csv_options options;
        memset(&options, 0, sizeof options);
        options.dtype = dtypes[k];
        for (i = 0; i < N; i++) {
            uint64_t value = (uint64_t)dvt_test_random(0, 4294967296.0) << 32 |
                             (uint64_t)dvt_test_random(0, 4294967296.0);
            uint16_t all = (uint16_t)i;
            char *to = (char *)bits + (size_t)i * size;
            if (size == 2)
                memcpy(to, &all, 2);
            else
                memcpy(to, &value, size);
            if (dtypes[k] == DVT_BOOL)
                *to &= 1;
        }
        DVT_SCOPE {
            dvt_array *x = dvt_from_host(bits, DVT_SHAPE(N / 8, 8), dtypes[k], dvt_cpu()), *y;
            CHECK(dvt_save_csv(path, x, NULL) == DVT_OK);
            y = dvt_load_csv(path, &options, dvt_cpu());
            CHECK(dvt_dtype_of(y) == dtypes[k]);
            if (dvt_dtype_is_float(dtypes[k]))
                CHECK(dvt_array_equal(x, y, DVT_NAN_EQUALS));
            else if (CHECK(y && dvt_nbytes(x) == dvt_nbytes(y)))
                CHECK(memcmp(dvt_data(x), dvt_data(y), (size_t)dvt_nbytes(x)) == 0);
        }
    }
    CHECK(remove(path) == 0);
}
#endif
