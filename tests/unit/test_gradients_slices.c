/* Gradients of several slices of one array, which are added in place: values against differences,
   shared gradients, recorded passes, and the number of operations. */
#include "gradient_check.h"

/* Slices of one array that overlap, skip elements, run backwards, or are empty. */
static dvt_array *mixed_slices(dvt_array *const *x, const void *user) {
    static const int64_t bounds[][3] = {{0, 4, 1},         {2, 6, 1},        {0, DVT_END, 2},
                                        {-1, DVT_END, -2}, {5, DVT_END, -1}, {3, 4, 7},
                                        {3, 2, -7},        {2, 2, 1},        {6, 0, 1}};
    dvt_array *sum = NULL;
    int i;
    (void)user;
    for (i = 0; i < COUNT(bounds); i++) {
        dvt_array *part = dvt_slice(x[0], 1, bounds[i][0], bounds[i][1], bounds[i][2]);
        part = dvt_sum(dvt_mul_scalar(dvt_square(part), i + 1), DVT_AXES(1));
        sum = sum ? dvt_add(sum, part) : part;
    }
    return sum;
}

/* Slices of slices, of a transposed view, and another use of the same array. */
static dvt_array *nested_slices(dvt_array *const *x, const void *user) {
    dvt_array *y = dvt_transpose(dvt_exp(x[0]), DVT_ALL), *rows = dvt_rows(y, 1, 5);
    (void)user;
    y = dvt_mul(dvt_index(y, 0), dvt_index(y, -1));
    y = dvt_add(y, dvt_mul(dvt_index(rows, 0), dvt_index(rows, 3)));
    y = dvt_add(y, dvt_sum(dvt_slice(rows, 0, -1, DVT_END, -3), DVT_AXES(0)));
    return dvt_add(y, dvt_sum(dvt_square(x[0]), DVT_AXES(1)));
}

/* The same gradient arrives at two arrays, one of which is sliced too. */
static dvt_array *shared_gradient(dvt_array *const *x, const void *user) {
    dvt_array *a = dvt_square(x[0]), *b = dvt_square(x[1]);
    (void)user;
    return dvt_sub(dvt_add(a, b), dvt_sum(dvt_square(dvt_rows(a, 1, 3)), DVT_AXES(0)));
}

DVT_TEST(gradients_of_several_slices) {
    check_one("slices", mixed_slices, NULL, DVT_SHAPE(2, 6), -2, 2);
    check_one("slices of slices", nested_slices, NULL, DVT_SHAPE(2, 6), -1, 1);
    check_two("a shared gradient", shared_gradient, NULL, DVT_SHAPE(3, 2), DVT_SHAPE(3, 2));
}

/* The head gradient of the caller is never the array that is added to. */
DVT_TEST(gradients_of_slices_leave_the_head_gradient) {
    dvt_array *x = dvt_ones(DVT_SHAPE(4), DVT_F32, dvt_test_ctx()), *heads[2], *grads[2];
    dvt_attach_grad(x, DVT_GRAD_WRITE);
    DVT_RECORD {
        heads[0] = dvt_mul_scalar(x, 2);
        heads[1] = dvt_rows(heads[0], 1, 3);
    }
    grads[0] = dvt_full(DVT_SHAPE(4), 1, DVT_F32, dvt_test_ctx());
    grads[1] = dvt_full(DVT_SHAPE(2), 10, DVT_F32, dvt_test_ctx());
    CHECK_INT(dvt_backward_from(heads, grads, 2, DVT_FREE_GRAPH), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 0, 2, 22, 22, 2);
    CHECK_VALUES(grads[0], 0, 1, 1, 1, 1);
    CHECK_VALUES(grads[1], 0, 10, 10);
}

/* Returns the operations of a backward pass through the rows of an array. */
static int64_t kernels_of_rows(int64_t n) {
    int64_t before, i;
    dvt_array *x = dvt_ones(DVT_SHAPE(n, 3), DVT_F32, dvt_test_ctx()), *y = NULL;
    dvt_attach_grad(x, DVT_GRAD_WRITE);
    DVT_RECORD {
        for (i = 0; i < n; i++)
            y = y ? dvt_add(y, dvt_index(x, i)) : dvt_index(x, i);
    }
    before = dvt_get_stats().kernels;
    CHECK_INT(dvt_backward(y), DVT_OK);
    return dvt_get_stats().kernels - before;
}

/* Each more row is one more operation, on the elements of that row: not zeros, a copy and a sum. */
DVT_TEST(gradients_of_slices_cost_one_operation_each) {
    DVT_SCOPE {
        CHECK_INT(kernels_of_rows(40) - kernels_of_rows(8), 32);
    }
}
