/* Internals of sums over ranks while backward runs: dvt_buckets.c, dvt_bucket_*.c. */
#ifndef DVTI_BUCKETS_H
#define DVTI_BUCKETS_H
#include "7_train/dvt_ranks.h"

#if defined(DEVTENSOR_MPI)
typedef struct dvti_bucket {
    int first, end; /* positions in `order` */
    int missing;    /* gradients that are not packed yet, on all contexts */
    dvt_dtype dtype;
    int64_t size;     /* elements */
    dvt_array **own;  /* for each context, on it: its gradients */
    dvt_array *total; /* their sum, on the first context: of this rank */

    /* ---- of the transport ---- */
    dvti_fetch *fetch;       /* NULL: the first context has host memory; kept with the plan */
    char *in;                /* this rank's slice of all ranks */
    dvt_array *sum, *result; /* the sum of this rank's slice; sums */
    dvti_flight *slices, *sums, *sent;
    void *ticket; /* of dvti_rank_devices_start */
} dvti_bucket;

/* How buckets reach the other ranks, and the sums come back (dvt_bucket_send.c). */
typedef struct dvti_bucket_transport {
    bool on_device; /* buckets stay on the first context; otherwise they leave from host memory */
    /* Begins with a bucket that is packed. Needs no other rank, and waits for nothing. */
    bool (*prepare)(const char *function, dvti_bucket *b, dvt_ctx ctx);
    /* Bring a bucket to the next stage; true: it is there. With `wait` they wait for that. They
       change *status only on errors, which are RANK_LOST when a rank does not answer. `number` is
       that of the plan. */
    bool (*start)(const char *function, dvti_bucket *b, int number, bool wait, dvt_status *status);
    bool (*add)(const char *function, dvti_bucket *b, int number, bool wait, dvt_status *status);
    bool (*finish)(const char *function, dvti_bucket *b, int number, bool wait, dvt_status *status);
    /* Writes the sums from element `at` on to a gradient of any context. */
    dvt_status (*write)(const char *function, const dvti_bucket *b, int64_t at,
                        dvt_array *gradient);
    /* Frees the bucket's memory but `fetch`. Nothing is on the way then. */
    void (*clear)(dvti_bucket *b);
} dvti_bucket_transport;

/* A parameter of the trainer, and its place in a bucket. */
typedef struct dvti_bucket_leaf {
    uint32_t heard; /* bits of contexts: its gradient was complete since the last step */
    int bucket;     /* -1: none */
    int64_t at;     /* its first element in the bucket */
} dvti_bucket_leaf;

typedef struct dvti_bucket_weight {
    const dvt_array *weight; /* compared only */
    int i, k;                /* of the parameter, and its context */
} dvti_bucket_weight;

/* The comparison of the packed buckets with the gradients on a GPU: a bool for each bucket. */
typedef struct dvti_bucket_check {
    dvti_fetch *fetch; /* NULL: the context has host memory; kept with the plan */
    dvt_array *result;
} dvti_bucket_check;

struct dvti_buckets {
    struct dvti_buckets *next;
    dvti_atomic orphan;         /* the trainer is gone */
    bool released;              /* and so is the memory that no message needs */
    bool over;                  /* rank 0 starts no more buckets of the plan */
    bool listed;                /* in the list; only the thread that joined changes it */
    int n;                      /* parameters of the trainer */
    dvti_bucket_leaf *leaf;     /* n elements */
    dvti_bucket_weight *weight; /* n_weights elements, by address */
    int n_weights;
    dvt_ctx_list ctxs; /* of the gradients that are heard and packed */
    int *order;        /* of parameters: as they were complete, or as the plan has them */
    int heard;         /* elements of `order`, while there is no bucket */
    const dvti_bucket_transport *transport; /* of the plan */
    dvti_bucket *bucket;
    size_t capacity;          /* of bucket */
    int n_buckets;            /* 0: no plan */
    dvti_bucket_check *check; /* for each context */
    int packed, started, added, complete;
    bool changed;      /* what was packed is not what the step sums */
    char why;          /* DVTI_BUCKETS_CHANGED, .. */
    int64_t bytes;     /* of a bucket */
    uint64_t shapes;   /* of the gradients in the plan */
    int number;        /* of the plan: gives its tags */
    int misses;        /* steps in a row whose gradients were not those sent */
    int64_t off_bytes; /* the trainer's bucket_bytes when misses ended the use; -1: in use */
};

/* ---- dvt_buckets.c ---- */
/* Returns the first one of all buckets, also those of destroyed trainers. */
DVTI_FN dvti_buckets *dvti_buckets_first(void);
/* Takes the next bucket, which is packed on all contexts, out of the hands of backward. */
DVTI_FN bool dvti_buckets_prepare_next(const char *function, dvti_buckets *o);
/* Does so with zeros. The step will sum again. */
DVTI_FN bool dvti_buckets_prepare_zeros(const char *function, dvti_buckets *o);
/* Brings the first `most` buckets to later stages. With `wait` it waits for one of them. Buckets
   that have not started need a turn, or all ranks in one step. */
DVTI_FN dvt_status dvti_buckets_move(const char *function, dvti_buckets *o, int most, bool wait);
/* Starts the buckets whose turn has come, and brings all others to later stages; frees those of
   destroyed trainers. May wait for this rank's GPU, never for other ranks. */
DVTI_FN dvt_status dvti_buckets_poll(const char *function);
/* Forget what was sent and heard since the last step; also the plan. */
DVTI_FN void dvti_buckets_reset(dvti_buckets *o);
DVTI_FN void dvti_buckets_drop_plan(dvti_buckets *o);

/* ---- dvt_bucket_turn.c ---- */
/* Takes the next turn: starts a bucket, or ends a plan. Returns false if none has come, or if its
   bucket is not packed. `wait` waits for the turn; `force` sends zeros then. */
DVTI_FN bool dvti_turn_take(const char *function, bool wait, bool force, dvt_status *status);
/* Returns how many turns rank 0 has given, on rank 0, which then gives none until
   dvti_turns_go_on. The others take as many, by force. */
DVTI_FN int64_t dvti_turns_count(void);
DVTI_FN dvt_status dvti_turns_catch_up(const char *function, int64_t given);
/* Takes the turns that have come, unless it is paused. */
DVTI_FN void dvti_turns_attend(const char *function, bool force);
/* Takes all turns on all ranks. Waits. */
DVTI_FN dvt_status dvti_turns_end(const char *function);

/* ---- dvt_bucket_pack.c ---- */
/* Allocates what the plan needs beyond its buckets. */
DVTI_FN bool dvti_bucket_pack_begin(const char *function, dvti_buckets *o);
/* Queues a copy of a gradient on context k to its place in a bucket, whose memory it makes. */
DVTI_FN bool dvti_bucket_pack(const char *function, const dvti_buckets *o,
                              const dvti_bucket_leaf *leaf, int k, dvt_array *gradient);
/* Sums a packed bucket over the contexts of this process, with the bits of dvti_trainer_sum. */
DVTI_FN bool dvti_bucket_sum(const char *function, const dvti_buckets *o, dvti_bucket *b);
/* Packs and compares all gradients once, where that loads kernels. */
DVTI_FN bool dvti_buckets_rehearse(const char *function, const dvt_trainer *t);
/* Clears *same unless all packed gradients still have the bits that were packed. Waits for GPUs,
   and moves buckets meanwhile. */
DVTI_FN dvt_status dvti_buckets_compare(const char *function, const dvt_trainer *t, bool *same);

/* ---- dvt_bucket_send.c ---- */
/* Returns whether the messages are complete; with `wait` it waits for them. */
DVTI_FN bool dvti_bucket_landed(const char *function, dvti_flight *flight, bool wait,
                                dvt_status *status);
/* Messages through host memory, and sums on the GPUs of the ranks. */
DVTI_FN const dvti_bucket_transport *dvti_bucket_messages(void);
DVTI_FN const dvti_bucket_transport *dvti_bucket_devices(void);
#endif

#endif
