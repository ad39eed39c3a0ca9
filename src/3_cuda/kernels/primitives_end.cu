/* Undefines the macros of primitives.cu and basics.inl; the functions of 2_core/math/ between them
   remain. */
#undef V
#undef dvti_gpu_far_angles
#undef DVTI_INLINE
#undef DVTI_REPEAT
#undef FLT_MAX
#undef FLT_MIN
#undef INFINITY
#undef NAN
#undef DVTI_LOG2E
#undef DVTI_LN2
#undef DVTI_LN2_HIGH
#undef DVTI_LN2_LOW
