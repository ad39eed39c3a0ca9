/* Reductions on a GPU: every operation and dtype; sizes around the widths of vectors, blocks and
   chunks; layouts. */
#include "on_gpu.h"

typedef dvt_array *(*reduction)(dvt_array *x, dvt_axes axes);

static const struct {
    const char *name;
    reduction run;
    double low, high; /* of elements */
} reductions[] = {
    {"sum", dvt_sum, -4, 5},    {"mean", dvt_mean, -4, 5}, {"prod", dvt_prod, 0.98, 1.02},
    {"min", dvt_min, -9, 9},    {"max", dvt_max, -9, 9},   {"any", dvt_any, -0.5, 1.0001},
    {"all", dvt_all, 0.001, 2}, {"norm", dvt_norm, -4, 5}, {"logsumexp", dvt_logsumexp, -30, 30}};

#define REDUCTIONS (int)(sizeof reductions / sizeof reductions[0])

/* Returns the tolerance. Both sides sum in float64 and round once, so the last bit may differ. In
   float64 itself the order of the sum matters. */
static double ulps_for(dvt_dtype dtype) {
    return dtype == DVT_F64 ? 64 : 1;
}

static void check_reduction(int which, dvt_array *x, dvt_axes axes) {
    dvt_array *want = reductions[which].run(x, axes);
    dvt_array *got = reductions[which].run(dvt_copyto(x, dvt_gpu(0)), axes);
    same_on_gpu(got, want, ulps_for(dvt_dtype_of(want)), 1, reductions[which].name, __FILE__,
                __LINE__);
}

/* Every operation in float32, the sum of every dtype, and some other pairs. Each has a program for
   rows and one for columns, which every second operation uses. */
DVT_TEST(gpu_reduce_every_operation_and_dtype) {
    int dtype, which;
    NEEDS_GPU;
    for (dtype = 0; dtype < DVT_DTYPE_COUNT; dtype++)
        for (which = 0; which < REDUCTIONS; which++)
            if (dtype == DVT_F32 || which == 0 || EACH(dtype + which, 9))
                DVT_SCOPE {
                    dvt_array *x = random_on_cpu(DVT_SHAPE(5, 37), (dvt_dtype)dtype,
                                                 reductions[which].low, reductions[which].high);
                    check_reduction(which, x, DVT_AXES(1));
                    if (dtype == DVT_F32 ? EACH(which, 2) : EACH(dtype, 3))
                        check_reduction(which, x, DVT_KEEPDIMS(0));
                }
}

DVT_TEST(gpu_reduce_positions_of_every_dtype) {
    static const reduction run[] = {dvt_argmin, dvt_argmax};
    int dtype, k, axis;
    NEEDS_GPU;
    for (dtype = 0; dtype < DVT_DTYPE_COUNT; dtype++)
        for (k = dtype == DVT_F32 || EACH(dtype, 4) ? 0 : 2; k < 2; k++)
            DVT_SCOPE {
                dvt_array *x = random_on_cpu(DVT_SHAPE(6, 70), (dvt_dtype)dtype, 0, 20);
                dvt_array *y = dvt_copyto(x, dvt_gpu(0));
                for (axis = 0; axis < 2; axis++)
                    SAME_ON_GPU(run[k](y, DVT_AXES(axis)), run[k](x, DVT_AXES(axis)), 0,
                                "position");
                SAME_ON_GPU(run[k](y, DVT_ALL), run[k](x, DVT_ALL), 0, "flat");
                SAME_ON_GPU(run[k](dvt_t(y), DVT_ALL), run[k](dvt_t(x), DVT_ALL), 0,
                            "flat and transposed");
            }
}

/* Few to many elements for each of few to many results: every number of threads per result, and its
   limits. */
DVT_TEST(gpu_reduce_sizes) {
    static const int64_t kept[] = {1, 2, 9, 31, 33, 300},
                         sizes[] = {1, 2, 4, 5, 31, 127, 129, 1023, 4100};
    int i, k;
    NEEDS_GPU;
    for (i = 0; i < 6; i++)
        for (k = 0; k < 9; k++)
            DVT_SCOPE {
                dvt_array *x = random_on_cpu(DVT_SHAPE(kept[i], sizes[k]), DVT_F32, -1, 1);
                dvt_array *y = dvt_reshape(x, DVT_SHAPE(sizes[k], kept[i]));
                check_reduction(0, x, DVT_AXES(1));
                check_reduction(0, y, DVT_AXES(0));
                check_reduction(8, y, DVT_AXES(0));
                SAME_ON_GPU(dvt_argmax(dvt_copyto(x, dvt_gpu(0)), DVT_AXES(1)),
                            dvt_argmax(x, DVT_AXES(1)), 0, "argmax of rows");
                SAME_ON_GPU(dvt_argmin(dvt_copyto(y, dvt_gpu(0)), DVT_AXES(0)),
                            dvt_argmin(y, DVT_AXES(0)), 0, "argmin of columns");
            }
}

/* Results split into chunks, rows and columns, with a partial last chunk. The second stage runs by
   warps and by blocks. */
DVT_TEST(gpu_reduce_chunks) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_BF16, DVT_U8, DVT_I64};
    int which, k;
    NEEDS_GPU;
    for (k = 0; k < 5; k += IN_FULL ? 1 : 4)
        DVT_SCOPE {
            dvt_array *x = random_on_cpu(DVT_SHAPE(2, 70001), dtypes[k], -3, 4);
            dvt_array *y = random_on_cpu(DVT_SHAPE(5001, 21), dtypes[k], -3, 4);
            for (which = 0; which < REDUCTIONS; which++) {
                if (which == 2 || (k && which != 0 && (which != 4 || !IN_FULL)) || !EACH(which, 4))
                    continue; /* a product of so many exceeds every float */
                check_reduction(which, x, DVT_AXES(1));
                check_reduction(which, y, DVT_AXES(0));
            }
            if (k == 0 || IN_FULL)
                SAME_ON_GPU(dvt_argmax(dvt_copyto(x, dvt_gpu(0)), DVT_AXES(1)),
                            dvt_argmax(x, DVT_AXES(1)), 0, "argmax of rows");
            SAME_ON_GPU(dvt_argmin(dvt_copyto(y, dvt_gpu(0)), DVT_AXES(0)),
                        dvt_argmin(y, DVT_AXES(0)), 0, "argmin of columns");
        }
    DVT_SCOPE {
        dvt_array *x = random_on_cpu(DVT_SHAPE(700003), DVT_F32, -1, 1);
        check_reduction(0, x, DVT_ALL);
        check_reduction(7, dvt_reshape(dvt_slice(x, 0, 0, 700000, 1), DVT_SHAPE(350000, 2)),
                        DVT_AXES(0));
    }
}

static void check_view(dvt_array *x, dvt_array *y, dvt_axes axes) {
    SAME_ON_GPU(dvt_sum(y, axes), dvt_sum(x, axes), 1, "sum of a view");
    SAME_ON_GPU(dvt_max(y, axes), dvt_max(x, axes), 0, "max of a view");
    SAME_ON_GPU(dvt_argmax(y, DVT_AXES(0)), dvt_argmax(x, DVT_AXES(0)), 0, "argmax of a view");
    SAME_ON_GPU(dvt_argmin(y, DVT_AXES(-1)), dvt_argmin(x, DVT_AXES(-1)), 0, "argmin of a view");
    SAME_ON_GPU(dvt_argmin(y, DVT_ALL), dvt_argmin(x, DVT_ALL), 0, "flat argmin");
}

DVT_TEST(gpu_reduce_views) {
    dvt_array *x[2];
    int k;
    NEEDS_GPU;
    x[0] = random_on_cpu(DVT_SHAPE(6, 5, 8, 16), DVT_F32, -3, 3);
    x[1] = dvt_copyto(x[0], dvt_gpu(0));
    for (k = 0; k < 16; k++) {
        dvt_axes axes;
        int i;
        memset(&axes, 0, sizeof axes);
        for (i = 0; i < 4; i++)
            if (k >> i & 1)
                axes.axis[axes.n++] = i;
        DVT_SCOPE {
            check_view(x[0], x[1], axes);
            check_view(dvt_slice(x[0], 3, 1, 16, 1), dvt_slice(x[1], 3, 1, 16, 1), axes);
            check_view(dvt_slice(x[0], 3, 15, -17, -3), dvt_slice(x[1], 3, 15, -17, -3), axes);
            check_view(dvt_slice(x[0], 2, 4, 8, 1), dvt_slice(x[1], 2, 4, 8, 1), axes);
            check_view(dvt_swapaxes(x[0], 0, 3), dvt_swapaxes(x[1], 0, 3), axes);
            check_view(dvt_swapaxes(x[0], 1, 2), dvt_swapaxes(x[1], 1, 2), axes);
            check_view(dvt_broadcast_to(dvt_slice(x[0], 1, 2, 3, 1), DVT_SHAPE(6, 7, 8, 16)),
                       dvt_broadcast_to(dvt_slice(x[1], 1, 2, 3, 1), DVT_SHAPE(6, 7, 8, 16)), axes);
        }
    }
}

/* The same elements at another alignment give the same bits. */
DVT_TEST(gpu_reduce_alignment_does_not_show) {
    dvt_array *x;
    int k;
    NEEDS_GPU;
    x = random_on_cpu(DVT_SHAPE(3, 9000), DVT_F64, -1, 1);
    for (k = 0; k < 5; k++)
        DVT_SCOPE {
            dvt_array *part = dvt_slice(x, 1, k, 8900 + k, 1), *sum[2];
            sum[0] = dvt_sum(dvt_slice(dvt_copyto(x, dvt_gpu(0)), 1, k, 8900 + k, 1), DVT_AXES(1));
            sum[1] = dvt_sum(dvt_copyto(part, dvt_gpu(0)), DVT_AXES(1));
            SAME_ON_GPU(sum[0], dvt_copyto(sum[1], dvt_cpu()), 0, "sum at an offset");
        }
}

DVT_TEST(gpu_reduce_corners) {
    const double values[] = {1,
                             (double)NAN,
                             -(double)INFINITY,
                             (double)INFINITY,
                             -0.0,
                             0.0,
                             3,
                             3,
                             -(double)INFINITY,
                             -(double)INFINITY,
                             1,
                             2,
                             (double)INFINITY,
                             2,
                             5,
                             7};
    int which, dtype;
    NEEDS_GPU;
    for (dtype = 0; dtype <= DVT_F64; dtype++)
        for (which = 0; which < REDUCTIONS; which++)
            if (dtype == DVT_F32 || EACH(dtype + which, 3))
                DVT_SCOPE {
                    dvt_array *x =
                        dvt_as_in_dtype(dvt_from_host(values, DVT_SHAPE(8, 2), DVT_F64, dvt_cpu()),
                                        (dvt_dtype)dtype);
                    check_reduction(which, x, DVT_AXES(1));
                    if (EACH(dtype + which, 2))
                        check_reduction(which, x, DVT_AXES(0));
                    check_reduction(which, dvt_zeros(DVT_SCALAR, (dvt_dtype)dtype, dvt_cpu()),
                                    DVT_ALL);
                    if (which != 3 && which != 4)
                        check_reduction(which,
                                        dvt_zeros(DVT_SHAPE(3, 0, 2), (dvt_dtype)dtype, dvt_cpu()),
                                        DVT_AXES(1));
                    SAME_ON_GPU(dvt_argmax(dvt_copyto(x, dvt_gpu(0)), DVT_AXES(1)),
                                dvt_argmax(x, DVT_AXES(1)), 0, "argmax");
                    SAME_ON_GPU(dvt_argmin(dvt_copyto(x, dvt_gpu(0)), DVT_ALL),
                                dvt_argmin(x, DVT_ALL), 0, "argmin");
                }
}

/* Elements more than 2^31 apart need 64-bit offsets. Little of the array is ever accessed. */
DVT_TEST(gpu_reduce_64_bit_offsets) {
    const int64_t far = ((int64_t)1 << 30) + 16;
    dvt_array *huge, *x, *y = dvt_zeros(DVT_SHAPE(3, 8), DVT_I8, dvt_cpu());
    int row, column;
    NEEDS_GPU;
    huge = dvt_empty(DVT_SHAPE(3, far), DVT_I8, dvt_gpu(0));
    if (!huge) {
        dvt_clear_error();
        SKIP("less than 4 GiB on the GPU");
    }
    x = dvt_slice(huge, 1, far - 8, far, 1);
    for (row = 0; row < 3; row++)
        for (column = 0; column < 8; column++)
            DVT_SCOPE {
                double value = (row * 37 + column * 11) % 60 - 30;
                dvt_fill(dvt_slice(dvt_slice(x, 0, row, row + 1, 1), 1, column, column + 1, 1),
                         value);
                dvt_fill(dvt_slice(dvt_slice(y, 0, row, row + 1, 1), 1, column, column + 1, 1),
                         value);
            }
    check_view(y, x, DVT_AXES(0));
    check_view(y, x, DVT_AXES(1));
    check_view(y, x, DVT_ALL);
}
