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

/* Transposes 16 x 16 floats, or other elements of 4 bytes: rows `from_step` apart become columns of
   rows `to_step` apart. Each of four rounds zips vectors i and i + 8. A round moves the element at
   index 16 i + j to the index with its 8 bits rotated left by one; four rounds give 16 j + i. */
static void V(transpose)(const float *from, int64_t from_step, float *to, int64_t to_step) {
    V(f) v[16], w[16];
    int i;
    DVTI_REPEAT(16)
    for (i = 0; i < 16; i++)
        v[i] = V(load)(from + i * from_step);
#define DVTI_ZIP(v, w)                                                                             \
    DVTI_REPEAT(8)                                                                                 \
    for (i = 0; i < 8; i++) {                                                                      \
        w[2 * i] = V(zip_low)(v[i], v[i + 8]);                                                     \
        w[2 * i + 1] = V(zip_high)(v[i], v[i + 8]);                                                \
    }
    DVTI_ZIP(v, w)
    DVTI_ZIP(w, v)
    DVTI_ZIP(v, w)
    DVTI_ZIP(w, v)
#undef DVTI_ZIP
    DVTI_REPEAT(16)
    for (i = 0; i < 16; i++)
        V(store)(to + i * to_step, v[i]);
}
