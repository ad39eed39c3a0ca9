/* The ISA target for every processor: NEON on 64-bit ARM, elsewhere the compiler's vectors of 16
   bytes. */
#include "3_cpu/simd/dvt_simd.h"
#if DVTI_PLAIN
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi" /* functions that take vectors are our own */
#pragma GCC push_options
#pragma GCC optimize("O2,fp-contract=off")
#endif
#if defined(DVTI_NEON)
#define DVTI_TARGET neon
#define DVTI_TARGET_NAME "neon"
#else
#define DVTI_TARGET plain
#define DVTI_TARGET_NAME "plain"
#if defined(FP_FAST_FMAF) || defined(DEVTENSOR_PLAIN_TARGET)
#define DVTI_PLAIN_FMA
#else
#define DVTI_NO_FMA
#endif
#endif
#define DVTI_TARGET_NUMBER DVTI_SIMD_PLAIN
#include "3_cpu/simd/primitives_begin.inl"
#include "3_cpu/simd/register_plain.inl"
#include "3_cpu/simd/isa_target.inl"

DVTI_FN const dvti_simd *dvti_simd_plain(void) {
    return &V(table);
}

#include "3_cpu/simd/primitives_end.inl"
#if defined(DVTI_PLAIN_FMA)
#undef DVTI_PLAIN_FMA
#endif
#if defined(DVTI_NO_FMA)
#undef DVTI_NO_FMA
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#pragma GCC diagnostic pop
#endif
#endif
