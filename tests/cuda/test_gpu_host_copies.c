/* Copies between pageable host memory and a GPU: the thread pool copies chunks in pieces. Borders
   of chunks and pieces, threads that copy at once, and failures in the middle. */
#include "on_gpu.h"
#include "simcuda/sim_control.h"
#if !defined(_WIN32)
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>

#define CHUNK ((int64_t)4 << 20)
#define GUARD 64 /* bytes before and after the host memory of a copy */
#define UNTOUCHED 0xa5

static unsigned char byte_at(int64_t i, unsigned seed) {
    return (unsigned char)((uint64_t)(i + 1) * 2654435761u >> 13 ^ seed * 91u);
}

/* Copies n bytes up and down, between host addresses that are `up` and `down` bytes off alignment.
   Returns NULL, or what is wrong. */
static const char *copy_around(int64_t n, int up, int down, unsigned seed, dvt_ctx ctx) {
    const size_t size = (size_t)n + 2 * GUARD;
    unsigned char *values = (unsigned char *)malloc(size);
    unsigned char *got = (unsigned char *)malloc(size), *first = got + down;
    const char *wrong = NULL;
    dvt_array *x;
    int64_t i;
    for (i = 0; i < n; i++)
        values[up + i] = byte_at(i, seed);
    memset(got, UNTOUCHED, size);
    x = dvt_from_host(values + up, DVT_SHAPE(n), DVT_U8, ctx);
    memset(values, 0, size); /* the copy must not read it any more */
    if (!x || dvt_to_host(x, first, n) != DVT_OK)
        wrong = "a copy failed";
    for (i = 0; i < n && !wrong; i++)
        if (first[i] != byte_at(i, seed))
            wrong = "a byte differs";
    for (i = 0; i < (int64_t)size && !wrong; i++)
        if ((i < down || i >= down + n) && got[i] != UNTOUCHED)
            wrong = "a byte outside was written";
    free(values);
    free(got);
    return wrong;
}

DVT_TEST(gpu_host_copies_meet_at_borders) {
    static const int threads[] = {1, 2, 3, 7};
    static const int64_t sizes[] = {(1 << 16) + 1, 100001,    131072,         CHUNK - 1,
                                    CHUNK,         CHUNK + 1, 2 * CHUNK + 63, 3 * CHUNK + 65};
    size_t t, k;
    NEEDS_GPU;
    for (t = 0; t < sizeof threads / sizeof *threads; t++) {
        CHECK_INT(dvt_set_num_threads(threads[t]), DVT_OK);
        for (k = 0; k < sizeof sizes / sizeof *sizes; k++)
            DVT_SCOPE {
                const char *wrong = copy_around(sizes[k], (int)(k * 5 % 17), (int)(t + k * 3),
                                                (unsigned)(t * 8 + k), dvt_gpu(0));
                dvt_test_check(!wrong, __FILE__, __LINE__, "%lld bytes, %d threads: %s",
                               (long long)sizes[k], threads[t], wrong ? wrong : "");
            }
    }
    dvt_set_num_threads(0);
}

/* A float32 array at any address, although arrays of cpu() are aligned. */
DVT_TEST(gpu_host_copies_to_unaligned_memory) {
    const int64_t n = 100000;
    char *bytes = (char *)malloc((size_t)n * 4 + 4);
    float value;
    int64_t i;
    int off;
    dvt_array *x;
    NEEDS_GPU;
    x = dvt_arange(0, (double)n, 1, DVT_F32, dvt_gpu(0));
    for (off = 0; off < 4; off++) {
        memset(bytes, UNTOUCHED, (size_t)n * 4 + 4);
        CHECK_INT(dvt_to_host(x, bytes + off, n * 4), DVT_OK);
        for (i = 0; i < n; i++) {
            memcpy(&value, bytes + off + 4 * i, sizeof value);
            if (!CHECK(value == (float)i))
                break;
        }
    }
    free(bytes);
}

#if defined(__linux__)
static int threads_of_the_process(void) {
    DIR *folder = opendir("/proc/self/task");
    struct dirent *task;
    int n = 0;
    while (folder && (task = readdir(folder)) != NULL)
        n += task->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return n;
}

/* A job changes the pool to the number of threads that is set. So does a copy, in either
   direction, unless the pool has just lost time to other processes. */
static int copies_change_the_pool(dvt_array *x, void *values, int64_t n, int up, int threads) {
    const double begin = dvt_seconds();
    const int before = threads_of_the_process();
    dvt_set_num_threads(threads);
    do {
        if ((up ? dvt_set_from_host(x, values, n) : dvt_to_host(x, values, n)) != DVT_OK)
            return 0;
        if (threads_of_the_process() > before)
            return 1;
    } while (dvt_seconds() - begin < 10);
    return 0;
}

DVT_TEST(gpu_host_copies_use_the_thread_pool) {
    const int64_t n = 2 * CHUNK;
    void *values = calloc(1, (size_t)n);
    dvt_array *x;
    NEEDS_GPU;
    x = dvt_zeros(DVT_SHAPE(n), DVT_U8, dvt_gpu(0));
    CHECK_INT(dvt_wait(x), DVT_OK);
    CHECK(copies_change_the_pool(x, values, n, 1, dvt_num_threads() + 2));
    CHECK(copies_change_the_pool(x, values, n, 0, dvt_num_threads() + 2));
    dvt_set_num_threads(0);
    free(values);
}
#endif

/* ---- threads at once ---- */
static void *copy_in_a_thread(void *user) {
    const int id = *(int *)user;
    int i;
    for (i = 0; i < 4; i++)
        DVT_SCOPE {
            const char *wrong = copy_around(2 * CHUNK + 1000 * id + i, id, i,
                                            (unsigned)(id * 4 + i), dvt_gpu(id % dvt_num_gpus()));
            if (wrong) {
                fprintf(stderr, "thread %d, copy %d: %s: %s\n", id, i, wrong, dvt_error());
                dvt_clear_error();
                return "wrong";
            }
        }
    return NULL;
}

/* One pool serves the copies of all threads and the kernels on cpu(): who finds it busy copies
   alone. */
DVT_TEST(gpu_host_copies_of_threads_at_once) {
    pthread_t thread[4];
    int id[4], i;
    NEEDS_GPU;
    CHECK_INT(dvt_set_num_threads(3), DVT_OK);
    for (i = 0; i < 4; i++) {
        id[i] = i;
        CHECK_INT(pthread_create(&thread[i], NULL, copy_in_a_thread, &id[i]), 0);
    }
    for (i = 0; i < 50; i++)
        DVT_SCOPE {
            CHECK_INT(
                (int)dvt_item(dvt_sum(dvt_ones(DVT_SHAPE(300000), DVT_F32, dvt_cpu()), DVT_ALL)),
                300000);
        }
    for (i = 0; i < 4; i++) {
        void *result = NULL;
        pthread_join(thread[i], &result);
        CHECK(result == NULL); /* a thread that failed has printed why */
    }
    dvt_set_num_threads(0);
}

/* ---- failures of the simulated driver ---- */
static int copy_fails(const char *name, int nth, dvt_array *x, void *values, int64_t n, int up) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *symbol = dlsym(driver, "sim_fail");
    sim_fail_fn *fail;
    dvt_status status;
    memcpy(&fail, &symbol, sizeof symbol);
    fail(name, nth, 1); /* CUDA_ERROR_INVALID_VALUE, which leaves the context as it was */
    status = up ? dvt_set_from_host(x, values, n) : dvt_to_host(x, values, n);
    if (status == DVT_OK || !strstr(dvt_error(), up ? "upload" : "download"))
        return 0;
    dvt_clear_error();
    return 1;
}

/* The first, a middle and the last chunk. After each failure, all staging buffers are usable. */
DVT_TEST(gpu_host_copies_that_fail) {
    static const char *const call[2][2] = {{"cuMemcpyDtoHAsync_v2", "cuEventRecord"},
                                           {"cuMemcpyHtoDAsync_v2", "cuEventRecord"}};
    const int64_t n = 5 * CHUNK - 77;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *values;
    dvt_array *x;
    int up, which, nth;
    NEEDS_GPU;
    if (!driver || !dlsym(driver, "sim_fail"))
        SKIP("not the simulated driver");
    CHECK_INT(dvt_set_num_threads(3), DVT_OK);
    values = calloc(1, (size_t)n);
    x = dvt_zeros(DVT_SHAPE(n), DVT_U8, dvt_gpu(0));
    CHECK_INT(dvt_wait(x), DVT_OK);
    for (up = 0; up < 2; up++)
        for (which = 0; which < 2; which++)
            for (nth = 1; nth <= 5; nth += 2)
                DVT_SCOPE {
                    const char *wrong;
                    CHECK(copy_fails(call[up][which], nth, x, values, n, up));
                    wrong = copy_around(n, 3, 5, (unsigned)nth, dvt_gpu(0));
                    dvt_test_check(!wrong, __FILE__, __LINE__, "after failing %s, call %d: %s",
                                   call[up][which], nth, wrong ? wrong : "");
                }
    dvt_set_num_threads(0);
    free(values);
}
#endif
