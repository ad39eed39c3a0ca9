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
/* Sends and receives all messages. Waits. Sets RANK_LOST, and VALUE for a message of another length
   than expected; every later exchange then fails too. */
DVTI_FN dvt_status dvti_ranks_exchange(const char *function, const dvti_message *send,
                                       const dvti_message *receive);

/* ---- collective operations (dvt_distributed.c) ---- */
/* Gathers `bytes` bytes of every rank in the order of the ranks. */
DVTI_FN dvt_status dvti_ranks_gather(const char *function, const void *own, int64_t bytes,
                                     void *all);
/* Replaces the sums of this process by the one over all ranks, on cpu(), in the order of the tree.
   All ranks have the columns of `like`, whose NULL entries are left out; values are ignored. */
DVTI_FN bool dvti_ranks_merge(const char *function, dvti_part_batch *p, dvt_array *const *like,
                              int columns);
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
/* Sends the parameters of rank 0 to all ranks, once for each trainer, when they have values. */
DVTI_FN dvt_status dvti_ranks_begin(const char *function, dvt_trainer *t);
/* Sums the gradients of a step over the ranks, after those of the contexts. */
DVTI_FN dvt_status dvti_ranks_sum(const char *function, dvt_trainer *t);
/* Returns the first of n rows that a rank has. */
DVTI_FN int64_t dvti_rank_row(int64_t rows, int rank);

#endif
