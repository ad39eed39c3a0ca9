/* Shared by the files of matrix products: plans, operands, the choice of tiles. */
#ifndef DVTI_CUDA_MATMUL_H
#define DVTI_CUDA_MATMUL_H
#include "3_cuda/device/dvt_cuda_device.h"

/* Splits of k begin at multiples of this, a multiple of every kernel's step along k. */
#define DVTI_MM_CHUNK 64

/* The plan of a launch, without its workspace. */
typedef struct dvti_cuda_mm {
    dvti_cuda_program program;
    const char *entry;
    int threads;
    int64_t shared;
    int64_t partial;    /* bytes of one element of a partial result */
    double time;        /* expected, in the unit of dvti_cuda_mm_choose; not of rows and columns */
    int parts;          /* numbers per element of copied operands, 1 or 2; 0: no copies */
    const char *copies; /* of the operands, in the workspace; set when the plan starts */
    dvti_kmatmul args;
} dvti_cuda_mm;

/* An operand as the kernels see it: lines (rows of a, columns of b) and k. */
typedef struct dvti_cuda_mm_side {
    const void *data;
    dvt_dtype dtype;
    int64_t lines, k, line_stride, k_stride;
    const int64_t *batch; /* strides */
    int batch_axes;
} dvti_cuda_mm_side;

/* One tile shape, and the fraction of the GPU's arithmetic throughput that it reaches, 0 to 1. */
typedef struct dvti_cuda_mm_tile {
    int64_t rows, cols;
    double rate;
} dvti_cuda_mm_tile;

DVTI_FN dvti_cuda_mm_side dvti_cuda_mm_side_of(const dvti_cuda_mm *plan, dvt_dtype dtype, bool b);
/* Returns whether the lines, or (along_k) the elements of a line, are contiguous, and all other
   strides are multiples of `group` elements. */
DVTI_FN bool dvti_cuda_mm_packed(const dvti_cuda_mm_side *side, bool along_k, int64_t group);
/* Sets the tiles and the splits of k for a kernel with tiles of rows x cols. */
DVTI_FN void dvti_cuda_mm_divide(dvti_cuda_mm *plan, int64_t rows, int64_t cols, int64_t splits);
/* Returns the tile, of n, with the shortest expected time, the number of splits of k, and the time.
   Its unit is one multiplication of one multiprocessor. most: of splits. write: the time to write
   and read one element of a partial result. */
DVTI_FN int dvti_cuda_mm_choose(const dvti_cuda_gpu *gpu, const dvti_cuda_mm *plan,
                                const dvti_cuda_mm_tile *tiles, int n, int64_t most, double write,
                                int64_t *splits, double *time);

/* ---- cuda_matmul_mma.c ---- */
/* Plans a product on tensor cores; false: they do not serve it. */
DVTI_FN bool dvti_cuda_mma_plan(const dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                dvti_cuda_mm *plan);

/* ---- cuda_matmul_wgmma.c ---- */
/* Returns whether wgmma can compute the product: compute capability 9.0, 16-bit floats, tensor maps
   of both operands. */
DVTI_FN bool dvti_cuda_wgmma_serves(const dvti_cuda_gpu *gpu, const dvti_cuda_mm *plan,
                                    dvt_dtype dtype, bool a_along_k, bool b_along_k);
/* Sets the program: tiles of 128x256 (wide) or 128x128. Returns false, with the plan as it was, if
   the program cannot be loaded from a cache and NVRTC cannot compile it. */
DVTI_FN bool dvti_cuda_wgmma_use(const dvti_cuda_gpu *gpu, dvti_cuda_mm *plan, dvt_dtype dtype,
                                 bool wide, bool a_along_k, bool b_along_k);
/* Replaces a plan by wgmma on copies of the operands, if that is faster: 16-bit floats of any
   strides; float32 as TF32, or as two TF32 numbers per element, where the program allows it.
   Returns whether it did. */
DVTI_FN bool dvti_cuda_wgmma_repack(const dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                    dvti_cuda_mm *plan);
/* Returns the bytes of the copies, a multiple of 256. */
DVTI_FN int64_t dvti_cuda_packed_bytes(const dvti_cuda_mm *plan, dvt_dtype dtype);
/* Starts a plan of kernels/matmul_wgmma.cu, after the copies that it needs. */
DVTI_FN dvt_status dvti_cuda_wgmma_start(dvti_cuda_gpu *gpu, const dvti_launch *launch,
                                         const dvti_cuda_mm *plan);

#endif
