/* Reductions by the kernels of an ISA target, which read float32 and narrower floats, float64, and
   for any and all every dtype; of integers by those of cpu_reduce_integers.c.

   A reduction has kept positions, one for each result, and reduced positions:

       rows      the reduced positions lie closer in memory: each run of them gives one result
       columns   the kept positions lie closer: runs of neighboring results, row after row

   The shape alone cuts results into chunks, and the chunks of a result meet in a balanced tree. So
   the bits do not depend on the number of threads. Elements in any other layout, or whose dtype a
   kernel does not read, pass through blocks that stay in L1. One kernel call reduces many short
   rows. */
#include "3_cpu/cpu_reduce.h"

#define DVTI_REDUCE_RUN 32      /* shorter runs in memory are gathered into blocks */
#define DVTI_REDUCE_SHORT 16    /* elements of rows whose products are chains */
#define DVTI_REDUCE_BYTES 16384 /* of a block of columns: 8 or 4 rows */
#define DVTI_REDUCE_GATHER 2048 /* elements of such rows that are gathered at a time */

/* ---- joining partial results ---- */
static double dvti_log_add(double a, double b) {
    double most = a > b ? a : b, least = a > b ? b : a;
    return a != a || b != b ? a + b : most - most == 0 ? most + log1p(exp(least - most)) : most;
}

/* Joins two partial results. If a and b compare equal (-0 and +0), returns a. */
static double dvti_join_f64(dvti_join join, double a, double b) {
    return join == DVTI_JOIN_add       ? a + b
           : join == DVTI_JOIN_mul     ? a * b
           : join == DVTI_JOIN_smaller ? dvti_f64_smaller(b, a)
                                       : dvti_f64_larger(b, a);
}

static int64_t dvti_join_i64(dvti_join join, int64_t a, int64_t b) {
    return join == DVTI_JOIN_add       ? dvti_i64_add(a, b)
           : join == DVTI_JOIN_mul     ? dvti_i64_mul(a, b)
           : join == DVTI_JOIN_smaller ? dvti_i64_smaller(a, b)
                                       : dvti_i64_larger(a, b);
}

/* Joins b into a, which precedes it. Ties and multiple NaN keep the first position. */
static void dvti_join_partials(const dvti_reduce_plan *plan, dvti_partial *a, dvti_partial b) {
    double f;
    int64_t i;
    if (plan->compute == DVTI_I64) {
        i = dvti_join_i64(plan->join, a->value.i, b.value.i);
        if (plan->place && i != a->value.i)
            a->at = b.at;
        a->value.i = i;
        return;
    }
    f = plan->method == DVTI_METHOD_LOGSUMEXP ? dvti_log_add(a->value.f, b.value.f)
                                              : dvti_join_f64(plan->join, a->value.f, b.value.f);
    if (plan->place && a->value.f == a->value.f && f != a->value.f)
        a->at = b.at;
    a->value.f = f;
}

/* n > 0; the result is in p[0]. */
static void dvti_reduce_tree(const dvti_reduce_plan *plan, dvti_partial *p, int64_t n) {
    const bool sum = plan->method == DVTI_METHOD_ADD && plan->compute != DVTI_I64;
    int64_t step, i;
    for (step = 1; step < n; step *= 2)
        for (i = 0; i + step < n; i += 2 * step)
            if (sum) /* the same as joining, faster for columns, of which there are many */
                p[i].value.f += p[i + step].value.f;
            else
                dvti_join_partials(plan, &p[i], p[i + step]);
}

/* Stores up to DVTI_ACROSS results from number `first` on; values are whole vectors. */
static void dvti_reduce_finish(const dvti_reduce_plan *plan, int64_t first, int64_t n,
                               dvti_reduce_values *values, const int64_t *at) {
    const dvti_launch *launch = plan->launch;
    const dvti_view *out = &launch->out[0]; /* contiguous */
    void *to = (char *)out->data + first * dvt_dtype_size(out->dtype);
    float few[DVTI_ACROSS];
    if (plan->place) {
        if (at != to)
            dvti_store_row_i64(to, out->dtype, 1, n, at);
    } else if (plan->compute == DVTI_I64) {
        dvti_store_row_i64(to, out->dtype, 1, n, values->i);
    } else if (plan->compute == DVTI_F32) {
        dvti_simd_reduce_of(plan->simd)
            ->finish(launch->op, launch->f[0], values->f, n,
                     out->dtype == DVT_F32 ? (float *)to : few);
        if (out->dtype != DVT_F32 && !plan->simd->store_row(to, out->dtype, n, few))
            dvti_store_row_f32(to, out->dtype, 1, n, few);
    } else {
        dvti_simd_reduce_of(plan->simd)->finish(launch->op, launch->f[0], values->f, n, NULL);
        dvti_store_row_f64(to, out->dtype, 1, n, values->f);
    }
}

/* ---- chunks ---- */
/* Products of short rows are plain chains, four side by side: joining the lanes of vectors takes
   longer. Sums are not: the sum of squares that a variance is recorded as must have the bits of the
   kernel of variances. */
#define DVTI_SHORT_PRODUCTS(name, X)                                                               \
    static void name(const dvti_reduction *run) {                                                  \
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
DVTI_SHORT_PRODUCTS(dvti_short_products_f64, double)
DVTI_SHORT_PRODUCTS(dvti_short_products_f32, float)
#undef DVTI_SHORT_PRODUCTS

static void dvti_reduce_rows(const dvti_reduce_plan *plan, const dvti_reduction *run) {
    if (run->op == DVTI_OP_prod && run->n <= DVTI_REDUCE_SHORT && plan->compute != DVTI_I64)
        (plan->compute == DVTI_F32 ? dvti_short_products_f32 : dvti_short_products_f64)(run);
    else if (plan->kernel.rows)
        plan->kernel.rows(run);
    else
        dvti_logsumexp64(plan->simd, run);
}

/* n elements of each of `rows` runs at x, for results from number `result` on. block: x is a
   block. */
static dvti_reduction dvti_reduction_of(const dvti_reduce_plan *plan, int64_t result, const void *x,
                                        bool block, int64_t rows, int64_t n) {
    static const dvt_dtype block_dtype[] = {DVT_F32, DVT_F64, DVT_I64}; /* by class */
    dvti_reduction p;
    p.op = plan->launch->op;
    p.dtype = block ? block_dtype[plan->compute] : plan->launch->in[0].dtype;
    p.x = x;
    p.step = p.seen = 0;
    p.rows = rows;
    p.n = n;
    p.mean = NULL;
    if (p.op == DVTI_OP_variance) {
        const dvti_view *mean = &plan->launch->in[1];
        p.mean = (const char *)mean->data + result * dvt_dtype_size(mean->dtype);
    }
    p.value = NULL;
    p.integer = NULL;
    p.at = NULL;
    return p;
}

/* Reduced positions begin..end of a result whose first element is element number `base`. */
static dvti_partial dvti_reduce_runs(const dvti_reduce_plan *plan, int64_t result, int64_t base,
                                     int64_t begin, int64_t end) {
    dvti_view row = plan->reduced;
    const int last = row.ndim - 1;
    bool direct = plan->readable && (row.stride[last] == 1 || row.dim[last] == 1) &&
                  (last == 0 || row.dim[last] >= DVTI_REDUCE_RUN);
    dvti_cursor cursor;
    dvti_reduction run;
    dvti_partial all, one;
    double block[DVTI_BLOCK];
    int64_t at, n;
    all.value.i = 0;
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
        run = dvti_reduction_of(plan, result, x, !direct, 1, n);
        run.value = &one.value.f;
        run.integer = &one.value.i;
        run.at = plan->place ? &one.at : NULL;
        dvti_reduce_rows(plan, &run);
        one.at += at;
        if (at == begin)
            all = one;
        else
            dvti_join_partials(plan, &all, one);
    }
    return all;
}

/* Reduced positions begin..end of n neighboring results. */
static void dvti_reduce_columns(const dvti_reduce_plan *plan, int64_t result, int64_t n,
                                int64_t begin, int64_t end, dvti_reduce_values *to,
                                int64_t *to_at) {
    const dvti_view *reduced = &plan->reduced;
    const int last = reduced->ndim - 1, kept = plan->kept.ndim - 1;
    const int64_t most = DVTI_REDUCE_BYTES / plan->wide / DVTI_BLOCK;
    const int64_t whole = (n + 15) / 16 * 16;
    const bool integer = plan->compute == DVTI_I64;
    const double start = integer ? 0 : dvti_reduce_start_f64(plan->launch->op);
    const int64_t start_i = integer ? dvti_reduce_start_i64(plan->launch->op) : 0;
    dvti_cursor cursor = dvti_cursor_at(reduced, begin),
                first = dvti_cursor_at(&plan->kept, result);
    dvti_view row = plan->kept;
    bool direct = plan->readable && row.stride[kept] == 1;
    double block[DVTI_REDUCE_BYTES / 8], more[DVTI_BLOCK];
    dvti_reduction run = dvti_reduction_of(plan, result, block, !direct, 0, n);
    int64_t at, r, j;
    run.step = direct ? reduced->stride[last] : DVTI_BLOCK;
    run.value = to->f;
    run.integer = to->i;
    run.at = plan->place ? to_at : NULL;
    for (j = 0; j < whole; j++)
        if (integer)
            to->i[j] = start_i;
        else
            to->f[j] = start;
    for (j = 0; plan->place && j < whole; j++)
        to_at[j] = 0;
    for (at = begin; at < end; at += run.rows) {
        run.rows = DVTI_MIN(end - at, reduced->dim[last] - cursor.index[last]);
        if (direct) {
            run.x = (const char *)row.data + (first.at + cursor.at) * plan->size;
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
        if (plan->kernel.rows) {
            plan->kernel.columns(&run);
        } else {
            run.value = run.seen ? more : to->f;
            dvti_logsumexp64_columns(plan->simd, &run);
            for (j = 0; run.seen && j < n; j++)
                to->f[j] = dvti_log_add(to->f[j], more[j]);
        }
        if (at + run.rows < end)
            dvti_cursor_advance(&cursor, reduced, run.rows);
    }
    for (j = 0; plan->place && j < n; j++)
        to_at[j] += begin;
}

/* ---- the kernel ---- */
static dvti_partial *dvti_reduce_partials(const dvti_reduce_plan *plan, int64_t result) {
    return (dvti_partial *)plan->launch->workspace + result * plan->n_chunks;
}

static void dvti_reduce_column_items(void *user, int64_t begin, int64_t end) {
    const dvti_reduce_plan *plan = (const dvti_reduce_plan *)user;
    dvti_reduce_values values;
    int64_t places[DVTI_ACROSS], item, j;
    for (item = begin; item < end; item++) {
        int64_t chunk = item % plan->n_chunks, tile = item / plan->n_chunks;
        int64_t from = chunk * plan->chunk, to = DVTI_MIN(from + plan->chunk, plan->n_reduced);
        int64_t width = plan->kept.dim[plan->kept.ndim - 1];
        int64_t column = tile % plan->across * plan->tile, n = DVTI_MIN(plan->tile, width - column);
        int64_t result = tile / plan->across * width + column;
        dvti_reduce_columns(plan, result, n, from, to, &values, places);
        if (plan->n_chunks == 1)
            dvti_reduce_finish(plan, result, n, &values, places);
        for (j = 0; plan->n_chunks > 1 && j < n; j++) {
            dvti_partial *one = dvti_reduce_partials(plan, result + j) + chunk;
            if (plan->compute == DVTI_I64)
                one->value.i = values.i[j];
            else
                one->value.f = values.f[j];
            one->at = plan->place ? places[j] : 0;
        }
    }
}

/* Reduces results first..first + n without chunks: rows in place, or short rows gathered into a
   block. Others one by one. */
static void dvti_reduce_whole_rows(const dvti_reduce_plan *plan, int64_t first, int64_t n,
                                   dvti_reduce_values *to, int64_t *to_at) {
    const int last = plan->kept.ndim - 1;
    const int64_t length = plan->n_reduced;
    dvti_cursor cursor = dvti_cursor_at(&plan->kept, first);
    double block[DVTI_REDUCE_GATHER];
    dvti_reduction run;
    int64_t k, some;
    for (k = 0; k < n; k += some) {
        bool gathered = !plan->plain && length <= DVTI_BLOCK;
        if (plan->plain) {
            some = DVTI_MIN(n - k, plan->kept.dim[last] - cursor.index[last]);
            run = dvti_reduction_of(plan, first + k,
                                    (const char *)plan->kept.data + cursor.at * plan->size, false,
                                    some, length);
            run.step = plan->kept.stride[last];
        } else if (gathered) {
            some = DVTI_MIN(n - k, DVTI_REDUCE_GATHER / length);
            dvti_load_block(&plan->whole, (first + k) * length, some * length, plan->compute,
                            block);
            run = dvti_reduction_of(plan, first + k, block, true, some, length);
            run.step = length;
        } else {
            dvti_partial one = dvti_reduce_runs(plan, first + k, cursor.at, 0, length);
            some = 1;
            if (plan->compute == DVTI_I64)
                to->i[k] = one.value.i;
            else
                to->f[k] = one.value.f;
            if (to_at)
                to_at[k] = one.at;
        }
        if (plan->plain || gathered) {
            run.value = to->f + k;
            run.integer = to->i + k;
            run.at = to_at ? to_at + k : NULL;
            dvti_reduce_rows(plan, &run);
        }
        if (!gathered && k + some < n)
            dvti_cursor_advance(&cursor, &plan->kept, some);
    }
}

static void dvti_reduce_row_items(void *user, int64_t begin, int64_t end) {
    const dvti_reduce_plan *plan = (const dvti_reduce_plan *)user;
    int64_t item;
    for (item = begin; item < end; item++) {
        int64_t chunk = item % plan->n_chunks, result = item / plan->n_chunks;
        int64_t from = chunk * plan->chunk, to = DVTI_MIN(from + plan->chunk, plan->n_reduced);
        dvti_reduce_partials(plan, result)[chunk] =
            dvti_reduce_runs(plan, result, dvti_cursor_at(&plan->kept, result).at, from, to);
    }
}

/* Items of one chunk, as many results at a time as the values hold. */
static void dvti_reduce_short_items(void *user, int64_t begin, int64_t end) {
    const dvti_reduce_plan *plan = (const dvti_reduce_plan *)user;
    const int64_t last = DVTI_MIN(end * plan->tile, plan->n_kept);
    dvti_reduce_values values;
    int64_t result, n;
    for (result = begin * plan->tile; result < last; result += n) {
        int64_t *at = plan->place ? (int64_t *)plan->launch->out[0].data + result : NULL;
        n = DVTI_MIN(DVTI_ACROSS, last - result);
        dvti_reduce_whole_rows(plan, result, n, &values, at);
        dvti_reduce_finish(plan, result, n, &values, at);
    }
}

static void dvti_reduce_trees(void *user, int64_t begin, int64_t end) {
    const dvti_reduce_plan *plan = (const dvti_reduce_plan *)user;
    dvti_reduce_values values;
    int64_t places[DVTI_ACROSS], first, n, j;
    for (first = begin; first < end; first += n) {
        n = DVTI_MIN(end - first, DVTI_ACROSS);
        for (j = 0; j < n; j++) {
            dvti_partial *mine = dvti_reduce_partials(plan, first + j);
            dvti_reduce_tree(plan, mine, plan->n_chunks);
            if (plan->compute == DVTI_I64)
                values.i[j] = mine[0].value.i;
            else
                values.f[j] = mine[0].value.f;
            places[j] = mine[0].at;
        }
        dvti_reduce_finish(plan, first, n, &values, places);
    }
}

static void dvti_reduce_run(dvti_reduce_plan *plan, const dvti_launch *launch) {
    double item, element;
    plan->launch = launch;
    element = plan->method == DVTI_METHOD_LOGSUMEXP ? 0.1 * (double)plan->wide
              : plan->compute == DVTI_I64           ? 0.6
              : plan->readable                      ? 0.015 * (double)plan->size
                                                    : 0.15;
    item = 20 + element * (double)(plan->tile * DVTI_MIN(plan->chunk, plan->n_reduced));
    dvti_parallel_for(plan->n_tiles * plan->n_chunks, item,
                      plan->columns         ? dvti_reduce_column_items
                      : plan->n_chunks == 1 ? dvti_reduce_short_items
                                            : dvti_reduce_row_items,
                      plan);
    if (plan->n_chunks > 1)
        dvti_parallel_for(plan->n_kept, 2.5 * (double)plan->n_chunks, dvti_reduce_trees, plan);
}

DVTI_FN void dvti_cpu_reduce(const dvti_launch *launch) {
    dvti_reduce_plan *plan = (dvti_reduce_plan *)dvti_cpu_plan_at(launch);
    if (plan->simd)
        dvti_reduce_run(plan, launch);
    else
        dvti_oracle_reduce(launch);
}

DVTI_FN void dvti_cpu_variance(const dvti_launch *launch) {
    dvti_reduce_plan *plan = (dvti_reduce_plan *)dvti_cpu_plan_at(launch);
    if (plan->simd)
        dvti_reduce_run(plan, launch);
    else
        dvti_oracle_variance(launch);
}

#undef DVTI_REDUCE_RUN
#undef DVTI_REDUCE_SHORT
#undef DVTI_REDUCE_BYTES
#undef DVTI_REDUCE_GATHER
