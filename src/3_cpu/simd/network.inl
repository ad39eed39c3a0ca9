/* Sorts 16 columns of n floats each, x[n][16], by a network of exchanges between rows: no branch depends on an element. False, and nothing is
   done: there is a NaN or a -0, about whose places floats' comparisons do not decide.
   Source: Batcher's merge exchange, Knuth, "The Art of Computer Programming" 3, 5.2.2 M. */
static bool V(sort_columns)(float *x, int64_t n, bool descending) {
    const V(i) size = V(iset)(0x7fffffff), infinity = V(iset)(0x7f800000);
    V(m) special = V(igt)(V(iset)(0), V(iset)(0));
    int64_t i, j, p, q, r, d, first = 1;
    for (i = 0; i < n; i++) {
        const V(i) v = V(as_i)(V(load)(x + 16 * i));
        special = V(mor)(special, V(mor)(V(igt)(V(iand)(v, size), infinity),
                                         V(ieq)(v, V(iset)(INT32_MIN))));
    }
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
