/* Reductions of float: runs of one result (rows) and of neighbouring results (columns). Sums of four elements are formed in float, sums of
   those in double: as fast as float alone, and the error does not grow with the length. Squares and products are double at once, because
   they leave float's range. */

#define DVTI_FOLD_BLOCK 1024 /* elements whose extreme is known before anybody asks where it stands */

/* n elements, or the squares of their distances from m; zeros beyond them. */
DVTI_INLINE V(f) V(term)(const float *x, int64_t n, const float *mean, V(f) m) {
    V(f) d;
    if (!mean)
        return V(load_upto)(x, n);
    d = V(sub)(V(load_or)(x, n, *mean), m);
    return V(mul)(d, d);
}

/* Those of x, x + step, x + 2 step, x + 3 step. */
DVTI_INLINE V(f) V(sum4)(const float *x, int64_t step, int64_t n, const float *mean, V(f) m) {
    V(f) a = V(add)(V(term)(x, n, mean, m), V(term)(x + step, n, mean, m));
    V(f) b = V(add)(V(term)(x + 2 * step, n, mean, m), V(term)(x + 3 * step, n, mean, m));
    return V(add)(a, b);
}

DVTI_INLINE double V(fold_row)(const float *x, int64_t n, const float *mean) {
    const V(f) m = mean ? V(set)(*mean) : V(zero)();
    V(d) low = V(dzero)(), high = V(dzero)();
    V(f) s;
    int64_t k;
    for (k = 0; k + 64 <= n; k += 64) {
        s = V(sum4)(x + k, 16, 16, mean, m);
        low = V(dadd)(low, V(widen_low)(s));
        high = V(dadd)(high, V(widen_high)(s));
    }
    if (k < n) { /* up to four again */
        s = V(term)(x + k, n - k, mean, m);
        for (k += 16; k < n; k += 16)
            s = V(add)(s, V(term)(x + k, n - k, mean, m));
        low = V(dadd)(low, V(widen_low)(s));
        high = V(dadd)(high, V(widen_high)(s));
    }
    return V(dfold_add)(V(dadd)(low, high));
}

static void V(fold_sum)(dvti_op op, const float *x, int64_t step, int64_t rows, int64_t n,
                        const float *mean, double *value, int64_t *at) {
    (void)op;
    (void)mean;
    (void)at;
    for (; rows > 0; rows--, x += step)
        *value++ = V(fold_row)(x, n, NULL);
}

static void V(fold_spread)(dvti_op op, const float *x, int64_t step, int64_t rows, int64_t n,
                           const float *mean, double *value, int64_t *at) {
    (void)op;
    (void)at;
    for (; rows > 0; rows--, x += step)
        *value++ = V(fold_row)(x, n, mean++);
}

static void V(normalize)(const float *x, float *y, int64_t n, const float *gamma,
                         const float *beta, float epsilon) {
    double sum;
    float mean, variance;
    V(f) m, scale, v;
    int64_t k;
    V(fold_sum)(DVTI_OP_sum, x, n, 1, n, NULL, &sum, NULL);
    mean = (float)(sum / (double)n);
    V(fold_spread)(DVTI_OP_square, x, n, 1, n, &mean, &sum, NULL);
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

static void V(fold_squares)(dvti_op op, const float *x, int64_t step, int64_t rows, int64_t n,
                            const float *mean, double *value, int64_t *at) {
    (void)mean;
    (void)op;
    (void)at;
    for (; rows > 0; rows--, x += step, value++) {
        V(d) low = V(dzero)(), high = V(dzero)(), a, b;
        int64_t k;
        for (k = 0; k < n; k += 16) {
            V(f) s = V(load_upto)(x + k, n - k);
            a = V(widen_low)(s);
            b = V(widen_high)(s);
            low = V(dfma)(a, a, low);
            high = V(dfma)(b, b, high);
        }
        *value = V(dfold_add)(V(dadd)(low, high));
    }
}

static void V(fold_product)(dvti_op op, const float *x, int64_t step, int64_t rows, int64_t n,
                            const float *mean, double *value, int64_t *at) {
    (void)mean;
    (void)op;
    (void)at;
    for (; rows > 0; rows--, x += step, value++) {
        V(d) low = V(dset)(1), high = low, low2 = low, high2 = low;
        int64_t k;
        for (k = 0; k + 32 <= n; k += 32) {
            V(f) s = V(load)(x + k), t = V(load)(x + k + 16);
            low = V(dmul)(low, V(widen_low)(s));
            high = V(dmul)(high, V(widen_high)(s));
            low2 = V(dmul)(low2, V(widen_low)(t));
            high2 = V(dmul)(high2, V(widen_high)(t));
        }
        for (; k < n; k += 16) {
            V(f) s = V(load_or)(x + k, n - k, 1);
            low = V(dmul)(low, V(widen_low)(s));
            high = V(dmul)(high, V(widen_high)(s));
        }
        *value = V(dfold_mul)(V(dmul)(V(dmul)(low, low2), V(dmul)(high, high2)));
    }
}

/* ---- extremes: the largest of x or, `smallest`, of -x; of x's truth for any and all. NaN is larger than all; of equals the first one. ---- */
typedef struct V(extreme) {
    bool smallest, truth;
    V(f) flips;
} V(extreme);

DVTI_INLINE V(extreme) V(extreme_of)(dvti_op op) {
    V(extreme) e;
    e.truth = op == DVTI_OP_any || op == DVTI_OP_all;
    e.smallest = op == DVTI_OP_min || op == DVTI_OP_argmin || op == DVTI_OP_all;
    e.flips = V(set)(e.smallest ? -0.f : 0.f);
    return e;
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
DVTI_INLINE bool V(fold_block)(const float *x, int64_t n, const V(extreme) * e, V(f) * most) {
    V(f) m0 = V(set)(-INFINITY), m1 = m0, m2 = m0, m3 = m0, a, b, c, d;
    V(m) nan = V(unord)(m0, m0);
    int64_t k;
    for (k = 0; k + 64 <= n; k += 64) {
        a = V(load)(x + k);
        b = V(load)(x + k + 16);
        c = V(load)(x + k + 32);
        d = V(load)(x + k + 48);
        if (e->truth) {
            a = V(truth)(V(nonzero)(a));
            b = V(truth)(V(nonzero)(b));
            c = V(truth)(V(nonzero)(c));
            d = V(truth)(V(nonzero)(d));
        }
        nan = V(mor)(nan, V(mor)(V(unord)(a, b), V(unord)(c, d)));
        m0 = V(max)(V(bit_xor)(a, e->flips), m0);
        m1 = V(max)(V(bit_xor)(b, e->flips), m1);
        m2 = V(max)(V(bit_xor)(c, e->flips), m2);
        m3 = V(max)(V(bit_xor)(d, e->flips), m3);
    }
    for (; k < n; k += 16) {
        a = V(load_or)(x + k, n - k, *x);
        if (e->truth)
            a = V(truth)(V(nonzero)(a));
        nan = V(mor)(nan, V(unord)(a, a));
        m0 = V(max)(V(bit_xor)(a, e->flips), m0);
    }
    *most = V(max)(V(max)(m0, m1), V(max)(m2, m3));
    return !V(mbits)(nan);
}

/* n > 0. at may be NULL. */
static void V(fold_extreme)(dvti_op op, const float *x, int64_t step, int64_t rows, int64_t n,
                            const float *mean, double *value, int64_t *at) {
    const V(extreme) e = V(extreme_of)(op);
    (void)mean;
    for (; rows > 0; rows--, x += step) {
        float best = -INFINITY;
        int64_t block, where = 0, size = DVTI_MIN(n, DVTI_FOLD_BLOCK);
        bool numbers = true;
        V(f) most;
        for (block = 0; block < n && numbers; block += DVTI_FOLD_BLOCK) {
            int64_t length = DVTI_MIN(n - block, DVTI_FOLD_BLOCK);
            numbers = V(fold_block)(x + block, length, &e, &most);
            if (numbers && block && !V(mbits)(V(gt)(most, V(set)(best))))
                continue;
            best = V(fold_max)(most);
            where = block;
            size = length;
        }
        best = e.smallest ? -best : best;
        *value++ = numbers ? (double)best : (double)NAN;
        if (at)
            *at++ = where + V(fold_find)(x + where, size, best, !numbers);
    }
}

/* ---- columns: rows of n <= DVTI_BLOCK elements, `step` apart. value and at have room for whole vectors. ---- */
/* Adds to value, four rows at once where there are so many, twice that between loading and storing. */
DVTI_INLINE void V(fold_add_columns)(const float *x, int64_t step, int64_t rows, int64_t n,
                                     const float *mean, double *value) {
    int64_t j, k, fours, some;
    for (; rows > 0; rows -= some, x += some * step) {
        fours = DVTI_MIN(rows / 4, 2);
        some = fours ? 4 * fours : 1;
        for (j = 0; j < n; j += 16) {
            const float *middle = mean ? mean + j : NULL;
            const V(f) m = mean ? V(load_upto)(middle, n - j) : V(zero)();
            V(d) low = V(dload)(value + j), high = V(dload)(value + j + 8);
            for (k = 0; k < some; k += 4) {
                V(f) s = fours ? V(sum4)(x + k * step + j, step, n - j, middle, m)
                               : V(term)(x + j, n - j, middle, m);
                low = V(dadd)(low, V(widen_low)(s));
                high = V(dadd)(high, V(widen_high)(s));
            }
            V(dstore)(value + j, low);
            V(dstore)(value + j + 8, high);
        }
    }
}

static void V(fold_sum_columns)(dvti_op op, const float *x, int64_t step, int64_t rows, int64_t n,
                                int64_t seen, const float *mean, double *value, int64_t *at) {
    (void)op;
    (void)seen;
    (void)mean;
    (void)at;
    V(fold_add_columns)(x, step, rows, n, NULL, value);
}

static void V(fold_spread_columns)(dvti_op op, const float *x, int64_t step, int64_t rows,
                                   int64_t n, int64_t seen, const float *mean, double *value,
                                   int64_t *at) {
    (void)op;
    (void)seen;
    (void)at;
    V(fold_add_columns)(x, step, rows, n, mean, value);
}

/* Adds squares to value, or multiplies it. */
static void V(fold_wide_columns)(dvti_op op, const float *x, int64_t step, int64_t rows, int64_t n,
                                 int64_t seen, const float *mean, double *value, int64_t *at) {
    int64_t j, r, some;
    (void)seen;
    (void)mean;
    (void)at;
    for (; rows > 0; rows -= some, x += some * step) {
        some = DVTI_MIN(rows, 8);
        for (j = 0; j < n; j += 16) {
            V(d) low = V(dload)(value + j), high = V(dload)(value + j + 8), a, b;
            for (r = 0; r < some; r++) {
                V(f) v = V(load_upto)(x + r * step + j, n - j);
                a = V(widen_low)(v);
                b = V(widen_high)(v);
                if (op == DVTI_OP_prod) {
                    low = V(dmul)(a, low);
                    high = V(dmul)(b, high);
                } else {
                    low = V(dfma)(a, a, low);
                    high = V(dfma)(b, b, high);
                }
            }
            V(dstore)(value + j, low);
            V(dstore)(value + j + 8, high);
        }
    }
}

static void V(fold_extreme_columns)(dvti_op op, const float *x, int64_t step, int64_t rows,
                                    int64_t n, int64_t seen, const float *mean, double *value,
                                    int64_t *at) {
    const V(extreme) e = V(extreme_of)(op);
    float best[DVTI_BLOCK];
    int32_t place[DVTI_BLOCK];
    const bool quick = !at && !e.truth;
    int64_t j, r, row, some;
    V(m) better, nan;
    V(f) most, v;
    V(i) where;
    (void)mean;
    for (j = 0; j < n; j += 16) {
        most = V(narrow)(V(dload)(value + j), V(dload)(value + j + 8));
        V(store)(best + j, seen ? V(bit_xor)(most, e.flips) : V(set)(-INFINITY));
    }
    for (j = 0; at && j < n; j++)
        place[j] = seen ? (int32_t)at[j] : 0;
    for (row = 0; row < rows; row += some) {
        some = DVTI_MIN(rows - row, 8);
        for (j = 0; j < n; j += 16) {
            most = V(load)(best + j);
            where = at ? V(iload)(place + j) : V(iset)(0);
            /* Without places: the maximum of eight rows forgets NaN, which is asked for apart. */
            nan = V(unord)(most, most);
            for (r = row; quick && r < row + some; r++) {
                v = V(bit_xor)(V(load_upto)(x + r * step + j, n - j), e.flips);
                nan = V(mor)(nan, V(unord)(v, v));
                most = V(max)(v, most);
            }
            most = V(select)(nan, V(set)(NAN), most);
            for (r = row; !quick && r < row + some; r++) {
                v = V(load_upto)(x + r * step + j, n - j);
                v = V(bit_xor)(e.truth ? V(truth)(V(nonzero)(v)) : v, e.flips);
                better = V(mand)(V(mnot)(V(le)(v, most)), V(eq)(most, most));
                most = V(select)(better, v, most);
                if (at)
                    where = V(iselect)(better, V(iset)((int32_t)(seen + r)), where);
            }
            V(store)(best + j, most);
            if (at)
                V(istore)(place + j, where);
        }
    }
    for (j = 0; j < n; j += 16) {
        most = V(bit_xor)(V(load)(best + j), e.flips);
        V(dstore)(value + j, V(widen_low)(most));
        V(dstore)(value + j + 8, V(widen_high)(most));
    }
    for (j = 0; at && j < n; j++)
        at[j] = place[j];
}

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
    case DVTI_OP_square:
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
    case DVTI_OP_any:
    case DVTI_OP_all:
        fold.rows = V(fold_extreme);
        fold.columns = V(fold_extreme_columns);
        break;
    default:
        break;
    }
    return fold;
}

#undef DVTI_FOLD_BLOCK
