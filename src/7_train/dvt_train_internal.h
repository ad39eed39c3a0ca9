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

#endif
