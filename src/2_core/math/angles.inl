/* Sine, cosine and tangent; see basics.inl. Whoever pastes this has one word more:
     V(far_angles)(x, done, &r, &low, &quarters)   for lanes whose bit in `done` is 0 the three numbers of dvti_reduce_angle
   (quarter_turns.inl), where x is so large that the subtraction here would lose digits. */
#define DVTI_ANGLE_MOST 65536.f

/* x = n pi / 2 + r + low, |r| <= pi / 4 and a little; low is what r's rounding took away. pi / 2 stands in three parts. Below
   DVTI_ANGLE_MOST the first subtraction is exact. The second may cancel, so its rounding error is found whichever operand is larger
   (Knuth). */
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

DVTI_INLINE V(f) V(sin_poly)(V(f) r, V(f) low, V(f) z) {
    V(f) p = DVTI_P2(z, -0.166666538f, 0.00833210163f, -0.000195068467f);
    return V(add)(r, V(fma)(V(mul)(r, z), p, low));
}

/* 1 - z / 2, and what its rounding takes away, with the rest. */
DVTI_INLINE V(f) V(cos_poly)(V(f) r, V(f) low, V(f) z) {
    const V(f) one = V(set)(1), half = V(set)(0.5f);
    V(f) p = DVTI_P2(z, 0.0416666456f, -0.00138873013f, 2.44306702e-05f);
    V(f) high = V(fnma)(half, z, one), rest = V(fnma)(half, z, V(sub)(one, high));
    return V(add)(high, V(fma)(V(mul)(z, z), p, V(fnma)(r, low, rest)));
}

/* Sine of x plus `turn` quarter turns. */
DVTI_INLINE V(f) V(sin_turned)(V(f) x, int32_t turn) {
    V(f) low, r, z, s, c;
    V(i) n;
    V(m) even;
    r = V(angle_reduce)(x, &low, &n);
    n = V(iadd)(n, V(iset)(turn));
    z = V(mul)(r, r);
    s = V(sin_poly)(r, low, z);
    c = V(cos_poly)(r, low, z);
    even = V(ieq)(V(iand)(n, V(iset)(1)), V(iset)(0));
    s = V(select)(even, s, c);
    return V(bit_xor)(s, V(as_f)(V(ishl)(V(iand)(n, V(iset)(2)), 30)));
}

DVTI_INLINE V(f) V(sin)(V(f) x) {
    /* r + low of -0 would be +0 */
    return V(select)(V(eq)(x, V(zero)()), x, V(sin_turned)(x, 0));
}

DVTI_INLINE V(f) V(cos)(V(f) x) {
    return V(sin_turned)(x, 1);
}

/* sine / cosine, or minus its reciprocal */
DVTI_INLINE V(f) V(tan)(V(f) x) {
    V(f) low, r, z, s, c, sign;
    V(i) n;
    V(m) even;
    r = V(angle_reduce)(x, &low, &n);
    z = V(mul)(r, r);
    s = V(sin_poly)(r, low, z);
    c = V(cos_poly)(r, low, z);
    even = V(ieq)(V(iand)(n, V(iset)(1)), V(iset)(0));
    sign = V(as_f)(V(ishl)(n, 31));
    r = V(div)(V(select)(even, s, c), V(bit_xor)(sign, V(select)(even, c, s)));
    return V(select)(V(eq)(x, V(zero)()), x, r);
}

#undef DVTI_ANGLE_MOST
