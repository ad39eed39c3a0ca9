/* Partial vectors: the tails of loops. n may be larger than a vector, which is then whole. Lanes
   from n on are 0 in V(load_upto), `other` in V(load_or). */
DVTI_INLINE V(f) V(load_upto)(const float *x, int64_t n) {
    return n >= 16 ? V(load)(x) : V(load_n)(x, n);
}

DVTI_INLINE V(d) V(dload_upto)(const double *x, int64_t n) {
    return n >= 8 ? V(dload)(x) : V(dload_n)(x, n);
}

DVTI_INLINE void V(store_upto)(float *x, int64_t n, V(f) a) {
    if (n >= 16)
        V(store)(x, a);
    else
        V(store_n)(x, n, a);
}

DVTI_INLINE V(d) V(dload_or)(const double *x, int64_t n, double other) {
    static const double number[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    if (n >= 8)
        return V(dload)(x);
    return V(dselect)(V(dlt)(V(dload)(number), V(dset)((double)n)), V(dload_n)(x, n), V(dset)(other));
}

DVTI_INLINE V(f) V(load_or)(const float *x, int64_t n, float other) {
    static const int32_t number[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    if (n >= 16)
        return V(load)(x);
    return V(select)(V(igt)(V(iset)((int32_t)n), V(iload)(number)), V(load_n)(x, n), V(set)(other));
}
