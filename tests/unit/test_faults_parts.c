/* Each allocation fails once: training in parts. */
#include "dvt_faults.h"

#if !defined(DEVTENSOR_NO_NN)
DVT_FAULTS(train_parts) {
    dvt_ctx_list two = DVT_CONTEXTS(dvt_cpu(), dvt_cpu_id(1));
    dvt_array *x = dvt_full(DVT_SHAPE(5, 2), 0.5, DVT_F32, dvt_cpu()), *px, *py;
    dvt_block *net = dvt_nn_sequential();
    dvt_trainer *t = NULL;
    dvt_params *params;
    int i;
    dvt_seed(1);
    FAULTS_OK(DVT_NN_ADD(net, dvt_nn_dense(2, DVT_IDENTITY), dvt_nn_batch_norm()));
    FAULTS_OK(dvt_block_initialize(net, dvt_init_one(), two));
    if (!x || run->failed) {
        run->failed = 1;
        return;
    }
    DVT_PREDICT_MODE {
        FAULTS_ADD(dvt_block_forward(net, x));
    }
    params = run->failed ? NULL : dvt_block_collect_params(net, NULL);
    t = params ? dvt_trainer_new(params, dvt_optimizer_sgd(0.1)) : NULL;
    if (!t || dvt_trainer_set_parts(t, 3) != DVT_OK) {
        run->failed = 1;
        return;
    }
    DVT_FOR_TRAINER_PARTS(t, x, x, px, py) {
        dvt_array *loss = NULL;
        DVT_RECORD {
            loss = dvt_loss_l2(dvt_dropout(dvt_block_forward(net, px), 0.5), py);
        }
        FAULTS_OK(dvt_backward(loss));
        FAULTS_OK(dvt_trainer_add_loss(t, loss));
    }
    if (dvt_error_code() != DVT_OK)
        run->failed = 1;
    FAULTS_OK(dvt_trainer_step(t, 5));
    for (i = 0; !run->failed && i < dvt_params_len(params); i++)
        FAULTS_ADD(dvt_param_data(dvt_params_at(params, i), dvt_cpu_id(1)));
}
#endif
