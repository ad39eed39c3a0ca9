/* Correct programs: they give the right numbers under every order, and the driver reports
   nothing. */
#include "check.h"

enum { SEEDS = 20, N = 4000 };

static CUmodule m;
static CUstream s;

static CUdeviceptr device_floats(const float *h, size_t n) {
    CUdeviceptr p = 0;
    OK(CU(cuMemAlloc_v2)(&p, 4 * n));
    if (h)
        OK(CU(cuMemcpyHtoD_v2)(p, h, 4 * n));
    return p;
}

static void launch(const char *name, unsigned grid, unsigned block, void **args) {
    OK(CU(cuLaunchKernel)(check_kernel(m, name), grid, 1, 1, block, 1, 1, 0, s, args, NULL));
}

static void reduction(void) {
    static float x[N];
    float sums[16], want = 0, got = 0;
    CUdeviceptr dx, dsums = device_floats(NULL, 16);
    int n = N;
    for (int i = 0; i < N; i++)
        want += x[i] = (float)(i % 17);
    dx = device_floats(x, N);
    void *args[] = {&dx, &dsums, &n};
    launch("reduce", 16, 256, args);
    OK(CU(cuMemcpyDtoHAsync_v2)(sums, dsums, sizeof sums, s));
    OK(CU(cuStreamSynchronize)(s));
    for (int i = 0; i < 16; i++)
        got += sums[i];
    CHECK(got == want, "reduction %g, expected %g", got, want);
    OK(CU(cuMemFree_v2)(dx));
    OK(CU(cuMemFree_v2)(dsums));
}

static void last_block(void) {
    static float x[N];
    float want = 0, got = 0;
    CUdeviceptr dx, dsums = device_floats(NULL, 16), dtotal = device_floats(NULL, 1),
                    dticket = device_floats(NULL, 1), many = device_floats(NULL, 200);
    int n = N;
    for (int i = 0; i < N; i++)
        want += x[i] = (float)(i % 13);
    dx = device_floats(x, N);
    OK(CU(cuMemsetD32Async)(dticket, 0, 1, s));
    void *args[] = {&dx, &dsums, &dtotal, &dticket, &n};
    launch("ticket", 16, 256, args);
    OK(CU(cuMemcpyDtoHAsync_v2)(&got, dtotal, 4, s));
    OK(CU(cuStreamSynchronize)(s));
    CHECK(got == want, "last block %g, expected %g", got, want);
    OK(CU(cuMemsetD32Async)(dticket, 0, 1, s));
    launch("ticket_release", 200, 32, (void *[]){&dx, &many, &dtotal, &dticket, &n});
    OK(CU(cuMemcpyDtoHAsync_v2)(&got, dtotal, 4, s));
    OK(CU(cuStreamSynchronize)(s));
    CHECK(got == 19900, "released %g", got);
    OK(CU(cuMemFree_v2)(many));
    CUdeviceptr all[] = {dx, dsums, dtotal, dticket};
    for (int i = 0; i < 4; i++)
        OK(CU(cuMemFree_v2)(all[i]));
}

static void matrix_product(void) {
    enum { M = 48 };

    static float x[M * M], y[M * M], z[M * M];
    CUdeviceptr dx, dy, dz = device_floats(NULL, M * M);
    int n = M, wrong = 0;
    for (int i = 0; i < M * M; i++) {
        x[i] = (float)(i % 7);
        y[i] = (float)(i % 5);
    }
    dx = device_floats(x, M * M);
    dy = device_floats(y, M * M);
    void *args[] = {&dx, &dy, &dz, &n};
    OK(CU(cuLaunchKernel)(check_kernel(m, "matmul"), 3, 3, 1, 16, 16, 1, 0, s, args, NULL));
    OK(CU(cuStreamSynchronize)(s));
    OK(CU(cuMemcpyDtoH_v2)(z, dz, sizeof z));
    for (int i = 0; i < M; i++)
        for (int j = 0; j < M; j++) {
            float want = 0;
            for (int k = 0; k < M; k++)
                want += x[M * i + k] * y[M * k + j];
            wrong += z[M * i + j] != want;
        }
    CHECK(wrong == 0, "matrix product: %d wrong", wrong);
    CUdeviceptr all[] = {dx, dy, dz};
    for (int i = 0; i < 3; i++)
        OK(CU(cuMemFree_v2)(all[i]));
}

static void whole_grid(void) {
    float h[512];
    CUdeviceptr arrived = device_floats(NULL, 1), x = device_floats(NULL, 512);
    int wrong = 0;
    OK(CU(cuMemsetD32Async)(arrived, 0, 1, s));
    void *args[] = {&arrived, &x};
    OK(CU(cuLaunchCooperativeKernel)(check_kernel(m, "grid"), 4, 1, 1, 64, 1, 1, 0, s, args));
    OK(CU(cuStreamSynchronize)(s));
    OK(CU(cuMemcpyDtoH_v2)(h, x, sizeof h));
    for (int i = 0; i < 256; i++)
        wrong += h[256 + i] != (float)(255 - i);
    CHECK(wrong == 0, "grid barrier: %d wrong", wrong);
    OK(CU(cuMemFree_v2)(arrived));
    OK(CU(cuMemFree_v2)(x));
}

/* Runs a kernel with one output of n ints or floats, which the caller compares. */
static void one(const char *name, unsigned grid, unsigned block, void *h, size_t bytes, int clear) {
    CUdeviceptr x = device_floats(NULL, bytes / 4);
    void *args[] = {&x};
    if (clear)
        OK(CU(cuMemsetD8Async)(x, 0, bytes, s));
    launch(name, grid, block, args);
    OK(CU(cuStreamSynchronize)(s));
    OK(CU(cuMemcpyDtoH_v2)(h, x, bytes));
    OK(CU(cuMemFree_v2)(x));
}

static void small_ones(void) {
    union {
        float f[64];
        int i[64];
        unsigned u[64];
        unsigned char b[256];
    } h;

    int wrong = 0;
    one("named", 1, 64, &h, 128, 0);
    for (int i = 0; i < 32; i++)
        wrong += h.f[i] != (float)(31 - i);
    CHECK(wrong == 0, "named barrier: %d wrong", wrong);
    one("syncwarp", 1, 32, &h, 128, 0);
    for (int i = 0; i < 32; i++)
        wrong += h.f[i] != (float)(2 * (i ^ 31));
    CHECK(wrong == 0, "syncwarp: %d wrong", wrong);
    one("unwritten", 1, 32, &h, 128, 1);
    CHECK(h.u[0] == 0xFFFFFFFF && h.u[31] == 0xFFFFFFFF, "unwritten shared memory holds %x",
          h.u[0]);
    one("votes", 1, 64, &h, 256, 0);
    CHECK(h.i[0] == 22 && h.i[63] == 22, "bar.red.popc %d", h.i[0]);
    one("flag", 8, 64, &h, 4, 0);
    CHECK(h.i[0] == 1, "flag %d", h.i[0]);
    one("bytes", 85, 3, &h, 256, 0); /* words that two blocks share */
    for (int i = 0; i < 255; i++)
        wrong += h.b[i] != i;
    CHECK(wrong == 0, "bytes: %d wrong", wrong);
    one("histogram", 7, 64, &h, 28, 1);
    CHECK(h.u[0] == 64 && h.u[6] == 64, "histogram %u", h.u[0]);
    one("swap_loop", 4, 32, &h, 20, 1);
    CHECK(h.u[0] == 128 && h.u[4] == 32, "swap loop %u %u", h.u[0], h.u[4]);
    one("variables", 1, 8, &h, 32, 0);
    CHECK(h.i[1] == 27 && h.i[7] == 47, "variables %d %d", h.i[1], h.i[7]);
    one("deep", 1, 4, &h, 16, 0);
    CHECK(h.i[3] == 600, "recursion %d", h.i[3]);
    one("leave", 2, 32, &h, 256, 0);
    CHECK(h.i[0] == 1 && h.i[63] == 1, "exit %d", h.i[0]);
}

/* Reduce-scatter and all-gather over a ring of devices: peer copies, one stream each, ordered by
   events. */
enum { DEVICES = 4, CHUNK = 250, RING = DEVICES * CHUNK };

typedef struct member {
    CUcontext ctx;
    CUstream stream;
    CUfunction add;
    CUdeviceptr data, temp;
    CUevent ready, taken;
} member;

static member ring[DEVICES];

static void on(int i) {
    OK(CU(cuCtxSetCurrent)(ring[i].ctx));
}

static void ring_start(void) {
    for (int i = 0; i < DEVICES; i++) {
        member *r = &ring[i];
        r->ctx = check_device(i);
        OK(CU(cuStreamCreate)(&r->stream, CU_STREAM_NON_BLOCKING));
        r->add = check_kernel(check_module(), "add");
        r->data = device_floats(NULL, RING);
        r->temp = device_floats(NULL, CHUNK);
        OK(CU(cuEventCreate)(&r->ready, 0));
        OK(CU(cuEventCreate)(&r->taken, 0));
    }
}

static void ring_step(int i, int phase, int step) {
    int left = (i + DEVICES - 1) % DEVICES, k = (left + phase - step + DEVICES) % DEVICES,
        n = CHUNK;
    member *r = &ring[i];
    CUdeviceptr mine = r->data + 4 * (CUdeviceptr)k * CHUNK,
                theirs = ring[left].data + 4 * (CUdeviceptr)k * CHUNK;
    on(i);
    OK(CU(cuStreamWaitEvent)(r->stream, ring[left].ready, 0));
    OK(CU(cuMemcpyPeerAsync)(phase ? mine : r->temp, r->ctx, theirs, ring[left].ctx, 4 * CHUNK,
                             r->stream));
    OK(CU(cuEventRecord)(r->taken, r->stream));
    if (phase == 0) {
        void *args[] = {&mine, &r->temp, &n};
        OK(CU(cuLaunchKernel)(r->add, 2, 1, 1, 128, 1, 1, 0, r->stream, args, NULL));
    }
}

static void ring_all_reduce(void) {
    float h[RING];
    int wrong = 0;
    for (int i = 0; i < DEVICES; i++) {
        for (int k = 0; k < RING; k++)
            h[k] = (float)((i + 1) * (k % 13));
        on(i);
        OK(CU(cuMemcpyHtoD_v2)(ring[i].data, h, sizeof h));
    }
    for (int turn = 0; turn < 2 * (DEVICES - 1); turn++) {
        for (int i = 0; i < DEVICES; i++) {
            on(i);
            OK(CU(cuEventRecord)(ring[i].ready, ring[i].stream));
        }
        for (int i = 0; i < DEVICES; i++)
            ring_step(i, turn / (DEVICES - 1), turn % (DEVICES - 1));
        for (int i = 0; i < DEVICES; i++) { /* no device overwrites what its neighbor still reads */
            on(i);
            OK(CU(cuStreamWaitEvent)(ring[i].stream, ring[(i + 1) % DEVICES].taken, 0));
        }
    }
    for (int i = 0; i < DEVICES; i++) {
        on(i);
        OK(CU(cuStreamSynchronize)(ring[i].stream));
        OK(CU(cuMemcpyDtoH_v2)(h, ring[i].data, sizeof h));
        for (int k = 0; k < RING; k++)
            wrong += h[k] != 10.f * (float)(k % 13);
    }
    CHECK(wrong == 0, "ring all-reduce: %d wrong", wrong);
    on(0);
}

static void all(const char *policy, uint64_t seed) {
    long before = check_failed;
    check_policy(policy, seed);
    reduction();
    last_block();
    matrix_product();
    whole_grid();
    small_ones();
    ring_all_reduce();
    if (check_failed > before)
        printf("policy %s, seed %llu\n", policy, (unsigned long long)seed);
}

int main(void) {
    sim_stats stats;
    setenv("SIMCUDA_DEVICES", "4", 1);
    check_start();
    m = check_module();
    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    ring_start();
    on(0);
    all("lazy", 1);
    all("eager", 1);
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        all("random", seed);
    CTL(sim_get_stats)(&stats);
    CHECK(stats.bugs == 0, "%llu bugs found: %s", (unsigned long long)stats.bugs,
          check_last_error());
    return check_finish();
}
