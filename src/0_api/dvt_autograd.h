/* [dvt:autograd] Gradients. Inside DVT_RECORD, operations on arrays with an attached gradient, and
   on their results, are recorded. dvt_backward computes the gradients from the record.

       dvt_attach_grad(w, DVT_GRAD_WRITE);
       DVT_RECORD { loss = dvt_mean(dvt_square(dvt_sub(dvt_matmul(x, w), y)), DVT_ALL); }
       dvt_backward(loss);
       dvt_print(dvt_grad(w));

   Recording and train mode belong to the thread. Gradients are computed with recorded operations,
   so gradients of gradients work (DVT_CREATE_GRAPH). */

/* Selects what dvt_backward does with an attached gradient. */
typedef enum dvt_grad_req {
    DVT_GRAD_WRITE, /* overwrites it */
    DVT_GRAD_ADD,   /* adds to it; dvt_zero_grad resets it */
    DVT_GRAD_NULL   /* no gradient */
} dvt_grad_req;

/* A mode that dvt_record_begin sets, or leaves as it is. */
typedef enum dvt_switch { DVT_UNCHANGED = -1, DVT_OFF, DVT_ON } dvt_switch;

/* State of DVT_RECORD and the others; its fields are private. */
typedef struct dvt_record_guard {
    int recording, training;
    int once;
} dvt_record_guard;

/* Set recording and train mode of this thread until the matching end. NULL is allowed at the
   end. */
DVT_API dvt_record_guard dvt_record_begin(dvt_switch recording, dvt_switch training);
DVT_API void dvt_record_end(dvt_record_guard *guard);
/* Modes of the block that follows: record in train mode; record in predict mode; do not record;
   train mode; predict mode. */
#define DVT_RECORD DVT_MODE_SCOPE(DVT_ON, DVT_ON)
#define DVT_RECORD_PREDICT DVT_MODE_SCOPE(DVT_ON, DVT_OFF)
#define DVT_PAUSE DVT_MODE_SCOPE(DVT_OFF, DVT_OFF)
#define DVT_TRAIN_MODE DVT_MODE_SCOPE(DVT_UNCHANGED, DVT_ON)
#define DVT_PREDICT_MODE DVT_MODE_SCOPE(DVT_UNCHANGED, DVT_OFF)
#define DVT_MODE_SCOPE(recording, training)                                                        \
    DVT_GUARDED("DVT_RECORD", dvt_record_guard, dvt_g_record,                                      \
                dvt_record_begin(recording, training), dvt_record_end)
/* Set the modes until the end of the enclosing block, as declarations. break then leaves the loop
   around it, see [dvt:scope]. */
#define DVT_RECORD_SCOPED DVT_MODE_SCOPED(DVT_ON, DVT_ON)
#define DVT_PAUSE_SCOPED DVT_MODE_SCOPED(DVT_OFF, DVT_OFF)
#define DVT_MODE_SCOPED(recording, training)                                                       \
    DVT_GUARD_DECLARED(dvt_record_guard, DVT_GUARD_NAME(dvt_g_recorded, __LINE__),                 \
                       dvt_record_begin(recording, training), dvt_record_end)
/* Return whether this thread records, and whether it is in train mode. */
DVT_API bool dvt_is_recording(void);
DVT_API bool dvt_is_training(void);

/* Gives x a gradient array of its shape, dtype and context, filled with 0, and detaches x from the
   operation that computed it. Attaching again keeps the array; DVT_GRAD_NULL removes it. Errors:
   DTYPE (not a float), VALUE (an invalid req), HOST_MEMORY, DEVICE_MEMORY. */
DVT_API dvt_status dvt_attach_grad(dvt_array *x, dvt_grad_req req);
/* Returns the gradient array. Owns: x.  Errors: GRAD (none attached), and NULL is returned. */
DVT_API dvt_array *dvt_grad(dvt_array *x);
/* Sets x's gradient to 0. Errors: GRAD (none attached). */
DVT_API dvt_status dvt_zero_grad(dvt_array *x);

/* Computes d(sum of y) / d(x) for every attached x, for y of any shape: the head gradient is ones.
   Frees the graph. A call that fails changes no attached gradient and keeps the graph.
   Copies: a gradient returns to the context of its array.  Waits: no.
   Errors: GRAD (y was not recorded; the graph is used up; a value that a gradient reads was
   overwritten since), HOST_MEMORY, DEVICE_MEMORY. */
DVT_API dvt_status dvt_backward(dvt_array *y);

/* Selects what a backward pass does with the recorded graph. */
typedef enum dvt_graph_use {
    DVT_FREE_GRAPH,   /* frees it: one backward pass */
    DVT_RETAIN_GRAPH, /* keeps it for another one */
    DVT_CREATE_GRAPH  /* keeps it, and records this pass: for gradients of gradients */
} dvt_graph_use;

/* Computes the gradients of several heads at once, with their own head gradients. head_grads NULL,
   or a NULL entry, means ones; an entry is an optional array, see [dvt:status].
   With DVT_CREATE_GRAPH attached gradients are recorded arrays, which keep their graph. A later
   backward, dvt_zero_grad or dvt_attach_grad does not write into them, but attaches a new array.
   That, or the release of the array they belong to, ends their graph.
   Errors: as dvt_backward; RANGE (n < 1), SHAPE, DTYPE, CONTEXT (a head and its gradient), VALUE
   (use). */
DVT_API dvt_status dvt_backward_from(dvt_array *const *heads, dvt_array *const *head_grads, int n,
                                     dvt_graph_use use);
/* Computes the gradients of the heads with respect to `vars`, as new arrays in out[0..n_vars). Does
   not change attached gradients. An unused variable gets zeros. vars must be attached, or recorded
   results.
   Owns: the innermost scope owns out[].  Errors: as dvt_backward_from. */
DVT_API dvt_status dvt_gradients(dvt_array *const *heads, dvt_array *const *head_grads, int n,
                                 dvt_array *const *vars, int n_vars, dvt_graph_use use,
                                 dvt_array **out);
/* Returns an array on the same memory without history: gradients stop there. Copies: never. */
DVT_API dvt_array *dvt_detach(dvt_array *x);
/* Returns whether x is the result of a recorded operation, or has a gradient attached. */
DVT_API bool dvt_has_history(const dvt_array *x);
