/* Tests of several threads that use one device: the last of its memory, or GPUs that other threads
   replace. */
#include "in_threads.h"

#if !defined(DEVTENSOR_NO_THREADS)
#include <sched.h>

/* All threads repeatedly allocate the last memory; together they never exceed the limit. Two
   allocations fit at a time. A thread without success continues until it gets one, because others
   may be suspended while they hold memory. */
#define TURNS 400
#define TURNS_AT_MOST 10000000
static int64_t held_at_most;

static void *want_the_last(void *user) {
    worker *w = (worker *)user;
    dvt_memory_stats now;
    int i;
    for (i = 0; i < TURNS || (w->sum == 0 && i < TURNS_AT_MOST); i++) {
        if (i >= TURNS)
            sched_yield();
        DVT_SCOPE {
            w->sum += dvt_empty(DVT_SHAPE(100000), DVT_U8, dvt_cpu()) != NULL;
            if (dvt_error_code() != DVT_OK && dvt_error_code() != DVT_ERR_HOST_MEMORY)
                w->status = dvt_error_code();
            dvt_clear_error();
            if (dvt_memory_query(dvt_cpu(), &now) != DVT_OK || now.used > held_at_most)
                w->status = DVT_ERR_INTERNAL;
        }
    }
    return NULL;
}

DVT_TEST(threads_share_a_memory_limit) {
    worker workers[THREADS];
    dvt_memory_stats before;
    int i;
    memset(workers, 0, sizeof workers);
    CHECK_INT(dvt_memory_query(dvt_cpu(), &before), DVT_OK);
    held_at_most = before.used + 250000;
    CHECK_INT(dvt_set_memory_limit(held_at_most, dvt_cpu()), DVT_OK);
    in_threads(want_the_last, workers);
    CHECK_INT(dvt_set_memory_limit(0, dvt_cpu()), DVT_OK);
    for (i = 0; i < THREADS; i++) {
        CHECK(workers[i].sum > 0);
        CHECK_INT(workers[i].status, DVT_OK);
    }
}

/* ---- virtual GPUs are replaced while others use them ---- */
static void *replace_gpus(void *user) {
    *(dvt_status *)user = dvt_set_virtual_gpus(1, 0);
    dvt_clear_error();
    return NULL;
}

/* The first allocation waits for another thread that tries to replace the GPUs. */
typedef struct interruption {
    int armed;
    dvt_status status;
} interruption;

static void *interrupted_alloc(void *user, size_t bytes) {
    interruption *i = (interruption *)user;
    pthread_t thread;
    if (i->armed) {
        i->armed = 0;
        if (CHECK(pthread_create(&thread, NULL, replace_gpus, &i->status) == 0))
            pthread_join(thread, NULL);
    }
    return malloc(bytes);
}

static void *plain_resize(void *user, void *block, size_t bytes) {
    (void)user;
    return realloc(block, bytes);
}

static void plain_release(void *user, void *block) {
    (void)user;
    free(block);
}

/* The interruption occurs between looking up the device and allocating on it. */
DVT_TEST(threads_replace_gpus_in_an_allocation) {
    interruption i = {0, DVT_OK};
    dvt_allocator allocator = {interrupted_alloc, plain_resize, plain_release, NULL};
    allocator.user = &i;
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    DVT_SCOPE { /* opens the device */
        CHECK(dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_gpu(0)) != NULL);
    }
    CHECK_INT(dvt_wait_all(), DVT_OK); /* the queue's thread calls the allocator too */
    dvt_set_allocator(&allocator);
    i.armed = 1;
    DVT_SCOPE {
        CHECK_VALUES(dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_gpu(0)), 0, 1, 1);
    }
    CHECK_INT(i.armed, 0);
    CHECK_INT(i.status, DVT_ERR_VALUE);
    CHECK_INT(dvt_wait_all(), DVT_OK);
    dvt_set_allocator(NULL);
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

/* While one thread allocates a block, another thread requests memory that fits only without that
   block. */
#define MUCH (4 << 20)

static void *want_as_much(void *user) {
    DVT_SCOPE {
        *(dvt_status *)user =
            dvt_empty(DVT_SHAPE(MUCH), DVT_U8, dvt_cpu()) ? DVT_OK : dvt_error_code();
    }
    dvt_clear_error();
    return NULL;
}

static void *interrupted_large_alloc(void *user, size_t bytes) {
    interruption *i = (interruption *)user;
    pthread_t thread;
    if (i->armed && bytes >= MUCH) {
        i->armed = 0;
        if (CHECK(pthread_create(&thread, NULL, want_as_much, &i->status) == 0))
            pthread_join(thread, NULL);
    }
    return malloc(bytes);
}

DVT_TEST(threads_compete_for_memory) {
    interruption i = {1, DVT_OK};
    dvt_allocator allocator = {interrupted_large_alloc, plain_resize, plain_release, NULL};
    dvt_memory_stats before;
    allocator.user = &i;
    dvt_trim_memory(dvt_cpu());
    CHECK_INT(dvt_memory_query(dvt_cpu(), &before), DVT_OK);
    CHECK_INT(dvt_set_memory_limit(before.used + MUCH + MUCH / 2, dvt_cpu()), DVT_OK);
    dvt_set_allocator(&allocator);
    DVT_SCOPE {
        CHECK(dvt_empty(DVT_SHAPE(MUCH), DVT_U8, dvt_cpu()) != NULL);
    }
    dvt_trim_memory(dvt_cpu());
    dvt_set_allocator(NULL);
    CHECK_INT(dvt_set_memory_limit(0, dvt_cpu()), DVT_OK);
    CHECK_INT(i.armed, 0);
    CHECK_INT(i.status, DVT_ERR_HOST_MEMORY);
}

/* Replaces the GPUs repeatedly in one thread, which may be refused. The others use them, and always
   find a working GPU. */
static void *use_replaced(void *user) {
    worker *w = (worker *)user;
    dvt_device_info info;
    int i;
    dvt_status status = DVT_OK;
    for (i = 0; i < 60 && w->status == DVT_OK; i++)
        DVT_SCOPE {
            if (w->number == 0) {
                replace_gpus(&status);
                continue;
            }
            if (w->number == 1)
                w->status = dvt_wait_all();
            else if (w->number == 2)
                w->status = dvt_device_query(dvt_gpu(0), &info);
            else
                w->sum += dvt_item(dvt_sum(dvt_ones(DVT_SHAPE(7), DVT_F32, dvt_gpu(0)), DVT_ALL));
        }
    if (w->status == DVT_OK)
        w->status = dvt_error_code();
    return NULL;
}

DVT_TEST(threads_replace_gpus_in_use) {
    worker workers[THREADS];
    int i;
    memset(workers, 0, sizeof workers);
    CHECK_INT(dvt_set_virtual_gpus(1, 0), DVT_OK);
    in_threads(use_replaced, workers);
    for (i = 0; i < THREADS; i++) {
        CHECK_INT(workers[i].status, DVT_OK);
        CHECK_CLOSE(workers[i].sum, i < 3 ? 0 : 60 * 7, 0);
    }
    CHECK_INT(dvt_set_virtual_gpus(0, 0), DVT_OK);
}

#else

DVT_TEST(threads_of_devices_left_out) {
    SKIP("DEVTENSOR_NO_THREADS");
}

#endif
