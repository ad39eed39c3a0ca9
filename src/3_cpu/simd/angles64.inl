/* Trigonometric functions of vectors of doubles, their inverses, atan2 and hypot; see
   math64.inl. */

/* Reduces x = n pi / 2 + r + low, as 2_core/math/angles.inl does. The result of the first
   subtraction has no digit below 2^-53. It is exact for any n that the quotient gets right. */
DVTI_INLINE V(pair) V(dangle_reduce)(V(d) x, V(d) * quarters) {
    const V(d) second = V(dset)(6.123233995736766e-17), third = V(dset)(-1.4973849048591833e-33);
    V(d) n = V(dround)(V(dmul)(x, V(dset)(0.63661977236758138))), first, w, back;
    V(pair) r;
    first = V(dfma_exact)(V(dneg)(n), V(dset)(1.5707963267948966), x);
    w = V(dmul)(n, second);
    r.high = V(dsub)(first, w);
    back = V(dsub)(r.high, first);
    r.low = V(dsub)(V(dsub)(first, V(dsub)(r.high, back)), V(dadd)(w, back));
    r.low = V(dfnma)(n, third, V(dadd)(r.low, V(dfnma)(n, second, w)));
    if (V(nbits)(V(dle)(V(dabs)(x), V(dset)(DVTI_ANGLE64_MOST))) != 0xff) {
        double lanes[4][8];
        V(dstore)(lanes[0], x);
        V(dstore)(lanes[1], r.high);
        V(dstore)(lanes[2], r.low);
        V(dstore)(lanes[3], n);
        dvti_reduce_angles64(lanes[0], lanes[1], lanes[2], lanes[3]);
        r.high = V(dload)(lanes[1]);
        r.low = V(dload)(lanes[2]);
        n = V(dload)(lanes[3]);
    }
    *quarters = n;
    return r;
}

/* Computes sine and cosine for |r| <= pi / 4. The cosine is 1 - z / 2, the rounding error of that,
   and the rest. */
DVTI_INLINE void V(dwaves)(V(pair) r, V(pair) * sine, V(pair) * cosine) {
    const V(d) one = V(dset)(1), half = V(dset)(0.5);
    V(d) z = V(dmul)(r.high, r.high), rest, p = V(dset)(-1.1358079678437849e-11);
    p = DVTI_D2(p, z, 2.087569447951576e-09, -2.7557314153226125e-07);
    p = DVTI_D3(p, z, 2.4801587288845307e-05, -0.0013888888888873208, 0.041666666666666595);
    cosine->high = V(dfnma)(half, z, one);
    rest = V(dfnma)(half, z, V(dsub)(one, cosine->high));
    cosine->low = V(dfma)(V(dmul)(z, z), p, V(dfnma)(r.high, r.low, rest));
    p = V(dset)(1.589439389157886e-10);
    p = DVTI_D2(p, z, -2.5050718485157212e-08, 2.7557313452565555e-06);
    p = DVTI_D3(p, z, -0.00019841269829167356, 0.0083333333333216967, -0.1666666666666663);
    sine->high = r.high;
    sine->low = V(dfma)(V(dmul)(r.high, z), p, V(dmul)(r.low, cosine->high));
}

DVTI_INLINE V(pair) V(dd_select)(V(n) m, V(pair) a, V(pair) b) {
    a.high = V(dselect)(m, a.high, b.high);
    a.low = V(dselect)(m, a.low, b.low);
    return a;
}

/* Returns the quarter turns as integers. */
DVTI_INLINE V(l) V(dquarters)(V(d) n, int32_t turn) {
    return V(ladd)(V(as_l)(V(dadd)(n, V(dset)(DVTI_DWHOLE))), V(lset)(turn));
}

/* Returns whether n is even; tests bit 0 as the double 2 or 0. */
DVTI_INLINE V(n) V(dis_even)(V(l) n) {
    return V(deq)(V(as_d)(V(lshl)(V(land)(n, V(lset)(1)), 62)), V(dzero)());
}

/* Returns the sine of x plus `turn` quarter turns, 0 or 1. */
DVTI_INLINE V(d) V(dsin_quarter)(V(d) x, int32_t turn) {
    V(d) n, result;
    V(pair) r = V(dangle_reduce)(x, &n), s, c;
    V(l) q = V(dquarters)(n, turn);
    V(dwaves)(r, &s, &c);
    r = V(dd_select)(V(dis_even)(q), s, c);
    result = V(dxor)(V(dd_value)(r), V(as_d)(V(lshl)(V(land)(q, V(lset)(2)), 62)));
    /* r + low of -0 would be +0 */
    return V(dselect)(V(deq)(x, V(dzero)()), turn ? V(dset)(1) : x, result);
}

DVTI_INLINE V(d) V(dsin)(V(d) x) {
    return V(dsin_quarter)(x, 0);
}

DVTI_INLINE V(d) V(dcos)(V(d) x) {
    return V(dsin_quarter)(x, 1);
}

/* Returns sine / cosine, or minus its reciprocal. */
DVTI_INLINE V(d) V(dtan)(V(d) x) {
    V(d) n, sign;
    V(pair) r = V(dangle_reduce)(x, &n), s, c;
    V(l) q = V(dquarters)(n, 0);
    V(n) even = V(dis_even)(q);
    V(dwaves)(r, &s, &c);
    s = V(dd_settled)(s);
    c = V(dd_settled)(c);
    r = V(dd_quotient)(V(dd_select)(even, s, c), V(dd_select)(even, c, s));
    sign = V(as_d)(V(lshl)(V(land)(q, V(lset)(1)), 63));
    return V(dselect)(V(deq)(x, V(dzero)()), x, V(dxor)(V(dd_value)(r), sign));
}

/* ---- inverses ---- */
#define DVTI_DPI 3.1415926535897931
#define DVTI_DPI_LOW 1.2246467991473532e-16
#define DVTI_DHALF_PI 1.5707963267948966
#define DVTI_DHALF_PI_LOW 6.123233995736766e-17

/* Returns asin(a), or for a > 1/2 asin(sqrt((1 - a) / 2)): asin(a) is a quarter turn minus twice
   that. Corrects the rounding error of the square root. */
DVTI_INLINE V(pair) V(dasin_of)(V(d) a, V(n) large) {
    const V(d) half = V(dset)(0.5);
    V(d)
    z = V(dselect)(large, V(dfnma)(half, a, half), V(dmul)(a, a)),
    p = V(dset)(0.032614017150030927);
    V(d) root = V(dsqrt)(z), less = V(ddiv)(half, V(dmax)(V(dset)(1e-300), root));
    V(pair) s;
    s.high = V(dselect)(large, root, a);
    less = V(dselect)(large, V(dmul)(V(dfnma)(root, root, z), less), V(dzero)());
    p = DVTI_D4(p, z, -0.020996478184520204, 0.021720104717519447, 0.0036954666668052908,
                0.010784571028344047);
    p = DVTI_D4(p, z, 0.011397914001976817, 0.013980966205523762, 0.017351598313874943,
                0.022372215810308172);
    p = DVTI_D4(p, z, 0.030381942677393584, 0.044642857175253077, 0.074999999999701292,
                0.16666666666666763);
    s.low = V(dfma)(V(dmul)(s.high, z), p, less);
    return s;
}

/* Returns high + low - s, for |s| <= high. */
DVTI_INLINE V(d) V(dturn_less)(double high, double low, V(pair) s) {
    V(pair) r = V(dd_sum)(V(dset)(high), V(dneg)(s.high));
    return V(dadd)(r.high, V(dadd)(r.low, V(dsub)(V(dset)(low), s.low)));
}

DVTI_INLINE V(d) V(dasin)(V(d) x) {
    V(d) a = V(dabs)(x);
    V(n) large = V(dgt)(a, V(dset)(0.5));
    V(pair) s = V(dasin_of)(a, large);
    V(d) r = V(dturn_less)(DVTI_DHALF_PI, DVTI_DHALF_PI_LOW, V(dd_scaled)(s, 2));
    return V(dsigned)(V(dselect)(large, r, V(dd_value)(s)), x);
}

/* Returns, with s = asin(a) or of the root: pi - 2 s, pi / 2 + s, pi / 2 - s or 2 s. */
DVTI_INLINE V(d) V(dacos)(V(d) x) {
    V(d) a = V(dabs)(x), middle, right, left;
    V(n) large = V(dgt)(a, V(dset)(0.5)), negative = V(dlt)(x, V(dzero)());
    V(pair) s = V(dasin_of)(a, large), same = s;
    same.high = V(dsigned)(s.high, x);
    same.low = V(dxor)(V(dsign_bit)(x), s.low);
    middle = V(dturn_less)(DVTI_DHALF_PI, DVTI_DHALF_PI_LOW, same);
    s = V(dd_scaled)(s, 2);
    right = V(dd_value)(s);
    left = V(dturn_less)(DVTI_DPI, DVTI_DPI_LOW, s);
    return V(dselect)(large, V(dselect)(negative, left, right), middle);
}

/* Returns the angle of the point (b, a). a and b are not negative, neither far from 1 nor both 0.
   Close to an axis the angle is atan(a / b) or pi / 2 - atan(b / a). Between them it is pi / 4 +
   atan((a - b) / (a + b)). */
DVTI_INLINE V(pair) V(datan_of)(V(d) a, V(d) b) {
    V(n) steep = V(dgt)(a, V(dmul)(b, V(dset)(2.4142135623730951)));
    V(n) flat = V(dle)(a, V(dmul)(b, V(dset)(0.41421356237309503)));
    V(d)
    none = V(dzero)(),
    z, p, base = V(dset)(DVTI_DHALF_PI / 2), low = V(dset)(DVTI_DHALF_PI_LOW / 2);
    V(pair) over, under, q, s;
    under = V(dd_sum)(V(dmax)(a, b), V(dmin)(a, b));
    over.high = V(dsub)(a, b);
    over.low = V(dsub)(a, V(dadd)(over.high, b));
    over.high = V(dselect)(flat, a, V(dselect)(steep, V(dneg)(b), over.high));
    under.high = V(dselect)(flat, b, V(dselect)(steep, a, under.high));
    over.low = V(dselect)(V(nor)(flat, steep), none, over.low);
    under.low = V(dselect)(V(nor)(flat, steep), none, under.low);
    base = V(dselect)(flat, none, V(dselect)(steep, V(dset)(DVTI_DHALF_PI), base));
    low = V(dselect)(flat, none, V(dselect)(steep, V(dset)(DVTI_DHALF_PI_LOW), low));
    q = V(dd_quotient)(over, under);
    z = V(dmul)(q.high, q.high);
    p = V(dset)(-0.017913133868027415);
    p = DVTI_D4(p, z, 0.038070110009775768, -0.050395286225917657, 0.058479401570482495,
                -0.066631111721257158);
    p = DVTI_D4(p, z, 0.07692060849517611, -0.090908977935669322, 0.11111110784700017,
                -0.1428571428022094);
    p = DVTI_D2(p, z, 0.19999999999953821, -0.33333333333333198);
    s = V(dd_sum)(base, q.high);
    s.low = V(dadd)(s.low, V(dadd)(low, V(dfma)(V(dmul)(q.high, z), p, q.low)));
    return s;
}

DVTI_INLINE V(d) V(datan)(V(d) x) {
    V(d) a = V(dmin)(V(dset)(1e300), V(dabs)(x));
    return V(dsigned)(V(dd_value)(V(datan_of)(a, V(dset)(1))), x);
}

/* Scales two sides towards 1 by a power of two, `large` or its inverse, if the longer one exceeds
   `most` or is below `least`. Returns the factor that restores them. */
DVTI_INLINE V(d) V(dnear_one)(V(d) * a, V(d) * b, double most, double least, double large) {
    const V(d) down = V(dset)(1 / large), up = V(dset)(large), one = V(dset)(1);
    const V(d) longer = V(dmax)(*a, *b);
    V(n) above = V(dgt)(longer, V(dset)(most)), below = V(dlt)(longer, V(dset)(least));
    V(d) by = V(dselect)(above, down, V(dselect)(below, up, one));
    *a = V(dmul)(*a, by);
    *b = V(dmul)(*b, by);
    return V(dselect)(above, up, V(dselect)(below, down, one));
}

/* Returns the angle of the point (x, y). */
DVTI_INLINE V(d) V(datan2)(V(d) y, V(d) x) {
    const V(d) most = V(dset)((double)INFINITY), one = V(dset)(1), none = V(dzero)();
    V(d) a = V(dabs)(y), b = V(dabs)(x), r;
    V(n) infinite = V(deq)(V(dmax)(a, b), most), zero = V(deq)(V(dmax)(a, b), none), left;
    V(pair) angle, supplement;
    a = V(dselect)(infinite, V(dselect)(V(deq)(a, most), one, none), a);
    b = V(dselect)(infinite, V(dselect)(V(deq)(b, most), one, none), V(dselect)(zero, one, b));
    V(dnear_one)(&a, &b, 1e300, 1e-300, 1267650600228229401496703205376.); /* 2^100 */
    angle = V(datan_of)(a, b);
    supplement = V(dd_sum)(V(dset)(DVTI_DPI), V(dneg)(angle.high));
    supplement.low = V(dadd)(supplement.low, V(dsub)(V(dset)(DVTI_DPI_LOW), angle.low));
    left = V(dlt)(V(dsigned)(one, x), none);
    r = V(dsigned)(V(dd_value)(V(dd_select)(left, supplement, angle)), y);
    return V(dselect)(V(dunord)(x, y), V(dadd)(x, y), r);
}

DVTI_INLINE V(d) V(dhypot)(V(d) a, V(d) b) {
    const V(d) most = V(dset)((double)INFINITY);
    V(d) x = V(dmax)(V(dabs)(a), V(dabs)(b)), y = V(dmin)(V(dabs)(a), V(dabs)(b)), undo, r;
    V(n) infinite = V(nor)(V(deq)(V(dabs)(a), most), V(deq)(V(dabs)(b), most));
    undo = V(dnear_one)(&x, &y, 1e150, 1e-120, 4.149515568880993e+180); /* 2^600 */
    r = V(dmul)(V(dsqrt)(V(dfma)(x, x, V(dmul)(y, y))), undo);
    r = V(dselect)(V(dunord)(a, b), V(dadd)(a, b), r);
    return V(dselect)(infinite, most, r);
}

#undef DVTI_DPI
#undef DVTI_DPI_LOW
#undef DVTI_DHALF_PI
#undef DVTI_DHALF_PI_LOW
