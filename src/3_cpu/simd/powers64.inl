/* Powers of vectors of doubles, and Python's division; see math64.inl. */

DVTI_INLINE V(pair) V(dd_times)(V(pair) a, V(pair) b) {
    V(pair) r = V(dd_product)(a.high, b.high);
    r.low = V(dfma)(a.high, b.low, V(dfma)(a.low, b.high, r.low));
    return r;
}

DVTI_INLINE V(pair) V(dd_set)(double high, double low) {
    V(pair) r;
    r.high = V(dset)(high);
    r.low = V(dset)(low);
    return r;
}

/* Returns log2 of positive numbers with a relative error of about 2^-65, since pow multiplies it by
   up to 2^10. With s = f / (2 + f) and z = s^2, log(1 + f) is 2 s + s z (2 / 3 + z R(z)). Only R is
   rounded to one double. */
DVTI_INLINE V(pair) V(dlog2_exact)(V(d) x, bool rare) {
    V(d) n, f = V(dsub)(V(dlog_reduce)(x, rare, &n), V(dset)(1)), p = V(dset)(0.13196851316823049);
    V(pair) s, z, t, by;
    s.high = f;
    s.low = V(dzero)();
    s = V(dd_quotient)(s, V(dd_sum)(V(dset)(2), f));
    z = V(dd_times)(s, s);
    p = DVTI_D6(p, z.high, 0.13256763086396067, 0.15386759602767192, 0.18181784319586061,
                0.22222222520444118, 0.28571428570096791, 0.40000000000002262);
    by = V(dd_sum)(V(dset)(0.66666666666666663), V(dmul)(p, z.high));
    by.low = V(dadd)(by.low, V(dset)(3.7007434154171883e-17));
    t = V(dd_times)(V(dd_times)(s, z), by);
    s = V(dd_scaled)(s, 2);
    by = V(dd_sum)(s.high, t.high);
    by.low = V(dadd)(by.low, V(dadd)(s.low, t.low));
    t = V(dd_times)(by, V(dd_set)(1.4426950408889634, 2.0355273740931033e-17));
    s = V(dd_sum)(n, t.high);
    s.low = V(dadd)(s.low, t.low);
    return s;
}

/* Returns the result that C's Annex F specifies for special arguments, else `result` with its
   sign. */
DVTI_INLINE V(d) V(dpow_special)(V(d) a, V(d) b, V(d) result) {
    const V(d) one = V(dset)(1), none = V(dzero)(), most = V(dset)((double)INFINITY);
    V(d) size = V(dabs)(a), half = V(dmul)(V(dset)(0.5), b), sign;
    V(n) down = V(dlt)(b, none), whole = V(deq)(V(dtrunc)(b), b);
    V(n) odd = V(nand)(whole, V(dne)(V(dtrunc)(half), half)), broken;
    result = V(dselect)(V(deq)(size, none), V(dselect)(down, most, none), result);
    result = V(dselect)(V(deq)(size, most), V(dselect)(down, none, most), result);
    result = V(dselect)(V(deq)(size, one), one, result);
    sign = V(dselect)(odd, V(dsign_bit)(a), none);
    result = V(dor)(sign, result);
    broken = V(nand)(V(dlt)(a, none), V(nand)(V(dlt)(size, most), V(nnot)(whole)));
    result = V(dselect)(V(nor)(broken, V(dunord)(a, b)), V(dset)((double)NAN), result);
    return V(dselect)(V(nor)(V(deq)(b, none), V(deq)(a, one)), one, result);
}

/* pow_half, pow_cube, pow_is_simple and pow_simple are those of floats (2_core/math/powers.inl). */
DVTI_INLINE V(d) V(dpow_half)(V(d) a) {
    const V(d) most = V(dset)((double)INFINITY);
    return V(dsqrt)(V(dselect)(V(deq)(a, V(dneg)(most)), most, V(dadd)(a, V(dzero)())));
}

DVTI_INLINE V(d) V(dpow_cube)(V(d) a) {
    V(n) finite = V(dle)(V(dabs)(a), V(dset)(8.958978968711217e+102) /* 2^342 */);
    V(d) b = V(dselect)(finite, a, V(dzero)()), rest = V(dfma)(b, b, V(dneg)(V(dmul)(b, b)));
    return V(dfma)(V(dmul)(a, a), a, V(dmul)(rest, b));
}

DVTI_INLINE V(n) V(dpow_is_simple)(V(d) b) {
    V(n) r = V(nor)(V(deq)(b, V(dset)(-1)), V(deq)(b, V(dzero)()));
    r = V(nor)(r, V(nor)(V(deq)(b, V(dset)(0.5)), V(deq)(b, V(dset)(1))));
    return V(nor)(r, V(nor)(V(deq)(b, V(dset)(2)), V(deq)(b, V(dset)(3))));
}

DVTI_INLINE V(d) V(dpow_simple)(V(d) a, V(d) b) {
    const V(d) one = V(dset)(1);
    V(n) half = V(deq)(b, V(dset)(0.5)), inverse = V(deq)(b, V(dset)(-1));
    V(d) r = V(dselect)(V(deq)(b, V(dzero)()), one, a);
    r = V(dselect)(inverse, V(ddiv)(one, V(dselect)(inverse, a, one)), r);
    r = V(dselect)(half, V(dpow_half)(V(dselect)(half, a, one)), r);
    r = V(dselect)(V(deq)(b, V(dset)(2)), V(dmul)(a, a), r);
    return V(dselect)(V(deq)(b, V(dset)(3)), V(dpow_cube)(a), r);
}

DVTI_INLINE V(d) V(dpow_by_log)(V(d) a, V(d) b) {
    bool rare = V(dlog_rare)(a);
    V(pair) log2 = V(dlog2_exact)(V(dabs)(a), rare), y = V(dd_product)(b, log2.high), r;
    V(d) n, result;
    y.low = V(dfma)(b, log2.low, y.low);
    y.low = V(dselect)(V(dlt)(V(dabs)(y.high), V(dset)(1080)), y.low, V(dzero)());
    y.high = V(dwithin)(y.high, -1080, 1080);
    n = V(dround)(y.high);
    y = V(dd_sum)(V(dsub)(y.high, n), y.low);
    r = V(dd_times)(y, V(dd_set)(0.69314718055994531, 2.3190468138462996e-17));
    result = V(dscalef)(V(dd_value)(V(dexp_sum)(r)), n);
    if (rare || V(nbits)(V(dle)(V(dabs)(b), V(dset)(DBL_MAX))) != 0xff)
        result = V(dpow_special)(a, b, result);
    return result;
}

DVTI_INLINE V(d) V(dpow)(V(d) a, V(d) b) {
    V(n) simple = V(dpow_is_simple)(b);
    V(d) r = V(dpow_by_log)(a, b);
    return V(nbits)(simple) ? V(dselect)(simple, V(dpow_simple)(a, b), r) : r;
}

/* Returns lanes whose remainder is not 0 and has another sign than b. */
DVTI_INLINE V(n) V(dother_side)(V(d) rest, V(d) b) {
    V(n) differ = V(dlt)(V(dsigned)(V(dset)(1), V(dxor)(rest, b)), V(dzero)());
    return V(nand)(differ, V(dne)(rest, V(dzero)()));
}

/* Returns a - b trunc(a / b), exactly, for |a / b| <= 2^51 and finite b. The quotient is off by at
   most 1; then the remainder has the wrong sign and is corrected. */
DVTI_INLINE V(d) V(dremainder)(V(d) a, V(d) b, V(d) quotient) {
    V(d) rest = V(dfnma)(V(dtrunc)(quotient), b, a);
    V(d) back = V(dadd)(rest, V(dsigned)(V(dabs)(b), a));
    return V(dselect)(V(dother_side)(rest, a), back, rest);
}

/* Returns whether some lane is outside the range of V(dremainder). */
DVTI_INLINE bool V(ddivision_rare)(V(d) quotient, V(d) b) {
#if defined(DVTI_NO_FMA) /* the remainder is not exact */
    (void)quotient;
    (void)b;
    return true;
#else
    V(n) common = V(nand)(V(dle)(V(dabs)(quotient), V(dset)(2251799813685248.)),
                          V(dle)(V(dabs)(b), V(dset)(DBL_MAX)));
    return V(nbits)(common) != 0xff;
#endif
}

static V(d) V(ddivision_by_lanes)(V(d) a, V(d) b, double (*divide)(double, double)) {
    double lanes[2][8];
    int k;
    V(dstore)(lanes[0], a);
    V(dstore)(lanes[1], b);
    for (k = 0; k < 8; k++)
        lanes[0][k] = divide(lanes[0][k], lanes[1][k]);
    return V(dload)(lanes[0]);
}

DVTI_INLINE V(d) V(dmod)(V(d) a, V(d) b) {
    V(d) quotient = V(ddiv)(a, b), rest = V(dremainder)(a, b, quotient), r;
    if (V(ddivision_rare)(quotient, b))
        return V(ddivision_by_lanes)(a, b, dvti_mod);
    r = V(dselect)(V(dother_side)(rest, b), V(dadd)(rest, b), rest);
    return V(dselect)(V(deq)(rest, V(dzero)()), V(dsign_bit)(b), r);
}

DVTI_INLINE V(d) V(dfloor_div)(V(d) a, V(d) b) {
    V(d) quotient = V(ddiv)(a, b), rest = V(dremainder)(a, b, quotient), r;
    if (V(ddivision_rare)(quotient, b))
        return V(ddivision_by_lanes)(a, b, dvti_floor_div);
    r = V(ddiv)(V(dsub)(a, rest), b);
    r = V(dselect)(V(dother_side)(rest, b), V(dsub)(r, V(dset)(1)), r);
    return V(dselect)(V(deq)(r, V(dzero)()), V(dsign_bit)(quotient), V(dround)(r));
}

#undef DVTI_D1
#undef DVTI_D2
#undef DVTI_D3
#undef DVTI_D4
#undef DVTI_D6
#undef DVTI_DWHOLE
