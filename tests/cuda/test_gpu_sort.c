/* Sort and topk on a GPU: rows within a block and longer ones, many equal elements, both orders,
   dtypes, views, corner cases. */
#include "on_gpu.h"

/* Tells whether positions of a dtype are compared. They are a program of their own, with the same
   keys as that of the elements. */
static int has_positions(dvt_dtype dtype) {
    return EACH((int)dtype, 2);
}

static void check_sort(dvt_array *x, int axis, const char *what) {
    dvt_array *y = dvt_copyto(x, dvt_gpu(0));
    int descending;
    for (descending = 0; descending < 2; descending++) {
        same_on_gpu(dvt_sort(y, axis, (descending != 0) ? DVT_DESCENDING : DVT_ASCENDING),
                    dvt_sort(x, axis, (descending != 0) ? DVT_DESCENDING : DVT_ASCENDING), 0, 0,
                    what, __FILE__, __LINE__);
        if (!has_positions(dvt_dtype_of(x)))
            continue;
        same_on_gpu(dvt_argsort(y, axis, (descending != 0) ? DVT_DESCENDING : DVT_ASCENDING),
                    dvt_argsort(x, axis, (descending != 0) ? DVT_DESCENDING : DVT_ASCENDING), 0, 0,
                    what, __FILE__, __LINE__);
    }
}

DVT_TEST(gpu_sort_lengths) {
    static const int64_t lengths[] = {1, 2, 3, 33, 256, 1000, 2047, 2048, 2049, 5000};
    int k;
    NEEDS_GPU;
    for (k = 0; k < 10; k++)
        DVT_SCOPE {
            check_sort(random_on_cpu(DVT_SHAPE(3, lengths[k]), DVT_F32, -9, 9), 1, "rows");
            check_sort(dvt_round(random_on_cpu(DVT_SHAPE(lengths[k]), DVT_F32, -9, 9)), 0,
                       "many equal");
        }
    check_sort(random_on_cpu(DVT_SHAPE(700, 10), DVT_F32, -9, 9), 1, "short rows");
    check_sort(random_on_cpu(DVT_SHAPE(5, 2100), DVT_F64, -9, 9), 1, "sorted by key, then by row");
}

DVT_TEST(gpu_sort_dtypes_and_views) {
    int dtype, axis;
    NEEDS_GPU;
    for (dtype = 0; dtype < DVT_DTYPE_COUNT; dtype++)
        DVT_SCOPE {
            check_sort(random_on_cpu(DVT_SHAPE(4, 300), (dvt_dtype)dtype, -90, 90), 1,
                       dvt_dtype_name((dvt_dtype)dtype));
            check_sort(random_on_cpu(DVT_SHAPE(2, 2100), (dvt_dtype)dtype, -90, 90), 1,
                       dvt_dtype_name((dvt_dtype)dtype));
        }
    for (axis = 0; axis < 3; axis++)
        DVT_SCOPE {
            dvt_array *x = random_on_cpu(DVT_SHAPE(4, 6, 24), DVT_F32, -9, 9);
            check_sort(dvt_swapaxes(x, 0, 2), axis, "transposed");
            check_sort(dvt_slice(x, 2, 23, -25, -2), axis, "backwards");
        }
}

DVT_TEST(gpu_sort_corners) {
    static const uint32_t bits[] = {0x7fc00001, 0x80000000, 0, 0xffc00002, 0x80000000, 0x3f800000};
    dvt_array *x;
    NEEDS_GPU;
    x = dvt_from_host(bits, DVT_SHAPE(6), DVT_F32, dvt_gpu(0));
    CHECK_VALUES(dvt_argsort(x, 0, DVT_ASCENDING), 0, 1, 2, 4, 5, 0, 3);
    CHECK_VALUES(dvt_argsort(x, 0, DVT_DESCENDING), 0, 0, 3, 5, 1, 2, 4);
    CHECK_INT(dvt_size(dvt_sort(dvt_zeros(DVT_SHAPE(0, 3), DVT_F32, dvt_gpu(0)), 1, DVT_ASCENDING)),
              0);
    CHECK_ERROR(dvt_sort(x, 1, DVT_ASCENDING), DVT_ERR_AXIS);
}

/* Every bit of the elements is random, and many are zeros of both signs or NaN. */
static dvt_array *random_bits(dvt_shape shape, dvt_dtype dtype) {
    static const uint64_t zeros[] = {0,
                                     0x8000000000000000,
                                     0x7ff8000000000001,
                                     0xfff8000000000002,
                                     0,
                                     0x80000000,
                                     0x7fc00001,
                                     0xffc00002,
                                     0,
                                     0x8000,
                                     0x7fc1,
                                     0xfe02};
    int64_t size = dvt_dtype_size(dtype), n = dvt_shape_size(shape), i;
    char *bytes = (char *)malloc((size_t)(n * 8));
    dvt_array *x;
    for (i = 0; i < n; i++) {
        uint64_t bits = (uint64_t)(dvt_test_random(0, 1) * 4294967296.0) * 0x9e3779b97f4a7c15u;
        if (i % 3 == 0)
            bits = zeros[(size == 8 ? 0 : size == 4 ? 4 : 8) + (int)dvt_test_random(0, 4)];
        if (dtype == DVT_BOOL)
            bits &= 1;
        memcpy(bytes + i * size, &bits, (size_t)size);
    }
    x = dvt_from_host(bytes, shape, dtype, dvt_cpu());
    free(bytes);
    return x;
}

/* The order is made from keys, and elements from keys again: no bit may change. */
DVT_TEST(gpu_sort_keeps_every_bit) {
    static const int64_t sizes[][2] = {{5, 700}, {1, 5000}, {3, 2500}, {300, 2100}};
    int dtype, k, descending;
    NEEDS_GPU;
    for (dtype = 0; dtype < DVT_DTYPE_COUNT; dtype++)
        for (k = 0; k < (dtype == DVT_I8 ? 4 : 3); k++)
            for (descending = 0; descending < 2; descending++)
                DVT_SCOPE {
                    dvt_array *x =
                        random_bits(DVT_SHAPE(sizes[k][0], sizes[k][1]), (dvt_dtype)dtype);
                    int64_t bytes = dvt_nbytes(x);
                    char *got = (char *)malloc((size_t)bytes),
                         *want = (char *)malloc((size_t)bytes);
                    dvt_order order = descending ? DVT_DESCENDING : DVT_ASCENDING;
                    dvt_to_host(dvt_sort(dvt_copyto(x, dvt_gpu(0)), 1, order), got, bytes);
                    dvt_to_host(dvt_sort(x, 1, order), want, bytes);
                    dvt_test_check(memcmp(got, want, (size_t)bytes) == 0, __FILE__, __LINE__,
                                   "%s, %d rows: other bits than on cpu()",
                                   dvt_dtype_name((dvt_dtype)dtype), (int)sizes[k][0]);
                    free(got);
                    free(want);
                }
}

static void check_topk(dvt_array *x, int64_t k, int axis, const char *what) {
    dvt_array *y = dvt_copyto(x, dvt_gpu(0));
    int largest;
    for (largest = 0; largest < 2; largest++) {
        dvt_array *got_at = NULL, *at = NULL;
        dvt_array *got = dvt_topk(y, k, axis, (largest != 0) ? DVT_LARGEST : DVT_SMALLEST, &got_at);
        dvt_array *want = dvt_topk(x, k, axis, (largest != 0) ? DVT_LARGEST : DVT_SMALLEST, &at);
        same_on_gpu(got, want, 0, 0, what, __FILE__, __LINE__);
        same_on_gpu(got_at, at, 0, 0, what, __FILE__, __LINE__);
    }
}

/* In one block, in rounds (one tile, several, more than one round leaves), and by sorting. */
DVT_TEST(gpu_topk_lengths) {
    static const struct {
        int64_t rows, n, k;
    } of[] = {{3, 1, 1},       {700, 10, 3},    {3, 2048, 2048}, {2, 2049, 1},
              {3, 2049, 512},  {2, 2560, 512},  {2, 4097, 513},  {1, 20000, 10},
              {2, 20000, 300}, {1, 70000, 100}, {1, 5000, 5000}, {2, 3000, 2999}};

    int k;
    NEEDS_GPU;
    for (k = 0; k < 12; k++)
        DVT_SCOPE {
            dvt_array *x = random_on_cpu(DVT_SHAPE(of[k].rows, of[k].n), DVT_F32, -9, 9);
            check_topk(x, of[k].k, 1, "rows");
            check_topk(dvt_round(x), of[k].k, 1, "many equal");
        }
}

DVT_TEST(gpu_topk_dtypes_views_and_corners) {
    static const uint32_t bits[] = {0x7fc00001, 0x80000000, 0, 0xffc00002, 0x80000000, 0x3f800000};
    dvt_array *x, *at = NULL;
    int dtype, axis;
    NEEDS_GPU;
    for (dtype = 0; dtype < DVT_DTYPE_COUNT; dtype++) {
        if (!has_positions((dvt_dtype)dtype))
            continue;
        DVT_SCOPE {
            check_topk(random_on_cpu(DVT_SHAPE(4, 300), (dvt_dtype)dtype, -90, 90), 7, 1,
                       dvt_dtype_name((dvt_dtype)dtype));
            check_topk(random_on_cpu(DVT_SHAPE(2, 4200), (dvt_dtype)dtype, -90, 90), 40, 1,
                       dvt_dtype_name((dvt_dtype)dtype));
        }
    }
    for (axis = 0; axis < 3; axis++)
        DVT_SCOPE {
            x = random_on_cpu(DVT_SHAPE(4, 6, 24), DVT_F32, -9, 9);
            check_topk(dvt_swapaxes(x, 0, 2), 3, axis, "transposed");
            check_topk(dvt_slice(x, 2, 23, -25, -2), 4, axis, "backwards");
        }
    x = dvt_from_host(bits, DVT_SHAPE(6), DVT_F32, dvt_gpu(0));
    CHECK(dvt_topk(x, 4, 0, DVT_LARGEST, &at) != NULL);
    CHECK_VALUES(at, 0, 0, 3, 5, 1);
    CHECK(dvt_topk(x, 3, 0, DVT_SMALLEST, &at) != NULL);
    CHECK_VALUES(at, 0, 1, 2, 4);
    CHECK_INT(dvt_size(dvt_topk(x, 0, 0, DVT_LARGEST, &at)), 0);
    CHECK_ERROR(dvt_topk(x, 7, 0, DVT_LARGEST, NULL), DVT_ERR_RANGE);
}
