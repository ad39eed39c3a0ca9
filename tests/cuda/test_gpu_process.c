/* A GPU and its process: threads that share it, forked children that must not use it, streams of
   other code. */
#include "on_gpu.h"
#if !defined(_WIN32)
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static void *work_on_gpu(void *user) {
    int id = *(int *)user, i;
    for (i = 0; i < 20; i++)
        DVT_SCOPE {
            dvt_array *x = dvt_full(DVT_SHAPE(100 + i), id, DVT_F32, dvt_gpu(id % dvt_num_gpus()));
            dvt_array *y = dvt_copyto(x, dvt_gpu((id + 1) % dvt_num_gpus()));
            double first = dvt_item_at(y, DVT_SHAPE(0));
            if (first != id || dvt_error_code() != DVT_OK) {
                fprintf(stderr, "thread %d: item %g, %s\n", id, first, dvt_error());
                dvt_clear_error();
                return "wrong";
            }
        }
    return NULL;
}

DVT_TEST(gpu_is_shared_by_threads) {
    pthread_t thread[4];
    int id[4], i;
    NEEDS_GPU;
    for (i = 0; i < 4; i++) {
        id[i] = i;
        CHECK_INT(pthread_create(&thread[i], NULL, work_on_gpu, &id[i]), 0);
    }
    for (i = 0; i < 4; i++) {
        void *result = NULL;
        pthread_join(thread[i], &result);
        CHECK(result == NULL); /* a thread that failed has printed why */
    }
}

/* The child may release inherited arrays and use cpu(); use of a GPU is an error, not a crash. */
static int child_of(dvt_array *x) {
    dvt_set_logger(NULL, NULL);
    if (dvt_full(DVT_SHAPE(2), 1, DVT_F32, dvt_gpu(0)) || dvt_error_code() != DVT_ERR_FORKED)
        return 1;
    dvt_clear_error();
    if (dvt_wait(x) != DVT_ERR_FORKED)
        return 2;
    dvt_clear_error();
    dvt_release(x);
    return dvt_item(dvt_sum(dvt_full(DVT_SHAPE(3), 2, DVT_F32, dvt_cpu()), DVT_ALL)) == 6 ? 0 : 3;
}

DVT_TEST(gpu_in_a_forked_child) {
    dvt_array *x;
    pid_t child;
    int state = 0;
    NEEDS_GPU;
    x = dvt_retain(dvt_full(DVT_SHAPE(2), 1, DVT_F32, dvt_gpu(0)));
    CHECK_INT(dvt_wait(x), DVT_OK);
    fflush(NULL);
    child = fork();
    if (child == 0)
        _exit(child_of(x));
    CHECK(child > 0 && waitpid(child, &state, 0) == child);
    CHECK(WIFEXITED(state));
    CHECK_INT(WEXITSTATUS(state), 0);
    CHECK_CLOSE(dvt_item_at(x, DVT_SHAPE(1)), 1, 0); /* the parent continues */
    dvt_release(x);
}
#endif

DVT_TEST(gpu_streams_and_addresses) {
    dvt_array *x;
    void *stream;
    NEEDS_GPU;
    x = dvt_full(DVT_SHAPE(4), 3, DVT_F32, dvt_gpu(0));
    stream = dvt_cuda_stream(dvt_gpu(0));
    CHECK(stream != NULL);
    CHECK(dvt_cuda_address(x) != 0);
    CHECK_INT(dvt_cuda_address(dvt_slice(x, 0, 1, 4, 1)) - dvt_cuda_address(x), 4);
    CHECK_INT(dvt_set_cuda_stream(stream, dvt_gpu(0)), DVT_OK);
    CHECK(dvt_cuda_stream(dvt_gpu(0)) == stream);
    CHECK_INT(dvt_set_cuda_stream(NULL, dvt_gpu(0)), DVT_OK);
    CHECK(dvt_cuda_stream(dvt_gpu(0)) == stream);
    CHECK(dvt_cuda_stream(dvt_cpu()) == NULL);
    CHECK_ERROR(dvt_cuda_address(dvt_full(DVT_SHAPE(1), 1, DVT_F32, dvt_cpu())), DVT_ERR_CONTEXT);
    CHECK_ERROR(dvt_set_cuda_stream(NULL, dvt_cpu()), DVT_ERR_UNSUPPORTED);
}
