/* Text of numbers: the shortest digits read back as the same float, and fewer do not; a given
   number of digits equals printf's. The input: the mode, the number of digits, and the bits. */
#include "fuzz.h"

static void shortest(double value, const dvti_float *x, bool wide) {
    static char text[DVTI_NUMBER_SIZE], fewer[64];
    dvti_number_format format;
    const char *digit;
    int digits = 0;
    memset(&format, 0, sizeof format);
    format.scientific = true;
    format.trim = DVTI_TRIM_ALL;
    format.at_most = format.at_least = format.pad_left = format.pad_right = -1;
    format.exponent_digits = 2;
    dvti_number_text(text, x, &format);
    FUZZ_CHECK(wide ? strtod(text, NULL) == value : strtof(text, NULL) == (float)value);
    for (digit = text; *digit && *digit != 'e'; digit++)
        digits += *digit >= '0' && *digit <= '9';
    if (digits > 1 && value != 0) {
        snprintf(fewer, sizeof fewer, "%.*e", digits - 2, value);
        FUZZ_CHECK(wide ? strtod(fewer, NULL) != value : strtof(fewer, NULL) != (float)value);
    }
}

static void given(double value, const dvti_float *x, int digits, bool scientific) {
    static char text[DVTI_NUMBER_SIZE], expected[DVTI_NUMBER_SIZE];
    dvti_number_format format;
    memset(&format, 0, sizeof format);
    format.scientific = scientific;
    format.exact = true;
    format.trim = DVTI_TRIM_KEEP;
    format.at_most = format.at_least = digits;
    format.pad_left = format.pad_right = -1;
    format.exponent_digits = 2;
    dvti_number_text(text, x, &format);
    snprintf(expected, sizeof expected, scientific ? "%#.*e" : "%#.*f", digits, value);
    FUZZ_CHECK(strcmp(text, expected) == 0);
}

DVT_FUZZ(number) {
    dvti_float x;
    double value = 0;
    bool wide;
    if (size < 2 + sizeof value)
        return 0;
    fuzz_begin();
    memcpy(&value, data + 2, sizeof value);
    wide = !(data[0] & 1);
    if (wide)
        x = dvti_float_read(DVT_F64, &value);
    else {
        float narrow;
        memcpy(&narrow, data + 2, sizeof narrow);
        value = (double)narrow;
        x = dvti_float_read(DVT_F32, &narrow);
    }
    FUZZ_CHECK((x.kind == DVTI_NAN) == (value != value));
    FUZZ_CHECK((x.kind == DVTI_INFINITE) == (value == HUGE_VAL || value == -HUGE_VAL));
    if (x.kind == DVTI_FINITE) {
        shortest(value, &x, wide);
        given(value, &x, data[1] % 40, (data[0] & 2) != 0);
    }
    /* Whole arrays too, whose text depends on all of their elements. */
    DVT_SCOPE {
        static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16, DVT_I64, DVT_U8};
        dvt_dtype dtype = dtypes[data[0] / 4 % 6];
        int64_t n = (int64_t)((size - 2) / (size_t)dvt_dtype_size(dtype));
        dvt_print_options options;
        char text[300];
        size_t length = 0, again = 0;
        dvt_array *array = dvt_from_host(data + 2, DVT_SHAPE(n), dtype, dvt_cpu());
        memset(&options, 0, sizeof options);
        options.style = (dvt_print_style)(data[1] % 5);
        options.precision = data[1] / 5 % 12 - 1;
        options.suppress = (data[1] & 128) != 0;
        options.threshold = data[0] & 128 ? 3 : 0;
        FUZZ_CHECK(dvt_format(array, &options, text, sizeof text, &length) == DVT_OK);
        FUZZ_CHECK(strlen(text) == (length < sizeof text ? length : sizeof text - 1));
        FUZZ_CHECK(dvt_format(array, &options, NULL, 0, &again) == DVT_OK && again == length);
    }
    fuzz_end();
    return 0;
}
