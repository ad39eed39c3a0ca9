/* Cumulative sums along memory (b = 1). */
#include "3_cpu/cpu_scan.h"

/* Sums `lines` lines of n floats, `stride` elements apart. y may be x. Unless `sum` is NULL, the
   last four lines' totals go there. Prefetches the next four lines: hardware prefetchers do not
   follow many short streams. */
#define DVTI_SCAN_CHAINS(name, X)                                                                  \
    static void name(const X *x, X *y, int64_t stride, int64_t lines, int64_t n, bool backwards,   \
                     double *sum) {                                                                \
        const int64_t step = backwards ? -1 : 1, last = backwards ? n - 1 : 0,                     \
                      group = DVTI_SCAN_INTERLEAVE * stride;                                       \
        int64_t i, j, some;                                                                        \
        int k, p;                                                                                  \
        for (; lines > 0; lines -= some, x += some * stride, y += some * stride) {                 \
            const int64_t next = lines >= 2 * DVTI_SCAN_INTERLEAVE ? group : 0;                    \
            double s[DVTI_SCAN_INTERLEAVE] = {-0., -0., -0., -0.};                                 \
            some = lines >= DVTI_SCAN_INTERLEAVE ? DVTI_SCAN_INTERLEAVE : 1;                       \
            i = 0;                                                                                 \
            j = last;                                                                              \
            for (; some == DVTI_SCAN_INTERLEAVE && i + 2 <= n; i += 2, j += 2 * step) {            \
                DVTI_PREFETCH(x + next + DVTI_SCAN_INTERLEAVE * i);                                \
                DVTI_PREFETCH(y + next + DVTI_SCAN_INTERLEAVE * i);                                \
                DVTI_REPEAT(4)                                                                     \
                for (k = 0; k < DVTI_SCAN_INTERLEAVE; k++) {                                       \
                    DVTI_REPEAT(2)                                                                 \
                    for (p = 0; p < 2; p++) {                                                      \
                        s[k] += (double)x[k * stride + j + p * step];                              \
                        y[k * stride + j + p * step] = (X)s[k];                                    \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
            if (some == DVTI_SCAN_INTERLEAVE && i < n) {                                           \
                DVTI_REPEAT(4)                                                                     \
                for (k = 0; k < DVTI_SCAN_INTERLEAVE; k++) {                                       \
                    s[k] += (double)x[k * stride + j];                                             \
                    y[k * stride + j] = (X)s[k];                                                   \
                }                                                                                  \
            }                                                                                      \
            for (; some == 1 && i < n; i++, j += step) {                                           \
                s[0] += (double)x[j];                                                              \
                y[j] = (X)s[0];                                                                    \
            }                                                                                      \
            if (sum)                                                                               \
                memcpy(sum, s, sizeof s);                                                          \
        }                                                                                          \
    }
DVTI_SCAN_CHAINS(dvti_scan_chains32, float)
DVTI_SCAN_CHAINS(dvti_scan_chains64, double)
#undef DVTI_SCAN_CHAINS

/* Sums integers in one chain that starts from `sum`. Returns the last sum. */
#define DVTI_SCAN_CHAIN(name, X)                                                                   \
    static int64_t name(const X *x, int64_t *y, int64_t n, bool backwards, int64_t sum) {          \
        const int64_t step = backwards ? -1 : 1;                                                   \
        int64_t i = 0, j = backwards ? n - 1 : 0;                                                  \
        uint64_t s = (uint64_t)sum;                                                                \
        int p;                                                                                     \
        for (; i + 4 <= n; i += 4, j += 4 * step) {                                                \
            DVTI_REPEAT(4)                                                                         \
            for (p = 0; p < 4; p++)                                                                \
                y[j + p * step] = (int64_t)(s += (uint64_t)x[j + p * step]);                       \
        }                                                                                          \
        for (; i < n; i++, j += step)                                                              \
            y[j] = (int64_t)(s += (uint64_t)x[j]);                                                 \
        return (int64_t)s;                                                                         \
    }
DVTI_SCAN_CHAIN(dvti_scan_chain32, int32_t)
DVTI_SCAN_CHAIN(dvti_scan_chain64, int64_t)
#undef DVTI_SCAN_CHAIN

/* Stores n sums of integers from element `at` on, starting from `sum`. Returns the last one. */
static int64_t dvti_scan_ints(const dvti_scan *scan, int64_t at, int64_t n, int64_t sum) {
    const void *x = dvti_scan_at(scan->in, at);
    int64_t *y = (int64_t *)scan->out->data + at;
    if (scan->in->dtype == DVT_I32)
        return dvti_scan_chain32((const int32_t *)x, y, n, scan->backwards, sum);
    if (scan->in->dtype == DVT_I64)
        return dvti_scan_chain64((const int64_t *)x, y, n, scan->backwards, sum);
    dvti_load_row_i64(x, scan->in->dtype, 1, n, y);
    return dvti_scan_chain64(y, y, n, scan->backwards, sum);
}

/* Sums 16 lines of floats: transposes 16 x 16 elements, whose columns are summed side by side, and
   back. The bits are those of a chain for each line. Prefetches as the chains do. */
static void dvti_scan_side_by_side(const dvti_scan *scan, const float *x, float *y) {
    const int64_t n = scan->n;
    float tile[256];
    double sum[16], before[16];
    dvti_running p;
    int64_t at, j;
    int k;
    for (k = 0; k < 16; k++)
        sum[k] = before[k] = -0.;
    p.x = p.y = scan->backwards ? tile + 240 : tile;
    p.step = scan->backwards ? -16 : 16;
    p.rows = p.columns = 16;
    p.sum = sum;
    p.before = before;
    for (at = 0; at + 16 <= n; at += 16) {
        j = scan->backwards ? n - 16 - at : at;
        for (k = 0; k < 16; k++) {
            DVTI_PREFETCH(x + 16 * (n + at + k));
            DVTI_PREFETCH(y + 16 * (n + at + k));
        }
        scan->simd->transpose(x + j, n, tile, 16);
        dvti_simd_scan_of(scan->simd)->f32(&p);
        scan->simd->transpose(tile, 16, y + j, n);
    }
    for (; at < n; at++) {
        j = scan->backwards ? n - 1 - at : at;
        for (k = 0; k < 16; k++) {
            sum[k] += (double)x[k * n + j];
            y[k * n + j] = (float)sum[k];
        }
    }
}

/* Sums lines of at most one chunk. */
static void dvti_scan_short(const dvti_scan *scan, int64_t first, int64_t lines, double *work) {
    const int64_t n = scan->n, at = first * n;
    const void *x = dvti_scan_at(scan->in, at);
    void *y = dvti_scan_at(scan->out, at);
    int64_t k, some;
    if (scan->in->dtype == DVT_F32) {
        for (k = 0; scan->simd && n >= 16 && k + 16 <= lines; k += 16)
            dvti_scan_side_by_side(scan, (const float *)x + k * n, (float *)y + k * n);
        dvti_scan_chains32((const float *)x + k * n, (float *)y + k * n, n, lines - k, n,
                           scan->backwards, NULL);
    } else if (scan->in->dtype == DVT_F64) {
        dvti_scan_chains64((const double *)x, (double *)y, n, lines, n, scan->backwards, NULL);
    } else {
        for (k = 0; k < lines; k += some) {
            some = DVTI_MIN(lines - k, DVTI_SCAN_WORK / n);
            dvti_scan_load(scan, at + k * n, some * n, work);
            dvti_scan_chains64(work, work, n, some, n, scan->backwards, NULL);
            dvti_scan_store(scan, at + k * n, some * n, work, -0.);
        }
    }
}

/* Up to four chunks of floats, of neighboring lines or of one line. */
typedef struct dvti_scan_group {
    int count;
    bool direct; /* float64: sums are formed in the result, not in `work` */
    int64_t at[DVTI_SCAN_INTERLEAVE], n[DVTI_SCAN_INTERLEAVE];
    double sum[DVTI_SCAN_INTERLEAVE], before[DVTI_SCAN_INTERLEAVE];
} dvti_scan_group;

/* Forms the sums of each chunk from -0, and their totals. `across`: one chunk of each of `count`
   lines, else `count` chunks of line a. */
static void dvti_scan_form(const dvti_scan *scan, int64_t a, int64_t chunk, int count, bool across,
                           dvti_scan_group *group, double *work) {
    int64_t most = 0, k, j;
    double *row = work;
    group->count = count;
    group->direct = scan->in->dtype == DVT_F64 && !scan->totals && count == DVTI_SCAN_INTERLEAVE;
    for (k = 0; k < count; k++) {
        group->at[k] =
            dvti_scan_first(scan, across ? a + k : a, across ? chunk : chunk + k, &group->n[k]);
        group->direct = group->direct && group->n[k] == group->n[0];
        most = DVTI_MAX(most, group->n[k]);
    }
    if (group->direct) {
        dvti_scan_chains64((const double *)scan->in->data + group->at[0],
                           (double *)scan->out->data + group->at[0], group->at[1] - group->at[0],
                           DVTI_SCAN_INTERLEAVE, most, scan->backwards, group->sum);
        return;
    }
    /* Missing positions become -0, so that all chunks have the same length. */
    for (k = 0; k < DVTI_SCAN_INTERLEAVE; k++, row += DVTI_SCAN_ROW) {
        const int64_t n = k < count ? group->n[k] : 0, missing = most - n;
        for (j = 0; j < missing; j++)
            row[scan->backwards ? j : n + j] = -0.;
        if (n)
            dvti_scan_load(scan, group->at[k], n, row + (scan->backwards ? missing : 0));
    }
    dvti_scan_chains64(work, work, DVTI_SCAN_ROW, DVTI_SCAN_INTERLEAVE, most, scan->backwards,
                       group->sum);
}

static void dvti_scan_put(const dvti_scan *scan, dvti_scan_group *group, double *work) {
    int64_t most = 0, k;
    for (k = 0; k < group->count; k++)
        most = DVTI_MAX(most, group->n[k]);
    for (k = 0; k < group->count; k++, work += DVTI_SCAN_ROW) {
        const int64_t n = group->n[k];
        double *x = group->direct ? (double *)scan->out->data + group->at[k]
                                  : work + (scan->backwards ? most - n : 0);
        dvti_scan_store(scan, group->at[k], n, x, group->before[k]);
    }
}

/* Sums four long lines, chunk by chunk. */
static void dvti_scan_across(const dvti_scan *scan, int64_t a, double *work) {
    dvti_scan_group group;
    int64_t chunk;
    int k;
    for (k = 0; k < DVTI_SCAN_INTERLEAVE; k++)
        group.before[k] = -0.;
    for (chunk = 0; chunk < scan->chunks; chunk++) {
        dvti_scan_form(scan, a, chunk, DVTI_SCAN_INTERLEAVE, true, &group, work);
        dvti_scan_put(scan, &group, work);
        for (k = 0; k < DVTI_SCAN_INTERLEAVE; k++)
            group.before[k] += group.sum[k];
    }
}

/* Sums chunks of one long line: in one pass all of them, in two passes some. The first pass stores
   only the total of each chunk. */
static void dvti_scan_along(const dvti_scan *scan, int64_t a, int64_t chunk, int64_t count,
                            double *work) {
    double *kept = scan->before ? (double *)scan->before + a * scan->chunks + chunk : NULL;
    dvti_scan_group group;
    double before = -0.;
    int64_t done;
    int k;
    for (done = 0; done < count; done += group.count) {
        dvti_scan_form(scan, a, chunk + done, (int)DVTI_MIN(count - done, DVTI_SCAN_INTERLEAVE),
                       false, &group, work);
        for (k = 0; k < group.count; k++) {
            if (scan->totals)
                kept[done + k] = group.sum[k];
            group.before[k] = kept ? kept[done + k] : before;
            before += group.sum[k];
        }
        if (!scan->totals)
            dvti_scan_put(scan, &group, work);
    }
}

/* Sums chunks of one line of integers. */
static void dvti_scan_integers(const dvti_scan *scan, int64_t a, int64_t chunk, int64_t count) {
    int64_t *kept = scan->before ? (int64_t *)scan->before + a * scan->chunks + chunk : NULL;
    int64_t sum = 0, k, n, at;
    for (k = 0; k < count; k++) {
        at = dvti_scan_first(scan, a, chunk + k, &n);
        sum = dvti_scan_ints(scan, at, n, !kept ? sum : scan->totals ? 0 : kept[k]);
        if (scan->totals)
            kept[k] = sum;
    }
}

DVTI_FN void dvti_scan_line_items(void *user, int64_t begin, int64_t end) {
    const dvti_scan *scan = (const dvti_scan *)user;
    double work[DVTI_SCAN_WORK];
    int64_t a, last;
    for (; begin < end; begin++) {
        a = begin * scan->lines;
        last = DVTI_MIN(a + scan->lines, scan->a);
        if (scan->floats && scan->chunks == 1)
            dvti_scan_short(scan, a, last - a, work);
        else
            for (; a < last; a++)
                if (!scan->floats)
                    dvti_scan_integers(scan, a, 0, scan->chunks);
                else if (a + DVTI_SCAN_INTERLEAVE <= last) {
                    dvti_scan_across(scan, a, work);
                    a += DVTI_SCAN_INTERLEAVE - 1;
                } else
                    dvti_scan_along(scan, a, 0, scan->chunks, work);
    }
}

/* Runs work items of four chunks of a line each. */
DVTI_FN void dvti_scan_chunk_items(void *user, int64_t begin, int64_t end) {
    const dvti_scan *scan = (const dvti_scan *)user;
    const int64_t groups = (scan->chunks - 1) / DVTI_SCAN_INTERLEAVE + 1;
    double work[DVTI_SCAN_WORK];
    for (; begin < end; begin++) {
        int64_t a = begin / groups, chunk = begin % groups * DVTI_SCAN_INTERLEAVE;
        int64_t count = DVTI_MIN(scan->chunks - chunk, DVTI_SCAN_INTERLEAVE);
        if (scan->floats)
            dvti_scan_along(scan, a, chunk, count, work);
        else
            dvti_scan_integers(scan, a, chunk, count);
    }
}
