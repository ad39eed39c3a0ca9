/* The random generators Philox 4x32-10, Threefry 2x32-20 and MT19937, as functions on words. */
#include "1_base/dvt_rng.h"

DVTI_FN void dvti_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    int round;
    for (round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

DVTI_FN void dvti_threefry2x32(const uint32_t key[2], const uint32_t counter[2], uint32_t out[2]) {
    static const int turns[8] = {13, 15, 26, 6, 17, 29, 16, 24};
    uint32_t schedule[3], x0, x1;
    int i, r;
    schedule[0] = key[0];
    schedule[1] = key[1];
    schedule[2] = key[0] ^ key[1] ^ 0x1BD11BDAu;
    x0 = counter[0] + schedule[0];
    x1 = counter[1] + schedule[1];
    for (i = 0; i < 5; i++) {
        for (r = 0; r < 4; r++) {
            int turn = turns[4 * (i & 1) + r];
            x0 += x1;
            x1 = (x1 << turn | x1 >> (32 - turn)) ^ x0;
        }
        x0 += schedule[(i + 1) % 3];
        x1 += schedule[(i + 2) % 3] + (uint32_t)(i + 1);
    }
    out[0] = x0;
    out[1] = x1;
}

/* ---- MT19937 ---- */
DVTI_FN void dvti_mt19937_seed(dvti_mt19937 *state, uint32_t seed) {
    uint32_t *s = state->word;
    int i;
    s[0] = seed;
    for (i = 1; i < DVTI_MT19937_WORDS; i++)
        s[i] = 1812433253u * (s[i - 1] ^ s[i - 1] >> 30) + (uint32_t)i;
    state->at = DVTI_MT19937_WORDS;
}

static void dvti_mt19937_refill(dvti_mt19937 *state) {
    uint32_t *s = state->word;
    int n = DVTI_MT19937_WORDS, i;
    for (i = 0; i < n; i++) {
        uint32_t y = (s[i] & 0x80000000u) | (s[(i + 1) % n] & 0x7fffffffu);
        s[i] = s[(i + 397) % n] ^ y >> 1 ^ (y & 1u ? 0x9908b0dfu : 0u);
    }
    state->at = 0;
}

DVTI_FN uint32_t dvti_mt19937_next(dvti_mt19937 *state) {
    uint32_t y;
    if (state->at >= DVTI_MT19937_WORDS)
        dvti_mt19937_refill(state);
    y = state->word[state->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* ---- conversion of random words ---- */
DVTI_FN uint64_t dvti_mulhi64(uint64_t a, uint64_t b) {
    uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    uint64_t middle = ah * bl + (al * bl >> 32), other = al * bh + (uint32_t)middle;
    return ah * bh + (middle >> 32) + (other >> 32);
}

DVTI_FN uint32_t dvti_jax_word(const uint32_t key[2], int64_t n, int64_t j) {
    const int64_t block = 0xffffffff;
    uint32_t counter[2], out[2], own[2];
    int64_t blocks = n / block, half;
    own[0] = key[0];
    own[1] = key[1];
    if (blocks) { /* one key per block, and one for the rest */
        int64_t at = j / block, words = 2 * (blocks + 1);
        own[0] = dvti_jax_word(key, words, 2 * at);
        own[1] = dvti_jax_word(key, words, 2 * at + 1);
        n = at < blocks ? block : n - blocks * block;
        j -= at * block;
    }
    half = (n + 1) / 2;
    counter[0] = (uint32_t)(j < half ? j : j - half);
    counter[1] = counter[0] + (uint32_t)half;
    if ((int64_t)counter[0] + half >= n) /* the padding */
        counter[1] = 0;
    dvti_threefry2x32(own, counter, out);
    return out[j < half ? 0 : 1];
}

DVTI_FN uint64_t dvti_jax_bits(const uint32_t key[2], int64_t n, int64_t e, int width) {
    int in_word = 32 / width;
    if (width == 64)
        return (uint64_t)dvti_jax_word(key, 2 * n, e) << 32 | dvti_jax_word(key, 2 * n, n + e);
    if (width == 32)
        return dvti_jax_word(key, n, e);
    return dvti_jax_word(key, (n + in_word - 1) / in_word, e / in_word) >> width * (e % in_word) &
           ((1u << width) - 1);
}

/* ---- the inverse error function: polynomials in w = -log(1 - x*x); tails in sqrt(w) ---- */
DVTI_FN float dvti_erfinv_f32(float x) {
    static const float middle[9] = {2.81022636e-08f,  3.43273939e-07f, -3.5233877e-06f,
                                    -4.39150654e-06f, 0.00021858087f,  -0.00125372503f,
                                    -0.00417768164f,  0.246640727f,    1.50140941f};
    static const float tail[9] = {-0.000200214257f, 0.000100950558f, 0.00134934322f,
                                  -0.00367342844f,  0.00573950773f,  -0.0076224613f,
                                  0.00943887047f,   1.00167406f,     2.83297682f};
    float w = -log1pf(-x * x), p;
    const float *c = w < 5 ? middle : tail;
    int i;
    if (fabsf(x) >= 1)
        return x > 0 ? (float)HUGE_VAL : -(float)HUGE_VAL;
    w = w < 5 ? w - 2.5f : sqrtf(w) - 3;
    p = c[0];
    for (i = 1; i < 9; i++)
        p = c[i] + p * w;
    return p * x;
}

DVTI_FN double dvti_erfinv_f64(double x) {
    static const double middle[23] = {
        -3.6444120640178196996e-21, -1.685059138182016589e-19,  1.2858480715256400167e-18,
        1.115787767802518096e-17,   -1.333171662854620906e-16,  2.0972767875968561637e-17,
        6.6376381343583238325e-15,  -4.0545662729752068639e-14, -8.1519341976054721522e-14,
        2.6335093153082322977e-12,  -1.2975133253453532498e-11, -5.4154120542946279317e-11,
        1.051212273321532285e-09,   -4.1126339803469836976e-09, -2.9070369957882005086e-08,
        4.2347877827932403518e-07,  -1.3654692000834678645e-06, -1.3882523362786468719e-05,
        0.0001867342080340571352,   -0.00074070253416626697512, -0.0060336708714301490533,
        0.24015818242558961693,     1.6536545626831027356};
    static const double tail[19] = {
        2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07,
        1.8239629214389227755e-08, 1.5027403968909827627e-06, -4.013867526981545969e-06,
        2.9234449089955446044e-06, 1.2475304481671778723e-05, -4.7318229009055733981e-05,
        6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
        0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066,
        -0.0037512085075692412107, 0.005370914553590063617,   1.0052589676941592334,
        3.0838856104922207635};
    static const double far_tail[17] = {
        -2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,
        -3.7894654401267369937e-09, 7.6157012080783393804e-09,  -1.4960026627149240478e-08,
        2.9147953450901080826e-08,  -6.7711997758452339498e-08, 2.2900482228026654717e-07,
        -9.9298272942317002539e-07, 4.5260625972231537039e-06,  -1.9681778105531670567e-05,
        7.5995277030017761139e-05,  -0.00021503011930044477347, -0.00013871931833623122026,
        1.0103004648645343977,      4.8499064014085844221};
    double w = -log((1 - x) * (1 + x)), p; /* 1 - x * x would lose precision in the tails */
    const double *c = w < 6.25 ? middle : w < 16 ? tail : far_tail;
    int n = w < 6.25 ? 23 : w < 16 ? 19 : 17, i;
    if (fabs(x) >= 1)
        return x > 0 ? HUGE_VAL : -HUGE_VAL;
    w = w < 6.25 ? w - 3.125 : sqrt(w) - (w < 16 ? 3.25 : 5.0);
    p = c[0];
    for (i = 1; i < n; i++)
        p = c[i] + p * w;
    return p * x;
}
