/* Tests of the thread pool behind dvti_parallel_for, on a private copy of the library. They run for
   both ways in which threads can sleep. The including file defines POOL_TEST(name), and DVTI_FUTEX
   if it differs from the default. The file is long because each private copy includes all
   tests of the pool. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1 /* for cpu_set_t */
#endif
#include "private_copy.h"
#if !defined(DEVTENSOR_NO_THREADS)
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#if !defined(_WIN32)
#include <sys/wait.h>
#endif

/* Replaces pthread_create of the library, and can refuse. */
#if !defined(_WIN32)
static int refuse_threads, threads_refused;

static int counted_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *user) {
    if (refuse_threads) {
        threads_refused++;
        return EAGAIN;
    }
    return pthread_create(thread, attributes, run, user);
}

#define pthread_create counted_create
#endif
#include "dvt_test.h"
#undef pthread_create

#define LARGE DVTI_PARALLEL_NS /* cost of one item that makes another thread worthwhile */
#define MOST 5000

static dvti_pool *const pool = &dvti_the_pool;

/* ---- jobs ---- */
typedef struct job {
    int64_t visits[MOST];
    int64_t ranges, ranges_of_caller;
    pthread_t caller;
} job;

static void visit(void *user, int64_t begin, int64_t end) {
    job *j = (job *)user;
    int64_t i;
    __atomic_add_fetch(&j->ranges, 1, __ATOMIC_SEQ_CST);
    if (pthread_equal(pthread_self(), j->caller))
        __atomic_add_fetch(&j->ranges_of_caller, 1, __ATOMIC_SEQ_CST);
    for (i = begin; i < end; i++)
        __atomic_add_fetch(&j->visits[i], 1, __ATOMIC_SEQ_CST);
}

static job *new_job(void) {
    job *j = (job *)calloc(1, sizeof *j);
    if (!j)
        abort();
    j->caller = pthread_self();
    return j;
}

/* Runs a job, checks that each item is visited once, and returns the number of ranges. */
static int64_t run_job(int64_t n, double cost) {
    job *j = new_job();
    int64_t i, ranges, wrong = 0;
    dvti_parallel_for(n, cost, visit, j);
    for (i = 0; i < MOST; i++)
        wrong += j->visits[i] != (i < n);
    CHECK_INT(wrong, 0);
    ranges = j->ranges;
    free(j);
    return ranges;
}

/* A job that ends only when several threads have joined it, or after 20 seconds. */
typedef struct meeting {
    int64_t here, wanted;
} meeting;

static void meet(void *user, int64_t begin, int64_t end) {
    meeting *m = (meeting *)user;
    double until = dvt_seconds() + 20;
    (void)begin;
    (void)end;
    __atomic_add_fetch(&m->here, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&m->here, __ATOMIC_SEQ_CST) < m->wanted && dvt_seconds() < until)
        sched_yield();
}

/* Tells whether that many threads meet in one job. */
static int threads_meet(int threads) {
    meeting m;
    memset(&m, 0, sizeof m);
    m.wanted = threads;
    dvti_parallel_for(threads, 1e6, meet, &m);
    return m.here == threads;
}

POOL_TEST(covers_each_item_once) {
    static const int64_t sizes[] = {1, 2, 3, 7, 64, 100, 1023, 1024, 1025, 4999, MOST};
    static const double costs[] = {0, 0.5, 3, 100, 5000, LARGE, 1e9};
    int width, s, c;
    for (width = 1; width <= 5; width++) {
        CHECK_INT(dvt_set_num_threads(width), DVT_OK);
        for (s = 0; s < DVTI_LENGTH(sizes); s++)
            for (c = 0; c < DVTI_LENGTH(costs); c++) {
                int64_t ranges = run_job(sizes[s], costs[c]);
                if (width == 1 || (double)sizes[s] * costs[c] < DVTI_PARALLEL_NS)
                    CHECK_INT(ranges, 1);
                CHECK(ranges <= 8 * width);
            }
    }
    CHECK_INT(run_job(0, LARGE), 0);
    CHECK_INT(run_job(-1, LARGE), 0);
    dvt_set_num_threads(0);
}

/* ---- parts ---- */
typedef struct parts_job {
    int64_t visits[MOST], inside[5], wrong;
    int parts;
} parts_job;

/* Checks that no two threads have the same part at a time. */
static void visit_part(void *user, int64_t begin, int64_t end, int part) {
    parts_job *j = (parts_job *)user;
    if (part < 0 || part >= j->parts) {
        __atomic_add_fetch(&j->wrong, 1, __ATOMIC_SEQ_CST);
        return;
    }
    if (__atomic_add_fetch(&j->inside[part], 1, __ATOMIC_SEQ_CST) != 1)
        __atomic_add_fetch(&j->wrong, 1, __ATOMIC_SEQ_CST);
    for (; begin < end; begin++)
        __atomic_add_fetch(&j->visits[begin], 1, __ATOMIC_SEQ_CST);
    sched_yield();
    __atomic_add_fetch(&j->inside[part], -1, __ATOMIC_SEQ_CST);
}

POOL_TEST(parts_do_not_overlap) {
    static const int64_t sizes[] = {0, 1, 2, 5, 9, 64, 4999};
    int width, parts, s;
    for (width = 1; width <= 5; width++) {
        dvt_set_num_threads(width);
        for (parts = 1; parts <= 5; parts++)
            for (s = 0; s < DVTI_LENGTH(sizes); s++) {
                parts_job *j = (parts_job *)calloc(1, sizeof *j);
                int64_t i;
                if (!j)
                    abort();
                j->parts = parts;
                pool->alone_until = 0;
                dvti_parallel_parts(sizes[s], LARGE, parts, visit_part, j);
                for (i = 0; i < MOST; i++)
                    j->wrong += j->visits[i] != (i < sizes[s]);
                CHECK_INT(j->wrong, 0);
                free(j);
            }
    }
    dvt_set_num_threads(0);
}

POOL_TEST(threads_join_jobs) {
    int width;
    for (width = 2; width <= 4; width++) {
        dvt_set_num_threads(width);
        pool->alone_until = 0;
        CHECK(threads_meet(width));
        CHECK_INT(dvti_atomic_load(&pool->alive), width - 1);
        /* On a busy machine the pool may have taken the meeting for a delay. */
        pool->alone_until = 0;
        CHECK_INT(dvti_parallel_width(), width);
    }
    dvt_set_num_threads(2);
    CHECK(run_job(100, LARGE) >= 1);
    CHECK_INT(dvti_atomic_load(&pool->alive), 1); /* the others have ended */
    dvt_set_num_threads(0);
}

/* ---- sleeping ---- */
static void until_asleep(void) {
    double until = dvt_seconds() + 20;
    while (dvti_atomic_load(&pool->sleeping) < dvti_atomic_load(&pool->alive) &&
           dvt_seconds() < until)
        sched_yield();
    CHECK_INT(dvti_atomic_load(&pool->sleeping), dvti_atomic_load(&pool->alive));
}

POOL_TEST(sleepers_wake) {
    int i;
    dvt_set_num_threads(3);
    for (i = 0; i < 20; i++) {
        pool->alone_until = 0;
        CHECK(threads_meet(3));
        until_asleep();
    }
    dvt_set_num_threads(0);
}

/* Tells whether a job below the wake-up threshold ended without waking a worker, and the sum of
   three woke one. A worker that was about to sleep may look again by itself; then the result is
   false. */
static int small_jobs_wake(void) {
    job *j = new_job();
    int i, good;
    pool->alone_until = 0;
    CHECK(threads_meet(2));
    until_asleep();
    pool->alone_until = pool->owed = 0;
    dvti_parallel_for(2, LARGE, visit, j);
    good = j->ranges == 2 && j->ranges_of_caller == 2 && pool->owed >= 2.0 * LARGE;
    for (i = 0; i < 2; i++)
        dvti_parallel_for(2, LARGE, visit, j);
    good &= pool->owed <= 0;
    free(j);
    return good;
}

POOL_TEST(small_jobs_wake_eventually) {
    int tries = 0;
    dvt_set_num_threads(2);
    while (!small_jobs_wake() && tries < 50)
        tries++;
    CHECK(tries < 50);
    dvt_set_num_threads(0);
}

/* Small jobs do not wake sleeping workers until many have arrived in a short time. */
POOL_TEST(small_jobs_accumulate) {
    const double most = 50000; /* same as DVTI_WAKE_NS */
    job *j = new_job();
    int i;
    dvt_set_num_threads(2);
    pool->alone_until = 0;
    CHECK(threads_meet(2));
    until_asleep();
    pool->small = pool->owed = 0;
    dvti_parallel_for(4, DVTI_HOT_NS / 4, visit, j);
    CHECK_INT(j->ranges, 1);
    CHECK(pool->small <= 0 && pool->owed <= 0);
    dvti_parallel_fine(4, DVTI_HOT_NS / 4, visit, j);
    CHECK_INT(j->ranges, 2);
    CHECK_INT(j->ranges_of_caller, 2);
    CHECK(pool->small >= DVTI_HOT_NS && pool->owed <= 0);
    pool->small = most - DVTI_HOT_NS;
    pool->small_since = 1e-9; /* long ago */
    dvti_parallel_fine(4, DVTI_HOT_NS / 4, visit, j);
    CHECK_INT(j->ranges, 3);
    CHECK(pool->small <= 0 && pool->owed <= 0);
    CHECK_INT(dvti_atomic_load(&pool->sleeping), 1);
    pool->small = most - DVTI_HOT_NS;
    pool->small_since = dvt_seconds() + 100; /* recent, even on a slow machine */
    pool->alone_until = 0;
    dvti_parallel_fine(4, DVTI_HOT_NS / 4, visit, j);
    CHECK_INT(j->ranges, 5);
    CHECK(pool->small <= 0 && pool->owed <= 0); /* reset, because a worker was woken */
    for (i = 0; i < 4; i++)
        CHECK_INT(j->visits[i], 4);
    free(j);
    dvt_set_num_threads(0);
}

POOL_TEST(many_jobs) {
    int64_t i, sum = 0;
    job *j = new_job();
    dvt_set_num_threads(3);
    for (i = 0; i < 20000; i++)
        dvti_parallel_for(3, LARGE, visit, j);
    for (i = 0; i < 3; i++)
        sum += j->visits[i];
    CHECK_INT(sum, 60000);
    free(j);
    dvt_set_num_threads(0);
}

/* ---- workers delayed by another process ---- */
typedef struct delay {
    pthread_t caller;
    int64_t others;
} delay;

/* Waits for a worker in the caller's first range. The worker's range then takes 100 ms, and the
   caller's other ranges take no time. */
static void delayed(void *user, int64_t begin, int64_t end) {
    delay *d = (delay *)user;
    double until = dvt_seconds() + 20;
    (void)end;
    if (!pthread_equal(pthread_self(), d->caller)) {
        __atomic_add_fetch(&d->others, 1, __ATOMIC_SEQ_CST);
        usleep(100000);
    } else if (begin == 0)
        while (!__atomic_load_n(&d->others, __ATOMIC_SEQ_CST) && dvt_seconds() < until)
            sched_yield();
}

POOL_TEST(delays_are_bounded) {
    delay d;
    job *j;
    int tries = 0;
    dvt_set_num_threads(2);
    pool->alone_until = 0;
    do { /* the caller itself may have been delayed */
        d.caller = pthread_self();
        d.others = 0;
        dvti_parallel_for(16, 1e6, delayed, &d);
    } while (pool->alone_until <= 0 && tries++ < 20);
    CHECK(pool->alone_until > 0);
    CHECK(pool->alone_until <= dvt_seconds() + 1);
    pool->alone_until = dvt_seconds() + 1000;
    CHECK_INT(dvti_parallel_width(), 1);
    j = new_job();
    dvti_parallel_for(16, 1e6, visit, j);
    CHECK_INT(j->ranges, 1);
    CHECK_INT(j->ranges_of_caller, 1);
    free(j);
    pool->alone_until = 1e-9; /* long ago */
    CHECK(threads_meet(2));
    dvt_set_num_threads(0);
}

/* ---- calls that must not use the pool ---- */
typedef struct nested {
    int64_t inner, wrong;
} nested;

static void inner_body(void *user, int64_t begin, int64_t end) {
    nested *n = (nested *)user;
    if (begin != 0 || end != 50)
        __atomic_add_fetch(&n->wrong, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&n->inner, 1, __ATOMIC_SEQ_CST);
}

static void outer_body(void *user, int64_t begin, int64_t end) {
    nested *n = (nested *)user;
    if (dvti_parallel_width() != 1)
        __atomic_add_fetch(&n->wrong, 1, __ATOMIC_SEQ_CST);
    for (; begin < end; begin++)
        dvti_parallel_for(50, 1e6, inner_body, user);
}

POOL_TEST(nested_calls_are_serial) {
    nested n = {0, 0};
    dvt_set_num_threads(4);
    dvti_parallel_for(40, 1e6, outer_body, &n);
    CHECK_INT(n.inner, 40);
    CHECK_INT(n.wrong, 0);
    dvt_set_num_threads(0);
}

static void *call_from_thread(void *user) {
    int i, off = *(int *)user;
    if (off)
        dvti_parallel_off();
    for (i = 0; i < 300; i++) {
        int64_t ranges = run_job(1 + i, 5000);
        CHECK(!off || ranges == 1);
    }
    return NULL;
}

POOL_TEST(several_callers) {
    pthread_t threads[4];
    int started[4], off[4], i;
    dvt_set_num_threads(3);
    for (i = 0; i < 4; i++) {
        off[i] = i == 3;
        started[i] = pthread_create(&threads[i], NULL, call_from_thread, &off[i]) == 0;
    }
    for (i = 1; i <= 40; i++) {
        dvt_set_num_threads(1 + i % 4);
        CHECK(dvt_num_threads() >= 1);
        run_job(i, LARGE);
    }
    for (i = 0; i < 4; i++)
        if (CHECK(started[i]))
            pthread_join(threads[i], NULL);
    dvt_set_num_threads(0);
}

#if !defined(_WIN32)
POOL_TEST(without_new_threads) {
    pool->alone_until = pool->retry_at = 0; /* of tests that ran before */
    dvt_set_num_threads(1);
    run_job(10, LARGE);
    dvti_pool_stop(pool); /* the pool has no workers now */
    dvt_set_num_threads(4);
    refuse_threads = 1;
    threads_refused = 0;
    CHECK_INT(run_job(100, LARGE), 1);
    CHECK_INT(run_job(100, LARGE), 1);
    CHECK_INT(threads_refused, 1); /* the pool does not try again at once */
    CHECK_INT(dvti_atomic_load(&pool->alive), 0);
    refuse_threads = 0;
    pool->retry_at = 1e-9;
    pool->alone_until = 0;
    CHECK(threads_meet(4));
    dvt_set_num_threads(0);
}

/* ---- processes ---- */
#if DVT_TEST_TSAN
#define NEEDS_FORK SKIP("the thread sanitizer cannot follow threads of a forked child")
#else
#define NEEDS_FORK (void)0
#endif

/* Returns the exit status of a child process that runs the function. */
static int in_child(int (*run)(void)) {
    pid_t process;
    int status = -1;
    fflush(stdout);
    process = fork();
    if (process == 0)
        _exit(run());
    if (!CHECK(process > 0) || waitpid(process, &status, 0) != process)
        return -1;
    CHECK(WIFEXITED(status));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int child_meets(void) {
    pool->alone_until = 0;
    return threads_meet(3) ? 7 : 1;
}

typedef struct long_body {
    int64_t running, release;
} long_body;

static void hold(void *user, int64_t begin, int64_t end) {
    long_body *b = (long_body *)user;
    (void)begin;
    (void)end;
    __atomic_add_fetch(&b->running, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&b->release, __ATOMIC_SEQ_CST))
        sched_yield();
}

static void *hold_the_pool(void *user) {
    dvti_parallel_for(2, 1e6, hold, user);
    return NULL;
}

POOL_TEST(forked_children) {
    long_body b = {0, 0};
    pthread_t thread;
    NEEDS_FORK;
    dvt_set_num_threads(3);
    pool->alone_until = 0;
    CHECK(threads_meet(3));
    CHECK_INT(in_child(child_meets), 7); /* forked while workers spin or sleep */
    until_asleep();
    CHECK_INT(in_child(child_meets), 7);
    if (CHECK(pthread_create(&thread, NULL, hold_the_pool, &b) == 0)) {
        while (!__atomic_load_n(&b.running, __ATOMIC_SEQ_CST))
            sched_yield();
        CHECK_INT(run_job(100, LARGE), 1);   /* another thread uses the pool */
        CHECK_INT(in_child(child_meets), 7); /* the child's pool has no workers */
        __atomic_store_n(&b.release, 1, __ATOMIC_SEQ_CST);
        pthread_join(thread, NULL);
    }
    pool->alone_until = 0;
    CHECK(threads_meet(3));
    dvt_set_num_threads(0);
}

static int child_exits(void) {
    run_job(100, LARGE);
    exit(9); /* workers are spinning */
}

static int child_exits_asleep(void) {
    run_job(100, LARGE);
    until_asleep();
    exit(9);
}

static int child_exits_busy(void) {
    static long_body b;
    pthread_t thread;
    if (pthread_create(&thread, NULL, hold_the_pool, &b) == 0)
        while (!__atomic_load_n(&b.running, __ATOMIC_SEQ_CST))
            sched_yield();
    exit(9);
}

POOL_TEST(exit_is_silent) {
    NEEDS_FORK;
    dvt_set_num_threads(3);
    CHECK_INT(in_child(child_exits), 9);
    CHECK_INT(in_child(child_exits_asleep), 9);
    CHECK_INT(in_child(child_exits_busy), 9);
    dvt_set_num_threads(0);
}
#endif
#endif
