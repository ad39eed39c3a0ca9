/* Measures the time to start a job on all threads and to wait for its end: the thread pool behind
   dvti_parallel_for, a mutex with a condition variable, and OpenMP where the compiler supports it,
   interleaved in each round. The job is empty, so the printed time is pure overhead. Then measures
   the pool while another process uses one processor.

     make bench-fork-join     or     build/release/bench/fork_join [THREADS] */
#undef DEVTENSOR_IMPLEMENTED /* compiles its own library, for access to internals */
#define DEVTENSOR_STATIC
#define DEVTENSOR_NO_CUDA
#define DEVTENSOR_NO_NN
#include "devtensor.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 15
#define HOT 20000
#define COLD 60
#define IDLE_US 2000

static int threads;

/* ---- methods ---- */
static void nothing(void *user, int64_t begin, int64_t end) {
    (void)user;
    (void)begin;
    (void)end;
}

static void by_pool(void) {
    dvti_parallel_for(threads, 1e6, nothing, NULL);
}

/* Workers sleep on a condition variable, and the caller sleeps until all have finished. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    long job;
    int finished;
} plain = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};

static void *plain_worker(void *user) {
    long seen = 0;
    (void)user;
    pthread_mutex_lock(&plain.lock);
    for (;;) {
        while (plain.job == seen)
            pthread_cond_wait(&plain.work, &plain.lock);
        seen++;
        if (++plain.finished == threads - 1)
            pthread_cond_signal(&plain.done);
    }
    return NULL;
}

static void by_condition(void) {
    pthread_mutex_lock(&plain.lock);
    plain.finished = 0;
    plain.job++;
    pthread_cond_broadcast(&plain.work);
    while (plain.finished < threads - 1)
        pthread_cond_wait(&plain.done, &plain.lock);
    pthread_mutex_unlock(&plain.lock);
}

#if defined(_OPENMP)
static void by_openmp(void) {
#pragma omp parallel num_threads(threads)
    { __asm__ volatile("" ::: "memory"); }
}
#endif

static const struct {
    const char *name;
    void (*run)(void);
} ways[] = {
    {"dvti_parallel_for", by_pool},
    {"mutex and condition", by_condition},
#if defined(_OPENMP)
    {"OpenMP", by_openmp},
#endif
};
#define WAYS ((int)(sizeof ways / sizeof ways[0]))

/* ---- measuring ---- */
static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double one_after_another(void (*run)(void)) {
    double begin;
    int i;
    run(); /* the workers are awake now */
    begin = dvt_seconds();
    for (i = 0; i < HOT; i++)
        run();
    return (dvt_seconds() - begin) / HOT;
}

static double after_idling(void (*run)(void)) {
    double sum = 0, begin;
    int i;
    for (i = 0; i < COLD; i++) {
        usleep(IDLE_US);
        begin = dvt_seconds();
        run();
        sum += dvt_seconds() - begin;
    }
    return sum / COLD;
}

static void measure(const char *title, double (*how)(void (*)(void))) {
    double seconds[WAYS][ROUNDS];
    int round, way;
    for (round = 0; round < ROUNDS; round++)
        for (way = 0; way < WAYS; way++)
            seconds[way][round] = how(ways[way].run);
    printf("%s, us: %d rounds, ways interleaved\n  %-22s %8s %8s %8s\n", title, ROUNDS, "",
           "median", "best", "worst");
    for (way = 0; way < WAYS; way++) {
        qsort(seconds[way], ROUNDS, sizeof seconds[way][0], by_size);
        printf("  %-22s %8.2f %8.2f %8.2f\n", ways[way].name, seconds[way][ROUNDS / 2] * 1e6,
               seconds[way][0] * 1e6, seconds[way][ROUNDS - 1] * 1e6);
    }
}

/* ---- work that does not access memory, with a busy process ---- */
#define ITEMS 2048
#define STEPS 200
static volatile float results[ITEMS];

static void compute(void *user, int64_t begin, int64_t end) {
    int i;
    (void)user;
    for (; begin < end; begin++) {
        float x = (float)begin;
        for (i = 0; i < STEPS; i++)
            x = x * 0.999f + 0.5f;
        results[begin] = x;
    }
}

static double seconds_of_jobs(int jobs, double cost) {
    double begin = dvt_seconds();
    int i;
    for (i = 0; i < jobs; i++)
        dvti_parallel_for(ITEMS, cost, compute, NULL);
    return (dvt_seconds() - begin) / jobs;
}

static void with_load(const char *title, int jobs) {
    double one[ROUNDS], many[ROUNDS], cost;
    int round;
    dvt_set_num_threads(1);
    cost = seconds_of_jobs(20, 100) * 1e9 / ITEMS;
    for (round = 0; round < ROUNDS; round++) {
        dvt_set_num_threads(1);
        one[round] = seconds_of_jobs(jobs, cost);
        dvt_set_num_threads(threads);
        many[round] = seconds_of_jobs(jobs, cost);
    }
    qsort(one, ROUNDS, sizeof one[0], by_size);
    qsort(many, ROUNDS, sizeof many[0], by_size);
    printf("  %-22s 1 thread %8.1f us, %d threads %8.1f us (medians): %.2fx faster\n", title,
           one[ROUNDS / 2] * 1e6, threads, many[ROUNDS / 2] * 1e6,
           one[ROUNDS / 2] / many[ROUNDS / 2]);
}

int main(int argc, char **argv) {
    pthread_t worker;
    pid_t other;
    int i;
    threads = argc > 1 ? atoi(argv[1]) : dvti_cpu_count();
    if (threads < 2 || threads > 256) {
        printf("nothing to measure with %d threads\n", threads);
        return 0;
    }
    dvt_set_num_threads(threads);
    for (i = 1; i < threads; i++)
        if (pthread_create(&worker, NULL, plain_worker, NULL))
            return 1;
    measure("consecutive jobs", one_after_another);
    measure("after 2 ms idle", after_idling);
    printf("consecutive jobs of about 1 ms\n");
    with_load("idle machine", 100);
    other = fork();
    if (other == 0)
        for (;;)
            dvti_pause();
    usleep(50000);
    with_load("one busy processor", 100);
    if (other > 0) {
        kill(other, SIGKILL);
        waitpid(other, NULL, 0);
    }
    return 0;
}
