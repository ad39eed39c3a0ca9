/* Gradients of reductions, cumulative sums and softmax. Reduced arrays first get their axes back
   with extent 1; everything else is broadcasting. */
#include "5_grad/dvt_grad.h"

/* Returns x's shape with extent 1 on the axes of the mask. */
static dvt_shape dvti_kept_shape(const dvt_array *x, int64_t mask) {
    dvt_shape shape = x->shape;
    int i;
    for (i = 0; i < shape.ndim; i++)
        if (mask >> i & 1)
            shape.dim[i] = 1;
    return shape;
}

static int64_t dvti_reduced_count(const dvt_array *x, int64_t mask) {
    int64_t dim[DVT_MAX_DIMS];
    int n = 0, i;
    for (i = 0; i < x->shape.ndim; i++)
        if (mask >> i & 1)
            dim[n++] = x->shape.dim[i];
    return dvti_extents(dim, n);
}

static dvt_axes dvti_mask_axes(int64_t mask) {
    dvt_axes axes = DVT_ALL;
    int i;
    for (i = 0; i < DVT_MAX_DIMS; i++)
        if (mask >> i & 1)
            axes.axis[axes.n++] = i;
    return axes;
}

/* ---- the reduced axes joined to one, the last ---- */
typedef struct dvti_rows_last {
    dvt_axes back;
    dvt_shape moved;
} dvti_rows_last;

/* Returns x as (kept, reduced) elements. x is neither empty nor 0-d. */
static dvt_array *dvti_to_rows(dvt_array *x, int64_t mask, dvti_rows_last *rows) {
    dvt_axes order = DVT_ALL;
    dvt_array *t;
    int pass, i;
    rows->back = DVT_ALL;
    rows->moved = DVT_SCALAR;
    if (!x)
        return NULL;
    for (pass = 0; pass < 2; pass++)
        for (i = 0; i < x->shape.ndim; i++)
            if ((mask >> i & 1) == pass) {
                rows->back.axis[i] = order.n;
                order.axis[order.n++] = i;
            }
    rows->back.n = order.n;
    t = dvt_transpose(x, order);
    if (!t)
        return NULL;
    rows->moved = t->shape;
    return dvt_reshape(t, DVT_SHAPE(-1, dvti_reduced_count(x, mask)));
}

/* Reverts dvti_to_rows. */
static dvt_array *dvti_from_rows(dvt_array *t, const dvti_rows_last *rows) {
    return dvt_transpose(dvt_reshape(t, rows->moved), rows->back);
}

/* ---- prod ---- */
/* Returns the product of the elements before each one along the last axis, 1 for the first. With
   from_end, it returns the product of those after each one.

   The scan is that of Hillis and Steele, 1986. After the round with distance d every place holds
   the product of 2d elements, so log2(n) rounds are enough:

   d = 0      1      a      b      c
   d = 1      1      a      ab     bc
   d = 2      1      a      ab     abc */
static dvt_array *dvti_products_before(dvt_array *x, bool from_end) {
    int axis = x->shape.ndim - 1;
    int64_t n = x->shape.dim[axis], d, shift = 1;
    dvt_array *p = x;
    for (d = 0; p && d < n; d = d ? 2 * d : 1) { /* the round with d = 0 only shifts */
        dvt_array *pair[2], *moved;
        dvt_shape edge = x->shape;
        shift = d ? d : 1;
        edge.dim[axis] = shift;
        pair[from_end ? 1 : 0] = dvt_ones(edge, x->dtype, x->storage->ctx);
        pair[from_end ? 0 : 1] =
            from_end ? dvt_slice(p, axis, shift, n, 1) : dvt_slice(p, axis, 0, n - shift, 1);
        moved = dvt_concat(pair, 2, axis);
        p = d ? dvt_mul(p, moved) : moved;
    }
    return p;
}

/* Returns g times the product of all others, in at least float32: partial products may leave a
   16-bit float's range. It uses no division, so zeros need no special case, and the result can be
   differentiated again. */
static dvt_array *dvti_grad_prod(dvt_array *x, dvt_array *g, int64_t mask) {
    dvti_rows_last rows;
    dvt_array *t, *others;
    if (dvt_size(x) == 0 || x->shape.ndim == 0)
        return dvt_broadcast_to(g, x->shape);
    t = dvti_to_rows(dvti_wide_float(x), mask, &rows);
    if (!t)
        return NULL;
    others = dvt_mul(dvti_products_before(t, false), dvti_products_before(t, true));
    return dvt_mul(g, dvti_from_rows(others, &rows));
}

/* ---- the others ---- */
/* Divides g equally among all elements that equal the extreme. */
static dvt_array *dvti_grad_extreme(dvt_array *x, dvt_array *g, dvt_array *y, int64_t mask) {
    dvt_array *reach = dvt_equal(x, y);
    dvt_array *share = dvt_div(g, dvt_sum(reach, dvt_keepdims(dvti_mask_axes(mask))));
    return dvt_where(reach, share, dvti_number_like(g, 0));
}

/* Returns g (x / y), and 0 where the norm is 0. The quotient is at most 1, whereas g / y would
   overflow for a small norm. float16 has few digits for small norms and cannot hold large ones.
   There y is recomputed in float32. */
static dvt_array *dvti_grad_norm(dvt_array *x, dvt_array *g, dvt_array *y, int64_t mask) {
    dvt_array *zero, *divisor;
    if (x->dtype == DVT_F16) {
        x = dvti_wide_float(x);
        y = dvt_norm(x, dvt_keepdims(dvti_mask_axes(mask)));
    }
    zero = dvt_equal_scalar(y, 0);
    divisor = dvt_where(zero, dvti_number_like(y, 1), y);
    return dvt_mul(dvt_div(x, divisor), dvt_where(zero, dvti_number_like(g, 0), g));
}

/* Returns g softmax(x). exp(x - y) would multiply the rounding of y by its size. Where all of x is
   -inf, softmax would be NaN; the gradient is 0 there. */
static dvt_array *dvti_grad_logsumexp(dvt_array *x, dvt_array *g, dvt_array *y, int64_t mask) {
    dvt_array *nothing = dvt_equal_scalar(y, -(double)INFINITY), *safe, *p;
    dvti_rows_last rows;
    int axis = 0;
    if (dvt_size(x) == 0)
        return dvt_broadcast_to(g, x->shape);
    if (x->shape.ndim == 0)
        return dvt_where(nothing, dvti_number_like(g, 0), g);
    safe = dvt_where(nothing, dvti_number_like(g, 0), x);
    while (mask != (int64_t)1 << axis && axis < x->shape.ndim)
        axis++;
    if (axis < x->shape.ndim)
        p = dvt_softmax(safe, axis);
    else
        p = dvti_from_rows(dvt_softmax(dvti_to_rows(safe, mask, &rows), -1), &rows);
    return dvt_mul(p, dvt_where(nothing, dvti_number_like(g, 0), g));
}

/* Computes in at least float32: differences of numbers rounded to 16 bits have few digits. */
DVTI_FN void dvti_grad_softmax(dvti_grad_call *call) {
    dvt_axes axes = DVT_AXES((int)call->node->attr.i[0]);
    dvt_array *g = dvti_wide_float(call->g), *y = dvti_wide_float(call->y);
    if (call->node->op == DVTI_OP_softmax)
        call->out[0] = dvt_mul(y, dvt_sub(g, dvt_sum(dvt_mul(g, y), dvt_keepdims(axes))));
    else
        call->out[0] = dvt_sub(g, dvt_mul(dvt_exp(y), dvt_sum(g, dvt_keepdims(axes))));
}

/* The recorded form of the gradient of cross-entropy: operations that have gradients, of the
   prediction instead of its saved logarithms. */
static dvt_array *dvti_cross_entropy_recorded(dvt_array *x, dvt_array *label, dvt_array *g) {
    const int last = x->shape.ndim - 1;
    dvt_array *s, *at;
    dvt_shape column = x->shape;
    column.dim[last] = 1;
    label = dvt_reshape(dvt_as_in_dtype(label, DVT_I64), column);
    s = dvt_neg(dvt_reshape(g, column));
    at = s && label ? dvti_take_along_add(s, label, last, x->shape.dim[last]) : NULL;
    return dvt_sub(at, dvt_mul(dvt_exp(dvt_log_softmax(x, last)), s));
}

DVTI_FN void dvti_grad_cross_entropy(dvti_grad_call *call) {
    static const char *const name = "dvt_backward";
    dvt_array *in[3], *out;
    if (dvt_is_recording()) {
        call->out[0] = dvti_cross_entropy_recorded(call->in[0], call->in[1], call->g);
        return;
    }
    in[0] = call->g ? dvt_contiguous(call->g) : NULL;
    in[1] = call->in[1];
    in[2] = call->in[2];
    out = in[0] || !call->g ? dvti_array_new(name, in[2]->shape, in[2]->dtype, in[2]->storage->ctx)
                            : NULL;
    if (out)
        call->out[0] = dvti_cross_entropy_launch(name, DVTI_OP_cross_entropy_data, in, 3, &out, 1);
}

/* Evaluates the gradient column of the table. */
DVTI_FN void dvti_grad_reduce(dvti_grad_call *call) {
    const dvti_node *node = call->node;
    int64_t mask = node->attr.i[0];
    dvt_array *x = call->in[0], *g = call->g, *y = call->y;
    x = dvti_as_dtype_of(x, g);
    g = dvt_reshape(g, dvti_kept_shape(call->in[0], mask));
    if (y)
        y = dvt_reshape(y, dvti_kept_shape(call->in[0], mask));
    if (!x || !g || (call->y && !y))
        return;
    switch ((int)node->op) {
#define DVTI_ROW(name, rule, method, none, term, join, finish, reads, grad, lo, hi, doc)           \
    case DVTI_OP_##name:                                                                           \
        call->out[0] = grad;                                                                       \
        break;
        DVTI_REDUCE_TABLE(DVTI_ROW)
#undef DVTI_ROW
    default:
        break;
    }
}

/* ---- cumulative sums ---- */
/* Computes the gradient of cumulative sums. An element is in all sums from its own on, so its
   gradient is the sum of theirs from the other end. */
DVTI_FN void dvti_grad_scan(dvti_grad_call *call) {
    const dvti_attr *attr = &call->node->attr;
    call->out[0] = dvti_cumsum(call->g, (int)attr->i[0], !attr->i[1]);
}
