/* softmax, log_softmax and logsumexp of float64, composed of the elementwise loops of an ISA
   target. The elements stay in L1 from one loop to the next. No further kernels are compiled.
   Infinities and NaN behave as in simd/softmax.inl. */
#include "3_cpu/simd/dvt_simd.h"

#define DVTI_WIDE_BLOCK 2048 /* elements that go from loop to loop */
#define DVTI_WIDE_ROWS 128   /* rows at a time */
#define DVTI_WIDE_SHORT 100
#define DVTI_WIDE_PART 64 /* rows that are added before they meet others */

/* to = a op b, or op a where b is NULL; b is one number, or `each`. */
static void dvti_wide_loop(const dvti_simd *simd, dvti_op op, const double *a, const double *b,
                           bool each, double *to, int64_t n) {
    dvti_loop loop;
    loop.op = op;
    loop.in[0] = a;
    loop.in[1] = b;
    loop.step[0] = 1;
    loop.step[1] = each;
    loop.out = to;
    loop.n = n;
    loop.stream = false;
    simd->f64->loop(op)(&loop);
}

static dvti_reduction dvti_wide_reduction(dvti_op op, const double *x, int64_t step, int64_t rows,
                                          int64_t n, double *value) {
    dvti_reduction p;
    p.op = op;
    p.dtype = DVT_F64;
    p.x = x;
    p.step = step;
    p.rows = rows;
    p.n = n;
    p.seen = 0;
    p.mean = NULL;
    p.value = value;
    p.integer = NULL;
    p.at = NULL;
    return p;
}

static void dvti_wide_rows(const dvti_simd *simd, dvti_op op, const double *x, int64_t step,
                           int64_t rows, int64_t n, double *value) {
    const dvti_reduction p = dvti_wide_reduction(op, x, step, rows, n, value);
    dvti_simd_reduce_of(simd)->reduce64(op).rows(&p);
}

static void dvti_wide_columns(const dvti_simd *simd, dvti_op op, const double *x, int64_t step,
                              int64_t rows, int64_t n, double *value) {
    const dvti_reduction p = dvti_wide_reduction(op, x, step, rows, n, value);
    const double start = dvti_reduce_start_f64(op);
    int64_t j;
    for (j = 0; j < (n + 7) / 8 * 8; j++)
        value[j] = start;
    dvti_simd_reduce_of(simd)->reduce64(op).columns(&p);
}

/* ---- rows ---- */
/* Applies a number b to each row. For contiguous short rows, a copy of b for each element costs
   less than a call for each row. */
static void dvti_wide_by_rows(const dvti_simd *simd, dvti_op op, const double *a, int64_t a_step,
                              const double *b, double *to, int64_t to_step, int64_t rows,
                              int64_t n) {
    double copies[DVTI_WIDE_BLOCK];
    int64_t r, k;
    if (rows > 1 && n <= DVTI_WIDE_SHORT && a_step == n && to_step == n) {
        for (r = 0; r < rows; r++)
            for (k = 0; k < n; k++)
                copies[r * n + k] = b[r];
        dvti_wide_loop(simd, op, a, copies, true, to, rows * n);
        return;
    }
    for (r = 0; r < rows; r++)
        dvti_wide_loop(simd, op, a + r * a_step, &b[r], false, to + r * to_step, n);
}

static int64_t dvti_wide_group(int64_t rows, int64_t n) {
    return DVTI_MAX(1, DVTI_MIN(DVTI_MIN(rows, DVTI_WIDE_ROWS), DVTI_WIDE_BLOCK / n));
}

/* Sums exp(x - most) of a group. The exponentials go to e, which holds a block; those of a longer
   row to `all`, unless it is NULL. */
static void dvti_wide_sums(const dvti_simd *simd, const double *x, int64_t step, int64_t rows,
                           int64_t n, const double *most, double *e, double *all, double *sum) {
    double part[DVTI_WIDE_ROWS];
    int64_t at, m, r;
    for (at = 0; at < n; at += m) {
        double *to = n > DVTI_WIDE_BLOCK && all ? all + at : e;
        m = DVTI_MIN(n - at, DVTI_WIDE_BLOCK);
        dvti_wide_by_rows(simd, DVTI_OP_sub, x + at, step, most, to, m, rows, m);
        dvti_wide_loop(simd, DVTI_OP_exp, to, NULL, false, to, rows * m);
        for (r = 0; at && r < rows; r++)
            part[r] = sum[r];
        dvti_wide_rows(simd, DVTI_OP_sum, to, m, rows, m, sum);
        for (r = 0; at && r < rows; r++)
            sum[r] += part[r];
    }
}

DVTI_FN void dvti_softmax64(const dvti_simd *simd, const double *x, int64_t x_step, double *y,
                            int64_t y_step, int64_t rows, int64_t n, bool logarithm) {
    double e[DVTI_WIDE_BLOCK], most[DVTI_WIDE_ROWS], sum[DVTI_WIDE_ROWS];
    int64_t some;
    for (; rows > 0; rows -= some, x += some * x_step, y += some * y_step) {
        some = dvti_wide_group(rows, n);
        dvti_wide_rows(simd, DVTI_OP_max, x, x_step, some, n, most);
        dvti_wide_sums(simd, x, x_step, some, n, most, e, logarithm ? NULL : y, sum);
        dvti_wide_loop(simd, logarithm ? DVTI_OP_log : DVTI_OP_reciprocal, sum, NULL, false, sum,
                       some);
        if (logarithm) /* most + log(sum) would lose the logarithm next to a huge value */
            dvti_wide_by_rows(simd, DVTI_OP_sub, x, x_step, most, y, y_step, some, n);
        if (logarithm || n > DVTI_WIDE_BLOCK)
            dvti_wide_by_rows(simd, logarithm ? DVTI_OP_sub : DVTI_OP_mul, y, y_step, sum, y,
                              y_step, some, n);
        else
            dvti_wide_by_rows(simd, DVTI_OP_mul, e, n, sum, y, y_step, some, n);
    }
}

/* Clamps infinite row maxima to +-DBL_MAX. The sum is then infinite, 0 or NaN as it should be. */
static void dvti_wide_limit(double *most, int64_t n) {
    int64_t k;
    for (k = 0; k < n; k++)
        most[k] = most[k] > DBL_MAX ? DBL_MAX : most[k] < -DBL_MAX ? -DBL_MAX : most[k];
}

DVTI_FN void dvti_logsumexp64(const dvti_simd *simd, const dvti_reduction *p) {
    const double *x = (const double *)p->x;
    double e[DVTI_WIDE_BLOCK], sum[DVTI_WIDE_ROWS], *most = p->value;
    int64_t some, r;
    for (r = 0; r < p->rows; r += some, x += some * p->step, most += some) {
        some = dvti_wide_group(p->rows - r, p->n);
        dvti_wide_rows(simd, DVTI_OP_max, x, p->step, some, p->n, most);
        dvti_wide_limit(most, some);
        dvti_wide_sums(simd, x, p->step, some, p->n, most, e, NULL, sum);
        dvti_wide_loop(simd, DVTI_OP_log, sum, NULL, false, sum, some);
        dvti_wide_loop(simd, DVTI_OP_add, most, sum, true, most, some);
    }
}

/* ---- neighboring ones, whose elements stand in `rows` rows ---- */
/* n <= DVTI_BLOCK. Their exponentials go to y, unless it is NULL. */
static void dvti_wide_column_sums(const dvti_simd *simd, const double *x, int64_t x_step, double *y,
                                  int64_t y_step, int64_t rows, int64_t n, const double *most,
                                  double *sum) {
    double e[DVTI_BLOCK], part[DVTI_BLOCK]; /* the error does not grow with every row */
    int64_t r;
    memset(sum, 0, sizeof *sum * (size_t)n);
    for (r = 0; r < rows; r++) {
        double *to = y ? y + r * y_step : e;
        if (r % DVTI_WIDE_PART == 0)
            memset(part, 0, sizeof part);
        dvti_wide_loop(simd, DVTI_OP_sub, x + r * x_step, most, true, to, n);
        dvti_wide_loop(simd, DVTI_OP_exp, to, NULL, false, to, n);
        dvti_wide_loop(simd, DVTI_OP_add, part, to, true, part, n);
        if (r % DVTI_WIDE_PART == DVTI_WIDE_PART - 1 || r == rows - 1)
            dvti_wide_loop(simd, DVTI_OP_add, sum, part, true, sum, n);
    }
}

DVTI_FN void dvti_softmax64_columns(const dvti_simd *simd, const double *x, int64_t x_step,
                                    double *y, int64_t y_step, int64_t rows, int64_t n,
                                    bool logarithm) {
    double most[DVTI_BLOCK], sum[DVTI_BLOCK];
    int64_t r;
    dvti_wide_columns(simd, DVTI_OP_max, x, x_step, rows, n, most);
    dvti_wide_column_sums(simd, x, x_step, logarithm ? NULL : y, y_step, rows, n, most, sum);
    dvti_wide_loop(simd, logarithm ? DVTI_OP_log : DVTI_OP_reciprocal, sum, NULL, false, sum, n);
    for (r = 0; r < rows; r++, x += x_step, y += y_step) {
        if (logarithm)
            dvti_wide_loop(simd, DVTI_OP_sub, x, most, true, y, n);
        dvti_wide_loop(simd, logarithm ? DVTI_OP_sub : DVTI_OP_mul, y, sum, true, y, n);
    }
}

DVTI_FN void dvti_logsumexp64_columns(const dvti_simd *simd, const dvti_reduction *p) {
    const double *x = (const double *)p->x;
    double sum[DVTI_BLOCK];
    dvti_wide_columns(simd, DVTI_OP_max, x, p->step, p->rows, p->n, p->value);
    dvti_wide_limit(p->value, p->n);
    dvti_wide_column_sums(simd, x, p->step, NULL, 0, p->rows, p->n, p->value, sum);
    dvti_wide_loop(simd, DVTI_OP_log, sum, NULL, false, sum, p->n);
    dvti_wide_loop(simd, DVTI_OP_add, p->value, sum, true, p->value, p->n);
}

#undef DVTI_WIDE_BLOCK
#undef DVTI_WIDE_ROWS
#undef DVTI_WIDE_SHORT
#undef DVTI_WIDE_PART
