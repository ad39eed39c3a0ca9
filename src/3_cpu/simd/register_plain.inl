/* SIMD primitives of one register: 16 bytes, in the compiler's vector types, and NEON intrinsics
   where the operators cannot express them. Every ISA target has the same primitives:

     pf, pi, pd, pl        one register of floats, int32, doubles, int64
     pm, pn                a mask of 32-bit lanes, of 64-bit lanes
     p_set(x)              x in all lanes
     p_load(p), p_store(p, a)        at any address
     p_stream(p, a)                  non-temporal store to a multiple of 64 bytes
     p_load_n(p, n), p_store_n(p, n, a)   only the first n lanes, any n; others load as 0
     p_first(n)            a p_first_type for p_load_first(p, first), p_store_first(p, first, a):
                           like _n for n > 0, prepared once for many calls
     p_fma(a, b, c)        a * b + c, p_fnma c - a * b; rounded once if the machine can
     p_factor(x)           a p_factor_type for p_fma_factor(factor, b, c): x * b + c
     p_min(a, b)           a < b ? a : b; p_max(a, b) a > b ? a : b; so b if one is NaN
     p_even(a, b), p_odd   even or odd lanes of a, then those of b
     p_zip_low(a, b)       a[0] b[0] a[1] b[1] .. of the lower half; p_zip_high of the upper
     p_unpack_low, p_unpack_high     the same within each part of 16 bytes
     p_load_quads(p, step), p_store_quads(p, step, a)   4 lanes each at p, p + 4 step, p + 8 step ..
     p_even_parts(a, b), p_odd_parts even or odd parts of 16 bytes of a, then those of b; only for
                           registers of several
     p_round               ties to even; p_floor, p_ceil, p_trunc, p_sqrt
     p_bit_and, p_bit_or, p_bit_xor, p_bit_andnot(a, b) = ~a & b
     p_lt, p_le, p_eq      false for NaN; p_unord true if either is NaN
     p_select(m, a, b)     m ? a : b
     p_mbits               one bit per lane; p_mstore one byte per lane, 1 or 0
     p_as_i, p_as_f        the same bits
     p_to_i                nearest int32, any value if none fits; p_to_f float of int32
     p_load_wide(p)        floats in memory as doubles
     p_widen_low, p_widen_high   half of the lanes as doubles; p_narrow(low, high) the reverse
     p_load_f16, p_store_f16     float16 in memory
     p_load_u16, p_store_u16     the low 16 bits of every lane in memory
     p_lookup(table, i)    the floats table[i & 7]
     p_imin, p_imax        signed; p_icount(a, b, c) = a + (b > c)
     p_ishl, p_ishr, p_isar      shift left, logical right, arithmetic right
     p_lmul                64-bit product of the low unsigned 32 bits; p_l_as_i the same bits
     p_store4(p, a, b, c, d)     groups of four: a[i] b[i] c[i] d[i]; lane i = j + 4 l (j < 4)
                                 is group j * (lanes / 4) + l
     p_split(low, high, a, most, order)   writes lanes of at most `most` to low on, and the others
                                 so that they end before high; returns how many went to low. Other
                                 elements between low and high are undefined afterwards; high - low
                                 >= DVTI_SPLIT_SPACE. p_split_orders(order) fills the table `order`
                                 of DVTI_SPLIT_ORDERS. Not here: sort_quick.inl needs them

   Prefixes before the operation: none for float, d double, i int32, l int64, m and n masks. */
#define DVTI_REGS 4
#define DVTI_REG_F 4
#define DVTI_REG_D 2

typedef float V(pf) __attribute__((vector_size(16)));
typedef int32_t V(pi) __attribute__((vector_size(16)));
typedef uint32_t V(pu) __attribute__((vector_size(16)));
typedef double V(pd) __attribute__((vector_size(16)));
typedef int64_t V(pl) __attribute__((vector_size(16)));
typedef uint64_t V(pw) __attribute__((vector_size(16)));
typedef V(pi) V(pm);
typedef V(pl) V(pn);
typedef int64_t V(p_first_type);
typedef int64_t V(p_dfirst_type);

/* Computes lane by lane, for functions without an operator. */
#define DVTI_PLAIN_EACH(R, name, A, B, C, lanes, value)                                            \
    DVTI_INLINE V(R) V(name)(V(A) a, V(B) b, V(C) c) {                                             \
        V(R) r;                                                                                    \
        int k;                                                                                     \
        (void)b;                                                                                   \
        (void)c;                                                                                   \
        for (k = 0; k < lanes; k++)                                                                \
            r[k] = value;                                                                          \
        return r;                                                                                  \
    }
#define DVTI_PLAIN_EACH1(T, name, lanes, value)                                                    \
    DVTI_INLINE V(T) V(name)(V(T) a) {                                                             \
        V(T) r;                                                                                    \
        int k;                                                                                     \
        for (k = 0; k < lanes; k++)                                                                \
            r[k] = value;                                                                          \
        return r;                                                                                  \
    }
/* Not a loop over the lanes: GCC inserts them one by one. */
#define DVTI_PLAIN_SET(T, name, E, ...)                                                            \
    DVTI_INLINE V(T) V(name)(E x) {                                                                \
        V(T) r = {__VA_ARGS__};                                                                    \
        return r;                                                                                  \
    }

DVTI_INLINE int64_t V(p_clip)(int64_t n, int64_t lanes) {
    return n < 0 ? 0 : n > lanes ? lanes : n;
}

/* Not memcpy of n elements, which is a call that keeps no vector register. */
DVTI_NOINLINE static V(pi) V(p_words)(const void *from, int64_t n) {
    const char *p = (const char *)from;
    V(pi) r = {0};
    int32_t w;
    if (n >= 4) {
        memcpy(&r, p, 16);
        return r;
    }
    if (n > 0) {
        memcpy(&w, p, 4);
        r[0] = w;
    }
    if (n > 1) {
        memcpy(&w, p + 4, 4);
        r[1] = w;
    }
    if (n > 2) {
        memcpy(&w, p + 8, 4);
        r[2] = w;
    }
    return r;
}

DVTI_NOINLINE static void V(p_store_words)(void *to, int64_t n, V(pi) a) {
    const int32_t w[3] = {a[0], a[1], a[2]};
    char *p = (char *)to;
    if (n >= 4) {
        memcpy(p, &a, 16);
        return;
    }
    if (n > 0)
        memcpy(p, &w[0], 4);
    if (n > 1)
        memcpy(p + 4, &w[1], 4);
    if (n > 2)
        memcpy(p + 8, &w[2], 4);
}

#define DVTI_PLAIN_LOAD_N(T, name, E)                                                              \
    DVTI_INLINE V(T) V(name)(const E *p, int64_t n) {                                              \
        return (V(T))V(p_words)(p, n * (int64_t)sizeof(E) / 4);                                    \
    }
#define DVTI_PLAIN_STORE_N(T, name, E)                                                             \
    DVTI_INLINE void V(name)(E * p, int64_t n, V(T) a) {                                           \
        V(p_store_words)(p, n * (int64_t)sizeof(E) / 4, (V(pi))a);                                 \
    }
#define DVTI_PLAIN_FIRST(T, first, load, store, F, E, lanes)                                       \
    DVTI_INLINE V(F) V(first)(int64_t n) {                                                         \
        return V(p_clip)(n, lanes);                                                                \
    }                                                                                              \
    DVTI_INLINE V(T) V(load)(const E *p, V(F) n) {                                                 \
        V(T) r;                                                                                    \
        if (n != lanes)                                                                            \
            return (V(T))V(p_words)(p, n * (int64_t)sizeof(E) / 4);                                \
        memcpy(&r, p, 16);                                                                         \
        return r;                                                                                  \
    }                                                                                              \
    DVTI_INLINE void V(store)(E * p, V(F) n, V(T) a) {                                             \
        if (n == lanes)                                                                            \
            memcpy(p, &a, 16);                                                                     \
        else                                                                                       \
            V(p_store_words)(p, n * (int64_t)sizeof(E) / 4, (V(pi))a);                             \
    }
#define DVTI_PLAIN_LOAD(T, name, E)                                                                \
    DVTI_INLINE V(T) V(name)(const E *p) {                                                         \
        V(T) r;                                                                                    \
        memcpy(&r, p, 16);                                                                         \
        return r;                                                                                  \
    }
#define DVTI_PLAIN_STORE(T, name, E)                                                               \
    DVTI_INLINE void V(name)(E * p, V(T) a) {                                                      \
        memcpy(p, &a, 16);                                                                         \
    }

/* masks first: p_select uses them */
DVTI_REG2(pm, p_mand, pm, pm, a &b)
DVTI_REG2(pm, p_mor, pm, pm, a | b)
DVTI_REG1(pm, p_mnot, pm, ~a)
DVTI_REG_BITS(p_mbits, pm,
               (uint32_t)((a[0] & 1) | (a[1] & 2) | (a[2] & 4) | (a[3] & 8)))
DVTI_INLINE void V(p_mstore)(uint8_t *p, V(pm) a) {
    int k;
    for (k = 0; k < 4; k++)
        p[k] = (uint8_t)(a[k] & 1);
}
DVTI_REG2(pn, p_nand, pn, pn, a &b)
DVTI_REG2(pn, p_nor, pn, pn, a | b)
DVTI_REG1(pn, p_nnot, pn, ~a)
DVTI_REG_BITS(p_nbits, pn, (uint32_t)((a[0] & 1) | (a[1] & 2)))
DVTI_INLINE void V(p_nstore)(uint8_t *p, V(pn) a) {
    p[0] = (uint8_t)(a[0] & 1);
    p[1] = (uint8_t)(a[1] & 1);
}

/* float */
DVTI_REG1(pi, p_as_i, pf, (V(pi))a)
DVTI_REG1(pf, p_as_f, pi, (V(pf))a)
DVTI_PLAIN_SET(pf, p_set, float, x, x, x, x)
DVTI_PLAIN_LOAD(pf, p_load, float)
DVTI_PLAIN_STORE(pf, p_store, float)
/* A non-temporal store to a multiple of 64 bytes if the machine has one. */
DVTI_PLAIN_STORE(pf, p_stream, float)
DVTI_PLAIN_LOAD_N(pf, p_load_n, float)
DVTI_PLAIN_STORE_N(pf, p_store_n, float)
DVTI_PLAIN_FIRST(pf, p_first, p_load_first, p_store_first, p_first_type, float, 4)
DVTI_REG2(pf, p_add, pf, pf, a + b)
DVTI_REG2(pf, p_sub, pf, pf, a - b)
DVTI_REG2(pf, p_mul, pf, pf, a *b)
DVTI_REG2(pf, p_div, pf, pf, a / b)
DVTI_REG2(pf, p_bit_and, pf, pf, (V(pf))((V(pi))a & (V(pi))b))
DVTI_REG2(pf, p_bit_or, pf, pf, (V(pf))((V(pi))a | (V(pi))b))
DVTI_REG2(pf, p_bit_xor, pf, pf, (V(pf))((V(pi))a ^ (V(pi))b))
DVTI_REG2(pf, p_bit_andnot, pf, pf, (V(pf))(~(V(pi))a & (V(pi))b))
DVTI_REG2(pm, p_lt, pf, pf, (V(pm))(a < b))
DVTI_REG2(pm, p_le, pf, pf, (V(pm))(a <= b))
DVTI_REG2(pm, p_eq, pf, pf, (V(pm))(a == b))
DVTI_REG2(pm, p_unord, pf, pf, (V(pm))((a != a) | (b != b)))
#if defined(DVTI_NEON)
DVTI_REG3(pf, p_select, pm, pf, pf, vbslq_f32((V(pu))a, b, c))
DVTI_REG3(pi, p_iselect, pm, pi, pi, vbslq_s32((V(pu))a, b, c))
DVTI_REG3(pd, p_dselect, pn, pd, pd, vbslq_f64((V(pw))a, b, c))
#else
DVTI_REG3(pf, p_select, pm, pf, pf, (V(pf))((a & (V(pi))b) | (~a & (V(pi))c)))
DVTI_REG3(pi, p_iselect, pm, pi, pi, (a & b) | (~a & c))
DVTI_REG3(pd, p_dselect, pn, pd, pd, (V(pd))((a & (V(pl))b) | (~a & (V(pl))c)))
#endif
DVTI_REG2(pf, p_min, pf, pf, V(p_select)((V(pm))(a < b), a, b))
DVTI_REG2(pf, p_max, pf, pf, V(p_select)((V(pm))(a > b), a, b))
#if defined(DVTI_NEON)
DVTI_REG2(pf, p_even, pf, pf, vuzp1q_f32(a, b))
DVTI_REG2(pf, p_odd, pf, pf, vuzp2q_f32(a, b))
#else
#define DVTI_PLAIN_PICK(name, v, w, x, y)                                                          \
    DVTI_INLINE V(pf) V(name)(V(pf) a, V(pf) b) {                                                  \
        V(pf) r = {v, w, x, y};                                                                    \
        return r;                                                                                  \
    }
DVTI_PLAIN_PICK(p_even, a[0], a[2], b[0], b[2])
DVTI_PLAIN_PICK(p_odd, a[1], a[3], b[1], b[3])
#undef DVTI_PLAIN_PICK
#endif
#if defined(DVTI_NEON)
/* A factor is loaded to lane 0 only, by which FMAs multiply: a broadcast would take an FMA's place
   in the vector units. The statement keeps compilers from broadcasting. */
typedef float V(p_factor_type);
typedef double V(p_dfactor_type);
DVTI_INLINE float V(p_factor)(float x) {
    __asm__("" : "+w"(x));
    return x;
}

DVTI_INLINE double V(p_dfactor)(double x) {
    __asm__("" : "+w"(x));
    return x;
}

DVTI_INLINE V(pf) V(p_fma_factor)(float a, V(pf) b, V(pf) c) {
    return vfmaq_n_f32(c, b, a);
}

DVTI_INLINE V(pd) V(p_dfma_factor)(double a, V(pd) b, V(pd) c) {
    return vfmaq_n_f64(c, b, a);
}

DVTI_REG3(pf, p_fma, pf, pf, pf, vfmaq_f32(c, a, b))
DVTI_REG3(pf, p_fnma, pf, pf, pf, vfmsq_f32(c, a, b))
DVTI_REG1(pf, p_sqrt, pf, vsqrtq_f32(a))
DVTI_REG1(pf, p_round, pf, vrndnq_f32(a))
DVTI_REG1(pf, p_floor, pf, vrndmq_f32(a))
DVTI_REG1(pf, p_ceil, pf, vrndpq_f32(a))
DVTI_REG1(pf, p_trunc, pf, vrndq_f32(a))
DVTI_REG1(pi, p_to_i, pf, vcvtnq_s32_f32(a))
DVTI_REG1(pf, p_to_f, pi, vcvtq_f32_s32(a))
DVTI_REG1(pd, p_widen_low, pf, vcvt_f64_f32(vget_low_f32(a)))
DVTI_REG1(pd, p_widen_high, pf, vcvt_high_f64_f32(a))
DVTI_REG_LOAD(pd, p_load_wide, float, vcvt_f64_f32(vld1_f32(p)))
DVTI_REG2(pf, p_narrow, pd, pd, vcvt_high_f32_f64(vcvt_f32_f64(a), b))
DVTI_REG2(pf, p_zip_low, pf, pf, vzip1q_f32(a, b))
DVTI_REG2(pf, p_zip_high, pf, pf, vzip2q_f32(a, b))
DVTI_REG_LOAD(pf, p_load_f16, uint16_t, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))))
DVTI_REG_STORE(pf, p_store_f16, uint16_t, vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(a))))
#else
#if defined(DVTI_PLAIN_FMA)
DVTI_PLAIN_EACH(pf, p_fma, pf, pf, pf, 4, fmaf(a[k], b[k], c[k]))
DVTI_PLAIN_EACH(pf, p_fnma, pf, pf, pf, 4, fmaf(-a[k], b[k], c[k]))
#else
DVTI_REG3(pf, p_fma, pf, pf, pf, a *b + c)
DVTI_REG3(pf, p_fnma, pf, pf, pf, c - a * b)
#endif
DVTI_PLAIN_EACH1(pf, p_sqrt, 4, sqrtf(a[k]))
DVTI_PLAIN_EACH1(pf, p_round, 4, rintf(a[k]))
DVTI_PLAIN_EACH1(pf, p_floor, 4, floorf(a[k]))
DVTI_PLAIN_EACH1(pf, p_ceil, 4, ceilf(a[k]))
DVTI_PLAIN_EACH1(pf, p_trunc, 4, truncf(a[k]))

DVTI_INLINE V(pf) V(p_zip_low)(V(pf) a, V(pf) b) {
    V(pf) r = {a[0], b[0], a[1], b[1]};
    return r;
}

DVTI_INLINE V(pf) V(p_zip_high)(V(pf) a, V(pf) b) {
    V(pf) r = {a[2], b[2], a[3], b[3]};
    return r;
}

DVTI_INLINE V(pi) V(p_to_i)(V(pf) a) {
    V(pi) r;
    int k;
    for (k = 0; k < 4; k++)
        r[k] = a[k] >= -2147483648.f && a[k] < 2147483648.f ? (int32_t)rintf(a[k]) : INT32_MIN;
    return r;
}

DVTI_INLINE V(pf) V(p_to_f)(V(pi) a) {
    V(pf) r = {(float)a[0], (float)a[1], (float)a[2], (float)a[3]};
    return r;
}

DVTI_INLINE V(pd) V(p_load_wide)(const float *p) {
    V(pd) r = {(double)p[0], (double)p[1]};
    return r;
}

DVTI_INLINE V(pd) V(p_widen_low)(V(pf) a) {
    V(pd) r = {(double)a[0], (double)a[1]};
    return r;
}

DVTI_INLINE V(pd) V(p_widen_high)(V(pf) a) {
    V(pd) r = {(double)a[2], (double)a[3]};
    return r;
}

DVTI_INLINE V(pf) V(p_narrow)(V(pd) low, V(pd) high) {
    V(pf) r = {(float)low[0], (float)low[1], (float)high[0], (float)high[1]};
    return r;
}

DVTI_INLINE V(pf) V(p_load_f16)(const uint16_t *p) {
    V(pf) r;
    float lane[4];
    dvti_load_row_f32(p, DVT_F16, 1, 4, lane);
    memcpy(&r, lane, 16);
    return r;
}

DVTI_INLINE void V(p_store_f16)(uint16_t *p, V(pf) a) {
    float lane[4];
    memcpy(lane, &a, 16);
    dvti_store_row_f32(p, DVT_F16, 1, 4, lane);
}
#endif

/* One quad. */
DVTI_INLINE V(pf) V(p_load_quads)(const float *p, int64_t step) {
    (void)step;
    return V(p_load)(p);
}

DVTI_INLINE void V(p_store_quads)(float *p, int64_t step, V(pf) a) {
    (void)step;
    V(p_store)(p, a);
}

#if defined(DVTI_NEON)
DVTI_REG_LOAD(pi, p_load_u16, uint16_t, (V(pi))vmovl_u16(vld1_u16(p)))
DVTI_REG_STORE(pi, p_store_u16, uint16_t, vst1_u16(p, vmovn_u32((V(pu))a)))
#else
DVTI_INLINE V(pi) V(p_load_u16)(const uint16_t *p) {
    V(pi) r = {p[0], p[1], p[2], p[3]};
    return r;
}

DVTI_INLINE void V(p_store_u16)(uint16_t *p, V(pi) a) {
    int k;
    for (k = 0; k < 4; k++)
        p[k] = (uint16_t)a[k];
}
#endif

/* int32 */
DVTI_PLAIN_SET(pi, p_iset, int32_t, x, x, x, x)
DVTI_PLAIN_LOAD(pi, p_iload, int32_t)
DVTI_PLAIN_STORE(pi, p_istore, int32_t)
DVTI_PLAIN_LOAD_N(pi, p_iload_n, int32_t)
DVTI_PLAIN_STORE_N(pi, p_istore_n, int32_t)
DVTI_REG2(pi, p_iadd, pi, pi, (V(pi))((V(pu))a + (V(pu))b))
DVTI_REG2(pi, p_isub, pi, pi, (V(pi))((V(pu))a - (V(pu))b))
DVTI_REG2(pi, p_iand, pi, pi, a &b)
DVTI_REG2(pi, p_ior, pi, pi, a | b)
DVTI_REG2(pi, p_ixor, pi, pi, a ^ b)
DVTI_INLINE V(pf) V(p_lookup)(const float *table, V(pi) at) {
#if defined(DVTI_NEON)
    const uint8x16x2_t bytes = vld1q_u8_x2((const uint8_t *)table);
    const V(pu) which = ((V(pu))at & 7) * 0x04040404u + 0x03020100u;
    return vreinterpretq_f32_u8(vqtbl2q_u8(bytes, vreinterpretq_u8_u32(which)));
#else
    V(pf) r = {table[at[0] & 7], table[at[1] & 7], table[at[2] & 7], table[at[3] & 7]};
    return r;
#endif
}

DVTI_INLINE void V(p_store4)(int32_t *p, V(pi) a, V(pi) b, V(pi) c, V(pi) d) {
#if defined(DVTI_NEON)
    const int32x4x4_t four = {{a, b, c, d}};
    vst4q_s32(p, four);
#else
    int k;
    for (k = 0; k < 4; k++, p += 4) {
        p[0] = a[k];
        p[1] = b[k];
        p[2] = c[k];
        p[3] = d[k];
    }
#endif
}

DVTI_REG_SHIFT(pi, p_ishl, (V(pi))((V(pu))a << n))
DVTI_REG_SHIFT(pi, p_ishr, (V(pi))((V(pu))a >> n))
DVTI_REG_SHIFT(pi, p_isar, a >> n)
DVTI_REG2(pm, p_ieq, pi, pi, (V(pm))(a == b))
DVTI_REG2(pm, p_igt, pi, pi, (V(pm))(a > b))
DVTI_REG3(pi, p_icount, pi, pi, pi, a - (V(pi))(b > c))
#if defined(DVTI_NEON)
DVTI_REG2(pi, p_imin, pi, pi, vminq_s32(a, b))
DVTI_REG2(pi, p_imax, pi, pi, vmaxq_s32(a, b))
#else
DVTI_REG2(pi, p_imin, pi, pi, V(p_iselect)(V(p_igt)(a, b), b, a))
DVTI_REG2(pi, p_imax, pi, pi, V(p_iselect)(V(p_igt)(a, b), a, b))
#endif

/* double */
DVTI_REG1(pl, p_as_l, pd, (V(pl))a)
DVTI_REG1(pd, p_as_d, pl, (V(pd))a)
DVTI_PLAIN_SET(pd, p_dset, double, x, x)
DVTI_PLAIN_LOAD(pd, p_dload, double)

DVTI_PLAIN_STORE(pd, p_dstore, double)
DVTI_PLAIN_STORE(pd, p_dstream, double)
DVTI_PLAIN_LOAD_N(pd, p_dload_n, double)
DVTI_PLAIN_STORE_N(pd, p_dstore_n, double)
DVTI_PLAIN_FIRST(pd, p_dfirst, p_dload_first, p_dstore_first, p_dfirst_type, double, 2)
DVTI_REG2(pd, p_dadd, pd, pd, a + b)
DVTI_REG2(pd, p_dsub, pd, pd, a - b)
DVTI_REG2(pd, p_dmul, pd, pd, a *b)
DVTI_REG2(pd, p_ddiv, pd, pd, a / b)
DVTI_REG2(pd, p_dand, pd, pd, (V(pd))((V(pl))a & (V(pl))b))
DVTI_REG2(pd, p_dor, pd, pd, (V(pd))((V(pl))a | (V(pl))b))
DVTI_REG2(pd, p_dxor, pd, pd, (V(pd))((V(pl))a ^ (V(pl))b))
DVTI_REG2(pd, p_dandnot, pd, pd, (V(pd))(~(V(pl))a & (V(pl))b))
DVTI_REG2(pn, p_dlt, pd, pd, (V(pn))(a < b))
DVTI_REG2(pn, p_dle, pd, pd, (V(pn))(a <= b))
DVTI_REG2(pn, p_deq, pd, pd, (V(pn))(a == b))
DVTI_REG2(pn, p_dunord, pd, pd, (V(pn))((a != a) | (b != b)))
DVTI_REG2(pd, p_dmin, pd, pd, V(p_dselect)((V(pn))(a < b), a, b))
DVTI_REG2(pd, p_dmax, pd, pd, V(p_dselect)((V(pn))(a > b), a, b))
#if defined(DVTI_NEON)
DVTI_REG3(pd, p_dfma, pd, pd, pd, vfmaq_f64(c, a, b))
DVTI_REG3(pd, p_dfnma, pd, pd, pd, vfmsq_f64(c, a, b))
DVTI_REG1(pd, p_dsqrt, pd, vsqrtq_f64(a))
DVTI_REG1(pd, p_dround, pd, vrndnq_f64(a))
DVTI_REG1(pd, p_dfloor, pd, vrndmq_f64(a))
DVTI_REG1(pd, p_dceil, pd, vrndpq_f64(a))
DVTI_REG1(pd, p_dtrunc, pd, vrndq_f64(a))
DVTI_REG2(pd, p_dzip_low, pd, pd, vzip1q_f64(a, b))
DVTI_REG2(pd, p_dzip_high, pd, pd, vzip2q_f64(a, b))
#else
#if defined(DVTI_PLAIN_FMA)
DVTI_PLAIN_EACH(pd, p_dfma, pd, pd, pd, 2, fma(a[k], b[k], c[k]))
DVTI_PLAIN_EACH(pd, p_dfnma, pd, pd, pd, 2, fma(-a[k], b[k], c[k]))
#else
DVTI_REG3(pd, p_dfma, pd, pd, pd, a *b + c)
DVTI_REG3(pd, p_dfnma, pd, pd, pd, c - a * b)
#endif
DVTI_PLAIN_EACH1(pd, p_dsqrt, 2, sqrt(a[k]))
DVTI_PLAIN_EACH1(pd, p_dround, 2, rint(a[k]))
DVTI_PLAIN_EACH1(pd, p_dfloor, 2, floor(a[k]))
DVTI_PLAIN_EACH1(pd, p_dceil, 2, ceil(a[k]))
DVTI_PLAIN_EACH1(pd, p_dtrunc, 2, trunc(a[k]))

DVTI_INLINE V(pd) V(p_dzip_low)(V(pd) a, V(pd) b) {
    V(pd) r = {a[0], b[0]};
    return r;
}

DVTI_INLINE V(pd) V(p_dzip_high)(V(pd) a, V(pd) b) {
    V(pd) r = {a[1], b[1]};
    return r;
}
#endif

DVTI_REG2(pf, p_unpack_low, pf, pf, V(p_zip_low)(a, b))
DVTI_REG2(pf, p_unpack_high, pf, pf, V(p_zip_high)(a, b))
DVTI_REG2(pd, p_dunpack_low, pd, pd, V(p_dzip_low)(a, b))
DVTI_REG2(pd, p_dunpack_high, pd, pd, V(p_dzip_high)(a, b))

/* int64 */
DVTI_PLAIN_SET(pl, p_lset, int64_t, x, x)
DVTI_PLAIN_LOAD(pl, p_lload, int64_t)
DVTI_REG2(pl, p_ladd, pl, pl, (V(pl))((V(pw))a + (V(pw))b))
DVTI_REG2(pl, p_lsub, pl, pl, (V(pl))((V(pw))a - (V(pw))b))
DVTI_REG2(pl, p_land, pl, pl, a &b)
DVTI_REG2(pl, p_lor, pl, pl, a | b)
DVTI_REG2(pl, p_lxor, pl, pl, a ^ b)
DVTI_REG1(pi, p_l_as_i, pl, (V(pi))a)

DVTI_INLINE V(pl) V(p_lmul)(V(pl) a, V(pl) b) {
#if defined(DVTI_NEON)
    return (V(pl))vmull_u32(vmovn_u64((uint64x2_t)a), vmovn_u64((uint64x2_t)b));
#else
    V(pl) r;
    int k;
    for (k = 0; k < 2; k++)
        r[k] = (int64_t)((uint64_t)(uint32_t)a[k] * (uint32_t)b[k]);
    return r;
#endif
}
DVTI_REG_SHIFT(pl, p_lshl, (V(pl))((V(pw))a << n))
DVTI_REG_SHIFT(pl, p_lshr, (V(pl))((V(pw))a >> n))

#undef DVTI_PLAIN_EACH
#undef DVTI_PLAIN_EACH1
#undef DVTI_PLAIN_SET
#undef DVTI_PLAIN_FIRST
#undef DVTI_PLAIN_LOAD
#undef DVTI_PLAIN_STORE
#undef DVTI_PLAIN_LOAD_N
#undef DVTI_PLAIN_STORE_N
