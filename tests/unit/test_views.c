/* Tests of views against a model. Every element of a view of an arange holds the number of the
   element that it refers to. */
#include "dvt_test.h"

#define MOST 4096

/* A view as a list of its elements, in C order. */
typedef struct model {
    dvt_shape shape;
    int n;
    int at[MOST];
} model;

static dvt_array *counted(dvt_shape shape, model *m) {
    int i;
    m->shape = shape;
    m->n = (int)dvt_shape_size(shape);
    for (i = 0; i < m->n; i++)
        m->at[i] = i;
    return dvt_reshape(dvt_arange(0, m->n, 1, DVT_I32, dvt_cpu()), shape);
}

static int agrees(dvt_array *x, const model *m) {
    double *values = x ? dvt_test_values(x) : NULL;
    int good = values && dvt_shape_equal(dvt_shape_of(x), m->shape), i;
    for (i = 0; good && i < m->n; i++)
        good = (int)values[i] == m->at[i];
    free(values);
    return good;
}

/* Returns the position of an index in m. */
static int place(const model *m, const int64_t *index) {
    int64_t at = 0;
    int i;
    for (i = 0; i < m->shape.ndim; i++)
        at = at * m->shape.dim[i] + index[i];
    return (int)at;
}

/* Advances to the next index in C order; returns 0 after the last. */
static int advance(dvt_shape shape, int64_t *index) {
    int i;
    for (i = shape.ndim - 1; i >= 0; i--) {
        if (++index[i] < shape.dim[i])
            return 1;
        index[i] = 0;
    }
    return 0;
}

/* Computes slice(start, stop, step).indices(n) of Python. */
static void python_indices(int64_t n, int64_t start, int64_t stop, int64_t step, int64_t *first,
                           int64_t *count) {
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
    if (start < 0)
        start += n;
    start = start < low ? low : start > high ? high : start;
    if (stop == DVT_END)
        stop = step < 0 ? -1 : n;
    else {
        if (stop < 0)
            stop += n;
        stop = stop < low ? low : stop > high ? high : stop;
    }
    *first = start;
    if (step > 0)
        *count = stop > start ? (stop - start + step - 1) / step : 0;
    else
        *count = start > stop ? (start - stop - step - 1) / -step : 0;
}

static void model_slice(model *m, int axis, int64_t start, int64_t stop, int64_t step) {
    model out;
    int64_t first, count, index[DVT_MAX_DIMS] = {0};
    python_indices(m->shape.dim[axis], start, stop, step, &first, &count);
    out.shape = m->shape;
    out.shape.dim[axis] = count;
    out.n = 0;
    if (dvt_shape_size(out.shape) > 0)
        do {
            int64_t source[DVT_MAX_DIMS];
            memcpy(source, index, sizeof source);
            source[axis] = first + index[axis] * step;
            out.at[out.n++] = m->at[place(m, source)];
        } while (advance(out.shape, index));
    *m = out;
}

static void model_permute(model *m, const int *order) {
    model out;
    int64_t index[DVT_MAX_DIMS] = {0};
    int i;
    out.shape = m->shape;
    out.n = 0;
    for (i = 0; i < m->shape.ndim; i++)
        out.shape.dim[i] = m->shape.dim[order[i]];
    if (m->n > 0)
        do {
            int64_t source[DVT_MAX_DIMS] = {0};
            for (i = 0; i < m->shape.ndim; i++)
                source[order[i]] = index[i];
            out.at[out.n++] = m->at[place(m, source)];
        } while (advance(out.shape, index));
    *m = out;
}

/* ---- slices ---- */
DVT_TEST(views_slices_as_python) {
    int64_t n, start, stop, step;
    for (n = 0; n <= 5; n++)
        for (start = -7; start <= 7; start++)
            for (stop = -8; stop <= 7; stop++)
                for (step = -4; step <= 4; step++)
                    DVT_SCOPE {
                        model m;
                        dvt_array *x = counted(DVT_SHAPE(n), &m), *y;
                        int64_t end = stop == -8 ? DVT_END : stop;
                        if (step == 0)
                            continue;
                        model_slice(&m, 0, start, end, step);
                        y = dvt_slice(x, 0, start, end, step);
                        if (!agrees(y, &m) || !dvt_shares_memory(x, y))
                            dvt_test_check(0, __FILE__, __LINE__, "x[%lld:%lld:%lld] of %lld",
                                           (long long)start, (long long)stop, (long long)step,
                                           (long long)n);
                    }
    CHECK_ERROR(dvt_slice(dvt_zeros(DVT_SHAPE(3), DVT_F32, dvt_cpu()), 0, 0, 1, 0), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_slice(dvt_zeros(DVT_SHAPE(3), DVT_F32, dvt_cpu()), 1, 0, 1, 1), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_slice(dvt_scalar(1, DVT_F32, dvt_cpu()), 0, 0, 1, 1), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_slice(NULL, 0, 0, 1, 1), DVT_ERR_NULL_ARGUMENT);
}

DVT_TEST(views_slices_with_huge_bounds) {
    dvt_array *x = dvt_arange(0, 5, 1, DVT_I32, dvt_cpu());
    CHECK_VALUES(dvt_slice(x, 0, INT64_MIN + 1, INT64_MAX, 1), 0, 0, 1, 2, 3, 4);
    CHECK_VALUES(dvt_slice(x, 0, INT64_MAX, INT64_MIN + 1, -1), 0, 4, 3, 2, 1, 0);
    CHECK_VALUES(dvt_slice(x, 0, 1, DVT_END, INT64_MAX), 0, 1);
    CHECK_VALUES(dvt_slice(x, 0, 3, DVT_END, INT64_MIN + 1), 0, 3);
    CHECK_ERROR(dvt_slice(x, 0, 3, DVT_END, INT64_MIN), DVT_ERR_VALUE);
    CHECK_VALUES(dvt_add_scalar(dvt_slice(x, 0, 2, DVT_END, INT64_MAX), 1), 0, 3);
}

DVT_TEST(views_rows_and_index) {
    model m;
    dvt_array *x = counted(DVT_SHAPE(4, 3, 2), &m);
    CHECK_VALUES(dvt_rows(x, 3, 9), 0, 18, 19, 20, 21, 22, 23);
    CHECK_INT(dvt_size(dvt_rows(x, -1, -3)), 0);
    CHECK_VALUES(dvt_index(dvt_index(x, 1), 2), 0, 10, 11);
    CHECK_VALUES(dvt_index(dvt_index(dvt_index(x, -1), -1), -1), 0, 23);
    CHECK_INT(dvt_ndim(dvt_index(dvt_index(dvt_index(x, -1), -1), -1)), 0);
    CHECK_VALUES(dvt_index(dvt_transpose(x, DVT_ALL), 1), 0, 1, 7, 13, 19, 3, 9, 15, 21, 5, 11, 17,
                 23);
    CHECK_ERROR(dvt_index(x, 4), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_index(x, -5), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_index(dvt_scalar(1, DVT_F32, dvt_cpu()), 0), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_rows(dvt_scalar(1, DVT_F32, dvt_cpu()), 0, 1), DVT_ERR_SHAPE);
}

/* ---- orders of axes ---- */
DVT_TEST(views_transposes) {
    static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                    {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    model m, all;
    dvt_array *x = counted(DVT_SHAPE(2, 3, 4), &all);
    int i;
    for (i = 0; i < 6; i++) {
        const int *o = orders[i];
        m = all;
        model_permute(&m, o);
        CHECK(agrees(dvt_transpose(x, DVT_AXES(o[0], o[1], o[2])), &m));
        CHECK(agrees(dvt_transpose(x, DVT_AXES(o[0] - 3, o[1], o[2] - 3)), &m));
    }
    CHECK(agrees(dvt_transpose(x, DVT_ALL), &m) && agrees(dvt_swapaxes(x, 0, -1), &m));
    CHECK(dvt_shares_memory(x, dvt_transpose(x, DVT_ALL)));
    CHECK_ERROR(dvt_transpose(x, dvt_keepdims(DVT_ALL)), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_squeeze(dvt_expand_dims(x, 0), DVT_KEEPDIMS(0)), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_t(x), DVT_ERR_SHAPE); /* ambiguous for a batch */
    CHECK_VALUES(dvt_t(dvt_rows(dvt_index(x, 1), 0, 2)), 0, 12, 16, 13, 17, 14, 18, 15, 19);
    CHECK_VALUES(dvt_t(dvt_index(dvt_index(x, 1), 0)), 0, 12, 13, 14, 15);
    CHECK_ERROR(dvt_transpose(x, DVT_AXES(0, 1)), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_transpose(x, DVT_AXES(0, 1, 1)), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_transpose(x, DVT_AXES(0, 1, 3)), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_swapaxes(x, 0, 3), DVT_ERR_AXIS);
    CHECK_VALUES(dvt_t(dvt_scalar(5, DVT_F32, dvt_cpu())), 0, 5);
}

/* ---- reshape ---- */
/* Tells whether strides can represent these elements in that shape: each axis must advance by a
   constant distance. */
static int strides_exist(const model *m) {
    int64_t index[DVT_MAX_DIMS] = {0}, step[DVT_MAX_DIMS];
    int known[DVT_MAX_DIMS] = {0}, i;
    if (m->n == 0)
        return 1;
    do
        for (i = 0; i < m->shape.ndim; i++)
            if (index[i] + 1 < m->shape.dim[i]) {
                int64_t next[DVT_MAX_DIMS], distance;
                memcpy(next, index, sizeof next);
                next[i]++;
                distance = m->at[place(m, next)] - m->at[place(m, index)];
                if (known[i] && distance != step[i])
                    return 0;
                known[i] = 1;
                step[i] = distance;
            }
    while (advance(m->shape, index));
    return 1;
}

static int in_a_row(const model *m) {
    int i;
    for (i = 1; i < m->n; i++)
        if (m->at[i] != m->at[0] + i)
            return 0;
    return 1;
}

static int64_t some(int64_t low, int64_t high) {
    return (int64_t)dvt_test_random((double)low, (double)high + 0.999);
}

/* Applies one random view to x and to the model. */
static dvt_array *random_view(dvt_array *x, model *m) {
    int axis = (int)some(0, m->shape.ndim - 1), order[DVT_MAX_DIMS], i;
    int64_t start = some(-6, 6), stop = some(-6, 6), step = some(1, 3) * (some(0, 1) ? 1 : -1);
    dvt_shape shape;
    switch (some(0, 3)) {
    case 0:
        model_slice(m, axis, start, stop, step);
        return dvt_slice(x, axis, start, stop, step);
    case 1:
        for (i = 0; i < m->shape.ndim; i++)
            order[i] = m->shape.ndim - 1 - i;
        model_permute(m, order);
        return dvt_transpose(x, DVT_ALL);
    case 2:
        for (i = 0; i < m->shape.ndim; i++)
            order[i] = i;
        order[0] = axis;
        order[axis] = 0;
        model_permute(m, order);
        return dvt_swapaxes(x, 0, axis);
    default: /* splits an axis in two, or joins two */
        shape = m->shape;
        if (shape.ndim < 5 && shape.dim[axis] % 2 == 0 && shape.dim[axis] > 0) {
            for (i = shape.ndim; i > axis; i--)
                shape.dim[i] = shape.dim[i - 1];
            shape.ndim++;
            shape.dim[axis + 1] = shape.dim[axis] / 2;
            shape.dim[axis] = 2;
        } else if (axis + 1 < shape.ndim) {
            shape.dim[axis] *= shape.dim[axis + 1];
            for (i = axis + 1; i < shape.ndim - 1; i++)
                shape.dim[i] = shape.dim[i + 1];
            shape.ndim--;
        }
        m->shape = shape;
        return dvt_reshape(x, shape);
    }
}

/* Checks chains of views: right values, views where strides exist, and a copy only where they
   cannot. */
DVT_TEST(views_random_chains) {
    static model m;
    int round, k, copies = 0, views = 0;
    for (round = 0; round < 1500; round++)
        DVT_SCOPE {
            dvt_array *x = counted(DVT_SHAPE(some(1, 4), some(2, 6), some(1, 6)), &m), *y = x;
            for (k = 0; k < 5 && m.n > 0; k++) {
                dvt_array *before = y;
                int shared;
                y = random_view(y, &m);
                CHECK(agrees(y, &m));
                shared = dvt_shares_memory(before, y);
                if (shared)
                    views++;
                else { /* only reshape may copy, and only if no strides exist */
                    CHECK(!strides_exist(&m));
                    copies++;
                    break;
                }
                CHECK_INT(dvt_is_contiguous(y), in_a_row(&m));
            }
        }
    CHECK(copies > 50 && views > 1000);
}

DVT_TEST(views_reshape) {
    model m;
    dvt_array *x = counted(DVT_SHAPE(2, 6), &m);
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_reshape(x, DVT_SHAPE(-1, 4))), DVT_SHAPE(3, 4)));
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_reshape(x, DVT_SHAPE(-1))), DVT_SHAPE(12)));
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_reshape(x, DVT_SHAPE(12, 1, -1))), DVT_SHAPE(12, 1, 1)));
    CHECK_ERROR(dvt_reshape(x, DVT_SHAPE(5)), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_reshape(x, DVT_SHAPE(-1, -1)), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_reshape(x, DVT_SHAPE(-1, 5)), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_reshape(x, DVT_SHAPE(-2, 6)), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_reshape(x, DVT_SHAPE(-1, 0)), DVT_ERR_SHAPE);
    x = dvt_zeros(DVT_SHAPE(3, 0), DVT_F32, dvt_cpu());
    CHECK_INT(dvt_size(dvt_reshape(x, DVT_SHAPE(0, 7))), 0);
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_reshape(x, DVT_SHAPE(-1, 2))), DVT_SHAPE(0, 2)));
    CHECK_ERROR(dvt_reshape(x, DVT_SHAPE(-1, 0)), DVT_ERR_SHAPE);
    CHECK_VALUES(dvt_reshape(dvt_full(DVT_SHAPE(1, 1), 4, DVT_F32, dvt_cpu()), DVT_SCALAR), 0, 4);
    CHECK(dvt_shape_equal(
        dvt_shape_of(dvt_flatten(dvt_zeros(DVT_SHAPE(2, 3, 4), DVT_F32, dvt_cpu()))),
        DVT_SHAPE(2, 12)));
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_flatten(dvt_scalar(1, DVT_F32, dvt_cpu()))),
                          DVT_SHAPE(1, 1)));
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_flatten(dvt_zeros(DVT_SHAPE(0, 3), DVT_F32, dvt_cpu()))),
                          DVT_SHAPE(0, 3)));
}

/* ---- axes of extent 1 ---- */
DVT_TEST(views_expand_and_squeeze) {
    model m;
    dvt_array *x = counted(DVT_SHAPE(2, 3), &m), *y = x,
              *most = dvt_zeros(DVT_SHAPE(1, 1, 1, 1, 1, 1, 1, 2), DVT_F32, dvt_cpu());
    int axis;
    for (axis = -3; axis <= 2; axis++) {
        int at = axis < 0 ? axis + 3 : axis;
        y = dvt_expand_dims(x, axis);
        CHECK_INT(dvt_dim(y, at), 1);
        CHECK_INT(dvt_ndim(y), 3);
        CHECK(agrees(dvt_squeeze(y, DVT_AXES(at)), &m) && agrees(dvt_squeeze(y, DVT_ALL), &m));
    }
    CHECK_ERROR(dvt_expand_dims(x, 3), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_expand_dims(x, -4), DVT_ERR_AXIS);
    CHECK_ERROR(dvt_expand_dims(most, 0), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_squeeze(x, DVT_AXES(0)), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_squeeze(x, DVT_AXES(2)), DVT_ERR_AXIS);
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_squeeze(most, DVT_ALL)), DVT_SHAPE(2)));
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_squeeze(most, DVT_AXES(0, -2))),
                          DVT_SHAPE(1, 1, 1, 1, 1, 2)));
    CHECK_INT(dvt_ndim(dvt_squeeze(dvt_ones(DVT_SHAPE(1, 1), DVT_F32, dvt_cpu()), DVT_ALL)), 0);
}

/* ---- broadcast ---- */
DVT_TEST(views_broadcast) {
    dvt_array *x = dvt_reshape(dvt_arange(0, 3, 1, DVT_I32, dvt_cpu()), DVT_SHAPE(3, 1)), *y;
    y = dvt_broadcast_to(x, DVT_SHAPE(2, 3, 2));
    CHECK_VALUES(y, 0, 0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2);
    CHECK(dvt_shares_memory(x, y) && dvt_stride(y, 0) == 0 && dvt_stride(y, 2) == 0);
    CHECK_VALUES(dvt_slice(dvt_transpose(y, DVT_ALL), 2, 1, 2, 1), 0, 0, 1, 2, 0, 1, 2);
    CHECK_INT(dvt_size(dvt_broadcast_to(x, DVT_SHAPE(3, 0))), 0);
    CHECK_VALUES(dvt_broadcast_to(dvt_scalar(4, DVT_F32, dvt_cpu()), DVT_SHAPE(2)), 0, 4, 4);
    CHECK_ERROR(dvt_broadcast_to(x, DVT_SHAPE(2, 2)), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_broadcast_to(y, DVT_SHAPE(3, 2)), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_broadcast_to(y, DVT_SHAPE(1, 3, 2)), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_broadcast_to(x, DVT_SHAPE(-1, 3, 2)), DVT_ERR_SHAPE);
    /* writing to it is refused, also through a view of it */
    CHECK_ERROR(dvt_fill(y, 1), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_add_scalar_(dvt_index(y, 0), 1), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_neg_(dvt_transpose(y, DVT_ALL)), DVT_ERR_VALUE);
    CHECK_VALUES(x, 0, 0, 1, 2);
    CHECK_VALUES(dvt_add_scalar_(dvt_copy(y), 1), 0, 1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3);
}

/* Writing through a view changes exactly the elements that it refers to. */
DVT_TEST(views_write_through) {
    model m;
    dvt_array *x = counted(DVT_SHAPE(3, 4), &m);
    dvt_fill(dvt_slice(dvt_slice(x, 0, 0, DVT_END, 2), 1, 1, 4, 2), -1);
    CHECK_VALUES(x, 0, 0, -1, 2, -1, 4, 5, 6, 7, 8, -1, 10, -1);
    dvt_add_(dvt_index(dvt_transpose(x, DVT_ALL), 0), dvt_arange(10, 13, 1, DVT_I32, dvt_cpu()));
    CHECK_VALUES(x, 0, 10, -1, 2, -1, 15, 5, 6, 7, 20, -1, 10, -1);
}

DVT_TEST(views_split) {
    dvt_array *x = dvt_arange(0, 10, 1, DVT_I32, dvt_cpu()), *out[4] = {NULL, NULL, NULL, NULL};
    CHECK_INT(dvt_array_split(x, 4, 0, out), DVT_OK);
    CHECK_VALUES(out[0], 0, 0, 1, 2);
    CHECK_VALUES(out[1], 0, 3, 4, 5);
    CHECK_VALUES(out[3], 0, 8, 9);
    CHECK(dvt_shares_memory(x, out[2]));
    CHECK_ERROR(dvt_split(x, 4, 0, out), DVT_ERR_SHAPE);
    CHECK_ERROR(dvt_array_split(x, 0, 0, out), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_array_split(x, 2, 1, out), DVT_ERR_AXIS);
}
