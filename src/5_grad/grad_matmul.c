/* Gradients of matrix products. With C = A B: dA = G B^T and dB = A^T G. Transposed operands move
   the transposes. Batch axes that were broadcast are summed afterwards. */
#include "5_grad/dvt_grad.h"

/* Joins all axes of x but the last into one. */
static dvt_array *dvti_rows_of(dvt_array *x) {
    return dvt_reshape(x, DVT_SHAPE(-1, x->shape.dim[x->shape.ndim - 1]));
}

static dvt_array *dvti_grad_matmul_a(dvt_array *g, dvt_array *b, bool ta, bool tb) {
    return ta ? dvti_matmul("dvt_matmul", b, g, tb, true)
              : dvti_matmul("dvt_matmul", g, b, false, !tb);
}

DVTI_FN bool dvti_grad_matmul_masks(const dvti_node *node, const dvt_array *g) {
    const dvt_array *a = node->in[0], *b = node->in[1];
    return !node->attr.i[0] && a->shape.ndim > 1 && b->shape.ndim == 2 && a->dtype == g->dtype &&
           b->dtype == g->dtype && dvt_is_contiguous(a) && dvti_matmul_can_mask(a);
}

static dvt_array *dvti_grad_matmul_b(dvt_array *g, dvt_array *a, dvt_array *b, bool ta, bool tb) {
    /* One matrix serves a whole batch: a single product includes the sum over the batch. */
    if (b->shape.ndim == 2 && a->shape.ndim > 2 && !ta && dvt_size(a) > 0 && dvt_size(g) > 0) {
        a = dvti_rows_of(a);
        g = dvti_rows_of(g);
        if (!a || !g)
            return NULL;
    }
    return tb ? dvti_matmul("dvt_matmul", g, a, true, ta)
              : dvti_matmul("dvt_matmul", a, g, !ta, false);
}

DVTI_FN void dvti_grad_matmul(dvti_grad_call *call) {
    bool ta = call->node->attr.i[0] != 0, tb = call->node->attr.i[1] != 0;
    dvt_array *a = call->in[0], *b = call->in[1];
    if (call->need[0] && call->relu_masked)
        call->out[0] = dvti_matmul_masked("dvt_matmul", call->g, b, !tb, a);
    else if (call->need[0])
        call->out[0] = dvti_grad_matmul_a(call->g, b, ta, tb);
    if (call->need[1])
        call->out[1] = dvti_grad_matmul_b(call->g, a, b, ta, tb);
}
