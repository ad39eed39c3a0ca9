/* Normalizations that are kernels of their own, on devices that have kernels for their gradients
   too. A node of layer_norm or batch_norm has x, gamma, beta and the statistics as inputs; without
   gamma, the statistics come second. They are a result that only the gradient reads.

     attr         f[0]      i[0]                      i[1], i[2], i[3]               i[4]
     layer_norm   epsilon   1: RMSNorm                positions of gamma and beta
     batch_norm   epsilon   1: by statistics of x     (0: none), and statistics      axis */
#include "4_ops/dvt_op.h"

/* ---- views ---- */
static void dvti_norm_view(dvti_view *view, const dvt_array *x) {
    if (x)
        dvti_view_into(view, x);
    else
        memset(view, 0, sizeof *view); /* data NULL */
}

/* Views an array like x, contiguous or NULL, as rows, or as (a, c, b) with c along the axis. */
static void dvti_norm_view_x(dvti_view *view, const dvt_array *x, dvti_op op, int axis) {
    int64_t dim[3];
    int i;
    dvti_norm_view(view, x);
    if (!x || op == DVTI_OP_layer_norm || op == DVTI_OP_layer_norm_data)
        return;
    dim[0] = dim[1] = dim[2] = 1;
    for (i = 0; i < x->shape.ndim; i++)
        dim[i < axis ? 0 : i == axis ? 1 : 2] *= x->shape.dim[i];
    view->ndim = 3;
    for (i = 0; i < 3; i++)
        view->dim[i] = dim[i];
    view->stride[2] = 1;
    view->stride[1] = dim[2];
    view->stride[0] = dim[1] * dim[2];
}

static void dvti_norm_begin(dvti_launch *launch, const char *name, dvti_op op, const dvt_array *x,
                            dvt_dtype dtype) {
    const bool layer = op == DVTI_OP_layer_norm || op == DVTI_OP_layer_norm_data;
    dvti_launch_begin(launch, name, layer ? dvti_kernel_layer_norm() : dvti_kernel_batch_norm(),
                      op);
    launch->compute = x->dtype == DVT_F64 || dtype == DVT_F64 ? DVTI_F64 : DVTI_F32;
}

/* ---- forward ---- */
DVTI_FN bool dvti_norm_is_kernel(dvti_op gradient, const dvt_array *x, const dvt_array *gamma,
                                 const dvt_array *beta) {
    return (!gamma || dvt_dtype_is_float(gamma->dtype)) &&
           (!beta || dvt_dtype_is_float(beta->dtype)) && dvt_size(x) > 0 &&
           dvti_supports(x->storage->device,
                         gradient == DVTI_OP_layer_norm_data ? dvti_kernel_layer_norm()
                                                             : dvti_kernel_batch_norm(),
                         gradient, x->dtype, DVTI_CAN_RUN);
}

/* Makes x, gamma and beta contiguous, x a float, and gamma and beta of one dtype. */
static bool dvti_norm_ready(dvt_array **in, dvt_dtype dtype) {
    int i;
    if (dtype == DVT_F64 || !dvt_dtype_is_float(in[0]->dtype))
        in[0] = dvt_as_in_dtype(in[0], dtype == DVT_F64 ? DVT_F64 : DVT_F32);
    if (in[1] && in[2] && in[1]->dtype != in[2]->dtype) {
        const dvt_dtype both = dvt_promote(in[1]->dtype, in[2]->dtype);
        for (i = 1; i < 3; i++)
            if (!(in[i] = dvt_as_in_dtype(in[i], both)))
                return false;
    }
    for (i = 0; i < 3; i++)
        if ((in[i] || i == 0) && !(in[i] = dvt_contiguous(in[i])))
            return false;
    return true;
}

/* Writes the inputs of a node and their positions. Returns their number. The second input must be
   one that x's gradient reads: see DVTI_EACH_NORM. */
static int dvti_norm_inputs(dvt_array *const *in, dvt_array *statistics, dvt_array **of_node,
                            dvti_attr *attr) {
    int n = 0, i;
    of_node[n++] = in[0];
    attr->i[3] = 1 + (in[1] != NULL) + (in[1] && in[2]);
    of_node[attr->i[3]] = statistics;
    for (i = 1; i < 3; i++)
        if (in[i]) {
            n += n == attr->i[3];
            attr->i[i] = n;
            of_node[n++] = in[i];
        }
    return 2 + (in[1] != NULL) + (in[2] != NULL);
}

static bool dvti_norm_is_recorded(dvt_array *const *in) {
    return dvt_is_recording() &&
           (dvt_has_history(in[0]) || dvt_has_history(in[1]) || dvt_has_history(in[2]));
}

DVTI_FN dvt_array *dvti_norm_launch(const char *name, dvti_op op, dvt_array *const *inputs,
                                    dvt_array *const *running, const dvti_attr *options,
                                    double momentum, dvt_dtype dtype) {
    dvti_attr attr = *options;
    dvti_launch launch;
    dvti_node *node = NULL;
    dvt_array *in[3], *of_node[4], *out, *statistics = NULL;
    int i, n;
    memcpy(in, inputs, sizeof in);
    if (!dvti_norm_ready(in, dtype) ||
        !(out = dvti_array_new(name, in[0]->shape, dtype, in[0]->storage->ctx)))
        return NULL;
    dvti_norm_begin(&launch, name, op, in[0], dtype);
    if (dvti_norm_is_recorded(in)) {
        dvt_shape shape = in[0]->shape;
        if (op == DVTI_OP_layer_norm)
            shape.dim[shape.ndim - 1] = 2;
        else
            shape = DVT_SHAPE(2, in[0]->shape.dim[attr.i[4]]);
        statistics = dvti_array_new(name, shape, launch.compute == DVTI_F64 ? DVT_F64 : DVT_F32,
                                    in[0]->storage->ctx);
        if (!statistics)
            return NULL;
        n = dvti_norm_inputs(in, statistics, of_node, &attr);
        if (!dvti_prepare(out, op, name, of_node, n, &attr, &node))
            return NULL;
    }
    launch.n_in = 3;
    launch.n_out = running ? 4 : statistics ? 2 : 1;
    dvti_norm_view_x(&launch.in[0], in[0], op, (int)attr.i[4]);
    dvti_norm_view_x(&launch.out[0], out, op, (int)attr.i[4]);
    for (i = 1; i < 3; i++)
        dvti_norm_view(&launch.in[i], in[i]);
    dvti_norm_view(&launch.out[1], statistics);
    for (i = 0; running && i < 2; i++)
        dvti_norm_view(&launch.out[2 + i], running[i]);
    launch.f[0] = attr.f[0];
    launch.f[1] = momentum;
    launch.i[0] = attr.i[0];
    if (dvti_run(out->storage->device, &launch) != DVT_OK) {
        dvti_node_release(node);
        return NULL;
    }
    return dvti_remember(out, node);
}

/* ---- gradients ---- */
DVTI_FN bool dvti_norm_gradients(const char *name, dvti_op op, const dvti_node *node, dvt_array *g,
                                 const bool *need, dvt_array **out) {
    const dvti_attr *attr = &node->attr;
    dvt_array *x = node->in[0];
    dvti_launch launch;
    int i;
    if (!(g = dvt_contiguous(g)))
        return false;
    dvti_norm_begin(&launch, name, op, x, g->dtype);
    launch.n_in = 4;
    launch.n_out = 3;
    dvti_norm_view_x(&launch.in[0], g, op, (int)attr->i[4]);
    dvti_norm_view_x(&launch.in[1], x, op, (int)attr->i[4]);
    dvti_norm_view(&launch.in[2], attr->i[1] ? node->in[attr->i[1]] : NULL);
    dvti_norm_view(&launch.in[3], node->in[attr->i[3]]);
    for (i = 0; i < 3; i++) {
        const int at = i ? (int)attr->i[i] : 0;
        dvt_array *of = NULL;
        if ((at || i == 0) && need[at]) {
            of = dvti_array_new(name, node->in[at]->shape, node->in[at]->dtype, x->storage->ctx);
            if (!of)
                return false;
            out[at] = of;
        }
        if (i == 0)
            dvti_norm_view_x(&launch.out[0], of, op, (int)attr->i[4]);
        else
            dvti_norm_view(&launch.out[i], of);
    }
    launch.i[0] = attr->i[0];
    return dvti_run(x->storage->device, &launch) == DVT_OK;
}
