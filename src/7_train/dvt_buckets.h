/* Internals of sums over ranks while backward runs: dvt_buckets.c, dvt_bucket_step.c. */
#ifndef DVTI_BUCKETS_H
#define DVTI_BUCKETS_H
#include "7_train/dvt_ranks.h"

#if defined(DEVTENSOR_MPI)
typedef struct dvti_bucket {
    int first, end; /* positions in `order` */
    int missing;    /* gradients that are not packed yet */
    dvt_dtype dtype;
    int64_t size;                  /* elements */
    dvt_array *own, *sum, *result; /* gradients; the sum of this rank's slice; sums: all on cpu() */
    char *in;                      /* this rank's slice of all ranks */
    dvti_flight *slices, *sums, *sent;
} dvti_bucket;

/* A parameter of the trainer, and its place in a bucket. */
typedef struct dvti_bucket_leaf {
    bool heard; /* its gradient was complete since the last step */
    int bucket; /* -1: none */
    int64_t at; /* its first element in the bucket */
} dvti_bucket_leaf;

typedef struct dvti_bucket_weight {
    const dvt_array *weight; /* compared only */
    int i;                   /* of the parameter */
} dvti_bucket_weight;

struct dvti_buckets {
    struct dvti_buckets *next;
    dvti_atomic orphan;         /* the trainer is gone */
    bool listed;                /* in the list; only the thread that joined changes it */
    int n;                      /* parameters of the trainer */
    dvti_bucket_leaf *leaf;     /* n elements */
    dvti_bucket_weight *weight; /* n elements, by address */
    int *order;                 /* of parameters: as they were complete, or as the plan has them */
    int heard;                  /* elements of `order`, while there is no bucket */
    dvti_bucket *bucket;
    size_t capacity; /* of bucket */
    int n_buckets;   /* 0: no plan */
    int started, added, complete;
    bool changed;      /* a gradient was complete again after it was sent */
    int64_t bytes;     /* of a bucket */
    uint64_t shapes;   /* of the gradients in the plan */
    int number;        /* of the plan: gives its tags */
    int misses;        /* steps in a row whose gradients were not those sent */
    int64_t off_bytes; /* the trainer's bucket_bytes when misses ended the use; -1: in use */
};

/* ---- dvt_buckets.c ---- */
/* Return an array of the bucket's size, owned; copy a gradient to its place in the bucket. */
DVTI_FN dvt_array *dvti_bucket_array(const char *function, const dvti_bucket *b);
DVTI_FN bool dvti_bucket_pack(const char *function, dvti_bucket *b, const dvti_bucket_leaf *leaf,
                              dvt_array *gradient);
/* Starts the next bucket, which is packed. */
DVTI_FN bool dvti_buckets_start_next(const char *function, dvti_buckets *o);
/* Waits until all started buckets are complete. */
DVTI_FN dvt_status dvti_buckets_await(const char *function, dvti_buckets *o);
/* Forget what was sent and heard since the last step; also the plan. */
DVTI_FN void dvti_buckets_reset(dvti_buckets *o);
DVTI_FN void dvti_buckets_drop_plan(dvti_buckets *o);
/* Frees the buckets of destroyed trainers whose messages are complete. */
DVTI_FN void dvti_buckets_reap(void);
#endif

#endif
