/* The SIMD primitives of 2_core/math/ (documented in 3_cpu/simd/vec.inl) for vectors of one float.
   A program that uses functions of that directory contains this file, basics.inl, the files with
   its functions, and primitives_end.cu. The functions are then called dvti_gpu_exp and so on.

   Each operation names its rounding, so that it is never contracted with another one, whatever the
   family's compiler options. A mask is a bool, which stands for all lanes. */

#define V(name) dvti_gpu_##name
#define DVTI_INLINE __device__ __forceinline__
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define INFINITY __uint_as_float(0x7f800000)
#define NAN __uint_as_float(0x7fc00000)

typedef int int32_t;
typedef unsigned uint32_t;
typedef float V(f);
typedef int V(i);
typedef bool V(m);
typedef double V(d);
typedef int64_t V(l);

#define DVTI_PRIMITIVE1(R, name, A, value)                                                         \
    DVTI_INLINE V(R) V(name)(V(A) a) { return value; }
#define DVTI_PRIMITIVE2(R, name, A, B, value)                                                      \
    DVTI_INLINE V(R) V(name)(V(A) a, V(B) b) { return value; }
#define DVTI_PRIMITIVE3(R, name, A, B, C, value)                                                   \
    DVTI_INLINE V(R) V(name)(V(A) a, V(B) b, V(C) c) { return value; }

/* ---- float ---- */
DVTI_INLINE V(f) V(zero)() { return 0; }
DVTI_PRIMITIVE1(f, set, f, a)
DVTI_PRIMITIVE2(f, add, f, f, __fadd_rn(a, b))
DVTI_PRIMITIVE2(f, sub, f, f, __fsub_rn(a, b))
DVTI_PRIMITIVE2(f, mul, f, f, __fmul_rn(a, b))
DVTI_PRIMITIVE2(f, div, f, f, __fdiv_rn(a, b))
DVTI_PRIMITIVE2(f, min, f, f, a < b ? a : b)
DVTI_PRIMITIVE2(f, max, f, f, a > b ? a : b)
DVTI_PRIMITIVE3(f, fma, f, f, f, __fmaf_rn(a, b, c))
DVTI_PRIMITIVE3(f, fnma, f, f, f, __fmaf_rn(-a, b, c))
DVTI_PRIMITIVE1(f, sqrt, f, __fsqrt_rn(a))
DVTI_PRIMITIVE1(f, round, f, rintf(a))
DVTI_PRIMITIVE1(f, trunc, f, truncf(a))
DVTI_PRIMITIVE1(f, abs, f, fabsf(a))
DVTI_PRIMITIVE1(f, neg, f, -a)
DVTI_PRIMITIVE1(i, as_i, f, __float_as_int(a))
DVTI_PRIMITIVE1(f, as_f, i, __int_as_float(a))
DVTI_PRIMITIVE1(i, to_i, f, __float2int_rn(a))
DVTI_PRIMITIVE1(f, to_f, i, __int2float_rn(a))
DVTI_PRIMITIVE2(f, bit_and, f, f, __int_as_float(__float_as_int(a) & __float_as_int(b)))
DVTI_PRIMITIVE2(f, bit_or, f, f, __int_as_float(__float_as_int(a) | __float_as_int(b)))
DVTI_PRIMITIVE2(f, bit_xor, f, f, __int_as_float(__float_as_int(a) ^ __float_as_int(b)))
DVTI_PRIMITIVE2(m, lt, f, f, a < b)
DVTI_PRIMITIVE2(m, le, f, f, a <= b)
DVTI_PRIMITIVE2(m, gt, f, f, a > b)
DVTI_PRIMITIVE2(m, eq, f, f, a == b)
DVTI_PRIMITIVE2(m, ne, f, f, a != b)
DVTI_PRIMITIVE2(m, unord, f, f, a != a || b != b)
DVTI_PRIMITIVE3(f, select, m, f, f, a ? b : c)

/* ---- masks ---- */
DVTI_PRIMITIVE2(m, mand, m, m, a &&b)
DVTI_PRIMITIVE2(m, mor, m, m, a || b)
DVTI_PRIMITIVE1(m, mnot, m, !a)
DVTI_INLINE uint32_t V(mbits)(V(m) a) { return a ? 0xffff : 0; }

/* ---- int32 ---- */
DVTI_PRIMITIVE1(i, iset, i, a)
DVTI_PRIMITIVE2(i, iadd, i, i, (int)((unsigned)a + (unsigned)b))
DVTI_PRIMITIVE2(i, isub, i, i, (int)((unsigned)a - (unsigned)b))
DVTI_PRIMITIVE2(i, iand, i, i, a &b)
DVTI_PRIMITIVE2(i, ior, i, i, a | b)
DVTI_PRIMITIVE2(i, ishl, i, i, (int)((unsigned)a << b))
DVTI_PRIMITIVE2(i, ishr, i, i, (int)((unsigned)a >> b))
DVTI_PRIMITIVE2(i, isar, i, i, a >> b)
DVTI_PRIMITIVE2(m, ieq, i, i, a == b)
DVTI_PRIMITIVE2(m, igt, i, i, a > b)

/* Returns a * 2^n in two steps: the first stays among normal numbers and is exact, the second
   rounds. */
DVTI_INLINE V(f) V(scalef)(V(f) a, V(f) n) {
    const int exponent = __float2int_rn(n), half = exponent >> 1;
    return __fmul_rn(__fmul_rn(a, __int_as_float(half + 127 << 23)),
                     __int_as_float(exponent - half + 127 << 23));
}

/* Primitives that piecewise.inl needs. */
DVTI_INLINE V(f) V(lookup)(const float *table, V(i) at) { return table[at & 7]; }
#define DVTI_REPEAT(n) _Pragma("unroll")

/* Primitives that angles.inl needs (quarter_turns.inl). */
#define dvti_gpu_far_angles(x, done, rest, low, quarters)                                          \
    (*(quarters) = dvti_reduce_angle(x, rest, low))

/* ---- double ---- */
DVTI_PRIMITIVE1(d, dset, d, a)
DVTI_PRIMITIVE2(d, dadd, d, d, __dadd_rn(a, b))
DVTI_PRIMITIVE2(d, dsub, d, d, __dsub_rn(a, b))
DVTI_PRIMITIVE2(d, dmul, d, d, __dmul_rn(a, b))
DVTI_PRIMITIVE2(d, ddiv, d, d, __ddiv_rn(a, b))
DVTI_PRIMITIVE2(d, dmin, d, d, a < b ? a : b)
DVTI_PRIMITIVE2(d, dmax, d, d, a > b ? a : b)
DVTI_PRIMITIVE3(d, dfma, d, d, d, __fma_rn(a, b, c))
DVTI_PRIMITIVE1(d, dsqrt, d, __dsqrt_rn(a))
DVTI_PRIMITIVE1(d, dround, d, rint(a))
DVTI_PRIMITIVE1(l, as_l, d, __double_as_longlong(a))
DVTI_PRIMITIVE1(d, as_d, l, __longlong_as_double(a))
DVTI_PRIMITIVE1(l, lset, l, a)
DVTI_PRIMITIVE2(l, ladd, l, l, (int64_t)((uint64_t)a + (uint64_t)b))
DVTI_PRIMITIVE2(l, lsub, l, l, (int64_t)((uint64_t)a - (uint64_t)b))
DVTI_PRIMITIVE2(l, land, l, l, a &b)
DVTI_PRIMITIVE2(l, lor, l, l, a | b)
DVTI_PRIMITIVE2(l, lshr, l, i, (int64_t)((uint64_t)a >> b))
/* The one float is the lower half of a vector. The upper half of a function's work is never
   computed. */
DVTI_PRIMITIVE1(d, widen_low, f, (double)a)
DVTI_PRIMITIVE1(d, widen_high, f, (double)a)
DVTI_PRIMITIVE2(f, narrow, d, d, __double2float_rn(a))

DVTI_INLINE V(d) V(dscalef)(V(d) a, V(d) n) {
    const int exponent = __double2int_rn(n), half = exponent >> 1;
    return __dmul_rn(__dmul_rn(a, __hiloint2double(half + 1023 << 20, 0)),
                     __hiloint2double(exponent - half + 1023 << 20, 0));
}

#undef DVTI_PRIMITIVE1
#undef DVTI_PRIMITIVE2
#undef DVTI_PRIMITIVE3
