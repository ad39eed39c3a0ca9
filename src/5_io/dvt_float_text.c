/* Computes the exact decimal digits of a binary float with big integers. Generates digits after
   Steele and White ("How to print floating-point numbers accurately", 1990), with the scaling of
   Burger and Dybvig (1996). Writes fixed and scientific notation. Uses no printf, so neither the
   locale nor the rounding of the C library matters. */
#include "5_io/dvt_io_internal.h"

/* A float64 has at most 767 significant decimal digits. */
#define DVTI_DIGITS 800

/* Returns x / y, which is 0 to 9. Leaves the remainder in x. */
static int dvti_big_digit(dvti_big *x, const dvti_big *y) {
    int digit = 0;
    for (; dvti_big_compare(x, y) >= 0; digit++)
        dvti_big_subtract(x, y);
    return digit;
}

/* ---- decoding a float ---- */
DVTI_FN dvti_float_layout dvti_float_layout_of(dvt_dtype dtype) {
    static const dvti_float_layout f32 = {23, 8}, f64 = {52, 11}, f16 = {10, 5}, bf16 = {7, 8};
    return dtype == DVT_F64 ? f64 : dtype == DVT_F16 ? f16 : dtype == DVT_BF16 ? bf16 : f32;
}

static dvti_float dvti_float_split(uint64_t bits, dvti_float_layout layout) {
    int bias = (1 << (layout.exponent_bits - 1)) - 1 + layout.fraction_bits;
    int exponent = (int)(bits >> layout.fraction_bits & ((1u << layout.exponent_bits) - 1));
    uint64_t fraction = bits & (((uint64_t)1 << layout.fraction_bits) - 1);
    dvti_float x;
    memset(&x, 0, sizeof x);
    x.negative = bits >> (layout.fraction_bits + layout.exponent_bits) & 1;
    if (exponent == (1 << layout.exponent_bits) - 1) {
        x.kind = fraction ? DVTI_NAN : DVTI_INFINITE;
        return x;
    }
    x.kind = DVTI_FINITE;
    x.asymmetric = fraction == 0 && exponent > 1;
    x.mantissa = exponent ? fraction | (uint64_t)1 << layout.fraction_bits : fraction;
    x.exponent = (exponent ? exponent : 1) - bias;
    return x;
}

DVTI_FN dvti_float dvti_float_read(dvt_dtype dtype, const void *at) {
    const dvti_float_layout layout = dvti_float_layout_of(dtype);
    uint64_t bits64;
    uint32_t bits32;
    uint16_t bits16;
    if (dtype == DVT_F64) {
        memcpy(&bits64, at, sizeof bits64);
        return dvti_float_split(bits64, layout);
    }
    if (dtype == DVT_F32) {
        memcpy(&bits32, at, sizeof bits32);
        return dvti_float_split(bits32, layout);
    }
    memcpy(&bits16, at, sizeof bits16);
    return dvti_float_split(bits16, layout);
}

/* ---- digits ---- */
typedef struct dvti_digits {
    int n;
    int exponent; /* of the first digit: d.ddd * 10^exponent */
    char digit[DVTI_DIGITS];
} dvti_digits;

/* value / scale is the number. below / scale and above / scale are half the distances to the
   adjacent floats. */
typedef struct dvti_ratio {
    dvti_big value, scale, below, above;
} dvti_ratio;

/* Distances of one unit or more stop growing. They decide nothing further, and long digit strings
   would overflow the big integers. */
static void dvti_ratio_times_10(dvti_ratio *r) {
    dvti_big_times(&r->value, 10);
    if (dvti_big_compare(&r->below, &r->scale) >= 0)
        return;
    dvti_big_times(&r->below, 10);
    dvti_big_times(&r->above, 10);
}

/* Scales value / scale to [1, 10) and returns the power of ten, at least floor_position. At that
   limit the first digit may be 0. */
static int dvti_ratio_scale(dvti_ratio *r, const dvti_float *x, int floor_position) {
    int up = x->asymmetric ? 2 : 1, high = 0, position;
    while (x->mantissa >> high > 1)
        high++;
    dvti_big_set(&r->value, x->mantissa);
    dvti_big_set(&r->scale, 1);
    dvti_big_set(&r->below, 1);
    dvti_big_shift(&r->value, up + (x->exponent > 0 ? x->exponent : 0));
    dvti_big_shift(&r->scale, up + (x->exponent < 0 ? -x->exponent : 0));
    dvti_big_shift(&r->below, x->exponent > 0 ? x->exponent : 0);
    dvti_big_copy(&r->above, &r->below);
    if (x->asymmetric)
        dvti_big_shift(&r->above, 1);
    /* log10(2) times the binary exponent: exact, or one too small */
    position = (int)floor((high + x->exponent) * 0.30102999566398119 - 1e-9);
    if (position < floor_position)
        position = floor_position;
    if (position > 0)
        dvti_big_times_power_of_10(&r->scale, position);
    else {
        dvti_big_times_power_of_10(&r->value, -position);
        dvti_big_times_power_of_10(&r->below, -position);
        dvti_big_times_power_of_10(&r->above, -position);
    }
    {
        dvti_big ten;
        dvti_big_copy(&ten, &r->scale);
        dvti_big_times(&ten, 10);
        if (dvti_big_compare(&r->value, &ten) >= 0) {
            dvti_big_copy(&r->scale, &ten);
            position++;
        }
    }
    return position;
}

/* Adds one to the last digit with carry; 999 becomes 1 of the next higher power. */
static void dvti_digits_round_up(dvti_digits *d) {
    while (d->n > 0 && d->digit[d->n - 1] == '9')
        d->n--;
    if (d->n > 0)
        d->digit[d->n - 1]++;
    else {
        d->digit[d->n++] = '1';
        d->exponent++;
    }
}

/* Generates digits until they identify x among its adjacent floats. Continues to position `least`,
   and stops at position `last`. With `exact`, it stops when the remainder is 0 or at `last`. The
   last digit is rounded, ties to even. */
static void dvti_digits_make(dvti_digits *d, const dvti_float *x,
                             const dvti_number_format *format) {
    bool even = !(x->mantissa & 1), down = false, up = false, relative = format->scientific;
    int position, least, last, digit;
    dvti_ratio r;
    d->n = 0;
    d->exponent = 0;
    if (!x->mantissa) {
        d->digit[d->n++] = '0';
        return;
    }
    position =
        dvti_ratio_scale(&r, x, relative || format->at_most < 0 ? INT_MIN / 2 : -format->at_most);
    last = format->at_most < 0 ? INT_MIN / 2 : (relative ? position : 0) - format->at_most;
    least = format->at_least < 0 ? INT_MAX : (relative ? position : 0) - format->at_least;
    d->exponent = position;
    for (;; position--) {
        digit = dvti_big_digit(&r.value, &r.scale);
        if (!format->exact) {
            dvti_big top;
            dvti_big_copy(&top, &r.value);
            dvti_big_add(&top, &r.above);
            down = dvti_big_compare(&r.value, &r.below) < (even ? 1 : 0);
            up = dvti_big_compare(&top, &r.scale) > (even ? -1 : 0);
        }
        d->digit[d->n++] = (char)('0' + digit);
        if (((down || up) && position <= least) || position <= last || d->n == DVTI_DIGITS ||
            (format->exact && !r.value.n))
            break;
        dvti_ratio_times_10(&r);
    }
    if (down == up) { /* both directions or neither are valid: use the nearer digit */
        int half;
        dvti_big_shift(&r.value, 1);
        half = dvti_big_compare(&r.value, &r.scale);
        up = half > 0 || (half == 0 && digit & 1);
    }
    if (up)
        dvti_digits_round_up(d);
}

/* ---- the two notations ---- */
typedef struct dvti_number_writer {
    char *at;
    int n;
} dvti_number_writer;

static void dvti_number_repeat(dvti_number_writer *writer, char c, int times) {
    for (; times > 0; times--)
        writer->at[writer->n++] = c;
}

static void dvti_number_digits(dvti_number_writer *writer, const dvti_digits *d, int from, int to) {
    int i;
    for (i = from; i < to; i++)
        writer->at[writer->n++] = i >= 0 && i < d->n ? d->digit[i] : '0';
}

/* Writes the point and the digits from..to after it, trimmed. Returns the number of characters
   after the point. */
static int dvti_number_fraction(dvti_number_writer *writer, const dvti_digits *d, int from,
                                const dvti_number_format *format) {
    int to = d->n, places;
    if (format->trim == DVTI_TRIM_KEEP)
        to = DVTI_MAX(to, from + format->at_least);
    else
        while (to > from && (to <= 0 || d->digit[to - 1] == '0'))
            to--;
    places = to > from ? to - from : 0;
    if (!places && format->trim == DVTI_TRIM_ALL)
        return 0;
    writer->at[writer->n++] = '.';
    dvti_number_digits(writer, d, from, from + places);
    if (!places && format->trim == DVTI_TRIM_ZERO) {
        writer->at[writer->n++] = '0';
        places = 1;
    }
    return places;
}

static void dvti_number_exponent(dvti_number_writer *writer, int exponent, int least_digits) {
    char digits[8];
    int n = 0, left = exponent < 0 ? -exponent : exponent;
    for (; left || n < least_digits || n < 2; left /= 10)
        digits[n++] = (char)('0' + left % 10);
    writer->at[writer->n++] = 'e';
    writer->at[writer->n++] = exponent < 0 ? '-' : '+';
    while (n)
        writer->at[writer->n++] = digits[--n];
}

DVTI_FN int dvti_number_text(char *buffer, const dvti_float *x, const dvti_number_format *format) {
    dvti_digits digits;
    dvti_number_writer writer;
    int whole, places;
    dvti_digits_make(&digits, x, format);
    writer.at = buffer;
    writer.n = 0;
    whole = format->scientific || digits.exponent < 0 ? 1 : digits.exponent + 1;
    dvti_number_repeat(&writer, ' ', format->pad_left - whole - (x->negative ? 1 : 0));
    if (x->negative)
        writer.at[writer.n++] = '-';
    if (format->scientific) {
        dvti_number_digits(&writer, &digits, 0, 1);
        dvti_number_fraction(&writer, &digits, 1, format);
        dvti_number_exponent(&writer, digits.exponent, format->exponent_digits);
    } else {
        if (digits.exponent < 0)
            writer.at[writer.n++] = '0';
        else
            dvti_number_digits(&writer, &digits, 0, whole);
        places = dvti_number_fraction(&writer, &digits, digits.exponent + 1, format);
        dvti_number_repeat(&writer, ' ', format->pad_right - places);
    }
    writer.at[writer.n] = 0;
    return writer.n;
}

#undef DVTI_DIGITS
