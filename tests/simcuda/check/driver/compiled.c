/* Real kernels from source to execution: the test double of NVRTC compiles kernels.cu, the driver
   runs it. Correct kernels stay silent under every order; incorrect ones are reported. Skips
   without NVRTC. */
#include "check.h"
#include <nvrtc.h>

enum { SEEDS = 20, N = 5000 };

static void *compiler;
static CUmodule m;
static CUstream s;

#define RTC(name) ((__typeof__(&name))dlsym(compiler, #name))

static char *text_of(const char *path) {
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 16);
    if (!file || !text || fread(text, 1, (1 << 16) - 1, file) == 0) {
        printf("%s cannot be read\n", path);
        exit(1);
    }
    fclose(file);
    return text;
}

static void load_ptx(nvrtcProgram p);

static int compile(void) {
    const char *options[] = {"--gpu-architecture=sm_80", "-lineinfo"},
               *path = getenv("SIM_CHECK_SOURCE");
    nvrtcProgram p;
    size_t size = 0;
    char *source = text_of(path ? path : "tests/simcuda/check/driver/kernels.cu"), *image;
    nvrtcResult code;
    compiler = dlopen("libnvrtc.so.13", RTLD_NOW);
    if (!compiler) {
        printf("SKIP compiled: %s\n0 passed, 0 failed, 1 skipped\n", dlerror());
        exit(0);
    }
    if (RTC(nvrtcCreateProgram)(&p, source, "kernels.cu", 0, NULL, NULL) != NVRTC_SUCCESS) {
        printf("SKIP compiled: no NVRTC behind its double\n0 passed, 0 failed, 1 skipped\n");
        exit(0);
    }
    code = RTC(nvrtcCompileProgram)(p, 2, options);
    RTC(nvrtcGetProgramLogSize)(p, &size);
    image = calloc(1, size + 1);
    RTC(nvrtcGetProgramLog)(p, image);
    CHECK(code == NVRTC_SUCCESS, "compiling gave %d: %s", (int)code, image);
    free(image);
    if (code != NVRTC_SUCCESS)
        return 0;
    CHECK(RTC(nvrtcGetCUBINSize)(p, &size) == NVRTC_SUCCESS, "no image");
    image = malloc(size);
    RTC(nvrtcGetCUBIN)(p, image);
    OK(CU(cuModuleLoadData)(&m, image));
    free(image);
    free(source);
    load_ptx(p);
    RTC(nvrtcDestroyProgram)(&p);
    return 1;
}

/* The PTX of the same source, compiled by the driver. */
static CUmodule from_ptx;

static void load_ptx(nvrtcProgram p) {
    size_t size = 0;
    char *ptx, log[500] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    CHECK(RTC(nvrtcGetPTXSize)(p, &size) == NVRTC_SUCCESS, "no PTX");
    ptx = calloc(1, size + 1);
    RTC(nvrtcGetPTX)(p, ptx);
    OK(CU(cuModuleLoadDataEx)(&from_ptx, ptx, 2, options, values));
    strcpy(strstr(ptx, ".visible"), "nonsense");
    CUmodule none;
    values[1] = (void *)sizeof log;
    GIVES(CUDA_ERROR_INVALID_PTX, CU(cuModuleLoadDataEx)(&none, ptx, 2, options, values));
    CHECK(strlen(log) > 5 && (size_t)values[1] == strlen(log), "log '%s' of %zu", log,
          (size_t)values[1]);
    free(ptx);
}

static CUdeviceptr device(const void *h, size_t bytes) {
    CUdeviceptr p = 0;
    OK(CU(cuMemAlloc_v2)(&p, bytes));
    if (h)
        OK(CU(cuMemcpyHtoD_v2)(p, h, bytes));
    else
        OK(CU(cuMemsetD8Async)(p, 0, bytes,
                               s)); /* not on the null stream, where nothing orders s after it */
    return p;
}

static void take(void *h, CUdeviceptr p, size_t bytes) {
    OK(CU(cuStreamSynchronize)(s));
    OK(CU(cuMemcpyDtoH_v2)(h, p, bytes));
    OK(CU(cuMemFree_v2)(p));
}

static void launch(const char *name, unsigned gx, unsigned gy, unsigned bx, unsigned by,
                   unsigned dynamic, void **args) {
    OK(CU(cuLaunchKernel)(check_kernel(m, name), gx, gy, 1, bx, by, 1, dynamic, s, args, NULL));
}

/* ---- correct kernels ---- */

static void totals(void) {
    static float x[N];
    float want = 0, got = 0;
    int n = N;
    for (int i = 0; i < N; i++)
        want += x[i] = (float)(i % 11);
    CUdeviceptr dx = device(x, sizeof x), sums = device(NULL, 4 * 16), out = device(NULL, 4);
    void *args[] = {&dx, &sums, &out, &n};
    launch("total", 16, 1, 128, 1, 0, args);
    launch("total", 16, 1, 128, 1, 0, args); /* the counter is reset for the next launch */
    take(&got, out, 4);
    CHECK(got == want, "total %g, expected %g", got, want);
    OK(CU(cuMemFree_v2)(dx));
    OK(CU(cuMemFree_v2)(sums));
}

static void products(void) {
    enum { M = 37 };

    static float a[M * M], b[M * M], c[M * M];
    int n = M, wrong = 0;
    for (int i = 0; i < M * M; i++) {
        a[i] = (float)(i % 7);
        b[i] = (float)(i % 5);
    }
    CUdeviceptr da = device(a, sizeof a), db = device(b, sizeof b), dc = device(NULL, sizeof c);
    void *args[] = {&da, &db, &dc, &n};
    launch("matmul", 3, 3, 16, 16, 0, args);
    take(c, dc, sizeof c);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < M; j++) {
            float want = 0;
            for (int k = 0; k < M; k++)
                want += a[M * i + k] * b[M * k + j];
            wrong += c[M * i + j] != want;
        }
    CHECK(wrong == 0, "matmul: %d wrong", wrong);
    OK(CU(cuMemFree_v2)(da));
    OK(CU(cuMemFree_v2)(db));
}

static void in_shared(void) {
    unsigned short x[128], sum = 0;
    static float t[1024];
    int wrong = 0;
    for (int i = 0; i < 128; i++)
        x[i] = (unsigned short)(i % 9);
    CUdeviceptr p = device(x, sizeof x);
    void *args[] = {&p};
    launch("scan", 1, 1, 128, 1, sizeof x, args);
    take(x, p, sizeof x);
    for (int i = 0; i < 128; i++)
        wrong += x[i] != (sum = (unsigned short)(sum + i % 9));
    CHECK(wrong == 0, "scan: %d wrong", wrong);
    for (int i = 0; i < 1024; i++)
        t[i] = (float)i;
    p = device(t, sizeof t);
    launch("transpose_warp", 1, 1, 32, 1, 0, args);
    take(t, p, sizeof t);
    for (int i = 0; i < 1024; i++)
        wrong += t[i] != (float)(i % 32 * 32 + i / 32);
    CHECK(wrong == 0, "transpose: %d wrong", wrong);
}

static void between_blocks(void) {
    float x[256];
    int out[32], wrong = 0, steps = 3;
    for (int i = 0; i < 256; i++)
        x[i] = (float)i;
    CUdeviceptr p = device(x, sizeof x), arrived = device(NULL, 4);
    void *args[] = {&p, &arrived, &steps};
    OK(CU(cuLaunchCooperativeKernel)(check_kernel(m, "rotate"), 4, 1, 1, 64, 1, 1, 0, s, args));
    take(x, p, sizeof x);
    for (int i = 0; i < 256; i++)
        wrong += x[i] != (float)((i + 3) % 256);
    CHECK(wrong == 0, "rotate: %d wrong", wrong);
    CUdeviceptr data = device(NULL, 128), flag = device(NULL, 4), result = device(NULL, 128);
    void *more[] = {&data, &flag, &result};
    launch("producer_consumer", 6, 1, 32, 1, 0, more);
    take(out, result, sizeof out);
    for (int i = 0; i < 32; i++)
        wrong += out[i] != 3 * i;
    CHECK(wrong == 0, "producer and consumer: %d wrong", wrong);
    OK(CU(cuMemFree_v2)(arrived));
    OK(CU(cuMemFree_v2)(data));
    OK(CU(cuMemFree_v2)(flag));
}

static void just_in_time(void) {
    float x[100], y[100];
    int n = 100, wrong = 0;
    for (int i = 0; i < n; i++)
        x[i] = y[i] = (float)i;
    CUdeviceptr dx = device(x, sizeof x), dy = device(y, sizeof y);
    void *args[] = {&dx, &dy, &n};
    OK(CU(cuLaunchKernel)(check_kernel(from_ptx, "add"), 1, 1, 1, 128, 1, 1, 0, s, args, NULL));
    take(x, dx, sizeof x);
    for (int i = 0; i < n; i++)
        wrong += x[i] != (float)(2 * i);
    CHECK(wrong == 0, "from PTX: %d wrong", wrong);
    OK(CU(cuMemFree_v2)(dy));
}

static void right(const char *policy, uint64_t seed) {
    long before = check_failed;
    check_policy(policy, seed);
    totals();
    products();
    in_shared();
    between_blocks();
    just_in_time();
    if (check_failed > before)
        printf("policy %s, seed %llu\n", policy, (unsigned long long)seed);
}

/* ---- incorrect kernels ---- */

typedef struct plant {
    const char *kernel;
    unsigned grid, block;
    CUresult code;
    const char *says;
} plant;

static const plant plants[] = {
    {"no_barrier", 1, 64, CUDA_ERROR_LAUNCH_FAILED, "shared-memory race"},
    {"warp_synchronous", 1, 32, CUDA_ERROR_LAUNCH_FAILED, "shared-memory race"},
    {"divergent_barrier", 1, 64, CUDA_ERROR_LAUNCH_FAILED, "divergent barrier"},
    {"barrier_after_exit", 1, 64, CUDA_ERROR_LAUNCH_FAILED, "barrier after exit"},
    {"bad_mask", 1, 32, CUDA_ERROR_LAUNCH_FAILED, "bad mask"},
    {"beyond", 1, 32, CUDA_ERROR_ILLEGAL_ADDRESS, "past the end of allocation"},
    {"before", 1, 32, CUDA_ERROR_ILLEGAL_ADDRESS, "start 4 bytes before allocation"},
    {"blocks_overlap", 4, 32, CUDA_ERROR_LAUNCH_FAILED, "global-memory race"},
    {"blocks_write", 4, 32, CUDA_ERROR_LAUNCH_FAILED, "global-memory race"},
    {"no_fence", 4, 32, CUDA_ERROR_LAUNCH_FAILED, "global-memory race"},
    {"spin", 1, 1, CUDA_ERROR_LAUNCH_TIMEOUT, "does not end"},
};

static void wrong(const plant *p) {
    CUdeviceptr x = device(NULL, 16384), y = device(NULL, 16384), z = device(NULL, 16384);
    void *args[] = {&x, &y, &z};
    CUresult code = CU(cuLaunchKernel)(check_kernel(m, p->kernel), p->grid, 1, 1, p->block, 1, 1, 0,
                                       s, args, NULL);
    CHECK(code == CUDA_SUCCESS || code == p->code, "%s: launch gave %d", p->kernel, code);
    GIVES(p->code, CU(cuStreamSynchronize)(s));
    SAYS(p->says);
    SAYS(p->kernel);
    SAYS("kernels.cu:"); /* the line, because the source was compiled with -lineinfo */
    CTL(sim_reset_device)(0);
    OK(CU(cuMemFree_v2)(x));
    OK(CU(cuMemFree_v2)(y));
    OK(CU(cuMemFree_v2)(z));
}

int main(void) {
    sim_stats before, after;
    setenv("SIMCUDA_QUANTA", "20000", 0);
    check_start();
    if (!compile())
        return check_finish();
    CTL(sim_get_stats)(&before); /* the rejected PTX counts as one */
    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    right("lazy", 1);
    right("eager", 1);
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        right("random", seed);
    CTL(sim_get_stats)(&after);
    CHECK(after.bugs == before.bugs, "bugs found: %s", check_last_error());
    for (size_t i = 0; i < sizeof plants / sizeof *plants; i++)
        for (uint64_t seed = 0; seed < 6; seed++) {
            check_policy(seed ? "random" : "lazy", seed);
            wrong(&plants[i]);
        }
    return check_finish();
}
