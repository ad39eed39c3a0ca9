/* Rounds to small float formats by a search among all their values. Slow and simple, and
   independent of the code under test. */
#ifndef NEAREST_H
#define NEAREST_H

#include <float.h>
#include <stdint.h>

#if LDBL_MANT_DIG == 113
typedef long double quad;
#else
__extension__ typedef __float128 quad;
#endif

typedef enum rule { NEAREST, TOWARD_ZERO, DOWN, UP, TIES_AWAY } rule;

typedef struct format {
    int exponent, fraction;
    uint32_t top;      /* the pattern of the largest finite number */
    uint32_t infinity; /* its pattern, or that of NaN when the format has none */
    uint32_t nan;
} format;

extern const format f16, bf16, e4m3, e5m2;

double format_value(const format *, uint32_t pattern);
/* Returns the pattern nearest to exact + rest. rest is far smaller than the last bit of exact, so
   only its sign matters. */
uint32_t format_round(const format *, quad exact, quad rest, rule, int finite);
/* Returns a + b as an exact sum and a rest. */
quad exact_sum(quad a, quad b, quad *rest);

#endif
