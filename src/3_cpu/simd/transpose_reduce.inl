/* Transpose-and-reduce: reduces the lanes of many vectors at once, each vector by itself. The order
   is that of V(lanes_max) and its like. Zipping vectors i and i + n/2 puts the lower and the upper
   half of each next to each other. So one operation reduces two vectors. After log2(lanes) levels
   lane k holds the result of vector k:

     a0 a1 a2 a3    zip a, c    a0 c0 a1 c1 + a2 c2 a3 c3    zip with b, d    a+ b+ c+ d+

   Rows of one vector cost two or three instructions each instead of twenty. */
#define DVTI_ZIP_LEVEL(d, primitive, low, high)                                                    \
    DVTI_REPEAT(8)                                                                                 \
    for (i = 0; i < d; i++)                                                                        \
        v[i] = primitive(low(v[i], v[i + d]), high(v[i], v[i + d]));

/* Writes the maximum of each of lanes[16][16]. */
static void V(transpose_max)(const float *lanes, float *most) {
    V(f) v[16];
    int i;
    DVTI_REPEAT(16)
    for (i = 0; i < 16; i++)
        v[i] = V(load)(lanes + 16 * i);
    DVTI_ZIP_LEVEL(8, V(max), V(zip_low), V(zip_high))
    DVTI_ZIP_LEVEL(4, V(max), V(zip_low), V(zip_high))
    DVTI_ZIP_LEVEL(2, V(max), V(zip_low), V(zip_high))
    DVTI_ZIP_LEVEL(1, V(max), V(zip_low), V(zip_high))
    V(store)(most, v[0]);
}

#define DVTI_ZIP_EIGHT(primitive)                                                                  \
    DVTI_ZIP_LEVEL(4, primitive, V(dzip_low), V(dzip_high))                                        \
    DVTI_ZIP_LEVEL(2, primitive, V(dzip_low), V(dzip_high))                                        \
    DVTI_ZIP_LEVEL(1, primitive, V(dzip_low), V(dzip_high))

/* Joins each of lanes[rows][8], at most 8 rows. Extremes of float64 lanes are rare, and joined lane
   by lane. */
static void V(transpose_join)(dvti_join join, const double *lanes, int64_t rows, double *value) {
    const bool extreme = join == DVTI_JOIN_smaller || join == DVTI_JOIN_larger;
    V(d) v[8];
    int i, k;
    for (i = 0; i < rows && (rows < 8 || extreme); i++, lanes += 8) {
        v[0] = V(dload)(lanes);
        value[i] = join == DVTI_JOIN_mul ? V(dlanes_mul)(v[0])
                   : extreme             ? lanes[0]
                                         : V(dlanes_add)(v[0]);
        for (k = 1; extreme && k < 8; k++)
            value[i] = join == DVTI_JOIN_smaller ? dvti_f64_smaller(value[i], lanes[k])
                                                 : dvti_f64_larger(value[i], lanes[k]);
    }
    if (rows < 8 || extreme)
        return;
    DVTI_REPEAT(8)
    for (i = 0; i < 8; i++)
        v[i] = V(dload)(lanes + 8 * i);
    if (join == DVTI_JOIN_mul) {
        DVTI_ZIP_EIGHT(V(dmul))
    } else {
        DVTI_ZIP_EIGHT(V(dadd))
    }
    V(dstore)(value, v[0]);
}

#undef DVTI_ZIP_LEVEL
#undef DVTI_ZIP_EIGHT

/* ---- 16 rows of n <= 16 elements as n columns, columns[16][16]. Then every step is vertical ----
   A quad is 4 neighboring elements of a row. Zipping the quads of four rows twice transposes them:

     row 0   a0 a1 a2 a3    zip 0, 2   a0 c0 a1 c1    zip    a0 b0 c0 d0   column 0
     row 1   b0 b1 b2 b3    zip 1, 3   a2 c2 a3 c3           a1 b1 c1 d1   column 1
     row 2   c0 c1 c2 c3               b0 d0 b1 d1           ..
     row 3   d0 d1 d2 d3               b2 d2 b3 d3

   V(load_quads) gives rows 0, 4, 8 and 12 to one vector. */
DVTI_INLINE void V(transpose_quads)(V(f) v[4]) {
    const V(f) ac = V(unpack_low)(v[0], v[2]), AC = V(unpack_high)(v[0], v[2]);
    const V(f) bd = V(unpack_low)(v[1], v[3]), BD = V(unpack_high)(v[1], v[3]);
    v[0] = V(unpack_low)(ac, bd);
    v[1] = V(unpack_high)(ac, bd);
    v[2] = V(unpack_low)(AC, BD);
    v[3] = V(unpack_high)(AC, BD);
}

/* Transposes 16 x 16 floats, or other elements of 4 bytes: rows `from_step` apart become columns of
   rows `to_step` apart. Reads everything before it writes. Reads four rows at a time: rows one page
   apart share a set of L1. */
static void V(transpose)(const float *from, int64_t from_step, float *to, int64_t to_step) {
    V(f) v[4][4];
    int i, j;
    DVTI_REPEAT(4)
    for (i = 0; i < 4; i++) {
        DVTI_REPEAT(4)
        for (j = 0; j < 4; j++)
            v[j][i] = V(load_quads)(from + i * from_step + 4 * j, from_step);
    }
    DVTI_REPEAT(4)
    for (j = 0; j < 4; j++) {
        V(transpose_quads)(v[j]);
        DVTI_REPEAT(4)
        for (i = 0; i < 4; i++)
            V(store)(to + (4 * j + i) * to_step, v[j][i]);
    }
}

/* Returns whether whole quads of 16 rows, and one more, lie within `rows` contiguous rows. */
DVTI_INLINE bool V(quads_fit)(int64_t step, int64_t rows, int64_t n) {
    return step == n && (rows - 16) * n >= 4;
}

/* Loads min(rows, 16) rows; the others are 0. Columns n .. 15 have no meaning. */
static void V(load_columns)(const float *x, int64_t step, int64_t rows, int64_t n,
                            float *columns) {
    float tile[256];
    V(f) v[4];
    int64_t j;
    int i;
    if (!V(quads_fit)(step, rows, n)) {
        for (i = 0; i < 16; i++)
            V(store)(tile + 16 * i, i < rows ? V(load_partial)(x + i * step, n) : V(zero)());
        x = tile;
        step = 16;
    }
    for (j = 0; j < n; j += 4) {
        DVTI_REPEAT(4)
        for (i = 0; i < 4; i++)
            v[i] = V(load_quads)(x + i * step + j, step);
        V(transpose_quads)(v);
        DVTI_REPEAT(4)
        for (i = 0; i < 4; i++)
            V(store)(columns + 16 * (j + i), v[i]);
    }
}

/* Stores min(rows, 16) rows. The last quad of a row may end in the next row, so the last quads are
   stored first; the quad after all rows is restored. */
static void V(store_columns)(const float *columns, float *y, int64_t step, int64_t rows,
                             int64_t n) {
    const bool direct = n >= 4 && V(quads_fit)(step, rows, n);
    const int64_t width = DVTI_MAX(n, 4);
    float tile[16 * 16 + 4], next[4];
    float *to = direct ? y : tile;
    V(f) v[4];
    int64_t j;
    int i;
    if (direct)
        memcpy(next, y + 16 * n, sizeof next);
    for (j = (n - 1) / 4 * 4; j >= 0; j -= 4) {
        DVTI_REPEAT(4)
        for (i = 0; i < 4; i++)
            v[i] = V(load)(columns + 16 * (j + i));
        V(transpose_quads)(v);
        DVTI_REPEAT(4)
        for (i = 0; i < 4; i++)
            V(store_quads)(to + i * width + j, width, v[i]);
    }
    rows = DVTI_MIN(rows, 16);
    if (direct)
        memcpy(y + 16 * n, next, sizeof next);
    else if (step == n && n == width)
        memcpy(y, tile, (size_t)(rows * n) * sizeof *y);
    else
        for (j = 0; j < rows; j++)
            memcpy(y + j * step, tile + j * width, (size_t)n * sizeof *y);
}
