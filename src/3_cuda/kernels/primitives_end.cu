/* Behind the functions of 2_core/math/: takes away what primitives.cu has defined, and basics.inl, but the functions. */
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
