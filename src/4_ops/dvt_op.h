/* The path of a call. Every operation takes the same path, with one helper for each step:

     public function
       -> dvti_check       NULL inputs, mixed contexts
       -> shapes, dtypes   dvti_broadcast, dvt_promote, dvti_axis ... in the family's file
       -> dvti_array_new   the result
       -> dvti_run         the launch, in 2_core
       -> dvti_finish      the tape entry, while recording

   Each family's file (op_*.c) holds only the public functions of its family. */
#ifndef DVTI_OPS_H
#define DVTI_OPS_H
#include "3_kernels/dvt_kernels.h"

/* Parameters of a call that its gradient needs. Each family documents which slots it uses. */
typedef struct dvti_attr {
    double f[4];
    int64_t i[12];
} dvti_attr;

/* A recorded operation. The node holds its inputs; the result owns a reference to the node. */
typedef struct dvti_node {
    dvti_node_head head;
    dvti_atomic references;
    dvti_op op;
    const char *name; /* "dvt_mul" */
    int64_t sequence; /* later operations have larger numbers */
    int loss_scale; /* log2 of the factor in the gradient of its result; see dvti_set_loss_scale */
    dvti_attr attr;
    /* the result's memory without its history, so that the node does not own itself; NULL when no
       gradient reads it */
    dvt_array *result;
    int64_t result_version; /* version of the result's storage at recording */
    bool used;              /* a backward pass without retain_graph has released the inputs */
    int n_in;
    dvt_array **in;
    int64_t *version;       /* version of each input's storage at recording */
    struct dvti_node *next; /* link in the thread's list of dying nodes */
} dvti_node;

/* Returns the values that the gradient to input number `input` reads: bit k for input k, and
   DVTI_READS_RESULT for the result. The tape keeps results that are read. Backward refuses values
   that were overwritten since recording. */
#define DVTI_READS_RESULT (1u << 30)
DVTI_FN unsigned dvti_grad_reads(const dvti_node *node, int input);
/* Releases one reference; NULL is allowed. */
DVTI_FN void dvti_node_release(dvti_node *node);
/* Releases the node's inputs and its result's memory. */
DVTI_FN void dvti_node_clear(dvti_node *node);

/* Sets the loss scale, as its log2, of the operations that this thread records from now on. Returns
   the previous one; 0 outside of nets with mixed precision. The gradient of a node's result is
   computed times 2^loss_scale. Backward rescales a gradient where it goes to a node with another
   scale, or to a leaf, whose scale is 0. A power of two changes no digit. */
DVTI_FN int dvti_set_loss_scale(int log2);

DVTI_FN dvti_attr dvti_attr_none(void);

/* Checks that no input is NULL and that all live on one context. Returns false with the error set
   otherwise. Messages call the inputs x, or a, b, ... */
DVTI_FN bool dvti_check(const char *function, dvt_array *const *in, int n);
/* Does the same for inputs with these names (NULL: "array 0", "array 1", ...). */
DVTI_FN bool dvti_check_named(const char *function, dvt_array *const *in, int n,
                              const char *const *names);
/* Returns false when x is NULL while this thread keeps an error: x may then be the result of a
   failed call, not "none". Blocks and gradients pass a literal NULL and do not call this. */
DVTI_FN bool dvti_optional(const char *function, const char *what, const dvt_array *x);
/* Checks that x may be written: it is no broadcast view, and is not recorded while recording. */
DVTI_FN bool dvti_writable(const char *function, dvt_array *x);
/* Checks that a result of this shape and dtype may be written into the existing array `into`.
   `instead` is the alternative that the messages suggest. */
DVTI_FN bool dvti_into_ok(const char *function, dvt_array *into, const dvt_shape *shape,
                          dvt_dtype dtype, const char *instead);
/* Checks that no input has a history while recording: a result written into an existing array
   cannot be recorded. `in` has the first arguments of the function. `names` has their names; NULL:
   the default ones. */
DVTI_FN bool dvti_keeps_history(const char *function, dvt_array *const *in, int n,
                                const char *const *names, const char *instead);
/* Increments the version of x's storage: its memory has changed. */
DVTI_FN void dvti_written(dvt_array *x);

/* Records the operation when this thread records and an input has history; `out` is then a float
   array. Returns out, or NULL with the error set when there is no memory for the node. Returns NULL
   for a NULL `out`. */
DVTI_FN dvt_array *dvti_finish(dvt_array *out, dvti_op op, const char *name, dvt_array *const *in,
                               int n, const dvti_attr *attr);
/* Records that x is the result of `op` on x (and on `other`, unless NULL). The memory already has
   the values, and the caller is the only owner of x. Serves epilogues, operations that run within
   another one's launch; their gradients must not read x. */
DVTI_FN dvt_array *dvti_record_epilogue(dvt_array *x, dvti_op op, const char *name,
                                        dvt_array *other);
/* Do dvti_finish in two steps, for results that must not change when there is no memory for the
   node. dvti_prepare makes the node before the elements are written (NULL when there is nothing to
   record). dvti_remember then attaches it to `out`. dvti_prepare returns false with the error
   set. */
DVTI_FN bool dvti_prepare(dvt_array *out, dvti_op op, const char *name, dvt_array *const *in, int n,
                          const dvti_attr *attr, dvti_node **node);
DVTI_FN dvt_array *dvti_remember(dvt_array *out, dvti_node *node);
/* Returns an array on x's memory without x's history. No scope owns it: release it with
   dvti_disown. Returns NULL with HOST_MEMORY set. */
DVTI_FN dvt_array *dvti_alias_unowned(dvt_array *x);

#if defined(DVTI_CHECKPOINTS)
/* ---- the state of all random streams, for checkpoints ---- */
struct dvti_streams;
/* Returns engine, seeds and positions as int64 (n), in the current scope; NULL with HOST_MEMORY
   set. */
DVTI_FN dvt_array *dvti_streams_state(const char *function);
/* Makes streams from such a state. Returns NULL with HOST_MEMORY set, or without an error when the
   state is none. */
DVTI_FN struct dvti_streams *dvti_streams_make(const char *function, const int64_t *state,
                                               int64_t n);
/* Replaces the streams of the process by these, and frees both. NULL is allowed. */
DVTI_FN void dvti_streams_adopt(struct dvti_streams *streams);
DVTI_FN void dvti_streams_free(struct dvti_streams *streams);
#endif

/* ---- shared by families and gradients ---- */
/* Checks that x, y and z are contiguous, of one dtype and not empty, and that no gradient will need
   them; y and z may be NULL. Then one launch with the same bits may replace several operations,
   where the backend supports it. */
DVTI_FN bool dvti_fusible(const dvt_array *x, const dvt_array *y, const dvt_array *z);
/* Runs an elementwise operation on in[0..n). scalar_at is 0 without a scalar, 1 when the scalar is
   the first operand, 2 when it is the second. `into` is NULL, or the array that receives the
   result. */
DVTI_FN dvt_array *dvti_elementwise(const char *name, dvti_op op, dvt_array *const *in, int n,
                                    int scalar_at, double scalar, dvt_array *into);
/* Returns the dtype of an array of `dtype` with a scalar. */
DVTI_FN dvt_dtype dvti_with_scalar(dvt_dtype dtype, double s);
/* Returns whether `in` is another view of the memory that `into` writes. It must then be copied
   first; an identical view needs no copy. */
DVTI_FN bool dvti_overlaps(const dvt_array *in, const dvt_array *into);
/* Returns zeros of extent `extent` along an axis with g written at start, start + step, ... This is
   the gradient of dvt_slice. The operation is recorded. */
DVTI_FN dvt_array *dvti_unslice(dvt_array *g, int axis, int64_t start, int64_t step,
                                int64_t extent);
/* Return zeros of extent n along the axis to which g is added at the indices. They are the
   gradients of dvt_take and dvt_take_along_axis, and those are their own gradients. `index` is
   int64, as the recorded operation holds it. The operations are recorded. */
DVTI_FN dvt_array *dvti_take_add(dvt_array *g, dvt_array *index, int axis, int64_t n);
DVTI_FN dvt_array *dvti_take_along_add(dvt_array *g, dvt_array *index, int axis, int64_t n);
/* Does dvt_take_along_axis for an int64 index that is contiguous, in range, and of x's shape except
   along the axis. The operation is recorded. */
DVTI_FN dvt_array *dvti_take_along_of(const char *name, dvt_array *x, dvt_array *index, int axis);
/* Returns cumulative sums along an axis that is not negative; with `backwards`, sums from each
   element to the end. The operation is recorded; the two directions are each other's gradients. */
DVTI_FN dvt_array *dvti_cumsum(dvt_array *x, int axis, bool backwards);
/* Resolves a pair of dvt_conv2d_options or dvt_pool2d_options. A first 0 becomes `first`, a second
   0 becomes a copy of the first. No other function implements this rule. `out` may be `pair`. */
DVTI_FN void dvti_pair(const int *pair, int first, int *out);
/* Does the same for a padding, with 0 for DVT_PAD_NONE. Resolving a result again gives other
   numbers: (2, 0) would become (2, 2). */
DVTI_FN void dvti_padding(const int *pair, int *out);
/* Resolves the pairs of a pooling that is not global. */
DVTI_FN void dvti_pool2d_pairs(const dvt_pool2d_options *p, int *size, int *stride, int *padding);
/* Returns the pairs of (1, what p says). */
DVTI_FN dvt_pool2d_options dvti_pool1d_pairs(const dvt_pool1d_options *p);
/* Convolution and pooling with resolved parameters. The operations are recorded and are each
   other's gradients. Pairs are (height, width):

   attr.i           0, 1     2, 3      4, 5       6                  7, 8
   convolution      stride   padding   dilation   groups
   pooling          window   stride    padding    exclude_padding    extents of the result */
/* Replaces zeros by defaults and checks signs; the shapes decide later whether the window fits. */
DVTI_FN bool dvti_conv2d_resolve(const char *name, const dvt_conv2d_options *p, dvti_attr *attr);
/* Returns the pairs of (1, what p says). */
DVTI_FN dvt_conv2d_options dvti_conv1d_pairs(const dvt_conv1d_options *p);
/* Return whether x, w and bias are floats on one context, and whether x and w have `axes` axes of
   space: 1 or 2. */
DVTI_FN bool dvti_conv2d_floats(const char *name, dvt_array *const *in, int n);
DVTI_FN bool dvti_conv_axes_ok(const char *name, int axes, const dvt_array *x, const dvt_array *w,
                               bool transpose);
/* Inserts a height of 1 into a shape with three axes. */
DVTI_FN dvt_shape dvti_conv_image(dvt_shape shape);
/* Makes all inputs contiguous and converts them to their common dtype (copies are recorded), then
   runs and records the operation. */
DVTI_FN dvt_array *dvti_conv2d_ready(const char *name, dvti_op op, dvt_array *const *in, int n,
                                     dvt_shape shape, const dvti_attr *attr, bool relu);
/* Check that dvt_conv1d or dvt_conv2d, and their transposes, accept x with weights of shape w, by
   their number of axes. Return false with the error set. */
DVTI_FN bool dvti_conv_accepts(const char *name, dvt_array *x, dvt_shape w,
                               const dvt_conv2d_options *p);
DVTI_FN bool dvti_deconv_accepts(const char *name, dvt_array *x, dvt_shape w,
                                 const dvt_conv2d_options *p, const int *output_padding);
DVTI_FN dvt_array *dvti_conv2d(dvt_array *x, dvt_array *w, dvt_array *bias, const dvti_attr *attr);
/* Do convolutions over `axes` axes (1 or 2) and dvt_linear for callers that know that a NULL bias
   means none. */
DVTI_FN dvt_array *dvti_conv_layer(int axes, dvt_array *x, dvt_array *w, dvt_array *bias,
                                   const dvt_conv2d_options *p, bool relu);
DVTI_FN dvt_array *dvti_deconv(int axes, dvt_array *x, dvt_array *w, dvt_array *bias,
                               const dvt_conv2d_options *p, const int *output_padding);
DVTI_FN dvt_array *dvti_linear(dvt_array *x, dvt_array *w, dvt_array *bias, bool relu);
/* Does dvt_matmul under another name. Either operand may be transposed in its last two axes. */
DVTI_FN dvt_array *dvti_matmul(const char *name, dvt_array *a, dvt_array *b, bool transpose_a,
                               bool transpose_b);
/* Returns relu(x w^T + bias) in one launch, for x (.., k) and w (units, k) in float32. bias may be
   NULL; relu is optional. The backend has DVTI_CAN_EPILOGUE. */
/* Returns a b or a b', which is 0 where the mask is 0; not recorded. The mask has the result's
   shape and dtype, and is contiguous. a and b have its dtype. Only where dvti_matmul_can_mask. */
DVTI_FN bool dvti_matmul_can_mask(const dvt_array *x);
DVTI_FN dvt_array *dvti_matmul_masked(const char *name, dvt_array *a, dvt_array *b,
                                      bool transpose_b, const dvt_array *mask);
/* Returns whether dvti_cross_entropy takes these: prediction (rows..., n) of floats, and one label
   for each row. */
DVTI_FN bool dvti_cross_entropy_fits(const dvt_array *x, const dvt_array *label);
/* Returns minus the logarithm of softmax(x) at the labels: shape (rows...). */
DVTI_FN dvt_array *dvti_cross_entropy(const char *name, dvt_array *x, dvt_array *label);
/* Launches an operation of the kernel cross_entropy; returns out[0]. */
DVTI_FN dvt_array *dvti_cross_entropy_launch(const char *name, dvti_op op, dvt_array *const *in,
                                             int n_in, dvt_array *const *out, int n_out);
/* Returns whether the device of x has kernels for a normalization and its gradients, of which
   `gradient` is the operation, and these operands suit them. gamma and beta may be NULL. */
DVTI_FN bool dvti_norm_is_kernel(dvti_op gradient, const dvt_array *x, const dvt_array *gamma,
                                 const dvt_array *beta);
/* Normalizes x = in[0] with gamma = in[1] and beta = in[2], which may be NULL for layer_norm. This
   is one launch, and recorded. op_norm_launch.c describes `options`, without positions. running:
   mean and variance of batch_norm, written if i[0]; NULL for layer_norm. dtype: of the result. */
DVTI_FN dvt_array *dvti_norm_launch(const char *name, dvti_op op, dvt_array *const *in,
                                    dvt_array *const *running, const dvti_attr *options,
                                    double momentum, dvt_dtype dtype);
/* Computes the gradients of such a node's inputs that are needed, in one launch; not recorded.
   `op` is layer_norm_data or batch_norm_data. */
DVTI_FN bool dvti_norm_gradients(const char *name, dvti_op op, const dvti_node *node, dvt_array *g,
                                 const bool *need, dvt_array **out);
DVTI_FN dvt_array *dvti_linear_fused(dvt_array *x, dvt_array *w, dvt_array *bias, bool relu);
DVTI_FN dvt_array *dvti_conv2d_data(dvt_array *g, dvt_array *w, dvt_shape x_shape,
                                    const dvti_attr *attr);
DVTI_FN dvt_array *dvti_conv2d_weight(dvt_array *x, dvt_array *g, dvt_shape w_shape,
                                      const dvti_attr *attr);
DVTI_FN dvt_array *dvti_max_pool2d_data(dvt_array *g, dvt_array *x, const dvti_attr *attr,
                                        bool relu_masked);
DVTI_FN dvt_array *dvti_max_pool2d_pick(dvt_array *v, dvt_array *x, const dvti_attr *attr);
DVTI_FN dvt_array *dvti_avg_pool2d(dvt_array *x, const dvti_attr *attr);
DVTI_FN dvt_array *dvti_avg_pool2d_data(dvt_array *g, dvt_shape x_shape, const dvti_attr *attr);
/* Returns v (n) in a shape that broadcasts along x's axis, which has the extent n or 1. */
DVTI_FN dvt_array *dvti_along(dvt_array *v, const dvt_array *x, int axis);
/* Returns the dtype of a FLOAT operation's result: integers and bool become float32. */
DVTI_FN dvt_dtype dvti_float_dtype(dvt_dtype dtype);
/* Returns x as float32 where it is float16 or bfloat16, otherwise x. The conversion is recorded.
   Sums of squares need it because they exceed float16's range at deviations of 256. Chains of
   operations need it to avoid rounding intermediate results to 16 bits. Returns NULL for NULL. */
DVTI_FN dvt_array *dvti_wide_float(dvt_array *x);
/* Does the same for integers and bool. */
DVTI_FN dvt_array *dvti_compute_float(dvt_array *x);
/* Converts the axes of a reduction to a bit mask. Returns false with AXIS set when an axis is out
   of range or repeated. */
DVTI_FN bool dvti_axes_mask(const char *function, dvt_axes axes, const dvt_array *x,
                            unsigned *mask);
DVTI_FN dvt_rng_engine dvti_rng_engine_now(void);
/* Fills `out`, whose shape is not empty, by `launch`. Numbers come from `key`, or from the stream
   of out's context when key is NULL. `words` is the number of 32-bit words that Philox needs per
   element. */
DVTI_FN dvt_status dvti_draw(dvt_array *out, dvti_launch *launch, const dvt_key *key, int words);

/* Replaces the streams of all contexts on one thread, while it computes a part of a batch: numbers
   depend on the key and the part, not on the context. */
typedef struct dvti_part_stream {
    bool on;
    uint64_t key, counter;
    uint32_t part;
} dvti_part_stream;

/* Sets this thread's part; all zeros: none. */
DVTI_FN void dvti_set_part_stream(dvti_part_stream stream);
/* Takes a key from the stream of cpu(0), for the parts of one batch. Returns false with HOST_MEMORY
   set. */
DVTI_FN bool dvti_part_key(const char *function, uint64_t *key);
/* Checks the value of an enumeration with two members. Returns false with VALUE set. */
DVTI_FN bool dvti_choice(const char *function, const char *argument, int value, const char *zero,
                         const char *one);

#endif
