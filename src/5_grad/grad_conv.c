/* Gradients of convolution and pooling. A convolution is linear in its data and in its weights, and
   so are its two gradients: the three operations are each other's gradients. Pooling is linear once
   the positions of the maxima are known. */
#include "5_grad/dvt_grad.h"

/* Computes the gradients of y = conv(x, w) + b. */
static void dvti_grad_conv2d_forward(dvti_grad_call *call) {
    const dvti_attr *attr = &call->node->attr;
    dvt_array *x = call->in[0], *w = call->in[1];
    if (call->need[0])
        call->out[0] = dvti_conv2d_data(call->g, w, x->shape, attr);
    if (call->need[1])
        call->out[1] = dvti_conv2d_weight(x, call->g, w->shape, attr);
    if (call->n_in == 3 && call->need[2])
        call->out[2] = dvt_sum(call->g, DVT_AXES(0, 2, 3));
}

DVTI_FN void dvti_grad_conv(dvti_grad_call *call) {
    const dvti_attr *attr = &call->node->attr;
    dvt_array *a = call->in[0], *b = call->n_in > 1 ? call->in[1] : NULL, *g = call->g;
    switch (call->node->op) {
    case DVTI_OP_conv2d:
        dvti_grad_conv2d_forward(call);
        break;
    case DVTI_OP_conv2d_data: /* a: gradient of y, b: weights; g: like the data */
        if (call->need[0])
            call->out[0] = dvti_conv2d(g, b, NULL, attr);
        if (call->need[1])
            call->out[1] = dvti_conv2d_weight(g, a, b->shape, attr);
        break;
    case DVTI_OP_conv2d_weight: /* a: data, b: gradient of y; g: like the weights */
        if (call->need[0])
            call->out[0] = dvti_conv2d_data(b, g, a->shape, attr);
        if (call->need[1])
            call->out[1] = dvti_conv2d(a, g, NULL, attr);
        break;
    case DVTI_OP_max_pool2d:
        call->out[0] = dvti_max_pool2d_data(g, a, attr, call->relu_masked);
        break;
    case DVTI_OP_max_pool2d_data: /* a: gradient of y, b: data, which only gives the positions */
        if (call->need[0])
            call->out[0] = dvti_max_pool2d_pick(g, b, attr);
        if (call->need[1])
            call->out[1] = dvt_zeros_like(b);
        break;
    case DVTI_OP_max_pool2d_pick: /* a: values, b: data, which only gives the positions */
        if (call->need[0])
            call->out[0] = dvti_max_pool2d_data(g, b, attr, false);
        if (call->need[1])
            call->out[1] = dvt_zeros_like(b);
        break;
    case DVTI_OP_avg_pool2d:
        call->out[0] = dvti_avg_pool2d_data(g, a->shape, attr);
        break;
    default: /* avg_pool2d_data */
        call->out[0] = dvti_avg_pool2d(g, attr);
    }
}
