/* The lanes of many vectors put together, each vector's by themselves, in the order in which V(fold_max) and its like do it with one. Zipped
   with the vector that stands half as many further, a vector has its two halves side by side, and the other's between them: after a few levels
   a lane is what a whole vector was. So rows of one vector cost two or three instructions each instead of twenty. */
#define DVTI_FOLD_LEVEL(d, word, low, high)                                                        \
    DVTI_REPEAT(8)                                                                                 \
    for (i = 0; i < d; i++)                                                                        \
        v[i] = word(low(v[i], v[i + d]), high(v[i], v[i + d]));

/* The largest of each of lanes[16][16]. */
static void V(fold_max_each)(const float *lanes, float *most) {
    V(f) v[16];
    int i;
    DVTI_REPEAT(16)
    for (i = 0; i < 16; i++)
        v[i] = V(load)(lanes + 16 * i);
    DVTI_FOLD_LEVEL(8, V(max), V(zip_low), V(zip_high))
    DVTI_FOLD_LEVEL(4, V(max), V(zip_low), V(zip_high))
    DVTI_FOLD_LEVEL(2, V(max), V(zip_low), V(zip_high))
    DVTI_FOLD_LEVEL(1, V(max), V(zip_low), V(zip_high))
    V(store)(most, v[0]);
}

#define DVTI_FOLD_EIGHT(word)                                                                      \
    DVTI_FOLD_LEVEL(4, word, V(dzip_low), V(dzip_high))                                            \
    DVTI_FOLD_LEVEL(2, word, V(dzip_low), V(dzip_high))                                            \
    DVTI_FOLD_LEVEL(1, word, V(dzip_low), V(dzip_high))

/* Of each of lanes[rows][8], 8 rows at most: the product, the largest of extremes, otherwise the sum. */
static void V(dfold_each)(dvti_op op, const double *lanes, int64_t rows, double *value) {
    const bool most = op == DVTI_OP_max || op == DVTI_OP_min || op == DVTI_OP_argmax || op == DVTI_OP_argmin;
    V(d) v[8];
    int i;
    for (i = 0; i < rows && rows < 8; i++) {
        v[0] = V(dload)(lanes + 8 * i);
        value[i] = most ? V(dfold_max)(v[0]) : op == DVTI_OP_prod ? V(dfold_mul)(v[0]) : V(dfold_add)(v[0]);
    }
    if (rows < 8)
        return;
    DVTI_REPEAT(8)
    for (i = 0; i < 8; i++)
        v[i] = V(dload)(lanes + 8 * i);
    if (most) {
        DVTI_FOLD_EIGHT(V(dmax))
    } else if (op == DVTI_OP_prod) {
        DVTI_FOLD_EIGHT(V(dmul))
    } else {
        DVTI_FOLD_EIGHT(V(dadd))
    }
    V(dstore)(value, v[0]);
}

#undef DVTI_FOLD_LEVEL
#undef DVTI_FOLD_EIGHT
