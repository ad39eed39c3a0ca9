/* Launches that a test passes directly to the backend of cpu(). */
#ifndef LAUNCHES_H
#define LAUNCHES_H
#include "3_cpu/cpu_matmul.h"
#include "isa.h"

static inline dvti_device *cpu_device(void) {
    static dvti_device device;
    device.ctx = dvt_cpu();
    return &device;
}

/* The workspace also ends at a guard page and begins with undefined contents. */
static inline void run(dvti_launch *launch, const char *isa) {
    guard memory;
    CHECK(dvt_set_cpu_isa(isa) == DVT_OK);
    launch->workspace_bytes = dvti_cpu_plan(cpu_device(), launch);
    memory = guard_new((size_t)launch->workspace_bytes + 1);
    launch->workspace = guard_end(memory, (size_t)((launch->workspace_bytes + 63) / 64 * 64));
    memset(launch->workspace, 0xff, (size_t)launch->workspace_bytes);
    dvti_cpu_run(launch);
    guard_free(memory);
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
}

/* Returns a Philox launch of n elements of a dtype. The caller sets `data` and the parameters of
   the operation. The counter is four 32-bit words; `low` has the lower two, lowest first. */
static inline dvti_launch random_launch(dvti_op op, dvt_dtype dtype, int64_t n, uint64_t key,
                                        uint64_t low, uint64_t high) {
    dvti_launch launch;
    memset(&launch, 0, sizeof launch);
    launch.kernel = dvti_kernel_random();
    launch.op = op;
    launch.n_out = 1;
    launch.out[0].dtype = dtype;
    launch.out[0].ndim = 1;
    launch.out[0].dim[0] = n;
    launch.out[0].stride[0] = 1;
    launch.i[1] = (int64_t)key;
    launch.i[2] = (int64_t)low;
    launch.i[3] = (int64_t)high;
    launch.i[6] = n;
    return launch;
}

/* Returns the blocks of float32 products for caches as in DEVTENSOR_CPU_CACHES. */
static inline dvti_gemm_blocks launch_blocks(const char *text) {
    dvti_caches caches;
    CHECK(dvti_caches_parse(text, &caches));
    return dvti_gemm_blocks_of(&caches, 6, 64, sizeof(float));
}

#endif
