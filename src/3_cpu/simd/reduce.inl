/* Reductions of float32: runs of one result (rows); reduce_columns.inl has neighboring results.
   Sums of four elements, or eight of 16 bits, are formed in float32, sums of those in float64. That
   is as fast as float32 alone, and the error does not grow with the length. Other terms widen to
   float64 at once, since squares and products leave float32's range.

     x[k ..]   | 16 floats | 16 floats | 16 floats | 16 floats |   one group of 64
                     \          |           |          /
                      +---------+-----------+---------+            3 additions in float32
                                     |
                     low += lanes 0..7    high += lanes 8..15      2 additions in float64 */

#define DVTI_REDUCE_BLOCK 1024 /* elements per block; afterwards the position is found in one */
#define DVTI_REDUCE_SHORT 256  /* elements of rows that are reduced 16 at once */
/* Elements of such rows whose extremes are found by columns. AVX-512 finds those of 16 elements
   1.3x slower so, those of 4 elements 1.7x faster; AVX2 finds both faster. */
#define DVTI_REDUCE_COLUMNS (DVTI_REGS == 1 ? 12 : 16)
/* Prefetch distance in bytes. One line of every four is enough to keep the hardware prefetcher
   ahead at the ends of pages: 1.2x faster from L3 of Zen 5 than all four. From 400 on slower. */
#define DVTI_REDUCE_AHEAD 256

/* Loads n elements of a float dtype, from index `at` on; zeros after them. */
DVTI_INLINE V(f) V(addend)(const void *x, dvt_dtype dtype, int64_t at, int64_t n) {
    const uint16_t *half = (const uint16_t *)x + at;
    if (dtype == DVT_F32)
        return V(load_partial)((const float *)x + at, n);
    if (dtype == DVT_F16)
        return n >= 16 ? V(load_f16)(half) : V(load_f16_n)(half, n);
    return n >= 16 ? V(load_bf16)(half) : V(load_bf16_n)(half, n);
}

/* The same; with a mean, the squares of the distances from m. */
DVTI_INLINE V(f) V(term)(const void *x, dvt_dtype dtype, int64_t at, int64_t n, const float *mean,
                         V(f) m) {
    V(f) d;
    if (!mean)
        return V(addend)(x, dtype, at, n);
    d = V(sub)(V(load_or)((const float *)x + at, n, *mean), m);
    return V(mul)(d, d);
}

/* Adds the terms at, at + step, at + 2 step, at + 3 step. */
DVTI_INLINE V(f) V(sum4)(const void *x, dvt_dtype dtype, int64_t at, int64_t step, int64_t n,
                         const float *mean, V(f) m) {
    V(f) a = V(add)(V(term)(x, dtype, at, n, mean, m), V(term)(x, dtype, at + step, n, mean, m));
    V(f) b = V(add)(V(term)(x, dtype, at + 2 * step, n, mean, m),
                    V(term)(x, dtype, at + 3 * step, n, mean, m));
    return V(add)(a, b);
}

/* Adds pairs of 32 neighboring bfloat16. Each half of a 32-bit word becomes a float by clearing the
   other half. */
DVTI_INLINE V(f) V(words_bf16)(const int32_t *p) {
    const V(i) w = V(iload)(p);
    return V(fma)(V(as_f)(V(ishl)(w, 16)), V(set)(1), V(as_f)(V(iand)(w, V(iset)(-65536))));
}

/* Adds 64 neighbors, four to a lane. */
DVTI_INLINE V(f) V(sum4_bf16)(const void *x, int64_t at) {
    const int32_t *p = (const int32_t *)(const void *)((const uint16_t *)x + at);
    return V(add)(V(words_bf16)(p), V(words_bf16)(p + 16));
}

/* Returns sum + a. Processors with separate units for additions and multiplications run this in
   parallel with the float32 sums and the conversions: 1.33x faster from L1. */
DVTI_INLINE V(d) V(dadd_by_fma)(V(d) sum, V(d) a) {
    return V(dfma)(a, V(dset)(1), sum);
}

/* Returns the sum of a row in 8 lanes. */
DVTI_INLINE V(d) V(sum_row)(const void *x, dvt_dtype dtype, int64_t k, int64_t n,
                             const float *mean) {
    const V(f) m = mean ? V(set)(*mean) : V(zero)();
    const int64_t group = dtype == DVT_F32 ? 64 : 128;
    V(d) low = V(dzero)(), high = V(dzero)();
    V(f) s;
    for (n += k; k + group <= n; k += group) {
        DVTI_PREFETCH((const char *)x + k * (256 / group) + DVTI_REDUCE_AHEAD);
        if (dtype == DVT_BF16)
            s = V(add)(V(sum4_bf16)(x, k), V(sum4_bf16)(x, k + 64));
        else
            s = V(sum4)(x, dtype, k, 16, 16, mean, m);
        if (dtype == DVT_F16)
            s = V(add)(s, V(sum4)(x, dtype, k + 64, 16, 16, mean, m));
        low = V(dadd_by_fma)(low, V(widen_low)(s));
        high = V(dadd_by_fma)(high, V(widen_high)(s));
    }
    if (k < n) { /* fewer than a group */
        s = V(term)(x, dtype, k, n - k, mean, m);
        for (k += 16; k < n; k += 16)
            s = V(add)(s, V(term)(x, dtype, k, n - k, mean, m));
        low = V(dadd)(low, V(widen_low)(s));
        high = V(dadd)(high, V(widen_high)(s));
    }
    return V(dadd)(low, high);
}

/* Stores the lanes of row r = 0, 1, .. and joins those of eight rows at once. */
#define DVTI_REDUCE_EACH(join, row)                                                                \
    {                                                                                              \
        double lanes[64];                                                                          \
        int64_t r, first;                                                                          \
        for (first = 0; first < p.rows; first += 8) {                                              \
            const int64_t end = DVTI_MIN(first + 8, p.rows);                                       \
            for (r = first; r < end; r++)                                                          \
                V(dstore)(lanes + 8 * (r - first), row);                                           \
            V(transpose_join)(join, lanes, end - first, p.value + first);                          \
        }                                                                                          \
    }

DVTI_INLINE void V(add_rows)(const dvti_reduction *given, dvt_dtype dtype, const float *mean) {
    const dvti_reduction p = *given;
    DVTI_REDUCE_EACH(DVTI_JOIN_add, V(sum_row)(p.x, dtype, r * p.step, p.n, mean ? mean + r : NULL))
}

static void V(sum_rows)(const dvti_reduction *given) {
    if (given->dtype == DVT_F32)
        V(add_rows)(given, DVT_F32, NULL);
    else if (given->dtype == DVT_F16)
        V(add_rows)(given, DVT_F16, NULL);
    else
        V(add_rows)(given, DVT_BF16, NULL);
}

static void V(variance_rows)(const dvti_reduction *given) {
    V(add_rows)(given, DVT_F32, (const float *)given->mean);
}

/* Layer norm of one row. */
static void V(layer_norm)(const float *x, float *y, int64_t n, const float *gamma,
                         const float *beta, float epsilon) {
    double sum;
    float mean, variance;
    V(f) m, scale, v;
    int64_t k;
    dvti_reduction row;
    memset(&row, 0, sizeof row);
    row.dtype = DVT_F32;
    row.x = x;
    row.n = n;
    row.rows = 1;
    row.value = &sum;
    row.mean = &mean;
    V(sum_rows)(&row);
    mean = (float)(sum / (double)n);
    V(variance_rows)(&row);
    variance = (float)(sum / (double)n);
    scale = V(div)(V(set)(1), V(sqrt)(V(add)(V(set)(variance), V(set)(epsilon))));
    m = V(set)(mean);
    for (k = 0; k < n; k += 16) {
        v = V(mul)(V(sub)(V(load_partial)(x + k, n - k), m), scale);
        if (gamma)
            v = V(mul)(v, V(load_partial)(gamma + k, n - k));
        if (beta)
            v = V(add)(v, V(load_partial)(beta + k, n - k));
        V(store_partial)(y + k, n - k, v);
    }
}

/* ---- reductions whose elements widen at once: WIDE2 and WIDE4 of the table ---- */
#define W(name) V(d##name)

/* Loads 16 floats as two vectors of doubles. Only n floats exist; the others become `none`. */
DVTI_INLINE void V(load_two)(const float *x, int64_t n, float none, V(d) * low, V(d) * high) {
    if (n >= 16) {
        *low = V(load_wide)(x);
        *high = V(load_wide)(x + 8);
    } else {
        const V(f) s = none == 0 ? V(load_n)(x, n) : V(load_or)(x, n, none);
        *low = V(widen_low)(s);
        *high = V(widen_high)(s);
    }
}

/* Uses `chains` vectors of 8 lanes, 2 or 4; the tail goes into the first two. */
#define DVTI_WIDE_ROWS(name, chains, none, term, join)                                             \
    DVTI_INLINE V(d) V(row_##name)(const float *from, int64_t n) {                                 \
        V(d) x = V(dset)(none), y, s = term, t = s, u = s, w = s;                                  \
        int64_t k;                                                                                 \
        for (k = 0; k + 8 * chains <= n; k += 8 * chains) {                                        \
            if (chains == 2)                                                                       \
                DVTI_PREFETCH((const char *)(from + k) + DVTI_REDUCE_AHEAD);                       \
            x = V(load_wide)(from + k);                                                            \
            s = W(join)(s, term);                                                                  \
            x = V(load_wide)(from + k + 8);                                                        \
            t = W(join)(t, term);                                                                  \
            if (chains == 4) {                                                                     \
                x = V(load_wide)(from + k + 16);                                                   \
                u = W(join)(u, term);                                                              \
                x = V(load_wide)(from + k + 24);                                                   \
                w = W(join)(w, term);                                                              \
            }                                                                                      \
        }                                                                                          \
        for (; k < n; k += 16) {                                                                   \
            V(load_two)(from + k, n - k, none, &x, &y);                                            \
            s = W(join)(s, term);                                                                  \
            x = y;                                                                                 \
            t = W(join)(t, term);                                                                  \
        }                                                                                          \
        if (chains == 4) {                                                                         \
            s = W(join)(s, u);                                                                     \
            t = W(join)(t, w);                                                                     \
        }                                                                                          \
        return W(join)(s, t);                                                                      \
    }                                                                                              \
    static void V(rows_##name)(const dvti_reduction *given) {                                      \
        const dvti_reduction p = *given;                                                           \
        DVTI_REDUCE_EACH(DVTI_JOIN_##join, V(row_##name)((const float *)p.x + r * p.step, p.n))    \
    }
#define DVTI_ROWS_WIDE2(name, none, term, join) DVTI_WIDE_ROWS(name, 2, none, term, join)
#define DVTI_ROWS_WIDE4(name, none, term, join) DVTI_WIDE_ROWS(name, 4, none, term, join)
#define DVTI_ROWS_ADD(name, none, term, join)
#define DVTI_ROWS_EXTREME(name, none, term, join)
#define DVTI_ROWS_BITS(name, none, term, join)
#define DVTI_ROWS_LOGSUMEXP(name, none, term, join)
#define DVTI_HIGHEST INFINITY
#define DVTI_LOWEST (-INFINITY)
#define DVTI_ROW(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)           \
    DVTI_ROWS_##method(name, none, term, join)
DVTI_REDUCE_TABLE(DVTI_ROW)
#undef DVTI_ROW
#undef DVTI_HIGHEST
#undef DVTI_LOWEST
#undef DVTI_WIDE_ROWS
#undef DVTI_ROWS_WIDE2
#undef DVTI_ROWS_WIDE4
#undef DVTI_ROWS_ADD
#undef DVTI_ROWS_EXTREME
#undef DVTI_ROWS_BITS
#undef DVTI_ROWS_LOGSUMEXP

/* ---- extremes: the largest of x, or for a minimum of -x = x ^ flips. NaN counts as the largest;
   of equals the first one wins ---- */
DVTI_INLINE bool V(is_smallest)(dvti_op op) {
    return dvti_reduce_row_of(op)->join == DVTI_JOIN_smaller;
}

/* Returns the position of the first of n elements that equals `best`, or is NaN if `nan`; n if
   there is none. */
static int64_t V(find)(const float *x, int64_t n, float best, bool nan) {
    const V(f) wanted = V(set)(best);
    int64_t at;
    for (at = 0; at + 64 <= n && !nan; at += 64) {
        V(m) a = V(mor)(V(eq)(V(load)(x + at), wanted), V(eq)(V(load)(x + at + 16), wanted));
        V(m) b = V(mor)(V(eq)(V(load)(x + at + 32), wanted), V(eq)(V(load)(x + at + 48), wanted));
        if (V(mbits)(V(mor)(a, b)))
            break;
    }
    for (; at < n; at += 16) {
        V(f) v = V(load_partial)(x + at, n - at);
        uint32_t bits = V(mbits)(nan ? V(unord)(v, v) : V(eq)(v, wanted));
        if (bits)
            return DVTI_MIN(at + dvti_lowest_bit(bits), n);
    }
    return n;
}

/* Returns a where it is beyond b, otherwise b. */
DVTI_INLINE V(f) V(extreme)(bool smallest, V(f) a, V(f) b) {
    return smallest ? V(min)(a, b) : V(max)(a, b);
}

/* Reduces 1 to DVTI_REDUCE_BLOCK elements. Returns false if there is a NaN. */
DVTI_INLINE bool V(extreme_block)(const float *x, int64_t n, bool smallest, V(f) * most) {
    V(f) m0 = V(set)(smallest ? INFINITY : -INFINITY), m1 = m0, m2 = m0, m3 = m0, a, b;
    V(m) nan = V(unord)(m0, m0);
    int64_t k;
    for (k = 0; k + 64 <= n; k += 64) { /* in pairs: AVX2 has 16 registers */
        a = V(load)(x + k);
        b = V(load)(x + k + 16);
        nan = V(mor)(nan, V(unord)(a, b));
        m0 = V(extreme)(smallest, a, m0);
        m1 = V(extreme)(smallest, b, m1);
        a = V(load)(x + k + 32);
        b = V(load)(x + k + 48);
        nan = V(mor)(nan, V(unord)(a, b));
        m2 = V(extreme)(smallest, a, m2);
        m3 = V(extreme)(smallest, b, m3);
    }
    for (; k < n; k += 16) {
        a = V(load_or)(x + k, n - k, *x);
        nan = V(mor)(nan, V(unord)(a, a));
        m0 = V(extreme)(smallest, a, m0);
    }
    m0 = V(extreme)(smallest, V(extreme)(smallest, m0, m1), V(extreme)(smallest, m2, m3));
    *most = smallest ? V(neg)(m0) : m0;
    return !V(mbits)(nan);
}

/* Reduces 16 of `rows` rows of n > 0 elements. Returns false if there is a NaN. */
static bool V(extreme_short)(const float *x, int64_t step, int64_t rows, int64_t n, bool smallest,
                             double *value, int64_t *at) {
    /* The order in which V(lanes_max) meets equal lanes: the sign of a zero depends on it. */
    static const uint8_t order[16] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};
    const float sign = smallest ? -0.f : 0.f, beyond = smallest ? INFINITY : -INFINITY;
    const bool columns = n <= DVTI_REDUCE_COLUMNS;
    const V(f) flips = V(set)(sign);
    float lanes[256], best[16];
    int32_t place[16];
    V(m) nan = V(unord)(flips, flips);
    const float *row = x;
    V(f) a, most = V(set)(-INFINITY);
    V(i) first = V(iset)(0);
    int64_t r, k;
    if (columns) {
        V(load_columns)(x, step, rows, n, lanes);
        for (r = 0; r < 16; r++)
            if (order[r] < n) {
                a = V(bit_xor)(V(load)(lanes + 16 * order[r]), flips);
                nan = V(mor)(nan, V(unord)(a, a));
                most = V(max)(most, a);
            }
    }
    for (r = 0; r < 16 && !columns; r++, row += step) {
        most = V(bit_xor)(V(load_or)(row, n, beyond), flips);
        nan = V(mor)(nan, V(unord)(most, most));
        for (k = 16; k < n; k += 16) { /* the last vector overlaps the one before */
            a = V(bit_xor)(V(load)(row + DVTI_MIN(k, n - 16)), flips);
            nan = V(mor)(nan, V(unord)(a, a));
            most = V(max)(a, most);
        }
        V(store)(lanes + 16 * r, most);
    }
    if (V(mbits)(nan))
        return false;
    if (!columns) {
        V(transpose_max)(lanes, best);
        most = V(load)(best);
        for (r = 0; r < 16 && at && n <= 16; r++)
            at[r] = dvti_lowest_bit(V(mbits)(V(eq)(V(load)(lanes + 16 * r), V(set)(best[r]))));
    }
    most = V(bit_xor)(most, flips);
    V(store)(best, most);
    V(dstore)(value, V(widen_low)(most));
    V(dstore)(value + 8, V(widen_high)(most));
    if (at && columns) {
        for (r = n - 1; r >= 0; r--)
            first = V(iselect)(V(eq)(V(load)(lanes + 16 * r), most), V(iset)((int32_t)r), first);
        V(istore)(place, first);
        for (r = 0; r < 16; r++)
            at[r] = place[r];
    }
    for (r = 0; r < 16 && at && n > 16; r++, x += step)
        at[r] = V(find)(x, n, best[r], false);
    return true;
}

/* Reduces rows of n > 0 elements; at may be NULL. */
static void V(extreme_rows)(const dvti_reduction *given) {
    const dvti_reduction p = *given;
    const bool smallest = V(is_smallest)(p.op);
    const float *x = (const float *)p.x;
    const int64_t n = p.n;
    int64_t r;
    for (r = 0; r < p.rows; r++, x += p.step) {
        float best = -INFINITY;
        int64_t block, where = 0, size = DVTI_MIN(n, DVTI_REDUCE_BLOCK);
        bool numbers = true;
        V(f) most;
        if (r % 16 == 0 && r + 16 <= p.rows && n <= DVTI_REDUCE_SHORT &&
            V(extreme_short)(x, p.step, p.rows - r, n, smallest, p.value + r,
                             p.at ? p.at + r : NULL)) {
            r += 15;
            x += 15 * p.step;
            continue;
        }
        for (block = 0; block < n && numbers; block += DVTI_REDUCE_BLOCK) {
            int64_t length = DVTI_MIN(n - block, DVTI_REDUCE_BLOCK);
            numbers = smallest ? V(extreme_block)(x + block, length, true, &most)
                               : V(extreme_block)(x + block, length, false, &most);
            if (numbers && block && !V(mbits)(V(gt)(most, V(set)(best))))
                continue;
            best = V(lanes_max)(most);
            where = block;
            size = length;
        }
        best = smallest ? -best : best;
        p.value[r] = numbers ? (double)best : (double)NAN;
        if (p.at)
            p.at[r] = where + V(find)(x + where, size, best, !numbers);
    }
}

#include "3_cpu/simd/reduce_columns.inl"

/* ---- finishing results ---- */
DVTI_INLINE V(d) V(finish_one)(dvti_op op, V(d) s, V(d) n) {
    (void)n;
    switch ((int)op) {
#define DVTI_FINISH_ADD(text) text
#define DVTI_FINISH_WIDE2(text) text
#define DVTI_FINISH_WIDE4(text) text
#define DVTI_FINISH_EXTREME(text) text
#define DVTI_FINISH_BITS(text) text
#define DVTI_FINISH_LOGSUMEXP(text) s /* the kernel's values are logarithms */
#define DVTI_ROW(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)           \
    case DVTI_OP_##name:                                                                           \
        return DVTI_FINISH_##method(finish);
        DVTI_REDUCE_TABLE(DVTI_ROW)
#undef DVTI_ROW
#undef DVTI_FINISH_ADD
#undef DVTI_FINISH_WIDE2
#undef DVTI_FINISH_WIDE4
#undef DVTI_FINISH_EXTREME
#undef DVTI_FINISH_BITS
#undef DVTI_FINISH_LOGSUMEXP
    default: /* variance */
        return s;
    }
}

static void V(finish)(dvti_op op, double count, double *s, int64_t n, float *to) {
    const V(d) number = V(dset)(count);
    int64_t k;
    for (k = 0; k < n; k += 16) {
        const V(d) low = V(finish_one)(op, V(dload_partial)(s + k, n - k), number);
        const V(d) high = V(finish_one)(op, V(dload_partial)(s + k + 8, n - k - 8), number);
        if (to) {
            V(store_partial)(to + k, n - k, V(narrow)(low, high));
        } else {
            V(dstore)(s + k, low);
            V(dstore)(s + k + 8, high);
        }
    }
}

static dvti_reduce_kernel V(reduce)(dvti_op op) {
    dvti_reduce_kernel kernel = {NULL, NULL};
    switch ((int)op) {
#define DVTI_KERNEL(row_kernel, column_kernel)                                                     \
    kernel.rows = row_kernel;                                                                      \
    kernel.columns = column_kernel
#define DVTI_KERNEL_ADD(name) DVTI_KERNEL(V(sum_rows), V(sum_columns))
#define DVTI_KERNEL_WIDE2(name) DVTI_KERNEL(V(rows_##name), V(columns_##name))
#define DVTI_KERNEL_WIDE4(name) DVTI_KERNEL(V(rows_##name), V(columns_##name))
#define DVTI_KERNEL_EXTREME(name) DVTI_KERNEL(V(extreme_rows), V(extreme_columns))
#define DVTI_KERNEL_BITS(name) DVTI_KERNEL(NULL, NULL) /* of every dtype: any_all */
#define DVTI_KERNEL_LOGSUMEXP(name) DVTI_KERNEL(V(logsumexp_rows), V(logsumexp_columns))
#define DVTI_ROW(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)           \
    case DVTI_OP_##name:                                                                           \
        DVTI_KERNEL_##method(name);                                                                \
        break;
        DVTI_REDUCE_TABLE(DVTI_ROW)
#undef DVTI_ROW
#undef DVTI_KERNEL
#undef DVTI_KERNEL_ADD
#undef DVTI_KERNEL_WIDE2
#undef DVTI_KERNEL_WIDE4
#undef DVTI_KERNEL_EXTREME
#undef DVTI_KERNEL_BITS
#undef DVTI_KERNEL_LOGSUMEXP
    default:
        break;
    }
    return kernel;
}

#undef DVTI_REDUCE_BLOCK
#undef DVTI_REDUCE_SHORT
#undef DVTI_REDUCE_COLUMNS
#undef DVTI_REDUCE_AHEAD
#undef DVTI_REDUCE_EACH
#undef W
