/* Test interface of the simulated driver, in addition to CUDA. Found with dlsym in the loaded
   libcuda.so.1. A real driver has none of these symbols, so a test that does not find them skips.
   All may be called at any time, from any thread, also before cuInit. */
#ifndef SIM_CONTROL_H
#define SIM_CONTROL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sim_stats {
    uint64_t launches, blocks, threads; /* kernels run so far, and their blocks and threads */
    uint64_t switches;                  /* between fibers */
    uint64_t accesses;                  /* checked loads and stores */
    uint64_t copies, copied_bytes;
    uint64_t device_allocations, device_bytes; /* live now, all devices */
    uint64_t host_blocks;                      /* pinned or registered, live now */
    uint64_t streams, events, modules, graphs, pools;
    uint64_t bugs; /* wrong uses of the API so far: old symbols, dead handles, invalid kernels */
} sim_stats;

/* What the launches of a kernel did: modules built with SIMCUDA_COUNT=1 (driver/count.c). A request
   is one execution of an instruction by a warp. Sectors have 32 bytes. `bytes` are the different
   bytes that a request names, `touched` the different sectors of a launch. A wavefront is one pass
   through the 32 banks of shared memory; `least` is the number without conflicts. */
enum { SIM_COUNT_CLASSES = 14 }; /* sim_class of sim_module.h */

typedef struct sim_global_counts {
    uint64_t requests, sectors, bytes, touched;
} sim_global_counts;

typedef struct sim_shared_counts {
    uint64_t requests, wavefronts, least;
} sim_shared_counts;

typedef struct sim_kernel_counts {
    char kernel[200];
    uint64_t launches, blocks, warps;
    sim_global_counts load, store;
    sim_shared_counts shared_load, shared_store;
    /* requests of atomics, and the accesses of single lanes in them; requests of local arrays;
       warps that waited at a barrier */
    uint64_t atomics, atomic_lanes, local, barriers;
    uint64_t instructions[SIM_COUNT_CLASSES]; /* executed by warps */
    /* from the CUBIN; 0 without a report of ptxas. resident: blocks on a multiprocessor */
    int registers, shared, spills, resident, threads;
} sim_kernel_counts;

/* Makes the nth call from now of the function (`*`: of any) return code; nth 0: every call. The
   sign of a negative code is removed. Such a code also breaks the context that is current then:
   calls that need a healthy one return it from then on. */
typedef void sim_fail_fn(const char *name, int nth, int code);
typedef void sim_fail_clear_fn(void);
/* Returns how often a function has been called; NULL: all functions together. */
typedef uint64_t sim_calls_fn(const char *name);
/* Returns the latest error sentence, "" without an error. Valid until the next call. */
typedef const char *sim_last_error_fn(void);
typedef void sim_clear_error_fn(void);
/* Sets "lazy", "eager" or "random"; the seed is for random. Returns 0, or 1 for an unknown name. */
typedef int sim_set_policy_fn(const char *policy, uint64_t seed);
typedef void sim_get_stats_fn(sim_stats *stats);
/* Clears the asynchronous error of a device's primary context, so that a test can continue after a
   planted bug. */
typedef void sim_reset_device_fn(int device);
/* Writes what is still allocated to stderr and returns the number of objects. */
typedef int sim_leaks_fn(void);
/* Gives the counts of the i-th kernel since the last clear, in the order of first launches. Returns
   0 when there are not as many. Wait for the device before. */
typedef int sim_counts_get_fn(int i, sim_kernel_counts *counts);
typedef void sim_counts_clear_fn(void);

#ifdef SIM_CONTROL_IMPLEMENTATION
#define SIM_CONTROL(type, name) __attribute__((visibility("default"))) type name
SIM_CONTROL(sim_fail_fn, sim_fail);
SIM_CONTROL(sim_fail_clear_fn, sim_fail_clear);
SIM_CONTROL(sim_calls_fn, sim_calls);
SIM_CONTROL(sim_last_error_fn, sim_last_error);
SIM_CONTROL(sim_clear_error_fn, sim_clear_error);
SIM_CONTROL(sim_set_policy_fn, sim_set_policy);
SIM_CONTROL(sim_get_stats_fn, sim_get_stats);
SIM_CONTROL(sim_reset_device_fn, sim_reset_device);
SIM_CONTROL(sim_leaks_fn, sim_leaks);
SIM_CONTROL(sim_counts_get_fn, sim_counts_get);
SIM_CONTROL(sim_counts_clear_fn, sim_counts_clear);
#undef SIM_CONTROL
#endif

#ifdef __cplusplus
}
#endif
#endif
