/* Reads decimal numbers: the nearest value of any dtype, ties to even. Computes with integers only,
   so neither the locale nor the rounding mode matters. Up to 19 digits times 10^-27 to 10^27 need
   128 bits, all others a quotient of big integers. */
#include "1_base/dvt_rng.h"
#include "5_io/dvt_formats.h"

/* The exact decimal text between two adjacent float64 has at most 768 digits. Digits beyond this
   number only say whether the rest is 0. */
#define DVTI_DECIMAL_DIGITS 800
/* All floats and the midpoints between them are 0, or have their first digit in this range. */
#define DVTI_DECIMAL_LOW (-330)
#define DVTI_DECIMAL_HIGH 310
/* The largest powers that the short way divides or multiplies by: 5^27 < 2^63. */
#define DVTI_SHORT_DIGITS 19
#define DVTI_SHORT_POWER 27

/* The value is digit[0..n) * 10^exponent, without zeros at either end. */
typedef struct dvti_decimal {
    dvti_float_kind kind;
    bool negative;
    int n; /* 0: the number is 0 */
    int64_t exponent;
    char digit[DVTI_DECIMAL_DIGITS + 1];
} dvti_decimal;

/* ---- text ---- */
static bool dvti_same_word(const char *text, size_t n, const char *word) {
    size_t i;
    for (i = 0; i < n && word[i]; i++)
        if ((text[i] | 32) != word[i])
            return false;
    return i == n && !word[i];
}

/* Reads the digits of an exponent. Very large ones stay large: no text is as long as 10^15. */
static bool dvti_decimal_exponent(dvti_decimal *x, const char *at, const char *end) {
    int64_t value = 0;
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+'))
        at++;
    if (at == end)
        return false;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9')
            return false;
        if (value < (int64_t)1000000000000000000 / 10)
            value = 10 * value + (*at - '0');
    }
    x->exponent += negative ? -value : value;
    return true;
}

/* Reads digits with at most one point. Returns the position after them, or NULL without a digit. */
static const char *dvti_decimal_digits(dvti_decimal *x, const char *at, const char *end,
                                       char point) {
    bool fraction = false, any = false, rest = false;
    for (; at < end; at++) {
        if (*at == point && !fraction) {
            fraction = true;
            continue;
        }
        if (*at < '0' || *at > '9')
            break;
        any = true;
        if (x->n == 0 && *at == '0') {
            x->exponent -= fraction;
        } else if (x->n < DVTI_DECIMAL_DIGITS) {
            x->digit[x->n++] = *at;
            x->exponent -= fraction;
        } else {
            rest = rest || *at != '0';
            x->exponent += !fraction;
        }
    }
    if (rest) { /* one more digit is on the same side of all midpoints as the rest */
        x->digit[x->n++] = '1';
        x->exponent--;
    }
    while (x->n > 0 && x->digit[x->n - 1] == '0') {
        x->n--;
        x->exponent++;
    }
    return any ? at : NULL;
}

static bool dvti_decimal_read(dvti_decimal *x, const char *text, size_t n, char point) {
    const char *end = text + n;
    x->kind = DVTI_FINITE;
    x->negative = n > 0 && *text == '-';
    x->n = 0;
    x->exponent = 0;
    if (n > 0 && (*text == '-' || *text == '+'))
        text++;
    n = (size_t)(end - text);
    if (dvti_same_word(text, n, "nan"))
        x->kind = DVTI_NAN;
    else if (dvti_same_word(text, n, "inf") || dvti_same_word(text, n, "infinity"))
        x->kind = DVTI_INFINITE;
    if (x->kind != DVTI_FINITE)
        return true;
    text = dvti_decimal_digits(x, text, end, point);
    if (!text)
        return false;
    if (text == end)
        return true;
    return (*text == 'e' || *text == 'E') && dvti_decimal_exponent(x, text + 1, end);
}

/* ---- the leading bits of the value ---- */
/* The value is (bits + r) * 2^exponent with 0 <= r < 1. */
typedef struct dvti_leading {
    uint64_t bits;
    int exponent;
    bool rest; /* r is not 0 */
} dvti_leading;

/* Moves the highest bit of *x, which is not 0, to the top, and returns by how much. */
static int dvti_to_top(uint64_t *x) {
    int shift = 63 - dvti_highest_bit(*x);
    *x <<= shift;
    return shift;
}

/* Divides rest * 2^32 + digit by a divisor whose highest bit is set, for rest < divisor. Leaves the
   remainder in rest. Source: Knuth, The Art of Computer Programming 2, 4.3.1, algorithm D. */
static uint64_t dvti_divide_step(uint64_t *rest, uint64_t digit, uint64_t divisor) {
    const uint64_t high = divisor >> 32, low = divisor & 0xffffffffu;
    uint64_t quotient = *rest / high, left = *rest % high;
    while (quotient >> 32 || quotient * low > (left << 32 | digit)) { /* at most twice */
        quotient--;
        left += high;
        if (left >> 32)
            break;
    }
    *rest = (*rest << 32 | digit) - quotient * divisor;
    return quotient;
}

/* Returns the leading bits of value * 10^exponent, for value > 0. */
static dvti_leading dvti_leading_short(uint64_t value, int exponent) {
    int power = exponent < 0 ? -exponent : exponent, i;
    uint64_t fives = 1, rest;
    dvti_leading q;
    for (i = 0; i < power; i++)
        fives *= 5;
    q.exponent = exponent;
    q.rest = false;
    if (exponent >= 0) {
        uint64_t high = dvti_mulhi64(value, fives), low = value * fives;
        q.bits = low;
        if (high) {
            int shift = dvti_to_top(&high);
            q.exponent += 64 - shift;
            q.bits = shift ? high | low >> (64 - shift) : high;
            q.rest = low << shift != 0;
        }
        return q;
    }
    q.exponent -= dvti_to_top(&value);
    q.exponent += dvti_to_top(&fives) - 63;
    rest = value >> 1; /* value * 2^63 in three parts */
    q.bits = dvti_divide_step(&rest, value << 31 & 0xffffffffu, fives) << 32;
    q.bits |= dvti_divide_step(&rest, 0, fives);
    q.rest = rest != 0;
    return q;
}

static dvti_leading dvti_leading_long(const dvti_decimal *x) {
    int exponent = (int)x->exponent, i, shift;
    dvti_big value, scale, digit;
    dvti_leading q;
    dvti_big_set(&value, 0);
    dvti_big_set(&scale, 1);
    for (i = 0; i < x->n; i++) {
        dvti_big_times(&value, 10);
        dvti_big_set(&digit, (uint64_t)(x->digit[i] - '0'));
        dvti_big_add(&value, &digit);
    }
    dvti_big_times_power_of_10(&value, exponent > 0 ? exponent : 0);
    dvti_big_times_power_of_10(&scale, exponent < 0 ? -exponent : 0);
    shift = dvti_big_bits(&scale) - dvti_big_bits(&value);
    dvti_big_shift(&value, shift > 0 ? shift : 0);
    dvti_big_shift(&scale, shift < 0 ? -shift : 0);
    q.exponent = -63 - shift;
    q.bits = 0;
    for (i = 0; i < 64; i++) {
        if (i)
            dvti_big_shift(&value, 1);
        q.bits <<= 1;
        if (dvti_big_compare(&value, &scale) >= 0) {
            dvti_big_subtract(&value, &scale);
            q.bits |= 1;
        }
    }
    q.rest = value.n != 0;
    return q;
}

/* ---- rounding ---- */
/* Returns the bits of the nearest float, without the sign. */
static uint64_t dvti_leading_round(dvti_leading q, dvti_float_layout layout) {
    const int bias = (1 << (layout.exponent_bits - 1)) - 1, lowest = 1 - bias;
    const uint64_t infinity = (((uint64_t)1 << layout.exponent_bits) - 1) << layout.fraction_bits;
    int top, keep, drop;
    uint64_t kept, rest, half;
    q.exponent -= dvti_to_top(&q.bits);
    top = q.exponent + 63;
    if (top > bias)
        return infinity;
    keep = layout.fraction_bits + 1 - (top < lowest ? lowest - top : 0);
    if (keep < 0)
        return 0;
    drop = 64 - keep;
    kept = keep ? q.bits >> drop : 0;
    rest = keep ? q.bits << keep : q.bits; /* the dropped bits, at the top */
    half = (uint64_t)1 << 63;
    kept += rest > half || (rest == half && (q.rest || kept & 1));
    /* A carry out of the fraction increments the exponent, up to infinity. */
    if (top >= lowest)
        kept += (uint64_t)(top + bias - 1) << layout.fraction_bits;
    return kept;
}

static uint64_t dvti_digits_value(const char *digit, int n) {
    uint64_t value = 0;
    int i;
    for (i = 0; i < n; i++)
        value = 10 * value + (uint64_t)(digit[i] - '0');
    return value;
}

static uint64_t dvti_decimal_bits(const dvti_decimal *x, dvti_float_layout layout) {
    const uint64_t infinity = (((uint64_t)1 << layout.exponent_bits) - 1) << layout.fraction_bits;
    uint64_t bits;
    if (x->kind != DVTI_FINITE)
        bits = x->kind == DVTI_NAN ? infinity | infinity >> 1 : infinity;
    else if (x->n == 0 || x->n + x->exponent < DVTI_DECIMAL_LOW)
        bits = 0;
    else if (x->n + x->exponent > DVTI_DECIMAL_HIGH)
        bits = infinity;
    else if (x->n <= DVTI_SHORT_DIGITS && x->exponent >= -DVTI_SHORT_POWER &&
             x->exponent <= DVTI_SHORT_POWER)
        bits = dvti_leading_round(
            dvti_leading_short(dvti_digits_value(x->digit, x->n), (int)x->exponent), layout);
    else
        bits = dvti_leading_round(dvti_leading_long(x), layout);
    return bits | (uint64_t)x->negative << (layout.fraction_bits + layout.exponent_bits);
}

/* Computes the exact value. Returns false for fractions and for numbers beyond 64 bits. */
static bool dvti_decimal_int(const dvti_decimal *x, int64_t *out) {
    const uint64_t most = (uint64_t)INT64_MAX + x->negative;
    uint64_t value = 0;
    int64_t i;
    *out = 0;
    if (x->kind != DVTI_FINITE)
        return false;
    if (x->n == 0)
        return true;
    if (x->exponent < 0 || x->exponent > 18 || x->n + x->exponent > 19)
        return false;
    for (i = 0; i < x->n + x->exponent; i++)
        value = 10 * value + (i < x->n ? (uint64_t)(x->digit[i] - '0') : 0);
    if (value > most)
        return false;
    *out = dvti_signed(x->negative ? 0 - value : value, 8);
    return true;
}

/* The numbers of most files: a minus or none, digits, at most one point. */
typedef struct dvti_plain_number {
    bool negative;
    uint64_t value;
    int exponent; /* of 10; 0 or less */
} dvti_plain_number;

/* Returns false for any other text, and for one of more than 19 characters. */
static bool dvti_plain_read(dvti_plain_number *x, const char *text, size_t n, char point) {
    const char *at = text, *const end = text + n, *fraction = NULL;
    uint64_t value = 0;
    if (n == 0 || n > DVTI_SHORT_DIGITS)
        return false;
    x->negative = *at == '-';
    at += x->negative;
    text = at;
    for (; at < end; at++) {
        unsigned digit = (unsigned)(unsigned char)*at - '0';
        if (digit <= 9)
            value = 10 * value + digit;
        else if (*at == point && !fraction)
            fraction = at + 1;
        else
            return false;
    }
    x->value = value;
    x->exponent = fraction ? -(int)(end - fraction) : 0;
    return end - text > (fraction ? 1 : 0);
}

DVTI_FN dvti_parsed dvti_number_parse(const char *text, size_t n, char point, dvt_dtype dtype,
                                      void *to, int64_t i) {
    dvti_plain_number plain;
    dvti_decimal x;
    int64_t value;
    if (dvt_dtype_is_float(dtype) && dvti_plain_read(&plain, text, n, point)) {
        dvti_float_layout layout = dvti_float_layout_of(dtype);
        uint64_t bits =
            plain.value
                ? dvti_leading_round(dvti_leading_short(plain.value, plain.exponent), layout)
                : 0;
        bits |= (uint64_t)plain.negative << (layout.fraction_bits + layout.exponent_bits);
        dvti_store_bits((char *)to, (int)dvt_dtype_size(dtype), i, bits);
        return DVTI_PARSED;
    }
    if (!dvti_decimal_read(&x, text, n, point))
        return DVTI_PARSED_TEXT;
    if (dvt_dtype_is_float(dtype)) {
        dvti_float_layout layout = dvti_float_layout_of(dtype);
        dvti_store_bits((char *)to, (int)dvt_dtype_size(dtype), i, dvti_decimal_bits(&x, layout));
        return DVTI_PARSED;
    }
    if (!dvti_decimal_int(&x, &value) || value < dvti_int_lowest(dtype) ||
        value > dvti_int_largest(dtype))
        return DVTI_PARSED_OUTSIDE;
    dvti_store_int(dtype, (char *)to, i, value);
    return DVTI_PARSED;
}

#undef DVTI_DECIMAL_DIGITS
#undef DVTI_DECIMAL_LOW
#undef DVTI_DECIMAL_HIGH
#undef DVTI_SHORT_DIGITS
#undef DVTI_SHORT_POWER
