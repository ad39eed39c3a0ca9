/* Makes every allocation of a scenario fail: each one once, and each one with all that follow. A
   scenario is

     DVT_FAULTS(name) { FAULTS_ADD(dvt_add(x, y)); ... }

   in any test file; it becomes the test faults_name. It adds what it computes, so that a successful
   run can be compared with the first one. Every run has its own thread, so that per-thread caches
   are allocated again each time.

   A run must end without an error and with the same results, or with HOST_MEMORY or DEVICE_MEMORY.
   Afterwards nothing may be leaked, and the scenario must succeed again with the same results. */
#ifndef DVT_FAULTS_H
#define DVT_FAULTS_H
#include "dvt_test.h"
#if !defined(DEVTENSOR_NO_THREADS)
#include <pthread.h>
#endif

/* Results of a run: a hash of all results, whether a call failed, and its error. */
typedef struct dvt_fault_run {
    uint64_t hash;
    int failed;
    dvt_status code;
    char error[300];
} dvt_fault_run;

typedef void (*dvt_fault_scenario)(dvt_fault_run *run);

/* The allocator's counters, for all threads. */
typedef struct dvt_fault_state {
    long long seen, alive;
    long long fail_at; /* number of the allocation that fails; 0: none */
    int for_ever;
    int paused;
} dvt_fault_state;

static dvt_fault_state dvt_faults;

static int dvt_fault_now(void) {
    long long number;
    if (__atomic_load_n(&dvt_faults.paused, __ATOMIC_SEQ_CST))
        return 0;
    number = __atomic_add_fetch(&dvt_faults.seen, 1, __ATOMIC_SEQ_CST);
    return dvt_faults.fail_at &&
           (number == dvt_faults.fail_at || (dvt_faults.for_ever && number > dvt_faults.fail_at));
}

static void *dvt_fault_alloc(void *user, size_t bytes) {
    void *block;
    (void)user;
    if (dvt_fault_now())
        return NULL;
    block = malloc(bytes);
    if (block) {
        __atomic_add_fetch(&dvt_faults.alive, 1, __ATOMIC_SEQ_CST);
        memset(block, 0xa5, bytes < 256 ? bytes : 256); /* exposes code that relies on zeros */
    }
    return block;
}

static void *dvt_fault_resize(void *user, void *block, size_t bytes) {
    (void)user;
    return dvt_fault_now() ? NULL : realloc(block, bytes);
}

static void dvt_fault_release(void *user, void *block) {
    (void)user;
    __atomic_add_fetch(&dvt_faults.alive, -1, __ATOMIC_SEQ_CST);
    free(block);
}

/* ---- interface for scenarios ---- */
__attribute__((unused)) static void dvt_fault_bytes(dvt_fault_run *run, const void *bytes,
                                                    size_t n) {
    size_t i;
    for (i = 0; i < n; i++)
        run->hash = (run->hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
}

/* Adds the elements of x; NULL is a failure. Returns x. */
__attribute__((unused)) static dvt_array *dvt_fault_add(dvt_fault_run *run, dvt_array *x) {
    size_t bytes = (size_t)dvt_nbytes(x);
    void *values = malloc(bytes + 1);
    if (!x || !values || dvt_to_host(x, values, (int64_t)bytes) != DVT_OK)
        run->failed = 1;
    else
        dvt_fault_bytes(run, values, bytes);
    free(values);
    return x;
}

/* 1: allocations succeed until the same call with -1. */
__attribute__((unused)) static void dvt_fault_pause(int by) {
    __atomic_add_fetch(&dvt_faults.paused, by, __ATOMIC_SEQ_CST);
}

/* Returns a hash of x's values without failures, to check that a rejected call did not change
   them. */
__attribute__((unused)) static uint64_t dvt_fault_look(dvt_array *x) {
    dvt_fault_run run = {0, 0, DVT_OK, ""};
    dvt_fault_pause(1);
    dvt_fault_add(&run, x);
    dvt_fault_pause(-1);
    return run.hash;
}

#define FAULTS_ADD(x) dvt_fault_add(run, x)
#define FAULTS_TRUE(condition)                                                                     \
    do {                                                                                           \
        if (!(condition))                                                                          \
            run->failed = 1;                                                                       \
    } while (0)
#define FAULTS_OK(call) FAULTS_TRUE((call) == DVT_OK)
/* A call that writes into x: it succeeds, or x is unchanged. */
#define FAULTS_INTO(x, call)                                                                       \
    do {                                                                                           \
        dvt_array *into_ = (x);                                                                    \
        uint64_t before_ = into_ ? dvt_fault_look(into_) : 0;                                      \
        if (!into_)                                                                                \
            run->failed = 1;                                                                       \
        else if (!(call)) {                                                                        \
            run->failed = 1;                                                                       \
            dvt_test_check(dvt_fault_look(into_) == before_, __FILE__, __LINE__,                   \
                           "%s failed and changed its argument", #call);                           \
        } else                                                                                     \
            FAULTS_ADD(into_);                                                                     \
    } while (0)

/* ---- the sweep ---- */
typedef struct dvt_fault_thread {
    dvt_fault_scenario scenario;
    dvt_fault_run run;
} dvt_fault_thread;

static void *dvt_fault_body(void *user) {
    dvt_fault_thread *thread = (dvt_fault_thread *)user;
    dvt_clear_error();
    DVT_SCOPE {
        thread->scenario(&thread->run);
    }
    thread->run.code = dvt_error_code();
    snprintf(thread->run.error, sizeof thread->run.error, "%s", dvt_error());
    dvt_clear_error();
    dvt_discard_all();
    return NULL;
}

static dvt_fault_run dvt_fault_once(dvt_fault_scenario scenario, long long fail_at, int for_ever) {
    dvt_allocator allocator = {dvt_fault_alloc, dvt_fault_resize, dvt_fault_release, NULL};
    dvt_fault_thread thread;
    dvt_set_allocator(&allocator); /* empties the caches: every block is requested */
    memset(&thread, 0, sizeof thread);
    thread.scenario = scenario;
    thread.run.hash = 0xcbf29ce484222325u;
    dvt_seed(1);
    dvt_faults.seen = 0;
    dvt_faults.for_ever = for_ever;
    dvt_faults.fail_at = fail_at;
#if !defined(DEVTENSOR_NO_THREADS)
    {
        pthread_t handle;
        if (pthread_create(&handle, NULL, dvt_fault_body, &thread) == 0)
            pthread_join(handle, NULL);
        else
            dvt_fault_body(&thread);
    }
#else
    dvt_fault_body(&thread);
#endif
    dvt_faults.fail_at = 0;
    dvt_wait_all(); /* errors that queues still held */
    dvt_clear_error();
    dvt_set_allocator(&allocator); /* cached memory is not a leak */
    return thread.run;
}

typedef struct dvt_fault_before {
    long long blocks;
    dvt_stats stats;
    uint64_t hash;
} dvt_fault_before;

/* Runs the scenario once with faults and once without. Returns false on an error. */
static int dvt_fault_step(const char *name, dvt_fault_scenario scenario, long long k, int for_ever,
                          const dvt_fault_before *before) {
    const char *mode = for_ever ? "and all later ones" : "alone";
    dvt_fault_run run = dvt_fault_once(scenario, k, for_ever), again;
    dvt_stats stats = dvt_get_stats();
    int good = 1;
    if (run.failed || run.code)
        good &= dvt_test_check(
            run.code == DVT_ERR_HOST_MEMORY || run.code == DVT_ERR_DEVICE_MEMORY, __FILE__,
            __LINE__, "%s: allocation %lld %s: %s, the error is %s (%s)", name, k, mode,
            run.failed ? "failed" : "succeeded", dvt_status_name(run.code), run.error);
    if (run.code && !run.failed)
        good &=
            dvt_test_check(0, __FILE__, __LINE__,
                           "%s: allocation %lld %s: results are complete, but an error is kept: %s",
                           name, k, mode, run.error);
    if (!run.failed)
        good &=
            dvt_test_check(run.hash == before->hash, __FILE__, __LINE__,
                           "%s: allocation %lld %s: other results without an error", name, k, mode);
    good &=
        dvt_test_check(stats.arrays == before->stats.arrays &&
                           stats.blocks_of_memory == before->stats.blocks_of_memory &&
                           dvt_faults.alive == before->blocks,
                       __FILE__, __LINE__,
                       "%s: allocation %lld %s: %lld arrays, %lld buffers and %lld blocks are left",
                       name, k, mode, (long long)(stats.arrays - before->stats.arrays),
                       (long long)(stats.blocks_of_memory - before->stats.blocks_of_memory),
                       dvt_faults.alive - before->blocks);
    again = dvt_fault_once(scenario, 0, 0);
    good &= dvt_test_check(!again.failed && !again.code && again.hash == before->hash, __FILE__,
                           __LINE__, "%s: after allocation %lld %s: the next run %s %s", name, k,
                           mode, again.failed ? "fails:" : "has other results", again.error);
    return good;
}

/* Tries at most `most` allocations of each kind, evenly spread; 0: all. */
__attribute__((unused)) static void dvt_fault_sweep(const char *name, dvt_fault_scenario scenario,
                                                    long long most) {
    dvt_fault_before before;
    dvt_fault_run run;
    long long n, k, step;
    int mode, bad = 0;
    dvt_discard_all();
    dvt_fault_once(scenario, 0, 0);
    run = dvt_fault_once(scenario, 0, 0);
    n = dvt_faults.seen;
    before.blocks = dvt_faults.alive;
    before.stats = dvt_get_stats();
    before.hash = run.hash;
    if (dvt_test_check(!run.failed && !run.code, __FILE__, __LINE__, "%s fails without faults: %s",
                       name, run.error)) {
        step = most && n > most ? (n + most - 1) / most : 1;
        dvt_test_check(n > 0, __FILE__, __LINE__, "%s allocates nothing", name);
        for (mode = 0; mode < 2; mode++)
            for (k = 1; k <= n && bad < 5; k += step)
                bad += !dvt_fault_step(name, scenario, k, mode, &before);
    }
    dvt_set_allocator(NULL);
}

#define DVT_FAULTS_MOST(name, most)                                                                \
    static void faults_run_##name(dvt_fault_run *run);                                             \
    DVT_TEST(faults_##name) {                                                                      \
        dvt_fault_sweep(#name, faults_run_##name, most);                                           \
    }                                                                                              \
    static void faults_run_##name(dvt_fault_run *run)
#define DVT_FAULTS(name) DVT_FAULTS_MOST(name, 0)

#endif
