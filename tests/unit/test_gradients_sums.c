/* Tests of gradients of reductions, softmax and matrix products. */
#include "gradient_check.h"
#include "matmul_forms.h"
#include "../../src/2_core/dvt_optimizer_table.h"
#include "../../src/2_core/dvt_reduce_table.h"
#include "../../src/2_core/dvt_op_table.h"

/* ---- reductions ---- */
typedef struct reduction {
    const char *name;
    dvt_array *(*f)(dvt_array *, dvt_axes);
    int axes; /* index of a row of reduction_axes() */
    bool keepdims;
    double low, high;
} reduction;

static dvt_axes reduction_axes(int i) {
    switch (i) {
    case 0:
        return DVT_ALL;
    case 1:
        return DVT_AXES(0);
    case 2:
        return DVT_AXES(-1);
    case 3:
        return DVT_AXES(2, 0);
    default:
        return DVT_AXES(1);
    }
}

static dvt_array *reduce(dvt_array *const *x, const void *user) {
    const reduction *r = (const reduction *)user;
    dvt_axes axes = reduction_axes(r->axes);
    axes.keepdims = r->keepdims;
    return r->f(x[0], axes);
}

static dvt_array *reduce_view(dvt_array *const *x, const void *user) {
    const reduction *r = (const reduction *)user;
    return dvt_square(r->f(dvt_transpose(x[0], DVT_AXES(1, 2, 0)), reduction_axes(r->axes)));
}

static dvt_array *variance(dvt_array *x, dvt_axes axes) {
    return dvt_var(x, axes, 1);
}

static dvt_array *deviation(dvt_array *x, dvt_axes axes) {
    return dvt_std(x, axes, 0);
}

/* Every row of the table that has a gradient. */
#define ROW_SUM(name, lo, hi) {#name, dvt_##name, 0, false, lo, hi},
#define ROW_FLOAT(name, lo, hi) ROW_SUM(name, lo, hi)
#define ROW_SAME(name, lo, hi) ROW_SUM(name, lo, hi)
#define ROW_BOOL(name, lo, hi)
#define ROW_PLACE(name, lo, hi)
#define ROW(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)                \
    ROW_##rule(name, lo, hi)

DVT_TEST(gradients_of_reductions) {
    reduction r[] = {DVTI_REDUCE_TABLE(ROW){"var", variance, 0, false, -2, 2},
                     {"std", deviation, 0, false, -2, 2}};
    int i;
    for (i = 0; i < (int)(sizeof r / sizeof r[0]); i++) {
        for (r[i].axes = 0; r[i].axes < 5; r[i].axes++) {
            if (!EACH_THERE(i + r[i].axes, 4))
                continue;
            r[i].keepdims = r[i].axes % 2 != 0;
            check_one(r[i].name, reduce, &r[i], DVT_SHAPE(3, 2, 2), r[i].low, r[i].high);
            check_one(r[i].name, reduce_view, &r[i], DVT_SHAPE(2, 3, 2), r[i].low, r[i].high);
        }
        r[i].axes = 0;
        if (r[i].f != variance && r[i].f != deviation && r[i].f != dvt_norm)
            check_one(r[i].name, reduce, &r[i], DVT_SCALAR, 0.5, 2);
    }
}

/* Products with no zero, one zero, two zeros, and of one element. The gradient is the product of
   the others, without division. */
DVT_TEST(gradients_of_products_with_zeros) {
    static const double rows[] = {2, 3, 4, 5, 2, 0, 4, 5, 0, 3, 0, 5};
    reduction r = {"prod", dvt_prod, 2, false, -2, 2};
    problem p = problem_begin("prod with zeros", reduce, &r);
    dvt_array *x = leaf_of(rows, DVT_SHAPE(3, 4)), *y = NULL;
    problem_input(&p, DVT_SHAPE(1, 3, 4), 0, 0);
    p.fixed[0] = rows;
    check_problem(&p);
    p.shape[0] = DVT_SHAPE(12, 1, 1);
    check_problem(&p);
    DVT_RECORD {
        y = dvt_prod(x, DVT_AXES(1));
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 0, 60, 40, 30, 24, 0, 40, 0, 0, 0, 0, 0, 0);
}

DVT_TEST(gradients_of_reductions_at_special_points) {
    const double ties[] = {1, 3, 3, 2, 3}, zeros[] = {0, 0, 0};
    const double nothing[] = {-(double)INFINITY, -(double)INFINITY, 0, 0};
    dvt_array *x = leaf_of(ties, DVT_SHAPE(5)), *y = NULL;
    DVT_RECORD {
        y = dvt_max(x, DVT_ALL); /* divided equally among ties */
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 1e-15, 0, 1.0 / 3, 1.0 / 3, 0, 1.0 / 3);
    x = leaf_of(zeros, DVT_SHAPE(3));
    DVT_RECORD {
        y = dvt_norm(x, DVT_ALL);
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 0, 0, 0, 0);
    x = leaf_of(nothing, DVT_SHAPE(2, 2));
    DVT_RECORD {
        y = dvt_logsumexp(x, DVT_AXES(1));
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 1e-15, 0, 0, 0.5, 0.5);
    x = leaf_of(zeros, DVT_SHAPE(0, 3));
    DVT_RECORD {
        y = dvt_add(dvt_sum(x, DVT_ALL), dvt_prod(x, DVT_AXES(0)));
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK(dvt_shape_equal(dvt_shape_of(dvt_grad(x)), DVT_SHAPE(0, 3)));
}

static dvt_array *softmax(dvt_array *const *x, const void *user) {
    return dvt_softmax(x[0], *(const int *)user);
}

static dvt_array *log_softmax(dvt_array *const *x, const void *user) {
    return dvt_log_softmax(x[0], *(const int *)user);
}

DVT_TEST(gradients_of_softmax) {
    int axis;
    for (axis = -2; axis < 2; axis++) {
        check_one("softmax", softmax, &axis, DVT_SHAPE(3, 4), -2, 2);
        check_one("log_softmax", log_softmax, &axis, DVT_SHAPE(3, 4), -2, 2);
    }
}

/* Gradients of narrow floats keep the dtype and match float64 within its precision. */
DVT_TEST(gradients_of_reductions_in_narrow_dtypes) {
    static const dvt_dtype dtypes[] = {DVT_F16, DVT_BF16, DVT_F32};
    static dvt_array *(*const f[])(dvt_array *, dvt_axes) = {
        dvt_sum, dvt_mean, dvt_prod, dvt_min, dvt_max, dvt_norm, dvt_logsumexp};
    const double values[] = {0.5, -1, 1.5, 2, 0.25, -0.75};
    int i, k;
    for (i = 0; i < 3; i++)
        for (k = 0; k < 7; k++) {
            if (!EACH_THERE(i + 2 * k, 5))
                continue;
            DVT_SCOPE {
                dvt_array *wide = leaf_of(values, DVT_SHAPE(2, 3)), *y = NULL, *z = NULL;
                dvt_array *x = dvt_astype(wide, dtypes[i]);
                double *expected;
                dvt_attach_grad(x, DVT_GRAD_WRITE);
                DVT_RECORD {
                    y = f[k](x, DVT_AXES(1));
                    z = f[k](wide, DVT_AXES(1));
                }
                CHECK_INT(dvt_backward(y), DVT_OK);
                CHECK_INT(dvt_backward(z), DVT_OK);
                CHECK_INT(dvt_dtype_of(dvt_grad(x)), dtypes[i]);
                expected = dvt_test_values(dvt_grad(wide));
                dvt_test_equal(dvt_grad(x), expected, 6, 0.02, __FILE__, __LINE__);
                free(expected);
            }
        }
}

/* ---- products ---- */
static dvt_array *product(dvt_array *const *x, const void *user) {
    const int *t = (const int *)user;
    return matmul_t(x[0], x[1], t[0] != 0, t[1] != 0);
}

static dvt_array *product_of_views(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_matmul(dvt_slice(x[0], 1, -1, DVT_END, -1), dvt_t(x[1]));
}

static dvt_array *dot_product(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_dot(x[0], x[1]);
}

static dvt_array *powers(dvt_array *const *x, const void *user) {
    (void)user;
    return dvt_matmul(dvt_matmul(x[0], x[0]), x[0]);
}

DVT_TEST(gradients_of_matmul) {
    static const int transposes[][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
    int i;
    for (i = 0; i < 4; i++) {
        const int *t = transposes[i];
        dvt_shape a = t[0] ? DVT_SHAPE(3, 2) : DVT_SHAPE(2, 3);
        dvt_shape b = t[1] ? DVT_SHAPE(4, 3) : DVT_SHAPE(3, 4);
        dvt_shape a3 = DVT_SHAPE(2, a.dim[0], a.dim[1]), b3 = DVT_SHAPE(2, b.dim[0], b.dim[1]);
        dvt_shape a4 = DVT_SHAPE(2, 1, a.dim[0], a.dim[1]);
        check_two("matmul", product, t, a, b);
        check_two("matmul, both batched", product, t, a3, b3);
        check_two("matmul, batched a", product, t, a3, b);
        check_two("matmul, batched b", product, t, a, b3);
        check_two("matmul, broadcast batches", product, t, a4, b3);
    }
}

DVT_TEST(gradients_of_other_products) {
    static const int none[] = {0, 0};
    check_two("vectors", product, none, DVT_SHAPE(3), DVT_SHAPE(3));
    check_two("vector and matrix", product, none, DVT_SHAPE(3), DVT_SHAPE(3, 2));
    check_two("matrix and vector", product, none, DVT_SHAPE(2, 3), DVT_SHAPE(3));
    check_two("batch and vector", product, none, DVT_SHAPE(2, 2, 3), DVT_SHAPE(3));
    check_two("vector and batch", product, none, DVT_SHAPE(3), DVT_SHAPE(2, 3, 2));
    check_two("views", product_of_views, NULL, DVT_SHAPE(2, 3), DVT_SHAPE(2, 3));
    check_two("dot", dot_product, NULL, DVT_SHAPE(2, 3), DVT_SHAPE(2, 3, 2));
    check_two("dot", dot_product, NULL, DVT_SCALAR, DVT_SHAPE(2));
    check_two("nothing between", product, none, DVT_SHAPE(2, 0), DVT_SHAPE(0, 3));
    check_two("no rows", product, none, DVT_SHAPE(2, 0, 3), DVT_SHAPE(3, 2));
    check_one("x^3", powers, NULL, DVT_SHAPE(3, 3), -1, 1);
}

DVT_TEST(gradients_of_matmul_with_mixed_dtypes) {
    dvt_array *a = dvt_full(DVT_SHAPE(2, 3), 2, DVT_F16, dvt_test_ctx());
    dvt_array *b = dvt_full(DVT_SHAPE(3, 2), 0.5, DVT_F32, dvt_test_ctx());
    dvt_array *k = dvt_full(DVT_SHAPE(2, 2), 3, DVT_I32, dvt_test_ctx()), *y = NULL;
    dvt_attach_grad(a, DVT_GRAD_WRITE);
    dvt_attach_grad(b, DVT_GRAD_WRITE);
    DVT_RECORD {
        y = dvt_matmul(k, dvt_matmul(a, b));
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_INT(dvt_dtype_of(dvt_grad(a)), DVT_F16);
    CHECK_INT(dvt_dtype_of(dvt_grad(b)), DVT_F32);
    CHECK_VALUES(dvt_grad(a), 0, 6, 6, 6, 6, 6, 6);
    CHECK_VALUES(dvt_grad(b), 0, 24, 24, 24, 24, 24, 24);
}

/* The logarithm of the sum must not be lost next to a huge value. */
DVT_TEST(log_softmax_of_huge_values) {
    dvt_array *x = DVT_ARRAY(double, DVT_SHAPE(4), dvt_test_ctx(), -3e38, 3e38, 0, 3e38);
    CHECK_VALUES(dvt_log_softmax(x, 0), 1e-12, -6e38, -0.69314718055994531, -3e38,
                 -0.69314718055994531);
    CHECK_VALUES(dvt_softmax(x, 0), 1e-12, 0, 0.5, 0, 0.5);
}

static dvt_array *cumulated(dvt_array *const *x, const void *user) {
    return dvt_mul(dvt_cumsum(x[0], *(const int *)user), x[0]);
}

DVT_TEST(gradients_of_cumsum) {
    static const int axis[] = {0, 1, -1};
    int k;
    for (k = 0; k < 3; k++)
        check_one("cumsum", cumulated, &axis[k], DVT_SHAPE(2, 3, 2), -2, 2);
    check_one("cumsum", cumulated, &axis[0], DVT_SHAPE(0), -2, 2);
}
