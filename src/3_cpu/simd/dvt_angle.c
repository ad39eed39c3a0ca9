/* What the ISA targets' sine, cosine and tangent call for lanes where the usual subtraction of multiples of pi / 2 loses digits. One function for
   all ISA targets. */
#include "3_cpu/simd/dvt_simd.h"
#if defined(__GNUC__) && !defined(__clang__)
/* Elsewhere than on x86 GCC would fuse a multiplication with the subtraction behind it. */
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#endif
#include "2_core/math/quarter_turns.inl"

DVTI_FN void dvti_reduce_angles(const float *x, uint32_t done, float *rest, float *low,
                                int32_t *quarters) {
    int k;
    for (k = 0; k < 16; k++)
        if (!(done >> k & 1))
            quarters[k] = dvti_reduce_angle(x[k], &rest[k], &low[k]);
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
