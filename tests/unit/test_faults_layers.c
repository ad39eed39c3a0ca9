/* Each allocation fails once: activations, norms, convolutions, resizing, losses with options, and
   a recorded pass through a net of their blocks. */
#include "dvt_faults.h"

static dvt_array *ramp(dvt_shape shape) {
    dvt_array *x = dvt_arange(-3, (double)dvt_shape_size(shape) - 3, 1, DVT_F32, dvt_cpu());
    return dvt_mul_scalar(dvt_reshape(x, shape), 0.125);
}

DVT_FAULTS(layers_functions) {
    dvt_array *x = ramp(DVT_SHAPE(1, 2, 2, 3)), *half = dvt_as_in_dtype(x, DVT_F16);
    dvt_array *row = ramp(DVT_SHAPE(1, 2, 6)), *gamma = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    FAULTS_ADD(dvt_leaky_relu(half, 0.1));
    FAULTS_ADD(dvt_elu(x, 0.5));
    FAULTS_ADD(dvt_mish(half));
    FAULTS_ADD(dvt_hard_swish(x));
    FAULTS_ADD(dvt_prelu(x, gamma));
    FAULTS_ADD(dvt_swiglu(half, 1));
    FAULTS_ADD(dvt_rms_norm(half, NULL, 1e-5));
    FAULTS_ADD(dvt_group_norm(x, 2, gamma, gamma, 1e-5));
    FAULTS_ADD(dvt_conv1d(row, ramp(DVT_SHAPE(3, 2, 2)), NULL, NULL));
    FAULTS_ADD(dvt_conv2d_transpose(x, ramp(DVT_SHAPE(2, 2, 2, 2)), gamma, NULL));
}

DVT_FAULTS(layers_resizing) {
    dvt_array *x = ramp(DVT_SHAPE(1, 1, 2, 3));
    dvt_upsample2d_options p;
    memset(&p, 0, sizeof p);
    p.scale[0] = 2;
    FAULTS_ADD(dvt_upsample2d(x, &p));
    p.bilinear = true;
    FAULTS_ADD(dvt_upsample2d(x, &p));
    p.bilinear = false;
    p.scale[0] = 0;
    p.size[0] = 5;
    FAULTS_ADD(dvt_upsample2d(x, &p));
    FAULTS_ADD(dvt_adaptive_avg_pool2d(x, 2, 2));
}

#if !defined(DEVTENSOR_NO_NN)
DVT_FAULTS(layers_losses) {
    dvt_array *p = ramp(DVT_SHAPE(2, 3)), *l = DVT_ARRAY(int32_t, DVT_SHAPE(2), dvt_cpu(), 2, 0);
    dvt_array *weight = dvt_ones(DVT_SHAPE(3), DVT_F32, dvt_cpu());
    dvt_cross_entropy_options o;
    memset(&o, 0, sizeof o);
    o.label_smoothing = 0.5;
    o.class_weight = weight;
    o.ignore = true;
    FAULTS_ADD(dvt_loss_softmax_cross_entropy_with(p, l, &o));
    FAULTS_ADD(dvt_loss_kl_div(p, dvt_softmax(p, -1), false));
    FAULTS_ADD(dvt_loss_sigmoid_bce_weighted(p, dvt_zeros_like(p), weight));
    FAULTS_ADD(dvt_loss_triplet(p, dvt_neg(p), p, 1));
    FAULTS_ADD(dvt_loss_cosine_embedding(p, dvt_neg(p), l, 0));
}

DVT_FAULTS(layers_net) {
    dvt_block *net = dvt_nn_sequential();
    dvt_array *x = ramp(DVT_SHAPE(1, 2, 2, 2)), *y = NULL;
    FAULTS_OK(DVT_NN_ADD(net, dvt_nn_conv2d_transpose(2, 2, 2, DVT_SILU), dvt_nn_group_norm(2),
                         dvt_nn_prelu(2), dvt_nn_upsample2d(2, false)));
    FAULTS_OK(dvt_block_initialize(net, dvt_init_one(), DVT_CONTEXTS(dvt_cpu())));
    if (run->failed)
        return;
    DVT_RECORD {
        y = dvt_block_forward(net, x);
    }
    FAULTS_ADD(y);
    FAULTS_OK(y ? dvt_backward(y) : dvt_error_code());
    if (!run->failed)
        FAULTS_ADD(dvt_param_grad(dvt_block_param(dvt_block_at(net, 2), "alpha"), dvt_cpu()));
}
#endif
