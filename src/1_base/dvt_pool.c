/* The pool behind dvti_parallel_for.

   One job at a time, cut into ranges. Whoever takes part draws ranges until none is left, and the caller waits only for ranges
   that others have drawn: it can finish alone, so a worker that sleeps, or that the system does not run, delays nobody. A thread
   that finds the pool busy does its work alone.

   Workers look for the next job before they sleep, and callers for the end of one, for as long as waking them would take (50 to 200 us in a
   virtual machine). By time and not by a count of `pause`, which takes 10 times longer on some processors than on others. And not at
   all where a container pays for processor time, or where there are more threads than processors.

   A range that a worker has drawn, and cannot run because another process has its processor, would cost the caller a slice of the
   scheduler, several milliseconds. The caller cannot know that beforehand, but it can keep the loss in proportion: after
   waiting in vain for t it works alone for 8 t. So the pool takes at most an eighth more time than one thread.

   A forked child has none of the threads, and starts its own. A handler tells it, since asking for the process at every job would double
   what a job costs. Where the handler does not run (a bare clone), workers that are gone look like workers that never draw. */
#include "1_base/dvt_base.h"

static DVTI_TLS int dvti_serial_depth;

DVTI_FN void dvti_parallel_off(void) {
    dvti_serial_depth = 1;
}

static dvt_status dvti_check_threads(int n) {
    return n < 0 || n > 256
               ? dvti_fail(DVT_ERR_RANGE,
                           "dvt_set_num_threads: got %d; expected 0 (the default) to 256", n)
               : DVT_OK;
}

#if DVTI_THREADS

#define DVTI_RANGE_NS 4000       /* the least work that a range has */
#define DVTI_RANGES 8            /* for each thread: what the last one holds up is small */
#define DVTI_SPIN_SECONDS 200e-6 /* until a sleep */
#define DVTI_LOSS_SECONDS 30e-6  /* waiting that is no loss */
#define DVTI_WAKE_NS 50000       /* the work that a wake-up is worth */
#define DVTI_ALONE_FACTOR 8      /* times what was lost */
#define DVTI_ALONE_SECONDS 1.0   /* at most: a process may have been stopped */
#define DVTI_RETRY_SECONDS 1.0   /* after the system refused to start a thread */

typedef struct dvti_pool {
    /* One cache line: who sees `left` change has the whole job. `left`: ranges that nobody has drawn; the caller has the first
       without drawing. */
    DVTI_LINE_ALIGNED dvti_atomic left;
    dvti_range_fn body;
    void *user;
    int64_t n, step, ranges;
    dvti_word posted; /* jobs so far; what workers sleep on */
    /* Another, which workers write. `finished`: ranges that they have done; what the caller sleeps on. */
    DVTI_LINE_ALIGNED dvti_word finished;
    dvti_atomic caller_sleeps;
    /* What changes rarely. */
    DVTI_LINE_ALIGNED dvti_atomic busy; /* 1: a thread has the pool, and what follows `started` */
    dvti_atomic caller;                 /* the processor of the last job's caller, -1: not known */
    dvti_atomic threads;                /* 0: not decided yet */
    dvti_atomic alive, sleeping;        /* workers */
    dvti_atomic stop;
    dvti_atomic started; /* workers so far: the next one's number */
    bool ready;
    int64_t process;    /* whose threads the workers are */
    double spin;        /* seconds */
    double retry_at;    /* no thread is started before; 0: any time */
    double alone_until; /* 0: not alone */
    double owed;        /* nanoseconds of work done while there were sleepers */
#if !DVTI_FUTEX
    dvti_mutex lock;
    dvti_cond changed;
#endif
} dvti_pool;

static dvti_pool dvti_the_pool;

/* ---- sleeping ---- */
#if DVTI_FUTEX
/* Until the word has changed; may return earlier. */
static void dvti_pool_sleep(dvti_pool *pool, dvti_word *word, dvti_word value) {
    (void)pool;
    syscall(SYS_futex, word, 128 /* FUTEX_WAIT_PRIVATE */, value, NULL, NULL, 0);
}

static void dvti_pool_wake(dvti_pool *pool, dvti_word *word, int threads) {
    (void)pool;
    syscall(SYS_futex, word, 129 /* FUTEX_WAKE_PRIVATE */, threads, NULL, NULL, 0);
}

static void dvti_pool_sleep_ready(dvti_pool *pool) {
    (void)pool;
}
#else
static void dvti_pool_sleep(dvti_pool *pool, dvti_word *word, dvti_word value) {
    dvti_mutex_lock(&pool->lock);
    while (dvti_atomic_load(word) == value)
        dvti_cond_wait(&pool->changed, &pool->lock);
    dvti_mutex_unlock(&pool->lock);
}

static void dvti_pool_wake(dvti_pool *pool, dvti_word *word, int threads) {
    (void)word;
    (void)threads;
    dvti_mutex_lock(&pool->lock); /* who has seen the old value waits by now */
    dvti_mutex_unlock(&pool->lock);
    dvti_cond_broadcast(&pool->changed);
}

static void dvti_pool_sleep_ready(dvti_pool *pool) {
    dvti_mutex fresh_lock = DVTI_MUTEX_INIT;
    dvti_cond fresh_cond = DVTI_COND_INIT;
    memcpy(&pool->lock, &fresh_lock, sizeof fresh_lock);
    memcpy(&pool->changed, &fresh_cond, sizeof fresh_cond);
}
#endif

/* ---- ranges ---- */
/* The range's number from the end, 1 for the last one; 0 when none is left. Once it has one, a thread may read the job: the
   caller does not go on before that range is finished. */
static int64_t dvti_pool_draw(dvti_pool *pool) {
    int64_t left;
    while ((left = dvti_atomic_load(&pool->left)) > 0)
        if (dvti_atomic_swap(&pool->left, left, left - 1))
            return left;
    return 0;
}

/* Draws from the job until nothing is left, beginning with the range that was drawn; returns how many it did. */
static int64_t dvti_pool_do(dvti_pool *pool, int64_t drawn) {
    dvti_range_fn body = pool->body;
    void *user = pool->user;
    int64_t n = pool->n, step = pool->step, ranges = pool->ranges, done = 0;
    for (; drawn; drawn = dvti_pool_draw(pool)) {
        int64_t begin = (ranges - drawn) * step;
        body(user, begin, DVTI_MIN(begin + step, n));
        done++;
    }
    return done;
}

/* ---- workers ---- */
/* Whether there was something to do before the time was over. */
static bool dvti_pool_look(const dvti_pool *pool) {
    double end = 0, now;
    int i;
    if (pool->spin <= 0)
        return false;
    for (;;) {
        for (i = 0; i < 16; i++) {
            if (dvti_atomic_load(&pool->left) > 0 || dvti_atomic_load(&pool->stop))
                return true;
            dvti_pause();
        }
        now = dvti_now();
        if (end <= 0)
            end = now + pool->spin;
        else if (now >= end)
            return false;
    }
}

DVTI_THREAD_MAIN(dvti_pool_worker) {
    dvti_pool *pool = (dvti_pool *)user;
    dvti_affinity_mask home;
    dvti_serial_depth = 1;
    dvti_affinity_begin(dvti_atomic_add(&pool->started, 1) - 1);
    dvti_affinity_leave(&home, (int)dvti_atomic_load(&pool->caller));
    dvti_affinity_return(&home);
    while (!dvti_atomic_load(&pool->stop)) {
        dvti_word posted = dvti_atomic_load(&pool->posted);
        int64_t drawn = dvti_pool_draw(pool);
        if (drawn) {
            dvti_atomic_add(&pool->finished, (dvti_word)dvti_pool_do(pool, drawn));
            if (dvti_atomic_load(&pool->caller_sleeps))
                dvti_pool_wake(pool, &pool->finished, 1);
        } else if (!dvti_pool_look(pool)) {
            /* Whoever posts after this line sees a sleeper; whoever did before has changed the word. */
            dvti_affinity_leave(&home, (int)dvti_atomic_load(&pool->caller));
            dvti_atomic_add(&pool->sleeping, 1);
            dvti_pool_sleep(pool, &pool->posted, posted);
            dvti_atomic_add(&pool->sleeping, -1);
            dvti_affinity_return(&home);
        }
    }
    dvti_atomic_add(&pool->alive, -1);
    return 0;
}

/* ---- taking the pool, and making it what it should be ---- */
/* Without waiting: who finds the pool busy works alone. */
static bool dvti_pool_take(dvti_pool *pool) {
    return !dvti_atomic_load(&pool->busy) && dvti_atomic_swap(&pool->busy, 0, 1);
}

static void dvti_pool_give(dvti_pool *pool) {
    dvti_atomic_store(&pool->busy, 0);
}

/* The workers are another process's. */
static void dvti_pool_forget(dvti_pool *pool) {
    dvti_pool_sleep_ready(pool);
    dvti_atomic_store(&pool->left, 0);
    dvti_atomic_store(&pool->alive, 0);
    dvti_atomic_store(&pool->sleeping, 0);
    dvti_atomic_store(&pool->stop, 0);
    pool->retry_at = pool->alone_until = 0;
}

#if !defined(_WIN32)
static void dvti_pool_forked(void) {
    dvti_pool_forget(&dvti_the_pool);
    dvti_pool_give(&dvti_the_pool);
}
#endif

/* Two threads that ask at the same time get the same answer. */
static int dvti_pool_threads(dvti_pool *pool) {
    int64_t threads = dvti_atomic_load(&pool->threads);
    if (threads)
        return (int)threads;
    threads = dvti_env_int("DEVTENSOR_NUM_THREADS", 1, 256, DVTI_MIN(dvti_cpu_count(), 256));
    return dvti_atomic_swap(&pool->threads, 0, threads) ? (int)threads : dvti_pool_threads(pool);
}

static void dvti_pool_stop(dvti_pool *pool) {
    if (pool->process != dvti_process_id()) { /* the handler did not run: these would never end */
        dvti_pool_forget(pool);
        return;
    }
    dvti_atomic_store(&pool->stop, 1);
    dvti_atomic_add(&pool->posted, 1);
    dvti_pool_wake(pool, &pool->posted, INT_MAX);
    while (dvti_atomic_load(&pool->alive))
        dvti_pause();
    dvti_atomic_store(&pool->stop, 0);
    dvti_atomic_store(&pool->started, 0);
}

static void dvti_pool_start(dvti_pool *pool, int workers) {
    bool started = true;
    dvti_atomic_store(&pool->caller, dvti_affinity_now());
    pool->retry_at = 0;
    pool->process = dvti_process_id();
    while (started && dvti_atomic_load(&pool->alive) < workers) {
        dvti_thread thread;
        dvti_atomic_add(&pool->alive, 1);
        started = dvti_thread_start(&thread, dvti_pool_worker, pool);
        if (!started) {
            dvti_atomic_add(&pool->alive, -1);
            pool->retry_at = dvti_now() + DVTI_RETRY_SECONDS;
        } else {
#if defined(_WIN32)
            CloseHandle(thread);
#else
            pthread_detach(thread);
#endif
        }
    }
}

/* How many threads take part in the next job. */
static int dvti_pool_ready(dvti_pool *pool) {
    int threads = dvti_pool_threads(pool), alive = (int)dvti_atomic_load(&pool->alive);
    if (alive == threads - 1)
        return threads;
    if (!pool->ready) {
        dvti_pool_sleep_ready(pool);
#if !defined(_WIN32)
        pthread_atfork(NULL, NULL, dvti_pool_forked);
#endif
        pool->ready = true;
    }
    if (pool->retry_at > 0 && alive < threads && dvti_now() < pool->retry_at)
        return alive + 1;
    if (alive)
        dvti_pool_stop(pool);
    pool->spin =
        threads <= dvti_cpu_count() && !dvti_cpu_quota("/sys/fs/cgroup", "/proc/self/cgroup")
            ? DVTI_SPIN_SECONDS
            : 0;
    dvti_pool_start(pool, threads - 1);
    dvti_affinity_yield(); /* a thread that began behind this one can leave for another processor */
    return (int)dvti_atomic_load(&pool->alive) + 1;
}

static bool dvti_pool_alone(dvti_pool *pool) {
    if (pool->alone_until > 0 && dvti_now() >= pool->alone_until)
        pool->alone_until = 0;
    return pool->alone_until > 0;
}

/* ---- a job ---- */
/* Workers that look find the job themselves. Waking others costs more than a small job is worth, but many small jobs in
   a row are worth it. */
static void dvti_pool_rouse(dvti_pool *pool, double work) {
    int64_t sleeping = dvti_atomic_load(&pool->sleeping), useful;
    if (!sleeping)
        return;
    pool->owed += work;
    if (pool->owed < DVTI_WAKE_NS)
        return;
    useful = DVTI_MIN(pool->ranges - 1, (int64_t)(pool->owed / DVTI_WAKE_NS));
    pool->owed = 0;
    dvti_pool_wake(pool, &pool->posted, (int)DVTI_MIN(useful, sleeping));
}

/* Until the others have finished `ranges`; returns the seconds that it took. */
static double dvti_pool_await(dvti_pool *pool, dvti_word ranges) {
    double begin, now;
    dvti_word finished;
    int i;
    for (i = 0; i < 16; i++) {
        if (dvti_atomic_load(&pool->finished) == ranges)
            return 0;
        dvti_pause();
    }
    begin = now = dvti_now();
    while (now - begin < pool->spin) {
        for (i = 0; i < 16; i++) {
            if (dvti_atomic_load(&pool->finished) == ranges)
                return dvti_now() - begin;
            dvti_pause();
        }
        now = dvti_now();
    }
    dvti_atomic_store(&pool->caller_sleeps, 1);
    while ((finished = dvti_atomic_load(&pool->finished)) != ranges)
        dvti_pool_sleep(pool, &pool->finished, finished);
    dvti_atomic_store(&pool->caller_sleeps, 0);
    return dvti_now() - begin;
}

/* In ranges of at least DVTI_RANGE_NS, as even as can be, whose ends are multiples of 64 where that hardly matters. */
static void dvti_pool_cut(dvti_pool *pool, int threads, int64_t n, double cost) {
    int64_t least = cost < DVTI_RANGE_NS ? (int64_t)(DVTI_RANGE_NS / cost) + 1 : 1;
    int64_t ranges = DVTI_MIN(DVTI_MAX(n / least, 1), (int64_t)threads * DVTI_RANGES);
    pool->n = n;
    pool->step = (n + ranges - 1) / ranges;
    if (pool->step >= 1024)
        pool->step = (pool->step + 63) / 64 * 64;
    pool->ranges = (n + pool->step - 1) / pool->step;
}

static void dvti_pool_run(dvti_pool *pool, double work) {
    double begin = dvti_now(), share, lost;
    int64_t ranges = pool->ranges, own;
    dvti_atomic_store(&pool->finished, 0);
    dvti_atomic_store(&pool->left, ranges - 1);
    dvti_atomic_add(&pool->posted, 1);
    dvti_pool_rouse(pool, work);
    dvti_atomic_publish(&pool->caller, dvti_affinity_now());
    own = dvti_pool_do(pool, ranges);
    if (own == ranges)
        return;
    share = (dvti_now() - begin) / (double)own;
    lost = dvti_pool_await(pool, (dvti_word)(ranges - own)) - 2 * share - DVTI_LOSS_SECONDS;
    if (lost > 0)
        pool->alone_until = dvti_now() + DVTI_MIN(DVTI_ALONE_FACTOR * lost, DVTI_ALONE_SECONDS);
}

DVTI_FN void dvti_parallel_for(int64_t n, double cost, dvti_range_fn body, void *user) {
    dvti_pool *pool = &dvti_the_pool;
    double work = (double)n * cost;
    int threads;
    if (n <= 0)
        return;
    if (n == 1 || work < DVTI_PARALLEL_NS || dvti_serial_depth ||
        dvti_atomic_load(&pool->threads) == 1 || dvti_openmp_busy() || !dvti_pool_take(pool)) {
        body(user, 0, n);
        return;
    }
    dvti_serial_depth = 1;
    threads = dvti_pool_ready(pool);
    dvti_pool_cut(pool, threads, n, cost);
    if (threads == 1 || pool->ranges == 1 || dvti_pool_alone(pool)) {
        body(user, 0, n);
    } else {
        pool->body = body;
        pool->user = user;
        dvti_pool_run(pool, work);
    }
    dvti_serial_depth = 0;
    dvti_pool_give(pool);
}

DVT_API dvt_status dvt_set_num_threads(int n) {
    dvt_status status = dvti_check_threads(n);
    if (status == DVT_OK)
        dvti_atomic_store(&dvti_the_pool.threads, n); /* the next job makes the pool so */
    return status;
}

DVT_API int dvt_num_threads(void) {
    return dvti_pool_threads(&dvti_the_pool);
}

DVTI_FN int dvti_parallel_width(void) {
    dvti_pool *pool = &dvti_the_pool;
    int n;
    if (dvti_serial_depth || dvti_openmp_busy() || !dvti_pool_take(pool))
        return 1;
    n = dvti_pool_alone(pool) ? 1 : dvti_pool_threads(pool);
    dvti_pool_give(pool);
    return n;
}

#undef DVTI_RANGE_NS
#undef DVTI_RANGES
#undef DVTI_SPIN_SECONDS
#undef DVTI_LOSS_SECONDS
#undef DVTI_WAKE_NS
#undef DVTI_ALONE_FACTOR
#undef DVTI_ALONE_SECONDS
#undef DVTI_RETRY_SECONDS

#else

DVTI_FN void dvti_parallel_for(int64_t n, double cost, dvti_range_fn body, void *user) {
    (void)cost;
    if (n > 0)
        body(user, 0, n);
}

DVT_API dvt_status dvt_set_num_threads(int n) {
    return dvti_check_threads(n);
}

DVT_API int dvt_num_threads(void) {
    return 1;
}

DVTI_FN int dvti_parallel_width(void) {
    return 1;
}

#endif
