/* 16 x 16 floats, or anything of their size: rows `from_step` apart become columns of rows `to_step` apart. Four times the vectors are zipped with
   those eight further, which sends element j of vector i, whose number is 16 i + j, to number 16 j + i. */
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
