/* Formats the elements of one array in one common format. The format follows the rules of NumPy
   (arrayprint of NumPy 1.24) or PyTorch. Brackets and lines are the caller's. */
#include "5_io/dvt_io_internal.h"

/* Properties that decide the format: extremes of the finite nonzero elements, and other kinds
   found. */
typedef struct dvti_survey {
    double largest, smallest; /* magnitudes; 0 when there is none */
    bool finite, special, minus_infinity, fractions;
} dvti_survey;

static double dvti_float_value(const dvti_float *x) {
    double magnitude = ldexp((double)x->mantissa, x->exponent);
    return x->negative ? -magnitude : magnitude;
}

static const char *dvti_printed_at(const void *elements, dvt_dtype dtype, int64_t i) {
    return (const char *)elements + i * dvt_dtype_size(dtype);
}

static dvti_survey dvti_survey_of(dvt_dtype dtype, const void *elements, int64_t n) {
    dvti_survey s;
    int64_t i;
    memset(&s, 0, sizeof s);
    for (i = 0; i < n; i++) {
        dvti_float x = dvti_float_read(dtype, dvti_printed_at(elements, dtype, i));
        double magnitude;
        if (x.kind != DVTI_FINITE) {
            s.special = true;
            s.minus_infinity = s.minus_infinity || (x.kind == DVTI_INFINITE && x.negative);
            continue;
        }
        s.finite = true;
        magnitude = fabs(dvti_float_value(&x));
        if (magnitude == 0)
            continue;
        s.fractions = s.fractions || magnitude != floor(magnitude);
        if (s.largest == 0 || magnitude > s.largest)
            s.largest = magnitude;
        if (s.smallest == 0 || magnitude < s.smallest)
            s.smallest = magnitude;
    }
    return s;
}

/* Divides in the array's dtype, as NumPy does: the quotient is rounded to it and may become
   infinite. */
static double dvti_quotient(dvt_dtype dtype, double a, double b) {
    if (dtype == DVT_F64)
        return a / b;
    if (dtype == DVT_F16)
        return (double)dvti_f16_to_f32(dvti_f32_to_f16((float)(a / b)));
    if (dtype == DVT_BF16)
        return (double)dvti_bf16_to_f32(dvti_f32_to_bf16((float)(a / b)));
    return (double)(float)(a / b);
}

static bool dvti_numpy_scientific(const dvti_print_rules *rules, dvt_dtype dtype,
                                  const dvti_survey *s) {
    if (s->largest == 0)
        return false;
    return s->largest >= 1e8 ||
           (!rules->suppress &&
            (s->smallest < 0.0001 || dvti_quotient(dtype, s->largest, s->smallest) > 1000.0));
}

/* The widths of the parts of a number. */
typedef struct dvti_parts {
    int integer, fraction, exponent;
} dvti_parts;

static dvti_parts dvti_parts_of(const char *text) {
    dvti_parts parts;
    const char *point = strchr(text, '.'), *e = strchr(text, 'e'), *end = text + strlen(text);
    if (!e)
        e = end;
    if (!point)
        point = e;
    parts.integer = (int)(point - text);
    parts.fraction = e > point ? (int)(e - point) - 1 : 0;
    parts.exponent = end > e ? (int)(end - e) - 2 : 0;
    return parts;
}

/* Returns the maximum widths over all finite elements in a preliminary format. */
static dvti_parts dvti_widest(dvt_dtype dtype, const void *elements, int64_t n,
                              const dvti_number_format *form) {
    char buffer[DVTI_NUMBER_SIZE];
    dvti_parts most, parts;
    int64_t i;
    memset(&most, 0, sizeof most);
    for (i = 0; i < n; i++) {
        dvti_float x = dvti_float_read(dtype, dvti_printed_at(elements, dtype, i));
        if (x.kind != DVTI_FINITE)
            continue;
        dvti_number_text(buffer, &x, form);
        parts = dvti_parts_of(buffer);
        most.integer = DVTI_MAX(most.integer, parts.integer);
        most.fraction = DVTI_MAX(most.fraction, parts.fraction);
        most.exponent = DVTI_MAX(most.exponent, parts.exponent);
    }
    return most;
}

/* Chooses NumPy's format. Fixed notation has the shortest digits, padded on both sides. In
   scientific notation, all mantissas get the length of the longest. */
static dvti_number_format dvti_numpy_float_plan(const dvti_print_rules *rules, dvt_dtype dtype,
                                                const void *elements, int64_t n) {
    dvti_survey survey = dvti_survey_of(dtype, elements, n);
    dvti_number_format form;
    dvti_parts most;
    memset(&form, 0, sizeof form);
    form.trim = DVTI_TRIM_POINT;
    form.at_most = rules->precision;
    form.at_least = -1;
    form.scientific = dvti_numpy_scientific(rules, dtype, &survey);
    most = dvti_widest(dtype, elements, n, &form);
    form.pad_left = most.integer;
    form.at_least = 0;
    if (form.scientific) {
        form.trim = DVTI_TRIM_KEEP;
        form.at_most = form.at_least = most.fraction;
        form.exponent_digits = most.exponent;
        form.pad_right = most.exponent + 2 + most.fraction;
    } else
        form.pad_right = most.fraction;
    if (survey.special) {
        int space = form.pad_right + 1, longest = survey.minus_infinity ? 4 : 3;
        form.pad_left = DVTI_MAX(form.pad_left, longest - space);
    }
    return form;
}

/* Chooses the format of a NumPy scalar, which prints all its digits: 1.0, 1e-05. */
static dvti_number_format dvti_numpy_scalar_plan(dvt_dtype dtype, const void *element) {
    dvti_float x = dvti_float_read(dtype, element);
    double magnitude = x.kind == DVTI_FINITE ? fabs(dvti_float_value(&x)) : 0;
    dvti_number_format form;
    memset(&form, 0, sizeof form);
    form.at_most = form.at_least = -1;
    form.scientific = magnitude != 0 && (magnitude >= 1e16 || magnitude < 1e-4);
    form.trim = form.scientific ? DVTI_TRIM_ALL : DVTI_TRIM_ZERO;
    return form;
}

/* Chooses PyTorch's format: the same number of fraction digits for all elements, and none when all
   values are integral. The common width ignores zeros and non-finite elements. */
static void dvti_torch_float_plan(dvti_element_format *format, const dvti_print_rules *rules,
                                  const void *elements, int64_t n) {
    dvti_survey s = dvti_survey_of(format->dtype, elements, n);
    dvti_number_format *form = &format->number;
    char buffer[DVTI_NUMBER_SIZE];
    int64_t i;
    format->integral = !s.fractions;
    form->exact = rules->precision >= 0; /* no precision in PyTorch: shortest digits */
    form->trim = form->exact ? DVTI_TRIM_KEEP : DVTI_TRIM_ZERO;
    form->at_most = form->at_least = rules->precision;
    form->scientific = s.largest != 0 && (s.largest / s.smallest > 1000.0 || s.largest > 1e8 ||
                                          (!format->integral && s.smallest < 1e-4));
    if (format->integral && !form->scientific)
        form->at_most = form->at_least = 0;
    for (i = 0; i < n; i++) {
        dvti_float x = dvti_float_read(format->dtype, dvti_printed_at(elements, format->dtype, i));
        if (x.kind == DVTI_FINITE && x.mantissa)
            format->width = DVTI_MAX(format->width, dvti_number_text(buffer, &x, form));
    }
    if (rules->suppress && form->scientific) {
        form->scientific = false;
        if (format->integral)
            form->at_most = form->at_least = 0;
    }
}

static int64_t dvti_int_value(dvt_dtype dtype, const void *at) {
    int32_t i32;
    int64_t i64;
    if (dtype == DVT_I64) {
        memcpy(&i64, at, sizeof i64);
        return i64;
    }
    if (dtype == DVT_I32) {
        memcpy(&i32, at, sizeof i32);
        return i32;
    }
    return dtype == DVT_I8 ? *(const signed char *)at : *(const unsigned char *)at;
}

/* Writes the text right-aligned, terminated by 0. */
static int dvti_padded(char *buffer, const char *text, int n, int width) {
    int blanks = width > n ? width - n : 0;
    memset(buffer, ' ', (size_t)blanks);
    memcpy(buffer + blanks, text, (size_t)n);
    buffer[blanks + n] = 0;
    return blanks + n;
}

static int dvti_int_text(char *buffer, int64_t value, int width) {
    char text[24];
    int n = DVTI_LENGTH(text);
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        text[--n] = (char)('0' + left % 10);
    while (left /= 10);
    if (value < 0)
        text[--n] = '-';
    return dvti_padded(buffer, text + n, DVTI_LENGTH(text) - n, width);
}

static int dvti_special_text(char *buffer, const dvti_float *x, int width) {
    const char *text = x->kind == DVTI_NAN ? "nan" : x->negative ? "-inf" : "inf";
    return dvti_padded(buffer, text, (int)strlen(text), width);
}

DVTI_FN int dvti_element_text(char *buffer, const dvti_element_format *format,
                              const void *element) {
    char text[DVTI_NUMBER_SIZE];
    const dvti_number_format *form = &format->number;
    dvti_float x;
    int n;
    if (format->dtype == DVT_BOOL) {
        bool value = *(const unsigned char *)element != 0;
        return dvti_padded(buffer, value ? "True" : "False", value ? 4 : 5, format->width);
    }
    if (!dvt_dtype_is_float(format->dtype))
        return dvti_int_text(buffer, dvti_int_value(format->dtype, element), format->width);
    x = dvti_float_read(format->dtype, element);
    if (!format->torch_like) {
        if (x.kind != DVTI_FINITE)
            return dvti_special_text(buffer, &x,
                                     format->scalar ? 0 : form->pad_left + form->pad_right + 1);
        return dvti_number_text(buffer, &x, form);
    }
    if (x.kind != DVTI_FINITE)
        return dvti_special_text(buffer, &x, format->width);
    n = dvti_number_text(text, &x, form);
    return dvti_padded(buffer, text, n, format->width);
}

DVTI_FN dvti_element_format dvti_element_plan(const dvti_print_rules *rules, dvt_dtype dtype,
                                              const void *elements, int64_t n, int ndim) {
    bool scalar = ndim == 0 && (rules->style == DVT_PRINT_MXNET || rules->style == DVT_PRINT_STR);
    char buffer[DVTI_NUMBER_SIZE];
    dvti_element_format format;
    int64_t i;
    memset(&format, 0, sizeof format);
    format.dtype = dtype;
    format.torch_like = rules->style == DVT_PRINT_TORCH;
    format.scalar = scalar;
    format.width = format.torch_like ? 1 : 0;
    if (dvt_dtype_is_float(dtype)) {
        if (format.torch_like)
            dvti_torch_float_plan(&format, rules, elements, n);
        else if (scalar)
            format.number = dvti_numpy_scalar_plan(dtype, elements);
        else
            format.number = dvti_numpy_float_plan(rules, dtype, elements, n);
        return format;
    }
    if (dtype == DVT_BOOL && !format.torch_like) {
        format.width = ndim ? 5 : 0;
        return format;
    }
    for (i = 0; i < n; i++) {
        dvti_element_format bare = format;
        int length;
        bare.width = 0;
        length = dvti_element_text(buffer, &bare, dvti_printed_at(elements, dtype, i));
        format.width = DVTI_MAX(format.width, length);
    }
    return format;
}
