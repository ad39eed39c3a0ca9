/* Threads: starting and ending, the pool behind dvti_parallel_for, time, processors, dynamic libraries. */
#include "1_base/dvt_base.h"

DVTI_FN double dvti_now(void) {
#if defined(_WIN32)
    LARGE_INTEGER ticks, rate;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&rate);
    return (double)ticks.QuadPart / (double)rate.QuadPart;
#else
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#endif
}

DVT_API double dvt_seconds(void) {
    return dvti_now();
}

DVTI_FN int64_t dvti_process_id(void) {
#if defined(_WIN32)
    return (int64_t)GetCurrentProcessId();
#else
    return (int64_t)getpid();
#endif
}

#if defined(__linux__)
/* The processors that a container's quota pays for, rounded up; 0 when there is no quota (cgroup v2, then v1). */
static int dvti_quota(void) {
    long long quota = -1, period = 0;
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "r");
    if (file) {
        if (fscanf(file, "%lld %lld", &quota, &period) != 2)
            quota = -1;
        fclose(file);
    } else {
        file = fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "r");
        if (file) {
            if (fscanf(file, "%lld", &quota) != 1)
                quota = -1;
            fclose(file);
        }
        file = fopen("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "r");
        if (file) {
            if (fscanf(file, "%lld", &period) != 1)
                period = 0;
            fclose(file);
        }
    }
    return quota > 0 && period > 0 ? (int)DVTI_MIN((quota + period - 1) / period, 4096) : 0;
}
#endif

DVTI_FN int dvti_cpu_count(void) {
#if defined(_WIN32)
    return (int)GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
#elif defined(__linux__)
    /* From /proc, since sched_getaffinity hides behind _GNU_SOURCE; "Cpus_allowed:" is a mask in hexadecimal. */
    int count = 0, quota = dvti_quota(), c;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    while (file && fgets(line, sizeof line, file) && strncmp(line, "Cpus_allowed:", 13) != 0)
        continue;
    if (file && strncmp(line, "Cpus_allowed:", 13) == 0) {
        const char *at = line + 13;
        for (;; at++) {
            if (!*at) { /* the mask may be longer than a line's buffer */
                if (!fgets(line, sizeof line, file))
                    break;
                at = line;
            }
            if (*at == '\n')
                break;
            for (c = *at >= '0' && *at <= '9'   ? *at - '0'
                     : *at >= 'a' && *at <= 'f' ? *at - 'a' + 10
                                                : 0;
                 c; c &= c - 1)
                count++;
        }
    }
    if (file)
        fclose(file);
    if (count < 1)
        count = online > 0 ? (int)online : 1;
    return quota > 0 && quota < count ? quota : count;
#else
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
#endif
}

DVTI_FN void *dvti_library_open(const char *name) {
#if defined(_WIN32)
    bool path = strpbrk(name, "/\\") != NULL; /* then what it needs may lie beside it */
    return (void *)LoadLibraryExA(
        name, NULL, LOAD_LIBRARY_SEARCH_SYSTEM32 | (path ? LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR : 0));
#else
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
#endif
}

DVTI_FN void *dvti_library_loaded(const char *name) {
#if defined(_WIN32)
    HMODULE library = NULL;
    return GetModuleHandleExA(0, name, &library) ? (void *)library : NULL;
#elif defined(RTLD_NOLOAD)
    return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
#else
    (void)name;
    return NULL;
#endif
}

DVTI_FN void dvti_library_close(void *library) {
#if defined(_WIN32)
    FreeLibrary((HMODULE)library);
#else
    dlclose(library);
#endif
}

DVTI_FN void *dvti_library_symbol(void *library, const char *name) {
#if defined(_WIN32)
    FARPROC symbol = GetProcAddress((HMODULE)library, name);
    void *result;
    memcpy(&result, &symbol, sizeof result);
    return result;
#else
    return dlsym(library, name);
#endif
}

/* ---- the end of a thread ---- */
static DVTI_TLS void (*dvti_thread_end_hook)(void);

#if DVTI_THREADS && !defined(_WIN32)
static pthread_key_t dvti_end_key;
static pthread_once_t dvti_end_once = PTHREAD_ONCE_INIT;
static bool dvti_end_key_made;

static void dvti_run_thread_end(void *hook) {
    (void)hook;
    if (dvti_thread_end_hook)
        dvti_thread_end_hook();
    dvti_thread_end_hook = NULL;
}

static void dvti_run_exit(void) {
    dvti_run_thread_end(NULL);
}

static void dvti_make_end_key(void) {
    dvti_end_key_made = pthread_key_create(&dvti_end_key, dvti_run_thread_end) == 0;
    atexit(dvti_run_exit);
}

DVTI_FN void dvti_at_thread_end(void (*run)(void)) {
    if (dvti_thread_end_hook)
        return;
    pthread_once(&dvti_end_once, dvti_make_end_key);
    dvti_thread_end_hook = run;
    if (dvti_end_key_made)
        pthread_setspecific(dvti_end_key, &dvti_end_key);
}
#else
static void dvti_run_exit(void) {
    if (dvti_thread_end_hook)
        dvti_thread_end_hook();
    dvti_thread_end_hook = NULL;
}

#if defined(_WIN32)
static void NTAPI dvti_run_fiber_end(void *hook) {
    if (hook)
        dvti_run_exit();
}
#endif

DVTI_FN void dvti_at_thread_end(void (*run)(void)) {
    static dvti_mutex lock = DVTI_MUTEX_INIT;
    static bool registered;
#if defined(_WIN32)
    static DWORD slot = FLS_OUT_OF_INDEXES;
#endif
    if (dvti_thread_end_hook)
        return;
    dvti_thread_end_hook = run;
    dvti_mutex_lock(&lock);
    if (!registered) {
        registered = true;
        atexit(dvti_run_exit);
#if defined(_WIN32)
        slot = FlsAlloc(dvti_run_fiber_end);
#endif
    }
    dvti_mutex_unlock(&lock);
#if defined(_WIN32)
    if (slot != FLS_OUT_OF_INDEXES)
        FlsSetValue(slot, (void *)1);
#endif
}
#endif

/* ---- the pool ---- */
static DVTI_TLS int dvti_serial_depth;

DVTI_FN void dvti_parallel_off(void) {
    dvti_serial_depth = 1;
}

#if DVTI_THREADS

typedef struct dvti_thread_args {
    void (*run)(void *);
    void *user;
} dvti_thread_args;

#if defined(_WIN32)
static DWORD WINAPI dvti_thread_main(void *block)
#else
static void *dvti_thread_main(void *block)
#endif
{
    dvti_thread_args args = *(dvti_thread_args *)block;
    dvti_free(block);
    args.run(args.user);
    return 0;
}

DVTI_FN bool dvti_thread_start(dvti_thread *thread, void (*run)(void *), void *user) {
    dvti_thread_args *args = (dvti_thread_args *)dvti_alloc(sizeof *args);
    bool started;
    if (!args)
        return false;
    args->run = run;
    args->user = user;
#if defined(_WIN32)
    *thread = CreateThread(NULL, 0, dvti_thread_main, args, 0, NULL);
    started = *thread != NULL;
#else
    {
        /* Signals belong to the program's own threads. */
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        started = pthread_create(thread, NULL, dvti_thread_main, args) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
#endif
    if (!started)
        dvti_free(args);
    return started;
}

DVTI_FN void dvti_thread_join(dvti_thread thread) {
#if defined(_WIN32)
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
#else
    pthread_join(thread, NULL);
#endif
}

/* One job at a time. Whoever takes part draws ranges from the cursor; the caller can finish alone, and only waits for
   threads that have drawn something. */
typedef struct dvti_pool {
    dvti_mutex lock;
    dvti_cond work, done;
    dvti_mutex busy; /* held by the thread whose job runs; others run theirs serially */
    int threads;     /* 0: not decided yet */
    int started;
    int64_t process;
    int64_t job; /* counts jobs, so that a worker sees a new one */
    int active;  /* workers inside the current job */
    dvti_range_fn body;
    void *user;
    int64_t n, step;
    dvti_atomic cursor;
} dvti_pool;

static dvti_pool dvti_the_pool = {DVTI_MUTEX_INIT,
                                  DVTI_COND_INIT,
                                  DVTI_COND_INIT,
                                  DVTI_MUTEX_INIT,
                                  0,
                                  0,
                                  0,
                                  0,
                                  0,
                                  NULL,
                                  NULL,
                                  0,
                                  0,
                                  0};

static void dvti_pool_draw(dvti_pool *pool, dvti_range_fn body, void *user, int64_t n,
                           int64_t step) {
    for (;;) {
        int64_t end = dvti_atomic_add(&pool->cursor, step), begin = end - step;
        if (begin >= n)
            return;
        body(user, begin, DVTI_MIN(end, n));
    }
}

static void dvti_pool_worker(void *user) {
    dvti_pool *pool = (dvti_pool *)user;
    int64_t seen = 0;
    dvti_serial_depth = 1;
    dvti_mutex_lock(&pool->lock);
    for (;;) {
        dvti_range_fn body;
        void *arg;
        int64_t n, step;
        while (pool->job == seen || !pool->body)
            dvti_cond_wait(&pool->work, &pool->lock);
        seen = pool->job;
        body = pool->body;
        arg = pool->user;
        n = pool->n;
        step = pool->step;
        pool->active++;
        dvti_mutex_unlock(&pool->lock);
        dvti_pool_draw(pool, body, arg, n, step);
        dvti_mutex_lock(&pool->lock);
        if (--pool->active == 0)
            dvti_cond_signal(&pool->done);
    }
}

/* With busy held. */
static int dvti_pool_threads(dvti_pool *pool) {
    if (!pool->threads)
        pool->threads =
            (int)dvti_env_int("DEVTENSOR_NUM_THREADS", 1, 256, DVTI_MIN(dvti_cpu_count(), 256));
    return pool->threads;
}

/* With busy held. A forked child has none of the threads: it starts its own. */
static int dvti_pool_ready(dvti_pool *pool) {
    dvti_thread thread;
    if (pool->process != dvti_process_id()) {
        dvti_mutex fresh_lock = DVTI_MUTEX_INIT;
        dvti_cond fresh_cond = DVTI_COND_INIT;
        memcpy(&pool->lock, &fresh_lock, sizeof fresh_lock);
        memcpy(&pool->work, &fresh_cond, sizeof fresh_cond);
        memcpy(&pool->done, &fresh_cond, sizeof fresh_cond);
        pool->started = pool->active = 0;
        pool->process = dvti_process_id();
    }
    dvti_pool_threads(pool);
    while (pool->started < pool->threads - 1 &&
           dvti_thread_start(&thread, dvti_pool_worker, pool)) {
#if defined(_WIN32)
        CloseHandle(thread);
#else
        pthread_detach(thread);
#endif
        pool->started++;
    }
    return DVTI_MIN(pool->started + 1, pool->threads);
}

/* Without waiting: who finds the pool busy works alone. */
static bool dvti_pool_take(dvti_pool *pool) {
#if defined(_WIN32)
    return TryAcquireSRWLockExclusive(&pool->busy) != 0;
#else
    return pthread_mutex_trylock(&pool->busy) == 0;
#endif
}

DVTI_FN void dvti_parallel_for(int64_t n, int64_t grain, dvti_range_fn body, void *user) {
    dvti_pool *pool = &dvti_the_pool;
    int threads;
    if (n <= 0)
        return;
    grain = DVTI_MAX(grain, 1);
    if (n <= grain || dvti_serial_depth || pool->threads == 1) {
        body(user, 0, n);
        return;
    }
    if (!dvti_pool_take(pool)) {
        body(user, 0, n);
        return;
    }
    dvti_serial_depth = 1;
    threads = dvti_pool_ready(pool);
    if (threads == 1) {
        body(user, 0, n);
    } else {
        dvti_mutex_lock(&pool->lock);
        pool->body = body;
        pool->user = user;
        pool->n = n;
        pool->step = DVTI_MAX(grain, n / (threads * 4));
        dvti_atomic_store(&pool->cursor, 0);
        pool->job++;
        dvti_cond_broadcast(&pool->work);
        dvti_mutex_unlock(&pool->lock);
        dvti_pool_draw(pool, body, user, n, pool->step);
        dvti_mutex_lock(&pool->lock);
        pool->body = NULL; /* whoever wakes late finds nothing to do */
        while (pool->active)
            dvti_cond_wait(&pool->done, &pool->lock);
        dvti_mutex_unlock(&pool->lock);
    }
    dvti_serial_depth = 0;
    dvti_mutex_unlock(&pool->busy);
}

DVT_API dvt_status dvt_set_num_threads(int n) {
    dvti_pool *pool = &dvti_the_pool;
    if (n < 0 || n > 256)
        return dvti_fail(DVT_ERR_RANGE,
                         "dvt_set_num_threads: got %d; expected 0 (the default) to 256", n);
    dvti_mutex_lock(&pool->busy);
    pool->threads = n;
    dvti_mutex_unlock(&pool->busy);
    return DVT_OK;
}

DVT_API int dvt_num_threads(void) {
    dvti_pool *pool = &dvti_the_pool;
    int n;
    dvti_mutex_lock(&pool->busy);
    n = dvti_pool_threads(pool);
    dvti_mutex_unlock(&pool->busy);
    return n;
}

DVTI_FN int dvti_parallel_width(void) {
    dvti_pool *pool = &dvti_the_pool;
    int n;
    if (dvti_serial_depth || !dvti_pool_take(pool))
        return 1;
    n = dvti_pool_threads(pool);
    dvti_mutex_unlock(&pool->busy);
    return n;
}

#else

DVTI_FN void dvti_parallel_for(int64_t n, int64_t grain, dvti_range_fn body, void *user) {
    (void)grain;
    if (n > 0)
        body(user, 0, n);
}

DVT_API dvt_status dvt_set_num_threads(int n) {
    if (n < 0 || n > 256)
        return dvti_fail(DVT_ERR_RANGE,
                         "dvt_set_num_threads: got %d; expected 0 (the default) to 256", n);
    return DVT_OK;
}

DVT_API int dvt_num_threads(void) {
    return 1;
}

DVTI_FN int dvti_parallel_width(void) {
    return 1;
}

#endif
