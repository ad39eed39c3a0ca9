/* softmax and log_softmax of rows of floats: the maximum, the sum of the exponentials below it in double, the values. A NaN or an
   infinite maximum makes NaN of the whole row by itself. And the logarithm of such sums alone. */

#define DVTI_SOFT_ROWS 16       /* that take each step together, so that none waits for its own last one */
#define DVTI_SOFT_ELEMENTS 4096 /* which they have at most, to stay in the first-level cache */

typedef struct V(soft) {
    double sum[DVTI_SOFT_ROWS];
    float most[DVTI_SOFT_ROWS], factor[DVTI_SOFT_ROWS];
} V(soft);

DVTI_INLINE int64_t V(soft_group)(int64_t rows, int64_t n) {
    return DVTI_MAX(1, DVTI_MIN(DVTI_MIN(rows, DVTI_SOFT_ROWS), DVTI_SOFT_ELEMENTS / n));
}

/* The maximum of n > 0 elements. */
DVTI_INLINE float V(soft_most)(const float *x, int64_t n) {
    V(f) most = V(set)(-INFINITY), other = most;
    int64_t at;
    for (at = 0; at + 32 <= n; at += 32) {
        most = V(max)(V(load)(x + at), most);
        other = V(max)(V(load)(x + at + 16), other);
    }
    for (; at < n; at += 16)
        most = V(max)(V(load_or)(x + at, n - at, -INFINITY), most);
    return V(fold_max)(V(max)(most, other));
}

/* The sum of exp(x - most); the exponentials go to y, unless that is NULL. Beyond the row x is minus infinity, which adds nothing. */
DVTI_INLINE double V(soft_sum)(const float *x, float *y, int64_t n, V(f) most) {
    V(d) low = V(dzero)(), high = V(dzero)();
    V(f) e, other;
    int64_t at;
    for (at = 0; at < n; at += 32) {
        e = V(exp)(V(sub)(V(load_or)(x + at, n - at, -INFINITY), most));
        if (y)
            V(store_upto)(y + at, n - at, e);
        if (n - at > 16) {
            other = V(exp)(V(sub)(V(load_or)(x + at + 16, n - at - 16, -INFINITY), most));
            if (y)
                V(store_upto)(y + at + 16, n - at - 16, other);
            e = V(add)(e, other);
        }
        low = V(dadd)(low, V(widen_low)(e));
        high = V(dadd)(high, V(widen_high)(e));
    }
    return V(dfold_add)(V(dadd)(low, high));
}

/* Maxima, no further from 0 than `bound`, sums of exponentials, and what these make of the results: 1 / sum or log(sum). */
static void V(soft_rows)(const float *x, int64_t x_step, float *y, int64_t y_step, int64_t rows,
                         int64_t n, float bound, bool logarithm, V(soft) * of) {
    V(d) low, high;
    int64_t r;
    for (r = 0; r < DVTI_SOFT_ROWS; r++) {
        of->most[r] = r < rows ? V(soft_most)(x + r * x_step, n) : 0;
        of->sum[r] = 1;
    }
    V(store)(of->most, V(within)(V(load)(of->most), -bound, bound));
    for (r = 0; r < rows; r++)
        of->sum[r] = V(soft_sum)(x + r * x_step, y ? y + r * y_step : NULL, n, V(set)(of->most[r]));
    low = V(dload)(of->sum);
    high = V(dload)(of->sum + 8);
    V(store)(of->factor, logarithm ? V(log)(V(narrow)(low, high))
                                   : V(narrow)(V(ddiv)(V(dset)(1), low), V(ddiv)(V(dset)(1), high)));
}

/* Rows of n > 0 elements, x_step and y_step apart; y may be x. */
static void V(softmax)(const float *x, int64_t x_step, float *y, int64_t y_step, int64_t rows,
                       int64_t n, bool logarithm) {
    V(soft) of;
    int64_t some, r, at;
    for (; rows > 0; rows -= some, x += some * x_step, y += some * y_step) {
        some = V(soft_group)(rows, n);
        V(soft_rows)(x, x_step, logarithm ? NULL : y, y_step, some, n, INFINITY, logarithm, &of);
        for (r = 0; r < some; r++) {
            const V(f) most = V(set)(of.most[r]), factor = V(set)(of.factor[r]);
            const float *from = logarithm ? x + r * x_step : y + r * y_step;
            for (at = 0; at < n; at += 16) {
                V(f) e = V(load_upto)(from + at, n - at);
                /* most + factor would lose factor beside a huge value */
                e = logarithm ? V(sub)(V(sub)(e, most), factor) : V(mul)(e, factor);
                V(store_upto)(y + r * y_step + at, n - at, e);
            }
        }
    }
}

/* ---- logsumexp as a reduction. Over the largest number instead of an infinite maximum the sum is infinite, 0 or NaN as it should be. ---- */
static void V(fold_logsumexp)(dvti_op op, const float *x, int64_t step, int64_t rows, int64_t n,
                              const float *mean, double *value, int64_t *at) {
    V(soft) of;
    int64_t some, r;
    (void)op;
    (void)mean;
    (void)at;
    for (; rows > 0; rows -= some, x += some * step) {
        some = V(soft_group)(rows, n);
        V(soft_rows)(x, step, NULL, 0, some, n, FLT_MAX, true, &of);
        for (r = 0; r < some; r++)
            *value++ = (double)of.most[r] + (double)of.factor[r];
    }
}

/* Eight rows have one maximum with what came before them, whose sum is adapted to it. A sum that is given as its logarithm is about 1 times
   the exponential of that, rounded. */
static void V(fold_logsumexp_columns)(dvti_op op, const float *x, int64_t step, int64_t rows,
                                      int64_t n, int64_t seen, const float *mean, double *value,
                                      int64_t *at) {
    float base[DVTI_BLOCK];
    int64_t j, r, row, some;
    (void)op;
    (void)mean;
    (void)at;
    for (j = 0; j < n; j += 16) {
        V(d) low = V(dload)(value + j), high = V(dload)(value + j + 8);
        V(f) before = seen ? V(narrow)(low, high) : V(set)(-INFINITY);
        before = V(within)(before, -FLT_MAX, FLT_MAX);
        V(store)(base + j, before);
        low = V(dadd)(V(dset)(1), V(dsub)(low, V(widen_low)(before)));
        high = V(dadd)(V(dset)(1), V(dsub)(high, V(widen_high)(before)));
        V(dstore)(value + j, seen ? V(dmax)(V(dzero)(), low) : V(dzero)());
        V(dstore)(value + j + 8, seen ? V(dmax)(V(dzero)(), high) : V(dzero)());
    }
    for (row = 0; row < rows; row += some, x += some * step) {
        some = DVTI_MIN(rows - row, 8);
        for (j = 0; j < n; j += 16) {
            const V(f) before = V(load)(base + j);
            V(f) most = before, e = V(zero)();
            V(d) low = V(dload)(value + j), high = V(dload)(value + j + 8);
            for (r = 0; r < some; r++)
                most = V(max)(V(load_upto)(x + r * step + j, n - j), most);
            most = V(within)(most, -FLT_MAX, FLT_MAX);
            if (V(mbits)(V(ne)(most, before))) {
                e = V(exp)(V(sub)(before, most));
                low = V(dmul)(low, V(widen_low)(e));
                high = V(dmul)(high, V(widen_high)(e));
                e = V(zero)();
            }
            for (r = 0; r < some; r++)
                e = V(add)(e, V(exp)(V(sub)(V(load_upto)(x + r * step + j, n - j), most)));
            V(dstore)(value + j, V(dadd)(low, V(widen_low)(e)));
            V(dstore)(value + j + 8, V(dadd)(high, V(widen_high)(e)));
            V(store)(base + j, most);
        }
    }
    for (j = 0; j < n; j += 16) {
        V(f) most = V(load)(base + j), e = V(log)(V(narrow)(V(dload)(value + j), V(dload)(value + j + 8)));
        V(dstore)(value + j, V(dadd)(V(widen_low)(most), V(widen_low)(e)));
        V(dstore)(value + j + 8, V(dadd)(V(widen_high)(most), V(widen_high)(e)));
    }
}

#undef DVTI_SOFT_ROWS
#undef DVTI_SOFT_ELEMENTS
