/* The unsuffixed forms whose ABI differs from today's headers: 32-bit addresses and sizes, fewer
   parameters. libcuda still exports them, so a loader that forgets the suffix gets one and corrupts
   its stack or its data. Here each reports that error. This file must not include cuda.h, which
   renames them. */
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

enum { NOT_SUPPORTED = 801 };

void say(const char *format, ...);

static int trap(const char *name) {
    say("unsuffixed symbol called: %s has an old ABI, use its _v2 (or later) form", name);
    fprintf(stderr, "simcuda: unsuffixed symbol called: %s\n", name);
    return NOT_SUPPORTED;
}

#define OLD(name)                                                                                  \
    EXPORT int name(void);                                                                         \
    int name(void) {                                                                               \
        return trap(#name);                                                                        \
    }

OLD(cuCtxPopCurrent)
OLD(cuCtxPushCurrent)
OLD(cuDevicePrimaryCtxRelease)
OLD(cuDevicePrimaryCtxReset)
OLD(cuDevicePrimaryCtxSetFlags)
OLD(cuDeviceTotalMem)
OLD(cuEventDestroy)
OLD(cuGraphExecKernelNodeSetParams)
OLD(cuGraphInstantiate)
OLD(cuMemAlloc)
OLD(cuMemAllocHost)
OLD(cuMemFree)
OLD(cuMemGetAddressRange)
OLD(cuMemGetInfo)
OLD(cuMemHostGetDevicePointer)
OLD(cuMemHostRegister)
OLD(cuMemcpy2D)
OLD(cuMemcpy2DAsync)
OLD(cuMemcpy2DUnaligned)
OLD(cuMemcpy3D)
OLD(cuMemcpy3DAsync)
OLD(cuMemcpyDtoD)
OLD(cuMemcpyDtoDAsync)
OLD(cuMemcpyDtoH)
OLD(cuMemcpyDtoHAsync)
OLD(cuMemcpyHtoD)
OLD(cuMemcpyHtoDAsync)
OLD(cuMemsetD16)
OLD(cuMemsetD2D16)
OLD(cuMemsetD2D32)
OLD(cuMemsetD2D8)
OLD(cuMemsetD32)
OLD(cuMemsetD8)
OLD(cuModuleGetGlobal)
OLD(cuStreamBeginCapture)
OLD(cuStreamDestroy)
OLD(cuStreamGetCaptureInfo)

/* On a driver without a newer form these are the correct ones. */
int old_event_elapsed(float *ms, void *start, void *end);
int old_exec_update(void *exec, void *graph, void **node, int *result);
int old_uuid(void *uuid, int device);
int newer_form(int version);

EXPORT int cuEventElapsedTime(float *ms, void *start, void *end);
EXPORT int cuGraphExecUpdate(void *exec, void *graph, void **node, int *result);
EXPORT int cuDeviceGetUuid(void *uuid, int device);

int cuEventElapsedTime(float *ms, void *start, void *end) {
    return newer_form(12080) ? trap("cuEventElapsedTime") : old_event_elapsed(ms, start, end);
}

int cuGraphExecUpdate(void *exec, void *graph, void **node, int *result) {
    return newer_form(12000) ? trap("cuGraphExecUpdate")
                             : old_exec_update(exec, graph, node, result);
}

int cuDeviceGetUuid(void *uuid, int device) { /* differs only on a GPU partitioned by MIG */
    return old_uuid(uuid, device);
}
