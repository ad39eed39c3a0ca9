/* The SIMD primitives of 2_core/math/ (see simd/vec.inl) for one float, as far as logarithms and
   normal numbers need them. */
typedef float V(f);
typedef int32_t V(i);
typedef bool V(m);

DVTI_INLINE V(i) V(as_i)(V(f) a) {
    int32_t bits;
    memcpy(&bits, &a, sizeof bits);
    return bits;
}

DVTI_INLINE V(f) V(as_f)(V(i) a) {
    float x;
    memcpy(&x, &a, sizeof x);
    return x;
}

DVTI_INLINE V(f) V(zero)(void) {
    return 0;
}

DVTI_REG1(f, set, f, a)
DVTI_REG2(f, add, f, f, a + b)
DVTI_REG2(f, sub, f, f, a - b)
DVTI_REG2(f, mul, f, f, a *b)
DVTI_REG2(f, min, f, f, a < b ? a : b)
DVTI_REG2(f, max, f, f, a > b ? a : b)
DVTI_REG3(f, fma, f, f, f, dvti_fmaf(a, b, c))
DVTI_REG3(f, fnma, f, f, f, dvti_fmaf(-a, b, c))
DVTI_REG1(f, sqrt, f, sqrtf(a))
DVTI_REG2(f, bit_and, f, f, V(as_f)(V(as_i)(a) & V(as_i)(b)))
DVTI_REG2(f, bit_or, f, f, V(as_f)(V(as_i)(a) | V(as_i)(b)))
DVTI_REG2(f, bit_xor, f, f, V(as_f)(V(as_i)(a) ^ V(as_i)(b)))
DVTI_REG2(m, lt, f, f, a < b)
DVTI_REG2(m, eq, f, f, a == b)
DVTI_REG3(f, select, m, f, f, a ? b : c)
DVTI_REG1(i, iset, i, a)
DVTI_REG1(f, to_f, i, (float)a)
DVTI_REG2(i, iadd, i, i, (int32_t)((uint32_t)a + (uint32_t)b))
DVTI_REG2(i, isub, i, i, (int32_t)((uint32_t)a - (uint32_t)b))
DVTI_REG2(i, iand, i, i, a &b)
DVTI_REG2(i, ior, i, i, a | b)
DVTI_REG_SHIFT(i, ishl, (int32_t)((uint32_t)a << n))
DVTI_REG_SHIFT(i, ishr, (int32_t)((uint32_t)a >> n))
DVTI_REG_SHIFT(i, isar, a < 0 ? ~(~a >> n) : a >> n)
DVTI_REG2(m, igt, i, i, a > b)
DVTI_REG_BITS(mbits, m, a ? 0xffff : 0)
