/* What the Box-Muller transform needs in double for normal numbers of float; see basics.inl, whose functions it does not use. */

/* log(x) of normal x > 0, to less than a unit in the last place. Source: the method and coefficients of fdlibm's e_log.c: x = 2^k (1 + f),
   s = f / (2 + f), log(1 + f) = f - f^2 / 2 + s (f^2 / 2 + R(s^2)). */
DVTI_INLINE V(d) V(dlog_normal)(V(d) x) {
    const V(l) one = V(as_l)(V(dset)(1));
    V(l) bits = V(as_l)(x);
    V(d) m = V(as_d)(V(lor)(V(land)(bits, V(lset)(0xfffffffffffffLL)), one));
    V(d) k = V(dsub)(V(as_d)(V(lor)(V(lshr)(bits, 52), V(as_l)(V(dset)(4503599627370496.)))),
                     V(dset)(4503599627370496. + 1023));
    V(n) big = V(dgt)(m, V(dset)(1.41421356237309504880));
    V(d) f, s, z, w, odd, even, half;
    m = V(dselect)(big, V(dmul)(m, V(dset)(0.5)), m);
    k = V(dselect)(big, V(dadd)(k, V(dset)(1)), k);
    f = V(dsub)(m, V(dset)(1));
    s = V(ddiv)(f, V(dadd)(V(dset)(2), f));
    z = V(dmul)(s, s);
    w = V(dmul)(z, z);
    even = V(dfma)(w, V(dset)(1.531383769920937332e-01), V(dset)(2.222219843214978396e-01));
    even = V(dmul)(w, V(dfma)(w, even, V(dset)(3.999999999940941908e-01)));
    odd = V(dfma)(w, V(dset)(1.479819860511658591e-01), V(dset)(1.818357216161805012e-01));
    odd = V(dfma)(w, odd, V(dset)(2.857142874366239149e-01));
    odd = V(dmul)(z, V(dfma)(w, odd, V(dset)(6.666666666666735130e-01)));
    half = V(dmul)(V(dmul)(f, f), V(dset)(0.5));
    s = V(dfma)(k, V(dset)(1.90821492927058770002e-10),
                V(dmul)(s, V(dadd)(half, V(dadd)(odd, even))));
    return V(dfnma)(V(dset)(-6.93147180369123816490e-01), k, V(dsub)(f, V(dsub)(half, s)));
}

/* Sine and cosine of t, |t| <= pi / 4, to less than a unit in the last place. Source: fdlibm's k_sin.c and k_cos.c. */
DVTI_INLINE void V(dsincos_near)(V(d) t, V(d) * sine, V(d) * cosine) {
    V(d) z = V(dmul)(t, t), p, q;
    p = V(dfma)(z, V(dset)(1.58969099521155010221e-10), V(dset)(-2.50507602534068634195e-08));
    p = V(dfma)(z, p, V(dset)(2.75573137070700676789e-06));
    p = V(dfma)(z, p, V(dset)(-1.98412698298579493134e-04));
    p = V(dfma)(z, p, V(dset)(8.33333333332248946124e-03));
    p = V(dfma)(z, p, V(dset)(-1.66666666666666324348e-01));
    *sine = V(dfma)(V(dmul)(z, p), t, t);
    q = V(dfma)(z, V(dset)(-1.13596475577881948265e-11), V(dset)(2.08757232129817482790e-09));
    q = V(dfma)(z, q, V(dset)(-2.75573143513906633035e-07));
    q = V(dfma)(z, q, V(dset)(2.48015872894767294178e-05));
    q = V(dfma)(z, q, V(dset)(-1.38888888888741095749e-03));
    q = V(dfma)(z, q, V(dset)(4.16666666666666019037e-02));
    *cosine = V(dfma)(V(dmul)(z, z), q, V(dfnma)(z, V(dset)(0.5), V(dset)(1)));
}

/* r times the cosine and the sine of 2 pi p / 2^32, p = quarter * 2^30 + rest, |rest| <= 2^29. */
DVTI_INLINE void V(dpolar)(V(d) r, V(d) rest, V(d) quarter, V(d) * x, V(d) * y) {
    V(n) swap = V(nor)(V(deq)(quarter, V(dset)(1)), V(deq)(quarter, V(dset)(3)));
    V(n) left = V(nor)(V(deq)(quarter, V(dset)(1)), V(deq)(quarter, V(dset)(2)));
    V(n) below = V(dge)(quarter, V(dset)(2));
    V(d) sine, cosine;
    V(dsincos_near)(V(dmul)(rest, V(dset)(1.46291807926715968e-09)), &sine, &cosine);
    *x = V(dmul)(V(dselect)(left, V(dneg)(r), r), V(dselect)(swap, sine, cosine));
    *y = V(dmul)(V(dselect)(below, V(dneg)(r), r), V(dselect)(swap, cosine, sine));
}
