/* Indexing on a GPU: copies of every width, negative and out-of-range indices, sums in index
   order. */
#include "on_gpu.h"

/* Returns integers of [low, high) on cpu(), int64. */
static dvt_array *indices(dvt_shape shape, int64_t low, int64_t high) {
    return random_on_cpu(shape, DVT_I64, (double)low, (double)high);
}

/* Rows of 1 to 48 bytes, for every copy width. */
DVT_TEST(gpu_take_every_dtype) {
    int dtype, width, axis;
    NEEDS_GPU;
    for (dtype = 0; dtype < DVT_DTYPE_COUNT; dtype++)
        for (width = 1; width <= 6; width++)
            DVT_SCOPE {
                dvt_array *x = random_on_cpu(DVT_SHAPE(4, 7, width), (dvt_dtype)dtype, 0, 100);
                for (axis = 0; axis < 3; axis++) {
                    int64_t n = dvt_shape_of(x).dim[axis];
                    dvt_array *at = indices(DVT_SHAPE(3, 5), -n, n);
                    SAME_ON_GPU(
                        dvt_take(dvt_copyto(x, dvt_gpu(0)), dvt_copyto(at, dvt_gpu(0)), axis),
                        dvt_take(x, at, axis), 0, dvt_dtype_name((dvt_dtype)dtype));
                }
            }
}

/* A GPU does not check indices: it clamps them to the valid range. */
DVT_TEST(gpu_take_out_of_range) {
    const double at[] = {-9, -5, -4, -1, 0, 3, 4, 100}, nearest[] = {0, 0, 0, 3, 0, 3, 3, 3};
    dvt_array *x, *where;
    NEEDS_GPU;
    x = dvt_arange(0, 4, 1, DVT_F32, dvt_gpu(0));
    where = dvt_as_in_dtype(dvt_from_host(at, DVT_SHAPE(8), DVT_F64, dvt_cpu()), DVT_I64);
    where = dvt_copyto(where, dvt_gpu(0));
    dvt_test_equal(dvt_copyto(dvt_take(x, where, 0), dvt_cpu()), nearest, 8, 0, __FILE__, __LINE__);
    dvt_test_equal(dvt_copyto(dvt_take_along_axis(x, where, 0), dvt_cpu()), nearest, 8, 0, __FILE__,
                   __LINE__);
}

DVT_TEST(gpu_take_along_axis_views) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_BF16, DVT_U8};
    int k, axis;
    NEEDS_GPU;
    for (k = 0; k < 4; k++)
        for (axis = 0; axis < 3; axis++)
            DVT_SCOPE {
                dvt_shape shape = DVT_SHAPE(5, 4, 6);
                dvt_array *x = random_on_cpu(shape, dtypes[k], 0, 100), *at, *y, *there;
                int64_t n = shape.dim[axis];
                shape.dim[axis] = 9;
                at = indices(shape, -n, n);
                y = dvt_copyto(x, dvt_gpu(0));
                there = dvt_copyto(at, dvt_gpu(0));
                SAME_ON_GPU(dvt_take_along_axis(y, there, axis), dvt_take_along_axis(x, at, axis),
                            0, "along an axis");
                shape.dim[axis] = n;
                SAME_ON_GPU(dvt_take_along_axis(dvt_slice(y, 0, 4, -6, -1), there, axis),
                            dvt_take_along_axis(dvt_slice(x, 0, 4, -6, -1), at, axis), 0,
                            "backwards");
                if (axis != 1)
                    continue;
                SAME_ON_GPU(
                    dvt_take_along_axis(dvt_broadcast_to(dvt_slice(y, 1, 1, 2, 1), shape), there,
                                        1),
                    dvt_take_along_axis(dvt_broadcast_to(dvt_slice(x, 1, 1, 2, 1), shape), at, 1),
                    0, "broadcast");
            }
}

DVT_TEST(gpu_one_hot_of_every_dtype) {
    int dtype;
    NEEDS_GPU;
    for (dtype = 0; dtype < DVT_DTYPE_COUNT; dtype++)
        DVT_SCOPE {
            dvt_array *at = indices(DVT_SHAPE(7, 5), -3, 14);
            SAME_ON_GPU(dvt_one_hot(dvt_copyto(at, dvt_gpu(0)), 11, (dvt_dtype)dtype),
                        dvt_one_hot(at, 11, (dvt_dtype)dtype), 0, dvt_dtype_name((dvt_dtype)dtype));
        }
}

typedef dvt_array *(*taker)(dvt_array *x, dvt_array *at, int axis);

/* Checks the gradient of take: the same bits on both, since both add in index order. */
static void check_adding(taker take, dvt_array *x, dvt_array *at, int axis, const char *what) {
    dvt_array *side[2], *where[2], *head = NULL, *y;
    int k;
    side[0] = dvt_copy(x);
    where[0] = at;
    side[1] = dvt_copyto(x, dvt_gpu(0));
    where[1] = dvt_copyto(at, dvt_gpu(0));
    for (k = 0; k < 2; k++) {
        CHECK_INT(dvt_attach_grad(side[k], DVT_GRAD_WRITE), DVT_OK);
        DVT_RECORD {
            y = take(side[k], where[k], axis);
        }
        head = k ? dvt_copyto(head, dvt_gpu(0))
                 : random_on_cpu(dvt_shape_of(y), dvt_dtype_of(x), -2, 2);
        CHECK_INT(dvt_backward_from(&y, &head, 1, DVT_FREE_GRAPH), DVT_OK);
        if (!k)
            continue;
        same_on_gpu(dvt_grad(side[1]), dvt_grad(side[0]), 0, 0, what, __FILE__, __LINE__);
    }
}

DVT_TEST(gpu_take_add_in_order) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16};
    int k;
    NEEDS_GPU;
    for (k = 0; k < 4; k++)
        DVT_SCOPE {
            check_adding(dvt_take, random_on_cpu(DVT_SHAPE(9, 5), dtypes[k], 0, 1),
                         indices(DVT_SHAPE(40), -9, 9), 0, "rows, often the same");
            check_adding(dvt_take, random_on_cpu(DVT_SHAPE(3, 6, 4), dtypes[k], 0, 1),
                         indices(DVT_SHAPE(4, 9), -6, 6), 1, "a middle axis");
        }
    /* A large table, more than one tile of positions, keys of more than one digit; all indices
       equal. */
    check_adding(dvt_take, random_on_cpu(DVT_SHAPE(3000, 3), DVT_F32, 0, 1),
                 indices(DVT_SHAPE(2500), 0, 3000), 0, "a vocabulary");
    check_adding(dvt_take, random_on_cpu(DVT_SHAPE(70000), DVT_F32, 0, 1),
                 indices(DVT_SHAPE(1500), 0, 70000), 0, "a large vocabulary");
    check_adding(dvt_take, random_on_cpu(DVT_SHAPE(4, 8), DVT_F32, 0, 1),
                 dvt_full(DVT_SHAPE(1031), 2, DVT_I64, dvt_cpu()), 0, "one word");
}

DVT_TEST(gpu_take_along_add_in_order) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16};
    int k, axis;
    NEEDS_GPU;
    for (k = 0; k < 4; k++)
        for (axis = 0; axis < 3; axis++)
            DVT_SCOPE {
                dvt_shape shape = DVT_SHAPE(4, 5, 3);
                dvt_array *x = random_on_cpu(shape, dtypes[k], 0, 1);
                int64_t n = shape.dim[axis];
                shape.dim[axis] = 11;
                check_adding(dvt_take_along_axis, x, indices(shape, -n, n), axis, "short lines");
                shape.dim[axis] = 50;
                check_adding(dvt_take_along_axis, x, indices(shape, -n, n), axis, "sorted lines");
                shape.dim[axis] = 1;
                check_adding(dvt_take_along_axis, x, indices(shape, -n, n), axis,
                             "one of each line");
            }
}
