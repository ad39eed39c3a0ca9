/* What the two families of convolution share: ordinary cores and tensor cores. */
#ifndef DVTI_CUDA_CONV_H
#define DVTI_CUDA_CONV_H
#include "3_cuda/dvt_cuda.h"

/* A block's results and the depth of a slice. `speed`: of multiplying, of what the family's largest reaches. Then the results of a
   thread, or on the tensor cores the warps of a block: down and across. */
typedef struct dvti_cuda_conv_tile {
    int rows, columns, depth;
    double speed;
    int down, across;
} dvti_cuda_conv_tile;

typedef enum dvti_cuda_conv_op {
    DVTI_CUDA_CONV_FORWARD,
    DVTI_CUDA_CONV_DATA,
    DVTI_CUDA_CONV_WEIGHT
} dvti_cuda_conv_op;

typedef struct dvti_cuda_conv_plan {
    dvti_kconv args;
    dvti_cuda_conv_op op;
    dvt_dtype dtype;
    int how; /* the number of a tile, or what cuda_conv.c adds to these */
    int slice;
    bool wide; /* positions need 64 bits */
    bool mma;
    /* The product: rows x depth times depth x columns, `products` of them (groups and phases); those of the first phase, the largest. */
    int64_t rows, columns, depth, products;
    dvti_cuda_grid grid;
} dvti_cuda_conv_plan;

/* Writes what both families have in a variant: dtype, operation, how (a number of `tiles`, or more), 64-bit positions. Returns how. */
DVTI_FN int dvti_cuda_conv_describe(uint64_t variant, const dvti_cuda_conv_tile *tiles, int count,
                                    dvti_text *text);
/* The tiles of the tensor cores, or NULL (and `count` as it was) where this card does without them, or may not use them. */
DVTI_FN const dvti_cuda_conv_tile *dvti_cuda_conv_mma_tiles(const dvti_cuda_gpu *gpu,
                                                            const dvti_launch *launch, int *count);

#endif
