/* Powers and hypotenuses, computed in doubles. Needs log.inl; see basics.inl. */

#define DVTI_WIDE_STEP(p, x, c) V(dfma)(p, x, V(dset)(c))

/* Returns log2(a) of positive normal doubles to 2^-37, which 2^128 needs for a correct last
   place. */
DVTI_INLINE V(d) V(wide_log2)(V(d) a) {
    const V(l) root = V(lset)(0x3fe6a09e667f3bcd), digits = V(lset)(0xfffffffffffff);
    const V(d) big = V(dset)(4503599627370496. + 1023); /* 2^52 + 1023 */
    V(l) t = V(ladd)(V(as_l)(a), V(lsub)(V(lset)(0x3ff0000000000000), root));
    V(d) n = V(dsub)(V(as_d)(V(lor)(V(lshr)(t, 52), V(lset)(0x4330000000000000))), big);
    V(d) f = V(dsub)(V(as_d)(V(ladd)(V(land)(t, digits), root)), V(dset)(1)), p;
    V(d) z = V(dmul)(f, f), even, odd;
    odd = DVTI_WIDE_STEP(V(dset)(-0.069740655405949453), z, -0.13462915875723169);
    odd = DVTI_WIDE_STEP(odd, z, -0.14249861609583486);
    odd = DVTI_WIDE_STEP(odd, z, -0.180436753944068);
    odd = DVTI_WIDE_STEP(odd, z, -0.24044643343397709);
    odd = DVTI_WIDE_STEP(odd, z, -0.36067379313991749);
    odd = DVTI_WIDE_STEP(odd, z, -0.72134752032752891);
    even = DVTI_WIDE_STEP(V(dset)(0.13251321111863187), z, 0.13027532333502115);
    even = DVTI_WIDE_STEP(even, z, 0.16021669427162799);
    even = DVTI_WIDE_STEP(even, z, 0.20610712189675004);
    even = DVTI_WIDE_STEP(even, z, 0.28853879575135533);
    even = DVTI_WIDE_STEP(even, z, 0.48089834880271937);
    even = DVTI_WIDE_STEP(even, z, 1.4426950408865746);
    p = V(dfma)(odd, f, even);
    return V(dfma)(p, f, n);
}

/* Returns 2^y, clamped to 2^-200 .. 2^200. */
DVTI_INLINE V(d) V(wide_exp2)(V(d) y) {
    V(d) n, r, z, even, odd;
    y = V(dmin)(V(dset)(200), V(dmax)(V(dset)(-200), y));
    n = V(dround)(y);
    r = V(dsub)(y, n);
    z = V(dmul)(r, r);
    odd = DVTI_WIDE_STEP(V(dset)(1.5201899288727922e-05), z, 0.0013333922624769951);
    odd = DVTI_WIDE_STEP(odd, z, 0.055504103534242004);
    odd = DVTI_WIDE_STEP(odd, z, 0.69314718072843695);
    even = DVTI_WIDE_STEP(V(dset)(0.00015469289891380882), z, 0.0096180272575313065);
    even = DVTI_WIDE_STEP(even, z, 0.24022651198130499);
    even = DVTI_WIDE_STEP(even, z, 0.99999999996168321);
    return V(dscalef)(V(dfma)(odd, r, even), n);
}

/* Returns the result that C's Annex F specifies for special arguments, else `result` with its
   sign. */
DVTI_INLINE V(f) V(pow_special)(V(f) a, V(f) b, V(f) result) {
    const V(f) one = V(set)(1), none = V(zero)(), most = V(set)(INFINITY);
    V(f) size = V(abs)(a), half = V(mul)(V(set)(0.5f), b), sign;
    V(m) down = V(lt)(b, none), whole = V(eq)(V(trunc)(b), b);
    V(m) odd = V(mand)(whole, V(ne)(V(trunc)(half), half));
    result = V(select)(V(eq)(size, none), V(select)(down, most, none), result);
    result = V(select)(V(eq)(size, most), V(select)(down, none, most), result);
    result = V(select)(V(eq)(size, one), one, result);
    sign = V(select)(odd, V(sign_bit)(a), none);
    result = V(bit_or)(sign, result);
    result = V(select)(V(mand)(V(lt)(a, none), V(mand)(V(lt)(size, most), V(mnot)(whole))),
                       V(set)(NAN), result);
    result = V(select)(V(unord)(a, b), V(set)(NAN), result);
    return V(select)(V(mor)(V(eq)(b, none), V(eq)(a, one)), one, result);
}

DVTI_INLINE V(f) V(pow_by_log)(V(f) a, V(f) b) {
    V(f) size = V(abs)(a), r;
    V(d) low = V(dmul)(V(widen_low)(b), V(wide_log2)(V(widen_low)(size)));
    V(d) high = V(dmul)(V(widen_high)(b), V(wide_log2)(V(widen_high)(size)));
    r = V(narrow)(V(wide_exp2)(low), V(wide_exp2)(high));
    if (V(log_rare)(a) || V(mbits)(V(le)(V(abs)(b), V(set)(FLT_MAX))) != 0xffff)
        r = V(pow_special)(a, b, r);
    return r;
}

/* Returns a^0.5. Annex F distinguishes it from the square root: 0 for -0, infinity for
   -infinity. */
DVTI_INLINE V(f) V(pow_half)(V(f) a) {
    V(m) lowest = V(eq)(a, V(set)(-INFINITY));
    return V(sqrt)(V(select)(lowest, V(set)(INFINITY), V(add)(a, V(zero)())));
}

/* Returns a^3, rounded once except for one in 2^24. Adds the rounding error of the square, unless
   the cube is infinite: then that error times a may be infinite with the other sign. */
DVTI_INLINE V(f) V(pow_cube)(V(f) a) {
    V(m) finite = V(le)(V(abs)(a), V(set)(8796093022208.f)); /* 2^43 */
    V(f) b = V(select)(finite, a, V(zero)()), rest = V(fma)(b, b, V(neg)(V(mul)(b, b)));
    return V(fma)(V(mul)(a, a), a, V(mul)(rest, b));
}

/* Returns lanes whose exponents need no logarithm. If all elements have one of them, computing that
   formula alone is enough. */
DVTI_INLINE V(m) V(pow_is_simple)(V(f) b) {
    V(m) r = V(mor)(V(eq)(b, V(set)(-1)), V(eq)(b, V(zero)()));
    r = V(mor)(r, V(mor)(V(eq)(b, V(set)(0.5f)), V(eq)(b, V(set)(1))));
    return V(mor)(r, V(mor)(V(eq)(b, V(set)(2)), V(eq)(b, V(set)(3))));
}

DVTI_INLINE V(f) V(pow_simple)(V(f) a, V(f) b) {
    const V(f) one = V(set)(1);
    V(m) half = V(eq)(b, V(set)(0.5f)), inverse = V(eq)(b, V(set)(-1));
    V(f) r = V(select)(V(eq)(b, V(zero)()), one, a);
    r = V(select)(inverse, V(div)(one, V(select)(inverse, a, one)), r); /* other lanes raise no
                                                                           exceptions */
    r = V(select)(half, V(pow_half)(V(select)(half, a, one)), r);
    r = V(select)(V(eq)(b, V(set)(2)), V(mul)(a, a), r);
    return V(select)(V(eq)(b, V(set)(3)), V(pow_cube)(a), r);
}

/* Returns lanes with simple exponents, most often none. Those exponents have at most two binary
   digits, which is a faster test. */
DVTI_INLINE uint32_t V(pow_simple_lanes)(V(f) b) {
    V(m) brief = V(ieq)(V(iand)(V(as_i)(b), V(iset)(0x3fffff)), V(iset)(0));
    return V(mbits)(brief) ? V(mbits)(V(pow_is_simple)(b)) : 0;
}

DVTI_INLINE V(f) V(pow)(V(f) a, V(f) b) {
    const uint32_t simple = V(pow_simple_lanes)(b);
    V(f) r;
    if (simple == 0xffff)
        return V(pow_simple)(a, b);
    r = V(pow_by_log)(a, b);
    return simple ? V(select)(V(pow_is_simple)(b), V(pow_simple)(a, b), r) : r;
}

DVTI_INLINE V(d) V(wide_hypot)(V(d) a, V(d) b) {
    return V(dsqrt)(V(dfma)(a, a, V(dmul)(b, b)));
}

DVTI_INLINE V(f) V(hypot)(V(f) a, V(f) b) {
    const V(f) most = V(set)(INFINITY);
    V(f) r = V(narrow)(V(wide_hypot)(V(widen_low)(a), V(widen_low)(b)),
                       V(wide_hypot)(V(widen_high)(a), V(widen_high)(b)));
    V(m) infinite = V(mor)(V(eq)(V(abs)(a), most), V(eq)(V(abs)(b), most));
    return V(select)(infinite, most, r);
}

#undef DVTI_WIDE_STEP
