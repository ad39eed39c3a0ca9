/* The pool behind dvti_parallel_for.

   One job at a time, cut into shares, one for each thread, and these into ranges. A thread draws half of what its share still has
   until that is nothing, and then half of what another's has. The caller waits only for ranges that others have drawn: it can finish
   alone, so a worker that sleeps, or that the system does not run, delays nobody. A thread that finds the pool busy does its work alone.

   Jobs of the same size give the same thread the same items, which its caches still have. A line that another processor wrote takes 100
   to 200 ns to come, and a small job lasts ten times that: so all that a worker reads before it starts stands on one line, its own share;
   nobody writes there while it draws, and the caller's post is a store that it need not wait for.

   Workers look for the next job before they sleep, and callers for the end of one, for as long as waking them would take (50 to 200 us in a
   virtual machine). By time and not by a count of `pause`, which takes 10 times longer on some processors than on others. And not at
   all where a container pays for processor time, or where there are more threads than processors.

   A range that a worker has drawn, and cannot run because another process has its processor, would cost the caller a slice of the
   scheduler, several milliseconds. The caller cannot know that beforehand, but it can keep the loss in proportion: after
   waiting in vain for t it works alone for 8 t. So the pool takes at most an eighth more time than one thread.

   A forked child has none of the threads, and starts its own. A handler tells it, since asking for the process at every job would double
   what a job costs. Where the handler does not run (a bare clone), workers that are gone look like workers that never draw. */
#include "1_base/dvt_base.h"

#define DVTI_MOST_THREADS 256 /* that dvt_set_num_threads takes */

static DVTI_TLS int dvti_serial_depth;

DVTI_FN void dvti_parallel_off(void) {
    dvti_serial_depth = 1;
}

#if DVTI_THREADS

#define DVTI_RANGE_NS 1500       /* the least work that a range has */
#define DVTI_RANGES 8            /* of a share: what the last one holds up is small */
#define DVTI_SPIN_SECONDS 200e-6 /* until a sleep */
#define DVTI_SEEN_SECONDS 50e-6  /* until the caller's processor is asked for again */
#define DVTI_LOSS_SECONDS 30e-6  /* waiting that is no loss */
#define DVTI_WAKE_NS 50000       /* the work that a wake-up is worth */
#define DVTI_ALONE_FACTOR 8      /* times what was lost */
#define DVTI_ALONE_SECONDS 1.0   /* at most: a process may have been stopped */
#define DVTI_RETRY_SECONDS 1.0   /* after the system refused to start a thread */

/* One cache line. Who has drawn from it may read it, since the caller does not go on before what was drawn is finished. */
typedef struct dvti_share {
    DVTI_LINE_ALIGNED dvti_word left; /* ranges to draw; -1: the worker ends. What it sleeps on */
    int shares;
    dvti_range_fn body;
    dvti_part_fn part; /* in place of body, or NULL */
    void *user;
    int64_t end, step; /* of the last range, were it as long as the others; items of a range */
    int64_t n;
} dvti_share;

typedef struct dvti_pool {
    dvti_share share[DVTI_MOST_THREADS]; /* the caller's, the workers' */
    /* Ranges that workers have done; what the caller sleeps on. */
    DVTI_LINE_ALIGNED dvti_word finished;
    dvti_atomic caller_sleeps;
    /* What changes rarely. */
    DVTI_LINE_ALIGNED dvti_atomic threads; /* 0: not decided yet */
    dvti_atomic alive, sleeping;           /* workers */
    dvti_atomic started;                   /* workers so far: the next one's number is one more */
    double spin;                           /* seconds */
    /* What workers read before they sleep, and never in between. */
    DVTI_LINE_ALIGNED dvti_atomic busy; /* 1: a thread has the pool, and what follows `caller` */
    dvti_atomic caller;                 /* the processor of the last job's caller, -1: not known */
    bool ready;
    int64_t process;    /* whose threads the workers are */
    double seen;        /* when `caller` was */
    double retry_at;    /* no thread is started before; 0: any time */
    double alone_until; /* 0: not alone */
    double owed;        /* nanoseconds of work done while there were sleepers */
    double small;       /* and in small jobs while nobody looked, since small_since */
    double small_since;
} dvti_pool;

static dvti_pool dvti_the_pool;

/* ---- ranges ---- */
/* How many ranges it drew; the first is *left from the share's end. */
static dvti_word dvti_share_draw(dvti_share *share, dvti_word *left) {
    dvti_word half;
    while ((*left = dvti_atomic_load(&share->left)) > 0) {
        half = (*left + 1) / 2;
        if (dvti_atomic_swap(&share->left, *left, *left - half))
            return half;
    }
    return 0;
}

static void dvti_share_do(const dvti_share *share, int number, dvti_word left, dvti_word ranges) {
    int64_t begin = share->end - left * share->step;
    int64_t end = DVTI_MIN(begin + ranges * share->step, share->n);
    if (share->part)
        share->part(share->user, begin, end, number);
    else
        share->body(share->user, begin, end);
}

/* Thread `number`, which has done so many ranges, draws until nothing is left; returns how many it has done then. A worker whose own
   share others have emptied looks no further: the job is near its end. */
static dvti_word dvti_pool_do(dvti_pool *pool, int number, dvti_word done) {
    dvti_word left, drawn;
    int at = number, seen = 0, shares = 1;
    do {
        dvti_share *share = &pool->share[at];
        while ((drawn = dvti_share_draw(share, &left)) > 0) {
            dvti_share_do(share, number, left, drawn);
            done += drawn;
        }
        if (done)
            shares = pool->share[number].shares;
        at = at + 1 < shares ? at + 1 : 0;
    } while (++seen < shares);
    return done;
}

/* ---- workers ---- */
DVTI_THREAD_MAIN(dvti_pool_worker) {
    dvti_pool *pool = (dvti_pool *)user;
    const int number = (int)dvti_atomic_add(&pool->started, 1);
    dvti_share *own = &pool->share[number];
    dvti_affinity_mask home;
    dvti_word done;
    dvti_serial_depth = 1;
    dvti_affinity_begin(number - 1);
    dvti_affinity_leave(&home, (int)dvti_atomic_load(&pool->caller));
    dvti_affinity_return(&home);
    while (dvti_atomic_load(&own->left) >= 0) {
        done = dvti_pool_do(pool, number, 0);
        if (done) {
            dvti_atomic_add(&pool->finished, done);
            if (dvti_atomic_load(&pool->caller_sleeps))
                dvti_word_wake(&pool->finished);
        } else if (!dvti_word_look(&own->left, 0, pool->spin)) {
            /* Whoever posts work that is worth a wake-up after this line sees a sleeper; whoever did before has changed the word. */
            dvti_affinity_leave(&home, (int)dvti_atomic_load(&pool->caller));
            dvti_atomic_add(&pool->sleeping, 1);
            dvti_word_sleep(&own->left, 0);
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
    int i;
    dvti_word_ready();
    for (i = 0; i < DVTI_MOST_THREADS; i++)
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

/* Two threads that ask at the same time get the same answer. */
static int dvti_pool_threads(dvti_pool *pool) {
    int64_t threads = dvti_atomic_load(&pool->threads);
    if (threads)
        return (int)threads;
    threads = dvti_env_int("DEVTENSOR_NUM_THREADS", 1, DVTI_MOST_THREADS,
                           DVTI_MIN(dvti_cpu_count(), DVTI_MOST_THREADS));
    return dvti_atomic_swap(&pool->threads, 0, threads) ? (int)threads : dvti_pool_threads(pool);
}

static void dvti_pool_stop(dvti_pool *pool) {
    const int workers = (int)dvti_atomic_load(&pool->alive);
    int i;
    if (pool->process != dvti_process_id()) { /* the handler did not run: these would never end */
        dvti_pool_forget(pool);
        return;
    }
    for (i = 1; i <= workers; i++) {
        dvti_atomic_store(&pool->share[i].left, -1);
        dvti_word_wake(&pool->share[i].left);
    }
    /* On one processor and with real-time priority they run only when this thread lets them. */
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

/* How many threads take part in the next job. */
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
    dvti_affinity_yield(); /* a thread that began behind this one can leave for another processor */
    return (int)dvti_atomic_load(&pool->alive) + 1;
}

static bool dvti_pool_alone(dvti_pool *pool) {
    if (pool->alone_until > 0 && dvti_now() >= pool->alone_until)
        pool->alone_until = 0;
    return pool->alone_until > 0;
}

/* ---- a job ---- */
/* Whether a small job is worth sharing: where workers look for it, or where so many come one after another that waking them, or
   starting them, is. */
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

/* Workers that look find the job themselves. Waking others costs more than a small job is worth, but many small jobs in
   a row are worth it. */
static void dvti_pool_rouse(dvti_pool *pool, double work, int shares) {
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
        useful -= dvti_word_wake(&pool->share[i].left);
}

/* Until the others have finished `ranges` of a job that began then; returns the seconds that were lost: what one range takes on average
   is not. */
static double dvti_pool_await(dvti_pool *pool, dvti_word ranges, double began, dvti_word own) {
    double begin, now;
    dvti_word finished;
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
        dvti_word_sleep(&pool->finished, finished);
    dvti_atomic_store(&pool->caller_sleeps, 0);
    return dvti_now() - began;
}

/* As even as can be; ends are multiples of 64 where that hardly matters. */
static int64_t dvti_pool_cut(int64_t n, int64_t pieces) {
    int64_t length = (n + pieces - 1) / pieces;
    return length >= 1024 ? (length + 63) / 64 * 64 : length;
}

/* Posts the shares of a job; returns how many ranges the caller's has, of which it keeps half without drawing, and in *ranges how many
   there are in all. */
static dvti_word dvti_pool_post(dvti_pool *pool, const dvti_share *job, double cost, bool wake,
                                dvti_word *ranges) {
    const int64_t length = dvti_pool_cut(job->n, job->shares);
    const double fit = (double)length * cost / DVTI_RANGE_NS;
    const int64_t step = dvti_pool_cut(length, fit < 2 ? 1 : (int64_t)DVTI_MIN(fit, DVTI_RANGES));
    const int shares = (int)((job->n + length - 1) / length);
    dvti_word left = 0;
    int i;
    *ranges = 0;
    for (i = shares - 1; i >= 0; i--) {
        dvti_share *share = &pool->share[i];
        int64_t begin = i * length, end = DVTI_MIN(begin + length, job->n);
        left = (dvti_word)((end - begin + step - 1) / step);
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
        else if (wake) /* in order with the question who sleeps */
            dvti_atomic_store(&share->left, left);
        else
            dvti_atomic_publish(&share->left, left);
    }
    return left;
}

static void dvti_pool_run(dvti_pool *pool, const dvti_share *job, double cost, double work) {
    const double began = dvti_now();
    double lost;
    dvti_word ranges, own, first = dvti_pool_post(pool, job, cost, work >= DVTI_WAKE_NS, &ranges);
    dvti_pool_rouse(pool, work, pool->share[0].shares);
    if (began - pool->seen > DVTI_SEEN_SECONDS) {
        dvti_atomic_publish(&pool->caller, dvti_affinity_now());
        pool->seen = began;
    }
    own = (first + 1) / 2;
    dvti_share_do(&pool->share[0], 0, first, own);
    own = dvti_pool_do(pool, 0, own);
    if (own == ranges)
        return;
    lost = dvti_pool_await(pool, ranges - own, began, own);
    dvti_atomic_publish(&pool->finished, 0);
    if (lost > 0)
        pool->alone_until = dvti_now() + DVTI_MIN(DVTI_ALONE_FACTOR * lost, DVTI_ALONE_SECONDS);
}

/* By at most job->shares threads, if it is worth `least` nanoseconds. */
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
    job.shares = DVTI_MIN(parts, DVTI_MOST_THREADS);
    job.body = body;
    job.part = part;
    job.user = user;
    job.n = job.end = job.step = n; /* one range */
    dvti_pool_share(&job, cost, least);
}

DVTI_FN void dvti_parallel_for(int64_t n, double cost, dvti_range_fn body, void *user) {
    dvti_parallel_any(n, cost, DVTI_PARALLEL_NS, DVTI_MOST_THREADS, body, NULL, user);
}

DVTI_FN void dvti_parallel_soon(int64_t n, double cost, dvti_range_fn body, void *user) {
    dvti_parallel_any(n, cost, DVTI_HOT_NS, DVTI_MOST_THREADS, body, NULL, user);
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
#undef DVTI_SEEN_SECONDS
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

DVTI_FN void dvti_parallel_soon(int64_t n, double cost, dvti_range_fn body, void *user) {
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
    if (n < 0 || n > DVTI_MOST_THREADS)
        return dvti_fail(DVT_ERR_RANGE,
                         "dvt_set_num_threads: got %d; expected 0 (the default) to %d", n,
                         DVTI_MOST_THREADS);
#if DVTI_THREADS
    dvti_atomic_store(&dvti_the_pool.threads, n); /* the next job makes the pool so */
#endif
    return DVT_OK;
}

#undef DVTI_MOST_THREADS
