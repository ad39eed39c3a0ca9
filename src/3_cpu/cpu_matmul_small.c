/* Small matrix products: one call of the kernel, since planning would take as long. What has to be turned stands on the stack. */
#include "3_cpu/cpu_matmul.h"

#define DVTI_MM_NEAR 32768 /* bytes on the stack */
#define DVTI_MM_MANY 64    /* rows that fill vectors */

DVTI_FN int64_t dvti_mm_up(int64_t n, int64_t multiple) {
    return (n + multiple - 1) / multiple * multiple;
}

DVTI_FN int64_t dvti_mm_slim_rows(const dvti_mm *p) {
    return !p->half && p->batch == 1 && p->a_row == 1 && p->n >= DVTI_MM_MANY && p->m < 16 &&
                   p->m % 8 != 0 && p->k >= 32 && p->k <= DVTI_MM_DEPTH
               ? DVTI_MM_NEAR / 64 / p->m * (64 / p->size)
               : 0;
}

DVTI_FN bool dvti_mm_is_one_call(const dvti_mm *p, int64_t terms) {
    const int64_t most = DVTI_MM_ALONE;
    return p->batch == 1 && !p->half && p->n > 1 && p->m > 1 && p->n <= most && p->m <= most &&
           p->k <= DVTI_MM_DEPTH && p->n * p->m <= terms && p->n * p->m * p->k < terms &&
           (p->n <= DVTI_MM_FEW_ROWS || p->k <= DVTI_MM_FEW_TERMS) &&
           (p->b_col == 1 || p->n <= dvti_mm_slim_rows(p) ||
            (p->b_k == 1 && dvti_mm_up(p->m * p->size, 64) * p->k <= DVTI_MM_NEAR));
}

static void dvti_mm_multiply(const dvti_mm *p, dvti_product *q, int64_t b_k) {
    static const double zero = 0;
    int64_t terms[DVTI_MM_DEPTH], k, at = 0; /* DVTI_MM_DEPTH is a multiple of 4 */
    for (k = 0; k < p->k; k += 4, at += 4 * b_k) {
        terms[k] = at;
        terms[k + 1] = at + b_k;
        terms[k + 2] = at + 2 * b_k;
        terms[k + 3] = at + 3 * b_k;
    }
    q->depth = p->k;
    q->b_k = terms;
    q->b_panel = p->by->width;
    q->start = &zero;
    q->start_row = 0;
    p->by->multiply(q);
}

static void dvti_mm_one_call_of(const dvti_mm *p, const void *b, int64_t b_k) {
    dvti_product q;
    q.rows = p->n;
    q.cols = p->m;
    q.a = p->launch->in[0].data;
    q.a_row = p->a_row;
    q.a_k = p->a_k;
    q.b = b;
    q.c = p->launch->out[0].data;
    q.c_row = p->m;
    dvti_mm_multiply(p, &q, b_k);
}

static void dvti_mm_one_call_turned(const dvti_mm *p) {
    DVTI_LINE_ALIGNED double turned[DVTI_MM_NEAR / sizeof(double)];
    const dvti_view *b = &p->launch->in[1];
    const int64_t row = dvti_mm_up(p->m * p->size, 64) / p->size;
    p->by->turn(turned, row, b->data, b->dtype, p->b_col, p->k, p->m);
    dvti_mm_one_call_of(p, turned, row);
}

DVTI_FN void dvti_mm_slim(const dvti_mm *p, int64_t i, int64_t rows) {
    DVTI_LINE_ALIGNED double turned[DVTI_MM_NEAR / sizeof(double)];
    dvti_product q;
    q.rows = p->m;
    q.cols = rows;
    q.a = p->launch->in[1].data;
    q.a_row = p->b_col;
    q.a_k = p->b_k;
    q.b = (const char *)p->launch->in[0].data + i * p->size;
    q.c = turned;
    q.c_row = dvti_mm_up(rows * p->size, 64) / p->size;
    dvti_mm_multiply(p, &q, p->a_k);
    p->by->turn_exactly((char *)p->launch->out[0].data + i * p->m * p->size, p->m, turned, q.c_row,
                        rows, p->m);
}

DVTI_FN void dvti_mm_one_call(const dvti_mm *p) {
    if (p->n <= dvti_mm_slim_rows(p))
        dvti_mm_slim(p, 0, p->n);
    else if (p->b_col != 1)
        dvti_mm_one_call_turned(p);
    else
        dvti_mm_one_call_of(p, p->launch->in[1].data, p->b_k);
    if (p->launch->n_in > 2 || p->launch->i[1])
        dvti_follow_product(p->simd, p->launch, 0, p->m, p->n, p->m);
}

#undef DVTI_MM_NEAR
#undef DVTI_MM_MANY
