/* The packed matrix product of integers, in uint64_t so that sums wrap: packing, and the product of
   packed tiles. dvt_cpu.h shows the layout; cpu_matmul_int.c uses it. Vectors are the compiler's
   generic ones of 16 bytes, or single elements. */
#include "3_cpu/dvt_cpu.h"

#if defined(__GNUC__) || defined(__clang__)
typedef uint64_t dvti_gemm_vector __attribute__((__vector_size__(16), __may_alias__));
#else
typedef uint64_t dvti_gemm_vector;
#endif

#define DVTI_LANES ((int64_t)(sizeof(dvti_gemm_vector) / sizeof(uint64_t)))
#define DVTI_WIDTH (2 * DVTI_LANES) /* columns of a panel */

/* ---- the plan ---- */
static int64_t dvti_gemm_up(int64_t n, int64_t multiple) {
    return (n + multiple - 1) / multiple * multiple;
}

/* Returns the length of each piece when n is cut into equal pieces of at most `most`. All but the
   last are multiples of `multiple`. */
static int64_t dvti_gemm_cut(int64_t n, int64_t most, int64_t multiple) {
    int64_t parts = n > most ? (n - 1) / most + 1 : 1;
    return n <= multiple ? multiple : dvti_gemm_up((n - 1) / parts + 1, multiple);
}

/* The largest tile fits in L2: A takes 192 KiB, B 272 KiB (rows of plan.ld), the sums 96 KiB. */
#define DVTI_GEMM_TILE_ROWS 96
#define DVTI_GEMM_TILE_COLS 128

DVTI_FN dvti_gemm dvti_gemm_plan(int64_t rows, int64_t cols, int64_t depth) {
    const int64_t size = sizeof(uint64_t);
    dvti_gemm plan;
    plan.rows = dvti_gemm_cut(rows, DVTI_GEMM_TILE_ROWS, DVTI_GEMM_ROWS);
    plan.cols = dvti_gemm_cut(cols, DVTI_GEMM_TILE_COLS, DVTI_WIDTH);
    plan.depth = dvti_gemm_cut(depth, DVTI_GEMM_DEPTH, 1);
    plan.ld = ((plan.cols * size + 63) / 64 | 1) * 64 / size;
    plan.b_at = dvti_gemm_up(plan.rows * plan.depth * size, 64);
    plan.acc_at = plan.b_at + dvti_gemm_up(plan.ld * plan.depth * size, 64);
    plan.row_at = plan.acc_at + dvti_gemm_up(plan.rows * plan.cols * size, 64);
    plan.bytes = plan.row_at + dvti_gemm_up(plan.cols * size, 64);
    return plan;
}

#undef DVTI_GEMM_TILE_ROWS
#undef DVTI_GEMM_TILE_COLS

/* ---- the product ---- */
#define DVTI_ROW_LOAD(i) dvti_gemm_vector c##i##0 = acc[2 * i], c##i##1 = acc[2 * i + 1];
#define DVTI_ROW_STEP(i)                                                                           \
    c##i##0 += a[i] * b0;                                                                          \
    c##i##1 += a[i] * b1;
#define DVTI_ROW_STORE(i)                                                                          \
    acc[2 * i] = c##i##0;                                                                          \
    acc[2 * i + 1] = c##i##1;
#define DVTI_EACH_ROW(M) M(0) M(1) M(2) M(3) M(4) M(5)

/* Adds depth products to 6 rows x 2 vectors of sums, which stay in registers. */
static void dvti_gemm_micro(int64_t depth, const uint64_t *a, const uint64_t *b, int64_t ld,
                            dvti_gemm_vector *acc) {
    int64_t k;
    DVTI_EACH_ROW(DVTI_ROW_LOAD)
    for (k = 0; k < depth; k++) {
        const dvti_gemm_vector *row = (const dvti_gemm_vector *)(const void *)b;
        dvti_gemm_vector b0 = row[0], b1 = row[1];
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

/* Each panel of B stays in L1 while all panels of A are read. */
DVTI_FN void dvti_gemm_multiply(const dvti_gemm *plan, int64_t rows, int64_t cols, int64_t depth,
                                const uint64_t *a, const uint64_t *b, uint64_t *acc, bool first) {
    int64_t i, j;
    if (first)
        memset(acc, 0,
               (size_t)(dvti_gemm_up(rows, DVTI_GEMM_ROWS) * dvti_gemm_up(cols, DVTI_WIDTH)) *
                   sizeof *acc);
    for (j = 0; j < cols; j += DVTI_WIDTH)
        for (i = 0; i < rows; i += DVTI_GEMM_ROWS) {
            dvti_gemm_micro(depth, a + i * depth, b + j, plan->ld, (dvti_gemm_vector *)(void *)acc);
            acc += DVTI_GEMM_ROWS * DVTI_WIDTH;
        }
}

DVTI_FN void dvti_gemm_row(int64_t rows, int64_t cols, const uint64_t *acc, int64_t r,
                           uint64_t *out) {
    const int64_t panels = (rows + DVTI_GEMM_ROWS - 1) / DVTI_GEMM_ROWS;
    int64_t j;
    acc += r * DVTI_WIDTH;
    for (j = 0; j < cols; j += DVTI_WIDTH) {
        memcpy(out + j, acc, (size_t)DVTI_MIN(DVTI_WIDTH, cols - j) * sizeof *out);
        acc += panels * DVTI_GEMM_ROWS * DVTI_WIDTH;
    }
}

/* ---- packing ---- */
/* Packs up to `width` rows of A or columns of B next to each other, `ld` elements from one k to the
   next. Takes two at a time, and zeros the rest. */
static void dvti_gemm_pack_lanes(uint64_t *out, int64_t width, int64_t ld, int64_t lanes,
                                 int64_t depth, const void *data, dvt_dtype dtype,
                                 int64_t lane_stride, int64_t k_stride) {
    const int64_t *from = (const int64_t *)data;
    int64_t l = 0, k, last = DVTI_MIN(lanes, width);
    for (; dtype == DVT_I64 && l + 2 <= last; l += 2) {
        const int64_t *one = from + l * lane_stride, *two = one + lane_stride;
        for (k = 0; k < depth; k++) {
            out[k * ld + l] = (uint64_t)one[k * k_stride];
            out[k * ld + l + 1] = (uint64_t)two[k * k_stride];
        }
    }
    for (; l < last; l++)
        for (k = 0; k < depth; k++)
            out[k * ld + l] = (uint64_t)dvti_load_i64(data, dtype, l * lane_stride + k * k_stride);
    for (; l < width; l++)
        for (k = 0; k < depth; k++)
            out[k * ld + l] = 0;
}

static const void *dvti_gemm_at(const void *data, dvt_dtype dtype, int64_t element) {
    return (const char *)data + element * dvt_dtype_size(dtype);
}

DVTI_FN void dvti_gemm_pack_a(uint64_t *a, int64_t rows, int64_t depth, const void *data,
                              dvt_dtype dtype, int64_t row_stride, int64_t k_stride) {
    int64_t i;
    for (i = 0; i < rows; i += DVTI_GEMM_ROWS, a += DVTI_GEMM_ROWS * depth)
        dvti_gemm_pack_lanes(a, DVTI_GEMM_ROWS, DVTI_GEMM_ROWS, rows - i, depth,
                             dvti_gemm_at(data, dtype, i * row_stride), dtype, row_stride,
                             k_stride);
}

DVTI_FN void dvti_gemm_pack_b(const dvti_gemm *plan, uint64_t *b, int64_t cols, int64_t depth,
                              const void *data, dvt_dtype dtype, int64_t col_stride,
                              int64_t k_stride) {
    int64_t j = 0, k;
    if (dtype == DVT_I64 && col_stride == 1) {
        j = cols / DVTI_WIDTH * DVTI_WIDTH;
        for (k = 0; k < depth && j > 0; k++)
            memcpy(b + k * plan->ld, (const int64_t *)data + k * k_stride, (size_t)j * sizeof *b);
    }
    for (; j < cols; j += DVTI_WIDTH)
        dvti_gemm_pack_lanes(b + j, DVTI_WIDTH, plan->ld, cols - j, depth,
                             dvti_gemm_at(data, dtype, j * col_stride), dtype, col_stride,
                             k_stride);
}

#undef DVTI_LANES
#undef DVTI_WIDTH
