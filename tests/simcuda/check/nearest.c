/* Binary search: patterns of positive numbers are ordered as their values are. */
#include <math.h>

#include "nearest.h"

const format f16 = {5, 10, 0x7bff, 0x7c00, 0x7fff};
const format bf16 = {8, 7, 0x7f7f, 0x7f80, 0x7fff};
const format e4m3 = {4, 3, 0x7e, 0x7f, 0x7f};
const format e5m2 = {5, 2, 0x7b, 0x7c, 0x7f};

double format_value(const format *f, uint32_t pattern) {
    int bias = (1 << (f->exponent - 1)) - 1, width = f->exponent + f->fraction;
    uint32_t magnitude = pattern & ((1u << width) - 1);
    int e = (int)(magnitude >> f->fraction);
    double m = (double)(magnitude & ((1u << f->fraction) - 1)) / (1 << f->fraction);
    double x = e ? ldexp(1 + m, e - bias) : ldexp(m, 1 - bias);
    if (magnitude > f->top)
        x = magnitude == f->infinity && f->infinity != f->nan ? INFINITY : NAN;
    return pattern >> width & 1 ? -x : x;
}

/* Returns the value one step above the largest number, as if the exponent range continued. */
static quad step_above(const format *f, uint32_t pattern) {
    if (pattern < f->top)
        return (quad)format_value(f, pattern + 1);
    quad top = (quad)format_value(f, f->top);
    return top + (top - (quad)format_value(f, f->top - 1));
}

static int goes_up(quad x, quad rest, quad low, quad high, uint32_t pattern, rule r, int negative) {
    quad middle = (low + high) / 2;
    if (x == low && rest == 0)
        return 0;
    switch (r) {
    case TOWARD_ZERO:
        return 0;
    case DOWN:
        return negative;
    case UP:
        return !negative;
    default:
        if (x != middle)
            return x > middle;
        if (rest != 0)
            return rest > 0;
        return r == TIES_AWAY || (pattern & 1);
    }
}

uint32_t format_round(const format *f, quad exact, quad rest, rule r, int finite) {
    if (exact != exact)
        return f->nan;
    int negative = exact < 0 || (exact == 0 && signbit((double)exact));
    uint32_t sign = (uint32_t)negative << (f->exponent + f->fraction);
    quad x = negative ? -exact : exact, d = negative ? -rest : rest;
    if (x - x != 0)
        return sign | (finite ? f->top : f->infinity);
    uint32_t low = 0, high = f->top + 1; /* the value of low is at most x */
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        quad value = (quad)format_value(f, middle);
        if (value < x || (value == x && d >= 0))
            low = middle;
        else
            high = middle;
    }
    uint32_t pattern = low;
    if (low == f->top && x > step_above(f, low))
        pattern += r == TOWARD_ZERO || r == (negative ? UP : DOWN) ? 0 : 1;
    else
        pattern += (uint32_t)goes_up(x, d, (quad)format_value(f, low), step_above(f, low), low, r,
                                     negative);
    return sign | (pattern > f->top ? (finite ? f->top : f->infinity) : pattern);
}

quad exact_sum(quad a, quad b, quad *rest) {
    quad s = a + b, t = s - a;
    *rest = s - s != 0 ? 0 : (a - (s - t)) + (b - t);
    return s;
}
