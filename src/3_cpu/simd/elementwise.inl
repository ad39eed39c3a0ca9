/* Elementwise operations of float32 and float64. Both include elementwise_type.inl. */

#define DVTI_E float
#define DVTI_VECTOR V(f)
#define DVTI_MASK V(m)
#define DVTI_LARGEST FLT_MAX
#define W(name) V(name)
#define DVTI_MASK_AND V(mand)
#define DVTI_MASK_OR V(mor)
#define DVTI_MASK_STORE V(mstore)
#include "3_cpu/simd/elementwise_type.inl"
#undef DVTI_E
#undef DVTI_VECTOR
#undef DVTI_MASK
#undef DVTI_LARGEST
#undef W
#undef DVTI_MASK_AND
#undef DVTI_MASK_OR
#undef DVTI_MASK_STORE

#define DVTI_E double
#define DVTI_VECTOR V(d)
#define DVTI_MASK V(n)
#define DVTI_LARGEST DBL_MAX
#define W(name) V(d##name)
#define DVTI_MASK_AND V(nand)
#define DVTI_MASK_OR V(nor)
#define DVTI_MASK_STORE V(nstore)
#include "3_cpu/simd/elementwise_type.inl"
#undef DVTI_E
#undef DVTI_VECTOR
#undef DVTI_MASK
#undef DVTI_LARGEST
#undef W
#undef DVTI_MASK_AND
#undef DVTI_MASK_OR
#undef DVTI_MASK_STORE
