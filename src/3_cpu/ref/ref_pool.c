/* The oracle of pooling: the definition, window by window, in float64. Gradients are added in their
   dtype. Any dtype, one thread. */
#include "3_cpu/dvt_cpu.h"

/* The rows or columns of x in a window. */
typedef struct dvti_ref_pool_range {
    int64_t begin, end;
    int64_t counted; /* divisor of a mean: the elements of x, or also its padding */
} dvti_ref_pool_range;

static dvti_ref_pool_range dvti_ref_pool_window(const dvti_launch *launch, int axis, int64_t extent,
                                                int64_t i) {
    const int64_t size = launch->i[axis], stride = launch->i[2 + axis];
    const int64_t padding = launch->i[4 + axis], begin = i * stride - padding;
    dvti_ref_pool_range range;
    range.begin = DVTI_MAX(begin, 0);
    range.end = DVTI_MIN(begin + size, extent);
    range.counted = launch->i[6] == 1 ? range.end - range.begin
                                      : DVTI_MIN(begin + size, extent + padding) - begin;
    return range;
}

static double dvti_ref_pool_get(const dvti_view *view, int64_t at) {
    return dvti_load_f64(view->data, view->dtype, at);
}

/* Adds to an element of a gradient. */
static void dvti_ref_pool_add(const dvti_view *view, int64_t at, double value) {
    dvti_store_f64(view->data, view->dtype, at, dvti_ref_pool_get(view, at) + value);
}

/* Returns the place of the first largest element of a window; NaN is larger than all numbers. */
static int64_t dvti_ref_pool_largest(const dvti_view *x, int64_t plane, dvti_ref_pool_range rows,
                                     dvti_ref_pool_range cols) {
    int64_t best = (plane * x->dim[2] + rows.begin) * x->dim[3] + cols.begin, r, c;
    for (r = rows.begin; r < rows.end; r++)
        for (c = cols.begin; c < cols.end; c++) {
            const int64_t at = (plane * x->dim[2] + r) * x->dim[3] + c;
            const double v = dvti_ref_pool_get(x, at), most = dvti_ref_pool_get(x, best);
            if (v > most || (v != v && most == most))
                best = at;
        }
    return best;
}

/* Computes one window of a mean, or adds its gradient. */
static void dvti_ref_pool_mean(const dvti_launch *launch, const dvti_view *x, int64_t plane,
                               dvti_ref_pool_range rows, dvti_ref_pool_range cols, int64_t window) {
    const double count = (double)(rows.counted * cols.counted);
    const bool forward = launch->op == DVTI_OP_avg_pool2d;
    double sum = 0;
    int64_t r, c;
    for (r = rows.begin; r < rows.end; r++)
        for (c = cols.begin; c < cols.end; c++) {
            const int64_t at = (plane * x->dim[2] + r) * x->dim[3] + c;
            if (forward)
                sum += dvti_ref_pool_get(x, at);
            else
                dvti_ref_pool_add(x, at, dvti_ref_pool_get(&launch->in[0], window) / count);
        }
    if (forward)
        dvti_store_f64(launch->out[0].data, launch->out[0].dtype, window, sum / count);
}

/* Computes one window of a maximum, adds its gradient, or picks the value at its position. */
static void dvti_ref_pool_max(const dvti_launch *launch, int64_t plane, dvti_ref_pool_range rows,
                              dvti_ref_pool_range cols, int64_t window) {
    const dvti_view *in = &launch->in[0], *out = &launch->out[0];
    const dvti_view *x = launch->op == DVTI_OP_max_pool2d ? in : &launch->in[1];
    const int64_t at = dvti_ref_pool_largest(x, plane, rows, cols);
    if (launch->op != DVTI_OP_max_pool2d_data)
        dvti_store_f64(out->data, out->dtype, window, dvti_ref_pool_get(in, at));
    else if (launch->i[7] != 1 || dvti_ref_pool_get(x, at) != 0)
        dvti_ref_pool_add(out, at, dvti_ref_pool_get(in, window));
}

DVTI_FN void dvti_ref_pool2d(const dvti_launch *launch) {
    const dvti_op op = launch->op;
    const bool mean = op == DVTI_OP_avg_pool2d || op == DVTI_OP_avg_pool2d_data;
    const bool gradient = op == DVTI_OP_avg_pool2d_data || op == DVTI_OP_max_pool2d_data;
    const dvti_view *x = gradient ? &launch->out[0] : &launch->in[0];
    const dvti_view *y = gradient ? &launch->in[0] : &launch->out[0];
    int64_t plane, i, j, window = 0;
    for (i = 0; gradient && i < dvti_view_size(x); i++)
        dvti_store_f64(x->data, x->dtype, i, 0);
    for (plane = 0; plane < x->dim[0] * x->dim[1]; plane++)
        for (i = 0; i < y->dim[2]; i++)
            for (j = 0; j < y->dim[3]; j++, window++) {
                dvti_ref_pool_range rows = dvti_ref_pool_window(launch, 0, x->dim[2], i);
                dvti_ref_pool_range cols = dvti_ref_pool_window(launch, 1, x->dim[3], j);
                if (mean)
                    dvti_ref_pool_mean(launch, x, plane, rows, cols, window);
                else
                    dvti_ref_pool_max(launch, plane, rows, cols, window);
            }
}
