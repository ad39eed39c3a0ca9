/* A CUDA driver that accepts every call and does nothing, with the architecture of BENCH_GPU_ARCH
   (90 unless set) and 132 multiprocessors. With the real NVRTC it fills the kernel cache for a GPU
   that is not here: a program is compiled for the architecture, and loading it does nothing. Device
   memory reads as zeros. pack.sh builds this as libcuda.so.1. Calls are counted by name, which
   host_cost.c reads: null_driver_calls. It also measures downloads, by a driver that writes
   nothing: null_driver_zeros = 0. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY ((size_t)140 << 30)
typedef unsigned long long address;

static void *current; /* context; a stack of one, because there is only one GPU */
static uintptr_t made = 1 << 16;

/* Counts of calls. Not for programs whose threads call at the same time. */
#define MOST_NAMES 64

static struct {
    const char *name;
    long long calls;
} counted[MOST_NAMES];

static int n_counted;

static int new_counter(const char *name) {
    if (n_counted == MOST_NAMES)
        abort();
    counted[n_counted].name = name;
    return n_counted++;
}

#define COUNT                                                                                      \
    static int counter = -1;                                                                       \
    if (counter < 0)                                                                               \
        counter = new_counter(__func__);                                                           \
    counted[counter].calls++

/* Returns the name of function i that was called, and its calls so far; NULL after the last one. */
const char *null_driver_calls(int i, long long *calls);

const char *null_driver_calls(int i, long long *calls) {
    *calls = i < n_counted ? counted[i].calls : 0;
    return i < n_counted ? counted[i].name : NULL;
}

static int handle(void **out) {
    *out = (void *)__atomic_add_fetch(&made, 16, __ATOMIC_RELAXED);
    return 0;
}

/* Functions whose only effect is a handle, and those without any effect. */
#define MAKES(name, arguments)                                                                     \
    int name arguments;                                                                            \
    int name arguments {                                                                           \
        COUNT;                                                                                     \
        return handle(out);                                                                        \
    }
#define NOTHING(name)                                                                              \
    int name(void);                                                                                \
    int name(void) {                                                                               \
        COUNT;                                                                                     \
        return 0;                                                                                  \
    }
MAKES(cuStreamCreateWithPriority, (void **out, unsigned flags, int priority))
MAKES(cuEventCreate, (void **out, unsigned flags))
MAKES(cuModuleLoadDataEx, (void **out, const void *image, unsigned n, int *options, void **values))
MAKES(cuModuleGetFunction, (void **out, void *module, const char *name))
NOTHING(cuInit)
NOTHING(cuStreamDestroy_v2)
NOTHING(cuStreamSynchronize)
NOTHING(cuStreamWaitEvent)
NOTHING(cuEventDestroy_v2)
NOTHING(cuEventRecord)
NOTHING(cuEventQuery)
NOTHING(cuEventSynchronize)
NOTHING(cuModuleUnload)
NOTHING(cuLaunchKernel)
NOTHING(cuFuncSetAttribute)
NOTHING(cuMemFree_v2)
NOTHING(cuMemcpyHtoDAsync_v2)
NOTHING(cuMemcpyDtoDAsync_v2)
NOTHING(cuMemcpyPeerAsync)
NOTHING(cuMemsetD8Async)
NOTHING(cuCtxEnablePeerAccess)
NOTHING(cuTensorMapEncodeTiled)

int cuDriverGetVersion(int *version) {
    COUNT;
    *version = 13000;
    return 0;
}

int cuDeviceGetCount(int *count) {
    COUNT;
    *count = 1;
    return 0;
}

int cuDeviceGet(int *device, int ordinal) {
    COUNT;
    *device = ordinal;
    return 0;
}

int cuDeviceGetName(char *name, int size, int device) {
    COUNT;
    (void)device;
    snprintf(name, (size_t)size, "no GPU");
    return 0;
}

int cuDeviceGetPCIBusId(char *bus, int size, int device) {
    COUNT;
    (void)device;
    snprintf(bus, (size_t)size, "0000:00:00.0");
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    COUNT;
    (void)device;
    *bytes = MEMORY;
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    COUNT;
    const char *text = getenv("BENCH_GPU_ARCH");
    int arch = text ? atoi(text) : 90;
    (void)device;
    *value = attribute == 16 ? 132 : attribute == 75 ? arch / 10 : attribute == 76 ? arch % 10 : 0;
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
    COUNT;
    (void)device;
    *context = &made;
    return 0;
}

int cuCtxGetCurrent(void **context) {
    COUNT;
    *context = current;
    return 0;
}

int cuCtxPushCurrent_v2(void *context) {
    COUNT;
    current = context;
    return 0;
}

int cuCtxPopCurrent_v2(void **context) {
    COUNT;
    *context = current;
    current = NULL;
    return 0;
}

int cuMemGetInfo_v2(size_t *available, size_t *total) {
    COUNT;
    *available = *total = MEMORY;
    return 0;
}

int cuMemAlloc_v2(address *out, size_t bytes) {
    COUNT;
    static address next = (address)1 << 40;
    *out = __atomic_fetch_add(&next, (bytes + 4095) / 4096 * 4096 + 4096, __ATOMIC_RELAXED);
    return 0;
}

int cuMemHostAlloc(void **block, size_t bytes, unsigned flags) {
    COUNT;
    (void)flags;
    *block = calloc(1, bytes ? bytes : 1);
    return *block ? 0 : 2;
}

int cuMemFreeHost(void *block) {
    COUNT;
    free(block);
    return 0;
}

int cuPointerGetAttribute(void *value, int attribute, address of) {
    COUNT;
    (void)value, (void)attribute, (void)of;
    return 1;
}

extern int null_driver_zeros;

int null_driver_zeros = 1;

int cuMemcpyDtoHAsync_v2(void *dst, address src, size_t bytes, void *stream) {
    COUNT;
    (void)src, (void)stream;
    if (null_driver_zeros)
        memset(dst, 0, bytes);
    return 0;
}

int cuDeviceCanAccessPeer(int *can, int device, int peer) {
    COUNT;
    (void)device, (void)peer;
    *can = 0;
    return 0;
}

int cuEventElapsedTime_v2(float *milliseconds, void *begin, void *end) {
    COUNT;
    (void)begin, (void)end;
    *milliseconds = 1;
    return 0;
}

int cuGetErrorName(int result, const char **name) {
    COUNT;
    (void)result;
    *name = "an error";
    return 0;
}

int cuGetErrorString(int result, const char **text) {
    COUNT;
    (void)result;
    *text = "of the driver that does nothing";
    return 0;
}
