/* Kernels along axes at the edge of memory: reductions, running sums, softmax, normalized rows,
   transposed squares, pooling. */
#include "bounds.h"

/* ---- reductions ---- */
typedef struct reduce_how {
    dvti_reduction p;
    bool columns, with_mean, with_places;
} reduce_how;

static dvti_reduce_kernel kernel_of(const dvti_simd *target, dvti_op op, bool wide) {
    if (op == DVTI_OP_any || op == DVTI_OP_all)
        return dvti_simd_reduce_of(target)->any_all;
    if (op == DVTI_OP_variance)
        return wide ? dvti_simd_reduce_of(target)->variance64
                    : dvti_simd_reduce_of(target)->variance;
    return wide ? dvti_simd_reduce_of(target)->reduce64(op)
                : dvti_simd_reduce_of(target)->reduce(op);
}

static void run_lanes_reduce(const dvti_simd *target, void *const *at, const void *user) {
    const reduce_how *how = (const reduce_how *)user;
    const dvti_reduce_kernel kernel = kernel_of(target, how->p.op, how->p.dtype == DVT_F64);
    dvti_reduction p = how->p;
    p.x = at[0];
    p.value = (double *)at[1];
    p.at = how->with_places ? (int64_t *)at[2] : NULL;
    p.mean = how->with_mean ? at[2] : NULL;
    (how->columns ? kernel.columns : kernel.rows)(&p);
}

/* Column kernels write up to DVTI_BLOCK results, row kernels one per row. */
static void check_lanes_reduce(reduce_how *how, int64_t rows, int64_t n, int64_t gap) {
    static double begin[DVTI_BLOCK];
    static const int64_t nowhere[DVTI_BLOCK] = {0};
    dvti_reduction *p = &how->p;
    const int64_t results = how->columns ? n : rows, capacity = how->columns ? DVTI_BLOCK : rows;
    bounds_call call = bounds_of("lanes_reduce", run_lanes_reduce, how);
    int64_t k;
    p->rows = rows;
    p->n = n;
    p->step = n + gap;
    for (k = 0; k < DVTI_BLOCK; k++)
        begin[k] = p->op == DVTI_OP_prod || p->op == DVTI_OP_all || p->seen ? 1 : 0;
    bounds_reads(&call, p->dtype, (rows - 1) * p->step + n);
    bounds_writes(&call, DVT_F64, capacity, results)->set = begin;
    if (how->with_places)
        bounds_writes(&call, DVT_I64, capacity, results)->set = nowhere;
    if (how->with_mean)
        bounds_reads(&call, p->dtype, results);
    bounds_check(&call);
}

static void check_kernel_of(dvti_op op, dvt_dtype dtype) {
    const bool places = op == DVTI_OP_argmax || op == DVTI_OP_argmin;
    reduce_how how;
    int64_t n, rows;
    memset(&how, 0, sizeof how);
    how.p.op = op;
    how.p.dtype = dtype;
    how.with_mean = op == DVTI_OP_variance;
    how.with_places = places;
    for (n = 1; n <= 200; n += n < 80 ? 1 : 29)
        for (rows = 1; rows <= 19; rows += rows < 4 ? 3 : 15) {
            how.columns = false;
            how.p.seen = 0;
            check_lanes_reduce(&how, rows, n, rows % 4);
            how.columns = true;
            check_lanes_reduce(&how, rows, n, n % 3);
            how.p.seen = 40;
            check_lanes_reduce(&how, rows, n, 0);
        }
}

/* Checks a reduction that also takes 16-bit floats, like sums. */
static void check_all_lanes_reduce(void) {
    const dvti_simd *target[4];
    int op, d;
    if (!dvti_simd_targets(target))
        return;
    for (op = 0; op < (int)DVTI_OP_COUNT; op++)
        for (d = 0; d < DVT_DTYPE_COUNT; d++) {
            const bool is_bool = op == DVTI_OP_any || op == DVTI_OP_all;
            const bool sum = op == DVTI_OP_sum || op == DVTI_OP_mean;
            const bool taken =
                d == DVT_F32 || d == DVT_F64 || (sum && (d == DVT_F16 || d == DVT_BF16));
            if (is_bool || (taken && kernel_of(target[0], (dvti_op)op, d == DVT_F64).rows))
                check_kernel_of((dvti_op)op, (dvt_dtype)d);
        }
    check_kernel_of(DVTI_OP_variance, DVT_F32);
    check_kernel_of(DVTI_OP_variance, DVT_F64);
    BOUNDS_SEEN(BOUNDS_REDUCE, dvti_simd_reduce, reduce);
    BOUNDS_SEEN(BOUNDS_REDUCE, dvti_simd_reduce, variance);
    BOUNDS_SEEN(BOUNDS_REDUCE, dvti_simd_reduce, variance64);
    BOUNDS_SEEN(BOUNDS_REDUCE, dvti_simd_reduce, finish);
    BOUNDS_SEEN(BOUNDS_REDUCE, dvti_simd_reduce, any_all);
    BOUNDS_SEEN(BOUNDS_REDUCE, dvti_simd_reduce, reduce64);
}

typedef struct row_how {
    dvti_op op;
    dvt_dtype dtype;
    int64_t rows, n, x_step, y_step;
    int form;
} row_how;

static void run_finish(const dvti_simd *target, void *const *at, const void *user) {
    const row_how *how = (const row_how *)user;
    dvti_simd_reduce_of(target)->finish(how->op, 7, (double *)at[0], how->n, (float *)at[1]);
}

static void check_finish(void) {
    static const dvti_op ops[] = {DVTI_OP_sum, DVTI_OP_mean, DVTI_OP_norm};
    row_how how;
    int k;
    memset(&how, 0, sizeof how);
    for (k = 0; k < 3; k++)
        for (how.n = 1; how.n <= 80; how.n++) {
            bounds_call call = bounds_of("finish", run_finish, &how);
            how.op = ops[k];
            bounds_reads(&call, DVT_F64, (how.n + 15) / 16 * 16);
            bounds_writes(&call, DVT_F32, how.n, how.n);
            bounds_check(&call);
        }
}

/* ---- running sums ---- */
static void run_running(const dvti_simd *target, void *const *at, const void *user) {
    const row_how *how = (const row_how *)user;
    dvti_running p;
    memset(&p, 0, sizeof p);
    p.x = at[0];
    p.y = how->form ? at[3] : NULL;
    p.step = how->x_step;
    p.rows = how->rows;
    p.columns = how->n;
    p.sum = (double *)at[1];
    p.before = (const double *)at[2];
    (how->dtype == DVT_F32 ? dvti_simd_scan_of(target)->f32 : dvti_simd_scan_of(target)->f64)(&p);
}

static void run_store_sums(const dvti_simd *target, void *const *at, const void *user) {
    const row_how *how = (const row_how *)user;
    dvti_simd_scan_of(target)->store_sums(at[1], how->dtype, how->n, (const double *)at[0], 0.375);
}

static void check_running(void) {
    static const dvt_dtype floats[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16};
    row_how how;
    int d;
    memset(&how, 0, sizeof how);
    for (d = 0; d < 2; d++)
        for (how.n = 1; how.n <= 80; how.n++)
            for (how.rows = 1; how.rows <= 9; how.rows += 4)
                for (how.form = 0; how.form < 2; how.form++) {
                    const int64_t whole = d ? (how.n + 7) / 8 * 8 : (how.n + 15) / 16 * 16;
                    bounds_call call = bounds_of("running sums", run_running, &how);
                    how.dtype = floats[d];
                    how.x_step = how.n + how.n % 4;
                    bounds_reads(&call, how.dtype, (how.rows - 1) * how.x_step + how.n);
                    bounds_writes(&call, DVT_F64, whole, how.n);
                    bounds_reads(&call, DVT_F64, whole);
                    if (how.form)
                        bounds_writes(&call, how.dtype, (how.rows - 1) * how.x_step + how.n,
                                      (how.rows - 1) * how.x_step + how.n);
                    bounds_check(&call);
                }
    for (d = 0; d < 4; d++)
        for (how.n = 1; how.n <= 80; how.n++) {
            bounds_call call = bounds_of("sums that are stored", run_store_sums, &how);
            how.dtype = floats[d];
            bounds_reads(&call, DVT_F64, how.n);
            bounds_writes(&call, how.dtype, how.n, how.n);
            bounds_check(&call);
        }
    BOUNDS_SEEN(BOUNDS_SCAN, dvti_simd_scan, f32);
    BOUNDS_SEEN(BOUNDS_SCAN, dvti_simd_scan, f64);
    BOUNDS_SEEN(BOUNDS_SCAN, dvti_simd_scan, store_sums);
}

/* ---- softmax and layer norm ---- */
static void run_softmax(const dvti_simd *target, void *const *at, const void *user) {
    const row_how *how = (const row_how *)user;
    (how->form / 2 ? dvti_simd_softmax_of(target)->softmax_columns
                   : dvti_simd_softmax_of(target)->softmax)((const float *)at[0], how->x_step,
                                                            (float *)at[1], how->y_step, how->rows,
                                                            how->n, how->form % 2 != 0);
}

static void run_layer_norm(const dvti_simd *target, void *const *at, const void *user) {
    const row_how *how = (const row_how *)user;
    dvti_simd_softmax_of(target)->layer_norm(
        (const float *)at[0], (float *)at[1], how->n, how->form & 1 ? (const float *)at[2] : NULL,
        how->form & 2 ? (const float *)at[2 + (how->form & 1)] : NULL, 0.25f);
}

static void run_transpose(const dvti_simd *target, void *const *at, const void *user) {
    const row_how *how = (const row_how *)user;
    target->transpose((const float *)at[0], how->x_step, (float *)at[1], how->y_step);
}

static void check_rows(void) {
    row_how how;
    memset(&how, 0, sizeof how);
    for (how.n = 1; how.n <= 300; how.n += how.n < 80 ? 1 : 31)
        for (how.form = 0; how.form < 4; how.form++) {
            bounds_call call = bounds_of("normalized row", run_layer_norm, &how);
            bounds_reads(&call, DVT_F32, how.n);
            bounds_writes(&call, DVT_F32, how.n, how.n);
            if (how.form & 1)
                bounds_reads(&call, DVT_F32, how.n);
            if (how.form & 2)
                bounds_reads(&call, DVT_F32, how.n);
            bounds_check(&call);
            for (how.rows = 1; how.rows <= 37; how.rows += 18) {
                bounds_call soft = bounds_of("softmax", run_softmax, &how);
                how.x_step = how.n + how.n % 3;
                how.y_step = how.n + how.rows % 2;
                bounds_reads(&soft, DVT_F32, (how.rows - 1) * how.x_step + how.n);
                bounds_writes(&soft, DVT_F32, (how.rows - 1) * how.y_step + how.n,
                              (how.rows - 1) * how.y_step + how.n);
                bounds_check(&soft);
            }
        }
    for (how.x_step = 16; how.x_step < 34; how.x_step++) {
        bounds_call call = bounds_of("transposed square", run_transpose, &how);
        how.y_step = how.x_step % 5 + 16;
        bounds_reads(&call, DVT_F32, 15 * how.x_step + 16);
        bounds_writes(&call, DVT_F32, 15 * how.y_step + 16, 15 * how.y_step + 16);
        bounds_check(&call);
    }
    BOUNDS_SEEN(BOUNDS_SOFTMAX, dvti_simd_softmax, softmax);
    BOUNDS_SEEN(BOUNDS_SOFTMAX, dvti_simd_softmax, softmax_columns);
    BOUNDS_SEEN(BOUNDS_SOFTMAX, dvti_simd_softmax, layer_norm);
    BOUNDS_SEEN(BOUNDS_SIMD, dvti_simd, transpose);
}

/* ---- pooling ---- */
typedef struct pool_how {
    dvti_pooling p;
    dvti_op op;
    int64_t planes;
} pool_how;

static void run_pool(const dvti_simd *target, void *const *at, const void *user) {
    const pool_how *how = (const pool_how *)user;
    const bool back = how->op == DVTI_OP_max_pool2d_data || how->op == DVTI_OP_avg_pool2d_data;
    dvti_pooling p = how->p;
    p.x = how->op == DVTI_OP_avg_pool2d_data ? NULL : (const float *)at[0];
    p.y = (float *)at[1];
    p.g = back ? (const float *)at[2] : NULL;
    p.counted = back ? NULL : (const float *)at[2];
    dvti_simd_pool_of(target)->of(how->op)(&p, 0, how->planes);
}

static void check_pool(pool_how *how) {
    static float ones[80];
    const dvti_pooling *p = &how->p;
    const bool back = how->op == DVTI_OP_max_pool2d_data || how->op == DVTI_OP_avg_pool2d_data;
    const int64_t x = how->planes * p->height * p->width;
    const int64_t y = how->planes * p->windows[0] * p->windows[1];
    bounds_call call = bounds_of("pooling", run_pool, how);
    int k;
    for (k = 0; k < 80; k++)
        ones[k] = 1;
    bounds_reads(&call, DVT_F32, x);
    bounds_writes(&call, DVT_F32, back ? x : y, back ? x : y);
    if (back)
        bounds_reads(&call, DVT_F32, y);
    else
        bounds_reads(&call, DVT_F32, (p->windows[1] + 15) / 16 * 16)->set = ones;
    bounds_check(&call);
}

/* Checks windows of size[axis] elements, `step` apart along rows. */
static void check_windows(pool_how *how, int64_t width, int64_t size, int64_t step,
                          int64_t padding) {
    dvti_pooling *p = &how->p;
    int axis;
    memset(p, 0, sizeof *p);
    p->height = size + 3;
    p->width = width;
    p->stride = 1 + width % 3;
    p->step = step;
    for (axis = 0; axis < 2; axis++) {
        p->size[axis] = size;
        p->padding[axis] = padding;
    }
    p->windows[0] = (p->height + 2 * padding - size) / p->stride + 1;
    p->windows[1] = (width + 2 * padding - size) / step + 1;
    p->buffered = DVTI_MAX(width + padding, (p->windows[1] + 15) / 16 * 16 * step + size) + 16;
    p->inside = width % 2 != 0;
    check_pool(how);
}

static void check_pools(void) {
    static const dvti_op ops[] = {DVTI_OP_max_pool2d, DVTI_OP_avg_pool2d, DVTI_OP_max_pool2d_data,
                                  DVTI_OP_avg_pool2d_data};
    const dvti_simd *target[4];
    pool_how how;
    int64_t width, size, step;
    int k, there = 0;
    if (!dvti_simd_targets(target))
        return;
    for (k = 0; k < (int)DVTI_OP_COUNT; k++)
        there += dvti_simd_pool_of(target[0])->of((dvti_op)k) != NULL;
    CHECK_INT(there, 4);
    how.planes = 2;
    for (k = 0; k < 4; k++)
        for (width = 2; width <= 75; width++) {
            how.op = ops[k];
            memset(&how.p, 0, sizeof how.p);
            how.p.height = 2 + width % 4;
            how.p.width = width;
            how.p.windows[0] = how.p.height / 2;
            how.p.windows[1] = width / 2;
            how.p.size[0] = how.p.size[1] = how.p.stride = how.p.step = 2;
            how.p.pairs = true;
            check_pool(&how);
            for (size = 1; k < 2 && size <= DVTI_MIN(width, 4); size++)
                for (step = 1; step <= 2; step++)
                    check_windows(&how, width, size, step, size / 2);
        }
    BOUNDS_SEEN(BOUNDS_POOL, dvti_simd_pool, of);
}

void bounds_of_axes(void) {
    check_all_lanes_reduce();
    bounds_report("reductions");
    check_finish();
    bounds_report("finish");
    check_running();
    bounds_report("running");
    check_rows();
    bounds_report("rows");
    check_pools();
    bounds_report("pools");
}
