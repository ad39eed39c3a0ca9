/* [dvt:nn] Networks of blocks, with the semantics of Gluon.

       dvt_block *net = dvt_nn_sequential();
       DVT_NN_ADD(net, dvt_nn_conv2d(6, 5, DVT_RELU), dvt_nn_max_pool2d(2, 2),
                  dvt_nn_dense(10, DVT_IDENTITY));
       dvt_block_initialize(net, dvt_init_xavier(), DVT_CONTEXTS(dvt_try_gpu(0)));
       dvt_array *y = dvt_block_forward(net, x); // runs where x is

   Input sizes are inferred at the first forward.  Owns: what a call makes belongs to the innermost
   scope; a block owns its children and parameters.  Errors of constructors: HOST_MEMORY, RANGE. */

/* ---- initial values. The zero value is Uniform(0.07); the functions below make the others, whose
   fields may be changed: dvt_init init = dvt_init_xavier(); init.fan = DVT_FAN_IN; ---- */
typedef enum dvt_init_kind {
    DVT_INIT_DEFAULT, /* Uniform(0.07) for weights; a parameter's own rule (zeros, ones) where it
                         has one */
    DVT_INIT_UNIFORM, /* value: scale */
    DVT_INIT_NORMAL,  /* value: sigma */
    DVT_INIT_XAVIER,  /* value: magnitude */
    DVT_INIT_MSRA,    /* value: slope */
    DVT_INIT_ZERO,
    DVT_INIT_ONE,
    DVT_INIT_CONSTANT /* value */
} dvt_init_kind;

typedef enum dvt_fan { DVT_FAN_AVG, DVT_FAN_IN, DVT_FAN_OUT } dvt_fan;

typedef struct dvt_init {
    dvt_init_kind kind;
    double value; /* as the kind says */
    dvt_fan fan;
    bool gaussian; /* Xavier: normal instead of uniform */
} dvt_init;

/* U(-scale, scale), and the normal distribution N(0, sigma). */
DVT_API dvt_init dvt_init_uniform(double scale);
DVT_API dvt_init dvt_init_normal(double sigma);
/* U(-c, c), c = sqrt(3 / ((fan_in + fan_out) / 2)). Source: Glorot and Bengio, 2010. */
DVT_API dvt_init dvt_init_xavier(void);
/* Normal with variance 2 / ((1 + slope^2) fan). Source: He et al., 2015. */
DVT_API dvt_init dvt_init_msra(dvt_fan fan, double slope);
DVT_API dvt_init dvt_init_zero(void);
DVT_API dvt_init dvt_init_one(void);
DVT_API dvt_init dvt_init_constant(double value);

/* ---- parameters: one copy per context, all equal ---- */
/* "dense0_weight"; numbers count the blocks of one kind in the order in which they were added.
   Owns: the parameter. */
DVT_API const char *dvt_param_name(const dvt_param *p);
/* The shape; extents that are not known yet are 0. */
DVT_API dvt_shape dvt_param_shape(const dvt_param *p);
/* The copy on ctx, or with an all-zero ctx the only one, else the default context's. Copies: never.
   Owns: the parameter.  Errors: UNINITIALIZED, CONTEXT (not initialized on ctx). */
DVT_API dvt_array *dvt_param_data(dvt_param *p, dvt_ctx ctx);
DVT_API dvt_array *dvt_param_grad(dvt_param *p, dvt_ctx ctx);
/* The contexts, in the order given to dvt_block_initialize, each once. */
DVT_API dvt_ctx_list dvt_param_ctxs(const dvt_param *p);
/* Writes x (on any context) into every copy. Errors: SHAPE. */
DVT_API dvt_status dvt_param_set_data(dvt_param *p, dvt_array *x);
DVT_API dvt_status dvt_param_set_grad_req(dvt_param *p, dvt_grad_req req);
/* Factors on the learning rate and the weight decay of this parameter (1 unless set). */
DVT_API dvt_status dvt_param_set_lr_mult(dvt_param *p, double factor);
DVT_API dvt_status dvt_param_set_wd_mult(dvt_param *p, double factor);
/* This parameter's own initial values, before those of dvt_block_initialize. */
DVT_API dvt_status dvt_param_set_init(dvt_param *p, dvt_init init);

/* All parameters of a block and its children whose name matches a regular expression from its first
   character on (literals . * + ? [..] ( ) | ^ $; NULL: all), such as ".*weight" or
   "conv0_.*|dense1_bias"; "weight" alone matches no "dense0_weight". A pattern that matches nothing
   gives an empty collection, and a warning in the log. */
DVT_API dvt_params *dvt_block_collect_params(dvt_block *net, const char *pattern);
DVT_API int dvt_params_len(const dvt_params *params);
/* By position, by name. Owns: the block. Errors: RANGE, NAME. */
DVT_API dvt_param *dvt_params_at(dvt_params *params, int i);
DVT_API dvt_param *dvt_params_find(dvt_params *params, const char *name);
/* As dvt_block_initialize and dvt_block_reinitialize, for these parameters. */
DVT_API dvt_status dvt_params_initialize(dvt_params *params, dvt_init init, dvt_ctx_list ctxs);
DVT_API dvt_status dvt_params_reinitialize(dvt_params *params, dvt_init init, dvt_ctx_list ctxs);
/* Moves the parameters to other contexts, with the average of their copies. Errors: UNINITIALIZED.
 */
DVT_API dvt_status dvt_params_reset_ctx(dvt_params *params, dvt_ctx_list ctxs);
DVT_API dvt_status dvt_params_set_grad_req(dvt_params *params, dvt_grad_req req);
DVT_API dvt_status dvt_params_zero_grad(dvt_params *params);

/* ---- blocks ---- */
typedef enum dvt_activation {
    DVT_IDENTITY,
    DVT_RELU,
    DVT_SIGMOID,
    DVT_TANH,
    DVT_SOFTPLUS,
    DVT_GELU
} dvt_activation;

/* Blocks one after the other; empty at first. */
DVT_API dvt_block *dvt_nn_sequential(void);
/* Appends up to 16 blocks to dvt_nn_sequential(), which then owns them: DVT_NN_ADD(net, a, b, c).
   A NULL among them is an error. */
#define DVT_NN_ADD(net, ...) DVT_CALL_16(dvt_nn_sequential_add, net, __VA_ARGS__)

/* y = x W' + b on (N, in); inputs with more axes are flattened to (N, rest), one axis is (N, 1). */
DVT_API dvt_block *dvt_nn_dense(int64_t units, dvt_activation activation);

typedef struct dvt_nn_dense_desc {
    int64_t units;    /* required */
    int64_t in_units; /* 0: inferred */
    dvt_activation activation;
    bool no_bias;
    bool no_flatten; /* apply to the last axis only */
    dvt_init weight_init, bias_init;
    dvt_dtype dtype;
} dvt_nn_dense_desc;

/* The same, with every choice. */
DVT_API dvt_block *dvt_nn_dense_with(const dvt_nn_dense_desc *desc);

/* channels filters of kernel x kernel. */
DVT_API dvt_block *dvt_nn_conv2d(int64_t channels, int kernel, dvt_activation activation);

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

/* The same, with every choice. */
DVT_API dvt_block *dvt_nn_conv2d_with(const dvt_nn_conv2d_desc *desc);

/* stride 0 means size. */
DVT_API dvt_block *dvt_nn_max_pool2d(int size, int stride);
DVT_API dvt_block *dvt_nn_avg_pool2d(int size, int stride);
DVT_API dvt_block *dvt_nn_max_pool2d_with(const dvt_pool2d_options *p);
DVT_API dvt_block *dvt_nn_avg_pool2d_with(const dvt_pool2d_options *p);
DVT_API dvt_block *dvt_nn_global_avg_pool2d(void);
DVT_API dvt_block *dvt_nn_flatten(void);
DVT_API dvt_block *dvt_nn_activation(dvt_activation activation);
/* Errors: RANGE (p outside [0, 1)). */
DVT_API dvt_block *dvt_nn_dropout(double p);
/* axis 1, momentum 0.9, epsilon 1e-5 as in Gluon. On several contexts each slice of a batch is
   normalized by its own statistics and updates its context's running ones: see dvt_block_save. */
DVT_API dvt_block *dvt_nn_batch_norm(void);

typedef struct dvt_nn_batch_norm_desc {
    int axis;        /* 0: axis 1 */
    double momentum; /* 0: 0.9 */
    double epsilon;  /* 0: 1e-5 */
    bool no_center, no_scale;
    int64_t in_channels;
} dvt_nn_batch_norm_desc;

/* The same, with every choice. */
DVT_API dvt_block *dvt_nn_batch_norm_with(const dvt_nn_batch_norm_desc *desc);
/* Over the last axis, epsilon 1e-5. */
DVT_API dvt_block *dvt_nn_layer_norm(void);
/* Rows of a (count, units) table, for numbers 0 .. count - 1 of any dtype; negative ones count from
   the end. Errors of its forward: RANGE (a number out of range on cpu(); clamped on a GPU). */
DVT_API dvt_block *dvt_nn_embedding(int64_t count, int64_t units);

/* A block of your own. forward reads children and parameters through the functions below and
   returns its result (owned by the current scope) or NULL. infer, optional, is called with the
   first input to set shapes that are still unknown (dvt_param_set_shape). describe, optional,
   writes what printing and errors show. release, optional, frees user. */
typedef struct dvt_block_desc {
    const char *kind; /* required: "Residual"; also the prefix of parameter names, in lower case */
    dvt_array *(*forward)(dvt_block *self, void *user, dvt_array *x);
    dvt_status (*infer)(dvt_block *self, void *user, dvt_array *x);
    size_t (*describe)(const dvt_block *self, void *user, char *buffer, size_t size);
    void (*release)(void *user);
    void *user;
} dvt_block_desc;

/* A block from its description, which is copied. */
DVT_API dvt_block *dvt_block_new(const dvt_block_desc *desc);
/* Registers a parameter under a short name ("weight"); extents of 0 are inferred. Owns: the block.
 */
DVT_API dvt_param *dvt_block_add_param(dvt_block *self, const char *name, dvt_shape shape,
                                       dvt_dtype dtype, dvt_init init);
DVT_API dvt_status dvt_param_set_shape(dvt_param *p, dvt_shape shape);
/* Registers a child; the block then owns it. */
DVT_API dvt_status dvt_block_add_child(dvt_block *self, dvt_block *child);

/* The number of children. */
DVT_API int dvt_block_len(const dvt_block *net);
/* net[i], negative i from the end. Owns: the net. Errors: RANGE. */
DVT_API dvt_block *dvt_block_at(dvt_block *net, int i);
/* A parameter of this block itself by short name, "weight" or "bias". Owns: the block. Errors:
 * NAME. */
DVT_API dvt_param *dvt_block_param(dvt_block *block, const char *name);
/* Its values on ctx: dvt_param_data(dvt_block_param(block, name), ctx). */
DVT_API dvt_array *dvt_block_data(dvt_block *block, const char *name, dvt_ctx ctx);
/* "Sequential", and the user pointer of a block of your own. */
DVT_API const char *dvt_block_kind(const dvt_block *block);
DVT_API void *dvt_block_user(const dvt_block *block);

/* Sets the initial values on every context of the list (an empty list: the default context), or
   remembers to do so once shapes are known. Parameters that have values keep them, with a warning
   in the log. A context that is named twice has one copy, and the gradients of its parts add up
   between two steps of a trainer. Values are drawn once, on cpu(0), and copied: all copies have the
   same bits. A parameter's own rule comes first, then init, then Uniform(0.07). */
DVT_API dvt_status dvt_block_initialize(dvt_block *net, dvt_init init, dvt_ctx_list ctxs);
/* The same, also for parameters that have values. */
DVT_API dvt_status dvt_block_reinitialize(dvt_block *net, dvt_init init, dvt_ctx_list ctxs);
/* net(x), on x's context. Waits: no. Owns: the innermost scope. Errors: UNINITIALIZED, CONTEXT,
   those of operations; the sentence begins with the block that failed. An input that a block
   refuses decides none of its sizes. */
DVT_API dvt_array *dvt_block_forward(dvt_block *net, dvt_array *x);

/* As Gluon prints it: Sequential(\n  (0): Dense(3 -> 1, linear)\n). Returns the full length. */
DVT_API size_t dvt_block_format(const dvt_block *net, char *buffer, size_t size);
DVT_API void dvt_block_print(const dvt_block *net);
/* One line per block: output shape and number of parameters, for an input of that shape. */
DVT_API dvt_status dvt_block_print_summary(dvt_block *net, dvt_shape input);

/* MXNet's .params with structural names ("0.weight"). Saves the average of all copies: weights are
   the same everywhere, running statistics differ from context to context. Copies: to main memory.
   Waits: yes. */
DVT_API dvt_status dvt_block_save(dvt_block *net, const char *path);

typedef struct dvt_load_options {
    bool allow_missing; /* parameters that the file lacks keep their values */
    bool ignore_extra;  /* arrays of the file that the net lacks are skipped */
    bool cast_dtype;    /* convert instead of refusing another dtype */
} dvt_load_options;

/* Sets parameters from a file, on those contexts (an empty list: where they are, or the default
   context), also of a net that was not initialized. Nothing changes on failure. Errors: IO, FORMAT,
   NAME, SHAPE, DTYPE. */
DVT_API dvt_status dvt_block_load(dvt_block *net, const char *path, dvt_ctx_list ctxs);
/* The same with options, which may be NULL. */
DVT_API dvt_status dvt_block_load_with(dvt_block *net, const char *path,
                                       const dvt_load_options *options, dvt_ctx_list ctxs);

/* ---- losses: one value per sample, shape (N). Gradients flow into prediction only. Losses of
   float16 and bfloat16 predictions are computed in float32 and rounded once.
   Errors: as operations. ---- */
/* -log softmax(prediction)[label] over the last axis. label: class numbers (N, ...), of any dtype,
   or probabilities of prediction's shape, which is told by the shape.
   Errors: RANGE, when a class number on a CPU is not one of 0 .. classes - 1 (on a GPU nothing is
   read back to look: negative ones count from the end, others are clamped). */
DVT_API dvt_array *dvt_loss_softmax_cross_entropy(dvt_array *prediction, dvt_array *label);
/* Mean over all axes but the first of |p - l|; of (p - l)^2 / 2. Here and below labels of as many
   elements are taken in prediction's shape, as in Gluon: (N) and (N, 1) are the same labels. */
DVT_API dvt_array *dvt_loss_l1(dvt_array *prediction, dvt_array *label);
DVT_API dvt_array *dvt_loss_l2(dvt_array *prediction, dvt_array *label);
/* Of logits: relu(p) - p l + log(1 + exp(-|p|)). */
DVT_API dvt_array *dvt_loss_sigmoid_bce(dvt_array *prediction, dvt_array *label);
/* Quadratic within rho, linear outside: d^2 / (2 rho), |d| - rho / 2. rho 1 in Gluon. Errors: RANGE
 * (rho <= 0). */
DVT_API dvt_array *dvt_loss_huber(dvt_array *prediction, dvt_array *label, double rho);
