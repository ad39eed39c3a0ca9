/* Reductions of float64. A run is accumulated in 4 x 8 lanes, which are joined in one order. Each
   of several neighboring results is one chain. Kernels of rows and cases of columns come from the
   table. */
#define W(name) V(d##name)
#define DVTI_HIGHEST ((double)INFINITY)
#define DVTI_LOWEST (-(double)INFINITY)

/* Reduces rows of n > 0 elements; lanes after the last one are `beyond`. m is the row's mean
   (variance). */
#define DVTI_ROWS_F64(name, start, beyond, term, join)                                             \
    static void V(name)(const dvti_reduction *given) {                                             \
        const dvti_reduction p = *given;                                                           \
        const double *from = (const double *)p.x, *mean = (const double *)p.mean;                  \
        const int64_t n = p.n;                                                                     \
        double lanes[64];                                                                          \
        int64_t r, k;                                                                              \
        for (r = 0; r < p.rows; r++, from += p.step) {                                             \
            const double middle = mean ? mean[r] : 0;                                              \
            const V(d) m = V(dset)(middle);                                                        \
            V(d) x = V(dset)(beyond), s = start, t = s, u = s, w = s;                              \
            (void)m;                                                                               \
            for (k = 0; k + 32 <= n; k += 32) {                                                    \
                x = V(dload)(from + k);                                                            \
                s = W(join)(s, term);                                                              \
                x = V(dload)(from + k + 8);                                                        \
                t = W(join)(t, term);                                                              \
                x = V(dload)(from + k + 16);                                                       \
                u = W(join)(u, term);                                                              \
                x = V(dload)(from + k + 24);                                                       \
                w = W(join)(w, term);                                                              \
            }                                                                                      \
            for (; k < n; k += 8) {                                                                \
                x = V(dload_or)(from + k, n - k, beyond);                                          \
                s = W(join)(s, term);                                                              \
            }                                                                                      \
            V(dstore)(lanes + r % 8 * 8, W(join)(W(join)(s, t), W(join)(u, w)));                   \
            if (r % 8 == 7 || r + 1 == p.rows)                                                     \
                V(transpose_join)(DVTI_JOIN_##join, lanes, r % 8 + 1, p.value + r / 8 * 8);        \
        }                                                                                          \
    }

DVTI_INLINE V(d) V(dsquare_from)(V(d) x, V(d) m) {
    const V(d) d = V(dsub)(x, m);
    return V(dmul)(d, d);
}

DVTI_ROWS_F64(sum_rows_f64, x, 0, x, add)
DVTI_ROWS_F64(variance_rows_f64, V(dzero)(), middle, V(dsquare_from)(x, m), add)
#define DVTI_ROWS_F64_WIDE2(name, none, term, join)                                                \
    DVTI_ROWS_F64(rows_f64_##name, term, none, term, join)
#define DVTI_ROWS_F64_WIDE4(name, none, term, join)                                                \
    DVTI_ROWS_F64(rows_f64_##name, term, none, term, join)
#define DVTI_ROWS_F64_ADD(name, none, term, join)
#define DVTI_ROWS_F64_EXTREME(name, none, term, join)
#define DVTI_ROWS_F64_BITS(name, none, term, join)
#define DVTI_ROWS_F64_LOGSUMEXP(name, none, term, join)
#define DVTI_ROW(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)           \
    DVTI_ROWS_F64_##method(name, none, term, join)
DVTI_REDUCE_TABLE(DVTI_ROW)
#undef DVTI_ROW
#undef DVTI_ROWS_F64
#undef DVTI_ROWS_F64_WIDE2
#undef DVTI_ROWS_F64_WIDE4
#undef DVTI_ROWS_F64_ADD
#undef DVTI_ROWS_F64_EXTREME
#undef DVTI_ROWS_F64_BITS
#undef DVTI_ROWS_F64_LOGSUMEXP

/* Returns the position of the first of n elements that equals `best`, or is NaN if `best` is. */
static int64_t V(find_f64)(const double *x, int64_t n, double best) {
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

/* Reduces rows to the largest of x, or for a minimum of -x = x ^ flips; NaN if there is one. */
static void V(extreme_rows_f64)(const dvti_reduction *given) {
    const dvti_reduction p = *given;
    const double sign = V(is_smallest)(p.op) ? -0. : 0.;
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
        s = V(dset)(V(dlanes_max)(V(dmax)(V(dmax)(s, t), V(dmax)(u, w))));
        V(dstore)(best, V(dxor)(s, flips));
        p.value[r] = V(nbits)(nan) ? (double)NAN : best[0];
        if (p.at)
            p.at[r] = V(find_f64)(x, n, p.value[r]);
    }
}

/* ---- columns ---- */
/* Joins some rows to 8 results. */
#define DVTI_COLUMN_F64(term, join)                                                                \
    for (k = 0; k < some; k++) {                                                                   \
        x = V(dload_partial)(row + k * p.step, left);                                              \
        s = W(join)(s, term);                                                                      \
    }

static void V(columns_f64)(const dvti_reduction *given) {
    const dvti_reduction p = *given;
    const dvti_reduce_row *table_row = dvti_reduce_row_of(p.op); /* NULL: variance */
    const dvti_join join = table_row ? table_row->join : DVTI_JOIN_add;
    const double *from = (const double *)p.x, *mean = (const double *)p.mean;
    int64_t j, r, some, k;
    for (r = 0; r < p.rows; r += some) {
        some = DVTI_MIN(p.rows - r, 8);
        for (j = 0; j < p.n; j += 8) {
            const double *row = from + r * p.step + j;
            const int64_t left = p.n - j;
            const V(d) m = mean ? V(dload_partial)(mean + j, left) : V(dzero)();
            V(d) s = V(dload)(p.value + j), place, x;
            V(n) better;
            if (p.at) {
                place = V(dload)((const double *)(const void *)(p.at + j)); /* bits to select */
                for (k = 0; k < some; k++) {
                    x = V(dload_partial)(row + k * p.step, left);
                    better = join == DVTI_JOIN_smaller ? V(dle)(s, x) : V(dle)(x, s);
                    better = V(nand)(V(nnot)(better), V(deq)(s, s));
                    s = V(dselect)(better, x, s);
                    place = V(dselect)(better, V(as_d)(V(lset)(p.seen + r + k)), place);
                }
                V(dstore)((double *)(void *)(p.at + j), place);
            } else {
                switch ((int)p.op) {
#define DVTI_CASE_WIDE2(name, term, join)                                                          \
    case DVTI_OP_##name:                                                                           \
        DVTI_COLUMN_F64(term, join)                                                                \
        break;
#define DVTI_CASE_WIDE4(name, term, join) DVTI_CASE_WIDE2(name, term, join)
#define DVTI_CASE_ADD(name, term, join)
#define DVTI_CASE_EXTREME(name, term, join)
#define DVTI_CASE_BITS(name, term, join)
#define DVTI_CASE_LOGSUMEXP(name, term, join)
#define DVTI_ROW(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)           \
    DVTI_CASE_##method(name, term, join)
                    DVTI_REDUCE_TABLE(DVTI_ROW)
#undef DVTI_ROW
#undef DVTI_CASE_ADD
#undef DVTI_CASE_WIDE2
#undef DVTI_CASE_WIDE4
#undef DVTI_CASE_EXTREME
#undef DVTI_CASE_BITS
#undef DVTI_CASE_LOGSUMEXP
                case DVTI_OP_variance: /* variance */
                    DVTI_COLUMN_F64(V(dsquare_from)(x, m), add)
                    break;
                default: /* ADD and EXTREME */
                    if (join == DVTI_JOIN_smaller) {
                        DVTI_COLUMN_F64(x, minimum)
                    } else if (join == DVTI_JOIN_larger) {
                        DVTI_COLUMN_F64(x, maximum)
                    } else {
                        DVTI_COLUMN_F64(x, add)
                    }
                }
            }
            V(dstore)(p.value + j, s);
        }
    }
}

static dvti_reduce_kernel V(reduce_f64)(dvti_op op) {
    dvti_reduce_kernel kernel = {NULL, V(columns_f64)};
    switch ((int)op) {
#define DVTI_KERNEL_ADD(name) V(sum_rows_f64)
#define DVTI_KERNEL_WIDE2(name) V(rows_f64_##name)
#define DVTI_KERNEL_WIDE4(name) V(rows_f64_##name)
#define DVTI_KERNEL_EXTREME(name) V(extreme_rows_f64)
#define DVTI_KERNEL_BITS(name) NULL      /* of every dtype: any_all */
#define DVTI_KERNEL_LOGSUMEXP(name) NULL /* cpu_softmax64.c */
#define DVTI_ROW(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)           \
    case DVTI_OP_##name:                                                                           \
        kernel.rows = DVTI_KERNEL_##method(name);                                                  \
        break;
        DVTI_REDUCE_TABLE(DVTI_ROW)
#undef DVTI_ROW
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

#undef W
#undef DVTI_HIGHEST
#undef DVTI_LOWEST
#undef DVTI_COLUMN_F64
