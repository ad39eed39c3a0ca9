/* Gradients of reductions and softmax. Reduced arrays are first given back their axes with extent 1, so that everything else is
   broadcasting. */
#include "5_grad/dvt_grad.h"

/* x's shape with extent 1 on the axes of the mask. */
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

/* ---- prod ---- */
/* The product of the elements before each one along the last axis (from_end: behind it), 1 for the first. Hillis and Steele's
   scan, 1986: after the round with distance d every place holds the product of 2d elements, so log2(n) rounds are enough. */
static dvt_array *dvti_products_before(dvt_array *x, bool from_end) {
    int axis = x->shape.ndim - 1;
    int64_t n = x->shape.dim[axis], d, shift = 1;
    dvt_array *p = x;
    for (d = 0; p && d < n; d = d ? 2 * d : 1) { /* the round with d = 0 only moves */
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

/* g times the product of all others. No division, so zeros are nothing special, and the text can be differentiated again. */
static dvt_array *dvti_grad_prod(dvt_array *x, dvt_array *g, int64_t mask) {
    dvt_axes order = DVT_ALL, back = DVT_ALL;
    dvt_shape rows, moved;
    dvt_array *t, *others;
    int pass, i;
    if (dvt_size(x) == 0 || x->shape.ndim == 0)
        return dvt_broadcast_to(g, x->shape);
    for (pass = 0; pass < 2; pass++) /* kept axes first, then the reduced ones, which become one */
        for (i = 0; i < x->shape.ndim; i++)
            if ((mask >> i & 1) == pass) {
                back.axis[i] = order.n;
                order.axis[order.n++] = i;
            }
    back.n = order.n;
    t = dvt_transpose(x, order);
    if (!t)
        return NULL;
    moved = t->shape;
    rows = DVT_SHAPE(-1, dvti_reduced_count(x, mask));
    t = dvt_reshape(t, rows);
    if (!t)
        return NULL;
    others = dvt_mul(dvti_products_before(t, false), dvti_products_before(t, true));
    return dvt_mul(g, dvt_transpose(dvt_reshape(others, moved), back));
}

/* ---- the others ---- */
/* Divided equally among all elements that reach the extreme. */
static dvt_array *dvti_grad_extreme(dvt_array *x, dvt_array *g, dvt_array *y, int64_t mask) {
    dvt_array *reach = dvt_equal(x, y);
    dvt_array *share = dvt_div(g, dvt_sum(reach, dvti_mask_axes(mask), true));
    return dvt_where(reach, share, dvti_number_like(g, 0));
}

/* g x / y, and 0 where the norm is 0. */
static dvt_array *dvti_grad_norm(dvt_array *x, dvt_array *g, dvt_array *y) {
    dvt_array *zero = dvt_equal_scalar(y, 0);
    dvt_array *divisor = dvt_where(zero, dvti_number_like(g, 1), y);
    return dvt_mul(x, dvt_where(zero, dvti_number_like(g, 0), dvt_div(g, divisor)));
}

/* g exp(x - y). Where all of x is -inf so is y, and x - y would be NaN: exp(-inf - 0) is the 0 that is meant. */
static dvt_array *dvti_grad_logsumexp(dvt_array *x, dvt_array *g, dvt_array *y) {
    dvt_array *nothing = dvt_equal_scalar(y, -(double)INFINITY);
    dvt_array *safe = dvt_where(nothing, dvti_number_like(g, 0), y);
    return dvt_mul(g, dvt_exp(dvt_sub(x, safe)));
}

static dvt_array *dvti_grad_softmax(const dvti_node *node, dvt_array *g, dvt_array *y) {
    dvt_axes axes = DVT_AXES((int)node->attr.i[0]);
    if (node->op == DVTI_OP_softmax)
        return dvt_mul(y, dvt_sub(g, dvt_sum(dvt_mul(g, y), axes, true)));
    return dvt_sub(g, dvt_mul(dvt_exp(y), dvt_sum(g, axes, true)));
}

DVTI_FN void dvti_grad_reduce(dvti_grad_call *call) {
    const dvti_node *node = call->node;
    int64_t mask = node->attr.i[0];
    dvt_array *x = call->in[0], *g = call->g, *y = call->y;
    if (node->op == DVTI_OP_softmax || node->op == DVTI_OP_log_softmax) {
        call->out[0] = dvti_grad_softmax(node, g, y);
        return;
    }
    x = dvti_as_dtype_of(x, g);
    g = dvt_reshape(g, dvti_kept_shape(call->in[0], mask));
    if (y)
        y = dvt_reshape(y, dvti_kept_shape(call->in[0], mask));
    if (!x || !g || (call->y && !y))
        return;
    switch (node->op) {
    case DVTI_OP_sum:
        call->out[0] = dvt_broadcast_to(g, x->shape);
        break;
    case DVTI_OP_mean:
        call->out[0] =
            dvt_broadcast_to(dvt_div_scalar(g, (double)dvti_reduced_count(x, mask)), x->shape);
        break;
    case DVTI_OP_prod:
        call->out[0] = dvti_grad_prod(x, g, mask);
        break;
    case DVTI_OP_norm:
        call->out[0] = dvti_grad_norm(x, g, y);
        break;
    case DVTI_OP_logsumexp:
        call->out[0] = dvti_grad_logsumexp(x, g, y);
        break;
    default: /* min, max */
        call->out[0] = dvti_grad_extreme(x, g, y, mask);
    }
}
