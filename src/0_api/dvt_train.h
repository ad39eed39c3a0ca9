/* [dvt:train] Optimizers, trainer, data, metrics, progress. Owns: results belong to the innermost
   scope. */

/* ---- learning-rate schedules: values; the zero value keeps the rate ---- */
/* Kinds of schedules. */
typedef enum dvt_schedule_kind {
    DVT_SCHEDULE_CONSTANT,
    DVT_SCHEDULE_FACTOR,       /* times factor every `every` steps, never below minimum */
    DVT_SCHEDULE_MULTI_FACTOR, /* times factor at each of the given steps, in any order */
    DVT_SCHEDULE_POLY,         /* from base to final over total steps, (1 - t)^power */
    DVT_SCHEDULE_COSINE,       /* from base to final over total steps, half a cosine */
    DVT_SCHEDULE_CUSTOM        /* the result of the function `rate` */
} dvt_schedule_kind;

/* A schedule of learning rates. */
typedef struct dvt_schedule {
    dvt_schedule_kind kind;
    double factor, minimum, final, power;
    int64_t every, total;
    int64_t at[16];
    int n_at;
    int64_t warmup;      /* steps of linear warm-up before the schedule, not part of total */
    double warmup_begin; /* rate at its start */
    double (*rate)(void *user, double base, int64_t step); /* CUSTOM */
    void *user;
} dvt_schedule;

/* Return a schedule with the fields of its kind set. */
DVT_API dvt_schedule dvt_schedule_factor(int64_t every, double factor, double minimum);
DVT_API dvt_schedule dvt_schedule_multi_factor(const int64_t *at, int n, double factor);
DVT_API dvt_schedule dvt_schedule_poly(int64_t total, double power, double final);
DVT_API dvt_schedule dvt_schedule_cosine(int64_t total, double final);
/* Returns a custom schedule. rate returns the learning rate of a step, counted from 0 after the
   warm-up, from the base rate. The result must be finite and not negative, otherwise steps fail
   with RANGE. user must live as long as trainers that use the schedule. */
DVT_API dvt_schedule dvt_schedule_custom(double (*rate)(void *user, double base, int64_t step),
                                         void *user);
/* Returns the rate at a step, counted from 0, from a base rate. */
DVT_API double dvt_schedule_rate(const dvt_schedule *schedule, double base, int64_t step);

/* ---- optimizers: values; change fields before making a trainer ---- */
/* Kinds of optimizers. */
typedef enum dvt_optimizer_kind {
    DVT_OPTIMIZER_SGD,   /* Source of the momentum form: MXNet; Nesterov: Sutskever et al., 2013 */
    DVT_OPTIMIZER_ADAM,  /* Kingma and Ba, 2014 */
    DVT_OPTIMIZER_ADAMW, /* Loshchilov and Hutter, 2017 */
    DVT_OPTIMIZER_RMSPROP, /* Tieleman and Hinton, 2012; with momentum: Graves, 2013 */
    DVT_OPTIMIZER_ADAGRAD, /* Duchi et al., 2011 */
    DVT_OPTIMIZER_CUSTOM   /* dvt_optimizer_custom */
} dvt_optimizer_kind;

#define DVT_OPTIMIZER_STATES 4 /* limit of state arrays per parameter */

/* The arguments of one step for one copy of a parameter. All arrays are on the copy's context. */
typedef struct dvt_optimizer_step {
    dvt_array *weight;       /* to be updated in place, as by dvt_sub_ */
    dvt_array *gradient;     /* divided by batch_size and clipped; a new array of this step */
    dvt_array *const *state; /* of the weight's shape, zeros before the first step, to be updated in
                                place; float64 for float64 weights, else float32 */
    double learning_rate;    /* of the schedule, times the parameter's lr_mult */
    double weight_decay;     /* times the parameter's wd_mult */
    int64_t count;           /* number of this step of the parameter, from 1 */
} dvt_optimizer_step;

/* Describes a custom optimizer. Zero is the default of every field but step. name and user must
   live as long as trainers that use them. */
typedef struct dvt_optimizer_desc {
    const char *name; /* for messages; may be NULL */
    int states;       /* state arrays per parameter, 0 to DVT_OPTIMIZER_STATES */
    /* Required. Called once per step for every copy of a parameter, in a scope of its own and not
       recorded. Any result but DVT_OK, or an error that is not cleared, ends the trainer's step.
       Earlier changes of that step remain. The failed update does not count: this parameter, those
       behind it and dvt_trainer_steps keep their numbers. */
    dvt_status (*step)(void *user, const dvt_optimizer_step *step);
    void *user;
} dvt_optimizer_desc;

/* An optimizer and its settings. */
typedef struct dvt_optimizer {
    dvt_optimizer_kind kind;
    double learning_rate;
    double weight_decay;
    double momentum;     /* SGD; RMSProp with centered */
    bool nesterov;       /* SGD */
    double beta1, beta2; /* Adam, AdamW */
    double rho;          /* RMSProp: decay of the mean square */
    bool centered;       /* RMSProp: Graves' version */
    double epsilon;
    double clip_gradient; /* after rescaling, each element to [-c, c]; 0: off */
    dvt_schedule schedule;
    dvt_optimizer_desc custom;
} dvt_optimizer;

/* Return an optimizer with the usual values of the other fields. */
DVT_API dvt_optimizer dvt_optimizer_sgd(double learning_rate);
DVT_API dvt_optimizer dvt_optimizer_adam(double learning_rate);
DVT_API dvt_optimizer dvt_optimizer_adamw(double learning_rate, double weight_decay);
DVT_API dvt_optimizer dvt_optimizer_rmsprop(double learning_rate);
DVT_API dvt_optimizer dvt_optimizer_adagrad(double learning_rate);
/* Returns a custom optimizer; *desc is copied. Weight decay, clipping, the schedule, multipliers of
   parameters and several contexts work as with the others. Copies keep the same bits if the
   operations of the step have the same bits on their contexts. */
DVT_API dvt_optimizer dvt_optimizer_custom(const dvt_optimizer_desc *desc, double learning_rate);

/* ---- trainer ---- */
/* Creates a trainer of all parameters of the collection whose grad_req is not null, and retains
   them. An empty collection trains nothing, with a warning in the log.
   Errors: CONTEXT (parameters on different context lists), RANGE (rates). */
DVT_API dvt_trainer *dvt_trainer_new(dvt_params *params, dvt_optimizer optimizer);
/* Calls dvt_trainer_allreduce, then dvt_trainer_update: sums the gradients over the contexts in
   their order, divides by batch_size and updates every copy. All copies keep the same bits.
   Gradients that dvt_trainer_allreduce has summed already are not summed again. Waits: no, unless a
   loss scale checks the gradients (dvt_block_set_mixed_precision).
   Errors: STALE_GRAD (a gradient was not renewed since the last step; nothing is updated),
   UNINITIALIZED, RANGE (batch_size <= 0), VALUE (as dvt_trainer_allreduce; parameters of two nets
   with mixed precision). */
DVT_API dvt_status dvt_trainer_step(dvt_trainer *trainer, int64_t batch_size);
/* Makes a step as dvt_trainer_step does, but skips parameters with stale gradients. A copy whose
   context got no slice of this batch counts as 0. */
DVT_API dvt_status dvt_trainer_step_partial(dvt_trainer *trainer, int64_t batch_size);
/* Sums the gradients over the contexts, the first phase of a step. Call both phases to change
   gradients in between. Gradients are summed once: a second call before the next backward does not
   change them. Waits: no.
   Errors: VALUE (backward has renewed or added to some of the sums since, so that another sum would
   count them twice). */
DVT_API dvt_status dvt_trainer_allreduce(dvt_trainer *trainer);
/* Updates all copies from the sums, the second phase. Waits: as dvt_trainer_step. Errors: as
   dvt_trainer_step; VALUE (on several contexts, gradients that are not summed). */
DVT_API dvt_status dvt_trainer_update(dvt_trainer *trainer, int64_t batch_size);
/* Returns the schedule's learning rate for the next step. */
DVT_API double dvt_trainer_learning_rate(const dvt_trainer *trainer);
/* Sets the base learning rate. Errors: RANGE. */
DVT_API dvt_status dvt_trainer_set_learning_rate(dvt_trainer *trainer, double rate);
/* Returns the number of steps so far, without those that a loss scale has skipped. */
DVT_API int64_t dvt_trainer_steps(const dvt_trainer *trainer);

/* Scales arrays in place so that their common 2-norm is at most max_norm. Returns the norm before,
   NaN on errors. If the norm is not finite, nothing is scaled and a warning is logged. Copies: the
   norms to host memory.  Waits: yes.  Source: Pascanu, Mikolov and Bengio, 2013. */
DVT_API double dvt_clip_global_norm(dvt_array *const *arrays, int n, double max_norm);
/* Scales the gradients of a trainer as dvt_clip_global_norm does, after dvt_trainer_allreduce; all
   contexts scale alike. In mixed precision gradients that are not finite give no warning, because
   the step is skipped. The gradients are sums over the batch: pass max_norm times batch_size to
   bound their mean. */
DVT_API double dvt_trainer_clip_global_norm(dvt_trainer *trainer, double max_norm);

/* ---- data: samples are pairs of arrays in host memory ---- */
/* Creates a dataset of x and y, which are on cpu contexts and have the same first extent. Copies:
   never; retains both. */
DVT_API dvt_dataset *dvt_dataset_arrays(dvt_array *x, dvt_array *y);
/* Reads image and label files of MNIST's kind: uint8 samples (28, 28, 1), int32 labels. Errors: IO,
   FORMAT. */
DVT_API dvt_dataset *dvt_dataset_idx(const char *images, const char *labels);

/* Selects a part of a published data set. */
typedef enum dvt_dataset_part { DVT_DATASET_TRAIN, DVT_DATASET_TEST } dvt_dataset_part;

/* Read Fashion-MNIST or MNIST from the directory `folder`. Files have their usual names, with or
   without .gz and the prefix "fashion-" or "mnist-". Nothing is downloaded. Errors: IO, FORMAT. */
DVT_API dvt_dataset *dvt_dataset_fashion_mnist(const char *folder, dvt_dataset_part part);
DVT_API dvt_dataset *dvt_dataset_mnist(const char *folder, dvt_dataset_part part);
/* Read CIFAR-10 or CIFAR-100, the binary versions: uint8 samples (32, 32, 3), int32 labels. The
   files, not compressed, are in `folder` or in the directory of the archive below it:
   cifar-10-batches-bin, cifar-100-binary. Nothing is downloaded. Errors: IO, FORMAT (sizes,
   labels), VALUE (part, labels). */
DVT_API dvt_dataset *dvt_dataset_cifar10(const char *folder, dvt_dataset_part part);
DVT_API dvt_dataset *dvt_dataset_cifar100(const char *folder, dvt_dataset_part part,
                                          dvt_cifar100_labels labels);
/* Returns the number of samples. */
DVT_API int64_t dvt_dataset_len(const dvt_dataset *data);
/* Returns sample i with its transforms applied in *x and *y. Errors: RANGE. */
DVT_API dvt_status dvt_dataset_get(dvt_dataset *data, int64_t i, dvt_array **x, dvt_array **y);

/* Converts (H, W, C) uint8 to (C, H, W) float32 in [0, 1]. */
DVT_API dvt_transform *dvt_transform_to_tensor(void);
/* Computes (x - mean) / deviation on (C, H, W) with n values, one per channel, or n = 1 for all. */
DVT_API dvt_transform *dvt_transform_normalize(const double *mean, const double *deviation, int n);
/* Applies n transforms one after the other, and retains them. */
DVT_API dvt_transform *dvt_transform_compose(dvt_transform *const *transforms, int n);
/* Creates a custom transform. apply returns the result in the current scope, or NULL. Loader
   threads call it, so user must live as long as loaders that use it. */
DVT_API dvt_transform *dvt_transform_new(dvt_array *(*apply)(void *user, dvt_array *x), void *user);
/* Applies a transform to one sample. */
DVT_API dvt_array *dvt_transform_apply(dvt_transform *transform, dvt_array *x);
/* Creates a dataset whose samples (x, y) have the transform applied to x, or to y. Retains both. */
DVT_API dvt_dataset *dvt_dataset_transform_first(dvt_dataset *data, dvt_transform *transform);
DVT_API dvt_dataset *dvt_dataset_transform_second(dvt_dataset *data, dvt_transform *transform);
/* Splits a dataset at random into n disjoint parts of these numbers of samples; one count may be
   -1, the rest. A seed always gives the same parts. Writes them to out[0..n); NULL on errors.
     int64_t counts[2] = {-1, dvt_dataset_len(data) / 10};
     dvt_dataset *parts[2];
     dvt_dataset_split(data, counts, 2, 1, parts);
   Copies: no sample.  Waits: no.  Owns: the innermost scope owns the parts, which retain data.
   Errors: RANGE (counts that are not the whole dataset). */
DVT_API dvt_status dvt_dataset_split(dvt_dataset *data, const int64_t *counts, int n, uint64_t seed,
                                     dvt_dataset **out);

/* ---- transforms of labels ---- */
/* Converts a label to (classes) float32: 1 at the label, else 0. dvt_one_hot does so for whole
   batches, which is faster. Errors: RANGE. */
DVT_API dvt_transform *dvt_transform_one_hot(int64_t classes);

/* ---- transforms of images: (H, W, C) uint8 in host memory, before dvt_transform_to_tensor. The
   result is uint8, with the same bits on all machines. Random ones give a sample other numbers in
   every epoch. In a loader these depend on its seed, the epoch and the number of the sample, for
   any number of workers; elsewhere on the stream of cpu(), see dvt_seed.
   Errors: RANGE (arguments); when applied DTYPE, SHAPE (an image that is too small). ---- */
/* Cuts the middle out. */
DVT_API dvt_transform *dvt_transform_center_crop(int64_t height, int64_t width);
/* Adds `padding` zeros on all sides, and cuts out a part at random. */
DVT_API dvt_transform *dvt_transform_random_crop(int64_t height, int64_t width, int64_t padding);
/* Exchanges left and right with probability p. */
DVT_API dvt_transform *dvt_transform_random_flip(double p);
/* Resizes by bilinear interpolation: half-pixel centers, edges repeated, no antialiasing. Rounds to
   the nearest integer, ties up. */
DVT_API dvt_transform *dvt_transform_resize(int64_t height, int64_t width);
/* Multiplies, in this order, the pixels, their distance to the image's mean brightness, and their
   distance to the pixel's brightness. The factors are uniform on max(0, 1 - amount) to 1 + amount.
   Brightness is that of ITU-R BT.601, or the mean without 3 channels. Saturation needs 3
   channels. */
DVT_API dvt_transform *dvt_transform_color_jitter(double brightness, double contrast,
                                                  double saturation);

/* Mixes every sample of a batch with another one, and their labels alike: share * x + (1 - share) *
   x[order]. The share has the distribution Beta(alpha, alpha). The key decides share and order; its
   last bits may depend on the C library. Any context.
   Shapes: x (N, ...) and y (N, ...), floats, for example of dvt_one_hot.
   Copies: never between contexts; the results are new memory.  Waits: no.
   Owns: the innermost scope owns both results.
   Errors: DTYPE, SHAPE, RANGE (alpha).  Source: Zhang et al., 2018. */
DVT_API dvt_status dvt_mixup(dvt_array *x, dvt_array *y, double alpha, dvt_key key,
                             dvt_array **mixed_x, dvt_array **mixed_y);

/* Selects what happens to a last batch that is not full: it is kept, left out, or moved to the next
   epoch. */
typedef enum dvt_last_batch { DVT_LAST_KEEP, DVT_LAST_DISCARD, DVT_LAST_ROLLOVER } dvt_last_batch;

/* Options of dvt_loader_new. */
typedef struct dvt_loader_desc {
    int64_t batch_size; /* required */
    bool shuffle;       /* a new order every epoch */
    dvt_last_batch last_batch;
    int num_workers;   /* 0 to 64 threads that prepare batches, the same ones for any number */
    uint64_t seed;     /* of the shuffling and of random transforms */
    dvt_ctx_list ctxs; /* each gets one part of every batch; none: cpu(0) */
    bool all_ranks;    /* every process gets whole batches, see [dvt:distributed] */
} dvt_loader_desc;

/* Creates a loader, and retains the data. Errors: RANGE (batch_size, last_batch, num_workers, the
   number of contexts), NO_DEVICE. */
DVT_API dvt_loader *dvt_loader_new(dvt_dataset *data, const dvt_loader_desc *desc);
/* Returns the number of batches per epoch. */
DVT_API int64_t dvt_loader_len(const dvt_loader *loader);
/* Returns the next batch, on the loader's only context, in the current scope. Returns false at the
   end of an epoch, and on errors; dvt_error_code() distinguishes them. After the end, the next call
   starts a new epoch. After an error, it tries the same batch again.
   Copies: batches are made on cpu(0) and copied to another context. A worker does both in advance,
   while the program computes; at most 2 batches per worker exist in advance, there and in host
   memory. Without workers the call does both.
   Waits: for the worker.  Errors: VALUE (several contexts), those of the data, with the number of
   the sample, and memory. */
DVT_API bool dvt_loader_next(dvt_loader *loader, dvt_array **x, dvt_array **y);
/* Returns the parts of the next batch: x[i] and y[i] are on context i, and have the rows that
   dvt_array_split_and_load gives it. Parts of the last batch may be smaller, even without rows;
   DVT_LAST_DISCARD drops it. The rest is as in dvt_loader_next. x and y have places for all
   contexts. */
DVT_API bool dvt_loader_next_parts(dvt_loader *loader, dvt_array **x, dvt_array **y);
/* Loop over one epoch, each batch in a scope of its own; break leaves the loop and ends the scope:
     dvt_array *x, *y;
     DVT_FOR_BATCHES(loader, x, y) { ... }
     dvt_array *xs[DVT_MAX_CONTEXTS], *ys[DVT_MAX_CONTEXTS];
     DVT_FOR_PARTS(loader, xs, ys) { ... }
   Afterwards dvt_error_code() is DVT_OK if the epoch was complete. */
#define DVT_FOR_BATCHES(loader, x, y) DVT_FOR_EACH(dvt_loader_next(loader, &(x), &(y)))
#define DVT_FOR_PARTS(loader, x, y) DVT_FOR_EACH(dvt_loader_next_parts(loader, x, y))
#define DVT_FOR_EACH(next)                                                                         \
    for (DVT_GUARD(dvt_scope_guard, DVT_GUARD_NAME(dvt_g_batch, __LINE__), dvt_scope_begin(),      \
                   dvt_scope_end);                                                                 \
         next; dvt_scope_end(&DVT_GUARD_NAME(dvt_g_batch, __LINE__)),                              \
               DVT_GUARD_NAME(dvt_g_batch, __LINE__) = dvt_scope_begin())
/* Restarts the epoch; after its last batch, starts the next one. */
DVT_API void dvt_loader_reset(dvt_loader *loader);

/* Where a loader is, whatever its workers have prepared: epoch and batches are counted from 0. */
typedef struct dvt_loader_state {
    uint64_t seed;
    int64_t epoch;
    int64_t batch; /* of the epoch, the one that dvt_loader_next returns next */
} dvt_loader_state;

/* Returns the state. */
DVT_API dvt_loader_state dvt_loader_get_state(const dvt_loader *loader);
/* Continues at a state of a loader with as many samples and the same batch_size, shuffle and
   last_batch, in another process for example: the next batches are the same. Errors: RANGE (no
   such batch; nothing changes), HOST_MEMORY. */
DVT_API dvt_status dvt_loader_set_state(dvt_loader *loader, const dvt_loader_state *state);

/* Cuts x along axis 0 into one equal slice per context, and copies each slice to its context, into
   out[0..ctxs.n). With one context that has x, out[0] is x itself. Errors: SHAPE (the number of
   contexts does not divide the extent). */
DVT_API dvt_status dvt_split_and_load(dvt_array *x, dvt_ctx_list ctxs, dvt_array **out);
/* Cuts and copies x as dvt_split_and_load does, for any extent, with the slices of
   dvt_array_split. */
DVT_API dvt_status dvt_array_split_and_load(dvt_array *x, dvt_ctx_list ctxs, dvt_array **out);

/* Create metrics: the share of correct predictions; of labels among the k largest scores; the mean
   of losses. */
DVT_API dvt_metric *dvt_metric_accuracy(void);
DVT_API dvt_metric *dvt_metric_top_k_accuracy(int k);
DVT_API dvt_metric *dvt_metric_mean_loss(void);

/* The totals of a custom metric. */
typedef struct dvt_metric_total {
    double sum, count;
} dvt_metric_total;

/* Describes a custom metric. Zero is the default of every field but update. */
typedef struct dvt_metric_desc {
    const char *name; /* copied; "custom" */
    /* Required. Adds a batch to the total, in a scope of its own and not recorded. labels may be
       NULL. If it does not return DVT_OK, the total does not change. */
    dvt_status (*update)(void *user, dvt_array *labels, dvt_array *predictions,
                         dvt_metric_total *total);
    /* Returns the value of a total whose count is not 0; default: sum / count. */
    double (*value)(void *user, const dvt_metric_total *total);
    /* Called by dvt_metric_reset, to reset the state of `user`. */
    void (*reset)(void *user);
    void *user; /* must live as long as the metric */
} dvt_metric_desc;

/* Creates a custom metric; *desc is copied. Errors: NULL_ARGUMENT. */
DVT_API dvt_metric *dvt_metric_custom(const dvt_metric_desc *desc);
/* Adds a batch. Metrics expect labels (N) and predictions (N, classes), whose largest score is the
   predicted class. dvt_metric_accuracy also takes predicted classes of the labels' shape.
   dvt_metric_mean_loss takes NULL and the losses. A custom metric takes what its update expects.
   Both arrays are on one context, of any kind. A label that is no class counts as wrong, on CPUs
   and GPUs. Copies: one number to host memory.  Waits: yes. */
DVT_API dvt_status dvt_metric_update(dvt_metric *metric, dvt_array *labels, dvt_array *predictions);
/* Returns the value so far; NaN before the first sample. */
DVT_API double dvt_metric_get(const dvt_metric *metric);
/* Returns the name, "accuracy" for example. Owns: the metric. */
DVT_API const char *dvt_metric_name(const dvt_metric *metric);
/* Removes all samples. */
DVT_API void dvt_metric_reset(dvt_metric *metric);

/* ---- progress ---- */
/* Creates a progress display on standard error. On a terminal it is a bar with rate, loss and
   remaining time, else a plain line now and then. */
DVT_API dvt_progress *dvt_progress_new(const char *title, int64_t total);
/* Shows `done` of total, and a loss (NaN for none). */
DVT_API void dvt_progress_update(dvt_progress *progress, int64_t done, double loss);
/* Shows the final state and ends the line. */
DVT_API void dvt_progress_finish(dvt_progress *progress);
/* Writes the line as it looks `seconds` after the start, in at most `width` columns; 0 gives the
   plain line without a bar. Returns the length of the whole text; writes at most `size` bytes with
   the final 0. */
DVT_API size_t dvt_progress_format(const dvt_progress *progress, double seconds, int width,
                                   char *buffer, size_t size);

/* Creates a plot of several named series of points. */
DVT_API dvt_curve *dvt_curve_new(const char *title, const char *x_label, const char *y_label);
/* Adds a point to a series; the first point creates the series. */
DVT_API dvt_status dvt_curve_add(dvt_curve *curve, const char *series, double x, double y);
/* Sets logarithmic axes; points that are not positive are then not drawn. */
DVT_API dvt_status dvt_curve_set_log(dvt_curve *curve, bool x, bool y);
/* Writes the plot as an SVG image. Errors: IO, NOT_BUILT. */
DVT_API dvt_status dvt_curve_save(dvt_curve *curve, const char *path);
