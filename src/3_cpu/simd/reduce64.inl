/* Reductions of double: sums, sums of squares of distances, products and extremes. A run goes into 4 x 8 lanes, which are folded in one
   order; of neighbouring results each is one chain. */

/* n > 0 elements of each row; beyond the last one there is `none`, m for the squares of distances from m. */
#define DVTI_FOLD64_ROWS(name, none, join, combine)                                                \
    static void V(name)(const dvti_folding *folding) {                                                   \
        const dvti_folding p = *folding;  \
        const double *x = (const double *)p.x, *mean = (const double *)p.mean;                   \
        const int64_t n = p.n;                                                                    \
        double lanes[64];                                                                          \
        int64_t r, k;                                                                              \
        for (r = 0; r < p.rows; r++, x += p.step) {                                              \
            const double middle = mean ? mean[r] : 0;                                              \
            const V(d) m = V(dset)(middle);                                                        \
            V(d) s = V(dset)(none), t = s, u = s, w = s;                                           \
            (void)m;                                                                               \
            for (k = 0; k + 32 <= n; k += 32) {                                                    \
                s = join(s, V(dload)(x + k));                                                      \
                t = join(t, V(dload)(x + k + 8));                                                  \
                u = join(u, V(dload)(x + k + 16));                                                 \
                w = join(w, V(dload)(x + k + 24));                                                 \
            }                                                                                      \
            for (; k < n; k += 8)                                                                  \
                s = join(s, V(dload_or)(x + k, n - k, none + middle));                             \
            V(dstore)(lanes + r % 8 * 8, combine(combine(s, t), combine(u, w)));                   \
            if (r % 8 == 7 || r + 1 == p.rows)                                                     \
                V(dfold_each)(p.op, lanes, r % 8 + 1, p.value + r / 8 * 8);                        \
        }                                                                                          \
    }
#define DVTI_SQUARE(s, v) V(distance)(s, v, m)

/* s + (v - m)^2 */
DVTI_INLINE V(d) V(distance)(V(d) s, V(d) v, V(d) m) {
    const V(d) d = V(dsub)(v, m);
    return V(dadd)(s, V(dmul)(d, d));
}

DVTI_FOLD64_ROWS(fold64_sum, 0, V(dadd), V(dadd))
DVTI_FOLD64_ROWS(fold64_spread, 0, DVTI_SQUARE, V(dadd))
DVTI_FOLD64_ROWS(fold64_product, 1, V(dmul), V(dmul))

/* The first of n elements that is `best`, or that is NaN when `best` is. */
static int64_t V(fold64_find)(const double *x, int64_t n, double best) {
    const V(d) wanted = V(dset)(best);
    int64_t at;
    for (at = 0; at < n; at += 8) {
        const V(d) v = V(dload_or)(x + at, n - at, x[at]);
        const uint32_t bits = V(nbits)(best != best ? V(dunord)(v, v) : V(deq)(v, wanted));
        if (bits)
            return at + dvti_lowest_bit(bits);
    }
    return 0;
}

/* The largest of x or, of a minimum, of -x, that is x ^ flips; NaN when there is one. */
static void V(fold64_extreme)(const dvti_folding *folding) {
    const dvti_folding p = *folding;
    const double sign = V(smallest)(p.op) ? -0. : 0.;
    const V(d) flips = V(dset)(sign);
    const double *x = (const double *)p.x;
    const int64_t n = p.n;
    int64_t r, k;
    for (r = 0; r < p.rows; r++, x += p.step) {
        V(d) s = V(dset)(-(double)INFINITY), t = s, u = s, w = s;
        V(n) nan = V(dunord)(s, s);
        double best[8];
        for (k = 0; k + 32 <= n; k += 32) {
            const V(d) a = V(dload)(x + k), b = V(dload)(x + k + 8);
            const V(d) c = V(dload)(x + k + 16), d = V(dload)(x + k + 24);
            nan = V(nor)(nan, V(nor)(V(dunord)(a, b), V(dunord)(c, d)));
            s = V(dmax)(V(dxor)(a, flips), s);
            t = V(dmax)(V(dxor)(b, flips), t);
            u = V(dmax)(V(dxor)(c, flips), u);
            w = V(dmax)(V(dxor)(d, flips), w);
        }
        for (; k < n; k += 8) {
            const V(d) a = V(dload_or)(x + k, n - k, x[k]);
            nan = V(nor)(nan, V(dunord)(a, a));
            s = V(dmax)(V(dxor)(a, flips), s);
        }
        s = V(dset)(V(dfold_max)(V(dmax)(V(dmax)(s, t), V(dmax)(u, w))));
        V(dstore)(best, V(dxor)(s, flips));
        p.value[r] = V(nbits)(nan) ? (double)NAN : best[0];
        if (p.at)
            p.at[r] = V(fold64_find)(x, n, p.value[r]);
    }
}

/* ---- columns ---- */
/* Some rows into 8 results. */
#define DVTI_FOLD64_COLUMN(join)                                                                   \
    {                                                                                              \
        for (k = 0; k < some; k++)                                                                 \
            s = join(s, V(dload_upto)(row + k * p.step, left));                                   \
    }                                                                                              \
    break

static void V(fold64_columns)(const dvti_folding *folding) {
    const dvti_folding p = *folding;
    const bool smallest = V(smallest)(p.op);
    const double *x = (const double *)p.x, *mean = (const double *)p.mean;
    int64_t j, r, some, k;
    if (!p.seen && (p.op == DVTI_OP_min || p.op == DVTI_OP_max || p.at))
        for (j = 0; j < p.n; j += 8) {
            V(dstore)(p.value + j, V(dset)(smallest ? (double)INFINITY : -(double)INFINITY));
            if (p.at) /* the first of those that are no better than nothing */
                memset(p.at + j, 0, 8 * sizeof *p.at);
        }
    for (r = 0; r < p.rows; r += some) {
        some = DVTI_MIN(p.rows - r, 8);
        for (j = 0; j < p.n; j += 8) {
            const double *row = x + r * p.step + j;
            const int64_t left = p.n - j;
            const V(d) m = mean ? V(dload_upto)(mean + j, left) : V(dzero)();
            V(d) s = V(dload)(p.value + j), place, v;
            V(n) better;
            switch ((int)p.op) {
            case DVTI_OP_norm:
            case DVTI_OP_square:
                DVTI_FOLD64_COLUMN(DVTI_SQUARE);
            case DVTI_OP_prod:
                DVTI_FOLD64_COLUMN(V(dmul));
            case DVTI_OP_min:
                DVTI_FOLD64_COLUMN(V(dminimum));
            case DVTI_OP_max:
                DVTI_FOLD64_COLUMN(V(dmaximum));
            case DVTI_OP_argmin:
            case DVTI_OP_argmax:
                place = V(dload)((const double *)(const void *)(p.at + j)); /* bits to select */
                for (k = 0; k < some; k++) {
                    v = V(dload_upto)(row + k * p.step, left);
                    better = smallest ? V(dle)(s, v) : V(dle)(v, s);
                    better = V(nand)(V(nnot)(better), V(deq)(s, s));
                    s = V(dselect)(better, v, s);
                    place = V(dselect)(better, V(as_d)(V(lset)(p.seen + r + k)), place);
                }
                V(dstore)((double *)(void *)(p.at + j), place);
                break;
            default:
                DVTI_FOLD64_COLUMN(V(dadd));
            }
            V(dstore)(p.value + j, s);
        }
    }
}

static dvti_fold V(fold64)(dvti_op op) {
    dvti_fold fold = {NULL, V(fold64_columns), NULL};
    switch ((int)op) {
    case DVTI_OP_sum:
    case DVTI_OP_mean:
        fold.rows = V(fold64_sum);
        break;
    case DVTI_OP_norm:
    case DVTI_OP_square:
        fold.rows = V(fold64_spread);
        break;
    case DVTI_OP_prod:
        fold.rows = V(fold64_product);
        break;
    case DVTI_OP_min:
    case DVTI_OP_max:
    case DVTI_OP_argmin:
    case DVTI_OP_argmax:
        fold.rows = V(fold64_extreme);
        break;
    default:
        break;
    }
    return fold;
}

#undef DVTI_FOLD64_ROWS
#undef DVTI_FOLD64_COLUMN
#undef DVTI_SQUARE
