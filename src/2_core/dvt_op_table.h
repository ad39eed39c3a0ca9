/* THE table of elementwise operations. One row gives: the enum, the public functions and their checks, the CPU loops,
   the CUDA text, the gradient, the tests (value, gradient, corners) and the table in the README. See docs/ADDING_AN_OP.md.

   Columns
     name    dvt_<name>, DVTI_OP_<name>
     rule    SAME  numbers keep their dtype; bool is refused where the integer text is 0 for it (see NOBOOL)
             FLOAT integers become float32 first
             BOOL  the result is bool
     F       the value for a floating type T; F(exp) is expf or exp, C(0.5) a constant of that type
     I       the value in int64_t arithmetic (results wrap to the dtype); 0 for FLOAT rows, which never see integers
     grad    recorded operations on g (gradient of the result), x or a and b (inputs), y (result); 0: no gradient
     lo, hi  an interval where value and gradient are smooth, for tests (second pair: argument b)
     doc     one line */
#ifndef DVTI_OP_TABLE_H
#define DVTI_OP_TABLE_H
#if !defined(DVTI_REDUCE_TABLE) || !defined(DVTI_OPTIMIZER_TABLE)
#error "dvt_op_table.h: include dvt_reduce_table.h and dvt_optimizer_table.h before it"
#endif

/* name, rule, F(x), I(x), grad(g, x, y), lo, hi, doc */
#define DVTI_UNARY_TABLE(U)                                                                        \
    U(neg, NOBOOL, -x, DVTI_WRAP(0, -, x), dvt_neg(g), -2, 2, "-x")                                \
    U(abs, SAME, F(fabs)(x), x < 0 ? DVTI_WRAP(0, -, x) : x, dvt_mul(g, dvt_sign(x)), 0.2, 2,      \
      "absolute value")                                                                            \
    U(sign, SAME,                                                                                  \
      x > 0   ? C(1)                                                                               \
      : x < 0 ? C(-1)                                                                              \
              : x,                                                                                 \
      (x > 0) - (x < 0), dvti_no_gradient(g), 0.2, 2, "-1, 0 or 1; NaN stays")                     \
    U(square, SAME, x *x, DVTI_WRAP(x, *, x), dvt_mul(g, dvt_mul_scalar(x, 2)), -2, 2, "x * x")    \
    U(relu, SAME,                                                                                  \
      x > 0    ? x                                                                                 \
      : x != x ? x                                                                                 \
               : C(0),                                                                             \
      x > 0 ? x : 0, dvt_where(y, g, dvti_number_like(g, 0)), 0.2, 2, "max(x, 0)")                 \
    U(floor, SAME, F(floor)(x), x, dvti_no_gradient(g), 0.1, 0.9, "largest whole number <= x")     \
    U(ceil, SAME, F(ceil)(x), x, dvti_no_gradient(g), 0.1, 0.9, "smallest whole number >= x")      \
    U(round, SAME, F(rint)(x), x, dvti_no_gradient(g), 0.6, 0.9,                                   \
      "nearest whole number, halves to even")                                                      \
    U(trunc, SAME, F(trunc)(x), x, dvti_no_gradient(g), 0.1, 0.9, "whole part")                    \
    U(reciprocal, FLOAT, C(1) / x, 0, dvt_neg(dvt_mul(dvt_mul(g, y), y)), 0.5, 2, "1 / x")         \
    U(sqrt, FLOAT, F(sqrt)(x), 0, dvt_div(dvt_mul_scalar(g, 0.5), y), 0.3, 3, "square root")       \
    U(rsqrt, FLOAT, C(1) / F(sqrt)(x), 0,                                                          \
      dvt_mul(dvt_mul(dvt_mul(dvt_mul_scalar(g, -0.5), y), y), y), 0.5, 3, "1 / sqrt(x)")          \
    U(exp, FLOAT, F(exp)(x), 0, dvt_mul(g, y), -2, 2, "e to the power x")                          \
    U(exp2, FLOAT, F(exp2)(x), 0, dvt_mul(g, dvt_mul_scalar(y, 0.69314718055994530942)), -2, 2,    \
      "2 to the power x")                                                                          \
    U(expm1, FLOAT, F(expm1)(x), 0, dvt_mul(g, dvt_exp(x)), -2, 2, "exp(x) - 1, exact near 0")     \
    U(log, FLOAT, F(log)(x), 0, dvt_div(g, x), 0.3, 3, "natural logarithm")                        \
    U(log2, FLOAT, F(log2)(x), 0, dvt_div(dvt_mul_scalar(g, 1.4426950408889634074), x), 0.3, 3,    \
      "logarithm to base 2")                                                                       \
    U(log10, FLOAT, F(log10)(x), 0, dvt_div(dvt_mul_scalar(g, 0.43429448190325182765), x), 0.3, 3, \
      "logarithm to base 10")                                                                      \
    U(log1p, FLOAT, F(log1p)(x), 0, dvt_div(g, dvt_add_scalar(x, 1)), -0.5, 2,                     \
      "log(1 + x), exact near 0")                                                                  \
    U(sin, FLOAT, F(sin)(x), 0, dvt_mul(g, dvt_cos(x)), -3, 3, "sine")                             \
    U(cos, FLOAT, F(cos)(x), 0, dvt_neg(dvt_mul(g, dvt_sin(x))), -3, 3, "cosine")                  \
    U(tan, FLOAT, F(tan)(x), 0, dvt_mul(g, dvt_add_scalar(dvt_square(y), 1)), -1, 1, "tangent")    \
    U(asin, FLOAT, F(asin)(x), 0, dvti_grad_asin(g, x), -0.8, 0.8, "inverse sine")                 \
    U(acos, FLOAT, F(acos)(x), 0, dvt_neg(dvti_grad_asin(g, x)), -0.8, 0.8, "inverse cosine")      \
    U(atan, FLOAT, F(atan)(x), 0, dvti_over_square(g, dvt_hypot_scalar(x, 1)), -2, 2,              \
      "inverse tangent")                                                                           \
    U(sinh, FLOAT, F(sinh)(x), 0, dvt_mul(g, dvt_cosh(x)), -2, 2, "hyperbolic sine")               \
    U(cosh, FLOAT, F(cosh)(x), 0, dvt_mul(g, dvt_sinh(x)), -2, 2, "hyperbolic cosine")             \
    U(tanh, FLOAT, F(tanh)(x), 0, dvt_mul(g, dvt_scalar_sub(1, dvt_square(y))), -2, 2,             \
      "hyperbolic tangent")                                                                        \
    U(sigmoid, FLOAT, x >= 0 ? C(1) / (C(1) + F(exp)(-x)) : F(exp)(x) / (C(1) + F(exp)(x)), 0,     \
      dvt_mul(g, dvt_mul(y, dvt_scalar_sub(1, y))), -3, 3, "1 / (1 + exp(-x))")                    \
    U(softplus, FLOAT, x > 0 ? x + F(log1p)(F(exp)(-x)) : F(log1p)(F(exp)(x)), 0,                  \
      dvt_mul(g, dvt_sigmoid(x)), -3, 3, "log(1 + exp(x))")                                        \
    U(erf, FLOAT, F(erf)(x), 0,                                                                    \
      dvt_mul(g, dvt_mul_scalar(dvt_exp(dvt_neg(dvt_square(x))), 1.12837916709551257390)), -2, 2,  \
      "error function")                                                                            \
    U(gelu, FLOAT,                                                                                 \
      x < -DVTI_LARGEST ? C(-0.0) : C(0.5) * x * F(erfc)(x * C(-0.70710678118654752440)), 0,       \
      dvti_grad_gelu(g, x), -2, 2, "x times the normal distribution function of x")                \
    U(isnan, BOOL, x != x, 0, dvti_no_gradient(g), -1, 1, "is NaN")                                \
    U(isinf, BOOL, F(fabs)(x) > DVTI_LARGEST, 0, dvti_no_gradient(g), -1, 1, "is infinite")        \
    U(isfinite, BOOL, F(fabs)(x) <= DVTI_LARGEST, 1, dvti_no_gradient(g), -1, 1,                   \
      "is neither infinite nor NaN")                                                               \
    U(logical_not, BOOL, x == 0, x == 0, dvti_no_gradient(g), -1, 1, "is zero")

/* name, rule, F(a, b), I(a, b), gradient to a, gradient to b, lo, hi of a, lo, hi of b, doc */
#define DVTI_BINARY_TABLE(B)                                                                       \
    B(add, SAME, a + b, DVTI_WRAP(a, +, b), g, g, -2, 2, -2, 2, "a + b")                           \
    B(sub, NOBOOL, a - b, DVTI_WRAP(a, -, b), g, dvt_neg(g), -2, 2, -2, 2, "a - b")                \
    B(mul, SAME, a *b, DVTI_WRAP(a, *, b), dvt_mul(g, b), dvt_mul(g, a), -2, 2, -2, 2, "a * b")    \
    B(div, FLOAT, a / b, 0, dvt_div(g, b), dvt_neg(dvt_div(dvt_mul(g, y), b)), -2, 2, 0.5, 2,      \
      "a / b")                                                                                     \
    B(floor_div, SAME, F(dvti_floor_div)(a, b), dvti_int_floor_div(a, b), dvti_no_gradient(g),     \
      dvti_no_gradient(g), 0.1, 0.4, 0.5, 0.9, "floor(a / b)")                                     \
    B(mod, SAME, F(dvti_mod)(a, b), dvti_int_mod(a, b), g,                                         \
      dvt_neg(dvt_mul(g, dvt_floor_div(a, b))), 0.1, 0.4, 0.5, 0.9, "a - floor(a / b) * b")        \
    B(pow, SAME, F(pow)(a, b), dvti_int_pow(a, b), dvti_grad_pow_a(g, a, b),                       \
      dvti_grad_pow_b(g, a, y), 0.4, 2, -2, 2, "a to the power b")                                 \
    B(minimum, SAME,                                                                               \
      a != a   ? a                                                                                 \
      : b != b ? b                                                                                 \
      : a < b  ? a                                                                                 \
               : b,                                                                                 \
      a < b ? a : b, dvt_mul(g, dvti_as_dtype_of(dvt_less_equal(a, b), g)),                        \
      dvt_mul(g, dvti_as_dtype_of(dvt_greater(a, b), g)), 0.1, 0.9, 1.1, 2,                        \
      "the smaller; NaN when either is")                                                           \
    B(maximum, SAME,                                                                               \
      a != a   ? a                                                                                 \
      : b != b ? b                                                                                 \
      : a > b  ? a                                                                                 \
               : b,                                                                                 \
      a > b ? a : b, dvt_mul(g, dvti_as_dtype_of(dvt_greater_equal(a, b), g)),                     \
      dvt_mul(g, dvti_as_dtype_of(dvt_less(a, b), g)), 0.1, 0.9, 1.1, 2,                           \
      "the larger; NaN when either is")                                                            \
    B(atan2, FLOAT, F(atan2)(a, b), 0, dvt_mul(g, dvti_over_square(b, dvt_hypot(a, b))),           \
      dvt_neg(dvt_mul(g, dvti_over_square(a, dvt_hypot(a, b)))), 0.3, 2, 0.3, 2,                   \
      "angle of the point (b, a)")                                                                 \
    B(hypot, FLOAT, F(hypot)(a, b), 0, dvt_mul(g, dvt_div(a, y)), dvt_mul(g, dvt_div(b, y)), 0.3,  \
      2, 0.3, 2, "sqrt(a*a + b*b)")                                                                \
    B(equal, BOOL, a == b, a == b, 0, 0, -1, 1, -1, 1, "a == b")                                   \
    B(not_equal, BOOL, a != b, a != b, 0, 0, -1, 1, -1, 1, "a != b")                               \
    B(less, BOOL, a < b, a < b, 0, 0, -1, 1, -1, 1, "a < b")                                       \
    B(less_equal, BOOL, a <= b, a <= b, 0, 0, -1, 1, -1, 1, "a <= b")                              \
    B(greater, BOOL, a > b, a > b, 0, 0, -1, 1, -1, 1, "a > b")                                    \
    B(greater_equal, BOOL, a >= b, a >= b, 0, 0, -1, 1, -1, 1, "a >= b")                           \
    B(logical_and, BOOL, a != 0 && b != 0, a != 0 && b != 0, 0, 0, -1, 1, -1, 1, "both nonzero")   \
    B(logical_or, BOOL, a != 0 || b != 0, a != 0 || b != 0, 0, 0, -1, 1, -1, 1, "either nonzero")  \
    B(logical_xor, BOOL, (a != 0) != (b != 0), (a != 0) != (b != 0), 0, 0, -1, 1, -1, 1,           \
      "exactly one nonzero")

/* Everything else but reductions and optimizers, which have tables of their own: name, doc. Shapes and
   gradients are in 4_ops and 5_grad, one file per family. */
#define DVTI_OTHER_TABLE(O)                                                                        \
    O(copy, "elements to another place, dtype or context")                                         \
    O(where, "condition ? a : b")                                                                  \
    O(clip, "min(max(x, low), high)")                                                              \
    O(reshape, "other shape, same elements")                                                       \
    O(transpose, "other order of axes")                                                            \
    O(slice, "every step-th element between two bounds")                                           \
    O(unslice, "a slice put into zeros: the gradient of slice")                                    \
    O(broadcast_to, "repeated along new or length-1 axes")                                         \
    O(variance, "sum of squared differences from a mean over axes")                                \
    O(cumsum, "sum of all so far along an axis")                                                   \
    O(sort, "elements in order")                                                                   \
    O(argsort, "positions of the elements in order")                                               \
    O(topk, "the k largest or smallest in order")                                                  \
    O(softmax, "exponentials divided by their sum")                                                \
    O(log_softmax, "logarithm of softmax")                                                         \
    O(layer_norm, "rows with mean 0 and variance 1")                                               \
    O(matmul, "matrix product with batches")                                                       \
    O(concat, "arrays joined along an axis")                                                       \
    O(take, "slices by index")                                                                     \
    O(take_add, "slices added by index: the gradient of take")                                     \
    O(take_along, "one element per position by index")                                             \
    O(take_along_add, "elements added by index: the gradient of take_along")                       \
    O(one_hot, "1 at the index")                                                                   \
    O(conv2d, "convolution")                                                                       \
    O(conv2d_data, "gradient of conv2d to its data")                                               \
    O(conv2d_weight, "gradient of conv2d to its weights")                                          \
    O(max_pool2d, "largest of each window")                                                        \
    O(max_pool2d_data, "gradient of max_pool2d")                                                   \
    O(max_pool2d_pick, "values at the places of the maxima: the gradient of max_pool2d_data")      \
    O(avg_pool2d, "mean of each window")                                                           \
    O(avg_pool2d_data, "gradient of avg_pool2d")                                                   \
    O(uniform, "uniform random numbers")                                                           \
    O(normal, "normal random numbers")                                                             \
    O(randint, "random integers")                                                                  \
    O(bernoulli, "random 0 and 1")                                                                 \
    O(permutation, "random order")                                                                 \
    O(fill, "one value everywhere")                                                                \
    O(arange, "evenly spaced values")                                                              \
    O(eye, "ones on a diagonal")

#define DVTI_ENUM_UNARY(name, rule, f, i, grad, lo, hi, doc) DVTI_OP_##name,
#define DVTI_ENUM_BINARY(name, rule, f, i, ga, gb, la, ha, lb, hb, doc) DVTI_OP_##name,
#define DVTI_ENUM_OTHER(name, doc) DVTI_OP_##name,
#define DVTI_ENUM_REDUCE(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)   \
    DVTI_OP_##name,
#define DVTI_ENUM_OPTIMIZER(name, kind, make, epsilon, few, many, states, flag, p0, p1, p2, p3,    \
                            doc)                                                                   \
    DVTI_OP_##name,

typedef enum dvti_op {
    DVTI_UNARY_TABLE(DVTI_ENUM_UNARY) DVTI_BINARY_TABLE(DVTI_ENUM_BINARY)
        DVTI_OTHER_TABLE(DVTI_ENUM_OTHER) DVTI_REDUCE_TABLE(DVTI_ENUM_REDUCE)
            DVTI_OPTIMIZER_TABLE(DVTI_ENUM_OPTIMIZER) DVTI_OP_COUNT
} dvti_op;

#undef DVTI_ENUM_UNARY
#undef DVTI_ENUM_BINARY
#undef DVTI_ENUM_OTHER
#undef DVTI_ENUM_REDUCE
#undef DVTI_ENUM_OPTIMIZER

/* Rows below DVTI_UNARY_END have one argument, those from there to below DVTI_BINARY_END two;
   reductions begin at
   DVTI_REDUCE_BEGIN, optimizers at DVTI_OPTIMIZER_BEGIN. */
#define DVTI_COUNT_OTHER(name, doc) +1
#define DVTI_COUNT_REDUCE(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc) +1
#define DVTI_COUNT_UNARY(name, rule, f, i, grad, lo, hi, doc) +1
#define DVTI_COUNT_BINARY(name, rule, f, i, ga, gb, la, ha, lb, hb, doc) +1

enum {
    DVTI_UNARY_END = 0 DVTI_UNARY_TABLE(DVTI_COUNT_UNARY),
    DVTI_BINARY_END = DVTI_UNARY_END DVTI_BINARY_TABLE(DVTI_COUNT_BINARY),
    DVTI_REDUCE_BEGIN = DVTI_BINARY_END DVTI_OTHER_TABLE(DVTI_COUNT_OTHER),
    DVTI_OPTIMIZER_BEGIN = DVTI_REDUCE_BEGIN DVTI_REDUCE_TABLE(DVTI_COUNT_REDUCE)
};

#undef DVTI_COUNT_OTHER
#undef DVTI_COUNT_REDUCE
#undef DVTI_COUNT_UNARY
#undef DVTI_COUNT_BINARY

#endif
