/* Reduces an angle of any size to |r| <= pi / 4 exactly (Payne and Hanek), where the subtraction in
   angles.inl would lose digits. Plain C of one float, compiled without contraction. */

/* Returns the quarter turns of x = m 2^e, and the rest. Skips the bits of 2 / pi that contribute
   multiples of 4 quarter turns. The next 96 give the product's fraction of a turn to 2^-70. No
   float is nearer to a multiple of pi / 2 than 2^-31. */
DVTI_INLINE int32_t dvti_quarter_turns(float x, double *rest) {
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

/* Reduces x = quarters pi / 2 + rest + low, |x| > 2^15. An infinite x gives NaN. */
DVTI_INLINE int32_t dvti_reduce_angle(float x, float *rest, float *low) {
    int32_t quarters;
    double r;
    if (!(fabsf(x) <= FLT_MAX)) {
        *rest = *low = x - x;
        return 0;
    }
    quarters = dvti_quarter_turns(x, &r);
    r = x < 0 ? -r : r;
    *rest = (float)r;
    *low = (float)(r - (double)*rest);
    return x < 0 ? -quarters : quarters;
}
