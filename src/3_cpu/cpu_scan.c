/* Cumulative sums of contiguous arrays (a, n, b) along n. Sums of floats are chains of additions in float64, so that sums of nothing but
   positive numbers never fall, and one addition waits for the one before; so four lines, or four chunks of one line, take turns. A chunk's own
   sums run from -0, which adds nothing to any number, -0 included, and then what stands before the chunk is added. Chunks begin at the same
   positions whatever the threads do. Sums of integers are the same in every order. */
#include "3_cpu/simd/dvt_simd.h"

#define DVTI_SCAN_CHUNK 1024
#define DVTI_SCAN_SIDE 4                     /* chains that take turns */
#define DVTI_SCAN_ROW (DVTI_SCAN_CHUNK + 24) /* of a block, not 4096 bytes apart */
#define DVTI_SCAN_WORK (DVTI_SCAN_SIDE * DVTI_SCAN_ROW)
#define DVTI_SCAN_ITEM 16384 /* elements of a work item of short lines */

typedef struct dvti_scan {
    const dvti_simd *simd; /* NULL: the plain loops */
    dvti_view in, out;
    int64_t a, n, b, chunks;
    bool backwards, floats;
    int64_t width, strips; /* of neighbouring lines, where b > 1 */
    int64_t lines;         /* of a work item of short lines, where b is 1 */
    /* double or int64_t [a][chunk][b], between the first pass, which forms the sums of chunks, and the second; NULL when one is enough */
    void *before;
    bool totals; /* this is the first pass */
} dvti_scan;

/* Where a chunk begins in memory, as an element's number, and how many positions it has. The first chunk backwards is the last in memory. */
static int64_t dvti_scan_first(const dvti_scan *scan, int64_t a, int64_t chunk, int64_t *n) {
    int64_t at = chunk * DVTI_SCAN_CHUNK;
    *n = DVTI_MIN(scan->n - at, DVTI_SCAN_CHUNK);
    return (a * scan->n + (scan->backwards ? scan->n - at - *n : at)) * scan->b;
}

static char *dvti_scan_at(const dvti_view *view, int64_t at) {
    return (char *)view->data + at * dvt_dtype_size(view->dtype);
}

/* ---- elements ---- */
static void dvti_scan_load(const dvti_scan *scan, int64_t at, int64_t n, double *to) {
    const void *from = dvti_scan_at(&scan->in, at);
    if (!scan->simd || !scan->simd->f64->load_row(from, scan->in.dtype, n, to))
        dvti_load_row_f64(from, scan->in.dtype, 1, n, to);
}

/* n sums, each with what stands before them. */
static void dvti_scan_store(const dvti_scan *scan, int64_t at, int64_t n, double *from,
                            double before) {
    void *to = dvti_scan_at(&scan->out, at);
    int64_t k;
    if (scan->simd) {
        scan->simd->f64->store_sums(to, scan->out.dtype, n, from, before);
        return;
    }
    for (k = 0; k < n; k++)
        from[k] += before;
    dvti_store_row_f64(to, scan->out.dtype, 1, n, from);
}

/* ---- lines along memory ---- */
/* Sums of floats of `lines` lines of n elements, `stride` apart; where they end, for four lines, into `sum`, unless it is NULL. y may be x. The
   next four lines are asked for early: many short streams confuse what fetches ahead by itself. */
#define DVTI_SCAN_CHAINS(name, X)                                                                  \
    static void name(const X *x, X *y, int64_t stride, int64_t lines, int64_t n, bool backwards,   \
                     double *sum) {                                                                \
        const int64_t step = backwards ? -1 : 1, last = backwards ? n - 1 : 0,                     \
                      group = DVTI_SCAN_SIDE * stride;                                             \
        int64_t i, j, some;                                                                        \
        int k, p;                                                                                  \
        for (; lines > 0; lines -= some, x += some * stride, y += some * stride) {                 \
            const int64_t next = lines >= 2 * DVTI_SCAN_SIDE ? group : 0;                          \
            double s[DVTI_SCAN_SIDE] = {-0., -0., -0., -0.};                                       \
            some = lines >= DVTI_SCAN_SIDE ? DVTI_SCAN_SIDE : 1;                                   \
            i = 0;                                                                                 \
            j = last;                                                                              \
            for (; some == DVTI_SCAN_SIDE && i + 2 <= n; i += 2, j += 2 * step) {                  \
                DVTI_PREFETCH(x + next + DVTI_SCAN_SIDE * i);                                      \
                DVTI_PREFETCH(y + next + DVTI_SCAN_SIDE * i);                                      \
                DVTI_REPEAT(4)                                                                     \
                for (k = 0; k < DVTI_SCAN_SIDE; k++) {                                             \
                    DVTI_REPEAT(2)                                                                 \
                    for (p = 0; p < 2; p++) {                                                      \
                        s[k] += (double)x[k * stride + j + p * step];                              \
                        y[k * stride + j + p * step] = (X)s[k];                                    \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
            if (some == DVTI_SCAN_SIDE && i < n) {                                                 \
                DVTI_REPEAT(4)                                                                     \
                for (k = 0; k < DVTI_SCAN_SIDE; k++) {                                             \
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

/* Sums of integers in one chain, on from `sum`; where it ends. */
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

/* n sums of integers from element `at` on, which begin with `sum`; where they end. */
static int64_t dvti_scan_whole(const dvti_scan *scan, int64_t at, int64_t n, int64_t sum) {
    const void *x = dvti_scan_at(&scan->in, at);
    int64_t *y = (int64_t *)scan->out.data + at;
    if (scan->in.dtype == DVT_I32)
        return dvti_scan_chain32((const int32_t *)x, y, n, scan->backwards, sum);
    if (scan->in.dtype == DVT_I64)
        return dvti_scan_chain64((const int64_t *)x, y, n, scan->backwards, sum);
    dvti_load_row_i64(x, scan->in.dtype, 1, n, y);
    return dvti_scan_chain64(y, y, n, scan->backwards, sum);
}

/* Whole lines of one chunk. */
static void dvti_scan_short(const dvti_scan *scan, int64_t first, int64_t lines, double *work) {
    const int64_t n = scan->n, at = first * n;
    const void *x = dvti_scan_at(&scan->in, at);
    void *y = dvti_scan_at(&scan->out, at);
    int64_t k, some;
    if (scan->in.dtype == DVT_F32) {
        dvti_scan_chains32((const float *)x, (float *)y, n, lines, n, scan->backwards, NULL);
    } else if (scan->in.dtype == DVT_F64) {
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

/* Up to four chunks of floats, of lines side by side or of one line. */
typedef struct dvti_scan_group {
    int count;
    bool direct; /* sums of float64 are formed where they belong */
    int64_t at[DVTI_SCAN_SIDE], n[DVTI_SCAN_SIDE];
    double sum[DVTI_SCAN_SIDE], before[DVTI_SCAN_SIDE];
} dvti_scan_group;

/* The chunks' own sums, without what is before, and what they come to. */
static void dvti_scan_form(const dvti_scan *scan, int64_t a, int64_t chunk, int count, bool across,
                           dvti_scan_group *group, double *work) {
    int64_t most = 0, k, j;
    double *row = work;
    group->count = count;
    group->direct = scan->in.dtype == DVT_F64 && !scan->totals && count == DVTI_SCAN_SIDE;
    for (k = 0; k < count; k++) {
        group->at[k] =
            dvti_scan_first(scan, across ? a + k : a, across ? chunk : chunk + k, &group->n[k]);
        group->direct = group->direct && group->n[k] == group->n[0];
        most = DVTI_MAX(most, group->n[k]);
    }
    if (group->direct) {
        dvti_scan_chains64((const double *)scan->in.data + group->at[0],
                           (double *)scan->out.data + group->at[0], group->at[1] - group->at[0],
                           DVTI_SCAN_SIDE, most, scan->backwards, group->sum);
        return;
    }
    /* All have as many positions when the missing ones are -0. */
    for (k = 0; k < DVTI_SCAN_SIDE; k++, row += DVTI_SCAN_ROW) {
        const int64_t n = k < count ? group->n[k] : 0, missing = most - n;
        for (j = 0; j < missing; j++)
            row[scan->backwards ? j : n + j] = -0.;
        if (n)
            dvti_scan_load(scan, group->at[k], n, row + (scan->backwards ? missing : 0));
    }
    dvti_scan_chains64(work, work, DVTI_SCAN_ROW, DVTI_SCAN_SIDE, most, scan->backwards,
                       group->sum);
}

static void dvti_scan_put(const dvti_scan *scan, dvti_scan_group *group, double *work) {
    int64_t most = 0, k;
    for (k = 0; k < group->count; k++)
        most = DVTI_MAX(most, group->n[k]);
    for (k = 0; k < group->count; k++, work += DVTI_SCAN_ROW) {
        const int64_t n = group->n[k];
        double *x = group->direct ? (double *)scan->out.data + group->at[k]
                                  : work + (scan->backwards ? most - n : 0);
        dvti_scan_store(scan, group->at[k], n, x, group->before[k]);
    }
}

/* Four long lines, chunk by chunk. */
static void dvti_scan_across(const dvti_scan *scan, int64_t a, double *work) {
    dvti_scan_group group;
    int64_t chunk;
    int k;
    for (k = 0; k < DVTI_SCAN_SIDE; k++)
        group.before[k] = -0.;
    for (chunk = 0; chunk < scan->chunks; chunk++) {
        dvti_scan_form(scan, a, chunk, DVTI_SCAN_SIDE, true, &group, work);
        dvti_scan_put(scan, &group, work);
        for (k = 0; k < DVTI_SCAN_SIDE; k++)
            group.before[k] += group.sum[k];
    }
}

/* Some chunks of one long line, the first ones unless what stands before is known. In the first pass only what each comes to. */
static void dvti_scan_along(const dvti_scan *scan, int64_t a, int64_t chunk, int64_t count,
                            double *work) {
    double *kept = scan->before ? (double *)scan->before + a * scan->chunks + chunk : NULL;
    dvti_scan_group group;
    double before = -0.;
    int64_t done;
    int k;
    for (done = 0; done < count; done += group.count) {
        dvti_scan_form(scan, a, chunk + done, (int)DVTI_MIN(count - done, DVTI_SCAN_SIDE), false,
                       &group, work);
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

/* Chunks of one line of integers. */
static void dvti_scan_integers(const dvti_scan *scan, int64_t a, int64_t chunk, int64_t count) {
    int64_t *kept = scan->before ? (int64_t *)scan->before + a * scan->chunks + chunk : NULL;
    int64_t sum = 0, k, n, at;
    for (k = 0; k < count; k++) {
        at = dvti_scan_first(scan, a, chunk + k, &n);
        sum = dvti_scan_whole(scan, at, n, !kept ? sum : scan->totals ? 0 : kept[k]);
        if (scan->totals)
            kept[k] = sum;
    }
}

static void dvti_scan_line_items(void *user, int64_t begin, int64_t end) {
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
                else if (a + DVTI_SCAN_SIDE <= last) {
                    dvti_scan_across(scan, a, work);
                    a += DVTI_SCAN_SIDE - 1;
                } else
                    dvti_scan_along(scan, a, 0, scan->chunks, work);
    }
}

/* Four chunks of a line each. */
static void dvti_scan_chunk_items(void *user, int64_t begin, int64_t end) {
    const dvti_scan *scan = (const dvti_scan *)user;
    const int64_t groups = (scan->chunks - 1) / DVTI_SCAN_SIDE + 1;
    double work[DVTI_SCAN_WORK];
    for (; begin < end; begin++) {
        int64_t a = begin / groups, chunk = begin % groups * DVTI_SCAN_SIDE;
        int64_t count = DVTI_MIN(scan->chunks - chunk, DVTI_SCAN_SIDE);
        if (scan->floats)
            dvti_scan_along(scan, a, chunk, count, work);
        else
            dvti_scan_integers(scan, a, chunk, count);
    }
}

/* ---- lines side by side ---- */
/* Rows are added one after the other to `sum`; y receives before + sum. y may be x. */
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

/* n columns of a chunk of floats from element `at` on: by the tier from memory to memory where it has a kernel, else by way of float64. */
static void dvti_scan_columns(const dvti_scan *scan, int64_t at, int64_t rows, int64_t n,
                              double *sum, double *before, double *work) {
    const dvt_dtype dtype = scan->in.dtype;
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
        p.x = dvti_scan_at(&scan->in, from);
        p.y = scan->totals ? NULL : dvti_scan_at(&scan->out, from);
        if (direct) {
            (dtype == DVT_F32 ? scan->simd->running : scan->simd->f64->running)(&p);
            continue;
        }
        for (r = 0; r < some; r++)
            dvti_scan_load(scan, from + r * p.step, n, work + r * n);
        in_work.rows = some;
        if (scan->simd)
            scan->simd->f64->running(&in_work);
        else
            dvti_scan_rows_f64(work, work, n, some, n, sum, before);
        for (r = 0; r < some && !scan->totals; r++)
            dvti_scan_store(scan, from + r * p.step, n, work + r * n, -0.);
    }
}

/* The same of integers. The first pass writes sums too, which the second replaces. */
static void dvti_scan_integer_columns(const dvti_scan *scan, int64_t at, int64_t rows, int64_t n,
                                      int64_t *sum, const int64_t *before) {
    const int64_t most = DVTI_MAX(DVTI_SCAN_WORK / n, 1), row = scan->b;
    const int64_t step = scan->backwards ? -row : row;
    int64_t done, some, r;
    for (done = 0; done < rows; done += some) {
        const int64_t from = at + (scan->backwards ? rows - 1 - done : done) * row;
        int64_t *y = (int64_t *)scan->out.data + from;
        const int64_t *x = y;
        some = DVTI_MIN(rows - done, most);
        if (scan->in.dtype == DVT_I64)
            x = (const int64_t *)scan->in.data + from;
        for (r = 0; r < some && x == y; r++)
            dvti_load_row_i64(dvti_scan_at(&scan->in, from + r * step), scan->in.dtype, 1, n,
                              y + r * step);
        dvti_scan_rows_i64(x, y, step, some, n, sum, before);
    }
}

/* `count` chunks of a strip; sums of floats and integers differ in what nothing is. */
static void dvti_scan_strip(const dvti_scan *scan, int64_t item, int64_t chunk, int64_t count) {
    const int64_t a = item / scan->strips, column = item % scan->strips * scan->width;
    const int64_t n = DVTI_MIN(scan->b - column, scan->width);
    double sum[DVTI_BLOCK], before[DVTI_BLOCK], work[DVTI_SCAN_WORK];
    int64_t whole[DVTI_BLOCK], whole_before[DVTI_BLOCK], k, positions, at;
    const int64_t vectors = (n + 15) / 16 * 16;
    for (k = 0; k < vectors; k++) {
        before[k] = -0.;
        whole_before[k] = 0;
    }
    for (; count > 0; count--, chunk++) {
        const size_t bytes = (size_t)n * sizeof *sum;
        char *kept = scan->before ? (char *)scan->before +
                                        ((a * scan->chunks + chunk) * scan->b + column) * 8
                                  : NULL;
        at = dvti_scan_first(scan, a, chunk, &positions) + column;
        if (kept && !scan->totals)
            memcpy(scan->floats ? (void *)before : (void *)whole_before, kept, bytes);
        for (k = 0; k < vectors; k++) {
            sum[k] = -0.;
            whole[k] = 0;
        }
        if (scan->floats)
            dvti_scan_columns(scan, at, positions, n, sum, before, work);
        else
            dvti_scan_integer_columns(scan, at, positions, n, whole, whole_before);
        if (scan->totals)
            memcpy(kept, scan->floats ? (void *)sum : (void *)whole, bytes);
        for (k = 0; k < n; k++) {
            before[k] += sum[k];
            whole_before[k] = (int64_t)((uint64_t)whole_before[k] + (uint64_t)whole[k]);
        }
    }
}

/* Strips, or each chunk of a strip. */
static void dvti_scan_strip_items(void *user, int64_t begin, int64_t end) {
    const dvti_scan *scan = (const dvti_scan *)user;
    for (; begin < end; begin++)
        if (scan->before)
            dvti_scan_strip(scan, begin / scan->chunks, begin % scan->chunks, 1);
        else
            dvti_scan_strip(scan, begin, 0, scan->chunks);
}

/* ---- the launch ---- */
/* Sums of chunks become the sums of the chunks before. */
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

DVTI_FN int64_t dvti_scan_workspace(const dvti_launch *launch) {
    const int64_t *dim = launch->out[0].dim, chunks = dvti_scan_chunks(dim[1]);
    return chunks > 1 ? dim[0] * chunks * dim[2] * 8 : 0;
}

static void dvti_scan_pass(dvti_scan *scan) {
    const double each = scan->b == 1 ? 0.5 : 0.3;
    const int64_t line = DVTI_MIN(scan->b, scan->width);
    const double chunk = each * (double)(line * DVTI_MIN(scan->n, DVTI_SCAN_CHUNK));
    if (scan->before && scan->b == 1)
        dvti_parallel_for(scan->a * ((scan->chunks - 1) / DVTI_SCAN_SIDE + 1),
                          DVTI_SCAN_SIDE * chunk, dvti_scan_chunk_items, scan);
    else if (scan->b == 1)
        dvti_parallel_for((scan->a - 1) / scan->lines + 1,
                          (double)(scan->lines * scan->chunks) * chunk, dvti_scan_line_items, scan);
    else
        dvti_parallel_for(scan->a * scan->strips * (scan->before ? scan->chunks : 1),
                          (double)(scan->before ? 1 : scan->chunks) * chunk, dvti_scan_strip_items,
                          scan);
}

DVTI_FN void dvti_cpu_scan(const dvti_launch *launch) {
    const int64_t threads = dvti_parallel_width();
    int64_t items;
    dvti_scan scan;
    scan.simd = dvti_simd_now();
    scan.in = launch->in[0];
    scan.out = launch->out[0];
    scan.a = scan.out.dim[0];
    scan.n = scan.out.dim[1];
    scan.b = scan.out.dim[2];
    scan.chunks = dvti_scan_chunks(scan.n);
    scan.backwards = launch->i[0] != 0;
    scan.floats = launch->compute != DVTI_I64;
    scan.lines = scan.chunks > 1 ? (scan.floats ? DVTI_SCAN_SIDE : 1)
                                 : (DVTI_SCAN_ITEM / scan.n + 3) / DVTI_SCAN_SIDE * DVTI_SCAN_SIDE;
    scan.width = DVTI_BLOCK;
    scan.strips = (scan.b - 1) / scan.width + 1;
    for (; scan.width > 64 && scan.a * scan.strips < threads;
         scan.strips = (scan.b - 1) / scan.width + 1)
        scan.width /= 2;
    /* What does not give every thread a line, or four of floats, is cut; that takes a pass more. */
    items = scan.b == 1 ? scan.a / (scan.floats ? DVTI_SCAN_SIDE : 1) : scan.a * scan.strips;
    scan.before = scan.chunks > 1 && threads > 1 && items < threads ? launch->workspace : NULL;
    scan.totals = scan.before != NULL;
    if (scan.totals) {
        dvti_scan_pass(&scan);
        dvti_scan_carry(&scan);
        scan.totals = false;
    }
    dvti_scan_pass(&scan);
}

#undef DVTI_SCAN_CHUNK
#undef DVTI_SCAN_SIDE
#undef DVTI_SCAN_ROW
#undef DVTI_SCAN_WORK
#undef DVTI_SCAN_ITEM
