/* The error function and gelu. Needs exp.inl; see basics.inl. */

/* 1 - exp(-polynomial); near 0 a polynomial. */
DVTI_INLINE V(f) V(erf)(V(f) x) {
    V(f) a = V(min)(V(set)(4), V(abs)(x)), z = V(mul)(a, a), p, q;
    q = DVTI_P7(a, 0.000162123542f, -1.12945402f, -0.633471072f, -0.108142354f, 0.0250297245f,
                -0.00413679006f, 0.000427353021f, -2.04775679e-05f);
    q = V(sub)(V(set)(1), V(exp_normal)(q));
    p = DVTI_P6(z, 0.128379166f, -0.376126379f, 0.112837367f, -0.0268617738f, 0.00520721916f,
                 -0.000821654685f, 8.69896539e-05f);
    p = V(fma)(p, a, a);
    return V(bit_or)(V(sign_bit)(x), V(select)(V(lt)(a, V(set)(0.875f)), p, q));
}

/* x times the lower tail of the normal distribution at -|x|, which is exp(-x^2 / 2) s P(1 - 2 s) with s = |x| / (4 + |x|); for
   positive x what that leaves of x. */
DVTI_INLINE V(f) V(gelu)(V(f) x) {
    const V(f) one = V(set)(1), half = V(set)(-0.5f);
    V(f) a = V(min)(V(set)(15), V(abs)(x)), square = V(mul)(a, a), tail, n, low, r, e, s, t, p;
    tail = V(mul)(V(fma)(a, a, V(neg)(square)), half);
    r = V(exp_reduce)(V(mul)(square, half), &n, &low);
    low = V(fma)(V(mul)(r, r), V(exp_poly)(r), low);
    e = V(add)(one, V(add)(r, low));
    s = V(div)(a, V(add)(V(set)(4), a));
    t = V(fma)(V(set)(-2), s, one);
    p = DVTI_P10(t, 0.755285144f, 0.607896626f, 0.387137294f, 0.186521575f, 0.0603983514f,
                 0.00754261389f, -0.00349221961f, -0.00163548801f, 0.000171859618f, 0.000219286114f,
                 -4.50620464e-05f);
    p = V(scalef)(V(mul)(V(mul)(p, s), V(fma)(e, tail, e)), n);
    return V(select)(V(lt)(x, V(zero)()), V(neg)(p), V(sub)(x, p));
}
