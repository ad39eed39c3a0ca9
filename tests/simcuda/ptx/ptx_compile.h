/* PTX text to a loadable module. The NVRTC double makes "cubins" with it, the driver's JIT loads
   PTX with it. Link ptx/ptx_*.c. The result is a sim_container (sim_module.h) in memory from
   malloc. */
#ifndef PTX_COMPILE_H
#define PTX_COMPILE_H

#include <stddef.h>

typedef enum ptx_result {
    PTX_OK,
    /* the PTX is invalid or has a form that is not translated: CUDA_ERROR_INVALID_PTX */
    PTX_UNSUPPORTED,
    /* the C compiler is missing or rejected the code: a fault of the simulator or of the machine */
    PTX_NO_COMPILER,
    PTX_NO_MEMORY,
    PTX_IO
} ptx_result;

/* Translates PTX and compiles it with $SIMNVRTC_CC (cc) -O1, or takes the result from the cache
   directory $SIMCUDA_CACHE. Memory checks are built in unless $SIMCUDA_CHECK is 0, counts only with
   $SIMCUDA_COUNT=1. `flags` are SIM_CONTAINER_*, `usage` is sim_module.usage or NULL. On success
   sets *container and *size. *log receives a message on an error (one line per problem) and NULL
   otherwise. The caller frees both. */
ptx_result ptx_compile(const char *ptx, unsigned flags, const char *usage, void **container,
                       size_t *size, char **log);

/* Tells whether $SIMCUDA_COUNT asks for modules that count. */
int ptx_counts(void);

#endif
