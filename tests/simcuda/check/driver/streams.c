/* Stream order: incorrect programs must fail, correct ones must not; default streams, events, host
   functions. */
#include "check.h"
#include <pthread.h>

enum { N = 256, TRIALS = 50 };

static CUmodule m;
static CUfunction fill, add;
static CUstream a, b;
static CUdeviceptr x, y;
static CUevent e;
static float *pinned;

static void set(CUstream s, CUdeviceptr p, float v) {
    int n = N;
    void *args[] = {&p, &v, &n};
    OK(CU(cuLaunchKernel)(fill, 2, 1, 1, 128, 1, 1, 0, s, args, NULL));
}

static void plus(CUstream s, CUdeviceptr p, CUdeviceptr q) {
    int n = N;
    void *args[] = {&p, &q, &n};
    OK(CU(cuLaunchKernel)(add, 2, 1, 1, 128, 1, 1, 0, s, args, NULL));
}

static float first(CUdeviceptr p) {
    float v = 0;
    OK(CU(cuCtxSynchronize)());
    OK(CU(cuMemcpyDtoH_v2)(&v, p, 4));
    return v;
}

/* Returns how many of 50 runs give a result other than 3. */
static int wrong(int (*program)(void), const char *policy) {
    int n = 0;
    for (uint64_t trial = 1; trial <= TRIALS; trial++) {
        check_policy("eager", 1);
        set(a, x, 1);
        set(a, y, 1);
        OK(CU(cuCtxSynchronize)());
        check_policy(policy, trial);
        n += !program();
        OK(CU(cuCtxSynchronize)());
    }
    return n;
}

static int no_event(void) {
    set(a, x, 2);
    plus(b, y, x);
    return first(y) == 3;
}

static int with_event(void) {
    set(a, x, 2);
    OK(CU(cuEventRecord)(e, a));
    OK(CU(cuStreamWaitEvent)(b, e, 0));
    plus(b, y, x);
    return first(y) == 3;
}

/* The staging buffer is refilled before the copy has read it. */
static int stale_staging(void) {
    for (int i = 0; i < N; i++)
        pinned[i] = 3;
    OK(CU(cuMemcpyHtoDAsync_v2)(y, pinned, 4 * N, a));
    for (int i = 0; i < N; i++)
        pinned[i] = 7;
    return first(y) == 3;
}

static int waited_staging(void) {
    for (int i = 0; i < N; i++)
        pinned[i] = 3;
    OK(CU(cuMemcpyHtoDAsync_v2)(y, pinned, 4 * N, a));
    OK(CU(cuEventRecord)(e, a));
    OK(CU(cuEventSynchronize)(e));
    for (int i = 0; i < N; i++)
        pinned[i] = 7;
    return first(y) == 3;
}

static int pageable(void) {
    float h[N];
    for (int i = 0; i < N; i++)
        h[i] = 3;
    OK(CU(cuMemcpyHtoDAsync_v2)(y, h, sizeof h, a));
    memset(h, 0, sizeof h);
    return first(y) == 3;
}

static int read_too_early(void) {
    set(a, y, 3);
    OK(CU(cuMemcpyDtoHAsync_v2)(pinned, y, 4 * N, a));
    return pinned[0] == 3;
}

/* One buffer in and out: the second copy does not overwrite the bytes that the first one needs. */
static int in_place(void) {
    for (int i = 0; i < N; i++)
        pinned[i] = 2;
    OK(CU(cuMemcpyHtoDAsync_v2)(x, pinned, 4 * N, a));
    plus(a, x, y);
    OK(CU(cuMemcpyDtoHAsync_v2)(pinned, x, 4 * N, a));
    OK(CU(cuStreamSynchronize)(a));
    return pinned[0] == 3;
}

static void orders(void) {
    struct {
        const char *name;
        int (*program)(void);
        int lazy, eager, random; /* wrong runs: exactly, exactly, at least */
    } cases[] = {
        {"no event", no_event, TRIALS, 0, 10},
        {"with event", with_event, 0, 0, 0},
        {"stale staging", stale_staging, TRIALS, 0, 10},
        {"waited staging", waited_staging, 0, 0, 0},
        {"pageable", pageable, 0, 0, 0},
        {"read too early", read_too_early, TRIALS, 0, 10},
        {"in place", in_place, 0, 0, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int lazy = wrong(cases[i].program, "lazy"), eager = wrong(cases[i].program, "eager");
        int random = wrong(cases[i].program, "random");
        CHECK(lazy == cases[i].lazy, "%s, lazy: %d wrong", cases[i].name, lazy);
        CHECK(eager == cases[i].eager, "%s, eager: %d wrong", cases[i].name, eager);
        CHECK(cases[i].random ? random >= cases[i].random : random == 0, "%s, random: %d wrong",
              cases[i].name, random);
    }
}

/* ---- default streams ---- */

static int through_null(void) { /* blocking stream, legacy stream, blocking stream: in this order */
    static CUstream c, d;
    if (!c) {
        OK(CU(cuStreamCreate)(&c, 0));
        OK(CU(cuStreamCreate)(&d, 0));
    }
    set(c, x, 1);
    plus(NULL, x, y);
    set(d, y, 2);
    plus(CU_STREAM_LEGACY, x, y);
    CHECK(first(x) == 4, "x is %g", first(x));
    set(CU_STREAM_PER_THREAD, x, 2);
    plus(NULL, y, x);
    return first(y) == 4;
}

static int around_null(void) { /* a non-blocking stream does not wait for the legacy one */
    set(NULL, x, 2);
    plus(a, y, x);
    return first(y) == 3;
}

static void default_streams(void) {
    CHECK(wrong(through_null, "lazy") == 0 && wrong(through_null, "random") == 0,
          "the legacy stream orders");
    CHECK(wrong(around_null, "lazy") > 0 || wrong(around_null, "random") > 0,
          "non-blocking streams do not");
}

/* ---- events ---- */

static void events(void) {
    CUevent quiet, f;
    float ms = -1;
    check_policy("lazy", 1);
    OK(CU(cuEventCreate)(&f, 0));
    OK(CU(cuEventCreate)(&quiet, CU_EVENT_DISABLE_TIMING));
    OK(CU(cuEventQuery)(f));
    OK(CU(cuEventSynchronize)(f));
    GIVES(CUDA_ERROR_INVALID_HANDLE, CU(cuEventElapsedTime_v2)(&ms, e, f));
    OK(CU(cuEventRecord)(e, a));
    set(a, x, 1);
    OK(CU(cuEventRecord)(f, a));
    OK(CU(cuEventRecord)(quiet, a));
    GIVES(CUDA_ERROR_NOT_READY, CU(cuEventElapsedTime_v2)(&ms, e, f));
    GIVES(CUDA_ERROR_NOT_READY, CU(cuStreamQuery)(a));
    int polls = 0;
    while (CU(cuEventQuery)(f) == CUDA_ERROR_NOT_READY && polls < 100)
        polls++;
    CHECK(polls > 0 && polls < 100, "%d polls", polls);
    OK(CU(cuEventElapsedTime_v2)(&ms, e, f));
    CHECK(ms >= 0, "elapsed %g", ms);
    OK(CU(cuEventSynchronize)(quiet));
    GIVES(CUDA_ERROR_INVALID_HANDLE, CU(cuEventElapsedTime_v2)(&ms, e, quiet));
    OK(CU(cuStreamQuery)(a));
    OK(CU(cuEventDestroy_v2)(f));
    GIVES(CUDA_ERROR_INVALID_HANDLE, CU(cuEventRecord)(f, a));
    SAYS("destroyed");
    OK(CU(cuEventDestroy_v2)(quiet));
}

/* A destroyed stream finishes its work, and its events stay valid. */
static void destroyed(void) {
    CUstream c;
    check_policy("lazy", 1);
    OK(CU(cuStreamCreateWithPriority)(&c, CU_STREAM_NON_BLOCKING, -3));
    int priority = 0;
    OK(CU(cuStreamGetPriority)(c, &priority));
    CHECK(priority == -3, "priority %d", priority);
    set(c, x, 5);
    OK(CU(cuEventRecord)(e, c));
    OK(CU(cuStreamDestroy_v2)(c));
    GIVES(CUDA_ERROR_INVALID_HANDLE, CU(cuStreamSynchronize)(c));
    OK(CU(cuEventSynchronize)(e));
    CHECK(first(x) == 5, "x is %g", first(x));
}

/* A chain of waits that is deeper than any C stack. */
static void long_chain(void) {
    check_policy("lazy", 1);
    set(a, x, 0);
    set(a, y, 1);
    for (int i = 0; i < 3000; i++) {
        CUstream from = i % 2 ? b : a, to = i % 2 ? a : b;
        plus(from, x, y);
        OK(CU(cuEventRecord)(e, from));
        OK(CU(cuStreamWaitEvent)(to, e, 0));
    }
    CHECK(first(x) == 3000, "x is %g", first(x));
}

/* ---- host functions ---- */

static int called, refused;

static void CUDA_CB note(void *user) {
    called += *(int *)user;
    refused = CU(cuStreamQuery)(a);
}

static void CUDA_CB older(CUstream s, CUresult status, void *user) {
    called += s == a && status == CUDA_SUCCESS ? *(int *)user : 1000;
}

static void host_functions(void) {
    int one = 1, ten = 10;
    check_policy("lazy", 1);
    set(a, x, 1);
    OK(CU(cuLaunchHostFunc)(a, note, &one));
    OK(CU(cuStreamAddCallback)(a, older, &ten, 0));
    CHECK(called == 0, "called too early");
    OK(CU(cuStreamSynchronize)(a));
    CHECK(called == 11, "called %d", called);
    CHECK(refused == CUDA_ERROR_NOT_PERMITTED, "CUDA in a host function gave %d", refused);
}

/* ---- threads ---- */

static void *worker(void *user) {
    CUstream c;
    CUdeviceptr p;
    CUcontext ctx = user;
    float v = 0;
    CHECK(CU(cuStreamCreate)(&c, 0) == CUDA_ERROR_INVALID_CONTEXT, "a new thread has no context");
    CU(cuCtxSetCurrent)(ctx);
    CU(cuStreamCreate)(&c, CU_STREAM_NON_BLOCKING);
    CU(cuMemAlloc_v2)(&p, 4 * N);
    for (int i = 0; i < 50; i++) {
        set(c, p, (float)i);
        CU(cuMemcpyDtoHAsync_v2)(&v, p, 4, c);
        CU(cuStreamSynchronize)(c);
        if (v != (float)i)
            return (void *)1;
    }
    CU(cuMemFree_v2)(p);
    CU(cuStreamDestroy_v2)(c);
    return NULL;
}

static void threads(void) {
    pthread_t t[4];
    void *result;
    CUcontext ctx;
    check_policy("random", 3);
    OK(CU(cuCtxGetCurrent)(&ctx));
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, worker, ctx);
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], &result);
        CHECK(result == NULL, "thread %d", i);
    }
}

int main(void) {
    check_start();
    m = check_module();
    fill = check_kernel(m, "fill");
    add = check_kernel(m, "add");
    OK(CU(cuStreamCreate)(&a, CU_STREAM_NON_BLOCKING));
    OK(CU(cuStreamCreate)(&b, CU_STREAM_NON_BLOCKING));
    OK(CU(cuEventCreate)(&e, 0));
    OK(CU(cuMemAlloc_v2)(&x, 4 * N));
    OK(CU(cuMemAlloc_v2)(&y, 4 * N));
    OK(CU(cuMemHostAlloc)((void **)&pinned, 4 * N, 0));
    orders();
    default_streams();
    events();
    destroyed();
    long_chain();
    host_functions();
    threads();
    return check_finish();
}
