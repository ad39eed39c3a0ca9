/* Convolutions: the kernels that dvt_simd_conv.h describes. */
static void V(conv_gather)(float *dst, int64_t dst_k, const float *src, const int64_t *at,
                           int64_t taps, int64_t count) {
    const int64_t whole = (count - 1) / DVTI_PART_F * DVTI_PART_F;
    const V(p_first_type) first = V(p_first)(count - whole);
    int64_t k, i;
    for (k = 0; k < taps; k++, dst += dst_k) {
        const float *from = src + at[k];
        for (i = 0; i < whole; i += DVTI_PART_F)
            V(p_store)(dst + i, V(p_load)(from + i));
        V(p_store)(dst + whole, V(p_load_first)(from + whole, first));
    }
}

static void V(conv_scatter)(float *dst, const int64_t *at, const float *src, int64_t src_k,
                            int64_t taps, int64_t channels, int64_t count) {
    const int64_t whole = (count - 1) / DVTI_PART_F * DVTI_PART_F;
    const V(p_first_type) first = V(p_first)(count - whole);
    int64_t tap, channel, i;
    for (tap = 0; tap < taps; tap++)
        for (channel = 0; channel < channels; channel++) {
            const int64_t k = channel * taps + tap;
            const float *from = src + k * src_k;
            float *to = dst + at[k];
            for (i = 0; i < whole; i += DVTI_PART_F)
                V(p_store)(to + i, V(p_add)(V(p_load)(to + i), V(p_load)(from + i)));
            V(p_store)
            (to + whole, V(p_add)(V(p_load)(to + whole), V(p_load_first)(from + whole, first)));
        }
}

/* `vectors` of sums of one row; of the last one, n lanes exist. */
DVTI_INLINE void V(conv_filter_piece)(const int vectors, const dvti_conv_plane *p,
                                      const float *src, float *y, const float *w, float start,
                                      int64_t n) {
    V(f) sum[4], factor;
    int64_t k;
    int j;
    DVTI_UNROLL for (j = 0; j < vectors; j++) sum[j] = V(set)(start);
    for (k = 0; k < p->taps; k++) {
        const float *from = src + p->at[k];
        factor = V(set)(w[k]);
        DVTI_UNROLL for (j = 0; j < vectors; j++) sum[j] =
            V(fma)(factor, n < 16 ? V(load_n)(from + 16 * j, n) : V(load)(from + 16 * j), sum[j]);
    }
    DVTI_UNROLL for (j = 0; j < vectors; j++) if (n < 16) V(store_n)(y + 16 * j, n, sum[j]);
    else V(store)(y + 16 * j, sum[j]);
}

static void V(conv_filter)(const dvti_conv_plane *p, float *y, const float *w, float start) {
    int64_t r, j;
    for (r = 0; r < p->rows; r++) {
        const float *src = p->src + r * p->src_row;
        float *to = y + r * p->y_row;
        for (j = 0; p->cols - j >= 64; j += 64)
            V(conv_filter_piece)(4, p, src + j, to + j, w, start, 16);
        for (; p->cols - j >= 16; j += 16)
            V(conv_filter_piece)(1, p, src + j, to + j, w, start, 16);
        if (j < p->cols)
            V(conv_filter_piece)(1, p, src + j, to + j, w, start, p->cols - j);
    }
}

/* Some taps, whose sums stay in registers. */
DVTI_INLINE void V(conv_correlate_taps)(const int taps, const dvti_conv_plane *p,
                                        const int64_t *at, const float *y, float *sums) {
    V(f) sum[4], factor;
    int64_t r, j;
    int k;
    DVTI_UNROLL for (k = 0; k < taps; k++) sum[k] = V(load)(sums + 16 * k);
    for (r = 0; r < p->rows; r++) {
        const float *src = p->src + r * p->src_row, *row = y + r * p->y_row;
        for (j = 0; p->cols - j >= 16; j += 16) {
            factor = V(load)(row + j);
            DVTI_UNROLL for (k = 0; k < taps; k++) sum[k] =
                V(fma)(factor, V(load)(src + at[k] + j), sum[k]);
        }
        if (j < p->cols) {
            factor = V(load_n)(row + j, p->cols - j);
            DVTI_UNROLL for (k = 0; k < taps; k++) sum[k] =
                V(fma)(factor, V(load_n)(src + at[k] + j, p->cols - j), sum[k]);
        }
    }
    DVTI_UNROLL for (k = 0; k < taps; k++) V(store)(sums + 16 * k, sum[k]);
}

static void V(conv_correlate)(const dvti_conv_plane *p, const float *y, float *sums) {
    int64_t k = 0;
    for (; p->taps - k >= 4; k += 4)
        V(conv_correlate_taps)(4, p, p->at + k, y, sums + 16 * k);
    for (; k < p->taps; k++)
        V(conv_correlate_taps)(1, p, p->at + k, y, sums + 16 * k);
}

static const dvti_simd_conv V(conv_kernels) = {V(conv_gather), V(conv_scatter), V(conv_filter),
                                               V(conv_correlate), &V(wg_table)};
