/* Reductions of floats of up to 32 bits by a tier's loops. As in ref/ref_reduce.c, chunks of a result are cut by the shape alone and combined
   as a balanced tree, so the bits do not depend on the number of threads; where kept positions lie closer in memory than reduced ones,
   neighbouring results are formed side by side. What lies neither way, and 16-bit floats, go through blocks in the first-level
   cache. Many short rows are one call of the tier's loop. */
#include "3_cpu/simd/dvt_simd.h"

#define DVTI_FOLD_CHUNK 32768       /* reduced positions per chunk of one result */
#define DVTI_FOLD_COLUMN_CHUNK 1024 /* the same for neighbouring results */
#define DVTI_FOLD_RUN 32            /* shorter runs in memory are gathered into blocks */
#define DVTI_FOLD_ROWS 8            /* rows of a block of columns */
#define DVTI_FOLD_ITEM 8192         /* elements of a work item of short rows */
#define DVTI_FOLD_GATHER 2048       /* elements of such rows that are gathered at a time */

typedef struct dvti_folded {
    double f;
    int64_t at;
} dvti_folded;

typedef struct dvti_fold_plan {
    const dvti_launch *launch;
    const dvti_simd *simd;
    dvti_fold fold;
    bool arg, smallest;
    bool plain; /* the reduced elements of a result are one run of floats */
    dvti_view kept, reduced, whole;
    int64_t n_kept, n_reduced, chunk, n_chunks;
    bool columns;
    const float *mean; /* of each result, for op square; else NULL */
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

/* log(exp(a) + exp(b)) */
static double dvti_log_add(double a, double b) {
    double most = a > b ? a : b, least = a > b ? b : a;
    return a != a || b != b ? a + b : most - most == 0 ? most + log1p(exp(least - most)) : most;
}

static void dvti_fold_combine(const dvti_fold_plan *plan, dvti_folded *a, dvti_folded b) {
    switch ((int)plan->launch->op) {
    case DVTI_OP_sum:
    case DVTI_OP_mean:
    case DVTI_OP_norm:
    case DVTI_OP_square:
        a->f += b.f;
        break;
    case DVTI_OP_prod:
        a->f *= b.f;
        break;
    case DVTI_OP_logsumexp:
        a->f = dvti_log_add(a->f, b.f);
        break;
    default:
        if (dvti_fold_prefers(plan, b, *a))
            *a = b;
    }
}

/* n > 0; the result is in p[0]. */
static void dvti_fold_tree(const dvti_fold_plan *plan, dvti_folded *p, int64_t n) {
    int64_t step, i;
    for (step = 1; step < n; step *= 2)
        for (i = 0; i + step < n; i += 2 * step)
            dvti_fold_combine(plan, &p[i], p[i + step]);
}

/* Up to DVTI_BLOCK results from number `first` on; f has room for whole vectors. */
static void dvti_fold_finish(const dvti_fold_plan *plan, int64_t first, int64_t n, const double *f,
                             const int64_t *at) {
    const dvti_view *out = &plan->launch->out[0]; /* contiguous */
    void *to = (char *)out->data + first * dvt_dtype_size(out->dtype);
    float few[DVTI_BLOCK];
    if (plan->arg) {
        dvti_store_row_i64(to, out->dtype, 1, n, at);
        return;
    }
    plan->fold.finish(plan->launch->op, plan->launch->f[0], f, n,
                      out->dtype == DVT_F32 ? (float *)to : few);
    if (out->dtype != DVT_F32 && !plan->simd->store_row(to, out->dtype, n, few))
        dvti_store_row_f32(to, out->dtype, 1, n, few);
}

/* ---- chunks ---- */
static const float *dvti_fold_mean(const dvti_fold_plan *plan, int64_t result) {
    return plan->mean ? plan->mean + result : NULL;
}

/* Reduced positions begin..end of a result whose first element is element number `base`. */
static dvti_folded dvti_fold_runs(const dvti_fold_plan *plan, int64_t result, int64_t base,
                                  int64_t begin, int64_t end) {
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
            dvti_load_block(&row, at, n, DVTI_F32, block);
        }
        one.at = 0;
        plan->fold.rows(plan->launch->op, x, n, 1, n, dvti_fold_mean(plan, result), &one.f,
                        plan->arg ? &one.at : NULL);
        one.at += at;
        if (at == begin)
            all = one;
        else
            dvti_fold_combine(plan, &all, one);
    }
    return all;
}

static dvti_folded dvti_fold_row(const dvti_fold_plan *plan, int64_t result, int64_t begin,
                                 int64_t end) {
    const int64_t base = dvti_cursor_at(&plan->kept, result).at;
    dvti_folded one;
    if (!plan->plain)
        return dvti_fold_runs(plan, result, base, begin, end);
    one.at = 0;
    plan->fold.rows(plan->launch->op, (const float *)plan->reduced.data + base + begin, 0, 1,
                    end - begin, dvti_fold_mean(plan, result), &one.f, plan->arg ? &one.at : NULL);
    one.at += begin;
    return one;
}

typedef struct dvti_fold_lanes {
    double f[DVTI_BLOCK];
    int64_t at[DVTI_BLOCK];
} dvti_fold_lanes;

/* Reduced positions begin..end of n neighbouring results. */
static void dvti_fold_columns(const dvti_fold_plan *plan, int64_t result, int64_t n, int64_t begin,
                              int64_t end, dvti_fold_lanes *to) {
    const dvti_view *reduced = &plan->reduced;
    const int last = reduced->ndim - 1;
    dvti_cursor cursor = dvti_cursor_at(reduced, begin),
                start = dvti_cursor_at(&plan->kept, result);
    const int kept = plan->kept.ndim - 1;
    const int64_t size = dvt_dtype_size(plan->kept.dtype);
    dvti_view row = plan->kept;
    bool direct = row.dtype == DVT_F32 && row.stride[kept] == 1;
    float block[DVTI_FOLD_ROWS * DVTI_BLOCK];
    int64_t at, rows, r, j;
    for (j = 0; j < DVTI_BLOCK; j++)
        to->f[j] = plan->launch->op == DVTI_OP_prod;
    for (at = begin; at < end; at += rows) {
        const float *x = block;
        rows = DVTI_MIN(end - at, reduced->dim[last] - cursor.index[last]);
        if (direct) {
            x = (const float *)row.data + start.at + cursor.at;
        } else {
            rows = DVTI_MIN(rows, DVTI_FOLD_ROWS);
            for (r = 0; r < rows; r++) {
                int64_t run = cursor.at + r * reduced->stride[last];
                row.data = (char *)plan->kept.data + run * size;
                if (row.stride[kept] != 1 ||
                    !plan->simd->load_row((const char *)row.data + start.at * size, row.dtype, n,
                                          block + r * DVTI_BLOCK))
                    dvti_load_block(&row, result, n, DVTI_F32, block + r * DVTI_BLOCK);
            }
        }
        plan->fold.columns(plan->launch->op, x, direct ? reduced->stride[last] : DVTI_BLOCK, rows,
                           n, at - begin, dvti_fold_mean(plan, result), to->f,
                           plan->arg ? to->at : NULL);
        if (at + rows < end)
            dvti_cursor_advance(&cursor, reduced, rows);
    }
    for (j = 0; plan->arg && j < n; j++)
        to->at[j] += begin;
}

/* ---- the launch ---- */
static void dvti_fold_store(const dvti_fold_plan *plan, int64_t result, int64_t chunk,
                            dvti_folded one) {
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
        if (plan->n_chunks == 1)
            dvti_fold_finish(plan, result, n, lanes.f, lanes.at);
        for (j = 0; plan->n_chunks > 1 && j < n; j++) {
            one.f = lanes.f[j];
            one.at = plan->arg ? lanes.at[j] : 0;
            dvti_fold_store(plan, result + j, chunk, one);
        }
    }
}

/* Results first..first + n, whole: rows as they lie in memory, or some short ones gathered. Others one by one. */
static void dvti_fold_whole_rows(const dvti_fold_plan *plan, int64_t first, int64_t n,
                                 dvti_fold_lanes *to) {
    const int last = plan->kept.ndim - 1;
    const int64_t length = plan->n_reduced, step = plan->kept.stride[last];
    dvti_cursor cursor = dvti_cursor_at(&plan->kept, first);
    float block[DVTI_FOLD_GATHER];
    int64_t k, some;
    for (k = 0; k < n; k += some) {
        int64_t *at = plan->arg ? to->at + k : NULL;
        if (plan->plain) {
            some = DVTI_MIN(n - k, plan->kept.dim[last] - cursor.index[last]);
            plan->fold.rows(plan->launch->op, (const float *)plan->kept.data + cursor.at, step,
                            some, length, dvti_fold_mean(plan, first + k), to->f + k, at);
        } else if (length <= DVTI_BLOCK) {
            some = DVTI_MIN(n - k, DVTI_FOLD_GATHER / length);
            dvti_load_block(&plan->whole, (first + k) * length, some * length, DVTI_F32, block);
            plan->fold.rows(plan->launch->op, block, length, some, length,
                            dvti_fold_mean(plan, first + k), to->f + k, at);
            continue;
        } else {
            dvti_folded one = dvti_fold_runs(plan, first + k, cursor.at, 0, length);
            some = 1;
            to->f[k] = one.f;
            to->at[k] = one.at;
        }
        if (k + some < n)
            dvti_cursor_advance(&cursor, &plan->kept, some);
    }
}

static void dvti_fold_row_items(void *user, int64_t begin, int64_t end) {
    const dvti_fold_plan *plan = (const dvti_fold_plan *)user;
    dvti_fold_lanes lanes;
    int64_t item;
    for (item = begin; item < end; item++) {
        int64_t chunk = item % plan->n_chunks, result = item / plan->n_chunks * plan->tile;
        int64_t from = chunk * plan->chunk, to = DVTI_MIN(from + plan->chunk, plan->n_reduced);
        int64_t n = DVTI_MIN(plan->tile, plan->n_kept - result);
        if (plan->n_chunks == 1) {
            dvti_fold_whole_rows(plan, result, n, &lanes);
            dvti_fold_finish(plan, result, n, lanes.f, lanes.at);
        } else {
            dvti_fold_store(plan, result, chunk, dvti_fold_row(plan, result, from, to));
        }
    }
}

static void dvti_fold_trees(void *user, int64_t begin, int64_t end) {
    const dvti_fold_plan *plan = (const dvti_fold_plan *)user;
    double f[16] = {0};
    int64_t result;
    for (result = begin; result < end; result++) {
        dvti_folded *mine = (dvti_folded *)plan->launch->workspace + result * plan->n_chunks;
        dvti_fold_tree(plan, mine, plan->n_chunks);
        f[0] = mine[0].f;
        dvti_fold_finish(plan, result, 1, f, &mine[0].at);
    }
}

static void dvti_fold_plan_of(const dvti_launch *launch, dvti_fold_plan *plan) {
    int kept = (int)launch->i[0], i;
    dvti_view *reduced = &plan->reduced;
    int64_t width;
    plan->launch = launch;
    plan->kept = plan->reduced = plan->whole = launch->in[0];
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
    dvti_merge_axes(&plan->whole);
    plan->chunk = DVTI_FOLD_CHUNK;
    width = plan->kept.dim[plan->kept.ndim - 1];
    plan->columns = plan->n_reduced > 1 && width > 1 &&
                    plan->kept.stride[plan->kept.ndim - 1] < reduced->stride[reduced->ndim - 1];
    if (plan->columns) {
        plan->tile = DVTI_MIN(DVTI_BLOCK, width);
        plan->chunk = DVTI_FOLD_COLUMN_CHUNK;
        plan->across = (width + plan->tile - 1) / plan->tile;
        plan->n_tiles = width ? plan->n_kept / width * plan->across : 0;
    } else {
        plan->tile = plan->n_reduced > DVTI_FOLD_ITEM
                         ? 1
                         : DVTI_MIN(DVTI_BLOCK, DVTI_FOLD_ITEM / DVTI_MAX(plan->n_reduced, 1));
        plan->across = 1;
        plan->n_tiles = (plan->n_kept + plan->tile - 1) / plan->tile;
    }
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
    if (!plan.fold.rows || (dtype != DVT_F32 && dtype != DVT_F16 && dtype != DVT_BF16) ||
        (launch->op == DVTI_OP_square && launch->in[1].dtype != DVT_F32))
        return false;
    dvti_fold_plan_of(launch, &plan);
    if (plan.n_reduced == 0)
        return false;
    plan.mean = launch->op == DVTI_OP_square ? (const float *)launch->in[1].data : NULL;
    plan.arg = launch->op == DVTI_OP_argmin || launch->op == DVTI_OP_argmax;
    plan.smallest =
        launch->op == DVTI_OP_argmin || launch->op == DVTI_OP_min || launch->op == DVTI_OP_all;
    plan.plain = dtype == DVT_F32 && plan.reduced.ndim == 1 &&
                 (plan.reduced.stride[0] == 1 || plan.n_reduced == 1);
    if (launch->op == DVTI_OP_logsumexp)
        element = 0.4;
    item = 20 + element * (double)(plan.tile * DVTI_MIN(plan.chunk, plan.n_reduced));
    dvti_parallel_for(plan.n_tiles * plan.n_chunks, item,
                      plan.columns ? dvti_fold_column_items : dvti_fold_row_items, &plan);
    if (plan.n_chunks > 1)
        dvti_parallel_for(plan.n_kept, 2.5 * (double)plan.n_chunks, dvti_fold_trees, &plan);
    return true;
}

#undef DVTI_FOLD_CHUNK
#undef DVTI_FOLD_COLUMN_CHUNK
#undef DVTI_FOLD_RUN
#undef DVTI_FOLD_ROWS
#undef DVTI_FOLD_ITEM
#undef DVTI_FOLD_GATHER
