/* Checks that the implementation leaves the compiler's macros of -ffast-math as they were. FAST
   tells whether they are set. */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"

#if FAST
#if !defined(__FAST_MATH__) || !defined(__NO_SIGNED_ZEROS__) || !defined(__ASSOCIATIVE_MATH__) ||  \
    !defined(__NO_TRAPPING_MATH__) || !defined(__RECIPROCAL_MATH__) ||                             \
    !defined(__NO_MATH_ERRNO__) || !__FINITE_MATH_ONLY__
#error "the implementation has removed a macro"
#endif
#elif defined(__FAST_MATH__) || defined(__NO_SIGNED_ZEROS__) || defined(__ASSOCIATIVE_MATH__) ||   \
    defined(__RECIPROCAL_MATH__) || __FINITE_MATH_ONLY__
#error "the implementation has added a macro"
#endif
