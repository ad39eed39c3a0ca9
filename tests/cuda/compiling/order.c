/* While one thread's kernel is compiled, another thread uses the same GPU: it copies to a second
   one, computes, and waits. The kernel is then queued. A copy of its result must come after it;
   under the lazy order of the simulated driver a missing wait always gives NaN. The trace must have
   the time of each launch. usage: order TRACE, the file to write. Prints "ok". */
#include "common.h"
#include <pthread.h>

static void *compute(void *user) {
    return dvt_retain(dvt_neg((dvt_array *)user));
}

/* Returns the sum of the elements on gpu(1). */
static double sum_of_copy(dvt_array *x, int n) {
    float numbers[8] = {0};
    double sum = 0;
    int i;
    require(dvt_to_host(dvt_copyto(x, dvt_gpu(1)), numbers, sizeof numbers) == DVT_OK, "a copy");
    for (i = 0; i < n; i++)
        sum += numbers[i];
    return sum;
}

/* Returns how many times of launches of an operation the trace has. */
static int times(const char *path, const char *operation) {
    char line[4096], start[100];
    FILE *file = fopen(path, "r");
    int n = 0;
    require(file != NULL, path);
    snprintf(start, sizeof start, "{\"name\":\"%s\",\"cat\":\"queue\"", operation);
    while (fgets(line, sizeof line, file))
        n += strncmp(line, start, strlen(start)) == 0;
    fclose(file);
    return n;
}

int main(int argc, char **argv) {
    void *nvrtc = dlopen(getenv("DEVTENSOR_NVRTC_PATH"), RTLD_NOW | RTLD_LOCAL), *result = NULL;
    float numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    dvt_array *x, *y;
    pthread_t thread;
    require(nvrtc != NULL, "the double of NVRTC");
    x = dvt_retain(dvt_from_host(numbers, DVT_SHAPE(8), DVT_F32, dvt_gpu(0)));
    require(x != NULL, "dvt_from_host");
    require(argc == 2 && dvt_trace_begin(argv[1]) == DVT_OK, "the trace");
    require(dvt_wait(dvt_exp(x)) == DVT_OK, "dvt_exp");
    named(nvrtc, "pausing_nvrtc_start")();
    require(pthread_create(&thread, NULL, compute, x) == 0, "pthread_create");
    named(nvrtc, "pausing_nvrtc_begun")();
    require(sum_of_copy(x, 8) == 36, "a copy during the compilation has other values");
    require(dvt_wait(dvt_exp(x)) == DVT_OK && dvt_exp(x), "dvt_exp during the compilation");
    named(nvrtc, "pausing_nvrtc_end")();
    require(pthread_join(thread, &result) == 0 && result, "pthread_join");
    y = (dvt_array *)result;
    require(sum_of_copy(y, 8) == -36, "a copy of the kernel's result was made before the kernel");
    dvt_release(y);
    dvt_release(x);
    require(dvt_wait_all() == DVT_OK && dvt_trace_end() == DVT_OK, "the end of the trace");
    require(times(argv[1], "dvt_exp") == 3, "the times of dvt_exp");
    require(times(argv[1], "dvt_neg") == 1, "the time of the kernel");
    puts("ok");
    return 0;
}
