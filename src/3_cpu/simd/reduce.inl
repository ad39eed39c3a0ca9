/* Reductions of float: runs of one result (rows); reduce_columns.inl has neighbouring results. Sums of four elements, eight of 16 bits, are
   formed in float, sums of those in double: as fast as float alone, and the error does not grow with the length. Squares and products are
   double at once, because they leave float's range. */

#define DVTI_FOLD_BLOCK 1024 /* elements whose extreme is known before anybody asks where it stands */
#define DVTI_FOLD_SHORT 256  /* of rows that have 16 in common */
#define DVTI_FOLD_AHEAD 384  /* bytes before which sums ask for a line: 5 % more from the third-level cache, from 700 on a fifth less */

/* n elements of a dtype that sums are formed of in place, from number `at` on; zeros beyond them. */
DVTI_INLINE V(f) V(addend)(const void *x, dvt_dtype dtype, int64_t at, int64_t n) {
    const uint16_t *half = (const uint16_t *)x + at;
    if (dtype == DVT_F32)
        return V(load_upto)((const float *)x + at, n);
    if (dtype == DVT_F16)
        return n >= 16 ? V(load_f16)(half) : V(load_f16_n)(half, n);
    return n >= 16 ? V(load_bf16)(half) : V(load_bf16_n)(half, n);
}

/* They, or the squares of the distances of floats from m; zeros beyond them. */
DVTI_INLINE V(f) V(term)(const void *x, dvt_dtype dtype, int64_t at, int64_t n, const float *mean,
                         V(f) m) {
    V(f) d;
    if (!mean)
        return V(addend)(x, dtype, at, n);
    d = V(sub)(V(load_or)((const float *)x + at, n, *mean), m);
    return V(mul)(d, d);
}

/* Those at, at + step, at + 2 step, at + 3 step. */
DVTI_INLINE V(f) V(sum4)(const void *x, dvt_dtype dtype, int64_t at, int64_t step, int64_t n,
                         const float *mean, V(f) m) {
    V(f) a = V(add)(V(term)(x, dtype, at, n, mean, m), V(term)(x, dtype, at + step, n, mean, m));
    V(f) b = V(add)(V(term)(x, dtype, at + 2 * step, n, mean, m),
                    V(term)(x, dtype, at + 3 * step, n, mean, m));
    return V(add)(a, b);
}

/* Of 64 neighbours. As 32-bit words two of them are floats when half of the bits is taken away. */
DVTI_INLINE V(f) V(words_bf16)(const int32_t *p) {
    const V(i) w = V(iload)(p);
    return V(fma)(V(as_f)(V(ishl)(w, 16)), V(set)(1), V(as_f)(V(iand)(w, V(iset)(-65536))));
}

DVTI_INLINE V(f) V(sum4_bf16)(const void *x, int64_t at) {
    const int32_t *p = (const int32_t *)(const void *)((const uint16_t *)x + at);
    return V(add)(V(words_bf16)(p), V(words_bf16)(p + 16));
}

/* sum + a. Processors that add and multiply in units of their own form a product with 1 beside the sums of floats and the conversions: a third
   faster in the first-level cache. */
DVTI_INLINE V(d) V(dadd_by_fma)(V(d) sum, V(d) a) {
    return V(dfma)(a, V(dset)(1), sum);
}

/* What is left is to put the lanes together. */
DVTI_INLINE V(d) V(fold_row)(const void *x, dvt_dtype dtype, int64_t k, int64_t n,
                             const float *mean) {
    const V(f) m = mean ? V(set)(*mean) : V(zero)();
    const int64_t group = dtype == DVT_F32 ? 64 : 128;
    V(d) low = V(dzero)(), high = V(dzero)();
    V(f) s;
    for (n += k; k + group <= n; k += group) {
        const char *ahead = (const char *)x + k * (256 / group) + DVTI_FOLD_AHEAD;
        DVTI_PREFETCH(ahead);
        DVTI_PREFETCH(ahead + 64);
        DVTI_PREFETCH(ahead + 128);
        DVTI_PREFETCH(ahead + 192);
        if (dtype == DVT_BF16)
            s = V(add)(V(sum4_bf16)(x, k), V(sum4_bf16)(x, k + 64));
        else
            s = V(sum4)(x, dtype, k, 16, 16, mean, m);
        if (dtype == DVT_F16)
            s = V(add)(s, V(sum4)(x, dtype, k + 64, 16, 16, mean, m));
        low = V(dadd_by_fma)(low, V(widen_low)(s));
        high = V(dadd_by_fma)(high, V(widen_high)(s));
    }
    if (k < n) { /* as many at most */
        s = V(term)(x, dtype, k, n - k, mean, m);
        for (k += 16; k < n; k += 16)
            s = V(add)(s, V(term)(x, dtype, k, n - k, mean, m));
        low = V(dadd)(low, V(widen_low)(s));
        high = V(dadd)(high, V(widen_high)(s));
    }
    return V(dadd)(low, high);
}

/* For row r = 0, 1, .. its lanes, which are put together for eight rows at once. */
#define DVTI_FOLD_EACH(row)                                                                        \
    {                                                                                              \
        double lanes[64];                                                                          \
        int64_t r, first;                                                                          \
        for (first = 0; first < p.rows; first += 8) {                                              \
            const int64_t end = DVTI_MIN(first + 8, p.rows);                                       \
            for (r = first; r < end; r++)                                                          \
                V(dstore)(lanes + 8 * (r - first), row);                                           \
            V(dfold_each)(p.op, lanes, end - first, p.value + first);                              \
        }                                                                                          \
    }

DVTI_INLINE void V(fold_rows)(const dvti_folding *folding, dvt_dtype dtype, const float *mean) {
    const dvti_folding p = *folding;
    DVTI_FOLD_EACH(V(fold_row)(p.x, dtype, r * p.step, p.n, mean ? mean + r : NULL))
}

static void V(fold_sum)(const dvti_folding *folding) {
    if (folding->dtype == DVT_F32)
        V(fold_rows)(folding, DVT_F32, NULL);
    else if (folding->dtype == DVT_F16)
        V(fold_rows)(folding, DVT_F16, NULL);
    else
        V(fold_rows)(folding, DVT_BF16, NULL);
}

static void V(fold_spread)(const dvti_folding *folding) {
    V(fold_rows)(folding, DVT_F32, (const float *)folding->mean);
}

static void V(normalize)(const float *x, float *y, int64_t n, const float *gamma,
                         const float *beta, float epsilon) {
    double sum;
    float mean, variance;
    V(f) m, scale, v;
    int64_t k;
    dvti_folding row;
    memset(&row, 0, sizeof row);
    row.dtype = DVT_F32;
    row.x = x;
    row.n = n;
    row.rows = 1;
    row.value = &sum;
    row.mean = &mean;
    V(fold_sum)(&row);
    mean = (float)(sum / (double)n);
    V(fold_spread)(&row);
    variance = (float)(sum / (double)n);
    scale = V(div)(V(set)(1), V(sqrt)(V(add)(V(set)(variance), V(set)(epsilon))));
    m = V(set)(mean);
    for (k = 0; k < n; k += 16) {
        v = V(mul)(V(sub)(V(load_upto)(x + k, n - k), m), scale);
        if (gamma)
            v = V(mul)(v, V(load_upto)(gamma + k, n - k));
        if (beta)
            v = V(add)(v, V(load_upto)(beta + k, n - k));
        V(store_upto)(y + k, n - k, v);
    }
}

DVTI_INLINE V(d) V(row_squares)(const float *x, int64_t n) {
    V(d) low = V(dzero)(), high = V(dzero)(), a, b;
    int64_t k;
    for (k = 0; k < n; k += 16) {
        if (n - k >= 16) {
            DVTI_PREFETCH((const char *)(x + k) + DVTI_FOLD_AHEAD);
            a = V(load_wide)(x + k);
            b = V(load_wide)(x + k + 8);
        } else {
            const V(f) s = V(load_n)(x + k, n - k);
            a = V(widen_low)(s);
            b = V(widen_high)(s);
        }
        low = V(dfma)(a, a, low);
        high = V(dfma)(b, b, high);
    }
    return V(dadd)(low, high);
}

static void V(fold_squares)(const dvti_folding *folding) {
    const dvti_folding p = *folding;
    DVTI_FOLD_EACH(V(row_squares)((const float *)p.x + r * p.step, p.n))
}

DVTI_INLINE V(d) V(row_product)(const float *x, int64_t n) {
    V(d) low = V(dset)(1), high = low, low2 = low, high2 = low;
    int64_t k;
    for (k = 0; k + 32 <= n; k += 32) {
        low = V(dmul)(low, V(load_wide)(x + k));
        high = V(dmul)(high, V(load_wide)(x + k + 8));
        low2 = V(dmul)(low2, V(load_wide)(x + k + 16));
        high2 = V(dmul)(high2, V(load_wide)(x + k + 24));
    }
    for (; k < n; k += 16) {
        V(f) s = V(load_or)(x + k, n - k, 1);
        low = V(dmul)(low, V(widen_low)(s));
        high = V(dmul)(high, V(widen_high)(s));
    }
    return V(dmul)(V(dmul)(low, low2), V(dmul)(high, high2));
}

static void V(fold_product)(const dvti_folding *folding) {
    const dvti_folding p = *folding;
    DVTI_FOLD_EACH(V(row_product)((const float *)p.x + r * p.step, p.n))
}

/* ---- extremes: the largest of x or, of a minimum, of -x, that is x ^ flips. NaN is larger than all; of equals the first one. ---- */
DVTI_INLINE bool V(smallest)(dvti_op op) {
    return op == DVTI_OP_min || op == DVTI_OP_argmin;
}

/* The first of n elements that is `best`, or that is NaN. n when none is. */
static int64_t V(fold_find)(const float *x, int64_t n, float best, bool nan) {
    const V(f) wanted = V(set)(best);
    int64_t at;
    for (at = 0; at + 64 <= n && !nan; at += 64) {
        V(m) a = V(mor)(V(eq)(V(load)(x + at), wanted), V(eq)(V(load)(x + at + 16), wanted));
        V(m) b = V(mor)(V(eq)(V(load)(x + at + 32), wanted), V(eq)(V(load)(x + at + 48), wanted));
        if (V(mbits)(V(mor)(a, b)))
            break;
    }
    for (; at < n; at += 16) {
        V(f) v = V(load_upto)(x + at, n - at);
        uint32_t bits = V(mbits)(nan ? V(unord)(v, v) : V(eq)(v, wanted));
        if (bits)
            return DVTI_MIN(at + dvti_lowest_bit(bits), n);
    }
    return n;
}

/* 1 to DVTI_FOLD_BLOCK elements; false when there is a NaN. */
DVTI_INLINE bool V(fold_block)(const float *x, int64_t n, V(f) flips, V(f) * most) {
    V(f) m0 = V(set)(-INFINITY), m1 = m0, m2 = m0, m3 = m0, a, b, c, d;
    V(m) nan = V(unord)(m0, m0);
    int64_t k;
    for (k = 0; k + 64 <= n; k += 64) {
        a = V(load)(x + k);
        b = V(load)(x + k + 16);
        c = V(load)(x + k + 32);
        d = V(load)(x + k + 48);
        nan = V(mor)(nan, V(mor)(V(unord)(a, b), V(unord)(c, d)));
        m0 = V(max)(V(bit_xor)(a, flips), m0);
        m1 = V(max)(V(bit_xor)(b, flips), m1);
        m2 = V(max)(V(bit_xor)(c, flips), m2);
        m3 = V(max)(V(bit_xor)(d, flips), m3);
    }
    for (; k < n; k += 16) {
        a = V(load_or)(x + k, n - k, *x);
        nan = V(mor)(nan, V(unord)(a, a));
        m0 = V(max)(V(bit_xor)(a, flips), m0);
    }
    *most = V(max)(V(max)(m0, m1), V(max)(m2, m3));
    return !V(mbits)(nan);
}

/* Of 16 rows of n > 0 elements. False: there is a NaN. */
static bool V(fold_short)(const float *x, int64_t step, int64_t n, bool smallest, double *value,
                          int64_t *at) {
    const float sign = smallest ? -0.f : 0.f, beyond = smallest ? INFINITY : -INFINITY;
    const V(f) flips = V(set)(sign);
    float lanes[256], best[16];
    V(m) nan = V(unord)(flips, flips);
    const float *row = x;
    V(f) a, most;
    int64_t r, k;
    for (r = 0; r < 16; r++, row += step) {
        most = V(bit_xor)(V(load_or)(row, n, beyond), flips);
        nan = V(mor)(nan, V(unord)(most, most));
        for (k = 16; k < n; k += 16) { /* the last ones are taken once more with some before them */
            a = V(bit_xor)(V(load)(row + DVTI_MIN(k, n - 16)), flips);
            nan = V(mor)(nan, V(unord)(a, a));
            most = V(max)(a, most);
        }
        V(store)(lanes + 16 * r, most);
    }
    if (V(mbits)(nan))
        return false;
    V(fold_max_each)(lanes, best);
    for (r = 0; r < 16 && at && n <= 16; r++)
        at[r] = dvti_lowest_bit(V(mbits)(V(eq)(V(load)(lanes + 16 * r), V(set)(best[r]))));
    most = V(bit_xor)(V(load)(best), flips);
    V(store)(best, most);
    V(dstore)(value, V(widen_low)(most));
    V(dstore)(value + 8, V(widen_high)(most));
    for (r = 0; r < 16 && at && n > 16; r++, x += step)
        at[r] = V(fold_find)(x, n, best[r], false);
    return true;
}

/* n > 0. at may be NULL. */
static void V(fold_extreme)(const dvti_folding *folding) {
    const dvti_folding p = *folding;
    const bool smallest = V(smallest)(p.op);
    const V(f) flips = V(set)(smallest ? -0.f : 0.f);
    const float *x = (const float *)p.x;
    const int64_t n = p.n;
    int64_t r;
    for (r = 0; r < p.rows; r++, x += p.step) {
        float best = -INFINITY;
        int64_t block, where = 0, size = DVTI_MIN(n, DVTI_FOLD_BLOCK);
        bool numbers = true;
        V(f) most;
        if (r % 16 == 0 && r + 16 <= p.rows && n <= DVTI_FOLD_SHORT &&
            V(fold_short)(x, p.step, n, smallest, p.value + r, p.at ? p.at + r : NULL)) {
            r += 15;
            x += 15 * p.step;
            continue;
        }
        for (block = 0; block < n && numbers; block += DVTI_FOLD_BLOCK) {
            int64_t length = DVTI_MIN(n - block, DVTI_FOLD_BLOCK);
            numbers = V(fold_block)(x + block, length, flips, &most);
            if (numbers && block && !V(mbits)(V(gt)(most, V(set)(best))))
                continue;
            best = V(fold_max)(most);
            where = block;
            size = length;
        }
        best = smallest ? -best : best;
        p.value[r] = numbers ? (double)best : (double)NAN;
        if (p.at)
            p.at[r] = where + V(fold_find)(x + where, size, best, !numbers);
    }
}

#include "3_cpu/simd/reduce_columns.inl"

/* Sums to means or norms, as floats. f has room for whole vectors. */
static void V(fold_finish)(dvti_op op, double divisor, const double *f, int64_t n, float *to) {
    int64_t k;
    for (k = 0; k < n; k += 16) {
        V(d) low = V(dload_upto)(f + k, n - k), high = V(dload_upto)(f + k + 8, n - k - 8);
        if (op == DVTI_OP_mean) {
            low = V(ddiv)(low, V(dset)(divisor));
            high = V(ddiv)(high, V(dset)(divisor));
        } else if (op == DVTI_OP_norm) {
            low = V(dsqrt)(low);
            high = V(dsqrt)(high);
        }
        V(store_upto)(to + k, n - k, V(narrow)(low, high));
    }
}

static dvti_fold V(fold)(dvti_op op) {
    dvti_fold fold = {NULL, NULL, NULL};
    fold.finish = V(fold_finish);
    switch ((int)op) {
    case DVTI_OP_sum:
    case DVTI_OP_mean:
        fold.rows = V(fold_sum);
        fold.columns = V(fold_sum_columns);
        break;
    case DVTI_OP_variance:
        fold.rows = V(fold_spread);
        fold.columns = V(fold_spread_columns);
        break;
    case DVTI_OP_norm:
    case DVTI_OP_prod:
        fold.rows = op == DVTI_OP_norm ? V(fold_squares) : V(fold_product);
        fold.columns = V(fold_wide_columns);
        break;
    case DVTI_OP_logsumexp:
        fold.rows = V(fold_logsumexp);
        fold.columns = V(fold_logsumexp_columns);
        break;
    case DVTI_OP_max:
    case DVTI_OP_min:
    case DVTI_OP_argmax:
    case DVTI_OP_argmin:
        fold.rows = V(fold_extreme);
        fold.columns = V(fold_extreme_columns);
        break;
    default:
        break;
    }
    return fold;
}

#undef DVTI_FOLD_BLOCK
#undef DVTI_FOLD_SHORT
#undef DVTI_FOLD_AHEAD
#undef DVTI_FOLD_EACH
