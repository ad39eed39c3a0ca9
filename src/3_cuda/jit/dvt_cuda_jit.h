/* What the files of this room share. */
#ifndef DVTI_CUDA_JIT_H
#define DVTI_CUDA_JIT_H
#include "3_cuda/dvt_cuda.h"

/* What cuModuleLoadDataEx takes: a CUBIN, or PTX with its final 0. */
typedef struct dvti_cuda_image {
    char *bytes; /* to be freed */
    size_t size;
} dvti_cuda_image;

/* Compiles for a compute capability. */
DVTI_FN dvt_status dvti_cuda_compile(int cc, const char *function, dvti_cuda_program program,
                                     dvti_cuda_image *image);

#endif
