/* Runs a function in several threads, each with a worker of its own. */
#ifndef IN_THREADS_H
#define IN_THREADS_H
#include "dvt_test.h"

#if !defined(DEVTENSOR_NO_THREADS)
#include <pthread.h>

#define THREADS 8

typedef struct worker {
    int number;
    dvt_array *shared;
    dvt_array **many;
    int count;
    dvt_array *result;
    double sum;
    dvt_ctx ctx;
    dvt_status status;
} worker;

/* Runs `run` in 8 threads, each with its own worker, and waits for all. */
static void in_threads(void *(*run)(void *), worker *workers) {
    pthread_t threads[THREADS];
    int i, started[THREADS];
    for (i = 0; i < THREADS; i++) {
        workers[i].number = i;
        started[i] = pthread_create(&threads[i], NULL, run, &workers[i]) == 0;
        CHECK(started[i]);
    }
    for (i = 0; i < THREADS; i++)
        if (started[i])
            pthread_join(threads[i], NULL);
}

#endif
#endif
