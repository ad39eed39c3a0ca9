/* Reductions of double by every tier: near the reference for all layouts, the same bits on all tiers and for any number of threads, no element
   outside the operands. */
#include "tiers.h"

static const struct {
    const char *name;
    dvti_op op;
} reductions[] = {{"sum", DVTI_OP_sum},       {"mean", DVTI_OP_mean},    {"norm", DVTI_OP_norm},
                  {"prod", DVTI_OP_prod},     {"min", DVTI_OP_min},      {"max", DVTI_OP_max},
                  {"argmin", DVTI_OP_argmin}, {"argmax", DVTI_OP_argmax}};

enum { REDUCTIONS = (int)(sizeof reductions / sizeof reductions[0]) };

static bool places(dvti_op op) {
    return op == DVTI_OP_argmin || op == DVTI_OP_argmax;
}

static bool adds(dvti_op op) {
    return op == DVTI_OP_sum || op == DVTI_OP_mean || op == DVTI_OP_norm || op == DVTI_OP_prod;
}

static void run(const char *isa, int threads, dvti_op op, dvti_view x, int kept, void *out) {
    dvti_launch launch;
    int64_t step = 1;
    int i;
    memset(&launch, 0, sizeof launch);
    launch.kernel = DVTI_K_REDUCE;
    launch.op = op;
    launch.n_in = launch.n_out = 1;
    launch.in[0] = launch.out[0] = x;
    launch.i[0] = kept;
    launch.f[0] = 1;
    for (i = kept; i < x.ndim; i++)
        launch.f[0] *= (double)x.dim[i];
    launch.out[0].data = out;
    launch.out[0].ndim = kept;
    launch.out[0].dtype = places(op) ? DVT_I64 : DVT_F64;
    for (i = kept - 1; i >= 0; i--) {
        launch.out[0].stride[i] = step;
        step *= x.dim[i];
    }
    launch.workspace_bytes = dvti_ref_reduce_workspace(&launch);
    launch.workspace = malloc((size_t)launch.workspace_bytes + 1);
    CHECK(dvt_set_cpu_isa(isa) == DVT_OK);
    CHECK(dvt_set_num_threads(threads) == DVT_OK);
    dvti_cpu_run(&launch);
    CHECK(dvt_set_num_threads(0) == DVT_OK);
    CHECK(dvt_set_cpu_isa(NULL) == DVT_OK);
    free(launch.workspace);
}

/* Ordinary numbers, many ties, and what is special: -inf alone, and NaN. */
static double fill_one(int mode) {
    static const double special[] = {0., -0., INFINITY, -INFINITY, NAN, 1e-310, DBL_MAX, 3.};
    if (mode == 0)
        return dvt_test_random(-1, 1);
    if (mode == 1)
        return (double)(int)dvt_test_random(-4, 5);
    if (mode == 3)
        return -INFINITY;
    return (int)dvt_test_random(0, 40) ? dvt_test_random(-2, 2)
                                       : special[(int)dvt_test_random(0, 8)];
}

/* Sums of n numbers in any order differ by n roundings of what is added, at most; what is added is below 1.5 n, products lie below 1. Sums that
   overflow or meet a NaN are none of this test's business, extremes always are. */
static bool close_to(dvti_op op, int mode, int64_t n, double got, double expected) {
    if (got == expected || (got != got && expected != expected))
        return true;
    if (!adds(op))
        return false;
    if (mode > 1)
        return true;
    if (op == DVTI_OP_mean)
        return fabs(got - expected) <= 4 * DBL_EPSILON * sqrt((double)n) + 1e-14;
    if (op == DVTI_OP_norm || op == DVTI_OP_prod)
        return fabs(got - expected) <= 3 * (double)n * DBL_EPSILON * fabs(expected) + 1e-14;
    return fabs(got - expected) <= 4 * DBL_EPSILON * (double)n * sqrt((double)n) + 1e-14;
}

static void check_layout(dvti_view x, int kept, int mode, int64_t results, int64_t n) {
    size_t bytes = (size_t)results * 8;
    char *expected = (char *)malloc(bytes), *got = (char *)malloc(bytes),
         *first = (char *)malloc(bytes);
    int r, threads;
    int64_t k;
    for (r = 0; r < REDUCTIONS; r++) {
        dvti_op op = reductions[r].op;
        dvt_dtype dtype = places(op) ? DVT_I64 : DVT_F64;
        bool have_first = false;
        run("reference", 1, op, x, kept, expected);
        FOR_EACH_TIER(for (threads = 1; threads <= 2; threads++) {
            int64_t bad = -1;
            memset(got, 0xee, bytes);
            run(tier->name, threads, op, x, kept, got);
            for (k = 0; k < results; k++)
                if (!close_to(op, mode, n, dvti_load_f64(got, dtype, k),
                              dvti_load_f64(expected, dtype, k)))
                    bad = k;
            dvt_test_check(bad < 0, __FILE__, __LINE__,
                           "%s, %s, %d threads, mode %d: result %d of %d is %.17g, reference %.17g",
                           tier->name, reductions[r].name, threads, mode, (int)bad, (int)results,
                           bad < 0 ? 0 : dvti_load_f64(got, dtype, bad),
                           bad < 0 ? 0 : dvti_load_f64(expected, dtype, bad));
            for (k = 0; have_first && k < results; k++) {
                double one = dvti_load_f64(got, dtype, k);
                double other = dvti_load_f64(first, dtype, k);
                CHECK(!memcmp(got + 8 * k, first + 8 * k, 8) || (one != one && other != other));
            }
            if (!have_first)
                memcpy(first, got, bytes);
            have_first = true;
        });
    }
    free(expected);
    free(got);
    free(first);
}

/* x in C order of `order`, with gaps, ending where nobody may read. */
static void check_shape(const int64_t *dim, int ndim, int kept, const int *order, int64_t gap,
                        int mode) {
    dvti_view x;
    int64_t step = 1 + gap, results = 1, n = 1, k;
    guard memory;
    int i;
    memset(&x, 0, sizeof x);
    x.dtype = DVT_F64;
    x.ndim = ndim;
    for (i = ndim - 1; i >= 0; i--) {
        x.dim[order[i]] = dim[order[i]];
        x.stride[order[i]] = step;
        step *= dim[order[i]];
    }
    step -= gap; /* behind the last element */
    for (i = 0; i < ndim; i++)
        *(i < kept ? &results : &n) *= dim[i];
    memory = guard_new((size_t)step * 8);
    x.data = guard_end(memory, (size_t)step * 8);
    for (k = 0; k < step; k++)
        ((double *)x.data)[k] = fill_one(mode);
    check_layout(x, kept, mode, results, n);
    guard_free(memory);
}

DVT_TEST(tier_reduces_doubles_of_all_lengths) {
    static const int order[] = {0, 1};
    int64_t dim[2], n;
    dim[0] = 3;
    for (n = 1; n <= 300; n += n < 80 ? 1 : 23) {
        dim[1] = n;
        check_shape(dim, 2, 1, order, n % 5 == 0, (int)(n % 4));
    }
}

DVT_TEST(tier_reduces_long_rows_of_doubles) {
    static const int order[] = {0, 1};
    static const int64_t lengths[] = {1023, 1024, 1025, 32767, 32768, 32769, 100000};
    int64_t dim[2];
    int i;
    dim[0] = 1;
    for (i = 0; i < 14; i++) {
        dim[1] = lengths[i % 7];
        check_shape(dim, 2, 1, order, i % 3 == 2, i % 4);
    }
}

DVT_TEST(tier_reduces_columns_of_doubles) {
    static const int order[] = {1, 0};
    static const int64_t rows[] = {2, 7, 8, 9, 31, 511, 512, 513, 2100};
    static const int64_t columns[] = {16, 17, 31, 33, 100, 511, 512, 513};
    int64_t dim[2];
    int r, c;
    for (r = 0; r < 9; r++)
        for (c = 0; c < 8; c++) {
            if (rows[r] > 100 && c % 4 != r % 4)
                continue;
            dim[0] = columns[c];
            dim[1] = rows[r];
            check_shape(dim, 2, 1, order, c % 3 == 0, (r + c) % 4);
        }
}

DVT_TEST(tier_reduces_any_axes_of_doubles) {
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
        check_shape(dim, ndim, (int)dvt_test_random(0, ndim), order, round % 7 == 0, round % 4);
    }
}

/* The first of equals and the first NaN, wherever they stand. */
DVT_TEST(tier_finds_the_first_extreme_of_doubles) {
    static double x[2600];
    double value;
    int64_t at;
    int place, k;
    for (place = 0; place < 2600; place += place < 40 ? 1 : 37)
        FOR_EACH_TIER({
            for (k = 0; k < 2600; k++)
                x[k] = k < place ? 1 : 2;
            tier->f64->fold_row(DVTI_OP_argmax, x, 2600, &value, &at);
            CHECK_INT(at, place);
            CHECK(value == 2);
            x[place] = NAN;
            tier->f64->fold_row(DVTI_OP_argmin, x, 2600, &value, &at);
            CHECK_INT(at, place);
            CHECK(value != value);
        });
}
