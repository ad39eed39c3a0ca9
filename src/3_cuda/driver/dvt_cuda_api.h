/* Declares the parts of CUDA that this library uses, without toolkit headers. Each function of the
   two libraries appears once, with its types. tests/cuda checks every line against the real cuda.h
   and nvrtc.h and the toolkit's stub library.

   The names are the exported ones. If a function has several versions (_v2 and so on), the plain
   name is the oldest one, with other types. */
#ifndef DVTI_CUDA_API_H
#define DVTI_CUDA_API_H
#include "2_core/dvt_core.h"

#if defined(_WIN32)
#define DVTI_CUDA_CALL __stdcall
#else
#define DVTI_CUDA_CALL
#endif

typedef int dvti_cu_result;
typedef int dvti_cu_device;
typedef void *dvti_cu_context;
typedef void *dvti_cu_module;
typedef void *dvti_cu_function;
typedef void *dvti_cu_stream;
typedef void *dvti_cu_event;
typedef unsigned long long dvti_cu_address;

/* The results that the code checks. */
enum {
    DVTI_CU_OK = 0,
    DVTI_CU_INVALID_VALUE = 1,
    DVTI_CU_OUT_OF_MEMORY = 2,
    DVTI_CU_STUB_LIBRARY = 34,
    DVTI_CU_NO_DEVICE = 100,
    DVTI_CU_INVALID_IMAGE = 200,
    DVTI_CU_NO_BINARY = 209,
    DVTI_CU_NOT_FOUND = 500,
    DVTI_CU_OUT_OF_RESOURCES = 701,
    DVTI_CU_UNSUPPORTED_PTX = 222,
    DVTI_CU_PEER_ALREADY = 704,
    DVTI_CU_NOT_READY = 600,
    DVTI_CU_NOT_READY_SYSTEM = 802,
    DVTI_CU_MISMATCH = 803
};

/* Attributes of a device. */
enum { DVTI_CU_ATTR_PROCESSORS = 16, DVTI_CU_ATTR_MAJOR = 75, DVTI_CU_ATTR_MINOR = 76 };

enum {
    DVTI_CU_STREAM_NON_BLOCKING = 1,
    DVTI_CU_EVENT_DISABLE_TIMING = 2,
    DVTI_CU_HOST_PORTABLE = 1,
    DVTI_CU_FUNC_SHARED = 8,        /* attribute of a function: bytes of dynamic shared memory */
    DVTI_CU_POINTER_DEVICE = 9,     /* attribute of an address: the number of its GPU */
    DVTI_CU_TENSOR_MAP_FLOAT16 = 6, /* dtypes of tensor maps */
    DVTI_CU_TENSOR_MAP_FLOAT32 = 7,
    DVTI_CU_TENSOR_MAP_BFLOAT16 = 9,
    DVTI_CU_TENSOR_MAP_SWIZZLE_128B = 3,
    DVTI_CU_TENSOR_MAP_PROMOTION_256B = 3, /* the L2 cache fetches 256 bytes */
    DVTI_CU_JIT_ERROR_LOG = 5,
    DVTI_CU_JIT_ERROR_LOG_BYTES = 6
};

#define DVTI_CU_PARAM_END ((void *)0)
#define DVTI_CU_PARAM_POINTER ((void *)1)
#define DVTI_CU_PARAM_SIZE ((void *)2)

/* name, arguments. All drivers since CUDA 11.2 have these; a driver without one is too old. */
#define DVTI_CUDA_DRIVER_TABLE(X)                                                                  \
    X(cuInit, (unsigned flags))                                                                    \
    X(cuDriverGetVersion, (int *version))                                                          \
    X(cuDeviceGetCount, (int *count))                                                              \
    X(cuDeviceGet, (dvti_cu_device * device, int ordinal))                                         \
    X(cuDeviceGetName, (char *name, int size, dvti_cu_device device))                              \
    X(cuDeviceGetPCIBusId, (char *bus, int size, dvti_cu_device device))                           \
    X(cuDeviceTotalMem_v2, (size_t * bytes, dvti_cu_device device))                                \
    X(cuDeviceGetAttribute, (int *value, int attribute, dvti_cu_device device))                    \
    X(cuDevicePrimaryCtxRetain, (dvti_cu_context * context, dvti_cu_device device))                \
    X(cuCtxPushCurrent_v2, (dvti_cu_context context))                                              \
    X(cuCtxPopCurrent_v2, (dvti_cu_context * context))                                             \
    X(cuMemGetInfo_v2, (size_t * available, size_t * total))                                       \
    X(cuMemAlloc_v2, (dvti_cu_address * address, size_t bytes))                                    \
    X(cuMemFree_v2, (dvti_cu_address address))                                                     \
    X(cuMemHostAlloc, (void **block, size_t bytes, unsigned flags))                                \
    X(cuMemFreeHost, (void *block))                                                                \
    X(cuPointerGetAttribute, (void *value, int attribute, dvti_cu_address address))                \
    X(cuMemcpyHtoDAsync_v2,                                                                        \
      (dvti_cu_address dst, const void *src, size_t bytes, dvti_cu_stream stream))                 \
    X(cuMemcpyDtoHAsync_v2, (void *dst, dvti_cu_address src, size_t bytes, dvti_cu_stream stream)) \
    X(cuMemcpyDtoDAsync_v2,                                                                        \
      (dvti_cu_address dst, dvti_cu_address src, size_t bytes, dvti_cu_stream stream))             \
    X(cuMemsetD8Async,                                                                             \
      (dvti_cu_address at, unsigned char value, size_t bytes, dvti_cu_stream stream))              \
    X(cuMemcpyPeerAsync, (dvti_cu_address dst, dvti_cu_context to, dvti_cu_address src,            \
                          dvti_cu_context from, size_t bytes, dvti_cu_stream stream))              \
    X(cuDeviceCanAccessPeer, (int *can, dvti_cu_device device, dvti_cu_device peer))               \
    X(cuCtxEnablePeerAccess, (dvti_cu_context peer, unsigned flags))                               \
    X(cuStreamCreateWithPriority, (dvti_cu_stream * stream, unsigned flags, int priority))         \
    X(cuStreamDestroy_v2, (dvti_cu_stream stream))                                                 \
    X(cuStreamSynchronize, (dvti_cu_stream stream))                                                \
    X(cuStreamWaitEvent, (dvti_cu_stream stream, dvti_cu_event event, unsigned flags))             \
    X(cuEventCreate, (dvti_cu_event * event, unsigned flags))                                      \
    X(cuEventDestroy_v2, (dvti_cu_event event))                                                    \
    X(cuEventRecord, (dvti_cu_event event, dvti_cu_stream stream))                                 \
    X(cuEventQuery, (dvti_cu_event event))                                                         \
    X(cuEventSynchronize, (dvti_cu_event event))                                                   \
    X(cuModuleLoadDataEx,                                                                          \
      (dvti_cu_module * module, const void *image, unsigned n, int *options, void **values))       \
    X(cuModuleUnload, (dvti_cu_module module))                                                     \
    X(cuModuleGetFunction, (dvti_cu_function * function, dvti_cu_module module, const char *name)) \
    X(cuFuncSetAttribute, (dvti_cu_function function, int attribute, int value))                   \
    X(cuLaunchKernel, (dvti_cu_function function, unsigned grid_x, unsigned grid_y,                \
                       unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,      \
                       unsigned shared, dvti_cu_stream stream, void **parameters, void **extra))   \
    X(cuGetErrorName, (dvti_cu_result result, const char **name))                                  \
    X(cuGetErrorString, (dvti_cu_result result, const char **text))

#define DVTI_CUDA_DRIVER_MEMBER(name, arguments) dvti_cu_result(DVTI_CUDA_CALL *name) arguments;

typedef struct dvti_cuda_driver {
    DVTI_CUDA_DRIVER_TABLE(DVTI_CUDA_DRIVER_MEMBER)
    /* In milliseconds. _v2 since CUDA 12.8; NULL: missing. */
    dvti_cu_result(DVTI_CUDA_CALL *elapsed)(float *ms, dvti_cu_event begin, dvti_cu_event end);
    /* Writes a CUtensorMap of 128 bytes. Since CUDA 12.0; NULL: missing. */
    dvti_cu_result(DVTI_CUDA_CALL *cuTensorMapEncodeTiled)(void *map, int dtype, unsigned rank,
                                                           void *data, const uint64_t *dim,
                                                           const uint64_t *stride,
                                                           const unsigned *box,
                                                           const unsigned *step, int interleave,
                                                           int swizzle, int promotion, int fill);
} dvti_cuda_driver;

#undef DVTI_CUDA_DRIVER_MEMBER

typedef void *dvti_nvrtc_program;

#define DVTI_NVRTC_TABLE(X)                                                                        \
    X(nvrtcVersion, (int *major, int *minor))                                                      \
    X(nvrtcGetNumSupportedArchs, (int *count))                                                     \
    X(nvrtcGetSupportedArchs, (int *archs))                                                        \
    X(nvrtcCreateProgram, (dvti_nvrtc_program * program, const char *source, const char *name,     \
                           int n, const char *const *headers, const char *const *names))           \
    X(nvrtcDestroyProgram, (dvti_nvrtc_program * program))                                         \
    X(nvrtcCompileProgram, (dvti_nvrtc_program program, int n, const char *const *options))        \
    X(nvrtcGetCUBINSize, (dvti_nvrtc_program program, size_t * bytes))                             \
    X(nvrtcGetCUBIN, (dvti_nvrtc_program program, char *image))                                    \
    X(nvrtcGetPTXSize, (dvti_nvrtc_program program, size_t * bytes))                               \
    X(nvrtcGetPTX, (dvti_nvrtc_program program, char *text))                                       \
    X(nvrtcGetProgramLogSize, (dvti_nvrtc_program program, size_t * bytes))                        \
    X(nvrtcGetProgramLog, (dvti_nvrtc_program program, char *log))

#define DVTI_NVRTC_MEMBER(name, arguments) int(DVTI_CUDA_CALL * name) arguments;

typedef struct dvti_nvrtc {
    DVTI_NVRTC_TABLE(DVTI_NVRTC_MEMBER)
    const char *(DVTI_CUDA_CALL *nvrtcGetErrorString)(int result);
} dvti_nvrtc;

#undef DVTI_NVRTC_MEMBER

#endif
