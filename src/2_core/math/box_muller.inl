/* The transform of Box and Muller: two normal numbers from two 32-bit random numbers without sign.
   Needs log.inl; see basics.inl. tests/isa/test_normal.c has the largest error against the exact
   transform. */

/* Returns sqrt(-2 log u), u = (w + 1) / 2^32. w has more digits than a float. Where u is near 1,
   the logarithm depends on the last of them. So the upper 24 bits and the rest are separate floats
   until 1 is subtracted, which is exact for the upper ones. */
DVTI_INLINE V(f) V(normal_radius)(V(i) w) {
    V(f) high = V(to_f)(V(ishr)(w, 8)), scale, f;
    /* (w % 256 + 1) / 256: the last bits of a float of 2^15 */
    V(f) low = V(as_f)(V(ior)(V(iand)(w, V(iset)(0xff)), V(iset)(0x47000000)));
    V(i) n;
    low = V(sub)(low, V(set)(32767.99609375f));
    /* log_split's n, of u = (high + low) / 2^24; scale = 2^(-24 - n) */
    n = V(isar)(V(isub)(V(as_i)(V(add)(high, low)), V(iset)(0x3f3504f3 + 24 * 0x800000)), 23);
    scale = V(as_f)(V(isub)(V(iset)(0x3f800000 - 24 * 0x800000), V(ishl)(n, 23)));
    f = V(fma)(low, scale, V(fma)(high, scale, V(set)(-1)));
    return V(sqrt)(V(mul)(V(set)(-2), V(log_of)(V(to_f)(n), f)));
}

/* Computes cosine and sine of 2 pi w / 2^32. t is the distance from the nearest quarter turn, at
   most an eighth. As a float it keeps its relative accuracy where the sine is near 0. 2 pi is the
   sum of two floats. */
DVTI_INLINE void V(normal_turn)(V(i) w, V(f) * cosine, V(f) * sine) {
    V(i) p = V(iadd)(w, V(iset)(0x20000000)); /* two bits: quarters */
    V(f) t = V(mul)(V(to_f)(V(ishl)(w, 2)), V(set)(1 / 17179869184.f)), z = V(mul)(t, t), s, c;
    V(m) swap = V(igt)(V(iset)(0), V(ishl)(p, 1));
    s = V(mul)(t, DVTI_P3(z, -1.95191788e-07f, -41.3416634f, 81.5926895f, -75.4075546f));
    s = V(fma)(t, V(set)(6.28318548f), s);
    c = DVTI_P4(z, 1, -19.7392082f, 64.9391479f, -85.4245224f, 58.6210594f);
    *cosine = V(bit_xor)(V(select)(swap, s, c),
                         V(sign_bit)(V(as_f)(V(iadd)(p, V(iset)(0x40000000)))));
    *sine = V(bit_xor)(V(select)(swap, c, s), V(sign_bit)(V(as_f)(p)));
}

DVTI_INLINE void V(normal_pair)(V(i) first, V(i) second, V(f) mean, V(f) deviation, V(f) * even,
                                V(f) * odd) {
    V(f) r = V(normal_radius)(first), x, y;
    V(normal_turn)(second, &x, &y);
    *even = V(fma)(deviation, V(mul)(r, x), mean);
    *odd = V(fma)(deviation, V(mul)(r, y), mean);
}
