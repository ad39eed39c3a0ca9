/* THE table of reductions. One row gives: the enum, the public function and its checks, the oracle,
   the CPU loops for integers and for both float types, the CUDA text, the gradient and what it
   reads, the tests (value and gradient) and the tables of the documents.
   See docs/ADDING_A_REDUCTION.md.

   A reduction joins the terms of all elements and finishes the sum:

       result = finish(join(join(term(x0), term(x1)), term(x2)), ...)

   Columns
     name      dvt_<name>, DVTI_OP_<name>
     rule      SUM    floats keep their dtype, integers and bool give int64
               FLOAT  floats keep their dtype, integers and bool give float32
               SAME   the dtype of the elements; no result without elements
               BOOL   bool
               PLACE  the int64 position of the element that join chooses; not without elements
     method    how vectors compute it
               ADD        sums of x: adds four float32 or eight 16-bit floats in float32 first
               WIDE2      each element widens to float64 at once; two registers of partial results
               WIDE4      the same with four registers, because join has a long latency
               EXTREME    comparison in the elements' own type
               BITS       any and all, from the bits of the elements
               LOGSUMEXP  subtracts the maximum of the elements first, against overflow
     none      the neutral element; the initial value is its term
     term      the term of an element x
     join      add, mul, smaller or larger (the last two return NaN if one is NaN)
     finish    the result from the joined terms s of n elements
     reads     what the gradient reads: X, Y (the result), XY or NONE
     grad      recorded operations on g (gradient of the result), x (the input), y (the result). g
               and y have extent 1 on the reduced axes, whose bits are in `mask`. NULL: never
               recorded
     lo, hi    an interval where value and gradient are smooth, for tests
     doc       one line

   term and finish use primitives: W(add), W(sub), W(mul), W(abs), W(neg). FLOAT, which sees no
   integers, also has W(div) and W(sqrt), BITS W(nonzero), LOGSUMEXP W(exp) and W(log). Each
   expansion of the table defines W: for scalars, vectors of float64, int64, CUDA. DVTI_HIGHEST and
   DVTI_LOWEST are the largest and smallest values of the class. */
#ifndef DVTI_REDUCE_TABLE_H
#define DVTI_REDUCE_TABLE_H

/* name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc */
#define DVTI_REDUCE_TABLE(R)                                                                       \
    R(sum, SUM, ADD, 0, x, add, s, NONE, dvt_broadcast_to(g, x->shape), -2, 2, "sum over axes")    \
    R(mean, FLOAT, ADD, 0, x, add, W(div)(s, n), NONE,                                             \
      dvt_broadcast_to(dvt_div_scalar(g, (double)dvti_reduced_count(x, mask)), x->shape), -2, 2,   \
      "mean over axes")                                                                            \
    R(prod, SUM, WIDE4, 1, x, mul, s, X, dvti_grad_prod(x, g, mask), -2, 2, "product over axes")   \
    R(min, SAME, EXTREME, DVTI_HIGHEST, x, smaller, s, XY, dvti_grad_extreme(x, g, y, mask), -2,   \
      2, "smallest over axes")                                                                     \
    R(max, SAME, EXTREME, DVTI_LOWEST, x, larger, s, XY, dvti_grad_extreme(x, g, y, mask), -2, 2,  \
      "largest over axes")                                                                         \
    R(any, BOOL, BITS, 0, W(nonzero)(x), larger, s, NONE, NULL, -1, 1, "any nonzero")              \
    R(all, BOOL, BITS, 1, W(nonzero)(x), smaller, s, NONE, NULL, -1, 1, "all nonzero")             \
    R(norm, FLOAT, WIDE2, 0, W(mul)(x, x), add, W(sqrt)(s), XY, dvti_grad_norm(x, g, y, mask), -2, \
      2, "root of the sum of squares")                                                             \
    R(logsumexp, FLOAT, LOGSUMEXP, DVTI_LOWEST, W(exp)(x), add, W(log)(s), XY,                     \
      dvti_grad_logsumexp(x, g, y, mask), -2, 2, "log of the sum of exponentials")                 \
    R(argmin, PLACE, EXTREME, DVTI_HIGHEST, x, smaller, s, NONE, NULL, -2, 2,                      \
      "position of the smallest")                                                                  \
    R(argmax, PLACE, EXTREME, DVTI_LOWEST, x, larger, s, NONE, NULL, -2, 2,                        \
      "position of the largest")

typedef enum dvti_reduce_rule {
    DVTI_RESULT_SUM,
    DVTI_RESULT_FLOAT,
    DVTI_RESULT_SAME,
    DVTI_RESULT_BOOL,
    DVTI_RESULT_PLACE
} dvti_reduce_rule;

typedef enum dvti_reduce_method {
    DVTI_METHOD_ADD,
    DVTI_METHOD_WIDE2,
    DVTI_METHOD_WIDE4,
    DVTI_METHOD_EXTREME,
    DVTI_METHOD_BITS,
    DVTI_METHOD_LOGSUMEXP
} dvti_reduce_method;

typedef enum dvti_join {
    DVTI_JOIN_add,
    DVTI_JOIN_mul,
    DVTI_JOIN_smaller,
    DVTI_JOIN_larger
} dvti_join;

/* The columns that are needed at run time. */
typedef struct dvti_reduce_row {
    const char *name; /* "dvt_sum" */
    dvti_reduce_rule rule;
    dvti_reduce_method method;
    dvti_join join;
} dvti_reduce_row;

#endif
