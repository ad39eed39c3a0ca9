/* Launches that a test hands to the backend of cpu() itself. */
#ifndef LAUNCHES_H
#define LAUNCHES_H
#include "3_cpu/dvt_cpu.h"
#include "isa.h"

static inline dvti_device *cpu_device(void) {
    static dvti_device device;
    device.ctx = dvt_cpu();
    return &device;
}

/* The workspace ends at a guard as well, and begins as garbage. */
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

/* Of Philox: n numbers of that dtype, for whom the caller sets `data` and what the operation asks for. The counter is four words, the lowest
   first in `low`. */
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
#endif
