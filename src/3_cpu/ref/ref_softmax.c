/* softmax and log_softmax along the last axis, in float64 and rounded once. Three passes over a row: its maximum, the sum of the
   exponentials below it, the values. */
#include "3_cpu/dvt_cpu.h"

typedef struct dvti_softmax_plan {
    bool logarithm;
    dvti_view rows_in, rows_out; /* all axes but the last */
    dvti_view row_in, row_out;   /* the last axis */
    int64_t n;
} dvti_softmax_plan;

/* Splits a view into its rows and one row. */
static void dvti_softmax_split(const dvti_view *view, dvti_view *rows, dvti_view *row) {
    *rows = *row = *view;
    rows->ndim = view->ndim - 1;
    row->ndim = 1;
    row->dim[0] = view->dim[view->ndim - 1];
    row->stride[0] = view->stride[view->ndim - 1];
    dvti_merge_axes(rows);
    dvti_merge_axes(row);
}

static dvti_view dvti_softmax_row(const dvti_view *rows, const dvti_view *row, int64_t which) {
    dvti_view view = *row;
    view.data = (char *)view.data + dvti_cursor_at(rows, which).at * dvt_dtype_size(rows->dtype);
    return view;
}

/* The maximum without `largest`, else the sum of exp(x - largest). */
static double dvti_softmax_scan(const dvti_view *row, int64_t n, const double *largest) {
    double x[DVTI_BLOCK], result = largest ? 0 : -(double)INFINITY;
    int64_t at, k, m;
    for (at = 0; at < n; at += m) {
        m = DVTI_MIN(n - at, DVTI_BLOCK);
        dvti_load_block(row, at, m, DVTI_F64, x);
        for (k = 0; k < m; k++)
            if (largest)
                result += exp(x[k] - *largest);
            else if (x[k] > result || x[k] != x[k])
                result = x[k];
    }
    return result;
}

static void dvti_softmax_rows(void *user, int64_t begin, int64_t end) {
    const dvti_softmax_plan *plan = (const dvti_softmax_plan *)user;
    double x[DVTI_BLOCK], largest, sum, log_sum;
    int64_t row, at, k, m;
    for (row = begin; row < end; row++) {
        dvti_view in = dvti_softmax_row(&plan->rows_in, &plan->row_in, row);
        dvti_view out = dvti_softmax_row(&plan->rows_out, &plan->row_out, row);
        largest = dvti_softmax_scan(&in, plan->n, NULL);
        sum = dvti_softmax_scan(&in, plan->n, &largest);
        log_sum = log(sum);
        for (at = 0; at < plan->n; at += m) {
            m = DVTI_MIN(plan->n - at, DVTI_BLOCK);
            dvti_load_block(&in, at, m, DVTI_F64, x);
            for (k = 0; k < m; k++)
                /* largest + log_sum would lose log_sum beside a huge value */
                x[k] = plan->logarithm ? x[k] - largest - log_sum : exp(x[k] - largest) / sum;
            dvti_store_block(&out, at, m, DVTI_F64, x);
        }
    }
}

/* ---- rows of floats with mean 0 and variance 1 ---- */
static void dvti_normalize_rows(void *user, int64_t begin, int64_t end) {
    const dvti_launch *launch = (const dvti_launch *)user;
    const int64_t n = launch->in[0].dim[launch->in[0].ndim - 1];
    const float *gamma = (const float *)launch->in[1].data,
                *beta = (const float *)launch->in[2].data;
    int64_t row, k;
    for (row = begin; row < end; row++) {
        const float *x = (const float *)launch->in[0].data + row * n;
        float *y = (float *)launch->out[0].data + row * n, mean, scale;
        double sum = 0;
        for (k = 0; k < n; k++)
            sum += x[k];
        mean = (float)(sum / (double)n);
        for (k = 0, sum = 0; k < n; k++) {
            float d = x[k] - mean;
            sum += (double)d * d;
        }
        scale = 1 / sqrtf((float)(sum / (double)n) + (float)launch->f[0]);
        for (k = 0; k < n; k++) {
            float v = (x[k] - mean) * scale;
            v = gamma ? v * gamma[k] : v;
            y[k] = beta ? v + beta[k] : v;
        }
    }
}

DVTI_FN void dvti_ref_layer_norm(const dvti_launch *launch) {
    int64_t n = launch->in[0].dim[launch->in[0].ndim - 1];
    dvti_parallel_for(dvti_view_size(&launch->in[0]) / n, 5 * (double)n, dvti_normalize_rows,
                      (void *)(uintptr_t)launch);
}

DVTI_FN void dvti_ref_softmax(const dvti_launch *launch) {
    dvti_softmax_plan plan;
    plan.logarithm = launch->op == DVTI_OP_log_softmax;
    dvti_softmax_split(&launch->in[0], &plan.rows_in, &plan.row_in);
    dvti_softmax_split(&launch->out[0], &plan.rows_out, &plan.row_out);
    plan.n = launch->in[0].dim[launch->in[0].ndim - 1];
    dvti_parallel_for(dvti_view_size(&plan.rows_in), 5 * (double)(plan.n + 1), dvti_softmax_rows,
                      &plan);
}
