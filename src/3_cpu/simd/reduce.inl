/* Reductions of float: runs of one result (rows) and of neighbouring results (columns). Sums of four elements are formed in float, sums of
   those in double: as fast as float alone, and the error does not grow with the length. Squares are double at once, because they overflow. */

#define DVTI_FOLD_BLOCK 1024 /* elements whose extreme is known before anybody asks where it stands */

/* x, x + step, x + 2 step, x + 3 step. */
DVTI_INLINE V(f) V(sum4)(const float *x, int64_t step) {
    V(f) a = V(add)(V(load)(x), V(load)(x + step));
    V(f) b = V(add)(V(load)(x + 2 * step), V(load)(x + 3 * step));
    return V(add)(a, b);
}

DVTI_INLINE V(f) V(load_upto)(const float *x, int64_t n) {
    return n >= 16 ? V(load)(x) : V(load_n)(x, n);
}

static void V(fold_sum)(const float *x, int64_t n, double *value, int64_t *at) {
    V(d) low = V(dzero)(), high = V(dzero)();
    V(f) s;
    (void)at;
    for (; n >= 64; n -= 64, x += 64) {
        s = V(sum4)(x, 16);
        low = V(dadd)(low, V(widen_low)(s));
        high = V(dadd)(high, V(widen_high)(s));
    }
    for (; n > 0; n -= 16, x += 16) {
        s = V(load_upto)(x, n);
        low = V(dadd)(low, V(widen_low)(s));
        high = V(dadd)(high, V(widen_high)(s));
    }
    *value = V(dfold_add)(V(dadd)(low, high));
}

static void V(fold_squares)(const float *x, int64_t n, double *value, int64_t *at) {
    V(d) low = V(dzero)(), high = V(dzero)(), a, b;
    V(f) s;
    (void)at;
    for (; n > 0; n -= 16, x += 16) {
        s = V(load_upto)(x, n);
        a = V(widen_low)(s);
        b = V(widen_high)(s);
        low = V(dfma)(a, a, low);
        high = V(dfma)(b, b, high);
    }
    *value = V(dfold_add)(V(dadd)(low, high));
}

/* ---- extremes: the largest of x or, `smallest`, of -x. NaN is larger than all; of equals the first one. ---- */
/* The first of n elements that is `best`, or that is NaN. n when none is. */
static int64_t V(fold_find)(const float *x, int64_t n, float best, bool nan) {
    const V(f) wanted = V(set)(best);
    int64_t at;
    int k;
    for (at = 0; at < n; at += 16) {
        V(f) v = V(load_upto)(x + at, n - at);
        uint32_t bits = V(mbits)(nan ? V(unord)(v, v) : V(eq)(v, wanted));
        for (k = 0; bits; k++, bits >>= 1)
            if (bits & 1)
                return DVTI_MIN(at + k, n);
    }
    return n;
}

/* 1 to DVTI_FOLD_BLOCK elements; false when there is a NaN. */
DVTI_INLINE bool V(fold_block)(const float *x, int64_t n, V(f) flip, V(f) * most) {
    V(f) least = V(set)(-INFINITY), m0 = least, m1 = least, m2 = least, m3 = least, a, b, c, d;
    V(m) nan = V(unord)(least, least);
    float few[16];
    int k;
    if (n < 16) {
        for (k = 0; k < 16; k++)
            few[k] = x[k < n ? k : 0];
        x = few;
        n = 16;
    }
    for (; n >= 64; n -= 64, x += 64) {
        a = V(load)(x);
        b = V(load)(x + 16);
        c = V(load)(x + 32);
        d = V(load)(x + 48);
        nan = V(mor)(nan, V(mor)(V(unord)(a, b), V(unord)(c, d)));
        m0 = V(max)(V(bit_xor)(a, flip), m0);
        m1 = V(max)(V(bit_xor)(b, flip), m1);
        m2 = V(max)(V(bit_xor)(c, flip), m2);
        m3 = V(max)(V(bit_xor)(d, flip), m3);
    }
    for (; n > 0; n -= 16, x += 16) {
        if (n < 16) /* again what has been seen already */
            x -= 16 - n;
        a = V(load)(x);
        nan = V(mor)(nan, V(unord)(a, a));
        m0 = V(max)(V(bit_xor)(a, flip), m0);
    }
    *most = V(max)(V(max)(m0, m1), V(max)(m2, m3));
    return !V(mbits)(nan);
}

/* n > 0. at may be NULL. */
static void V(fold_extreme)(const float *x, int64_t n, bool smallest, double *value, int64_t *at) {
    const V(f) flips = V(set)(smallest ? -0.f : 0.f);
    float best = -INFINITY;
    int64_t block, where = 0, size = DVTI_MIN(n, DVTI_FOLD_BLOCK);
    bool numbers = true;
    V(f) most;
    for (block = 0; block < n && numbers; block += DVTI_FOLD_BLOCK) {
        int64_t length = DVTI_MIN(n - block, DVTI_FOLD_BLOCK);
        numbers = V(fold_block)(x + block, length, flips, &most);
        if (numbers && !V(mbits)(V(gt)(most, V(set)(best))) && block)
            continue;
        best = V(fold_max)(most);
        where = block;
        size = length;
    }
    best = smallest ? -best : best;
    *value = numbers ? (double)best : (double)NAN;
    if (at)
        *at = where + V(fold_find)(x + where, size, best, !numbers);
}

static void V(fold_largest)(const float *x, int64_t n, double *value, int64_t *at) {
    V(fold_extreme)(x, n, false, value, at);
}

static void V(fold_smallest)(const float *x, int64_t n, double *value, int64_t *at) {
    V(fold_extreme)(x, n, true, value, at);
}

/* ---- columns: rows of n <= DVTI_BLOCK elements, `step` apart. value and at have room for whole vectors. ---- */
DVTI_INLINE void V(fold_add_to)(double *value, V(f) s) {
    V(dstore)(value, V(dadd)(V(dload)(value), V(widen_low)(s)));
    V(dstore)(value + 8, V(dadd)(V(dload)(value + 8), V(widen_high)(s)));
}

/* Adds to value. */
static void V(fold_sum_columns)(const float *x, int64_t step, int64_t rows, int64_t n,
                                double *value, int64_t *at) {
    float last[4 * 16];
    int64_t j;
    int k;
    (void)at;
    for (; rows >= 4; rows -= 4, x += 4 * step) {
        for (j = 0; j + 16 <= n; j += 16)
            V(fold_add_to)(value + j, V(sum4)(x + j, step));
        for (k = 0; j < n && k < 4; k++)
            V(store)(last + 16 * k, V(load_n)(x + k * step + j, n - j));
        if (j < n)
            V(fold_add_to)(value + j, V(sum4)(last, 16));
    }
    for (; rows > 0; rows--, x += step)
        for (j = 0; j < n; j += 16)
            V(fold_add_to)(value + j, V(load_upto)(x + j, n - j));
}

static void V(fold_square_columns)(const float *x, int64_t step, int64_t rows, int64_t n,
                                   double *value, int64_t *at) {
    int64_t j, r, some;
    (void)at;
    for (; rows > 0; rows -= some, x += some * step) {
        some = DVTI_MIN(rows, 4);
        for (j = 0; j < n; j += 16) {
            V(d) low = V(dload)(value + j), high = V(dload)(value + j + 8), a, b;
            for (r = 0; r < some; r++) {
                V(f) v = V(load_upto)(x + r * step + j, n - j);
                a = V(widen_low)(v);
                b = V(widen_high)(v);
                low = V(dfma)(a, a, low);
                high = V(dfma)(b, b, high);
            }
            V(dstore)(value + j, low);
            V(dstore)(value + j + 8, high);
        }
    }
}

/* Sets value and, where it is wanted, at: the row. rows > 0. */
static void V(fold_extreme_columns)(const float *x, int64_t step, int64_t rows, int64_t n,
                                    bool smallest, double *value, int64_t *at) {
    const V(f) flips = V(set)(smallest ? -0.f : 0.f);
    float best[DVTI_BLOCK];
    int32_t place[DVTI_BLOCK];
    int64_t j, r, row, some;
    V(m) better;
    V(f) most, v;
    V(i) where;
    for (j = 0; j < n; j += 16) {
        V(store)(best + j, V(bit_xor)(V(load_upto)(x + j, n - j), flips));
        V(istore)(place + j, V(iset)(0));
    }
    for (row = 1; row < rows; row += some) {
        some = DVTI_MIN(rows - row, 8);
        for (j = 0; j < n; j += 16) {
            most = V(load)(best + j);
            where = V(iload)(place + j);
            for (r = row; r < row + some; r++) {
                v = V(bit_xor)(V(load_upto)(x + r * step + j, n - j), flips);
                better = V(mand)(V(mnot)(V(le)(v, most)), V(eq)(most, most));
                most = V(select)(better, v, most);
                where = V(iselect)(better, V(iset)((int32_t)r), where);
            }
            V(store)(best + j, most);
            V(istore)(place + j, where);
        }
    }
    for (j = 0; j < n; j++)
        value[j] = smallest ? -best[j] : best[j];
    for (j = 0; at && j < n; j++)
        at[j] = place[j];
}

static void V(fold_largest_columns)(const float *x, int64_t step, int64_t rows, int64_t n,
                                    double *value, int64_t *at) {
    V(fold_extreme_columns)(x, step, rows, n, false, value, at);
}

static void V(fold_smallest_columns)(const float *x, int64_t step, int64_t rows, int64_t n,
                                     double *value, int64_t *at) {
    V(fold_extreme_columns)(x, step, rows, n, true, value, at);
}

static dvti_fold V(fold)(dvti_op op) {
    static const dvti_fold sum = {V(fold_sum), V(fold_sum_columns)};
    static const dvti_fold squares = {V(fold_squares), V(fold_square_columns)};
    static const dvti_fold largest = {V(fold_largest), V(fold_largest_columns)};
    static const dvti_fold smallest = {V(fold_smallest), V(fold_smallest_columns)};
    static const dvti_fold none = {NULL, NULL};
    switch ((int)op) {
    case DVTI_OP_sum:
    case DVTI_OP_mean:
        return sum;
    case DVTI_OP_norm:
        return squares;
    case DVTI_OP_max:
    case DVTI_OP_argmax:
        return largest;
    case DVTI_OP_min:
    case DVTI_OP_argmin:
        return smallest;
    default:
        return none;
    }
}

#undef DVTI_FOLD_BLOCK
