/* The plan of a reduction: which kernel, which positions are kept and reduced, how the work is
   cut. */
#ifndef DVTI_CPU_REDUCE_H
#define DVTI_CPU_REDUCE_H
#include "3_cpu/simd/dvt_simd.h"

/* A chunk's part of one result. */
typedef struct dvti_partial {
    union {
        double f;
        int64_t i;
    } value;

    int64_t at;
} dvti_partial;

/* Values of neighboring results. */
typedef union dvti_reduce_values {
    double f[DVTI_ACROSS];
    int64_t i[DVTI_ACROSS];
} dvti_reduce_values;

/* Contents of launch->plan. */
typedef struct dvti_reduce_plan {
    const dvti_launch *launch; /* set by `run` */
    const dvti_simd *simd;     /* NULL: the oracle computes, and nothing else is set */
    dvti_reduce_kernel kernel; /* rows is NULL for logsumexp of float64 */
    dvti_reduce_method method;
    dvti_join join;
    bool place;
    dvti_class compute; /* of blocks */
    int64_t size, wide; /* bytes of an element of x, of a block */
    bool readable;      /* the kernel reads x's dtype */
    bool plain;         /* and the reduced elements of a result are one run */
    dvti_view kept, reduced, whole;
    int64_t n_kept, n_reduced, chunk, n_chunks;
    bool columns;
    int64_t tile, across; /* results per work item, items per row of kept positions */
    int64_t n_tiles;
} dvti_reduce_plan;

#endif
