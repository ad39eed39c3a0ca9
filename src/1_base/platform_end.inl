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
