/* Ends the implementation: restores the compiler flags and macros that dvt_platform.h and later
   pragmas changed. */
#if DVTI_FAST_MATH
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#elif defined(_MSC_VER) && !defined(__clang__)
#pragma float_control(pop)
#endif
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma pop_macro("__FAST_MATH__")
#pragma pop_macro("__FINITE_MATH_ONLY__")
#pragma pop_macro("__NO_MATH_ERRNO__")
#pragma pop_macro("__NO_SIGNED_ZEROS__")
#pragma pop_macro("__NO_TRAPPING_MATH__")
#pragma pop_macro("__ASSOCIATIVE_MATH__")
#pragma pop_macro("__RECIPROCAL_MATH__")
#if !DVTI_OPTIMIZED && defined(__OPTIMIZE__)
#undef __OPTIMIZE__
#endif
#if DVTI_OPTIMIZED && !defined(__OPTIMIZE__)
#define __OPTIMIZE__ 1
#endif
#if !DVTI_OPTIMIZED_FOR_SIZE && defined(__OPTIMIZE_SIZE__)
#undef __OPTIMIZE_SIZE__
#endif
#if DVTI_OPTIMIZED_FOR_SIZE && !defined(__OPTIMIZE_SIZE__)
#define __OPTIMIZE_SIZE__ 1
#endif
#endif
#if defined(__clang__)
#pragma clang diagnostic pop
#endif
