/* The convolution kernels that dvt_simd_conv.h describes. V(conv_correlate) splits each row by
   lane; a register of sums covers DVTI_REG_F of the 16 lanes and each pass over all images fills
   one such group:

     columns of y and x   0 .. 15 | 16 .. 31 | 32 .. 47
     lane                 0 .. 15    0 .. 15    0 .. 15
     sums[o][k]          [0 .. 15] += y[o][j] * x[at[k] + j], lane j % 16 */
static void V(conv_gather)(float *dst, int64_t dst_k, const float *src, const int64_t *at,
                           int64_t taps, int64_t count) {
    const int64_t whole = (count - 1) / DVTI_REG_F * DVTI_REG_F;
    const V(p_first_type) first = V(p_first)(count - whole);
    int64_t k, i;
    for (k = 0; k < taps; k++, dst += dst_k) {
        const float *from = src + at[k];
        for (i = 0; i < whole; i += DVTI_REG_F)
            V(p_store)(dst + i, V(p_load)(from + i));
        V(p_store)(dst + whole, V(p_load_first)(from + whole, first));
    }
}

static void V(conv_scatter)(float *dst, const int64_t *at, const float *src, int64_t src_k,
                            int64_t taps, int64_t channels, int64_t count) {
    const int64_t whole = (count - 1) / DVTI_REG_F * DVTI_REG_F;
    const V(p_first_type) first = V(p_first)(count - whole);
    int64_t tap, channel, i;
    for (tap = 0; tap < taps; tap++)
        for (channel = 0; channel < channels; channel++) {
            const int64_t k = channel * taps + tap;
            const float *from = src + k * src_k;
            float *to = dst + at[k];
            for (i = 0; i < whole; i += DVTI_REG_F)
                V(p_store)(to + i, V(p_add)(V(p_load)(to + i), V(p_load)(from + i)));
            V(p_store)
            (to + whole, V(p_add)(V(p_load)(to + whole), V(p_load_first)(from + whole, first)));
        }
}

/* Computes `vectors` vectors of one row of results. The last one has n lanes. */
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

#if DVTI_REGS == 1 || defined(DVTI_NEON)
#define DVTI_OUTS 6
#else
#define DVTI_OUTS 3
#endif
#define DVTI_WHOLE_COLUMNS (DVTI_REGS == 4) /* masked loads take longer */
#define DVTI_TAPS 4

/* Adds the products of one register of columns. `whole`: all its columns exist. */
DVTI_INLINE void V(conv_correlate_step)(const int most, const bool whole, const dvti_conv_plane *p,
                                        const float *src, const int64_t *at, int64_t taps,
                                        const float *from, int64_t outs, int64_t cols,
                                        V(pf) (*sum)[DVTI_TAPS]) {
    const V(p_first_type) there = V(p_first)(cols);
    V(pf) row[DVTI_OUTS], x;
    int i, k;
    DVTI_UNROLL
    for (i = 0; i < most; i++) {
        const float *y = from + DVTI_MIN(i, outs - 1) * p->y_out;
        row[i] = whole ? V(p_load)(y) : V(p_load_first)(y, there);
    }
    DVTI_UNROLL
    for (k = 0; k < DVTI_TAPS; k++) {
        x = whole ? V(p_load)(src + at[DVTI_MIN(k, taps)])
                  : V(p_load_first)(src + at[DVTI_MIN(k, taps)], there);
        DVTI_UNROLL
        for (i = 0; i < most; i++)
            sum[i][k] = V(p_fma)(row[i], x, sum[i][k]);
    }
}

/* Sums some output channels and taps in registers, one register of the 16 lanes after the other. If
   there are fewer channels or taps, the last one is computed again. */
DVTI_INLINE void V(conv_correlate_tile)(const int most, const dvti_conv_plane *p, int64_t tap,
                                        const float *y, int64_t outs, float *sums) {
    V(pf) sum[DVTI_OUTS][DVTI_TAPS];
    const int64_t *at = p->at + tap, taps = p->taps - tap - 1;
    int64_t lane, image, r, left;
    int i, k;
    for (lane = 0; lane < 16; lane += DVTI_REG_F) {
        DVTI_UNROLL
        for (i = 0; i < most; i++) {
            DVTI_UNROLL
            for (k = 0; k < DVTI_TAPS; k++)
                sum[i][k] = V(p_load)(sums + (DVTI_MIN(i, outs - 1) * p->taps + tap +
                                              DVTI_MIN(k, taps)) *
                                                 16 +
                                      lane);
        }
        for (image = 0; image < p->images; image++)
            for (r = 0; r < p->rows; r++) {
                const float *src = p->src + image * p->src_image + r * p->src_row + lane;
                const float *from = y + image * p->y_image + r * p->y_row + lane;
                left = p->cols - lane;
                if (DVTI_WHOLE_COLUMNS)
                    for (; left >= DVTI_REG_F; left -= 16, src += 16, from += 16)
                        V(conv_correlate_step)
                (most, true, p, src, at, taps, from, outs, DVTI_REG_F, sum);
                for (; left > -lane; left -= 16, src += 16, from += 16)
                    V(conv_correlate_step)
                (most, false, p, src, at, taps, from, outs, left, sum);
            }
        DVTI_UNROLL
        for (i = 0; i < most; i++) {
            DVTI_UNROLL
            for (k = 0; k < DVTI_TAPS; k++)
                V(p_store)
            (sums + (DVTI_MIN(i, outs - 1) * p->taps + tap + DVTI_MIN(k, taps)) * 16 + lane,
             sum[i][k]);
        }
    }
}

static void V(conv_correlate)(const dvti_conv_plane *p, const float *y, int64_t outs,
                              float *sums) {
    int64_t k, o, mine;
    for (o = 0; o < outs; o += mine) {
        const int64_t groups = (outs - o + DVTI_OUTS - 1) / DVTI_OUTS;
        mine = (outs - o + groups - 1) / groups;
        for (k = 0; k < p->taps; k += DVTI_TAPS)
            if (mine == 1)
                V(conv_correlate_tile)(1, p, k, y + o * p->y_out, 1, sums + o * p->taps * 16);
            else
                V(conv_correlate_tile)
        (DVTI_OUTS, p, k, y + o * p->y_out, mine, sums + o * p->taps * 16);
    }
}
#undef DVTI_OUTS
#undef DVTI_WHOLE_COLUMNS
#undef DVTI_TAPS

static void V(conv_reduce_lanes)(float *to, int64_t step, const float *sums, int64_t n) {
    int64_t i;
    for (i = 0; i < n; i++)
        to[i * step] = V(lanes_add)(V(load)(sums + 16 * i));
}

static void V(conv_copy_rows)(float *dst, int64_t dst_row, const float *src, int64_t src_row,
                        int64_t rows, int64_t count) {
    const int64_t whole = (count - 1) / DVTI_REG_F * DVTI_REG_F;
    const V(p_first_type) first = V(p_first)(count - whole);
    int64_t r, i;
    for (r = 0; r < rows; r++, dst += dst_row, src += src_row) {
        for (i = 0; i < whole; i += DVTI_REG_F)
            V(p_store)(dst + i, V(p_load)(src + i));
        V(p_store_first)(dst + whole, first, V(p_load_first)(src + whole, first));
    }
}

static const dvti_simd_conv V(conv_kernels) = {
    V(conv_gather),       V(conv_scatter),   V(conv_filter), V(conv_correlate),
    V(conv_reduce_lanes), V(conv_copy_rows), &V(winograd_table)};
