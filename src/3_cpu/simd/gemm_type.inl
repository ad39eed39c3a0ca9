/* Matrix product kernels of one element type. gemm.inl includes it with

     DVTI_E         the element, whose dtype is DVTI_OWN    G(name)  this type's function `name`
     DVTI_REGISTER  DVTI_LANES elements                     P(name)  the primitive of registers
     DVTI_VECTOR    a vector                                W(name)  the primitive of vectors */

#define DVTI_WHOLE (64 / (int64_t)sizeof(DVTI_E)) /* elements of a vector */
#define DVTI_EDGE 128 /* depth of a step at the edge, rows of a staging buffer */
#define DVTI_BAND 64
/* Flags of a tile. */
#define DVTI_PACK 1
#define DVTI_STREAM 2
#define DVTI_AHEAD 4 /* prefetch distance in rows of B */
/* Rows of tiles half a register wide, alone and next to a whole register: enough chains for the FMA
   units that still fit in registers. */
#define DVTI_HALF_ROWS 8
#define DVTI_HALF_AFTER_ROWS 12

/* Computes one tile. rows x regs registers of sums stay in registers while k advances. `rows` is
   `most` or one less: then the last row is computed twice and stored once, so no kernel is needed
   for odd counts. `tail`: columns of the last register.

   Addresses advance from row to row. Keeping the addresses of all rows at once would spill
   registers, which took 10 % of the time of a small product. With DVTI_PACK, rows of B are b_row
   apart, and each is copied into the panel after it has been read. With DVTI_STREAM, whole tiles
   are written with non-temporal stores. */
DVTI_INLINE void G(tile)(const int most, const int regs, const int how, const dvti_product *p,
                         const DVTI_E *a, const DVTI_E *b, DVTI_E *c, const DVTI_E *start,
                         int64_t rows, int64_t tail, int64_t b_row, DVTI_E *panel) {
    const bool pack = how == DVTI_PACK;
    const int64_t a_row = p->a_row, a_k = p->a_k, c_row = p->c_row, depth = p->depth;
    const int64_t last = rows - 1, a_last = last * a_row, *b_k = p->b_k;
    const int end = regs - 1;
    const P(first_type) first = P(first)(tail);
    const DVTI_E *ahead = b + DVTI_AHEAD * b_row;
    DVTI_REGISTER sum[DVTI_TALL][4], row[4], factor;
    int64_t k;
    int i, j;
    if (start) {
        DVTI_UNROLL
        for (i = 0; i < most; i++) {
            factor = P(set)(start[(i < most - 1 ? i : last) * p->start_row]);
            DVTI_UNROLL
            for (j = 0; j < regs; j++)
                sum[i][j] = factor;
        }
    } else {
        const DVTI_E *from = c;
        DVTI_UNROLL
        for (i = 0; i < most; i++) {
            DVTI_UNROLL
            for (j = 0; j < end; j++)
                sum[i][j] = P(load)(from + j * DVTI_LANES);
            sum[i][end] = P(load_first)(from + end * DVTI_LANES, first);
            from += i < most - 2 || rows == most ? c_row : 0;
        }
        DVTI_AGAIN(c);
    }
    for (k = 0; k < depth; k++) {
        const DVTI_E *at = pack ? b : b + b_k[k], *from = a;
        DVTI_UNROLL
        for (j = 0; j < end; j++)
            row[j] = P(load)(at + j * DVTI_LANES);
        row[end] = DVTI_MASKED && !pack ? P(load_first)(at + end * DVTI_LANES, first)
                                         : P(load)(at + end * DVTI_LANES);
        if (pack) {
            b += b_row;
            DVTI_UNROLL
            for (j = 0; j < regs; j++, panel += DVTI_LANES) {
                P(store)(panel, row[j]);
                if (j * DVTI_LANES % DVTI_WHOLE == 0)
                    DVTI_PREFETCH(ahead + j * DVTI_LANES);
            }
            ahead += b_row;
        }
        DVTI_UNROLL
        for (i = 0; i < most; i++) {
            if (i % 4 == 0)
                from = a + i * a_row;
            const P(factor_type) each = P(factor)(i < most - 1 ? from[i % 4 * a_row] : a[a_last]);
            DVTI_UNROLL
            for (j = 0; j < regs; j++)
                sum[i][j] = P(fma_factor)(each, row[j], sum[i][j]);
        }
        a += a_k;
    }
    DVTI_UNROLL
    for (i = 0; i < most; i++) {
        if (i == most - 1 && rows < most)
            return;
        DVTI_UNROLL
        for (j = 0; j < regs; j++)
            if (how == DVTI_STREAM)
                P(stream)(c + j * DVTI_LANES, sum[i][j]);
            else if (j < end)
                P(store)(c + j * DVTI_LANES, sum[i][j]);
        if (how != DVTI_STREAM)
            P(store_first)(c + end * DVTI_LANES, first, sum[i][end]);
        c += c_row;
    }
}

typedef void (*G(tile_fn))(const dvti_product *p, const DVTI_E *a, const DVTI_E *b, DVTI_E *c,
                           const DVTI_E *start, int64_t rows, int64_t tail);

#define DVTI_TILE(most, regs)                                                                      \
    static void G(tile_##most##_##regs)(const dvti_product *p, const DVTI_E *a, const DVTI_E *b,   \
                                         DVTI_E *c, const DVTI_E *start, int64_t rows,             \
                                         int64_t tail) {                                           \
        G(tile)(most, regs, 0, p, a, b, c, start, rows, tail, 0, NULL);                            \
    }
DVTI_TILE(2, 1)
DVTI_TILE(2, 2)
#if DVTI_TILE_REGS == 4
DVTI_TILE(2, 3)
DVTI_TILE(2, 4)
#endif
#if DVTI_TILE_ROWS == 6
DVTI_TILE(4, 1)
DVTI_TILE(6, 1)
DVTI_TILE(4, 2)
DVTI_TILE(6, 2)
#if DVTI_TALL_REGS > 0
DVTI_TILE(8, 1)
#endif
#if DVTI_TILE_REGS == 4
DVTI_TILE(12, 1)
DVTI_TILE(8, 2)
DVTI_TILE(12, 2)
DVTI_TILE(4, 3)
DVTI_TILE(6, 3)
DVTI_TILE(4, 4)
DVTI_TILE(6, 4)
#endif
#endif
#undef DVTI_TILE

#if DVTI_TILE_ROWS == 6
#define DVTI_TILES(regs)                                                                           \
    { G(tile_2_##regs), G(tile_4_##regs), G(tile_6_##regs), NULL, NULL, NULL }
#define DVTI_TALL_TILES(regs)                                                                      \
    { G(tile_2_##regs), G(tile_4_##regs), G(tile_6_##regs), G(tile_8_##regs), NULL,                \
      G(tile_12_##regs) }
#else
#define DVTI_TILES(regs)                                                                           \
    { G(tile_2_##regs), NULL, NULL, NULL, NULL, NULL }
#endif
/* Tiles by registers and pairs of rows, both from 1 on. */
static const G(tile_fn) G(tiles)[DVTI_TILE_REGS][6] = {
#if DVTI_TALL_REGS == 2
    DVTI_TALL_TILES(1), DVTI_TALL_TILES(2), DVTI_TILES(3), DVTI_TILES(4)
#elif DVTI_TILE_REGS == 4
    DVTI_TILES(1), DVTI_TILES(2), DVTI_TILES(3), DVTI_TILES(4)
#elif DVTI_TALL_REGS == 1
    {G(tile_2_1), G(tile_4_1), G(tile_6_1), G(tile_8_1), NULL, NULL}, DVTI_TILES(2)
#else
    DVTI_TILES(1), DVTI_TILES(2)
#endif
};
#undef DVTI_TILES
#undef DVTI_TALL_TILES

/* Returns the pairs of rows of the next tile if `left` pairs remain. The last tile should not be
   thin. Few registers per row need many rows to keep the FMA units busy. */
static int64_t G(pairs_of)(int64_t left, int64_t regs) {
#if DVTI_TILE_ROWS == 6
    static const signed char tall[] = {0, 1, 2, 3, 4, 3, 6, 4, 4, 6, 6, 4};
    static const signed char low[] = {0, 1, 2, 3, 2, 3};
    if (DVTI_TALL == 8 && regs <= DVTI_TALL_REGS)
        return left == 4 || left > 6 ? 4 : DVTI_MIN(left, 3);
    if (regs <= DVTI_TALL_REGS)
        return left < DVTI_LENGTH(tall) ? tall[left] : 6;
    return left < DVTI_LENGTH(low) ? low[left] : 3;
#else
    (void)left;
    (void)regs;
    return 1;
#endif
}

/* Prefetches the elements of C that a tile will store and the beginnings of the next rows of A,
   before the tile multiplies. */
static void G(foresee)(const dvti_product *p, const DVTI_E *a, const DVTI_E *c, int64_t rows,
                       int64_t cols) {
    int64_t i, j;
    for (i = 0; i < rows; i++) {
        for (j = 0; j < cols; j += DVTI_WHOLE)
            DVTI_PREFETCH(c + i * p->c_row + j);
        DVTI_PREFETCH(a + (rows + i) * p->a_row);
    }
}

/* Computes all rows of some columns. */
static void G(column)(const dvti_product *p, const DVTI_E *b, DVTI_E *c, int64_t regs,
                      int64_t tail) {
    const DVTI_E *a = (const DVTI_E *)p->a, *start = (const DVTI_E *)p->start;
    int64_t left = p->rows;
    while (left > 0) {
        const int64_t pairs = G(pairs_of)((left + 1) / 2, regs), rows = DVTI_MIN(2 * pairs, left);
        if (p->depth >= 128)
            G(foresee)(p, a, c, rows, regs * DVTI_LANES);
        G(tiles)[regs - 1][pairs - 1](p, a, b, c, start, rows, tail);
        a += rows * p->a_row;
        c += rows * p->c_row;
        start = start ? start + rows * p->start_row : NULL;
        left -= rows;
    }
}

#if !DVTI_MASKED
/* Computes columns that do not fill a register. Copies those of B into whole vectors first, so that
   loads stay inside the operands. */
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
/* Computes at most half a register of columns, alone or next to one whole register. Two
   instructions of half the width take the time of one. */
DVTI_INLINE void G(half_tile)(const int rows, const int whole, const dvti_product *p,
                              const DVTI_E *a, const DVTI_E *b, DVTI_E *c, const DVTI_E *start,
                              int64_t cols) {
    const int64_t a_row = p->a_row, a_k = p->a_k, c_row = p->c_row, depth = p->depth;
    const int64_t *b_k = p->b_k;
    const int at = whole * DVTI_LANES;
    const P(half_first_type) first = P(half_first)(cols);
    DVTI_REGISTER sum[DVTI_HALF_AFTER_ROWS], row = P(set)(0), factor;
    DVTI_HALF half[DVTI_HALF_AFTER_ROWS], low;
    int64_t k;
    int i, j;
    if (start) {
        DVTI_UNROLL
        for (i = 0; i < rows; i++) {
            sum[i] = P(set)(*start);
            half[i] = P(half_of)(sum[i]);
            start += p->start_row;
        }
    } else {
        const DVTI_E *from = c;
        DVTI_UNROLL
        for (i = 0; i < rows; i++) {
            sum[i] = whole ? P(load)(from) : row;
            half[i] = P(half_load_first)(from + at, first);
            from += c_row;
        }
        DVTI_AGAIN(c);
    }
    for (k = 0; k < depth; k++) {
        if (whole)
            row = P(load)(b + b_k[k]);
        low = P(half_load_first)(b + b_k[k] + at, first);
        DVTI_UNROLL
        for (j = 0; j < rows; j += 4) {
            const DVTI_E *from = a + j * a_row;
            DVTI_UNROLL
            for (i = 0; i < 4; i++) {
                if (whole) {
                    factor = P(set)(from[i * a_row]);
                    sum[i + j] = P(fma)(factor, row, sum[i + j]);
                    half[i + j] = P(half_fma)(P(half_of)(factor), low, half[i + j]);
                } else
                    half[i + j] = P(half_fma)(P(half_set)(from[i * a_row]), low, half[i + j]);
            }
        }
        a += a_k;
    }
    DVTI_UNROLL
    for (i = 0; i < rows; i++) {
        if (whole)
            P(store)(c, sum[i]);
        P(half_store_first)(c + at, first, half[i]);
        c += c_row;
    }
}

static void G(half_tile_only)(const dvti_product *p, const DVTI_E *a, const DVTI_E *b, DVTI_E *c,
                              const DVTI_E *start, int64_t cols) {
    G(half_tile)(DVTI_HALF_ROWS, 0, p, a, b, c, start, cols);
}

static void G(half_tile_after)(const dvti_product *p, const DVTI_E *a, const DVTI_E *b, DVTI_E *c,
                               const DVTI_E *start, int64_t cols) {
    G(half_tile)(DVTI_HALF_AFTER_ROWS, 1, p, a, b, c, start, cols);
}

static void G(half_tile_column)(const dvti_product *p, const DVTI_E *b, DVTI_E *c, int64_t whole,
                                int64_t cols) {
    const DVTI_E *a = (const DVTI_E *)p->a, *start = (const DVTI_E *)p->start;
    const int64_t rows = whole ? DVTI_HALF_AFTER_ROWS : DVTI_HALF_ROWS;
    dvti_product rest;
    int64_t left;
    for (left = p->rows; left >= rows; left -= rows) {
        (whole ? G(half_tile_after) : G(half_tile_only))(p, a, b, c, start, cols);
        a += rows * p->a_row;
        c += rows * p->c_row;
        start = start ? start + rows * p->start_row : NULL;
    }
    if (!left)
        return;
    rest = *p;
    rest.rows = left;
    rest.a = a;
    rest.start = start;
    G(column)(&rest, b, c, whole + 1, cols);
}
#endif

static void G(multiply)(const dvti_product *p) {
    const int64_t width = DVTI_TILE_REGS * DVTI_LANES;
    const DVTI_E *b = (const DVTI_E *)p->b;
    DVTI_E *c = (DVTI_E *)p->c;
    int64_t left, regs, cols, tail;
    if (p->rows <= 0)
        return;
    for (left = p->cols; left > 0; left -= width, b += p->b_panel, c += width) {
        cols = DVTI_MIN(left, width);
        regs = (cols + DVTI_LANES - 1) / DVTI_LANES;
        tail = cols - (regs - 1) * DVTI_LANES;
#if DVTI_MASKED
        if (tail <= DVTI_LANES / 2 && p->rows >= DVTI_HALF_ROWS) {
            const int64_t apart = regs > 2 ? regs - 1 : 0;
            if (apart)
                G(column)(p, b, c, apart, DVTI_LANES);
            G(half_tile_column)
            (p, b + apart * DVTI_LANES, c + apart * DVTI_LANES, regs - apart - 1, tail);
            continue;
        }
#else
        if (tail < DVTI_LANES) {
            G(edge)(p, b, c, cols);
            continue;
        }
#endif
        G(column)(p, b, c, regs, tail);
    }
}

/* Returns the rows of C that were computed while the panel was packed; 0 for narrower panels or
   fewer rows. */
static int64_t G(multiply_packing)(const dvti_product *p, int64_t b_row, void *panel) {
    if (p->rows < DVTI_TILE_ROWS || p->cols < DVTI_TILE_REGS * DVTI_LANES)
        return 0;
    G(tile)
    (DVTI_TILE_ROWS, DVTI_TILE_REGS, DVTI_PACK, p, (const DVTI_E *)p->a, (const DVTI_E *)p->b,
     (DVTI_E *)p->c, (const DVTI_E *)p->start, DVTI_TILE_ROWS, DVTI_LANES, b_row, (DVTI_E *)panel);
    return DVTI_TILE_ROWS;
}

static void G(multiply_stream)(const dvti_product *p) {
    const int64_t width = DVTI_TILE_REGS * DVTI_LANES;
    dvti_product rest = *p;
    for (; rest.cols >= width; rest.cols -= width) {
        dvti_product column = rest;
        column.cols = width;
        for (; column.rows >= DVTI_TILE_ROWS; column.rows -= DVTI_TILE_ROWS) {
            const DVTI_E *start = (const DVTI_E *)column.start;
            G(tile)(DVTI_TILE_ROWS, DVTI_TILE_REGS, DVTI_STREAM, p, (const DVTI_E *)column.a,
                    (const DVTI_E *)column.b, (DVTI_E *)column.c, start, DVTI_TILE_ROWS,
                    DVTI_LANES, 0, NULL);
            column.a = (const DVTI_E *)column.a + DVTI_TILE_ROWS * p->a_row;
            column.c = (DVTI_E *)column.c + DVTI_TILE_ROWS * p->c_row;
            column.start = start + DVTI_TILE_ROWS * p->start_row;
        }
        G(multiply)(&column);
        rest.b = (const DVTI_E *)rest.b + p->b_panel;
        rest.c = (DVTI_E *)rest.c + width;
    }
    G(multiply)(&rest);
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

/* Transposes a square of registers. Rounds within 16 bytes transpose the blocks of `part` x `part`
   elements: each unpacks registers i and i + part / 2, which rotates the bits of (register, lane)
   by one. The rounds after them transpose the square of blocks:

     a0 a1 a2 a3        a0 c0 a1 c1        a0 b0 c0 d0
     b0 b1 b2 b3  -->  a2 c2 a3 c3  -->  a1 b1 c1 d1        A B  -->  A C
     c0 c1 c2 c3        b0 d0 b1 d1        a2 b2 c2 d2        C D       B D
     d0 d1 d2 d3        b2 d2 b3 d3        a3 b3 c3 d3 */
DVTI_INLINE void G(transpose_registers)(DVTI_REGISTER *v) {
    const int part = 16 / (int)sizeof(DVTI_E);
    DVTI_REGISTER w[DVTI_LANES];
    int round, i, from;
    DVTI_UNROLL
    for (round = 1; round < part; round *= 2) {
        DVTI_UNROLL
        for (i = 0; i < DVTI_LANES / 2; i++) {
            from = i / (part / 2) * part + i % (part / 2);
            w[2 * i] = P(unpack_low)(v[from], v[from + part / 2]);
            w[2 * i + 1] = P(unpack_high)(v[from], v[from + part / 2]);
        }
        DVTI_UNROLL
        for (i = 0; i < DVTI_LANES; i++)
            v[i] = w[i];
    }
#if DVTI_REGS < 4
    DVTI_UNROLL
    for (round = part; round < DVTI_LANES; round *= 2) {
        DVTI_UNROLL
        for (i = 0; i < DVTI_LANES / 2; i++) {
            from = i / round * 2 * round + i % round;
            w[i] = P(even_parts)(v[from], v[from + round]);
            v[from + round] = P(odd_parts)(v[from], v[from + round]);
            v[from] = w[i];
        }
    }
#endif
}

/* Transposes one square, or what remains of it at an edge; writes `width` columns of dst. Not
   inlined: inside the loops the compiler would keep its addresses on the stack. */
DVTI_NOINLINE static void G(transpose_square)(DVTI_E *dst, int64_t dst_row, const DVTI_E *src,
                                         int64_t src_col, int64_t rows, int64_t cols,
                                         int64_t width) {
    DVTI_REGISTER v[DVTI_LANES];
    int i;
    if (rows >= DVTI_LANES && cols >= DVTI_LANES) {
        DVTI_UNROLL
        for (i = 0; i < DVTI_LANES; i++)
            v[i] = P(load)(src + i * src_col);
        G(transpose_registers)(v);
        DVTI_UNROLL
        for (i = 0; i < DVTI_LANES; i++)
            P(store)(dst + i * dst_row, v[i]);
    } else {
        const P(first_type) first = P(first)(rows), partial = P(first)(width);
        DVTI_UNROLL
        for (i = 0; i < DVTI_LANES; i++)
            v[i] = i < cols ? P(load_first)(src + i * src_col, first) : P(set)(0);
        G(transpose_registers)(v);
        DVTI_UNROLL
        for (i = 0; i < DVTI_LANES; i++, dst += dst_row)
            if (i < rows) {
                if (width >= DVTI_LANES)
                    P(store)(dst, v[i]);
                else
                    P(store_first)(dst, partial, v[i]);
            }
    }
}

/* Transposes a matrix of this type and writes `filled` columns of dst, by whole cache lines unless
   they are the rows of a panel. */
static void G(transpose_own)(DVTI_E *dst, int64_t dst_row, const DVTI_E *src, int64_t src_col,
                             int64_t rows, int64_t cols, int64_t filled) {
    int64_t part = dst_row > DVTI_TILE_REGS * DVTI_LANES ? DVTI_WHOLE : DVTI_LANES, r, c;
    for (; filled > 0; filled -= part, cols -= part, dst += part, src += part * src_col) {
        part = DVTI_MIN(part, filled);
        for (r = 0; r < rows; r += DVTI_LANES)
            for (c = 0; c < part; c += DVTI_LANES)
                G(transpose_square)
        (dst + r * dst_row + c, dst_row, src + c * src_col + r, src_col, rows - r, cols - c,
         filled - c);
    }
}

static void G(transpose_exactly)(void *dst, int64_t dst_row, const void *src, int64_t src_col,
                            int64_t rows, int64_t cols) {
    G(transpose_own)((DVTI_E *)dst, dst_row, (const DVTI_E *)src, src_col, rows, cols, cols);
}

static int64_t G(filled)(int64_t cols) {
    return (cols + DVTI_WHOLE - 1) / DVTI_WHOLE * DVTI_WHOLE;
}

static void G(transpose)(void *dst, int64_t dst_row, const void *src, dvt_dtype dtype,
                         int64_t src_col, int64_t rows, int64_t cols) {
    DVTI_E staging[DVTI_WHOLE * DVTI_BAND];
    int64_t r, c;
    if (dtype == DVTI_OWN) {
        G(transpose_own)
        ((DVTI_E *)dst, dst_row, (const DVTI_E *)src, src_col, rows, cols, G(filled)(cols));
        return;
    }
    for (c = 0; c < cols; c += DVTI_WHOLE)
        for (r = 0; r < rows; r += DVTI_BAND) {
            int64_t at = c * src_col + r;
            int64_t n_rows = DVTI_MIN(rows - r, DVTI_BAND),
                    n_cols = DVTI_MIN(cols - c, DVTI_WHOLE);
            G(copy)
            (staging, DVTI_BAND, (const char *)src + at * dvt_dtype_size(dtype), dtype, src_col,
             n_cols, n_rows);
            G(transpose_own)
            ((DVTI_E *)dst + r * dst_row + c, dst_row, staging, DVTI_BAND, n_rows, n_cols,
             G(filled)(n_cols));
        }
}

#include "3_cpu/simd/gemm_vectors.inl"

static const dvti_simd_gemm G(kernels) = {sizeof(DVTI_E),
                                          DVTI_TILE_REGS *DVTI_LANES,
                                          G(multiply),
                                          G(multiply_stream),
                                          G(multiply_packing),
                                          G(copy),
                                          G(transpose),
                                          G(transpose_exactly),
                                          G(combine),
                                          G(dots)};

#undef DVTI_WHOLE
#undef DVTI_EDGE
#undef DVTI_BAND
#undef DVTI_PACK
#undef DVTI_STREAM
#undef DVTI_AHEAD
#undef DVTI_HALF_ROWS
#undef DVTI_HALF_AFTER_ROWS
