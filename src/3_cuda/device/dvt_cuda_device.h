/* The state of one gpu(i). Unless noted otherwise, functions below require the gpu's lock and the
   current context of its physical GPU.

   Stream order. All kernels and small uploads of a gpu(i) use its compute stream. So a released
   block can be reused at once: later work on it is queued after earlier work. Events order the
   other streams:

     upload stream     A large upload into a fresh block, unused since its allocation, waits only
                       for the compute work queued when the block was released. Any other upload
                       waits for all compute work queued so far.
     download stream   Waits for all compute work queued so far.
     copy stream       Copies from other gpus. Waits for the compute work of both.

   Memory that these streams write, or still read, is *foreign* to the compute stream until it
   has waited for them. dvt_cuda_order.c records such memory. A kernel or a new owner that uses
   it first makes the compute stream wait. */
#ifndef DVTI_CUDA_DEVICE_H
#define DVTI_CUDA_DEVICE_H
#include "3_cuda/dvt_cuda.h"

/* ---- memory (dvt_cuda_memory.c) ---- */
#define DVTI_CUDA_BINS 48

typedef struct dvti_cuda_block {
    char *at;
    int64_t size; /* of the block, a multiple of 512 */
    bool busy, small;
    int64_t released; /* position of the compute stream at its last release */
    struct dvti_cuda_block *previous, *next;    /* adjacent in its segment */
    struct dvti_cuda_block *chain, *chain_back; /* busy: of its hash bucket; free: of its bin */
} dvti_cuda_block;

typedef struct dvti_cuda_memory {
    dvti_cuda_block *
        bin[2]
           [DVTI_CUDA_BINS]; /* free blocks by log2 of their size: of large and of small segments */
    uint64_t filled[2];      /* bit b: bin b has a block */
    dvti_cuda_block **bucket; /* busy blocks by address */
    size_t n_buckets, n_busy;
    int64_t reserved, reserved_peak; /* bytes of segments */
    int64_t segments, reused,
        fresh; /* counts: requests served from the cache; segments from the driver */
} dvti_cuda_memory;

/* Returns a busy block of cached memory, without a call of the driver. NULL: there is none. */
DVTI_FN dvti_cuda_block *dvti_cuda_take_free(dvti_cuda_memory *memory, int64_t bytes);
/* Returns a busy block. NULL: the driver is out of memory (*result is its error), or host memory is
   exhausted (*result is 0). */
DVTI_FN dvti_cuda_block *dvti_cuda_take(dvti_cuda_memory *memory, int64_t bytes,
                                        dvti_cu_result *result);
/* Returns the busy block that begins at `at`, or NULL. */
DVTI_FN dvti_cuda_block *dvti_cuda_block_at(const dvti_cuda_memory *memory, const void *at);
DVTI_FN void dvti_cuda_give(dvti_cuda_memory *memory, dvti_cuda_block *block, int64_t position);
/* Returns entirely free segments to the driver; returns their bytes. No queued work may use
   them. */
DVTI_FN int64_t dvti_cuda_trim(dvti_cuda_memory *memory);
/* Returns the largest request that would succeed without the driver. */
DVTI_FN int64_t dvti_cuda_largest_free(const dvti_cuda_memory *memory);
/* Drops all records without calling the driver, for memory that no longer exists. */
DVTI_FN void dvti_cuda_forget(dvti_cuda_memory *memory);

/* ---- the order between streams (dvt_cuda_order.c) ---- */
/* A point in the compute stream: when the event completes, the work up to `position` is done. */
typedef struct dvti_cuda_mark {
    int64_t position;
    dvti_cu_event event;
} dvti_cuda_mark;

/* Memory that another stream writes (`written`) or reads until the event. Owns the event. */
typedef struct dvti_cuda_place {
    const char *begin, *end;
    bool written;
    const dvti_cuda_physical *physical; /* whose context owns the event */
    dvti_cu_event event;
} dvti_cuda_place;

/* A block that nothing has used since it was allocated. */
typedef struct dvti_cuda_fresh {
    const char *begin, *end;
    int64_t released;
} dvti_cuda_fresh;

/* ---- staging buffers of pinned memory (dvt_cuda_staging.c), used by all transfers ---- */
typedef struct dvti_cuda_chunk {
    char *at; /* NULL: not allocated */
    dvti_cu_event event;
    bool taken;  /* a caller fills or reads it */
    bool queued; /* the GPU uses it until the event */
} dvti_cuda_chunk;

#define DVTI_CUDA_SMALL_BYTES                                                                      \
    ((int64_t)1 << 16) /* copies up to this size go through the compute stream */
#define DVTI_CUDA_CHUNK_BYTES ((int64_t)4 << 20)
#define DVTI_CUDA_CHUNKS 4 /* large ones: two per direction keep the GPU busy */
#define DVTI_CUDA_SMALL_CHUNKS 16

/* ---- recent launches, for messages about failures ---- */
#define DVTI_CUDA_RECENT 64

typedef struct dvti_cuda_recent {
    const char *name;
    const char *file; /* NULL while unknown */
    int line;
    const void *thread;
} dvti_cuda_recent;

/* ---- times of launches in the compute stream, for listeners of events (dvt_cuda_timing.c) ---- */
#define DVTI_CUDA_TIMED 256

typedef struct dvti_cuda_timed {
    const char *name;
    int64_t number;
    dvti_cu_event begin, end;
} dvti_cuda_timed;

typedef struct dvti_cuda_timing {
    dvti_cu_event base;
    double at; /* dvti_now() when `base` was complete */
    int n;     /* launches whose times are not sent yet; all items keep their events */
    dvti_cuda_timed item[DVTI_CUDA_TIMED];
} dvti_cuda_timing;

struct dvti_cuda_gpu {
    dvti_mutex lock;
    dvti_cuda_physical *physical;
    dvt_ctx ctx;
    dvti_device *device;
    int64_t process;
    dvti_cu_stream compute, upload, download, copy;
    dvti_cu_stream own_compute; /* `compute`, unless the caller has set another one */
    bool shared;                /* other code may queue work in the compute stream at any time */
    bool in_group;              /* locked together with others, in an order that must be kept */
    int64_t position;           /* number of items queued in the compute stream */
    int64_t verified;           /* items known to be done without an error */
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
    dvti_cuda_recent recent[DVTI_CUDA_RECENT]; /* item number p at p % DVTI_CUDA_RECENT */
    dvti_cuda_timing *timing;                  /* NULL until a listener needs it */
    dvti_cuda_timed *timed;                    /* the launch that is being queued and timed */
};

/* Begin and end the time of a launch that is being queued. begin returns NULL when it cannot be
   measured. */
DVTI_FN dvti_cuda_timed *dvti_cuda_time_begin(dvti_cuda_gpu *gpu, const char *name, int64_t number);
DVTI_FN void dvti_cuda_time_end(dvti_cuda_gpu *gpu, dvti_cuda_timed *timed);
/* Sends an event for each launch that was measured. Waits for them. */
DVTI_FN void dvti_cuda_time_send(dvti_cuda_gpu *gpu);
/* Frees the events, unless the GPU is lost, and the memory. */
DVTI_FN void dvti_cuda_time_close(dvti_cuda_gpu *gpu, bool usable);

/* Returns an event for marks and places; NULL with *result set. Return it with dvti_cuda_event_done
   once all waits for it are queued. */
DVTI_FN dvti_cu_event dvti_cuda_event(dvti_cuda_gpu *gpu, dvti_cu_result *result);
DVTI_FN void dvti_cuda_event_done(dvti_cuda_gpu *gpu, dvti_cu_event event);
/* Makes `stream` wait for all compute work queued so far. */
DVTI_FN dvti_cu_result dvti_cuda_after_compute(dvti_cuda_gpu *gpu, dvti_cu_stream stream);
/* Makes the compute stream wait for the other streams, whatever memory they use. */
DVTI_FN dvti_cu_result dvti_cuda_join_all(dvti_cuda_gpu *gpu);
/* Makes `stream`, which is about to write the memory, wait for all work that may still use it. */
DVTI_FN dvti_cu_result dvti_cuda_before_write(dvti_cuda_gpu *gpu, const void *at, int64_t bytes,
                                              dvti_cu_stream stream);
/* Makes the compute stream, which is about to read (or write) the memory, wait for other streams
   that use it. */
DVTI_FN dvti_cu_result dvti_cuda_touch(dvti_cuda_gpu *gpu, const void *at, int64_t bytes,
                                       bool writes);
DVTI_FN dvti_cu_result dvti_cuda_touch_launch(dvti_cuda_gpu *gpu, const dvti_launch *launch);
/* Records that work queued in `stream` uses the memory, which is now foreign. */
DVTI_FN dvti_cu_result dvti_cuda_foreign(dvti_cuda_gpu *gpu, const void *at, int64_t bytes,
                                         bool written, dvti_cuda_gpu *owner, dvti_cu_stream stream);
DVTI_FN void dvti_cuda_note_fresh(dvti_cuda_gpu *gpu, const dvti_cuda_block *block);
DVTI_FN void dvti_cuda_order_close(dvti_cuda_gpu *gpu);

/* Returns a buffer of at least `bytes` bytes, at most DVTI_CUDA_CHUNK_BYTES, owned by the caller.
   Waits when all are in use. NULL: no pinned memory is available. */
DVTI_FN dvti_cuda_chunk *dvti_cuda_chunk_take(dvti_cuda_gpu *gpu, int64_t bytes);
/* Records that the GPU uses the buffer until the work queued in `stream` is done. */
DVTI_FN dvti_cu_result dvti_cuda_chunk_queue(dvti_cuda_chunk *chunk, dvti_cu_stream stream);
DVTI_FN void dvti_cuda_chunk_give(dvti_cuda_chunk *chunk);
DVTI_FN void dvti_cuda_staging_close(dvti_cuda_gpu *gpu);

/* ---- failures (dvt_cuda_error.c) ---- */
/* Locks the gpu. Returns false with the error set if the gpu is lost, or was opened by the parent
   of a forked process. */
DVTI_FN bool dvti_cuda_lock(dvti_cuda_gpu *gpu, const char *function);
/* Returns OK, or the error of a lost gpu. */
DVTI_FN dvt_status dvti_cuda_usable(dvti_cuda_gpu *gpu, const char *function);
/* Locks the gpu and makes its context current; fails as dvti_cuda_lock does. */
DVTI_FN bool dvti_cuda_begin(dvti_cuda_gpu *gpu, const char *function, bool *pushed);
/* The same without an error, for callers that nobody could tell it: false, and no lock, for a gpu
   that is lost or of the parent process. They run during exit and in forked children as well. */
DVTI_FN bool dvti_cuda_begin_quietly(dvti_cuda_gpu *gpu, bool *pushed);
DVTI_FN void dvti_cuda_end(dvti_cuda_gpu *gpu, bool pushed);
/* Converts a result to a status; sets the error unless it is OK. An error that ends the context is
   kept, with the operations that may have caused it. */
DVTI_FN dvt_status dvti_cuda_failed(dvti_cuda_gpu *gpu, const char *function, const char *call,
                                    dvti_cu_result result);
/* The same for work of several locked gpus. Reports the gpu whose context has ended. */
DVTI_FN dvt_status dvti_cuda_failed_among(dvti_cuda_gpu *const *gpu, int n, const char *function,
                                          const char *call, dvti_cu_result result);
/* The same where no caller can receive the error: the next call reports it. */
DVTI_FN void dvti_cuda_failed_quietly(dvti_cuda_gpu *gpu, const char *call, dvti_cu_result result);
/* Waits for the queued work of the stream after a failure, because the caller is about to free
   memory that this work uses. */
DVTI_FN void dvti_cuda_settle(dvti_cuda_gpu *gpu, dvti_cu_stream stream);
/* Counts an item queued in the compute stream; earlier marks do not cover it. The caller keeps the
   lock between this and queueing the item. _remember also records the operation's name for
   messages. _remember_again gives this thread's latest item of that name a new position, because
   the lock was released before it was queued: a mark or a wait of another thread may cover the old
   one. */
DVTI_FN void dvti_cuda_advance(dvti_cuda_gpu *gpu);
DVTI_FN void dvti_cuda_remember(dvti_cuda_gpu *gpu, const char *name);
DVTI_FN void dvti_cuda_remember_again(dvti_cuda_gpu *gpu, const char *name);
DVTI_FN void dvti_cuda_note(dvti_device *device, const char *file, int line);

/* ---- the whole gpu (dvt_cuda_device.c) ---- */
/* Waits until all its streams are empty. */
DVTI_FN dvti_cu_result dvti_cuda_drain(dvti_cuda_gpu *gpu);
/* Frees the cached memory of the other gpus on the same physical GPU; returns its bytes. The caller
   must not hold any lock. */
DVTI_FN int64_t dvti_cuda_trim_others(const dvti_cuda_gpu *except);

/* ---- copies (dvt_cuda_copy.c, dvt_cuda_peer.c) ---- */
DVTI_FN dvt_status dvti_cuda_upload(dvti_device *device, void *dst, const void *src, int64_t bytes);
DVTI_FN dvt_status dvti_cuda_download(dvti_device *device, void *dst, const void *src,
                                      int64_t bytes);
DVTI_FN dvt_status dvti_cuda_copy_from(dvti_device *device, void *dst, dvti_device *from,
                                       const void *src, int64_t bytes);

/* Returns whether kernels on each of the two can access the other's memory. Both must be locked. */
DVTI_FN bool dvti_cuda_reaches(dvti_cuda_gpu *a, dvti_cuda_gpu *b);
DVTI_FN bool dvti_cuda_can_all_reduce(dvti_device *const *device, int n);
DVTI_FN dvt_status dvti_cuda_all_reduce(const char *name, dvti_device *const *device, int n,
                                        const dvti_reduce_part *part, int n_parts);
DVTI_FN const dvti_process_sums *dvti_cuda_process_sums(void); /* dvt_cuda_ranks.c */
DVTI_FN const dvti_fetches *dvti_cuda_fetches(void);           /* dvt_cuda_fetch.c */
DVTI_FN const dvti_marks *dvti_cuda_marks(void);               /* dvt_cuda_mark.c */
DVTI_FN const dvti_page_locked *dvti_cuda_page_locked(void);   /* dvt_cuda_pinned.c */
/* Makes an event with these flags and records it in the stream; NULL with *result set. The caller
   has begun with the gpu. The others begin and end themselves: they wait for it, without an error
   of their own, and destroy it, unless the gpu is lost. */
DVTI_FN dvti_cu_event dvti_cuda_mark_in(dvti_cuda_gpu *gpu, dvti_cu_stream stream, unsigned flags,
                                        dvti_cu_result *result);
DVTI_FN void dvti_cuda_mark_settle(dvti_device *device, void *mark);
DVTI_FN void dvti_cuda_mark_drop(dvti_device *device, void *mark);

#endif
