/* For exit.sh: a program that exits while a GPU has work, arrays are alive and threads run.
   Compiled as C++, so that destructors of static objects run between the library's own.
   usage: leaves HOW */
#define DEVTENSOR_IMPLEMENTED
#include "devtensor_under_test.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static dvt_array *alive;

/* Its destructor runs before those of earlier objects. The library functions that it calls may be
   shut down by then. */
struct owner {
    dvt_array *array;
    explicit owner() : array(NULL) {}
    ~owner() { dvt_release(array); }
};

static owner early; /* constructed before the library's first call */

static owner &late() { /* constructed after it */
    static owner the;
    return the;
}

static void release_at_exit() {
    dvt_release(alive);
}

static dvt_array *busy_array(int gpu) {
    dvt_array *x = dvt_full(DVT_SHAPE(60, 60), 0.02, DVT_F32, dvt_gpu(gpu));
    for (int i = 0; i < 4; i++)
        x = dvt_matmul(x, x);
    return (dvt_array *)dvt_retain(x);
}

static dvt_array *uploaded(int gpu) {
    float *values = (float *)calloc(500000, sizeof *values);
    dvt_array *x = dvt_from_host(values, DVT_SHAPE(500000), DVT_F32, dvt_gpu(gpu));
    free(values);
    return (dvt_array *)dvt_retain(dvt_copyto(x, dvt_gpu(1 - gpu)));
}

static volatile int started;

static void *never_done(void *which) {
    int gpu = *(int *)which;
    for (;;) {
        dvt_scope_guard scope = dvt_scope_begin();
        dvt_array *x = dvt_full(DVT_SHAPE(1000), 2, DVT_F32, dvt_gpu(gpu));
        x = dvt_copyto(dvt_mul(x, x), dvt_gpu(1 - gpu));
        /* After the end of main the driver may be closed, which is not an error of the program. */
        if (!x || dvt_item_at(x, DVT_SHAPE(7)) != 4)
            dvt_clear_error();
        dvt_scope_end(&scope);
        __sync_fetch_and_add(&started, 1);
    }
    return NULL;
}

static int gpus[2] = {0, 1};

static int with_threads() {
    pthread_t thread;
    for (int i = 0; i < 2; i++)
        if (pthread_create(&thread, NULL, never_done, &gpus[i]) != 0)
            return 3;
    while (started < 4)
        usleep(1000);
    return 0;
}

static void *in_a_thread(void *) {
    alive = uploaded(0);
    exit(0);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "atexit-first") == 0) /* runs after the library's own handler, if any */
        atexit(release_at_exit);
    if (dvt_num_gpus() < 2) {
        printf("%s\n", dvt_gpu_reason());
        return 4;
    }
    alive = busy_array(0);
    if (strcmp(how, "pending") == 0)
        uploaded(1);
    else if (strcmp(how, "scopes") == 0)
        dvt_full(DVT_SHAPE(100), 1, DVT_F32, dvt_gpu(1)); /* belongs to no scope */
    else if (strcmp(how, "atexit-last") == 0)
        atexit(release_at_exit);
    else if (strcmp(how, "static-early") == 0)
        early.array = alive;
    else if (strcmp(how, "static-late") == 0)
        late().array = alive;
    else if (strcmp(how, "both-statics") == 0) {
        early.array = alive;
        late().array = uploaded(0);
    } else if (strcmp(how, "network") == 0) {
        dvt_block *net = (dvt_block *)dvt_retain(dvt_nn_dense(3, DVT_RELU));
        dvt_block_initialize(net, dvt_init_xavier(), DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(1)));
        dvt_retain(dvt_block_forward(net, dvt_ones(DVT_SHAPE(2, 4), DVT_F32, dvt_gpu(1))));
    } else if (strcmp(how, "exit-in-a-thread") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, in_a_thread, NULL);
        pthread_join(thread, NULL);
    } else if (strcmp(how, "threads") == 0)
        return with_threads();
    else if (strcmp(how, "threads-and-statics") == 0) {
        early.array = alive;
        late().array = uploaded(1);
        return with_threads();
    } else if (strcmp(how, "quick") == 0) {
        uploaded(1);
        quick_exit(0);
    } else if (strncmp(how, "atexit-", 7) != 0)
        return 5;
    return dvt_error_code() == DVT_OK ? 0 : 6;
}
