/* Reductions of every ISA target: close to the reference for all layouts, the same bits on all ISA
   targets and for any number of threads. No access outside the operands. */
#include "reductions.h"

static dvt_dtype result_dtype(dvti_op op, dvt_dtype dtype) {
    if (places(op))
        return DVT_I64;
    if (op == DVTI_OP_any || op == DVTI_OP_all)
        return DVT_BOOL;
    if (dvt_dtype_is_float(dtype) || op == DVTI_OP_min || op == DVTI_OP_max)
        return dtype;
    return op == DVTI_OP_sum || op == DVTI_OP_prod ? DVT_I64 : DVT_F32;
}

/* Returns a launch over x that keeps the first `kept` axes. The caller frees out. */
static dvti_launch reduction(dvti_op op, dvti_view x, int kept, void *out) {
    dvti_launch launch;
    int64_t step = 1;
    int i;
    memset(&launch, 0, sizeof launch);
    launch.kernel = dvti_kernel_reduce();
    launch.op = op;
    launch.n_in = launch.n_out = 1;
    launch.in[0] = x;
    launch.i[0] = kept;
    launch.f[0] = 1;
    for (i = kept; i < x.ndim; i++)
        launch.f[0] *= (double)x.dim[i];
    launch.out[0] = x;
    launch.out[0].data = out;
    launch.out[0].ndim = kept;
    launch.out[0].dtype = result_dtype(op, x.dtype);
    for (i = kept - 1; i >= 0; i--) {
        launch.out[0].stride[i] = step;
        step *= x.dim[i];
    }
    return launch;
}

static void run(const char *isa, int threads, dvti_op op, dvti_view x, int kept, void *out) {
    dvti_launch launch = reduction(op, x, kept, out);
    CHECK(dvt_set_cpu_isa(isa) == DVT_OK);
    CHECK(dvt_set_num_threads(threads) == DVT_OK);
    launch.workspace_bytes = dvti_cpu_reduce_plan(&launch, 0);
    launch.workspace = malloc((size_t)launch.workspace_bytes + 1);
    dvti_cpu_run(&launch);
    CHECK(dvt_set_num_threads(0) == DVT_OK);
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
    free(launch.workspace);
}

/* ---- many layouts ---- */
static int64_t count_of(const dvti_view *view, int from, int to) {
    int64_t n = 1;
    for (; from < to; from++)
        n *= view->dim[from];
    return n;
}

/* Fills with ordinary numbers, many ties, special numbers, mostly zeros, or few zeros. */
enum { MODES = 5 };

static double fill_one(int mode) {
    static const double special[] = {0., -0., INFINITY, -INFINITY, NAN, 1e-40, FLT_MAX, 3.};
    static const double yes[] = {1, -128, 1e-6, NAN, -9223372036854775808., 64};
    if (mode == 0)
        return dvt_test_random(-1, 1);
    if (mode == 1)
        return (double)(int)dvt_test_random(-4, 5);
    if (mode == 3)
        return (int)dvt_test_random(0, 300) ? (int)dvt_test_random(0, 2) ? 0. : -0.
                                            : yes[(int)dvt_test_random(0, 6)];
    if (mode == 4)
        return (int)dvt_test_random(0, 300) ? (int)dvt_test_random(0, 2) ? -128. : 3. : 0;
    return (int)dvt_test_random(0, 40) ? dvt_test_random(-2, 2)
                                       : special[(int)dvt_test_random(0, 8)];
}

/* Returns the error bound. float32: four numbers are added in two or three roundings, and the
   result is rounded once. Each rounding is half a unit in the last place of what is added. float64:
   sums of n numbers in any order differ by n roundings. The logarithm of a sum has the relative
   error of its exponentials: two units each, and as many for every new maximum. In float64 it also
   has that of n additions. */
static bool close_to(dvti_op op, dvt_dtype dtype, int64_t n, double got, double expected,
                     double sum_of_sizes) {
    const bool wide = dtype == DVT_F64;
    const double half = wide ? DBL_EPSILON / 2 : FLT_EPSILON / 2;
    double unit = dtype == DVT_F16 ? 0x1p-11 : dtype == DVT_BF16 ? 0x1p-8 : half;
    bool sum = op == DVTI_OP_sum || op == DVTI_OP_mean,
         multiplies = op == DVTI_OP_norm || op == DVTI_OP_prod;
    if (got == expected || (got != got && expected != expected))
        return true;
    if (!sum && !multiplies && op != DVTI_OP_logsumexp)
        return false;
    if (wide && multiplies)
        unit *= (double)(2 * n);
    return fabs(got - expected) <= 2 * unit * fabs(expected) + 1e-45 +
                                       half * (sum          ? (wide ? (double)n : 2) * sum_of_sizes
                                               : multiplies ? 0
                                                            : (wide ? (double)(16 + n) : 16));
}

/* Returns whether a result depends on the order: sums of special values, and products that leave
   double's range on the way. */
static bool comparable(dvti_op op, int mode, int64_t n) {
    return mode < 2 ||
           (op != DVTI_OP_sum && op != DVTI_OP_mean && op != DVTI_OP_norm &&
            op != DVTI_OP_logsumexp && (op != DVTI_OP_prod || n < 200)) ||
           (mode == 2 && (op == DVTI_OP_norm || op == DVTI_OP_logsumexp));
}

static void check_layout(dvti_view x, int kept, int mode, const double *sizes) {
    int64_t n = count_of(&x, 0, kept), length = count_of(&x, kept, x.ndim), k;
    size_t bytes = (size_t)n * 8 + 8;
    char *expected = (char *)malloc(bytes), *got = (char *)malloc(bytes),
         *first = (char *)malloc(bytes);
    int r, threads;
    for (r = 0; r < REDUCTIONS; r++) {
        dvti_op op = reductions[r].op;
        dvt_dtype dtype = result_dtype(op, x.dtype);
        const dvti_simd *before = NULL;
        run("reference", 1, op, x, kept, expected);
        FOR_EACH_TARGET(for (threads = 1; threads <= 3; threads++) {
            int64_t bad = -1;
            memset(got, 0, bytes);
            run(target->name, threads, op, x, kept, got);
            for (k = 0; k < n && comparable(op, mode, length); k++)
                if (!close_to(op, dtype, length, dvti_load_f64(got, dtype, k),
                              dvti_load_f64(expected, dtype, k),
                              sizes[k] / (op == DVTI_OP_mean ? (double)length : 1)))
                    bad = k;
            dvt_test_check(bad < 0, __FILE__, __LINE__,
                           "%s, %s, %d threads, mode %d: result %d of %d is %.17g, reference %.17g",
                           target->name, reductions[r].name, threads, mode, (int)bad, (int)n,
                           bad < 0 ? 0 : dvti_load_f64(got, dtype, bad),
                           bad < 0 ? 0 : dvti_load_f64(expected, dtype, bad));
            for (k = 0; before && k < n; k++)
                CHECK(same_bits_f64(dvti_load_f64(got, dtype, k), dvti_load_f64(first, dtype, k)));
            if (!before)
                memcpy(first, got, bytes);
            before = target;
        });
    }
    free(expected);
    free(got);
    free(first);
}

/* Checks x in C order of `order`, with gaps, ending at a page without access. Plain loops compute
   the sums of absolute values. */
static void check_shape(const int64_t *dim, int ndim, int kept, const int *order, dvt_dtype dtype,
                        int64_t gap, int mode) {
    dvti_view x;
    int64_t step = 1 + gap, n, m, k, r;
    double *sizes;
    guard memory;
    size_t bytes;
    int i;
    memset(&x, 0, sizeof x);
    x.dtype = dtype;
    x.ndim = ndim;
    for (i = ndim - 1; i >= 0; i--) {
        x.dim[order[i]] = dim[order[i]];
        x.stride[order[i]] = step;
        step *= dim[order[i]];
    }
    step -= gap; /* after the last element */
    bytes = (size_t)(step * dvt_dtype_size(dtype));
    memory = guard_new(bytes);
    x.data = guard_end(memory, bytes);
    for (k = 0; k < step; k++)
        dvti_store_f64(x.data, dtype, k, fill_one(mode));
    n = count_of(&x, 0, kept);
    m = count_of(&x, kept, ndim);
    sizes = (double *)calloc((size_t)n, sizeof *sizes);
    for (k = 0; k < n; k++)
        for (r = 0; r < m; r++) {
            int64_t rest = k * m + r, at = 0;
            for (i = ndim - 1; i >= 0; i--) {
                at += rest % x.dim[i] * x.stride[i];
                rest /= x.dim[i];
            }
            sizes[k] += fabs(dvti_load_f64(x.data, dtype, at));
        }
    check_layout(x, kept, mode, sizes);
    free(sizes);
    guard_free(memory);
}

static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_F16,  DVT_BF16, DVT_F32,
                                   DVT_F64, DVT_I32, DVT_BOOL, DVT_I64,  DVT_U8};

enum { DTYPES = 10 };

DVT_TEST(isa_reduces_rows_of_all_lengths) {
    static const int order[] = {0, 1};
    int64_t dim[2], n;
    for (n = 1; n <= 300; n += n < 140 ? 1 : 23) {
        dim[0] = n % 2 ? 3 : 16 + n % 11; /* 8 or 16 rows are reduced together */
        dim[1] = n;
        check_shape(dim, 2, 1, order, DVT_F32, n % 5 == 0, (int)(n % MODES));
        check_shape(dim, 2, 1, order, DVT_F64, n % 5 == 0, (int)(n % MODES));
        check_shape(dim, 2, 1, order, dtypes[n % 8 + 2], n % 7 == 0, (int)(n / 8 % MODES));
    }
}

DVT_TEST(isa_reduces_long_rows_by_fixed_chunks) {
    static const int order[] = {0, 1};
    static const int64_t lengths[] = {1023, 1024, 1025, 32767, 32768, 32769, 100000};
    int64_t dim[2];
    int i, d;
    dim[0] = 1;
    for (i = 0; i < 7; i++)
        for (d = 0; d < DTYPES; d++) {
            dim[1] = lengths[i];
            check_shape(dim, 2, 1, order, dtypes[d], (i + d) % 4 == 3, (i + 2 * d) % MODES);
        }
}

DVT_TEST(isa_reduces_columns) {
    static const int order[] = {1, 0};
    static const int64_t rows[] = {2, 7, 8, 9, 31, 1023, 1024, 1025, 2100};
    static const int64_t columns[] = {2, 5, 16, 17, 31, 33, 100, 511, 512, 513};
    int64_t dim[2];
    int r, c;
    for (r = 0; r < 9; r++)
        for (c = 0; c < 10; c++) {
            if (rows[r] > 100 && c % 5 != r % 5)
                continue;
            dim[0] = columns[c];
            dim[1] = rows[r];
            check_shape(dim, 2, 1, order,
                        (r + c) % 3 ? (r + c) % 3 == 1 ? DVT_F32 : DVT_F64
                                    : dtypes[(3 * r + c) % 8 + 2],
                        c % 4 == 0, (r + c) % MODES);
        }
}

/* Several threads split wide columns into pages only if there are at least two pages of 1025
   rows. */
DVT_TEST(isa_reduces_wide_columns) {
    static const int order[] = {1, 0};
    static const int64_t columns[] = {1000, 1024, 1025, 2050, 1030};
    static const int64_t rows[] = {9, 17, 27, 40, 1025};
    int64_t dim[2];
    int i;
    for (i = 0; i < 5; i++) {
        dim[0] = columns[i];
        dim[1] = rows[i];
        check_shape(dim, 2, 1, order, DVT_F32, i % 2 == 0, i % MODES);
        check_shape(dim, 2, 1, order, dtypes[i + 1], i % 2 == 1, (i + 1) % MODES);
    }
}

DVT_TEST(isa_reduces_any_axes) {
    int order[4], round, i, j, swap;
    for (round = 0; round < 120; round++) {
        int64_t dim[4];
        int ndim = 2 + round % 3;
        for (i = 0; i < ndim; i++) {
            dim[i] = (int64_t)dvt_test_random(1, i == round % ndim ? 60 : 14);
            order[i] = i;
        }
        for (i = ndim - 1; i > 0; i--) {
            j = (int)dvt_test_random(0, i + 1);
            swap = order[i];
            order[i] = order[j];
            order[j] = swap;
        }
        check_shape(dim, ndim, (int)dvt_test_random(0, ndim), order, dtypes[round % DTYPES],
                    round % 7 == 0, round % MODES);
    }
}

DVT_TEST(isa_sums_keep_what_float_loses) {
    /* The sum of 1e6 floats nearest to 0.1 must be correct to the last bit. */
    int64_t n = 1000000, k;
    float *x = (float *)malloc((size_t)n * sizeof *x), got;
    dvti_view view;
    memset(&view, 0, sizeof view);
    view.data = x;
    view.dtype = DVT_F32;
    view.ndim = 1;
    view.dim[0] = n;
    view.stride[0] = 1;
    for (k = 0; k < n; k++)
        x[k] = 0.1f;
    FOR_EACH_TARGET(run(target->name, 0, DVTI_OP_sum, view, 0, &got);
                    CHECK(got == (float)(1e6 * (double)0.1f)));
    for (k = 0; k < n; k++)
        x[k] = 1e30f;
    FOR_EACH_TARGET(run(target->name, 0, DVTI_OP_norm, view, 0, &got);
                    CHECK(fabsf(got / 1e33f - 1) < 1e-6f));
    free(x);
}
