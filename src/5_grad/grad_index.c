/* Gradients of joining and indexing. Taking and adding by index are each other's gradients. */
#include "5_grad/dvt_grad.h"

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

/* Indices have no gradient: they are integers, and never needed. */
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
