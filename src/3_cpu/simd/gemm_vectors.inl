/* Products with one vector or with a few, for one element type. gemm_type.inl includes it. */

/* Adds `depth` rows of w to y, whose vectors are whole. */
DVTI_INLINE void G(combine_rows)(const int depth, DVTI_E *y, int64_t cols, const DVTI_E *x,
                                 int64_t x_k, const DVTI_E *w, int64_t w_row) {
    DVTI_VECTOR factor[8], sum;
    int64_t j;
    int k;
    DVTI_UNROLL
    for (k = 0; k < depth; k++)
        factor[k] = W(set)(x[k * x_k]);
    for (j = 0; j < cols; j += DVTI_WHOLE) {
        sum = W(load)(y + j);
        DVTI_UNROLL
        for (k = 0; k < depth; k++)
            sum = W(fma)(factor[k], W(load)(w + k * w_row + j), sum);
        W(store)(y + j, sum);
    }
}

static void G(combine)(void *y, int64_t cols, int64_t depth, const void *x, int64_t x_k,
                       const void *w, int64_t w_row) {
    const int64_t whole = cols - cols % DVTI_WHOLE;
    const DVTI_E *factors = (const DVTI_E *)x, *row = (const DVTI_E *)w;
    DVTI_E *to = (DVTI_E *)y;
    int64_t k = 0;
    DVTI_VECTOR sum = W(zero)();
    memset(to, 0, (size_t)whole * sizeof *to);
    for (; k + 8 <= depth; k += 8)
        G(combine_rows)(8, to, whole, factors + k * x_k, x_k, row + k * w_row, w_row);
    for (; k < depth; k++)
        G(combine_rows)(1, to, whole, factors + k * x_k, x_k, row + k * w_row, w_row);
    if (whole == cols)
        return;
    for (k = 0; k < depth; k++)
        sum =
            W(fma)(W(set)(factors[k * x_k]), W(load_n)(row + k * w_row + whole, cols - whole), sum);
    W(store_n)(to + whole, cols - whole, sum);
}

DVTI_INLINE DVTI_REGISTER G(add_registers)(const DVTI_REGISTER *sum) {
#if DVTI_REGS == 1
    return *sum;
#elif DVTI_REGS == 2
    return P(add)(sum[0], sum[1]);
#else
    return P(add)(P(add)(sum[0], sum[2]), P(add)(sum[1], sum[3]));
#endif
}

/* Sets lane[i] = the reduced lanes of register i. Each round adds the lower and the upper half of
   all registers and puts two results into one (transpose_reduce.inl). */
DVTI_INLINE void G(reduce_lanes)(const int n, const DVTI_REGISTER *regs, DVTI_E *lane) {
    DVTI_REGISTER v[DVTI_LANES];
    int left, i;
    DVTI_UNROLL
    for (i = 0; i < DVTI_LANES; i++)
        v[i] = regs[i < n ? i : 0];
    DVTI_UNROLL
    for (left = DVTI_LANES / 2; left; left /= 2) {
        DVTI_UNROLL
        for (i = 0; i < DVTI_LANES / 2; i++)
            if (i < left && i < n)
                v[i] = P(add)(P(zip_low)(v[i], v[i + left]), P(zip_high)(v[i], v[i + left]));
    }
    P(store)(lane, v[0]);
}

#if DVTI_REGS == 2
/* Sums one of the two registers of each vector: the sums of twice as many dot products then fit in
   registers, and each load serves several. GCC would load x again for each row. */
DVTI_INLINE void G(dots_half)(const int rows, const int cols, const int half, const DVTI_E **w,
                              const DVTI_E **x, int64_t whole,
                              DVTI_REGISTER (*to)[6][DVTI_REGS]) {
    DVTI_REGISTER sum[4][6], factor[6], row;
    int64_t k;
    int r, c;
    DVTI_UNROLL
    for (r = 0; r < rows; r++) {
        DVTI_UNROLL
        for (c = 0; c < cols; c++)
            sum[r][c] = P(set)(0);
    }
    for (k = half * DVTI_LANES; k < whole; k += DVTI_WHOLE) {
        DVTI_UNROLL
        for (c = 0; c < cols; c++) {
            factor[c] = P(load)(x[c] + k);
#if defined(__GNUC__)
            __asm__("" : "+x"(factor[c]));
#endif
        }
        DVTI_UNROLL
        for (r = 0; r < rows; r++) {
            row = P(load)(w[r] + k);
            DVTI_UNROLL
            for (c = 0; c < cols; c++)
                sum[r][c] = P(fma)(factor[c], row, sum[r][c]);
        }
    }
    DVTI_UNROLL
    for (r = 0; r < rows; r++) {
        DVTI_UNROLL
        for (c = 0; c < cols; c++)
            to[r][c][half] = sum[r][c];
    }
}
#endif

/* Computes rows x cols dot products. At the edges the last row or column is computed again. */
DVTI_INLINE void G(dots_tile)(const int rows, const int cols, const dvti_dots *p, int64_t i,
                              int64_t j) {
    const int64_t last_row = DVTI_MIN(p->rows - i, rows) - 1;
    const int64_t last_col = DVTI_MIN(p->cols - j, cols) - 1;
    const int64_t n = p->depth % DVTI_WHOLE, whole = p->depth - n;
    const DVTI_E *w[4], *x[6];
    const int dots = rows * cols;
    DVTI_REGISTER sum[4][6][DVTI_REGS], factor[6], row, regs[24];
    DVTI_E lane[24 + DVTI_LANES], *y = (DVTI_E *)p->y + i * p->y_row + j * p->y_col;
    int64_t k;
    int r, c, q;
    DVTI_UNROLL
    for (r = 0; r < rows; r++) {
        w[r] = (const DVTI_E *)p->w + (i + DVTI_MIN(r, last_row)) * p->w_row;
        DVTI_UNROLL
        for (c = 0; c < cols; c++) {
            DVTI_UNROLL
            for (q = 0; q < DVTI_REGS; q++)
                sum[r][c][q] = P(set)(0);
        }
    }
    DVTI_UNROLL
    for (c = 0; c < cols; c++)
        x[c] = (const DVTI_E *)p->x + (j + DVTI_MIN(c, last_col)) * p->x_col;
    k = 0;
#if DVTI_REGS == 2
    if (cols > 1) {
        G(dots_half)(rows, cols, 0, w, x, whole, sum);
        G(dots_half)(rows, cols, 1, w, x, whole, sum);
        k = whole;
    }
#endif
    for (; k < whole; k += DVTI_WHOLE) {
        DVTI_UNROLL
        for (q = 0; q < DVTI_REGS; q++) {
            DVTI_UNROLL
            for (c = 0; c < cols; c++)
                factor[c] = P(load)(x[c] + k + q * DVTI_LANES);
            DVTI_UNROLL
            for (r = 0; r < rows; r++) {
                row = P(load)(w[r] + k + q * DVTI_LANES);
                DVTI_UNROLL
                for (c = 0; c < cols; c++)
                    sum[r][c][q] = P(fma)(factor[c], row, sum[r][c][q]);
            }
        }
    }
    if (n) {
        DVTI_UNROLL
        for (q = 0; q < DVTI_REGS; q++) {
            DVTI_UNROLL
            for (c = 0; c < cols; c++)
                factor[c] = P(load_n)(x[c] + k + DVTI_MIN(n, q * DVTI_LANES), n - q * DVTI_LANES);
            DVTI_UNROLL
            for (r = 0; r < rows; r++) {
                row = P(load_n)(w[r] + k + DVTI_MIN(n, q * DVTI_LANES), n - q * DVTI_LANES);
                DVTI_UNROLL
                for (c = 0; c < cols; c++)
                    sum[r][c][q] = P(fma)(factor[c], row, sum[r][c][q]);
            }
        }
    }
    DVTI_UNROLL
    for (r = 0; r < rows; r++) {
        DVTI_UNROLL
        for (c = 0; c < cols; c++)
            regs[r * cols + c] = G(add_registers)(sum[r][c]);
    }
    DVTI_UNROLL
    for (r = 0; r < dots; r += DVTI_LANES)
        G(reduce_lanes)(DVTI_MIN(DVTI_LANES, dots - r), regs + r, lane + r);
    for (r = 0; r <= last_row; r++)
        for (c = 0; c <= last_col; c++)
            y[r * p->y_row + c * p->y_col] = lane[r * cols + c];
}

static void G(dots)(const dvti_dots *p) {
    int64_t i, j;
    if (p->cols == 1)
        for (i = 0; i < p->rows; i += 4)
            G(dots_tile)(4, 1, p, i, 0);
    else
        for (i = 0; i < p->rows; i += DVTI_DOTS_ROWS)
            for (j = 0; j < p->cols; j += DVTI_DOTS_COLS)
                G(dots_tile)(DVTI_DOTS_ROWS, DVTI_DOTS_COLS, p, i, j);
}
