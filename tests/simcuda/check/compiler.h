/* CUDA source to modules, by the NVRTC double and by clang. */
#ifndef COMPILER_H
#define COMPILER_H

#include <stddef.h>

#include "exec.h"

/* The entry points of the double that the tests use, under their own names. */
typedef struct nvrtc {
    int (*nvrtcVersion)(int *, int *);
    int (*nvrtcGetNumSupportedArchs)(int *);
    int (*nvrtcGetSupportedArchs)(int *);
    const char *(*nvrtcGetErrorString)(int);
    int (*nvrtcCreateProgram)(void **, const char *, const char *, int, const char *const *,
                              const char *const *);
    int (*nvrtcDestroyProgram)(void **);
    int (*nvrtcCompileProgram)(void *, int, const char *const *);
    int (*nvrtcGetPTXSize)(void *, size_t *);
    int (*nvrtcGetPTX)(void *, char *);
    int (*nvrtcGetCUBINSize)(void *, size_t *);
    int (*nvrtcGetCUBIN)(void *, char *);
    int (*nvrtcGetLTOIRSize)(void *, size_t *);
    int (*nvrtcGetOptiXIRSize)(void *, size_t *);
    int (*nvrtcGetProgramLogSize)(void *, size_t *);
    int (*nvrtcGetProgramLog)(void *, char *);
    int (*nvrtcAddNameExpression)(void *, const char *);
    int (*nvrtcGetLoweredName)(void *, const char *, const char **);
    int (*nvrtcGetPCHHeapSize)(size_t *);
    int (*nvrtcSetPCHHeapSize)(size_t);
    int (*nvrtcGetPCHHeapSizeRequired)(void *, size_t *);
    int (*nvrtcGetPCHCreateStatus)(void *);
    int (*nvrtcSetFlowCallback)(void *, int (*)(void *, void *), void *);
    void (*sim_nvrtc_fail)(const char *, int, int);
    unsigned (*sim_nvrtc_calls)(const char *);
    void (*sim_nvrtc_reset)(void);
} nvrtc;

/* The double, from $SIMCUDA_LIB; NULL, counted as a failed check, when it cannot be loaded. */
const nvrtc *nvrtc_double(void);
int nvrtc_is_real(void); /* is there a real NVRTC behind it? */

char *read_source(const char *name); /* tests/simcuda/check/cuda/NAME, from malloc */

/* Compiles source for an architecture ("sm_80"); options end in NULL. NULL after a failed check. */
exec *nvrtc_module(const char *source, const char *arch, const char *const *options);
/* The same by clang through PTX; NULL without a check when there is no clang that can. `file` is a
   name for read_source. */
exec *clang_module(const char *file);

#endif
