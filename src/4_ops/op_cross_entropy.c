/* Softmax cross-entropy with class numbers, in one launch. A node's inputs are the prediction, the
   labels, and the logarithms of softmax, which the gradient reads. */
#include "4_ops/dvt_op.h"

DVTI_FN dvt_array *dvti_cross_entropy_launch(const char *name, dvti_op op, dvt_array *const *in,
                                             int n_in, dvt_array *const *out, int n_out) {
    dvti_launch launch;
    int k;
    dvti_launch_begin(&launch, name, dvti_kernel_cross_entropy(), op);
    launch.compute = dvti_class_of(out[0]->dtype);
    memset(&launch.in[0], 0, sizeof launch.in[0]);
    for (k = 0; k < n_in; k++)
        if (in[k])
            dvti_view_into(&launch.in[k], in[k]);
    for (k = 0; k < n_out; k++)
        dvti_view_into(&launch.out[k], out[k]);
    launch.n_in = n_in;
    launch.n_out = n_out;
    return dvti_run(out[0]->storage->device, &launch) == DVT_OK ? out[0] : NULL;
}

DVTI_FN bool dvti_cross_entropy_fits(const dvt_array *x, const dvt_array *label) {
    return (x->dtype == DVT_F32 || x->dtype == DVT_F64) && dvt_dtype_is_int(label->dtype) &&
           dvt_ctx_equal(x->storage->ctx, label->storage->ctx) && x->shape.ndim > 1 &&
           dvt_size(x) > 0 && dvt_size(x) == dvt_size(label) * x->shape.dim[x->shape.ndim - 1];
}

DVTI_FN dvt_array *dvti_cross_entropy(const char *name, dvt_array *x, dvt_array *label) {
    dvt_scope_guard scope = dvt_scope_begin();
    dvt_array *in[3], *out[2], *loss = NULL;
    in[0] = dvt_contiguous(x);
    in[1] = dvt_contiguous(label);
    out[0] = out[1] = NULL;
    if (in[0] && in[1]) {
        dvt_shape rows = in[0]->shape;
        rows.ndim--;
        out[0] = dvti_array_new(name, rows, x->dtype, x->storage->ctx);
        out[1] = dvti_array_new(name, in[0]->shape, x->dtype, x->storage->ctx);
    }
    if (out[0] && out[1] && dvti_cross_entropy_launch(name, DVTI_OP_cross_entropy, in, 2, out, 2)) {
        in[2] = out[1];
        loss = dvti_finish(out[0], DVTI_OP_cross_entropy, name, in, 3, NULL);
    }
    dvt_keep(loss);
    dvt_scope_end(&scope);
    return loss;
}
