/* Reductions. The order in which elements meet depends on the shape alone, so the bits do not depend on the number of threads:
   the reduced positions of one result are cut into chunks; within a chunk blocks of elements go into a few lanes; lanes, blocks and chunks
   are then combined as a balanced tree. Where kept positions lie closer in memory than reduced ones, the lanes are neighbouring
   results instead, so that memory is read in its own order (sums of columns). */
#include "3_cpu/dvt_cpu.h"

#define DVTI_LANES DVTI_BLOCK /* neighbouring results at a time */
#define DVTI_ROW_LANES 8      /* lanes of one result */
#define DVTI_CHUNK 32768      /* reduced positions per chunk of one result */
#define DVTI_COLUMN_CHUNK 512 /* the same for neighbouring results */

/* What has been seen so far: f value or largest, g sum of exponentials over it, i value of integers, at its position. */
typedef struct dvti_partial {
    double f, g;
    int64_t i, at;
} dvti_partial;

typedef struct dvti_lanes {
    double f[DVTI_LANES], g[DVTI_LANES];
    int64_t i[DVTI_LANES], at[DVTI_LANES];
} dvti_lanes;

typedef struct dvti_reduce_plan {
    const dvti_launch *launch;
    dvti_op op;
    bool integer;
    dvti_view kept, reduced; /* of in[0] */
    int64_t n_kept, n_reduced, n_chunks, chunk;
    int64_t tile, n_tiles; /* results per work item */
} dvti_reduce_plan;

/* ---- the start, the end, and what combines two ---- */
static dvti_partial dvti_partial_none(dvti_op op) {
    dvti_partial p;
    p.f = op == DVTI_OP_prod                                                     ? 1
          : op == DVTI_OP_min || op == DVTI_OP_argmin                            ? (double)INFINITY
          : op == DVTI_OP_max || op == DVTI_OP_argmax || op == DVTI_OP_logsumexp ? -(double)INFINITY
                                                                                 : 0;
    p.i = op == DVTI_OP_prod || op == DVTI_OP_all     ? 1
          : op == DVTI_OP_min || op == DVTI_OP_argmin ? INT64_MAX
          : op == DVTI_OP_max || op == DVTI_OP_argmax ? INT64_MIN
                                                      : 0;
    p.g = 0;
    p.at = INT64_MAX;
    return p;
}

static int64_t dvti_wrapping_add(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t dvti_wrapping_mul(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* Is x at position `at` to be preferred? NaN before everything, then the extreme, then the first. */
static bool dvti_prefer(double x, int64_t at, double best, int64_t best_at, bool smallest) {
    if (x != x || best != best)
        return x != x && (best == best || at < best_at);
    return x == best ? at < best_at : smallest ? x < best : x > best;
}

static bool dvti_prefer_int(int64_t x, int64_t at, int64_t best, int64_t best_at, bool smallest) {
    return x == best ? at < best_at : smallest ? x < best : x > best;
}

/* The larger one, NaN when either is. */
static double dvti_larger(double a, double b) {
    return a != a || a > b ? a : b;
}

static double dvti_smaller(double a, double b) {
    return a != a || a < b ? a : b;
}

/* How sums of exponentials over one maximum become sums over another. */
static double dvti_rescale(double sum, double from, double to) {
    return from == to ? sum : sum * exp(from - to);
}

static void dvti_partial_combine(const dvti_reduce_plan *plan, dvti_partial *a,
                                 const dvti_partial *b) {
    double largest;
    switch (plan->op) {
    case DVTI_OP_prod:
        a->f *= b->f;
        a->i = dvti_wrapping_mul(a->i, b->i);
        break;
    case DVTI_OP_min:
        a->f = dvti_smaller(a->f, b->f);
        a->i = DVTI_MIN(a->i, b->i);
        break;
    case DVTI_OP_max:
        a->f = dvti_larger(a->f, b->f);
        a->i = DVTI_MAX(a->i, b->i);
        break;
    case DVTI_OP_any:
        a->i |= b->i;
        break;
    case DVTI_OP_all:
        a->i &= b->i;
        break;
    case DVTI_OP_argmin:
    case DVTI_OP_argmax:
        if (plan->integer ? dvti_prefer_int(b->i, b->at, a->i, a->at, plan->op == DVTI_OP_argmin)
                          : dvti_prefer(b->f, b->at, a->f, a->at, plan->op == DVTI_OP_argmin))
            *a = *b;
        break;
    case DVTI_OP_logsumexp:
        largest = dvti_larger(a->f, b->f);
        a->g = dvti_rescale(a->g, a->f, largest) + dvti_rescale(b->g, b->f, largest);
        a->f = largest;
        break;
    default: /* sum, mean, norm */
        a->f += b->f;
        a->i = dvti_wrapping_add(a->i, b->i);
        break;
    }
}

/* n > 0; the result is in p[0]. */
static void dvti_partial_tree(const dvti_reduce_plan *plan, dvti_partial *p, int64_t n) {
    int64_t step, i;
    for (step = 1; step < n; step *= 2)
        for (i = 0; i + step < n; i += 2 * step)
            dvti_partial_combine(plan, &p[i], &p[i + step]);
}

static void dvti_partial_finish(const dvti_reduce_plan *plan, const dvti_partial *p,
                                int64_t result) {
    const dvti_view *out = &plan->launch->out[0];
    int64_t at = 0, rest = result;
    double f = p->f;
    int i;
    for (i = out->ndim - 1; i >= 0; i--) {
        at += rest % out->dim[i] * out->stride[i];
        rest /= out->dim[i];
    }
    switch (plan->op) {
    case DVTI_OP_argmin:
    case DVTI_OP_argmax:
        dvti_store_i64(out->data, out->dtype, at, p->at);
        return;
    case DVTI_OP_any:
    case DVTI_OP_all:
        dvti_store_i64(out->data, out->dtype, at, p->i);
        return;
    case DVTI_OP_mean:
        f /= plan->launch->f[0];
        break;
    case DVTI_OP_norm:
        f = sqrt(f);
        break;
    case DVTI_OP_logsumexp:
        f = f - f == 0 ? f + log(p->g) : f;
        break;
    default:
        break;
    }
    if (plan->integer)
        dvti_store_i64(out->data, out->dtype, at, p->i);
    else
        dvti_store_f64(out->data, out->dtype, at, f);
}

/* ---- elements into lanes: rows of `lanes` elements, x[r * lanes + j] into lane j. The position of that element is
   first + r * row_step + j * lane_step. ---- */
typedef struct dvti_rows {
    int64_t rows, lanes, first, row_step, lane_step;
} dvti_rows;

#define DVTI_EACH(statement)                                                                       \
    for (r = 0; r < rows->rows; r++, x += lanes)                                                   \
        for (j = 0; j < lanes; j++) {                                                              \
            statement;                                                                             \
        }                                                                                          \
    break

static void dvti_lanes_logsumexp(dvti_lanes *to, const double *x, const dvti_rows *rows) {
    double largest[DVTI_LANES], base;
    int64_t r, j;
    for (j = 0; j < rows->lanes; j++)
        largest[j] = to->f[j];
    for (r = 0; r < rows->rows; r++)
        for (j = 0; j < rows->lanes; j++)
            largest[j] = dvti_larger(largest[j], x[r * rows->lanes + j]);
    for (j = 0; j < rows->lanes; j++) {
        /* Minus infinity minus itself would be NaN; over 0 its exponential is 0, as it should be. */
        base = largest[j] - largest[j] == 0 ? largest[j] : 0;
        to->g[j] = dvti_rescale(to->g[j], to->f[j], largest[j]);
        to->f[j] = largest[j];
        for (r = 0; r < rows->rows; r++)
            to->g[j] += exp(x[r * rows->lanes + j] - base);
    }
}

static void dvti_lanes_f64(dvti_op op, dvti_lanes *to, const double *x, const dvti_rows *rows) {
    const int64_t lanes = rows->lanes;
    int64_t r, j, at;
    switch (op) {
    case DVTI_OP_prod:
        DVTI_EACH(to->f[j] *= x[j]);
    case DVTI_OP_norm:
        DVTI_EACH(to->f[j] += x[j] * x[j]);
    case DVTI_OP_min:
        DVTI_EACH(to->f[j] = dvti_smaller(to->f[j], x[j]));
    case DVTI_OP_max:
        DVTI_EACH(to->f[j] = dvti_larger(to->f[j], x[j]));
    case DVTI_OP_any:
        DVTI_EACH(to->i[j] |= x[j] != 0);
    case DVTI_OP_all:
        DVTI_EACH(to->i[j] &= x[j] != 0);
    case DVTI_OP_argmin:
    case DVTI_OP_argmax:
        DVTI_EACH(at = rows->first + r * rows->row_step + j * rows->lane_step;
                  if (dvti_prefer(x[j], at, to->f[j], to->at[j], op == DVTI_OP_argmin)) {
                      to->f[j] = x[j];
                      to->at[j] = at;
                  });
    case DVTI_OP_logsumexp:
        dvti_lanes_logsumexp(to, x, rows);
        break;
    default:
        DVTI_EACH(to->f[j] += x[j]);
    }
}

static void dvti_lanes_i64(dvti_op op, dvti_lanes *to, const int64_t *x, const dvti_rows *rows) {
    const int64_t lanes = rows->lanes;
    int64_t r, j, at;
    switch (op) {
    case DVTI_OP_prod:
        DVTI_EACH(to->i[j] = dvti_wrapping_mul(to->i[j], x[j]));
    case DVTI_OP_min:
        DVTI_EACH(to->i[j] = DVTI_MIN(to->i[j], x[j]));
    case DVTI_OP_max:
        DVTI_EACH(to->i[j] = DVTI_MAX(to->i[j], x[j]));
    case DVTI_OP_any:
        DVTI_EACH(to->i[j] |= x[j] != 0);
    case DVTI_OP_all:
        DVTI_EACH(to->i[j] &= x[j] != 0);
    case DVTI_OP_argmin:
    case DVTI_OP_argmax:
        DVTI_EACH(at = rows->first + r * rows->row_step + j * rows->lane_step;
                  if (dvti_prefer_int(x[j], at, to->i[j], to->at[j], op == DVTI_OP_argmin)) {
                      to->i[j] = x[j];
                      to->at[j] = at;
                  });
    default:
        DVTI_EACH(to->i[j] = dvti_wrapping_add(to->i[j], x[j]));
    }
}

#undef DVTI_EACH

static void dvti_lanes_begin(dvti_lanes *lanes, dvti_op op, int64_t n) {
    dvti_partial none = dvti_partial_none(op);
    int64_t j;
    for (j = 0; j < n; j++) {
        lanes->f[j] = none.f;
        lanes->g[j] = none.g;
        lanes->i[j] = none.i;
        lanes->at[j] = none.at;
    }
}

static dvti_partial dvti_lane(const dvti_lanes *lanes, int64_t j) {
    dvti_partial p;
    p.f = lanes->f[j];
    p.g = lanes->g[j];
    p.i = lanes->i[j];
    p.at = lanes->at[j];
    return p;
}

static void dvti_lanes_add(const dvti_reduce_plan *plan, dvti_lanes *lanes, const void *x,
                           const dvti_rows *rows) {
    if (plan->integer)
        dvti_lanes_i64(plan->op, lanes, (const int64_t *)x, rows);
    else
        dvti_lanes_f64(plan->op, lanes, (const double *)x, rows);
}

/* For op square: n elements of one result, or of n neighbouring ones, become the squares of their distances from the means, rounded as they
   would be in memory. */
static void dvti_spread_block(const dvti_reduce_plan *plan, double *x, int64_t n, int64_t result,
                              bool neighbours) {
    const dvti_view *mean = &plan->launch->in[1];
    double m = dvti_load_f64(mean->data, mean->dtype, result);
    int64_t k;
    for (k = 0; k < n; k++) {
        if (neighbours)
            m = dvti_load_f64(mean->data, mean->dtype, result + k);
        if (mean->dtype == DVT_F64) {
            x[k] = (x[k] - m) * (x[k] - m);
        } else {
            float d = (float)x[k] - (float)m;
            x[k] = (double)(d * d);
        }
    }
}

/* ---- chunks ---- */
/* One block of up to DVTI_BLOCK elements of one result. */
static dvti_partial dvti_reduce_block(const dvti_reduce_plan *plan, const double *x, int64_t first,
                                      int64_t n) {
    dvti_partial lane[DVTI_ROW_LANES];
    dvti_lanes lanes;
    dvti_rows rows;
    int64_t j, used = DVTI_MIN(n, DVTI_ROW_LANES);
    dvti_lanes_begin(&lanes, plan->op, used);
    rows.lanes = used;
    rows.rows = used ? n / used : 0;
    rows.first = first;
    rows.row_step = used;
    rows.lane_step = 1;
    dvti_lanes_add(plan, &lanes, x, &rows);
    if (used && n % used) {
        rows.first = first + rows.rows * used;
        x += rows.rows * used; /* both classes have 8 bytes */
        rows.lanes = n % used;
        rows.rows = 1;
        dvti_lanes_add(plan, &lanes, x, &rows);
    }
    for (j = 0; j < used; j++)
        lane[j] = dvti_lane(&lanes, j);
    if (!used)
        return dvti_partial_none(plan->op);
    dvti_partial_tree(plan, lane, used);
    return lane[0];
}

/* Reduced positions begin..end of one result. */
static dvti_partial dvti_reduce_row(const dvti_reduce_plan *plan, int64_t result, int64_t begin,
                                    int64_t end) {
    dvti_partial block[DVTI_CHUNK / DVTI_BLOCK];
    double buffer[DVTI_BLOCK];
    dvti_view row = plan->reduced;
    dvti_class compute = plan->integer ? DVTI_I64 : DVTI_F64;
    int64_t at, n, n_blocks = 0;
    if (begin == end)
        return dvti_partial_none(plan->op);
    row.data = (char *)row.data +
               dvti_cursor_at(&plan->kept, result).at * dvt_dtype_size(plan->kept.dtype);
    for (at = begin; at < end; at += n) {
        bool spread = plan->op == DVTI_OP_variance;
        void *x = spread ? NULL : dvti_block_direct(&row, compute, at);
        n = DVTI_MIN(end - at, DVTI_BLOCK);
        if (!x)
            dvti_load_block(&row, at, n, compute, x = buffer);
        if (spread)
            dvti_spread_block(plan, buffer, n, result, false);
        block[n_blocks++] = dvti_reduce_block(plan, (const double *)x, at, n);
    }
    dvti_partial_tree(plan, block, n_blocks);
    return block[0];
}

/* The same for n neighbouring results. */
static void dvti_reduce_columns(const dvti_reduce_plan *plan, int64_t result, int64_t n,
                                int64_t begin, int64_t end, dvti_lanes *lanes) {
    dvti_cursor cursor = dvti_cursor_at(&plan->reduced, begin);
    dvti_view row = plan->kept;
    int64_t at, size = dvt_dtype_size(row.dtype);
    double buffer[DVTI_LANES];
    dvti_rows rows;
    rows.rows = 1;
    rows.lanes = n;
    rows.row_step = rows.lane_step = 0;
    dvti_lanes_begin(lanes, plan->op, n);
    for (at = begin; at < end; at++) {
        row.data = (char *)plan->kept.data + cursor.at * size;
        dvti_load_block(&row, result, n, plan->integer ? DVTI_I64 : DVTI_F64, buffer);
        if (plan->op == DVTI_OP_variance)
            dvti_spread_block(plan, buffer, n, result, true);
        rows.first = at;
        dvti_lanes_add(plan, lanes, buffer, &rows);
        if (at + 1 < end)
            dvti_cursor_advance(&cursor, &plan->reduced, 1);
    }
}

/* ---- the launch ---- */
static void dvti_reduce_items(void *user, int64_t begin, int64_t end) {
    const dvti_reduce_plan *plan = (const dvti_reduce_plan *)user;
    dvti_partial *partial = (dvti_partial *)plan->launch->workspace, one;
    dvti_lanes lanes;
    int64_t item, j;
    for (item = begin; item < end; item++) {
        int64_t chunk = item % plan->n_chunks, result = item / plan->n_chunks * plan->tile;
        int64_t from = chunk * plan->chunk, to = DVTI_MIN(from + plan->chunk, plan->n_reduced);
        int64_t n = DVTI_MIN(plan->tile, plan->n_kept - result);
        if (plan->tile > 1)
            dvti_reduce_columns(plan, result, n, from, to, &lanes);
        for (j = 0; j < n; j++) {
            one = plan->tile > 1 ? dvti_lane(&lanes, j) : dvti_reduce_row(plan, result, from, to);
            if (plan->n_chunks == 1)
                dvti_partial_finish(plan, &one, result + j);
            else
                partial[(result + j) * plan->n_chunks + chunk] = one;
        }
    }
}

static void dvti_reduce_finish(void *user, int64_t begin, int64_t end) {
    const dvti_reduce_plan *plan = (const dvti_reduce_plan *)user;
    dvti_partial *partial = (dvti_partial *)plan->launch->workspace;
    int64_t result;
    for (result = begin; result < end; result++) {
        dvti_partial *mine = partial + result * plan->n_chunks;
        dvti_partial_tree(plan, mine, plan->n_chunks);
        dvti_partial_finish(plan, mine, result);
    }
}

static dvti_reduce_plan dvti_reduce_plan_of(const dvti_launch *launch) {
    dvti_reduce_plan plan;
    int kept = (int)launch->i[0], i;
    dvti_view *reduced = &plan.reduced;
    plan.launch = launch;
    plan.op = launch->op;
    plan.integer = !dvt_dtype_is_float(launch->in[0].dtype) && plan.op != DVTI_OP_mean &&
                   plan.op != DVTI_OP_norm && plan.op != DVTI_OP_logsumexp;
    plan.kept = plan.reduced = launch->in[0];
    plan.kept.ndim = kept;
    reduced->ndim = launch->in[0].ndim - kept;
    for (i = 0; i < reduced->ndim; i++) {
        reduced->dim[i] = launch->in[0].dim[kept + i];
        reduced->stride[i] = launch->in[0].stride[kept + i];
    }
    plan.n_kept = dvti_view_size(&plan.kept);
    plan.n_reduced = dvti_view_size(reduced);
    dvti_merge_axes(&plan.kept);
    dvti_merge_axes(reduced);
    plan.tile = 1;
    plan.chunk = DVTI_CHUNK;
    if (plan.n_kept >= 16 && plan.n_reduced > 1 && plan.kept.dim[plan.kept.ndim - 1] >= 16 &&
        plan.kept.stride[plan.kept.ndim - 1] < reduced->stride[reduced->ndim - 1]) {
        plan.tile = DVTI_LANES;
        plan.chunk = DVTI_COLUMN_CHUNK;
    }
    plan.n_tiles = (plan.n_kept + plan.tile - 1) / plan.tile;
    plan.n_chunks = DVTI_MAX((plan.n_reduced + plan.chunk - 1) / plan.chunk, 1);
    return plan;
}

DVTI_FN int64_t dvti_ref_reduce_workspace(const dvti_launch *launch) {
    dvti_reduce_plan plan = dvti_reduce_plan_of(launch);
    return plan.n_chunks > 1 ? plan.n_kept * plan.n_chunks * (int64_t)sizeof(dvti_partial) : 0;
}

DVTI_FN void dvti_ref_reduce(const dvti_launch *launch) {
    dvti_reduce_plan plan = dvti_reduce_plan_of(launch);
    int64_t item = plan.tile * DVTI_MIN(plan.chunk, plan.n_reduced) + 32;
    dvti_parallel_for(plan.n_tiles * plan.n_chunks, 0.6 * (double)item, dvti_reduce_items, &plan);
    if (plan.n_chunks > 1)
        dvti_parallel_for(plan.n_kept, 2.5 * (double)plan.n_chunks, dvti_reduce_finish, &plan);
}

#undef DVTI_LANES
#undef DVTI_ROW_LANES
#undef DVTI_CHUNK
#undef DVTI_COLUMN_CHUNK
