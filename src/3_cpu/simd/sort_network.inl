/* Sorts, ranks and selects in 16 columns at a time, without branches that depend on a single
   column:

     x[n][16]    column  0  1  2  ..  15       one row of x is one vector;
     row 0               a  b  c  ..           each column is sorted on its own
     row 1               .  .  . */

/* Returns lanes with NaN or -0, which comparisons of floats do not order. */
DVTI_INLINE V(m) V(undecided)(V(f) x) {
    const V(i) v = V(as_i)(x), size = V(iand)(v, V(iset)(0x7fffffff));
    return V(mor)(V(igt)(size, V(iset)(0x7f800000)), V(ieq)(v, V(iset)(INT32_MIN)));
}

/* ---- sorting: a network of compare-exchanges between rows ---- */
/* Four levels at a time stay in registers. Keys are int32, whose minima take half as long as those
   of floats. Rows up to a power of two are filled with keys that no key exceeds: exchanges leave
   them in place. Merging two sorted blocks of four rows takes three levels:

     row    first (mirrored)    2 apart             1 apart
      0     0 <-> 7             0 <-> 2, 1 <-> 3    0 <-> 1, 2 <-> 3
      1     1 <-> 6             4 <-> 6, 5 <-> 7    4 <-> 5, 6 <-> 7
      2     2 <-> 5
      3     3 <-> 4
      4..7  now no key of rows 0..3 exceeds one of rows 4..7

   Source: Batcher's bitonic sorter, its first comparisons mirrored; Knuth, "The Art of Computer
   Programming" 3, 5.3.4. */
#if DVTI_REGS == 2
#define DVTI_NET 8 /* rows in registers: half of the 16 */
#define DVTI_NET_EACH_HALF DVTI_SORT4(0) DVTI_SORT4(4)
#else
#define DVTI_NET 16
#define DVTI_NET_EACH_HALF DVTI_SORT8(0) DVTI_SORT8(8)
#endif
#define DVTI_EXCHANGE(i, j)                                                                        \
    {                                                                                              \
        const V(pi) least = V(p_imin)(v[i], v[j]);                                                 \
        v[j] = V(p_imax)(v[i], v[j]);                                                              \
        v[i] = least;                                                                              \
    }
#define DVTI_EXCHANGES(i, j, k, l) DVTI_EXCHANGE(i, j) DVTI_EXCHANGE(k, l)
#define DVTI_SORT4(a)                                                                              \
    DVTI_EXCHANGES(a, a + 1, a + 2, a + 3)                                                         \
    DVTI_EXCHANGES(a, a + 2, a + 1, a + 3) DVTI_EXCHANGE(a + 1, a + 2)
#define DVTI_SORT8(a)                                                                              \
    DVTI_SORT4(a) DVTI_SORT4(a + 4)                                                                \
    DVTI_EXCHANGES(a, a + 4, a + 1, a + 5) DVTI_EXCHANGES(a + 2, a + 6, a + 3, a + 7)              \
    DVTI_EXCHANGES(a + 2, a + 4, a + 3, a + 5)                                                     \
    DVTI_EXCHANGES(a + 1, a + 2, a + 3, a + 4) DVTI_EXCHANGE(a + 5, a + 6)
/* Exchanges all pairs that are d apart, if `reach` includes that level. */
#define DVTI_LEVEL(d)                                                                              \
    if (d < DVTI_NET && reach >= d && (reach < DVTI_NET || d < DVTI_NET / 2)) {                    \
        DVTI_REPEAT(8)                                                                             \
        for (k = 0; k < DVTI_NET / 2; k++)                                                         \
            DVTI_EXCHANGE(k / d * 2 * d + k % d, k / d * 2 * d + k % d + d)                        \
    }

/* One register of the 16 columns. */
typedef struct V(net) {
    int32_t *x;
    int64_t n;
    bool floats;
    V(pi) flips; /* all ones for a descending order */
    V(pm) special;
} V(net);

/* Converts a float's bits to its key, or back: flips all bits but the sign if the sign is set. */
DVTI_INLINE V(pi) V(float_key)(V(pi) v) {
    return V(p_ixor)(v, V(p_iand)(V(p_isar)(v, 31), V(p_iset)(INT32_MAX)));
}

/* Updates *special: whether floats have no order. */
DVTI_INLINE V(pi) V(net_key)(V(pi) v, bool floats, V(pi) flips, V(pm) * special) {
    const V(pf) f = V(p_as_f)(v);
    if (!floats)
        return V(p_ixor)(v, flips);
    *special = V(p_mor)(*special, V(p_mor)(V(p_unord)(f, f), V(p_ieq)(v, V(p_iset)(INT32_MIN))));
    return V(p_ixor)(V(float_key)(v), flips);
}

/* Runs the levels reach, reach / 2, .. 1 on DVTI_NET rows, `step` apart. The second half begins at
   `high`. reach = DVTI_NET begins with mirrored exchanges of rows at equal distances from the
   middle. `first`: converts elements to keys and sorts each half. `last`: converts keys to
   elements. */
DVTI_INLINE void V(net_rows)(V(net) * net, int32_t *low, int32_t *high, int64_t step, int reach,
                             bool first, bool last) {
    /* copies, because stores could change the members */
    const bool floats = net->floats;
    const V(pi) flips = net->flips;
    const int half = DVTI_NET / 2;
    V(pi) v[DVTI_NET];
    int k;
    DVTI_REPEAT(8)
    for (k = 0; k < half; k++) {
        v[k] = V(p_iload)(low + k * step);
        v[half + k] = V(p_iload)(high + k * step);
    }
    if (first) {
        V(pm) special = net->special;
        if (floats) {
            DVTI_REPEAT(16)
            for (k = 0; k < DVTI_NET; k++)
                v[k] = V(net_key)(v[k], true, flips, &special);
        } else {
            DVTI_REPEAT(16)
            for (k = 0; k < DVTI_NET; k++)
                v[k] = V(net_key)(v[k], false, flips, &special);
        }
        net->special = special;
        DVTI_NET_EACH_HALF
    }
    if (reach == DVTI_NET) {
        DVTI_REPEAT(8)
        for (k = 0; k < half; k++)
            DVTI_EXCHANGE(k, DVTI_NET - 1 - k)
    }
    DVTI_LEVEL(8)
    DVTI_LEVEL(4)
    DVTI_LEVEL(2)
    DVTI_LEVEL(1)
    DVTI_REPEAT(16)
    for (k = 0; k < DVTI_NET; k++) {
        if (last) {
            v[k] = V(p_ixor)(v[k], flips);
            v[k] = floats ? V(float_key)(v[k]) : v[k];
        }
        V(p_istore)((k < half ? low : high) + k % half * step, v[k]);
    }
}

/* Runs a pass over blocks of more than DVTI_NET rows. */
static void V(net_far)(V(net) * net, int64_t block, bool mirrored) {
    const int64_t n = net->n, apart = block / DVTI_NET, half = block / 2;
    int64_t base, i;
    for (base = 0; base + (mirrored ? half : 0) < n; base += block)
        for (i = 0; i < apart; i++) {
            int32_t *low = net->x + 16 * (base + i);
            int32_t *high = low + 16 * (mirrored ? half + apart - 1 - 2 * i : half);
            V(net_rows)
            (net, low, high, 16 * apart, mirrored ? DVTI_NET : DVTI_NET / 2, false, false);
        }
}

/* Runs a pass over blocks of DVTI_NET rows, whose addresses are constants. */
static void V(net_near)(V(net) * net, int reach, bool first, bool last) {
    int32_t *low = net->x;
    int64_t base;
    for (base = 0; base < net->n; base += DVTI_NET, low += 16 * DVTI_NET)
        V(net_rows)(net, low, low + 8 * DVTI_NET, 16, reach, first, last);
}

/* Sorts 16 columns of n > 0 elements, floats or int32. x[.][16] has a power of two of rows, at
   least 16. Returns false if floats contain NaN or -0; then x has undefined contents. */
static bool V(sort_columns)(void *x, int64_t n, bool floats, bool descending) {
    const int32_t last = floats ? 0x7f800000 : INT32_MAX;
    const int32_t beyond = !descending ? last : floats ? last | INT32_MIN : INT32_MIN;
    /* rows from here on are not converted: they are filled with keys */
    const int64_t first_key = (n + DVTI_NET - 1) / DVTI_NET * DVTI_NET;
    V(net) net;
    int64_t sorted, apart, row;
    int reg;
    net.n = n;
    net.floats = floats;
    net.flips = V(p_iset)(descending ? -1 : 0);
    net.special = V(p_igt)(net.flips, net.flips);
    for (reg = 0; reg < DVTI_REGS; reg++) {
        net.x = (int32_t *)x + reg * DVTI_REG_F;
        for (row = n; row < DVTI_MAX(n, 16) || row & (row - 1); row++)
            V(p_istore)(net.x + 16 * row, V(p_iset)(row < first_key ? beyond : last));
        V(net_near)(&net, DVTI_NET, true, n <= DVTI_NET);
        if (V(p_mbits)(net.special))
            return false;
        for (sorted = DVTI_NET; sorted < n; sorted *= 2) {
            V(net_far)(&net, 2 * sorted, true);
            for (apart = sorted / DVTI_NET; apart >= DVTI_NET; apart /= DVTI_NET)
                V(net_far)(&net, 2 * apart, false);
            V(net_near)(&net, (int)apart, false, 2 * sorted >= n);
        }
    }
    return true;
}

#undef DVTI_NET
#undef DVTI_NET_EACH_HALF
#undef DVTI_EXCHANGE
#undef DVTI_EXCHANGES
#undef DVTI_SORT4
#undef DVTI_SORT8
#undef DVTI_LEVEL

/* ---- ranks of a short row's elements, counted ---- */
#define DVTI_RANKS 2 /* vectors of counts in registers */

/* Writes to rank[k] the number of elements that are strictly before element k in the order. x has n
   floats or int32; NaN is the largest, -0 equals 0. key and rank have space for n + 64. Counting
   has no branches and is faster than sorting up to a few hundred elements. */
static void V(ranks)(const int32_t *x, int64_t n, bool floats, bool descending, int32_t *key,
                     int32_t *rank) {
    const V(i) most = V(iset)(INT32_MAX), flips = V(iset)(descending ? -1 : 0);
    const int64_t some = 16 * DVTI_RANKS;
    V(i) own[DVTI_RANKS], before[DVTI_RANKS], v, size;
    int64_t k, i;
    int c;
    for (k = 0; k < (n + some - 1) / some * some; k += 16) {
        v = n - k >= 16 ? V(iload)(x + k) : V(iload_n)(x + DVTI_MIN(k, n), n - k);
        if (floats) {
            size = V(iand)(v, most);
            v = V(iselect)(V(ieq)(size, V(iset)(0)), size,
                           V(ixor)(v, V(iand)(V(isar)(v, 31), most)));
            v = V(iselect)(V(igt)(size, V(iset)(0x7f800000)), most, v);
        }
        V(istore)(key + k, V(ixor)(v, flips));
    }
    for (k = 0; k < n; k += some) {
        DVTI_REPEAT(2)
        for (c = 0; c < DVTI_RANKS; c++) {
            own[c] = V(iload)(key + k + 16 * c);
            before[c] = V(iset)(0);
        }
        for (i = 0; i < n; i++) {
            v = V(iset)(key[i]);
            DVTI_REPEAT(2)
            for (c = 0; c < DVTI_RANKS; c++)
                before[c] = V(icount)(before[c], own[c], v);
        }
        DVTI_REPEAT(2)
        for (c = 0; c < DVTI_RANKS; c++)
            V(istore)(rank + k + 16 * c, before[c]);
    }
}

#undef DVTI_RANKS

/* Updates the k best of 16 columns, value[k][16] in order and their indices at[k][16], with n rows
   x[n][16]. The first of these rows has index `number`. A value of NaN marks an empty place. An
   element is inserted below the last value that is better or equal. Returns false if there is a NaN
   or a -0; then value and at have undefined contents. */
static bool V(best_of_columns)(const float *x, int64_t n, int32_t number, int64_t k, bool below,
                               float *value, int32_t *at) {
    const V(f) sign = V(set)(below ? -0.f : 0.f);
    V(m) special = V(igt)(V(iset)(0), V(iset)(0));
    int64_t i, j;
    for (i = 0; i < n; i++) {
        const V(f) given = V(load)(x + 16 * i), own = V(bit_xor)(given, sign);
        const V(i) which = V(iset)(number + (int32_t)i);
        V(f) v = V(load)(value + 16 * (k - 1));
        V(i) w = V(iload)(at + 16 * (k - 1));
        V(m) stays = V(le)(own, v);
        special = V(mor)(special, V(undecided)(given));
        if (V(mbits)(stays) == 0xffff)
            continue;
        for (j = k - 1; j > 0; j--) {
            const V(f) above = V(load)(value + 16 * (j - 1));
            const V(i) above_at = V(iload)(at + 16 * (j - 1));
            const V(m) after = V(le)(own, above);
            V(store)(value + 16 * j, V(select)(stays, v, V(select)(after, own, above)));
            V(istore)(at + 16 * j, V(iselect)(stays, w, V(iselect)(after, which, above_at)));
            v = above;
            w = above_at;
            stays = after;
        }
        V(store)(value, V(select)(stays, v, own));
        V(istore)(at, V(iselect)(stays, w, which));
    }
    return !V(mbits)(special);
}
