/* softmax, log_softmax and logsumexp of rows of float32. A NaN or an infinite maximum makes the
   whole row NaN. Up to DVTI_SOFT_ROWS rows take each step together, which hides latencies:

     x      most[r]        lanes[r]              sum[r]         factor[r]     y
     row r  --> maximum    --> sum of            --> one sum    --> 1 / sum   --> exp * factor
                of row r       exp(x - most)         per row        or            or
                               in 8 doubles                         log(sum)      x - most - factor
            transpose_max                        transpose_join
            of 16 rows                           of 8 rows */

#define DVTI_SOFT_ROWS 16 /* rows that take each step together */
/* Elements of these rows at most: four rows of 1024 take 1.25x as long together as alone. */
#define DVTI_SOFT_ELEMENTS 1024
#define DVTI_SOFT_COLUMNS 5 /* rows of one vector that are computed as columns, at least */

typedef struct V(soft) {
    double sum[DVTI_SOFT_ROWS];
    double lanes[8 * DVTI_SOFT_ROWS]; /* of sums */
    float most[DVTI_SOFT_ROWS], factor[DVTI_SOFT_ROWS];
    /* Elements or exponentials of rows of one vector; for longer rows the lanes of maxima. */
    float x[16 * DVTI_SOFT_ROWS];
} V(soft);

DVTI_INLINE int64_t V(soft_group)(int64_t rows, int64_t n) {
    return DVTI_MAX(1, DVTI_MIN(DVTI_MIN(rows, DVTI_SOFT_ROWS), DVTI_SOFT_ELEMENTS / n));
}

/* Returns the maximum of n > 0 elements, in lanes. */
DVTI_INLINE V(f) V(soft_most)(const float *x, int64_t n) {
    V(f) most = V(set)(-INFINITY), other = most;
    int64_t at;
    for (at = 0; at + 32 <= n; at += 32) {
        most = V(max)(V(load)(x + at), most);
        other = V(max)(V(load)(x + at + 16), other);
    }
    for (; at < n; at += 16)
        most = V(max)(V(load_or)(x + at, n - at, -INFINITY), most);
    return V(max)(most, other);
}

/* Returns the sum of exp(x - most), in lanes. Writes the exponentials to y, unless it is NULL.
   Given y, no x exceeds most. After the row x is -inf, which adds nothing. */
DVTI_INLINE V(d) V(soft_sum)(const float *x, float *y, int64_t n, V(f) most) {
    V(d) low = V(dzero)(), high = V(dzero)();
    V(f) e, other;
    int64_t at = 0;
    for (; y && at + 32 <= n; at += 32) {
        e = V(exp_below)(V(sub)(V(load)(x + at), most));
        other = V(exp_below)(V(sub)(V(load)(x + at + 16), most));
        V(store)(y + at, e);
        V(store)(y + at + 16, other);
        e = V(add)(e, other);
        low = V(dadd)(low, V(widen_low)(e));
        high = V(dadd)(high, V(widen_high)(e));
    }
    for (; at < n; at += 32) {
        e = V(exp)(V(sub)(V(load_or)(x + at, n - at, -INFINITY), most));
        if (y)
            V(store_partial)(y + at, n - at, e);
        if (n - at > 16) {
            other = V(exp)(V(sub)(V(load_or)(x + at + 16, n - at - 16, -INFINITY), most));
            if (y)
                V(store_partial)(y + at + 16, n - at - 16, other);
            e = V(add)(e, other);
        }
        low = V(dadd)(low, V(widen_low)(e));
        high = V(dadd)(high, V(widen_high)(e));
    }
    return V(dadd)(low, high);
}

/* Returns log(sum) or 1 / sum of n sums, which are whole vectors. */
static void V(soft_factors)(const double *sum, int64_t n, bool logarithm, float *factor) {
    const V(d) one = V(dset)(1);
    int64_t k;
    for (k = 0; k < n; k += 16) {
        const V(d) low = V(dload)(sum + k), high = V(dload)(sum + k + 8);
        V(store)(factor + k, logarithm ? V(log)(V(narrow)(low, high))
                                       : V(narrow)(V(ddiv)(one, low), V(ddiv)(one, high)));
    }
}

/* Joins the lanes of the sums and forms 1 / sum or log(sum). */
static void V(soft_end)(V(soft) * of, int64_t rows, bool logarithm) {
    int64_t r;
    for (r = 0; r < rows; r += 8)
        V(transpose_join)(DVTI_JOIN_add, of->lanes + 8 * r, DVTI_MIN(rows - r, 8), of->sum + r);
    for (r = rows; r < DVTI_SOFT_ROWS; r++)
        of->sum[r] = 1;
    V(soft_factors)(of->sum, DVTI_SOFT_ROWS, logarithm, of->factor);
}

/* Computes maxima, clamped to -bound .. bound, sums of exponentials, and their factors. */
static void V(soft_rows)(const float *x, int64_t x_step, float *y, int64_t y_step, int64_t rows,
                         int64_t n, float bound, bool logarithm, V(soft) * of) {
    int64_t r;
    V(store)(of->most, V(zero)());
    for (r = 0; r < rows; r++) {
        const V(f) most = V(soft_most)(x + r * x_step, n);
        if (rows < DVTI_SOFT_ROWS)
            of->most[r] = V(lanes_max)(most);
        else
            V(store)(of->x + 16 * r, most);
    }
    if (rows == DVTI_SOFT_ROWS)
        V(transpose_max)(of->x, of->most);
    V(store)(of->most, V(within)(V(load)(of->most), -bound, bound));
    for (r = 0; r < rows; r++)
        V(dstore)
        (of->lanes + 8 * r,
         V(soft_sum)(x + r * x_step, y ? y + r * y_step : NULL, n, V(set)(of->most[r])));
    V(soft_end)(of, rows, logarithm);
}

/* The same for up to 16 rows of n <= 16 elements, as columns. of->x: exponentials, or x for the
   logarithm. */
static void V(soft_short)(const float *x, int64_t step, int64_t rows, int64_t n, float bound,
                          bool logarithm, V(soft) * of) {
    float terms[256], *e = logarithm ? terms : of->x;
    V(f) most = V(set)(-INFINITY);
    V(d) v[8];
    int64_t j;
    int i, half;
    V(load_columns)(x, step, rows, n, of->x);
    for (j = 0; j < n; j++)
        most = V(max)(V(load)(of->x + 16 * j), most);
    most = V(within)(most, -bound, bound);
    V(store)(of->most, most);
    for (j = 0; j < n; j++)
        V(store)(e + 16 * j, V(exp)(V(sub)(V(load)(of->x + 16 * j), most)));
    for (half = 0; half < 16; half += 8) { /* the order of V(dlanes_add) */
        DVTI_REPEAT(8)
        for (i = 0; i < 8; i++) {
            v[i] = i < n ? V(load_wide)(e + 16 * i + half) : V(dzero)();
            if (i + 8 < n)
                v[i] = V(dadd)(v[i], V(load_wide)(e + 16 * (i + 8) + half));
        }
        DVTI_REPEAT(4)
        for (i = 0; i < 4; i++)
            v[i] = V(dadd)(v[i], v[i + 4]);
        V(dstore)(of->sum + half, V(dadd)(V(dadd)(v[0], v[2]), V(dadd)(v[1], v[3])));
    }
    V(soft_factors)(of->sum, 16, logarithm, of->factor);
}

/* Computes rows of n > 0 elements, x_step and y_step apart; y may be x. */
static void V(softmax)(const float *x, int64_t x_step, float *y, int64_t y_step, int64_t rows,
                       int64_t n, bool logarithm) {
    V(soft) of;
    int64_t some, r, at;
    V(f) e;
    for (; rows > 0; rows -= some, x += some * x_step, y += some * y_step) {
        const float *from = logarithm ? x : y;
        const int64_t from_step = logarithm ? x_step : y_step;
        some = V(soft_group)(rows, n);
        if (some >= DVTI_SOFT_COLUMNS && n <= 16) {
            V(soft_short)(x, x_step, rows, n, INFINITY, logarithm, &of);
            for (at = 0; at < 16 * n; at += 16) {
                const V(f) factor = V(load)(of.factor);
                e = V(load)(of.x + at);
                e = logarithm ? V(sub)(V(sub)(e, V(load)(of.most)), factor) : V(mul)(e, factor);
                V(store)(of.x + at, e);
            }
            V(store_columns)(of.x, y, y_step, rows, n);
            continue;
        }
        V(soft_rows)
        (x, x_step, logarithm ? NULL : y, y_step, some, n, INFINITY, logarithm, &of);
        for (r = 0; r < some; r++) {
            const V(f) most = V(set)(of.most[r]), factor = V(set)(of.factor[r]);
            for (at = 0; at < n; at += 16) {
                e = V(load_partial)(from + r * from_step + at, n - at);
                /* most + factor would lose factor if |most| is huge */
                e = logarithm ? V(sub)(V(sub)(e, most), factor) : V(mul)(e, factor);
                V(store_partial)(y + r * y_step + at, n - at, e);
            }
        }
    }
}

/* ---- logsumexp. An infinite maximum is clamped to FLT_MAX: then the sum is infinite, 0 or NaN, as
   required ---- */
static void V(logsumexp_rows)(const dvti_reduction *p) {
    const float *x = (const float *)p->x;
    V(soft) of;
    int64_t some, r, row;
    for (row = 0; row < p->rows; row += some, x += some * p->step) {
        some = V(soft_group)(p->rows - row, p->n);
        if (some >= DVTI_SOFT_COLUMNS && p->n <= 16)
            V(soft_short)(x, p->step, p->rows - row, p->n, FLT_MAX, true, &of);
        else
            V(soft_rows)(x, p->step, NULL, 0, some, p->n, FLT_MAX, true, &of);
        for (r = 0; r < some; r++)
            p->value[row + r] = (double)of.most[r] + (double)of.factor[r];
    }
}

/* ---- columns: neighboring results from `rows` rows, `step` apart ---- */
/* Accumulates sums of exponentials. Eight rows and the previous ones get one new maximum, to which
   the previous sum is rescaled. */
static void V(soft_columns)(const float *x, int64_t step, int64_t rows, int64_t n, float *base,
                            double *sum) {
    int64_t j, r, row, some;
    for (row = 0; row < rows; row += some, x += some * step) {
        some = DVTI_MIN(rows - row, 8);
        for (j = 0; j < n; j += 16) {
            const V(f) before = V(load)(base + j);
            V(f) most = before, all, e;
            V(d) low = V(dload)(sum + j), high = V(dload)(sum + j + 8);
            for (r = 0; r < some; r++)
                most = V(max)(V(load_partial)(x + r * step + j, n - j), most);
            most = V(within)(most, -FLT_MAX, FLT_MAX);
            all = V(zero)();
            for (r = V(mbits)(V(ne)(most, before)) ? -1 : 0; r < some; r++) {
                e = V(exp)(V(sub)(r < 0 ? before : V(load_partial)(x + r * step + j, n - j), most));
                if (r < 0) {
                    low = V(dmul)(low, V(widen_low)(e));
                    high = V(dmul)(high, V(widen_high)(e));
                } else {
                    all = V(add)(all, e);
                }
            }
            V(dstore)(sum + j, V(dadd)(low, V(widen_low)(all)));
            V(dstore)(sum + j + 8, V(dadd)(high, V(widen_high)(all)));
            V(store)(base + j, most);
        }
    }
}

/* Continues from the logarithm of the previous sum. Its rounded value is the base; the sum is then
   about 1, which carries the rounding error. */
static void V(logsumexp_columns)(const dvti_reduction *p) {
    const int64_t n = p->n;
    double *value = p->value;
    float base[DVTI_BLOCK], factor[DVTI_BLOCK];
    int64_t j;
    for (j = 0; j < n; j += 16) {
        V(d) low = V(dload)(value + j), high = V(dload)(value + j + 8);
        V(f) before = p->seen ? V(narrow)(low, high) : V(set)(-INFINITY);
        before = V(within)(before, -FLT_MAX, FLT_MAX);
        V(store)(base + j, before);
        low = V(dadd)(V(dset)(1), V(dsub)(low, V(widen_low)(before)));
        high = V(dadd)(V(dset)(1), V(dsub)(high, V(widen_high)(before)));
        V(dstore)(value + j, p->seen ? V(dmax)(V(dzero)(), low) : V(dzero)());
        V(dstore)(value + j + 8, p->seen ? V(dmax)(V(dzero)(), high) : V(dzero)());
    }
    V(soft_columns)((const float *)p->x, p->step, p->rows, n, base, value);
    V(soft_factors)(value, n, true, factor);
    for (j = 0; j < n; j++)
        value[j] = (double)base[j] + (double)factor[j];
}

/* Computes n <= DVTI_BLOCK columns; y may be x. Computes the exponentials twice, so that memory is
   read and written in order. An infinite sum, which an infinite maximum causes, gives NaN. */
static void V(softmax_columns)(const float *x, int64_t x_step, float *y, int64_t y_step,
                               int64_t rows, int64_t n, bool logarithm) {
    float base[DVTI_BLOCK], factor[DVTI_BLOCK];
    double sum[DVTI_BLOCK];
    int64_t j;
    for (j = 0; j < n; j += 16) {
        V(store)(base + j, V(set)(-FLT_MAX));
        V(dstore)(sum + j, V(dzero)());
        V(dstore)(sum + j + 8, V(dzero)());
    }
    V(soft_columns)(x, x_step, rows, n, base, sum);
    for (j = 0; j < n; j += 16) {
        const V(d) low = V(dload)(sum + j), high = V(dload)(sum + j + 8);
        V(dstore)(sum + j, V(dadd)(low, V(dsub)(low, low)));
        V(dstore)(sum + j + 8, V(dadd)(high, V(dsub)(high, high)));
    }
    V(soft_factors)(sum, n, logarithm, factor);
    for (; rows > 0; rows--, x += x_step, y += y_step)
        for (j = 0; j < n; j += 16) {
            V(f) e = V(sub)(V(load_partial)(x + j, n - j), V(load)(base + j));
            e = logarithm ? V(sub)(e, V(load)(factor + j))
                          : V(mul)(V(exp)(e), V(load)(factor + j));
            V(store_partial)(y + j, n - j, e);
        }
}

#undef DVTI_SOFT_ROWS
#undef DVTI_SOFT_ELEMENTS
#undef DVTI_SOFT_COLUMNS
