/* Memory: all allocations of the library go through this file. Also checked arithmetic of sizes. */
#include "1_base/dvt_heap.h"

static void *dvti_default_alloc(void *user, size_t bytes) {
    (void)user;
    return malloc(bytes);
}

static void *dvti_default_resize(void *user, void *block, size_t bytes) {
    (void)user;
    return realloc(block, bytes);
}

static void dvti_default_release(void *user, void *block) {
    (void)user;
    free(block);
}

static dvt_allocator dvti_allocator = {dvti_default_alloc, dvti_default_resize,
                                       dvti_default_release, NULL};

DVT_API void dvt_set_allocator(const dvt_allocator *allocator) {
    dvt_allocator standard = {dvti_default_alloc, dvti_default_resize, dvti_default_release, NULL};
    dvti_heap_trim_all(); /* kept blocks return to their allocator */
    dvti_allocator = allocator ? *allocator : standard;
}

DVTI_FN const dvt_allocator *dvti_allocator_now(void) {
    return &dvti_allocator;
}

/* Requests at least one byte, because malloc(0) may return NULL without being out of memory. */
DVTI_FN void *dvti_alloc(size_t bytes) {
    return dvti_allocator.alloc(dvti_allocator.user, bytes ? bytes : 1);
}

DVTI_FN void *dvti_alloc_zero(size_t bytes) {
    void *block = dvti_alloc(bytes);
    if (block)
        memset(block, 0, bytes);
    return block;
}

/* GCC expands a memset of known length to `rep stos`, whose startup takes ten times as long. */
DVTI_NOINLINE DVTI_FN void dvti_clear(void *at, size_t bytes) {
    memset(at, 0, bytes);
}

DVTI_FN void dvti_free(void *block) {
    if (block)
        dvti_allocator.release(dvti_allocator.user, block);
}

/* ---- small objects of every operation: each thread caches a few ---- */
#define DVTI_SMALL_STEP 64
#define DVTI_SMALL_SIZES 8
#define DVTI_SMALL_MOST 32 /* of each size */

typedef struct dvti_small {
    struct dvti_small *next;
} dvti_small;

typedef struct dvti_smalls {
    bool keeps; /* the thread-end hook will call dvti_small_end */
    int count[DVTI_SMALL_SIZES];
    dvti_small *first[DVTI_SMALL_SIZES];
} dvti_smalls;

static DVTI_TLS dvti_smalls dvti_my_smalls;

/* A user's allocator sees every request. So do the address and memory sanitizers. */
static bool dvti_small_kept(size_t bytes) {
    return bytes <= DVTI_SMALL_STEP * DVTI_SMALL_SIZES && !DVTI_ASAN && !DVTI_MSAN &&
           dvti_allocator.alloc == dvti_default_alloc;
}

DVTI_FN void dvti_small_begin(void) {
    dvti_my_smalls.keeps = !DVTI_TLS_ENDS_EARLY;
}

DVTI_FN void dvti_small_end(void) {
    dvti_smalls *mine = &dvti_my_smalls;
    int k;
    mine->keeps = false;
    for (k = 0; k < DVTI_SMALL_SIZES; k++)
        while (mine->first[k]) {
            dvti_small *block = mine->first[k];
            mine->first[k] = block->next;
            dvti_default_release(NULL, block);
        }
    memset(mine->count, 0, sizeof mine->count);
}

DVTI_FN void *dvti_small_alloc(size_t bytes) {
    size_t k = (bytes - 1) / DVTI_SMALL_STEP;
    if (dvti_small_kept(bytes)) {
        dvti_smalls *mine = &dvti_my_smalls;
        dvti_small *block = mine->first[k];
        if (!block)
            return dvti_default_alloc(NULL, (k + 1) * DVTI_SMALL_STEP);
        mine->first[k] = block->next;
        mine->count[k]--;
        return block;
    }
    return dvti_alloc(bytes);
}

DVTI_FN void dvti_small_free(void *block, size_t bytes) {
    size_t k = (bytes - 1) / DVTI_SMALL_STEP;
    dvti_smalls *mine = &dvti_my_smalls;
    if (!block || !dvti_small_kept(bytes) || !mine->keeps || mine->count[k] == DVTI_SMALL_MOST) {
        dvti_free(block);
        return;
    }
    ((dvti_small *)block)->next = mine->first[k];
    mine->first[k] = (dvti_small *)block;
    mine->count[k]++;
}

DVTI_FN bool dvti_grow(void **items, size_t *capacity, size_t need, size_t item_size) {
    size_t grown = *capacity ? *capacity : 8;
    void *block;
    if (need <= *capacity)
        return true;
    while (grown < need) {
        if (grown > SIZE_MAX / 2)
            return false;
        grown *= 2;
    }
    if (grown > SIZE_MAX / item_size)
        return false;
    block = *items ? dvti_allocator.resize(dvti_allocator.user, *items, grown * item_size)
                   : dvti_alloc(grown * item_size);
    if (!block)
        return false;
    *items = block;
    *capacity = grown;
    return true;
}

DVTI_FN char *dvti_strdup(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = (char *)dvti_alloc(bytes);
    if (copy)
        memcpy(copy, text, bytes);
    return copy;
}

DVTI_FN bool dvti_mul(int64_t a, int64_t b, int64_t *out) {
#if defined(__GNUC__) || defined(__clang__)
    int64_t product; /* avoids a division: 10% of a small operation */
    if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
#else
    if (a < 0 || b < 0 || (b && a > INT64_MAX / b))
        return false;
    *out = a * b;
#endif
    return true;
}

DVTI_FN bool dvti_sum(int64_t a, int64_t b, int64_t *out) {
    if (a < 0 || b < 0 || a > INT64_MAX - b)
        return false;
    *out = a + b;
    return true;
}

#undef DVTI_SMALL_STEP
#undef DVTI_SMALL_SIZES
#undef DVTI_SMALL_MOST
