/* Queries the free memory of a GPU from NVML, as nvidia-smi does, which needs no context. Optional:
   without NVML the free memory is known only for GPUs in use. */
#include "3_cuda/dvt_cuda.h"

typedef struct dvti_nvml_memory {
    unsigned long long total, available, used;
} dvti_nvml_memory;

typedef struct dvti_nvml {
    bool tried, usable;
    int(DVTI_CUDA_CALL *init)(void);
    int(DVTI_CUDA_CALL *by_bus)(const char *bus, void **device);
    int(DVTI_CUDA_CALL *memory)(void *device, dvti_nvml_memory *memory);
} dvti_nvml;

static dvti_nvml dvti_the_nvml;
static dvti_mutex dvti_nvml_lock = DVTI_MUTEX_INIT;

static bool dvti_nvml_symbol(void *library, const char *name, void *to) {
    void *symbol = dvti_library_symbol(library, name);
    memcpy(to, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* The caller holds the lock. */
static bool dvti_nvml_ready(dvti_nvml *nvml) {
#if defined(_WIN32)
    static const char name[] = "nvml.dll";
#else
    static const char name[] = "libnvidia-ml.so.1";
#endif
    void *library;
    if (nvml->tried)
        return nvml->usable;
    nvml->tried = true;
    library = dvti_library_open(name);
    nvml->usable = library && dvti_nvml_symbol(library, "nvmlInit_v2", &nvml->init) &&
                   dvti_nvml_symbol(library, "nvmlDeviceGetHandleByPciBusId_v2", &nvml->by_bus) &&
                   dvti_nvml_symbol(library, "nvmlDeviceGetMemoryInfo", &nvml->memory) &&
                   nvml->init() == 0;
    return nvml->usable;
}

DVTI_FN int64_t dvti_nvml_free(dvti_cu_device physical) {
    dvti_nvml *nvml = &dvti_the_nvml;
    dvti_nvml_memory memory;
    void *device = NULL;
    char bus[64];
    int64_t available = -1;
    if (dvti_cuda()->cuDeviceGetPCIBusId(bus, (int)sizeof bus, physical) != DVTI_CU_OK)
        return -1;
    dvti_mutex_lock(&dvti_nvml_lock);
    if (dvti_nvml_ready(nvml) && nvml->by_bus(bus, &device) == 0 &&
        nvml->memory(device, &memory) == 0)
        available = (int64_t)memory.available;
    dvti_mutex_unlock(&dvti_nvml_lock);
    return available;
}
