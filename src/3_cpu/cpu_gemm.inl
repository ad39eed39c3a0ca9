/* The packed matrix product for one element type. Pasted by cpu_gemm.c with
     DVTI_T        the element type      DVTI_G(name)  `name` for that type
     DVTI_DTYPE    its dtype             DVTI_LOAD(data, dtype, at)  one element of another dtype

   micro: a 6 x 2-vector block of sums in 12 registers, one multiplication and one addition per
   term. Vectors are the compiler's own (16 bytes, which every 64-bit target has), else single
   elements: the same text either way. Measured on a 2.5 GHz Skylake with gcc 12 and clang 14, -O2
   without further flags: 24.4 GFLOP/s both; 4 x 8 from plain loops 23.6 with gcc and 14.0 with
   clang, 1.6 at -O1 (this: 12.7). */

#if defined(__GNUC__) || defined(__clang__)
typedef DVTI_T DVTI_G(vector) __attribute__((__vector_size__(16), __may_alias__));
#else
typedef DVTI_T DVTI_G(vector);
#endif

/* A number as the factor of a vector. Where floats are computed with more precision, GCC refuses
   such a product in strict ISO modes (s390x and 32-bit x86 with -std=c99), so there the number
   becomes a vector first. */
#if defined(__GNUC__) && defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0
static DVTI_G(vector) DVTI_G(repeat)(DVTI_T value) {
    DVTI_T lanes[sizeof(DVTI_G(vector)) / sizeof(DVTI_T)];
    DVTI_G(vector) v;
    size_t i;
    for (i = 0; i < sizeof lanes / sizeof lanes[0]; i++)
        lanes[i] = value;
    memcpy(&v, lanes, sizeof v);
    return v;
}
#define DVTI_REPEATED(value) DVTI_G(repeat)(value)
#else
#define DVTI_REPEATED(value) (value)
#endif

#define DVTI_LANES ((int64_t)(sizeof(DVTI_G(vector)) / sizeof(DVTI_T)))
#define DVTI_WIDTH (2 * DVTI_LANES)
#define DVTI_ROW_LOAD(i) DVTI_G(vector) c##i##0 = acc[2 * i], c##i##1 = acc[2 * i + 1];
#define DVTI_ROW_STEP(i)                                                                           \
    c##i##0 += DVTI_REPEATED(a[i]) * b0;                                                           \
    c##i##1 += DVTI_REPEATED(a[i]) * b1;
#define DVTI_ROW_STORE(i)                                                                          \
    acc[2 * i] = c##i##0;                                                                          \
    acc[2 * i + 1] = c##i##1;
#define DVTI_EACH_ROW(M) M(0) M(1) M(2) M(3) M(4) M(5)

static void DVTI_G(micro)(int64_t depth, const DVTI_T *a, const DVTI_T *b, int64_t ld,
                          DVTI_G(vector) * acc) {
    int64_t k;
    DVTI_EACH_ROW(DVTI_ROW_LOAD)
    for (k = 0; k < depth; k++) {
        const DVTI_G(vector) *row = (const DVTI_G(vector) *)(const void *)b;
        DVTI_G(vector) b0 = row[0], b1 = row[1];
        DVTI_EACH_ROW(DVTI_ROW_STEP)
        a += DVTI_GEMM_ROWS;
        b += ld;
    }
    DVTI_EACH_ROW(DVTI_ROW_STORE)
}

#undef DVTI_ROW_LOAD
#undef DVTI_ROW_STEP
#undef DVTI_ROW_STORE
#undef DVTI_EACH_ROW

/* One panel of B stays in the first-level cache while the panels of A pass by. */
static void DVTI_G(multiply)(int64_t rows, int64_t cols, int64_t depth, const DVTI_T *a,
                             const DVTI_T *b, int64_t ld, DVTI_T *acc) {
    int64_t i, j;
    for (j = 0; j < cols; j += DVTI_WIDTH)
        for (i = 0; i < rows; i += DVTI_GEMM_ROWS) {
            DVTI_G(micro)(depth, a + i * depth, b + j, ld, (DVTI_G(vector) *)(void *)acc);
            acc += DVTI_GEMM_ROWS * DVTI_WIDTH;
        }
}

/* Sums begin at +0 and are never -0, so adding 0 changes nothing. */
static void DVTI_G(row)(int64_t rows, int64_t cols, const DVTI_T *acc, int64_t r, const DVTI_T *add,
                        DVTI_T *out) {
    int64_t panels = (rows + DVTI_GEMM_ROWS - 1) / DVTI_GEMM_ROWS, j;
    DVTI_T more = add ? *add : 0;
    acc += r * DVTI_WIDTH;
    for (j = 0; j + DVTI_WIDTH <= cols; j += DVTI_WIDTH) {
        const DVTI_G(vector) *at = (const DVTI_G(vector) *)(const void *)acc;
        DVTI_G(vector) both[2];
        both[0] = at[0] + DVTI_REPEATED(more);
        both[1] = at[1] + DVTI_REPEATED(more);
        memcpy(out + j, both, sizeof both);
        acc += panels * DVTI_GEMM_ROWS * DVTI_WIDTH;
    }
    for (; j < cols; j++)
        out[j] = *acc++ + more;
}

/* ---- sums along k of both factors: 3 x 4 vectors ---- */
static DVTI_T DVTI_G(fold)(DVTI_G(vector) v) {
    DVTI_T lane[sizeof(DVTI_G(vector)) / sizeof(DVTI_T)], sum;
    int64_t i;
    memcpy(lane, &v, sizeof v);
    sum = lane[0];
    for (i = 1; i < DVTI_LANES; i++)
        sum += lane[i];
    return sum;
}

#define DVTI_DOT_ZERO(i)                                                                           \
    DVTI_G(vector) c##i##0 = zero, c##i##1 = zero, c##i##2 = zero, c##i##3 = zero;
#define DVTI_DOT_COLUMN(j)                                                                         \
    x = b[j][k];                                                                                   \
    c0##j += a0 * x;                                                                               \
    c1##j += a1 * x;                                                                               \
    c2##j += a2 * x;
#define DVTI_DOT_STORE(i)                                                                          \
    sums[4 * i] = DVTI_G(fold)(c##i##0);                                                           \
    sums[4 * i + 1] = DVTI_G(fold)(c##i##1);                                                       \
    sums[4 * i + 2] = DVTI_G(fold)(c##i##2);                                                       \
    sums[4 * i + 3] = DVTI_G(fold)(c##i##3);

static void DVTI_G(dot_block)(int64_t vectors, const DVTI_G(vector) *const *a,
                              const DVTI_G(vector) *const *b, DVTI_T *sums) {
    DVTI_G(vector) zero;
    int64_t k;
    memset(&zero, 0, sizeof zero);
    {
        DVTI_DOT_ZERO(0)
        DVTI_DOT_ZERO(1)
        DVTI_DOT_ZERO(2)
        for (k = 0; k < vectors; k++) {
            DVTI_G(vector) a0 = a[0][k], a1 = a[1][k], a2 = a[2][k], x;
            DVTI_DOT_COLUMN(0)
            DVTI_DOT_COLUMN(1)
            DVTI_DOT_COLUMN(2)
            DVTI_DOT_COLUMN(3)
        }
        DVTI_DOT_STORE(0)
        DVTI_DOT_STORE(1)
        DVTI_DOT_STORE(2)
    }
}

#undef DVTI_DOT_ZERO
#undef DVTI_DOT_COLUMN
#undef DVTI_DOT_STORE

/* At the edges the last row or column is computed again, and not stored. */
static void DVTI_G(dots)(int64_t rows, int64_t cols, int64_t depth, const DVTI_T *a,
                         const DVTI_T *b, int64_t ld, DVTI_T *acc, int64_t acc_ld) {
    const DVTI_G(vector) * row[3], *col[4];
    DVTI_T sums[12];
    int64_t i, j, r, c;
    for (j = 0; j < cols; j += 4)
        for (i = 0; i < rows; i += 3) {
            for (c = 0; c < 4; c++)
                col[c] = (const DVTI_G(vector) *)(const void *)(b + DVTI_MIN(j + c, cols - 1) * ld);
            for (r = 0; r < 3; r++)
                row[r] = (const DVTI_G(vector) *)(const void *)(a + DVTI_MIN(i + r, rows - 1) * ld);
            DVTI_G(dot_block)((depth + DVTI_LANES - 1) / DVTI_LANES, row, col, sums);
            for (r = 0; r < 3 && i + r < rows; r++)
                for (c = 0; c < 4 && j + c < cols; c++)
                    acc[(i + r) * acc_ld + j + c] += sums[4 * r + c];
        }
}

/* ---- packing ---- */
/* Up to `width` lanes side by side, `ld` elements from one k to the next; two lanes at a time. */
static void DVTI_G(pack_lanes)(DVTI_T *out, int64_t width, int64_t ld, int64_t lanes, int64_t depth,
                               const void *data, dvt_dtype dtype, int64_t lane_stride,
                               int64_t k_stride) {
    const DVTI_T *from = (const DVTI_T *)data;
    int64_t l = 0, k, last = DVTI_MIN(lanes, width);
    for (; dtype == DVTI_DTYPE && l + 2 <= last; l += 2) {
        const DVTI_T *first = from + l * lane_stride, *second = first + lane_stride;
        for (k = 0; k < depth; k++) {
            out[k * ld + l] = first[k * k_stride];
            out[k * ld + l + 1] = second[k * k_stride];
        }
    }
    for (; l < last; l++)
        for (k = 0; k < depth; k++)
            out[k * ld + l] = dtype == DVTI_DTYPE
                                  ? from[l * lane_stride + k * k_stride]
                                  : (DVTI_T)DVTI_LOAD(data, dtype, l * lane_stride + k * k_stride);
    for (; l < width; l++)
        for (k = 0; k < depth; k++)
            out[k * ld + l] = 0;
}

static const void *DVTI_G(at)(const void *data, dvt_dtype dtype, int64_t element) {
    return (const char *)data + element * dvt_dtype_size(dtype);
}

static void DVTI_G(pack_a)(DVTI_T *a, int64_t rows, int64_t depth, const void *data,
                           dvt_dtype dtype, int64_t row_stride, int64_t k_stride) {
    int64_t i, k;
    for (i = 0; i < rows; i += DVTI_GEMM_ROWS, a += DVTI_GEMM_ROWS * depth) {
        const void *from = DVTI_G(at)(data, dtype, i * row_stride);
        if (dtype == DVTI_DTYPE && row_stride == 1 && rows - i >= DVTI_GEMM_ROWS)
            for (k = 0; k < depth; k++)
                memcpy(a + k * DVTI_GEMM_ROWS, (const DVTI_T *)from + k * k_stride,
                       DVTI_GEMM_ROWS * sizeof(DVTI_T));
        else
            DVTI_G(pack_lanes)
        (a, DVTI_GEMM_ROWS, DVTI_GEMM_ROWS, rows - i, depth, from, dtype, row_stride, k_stride);
    }
}

static void DVTI_G(pack_b)(DVTI_T *b, int64_t ld, int64_t cols, int64_t depth, const void *data,
                           dvt_dtype dtype, int64_t col_stride, int64_t k_stride) {
    int64_t j = 0, k;
    if (dtype == DVTI_DTYPE && col_stride == 1) {
        j = cols / DVTI_WIDTH * DVTI_WIDTH;
        for (k = 0; k < depth && j > 0; k++)
            memcpy(b + k * ld, (const DVTI_T *)data + k * k_stride, (size_t)j * sizeof(DVTI_T));
    }
    for (; j < cols; j += DVTI_WIDTH)
        DVTI_G(pack_lanes)
    (b + j, DVTI_WIDTH, ld, cols - j, depth, DVTI_G(at)(data, dtype, j * col_stride), dtype,
     col_stride, k_stride);
}

#undef DVTI_LANES
#undef DVTI_WIDTH
#undef DVTI_REPEATED
