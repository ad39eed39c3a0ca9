/* Big integers of a fixed size, for exact conversions between binary and decimal numbers. */
#include "5_io/dvt_io_internal.h"

DVTI_FN void dvti_big_set(dvti_big *x, uint64_t value) {
    x->word[0] = (uint32_t)value;
    x->word[1] = (uint32_t)(value >> 32);
    x->n = value >> 32 ? 2 : value ? 1 : 0;
}

DVTI_FN void dvti_big_copy(dvti_big *to, const dvti_big *from) {
    to->n = from->n;
    memcpy(to->word, from->word, sizeof from->word[0] * (size_t)from->n);
}

DVTI_FN int dvti_big_bits(const dvti_big *x) {
    int bits = 32 * (x->n - 1);
    uint32_t top;
    if (!x->n)
        return 0;
    for (top = x->word[x->n - 1]; top; top >>= 1)
        bits++;
    return bits;
}

DVTI_FN void dvti_big_shift(dvti_big *x, int bits) {
    int words = bits / 32, rest = bits % 32, i;
    uint32_t carry = 0;
    if (!x->n || !bits)
        return;
    for (i = 0; rest && i < x->n; i++) {
        uint32_t w = x->word[i];
        x->word[i] = w << rest | carry;
        carry = w >> (32 - rest);
    }
    if (carry)
        x->word[x->n++] = carry;
    memmove(x->word + words, x->word, sizeof x->word[0] * (size_t)x->n);
    memset(x->word, 0, sizeof x->word[0] * (size_t)words);
    x->n += words;
}

DVTI_FN void dvti_big_times(dvti_big *x, uint32_t factor) {
    uint64_t carry = 0;
    int i;
    for (i = 0; i < x->n; i++) {
        carry += (uint64_t)x->word[i] * factor;
        x->word[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry)
        x->word[x->n++] = (uint32_t)carry;
}

DVTI_FN void dvti_big_times_power_of_10(dvti_big *x, int power) {
    for (; power >= 9; power -= 9)
        dvti_big_times(x, 1000000000u);
    for (; power > 0; power--)
        dvti_big_times(x, 10);
}

DVTI_FN int dvti_big_compare(const dvti_big *a, const dvti_big *b) {
    int i;
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    for (i = a->n - 1; i >= 0; i--)
        if (a->word[i] != b->word[i])
            return a->word[i] < b->word[i] ? -1 : 1;
    return 0;
}

DVTI_FN void dvti_big_add(dvti_big *x, const dvti_big *y) {
    uint64_t carry = 0;
    int i;
    for (i = 0; i < x->n || i < y->n || carry; i++) {
        carry += (uint64_t)(i < x->n ? x->word[i] : 0) + (i < y->n ? y->word[i] : 0);
        x->word[i] = (uint32_t)carry;
        carry >>= 32;
        if (i >= x->n)
            x->n = i + 1;
    }
}

DVTI_FN void dvti_big_subtract(dvti_big *x, const dvti_big *y) {
    uint64_t borrow = 0;
    int i;
    for (i = 0; i < x->n; i++) {
        uint64_t difference = (uint64_t)x->word[i] - (i < y->n ? y->word[i] : 0) - borrow;
        x->word[i] = (uint32_t)difference;
        borrow = difference >> 63;
    }
    while (x->n && !x->word[x->n - 1])
        x->n--;
}
