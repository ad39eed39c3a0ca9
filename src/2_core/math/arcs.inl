/* Inverse trigonometric functions; see basics.inl. */

#define DVTI_PI 3.14159274f
#define DVTI_PI_LOW -8.74227766e-8f
#define DVTI_HALF_PI 1.57079637f
#define DVTI_HALF_PI_LOW -4.37113883e-8f

/* Returns asin(s) - s, z = s^2 <= 1/4. */
DVTI_INLINE V(f) V(asin_poly)(V(f) s, V(f) z) {
    V(f) p = DVTI_P4(z, 0.166667536f, 0.0749525204f, 0.0454760417f, 0.0241520889f, 0.0422118157f);
    return V(mul)(V(mul)(s, z), p);
}

/* Above 1/2: asin(a) = pi / 2 - 2 asin(sqrt((1 - a) / 2)). The low float of pi / 4 is added to that
   asin. */
DVTI_INLINE V(f) V(asin)(V(f) x) {
    const V(f) half = V(set)(0.5f);
    V(f) a = V(abs)(x), z, s, p, r;
    V(m) large = V(gt)(a, half);
    z = V(select)(large, V(fnma)(half, a, half), V(mul)(a, a));
    s = V(select)(large, V(sqrt)(z), a);
    p = V(asin_poly)(s, z);
    r = V(add)(s, V(sub)(p, V(set)(0.5f * DVTI_HALF_PI_LOW)));
    r = V(fnma)(V(set)(2), r, V(set)(DVTI_HALF_PI));
    return V(bit_or)(V(sign_bit)(x), V(select)(large, r, V(add)(s, p)));
}

DVTI_INLINE V(f) V(acos)(V(f) x) {
    const V(f) half = V(set)(0.5f), two = V(set)(2);
    V(f) a = V(abs)(x), z, s, p, small, r;
    V(m) large = V(gt)(a, half), negative = V(lt)(x, V(zero)());
    z = V(select)(large, V(fnma)(half, a, half), V(mul)(a, a));
    s = V(select)(large, V(sqrt)(z), x);
    p = V(asin_poly)(s, z);
    small = V(sub)(V(set)(DVTI_HALF_PI), V(sub)(s, V(sub)(V(set)(DVTI_HALF_PI_LOW), p)));
    r = V(fnma)(two, s, V(set)(DVTI_PI));
    r = V(add)(r, V(fnma)(two, p, V(set)(DVTI_PI_LOW)));
    r = V(select)(negative, r, V(mul)(two, V(add)(s, p)));
    return V(select)(large, r, small);
}

/* Returns atan(least / most), 0 <= least <= most; where `inverted`, atan(most / least). */
DVTI_INLINE V(f) V(atan_of)(V(f) least, V(f) most, V(m) inverted) {
    V(f) q = V(div)(least, most), z = V(mul)(q, q), p, r;
    p = DVTI_P8(z, -0.333333015f, 0.199986264f, -0.142650917f, 0.109566577f, -0.084164612f,
                0.0581781007f, -0.0313945226f, 0.0110290106f, -0.00181872305f);
    p = V(mul)(V(mul)(q, z), p);
    r = V(sub)(V(set)(DVTI_HALF_PI), V(add)(q, V(sub)(p, V(set)(DVTI_HALF_PI_LOW))));
    return V(select)(inverted, r, V(add)(q, p));
}

DVTI_INLINE V(f) V(atan)(V(f) x) {
    const V(f) one = V(set)(1);
    V(f) a = V(abs)(x), r = V(atan_of)(V(min)(one, a), V(max)(one, a), V(gt)(a, one));
    return V(bit_or)(V(sign_bit)(x), r);
}

/* Returns the angle of the point (x, y). */
DVTI_INLINE V(f) V(atan2)(V(f) y, V(f) x) {
    const V(f) most = V(set)(INFINITY);
    V(f) a = V(abs)(y), b = V(abs)(x), small = V(min)(a, b), large = V(max)(a, b), r;
    V(m) both = V(eq)(small, most), none = V(eq)(large, V(zero)()), left;
    small = V(select)(both, V(set)(1), small);
    large = V(select)(both, V(set)(1), V(select)(none, V(set)(1), large));
    r = V(atan_of)(small, large, V(gt)(a, b));
    left = V(igt)(V(iset)(0), V(as_i)(x));
    r = V(select)(left, V(sub)(V(set)(DVTI_PI), V(sub)(r, V(set)(DVTI_PI_LOW))), r);
    r = V(bit_or)(V(sign_bit)(y), r);
    return V(select)(V(unord)(a, b), V(add)(a, b), r);
}

#undef DVTI_PI
#undef DVTI_PI_LOW
#undef DVTI_HALF_PI
#undef DVTI_HALF_PI_LOW
