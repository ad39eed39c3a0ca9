/* Internals of training, shared by the files of this directory. */
#ifndef DVTI_TRAIN_H
#define DVTI_TRAIN_H
#include "5_io/dvt_io_internal.h"
#include "6_nn/dvt_nn_internal.h"

/* ---- optimizers and schedules ---- */
DVTI_FN dvt_status dvti_schedule_check(const char *function, const dvt_schedule *schedule);
/* Checks all fields; sets RANGE with the name of the field otherwise. */
DVTI_FN dvt_status dvti_optimizer_check(const char *function, const dvt_optimizer *optimizer);
/* Returns the number of state arrays per copy of a parameter. */
DVTI_FN int dvti_optimizer_states(const dvt_optimizer *optimizer);

/* ---- the trainer ---- */
/* One copy of a parameter. The parameter owns weight and gradient; they are looked up again at
   every step. */
typedef struct dvti_replica {
    dvt_array *weight, *gradient;
    dvt_array *state[DVT_OPTIMIZER_STATES]; /* owned; NULL until the first step */
} dvti_replica;

/* The numbers of one step: rate and decay of this parameter, and its step count, from 1. */
typedef struct dvti_step_numbers {
    double rate, decay, rescale;
    int64_t count;
} dvti_step_numbers;

/* Returns the launch of one step without its views, for an optimizer of the table. */
DVTI_FN dvti_launch dvti_optimizer_launch(const char *function, const dvt_optimizer *optimizer,
                                          const dvti_step_numbers *step);
/* Runs one step of a custom optimizer on one copy. */
DVTI_FN dvt_status dvti_optimizer_custom_step(const char *function, const dvt_optimizer *optimizer,
                                              const dvti_step_numbers *step,
                                              const dvti_replica *at);

typedef struct dvti_trained {
    dvt_param *param;
    int64_t count;      /* steps of this parameter so far */
    dvt_array *staging; /* on the first context: buffer for the other contexts' gradients; owned */
    bool taken;         /* takes part in the current step */
    bool applied;       /* the current step has been launched on this context */
    bool summed;        /* every copy's gradient already is the sum */
} dvti_trained;

struct dvt_trainer {
    dvti_object object;
    dvt_params *params; /* retained */
    dvt_optimizer optimizer;
    int states, n;
    int64_t steps;
    dvti_trained *trained;  /* n elements */
    dvti_update_of *update; /* space for n elements, behind `trained` */
    dvt_ctx_list ctxs;
    dvti_replica *replica;         /* n rows of ctxs.n */
    int number;                    /* among the trainers that ranks share, from 1; 0: not yet */
    int spread;                    /* the run in which all ranks got the parameters of rank 0 */
    struct dvti_part_batch *parts; /* NULL: never set; owned (dvt_parts.h) */
    struct dvti_buckets *buckets;  /* NULL until ranks sum; owned (dvt_buckets.c) */
    int64_t bucket_bytes;          /* 0: ranks send no gradients while backward runs */
};

/* Returns copy k of parameter i. */
DVTI_FN dvti_replica *dvti_trainer_at(const dvt_trainer *t, int i, int k);
DVTI_FN void dvti_replicas_free(dvti_replica *replica, int64_t n);
/* Finds the contexts that all parameters share; skips uninitialized parameters, which have none.
   Sets CONTEXT when they differ. */
DVTI_FN dvt_status dvti_trainer_ctxs(const char *function, const dvt_trainer *t,
                                     dvt_ctx_list *ctxs);
DVTI_FN bool dvti_same_ctxs(const dvt_ctx_list *a, const dvt_ctx_list *b);
/* Returns the dtype of the states of a weight. */
DVTI_FN dvt_dtype dvti_state_dtype(dvt_dtype dtype);
/* Looks up every copy; skips parameters without gradients. Changes nothing that a failure must
   undo. */
DVTI_FN dvt_status dvti_trainer_look(const char *function, dvt_trainer *t);
/* Allocate the memory that a step needs for parameter i: its states, and the buffer for a gradient
   from another device. */
DVTI_FN dvt_status dvti_trainer_make_states(dvt_trainer *t, int i);
DVTI_FN dvt_status dvti_trainer_make_staging(dvt_trainer *t, int i);
/* Finds which gradients are summed already. Refuses, with VALUE, a gradient that would count twice.
   fresh_only: as below. */
DVTI_FN dvt_status dvti_trainer_check_sums(const char *function, dvt_trainer *t, bool fresh_only);
/* Returns whether the gradient of copy k takes part in the sum of parameter i. */
DVTI_FN bool dvti_trainer_counts(const dvt_trainer *t, int i, int k, bool fresh_only);
/* Lists the devices of n arrays, and returns whether dvti_all_reduce can sum over them. */
DVTI_FN bool dvti_arrays_can_all_reduce(dvt_array *const *array, int n, dvti_device **device);
/* Lets the devices form the sum. Returns false, with nothing changed, when they cannot. */
DVTI_FN bool dvti_trainer_all_reduce(const char *function, const dvt_trainer *t, bool fresh_only,
                                     dvt_status *status);
/* Sums the gradients of all parameters that take part and are not summed yet, in the order of the
   contexts. Gives every copy the sum. With fresh_only, stale gradients count as 0. */
DVTI_FN dvt_status dvti_trainer_sum(const char *function, const dvt_trainer *t, bool fresh_only);

/* Launches the step of all parameters that take part, on every context. */
DVTI_FN dvt_status dvti_trainer_apply_all(const char *function, dvt_trainer *t, int64_t batch_size);

/* ---- the loss scale (dvt_loss_scale.c) ---- */
/* Returns the mixed precision of the parameters' net, or NULL. */
DVTI_FN dvti_mixed *dvti_trainer_mixed(const dvt_trainer *t);
/* Finds whether a gradient of the step is not finite, where a loss scale needs it. Waits then. Sets
   VALUE for parameters of two nets with mixed precision. */
DVTI_FN dvt_status dvti_trainer_check_overflow(const char *function, const dvt_trainer *t,
                                               bool *overflow);
/* Marks the gradients as used, as a step does, and changes nothing else. */
DVTI_FN void dvti_trainer_skip(const dvt_trainer *t);
/* Changes the scale after a step, or after a skipped one. */
DVTI_FN void dvti_trainer_next_scale(const char *function, const dvt_trainer *t, bool overflow);

/* ---- clipping ---- */
/* Computes the common 2-norm. Returns false with the error set: RANGE (max_norm), memory, a
   forbidden read. */
DVTI_FN bool dvti_global_norm(const char *function, dvt_array *const *arrays, int n,
                              double max_norm, double *out);
/* Scales the arrays in place when norm is above max_norm. */
DVTI_FN bool dvti_clip_to_norm(const char *function, dvt_array *const *arrays, int n, double norm,
                               double max_norm);

/* ---- data ---- */
typedef enum dvti_transform_kind {
    DVTI_TRANSFORM_TO_TENSOR,
    DVTI_TRANSFORM_NORMALIZE,
    DVTI_TRANSFORM_COMPOSE,
    DVTI_TRANSFORM_CUSTOM,
    DVTI_TRANSFORM_ONE_HOT,
    DVTI_TRANSFORM_CENTER_CROP,
    DVTI_TRANSFORM_RANDOM_CROP,
    DVTI_TRANSFORM_RANDOM_FLIP,
    DVTI_TRANSFORM_RESIZE,
    DVTI_TRANSFORM_COLOR_JITTER
} dvti_transform_kind;

struct dvt_transform {
    dvti_object object;
    dvti_transform_kind kind;
    int n;                    /* number of values, or of parts */
    double *mean, *deviation; /* normalize */
    dvt_transform **part;     /* compose; retained */
    int nested;               /* compose: levels below it */
    dvt_array *(*apply)(void *user, dvt_array *x);
    void *user;
    int64_t extent[3]; /* images: height, width, padding; one-hot: classes */
    double amount[3];  /* flip: probability; jitter: brightness, contrast, saturation */
};

/* Allocates a transform with n zeroed values or parts. */
DVTI_FN dvt_transform *dvti_transform_new(const char *function, dvti_transform_kind kind, int n);
/* Applies a transform of images. */
DVTI_FN dvt_array *dvti_transform_image(const dvt_transform *t, dvt_array *x);

/* The random numbers of one sample: they depend on the loader's seed, the epoch and the number of
   the sample, and not on the thread. */
typedef struct dvti_sample_random {
    bool on; /* false: numbers come from the stream of cpu() */
    uint32_t key[2];
    int64_t sample;
    uint64_t draws; /* so far */
} dvti_sample_random;

/* Sets this thread's sample. Returns the previous one, which the caller restores. */
DVTI_FN dvti_sample_random dvti_set_sample_random(dvti_sample_random random);

/* Returns whether each result element depends on one pixel and its channel only. That holds for
   dvt_transform_to_tensor, then any number of dvt_transform_normalize. *as_tensor is false at the
   start of a chain, and becomes true at dvt_transform_to_tensor. */
DVTI_FN bool dvti_transform_by_pixel(const dvt_transform *transform, bool *as_tensor);

/* Two arrays, or another dataset and either a transform of one member or numbers of samples. */
struct dvt_dataset {
    dvti_object object;
    int64_t length;
    dvt_array *x, *y;
    dvt_dataset *source;
    dvt_transform *transform;
    bool of_second; /* the transform is that of y */
    int64_t *index; /* of the samples in source */
    int nested;     /* number of datasets below it */
};

/* Returns the number that a sample has in the arrays below all transforms. */
DVTI_FN int64_t dvti_dataset_bottom_index(const dvt_dataset *data, int64_t i);
/* Creates a dataset on another one, and retains it. `what` is the message when too many are
   nested. */
DVTI_FN dvt_dataset *dvti_dataset_on(const char *function, dvt_dataset *source, int64_t length,
                                     const char *what);
#if !defined(DEVTENSOR_NO_FILES)
/* Returns whether the file can be opened. */
DVTI_FN bool dvti_dataset_file_exists(const char *path);
#endif

#if defined(DVTI_CHECKPOINTS)
/* Returns the loader's description, and sets *samples to the length of its data. */
DVTI_FN const dvt_loader_desc *dvti_loader_described(const dvt_loader *loader, int64_t *samples);
#endif

/* How a batch is made: rows copied, pixels mapped by a table, or sample by sample. */
typedef enum dvti_batch_method {
    DVTI_BATCH_SAMPLES,
    DVTI_BATCH_ROWS,
    DVTI_BATCH_TABLE
} dvti_batch_method;

typedef struct dvti_batcher {
    dvt_dataset *data; /* retained */
    dvti_batch_method method;
    dvt_array *x, *y; /* the dataset's arrays, if the method needs them */
    float *table;     /* 256 floats per channel */
} dvti_batcher;

DVTI_FN void dvti_batcher_begin(dvti_batcher *batcher, dvt_dataset *data);
DVTI_FN void dvti_batcher_end(dvti_batcher *batcher);
/* Makes the table, before the first batch. Returns false with the error set. */
DVTI_FN bool dvti_batcher_ready(const char *function, dvti_batcher *batcher);
/* Makes a batch of the samples with these n numbers in the current scope. `key` is that of the
   epoch's random transforms. Returns false with the error set. */
DVTI_FN bool dvti_batch_make(const char *function, const dvti_batcher *batcher,
                             const uint32_t key[2], const int64_t *index, int64_t n, dvt_array **x,
                             dvt_array **y);

/* Implements dvt_split_and_load and dvt_array_split_and_load; `function` is for messages. */
DVTI_FN dvt_status dvti_split_and_load(const char *function, dvt_array *x, dvt_ctx_list ctxs,
                                       bool even_split, dvt_array **out);

/* ---- the order of a loader's samples ---- */
typedef struct dvti_order {
    int64_t *sample; /* of an epoch; those left over from the last one come first */
    size_t capacity;
    int64_t length, batches;
    int64_t epoch;
    uint32_t key[2]; /* of the random transforms of the epoch */
} dvti_order;

/* Shuffles by Fisher and Yates. The result depends only on the seed and the epoch. */
DVTI_FN void dvti_shuffle(int64_t *order, int64_t n, uint64_t seed, int64_t epoch);
/* Returns the number of batches of the next epoch of n samples. */
DVTI_FN int64_t dvti_order_next_batches(const dvti_order *order, const dvt_loader_desc *desc,
                                        int64_t n);
/* Writes the order of epoch order->epoch. Changes nothing when there is no memory for it. */
DVTI_FN bool dvti_order_open(dvti_order *order, const char *function, const dvt_loader_desc *desc,
                             int64_t n);
/* Writes the order of the state's epoch, with its seed, which becomes the loader's. Changes nothing
   when it fails. */
DVTI_FN dvt_status dvti_order_seek(dvti_order *order, const char *function, dvt_loader_desc *desc,
                                   int64_t n, const dvt_loader_state *state);

/* ---- SVG images ---- */
/* Begins an image of that size on white. */
DVTI_FN void dvti_svg_begin(dvti_writer *out, int width, int height);
/* Writes a fixed-point number without printf, which would follow the locale. |value| * 10^decimals
   must be below 2^53. */
DVTI_FN void dvti_svg_fixed(dvti_writer *out, double value, int decimals);
/* Writes <text x= y= attributes>content</text>, and a line. */
DVTI_FN void dvti_svg_text(dvti_writer *out, double x, double y, const char *attributes,
                           const char *content);
DVTI_FN void dvti_svg_line(dvti_writer *out, double x1, double y1, double x2, double y2,
                           const char *attributes);
/* Writes the text to a file and frees it. */
DVTI_FN dvt_status dvti_svg_save(const char *function, const char *path, dvti_writer *text);

#endif
