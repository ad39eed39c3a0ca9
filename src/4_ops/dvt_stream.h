/* The streams of random numbers: where each context's stream stands, which engine is set, and how a launch gets its part. */
#ifndef DVTI_STREAM_H
#define DVTI_STREAM_H
#include "1_base/dvt_rng.h"
#include "4_ops/dvt_op.h"

DVTI_FN dvt_rng_engine dvti_rng_engine_now(void);
/* Fills out, whose shape is not empty, by `launch`: from `key`, or when that is NULL from the stream of out's context. `words`:
   32-bit words that Philox needs for one element. */
DVTI_FN dvt_status dvti_draw(dvt_array *out, dvti_launch *launch, const dvt_key *key, int words);

#endif
