/* any and all of elements of every dtype. An element is nonzero if one of its bits is 1, except the
   sign of a float. any searches for a nonzero element, all for a zero one. The search works on
   64-bit words. Adding all ones to the lower bits of an element carries into its highest bit if one
   of them is 1:

     element of 8 bits     0000 0100      0000 0000
     + 0111 1111           1000 0011      0111 1111
     highest bit           1: nonzero     0: zero */
typedef struct V(search) {
    uint64_t low;  /* all bits but the highest of each element */
    uint64_t top;  /* the highest bits, of integers */
    uint64_t flip; /* all bits if zero is searched for, else 0 */
    int size;
} V(search);

static V(search) V(search_of)(const dvti_reduction *p) {
    V(search) t;
    uint64_t highest;
    t.size = (int)dvt_dtype_size(p->dtype);
    highest = t.size == 1   ? UINT64_C(0x8080808080808080)
              : t.size == 2 ? UINT64_C(0x8000800080008000)
              : t.size == 4 ? UINT64_C(0x8000000080000000)
                            : UINT64_C(0x8000000000000000);
    t.low = ~highest;
    t.top = dvt_dtype_is_float(p->dtype) ? 0 : highest;
    t.flip = p->op == DVTI_OP_all ? ~UINT64_C(0) : 0;
    return t;
}

DVTI_INLINE uint64_t V(search_word)(uint64_t w, const V(search) * t) {
    return (((w & t->low) + t->low) | (w & t->top)) ^ t->flip;
}

/* Returns seen | the search result of 64 bytes at p. */
DVTI_INLINE V(l) V(search_64)(V(l) seen, const void *p, const V(search) * t) {
    const V(l) w = V(as_l)(V(dload)((const double *)p)), low = V(lset)((int64_t)t->low);
    const V(l) carry = V(ladd)(V(land)(w, low), low);
    const V(l) nonzero = V(lor)(carry, V(land)(w, V(lset)((int64_t)t->top)));
    return V(lor)(seen, V(as_l)(V(dxor)(V(as_d)(nonzero), V(as_d)(V(lset)((int64_t)t->flip)))));
}

/* Returns whether the searched element is among some bytes. */
static bool V(found)(const unsigned char *x, int64_t bytes, const V(search) * t) {
    uint64_t word[8], seen = 0;
    int64_t k, end;
    int j;
    if (bytes >= 64) {
        for (k = 0; k < bytes && !(seen & ~t->low); k = end) { /* one test per KiB */
            V(l) some = V(lset)(0);
            end = DVTI_MIN(k + 1024, bytes);
            for (; k + 64 <= end; k += 64)
                some = V(search_64)(some, x + k, t);
            if (k < end) /* the last 64 bytes, which overlap others */
                some = V(search_64)(some, x + end - 64, t);
            V(dstore)((double *)(void *)word, V(as_d)(some));
            for (j = 0; j < 8; j++)
                seen |= word[j];
        }
        return (seen & ~t->low) != 0;
    }
    for (k = 0; k < bytes; k += 8) {
        if (bytes >= 8) {
            memcpy(word, x + DVTI_MIN(k, bytes - 8), 8);
        } else {
            *word = t->flip;
            memcpy(word, x, (size_t)bytes);
        }
        seen |= V(search_word)(*word, t);
    }
    return (seen & ~t->low) != 0;
}

static void V(any_all_rows)(const dvti_reduction *given) {
    const dvti_reduction p = *given;
    const V(search) t = V(search_of)(given);
    const unsigned char *x = (const unsigned char *)p.x;
    int64_t r;
    for (r = 0; r < p.rows; r++, x += p.step * t.size)
        p.value[r] = V(found)(x, p.n * t.size, &t) != (t.flip != 0);
}

/* Searches 64 bytes of each row at a time; the last ones overlap others. Shorter rows are
   copied. */
static void V(any_all_columns)(const dvti_reduction *given) {
    const dvti_reduction p = *given;
    const V(search) t = V(search_of)(given);
    const int64_t bytes = p.n * t.size, step = p.step * t.size;
    const uint64_t highest = ~t.low;
    unsigned char few[64] = {0}; /* bytes after a short row do not count */
    int64_t c, at, r, j;
    int k;
    for (c = 0; c < bytes; c += 64) {
        V(l) seen = V(lset)(0);
        const unsigned char *x = (const unsigned char *)p.x;
        at = DVTI_MAX(DVTI_MIN(c, bytes - 64), 0);
        for (r = 0; r < p.rows; r++, x += step)
            if (bytes >= 64)
                seen = V(search_64)(seen, x + at, &t);
            else
                seen = V(search_64)(seen, memcpy(few, x, (size_t)bytes), &t);
        V(dstore)((double *)(void *)few, V(as_d)(V(land)(seen, V(lset)((int64_t)highest))));
        for (j = 0; j < DVTI_MIN(bytes, 64) / t.size; j++) {
            unsigned char hit = 0;
            for (k = 0; k < t.size; k++)
                hit |= few[j * t.size + k];
            if (hit)
                p.value[at / t.size + j] = t.flip == 0;
        }
    }
}
