/* A vector: 64 bytes on every machine, made of DVTI_REGS registers. A kernel is written once and
   adds and reduces in the same order for every width of registers. Therefore all ISA targets give
   equal bits.

     V(f) = 64 bytes, 16 floats    +------------------------------------+
     AVX-512, DVTI_REGS 1          |                 p0                 |
     AVX2, DVTI_REGS 2             |       p0        |        p1        |
     NEON, DVTI_REGS 4             |   p0   |   p1   |   p2   |    p3   |
                                   +------------------------------------+
     lanes                          0     3  4     7  8     11 12     15

     V(f) 16 floats, V(i) 16 int32, V(d) 8 doubles, V(l) 8 int64,
     V(m) a mask of 16 lanes, V(n) a mask of 8 lanes

   The primitives are those of register_plain.inl without p_, and the following. The file is long
   because it is the only list of them:

     V(zero)(), V(abs), V(neg)
     V(gt), V(ge), V(ne)         V(ne) is true for NaN
     V(scalef)(a, n)             a * 2^n rounded once; integer n, |n| <= 250, normal a
                                 (doubles: |n| <= 2000)
     V(lookup)(table, i)         the floats table[i & 7]
     V(widen_low)(a), V(widen_high)   lanes 0..7, 8..15 as doubles; V(narrow)(low, high)
     V(zip_low)(a, b), V(zip_high)    a0 b0 a1 b1 .., the first 16 of them and the others
     V(load_quads)(p, step)      quad i is p[4 step i ..]; V(store_quads)(p, step, a)
     V(even)(a, b), V(odd)       even or odd lanes of a, then those of b
     V(lanes_add)(a), V(lanes_min), V(lanes_max)   reduce the lanes: i with i + 8, then 4, 2, 1
     V(dlanes_add), V(dlanes_mul), V(dlanes_max)   of doubles: i with i + 4, then 2, 1 */
#if DVTI_REGS == 1
#define DVTI_EACH_REG(one, x) one(p0, 0, x)
#elif DVTI_REGS == 2
#define DVTI_EACH_REG(one, x) one(p0, 0, x) one(p1, 1, x)
#else
#define DVTI_EACH_REG(one, x) one(p0, 0, x) one(p1, 1, x) one(p2, 2, x) one(p3, 3, x)
#endif

/* A single register is not wrapped in a struct: compilers spend much of their time on splitting
   such structs. */
#if DVTI_REGS == 1
#define DVTI_OF(vector, reg) vector
#define DVTI_VECTOR_OF(one) typedef V(p##one) V(one);
#else
#define DVTI_OF(vector, reg) vector.reg
#define DVTI_MEMBER(p, at, T) V(T) p;
#define DVTI_VECTOR_OF(one)                                                                        \
    typedef struct V(one) {                                                                        \
        DVTI_EACH_REG(DVTI_MEMBER, p##one)                                                         \
    } V(one);
#endif
DVTI_VECTOR_OF(f)
DVTI_VECTOR_OF(i)
DVTI_VECTOR_OF(d)
DVTI_VECTOR_OF(l)
DVTI_VECTOR_OF(m)
DVTI_VECTOR_OF(n)
#undef DVTI_VECTOR_OF
#undef DVTI_MEMBER

#if !defined(DVTI_NEON)
typedef V(pf) V(p_factor_type);
typedef V(pd) V(p_dfactor_type);
DVTI_REG_SET(pf, p_factor, float, V(p_set)(x))
DVTI_REG_SET(pd, p_dfactor, double, V(p_dset)(x))
DVTI_REG3(pf, p_fma_factor, pf, pf, pf, V(p_fma)(a, b, c))
DVTI_REG3(pd, p_dfma_factor, pd, pd, pd, V(p_dfma)(a, b, c))
#endif

/* Primitives that apply to each register separately. */
#define DVTI_DO1(p, at, name) DVTI_OF(r, p) = V(p_##name)(DVTI_OF(a, p));
#define DVTI_DO2(p, at, name) DVTI_OF(r, p) = V(p_##name)(DVTI_OF(a, p), DVTI_OF(b, p));
#define DVTI_DO3(p, at, name)                                                                      \
    DVTI_OF(r, p) = V(p_##name)(DVTI_OF(a, p), DVTI_OF(b, p), DVTI_OF(c, p));
#define DVTI_DO_SET(p, at, name) DVTI_OF(r, p) = V(p_##name)(x);
#define DVTI_DO_SHIFT(p, at, name) DVTI_OF(r, p) = V(p_##name)(DVTI_OF(a, p), n);
#define DVTI_DO_LOAD(p, at, name) DVTI_OF(r, p) = V(p_##name)(from + at * lanes);
#define DVTI_DO_STORE(p, at, name) V(p_##name)(to + at * lanes, DVTI_OF(a, p));
#define DVTI_DO_LOAD_N(p, at, name)                                                                \
    DVTI_OF(r, p) = V(p_##name)(n > at * lanes ? from + at * lanes : from, n - at * lanes);
#define DVTI_DO_STORE_N(p, at, name)                                                               \
    V(p_##name)(n > at * lanes ? to + at * lanes : to, n - at * lanes, DVTI_OF(a, p));
#define DVTI_DO_BITS(p, at, name) r |= V(p_##name)(DVTI_OF(a, p)) << (at * lanes);

#define DVTI_DO_LOOKUP(p, k, name) DVTI_OF(r, p) = V(p_##name)(table, DVTI_OF(at, p));
#define DVTI_DO_LOAD_QUADS(p, at, name)                                                            \
    DVTI_OF(r, p) = V(p_##name)(from + at * DVTI_REG_F * step, step);
#define DVTI_DO_STORE_QUADS(p, at, name)                                                           \
    V(p_##name)(to + at * DVTI_REG_F * step, step, DVTI_OF(a, p));
#define DVTI_DO_STORE4(p, at, name)                                                                \
    V(p_##name)                                                                                    \
    (to + 4 * at * DVTI_REG_F, DVTI_OF(a, p), DVTI_OF(b, p), DVTI_OF(c, p), DVTI_OF(d, p));

#define DVTI_LIFT1(R, name, A)                                                                     \
    DVTI_INLINE V(R) V(name)(V(A) a) {                                                             \
        V(R) r;                                                                                    \
        DVTI_EACH_REG(DVTI_DO1, name)                                                              \
        return r;                                                                                  \
    }
#define DVTI_LIFT2(R, name, A, B)                                                                  \
    DVTI_INLINE V(R) V(name)(V(A) a, V(B) b) {                                                     \
        V(R) r;                                                                                    \
        DVTI_EACH_REG(DVTI_DO2, name)                                                              \
        return r;                                                                                  \
    }
#define DVTI_LIFT3(R, name, A, B, C)                                                               \
    DVTI_INLINE V(R) V(name)(V(A) a, V(B) b, V(C) c) {                                             \
        V(R) r;                                                                                    \
        DVTI_EACH_REG(DVTI_DO3, name)                                                              \
        return r;                                                                                  \
    }
#define DVTI_LIFT_SET(R, name, E)                                                                  \
    DVTI_INLINE V(R) V(name)(E x) {                                                                \
        V(R) r;                                                                                    \
        DVTI_EACH_REG(DVTI_DO_SET, name)                                                           \
        return r;                                                                                  \
    }
#define DVTI_LIFT_SHIFT(R, name)                                                                   \
    DVTI_INLINE V(R) V(name)(V(R) a, int n) {                                                      \
        V(R) r;                                                                                    \
        DVTI_EACH_REG(DVTI_DO_SHIFT, name)                                                         \
        return r;                                                                                  \
    }
#define DVTI_LIFT_LOAD(R, name, E, per_register)                                                   \
    DVTI_INLINE V(R) V(name)(const E *from) {                                                      \
        const int lanes = per_register;                                                            \
        V(R) r;                                                                                    \
        (void)lanes;                                                                               \
        DVTI_EACH_REG(DVTI_DO_LOAD, name)                                                          \
        return r;                                                                                  \
    }
#define DVTI_LIFT_STORE(R, name, E, per_register)                                                  \
    DVTI_INLINE void V(name)(E * to, V(R) a) {                                                     \
        const int lanes = per_register;                                                            \
        (void)lanes;                                                                               \
        DVTI_EACH_REG(DVTI_DO_STORE, name)                                                         \
    }
#define DVTI_LIFT_LOAD_N(R, name, E, per_register)                                                 \
    DVTI_INLINE V(R) V(name)(const E *from, int64_t n) {                                           \
        const int lanes = per_register;                                                            \
        V(R) r;                                                                                    \
        DVTI_EACH_REG(DVTI_DO_LOAD_N, name)                                                        \
        return r;                                                                                  \
    }
#define DVTI_LIFT_STORE_N(R, name, E, per_register)                                                \
    DVTI_INLINE void V(name)(E * to, int64_t n, V(R) a) {                                          \
        const int lanes = per_register;                                                            \
        DVTI_EACH_REG(DVTI_DO_STORE_N, name)                                                       \
    }
#define DVTI_LIFT_BITS(name, A, per_register)                                                      \
    DVTI_INLINE uint32_t V(name)(V(A) a) {                                                         \
        const int lanes = per_register;                                                            \
        uint32_t r = 0;                                                                            \
        (void)lanes;                                                                               \
        DVTI_EACH_REG(DVTI_DO_BITS, name)                                                          \
        return r;                                                                                  \
    }

/* float */
DVTI_LIFT_SET(f, set, float)
DVTI_LIFT_LOAD(f, load, float, DVTI_REG_F)
DVTI_LIFT_STORE(f, store, float, DVTI_REG_F)
DVTI_LIFT_STORE(f, stream, float, DVTI_REG_F)
DVTI_LIFT_LOAD_N(f, load_n, float, DVTI_REG_F)
DVTI_LIFT_STORE_N(f, store_n, float, DVTI_REG_F)
DVTI_LIFT2(f, add, f, f)
DVTI_LIFT2(f, sub, f, f)
DVTI_LIFT2(f, mul, f, f)
DVTI_LIFT2(f, div, f, f)
DVTI_LIFT2(f, min, f, f)
DVTI_LIFT2(f, max, f, f)
DVTI_LIFT3(f, fma, f, f, f)
DVTI_LIFT3(f, fnma, f, f, f)
DVTI_LIFT1(f, sqrt, f)
DVTI_LIFT1(f, round, f)
DVTI_LIFT1(f, floor, f)
DVTI_LIFT1(f, ceil, f)
DVTI_LIFT1(f, trunc, f)
DVTI_LIFT2(f, bit_and, f, f)
DVTI_LIFT2(f, bit_or, f, f)
DVTI_LIFT2(f, bit_xor, f, f)
DVTI_LIFT2(f, bit_andnot, f, f)
DVTI_LIFT2(m, lt, f, f)
DVTI_LIFT2(m, le, f, f)
DVTI_LIFT2(m, eq, f, f)
DVTI_LIFT2(m, unord, f, f)
DVTI_LIFT3(f, select, m, f, f)
DVTI_LIFT2(f, unpack_low, f, f)
DVTI_LIFT2(f, unpack_high, f, f)
DVTI_INLINE V(f) V(load_quads)(const float *from, int64_t step) {
    V(f) r;
    DVTI_EACH_REG(DVTI_DO_LOAD_QUADS, load_quads)
    return r;
}

DVTI_INLINE void V(store_quads)(float *to, int64_t step, V(f) a) {
    DVTI_EACH_REG(DVTI_DO_STORE_QUADS, store_quads)
}

DVTI_LIFT1(i, as_i, f)
DVTI_LIFT1(i, to_i, f)
DVTI_LIFT_LOAD(f, load_f16, uint16_t, DVTI_REG_F)
DVTI_LIFT_STORE(f, store_f16, uint16_t, DVTI_REG_F)

/* int32 */
DVTI_LIFT_SET(i, iset, int32_t)
DVTI_LIFT_LOAD(i, iload, int32_t, DVTI_REG_F)
DVTI_LIFT_STORE(i, istore, int32_t, DVTI_REG_F)
DVTI_LIFT_LOAD_N(i, iload_n, int32_t, DVTI_REG_F)
DVTI_LIFT_STORE_N(i, istore_n, int32_t, DVTI_REG_F)
DVTI_LIFT_LOAD(i, load_u16, uint16_t, DVTI_REG_F)
DVTI_LIFT_STORE(i, store_u16, uint16_t, DVTI_REG_F)
DVTI_LIFT2(i, iadd, i, i)
DVTI_LIFT2(i, isub, i, i)
DVTI_LIFT2(i, iand, i, i)
DVTI_LIFT2(i, ior, i, i)
DVTI_LIFT2(i, ixor, i, i)
DVTI_LIFT_SHIFT(i, ishl)
DVTI_LIFT_SHIFT(i, ishr)
DVTI_LIFT_SHIFT(i, isar)
DVTI_LIFT2(m, ieq, i, i)
DVTI_LIFT2(m, igt, i, i)
DVTI_LIFT3(i, icount, i, i, i)
DVTI_LIFT3(i, iselect, m, i, i)
DVTI_LIFT1(f, as_f, i)
DVTI_LIFT1(f, to_f, i)
DVTI_INLINE V(f) V(lookup)(const float *table, V(i) at) {
    V(f) r;
    DVTI_EACH_REG(DVTI_DO_LOOKUP, lookup)
    return r;
}

DVTI_LIFT2(m, mand, m, m)
DVTI_LIFT2(m, mor, m, m)
DVTI_LIFT1(m, mnot, m)
#if defined(DVTI_NEON)
DVTI_INLINE uint8x16_t V(mbytes)(V(m) a) {
    const uint16x8_t low = vuzp1q_u16((uint16x8_t)a.p0, (uint16x8_t)a.p1);
    const uint16x8_t high = vuzp1q_u16((uint16x8_t)a.p2, (uint16x8_t)a.p3);
    return vuzp1q_u8((uint8x16_t)low, (uint8x16_t)high);
}

DVTI_INLINE uint32_t V(mbits)(V(m) a) {
    static const uint8_t bit[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t bits = vandq_u8(V(mbytes)(a), vld1q_u8(bit));
    return vaddv_u8(vget_low_u8(bits)) | (uint32_t)vaddv_u8(vget_high_u8(bits)) << 8;
}

DVTI_INLINE void V(mstore)(uint8_t *p, V(m) a) {
    vst1q_u8(p, vandq_u8(V(mbytes)(a), vdupq_n_u8(1)));
}
#else
DVTI_LIFT_BITS(mbits, m, DVTI_REG_F)
DVTI_LIFT_STORE(m, mstore, uint8_t, DVTI_REG_F)
#endif

/* Stores four int32 for each of 16 groups, group after group. Lane i belongs to group
   V(group_of_lane)(i). */
DVTI_INLINE void V(store4)(int32_t *to, V(i) a, V(i) b, V(i) c, V(i) d) {
    DVTI_EACH_REG(DVTI_DO_STORE4, store4)
}

DVTI_INLINE int V(group_of_lane)(int i) {
    int reg = i / DVTI_REG_F, lane = i % DVTI_REG_F;
    return reg * DVTI_REG_F + lane % 4 * (DVTI_REG_F / 4) + lane / 4;
}

/* double */
DVTI_LIFT_SET(d, dset, double)
DVTI_LIFT_LOAD(d, dload, double, DVTI_REG_D)
DVTI_LIFT_LOAD(d, load_wide, float, DVTI_REG_D)
DVTI_LIFT_STORE(d, dstore, double, DVTI_REG_D)
DVTI_LIFT_STORE(d, dstream, double, DVTI_REG_D)
DVTI_LIFT_LOAD_N(d, dload_n, double, DVTI_REG_D)
DVTI_LIFT_STORE_N(d, dstore_n, double, DVTI_REG_D)
DVTI_LIFT2(d, dadd, d, d)
DVTI_LIFT2(d, dsub, d, d)
DVTI_LIFT2(d, dmul, d, d)
DVTI_LIFT2(d, ddiv, d, d)
DVTI_LIFT2(d, dmin, d, d)
DVTI_LIFT2(d, dmax, d, d)
DVTI_LIFT3(d, dfma, d, d, d)
DVTI_LIFT3(d, dfnma, d, d, d)
DVTI_LIFT1(d, dsqrt, d)
DVTI_LIFT1(d, dround, d)
DVTI_LIFT1(d, dfloor, d)
DVTI_LIFT1(d, dceil, d)
DVTI_LIFT1(d, dtrunc, d)
DVTI_LIFT2(d, dand, d, d)
DVTI_LIFT2(d, dor, d, d)
DVTI_LIFT2(d, dxor, d, d)
DVTI_LIFT2(d, dandnot, d, d)
DVTI_LIFT2(n, dlt, d, d)
DVTI_LIFT2(n, dle, d, d)
DVTI_LIFT2(n, deq, d, d)
DVTI_LIFT2(n, dunord, d, d)
DVTI_LIFT3(d, dselect, n, d, d)
DVTI_LIFT1(l, as_l, d)
DVTI_LIFT1(d, as_d, l)
DVTI_LIFT_SET(l, lset, int64_t)
DVTI_LIFT_LOAD(l, lload, int64_t, DVTI_REG_D)
DVTI_LIFT2(l, ladd, l, l)
DVTI_LIFT2(l, lsub, l, l)
DVTI_LIFT2(l, land, l, l)
DVTI_LIFT2(l, lor, l, l)
DVTI_LIFT2(l, lxor, l, l)
DVTI_LIFT2(l, lmul, l, l)
DVTI_LIFT1(i, l_as_i, l)
DVTI_LIFT_SHIFT(l, lshl)
DVTI_LIFT_SHIFT(l, lshr)
DVTI_LIFT2(n, nand, n, n)
DVTI_LIFT2(n, nor, n, n)
DVTI_LIFT1(n, nnot, n)
DVTI_LIFT_BITS(nbits, n, DVTI_REG_D)
DVTI_LIFT_STORE(n, nstore, uint8_t, DVTI_REG_D)

/* ---- primitives made of others ---- */
DVTI_INLINE V(f) V(zero)(void) {
    return V(set)(0);
}

DVTI_INLINE V(d) V(dzero)(void) {
    return V(dset)(0);
}

DVTI_INLINE V(f) V(abs)(V(f) a) {
    return V(bit_andnot)(V(set)(-0.f), a);
}

DVTI_INLINE V(f) V(neg)(V(f) a) {
    return V(bit_xor)(V(set)(-0.f), a);
}

DVTI_INLINE V(d) V(dabs)(V(d) a) {
    return V(dandnot)(V(dset)(-0.), a);
}

DVTI_INLINE V(d) V(dneg)(V(d) a) {
    return V(dxor)(V(dset)(-0.), a);
}

DVTI_INLINE V(m) V(gt)(V(f) a, V(f) b) {
    return V(lt)(b, a);
}

DVTI_INLINE V(m) V(ge)(V(f) a, V(f) b) {
    return V(le)(b, a);
}

DVTI_INLINE V(m) V(ne)(V(f) a, V(f) b) {
    return V(mnot)(V(eq)(a, b));
}

DVTI_INLINE V(n) V(dgt)(V(d) a, V(d) b) {
    return V(dlt)(b, a);
}

DVTI_INLINE V(n) V(dge)(V(d) a, V(d) b) {
    return V(dle)(b, a);
}

DVTI_INLINE V(n) V(dne)(V(d) a, V(d) b) {
    return V(nnot)(V(deq)(a, b));
}

#if defined(DVTI_HAS_SCALEF)
DVTI_LIFT2(f, scalef, f, f)
DVTI_LIFT2(d, dscalef, d, d)
#else
/* Two multiplications: the first result is a normal number and exact, the second rounds. The bits
   of 1.5 * 2^23 + 254 + n end with 254 + n, the sum of the exponents of both factors. */
DVTI_INLINE V(f) V(scalef)(V(f) a, V(f) n) {
    V(i) sum = V(ishl)(V(as_i)(V(add)(n, V(set)(12583166))), 23);
    V(i) half = V(iand)(V(ishr)(sum, 1), V(iset)(0x7f800000));
    return V(mul)(V(mul)(a, V(as_f)(half)), V(as_f)(V(isub)(sum, half)));
}

/* The low bits of 1.5 * 2^52 + n are n. */
DVTI_INLINE V(d) V(dscalef)(V(d) a, V(d) n) {
    const V(d) magic = V(dset)(6755399441055744.);
    V(d) half = V(dfloor)(V(dmul)(n, V(dset)(0.5)));
    V(l) first = V(ladd)(V(as_l)(V(dadd)(half, magic)), V(lset)(1023));
    V(l) second = V(ladd)(V(as_l)(V(dadd)(V(dsub)(n, half), magic)), V(lset)(1023));
    return V(dmul)(V(dmul)(a, V(as_d)(V(lshl)(first, 52))), V(as_d)(V(lshl)(second, 52)));
}
#endif

DVTI_INLINE V(d) V(widen_low)(V(f) a) {
    V(d) r;
#if DVTI_REGS == 1
    DVTI_OF(r, p0) = V(p_widen_low)(DVTI_OF(a, p0));
#elif DVTI_REGS == 2
    r.p0 = V(p_widen_low)(a.p0);
    r.p1 = V(p_widen_high)(a.p0);
#else
    r.p0 = V(p_widen_low)(a.p0);
    r.p1 = V(p_widen_high)(a.p0);
    r.p2 = V(p_widen_low)(a.p1);
    r.p3 = V(p_widen_high)(a.p1);
#endif
    return r;
}

DVTI_INLINE V(d) V(widen_high)(V(f) a) {
    V(d) r;
#if DVTI_REGS == 1
    DVTI_OF(r, p0) = V(p_widen_high)(DVTI_OF(a, p0));
#elif DVTI_REGS == 2
    r.p0 = V(p_widen_low)(a.p1);
    r.p1 = V(p_widen_high)(a.p1);
#else
    r.p0 = V(p_widen_low)(a.p2);
    r.p1 = V(p_widen_high)(a.p2);
    r.p2 = V(p_widen_low)(a.p3);
    r.p3 = V(p_widen_high)(a.p3);
#endif
    return r;
}

#if DVTI_REGS == 1
#define DVTI_ZIP_LOW(low, high, a, b) DVTI_OF(r, p0) = low(DVTI_OF(a, p0), DVTI_OF(b, p0));
#define DVTI_ZIP_HIGH(low, high, a, b) DVTI_OF(r, p0) = high(DVTI_OF(a, p0), DVTI_OF(b, p0));
#elif DVTI_REGS == 2
#define DVTI_ZIP_REGS(low, high, x, y)                                                             \
    r.p0 = low(x, y);                                                                              \
    r.p1 = high(x, y);
#define DVTI_ZIP_LOW(low, high, a, b) DVTI_ZIP_REGS(low, high, a.p0, b.p0)
#define DVTI_ZIP_HIGH(low, high, a, b) DVTI_ZIP_REGS(low, high, a.p1, b.p1)
#else
#define DVTI_ZIP_REGS(low, high, x, y, z, w)                                                       \
    r.p0 = low(x, y);                                                                              \
    r.p1 = high(x, y);                                                                             \
    r.p2 = low(z, w);                                                                              \
    r.p3 = high(z, w);
#define DVTI_ZIP_LOW(low, high, a, b) DVTI_ZIP_REGS(low, high, a.p0, b.p0, a.p1, b.p1)
#define DVTI_ZIP_HIGH(low, high, a, b) DVTI_ZIP_REGS(low, high, a.p2, b.p2, a.p3, b.p3)
#endif
#define DVTI_LIFT_ZIP(R, name, half, low, high)                                                    \
    DVTI_INLINE V(R) V(name)(V(R) a, V(R) b) {                                                     \
        V(R) r;                                                                                    \
        half(V(low), V(high), a, b) return r;                                                      \
    }
DVTI_LIFT_ZIP(f, zip_low, DVTI_ZIP_LOW, p_zip_low, p_zip_high)
DVTI_LIFT_ZIP(f, zip_high, DVTI_ZIP_HIGH, p_zip_low, p_zip_high)
DVTI_LIFT_ZIP(d, dzip_low, DVTI_ZIP_LOW, p_dzip_low, p_dzip_high)
DVTI_LIFT_ZIP(d, dzip_high, DVTI_ZIP_HIGH, p_dzip_low, p_dzip_high)
#undef DVTI_ZIP_REGS
#undef DVTI_ZIP_LOW
#undef DVTI_ZIP_HIGH
#undef DVTI_LIFT_ZIP

#if DVTI_REGS == 1
#define DVTI_PICK(primitive) DVTI_OF(r, p0) = V(primitive)(DVTI_OF(a, p0), DVTI_OF(b, p0));
#elif DVTI_REGS == 2
#define DVTI_PICK(primitive)                                                                       \
    r.p0 = V(primitive)(a.p0, a.p1);                                                               \
    r.p1 = V(primitive)(b.p0, b.p1);
#else
#define DVTI_PICK(primitive)                                                                       \
    r.p0 = V(primitive)(a.p0, a.p1);                                                               \
    r.p1 = V(primitive)(a.p2, a.p3);                                                               \
    r.p2 = V(primitive)(b.p0, b.p1);                                                               \
    r.p3 = V(primitive)(b.p2, b.p3);
#endif
DVTI_INLINE V(f) V(even)(V(f) a, V(f) b) {
    V(f) r;
    DVTI_PICK(p_even)
    return r;
}

DVTI_INLINE V(f) V(odd)(V(f) a, V(f) b) {
    V(f) r;
    DVTI_PICK(p_odd)
    return r;
}
#undef DVTI_PICK

DVTI_INLINE V(f) V(narrow)(V(d) low, V(d) high) {
    V(f) r;
#if DVTI_REGS == 1
    DVTI_OF(r, p0) = V(p_narrow)(DVTI_OF(low, p0), DVTI_OF(high, p0));
#elif DVTI_REGS == 2
    r.p0 = V(p_narrow)(low.p0, low.p1);
    r.p1 = V(p_narrow)(high.p0, high.p1);
#else
    r.p0 = V(p_narrow)(low.p0, low.p1);
    r.p1 = V(p_narrow)(low.p2, low.p3);
    r.p2 = V(p_narrow)(high.p0, high.p1);
    r.p3 = V(p_narrow)(high.p2, high.p3);
#endif
    return r;
}

/* Reduce lanes. Zipping a vector with itself puts lanes i and i + 8 next to each other; each level
   leaves half as many different lanes. Doubles go through memory, because later loads of single
   lanes are forwarded without delay. */
#define DVTI_LANES_REDUCE(name, primitive)                                                         \
    DVTI_INLINE float V(name)(V(f) v) {                                                            \
        float a[16];                                                                               \
        int k;                                                                                     \
        DVTI_REPEAT(4)                                                                             \
        for (k = 0; k < 4; k++)                                                                    \
            v = V(primitive)(V(zip_low)(v, v), V(zip_high)(v, v));                                 \
        V(store)(a, v);                                                                            \
        return a[0];                                                                               \
    }
#define DVTI_DLANES_REDUCE(name, of)                                                               \
    DVTI_INLINE double V(name)(V(d) v) {                                                           \
        double a[8];                                                                               \
        V(dstore)(a, v);                                                                           \
        {                                                                                          \
            const double a0 = of(a[0], a[4]), a1 = of(a[1], a[5]);                                 \
            const double a2 = of(a[2], a[6]), a3 = of(a[3], a[7]);                                 \
            const double even = of(a0, a2), odd = of(a1, a3);                                      \
            return of(even, odd);                                                                  \
        }                                                                                          \
    }
#define DVTI_PLUS(a, b) ((a) + (b))
#define DVTI_TIMES(a, b) ((a) * (b))
DVTI_LANES_REDUCE(lanes_add, add)
DVTI_LANES_REDUCE(lanes_min, min)
DVTI_LANES_REDUCE(lanes_max, max)
DVTI_DLANES_REDUCE(dlanes_add, DVTI_PLUS)
DVTI_DLANES_REDUCE(dlanes_mul, DVTI_TIMES)
DVTI_DLANES_REDUCE(dlanes_max, DVTI_MAX)
#undef DVTI_PLUS
#undef DVTI_TIMES
#undef DVTI_LANES_REDUCE
#undef DVTI_DLANES_REDUCE

#undef DVTI_OF
#undef DVTI_EACH_REG
#undef DVTI_DO1
#undef DVTI_DO2
#undef DVTI_DO3
#undef DVTI_DO_SET
#undef DVTI_DO_SHIFT
#undef DVTI_DO_LOAD
#undef DVTI_DO_STORE
#undef DVTI_DO_LOAD_N
#undef DVTI_DO_STORE_N
#undef DVTI_DO_BITS
#undef DVTI_DO_LOOKUP
#undef DVTI_DO_STORE4
#undef DVTI_DO_LOAD_QUADS
#undef DVTI_DO_STORE_QUADS
#undef DVTI_LIFT1
#undef DVTI_LIFT2
#undef DVTI_LIFT3
#undef DVTI_LIFT_SET
#undef DVTI_LIFT_SHIFT
#undef DVTI_LIFT_LOAD
#undef DVTI_LIFT_STORE
#undef DVTI_LIFT_LOAD_N
#undef DVTI_LIFT_STORE_N
#undef DVTI_LIFT_BITS

/* ---- float16 and bfloat16 in memory ----
   V(load_f16)(p), V(load_bf16)(p), V(store_f16)(p, a), V(store_bf16)(p, a), each also with _n for
   the first n lanes. */

DVTI_INLINE V(f) V(load_bf16)(const uint16_t *p) {
    return V(as_f)(V(ishl)(V(load_u16)(p), 16));
}

/* Rounds to nearest even; NaN stays NaN. */
DVTI_INLINE void V(store_bf16)(uint16_t *p, V(f) a) {
    V(i) bits = V(as_i)(a), odd = V(iand)(V(ishr)(bits, 16), V(iset)(1));
    V(i) rounded = V(ishr)(V(iadd)(V(iadd)(bits, V(iset)(0x7fff)), odd), 16);
    V(i) quiet = V(ior)(V(ishr)(bits, 16), V(iset)(0x40));
    V(store_u16)(p, V(iselect)(V(unord)(a, a), quiet, rounded));
}

#define DVTI_TAIL16(name)                                                                          \
    DVTI_INLINE V(f) V(load_##name##_n)(const uint16_t *p, int64_t n) {                            \
        uint16_t lane[16] = {0};                                                                   \
        memcpy(lane, p, (size_t)n * sizeof *p);                                                    \
        return V(load_##name)(lane);                                                               \
    }                                                                                              \
    DVTI_INLINE void V(store_##name##_n)(uint16_t * p, int64_t n, V(f) a) {                        \
        uint16_t lane[16];                                                                         \
        V(store_##name)(lane, a);                                                                  \
        memcpy(p, lane, (size_t)n * sizeof *p);                                                    \
    }
DVTI_TAIL16(f16)
DVTI_TAIL16(bf16)
#undef DVTI_TAIL16

/* ---- partial vectors: the tails of loops ----
   n may exceed the lanes; then the whole vector is loaded or stored. Lanes from n on are 0 in
   V(load_partial), `other` in V(load_or). */
DVTI_INLINE V(f) V(load_partial)(const float *x, int64_t n) {
    return n >= 16 ? V(load)(x) : V(load_n)(x, n);
}

DVTI_INLINE V(d) V(dload_partial)(const double *x, int64_t n) {
    return n >= 8 ? V(dload)(x) : V(dload_n)(x, n);
}

DVTI_INLINE void V(store_partial)(float *x, int64_t n, V(f) a) {
    if (n >= 16)
        V(store)(x, a);
    else
        V(store_n)(x, n, a);
}

DVTI_INLINE V(d) V(dload_or)(const double *x, int64_t n, double other) {
    static const double number[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    if (n >= 8)
        return V(dload)(x);
    return V(dselect)(V(dlt)(V(dload)(number), V(dset)((double)n)), V(dload_n)(x, n),
                      V(dset)(other));
}

DVTI_INLINE V(f) V(load_or)(const float *x, int64_t n, float other) {
    static const int32_t number[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    if (n >= 16)
        return V(load)(x);
    return V(select)(V(igt)(V(iset)((int32_t)n), V(iload)(number)), V(load_n)(x, n), V(set)(other));
}

/* ---- needed by 2_core/math/angles.inl ----
   Reduces lanes whose bit in `done` is 0 one after the other: they are rare. */
DVTI_INLINE void V(far_angles)(V(f) x, uint32_t done, V(f) * rest, V(f) * low, V(i) * quarters) {
    float lanes[3][16];
    int32_t turns[16];
    V(store)(lanes[0], x);
    V(store)(lanes[1], *rest);
    V(store)(lanes[2], *low);
    V(istore)(turns, *quarters);
    dvti_reduce_angles(lanes[0], done, lanes[1], lanes[2], turns);
    *rest = V(load)(lanes[1]);
    *low = V(load)(lanes[2]);
    *quarters = V(iload)(turns);
}
