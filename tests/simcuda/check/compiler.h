/* Compiles CUDA source to modules, by the NVRTC test double and by clang. */
#ifndef COMPILER_H
#define COMPILER_H

#include <stddef.h>

#include "exec.h"

/* The entry points of the test double that the tests use, under their own names. */
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

/* Loads the test double from $SIMCUDA_LIB. Returns NULL, counted as a failed check, when it cannot
   be loaded. */
const nvrtc *nvrtc_double(void);
int nvrtc_is_real(void); /* whether a real NVRTC is behind it */

char *read_source(const char *name); /* reads tests/simcuda/check/cuda/NAME; free the result */

/* Compiles source for an architecture ("sm_80"). The options end in NULL. Returns NULL after a
   failed check. */
exec *nvrtc_module(const char *source, const char *arch, const char *const *options);
/* Compiles by clang through PTX. `file` is a name for read_source. Returns NULL, without a check,
   when no suitable clang is found. */
exec *clang_module(const char *file);

#endif
