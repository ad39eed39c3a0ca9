/* Softmax cross-entropy and its gradient, with the bits of the operations that they replace. */
#include "3_cpu/dvt_cpu.h"

/* Without this, GCC fuses a multiplication and a subtraction where the CPU can. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#endif

static int64_t dvti_label_at(const dvti_view *labels, int64_t row, int64_t n) {
    int64_t label = dvti_load_i64(labels->data, labels->dtype, row);
    label += label < 0 ? n : 0;
    return DVTI_MIN(DVTI_MAX(label, 0), n - 1);
}

static void dvti_entropy_pick(void *user, int64_t begin, int64_t end) {
    const dvti_launch *launch = (const dvti_launch *)user;
    const dvti_view *all = &launch->out[1];
    const int64_t n = all->dim[all->ndim - 1];
    int64_t r, at;
    for (r = begin; r < end; r++) {
        at = r * n + dvti_label_at(&launch->in[1], r, n);
        if (all->dtype == DVT_F32)
            ((float *)launch->out[0].data)[r] = -((const float *)all->data)[at];
        else
            ((double *)launch->out[0].data)[r] = -((const double *)all->data)[at];
    }
}

/* out holds exp(log-softmax), and receives the gradient. */
static void dvti_entropy_row_f32(float *out, int64_t n, int64_t label, float s) {
    int64_t k;
    for (k = 0; k < n; k++) {
        const float product = out[k] * s;
        out[k] = (k == label ? s : 0) - product;
    }
}

static void dvti_entropy_row_f64(double *out, int64_t n, int64_t label, double s) {
    int64_t k;
    for (k = 0; k < n; k++) {
        const double product = out[k] * s;
        out[k] = (k == label ? s : 0) - product;
    }
}

static void dvti_entropy_gradient(void *user, int64_t begin, int64_t end) {
    const dvti_launch *launch = (const dvti_launch *)user;
    const dvti_view *out = &launch->out[0];
    const void *g = launch->in[0].data; /* NULL: 1 everywhere */
    const int64_t n = out->dim[out->ndim - 1];
    int64_t r, label;
    for (r = begin; r < end; r++) {
        label = dvti_label_at(&launch->in[1], r, n);
        if (out->dtype == DVT_F32)
            dvti_entropy_row_f32((float *)out->data + r * n, n, label,
                                 g ? 0 - ((const float *)g)[r] : -1);
        else
            dvti_entropy_row_f64((double *)out->data + r * n, n, label,
                                 g ? 0 - ((const double *)g)[r] : -1);
    }
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

DVTI_FN void dvti_cpu_cross_entropy(const dvti_launch *launch) {
    const bool forward = launch->op == DVTI_OP_cross_entropy;
    const dvti_view *all = &launch->out[forward ? 1 : 0];
    const int64_t n = all->dim[all->ndim - 1];
    dvti_launch first = *launch; /* log-softmax, or the exponentials */
    first.op = forward ? DVTI_OP_log_softmax : DVTI_OP_exp;
    first.in[0] = launch->in[forward ? 0 : 2];
    first.out[0] = *all;
    first.n_in = first.n_out = 1;
    first.i[0] = 0;
    if (forward)
        dvti_cpu_softmax(&first);
    else
        dvti_cpu_elementwise(&first);
    dvti_parallel_for(dvti_view_size(all) / n, forward ? 2 : 2 + 0.2 * (double)n,
                      forward ? dvti_entropy_pick : dvti_entropy_gradient,
                      (void *)(uintptr_t)launch);
}
