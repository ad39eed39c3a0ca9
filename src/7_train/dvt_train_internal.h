/* Training from the inside: what the files of this room share. */
#ifndef DVTI_TRAIN_H
#define DVTI_TRAIN_H
#include "6_nn/dvt_nn_internal.h"

/* ---- optimisers and schedules ---- */
DVTI_FN dvt_status dvti_schedule_check(const char *function, const dvt_schedule *schedule);
/* All fields can be used; otherwise RANGE, naming the field. */
DVTI_FN dvt_status dvti_optimizer_check(const char *function, const dvt_optimizer *optimizer);
/* State arrays per copy of a parameter. */
DVTI_FN int dvti_optimizer_states(const dvt_optimizer *optimizer);
/* One step without its views: rate and decay of this parameter; count: which step of it this is, from 1. */
DVTI_FN dvti_launch dvti_optimizer_launch(const dvt_optimizer *optimizer, double rate, double decay,
                                          double rescale, int64_t count);

/* ---- data ---- */
typedef enum dvti_transform_kind {
    DVTI_TRANSFORM_TO_TENSOR,
    DVTI_TRANSFORM_NORMALIZE,
    DVTI_TRANSFORM_COMPOSE,
    DVTI_TRANSFORM_CUSTOM
} dvti_transform_kind;

/* Each result element depends on one pixel and its channel only: dvt_to_tensor, then any dvt_normalize. *as_tensor, false at
   the start of a chain, tells whether dvt_to_tensor has been seen. */
DVTI_FN bool dvti_transform_by_pixel(const dvt_transform *transform, bool *as_tensor);

/* Either two arrays, or another dataset and a transform of its first parts. */
struct dvt_dataset {
    dvti_object object;
    int64_t length;
    dvt_array *x, *y;
    dvt_dataset *source;
    dvt_transform *transform;
};

#endif
