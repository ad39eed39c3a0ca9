/* Copies between arrays of one 16-bit dtype, of any strides: the elements' bits, as they are.
   Through float, as other copies go, a signalling NaN would become a quiet one. Copies within the
   wider dtypes are moves already. */
#include "3_cpu/dvt_cpu.h"

typedef struct dvti_copy_plan {
    dvti_view in, out;
} dvti_copy_plan;

static int64_t dvti_copy_distance(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

/* The order of positions is free: that of the result's memory. */
static void dvti_copy_order_axes(dvti_view *in, dvti_view *out) {
    int i, j;
    for (i = 1; i < out->ndim; i++)
        for (j = i;
             j > 0 && dvti_copy_distance(out->stride[j - 1]) < dvti_copy_distance(out->stride[j]);
             j--) {
            dvti_view *view = in;
            for (;;) {
                int64_t dim = view->dim[j], stride = view->stride[j];
                view->dim[j] = view->dim[j - 1];
                view->stride[j] = view->stride[j - 1];
                view->dim[j - 1] = dim;
                view->stride[j - 1] = stride;
                if (view == out)
                    break;
                view = out;
            }
        }
}

static int64_t dvti_copy_left(const dvti_view *view, const dvti_cursor *cursor) {
    return view->dim[view->ndim - 1] - cursor->index[view->ndim - 1];
}

static void dvti_copy_range(void *user, int64_t begin, int64_t end) {
    const dvti_copy_plan *plan = (const dvti_copy_plan *)user;
    const dvti_view *in = &plan->in, *out = &plan->out;
    const int64_t from_step = in->stride[in->ndim - 1], to_step = out->stride[out->ndim - 1];
    dvti_cursor from = dvti_cursor_at(in, begin), to = dvti_cursor_at(out, begin);
    int64_t n, k;
    for (; begin < end; begin += n) {
        const uint16_t *x = (const uint16_t *)in->data + from.at;
        uint16_t *y = (uint16_t *)out->data + to.at;
        n = DVTI_MIN(end - begin, DVTI_MIN(dvti_copy_left(in, &from), dvti_copy_left(out, &to)));
        if (from_step == 1 && to_step == 1)
            memmove(y, x, (size_t)n * sizeof *y);
        else
            for (k = 0; k < n; k++)
                y[k * to_step] = x[k * from_step];
        dvti_cursor_advance(&from, in, n);
        dvti_cursor_advance(&to, out, n);
    }
}

DVTI_FN bool dvti_copy_16_bits(const dvti_launch *launch) {
    const int64_t size = dvti_view_size(&launch->out[0]);
    dvti_copy_plan plan;
    plan.in = launch->in[0];
    plan.out = launch->out[0];
    if (launch->op != DVTI_OP_copy || launch->i[0] > 0 || plan.in.dtype != plan.out.dtype ||
        dvt_dtype_size(plan.out.dtype) != 2)
        return false;
    if (size == 0)
        return true;
    dvti_copy_order_axes(&plan.in, &plan.out);
    dvti_merge_axes(&plan.in);
    dvti_merge_axes(&plan.out);
    dvti_parallel_for(size, 0.3, dvti_copy_range, &plan);
    return true;
}
