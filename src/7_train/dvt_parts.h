/* Internals of sums over parts of a batch and over processes. */
#ifndef DVTI_PARTS_H
#define DVTI_PARTS_H
#include "7_train/dvt_train_internal.h"

/* The sum of the parts start .. start + 2^level - 1, as far as they exist. One column per parameter
   of the trainer, and one for the losses. */
typedef struct dvti_part_sum {
    int start, level;
    dvt_array **column; /* owned, and each entry; NULL: no part has it */
} dvti_part_sum;

typedef struct dvti_part_batch {
    int parts;                 /* 0: off */
    bool open;                 /* a batch began, and its gradients are not summed yet */
    bool done;                 /* all its parts have run */
    int first, end;            /* the parts of this process */
    int turn, k, now;          /* round, context and part that run; now is -1 between batches */
    int64_t rows, row0, local; /* of the batch: all; the first one here; those here */
    uint64_t key;              /* of the random numbers */
    dvti_part_sum *sum;        /* of this process */
    size_t n, capacity;        /* of sum */
    int contexts;              /* of the trainer, when the batch began */
    dvt_array **before;        /* running statistics before the batch: as the replicas; owned */
    int64_t *version;          /* of their memory when the part began, one per parameter */
    bool *used; /* parameters that a part has gradients for, or statistics of; losses */
    dvt_array *part_loss, *loss; /* of the part that runs; of the last batch; owned */
    int64_t loss_rows;
} dvti_part_batch;

/* Returns the first row of a part: floor(part rows / parts), for part <= parts. */
DVTI_FN int64_t dvti_part_row(int64_t rows, int part, int parts);
/* Returns whether one of the parts start .. start + 2^level - 1 has rows. */
DVTI_FN bool dvti_part_has_rows(const dvti_part_batch *p, int start, int level);
DVTI_FN void dvti_part_sum_free(dvti_part_sum *sum, int columns);
/* Adds a sum, and forms all sums that it completes. Takes over its columns, also on failure. Adds
   sums on different contexts only with `across`. */
DVTI_FN bool dvti_part_insert(const char *function, dvti_part_batch *p, dvti_part_sum sum,
                              int columns,
                              bool across); /* Adds all sums that can be added, across contexts. */
DVTI_FN bool dvti_parts_merge(const char *function, dvti_part_batch *p, int columns);

DVTI_FN void dvti_parts_free(const dvt_trainer *t);
/* Sums the parts of the open batch, as the first phase of a step: the gradients of all contexts
   become sums. Sets VALUE when parts are set and a batch is not complete. */
DVTI_FN dvt_status dvti_parts_finish(const char *function, dvt_trainer *t);

#endif
