/* Winograd's F(4 x 4, 3 x 3) for convolutions (dvt_simd_conv.h): transforms of 16 tiles at a time.
   Tiles of 6 x 6 inputs overlap by two and give 4 x 4 results:

     one row of x   0 1 2 3 4 5 6 7 8 9        deinterleaved   phase 0:  0 4 8 ..
     tile 0         +---------+                                phase 1:  1 5 9 ..
     tile 1                 +---------+                        phase 2:  2 6 ..
                                                               phase 3:  3 7 ..

     column j of tiles t .. t + 15 is the vector at rows[j % 4 * phase + j / 4 + t]
     v[(6 i + j) * v_k + t]: element (i, j) of the transformed tile t

   The points 0, +-sqrt(1/2), +-sqrt(2) and infinity gave the smallest rounding errors of those
   tried: the RMS error is twice that of direct sums. The usual 0, +-1, +-2 have five times as
   much. */
#define DVTI_ROOT 1.41421356237309505f

DVTI_INLINE void V(winograd_data)(const V(f) *d, V(f) *r) {
    const V(f) e = V(fma)(V(set)(-2.f), d[2], d[4]);
    const V(f) o = V(fma)(V(set)(DVTI_ROOT / 2), d[3], V(mul)(V(set)(-DVTI_ROOT), d[1]));
    const V(f) f = V(fma)(V(set)(-0.5f), d[2], d[4]);
    const V(f) p = V(fma)(V(set)(DVTI_ROOT), d[3], V(mul)(V(set)(-DVTI_ROOT / 2), d[1]));
    r[0] = V(fma)(V(set)(-2.5f), d[2], V(add)(d[0], d[4]));
    r[1] = V(add)(e, o);
    r[2] = V(sub)(e, o);
    r[3] = V(add)(f, p);
    r[4] = V(sub)(f, p);
    r[5] = V(fma)(V(set)(-2.5f), d[3], V(add)(d[1], d[5]));
}

DVTI_INLINE void V(winograd_kernel)(const V(f) *g, V(f) *r) {
    const V(f) e = V(fma)(V(set)(-2 / 3.f), g[0], V(mul)(V(set)(-1 / 3.f), g[2]));
    const V(f) o = V(mul)(V(set)(DVTI_ROOT / 3), g[1]);
    const V(f) f = V(fma)(V(set)(1 / 6.f), g[0], V(mul)(V(set)(1 / 3.f), g[2]));
    const V(f) p = V(mul)(V(set)(DVTI_ROOT / 6), g[1]);
    r[0] = g[0];
    r[1] = V(sub)(e, o);
    r[2] = V(add)(e, o);
    r[3] = V(add)(f, p);
    r[4] = V(sub)(f, p);
    r[5] = g[2];
}

DVTI_INLINE void V(winograd_sums)(const V(f) *m, V(f) *r) {
    const V(f) s = V(add)(m[1], m[2]), d = V(sub)(m[1], m[2]);
    const V(f) t = V(add)(m[3], m[4]), c = V(sub)(m[3], m[4]);
    r[0] = V(add)(V(add)(m[0], s), t);
    r[1] = V(fma)(V(set)(DVTI_ROOT), c, V(mul)(V(set)(DVTI_ROOT / 2), d));
    r[2] = V(fma)(V(set)(2.f), t, V(mul)(V(set)(0.5f), s));
    r[3] = V(fma)(V(set)(2 * DVTI_ROOT), c, V(fma)(V(set)(DVTI_ROOT / 4), d, m[5]));
}

static void V(winograd_deinterleave)(float *dst, int64_t phase, const float *src, int64_t n) {
    int64_t i;
    for (i = 0; i < n; i += 64, src += 64, dst += 16) {
        const V(f) a = V(load)(src), b = V(load)(src + 16), c = V(load)(src + 32),
                   d = V(load)(src + 48);
        const V(f) even = V(even)(a, b), more = V(even)(c, d), odd = V(odd)(a, b),
                   rest = V(odd)(c, d);
        V(store)(dst, V(even)(even, more));
        V(store)(dst + phase, V(even)(odd, rest));
        V(store)(dst + 2 * phase, V(odd)(even, more));
        V(store)(dst + 3 * phase, V(odd)(odd, rest));
    }
}

static void V(winograd_tiles)(float *v, int64_t v_k, const float *rows, int64_t phase,
                              int64_t tiles) {
    V(f) half[36], d[6], r[6];
    int64_t t;
    int i, j;
    for (t = 0; t < tiles; t += 16) {
        for (j = 0; j < 6; j++) {
            const float *from = rows + j % 4 * phase + j / 4 + t;
            DVTI_UNROLL
            for (i = 0; i < 6; i++)
                d[i] = V(load)(from + i * 4 * phase);
            V(winograd_data)(d, r);
            DVTI_UNROLL
            for (i = 0; i < 6; i++)
                half[6 * i + j] = r[i];
        }
        for (i = 0; i < 6; i++) {
            V(winograd_data)(half + 6 * i, r);
            DVTI_UNROLL
            for (j = 0; j < 6; j++)
                V(store)(v + (6 * i + j) * v_k + t, r[j]);
        }
    }
}

static void V(winograd_weights)(float *u, int64_t u_k, const float *g, int64_t g_k, int64_t n) {
    V(f) half[18], d[3], r[6];
    int64_t t;
    int i, j;
    for (t = 0; t < n; t += 16) {
        for (j = 0; j < 3; j++) {
            DVTI_UNROLL
            for (i = 0; i < 3; i++)
                d[i] = V(load)(g + (3 * i + j) * g_k + t);
            V(winograd_kernel)(d, r);
            DVTI_UNROLL
            for (i = 0; i < 6; i++)
                half[3 * i + j] = r[i];
        }
        for (i = 0; i < 6; i++) {
            V(winograd_kernel)(half + 3 * i, r);
            DVTI_UNROLL
            for (j = 0; j < 6; j++)
                V(store)(u + (6 * i + j) * u_k + t, r[j]);
        }
    }
}

static void V(winograd_results)(float *y, int64_t y_row, const float *m, int64_t m_k, int64_t tiles,
                          float start) {
    V(f) half[24], d[6], r[4], low, high, more, rest;
    int64_t t;
    int i, j;
    for (t = 0; t < tiles; t += 16) {
        for (j = 0; j < 6; j++) {
            DVTI_UNROLL
            for (i = 0; i < 6; i++)
                d[i] = V(load)(m + (6 * i + j) * m_k + t);
            V(winograd_sums)(d, r);
            DVTI_UNROLL
            for (i = 0; i < 4; i++)
                half[6 * i + j] = r[i];
        }
        for (i = 0; i < 4; i++) {
            float *to = y + i * y_row + 4 * t;
            V(winograd_sums)(half + 6 * i, r);
            DVTI_UNROLL
            for (j = 0; j < 4; j++)
                r[j] = V(add)(r[j], V(set)(start));
            low = V(zip_low)(r[0], r[2]);
            high = V(zip_high)(r[0], r[2]);
            more = V(zip_low)(r[1], r[3]);
            rest = V(zip_high)(r[1], r[3]);
            V(store)(to, V(zip_low)(low, more));
            V(store)(to + 16, V(zip_high)(low, more));
            V(store)(to + 32, V(zip_low)(high, rest));
            V(store)(to + 48, V(zip_high)(high, rest));
        }
    }
}

static const dvti_simd_winograd V(winograd_table) = {
    V(winograd_deinterleave), V(winograd_tiles), V(winograd_weights), V(winograd_results)};
#undef DVTI_ROOT
