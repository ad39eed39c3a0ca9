/* Gradients of views, joining and indexing. A view's gradient is the inverse view. Taking and
   adding by index are each other's gradients. */
#include "5_grad/dvt_grad.h"

/* ---- views ---- */
static dvt_array *dvti_grad_transpose(const dvti_node *node, dvt_array *g) {
    dvt_axes order = DVT_ALL;
    int i;
    order.n = g->shape.ndim;
    for (i = 0; i < order.n; i++)
        order.axis[node->attr.i[i]] = i;
    return dvt_transpose(g, order);
}

/* It avoids negative bounds, which would count from the end. */
DVTI_FN dvt_array *dvti_grad_sliced(const dvti_node *node, int64_t n, dvt_array *x) {
    int axis = (int)node->attr.i[0];
    int64_t start = node->attr.i[1], step = node->attr.i[2], stop;
    if (n == 0)
        return dvt_slice(x, axis, 0, 0, 1);
    if (n == 1)
        step = 1;
    stop = start + (n - 1) * step + (step > 0 ? 1 : -1);
    return dvt_slice(x, axis, start, stop < 0 ? DVT_END : stop, step);
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
        call->out[0] = dvti_grad_sliced(node, x->shape.dim[at[0]], g);
        break;
    default: /* broadcast_to: the caller sums every gradient over broadcast axes */
        call->out[0] = g;
    }
}

/* ---- joining and indexing ---- */
static void dvti_grad_concat(dvti_grad_call *call) {
    int axis = (int)call->node->attr.i[0], i;
    int64_t at = 0;
    for (i = 0; i < call->n_in; i++) {
        int64_t end = at + call->in[i]->shape.dim[axis];
        if (call->need[i])
            call->out[i] = dvt_slice(call->g, axis, at, end, 1);
        at = end;
    }
}

/* Indices are integers, so they never need a gradient. */
DVTI_FN void dvti_grad_index(dvti_grad_call *call) {
    int axis = (int)call->node->attr.i[0];
    dvt_array *x = call->in[0], *index, *g = call->g;
    if (call->node->op == DVTI_OP_concat) {
        dvti_grad_concat(call);
        return;
    }
    index = call->in[1];
    switch (call->node->op) {
    case DVTI_OP_take:
        call->out[0] = dvti_take_add(g, index, axis, x->shape.dim[axis]);
        break;
    case DVTI_OP_take_add:
        call->out[0] = dvt_take(g, index, axis);
        break;
    case DVTI_OP_take_along:
        call->out[0] = dvti_take_along_add(g, index, axis, x->shape.dim[axis]);
        break;
    default:
        call->out[0] = dvt_take_along_axis(g, index, axis);
    }
}
