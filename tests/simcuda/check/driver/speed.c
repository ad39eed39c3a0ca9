/* Measures how fast kernels run; not a test. usage: speed [repeats] */
#include "check.h"
#include <time.h>

static CUmodule m;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* excludes other load on the machine */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void measure(const char *name, unsigned gx, unsigned gy, unsigned bx, unsigned by,
                    void **args, int repeats) {
    CUfunction f = check_kernel(m, name);
    double threads = (double)gx * gy * bx * by, best = 1e9;
    for (int i = 0; i < repeats; i++) {
        double start = now();
        OK(CU(cuLaunchKernel)(f, gx, gy, 1, bx, by, 1, 0, NULL, args, NULL));
        OK(CU(cuCtxSynchronize)());
        best = now() - start < best ? now() - start : best;
    }
    printf("%-8s %9.0f threads %8.2f ms %7.2f Mthread/s\n", name, threads, 1e3 * best,
           threads / best * 1e-6);
}

int main(int argc, char **argv) {
    enum { N = 1 << 20, M = 128 };

    int repeats = argc > 1 ? atoi(argv[1]) : 3, n = N, size = M;
    CUdeviceptr x, y, z;
    check_start();
    m = check_module();
    OK(CU(cuMemAlloc_v2)(&x, 4 * N));
    OK(CU(cuMemAlloc_v2)(&y, 4 * N));
    OK(CU(cuMemAlloc_v2)(&z, 4 * N));
    OK(CU(cuMemsetD8_v2)(x, 0, 4 * N));
    OK(CU(cuMemsetD8_v2)(y, 0, 4 * N));
    void *add[] = {&x, &y, &n}, *reduce[] = {&x, &z, &n}, *matmul[] = {&x, &y, &z, &size};
    measure("add", N / 256, 1, 256, 1, add, repeats);
    measure("reduce", N / 256, 1, 256, 1, reduce, repeats);
    measure("matmul", M / 16, M / 16, 16, 16, matmul, repeats);
    return check_finish();
}
