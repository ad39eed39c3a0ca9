/* Opens the driver: libcuda, its functions, and the reason when it is not usable. Initializes CUDA,
   which makes GPUs unusable after a later fork(). Creates no context. */
#include "3_cuda/dvt_cuda.h"

typedef struct dvti_cuda_state {
    dvti_atomic tried; /* 1: the other members no longer change */
    bool usable;
    int64_t process;
    dvti_cuda_driver driver;
    int version, count;
    char reason[1024];
} dvti_cuda_state;

static dvti_mutex dvti_cuda_state_lock = DVTI_MUTEX_INIT;
static dvti_cuda_state dvti_cuda_the_state;

#if defined(_WIN32)
#define DVTI_CUDA_LIBRARY "nvcuda.dll"
static const char *const dvti_cuda_paths[] = {DVTI_CUDA_LIBRARY};
#else
/* Not libcuda.so: on many machines that is the toolkit's link-time stub. WSL and NixOS install the
   driver outside the loader's search path. */
#define DVTI_CUDA_LIBRARY "libcuda.so.1"
static const char *const dvti_cuda_paths[] = {
    DVTI_CUDA_LIBRARY, "/usr/lib/wsl/lib/libcuda.so.1", "/run/opengl-driver/lib/libcuda.so.1",
    "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib/aarch64-linux-gnu/libcuda.so.1"};
#endif

static void *dvti_cuda_find_library(dvti_cuda_state *s) {
    const char *own = dvti_env("DEVTENSOR_CUDA_PATH");
    void *library = own ? dvti_library_open(own) : NULL;
    int i;
    for (i = 0; !own && i < DVTI_LENGTH(dvti_cuda_paths) && !library; i++)
        library = dvti_library_open(dvti_cuda_paths[i]);
    if (!library && own)
        snprintf(
            s->reason, sizeof s->reason,
            "DEVTENSOR_CUDA_PATH=%.300s cannot be loaded; expected the path of " DVTI_CUDA_LIBRARY,
            own);
    else if (!library)
        snprintf(s->reason, sizeof s->reason,
                 "no NVIDIA driver was found (" DVTI_CUDA_LIBRARY
                 " is not in the search path of libraries); install the NVIDIA driver");
    return library;
}

/* A wrong DEVTENSOR_CUDA_PATH is more likely than an old driver. */
static void dvti_cuda_missing_symbol(dvti_cuda_state *s, const char *symbol) {
    const char *own = dvti_env("DEVTENSOR_CUDA_PATH");
    if (own)
        snprintf(
            s->reason, sizeof s->reason,
            "DEVTENSOR_CUDA_PATH=%.300s has no %s: it is not an NVIDIA driver, or one older than "
            "CUDA 11.2; expected the path of " DVTI_CUDA_LIBRARY,
            own, symbol);
    else
        snprintf(s->reason, sizeof s->reason,
                 "the NVIDIA driver has no %s: it is too old; install one for CUDA 11.2 or newer",
                 symbol);
}

static bool dvti_cuda_resolve_driver(dvti_cuda_state *s, void *library) {
    void *symbol;
#define DVTI_CUDA_RESOLVE(name, arguments)                                                         \
    symbol = dvti_library_symbol(library, #name);                                                  \
    if (!symbol) {                                                                                 \
        dvti_cuda_missing_symbol(s, #name);                                                        \
        return false;                                                                              \
    }                                                                                              \
    memcpy(&s->driver.name, &symbol, sizeof symbol);
    DVTI_CUDA_DRIVER_TABLE(DVTI_CUDA_RESOLVE)
#undef DVTI_CUDA_RESOLVE
    symbol = dvti_library_symbol(library, "cuEventElapsedTime_v2");
    if (!symbol)
        symbol = dvti_library_symbol(library, "cuEventElapsedTime");
    memcpy(&s->driver.elapsed, &symbol, sizeof symbol);
    symbol = dvti_library_symbol(library, "cuTensorMapEncodeTiled");
    memcpy(&s->driver.cuTensorMapEncodeTiled, &symbol, sizeof symbol);
    return true;
}

/* Describes the usual causes. */
static void dvti_cuda_explain(dvti_cuda_state *s, dvti_cu_result result) {
    const char *name = NULL;
    if (s->driver.cuGetErrorName(result, &name) != DVTI_CU_OK || !name)
        name = "an unknown error";
    snprintf(s->reason, sizeof s->reason,
             "the NVIDIA driver does not work: cuInit gave %s (%d): %s", name, result,
             result == DVTI_CU_STUB_LIBRARY
                 ? "this " DVTI_CUDA_LIBRARY
                   " is the toolkit's stub; remove the stubs directory from the "
                   "library path, and install the driver"
             : result == DVTI_CU_NO_DEVICE
                 ? "it sees no GPU; check nvidia-smi, CUDA_VISIBLE_DEVICES, and in a container "
                   "whether it was started with GPUs"
             : result == DVTI_CU_MISMATCH
                 ? "its parts have different versions, as after an update; restart the machine"
             : result == DVTI_CU_NOT_READY_SYSTEM
                 ? "a service that it needs is not running (nvidia-fabricmanager)"
                 : "check nvidia-smi, or install the driver again");
}

/* The caller holds the lock. */
static void dvti_cuda_try(dvti_cuda_state *s) {
    void *library;
    dvti_cu_result result;
    char nvrtc[600];
    s->process = dvti_process_id();
    if (sizeof(void *) != 8) {
        snprintf(s->reason, sizeof s->reason, "CUDA needs a 64-bit program");
        return;
    }
    if (dvti_env_int("DEVTENSOR_CUDA", 0, 1, 1) == 0) {
        snprintf(s->reason, sizeof s->reason, "DEVTENSOR_CUDA=0 turns CUDA off");
        return;
    }
    library = dvti_cuda_find_library(s);
    if (!library || !dvti_cuda_resolve_driver(s, library))
        return;
    result = s->driver.cuInit(0);
    if (result == DVTI_CU_OK)
        result = s->driver.cuDriverGetVersion(&s->version);
    if (result == DVTI_CU_OK)
        result = s->driver.cuDeviceGetCount(&s->count);
    if (result == DVTI_CU_OK && s->count == 0)
        result = DVTI_CU_NO_DEVICE;
    if (result != DVTI_CU_OK) {
        dvti_cuda_explain(s, result);
        return;
    }
    /* Programs that fall back to cpu() should learn this now, not at their first operation. */
    if (!dvti_cuda_cache_any() && !dvti_nvrtc_find(s->version, nvrtc, sizeof nvrtc)) {
        snprintf(s->reason, sizeof s->reason, "the NVIDIA driver works, but %s", nvrtc);
        return;
    }
    s->usable = true;
}

static DVTI_RARE void dvti_cuda_try_once(dvti_cuda_state *s) {
    dvti_mutex_lock(&dvti_cuda_state_lock);
    if (!dvti_atomic_load(&s->tried)) {
        dvti_cuda_try(s);
        dvti_atomic_publish(&s->tried, 1);
    }
    dvti_mutex_unlock(&dvti_cuda_state_lock);
}

static const dvti_cuda_state *dvti_cuda_tried(void) {
    dvti_cuda_state *s = &dvti_cuda_the_state;
    if (!dvti_atomic_load(&s->tried))
        dvti_cuda_try_once(s);
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

DVTI_FN bool dvti_cuda_forked(void) {
    return dvti_cuda_tried()->process != dvti_process_id();
}

DVTI_FN dvt_status dvti_cuda_fail(const char *function, const char *call, dvti_cu_result result) {
    const dvti_cuda_driver *cu = dvti_cuda();
    const char *name = NULL, *text = NULL;
    if (cu->cuGetErrorName(result, &name) != DVTI_CU_OK || !name)
        name = "an unknown error";
    if (cu->cuGetErrorString(result, &text) != DVTI_CU_OK || !text)
        text = "the driver has no text for it";
    return dvti_fail(result == DVTI_CU_OUT_OF_MEMORY ? DVT_ERR_DEVICE_MEMORY : DVT_ERR_INTERNAL,
                     "%s: %s gave %s (%d): %s", function, call, name, result, text);
}

#undef DVTI_CUDA_LIBRARY
