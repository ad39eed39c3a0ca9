/* Cumulative sums of neighboring lines (b > 1): rows are added to rows. */
#include "3_cpu/cpu_scan.h"

/* Adds rows in order to `sum`; y receives before + sum. y may be x. */
#define DVTI_SCAN_ROWS(name, T, U)                                                                 \
    static void name(const T *x, T *y, int64_t step, int64_t rows, int64_t n, T *sum,              \
                     const T *before) {                                                            \
        int64_t r, k;                                                                              \
        for (k = 0; k < n; k++) {                                                                  \
            const U first = (U)before[k];                                                          \
            U own = (U)sum[k];                                                                     \
            for (r = 0; r < rows; r++) {                                                           \
                own += (U)x[r * step + k];                                                         \
                y[r * step + k] = (T)(first + own);                                                \
            }                                                                                      \
            sum[k] = (T)own;                                                                       \
        }                                                                                          \
    }
DVTI_SCAN_ROWS(dvti_scan_rows_f64, double, double)
DVTI_SCAN_ROWS(dvti_scan_rows_i64, int64_t, uint64_t)
#undef DVTI_SCAN_ROWS

/* Sums n columns of a chunk of floats, from element `at` on. The ISA target's kernel works on
   memory directly; without one, rows are converted to float64 in `work`. */
static void dvti_scan_columns(const dvti_scan *scan, int64_t at, int64_t rows, int64_t n,
                              double *sum, double *before, double *work) {
    const dvt_dtype dtype = scan->in->dtype;
    const bool direct = scan->simd && (dtype == DVT_F32 || dtype == DVT_F64);
    const int64_t most = DVTI_MAX(DVTI_SCAN_WORK / n, 1), row = scan->b;
    int64_t done, some, r;
    dvti_running p, in_work;
    p.columns = n;
    p.sum = sum;
    p.before = before;
    p.step = scan->backwards ? -row : row;
    in_work = p;
    in_work.x = in_work.y = work;
    in_work.step = n;
    for (done = 0; done < rows; done += some) {
        const int64_t from = at + (scan->backwards ? rows - 1 - done : done) * row;
        some = DVTI_MIN(rows - done, most);
        p.rows = some;
        p.x = dvti_scan_at(scan->in, from);
        p.y = scan->totals ? NULL : dvti_scan_at(scan->out, from);
        if (direct) {
            (dtype == DVT_F32 ? dvti_simd_scan_of(scan->simd)->f32
                              : dvti_simd_scan_of(scan->simd)->f64)(&p);
            continue;
        }
        for (r = 0; r < some; r++)
            dvti_scan_load(scan, from + r * p.step, n, work + r * n);
        in_work.rows = some;
        if (scan->simd)
            dvti_simd_scan_of(scan->simd)->f64(&in_work);
        else
            dvti_scan_rows_f64(work, work, n, some, n, sum, before);
        for (r = 0; r < some && !scan->totals; r++)
            dvti_scan_store(scan, from + r * p.step, n, work + r * n, -0.);
    }
}

/* Sums n columns of a chunk of integers. The first pass stores sums too; the second overwrites
   them. */
static void dvti_scan_integer_columns(const dvti_scan *scan, int64_t at, int64_t rows, int64_t n,
                                      int64_t *sum, const int64_t *before) {
    const int64_t most = DVTI_MAX(DVTI_SCAN_WORK / n, 1), row = scan->b;
    const int64_t step = scan->backwards ? -row : row;
    int64_t done, some, r;
    for (done = 0; done < rows; done += some) {
        const int64_t from = at + (scan->backwards ? rows - 1 - done : done) * row;
        int64_t *y = (int64_t *)scan->out->data + from;
        const int64_t *x = y;
        some = DVTI_MIN(rows - done, most);
        if (scan->in->dtype == DVT_I64)
            x = (const int64_t *)scan->in->data + from;
        for (r = 0; r < some && x == y; r++)
            dvti_load_row_i64(dvti_scan_at(scan->in, from + r * step), scan->in->dtype, 1, n,
                              y + r * step);
        dvti_scan_rows_i64(x, y, step, some, n, sum, before);
    }
}

/* Sums `count` chunks of a column tile. The neutral element is -0 for floats and 0 for integers. */
static void dvti_scan_columns_chunk(const dvti_scan *scan, int64_t item, int64_t chunk,
                                    int64_t count) {
    const int64_t a = item / scan->col_tiles, column = item % scan->col_tiles * scan->width;
    const int64_t n = DVTI_MIN(scan->b - column, scan->width);
    double sum[DVTI_BLOCK], before[DVTI_BLOCK], work[DVTI_SCAN_WORK];
    int64_t int_sum[DVTI_BLOCK], int_before[DVTI_BLOCK], k, positions, at;
    const int64_t vectors = (n + 15) / 16 * 16;
    for (k = 0; k < vectors; k++) {
        before[k] = -0.;
        int_before[k] = 0;
    }
    for (; count > 0; count--, chunk++) {
        const size_t bytes = (size_t)n * sizeof *sum;
        char *kept = scan->before ? (char *)scan->before +
                                        ((a * scan->chunks + chunk) * scan->b + column) * 8
                                  : NULL;
        at = dvti_scan_first(scan, a, chunk, &positions) + column;
        if (kept && !scan->totals)
            memcpy(scan->floats ? (void *)before : (void *)int_before, kept, bytes);
        for (k = 0; k < vectors; k++) {
            sum[k] = -0.;
            int_sum[k] = 0;
        }
        if (scan->floats)
            dvti_scan_columns(scan, at, positions, n, sum, before, work);
        else
            dvti_scan_integer_columns(scan, at, positions, n, int_sum, int_before);
        if (scan->totals)
            memcpy(kept, scan->floats ? (void *)sum : (void *)int_sum, bytes);
        for (k = 0; k < n; k++) {
            before[k] += sum[k];
            int_before[k] = (int64_t)((uint64_t)int_before[k] + (uint64_t)int_sum[k]);
        }
    }
}

/* Runs work items: column tiles, or chunks of them in two passes. */
DVTI_FN void dvti_scan_columns_items(void *user, int64_t begin, int64_t end) {
    const dvti_scan *scan = (const dvti_scan *)user;
    for (; begin < end; begin++)
        if (scan->before)
            dvti_scan_columns_chunk(scan, begin / scan->chunks, begin % scan->chunks, 1);
        else
            dvti_scan_columns_chunk(scan, begin, 0, scan->chunks);
}
