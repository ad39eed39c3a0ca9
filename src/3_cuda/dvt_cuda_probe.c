/* What can be known about CUDA without using it: is there a driver, and which. Opens no context on any card. */
#include "2_core/dvt_core.h"

#if defined(DEVTENSOR_NO_CUDA)

DVTI_FN const char *dvti_cuda_reason(void) {
    return "this build leaves CUDA out (DEVTENSOR_NO_CUDA)";
}

DVTI_FN int dvti_cuda_driver_version(void) {
    return 0;
}

#else

typedef struct dvti_cuda_probe {
    bool done;
    int version;
    char reason[200];
} dvti_cuda_probe;

static dvti_mutex dvti_cuda_lock = DVTI_MUTEX_INIT;

static const dvti_cuda_probe *dvti_cuda_probed(void) {
    static dvti_cuda_probe probe;
#if defined(_WIN32)
    static const char *const names[] = {"nvcuda.dll"};
#else
    static const char *const names[] = {"libcuda.so.1", "libcuda.so"};
#endif
    dvti_mutex_lock(&dvti_cuda_lock);
    if (!probe.done) {
        void *library = NULL, *symbol;
        int (*version)(int *) = NULL;
        int i;
        for (i = 0; i < DVTI_LENGTH(names) && !library; i++)
            library = dvti_library_open(names[i]);
        symbol = library ? dvti_library_symbol(library, "cuDriverGetVersion") : NULL;
        if (symbol)
            memcpy(&version, &symbol, sizeof version);
        if (!library)
            snprintf(probe.reason, sizeof probe.reason, "no NVIDIA driver was found (%s)",
                     names[0]);
        else if (!version || version(&probe.version) != 0)
            snprintf(probe.reason, sizeof probe.reason,
                     "%s was found but does not work; reinstall the NVIDIA driver", names[0]);
        else
            snprintf(probe.reason, sizeof probe.reason,
                     "an NVIDIA driver for CUDA %d.%d was found, but devtensor %s computes on "
                     "cpu() and virtual GPUs only",
                     probe.version / 1000, probe.version % 1000 / 10, DVT_VERSION_STRING);
        probe.done = true;
    }
    dvti_mutex_unlock(&dvti_cuda_lock);
    return &probe;
}

DVTI_FN const char *dvti_cuda_reason(void) {
    return dvti_cuda_probed()->reason;
}

DVTI_FN int dvti_cuda_driver_version(void) {
    return dvti_cuda_probed()->version;
}

#endif
