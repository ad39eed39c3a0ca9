// Compares the library's own CUDA prototypes and constants with the toolkit's headers. Functions
// must have the same number of parameters, each of the same size and kind, and the same result.
// tests/cuda/run.sh compiles it where cuda.h and nvrtc.h exist. It then looks up every name in the
// library given as its argument (the toolkit's stub).
#include <cuda.h>
#include <nvrtc.h>
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif
#if __has_include(<cublas_v2.h>) && __has_include(<cublasLt.h>)
#include <cublas_v2.h>
#include <cublasLt.h>
#include "bench/gpu/peers.h"
#define HAS_CUBLAS
#endif
#include <dlfcn.h>
#include <cstdio>
#include <cstdint>
#include <type_traits>
#define DEVTENSOR_STATIC
#define DEVTENSOR_NO_SIMD /* the copy compiles in a quarter of the time */
#include "devtensor.h"

template <class A, class B> constexpr bool same_kind() {
    return sizeof(A) == sizeof(B) && std::is_pointer<A>::value == std::is_pointer<B>::value &&
           std::is_floating_point<A>::value == std::is_floating_point<B>::value;
}

// CUDA's handles are pointers to structures, ours are void *; its enums are int here.
template <class A, class B> struct agree : std::false_type {};
template <class R, class... P, class S, class... Q> struct agree<R (*)(P...), S (*)(Q...)> {
    template <bool same_count, class dummy> struct each : std::false_type {};
    template <class dummy> struct each<true, dummy> {
        static constexpr bool value = (same_kind<P, Q>() && ... && true);
    };
    static constexpr bool value =
        same_kind<R, S>() && each<sizeof...(P) == sizeof...(Q), void>::value;
};

#define AGREES(name, arguments)                                                                    \
    static_assert(agree<decltype(&::name), decltype(dvti_cuda_driver::name)>::value,               \
                  #name " has another prototype in cuda.h");
DVTI_CUDA_DRIVER_TABLE(AGREES)
AGREES(cuTensorMapEncodeTiled, )
#undef AGREES
#define AGREES(name, arguments)                                                                    \
    static_assert(agree<decltype(&::name), decltype(dvti_nvrtc::name)>::value,                     \
                  #name " has another prototype in nvrtc.h");
DVTI_NVRTC_TABLE(AGREES)

#if __has_include(<nccl.h>)
#define AGREES_NCCL(name, arguments)                                                               \
    static_assert(agree<decltype(&::name), decltype(dvti_nccl::name)>::value,                      \
                  #name " has another prototype in nccl.h");
DVTI_NCCL_TABLE(AGREES_NCCL)
static_assert(DVTI_NCCL_OK == (int)ncclSuccess && DVTI_NCCL_SUM == (int)ncclSum, "nccl.h");
static_assert(DVTI_NCCL_IN_PROGRESS == (int)ncclInProgress, "nccl.h");
static_assert(DVTI_PROCESS_KEY_BYTES == NCCL_UNIQUE_ID_BYTES, "nccl.h");
static_assert(DVTI_NCCL_I8 == (int)ncclInt8 && DVTI_NCCL_U8 == (int)ncclUint8, "nccl.h");
static_assert(DVTI_NCCL_I32 == (int)ncclInt32 && DVTI_NCCL_I64 == (int)ncclInt64, "nccl.h");
static_assert(DVTI_NCCL_F16 == (int)ncclFloat16 && DVTI_NCCL_BF16 == (int)ncclBfloat16, "nccl.h");
static_assert(DVTI_NCCL_F32 == (int)ncclFloat32 && DVTI_NCCL_F64 == (int)ncclFloat64, "nccl.h");
#endif

#ifdef HAS_CUBLAS // the peers of the benchmark
// C++ has an overload of cublasGemmEx; this is the exported function.
static cublasStatus_t (*cublasGemmEx_)(
    cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void *, const void *,
    cudaDataType, int, const void *, cudaDataType, int, const void *, void *, cudaDataType, int,
    cublasComputeType_t, cublasGemmAlgo_t) = nullptr;
static_assert(std::is_same<decltype(static_cast<decltype(cublasGemmEx_)>(&::cublasGemmEx)),
                           decltype(cublasGemmEx_)>::value, "cublas_api.h");
#define cublasCreate_v2_ (&::cublasCreate_v2)
#define cublasSetStream_v2_ (&::cublasSetStream_v2)
#define cublasSetWorkspace_v2_ (&::cublasSetWorkspace_v2)
#define AGREES_CUBLAS(name, arguments)                                                             \
    static_assert(agree<decltype(name##_), decltype(::cublas::name)>::value,                       \
                  #name " has another prototype in cublas_v2.h");
CUBLAS_TABLE(AGREES_CUBLAS)
#define AGREES_CUBLASLT(name, arguments)                                                           \
    static_assert(agree<decltype(&::name), decltype(::cublaslt::name)>::value,                     \
                  #name " has another prototype in cublasLt.h");
CUBLASLT_TABLE(AGREES_CUBLASLT)
#define AGREES_DRIVER(name, arguments)                                                             \
    static_assert(agree<decltype(&::name), decltype(::driver::name)>::value,                       \
                  #name " has another prototype in cuda.h");
DRIVER_TABLE(AGREES_DRIVER)
static_assert(sizeof(lt_heuristic) == sizeof(cublasLtMatmulHeuristicResult_t), "cublasLt.h");
static_assert((int)TYPE_F32 == (int)CUDA_R_32F && (int)TYPE_F16 == (int)CUDA_R_16F &&
                  (int)TYPE_BF16 == (int)CUDA_R_16BF, "library_types.h");
static_assert((int)COMPUTE_F32 == (int)CUBLAS_COMPUTE_32F &&
                  (int)COMPUTE_TF32 == (int)CUBLAS_COMPUTE_32F_FAST_TF32 &&
                  (int)CUBLAS_N == (int)CUBLAS_OP_N && (int)CUBLAS_T == (int)CUBLAS_OP_T &&
                  (int)CUBLAS_DEFAULT == (int)CUBLAS_GEMM_DEFAULT, "cublas_api.h");
static_assert((int)LT_TRANSPOSE_A == (int)CUBLASLT_MATMUL_DESC_TRANSA &&
                  (int)LT_TRANSPOSE_B == (int)CUBLASLT_MATMUL_DESC_TRANSB &&
                  (int)LT_WORKSPACE_BYTES == (int)CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
              "cublasLt.h");
#endif

#define EQUAL(ours, theirs) static_assert((int)(ours) == (int)(theirs), #ours " is not " #theirs)
EQUAL(DVTI_CU_OK, CUDA_SUCCESS);
EQUAL(DVTI_CU_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
EQUAL(DVTI_CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
EQUAL(DVTI_CU_STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY);
EQUAL(DVTI_CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
EQUAL(DVTI_CU_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE);
EQUAL(DVTI_CU_NO_BINARY, CUDA_ERROR_NO_BINARY_FOR_GPU);
EQUAL(DVTI_CU_UNSUPPORTED_PTX, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
EQUAL(DVTI_CU_PEER_ALREADY, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
EQUAL(DVTI_CU_NOT_READY, CUDA_ERROR_NOT_READY);
EQUAL(DVTI_CU_NOT_READY_SYSTEM, CUDA_ERROR_SYSTEM_NOT_READY);
EQUAL(DVTI_CU_MISMATCH, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
EQUAL(DVTI_CU_ATTR_PROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
EQUAL(DVTI_CU_ATTR_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
EQUAL(DVTI_CU_ATTR_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
EQUAL(DVTI_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
EQUAL(DVTI_CU_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING);
EQUAL(DVTI_CU_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
EQUAL(DVTI_CU_POINTER_DEVICE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
EQUAL(DVTI_CU_FUNC_SHARED, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
EQUAL(DVTI_CU_TENSOR_MAP_FLOAT16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
EQUAL(DVTI_CU_TENSOR_MAP_FLOAT32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
EQUAL(DVTI_CU_TENSOR_MAP_BFLOAT16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
EQUAL(DVTI_CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_SWIZZLE_128B);
EQUAL(DVTI_CU_TENSOR_MAP_PROMOTION_256B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
static_assert(sizeof(CUtensorMap) == sizeof(dvti_kwgmma::a), "CUtensorMap");
static_assert(sizeof(dvti_kwgmma) % alignof(CUtensorMap) == 0, "the arguments of wgmma");
EQUAL(DVTI_CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BUFFER);
EQUAL(DVTI_CU_JIT_ERROR_LOG_BYTES, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
static_assert(sizeof(CUdeviceptr) == sizeof(dvti_cu_address), "CUdeviceptr");

int main(int argc, char **argv) {
    static const char *const names[] = {
#define NAME(name, arguments) #name,
        DVTI_CUDA_DRIVER_TABLE(NAME)
#undef NAME
    };
    void *stub = argc > 1 ? dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL) : nullptr;
    int passed = 0, failed = 0;
    if (!stub) {
        std::printf("skipped: the toolkit's stub of the driver is not there\n"
                    "0 passed, 0 failed, 1 skipped\n");
        return 0;
    }
    for (const char *name : names)
        if (dlsym(stub, name))
            passed++;
        else {
            std::printf("FAIL %s is not in the driver\n", name);
            failed++;
        }
    std::printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
