/* The thread pool behind dvti_parallel_for.

   The pool runs one job at a time. A job has a share for each thread, and a share has ranges. A
   thread takes half of its own remaining ranges until none is left, then half of another share's.
   The caller waits only for ranges that others took. It can finish alone, so a sleeping or
   descheduled worker delays nothing. A thread that finds the pool busy runs its job alone.

     share of thread 0:  [r r r r|r r|r|r]   takes 4, 2, 1, 1; then steals from other shares

   Work is divided deterministically: jobs of the same size give a thread the same items, so its
   caches stay warm. A cache-line transfer between processors takes 100 to 200 ns; a small job lasts
   ten times that. So a worker reads one cache line, its own share, before it starts. No other
   thread writes to it meanwhile. The caller posts a share by a store that it does not wait for.

   Workers spin before they sleep; callers spin before they sleep at the end of a job. They spin
   about as long as a wake-up takes: 50 to 200 us in a virtual machine. The limit is a time and not
   a count, because `pause` takes 10 times longer on some processors. Nothing spins under a CPU
   quota, or with more threads than processors.

   Another process may deschedule a worker that took a range. That costs the caller a scheduler time
   slice, several milliseconds. The caller bounds the loss: after a loss of t it runs serially for
   8 t, at most 1 s. For t up to 125 ms this costs at most 12.5 % over one thread.

   A forked child has none of the threads and starts its own. A fork handler resets the pool,
   because reading the process id would double the cost of a job. If the handler does not run (a
   bare clone), missing workers behave like workers that never take a range. */
#include "1_base/dvt_base.h"

#define DVTI_MAX_THREADS 256 /* the maximum of dvt_set_num_threads */

static DVTI_TLS int dvti_serial_depth;

DVTI_FN void dvti_parallel_off(void) {
    dvti_serial_depth = 1;
}

#if DVTI_THREADS

#define DVTI_RANGE_NS 1500       /* minimum work of a range */
#define DVTI_RANGES 8            /* maximum of a share: the last range is short and delays little */
#define DVTI_SPIN_SECONDS 200e-6 /* a thread spins this long before it sleeps */
#define DVTI_CALLER_SECONDS 50e-6 /* the caller's processor is queried at most this often */
#define DVTI_LOSS_SECONDS 30e-6   /* shorter waits count as no loss */
#define DVTI_WAKE_NS 50000        /* less work does not pay for a wake-up */
#define DVTI_ALONE_FACTOR 8       /* time of serial execution / time lost */
#define DVTI_ALONE_SECONDS 1.0    /* its maximum, because a process may have been stopped */
#define DVTI_RETRY_SECONDS 1.0    /* pause after the system refused to start a thread */

/* One cache line. A thread that took ranges may read it, because the caller does not continue
   before those ranges are finished. */
typedef struct dvti_share {
    DVTI_LINE_ALIGNED dvti_futex left; /* ranges not yet taken; -1: the worker ends */
    int shares;
    dvti_range_fn body;
    dvti_part_fn part; /* in place of body, or NULL */
    void *user;
    int64_t end, step; /* end of the last range if it had full length; items per range */
    int64_t n;
} dvti_share;

typedef struct dvti_pool {
    dvti_share share[DVTI_MAX_THREADS]; /* of the caller, then of the workers */
    /* Ranges that workers have finished. The caller sleeps on it. */
    DVTI_LINE_ALIGNED dvti_futex finished;
    dvti_atomic caller_sleeps;
    /* Rarely modified. */
    DVTI_LINE_ALIGNED dvti_atomic threads; /* 0: not decided yet */
    dvti_atomic alive, sleeping;           /* workers */
    dvti_atomic started;                   /* workers started so far */
    double spin;                           /* seconds */
    /* `caller` is read by workers before they sleep; the rest only by the pool's owner. */
    DVTI_LINE_ALIGNED dvti_atomic busy; /* 1: a thread owns the pool and all below `caller` */
    dvti_atomic caller;                 /* processor of the last job's caller; -1: unknown */
    bool ready;
    int64_t process;    /* process id that started the workers */
    double caller_time; /* when `caller` was set */
    double retry_at;    /* earliest time to start a thread; 0: any time */
    double alone_until; /* end of running alone; 0: not alone */
    double owed;        /* nanoseconds of work done while workers slept */
    double small;       /* the same for small jobs while no worker spun, since small_since */
    double small_since;
} dvti_pool;

static dvti_pool dvti_the_pool;

/* ---- ranges ---- */
/* Takes ranges from the share; returns how many. The first is *left ranges before its end. */
static dvti_futex dvti_share_take(dvti_share *share, dvti_futex *left) {
    dvti_futex half;
    while ((*left = dvti_atomic_load(&share->left)) > 0) {
        half = (*left + 1) / 2;
        if (dvti_atomic_swap(&share->left, *left, *left - half))
            return half;
    }
    return 0;
}

static void dvti_share_do(const dvti_share *share, int number, dvti_futex left, dvti_futex ranges) {
    int64_t begin = share->end - left * share->step;
    int64_t end = DVTI_MIN(begin + ranges * share->step, share->n);
    if (share->part)
        share->part(share->user, begin, end, number);
    else
        share->body(share->user, begin, end);
}

/* Runs ranges as thread `number`, which has already done `done` of them, until none is left.
   Returns the total. A worker whose share was emptied by others returns, because the job is near
   its end. */
static dvti_futex dvti_pool_do(dvti_pool *pool, int number, dvti_futex done) {
    dvti_futex left, taken;
    int at = number, visited = 0, shares = 1;
    do {
        dvti_share *share = &pool->share[at];
        while ((taken = dvti_share_take(share, &left)) > 0) {
            dvti_share_do(share, number, left, taken);
            done += taken;
        }
        if (done)
            shares = pool->share[number].shares;
        at = at + 1 < shares ? at + 1 : 0;
    } while (++visited < shares);
    return done;
}

/* ---- workers ---- */
DVTI_THREAD_MAIN(dvti_pool_worker) {
    dvti_pool *pool = (dvti_pool *)user;
    const int number = (int)dvti_atomic_add(&pool->started, 1);
    dvti_share *own = &pool->share[number];
    dvti_affinity_mask home;
    dvti_futex done;
    dvti_serial_depth = 1;
    dvti_affinity_begin(number - 1);
    dvti_affinity_leave(&home, (int)dvti_atomic_load(&pool->caller));
    dvti_affinity_return(&home);
    while (dvti_atomic_load(&own->left) >= 0) {
        done = dvti_pool_do(pool, number, 0);
        if (done) {
            dvti_atomic_add(&pool->finished, done);
            if (dvti_atomic_load(&pool->caller_sleeps))
                dvti_futex_wake(&pool->finished);
        } else if (!dvti_futex_spin(&own->left, 0, pool->spin)) {
            /* A caller that posts a large job after this line sees a sleeper. One that posted
               before has changed the word, so the sleep returns at once. */
            dvti_affinity_leave(&home, (int)dvti_atomic_load(&pool->caller));
            dvti_atomic_add(&pool->sleeping, 1);
            dvti_futex_wait(&own->left, 0);
            dvti_atomic_add(&pool->sleeping, -1);
            dvti_affinity_return(&home);
        }
    }
    dvti_atomic_add(&pool->alive, -1);
    return 0;
}

/* ---- acquiring and configuring the pool ---- */
/* Never waits: a thread that finds the pool busy runs alone. */
static bool dvti_pool_take(dvti_pool *pool) {
    return !dvti_atomic_load(&pool->busy) && dvti_atomic_swap(&pool->busy, 0, 1);
}

static void dvti_pool_give(dvti_pool *pool) {
    dvti_atomic_store(&pool->busy, 0);
}

/* Resets the pool in a process that did not start its workers. */
static void dvti_pool_forget(dvti_pool *pool) {
    int i;
    dvti_futex_reset();
    for (i = 0; i < DVTI_MAX_THREADS; i++)
        dvti_atomic_store(&pool->share[i].left, 0);
    dvti_atomic_store(&pool->finished, 0);
    dvti_atomic_store(&pool->alive, 0);
    dvti_atomic_store(&pool->sleeping, 0);
    dvti_atomic_store(&pool->started, 0);
    pool->retry_at = pool->alone_until = 0;
}

#if !defined(_WIN32)
static void dvti_pool_forked(void) {
    dvti_pool_forget(&dvti_the_pool);
    dvti_pool_give(&dvti_the_pool);
}
#endif

/* Returns the same number to threads that ask concurrently. */
static int dvti_pool_threads(dvti_pool *pool) {
    int64_t threads = dvti_atomic_load(&pool->threads);
    if (threads)
        return (int)threads;
    threads = dvti_env_int("DEVTENSOR_NUM_THREADS", 1, DVTI_MAX_THREADS,
                           DVTI_MIN(dvti_cpu_count(), DVTI_MAX_THREADS));
    return dvti_atomic_swap(&pool->threads, 0, threads) ? (int)threads : dvti_pool_threads(pool);
}

static void dvti_pool_stop(dvti_pool *pool) {
    const int workers = (int)dvti_atomic_load(&pool->alive);
    int i;
    if (pool->process != dvti_process_id()) { /* no fork handler ran: never ends */
        dvti_pool_forget(pool);
        return;
    }
    for (i = 1; i <= workers; i++) {
        dvti_atomic_store(&pool->share[i].left, -1);
        dvti_futex_wake(&pool->share[i].left);
    }
    /* On one processor with real-time priority, workers run only when this thread yields. */
    while (dvti_atomic_load(&pool->alive))
        dvti_affinity_yield();
    for (i = 1; i <= workers; i++)
        dvti_atomic_store(&pool->share[i].left, 0);
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
            dvti_thread_detach(thread);
        }
    }
}

/* Starts or stops workers. Returns how many threads take part in the next job. */
static int dvti_pool_ready(dvti_pool *pool) {
    int threads = dvti_pool_threads(pool), alive = (int)dvti_atomic_load(&pool->alive);
    if (alive == threads - 1)
        return threads;
    if (!pool->ready) {
#if !defined(_WIN32)
        dvti_library_stay();
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
    dvti_affinity_yield(); /* lets a thread that started on this processor move to another */
    return (int)dvti_atomic_load(&pool->alive) + 1;
}

static bool dvti_pool_alone(dvti_pool *pool) {
    if (pool->alone_until > 0 && dvti_now() >= pool->alone_until)
        pool->alone_until = 0;
    return pool->alone_until > 0;
}

/* ---- a job ---- */
/* Returns whether a small job is worth sharing. It is when workers spin, or when small jobs come so
   often that waking or starting workers pays off. */
static bool dvti_pool_is_hot(dvti_pool *pool, double work) {
    bool often;
    if (dvti_atomic_load(&pool->sleeping) < dvti_atomic_load(&pool->alive))
        return true;
    if (pool->small <= 0)
        pool->small_since = dvti_now();
    pool->small += work;
    if (pool->small < DVTI_WAKE_NS)
        return false;
    often = dvti_now() - pool->small_since < DVTI_SPIN_SECONDS;
    if (often)
        pool->owed += pool->small;
    pool->small = 0;
    return often;
}

/* Wakes sleeping workers. Spinning ones find the job themselves. A wake-up costs more than a small
   job is worth, but a sequence of small jobs pays for it. */
static void dvti_pool_wake(dvti_pool *pool, double work, int shares) {
    int64_t useful;
    int i;
    if (!dvti_atomic_load(&pool->sleeping))
        return;
    pool->owed += work;
    if (pool->owed < DVTI_WAKE_NS)
        return;
    useful = (int64_t)(pool->owed / DVTI_WAKE_NS);
    pool->owed = 0;
    for (i = 1; i < shares && useful > 0; i++)
        useful -= dvti_futex_wake(&pool->share[i].left);
}

/* Waits until the workers have finished `ranges` of a job that began at `began`. Returns the
   seconds lost; the average time of one range does not count as a loss. */
static double dvti_pool_wait(dvti_pool *pool, dvti_futex ranges, double began, dvti_futex own) {
    double begin, now;
    dvti_futex finished;
    int i;
    for (i = 0; i < 16; i++) {
        if (dvti_atomic_load(&pool->finished) == ranges)
            return 0;
        dvti_pause();
    }
    begin = now = dvti_now();
    began = begin + 2 * (begin - began) / (double)own + DVTI_LOSS_SECONDS;
    while (now - begin < pool->spin) {
        for (i = 0; i < 16; i++) {
            if (dvti_atomic_load(&pool->finished) == ranges)
                return dvti_now() - began;
            dvti_pause();
        }
        now = dvti_now();
    }
    dvti_atomic_store(&pool->caller_sleeps, 1);
    while ((finished = dvti_atomic_load(&pool->finished)) != ranges)
        dvti_futex_wait(&pool->finished, finished);
    dvti_atomic_store(&pool->caller_sleeps, 0);
    return dvti_now() - began;
}

/* Divides n evenly. Lengths from 1024 on are multiples of 64. */
static int64_t dvti_pool_divide(int64_t n, int64_t pieces) {
    int64_t length = (n + pieces - 1) / pieces;
    return length >= 1024 ? (length + 63) / 64 * 64 : length;
}

/* Posts the shares of a job. Returns how many ranges the caller's share has, of which it keeps half
   without taking them. *ranges is the total of all shares. */
static dvti_futex dvti_pool_post(dvti_pool *pool, const dvti_share *job, double cost, bool wake,
                                 dvti_futex *ranges) {
    const int64_t length = dvti_pool_divide(job->n, job->shares);
    const double fit = (double)length * cost / DVTI_RANGE_NS;
    const int64_t step =
        dvti_pool_divide(length, fit < 2 ? 1 : (int64_t)DVTI_MIN(fit, DVTI_RANGES));
    const int shares = (int)((job->n + length - 1) / length);
    dvti_futex left = 0;
    int i;
    *ranges = 0;
    for (i = shares - 1; i >= 0; i--) {
        dvti_share *share = &pool->share[i];
        int64_t begin = i * length, end = DVTI_MIN(begin + length, job->n);
        left = (dvti_futex)((end - begin + step - 1) / step);
        *ranges += left;
        share->shares = shares;
        share->body = job->body;
        share->part = job->part;
        share->user = job->user;
        share->end = begin + left * step;
        share->step = step;
        share->n = end;
        if (i == 0)
            dvti_atomic_publish(&share->left, left / 2);
        else if (wake) /* ordered with the read of `sleeping` */
            dvti_atomic_store(&share->left, left);
        else
            dvti_atomic_publish(&share->left, left);
    }
    return left;
}

static void dvti_pool_run(dvti_pool *pool, const dvti_share *job, double cost, double work) {
    const double began = dvti_now();
    double lost;
    dvti_futex ranges, own, first = dvti_pool_post(pool, job, cost, work >= DVTI_WAKE_NS, &ranges);
    dvti_pool_wake(pool, work, pool->share[0].shares);
    if (began - pool->caller_time > DVTI_CALLER_SECONDS) {
        dvti_atomic_publish(&pool->caller, dvti_affinity_now());
        pool->caller_time = began;
    }
    own = (first + 1) / 2;
    dvti_share_do(&pool->share[0], 0, first, own);
    own = dvti_pool_do(pool, 0, own);
    if (own == ranges)
        return;
    lost = dvti_pool_wait(pool, ranges - own, began, own);
    dvti_atomic_publish(&pool->finished, 0);
    if (lost > 0)
        pool->alone_until = dvti_now() + DVTI_MIN(DVTI_ALONE_FACTOR * lost, DVTI_ALONE_SECONDS);
}

/* Uses at most job->shares threads, if the job takes at least `least` nanoseconds. */
static void dvti_pool_share(dvti_share *job, double cost, double least) {
    dvti_pool *pool = &dvti_the_pool;
    const double work = (double)job->n * cost;
    int threads = 1;
    if (job->n <= 1 || job->shares <= 1 || work < least || dvti_serial_depth ||
        dvti_atomic_load(&pool->threads) == 1 || dvti_openmp_busy() || !dvti_pool_take(pool)) {
        if (job->n > 0)
            dvti_share_do(job, 0, 1, 1);
        return;
    }
    dvti_serial_depth = 1;
    if ((work >= DVTI_PARALLEL_NS || dvti_pool_is_hot(pool, work)) && !dvti_pool_alone(pool))
        threads = dvti_pool_ready(pool);
    job->shares = DVTI_MIN(job->shares, threads);
    if (work < DVTI_RANGE_NS * job->shares)
        job->shares = (int)(work / DVTI_RANGE_NS);
    if (job->shares <= 1)
        dvti_share_do(job, 0, 1, 1);
    else
        dvti_pool_run(pool, job, cost, work);
    dvti_serial_depth = 0;
    dvti_pool_give(pool);
}

static void dvti_parallel_any(int64_t n, double cost, double least, int parts, dvti_range_fn body,
                              dvti_part_fn part, void *user) {
    dvti_share job;
    job.shares = DVTI_MIN(parts, DVTI_MAX_THREADS);
    job.body = body;
    job.part = part;
    job.user = user;
    job.n = job.end = job.step = n; /* one range */
    dvti_pool_share(&job, cost, least);
}

DVTI_FN void dvti_parallel_for(int64_t n, double cost, dvti_range_fn body, void *user) {
    dvti_parallel_any(n, cost, DVTI_PARALLEL_NS, DVTI_MAX_THREADS, body, NULL, user);
}

DVTI_FN void dvti_parallel_fine(int64_t n, double cost, dvti_range_fn body, void *user) {
    dvti_parallel_any(n, cost, DVTI_HOT_NS, DVTI_MAX_THREADS, body, NULL, user);
}

DVTI_FN void dvti_parallel_parts(int64_t n, double cost, int parts, dvti_part_fn body, void *user) {
    dvti_parallel_any(n, cost, DVTI_PARALLEL_NS, parts, NULL, body, user);
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
#undef DVTI_CALLER_SECONDS
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

DVTI_FN void dvti_parallel_fine(int64_t n, double cost, dvti_range_fn body, void *user) {
    dvti_parallel_for(n, cost, body, user);
}

DVTI_FN void dvti_parallel_parts(int64_t n, double cost, int parts, dvti_part_fn body, void *user) {
    (void)cost;
    (void)parts;
    if (n > 0)
        body(user, 0, n, 0);
}

DVT_API int dvt_num_threads(void) {
    return 1;
}

DVTI_FN int dvti_parallel_width(void) {
    return 1;
}

#endif

DVT_API dvt_status dvt_set_num_threads(int n) {
    if (n < 0 || n > DVTI_MAX_THREADS)
        return dvti_fail(DVT_ERR_RANGE,
                         "dvt_set_num_threads: got %d; expected 0 (the default) to %d", n,
                         DVTI_MAX_THREADS);
#if DVTI_THREADS
    dvti_atomic_store(&dvti_the_pool.threads, n); /* the next job resizes the pool */
#endif
    return DVT_OK;
}

#undef DVTI_MAX_THREADS
