/* Picks the elements beyond a bound: the few of a long row that may be among its first k (cpu_topk.c). Most vectors have none, and cost a
   comparison and a branch. */
static int64_t V(beyond)(const float *x, int64_t n, float bound, bool below, uint16_t *at) {
    const V(f) sign = V(set)(below ? -0.f : 0.f), most = V(bit_xor)(V(set)(bound), sign);
    int64_t i, found = 0;
    for (i = 0; i < n; i += 16) {
        const V(f) v = V(load_or)(x + i, n - i, bound);
        uint32_t bits = ~V(mbits)(V(le)(V(bit_xor)(v, sign), most)) & 0xffff;
        for (; bits; bits &= bits - 1)
            at[found++] = (uint16_t)(i + dvti_lowest_bit(bits));
    }
    return found;
}
