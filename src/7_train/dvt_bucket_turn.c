/* The order in which buckets start (dvt_buckets.c): that of rank 0, on all ranks.

   Each rank completes backward passes of several trainers in an order of its own, but NCCL's
   sums must start in one order. A communicator for each trainer would not change that. Kernels
   of NCCL occupy the GPU while they wait for the other ranks, and any call of CUDA may wait for
   them. NCCL's user guide says so in "Using multiple NCCL communicators concurrently". So rank 0
   gives turns, a message each, and a rank starts the next bucket of a plan when its turn has
   come.

   A bucket that has the turn must start on every rank without help of another host. Otherwise
   ranks could wait in a circle. The host of rank 0 is in a call of CUDA that waits for a sum, to
   load a kernel or for memory. Rank 1 has not started that sum, because its backward pass
   follows a call that waits for rank 0. So a rank that waits for others sends zeros for a bucket
   that it has not packed: in a step, at the end, and after a second in any exchange. The
   trainer's step finds that the gradients are not those that were sent, and all ranks sum again. */
#include "7_train/dvt_buckets.h"

#if defined(DEVTENSOR_MPI)
#define DVTI_TURN_TAG DVTI_RANK_TAGS

typedef enum dvti_turn_kind {
    DVTI_TURN_START, /* the next bucket of a plan */
    DVTI_TURN_OVER,  /* rank 0 has destroyed the trainer: its plan gets no more turns */
    DVTI_TURN_LAST   /* of the run */
} dvti_turn_kind;

typedef struct dvti_turn {
    int32_t kind, number; /* of the plan */
} dvti_turn;

static struct dvti_turns {
    int64_t taken;       /* so far */
    dvti_turn turn;      /* the next one, from rank 0 */
    dvti_flight *flight; /* its message, on the way */
    bool known;          /* the message has arrived */
    bool counted;        /* rank 0 tells their number, and gives none */
    bool paused;         /* this rank takes none while it waits */
    bool ends;           /* rank 0 gives the last one */
} dvti_turns;

DVTI_FN int64_t dvti_turns_count(void) {
    dvti_turns.counted = true;
    return dvti_turns.taken + (dvti_turns.flight || dvti_turns.known);
}

/* Chooses the next turn on rank 0. Returns false when there is none. */
static bool dvti_turn_choose(dvti_turn *turn) {
    const dvti_buckets *o;
    turn->kind = DVTI_TURN_LAST;
    turn->number = 0;
    if (dvti_turns.ends)
        return true;
    for (o = dvti_buckets_first(); o && !dvti_turns.counted; o = o->next) {
        const bool orphan = dvti_atomic_load(&o->orphan) != 0;
        if (!o->n_buckets || o->over || (!orphan && o->started == o->packed))
            continue;
        turn->kind = orphan ? DVTI_TURN_OVER : DVTI_TURN_START;
        turn->number = o->number;
        return true;
    }
    return false;
}

/* Sends the next turn from rank 0 to all, or expects it. Returns whether that was done. */
static bool dvti_turn_post(const char *function, dvt_status *status) {
    const size_t n = (size_t)dvt_num_ranks();
    dvti_message *message;
    size_t r;
    if (dvt_rank() == 0 && !dvti_turn_choose(&dvti_turns.turn))
        return false;
    message = (dvti_message *)dvti_alloc_zero(2 * n * sizeof *message);
    if (!message) {
        *status = dvti_fail_memory(function, (int64_t)(2 * n * sizeof *message));
        return false;
    }
    for (r = 0; r < 2 * n; r++)
        message[r].at = (char *)(void *)&dvti_turns.turn;
    for (r = 1; r < n && dvt_rank() == 0; r++)
        message[r].bytes = sizeof dvti_turns.turn;
    if (dvt_rank() != 0)
        message[n].bytes = sizeof dvti_turns.turn;
    dvti_turns.flight = dvti_ranks_post(function, DVTI_TURN_TAG, message, message + n);
    dvti_free(message);
    if (!dvti_turns.flight)
        *status = dvti_failure();
    return dvti_turns.flight != NULL;
}

/* Returns whether the next turn is known on this rank; on rank 0, whether MPI has taken its
   message: it must not need rank 0 any more when the bucket starts. */
static bool dvti_turn_known(const char *function, bool wait, dvt_status *status) {
    if (dvti_turns.known)
        return true;
    if (!dvti_turns.flight && !dvti_turn_post(function, status))
        return false;
    if (!dvti_bucket_landed(function, dvti_turns.flight, wait, status))
        return false;
    dvti_ranks_land(dvti_turns.flight);
    dvti_turns.flight = NULL;
    dvti_turns.known = true;
    return true;
}

/* Returns the plan that has the turn; NULL with the error set, for our own bugs. */
static dvti_buckets *dvti_turn_plan(const char *function) {
    dvti_buckets *o = dvti_buckets_first();
    while (o && (!o->n_buckets || o->over || o->number != dvti_turns.turn.number))
        o = o->next;
    if (!o)
        dvti_fail(DVT_ERR_INTERNAL, "%s: rank %d has no plan %d of buckets, and rank 0 has",
                  function, dvt_rank(), (int)dvti_turns.turn.number);
    return o;
}

/* Starts the next bucket of a plan. With `force`, also one that is not packed. */
static bool dvti_turn_start(const char *function, dvti_buckets *o, bool force, dvt_status *status) {
    if (o->started == o->packed) {
        if (!force && !dvti_atomic_load(&o->orphan))
            return false;
        if (!dvti_buckets_prepare_zeros(function, o)) {
            *status = dvti_failure();
            return false;
        }
    }
    if (!o->transport->start(function, &o->bucket[o->started], o->number, force, status))
        return false;
    o->started++;
    return true;
}

DVTI_FN bool dvti_turn_take(const char *function, bool wait, bool force, dvt_status *status) {
    dvti_buckets *o;
    if (!dvti_turn_known(function, wait, status))
        return false;
    if (dvti_turns.turn.kind != DVTI_TURN_LAST) {
        o = dvti_turn_plan(function);
        if (!o)
            *status = DVT_ERR_INTERNAL;
        else if (dvti_turns.turn.kind == DVTI_TURN_OVER)
            o->over = true;
        else if (!dvti_turn_start(function, o, force, status))
            return false;
        if (!o)
            return false;
    }
    dvti_turns.known = false;
    dvti_turns.taken++;
    return true;
}

DVTI_FN void dvti_turns_attend(const char *function, bool force) {
    dvt_status status = DVT_OK;
    if (dvti_turns.paused)
        return;
    while (status == DVT_OK && dvti_turn_take(function, false, force, &status))
        continue;
}

DVTI_FN void dvti_turns_pause(void) {
    dvti_turns.paused = true;
}

DVTI_FN void dvti_turns_go_on(void) {
    dvti_turns.counted = dvti_turns.paused = false;
}

DVTI_FN dvt_status dvti_turns_catch_up(const char *function, int64_t given) {
    dvt_status status = DVT_OK;
    while (dvti_turns.taken < given && status == DVT_OK)
        dvti_turn_take(function, true, true, &status);
    return status;
}

DVTI_FN dvt_status dvti_turns_end(const char *function) {
    const int64_t bytes = dvt_num_ranks() * (int64_t)sizeof(int64_t);
    const int64_t own = dvti_turns_count();
    int64_t *all = (int64_t *)dvti_alloc((size_t)bytes);
    dvt_status status = all ? DVT_OK : dvti_fail_memory(function, bytes);
    if (status == DVT_OK)
        status = dvti_ranks_gather(function, &own, sizeof own, all);
    if (status == DVT_OK)
        status = dvti_turns_catch_up(function, all[0]);
    dvti_turns.ends = true; /* leaves no message that a rank expects */
    if (status == DVT_OK)
        status = dvti_turns_catch_up(function, all[0] + 1);
    dvti_free(all);
    if (status == DVT_OK) {
        dvti_ranks_land(dvti_turns.flight); /* of a turn after the last one, expected for nothing */
        memset(&dvti_turns, 0, sizeof dvti_turns);
    }
    return status;
}

#undef DVTI_TURN_TAG
#endif
