/* The unsuffixed forms whose ABI is another one than today's headers say: 32-bit addresses and sizes, fewer
   parameters. libcuda still exports them, so a loader that forgets the suffix gets one and corrupts its
   stack or its data. Here each says so. This file must not see cuda.h, which renames them. */
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

/* These were the right ones once, and are on a driver that has no newer form. */
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

int cuDeviceGetUuid(void *uuid, int device) { /* the same but on a partitioned card */
    return old_uuid(uuid, device);
}
