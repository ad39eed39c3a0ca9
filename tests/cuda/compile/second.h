/* Declarations that NVRTC adds before the first line of a program, as far as the kernels use them,
   for clang's CUDA front end. Nothing is defined: the programs are compiled to PTX, which is
   discarded. Clang's own headers of this kind require those of a toolkit that is not newer than
   clang. */
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#include <__clang_cuda_builtin_vars.h>

typedef decltype(sizeof 0) size_t;

/* clang-format off */
struct __attribute__((aligned(8))) uint2 { unsigned x, y; };
struct __attribute__((aligned(16))) uint4 { unsigned x, y, z, w; };
struct __attribute__((aligned(8))) float2 { float x, y; };
struct __attribute__((aligned(16))) float4 { float x, y, z, w; };


extern "C" {
__device__ float2 make_float2(float, float);

#define OF_ONE(name)                                                                               \
    __device__ float name##f(float);                                                               \
    __device__ double name(double);
#define OF_TWO(name)                                                                               \
    __device__ float name##f(float, float);                                                        \
    __device__ double name(double, double);
OF_ONE(acos) OF_ONE(asin) OF_ONE(atan) OF_ONE(ceil) OF_ONE(cos) OF_ONE(cosh) OF_ONE(erf)
OF_ONE(erfc) OF_ONE(exp) OF_ONE(exp2) OF_ONE(expm1) OF_ONE(fabs) OF_ONE(floor) OF_ONE(log)
OF_ONE(log10) OF_ONE(log1p) OF_ONE(log2) OF_ONE(rint) OF_ONE(sin) OF_ONE(sinh) OF_ONE(sqrt)
OF_ONE(tan) OF_ONE(tanh) OF_ONE(trunc)
OF_TWO(atan2) OF_TWO(copysign) OF_TWO(fmax) OF_TWO(fmin) OF_TWO(fmod) OF_TWO(hypot) OF_TWO(pow)
#undef OF_ONE
#undef OF_TWO
__device__ float fmaf(float, float, float);
__device__ double fma(double, double, double);
__device__ float __fdividef(float, float);
__device__ float __fadd_rn(float, float);
__device__ float __fsub_rn(float, float);
__device__ float __fmul_rn(float, float);
__device__ float __fdiv_rn(float, float);
__device__ float __fmaf_rn(float, float, float);
__device__ float __fsqrt_rn(float);
__device__ double __dadd_rn(double, double);
__device__ double __dsub_rn(double, double);
__device__ double __dmul_rn(double, double);
__device__ double __ddiv_rn(double, double);
__device__ double __fma_rn(double, double, double);
__device__ double __dsqrt_rn(double);

__device__ int __float_as_int(float);
__device__ float __int_as_float(int);
__device__ unsigned __float_as_uint(float);
__device__ float __uint_as_float(unsigned);
__device__ long long __double_as_longlong(double);
__device__ double __longlong_as_double(long long);
__device__ double __hiloint2double(int, int);
__device__ int __double2hiint(double);
__device__ int __double2loint(double);
__device__ float __double2float_rz(double);
__device__ int __double2int_rz(double);
__device__ long long __double2ll_rz(double);
__device__ float __double2float_rn(double);
__device__ int __double2int_rn(double);
__device__ int __float2int_rn(float);
__device__ float __int2float_rn(int);
__device__ int __float2int_rz(float);
__device__ long long __float2ll_rz(float);
__device__ float __ll2float_rn(long long);
__device__ float __ll2float_rz(long long);

__device__ int __clz(int);
__device__ int __popc(unsigned);
__device__ unsigned __umulhi(unsigned, unsigned);
__device__ unsigned long long __umul64hi(unsigned long long, unsigned long long);
__device__ void __syncthreads(void);
__device__ void __syncwarp(unsigned = 0xffffffffu);
__device__ unsigned __ballot_sync(unsigned, int);
__device__ size_t __cvta_generic_to_shared(const void *);
__device__ void *memcpy(void *, const void *, size_t);
}

#define OF_TYPE(T)                                                                                 \
    __device__ T min(T, T);                                                                        \
    __device__ T max(T, T);                                                                        \
    __device__ T __shfl_down_sync(unsigned, T, unsigned, int = 32);                                \
    __device__ T __shfl_up_sync(unsigned, T, unsigned, int = 32);                                  \
    __device__ T __shfl_xor_sync(unsigned, T, int, int = 32);
OF_TYPE(int)
OF_TYPE(unsigned)
OF_TYPE(long long)
OF_TYPE(unsigned long long)
OF_TYPE(float)
OF_TYPE(double)
#undef OF_TYPE

#define OF_TYPE(T)                                                                                 \
    __device__ T atomicAdd(T *, T);                                                                \
    __device__ T atomicMax(T *, T);                                                                \
    __device__ T atomicExch(T *, T);
OF_TYPE(int)
OF_TYPE(unsigned)
OF_TYPE(unsigned long long)
#undef OF_TYPE
/* clang-format on */
