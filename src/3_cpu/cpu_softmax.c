/* softmax, log_softmax and layer normalisation by a tier's loop, many rows per call. Rows of 16-bit floats, and rows whose elements do not lie side by side, are
   copied to the stack when they are short enough. */
#include "3_cpu/simd/dvt_simd.h"

#define DVTI_SOFTMAX_COPY 4096 /* elements of such rows at most */
#define DVTI_SOFTMAX_TILE 256

typedef struct dvti_soft_plan {
    const dvti_simd *simd;
    dvti_view in, out; /* all axes but the last */
    int64_t n, in_step, out_step;
    bool direct, logarithm;
} dvti_soft_plan;

/* A row from or to floats. */
static void dvti_soft_load(const dvti_soft_plan *plan, const void *x, float *row) {
    if (plan->in_step != 1 || !plan->simd->load_row(x, plan->in.dtype, plan->n, row))
        dvti_load_row_f32(x, plan->in.dtype, plan->in_step, plan->n, row);
}

static void dvti_soft_store(const dvti_soft_plan *plan, void *y, const float *row) {
    if (plan->out_step != 1 || !plan->simd->store_row(y, plan->out.dtype, plan->n, row))
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
    float block[DVTI_SOFTMAX_COPY];
    int64_t k, some, r;
    for (k = begin; k < end; k += some) {
        some = DVTI_MIN(plan->in.dim[in] - from.index[in], plan->out.dim[out] - to.index[out]);
        some = DVTI_MIN(some, end - k);
        if (plan->direct) {
            plan->simd->softmax((const float *)dvti_soft_at(&plan->in, &from, 0),
                                plan->in.stride[in], (float *)dvti_soft_at(&plan->out, &to, 0),
                                plan->out.stride[out], some, n, plan->logarithm);
        } else {
            some = DVTI_MIN(some, DVTI_SOFTMAX_COPY / n);
            for (r = 0; r < some; r++)
                dvti_soft_load(plan, dvti_soft_at(&plan->in, &from, r), block + r * n);
            plan->simd->softmax(block, n, block, n, some, n, plan->logarithm);
            for (r = 0; r < some; r++)
                dvti_soft_store(plan, dvti_soft_at(&plan->out, &to, r), block + r * n);
        }
        if (k + some < end) {
            dvti_cursor_advance(&from, &plan->in, some);
            dvti_cursor_advance(&to, &plan->out, some);
        }
    }
}

/* Neighbouring ones side by side: a work item is up to DVTI_SOFTMAX_TILE of them. */
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
        plan->simd->softmax_columns((const float *)dvti_soft_at(&plan->in, &from, 0), plan->in_step,
                                    (float *)dvti_soft_at(&plan->out, &to, 0), plan->out_step,
                                    plan->n, DVTI_MIN(width - column, DVTI_SOFTMAX_TILE),
                                    plan->logarithm);
    }
}

/* Neighbours lie side by side, and closer than the elements of one. */
static bool dvti_soft_side_by_side(const dvti_soft_plan *plan) {
    const int in = plan->in.ndim - 1, out = plan->out.ndim - 1;
    return plan->in.dtype == DVT_F32 && plan->in_step != 1 && plan->in.stride[in] == 1 &&
           plan->out.stride[out] == 1 && plan->in.dim[in] == plan->out.dim[out] &&
           plan->in.dim[in] >= 8;
}

/* Takes the last axis away and returns its step. */
static int64_t dvti_soft_split(const dvti_view *view, dvti_view *rows) {
    *rows = *view;
    rows->ndim = view->ndim - 1;
    dvti_merge_axes(rows);
    return view->stride[view->ndim - 1];
}

DVTI_FN bool dvti_fast_softmax(const dvti_launch *launch, const dvti_simd *simd) {
    const dvti_view *in = &launch->in[0], *out = &launch->out[0];
    dvt_dtype dtype = in->dtype;
    dvti_soft_plan plan;
    plan.n = in->dim[in->ndim - 1];
    plan.in_step = dvti_soft_split(in, &plan.in);
    plan.out_step = dvti_soft_split(out, &plan.out);
    plan.direct = dtype == DVT_F32 && (plan.n == 1 || (plan.in_step == 1 && plan.out_step == 1));
    plan.simd = simd;
    plan.logarithm = launch->op == DVTI_OP_log_softmax;
    if (dtype != out->dtype || plan.n == 0 ||
        (dtype != DVT_F32 && dtype != DVT_F16 && dtype != DVT_BF16))
        return false;
    if (!plan.direct && dvti_soft_side_by_side(&plan)) {
        int64_t width = plan.in.dim[plan.in.ndim - 1];
        dvti_parallel_for(dvti_view_size(&plan.in) / width * dvti_soft_across(&plan),
                          0.4 * (double)(plan.n * DVTI_MIN(width, DVTI_SOFTMAX_TILE)),
                          dvti_soft_tiles, &plan);
        return true;
    }
    if (!plan.direct && plan.n > DVTI_SOFTMAX_COPY)
        return false;
    dvti_parallel_for(dvti_view_size(&plan.in), 15 + (plan.direct ? 0.2 : 0.5) * (double)plan.n,
                      dvti_soft_rows, &plan);
    return true;
}

/* ---- rows with mean 0 and variance 1 ---- */
typedef struct dvti_normal_plan {
    const dvti_launch *launch;
    const dvti_simd *simd;
    int64_t n;
} dvti_normal_plan;

static void dvti_normal_rows(void *user, int64_t begin, int64_t end) {
    const dvti_normal_plan *plan = (const dvti_normal_plan *)user;
    const dvti_launch *launch = plan->launch;
    const float *x = (const float *)launch->in[0].data;
    float *y = (float *)launch->out[0].data;
    int64_t k;
    for (k = begin * plan->n; k < end * plan->n; k += plan->n)
        plan->simd->normalize(x + k, y + k, plan->n, (const float *)launch->in[1].data,
                              (const float *)launch->in[2].data, (float)launch->f[0]);
}

DVTI_FN bool dvti_fast_normalize(const dvti_launch *launch, const dvti_simd *simd) {
    const dvti_view *in = &launch->in[0];
    dvti_normal_plan plan;
    plan.launch = launch;
    plan.simd = simd;
    plan.n = in->dim[in->ndim - 1];
    dvti_parallel_for(dvti_view_size(in) / plan.n, 20 + 0.3 * (double)plan.n, dvti_normal_rows,
                      &plan);
    return true;
}

#undef DVTI_SOFTMAX_COPY
#undef DVTI_SOFTMAX_TILE
