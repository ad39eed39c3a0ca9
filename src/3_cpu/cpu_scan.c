/* Cumulative sums of contiguous arrays (a, n, b) along n. cpu_scan.h shows the work items. Sums of
   floats are chains of additions in float64, so that sums of positive numbers never decrease. Each
   addition waits for the previous one, so four lines, or four chunks of a line, are interleaved.
   The sums of a chunk start from -0, which changes no number, not even -0. Then the sum of all
   previous chunks is added. Chunk boundaries do not depend on the threads, so results do not
   either. Sums of integers do not depend on the order. */
#include "3_cpu/cpu_scan.h"

DVTI_FN int64_t dvti_scan_first(const dvti_scan *scan, int64_t a, int64_t chunk, int64_t *n) {
    int64_t at = chunk * DVTI_SCAN_CHUNK;
    *n = DVTI_MIN(scan->n - at, DVTI_SCAN_CHUNK);
    return (a * scan->n + (scan->backwards ? scan->n - at - *n : at)) * scan->b;
}

DVTI_FN char *dvti_scan_at(const dvti_view *view, int64_t at) {
    return (char *)view->data + at * dvt_dtype_size(view->dtype);
}

DVTI_FN void dvti_scan_load(const dvti_scan *scan, int64_t at, int64_t n, double *to) {
    const void *from = dvti_scan_at(scan->in, at);
    if (!scan->simd || !scan->simd->f64->load_row(from, scan->in->dtype, n, to))
        dvti_load_row_f64(from, scan->in->dtype, 1, n, to);
}

DVTI_FN void dvti_scan_store(const dvti_scan *scan, int64_t at, int64_t n, double *from,
                             double before) {
    void *to = dvti_scan_at(scan->out, at);
    int64_t k;
    if (scan->simd) {
        dvti_simd_scan_of(scan->simd)->store_sums(to, scan->out->dtype, n, from, before);
        return;
    }
    for (k = 0; k < n; k++)
        from[k] += before;
    dvti_store_row_f64(to, scan->out->dtype, 1, n, from);
}

/* ---- the launch ---- */
/* Replaces the sums of chunks by their exclusive prefix sums. */
#define DVTI_SCAN_CARRY(T, U, zero)                                                                \
    for (line = 0; line < scan->a * scan->b; line++) {                                             \
        T *at = (T *)scan->before + line / scan->b * scan->chunks * scan->b + line % scan->b;      \
        T sum = zero, own;                                                                         \
        for (k = 0; k < scan->chunks; k++, at += scan->b) {                                        \
            own = *at;                                                                             \
            *at = sum;                                                                             \
            sum = (T)((U)sum + (U)own);                                                            \
        }                                                                                          \
    }

static void dvti_scan_carry(const dvti_scan *scan) {
    int64_t line, k;
    if (scan->floats) {
        DVTI_SCAN_CARRY(double, double, -0.)
    } else {
        DVTI_SCAN_CARRY(int64_t, uint64_t, 0)
    }
}

#undef DVTI_SCAN_CARRY

static int64_t dvti_scan_chunks(int64_t n) {
    return (n - 1) / DVTI_SCAN_CHUNK + 1;
}

static void dvti_scan_pass(dvti_scan *scan) {
    const double each = scan->b == 1 ? 0.5 : 0.3;
    const int64_t line = DVTI_MIN(scan->b, scan->width);
    const double chunk = each * (double)(line * DVTI_MIN(scan->n, DVTI_SCAN_CHUNK));
    if (scan->before && scan->b == 1)
        dvti_parallel_for(scan->a * ((scan->chunks - 1) / DVTI_SCAN_INTERLEAVE + 1),
                          DVTI_SCAN_INTERLEAVE * chunk, dvti_scan_chunk_items, scan);
    else if (scan->b == 1)
        dvti_parallel_for((scan->a - 1) / scan->lines + 1,
                          (double)(scan->lines * scan->chunks) * chunk, dvti_scan_line_items, scan);
    else
        dvti_parallel_for(scan->a * scan->col_tiles * (scan->before ? scan->chunks : 1),
                          (double)(scan->before ? 1 : scan->chunks) * chunk,
                          dvti_scan_columns_items, scan);
}

/* ---- the kernel ---- */
DVTI_PLAN_FITS(dvti_scan)

DVTI_FN int64_t dvti_cpu_scan_plan(dvti_launch *launch, int threads) {
    dvti_scan *scan = (dvti_scan *)(void *)&launch->plan;
    int64_t items;
    scan->simd = dvti_simd_now();
    scan->a = launch->out[0].dim[0];
    scan->n = launch->out[0].dim[1];
    scan->b = launch->out[0].dim[2];
    scan->chunks = dvti_scan_chunks(scan->n);
    scan->backwards = launch->i[0] != 0;
    scan->floats = launch->compute != DVTI_I64;
    scan->lines = scan->chunks > 1 ? (scan->floats ? DVTI_SCAN_INTERLEAVE : 1)
                                   : (DVTI_SCAN_ITEM / scan->n + 3) / DVTI_SCAN_INTERLEAVE *
                                         DVTI_SCAN_INTERLEAVE;
    scan->width = DVTI_BLOCK;
    scan->col_tiles = (scan->b - 1) / scan->width + 1;
    threads = dvti_cpu_threads(threads);
    for (; scan->width > 64 && scan->a * scan->col_tiles < threads;
         scan->col_tiles = (scan->b - 1) / scan->width + 1)
        scan->width /= 2;
    /* Lines are cut, in two passes, if there is less than one line for each thread (four lines
       of floats). */
    items = scan->b == 1 ? scan->a / (scan->floats ? DVTI_SCAN_INTERLEAVE : 1)
                         : scan->a * scan->col_tiles;
    scan->cut = scan->chunks > 1 && threads > 1 && items < threads;
    return scan->cut ? scan->a * scan->chunks * scan->b * 8 : 0;
}

DVTI_FN void dvti_cpu_scan(const dvti_launch *launch) {
    dvti_scan *scan = (dvti_scan *)dvti_cpu_plan_at(launch);
    scan->in = &launch->in[0];
    scan->out = &launch->out[0];
    scan->before = scan->cut ? launch->workspace : NULL;
    scan->totals = scan->cut;
    if (scan->totals) {
        dvti_scan_pass(scan);
        dvti_scan_carry(scan);
        scan->totals = false;
    }
    dvti_scan_pass(scan);
}
