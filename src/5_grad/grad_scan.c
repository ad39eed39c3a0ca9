/* The gradient of cumulative sums: an element is in all sums from its own on, so it is their gradients' sum from the other end. */
#include "5_grad/dvt_grad.h"

DVTI_FN void dvti_grad_scan(dvti_grad_call *call) {
    const dvti_attr *attr = &call->node->attr;
    call->out[0] = dvti_cumsum(call->g, (int)attr->i[0], !attr->i[1]);
}
