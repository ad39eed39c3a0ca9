/* softmax and log_softmax by a tier's loop, one row at a time. Rows of 16-bit floats, and rows whose elements do not lie side by side, are
   copied to the stack when they are short enough. */
#include "3_cpu/simd/dvt_simd.h"

#define DVTI_SOFTMAX_COPY 2048 /* elements of such a row at most */

typedef struct dvti_soft_plan {
    const dvti_simd *simd;
    dvti_view in, out; /* all axes but the last */
    int64_t n, in_step, out_step;
    bool direct, logarithm;
} dvti_soft_plan;

static void dvti_soft_rows(void *user, int64_t begin, int64_t end) {
    const dvti_soft_plan *plan = (const dvti_soft_plan *)user;
    const int64_t size = dvt_dtype_size(plan->in.dtype);
    dvti_cursor from = dvti_cursor_at(&plan->in, begin), to = dvti_cursor_at(&plan->out, begin);
    float row[DVTI_SOFTMAX_COPY];
    int64_t k;
    for (k = begin; k < end; k++) {
        const char *x = (const char *)plan->in.data + from.at * size;
        char *y = (char *)plan->out.data + to.at * size;
        if (plan->direct) {
            plan->simd->softmax((const float *)(const void *)x, 0, (float *)(void *)y, 0, 1,
                                plan->n, plan->logarithm);
        } else {
            dvti_load_row_f32(x, plan->in.dtype, plan->in_step, plan->n, row);
            plan->simd->softmax(row, 0, row, 0, 1, plan->n, plan->logarithm);
            dvti_store_row_f32(y, plan->out.dtype, plan->out_step, plan->n, row);
        }
        if (k + 1 < end) {
            dvti_cursor_advance(&from, &plan->in, 1);
            dvti_cursor_advance(&to, &plan->out, 1);
        }
    }
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
    if (dtype != out->dtype || plan.n == 0 ||
        (dtype != DVT_F32 && dtype != DVT_F16 && dtype != DVT_BF16) ||
        (!plan.direct && plan.n > DVTI_SOFTMAX_COPY))
        return false;
    plan.simd = simd;
    plan.logarithm = launch->op == DVTI_OP_log_softmax;
    dvti_parallel_for(dvti_view_size(&plan.in), 30 + (plan.direct ? 0.4 : 1.5) * (double)plan.n,
                      dvti_soft_rows, &plan);
    return true;
}

#undef DVTI_SOFTMAX_COPY
