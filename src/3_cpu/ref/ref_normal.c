/* Normal numbers of float32 for the reference, one pair at a time: the tiers' text (2_core/math/box_muller.inl) with the words of one
   float, so the tiers' bits. */
#include "1_base/dvt_fma.h"
#include "3_cpu/dvt_cpu.h"
#include "3_cpu/simd/dvt_simd.h"
#if defined(__GNUC__) && !defined(__clang__)
/* Where the machine can, GCC would fuse a multiplication with the addition behind it. */
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#endif
#define DVTI_TIER scalar
#include "3_cpu/simd/words_begin.inl"
#include "3_cpu/ref/scalar.inl"
#include "2_core/math/basics.inl"
#include "2_core/math/log.inl"
#include "2_core/math/box_muller.inl"

DVTI_FN void dvti_ref_normal_pair(uint32_t first, uint32_t second, const dvti_launch *launch,
                                  double out[2]) {
    const float mean = (float)launch->f[0], deviation = (float)launch->f[1];
    float even, odd;
    V(normal_pair)((int32_t)first, (int32_t)second, mean, deviation, &even, &odd);
    out[0] = (double)even;
    out[1] = (double)odd;
}

#include "3_cpu/simd/words_end.inl"
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
