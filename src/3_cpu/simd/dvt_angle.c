/* Angles of any size, brought into an eighth of a turn exactly (Payne and Hanek): what the tiers' sine, cosine and tangent call for lanes
   where the usual subtraction of multiples of pi / 2 loses digits. One function for all tiers, so that they agree. */
#include "3_cpu/simd/dvt_simd.h"

/* x = m 2^e. Of 2 / pi the bits that make multiples of 4 quarter turns are left out, the next 96 give the product's place in the turn to
   2^-70 of it; no float comes nearer to a multiple of pi / 2 than 2^-31. */
static int32_t dvti_quarter_turns(float x, double *rest) {
    /* 2 / pi, after 32 zeros */
    static const uint32_t digits[] = {0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                      0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};
    uint32_t bits, m, quarters;
    uint64_t high, low, turn;
    int skip, word, shift;
    memcpy(&bits, &x, sizeof bits);
    m = (bits & 0x7fffff) | 0x800000;
    skip = (int)(bits >> 23 & 0xff) - 150 + 30;
    word = skip >> 5;
    shift = skip & 31;
    high = (uint64_t)digits[word] << 32 | digits[word + 1];
    low = (uint64_t)digits[word + 2] << 32 | digits[word + 3];
    if (shift) {
        high = high << shift | low >> (64 - shift);
        low <<= shift;
    }
    turn = m * high + ((m * (low >> 32)) >> 32);
    quarters = (uint32_t)((turn + ((uint64_t)1 << 61)) >> 62);
    turn -= (uint64_t)quarters << 62;
    *rest = (double)(int64_t)turn * 3.4061215800304474e-19; /* 2 pi / 2^64 */
    return (int32_t)quarters;
}

DVTI_FN void dvti_reduce_angles(const float *x, float *rest, float *low, int32_t *quarters) {
    int k;
    for (k = 0; k < 16; k++) {
        double r;
        if (!(fabsf(x[k]) > DVTI_ANGLE_MOST))
            continue;
        if (fabsf(x[k]) > FLT_MAX) {
            rest[k] = low[k] = x[k] - x[k]; /* NaN */
            continue;
        }
        quarters[k] = dvti_quarter_turns(x[k], &r);
        if (x[k] < 0) {
            quarters[k] = -quarters[k];
            r = -r;
        }
        rest[k] = (float)r;
        low[k] = (float)(r - (double)rest[k]);
    }
}
