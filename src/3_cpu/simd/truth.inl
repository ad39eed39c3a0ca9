/* any and all of elements of every dtype: an element is yes where a bit of it is 1, other than the sign of a float. Eight bytes at a time, one
   bit of each element tells: the highest, into which the sum of the others and of all ones carries. */
typedef struct V(yes) {
    uint64_t low, top, flip; /* all bits but the highest, that one of whole numbers, all bits when the elements that are no are looked for */
    int size;
} V(yes);

static V(yes) V(yes_of)(const dvti_folding *p) {
    V(yes) t;
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

DVTI_INLINE uint64_t V(look_word)(uint64_t w, const V(yes) * t) {
    return (((w & t->low) + t->low) | (w & t->top)) ^ t->flip;
}

/* seen, or 64 bytes at p */
DVTI_INLINE V(l) V(look)(V(l) seen, const void *p, const V(yes) * t) {
    const V(l) w = V(as_l)(V(dload)((const double *)p)), low = V(lset)((int64_t)t->low);
    const V(l) carry = V(ladd)(V(land)(w, low), low);
    const V(l) yes = V(lor)(carry, V(land)(w, V(lset)((int64_t)t->top)));
    return V(lor)(seen, V(as_l)(V(dxor)(V(as_d)(yes), V(as_d)(V(lset)((int64_t)t->flip)))));
}

/* Is what is looked for among some bytes? */
static bool V(found)(const unsigned char *x, int64_t bytes, const V(yes) * t) {
    uint64_t word[8], seen = 0;
    int64_t k, end;
    int j;
    if (bytes >= 64) {
        for (k = 0; k < bytes && !(seen & ~t->low); k = end) { /* a kilobyte between two decisions */
            V(l) some = V(lset)(0);
            end = DVTI_MIN(k + 1024, bytes);
            for (; k + 64 <= end; k += 64)
                some = V(look)(some, x + k, t);
            if (k < end) /* the last 64 bytes, some of them twice */
                some = V(look)(some, x + end - 64, t);
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
        seen |= V(look_word)(*word, t);
    }
    return (seen & ~t->low) != 0;
}

static void V(truth_rows)(const dvti_folding *folding) {
    const dvti_folding p = *folding;
    const V(yes) t = V(yes_of)(folding);
    const unsigned char *x = (const unsigned char *)p.x;
    int64_t r;
    for (r = 0; r < p.rows; r++, x += p.step * t.size)
        p.value[r] = V(found)(x, p.n * t.size, &t) != (t.flip != 0);
}

/* 64 bytes of each row; of the last ones some twice. Rows that are shorter are copied. */
static void V(truth_columns)(const dvti_folding *folding) {
    const dvti_folding p = *folding;
    const V(yes) t = V(yes_of)(folding);
    const int64_t bytes = p.n * t.size, step = p.step * t.size;
    const uint64_t highest = ~t.low;
    unsigned char few[64] = {0}; /* what lies beyond a short row is looked at and not used */
    int64_t c, at, r, j;
    int k;
    for (c = 0; c < bytes; c += 64) {
        V(l) seen = V(lset)(0);
        const unsigned char *x = (const unsigned char *)p.x;
        at = DVTI_MAX(DVTI_MIN(c, bytes - 64), 0);
        for (r = 0; r < p.rows; r++, x += step)
            if (bytes >= 64)
                seen = V(look)(seen, x + at, &t);
            else
                seen = V(look)(seen, memcpy(few, x, (size_t)bytes), &t);
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
