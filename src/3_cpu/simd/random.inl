/* Philox 4x32-10 for 16 counters at a time: uniform, normal and bernoulli in float32, with the bits of ref_random.c (normal: up to the last
   place of double's logarithm, sine and cosine, which almost never reaches a float). Lanes hold the counters in the order in which
   V(store4) puts their words into memory one after the other. */
typedef struct V(words) {
    V(i) w[4];
} V(words);

/* The words of 16 groups, from number `at` on, the even and the odd lanes' by themselves: a word is the lower half of a lane, as products
   want it; above it stands what nobody reads. Source: Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3. SC 2011. */
DVTI_INLINE V(words) V(philox)(uint64_t at, const uint32_t place[2], const uint32_t key[2]) {
    const V(l) factor0 = V(lset)(0xD2511F53), factor1 = V(lset)(0xCD9E8D57);
    const V(l) step0 = V(lset)(0x9E3779B9), step1 = V(lset)(0xBB67AE85), lower = V(lset)(0xffffffff);
    V(l) key0 = V(lset)(key[0]), key1 = V(lset)(key[1]), w[2][4], product0, product1;
    int64_t groups[8];
    V(words) r;
    int i, k;
    DVTI_UNROLL
    for (k = 0; k < 2; k++) {
        for (i = 0; i < 8; i++)
            groups[i] = V(group_of_lane)(2 * i + k);
        w[k][0] = V(ladd)(V(lset)((int64_t)at), V(lload)(groups));
        w[k][1] = V(lshr)(w[k][0], 32);
        w[k][2] = V(lset)(place[0]);
        w[k][3] = V(lset)(place[1]);
    }
    for (i = 0; i < 10; i++) {
        DVTI_UNROLL
        for (k = 0; k < 2; k++) {
            product0 = V(lmul)(w[k][0], factor0);
            product1 = V(lmul)(w[k][2], factor1);
            w[k][0] = V(lxor)(V(lxor)(V(lshr)(product1, 32), w[k][1]), key0);
            w[k][1] = product1;
            w[k][2] = V(lxor)(V(lxor)(V(lshr)(product0, 32), w[k][3]), key1);
            w[k][3] = product0;
        }
        key0 = V(ladd)(key0, step0);
        key1 = V(ladd)(key1, step1);
    }
    DVTI_UNROLL
    for (k = 0; k < 4; k++)
        r.w[k] = V(l_as_i)(V(lor)(V(land)(w[0][k], lower), V(lshl)(w[1][k], 32)));
    return r;
}

/* Two halves of 8 doubles. */
typedef struct V(dd) {
    V(d) low, high;
} V(dd);

/* Numbers of 32 bits, with sign or without, exactly: they have no float, but their halves do. */
DVTI_INLINE V(dd) V(wide)(V(i) w, bool with_sign) {
    const V(d) upper = V(dset)(65536);
    V(f) a = V(to_f)(with_sign ? V(isar)(w, 16) : V(ishr)(w, 16));
    V(f) b = V(to_f)(V(iand)(w, V(iset)(0xffff)));
    V(dd) r;
    r.low = V(dfma)(V(widen_low)(a), upper, V(widen_low)(b));
    r.high = V(dfma)(V(widen_high)(a), upper, V(widen_high)(b));
    return r;
}

/* The Box-Muller transform: two normal numbers of 16 pairs of words. */
DVTI_INLINE void V(normal_pair)(V(i) first, V(i) second, const dvti_launch *launch, V(i) * even,
                                V(i) * odd) {
    const V(d) mean = V(dset)(launch->f[0]), deviation = V(dset)(launch->f[1]);
    const V(d) scale = V(dset)(1.0 / 4294967296.0), minus_two = V(dset)(-2), one = V(dset)(1);
    V(i) quarter = V(ishr)(V(iadd)(second, V(iset)(0x20000000)), 30);
    V(dd) u = V(wide)(first, false), rest = V(wide)(V(isub)(second, V(ishl)(quarter, 30)), true);
    V(f) q = V(to_f)(quarter);
    V(d) x[2], y[2], r;
    r = V(dlog_normal)(V(dmul)(V(dadd)(u.low, one), scale));
    r = V(dmul)(deviation, V(dsqrt)(V(dmul)(minus_two, r)));
    V(dpolar)(r, rest.low, V(widen_low)(q), &x[0], &y[0]);
    r = V(dlog_normal)(V(dmul)(V(dadd)(u.high, one), scale));
    r = V(dmul)(deviation, V(dsqrt)(V(dmul)(minus_two, r)));
    V(dpolar)(r, rest.high, V(widen_high)(q), &x[1], &y[1]);
    *even = V(as_i)(V(narrow)(V(dadd)(mean, x[0]), V(dadd)(mean, x[1])));
    *odd = V(as_i)(V(narrow)(V(dadd)(mean, y[0]), V(dadd)(mean, y[1])));
}

/* low + u * (high - low) in double, at most the largest result. */
DVTI_INLINE V(i) V(uniform)(V(i) w, const dvti_launch *launch) {
    const V(d) low = V(dset)(launch->f[0]), range = V(dset)(launch->f[1] - launch->f[0]);
    const V(d) largest = V(dset)(launch->f[2]);
    V(f) u = V(mul)(V(to_f)(V(ishr)(w, 8)), V(set)(1.0f / 16777216.0f));
    V(d) a, b;
    if (launch->f[0] == 0 && launch->f[1] == 1) /* then nothing rounds */
        return V(as_i)(u);
    a = V(dmin)(V(dadd)(low, V(dmul)(V(widen_low)(u), range)), largest);
    b = V(dmin)(V(dadd)(low, V(dmul)(V(widen_high)(u), range)), largest);
    return V(as_i)(V(narrow)(a, b));
}

/* 1 where w < p * 2^32; comparing needs a sign, so both are moved by 2^31. */
DVTI_INLINE V(i) V(bernoulli)(V(i) w, double threshold) {
    const V(i) one = V(as_i)(V(set)(1)), none = V(iset)(0), middle = V(iset)(INT32_MIN);
    double limit = ceil(threshold);
    V(i) bound;
    if (!(limit > 0))
        return none;
    if (limit >= 4294967296.0)
        return one;
    bound = V(ixor)(V(iset)((int32_t)(uint32_t)limit), middle);
    return V(iselect)(V(igt)(bound, V(ixor)(w, middle)), one, none);
}

/* Groups first..first + 15 of a launch of Philox, as 64 floats. */
DVTI_INLINE void V(random_block)(const dvti_launch *launch, int64_t first, int32_t *to) {
    uint64_t key_bits = (uint64_t)launch->i[1], place_bits = (uint64_t)launch->i[3];
    uint32_t key[2], place[2];
    V(words) r;
    int k;
    key[0] = (uint32_t)(key_bits >> 32);
    key[1] = (uint32_t)key_bits;
    place[0] = (uint32_t)(place_bits >> 32);
    place[1] = (uint32_t)place_bits;
    r = V(philox)((uint64_t)launch->i[2] + (uint64_t)first, place, key);
    if (launch->op == DVTI_OP_normal) {
        V(normal_pair)(r.w[0], r.w[1], launch, &r.w[0], &r.w[1]);
        V(normal_pair)(r.w[2], r.w[3], launch, &r.w[2], &r.w[3]);
    } else if (launch->op == DVTI_OP_uniform) {
        for (k = 0; k < 4; k++)
            r.w[k] = V(uniform)(r.w[k], launch);
    } else {
        for (k = 0; k < 4; k++)
            r.w[k] = V(bernoulli)(r.w[k], launch->f[0] * 4294967296.0);
    }
    V(store4)(to, r.w[0], r.w[1], r.w[2], r.w[3]);
}

/* Elements 4 * first.. of out[0], which is float32; groups of 4, the last one may be cut by the array's end. */
static void V(random_f32)(const dvti_launch *launch, int64_t first, int64_t end) {
    int64_t n = launch->i[6];
    int32_t last[64];
    for (; first < end; first += 16) {
        float *to = (float *)launch->out[0].data + 4 * first;
        int64_t here = DVTI_MIN(4 * (end - first), n - 4 * first);
        V(random_block)(launch, first, here >= 64 ? (int32_t *)(void *)to : last);
        if (here < 64)
            memcpy(to, last, (size_t)here * sizeof *to);
    }
}
