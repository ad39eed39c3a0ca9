/* The way back. A gradient function gets a node and the gradient of its result, and writes the gradients of the inputs that need
   one. It is written with public operations, so that it can itself be recorded. */
#ifndef DVTI_GRAD_H
#define DVTI_GRAD_H
#include "4_ops/dvt_op.h"

typedef struct dvti_grad_call {
    const dvti_node *node;
    dvt_array *const *in; /* the inputs */
    int n_in;
    dvt_array *
        y; /* the result, with its history when the backward pass is recorded; NULL when no gradient reads it */
    dvt_array *g;     /* the gradient of the result: its shape, dtype and context */
    const bool *need; /* per input */
    bool
        past_relu; /* in[0] is a relu's result whose own gradient nobody asks for: out[0] is to be 0 where in[0] is, as relu's gradient makes it */
    dvt_array **
        out; /* per input: to be set where needed, in any shape that broadcasting made of the input's */
} dvti_grad_call;

/* Fills call->out. An entry that is needed and stays NULL means that it failed, with the error set. One function per family, in
   grad_*.c. */
DVTI_FN void dvti_grad_elementwise(dvti_grad_call *call);
DVTI_FN void dvti_grad_view(dvti_grad_call *call);
DVTI_FN void dvti_grad_reduce(dvti_grad_call *call);
DVTI_FN void dvti_grad_softmax(dvti_grad_call *call);
DVTI_FN void dvti_grad_matmul(dvti_grad_call *call);
DVTI_FN void dvti_grad_index(dvti_grad_call *call);
DVTI_FN void dvti_grad_conv(dvti_grad_call *call);
DVTI_FN void dvti_grad_scan(dvti_grad_call *call);

/* ---- helpers of gradient functions (grad_helpers.c); NULL in, NULL out ---- */
/* g summed over the axes that broadcasting added or repeated, in x's shape and dtype. */
DVTI_FN dvt_array *dvti_unbroadcast(dvt_array *g, dvt_array *x);
/* x in the dtype of g: x itself when it has it already. */
DVTI_FN dvt_array *dvti_as_dtype_of(dvt_array *x, dvt_array *g);
/* Zeros like g: the gradient of steps. */
DVTI_FN dvt_array *dvti_no_gradient(dvt_array *g);
/* One 0-d number of g's dtype and context. */
DVTI_FN dvt_array *dvti_number_like(dvt_array *g, double value);

/* ---- the graph behind some heads (dvt_graph.c) ---- */
/* A node, or a leaf: an array with an attached gradient. */
typedef struct dvti_slot {
    dvti_node *node; /* a counted reference; NULL for a leaf */
    dvt_array *leaf;
    dvt_array *grad; /* what has arrived so far, a counted reference */
    bool variable;   /* asked for by dvt_gradients */
    bool needed;     /* a leaf or variable stands at it or behind it */
    bool passed;     /* its gradient went on to its inputs */
    bool past_relu;  /* grad has gone through the node, a relu, already: see dvti_grad_call */
    bool in_place;   /* a leaf whose gradient array is written; else it is replaced */
} dvti_slot;

/* Slots in the order of the way back: nodes from the last recorded to the first, then leaves. `table` finds a slot by its node
   or leaf: open addressing, entries are slot numbers + 1. */
typedef struct dvti_graph {
    const char *name; /* the public function */
    dvti_slot *slots;
    size_t count, capacity;
    size_t *table;
    size_t table_size; /* a power of two */
} dvti_graph;

/* Where x's gradient is gathered: its slot when it has one, NULL when x has no history. consumer: the node that x is an input
   of, or NULL. */
DVTI_FN dvti_slot *dvti_graph_slot(dvti_graph *graph, const dvti_node *consumer, dvt_array *x);
/* Collects everything behind the heads; vars as in dvt_gradients, or NULL to want all leaves. False with the error set (GRAD,
   HOST_MEMORY); end it in any case. */
DVTI_FN bool dvti_graph_begin(dvti_graph *graph, const char *name, dvt_array *const *heads, int n,
                              dvt_array *const *vars, int n_vars);
DVTI_FN void dvti_graph_end(dvti_graph *graph);
/* x is ours alone: no other owner, no other window on its memory. */
DVTI_FN bool dvti_exclusive(dvt_array *x);
/* Adds part (whose reference it takes over, also on failure) to what the slot has. */
DVTI_FN bool dvti_slot_add(dvti_slot *slot, dvt_array *part);
/* The status of a call that just failed. */
DVTI_FN dvt_status dvti_failed(const char *function);

/* ---- attached gradients (dvt_attach.c) ---- */
/* Writes the gathered gradients of all leaves, or none. */
DVTI_FN dvt_status dvti_write_leaves(dvti_graph *graph, bool create_graph);

#endif
