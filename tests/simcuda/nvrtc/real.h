/* Result codes and prototypes of NVRTC, repeated here so that no CUDA header is needed; and access
   to the real library. */
#ifndef REAL_H
#define REAL_H

#include <stddef.h>

typedef enum result {
    NVRTC_SUCCESS = 0,
    NVRTC_OUT_OF_MEMORY = 1,
    NVRTC_INVALID_INPUT = 3,
    NVRTC_INVALID_PROGRAM = 4,
    NVRTC_COMPILATION = 6,
    NVRTC_INTERNAL_ERROR = 11
} result;

typedef void *real_program;

/* Stores a function of the real NVRTC in *pointer, a pointer to a function of its type. Returns
   whether there is one. The first call loads the library from $SIMNVRTC_REAL, $CUDA_HOME or
   /usr/local/cuda. A failure to load is reported once on stderr. */
int real_function(const char *name, void *pointer);

#endif
