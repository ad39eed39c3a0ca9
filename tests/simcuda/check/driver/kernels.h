/* The kernels of the driver tests. Those of kernels_right.c are correct under every order. Each of
   kernels_wrong.c has one mistake, which the driver must report. kernels.c makes a module of
   them. */
#ifndef SIM_KERNELS_H
#define SIM_KERNELS_H

#include "device_code.h"

/* ---- their parameters ---- */
struct fill_args {
    float *x;
    float v;
    int n;
};

struct add_args {
    float *x;
    const float *y;
    int n;
};

struct reduce_args {
    const float *x;
    float *sums;
    int n;
};

struct ticket_args {
    const float *x;
    float *sums;
    float *total;
    unsigned *ticket;
    int n;
};

struct matmul_args {
    const float *x;
    const float *y;
    float *z;
    int n;
};

struct grid_args {
    unsigned *arrived;
    float *x;
};

struct named_args {
    float *x;
};

struct votes_args {
    int *x;
};

struct flag_args {
    int *flag;
};

struct bytes_args {
    unsigned char *x;
};

struct histogram_args {
    unsigned *bins;
};

struct deep_args {
    int *x;
};

/* ---- the variables of the module ---- */
extern void *counter_slot, *table_slot, *pointer_slot;

/* ---- the kernels ---- */
typedef void kernel(sim_thread *t);
kernel fill, add, reduce, ticket, ticket_release, matmul, grid, named, syncwarp, votes, flag, bytes,
    histogram, swap_loop, variables, deep, leave, speak;
kernel no_barrier, overwritten, warp_synchronous, half_syncwarp, divergent_barrier,
    barrier_after_exit, bad_mask, not_in_mask, tangled, beyond_shared, blocks_write, blocks_read,
    peek, unwritten, one_writes, ticket_without_fence, spin, write_constant, wild, endless,
    assertion;

int descend(sim_thread *t, int n); /* n nested calls return n */

#endif
