/* Reductions of every tier: near the reference for all layouts, the same bits on all tiers and for any number of threads, no element outside
   the operands. */
#include "tiers.h"

static const struct {
    const char *name;
    dvti_op op;
} reductions[] = {{"sum", DVTI_OP_sum},
                  {"mean", DVTI_OP_mean},
                  {"norm", DVTI_OP_norm},
                  {"min", DVTI_OP_min},
                  {"max", DVTI_OP_max},
                  {"argmin", DVTI_OP_argmin},
                  {"argmax", DVTI_OP_argmax},
                  {"prod", DVTI_OP_prod},
                  {"any", DVTI_OP_any},
                  {"all", DVTI_OP_all},
                  {"logsumexp", DVTI_OP_logsumexp}};

enum { REDUCTIONS = (int)(sizeof reductions / sizeof reductions[0]) };

static bool places(dvti_op op) {
    return op == DVTI_OP_argmin || op == DVTI_OP_argmax;
}

static dvt_dtype result_dtype(dvti_op op, dvt_dtype dtype) {
    return places(op) ? DVT_I64 : op == DVTI_OP_any || op == DVTI_OP_all ? DVT_BOOL : dtype;
}

/* A launch over x, whose first `kept` axes are kept. The caller frees out and workspace. */
static dvti_launch reduction(dvti_op op, dvti_view x, int kept, void *out) {
    dvti_launch launch;
    int64_t step = 1;
    int i;
    memset(&launch, 0, sizeof launch);
    launch.kernel = DVTI_K_REDUCE;
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
    launch.workspace_bytes = dvti_fast_reduce_workspace(&launch);
    if (launch.workspace_bytes < dvti_ref_reduce_workspace(&launch))
        launch.workspace_bytes = dvti_ref_reduce_workspace(&launch);
    launch.workspace = malloc((size_t)launch.workspace_bytes + 1);
    return launch;
}

static void run(const char *isa, int threads, dvti_op op, dvti_view x, int kept, void *out) {
    dvti_launch launch = reduction(op, x, kept, out);
    CHECK(dvt_set_cpu_isa(isa) == DVT_OK);
    CHECK(dvt_set_num_threads(threads) == DVT_OK);
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

static float fill_one(int mode) {
    static const float special[] = {0.f, -0.f, INFINITY, -INFINITY, NAN, 1e-40f, FLT_MAX, 3.f};
    if (mode == 0)
        return (float)dvt_test_random(-1, 1);
    if (mode == 1)
        return (float)(int)dvt_test_random(-4, 5); /* many ties */
    return (int)dvt_test_random(0, 40) ? (float)dvt_test_random(-2, 2)
                                       : special[(int)dvt_test_random(0, 8)];
}

/* The bounds: four numbers are added in two or three roundings, the result is rounded once; half a unit each, of what is added. The logarithm of
   a sum has the relative error of its exponentials, about two units each and as many for every new maximum. */
static bool close_to(dvti_op op, dvt_dtype dtype, double got, double expected,
                     double sum_of_sizes) {
    double unit = dtype == DVT_F32 ? FLT_EPSILON / 2 : dtype == DVT_F16 ? 0x1p-11 : 0x1p-8;
    bool sum = op == DVTI_OP_sum || op == DVTI_OP_mean,
         wide = op == DVTI_OP_norm || op == DVTI_OP_prod;
    if (got == expected || (got != got && expected != expected))
        return true;
    if (!sum && !wide && op != DVTI_OP_logsumexp)
        return false;
    return fabs(got - expected) <= 2 * unit * fabs(expected) + 1e-45 +
                                       (FLT_EPSILON / 2) * (sum    ? 2 * sum_of_sizes
                                                            : wide ? 0
                                                                   : 16);
}

/* What depends on the order of the elements: sums of special values, and products that leave double's range on the way. */
static bool comparable(dvti_op op, int mode, int64_t n) {
    return mode != 2 ||
           (op != DVTI_OP_sum && op != DVTI_OP_mean && (op != DVTI_OP_prod || n < 200));
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
        FOR_EACH_TIER(for (threads = 1; threads <= 3; threads++) {
            int64_t bad = -1;
            memset(got, 0, bytes);
            run(tier->name, threads, op, x, kept, got);
            for (k = 0; k < n && comparable(op, mode, length); k++)
                if (!close_to(op, x.dtype, dvti_load_f64(got, dtype, k),
                              dvti_load_f64(expected, dtype, k),
                              sizes[k] / (op == DVTI_OP_mean ? (double)length : 1)))
                    bad = k;
            dvt_test_check(bad < 0, __FILE__, __LINE__,
                           "%s, %s, %d threads, mode %d: result %d of %d is %.17g, reference %.17g",
                           tier->name, reductions[r].name, threads, mode, (int)bad, (int)n,
                           bad < 0 ? 0 : dvti_load_f64(got, dtype, bad),
                           bad < 0 ? 0 : dvti_load_f64(expected, dtype, bad));
            for (k = 0; before && k < n; k++)
                if (dtype != DVT_F32)
                    CHECK(dvti_load_f64(got, dtype, k) == dvti_load_f64(first, dtype, k) ||
                          dvti_load_f64(got, dtype, k) != dvti_load_f64(got, dtype, k));
                else
                    CHECK(same_bits_f32(((float *)got)[k], ((float *)first)[k]));
            if (!before)
                memcpy(first, got, bytes);
            before = tier;
        });
    }
    free(expected);
    free(got);
    free(first);
}

/* x in C order of `order`, with gaps; the sums of absolute values by plain loops. */
static void check_shape(const int64_t *dim, int ndim, int kept, const int *order, dvt_dtype dtype,
                        int64_t gap, int mode) {
    dvti_view x;
    int64_t step = 1 + gap, size, n, m, k, r;
    double *sizes;
    int i;
    memset(&x, 0, sizeof x);
    x.dtype = dtype;
    x.ndim = ndim;
    for (i = ndim - 1; i >= 0; i--) {
        x.dim[order[i]] = dim[order[i]];
        x.stride[order[i]] = step;
        step *= dim[order[i]];
    }
    size = step + 1;
    x.data = malloc((size_t)size * 8);
    for (k = 0; k < size; k++)
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
    free(x.data);
}

DVT_TEST(tier_reduces_rows_of_all_lengths) {
    static const int order[] = {0, 1};
    int64_t dim[2], n;
    dim[0] = 3;
    for (n = 1; n <= 300; n += n < 140 ? 1 : 23) {
        dim[1] = n;
        check_shape(dim, 2, 1, order, DVT_F32, 0, (int)(n % 3));
    }
}

DVT_TEST(tier_reduces_long_rows_by_fixed_chunks) {
    static const int order[] = {0, 1};
    static const int64_t lengths[] = {1023, 1024, 1025, 32767, 32768, 32769, 100000};
    int64_t dim[2];
    int i;
    dim[0] = 1;
    for (i = 0; i < 7; i++) {
        dim[1] = lengths[i];
        check_shape(dim, 2, 1, order, DVT_F32, 0, i % 3);
        check_shape(dim, 2, 1, order, i % 2 ? DVT_F16 : DVT_BF16, i % 2, (i + 1) % 3);
    }
}

DVT_TEST(tier_reduces_columns) {
    static const int order[] = {1, 0};
    static const int64_t rows[] = {2, 7, 8, 9, 31, 1023, 1024, 1025, 2100};
    static const int64_t columns[] = {16, 17, 31, 33, 100, 511, 512, 513};
    int64_t dim[2];
    int r, c;
    for (r = 0; r < 9; r++)
        for (c = 0; c < 8; c++) {
            if (rows[r] > 100 && c % 4 != r % 4)
                continue;
            dim[0] = columns[c];
            dim[1] = rows[r];
            check_shape(dim, 2, 1, order, DVT_F32, 0, (r + c) % 3);
            if (c % 4 == 0)
                check_shape(dim, 2, 1, order, DVT_BF16, r % 2, (r + c) % 3);
        }
}

DVT_TEST(tier_reduces_any_axes) {
    int order[4], round, i, j, swap;
    for (round = 0; round < 60; round++) {
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
        check_shape(dim, ndim, (int)dvt_test_random(0, ndim), order, round % 5 ? DVT_F32 : DVT_F16,
                    round % 7 == 0, round % 3);
    }
}

/* ---- single kernels at the edge of memory ---- */
DVT_TEST(tier_folds_stay_in_their_rows) {
    guard memory = guard_new(3 * 4096 * sizeof(float));
    static double value[DVTI_BLOCK];
    static int64_t at[DVTI_BLOCK];
    int n, side, r, k;
    for (n = 1; n <= 200; n++)
        for (side = 0; side < 2; side++) {
            size_t bytes = sizeof(float) * (size_t)n;
            float *x = (float *)(side ? guard_end(memory, bytes) : guard_start(memory));
            for (k = 0; k < n; k++)
                x[k] = (float)(k % 7 - 3);
            FOR_EACH_TIER(for (r = 0; r < REDUCTIONS; r++) {
                dvti_fold fold = tier->fold(reductions[r].op);
                fold.rows(reductions[r].op, x, n, 1, n, NULL, value, at);
                if (places(reductions[r].op))
                    CHECK_INT(at[0], n == 1                               ? 0
                                     : reductions[r].op == DVTI_OP_argmin ? 0
                                                                          : DVTI_MIN(n - 1, 6));
            });
            bytes = sizeof(float) * (size_t)(n * 11);
            x = (float *)(side ? guard_end(memory, bytes) : guard_start(memory));
            for (k = 0; k < 11 * n; k++)
                x[k] = (float)(k % 5);
            FOR_EACH_TIER(for (r = 0; r < REDUCTIONS; r++) {
                dvti_fold fold = tier->fold(reductions[r].op);
                memset(value, 0, sizeof value);
                fold.columns(reductions[r].op, x, n, 11, n, 0, NULL, value, at);
                if (reductions[r].op == DVTI_OP_sum)
                    for (k = 0; k < n; k++) {
                        double sum = 0;
                        int row;
                        for (row = 0; row < 11; row++)
                            sum += x[row * n + k];
                        CHECK(value[k] == sum);
                    }
            });
        }
    guard_free(memory);
}

/* Small whole numbers, so that every order gives the same sums. */
DVT_TEST(tier_squares_of_distances) {
    guard xs = guard_new(11 * 200 * sizeof(float)), ms = guard_new(200 * sizeof(float));
    static double value[DVTI_BLOCK];
    int n, side, k, r, j, bad;
    for (n = 1; n <= 200; n++)
        for (side = 0; side < 2; side++) {
            size_t bytes = sizeof(float) * (size_t)n;
            float *x = (float *)(side ? guard_end(xs, 11 * bytes) : guard_start(xs));
            float *mean = (float *)(side ? guard_end(ms, bytes) : guard_start(ms));
            for (k = 0; k < 11 * n; k++)
                x[k] = (float)((k * 7 + 3) % 19);
            for (k = 0; k < n; k++)
                mean[k] = (float)(k % 5);
            FOR_EACH_TIER({
                dvti_fold fold = tier->fold(DVTI_OP_square);
                bad = 0;
                memset(value, 0, sizeof value);
                fold.columns(DVTI_OP_square, x, n, 7, n, 0, mean, value, NULL);
                fold.columns(DVTI_OP_square, x + 7 * n, n, 4, n, 7, mean, value, NULL);
                for (j = 0; j < n; j++) {
                    double sum = 0;
                    for (r = 0; r < 11; r++)
                        sum += (x[r * n + j] - mean[j]) * (x[r * n + j] - mean[j]);
                    bad += value[j] != sum;
                }
                for (r = 0; r < 11; r++) {
                    double sum = 0;
                    fold.rows(DVTI_OP_square, x + r * n, 0, 1, n, mean, value, NULL);
                    for (j = 0; j < n; j++)
                        sum += (x[r * n + j] - *mean) * (x[r * n + j] - *mean);
                    bad += value[0] != sum;
                }
                dvt_test_check(bad == 0, __FILE__, __LINE__, "%s, %d elements: %d sums are wrong",
                               tier->name, n, bad);
            });
        }
    guard_free(xs);
    guard_free(ms);
}

DVT_TEST(tier_sums_keep_what_float_loses) {
    /* A million tenths: 1e6 * the float nearest to 0.1, to the last bit. */
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
    FOR_EACH_TIER(run(tier->name, 0, DVTI_OP_sum, view, 0, &got);
                  CHECK(got == (float)(1e6 * (double)0.1f)));
    for (k = 0; k < n; k++)
        x[k] = 1e30f;
    FOR_EACH_TIER(run(tier->name, 0, DVTI_OP_norm, view, 0, &got);
                  CHECK(fabsf(got / 1e33f - 1) < 1e-6f));
    free(x);
}
