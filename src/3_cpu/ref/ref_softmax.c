/* The oracles of softmax, log_softmax and layer norm, row by row. Softmax in float64, rounded once:
   the maximum of a row, the sum of the exponentials relative to it, the values. */
#include "3_cpu/dvt_cpu.h"

/* Returns row number `row` along the last axis. */
static dvti_view dvti_oracle_row(const dvti_view *view, int64_t row) {
    dvti_view rows = *view, one = *view;
    const int last = view->ndim - 1;
    rows.ndim = last;
    dvti_merge_axes(&rows);
    one.ndim = 1;
    one.dim[0] = view->dim[last];
    one.stride[0] = view->stride[last];
    one.data = (char *)view->data + dvti_cursor_at(&rows, row).at * dvt_dtype_size(view->dtype);
    return one;
}

static double dvti_oracle_element(const dvti_view *row, int64_t k) {
    return dvti_load_f64(row->data, row->dtype, k * row->stride[0]);
}

DVTI_FN void dvti_oracle_softmax(const dvti_launch *launch, int64_t begin, int64_t end) {
    int64_t r, k;
    for (r = begin; r < end; r++) {
        const dvti_view in = dvti_oracle_row(&launch->in[0], r);
        const dvti_view out = dvti_oracle_row(&launch->out[0], r);
        double most = -(double)INFINITY, sum = 0, x;
        for (k = 0; k < in.dim[0]; k++)
            most = dvti_f64_larger(most, dvti_oracle_element(&in, k));
        for (k = 0; k < in.dim[0]; k++)
            sum += exp(dvti_oracle_element(&in, k) - most);
        for (k = 0; k < in.dim[0]; k++) {
            x = dvti_oracle_element(&in, k) - most;
            /* most + log(sum) would cancel the logarithm if the maximum is huge */
            x = launch->op == DVTI_OP_log_softmax ? x - log(sum) : exp(x) / sum;
            dvti_store_f64(out.data, out.dtype, k * out.stride[0], x);
        }
    }
}

/* Computes contiguous float32. Each step is rounded as a separate operation. */
DVTI_FN void dvti_oracle_layer_norm(const dvti_launch *launch, int64_t begin, int64_t end) {
    const int64_t n = launch->in[0].dim[launch->in[0].ndim - 1];
    const float *gamma = (const float *)launch->in[1].data,
                *beta = (const float *)launch->in[2].data;
    int64_t r, k;
    for (r = begin; r < end; r++) {
        const float *x = (const float *)launch->in[0].data + r * n;
        float *y = (float *)launch->out[0].data + r * n, mean, scale;
        double sum = 0;
        for (k = 0; k < n; k++)
            sum += x[k];
        mean = (float)(sum / (double)n);
        for (k = 0, sum = 0; k < n; k++) {
            const float d = x[k] - mean, square = d * d;
            sum += (double)square;
        }
        scale = 1 / sqrtf((float)(sum / (double)n) + (float)launch->f[0]);
        for (k = 0; k < n; k++) {
            float v = (x[k] - mean) * scale;
            v = gamma ? v * gamma[k] : v;
            y[k] = beta ? v + beta[k] : v;
        }
    }
}
