/* The backward pass. A gradient function receives a node and the gradient of its result. It writes
   the gradients of the inputs that need one. It consists of public operations, so it can be
   recorded itself. */
#ifndef DVTI_GRAD_H
#define DVTI_GRAD_H
#include "4_ops/dvt_op.h"

typedef struct dvti_grad_call {
    const dvti_node *node;
    dvt_array *const *in; /* the inputs */
    int n_in;
    /* the result, with its history when the backward pass is recorded; NULL when no gradient reads
       it */
    dvt_array *y;
    /* the gradient of the result, with its shape, dtype and context. NULL for cross_entropy: 1
       everywhere */
    dvt_array *g;
    const bool *need; /* per input */
    /* in[0] is a relu's result whose own gradient is not needed: out[0] must be 0 where in[0] is 0,
       as relu's gradient makes it */
    bool relu_masked;
    /* log2 of the factor that gives out[0] the loss scale of its slot. A gradient function that
       applies it sets 0; else the caller does. */
    int shift;
    /* per input: set where needed, in the input's shape or one that it broadcasts to */
    dvt_array **out;
} dvti_grad_call;

/* Fill call->out. A needed entry that stays NULL means failure, with the error set. Each family has
   one function in a grad_*.c file. */
DVTI_FN void dvti_grad_elementwise(dvti_grad_call *call);
DVTI_FN void dvti_grad_view(dvti_grad_call *call);
DVTI_FN void dvti_grad_reduce(dvti_grad_call *call);
DVTI_FN void dvti_grad_softmax(dvti_grad_call *call);
DVTI_FN void dvti_grad_cross_entropy(dvti_grad_call *call);
DVTI_FN void dvti_grad_layer_norm(dvti_grad_call *call);
DVTI_FN void dvti_grad_batch_norm(dvti_grad_call *call);
DVTI_FN void dvti_grad_matmul(dvti_grad_call *call);
DVTI_FN void dvti_grad_index(dvti_grad_call *call);
DVTI_FN void dvti_grad_conv(dvti_grad_call *call);
DVTI_FN void dvti_grad_scan(dvti_grad_call *call);

/* Returns whether the gradient of a product to its first factor can include relu's mask. */
DVTI_FN bool dvti_grad_matmul_masks(const dvti_node *node, const dvt_array *g);

/* Returns the n elements of x, along its axis, that a slice or unslice node names (grad_view.c). */
DVTI_FN dvt_array *dvti_grad_sliced(const dvti_node *node, int64_t n, dvt_array *x);

/* ---- helpers of gradient functions (grad_elementwise.c); they return NULL for NULL ---- */
/* Sums g over the axes that broadcasting added or repeated; returns it in x's shape and dtype. */
DVTI_FN dvt_array *dvti_unbroadcast(dvt_array *g, dvt_array *x);
/* Returns x in the dtype of g, or x itself when it has that dtype. */
DVTI_FN dvt_array *dvti_as_dtype_of(dvt_array *x, dvt_array *g);
/* Returns g times 2^shift in a dtype, rounded once. */
DVTI_FN dvt_array *dvti_rescaled(dvt_array *g, int shift, dvt_dtype dtype);
/* Returns zeros like g: the gradient of step functions. */
DVTI_FN dvt_array *dvti_no_gradient(dvt_array *g);
/* Returns a 0-d array of g's dtype and context. */
DVTI_FN dvt_array *dvti_number_like(dvt_array *g, double value);

/* ---- the graph that produced the heads (dvt_graph.c) ---- */
/* A node, or a leaf: an array with an attached gradient. */
typedef struct dvti_slot {
    dvti_node *node; /* a counted reference; NULL for a leaf */
    dvt_array *leaf;
    dvt_array *grad;  /* the sum of the contributions so far, a counted reference */
    bool variable;    /* requested by dvt_gradients */
    bool needed;      /* it is, or depends on, a leaf or variable */
    bool passed;      /* its gradient was passed on to its inputs */
    bool ones;        /* the only head: its gradient is 1 everywhere, and grad is NULL */
    bool relu_masked; /* grad already includes the mask of this node, a relu: see dvti_grad_call */
    bool in_place;    /* the leaf's gradient array is written; otherwise it is replaced */
    size_t last;      /* of a leaf, while watched: 1 + the slot of its last consumer */
} dvti_slot;

/* Slots in the order of the backward pass: nodes from the last recorded to the first, then leaves.
   `table` finds a slot by its node or leaf. It uses open addressing; entries are slot numbers +
   1. */
typedef struct dvti_graph {
    const char *name; /* the public function */
    dvti_slot *slots;
    size_t count, capacity;
    size_t *table;
    size_t table_size; /* a power of two */
    bool watched;      /* leaves are reported as they are complete */
} dvti_graph;

/* Returns the slot that gathers x's gradient, or NULL when x has no slot or no history. consumer is
   the node that has x as an input, or NULL. */
DVTI_FN dvti_slot *dvti_graph_slot(dvti_graph *graph, const dvti_node *consumer, dvt_array *x);
/* Collects all nodes and leaves that the heads depend on. vars is as in dvt_gradients, or NULL for
   all leaves. Returns false with the error set (GRAD, HOST_MEMORY). Call dvti_graph_end in any
   case. */
DVTI_FN bool dvti_graph_begin(dvti_graph *graph, const char *name, dvt_array *const *heads, int n,
                              dvt_array *const *vars, int n_vars);
DVTI_FN void dvti_graph_end(dvti_graph *graph);
/* Returns whether x has one owner and no other array, nor the caller, shares its memory. */
DVTI_FN bool dvti_exclusive(dvt_array *x);
/* Adds `part` to the slot's gradient. Takes over its reference, also on failure. */
DVTI_FN bool dvti_slot_add(dvti_slot *slot, dvt_array *part);
/* Returns the status of a call that just failed. */
DVTI_FN dvt_status dvti_failed(const char *function);

/* ---- attached gradients (dvt_attach.c) ---- */
/* Writes the gathered gradients of all leaves, or none. */
DVTI_FN dvt_status dvti_write_leaves(dvti_graph *graph, bool create_graph);
/* Returns whether the gradient is added instead of written. */
DVTI_FN bool dvti_leaf_adds(const dvt_array *x);

/* ---- watching backward passes (dvt_grad_watch.c) ---- */
typedef struct dvti_grad_watch {
    /* Receives a gradient that the pass will write to the leaf, and to which it adds nothing more.
       The leaf still has its old one, and keeps it if the pass fails later. Passes that are
       recorded, and leaves whose gradients are added, are not reported. Returns false with the
       error set, and the pass fails. */
    bool (*complete)(void *user, const char *function, dvt_array *leaf, dvt_array *grad);
    void *user;
} dvti_grad_watch;

/* Sets the watch of this thread's passes, which must stay valid. NULL: none. */
DVTI_FN void dvti_watch_gradients(const dvti_grad_watch *watch);
/* Find the last consumer of each leaf, if this thread has a watch; report the leaves that are
   complete after slot `at`. */
DVTI_FN void dvti_watch_begin(dvti_graph *graph);
DVTI_FN bool dvti_watch_step(dvti_graph *graph, size_t at);

#endif
