/* Cumulative sums: the passes over chunks, threads, and for float32 the tier's kernel. Lines that lie along memory go through it in blocks
   of 16 x 16, turned in a buffer and back. Source of the two passes: Blelloch, "Prefix Sums and Their Applications", 1990. */
#include "3_cpu/simd/dvt_simd.h"

#define DVTI_SCAN_ROWS                                                                             \
    8 /* of as many columns as a block has, so that sums stay in registers for a while */

typedef struct dvti_scan_job {
    const dvti_scan *scan;
    const dvti_simd *simd; /* NULL: the plain loops */
    int64_t strips;        /* of DVTI_BLOCK columns, of a piece */
} dvti_scan_job;

/* ---- lines along memory ---- */
typedef struct dvti_scan_group {
    const float *x[DVTI_SCAN_LINES];
    float *y[DVTI_SCAN_LINES];
    double sum[DVTI_SCAN_LINES], before[DVTI_SCAN_LINES];
    int64_t positions[DVTI_SCAN_LINES];
    int64_t whole; /* positions that all lines have, in whole blocks */
} dvti_scan_group;

static void dvti_scan_open(const dvti_scan *scan, int64_t piece, dvti_scan_group *group) {
    int64_t k, least = DVTI_SCAN_CHUNK;
    for (k = 0; k < DVTI_SCAN_LINES; k++) {
        int64_t first = dvti_scan_first(scan, piece + k, &group->positions[k]);
        group->x[k] = (const float *)scan->in.data + first;
        group->y[k] = (float *)scan->out.data + first;
        group->sum[k] = -0.;
        group->before[k] =
            scan->before && !scan->totals ? ((double *)scan->before)[piece + k] : -0.;
        least = DVTI_MIN(least, group->positions[k]);
    }
    group->whole = least / DVTI_SCAN_LINES * DVTI_SCAN_LINES;
}

/* What whole blocks leave of a line. */
static void dvti_scan_rest(const dvti_scan *scan, dvti_scan_group *group, int64_t k) {
    int64_t step = scan->backwards ? -1 : 1, j;
    double sum = group->sum[k];
    for (j = group->whole; j < group->positions[k]; j++) {
        sum += (double)group->x[k][j * step];
        if (!scan->totals)
            group->y[k][j * step] = (float)(group->before[k] + sum);
    }
    group->sum[k] = sum;
}

/* Blocks come and go by way of rows that are 16 apart: lines of several chunks are not one distance apart. */
static void dvti_scan_load(const dvti_simd *simd, const dvti_scan_group *group, int64_t at,
                           float *x) {
    float rows[DVTI_SCAN_LINES * DVTI_SCAN_LINES];
    int k;
    for (k = 0; k < DVTI_SCAN_LINES; k++)
        memcpy(rows + k * DVTI_SCAN_LINES, group->x[k] + at, DVTI_SCAN_LINES * sizeof *x);
    simd->turn(rows, DVTI_SCAN_LINES, x, DVTI_SCAN_LINES);
}

static void dvti_scan_store(const dvti_simd *simd, const dvti_scan_group *group, int64_t at,
                            const float *y) {
    float rows[DVTI_SCAN_LINES * DVTI_SCAN_LINES];
    int k;
    simd->turn(y, DVTI_SCAN_LINES, rows, DVTI_SCAN_LINES);
    for (k = 0; k < DVTI_SCAN_LINES; k++)
        memcpy(group->y[k] + at, rows + k * DVTI_SCAN_LINES, DVTI_SCAN_LINES * sizeof *y);
}

static void dvti_scan_group_of(const dvti_scan *scan, const dvti_simd *simd, int64_t piece) {
    float x[DVTI_SCAN_LINES * DVTI_SCAN_LINES], y[DVTI_SCAN_LINES * DVTI_SCAN_LINES];
    dvti_scan_group group;
    dvti_running rows;
    int64_t j, k;
    dvti_scan_open(scan, piece, &group);
    rows.rows = rows.columns = DVTI_SCAN_LINES;
    rows.sum = group.sum;
    rows.before = group.before;
    /* From the other end the last row of a block comes first. */
    rows.x = scan->backwards ? x + (DVTI_SCAN_LINES - 1) * DVTI_SCAN_LINES : x;
    rows.y = scan->totals ? NULL : y + (rows.x - x);
    rows.x_step = rows.y_step = scan->backwards ? -DVTI_SCAN_LINES : DVTI_SCAN_LINES;
    for (j = 0; j < group.whole; j += DVTI_SCAN_LINES) {
        int64_t at = scan->backwards ? 1 - j - DVTI_SCAN_LINES : j;
        dvti_scan_load(simd, &group, at, x);
        simd->running(&rows);
        if (!scan->totals)
            dvti_scan_store(simd, &group, at, y);
    }
    for (k = 0; k < DVTI_SCAN_LINES; k++) {
        dvti_scan_rest(scan, &group, k);
        if (scan->totals)
            ((double *)scan->before)[piece + k] = group.sum[k];
    }
}

static void dvti_scan_groups(void *user, int64_t begin, int64_t end) {
    const dvti_scan_job *job = (const dvti_scan_job *)user;
    for (; begin < end; begin++) {
        int64_t piece = begin * DVTI_SCAN_LINES;
        int64_t count = DVTI_MIN(job->scan->pieces - piece, DVTI_SCAN_LINES);
        if (job->simd && count == DVTI_SCAN_LINES)
            dvti_scan_group_of(job->scan, job->simd, piece);
        else
            dvti_scan_pieces(job->scan, piece, count);
    }
}

/* ---- lines side by side ---- */
static void dvti_scan_strip(const dvti_scan *scan, const dvti_simd *simd, int64_t piece,
                            int64_t column, int64_t count) {
    double sum[DVTI_BLOCK], before[DVTI_BLOCK];
    double *kept = scan->before ? (double *)scan->before + piece * scan->b + column : NULL;
    int64_t j, k, positions, at = dvti_scan_first(scan, piece, &positions) + column;
    dvti_running rows;
    for (k = 0; k < DVTI_BLOCK; k++) {
        sum[k] = before[k] = -0.;
        if (k < count && kept && !scan->totals)
            before[k] = kept[k];
    }
    rows.x_step = rows.y_step = scan->backwards ? -scan->b : scan->b;
    rows.columns = count;
    rows.sum = sum;
    rows.before = before;
    for (j = 0; j < positions; j += DVTI_SCAN_ROWS) {
        rows.rows = DVTI_MIN(positions - j, DVTI_SCAN_ROWS);
        rows.x = (const float *)scan->in.data + at + j * rows.x_step;
        rows.y = scan->totals ? NULL : (float *)scan->out.data + at + j * rows.y_step;
        simd->running(&rows);
    }
    if (scan->totals)
        memcpy(kept, sum, sizeof *sum * (size_t)count);
}

static void dvti_scan_strips(void *user, int64_t begin, int64_t end) {
    const dvti_scan_job *job = (const dvti_scan_job *)user;
    for (; begin < end; begin++) {
        int64_t piece = begin / job->strips, column = begin % job->strips * DVTI_BLOCK;
        int64_t count = DVTI_MIN(job->scan->b - column, DVTI_BLOCK);
        if (job->simd)
            dvti_scan_strip(job->scan, job->simd, piece, column, count);
        else
            dvti_scan_columns(job->scan, piece, column, count);
    }
}

/* ---- the launch ---- */
static void dvti_scan_pass(const dvti_scan *scan, const dvti_simd *simd) {
    const double each = simd ? 0.3 : 1.5;
    dvti_scan_job job;
    job.scan = scan;
    job.simd = simd;
    job.strips = (scan->b - 1) / DVTI_BLOCK + 1;
    if (scan->b == 1)
        dvti_parallel_for((scan->pieces - 1) / DVTI_SCAN_LINES + 1,
                          each * (double)(DVTI_SCAN_LINES * DVTI_MIN(scan->n, DVTI_SCAN_CHUNK)),
                          dvti_scan_groups, &job);
    else
        dvti_parallel_for(
            scan->pieces * job.strips,
            each * (double)(DVTI_MIN(scan->b, DVTI_BLOCK) * DVTI_MIN(scan->n, DVTI_SCAN_CHUNK)),
            dvti_scan_strips, &job);
}

DVTI_FN void dvti_cpu_scan(const dvti_launch *launch) {
    dvti_scan scan = dvti_scan_plan(launch);
    const dvti_simd *simd = scan.in.dtype == DVT_F32 ? dvti_simd_now() : NULL;
    if (scan.before) {
        scan.totals = true;
        dvti_scan_pass(&scan, simd);
        dvti_scan_carry(&scan);
        scan.totals = false;
    }
    dvti_scan_pass(&scan, simd);
}

#undef DVTI_SCAN_ROWS
