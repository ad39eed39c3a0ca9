/* Reduces angles for lanes where the subtraction of multiples of pi / 2 in sine, cosine and tangent
   would lose digits. All ISA targets call it. */
#include "3_cpu/simd/dvt_simd.h"
#if defined(__GNUC__) && !defined(__clang__)
/* On other processors than x86 GCC would fuse a multiplication with the next subtraction. */
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
