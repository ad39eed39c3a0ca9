/* Host memory for elements: a caching allocator. Released blocks are kept and reused without a
   system call. The system would clear and map every page again, which takes 1.4 to 2.8 us per 4 KiB
   on the machines we measured.

     start                header (64 bytes)   elements
     |  alignment gap  |  dvti_heap_block  |  size = capacity in bytes      |

   Sizes are rounded up to 64 bytes, and above 1 KiB to one of eight sizes per power of two, so that
   released blocks fit later requests. Blocks of up to DVTI_HEAP_SMALL bytes come from a list for
   each size. Larger requests take the smallest kept block that is at most a quarter too large.
   Blocks of 2 MiB and more are aligned to 2 MiB and ask for huge pages. Blocks are never split
   or merged: each is one allocation of the program's allocator (dvt_set_allocator) and returns
   to that allocator.

   Two limits apply to kept memory: `most` bytes, and a limit on used plus kept memory together.
   That limit is 5/4 of the most that was ever used at once, plus 64 MiB. Above it, the blocks
   released first are freed. When the system is out of memory, all heaps free everything they
   keep, and the request is repeated.

   No thread blocks on a lock: after a bounded spin (none for small blocks) it allocates from the
   system. So a thread that was descheduled, or that stayed in the parent of a fork, blocks no
   other thread.

   With the address sanitizer nothing is kept unless DEVTENSOR_CPU_CACHE asks for it, because the
   sanitizer's own quarantine detects use after free best. Bytes after the last element, before
   the first one, and in kept blocks are poisoned. */
#ifndef DVTI_HEAP_H
#define DVTI_HEAP_H
#include "1_base/dvt_base.h"

#define DVTI_HEAP_SMALL ((int64_t)32 << 10)
#define DVTI_HEAP_SMALL_BINS 56
#define DVTI_HEAP_BINS 304 /* up to 2^46 bytes */

/* Precedes the elements, in a 64-byte header. */
typedef struct dvti_heap_block {
    void *start; /* as the allocator returned it */
    void (*release)(void *user, void *start);
    void *user;
    int64_t size;                               /* capacity in bytes */
    struct dvti_heap_block *chain, *chain_back; /* kept blocks of the same bin */
    struct dvti_heap_block *older, *newer;      /* kept large blocks by time of release */
} dvti_heap_block;

typedef struct dvti_heap_bin {
    dvti_atomic lock;
    dvti_heap_block *first;
    int64_t kept, reused; /* bytes; number of requests */
} dvti_heap_bin;

typedef struct dvti_heap {
    dvti_heap_bin small[DVTI_HEAP_SMALL_BINS];
    dvti_atomic lock; /* protects the members up to `reused` */
    dvti_heap_block *large[DVTI_HEAP_BINS - DVTI_HEAP_SMALL_BINS];
    dvti_heap_block *oldest, *newest;
    int64_t kept, used_peak; /* bytes: kept large blocks; peak of bytes handed out */
    int64_t reused;
    int64_t most, small_most;            /* limits of kept bytes: large blocks; each small bin */
    dvti_atomic reserved, reserved_peak; /* bytes from the system, handed out or kept */
    dvti_atomic taken;                   /* number of blocks from the system */
    struct dvti_heap *next;
} dvti_heap;

/* Initializes a zeroed heap. It keeps what DEVTENSOR_CPU_CACHE allows. */
DVTI_FN void dvti_heap_open(dvti_heap *heap);
/* Frees all kept blocks. Blocks still in use may be passed to dvti_heap_drop afterwards. */
DVTI_FN void dvti_heap_close(dvti_heap *heap);
/* Sets the limit of kept bytes. */
DVTI_FN void dvti_heap_limit(dvti_heap *heap, int64_t most);
/* Returns a block aligned to 64 bytes. Returns NULL when memory is exhausted, without setting an
   error. */
DVTI_FN void *dvti_heap_take(dvti_heap *heap, int64_t bytes);
DVTI_FN void dvti_heap_give(dvti_heap *heap, void *at);
/* Frees the block without using any heap. */
DVTI_FN void dvti_heap_drop(void *at);
/* Frees all kept blocks; returns their bytes. The _all variant trims all heaps. */
DVTI_FN int64_t dvti_heap_trim(dvti_heap *heap);
DVTI_FN int64_t dvti_heap_trim_all(void);
/* Fills in all members except `used` and `used_peak`. */
DVTI_FN void dvti_heap_stats(dvti_heap *heap, dvt_memory_stats *out);

#endif
