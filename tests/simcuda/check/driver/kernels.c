/* The kernels of the driver tests as a module. */
#include "kernels.h"
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

#define P(kernel, member)                                                                          \
    {                                                                                              \
        offsetof(struct kernel##_args, member), sizeof(((struct kernel##_args *)0)->member),       \
            sizeof(((struct kernel##_args *)0)->member)                                            \
    }
static const sim_param fill_p[] = {P(fill, x), P(fill, v), P(fill, n)};
static const sim_param add_p[] = {P(add, x), P(add, y), P(add, n)};
static const sim_param reduce_p[] = {P(reduce, x), P(reduce, sums), P(reduce, n)};
static const sim_param ticket_p[] = {P(ticket, x), P(ticket, sums), P(ticket, total),
                                     P(ticket, ticket), P(ticket, n)};
static const sim_param matmul_p[] = {P(matmul, x), P(matmul, y), P(matmul, z), P(matmul, n)};
static const sim_param grid_p[] = {P(grid, arrived), P(grid, x)};
static const sim_param one_p[] = {P(named, x)};

#define K(kernel, p, shared, stack, deep_, fibers)                                                 \
    {                                                                                              \
#kernel, kernel, p, sizeof(p) / sizeof *(p), SIZE_##p, shared, shared, 0, stack, deep_,    \
            fibers, 0, {0, 0, 0 }, NULL, 0                                                         \
    }

/* Size up to the end of the last member, without trailing padding. */
enum {
    SIZE_fill_p = 16,
    SIZE_add_p = 20,
    SIZE_reduce_p = 20,
    SIZE_ticket_p = 36,
    SIZE_matmul_p = 28,
    SIZE_grid_p = 16,
    SIZE_one_p = 8
};

static const sim_kernel kernels[] = {
    K(fill, fill_p, 0, 1024, 0, 0),
    K(add, add_p, 0, 1024, 0, 0),
    K(reduce, reduce_p, 4096, 1024, 0, 1),
    K(ticket, ticket_p, 4100, 1024, 0, 1),
    K(ticket_release, ticket_p, 0, 1024, 0, 0),
    K(matmul, matmul_p, 2048, 1024, 0, 1),
    K(grid, grid_p, 0, 1024, 0, 1),
    K(named, one_p, 256, 1024, 0, 1),
    K(syncwarp, one_p, 512, 1024, 0, 1),
    K(votes, one_p, 0, 1024, 0, 1),
    K(flag, one_p, 0, 1024, 0, 0),
    K(bytes, one_p, 0, 1024, 0, 0),
    K(histogram, one_p, 0, 1024, 0, 0),
    K(variables, one_p, 0, 1024, 0, 0),
    K(deep, one_p, 0, 700 * 1200, 0, 1),
    K(leave, one_p, 0, 1024, 0, 0),
    K(speak, one_p, 0, 8192, 0, 0),
    K(no_barrier, one_p, 4096, 1024, 0, 1),
    K(overwritten, one_p, 4096, 1024, 0, 1),
    K(warp_synchronous, one_p, 4096, 1024, 0, 1),
    K(half_syncwarp, one_p, 4096, 1024, 0, 1),
    K(divergent_barrier, one_p, 0, 1024, 0, 1),
    K(barrier_after_exit, one_p, 0, 1024, 0, 1),
    K(bad_mask, one_p, 0, 1024, 0, 1),
    K(not_in_mask, one_p, 0, 1024, 0, 1),
    K(tangled, one_p, 0, 1024, 0, 1),
    K(beyond_shared, one_p, 256, 1024, 0, 1),
    K(blocks_write, one_p, 0, 1024, 0, 0),
    K(blocks_read, one_p, 0, 1024, 0, 0),
    K(swap_loop, one_p, 4, 1024, 0, 1),
    K(peek, one_p, 0, 1024, 0, 0),
    K(unwritten, one_p, 128, 1024, 0, 1),
    K(one_writes, one_p, 0, 1024, 0, 0),
    K(ticket_without_fence, ticket_p, 0, 1024, 0, 0),
    K(spin, grid_p, 0, 1024, 0, 1),
    K(write_constant, one_p, 0, 1024, 0, 0),
    K(wild, one_p, 0, 1024, 0, 0),
    K(endless, one_p, 0, 1024, 0, 1),
    K(assertion, one_p, 0, 1024, 0, 0),
    {"bounded", fill, fill_p, 3, SIZE_fill_p, 0, 0, 0, 1024, 0, 0, 128, {0, 0, 0}, NULL, 0},
    {"required", fill, fill_p, 3, SIZE_fill_p, 0, 0, 0, 1024, 0, 0, 0, {32, 2, 1}, NULL, 0},
};

static const int seven = 7;
static const int table_init[4] = {10, 20, 30, 40};
static const sim_global globals[] = {
    {"counter", 4, 4, &seven, &counter_slot, 0},
    {"table", sizeof table_init, 16, table_init, &table_slot, 1},
    {"pointer", 8, 8, NULL, &pointer_slot, 0},
};
static const sim_reloc relocs[] = {{2, 0, 0, NULL, 0}};

EXPORT const sim_module sim_module_export = {
    SIM_ABI, 1,    80,     kernels, sizeof kernels / sizeof *kernels,
    globals, 3,    relocs, 1,       NULL,
    0,       NULL, 0,      NULL,    0,
    "",      NULL};
