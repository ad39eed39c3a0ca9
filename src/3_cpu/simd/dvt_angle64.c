/* Reduces doubles of any size to |r| <= pi / 4 exactly, as dvt_angle.c does for floats. */
#include "1_base/dvt_fma.h"
#include "3_cpu/simd/dvt_simd.h"

/* Returns the quarter turns of x = m 2^e, with an integer m of 53 bits, and the rest (Payne and
   Hanek). Skips the bits of 2 / pi that contribute multiples of 4 quarter turns. The next 192 bits
   give the product's fraction of a turn to 2^-139. No double is nearer to a multiple of pi / 2 than
   2^-62.

     2 / pi  .1010001011111001100000110110...
              |<- skipped ->|<- 192 bits: * m = quarters (2 bits) and the fraction ->| */
static double dvti_quarter_turns64(double x, double *rest, double *low) {
    /* 2 / pi, after 32 zeros */
    static const uint32_t digits[] = {
        0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u,
        0xfe5163abu, 0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu,
        0xb129a73eu, 0xe88235f5u, 0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u,
        0x9c845f8bu, 0xbdf9283bu, 0x1ff897ffu, 0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu,
        0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du, 0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau,
        0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u, 0xfc7b6babu, 0xf0cfbc20u, 0x9af4361du};
    uint32_t turn[6] = {0}, factor[2]; /* least digit first */
    uint64_t bits, high, mid, carry, quarters;
    double scale = 1, first, second;
    bool negative;
    int skip, i, j;
    memcpy(&bits, &x, sizeof bits);
    skip = (int)(bits >> 52 & 0x7ff) - 1075 + 30;
    bits = (bits & UINT64_C(0xfffffffffffff)) | UINT64_C(0x10000000000000);
    factor[0] = (uint32_t)bits;
    factor[1] = (uint32_t)(bits >> 32);
    for (i = 0; i < 2; i++)
        for (carry = 0, j = 0; i + j < 6; j++) {
            const uint32_t *at = digits + (skip >> 5) + 5 - j;
            uint64_t pair = (uint64_t)at[0] << 32 | at[1];
            carry += (uint64_t)factor[i] * (uint32_t)(pair >> (32 - (skip & 31))) + turn[i + j];
            turn[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
    high = (uint64_t)turn[5] << 32 | turn[4];
    quarters = (high + (UINT64_C(1) << 61)) >> 62;
    high -= quarters << 62;
    negative = high >> 63;
    if (negative) { /* below the multiple: invert all digits, which is 2^-192 too little */
        high = ~high;
        for (i = 0; i < 4; i++)
            turn[i] = ~turn[i];
    }
    mid = (uint64_t)turn[3] << 32 | turn[2];
    carry = (uint64_t)turn[1] << 32 | turn[0];
    while (!(high >> 63) && scale > 1e-30) { /* 100 digits more than any double needs */
        high = high << 1 | mid >> 63;
        mid = mid << 1 | carry >> 63;
        carry <<= 1;
        scale *= 0.5;
    }
    /* 53 bits and then 64, in units of a turn */
    first = (double)(high >> 11) * 1.1102230246251565e-16 * scale;
    second = (double)(high << 53 | mid >> 11) * 6.0185310762101121e-36 * scale;
    first = negative ? -first : first;
    second = negative ? -second : second;
    *rest = first * 6.2831853071795862;
    *low = dvti_fma(first, 6.2831853071795862, -*rest) +
           (first * 2.4492935982947064e-16 + second * 6.2831853071795862);
    return (double)quarters;
}

DVTI_FN void dvti_reduce_angles64(const double *x, double *rest, double *low, double *quarters) {
    int k;
    for (k = 0; k < 8; k++) {
        if (!(fabs(x[k]) > DVTI_ANGLE64_MOST))
            continue;
        if (fabs(x[k]) > DBL_MAX) {
            rest[k] = low[k] = x[k] - x[k]; /* NaN */
            quarters[k] = 0;
            continue;
        }
        quarters[k] = dvti_quarter_turns64(x[k], &rest[k], &low[k]);
        if (x[k] < 0) {
            quarters[k] = -quarters[k];
            rest[k] = -rest[k];
            low[k] = -low[k];
        }
    }
}
