/* Reductions of every ISA target: close to the reference for all layouts, the same bits on all ISA
   targets and for any number of threads. No access outside the operands. */
#include "reductions.h"

static dvt_dtype result_dtype(dvti_op op, dvt_dtype dtype) {
    const bool is_float = dvt_dtype_is_float(dtype);
    switch (dvti_reduce_row_of(op)->rule) {
    case DVTI_RESULT_SUM:
        return is_float ? dtype : DVT_I64;
    case DVTI_RESULT_FLOAT:
        return is_float ? dtype : DVT_F32;
    case DVTI_RESULT_BOOL:
        return DVT_BOOL;
    case DVTI_RESULT_PLACE:
        return DVT_I64;
    default:
        return dtype;
    }
}

/* Returns the term of one element, by the row's column. */
static double term_of(dvti_op op, double x) {
    switch ((int)op) {
#define W(name) dvti_f64_##name
#define ROW(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)                \
    case DVTI_OP_##name:                                                                           \
        return term;
        DVTI_REDUCE_TABLE(ROW)
#undef ROW
#undef W
    default:
        return x;
    }
}

/* Returns whether the result is one of the terms: any order gives the same bits. */
static bool chooses(const dvti_reduce_row *row) {
    return row->join == DVTI_JOIN_smaller || row->join == DVTI_JOIN_larger;
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

/* The terms of one result: their sum, and the sum of their sizes. */
typedef struct term_sums {
    double sum, size;
} term_sums;

/* Returns how far a sum of terms may move the result: finish at both ends of the sum's error. */
static double moved(dvti_op op, int64_t n, term_sums terms, double error) {
    const double least = dvti_reduce_finish_f64(op, terms.sum - error, (double)n),
                 most = dvti_reduce_finish_f64(op, terms.sum + error, (double)n);
    return fabs(most - least);
}

/* Returns whether a result agrees with the reference. The join and the method of the row give the
   bound. A result is rounded once, by half a unit in the last place.

     smaller, larger   exact; so is every result of integers that is an integer
     mul               n roundings in float64
     add, ADD          float32: four numbers are added in two or three roundings. float64: sums of n
                       numbers in any order differ by n roundings of the sum of their sizes
     add, WIDE         n roundings in float64, of the sum of the terms' sizes
     LOGSUMEXP         the relative error of the exponentials: two units each, and as many for every
                       new maximum; in float64 also that of n additions */
static bool close_to(dvti_op op, dvt_dtype dtype, int64_t n, double got, double expected,
                     term_sums terms) {
    const dvti_reduce_row *row = dvti_reduce_row_of(op);
    const bool wide = dtype == DVT_F64;
    const double half = wide ? DBL_EPSILON / 2 : (double)FLT_EPSILON / 2;
    const double unit = dtype == DVT_F16 ? 0x1p-11 : dtype == DVT_BF16 ? 0x1p-8 : half;
    double bound = 2 * unit * fabs(expected) + 1e-45;
    if (got == expected || (got != got && expected != expected))
        return true;
    if (chooses(row) || !dvt_dtype_is_float(dtype) || !(fabs(expected) <= DBL_MAX))
        return false;
    if (row->method == DVTI_METHOD_LOGSUMEXP)
        bound += half * (wide ? (double)(16 + n) : 16);
    else if (row->join == DVTI_JOIN_mul)
        bound *= wide ? (double)(2 * n) : 1;
    else if (row->method == DVTI_METHOD_ADD)
        bound += moved(op, n, terms, half * (wide ? (double)n : 2) * terms.size);
    else
        bound += moved(op, n, terms, DBL_EPSILON * (double)n * terms.size);
    return fabs(got - expected) <= bound;
}

/* Returns whether results can be compared with the reference. Sums of special values and of large
   numbers depend on the order, and so do products that leave double's range on the way. Methods
   other than ADD add in float64 from the start, which no float32 leaves. */
static bool comparable(dvti_op op, int mode, int64_t n) {
    const dvti_reduce_row *row = dvti_reduce_row_of(op);
    if (mode < 2 || chooses(row))
        return true;
    if (row->join == DVTI_JOIN_mul)
        return n < 200;
    return mode == 2 && row->method != DVTI_METHOD_ADD;
}

/* Fills sums with the terms of each of the n results, each of m elements in C order. */
static void sum_terms(dvti_op op, const dvti_view *x, int64_t n, int64_t m, term_sums *sums) {
    int64_t k, r;
    int i;
    for (k = 0; k < n; k++) {
        sums[k].sum = sums[k].size = 0;
        for (r = 0; r < m; r++) {
            int64_t rest = k * m + r, at = 0;
            double term;
            for (i = x->ndim - 1; i >= 0; i--) {
                at += rest % x->dim[i] * x->stride[i];
                rest /= x->dim[i];
            }
            term = term_of(op, dvti_load_f64(x->data, x->dtype, at));
            sums[k].sum += term;
            sums[k].size += fabs(term);
        }
    }
}

static void check_layout(dvti_view x, int kept, int mode) {
    int64_t n = count_of(&x, 0, kept), length = count_of(&x, kept, x.ndim), k;
    size_t bytes = (size_t)n * 8 + 8;
    char *expected = (char *)malloc(bytes), *got = (char *)malloc(bytes),
         *first = (char *)malloc(bytes);
    term_sums *terms = (term_sums *)calloc((size_t)n, sizeof *terms);
    int r, threads;
    for (r = 0; r < REDUCTIONS; r++) {
        dvti_op op = reductions[r].op;
        dvt_dtype dtype = result_dtype(op, x.dtype);
        const dvti_simd *before = NULL;
        run("reference", 1, op, x, kept, expected);
        if (dvti_reduce_row_of(op)->join == DVTI_JOIN_add && dvt_dtype_is_float(dtype))
            sum_terms(op, &x, n, length, terms);
        FOR_EACH_TARGET(for (threads = 1; threads <= 3; threads++) {
            int64_t bad = -1;
            memset(got, 0, bytes);
            run(target->name, threads, op, x, kept, got);
            for (k = 0; k < n && comparable(op, mode, length); k++)
                if (!close_to(op, dtype, length, dvti_load_f64(got, dtype, k),
                              dvti_load_f64(expected, dtype, k), terms[k]))
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
    free(terms);
}

/* Checks x in C order of `order`, with gaps, ending at a page without access. */
static void check_shape(const int64_t *dim, int ndim, int kept, const int *order, dvt_dtype dtype,
                        int64_t gap, int mode) {
    dvti_view x;
    int64_t step = 1 + gap, k;
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
    check_layout(x, kept, mode);
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
            if ((rows[r] > 100 && c % 5 != r % 5) || (EMULATED && (r + 2 * c) % 3 != 2))
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
