/* Opening the driver: libcuda, its functions, and the reason when it cannot be used. Makes no context on any card. */
#include "3_cuda/dvt_cuda.h"

typedef struct dvti_cuda_state {
    bool tried, usable;
    dvti_cuda_driver driver;
    int version, count;
    char reason[512];
} dvti_cuda_state;

static dvti_mutex dvti_cuda_state_lock = DVTI_MUTEX_INIT;
static dvti_cuda_state dvti_cuda_the_state;

static bool dvti_cuda_symbol(void *library, const char *name, void *to) {
    void *symbol = dvti_library_symbol(library, name);
    memcpy(to, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* With the lock held. */
static void dvti_cuda_try(dvti_cuda_state *s) {
#if defined(_WIN32)
    static const char *const names[] = {"nvcuda.dll"};
#else
    static const char *const names[] = {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};
#endif
    dvti_cuda_driver *cu = &s->driver;
    void *library = NULL;
    int i, result;
    if (dvti_env_int("DEVTENSOR_CUDA", 0, 1, 1) == 0) {
        snprintf(s->reason, sizeof s->reason, "DEVTENSOR_CUDA=0 turns CUDA off");
        return;
    }
    for (i = 0; i < DVTI_LENGTH(names) && !library; i++)
        library = dvti_library_open(names[i]);
    if (!library) {
        snprintf(s->reason, sizeof s->reason, "no NVIDIA driver was found (%s)", names[0]);
        return;
    }
#define DVTI_CUDA_RESOLVE(name, arguments, need)                                                   \
    if (!dvti_cuda_symbol(library, #name, &cu->name)) {                                            \
        snprintf(s->reason, sizeof s->reason,                                                      \
                 "the NVIDIA driver has no " #name "; install a newer driver");                    \
        return;                                                                                    \
    }
    DVTI_CUDA_DRIVER_TABLE(DVTI_CUDA_RESOLVE)
#undef DVTI_CUDA_RESOLVE
    result = cu->cuInit(0);
    if (result == DVTI_CU_OK)
        result = cu->cuDriverGetVersion(&s->version);
    if (result == DVTI_CU_OK)
        result = cu->cuDeviceGetCount(&s->count);
    if (result != DVTI_CU_OK || s->version <= 0) {
        snprintf(s->reason, sizeof s->reason,
                 "%s was found but does not work (error %d); reinstall the NVIDIA driver", names[0],
                 result);
        return;
    }
    if (s->count == 0)
        snprintf(s->reason, sizeof s->reason, "the NVIDIA driver sees no card");
    s->usable = s->count > 0;
}

static const dvti_cuda_state *dvti_cuda_tried(void) {
    dvti_cuda_state *s = &dvti_cuda_the_state;
    dvti_mutex_lock(&dvti_cuda_state_lock);
    if (!s->tried) {
        dvti_cuda_try(s);
        s->tried = true;
    }
    dvti_mutex_unlock(&dvti_cuda_state_lock);
    return s;
}

DVTI_FN const dvti_cuda_driver *dvti_cuda(void) {
    const dvti_cuda_state *s = dvti_cuda_tried();
    return s->usable ? &s->driver : NULL;
}

DVTI_FN const char *dvti_cuda_reason(void) {
    return dvti_cuda_tried()->reason;
}

DVTI_FN int dvti_cuda_driver_version(void) {
    return dvti_cuda_tried()->version;
}

DVTI_FN int dvti_cuda_count(void) {
    const dvti_cuda_state *s = dvti_cuda_tried();
    return s->usable ? DVTI_MIN(s->count, DVT_MAX_GPUS) : 0;
}

DVTI_FN dvt_status dvti_cuda_fail(const char *function, const char *call, dvti_cu_result result) {
    const dvti_cuda_driver *cu = dvti_cuda();
    const char *name = NULL, *text = NULL;
    if (cu->cuGetErrorName(result, &name) != DVTI_CU_OK || !name)
        name = "an unknown error";
    if (cu->cuGetErrorString(result, &text) != DVTI_CU_OK || !text)
        text = "";
    return dvti_fail(result == DVTI_CU_OUT_OF_MEMORY ? DVT_ERR_DEVICE_MEMORY : DVT_ERR_INTERNAL,
                     "%s: %s gave %s (%d): %s", function, call, name, result, text);
}
