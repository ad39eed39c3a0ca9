/* The ISA target of AVX2 with FMA and F16C. */
#include "3_cpu/simd/dvt_simd.h"
#if DVTI_AVX2
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,popcnt"))), apply_to = function)
#elif defined(__GNUC__)
/* GCC's headers leave registers uninitialized on purpose. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC push_options
#pragma GCC optimize("O2,fp-contract=off")
#pragma GCC target("avx2,fma,f16c,popcnt")
#endif
#define DVTI_TARGET avx2
#define DVTI_TARGET_NAME "avx2"
#define DVTI_TARGET_NUMBER DVTI_SIMD_AVX2
#include "3_cpu/simd/primitives_begin.inl"
#include "3_cpu/simd/register_avx2.inl"
#include "3_cpu/simd/isa_target.inl"

DVTI_FN const dvti_simd *dvti_simd_avx2(void) {
    return &V(table);
}

#include "3_cpu/simd/primitives_end.inl"
#if defined(__clang__)
#pragma clang attribute pop
#elif defined(__GNUC__)
#pragma GCC pop_options
#pragma GCC diagnostic pop
#endif
#endif
