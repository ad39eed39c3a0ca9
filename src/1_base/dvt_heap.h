/* Main memory for elements: blocks that are released are kept, and handed out again without a call to the system, which would clear
   and map every page anew (1.4 to 2.8 us for each 4 KiB on the machines where we measured).

   Sizes are rounded up to 64 bytes, above 1 KiB to an eighth of a power of two, so that what is released fits what is wanted next.
   Blocks of up to DVTI_HEAP_SMALL bytes come from a list for each size; larger ones from the smallest kept block that is at most
   a quarter too large. Those of 2 MiB and more begin at a multiple of 2 MiB and ask for huge pages. No block is cut or joined: each is one
   allocation of the program's allocator (dvt_set_allocator), and returns to the one that it came from.

   What is kept is bounded twice: by `most` bytes, and so that used and kept memory together stay within 5/4 of the most that was
   ever used at once, plus 64 MiB. Beyond that the blocks that were released first go back. When the system has no more, everything
   that any heap keeps goes back, and the system is asked again.

   Locks are tried and never waited for: who finds a list taken goes to the system. So a thread that was descheduled, or stayed
   behind in the parent of a forked process, holds nobody up.

   With the address sanitizer nothing is kept unless somebody asks for it, since blocks that rest in the sanitizer's own quarantine show
   late uses best; what lies behind the last byte, before the first, and in kept blocks is poisoned. */
#ifndef DVTI_HEAP_H
#define DVTI_HEAP_H
#include "1_base/dvt_base.h"

#define DVTI_HEAP_SMALL ((int64_t)32 << 10)
#define DVTI_HEAP_SMALL_BINS 56
#define DVTI_HEAP_BINS 304 /* up to 2^46 bytes */

/* Stands in the 64 bytes before the elements. */
typedef struct dvti_heap_block {
    void *start; /* as the allocator gave it */
    void (*release)(void *user, void *start);
    void *user;
    int64_t size;                               /* bytes there is room for */
    struct dvti_heap_block *chain, *chain_back; /* kept: of the same size */
    struct dvti_heap_block *older, *newer;      /* kept and large: released before, and after */
} dvti_heap_block;

typedef struct dvti_heap_bin {
    dvti_atomic lock;
    dvti_heap_block *first;
    int64_t kept, reused; /* bytes; requests so far */
} dvti_heap_bin;

typedef struct dvti_heap {
    dvti_heap_bin small[DVTI_HEAP_SMALL_BINS];
    dvti_atomic lock; /* of what follows, up to `reused` */
    dvti_heap_block *large[DVTI_HEAP_BINS - DVTI_HEAP_SMALL_BINS];
    dvti_heap_block *oldest, *newest;
    int64_t kept, used_peak; /* bytes: kept large blocks; most that were handed out at once */
    int64_t reused;
    int64_t most, small_most; /* bytes that are kept at most: large blocks, and in each small bin */
    dvti_atomic reserved, reserved_peak; /* bytes from the system, handed out or kept */
    dvti_atomic taken;                   /* blocks from the system so far */
    struct dvti_heap *next;
} dvti_heap;

/* A heap that is all zeros becomes one that keeps what DEVTENSOR_CPU_CACHE allows. */
DVTI_FN void dvti_heap_open(dvti_heap *heap);
/* Gives back what is kept. Blocks that are still in use may be given to dvti_heap_drop afterwards. */
DVTI_FN void dvti_heap_close(dvti_heap *heap);
/* At most so many bytes are kept from now on. */
DVTI_FN void dvti_heap_limit(dvti_heap *heap, int64_t most);
/* 64-byte aligned; NULL when memory is exhausted, without setting an error. */
DVTI_FN void *dvti_heap_take(dvti_heap *heap, int64_t bytes);
DVTI_FN void dvti_heap_give(dvti_heap *heap, void *at);
/* Back to the system at once, without a look at any heap. */
DVTI_FN void dvti_heap_drop(void *at);
/* Gives back what is kept; returns its bytes. _all: what all heaps keep. */
DVTI_FN int64_t dvti_heap_trim(dvti_heap *heap);
DVTI_FN int64_t dvti_heap_trim_all(void);
/* Fills in all but `used` and `used_peak`. */
DVTI_FN void dvti_heap_stats(dvti_heap *heap, dvt_memory_stats *out);

#endif
