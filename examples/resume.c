/* A training that can be stopped at any time. Run it again after Ctrl-C, or after kill -9: it goes
   on where it was. The last line is the same, to the last bit, as without an interruption.
   cc -I. examples/resume.c -lm -ldl -lpthread; ./a.out DIRECTORY [STEPS] */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"
#include <stdio.h>
#include <stdlib.h>

/* Drawn data: the class is the quadrant of a point. */
static dvt_loader *drawn_data(void) {
    dvt_array *x = dvt_key_uniform(dvt_key_new(1), -1, 1, DVT_SHAPE(512, 2), DVT_F32, dvt_cpu());
    dvt_array *right = dvt_astype(dvt_greater_scalar(dvt_slice(x, 1, 0, 1, 1), 0), DVT_I32);
    dvt_array *upper = dvt_astype(dvt_greater_scalar(dvt_slice(x, 1, 1, 2, 1), 0), DVT_I32);
    dvt_array *y = dvt_add(right, dvt_mul_scalar(upper, 2));
    dvt_loader_desc desc = {0};
    desc.batch_size = 32;
    desc.shuffle = true;
    desc.num_workers = 1;
    return dvt_loader_new(dvt_dataset_arrays(x, dvt_reshape(y, DVT_SHAPE(-1))), &desc);
}

int main(int argc, char **argv) {
    const char *directory = argc > 1 ? argv[1] : ".";
    const int64_t steps = argc > 2 ? atoll(argv[2]) : 200;
    dvt_ctx device = dvt_try_gpu(0);
    dvt_optimizer adam = dvt_optimizer_adam(0.02);
    dvt_block *net = dvt_nn_sequential();
    dvt_loader *loader = drawn_data();
    dvt_checkpoint run = {0};
    char path[1024];
    double total = 0;
    DVT_NN_ADD(net, dvt_nn_dense(16, DVT_IDENTITY), dvt_nn_batch_norm(),
               dvt_nn_activation(DVT_RELU), dvt_nn_dropout(0.2), dvt_nn_dense(4, DVT_IDENTITY));
    dvt_block_initialize(net, dvt_init_xavier(), DVT_CONTEXTS(device));
    adam.schedule = dvt_schedule_cosine(steps, 0);
    run.net = net;
    run.loader = loader;
    run.trainer = dvt_trainer_new(dvt_block_collect_params(net, NULL), adam);
    if (dvt_checkpoint_latest(directory, path, sizeof path) &&
        dvt_checkpoint_load(&run, path) == DVT_OK)
        printf("resumed at step %lld\n", (long long)run.step);
    while (dvt_trainer_steps(run.trainer) < steps && dvt_error_code() == DVT_OK) {
        dvt_array *x, *y, *loss = NULL;
        DVT_SCOPED;
        if (!dvt_loader_next(loader, &x, &y))
            continue; /* the next epoch */
        x = dvt_as_in_ctx(x, device);
        y = dvt_as_in_ctx(y, device);
        DVT_RECORD {
            loss = dvt_loss_softmax_cross_entropy(dvt_block_forward(net, x), y);
        }
        dvt_backward(loss);
        dvt_trainer_step(run.trainer, 32);
        run.step = dvt_trainer_steps(run.trainer);
        run.metric = dvt_item(dvt_mean(loss, DVT_ALL));
        if (run.step % 10 == 0)
            dvt_checkpoint_keep_best(&run, directory, 2, DVT_SMALLEST);
    }
    DVT_SCOPE {
        dvt_params *params = dvt_block_collect_params(net, NULL);
        int i;
        for (i = 0; i < dvt_params_len(params); i++)
            total += dvt_item(dvt_norm(dvt_param_data(dvt_params_at(params, i), device), DVT_ALL));
    }
    printf("loss %.9g, norms %.17g after %lld steps\n", run.metric, total, (long long)steps);
    if (dvt_error_code() != DVT_OK)
        printf("%s\n", dvt_error());
    return dvt_error_code() != DVT_OK;
}
