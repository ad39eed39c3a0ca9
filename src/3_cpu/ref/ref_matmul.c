/* Matrix product, out (batch..., n, m) = a (batch..., n, k) * b (batch..., k, m): tiles through the packed product of
   ref_gemm.c, and vectors without packing. Every sum runs over k in ascending order. */
#include "3_cpu/dvt_cpu.h"

typedef struct dvti_matmul_job {
    const dvti_launch *launch;
    dvti_gemm plan;
    int64_t n, m, k, batch;
    int64_t tasks, row_tiles, col_tiles; /* col_tiles: pieces of the result, for vectors */
    bool vector;                         /* n or m is 1 */
} dvti_matmul_job;

/* Columns of one task of a vector product, and those summed side by side. */
#define DVTI_MATVEC_TASK 512
#define DVTI_MATVEC_BLOCK 64
#define DVTI_MATVEC_STREAMS 8

static dvti_class dvti_matmul_class(dvt_dtype dtype) {
    return dtype == DVT_F64 ? DVTI_F64 : dvt_dtype_is_float(dtype) ? DVTI_F32 : DVTI_I64;
}

DVTI_FN bool dvti_matmul_is_tall(const dvti_view *a, const dvti_view *b) {
    int i;
    for (i = 0; i < a->ndim - 2; i++)
        if ((b->stride[i] != 0 && b->dim[i] != 1) ||
            a->stride[i] != a->stride[i + 1] * a->dim[i + 1])
            return false;
    return true;
}

static dvti_matmul_job dvti_matmul_plan(const dvti_launch *launch) {
    const dvti_view *out = &launch->out[0], *a = &launch->in[0], *b = &launch->in[1];
    dvti_matmul_job p;
    bool plain = out->dtype == DVT_F32 || out->dtype == DVT_F64 || out->dtype == DVT_I64;
    int i;
    p.launch = launch;
    p.n = out->dim[out->ndim - 2];
    p.m = out->dim[out->ndim - 1];
    p.k = a->dim[a->ndim - 1];
    p.batch = 1;
    for (i = 0; i < out->ndim - 2; i++)
        p.batch *= out->dim[i];
    if (p.batch > 1 && dvti_matmul_is_tall(a, b)) {
        p.n *= p.batch;
        p.batch = 1;
    }
    p.plan = dvti_gemm_plan(dvti_matmul_class(out->dtype), p.n, p.m, p.k);
    p.vector = plain && a->dtype == out->dtype && b->dtype == out->dtype && (p.n == 1 || p.m == 1);
    p.row_tiles = p.vector ? 1 : (p.n + p.plan.rows - 1) / p.plan.rows;
    p.col_tiles = p.vector ? (DVTI_MAX(p.n, p.m) + DVTI_MATVEC_TASK - 1) / DVTI_MATVEC_TASK
                           : (p.m + p.plan.cols - 1) / p.plan.cols;
    p.tasks = p.batch * p.row_tiles * p.col_tiles;
    return p;
}

static double dvti_matmul_terms(const dvti_matmul_job *p) {
    return (double)p->batch * (double)p->n * (double)p->m * (double)p->k;
}

static int64_t dvti_matmul_areas(const dvti_matmul_job *p, int threads) {
    return dvti_task_areas(p->tasks, dvti_matmul_terms(p), threads);
}

DVTI_FN int64_t dvti_ref_matmul_workspace(const dvti_launch *launch, int threads) {
    dvti_matmul_job p = dvti_matmul_plan(launch);
    return p.vector ? 0 : p.plan.bytes * dvti_matmul_areas(&p, threads);
}

/* Where matrix number `batch` starts in a factor, in elements. */
static int64_t dvti_matmul_offset(const dvti_view *out, const dvti_view *in, int64_t batch) {
    int64_t offset = 0;
    int i;
    for (i = out->ndim - 3; i >= 0; i--) {
        offset += batch % out->dim[i] * in->stride[i];
        batch /= out->dim[i];
    }
    return offset;
}

static void *dvti_matmul_at(const dvti_view *view, int64_t offset) {
    return (char *)view->data + offset * dvt_dtype_size(view->dtype);
}

static void dvti_matmul_store(const dvti_matmul_job *p, int64_t rows, int64_t cols, const void *acc,
                              void *row, int64_t at) {
    const dvti_view *out = &p->launch->out[0];
    bool plain = out->dtype == DVT_F32 || p->plan.size == dvt_dtype_size(out->dtype);
    int64_t r, j;
    for (r = 0; r < rows; r++, at += p->m) {
        if (plain) {
            dvti_gemm_row(&p->plan, rows, cols, acc, r, NULL, dvti_matmul_at(out, at));
            continue;
        }
        dvti_gemm_row(&p->plan, rows, cols, acc, r, NULL, row);
        for (j = 0; j < cols; j++)
            if (p->plan.compute == DVTI_F32)
                dvti_store_f64(out->data, out->dtype, at + j, ((const float *)row)[j]);
            else
                dvti_store_i64(out->data, out->dtype, at + j, ((const int64_t *)row)[j]);
    }
}

static void dvti_matmul_tile(void *user, int64_t task, void *area) {
    const dvti_matmul_job *p = (const dvti_matmul_job *)user;
    const dvti_gemm *plan = &p->plan;
    const dvti_view *out = &p->launch->out[0], *a = &p->launch->in[0], *b = &p->launch->in[1];
    int64_t tiles = p->row_tiles * p->col_tiles, batch = task / tiles;
    int64_t i = task % tiles / p->col_tiles * plan->rows, j = task % p->col_tiles * plan->cols;
    int64_t rows = DVTI_MIN(plan->rows, p->n - i), cols = DVTI_MIN(plan->cols, p->m - j), k;
    int64_t a_row = a->stride[a->ndim - 2], a_k = a->stride[a->ndim - 1];
    int64_t b_k = b->stride[b->ndim - 2], b_col = b->stride[b->ndim - 1];
    int64_t a_at = dvti_matmul_offset(out, a, batch) + i * a_row;
    int64_t b_at = dvti_matmul_offset(out, b, batch) + j * b_col;
    char *pa = (char *)area, *pb = pa + plan->b_at, *acc = pa + plan->acc_at;
    if (p->k == 0)
        dvti_gemm_multiply(plan, rows, cols, 0, pa, pb, acc, true);
    for (k = 0; k < p->k; k += plan->depth) {
        int64_t depth = DVTI_MIN(plan->depth, p->k - k);
        dvti_gemm_pack_a(plan, pa, rows, depth, dvti_matmul_at(a, a_at + k * a_k), a->dtype, a_row,
                         a_k);
        dvti_gemm_pack_b(plan, pb, cols, depth, dvti_matmul_at(b, b_at + k * b_k), b->dtype, b_col,
                         b_k);
        dvti_gemm_multiply(plan, rows, cols, depth, pa, pb, acc, k == 0);
    }
    dvti_matmul_store(p, rows, cols, acc, pa + plan->row_at, (batch * p->n + i) * p->m + j);
}

/* y[j] = sum over k of x[k] * w[k][j], for `count` columns j. Neighbours in memory go 64 side by side, along the rows of w. Else
   8 columns at a time, so that the additions of one do not wait for each other; what is left, one by one. */
#define DVTI_MATVEC(T, suffix)                                                                     \
    static void dvti_matvec_##suffix(int64_t count, int64_t depth, const T *x, int64_t x_k,        \
                                     const T *w, int64_t w_k, int64_t w_col, T *y) {               \
        T sum[DVTI_MATVEC_BLOCK], one;                                                             \
        int64_t n, j, k;                                                                           \
        for (; count > 0; count -= n, y += n, w += n * w_col) {                                    \
            n = count >= DVTI_MATVEC_BLOCK && w_col == 1 ? DVTI_MATVEC_BLOCK                       \
                : count >= DVTI_MATVEC_STREAMS           ? DVTI_MATVEC_STREAMS                     \
                                                         : 1;                                                \
            one = 0;                                                                               \
            memset(sum, 0, sizeof sum);                                                            \
            if (n == DVTI_MATVEC_BLOCK)                                                            \
                for (k = 0; k < depth; k++) {                                                      \
                    const T *row = w + k * w_k;                                                    \
                    T factor = x[k * x_k];                                                         \
                    for (j = 0; j < DVTI_MATVEC_BLOCK; j++)                                        \
                        sum[j] += factor * row[j];                                                 \
                }                                                                                  \
            else if (n == DVTI_MATVEC_STREAMS)                                                     \
                for (k = 0; k < depth; k++) {                                                      \
                    const T *row = w + k * w_k;                                                    \
                    T factor = x[k * x_k];                                                         \
                    for (j = 0; j < DVTI_MATVEC_STREAMS; j++)                                      \
                        sum[j] += factor * row[j * w_col];                                         \
                }                                                                                  \
            else                                                                                   \
                for (k = 0; k < depth; k++)                                                        \
                    one += x[k * x_k] * w[k * w_k];                                                \
            sum[0] = n == 1 ? one : sum[0];                                                        \
            memcpy(y, sum, (size_t)n * sizeof(T));                                                 \
        }                                                                                          \
    }

DVTI_MATVEC(float, f32)
DVTI_MATVEC(double, f64)
DVTI_MATVEC(uint64_t, i64)

#undef DVTI_MATVEC

/* Of a column, the transposed product: its rows are then the columns. */
static void dvti_matmul_vector(void *user, int64_t task, void *area) {
    const dvti_matmul_job *p = (const dvti_matmul_job *)user;
    const dvti_view *out = &p->launch->out[0], *a = &p->launch->in[0], *b = &p->launch->in[1];
    const dvti_view *x = p->n == 1 ? a : b, *w = p->n == 1 ? b : a;
    int x_axis = p->n == 1 ? x->ndim - 1 : x->ndim - 2,
        w_axis = p->n == 1 ? w->ndim - 2 : w->ndim - 1;
    int64_t length = DVTI_MAX(p->n, p->m), batch = task / p->col_tiles;
    int64_t j = task % p->col_tiles * DVTI_MATVEC_TASK;
    int64_t count = DVTI_MIN(DVTI_MATVEC_TASK, length - j);
    int64_t x_k = x->stride[x_axis], w_k = w->stride[w_axis];
    int64_t w_col = w->stride[2 * w->ndim - 3 - w_axis];
    const void *from = dvti_matmul_at(x, dvti_matmul_offset(out, x, batch));
    const void *with = dvti_matmul_at(w, dvti_matmul_offset(out, w, batch) + j * w_col);
    void *to = dvti_matmul_at(out, batch * length + j);
    (void)area;
    if (out->dtype == DVT_F32)
        dvti_matvec_f32(count, p->k, (const float *)from, x_k, (const float *)with, w_k, w_col,
                        (float *)to);
    else if (out->dtype == DVT_F64)
        dvti_matvec_f64(count, p->k, (const double *)from, x_k, (const double *)with, w_k, w_col,
                        (double *)to);
    else
        dvti_matvec_i64(count, p->k, (const uint64_t *)from, x_k, (const uint64_t *)with, w_k,
                        w_col, (uint64_t *)to);
}

#undef DVTI_MATVEC_TASK
#undef DVTI_MATVEC_BLOCK
#undef DVTI_MATVEC_STREAMS

DVTI_FN void dvti_ref_matmul(const dvti_launch *launch) {
    dvti_matmul_job p = dvti_matmul_plan(launch);
    if (p.vector)
        dvti_run_tasks(p.tasks, dvti_matmul_terms(&p), NULL,
                       dvti_matmul_areas(&p, dvti_parallel_width()), 0, dvti_matmul_vector, &p);
    else
        dvti_run_tasks(p.tasks, dvti_matmul_terms(&p), launch->workspace,
                       launch->workspace_bytes / p.plan.bytes, p.plan.bytes, dvti_matmul_tile, &p);
}
