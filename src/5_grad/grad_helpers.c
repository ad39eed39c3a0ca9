/* What gradient functions share. */
#include "5_grad/dvt_grad.h"

DVTI_FN dvt_array *dvti_as_dtype_of(dvt_array *x, dvt_array *g) {
    return x && g ? dvt_as_in_dtype(x, g->dtype) : NULL;
}

DVTI_FN dvt_array *dvti_no_gradient(dvt_array *g) {
    return dvt_zeros_like(g);
}

DVTI_FN dvt_array *dvti_number_like(dvt_array *g, double value) {
    return g ? dvt_full(DVT_SCALAR, value, g->dtype, g->storage->ctx) : NULL;
}

DVTI_FN dvt_array *dvti_unbroadcast(dvt_array *g, dvt_array *x) {
    dvt_axes axes = DVT_ALL;
    int lead, i;
    if (!g)
        return NULL;
    lead = g->shape.ndim - x->shape.ndim;
    for (i = 0; i < g->shape.ndim; i++)
        if (i < lead || (x->shape.dim[i - lead] == 1 && g->shape.dim[i] != 1))
            axes.axis[axes.n++] = i;
    if (axes.n)
        g = dvt_sum(g, dvt_keepdims(axes));
    if (g && !dvt_shape_equal(g->shape, x->shape))
        g = dvt_reshape(g, x->shape);
    return dvti_as_dtype_of(g, x);
}
