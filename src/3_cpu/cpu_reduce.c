/* Reductions by a tier's loops: of float32 and narrower floats, of float64 and of what is reduced as float64, and any and all of every dtype.
   As in ref/ref_reduce.c, chunks of a result are cut by the shape alone and combined as a balanced tree, so the bits do not depend on the
   number of threads; where kept positions lie closer in memory than reduced ones, neighbouring results are formed side by side. What
   lies neither way, and dtypes that a loop does not read, go through blocks in the first-level cache. Many short rows are one call. */
#include "3_cpu/simd/dvt_simd.h"

#define DVTI_FOLD_CHUNK 32768       /* reduced positions per chunk of one result */
#define DVTI_FOLD_COLUMN_CHUNK 1024 /* the same for neighbouring results */
#define DVTI_FOLD_RUN 32            /* shorter runs in memory are gathered into blocks */
#define DVTI_FOLD_SHORT 16          /* rows whose products are chains */
#define DVTI_FOLD_LONG 256          /* 16-bit floats that are read in place */
#define DVTI_FOLD_BYTES 16384       /* of a block of columns: 8 or 4 rows */
#define DVTI_FOLD_ITEM 8192         /* elements of a work item of short rows */
#define DVTI_FOLD_GATHER 2048       /* elements of such rows that are gathered at a time */

typedef struct dvti_folded {
    double f;
    int64_t at;
} dvti_folded;

typedef struct dvti_fold_plan {
    const dvti_launch *launch;
    const dvti_simd *simd;
    dvti_fold fold; /* rows is NULL for logsumexp of float64 */
    bool arg, smallest;
    dvti_class compute; /* what blocks hold */
    int64_t size, wide; /* bytes of an element of x, of a block */
    bool readable;      /* the loops read x's dtype */
    bool plain;         /* and the reduced elements of a result are one run */
    dvti_view kept, reduced, whole;
    int64_t n_kept, n_reduced, chunk, n_chunks;
    bool columns;
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
    case DVTI_OP_variance:
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
    const bool sum = plan->launch->op == DVTI_OP_sum || plan->launch->op == DVTI_OP_mean;
    int64_t step, i;
    for (step = 1; step < n; step *= 2)
        for (i = 0; i + step < n; i += 2 * step)
            if (sum) /* the same as combining, faster for columns, of which there are many */
                p[i].f += p[i + step].f;
            else
                dvti_fold_combine(plan, &p[i], p[i + step]);
}

/* Up to DVTI_ACROSS results from number `first` on; f has room for whole vectors. */
static void dvti_fold_finish(const dvti_fold_plan *plan, int64_t first, int64_t n, double *f,
                             const int64_t *at) {
    const dvti_launch *launch = plan->launch;
    const dvti_view *out = &launch->out[0]; /* contiguous */
    void *to = (char *)out->data + first * dvt_dtype_size(out->dtype);
    float few[DVTI_ACROSS];
    dvti_loop loop;
    if (plan->arg) {
        if (at != to)
            dvti_store_row_i64(to, out->dtype, 1, n, at);
    } else if (plan->compute == DVTI_F32) {
        plan->fold.finish(launch->op, launch->f[0], f, n,
                          out->dtype == DVT_F32 ? (float *)to : few);
        if (out->dtype != DVT_F32 && !plan->simd->store_row(to, out->dtype, n, few))
            dvti_store_row_f32(to, out->dtype, 1, n, few);
    } else {
        loop.op = launch->op == DVTI_OP_mean ? DVTI_OP_div : DVTI_OP_sqrt;
        loop.in[0] = loop.out = f;
        loop.in[1] = &launch->f[0];
        loop.step[0] = 1;
        loop.step[1] = 0;
        loop.n = n;
        loop.stream = false;
        if (launch->op == DVTI_OP_mean || launch->op == DVTI_OP_norm)
            plan->simd->f64->loop(loop.op)(&loop);
        dvti_store_row_f64(to, out->dtype, 1, n, f);
    }
}

/* ---- chunks ---- */
/* Products of short rows are plain chains, four taking turns: folding the lanes of vectors takes longer. Sums are not: the sum of squares that a
   variance is recorded as must have the bits of op square. */
#define DVTI_FOLD_PRODUCTS(name, X)                                                                \
    static void name(const dvti_folding *run) {                                                    \
        const X *x = (const X *)run->x;                                                            \
        const int64_t step = run->step, n = run->n;                                                \
        int64_t left, some, k;                                                                     \
        double *value = run->value;                                                                \
        for (left = run->rows; left > 0; left -= some, x += some * step, value += some) {          \
            double a = 1, b = 1, c = 1, d = 1;                                                     \
            some = left >= 4 ? 4 : 1;                                                              \
            for (k = 0; k < n && some == 4; k++) {                                                 \
                a = a * (double)x[k];                                                              \
                b = b * (double)x[step + k];                                                       \
                c = c * (double)x[2 * step + k];                                                   \
                d = d * (double)x[3 * step + k];                                                   \
            }                                                                                      \
            for (k = 0; k < n && some == 1; k++)                                                   \
                a = a * (double)x[k];                                                              \
            value[0] = a;                                                                          \
            if (some == 4) {                                                                       \
                value[1] = b;                                                                      \
                value[2] = c;                                                                      \
                value[3] = d;                                                                      \
            }                                                                                      \
        }                                                                                          \
    }
DVTI_FOLD_PRODUCTS(dvti_fold_products, double)
DVTI_FOLD_PRODUCTS(dvti_fold_products32, float)
#undef DVTI_FOLD_PRODUCTS

static void dvti_fold_rows(const dvti_fold_plan *plan, const dvti_folding *run) {
    if (run->op == DVTI_OP_prod && run->n <= DVTI_FOLD_SHORT)
        (plan->compute == DVTI_F32 ? dvti_fold_products32 : dvti_fold_products)(run);
    else if (plan->fold.rows)
        plan->fold.rows(run);
    else
        dvti_logsumexp64(plan->simd, run);
}

/* n elements of each of `rows` runs at x, which hold `dtype`, from number `result` on. */
static dvti_folding dvti_fold_of(const dvti_fold_plan *plan, int64_t result, const void *x,
                                 bool block, int64_t rows, int64_t n) {
    dvti_folding p;
    p.op = plan->launch->op;
    p.dtype = !block ? plan->launch->in[0].dtype : plan->compute == DVTI_F32 ? DVT_F32 : DVT_F64;
    p.x = x;
    p.step = p.seen = 0;
    p.rows = rows;
    p.n = n;
    p.mean = NULL;
    if (p.op == DVTI_OP_variance) {
        const dvti_view *mean = &plan->launch->in[1];
        p.mean = (const char *)mean->data + result * dvt_dtype_size(mean->dtype);
    }
    p.at = NULL;
    return p;
}

/* Reduced positions begin..end of a result whose first element is element number `base`. */
static dvti_folded dvti_fold_runs(const dvti_fold_plan *plan, int64_t result, int64_t base,
                                  int64_t begin, int64_t end) {
    dvti_view row = plan->reduced;
    const int last = row.ndim - 1;
    bool direct = plan->readable && (row.stride[last] == 1 || row.dim[last] == 1) &&
                  (last == 0 || row.dim[last] >= DVTI_FOLD_RUN);
    dvti_cursor cursor;
    dvti_folding run;
    dvti_folded all, one;
    double block[DVTI_BLOCK];
    int64_t at, n;
    all.f = 0;
    all.at = 0;
    row.data = (char *)row.data + base * plan->size;
    cursor = dvti_cursor_at(&row, begin);
    for (at = begin; at < end; at += n) {
        const void *x = block;
        if (direct) {
            n = DVTI_MIN(end - at, row.dim[last] - cursor.index[last]);
            x = (const char *)row.data + cursor.at * plan->size;
            if (at + n < end)
                dvti_cursor_advance(&cursor, &row, n);
        } else {
            n = DVTI_MIN(end - at, DVTI_BLOCK);
            dvti_load_block(&row, at, n, plan->compute, block);
        }
        one.at = 0;
        run = dvti_fold_of(plan, result, x, !direct, 1, n);
        run.value = &one.f;
        run.at = plan->arg ? &one.at : NULL;
        dvti_fold_rows(plan, &run);
        one.at += at;
        if (at == begin)
            all = one;
        else
            dvti_fold_combine(plan, &all, one);
    }
    return all;
}

typedef struct dvti_fold_lanes {
    double f[DVTI_ACROSS];
    int64_t at[DVTI_ACROSS];
} dvti_fold_lanes;

/* Reduced positions begin..end of n neighbouring results. */
static void dvti_fold_columns(const dvti_fold_plan *plan, int64_t result, int64_t n, int64_t begin,
                              int64_t end, dvti_fold_lanes *to) {
    const dvti_view *reduced = &plan->reduced;
    const int last = reduced->ndim - 1, kept = plan->kept.ndim - 1;
    const int64_t most = DVTI_FOLD_BYTES / plan->wide / DVTI_BLOCK;
    const dvti_op op = plan->launch->op;
    dvti_cursor cursor = dvti_cursor_at(reduced, begin),
                start = dvti_cursor_at(&plan->kept, result);
    dvti_view row = plan->kept;
    bool direct = plan->readable && row.stride[kept] == 1;
    double block[DVTI_FOLD_BYTES / 8], more[DVTI_BLOCK];
    dvti_folding run = dvti_fold_of(plan, result, block, !direct, 0, n);
    int64_t at, r, j;
    run.step = direct ? reduced->stride[last] : DVTI_BLOCK;
    run.value = to->f;
    run.at = plan->arg ? to->at : NULL;
    for (j = 0; j < (n + 15) / 16 * 16; j++)
        to->f[j] = op == DVTI_OP_prod || op == DVTI_OP_all;
    for (at = begin; at < end; at += run.rows) {
        run.rows = DVTI_MIN(end - at, reduced->dim[last] - cursor.index[last]);
        if (direct) {
            run.x = (const char *)row.data + (start.at + cursor.at) * plan->size;
        } else {
            run.rows = DVTI_MIN(run.rows, most);
            for (r = 0; r < run.rows; r++) {
                row.data =
                    (char *)plan->kept.data + (cursor.at + r * reduced->stride[last]) * plan->size;
                dvti_load_block(&row, result, n, plan->compute,
                                (char *)block + r * DVTI_BLOCK * plan->wide);
            }
        }
        run.seen = at - begin;
        if (plan->fold.rows) {
            plan->fold.columns(&run);
        } else {
            run.value = run.seen ? more : to->f;
            dvti_logsumexp64_columns(plan->simd, &run);
            for (j = 0; run.seen && j < n; j++)
                to->f[j] = dvti_log_add(to->f[j], more[j]);
        }
        if (at + run.rows < end)
            dvti_cursor_advance(&cursor, reduced, run.rows);
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
static void dvti_fold_whole_rows(const dvti_fold_plan *plan, int64_t first, int64_t n, double *to,
                                 int64_t *to_at) {
    const int last = plan->kept.ndim - 1;
    const int64_t length = plan->n_reduced;
    dvti_cursor cursor = dvti_cursor_at(&plan->kept, first);
    double block[DVTI_FOLD_GATHER];
    dvti_folding run;
    int64_t k, some;
    for (k = 0; k < n; k += some) {
        bool gathered = !plan->plain && length <= DVTI_BLOCK;
        if (plan->plain) {
            some = DVTI_MIN(n - k, plan->kept.dim[last] - cursor.index[last]);
            run = dvti_fold_of(plan, first + k,
                               (const char *)plan->kept.data + cursor.at * plan->size, false, some,
                               length);
            run.step = plan->kept.stride[last];
        } else if (gathered) {
            some = DVTI_MIN(n - k, DVTI_FOLD_GATHER / length);
            dvti_load_block(&plan->whole, (first + k) * length, some * length, plan->compute,
                            block);
            run = dvti_fold_of(plan, first + k, block, true, some, length);
            run.step = length;
        } else {
            dvti_folded one = dvti_fold_runs(plan, first + k, cursor.at, 0, length);
            some = 1;
            to[k] = one.f;
            if (to_at)
                to_at[k] = one.at;
        }
        if (plan->plain || gathered) {
            run.value = to + k;
            run.at = to_at ? to_at + k : NULL;
            dvti_fold_rows(plan, &run);
        }
        if (!gathered && k + some < n)
            dvti_cursor_advance(&cursor, &plan->kept, some);
    }
}

static void dvti_fold_row_items(void *user, int64_t begin, int64_t end) {
    const dvti_fold_plan *plan = (const dvti_fold_plan *)user;
    int64_t item;
    for (item = begin; item < end; item++) {
        int64_t chunk = item % plan->n_chunks, result = item / plan->n_chunks;
        int64_t from = chunk * plan->chunk, to = DVTI_MIN(from + plan->chunk, plan->n_reduced);
        dvti_fold_store(
            plan, result, chunk,
            dvti_fold_runs(plan, result, dvti_cursor_at(&plan->kept, result).at, from, to));
    }
}

/* Items of one chunk, as many results at a time as there is room for. */
static void dvti_fold_short_items(void *user, int64_t begin, int64_t end) {
    const dvti_fold_plan *plan = (const dvti_fold_plan *)user;
    const int64_t last = DVTI_MIN(end * plan->tile, plan->n_kept);
    double f[DVTI_ACROSS];
    int64_t result, n;
    for (result = begin * plan->tile; result < last; result += n) {
        int64_t *at = plan->arg ? (int64_t *)plan->launch->out[0].data + result : NULL;
        n = DVTI_MIN(DVTI_ACROSS, last - result);
        dvti_fold_whole_rows(plan, result, n, f, at);
        dvti_fold_finish(plan, result, n, f, at);
    }
}

static void dvti_fold_trees(void *user, int64_t begin, int64_t end) {
    const dvti_fold_plan *plan = (const dvti_fold_plan *)user;
    dvti_fold_lanes lanes;
    int64_t first, n, j;
    for (first = begin; first < end; first += n) {
        n = DVTI_MIN(end - first, DVTI_ACROSS);
        for (j = 0; j < n; j++) {
            dvti_folded *mine =
                (dvti_folded *)plan->launch->workspace + (first + j) * plan->n_chunks;
            dvti_fold_tree(plan, mine, plan->n_chunks);
            lanes.f[j] = mine[0].f;
            lanes.at[j] = mine[0].at;
        }
        dvti_fold_finish(plan, first, n, lanes.f, lanes.at);
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
    plan->size = dvt_dtype_size(launch->in[0].dtype);
    plan->n_kept = dvti_view_size(&plan->kept);
    plan->n_reduced = dvti_view_size(reduced);
    dvti_merge_axes(&plan->kept);
    dvti_merge_axes(reduced);
    dvti_merge_axes(&plan->whole);
    plan->chunk = DVTI_FOLD_CHUNK;
    width = plan->kept.dim[plan->kept.ndim - 1];
    plan->columns = plan->n_reduced > 1 && width > 1 &&
                    plan->kept.stride[plan->kept.ndim - 1] < reduced->stride[reduced->ndim - 1];
    if (plan->columns)
        plan->chunk = DVTI_FOLD_COLUMN_CHUNK;
    plan->n_chunks = DVTI_MAX((plan->n_reduced + plan->chunk - 1) / plan->chunk, 1);
}

/* Work items. Columns are read faster by whole pages, when there are enough of them for every thread. */
static void dvti_fold_cut(dvti_fold_plan *plan) {
    const int last = plan->kept.ndim - 1;
    const int64_t width = plan->kept.dim[last], threads = dvti_parallel_width();
    const bool wide = plan->readable && plan->wide == 4 && plan->kept.stride[last] == 1 &&
                      plan->launch->op != DVTI_OP_logsumexp;
    plan->across = 1;
    if (!plan->columns) {
        plan->tile = DVTI_MIN(DVTI_BLOCK, DVTI_MAX(DVTI_FOLD_ITEM / plan->n_reduced, 1));
        plan->n_tiles = (plan->n_kept + plan->tile - 1) / plan->tile;
        return;
    }
    plan->tile = wide ? DVTI_ACROSS : DVTI_BLOCK;
    if (threads > 1 &&
        plan->n_kept / width * ((width + plan->tile - 1) / plan->tile) * plan->n_chunks <
            2 * threads)
        plan->tile = DVTI_BLOCK;
    plan->tile = DVTI_MIN(plan->tile, width);
    plan->across = (width + plan->tile - 1) / plan->tile;
    plan->n_tiles = plan->n_kept / width * plan->across;
}

DVTI_FN int64_t dvti_fast_reduce_workspace(const dvti_launch *launch) {
    dvti_fold_plan plan;
    dvti_fold_plan_of(launch, &plan);
    return plan.n_chunks > 1 ? plan.n_kept * plan.n_chunks * (int64_t)sizeof(dvti_folded) : 0;
}

/* The class of blocks, the loops, and whether these read x's dtype: any and all do so with every dtype, sums of floats with 16-bit ones.
   False: whole numbers stay whole numbers, or no loop. */
static bool dvti_fold_choose(const dvti_launch *launch, const dvti_simd *simd,
                             dvti_fold_plan *plan) {
    const dvt_dtype dtype = launch->in[0].dtype;
    const dvti_op op = launch->op;
    const bool narrow = dtype == DVT_F16 || dtype == DVT_BF16;
    dvt_dtype own = dtype == DVT_F32 || narrow ? DVT_F32 : DVT_F64;
    plan->simd = simd;
    if (op == DVTI_OP_any || op == DVTI_OP_all) {
        plan->fold = simd->truth;
        plan->readable = true;
        plan->compute = DVTI_F64;
        plan->wide = 8;
        return true;
    }
    plan->fold = own == DVT_F32 ? simd->fold(op) : simd->f64->fold(op);
    plan->readable = dtype == own;
    plan->compute = own == DVT_F32 ? DVTI_F32 : DVTI_F64;
    plan->wide = dvt_dtype_size(own);
    return (plan->fold.rows || op == DVTI_OP_logsumexp) &&
           (op != DVTI_OP_variance || launch->in[1].dtype == own) &&
           (dvt_dtype_is_float(dtype) || op == DVTI_OP_mean || op == DVTI_OP_norm ||
            op == DVTI_OP_logsumexp);
}

DVTI_FN bool dvti_fast_reduce(const dvti_launch *launch, const dvti_simd *simd) {
    dvti_fold_plan plan;
    double item, element;
    if (!dvti_fold_choose(launch, simd, &plan))
        return false;
    dvti_fold_plan_of(launch, &plan);
    if (plan.n_reduced == 0)
        return false;
    plan.arg = launch->op == DVTI_OP_argmin || launch->op == DVTI_OP_argmax;
    plan.smallest =
        launch->op == DVTI_OP_argmin || launch->op == DVTI_OP_min || launch->op == DVTI_OP_all;
    /* Of a short row of 16-bit floats the tail costs more than a copy of many rows. */
    if (plan.compute == DVTI_F32 && (launch->op == DVTI_OP_sum || launch->op == DVTI_OP_mean) &&
        (plan.columns ? 4 * plan.kept.dim[plan.kept.ndim - 1] : plan.n_reduced) >= DVTI_FOLD_LONG)
        plan.readable = true;
    dvti_fold_cut(&plan);
    plan.plain = plan.readable && plan.reduced.ndim == 1 &&
                 (plan.reduced.stride[0] == 1 || plan.n_reduced == 1);
    element = launch->op == DVTI_OP_logsumexp ? 0.1 * (double)plan.wide
              : plan.readable                 ? 0.015 * (double)plan.size
                                              : 0.15;
    item = 20 + element * (double)(plan.tile * DVTI_MIN(plan.chunk, plan.n_reduced));
    dvti_parallel_for(plan.n_tiles * plan.n_chunks, item,
                      plan.columns         ? dvti_fold_column_items
                      : plan.n_chunks == 1 ? dvti_fold_short_items
                                           : dvti_fold_row_items,
                      &plan);
    if (plan.n_chunks > 1)
        dvti_parallel_for(plan.n_kept, 2.5 * (double)plan.n_chunks, dvti_fold_trees, &plan);
    return true;
}

#undef DVTI_FOLD_CHUNK
#undef DVTI_FOLD_COLUMN_CHUNK
#undef DVTI_FOLD_RUN
#undef DVTI_FOLD_SHORT
#undef DVTI_FOLD_LONG
#undef DVTI_FOLD_BYTES
#undef DVTI_FOLD_ITEM
#undef DVTI_FOLD_GATHER
