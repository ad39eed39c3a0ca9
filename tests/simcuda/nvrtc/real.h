/* What the double knows of NVRTC: its result codes and prototypes, written down here so that no
   CUDA header is needed; and how it gets at the real library. */
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

/* Stores a function of the real NVRTC in *pointer, a pointer to a function of its type; returns
   whether there is one. The library is loaded at the first call, from $SIMNVRTC_REAL, $CUDA_HOME or
   /usr/local/cuda; why it could not be is said once on the standard error. */
int real_function(const char *name, void *pointer);

#endif
