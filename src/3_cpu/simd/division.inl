/* Python's division of vectors of floats. */

/* Returns lanes whose remainder is not 0 and has another sign than b. */
DVTI_INLINE V(m) V(other_side)(V(f) rest, V(f) b) {
    V(m) differ = V(igt)(V(iset)(0), V(ixor)(V(as_i)(rest), V(as_i)(b)));
    return V(mand)(differ, V(ne)(rest, V(zero)()));
}

/* Returns a - b trunc(a / b), exactly, for |a / b| <= 2^22 and finite b. The quotient is off by at
   most 1; then the remainder has the wrong sign and is corrected. */
DVTI_INLINE V(f) V(remainder)(V(f) a, V(f) b, V(f) quotient) {
    V(f) rest = V(fnma)(V(trunc)(quotient), b, a);
    V(f) back = V(add)(rest, V(bit_or)(V(sign_bit)(a), V(abs)(b)));
    return V(select)(V(other_side)(rest, a), back, rest);
}

/* Returns whether some lane is outside the range of V(remainder). */
DVTI_INLINE bool V(division_rare)(V(f) quotient, V(f) b) {
#if defined(DVTI_NO_FMA) /* the remainder is not exact */
    (void)quotient;
    (void)b;
    return true;
#else
    V(m) common = V(mand)(V(le)(V(abs)(quotient), V(set)(4194304)),
                          V(le)(V(abs)(b), V(set)(FLT_MAX)));
    return V(mbits)(common) != 0xffff;
#endif
}

static V(f) V(division_by_lanes)(V(f) a, V(f) b, float (*divide)(float, float)) {
    float lanes[2][16];
    int k;
    V(store)(lanes[0], a);
    V(store)(lanes[1], b);
    for (k = 0; k < 16; k++)
        lanes[0][k] = divide(lanes[0][k], lanes[1][k]);
    return V(load)(lanes[0]);
}

DVTI_INLINE V(f) V(mod)(V(f) a, V(f) b) {
    V(f) quotient = V(div)(a, b), rest = V(remainder)(a, b, quotient), r;
    if (V(division_rare)(quotient, b))
        return V(division_by_lanes)(a, b, dvti_modf);
    r = V(select)(V(other_side)(rest, b), V(add)(rest, b), rest);
    return V(select)(V(eq)(rest, V(zero)()), V(sign_bit)(b), r);
}

DVTI_INLINE V(f) V(floor_div)(V(f) a, V(f) b) {
    V(f) quotient = V(div)(a, b), rest = V(remainder)(a, b, quotient), r;
    if (V(division_rare)(quotient, b))
        return V(division_by_lanes)(a, b, dvti_floor_divf);
    r = V(div)(V(sub)(a, rest), b);
    r = V(select)(V(other_side)(rest, b), V(sub)(r, V(set)(1)), r);
    return V(select)(V(eq)(r, V(zero)()), V(sign_bit)(quotient), V(round)(r));
}
