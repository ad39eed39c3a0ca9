/* softmax, log_softmax and layer norm by the kernels of an ISA target, many rows per call; of
   float64 composed (cpu_softmax64.c). Rows of 16-bit floats, and rows whose elements are not
   contiguous, are copied to the stack when they are short enough. The oracle computes what is left:
   other such rows, rows of integers. No algorithm needs workspace, so `run` plans. */
#include "3_cpu/simd/dvt_simd.h"

#define DVTI_SOFTMAX_COPY 2048 /* elements of such rows at most; of floats twice as many */
#define DVTI_SOFTMAX_TILE 256

typedef struct dvti_soft_plan {
    const dvti_simd *simd;
    dvti_view in, out; /* all axes but the last */
    int64_t n, in_step, out_step;
    int64_t copy; /* elements that may be copied at a time */
    bool direct, logarithm, wide;
} dvti_soft_plan;

static void dvti_soft_call(const dvti_soft_plan *plan, const void *x, int64_t x_step, void *y,
                           int64_t y_step, int64_t rows) {
    if (plan->wide)
        dvti_softmax64(plan->simd, (const double *)x, x_step, (double *)y, y_step, rows, plan->n,
                       plan->logarithm);
    else
        dvti_simd_softmax_of(plan->simd)
            ->softmax((const float *)x, x_step, (float *)y, y_step, rows, plan->n, plan->logarithm);
}

/* A row from or to floats. */
static void dvti_soft_load(const dvti_soft_plan *plan, const void *x, double *block, int64_t at) {
    float *row = (float *)(void *)block + at;
    if (plan->wide)
        dvti_load_row_f64(x, DVT_F64, plan->in_step, plan->n, block + at);
    else if (plan->in_step != 1 || !plan->simd->load_row(x, plan->in.dtype, plan->n, row))
        dvti_load_row_f32(x, plan->in.dtype, plan->in_step, plan->n, row);
}

static void dvti_soft_store(const dvti_soft_plan *plan, void *y, const double *block, int64_t at) {
    const float *row = (const float *)(const void *)block + at;
    if (plan->wide)
        dvti_store_row_f64(y, DVT_F64, plan->out_step, plan->n, block + at);
    else if (plan->out_step != 1 || !plan->simd->store_row(y, plan->out.dtype, plan->n, row))
        dvti_store_row_f32(y, plan->out.dtype, plan->out_step, plan->n, row);
}

static void *dvti_soft_at(const dvti_view *rows, const dvti_cursor *cursor, int64_t further) {
    return (char *)rows->data +
           (cursor->at + further * rows->stride[rows->ndim - 1]) * dvt_dtype_size(rows->dtype);
}

static void dvti_soft_rows(void *user, int64_t begin, int64_t end) {
    const dvti_soft_plan *plan = (const dvti_soft_plan *)user;
    const int in = plan->in.ndim - 1, out = plan->out.ndim - 1;
    const int64_t n = plan->n;
    dvti_cursor from = dvti_cursor_at(&plan->in, begin), to = dvti_cursor_at(&plan->out, begin);
    double block[DVTI_SOFTMAX_COPY];
    int64_t k, some, r;
    for (k = begin; k < end; k += some) {
        some = DVTI_MIN(plan->in.dim[in] - from.index[in], plan->out.dim[out] - to.index[out]);
        some = DVTI_MIN(some, end - k);
        if (plan->direct) {
            dvti_soft_call(plan, dvti_soft_at(&plan->in, &from, 0), plan->in.stride[in],
                           dvti_soft_at(&plan->out, &to, 0), plan->out.stride[out], some);
        } else {
            some = DVTI_MIN(some, plan->copy / n);
            for (r = 0; r < some; r++)
                dvti_soft_load(plan, dvti_soft_at(&plan->in, &from, r), block, r * n);
            dvti_soft_call(plan, block, n, block, n, some);
            for (r = 0; r < some; r++)
                dvti_soft_store(plan, dvti_soft_at(&plan->out, &to, r), block, r * n);
        }
        if (k + some < end) {
            dvti_cursor_advance(&from, &plan->in, some);
            dvti_cursor_advance(&to, &plan->out, some);
        }
    }
}

/* How many work items of up to DVTI_SOFTMAX_TILE neighboring rows make a width. */
static int64_t dvti_soft_across(const dvti_soft_plan *plan) {
    int64_t width = plan->in.dim[plan->in.ndim - 1];
    return (width + DVTI_SOFTMAX_TILE - 1) / DVTI_SOFTMAX_TILE;
}

static void dvti_soft_tiles(void *user, int64_t begin, int64_t end) {
    const dvti_soft_plan *plan = (const dvti_soft_plan *)user;
    const int64_t width = plan->in.dim[plan->in.ndim - 1], across = dvti_soft_across(plan);
    int64_t tile;
    for (tile = begin; tile < end; tile++) {
        int64_t column = tile % across * DVTI_SOFTMAX_TILE, first = tile / across * width + column;
        dvti_cursor from = dvti_cursor_at(&plan->in, first), to = dvti_cursor_at(&plan->out, first);
        const void *x = dvti_soft_at(&plan->in, &from, 0);
        void *y = dvti_soft_at(&plan->out, &to, 0);
        const int64_t some = DVTI_MIN(width - column, DVTI_SOFTMAX_TILE);
        if (plan->wide)
            dvti_softmax64_columns(plan->simd, (const double *)x, plan->in_step, (double *)y,
                                   plan->out_step, plan->n, some, plan->logarithm);
        else
            dvti_simd_softmax_of(plan->simd)
                ->softmax_columns((const float *)x, plan->in_step, (float *)y, plan->out_step,
                                  plan->n, some, plan->logarithm);
    }
}

/* Returns whether neighboring rows are contiguous, and closer in memory than the elements of one
   row. */
static bool dvti_soft_side_by_side(const dvti_soft_plan *plan) {
    const int in = plan->in.ndim - 1, out = plan->out.ndim - 1;
    return (plan->in.dtype == DVT_F32 || plan->wide) && plan->in_step != 1 &&
           plan->in.stride[in] == 1 && plan->out.stride[out] == 1 &&
           plan->in.dim[in] == plan->out.dim[out] && plan->in.dim[in] >= 8;
}

/* Removes the last axis and returns its step. */
static int64_t dvti_soft_split(const dvti_view *view, dvti_view *rows) {
    *rows = *view;
    rows->ndim = view->ndim - 1;
    dvti_merge_axes(rows);
    return view->stride[view->ndim - 1];
}

static bool dvti_softmax_by_kernel(const dvti_launch *launch, const dvti_simd *simd) {
    const dvti_view *in = &launch->in[0], *out = &launch->out[0];
    dvt_dtype dtype = in->dtype;
    dvti_soft_plan plan;
    plan.n = in->dim[in->ndim - 1];
    plan.in_step = dvti_soft_split(in, &plan.in);
    plan.out_step = dvti_soft_split(out, &plan.out);
    plan.wide = dtype == DVT_F64;
    plan.copy = plan.wide ? DVTI_SOFTMAX_COPY : 2 * DVTI_SOFTMAX_COPY;
    plan.direct = (dtype == DVT_F32 || plan.wide) &&
                  (plan.n == 1 || (plan.in_step == 1 && plan.out_step == 1));
    plan.simd = simd;
    plan.logarithm = launch->op == DVTI_OP_log_softmax;
    if (dtype != out->dtype || plan.n == 0 ||
        (dtype != DVT_F32 && dtype != DVT_F16 && dtype != DVT_BF16 && !plan.wide))
        return false;
    if (!plan.direct && dvti_soft_side_by_side(&plan)) {
        int64_t width = plan.in.dim[plan.in.ndim - 1];
        dvti_parallel_for(dvti_view_size(&plan.in) / width * dvti_soft_across(&plan),
                          (plan.wide ? 1.2 : 0.4) *
                              (double)(plan.n * DVTI_MIN(width, DVTI_SOFTMAX_TILE)),
                          dvti_soft_tiles, &plan);
        return true;
    }
    if (!plan.direct && plan.n > plan.copy)
        return false;
    dvti_parallel_for(dvti_view_size(&plan.in),
                      15 + (plan.wide     ? 1.
                            : plan.direct ? 0.2
                                          : 0.5) *
                               (double)plan.n,
                      dvti_soft_rows, &plan);
    return true;
}

static int64_t dvti_soft_row_count(const dvti_launch *launch) {
    dvti_view rows = launch->in[0];
    rows.ndim--;
    return dvti_view_size(&rows);
}

static void dvti_soft_oracle_rows(void *user, int64_t begin, int64_t end) {
    dvti_oracle_softmax((const dvti_launch *)user, begin, end);
}

DVTI_FN void dvti_cpu_softmax(const dvti_launch *launch) {
    const dvti_simd *simd = dvti_simd_now();
    const int64_t n = launch->in[0].dim[launch->in[0].ndim - 1];
    if (!simd)
        dvti_oracle_softmax(launch, 0, dvti_soft_row_count(launch));
    else if (!dvti_softmax_by_kernel(launch, simd))
        dvti_parallel_for(dvti_soft_row_count(launch), 40 * (double)(n + 1), dvti_soft_oracle_rows,
                          (void *)(uintptr_t)launch);
}

/* ---- layer norm ---- */
typedef struct dvti_layer_norm_plan {
    const dvti_launch *launch;
    const dvti_simd *simd;
    int64_t n;
} dvti_layer_norm_plan;

static void dvti_layer_norm_rows(void *user, int64_t begin, int64_t end) {
    const dvti_layer_norm_plan *plan = (const dvti_layer_norm_plan *)user;
    const dvti_launch *launch = plan->launch;
    const float *x = (const float *)launch->in[0].data;
    float *y = (float *)launch->out[0].data;
    int64_t k;
    for (k = begin * plan->n; k < end * plan->n; k += plan->n)
        dvti_simd_softmax_of(plan->simd)
            ->layer_norm(x + k, y + k, plan->n, (const float *)launch->in[1].data,
                         (const float *)launch->in[2].data, (float)launch->f[0]);
}

DVTI_FN void dvti_cpu_layer_norm(const dvti_launch *launch) {
    const dvti_view *in = &launch->in[0];
    dvti_layer_norm_plan plan;
    int64_t rows;
    plan.launch = launch;
    plan.simd = dvti_simd_now();
    plan.n = in->dim[in->ndim - 1];
    rows = dvti_view_size(in) / plan.n;
    if (plan.simd)
        dvti_parallel_for(rows, 20 + 0.3 * (double)plan.n, dvti_layer_norm_rows, &plan);
    else
        dvti_oracle_layer_norm(launch, 0, rows);
}

#undef DVTI_SOFTMAX_COPY
#undef DVTI_SOFTMAX_TILE
