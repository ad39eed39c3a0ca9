/* Matrix products. One recorded operation handles arrays of two axes and more, with batch axes that
   broadcast. The other forms are views around it. */
#include "4_ops/dvt_op.h"

/* One operand after the optional transpose: its extents, and its row and column strides. */
typedef struct dvti_factor {
    int64_t rows, columns, row, column;
} dvti_factor;

/* Returns the factor by NumPy's rule: an array of one axis is a row (a) or a column (b). */
static inline dvti_factor dvti_factor_of(const dvt_array *x, bool transpose, bool column) {
    const int64_t *dim, *stride;
    dvti_factor f;
    if (x->shape.ndim == 1) {
        f.rows = column ? x->shape.dim[0] : 1;
        f.columns = column ? 1 : x->shape.dim[0];
        f.row = column ? x->stride[0] : 1;
        f.column = column ? 1 : x->stride[0];
        return f;
    }
    dim = x->shape.dim + x->shape.ndim - 2;
    stride = x->stride + x->shape.ndim - 2;
    f.rows = dim[transpose];
    f.columns = dim[!transpose];
    f.row = stride[transpose];
    f.column = stride[!transpose];
    return f;
}

static dvt_shape dvti_batch_shape(const dvt_array *x) {
    dvt_shape shape = x->shape;
    shape.ndim = DVTI_MAX(shape.ndim - 2, 0);
    return shape;
}

static DVTI_NOINLINE void dvti_factor_batch(dvti_view *view, const dvt_array *x,
                                            const dvt_shape *product) {
    int lead = product->ndim - x->shape.ndim, i;
    for (i = 0; i < product->ndim - 2; i++) {
        bool repeats = i < lead || (x->shape.dim[i - lead] == 1 && product->dim[i] != 1);
        view->dim[i] = product->dim[i];
        view->stride[i] = repeats ? 0 : x->stride[i - lead];
    }
}

/* Sets the view of x's matrices: the batch axes of the product, then rows and columns. */
static void dvti_factor_view(dvti_view *view, const dvt_array *x, const dvt_shape *product,
                             const dvti_factor *f) {
    const int64_t batch = product->ndim - 2;
    view->data = (char *)x->storage->data + x->offset * dvt_dtype_size(x->dtype);
    view->dtype = x->dtype;
    view->ndim = product->ndim;
    if (batch)
        dvti_factor_batch(view, x, product);
    view->dim[batch] = f->rows;
    view->stride[batch] = f->row;
    view->dim[batch + 1] = f->columns;
    view->stride[batch + 1] = f->column;
}

/* Sets the view of x, in C order, with all axes of the product; x may lack axes of extent 1. */
static void dvti_product_view(dvti_view *view, const dvt_array *x, const dvt_shape *product) {
    int64_t step = 1;
    int i;
    view->data = (char *)x->storage->data + x->offset * dvt_dtype_size(x->dtype);
    view->dtype = x->dtype;
    view->ndim = product->ndim;
    for (i = product->ndim - 1; i >= 0; i--) {
        view->dim[i] = product->dim[i];
        view->stride[i] = step;
        step *= product->dim[i];
    }
}

static bool dvti_matmul_batch(const char *name, const dvt_array *a, const dvt_array *b,
                              dvt_shape *batch) {
    dvt_shape x, y;
    int i;
    batch->ndim = 0;
    if (a->shape.ndim <= 2 && b->shape.ndim <= 2)
        return true;
    x = dvti_batch_shape(a);
    y = dvti_batch_shape(b);
    for (i = 1; i <= DVTI_MIN(x.ndim, y.ndim); i++) {
        int64_t p = x.dim[x.ndim - i], q = y.dim[y.ndim - i];
        if (p != q && p != 1 && q != 1) {
            dvti_fail(DVT_ERR_SHAPE,
                      "%s: a is %s and b is %s; expected batch axes that broadcast, but %lld "
                      "meets %lld; reshape or slice one of them",
                      name, dvti_describe(a), dvti_describe(b), (long long)p, (long long)q);
            return false;
        }
    }
    return dvti_broadcast(name, &x, &y, batch);
}

static bool dvti_inner_ok(const char *name, const dvt_array *a, bool transpose_a,
                          const dvt_array *b, bool transpose_b, int64_t ka, int64_t kb) {
    if (ka == kb)
        return true;
    dvti_fail(DVT_ERR_SHAPE,
              "%s: a is %s%s and b is %s%s; expected equal extents where they meet, but a has %lld "
              "and b has %lld; reshape or transpose one of them",
              name, dvti_describe(a), transpose_a ? ", transposed," : "", dvti_describe(b),
              transpose_b ? ", transposed" : "", (long long)ka, (long long)kb);
    return false;
}

/* Computes the product's shape. An operand of one axis counts as a row (a) or column (b) of two
   axes. */
static bool dvti_matmul_shape(const char *name, const dvt_array *a, const dvt_array *b,
                              bool transpose_a, bool transpose_b, dvt_shape *shape) {
    const dvti_factor fa = dvti_factor_of(a, transpose_a, false);
    const dvti_factor fb = dvti_factor_of(b, transpose_b, true);
    if (!dvti_inner_ok(name, a, transpose_a, b, transpose_b, fa.columns, fb.rows) ||
        !dvti_matmul_batch(name, a, b, shape))
        return false;
    shape->dim[shape->ndim++] = fa.rows;
    shape->dim[shape->ndim++] = fb.columns;
    return true;
}

/* Multiplies two small float matrices without a launch, into contiguous memory on their device. The
   extents match. Returns false, and does nothing, when a launch is needed. */
static bool dvti_matmul_small(const dvt_array *out, const dvt_array *a, const dvt_array *b,
                              bool transpose_a, bool transpose_b) {
    const int64_t size = out->dtype == DVT_F64 ? 8 : 4;
    dvti_matrices product;
    if (a->shape.ndim != 2 || b->shape.ndim != 2 || a->dtype != out->dtype ||
        b->dtype != out->dtype || (out->dtype != DVT_F32 && out->dtype != DVT_F64))
        return false;
    product.dtype = out->dtype;
    product.n = a->shape.dim[transpose_a];
    product.a = (char *)a->storage->data + a->offset * size;
    product.a_row = a->stride[transpose_a];
    product.b = (char *)b->storage->data + b->offset * size;
    product.a_k = a->stride[!transpose_a];
    product.c = (char *)out->storage->data + out->offset * size;
    product.m = b->shape.dim[!transpose_b];
    product.b_k = b->stride[transpose_b];
    product.k = a->shape.dim[!transpose_a];
    product.b_col = b->stride[!transpose_b];
    return dvti_multiply_small(out->storage->device, dvti_kernel_matmul(), &product);
}

/* Launches the product. A bias (or NULL) and relu need DVTI_CAN_EPILOGUE, a mask (or NULL) needs
   DVTI_CAN_MASK. */
static dvt_status dvti_matmul_run(const char *name, dvt_array *out, const dvt_shape *shape,
                                  const dvt_array *a, bool transpose_a, const dvt_array *b,
                                  bool transpose_b, const dvt_array *bias, bool relu,
                                  const dvt_array *mask) {
    dvti_launch launch;
    dvti_factor f;
    if ((!bias && !relu && !mask && dvti_matmul_small(out, a, b, transpose_a, transpose_b)) ||
        !dvti_has_elements(shape))
        return DVT_OK;
    dvti_launch_begin(&launch, name, dvti_kernel_matmul(), DVTI_OP_matmul);
    f = dvti_factor_of(a, transpose_a, false);
    dvti_factor_view(&launch.in[0], a, shape, &f);
    f = dvti_factor_of(b, transpose_b, true);
    dvti_factor_view(&launch.in[1], b, shape, &f);
    dvti_product_view(&launch.out[0], out, shape);
    launch.n_in = 2;
    launch.n_out = 1;
    if (out->dtype == DVT_F32)
        launch.i[0] = dvti_tf32_allowed() ? 1 : dvti_tf32x3_allowed() ? 2 : 0;
    if (bias)
        dvti_view_into(&launch.epilogue.bias, bias);
    launch.epilogue.activation = relu ? DVTI_RELU : DVTI_NO_ACTIVATION;
    if (mask)
        launch.epilogue.mask = dvti_view_of(mask).data;
    return dvti_run(out->storage->device, &launch);
}

DVTI_FN bool dvti_matmul_can_mask(const dvt_array *x) {
    return dvti_supports(x->storage->device, dvti_kernel_matmul(), DVTI_OP_matmul, x->dtype,
                         DVTI_CAN_MASK);
}

DVTI_FN dvt_array *dvti_matmul_masked(const char *name, dvt_array *a, dvt_array *b,
                                      bool transpose_b, const dvt_array *mask) {
    dvt_array *out = dvti_array_shaped(name, &mask->shape, mask->dtype, mask->storage->ctx);
    return out && dvti_matmul_run(name, out, &mask->shape, a, false, b, transpose_b, NULL, false,
                                  mask) == DVT_OK
               ? out
               : NULL;
}

/* Multiplies and records. a and b have at least two axes, and the result's dtype unless
   dvti_matmul_widens. */
static dvt_array *dvti_matmul_recorded(const char *name, dvt_array *a, dvt_array *b,
                                       bool transpose_a, bool transpose_b, dvt_dtype dtype,
                                       dvt_array *bias, bool relu) {
    dvti_attr attr;
    dvt_array *out, *in[2];
    dvt_shape shape;
    if (!dvti_matmul_shape(name, a, b, transpose_a, transpose_b, &shape))
        return NULL;
    out = dvti_array_shaped(name, &shape, dtype, a->storage->ctx);
    if (!out || dvti_matmul_run(name, out, &shape, a, transpose_a, b, transpose_b, bias, relu,
                                NULL) != DVT_OK)
        return NULL;
    if (!dvt_is_recording())
        return out;
    attr = dvti_attr_none();
    attr.i[0] = transpose_a;
    attr.i[1] = transpose_b;
    in[0] = a;
    in[1] = b;
    out = dvti_finish(out, DVTI_OP_matmul, name, in, 2, &attr);
    if (bias)
        out = dvti_record_epilogue(out, DVTI_OP_add, "dvt_add", bias);
    return relu ? dvti_record_epilogue(out, DVTI_OP_relu, "dvt_relu", NULL) : out;
}

DVTI_FN dvt_array *dvti_linear_fused(dvt_array *x, dvt_array *w, dvt_array *bias, bool relu) {
    return dvti_matmul_recorded("dvt_matmul_with", x, w, false, true, x->dtype, bias, relu);
}

/* Returns whether the backend multiplies these 8-bit operands to int32 without conversion. */
static bool dvti_matmul_widens(const dvt_array *a, const dvt_array *b, dvt_dtype dtype) {
    return dtype == DVT_I32 &&
           dvti_supports(a->storage->device, dvti_kernel_matmul(), DVTI_OP_matmul, dtype,
                         DVTI_CAN_WIDEN) &&
           (a->dtype == DVT_I8 || a->dtype == DVT_U8) && (b->dtype == DVT_I8 || b->dtype == DVT_U8);
}

/* Drops the axis of the result that a one-axis a (row) or b (column) does not have. */
static void dvti_matmul_drop(dvt_shape *shape, bool row, bool column) {
    if (row)
        shape->dim[shape->ndim - 2] = shape->dim[shape->ndim - 1];
    shape->ndim -= (row ? 1 : 0) + (column ? 1 : 0);
}

static dvt_array *dvti_matmul_any(const char *name, dvt_array *a, dvt_array *b, bool transpose_a,
                                  bool transpose_b, dvt_dtype dtype) {
    bool row = a->shape.ndim == 1, column = b->shape.ndim == 1;
    dvt_array *out;
    dvt_shape shape;
    if (!dvti_matmul_shape(name, a, b, transpose_a, transpose_b, &shape))
        return NULL;
    if (!dvti_matmul_widens(a, b, dtype)) {
        a = dvt_as_in_dtype(a, dtype);
        b = dvt_as_in_dtype(b, dtype);
    }
    if (row)
        a = dvt_expand_dims(a, 0);
    if (column)
        b = dvt_expand_dims(b, 1);
    if (!a || !b)
        return NULL;
    out = dvti_matmul_recorded(name, a, b, transpose_a && !row, transpose_b && !column, dtype, NULL,
                               false);
    if (!out || !(row || column))
        return out;
    shape = out->shape;
    dvti_matmul_drop(&shape, row, column);
    return dvt_reshape(out, shape);
}

static dvt_dtype dvti_matmul_dtype(const dvt_array *a, const dvt_array *b) {
    dvt_dtype dtype = dvt_promote(a->dtype, b->dtype);
    return dtype == DVT_BOOL ? DVT_I64 : dtype;
}

static DVTI_NOINLINE dvt_array *dvti_matmul_in_scope(const char *name, dvt_array *a, dvt_array *b,
                                                     bool transpose_a, bool transpose_b,
                                                     dvt_dtype dtype) {
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_array *out =
        (dvt_array *)dvt_keep(dvti_matmul_any(name, a, b, transpose_a, transpose_b, dtype));
    dvt_scope_end(&scope);
    return out;
}

static bool dvti_matmul_has_axes(const char *name, const dvt_array *a, const dvt_array *b) {
    if (a->shape.ndim && b->shape.ndim)
        return true;
    dvti_fail(DVT_ERR_SHAPE,
              "%s: a is %s and b is %s; expected at least one axis; use dvt_mul for scalars", name,
              dvti_describe(a), dvti_describe(b));
    return false;
}

static dvt_array *dvti_matmul_typed(const char *name, dvt_array *a, dvt_array *b, bool transpose_a,
                                    bool transpose_b, dvt_dtype dtype) {
    if (!dvti_matmul_has_axes(name, a, b))
        return NULL;
    if (a->shape.ndim > 1 && b->shape.ndim > 1 && a->dtype == dtype && b->dtype == dtype)
        return dvti_matmul_recorded(name, a, b, transpose_a, transpose_b, dtype, NULL, false);
    return dvti_matmul_in_scope(name, a, b, transpose_a, transpose_b, dtype);
}

DVTI_FN dvt_array *dvti_matmul(const char *name, dvt_array *a, dvt_array *b, bool transpose_a,
                               bool transpose_b) {
    dvt_array *in[2];
    in[0] = a;
    in[1] = b;
    if (!dvti_check(name, in, 2))
        return NULL;
    return dvti_matmul_typed(name, a, b, transpose_a, transpose_b, dvti_matmul_dtype(a, b));
}

DVT_API dvt_array *dvt_matmul(dvt_array *a, dvt_array *b) {
    return dvti_matmul("dvt_matmul", a, b, false, false);
}

/* ---- into an existing array ---- */
/* Computes the addresses from x's first byte in memory to its last. */
static void dvti_matmul_reach(const dvt_array *x, int64_t *low, int64_t *high) {
    const int64_t size = dvt_dtype_size(x->dtype);
    int i;
    *low = *high = (int64_t)(uintptr_t)x->storage->data + x->offset * size;
    *high += size - 1;
    for (i = 0; i < x->shape.ndim; i++) {
        const int64_t span = (x->shape.dim[i] - 1) * x->stride[i] * size;
        *(span < 0 ? low : high) += span;
    }
}

/* Returns whether writing dst could change elements of x. Neither is empty. Disjoint ranges of one
   memory do not conflict. */
static bool dvti_matmul_touches(const dvt_array *dst, const dvt_array *x) {
    int64_t dst_low, dst_high, low, high;
    if (!dvti_storages_meet(dst->storage, x->storage))
        return false;
    dvti_matmul_reach(dst, &dst_low, &dst_high);
    dvti_matmul_reach(x, &low, &high);
    return low <= dst_high && dst_low <= high;
}

/* Returns whether the kernel can write the product straight into dst. */
static bool dvti_matmul_is_direct(const dvt_array *dst, const dvt_array *a, const dvt_array *b,
                                  dvt_dtype dtype) {
    return dst->dtype == dtype &&
           ((a->dtype == dtype && b->dtype == dtype) || dvti_matmul_widens(a, b, dtype)) &&
           dvt_is_contiguous(dst) && !dvti_matmul_touches(dst, a) && !dvti_matmul_touches(dst, b);
}

static dvt_status dvti_matmul_then_copy(const char *name, dvt_array *dst, dvt_array *a,
                                        dvt_array *b, bool transpose_a, bool transpose_b,
                                        dvt_dtype dtype) {
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_array *product = dvti_matmul_typed(name, a, b, transpose_a, transpose_b, dtype);
    dvt_status status = product ? dvti_copy_elements(name, dst, product) : dvti_failure();
    dvt_scope_end(&scope);
    return status;
}

/* Recognizes the common case in one check: two matrices into a third of their dtype, with nothing
   to refuse, convert or record. The separate checks take as long as multiplying 8 x 8. */
static bool dvti_matmul_into_plain(dvt_array *dst, const dvt_array *a, const dvt_array *b,
                                   bool transpose_a, bool transpose_b) {
    const dvti_storage *of = dst->storage;
    if (dst->shape.ndim != 2 || a->shape.ndim != 2 || b->shape.ndim != 2 || dst->broadcast ||
        dvti_storages_meet(a->storage, of) || dvti_storages_meet(b->storage, of) ||
        a->storage->device != of->device || b->storage->device != of->device ||
        a->storage->ctx.id != of->ctx.id || b->storage->ctx.id != of->ctx.id || dvt_is_recording())
        return false;
    if (dst->shape.dim[0] != a->shape.dim[transpose_a] || dst->stride[1] != 1 ||
        dst->shape.dim[1] != b->shape.dim[!transpose_b] || dst->stride[0] != dst->shape.dim[1] ||
        a->shape.dim[!transpose_a] != b->shape.dim[transpose_b])
        return false;
    return a->dtype == dst->dtype && b->dtype == dst->dtype && dst->dtype != DVT_BOOL;
}

static bool dvti_matmul_desc_ok(const char *name, const dvt_matmul_desc *desc) {
    if (desc->convert ? desc->dtype != DVT_BOOL && dvti_dtype_ok(desc->dtype) : !desc->dtype)
        return true;
    dvti_fail(DVT_ERR_DTYPE, "%s: dtype is %s%s", name, dvt_dtype_name(desc->dtype),
              desc->convert ? "; expected a dtype of numbers, such as DVT_I32"
                            : ", but convert is false; set both, or neither");
    return false;
}

static dvt_array *dvti_matmul_into(const char *name, dvt_array *dst, dvt_array *a, dvt_array *b,
                                   const dvt_matmul_desc *desc) {
    static const char *const names[] = {"out", "a", "b"};
    const bool transpose_a = desc->transpose_a, transpose_b = desc->transpose_b;
    dvt_array *in[3];
    dvt_shape shape, without;
    const dvt_shape *result = &shape;
    dvt_dtype dtype;
    dvt_status status;
    if (a && b && !desc->convert && !desc->dtype &&
        dvti_matmul_into_plain(dst, a, b, transpose_a, transpose_b) &&
        dvti_matmul_small(dst, a, b, transpose_a, transpose_b)) {
        dvti_written(dst);
        return dst;
    }
    in[0] = dst;
    in[1] = a;
    in[2] = b;
    if (!dvti_check_named(name, in, 3, names) || !dvti_matmul_desc_ok(name, desc) ||
        !dvti_matmul_has_axes(name, a, b))
        return NULL;
    dtype = desc->convert ? desc->dtype : dvti_matmul_dtype(a, b);
    if (!dvti_matmul_shape(name, a, b, transpose_a, transpose_b, &shape))
        return NULL;
    if (a->shape.ndim == 1 || b->shape.ndim == 1) {
        without = shape;
        dvti_matmul_drop(&without, a->shape.ndim == 1, b->shape.ndim == 1);
        result = &without;
    }
    if (!dvti_into_ok(name, dst, result, dtype, "out = NULL") ||
        !dvti_keeps_history(name, in, 3, names, "out = NULL"))
        return NULL;
    if (!dvti_has_elements(&shape))
        return dst;
    status =
        dvti_matmul_is_direct(dst, a, b, dtype)
            ? dvti_matmul_run(name, dst, &shape, a, transpose_a, b, transpose_b, NULL, false, NULL)
            : dvti_matmul_then_copy(name, dst, a, b, transpose_a, transpose_b, dtype);
    if (status != DVT_OK)
        return NULL;
    dvti_written(dst);
    return dst;
}

DVT_API dvt_array *dvt_matmul_with(dvt_array *a, dvt_array *b, const dvt_matmul_desc *desc) {
    static const char name[] = "dvt_matmul_with";
    static const dvt_matmul_desc none = {false, false, false, DVT_F32, NULL};
    dvt_array *in[2];
    if (!desc)
        desc = &none;
    if (desc->out)
        return dvti_matmul_into(name, desc->out, a, b, desc);
    in[0] = a;
    in[1] = b;
    if (!dvti_check(name, in, 2) || !dvti_matmul_desc_ok(name, desc))
        return NULL;
    return dvti_matmul_typed(name, a, b, desc->transpose_a, desc->transpose_b,
                             desc->convert ? desc->dtype : dvti_matmul_dtype(a, b));
}

/* ---- dot ---- */
/* Multiplies two arrays of at least two axes, where b has more than two. Multiplies every row of a
   by every matrix of b, so b's matrices are joined along the columns:

   a (rows, k)   x   b (k, [matrix 0 | matrix 1 | ...]) */
static dvt_array *dvti_dot_wide(dvt_array *a, dvt_array *b) {
    dvt_shape flat = DVT_SHAPE(1, a->shape.dim[a->shape.ndim - 1]), shape = a->shape;
    dvt_axes order = DVT_ALL;
    int64_t columns;
    int i, rest, k_axis = b->shape.ndim - 2;
    if (!dvti_inner_ok("dvt_dot", a, false, b, false, flat.dim[1], b->shape.dim[k_axis]))
        return NULL;
    if (a->shape.ndim + b->shape.ndim - 2 > DVT_MAX_DIMS) {
        dvti_fail(DVT_ERR_SHAPE,
                  "dvt_dot: a is %s and b is %s, whose product has %d axes; at most %d are "
                  "possible: use dvt_matmul, or reshape",
                  dvti_describe(a), dvti_describe(b), a->shape.ndim + b->shape.ndim - 2,
                  DVT_MAX_DIMS);
        return NULL;
    }
    rest = --shape.ndim;
    flat.dim[0] = dvti_extents(shape.dim, rest);
    order.axis[order.n++] = k_axis;
    for (i = 0; i < b->shape.ndim; i++)
        if (i != k_axis) {
            order.axis[order.n++] = i;
            shape.dim[shape.ndim++] = b->shape.dim[i];
        }
    columns = dvti_extents(shape.dim + rest, shape.ndim - rest);
    a = dvt_reshape(a, flat);
    b = dvt_reshape(dvt_transpose(b, order), DVT_SHAPE(flat.dim[1], columns));
    return dvt_reshape(dvti_matmul("dvt_dot", a, b, false, false), shape);
}

DVT_API dvt_array *dvt_dot(dvt_array *a, dvt_array *b) {
    dvt_scope_guard scope;
    dvt_array *in[2], *out;
    in[0] = a;
    in[1] = b;
    if (!dvti_check("dvt_dot", in, 2))
        return NULL;
    if (a->shape.ndim == 0 || b->shape.ndim == 0)
        return dvt_mul(a, b);
    if (a->shape.ndim == 1 || b->shape.ndim <= 2)
        return dvti_matmul("dvt_dot", a, b, false, false);
    scope = dvt_scope_begin();
    out = (dvt_array *)dvt_keep(dvti_dot_wide(a, b));
    dvt_scope_end(&scope);
    return out;
}
