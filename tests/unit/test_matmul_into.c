/* Tests of products written into existing arrays: the same bits as new products, untouched
   neighboring memory, shared memory, refusals. */
#include "dvt_faults.h"
#include "matmul_inputs.h"
#include "matmul_forms.h"

static bool same_bytes(dvt_array *x, dvt_array *y) {
    int64_t n = dvt_nbytes(x);
    unsigned char *p = (unsigned char *)malloc((size_t)n + 1),
                  *q = (unsigned char *)malloc((size_t)n + 1);
    bool same = x && y && dvt_dtype_of(x) == dvt_dtype_of(y) &&
                dvt_shape_equal(dvt_shape_of(x), dvt_shape_of(y)) &&
                dvt_to_host(x, p, n) == DVT_OK && dvt_to_host(y, q, n) == DVT_OK &&
                memcmp(p, q, (size_t)n) == 0;
    free(p);
    free(q);
    return same;
}

/* Returns an array of values that the product must overwrite. */
static dvt_array *garbage(dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx) {
    return dvt_full(shape, dvt_dtype_is_float(dtype) ? (double)NAN : 77, dtype, ctx);
}

static void check_into(dvt_array *dst, dvt_array *a, dvt_array *b, bool ta, bool tb) {
    dvt_array *product = matmul_t(a, b, ta, tb);
    dvt_array *expected = dvt_as_in_dtype(product, dvt_dtype_of(dst));
    int64_t arrays = dvt_get_stats().arrays;
    CHECK(matmul_into(dst, a, b, ta, tb) == dst);
    CHECK_INT(dvt_get_stats().arrays, arrays);
    dvt_test_check(same_bytes(dst, expected), __FILE__, __LINE__,
                   "%s (%lld, %lld) x (%lld, %lld) %d %d", dvt_dtype_name(dvt_dtype_of(dst)),
                   (long long)dvt_dim(a, 0), (long long)dvt_dim(a, -1), (long long)dvt_dim(b, 0),
                   (long long)dvt_dim(b, -1), ta, tb);
}

/* Checks dst in every layout too. */
static void check_layouts(int64_t n, int64_t k, int64_t m, dvt_dtype dtype, dvt_ctx ctx) {
    int how, t;
    for (t = 0; t < 4; t++)
        for (how = 0; how < 4; how++)
            DVT_SCOPE {
                bool ta = (t & 1) != 0, tb = (t & 2) != 0;
                dvt_array *a =
                    random_array(ta ? DVT_SHAPE(k, n) : DVT_SHAPE(n, k), dtype, dvt_cpu());
                dvt_array *b =
                    random_array(tb ? DVT_SHAPE(m, k) : DVT_SHAPE(k, m), dtype, dvt_cpu());
                dvt_array *dst = garbage(DVT_SHAPE(n, m), dtype, ctx);
                a = strided(dvt_as_in_ctx(a, ctx), (how + t) % 4);
                b = strided(dvt_as_in_ctx(b, ctx), (how + 2 * t + 1) % 4);
                check_into(strided(dst, how), a, b, ta, tb);
            }
}

DVT_TEST(matmul_into_sizes) {
    static const int64_t size[] = {1, 2, 3, 8, 16, 17, 33};
    int i, j, l;
    for (i = 0; i < 7; i++)
        for (j = 0; j < 7; j++)
            for (l = 0; l < 7; l++)
                check_layouts(size[i], size[l], size[j], (i + j + l) % 3 ? DVT_F32 : DVT_F64,
                              dvt_cpu());
    check_layouts(97, 257, 131, DVT_F32, dvt_cpu());
    check_layouts(300, 40, 7, DVT_F32, dvt_cpu());
    check_layouts(1, 700, 1100, DVT_F32, dvt_cpu());
    check_layouts(1100, 300, 1, DVT_F32, dvt_cpu());
    check_layouts(5, 600, 9, DVT_F64, dvt_cpu());
}

DVT_TEST(matmul_into_dtypes) {
    int d;
    for (d = 0; d < DVT_BOOL; d++) {
        check_layouts(7, 9, 5, (dvt_dtype)d, dvt_cpu());
        check_layouts(33, 40, 50, (dvt_dtype)d, dvt_cpu());
        check_layouts(1, 40, 50, (dvt_dtype)d, dvt_cpu());
    }
}

/* The product is computed in the dtype of a new product, and then converted. */
DVT_TEST(matmul_into_another_dtype) {
    dvt_dtype f, g, h;
    int i, j, l;
    for (i = 0; i < DVT_DTYPE_COUNT; i++)
        for (j = 0; j < DVT_DTYPE_COUNT; j++)
            for (l = 0; l < DVT_DTYPE_COUNT; l++)
                DVT_SCOPE {
                    dvt_array *a, *b, *dst, *product;
                    f = (dvt_dtype)i;
                    g = (dvt_dtype)j;
                    h = (dvt_dtype)l;
                    a = dvt_as_in_dtype(random_array(DVT_SHAPE(3, 4), DVT_I32, dvt_cpu()), f);
                    b = dvt_as_in_dtype(random_array(DVT_SHAPE(4, 5), DVT_I32, dvt_cpu()), g);
                    dst = dvt_ones(DVT_SHAPE(3, 5), h, dvt_cpu());
                    product = dvt_matmul(a, b);
                    if (dvt_dtype_is_float(dvt_dtype_of(product)) ? dvt_dtype_is_float(h)
                                                                  : h != DVT_BOOL)
                        check_into(dst, a, b, false, false);
                    else {
                        CHECK_ERROR(matmul_into(dst, a, b, false, false), DVT_ERR_DTYPE);
                        CHECK(same_bytes(dst, dvt_ones(DVT_SHAPE(3, 5), h, dvt_cpu())));
                    }
                }
}

/* Elements around a window of a larger array must not change. */
DVT_TEST(matmul_into_windows) {
    static const dvt_dtype dtype[] = {DVT_F32, DVT_F64, DVT_F16, DVT_I8, DVT_I32, DVT_I64};
    int d, row, width, columns;
    for (d = 0; d < 6; d++)
        for (row = 0; row < 3; row++)
            for (width = 1; width < 40; width += width < 18 ? 1 : 7)
                for (columns = 0; columns < 3; columns++)
                    DVT_SCOPE {
                        dvt_array *large =
                            random_array(DVT_SHAPE(9, width + columns), dtype[d], dvt_cpu());
                        dvt_array *before = dvt_copy(large);
                        dvt_array *a = random_array(DVT_SHAPE(5, 20), dtype[d], dvt_cpu());
                        dvt_array *b = random_array(DVT_SHAPE(20, width), dtype[d], dvt_cpu());
                        dvt_array *window = dvt_slice(dvt_rows(large, row, row + 5), 1, columns / 2,
                                                      columns / 2 + width, 1);
                        check_into(window, a, b, false, false);
                        CHECK(dvt_copy_into(dvt_slice(dvt_rows(before, row, row + 5), 1,
                                                      columns / 2, columns / 2 + width, 1),
                                            window) != NULL);
                        CHECK(same_bytes(large, before));
                    }
}

/* One axis: rows, columns, and a scalar. */
DVT_TEST(matmul_into_one_axis) {
    static const int64_t k[] = {1, 3, 16, 40, 130, 600};
    int i, how;
    for (i = 0; i < 6; i++)
        for (how = 0; how < 4; how++)
            DVT_SCOPE {
                dvt_array *row = strided(random_array(DVT_SHAPE(k[i]), DVT_F32, dvt_cpu()), how);
                dvt_array *a = strided(random_array(DVT_SHAPE(9, k[i]), DVT_F32, dvt_cpu()), how);
                dvt_array *b = random_array(DVT_SHAPE(2, k[i], 7), DVT_F32, dvt_cpu());
                check_into(strided(garbage(DVT_SHAPE(9), DVT_F32, dvt_cpu()), how), a, row, false,
                           true);
                check_into(garbage(DVT_SHAPE(9), DVT_F32, dvt_cpu()), row, a, true, true);
                check_into(strided(garbage(DVT_SHAPE(2, 7), DVT_F32, dvt_cpu()), how), row, b, true,
                           false);
                check_into(garbage(DVT_SHAPE(2, 7), DVT_F32, dvt_cpu()), b, row, true, true);
                check_into(garbage(DVT_SCALAR, DVT_F32, dvt_cpu()), row, row, false, false);
            }
}

DVT_TEST(matmul_into_batches) {
    dvt_array *a = random_array(DVT_SHAPE(2, 1, 4, 5), DVT_F32, dvt_cpu());
    dvt_array *b = random_array(DVT_SHAPE(3, 5, 6), DVT_F32, dvt_cpu());
    dvt_array *wide = garbage(DVT_SHAPE(2, 3, 4, 8), DVT_F32, dvt_cpu());
    check_into(garbage(DVT_SHAPE(2, 3, 4, 6), DVT_F32, dvt_cpu()), a, b, false, false);
    check_into(dvt_slice(wide, 3, 1, 7, 1), a, b, false, false);
    check_into(dvt_swapaxes(garbage(DVT_SHAPE(3, 2, 4, 6), DVT_F32, dvt_cpu()), 0, 1), a, b, false,
               false);
    check_into(garbage(DVT_SHAPE(2, 1, 4, 7), DVT_F32, dvt_cpu()), a,
               random_array(DVT_SHAPE(7, 5), DVT_F32, dvt_cpu()), false, true);
    check_into(garbage(DVT_SHAPE(3, 5, 5), DVT_F32, dvt_cpu()),
               random_array(DVT_SHAPE(6, 5), DVT_F32, dvt_cpu()), b, true, true);
}

/* Slices of one array: operands that overlap dst are read before dst is written, and separate
   operands are allowed. */
DVT_TEST(matmul_into_shared_memory) {
    static const int64_t n[] = {3, 16, 70};
    int i, t;
    for (i = 0; i < 3; i++)
        for (t = 0; t < 4; t++)
            DVT_SCOPE {
                bool ta = (t & 1) != 0, tb = (t & 2) != 0;
                dvt_array *a = random_array(DVT_SHAPE(n[i], n[i]), DVT_F32, dvt_cpu());
                dvt_array *b = random_array(DVT_SHAPE(n[i], n[i]), DVT_F32, dvt_cpu()), *c;
                c = dvt_copy(a);
                check_into(c, dvt_copy(c), b, ta, tb);
                c = dvt_copy(a);
                CHECK(matmul_into(c, c, b, ta, tb) == c);
                CHECK(same_bytes(c, matmul_t(a, b, ta, tb)));
                c = dvt_copy(a);
                CHECK(matmul_into(c, b, c, ta, tb) == c);
                CHECK(same_bytes(c, matmul_t(b, a, ta, tb)));
                c = dvt_copy(a);
                CHECK(matmul_into(c, dvt_t(c), c, ta, tb) == c);
                CHECK(same_bytes(c, matmul_t(dvt_t(a), a, ta, tb)));
                c = dvt_copy(a);
                CHECK(matmul_into(dvt_t(c), c, b, ta, tb) != NULL);
                CHECK(same_bytes(dvt_t(c), matmul_t(a, b, ta, tb)));
            }
    for (i = 0; i < 9; i++)
        DVT_SCOPE {
            dvt_array *all = random_array(DVT_SHAPE(24, 8), DVT_F64, dvt_cpu());
            dvt_array *before = dvt_copy(all), *dst = dvt_rows(all, 2 * i, 2 * i + 8);
            CHECK(matmul_into(dst, dvt_rows(all, 16, 24), dvt_rows(all, 8, 16), false, true) ==
                  dst);
            CHECK(dvt_copy_into(
                dvt_rows(before, 2 * i, 2 * i + 8),
                matmul_t(dvt_rows(before, 16, 24), dvt_rows(before, 8, 16), false, true)));
            CHECK(same_bytes(all, before));
        }
}

DVT_TEST(matmul_into_of_empty_operands) {
    static const dvt_dtype dtype[] = {DVT_F32, DVT_F64, DVT_BF16, DVT_U8, DVT_I64};
    int d, how;
    for (d = 0; d < 5; d++)
        for (how = 0; how < 3; how++) {
            dvt_array *none = dvt_zeros(DVT_SHAPE(2, 0), dtype[d], dvt_cpu());
            dvt_array *dst = strided(garbage(DVT_SHAPE(2, 2), dtype[d], dvt_cpu()), how);
            dvt_array *one = dvt_zeros(DVT_SHAPE(0), dtype[d], dvt_cpu());
            CHECK(matmul_into(dst, none, none, false, true) == dst);
            CHECK_VALUES(dst, 0, 0, 0, 0, 0);
            dst = strided(garbage(DVT_SHAPE(2), dtype[d], dvt_cpu()), how == 1 ? 0 : how);
            CHECK(matmul_into(dst, none, one, false, false) == dst);
            CHECK_VALUES(dst, 0, 0, 0);
            dst = dvt_zeros(DVT_SHAPE(0, 0), dtype[d], dvt_cpu());
            CHECK(matmul_into(dst, none, none, true, false) == dst);
        }
}

DVT_TEST(matmul_into_threads) {
    dvt_array *a = random_array(DVT_SHAPE(193, 257), DVT_F32, dvt_cpu());
    dvt_array *b = random_array(DVT_SHAPE(257, 140), DVT_F32, dvt_cpu());
    dvt_array *one = dvt_matmul(a, b);
    int threads;
    for (threads = 1; threads <= 3; threads++) {
        dvt_array *dst = garbage(DVT_SHAPE(193, 140), DVT_F32, dvt_cpu());
        dvt_set_num_threads(threads);
        CHECK(matmul_into(dst, a, b, false, false) == dst);
        CHECK(same_bytes(dst, one));
    }
    dvt_set_num_threads(0);
}

DVT_TEST(matmul_into_virtual_gpu) {
    dvt_set_virtual_gpus(2, 0);
    DVT_SCOPE {
        dvt_ctx there = dvt_gpu(1);
        dvt_array *a = random_array(DVT_SHAPE(4, 4), DVT_F32, dvt_cpu());
        dvt_array *b = dvt_copyto(a, there), *dst = garbage(DVT_SHAPE(4, 4), DVT_F32, there);
        check_layouts(20, 30, 16, DVT_F32, there);
        check_into(dst, b, b, false, true);
        CHECK(matmul_into(dst, dst, b, false, false) == dst);
        CHECK(same_bytes(dst, dvt_matmul(matmul_t(b, b, false, true), b)));
        CHECK_ERROR(matmul_into(dst, a, a, false, false), DVT_ERR_CONTEXT);
        CHECK_ERROR(matmul_into(dst, b, a, false, false), DVT_ERR_CONTEXT);
        CHECK_ERROR(matmul_into(dvt_copyto(dst, dvt_gpu(0)), b, b, false, false), DVT_ERR_CONTEXT);
        CHECK_ERROR(
            matmul_into(dvt_zeros(DVT_SHAPE(4, 4), DVT_F32, dvt_cpu_id(1)), a, a, false, false),
            DVT_ERR_CONTEXT);
    }
    dvt_set_virtual_gpus(0, 0);
}

/* ---- refusals ---- */
static void check_refused(dvt_array *dst, dvt_array *a, dvt_array *b, dvt_status status,
                          const char *text) {
    dvt_array *before = dst ? dvt_copy(dst) : NULL;
    dvt_clear_error();
    CHECK(matmul_into(dst, a, b, false, false) == NULL);
    dvt_test_check(dvt_error_code() == status && strstr(dvt_error(), "dvt_matmul_with: ") &&
                       strstr(dvt_error(), text),
                   __FILE__, __LINE__, "%s: %s", dvt_status_name(dvt_error_code()), dvt_error());
    dvt_clear_error();
    CHECK(!dst || same_bytes(dst, before));
}

DVT_TEST(matmul_into_errors) {
    dvt_array *a = dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu());
    dvt_array *b = dvt_ones(DVT_SHAPE(3, 4), DVT_F32, dvt_cpu());
    dvt_array *v = dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_cpu());
    dvt_array *c = dvt_full(DVT_SHAPE(2, 4), 7, DVT_F32, dvt_cpu());
    dvt_array *tall = dvt_full(DVT_SHAPE(8), 7, DVT_F32, dvt_cpu());
    dvt_array *one = dvt_scalar(1, DVT_F32, dvt_cpu());
    check_refused(c, NULL, b, DVT_ERR_NULL_ARGUMENT, "a is NULL");
    check_refused(c, a, NULL, DVT_ERR_NULL_ARGUMENT, "b is NULL");
    check_refused(dvt_t(c), a, b, DVT_ERR_SHAPE,
                  "the result has shape (2, 4) and cannot be written into float32 (4, 2)");
    check_refused(tall, a, b, DVT_ERR_SHAPE, "use out = NULL");
    check_refused(dvt_reshape(c, DVT_SHAPE(1, 2, 4)), a, b, DVT_ERR_SHAPE, "(1, 2, 4)");
    check_refused(dvt_reshape(dvt_rows(tall, 0, 2), DVT_SHAPE(2, 1)), a, v, DVT_ERR_SHAPE,
                  "the result has shape (2,)");
    check_refused(c, a, a, DVT_ERR_SHAPE, "expected equal extents where they meet");
    check_refused(c, one, b, DVT_ERR_SHAPE, "expected at least one axis");
    check_refused(c, a, one, DVT_ERR_SHAPE, "expected at least one axis");
    check_refused(c, dvt_ones(DVT_SHAPE(2, 2, 3), DVT_F32, dvt_cpu()),
                  dvt_ones(DVT_SHAPE(3, 3, 4), DVT_F32, dvt_cpu()), DVT_ERR_SHAPE,
                  "batch axes that broadcast");
    check_refused(dvt_full(DVT_SHAPE(2, 4), 7, DVT_I32, dvt_cpu()), a, b, DVT_ERR_DTYPE,
                  "the result is float32 and cannot be written into int32 (2, 4)");
    check_refused(dvt_broadcast_to(dvt_full(DVT_SHAPE(4), 7, DVT_F32, dvt_cpu()), DVT_SHAPE(2, 4)),
                  a, b, DVT_ERR_VALUE, "is a broadcast view");
    check_refused(dvt_full(DVT_SHAPE(2, 4), 7, DVT_F32, dvt_cpu_id(3)), a, b, DVT_ERR_CONTEXT,
                  "out is float32 (2, 4) on cpu(3)");
    check_refused(c, a, dvt_copyto(b, dvt_cpu_id(3)), DVT_ERR_CONTEXT, "b is float32 (3, 4)");
}

/* ---- several fields at once ---- */
/* Transposed int8 and uint8 operands, converted to int32 and written into an existing array, in
   each of its layouts and on both kinds of devices. */
DVT_TEST(matmul_with_all_fields) {
    static const int64_t size[][3] = {{3, 4, 5}, {8, 16, 8}, {33, 700, 20}, {1, 40, 50}};
    dvt_matmul_desc desc;
    int i, t, how, where;
    dvt_set_virtual_gpus(1, 0);
    for (i = 0; i < 4; i++)
        for (t = 0; t < 4; t++)
            for (how = 0; how < 3; how++)
                for (where = 0; where < 2; where++)
                    DVT_SCOPE {
                        const int64_t n = size[i][0], k = size[i][1], m = size[i][2];
                        dvt_ctx ctx = where ? dvt_gpu(0) : dvt_cpu();
                        dvt_array *a, *b, *out, *wide;
                        desc = matmul_transposed((t & 1) != 0, (t & 2) != 0);
                        a = random_array(t & 1 ? DVT_SHAPE(k, n) : DVT_SHAPE(n, k), DVT_I8, ctx);
                        b = random_array(t & 2 ? DVT_SHAPE(m, k) : DVT_SHAPE(k, m), DVT_U8, ctx);
                        wide = dvt_matmul(dvt_as_in_dtype(t & 1 ? dvt_t(a) : a, DVT_I64),
                                          dvt_as_in_dtype(t & 2 ? dvt_t(b) : b, DVT_I64));
                        desc.convert = true;
                        desc.dtype = DVT_I32;
                        desc.out = out = strided(garbage(DVT_SHAPE(n, m), DVT_I32, ctx), how);
                        CHECK(dvt_matmul_with(a, b, &desc) == out);
                        CHECK(same_bytes(out, dvt_as_in_dtype(wide, DVT_I32)));
                        desc.out = garbage(DVT_SHAPE(n, m), DVT_I64, ctx);
                        CHECK(same_bytes(dvt_matmul_with(a, b, &desc), wide));
                        desc.out = NULL;
                        CHECK(same_bytes(dvt_matmul_with(a, b, &desc), out));
                    }
    dvt_set_virtual_gpus(0, 0);
}

DVT_TEST(matmul_with_zero_descriptor_is_matmul) {
    dvt_array *a = random_array(DVT_SHAPE(3, 4), DVT_F32, dvt_cpu());
    dvt_array *b = random_array(DVT_SHAPE(4, 5), DVT_F64, dvt_cpu());
    dvt_matmul_desc desc = matmul_transposed(false, false);
    CHECK(same_bytes(dvt_matmul_with(a, b, NULL), dvt_matmul(a, b)));
    CHECK(same_bytes(dvt_matmul_with(a, b, &desc), dvt_matmul(a, b)));
    desc.dtype = DVT_F64; /* `convert` is not set */
    CHECK_ERROR(dvt_matmul_with(a, b, &desc), DVT_ERR_DTYPE);
    desc.out = dvt_zeros(DVT_SHAPE(3, 5), DVT_F64, dvt_cpu());
    CHECK_ERROR(dvt_matmul_with(a, b, &desc), DVT_ERR_DTYPE);
    CHECK_VALUES(dvt_sum(desc.out, DVT_ALL), 0, 0);
    desc.convert = true;
    desc.dtype = DVT_BOOL;
    CHECK_ERROR(dvt_matmul_with(a, b, &desc), DVT_ERR_DTYPE);
}

/* ---- gradients ---- */
DVT_TEST(matmul_into_while_recording) {
    dvt_array *a = dvt_ones(DVT_SHAPE(2, 2), DVT_F32, dvt_cpu());
    dvt_array *w = dvt_full(DVT_SHAPE(2, 2), 3, DVT_F32, dvt_cpu());
    dvt_array *c = dvt_zeros(DVT_SHAPE(2, 2), DVT_F32, dvt_cpu()), *y = NULL;
    CHECK(dvt_attach_grad(w, DVT_GRAD_WRITE) == DVT_OK);
    DVT_RECORD {
        y = dvt_mul(w, a);
        check_refused(c, w, a, DVT_ERR_GRAD, "dvt_matmul_with: a (float32 (2, 2)");
        check_refused(c, a, y, DVT_ERR_GRAD, "dvt_matmul_with: b (float32 (2, 2)");
        check_refused(w, a, a, DVT_ERR_GRAD, "belongs to a recorded computation");
        check_refused(y, a, a, DVT_ERR_GRAD, "belongs to a recorded computation");
        CHECK(matmul_into(c, a, a, false, false) == c); /* allowed: a has no history */
        CHECK_VALUES(c, 0, 2, 2, 2, 2);
        CHECK(!dvt_has_history(c));
        DVT_PAUSE {
            CHECK(matmul_into(c, a, w, false, false) == c);
        }
        CHECK(!dvt_has_history(c));
    }
    CHECK_VALUES(c, 0, 6, 6, 6, 6);
    CHECK(dvt_backward(y) == DVT_OK);
    CHECK_VALUES(dvt_grad(w), 0, 1, 1, 1, 1);
}

/* Overwriting a value that backward needs, directly or through a copy, gives an error. */
DVT_TEST(matmul_into_is_detected_as_a_write) {
    int how;
    for (how = 0; how < 2; how++) {
        dvt_array *a = dvt_ones(DVT_SHAPE(2, 2), DVT_F32, dvt_cpu());
        dvt_array *w = dvt_full(DVT_SHAPE(2, 2), 3, DVT_F32, dvt_cpu()), *y = NULL;
        CHECK(dvt_attach_grad(w, DVT_GRAD_WRITE) == DVT_OK);
        DVT_RECORD {
            y = dvt_mul(w, a);
        }
        CHECK(matmul_into(a, how ? a : w, w, false, false) == a);
        CHECK_ERROR(dvt_backward(y), DVT_ERR_GRAD);
    }
}

/* ---- memory ---- */
static int64_t allocations;

static void *counting_alloc(void *user, size_t bytes) {
    (void)user;
    allocations++;
    return malloc(bytes);
}

static void *counting_resize(void *user, void *block, size_t bytes) {
    (void)user;
    allocations++;
    return realloc(block, bytes);
}

static void plain_release(void *user, void *block) {
    (void)user;
    free(block);
}

/* The reference loops may allocate a workspace for a matrix; a vector needs none on any ISA
   target. */
DVT_TEST(matmul_into_allocates_nothing) {
    dvt_allocator counting = {counting_alloc, counting_resize, plain_release, NULL};
    bool matrices = strcmp(dvt_cpu_isa(), "reference") != 0;
    int64_t before;
    int t;
    dvt_set_allocator(&counting);
    DVT_SCOPE {
        dvt_array *a = dvt_ones(DVT_SHAPE(16, 16), DVT_F32, dvt_cpu());
        dvt_array *b = dvt_ones(DVT_SHAPE(16, 16), DVT_F32, dvt_cpu());
        dvt_array *bytes = dvt_ones(DVT_SHAPE(16, 40), DVT_F32, dvt_cpu());
        dvt_array *row = dvt_index(a, 3), *y = dvt_index(bytes, 5);
        dvt_array *c =
            dvt_reshape(dvt_rows(dvt_reshape(bytes, DVT_SHAPE(640)), 300, 556), DVT_SHAPE(16, 16));
        CHECK(matmul_into(dvt_slice(y, 0, 0, 16, 1), row, b, false, false) != NULL);
        y = dvt_slice(y, 0, 0, 16, 1);
        before = allocations;
        for (t = 0; t < 4; t++) {
            CHECK(matmul_into(y, row, b, false, (t & 2) != 0) == y);
            CHECK(matmul_into(y, b, row, (t & 1) != 0, false) == y);
            if (matrices)
                CHECK(matmul_into(c, a, b, (t & 1) != 0, (t & 2) != 0) == c);
        }
        CHECK_INT(allocations, before);
    }
    dvt_set_allocator(NULL);
}

DVT_FAULTS(matmul_into) {
    dvt_array *a = dvt_ones(DVT_SHAPE(40, 50), DVT_F32, dvt_cpu());
    dvt_array *b = dvt_full(DVT_SHAPE(50, 40), 2, DVT_F32, dvt_cpu());
    dvt_array *c = dvt_zeros(DVT_SHAPE(40, 40), DVT_F32, dvt_cpu());
    dvt_array *wide = dvt_zeros(DVT_SHAPE(40, 40), DVT_F64, dvt_cpu());
    dvt_array *half = dvt_zeros(DVT_SHAPE(40, 40), DVT_F16, dvt_cpu());
    dvt_array *transposed = c ? dvt_t(c) : NULL, *column = b ? dvt_index(dvt_t(b), 0) : NULL;
    dvt_array *y = c ? dvt_index(c, 7) : NULL;
    FAULTS_INTO(c, matmul_into(c, a, b, false, false));
    FAULTS_INTO(c, matmul_into(c, b, a, true, true));
    FAULTS_INTO(transposed, matmul_into(transposed, a, b, false, false));
    FAULTS_INTO(c, matmul_into(c, c, c, false, true));
    FAULTS_INTO(wide, matmul_into(wide, a, b, false, false));
    FAULTS_INTO(half, matmul_into(half, wide, c, false, false));
    FAULTS_INTO(half, matmul_into(half, dvt_copy(half), dvt_copy(half), false, true));
    FAULTS_INTO(y, matmul_into(y, a, column, false, false));
}
