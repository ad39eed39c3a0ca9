/* Rows of an array side by side: 16 columns, and no branch that depends on one of them. */

/* NaN and -0, about whose places floats' comparisons do not decide. */
DVTI_INLINE V(m) V(undecided)(V(f) x) {
    const V(i) v = V(as_i)(x), size = V(iand)(v, V(iset)(0x7fffffff));
    return V(mor)(V(igt)(size, V(iset)(0x7f800000)), V(ieq)(v, V(iset)(INT32_MIN)));
}

/* Sorts 16 columns of n floats each, x[n][16], by a network of exchanges between rows. False, and nothing is done: there is a NaN or a -0.
   Source: Batcher's merge exchange, Knuth, "The Art of Computer Programming" 3, 5.2.2 M. */
static bool V(sort_columns)(float *x, int64_t n, bool descending) {
    V(m) special = V(igt)(V(iset)(0), V(iset)(0));
    int64_t i, j, p, q, r, d, first = 1;
    for (i = 0; i < n; i++)
        special = V(mor)(special, V(undecided)(V(load)(x + 16 * i)));
    if (V(mbits)(special))
        return false;
    while (2 * first < n)
        first *= 2;
    for (p = first; p > 0; p /= 2)
        for (q = first, r = 0, d = p;; d = q - p, q /= 2, r = p) {
            float *low = descending ? x + 16 * d : x, *high = descending ? x : x + 16 * d;
            for (i = r; i < n - d; i += 2 * p)
                for (j = i; j < DVTI_MIN(i + p, n - d); j++) {
                    const V(f) a = V(load)(low + 16 * j), b = V(load)(high + 16 * j);
                    V(store)(low + 16 * j, V(min)(a, b));
                    V(store)(high + 16 * j, V(max)(a, b));
                }
            if (q == p)
                break;
        }
    return true;
}

/* The k best of 16 columns so far, value[k][16] in order and their numbers at[k][16], go on with n rows x[n][16] that are numbered from `number`
   on. A value that is NaN is none yet. Where an element is worse than, or equal to, the one above, that is where it comes in. False: there is
   a NaN or a -0; then value and at are of no use. */
static bool V(best_of_columns)(const float *x, int64_t n, int32_t number, int64_t k, bool below,
                               float *value, int32_t *at) {
    const V(f) sign = V(set)(below ? -0.f : 0.f);
    V(m) special = V(igt)(V(iset)(0), V(iset)(0));
    int64_t i, j;
    for (i = 0; i < n; i++) {
        const V(f) given = V(load)(x + 16 * i), own = V(bit_xor)(given, sign);
        const V(i) which = V(iset)(number + (int32_t)i);
        V(f) v = V(load)(value + 16 * (k - 1));
        V(i) w = V(iload)(at + 16 * (k - 1));
        V(m) stays = V(le)(own, v);
        special = V(mor)(special, V(undecided)(given));
        if (V(mbits)(stays) == 0xffff)
            continue;
        for (j = k - 1; j > 0; j--) {
            const V(f) above = V(load)(value + 16 * (j - 1));
            const V(i) above_at = V(iload)(at + 16 * (j - 1));
            const V(m) after = V(le)(own, above);
            V(store)(value + 16 * j, V(select)(stays, v, V(select)(after, own, above)));
            V(istore)(at + 16 * j, V(iselect)(stays, w, V(iselect)(after, which, above_at)));
            v = above;
            w = above_at;
            stays = after;
        }
        V(store)(value, V(select)(stays, v, own));
        V(istore)(at, V(iselect)(stays, w, which));
    }
    return !V(mbits)(special);
}
