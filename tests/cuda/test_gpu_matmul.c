/* Matrix products on a GPU compared with products in double on the host: layouts, dtypes, batches,
   and the sizes at which kernels change or end. */
#include "on_gpu.h"
#include "matmul_forms.h"

#define COUNT_OF(x) ((int)(sizeof(x) / sizeof((x)[0])))

/* Returns x's elements on gpu(0) with other strides. */
enum { PLAIN, TRANSPOSED, STEPPED, REVERSED, LAYOUTS };

static dvt_array *laid(dvt_array *x, int how) {
    dvt_array *gpu = dvt_copyto(x, dvt_gpu(0)), *wide, *view;
    dvt_shape shape = dvt_shape_of(x);
    int last = dvt_ndim(x) - 1, axis;
    if (how == PLAIN || dvt_size(x) == 0)
        return gpu;
    if (how == TRANSPOSED)
        return dvt_swapaxes(dvt_copyto(dvt_copy(dvt_swapaxes(x, last, last - 1)), dvt_gpu(0)), last,
                            last - 1);
    if (how == REVERSED) {
        dvt_array *back = x;
        for (axis = 0; axis <= last; axis++)
            back = dvt_slice(back, axis, -1, DVT_END, -1);
        gpu = dvt_copyto(dvt_copy(back), dvt_gpu(0));
        for (axis = 0; axis <= last; axis++)
            gpu = dvt_slice(gpu, axis, -1, DVT_END, -1);
        return gpu;
    }
    /* every second element of rows that begin at an odd one */
    shape.dim[last] = 2 * shape.dim[last] + 3;
    wide = dvt_full(shape, 77, dvt_dtype_of(x), dvt_cpu());
    view = dvt_slice(wide, last, 1, 1 + 2 * dvt_dim(x, last), 2);
    CHECK(dvt_copy_into(view, x) != NULL);
    return dvt_slice(dvt_copyto(wide, dvt_gpu(0)), last, 1, 1 + 2 * dvt_dim(x, last), 2);
}

/* Compares within the rounding error of the accumulator type: half a unit of the result for the
   store. Each of the k additions adds one unit of the type, relative to the sum of magnitudes.
   Integers must be equal. */
static void same_product(dvt_array *got, dvt_array *a, dvt_array *b, const char *what) {
    dvt_dtype dtype = dvt_dtype_of(a);
    int is_float = dvt_dtype_is_float(dtype);
    double unit = dtype == DVT_F64 ? ulp_of(DVT_F64) : ulp_of(DVT_F32);
    double k = (double)dvt_dim(a, -1);
    dvt_array *exact, *size;
    double *x, *y, *z;
    int64_t i, n;
    if (!is_float) {
        SAME_ON_GPU(got, dvt_matmul(a, b), 0, what);
        return;
    }
    a = dvt_as_in_dtype(a, DVT_F64);
    b = dvt_as_in_dtype(b, DVT_F64);
    exact = dvt_matmul(a, b);
    size = dvt_matmul(dvt_abs(a), dvt_abs(b));
    CHECK(got != NULL);
    if (!got)
        return;
    CHECK_INT(dvt_dtype_of(got), dtype);
    CHECK(dvt_ctx_of(got).type == DVT_DEVICE_GPU);
    CHECK(dvt_shape_equal(dvt_shape_of(got), dvt_shape_of(exact)));
    x = dvt_test_values(dvt_copyto(got, dvt_cpu()));
    y = dvt_test_values(exact);
    z = dvt_test_values(size);
    n = x && y && z ? dvt_size(exact) : 0;
    CHECK_INT(n, dvt_size(exact));
    for (i = 0; i < n; i++) {
        double bound = 0.5 * ulp_of(dtype) * fabs(y[i]) + (k + 2) * 0.5 * unit * z[i];
        if (dtype == DVT_F16)
            bound += 3e-8; /* half of the smallest step */
        if (!dvt_test_check(fabs(x[i] - y[i]) <= bound, __FILE__, __LINE__,
                            "%s: element %lld is %.17g, exactly %.17g, within %g", what,
                            (long long)i, x[i], y[i], bound))
            break;
    }
    free(x);
    free(y);
    free(z);
}

static void check_product(dvt_shape sa, dvt_shape sb, dvt_dtype dtype, int how_a, int how_b) {
    DVT_SCOPE {
        char what[200];
        dvt_array *a = random_on_cpu(sa, dtype, -9, 10), *b = random_on_cpu(sb, dtype, -9, 10);
        int n = sa.ndim;
        snprintf(what, sizeof what, "%s: (%lld, %lld) layout %d x (%lld, %lld) layout %d",
                 dvt_dtype_name(dtype), (long long)sa.dim[n - 2], (long long)sa.dim[n - 1], how_a,
                 (long long)sb.dim[sb.ndim - 2], (long long)sb.dim[sb.ndim - 1], how_b);
        same_product(dvt_matmul(laid(a, how_a), laid(b, how_b)), a, b, what);
    }
}

static void check_sizes(int64_t n, int64_t k, int64_t m, dvt_dtype dtype, int how_a, int how_b) {
    check_product(DVT_SHAPE(n, k), DVT_SHAPE(k, m), dtype, how_a, how_b);
}

DVT_TEST(gpu_matmul_every_layout) {
    int a, b;
    NEEDS_GPU;
    for (a = 0; a < LAYOUTS; a++)
        for (b = 0; b < LAYOUTS; b++) {
            check_sizes(40, 36, 44, DVT_F32, a, b);
            check_sizes(33, 19, 35, DVT_F32, a, b);
        }
}

DVT_TEST(gpu_matmul_every_dtype) {
    int dtype, how;
    NEEDS_GPU;
    for (dtype = 0; dtype < DVT_DTYPE_COUNT; dtype++)
        for (how = PLAIN; how <= TRANSPOSED; how++) {
            if (dtype != DVT_F32 && !EACH(dtype + how, 2))
                continue;
            check_sizes(36, 40, 48, (dvt_dtype)dtype, how, how); /* multiples of the vector width */
            check_sizes(35, 41, 37, (dvt_dtype)dtype, how, how); /* not multiples */
        }
}

/* Each of the three tile sizes, at and around its edges, and k around the depth of a stage. */
DVT_TEST(gpu_matmul_around_tiles) {
    static const int64_t n[] = {2, 31, 32, 33, 64, 65, 129}, k[] = {1, 15, 16, 17, 33};
    int i, j;
    NEEDS_GPU;
    for (i = 0; i < COUNT_OF(n); i++)
        for (j = 0; j < COUNT_OF(k); j++)
            check_sizes(n[i], k[j], n[(i + 3) % COUNT_OF(n)], DVT_F32, i & 1, j & 1);
}

/* k = 1 with extents that are copied as vectors: threads without a valid k must not form an address
   between two vectors. */
DVT_TEST(gpu_matmul_outer_products) {
    int how;
    NEEDS_GPU;
    for (how = PLAIN; how <= TRANSPOSED; how++) {
        check_sizes(16, 1, 16, DVT_F32, how, how);
        check_sizes(64, 1, 4, DVT_F32, how, PLAIN);
        check_sizes(8, 1, 72, DVT_F32, PLAIN, how);
    }
}

/* 390 selects large tiles on few multiprocessors, as on the simulated GPU; 1300 on many. */
DVT_TEST(gpu_matmul_large_tiles) {
    int how;
    NEEDS_GPU;
    for (how = 0; how < 4; how++) {
        if (how == 0 || IN_FULL)
            check_sizes(387, 18, 377, DVT_F32, how & 1, how >> 1);
        if (how == 3 || IN_FULL)
            check_sizes(392, 20, 380, DVT_F32, how & 1, how >> 1);
    }
    if (IN_FULL)
        check_sizes(392, 11, 382, DVT_F64, PLAIN, TRANSPOSED);
    check_sizes(391, 9, 381, DVT_F64, TRANSPOSED, PLAIN);
    if (IN_FULL)
        check_sizes(1300, 18, 1201, DVT_F32, PLAIN, PLAIN);
    check_sizes(387, 10, 377, DVT_I64, TRANSPOSED, PLAIN);
    check_sizes(387, 17, 380, DVT_I8, PLAIN, PLAIN);
    check_sizes(387, 17, 377, DVT_F16, STEPPED, PLAIN);
    if (IN_FULL)
        check_sizes(387, 17, 377, DVT_BF16, PLAIN, REVERSED);
}

/* Small results of long sums, which are split along k. */
DVT_TEST(gpu_matmul_split_k) {
    NEEDS_GPU;
    check_sizes(33, 3001, 35, DVT_F32, PLAIN, PLAIN);
    check_sizes(33, 3000, 36, DVT_F32, TRANSPOSED, PLAIN);
    check_sizes(2, 20000, 3, DVT_F32, PLAIN, TRANSPOSED);
    check_sizes(2, 4100, 3, DVT_F64, STEPPED, STEPPED);
    check_sizes(5, 4100, 4, DVT_BF16, STEPPED, PLAIN);
    check_sizes(70, 2049, 66, DVT_I32, PLAIN, PLAIN);
    check_sizes(3, 9000, 3, DVT_I8, PLAIN, TRANSPOSED);
}

DVT_TEST(gpu_matmul_same_bits_again) {
    dvt_array *a, *b, *once, *again;
    NEEDS_GPU;
    a = laid(random_on_cpu(DVT_SHAPE(20, 5000), DVT_F32, -1, 1), PLAIN);
    b = laid(random_on_cpu(DVT_SHAPE(5000, 20), DVT_F32, -1, 1), PLAIN);
    once = dvt_copyto(dvt_matmul(a, b), dvt_cpu());
    again = dvt_matmul(a, b);
    SAME_ON_GPU(again, once, 0, "the same product");
}

/* A row times a matrix and a matrix times a column: read along k and across it, one warp or eight
   per element, and split along k. */
DVT_TEST(gpu_matmul_of_vectors) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_U8, DVT_I64};
    static const int64_t k[] = {1, 7, 64, 1000, 1025}, m[] = {2, 31, 128, 129, 300};
    int t, i, how;
    NEEDS_GPU;
    for (t = 0; t < COUNT_OF(dtypes); t++)
        for (i = 0; i < COUNT_OF(k); i++)
            for (how = 0; how < (t ? 2 : LAYOUTS); how++) {
                /* by default along k of F64 and F16, across it of U8 and I64 */
                bool some = t == 0 || IN_FULL;
                if (some || (t == 1 && how == TRANSPOSED) || (t == 4 && how == PLAIN))
                    check_sizes(1, k[i], m[i], dtypes[t], PLAIN, how);
                if (some || (t == 2 && how == PLAIN) || (t == 3 && how == TRANSPOSED))
                    check_sizes(m[i], k[COUNT_OF(k) - 1 - i], 1, dtypes[t], how, how);
            }
    check_sizes(1, 70001, 1, DVT_F32, PLAIN, PLAIN);
    check_sizes(1, 70000, 1, DVT_F32, PLAIN, STEPPED);
    check_sizes(1, 40000, 3, DVT_F32, PLAIN, TRANSPOSED);
    check_sizes(5, 40000, 1, DVT_F32, PLAIN, PLAIN);
    check_sizes(1, 3000, 9, DVT_F32, REVERSED, PLAIN);
    check_sizes(9, 3000, 1, DVT_I32, TRANSPOSED, PLAIN);
    check_sizes(1, 1, 1, DVT_F32, PLAIN, PLAIN);
}

DVT_TEST(gpu_matmul_batches) {
    dvt_array *a, *b;
    NEEDS_GPU;
    check_product(DVT_SHAPE(3, 5, 17), DVT_SHAPE(3, 17, 9), DVT_F32, PLAIN, PLAIN);
    check_product(DVT_SHAPE(3, 5, 17), DVT_SHAPE(17, 9), DVT_F32, PLAIN,
                  TRANSPOSED); /* one tall matrix */
    check_product(DVT_SHAPE(3, 5, 17), DVT_SHAPE(17, 9), DVT_F32, TRANSPOSED, PLAIN); /* not one */
    check_product(DVT_SHAPE(5, 17), DVT_SHAPE(4, 17, 9), DVT_F32, PLAIN, PLAIN);
    check_product(DVT_SHAPE(2, 1, 6, 8), DVT_SHAPE(3, 8, 5), DVT_F64, PLAIN, REVERSED);
    check_product(DVT_SHAPE(2, 1, 2, 2, 1, 3, 6, 8), DVT_SHAPE(1, 3, 2, 1, 2, 1, 8, 4), DVT_F32,
                  STEPPED, PLAIN);
    check_product(DVT_SHAPE(4, 1, 30), DVT_SHAPE(4, 30, 20), DVT_F32, PLAIN, PLAIN);
    check_product(DVT_SHAPE(4, 20, 30), DVT_SHAPE(4, 30, 1), DVT_I32, PLAIN, PLAIN);
    check_product(DVT_SHAPE(4, 20, 30), DVT_SHAPE(30, 1), DVT_F32, TRANSPOSED, PLAIN);
    check_product(DVT_SHAPE(6, 1, 1), DVT_SHAPE(6, 1, 1), DVT_F32, PLAIN, PLAIN);
    check_product(DVT_SHAPE(2, 3, 3000), DVT_SHAPE(2, 3000, 3), DVT_F32, PLAIN, PLAIN);
    /* one matrix broadcast over the batch */
    a = random_on_cpu(DVT_SHAPE(1, 6, 12), DVT_F32, -1, 1);
    b = random_on_cpu(DVT_SHAPE(1, 12, 8), DVT_F32, -1, 1);
    same_product(dvt_matmul(dvt_broadcast_to(laid(a, PLAIN), DVT_SHAPE(5, 6, 12)),
                            dvt_broadcast_to(laid(b, PLAIN), DVT_SHAPE(5, 12, 8))),
                 dvt_broadcast_to(a, DVT_SHAPE(5, 6, 12)), dvt_broadcast_to(b, DVT_SHAPE(5, 12, 8)),
                 "strides of 0 between matrices");
    a = random_on_cpu(DVT_SHAPE(6, 1), DVT_F32, -1, 1);
    b = random_on_cpu(DVT_SHAPE(12, 1), DVT_F32, -1, 1);
    same_product(dvt_matmul(dvt_broadcast_to(laid(a, PLAIN), DVT_SHAPE(6, 12)),
                            dvt_broadcast_to(laid(b, PLAIN), DVT_SHAPE(12, 8))),
                 dvt_broadcast_to(a, DVT_SHAPE(6, 12)), dvt_broadcast_to(b, DVT_SHAPE(12, 8)),
                 "strides of 0 inside matrices");
}

/* Rows that begin at a 16-byte boundary, and elsewhere. */
DVT_TEST(gpu_matmul_unaligned) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_I8};
    int t, first;
    NEEDS_GPU;
    for (t = 0; t < COUNT_OF(dtypes); t++)
        for (first = 0; first < 5; first++) {
            dvt_array *a = random_on_cpu(DVT_SHAPE(36, 48), dtypes[t], -9, 10);
            dvt_array *b = random_on_cpu(DVT_SHAPE(48, 52), dtypes[t], -9, 10), *ga, *gb;
            ga = dvt_slice(dvt_copyto(a, dvt_gpu(0)), 1, first, first + 32, 1);
            gb = dvt_slice(dvt_slice(dvt_copyto(b, dvt_gpu(0)), 0, 3, 35, 1), 1, first, first + 40,
                           1);
            a = dvt_slice(a, 1, first, first + 32, 1);
            b = dvt_slice(dvt_slice(b, 0, 3, 35, 1), 1, first, first + 40, 1);
            same_product(dvt_matmul(ga, gb), a, b, "a window of both");
            same_product(matmul_t(gb, ga, true, true), dvt_t(b), dvt_t(a),
                         "a window of both, transposed");
        }
}

DVT_TEST(gpu_matmul_empty) {
    int dtype;
    NEEDS_GPU;
    for (dtype = 0; dtype < DVT_BOOL; dtype++) {
        check_sizes(3, 0, 5, (dvt_dtype)dtype, PLAIN, PLAIN);
        check_sizes(1, 0, 5, (dvt_dtype)dtype, PLAIN, PLAIN);
        check_sizes(5, 0, 1, (dvt_dtype)dtype, PLAIN, PLAIN);
    }
    check_sizes(0, 4, 5, DVT_F32, PLAIN, PLAIN);
    check_sizes(4, 4, 0, DVT_F32, PLAIN, PLAIN);
    check_product(DVT_SHAPE(0, 2, 3), DVT_SHAPE(3, 4), DVT_F32, PLAIN, PLAIN);
}

/* A row or column with a NaN or an infinity affects only its own results, tails included. */
DVT_TEST(gpu_matmul_nan) {
    static const double strange[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    int i, how;
    NEEDS_GPU;
    for (i = 0; i < 3; i++)
        for (how = 0; how < 4; how++) {
            dvt_array *a = dvt_full(DVT_SHAPE(35, 21), 1, DVT_F32, dvt_cpu());
            dvt_array *b = dvt_full(DVT_SHAPE(21, 37), 1, DVT_F32, dvt_cpu());
            CHECK(dvt_fill(dvt_slice(dvt_slice(a, 0, 34, 35, 1), 1, 20, 21, 1), strange[i]) !=
                  NULL);
            CHECK(dvt_fill(dvt_slice(dvt_slice(b, 0, 3, 4, 1), 1, 36, 37, 1), strange[i]) != NULL);
            SAME_ON_GPU(dvt_matmul(laid(a, how & 1), laid(b, how >> 1)), dvt_matmul(a, b), 0,
                        "a strange number");
        }
}

/* Integers wrap as on cpu(), in every kernel. */
DVT_TEST(gpu_matmul_integers_wrap) {
    static const dvt_dtype dtypes[] = {DVT_I8, DVT_U8, DVT_I32, DVT_I64};
    int t;
    NEEDS_GPU;
    for (t = 0; t < COUNT_OF(dtypes); t++) {
        double large = dtypes[t] == DVT_I64 ? 3e9 : dtypes[t] == DVT_I32 ? 70000 : 100;
        dvt_array *a = dvt_full(DVT_SHAPE(33, 300), large, dtypes[t], dvt_cpu());
        dvt_array *b = dvt_full(DVT_SHAPE(300, 34), large - 1, dtypes[t], dvt_cpu());
        dvt_array *row = dvt_slice(a, 0, 0, 1, 1);
        SAME_ON_GPU(dvt_matmul(laid(a, PLAIN), laid(b, PLAIN)), dvt_matmul(a, b), 0, "wrapping");
        SAME_ON_GPU(dvt_matmul(laid(row, PLAIN), laid(b, PLAIN)), dvt_matmul(row, b), 0,
                    "wrapping, across");
        SAME_ON_GPU(dvt_matmul(laid(row, PLAIN), laid(b, TRANSPOSED)), dvt_matmul(row, b), 0,
                    "wrapping, along");
    }
}

/* Results written into existing arrays: unaligned, in views, with other strides, over their own
   operands. Memory around them must not change. The product itself was compared with cpu()'s
   above. */
DVT_TEST(gpu_matmul_into) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_I8};
    static const int64_t n[] = {33, 1, 16, 3}, k[] = {24, 40, 1030, 9000}, m[] = {36, 40, 1, 4};
    int t, i, first;
    NEEDS_GPU;
    for (t = 0; t < COUNT_OF(dtypes); t++)
        for (i = 0; i < COUNT_OF(n); i++)
            for (first = 0; first < 3 && (t == 0 || EACH(t + i, 2)); first++)
                DVT_SCOPE {
                    int64_t size = n[i] * m[i];
                    dvt_array *a = laid(random_on_cpu(DVT_SHAPE(n[i], k[i]), dtypes[t], -3, 3), 0);
                    dvt_array *b = laid(random_on_cpu(DVT_SHAPE(k[i], m[i]), dtypes[t], -3, 3), 0);
                    dvt_array *product = dvt_copyto(dvt_matmul(a, b), dvt_cpu());
                    dvt_array *here = random_on_cpu(DVT_SHAPE(size + 8), dtypes[t], -9, 9), *there;
                    dvt_array *wide =
                        random_on_cpu(DVT_SHAPE(n[i] + 2, m[i] + 3), dtypes[t], -9, 9);
                    there = dvt_copyto(here, dvt_gpu(0));
                    CHECK(matmul_into(dvt_reshape(dvt_rows(there, first, first + size),
                                                  DVT_SHAPE(n[i], m[i])),
                                      a, b, false, false) != NULL);
                    CHECK(dvt_copy_into(dvt_rows(here, first, first + size),
                                        dvt_reshape(product, DVT_SHAPE(size))) != NULL);
                    SAME_ON_GPU(there, here, 0, "into a part of a row");
                    there = dvt_copyto(wide, dvt_gpu(0));
                    CHECK(matmul_into(
                              dvt_slice(dvt_rows(there, 1, n[i] + 1), 1, first, first + m[i], 1), a,
                              b, false, false) != NULL);
                    CHECK(dvt_copy_into(
                              dvt_slice(dvt_rows(wide, 1, n[i] + 1), 1, first, first + m[i], 1),
                              product) != NULL);
                    SAME_ON_GPU(there, wide, 0, "into a window");
                }
}

DVT_TEST(gpu_matmul_into_its_factors) {
    dvt_array *a, *c;
    NEEDS_GPU;
    a = laid(random_on_cpu(DVT_SHAPE(40, 40), DVT_F32, -1, 1), PLAIN);
    c = dvt_copy(a);
    CHECK(matmul_into(c, c, a, false, true) == c);
    SAME_ON_GPU(c, dvt_copyto(matmul_t(a, a, false, true), dvt_cpu()), 0, "into a");
    c = dvt_copy(a);
    CHECK(matmul_into(dvt_t(c), a, c, false, false) != NULL);
    SAME_ON_GPU(dvt_t(c), dvt_copyto(dvt_matmul(a, a), dvt_cpu()), 0, "into b, transposed");
    c = dvt_zeros(DVT_SHAPE(40, 40), DVT_F64, dvt_gpu(0));
    CHECK(matmul_into(c, a, a, false, false) == c);
    SAME_ON_GPU(c, dvt_copyto(dvt_as_in_dtype(dvt_matmul(a, a), DVT_F64), dvt_cpu()), 0,
                "into float64");
    c = dvt_zeros(DVT_SHAPE(40), DVT_F32, dvt_gpu(0));
    CHECK(matmul_into(c, a, dvt_index(a, 3), true, false) == c);
    SAME_ON_GPU(c, dvt_copyto(matmul_t(a, dvt_index(a, 3), true, false), dvt_cpu()), 0, "a column");
    CHECK_ERROR(matmul_into(c, a, a, false, false), DVT_ERR_SHAPE);
    CHECK_ERROR(matmul_into(dvt_zeros(DVT_SHAPE(40, 40), DVT_F32, dvt_cpu()), a, a, false, false),
                DVT_ERR_CONTEXT);
}
