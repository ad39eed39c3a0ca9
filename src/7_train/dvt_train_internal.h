/* Training from the inside: what the files of this room share. */
#ifndef DVTI_TRAIN_H
#define DVTI_TRAIN_H
#include "6_nn/dvt_nn_internal.h"

/* ---- optimizers and schedules ---- */
DVTI_FN dvt_status dvti_schedule_check(const char *function, const dvt_schedule *schedule);
/* All fields can be used; otherwise RANGE, naming the field. */
DVTI_FN dvt_status dvti_optimizer_check(const char *function, const dvt_optimizer *optimizer);
/* State arrays per copy of a parameter. */
DVTI_FN int dvti_optimizer_states(const dvt_optimizer *optimizer);

/* ---- the trainer ---- */
/* One copy of a parameter. Weight and gradient belong to the parameter and are looked up anew at every step. */
typedef struct dvti_replica {
    dvt_array *weight, *gradient;
    dvt_array *state[DVT_OPTIMIZER_STATES]; /* owned; NULL until the first step */
} dvti_replica;

/* The numbers of one step: rate and decay of this parameter; count: which step of it this is, from 1. */
typedef struct dvti_step_numbers {
    double rate, decay, rescale;
    int64_t count;
} dvti_step_numbers;

/* One step without its views, of an optimizer of the table. */
DVTI_FN dvti_launch dvti_optimizer_launch(const char *function, const dvt_optimizer *optimizer,
                                          const dvti_step_numbers *step);
/* One step of a custom optimizer on one copy. */
DVTI_FN dvt_status dvti_optimizer_custom_step(const char *function, const dvt_optimizer *optimizer,
                                              const dvti_step_numbers *step,
                                              const dvti_replica *at);

typedef struct dvti_trained {
    dvt_param *param;
    int64_t count;      /* steps of this parameter so far */
    dvt_array *landing; /* on the first context: where the others' gradients arrive; owned */
    bool taken;         /* part of the step that is under way */
    bool summed;        /* every copy's gradient is the sum already */
} dvti_trained;

struct dvt_trainer {
    dvti_object object;
    dvt_params *params; /* retained */
    dvt_optimizer optimizer;
    int states, n;
    int64_t steps;
    dvti_trained *trained; /* n */
    dvt_ctx_list ctxs;
    dvti_replica *replica; /* n rows of ctxs.n */
};

/* Copy k of parameter i. */
DVTI_FN dvti_replica *dvti_trainer_at(const dvt_trainer *t, int i, int k);
DVTI_FN void dvti_replicas_free(dvti_replica *replica, int64_t n);
/* The contexts that all parameters agree on; those without any (not initialized yet) are passed over. Otherwise CONTEXT. */
DVTI_FN dvt_status dvti_trainer_ctxs(const char *function, const dvt_trainer *t,
                                     dvt_ctx_list *ctxs);
/* Looks up every copy; parameters without gradients are not taken. Changes nothing that a failure would have to undo. */
DVTI_FN dvt_status dvti_trainer_look(const char *function, dvt_trainer *t);
/* The memory that a step needs for parameter i: its states; room for a gradient that comes from another device. */
DVTI_FN dvt_status dvti_trainer_make_states(dvt_trainer *t, int i);
DVTI_FN dvt_status dvti_trainer_make_landing(dvt_trainer *t, int i);
/* Finds what is summed already. A gradient that would be counted twice is refused with VALUE. fresh_only: as below. */
DVTI_FN dvt_status dvti_trainer_check_sums(const char *function, dvt_trainer *t, bool fresh_only);
/* The gradient of copy k takes part in the sum of parameter i. */
DVTI_FN bool dvti_trainer_counts(const dvt_trainer *t, int i, int k, bool fresh_only);
/* The sum, made by the devices where they can; false: they cannot, and nothing has changed. */
DVTI_FN bool dvti_trainer_all_reduce(const char *function, const dvt_trainer *t, bool fresh_only,
                                     dvt_status *status);
/* Sums the gradients of all that is taken and not summed yet over the contexts, in their order, and gives every copy the sum.
   fresh_only: stale ones count as 0. */
DVTI_FN dvt_status dvti_trainer_sum(const char *function, const dvt_trainer *t, bool fresh_only);

/* ---- clipping ---- */
/* The common 2-norm. False with the error set: RANGE (max_norm), memory, a read that is forbidden. */
DVTI_FN bool dvti_global_norm(const char *function, dvt_array *const *arrays, int n,
                              double max_norm, double *out);
/* Scales in place when norm is above max_norm. */
DVTI_FN bool dvti_clip_to_norm(const char *function, dvt_array *const *arrays, int n, double norm,
                               double max_norm);

/* ---- data ---- */
typedef enum dvti_transform_kind {
    DVTI_TRANSFORM_TO_TENSOR,
    DVTI_TRANSFORM_NORMALIZE,
    DVTI_TRANSFORM_COMPOSE,
    DVTI_TRANSFORM_CUSTOM
} dvti_transform_kind;

/* Each result element depends on one pixel and its channel only: dvt_transform_to_tensor, then any dvt_transform_normalize. *as_tensor, false at
   the start of a chain, tells whether dvt_transform_to_tensor has been seen. */
DVTI_FN bool dvti_transform_by_pixel(const dvt_transform *transform, bool *as_tensor);

/* Either two arrays, or another dataset and a transform of its first parts. */
struct dvt_dataset {
    dvti_object object;
    int64_t length;
    dvt_array *x, *y;
    dvt_dataset *source;
    dvt_transform *transform;
    int nested; /* sources below it */
};

/* How a batch is made: whole rows copied, pixels mapped by a table, or sample by sample. */
typedef enum dvti_batch_way {
    DVTI_BATCH_SAMPLES,
    DVTI_BATCH_ROWS,
    DVTI_BATCH_TABLE
} dvti_batch_way;

typedef struct dvti_batcher {
    dvt_dataset *data; /* retained */
    dvti_batch_way way;
    dvt_array *x, *y; /* the dataset's arrays, where the way needs them */
    float *table;     /* 256 floats per channel */
} dvti_batcher;

DVTI_FN void dvti_batcher_begin(dvti_batcher *batcher, dvt_dataset *data);
DVTI_FN void dvti_batcher_end(dvti_batcher *batcher);
/* Makes the table; before the first batch. False with the error set. */
DVTI_FN bool dvti_batcher_ready(const char *function, dvti_batcher *batcher);
/* The samples with these n numbers as one batch in the current scope. False with the error set. */
DVTI_FN bool dvti_batch_make(const char *function, const dvti_batcher *batcher,
                             const int64_t *index, int64_t n, dvt_array **x, dvt_array **y);

#endif
