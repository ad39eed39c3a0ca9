/* The kernels of matrix products and of packing on their own, at every size. Operands end and begin
   at pages without access. */
#include "gemm_inputs.h"

/* ---- the kernels ---- */
enum { ROWS = 14, COLS = 131, DEPTH = 261 };

/* Makes one call of the kernel, whose arrays end (or begin) at a guard page. */
typedef struct call {
    dvt_dtype dtype;
    int64_t rows, cols, depth;
    bool transposed_a, panels, odd_table, at_start, pack_first, stream;
    int start; /* 0: continues C, 1: zero, 2: a bias per row */
} call;

/* Computes the first rows of a product whose B is packed during the call; p continues with the
   others. */
static void check_multiply_packing(const dvti_simd_gemm *by, const call *t, dvti_product *p,
                                   guard g) {
    const int64_t n = p->depth * by->width;
    char *panel = (char *)place(g, n * by->size, t->at_start);
    int64_t i, done, untouched = 0;
    for (i = 0; i < n; i++)
        dvti_store_f64(panel, t->dtype, i, 99);
    done = by->multiply_packing(p, t->cols, panel);
    CHECK(done >= 0 && done <= p->rows && (!done || t->cols == by->width));
    CHECK(done || t->cols < by->width || t->rows < ROWS);
    for (i = 0; i < n; i++) {
        double value = dvti_load_f64(panel, t->dtype, i);
        untouched += value == 99;
        if (done && !same_bits(value, dvti_load_f64(p->b, t->dtype,
                                                    i / by->width * t->cols + i % by->width))) {
            dvt_test_check(false, __FILE__, __LINE__, "panel of depth %d at %d", (int)p->depth,
                           (int)i);
            return;
        }
    }
    CHECK_INT(untouched, done ? 0 : n);
    p->rows -= done;
    p->a = (const char *)p->a + done * p->a_row * by->size;
    p->c = (char *)p->c + done * p->c_row * by->size;
    if (p->start)
        p->start = (const char *)p->start + done * p->start_row * by->size;
}

static void check_call(const dvti_simd_gemm *by, const call *t, const guard *g) {
    static double expected[ROWS * COLS];
    static int64_t table[DEPTH];
    const int64_t s = by->size, rows = t->rows, cols = t->cols, depth = t->depth;
    const int64_t a_n = rows * depth,
                  c_row = t->stream ? cols / (64 / s) * (64 / s) + 64 / s : cols + GAP;
    const int64_t panels = (cols + by->width - 1) / by->width;
    const int64_t b_n = t->panels ? panels * by->width * depth : depth * cols;
    const int64_t c_n = t->stream ? rows * c_row : rows ? (rows - 1) * c_row + cols : 0;
    double bias[ROWS], gap = -77;
    dvti_product p;
    char *a = (char *)place(g[0], a_n * s, t->at_start);
    char *b = (char *)place(g[1], b_n * s, t->at_start);
    char *c = (char *)place(g[2], c_n * s, t->at_start);
    int64_t i, j, k;
    fill(a, t->dtype, a_n);
    fill(b, t->dtype, b_n);
    for (i = 0; i < ROWS; i++)
        dvti_store_f64(bias, t->dtype, i, t->start == 2 ? 0.5 + (double)i : 0);
    for (i = 0; i < c_n; i++)
        dvti_store_f64(c, t->dtype, i, i % c_row >= cols ? gap : t->start ? NAN : 0.25);
    p.rows = rows;
    p.cols = cols;
    p.depth = depth;
    p.a = a;
    p.a_row = t->transposed_a ? 1 : depth;
    p.a_k = t->transposed_a ? rows : 1;
    p.b = b;
    p.b_k = table;
    p.b_panel = t->panels ? by->width * depth : by->width;
    p.c = c;
    p.c_row = c_row;
    p.start = t->start ? bias : NULL;
    p.start_row = t->start == 2;
    for (k = 0; k < depth; k++)
        table[k] = (t->odd_table ? (k * 7 + 3) % depth : k) * (t->panels ? by->width : cols);
    for (i = 0; i < rows; i++)
        for (j = 0; j < cols; j++) {
            double sum = t->start ? dvti_load_f64(bias, t->dtype, t->start == 2 ? i : 0) : 0.25;
            for (k = 0; k < depth; k++)
                sum = chain(t->dtype, dvti_load_f64(a, t->dtype, i * p.a_row + k * p.a_k),
                            dvti_load_f64(b, t->dtype,
                                          j / by->width * p.b_panel + table[k] + j % by->width),
                            sum);
            expected[i * COLS + j] = sum;
        }
    if (t->pack_first && cols <= by->width)
        check_multiply_packing(by, t, &p, g[3]);
    (t->stream ? by->multiply_stream : by->multiply)(&p);
    for (i = 0; i < c_n; i++) {
        double value = dvti_load_f64(c, t->dtype, i);
        j = i % c_row;
        if (!same_bits(value, j >= cols ? gap : expected[i / c_row * COLS + j])) {
            dvt_test_check(false, __FILE__, __LINE__, "rows %d cols %d depth %d at %d, %d",
                           (int)rows, (int)cols, (int)depth, (int)(i / c_row), (int)j);
            return;
        }
    }
}

DVT_TEST(product_kernels_at_every_size) {
    static const int64_t some_cols[] = {1,  2,  7,  8,  9,  15, 16, 17, 24, 31,  32,  33, 40,
                                        47, 48, 49, 57, 63, 64, 65, 80, 96, 127, 128, 131};
    static const int64_t depths[] = {0, 1, 2, 3, 9, 17};
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64};
    const size_t cols = sizeof some_cols / sizeof *some_cols;
    guard g[4];
    call t;
    int64_t i;
    int d;
    for (i = 0; i < 4; i++)
        g[i] = guard_new((size_t)(8 * DEPTH * 192));
    for (d = 0; d < 2; d++)
        for (i = 0; i < (int64_t)cols * ROWS * 3; i++) {
            t.dtype = dtypes[d];
            t.cols = some_cols[i % (int64_t)cols];
            t.rows = i / (int64_t)cols % ROWS + 1;
            t.depth = draw() % 40 == 0 ? (int64_t)DEPTH : PICK(depths);
            t.transposed_a = draw() % 2;
            t.panels = draw() % 2;
            t.odd_table = draw() % 2;
            t.at_start = draw() % 4 == 0;
            t.pack_first = !t.panels && !t.odd_table;
            t.start = (int)(i / (int64_t)cols / ROWS);
            t.stream = t.start && draw() % 2;
            FOR_EACH_TARGET(check_call(d ? dvti_simd_products_of(target)->f64
                                         : dvti_simd_products_of(target)->f32,
                                       &t, g));
        }
    for (i = 0; i < 4; i++)
        guard_free(g[i]);
}

/* ---- packing ---- */
typedef enum packing { COPY, TURN, EXACTLY } packing;

static void check_packing(const dvti_simd_gemm *by, dvt_dtype dtype, packing how, int64_t rows,
                          int64_t cols, guard from, guard to) {
    static const char *const names[] = {"copy", "transpose", "transpose exactly"};
    const bool transposed = how != COPY;
    const int64_t lanes = 64 / by->size,
                  full = how == EXACTLY ? cols : (cols + lanes - 1) / lanes * lanes,
                  ld = full + lanes;
    const int64_t step = (transposed ? rows : cols) + GAP;
    const int64_t n = transposed ? (cols - 1) * step + rows : (rows - 1) * step + cols;
    const dvt_dtype own = by->size == 8 ? DVT_F64 : DVT_F32;
    char *src = (char *)place(from, n * dvt_dtype_size(dtype), false);
    char *dst = (char *)place(to, ((rows - 1) * ld + full) * by->size, false);
    int64_t r, c;
    fill(src, dtype, n);
    for (r = 0; r < (rows - 1) * ld + full; r++)
        dvti_store_f64(dst, own, r, 99);
    if (how == EXACTLY)
        by->transpose_exactly(dst, ld, src, step, rows, cols);
    else
        (transposed ? by->transpose : by->copy)(dst, ld, src, dtype, step, rows, cols);
    for (r = 0; r < rows; r++)
        for (c = 0; c < (r < rows - 1 ? ld : full); c++) {
            double got = dvti_load_f64(dst, own, r * ld + c);
            double expected = c >= full    ? 99
                              : c >= cols  ? 0
                              : transposed ? dvti_load_f64(src, dtype, c * step + r)
                                           : dvti_load_f64(src, dtype, r * step + c);
            if (!same_bits(got, expected)) {
                dvt_test_check(false, __FILE__, __LINE__, "%s %s of %d x %d at %d, %d", names[how],
                               dvt_dtype_name(dtype), (int)rows, (int)cols, (int)r, (int)c);
                return;
            }
        }
}

DVT_TEST(packing_fills_whole_vectors) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F16, DVT_BF16, DVT_F64, DVT_I8, DVT_U8};
    static const int64_t sizes[] = {1, 2, 3, 5, 8, 9, 15, 16, 17, 31, 33, 64, 70, 130};
    const int n = (int)(sizeof sizes / sizeof *sizes);
    guard from = guard_new(8 * 140 * 140), to = guard_new(8 * 140 * 180);
    int d, i, j;
    for (d = 0; d < 6; d++)
        for (i = 0; i < n; i++)
            for (j = 0; j < n; j++)
                FOR_EACH_TARGET({
                    const dvti_simd_gemm *by = d == 3 ? dvti_simd_products_of(target)->f64
                                                      : dvti_simd_products_of(target)->f32;
                    check_packing(by, dtypes[d], COPY, sizes[i], sizes[j], from, to);
                    check_packing(by, dtypes[d], TURN, sizes[i], sizes[j], from, to);
                    if (d == 0 || d == 3)
                        check_packing(by, dtypes[d], EXACTLY, sizes[i], sizes[j], from, to);
                });
    guard_free(from);
    guard_free(to);
}
