/* tanh, erf and gelu by pieces: the size of the argument selects one of eight polynomials, which
   costs less than a division. Needs exp.inl; see basics.inl. The including file also defines
   V(lookup)(table, i), the floats table[i & 7].

     center[8]            the center of each piece
     rows[k][8]           the coefficient of order k of each piece
                     ^
                     +--  one V(lookup) per row selects the piece of every lane */

/* Returns the polynomial in t whose coefficient of order k is rows[k]; `at` is the piece. */
DVTI_INLINE V(f) V(piecewise)(const float (*rows)[8], int degree, V(i) at, V(f) t) {
    V(f) p = V(lookup)(rows[degree], at);
    int k;
    DVTI_REPEAT(8)
    for (k = degree - 1; k >= 0; k--)
        p = V(fma)(p, t, V(lookup)(rows[k], at));
    return p;
}

/* Returns the piece of a. Pieces grow with a: there is one for each bit pattern of the argument,
   a + offset or a^2 + offset, above the lowest `shift` bits. */
DVTI_INLINE V(i) V(piece)(V(f) a, int shift) {
    return V(isar)(V(as_i)(a), shift);
}

/* The first piece has center 0 and constant 0: small results are accurate. */
DVTI_INLINE V(f) V(tanh)(V(f) x) {
    static const float center[8] = {1.75292969f, 2.75878906f, 4.2421875f,   6.23828125f,
                                    8.2734375f,  0,           0.498535156f, 0.997070312f};
    static const float rows[8][8] = {
        {0.941708028f, 0.992000997f, 0.999586761f, 0.999992371f, 0.999999881f, 0, 0.460964352f,
         0.760361016f},
        {0.113186024f, 0.0159340221f, 0.000826324394f, 1.52595767e-05f, 2.60497245e-07f, 1,
         0.787511885f, 0.421851128f},
        {-0.106584825f, -0.0158065688f, -0.000826675096f, -1.52730699e-05f, -2.60745082e-07f,
         -5.56744482e-08f, -0.36301443f, -0.320759565f},
        {0.062642917f, 0.0103687085f, 0.000550490222f, 1.0177986e-05f, 1.73933842e-07f,
         -0.333329886f, -0.0951706916f, 0.10327626f},
        {-0.0235310663f, -0.00501688989f, -0.000271336699f, -5.02099874e-06f, -8.57305054e-08f,
         -7.87731406e-05f, 0.164834082f, 0.0284267869f},
        {0.0037664345f, 0.00187577412f, 0.00010858506f, 2.01735133e-06f, 3.40382265e-08f,
         0.134176344f, -0.0266240723f, -0.0466639772f},
        {0.00236486457f, -0.000539583329f, -4.1482519e-05f, -7.8081132e-07f, -1.3326896e-08f,
         -0.00440793857f, -0.0496536233f, 0.0180027802f},
        {-0.00206195097f, 0.000100672674f, 1.14067743e-05f, 2.17120942e-07f, 3.9794763e-09f,
         -0.0442735553f, 0.0260494854f, 0.00305594318f}};
    V(f) a = V(min)(V(set)(9.1f), V(abs)(x));
    V(i) at = V(piece)(V(add)(a, V(set)(0.75f)), 22);
    a = V(piecewise)(rows, 7, at, V(sub)(a, V(lookup)(center, at)));
    return V(bit_or)(V(sign_bit)(x), a);
}

/* The centers are multiples of a constant. The lowest bits of n have the number of the nearest. The
   first piece is t + t p(t); the constants of the others exceed t. */
DVTI_INLINE V(f) V(erf)(V(f) x) {
    static const float rows[7][8] = {
        {0, 0.54193002f, 0.86220628f, 0.973991573f, 0.997003675f, 0.999792874f, 0.999991477f,
         0.999999821f},
        {0.128379166f, 0.856825709f, 0.375149906f, 0.0947087184f, 0.0137863606f, 0.00115716876f,
         5.60102271e-05f, 1.56364308e-06f},
        {-1.0749111e-06f, -0.449570596f, -0.393678159f, -0.149079576f, -0.0289344341f,
         -0.00303572719f, -0.000176314759f, -5.7417983e-06f},
        {-0.376078248f, -0.128380015f, 0.150309384f, 0.124895729f, 0.0358984135f, 0.0049209767f,
         0.00035031655f, 1.34270886e-05f},
        {-0.000789734302f, 0.183497623f, 0.052392818f, -0.0485786237f, -0.0280280318f,
         -0.00544704171f, -0.000493468717f, -2.28114059e-05f},
        {0.118717216f, 0.00084631081f, -0.0655083731f, -0.00755346427f, 0.0124903601f,
         0.00431882124f, 0.000546965515f, 3.26932604e-05f},
        {-0.0203297306f, -0.0478757694f, 0.00847642124f, 0.0163827557f, -0.00122824276f,
         -0.00224740733f, -0.000427149906f, -3.27254784e-05f}};
    const V(f) shift = V(set)(12582912.f); /* 1.5 * 2^23 */
    V(f) a = V(min)(V(set)(3.925f), V(abs)(x)), n = V(fma)(a, V(set)(1.90587461f), shift), t;
    V(i) at = V(as_i)(n);
    t = V(fnma)(V(sub)(n, shift), V(set)(0.524693489f), a);
    a = V(piecewise)(rows + 1, 5, at, t);
    a = V(fma)(a, t, V(max)(t, V(lookup)(rows[0], at)));
    return V(bit_or)(V(sign_bit)(x), a);
}

/* Computes a = |x| times the lower tail of the normal distribution at -a; for positive x, x minus
   that. The tail is exp(-a^2 / 2) times a polynomial. The rounding errors of the square, the
   exponential and the product are kept until the end. */
DVTI_INLINE V(f) V(gelu)(V(f) x) {
    static const float center[8] = {1.1432693f,  2.05492187f, 3.19098687f, 4.66193438f,
                                    6.73280478f, 9.57972145f, 13.5495882f, 0.357006073f};
    static const float rows[8][8] = {
        {0.243103012f, 0.164719492f, 0.115262516f, 0.0820844397f, 0.0580245666f, 0.0412047505f,
         0.029285308f, 0.384267777f},
        {-0.121010073f, -0.0604565926f, -0.031141106f, -0.0162700079f, -0.00827419944f,
         -0.00421224209f, -0.00213841465f, -0.261756361f},
        {0.0523780659f, 0.0202429853f, 0.00794584118f, 0.00311737391f, 0.00115800288f,
         0.000426324463f, 0.000155336733f, 0.145409822f},
        {-0.0203759614f, -0.00628627464f, -0.0019287027f, -0.000579018728f, -0.00015920942f,
         -4.27312661e-05f, -1.12258494e-05f, -0.0699481294f},
        {0.00726778992f, 0.00183073035f, 0.000447666534f, 0.000104444487f, 2.15046985e-05f,
         4.23887468e-06f, 8.06392052e-07f, 0.0300999936f},
        {-0.00241253991f, -0.000504791387f, -9.98416799e-05f, -1.83596858e-05f, -2.85846045e-06f,
         -4.17005936e-07f, -5.77682613e-08f, -0.0118368724f},
        {0.000776209228f, 0.000136146322f, 2.222898e-05f, 3.2778571e-06f, 3.92885994e-07f,
         4.2875989e-08f, 4.34468417e-09f, 0.00443397835f},
        {-0.000226512086f, -3.33096723e-05f, -4.6961909e-06f, -5.44320244e-07f, -5.15238803e-08f,
         -4.14711421e-09f, -2.99012926e-10f, -0.00151007785f}};
    const V(f) half = V(set)(-0.5f);
    V(f) a = V(min)(V(set)(14.7f), V(abs)(x)), square = V(mul)(a, a), t, low, high, p, w, rest;
    V(i) at;
    t = V(exp_round)(V(mul)(square, half), DVTI_LOG2E, DVTI_EXP_BIAS_BELOW, &at);
    high = V(exp_power)(at);
    low = V(mul)(high, V(exp_reduce)(V(mul)(square, half), t, at));
    low = V(fma)(V(mul)(V(fma)(a, a, V(neg)(square)), half), V(add)(high, low), low);
    at = V(piece)(V(add)(square, V(set)(1.5f)), 23);
    p = V(piecewise)(rows, 7, at, V(sub)(a, V(lookup)(center, at)));
    w = V(mul)(p, a);
    rest = V(fma)(w, low, V(mul)(V(fma)(p, a, V(neg)(w)), high));
    p = V(exp_scale_below)(V(fma)(w, high, rest), t);
    return V(select)(V(lt)(x, V(zero)()), V(neg)(p), V(sub)(x, p));
}
