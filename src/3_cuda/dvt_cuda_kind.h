/* What every build has of CUDA: its kind of device, which under DEVTENSOR_NO_CUDA has none. */
#ifndef DVTI_CUDA_KIND_H
#define DVTI_CUDA_KIND_H
#include "2_core/dvt_core.h"

DVTI_FN const dvti_backend_kind *dvti_cuda_kind(void);

#endif
