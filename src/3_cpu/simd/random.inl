/* Philox 4x32-10 for 16 counters at a time: uniform, normal and bernoulli in float32, with the bits
   of cpu_random.c. One group is the four 32-bit outputs of a counter:

     registers      w[0]  a0 a1 a2 ..     lane i has group V(group_of_lane)(i)
                    w[1]  b0 b1 b2 ..
                    w[2]  c0 c1 c2 ..     V(store4)
                    w[3]  d0 d1 d2 ..     ---------->   memory  a b c d | a b c d | .. */
typedef struct V(words) {
    V(i) w[4];
} V(words);

/* Shared by all groups of a launch: the upper two numbers of the counters, and the key of each
   round. */
typedef struct V(rounds) {
    V(l) place[2], key[10][2];
} V(rounds);

DVTI_INLINE V(l) V(upper_word)(int64_t i) {
    return V(lset)((int64_t)((uint64_t)i >> 32));
}

DVTI_INLINE V(l) V(lower_word)(int64_t i) {
    return V(lset)(i & 0xffffffff);
}

DVTI_INLINE void V(rounds_of)(const dvti_launch *launch, V(rounds) * r) {
    int i;
    r->place[0] = V(upper_word)(launch->i[3]);
    r->place[1] = V(lower_word)(launch->i[3]);
    r->key[0][0] = V(upper_word)(launch->i[1]);
    r->key[0][1] = V(lower_word)(launch->i[1]);
    for (i = 1; i < 10; i++) {
        r->key[i][0] = V(ladd)(r->key[i - 1][0], V(lset)(0x9E3779B9));
        r->key[i][1] = V(ladd)(r->key[i - 1][1], V(lset)(0xBB67AE85));
    }
}

/* Computes 16 groups from index `at` on, even and odd lanes apart. A number is the lower half of a
   64-bit lane, as V(lmul) needs it; the upper half is ignored. Source: Salmon, Moraes, Dror, Shaw:
   Parallel random numbers: as easy as 1, 2, 3. SC 2011. */
DVTI_INLINE V(words) V(philox)(uint64_t at, const V(rounds) * rounds) {
    const V(l) factor0 = V(lset)(0xD2511F53), factor1 = V(lset)(0xCD9E8D57);
    const V(l) lower = V(lset)(0xffffffff);
    V(l) w[2][4], product0, product1;
    const int first = DVTI_BIG_ENDIAN; /* the lower half of an int64 is the even lane, or on
                                          big-endian the odd one */
    int64_t groups[8];
    V(words) r;
    int i, k;
    DVTI_UNROLL
    for (k = 0; k < 2; k++) {
        for (i = 0; i < 8; i++)
            groups[i] = V(group_of_lane)(2 * i + k);
        w[k][0] = V(ladd)(V(lset)((int64_t)at), V(lload)(groups));
        w[k][1] = V(lshr)(w[k][0], 32);
        w[k][2] = rounds->place[0];
        w[k][3] = rounds->place[1];
    }
    DVTI_REPEAT(10)
    for (i = 0; i < 10; i++) {
        DVTI_UNROLL
        for (k = 0; k < 2; k++) {
            product0 = V(lmul)(w[k][0], factor0);
            product1 = V(lmul)(w[k][2], factor1);
            w[k][0] = V(lxor)(V(lxor)(V(lshr)(product1, 32), w[k][1]), rounds->key[i][0]);
            w[k][1] = product1;
            w[k][2] = V(lxor)(V(lxor)(V(lshr)(product0, 32), w[k][3]), rounds->key[i][1]);
            w[k][3] = product0;
        }
    }
    DVTI_UNROLL
    for (k = 0; k < 4; k++)
        r.w[k] = V(l_as_i)(V(lor)(V(land)(w[first][k], lower), V(lshl)(w[!first][k], 32)));
    return r;
}

/* Returns low + u * (high - low) computed in double, at most the largest result. */
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

/* Returns 1 where w < p * 2^32, else 0. Comparisons are signed, so both sides are moved by 2^31. */
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

/* Computes groups first..first + 15 of a launch as 64 floats. */
DVTI_INLINE void V(random_block)(const dvti_launch *launch, const V(rounds) * rounds, int64_t first,
                                 int32_t *to) {
    V(words) r = V(philox)((uint64_t)launch->i[2] + (uint64_t)first, rounds);
    int k;
    if (launch->op == DVTI_OP_normal) {
        const V(f) mean = V(set)((float)launch->f[0]), deviation = V(set)((float)launch->f[1]);
        V(f) even, odd;
        for (k = 0; k < 4; k += 2) {
            V(normal_pair)(r.w[k], r.w[k + 1], mean, deviation, &even, &odd);
            r.w[k] = V(as_i)(even);
            r.w[k + 1] = V(as_i)(odd);
        }
    } else if (launch->op == DVTI_OP_uniform) {
        for (k = 0; k < 4; k++)
            r.w[k] = V(uniform)(r.w[k], launch);
    } else {
        for (k = 0; k < 4; k++)
            r.w[k] = V(bernoulli)(r.w[k], launch->f[0] * 4294967296.0);
    }
    V(store4)(to, r.w[0], r.w[1], r.w[2], r.w[3]);
}

/* Writes elements from 4 * first on to `to`. The array may end within the last group. */
static void V(random_f32)(const dvti_launch *launch, int64_t first, int64_t end, float *to) {
    int64_t left = DVTI_MIN(4 * end, launch->i[6]) - 4 * first;
    int32_t last[64];
    V(rounds) rounds;
    V(rounds_of)(launch, &rounds);
    for (; left > 0; first += 16, to += 64, left -= 64) {
        V(random_block)(launch, &rounds, first, left >= 64 ? (int32_t *)(void *)to : last);
        if (left < 64)
            memcpy(to, last, (size_t)left * sizeof *to);
    }
}
