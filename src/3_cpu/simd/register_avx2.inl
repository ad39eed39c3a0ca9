/* SIMD primitives of one register: AVX2 with FMA, 8 floats or 4 doubles. register_plain.inl
   describes every primitive. */
#define DVTI_REGS 2
#define DVTI_REG_F 8 /* floats in a register */
#define DVTI_REG_D 4 /* doubles */

typedef __m256 V(pf);
typedef __m256i V(pi);
typedef __m256d V(pd);
typedef __m256i V(pl);
typedef __m256 V(pm);
typedef __m256d V(pn);
typedef __m256i V(p_first_type);
typedef __m256i V(p_dfirst_type);

/* Returns all ones in the first n lanes. */
DVTI_INLINE __m256i V(p_lanes)(int64_t n) {
    int count = (int)(n < 0 ? 0 : n > 8 ? 8 : n);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

DVTI_INLINE __m256i V(p_wide_lanes)(int64_t n) {
    int count = (int)(n < 0 ? 0 : n > 4 ? 4 : n);
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
}

/* Returns the low 16 bits of every lane. */
DVTI_INLINE __m128i V(p_low_16)(__m256i a) {
    __m256i low = _mm256_and_si256(a, _mm256_set1_epi32(0xffff));
    __m256i pairs = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 8);
    return _mm256_castsi256_si128(pairs);
}

/* float */
DVTI_REG_SET(pf, p_set, float, _mm256_set1_ps(x))
DVTI_REG_LOAD(pf, p_load, float, _mm256_loadu_ps(p))
DVTI_REG_STORE(pf, p_store, float, _mm256_storeu_ps(p, a))
DVTI_REG_STORE(pf, p_stream, float, _mm256_stream_ps(p, a))
DVTI_REG_LOAD_N(pf, p_load_n, float, _mm256_maskload_ps(p, V(p_lanes)(n)))
/* AMD processors take 20 and more cycles for a masked store. */
DVTI_REG_STORE_N(pf, p_store_n, float, {
    if (n >= 8)
        _mm256_storeu_ps(p, a);
    else if (n > 0)
        _mm256_maskstore_ps(p, V(p_lanes)(n), a);
})
DVTI_INLINE V(p_first_type) V(p_first)(int64_t n) {
    return V(p_lanes)(n);
}

DVTI_INLINE V(pf) V(p_load_first)(const float *p, V(p_first_type) first) {
    return _mm256_maskload_ps(p, first);
}

DVTI_INLINE void V(p_store_first)(float *p, V(p_first_type) first, V(pf) a) {
    _mm256_maskstore_ps(p, first, a);
}

DVTI_REG2(pf, p_add, pf, pf, _mm256_add_ps(a, b))
DVTI_REG2(pf, p_sub, pf, pf, _mm256_sub_ps(a, b))
DVTI_REG2(pf, p_mul, pf, pf, _mm256_mul_ps(a, b))
DVTI_REG2(pf, p_div, pf, pf, _mm256_div_ps(a, b))
DVTI_REG2(pf, p_min, pf, pf, _mm256_min_ps(a, b))
DVTI_REG2(pf, p_max, pf, pf, _mm256_max_ps(a, b))
DVTI_REG3(pf, p_fma, pf, pf, pf, _mm256_fmadd_ps(a, b, c))
DVTI_REG3(pf, p_fnma, pf, pf, pf, _mm256_fnmadd_ps(a, b, c))
DVTI_REG1(pf, p_sqrt, pf, _mm256_sqrt_ps(a))
DVTI_REG1(pf, p_round, pf, _mm256_round_ps(a, 8))
DVTI_REG1(pf, p_floor, pf, _mm256_round_ps(a, 9))
DVTI_REG1(pf, p_ceil, pf, _mm256_round_ps(a, 10))
DVTI_REG1(pf, p_trunc, pf, _mm256_round_ps(a, 11))
DVTI_REG2(pf, p_bit_and, pf, pf, _mm256_and_ps(a, b))
DVTI_REG2(pf, p_bit_or, pf, pf, _mm256_or_ps(a, b))
DVTI_REG2(pf, p_bit_xor, pf, pf, _mm256_xor_ps(a, b))
DVTI_REG2(pf, p_bit_andnot, pf, pf, _mm256_andnot_ps(a, b))
/* A shuffle works within 128 bits; the permutation then restores the order of the quarters. */
#define DVTI_PICK(lanes)                                                                           \
    _mm256_castpd_ps(                                                                              \
        _mm256_permute4x64_pd(_mm256_castps_pd(_mm256_shuffle_ps(a, b, lanes)), 0xd8))
DVTI_REG2(pf, p_even, pf, pf, DVTI_PICK(0x88))
DVTI_REG2(pf, p_odd, pf, pf, DVTI_PICK(0xdd))
#undef DVTI_PICK
DVTI_REG2(pm, p_lt, pf, pf, _mm256_cmp_ps(a, b, _CMP_LT_OQ))
DVTI_REG2(pm, p_le, pf, pf, _mm256_cmp_ps(a, b, _CMP_LE_OQ))
DVTI_REG2(pm, p_eq, pf, pf, _mm256_cmp_ps(a, b, _CMP_EQ_OQ))
DVTI_REG2(pm, p_unord, pf, pf, _mm256_cmp_ps(a, b, _CMP_UNORD_Q))
DVTI_REG3(pf, p_select, pm, pf, pf, _mm256_blendv_ps(c, b, a))
DVTI_REG1(pi, p_as_i, pf, _mm256_castps_si256(a))
DVTI_REG1(pi, p_to_i, pf, _mm256_cvtps_epi32(a))
DVTI_REG1(pd, p_widen_low, pf, _mm256_cvtps_pd(_mm256_castps256_ps128(a)))
DVTI_REG1(pd, p_widen_high, pf, _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1)))
DVTI_REG2(pf, p_narrow, pd, pd,
           _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(a)), _mm256_cvtpd_ps(b), 1))
DVTI_REG2(pf, p_zip_low, pf, pf,
           _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x20))
DVTI_REG2(pf, p_zip_high, pf, pf,
           _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x31))
DVTI_INLINE V(pf) V(p_load_quads)(const float *p, int64_t step) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + 4 * step),
                                1);
}

DVTI_INLINE void V(p_store_quads)(float *p, int64_t step, V(pf) a) {
    _mm_storeu_ps(p, _mm256_castps256_ps128(a));
    _mm_storeu_ps(p + 4 * step, _mm256_extractf128_ps(a, 1));
}

DVTI_REG2(pf, p_unpack_low, pf, pf, _mm256_unpacklo_ps(a, b))
DVTI_REG2(pf, p_unpack_high, pf, pf, _mm256_unpackhi_ps(a, b))
DVTI_REG2(pf, p_even_parts, pf, pf, _mm256_permute2f128_ps(a, b, 0x20))
DVTI_REG2(pf, p_odd_parts, pf, pf, _mm256_permute2f128_ps(a, b, 0x31))
DVTI_REG_LOAD(pf, p_load_f16, uint16_t, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)))
DVTI_REG_STORE(pf, p_store_f16, uint16_t,
                _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT)))
DVTI_REG_LOAD(pi, p_load_u16, uint16_t,
               _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)))
DVTI_REG_STORE(pi, p_store_u16, uint16_t,
                _mm_storeu_si128((__m128i *)p, V(p_low_16)(a)))

/* int32 */
DVTI_REG_SET(pi, p_iset, int32_t, _mm256_set1_epi32(x))
DVTI_REG_LOAD(pi, p_iload, int32_t, _mm256_loadu_si256((const __m256i *)p))
DVTI_REG_STORE(pi, p_istore, int32_t, _mm256_storeu_si256((__m256i *)p, a))
DVTI_REG_LOAD_N(pi, p_iload_n, int32_t, _mm256_maskload_epi32(p, V(p_lanes)(n)))
DVTI_REG_STORE_N(pi, p_istore_n, int32_t, _mm256_maskstore_epi32(p, V(p_lanes)(n), a))
DVTI_REG2(pi, p_iadd, pi, pi, _mm256_add_epi32(a, b))
DVTI_REG2(pi, p_isub, pi, pi, _mm256_sub_epi32(a, b))
DVTI_REG2(pi, p_iand, pi, pi, _mm256_and_si256(a, b))
DVTI_REG2(pi, p_ior, pi, pi, _mm256_or_si256(a, b))
DVTI_REG2(pi, p_ixor, pi, pi, _mm256_xor_si256(a, b))
DVTI_REG2(pi, p_imin, pi, pi, _mm256_min_epi32(a, b))
DVTI_REG2(pi, p_imax, pi, pi, _mm256_max_epi32(a, b))
/* Both registers permute one loaded row. GCC would permute memory twice; by llvm-mca that takes
   twice the time on Zen 3. */
DVTI_INLINE V(pf) V(p_lookup)(const float *table, V(pi) at) {
    __m256 row = _mm256_loadu_ps(table);
#if defined(__GNUC__)
    __asm__("" : "+x"(row));
#endif
    return _mm256_permutevar8x32_ps(row, at);
}

DVTI_INLINE void V(p_store4)(int32_t *p, V(pi) a, V(pi) b, V(pi) c, V(pi) d) {
    V(pi) ab = _mm256_unpacklo_epi32(a, b), cd = _mm256_unpacklo_epi32(c, d);
    V(pi) AB = _mm256_unpackhi_epi32(a, b), CD = _mm256_unpackhi_epi32(c, d);
    _mm256_storeu_si256((__m256i *)p, _mm256_unpacklo_epi64(ab, cd));
    _mm256_storeu_si256((__m256i *)(p + 8), _mm256_unpackhi_epi64(ab, cd));
    _mm256_storeu_si256((__m256i *)(p + 16), _mm256_unpacklo_epi64(AB, CD));
    _mm256_storeu_si256((__m256i *)(p + 24), _mm256_unpackhi_epi64(AB, CD));
}

/* Byte k of order[m]: the lane that comes to place k; lanes whose bit in m is set come last. */
#define DVTI_SPLIT_ORDERS 256
#define DVTI_SPLIT_SPACE 16
DVTI_INLINE void V(p_split_orders)(uint64_t *order) {
    int m, k;
    for (m = 0; m < 256; m++) {
        int last = 8 - (int)_mm_popcnt_u32((unsigned)m), seen = 0;
        order[m] = 0;
        for (k = 0; k < 8; k++) {
            const int bit = m >> k & 1;
            order[m] |= (uint64_t)k << 8 * (bit ? last + seen : k - seen);
            seen += bit;
        }
    }
}

DVTI_INLINE int64_t V(p_split)(int32_t *low, int32_t *high, V(pi) a, V(pi) most,
                               const uint64_t *order) {
    const int m = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(a, most)));
    const __m256i lanes = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(order + m)));
    const __m256i v = _mm256_permutevar8x32_epi32(a, lanes);
    _mm256_storeu_si256((__m256i *)low, v);
    _mm256_storeu_si256((__m256i *)(high - 8), v);
    return 8 - (int64_t)_mm_popcnt_u32((unsigned)m);
}
DVTI_REG_SHIFT(pi, p_ishl, _mm256_slli_epi32(a, (unsigned)n))
DVTI_REG_SHIFT(pi, p_ishr, _mm256_srli_epi32(a, (unsigned)n))
DVTI_REG_SHIFT(pi, p_isar, _mm256_srai_epi32(a, (unsigned)n))
DVTI_REG2(pm, p_ieq, pi, pi, _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b)))
DVTI_REG2(pm, p_igt, pi, pi, _mm256_castsi256_ps(_mm256_cmpgt_epi32(a, b)))
DVTI_REG3(pi, p_icount, pi, pi, pi, _mm256_sub_epi32(a, _mm256_cmpgt_epi32(b, c)))
/* GCC 12 with -funsigned-char takes every byte of a byte blend from c (PR 110108). */
DVTI_REG3(pi, p_iselect, pm, pi, pi,
           _mm256_castps_si256(
               _mm256_blendv_ps(_mm256_castsi256_ps(c), _mm256_castsi256_ps(b), a)))
DVTI_REG1(pf, p_as_f, pi, _mm256_castsi256_ps(a))
DVTI_REG1(pf, p_to_f, pi, _mm256_cvtepi32_ps(a))

/* masks of 32-bit lanes */
DVTI_REG2(pm, p_mand, pm, pm, _mm256_and_ps(a, b))
DVTI_REG2(pm, p_mor, pm, pm, _mm256_or_ps(a, b))
DVTI_REG1(pm, p_mnot, pm, _mm256_xor_ps(a, _mm256_castsi256_ps(_mm256_set1_epi32(-1))))
DVTI_REG_BITS(p_mbits, pm, (uint32_t)_mm256_movemask_ps(a))
DVTI_INLINE void V(p_mstore)(uint8_t *p, V(pm) a) {
    const __m128i low = _mm_castps_si128(_mm256_castps256_ps128(a));
    const __m128i high = _mm_castps_si128(_mm256_extractf128_ps(a, 1));
    const __m128i pairs = _mm_packs_epi32(low, high);
    _mm_storel_epi64((__m128i *)p, _mm_and_si128(_mm_packs_epi16(pairs, pairs), _mm_set1_epi8(1)));
}

/* double */
DVTI_REG_SET(pd, p_dset, double, _mm256_set1_pd(x))
DVTI_REG_LOAD(pd, p_dload, double, _mm256_loadu_pd(p))
DVTI_REG_LOAD(pd, p_load_wide, float, _mm256_cvtps_pd(_mm_loadu_ps(p)))
DVTI_REG_STORE(pd, p_dstore, double, _mm256_storeu_pd(p, a))
DVTI_REG_STORE(pd, p_dstream, double, _mm256_stream_pd(p, a))
DVTI_REG_LOAD_N(pd, p_dload_n, double, _mm256_maskload_pd(p, V(p_wide_lanes)(n)))
DVTI_REG_STORE_N(pd, p_dstore_n, double, _mm256_maskstore_pd(p, V(p_wide_lanes)(n), a))
DVTI_INLINE V(p_dfirst_type) V(p_dfirst)(int64_t n) {
    return V(p_wide_lanes)(n);
}

DVTI_INLINE V(pd) V(p_dload_first)(const double *p, V(p_dfirst_type) first) {
    return _mm256_maskload_pd(p, first);
}

DVTI_INLINE void V(p_dstore_first)(double *p, V(p_dfirst_type) first, V(pd) a) {
    _mm256_maskstore_pd(p, first, a);
}

DVTI_REG2(pd, p_dadd, pd, pd, _mm256_add_pd(a, b))
DVTI_REG2(pd, p_dsub, pd, pd, _mm256_sub_pd(a, b))
DVTI_REG2(pd, p_dmul, pd, pd, _mm256_mul_pd(a, b))
DVTI_REG2(pd, p_ddiv, pd, pd, _mm256_div_pd(a, b))
DVTI_REG2(pd, p_dmin, pd, pd, _mm256_min_pd(a, b))
DVTI_REG2(pd, p_dmax, pd, pd, _mm256_max_pd(a, b))
DVTI_REG3(pd, p_dfma, pd, pd, pd, _mm256_fmadd_pd(a, b, c))
DVTI_REG3(pd, p_dfnma, pd, pd, pd, _mm256_fnmadd_pd(a, b, c))
DVTI_REG1(pd, p_dsqrt, pd, _mm256_sqrt_pd(a))
DVTI_REG1(pd, p_dround, pd, _mm256_round_pd(a, 8))
DVTI_REG1(pd, p_dfloor, pd, _mm256_round_pd(a, 9))
DVTI_REG1(pd, p_dceil, pd, _mm256_round_pd(a, 10))
DVTI_REG1(pd, p_dtrunc, pd, _mm256_round_pd(a, 11))
DVTI_REG2(pd, p_dand, pd, pd, _mm256_and_pd(a, b))
DVTI_REG2(pd, p_dor, pd, pd, _mm256_or_pd(a, b))
DVTI_REG2(pd, p_dxor, pd, pd, _mm256_xor_pd(a, b))
DVTI_REG2(pd, p_dandnot, pd, pd, _mm256_andnot_pd(a, b))
DVTI_REG2(pn, p_dlt, pd, pd, _mm256_cmp_pd(a, b, _CMP_LT_OQ))
DVTI_REG2(pn, p_dle, pd, pd, _mm256_cmp_pd(a, b, _CMP_LE_OQ))
DVTI_REG2(pn, p_deq, pd, pd, _mm256_cmp_pd(a, b, _CMP_EQ_OQ))
DVTI_REG2(pn, p_dunord, pd, pd, _mm256_cmp_pd(a, b, _CMP_UNORD_Q))
DVTI_REG3(pd, p_dselect, pn, pd, pd, _mm256_blendv_pd(c, b, a))
DVTI_REG2(pd, p_dzip_low, pd, pd,
           _mm256_permute2f128_pd(_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b), 0x20))
DVTI_REG2(pd, p_dzip_high, pd, pd,
           _mm256_permute2f128_pd(_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b), 0x31))
DVTI_REG2(pd, p_dunpack_low, pd, pd, _mm256_unpacklo_pd(a, b))
DVTI_REG2(pd, p_dunpack_high, pd, pd, _mm256_unpackhi_pd(a, b))
DVTI_REG2(pd, p_deven_parts, pd, pd, _mm256_permute2f128_pd(a, b, 0x20))
DVTI_REG2(pd, p_dodd_parts, pd, pd, _mm256_permute2f128_pd(a, b, 0x31))
DVTI_REG1(pl, p_as_l, pd, _mm256_castpd_si256(a))
DVTI_REG1(pd, p_as_d, pl, _mm256_castsi256_pd(a))

/* int64, and masks of 64-bit lanes */
DVTI_REG_SET(pl, p_lset, int64_t, _mm256_set1_epi64x(x))
DVTI_REG_LOAD(pl, p_lload, int64_t, _mm256_loadu_si256((const __m256i *)p))
DVTI_REG2(pl, p_ladd, pl, pl, _mm256_add_epi64(a, b))
DVTI_REG2(pl, p_lsub, pl, pl, _mm256_sub_epi64(a, b))
DVTI_REG2(pl, p_land, pl, pl, _mm256_and_si256(a, b))
DVTI_REG2(pl, p_lor, pl, pl, _mm256_or_si256(a, b))
DVTI_REG2(pl, p_lxor, pl, pl, _mm256_xor_si256(a, b))
DVTI_REG2(pl, p_lmul, pl, pl, _mm256_mul_epu32(a, b))
DVTI_REG1(pi, p_l_as_i, pl, a)
DVTI_REG_SHIFT(pl, p_lshl, _mm256_slli_epi64(a, (unsigned)n))
DVTI_REG_SHIFT(pl, p_lshr, _mm256_srli_epi64(a, (unsigned)n))
DVTI_REG2(pn, p_nand, pn, pn, _mm256_and_pd(a, b))
DVTI_REG2(pn, p_nor, pn, pn, _mm256_or_pd(a, b))
DVTI_REG1(pn, p_nnot, pn, _mm256_xor_pd(a, _mm256_castsi256_pd(_mm256_set1_epi32(-1))))
DVTI_REG_BITS(p_nbits, pn, (uint32_t)_mm256_movemask_pd(a))
DVTI_INLINE void V(p_nstore)(uint8_t *p, V(pn) a) {
    const __m128i fours = _mm_castps_si128(
        _mm_shuffle_ps(_mm_castpd_ps(_mm256_castpd256_pd128(a)),
                       _mm_castpd_ps(_mm256_extractf128_pd(a, 1)), 0x88));
    const __m128i pairs = _mm_packs_epi32(fours, fours);
    const int four =
        _mm_cvtsi128_si32(_mm_and_si128(_mm_packs_epi16(pairs, pairs), _mm_set1_epi8(1)));
    memcpy(p, &four, 4);
}
