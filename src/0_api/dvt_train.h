/* [dvt:train] Optimizers, trainer, data, metrics, progress. Owns: results belong to the innermost
 * scope. */

/* ---- learning-rate schedules: values; the zero value keeps the rate ---- */
typedef enum dvt_schedule_kind {
    DVT_SCHEDULE_CONSTANT,
    DVT_SCHEDULE_FACTOR,       /* times factor every `every` steps, never below minimum */
    DVT_SCHEDULE_MULTI_FACTOR, /* times factor at each of the given steps */
    DVT_SCHEDULE_POLY,         /* from base to final over total steps, (1 - t)^power */
    DVT_SCHEDULE_COSINE,       /* from base to final over total steps, half a cosine */
    DVT_SCHEDULE_CUSTOM        /* what the function `rate` says */
} dvt_schedule_kind;

typedef struct dvt_schedule {
    dvt_schedule_kind kind;
    double factor, minimum, final, power;
    int64_t every, total;
    int64_t at[16];
    int n_at;
    int64_t warmup;      /* steps of linear warm-up before the schedule */
    double warmup_begin; /* rate at its start */
    double (*rate)(void *user, double base, int64_t step); /* CUSTOM */
    void *user;
} dvt_schedule;

/* The fields of each kind, named above. */
DVT_API dvt_schedule dvt_schedule_factor(int64_t every, double factor, double minimum);
DVT_API dvt_schedule dvt_schedule_multi_factor(const int64_t *at, int n, double factor);
DVT_API dvt_schedule dvt_schedule_poly(int64_t total, double power, double final);
DVT_API dvt_schedule dvt_schedule_cosine(int64_t total, double final);
/* A schedule of your own: rate returns the learning rate of a step, counted from 0 after the warm-up,
   from the base rate. It must be finite and not negative, otherwise steps fail with RANGE. */
DVT_API dvt_schedule dvt_schedule_custom(double (*rate)(void *user, double base, int64_t step),
                                         void *user);
/* The rate at a step, counted from 0, from a base rate. */
DVT_API double dvt_schedule_rate(const dvt_schedule *schedule, double base, int64_t step);

/* ---- optimizers: values; change fields before making a trainer ---- */
typedef enum dvt_optimizer_kind {
    DVT_OPTIMIZER_SGD,   /* Source of the momentum form: MXNet; Nesterov: Sutskever et al., 2013 */
    DVT_OPTIMIZER_ADAM,  /* Kingma and Ba, 2014 */
    DVT_OPTIMIZER_ADAMW, /* Loshchilov and Hutter, 2017 */
    DVT_OPTIMIZER_RMSPROP, /* Tieleman and Hinton, 2012; with momentum: Graves, 2013 */
    DVT_OPTIMIZER_ADAGRAD, /* Duchi et al., 2011 */
    DVT_OPTIMIZER_CUSTOM   /* of your own: dvt_optimizer_custom */
} dvt_optimizer_kind;

#define DVT_OPTIMIZER_STATES 4 /* state arrays of a parameter at most */

/* What one step of one copy of a parameter sees. All arrays are on the copy's context. */
typedef struct dvt_optimizer_step {
    dvt_array *weight;       /* to be changed in place, as by dvt_sub_ */
    dvt_array *gradient;     /* divided by batch_size and clipped; a new array of this step */
    dvt_array *const *state; /* of the weight's shape, zeros before the first step, to be changed in
                                place; float64 for float64 weights, else float32 */
    double learning_rate;    /* by the schedule, times the parameter's lr_mult */
    double weight_decay;     /* times the parameter's wd_mult */
    int64_t count;           /* steps of this parameter, from 1 */
} dvt_optimizer_step;

/* An optimizer of your own. The zero value of every field but step is a default. */
typedef struct dvt_optimizer_desc {
    const char *name; /* for messages; lives as long as trainers that use it, as user does */
    int states;       /* state arrays per parameter, 0 to DVT_OPTIMIZER_STATES */
    /* Required. Called once per step for every copy of a parameter, in a scope of its own and not
       recorded. Anything but DVT_OK, or an error that was not cleared, ends the trainer's step; what
       was changed before stays changed. */
    dvt_status (*step)(void *user, const dvt_optimizer_step *step);
    void *user;
} dvt_optimizer_desc;

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

/* With the usual values of everything else. */
DVT_API dvt_optimizer dvt_optimizer_sgd(double learning_rate);
DVT_API dvt_optimizer dvt_optimizer_adam(double learning_rate);
DVT_API dvt_optimizer dvt_optimizer_adamw(double learning_rate, double weight_decay);
DVT_API dvt_optimizer dvt_optimizer_rmsprop(double learning_rate);
DVT_API dvt_optimizer dvt_optimizer_adagrad(double learning_rate);
/* Weight decay, clipping, the schedule, multipliers of parameters and several contexts work as with the
   others; copies keep the same bits where the step's operations have them. */
DVT_API dvt_optimizer dvt_optimizer_custom(const dvt_optimizer_desc *desc, double learning_rate);

/* ---- trainer ---- */
/* Trains all parameters of the collection whose grad_req is not null. Retains them.
   An empty collection trains nothing, which is warned of in the log.
   Errors: CONTEXT (parameters on different context lists), RANGE (rates). */
DVT_API dvt_trainer *dvt_trainer_new(dvt_params *params, dvt_optimizer optimizer);
/* dvt_trainer_allreduce, then dvt_trainer_update: sums the gradients over the contexts in their
   order, divides by batch_size and updates every copy: all copies keep the same bits. What
   dvt_trainer_allreduce has summed already is not summed again. Waits: no. Errors: STALE_GRAD (a
   gradient was not renewed since the last step; nothing is updated), UNINITIALIZED, RANGE
   (batch_size <= 0), VALUE (as dvt_trainer_allreduce). */
DVT_API dvt_status dvt_trainer_step(dvt_trainer *trainer, int64_t batch_size);
/* The same, but parameters with stale gradients are skipped; a copy whose context had no part in
   this batch counts as 0. */
DVT_API dvt_status dvt_trainer_step_partial(dvt_trainer *trainer, int64_t batch_size);
/* The two halves of a step, for changing gradients in between. Gradients are summed once: a second
   call before the next backward leaves them as they are. Errors: VALUE (backward has renewed or
   added to some of the sums since, so that another sum would count them twice). */
DVT_API dvt_status dvt_trainer_allreduce(dvt_trainer *trainer);
/* Errors: as dvt_trainer_step; VALUE (on several contexts, gradients that are not summed). */
DVT_API dvt_status dvt_trainer_update(dvt_trainer *trainer, int64_t batch_size);
DVT_API double dvt_trainer_learning_rate(const dvt_trainer *trainer);
DVT_API dvt_status dvt_trainer_set_learning_rate(dvt_trainer *trainer, double rate);
DVT_API int64_t dvt_trainer_steps(const dvt_trainer *trainer);

/* Scales arrays in place so that their common 2-norm is at most max_norm, and returns the norm it
   was (NaN on errors). Copies: the norms to main memory.  Waits: yes.  When the norm is not finite,
   nothing is scaled and a warning is logged. Source: Pascanu, Mikolov and Bengio, 2013. */
DVT_API double dvt_clip_global_norm(dvt_array *const *arrays, int n, double max_norm);
/* The same for the gradients of a trainer, after dvt_trainer_allreduce; all contexts scale alike.
   They are sums over the batch still: give max_norm times batch_size to bound their mean. */
DVT_API double dvt_trainer_clip_global_norm(dvt_trainer *trainer, double max_norm);

/* ---- data: samples are pairs of arrays in main memory ---- */
/* x and y with the same first extent; kept, not copied. On cpu contexts. */
DVT_API dvt_dataset *dvt_dataset_arrays(dvt_array *x, dvt_array *y);
/* Image and label files of MNIST's kind: uint8 samples (28, 28, 1), int32 labels. Errors: IO,
 * FORMAT. */
DVT_API dvt_dataset *dvt_dataset_idx(const char *images, const char *labels);

typedef enum dvt_dataset_part { DVT_DATASET_TRAIN, DVT_DATASET_TEST } dvt_dataset_part;

/* Fashion-MNIST or MNIST: finds its files in the directory `folder` under their usual names, with
   or without .gz and with or without the prefix "fashion-" or "mnist-". Nothing is downloaded. */
DVT_API dvt_dataset *dvt_dataset_fashion_mnist(const char *folder, dvt_dataset_part part);
DVT_API dvt_dataset *dvt_dataset_mnist(const char *folder, dvt_dataset_part part);
DVT_API int64_t dvt_dataset_len(const dvt_dataset *data);
/* Sample i with its transforms applied. Errors: RANGE. */
DVT_API dvt_status dvt_dataset_get(dvt_dataset *data, int64_t i, dvt_array **x, dvt_array **y);

/* (H, W, C) uint8 to (C, H, W) float32 in [0, 1]. */
DVT_API dvt_transform *dvt_transform_to_tensor(void);
/* (x - mean) / deviation on (C, H, W); n values, one per channel, or n = 1 for all. */
DVT_API dvt_transform *dvt_transform_normalize(const double *mean, const double *deviation, int n);
/* One after the other. */
DVT_API dvt_transform *dvt_transform_compose(dvt_transform *const *transforms, int n);
/* One of your own: returns the result in the current scope, or NULL. Called from loader threads, so
   user must live as long as loaders that use it. */
DVT_API dvt_transform *dvt_transform_new(dvt_array *(*apply)(void *user, dvt_array *x), void *user);
DVT_API dvt_array *dvt_transform_apply(dvt_transform *transform, dvt_array *x);
/* A dataset whose samples (x, y) have the transform applied to x. */
DVT_API dvt_dataset *dvt_dataset_transform_first(dvt_dataset *data, dvt_transform *transform);

typedef enum dvt_last_batch { DVT_LAST_KEEP, DVT_LAST_DISCARD, DVT_LAST_ROLLOVER } dvt_last_batch;

typedef struct dvt_loader_desc {
    int64_t batch_size; /* required */
    bool shuffle;       /* a new order every epoch */
    dvt_last_batch last_batch;
    int num_workers; /* threads that prepare batches; the batches are the same for any number */
    uint64_t seed;   /* of the shuffling */
} dvt_loader_desc;

/* Retains the data. Errors: RANGE (batch_size). */
DVT_API dvt_loader *dvt_loader_new(dvt_dataset *data, const dvt_loader_desc *desc);
/* Batches per epoch. */
DVT_API int64_t dvt_loader_len(const dvt_loader *loader);
/* The next batch, on cpu(0), in the current scope. False at the end of an epoch (the next call
   starts a new one) and on errors, which dvt_error_code() tells apart; the next call then tries the
   same batch again. */
DVT_API bool dvt_loader_next(dvt_loader *loader, dvt_array **x, dvt_array **y);
/* One epoch, each batch in a scope of its own; break leaves the loop and ends the scope:
       dvt_array *x, *y;
       DVT_FOR_BATCHES(loader, x, y) { ... }
   Afterwards dvt_error_code() tells whether the epoch was complete. */
#define DVT_FOR_BATCHES(loader, x, y)                                                              \
    for (DVT_GUARD(dvt_scope_guard, DVT_GUARD_NAME(dvt_g_batch, __LINE__), dvt_scope_begin(),      \
                   dvt_scope_end);                                                                 \
         dvt_loader_next(loader, &(x), &(y));                                                      \
         dvt_scope_end(&DVT_GUARD_NAME(dvt_g_batch, __LINE__)),                                    \
         DVT_GUARD_NAME(dvt_g_batch, __LINE__) = dvt_scope_begin())
/* Starts the epoch again; after its last batch, the next one. */
DVT_API void dvt_loader_reset(dvt_loader *loader);

/* Cuts x along axis 0 into one equal part per context and copies each there, into out[0..ctxs.n).
   One context: x as it is there. Errors: SHAPE (the number of contexts does not divide the
   extent). */
DVT_API dvt_status dvt_split_and_load(dvt_array *x, dvt_ctx_list ctxs, dvt_array **out);
/* The same for any extent, as dvt_array_split cuts. */
DVT_API dvt_status dvt_array_split_and_load(dvt_array *x, dvt_ctx_list ctxs, dvt_array **out);

/* ---- metrics ---- */
DVT_API dvt_metric *dvt_metric_accuracy(void);
DVT_API dvt_metric *dvt_metric_top_k_accuracy(int k);
DVT_API dvt_metric *dvt_metric_mean_loss(void);

/* What a metric of your own has counted. */
typedef struct dvt_metric_total {
    double sum, count;
} dvt_metric_total;

/* The zero value of every field but update is a default. */
typedef struct dvt_metric_desc {
    const char *name; /* copied; "custom" */
    /* Required. Adds a batch to the total, in a scope of its own and not recorded. labels may be NULL.
       Where it does not return DVT_OK the total stays as it was. */
    dvt_status (*update)(void *user, dvt_array *labels, dvt_array *predictions,
                         dvt_metric_total *total);
    /* The value of a total whose count is not 0; sum / count. */
    double (*value)(void *user, const dvt_metric_total *total);
    /* Called by dvt_metric_reset, for what `user` keeps. */
    void (*reset)(void *user);
    void *user; /* lives as long as the metric */
} dvt_metric_desc;

/* A metric of your own. Errors: NULL_ARGUMENT. */
DVT_API dvt_metric *dvt_metric_custom(const dvt_metric_desc *desc);
/* Counts a batch: labels (N) and predictions (N, classes), of which the largest counts; for
   dvt_metric_accuracy also predictions of the labels' shape, which are then class numbers themselves, and
   right where they are equal; for dvt_metric_mean_loss NULL and the losses; for a metric of your own what its
   update expects. Both on one context, whichever
   it is. A label that is no class is never right, on a CPU and on a GPU. Copies: one number to main
   memory.  Waits: yes. */
DVT_API dvt_status dvt_metric_update(dvt_metric *metric, dvt_array *labels, dvt_array *predictions);
/* The value so far; NaN before the first sample. */
DVT_API double dvt_metric_get(const dvt_metric *metric);
DVT_API const char *dvt_metric_name(const dvt_metric *metric);
DVT_API void dvt_metric_reset(dvt_metric *metric);

/* ---- progress ---- */
/* A bar with rate, loss and remaining time on a terminal, now and then a plain line elsewhere, on
 * standard error. */
DVT_API dvt_progress *dvt_progress_new(const char *title, int64_t total);
/* `done` of total, and a loss to show (NaN for none). */
DVT_API void dvt_progress_update(dvt_progress *progress, int64_t done, double loss);
DVT_API void dvt_progress_finish(dvt_progress *progress);
/* The line as it looks `seconds` after the start, in at most `width` columns; 0 gives the plain
   line without a bar. Returns the full length; writes at most `size` bytes with the final 0. */
DVT_API size_t dvt_progress_format(const dvt_progress *progress, double seconds, int width,
                                   char *buffer, size_t size);

/* Curves as an SVG image: several named series of points. */
DVT_API dvt_curve *dvt_curve_new(const char *title, const char *x_label, const char *y_label);
DVT_API dvt_status dvt_curve_add(dvt_curve *curve, const char *series, double x, double y);
/* Errors: IO, NOT_BUILT. */
DVT_API dvt_status dvt_curve_save(dvt_curve *curve, const char *path);
