/* Running sums of every ISA target equal plain loops to the bit, for all tails, with operands at
   both ends of memory. Also whole cumulative sums through the plan, in both directions. */
#include "isa.h"

enum { MOST = 37 };

static double value_of(const void *x, dvt_dtype dtype, int64_t at) {
    return dtype == DVT_F32 ? (double)((const float *)x)[at] : ((const double *)x)[at];
}

static void put(void *x, dvt_dtype dtype, int64_t at, double value) {
    if (dtype == DVT_F32)
        ((float *)x)[at] = (float)value;
    else
        ((double *)x)[at] = value;
}

static bool same(const void *x, dvt_dtype dtype, int64_t at, double value) {
    return dtype == DVT_F32 ? same_bits_f32(((const float *)x)[at], (float)value)
                            : memcmp((const double *)x + at, &value, sizeof value) == 0;
}

/* Checks rows x columns elements that end (or begin) at a page without access. */
static void check_running(dvt_dtype dtype, int64_t rows, int64_t columns, int64_t gap, bool writes,
                          int side) {
    size_t bytes = (size_t)(((rows - 1) * (columns + gap) + columns) * dvt_dtype_size(dtype));
    const int64_t count = (int64_t)bytes / dvt_dtype_size(dtype);
    guard from = guard_new(bytes), to = guard_new(bytes);
    double start[MOST + 16], before[MOST + 16], expected[MOST + 16], sum[MOST + 16];
    dvti_running p;
    int64_t r, c;
    p.step = columns + gap;
    p.rows = rows;
    p.columns = columns;
    p.sum = sum;
    p.before = before;
    for (c = 0; c < MOST + 16; c++) {
        start[c] = c % 3 ? dvt_test_random(-5, 5) : -0.;
        before[c] = c % 2 ? dvt_test_random(-50, 50) : -0.;
    }
    FOR_EACH_TARGET({
        void *x = side ? guard_end(from, bytes) : guard_start(from);
        void *y = side ? guard_end(to, bytes) : guard_start(to);
        bool good = true;
        for (r = 0; r < count; r++) {
            put(x, dtype, r, r % 11 == 5 ? -0. : dvt_test_random(-3, 3));
            put(y, dtype, r, 77);
        }
        memcpy(sum, start, sizeof sum);
        memcpy(expected, start, sizeof expected);
        p.x = x;
        p.y = writes ? y : NULL;
        (dtype == DVT_F32 ? dvti_simd_scan_of(target)->f32 : dvti_simd_scan_of(target)->f64)(&p);
        for (r = 0; r < rows; r++)
            for (c = 0; c < columns; c++) {
                expected[c] += value_of(x, dtype, r * p.step + c);
                good =
                    good && same(y, dtype, r * p.step + c, writes ? before[c] + expected[c] : 77);
            }
        for (c = 0; c < columns; c++)
            good = good && memcmp(&sum[c], &expected[c], sizeof *sum) == 0;
        for (r = 0; r < count; r++)
            good = good && (r % p.step < columns || same(y, dtype, r, 77));
        dvt_test_check(good, __FILE__, __LINE__, "%s: %d rows of %d columns, %s", target->name,
                       (int)rows, (int)columns, dvt_dtype_name(dtype));
    });
    guard_free(from);
    guard_free(to);
}

DVT_TEST(isa_running_sums) {
    int64_t rows, columns;
    int d;
    for (columns = 1; columns <= MOST; columns++)
        for (rows = 1; rows <= 9; rows += 4)
            for (d = 0; d < 2; d++) {
                dvt_dtype dtype = d ? DVT_F64 : DVT_F32;
                check_running(dtype, rows, columns, 0, true, 1);
                check_running(dtype, rows, columns, 3, true, 0);
                check_running(dtype, rows, columns, 1, false, 1);
            }
}

/* Returns numbers that would expose a rounding to float on the way to 16 bits, and special
   values. */
static double hard_number(int64_t k) {
    static const double special[] = {0.,          -0.,    INFINITY, -INFINITY,
                                     65519.99999, 65520., 1e300,    0x1p-133};
    const double tie = 1 + 0x1p-11, narrow_tie = 1 + 0x1p-8;
    switch (k % 5) {
    case 0:
        return special[k / 5 % 8];
    case 1:
        return tie + (k % 3 - 1) * 0x1p-40;
    case 2:
        return -narrow_tie + (k % 3 - 1) * 0x1p-40;
    case 3:
        return ldexp(1 + (double)(k % 16) / 16 + (k % 2) * 0x1p-42, (int)(k % 30) - 24);
    default:
        return dvt_test_random(-1000, 1000);
    }
}

/* Compares with the reference's elements, which round once. */
static void check_store(dvt_dtype dtype, int64_t n, double before) {
    const size_t bytes = (size_t)(n * dvt_dtype_size(dtype));
    guard from = guard_new((size_t)n * sizeof(double)), to = guard_new(bytes);
    double *x = (double *)guard_end(from, (size_t)n * sizeof(double)), *sums = NULL;
    double expected[256]; /* space for any dtype */
    void *y = guard_end(to, bytes);
    int64_t k;
    sums = (double *)malloc((size_t)n * sizeof *sums);
    for (k = 0; k < n; k++) {
        x[k] = hard_number(k + 7 * n);
        sums[k] = before + x[k];
    }
    dvti_store_row_f64(expected, dtype, 1, n, sums);
    FOR_EACH_TARGET({
        memset(y, 77, bytes);
        dvti_simd_scan_of(target)->store_sums(y, dtype, n, x, before);
        dvt_test_check(memcmp(y, expected, bytes) == 0, __FILE__, __LINE__, "%s: %d sums as %s",
                       target->name, (int)n, dvt_dtype_name(dtype));
    });
    free(sums);
    guard_free(from);
    guard_free(to);
}

DVT_TEST(isa_sums_stored) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16};
    int64_t n;
    int d;
    for (d = 0; d < 4; d++)
        for (n = 1; n <= 200; n += n < 40 ? 1 : 53) {
            check_store(dtypes[d], n, -0.);
            check_store(dtypes[d], n, 0.375);
        }
}

static dvti_view block_of(void *data, dvt_dtype dtype, int64_t a, int64_t n, int64_t b) {
    dvti_view view;
    memset(&view, 0, sizeof view);
    view.data = data;
    view.dtype = dtype;
    view.ndim = 3;
    view.dim[0] = a;
    view.dim[1] = n;
    view.dim[2] = b;
    view.stride[2] = 1;
    view.stride[1] = b;
    view.stride[0] = n * b;
    return view;
}

static void run_scan(const char *isa, int threads, dvti_view in, dvti_view out, bool backwards) {
    dvti_launch launch;
    memset(&launch, 0, sizeof launch);
    launch.kernel = dvti_kernel_scan();
    launch.op = DVTI_OP_cumsum;
    launch.compute = dvt_dtype_is_float(in.dtype) ? DVTI_F64 : DVTI_I64;
    launch.n_in = launch.n_out = 1;
    launch.in[0] = in;
    launch.out[0] = out;
    launch.i[0] = backwards;
    CHECK(dvt_set_cpu_isa(isa) == DVT_OK && dvt_set_num_threads(threads) == DVT_OK);
    launch.workspace_bytes = dvti_cpu_scan_plan(&launch, 0);
    launch.workspace = malloc((size_t)launch.workspace_bytes + 1);
    dvti_cpu_run(&launch);
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK && dvt_set_num_threads(0) == DVT_OK);
    free(launch.workspace);
}

static void check_scan(dvt_dtype dtype, int64_t a, int64_t n, int64_t b, bool backwards) {
    const dvt_dtype result = dvt_dtype_is_float(dtype) ? dtype : DVT_I64;
    size_t bytes = (size_t)(a * n * b * dvt_dtype_size(dtype));
    size_t out_bytes = (size_t)(a * n * b * dvt_dtype_size(result));
    guard from = guard_new(bytes), to = guard_new(out_bytes);
    void *expected = malloc(out_bytes), *x = guard_end(from, bytes), *y = guard_end(to, out_bytes);
    int64_t k;
    int threads;
    for (k = 0; k < a * n * b; k++)
        dvti_store_f64(x, dtype, k, dvt_test_random(-1, 1) * (dtype == result ? 1 : 100));
    run_scan("reference", 1, block_of(x, dtype, a, n, b), block_of(expected, result, a, n, b),
             backwards);
    FOR_EACH_TARGET(for (threads = 1; threads <= 3; threads++) {
        memset(y, 0, out_bytes);
        run_scan(target->name, threads, block_of(x, dtype, a, n, b), block_of(y, result, a, n, b),
                 backwards);
        dvt_test_check(memcmp(y, expected, out_bytes) == 0, __FILE__, __LINE__,
                       "%s: (%d, %d, %d) of %s, backwards %d", target->name, (int)a, (int)n, (int)b,
                       dvt_dtype_name(dtype), backwards);
    });
    free(expected);
    guard_free(from);
    guard_free(to);
}

DVT_TEST(isa_cumulative_sums) {
    static const int64_t lengths[] = {1, 16, 31, 100, 1024, 1025, 5000, 70001};
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_BF16, DVT_I32, DVT_U8};
    int i, d, backwards;
    for (d = 0; d < 5; d++)
        for (i = 0; i < 8; i++)
            for (backwards = 0; backwards < 2; backwards++) {
                if (EMULATED && (d + i + backwards) % 3)
                    continue;
                check_scan(dtypes[d], 1, lengths[i], 1, backwards);
                check_scan(dtypes[d], 7, DVTI_MIN(lengths[i], 5000), 1, backwards);
                check_scan(dtypes[d], 23, DVTI_MIN(lengths[i], 5000), 1, backwards);
                check_scan(dtypes[d], 2, lengths[i], 5, backwards);
                check_scan(dtypes[d], 1, DVTI_MIN(lengths[i], 1500), 530, backwards);
            }
}
