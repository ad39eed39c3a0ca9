/* Reductions of integers, in int64: loops over blocks, as the kernels of floats are
   (cpu_reduce_plan.c cuts the work for both). Every order gives the same bits, since sums and
   products wrap. */
#include "3_cpu/simd/dvt_simd.h"

#if defined(__GNUC__) && !defined(__clang__)
/* GCC 12 drops chains in vectors of 64 bytes (-O3 -mavx512f). At -O2 it does not vectorize these
   loops. */
#pragma GCC push_options
#pragma GCC optimize("no-tree-loop-vectorize")
#endif
#define W(word) dvti_i64_##word

/* One result for each row; four chains, which a processor computes side by side. */
#define DVTI_INTEGER_ROWS(name, term, join)                                                        \
    static void dvti_integer_rows_##name(const dvti_reduction *p) {                                \
        const int64_t n = p->n, start = dvti_reduce_start_i64(DVTI_OP_##name);                     \
        const int64_t *row = (const int64_t *)p->x;                                                \
        int64_t r, k, x;                                                                           \
        for (r = 0; r < p->rows; r++, row += p->step) {                                            \
            int64_t s = start, t = start, u = start, v = start;                                    \
            for (k = 0; k + 4 <= n; k += 4) {                                                      \
                x = row[k];                                                                        \
                s = W(join)(s, term);                                                              \
                x = row[k + 1];                                                                    \
                t = W(join)(t, term);                                                              \
                x = row[k + 2];                                                                    \
                u = W(join)(u, term);                                                              \
                x = row[k + 3];                                                                    \
                v = W(join)(v, term);                                                              \
            }                                                                                      \
            for (; k < n; k++) {                                                                   \
                x = row[k];                                                                        \
                s = W(join)(s, term);                                                              \
            }                                                                                      \
            p->integer[r] = W(join)(W(join)(s, t), W(join)(u, v));                                 \
        }                                                                                          \
    }

/* Neighboring results, four rows at a time. */
#define DVTI_INTEGER_COLUMNS(name, term, join)                                                     \
    static int64_t dvti_integer_term_##name(int64_t x) {                                           \
        return term;                                                                               \
    }                                                                                              \
    static void dvti_integer_columns_##name(const dvti_reduction *p) {                             \
        const int64_t *row = (const int64_t *)p->x;                                                \
        const int64_t step = p->step, n = p->n;                                                    \
        int64_t left, some, k, a, b, *s = p->integer;                                              \
        for (left = p->rows; left > 0; left -= some, row += some * step) {                         \
            some = left >= 4 ? 4 : 1;                                                              \
            for (k = 0; k < n; k++) {                                                              \
                a = dvti_integer_term_##name(row[k]);                                              \
                if (some == 4) {                                                                   \
                    a = W(join)(a, dvti_integer_term_##name(row[step + k]));                       \
                    b = W(join)(dvti_integer_term_##name(row[2 * step + k]),                       \
                                dvti_integer_term_##name(row[3 * step + k]));                      \
                    a = W(join)(a, b);                                                             \
                }                                                                                  \
                s[k] = W(join)(s[k], a);                                                           \
            }                                                                                      \
        }                                                                                          \
    }

/* Both with positions. A later element replaces what join does not leave as it is. */
#define DVTI_INTEGER_PLACES(name, join)                                                            \
    static void dvti_integer_rows_##name(const dvti_reduction *p) {                                \
        const int64_t *row = (const int64_t *)p->x;                                                \
        int64_t r, k;                                                                              \
        for (r = 0; r < p->rows; r++, row += p->step) {                                            \
            int64_t s = row[0], at = 0;                                                            \
            for (k = 1; k < p->n; k++)                                                             \
                if (W(join)(s, row[k]) != s) {                                                     \
                    s = row[k];                                                                    \
                    at = k;                                                                        \
                }                                                                                  \
            p->integer[r] = s;                                                                     \
            p->at[r] = at;                                                                         \
        }                                                                                          \
    }                                                                                              \
    static void dvti_integer_columns_##name(const dvti_reduction *p) {                             \
        const int64_t *row = (const int64_t *)p->x;                                                \
        int64_t r, k, *s = p->integer, *at = p->at;                                                \
        for (r = 0; r < p->rows; r++, row += p->step)                                              \
            for (k = 0; k < p->n; k++)                                                             \
                if (W(join)(s[k], row[k]) != s[k]) {                                               \
                    s[k] = row[k];                                                                 \
                    at[k] = p->seen + r;                                                           \
                }                                                                                  \
    }

#define DVTI_INTEGER_SUM(name, term, join)                                                         \
    DVTI_INTEGER_ROWS(name, term, join) DVTI_INTEGER_COLUMNS(name, term, join)
#define DVTI_INTEGER_SAME(name, term, join) DVTI_INTEGER_SUM(name, term, join)
#define DVTI_INTEGER_PLACE(name, term, join) DVTI_INTEGER_PLACES(name, join)
#define DVTI_INTEGER_FLOAT(name, term, join)
#define DVTI_INTEGER_BOOL(name, term, join) /* from the bits of the elements */
#define DVTI_ROW(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)           \
    DVTI_INTEGER_##rule(name, term, join)
DVTI_REDUCE_TABLE(DVTI_ROW)
#undef DVTI_ROW
#undef DVTI_INTEGER_ROWS
#undef DVTI_INTEGER_COLUMNS
#undef DVTI_INTEGER_PLACES
#undef DVTI_INTEGER_SUM
#undef DVTI_INTEGER_SAME
#undef DVTI_INTEGER_PLACE
#undef DVTI_INTEGER_FLOAT
#undef DVTI_INTEGER_BOOL

DVTI_FN dvti_reduce_kernel dvti_reduce_integers(dvti_op op) {
    dvti_reduce_kernel kernel = {NULL, NULL};
    switch ((int)op) {
#define DVTI_KERNEL_SUM(name)                                                                      \
    case DVTI_OP_##name:                                                                           \
        kernel.rows = dvti_integer_rows_##name;                                                    \
        kernel.columns = dvti_integer_columns_##name;                                              \
        break;
#define DVTI_KERNEL_SAME(name) DVTI_KERNEL_SUM(name)
#define DVTI_KERNEL_PLACE(name) DVTI_KERNEL_SUM(name)
#define DVTI_KERNEL_FLOAT(name)
#define DVTI_KERNEL_BOOL(name)
#define DVTI_ROW(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)           \
    DVTI_KERNEL_##rule(name)
        DVTI_REDUCE_TABLE(DVTI_ROW)
#undef DVTI_ROW
#undef DVTI_KERNEL_SUM
#undef DVTI_KERNEL_SAME
#undef DVTI_KERNEL_PLACE
#undef DVTI_KERNEL_FLOAT
#undef DVTI_KERNEL_BOOL
    default:
        break;
    }
    return kernel;
}

#undef W
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
