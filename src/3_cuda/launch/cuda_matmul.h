/* What the two families of matrix products share: a plan is a launch that has been decided, all but its workspace. */
#ifndef DVTI_CUDA_MATMUL_H
#define DVTI_CUDA_MATMUL_H
#include "3_cuda/dvt_cuda.h"

typedef struct dvti_cuda_mm {
    dvti_cuda_program program;
    const char *entry;
    int threads;
    int64_t shared;
    int64_t partial; /* bytes of one result in a piece of k */
    dvti_kmatmul args;
} dvti_cuda_mm;

/* A factor as the kernels see it: lines (rows of a, columns of b) and k. */
typedef struct dvti_cuda_mm_side {
    const void *data;
    dvt_dtype dtype;
    int64_t lines, k, line_stride, k_stride;
    const int64_t *batch; /* strides */
    int batch_axes;
} dvti_cuda_mm_side;

DVTI_FN dvti_cuda_mm_side dvti_cuda_mm_side_of(const dvti_cuda_mm *plan, dvt_dtype dtype, bool b);
/* The lines, or (along_k) the elements of a line, lie side by side, and all else is at multiples of `group` elements. */
DVTI_FN bool dvti_cuda_mm_packed(const dvti_cuda_mm_side *side, bool along_k, int64_t group);
/* Tiles and pieces of k for a kernel that has a tile of rows x cols. */
DVTI_FN void dvti_cuda_mm_divide(dvti_cuda_mm *plan, int64_t rows, int64_t cols, int64_t splits);

/* One shape of tile, and how much of the card's arithmetic it reaches, 0..1: what choosing needs to know. */
typedef struct dvti_cuda_mm_tile {
    int64_t rows, cols;
    double rate;
} dvti_cuda_mm_tile;

/* The tile, of n, that is expected to take the least time; and into how many pieces k goes. write: multiplications in the time
   that one element of a piece takes to be written and read. */
DVTI_FN int dvti_cuda_mm_choose(const dvti_cuda_gpu *gpu, const dvti_cuda_mm *plan,
                                const dvti_cuda_mm_tile *tiles, int n, double write,
                                int64_t *splits);

/* The tensor cores, when they can be used; false leaves the plan as it was. */
DVTI_FN bool dvti_cuda_mma_plan(const dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                dvti_cuda_mm *plan);

#endif
