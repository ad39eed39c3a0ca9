/* Cumulative sums by plain loops, for every dtype, and the plan that the tiers' way (cpu_scan.c) follows too. */
#include "3_cpu/dvt_cpu.h"

static int64_t dvti_scan_chunks(int64_t n) {
    return (n - 1) / DVTI_SCAN_CHUNK + 1;
}

DVTI_FN int64_t dvti_scan_workspace(const dvti_launch *launch) {
    const int64_t *dim = launch->out[0].dim;
    int64_t chunks = dvti_scan_chunks(dim[1]);
    return chunks > 1 ? dim[0] * chunks * dim[2] * 8 : 0;
}

DVTI_FN dvti_scan dvti_scan_plan(const dvti_launch *launch) {
    dvti_scan scan;
    scan.in = launch->in[0];
    scan.out = launch->out[0];
    scan.n = scan.out.dim[1];
    scan.b = scan.out.dim[2];
    scan.chunks = dvti_scan_chunks(scan.n);
    scan.rows = scan.out.dim[0];
    scan.pieces = scan.rows * scan.chunks;
    scan.backwards = launch->i[0] != 0;
    scan.totals = false;
    scan.floats = launch->compute != DVTI_I64;
    scan.before = scan.chunks > 1 ? launch->workspace : NULL;
    return scan;
}

DVTI_FN int64_t dvti_scan_first(const dvti_scan *scan, int64_t piece, int64_t *positions) {
    /* The division would take as long as a short line. */
    int64_t chunk = scan->chunks > 1 ? piece / scan->rows : 0;
    int64_t a = piece - chunk * scan->rows, at = chunk * DVTI_SCAN_CHUNK;
    *positions = DVTI_MIN(scan->n - at, DVTI_SCAN_CHUNK);
    return (a * scan->n + (scan->backwards ? scan->n - 1 - at : at)) * scan->b;
}

static const void *dvti_scan_at(const dvti_view *view, int64_t at) {
    return (const char *)view->data + at * dvt_dtype_size(view->dtype);
}

/* ---- float64 and int64 ---- */
/* x (rows, columns) becomes the running sums, each plus what stands before; sum goes on. */
#define DVTI_DEFINE_RUNNING(name, T, U)                                                            \
    static void name(T *x, int64_t rows, int64_t columns, T *sum, const T *before) {               \
        int64_t r, c;                                                                              \
        if (columns == 1) { /* a single line's sum stays in a register */                          \
            T own = *sum;                                                                          \
            for (r = 0; r < rows; r++) {                                                           \
                own = (T)((U)own + (U)x[r]);                                                       \
                x[r] = (T)((U)own + (U)*before);                                                   \
            }                                                                                      \
            *sum = own;                                                                            \
            return;                                                                                \
        }                                                                                          \
        for (r = 0; r < rows; r++, x += columns)                                                   \
            for (c = 0; c < columns; c++) {                                                        \
                sum[c] = (T)((U)sum[c] + (U)x[c]);                                                 \
                x[c] = (T)((U)sum[c] + (U)before[c]);                                              \
            }                                                                                      \
    }
DVTI_DEFINE_RUNNING(dvti_running_f64, double, double)
DVTI_DEFINE_RUNNING(dvti_running_i64, int64_t, uint64_t)
#undef DVTI_DEFINE_RUNNING

/* Lines where b is 1: a block holds some positions of all of them, turned so that the lines lie side by side. */
#define DVTI_DEFINE_PIECES(name, T, zero, load, store, running)                                    \
    static void name(const dvti_scan *scan, int64_t piece, int64_t count) {                        \
        T x[DVTI_BLOCK], line[DVTI_BLOCK], sum[DVTI_SCAN_LINES], before[DVTI_SCAN_LINES];          \
        int64_t first[DVTI_SCAN_LINES], positions[DVTI_SCAN_LINES];                                \
        int64_t at, k, j, n, most = 0, step = scan->backwards ? -1 : 1, rows = DVTI_BLOCK / count; \
        for (k = 0; k < count; k++) {                                                              \
            first[k] = dvti_scan_first(scan, piece + k, &positions[k]);                            \
            most = DVTI_MAX(most, positions[k]);                                                   \
            sum[k] = zero;                                                                         \
            before[k] = scan->before && !scan->totals ? ((T *)scan->before)[piece + k] : zero;     \
        }                                                                                          \
        for (at = 0; at < most; at += rows) {                                                      \
            for (k = 0; k < count; k++) {                                                          \
                n = DVTI_MIN(positions[k] - at, rows);                                             \
                if (n > 0)                                                                         \
                    load(dvti_scan_at(&scan->in, first[k] + at * step), scan->in.dtype, step, n,   \
                         line);                                                                    \
                for (j = 0; j < rows; j++)                                                         \
                    x[j * count + k] = j < n ? line[j] : zero;                                     \
            }                                                                                      \
            running(x, rows, count, sum, before);                                                  \
            for (k = 0; k < count && !scan->totals; k++) {                                         \
                n = DVTI_MIN(positions[k] - at, rows);                                             \
                for (j = 0; j < n; j++)                                                            \
                    line[j] = x[j * count + k];                                                    \
                if (n > 0)                                                                         \
                    store((void *)dvti_scan_at(&scan->out, first[k] + at * step), scan->out.dtype, \
                          step, n, line);                                                          \
            }                                                                                      \
        }                                                                                          \
        for (k = 0; k < count && scan->totals; k++)                                                \
            ((T *)scan->before)[piece + k] = sum[k];                                               \
    }
DVTI_DEFINE_PIECES(dvti_pieces_f64, double, -0., dvti_load_row_f64, dvti_store_row_f64,
                   dvti_running_f64)
DVTI_DEFINE_PIECES(dvti_pieces_i64, int64_t, 0, dvti_load_row_i64, dvti_store_row_i64,
                   dvti_running_i64)
#undef DVTI_DEFINE_PIECES

/* Columns of one piece, at most DVTI_BLOCK. */
#define DVTI_DEFINE_COLUMNS(name, T, zero, load, store, running)                                   \
    static void name(const dvti_scan *scan, int64_t piece, int64_t column, int64_t count) {        \
        T x[DVTI_BLOCK], sum[DVTI_BLOCK], before[DVTI_BLOCK];                                      \
        int64_t j, k, positions, at = dvti_scan_first(scan, piece, &positions) + column;           \
        T *kept = scan->before ? (T *)scan->before + piece * scan->b + column : NULL;              \
        for (k = 0; k < count; k++) {                                                              \
            sum[k] = zero;                                                                         \
            before[k] = kept && !scan->totals ? kept[k] : zero;                                    \
        }                                                                                          \
        for (j = 0; j < positions; j++) {                                                          \
            load(dvti_scan_at(&scan->in, at), scan->in.dtype, 1, count, x);                        \
            running(x, 1, count, sum, before);                                                     \
            if (!scan->totals)                                                                     \
                store((void *)dvti_scan_at(&scan->out, at), scan->out.dtype, 1, count, x);         \
            at += scan->backwards ? -scan->b : scan->b;                                            \
        }                                                                                          \
        if (scan->totals)                                                                          \
            memcpy(kept, sum, sizeof *sum *(size_t)count);                                         \
    }
DVTI_DEFINE_COLUMNS(dvti_columns_f64, double, -0., dvti_load_row_f64, dvti_store_row_f64,
                    dvti_running_f64)
DVTI_DEFINE_COLUMNS(dvti_columns_i64, int64_t, 0, dvti_load_row_i64, dvti_store_row_i64,
                    dvti_running_i64)
#undef DVTI_DEFINE_COLUMNS

DVTI_FN void dvti_scan_pieces(const dvti_scan *scan, int64_t piece, int64_t count) {
    if (scan->floats)
        dvti_pieces_f64(scan, piece, count);
    else
        dvti_pieces_i64(scan, piece, count);
}

DVTI_FN void dvti_scan_columns(const dvti_scan *scan, int64_t piece, int64_t column,
                               int64_t count) {
    if (scan->floats)
        dvti_columns_f64(scan, piece, column, count);
    else
        dvti_columns_i64(scan, piece, column, count);
}

/* ---- from chunk to chunk ---- */
#define DVTI_CARRY(T, U, zero)                                                                     \
    for (line = 0; line < lines; line++) {                                                         \
        T *at = (T *)scan->before + line, sum = zero, own;                                         \
        for (k = 0; k < scan->chunks; k++, at += lines) {                                          \
            own = *at;                                                                             \
            *at = sum;                                                                             \
            sum = (T)((U)sum + (U)own);                                                            \
        }                                                                                          \
    }

DVTI_FN void dvti_scan_carry(const dvti_scan *scan) {
    int64_t line, k, lines = scan->rows * scan->b;
    if (scan->floats) {
        DVTI_CARRY(double, double, -0.)
    } else {
        DVTI_CARRY(int64_t, uint64_t, 0)
    }
}

#undef DVTI_CARRY
