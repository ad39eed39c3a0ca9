/* Bounds and selection for cpu_topk.c: kth_bound finds a bound that few elements pass, above
   collects those that do. */

/* Returns the k-th of the maxima of 16, 32 or 64 lanes. Each maximum is an element of its own, so
   at least k elements are not worse. */
static float V(kth_bound)(const float *x, int64_t n, int64_t k, bool below) {
    const V(f) sign = V(set)(below ? -0.f : 0.f);
    const int vectors = k <= 12 ? 1 : k <= 24 ? 2 : 4;
    V(f) peak[4];
    float lane[16];
    int64_t i;
    int v, w, j;
    if (n < 64 || k > 40)
        return NAN;
    DVTI_UNROLL
    for (v = 0; v < 4; v++)
        peak[v] = V(bit_xor)(V(load)(x + 16 * v), sign);
    for (i = 64; i + 64 <= n; i += 64)
        DVTI_UNROLL
        for (v = 0; v < 4; v++)
            peak[v] = V(max)(V(bit_xor)(V(load)(x + i + 16 * v), sign), peak[v]);
    for (; i + 16 <= n; i += 16)
        peak[0] = V(max)(V(bit_xor)(V(load)(x + i), sign), peak[0]);
    if (vectors < 4) {
        peak[0] = V(max)(peak[0], peak[2]);
        peak[1] = V(max)(peak[1], peak[3]);
    }
    if (vectors < 2)
        peak[0] = V(max)(peak[0], peak[1]);
    for (v = 0; v < vectors; v++) {
        V(store)(lane, peak[v]);
        for (j = 0; j < 16; j++) {
            const V(f) own = V(set)(lane[j]);
            int better = 0, no_worse = 0;
            for (w = 0; w < vectors; w++) {
                better += dvti_count_bits(V(mbits)(V(lt)(own, peak[w])));
                no_worse += dvti_count_bits(V(mbits)(V(le)(own, peak[w])));
            }
            if (better < k && no_worse >= k)
                return below ? -lane[j] : lane[j];
        }
    }
    return NAN;
}

/* Returns a bit for each of 16 elements above `most`; NaN is above everything. */
DVTI_INLINE uint32_t V(bits_above)(V(f) v, V(f) sign, V(f) most) {
    return ~V(mbits)(V(le)(V(bit_xor)(v, sign), most)) & 0xffff;
}

/* Writes the indices of elements beyond a bound: the few of a long row that may be among its first
   k. Most groups of 32 have none, and cost one branch. With one branch per vector, the alignment of
   the loop decided over 25 % of its speed (Zen 5). */
static int64_t V(above)(const float *x, int64_t n, float bound, bool below, uint16_t *at) {
    const V(f) sign = V(set)(below ? -0.f : 0.f), most = V(bit_xor)(V(set)(bound), sign);
    int64_t i = 0, found = 0;
    for (; i + 32 <= n; i += 32) {
        uint32_t bits = V(bits_above)(V(load)(x + i), sign, most) |
                        V(bits_above)(V(load)(x + i + 16), sign, most) << 16;
        for (; bits; bits &= bits - 1)
            at[found++] = (uint16_t)(i + dvti_lowest_bit(bits));
    }
    for (; i < n; i += 16) {
        uint32_t bits = V(bits_above)(V(load_or)(x + i, n - i, bound), sign, most);
        for (; bits; bits &= bits - 1)
            at[found++] = (uint16_t)(i + dvti_lowest_bit(bits));
    }
    return found;
}
