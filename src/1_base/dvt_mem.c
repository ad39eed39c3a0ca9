/* Memory: one door for every allocation of the library, and the arithmetic of sizes. */
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
    dvti_heap_trim_all(); /* blocks that are kept for later return to the allocator that they came from */
    dvti_allocator = allocator ? *allocator : standard;
}

DVTI_FN const dvt_allocator *dvti_allocator_now(void) {
    return &dvti_allocator;
}

/* malloc(0) may return NULL, which is not "exhausted": ask for one byte instead. */
DVTI_FN void *dvti_alloc(size_t bytes) {
    return dvti_allocator.alloc(dvti_allocator.user, bytes ? bytes : 1);
}

DVTI_FN void *dvti_alloc_zero(size_t bytes) {
    void *block = dvti_alloc(bytes);
    if (block)
        memset(block, 0, bytes);
    return block;
}

DVTI_FN void dvti_free(void *block) {
    if (block)
        dvti_allocator.release(dvti_allocator.user, block);
}

DVTI_FN bool dvti_grow(void **items, size_t *capacity, size_t need, size_t item_size) {
    size_t room = *capacity ? *capacity : 8;
    void *block;
    if (need <= *capacity)
        return true;
    while (room < need) {
        if (room > SIZE_MAX / 2)
            return false;
        room *= 2;
    }
    if (room > SIZE_MAX / item_size)
        return false;
    block = *items ? dvti_allocator.resize(dvti_allocator.user, *items, room * item_size)
                   : dvti_alloc(room * item_size);
    if (!block)
        return false;
    *items = block;
    *capacity = room;
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
    if (a < 0 || b < 0 || (b && a > INT64_MAX / b))
        return false;
    *out = a * b;
    return true;
}

DVTI_FN bool dvti_sum(int64_t a, int64_t b, int64_t *out) {
    if (a < 0 || b < 0 || a > INT64_MAX - b)
        return false;
    *out = a + b;
    return true;
}
