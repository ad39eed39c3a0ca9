/* The end of the implementation: what dvt_platform.h changed where the program is compiled with
   -ffast-math. */
#if DVTI_FAST_MATH
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#elif defined(_MSC_VER) && !defined(__clang__)
#pragma float_control(pop)
#endif
#endif
