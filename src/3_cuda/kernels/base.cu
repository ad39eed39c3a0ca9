/* The beginning of every program: types, elements of every dtype, positions in strided windows, the
   index of a thread.

   A program is args.h, this file, the definitions of its variant and the file of its family, in
   this order. It has no includes, so NVRTC needs no path. The definitions DVT_F32 to DVT_BOOL, the
   numbers of the dtypes, precede this file.

   Elements are converted from and to float, double or int64_t by the rules of the CPU backend
   (3_cpu/cpu_convert.c). A float becomes an integer by truncation, clamped to the integer's range;
   NaN becomes 0. An int64_t wraps in a narrower integer. bool means "nonzero". A 16-bit float is
   rounded once, to nearest even. */

template <int D> struct dvti_stored;
template <> struct dvti_stored<DVT_F32> { typedef float type; };
template <> struct dvti_stored<DVT_F64> { typedef double type; };
template <> struct dvti_stored<DVT_F16> { typedef unsigned short type; };
template <> struct dvti_stored<DVT_BF16> { typedef unsigned short type; };
template <> struct dvti_stored<DVT_I8> { typedef signed char type; };
template <> struct dvti_stored<DVT_U8> { typedef unsigned char type; };
template <> struct dvti_stored<DVT_I32> { typedef int type; };
template <> struct dvti_stored<DVT_I64> { typedef int64_t type; };
template <> struct dvti_stored<DVT_BOOL> { typedef unsigned char type; };

#define DVTI_IS_FLOAT(D) ((D) == DVT_F32 || (D) == DVT_F64 || (D) == DVT_F16 || (D) == DVT_BF16)

/* ---- between float32 and float64 ---- */
/* The GPU's own conversions turn every NaN into the same one. These keep the sign and the front of
   the payload, and make the NaN quiet, as CPUs do. */
__device__ inline double dvti_float_to_double(float f) {
    const unsigned u = __float_as_uint(f);
    if (f != f)
        return __hiloint2double((int)(u & 0x80000000 | 0x7ff80000 | u >> 3 & 0xfffff),
                                (int)(u << 29));
    return (double)f;
}

__device__ inline float dvti_double_to_float(double d) {
    const unsigned high = (unsigned)__double2hiint(d), low = (unsigned)__double2loint(d);
    if (d != d)
        return __uint_as_float(high & 0x80000000 | 0x7fc00000 | (high & 0xfffff) << 3 | low >> 29);
    return (float)d;
}

/* ---- the 16-bit floats ---- */
__device__ inline float dvti_half_to_float(unsigned short h) {
    float f;
    if ((h & 0x7c00) == 0x7c00) /* infinities, and NaN with its payload */
        return __uint_as_float((unsigned)(h & 0x8000) << 16 | 0x7f800000 |
                               (unsigned)(h & 0x3ff) << 13);
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
}

__device__ inline unsigned short dvti_half_of_nan(float f) {
    const unsigned u = __float_as_uint(f);
    return (unsigned short)(u >> 16 & 0x8000 | 0x7e00 | u >> 13 & 0x3ff);
}

__device__ inline unsigned short dvti_float_to_half(float f) {
    unsigned short h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return f != f ? dvti_half_of_nan(f) : h;
}

__device__ inline float dvti_bf16_to_float(unsigned short b) {
    return __uint_as_float((unsigned)b << 16);
}

__device__ inline unsigned short dvti_float_to_bf16(float f) {
    const unsigned u = __float_as_uint(f);
    if (f != f)
        return (unsigned short)(u >> 16 | 0x40);
    return (unsigned short)(u + 0x7fff + (u >> 16 & 1) >> 16);
}

/* Rounds a double to a float by round-to-odd, so that the rounding to 16 bits that follows is
   correct. */
__device__ inline float dvti_double_to_odd(double d) {
    float f = d != d ? dvti_double_to_float(d) : __double2float_rz(d);
    if (fabs(d) <= 1.7976931348623157e308 && (double)f != d)
        f = __uint_as_float(__float_as_uint(f) | 1);
    return f;
}

__device__ inline unsigned short dvti_double_to_half(double d) {
    return dvti_float_to_half(dvti_double_to_odd(d));
}

__device__ inline unsigned short dvti_double_to_bf16(double d) {
    return dvti_float_to_bf16(dvti_double_to_odd(d));
}

/* ---- between float, double and int64_t ---- */
/* The GPU's conversion clamps, but maps NaN to 0 only from float to int. */
__device__ inline int64_t dvti_to_integer(float v) { return v != v ? 0 : __float2ll_rz(v); }
__device__ inline int64_t dvti_to_integer(double v) { return v != v ? 0 : __double2ll_rz(v); }
__device__ inline int dvti_to_int(float v) { return __float2int_rz(v); }
__device__ inline int dvti_to_int(double v) { return v != v ? 0 : __double2int_rz(v); }

/* Prepares an integer for the conversion to a 16-bit float. Beyond 2^53 the value would be rounded
   twice: to double, then to 16 bits. The bits that do not fit are kept as one sticky bit, which
   breaks ties. */
__device__ inline double dvti_sticky(int64_t v) {
    const int64_t exact = (int64_t)1 << 53;
    if (v > -exact && v < exact)
        return (double)v;
    return (double)((v & ~(int64_t)0x7ff) | ((v & 0x7ff) ? 0x400 : 0));
}

template <class C> __device__ inline C dvti_from_float(float v) { return v; }
template <> __device__ inline double dvti_from_float<double>(float v) {
    return dvti_float_to_double(v);
}
template <> __device__ inline int64_t dvti_from_float<int64_t>(float v) {
    return dvti_to_integer(v);
}
template <class C> __device__ inline C dvti_from_double(double v) { return v; }
template <> __device__ inline float dvti_from_double<float>(double v) {
    return dvti_double_to_float(v);
}
template <> __device__ inline int64_t dvti_from_double<int64_t>(double v) {
    return dvti_to_integer(v);
}

/* Converts one stored element of dtype D to C: float, double or int64_t. */
template <int D, class C> __device__ inline C dvti_widen(typename dvti_stored<D>::type v) {
    if constexpr (D == DVT_F32)
        return dvti_from_float<C>(v);
    else if constexpr (D == DVT_F64)
        return dvti_from_double<C>(v);
    else if constexpr (D == DVT_F16)
        return dvti_from_float<C>(dvti_half_to_float(v));
    else if constexpr (D == DVT_BF16)
        return dvti_from_float<C>(dvti_bf16_to_float(v));
    else if constexpr (D == DVT_BOOL)
        return (C)(v != 0);
    else
        return (C)v;
}

/* Converts a float or a double to one stored element of dtype D. */
template <int D, class C> __device__ inline typename dvti_stored<D>::type dvti_narrow_real(C v) {
    if constexpr (D == DVT_BOOL)
        return v != 0;
    else if constexpr (D == DVT_I8)
        return (signed char)max(min(dvti_to_int(v), 127), -128);
    else if constexpr (D == DVT_U8)
        return (unsigned char)max(min(dvti_to_int(v), 255), 0);
    else if constexpr (D == DVT_I32)
        return dvti_to_int(v);
    else
        return dvti_to_integer(v);
}

template <int D> __device__ inline typename dvti_stored<D>::type dvti_narrow(float v) {
    if constexpr (D == DVT_F32)
        return v;
    else if constexpr (D == DVT_F64)
        return dvti_float_to_double(v);
    else if constexpr (D == DVT_F16)
        return dvti_float_to_half(v);
    else if constexpr (D == DVT_BF16)
        return dvti_float_to_bf16(v);
    else
        return dvti_narrow_real<D>(v);
}

template <int D> __device__ inline typename dvti_stored<D>::type dvti_narrow(double v) {
    if constexpr (D == DVT_F32)
        return dvti_double_to_float(v);
    else if constexpr (D == DVT_F64)
        return v;
    else if constexpr (D == DVT_F16)
        return dvti_double_to_half(v);
    else if constexpr (D == DVT_BF16)
        return dvti_double_to_bf16(v);
    else
        return dvti_narrow_real<D>(v);
}

template <int D> __device__ inline typename dvti_stored<D>::type dvti_narrow(int64_t v) {
    typedef typename dvti_stored<D>::type S;
    if constexpr (D == DVT_F16)
        return dvti_double_to_half(dvti_sticky(v));
    else if constexpr (D == DVT_BF16)
        return dvti_double_to_bf16(dvti_sticky(v));
    else if constexpr (D == DVT_BOOL)
        return v != 0;
    else
        return (S)v;
}

template <int D, class C> __device__ inline C dvti_load(const void *data, int64_t at) {
    return dvti_widen<D, C>(((const typename dvti_stored<D>::type *)data)[at]);
}

/* Explicit, so that bits do not depend on what a version of NVRTC contracts. */
__device__ inline float dvti_fma(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline double dvti_fma(double a, double b, double c) { return fma(a, b, c); }

/* As the operation relu: NaN stays, and -0 becomes +0. */
template <class C> __device__ inline C dvti_relu(C v) { return v > 0 ? v : v != v ? v : (C)0; }

__device__ inline uint64_t dvti_global(const void *at) {
    uint64_t address;
    asm("cvta.to.global.u64 %0, %1;" : "=l"(address) : "l"(at));
    return address;
}

/* Loads an element of floats from global memory. From 10.0 on, NVRTC would load by a generic
   address where a pointer is tested for NULL. */
template <int D, class C> __device__ inline C dvti_load_global(const void *data, int64_t at) {
    typename dvti_stored<D>::type v;
    const uint64_t address = dvti_global((const typename dvti_stored<D>::type *)data + at);
    if constexpr (sizeof v == 2)
        asm volatile("ld.global.u16 %0, [%1];" : "=h"(v) : "l"(address));
    else if constexpr (sizeof v == 4)
        asm volatile("ld.global.f32 %0, [%1];" : "=f"(v) : "l"(address));
    else
        asm volatile("ld.global.f64 %0, [%1];" : "=d"(v) : "l"(address));
    return dvti_widen<D, C>(v);
}

/* Converts the sum of a product to the stored element, adds the bias (NULL: none) and applies relu,
   with the bits of three operations that round to D each. */
template <int D, class C>
__device__ inline typename dvti_stored<D>::type dvti_epilogue(C sum, const void *bias, int64_t at,
                                                              bool relu) {
    if (bias)
        sum = dvti_widen<D, C>(dvti_narrow<D>(sum)) + dvti_load_global<D, C>(bias, at);
    return dvti_narrow<D>(relu ? dvti_relu(sum) : sum);
}

template <int D, class C> __device__ inline void dvti_store(void *data, int64_t at, C v) {
    ((typename dvti_stored<D>::type *)data)[at] = dvti_narrow<D>(v);
}

/* ---- groups: N elements, adjacent in memory, moved by one access of up to 16 bytes ---- */
template <int BYTES> struct dvti_word;
template <> struct dvti_word<1> { typedef unsigned char type; };
template <> struct dvti_word<2> { typedef unsigned short type; };
template <> struct dvti_word<4> { typedef unsigned type; };
template <> struct dvti_word<8> { typedef uint2 type; };
template <> struct dvti_word<16> { typedef uint4 type; };

template <int D, int N> union dvti_group {
    typename dvti_stored<D>::type v[N];
    typename dvti_word<sizeof(typename dvti_stored<D>::type) * N>::type word;
};

/* ---- positions ---- */
__device__ inline int dvti_quotient(int n, int d) { return n / d; }

/* Returns n / d for n >= 0, d > 0. The compiler's 64-bit division is a subroutine; registers that
   are live across the call are spilled to the stack. Here each step subtracts an estimate from
   below, which is short by a few millionths, so that at most five steps are needed. */
__device__ inline int64_t dvti_quotient(int64_t n, int64_t d) {
    if ((n | d) >> 32 == 0)
        return (unsigned)n / (unsigned)d;
    const float inverse = __fdividef(0.999998f, __ll2float_rn(d));
    int64_t quotient = 0;
    while (n >= d) {
        const int64_t some = max(__float2ll_rz(__fmul_rn(__ll2float_rz(n), inverse)), 1LL);
        quotient += some;
        n -= some * d;
    }
    return quotient;
}

/* Returns the offset, in elements, of position `at` (C order) from the window's first element. I is
   int where every position and offset fits. */
template <class I> __device__ inline I dvti_offset(const dvti_kview &view, I at) {
    I offset = 0;
/* Most windows have one or two axes. This loop is inlined many times: unrolled, a reduction takes
   NVRTC three times as long. */
#pragma unroll 1
    for (int axis = (int)view.ndim - 1; axis > 0; axis--) {
        I extent = (I)view.dim[axis], next = dvti_quotient(at, extent);
        offset += (at - next * extent) * (I)view.stride[axis];
        at = next;
    }
    return view.ndim ? offset + at * (I)view.stride[0] : 0;
}

/* Returns n / d for n >= 0. */
__device__ inline int dvti_divide(int n, const dvti_kdivisor &d) {
    return (int)(__umulhi((unsigned)n, d.multiplier) + (unsigned)n >> d.shift);
}

__device__ inline int64_t dvti_divide(int64_t n, const dvti_kdivisor &d) {
    return dvti_quotient(n, d.divisor);
}

/* The index of this thread in a one-dimensional grid, and the number of threads: for grid-stride
   loops. */
__device__ inline int64_t dvti_thread() { return (int64_t)blockIdx.x * blockDim.x + threadIdx.x; }

__device__ inline int64_t dvti_threads() { return (int64_t)gridDim.x * blockDim.x; }

/* ---- functions ---- */
/* Returns exp(x - largest) for x <= largest. dvti_exp_below of floats is in exp_below.cu. */
__device__ inline double dvti_exp_below(double x, double largest) { return exp(x - largest); }
