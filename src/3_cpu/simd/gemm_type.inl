/* The kernels of matrix products for one element type. Pasted by gemm.inl with
     DVTI_E     the element, whose dtype is DVTI_OWN     G(name)  the name of this type's `name`
     DVTI_PART  a part, of DVTI_LANES elements           P(word)  the word for parts
     DVTI_VECTOR  a vector                               W(word)  the word for vectors */

#define DVTI_WHOLE (64 / (int64_t)sizeof(DVTI_E)) /* elements of a vector */
#define DVTI_EDGE 128 /* terms of a step at the edge, rows of a strip, rows of dots side by side */
#define DVTI_STRIP 64
#define DVTI_DOTS 4
#define DVTI_SLIM 12

/* Rows times parts of sums stay in registers while k passes by. `rows` is `most` or one less: then the last row is computed twice
   and stored once, which spares the kernels for odd numbers. `tail`: columns of the last part. */
DVTI_INLINE void G(tile)(const int most, const int parts, const dvti_product *p, const DVTI_E *a,
                         const DVTI_E *b, DVTI_E *c, const DVTI_E *start, int64_t rows,
                         int64_t tail) {
    const int64_t a_row = p->a_row, a_k = p->a_k, c_row = p->c_row, depth = p->depth;
    const int64_t last = rows - 1, a_last = last * a_row, *b_k = p->b_k;
    const int end = parts - 1;
    const P(first_type) first = P(first)(tail);
    DVTI_PART sum[6][4], row[4], factor;
    int64_t k;
    int i, j;
    if (start) {
        DVTI_UNROLL
        for (i = 0; i < most; i++) {
            factor = P(set)(start[(i < most - 1 ? i : last) * p->start_row]);
            DVTI_UNROLL
            for (j = 0; j < parts; j++)
                sum[i][j] = factor;
        }
    } else {
        DVTI_UNROLL
        for (i = 0; i < most; i++) {
            const DVTI_E *from = c + (i < most - 1 ? i : last) * c_row;
            DVTI_UNROLL
            for (j = 0; j < end; j++)
                sum[i][j] = P(load)(from + j * DVTI_LANES);
            sum[i][end] = P(load_first)(from + end * DVTI_LANES, first);
        }
    }
    for (k = 0; k < depth; k++) {
        const DVTI_E *at = b + b_k[k];
        DVTI_UNROLL
        for (j = 0; j < end; j++)
            row[j] = P(load)(at + j * DVTI_LANES);
        at += end * DVTI_LANES;
        row[end] = DVTI_MASKED ? P(load_first)(at, first) : P(load)(at);
        DVTI_UNROLL
        for (i = 0; i < most; i++) {
            factor = P(set)(a[i < most - 1 ? i * a_row : a_last]);
            DVTI_UNROLL
            for (j = 0; j < parts; j++)
                sum[i][j] = P(fma)(factor, row[j], sum[i][j]);
        }
        a += a_k;
    }
    DVTI_UNROLL
    for (i = 0; i < most; i++)
        if (i < most - 1 || rows == most) {
            DVTI_UNROLL
            for (j = 0; j < end; j++)
                P(store)(c + i * c_row + j * DVTI_LANES, sum[i][j]);
            P(store_first)(c + i * c_row + end * DVTI_LANES, first, sum[i][end]);
        }
}

typedef void (*G(tile_fn))(const dvti_product *p, const DVTI_E *a, const DVTI_E *b, DVTI_E *c,
                           const DVTI_E *start, int64_t rows, int64_t tail);

#define DVTI_TILE(most, parts)                                                                     \
    static void G(tile_##most##_##parts)(const dvti_product *p, const DVTI_E *a, const DVTI_E *b,  \
                                         DVTI_E *c, const DVTI_E *start, int64_t rows,             \
                                         int64_t tail) {                                           \
        G(tile)(most, parts, p, a, b, c, start, rows, tail);                                       \
    }
DVTI_TILE(2, 1)
DVTI_TILE(2, 2)
#if DVTI_TILE_PARTS == 4
DVTI_TILE(2, 3)
DVTI_TILE(2, 4)
#endif
#if DVTI_TILE_ROWS == 6
DVTI_TILE(4, 1)
DVTI_TILE(6, 1)
DVTI_TILE(4, 2)
DVTI_TILE(6, 2)
#if DVTI_TILE_PARTS == 4
DVTI_TILE(4, 3)
DVTI_TILE(6, 3)
DVTI_TILE(4, 4)
DVTI_TILE(6, 4)
#endif
#endif
#undef DVTI_TILE

/* The kernel for 2 * pairs rows. */
static G(tile_fn) G(tile_of)(int64_t pairs, int64_t parts) {
#if DVTI_TILE_PARTS == 4
#define DVTI_TILE(most)                                                                            \
    (parts == 1   ? G(tile_##most##_1)                                                             \
     : parts == 2 ? G(tile_##most##_2)                                                             \
     : parts == 3 ? G(tile_##most##_3)                                                             \
                  : G(tile_##most##_4))
#else
#define DVTI_TILE(most) (parts == 1 ? G(tile_##most##_1) : G(tile_##most##_2))
#endif
#if DVTI_TILE_ROWS == 6
    return pairs == 1 ? DVTI_TILE(2) : pairs == 2 ? DVTI_TILE(4) : DVTI_TILE(6);
#else
    (void)pairs;
    return DVTI_TILE(2);
#endif
#undef DVTI_TILE
}

/* Asks for what a tile will store, and for the beginnings of the rows of A that follow it, while it multiplies. */
static void G(foresee)(const dvti_product *p, const DVTI_E *a, const DVTI_E *c, int64_t rows,
                       int64_t cols) {
    int64_t i, j;
    for (i = 0; i < rows; i++) {
        for (j = 0; j < cols; j += DVTI_WHOLE)
            DVTI_PREFETCH(c + i * p->c_row + j);
        DVTI_PREFETCH(a + (rows + i) * p->a_row);
    }
}

/* All rows of some columns: in nearly equal groups, so that no thin one is left. */
static void G(column)(const dvti_product *p, const DVTI_E *b, DVTI_E *c, int64_t parts,
                      int64_t tail) {
    const DVTI_E *a = (const DVTI_E *)p->a, *start = (const DVTI_E *)p->start;
    const int64_t pairs = (p->rows + 1) / 2, most = DVTI_TILE_ROWS / 2;
    const int64_t groups = (pairs + most - 1) / most, thin = pairs / groups;
    const int64_t thick = pairs - thin * groups;
    int64_t group, i = 0;
    for (group = 0; group < groups; group++) {
        int64_t mine = thin + (group < thick);
        int64_t rows = DVTI_MIN(2 * mine, p->rows - i);
        if (p->depth >= 128)
            G(foresee)(p, a + i * p->a_row, c + i * p->c_row, rows, parts * DVTI_LANES);
        G(tile_of)
        (mine, parts)(p, a + i * p->a_row, b, c + i * p->c_row,
                      start ? start + i * p->start_row : NULL, rows, tail);
        i += rows;
    }
}

#if !DVTI_MASKED
/* Less than a whole part of columns: B's go into whole vectors first, where reading further does no harm. */
static void G(edge)(const dvti_product *p, const DVTI_E *b, DVTI_E *c, int64_t cols) {
    DVTI_E whole[DVTI_EDGE * DVTI_WHOLE];
    int64_t at[DVTI_EDGE], k, i;
    dvti_product q = *p;
    q.b_k = at;
    for (i = 0; i < DVTI_EDGE; i++)
        at[i] = i * DVTI_WHOLE;
    for (k = 0; k == 0 || k < p->depth; k += DVTI_EDGE) {
        q.depth = DVTI_MIN(p->depth - k, DVTI_EDGE);
        for (i = 0; i < q.depth; i++)
            W(store)(whole + i * DVTI_WHOLE, W(load_n)(b + p->b_k[k + i], cols));
        G(column)(&q, whole, c, (cols + DVTI_LANES - 1) / DVTI_LANES, (cols - 1) % DVTI_LANES + 1);
        q.a = (const DVTI_E *)q.a + DVTI_EDGE * p->a_k;
        q.start = NULL;
    }
}
#endif

#if DVTI_MASKED
/* Half a part of columns, or less, of DVTI_SLIM rows: at that width two instructions take the time of one. */
static void G(slim)(const dvti_product *p, const DVTI_E *a, const DVTI_E *b, DVTI_E *c,
                    const DVTI_E *start, int64_t cols) {
    const int64_t a_row = p->a_row, a_k = p->a_k, c_row = p->c_row, depth = p->depth;
    const int64_t *b_k = p->b_k;
    const P(half_first_type) first = P(half_first)(cols);
    DVTI_HALF sum[DVTI_SLIM], row;
    int64_t k;
    int i, j;
    if (start) {
        DVTI_UNROLL
        for (i = 0; i < DVTI_SLIM; i++)
            sum[i] = P(half_set)(start[i * p->start_row]);
    } else {
        DVTI_UNROLL
        for (i = 0; i < DVTI_SLIM; i++)
            sum[i] = P(half_load_first)(c + i * c_row, first);
    }
    for (k = 0; k < depth; k++) {
        row = P(half_load_first)(b + b_k[k], first);
        DVTI_UNROLL
        for (j = 0; j < DVTI_SLIM; j += 4) {
            const DVTI_E *at = a + j * a_row;
            DVTI_UNROLL
            for (i = 0; i < 4; i++)
                sum[i + j] = P(half_fma)(P(half_set)(at[i * a_row]), row, sum[i + j]);
        }
        a += a_k;
    }
    DVTI_UNROLL
    for (i = 0; i < DVTI_SLIM; i++)
        P(half_store_first)(c + i * c_row, first, sum[i]);
}

static void G(slim_column)(const dvti_product *p, const DVTI_E *b, DVTI_E *c, int64_t cols) {
    const DVTI_E *a = (const DVTI_E *)p->a, *start = (const DVTI_E *)p->start;
    dvti_product rest = *p;
    int64_t i;
    for (i = 0; i + DVTI_SLIM <= p->rows; i += DVTI_SLIM)
        G(slim)
    (p, a + i * p->a_row, b, c + i * p->c_row, start ? start + i * p->start_row : NULL, cols);
    rest.rows -= i;
    rest.a = a + i * p->a_row;
    rest.start = start ? start + i * p->start_row : NULL;
    if (rest.rows)
        G(column)(&rest, b, c + i * p->c_row, 1, cols);
}
#endif

static void G(multiply)(const dvti_product *p) {
    const int64_t width = DVTI_TILE_PARTS * DVTI_LANES;
    int64_t j, parts, cols, tail;
    if (p->rows <= 0)
        return;
    for (j = 0; j < p->cols; j += cols) {
        const DVTI_E *b = (const DVTI_E *)p->b + j / width * p->b_panel + j % width;
        DVTI_E *c = (DVTI_E *)p->c + j;
        cols = DVTI_MIN(p->cols - j, width);
        parts = (cols + DVTI_LANES - 1) / DVTI_LANES;
        tail = cols - (parts - 1) * DVTI_LANES;
#if DVTI_MASKED
        if (tail <= DVTI_LANES / 2 && p->rows >= DVTI_SLIM) {
            if (--parts)
                G(column)(p, b, c, parts, DVTI_LANES);
            G(slim_column)(p, b + parts * DVTI_LANES, c + parts * DVTI_LANES, tail);
            continue;
        }
#else
        if (tail < DVTI_LANES) {
            G(edge)(p, b, c, cols);
            continue;
        }
#endif
        G(column)(p, b, c, parts, tail);
    }
}

/* ---- packing ---- */
static void G(copy)(void *dst, int64_t dst_row, const void *src, dvt_dtype dtype, int64_t src_row,
                    int64_t rows, int64_t cols) {
    int64_t r, c;
    for (r = 0; r < rows; r++)
        for (c = 0; c < cols; c += DVTI_WHOLE)
            W(store)
    ((DVTI_E *)dst + r * dst_row + c, G(fetch)(src, dtype, r * src_row + c, cols - c));
}

/* A square of parts: each round moves the lanes' place by one bit. */
DVTI_INLINE void G(flip)(DVTI_PART *v) {
    DVTI_PART w[DVTI_LANES];
    int round, i;
    DVTI_UNROLL
    for (round = 1; round < DVTI_LANES; round *= 2) {
        DVTI_UNROLL
        for (i = 0; i < DVTI_LANES / 2; i++) {
            w[2 * i] = P(zip_low)(v[i], v[i + DVTI_LANES / 2]);
            w[2 * i + 1] = P(zip_high)(v[i], v[i + DVTI_LANES / 2]);
        }
        DVTI_UNROLL
        for (i = 0; i < DVTI_LANES; i++)
            v[i] = w[i];
    }
}

/* One square, or what an edge leaves of it; of dst, `width` columns are written. By itself, so that its addresses are formed where they
   are needed: inside the loops they would be kept on the stack. */
DVTI_NOINLINE static void G(turn_square)(DVTI_E *dst, int64_t dst_row, const DVTI_E *src,
                                         int64_t src_col, int64_t rows, int64_t cols,
                                         int64_t width) {
    const P(first_type) first = P(first)(rows), part = P(first)(width);
    DVTI_PART v[DVTI_LANES];
    int i;
    DVTI_UNROLL
    for (i = 0; i < DVTI_LANES; i++)
        v[i] = i < cols ? P(load_first)(src + i * src_col, first) : P(set)(0);
    G(flip)(v);
    DVTI_UNROLL
    for (i = 0; i < DVTI_LANES; i++, dst += dst_row)
        if (i < rows) {
            if (width >= DVTI_LANES)
                P(store)(dst, v[i]);
            else
                P(store_first)(dst, part, v[i]);
        }
}

/* `filled` columns of dst are written. */
static void G(turn_own)(DVTI_E *dst, int64_t dst_row, const DVTI_E *src, int64_t src_col,
                        int64_t rows, int64_t cols, int64_t filled) {
    int64_t r, c;
    for (c = 0; c < filled; c += DVTI_LANES)
        for (r = 0; r < rows; r += DVTI_LANES)
            G(turn_square)
    (dst + r * dst_row + c, dst_row, src + c * src_col + r, src_col, rows - r, cols - c,
     filled - c);
}

static void G(turn_exactly)(void *dst, int64_t dst_row, const void *src, int64_t src_col,
                            int64_t rows, int64_t cols) {
    G(turn_own)((DVTI_E *)dst, dst_row, (const DVTI_E *)src, src_col, rows, cols, cols);
}

static int64_t G(filled)(int64_t cols) {
    return (cols + DVTI_WHOLE - 1) / DVTI_WHOLE * DVTI_WHOLE;
}

static void G(turn)(void *dst, int64_t dst_row, const void *src, dvt_dtype dtype, int64_t src_col,
                    int64_t rows, int64_t cols) {
    DVTI_E strip[DVTI_WHOLE * DVTI_STRIP];
    int64_t r, c;
    if (dtype == DVTI_OWN) {
        G(turn_own)
        ((DVTI_E *)dst, dst_row, (const DVTI_E *)src, src_col, rows, cols, G(filled)(cols));
        return;
    }
    for (c = 0; c < cols; c += DVTI_WHOLE)
        for (r = 0; r < rows; r += DVTI_STRIP) {
            int64_t at = c * src_col + r;
            int64_t n_rows = DVTI_MIN(rows - r, DVTI_STRIP),
                    n_cols = DVTI_MIN(cols - c, DVTI_WHOLE);
            G(copy)
            (strip, DVTI_STRIP, (const char *)src + at * dvt_dtype_size(dtype), dtype, src_col,
             n_cols, n_rows);
            G(turn_own)
            ((DVTI_E *)dst + r * dst_row + c, dst_row, strip, DVTI_STRIP, n_rows, n_cols, G(filled)(n_cols));
        }
}

/* ---- vectors ---- */
/* Adds `terms` rows of w to y, whose vectors are whole. */
DVTI_INLINE void G(combine_rows)(const int terms, DVTI_E *y, int64_t cols, const DVTI_E *x,
                                 int64_t x_k, const DVTI_E *w, int64_t w_row) {
    DVTI_VECTOR factor[8], sum;
    int64_t j;
    int k;
    DVTI_UNROLL
    for (k = 0; k < terms; k++)
        factor[k] = W(set)(x[k * x_k]);
    for (j = 0; j < cols; j += DVTI_WHOLE) {
        sum = W(load)(y + j);
        DVTI_UNROLL
        for (k = 0; k < terms; k++)
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

/* Four rows at a time, the last of which may be the same one again. */
static void G(dots)(void *y, int64_t rows, int64_t depth, const void *x, const void *w,
                    int64_t w_row) {
    const DVTI_E *factors = (const DVTI_E *)x, *from = (const DVTI_E *)w;
    DVTI_VECTOR sum[DVTI_DOTS], factor;
    DVTI_E lane[DVTI_DOTS * DVTI_WHOLE];
    int64_t r, k, n;
    int i;
    for (r = 0; r < rows; r += DVTI_DOTS) {
        const int64_t last = DVTI_MIN(rows - r, DVTI_DOTS) - 1;
        const DVTI_E *row = from + r * w_row;
        DVTI_UNROLL
        for (i = 0; i < DVTI_DOTS; i++)
            sum[i] = W(zero)();
        for (k = 0; k + DVTI_WHOLE <= depth; k += DVTI_WHOLE) {
            factor = W(load)(factors + k);
            DVTI_UNROLL
            for (i = 0; i < DVTI_DOTS; i++)
                sum[i] = W(fma)(factor, W(load)(row + DVTI_MIN(i, last) * w_row + k), sum[i]);
        }
        n = depth - k;
        if (n) {
            factor = W(load_n)(factors + k, n);
            DVTI_UNROLL
            for (i = 0; i < DVTI_DOTS; i++)
                sum[i] = W(fma)(factor, W(load_n)(row + DVTI_MIN(i, last) * w_row + k, n), sum[i]);
        }
        DVTI_UNROLL
        for (i = 0; i < DVTI_DOTS; i++)
            W(store)(lane + i * DVTI_WHOLE, sum[i]);
        for (i = 0; i <= last; i++)
            ((DVTI_E *)y)[r + i] = W(fold_add)(W(load)(lane + i * DVTI_WHOLE));
    }
}

static const dvti_simd_gemm G(kernels) = {
    sizeof(DVTI_E), DVTI_TILE_PARTS *DVTI_LANES, G(multiply), G(copy), G(turn), G(turn_exactly),
    G(combine), G(dots)};

#undef DVTI_WHOLE
#undef DVTI_EDGE
#undef DVTI_STRIP
#undef DVTI_DOTS
#undef DVTI_SLIM
