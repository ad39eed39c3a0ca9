/* What the files of this room share, and with jit/: whether kernels could be had at all. */
#ifndef DVTI_CUDA_DRIVER_H
#define DVTI_CUDA_DRIVER_H
#include "3_cuda/dvt_cuda.h"

/* Looks for NVRTC, once. Nothing found: false, and what was tried is written to `why`. `driver` is the driver's version, since an NVRTC
   of another generation makes what the driver may refuse. */
DVTI_FN bool dvti_nvrtc_find(int driver, char *why, size_t size);
/* Whether the cache holds anything: then there may be no need for NVRTC. */
DVTI_FN bool dvti_cuda_cache_any(void);
/* Bytes free on a card, without a context on it; -1 when that cannot be known. */
DVTI_FN int64_t dvti_nvml_free(dvti_cu_device card);

#endif
