/* Internals of blocks and parameters, for this directory and for training.

   new  -- dvt_block_initialize, extents unknown -->  deferred  -- first forward -->  ready
   new  -- dvt_block_initialize, extents known ------------------------------------>  ready

   A change of several parameters first makes a plan for each, which includes everything that can
   fail. Then it commits all plans. */
#ifndef DVTI_NN_H
#define DVTI_NN_H
#include "4_ops/dvt_op.h"

typedef enum dvti_param_state {
    DVTI_PARAM_NEW,
    DVTI_PARAM_DEFERRED,
    DVTI_PARAM_READY
} dvti_param_state;

struct dvt_param {
    dvti_object object;
    char *name_text;        /* read it with dvti_param_name */
    const char *short_name; /* "weight" */
    dvt_block *block;       /* numbers the name; NULL after the block was freed */
    dvt_shape shape;        /* extents of 0 are unknown */
    dvt_dtype dtype;
    dvt_init own;   /* from dvt_param_set_init and descriptors; kind DVT_INIT_DEFAULT: none */
    dvt_init rule;  /* implied by the short name: bias 0, gamma 1 ...; DVT_INIT_DEFAULT: nothing */
    bool fixed;     /* without gradient: running statistics, integers */
    bool statistic; /* running_*, moving_*: keeps its dtype in mixed precision */
    dvt_grad_req grad_req;
    double lr_mult, wd_mult;
    /* the list had a context twice: backward passes between two steps accumulate */
    bool sums;
    dvti_atomic state; /* dvti_param_state; says which fields below are valid */
    dvt_init pending;  /* deferred: the distribution to draw from */
    dvt_ctx_list ctxs; /* deferred and ready: without repetition, in the given order */
    dvt_array *copy[DVT_MAX_CONTEXTS]; /* ready: one per context, owned, gradients attached */
    struct dvti_cast *cast; /* NULL, or the values of each copy in 16 bits (dvt_mixed.c) */
};

#define DVTI_SCALE_LIMIT 24 /* log2 of the largest loss scale; -24: of the smallest */

/* Mixed precision of a net, shared by all its blocks. */
typedef struct dvti_mixed {
    dvti_object object;
    const dvt_block *root; /* the net that it was set for; NULL after that was freed */
    dvt_dtype compute;     /* DVT_F16 or DVT_BF16 */
    bool scaling;          /* gradients are scaled and checked */
    bool fixed;            /* the scale does not change */
    int scale;             /* log2 */
    int64_t interval;      /* good steps before the scale grows */
    int64_t good, skipped; /* steps since the scale last changed; skipped steps */
} dvti_mixed;

struct dvt_params {
    dvti_object object;
    dvt_param **item; /* retained */
    size_t count, capacity;
};

struct dvt_block {
    dvti_object object;
    dvt_block_desc desc; /* its kind is a copy that the block owns */
    char *stem;          /* "dense": its parameters are named "dense0_..." */
    dvti_atomic number;  /* -1 until first needed */
    dvt_block **child;   /* retained */
    size_t n_child, child_capacity;
    dvt_param **param; /* owned */
    size_t n_param, param_capacity;
    int above;         /* larger than that of any parent; bounds the depth of nesting */
    dvti_mixed *mixed; /* NULL, or owned */
};

/* ---- parameters ---- */
DVTI_FN bool dvti_param_ready(const dvt_param *p);
/* Sets UNINITIALIZED: the parameter has no values yet. */
DVTI_FN void dvti_param_not_ready(const char *function, const dvt_param *p);
/* Returns the copy on ctx, or NULL with UNINITIALIZED or CONTEXT set. Messages name `function`. */
DVTI_FN dvt_array *dvti_param_on(const char *function, dvt_param *p, dvt_ctx ctx);
/* Checks that p has a copy on ctx, or will have one; sets CONTEXT otherwise. */
DVTI_FN bool dvti_param_is_on(const char *function, const dvt_param *p, dvt_ctx ctx);
/* Returns whether no extent is 0. */
DVTI_FN bool dvti_shape_known(dvt_shape shape);
/* Returns whether the shapes agree wherever `known` is known. */
DVTI_FN bool dvti_shape_accepts(dvt_shape known, dvt_shape given);
/* Creates a parameter with one reference, owned by the block that registers it. Returns NULL with
   HOST_MEMORY set. */
DVTI_FN dvt_param *dvti_param_new(const char *function, dvt_block *block, const char *short_name,
                                  dvt_shape shape, dvt_dtype dtype, dvt_init own);
/* Returns "dense0_weight". A block gets its number late, when it is added to another or when a name
   is read. C evaluates the arguments of DVT_NN_ADD(net, dvt_nn_dense(..), dvt_nn_dense(..)) in any
   order, and numbers should follow the net's order. */
DVTI_FN const char *dvti_param_name(const dvt_param *p);
DVTI_FN void dvti_block_name(dvt_block *block);
/* Writes p's name if its block has a number. */
DVTI_FN void dvti_param_write_name(dvt_param *p);
/* Returns the maximum size of a name, with the final 0. */
DVTI_FN size_t dvti_param_name_size(const dvt_block *block, const char *short_name);
/* Returns the mean of the copies, in host memory, in the parameter's dtype. It is exact where all
   copies are equal. */
DVTI_FN dvt_array *dvti_param_average(const char *function, dvt_param *p);
/* Returns the mean of n > 0 float arrays of one shape and dtype, in host memory. */
DVTI_FN dvt_array *dvti_copies_average(dvt_array *const *copy, int n);
/* Resolves the contexts of a list: replaces defaults and removes repetitions; an empty list means
   the default context. Returns false with RANGE or NO_DEVICE set. */
DVTI_FN bool dvti_ctxs_resolve(const char *function, dvt_ctx_list given, dvt_ctx_list *out);
/* Returns whether a context occurs more than once. Every part computed there then adds to the same
   copy. */
DVTI_FN bool dvti_ctxs_repeat(const dvt_ctx_list *given);

/* ---- plans ---- */
typedef struct dvti_plan {
    dvt_param *param; /* NULL: nothing to do */
    bool deferred;    /* only stores init and contexts */
    bool sums;        /* new value of the parameter's field */
    dvt_init init;
    dvt_shape shape;
    dvt_ctx_list ctxs;
    dvt_array *copy[DVT_MAX_CONTEXTS];
} dvti_plan;

/* Returns n empty plans, or NULL with HOST_MEMORY set. */
DVTI_FN dvti_plan *dvti_plans_new(const char *function, size_t n);
/* Copies `values` (any dtype and context) to the plan's contexts. Attaches gradients as the
   parameter requires. */
DVTI_FN bool dvti_plan_fill(dvti_plan *plan, dvt_array *values);
/* Does the same with one array for each of the plan's contexts. */
DVTI_FN bool dvti_plan_fill_each(dvti_plan *plan, dvt_array *const *values);
/* Commits the plans. It cannot fail. Arrays of contexts that remain keep their identity. */
DVTI_FN void dvti_plans_commit(dvti_plan *plans, size_t n);
/* Frees the plans and everything uncommitted. */
DVTI_FN void dvti_plans_drop(dvti_plan *plans, size_t n);
/* One lock protects the changes of all parameters: first forward passes may come from several
   threads. */
DVTI_FN void dvti_params_lock(void);
DVTI_FN void dvti_params_unlock(void);
DVTI_FN void dvti_plan_commit_locked(dvti_plan *plan);

/* ---- initial values ---- */
/* Returns the distribution that dvt_block_initialize draws p from when given `init`. */
DVTI_FN dvt_init dvti_init_choose(const dvt_param *p, dvt_init init);
/* Checks init for p. Returns false with RANGE or SHAPE set: unusable numbers, Xavier on a
   vector. */
DVTI_FN bool dvti_init_check(const char *function, const dvt_param *p, dvt_init init);
/* Returns new values on cpu(0), in the current scope. */
DVTI_FN dvt_array *dvti_init_draw(const char *function, const dvt_param *p, dvt_init init,
                                  dvt_shape shape);
/* Initializes a deferred parameter if its shape is known now. Returns false with the error set. */
DVTI_FN bool dvti_param_finish(const char *function, dvt_param *p);
/* Does its first step: returns whether the shape is known; sets UNINITIALIZED otherwise. */
DVTI_FN bool dvti_param_shape_ready(const char *function, const dvt_param *p, dvt_shape shape);
/* Draws plan->init and copies it to the plan's contexts. */
DVTI_FN bool dvti_plan_draw(const char *function, dvti_plan *plan);

/* ---- shapes without computing (dvt_infer_shapes.c) ---- */
/* Returns whether this thread infers shapes. Then dvt_param_shape and dvt_param_set_shape use the
   inferred shapes, which parameters get at the end. */
DVTI_FN bool dvti_inferring(void);
/* Returns whether this thread has inferred the shape of p. */
DVTI_FN bool dvti_inferred_shape(const dvt_param *p, dvt_shape *shape);
/* Keeps the shape for the end. Returns false with HOST_MEMORY set. */
DVTI_FN bool dvti_infer_set_shape(dvt_param *p, dvt_shape shape);
/* Returns the array without memory in place of p's copies; NULL with the error set. */
DVTI_FN dvt_array *dvti_infer_data(const char *function, dvt_param *p);
/* Does what a forward pass does before it computes: see dvti_block_prepare. */
DVTI_FN bool dvti_infer_prepare(dvt_block *block, dvt_array *x);
/* Called by each forward pass of this thread with its depth. If an exception or longjmp has ended
   the inference, restores the state before it. */
DVTI_FN void dvti_infer_enter(int depth);

/* ---- collections ---- */
DVTI_FN dvt_params *dvti_params_new(const char *function);
/* Appends p and retains it, unless the collection already has it. */
DVTI_FN bool dvti_params_add(const char *function, dvt_params *params, dvt_param *p);

/* ---- regular expressions ---- */
typedef struct dvti_pattern_step {
    unsigned char op, c;
    int32_t x, y; /* jumps, relative to this step */
    uint32_t set[8];
} dvti_pattern_step;

typedef struct dvti_pattern {
    dvti_pattern_step *step;
    size_t count, capacity;
    int32_t *now, *next, *stack; /* scratch memory of one match */
    size_t *seen;
} dvti_pattern;

/* Compiles the pattern. Returns false with VALUE (position and reason) or HOST_MEMORY set. */
DVTI_FN bool dvti_pattern_compile(const char *function, const char *text, dvti_pattern *out);
/* Returns whether a prefix of the text matches, as Python's re.match. */
DVTI_FN bool dvti_pattern_match(dvti_pattern *pattern, const char *text);
DVTI_FN void dvti_pattern_free(dvti_pattern *pattern);

/* ---- blocks ---- */
/* Makes a block of the library, which names its parameters "<stem>0_". It takes `state` and frees
   it with the block, or on failure. */
DVTI_FN dvt_block *dvti_block_make(const char *function, const dvt_block_desc *desc,
                                   const char *stem, void *state);

/* The fixed part of a block of the library. infer and describe may be NULL. */
typedef struct dvti_nn_kind {
    const char *kind, *stem;
    dvt_array *(*forward)(dvt_block *self, void *user, dvt_array *x);
    dvt_status (*infer)(dvt_block *self, void *user, dvt_array *x);
    size_t (*describe)(const dvt_block *self, void *user, char *buffer, size_t size);
} dvti_nn_kind;

/* Makes a block whose user pointer is a copy of the settings. */
DVTI_FN dvt_block *dvti_nn_block(const char *function, const dvti_nn_kind *kind,
                                 const void *settings, size_t bytes);
/* Removes a block that could not be completed from the scope and frees it. Returns NULL. */
DVTI_FN dvt_block *dvti_block_discard(dvt_block *block);
/* Adds a parameter that never has a gradient. */
DVTI_FN dvt_param *dvti_block_add_fixed(dvt_block *block, const char *name, dvt_shape shape,
                                        dvt_dtype dtype);
typedef dvt_array *(*dvti_forward_fn)(dvt_block *self, void *user, dvt_array *x);

/* Does dvt_block_forward with another forward function, for calls with more arguments. */
DVTI_FN dvt_array *dvti_block_forward(dvt_block *net, dvt_array *x, dvti_forward_fn forward,
                                      void *user);
/* Returns how many calls of dvt_block_forward run on this thread. */
DVTI_FN int dvti_forward_depth(void);
DVTI_FN bool dvti_block_is_sequential(const dvt_block *block);
DVTI_FN dvt_array *dvti_sequential_forward(dvt_block *self, void *user, dvt_array *x);

/* Called before (y NULL) and after each block of this thread's dvt_block_forward. The setter
   returns the previous tracer. */
typedef struct dvti_tracer {
    void (*visit)(void *user, dvt_block *block, dvt_array *y);
    void *user;
    const char *function; /* for messages, in place of dvt_block_forward */
} dvti_tracer;

DVTI_FN dvti_tracer dvti_set_tracer(dvti_tracer tracer);
/* Infers the shapes of a net for an input, with that tracer, whose function messages name. Sets
   them in all parameters, or in none. `out` receives the result's shape; it may be NULL.
   `needs_values` receives whether the call failed because a forward function asked for values,
   which is then no error. NULL: it is one. */
DVTI_FN dvt_status dvti_infer_net(dvt_block *net, dvt_shape input, dvt_dtype dtype,
                                  dvti_tracer tracer, dvt_shape *out, bool *needs_values);
/* Calls the block's infer function. Returns false with the error set. */
DVTI_FN bool dvti_block_infer(dvt_block *block, dvt_array *x);
/* Returns a frame. While it is set, errors begin with the call and the block: "dvt_block_forward:
   dense1 (Dense(84 -> 10, linear)): ". */
DVTI_FN dvti_error_frame dvti_block_frame(const dvt_block *block);
/* Checks that both numbers of a pair are `least` or more; sets RANGE otherwise. */
DVTI_FN bool dvti_nn_pair_ok(const char *function, const char *what, const int *pair, int least);
/* Check, apply and print activations; the text is Gluon's, as in "Activation(relu)". */
DVTI_FN bool dvti_activation_ok(const char *function, dvt_activation activation);
DVTI_FN dvt_array *dvti_activate(dvt_array *x, dvt_activation activation);
DVTI_FN const char *dvti_activation_text(dvt_activation activation);
/* Returns a float as Python prints it: 0.9, 1e-05, 1.0. */
DVTI_FN const char *dvti_python_number(double value);

/* ---- mixed precision (dvt_mixed.c) ---- */
/* The outermost forward pass of a net with mixed precision on this thread. */
typedef struct dvti_region {
    const dvti_mixed *mixed;  /* NULL: none */
    int depth;                /* calls of dvt_block_forward around it */
    dvt_array *given, *input; /* its x, before and after the conversion to 16 bits */
} dvti_region;

/* Enters the region when `net` begins one, and replaces *x by its conversion; NULL with the error
   set. `depth` is the number of calls around this one. Returns the previous region. */
DVTI_FN dvti_region dvti_region_begin(const dvt_block *net, dvt_array **x, int depth);
/* Restores the previous region. Returns y, or its conversion to float32 if the region ends. */
DVTI_FN dvt_array *dvti_region_end(const dvti_region *outer, dvt_array *y);
/* Returns the region's net, or NULL outside of a region. */
DVTI_FN const dvti_mixed *dvti_region_mixed(void);
/* Returns x, or the region's own input in its original dtype: class numbers of 16 bits would be
   rounded. Returns NULL with DTYPE set for other 16-bit floats in a region. */
DVTI_FN dvt_array *dvti_region_classes(dvt_array *x);
/* Returns the copy on ctx, inside of a region in the dtype in which it computes. The conversion is
   recorded, and made once for all uses of the same values. */
DVTI_FN dvt_array *dvti_param_compute(dvt_param *p, dvt_ctx ctx);
/* Free the conversions, and what a block that is freed knows of mixed precision. */
DVTI_FN void dvti_param_drop_casts(dvt_param *p);
DVTI_FN void dvti_mixed_leave(dvt_block *block);
/* Check a new child of a block, and give it the block's mixed precision, if there is one. */
DVTI_FN dvt_status dvti_mixed_admits(const char *function, const dvt_block *self,
                                     const dvt_block *child);
DVTI_FN void dvti_mixed_extend(const dvt_block *self, dvt_block *child);

/* ---- losses ---- */
/* Checks that both are given and on one context, and that the prediction has a first axis to
   keep. */
DVTI_FN bool dvti_loss_check(const char *name, dvt_array *prediction, dvt_array *label);
/* Applies dvt_mean or dvt_sum to all axes but the first. Returns NULL for NULL. */
DVTI_FN dvt_array *dvti_loss_reduce(dvt_array *x, dvt_array *(*reduce)(dvt_array *, dvt_axes));

/* ---- names in files ---- */
typedef struct dvti_named {
    char *name; /* "0.weight" */
    dvt_param *param;
} dvti_named;

typedef struct dvti_named_list {
    dvti_named *item;
    size_t count, capacity;
} dvti_named_list;

DVTI_FN void dvti_named_free(dvti_named_list *list);
/* Collects all structural names of a net, in order; a shared parameter has several. Returns false
   with HOST_MEMORY set. */
DVTI_FN bool dvti_named_collect(const char *function, const dvt_block *net, dvti_named_list *list);

/* A name that the map of the options gives to an array of the file. */
typedef struct dvti_target {
    char *name; /* "": the array is left out */
    int file;
    int pair; /* -1: no pair matches, the name is that of the array */
} dvti_target;

/* What is wrong with a pair of the map. */
typedef enum dvti_pair_fault {
    DVTI_PAIR_GOOD,
    DVTI_PAIR_WITHOUT_ARRAY, /* matches none of the file */
    DVTI_PAIR_WITHOUT_PARAM  /* gives no array the name of a parameter */
} dvti_pair_fault;

/* State of one dvt_block_load call. */
typedef struct dvti_load {
    const char *function; /* for messages */
    const char *path;
    dvt_load_options options;
    dvt_ctx_list ctxs; /* n 0: the parameters' own contexts */
    bool sums;         /* see dvti_plan */
    dvt_array_list *file;
    /* the net's names; `from` gives the array of the file for each (-1: none) */
    dvti_named_list named;
    int *from;
    dvti_target *target; /* with a map only */
    size_t n_target, target_capacity;
} dvti_load;

/* Fills in named and from. Returns false with VALUE or NAME (the map) or HOST_MEMORY set. */
DVTI_FN bool dvti_load_match(dvti_load *load, const dvt_block *net);
DVTI_FN bool dvti_load_match_map(dvti_load *load);
DVTI_FN void dvti_targets_free(dvti_load *load);
/* Returns the name of array i without the "arg:" or "aux:" of exported models. */
DVTI_FN const char *dvti_load_plain_name(const dvti_load *load, int i);
/* Return whether array i sets a parameter, and whether the map leaves it out. */
DVTI_FN bool dvti_load_used(const dvti_load *load, int i);
DVTI_FN bool dvti_map_leaves_out(const dvti_load *load, int file);
/* Returns the number of pairs, and judges one. A pair that only leaves arrays out is good. */
DVTI_FN int dvti_map_pairs(const dvti_load *load);
DVTI_FN dvti_pair_fault dvti_map_judge(const dvti_load *load, int pair);
/* Returns the shape as text, with ? for extents of 0, which any array may have. */
DVTI_FN const char *dvti_open_shape_text(dvt_shape shape);
/* Returns whether names, shapes and dtypes fit; else one error says what does not. Logs what a load
   leaves out that fits. */
DVTI_FN bool dvti_load_report(const dvti_load *load);

#endif
