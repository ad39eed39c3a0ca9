/* Internals of training by several processes: the transport, and sums over ranks. */
#ifndef DVTI_RANKS_H
#define DVTI_RANKS_H
#include "7_train/dvt_parts.h"

/* ---- the transport (dvt_mpi.c) ---- */
/* A message to, and one from, every rank; `bytes` 0: none. The arrays have one entry per rank. */
typedef struct dvti_message {
    char *at;
    int64_t bytes;
} dvti_message;

DVTI_FN dvt_status dvti_ranks_start(const char *function);
/* `whole`: after a barrier; otherwise all processes are ended. */
DVTI_FN void dvti_ranks_stop(bool whole);
/* Returns whether the processes have joined. Then there may still be only one. */
DVTI_FN bool dvti_ranks_on(void);
/* Returns how often the processes have joined. */
DVTI_FN int dvti_ranks_run(void);
/* Sends and receives all messages. Waits. Sets RANK_LOST, and VALUE for a message of another length
   than expected; every later exchange then fails too. */
DVTI_FN dvt_status dvti_ranks_exchange(const char *function, const dvti_message *send,
                                       const dvti_message *receive);
/* Returns the seconds after which a rank that does not answer is lost. */
DVTI_FN double dvti_ranks_timeout(void);

#if defined(DEVTENSOR_MPI)
/* Writes the name of this machine. */
DVTI_FN void dvti_ranks_machine(char *name, int size);
/* Makes all later exchanges fail, with the latest error as the reason: the ranks no longer make the
   same calls. */
DVTI_FN void dvti_ranks_break(void);
/* Returns false, with the error set, after a rank was lost. */
DVTI_FN bool dvti_ranks_whole(const char *function);

#define DVTI_RANK_TAGS 30000                 /* MPI guarantees 32767 */
#define DVTI_FLIGHT_BYTES ((int64_t)1 << 30) /* the most of one message */

/* Messages on their way while the caller goes on. Only the thread that joined may use them. */
typedef struct dvti_flight dvti_flight;
/* Starts messages to and from all ranks, each of which makes the calls with one tag, 1 to
   DVTI_RANK_TAGS, in the same order. NULL with the error set, as dvti_ranks_exchange does. */
DVTI_FN dvti_flight *dvti_ranks_post(const char *function, int tag, const dvti_message *send,
                                     const dvti_message *receive);
/* Returns whether all messages are complete; lets MPI make progress. `await` waits for that. */
DVTI_FN bool dvti_ranks_arrived(const char *function, dvti_flight *flight, dvt_status *status);
DVTI_FN dvt_status dvti_ranks_await(const char *function, dvti_flight *flight);
/* Frees it. Gives up messages that are not complete. NULL: does nothing. */
DVTI_FN void dvti_ranks_land(dvti_flight *flight);
#endif

/* ---- collective operations (dvt_distributed.c) ---- */
/* Gathers `bytes` bytes of every rank in the order of the ranks. */
DVTI_FN dvt_status dvti_ranks_gather(const char *function, const void *own, int64_t bytes,
                                     void *all);
/* Replaces the sums of this process by the one over all ranks, on cpu(), in the order of the tree.
   All ranks have the columns of `like`, whose NULL entries are left out; values are ignored. */
DVTI_FN bool dvti_ranks_merge(const char *function, dvti_part_batch *p, dvt_array *const *like,
                              int columns);
/* Adds up one slice of `length` elements per rank, which are in `in` in the order of the ranks.
   Returns the sum that dvti_ranks_merge forms, on cpu(), owned; NULL on errors. */
DVTI_FN dvt_array *dvti_ranks_add(const char *function, dvt_dtype dtype, int64_t length,
                                  const char *in);
/* Starts the sum of one value per rank: the tree has one part per rank. */
DVTI_FN bool dvti_ranks_sum_begin(const char *function, dvti_part_batch *p, int columns);
DVTI_FN void dvti_ranks_sum_end(dvti_part_batch *p, int columns);
/* Does dvt_broadcast_ranks without checks. */
DVTI_FN dvt_status dvti_ranks_broadcast(const char *function, dvt_array *x, int root);
/* ---- the trainer (dvt_distributed_trainer.c) ---- */
/* Checks that all ranks train the same parameters at the same step. Replaces *rows by the sum over
   the ranks, and *before by that over lower ranks; marks in `used` what any rank has marked; gives
   all ranks the key of rank 0. Each may be NULL on all ranks. */
DVTI_FN dvt_status dvti_ranks_agree(const char *function, const dvt_trainer *t, bool *used,
                                    int64_t *rows, int64_t *before, uint64_t *key);
/* Sends the parameters of rank 0 to all ranks, once for each trainer and run, when they have
   values. */
DVTI_FN dvt_status dvti_ranks_begin(const char *function, dvt_trainer *t);
/* Sums the gradients of a step over the contexts, as dvti_trainer_sum does, and the ranks. */
DVTI_FN dvt_status dvti_ranks_sum(const char *function, dvt_trainer *t, bool fresh_only);

/* Whether a rank can sum on its GPU. */
enum { DVTI_RANK_HOST, DVTI_RANK_READY, DVTI_RANK_JOINED };

/* Why the gradients of a step are not those in the buckets. */
enum { DVTI_BUCKETS_CHANGED, DVTI_BUCKETS_SCARCE, DVTI_BUCKETS_ZEROS, DVTI_BUCKETS_REASONS };

/* What a rank tells the others before it sums the gradients of a step. */
typedef struct dvti_rank_state {
    uint64_t shapes;      /* a hash of the gradients that it sums: numbers, dtypes, sizes */
    int64_t bucket_bytes; /* 0: it cannot sum while backward runs */
    int64_t turns;        /* that rank 0 has given (dvt_bucket_turn.c) */
    int32_t started;      /* buckets */
    bool heard;           /* backward has completed gradients */
    bool same;            /* the gradients are those in the buckets */
    char why;             /* they are not: DVTI_BUCKETS_CHANGED, .. */
    char device;          /* DVTI_RANK_HOST, .. */
} dvti_rank_state;

/* ---- sums while backward runs (dvt_buckets.c) ---- */
#define DVTI_BUCKET_BYTES ((int64_t)4 << 20) /* the default */
typedef struct dvti_buckets dvti_buckets;
/* Ends in the thread that joined the processes, and waits for all messages. */
DVTI_FN dvt_status dvti_buckets_end(const char *function);
/* Frees the memory of a trainer's buckets, but what is on its way: that is freed when it has
   arrived. In a thread that did not join: at the next pass, step or end. */
DVTI_FN void dvti_buckets_free(dvti_buckets *buckets);
#if defined(DEVTENSOR_MPI)
/* Begins in the thread that joined the processes. */
DVTI_FN void dvti_buckets_begin(void);
/* Starts buckets while the caller waits for other ranks, for that many seconds so far. */
DVTI_FN void dvti_buckets_attend(const char *function, double waited);
/* From dvti_buckets_report to the end of a step rank 0 starts no bucket of another trainer: it has
   told how many it started. From the first function to the second no rank starts one in exchanges:
   it may be of the plan that the step makes. */
DVTI_FN void dvti_turns_pause(void);
DVTI_FN void dvti_turns_go_on(void);
/* Makes the trainer's buckets, unless it has them. In a new run they take part again. */
DVTI_FN dvt_status dvti_buckets_make(const char *function, dvt_trainer *t);
/* Fill a state whose `shapes` is set; with those of all ranks, complete the buckets of the step
   and sum the gradients over contexts and ranks, unless *summed is false: they are unchanged then;
   prepare the next step, which overwrites `all`. */
DVTI_FN dvt_status dvti_buckets_report(const char *function, const dvt_trainer *t, bool fresh_only,
                                       dvti_rank_state *state);
DVTI_FN dvt_status dvti_buckets_sum(const char *function, dvt_trainer *t,
                                    const dvti_rank_state *all, bool *summed);
DVTI_FN dvt_status dvti_buckets_plan(const char *function, dvt_trainer *t, dvti_rank_state *all);
/* ---- sums on the GPUs of the ranks (dvt_rank_devices.c) ---- */
/* Fills a state. With those of all ranks, sums the gradients, unless *summed is false. */
DVTI_FN void dvti_rank_devices_report(const dvt_trainer *t, dvti_rank_state *state);
DVTI_FN dvt_status dvti_rank_devices_sum(const char *function, dvt_trainer *t,
                                         const dvti_rank_state *all, bool *summed);
/* Returns whether the GPUs of all ranks have joined, and can sum the gradients of this step. */
DVTI_FN bool dvti_rank_devices_joined(const dvti_rank_state *all);
/* Begins a sum of `from` over the ranks into `to`. The queue of the GPU goes on. All ranks make the
   same calls in the same order. `done` polls it, or waits; RANK_LOST as for messages. `forget`
   frees the ticket; NULL: does nothing. */
DVTI_FN dvt_status dvti_rank_devices_start(const char *function, const dvt_array *from,
                                           const dvt_array *to, void **ticket);
DVTI_FN dvt_status dvti_rank_devices_done(const char *function, void *ticket, bool wait,
                                          bool *done);
DVTI_FN void dvti_rank_devices_forget(void *ticket);
/* Leaves the group, after a barrier. */
DVTI_FN void dvti_rank_devices_end(void);
#endif
/* Returns the first of n rows that a rank has. */
DVTI_FN int64_t dvti_rank_row(int64_t rows, int rank);

#endif
