/* Small matrix products: one call of the kernel, since planning takes as long. Transposed copies
   are on the stack. */
#include "3_cpu/cpu_matmul.h"

#define DVTI_MM_NEAR 32768 /* bytes on the stack */
#define DVTI_MM_MANY 64    /* rows that fill vectors */

DVTI_FN int64_t dvti_mm_up(int64_t n, int64_t multiple) {
    return (n + multiple - 1) / multiple * multiple;
}

static int64_t dvti_mm_size(const dvti_matrices *p) {
    return p->dtype == DVT_F64 ? 8 : 4;
}

DVTI_FN int64_t dvti_mm_transposed_rows(const dvti_matrices *p) {
    return p->a_row == 1 && p->n >= DVTI_MM_MANY && p->m < 16 && p->m % 8 != 0 && p->k >= 32 &&
                   p->k <= DVTI_MM_DEPTH
               ? DVTI_MM_NEAR / 64 / p->m * (64 / dvti_mm_size(p))
               : 0;
}

DVTI_FN bool dvti_mm_is_one_call(const dvti_matrices *p, int64_t macs) {
    const int64_t most = DVTI_MM_SERIAL_MACS;
    return p->n > 1 && p->m > 1 && p->n <= most && p->m <= most && p->k <= DVTI_MM_DEPTH &&
           p->n * p->m <= macs && p->n * p->m * p->k < macs &&
           (p->n <= DVTI_MM_FEW_ROWS || p->k <= DVTI_MM_FEW_DEPTH) &&
           (p->b_col == 1 || p->n <= dvti_mm_transposed_rows(p) ||
            (p->b_k == 1 && dvti_mm_up(p->m * dvti_mm_size(p), 64) * p->k <= DVTI_MM_NEAR));
}

/* b_k: from one row of q's B to the next. */
static void dvti_mm_multiply(const dvti_simd_gemm *by, dvti_product *q, int64_t b_k) {
    static const double zero = 0;
    int64_t offset[DVTI_MM_DEPTH], k, at = 0; /* DVTI_MM_DEPTH is a multiple of 4 */
    for (k = 0; k < q->depth; k += 4, at += 4 * b_k) {
        offset[k] = at;
        offset[k + 1] = at + b_k;
        offset[k + 2] = at + 2 * b_k;
        offset[k + 3] = at + 3 * b_k;
    }
    q->b_k = offset;
    q->b_panel = by->width;
    q->start = &zero;
    q->start_row = 0;
    by->multiply(q);
}

static void dvti_mm_one_call_of(const dvti_simd_gemm *by, const dvti_matrices *p, const void *b,
                                int64_t b_k) {
    dvti_product q;
    q.rows = p->n;
    q.a = p->a;
    q.a_row = p->a_row;
    q.b = b;
    q.a_k = p->a_k;
    q.cols = p->m;
    q.c = p->c;
    q.c_row = p->m;
    q.depth = p->k;
    dvti_mm_multiply(by, &q, b_k);
}

static void dvti_mm_one_call_transposed(const dvti_simd_gemm *by, const dvti_matrices *p) {
    DVTI_LINE_ALIGNED double transposed[DVTI_MM_NEAR / sizeof(double)];
    const int64_t size = dvti_mm_size(p), row = dvti_mm_up(p->m * size, 64) / size;
    by->transpose(transposed, row, p->b, p->dtype, p->b_col, p->k, p->m);
    dvti_mm_one_call_of(by, p, transposed, row);
}

DVTI_FN void dvti_mm_transposed(const dvti_simd_gemm *by, const dvti_matrices *p, int64_t i,
                                int64_t rows) {
    DVTI_LINE_ALIGNED double transposed[DVTI_MM_NEAR / sizeof(double)];
    const int64_t size = dvti_mm_size(p);
    dvti_product q;
    q.rows = p->m;
    q.cols = rows;
    q.a = p->b;
    q.a_row = p->b_col;
    q.a_k = p->b_k;
    q.b = (const char *)p->a + i * size;
    q.c = transposed;
    q.c_row = dvti_mm_up(rows * size, 64) / size;
    q.depth = p->k;
    dvti_mm_multiply(by, &q, p->a_k);
    by->transpose_exactly((char *)p->c + i * p->m * size, p->m, transposed, q.c_row, rows, p->m);
}

DVTI_FN void dvti_mm_one_call(const dvti_simd_gemm *by, const dvti_matrices *p) {
    if (p->n <= dvti_mm_transposed_rows(p))
        dvti_mm_transposed(by, p, 0, p->n);
    else if (p->b_col != 1)
        dvti_mm_one_call_transposed(by, p);
    else
        dvti_mm_one_call_of(by, p, p->b, p->b_k);
}

DVTI_FN bool dvti_cpu_matmul_small(const dvti_matrices *product) {
    const dvti_simd *simd = dvti_simd_now();
    if (!simd || !dvti_mm_is_one_call(product, DVTI_MM_SMALL_MACS))
        return false;
    dvti_mm_one_call(product->dtype == DVT_F64 ? dvti_simd_products_of(simd)->f64
                                               : dvti_simd_products_of(simd)->f32,
                     product);
    return true;
}

#undef DVTI_MM_NEAR
#undef DVTI_MM_MANY
