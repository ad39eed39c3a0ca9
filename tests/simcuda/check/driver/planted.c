/* Kernels with one mistake each. Every mistake must be reported with the right error code under
   every order. */
#include "check.h"

static CUmodule m;
static CUstream s;
static CUdeviceptr x, ticket;

typedef struct plant {
    const char *kernel;
    unsigned grid, block;
    CUresult code;
    const char *says;
} plant;

static const plant plants[] = {
    {"no_barrier", 1, 64, CUDA_ERROR_LAUNCH_FAILED, "shared-memory race"},
    {"overwritten", 1, 64, CUDA_ERROR_LAUNCH_FAILED, "shared-memory race"},
    {"warp_synchronous", 1, 32, CUDA_ERROR_LAUNCH_FAILED, "shared-memory race"},
    {"half_syncwarp", 1, 32, CUDA_ERROR_LAUNCH_FAILED, "shared-memory race"},
    {"divergent_barrier", 1, 64, CUDA_ERROR_LAUNCH_FAILED, "divergent barrier"},
    {"barrier_after_exit", 1, 64, CUDA_ERROR_LAUNCH_FAILED, "barrier after exit"},
    {"bad_mask", 1, 32, CUDA_ERROR_LAUNCH_FAILED, "bad mask"},
    {"bad_mask", 1, 16, CUDA_ERROR_LAUNCH_FAILED, "do not exist"},
    {"not_in_mask", 1, 32, CUDA_ERROR_LAUNCH_FAILED, "bad mask"},
    {"tangled", 1, 32, CUDA_ERROR_LAUNCH_FAILED, "deadlock"},
    {"beyond_shared", 1, 32, CUDA_ERROR_ILLEGAL_ADDRESS, "shared memory"},
    {"blocks_write", 4, 1, CUDA_ERROR_LAUNCH_FAILED, "global-memory race"},
    {"blocks_read", 4, 16, CUDA_ERROR_LAUNCH_FAILED, "global-memory race"},
    {"one_writes", 4, 1, CUDA_ERROR_LAUNCH_FAILED, "global-memory race"},
    {"peek", 4, 8, CUDA_ERROR_LAUNCH_FAILED, "global-memory race"},
    {"write_constant", 1, 4, CUDA_ERROR_ILLEGAL_ADDRESS, "constant"},
    {"wild", 1, 1, CUDA_ERROR_ILLEGAL_ADDRESS, "not device memory"},
    {"endless", 1, 1, CUDA_ERROR_LAUNCH_FAILED, "stack overflow"},
    {"assertion", 1, 1, CUDA_ERROR_ASSERT, "x > 0"},
};

/* Checks that the launch itself succeeds, and that the error appears at the wait and stays. */
static void caught(const char *kernel, CUresult code, const char *text) {
    CUresult got = CU(cuStreamSynchronize)(s);
    CHECK(got == code, "%s: %d, expected %d (%s)", kernel, got, code, check_last_error());
    CHECK(strstr(check_last_error(), text), "%s: '%s' does not say '%s'", kernel,
          check_last_error(), text);
    CHECK(strstr(check_last_error(), kernel), "'%s' does not name %s", check_last_error(), kernel);
    GIVES(code, CU(cuMemcpyHtoD_v2)(x, "1234", 4));
    GIVES(code, CU(cuCtxSynchronize)());
    CTL(sim_reset_device)(0);
}

static void run(const plant *p) {
    void *args[] = {&x};
    check_last_error();
    CTL(sim_clear_error)();
    CUresult code = CU(cuLaunchKernel)(check_kernel(m, p->kernel), p->grid, 1, 1, p->block, 1, 1, 0,
                                       s, args, NULL);
    CHECK(code == CUDA_SUCCESS || code == p->code, "%s: launch gave %d", p->kernel, code);
    caught(p->kernel, p->code, p->says);
}

static void no_fence(void) {
    int n = 0;
    CUdeviceptr sums = x + 64, total = x;
    void *args[] = {&x, &sums, &total, &ticket, &n};
    OK(CU(cuMemsetD32Async)(ticket, 0, 1, s));
    CU(cuLaunchKernel)
    (check_kernel(m, "ticket_without_fence"), 8, 1, 1, 32, 1, 1, 0, s, args, NULL);
    caught("ticket_without_fence", CUDA_ERROR_LAUNCH_FAILED, "global-memory race");
}

static void spinning(void) {
    void *args[] = {&ticket, &x};
    CU(cuLaunchKernel)(check_kernel(m, "spin"), 2, 1, 1, 8, 1, 1, 0, s, args, NULL);
    caught("spin", CUDA_ERROR_LAUNCH_TIMEOUT, "does not end");
}

/* Bounds to the byte: 1001 bytes hold 250 floats and one byte. */
static void off_by_one(void) {
    CUdeviceptr p = 0, q = 0;
    float v = 1;
    int n = 250;
    void *fill[] = {&p, &v, &n}, *add[] = {&q, &p, &n};
    OK(CU(cuMemAlloc_v2)(&p, 1001));
    OK(CU(cuMemAlloc_v2)(&q, 8000));
    OK(CU(cuLaunchKernel)(check_kernel(m, "fill"), 1, 1, 1, 256, 1, 1, 0, s, fill, NULL));
    OK(CU(cuStreamSynchronize)(s));
    n = 251;
    CU(cuLaunchKernel)(check_kernel(m, "fill"), 1, 1, 1, 256, 1, 1, 0, s, fill, NULL);
    caught("fill", CUDA_ERROR_ILLEGAL_ADDRESS, "3 bytes past the end of allocation");
    OK(CU(cuMemsetD8Async)(q, 0, 8000, s));
    CU(cuLaunchKernel)(check_kernel(m, "add"), 1, 1, 1, 256, 1, 1, 0, s, add, NULL);
    caught("add", CUDA_ERROR_ILLEGAL_ADDRESS, "read: 4 bytes at");
    OK(CU(cuMemFree_v2)(q));
    n = 250;
    OK(CU(cuMemFree_v2)(p));
    CU(cuLaunchKernel)(check_kernel(m, "fill"), 1, 1, 1, 256, 1, 1, 0, s, fill, NULL);
    caught("fill", CUDA_ERROR_ILLEGAL_ADDRESS, "use after free");
}

static void other_device(void) {
    CUcontext zero, one;
    CUdeviceptr p = 0;
    float v = 1;
    int n = 4;
    void *args[] = {&p, &v, &n};
    OK(CU(cuCtxGetCurrent)(&zero));
    one = check_device(1);
    OK(CU(cuMemAlloc_v2)(&p, 16));
    OK(CU(cuCtxSetCurrent)(zero));
    CU(cuLaunchKernel)(check_kernel(m, "fill"), 1, 1, 1, 32, 1, 1, 0, s, args, NULL);
    caught("fill", CUDA_ERROR_ILLEGAL_ADDRESS, "without peer access");
    OK(CU(cuCtxEnablePeerAccess)(one, 0));
    GIVES(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, CU(cuCtxEnablePeerAccess)(one, 0));
    OK(CU(cuLaunchKernel)(check_kernel(m, "fill"), 1, 1, 1, 32, 1, 1, 0, s, args, NULL));
    OK(CU(cuStreamSynchronize)(s));
    OK(CU(cuCtxDisablePeerAccess)(one));
    CU(cuLaunchKernel)(check_kernel(m, "fill"), 1, 1, 1, 32, 1, 1, 0, s, args, NULL);
    caught("fill", CUDA_ERROR_ILLEGAL_ADDRESS, "without peer access");
    GIVES(CUDA_ERROR_INVALID_VALUE, CU(cuMemFree_v2)(p));
    OK(CU(cuDevicePrimaryCtxRelease_v2)(1));
}

static void all(const char *policy, uint64_t seed) {
    check_policy(policy, seed);
    for (size_t i = 0; i < sizeof plants / sizeof *plants; i++)
        run(&plants[i]);
    no_fence();
    spinning();
    off_by_one();
    other_device();
}

int main(void) {
    setenv("SIMCUDA_QUANTA", "20000", 0);
    check_start();
    m = check_module();
    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    OK(CU(cuMemAlloc_v2)(&x, 16384));
    OK(CU(cuMemAlloc_v2)(&ticket, 4));
    OK(CU(cuMemsetD8_v2)(ticket, 0, 4));
    all("lazy", 1);
    all("eager", 1);
    for (uint64_t seed = 1; seed <= 5; seed++)
        all("random", seed);
    return check_finish();
}
