/* Gradients of concat, take, take_along. */
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

DVTI_FN void dvti_grad_index(dvti_grad_call *call) {
    if (call->node->op == DVTI_OP_concat)
        dvti_grad_concat(call);
}
