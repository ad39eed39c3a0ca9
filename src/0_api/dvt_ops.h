/* [dvt:ops] Arithmetic. Every operation runs where its inputs are, and its result stays there.

   Shapes: broadcasting as in NumPy.  Dtypes: dvt_promote; "float" operations turn integers into
   float32. Copies: never between contexts; memory for the result is new.  Waits: no. Owns: the
   result belongs to the innermost scope.  NULL inputs give NULL. Errors: CONTEXT (inputs on
   different contexts), SHAPE, DTYPE, AXIS, HOST_MEMORY, DEVICE_MEMORY.

   A form that ends in _ writes its result into its first argument and returns that: it neither
   broadcasts that argument nor turns its integers into fractions (DTYPE), and refuses recorded
   arrays while recording (GRAD) and broadcast views (VALUE). dvt_NAME_scalar(x, s) has a number on
   the right, dvt_scalar_NAME(s, x) on the left. An integer array and an integral number stay
   integer; a number that the dtype cannot hold wraps (300 is 44 as uint8). A bool array and an
   integral number other than 0 and 1 give int64. */

#define DVT_DECLARE_UNARY(name)                                                                    \
    DVT_API dvt_array *dvt_##name(dvt_array *x);                                                   \
    DVT_API dvt_array *dvt_##name##_(dvt_array *x);
#define DVT_DECLARE_TEST(name) DVT_API dvt_array *dvt_##name(dvt_array *x);
#define DVT_DECLARE_BINARY(name)                                                                   \
    DVT_API dvt_array *dvt_##name(dvt_array *a, dvt_array *b);                                     \
    DVT_API dvt_array *dvt_##name##_(dvt_array *a, dvt_array *b);                                  \
    DVT_API dvt_array *dvt_##name##_scalar(dvt_array *x, double s);                                \
    DVT_API dvt_array *dvt_##name##_scalar_(dvt_array *x, double s);                               \
    DVT_API dvt_array *dvt_scalar_##name(double s, dvt_array *x);
#define DVT_DECLARE_COMPARE(name)                                                                  \
    DVT_API dvt_array *dvt_##name(dvt_array *a, dvt_array *b);                                     \
    DVT_API dvt_array *dvt_##name##_scalar(dvt_array *x, double s);                                \
    DVT_API dvt_array *dvt_scalar_##name(double s, dvt_array *x);

/* ---- two arguments ---- */
DVT_DECLARE_BINARY(add)       /* a + b */
DVT_DECLARE_BINARY(sub)       /* a - b; not for two bools */
DVT_DECLARE_BINARY(mul)       /* a * b */
DVT_DECLARE_BINARY(div)       /* a / b, float */
DVT_DECLARE_BINARY(floor_div) /* floor(a / b); integers by 0 give 0 */
DVT_DECLARE_BINARY(mod)       /* a - floor(a / b) * b, with b's sign; integers by 0 give 0 */
/* a to the power b; integers to a negative power are truncated. Exponents -1, 0, 0.5, 1, 2 and 3
   give 1 / a, 1, sqrt(a), a, a * a and a * a * a rounded once (cubes of float64 below 1e-290: 1
   ulp). As in C, pow(-0, 0.5) is 0 and pow(-INFINITY, 0.5) is INFINITY, unlike NumPy's x ** 0.5. */
DVT_DECLARE_BINARY(pow)
DVT_DECLARE_BINARY(minimum) /* the smaller; NaN when either is; of equals a gets the gradient */
DVT_DECLARE_BINARY(maximum) /* the larger; NaN when either is; of equals a gets the gradient */
DVT_DECLARE_BINARY(atan2)   /* the angle of the point (b, a), float */
DVT_DECLARE_BINARY(hypot)   /* sqrt(a*a + b*b) without overflow, float */

/* Results are bool. */
DVT_DECLARE_COMPARE(equal)
DVT_DECLARE_COMPARE(not_equal)
DVT_DECLARE_COMPARE(less)
DVT_DECLARE_COMPARE(less_equal)
DVT_DECLARE_COMPARE(greater)
DVT_DECLARE_COMPARE(greater_equal)
DVT_DECLARE_COMPARE(logical_and) /* nonzero counts as true */
DVT_DECLARE_COMPARE(logical_or)
DVT_DECLARE_COMPARE(logical_xor)

/* ---- one argument. Functions of float32, float16 and bfloat16, and pow, atan2 and hypot, have the
   same bits (but for a NaN's) on GPUs and on every ISA target but "reference". docs/OPERATIONS.md
   has their errors in ulp. ---- */
DVT_DECLARE_UNARY(neg) /* -x; not for bool */
DVT_DECLARE_UNARY(abs)
DVT_DECLARE_UNARY(sign) /* -1, 0 or 1; NaN stays */
DVT_DECLARE_UNARY(square)
DVT_DECLARE_UNARY(relu) /* max(x, 0); NaN stays */
DVT_DECLARE_UNARY(floor)
DVT_DECLARE_UNARY(ceil)
DVT_DECLARE_UNARY(round) /* ties to even */
DVT_DECLARE_UNARY(trunc)
/* float from here on */
DVT_DECLARE_UNARY(reciprocal)
DVT_DECLARE_UNARY(sqrt)
DVT_DECLARE_UNARY(rsqrt) /* 1 / sqrt(x) */
DVT_DECLARE_UNARY(exp)
DVT_DECLARE_UNARY(exp2)
DVT_DECLARE_UNARY(expm1)
DVT_DECLARE_UNARY(log)
DVT_DECLARE_UNARY(log2)
DVT_DECLARE_UNARY(log10)
DVT_DECLARE_UNARY(log1p)
DVT_DECLARE_UNARY(sin)
DVT_DECLARE_UNARY(cos)
DVT_DECLARE_UNARY(tan)
DVT_DECLARE_UNARY(asin)
DVT_DECLARE_UNARY(acos)
DVT_DECLARE_UNARY(atan)
DVT_DECLARE_UNARY(sinh)
DVT_DECLARE_UNARY(cosh)
DVT_DECLARE_UNARY(tanh)
DVT_DECLARE_UNARY(sigmoid)  /* 1 / (1 + exp(-x)) */
DVT_DECLARE_UNARY(softplus) /* log(1 + exp(x)) without overflow */
DVT_DECLARE_UNARY(erf)
DVT_DECLARE_UNARY(gelu) /* x/2 * (1 + erf(x / sqrt 2)) */
/* Results are bool. */
DVT_DECLARE_TEST(isnan)
DVT_DECLARE_TEST(isinf)
DVT_DECLARE_TEST(isfinite)
DVT_DECLARE_TEST(logical_not)

/* ---- select ---- */
/* condition ? a : b, all three broadcast; nonzero conditions hold. */
DVT_API dvt_array *dvt_where(dvt_array *condition, dvt_array *a, dvt_array *b);
/* The same with a number in place of b, NumPy's where(condition, a, 0.0), or in place of a. The
   number has no dtype of its own: as in dvt_NAME_scalar. */
DVT_API dvt_array *dvt_where_scalar(dvt_array *condition, dvt_array *a, double s);
DVT_API dvt_array *dvt_scalar_where(dvt_array *condition, double s, dvt_array *b);
/* min(max(x, low), high). Use -INFINITY or INFINITY for no bound; NaN stays. Errors: VALUE (low >
 * high or NaN). */
DVT_API dvt_array *dvt_clip(dvt_array *x, double low, double high);
DVT_API dvt_array *dvt_clip_(dvt_array *x, double low, double high);

/* ---- reductions: dvt_sum(x, DVT_ALL), dvt_sum(x, DVT_AXES(0, -1)).
   Shapes: the reduced axes are dropped. dvt_sum(x, DVT_KEEPDIMS(1)) and
   dvt_sum(x, dvt_keepdims(DVT_ALL)) leave them with extent 1.
   Bits: the same for any number of threads. Another memory layout of the same elements, such as a
   transposed view and its copy, may change the last bits of sums, products, norms, variances and
   softmax. Other results, and all of integers, do not depend on the layout.
   Precision: sums are formed in float64, those of integers in int64. Up to four float32 or eight
   16-bit floats may be added in float32 before, where a sum of huge ones overflows. ---- */
DVT_API dvt_array *dvt_sum(dvt_array *x, dvt_axes axes); /* integers give int64 */
DVT_API dvt_array *dvt_prod(dvt_array *x, dvt_axes axes);
DVT_API dvt_array *dvt_mean(dvt_array *x, dvt_axes axes); /* float; NaN without elements */
/* Variance and standard deviation, divided by count - ddof: 0 as in NumPy, 1 for samples. float. */
DVT_API dvt_array *dvt_var(dvt_array *x, dvt_axes axes, double ddof);
DVT_API dvt_array *dvt_std(dvt_array *x, dvt_axes axes, double ddof);
/* NaN wins; equal extremes share the gradient. Errors: SHAPE (a reduced axis is empty). */
DVT_API dvt_array *dvt_min(dvt_array *x, dvt_axes axes);
DVT_API dvt_array *dvt_max(dvt_array *x, dvt_axes axes);
/* The first position of the extreme, int64; the first NaN wins. Along one axis, or with DVT_ALL in
   the flattened array. Errors: SHAPE (the axis is empty), AXIS (several axes). */
DVT_API dvt_array *dvt_argmin(dvt_array *x, dvt_axes axes);
DVT_API dvt_array *dvt_argmax(dvt_array *x, dvt_axes axes);
DVT_API dvt_array *dvt_any(dvt_array *x, dvt_axes axes); /* bool */
DVT_API dvt_array *dvt_all(dvt_array *x, dvt_axes axes); /* bool */
/* sqrt of the sum of squares (Frobenius over all axes), float. */
DVT_API dvt_array *dvt_norm(dvt_array *x, dvt_axes axes);
/* log(sum(exp(x))) without overflow, float. */
DVT_API dvt_array *dvt_logsumexp(dvt_array *x, dvt_axes axes);

/* ---- comparing arrays, by NumPy's rules. Copies: no array between contexts. Nothing is recorded.
   a and b broadcast, but for dvt_array_equal; integers are compared in float64, float16 and
   bfloat16 in float32. ---- */

typedef enum dvt_nan_rule { DVT_NAN_DIFFERS, DVT_NAN_EQUALS } dvt_nan_rule;

/* |a - b| <= atol + rtol |b|, or a == b; an infinity is close to itself alone. bool. NaN is close
   to nothing, or to NaN with DVT_NAN_EQUALS. NumPy's tolerances are 1e-5 and 1e-8. Waits: no.
   Errors: RANGE (rtol or atol negative or NaN), VALUE (nan). */
DVT_API dvt_array *dvt_isclose(dvt_array *a, dvt_array *b, double rtol, double atol,
                               dvt_nan_rule nan);
/* Whether dvt_isclose holds everywhere; true without elements. Copies: one bool to main memory.
   Waits: yes. Errors: as dvt_isclose, CONTEXT (transfer guard); false is returned. */
DVT_API bool dvt_allclose(dvt_array *a, dvt_array *b, double rtol, double atol, dvt_nan_rule nan);
/* Whether shapes and all values are equal, whatever the dtypes. Copies, Waits: as dvt_allclose.
   Errors: CONTEXT, VALUE (nan); false is returned. */
DVT_API bool dvt_array_equal(dvt_array *a, dvt_array *b, dvt_nan_rule nan);

/* ---- along one axis. Shapes: as x. Errors: AXIS (out of range; an array of 0 axes has none:
   dvt_reshape first). ---- */
/* The sum of all elements so far; integers give int64. Formed in float64 (int64 for integers and
   bool), in order. Differentiable. */
DVT_API dvt_array *dvt_cumsum(dvt_array *x, int axis);

typedef enum dvt_order { DVT_ASCENDING, DVT_DESCENDING } dvt_order;

/* The elements in order; their positions, int64. Stable in both orders: equal elements keep their
   order, and -0 equals +0. NaN is the largest: last in ascending order, as in NumPy. dvt_sort is
   differentiable. Errors: VALUE (order). */
DVT_API dvt_array *dvt_sort(dvt_array *x, int axis, dvt_order order);
DVT_API dvt_array *dvt_argsort(dvt_array *x, int axis, dvt_order order);

typedef enum dvt_extreme { DVT_LARGEST, DVT_SMALLEST } dvt_extreme;

/* The k largest elements, the largest first; or the k smallest, the smallest first: the first k of
   dvt_sort. indices, unless NULL, receives their positions, int64; NULL when the call fails.
   Shapes: extent k along the axis, which may be 0.  Differentiable.  Owns: the innermost scope owns
   both.  Errors: RANGE (k < 0, or more than there are), VALUE (extreme). */
DVT_API dvt_array *dvt_topk(dvt_array *x, int64_t k, int axis, dvt_extreme extreme,
                            dvt_array **indices);
/* float. Each row's maximum is subtracted first. */
DVT_API dvt_array *dvt_softmax(dvt_array *x, int axis);
DVT_API dvt_array *dvt_log_softmax(dvt_array *x, int axis);

/* ---- matrix products. Sums run in a fixed order; float16 and bfloat16 are summed in float32. ----
 */
/* Multiplies the matrices of a and b: NumPy's matmul.
   Shapes: (..., n, k) x (..., k, m) -> (..., n, m); batch axes broadcast; one axis is a row (a) or
   a column (b), and leaves the result.
   Copies: where a and b have different dtypes.  Waits: no.  Errors: SHAPE, CONTEXT. */
DVT_API dvt_array *dvt_matmul(dvt_array *a, dvt_array *b);

/* Every field combines with every other; all zeros: dvt_matmul. */
typedef struct dvt_matmul_desc {
    /* Exchange the last two axes first, without a copy; one axis stays as it is. */
    bool transpose_a, transpose_b;
    /* Convert a and b to dtype first, which is the result's. false: to their common dtype. */
    bool convert;
    dvt_dtype dtype; /* with convert */
    dvt_array *out;  /* NULL: a new array; else the array that receives the result */
} dvt_matmul_desc;

/* Multiplies as desc says (NULL: all zeros). Returns the result, which is desc->out if set.

       dvt_matmul_desc d = {0};
       d.transpose_b = true;
       d.convert = true, d.dtype = DVT_I32; (a and b are int8: the sums do not wrap at 8 bits)
       y = dvt_matmul_with(a, b, &d);

   dtype: as NumPy's matmul(..., dtype=..., casting='unsafe'). cpu() multiplies int8 and uint8 to
   DVT_I32 without converted copies; wider integers are many times slower. Integer results have no
   gradient.
   out: has the result's shape; its old values are not read. After the sums, the result is converted
   to out's dtype as dvt_copy_into does.
   Copies: never where out is contiguous and of the product's dtype, a and b are of one dtype, and
   out does not overlap them; then nothing is allocated either. Otherwise the product is computed in
   memory of its own first.
   Waits: no.  Owns: nothing new with out.
   Errors: SHAPE (also out's), DTYPE (DVT_BOOL, no dtype, dtype without convert, an out that cannot
   hold the result), GRAD (recorded arrays with out, while recording), VALUE (out is a broadcast
   view), CONTEXT. A call that fails leaves out as it was; only what fails later in a GPU's queue
   leaves anything there. */
DVT_API dvt_array *dvt_matmul_with(dvt_array *a, dvt_array *b, const dvt_matmul_desc *desc);
/* NumPy's dot: the last axis of a with the last but one of b (its last, when b has one axis). */
DVT_API dvt_array *dvt_dot(dvt_array *a, dvt_array *b);

/* ---- joining, splitting, indexing ---- */
/* n arrays along an existing axis; along a new one. Errors: RANGE (n < 1). */
DVT_API dvt_array *dvt_concat(dvt_array *const *arrays, int n, int axis);
DVT_API dvt_array *dvt_stack(dvt_array *const *arrays, int n, int axis);
/* n views of x along an axis into out[0..n), of equal extents. Copies: never.
   Errors: RANGE (n < 1), AXIS, SHAPE (n does not divide the extent). */
DVT_API dvt_status dvt_split(dvt_array *x, int n, int axis, dvt_array **out);
/* The same for any extent: the first (extent mod n) views are longer by one. */
DVT_API dvt_status dvt_array_split(dvt_array *x, int n, int axis, dvt_array **out);
/* Slices of x along an axis, one per index; indices is an integer array of any shape, negative ones
   count from the end. On cpu() an index out of range is a RANGE error; on gpu(i) it is clamped to
   the nearest one without an error, since looking would wait for the device. Errors: RANGE (an
   index out of range on cpu(), an empty axis). */
DVT_API dvt_array *dvt_take(dvt_array *x, dvt_array *indices, int axis);
/* result[..., j, ...] = x[..., indices[..., j, ...], ...]: indices has x's number of axes and
   broadcasts with x on all axes but one. Also called gather. Negative indices, errors on cpu() and
   clamping on gpu(i) as dvt_take. */
DVT_API dvt_array *dvt_take_along_axis(dvt_array *x, dvt_array *indices, int axis);
/* One element per row along one axis, which is dropped: dvt_pick(scores, labels, DVT_AXES(-1)).
   DVT_KEEPDIMS(-1) leaves it with extent 1. indices has x's shape without the axis (or with extent
   1 there). Negative indices, errors on cpu() and clamping on gpu(i) as dvt_take. */
DVT_API dvt_array *dvt_pick(dvt_array *x, dvt_array *indices, dvt_axes axes);
/* A new last axis of `depth`: 1 at the index, else 0 (all 0 for an index out of range, on a CPU and
   on a GPU). */
DVT_API dvt_array *dvt_one_hot(dvt_array *indices, int64_t depth, dvt_dtype dtype);

/* ---- convolution and pooling: NCHW data, OIHW weights. A field of 0 means its default. ----
   A pair is {height, width}. In every pair a second value of 0 repeats the first: {2} and {2, 0}
   mean (2, 2). DVT_PAD_NONE is a padding of 0 where 0 would repeat: {2, DVT_PAD_NONE} means (2, 0).
   Every other negative padding is an error. */
#define DVT_PAD_NONE (-2147483647)

typedef struct dvt_conv2d_options {
    int stride[2];   /* default 1, 1 */
    int padding[2];  /* default 0, 0 */
    int dilation[2]; /* default 1, 1 */
    int groups;      /* default 1 */
} dvt_conv2d_options;

/* Cross-correlation. x (N, C, H, W), w (O, C/groups, KH, KW), bias (O) or NULL for none.
   Result (N, O, (H + 2p - d(KH-1) - 1)/s + 1, ...). p may be NULL. Padding may be multiplied as
   zeros: infinite or NaN weights then give NaN at the border, and infinite or NaN gradients of the
   result give NaN in gradients to w. Source: im2col and a matrix product. */
DVT_API dvt_array *dvt_conv2d(dvt_array *x, dvt_array *w, dvt_array *bias,
                              const dvt_conv2d_options *p);

typedef struct dvt_pool2d_options {
    int size[2];    /* required, unless global */
    int stride[2];  /* default: size */
    int padding[2]; /* default 0, 0; at most size / 2 */
    bool ceil_mode; /* round output extents up instead of down */
    bool
        exclude_padding; /* dvt_avg_pool2d divides by the elements inside x instead of the window */
    bool global;         /* one window over everything */
} dvt_pool2d_options;

/* Largest value of each window; ties send the gradient to the first one. */
DVT_API dvt_array *dvt_max_pool2d(dvt_array *x, const dvt_pool2d_options *p);
DVT_API dvt_array *dvt_avg_pool2d(dvt_array *x, const dvt_pool2d_options *p);

/* ---- layers as functions ---- */
/* x (..., k) times w (units, k) transposed, plus bias (units) or NULL for none. */
DVT_API dvt_array *dvt_linear(dvt_array *x, dvt_array *w, dvt_array *bias);
/* In train mode zeroes each element with probability p and divides the rest by 1 - p; else x
   itself. Errors: RANGE (p outside [0, 1)). */
DVT_API dvt_array *dvt_dropout(dvt_array *x, double p);
/* Over all axes but `axis` (normally 1). In train mode uses the batch's statistics and moves the
   running ones: running = momentum * running + (1 - momentum) * batch, in place; else uses the
   running ones. float16 and bfloat16 are computed in float32 and rounded once, to the dtype of x,
   gamma and beta together; in train mode the running statistics are float32 or float64, whatever x
   is. Errors: SHAPE, AXIS, DTYPE, RANGE (momentum, epsilon), VALUE (broadcast running statistics).
   Source: Ioffe and Szegedy, 2015. */
DVT_API dvt_array *dvt_batch_norm(dvt_array *x, dvt_array *gamma, dvt_array *beta,
                                  dvt_array *running_mean, dvt_array *running_var, int axis,
                                  double momentum, double epsilon);
/* Over the last axis. gamma and beta may be NULL. float16 and bfloat16 are computed in float32 and
   rounded once. Source: Ba, Kiros and Hinton, 2016. */
DVT_API dvt_array *dvt_layer_norm(dvt_array *x, dvt_array *gamma, dvt_array *beta, double epsilon);
