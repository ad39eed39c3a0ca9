/* Each allocation fails once: mixed precision, a forward and a backward pass with a loss scale, and
   steps that are taken and skipped. */
#include "dvt_faults.h"

#if !defined(DEVTENSOR_NO_NN)
DVT_FAULTS_MOST(mixed_training, 400) {
    dvt_ctx ctx = dvt_cpu();
    dvt_block *net = dvt_nn_sequential();
    dvt_array *x = dvt_reshape(dvt_arange(0, 6, 1, DVT_F32, ctx), DVT_SHAPE(2, 3)), *y = NULL;
    dvt_trainer *trainer;
    dvt_params *params;
    dvt_mixed_precision state;
    int step;
    if (!x || DVT_NN_ADD(net, dvt_nn_dense(2, DVT_TANH), dvt_nn_layer_norm()) != DVT_OK ||
        dvt_block_initialize(net, dvt_init_xavier(), DVT_CONTEXTS(ctx)) != DVT_OK) {
        run->failed = 1;
        return;
    }
    FAULTS_OK(dvt_block_set_mixed_precision(net, DVT_F16));
    params = dvt_block_collect_params(net, NULL);
    trainer = params ? dvt_trainer_new(params, dvt_optimizer_sgd(0.1)) : NULL;
    FAULTS_TRUE(trainer);
    for (step = 0; step < 2 && !run->failed; step++)
        DVT_SCOPE {
            DVT_RECORD {
                y = dvt_block_forward(net, x);
                y = dvt_mul_scalar(y, step ? 0.01 : 1e30);
            }
            FAULTS_ADD(y);
            if (!run->failed)
                FAULTS_OK(dvt_backward(y));
            if (!run->failed) {
                dvt_array *w = dvt_param_data(dvt_params_at(params, 0), ctx);
                uint64_t before = dvt_fault_look(w);
                state = dvt_block_mixed_precision(net);
                FAULTS_OK(dvt_trainer_step(trainer, 2));
                if (run->failed) {
                    CHECK(dvt_fault_look(w) == before);
                    CHECK(dvt_block_mixed_precision(net).loss_scale == state.loss_scale);
                }
            }
        }
    if (run->failed)
        return;
    state = dvt_block_mixed_precision(net);
    CHECK_INT(state.skipped_steps, 1);
    FAULTS_ADD(dvt_param_data(dvt_params_at(params, 0), ctx));
    FAULTS_ADD(dvt_param_data(dvt_params_at(params, 2), ctx));
}
#endif
