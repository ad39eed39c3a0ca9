/* The way back. A gradient function gets a node, the gradient of its result, and writes the gradients of the inputs that need
   one. It is written with public operations, so that it can itself be recorded. */
#ifndef DVTI_GRAD_H
#define DVTI_GRAD_H
#include "4_ops/dvt_op.h"

typedef struct dvti_grad_call {
    const dvti_node *node;
    dvt_array *const *in; /* the inputs */
    int n_in;
    dvt_array *y;     /* the result, with its history when the backward pass is recorded */
    dvt_array *g;     /* the gradient of the result: its shape, dtype and context */
    const bool *need; /* per input */
    dvt_array **
        out; /* per input: to be set where needed, in any shape that broadcasting made of the input's */
} dvti_grad_call;

/* Fills call->out; false with the error set. One function per family, in grad_*.c. */
DVTI_FN bool dvti_grad_elementwise(dvti_grad_call *call);
DVTI_FN bool dvti_grad_view(dvti_grad_call *call);
DVTI_FN bool dvti_grad_reduce(dvti_grad_call *call);
DVTI_FN bool dvti_grad_matmul(dvti_grad_call *call);
DVTI_FN bool dvti_grad_index(dvti_grad_call *call);
DVTI_FN bool dvti_grad_conv(dvti_grad_call *call);

/* g summed over the axes that broadcasting added or repeated, in x's shape and dtype. */
DVTI_FN dvt_array *dvti_unbroadcast(dvt_array *g, dvt_array *x);

#endif
