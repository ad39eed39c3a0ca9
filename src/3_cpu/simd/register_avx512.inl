/* SIMD primitives of one register: AVX-512, 16 floats or 8 doubles. register_plain.inl describes
   every primitive. */
#define DVTI_REGS 1
#define DVTI_REG_F 16 /* floats in a register */
#define DVTI_REG_D 8  /* doubles */
#define DVTI_HAS_SCALEF 1

typedef __m512 V(pf);
typedef __m512i V(pi);
typedef __m512d V(pd);
typedef __m512i V(pl);
typedef __mmask16 V(pm);
typedef __mmask8 V(pn);
typedef __mmask16 V(p_first_type);
typedef __mmask8 V(p_dfirst_type);

#define DVTI_MASK16(n) ((__mmask16)((n) >= 16 ? 0xffff : (n) <= 0 ? 0 : (1 << (n)) - 1))
#define DVTI_MASK8(n) ((__mmask8)((n) >= 8 ? 0xff : (n) <= 0 ? 0 : (1 << (n)) - 1))

/* float */
DVTI_REG_SET(pf, p_set, float, _mm512_set1_ps(x))
DVTI_REG_LOAD(pf, p_load, float, _mm512_loadu_ps(p))
DVTI_REG_STORE(pf, p_store, float, _mm512_storeu_ps(p, a))
DVTI_REG_STORE(pf, p_stream, float, _mm512_stream_ps(p, a))
DVTI_REG_LOAD_N(pf, p_load_n, float, _mm512_maskz_loadu_ps(DVTI_MASK16(n), p))
DVTI_REG_STORE_N(pf, p_store_n, float, _mm512_mask_storeu_ps(p, DVTI_MASK16(n), a))
DVTI_INLINE V(p_first_type) V(p_first)(int64_t n) {
    return DVTI_MASK16(n);
}

DVTI_INLINE V(pf) V(p_load_first)(const float *p, V(p_first_type) first) {
    return _mm512_maskz_loadu_ps(first, p);
}

DVTI_INLINE void V(p_store_first)(float *p, V(p_first_type) first, V(pf) a) {
    _mm512_mask_storeu_ps(p, first, a);
}

/* Half a register; p_half_first(n) takes n up to 8. */
typedef __m256 V(phf);
typedef __mmask8 V(p_half_first_type);
DVTI_REG_SET(phf, p_half_set, float, _mm256_set1_ps(x))
DVTI_REG1(phf, p_half_of, pf, _mm512_castps512_ps256(a))
DVTI_REG3(phf, p_half_fma, phf, phf, phf, _mm256_fmadd_ps(a, b, c))
DVTI_INLINE V(p_half_first_type) V(p_half_first)(int64_t n) {
    return DVTI_MASK8(n);
}

DVTI_INLINE V(phf) V(p_half_load_first)(const float *p, V(p_half_first_type) first) {
    return _mm256_maskz_loadu_ps(first, p);
}

DVTI_INLINE void V(p_half_store_first)(float *p, V(p_half_first_type) first, V(phf) a) {
    _mm256_mask_storeu_ps(p, first, a);
}

DVTI_REG2(pf, p_add, pf, pf, _mm512_add_ps(a, b))
DVTI_REG2(pf, p_sub, pf, pf, _mm512_sub_ps(a, b))
DVTI_REG2(pf, p_mul, pf, pf, _mm512_mul_ps(a, b))
DVTI_REG2(pf, p_div, pf, pf, _mm512_div_ps(a, b))
DVTI_REG2(pf, p_min, pf, pf, _mm512_min_ps(a, b))
DVTI_REG2(pf, p_max, pf, pf, _mm512_max_ps(a, b))
DVTI_REG3(pf, p_fma, pf, pf, pf, _mm512_fmadd_ps(a, b, c))
DVTI_REG3(pf, p_fnma, pf, pf, pf, _mm512_fnmadd_ps(a, b, c))
DVTI_REG1(pf, p_sqrt, pf, _mm512_sqrt_ps(a))
DVTI_REG1(pf, p_round, pf, _mm512_roundscale_ps(a, 8))
DVTI_REG1(pf, p_floor, pf, _mm512_roundscale_ps(a, 9))
DVTI_REG1(pf, p_ceil, pf, _mm512_roundscale_ps(a, 10))
DVTI_REG1(pf, p_trunc, pf, _mm512_roundscale_ps(a, 11))
DVTI_REG2(pf, p_scalef, pf, pf, _mm512_scalef_ps(a, b))
DVTI_REG2(pf, p_bit_and, pf, pf, _mm512_and_ps(a, b))
DVTI_REG2(pf, p_bit_or, pf, pf, _mm512_or_ps(a, b))
DVTI_REG2(pf, p_bit_xor, pf, pf, _mm512_xor_ps(a, b))
DVTI_REG2(pf, p_bit_andnot, pf, pf, _mm512_andnot_ps(a, b))

#define DVTI_PICK(...) _mm512_permutex2var_ps(a, _mm512_setr_epi32(__VA_ARGS__), b)
DVTI_REG2(pf, p_even, pf, pf,
           DVTI_PICK(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30))
DVTI_REG2(pf, p_odd, pf, pf,
           DVTI_PICK(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31))
#undef DVTI_PICK
DVTI_REG2(pm, p_lt, pf, pf, _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ))
DVTI_REG2(pm, p_le, pf, pf, _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ))
DVTI_REG2(pm, p_eq, pf, pf, _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ))
DVTI_REG2(pm, p_unord, pf, pf, _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q))
DVTI_REG3(pf, p_select, pm, pf, pf, _mm512_mask_blend_ps(a, c, b))
DVTI_REG1(pi, p_as_i, pf, _mm512_castps_si512(a))
DVTI_REG1(pi, p_to_i, pf, _mm512_cvtps_epi32(a))
DVTI_REG1(pd, p_widen_low, pf, _mm512_cvtps_pd(_mm512_castps512_ps256(a)))
DVTI_REG1(pd, p_widen_high, pf, _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1)))
DVTI_REG2(pf, p_narrow, pd, pd,
           _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(a)), _mm512_cvtpd_ps(b), 1))
DVTI_REG2(pf, p_zip_low, pf, pf,
           _mm512_permutex2var_ps(a,
                                  _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22,
                                                    7, 23),
                                  b))
DVTI_REG2(pf, p_zip_high, pf, pf,
           _mm512_permutex2var_ps(a,
                                  _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29,
                                                    14, 30, 15, 31),
                                  b))
DVTI_INLINE V(pf) V(p_load_quads)(const float *p, int64_t step) {
    const __m256 low = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)),
                                            _mm_loadu_ps(p + 4 * step), 1);
    const __m256 high = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p + 8 * step)),
                                             _mm_loadu_ps(p + 12 * step), 1);
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

DVTI_INLINE void V(p_store_quads)(float *p, int64_t step, V(pf) a) {
    _mm_storeu_ps(p, _mm512_castps512_ps128(a));
    _mm_storeu_ps(p + 4 * step, _mm512_extractf32x4_ps(a, 1));
    _mm_storeu_ps(p + 8 * step, _mm512_extractf32x4_ps(a, 2));
    _mm_storeu_ps(p + 12 * step, _mm512_extractf32x4_ps(a, 3));
}

DVTI_REG2(pf, p_unpack_low, pf, pf, _mm512_unpacklo_ps(a, b))
DVTI_REG2(pf, p_unpack_high, pf, pf, _mm512_unpackhi_ps(a, b))
DVTI_REG2(pf, p_even_parts, pf, pf, _mm512_shuffle_f32x4(a, b, 0x88))
DVTI_REG2(pf, p_odd_parts, pf, pf, _mm512_shuffle_f32x4(a, b, 0xdd))
DVTI_REG_LOAD(pf, p_load_f16, uint16_t, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)))
DVTI_REG_STORE(pf, p_store_f16, uint16_t,
                _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT)))
DVTI_REG_LOAD(pi, p_load_u16, uint16_t,
               _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)))
DVTI_REG_STORE(pi, p_store_u16, uint16_t,
                _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(a)))

/* int32 */
DVTI_REG_SET(pi, p_iset, int32_t, _mm512_set1_epi32(x))
DVTI_REG_LOAD(pi, p_iload, int32_t, _mm512_loadu_si512(p))
DVTI_REG_STORE(pi, p_istore, int32_t, _mm512_storeu_si512(p, a))
DVTI_REG_LOAD_N(pi, p_iload_n, int32_t, _mm512_maskz_loadu_epi32(DVTI_MASK16(n), p))
DVTI_REG_STORE_N(pi, p_istore_n, int32_t, _mm512_mask_storeu_epi32(p, DVTI_MASK16(n), a))
DVTI_REG2(pi, p_iadd, pi, pi, _mm512_add_epi32(a, b))
DVTI_REG2(pi, p_isub, pi, pi, _mm512_sub_epi32(a, b))
DVTI_REG2(pi, p_iand, pi, pi, _mm512_and_si512(a, b))
DVTI_REG2(pi, p_ior, pi, pi, _mm512_or_si512(a, b))
DVTI_REG2(pi, p_ixor, pi, pi, _mm512_xor_si512(a, b))
DVTI_REG2(pi, p_imin, pi, pi, _mm512_min_epi32(a, b))
DVTI_REG2(pi, p_imax, pi, pi, _mm512_max_epi32(a, b))
DVTI_INLINE V(pf) V(p_lookup)(const float *table, V(pi) at) {
    __m512 twice = _mm512_broadcast_f32x8(_mm256_loadu_ps(table));
    return _mm512_permutexvar_ps(at, twice);
}

DVTI_INLINE void V(p_store4)(int32_t *p, V(pi) a, V(pi) b, V(pi) c, V(pi) d) {
    V(pi) ab = _mm512_unpacklo_epi32(a, b), cd = _mm512_unpacklo_epi32(c, d);
    V(pi) AB = _mm512_unpackhi_epi32(a, b), CD = _mm512_unpackhi_epi32(c, d);
    _mm512_storeu_si512(p, _mm512_unpacklo_epi64(ab, cd));
    _mm512_storeu_si512(p + 16, _mm512_unpackhi_epi64(ab, cd));
    _mm512_storeu_si512(p + 32, _mm512_unpacklo_epi64(AB, CD));
    _mm512_storeu_si512(p + 48, _mm512_unpackhi_epi64(AB, CD));
}

#define DVTI_SPLIT_ORDERS 1
#define DVTI_SPLIT_SPACE 16
DVTI_INLINE void V(p_split_orders)(uint64_t *order) {
    (void)order;
}

/* Zen 4 takes 20 times as long to compress into memory. */
DVTI_INLINE int64_t V(p_split)(int32_t *low, int32_t *high, V(pi) a, V(pi) most,
                               const uint64_t *order) {
    const __mmask16 above = _mm512_cmpgt_epi32_mask(a, most);
    const int some = (int)_mm_popcnt_u32(above);
    (void)order;
    _mm512_storeu_si512((void *)low, _mm512_maskz_compress_epi32((__mmask16)~above, a));
    _mm512_mask_storeu_epi32((void *)(high - some), (__mmask16)((1u << some) - 1),
                             _mm512_maskz_compress_epi32(above, a));
    return 16 - some;
}
DVTI_REG_SHIFT(pi, p_ishl, _mm512_slli_epi32(a, (unsigned)n))
DVTI_REG_SHIFT(pi, p_ishr, _mm512_srli_epi32(a, (unsigned)n))
DVTI_REG_SHIFT(pi, p_isar, _mm512_srai_epi32(a, (unsigned)n))
DVTI_REG2(pm, p_ieq, pi, pi, _mm512_cmpeq_epi32_mask(a, b))
DVTI_REG2(pm, p_igt, pi, pi, _mm512_cmpgt_epi32_mask(a, b))
DVTI_REG3(pi, p_icount, pi, pi, pi,
           _mm512_mask_add_epi32(a, _mm512_cmpgt_epi32_mask(b, c), a, _mm512_set1_epi32(1)))
DVTI_REG3(pi, p_iselect, pm, pi, pi, _mm512_mask_blend_epi32(a, c, b))
DVTI_REG1(pf, p_as_f, pi, _mm512_castsi512_ps(a))
DVTI_REG1(pf, p_to_f, pi, _mm512_cvtepi32_ps(a))

/* masks of 32-bit lanes */
DVTI_REG2(pm, p_mand, pm, pm, (__mmask16)(a & b))
DVTI_REG2(pm, p_mor, pm, pm, (__mmask16)(a | b))
DVTI_REG1(pm, p_mnot, pm, (__mmask16)~a)
DVTI_REG_BITS(p_mbits, pm, (uint32_t)a)
DVTI_REG_STORE(pm, p_mstore, uint8_t,
                _mm_storeu_si128((__m128i *)p, _mm_maskz_set1_epi8(a, 1)))

/* double */
DVTI_REG_SET(pd, p_dset, double, _mm512_set1_pd(x))
DVTI_REG_LOAD(pd, p_dload, double, _mm512_loadu_pd(p))
/* Zen 4 converts twice 256 bits faster than one register. */
DVTI_REG_LOAD(pd, p_load_wide, float,
               _mm512_insertf64x4(_mm512_castpd256_pd512(_mm256_cvtps_pd(_mm_loadu_ps(p))),
                                  _mm256_cvtps_pd(_mm_loadu_ps(p + 4)), 1))
DVTI_REG_STORE(pd, p_dstore, double, _mm512_storeu_pd(p, a))
DVTI_REG_STORE(pd, p_dstream, double, _mm512_stream_pd(p, a))
DVTI_REG_LOAD_N(pd, p_dload_n, double, _mm512_maskz_loadu_pd(DVTI_MASK8(n), p))
DVTI_REG_STORE_N(pd, p_dstore_n, double, _mm512_mask_storeu_pd(p, DVTI_MASK8(n), a))
DVTI_INLINE V(p_dfirst_type) V(p_dfirst)(int64_t n) {
    return DVTI_MASK8(n);
}

DVTI_INLINE V(pd) V(p_dload_first)(const double *p, V(p_dfirst_type) first) {
    return _mm512_maskz_loadu_pd(first, p);
}

DVTI_INLINE void V(p_dstore_first)(double *p, V(p_dfirst_type) first, V(pd) a) {
    _mm512_mask_storeu_pd(p, first, a);
}

/* Half a register; p_dhalf_first(n) takes n up to 4. */
typedef __m256d V(phd);
typedef __mmask8 V(p_dhalf_first_type);
DVTI_REG_SET(phd, p_dhalf_set, double, _mm256_set1_pd(x))
DVTI_REG1(phd, p_dhalf_of, pd, _mm512_castpd512_pd256(a))
DVTI_REG3(phd, p_dhalf_fma, phd, phd, phd, _mm256_fmadd_pd(a, b, c))
DVTI_INLINE V(p_dhalf_first_type) V(p_dhalf_first)(int64_t n) {
    return DVTI_MASK8(n);
}

DVTI_INLINE V(phd) V(p_dhalf_load_first)(const double *p, V(p_dhalf_first_type) first) {
    return _mm256_maskz_loadu_pd(first, p);
}

DVTI_INLINE void V(p_dhalf_store_first)(double *p, V(p_dhalf_first_type) first, V(phd) a) {
    _mm256_mask_storeu_pd(p, first, a);
}

DVTI_REG2(pd, p_dadd, pd, pd, _mm512_add_pd(a, b))
DVTI_REG2(pd, p_dsub, pd, pd, _mm512_sub_pd(a, b))
DVTI_REG2(pd, p_dmul, pd, pd, _mm512_mul_pd(a, b))
DVTI_REG2(pd, p_ddiv, pd, pd, _mm512_div_pd(a, b))
DVTI_REG2(pd, p_dmin, pd, pd, _mm512_min_pd(a, b))
DVTI_REG2(pd, p_dmax, pd, pd, _mm512_max_pd(a, b))
DVTI_REG3(pd, p_dfma, pd, pd, pd, _mm512_fmadd_pd(a, b, c))
DVTI_REG3(pd, p_dfnma, pd, pd, pd, _mm512_fnmadd_pd(a, b, c))
DVTI_REG1(pd, p_dsqrt, pd, _mm512_sqrt_pd(a))
DVTI_REG1(pd, p_dround, pd, _mm512_roundscale_pd(a, 8))
DVTI_REG1(pd, p_dfloor, pd, _mm512_roundscale_pd(a, 9))
DVTI_REG1(pd, p_dceil, pd, _mm512_roundscale_pd(a, 10))
DVTI_REG1(pd, p_dtrunc, pd, _mm512_roundscale_pd(a, 11))
DVTI_REG2(pd, p_dscalef, pd, pd, _mm512_scalef_pd(a, b))
DVTI_REG2(pd, p_dand, pd, pd, _mm512_and_pd(a, b))
DVTI_REG2(pd, p_dor, pd, pd, _mm512_or_pd(a, b))
DVTI_REG2(pd, p_dxor, pd, pd, _mm512_xor_pd(a, b))
DVTI_REG2(pd, p_dandnot, pd, pd, _mm512_andnot_pd(a, b))
DVTI_REG2(pn, p_dlt, pd, pd, _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ))
DVTI_REG2(pn, p_dle, pd, pd, _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ))
DVTI_REG2(pn, p_deq, pd, pd, _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ))
DVTI_REG2(pn, p_dunord, pd, pd, _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q))
DVTI_REG3(pd, p_dselect, pn, pd, pd, _mm512_mask_blend_pd(a, c, b))
DVTI_REG2(pd, p_dzip_low, pd, pd,
           _mm512_permutex2var_pd(a, _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), b))
DVTI_REG2(pd, p_dzip_high, pd, pd,
           _mm512_permutex2var_pd(a, _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15), b))
DVTI_REG2(pd, p_dunpack_low, pd, pd, _mm512_unpacklo_pd(a, b))
DVTI_REG2(pd, p_dunpack_high, pd, pd, _mm512_unpackhi_pd(a, b))
DVTI_REG2(pd, p_deven_parts, pd, pd, _mm512_shuffle_f64x2(a, b, 0x88))
DVTI_REG2(pd, p_dodd_parts, pd, pd, _mm512_shuffle_f64x2(a, b, 0xdd))
DVTI_REG1(pl, p_as_l, pd, _mm512_castpd_si512(a))
DVTI_REG1(pd, p_as_d, pl, _mm512_castsi512_pd(a))

/* int64, and masks of 64-bit lanes */
DVTI_REG_SET(pl, p_lset, int64_t, _mm512_set1_epi64(x))
DVTI_REG_LOAD(pl, p_lload, int64_t, _mm512_loadu_si512(p))
DVTI_REG2(pl, p_ladd, pl, pl, _mm512_add_epi64(a, b))
DVTI_REG2(pl, p_lsub, pl, pl, _mm512_sub_epi64(a, b))
DVTI_REG2(pl, p_land, pl, pl, _mm512_and_si512(a, b))
DVTI_REG2(pl, p_lor, pl, pl, _mm512_or_si512(a, b))
DVTI_REG2(pl, p_lxor, pl, pl, _mm512_xor_si512(a, b))
DVTI_REG2(pl, p_lmul, pl, pl, _mm512_mul_epu32(a, b))
DVTI_REG1(pi, p_l_as_i, pl, a)
DVTI_REG_SHIFT(pl, p_lshl, _mm512_slli_epi64(a, (unsigned)n))
DVTI_REG_SHIFT(pl, p_lshr, _mm512_srli_epi64(a, (unsigned)n))
DVTI_REG2(pn, p_nand, pn, pn, (__mmask8)(a & b))
DVTI_REG2(pn, p_nor, pn, pn, (__mmask8)(a | b))
DVTI_REG1(pn, p_nnot, pn, (__mmask8)~a)
DVTI_REG_BITS(p_nbits, pn, (uint32_t)a)
DVTI_REG_STORE(pn, p_nstore, uint8_t, _mm_storel_epi64((__m128i *)p, _mm_maskz_set1_epi8(a, 1)))

#undef DVTI_MASK16
#undef DVTI_MASK8
