/* Counts of accesses and instructions (driver/count.c): hand-written PTX whose sectors, wavefronts
   and instructions are known. */
#include "check.h"

/* A kernel of one block: r1 is the thread, rd1 the array, rd2 the array plus 4 bytes per thread. */
#define KERNEL(name, body)                                                                         \
    ".visible .entry " name "(.param .u64 p)\n"                                                    \
    "{\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .f32 %f<9>;\n.reg .pred %q<3>;\n"                \
    ".shared .align 16 .b8 s[4096];\n"                                                             \
    "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\n"                  \
    "add.u64 %rd2, %rd2, %rd1;\n" body "ret;\n}\n"

/* The address in shared memory of a thread, with this many bytes between threads. */
#define SPREAD(bytes) "mul.lo.u32 %r2, %r1, " bytes ";\nmov.u32 %r3, s;\nadd.u32 %r2, %r2, %r3;\n"

static const char text[] = ".version 7.0\n.target sm_80\n.address_size 64\n" KERNEL(
    "coalesced", "ld.global.f32 %f1, [%rd2];\nst.global.f32 [%rd2], %f1;\n")
    KERNEL("strided",
           "mul.wide.u32 %rd3, %r1, 32;\nadd.u64 %rd3, %rd3, %rd1;\n"
           "ld.global.f32 %f1, [%rd3];\n") KERNEL("broadcast", "ld.global.f32 %f1, [%rd1];\n")
        KERNEL("misaligned", "ld.global.f32 %f1, [%rd2+4];\n")
            KERNEL("vector", "mul.wide.u32 %rd3, %r1, 16;\nadd.u64 %rd3, %rd3, %rd1;\n"
                             "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd3];\n")
                KERNEL("generic", "ld.f32 %f1, [%rd2];\n")
                    KERNEL("adjacent", SPREAD("4") "st.shared.u32 [%r2], %r1;\n") KERNEL(
                        "conflict", SPREAD("128") "ld.shared.u32 %r4, [%r2];\n")
                        KERNEL("same_word", "ld.shared.u32 %r4, [s];\n") KERNEL(
                            "half_warps", SPREAD("8") "ld.shared.v2.u32 {%r4, %r5}, [%r2];\n")
                            KERNEL("quarters",
                                   SPREAD("16") "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2];\n")
    /* lanes in pairs read one address: quarters merge */
    KERNEL("merged",
           "shr.u32 %r1, %r1, 1;\n" SPREAD("16") "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2];\n")
    /* four lanes read one address, lanes with different parities another: nothing merges */
    KERNEL("apart",
           "and.b32 %r1, %r1, 3;\n" SPREAD("16") "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2];\n")
    /* In each of four iterations one half of the lanes loads [rd2], then all load [rd1]. */
    KERNEL("diverges",
           "mov.u32 %r4, 0;\nAGAIN:\nadd.u32 %r5, %r4, %r1;\nand.b32 %r5, %r5, 1;\n"
           "setp.eq.u32 %q1, %r5, 0;\n@%q1 bra SKIP;\nld.global.f32 %f1, [%rd2];\nSKIP:\n"
           "ld.global.f32 %f2, [%rd1];\nadd.u32 %r4, %r4, 1;\nsetp.lt.u32 %q1, %r4, 4;\n"
           "@%q1 bra AGAIN;\n")
    /* Lane i loads i + 1 times. */
    KERNEL("leaves_early", "mov.u32 %r4, 0;\nAGAIN:\nld.global.f32 %f1, [%rd1];\n"
                           "add.u32 %r4, %r4, 1;\nsetp.le.u32 %q1, %r4, %r1;\n@%q1 bra AGAIN;\n"
                           "st.global.f32 [%rd2], %f1;\n")
        KERNEL("atomics", "red.global.add.u32 [%rd1], %r1;\nbar.sync 0;\n") KERNEL(
            "copies",
            SPREAD("16") "mul.wide.u32 %rd3, %r1, 16;\nadd.u64 %rd3, %rd3, %rd1;\n"
                         "cp.async.cg.shared.global [%r2], [%rd3], 16;\ncp.async.wait_all;\n")
            KERNEL("arithmetic", "mov.u32 %r4, 0;\nmov.f32 %f1, 0f00000000;\nAGAIN:\n"
                                 "fma.rn.f32 %f1, %f1, %f1, %f1;\nfma.rn.f32 %f1, %f1, %f1, %f1;\n"
                                 "ex2.approx.f32 %f1, %f1;\nadd.u32 %r4, %r4, 1;\n"
                                 "setp.lt.u32 %q1, %r4, 5;\n@%q1 bra AGAIN;\n");

enum { FP32 = 0, SPECIAL = 3 }; /* of sim_class */

static CUdeviceptr array;
static CUmodule loaded;

static sim_kernel_counts run(const char *kernel, unsigned threads, unsigned grid) {
    sim_kernel_counts c;
    void *args[] = {&array};
    memset(&c, 0, sizeof c);
    CTL(sim_counts_clear)();
    OK(CU(cuLaunchKernel)(check_kernel(loaded, kernel), grid, 1, 1, threads, 1, 1, 0, NULL, args,
                          NULL));
    OK(CU(cuCtxSynchronize)());
    CHECK(CTL(sim_counts_get)(0, &c) == 1 && strcmp(c.kernel, kernel) == 0, "%s: no counts",
          kernel);
    CHECK(CTL(sim_counts_get)(1, &c) == 0, "%s: two kernels", kernel);
    return c;
}

#define IS(value, wanted)                                                                          \
    CHECK((value) == (wanted), "%s: " #value " is %llu, expected %llu", c.kernel,                  \
          (unsigned long long)(value), (unsigned long long)(wanted))

static void loads(const char *kernel, uint64_t requests, uint64_t sectors, uint64_t bytes,
                  uint64_t touched) {
    sim_kernel_counts c = run(kernel, 32, 1);
    IS(c.load.requests, requests);
    IS(c.load.sectors, sectors);
    IS(c.load.bytes, bytes);
    IS(c.load.touched, touched);
    IS(c.shared_load.requests, 0u);
    IS(c.warps, 1u);
}

static void shared(const char *kernel, uint64_t wavefronts, uint64_t least) {
    sim_kernel_counts c = run(kernel, 32, 1);
    const sim_shared_counts *s = c.shared_load.requests ? &c.shared_load : &c.shared_store;
    IS(s->requests, 1u);
    IS(s->wavefronts, wavefronts);
    IS(s->least, least);
    IS(c.load.requests, 0u);
}

static void accesses(void) {
    sim_kernel_counts c;
    loads("coalesced", 1, 4, 128, 4);
    loads("strided", 1, 32, 128, 32);
    loads("broadcast", 1, 1, 4, 1);
    loads("misaligned", 1, 5, 128, 5);
    loads("vector", 1, 16, 512, 16);
    loads("generic", 1, 4, 128, 4);
    /* 40 threads in each of 3 blocks: a whole warp and one of 8 lanes, on the same addresses */
    c = run("coalesced", 40, 3);
    IS(c.blocks, 3u);
    IS(c.warps, 6u);
    IS(c.load.requests, 6u);
    IS(c.load.sectors, 3u * 5);
    IS(c.load.touched, 5u);
    IS(c.store.sectors, 3u * 5);
    IS(c.store.bytes, 3u * 160);
    shared("adjacent", 1, 1);
    shared("conflict", 32, 1);
    shared("same_word", 1, 1);
    shared("half_warps", 2, 2);
    shared("quarters", 4, 4);
    shared("merged", 2, 2);
    shared("apart", 4, 1);
}

static void flow(void) {
    sim_kernel_counts c = run("diverges", 32, 1);
    IS(c.load.requests, 8u);
    IS(c.load.sectors, 4u * 4 + 4);
    c = run("leaves_early", 32, 1);
    IS(c.load.requests, 32u);
    IS(c.store.requests, 1u);
    c = run("atomics", 64, 1);
    IS(c.atomics, 2u);
    IS(c.atomic_lanes, 64u);
    IS(c.barriers, 2u);
    IS(c.load.requests, 0u);
    c = run("copies", 32, 1);
    IS(c.load.requests, 1u);
    IS(c.load.sectors, 16u);
    IS(c.shared_store.requests, 1u);
    IS(c.shared_store.wavefronts, 4u);
    c = run("arithmetic", 64, 2);
    IS(c.instructions[FP32], 4u * 10);
    IS(c.instructions[SPECIAL], 4u * 5);
    IS(c.registers, 0); /* nothing has run ptxas */
}

/* The same numbers whatever the order of threads and blocks. */
static void orders(void) {
    sim_kernel_counts first = run("diverges", 96, 5), c;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        check_policy("random", seed);
        c = run("diverges", 96, 5);
        CHECK(memcmp(&c, &first, sizeof c) == 0, "seed %llu counts differently",
              (unsigned long long)seed);
    }
    check_policy("lazy", 1);
}

int main(void) {
    setenv("SIMCUDA_COUNT", "1", 1);
    setenv("SIMCUDA_RACES", "0", 1);
    check_start();
    OK(CU(cuMemAlloc_v2)(&array, 4096));
    OK(CU(cuMemsetD8_v2)(array, 0, 4096));
    CUresult code = CU(cuModuleLoadData)(&loaded, text);
    if (code == CUDA_ERROR_JIT_COMPILER_NOT_FOUND) {
        printf("SKIP counts: no translator or no C compiler\n0 passed, 0 failed, 1 skipped\n");
        return 0;
    }
    CHECK(code == CUDA_SUCCESS, "loading gave %d: %s", (int)code, check_last_error());
    if (code == CUDA_SUCCESS) {
        accesses();
        flow();
        orders();
    }
    return check_finish();
}
