/* A custom block: x + f(x), with two dense layers inside, trained on a small regression with Adam
   and a cosine schedule. */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"
#include <stdio.h>
#include <string.h>

static dvt_array *residual_forward(dvt_block *self, void *user, dvt_array *x) {
    (void)user;
    return dvt_add(
        x, dvt_block_forward(dvt_block_at(self, 1), dvt_block_forward(dvt_block_at(self, 0), x)));
}

static dvt_block *residual(int64_t units) {
    dvt_block_desc desc;
    dvt_block *self;
    memset(&desc, 0, sizeof desc);
    desc.kind = "Residual";
    desc.forward = residual_forward;
    self = dvt_block_new(&desc);
    dvt_block_add_child(self, dvt_nn_dense(4 * units, DVT_TANH));
    dvt_block_add_child(self, dvt_nn_dense(units, DVT_IDENTITY));
    return self;
}

int main(void) {
    dvt_ctx_list devices = dvt_try_all_gpus_or_cpu();
    dvt_ctx dev = devices.ctx[0];
    dvt_block *net = dvt_nn_sequential();
    dvt_optimizer optimizer = dvt_optimizer_adam(0.01);
    dvt_trainer *trainer;
    double first = 0, last = 0;
    int step;
    optimizer.schedule = dvt_schedule_cosine(300, 0.0001);
    DVT_NN_ADD(net, residual(2), residual(2), dvt_nn_dense(1, DVT_IDENTITY));
    dvt_block_initialize(net, dvt_init_xavier(), DVT_CONTEXTS(dev));
    trainer = dvt_trainer_new(dvt_block_collect_params(net, NULL), optimizer);
    for (step = 0; step < 300 && dvt_error_code() == DVT_OK; step++) {
        DVT_SCOPED;
        dvt_array *x = dvt_uniform(-1, 1, DVT_SHAPE(64, 2), DVT_F32, dev), *loss = NULL;
        dvt_array *y =
            dvt_prod(x, DVT_KEEPDIMS(1)); /* the saddle x0 * x1, which no linear model can fit */
        DVT_RECORD {
            loss = dvt_loss_l2(dvt_block_forward(net, x), y);
        }
        dvt_backward(loss);
        dvt_trainer_step(trainer, 64);
        last = dvt_item(dvt_mean(loss, DVT_ALL));
        if (step == 0)
            first = last;
    }
    dvt_block_print(net);
    printf("loss %.4f at first, %.6f at last\n", first, last);
    if (dvt_error_code() != DVT_OK)
        printf("%s\n", dvt_error());
    return dvt_error_code() != DVT_OK || !(last < first);
}
