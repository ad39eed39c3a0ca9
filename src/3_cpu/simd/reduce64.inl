/* Reductions of double: sums, sums of squares, products and extremes. A run goes into 4 x 8 lanes, which are folded in one order; of neighbouring
   results each is one chain. */

DVTI_INLINE V(d) V(fold64_combine)(dvti_op op, V(d) a, V(d) b) {
    switch ((int)op) {
    case DVTI_OP_prod:
        return V(dmul)(a, b);
    case DVTI_OP_min:
        return V(dsmaller)(a, b);
    case DVTI_OP_max:
        return V(dlarger)(a, b);
    default:
        return V(dadd)(a, b);
    }
}

/* n elements into the lanes of s; what the last vector lacks is as if it were not there. */
#define DVTI_FOLD64_RUN(none, join)                                                                \
    {                                                                                              \
        for (k = 0; k < 8; k++)                                                                    \
            few[k] = none;                                                                         \
        s = t = u = w = V(dload)(few);                                                             \
        for (; n >= 32; n -= 32, x += 32) {                                                        \
            s = join(s, V(dload)(x));                                                              \
            t = join(t, V(dload)(x + 8));                                                          \
            u = join(u, V(dload)(x + 16));                                                         \
            w = join(w, V(dload)(x + 24));                                                         \
        }                                                                                          \
        for (; n >= 8; n -= 8, x += 8)                                                             \
            s = join(s, V(dload)(x));                                                              \
        if (n) {                                                                                   \
            memcpy(few, x, (size_t)n * sizeof *x);                                                 \
            t = join(t, V(dload)(few));                                                            \
        }                                                                                          \
    }                                                                                              \
    break
#define DVTI_SQUARE_STEP(s, v) V(dfma)(v, v, s)

/* n > 0 */
static double V(fold64_value)(dvti_op op, const double *x, int64_t n) {
    double few[16];
    V(d) s, t, u, w;
    int k;
    switch ((int)op) {
    case DVTI_OP_norm:
        DVTI_FOLD64_RUN(0, DVTI_SQUARE_STEP);
    case DVTI_OP_prod:
        DVTI_FOLD64_RUN(1, V(dmul));
    case DVTI_OP_min:
        DVTI_FOLD64_RUN((double)INFINITY, V(dsmaller));
    case DVTI_OP_max:
        DVTI_FOLD64_RUN(-(double)INFINITY, V(dlarger));
    default:
        DVTI_FOLD64_RUN(0, V(dadd));
    }
    s = V(fold64_combine)(op, V(fold64_combine)(op, s, t), V(fold64_combine)(op, u, w));
    V(dstore)(few + 8, s);
    for (k = 4; k; k /= 2) { /* lanes 0..k-1 with k..2k-1; the others do not matter */
        V(dstore)(few, s);
        s = V(fold64_combine)(op, s, V(dload)(few + k));
    }
    V(dstore)(few, s);
    return few[0];
}

/* The first of n elements that is `best`, or that is NaN when `best` is. */
static int64_t V(fold64_find)(const double *x, int64_t n, double best) {
    const V(d) wanted = V(dset)(best);
    int64_t at;
    int k;
    for (at = 0; at < n; at += 8) {
        const V(d) v = n - at >= 8 ? V(dload)(x + at) : V(dload_n)(x + at, n - at);
        uint32_t bits = V(nbits)(best != best ? V(dunord)(v, v) : V(deq)(v, wanted));
        for (k = 0; bits; k++, bits >>= 1)
            if (bits & 1)
                return at + k;
    }
    return 0;
}

static void V(fold64_row)(dvti_op op, const double *x, int64_t n, double *value, int64_t *at) {
    dvti_op extreme = op == DVTI_OP_argmin ? DVTI_OP_min : op == DVTI_OP_argmax ? DVTI_OP_max : op;
    *value = V(fold64_value)(extreme, x, n);
    if (extreme != op)
        *at = V(fold64_find)(x, n, *value);
}

/* Some rows into 8 results. */
#define DVTI_FOLD64_ROWS(join)                                                                     \
    {                                                                                              \
        for (k = 0; k < some; k++)                                                                 \
            s = join(s, V(dload_upto)(row + k * fold->step, left));                                \
    }                                                                                              \
    break

static void V(fold64_columns)(const dvti_fold64 *fold, const double *x, int64_t rows, double *value,
                              int64_t *at) {
    const bool smallest = fold->op == DVTI_OP_argmin;
    int64_t j, r, some, k;
    for (r = 0; r < rows; r += some) {
        some = DVTI_MIN(rows - r, 4);
        for (j = 0; j < fold->n; j += 8) {
            const double *row = x + r * fold->step + j;
            const int64_t left = fold->n - j;
            V(d) s = V(dload_upto)(value + j, left), place, v;
            V(n) better;
            switch ((int)fold->op) {
            case DVTI_OP_norm:
                DVTI_FOLD64_ROWS(DVTI_SQUARE_STEP);
            case DVTI_OP_prod:
                DVTI_FOLD64_ROWS(V(dmul));
            case DVTI_OP_min:
                DVTI_FOLD64_ROWS(V(dsmaller));
            case DVTI_OP_max:
                DVTI_FOLD64_ROWS(V(dlarger));
            case DVTI_OP_argmin:
            case DVTI_OP_argmax:
                place = V(dload)((const double *)(const void *)(at + j)); /* bits to select */
                for (k = 0; k < some; k++) {
                    v = V(dload_upto)(row + k * fold->step, left);
                    better = smallest ? V(dle)(s, v) : V(dle)(v, s);
                    better = V(nand)(V(nnot)(better), V(deq)(s, s));
                    s = V(dselect)(better, v, s);
                    place = V(dselect)(better, V(as_d)(V(lset)(fold->first + r + k)), place);
                }
                V(dstore)((double *)(void *)(at + j), place);
                break;
            default:
                DVTI_FOLD64_ROWS(V(dadd));
            }
            V(dstore)(value + j, s);
        }
    }
}

#undef DVTI_FOLD64_RUN
#undef DVTI_FOLD64_ROWS
#undef DVTI_SQUARE_STEP
