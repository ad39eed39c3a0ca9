/* Gradients of the normalizations that are kernels of their own. A recorded backward pass computes
   them by operations, which have gradients themselves. */
#include "5_grad/dvt_grad.h"

/* Returns all axes but one. */
static dvt_axes dvti_axes_but(const dvt_array *x, int axis) {
    dvt_axes axes = DVT_ALL;
    int i;
    for (i = 0; i < x->shape.ndim; i++)
        if (i != axis)
            axes.axis[axes.n++] = i;
    return axes;
}

/* Returns the mean over the axes, kept with extent 1. */
static dvt_array *dvti_norm_mean(dvt_array *x, dvt_axes axes) {
    return dvt_mean(x, dvt_keepdims(axes));
}

/* One recorded gradient: of dvti_norm_launch's formula, by the names of layer_norm.cu. `axis` is
   that of gamma. */
typedef struct dvti_norm_terms {
    dvt_array *z, *scale, *gamma; /* gamma: NULL for none */
    dvt_axes axes;                /* of the statistics */
    int axis;
    bool centered, fixed; /* fixed: the statistics do not depend on x */
} dvti_norm_terms;

/* Computes the terms by recorded operations. */
static void dvti_norm_recompute(dvti_grad_call *call, dvti_norm_terms *t) {
    const dvti_attr *attr = &call->node->attr;
    dvt_array *x = dvti_wide_float(call->in[0]), *variance;
    if (t->fixed) {
        dvt_array *saved = call->in[attr->i[3]];
        t->z = dvt_sub(x, dvti_along(dvt_index(saved, 0), call->in[0], t->axis));
        t->scale = dvti_along(dvt_index(saved, 1), call->in[0], t->axis);
    } else {
        t->z = t->centered ? dvt_sub(x, dvti_norm_mean(x, t->axes)) : x;
        variance = dvti_norm_mean(dvt_square(t->z), t->axes);
        t->scale = dvt_rsqrt(dvt_add_scalar(variance, attr->f[0]));
    }
    t->z = dvt_mul(t->z, t->scale);
}

static void dvti_norm_recorded(dvti_grad_call *call, dvti_norm_terms *t) {
    const dvti_attr *attr = &call->node->attr;
    const dvt_axes others = dvti_axes_but(call->in[0], t->axis);
    dvt_array *g = dvti_wide_float(call->g), *d = g, *sums;
    dvti_norm_recompute(call, t);
    if (call->need[0]) {
        if (t->gamma)
            d = dvt_mul(g, dvti_along(t->gamma, call->in[0], t->axis));
        if (!t->fixed) {
            sums = dvt_mul(t->z, dvti_norm_mean(dvt_mul(d, t->z), t->axes));
            d = dvt_sub(t->centered ? dvt_sub(d, dvti_norm_mean(d, t->axes)) : d, sums);
        }
        call->out[0] = dvt_mul(d, t->scale);
    }
    if (attr->i[1] && call->need[attr->i[1]])
        call->out[attr->i[1]] = others.n ? dvt_sum(dvt_mul(g, t->z), others) : dvt_mul(g, t->z);
    if (attr->i[2] && call->need[attr->i[2]])
        call->out[attr->i[2]] = others.n ? dvt_sum(g, others) : g;
}

DVTI_FN void dvti_grad_layer_norm(dvti_grad_call *call) {
    const dvti_attr *attr = &call->node->attr;
    dvti_norm_terms t;
    if (!dvt_is_recording()) {
        dvti_norm_gradients("dvt_backward", DVTI_OP_layer_norm_data, call->node, call->g,
                            call->need, call->out);
        return;
    }
    memset(&t, 0, sizeof t);
    t.axis = call->in[0]->shape.ndim - 1;
    t.axes = DVT_AXES(t.axis);
    t.centered = !attr->i[0];
    t.gamma = attr->i[1] ? call->in[attr->i[1]] : NULL;
    dvti_norm_recorded(call, &t);
}

DVTI_FN void dvti_grad_batch_norm(dvti_grad_call *call) {
    const dvti_attr *attr = &call->node->attr;
    dvti_norm_terms t;
    if (!dvt_is_recording()) {
        dvti_norm_gradients("dvt_backward", DVTI_OP_batch_norm_data, call->node, call->g,
                            call->need, call->out);
        return;
    }
    memset(&t, 0, sizeof t);
    t.axis = (int)attr->i[4];
    t.axes = dvti_axes_but(call->in[0], t.axis);
    t.centered = true;
    t.fixed = !attr->i[0];
    t.gamma = call->in[attr->i[1]];
    dvti_norm_recorded(call, &t);
}
