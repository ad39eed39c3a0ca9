/* THE table of elementwise operations. One row says everything about an operation: its enum, the
   public functions and their checks, the value on every backend, its cost, its gradient and what
   that reads, the tests and the documentation. See docs/ADDING_AN_OP.md. Rows have no order.

   Columns
     name     dvt_<name>, DVTI_OP_<name>
     rule     SAME  the dtype is kept
              NOBOOL  SAME, but bool is refused
              FLOAT  integers and bool become float32 first
              BOOL  the result is bool
     cost     QUICK  a few instructions: memory takes longer
              DIVISION  QUICK on a CPU, FUNCTION on a GPU
              FUNCTION  exp, log, ...
              LONG  several functions or corrections: pow, hypot, ...
     F        the value for a floating type, of x, or of a and b. F(exp) is expf or exp, C(0.5) a
              constant of the type, DVTI_LARGEST its largest finite number. Also the CUDA text
     I        the value in int64_t arithmetic (results wrap to the dtype); 0 for FLOAT rows, which
              never see integers
     vector   the value of whole vectors, in SIMD primitives: W(add) is V(add) of floats and
              V(dadd) of doubles (simd/vec.inl). BOOL rows give a mask; p are the loop's parameters
              (dvti_loop). DVTI_NO_VECTOR: F computes one element after the other
     math     files of 2_core/math/ with float32's function, for CUDA programs; 0: F is used
     grad     recorded operations on g (gradient of the result), x or a and b (inputs), y (result);
              0: no gradient
     reads    which values grad reads: letters of X, A, B, Y (the result), or NONE
     lo, hi   an interval where value and gradient are smooth, for tests (second pair: argument b)
     doc      one line

   An expansion may name the first columns and take `...` for the rest. */
#ifndef DVTI_OP_TABLE_H
#define DVTI_OP_TABLE_H
#if !defined(DVTI_REDUCE_TABLE) || !defined(DVTI_OPTIMIZER_TABLE)
#error "dvt_op_table.h: include dvt_reduce_table.h and dvt_optimizer_table.h before it"
#endif

/* clang-format off */
/* name, rule, cost, F, I, vector, math, grad, reads, lo, hi, doc */
#define DVTI_UNARY_TABLE(R)                                                                        \
    R(neg, NOBOOL, QUICK, -x, DVTI_WRAP(0, -, x), W(neg)(x), 0,                                    \
      dvt_neg(g), NONE, -2, 2, "-x")                                                               \
    R(abs, SAME, QUICK, F(fabs)(x), x < 0 ? DVTI_WRAP(0, -, x) : x, W(abs)(x), 0,                  \
      dvt_mul(g, dvt_sign(x)), X, 0.2, 2, "absolute value")                                        \
    R(sign, SAME, QUICK, x > 0 ? C(1) : x < 0 ? C(-1) : x + 0, (x > 0) - (x < 0), W(sign)(x), 0,   \
      dvti_no_gradient(g), NONE, 0.2, 2, "-1, 0 or 1; NaN stays")                                  \
    R(square, SAME, QUICK, x * x, DVTI_WRAP(x, *, x), W(mul)(x, x), 0,                             \
      dvt_mul(g, dvt_mul_scalar(x, 2)), X, -2, 2, "x * x")                                         \
    R(relu, SAME, QUICK, x > 0 ? x : x != x ? x : C(0), x > 0 ? x : 0,                             \
      W(select)(W(le)(x, W(zero)()), W(zero)(), x), 0,                                             \
      dvt_where_scalar(y, g, 0), Y, 0.2, 2, "max(x, 0)")                                           \
    R(floor, SAME, QUICK, F(floor)(x), x, W(floor)(x), 0,                                          \
      dvti_no_gradient(g), NONE, 0.1, 0.9, "largest integer <= x")                                 \
    R(ceil, SAME, QUICK, F(ceil)(x), x, W(ceil)(x), 0,                                             \
      dvti_no_gradient(g), NONE, 0.1, 0.9, "smallest integer >= x")                                \
    R(round, SAME, QUICK, F(rint)(x), x, W(round)(x), 0,                                           \
      dvti_no_gradient(g), NONE, 0.6, 0.9, "nearest integer, ties to even")                        \
    R(trunc, SAME, QUICK, F(trunc)(x), x, W(trunc)(x), 0,                                          \
      dvti_no_gradient(g), NONE, 0.1, 0.9, "x rounded toward 0")                                   \
    R(reciprocal, FLOAT, FUNCTION, C(1) / x, 0, W(div)(W(set)(1), x), 0,                           \
      dvt_neg(dvt_mul(dvt_mul(g, y), y)), Y, 0.5, 2, "1 / x")                                      \
    R(sqrt, FLOAT, FUNCTION, F(sqrt)(x), 0, W(sqrt)(x), 0,                                         \
      dvt_div(dvt_mul_scalar(g, 0.5), y), Y, 0.3, 3, "square root")                                \
    R(rsqrt, FLOAT, FUNCTION, C(1) / F(sqrt)(x), 0, W(div)(W(set)(1), W(sqrt)(x)), 0,              \
      dvt_mul(dvt_mul(dvt_mul(dvt_mul_scalar(g, -0.5), y), y), y), Y, 0.5, 3, "1 / sqrt(x)")       \
    R(exp, FLOAT, FUNCTION, F(exp)(x), 0, W(exp)(x), "exp.inl",                                    \
      dvt_mul(g, y), Y, -2, 2, "e to the power x")                                                 \
    R(exp2, FLOAT, FUNCTION, F(exp2)(x), 0, W(exp2)(x), "exp.inl",                                 \
      dvt_mul(g, dvt_mul_scalar(y, 0.69314718055994530942)), Y, -2, 2, "2 to the power x")         \
    R(expm1, FLOAT, FUNCTION, F(expm1)(x), 0, W(expm1)(x), "exp.inl",                              \
      dvt_mul(g, dvt_exp(x)), X, -2, 2, "exp(x) - 1, accurate near 0")                             \
    R(log, FLOAT, FUNCTION, F(log)(x), 0, W(log)(x), "log.inl",                                    \
      dvt_div(g, x), X, 0.3, 3, "natural logarithm")                                               \
    R(log2, FLOAT, FUNCTION, F(log2)(x), 0, W(log2)(x), "log.inl",                                 \
      dvt_div(dvt_mul_scalar(g, 1.4426950408889634074), x), X, 0.3, 3, "logarithm to base 2")      \
    R(log10, FLOAT, FUNCTION, F(log10)(x), 0, W(log10)(x), "log.inl",                              \
      dvt_div(dvt_mul_scalar(g, 0.43429448190325182765), x), X, 0.3, 3, "logarithm to base 10")    \
    R(log1p, FLOAT, FUNCTION, F(log1p)(x), 0, W(log1p)(x), "log.inl",                              \
      dvt_div(g, dvt_add_scalar(x, 1)), X, -0.5, 2, "log(1 + x), accurate near 0")                 \
    R(sin, FLOAT, FUNCTION, F(sin)(x), 0, W(sin)(x), "quarter_turns.inl angles.inl",               \
      dvt_mul(g, dvt_cos(x)), X, -3, 3, "sine")                                                    \
    R(cos, FLOAT, FUNCTION, F(cos)(x), 0, W(cos)(x), "quarter_turns.inl angles.inl",               \
      dvt_neg(dvt_mul(g, dvt_sin(x))), X, -3, 3, "cosine")                                         \
    R(tan, FLOAT, FUNCTION, F(tan)(x), 0, W(tan)(x), "quarter_turns.inl angles.inl",               \
      dvt_mul(g, dvt_add_scalar(dvt_square(y), 1)), Y, -1, 1, "tangent")                           \
    R(asin, FLOAT, FUNCTION, F(asin)(x), 0, W(asin)(x), "arcs.inl",                                \
      dvti_grad_asin(g, x), X, -0.8, 0.8, "inverse sine")                                          \
    R(acos, FLOAT, FUNCTION, F(acos)(x), 0, W(acos)(x), "arcs.inl",                                \
      dvt_neg(dvti_grad_asin(g, x)), X, -0.8, 0.8, "inverse cosine")                               \
    R(atan, FLOAT, FUNCTION, F(atan)(x), 0, W(atan)(x), "arcs.inl",                                \
      dvti_over_square(g, dvt_hypot_scalar(x, 1)), X, -2, 2, "inverse tangent")                    \
    R(sinh, FLOAT, FUNCTION, F(sinh)(x), 0, W(sinh)(x), "exp.inl",                                 \
      dvt_mul(g, dvt_cosh(x)), X, -2, 2, "hyperbolic sine")                                        \
    R(cosh, FLOAT, FUNCTION, F(cosh)(x), 0, W(cosh)(x), "exp.inl",                                 \
      dvt_mul(g, dvt_sinh(x)), X, -2, 2, "hyperbolic cosine")                                      \
    R(tanh, FLOAT, FUNCTION, F(tanh)(x), 0, W(tanh)(x), "exp.inl piecewise.inl",                   \
      dvt_mul(g, dvt_scalar_sub(1, dvt_square(y))), Y, -2, 2, "hyperbolic tangent")                \
    R(sigmoid, FLOAT, FUNCTION,                                                                    \
      x >= 0 ? C(1) / (C(1) + F(exp)(-x)) : F(exp)(x) / (C(1) + F(exp)(x)), 0,                     \
      W(sigmoid)(x), "exp.inl",                                                                    \
      dvt_mul(g, dvt_mul(y, dvt_scalar_sub(1, y))), Y, -3, 3, "1 / (1 + exp(-x))")                 \
    R(softplus, FLOAT, FUNCTION, x > 0 ? x + F(log1p)(F(exp)(-x)) : F(log1p)(F(exp)(x)), 0,        \
      W(softplus)(x), "exp.inl log.inl softplus.inl",                                              \
      dvt_mul(g, dvt_sigmoid(x)), X, -3, 3, "log(1 + exp(x))")                                     \
    R(erf, FLOAT, FUNCTION, F(erf)(x), 0, W(erf)(x), "exp.inl piecewise.inl",                      \
      dvt_mul(g, dvt_mul_scalar(dvt_exp(dvt_neg(dvt_square(x))), 1.12837916709551257390)), X,      \
      -2, 2, "error function")                                                                     \
    R(gelu, FLOAT, FUNCTION,                                                                       \
      x < -DVTI_LARGEST ? C(-0.0) : C(0.5) * x * F(erfc)(x * C(-0.70710678118654752440)), 0,       \
      W(gelu)(x), "exp.inl piecewise.inl",                                                         \
      dvti_grad_gelu(g, x), X, -2, 2, "x * Phi(x), Phi: standard normal CDF")                      \
    R(isnan, BOOL, QUICK, x != x, 0, W(unord)(x, x), 0,                                            \
      dvti_no_gradient(g), NONE, -1, 1, "is NaN")                                                  \
    R(isinf, BOOL, QUICK, F(fabs)(x) > DVTI_LARGEST, 0,                                            \
      W(gt)(W(abs)(x), W(set)(DVTI_LARGEST)), 0,                                                   \
      dvti_no_gradient(g), NONE, -1, 1, "is infinite")                                             \
    R(isfinite, BOOL, QUICK, F(fabs)(x) <= DVTI_LARGEST, 1,                                        \
      W(le)(W(abs)(x), W(set)(DVTI_LARGEST)), 0,                                                   \
      dvti_no_gradient(g), NONE, -1, 1, "is neither infinite nor NaN")                             \
    R(logical_not, BOOL, QUICK, x == 0, x == 0, W(eq)(x, W(zero)()), 0,                            \
      dvti_no_gradient(g), NONE, -1, 1, "is zero")

/* name, rule, cost, F, I, vector, math; gradient to a, reads, gradient to b, reads; lo and hi of a,
   lo and hi of b, doc */
#define DVTI_BINARY_TABLE(R)                                                                       \
    R(add, SAME, QUICK, a + b, DVTI_WRAP(a, +, b), W(add)(a, b), 0,                                \
      g, NONE, g, NONE, -2, 2, -2, 2, "a + b")                                                     \
    R(sub, NOBOOL, QUICK, a - b, DVTI_WRAP(a, -, b), W(sub)(a, b), 0,                              \
      g, NONE, dvt_neg(g), NONE, -2, 2, -2, 2, "a - b")                                            \
    R(mul, SAME, QUICK, a * b, DVTI_WRAP(a, *, b), W(mul)(a, b), 0,                                \
      dvt_mul(g, b), B, dvt_mul(g, a), A, -2, 2, -2, 2, "a * b")                                   \
    R(div, FLOAT, DIVISION, a / b, 0, W(div)(a, b), 0,                                             \
      dvt_div(g, b), B, dvt_neg(dvt_div(dvt_mul(g, y), b)), BY, -2, 2, 0.5, 2, "a / b")            \
    R(floor_div, SAME, LONG, F(dvti_floor_div)(a, b), dvti_int_floor_div(a, b),                    \
      W(floor_div)(a, b), 0,                                                                       \
      dvti_no_gradient(g), NONE, dvti_no_gradient(g), NONE, 0.1, 0.4, 0.5, 0.9, "floor(a / b)")    \
    R(mod, SAME, LONG, F(dvti_mod)(a, b), dvti_int_mod(a, b), W(mod)(a, b), 0,                     \
      g, NONE, dvt_neg(dvt_mul(g, dvt_floor_div(a, b))), AB, 0.1, 0.4, 0.5, 0.9,                   \
      "a - floor(a / b) * b")                                                                      \
    R(pow, SAME, LONG, F(pow)(a, b), dvti_int_pow(a, b), W(pow)(a, b), "log.inl powers.inl",       \
      dvti_grad_pow_a(g, a, b), AB, dvti_grad_pow_b(g, a, y), AY, 0.4, 2, -2, 2,                   \
      "a to the power b")                                                                          \
    R(minimum, SAME, QUICK, a != a ? a : b != b ? b : a < b ? a : b, a < b ? a : b,                \
      W(minimum)(a, b), 0,                                                                         \
      dvt_mul(g, dvti_as_dtype_of(dvt_less_equal(a, b), g)), AB,                                   \
      dvt_mul(g, dvti_as_dtype_of(dvt_greater(a, b), g)), AB, 0.1, 0.9, 1.1, 2,                    \
      "the smaller; NaN when either is")                                                           \
    R(maximum, SAME, QUICK, a != a ? a : b != b ? b : a > b ? a : b, a > b ? a : b,                \
      W(maximum)(a, b), 0,                                                                         \
      dvt_mul(g, dvti_as_dtype_of(dvt_greater_equal(a, b), g)), AB,                                \
      dvt_mul(g, dvti_as_dtype_of(dvt_less(a, b), g)), AB, 0.1, 0.9, 1.1, 2,                       \
      "the larger; NaN when either is")                                                            \
    R(atan2, FLOAT, LONG, F(atan2)(a, b), 0, W(atan2)(a, b), "arcs.inl",                           \
      dvt_mul(g, dvti_over_square(b, dvt_hypot(a, b))), AB,                                        \
      dvt_neg(dvt_mul(g, dvti_over_square(a, dvt_hypot(a, b)))), AB, 0.3, 2, 0.3, 2,               \
      "angle of the point (b, a)")                                                                 \
    R(hypot, FLOAT, LONG, F(hypot)(a, b), 0, W(hypot)(a, b), "log.inl powers.inl",                 \
      dvt_mul(g, dvt_div(a, y)), AY, dvt_mul(g, dvt_div(b, y)), BY, 0.3, 2, 0.3, 2,                \
      "sqrt(a*a + b*b)")                                                                           \
    R(equal, BOOL, QUICK, a == b, a == b, W(eq)(a, b), 0,                                          \
      0, NONE, 0, NONE, -1, 1, -1, 1, "a == b")                                                    \
    R(not_equal, BOOL, QUICK, a != b, a != b, W(ne)(a, b), 0,                                      \
      0, NONE, 0, NONE, -1, 1, -1, 1, "a != b")                                                    \
    R(less, BOOL, QUICK, a < b, a < b, W(lt)(a, b), 0,                                             \
      0, NONE, 0, NONE, -1, 1, -1, 1, "a < b")                                                     \
    R(less_equal, BOOL, QUICK, a <= b, a <= b, W(le)(a, b), 0,                                     \
      0, NONE, 0, NONE, -1, 1, -1, 1, "a <= b")                                                    \
    R(greater, BOOL, QUICK, a > b, a > b, W(gt)(a, b), 0,                                          \
      0, NONE, 0, NONE, -1, 1, -1, 1, "a > b")                                                     \
    R(greater_equal, BOOL, QUICK, a >= b, a >= b, W(ge)(a, b), 0,                                  \
      0, NONE, 0, NONE, -1, 1, -1, 1, "a >= b")                                                    \
    R(logical_and, BOOL, QUICK, a != 0 && b != 0, a != 0 && b != 0, W(logical_and)(a, b), 0,       \
      0, NONE, 0, NONE, -1, 1, -1, 1, "both nonzero")                                              \
    R(logical_or, BOOL, QUICK, a != 0 || b != 0, a != 0 || b != 0, W(logical_or)(a, b), 0,         \
      0, NONE, 0, NONE, -1, 1, -1, 1, "either nonzero")                                            \
    R(logical_xor, BOOL, QUICK, (a != 0) != (b != 0), (a != 0) != (b != 0),                        \
      W(logical_xor)(a, b), 0,                                                                     \
      0, NONE, 0, NONE, -1, 1, -1, 1, "exactly one nonzero")

/* Elementwise operations with handwritten public functions and gradients. F and I use the operands
   x (or a), b, c, and clip's bounds low and high. Copies move or convert elements, and compute
   nothing.
   name, operands, rule, cost, F, I, vector, reads of any gradient, doc */
#define DVTI_SPECIAL_TABLE(R)                                                                      \
    R(copy, 1, SAME, QUICK, x, x, DVTI_NO_VECTOR, NONE,                                            \
      "elements to another place, dtype or context")                                               \
    R(where, 3, SAME, QUICK, a != 0 ? b : c, a != 0 ? b : c, W(select)(W(nonzero)(a), b, c),       \
      A, "condition ? a : b")                                                                      \
    R(clip, 1, SAME, QUICK, x < low ? low : x > high ? high : x,                                   \
      x < low ? low : x > high ? high : x, W(clip)(x, p), X, "min(max(x, low), high)")

/* All other operations, except reductions and optimizers, which have tables of their own. family:
   its gradient is dvti_grad_<family>; none: no gradient. reads: by the gradient to any input;
   FACTOR: the other input of a product. Shapes are in 4_ops, gradients in 5_grad, one file per
   family.
   name, family, reads, doc */
#define DVTI_OTHER_TABLE(R)                                                                        \
    R(reshape, view, NONE, "other shape, same elements")                                           \
    R(transpose, view, NONE, "other order of axes")                                                \
    R(slice, view, NONE, "every step-th element between two bounds")                               \
    R(unslice, view, NONE, "a slice put into zeros: the gradient of slice")                        \
    R(broadcast_to, view, NONE, "repeated along new axes and axes of extent 1")                    \
    R(variance, none, NONE, "sum of squared differences from a mean over axes")                    \
    R(cumsum, scan, NONE, "cumulative sum along an axis")                                          \
    R(sort, none, NONE, "elements in order")                                                       \
    R(argsort, none, NONE, "indices that sort the elements")                                       \
    R(topk, none, NONE, "the k largest or smallest in order")                                      \
    R(softmax, softmax, Y, "exponentials divided by their sum")                                    \
    R(log_softmax, softmax, Y, "logarithm of softmax")                                             \
    R(cross_entropy, cross_entropy, B, "minus the logarithm of softmax at a label")                \
    R(cross_entropy_data, none, NONE, "gradient of cross_entropy")                                 \
    R(layer_norm, layer_norm, NORM, "rows with mean 0 and variance 1")                             \
    R(layer_norm_data, none, NONE, "gradients of layer_norm")                                      \
    R(batch_norm, batch_norm, NORM, "channels with mean 0 and variance 1")                         \
    R(batch_norm_data, none, NONE, "gradients of batch_norm")                                      \
    R(matmul, matmul, FACTOR, "matrix product with batches")                                       \
    R(concat, index, NONE, "arrays joined along an axis")                                          \
    R(take, index, B, "slices by index")                                                           \
    R(take_add, index, B, "slices added by index: the gradient of take")                           \
    R(take_along, index, B, "one element per position by index")                                   \
    R(take_along_add, index, B, "elements added by index: the gradient of take_along")             \
    R(one_hot, none, NONE, "1 at the index")                                                       \
    R(conv2d, conv, FACTOR, "convolution")                                                         \
    R(conv2d_data, conv, FACTOR, "gradient of conv2d to its data")                                 \
    R(conv2d_weight, conv, FACTOR, "gradient of conv2d to its weights")                            \
    R(max_pool2d, conv, X, "largest of each window")                                               \
    R(max_pool2d_data, conv, B, "gradient of max_pool2d")                                          \
    R(max_pool2d_pick, conv, B,                                                                    \
      "values at the places of the maxima: the gradient of max_pool2d_data")                       \
    R(avg_pool2d, conv, NONE, "mean of each window")                                               \
    R(avg_pool2d_data, conv, NONE, "gradient of avg_pool2d")                                       \
    R(uniform, none, NONE, "uniform random numbers")                                               \
    R(normal, none, NONE, "normal random numbers")                                                 \
    R(randint, none, NONE, "random integers")                                                      \
    R(bernoulli, none, NONE, "random 0 and 1")                                                     \
    R(permutation, none, NONE, "random order")                                                     \
    R(fill, none, NONE, "one value everywhere")                                                    \
    R(arange, none, NONE, "evenly spaced values")                                                  \
    R(eye, none, NONE, "ones on a diagonal")                                                       \
    R(custom, none, NONE, "a kernel of the program")

/* clang-format on */

typedef enum dvti_op {

#define DVTI_ENUM(name, ...) DVTI_OP_##name,
    DVTI_UNARY_TABLE(DVTI_ENUM) DVTI_BINARY_TABLE(DVTI_ENUM) DVTI_SPECIAL_TABLE(DVTI_ENUM)
        DVTI_OTHER_TABLE(DVTI_ENUM) DVTI_REDUCE_TABLE(DVTI_ENUM) DVTI_OPTIMIZER_TABLE(DVTI_ENUM)
#undef DVTI_ENUM
            DVTI_OP_COUNT
} dvti_op;

/* Numbers of the first reduction and the first optimizer: the others of their tables follow in
   order. */
enum {

#define DVTI_COUNT(name, ...) +1
    DVTI_REDUCE_BEGIN = 0 DVTI_UNARY_TABLE(DVTI_COUNT) DVTI_BINARY_TABLE(DVTI_COUNT)
        DVTI_SPECIAL_TABLE(DVTI_COUNT) DVTI_OTHER_TABLE(DVTI_COUNT),
    DVTI_OPTIMIZER_BEGIN = DVTI_REDUCE_BEGIN DVTI_REDUCE_TABLE(DVTI_COUNT)
#undef DVTI_COUNT
};

typedef enum dvti_rule {
    DVTI_RULE_SAME,
    DVTI_RULE_NOBOOL,
    DVTI_RULE_FLOAT,
    DVTI_RULE_BOOL
} dvti_rule;

typedef enum dvti_cost {
    DVTI_COST_QUICK,
    DVTI_COST_DIVISION,
    DVTI_COST_FUNCTION,
    DVTI_COST_LONG
} dvti_cost;

/* Values that the gradient to one input reads: bits 0 and 1 the first two inputs, bit 2 the
   result. */
#define DVTI_READS_NONE 0
#define DVTI_READS_X 1
#define DVTI_READS_A 1
#define DVTI_READS_B 2
#define DVTI_READS_AB 3
#define DVTI_READS_Y 4
#define DVTI_READS_XY 5
#define DVTI_READS_AY 5
#define DVTI_READS_BY 6
/* The same for all gradients of an operation: four bits for each of the first two inputs, and four
   for any further one. */
#define DVTI_EACH_NONE 0
#define DVTI_EACH_A 0x111
#define DVTI_EACH_X 0x111
#define DVTI_EACH_B 0x222
#define DVTI_EACH_Y 0x444
#define DVTI_EACH_XY 0x555
#define DVTI_EACH_FACTOR 0x012
#define DVTI_EACH_NORM 0x013

#endif
