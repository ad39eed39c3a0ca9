/* Gradients of views: the same view, backwards. */
#include "5_grad/dvt_grad.h"

static dvt_array *dvti_grad_transpose(const dvti_node *node, dvt_array *g) {
    dvt_axes order = DVT_ALL;
    int i;
    order.n = g->shape.ndim;
    for (i = 0; i < order.n; i++)
        order.axis[node->attr.i[i]] = i;
    return dvt_transpose(g, order);
}

/* The elements of g that unslice took from x. Bounds are given so that no negative one is read as "from the end". */
static dvt_array *dvti_grad_unslice(const dvti_node *node, dvt_array *x, dvt_array *g) {
    int axis = (int)node->attr.i[0];
    int64_t start = node->attr.i[1], step = node->attr.i[2], n = x->shape.dim[axis], stop;
    if (n == 0)
        return dvt_slice(g, axis, 0, 0, 1);
    if (n == 1)
        step = 1;
    stop = start + (n - 1) * step + (step > 0 ? 1 : -1);
    return dvt_slice(g, axis, start, stop < 0 ? DVT_END : stop, step);
}

DVTI_FN void dvti_grad_view(dvti_grad_call *call) {
    const dvti_node *node = call->node;
    const int64_t *at = node->attr.i;
    dvt_array *x = call->in[0], *g = call->g;
    switch (node->op) {
    case DVTI_OP_reshape:
        call->out[0] = dvt_reshape(g, x->shape);
        break;
    case DVTI_OP_transpose:
        call->out[0] = dvti_grad_transpose(node, g);
        break;
    case DVTI_OP_slice:
        call->out[0] = dvti_unslice(g, (int)at[0], at[1], at[2], at[3]);
        break;
    case DVTI_OP_unslice:
        call->out[0] = dvti_grad_unslice(node, x, g);
        break;
    default: /* broadcast_to: what follows every gradient function sums it */
        call->out[0] = g;
    }
}
