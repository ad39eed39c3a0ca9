/* [dvt:nn] Neural networks of blocks, with the semantics of Gluon.

       dvt_block *net = dvt_nn_sequential();
       DVT_NN_ADD(net, dvt_nn_conv2d(6, 5, DVT_RELU), dvt_nn_max_pool2d(2, 2),
                  dvt_nn_dense(10, DVT_IDENTITY));
       dvt_block_initialize(net, dvt_init_xavier(), DVT_CONTEXTS(dvt_try_gpu(0)));
       dvt_array *y = dvt_block_forward(net, x); // computes on x's context

   Input sizes are inferred at the first forward, or by dvt_block_infer_shapes.
   Owns: new objects belong to the innermost scope; a block owns its children and parameters.
   Errors of constructors: HOST_MEMORY, RANGE. */

/* ---- initial values. The zero value is Uniform(0.07). The functions below return the others,
   whose fields may be changed: dvt_init init = dvt_init_xavier(); init.fan = DVT_FAN_IN; ---- */
/* Kinds of initial values. */
typedef enum dvt_init_kind {
    DVT_INIT_DEFAULT, /* a parameter's own rule (zeros, ones) if it has one, else Uniform(0.07) */
    DVT_INIT_UNIFORM, /* value: scale */
    DVT_INIT_NORMAL,  /* value: sigma */
    DVT_INIT_XAVIER,  /* value: magnitude */
    DVT_INIT_MSRA,    /* value: slope */
    DVT_INIT_ZERO,
    DVT_INIT_ONE,
    DVT_INIT_CONSTANT /* value */
} dvt_init_kind;

/* Selects the extent that scales initial values: the mean of both, inputs, outputs. */
typedef enum dvt_fan { DVT_FAN_AVG, DVT_FAN_IN, DVT_FAN_OUT } dvt_fan;

/* Initial values of parameters. */
typedef struct dvt_init {
    dvt_init_kind kind;
    double value; /* see the kinds */
    dvt_fan fan;
    bool gaussian; /* Xavier: normal instead of uniform */
} dvt_init;

/* Return U(-scale, scale), and the normal distribution N(0, sigma). */
DVT_API dvt_init dvt_init_uniform(double scale);
DVT_API dvt_init dvt_init_normal(double sigma);
/* Returns U(-c, c), c = sqrt(3 / ((fan_in + fan_out) / 2)). Source: Glorot and Bengio, 2010. */
DVT_API dvt_init dvt_init_xavier(void);
/* Returns the normal distribution with variance 2 / ((1 + slope^2) fan). Source: He et al.,
   2015. */
DVT_API dvt_init dvt_init_msra(dvt_fan fan, double slope);
/* Return zeros, ones, or one value for all elements. */
DVT_API dvt_init dvt_init_zero(void);
DVT_API dvt_init dvt_init_one(void);
DVT_API dvt_init dvt_init_constant(double value);

/* ---- parameters: one copy per context, all equal ---- */
/* Returns "dense0_weight". The number counts the blocks of one kind in the order in which they were
   added. Owns: the parameter. */
DVT_API const char *dvt_param_name(const dvt_param *p);
/* Returns the shape; extents that are not known yet are 0. */
DVT_API dvt_shape dvt_param_shape(const dvt_param *p);
/* Return the copy of the parameter, or of its gradient, on ctx. An all-zero ctx means the only
   copy, or that on the default context if there are several. Copies: never.  Owns: the parameter.
   Errors: UNINITIALIZED, CONTEXT (not initialized on ctx), GRAD (no gradient). */
DVT_API dvt_array *dvt_param_data(dvt_param *p, dvt_ctx ctx);
DVT_API dvt_array *dvt_param_grad(dvt_param *p, dvt_ctx ctx);
/* Returns the contexts in the order given to dvt_block_initialize, each once. */
DVT_API dvt_ctx_list dvt_param_ctxs(const dvt_param *p);
/* Writes x (on any context) into every copy. Errors: SHAPE. */
DVT_API dvt_status dvt_param_set_data(dvt_param *p, dvt_array *x);
/* Sets what backward does with the gradients of all copies. Errors: VALUE. */
DVT_API dvt_status dvt_param_set_grad_req(dvt_param *p, dvt_grad_req req);
/* Set factors on the learning rate and the weight decay of this parameter (1 unless set). Errors:
   RANGE. */
DVT_API dvt_status dvt_param_set_lr_mult(dvt_param *p, double factor);
DVT_API dvt_status dvt_param_set_wd_mult(dvt_param *p, double factor);
/* Sets this parameter's own initial values, which override those of dvt_block_initialize. */
DVT_API dvt_status dvt_param_set_init(dvt_param *p, dvt_init init);

/* Returns the parameters of a block and its children whose name matches a regular expression; NULL:
   all. Its syntax is literals . * + ? [..] ( ) | ^ $, and it must match from the first character
   on. ".*weight" and "conv0_.*|dense1_bias" are examples; "weight" does not match "dense0_weight".
   A pattern without a match gives an empty collection, and a warning in the log. */
DVT_API dvt_params *dvt_block_collect_params(dvt_block *net, const char *pattern);
/* Returns the number of parameters. */
DVT_API int dvt_params_len(const dvt_params *params);
/* Return a parameter by position or by name. Owns: the block. Errors: RANGE, NAME. */
DVT_API dvt_param *dvt_params_at(dvt_params *params, int i);
DVT_API dvt_param *dvt_params_find(dvt_params *params, const char *name);
/* Initialize these parameters as dvt_block_initialize and dvt_block_reinitialize do for a net. */
DVT_API dvt_status dvt_params_initialize(dvt_params *params, dvt_init init, dvt_ctx_list ctxs);
DVT_API dvt_status dvt_params_reinitialize(dvt_params *params, dvt_init init, dvt_ctx_list ctxs);
/* Moves the parameters to other contexts, with the average of their copies. Errors:
   UNINITIALIZED. */
DVT_API dvt_status dvt_params_reset_ctx(dvt_params *params, dvt_ctx_list ctxs);
/* Call dvt_param_set_grad_req for each parameter, and set all gradients to 0. */
DVT_API dvt_status dvt_params_set_grad_req(dvt_params *params, dvt_grad_req req);
DVT_API dvt_status dvt_params_zero_grad(dvt_params *params);

/* ---- blocks ---- */
/* Functions that a layer applies to its result. */
typedef enum dvt_activation {
    DVT_IDENTITY,
    DVT_RELU,
    DVT_SIGMOID,
    DVT_TANH,
    DVT_SOFTPLUS,
    DVT_GELU,
    DVT_SELU,
    DVT_SILU,
    DVT_MISH,
    DVT_HARD_SIGMOID,
    DVT_HARD_SWISH
} dvt_activation;

/* Creates an empty block that applies its children one after the other. */
DVT_API dvt_block *dvt_nn_sequential(void);
/* Appends up to 16 blocks to a dvt_nn_sequential(), which then owns them: DVT_NN_ADD(net, a, b, c).
   A NULL block is an error. */
#define DVT_NN_ADD(net, ...) DVT_CALL_16(dvt_nn_sequential_add, net, __VA_ARGS__)

/* Creates y = activation(x W' + b) on (N, in). Inputs with more axes are flattened to (N, rest);
   one axis is (N, 1). */
DVT_API dvt_block *dvt_nn_dense(int64_t units, dvt_activation activation);

/* Options of dvt_nn_dense_with. */
typedef struct dvt_nn_dense_desc {
    int64_t units;    /* required */
    int64_t in_units; /* 0: inferred */
    dvt_activation activation;
    bool no_bias;
    bool no_flatten; /* apply to the last axis only */
    dvt_init weight_init, bias_init;
    dvt_dtype dtype;
} dvt_nn_dense_desc;

/* Creates a block of dvt_nn_dense with all options. */
DVT_API dvt_block *dvt_nn_dense_with(const dvt_nn_dense_desc *desc);

/* Creates a convolution with `channels` filters of kernel x kernel on (N, C, H, W). */
DVT_API dvt_block *dvt_nn_conv2d(int64_t channels, int kernel, dvt_activation activation);

/* Options of dvt_nn_conv2d_with. */
typedef struct dvt_nn_conv2d_desc {
    int64_t channels;    /* required */
    int kernel[2];       /* required; pairs are those of dvt_conv2d_options */
    int64_t in_channels; /* 0: inferred */
    dvt_conv2d_options options;
    dvt_activation activation;
    bool no_bias;
    dvt_init weight_init, bias_init;
    dvt_dtype dtype;
} dvt_nn_conv2d_desc;

/* Creates a block of dvt_nn_conv2d with all options. */
DVT_API dvt_block *dvt_nn_conv2d_with(const dvt_nn_conv2d_desc *desc);

/* Creates a transposed convolution on (N, C, H, W): dvt_conv2d_transpose. stride 0 means 1. Weights
   are (C, channels / groups, kernel, kernel). */
DVT_API dvt_block *dvt_nn_conv2d_transpose(int64_t channels, int kernel, int stride,
                                           dvt_activation activation);

/* Options of a transposed convolution. */
typedef struct dvt_nn_conv2d_transpose_desc {
    int64_t channels;    /* required */
    int kernel[2];       /* required; pairs are those of dvt_conv2d_options */
    int64_t in_channels; /* 0: inferred */
    dvt_conv2d_transpose_options options;
    dvt_activation activation;
    bool no_bias;
    dvt_init weight_init, bias_init;
    dvt_dtype dtype;
} dvt_nn_conv2d_transpose_desc;

/* Creates the block with all options. */
DVT_API dvt_block *dvt_nn_conv2d_transpose_with(const dvt_nn_conv2d_transpose_desc *desc);

/* Create the same two blocks on (N, C, W). */
DVT_API dvt_block *dvt_nn_conv1d(int64_t channels, int kernel, dvt_activation activation);
DVT_API dvt_block *dvt_nn_conv1d_transpose(int64_t channels, int kernel, int stride,
                                           dvt_activation activation);

/* Options of a convolution along one axis. */
typedef struct dvt_nn_conv1d_desc {
    int64_t channels;    /* required */
    int kernel;          /* required */
    int64_t in_channels; /* 0: inferred */
    dvt_conv1d_options options;
    int output_padding; /* dvt_nn_conv1d_transpose_with only */
    dvt_activation activation;
    bool no_bias;
    dvt_init weight_init, bias_init;
    dvt_dtype dtype;
} dvt_nn_conv1d_desc;

/* Create the blocks with all options. */
DVT_API dvt_block *dvt_nn_conv1d_with(const dvt_nn_conv1d_desc *desc);
DVT_API dvt_block *dvt_nn_conv1d_transpose_with(const dvt_nn_conv1d_desc *desc);

/* Create pooling blocks on (N, C, H, W), by windows of size x size; stride 0 means size. */
DVT_API dvt_block *dvt_nn_max_pool2d(int size, int stride);
DVT_API dvt_block *dvt_nn_avg_pool2d(int size, int stride);
DVT_API dvt_block *dvt_nn_max_pool2d_with(const dvt_pool2d_options *p);
DVT_API dvt_block *dvt_nn_avg_pool2d_with(const dvt_pool2d_options *p);
DVT_API dvt_block *dvt_nn_global_avg_pool2d(void);
/* Create pooling blocks on (N, C, W). */
DVT_API dvt_block *dvt_nn_max_pool1d(int size, int stride);
DVT_API dvt_block *dvt_nn_avg_pool1d(int size, int stride);
DVT_API dvt_block *dvt_nn_global_avg_pool1d(void);
/* Create blocks of dvt_adaptive_avg_pool2d and dvt_upsample2d. Errors: RANGE (sizes, scale). */
DVT_API dvt_block *dvt_nn_adaptive_avg_pool2d(int64_t height, int64_t width);
DVT_API dvt_block *dvt_nn_upsample2d(int scale, bool bilinear);
DVT_API dvt_block *dvt_nn_upsample2d_with(const dvt_upsample2d_options *p);
DVT_API dvt_block *dvt_nn_flatten(void);
/* Creates a block that applies one function to each element. */
DVT_API dvt_block *dvt_nn_activation(dvt_activation activation);
/* Create blocks of dvt_leaky_relu and dvt_elu. Errors: RANGE (not finite). */
DVT_API dvt_block *dvt_nn_leaky_relu(double slope);
DVT_API dvt_block *dvt_nn_elu(double alpha);
/* Creates a block of dvt_prelu with one learned slope, or one for each of several channels. Slopes
   begin at 0.25. Errors: RANGE (channels < 1). */
DVT_API dvt_block *dvt_nn_prelu(int64_t channels);
/* Creates a block of dvt_dropout. Errors: RANGE (p outside [0, 1)). */
DVT_API dvt_block *dvt_nn_dropout(double p);
/* Creates batch normalization: axis 1, momentum 0.9, epsilon 1e-5 as in Gluon. On several contexts
   each slice of a batch is normalized by its own statistics, and updates the running ones of its
   context. See dvt_block_save. */
DVT_API dvt_block *dvt_nn_batch_norm(void);

/* Options of dvt_nn_batch_norm_with. */
typedef struct dvt_nn_batch_norm_desc {
    int axis;        /* 0: axis 1 */
    double momentum; /* 0: 0.9 */
    double epsilon;  /* 0: 1e-5 */
    bool no_center, no_scale;
    int64_t in_channels;
} dvt_nn_batch_norm_desc;

/* Creates a block of dvt_nn_batch_norm with all options. */
DVT_API dvt_block *dvt_nn_batch_norm_with(const dvt_nn_batch_norm_desc *desc);
/* Creates layer normalization over the last axis, epsilon 1e-5. */
DVT_API dvt_block *dvt_nn_layer_norm(void);
/* Creates RMS normalization over the last axis. epsilon 0 means 1e-6. Errors: RANGE (epsilon). */
DVT_API dvt_block *dvt_nn_rms_norm(double epsilon);
/* Creates group normalization of the channels on axis 1, epsilon 1e-5. Errors: RANGE (groups < 1);
   of its forward: SHAPE (groups does not divide the channels). */
DVT_API dvt_block *dvt_nn_group_norm(int groups);
/* Creates instance normalization of the channels on axis 1, epsilon 1e-5. beta is learned. gamma is
   too with `scale`, otherwise it counts as 1: Gluon's default. */
DVT_API dvt_block *dvt_nn_instance_norm(bool scale);
/* Creates a block that returns rows of a (count, units) table for indices 0 .. count - 1 of any
   dtype. Negative indices count from the end. Errors of its forward: RANGE (an index out of range
   on cpu(); gpu(i) clamps it). */
DVT_API dvt_block *dvt_nn_embedding(int64_t count, int64_t units);

/* Describes a custom block. forward reads children and parameters through the functions below and
   returns its result (owned by the current scope) or NULL. It makes its own arrays on
   dvt_ctx_of(x). infer, optional, is called with the first input to set unknown shapes
   (dvt_param_set_shape). describe, optional, writes the text for printing and errors. release,
   optional, frees user. */
typedef struct dvt_block_desc {
    const char *kind; /* required: "Residual"; also the prefix of parameter names, in lower case */
    dvt_array *(*forward)(dvt_block *self, void *user, dvt_array *x);
    dvt_status (*infer)(dvt_block *self, void *user, dvt_array *x);
    size_t (*describe)(const dvt_block *self, void *user, char *buffer, size_t size);
    void (*release)(void *user);
    void *user;
} dvt_block_desc;

/* Creates a block from its description, which is copied. `kind` is copied too. */
DVT_API dvt_block *dvt_block_new(const dvt_block_desc *desc);
/* Adds a parameter with a short name ("weight"); extents of 0 are inferred. Owns: the block. */
DVT_API dvt_param *dvt_block_add_param(dvt_block *self, const char *name, dvt_shape shape,
                                       dvt_dtype dtype, dvt_init init);
/* Sets the extents that are not known yet; the others must agree. Errors: SHAPE. */
DVT_API dvt_status dvt_param_set_shape(dvt_param *p, dvt_shape shape);
/* Adds a child, which the block then owns. It takes the block's mixed precision. */
DVT_API dvt_status dvt_block_add_child(dvt_block *self, dvt_block *child);

/* Returns the number of children. */
DVT_API int dvt_block_len(const dvt_block *net);
/* Returns child i, negative i from the end. Owns: the net. Errors: RANGE. */
DVT_API dvt_block *dvt_block_at(dvt_block *net, int i);
/* Returns a parameter of this block itself by short name, "weight" or "bias". Owns: the block.
   Errors: NAME. */
DVT_API dvt_param *dvt_block_param(dvt_block *block, const char *name);
/* Returns dvt_param_data(dvt_block_param(block, name), ctx). Inside of the forward pass of a net
   with mixed precision, float32 parameters are converted to its dtype: see
   dvt_block_set_mixed_precision. */
DVT_API dvt_array *dvt_block_data(dvt_block *block, const char *name, dvt_ctx ctx);
/* Return the kind, "Sequential", and the user pointer of a custom block. Owns: the block. */
DVT_API const char *dvt_block_kind(const dvt_block *block);
DVT_API void *dvt_block_user(const dvt_block *block);

/* Sets the initial values on every context of the list (an empty list: the default context). If
   shapes are not known yet, the first forward does it, or dvt_block_infer_shapes. Parameters that
   have values keep them, with a warning in the log. A context that is named twice has one copy, and
   the gradients of its slices add up between two steps of a trainer.
   Values are drawn once, on cpu(0), and copied: all copies have the same bits. A parameter's own
   rule comes first, then init, then Uniform(0.07). */
DVT_API dvt_status dvt_block_initialize(dvt_block *net, dvt_init init, dvt_ctx_list ctxs);
/* Sets initial values as dvt_block_initialize does, also of parameters that have values. */
DVT_API dvt_status dvt_block_reinitialize(dvt_block *net, dvt_init init, dvt_ctx_list ctxs);
/* Computes net(x) on x's context. Waits: no. Owns: the innermost scope. Errors: UNINITIALIZED,
   CONTEXT, those of operations; the message begins with the block that failed. An input that a
   block refuses sets none of its sizes. */
DVT_API dvt_array *dvt_block_forward(dvt_block *net, dvt_array *x);

/* Sets all sizes that are not known yet, as the first forward of such an input would. Computes
   nothing, and needs no memory for results. Initialized parameters get the values that this forward
   would draw in predict mode. Others only get their shape: dvt_block_load or dvt_block_initialize
   may follow. Random streams, running statistics, gradients and counters do not change otherwise.
   *output, unless NULL, is the shape of the result.
   Forward functions of the program run on arrays without values. The context of these has the type
   DVT_DEVICE_META. It is also the default context if the net is on the default context. Such a
   function makes its own arrays on dvt_ctx_of(x).
   Copies: never.  Waits: no.
   Errors: VALUE (a forward function reads a value: call dvt_block_forward instead), those of
   dvt_block_forward; the message begins with the block that failed. A failing call sets no size. */
DVT_API dvt_status dvt_block_infer_shapes(dvt_block *net, dvt_shape input, dvt_dtype dtype,
                                          dvt_shape *output);

/* Writes the net as Gluon prints it: Sequential(\n  (0): Dense(3 -> 1, linear)\n). Returns the
   length of the whole text. */
DVT_API size_t dvt_block_format(const dvt_block *net, char *buffer, size_t size);
/* Prints that text to standard output. */
DVT_API void dvt_block_print(const dvt_block *net);
/* Prints one line per block, for a float32 input of that shape: output shape, elements of trained
   and fixed parameters, memory of the results of the block's own operations, multiply-adds of its
   own matrix products and convolutions. Totals follow. Infers shapes as dvt_block_infer_shapes does
   and sets them, so a large input takes no longer; the net need not be initialized. Blocks of the
   program count too. If one reads values, the net computes on zeros. Errors: as
   dvt_block_forward. */
DVT_API dvt_status dvt_block_print_summary(dvt_block *net, dvt_shape input);

/* Numbers of a net for one input. */
typedef struct dvt_block_cost {
    int64_t trained, fixed; /* elements of parameters with and without gradients */
    int64_t param_bytes;    /* of one copy */
    int64_t result_bytes;   /* of all operations of a forward pass */
    int64_t multiply_adds;  /* of matrix products and convolutions */
} dvt_block_cost;

/* Computes the totals of dvt_block_print_summary. Errors: as dvt_block_forward; *out is then
   unchanged. */
DVT_API dvt_status dvt_block_measure(dvt_block *net, dvt_shape input, dvt_block_cost *out);

/* Writes the parameters with structural names ("0.weight"): as safetensors if the path ends with
   .safetensors, as GGUF with .gguf, as .npz with .npz, in small or capital letters, else as MXNet's
   .params. Saves the average of all copies: weights are equal on all contexts, running statistics
   differ. Copies: to host memory.  Waits: yes.  Errors: VALUE (.npy, .safetensors.index.json), and
   those of that format. */
DVT_API dvt_status dvt_block_save(dvt_block *net, const char *path);

/* Options of dvt_block_load_with. */
typedef struct dvt_load_options {
    bool allow_missing; /* parameters that are not in the file keep their values; a warning */
    bool ignore_extra;  /* skip arrays that are not in the net; a warning */
    bool cast_dtype;    /* convert another dtype instead of failing */
    /* NULL, or pairs of a name in the file and a name in the net, and then a NULL. One * stands for
       any text, also for none, and is copied: "encoder.*", "0.*", "head.w", "2.weight", NULL. Every
       pair that matches counts, so one array can set several parameters. The name "" leaves the
       array out. Names without a pair stay. A pair with another name that sets nothing is an
       error. With allow_missing (no array matches) or ignore_extra (no such parameter) it is a
       warning in the log. */
    const char *const *map;
} dvt_load_options;

/* Sets parameters from a file that dvt_load_arrays reads, on those contexts (an empty list: where
   they are, or the default context). The net need not be initialized. Nothing changes on failure.
   One error lists all that does not fit: names missing in either, pairs of the map that set
   nothing, other shapes and dtypes.
   Errors: IO, FORMAT, NAME, SHAPE, DTYPE, VALUE (map). */
DVT_API dvt_status dvt_block_load(dvt_block *net, const char *path, dvt_ctx_list ctxs);
/* Sets parameters as dvt_block_load does, with options, which may be NULL. */
DVT_API dvt_status dvt_block_load_with(dvt_block *net, const char *path,
                                       const dvt_load_options *options, dvt_ctx_list ctxs);

/* ---- mixed precision ---- */
/* Lets the net compute in DVT_F16 or DVT_BF16; DVT_F32 switches that off. The training loop is the
   same: parameters, gradients, states of optimizers and files stay float32, and so do x and y of
   dvt_block_forward. Call it once for a whole net, before or after initialization. Blocks that are
   added later take it too.
   - The outermost dvt_block_forward converts a float x to 16 bits and its result to float32.
     Integers stay.
   - Blocks compute with 16-bit copies of the parameters. Normalization computes in float32, and
     keeps its parameters and running statistics in it.
   - Gradients inside of the net are 16 bits. With DVT_F16 they are multiplied by a loss scale, and
     divided by it where they leave the net, so that small ones do not become 0.
   - dvt_trainer_step and dvt_trainer_update skip the update when the sum of a gradient is not
     finite, and halve the scale. After 2000 steps without that it doubles. A skipped step changes
     no weight, state or schedule; dvt_trainer_steps does not count it. The step waits for the
     check. With DVT_BF16 there is no scale and no check.
   - In the forward of a custom block dvt_block_data gives the 16-bit copy of a parameter.
     dvt_param_data gives the float32 parameter itself, for example to write it. The gradients of
     both are right, and so are those of arrays from outside that the block reads. Parameters called
     running_... or moving_... are never converted.
   Copies: 16-bit copies of the parameters, renewed after the parameters were written.  Waits: no.
   Errors: DTYPE (compute; float parameters that are not float32), VALUE (a part of a net with mixed
   precision, or a net with such a part), HOST_MEMORY. Nothing changes then.
   Source: Micikevicius et al., 2017. */
DVT_API dvt_status dvt_block_set_mixed_precision(dvt_block *net, dvt_dtype compute);

/* Options of the loss scale. All zeros is the default. */
typedef struct dvt_loss_scaling {
    double init_scale;       /* a power of two, 2^-24 to 2^24; 0: as it is (65536 with DVT_F16) */
    int64_t growth_interval; /* steps without overflow before the scale doubles; 0: 2000 */
    bool fixed;              /* keep the scale; steps with overflow are still skipped */
} dvt_loss_scaling;

/* Sets the options of a net with mixed precision. With DVT_BF16 this adds scale and check.
   Copies: never.  Waits: no.  Errors: VALUE (a net without mixed precision), RANGE. */
DVT_API dvt_status dvt_block_set_loss_scaling(dvt_block *net, const dvt_loss_scaling *options);

/* The state of mixed precision. */
typedef struct dvt_mixed_precision {
    dvt_dtype compute;     /* DVT_F32: off */
    double loss_scale;     /* of the next forward */
    int64_t skipped_steps; /* so far */
} dvt_mixed_precision;

/* Returns the state of a net, or of the net that a block is part of. */
DVT_API dvt_mixed_precision dvt_block_mixed_precision(const dvt_block *net);
