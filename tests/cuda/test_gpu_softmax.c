/* Softmax on a GPU: rows of every length class, contiguous and strided, views, dtypes, corner
   cases. */
#include "on_gpu.h"

/* float32 differs from the rounded float64 of cpu() by a few ulp; a logarithm near 0 by a few 1e-6.
   In float64 the order of the sum matters, and the rounding of what cpu() subtracts. */
enum { PLAIN = 1, LOGARITHM = 2, BOTH = 3 };

static void check_some(int which, dvt_array *x, dvt_array *y, int axis, const char *what) {
    dvt_dtype dtype = dvt_dtype_of(x);
    double ulps = dtype == DVT_F16 || dtype == DVT_BF16 ? 1 : dtype == DVT_F64 ? 64 : 5;
    if (which & PLAIN)
        same_on_gpu(dvt_softmax(y, axis), dvt_softmax(x, axis), ulps, 1e-30, what, __FILE__,
                    __LINE__);
    if (which & LOGARITHM)
        same_on_gpu(dvt_log_softmax(y, axis), dvt_log_softmax(x, axis), ulps,
                    dtype == DVT_F64 ? 1 : 1e-3, what, __FILE__, __LINE__);
}

static void check_softmax(dvt_array *x, dvt_array *y, int axis, const char *what) {
    check_some(BOTH, x, y, axis, what);
}

static void check_copied(dvt_array *x, int axis, const char *what) {
    check_softmax(x, dvt_copyto(x, dvt_gpu(0)), axis, what);
}

/* Checks softmax or its logarithm, and both in full: each is a program. */
static void check_one(int which, dvt_array *x, int axis, const char *what) {
    check_some(IN_FULL ? BOTH : which, x, dvt_copyto(x, dvt_gpu(0)), axis, what);
}

DVT_TEST(gpu_softmax_lengths) {
    static const int64_t lengths[] = {1,   2,   3,    8,    10,   33,   255,
                                      256, 257, 1000, 1024, 1025, 8192, 9000};
    int k;
    NEEDS_GPU;
    for (k = 0; k < 14; k++)
        DVT_SCOPE {
            dvt_array *x = random_on_cpu(DVT_SHAPE(5, lengths[k]), DVT_F32, -20, 20);
            int some = lengths[k] <= 64 ? BOTH : 0; /* the shortest elements per thread */
            check_one(some | PLAIN, x, 1, "rows");
            check_one(some | LOGARITHM, dvt_reshape(x, DVT_SHAPE(lengths[k], 5)), 0, "columns");
        }
}

/* More rows than fill the last block, in both layouts; rows in parts, of one tile or several, and
   the same rows with so many others that a block computes each whole. */
DVT_TEST(gpu_softmax_many_and_long) {
    NEEDS_GPU;
    check_copied(random_on_cpu(DVT_SHAPE(333, 10), DVT_F32, -5, 5), 1, "many short rows");
    check_copied(random_on_cpu(DVT_SHAPE(3, 21, 77), DVT_F32, -5, 5), 1, "channels");
    check_one(LOGARITHM, random_on_cpu(DVT_SHAPE(3, 150, 20), DVT_F32, -5, 5), 1, "more channels");
    check_copied(random_on_cpu(DVT_SHAPE(2, 20480), DVT_F32, -90, 10), 1, "a long row");
    check_copied(random_on_cpu(DVT_SHAPE(2, 20483), DVT_F32, -90, 10), 1,
                 "a long row, not aligned");
    check_one(LOGARITHM, random_on_cpu(DVT_SHAPE(400, 40), DVT_F32, -9, 9), 0, "long columns");
    check_copied(random_on_cpu(DVT_SHAPE(1, 140000), DVT_F32, -90, 10), 1, "parts of two tiles");
    check_one(LOGARITHM, random_on_cpu(DVT_SHAPE(70, 16500), DVT_BF16, -9, 9), 1, "a few parts");
    check_one(LOGARITHM, random_on_cpu(DVT_SHAPE(2100, 3, 2), DVT_F32, -9, 9), 0,
              "columns in parts");
}

/* So many rows that a block computes each alone. */
DVT_TEST(gpu_softmax_long_rows_fill_the_gpu) {
    const int64_t n = 16388, rows = 512;
    dvt_array *x, *y, *want;
    NEEDS_GPU;
    x = random_on_cpu(DVT_SHAPE(1, n), DVT_F32, -90, 10);
    y = dvt_softmax(dvt_broadcast_to(dvt_copyto(x, dvt_gpu(0)), DVT_SHAPE(rows, n)), 1);
    want = dvt_softmax(x, 1);
    same_on_gpu(dvt_slice(y, 0, 0, 1, 1), want, 5, 1e-30, "the first", __FILE__, __LINE__);
    same_on_gpu(dvt_slice(y, 0, rows - 1, rows, 1), want, 5, 1e-30, "the last", __FILE__, __LINE__);
}

DVT_TEST(gpu_softmax_dtypes) {
    int dtype;
    NEEDS_GPU;
    for (dtype = 0; dtype < DVT_DTYPE_COUNT; dtype++)
        DVT_SCOPE {
            const int odd = dtype % 2;
            check_one(odd ? PLAIN : LOGARITHM,
                      random_on_cpu(DVT_SHAPE(6, 48), (dvt_dtype)dtype, -8, 9), 1,
                      dvt_dtype_name((dvt_dtype)dtype));
            check_one(odd ? LOGARITHM : PLAIN,
                      random_on_cpu(DVT_SHAPE(7, 33), (dvt_dtype)dtype, -8, 9), 0,
                      dvt_dtype_name((dvt_dtype)dtype));
        }
    check_one(LOGARITHM, random_on_cpu(DVT_SHAPE(2, 9000), DVT_F64, -8, 9), 1,
              "long rows of float64");
    check_one(PLAIN, random_on_cpu(DVT_SHAPE(2, 2048), DVT_BF16, -8, 9), 1, "rows of bfloat16");
}

DVT_TEST(gpu_softmax_views) {
    dvt_array *x[2], *v[2];
    int k, axis;
    NEEDS_GPU;
    x[0] = random_on_cpu(DVT_SHAPE(4, 6, 24), DVT_F32, -6, 6);
    x[1] = dvt_copyto(x[0], dvt_gpu(0));
    for (axis = 0; axis < 3; axis++)
        DVT_SCOPE {
            check_softmax(x[0], x[1], axis, "whole");
            for (k = 0; k < 2; k++)
                v[k] = dvt_slice(x[k], 2, 1, 24, 1);
            check_softmax(v[0], v[1], axis, "off by one element");
            for (k = 0; k < 2; k++)
                v[k] = dvt_slice(x[k], 2, 23, -25, -2);
            check_softmax(v[0], v[1], axis, "backwards");
            for (k = 0; k < 2; k++)
                v[k] = dvt_swapaxes(x[k], 0, 2);
            check_softmax(v[0], v[1], axis, "transposed");
            for (k = 0; k < 2; k++)
                v[k] = dvt_broadcast_to(dvt_slice(x[k], 1, 2, 3, 1), DVT_SHAPE(4, 5, 24));
            check_softmax(v[0], v[1], axis, "broadcast");
        }
}

DVT_TEST(gpu_softmax_corners) {
    const double low = -(double)INFINITY, high = (double)INFINITY, bad = (double)NAN;
    double values[6][4] = {{low, low, low, low}, {low, 1, low, 2}, {high, 1, 2, 3},
                           {high, high, 0, 0},   {1, bad, 2, 3},   {-3e38, 3e38, 0, 1}};
    dvt_array *x = dvt_from_host(values, DVT_SHAPE(6, 4), DVT_F64, dvt_cpu()), *y;
    int dtype, k;
    NEEDS_GPU;
    for (dtype = 0; dtype < 2; dtype++)
        DVT_SCOPE {
            y = dvt_as_in_dtype(x, (dvt_dtype)dtype);
            check_one(dtype == DVT_F64 ? PLAIN : BOTH, y, 1, "corners in rows");
            check_one(dtype == DVT_F64 ? LOGARITHM : BOTH, y, 0, "corners in columns");
        }
    /* Long rows, whose first tiles may be all minus infinity. */
    for (k = 0; k < 6; k++)
        DVT_SCOPE {
            y = dvt_full(DVT_SHAPE(1, 16700), k < 3 ? low : 0, DVT_F32, dvt_cpu());
            dvt_fill(dvt_slice(y, 1, 16500, 16501, 1), k % 3 == 0 ? 1 : k % 3 == 1 ? high : bad);
            check_copied(y, 1, "corners in long rows");
        }
    check_copied(dvt_full(DVT_SHAPE(1, 16700), low, DVT_F32, dvt_cpu()), 1, "nothing");
    check_copied(dvt_full(DVT_SHAPE(1), 3, DVT_F32, dvt_cpu()), 0, "one");
}
