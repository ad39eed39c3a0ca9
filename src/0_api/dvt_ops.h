/* [dvt:ops] Operations. Each runs on the context of its inputs, and its result stays there.

   Shapes: broadcasting as in NumPy.
   Dtypes: dvt_promote; "float" operations convert integers to float32.
   Copies: never between contexts; the result is new memory.  Waits: no.
   Owns: the result belongs to the innermost scope.  NULL inputs give NULL.
   Errors: CONTEXT (inputs on different contexts), SHAPE, DTYPE, AXIS, HOST_MEMORY, DEVICE_MEMORY.

   A form that ends in _ writes its result into its first argument and returns it. It does not
   broadcast that argument, and does not store fractions in integers (DTYPE). It refuses recorded
   arrays while recording (GRAD) and broadcast views (VALUE).
   dvt_NAME_scalar(x, s) has a number on the right, dvt_scalar_NAME(s, x) on the left. An integer
   array and an integral number stay integer; a number that the dtype cannot hold wraps (300 is 44
   as uint8). A bool array and an integral number other than 0 and 1 give int64. */

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
   give 1 / a, 1, sqrt(a), a, a * a and a * a * a, rounded once (float64 cubes below 1e-290: 1 ulp).
   As in C, pow(-0, 0.5) is 0 and pow(-INFINITY, 0.5) is INFINITY, unlike NumPy's x ** 0.5. */
DVT_DECLARE_BINARY(pow)
DVT_DECLARE_BINARY(minimum) /* the smaller; NaN if either is NaN; a gets the gradient if equal */
DVT_DECLARE_BINARY(maximum) /* the larger; NaN if either is NaN; a gets the gradient if equal */
DVT_DECLARE_BINARY(atan2)   /* the angle of the point (b, a) in radians, float */
DVT_DECLARE_BINARY(hypot)   /* sqrt(a*a + b*b) without overflow, float */

/* ---- two arguments, results are bool ---- */
DVT_DECLARE_COMPARE(equal)         /* a == b */
DVT_DECLARE_COMPARE(not_equal)     /* a != b */
DVT_DECLARE_COMPARE(less)          /* a < b */
DVT_DECLARE_COMPARE(less_equal)    /* a <= b */
DVT_DECLARE_COMPARE(greater)       /* a > b */
DVT_DECLARE_COMPARE(greater_equal) /* a >= b */
DVT_DECLARE_COMPARE(logical_and)   /* whether a and b are nonzero */
DVT_DECLARE_COMPARE(logical_or)    /* whether a or b is nonzero */
DVT_DECLARE_COMPARE(logical_xor)   /* whether exactly one of a and b is nonzero */

/* ---- one argument. docs/OPERATIONS.md has the errors in ulp. The functions of float32, float16
   and bfloat16 have the same bits on GPUs and on every ISA target but "reference". So do pow, atan2
   and hypot. The bits of a NaN may differ. ---- */
DVT_DECLARE_UNARY(neg)    /* -x; not for bool */
DVT_DECLARE_UNARY(abs)    /* absolute value */
DVT_DECLARE_UNARY(sign)   /* -1, 0 or 1; NaN gives NaN */
DVT_DECLARE_UNARY(square) /* x * x */
DVT_DECLARE_UNARY(relu)   /* max(x, 0); NaN gives NaN */
DVT_DECLARE_UNARY(floor)  /* largest integer <= x */
DVT_DECLARE_UNARY(ceil)   /* smallest integer >= x */
DVT_DECLARE_UNARY(round)  /* nearest integer, ties to even */
DVT_DECLARE_UNARY(trunc)  /* x rounded toward 0 */

/* ---- one argument, results are float ---- */
DVT_DECLARE_UNARY(reciprocal) /* 1 / x */
DVT_DECLARE_UNARY(sqrt)       /* square root */
DVT_DECLARE_UNARY(rsqrt)      /* 1 / sqrt(x) */
DVT_DECLARE_UNARY(exp)        /* e to the power x */
DVT_DECLARE_UNARY(exp2)       /* 2 to the power x */
DVT_DECLARE_UNARY(expm1)      /* exp(x) - 1, accurate near 0 */
DVT_DECLARE_UNARY(log)        /* natural logarithm */
DVT_DECLARE_UNARY(log2)       /* logarithm to base 2 */
DVT_DECLARE_UNARY(log10)      /* logarithm to base 10 */
DVT_DECLARE_UNARY(log1p)      /* log(1 + x), accurate near 0 */
DVT_DECLARE_UNARY(sin)        /* sine of x in radians */
DVT_DECLARE_UNARY(cos)        /* cosine of x in radians */
DVT_DECLARE_UNARY(tan)        /* tangent of x in radians */
DVT_DECLARE_UNARY(asin)       /* angle whose sine is x */
DVT_DECLARE_UNARY(acos)       /* angle whose cosine is x */
DVT_DECLARE_UNARY(atan)       /* angle whose tangent is x */
DVT_DECLARE_UNARY(sinh)       /* hyperbolic sine */
DVT_DECLARE_UNARY(cosh)       /* hyperbolic cosine */
DVT_DECLARE_UNARY(tanh)       /* hyperbolic tangent */
DVT_DECLARE_UNARY(sigmoid)    /* 1 / (1 + exp(-x)) */
DVT_DECLARE_UNARY(softplus)   /* log(1 + exp(x)) without overflow */
DVT_DECLARE_UNARY(erf)        /* error function */
DVT_DECLARE_UNARY(gelu)       /* x/2 * (1 + erf(x / sqrt 2)) */

/* ---- one argument, results are bool ---- */
DVT_DECLARE_TEST(isnan)       /* whether x is NaN */
DVT_DECLARE_TEST(isinf)       /* whether x is infinite */
DVT_DECLARE_TEST(isfinite)    /* whether x is neither NaN nor infinite */
DVT_DECLARE_TEST(logical_not) /* whether x is 0 */

/* ---- select ---- */
/* Returns a where condition is nonzero, else b. All three broadcast. */
DVT_API dvt_array *dvt_where(dvt_array *condition, dvt_array *a, dvt_array *b);
/* Select as dvt_where, with a number in place of b, as NumPy's where(condition, a, 0.0), or of a.
   The number has no dtype of its own, as in dvt_NAME_scalar. */
DVT_API dvt_array *dvt_where_scalar(dvt_array *condition, dvt_array *a, double s);
DVT_API dvt_array *dvt_scalar_where(dvt_array *condition, double s, dvt_array *b);
/* Returns min(max(x, low), high). -INFINITY or INFINITY means no bound; NaN gives NaN. Errors:
   VALUE (low > high or NaN). */
DVT_API dvt_array *dvt_clip(dvt_array *x, double low, double high);
DVT_API dvt_array *dvt_clip_(dvt_array *x, double low, double high);

/* ---- reductions: dvt_sum(x, DVT_ALL), dvt_sum(x, DVT_AXES(0, -1)).
   Shapes: the reduced axes are dropped. DVT_KEEPDIMS(1) and dvt_keepdims(DVT_ALL) keep them with
   extent 1.
   Bits: the same for any number of threads. The last bits of sums, products, norms, variances and
   softmax may depend on the memory layout: a transposed view and its copy may differ. Other
   results, and all results of integers, do not depend on the layout.
   Precision: sums are accumulated in float64, those of integers in int64. Up to four float32 or
   eight 16-bit floats may be added in float32 first, where a sum of huge values overflows. Products
   are formed in several parts; one that overflows makes NaN with a 0 in another. ---- */
/* Compute the sum and the product; integers give int64. */
DVT_API dvt_array *dvt_sum(dvt_array *x, dvt_axes axes);
DVT_API dvt_array *dvt_prod(dvt_array *x, dvt_axes axes);
/* Computes the mean, float; NaN without elements. */
DVT_API dvt_array *dvt_mean(dvt_array *x, dvt_axes axes);
/* Compute the variance and the standard deviation, divided by count - ddof: 0 as in NumPy, 1 for
   samples. float. */
DVT_API dvt_array *dvt_var(dvt_array *x, dvt_axes axes, double ddof);
DVT_API dvt_array *dvt_std(dvt_array *x, dvt_axes axes, double ddof);
/* Return the extreme; NaN if any element is NaN. Equal extremes share the gradient. Errors: SHAPE
   (a reduced axis is empty). */
DVT_API dvt_array *dvt_min(dvt_array *x, dvt_axes axes);
DVT_API dvt_array *dvt_max(dvt_array *x, dvt_axes axes);
/* Return the first position of the extreme, or of the first NaN, int64. Along one axis, or with
   DVT_ALL in the flattened array. Errors: SHAPE (the axis is empty), AXIS (several axes). */
DVT_API dvt_array *dvt_argmin(dvt_array *x, dvt_axes axes);
DVT_API dvt_array *dvt_argmax(dvt_array *x, dvt_axes axes);
/* Return whether any element is nonzero, and whether all are, bool. */
DVT_API dvt_array *dvt_any(dvt_array *x, dvt_axes axes);
DVT_API dvt_array *dvt_all(dvt_array *x, dvt_axes axes);
/* Computes sqrt of the sum of squares (the Frobenius norm over all axes), float. */
DVT_API dvt_array *dvt_norm(dvt_array *x, dvt_axes axes);
/* Computes log(sum(exp(x))) without overflow, float. */
DVT_API dvt_array *dvt_logsumexp(dvt_array *x, dvt_axes axes);

/* ---- comparing arrays, by NumPy's rules. Copies: no array between contexts. Nothing is recorded.
   a and b broadcast, except in dvt_array_equal. Integers are compared in float64; float16 and
   bfloat16 are compared in float32. ---- */

/* Selects whether NaN equals NaN. */
typedef enum dvt_nan_rule { DVT_NAN_DIFFERS, DVT_NAN_EQUALS } dvt_nan_rule;

/* Tests |a - b| <= atol + rtol |b|, or a == b, elementwise, bool. An infinity is close only to
   itself. NaN is close to nothing, or to NaN with DVT_NAN_EQUALS. NumPy's tolerances are 1e-5 and
   1e-8. Waits: no. Errors: RANGE (rtol or atol negative or NaN), VALUE (nan). */
DVT_API dvt_array *dvt_isclose(dvt_array *a, dvt_array *b, double rtol, double atol,
                               dvt_nan_rule nan);
/* Returns whether dvt_isclose holds everywhere; true without elements. Copies: one bool to host
   memory.  Waits: yes.  Errors: as dvt_isclose, CONTEXT (transfer guard); false is returned. */
DVT_API bool dvt_allclose(dvt_array *a, dvt_array *b, double rtol, double atol, dvt_nan_rule nan);
/* Returns whether the shapes and all values are equal; the dtypes may differ. Copies, Waits: as
   dvt_allclose.  Errors: CONTEXT, VALUE (nan); false is returned. */
DVT_API bool dvt_array_equal(dvt_array *a, dvt_array *b, dvt_nan_rule nan);

/* ---- along one axis. Shapes: as x. Errors: AXIS (out of range, or x has no axis: use dvt_reshape
   first). ---- */
/* Computes the sums of all elements up to each position. Accumulated in order in float64, or in
   int64 for integers and bool, whose result is int64. Differentiable. */
DVT_API dvt_array *dvt_cumsum(dvt_array *x, int axis);

/* Selects the order of sorting. */
typedef enum dvt_order { DVT_ASCENDING, DVT_DESCENDING } dvt_order;

/* Sort the elements, and return their positions (int64). Stable in both orders: equal elements keep
   their order, and -0 equals +0. NaN is the largest: last in ascending order, as in NumPy. dvt_sort
   is differentiable. Errors: VALUE (order). */
DVT_API dvt_array *dvt_sort(dvt_array *x, int axis, dvt_order order);
DVT_API dvt_array *dvt_argsort(dvt_array *x, int axis, dvt_order order);

/* Selects the elements of dvt_topk. */
typedef enum dvt_extreme { DVT_LARGEST, DVT_SMALLEST } dvt_extreme;

/* Returns the k largest elements, largest first, or the k smallest, smallest first: the first k of
   dvt_sort. *indices, unless indices is NULL, receives their positions, int64; NULL if the call
   fails.
   Shapes: extent k along the axis; k may be 0.  Differentiable.  Owns: both belong to the innermost
   scope.  Errors: RANGE (k < 0 or larger than the extent), VALUE (extreme). */
DVT_API dvt_array *dvt_topk(dvt_array *x, int64_t k, int axis, dvt_extreme extreme,
                            dvt_array **indices);
/* Compute softmax and its logarithm along the axis, float. The maximum of each row is subtracted
   first. */
DVT_API dvt_array *dvt_softmax(dvt_array *x, int axis);
DVT_API dvt_array *dvt_log_softmax(dvt_array *x, int axis);

/* ---- matrix products. The order of summation is fixed. float16 and bfloat16 accumulate in
   float32. ---- */
/* Multiplies the matrices of a and b: NumPy's matmul.
   Shapes: (..., n, k) x (..., k, m) -> (..., n, m). Batch axes broadcast. An a with one axis is a
   row, a b with one axis is a column; that axis is dropped from the result.
   Copies: if a and b have different dtypes.  Waits: no.  Errors: SHAPE, CONTEXT. */
DVT_API dvt_array *dvt_matmul(dvt_array *a, dvt_array *b);

/* Options of dvt_matmul_with. Fields may be combined; all zeros give dvt_matmul. */
typedef struct dvt_matmul_desc {
    /* Exchange the last two axes first, without a copy. Arrays of one axis are not changed. */
    bool transpose_a, transpose_b;
    /* Convert a and b to `dtype` first, which is also the result's. false: their common dtype. */
    bool convert;
    dvt_dtype dtype; /* with convert */
    dvt_array *out;  /* NULL: a new array; else the array that receives the result */
} dvt_matmul_desc;

/* Multiplies with options (NULL: all zeros). Returns the result, which is desc->out if set.

       dvt_matmul_desc d = {0};
       d.transpose_b = true;
       d.convert = true, d.dtype = DVT_I32; (a and b are int8: the sums do not wrap at 8 bits)
       y = dvt_matmul_with(a, b, &d);

   dtype: as NumPy's matmul(..., dtype=..., casting='unsafe'). cpu() multiplies int8 and uint8 to
   DVT_I32 without converted copies. Wider integers are many times slower. Integer results have no
   gradient.
   out: has the result's shape; its old values are not read. After the sums, the result is converted
   to out's dtype as dvt_copy_into does.
   Copies: never if out is contiguous and of the product's dtype, a and b have one dtype, and out
   does not overlap them. Then nothing is allocated either. Otherwise a temporary array receives the
   product first.
   Waits: no.  Owns: the innermost scope owns a new result; ownership of out does not change.
   Errors: SHAPE (also out's), DTYPE (DVT_BOOL, an invalid dtype, dtype without convert, an out that
   cannot hold the result), GRAD (recorded arrays with out, while recording), VALUE (out is a
   broadcast view), CONTEXT. A call that fails does not change out. A failure later in a GPU's queue
   may leave any values in out. */
DVT_API dvt_array *dvt_matmul_with(dvt_array *a, dvt_array *b, const dvt_matmul_desc *desc);
/* Computes NumPy's dot: sums over the last axis of a and the last but one of b (its only one if b
   has one axis). */
DVT_API dvt_array *dvt_dot(dvt_array *a, dvt_array *b);

/* ---- joining, splitting, indexing ---- */
/* Join n arrays along an existing axis, or along a new one. The other extents must agree. Errors:
   RANGE (n < 1), SHAPE. */
DVT_API dvt_array *dvt_concat(dvt_array *const *arrays, int n, int axis);
DVT_API dvt_array *dvt_stack(dvt_array *const *arrays, int n, int axis);
/* Writes n views of x, of equal extents along an axis, to out[0..n). Copies: never. Owns: the
   innermost scope owns the views.
   Errors: RANGE (n < 1), AXIS, SHAPE (n does not divide the extent). */
DVT_API dvt_status dvt_split(dvt_array *x, int n, int axis, dvt_array **out);
/* Writes n views as dvt_split does, for any extent: the first (extent mod n) are longer by one. */
DVT_API dvt_status dvt_array_split(dvt_array *x, int n, int axis, dvt_array **out);
/* Returns slices of x along an axis, one per index. indices is an integer array of any shape;
   negative indices count from the end. The axes of indices replace the axis.
   Errors: RANGE (an index out of range on cpu(), an empty axis). gpu(i) clamps indices to the
   nearest valid one without an error, because a check would wait for the device. */
DVT_API dvt_array *dvt_take(dvt_array *x, dvt_array *indices, int axis);
/* Returns result[..., j, ...] = x[..., indices[..., j, ...], ...], also called gather. indices has
   x's number of axes and broadcasts with x on all axes but one. Indices: as in dvt_take. */
DVT_API dvt_array *dvt_take_along_axis(dvt_array *x, dvt_array *indices, int axis);
/* Returns one element per row along one axis, which is dropped: dvt_pick(scores, labels,
   DVT_AXES(-1)). DVT_KEEPDIMS(-1) keeps it with extent 1. indices has x's shape without the axis,
   or with extent 1 there. Indices: as in dvt_take. */
DVT_API dvt_array *dvt_pick(dvt_array *x, dvt_array *indices, dvt_axes axes);
/* Adds a last axis of extent `depth`: 1 at the index, else 0. An index out of range gives zeros. */
DVT_API dvt_array *dvt_one_hot(dvt_array *indices, int64_t depth, dvt_dtype dtype);

/* ---- convolution and pooling: NCHW data, OIHW weights. A field of 0 means its default. ----
   A pair is {height, width}. In every pair a second value of 0 repeats the first: {2} and {2, 0}
   mean (2, 2). DVT_PAD_NONE means a second padding of 0: {2, DVT_PAD_NONE} is (2, 0). Every other
   negative padding is an error. */
#define DVT_PAD_NONE (-2147483647) /* a second padding of 0 */

/* Options of dvt_conv2d. */
typedef struct dvt_conv2d_options {
    int stride[2];   /* default 1, 1 */
    int padding[2];  /* default 0, 0 */
    int dilation[2]; /* default 1, 1 */
    int groups;      /* default 1 */
} dvt_conv2d_options;

/* Computes the cross-correlation of x (N, C, H, W) and w (O, C/groups, KH, KW), plus bias (O) or
   NULL for none. The result is (N, O, OH, OW) with OH = (H + 2p - d(KH-1) - 1)/s + 1, and OW
   likewise. `p` may be NULL.
   Padding may be multiplied as zeros. Infinite or NaN weights then give NaN at the border. Infinite
   or NaN gradients of the result give NaN in gradients to w.
   Errors: SHAPE, RANGE (options). Source: im2col and a matrix product. */
DVT_API dvt_array *dvt_conv2d(dvt_array *x, dvt_array *w, dvt_array *bias,
                              const dvt_conv2d_options *p);

/* Options of dvt_conv1d. */
typedef struct dvt_conv1d_options {
    int stride;   /* default 1 */
    int padding;  /* default 0 */
    int dilation; /* default 1 */
    int groups;   /* default 1 */
} dvt_conv1d_options;

/* Computes the same for x (N, C, W), w (O, C/groups, K) and bias (O): a dvt_conv2d of height 1. */
DVT_API dvt_array *dvt_conv1d(dvt_array *x, dvt_array *w, dvt_array *bias,
                              const dvt_conv1d_options *p);

/* Options of dvt_conv2d_transpose. */
typedef struct dvt_conv2d_transpose_options {
    dvt_conv2d_options conv;
    int output_padding[2]; /* default 0, 0; less than the stride; pairs as a padding */
} dvt_conv2d_transpose_options;

/* Options of dvt_conv1d_transpose. */
typedef struct dvt_conv1d_transpose_options {
    dvt_conv1d_options conv;
    int output_padding;
} dvt_conv1d_transpose_options;

/* Compute the transposed convolution, the gradient of a convolution to its data: each element of x
   adds w, times itself, to a window of the result. x is (N, C, H, W), w (C, O/groups, KH, KW) and
   bias (O) or NULL for none, as in PyTorch. The result is (N, O, OH, OW) with OH = (H - 1)s - 2p +
   d(KH-1) + output_padding + 1, and OW likewise. `p` may be NULL. dvt_conv1d_transpose has no H.
   Errors: SHAPE, RANGE (options). Source: Zeiler et al., 2010. */
DVT_API dvt_array *dvt_conv2d_transpose(dvt_array *x, dvt_array *w, dvt_array *bias,
                                        const dvt_conv2d_transpose_options *p);
DVT_API dvt_array *dvt_conv1d_transpose(dvt_array *x, dvt_array *w, dvt_array *bias,
                                        const dvt_conv1d_transpose_options *p);

/* Options of pooling. */
typedef struct dvt_pool2d_options {
    int size[2];          /* required, unless global */
    int stride[2];        /* default: size */
    int padding[2];       /* default 0, 0; at most size / 2 */
    bool ceil_mode;       /* round output extents up instead of down */
    bool exclude_padding; /* dvt_avg_pool2d divides by the number of elements inside x */
    bool global;          /* one window over the whole image */
} dvt_pool2d_options;

/* Return the largest value of each window, and the mean. x is (N, C, H, W). The first of equal
   maxima gets the gradient. Errors: SHAPE, RANGE (options). */
DVT_API dvt_array *dvt_max_pool2d(dvt_array *x, const dvt_pool2d_options *p);
DVT_API dvt_array *dvt_avg_pool2d(dvt_array *x, const dvt_pool2d_options *p);

/* Options of pooling along one axis. */
typedef struct dvt_pool1d_options {
    int size, stride, padding; /* as dvt_pool2d_options */
    bool ceil_mode, exclude_padding, global;
} dvt_pool1d_options;

/* Do the same for x (N, C, W). */
DVT_API dvt_array *dvt_max_pool1d(dvt_array *x, const dvt_pool1d_options *p);
DVT_API dvt_array *dvt_avg_pool1d(dvt_array *x, const dvt_pool1d_options *p);
/* Returns means of height x width windows that cover x (N, C, H, W) evenly. Window i of n begins at
   i * H / n, rounded down, and ends at (i + 1) * H / n, rounded up: as in PyTorch. float. float16
   and bfloat16 are computed in float32 and rounded once. Errors: SHAPE, RANGE (height, width). */
DVT_API dvt_array *dvt_adaptive_avg_pool2d(dvt_array *x, int64_t height, int64_t width);

/* Either scale or size is set. A second value of 0 repeats the first. */
typedef struct dvt_upsample2d_options {
    int scale[2];       /* {2}: twice the height and width */
    int64_t size[2];    /* height and width of the result; smaller than x's is allowed */
    bool bilinear;      /* interpolate; default: the nearest element */
    bool align_corners; /* bilinear: corners of x and result are equal; default: their edges are */
} dvt_upsample2d_options;

/* Resizes x (N, C, H, W) as PyTorch's interpolate. The nearest element keeps the dtype. Bilinear is
   float; float16 and bfloat16 are computed in float32 and rounded once. Its sample positions are
   those of half-pixel centers, without antialiasing. Errors: SHAPE, RANGE (options). */
DVT_API dvt_array *dvt_upsample2d(dvt_array *x, const dvt_upsample2d_options *p);

/* ---- activations with parameters, and of several operations. The results are float. float16 and
   bfloat16 are computed in float32 and rounded once. At a corner the gradient is PyTorch's. ---- */
/* Computes x for x > 0, else slope * x. Errors: RANGE (slope not finite). */
DVT_API dvt_array *dvt_leaky_relu(dvt_array *x, double slope);
/* Computes the same with slopes (1), or (C) for the channels on axis 1 of x. They get gradients.
   Source: He et al., 2015. */
DVT_API dvt_array *dvt_prelu(dvt_array *x, dvt_array *slope);
/* Computes x for x > 0, else alpha * (exp(x) - 1). Errors: RANGE (alpha not finite). Source:
   Clevert et al., 2015. */
DVT_API dvt_array *dvt_elu(dvt_array *x, double alpha);
/* Computes 1.0507 * dvt_elu(x, 1.6733), with constants in full precision. Source: Klambauer et al.,
   2017. */
DVT_API dvt_array *dvt_selu(dvt_array *x);
/* Computes x * sigmoid(x), also called swish. -INFINITY gives NaN, as in PyTorch; so it does in
   dvt_mish and dvt_hard_swish. Source: Hendrycks and Gimpel, 2016. */
DVT_API dvt_array *dvt_silu(dvt_array *x);
/* Computes x * tanh(softplus(x)). Source: Misra, 2019. */
DVT_API dvt_array *dvt_mish(dvt_array *x);
/* Compute min(max(x + 3, 0), 6) / 6, and x times that. Source: Howard et al., 2019. */
DVT_API dvt_array *dvt_hard_sigmoid(dvt_array *x);
DVT_API dvt_array *dvt_hard_swish(dvt_array *x);
/* Compute a * sigmoid(b), and silu(a) * b, where a and b are x cut in two along an axis.
   Errors: AXIS, SHAPE (an odd extent). Source: Dauphin et al., 2016; Shazeer, 2020. */
DVT_API dvt_array *dvt_glu(dvt_array *x, int axis);
DVT_API dvt_array *dvt_swiglu(dvt_array *x, int axis);

/* ---- layers as functions ---- */
/* Multiplies x (..., k) with the transpose of w (units, k), and adds bias (units) or NULL for
   none. */
DVT_API dvt_array *dvt_linear(dvt_array *x, dvt_array *w, dvt_array *bias);
/* Sets each element to 0 with probability p and divides the rest by 1 - p, in train mode; otherwise
   returns x itself. Errors: RANGE (p outside [0, 1)). */
DVT_API dvt_array *dvt_dropout(dvt_array *x, double p);
/* Normalizes over all axes but `axis` (normally 1): (x - mean) / sqrt(variance + epsilon) * gamma +
   beta. In train mode it uses the batch's statistics and updates the running ones in place: running
   = momentum * running + (1 - momentum) * batch. Otherwise it uses the running ones.
   float16 and bfloat16 are computed in float32 and rounded once, to the common dtype of x, gamma
   and beta. In train mode the running statistics must be float32 or float64.
   Errors: SHAPE, AXIS, DTYPE, RANGE (momentum, epsilon), VALUE (broadcast running statistics).
   Source: Ioffe and Szegedy, 2015. */
DVT_API dvt_array *dvt_batch_norm(dvt_array *x, dvt_array *gamma, dvt_array *beta,
                                  dvt_array *running_mean, dvt_array *running_var, int axis,
                                  double momentum, double epsilon);
/* Normalizes over the last axis: (x - mean) / sqrt(variance + epsilon) * gamma + beta. gamma and
   beta may be NULL. float16 and bfloat16 are computed in float32 and rounded once. Source: Ba,
   Kiros and Hinton, 2016. */
DVT_API dvt_array *dvt_layer_norm(dvt_array *x, dvt_array *gamma, dvt_array *beta, double epsilon);
/* Divides by the root of the mean square over the last axis: x / sqrt(mean(x^2) + epsilon) * gamma.
   gamma may be NULL. float16 and bfloat16: as dvt_layer_norm. Source: Zhang and Sennrich, 2019. */
DVT_API dvt_array *dvt_rms_norm(dvt_array *x, dvt_array *gamma, double epsilon);
/* Normalizes each sample of x (N, C, ...) over groups of neighboring channels and the axes behind
   them. Then it multiplies by gamma (C) and adds beta (C), which may be NULL. float16 and bfloat16:
   as dvt_layer_norm. Errors: SHAPE (groups does not divide C), RANGE (groups < 1, epsilon). Source:
   Wu and He, 2018. */
DVT_API dvt_array *dvt_group_norm(dvt_array *x, int groups, dvt_array *gamma, dvt_array *beta,
                                  double epsilon);
/* Does the same with each channel as one group. Source: Ulyanov et al., 2016. */
DVT_API dvt_array *dvt_instance_norm(dvt_array *x, dvt_array *gamma, dvt_array *beta,
                                     double epsilon);
