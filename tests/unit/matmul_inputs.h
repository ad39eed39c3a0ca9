/* Operands for tests of matrix products: random values, any strides. */
#ifndef MATMUL_INPUTS_H
#define MATMUL_INPUTS_H
#include "dvt_test.h"

/* Returns random values, which are integers for integer dtypes. */
static dvt_array *random_array(dvt_shape shape, dvt_dtype dtype, dvt_ctx ctx) {
    int64_t n = dvt_shape_size(shape), i;
    double *values = (double *)malloc(sizeof(double) * (size_t)(n ? n : 1));
    dvt_array *x;
    for (i = 0; i < n; i++)
        values[i] =
            dvt_dtype_is_float(dtype) ? dvt_test_random(-1, 1) : floor(dvt_test_random(-9, 10));
    x = dvt_as_in_dtype(dvt_from_host(values, shape, DVT_F64, ctx), dtype);
    free(values);
    return x;
}

/* Returns the elements of x with other strides. For x = ((a, b), (c, d)) the memory is:

        0   a b c d               C order
        1   a c b d               transposed
        2   a . b . . c . d . .   every second element of a wider array
        3   c d a b               rows in reverse */
static dvt_array *strided(dvt_array *x, int how) {
    int n = dvt_ndim(x);
    if (how == 1 && n >= 2)
        return dvt_swapaxes(dvt_copy(dvt_swapaxes(x, n - 1, n - 2)), n - 1, n - 2);
    if (how == 2) {
        dvt_shape shape = dvt_shape_of(x);
        dvt_array *wide, *view;
        shape.dim[n - 1] = 2 * shape.dim[n - 1] + 1;
        wide = dvt_full(shape, 77, dvt_dtype_of(x), dvt_ctx_of(x));
        view = dvt_slice(wide, n - 1, 0, 2 * dvt_dim(x, n - 1), 2);
        dvt_copy_into(view, x);
        return view;
    }
    if (how == 3 && dvt_size(x) > 0) {
        dvt_array *back = dvt_copy(dvt_slice(x, 0, -1, DVT_END, -1));
        return dvt_slice(back, 0, -1, DVT_END, -1);
    }
    return x;
}

#endif
