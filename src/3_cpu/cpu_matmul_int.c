/* Products of integers. Products of bytes run in the float kernels: floats hold the sums of one
   step exactly, and int32 accumulators add the steps. All others run in int64: products with a
   vector directly, the rest by the packed product of cpu_gemm_int.c. */
#include "3_cpu/cpu_matmul.h"

/* ---- bytes: int32 accumulators ---- */
/* Adds 16 at a time, so that compilers vectorize the loop. */
DVTI_FN void dvti_mm_add_int32(const char *step, char *sums, int64_t n, bool first) {
    const float *from = (const float *)(const void *)step;
    uint32_t *to = (uint32_t *)(void *)sums;
    int64_t i;
    int j;
    if (first)
        memset(to, 0, (size_t)n * sizeof *to);
    for (i = 0; i + 16 <= n; i += 16)
        for (j = 0; j < 16; j++)
            to[i + j] += (uint32_t)(int32_t)from[i + j];
    for (; i < n; i++)
        to[i] += (uint32_t)(int32_t)from[i];
}

DVTI_FN void dvti_mm_store_int32(const dvti_mm *p, const char *sums, int64_t rows, int64_t cols,
                                 char *to) {
    const dvt_dtype dtype = p->launch->out[0].dtype;
    const int64_t row = p->m * dvt_dtype_size(dtype);
    const uint32_t *sum = (const uint32_t *)(const void *)sums;
    int64_t r, j;
    for (r = 0; r < rows; r++, to += row, sum += cols) {
        if (dtype == DVT_I32)
            memcpy(to, sum, (size_t)cols * sizeof *sum);
        else
            for (j = 0; j < cols; j++)
                to[j] = (char)(unsigned char)sum[j];
    }
}

/* ---- all other integers: int64 ---- */
/* Columns of one task of a matrix-vector product, and of those the columns summed at once: BLOCK if
   they are contiguous, else STREAMS. */
#define DVTI_MATVEC_TASK 512
#define DVTI_MATVEC_BLOCK 64
#define DVTI_MATVEC_STREAMS 8

DVTI_FN bool dvti_matmul_is_tall(const dvti_view *a, const dvti_view *b) {
    int i;
    for (i = 0; i < a->ndim - 2; i++)
        if ((b->stride[i] != 0 && b->dim[i] != 1) ||
            a->stride[i] != a->stride[i + 1] * a->dim[i + 1])
            return false;
    return true;
}

static void dvti_int_cut(dvti_mm_integers *p, const dvti_launch *launch) {
    const dvti_view *out = &launch->out[0], *a = &launch->in[0], *b = &launch->in[1];
    int i;
    p->launch = launch;
    p->n = out->dim[out->ndim - 2];
    p->m = out->dim[out->ndim - 1];
    p->k = a->dim[a->ndim - 1];
    p->batch = 1;
    for (i = 0; i < out->ndim - 2; i++)
        p->batch *= out->dim[i];
    if (p->batch > 1 && dvti_matmul_is_tall(a, b)) {
        p->n *= p->batch;
        p->batch = 1;
    }
    p->plan = dvti_gemm_plan(p->n, p->m, p->k);
    p->vector = out->dtype == DVT_I64 && a->dtype == out->dtype && b->dtype == out->dtype &&
                (p->n == 1 || p->m == 1);
    p->row_tiles = p->vector ? 1 : (p->n + p->plan.rows - 1) / p->plan.rows;
    p->col_tiles = p->vector ? (DVTI_MAX(p->n, p->m) + DVTI_MATVEC_TASK - 1) / DVTI_MATVEC_TASK
                             : (p->m + p->plan.cols - 1) / p->plan.cols;
    p->tasks = p->batch * p->row_tiles * p->col_tiles;
}

static double dvti_int_multiply_adds(const dvti_mm_integers *p) {
    return (double)p->batch * (double)p->n * (double)p->m * (double)p->k;
}

DVTI_FN int64_t dvti_mm_plan_integers(dvti_mm_integers *p, const dvti_launch *launch, int threads) {
    double multiply_adds;
    dvti_int_cut(p, launch);
    multiply_adds = dvti_int_multiply_adds(p);
    if (multiply_adds * DVTI_MULTIPLY_ADD_NS < DVTI_PARALLEL_NS)
        threads = 1; /* a small product: the number of threads does not matter */
    p->areas = dvti_task_areas(p->tasks, multiply_adds, dvti_cpu_threads(threads));
    return p->vector ? 0 : p->plan.bytes * p->areas;
}

static void *dvti_int_at(const dvti_view *view, int64_t offset) {
    return (char *)view->data + offset * dvt_dtype_size(view->dtype);
}

static void dvti_int_store(const dvti_mm_integers *p, int64_t rows, int64_t cols,
                           const uint64_t *acc, uint64_t *row, int64_t at) {
    const dvti_view *out = &p->launch->out[0];
    int64_t r;
    for (r = 0; r < rows; r++, at += p->m) {
        if (out->dtype == DVT_I64) {
            dvti_gemm_row(rows, cols, acc, r, (uint64_t *)dvti_int_at(out, at));
            continue;
        }
        dvti_gemm_row(rows, cols, acc, r, row);
        dvti_store_row_i64(dvti_int_at(out, at), out->dtype, 1, cols,
                           (const int64_t *)(const void *)row);
    }
}

static void *dvti_int_offset(void *area, int64_t bytes) {
    return (char *)area + bytes;
}

static void dvti_int_tile(void *user, int64_t task, void *area) {
    const dvti_mm_integers *p = (const dvti_mm_integers *)user;
    const dvti_gemm *plan = &p->plan;
    const dvti_view *out = &p->launch->out[0], *a = &p->launch->in[0], *b = &p->launch->in[1];
    int64_t tiles = p->row_tiles * p->col_tiles, batch = task / tiles;
    int64_t i = task % tiles / p->col_tiles * plan->rows, j = task % p->col_tiles * plan->cols;
    int64_t rows = DVTI_MIN(plan->rows, p->n - i), cols = DVTI_MIN(plan->cols, p->m - j), k;
    int64_t a_row = a->stride[a->ndim - 2], a_k = a->stride[a->ndim - 1];
    int64_t b_k = b->stride[b->ndim - 2], b_col = b->stride[b->ndim - 1];
    int64_t a_at = dvti_mm_offset(out, a, batch) + i * a_row;
    int64_t b_at = dvti_mm_offset(out, b, batch) + j * b_col;
    uint64_t *pa = (uint64_t *)area;
    uint64_t *pb = (uint64_t *)dvti_int_offset(area, plan->b_at);
    uint64_t *acc = (uint64_t *)dvti_int_offset(area, plan->acc_at);
    if (p->k == 0)
        dvti_gemm_multiply(plan, rows, cols, 0, pa, pb, acc, true);
    for (k = 0; k < p->k; k += plan->depth) {
        int64_t depth = DVTI_MIN(plan->depth, p->k - k);
        dvti_gemm_pack_a(pa, rows, depth, dvti_int_at(a, a_at + k * a_k), a->dtype, a_row, a_k);
        dvti_gemm_pack_b(plan, pb, cols, depth, dvti_int_at(b, b_at + k * b_k), b->dtype, b_col,
                         b_k);
        dvti_gemm_multiply(plan, rows, cols, depth, pa, pb, acc, k == 0);
    }
    dvti_int_store(p, rows, cols, acc, (uint64_t *)dvti_int_offset(area, plan->row_at),
                   (batch * p->n + i) * p->m + j);
}

/* Computes y[j] = sum over k of x[k] * w[k][j] for `count` columns j. Contiguous columns are summed
   64 at a time, along the rows of w. Others are summed 8 at a time, which hides the latency of
   additions. The remaining ones are summed singly. */
static void dvti_matvec(int64_t count, int64_t depth, const uint64_t *x, int64_t x_k,
                        const uint64_t *w, int64_t w_k, int64_t w_col, uint64_t *y) {
    uint64_t sum[DVTI_MATVEC_BLOCK], one;
    int64_t n, j, k;
    for (; count > 0; count -= n, y += n, w += n * w_col) {
        n = count >= DVTI_MATVEC_BLOCK && w_col == 1 ? DVTI_MATVEC_BLOCK
            : count >= DVTI_MATVEC_STREAMS           ? DVTI_MATVEC_STREAMS
                                                     : 1;
        one = 0;
        memset(sum, 0, sizeof sum);
        if (n == DVTI_MATVEC_BLOCK)
            for (k = 0; k < depth; k++) {
                const uint64_t *row = w + k * w_k;
                uint64_t factor = x[k * x_k];
                for (j = 0; j < DVTI_MATVEC_BLOCK; j++)
                    sum[j] += factor * row[j];
            }
        else if (n == DVTI_MATVEC_STREAMS)
            for (k = 0; k < depth; k++) {
                const uint64_t *row = w + k * w_k;
                uint64_t factor = x[k * x_k];
                for (j = 0; j < DVTI_MATVEC_STREAMS; j++)
                    sum[j] += factor * row[j * w_col];
            }
        else
            for (k = 0; k < depth; k++)
                one += x[k * x_k] * w[k * w_k];
        sum[0] = n == 1 ? one : sum[0];
        memcpy(y, sum, (size_t)n * sizeof(uint64_t));
    }
}

/* Computes a task of a matrix-vector product. A column is computed as the transposed product: b is
   x, and the rows of a are the columns of w. */
static void dvti_int_vector(void *user, int64_t task, void *area) {
    const dvti_mm_integers *p = (const dvti_mm_integers *)user;
    const dvti_view *out = &p->launch->out[0], *a = &p->launch->in[0], *b = &p->launch->in[1];
    const dvti_view *x = p->n == 1 ? a : b, *w = p->n == 1 ? b : a;
    int x_axis = p->n == 1 ? x->ndim - 1 : x->ndim - 2,
        w_axis = p->n == 1 ? w->ndim - 2 : w->ndim - 1;
    int64_t length = DVTI_MAX(p->n, p->m), batch = task / p->col_tiles;
    int64_t j = task % p->col_tiles * DVTI_MATVEC_TASK;
    int64_t count = DVTI_MIN(DVTI_MATVEC_TASK, length - j);
    int64_t x_k = x->stride[x_axis], w_k = w->stride[w_axis];
    int64_t w_col = w->stride[2 * w->ndim - 3 - w_axis];
    const void *from = dvti_int_at(x, dvti_mm_offset(out, x, batch));
    const void *with = dvti_int_at(w, dvti_mm_offset(out, w, batch) + j * w_col);
    void *to = dvti_int_at(out, batch * length + j);
    (void)area;
    dvti_matvec(count, p->k, (const uint64_t *)from, x_k, (const uint64_t *)with, w_k, w_col,
                (uint64_t *)to);
}

#undef DVTI_MATVEC_TASK
#undef DVTI_MATVEC_BLOCK
#undef DVTI_MATVEC_STREAMS

DVTI_FN void dvti_mm_run_integers(const dvti_mm_integers *plan, const dvti_launch *launch) {
    dvti_mm_integers p = *plan;
    p.launch = launch;
    dvti_run_tasks(p.tasks, dvti_int_multiply_adds(&p), launch->workspace, p.areas,
                   p.vector ? 0 : p.plan.bytes, p.vector ? dvti_int_vector : dvti_int_tile, &p);
}
