/* PTX text to a loadable module, for both halves: the NVRTC double makes "cubins" with it, the
   driver's JIT loads PTX with it. Link ptx/ptx_*.c. The result is a sim_container (sim_module.h) in
   memory from malloc. */
#ifndef PTX_COMPILE_H
#define PTX_COMPILE_H

#include <stddef.h>

typedef enum ptx_result {
    PTX_OK,
    /* the PTX is wrong or has a form that is not translated: CUDA_ERROR_INVALID_PTX */
    PTX_UNSUPPORTED,
    /* the C compiler is missing or refused the code: a fault of the simulator or of the machine */
    PTX_NO_COMPILER,
    PTX_NO_MEMORY,
    PTX_IO
} ptx_result;

/* Translates PTX and compiles it with $SIMNVRTC_CC (cc) -O1, or takes the result from the cache
   folder $SIMCUDA_CACHE. Memory checks are built in unless $SIMCUDA_CHECK is 0. `flags` are
   SIM_CONTAINER_*. On success *container and *size are set. *log is set to a message when something
   went wrong (one line per problem) and to NULL otherwise; free both. */
ptx_result ptx_compile(const char *ptx, unsigned flags, void **container, size_t *size, char **log);

#endif
