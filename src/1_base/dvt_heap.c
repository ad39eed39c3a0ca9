/* Implements dvt_heap.h. It shares no code with the allocator of GPU memory, which has to split and
   merge segments: GPU memory cannot hold block headers, and driver calls are expensive. In host
   memory whole blocks with a header are simpler and ten times as fast. */
#include "1_base/dvt_heap.h"

#define DVTI_HEAP_LINE 64
#define DVTI_HEAP_HUGE ((int64_t)2 << 20)
#define DVTI_HEAP_BIN_BYTES ((int64_t)256 << 10) /* limit of each small bin */
#define DVTI_HEAP_SLACK ((int64_t)64 << 20)

#if DVTI_ASAN
#define dvti_heap_hide(at, bytes) __asan_poison_memory_region((at), (size_t)(bytes))
#define dvti_heap_show(at, bytes) __asan_unpoison_memory_region((at), (size_t)(bytes))
#else
#define dvti_heap_hide(at, bytes) ((void)(at))
#define dvti_heap_show(at, bytes) ((void)(at))
#endif
/* Tells the memory sanitizer that the old values of a kept block are uninitialized. */
#if DVTI_MSAN
#define dvti_heap_unwritten(at, bytes) __msan_allocated_memory((at), (size_t)(bytes))
#else
#define dvti_heap_unwritten(at, bytes) ((void)(at))
#endif

/* ---- sizes ---- */
/* Returns the bin of a size. Bins 0 to 15 hold 1 to 16 cache lines; eight bins follow for each
   power of two. */
static int dvti_heap_bin_of(int64_t bytes) {
    uint64_t last = (uint64_t)(DVTI_MAX(bytes, 1) - 1) / DVTI_HEAP_LINE;
    int shift;
    if (last < 16)
        return (int)last;
    shift = dvti_highest_bit(last) - 3;
    return 8 + shift * 8 + (int)(last >> shift) - 8;
}

/* Returns the size of the blocks of a bin. */
static int64_t dvti_heap_capacity(int bin) {
    int shift = bin < 16 ? 0 : (bin - 8) / 8;
    int64_t lines = bin < 16 ? bin + 1 : (int64_t)((bin - 8) % 8 + 9) << shift;
    return lines * DVTI_HEAP_LINE;
}

/* ---- locks ---- */
static bool dvti_heap_try(dvti_atomic *lock) {
    return !dvti_atomic_load(lock) && dvti_atomic_swap(lock, 0, 1);
}

/* Spins for rare callers and for lists of large blocks. Gives up after `tries` pauses. */
static bool dvti_heap_lock(dvti_atomic *lock, int tries) {
    for (; !dvti_heap_try(lock); tries--) {
        if (!tries)
            return false;
        dvti_pause();
    }
    return true;
}

#define DVTI_HEAP_TRIES 200
#define DVTI_HEAP_TRIES_RARE (1 << 20) /* of trimming, statistics, and lists of heaps */

/* ---- blocks and the system ---- */
static dvti_heap_block *dvti_heap_block_of(void *at) {
    return (dvti_heap_block *)(void *)((char *)at - DVTI_HEAP_LINE);
}

static char *dvti_heap_elements(dvti_heap_block *block) {
    return (char *)block + DVTI_HEAP_LINE;
}

static void dvti_heap_raise(dvti_atomic *peak, int64_t value) {
    int64_t now;
    while ((now = dvti_atomic_load(peak)) < value && !dvti_atomic_swap(peak, now, value))
        continue;
}

static dvti_heap_block *dvti_heap_new(dvti_heap *heap, int64_t size) {
    int64_t align = size >= DVTI_HEAP_HUGE ? DVTI_HEAP_HUGE : DVTI_HEAP_LINE;
    uint64_t whole = (uint64_t)size + (uint64_t)align + DVTI_HEAP_LINE;
    const dvt_allocator *from = dvti_allocator_now();
    dvti_heap_block *block;
    char *start, *at;
    if (whole > SIZE_MAX / 2)
        return NULL;
    start = (char *)from->alloc(from->user, (size_t)whole);
    if (!start)
        return NULL;
    at = start + DVTI_HEAP_LINE;
    at += (size_t)(-(uintptr_t)at & (uintptr_t)(align - 1));
#if DVTI_LINUX && defined(MADV_HUGEPAGE)
    if (align == DVTI_HEAP_HUGE)
        madvise(at, (size_t)size, MADV_HUGEPAGE); /* if refused, small pages are used */
#endif
    block = dvti_heap_block_of(at);
    block->start = start;
    block->release = from->release;
    block->user = from->user;
    block->size = size;
    dvti_atomic_add(&heap->taken, 1);
    dvti_heap_raise(&heap->reserved_peak, dvti_atomic_add(&heap->reserved, size));
    return block;
}

static void dvti_heap_free(dvti_heap_block *block) {
    dvti_heap_show(dvti_heap_elements(block), block->size);
    block->release(block->user, block->start);
}

static void dvti_heap_free_chain(dvti_heap_block *block) {
    dvti_heap_block *next;
    for (; block; block = next) {
        next = block->chain;
        dvti_heap_free(block);
    }
}

/* ---- large blocks, with the lock held ---- */
static void dvti_heap_keep(dvti_heap *heap, dvti_heap_block *block) {
    dvti_heap_block **head = &heap->large[dvti_heap_bin_of(block->size) - DVTI_HEAP_SMALL_BINS];
    block->chain = *head;
    block->chain_back = NULL;
    if (*head)
        (*head)->chain_back = block;
    *head = block;
    block->older = heap->newest;
    block->newer = NULL;
    if (heap->newest)
        heap->newest->newer = block;
    else
        heap->oldest = block;
    heap->newest = block;
    heap->kept += block->size;
}

static void dvti_heap_unkeep(dvti_heap *heap, dvti_heap_block *block) {
    if (block->chain)
        block->chain->chain_back = block->chain_back;
    if (block->chain_back)
        block->chain_back->chain = block->chain;
    else
        heap->large[dvti_heap_bin_of(block->size) - DVTI_HEAP_SMALL_BINS] = block->chain;
    if (block->older)
        block->older->newer = block->newer;
    else
        heap->oldest = block->newer;
    if (block->newer)
        block->newer->older = block->older;
    else
        heap->newest = block->older;
    heap->kept -= block->size;
}

/* Removes the oldest blocks until at most `most` bytes are kept. The caller frees them after it
   releases the lock. */
static dvti_heap_block *dvti_heap_evict(dvti_heap *heap, int64_t most) {
    dvti_heap_block *chain = NULL;
    while (heap->oldest && heap->kept > most) {
        dvti_heap_block *block = heap->oldest;
        dvti_heap_unkeep(heap, block);
        dvti_atomic_add(&heap->reserved, -block->size);
        block->chain = chain;
        chain = block;
    }
    return chain;
}

/* Returns the smallest kept block of at least this bin, or of the next two: at most a quarter
   larger. On NULL, *chain must be freed before a new block is allocated. */
static dvti_heap_block *dvti_heap_fit(dvti_heap *heap, int bin, dvti_heap_block **chain) {
    int last = DVTI_MIN(bin + 2, DVTI_HEAP_BINS - 1), at;
    int64_t used = dvti_atomic_load(&heap->reserved) - heap->kept, wanted = dvti_heap_capacity(bin);
    for (at = bin; at <= last; at++) {
        dvti_heap_block *block = heap->large[at - DVTI_HEAP_SMALL_BINS];
        if (block) {
            dvti_heap_unkeep(heap, block);
            heap->reused++;
            heap->used_peak = DVTI_MAX(heap->used_peak, used + block->size);
            return block;
        }
    }
    heap->used_peak = DVTI_MAX(heap->used_peak, used + wanted);
    *chain = dvti_heap_evict(
        heap, DVTI_MAX(heap->used_peak + heap->used_peak / 4 + DVTI_HEAP_SLACK - used - wanted, 0));
    return NULL;
}

static dvti_heap_block *dvti_heap_take_large(dvti_heap *heap, int bin) {
    dvti_heap_block *block = NULL, *chain = NULL;
    if (dvti_heap_lock(&heap->lock, DVTI_HEAP_TRIES)) {
        block = dvti_heap_fit(heap, bin, &chain);
        dvti_atomic_unlock(&heap->lock);
    }
    dvti_heap_free_chain(chain);
    return block;
}

static void dvti_heap_give_large(dvti_heap *heap, dvti_heap_block *block) {
    dvti_heap_block *chain = block;
    if (block->size > heap->most || !dvti_heap_lock(&heap->lock, DVTI_HEAP_TRIES)) {
        block->chain = NULL;
        dvti_atomic_add(&heap->reserved, -block->size);
    } else {
        dvti_heap_hide(dvti_heap_elements(block), block->size);
        dvti_heap_keep(heap, block);
        chain = dvti_heap_evict(heap, heap->most);
        dvti_atomic_unlock(&heap->lock);
    }
    dvti_heap_free_chain(chain);
}

/* ---- small blocks ---- */
static dvti_heap_block *dvti_heap_take_small(dvti_heap_bin *bin) {
    dvti_heap_block *block;
    if (!dvti_heap_try(&bin->lock))
        return NULL;
    block = bin->first;
    if (block) {
        bin->first = block->chain;
        bin->kept -= block->size;
        bin->reused++;
    }
    dvti_atomic_unlock(&bin->lock);
    return block;
}

static void dvti_heap_give_small(dvti_heap *heap, dvti_heap_block *block) {
    dvti_heap_bin *bin = &heap->small[dvti_heap_bin_of(block->size)];
    if (dvti_heap_try(&bin->lock)) {
        bool fits = bin->kept + block->size <= heap->small_most;
        if (fits) {
            dvti_heap_hide(dvti_heap_elements(block), block->size);
            block->chain = bin->first;
            bin->first = block;
            bin->kept += block->size;
        }
        dvti_atomic_unlock(&bin->lock);
        if (fits)
            return;
    }
    dvti_atomic_add(&heap->reserved, -block->size);
    dvti_heap_free(block);
}

/* ---- the interface ---- */
DVTI_FN void *dvti_heap_take(dvti_heap *heap, int64_t bytes) {
    int bin = bytes > (int64_t)1 << 46 ? DVTI_HEAP_BINS : dvti_heap_bin_of(bytes);
    dvti_heap_block *block;
    char *at;
    if (bin >= DVTI_HEAP_BINS)
        return NULL;
    block = bin < DVTI_HEAP_SMALL_BINS ? dvti_heap_take_small(&heap->small[bin])
                                       : dvti_heap_take_large(heap, bin);
    if (!block) {
        block = dvti_heap_new(heap, dvti_heap_capacity(bin));
        if (!block && dvti_heap_trim_all() > 0)
            block = dvti_heap_new(heap, dvti_heap_capacity(bin));
        if (!block)
            return NULL;
    }
    at = dvti_heap_elements(block);
    dvti_heap_show(at, bytes);
    dvti_heap_unwritten(at, bytes);
    dvti_heap_hide(at + bytes, block->size - bytes);
    dvti_heap_hide(block, DVTI_HEAP_LINE);
    return at;
}

DVTI_FN void dvti_heap_give(dvti_heap *heap, void *at) {
    dvti_heap_block *block = dvti_heap_block_of(at);
    const dvt_allocator *now = dvti_allocator_now();
    dvti_heap_show(block, DVTI_HEAP_LINE);
    if (block->release != now->release || block->user != now->user) {
        dvti_atomic_add(&heap->reserved, -block->size);
        dvti_heap_free(block);
    } else if (block->size <= DVTI_HEAP_SMALL)
        dvti_heap_give_small(heap, block);
    else
        dvti_heap_give_large(heap, block);
}

DVTI_FN void dvti_heap_drop(void *at) {
    dvti_heap_show(dvti_heap_block_of(at), DVTI_HEAP_LINE);
    dvti_heap_free(dvti_heap_block_of(at));
}

/* Prepends all kept blocks to the chain. Returns their bytes. */
static int64_t dvti_heap_empty(dvti_heap *heap, dvti_heap_block **chain) {
    dvti_heap_block *block, *next;
    int64_t bytes = 0;
    int i;
    for (i = 0; i < DVTI_HEAP_SMALL_BINS; i++) {
        dvti_heap_bin *bin = &heap->small[i];
        if (!dvti_heap_lock(&bin->lock, DVTI_HEAP_TRIES_RARE))
            continue;
        for (block = bin->first; block; block = next) {
            next = block->chain;
            block->chain = *chain;
            *chain = block;
        }
        bytes += bin->kept;
        bin->first = NULL;
        bin->kept = 0;
        dvti_atomic_unlock(&bin->lock);
    }
    dvti_atomic_add(&heap->reserved, -bytes);
    if (dvti_heap_lock(&heap->lock, DVTI_HEAP_TRIES_RARE)) {
        bytes += heap->kept;
        for (block = dvti_heap_evict(heap, 0); block; block = next) {
            next = block->chain;
            block->chain = *chain;
            *chain = block;
        }
        dvti_atomic_unlock(&heap->lock);
    }
    return bytes;
}

DVTI_FN int64_t dvti_heap_trim(dvti_heap *heap) {
    dvti_heap_block *chain = NULL;
    int64_t bytes = dvti_heap_empty(heap, &chain);
    dvti_heap_free_chain(chain);
    return bytes;
}

/* ---- all heaps ---- */
static dvti_heap *dvti_heaps;
static dvti_atomic dvti_heaps_lock;

DVTI_FN int64_t dvti_heap_trim_all(void) {
    dvti_heap_block *chain = NULL;
    dvti_heap *heap;
    int64_t bytes = 0;
    if (!dvti_heap_lock(&dvti_heaps_lock, DVTI_HEAP_TRIES_RARE))
        return 0;
    for (heap = dvti_heaps; heap; heap = heap->next)
        bytes += dvti_heap_empty(heap, &chain);
    dvti_atomic_unlock(&dvti_heaps_lock);
    dvti_heap_free_chain(chain);
    return bytes;
}

DVTI_FN void dvti_heap_limit(dvti_heap *heap, int64_t most) {
    heap->most = most;
    heap->small_most = DVTI_MIN(DVTI_HEAP_BIN_BYTES, most / DVTI_HEAP_SMALL_BINS);
}

/* Returns DEVTENSOR_CPU_CACHE, or by default a quarter of the machine's memory. */
static int64_t dvti_heap_default(void) {
    const char *text = dvti_env("DEVTENSOR_CPU_CACHE");
    int64_t most = (int64_t)1 << 30, given;
#if defined(_SC_PHYS_PAGES) && defined(_SC_PAGESIZE)
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0)
        most = (int64_t)pages / 4 * page;
#elif defined(_WIN32)
    MEMORYSTATUSEX memory;
    memory.dwLength = sizeof memory;
    if (GlobalMemoryStatusEx(&memory))
        most = (int64_t)(memory.ullTotalPhys / 4);
#endif
    if (DVTI_ASAN)
        most = 0;
    if (!text)
        return most;
    given = dvti_parse_bytes(text);
    if (given >= 0)
        return given;
    dvti_log(
        DVT_LOG_WARNING,
        "DEVTENSOR_CPU_CACHE=%s is not a number of bytes with an optional K, M or G; %lld is used",
        text, (long long)most);
    return most;
}

DVTI_FN void dvti_heap_open(dvti_heap *heap) {
    dvti_heap_limit(heap, dvti_heap_default());
    if (!dvti_heap_lock(&dvti_heaps_lock, DVTI_HEAP_TRIES_RARE))
        return; /* only dvti_heap_trim_all misses this heap then */
    heap->next = dvti_heaps;
    dvti_heaps = heap;
    dvti_atomic_unlock(&dvti_heaps_lock);
}

DVTI_FN void dvti_heap_close(dvti_heap *heap) {
    dvti_heap **at;
    if (dvti_heap_lock(&dvti_heaps_lock, DVTI_HEAP_TRIES_RARE)) {
        for (at = &dvti_heaps; *at && *at != heap; at = &(*at)->next)
            continue;
        if (*at)
            *at = heap->next;
        dvti_atomic_unlock(&dvti_heaps_lock);
    }
    dvti_heap_trim(heap);
}

DVTI_FN void dvti_heap_stats(dvti_heap *heap, dvt_memory_stats *out) {
    int i;
    out->reserved = dvti_atomic_load(&heap->reserved);
    out->reserved_peak = dvti_atomic_load(&heap->reserved_peak);
    out->taken = dvti_atomic_load(&heap->taken);
    out->reused = 0;
    for (i = 0; i < DVTI_HEAP_SMALL_BINS; i++)
        if (dvti_heap_lock(&heap->small[i].lock, DVTI_HEAP_TRIES_RARE)) {
            out->reused += heap->small[i].reused;
            dvti_atomic_unlock(&heap->small[i].lock);
        }
    if (dvti_heap_lock(&heap->lock, DVTI_HEAP_TRIES_RARE)) {
        out->reused += heap->reused;
        dvti_atomic_unlock(&heap->lock);
    }
}

#undef DVTI_HEAP_LINE
#undef DVTI_HEAP_HUGE
#undef DVTI_HEAP_BIN_BYTES
#undef DVTI_HEAP_SLACK
#undef DVTI_HEAP_TRIES
#undef DVTI_HEAP_TRIES_RARE
#undef dvti_heap_hide
#undef dvti_heap_show
#undef dvti_heap_unwritten
