/* "GPUs" of Dive into Deep Learning: the MXNet, PyTorch and TensorFlow editions, block by block. */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"
#include "show.h"

/* d2l's Trainer: at most the GPUs that exist, batches and models moved to the first, gradients clipped. */
typedef struct d2l_trainer {
    int max_epochs;
    double gradient_clip_val;
    dvt_ctx_list gpus;
} d2l_trainer;

static d2l_trainer d2l_trainer_new(int max_epochs, int num_gpus, double gradient_clip_val) {
    d2l_trainer t;
    int i;
    memset(&t, 0, sizeof t);
    t.max_epochs = max_epochs;
    t.gradient_clip_val = gradient_clip_val;
    for (i = 0; i < num_gpus && i < dvt_num_gpus(); i++)
        t.gpus.ctx[t.gpus.n++] = dvt_gpu(i);
    return t;
}

static dvt_array *prepare_batch(const d2l_trainer *t, dvt_array *batch) {
    return t->gpus.n ? dvt_as_in_ctx(batch, t->gpus.ctx[0]) : batch;
}

static void prepare_model(const d2l_trainer *t, dvt_block *model) {
    if (t->gpus.n)
        dvt_params_reset_ctx(dvt_collect_params(model, NULL), DVT_CONTEXTS(t->gpus.ctx[0]));
}

/* Parameters kept by hand: moved while recording, as the MXNet edition does it, then a gradient attached on the new device. */
static dvt_array *set_scratch_param_device(dvt_array *w, dvt_ctx device) {
    dvt_array *moved = NULL;
    DVT_RECORD {
        moved = dvt_as_in_ctx(w, device);
    }
    dvt_attach_grad(moved, DVT_GRAD_WRITE);
    return moved;
}

/* A line fitted with the trainer above: every step on one device. Returns the last loss. */
static double fit(const d2l_trainer *t, dvt_block *model) {
    dvt_trainer *trainer;
    double loss_value = 0;
    int epoch;
    prepare_model(t, model);
    trainer = dvt_trainer_new(dvt_collect_params(model, NULL), dvt_sgd(0.3));
    for (epoch = 0; epoch < t->max_epochs; epoch++)
        DVT_SCOPE {
            dvt_array *x = prepare_batch(t, dvt_normal(0, 1, DVT_SHAPE(64, 2), DVT_F32, dvt_cpu()));
            dvt_array *w =
                dvt_as_in_ctx(DVT_ARRAY2(dvt_cpu(), float, 2, 1, {{2}, {-3.4f}}), dvt_ctx_of(x));
            dvt_array *y = dvt_add_scalar(dvt_matmul(x, w), 4.2), *loss;
            DVT_RECORD {
                loss = dvt_l2_loss(dvt_forward(model, x), y);
            }
            dvt_backward(loss);
            dvt_trainer_allreduce(trainer);
            if (t->gradient_clip_val >
                0) /* before division by the batch size, so the bound grows with it */
                dvt_trainer_clip_global_norm(trainer, t->gradient_clip_val * 64);
            dvt_trainer_update(trainer, 64);
            loss_value = dvt_item(dvt_mean(loss, DVT_ALL, false));
        }
    return loss_value;
}

int main(void) {
    dvt_array *x, *X, *Y, *Z, *w;
    dvt_block *net, *same;
    d2l_trainer trainer;
    char table[4096];

    dvt_set_log_level(DVT_LOG_OFF);
    block("1", "nvidia-smi");
    printf("~ %d characters\n", (int)dvt_devices_format(table, sizeof table));

    block("2", "cpu(), gpu(), gpu(1)");
    printf("(%s, %s, %s)\n", dvt_ctx_name(dvt_cpu()), dvt_ctx_name(dvt_gpu(0)),
           dvt_ctx_name(dvt_gpu(1)));

    block("3", "num_gpus()");
    printf("%d\n", dvt_num_gpus());

    block("4", "try_gpu(), try_gpu(10), try_all_gpus()");
    printf("(%s, %s, ", dvt_ctx_name(dvt_try_gpu(0)), dvt_ctx_name(dvt_try_gpu(10)));
    dvt_ctx_list_format(dvt_try_all_gpus(), table, sizeof table);
    printf("%s)\n", table);
    puts("and what its docstring promises:");
    show_contexts(dvt_try_all_gpus_or_cpu());

    block("5", "x = np.array([1, 2, 3]); x.ctx");
    x = DVT_ARRAY1(dvt_cpu(), float, 3, {1, 2, 3});
    puts(dvt_ctx_name(dvt_ctx_of(x)));

    block("6", "X = np.ones((2, 3), ctx=try_gpu())");
    X = dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_try_gpu(0));
    show(X, DVT_PRINT_NP);
    show(X, DVT_PRINT_TORCH);

    block("7", "Y = np.random.uniform(size=(2, 3), ctx=try_gpu(1))");
    Y = dvt_uniform(0, 1, DVT_SHAPE(2, 3), DVT_F32, dvt_try_gpu(1));
    show(Y, DVT_PRINT_NP);

    block("8", "X + Y: an error when they are on two devices");
    dvt_add(X, Y);
    show_error();

    block("9", "Z = X.copyto(try_gpu(1)); print(X); print(Z)");
    Z = dvt_copyto(X, dvt_try_gpu(1));
    show(X, DVT_PRINT_NP);
    show(Z, DVT_PRINT_NP);

    block("10", "Y + Z");
    show(dvt_add(Y, Z), DVT_PRINT_NP);

    block("11", "Z.as_in_ctx(try_gpu(1)) is Z; Z.copyto(try_gpu(1)) is Z; Z.cuda(1) is Z; Z2 is Z");
    printf("MXNet %s, copyto %s, PyTorch %s\n", truth(dvt_as_in_ctx(Z, dvt_try_gpu(1)) == Z),
           truth(dvt_copyto(Z, dvt_try_gpu(1)) == Z), truth(dvt_as_in_ctx(Z, dvt_try_gpu(1)) == Z));
    DVT_WITH_CTX(dvt_try_gpu(1)) {
        dvt_array *Z2 = dvt_as_in_ctx(Z, dvt_default_ctx());
        printf("TensorFlow %s\n", truth(Z2 == Z));
    }

    block("12", "net = nn.Sequential(); net.add(nn.Dense(1)); net.initialize(ctx=try_gpu())");
    net = dvt_sequential();
    DVT_ADD(net, dvt_dense(1, DVT_LINEAR));
    dvt_initialize(net, dvt_init_uniform(0.07), DVT_CONTEXTS(dvt_try_gpu(0)), false);
    dvt_print_block(net);

    block("13", "net(X)");
    x = dvt_forward(net, X);
    printf("shape %lldx%lld on %s\n", (long long)dvt_dim(x, 0), (long long)dvt_dim(x, 1),
           dvt_ctx_name(dvt_ctx_of(x)));
    dvt_print_block(net);

    block("14", "net[0].weight.data().ctx; weights[1].device");
    printf("(%s, %s)\n",
           dvt_ctx_name(dvt_ctx_of(dvt_block_data(dvt_block_at(net, 0), "weight", dvt_try_gpu(0)))),
           dvt_ctx_name(dvt_ctx_of(dvt_block_data(dvt_block_at(net, 0), "bias", dvt_try_gpu(0)))));

    block("15", "set_scratch_params_device");
    w = set_scratch_param_device(DVT_ARRAY2(dvt_cpu(), float, 2, 1, {{1}, {2}}), dvt_try_gpu(0));
    DVT_RECORD {
        x = dvt_sum(dvt_square(w), DVT_ALL, false);
    }
    dvt_backward(x);
    show(dvt_grad(w), DVT_PRINT_NP);

    block("16", "Trainer(max_epochs=50, num_gpus=1, gradient_clip_val=10).fit(model)");
    trainer = d2l_trainer_new(50, 1, 10);
    same = dvt_sequential();
    DVT_ADD(same, dvt_dense(1, DVT_LINEAR));
    dvt_initialize(same, dvt_init_normal(0.01), DVT_CONTEXTS(dvt_cpu()), false);
    printf("loss below 0.01: %s\n", truth(fit(&trainer, same) < 0.01));
    printf("trained on %s\n",
           dvt_ctx_name(dvt_param_ctxs(dvt_block_param(dvt_block_at(same, 0), "weight")).ctx[0]));

    block("exercise 1", "large and small tasks");
    exercise_large_and_small(dvt_try_gpu(0));
    block("exercise 2", "reading and writing parameters on the GPU");
    same = dvt_sequential();
    DVT_ADD(same, dvt_dense(1, DVT_LINEAR));
    exercise_parameters(net, same, dvt_try_gpu(0), "tutorial3.params");
    block("exercise 3", "1000 products of 100 x 100 and their norms");
    exercise_thousand_products(dvt_try_gpu(0), 1000 / SHARE);
    block("exercise 4", "two products on two GPUs, or in sequence on one");
    exercise_two_devices(dvt_try_gpu(0), dvt_try_gpu(1), SHARE > 1 ? 96 : 384);
    return finish();
}
