/* The way of a call. One path for every operation, one helper for each step:

       public function
         -> dvti_check       NULL inputs, mixed contexts
         -> shapes, dtypes   dvti_broadcast, dvt_promote, dvti_axis ... in the family's file
         -> dvti_array_new   the result
         -> dvti_run         the launch, in 2_core
         -> dvti_finish      the tape entry when recording

   A family's file (op_*.c) holds its public functions and nothing else's. */
#ifndef DVTI_OPS_H
#define DVTI_OPS_H
#include "3_kernels/dvt_kernels.h"

/* What a gradient needs to know of a call besides its inputs; each family says which slots it uses. */
typedef struct dvti_attr {
    double f[4];
    int64_t i[12];
} dvti_attr;

/* A remembered operation. Holds its inputs; the result owns a reference to the node. */
typedef struct dvti_node {
    dvti_node_head head;
    dvti_atomic references;
    dvti_op op;
    const char *name; /* "dvt_mul" */
    int64_t sequence; /* later operations have larger numbers */
    dvti_attr attr;
    dvt_array *
        result; /* the result's memory without its history, so that the node does not own itself; NULL when no
                               gradient reads it */
    int64_t result_version; /* of the result's storage when it was recorded */
    bool used;              /* a backward without retain_graph has been here: the inputs are gone */
    int n_in;
    dvt_array **in;
    int64_t *version;       /* of each input's storage when it was recorded */
    struct dvti_node *next; /* while dying */
} dvti_node;

/* Which values the gradient to input number `input` reads: bit k for input k, and DVTI_READS_RESULT. The tape keeps results
   that are read, and backward refuses values that were overwritten since. */
#define DVTI_READS_RESULT (1u << 30)
DVTI_FN unsigned dvti_grad_reads(const dvti_node *node, int input);
/* Gives up one reference; NULL is fine. */
DVTI_FN void dvti_node_release(dvti_node *node);
/* Drops what a node holds: its inputs and its result's memory. */
DVTI_FN void dvti_node_use_up(dvti_node *node);

DVTI_FN dvti_attr dvti_attr_none(void);

/* All inputs are there and live on one context. Otherwise false, with the error set. They are called x, or a, b, ... */
DVTI_FN bool dvti_check(const char *function, dvt_array *const *in, int n);
/* The same for inputs of those names (NULL: "array 0", "array 1", ...). */
DVTI_FN bool dvti_check_named(const char *function, dvt_array *const *in, int n,
                              const char *const *names);
/* false for a NULL while this thread keeps an error: then it may be a failed call's result, and is no "none". Calls in which
   NULL was written by hand do not ask: blocks, gradients. */
DVTI_FN bool dvti_optional(const char *function, const char *what, const dvt_array *x);
/* x may be written now: not a broadcast view, and not recorded while recording. */
DVTI_FN bool dvti_writable(const char *function, dvt_array *x);
/* A result of that shape and dtype may be written into an array that exists. instead: what else to use, for the messages. */
DVTI_FN bool dvti_into_ok(const char *function, dvt_array *into, const dvt_shape *shape,
                          dvt_dtype dtype, const char *instead);
/* A result that is written into an array that exists has no place on the tape: while recording, its inputs, the first of the
   function's arguments, must have no history. `names` are the arguments', or NULL
   for the usual ones. */
DVTI_FN bool dvti_keeps_history(const char *function, dvt_array *const *in, int n,
                                const char *const *names, const char *instead);
/* Tells the tape that x's memory has changed. */
DVTI_FN void dvti_written(dvt_array *x);

/* Remembers the operation when this thread records and an input has history; the result is a float. Returns out, or NULL
   with the error set when there is no memory for the node. A NULL `out` is passed on. */
DVTI_FN dvt_array *dvti_finish(dvt_array *out, dvti_op op, const char *name, dvt_array *const *in,
                               int n, const dvti_attr *attr);
/* x's memory has what `op` makes of x (and other, unless NULL) already, and nobody else has seen x: the result, recorded. For operations that
   follow others in one launch, whose gradients read no x. */
DVTI_FN dvt_array *dvti_became(dvt_array *x, dvti_op op, const char *name, dvt_array *other);
/* The two halves of dvti_finish, for results whose elements must not change when there is no memory for the node: it is made
   before they are written (NULL when nothing is to be remembered), and given to `out` after. false: the error is set. */
DVTI_FN bool dvti_prepare(dvt_array *out, dvti_op op, const char *name, dvt_array *const *in, int n,
                          const dvti_attr *attr, dvti_node **node);
DVTI_FN dvt_array *dvti_remember(dvt_array *out, dvti_node *node);
/* x's memory without history, not owned by a scope: drop it with dvti_disown. NULL with
   HOST_MEMORY. */
DVTI_FN dvt_array *dvti_alias_unowned(dvt_array *x);

/* ---- shared by families and gradients ---- */
/* x, and y and z unless they are NULL, are contiguous, of one dtype and not empty, and no gradient will need them: then one launch that has
   the bits of several operations may take their place, where the backend supports it. */
DVTI_FN bool dvti_composes_unseen(const dvt_array *x, const dvt_array *y, const dvt_array *z);
/* in[k] for k = n_in of an elementwise call; scalar_at: 0 none, 1 the scalar stands before the array, 2 behind it.
   into: NULL, or the array that receives the result. */
DVTI_FN dvt_array *dvti_elementwise(const char *name, dvti_op op, dvt_array *const *in, int n,
                                    int scalar_at, double scalar, dvt_array *into);
/* `in` is another window on the memory that `into` writes: it must be copied before. */
DVTI_FN bool dvti_overlaps(const dvt_array *in, const dvt_array *into);
/* g put into zeros of extent `extent` along an axis, at start, start + step, ...: the gradient of dvt_slice. Recorded. */
DVTI_FN dvt_array *dvti_unslice(dvt_array *g, int axis, int64_t start, int64_t step,
                                int64_t extent);
/* The gradients of dvt_take and dvt_take_along_axis: g added at the indices into zeros of extent n along the axis. index is int64, as
   the recorded operation holds it. Recorded: their own gradients are dvt_take and dvt_take_along_axis. */
DVTI_FN dvt_array *dvti_take_add(dvt_array *g, dvt_array *index, int axis, int64_t n);
DVTI_FN dvt_array *dvti_take_along_add(dvt_array *g, dvt_array *index, int axis, int64_t n);
/* dvt_take_along_axis for an int64 index that is contiguous, in range and of x's shape but for the axis. Recorded. */
DVTI_FN dvt_array *dvti_take_along_of(const char *name, dvt_array *x, dvt_array *index, int axis);
/* dvt_cumsum along an axis that is not negative; backwards: of the elements from each one to the end. Recorded: each other's gradients. */
DVTI_FN dvt_array *dvti_cumsum(dvt_array *x, int axis, bool backwards);
/* Resolves a pair of dvt_conv2d_options or dvt_pool2d_options: a first 0 becomes `first`, a second 0
   repeats the first. No other function knows this rule. `out` may be `pair`. */
DVTI_FN void dvti_pair(const int *pair, int first, int *out);
/* The same for a padding, with 0 for DVT_PAD_NONE. Resolving a result again gives other numbers:
   (2, 0) would become (2, 2). */
DVTI_FN void dvti_padding(const int *pair, int *out);
/* The resolved pairs of a pooling that is not global. */
DVTI_FN void dvti_pool2d_pairs(const dvt_pool2d_options *p, int *size, int *stride, int *padding);
/* Convolution and pooling with resolved parameters, recorded: each other's gradients. attr.i of convolution: stride, padding
   and dilation (height, width each), groups. Of pooling: window, stride and padding (height, width each), 1 to
   divide by the elements inside, extents of the result. */
/* dvt_conv2d would compute x with weights of that shape; otherwise false, with its error set. */
DVTI_FN bool dvti_conv2d_accepts(const char *name, dvt_array *x, dvt_shape w,
                                 const dvt_conv2d_options *p);
DVTI_FN dvt_array *dvti_conv2d(dvt_array *x, dvt_array *w, dvt_array *bias, const dvti_attr *attr);
/* dvt_conv2d and dvt_linear for callers that know their bias: NULL is none. */
DVTI_FN dvt_array *dvti_conv2d_layer(dvt_array *x, dvt_array *w, dvt_array *bias,
                                     const dvt_conv2d_options *p, bool relu);
DVTI_FN dvt_array *dvti_linear(dvt_array *x, dvt_array *w, dvt_array *bias, bool relu);
/* dvt_matmul under another name, with the last two axes of either exchanged first. */
DVTI_FN dvt_array *dvti_matmul(const char *name, dvt_array *a, dvt_array *b, bool transpose_a,
                               bool transpose_b);
/* x (.., k) times w (units, k) transposed, plus bias (or NULL), then relu: in float32 on cpu(), in one launch. */
DVTI_FN dvt_array *dvti_linear_at_once(dvt_array *x, dvt_array *w, dvt_array *bias, bool relu);
DVTI_FN dvt_array *dvti_conv2d_data(dvt_array *g, dvt_array *w, dvt_shape x_shape,
                                    const dvti_attr *attr);
DVTI_FN dvt_array *dvti_conv2d_weight(dvt_array *x, dvt_array *g, dvt_shape w_shape,
                                      const dvti_attr *attr);
DVTI_FN dvt_array *dvti_max_pool2d_data(dvt_array *g, dvt_array *x, const dvti_attr *attr,
                                        bool past_relu);
DVTI_FN dvt_array *dvti_max_pool2d_pick(dvt_array *v, dvt_array *x, const dvti_attr *attr);
DVTI_FN dvt_array *dvti_avg_pool2d(dvt_array *x, const dvti_attr *attr);
DVTI_FN dvt_array *dvti_avg_pool2d_data(dvt_array *g, dvt_shape x_shape, const dvti_attr *attr);
/* The dtype of a FLOAT operation's result: integers and bool become float32. */
DVTI_FN dvt_dtype dvti_float_dtype(dvt_dtype dtype);
/* x as float32 where it is float16 or bfloat16, otherwise x. Recorded. For sums of squares, which
   leave float16's range at deviations of 256, and for chains of operations whose intermediate
   results are not to be rounded to 16 bits. NULL in, NULL out. */
DVTI_FN dvt_array *dvti_wide_float(dvt_array *x);
/* The axes of a reduction as a bit mask; false with AXIS set (out of range, repeated). */
DVTI_FN bool dvti_axes_mask(const char *function, dvt_axes axes, const dvt_shape *shape,
                            unsigned *mask);
/* Checks an enumeration of two: false with VALUE set. */
DVTI_FN bool dvti_choice(const char *function, const char *argument, int value, const char *zero,
                         const char *one);

#endif
