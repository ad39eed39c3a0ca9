/* Reductions of float: runs of one result (rows) and of neighbouring results (columns). Sums of four elements are formed in float, sums of
   those in double: as fast as float alone, and the error does not grow with the length. Squares and products are double at once, because
   they leave float's range. */

#define DVTI_FOLD_BLOCK 1024 /* elements whose extreme is known before anybody asks where it stands */

/* x, x + step, x + 2 step, x + 3 step, n elements of each. */
DVTI_INLINE V(f) V(sum4)(const float *x, int64_t step, int64_t n) {
    V(f) a = V(add)(V(load_upto)(x, n), V(load_upto)(x + step, n));
    V(f) b = V(add)(V(load_upto)(x + 2 * step, n), V(load_upto)(x + 3 * step, n));
    return V(add)(a, b);
}

static void V(fold_sum)(dvti_op op, const float *x, int64_t step, int64_t rows, int64_t n,
                        double *value, int64_t *at) {
    (void)op;
    (void)at;
    for (; rows > 0; rows--, x += step, value++) {
        V(d) low = V(dzero)(), high = V(dzero)();
        int64_t k;
        for (k = 0; k + 64 <= n; k += 64) {
            V(f) s = V(sum4)(x + k, 16, 16);
            low = V(dadd)(low, V(widen_low)(s));
            high = V(dadd)(high, V(widen_high)(s));
        }
        for (; k < n; k += 16) {
            V(f) s = V(load_upto)(x + k, n - k);
            low = V(dadd)(low, V(widen_low)(s));
            high = V(dadd)(high, V(widen_high)(s));
        }
        *value = V(dfold_add)(V(dadd)(low, high));
    }
}

static void V(fold_squares)(dvti_op op, const float *x, int64_t step, int64_t rows, int64_t n,
                            double *value, int64_t *at) {
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
                            double *value, int64_t *at) {
    (void)op;
    (void)at;
    for (; rows > 0; rows--, x += step, value++) {
        V(d) low = V(dset)(1), high = low;
        int64_t k;
        for (k = 0; k < n; k += 16) {
            V(f) s = V(load_or)(x + k, n - k, 1);
            low = V(dmul)(low, V(widen_low)(s));
            high = V(dmul)(high, V(widen_high)(s));
        }
        *value = V(dfold_mul)(V(dmul)(low, high));
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
    for (at = 0; at < n; at += 16) {
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
                            double *value, int64_t *at) {
    const V(extreme) e = V(extreme_of)(op);
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
static void V(fold_sum_columns)(dvti_op op, const float *x, int64_t step, int64_t rows, int64_t n,
                                double *value, int64_t *at) {
    int64_t j, k, fours, some;
    (void)op;
    (void)at;
    for (; rows > 0; rows -= some, x += some * step) {
        fours = DVTI_MIN(rows / 4, 2);
        some = fours ? 4 * fours : 1;
        for (j = 0; j < n; j += 16) {
            V(d) low = V(dload)(value + j), high = V(dload)(value + j + 8);
            for (k = 0; k < some; k += 4) {
                V(f) s = fours ? V(sum4)(x + k * step + j, step, n - j) : V(load_upto)(x + j, n - j);
                low = V(dadd)(low, V(widen_low)(s));
                high = V(dadd)(high, V(widen_high)(s));
            }
            V(dstore)(value + j, low);
            V(dstore)(value + j + 8, high);
        }
    }
}

/* Adds squares to value, or multiplies it. */
static void V(fold_wide_columns)(dvti_op op, const float *x, int64_t step, int64_t rows, int64_t n,
                                 double *value, int64_t *at) {
    int64_t j, r, some;
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

/* Sets value and, where it is wanted, at: the row. rows > 0. */
static void V(fold_extreme_columns)(dvti_op op, const float *x, int64_t step, int64_t rows,
                                    int64_t n, double *value, int64_t *at) {
    const V(extreme) e = V(extreme_of)(op);
    float best[DVTI_BLOCK];
    int32_t place[DVTI_BLOCK];
    int64_t j, r, row, some;
    V(m) better;
    V(f) most, v;
    V(i) where;
    for (row = 0; row < rows; row += some) {
        some = DVTI_MIN(rows - row, 8);
        for (j = 0; j < n; j += 16) {
            most = row ? V(load)(best + j) : V(set)(-INFINITY);
            where = row ? V(iload)(place + j) : V(iset)(0);
            for (r = row; r < row + some; r++) {
                v = V(load_upto)(x + r * step + j, n - j);
                v = V(bit_xor)(e.truth ? V(truth)(V(nonzero)(v)) : v, e.flips);
                better = V(mand)(V(mnot)(V(le)(v, most)), V(eq)(most, most));
                most = V(select)(better, v, most);
                if (at)
                    where = V(iselect)(better, V(iset)((int32_t)r), where);
            }
            V(store)(best + j, most);
            V(istore)(place + j, where);
        }
    }
    for (j = 0; j < n; j++)
        value[j] = e.smallest ? -best[j] : best[j];
    for (j = 0; at && j < n; j++)
        at[j] = place[j];
}

static dvti_fold V(fold)(dvti_op op) {
    dvti_fold fold = {NULL, NULL};
    switch ((int)op) {
    case DVTI_OP_sum:
    case DVTI_OP_mean:
        fold.rows = V(fold_sum);
        fold.columns = V(fold_sum_columns);
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
