/* The matrix product kernels that dvt_simd_gemm.h describes, for float32 and float64. A tile of C
   stays in registers while k runs over the depth:

                            B  DVTI_TILE_REGS registers wide, one row of them per k
                           +-------+-------+-------+-------+
                           | row[0]| row[1]| row[2]| row[3]|
              A            +-------+-------+-------+-------+
            +-----+        +-------+-------+-------+-------+
     factor |  a  |        |  sum  |  sum  |  sum  |  sum  |
       per  |  a  |   C    |       |       |       |       |   sum[i][j] += factor * row[j]
       row  |  a  |        |       |       |       |       |
            +-----+        +-------+-------+-------+-------+
      DVTI_TILE_ROWS rows; narrower tiles have up to DVTI_TALL rows */
#if DVTI_REGS == 1
/* 32 registers, and masked loads cost nothing. DVTI_TALL: rows of tiles that are at most
   DVTI_TALL_REGS registers wide. */
#define DVTI_MASKED 1
#define DVTI_TILE_REGS 4
#define DVTI_TILE_ROWS 6
#define DVTI_TALL 12
#define DVTI_TALL_REGS 2
#define DVTI_DOTS_ROWS 4
#define DVTI_DOTS_COLS 5
#elif DVTI_REGS == 2
/* 16 registers */
#define DVTI_MASKED 0
#define DVTI_TILE_REGS 2
#define DVTI_TILE_ROWS 6
#define DVTI_TALL 8
#define DVTI_TALL_REGS 1
#define DVTI_DOTS_ROWS 2
#define DVTI_DOTS_COLS 5
#elif defined(DVTI_NEON)
#define DVTI_MASKED 0
#define DVTI_TILE_REGS 4
#define DVTI_TILE_ROWS 6
#define DVTI_TALL 12
#define DVTI_TALL_REGS 2
#define DVTI_DOTS_ROWS 3
#define DVTI_DOTS_COLS 2
#else
/* The number of registers is unknown: assume 16. */
#define DVTI_MASKED 0
#define DVTI_TILE_REGS 4
#define DVTI_TILE_ROWS 2
#define DVTI_TALL 2
#define DVTI_TALL_REGS 0
#define DVTI_DOTS_ROWS 1
#define DVTI_DOTS_COLS 2
#endif

/* Loads the vector at src + at, of which n lanes exist. */
DVTI_INLINE V(f) V(gemm_fetch)(const void *src, dvt_dtype dtype, int64_t at, int64_t n) {
    const float *single = (const float *)src + at;
    const uint16_t *half = (const uint16_t *)src + at;
    if (dtype == DVT_F32)
        return n >= 16 ? V(load)(single) : V(load_n)(single, n);
    if (dtype == DVT_F16)
        return n >= 16 ? V(load_f16)(half) : V(load_f16_n)(half, n);
    if (dtype == DVT_I8 || dtype == DVT_U8)
        return V(load_bytes_n)((const char *)src + at, dtype == DVT_I8, DVTI_MIN(n, 16));
    return n >= 16 ? V(load_bf16)(half) : V(load_bf16_n)(half, n);
}

DVTI_INLINE V(d) V(gemm_dfetch)(const void *src, dvt_dtype dtype, int64_t at, int64_t n) {
    const double *from = (const double *)src + at;
    (void)dtype;
    return n >= 8 ? V(dload)(from) : V(dload_n)(from, n);
}

#define DVTI_E float
#define DVTI_OWN DVT_F32
#define G(name) V(gemm_##name)
#define P(name) V(p_##name)
#define W(name) V(name)
#define DVTI_REGISTER V(pf)
#define DVTI_HALF V(phf)
#define DVTI_VECTOR V(f)
#define DVTI_LANES DVTI_REG_F
#include "3_cpu/simd/gemm_type.inl"
#undef DVTI_E
#undef DVTI_OWN
#undef G
#undef P
#undef W
#undef DVTI_REGISTER
#undef DVTI_HALF
#undef DVTI_VECTOR
#undef DVTI_LANES

#define DVTI_E double
#define DVTI_OWN DVT_F64
#define G(name) V(gemm_d##name)
#define P(name) V(p_d##name)
#define W(name) V(d##name)
#define DVTI_REGISTER V(pd)
#define DVTI_HALF V(phd)
#define DVTI_VECTOR V(d)
#define DVTI_LANES DVTI_REG_D
#include "3_cpu/simd/gemm_type.inl"
#undef DVTI_E
#undef DVTI_OWN
#undef G
#undef P
#undef W
#undef DVTI_REGISTER
#undef DVTI_HALF
#undef DVTI_VECTOR
#undef DVTI_LANES

enum {
    V(gemm_tile_rows) = DVTI_TILE_ROWS,
    V(gemm_panel_bytes) = DVTI_TILE_REGS * DVTI_REG_F * (int)sizeof(float)
};

#undef DVTI_MASKED
#undef DVTI_TILE_REGS
#undef DVTI_TILE_ROWS
#undef DVTI_TALL
#undef DVTI_TALL_REGS
#undef DVTI_DOTS_ROWS
#undef DVTI_DOTS_COLS
