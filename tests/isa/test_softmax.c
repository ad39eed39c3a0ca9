/* softmax, log_softmax and transposing copies of every ISA target, compared with the reference. The
   same bits on all ISA targets and for any number of threads; no access outside the operands. */
#include "isa.h"

static dvti_view matrix_of(void *data, dvt_dtype dtype, int64_t rows, int64_t columns,
                           int64_t row_step, int64_t column_step) {
    dvti_view view;
    memset(&view, 0, sizeof view);
    view.data = data;
    view.dtype = dtype;
    view.ndim = 2;
    view.dim[0] = rows;
    view.dim[1] = columns;
    view.stride[0] = row_step;
    view.stride[1] = column_step;
    return view;
}

static void run_one(const char *isa, int threads, const dvti_kernel *kernel, dvti_op op,
                    dvti_view in, dvti_view out) {
    dvti_launch launch;
    memset(&launch, 0, sizeof launch);
    launch.kernel = kernel;
    launch.op = op;
    launch.compute = in.dtype == DVT_F64            ? DVTI_F64
                     : dvt_dtype_is_float(in.dtype) ? DVTI_F32
                                                    : DVTI_I64;
    launch.n_in = launch.n_out = 1;
    launch.in[0] = in;
    launch.out[0] = out;
    CHECK(dvt_set_cpu_isa(isa) == DVT_OK);
    CHECK(dvt_set_num_threads(threads) == DVT_OK);
    dvti_cpu_run(&launch);
    CHECK(dvt_set_num_threads(0) == DVT_OK);
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
}

/* ---- softmax ---- */
/* Checks x of rows * n elements of a dtype, `step` apart. Bounds: the exponential, the reciprocal
   of the sum and their product are rounded. The exponent's rounding error is relative to its size,
   which is below 90 where the result is not negligible. The logarithm has two roundings of numbers
   below 200. */
static void check_rows(dvti_op op, dvt_dtype dtype, int64_t rows, int64_t n, int64_t step,
                       const void *x, void *y) {
    size_t bytes = (size_t)(rows * n * step) * 8 + 64;
    char *expected = (char *)malloc(bytes), *first = (char *)malloc(bytes);
    dvti_view in = matrix_of((void *)(uintptr_t)x, dtype, rows, n, n * step, step);
    dvti_view out = matrix_of(y, dtype, rows, n, n * step, step);
    const double half = dtype == DVT_F64 ? DBL_EPSILON / 2 : FLT_EPSILON / 2;
    double unit = dtype == DVT_F16 ? 0x1p-11 : dtype == DVT_BF16 ? 0x1p-8 : half;
    bool compare = false;
    int threads;
    memset(expected, 0, bytes);
    out.data = expected;
    run_one("reference", 1, dvti_kernel_softmax(), op, in, out);
    out.data = y;
    FOR_EACH_TARGET(for (threads = 1; threads <= 2; threads++) {
        int64_t k;
        int64_t bad = -1;
        run_one(target->name, threads, dvti_kernel_softmax(), op, in, out);
        for (k = 0; k < rows * n; k++) {
            double got = dvti_load_f64(y, dtype, k * step);
            double want = dvti_load_f64(expected, dtype, k * step);
            double error = op == DVTI_OP_softmax ? fabs(want) * (2 * unit + 100 * half) +
                                                       (dtype == DVT_F16 ? 0x1p-24 : 1e-38)
                                                 : 2 * unit * fabs(want) + 200 * half;
            if (!(fabs(got - want) <= error) && got != want && (got == got || want == want))
                bad = k;
            if (compare && !same_bits_f64(got, dvti_load_f64(first, dtype, k * step)))
                bad = k;
        }
        dvt_test_check(bad < 0, __FILE__, __LINE__,
                       "%s, op %d, %d rows of %d, element %d: %.9g, reference %.9g", target->name,
                       (int)op, (int)rows, (int)n, (int)bad,
                       bad < 0 ? 0 : dvti_load_f64(y, dtype, bad * step),
                       bad < 0 ? 0 : dvti_load_f64(expected, dtype, bad * step));
        memcpy(first, y, (size_t)(rows * n * step) * (size_t)dvt_dtype_size(dtype));
        compare = true;
    });
    free(expected);
    free(first);
}

static float soft_value(int64_t row, int mode) {
    static const float special[] = {INFINITY, -INFINITY, NAN, FLT_MAX, -FLT_MAX, 1e-40f};
    if (mode == 1 && (int)dvt_test_random(0, 20) == 0)
        return special[row % 6];
    return (float)dvt_test_random(-20, 20) + (mode == 2 ? 1e6f : 0);
}

DVT_TEST(isa_softmax_of_all_lengths) {
    enum { MOST = 3 * 5000 };

    guard x = guard_new(MOST * sizeof(double)), y = guard_new(MOST * sizeof(double));
    int64_t n, k;
    int side, mode;
    for (n = 1; n <= 5000; n += n < 101 ? 1 : n < 1100 ? 307 : 1203)
        for (side = 0; side < 4; side++) {
            const dvt_dtype dtype = side / 2 ? DVT_F64 : DVT_F32;
            size_t bytes = (size_t)(3 * n * dvt_dtype_size(dtype));
            void *from = side % 2 ? guard_end(x, bytes) : guard_start(x);
            void *to = side % 2 ? guard_end(y, bytes) : guard_start(y);
            mode = (int)(n + side) % 3;
            for (k = 0; k < 3 * n; k++)
                dvti_store_f64(from, dtype, k, (double)soft_value(k / n, mode));
            check_rows(DVTI_OP_softmax, dtype, 3, n, 1, from, to);
            check_rows(DVTI_OP_log_softmax, dtype, 3, n, 1, from, to);
        }
    guard_free(x);
    guard_free(y);
}

DVT_TEST(isa_softmax_of_half_types_and_steps) {
    static const dvt_dtype dtypes[] = {DVT_F16, DVT_BF16, DVT_F32, DVT_F64};
    int64_t n, k, step;
    int d;
    for (d = 0; d < 4; d++)
        for (n = 1; n <= 3000; n = n * 3 + 1)
            for (step = 1; step <= 3; step += 2) {
                char *x = (char *)malloc((size_t)(4 * n * step) * 8 + 64),
                     *y = (char *)malloc((size_t)(4 * n * step) * 8 + 64);
                for (k = 0; k < 4 * n * step; k++) {
                    dvti_store_f64(x, dtypes[d], k, dvt_test_random(-9, 9));
                    dvti_store_f64(y, dtypes[d], k, 0);
                }
                check_rows(DVTI_OP_softmax, dtypes[d], 4, n, step, x, y);
                check_rows(DVTI_OP_log_softmax, dtypes[d], 4, n, step, x, y);
                free(x);
                free(y);
            }
}

DVT_TEST(isa_softmax_of_many_rows) {
    enum { ROWS = 3000, COLUMNS = 10 };

    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64};
    static double x[ROWS * COLUMNS], y[ROWS * COLUMNS];
    int k, d;
    for (d = 0; d < 2; d++) {
        for (k = 0; k < ROWS * COLUMNS; k++)
            dvti_store_f64(x, dtypes[d], k, (double)soft_value(k, 0));
        check_rows(DVTI_OP_softmax, dtypes[d], ROWS, COLUMNS, 1, x, y);
        check_rows(DVTI_OP_log_softmax, dtypes[d], ROWS, COLUMNS, 1, x, y);
    }
}

/* Rows of one vector have a path of their own, with the bits of each row alone; also in place, for
   any number of rows. It writes only the rows. */
DVT_TEST(isa_softmax_of_short_rows) {
    enum { ROWS = 37, MOST = 40 };

    guard x = guard_new(ROWS * MOST * sizeof(float)), y = guard_new(ROWS * MOST * sizeof(float));
    static float alone[ROWS * MOST], spread[ROWS * (MOST + 2)];
    int64_t n, k, row;
    int side, logarithm;
    for (n = 1; n <= MOST; n++)
        for (side = 0; side < 6; side++) {
            const size_t bytes = (size_t)(ROWS * n) * sizeof(float);
            float *from = (float *)(side % 2 ? guard_end(x, bytes) : guard_start(x));
            float *to = (float *)(side % 2 ? guard_end(y, bytes) : guard_start(y));
            for (k = 0; k < ROWS * n; k++)
                from[k] = soft_value(k / n, side / 2);
            for (logarithm = 0; logarithm < 2; logarithm++) {
                check_rows(logarithm ? DVTI_OP_log_softmax : DVTI_OP_softmax, DVT_F32, ROWS, n, 1,
                           from, to);
                FOR_EACH_TARGET({
                    bool same = true;
                    for (row = 0; row < ROWS; row++)
                        dvti_simd_softmax_of(target)->softmax(from + row * n, n, alone + row * n, n,
                                                              1, n, logarithm != 0);
                    for (row = ROWS; row > 0; row -= row > 16 ? 1 : 5) {
                        memcpy(to, from, bytes);
                        dvti_simd_softmax_of(target)->softmax(to, n, to, n, row, n, logarithm != 0);
                        for (k = 0; k < ROWS * n; k++)
                            same = same && same_bits_f32(to[k], k < row * n ? alone[k] : from[k]);
                    }
                    for (k = 0; k < ROWS * (n + 2); k++)
                        spread[k] = -7;
                    dvti_simd_softmax_of(target)->softmax(from, n, spread, n + 2, ROWS, n,
                                                          logarithm != 0);
                    for (k = 0; k < ROWS * (n + 2); k++)
                        same = same &&
                               same_bits_f32(spread[k], k % (n + 2) >= n
                                                            ? -7
                                                            : alone[k / (n + 2) * n + k % (n + 2)]);
                    dvt_test_check(same, __FILE__, __LINE__, "%s, rows of %d differ", target->name,
                                   (int)n);
                });
            }
        }
    guard_free(x);
    guard_free(y);
}

/* Along an axis that is not contiguous; its neighbors are. */
static void check_columns(dvti_op op, dvt_dtype dtype, int64_t batch, int64_t n, int64_t width,
                          int mode) {
    const int64_t size = batch * n * width;
    const size_t bytes = (size_t)(size * dvt_dtype_size(dtype));
    const double half = dtype == DVT_F64 ? DBL_EPSILON / 2 : FLT_EPSILON / 2;
    guard from = guard_new(bytes), to = guard_new(bytes);
    void *x = guard_end(from, bytes), *y = guard_end(to, bytes);
    void *expected = malloc(bytes), *first = malloc(bytes);
    dvti_view in = matrix_of(x, dtype, batch, width, n * width, 1), out;
    bool compare = false;
    int64_t k;
    int threads;
    in.ndim = 3;
    in.dim[2] = n;
    in.stride[2] = width;
    out = in;
    for (k = 0; k < size; k++)
        dvti_store_f64(x, dtype, k, (double)soft_value(k % width, mode));
    out.data = expected;
    run_one("reference", 1, dvti_kernel_softmax(), op, in, out);
    out.data = y;
    FOR_EACH_TARGET(for (threads = 1; threads <= 2; threads++) {
        int64_t bad = -1;
        run_one(target->name, threads, dvti_kernel_softmax(), op, in, out);
        for (k = 0; k < size; k++) {
            double got = dvti_load_f64(y, dtype, k);
            double want = dvti_load_f64(expected, dtype, k);
            double error = op == DVTI_OP_softmax ? fabs(want) * 110 * half + 1e-38
                                                 : 2 * half * fabs(want) + 200 * half;
            if ((!(fabs(got - want) <= error) && !same_bits_f64(got, want)) ||
                (compare && !same_bits_f64(got, dvti_load_f64(first, dtype, k))))
                bad = k;
        }
        dvt_test_check(bad < 0, __FILE__, __LINE__,
                       "%s, op %d, %d x %d x %d, element %d: %.9g, reference %.9g", target->name,
                       (int)op, (int)batch, (int)n, (int)width, (int)bad,
                       bad < 0 ? 0 : dvti_load_f64(y, dtype, bad),
                       bad < 0 ? 0 : dvti_load_f64(expected, dtype, bad));
        memcpy(first, y, bytes);
        compare = true;
    });
    free(expected);
    free(first);
    guard_free(from);
    guard_free(to);
}

DVT_TEST(isa_softmax_along_other_axes) {
    static const int64_t widths[] = {8, 15, 16, 17, 33, 100, 255, 256, 257, 600};
    static const int64_t lengths[] = {2, 7, 8, 9, 17, 100};
    int w, l;
    for (w = 0; w < 10; w++)
        for (l = 0; l < 6; l++) {
            const dvt_dtype dtype = (w + l) % 2 ? DVT_F64 : DVT_F32;
            check_columns(DVTI_OP_softmax, dtype, 1 + l % 2, lengths[l], widths[w], (w + l) % 3);
            check_columns(DVTI_OP_log_softmax, dtype, 1 + w % 2, lengths[l], widths[w],
                          (w + l) % 3);
        }
    check_columns(DVTI_OP_softmax, DVT_F32, 1, 5000, 20, 0);
    check_columns(DVTI_OP_softmax, DVT_F64, 1, 5000, 20, 0);
}

/* ---- layer norm ---- */
/* The bound allows far more roundings than there are, each of numbers below 8. */
DVT_TEST(isa_normalizes_rows) {
    enum { MOST = 1200 };

    static float expected[MOST], first[MOST];
    guard memory[4] = {guard_new(sizeof expected), guard_new(sizeof expected),
                       guard_new(sizeof expected), guard_new(sizeof expected)};
    float *row[4];
    int n, side, k, with;
    for (n = 1; n <= MOST; n += n < 130 ? 1 : 107)
        for (side = 0; side < 2; side++)
            for (with = 0; with < 4; with++) {
                double sum = 0, mean, squares = 0, scale;
                bool compare = false;
                for (k = 0; k < 4; k++)
                    row[k] = (float *)(side ? guard_end(memory[k], sizeof(float) * (size_t)n)
                                            : guard_start(memory[k]));
                for (k = 0; k < n; k++) {
                    row[0][k] = (float)dvt_test_random(-2, 2);
                    row[2][k] = (float)dvt_test_random(-2, 2);
                    row[3][k] = (float)dvt_test_random(-2, 2);
                    sum += row[0][k];
                }
                mean = sum / n;
                for (k = 0; k < n; k++)
                    squares += (row[0][k] - mean) * (row[0][k] - mean);
                scale = 1 / sqrt(squares / n + 0.25);
                for (k = 0; k < n; k++)
                    expected[k] = (float)((row[0][k] - mean) * scale * (with & 1 ? row[2][k] : 1) +
                                          (with & 2 ? row[3][k] : 0));
                FOR_EACH_TARGET({
                    int bad = -1;
                    dvti_simd_softmax_of(target)->layer_norm(row[0], row[1], n,
                                                             with & 1 ? row[2] : NULL,
                                                             with & 2 ? row[3] : NULL, 0.25f);
                    for (k = 0; k < n; k++)
                        if (!(fabsf(row[1][k] - expected[k]) <= 64 * FLT_EPSILON) ||
                            (compare && !same_bits_f32(row[1][k], first[k])))
                            bad = k;
                    dvt_test_check(bad < 0, __FILE__, __LINE__,
                                   "%s, %d elements: number %d is %.9g, expected %.9g",
                                   target->name, n, bad, bad < 0 ? 0 : (double)row[1][bad],
                                   bad < 0 ? 0 : (double)expected[bad]);
                    memcpy(first, row[1], sizeof(float) * (size_t)n);
                    compare = true;
                });
            }
    for (k = 0; k < 4; k++)
        guard_free(memory[k]);
}

/* ---- transposing copies ---- */
static void check_copy(dvt_dtype dtype, int64_t batch, int64_t rows, int64_t columns, int64_t gap) {
    int64_t size = dvt_dtype_size(dtype), step = rows + gap, k, r, c;
    size_t from_bytes = (size_t)(((batch * columns - 1) * step + rows) * size);
    size_t to_bytes = (size_t)(batch * rows * columns * size);
    guard from = guard_new(from_bytes), to = guard_new(to_bytes);
    char *x = (char *)guard_end(from, from_bytes), *y = (char *)guard_end(to, to_bytes);
    dvti_view in = matrix_of(x, dtype, batch, rows, columns * step, 1), out = in;
    int threads;
    in.ndim = out.ndim = 3;
    in.dim[2] = out.dim[2] = columns;
    in.stride[2] = step;
    out.data = y;
    out.stride[0] = rows * columns;
    out.stride[1] = columns;
    out.stride[2] = 1;
    for (k = 0; k < (int64_t)from_bytes; k++)
        x[k] = (char)((k * 37 + (k >> 8)) & 0x3f); /* no NaN */
    FOR_EACH_TARGET(for (threads = 1; threads <= 2; threads++) {
        bool same = true;
        memset(y, 0x55, to_bytes);
        run_one(target->name, threads, dvti_kernel_elementwise(), DVTI_OP_copy, in, out);
        for (k = 0; k < batch; k++)
            for (r = 0; r < rows; r++)
                for (c = 0; c < columns; c++)
                    same = same &&
                           memcmp(y + ((k * rows + r) * columns + c) * size,
                                  x + ((k * columns + c) * step + r) * size, (size_t)size) == 0;
        CHECK(same);
    });
    guard_free(from);
    guard_free(to);
}

DVT_TEST(isa_transposing_copies) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_I32, DVT_F64, DVT_I64, DVT_F16, DVT_U8};
    static const int64_t extents[] = {8, 15, 16, 17, 31, 33, 63, 64, 65, 130};
    int d, i, j;
    for (d = 0; d < 6; d++)
        for (i = 0; i < 10; i++)
            for (j = 0; j < 10; j++)
                check_copy(dtypes[d], 1 + (i + j) % 3, extents[i], extents[j], (i + j) % 2 ? 0 : 3);
    check_copy(DVT_F32, 1, 300, 700, 0);
}
