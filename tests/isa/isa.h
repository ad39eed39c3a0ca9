/* For the tests of kernels: every ISA target of this machine, and guarded memory. An access outside
   it ends the program. */
#ifndef ISA_H
#define ISA_H
#include "3_cpu/simd/dvt_simd.h"
#include "3_kernels/dvt_kernels.h"
#include "dvt_test.h"
#include <sys/mman.h>

/* Under an emulator tests of many combinations take a sample, because machines with the processor
   run them all. DVT_TEST_FULL=1: all of them. */
#define EMULATED (getenv("DVT_TEST_EMULATED") != NULL && !IN_FULL)

/* Runs the statement for each ISA target; `target` is a const dvti_simd *. */
#define FOR_EACH_TARGET(statement)                                                                 \
    do {                                                                                           \
        const dvti_simd *targets_of_this_machine[4], *target;                                      \
        int n_of_targets = dvti_simd_targets(targets_of_this_machine), at_target;                  \
        for (at_target = 0; at_target < n_of_targets; at_target++) {                               \
            target = targets_of_this_machine[at_target];                                           \
            (void)target;                                                                          \
            statement;                                                                             \
        }                                                                                          \
    } while (0)

/* Bytes between two pages without access:

        | no access | bytes                | no access |
                     ^ guard_start     guard_end(g, n) ^ ends n bytes here */
typedef struct guard {
    char *pages;
    size_t bytes, page;
} guard;

static inline guard guard_new(size_t bytes) {
    guard g;
    g.page = (size_t)sysconf(_SC_PAGESIZE);
    g.bytes = (bytes + g.page - 1) / g.page * g.page;
    g.pages = (char *)mmap(NULL, g.bytes + 2 * g.page, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(g.pages != (char *)MAP_FAILED);
    CHECK(mprotect(g.pages, g.page, PROT_NONE) == 0);
    CHECK(mprotect(g.pages + g.page + g.bytes, g.page, PROT_NONE) == 0);
    return g;
}

static inline void guard_free(guard g) {
    munmap(g.pages, g.bytes + 2 * g.page);
}

static inline void *guard_start(guard g) {
    return g.pages + g.page;
}

static inline void *guard_end(guard g, size_t bytes) {
    return g.pages + g.page + g.bytes - bytes;
}

/* Returns element i. Loops over all terms of a product spend most of their time here. */
static inline double load_element(const void *data, dvt_dtype dtype, int64_t i) {
    if (dtype == DVT_F32)
        return ((const float *)data)[i];
    return dtype == DVT_F64 ? ((const double *)data)[i] : dvti_load_f64(data, dtype, i);
}

/* Compares bits; all NaN count as one. */
static inline bool same_bits_f32(float a, float b) {
    uint32_t x, y;
    memcpy(&x, &a, 4);
    memcpy(&y, &b, 4);
    return x == y || (a != a && b != b);
}

static inline bool same_bits_f64(double a, double b) {
    uint64_t x, y;
    memcpy(&x, &a, 8);
    memcpy(&y, &b, 8);
    return x == y || (a != a && b != b);
}

#endif
