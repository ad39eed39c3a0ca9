/* Sorts one long row of keys: quicksort until parts have at most DVTI_SORT_LEAF keys, then 16 of
   these at once by the network of sort_network.inl, each in a column. Only for ISA targets with a
   permutation that collects lanes.

     x   | at most the pivot |  free  | not read yet |  free  | above the pivot |
                           low      left           right    high

   A step reads DVTI_QUICK_STEP keys from the side with less free space, and writes each to one of
   the two free spaces, which together are larger than the step by DVTI_QUICK_STEP.
   Source: Bramas, "A novel hybrid quicksort algorithm vectorized using AVX-512 on Intel Skylake",
   2017. */
#if DVTI_REGS <= 2
#define DVTI_QUICK_STEP 64 /* keys of a step */

/* ---- keys: int32 in the elements' order ---- */
/* Converts n floats or int32 to keys. Returns false if floats contain NaN or -0; then key has
   undefined contents. */
static bool V(sort_keys)(const int32_t *x, int64_t n, bool floats, bool descending, int32_t *key) {
    const V(pi) flips = V(p_iset)(descending ? -1 : 0);
    V(pm) special = V(p_igt)(flips, flips);
    int64_t k;
    for (k = 0; k < n; k += DVTI_REG_F) {
        const int64_t left = n - k;
        if (left >= DVTI_REG_F)
            V(p_istore)(key + k, V(net_key)(V(p_iload)(x + k), floats, flips, &special));
        else
            V(p_istore_n)
            (key + k, left, V(net_key)(V(p_iload_n)(x + k, left), floats, flips, &special));
    }
    return !V(p_mbits)(special);
}

/* Converts keys back to elements. */
DVTI_INLINE V(pi) V(quick_element)(V(pi) key, bool floats, V(pi) flips) {
    key = V(p_ixor)(key, flips);
    return floats ? V(float_key)(key) : key;
}

static void V(sort_elements)(const int32_t *key, int64_t n, bool floats, bool descending,
                             int32_t *x) {
    const V(pi) flips = V(p_iset)(descending ? -1 : 0);
    int64_t k;
    for (k = 0; k < n; k += DVTI_REG_F) {
        const int64_t left = n - k;
        if (left >= DVTI_REG_F)
            V(p_istore)(x + k, V(quick_element)(V(p_iload)(key + k), floats, flips));
        else
            V(p_istore_n)
            (x + k, left, V(quick_element)(V(p_iload_n)(key + k, left), floats, flips));
    }
}

/* ---- partition ---- */
/* Moves keys of at most `limit` before the others, and returns their number.
   n >= 2 * DVTI_QUICK_STEP. */
static int64_t V(quick_part)(int32_t *x, int64_t n, int32_t limit, const uint64_t *order) {
    const V(pi) pivot = V(p_iset)(limit);
    const int64_t step = DVTI_QUICK_STEP;
    int32_t kept[3 * DVTI_QUICK_STEP]; /* both ends, and what is left in the middle */
    int32_t *low = x, *high = x + n, *left = x + step, *right = high - step;
    int64_t some, k;
    memcpy(kept, x, (size_t)step * sizeof *x);
    memcpy(kept + step, right, (size_t)step * sizeof *x);
    while (right - left >= step) {
        const bool first = left - low <= high - right;
        const int32_t *from = first ? left : right - step;
        V(pi) v[DVTI_QUICK_STEP / DVTI_REG_F];
        int reg;
        left += first ? step : 0;
        right -= first ? 0 : step;
        DVTI_REPEAT(8)
        for (reg = 0; reg < DVTI_QUICK_STEP / DVTI_REG_F; reg++)
            v[reg] = V(p_iload)(from + reg * DVTI_REG_F);
#define DVTI_QUICK_SPLIT(v)                                                                        \
    some = V(p_split)(low, high, v, pivot, order);                                                 \
    low += some;                                                                                   \
    high -= DVTI_REG_F - some;
        DVTI_REPEAT(8)
        for (reg = 0; reg < DVTI_QUICK_STEP / DVTI_REG_F; reg++) {
            DVTI_QUICK_SPLIT(v[reg])
        }
    }
    memcpy(kept + 2 * step, left, (size_t)(right - left) * sizeof *x);
    for (k = 0; high - low >= DVTI_SPLIT_SPACE; k += DVTI_REG_F) {
        DVTI_QUICK_SPLIT(V(p_iload)(kept + k))
    }
    for (; low < high; k++) {
        const bool below = kept[k] <= limit;
        *(below ? low : high - 1) = kept[k];
        low += below;
        high -= !below;
    }
#undef DVTI_QUICK_SPLIT
    return low - x;
}

DVTI_INLINE int32_t V(quick_middle)(int32_t a, int32_t b, int32_t c) {
    const int32_t least = DVTI_MIN(a, b), most = DVTI_MAX(a, b);
    return DVTI_MAX(least, DVTI_MIN(most, c));
}

/* The median of three medians of three. */
static int32_t V(quick_pivot)(const int32_t *x, int64_t n) {
    const int64_t apart = n / 9;
    int32_t middle[3];
    int k;
    for (k = 0, x += apart / 2; k < 3; k++, x += 3 * apart)
        middle[k] = V(quick_middle)(x[0], x[apart], x[2 * apart]);
    return V(quick_middle)(middle[0], middle[1], middle[2]);
}

/* The mean of the smallest and the largest of n >= DVTI_REG_F keys. */
static int32_t V(quick_mean)(const int32_t *x, int64_t n) {
    V(pi) least = V(p_iload)(x), most = least;
    int32_t low[DVTI_REG_F], high[DVTI_REG_F];
    int64_t k;
    for (k = 0; k < n; k += DVTI_REG_F) { /* the last register overlaps the one before */
        const V(pi) v = V(p_iload)(x + DVTI_MIN(k, n - DVTI_REG_F));
        least = V(p_imin)(least, v);
        most = V(p_imax)(most, v);
    }
    V(p_istore)(low, least);
    V(p_istore)(high, most);
    for (k = 1; k < DVTI_REG_F; k++) {
        low[0] = DVTI_MIN(low[0], low[k]);
        high[0] = DVTI_MAX(high[0], high[k]);
    }
    return (int32_t)(((int64_t)low[0] + high[0]) >> 1);
}

/* Parts n >= 2 * DVTI_QUICK_STEP keys and returns how many are in the first part: n only if all are
   equal. `by_mean`: by the mean of the extremes. */
static int64_t V(quick_cut)(int32_t *x, int64_t n, bool by_mean, const uint64_t *order) {
    const int32_t limit = by_mean ? V(quick_mean)(x, n) : V(quick_pivot)(x, n);
    int64_t first = V(quick_part)(x, n, limit, order);
    if (first == n && limit > INT32_MIN) /* the limit is the largest key: part before it */
        first = V(quick_part)(x, n, limit - 1, order);
    return first ? first : n;
}

/* The same for programs that share the parts between threads. */
static int64_t V(sort_cut)(int32_t *x, int64_t n) {
    uint64_t order[DVTI_SPLIT_ORDERS];
    V(p_split_orders)(order);
    return V(quick_cut)(x, n, false, order);
}

/* ---- leaves: parts that become columns ---- */
/* Leaves of similar lengths are sorted together, because the network takes as long as for 16 of the
   longest. */
#define DVTI_QUICK_SIZES 4
typedef struct V(leaves) {
    int32_t *x[16];
    int64_t n[16];
    int count;
} V(leaves);

static void V(leaves_sort)(V(leaves) * of, int32_t *lanes) {
    static const int32_t numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const V(i) beyond = V(iset)(INT32_MAX), number = V(iload)(numbers);
    int32_t block[256];
    int64_t most = 0, at;
    int k;
    for (k = 0; k < 16; k++) {
        of->n[k] = k < of->count ? of->n[k] : 0;
        most = DVTI_MAX(most, of->n[k]);
    }
    for (at = 0; at < most; at += 16) {
        for (k = 0; k < 16; k++) {
            const int64_t left = of->n[k] - at;
            V(i) v = beyond;
            if (left >= 16)
                v = V(iload)(of->x[k] + at);
            else if (left > 0)
                v = V(iselect)(V(igt)(V(iset)((int32_t)left), number),
                               V(iload_n)(of->x[k] + at, left), beyond);
            V(istore)(block + 16 * k, v);
        }
        V(transpose)
        ((const float *)(const void *)block, 16, (float *)(void *)(lanes + 16 * at), 16);
    }
    V(sort_columns)(lanes, most, false, false);
    for (at = 0; at < most; at += 16) {
        V(transpose)
        ((const float *)(const void *)(lanes + 16 * at), 16, (float *)(void *)block, 16);
        for (k = 0; k < 16; k++) {
            const int64_t left = of->n[k] - at;
            if (left >= 16)
                V(istore)(of->x[k] + at, V(iload)(block + 16 * k));
            else if (left > 0)
                memcpy(of->x[k] + at, block + 16 * k, (size_t)left * sizeof *block);
        }
    }
    of->count = 0;
}

DVTI_INLINE void V(leaves_add)(V(leaves) * of, int32_t *x, int64_t n, int32_t *lanes) {
    of->x[of->count] = x;
    of->n[of->count] = n;
    if (++of->count == 16)
        V(leaves_sort)(of, lanes);
}

typedef struct V(quick) {
    int32_t *x;
    int64_t n;
    bool by_mean; /* how to cut it */
} V(quick);

/* Sorts n keys. lanes has space for 16 rows of DVTI_SORT_LEAF keys. After a cut into very different
   parts that chose a key, the next one is by the mean. That bisects the range of keys, at most 32
   times. So no input takes quadratic time. */
static void V(sort_row)(int32_t *x, int64_t n, int32_t *lanes) {
    V(quick) waits[64], own, other; /* 64: only the larger part waits */
    uint64_t order[DVTI_SPLIT_ORDERS];
    V(leaves) leaves[DVTI_QUICK_SIZES], *last = &leaves[DVTI_QUICK_SIZES - 1];
    int count = 1, size, k;
    V(p_split_orders)(order);
    for (size = 0; size < DVTI_QUICK_SIZES; size++)
        leaves[size].count = 0;
    waits[0].x = x;
    waits[0].n = n;
    waits[0].by_mean = false;
    while (count) {
        own = waits[--count];
        while (own.n > DVTI_SORT_LEAF) {
            const int64_t first = V(quick_cut)(own.x, own.n, own.by_mean, order);
            const int64_t smaller = DVTI_MIN(first, own.n - first);
            if (!smaller) /* all keys are equal */
                break;
            other = own;
            other.by_mean = !own.by_mean && smaller < own.n / 16;
            if (smaller == first) {
                other.x += first;
                other.n -= first;
            } else {
                other.n = first;
                own.x += first;
            }
            own.n = smaller;
            own.by_mean = false;
            waits[count++] = other;
        }
        if (own.n <= 1 || own.n > DVTI_SORT_LEAF)
            continue;
        size = (int)((own.n - 1) * DVTI_QUICK_SIZES / DVTI_SORT_LEAF);
        V(leaves_add)(&leaves[size], own.x, own.n, lanes);
    }
    for (size = 0; size < DVTI_QUICK_SIZES - 1; size++)
        for (k = 0; k < leaves[size].count; k++)
            V(leaves_add)(last, leaves[size].x[k], leaves[size].n[k], lanes);
    if (last->count)
        V(leaves_sort)(last, lanes);
}

#define DVTI_QUICK_TABLE                                                                           \
    { V(sort_keys), V(sort_cut), V(sort_row), V(sort_elements) }
#undef DVTI_QUICK_STEP
#undef DVTI_QUICK_SIZES
#else
#define DVTI_QUICK_TABLE                                                                           \
    { NULL, NULL, NULL, NULL }
#endif
