/* Reductions of floats of up to 32 bits by a tier's loops: sum, mean, norm, min, max, argmin, argmax. As in ref/ref_reduce.c, chunks of a result
   are cut by the shape alone and combined as a balanced tree, so the bits do not depend on the number of threads; where kept positions
   lie closer in memory than reduced ones, neighbouring results are formed side by side. What lies neither way, and 16-bit floats, go
   through blocks in the first-level cache. */
#include "3_cpu/simd/dvt_simd.h"

#define DVTI_FOLD_CHUNK 32768       /* reduced positions per chunk of one result */
#define DVTI_FOLD_COLUMN_CHUNK 1024 /* the same for neighbouring results */
#define DVTI_FOLD_RUN 32            /* shorter runs in memory are gathered into blocks */
#define DVTI_FOLD_ROWS 8            /* rows of a block of columns */

typedef struct dvti_folded {
    double f;
    int64_t at;
} dvti_folded;

typedef struct dvti_fold_plan {
    const dvti_launch *launch;
    const dvti_simd *simd;
    dvti_fold fold;
    bool arg, extreme, smallest;
    bool plain; /* the reduced elements of a result are one run of floats */
    dvti_view kept, reduced, out;
    int64_t n_kept, n_reduced, chunk, n_chunks;
    int64_t tile, across,
        n_tiles; /* results per work item, items per row of kept positions, in all */
} dvti_fold_plan;

/* ---- combining ---- */
/* Is b to be preferred? NaN before everything, then the extreme, then the first. */
static bool dvti_fold_prefers(const dvti_fold_plan *plan, dvti_folded b, dvti_folded a) {
    if (a.f != a.f || b.f != b.f)
        return b.f != b.f && (a.f == a.f || b.at < a.at);
    if (a.f == b.f)
        return b.at < a.at;
    return plan->smallest ? b.f < a.f : b.f > a.f;
}

static void dvti_fold_combine(const dvti_fold_plan *plan, dvti_folded *a, dvti_folded b) {
    if (!plan->extreme)
        a->f += b.f;
    else if (dvti_fold_prefers(plan, b, *a))
        *a = b;
}

/* n > 0; the result is in p[0]. */
static void dvti_fold_tree(const dvti_fold_plan *plan, dvti_folded *p, int64_t n) {
    int64_t step, i;
    for (step = 1; step < n; step *= 2)
        for (i = 0; i + step < n; i += 2 * step)
            dvti_fold_combine(plan, &p[i], p[i + step]);
}

static void dvti_fold_finish(const dvti_fold_plan *plan, int64_t result, dvti_folded p) {
    const dvti_view *out = &plan->out;
    int64_t at = out->ndim == 1 ? result * out->stride[0] : dvti_cursor_at(out, result).at;
    if (plan->arg) {
        dvti_store_i64(out->data, out->dtype, at, p.at);
        return;
    }
    if (plan->launch->op == DVTI_OP_mean)
        p.f /= plan->launch->f[0];
    else if (plan->launch->op == DVTI_OP_norm)
        p.f = sqrt(p.f);
    dvti_store_f64(out->data, out->dtype, at, p.f);
}

/* ---- chunks ---- */
/* n positions of a merged view, as floats. */
static void dvti_fold_load(const dvti_fold_plan *plan, const dvti_view *view, int64_t first,
                           int64_t n, float *to) {
    const char *run = (const char *)view->data + first * dvt_dtype_size(view->dtype);
    if (view->ndim != 1 || view->stride[0] != 1 || !plan->simd->load_row(run, view->dtype, n, to))
        dvti_load_block(view, first, n, DVTI_F32, to);
}

/* Reduced positions begin..end of the result whose first element is element number `base`. */
static dvti_folded dvti_fold_runs(const dvti_fold_plan *plan, int64_t base, int64_t begin,
                                  int64_t end) {
    dvti_view row = plan->reduced;
    const int last = row.ndim - 1;
    bool direct = row.dtype == DVT_F32 && (row.stride[last] == 1 || row.dim[last] == 1) &&
                  (last == 0 || row.dim[last] >= DVTI_FOLD_RUN);
    dvti_cursor cursor;
    dvti_folded all, one;
    float block[DVTI_BLOCK];
    int64_t at, n;
    all.f = 0;
    all.at = 0;
    row.data = (char *)row.data + base * dvt_dtype_size(row.dtype);
    cursor = dvti_cursor_at(&row, begin);
    for (at = begin; at < end; at += n) {
        const float *x = block;
        if (direct) {
            n = DVTI_MIN(end - at, row.dim[last] - cursor.index[last]);
            x = (const float *)row.data + cursor.at;
            if (at + n < end)
                dvti_cursor_advance(&cursor, &row, n);
        } else {
            n = DVTI_MIN(end - at, DVTI_BLOCK);
            dvti_fold_load(plan, &row, at, n, block);
        }
        one.at = 0;
        plan->fold.row(x, n, &one.f, plan->arg ? &one.at : NULL);
        one.at += at;
        if (at == begin)
            all = one;
        else
            dvti_fold_combine(plan, &all, one);
    }
    return all;
}

static dvti_folded dvti_fold_row(const dvti_fold_plan *plan, int64_t base, int64_t begin,
                                 int64_t end) {
    dvti_folded one;
    if (!plan->plain)
        return dvti_fold_runs(plan, base, begin, end);
    one.at = 0;
    plan->fold.row((const float *)plan->reduced.data + base + begin, end - begin, &one.f,
                   plan->arg ? &one.at : NULL);
    one.at += begin;
    return one;
}

typedef struct dvti_fold_lanes {
    double f[DVTI_BLOCK];
    int64_t at[DVTI_BLOCK];
} dvti_fold_lanes;

/* `rows` runs of n columns, the first of which is reduced position `at`. */
static void dvti_fold_panel(const dvti_fold_plan *plan, const float *x, int64_t step, int64_t rows,
                            int64_t n, int64_t at, bool first, dvti_fold_lanes *to) {
    dvti_fold_lanes some;
    dvti_folded a, b;
    int64_t j;
    if (!plan->extreme) {
        plan->fold.columns(x, step, rows, n, to->f, NULL);
        return;
    }
    plan->fold.columns(x, step, rows, n, some.f, plan->arg ? some.at : NULL);
    for (j = 0; j < n; j++) {
        a.f = to->f[j];
        a.at = plan->arg ? to->at[j] : 0;
        b.f = some.f[j];
        b.at = at + (plan->arg ? some.at[j] : 0);
        if (first)
            a = b;
        else
            dvti_fold_combine(plan, &a, b);
        to->f[j] = a.f;
        to->at[j] = a.at;
    }
}

/* Reduced positions begin..end of n neighbouring results. */
static void dvti_fold_columns(const dvti_fold_plan *plan, int64_t result, int64_t n, int64_t begin,
                              int64_t end, dvti_fold_lanes *to) {
    const dvti_view *reduced = &plan->reduced;
    const int last = reduced->ndim - 1;
    dvti_cursor cursor = dvti_cursor_at(reduced, begin),
                start = dvti_cursor_at(&plan->kept, result);
    const int kept = plan->kept.ndim - 1;
    dvti_view row = plan->kept;
    bool direct = row.dtype == DVT_F32 && row.stride[kept] == 1;
    float block[DVTI_FOLD_ROWS * DVTI_BLOCK];
    int64_t at, rows, r;
    memset(to->f, 0, sizeof to->f);
    for (at = begin; at < end; at += rows) {
        const float *x = block;
        rows = DVTI_MIN(end - at, reduced->dim[last] - cursor.index[last]);
        if (direct) {
            x = (const float *)row.data + start.at + cursor.at;
        } else {
            rows = DVTI_MIN(rows, DVTI_FOLD_ROWS);
            for (r = 0; r < rows; r++) {
                row.data = (char *)plan->kept.data +
                           (cursor.at + r * reduced->stride[last]) * dvt_dtype_size(row.dtype);
                dvti_fold_load(plan, &row, result, n, block + r * DVTI_BLOCK);
            }
        }
        dvti_fold_panel(plan, x, direct ? reduced->stride[last] : DVTI_BLOCK, rows, n, at,
                        at == begin, to);
        if (at + rows < end)
            dvti_cursor_advance(&cursor, reduced, rows);
    }
}

/* ---- the launch ---- */
static void dvti_fold_store(const dvti_fold_plan *plan, int64_t result, int64_t chunk,
                            dvti_folded one) {
    if (plan->n_chunks == 1)
        dvti_fold_finish(plan, result, one);
    else
        ((dvti_folded *)plan->launch->workspace)[result * plan->n_chunks + chunk] = one;
}

static void dvti_fold_column_items(void *user, int64_t begin, int64_t end) {
    const dvti_fold_plan *plan = (const dvti_fold_plan *)user;
    dvti_fold_lanes lanes;
    dvti_folded one;
    int64_t item, j;
    for (item = begin; item < end; item++) {
        int64_t chunk = item % plan->n_chunks, tile = item / plan->n_chunks;
        int64_t from = chunk * plan->chunk, to = DVTI_MIN(from + plan->chunk, plan->n_reduced);
        int64_t width = plan->kept.dim[plan->kept.ndim - 1];
        int64_t column = tile % plan->across * plan->tile, n = DVTI_MIN(plan->tile, width - column);
        int64_t result = tile / plan->across * width + column;
        dvti_fold_columns(plan, result, n, from, to, &lanes);
        for (j = 0; j < n; j++) {
            one.f = lanes.f[j];
            one.at = plan->arg ? lanes.at[j] : 0;
            dvti_fold_store(plan, result + j, chunk, one);
        }
    }
}

static void dvti_fold_row_items(void *user, int64_t begin, int64_t end) {
    const dvti_fold_plan *plan = (const dvti_fold_plan *)user;
    int64_t result = begin / plan->n_chunks, chunk = begin % plan->n_chunks, item;
    dvti_cursor cursor = dvti_cursor_at(&plan->kept, result);
    for (item = begin; item < end; item++) {
        int64_t from = chunk * plan->chunk, to = DVTI_MIN(from + plan->chunk, plan->n_reduced);
        dvti_fold_store(plan, result, chunk, dvti_fold_row(plan, cursor.at, from, to));
        if (++chunk == plan->n_chunks && item + 1 < end) {
            chunk = 0;
            result++;
            dvti_cursor_advance(&cursor, &plan->kept, 1);
        }
    }
}

static void dvti_fold_trees(void *user, int64_t begin, int64_t end) {
    const dvti_fold_plan *plan = (const dvti_fold_plan *)user;
    int64_t result;
    for (result = begin; result < end; result++) {
        dvti_folded *mine = (dvti_folded *)plan->launch->workspace + result * plan->n_chunks;
        dvti_fold_tree(plan, mine, plan->n_chunks);
        dvti_fold_finish(plan, result, mine[0]);
    }
}

static void dvti_fold_plan_of(const dvti_launch *launch, dvti_fold_plan *plan) {
    int kept = (int)launch->i[0], i;
    dvti_view *reduced = &plan->reduced;
    int64_t width;
    plan->launch = launch;
    plan->kept = plan->reduced = launch->in[0];
    plan->out = launch->out[0];
    plan->kept.ndim = kept;
    reduced->ndim = launch->in[0].ndim - kept;
    for (i = 0; i < reduced->ndim; i++) {
        reduced->dim[i] = launch->in[0].dim[kept + i];
        reduced->stride[i] = launch->in[0].stride[kept + i];
    }
    plan->n_kept = dvti_view_size(&plan->kept);
    plan->n_reduced = dvti_view_size(reduced);
    dvti_merge_axes(&plan->kept);
    dvti_merge_axes(reduced);
    dvti_merge_axes(&plan->out);
    plan->tile = 1;
    plan->chunk = DVTI_FOLD_CHUNK;
    width = plan->kept.dim[plan->kept.ndim - 1];
    if (plan->n_reduced > 1 && width >= 16 &&
        plan->kept.stride[plan->kept.ndim - 1] < reduced->stride[reduced->ndim - 1]) {
        plan->tile = DVTI_MIN(DVTI_BLOCK, width);
        plan->chunk = DVTI_FOLD_COLUMN_CHUNK;
    }
    plan->across = (width + plan->tile - 1) / plan->tile;
    plan->n_tiles = width ? plan->n_kept / width * plan->across : 0;
    plan->n_chunks = DVTI_MAX((plan->n_reduced + plan->chunk - 1) / plan->chunk, 1);
}

DVTI_FN int64_t dvti_fast_reduce_workspace(const dvti_launch *launch) {
    dvti_fold_plan plan;
    dvti_fold_plan_of(launch, &plan);
    return plan.n_chunks > 1 ? plan.n_kept * plan.n_chunks * (int64_t)sizeof(dvti_folded) : 0;
}

DVTI_FN bool dvti_fast_reduce(const dvti_launch *launch, const dvti_simd *simd) {
    dvt_dtype dtype = launch->in[0].dtype;
    dvti_fold_plan plan;
    double item, element = dtype == DVT_F32 ? 0.06 : 0.15;
    plan.simd = simd;
    plan.fold = simd->fold(launch->op);
    if (!plan.fold.row || (dtype != DVT_F32 && dtype != DVT_F16 && dtype != DVT_BF16))
        return false;
    dvti_fold_plan_of(launch, &plan);
    if (plan.n_reduced == 0)
        return false;
    plan.arg = launch->op == DVTI_OP_argmin || launch->op == DVTI_OP_argmax;
    plan.smallest = launch->op == DVTI_OP_argmin || launch->op == DVTI_OP_min;
    plan.extreme = plan.arg || plan.smallest || launch->op == DVTI_OP_max;
    plan.plain = dtype == DVT_F32 && plan.reduced.ndim == 1 &&
                 (plan.reduced.stride[0] == 1 || plan.n_reduced == 1);
    item = 20 + element * (double)(plan.tile * DVTI_MIN(plan.chunk, plan.n_reduced));
    dvti_parallel_for(plan.n_tiles * plan.n_chunks, item,
                      plan.tile > 1 ? dvti_fold_column_items : dvti_fold_row_items, &plan);
    if (plan.n_chunks > 1)
        dvti_parallel_for(plan.n_kept, 2.5 * (double)plan.n_chunks, dvti_fold_trees, &plan);
    return true;
}

#undef DVTI_FOLD_CHUNK
#undef DVTI_FOLD_COLUMN_CHUNK
#undef DVTI_FOLD_RUN
#undef DVTI_FOLD_ROWS
