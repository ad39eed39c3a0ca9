/* Sine, cosine and tangent; see basics.inl. The including file also defines V(far_angles)(x, done,
   &r, &low, &quarters). It sets the three results of dvti_reduce_angle (quarter_turns.inl) in lanes
   whose bit in `done` is 0. Those x are so large that the subtraction here would lose digits. */
#define DVTI_ANGLE_MOST 65536.f

/* Reduces x = n pi / 2 + r + low, |r| <= pi / 4 and slightly more; low is the rounding error of r.
   pi / 2 is the sum of three floats. Below DVTI_ANGLE_MOST the first subtraction is exact. The
   second may cancel, so its rounding error is computed for operands of any order (Knuth). */
DVTI_INLINE V(f) V(angle_reduce)(V(f) x, V(f) * low, V(i) * quarters) {
    const V(f) second = V(set)(-4.37113883e-8f), third = V(set)(-1.71512451e-15f);
    V(f) n = V(round)(V(mul)(x, V(set)(0.636619772f)));
    V(f) first = V(fnma)(n, V(set)(1.57079637f), x), w = V(mul)(n, second), r = V(sub)(first, w);
    V(f) back = V(sub)(r, first);
    uint32_t done = V(mbits)(V(le)(V(abs)(x), V(set)(DVTI_ANGLE_MOST)));
    *low = V(sub)(V(sub)(first, V(sub)(r, back)), V(add)(w, back));
    *low = V(fnma)(n, third, V(add)(*low, V(fnma)(n, second, w)));
    *quarters = V(to_i)(n);
    if (done != 0xffff)
        V(far_angles)(x, done, &r, low, quarters);
    return r;
}

/* Returns sin(r + low) - r. */
DVTI_INLINE V(f) V(sin_rest)(V(f) r, V(f) low, V(f) z) {
    V(f) p = DVTI_P2(z, -0.166666538f, 0.00833210163f, -0.000195068467f);
    return V(fma)(V(mul)(r, z), p, low);
}

/* Returns 1 - z / 2, and in `tail` the rest of the cosine: the rounding error and the
   polynomial. */
DVTI_INLINE V(f) V(cos_parts)(V(f) r, V(f) low, V(f) z, V(f) * tail) {
    const V(f) one = V(set)(1), half = V(set)(0.5f);
    V(f) p = DVTI_P2(z, 0.0416666456f, -0.00138873013f, 2.44306702e-05f);
    V(f) high = V(fnma)(half, z, one), rest = V(fnma)(half, z, V(sub)(one, high));
    *tail = V(fma)(V(mul)(z, z), p, V(fnma)(r, low, rest));
    return high;
}

/* Returns the sine of x plus `turn` quarter turns. */
DVTI_INLINE V(f) V(sin_quarter)(V(f) x, int32_t turn) {
    V(f) low, r, z, s, c, rest;
    V(i) n;
    V(m) even;
    r = V(angle_reduce)(x, &low, &n);
    n = V(iadd)(n, V(iset)(turn));
    z = V(mul)(r, r);
    c = V(cos_parts)(r, low, z, &rest);
    even = V(ieq)(V(iand)(n, V(iset)(1)), V(iset)(0));
    s = V(select)(even, V(add)(r, V(sin_rest)(r, low, z)), V(add)(c, rest));
    return V(bit_xor)(s, V(as_f)(V(ishl)(V(iand)(n, V(iset)(2)), 30)));
}

DVTI_INLINE V(f) V(sin)(V(f) x) {
    /* r + low of -0 would be +0 */
    return V(select)(V(eq)(x, V(zero)()), x, V(sin_quarter)(x, 0));
}

DVTI_INLINE V(f) V(cos)(V(f) x) {
    return V(sin_quarter)(x, 1);
}

/* Returns sine / cosine, or minus its reciprocal. Divides the larger terms, then adds the remainder
   of the division and the smaller terms. */
DVTI_INLINE V(f) V(tan)(V(f) x) {
    V(f) low, r, z, c, s_rest, c_rest, over, over_rest, under, under_rest, sum, inverse, q;
    V(i) n;
    V(m) even;
    r = V(angle_reduce)(x, &low, &n);
    z = V(mul)(r, r);
    s_rest = V(sin_rest)(r, low, z);
    c = V(cos_parts)(r, low, z, &c_rest);
    even = V(ieq)(V(iand)(n, V(iset)(1)), V(iset)(0));
    over = V(select)(even, r, c);
    over_rest = V(select)(even, s_rest, c_rest);
    under = V(select)(even, c, r);
    under_rest = V(select)(even, c_rest, s_rest);
    sum = V(add)(under, under_rest);
    under_rest = V(sub)(under_rest, V(sub)(sum, under));
    inverse = V(div)(V(set)(1), sum);
    q = V(mul)(over, inverse);
    over = V(fnma)(q, under_rest, V(add)(V(fnma)(q, sum, over), over_rest));
    q = V(bit_xor)(V(fma)(over, inverse, q), V(as_f)(V(ishl)(n, 31)));
    return V(select)(V(eq)(x, V(zero)()), x, q);
}

#undef DVTI_ANGLE_MOST
