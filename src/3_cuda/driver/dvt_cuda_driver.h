/* Shared by the files of this directory and by jit/, to decide whether kernels can be compiled or
   loaded. */
#ifndef DVTI_CUDA_DRIVER_H
#define DVTI_CUDA_DRIVER_H
#include "3_cuda/dvt_cuda.h"

/* Searches for NVRTC once. On failure it returns false and writes the candidates to `why`. `driver`
   is the driver's version: it may refuse the code of a newer NVRTC. */
DVTI_FN bool dvti_nvrtc_find(int driver, char *why, size_t size);
/* Returns whether the cache has any entry. Then NVRTC may not be needed. */
DVTI_FN bool dvti_cuda_cache_any(void);
/* Returns the free bytes of a GPU without creating a context; -1 when unknown. */
DVTI_FN int64_t dvti_nvml_free(dvti_cu_device device);

#endif
