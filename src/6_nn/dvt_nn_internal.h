/* Blocks and parameters from the inside, for this room and for training.

   A parameter is new, deferred (dvt_block_initialize was called, extents are unknown) or ready. Whatever changes several
   parameters at once makes a plan for each first, everything that can fail included, and then commits all of them. */
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
    dvt_block *block;       /* that gives the name its number; NULL when that is gone */
    dvt_shape shape;        /* extents of 0 are not known yet */
    dvt_dtype dtype;
    dvt_init own;  /* dvt_param_set_init and descriptors; kind DVT_INIT_DEFAULT: none */
    dvt_init rule; /* what the short name implies: bias 0, gamma 1 ...; DVT_INIT_DEFAULT: nothing */
    bool fixed;    /* never has a gradient: running statistics, integers */
    dvt_grad_req grad_req;
    double lr_mult, wd_mult;
    bool sums;         /* the list named a context twice: backwards between two steps add up */
    dvti_atomic state; /* dvti_param_state; what follows may be read once it says so */
    dvt_init pending;  /* deferred: what to draw */
    dvt_ctx_list ctxs; /* deferred and ready: each once, in the order given */
    dvt_array *copy[DVT_MAX_CONTEXTS]; /* ready: one per context, owned, gradients attached */
};

struct dvt_params {
    dvti_object object;
    dvt_param **item; /* retained */
    size_t count, capacity;
};

struct dvt_block {
    dvti_object object;
    dvt_block_desc desc; /* its kind is our own text */
    char *stem;          /* "dense": its parameters are called "dense0_..." */
    dvti_atomic number;  /* -1 until somebody needs it */
    dvt_block **child;   /* retained */
    size_t n_child, child_capacity;
    dvt_param **param; /* owned */
    size_t n_param, param_capacity;
    int above; /* more than that of any block that it is a child of, so that it bounds how deep blocks are nested */
};

/* ---- parameters ---- */
DVTI_FN bool dvti_param_ready(const dvt_param *p);
/* The copy on ctx; NULL with UNINITIALIZED or CONTEXT set, for which `function` gives the name. */
DVTI_FN dvt_array *dvti_param_on(const char *function, dvt_param *p, dvt_ctx ctx);
/* p has a copy on ctx, or will have one; otherwise CONTEXT. */
DVTI_FN bool dvti_param_is_on(const char *function, const dvt_param *p, dvt_ctx ctx);
/* No extent is 0. */
DVTI_FN bool dvti_shape_known(dvt_shape shape);
/* Two shapes agree wherever the first is known. */
DVTI_FN bool dvti_shape_accepts(dvt_shape known, dvt_shape given);
/* A parameter with one reference, that of the block which registers it. NULL with HOST_MEMORY. */
DVTI_FN dvt_param *dvti_param_new(const char *function, dvt_block *block, const char *short_name,
                                  dvt_shape shape, dvt_dtype dtype, dvt_init own);
/* "dense0_weight". Blocks get their numbers late, when they are added to another or when a name is asked for: C evaluates the
   arguments of DVT_NN_ADD(net, dvt_nn_dense(..), dvt_nn_dense(..)) in any order, and numbers should follow the net's. */
DVTI_FN const char *dvti_param_name(const dvt_param *p);
DVTI_FN void dvti_block_name(dvt_block *block);
/* Writes p's name if its block has a number. */
DVTI_FN void dvti_param_write_name(dvt_param *p);
/* The most characters that dvti_param_name needs, with the final 0. */
DVTI_FN size_t dvti_param_name_size(const dvt_block *block, const char *short_name);
/* The mean of the copies, in main memory, in the parameter's dtype; exact where all copies are equal. */
DVTI_FN dvt_array *dvti_param_average(const char *function, dvt_param *p);
/* The contexts of a list, defaults resolved and each once (empty: the default context). False with RANGE or NO_DEVICE. */
DVTI_FN bool dvti_ctxs_resolve(const char *function, dvt_ctx_list given, dvt_ctx_list *out);
/* Is a context of the list in it more than once? Each of the parts that are computed there then adds to the one copy. */
DVTI_FN bool dvti_ctxs_repeat(const dvt_ctx_list *given);
/* One line for messages: "a, b, c, ... (12 in all)". name(user, i) gives the texts. */
DVTI_FN const char *dvti_brief(char *buffer, size_t size, int n,
                               const char *(*name)(const void *user, int i), const void *user);

/* ---- plans ---- */
typedef struct dvti_plan {
    dvt_param *param; /* NULL: nothing to do */
    bool deferred;    /* only remember init and contexts */
    bool sums;        /* becomes the parameter's */
    dvt_init init;
    dvt_shape shape;
    dvt_ctx_list ctxs;
    dvt_array *copy[DVT_MAX_CONTEXTS];
} dvti_plan;

/* n empty plans; NULL with HOST_MEMORY set. */
DVTI_FN dvti_plan *dvti_plans_new(const char *function, size_t n);
/* Copies of `values` (any dtype and context) on the plan's contexts, with gradients attached as the parameter wants. */
DVTI_FN bool dvti_plan_fill(dvti_plan *plan, dvt_array *values);
/* Cannot fail. Arrays of contexts that stay keep their identity. */
DVTI_FN void dvti_plans_commit(dvti_plan *plans, size_t n);
/* Frees the plans and what was not committed. */
DVTI_FN void dvti_plans_drop(dvti_plan *plans, size_t n);
/* One lock for the changes of all parameters: first forwards may come from several threads. */
DVTI_FN void dvti_params_lock(void);
DVTI_FN void dvti_params_unlock(void);
DVTI_FN void dvti_plan_commit_locked(dvti_plan *plan);

/* ---- initial values ---- */
/* What is drawn for p when dvt_block_initialize is given `init`. */
DVTI_FN dvt_init dvti_init_choose(const dvt_param *p, dvt_init init);
/* False with RANGE or SHAPE set: numbers that cannot be used, Xavier on a vector. */
DVTI_FN bool dvti_init_check(const char *function, const dvt_param *p, dvt_init init);
/* New values on cpu(0), in the current scope. */
DVTI_FN dvt_array *dvti_init_draw(const char *function, const dvt_param *p, dvt_init init,
                                  dvt_shape shape);
/* Gives a deferred parameter its values if its shape is known now. False with the error set. */
DVTI_FN bool dvti_param_finish(const char *function, dvt_param *p);

/* ---- collections ---- */
DVTI_FN dvt_params *dvti_params_new(const char *function);
/* Appends p unless it is there already, counting one more owner. */
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
    int32_t *now, *next, *stack; /* scratch of one match */
    size_t *seen;
} dvti_pattern;

/* False with VALUE set (where it goes wrong and why) or HOST_MEMORY. */
DVTI_FN bool dvti_pattern_compile(const char *function, const char *text, dvti_pattern *out);
/* Does a prefix of the text match, as in Python's re.match? */
DVTI_FN bool dvti_pattern_match(dvti_pattern *pattern, const char *text);
DVTI_FN void dvti_pattern_free(dvti_pattern *pattern);

/* ---- blocks ---- */
/* A block of the library: names parameters "<stem>0_", takes `state`, which is freed with it and also on failure. */
DVTI_FN dvt_block *dvti_block_make(const char *function, const dvt_block_desc *desc,
                                   const char *stem, void *state);
/* Takes a block that could not be completed out of the scope and frees it. Returns NULL. */
DVTI_FN dvt_block *dvti_block_discard(dvt_block *block);
/* A parameter that never has a gradient. */
DVTI_FN dvt_param *dvti_block_add_fixed(dvt_block *block, const char *name, dvt_shape shape,
                                        dvt_dtype dtype);
DVTI_FN bool dvti_block_is_sequential(const dvt_block *block);
DVTI_FN dvt_array *dvti_sequential_forward(dvt_block *self, void *user, dvt_array *x);

/* Called before (y NULL) and after each block of this thread's dvt_block_forward. Returns the tracer that was set. */
typedef struct dvti_tracer {
    void (*visit)(void *user, dvt_block *block, dvt_array *y);
    void *user;
} dvti_tracer;

DVTI_FN dvti_tracer dvti_set_tracer(dvti_tracer tracer);
/* While it is set, errors begin with the call and the block: "dvt_block_forward: dense1 (Dense(84 -> 10, linear)): ". */
DVTI_FN dvti_error_frame dvti_block_frame(const dvt_block *block);
/* Activations: checked, applied, and as Gluon prints them, "Activation(relu)". */
DVTI_FN bool dvti_activation_ok(const char *function, dvt_activation activation);
DVTI_FN dvt_array *dvti_activate(dvt_array *x, dvt_activation activation);
DVTI_FN const char *dvti_activation_text(dvt_activation activation);
/* A float as Python prints it: 0.9, 1e-05, 1.0. */
DVTI_FN const char *dvti_python_number(double value);

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
/* All structural names of a net, in order; a shared parameter has several. False with HOST_MEMORY set. */
DVTI_FN bool dvti_named_collect(const char *function, const dvt_block *net, dvti_named_list *list);

/* One call of dvt_block_load. */
typedef struct dvti_load {
    const char *function; /* for messages */
    const char *path;
    dvt_load_options options;
    dvt_ctx_list ctxs; /* n 0: where the parameters are */
    bool sums;         /* see dvti_plan */
    dvt_array_list *file;
    dvti_named_list named; /* what the net has, and for each which array of the file (-1: none) */
    int *from;
} dvti_load;

/* Fills in named and from; false with NAME (missing, extra) or HOST_MEMORY set. */
DVTI_FN bool dvti_load_match(dvti_load *load, const dvt_block *net);

#endif
