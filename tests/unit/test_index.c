/* Tests of joining, splitting and indexing against plain loops over the elements, and of edge
   cases. */
#include "dvt_test.h"

static const dvt_dtype all_dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16, DVT_I8,
                                       DVT_U8,  DVT_I32, DVT_I64, DVT_BOOL};

/* Returns values that differ as far as the dtype allows. */
static dvt_array *numbered(dvt_shape shape, dvt_dtype dtype) {
    dvt_array *x = dvt_arange(0, (double)dvt_shape_size(shape), 1, DVT_I32, dvt_cpu());
    return dvt_reshape(dvt_as_in_dtype(x, dtype), shape);
}

static dvt_array *indices(const int32_t *values, dvt_shape shape) {
    return dvt_from_host(values, shape, DVT_I32, dvt_cpu());
}

static void unravel(int64_t position, dvt_shape shape, int64_t *index) {
    int i;
    for (i = shape.ndim - 1; i >= 0; i--) {
        index[i] = position % shape.dim[i];
        position /= shape.dim[i];
    }
}

/* Returns the element of C-order values at an index; axes of extent 1 repeat. */
static double pick(const double *values, dvt_shape shape, const int64_t *index) {
    int64_t at = 0;
    int i;
    for (i = 0; i < shape.ndim; i++)
        at = at * shape.dim[i] + (shape.dim[i] == 1 ? 0 : index[i]);
    return values[at];
}

/* ---- concat, stack, split ---- */
static void check_concat(dvt_array *a, dvt_array *b, int axis) {
    dvt_array *in[3], *y;
    dvt_shape shape;
    double *p = dvt_test_values(a), *q = dvt_test_values(b), *got;
    int64_t na, nb, i, index[DVT_MAX_DIMS];
    int at = axis < 0 ? axis + dvt_ndim(a) : axis;
    in[0] = a;
    in[1] = b;
    in[2] = a;
    y = dvt_concat(in, 3, axis);
    if (!CHECK(y != NULL))
        return;
    got = dvt_test_values(y);
    shape = dvt_shape_of(y);
    na = dvt_dim(a, axis);
    nb = dvt_dim(b, axis);
    CHECK_INT(shape.dim[at], 2 * na + nb);
    CHECK_INT(dvt_dtype_of(y), dvt_promote(dvt_dtype_of(a), dvt_dtype_of(b)));
    for (i = 0; i < dvt_size(y); i++) {
        bool second;
        unravel(i, shape, index);
        second = index[at] >= na && index[at] < na + nb;
        index[at] -= second ? na : index[at] >= na ? na + nb : 0;
        CHECK_CLOSE(got[i],
                    second ? pick(q, dvt_shape_of(b), index) : pick(p, dvt_shape_of(a), index), 0);
    }
    free(p);
    free(q);
    free(got);
}

DVT_TEST(concat_values) {
    for (int d = 0; d < 9; d++)
        DVT_SCOPE {
            dvt_array *x = numbered(DVT_SHAPE(3, 4, 5), all_dtypes[d]);
            check_concat(x, x, 1);
            check_concat(x, dvt_slice(x, 0, -1, DVT_END, -2), 0);
            check_concat(dvt_transpose(x, DVT_AXES(2, 1, 0)),
                         dvt_slice(dvt_transpose(x, DVT_AXES(2, 1, 0)), 2, 1, 2, 1), -1);
            check_concat(x, dvt_slice(x, 1, 2, 2, 1), 1); /* with an empty one */
            check_concat(x, dvt_broadcast_to(dvt_slice(x, 2, 0, 1, 1), DVT_SHAPE(3, 4, 2)), 2);
            check_concat(x, numbered(DVT_SHAPE(3, 1, 5), DVT_F32), 1);
        }
}

DVT_TEST(concat_and_stack_errors) {
    dvt_array *a = dvt_zeros(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu()), *in[2];
    in[0] = a;
    in[1] = dvt_zeros(DVT_SHAPE(2, 4), DVT_F32, dvt_cpu());
    CHECK(dvt_concat(in, 2, 1) != NULL);
    CHECK_ERROR(dvt_concat(in, 2, 0), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_stack(in, 2, 0), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_concat(in, 0, 0), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_stack(in, -1, 0), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_concat(NULL, 2, 0), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_concat(in, 1, 2), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_stack(in, 1, 3), DVT_ERR_AXIS);
    in[1] = dvt_scalar(1, DVT_F32, dvt_cpu());
    CHECK_ERROR(dvt_concat(in, 2, 0), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_concat(in + 1, 1, 0), DVT_ERR_AXIS);
    in[1] = NULL;
    CHECK_ERROR(dvt_concat(in, 2, 0), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_stack(in, 2, 0), DVT_ERR_NULL_ARGUMENT);
    dvt_set_virtual_gpus(1, 0);
    DVT_SCOPE {
        in[1] = dvt_copyto(a, dvt_gpu(0));
        CHECK_ERROR(dvt_concat(in, 2, 0), DVT_ERR_CONTEXT);
    }
    dvt_set_virtual_gpus(0, 0);
}

DVT_TEST(stack_values) {
    dvt_array *a = numbered(DVT_SHAPE(2, 3), DVT_I32), *in[3];
    in[0] = a;
    in[1] = dvt_neg(a);
    in[2] = dvt_add_scalar(dvt_as_in_dtype(a, DVT_F32), 0.5);
    CHECK_VALUES(dvt_stack(in, 2, 0), 0, 0, 1, 2, 3, 4, 5, 0, -1, -2, -3, -4, -5);
    CHECK_VALUES(dvt_stack(in, 2, 1), 0, 0, 1, 2, 0, -1, -2, 3, 4, 5, -3, -4, -5);
    CHECK_VALUES(dvt_stack(in, 3, -1), 0, 0, 0, 0.5, 1, -1, 1.5, 2, -2, 2.5, 3, -3, 3.5, 4, -4, 4.5,
                 5, -5, 5.5);
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_stack(in, 3, -1)), DVT_SHAPE(2, 3, 3)));
    in[0] = dvt_scalar(1, DVT_F32, dvt_cpu());
    in[1] = dvt_scalar(2, DVT_F32, dvt_cpu());
    CHECK_VALUES(dvt_stack(in, 2, 0), 0, 1, 2);
}

DVT_TEST(split_values) {
    dvt_array *x = numbered(DVT_SHAPE(2, 5), DVT_F32), *part[6];
    CHECK_INT(dvt_array_split(x, 2, -1, part), DVT_OK);
    CHECK_VALUES(part[0], 0, 0, 1, 2, 5, 6, 7);
    CHECK_VALUES(part[1], 0, 3, 4, 8, 9);
    CHECK(dvt_shares_memory(x, part[1]));
    CHECK_INT(dvt_split(x, 5, 1, part), DVT_OK);
    CHECK_VALUES(part[4], 0, 4, 9);
    CHECK_INT(dvt_array_split(x, 6, 1, part), DVT_OK);
    CHECK_INT(dvt_size(part[4]), 2);
    CHECK_INT(dvt_size(part[5]), 0);
    CHECK_ERROR(dvt_split(x, 2, 1, part), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_array_split(x, 0, 1, part), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_array_split(x, 2, 2, part), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_array_split(NULL, 2, 0, part), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_array_split(x, 2, 0, NULL), DVT_ERR_NULL_ARGUMENT);
}

/* ---- take ---- */
static void check_take(dvt_array *x, dvt_array *index, int axis) {
    dvt_array *y = dvt_take(x, index, axis);
    dvt_shape shape, of = dvt_shape_of(index), from = dvt_shape_of(x);
    double *values, *at, *got;
    int64_t i, to[DVT_MAX_DIMS], source[DVT_MAX_DIMS];
    int k, a = axis < 0 ? axis + from.ndim : axis;
    if (!dvt_test_check(y != NULL, __FILE__, __LINE__, "dvt_take: %s", dvt_error()))
        return;
    shape = dvt_shape_of(y);
    CHECK_INT(shape.ndim, from.ndim - 1 + of.ndim);
    CHECK_INT(dvt_dtype_of(y), dvt_dtype_of(x));
    values = dvt_test_values(x);
    at = dvt_test_values(index);
    got = dvt_test_values(y);
    for (i = 0; i < dvt_size(y); i++) {
        double number;
        unravel(i, shape, to);
        number = pick(at, of, to + a);
        for (k = 0; k < from.ndim; k++)
            source[k] = k < a   ? to[k]
                        : k > a ? to[k - 1 + of.ndim]
                                : (int64_t)number + (number < 0 ? from.dim[a] : 0);
        CHECK_CLOSE(got[i], pick(values, from, source), 0);
    }
    free(values);
    free(at);
    free(got);
}

DVT_TEST(take_values) {
    static const int32_t some[] = {2, -1, 0, 2, 1, -3};
    for (int d = 0; d < 9; d++)
        DVT_SCOPE {
            dvt_array *x = numbered(DVT_SHAPE(3, 4, 5), all_dtypes[d]);
            dvt_array *index = indices(some, DVT_SHAPE(2, 3));
            check_take(x, index, 0);
            check_take(x, dvt_t(index), 1);
            check_take(x, dvt_as_in_dtype(dvt_slice(index, 1, 0, DVT_END, 2), DVT_I8), -1);
            check_take(dvt_transpose(x, DVT_AXES(1, 2, 0)), index, 2);
            check_take(x, dvt_index(dvt_index(index, 0), 0), 1); /* a scalar: the axis is removed */
            check_take(x, dvt_slice(index, 0, 0, 0, 1), 0);
        }
    CHECK_VALUES(dvt_take(numbered(DVT_SHAPE(5), DVT_F32), indices(some, DVT_SHAPE(3)), 0), 0, 2, 4,
                 0);
    check_take(numbered(DVT_SHAPE(6, 3000), DVT_F32), indices(some, DVT_SHAPE(6)), 0);
    check_take(numbered(DVT_SHAPE(3000, 6), DVT_F64), indices(some, DVT_SHAPE(6)), 1);
}

DVT_TEST(take_errors) {
    static const int32_t bad[] = {0, 5}, low[] = {-6};
    dvt_array *x = numbered(DVT_SHAPE(5, 2), DVT_F32), *g;
    CHECK_ERROR(dvt_take(x, indices(bad, DVT_SHAPE(2)), 0), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_take(x, indices(low, DVT_SHAPE(1)), 0), DVT_ERR_RANGE);
    CHECK(dvt_take(x, indices(bad, DVT_SHAPE(2)), 0) == NULL);
    CHECK(strstr(dvt_error(), "dvt_take: index 5") && strstr(dvt_error(), "-5 to 4"));
    dvt_clear_error();
    CHECK_ERROR(dvt_take(x, dvt_zeros(DVT_SHAPE(2), DVT_F32, dvt_cpu()), 0), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_take(x, dvt_zeros(DVT_SHAPE(2), DVT_BOOL, dvt_cpu()), 0), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_take(x, indices(bad, DVT_SHAPE(2)), 2), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_take(NULL, indices(bad, DVT_SHAPE(2)), 0), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_take(x, NULL, 0), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_take(x, dvt_zeros(DVT_SHAPE(1, 1, 1, 1, 1, 1, 1, 1), DVT_I32, dvt_cpu()), 0),
                DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_take(dvt_slice(x, 0, 0, 0, 1), indices(bad, DVT_SHAPE(1)), 0), DVT_ERR_RANGE);
    CHECK_INT(dvt_size(dvt_take(dvt_slice(x, 0, 0, 0, 1), indices(bad, DVT_SHAPE(0)), 0)), 0);
    /* A GPU does not check indices: those out of range become the nearest end. */
    dvt_set_virtual_gpus(1, 0);
    DVT_SCOPE {
        g = dvt_copyto(x, dvt_gpu(0));
        CHECK_VALUES(dvt_take(g, dvt_copyto(indices(bad, DVT_SHAPE(2)), dvt_gpu(0)), 0), 0, 0, 1, 8,
                     9);
        CHECK_VALUES(dvt_take(g, dvt_copyto(indices(low, DVT_SHAPE(1)), dvt_gpu(0)), 0), 0, 0, 1);
        CHECK_ERROR(dvt_take(g, indices(bad, DVT_SHAPE(2)), 0), DVT_ERR_CONTEXT);
        CHECK_ERROR(dvt_take(dvt_slice(g, 0, 0, 0, 1),
                             dvt_copyto(indices(bad, DVT_SHAPE(1)), dvt_gpu(0)), 0),
                    DVT_ERR_RANGE);
    }
    dvt_set_virtual_gpus(0, 0);
}

/* ---- one element per position ---- */
static void check_along(dvt_array *x, dvt_array *index, int axis) {
    dvt_array *y = dvt_take_along_axis(x, index, axis);
    dvt_shape shape, of = dvt_shape_of(index), from = dvt_shape_of(x);
    double *values, *at, *got;
    int64_t i, to[DVT_MAX_DIMS];
    int a = axis < 0 ? axis + from.ndim : axis;
    if (!dvt_test_check(y != NULL, __FILE__, __LINE__, "dvt_take_along_axis: %s", dvt_error()))
        return;
    shape = dvt_shape_of(y);
    values = dvt_test_values(x);
    at = dvt_test_values(index);
    got = dvt_test_values(y);
    CHECK_INT(shape.dim[a], of.dim[a]);
    for (i = 0; i < dvt_size(y); i++) {
        double number;
        unravel(i, shape, to);
        number = pick(at, of, to);
        to[a] = (int64_t)number + (number < 0 ? from.dim[a] : 0);
        CHECK_CLOSE(got[i], pick(values, from, to), 0);
    }
    free(values);
    free(at);
    free(got);
}

DVT_TEST(take_along_axis_values) {
    int32_t some[60];
    for (int i = 0; i < 60; i++)
        some[i] = (int32_t)floor(dvt_test_random(-3, 3));
    for (int d = 0; d < 9; d++)
        DVT_SCOPE {
            dvt_array *x = numbered(DVT_SHAPE(3, 4, 5), all_dtypes[d]);
            dvt_array *index = indices(some, DVT_SHAPE(3, 4, 5));
            for (int axis = -3; axis < 3; axis++)
                check_along(x, index, axis);
            check_along(x, dvt_slice(index, 2, 1, 3, 1), 2);
            check_along(x, dvt_slice(index, 0, 0, 1, 1), 1); /* broadcast along axis 0 */
            check_along(dvt_slice(x, 2, 0, 1, 1), dvt_slice(index, 1, 3, DVT_END, -1),
                        1); /* x is broadcast */
            check_along(dvt_transpose(x, DVT_AXES(2, 0, 1)),
                        dvt_transpose(index, DVT_AXES(2, 0, 1)), 1);
            check_along(x, dvt_slice(index, 2, 0, 0, 1), 2);
        }
    check_along(numbered(DVT_SHAPE(3, 900), DVT_F32),
                dvt_broadcast_to(indices(some, DVT_SHAPE(60, 1)), DVT_SHAPE(60, 900)), 0);
}

DVT_TEST(take_along_axis_of_argmax) {
    dvt_array *x = DVT_ARRAY(float, DVT_SHAPE(2, 3), dvt_cpu(), 1, 5, 3, 9, 7, 8);
    CHECK_VALUES(dvt_take_along_axis(x, dvt_argmax(x, DVT_KEEPDIMS(1)), 1), 0, 5, 9);
    CHECK_VALUES(dvt_take_along_axis(x, dvt_argmin(x, DVT_KEEPDIMS(0)), 0), 0, 1, 5, 3);
}

DVT_TEST(take_along_axis_errors) {
    static const int32_t zero[6] = {0}, bad[] = {3, 0};
    dvt_array *x = numbered(DVT_SHAPE(2, 3), DVT_F32);
    CHECK_ERROR(dvt_take_along_axis(x, indices(zero, DVT_SHAPE(2)), 1), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_take_along_axis(x, indices(zero, DVT_SHAPE(3, 1)), 1), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_take_along_axis(x, indices(zero, DVT_SHAPE(2, 1)), 2), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_take_along_axis(x, indices(bad, DVT_SHAPE(2, 1)), 1), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_take_along_axis(x, dvt_zeros(DVT_SHAPE(2, 1), DVT_F32, dvt_cpu()), 1),
                DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_take_along_axis(NULL, indices(zero, DVT_SHAPE(2, 1)), 1),
                DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_take_along_axis(dvt_slice(x, 1, 0, 0, 1), indices(zero, DVT_SHAPE(2, 1)), 1),
                DVT_ERR_RANGE);
}

/* An index out of range is an error on cpu() and the nearest index on gpu(i), as documented;
   one_hot gives zeros on both. */
DVT_TEST(indices_out_of_range_on_a_gpu) {
    static const int32_t beyond[] = {9, -9}, rows[] = {1, -1};
    dvt_array *x = numbered(DVT_SHAPE(2, 3), DVT_F32), *g, *far;
    CHECK_ERROR(dvt_pick(x, indices(beyond, DVT_SHAPE(2)), DVT_AXES(1)), DVT_ERR_RANGE);
    CHECK_VALUES(dvt_one_hot(indices(beyond, DVT_SHAPE(2)), 2, DVT_F32), 0, 0, 0, 0, 0);
    dvt_set_virtual_gpus(1, 0);
    DVT_SCOPE {
        g = dvt_copyto(x, dvt_gpu(0));
        far = dvt_copyto(indices(beyond, DVT_SHAPE(2)), dvt_gpu(0));
        CHECK_VALUES(dvt_take(g, far, 1), 0, 2, 0, 5, 3);
        CHECK_VALUES(dvt_take_along_axis(g, dvt_reshape(far, DVT_SHAPE(2, 1)), 1), 0, 2, 3);
        CHECK_VALUES(dvt_pick(g, far, DVT_AXES(1)), 0, 2, 3);
        CHECK_VALUES(dvt_pick(g, dvt_copyto(indices(rows, DVT_SHAPE(2)), dvt_gpu(0)), DVT_AXES(1)),
                     0, 1, 5);
        CHECK_VALUES(dvt_one_hot(far, 2, DVT_F32), 0, 0, 0, 0, 0);
        CHECK_INT(dvt_wait_all(), DVT_OK);
    }
    dvt_set_virtual_gpus(0, 0);
}

DVT_TEST(pick_values) {
    static const int32_t some[] = {2, 0, -1};
    dvt_array *x = numbered(DVT_SHAPE(2, 3), DVT_F32), *y;
    CHECK_VALUES(dvt_pick(x, indices(some, DVT_SHAPE(2)), DVT_AXES(1)), 0, 2, 3);
    CHECK_INT(dvt_ndim(dvt_pick(x, indices(some, DVT_SHAPE(2)), DVT_AXES(1))), 1);
    y = dvt_pick(x, indices(some, DVT_SHAPE(2, 1)), DVT_KEEPDIMS(-1));
    CHECK_VALUES(y, 0, 2, 3);
    CHECK(dvt_shape_equal(dvt_shape_of(y), DVT_SHAPE(2, 1)));
    CHECK_VALUES(dvt_pick(x, dvt_clip(indices(some, DVT_SHAPE(3)), -1, 1), DVT_AXES(0)), 0, 3, 1,
                 5);
    CHECK_ERROR(dvt_pick(x, indices(some, DVT_SHAPE(3)), DVT_AXES(1)), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_pick(x, indices(some, DVT_SHAPE(1)), DVT_AXES(1)), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_pick(x, indices(some, DVT_SHAPE(2)), DVT_AXES(2)), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_pick(x, indices(some, DVT_SHAPE(2)), DVT_ALL), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_pick(x, indices(some, DVT_SHAPE(2)), DVT_AXES(0, 1)), DVT_ERR_AXIS);
    CHECK(dvt_pick(x, indices(some, DVT_SHAPE(3)), DVT_AXES(0)) == NULL);
    CHECK(strstr(dvt_error(), "dvt_pick: index 2"));
    dvt_clear_error();
    CHECK_ERROR(dvt_pick(x, NULL, DVT_AXES(0)), DVT_ERR_NULL_ARGUMENT);
}

DVT_TEST(one_hot_values) {
    static const int32_t some[] = {1, 0, 2, -1, 3, 1};
    dvt_array *index = indices(some, DVT_SHAPE(2, 3)), *y;
    for (int d = 0; d < 9; d++) {
        y = dvt_one_hot(index, 3, all_dtypes[d]);
        CHECK_INT(dvt_dtype_of(y), all_dtypes[d]);
        CHECK_VALUES(y, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0);
    }
    CHECK(dvt_shape_equal(dvt_shape_of(y), DVT_SHAPE(2, 3, 3)));
    CHECK_VALUES(dvt_one_hot(dvt_as_in_dtype(dvt_t(index), DVT_U8), 2, DVT_F32), 0, 0, 1, 0, 0, 1,
                 0, 0, 0, 0, 0, 0, 1);
    CHECK_INT(dvt_size(dvt_one_hot(index, 0, DVT_F32)), 0);
    CHECK_VALUES(dvt_one_hot(dvt_scalar(1, DVT_I64, dvt_cpu()), 2, DVT_F32), 0, 0, 1);
    CHECK_ERROR(dvt_one_hot(index, -1, DVT_F32), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_one_hot(dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu()), 2, DVT_F32), DVT_ERR_DTYPE);
    CHECK_ERROR(dvt_one_hot(NULL, 2, DVT_F32), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_one_hot(index, 2, (dvt_dtype)99), DVT_ERR_DTYPE);
}

/* Gradients add at repeated indices, also where sums in 16 bits would not change any more. */
DVT_TEST(index_gradients_add) {
    static const int32_t some[] = {1, 1, -1, 1};
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16};
    for (int d = 0; d < 4; d++)
        DVT_SCOPE {
            dvt_array *x = dvt_zeros(DVT_SHAPE(3, 2), dtypes[d], dvt_cpu()), *y = NULL, *many;
            dvt_attach_grad(x, DVT_GRAD_WRITE);
            DVT_RECORD {
                y = dvt_take(x, indices(some, DVT_SHAPE(2, 2)), 0);
                y = dvt_mul(y, dvt_as_in_dtype(numbered(DVT_SHAPE(2, 2, 2), DVT_F32), dtypes[d]));
            }
            CHECK_INT(dvt_backward(y), DVT_OK);
            CHECK_VALUES(dvt_grad(x), 0, 0, 0, 0 + 2 + 6, 1 + 3 + 7, 4, 5);
            DVT_RECORD {
                y = dvt_take_along_axis(
                    x, dvt_reshape(indices(some, DVT_SHAPE(4)), DVT_SHAPE(2, 2)), 0);
                y = dvt_mul(y,
                            dvt_as_in_dtype(dvt_add_scalar(numbered(DVT_SHAPE(2, 2), DVT_F32), 1),
                                            dtypes[d]));
            }
            CHECK_INT(dvt_backward(y), DVT_OK);
            CHECK_VALUES(dvt_grad(x), 0, 0, 0, 1, 2 + 4, 3, 0);
            many = dvt_zeros(DVT_SHAPE(5000), DVT_I32, dvt_cpu());
            DVT_RECORD {
                y = dvt_take(x, many, 0);
            }
            CHECK_INT(dvt_backward(y), DVT_OK);
            CHECK_VALUES(dvt_grad(x), 8e-3, 5000, 5000, 0, 0, 0, 0);
        }
}

DVT_TEST(index_gradients_same_for_any_number_of_threads) {
    dvt_array *x = dvt_zeros(DVT_SHAPE(50, 300), DVT_F32, dvt_cpu()), *index, *w, *g[2];
    int before = dvt_num_threads();
    dvt_seed(3);
    index = dvt_randint(0, 50, DVT_SHAPE(2000), DVT_I64, dvt_cpu());
    w = dvt_uniform(-1, 1, DVT_SHAPE(2000, 300), DVT_F32, dvt_cpu());
    dvt_attach_grad(x, DVT_GRAD_WRITE);
    for (int k = 0; k < 2; k++) {
        dvt_array *y = NULL;
        dvt_set_num_threads(k ? 3 : 1);
        DVT_RECORD {
            y = dvt_mul(dvt_take(x, index, 0), w);
        }
        CHECK_INT(dvt_backward(y), DVT_OK);
        g[k] = dvt_copy(dvt_grad(x));
    }
    dvt_set_num_threads(before);
    CHECK(dvt_item(dvt_all(dvt_equal(g[0], g[1]), DVT_ALL)) == 1);
    CHECK_CLOSE(dvt_item(dvt_sum(g[0], DVT_ALL)), dvt_item(dvt_sum(w, DVT_ALL)), 1e-2);
}
