/* The caching allocator of one gpu(i). It splits segments from the driver into blocks and reuses
   released blocks without calling the driver, which would synchronize with the GPU.

   Requests up to 1 MiB share segments of 2 MiB, so that small long-lived blocks do not pin large
   segments. Larger requests use segments of 20 MiB; requests above 10 MiB get a segment of their
   own size. Best fit. A block is split if the rest is useful: 512 bytes in small segments, 1 MiB
   in large ones. A released block is merged with its free neighbors. The sizes are those of
   PyTorch's c10/cuda/CUDACachingAllocator, which are well tuned; the structure is ours. */
#include "3_cuda/device/dvt_cuda_device.h"

#define DVTI_CUDA_UNIT 512
#define DVTI_CUDA_SMALL ((int64_t)1 << 20)
#define DVTI_CUDA_SMALL_SEGMENT ((int64_t)2 << 20)
#define DVTI_CUDA_LARGE_SEGMENT ((int64_t)20 << 20)
#define DVTI_CUDA_LARGE_UNIT ((int64_t)2 << 20)

/* ---- records of blocks ---- */
/* Returns a record of zeros; NULL if memory is exhausted. Allocations split blocks, and releases
   merge them again, so these are small objects. */
static dvti_cuda_block *dvti_cuda_block_new(void) {
    dvti_cuda_block *block = (dvti_cuda_block *)dvti_small_alloc(sizeof *block);
    static const dvti_cuda_block zeros = {NULL, 0, false, false, 0, NULL, NULL, NULL, NULL};
    if (block)
        *block = zeros;
    return block;
}

static void dvti_cuda_block_free(dvti_cuda_block *block) {
    dvti_small_free(block, sizeof *block);
}

/* ---- bins of free blocks ---- */
static int dvti_cuda_bin_of(int64_t size) {
    const uint64_t units = (uint64_t)size / DVTI_CUDA_UNIT;
    return units ? DVTI_MIN(dvti_highest_bit(units), DVTI_CUDA_BINS - 1) : 0;
}

static void dvti_cuda_bin_add(dvti_cuda_memory *memory, dvti_cuda_block *block) {
    const int bin = dvti_cuda_bin_of(block->size);
    dvti_cuda_block **head = &memory->bin[block->small][bin];
    block->chain = *head;
    block->chain_back = NULL;
    if (*head)
        (*head)->chain_back = block;
    *head = block;
    memory->filled[block->small] |= (uint64_t)1 << bin;
}

static void dvti_cuda_bin_remove(dvti_cuda_memory *memory, dvti_cuda_block *block) {
    if (block->chain)
        block->chain->chain_back = block->chain_back;
    if (block->chain_back)
        block->chain_back->chain = block->chain;
    else {
        const int bin = dvti_cuda_bin_of(block->size);
        memory->bin[block->small][bin] = block->chain;
        if (!block->chain)
            memory->filled[block->small] &= ~((uint64_t)1 << bin);
    }
}

/* Returns the smallest free block of at least `size`. Only blocks of the first bin can be too
   small. */
static dvti_cuda_block *dvti_cuda_best(const dvti_cuda_memory *memory, bool small, int64_t size) {
    uint64_t bins = memory->filled[small] >> dvti_cuda_bin_of(size) << dvti_cuda_bin_of(size);
    dvti_cuda_block *best = NULL, *block;
    for (; bins && !best; bins &= bins - 1)
        for (block = memory->bin[small][dvti_highest_bit(bins & (~bins + 1))]; block;
             block = block->chain)
            if (block->size >= size && (!best || block->size < best->size))
                best = block;
    return best;
}

DVTI_FN int64_t dvti_cuda_largest_free(const dvti_cuda_memory *memory) {
    int64_t most = 0;
    int small, bin;
    for (small = 0; small < 2; small++)
        for (bin = 0; bin < DVTI_CUDA_BINS; bin++) {
            const dvti_cuda_block *block = memory->bin[small][bin];
            for (; block; block = block->chain)
                most = DVTI_MAX(most, block->size);
        }
    return most;
}

/* ---- busy blocks by address ---- */
static dvti_cuda_block **dvti_cuda_bucket(const dvti_cuda_memory *memory, const void *at) {
    uint64_t key = (uint64_t)(uintptr_t)at / DVTI_CUDA_UNIT;
    return &memory->bucket[(key * 0x9e3779b97f4a7c15u >> 32) % memory->n_buckets];
}

static void dvti_cuda_bucket_add(dvti_cuda_memory *memory, dvti_cuda_block *block) {
    dvti_cuda_block **head = dvti_cuda_bucket(memory, block->at);
    block->chain = *head;
    block->chain_back = NULL;
    if (*head)
        (*head)->chain_back = block;
    *head = block;
    memory->n_busy++;
}

/* If a larger table cannot be allocated, chains get longer and slower. Only the first table must
   exist. */
static bool dvti_cuda_buckets_ready(dvti_cuda_memory *memory) {
    dvti_cuda_block **old = memory->bucket, **fresh, *block, *next;
    size_t n = memory->n_buckets, i;
    if (memory->n_busy < n)
        return true;
    fresh = (dvti_cuda_block **)dvti_alloc_zero((n ? 2 * n : 64) * sizeof *fresh);
    if (!fresh)
        return n > 0;
    memory->bucket = fresh;
    memory->n_buckets = n ? 2 * n : 64;
    memory->n_busy = 0;
    for (i = 0; i < n; i++)
        for (block = old[i]; block; block = next) {
            next = block->chain;
            dvti_cuda_bucket_add(memory, block);
        }
    dvti_free(old);
    return true;
}

DVTI_FN dvti_cuda_block *dvti_cuda_block_at(const dvti_cuda_memory *memory, const void *at) {
    dvti_cuda_block *block = memory->n_buckets ? *dvti_cuda_bucket(memory, at) : NULL;
    while (block && block->at != (const char *)at)
        block = block->chain;
    return block;
}

/* ---- allocating ---- */
static int64_t dvti_cuda_segment_size(int64_t size) {
    if (size <= DVTI_CUDA_SMALL)
        return DVTI_CUDA_SMALL_SEGMENT;
    if (size <= DVTI_CUDA_LARGE_SEGMENT / 2)
        return DVTI_CUDA_LARGE_SEGMENT;
    return (size + DVTI_CUDA_LARGE_UNIT - 1) / DVTI_CUDA_LARGE_UNIT * DVTI_CUDA_LARGE_UNIT;
}

static dvti_cuda_block *dvti_cuda_segment(dvti_cuda_memory *memory, int64_t size,
                                          dvti_cu_result *result) {
    dvti_cuda_block *block = dvti_cuda_block_new();
    dvti_cu_address address = 0;
    int64_t segment_size = dvti_cuda_segment_size(size);
    *result = DVTI_CU_OK;
    if (!block)
        return NULL;
    *result = dvti_cuda()->cuMemAlloc_v2(&address, (size_t)segment_size);
    /* Asks for the block alone: a GPU that is nearly full may have that much. */
    if (*result == DVTI_CU_OUT_OF_MEMORY && size > DVTI_CUDA_SMALL && segment_size > size) {
        segment_size = size;
        *result = dvti_cuda()->cuMemAlloc_v2(&address, (size_t)segment_size);
    }
    if (*result != DVTI_CU_OK) {
        dvti_cuda_block_free(block);
        return NULL;
    }
    block->at = (char *)(uintptr_t)address;
    block->size = segment_size;
    block->small = size <= DVTI_CUDA_SMALL;
    memory->segments++;
    memory->fresh++;
    memory->reserved += segment_size;
    memory->reserved_peak = DVTI_MAX(memory->reserved_peak, memory->reserved);
    return block;
}

/* Splits the block. It stays whole if the record of the second part cannot be allocated. */
static void dvti_cuda_split(dvti_cuda_memory *memory, dvti_cuda_block *block, int64_t size) {
    int64_t rest = block->size - size;
    dvti_cuda_block *tail;
    if (rest < (block->small ? DVTI_CUDA_UNIT : DVTI_CUDA_SMALL))
        return;
    tail = dvti_cuda_block_new();
    if (!tail)
        return;
    tail->at = block->at + size;
    tail->size = rest;
    tail->small = block->small;
    tail->released = block->released;
    tail->previous = block;
    tail->next = block->next;
    if (tail->next)
        tail->next->previous = tail;
    block->next = tail;
    block->size = size;
    dvti_cuda_bin_add(memory, tail);
}

static int64_t dvti_cuda_rounded(int64_t bytes) {
    return (DVTI_MAX(bytes, 1) + DVTI_CUDA_UNIT - 1) / DVTI_CUDA_UNIT * DVTI_CUDA_UNIT;
}

/* Returns the block, which is in no bin, as a busy one of that size. */
static dvti_cuda_block *dvti_cuda_use(dvti_cuda_memory *memory, dvti_cuda_block *block,
                                      int64_t size) {
    dvti_cuda_split(memory, block, size);
    block->busy = true;
    dvti_cuda_bucket_add(memory, block);
    return block;
}

DVTI_FN dvti_cuda_block *dvti_cuda_take_free(dvti_cuda_memory *memory, int64_t bytes) {
    int64_t size;
    dvti_cuda_block *block;
    if (bytes > INT64_MAX / 2 || !dvti_cuda_buckets_ready(memory)) /* rounding up would overflow */
        return NULL;
    size = dvti_cuda_rounded(bytes);
    block = dvti_cuda_best(memory, size <= DVTI_CUDA_SMALL, size);
    if (!block)
        return NULL;
    dvti_cuda_bin_remove(memory, block);
    memory->reused++;
    return dvti_cuda_use(memory, block, size);
}

DVTI_FN dvti_cuda_block *dvti_cuda_take(dvti_cuda_memory *memory, int64_t bytes,
                                        dvti_cu_result *result) {
    dvti_cuda_block *block = dvti_cuda_take_free(memory, bytes);
    *result = block || bytes <= INT64_MAX / 2 ? DVTI_CU_OK : DVTI_CU_OUT_OF_MEMORY;
    if (block || *result != DVTI_CU_OK || !dvti_cuda_buckets_ready(memory))
        return block;
    block = dvti_cuda_segment(memory, dvti_cuda_rounded(bytes), result);
    return block ? dvti_cuda_use(memory, block, dvti_cuda_rounded(bytes)) : NULL;
}

/* ---- releasing ---- */
/* Merges `next` into `block`; neither is in a bin. */
static void dvti_cuda_merge(dvti_cuda_block *block, dvti_cuda_block *next) {
    block->size += next->size;
    block->released = DVTI_MAX(block->released, next->released);
    block->next = next->next;
    if (block->next)
        block->next->previous = block;
    dvti_cuda_block_free(next);
}

DVTI_FN void dvti_cuda_give(dvti_cuda_memory *memory, dvti_cuda_block *block, int64_t position) {
    dvti_cuda_block *neighbor;
    if (block->chain)
        block->chain->chain_back = block->chain_back;
    if (block->chain_back)
        block->chain_back->chain = block->chain;
    else
        *dvti_cuda_bucket(memory, block->at) = block->chain;
    memory->n_busy--;
    block->busy = false;
    block->released = position;
    if ((neighbor = block->next) && !neighbor->busy) {
        dvti_cuda_bin_remove(memory, neighbor);
        dvti_cuda_merge(block, neighbor);
    }
    if ((neighbor = block->previous) && !neighbor->busy) {
        dvti_cuda_bin_remove(memory, neighbor);
        dvti_cuda_merge(neighbor, block);
        block = neighbor;
    }
    dvti_cuda_bin_add(memory, block);
}

DVTI_FN int64_t dvti_cuda_trim(dvti_cuda_memory *memory) {
    int64_t bytes = 0;
    int small, bin;
    for (small = 0; small < 2; small++)
        for (bin = 0; bin < DVTI_CUDA_BINS; bin++) {
            dvti_cuda_block *block = memory->bin[small][bin], *next;
            for (; block; block = next) {
                next = block->chain;
                if (block->previous || block->next ||
                    dvti_cuda()->cuMemFree_v2((dvti_cu_address)(uintptr_t)block->at) != DVTI_CU_OK)
                    continue;
                dvti_cuda_bin_remove(memory, block);
                bytes += block->size;
                memory->segments--;
                memory->reserved -= block->size;
                dvti_cuda_block_free(block);
            }
        }
    return bytes;
}

DVTI_FN void dvti_cuda_forget(dvti_cuda_memory *memory) {
    dvti_cuda_block *block, *next;
    size_t i;
    int small, bin;
    for (i = 0; i < memory->n_buckets; i++)
        for (block = memory->bucket[i]; block; block = next) {
            next = block->chain;
            dvti_cuda_block_free(block);
        }
    for (small = 0; small < 2; small++)
        for (bin = 0; bin < DVTI_CUDA_BINS; bin++)
            for (block = memory->bin[small][bin]; block; block = next) {
                next = block->chain;
                dvti_cuda_block_free(block);
            }
    dvti_free(memory->bucket);
    memset(memory, 0, sizeof *memory);
}

#undef DVTI_CUDA_UNIT
#undef DVTI_CUDA_SMALL
#undef DVTI_CUDA_SMALL_SEGMENT
#undef DVTI_CUDA_LARGE_SEGMENT
#undef DVTI_CUDA_LARGE_UNIT
