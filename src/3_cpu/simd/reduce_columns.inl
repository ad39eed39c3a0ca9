/* Reductions of float32 to neighboring results: rows of n <= DVTI_ACROSS elements, `step` apart.

              j 0 .. 15        16 .. 31
     row 0  +-------------+-------------+ ..    one vector of columns at a time,
     row 1  |  8 rows     |             |       8 rows (or 4, or 1) added to it;
     ..     |  at a time  |             |       value[j] in float64 is loaded and stored
     row 7  +-------------+-------------+       once for them */

/* Adds four rows of the columns in the upper or lower half of 32-bit words. `upper` is meant for
   little-endian machines. */
DVTI_INLINE V(f) V(half4_bf16)(const uint16_t *x, int64_t step, bool upper) {
    V(f) v[4];
    int i;
    DVTI_REPEAT(4)
    for (i = 0; i < 4; i++) {
        const V(i) w = V(iload)((const int32_t *)(const void *)(x + i * step));
        v[i] = V(as_f)(upper != DVTI_BIG_ENDIAN ? V(iand)(w, V(iset)(-65536)) : V(ishl)(w, 16));
    }
    return V(add)(V(add)(v[0], v[1]), V(fma)(v[2], V(set)(1), v[3]));
}

/* Adds eight rows of 32 columns, in the order in which the loop below adds other dtypes. */
DVTI_INLINE void V(add_columns_bf16)(const uint16_t *x, int64_t step, double *value) {
    const uint16_t *y = x + 4 * step;
    const V(f) a = V(add)(V(half4_bf16)(x, step, false), V(half4_bf16)(y, step, false));
    const V(f) b = V(add)(V(half4_bf16)(x, step, true), V(half4_bf16)(y, step, true));
    const V(f) s[2] = {V(zip_low)(a, b), V(zip_high)(a, b)};
    int i;
    DVTI_REPEAT(2)
    for (i = 0; i < 2; i++, value += 16) {
        V(dstore)(value, V(dadd_by_fma)(V(dload)(value), V(widen_low)(s[i])));
        V(dstore)(value + 8, V(dadd_by_fma)(V(dload)(value + 8), V(widen_high)(s[i])));
    }
}

/* Adds rows to value: eight at once, or four, or one. Eight rows of 16-bit floats become one sum in
   float32. */
DVTI_INLINE void V(add_columns)(const dvti_reduction *given, dvt_dtype dtype,
                                     const float *mean) {
    const dvti_reduction p = *given;
    const int64_t step = p.step, n = p.n;
    int64_t j, r, left, some;
    for (r = 0; r < p.rows; r += some) {
        left = p.rows - r;
        some = left >= 8 ? 8 : left >= 4 ? 4 : 1;
        for (j = 0; dtype == DVT_BF16 && some == 8 && j + 32 <= n; j += 32)
            V(add_columns_bf16)((const uint16_t *)p.x + r * step + j, step, p.value + j);
        for (; j < n; j += 16) {
            const float *middle = mean ? mean + j : NULL;
            const V(f) m = mean ? V(load_partial)(middle, n - j) : V(zero)();
            V(d) low = V(dload)(p.value + j), high = V(dload)(p.value + j + 8);
            V(f) more, s = some > 1 ? V(sum4)(p.x, dtype, r * step + j, step, n - j, middle, m)
                                    : V(term)(p.x, dtype, r * step + j, n - j, middle, m);
            if (some == 8) {
                more = V(sum4)(p.x, dtype, (r + 4) * step + j, step, n - j, middle, m);
                if (dtype == DVT_F32) {
                    low = V(dadd_by_fma)(low, V(widen_low)(s));
                    high = V(dadd_by_fma)(high, V(widen_high)(s));
                    s = more;
                } else {
                    s = V(add)(s, more);
                }
            }
            low = V(dadd_by_fma)(low, V(widen_low)(s));
            high = V(dadd_by_fma)(high, V(widen_high)(s));
            V(dstore)(p.value + j, low);
            V(dstore)(p.value + j + 8, high);
        }
    }
}

static void V(sum_columns)(const dvti_reduction *given) {
    if (given->dtype == DVT_F32)
        V(add_columns)(given, DVT_F32, NULL);
    else if (given->dtype == DVT_F16)
        V(add_columns)(given, DVT_F16, NULL);
    else
        V(add_columns)(given, DVT_BF16, NULL);
}

static void V(variance_columns)(const dvti_reduction *given) {
    V(add_columns)(given, DVT_F32, (const float *)given->mean);
}

/* ---- reductions whose elements widen at once: WIDE2 and WIDE4 of the table ---- */
#define DVTI_WIDE_COLUMNS(name, term, join)                                                        \
    static void V(columns_##name)(const dvti_reduction *given) {                                   \
        const dvti_reduction p = *given;                                                           \
        const float *from = (const float *)p.x;                                                    \
        int64_t j, r, k, some;                                                                     \
        for (r = 0; r < p.rows; r += some, from += some * p.step) {                                \
            some = DVTI_MIN(p.rows - r, 8);                                                        \
            for (j = 0; j < p.n; j += 16) {                                                        \
                V(d) low = V(dload)(p.value + j), high = V(dload)(p.value + j + 8), x, y;          \
                for (k = 0; k < some; k++) {                                                       \
                    V(load_two)(from + k * p.step + j, p.n - j, 0, &x, &y);                        \
                    low = W(join)(low, term);                                                      \
                    x = y;                                                                         \
                    high = W(join)(high, term);                                                    \
                }                                                                                  \
                V(dstore)(p.value + j, low);                                                       \
                V(dstore)(p.value + j + 8, high);                                                  \
            }                                                                                      \
        }                                                                                          \
    }
#define DVTI_COLUMNS_WIDE2(name, term, join) DVTI_WIDE_COLUMNS(name, term, join)
#define DVTI_COLUMNS_WIDE4(name, term, join) DVTI_WIDE_COLUMNS(name, term, join)
#define DVTI_COLUMNS_ADD(name, term, join)
#define DVTI_COLUMNS_EXTREME(name, term, join)
#define DVTI_COLUMNS_BITS(name, term, join)
#define DVTI_COLUMNS_LOGSUMEXP(name, term, join)
#define DVTI_ROW(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)           \
    DVTI_COLUMNS_##method(name, term, join)
DVTI_REDUCE_TABLE(DVTI_ROW)
#undef DVTI_ROW
#undef DVTI_WIDE_COLUMNS
#undef DVTI_COLUMNS_WIDE2
#undef DVTI_COLUMNS_WIDE4
#undef DVTI_COLUMNS_ADD
#undef DVTI_COLUMNS_EXTREME
#undef DVTI_COLUMNS_BITS
#undef DVTI_COLUMNS_LOGSUMEXP

/* ---- extremes ---- */
/* Returns the largest of `most` and some rows. V(max) drops NaN, so NaN is tracked in a
   separate mask. */
DVTI_INLINE V(f) V(most_of_rows)(const float *x, int64_t step, int64_t rows, int64_t n, V(f) flips,
                                 V(f) most) {
    V(m) nan = V(unord)(most, most);
    int64_t r;
    DVTI_REPEAT(8)
    for (r = 0; r < rows; r++) {
        const V(f) v = V(bit_xor)(V(load_partial)(x + r * step, n), flips);
        nan = V(mor)(nan, V(unord)(v, v));
        most = V(max)(v, most);
    }
    return V(select)(nan, V(set)(NAN), most);
}

static void V(extreme_columns)(const dvti_reduction *given) {
    const dvti_reduction p = *given;
    const V(f) flips = V(set)(V(is_smallest)(p.op) ? -0.f : 0.f);
    const float *x = (const float *)p.x;
    const int64_t step = p.step, n = p.n, seen = p.seen;
    float best[DVTI_ACROSS];
    int32_t place[DVTI_ACROSS];
    int64_t j, r, row, some;
    V(m) better;
    V(f) most, v;
    V(i) where;
    for (j = 0; j < n; j += 16) {
        most = V(narrow)(V(dload)(p.value + j), V(dload)(p.value + j + 8));
        V(store)(best + j, V(bit_xor)(most, flips));
    }
    for (j = 0; p.at && j < n; j++)
        place[j] = (int32_t)p.at[j];
    for (row = 0; row < p.rows; row += some, x += some * step) {
        some = p.rows - row >= 8 ? 8 : 1;
        for (j = 0; !p.at && j < n; j += 16) {
            most = V(load)(best + j);
            most = some == 8 ? V(most_of_rows)(x + j, step, 8, n - j, flips, most)
                             : V(most_of_rows)(x + j, step, 1, n - j, flips, most);
            V(store)(best + j, most);
        }
        for (j = 0; p.at && j < n; j += 16) {
            most = V(load)(best + j);
            where = V(iload)(place + j);
            for (r = 0; r < some; r++) {
                v = V(bit_xor)(V(load_partial)(x + r * step + j, n - j), flips);
                better = V(mand)(V(mnot)(V(le)(v, most)), V(eq)(most, most));
                most = V(select)(better, v, most);
                where = V(iselect)(better, V(iset)((int32_t)(seen + row + r)), where);
            }
            V(store)(best + j, most);
            V(istore)(place + j, where);
        }
    }
    for (j = 0; j < n; j += 16) {
        most = V(bit_xor)(V(load)(best + j), flips);
        V(dstore)(p.value + j, V(widen_low)(most));
        V(dstore)(p.value + j + 8, V(widen_high)(most));
    }
    for (j = 0; p.at && j < n; j++)
        p.at[j] = place[j];
}
