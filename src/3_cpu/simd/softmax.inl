/* softmax and log_softmax of rows of floats: the maximum, the sum of the exponentials below it in double, the values. A NaN or an
   infinite maximum makes NaN of the whole row by itself. And the logarithm of such sums alone. */

/* n > 0: their maximum, in all lanes. */
DVTI_INLINE V(f) V(soft_most)(const float *x, int64_t n) {
    V(f) most = V(set)(-INFINITY), other = most;
    int64_t at;
    for (at = 0; at + 32 <= n; at += 32) {
        most = V(max)(V(load)(x + at), most);
        other = V(max)(V(load)(x + at + 16), other);
    }
    for (; at < n; at += 16)
        most = V(max)(V(load_or)(x + at, n - at, -INFINITY), most);
    return V(set)(V(fold_max)(V(max)(most, other)));
}

/* The sum of exp(x - most); the exponentials go to y, unless that is NULL. Beyond the row x is minus infinity, which adds nothing. */
static double V(soft_sum)(const float *x, float *y, int64_t n, V(f) most) {
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

/* Rows of n > 0 elements, x_step and y_step apart; y may be x. */
static void V(softmax)(const float *x, int64_t x_step, float *y, int64_t y_step, int64_t rows,
                       int64_t n, bool logarithm) {
    for (; rows > 0; rows--, x += x_step, y += y_step) {
        const V(f) most = V(soft_most)(x, n);
        const double sum = V(soft_sum)(x, logarithm ? NULL : y, n, most);
        const V(f) factor = V(set)((float)(logarithm ? log(sum) : 1 / sum));
        int64_t at;
        for (at = 0; at < n; at += 16) {
            V(f) e = V(load_upto)((logarithm ? x : y) + at, n - at);
            /* most + factor would lose factor beside a huge value */
            e = logarithm ? V(sub)(V(sub)(e, most), factor) : V(mul)(e, factor);
            V(store_upto)(y + at, n - at, e);
        }
    }
}

/* ---- logsumexp as a reduction. Over the largest number instead of an infinite maximum the sum is infinite, 0 or NaN as it should be. ---- */
static void V(fold_logsumexp)(dvti_op op, const float *x, int64_t step, int64_t rows, int64_t n,
                              double *value, int64_t *at) {
    (void)op;
    (void)at;
    for (; rows > 0; rows--, x += step) {
        V(f) most = V(within)(V(soft_most)(x, n), -FLT_MAX, FLT_MAX);
        *value++ = (double)V(fold_max)(most) + log(V(soft_sum)(x, NULL, n, most));
    }
}

/* Eight rows have one maximum with what came before them, whose sum is adapted to it. */
static void V(fold_logsumexp_columns)(dvti_op op, const float *x, int64_t step, int64_t rows,
                                      int64_t n, double *value, int64_t *at) {
    float base[DVTI_BLOCK];
    int64_t j, r, row, some;
    (void)op;
    (void)at;
    for (row = 0; row < rows; row += some, x += some * step) {
        some = DVTI_MIN(rows - row, 8);
        for (j = 0; j < n; j += 16) {
            const V(f) before = row ? V(load)(base + j) : V(set)(-FLT_MAX);
            V(f) most = before, e = V(zero)();
            V(d) low = row ? V(dload)(value + j) : V(dzero)(),
                 high = row ? V(dload)(value + j + 8) : low;
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
    for (j = 0; j < n; j++)
        value[j] = (double)base[j] + log(value[j]);
}
