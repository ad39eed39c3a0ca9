/* What one gpu(i) is made of. Everything below is touched with the gpu's lock held and its card's context current, unless said
   otherwise.

   Order. All kernels and small uploads of a gpu(i) stand in its compute stream. So a block that is released may be handed out again at
   once: whatever uses it next stands behind. Other streams are tied in by events:

     upload stream     a large upload into a block that nothing has used since it was handed out waits only for the compute work that was
                       queued when the block was released; any other waits for all compute work queued so far
     download stream   waits for all compute work queued so far
     copy stream       copies from other gpus; waits for the compute work of both

   What they have written or still read is *foreign* to the compute stream until it has waited: dvt_cuda_order.c keeps these
   places, and makes the compute stream wait for one as soon as a kernel, or the next owner of the memory, comes near. */
#ifndef DVTI_CUDA_DEVICE_H
#define DVTI_CUDA_DEVICE_H
#include "3_cuda/dvt_cuda.h"

/* ---- memory (dvt_cuda_memory.c) ---- */
#define DVTI_CUDA_BINS 48

typedef struct dvti_cuda_block {
    char *at;
    int64_t size; /* of the block, a multiple of 512 */
    bool busy, small;
    int64_t released;                           /* compute work queued when it was last released */
    struct dvti_cuda_block *previous, *next;    /* neighbours in its segment */
    struct dvti_cuda_block *chain, *chain_back; /* busy: of its hash bucket; free: of its bin */
} dvti_cuda_block;

typedef struct dvti_cuda_memory {
    dvti_cuda_block *bin
        [2]
        [DVTI_CUDA_BINS]; /* free blocks by the logarithm of their size: of large and of small segments */
    dvti_cuda_block **bucket; /* busy blocks by address */
    size_t n_buckets, n_busy;
    int64_t reserved, reserved_peak; /* bytes of segments */
    int64_t segments, reused,
        fresh; /* blocks that came from the cache, and segments that came from the driver, so far */
} dvti_cuda_memory;

/* NULL: the driver has no more memory (*result says what it gave), or main memory is exhausted (*result is 0). */
DVTI_FN dvti_cuda_block *dvti_cuda_take(dvti_cuda_memory *memory, int64_t bytes,
                                        dvti_cu_result *result);
/* The busy block that begins at `at`; NULL when there is none. */
DVTI_FN dvti_cuda_block *dvti_cuda_block_at(const dvti_cuda_memory *memory, const void *at);
DVTI_FN void dvti_cuda_give(dvti_cuda_memory *memory, dvti_cuda_block *block, int64_t position);
/* Gives whole free segments back to the driver. Nothing that uses them may be queued any more. Returns their bytes. */
DVTI_FN int64_t dvti_cuda_trim(dvti_cuda_memory *memory);
/* The largest request that would succeed without asking the driver. */
DVTI_FN int64_t dvti_cuda_largest_free(const dvti_cuda_memory *memory);
/* Forgets everything without calling the driver: for memory that is gone. */
DVTI_FN void dvti_cuda_forget(dvti_cuda_memory *memory);

/* ---- the order between streams (dvt_cuda_order.c) ---- */
/* A point in the compute stream: the work up to `position` is done when the event is. */
typedef struct dvti_cuda_mark {
    int64_t position;
    dvti_cu_event event;
} dvti_cuda_mark;

/* Memory that another stream writes (written) or reads until the event; owns the event. */
typedef struct dvti_cuda_place {
    const char *begin, *end;
    bool written;
    const dvti_cuda_card *card; /* whose context the event belongs to */
    dvti_cu_event event;
} dvti_cuda_place;

/* A block that nothing has used since it was handed out. */
typedef struct dvti_cuda_fresh {
    const char *begin, *end;
    int64_t released;
} dvti_cuda_fresh;

/* ---- staging (dvt_cuda_staging.c): page-locked memory, through which everything passes ---- */
typedef struct dvti_cuda_chunk {
    char *at; /* NULL: not there */
    dvti_cu_event event;
    bool taken;  /* by a caller that fills or reads it */
    bool queued; /* the card uses it until the event */
} dvti_cuda_chunk;

#define DVTI_CUDA_SMALL_BYTES                                                                      \
    ((int64_t)1 << 16) /* copies up to here go through the compute stream */
#define DVTI_CUDA_CHUNK_BYTES ((int64_t)4 << 20)
#define DVTI_CUDA_CHUNKS 4 /* large ones: two for each direction keep the card busy */
#define DVTI_CUDA_SMALL_CHUNKS 16

/* ---- what was launched, for the message when it fails ---- */
#define DVTI_CUDA_RECENT 64

typedef struct dvti_cuda_recent {
    const char *name;
    const char *file; /* NULL until it is known */
    int line;
    const void *thread;
} dvti_cuda_recent;

struct dvti_cuda_gpu {
    dvti_mutex lock;
    dvti_cuda_card *card;
    dvt_ctx ctx;
    dvti_device *device;
    int64_t process;
    dvti_cu_stream compute, upload, download, copy;
    dvti_cu_stream own_compute; /* `compute`, unless the caller has given another one */
    bool shared;                /* other code may put work into the compute stream at any time */
    int64_t position;           /* compute work queued so far */
    int64_t verified;           /* compute work known to be done without an error */
    dvti_cuda_memory memory;
    dvti_cuda_mark mark[8]; /* the latest at next_mark - 1 */
    int next_mark;
    dvti_cuda_place place[16];
    int n_places;
    dvti_cuda_fresh fresh[8];
    int n_fresh;
    dvti_cu_event spare[32];
    int n_spare;
    dvti_cuda_chunk small[DVTI_CUDA_SMALL_CHUNKS], large[DVTI_CUDA_CHUNKS];
    dvti_cuda_recent recent[DVTI_CUDA_RECENT]; /* work number p at p % DVTI_CUDA_RECENT */
};

/* An event for marks and places; NULL with *result set. Events come back with dvti_cuda_event_done once what waits for them is
   queued. */
DVTI_FN dvti_cu_event dvti_cuda_event(dvti_cuda_gpu *gpu, dvti_cu_result *result);
DVTI_FN void dvti_cuda_event_done(dvti_cuda_gpu *gpu, dvti_cu_event event);
/* `stream` waits for all compute work queued so far. */
DVTI_FN dvti_cu_result dvti_cuda_after_compute(dvti_cuda_gpu *gpu, dvti_cu_stream stream);
/* `stream` waits for what may still use the memory, which it is about to write. */
DVTI_FN dvti_cu_result dvti_cuda_before_write(dvti_cuda_gpu *gpu, const void *at, int64_t bytes,
                                              dvti_cu_stream stream);
/* The compute stream is about to read (or write) the memory: it waits for the others that do. */
DVTI_FN dvti_cu_result dvti_cuda_touch(dvti_cuda_gpu *gpu, const void *at, int64_t bytes,
                                       bool writes);
DVTI_FN dvti_cu_result dvti_cuda_touch_launch(dvti_cuda_gpu *gpu, const dvti_launch *launch);
/* From now on the memory is foreign: used by what is queued in `stream`. */
DVTI_FN dvti_cu_result dvti_cuda_foreign(dvti_cuda_gpu *gpu, const void *at, int64_t bytes,
                                         bool written, dvti_cuda_gpu *owner, dvti_cu_stream stream);
DVTI_FN void dvti_cuda_note_fresh(dvti_cuda_gpu *gpu, const dvti_cuda_block *block);
DVTI_FN void dvti_cuda_order_close(dvti_cuda_gpu *gpu);

/* A chunk of at least that many bytes, at most DVTI_CUDA_CHUNK_BYTES, taken for the caller; waits for one when all are in use. NULL: no
   page-locked memory can be had. */
DVTI_FN dvti_cuda_chunk *dvti_cuda_chunk_take(dvti_cuda_gpu *gpu, int64_t bytes);
/* The card uses the chunk until what is queued in `stream` is done. */
DVTI_FN dvti_cu_result dvti_cuda_chunk_queue(dvti_cuda_chunk *chunk, dvti_cu_stream stream);
DVTI_FN void dvti_cuda_chunk_give(dvti_cuda_chunk *chunk);
DVTI_FN void dvti_cuda_staging_close(dvti_cuda_gpu *gpu);

/* ---- failures (dvt_cuda_error.c) ---- */
/* Locks the gpu and makes its context current, unless it is lost or belongs to the parent of this process: then false, with the
   error set. */
DVTI_FN bool dvti_cuda_begin(dvti_cuda_gpu *gpu, const char *function, bool *pushed);
DVTI_FN void dvti_cuda_end(dvti_cuda_gpu *gpu, bool pushed);
/* A result other than OK as a status, with the error set. An error that ends the card is kept with the operations that may have caused it. */
DVTI_FN dvt_status dvti_cuda_failed(dvti_cuda_gpu *gpu, const char *function, const char *call,
                                    dvti_cu_result result);
/* The same for work of several gpus, all locked: the one whose card has ended is the one that failed. */
DVTI_FN dvt_status dvti_cuda_failed_among(dvti_cuda_gpu *const *gpu, int n, const char *function,
                                          const char *call, dvti_cu_result result);
/* The same where nobody can be told: the next call says it. */
DVTI_FN void dvti_cuda_failed_quietly(dvti_cuda_gpu *gpu, const char *call, dvti_cu_result result);
/* After a failure: waits for what stands in the stream already, which uses memory that the caller is about to give up. */
DVTI_FN void dvti_cuda_settle(dvti_cuda_gpu *gpu, dvti_cu_stream stream);
/* Something has been put into the compute stream: marks set before do not cover it. _remember: an operation of that name, which is
   named when it fails. */
DVTI_FN void dvti_cuda_advance(dvti_cuda_gpu *gpu);
DVTI_FN void dvti_cuda_remember(dvti_cuda_gpu *gpu, const char *name);
DVTI_FN void dvti_cuda_note(dvti_device *device, const char *file, int line);

/* ---- the gpu as a whole (dvt_cuda_device.c) ---- */
/* Waits until all its streams are empty. */
DVTI_FN dvti_cu_result dvti_cuda_drain(dvti_cuda_gpu *gpu);
/* Gives back what the other gpus on the same card keep for later. No lock may be held. */
DVTI_FN int64_t dvti_cuda_trim_others(const dvti_cuda_gpu *except);

/* ---- copies (dvt_cuda_copy.c, dvt_cuda_peer.c) ---- */
DVTI_FN dvt_status dvti_cuda_upload(dvti_device *device, void *dst, const void *src, int64_t bytes);
DVTI_FN dvt_status dvti_cuda_download(dvti_device *device, void *dst, const void *src,
                                      int64_t bytes);
DVTI_FN dvt_status dvti_cuda_copy_from(dvti_device *device, void *dst, dvti_device *from,
                                       const void *src, int64_t bytes);

/* Whether kernels on one of the two reach the other's memory. Both locked. */
DVTI_FN bool dvti_cuda_reaches(dvti_cuda_gpu *a, dvti_cuda_gpu *b);
DVTI_FN bool dvti_cuda_can_all_reduce(dvti_device *const *device, int n);
DVTI_FN dvt_status dvti_cuda_all_reduce(const char *name, dvti_device *const *device, int n,
                                        const dvti_reduce_part *part, int n_parts);

#endif
