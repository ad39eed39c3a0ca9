/* Cumulative sums on a GPU: rows and columns in one chunk and several, both directions, views,
   dtypes, corner cases. */
#include "on_gpu.h"

/* Both sides sum in float64, in other orders: float32 may round to the adjacent value, float64
   differs by the effect of the order. */
static void check_cumsum(dvt_array *x, int axis, const char *what) {
    dvt_array *y = dvt_copyto(x, dvt_gpu(0));
    dvt_dtype dtype = dvt_dtype_of(x);
    double ulps = dtype == DVT_F64 ? 1000 : dvt_dtype_is_float(dtype) ? 1 : 0;
    same_on_gpu(dvt_cumsum(y, axis), dvt_cumsum(x, axis), ulps, 100, what, __FILE__, __LINE__);
}

/* The gradient sums from the other end. */
static void check_backwards(dvt_array *x, int axis, const char *what) {
    dvt_array *from[2], *g[2], *y = NULL;
    int k;
    from[0] = x;
    from[1] = dvt_copyto(x, dvt_gpu(0));
    for (k = 0; k < 2; k++) {
        dvt_attach_grad(from[k], DVT_GRAD_WRITE);
        DVT_RECORD {
            y = dvt_mul(dvt_cumsum(from[k], axis), from[k]);
        }
        CHECK(dvt_backward(y) == DVT_OK);
        g[k] = dvt_grad(from[k]);
    }
    same_on_gpu(g[1], g[0], 4, 100, what, __FILE__, __LINE__);
}

DVT_TEST(gpu_cumsum_lengths) {
    static const int64_t lengths[] = {1, 3, 33, 256, 1000, 1024, 1025, 4096, 4097, 20000};
    int k;
    NEEDS_GPU;
    for (k = 0; k < 10; k++)
        DVT_SCOPE {
            dvt_array *x = random_on_cpu(DVT_SHAPE(3, lengths[k]), DVT_F32, -9, 9);
            check_cumsum(x, 1, "rows");
            check_backwards(x, 1, "rows from the end");
            check_cumsum(dvt_reshape(x, DVT_SHAPE(lengths[k], 3)), 0, "columns");
            check_backwards(dvt_reshape(x, DVT_SHAPE(lengths[k], 3)), 0, "columns from the end");
        }
    /* So many lines that none is split. */
    check_cumsum(random_on_cpu(DVT_SHAPE(1030, 5), DVT_F32, -9, 9), 1, "many rows");
    check_cumsum(random_on_cpu(DVT_SHAPE(3, 300, 60), DVT_F32, -9, 9), 1, "many columns");
    check_cumsum(random_on_cpu(DVT_SHAPE(2, 300, 8200), DVT_F16, -1, 1), 1, "columns uncut");
}

DVT_TEST(gpu_cumsum_dtypes_and_views) {
    int dtype, axis;
    NEEDS_GPU;
    for (dtype = 0; dtype < DVT_DTYPE_COUNT; dtype++)
        DVT_SCOPE {
            dvt_array *x = random_on_cpu(DVT_SHAPE(4, 6, 24), (dvt_dtype)dtype, -9, 9);
            check_cumsum(x, 2, dvt_dtype_name((dvt_dtype)dtype));
            if (EACH(dtype, 3))
                check_cumsum(x, 1, dvt_dtype_name((dvt_dtype)dtype));
        }
    for (axis = 0; axis < 3; axis++)
        DVT_SCOPE {
            dvt_array *x = random_on_cpu(DVT_SHAPE(4, 6, 24), DVT_F32, -9, 9);
            check_cumsum(dvt_swapaxes(x, 0, 2), axis, "transposed");
            check_cumsum(dvt_slice(x, 2, 23, -25, -2), axis, "backwards");
        }
}

DVT_TEST(gpu_cumsum_corners) {
    dvt_array *x;
    NEEDS_GPU;
    x = dvt_copyto(DVT_ARRAY(float, DVT_SHAPE(6), dvt_cpu(), -0.f, -0.f, 1, INFINITY, -INFINITY, 2),
                   dvt_gpu(0));
    CHECK_VALUES(dvt_cumsum(x, 0), 0, 0, 0, 1, INFINITY, NAN, NAN);
    CHECK(signbit(dvt_item(dvt_index(dvt_cumsum(x, 0), 1))));
    CHECK_INT(dvt_size(dvt_cumsum(dvt_zeros(DVT_SHAPE(0, 3), DVT_F32, dvt_gpu(0)), 1)), 0);
    CHECK_ERROR(dvt_cumsum(x, 1), DVT_ERR_AXIS);
}
