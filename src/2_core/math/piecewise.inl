/* tanh, erf and gelu by pieces: the size of the argument selects one of eight polynomials, which
   costs less than a division. Needs exp.inl; see basics.inl. The including file also defines
   V(lookup)(table, i), the floats table[i & 7].

     rows[0][8]           the center of each piece
     rows[1 + k][8]       the coefficient of order k of each piece
                     ^
                     +--  one V(lookup) per row selects the piece of every lane */

/* Returns the polynomial in a - rows[0], whose coefficient of order k is rows[1 + k]; `at` is the
   piece. */
DVTI_INLINE V(f) V(piecewise)(const float (*rows)[8], int degree, V(i) at, V(f) a) {
    V(f) t = V(sub)(a, V(lookup)(rows[0], at)), p = V(lookup)(rows[degree + 1], at);
    int k;
    DVTI_REPEAT(8)
    for (k = degree; k > 0; k--)
        p = V(fma)(p, t, V(lookup)(rows[k], at));
    return p;
}

/* Returns the piece of a. Pieces grow with a: there is one for each bit pattern of a + offset above
   the lowest `shift` bits. */
DVTI_INLINE V(i) V(piece)(V(f) a, float offset, int shift) {
    return V(isar)(V(as_i)(V(add)(a, V(set)(offset))), shift);
}

/* Returns a = |x| times the polynomial, at most 1, with the sign of x. */
DVTI_INLINE V(f) V(odd_by_pieces)(const float (*rows)[8], int degree, V(i) at, V(f) a, V(f) x) {
    V(f) p = V(mul)(V(piecewise)(rows, degree, at, a), a);
    return V(bit_or)(V(sign_bit)(x), V(min)(V(set)(1), p));
}

DVTI_INLINE V(f) V(tanh)(V(f) x) {
    static const float rows[9][8] = {
        {1.75292969f, 2.75097656f, 4.2734375f, 6.24414062f, 8.26171875f, 0.126953125f, 0.500976562f,
         0.994628906f},
        {0.537219524f, 0.36055398f, 0.233912811f, 0.160148934f, 0.121040173f, 0.994662046f,
         0.923965037f, 0.763429642f},
        {-0.241899908f, -0.125181392f, -0.0545548052f, -0.0256454591f, -0.0146506932f,
         -0.0835547447f, -0.275915891f, -0.341846555f},
        {0.0771926716f, 0.0396693759f, 0.0125844013f, 0.00410472183f, 0.00177329173f, -0.320647389f,
         -0.175238788f, 0.0204418954f},
        {-0.00829977356f, -0.0105935903f, -0.00282372767f, -0.000655758718f, -0.000214618369f,
         0.0655395985f, 0.163040236f, 0.083000131f},
        {-0.00866918173f, 0.00200350932f, 0.00060055271f, 0.000104148814f, 2.59597109e-05f,
         0.120671369f, 0.00305921258f, -0.0543349534f},
        {0.00708999811f, -3.72780778e-05f, -0.000116759322f, -1.63649638e-05f, -3.13712508e-06f,
         -0.0386644825f, -0.0609011985f, 0.00743053667f},
        {-0.00282243337f, -0.000204798562f, 1.90746068e-05f, 2.61945024e-06f, 3.89466976e-07f,
         -0.0440776236f, 0.0197952166f, 0.0116324211f},
        {0.000444265257f, 0.000111293491f, -1.87910848e-06f, -3.819124e-07f, -4.71988741e-08f,
         0.0195143521f, 0.0143981492f, -0.0084144352f}};
    V(f) a = V(min)(V(set)(9.1f), V(abs)(x));
    return V(odd_by_pieces)(rows, 7, V(piece)(a, 0.75f, 22), a, x);
}

DVTI_INLINE V(f) V(erf)(V(f) x) {
    static const float rows[8][8] = {
        {0.255859375f, 0.744628906f, 1.25097656f, 1.74707031f, 2.25585938f, 2.75390625f,
         3.24755859f, 3.75097656f},
        {1.10423255f, 0.950390816f, 0.737928152f, 0.564668894f, 0.442659944f, 0.363084853f,
         0.307922274f, 0.266597211f},
        {-0.185084537f, -0.4059439f, -0.401273847f, -0.292690277f, -0.1931431f, -0.131635204f,
         -0.0948074088f, -0.071073845f},
        {-0.333492309f, -0.102950208f, 0.0848240331f, 0.114213578f, 0.0786621794f, 0.047225628f,
         0.0291637834f, 0.0189472158f},
        {0.106766023f, 0.169847459f, 0.0661153868f, -0.0134413335f, -0.0254397467f, -0.0161658078f,
         -0.00891909469f, -0.00504909968f},
        {0.0879797712f, -0.023848746f, -0.0579369701f, -0.0198945776f, 0.00295573892f,
         0.0047074263f, 0.00265711499f, 0.00134241849f},
        {-0.0356012285f, -0.0377268232f, 0.00814459845f, 0.0149202179f, 0.00347271957f,
         -0.000683139719f, -0.000719114498f, -0.000355132739f},
        {-0.0179355163f, 0.0141541939f, 0.00998320151f, -0.00331256818f, -0.00281650154f,
         -0.000361688348f, 0.00013604296f, 8.92799289e-05f}};
    V(f) a = V(min)(V(set)(3.99f), V(abs)(x));
    return V(odd_by_pieces)(rows, 6, V(piece)(a, 12, 19), a, x);
}

/* Computes a = |x| times the lower tail of the normal distribution at -a; for positive x, x minus
   that. The tail is exp(-a^2 / 2) times a polynomial. The rounding errors of the square, the
   exponential and the product are kept until the end. */
DVTI_INLINE V(f) V(gelu)(V(f) x) {
    static const float rows[10][8] = {
        {1.24316406f, 2.2421875f, 3.77148438f, 5.734375f, 8.7109375f, 12.7109375f, 0.127197266f,
         0.505371094f},
        {0.231517807f, 0.154068798f, 0.0995304659f, 0.0676232502f, 0.0452167243f, 0.0311949905f,
         0.453042269f, 0.348418415f},
        {-0.11112766f, -0.0534911491f, -0.0235646795f, -0.0111652082f, -0.00506221503f,
         -0.00242470461f, -0.341316551f, -0.222861692f},
        {0.0466839485f, 0.0170658082f, 0.00532831578f, 0.00179887924f, 0.000560039538f,
         0.000187360114f, 0.204813868f, 0.117895283f},
        {-0.0176973809f, -0.00507547799f, -0.00115636934f, -0.000283254951f, -6.12522199e-05f,
         -1.43941306e-05f, -0.105088256f, -0.0544269495f},
        {0.00617077714f, 0.00142140884f, 0.000241816422f, 4.36489427e-05f, 6.62427829e-06f,
         1.0995501e-06f, 0.0478617325f, 0.0225973856f},
        {-0.00200380874f, -0.000377548567f, -4.87679936e-05f, -6.58567069e-06f, -7.0640283e-07f,
         -8.34537772e-08f, -0.0197999571f, -0.00860075001f},
        {0.000613193435f, 9.57832963e-05f, 9.53843028e-06f, 9.76164756e-07f, 7.50333413e-08f,
         6.31142827e-09f, 0.00755704008f, 0.00304118823f},
        {-0.000184966033f, -2.39764904e-05f, -1.96674591e-06f, -1.48455257e-07f, -8.65694449e-09f,
         -4.98326491e-10f, -0.00270132022f, -0.00102250499f},
        {4.97296824e-05f, 5.49248716e-06f, 3.74130309e-07f, 2.07387636e-08f, 8.64161076e-10f,
         3.62689913e-11f, 0.00090967922f, 0.00032389749f}};
    const V(f) half = V(set)(-0.5f);
    V(f) a = V(min)(V(set)(14.7f), V(abs)(x)), square = V(mul)(a, a), n, low, high, p, w, rest;
    high = V(exp_parts)(V(mul)(square, half), &n, &low);
    low = V(fma)(V(mul)(V(fma)(a, a, V(neg)(square)), half), V(add)(high, low), low);
    p = V(piecewise)(rows, 8, V(piece)(a, 1.25f, 22), a);
    w = V(mul)(p, a);
    rest = V(fma)(w, low, V(mul)(V(fma)(p, a, V(neg)(w)), high));
    p = V(scalef)(V(fma)(w, high, rest), n);
    return V(select)(V(lt)(x, V(zero)()), V(neg)(p), V(sub)(x, p));
}
