/* Tests of gradients at points where finite differences fail: kinks, zeros, ties, infinities and
   very large arguments. */
#include "gradient_check.h"

static void check_slopes(dvt_array *(*f)(dvt_array *), const double *at, const double *slope, int n,
                         const char *name) {
    DVT_SCOPE {
        dvt_array *x = leaf_of(at, DVT_SHAPE(n)), *y = NULL;
        DVT_RECORD {
            y = f(x);
        }
        dvt_test_check(dvt_backward(y) == DVT_OK, __FILE__, __LINE__, "%s: %s", name, dvt_error());
        dvt_test_equal(dvt_grad(x), slope, n, 1e-12, __FILE__, __LINE__);
    }
}

static dvt_array *to_the_power_0(dvt_array *x) {
    return dvt_pow_scalar(x, 0);
}

static dvt_array *to_the_power_1(dvt_array *x) {
    return dvt_pow_scalar(x, 1);
}

static dvt_array *to_the_power_3(dvt_array *x) {
    return dvt_pow_scalar(x, 3);
}

static dvt_array *to_the_power_2(dvt_array *x) {
    return dvt_pow_scalar(x, 2);
}

static dvt_array *to_the_power_half(dvt_array *x) {
    return dvt_pow_scalar(x, 0.5);
}

static dvt_array *inverse(dvt_array *x) {
    return dvt_pow_scalar(x, -1);
}

static dvt_array *positive_or_1(dvt_array *x) {
    return dvt_where_scalar(dvt_greater_scalar(x, 0), dvt_square(x), 1);
}

static dvt_array *three_or_square(dvt_array *x) {
    return dvt_scalar_where(dvt_greater_scalar(x, 0), 3, dvt_square(x));
}

static dvt_array *clipped(dvt_array *x) {
    return dvt_clip(x, -1, 2);
}

static dvt_array *remainder_of_07(dvt_array *x) {
    return dvt_scalar_mod(2.3, x);
}

DVT_TEST(gradients_at_kinks_and_zeros) {
    const double at[] = {-2, -1, 0, 2, 3};
    const double relu[] = {0, 0, 0, 1, 1}, sign[] = {-1, -1, 0, 1, 1}, none[] = {0, 0, 0, 0, 0};
    const double one[] = {1, 1, 1, 1, 1}, cube[] = {12, 3, 0, 12, 27}, inside[] = {0, 1, 1, 1, 0};
    const double seventh[] = {0.7}, threefold[] = {-3}, twice[] = {-4, -2, 0, 4, 6};
    const double roots[] = {0, -0.0, 4, INFINITY}, half[] = {INFINITY, INFINITY, 0.25, 0};
    const double minus[] = {-0.25, -1, -INFINITY, -0.25, -1. / 9};
    const double positive[] = {0, 0, 0, 4, 6}, negative[] = {-4, -2, 0, 0, 0};
    check_slopes(dvt_relu, at, relu, 5, "relu");
    check_slopes(dvt_abs, at, sign, 5, "abs");
    check_slopes(dvt_sign, at, none, 5, "sign");
    check_slopes(to_the_power_0, at, none, 5, "x^0");
    check_slopes(to_the_power_1, at, one, 5, "x^1");
    check_slopes(to_the_power_3, at, cube, 5, "x^3");
    check_slopes(to_the_power_2, at, twice, 5, "x^2");
    check_slopes(to_the_power_half, roots, half, 4, "x^0.5");
    check_slopes(inverse, at, minus, 5, "x^-1");
    check_slopes(positive_or_1, at, positive, 5, "where(x > 0, x^2, 1)");
    check_slopes(three_or_square, at, negative, 5, "where(x > 0, 3, x^2)");
    check_slopes(clipped, at, inside, 5, "clip");
    check_slopes(remainder_of_07, seventh, threefold, 1, "mod");
}

/* Far below 0, 1 + erf is 0. exp(-x^2 / 2) loses x^2 / 2 roundings, and everything else a few. */
DVT_TEST(gradients_of_gelu_keep_their_digits) {
    static const double at[] = {-30, -20, -12, -9, -6, -3, -1.5, -1.0625, -1, -0.5, 0, 1e-30, 2, 9};
    dvt_array *x, *y = NULL;
    double slope, wanted, loss;
    int wide, k;
    for (wide = 0; wide < 2; wide++)
        for (k = 0; k < COUNT(at); k++)
            DVT_SCOPE {
                const double unit = wide ? 0x1p-53 : 0x1p-24;
                if (!wide && at[k] < -12) /* below the smallest normal float */
                    continue;
                x = dvt_full(DVT_SHAPE(1), at[k], wide ? DVT_F64 : DVT_F32, dvt_cpu());
                CHECK(dvt_attach_grad(x, DVT_GRAD_WRITE) == DVT_OK);
                DVT_RECORD {
                    y = dvt_gelu(x);
                }
                CHECK(dvt_backward(y) == DVT_OK);
                slope = dvt_item(dvt_grad(x));
                wanted = 0.5 * erfc(-at[k] * sqrt(0.5)) +
                         at[k] * exp(-0.5 * at[k] * at[k]) * 0.39894228040143267794;
                loss = fabs(slope - wanted) / fabs(wanted);
                dvt_test_check(loss <= (16 + 2 * at[k] * at[k]) * unit, __FILE__, __LINE__,
                               "at %g: %.17g, expected %.17g: relative error %.2g", at[k], slope,
                               wanted, loss);
            }
}

/* Checks the second derivative phi(x) (2 - x^2) at 0 and where the method changes. */
DVT_TEST(gradients_of_gelu_second_order) {
    static const double at[] = {-8, -1.5, -1, -0.9, 0, 1};
    dvt_array *x, *y = NULL, *slope = NULL;
    double wanted;
    int k;
    for (k = 0; k < COUNT(at); k++)
        DVT_SCOPE {
            x = dvt_full(DVT_SHAPE(1), at[k], DVT_F64, dvt_cpu());
            CHECK(dvt_attach_grad(x, DVT_GRAD_WRITE) == DVT_OK);
            DVT_RECORD {
                y = dvt_gelu(x);
                CHECK(dvt_gradients(&y, NULL, 1, &x, 1, DVT_CREATE_GRAPH, &slope) == DVT_OK);
            }
            CHECK(dvt_backward(slope) == DVT_OK);
            wanted = exp(-0.5 * at[k] * at[k]) * 0.39894228040143267794 * (2 - at[k] * at[k]);
            CHECK(fabs(dvt_item(dvt_grad(x)) - wanted) <= 1e-13 * fabs(wanted));
        }
}

DVT_TEST(gradients_of_ties) {
    const double values[] = {1, 2};
    dvt_array *a = leaf_of(values, DVT_SHAPE(2)), *b = leaf_of(values, DVT_SHAPE(2)), *y = NULL;
    DVT_RECORD {
        y = dvt_add(dvt_minimum(a, b), dvt_mul_scalar(dvt_maximum(a, b), 10));
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_VALUES(dvt_grad(a), 0, 11, 11);
    CHECK_VALUES(dvt_grad(b), 0, 0, 0);
}

DVT_TEST(gradients_of_pow_at_zero) {
    const double a[] = {0, 0, 0, 2}, b[] = {0, 1, 2, 0};
    dvt_array *x = leaf_of(a, DVT_SHAPE(4)), *y = leaf_of(b, DVT_SHAPE(4)), *z = NULL;
    dvt_array *in[2], *g[2], *again[2];
    in[0] = x;
    in[1] = y;
    DVT_RECORD {
        z = dvt_pow(x, y);
    }
    CHECK_INT(dvt_gradients(&z, NULL, 1, in, 2, DVT_CREATE_GRAPH, g), DVT_OK);
    CHECK_VALUES(g[0], 1e-12, 0, 1, 0, 0);
    CHECK_VALUES(g[1], 1e-12, 0, 0, 0, log(2));
    /* a^0 has slope 0, but the slope depends on the exponent: d2/dadb = 1/a */
    CHECK_INT(dvt_gradients(&g[0], NULL, 1, in, 2, DVT_RETAIN_GRAPH, again), DVT_OK);
    CHECK_CLOSE(dvt_item_at(again[1], DVT_SHAPE(3)), 0.5, 1e-12);
    CHECK_CLOSE(dvt_item_at(again[0], DVT_SHAPE(2)), 2, 1e-12);
}

/* One exponent for all elements gives the same derivatives as a scalar and as an array of one
   element, in both orders. */
DVT_TEST(gradients_of_pow_by_one_exponent) {
    const double at[] = {0.5, 2, 3}, exponents[] = {-1, 0, 0.5, 1, 2, 3, -2, 2.5};
    int k, i;
    for (k = 0; k < COUNT(exponents); k++)
        DVT_SCOPE {
            const double s = exponents[k];
            dvt_array *x = leaf_of(at, DVT_SHAPE(3)), *b = leaf_of(&s, DVT_SCALAR), *y[2], *g, *h;
            double slope[3], second[3], to_b = 0;
            DVT_RECORD {
                y[0] = dvt_pow_scalar(x, s);
                y[1] = dvt_pow(x, b);
            }
            for (i = 0; i < 3; i++) {
                slope[i] = s * pow(at[i], s - 1);
                second[i] = s * (s - 1) * pow(at[i], s - 2);
                to_b += pow(at[i], s) * log(at[i]);
            }
            for (i = 0; i < 2; i++) {
                CHECK_INT(dvt_gradients(&y[i], NULL, 1, &x, 1, DVT_CREATE_GRAPH, &g), DVT_OK);
                dvt_test_equal(g, slope, 3, 1e-12, __FILE__, __LINE__);
                if (dvt_has_history(g)) { /* the slopes of x^0 and x^1 are constant */
                    CHECK_INT(dvt_gradients(&g, NULL, 1, &x, 1, DVT_RETAIN_GRAPH, &h), DVT_OK);
                    dvt_test_equal(h, second, 3, 1e-12, __FILE__, __LINE__);
                }
            }
            CHECK_INT(dvt_backward(y[1]), DVT_OK);
            dvt_test_equal(dvt_grad(x), slope, 3, 1e-12, __FILE__, __LINE__);
            CHECK_CLOSE(dvt_item(dvt_grad(b)), to_b, 1e-12);
        }
}

DVT_TEST(gradients_propagate_nan) {
    const double at[] = {NAN, 1}, wide[] = {NAN, 0};
    dvt_array *x = leaf_of(at, DVT_SHAPE(2)), *y = NULL, *g;
    DVT_RECORD {
        y = dvt_exp(x);
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 1e-12, NAN, exp(1));
    DVT_RECORD { /* the branch that is not selected gets 0, not NaN */
        y = dvt_where(dvt_equal_scalar(x, 1), x, dvt_zeros_like(x));
    }
    g = dvt_from_host(wide, DVT_SHAPE(2), DVT_F64, dvt_test_ctx());
    CHECK_INT(dvt_backward_from(&y, &g, 1, DVT_FREE_GRAPH), DVT_OK);
    CHECK_VALUES(dvt_grad(x), 0, 0, 0);
}
