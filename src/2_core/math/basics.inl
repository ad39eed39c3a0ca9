/* Common definitions of the float functions in this directory. They are written in SIMD primitives
   that the including file defines. On the CPU V(f) is a vector of 16 floats (3_cpu/simd/vec.inl
   describes the primitives), in CUDA one float (3_cuda/kernels/primitives.cu). Every step is one
   rounding that is written here, so all of them give the same bits.

   Coefficients come from tools/fit_math.py, lowest order first. tests/isa/math_rows.h has the
   largest error of each function against C's function of double, in units of the last place.
   tests/isa tries every 1021st input and the neighborhood of special ones, tests/long all 2^32.
   NaN, infinities, denormal numbers and -0 follow C's Annex F. */

/* Logarithms of 2 and to base 2. */
#define DVTI_LOG2E 1.44269504f
#define DVTI_LN2 0.693147181f
#define DVTI_LN2_HIGH 0.693145752f /* exact times an integer below 2^9 */
#define DVTI_LN2_LOW 1.42860677e-6f

/* Polynomials by Horner's rule, lowest order first. */
#define DVTI_P1(x, a, b) V(fma)(V(set)(b), x, V(set)(a))
#define DVTI_P2(x, a, b, c) V(fma)(DVTI_P1(x, b, c), x, V(set)(a))
#define DVTI_P3(x, a, b, c, d) V(fma)(DVTI_P2(x, b, c, d), x, V(set)(a))
#define DVTI_P4(x, a, b, c, d, e) V(fma)(DVTI_P3(x, b, c, d, e), x, V(set)(a))
#define DVTI_P5(x, a, b, c, d, e, f) V(fma)(DVTI_P4(x, b, c, d, e, f), x, V(set)(a))
#define DVTI_P6(x, a, b, c, d, e, f, g) V(fma)(DVTI_P5(x, b, c, d, e, f, g), x, V(set)(a))
#define DVTI_P7(x, a, b, c, d, e, f, g, h) V(fma)(DVTI_P6(x, b, c, d, e, f, g, h), x, V(set)(a))
#define DVTI_P8(x, a, b, c, d, e, f, g, h, i)                                                      \
    V(fma)(DVTI_P7(x, b, c, d, e, f, g, h, i), x, V(set)(a))

DVTI_INLINE V(f) V(sign_bit)(V(f) a) {
    return V(bit_and)(V(set)(-0.f), a);
}

/* Returns a clamped to low .. high. NaN passes: it is the second operand. */
DVTI_INLINE V(f) V(within)(V(f) a, float low, float high) {
    return V(min)(V(set)(high), V(max)(V(set)(low), a));
}
