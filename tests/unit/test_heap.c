/* Tests of the memory that cpu() caches: which blocks it reuses, which it frees and when, and which
   allocator is called. */
#include "private_copy.h"
#include "dvt_host.h"
#include "dvt_test.h"
#include <pthread.h>

#define KIB ((int64_t)1 << 10)
#define MIB ((int64_t)1 << 20)

/* An allocator with a bounded number of bytes. */
typedef struct source {
    int64_t left; /* bytes that can still be allocated; -1: unlimited */
    int64_t blocks, allocations;
} source;

static void *source_alloc(void *user, size_t bytes) {
    source *s = (source *)user;
    size_t *block;
    if (s->left >= 0 && s->left < (int64_t)bytes)
        return NULL;
    block = (size_t *)malloc(bytes + 16);
    if (!block)
        return NULL;
    if (s->left >= 0)
        s->left -= (int64_t)bytes;
    s->blocks++;
    s->allocations++;
    block[0] = bytes;
    return block + 16 / sizeof *block;
}

static void *source_resize(void *user, void *block, size_t bytes) {
    (void)user;
    (void)block;
    (void)bytes;
    return NULL;
}

static void source_release(void *user, void *block) {
    source *s = (source *)user;
    size_t *start = (size_t *)block - 16 / sizeof(size_t);
    if (s->left >= 0)
        s->left += (int64_t)*start;
    s->blocks--;
    free(start);
}

static void use_source(source *s, int64_t bytes) {
    dvt_allocator allocator;
    memset(s, 0, sizeof *s);
    s->left = bytes;
    allocator.alloc = source_alloc;
    allocator.resize = source_resize;
    allocator.release = source_release;
    allocator.user = s;
    dvt_set_allocator(&allocator);
}

static dvt_memory_stats stats_of(dvti_heap *heap) {
    dvt_memory_stats stats;
    memset(&stats, 0, sizeof stats);
    dvti_heap_stats(heap, &stats);
    return stats;
}

static dvti_heap *new_heap(int64_t most) {
    dvti_heap *heap = (dvti_heap *)calloc(1, sizeof *heap);
    if (!heap)
        abort();
    dvti_heap_open(heap);
    dvti_heap_limit(heap, most);
    return heap;
}

static void end_heap(dvti_heap *heap) {
    dvti_heap_close(heap);
    CHECK_INT(stats_of(heap).reserved, 0);
    free(heap);
}

/* ---- sizes ---- */
DVT_TEST(heap_sizes) {
    int64_t bytes;
    int bin;
    for (bin = 0; bin < DVTI_HEAP_BINS; bin++) {
        int64_t capacity = dvti_heap_capacity(bin);
        CHECK_INT(capacity % 64, 0);
        CHECK_INT(dvti_heap_bin_of(capacity), bin);
        if (bin + 1 < DVTI_HEAP_BINS)
            CHECK_INT(dvti_heap_bin_of(capacity + 1), bin + 1);
    }
    for (bytes = 1; bytes < 200000; bytes += 1 + bytes / 50) {
        int64_t capacity = dvti_heap_capacity(dvti_heap_bin_of(bytes));
        CHECK(capacity >= bytes && capacity - bytes < DVTI_MAX(64, bytes / 8 + 64));
    }
    CHECK_INT(dvti_heap_bin_of(0), 0);
    CHECK_INT(dvti_heap_capacity(DVTI_HEAP_SMALL_BINS - 1), DVTI_HEAP_SMALL);
    CHECK_INT(dvti_heap_capacity(DVTI_HEAP_BINS - 1), (int64_t)1 << 46);
}

DVT_TEST(heap_aligns) {
    static const int64_t sizes[] = {0,       1,     63,          64,      65,          1000,
                                    4096,    50000, 2 * MIB - 1, 2 * MIB, 2 * MIB + 1, 5 * MIB + 77,
                                    33 * MIB};
    dvti_heap *heap = new_heap(100 * MIB);
    int i, round;
    for (round = 0; round < 2; round++)
        for (i = 0; i < DVTI_LENGTH(sizes); i++) {
            char *at = (char *)dvti_heap_take(heap, sizes[i]);
            if (!CHECK(at != NULL))
                continue;
            CHECK_INT((uintptr_t)at % 64, 0);
            if (sizes[i] >= 2 * MIB)
                CHECK_INT((uintptr_t)at % (uintptr_t)(2 * MIB), 0);
            memset(at, 1, (size_t)sizes[i]);
            dvti_heap_give(heap, at);
        }
    CHECK(dvti_heap_take(heap, ((int64_t)1 << 46) + 1) == NULL);
    CHECK(dvti_heap_take(heap, INT64_MAX) == NULL);
    end_heap(heap);
}

#if defined(__linux__)
/* Finds the line of /proc/self/smaps for the memory around an address that begins with `word`. */
static bool find_in_smaps(const void *at, const char *word, char *line, size_t size) {
    FILE *file = fopen("/proc/self/smaps", "r");
    unsigned long begin, end;
    bool here = false, found = false;
    while (file && !found && fgets(line, (int)size, file)) {
        if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
            here = begin <= (uintptr_t)at && (uintptr_t)at < end;
        found = here && strncmp(line, word, strlen(word)) == 0;
    }
    if (file)
        fclose(file);
    return found;
}

/* Blocks of 2 MiB and more request huge pages: flag "hg". */
DVT_TEST(heap_large_blocks_want_huge_pages) {
    dvti_heap *heap = new_heap(100 * MIB);
    char *large = (char *)dvti_heap_take(heap, 16 * MIB);
    char line[512];
    bool known = false, wanted = false;
    if (CHECK(large != NULL)) {
        memset(large, 1, (size_t)(16 * MIB));
        known = access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) == 0 &&
                find_in_smaps(large + 8 * MIB, "VmFlags:", line, sizeof line);
        wanted = known && strstr(line, " hg") != NULL;
        dvti_heap_give(heap, large);
    }
    end_heap(heap);
    if (!known)
        SKIP("this system has no huge pages, or does not report them");
    CHECK(wanted);
}
#endif

/* ---- reuse ---- */
DVT_TEST(heap_reuses_blocks) {
    static const int64_t sizes[] = {10, 4000, 32 * KIB, 33 * KIB, 700 * KIB, 3 * MIB};
    dvti_heap *heap = new_heap(100 * MIB);
    int i;
    for (i = 0; i < DVTI_LENGTH(sizes); i++) {
        dvt_memory_stats before, after;
        void *a = dvti_heap_take(heap, sizes[i]), *b = dvti_heap_take(heap, sizes[i]);
        CHECK(a && b && a != b);
        dvti_heap_give(heap, a);
        before = stats_of(heap);
        CHECK(dvti_heap_take(heap, sizes[i] - 5) == a);
        after = stats_of(heap);
        CHECK_INT(after.reused, before.reused + 1);
        CHECK_INT(after.taken, before.taken);
        CHECK_INT(after.reserved, before.reserved);
        CHECK(after.reserved_peak >= after.reserved);
        dvti_heap_give(heap, a);
        dvti_heap_give(heap, b);
    }
    CHECK(dvti_heap_trim(heap) > 0);
    CHECK_INT(dvti_heap_trim(heap), 0);
    CHECK_INT(stats_of(heap).reserved, 0);
    end_heap(heap);
}

/* Takes the smallest block that is large enough, but none that is much too large. */
DVT_TEST(heap_takes_the_best_fit) {
    dvti_heap *heap = new_heap(100 * MIB);
    void *a = dvti_heap_take(heap, 1024 * KIB), *b = dvti_heap_take(heap, 1152 * KIB);
    dvti_heap_give(heap, b);
    dvti_heap_give(heap, a);
    CHECK(dvti_heap_take(heap, 1000 * KIB) == a);
    CHECK(dvti_heap_take(heap, 1000 * KIB) == b);
    dvti_heap_give(heap, a);
    dvti_heap_give(heap, b);
    CHECK_INT(stats_of(heap).taken, 2);
    a = dvti_heap_take(heap, 500 * KIB);
    CHECK_INT(stats_of(heap).taken, 3);
    dvti_heap_give(heap, a);
    end_heap(heap);
}

/* ---- freeing ---- */
DVT_TEST(heap_cache_is_bounded) {
    dvti_heap *heap = new_heap(3 * MIB);
    void *at[6], *small[3000];
    int i;
    for (i = 0; i < 6; i++)
        at[i] = dvti_heap_take(heap, MIB);
    for (i = 0; i < 6; i++)
        dvti_heap_give(heap, at[i]);
    CHECK_INT(stats_of(heap).reserved, 3 * MIB);
    CHECK(dvti_heap_take(heap, MIB) == at[5]); /* the oldest were freed */
    CHECK(dvti_heap_take(heap, MIB) == at[4]);
    CHECK(dvti_heap_take(heap, MIB) == at[3]);
    for (i = 3; i < 6; i++)
        dvti_heap_give(heap, at[i]);
    at[0] = dvti_heap_take(heap, 4 * MIB); /* too large for the cache */
    dvti_heap_give(heap, at[0]);
    CHECK_INT(stats_of(heap).reserved, 3 * MIB);
    dvti_heap_trim(heap);
    dvti_heap_limit(heap, 100 * MIB);
    for (i = 0; i < 3000; i++)
        small[i] = dvti_heap_take(heap, 128);
    for (i = 0; i < 3000; i++)
        dvti_heap_give(heap, small[i]);
    CHECK_INT(stats_of(heap).reserved, 256 * KIB);
    dvti_heap_trim(heap);
    dvti_heap_limit(heap, 0);
    dvti_heap_give(heap, dvti_heap_take(heap, 100));
    dvti_heap_give(heap, dvti_heap_take(heap, MIB));
    CHECK_INT(stats_of(heap).reserved, 0);
    end_heap(heap);
}

/* Blocks of increasing sizes do not accumulate: used and cached bytes stay close to the peak of
   used bytes. */
DVT_TEST(heap_footprint_is_bounded) {
    dvti_heap *heap = new_heap((int64_t)1 << 40);
    int64_t size;
    for (size = 8 * MIB; size <= 128 * MIB; size += 8 * MIB) {
        void *at = dvti_heap_take(heap, size);
        CHECK(at != NULL);
        CHECK(stats_of(heap).reserved <=
              dvti_heap_capacity(dvti_heap_bin_of(size)) * 5 / 4 + 64 * MIB);
        dvti_heap_give(heap, at);
    }
    end_heap(heap);
}

DVT_TEST(heap_frees_cached_blocks_when_memory_is_short) {
    dvti_heap *heap = new_heap(100 * MIB), *other = new_heap(100 * MIB);
    source s;
    void *a, *b;
    use_source(&s, 10 * MIB);
    a = dvti_heap_take(heap, 3 * MIB);
    b = dvti_heap_take(other, 700 * KIB);
    CHECK(a && b);
    CHECK(dvti_heap_take(heap, 6 * MIB) == NULL);
    dvti_heap_give(heap, a);
    dvti_heap_give(other, b);
    CHECK_INT(s.blocks, 2); /* cached */
    a = dvti_heap_take(heap, 6 * MIB);
    CHECK(a != NULL);
    CHECK_INT(s.blocks, 1); /* the cached blocks of both heaps were freed */
    CHECK(dvti_heap_take(other, 6 * MIB) == NULL);
    dvti_heap_give(heap, a);
    dvt_set_allocator(NULL);
    CHECK_INT(s.blocks, 0);
    end_heap(heap);
    end_heap(other);
}

DVT_TEST(heap_blocks_return_to_their_allocator) {
    dvti_heap *heap = new_heap(100 * MIB);
    source first, second;
    void *kept, *small, *used, *other;
    use_source(&first, -1);
    kept = dvti_heap_take(heap, MIB);
    small = dvti_heap_take(heap, 100);
    used = dvti_heap_take(heap, MIB);
    dvti_heap_give(heap, kept);
    dvti_heap_give(heap, small);
    CHECK_INT(first.blocks, 3);
    use_source(&second, -1);
    CHECK_INT(first.blocks, 1); /* blocks in use remain */
    other = dvti_heap_take(heap, MIB);
    CHECK_INT(second.blocks, 1);
    dvti_heap_give(heap, used);
    CHECK_INT(first.blocks, 0); /* freed, because it belongs to the other allocator */
    dvti_heap_give(heap, other);
    CHECK_INT(second.blocks, 1);
    dvt_set_allocator(NULL);
    CHECK_INT(second.blocks, 0);
    end_heap(heap);
}

/* A list locked by another thread, or locked when this process was forked, blocks nobody. */
DVT_TEST(heap_does_not_wait_for_locks) {
    dvti_heap *heap = new_heap(100 * MIB);
    void *a = dvti_heap_take(heap, 100), *b = dvti_heap_take(heap, MIB), *c;
    dvti_heap_give(heap, a);
    dvti_heap_give(heap, b);
    heap->lock = heap->small[dvti_heap_bin_of(100)].lock = 1;
    c = dvti_heap_take(heap, 100);
    CHECK(c != NULL && c != a);
    dvti_heap_give(heap, c);
    c = dvti_heap_take(heap, MIB);
    CHECK(c != NULL && c != b);
    dvti_heap_give(heap, c);
    heap->lock = heap->small[dvti_heap_bin_of(100)].lock = 0;
    CHECK(dvti_heap_take(heap, 100) == a && dvti_heap_take(heap, MIB) == b);
    dvti_heap_give(heap, a);
    dvti_heap_drop(b);
    dvti_atomic_add(&heap->reserved, -MIB);
    end_heap(heap);
}

#if DVTI_ASAN
/* Memory that the address sanitizer must report. */
DVT_TEST(heap_poisons_unused_memory) {
    dvti_heap *heap = new_heap(100 * MIB);
    static const int64_t sizes[] = {1, 13, 64, 1000, 100000, 3000001};
    int i;
    for (i = 0; i < DVTI_LENGTH(sizes); i++) {
        char *at = (char *)dvti_heap_take(heap, sizes[i]);
        CHECK(!__asan_region_is_poisoned(at, (size_t)sizes[i]));
        CHECK(__asan_address_is_poisoned(at + sizes[i]) || sizes[i] % 64 == 0);
        CHECK(__asan_address_is_poisoned(at - 1));
        dvti_heap_give(heap, at);
        CHECK(__asan_address_is_poisoned(at));
        CHECK(__asan_address_is_poisoned(at + sizes[i] - 1));
        CHECK(dvti_heap_take(heap, sizes[i]) == at);
        CHECK(!__asan_region_is_poisoned(at, (size_t)sizes[i]));
        dvti_heap_give(heap, at);
    }
    end_heap(heap);
    CHECK_INT(dvti_heap_default(), 0);
}
#endif

/* ---- threads ---- */
#if !defined(DEVTENSOR_NO_THREADS)
typedef struct trader {
    dvti_heap *heap;
    dvti_atomic slot[16]; /* blocks that one thread takes and another gives */
    int64_t wrong;
} trader;

static void *trade(void *user) {
    trader *t = (trader *)user;
    int i;
    for (i = 0; i < 4000; i++) {
        int64_t size = i % 7 ? 40 + i % 5 * 100 : 40 * KIB + i % 3 * 30000, before;
        dvti_atomic *slot = &t->slot[i % 16];
        int64_t *at = (int64_t *)dvti_heap_take(t->heap, size);
        if (!at)
            continue;
        at[0] = size;
        at[size / 8 - 1] = size;
        before = dvti_atomic_load(slot);
        if (!dvti_atomic_swap(slot, before, (int64_t)(intptr_t)at))
            before = (int64_t)(intptr_t)at;
        at = (int64_t *)(intptr_t)before;
        if (at && at[at[0] / 8 - 1] != at[0])
            __atomic_add_fetch(&t->wrong, 1, __ATOMIC_SEQ_CST);
        if (at)
            dvti_heap_give(t->heap, at);
    }
    return NULL;
}

DVT_TEST(heap_is_shared_by_threads) {
    pthread_t threads[4];
    trader t;
    int i, started[4];
    memset(&t, 0, sizeof t);
    t.heap = new_heap(100 * MIB);
    for (i = 0; i < 4; i++)
        started[i] = pthread_create(&threads[i], NULL, trade, &t) == 0;
    for (i = 0; i < 4; i++)
        if (CHECK(started[i]))
            pthread_join(threads[i], NULL);
    for (i = 0; i < 16; i++)
        if (t.slot[i])
            dvti_heap_give(t.heap, (void *)(intptr_t)t.slot[i]);
    CHECK_INT(t.wrong, 0);
    end_heap(t.heap);
}
#endif

/* ---- through arrays ---- */
static dvt_memory_stats query(dvt_ctx ctx) {
    dvt_memory_stats stats;
    memset(&stats, 0, sizeof stats);
    CHECK_INT(dvt_memory_query(ctx, &stats), DVT_OK);
    return stats;
}

DVT_TEST(heap_of_contexts) {
    int g;
    dvt_set_log_level(DVT_LOG_OFF);
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    for (g = 0; g < 2; g++) {
        dvt_ctx ctx = g ? dvt_gpu(1) : dvt_cpu();
        dvt_memory_stats before = query(ctx), after;
        int i;
        for (i = 0; i < 10; i++)
            DVT_SCOPE {
                CHECK(dvt_item(dvt_sum(dvt_ones(DVT_SHAPE(100000), DVT_F32, ctx), DVT_ALL)) ==
                      100000);
            }
        CHECK_INT(dvt_wait_all(), DVT_OK);
        after = query(ctx);
        CHECK_INT(after.used, before.used);
        CHECK(after.taken > before.taken);
        CHECK(after.reserved_peak >= 400000);
        if (!DVTI_ASAN) {
            CHECK(after.reused > before.reused);
            CHECK(after.reserved >= 400000);
            CHECK(dvt_trim_memory(ctx) >= 400000);
        }
        CHECK_INT(dvt_trim_memory(ctx), 0);
        CHECK_INT(query(ctx).reserved, query(ctx).used);
    }
    CHECK_INT(dvt_set_memory_limit(query(dvt_cpu()).used + 1000, dvt_cpu()), DVT_OK);
    CHECK(dvt_empty(DVT_SHAPE(1000), DVT_U8, dvt_cpu()) != NULL);
    CHECK_ERROR(dvt_empty(DVT_SHAPE(1), DVT_U8, dvt_cpu()), DVT_ERR_HOST_MEMORY);
    CHECK_INT(dvt_set_memory_limit(0, dvt_cpu()), DVT_OK);
    dvt_discard_all();
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

DVT_TEST(heap_setting) {
    setenv("DEVTENSOR_CPU_CACHE", "3M", 1);
    CHECK_INT(dvti_heap_default(), 3 * MIB);
    setenv("DEVTENSOR_CPU_CACHE", "0", 1);
    CHECK_INT(dvti_heap_default(), 0);
    unsetenv("DEVTENSOR_CPU_CACHE");
    CHECK(DVTI_ASAN || dvti_heap_default() > 0);
    setenv("DEVTENSOR_CPU_CACHE", "much", 1);
    dvt_set_log_level(DVT_LOG_OFF);
    CHECK(DVTI_ASAN || dvti_heap_default() > 0);
    unsetenv("DEVTENSOR_CPU_CACHE");
}
