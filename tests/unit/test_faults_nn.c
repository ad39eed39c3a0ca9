/* Each allocation fails once: blocks, parameters, losses, data loading, trainers, and a complete
   training step. */
#include "dvt_faults.h"

#if !defined(DEVTENSOR_NO_NN)
#include <unistd.h>

static dvt_array *pixels(int64_t n, dvt_ctx ctx) {
    dvt_array *x = dvt_arange(0, (double)n * 36, 1, DVT_F32, ctx);
    return dvt_mul_scalar(dvt_reshape(x, DVT_SHAPE(n, 1, 6, 6)), 1 / 36.0);
}

static dvt_array *classes(int64_t n, dvt_ctx ctx) {
    return dvt_mod_scalar(dvt_arange(0, (double)n, 1, DVT_I32, ctx), 3);
}

/* Returns a net with LeNet's kinds of blocks for 6x6 images, or NULL after a failure. */
static dvt_block *convnet(void) {
    dvt_block *net = dvt_nn_sequential();
    if (DVT_NN_ADD(net, dvt_nn_conv2d(2, 3, DVT_RELU), dvt_nn_max_pool2d(2, 2), dvt_nn_flatten(),
                   dvt_nn_dense(4, DVT_TANH), dvt_nn_dense(3, DVT_IDENTITY)) != DVT_OK)
        return NULL;
    return net;
}

static void text_of(dvt_fault_run *run, const dvt_block *net) {
    char text[2000] = "";
    dvt_block_format(net, text, sizeof text);
    dvt_fault_bytes(run, text, strlen(text));
}

/* Adds all values of a net on a context. */
static void add_values(dvt_fault_run *run, dvt_block *net, dvt_ctx ctx) {
    dvt_params *all = dvt_block_collect_params(net, NULL);
    int i;
    FAULTS_TRUE(all);
    for (i = 0; all && i < dvt_params_len(all); i++)
        FAULTS_ADD(dvt_param_data(dvt_params_at(all, i), ctx));
}

DVT_FAULTS(nn_blocks) {
    dvt_block *net = dvt_nn_sequential(), *inner = dvt_nn_sequential();
    FAULTS_OK(
        DVT_NN_ADD(inner, dvt_nn_dense(3, DVT_SIGMOID), dvt_nn_dropout(0.5), dvt_nn_layer_norm()));
    FAULTS_OK(DVT_NN_ADD(net, dvt_nn_conv2d(2, 3, DVT_RELU), dvt_nn_batch_norm(),
                         dvt_nn_avg_pool2d(2, 2), dvt_nn_global_avg_pool2d(),
                         dvt_nn_activation(DVT_GELU), dvt_nn_embedding(4, 2), inner));
    if (!run->failed)
        text_of(run, net);
}

DVT_FAULTS(nn_initialize) {
    dvt_block *net = convnet();
    dvt_ctx_list two = DVT_CONTEXTS(dvt_cpu(), dvt_cpu_id(1));
    if (!net) {
        run->failed = 1;
        return;
    }
    FAULTS_OK(dvt_block_initialize(net, dvt_init_xavier(), two));
    if (!run->failed) {
        FAULTS_ADD(dvt_block_forward(net, pixels(2, dvt_cpu())));
        FAULTS_ADD(dvt_block_forward(net, pixels(2, dvt_cpu_id(1))));
    }
    if (!run->failed) {
        FAULTS_OK(dvt_block_reinitialize(net, dvt_init_msra(DVT_FAN_IN, 0.2), two));
        add_values(run, net, dvt_cpu_id(1));
        text_of(run, net);
    }
}

DVT_FAULTS(nn_params) {
    dvt_block *net = convnet();
    dvt_params *weights;
    dvt_param *w;
    if (!net ||
        dvt_block_initialize(net, dvt_init_normal(0.1), DVT_CONTEXTS(dvt_cpu())) != DVT_OK ||
        !dvt_block_forward(net, pixels(1, dvt_cpu()))) {
        run->failed = 1;
        return;
    }
    weights = dvt_block_collect_params(net, ".*weight");
    w = weights ? dvt_params_at(weights, 0) : NULL;
    if (!w) {
        run->failed = 1;
        return;
    }
    FAULTS_OK(dvt_param_set_data(w, dvt_ones(DVT_SHAPE(2, 1, 3, 3), DVT_F64, dvt_cpu())));
    FAULTS_OK(dvt_params_reset_ctx(weights, DVT_CONTEXTS(dvt_cpu_id(1), dvt_cpu_id(2))));
    FAULTS_OK(dvt_params_set_grad_req(weights, DVT_GRAD_ADD));
    FAULTS_OK(dvt_params_zero_grad(weights));
    if (!run->failed)
        FAULTS_ADD(dvt_param_data(w, dvt_cpu_id(2)));
}

static dvt_array *twice(dvt_block *self, void *user, dvt_array *x) {
    dvt_ctx ctx = dvt_ctx_of(x);
    (void)user;
    return dvt_mul(dvt_block_forward(dvt_block_at(self, 0), x), dvt_block_data(self, "scale", ctx));
}

static void count_down(void *user) {
    --*(int *)user;
}

DVT_FAULTS(nn_custom_block) {
    static int owners;
    dvt_block_desc desc;
    dvt_block *block;
    memset(&desc, 0, sizeof desc);
    desc.kind = "Twice";
    desc.forward = twice;
    desc.release = count_down;
    desc.user = &owners;
    DVT_SCOPE {
        block = dvt_block_new(&desc);
        owners += block != NULL;
        FAULTS_OK(dvt_block_add_child(block, dvt_nn_dense(3, DVT_IDENTITY)));
        FAULTS_TRUE(block && dvt_block_add_param(block, "scale", DVT_SHAPE(3), DVT_F32,
                                                 dvt_init_constant(2)));
        FAULTS_OK(dvt_block_initialize(block, dvt_init_one(), DVT_CONTEXTS(dvt_cpu())));
        if (!run->failed)
            FAULTS_ADD(dvt_block_forward(block, pixels(1, dvt_cpu())));
    }
    dvt_discard_all();
    CHECK_INT(owners, 0); /* released once if the block was created, else never */
}

DVT_FAULTS(nn_losses) {
    dvt_array *p = dvt_reshape(dvt_arange(0, 6, 1, DVT_F32, dvt_cpu()), DVT_SHAPE(2, 3));
    dvt_array *l = classes(2, dvt_cpu());
    FAULTS_ADD(dvt_loss_softmax_cross_entropy(p, l));
    FAULTS_ADD(dvt_loss_softmax_cross_entropy(p, dvt_one_hot(l, 3, DVT_F32)));
    FAULTS_ADD(dvt_loss_l1(p, dvt_neg(p)));
    FAULTS_ADD(dvt_loss_l2(p, dvt_neg(p)));
    FAULTS_ADD(dvt_loss_sigmoid_bce(p, dvt_zeros_like(p)));
    FAULTS_ADD(dvt_loss_huber(p, dvt_neg(p), 1));
}

#if !defined(DEVTENSOR_NO_FILES)
DVT_FAULTS(nn_save_and_load) {
    char path[300];
    const char *base = getenv("TMPDIR");
    dvt_block *net = convnet(), *other;
    snprintf(path, sizeof path, "%s/dvt-faults-%ld.params", base && base[0] ? base : "/tmp",
             (long)getpid());
    if (!net || dvt_block_initialize(net, dvt_init_xavier(), DVT_CONTEXTS(dvt_cpu())) != DVT_OK ||
        !dvt_block_forward(net, pixels(1, dvt_cpu()))) {
        run->failed = 1;
        return;
    }
    FAULTS_OK(dvt_block_save(net, path));
    other = run->failed ? NULL : convnet();
    if (!other) {
        run->failed = 1;
    } else {
        dvt_ctx_list ctx = DVT_CONTEXTS(dvt_cpu_id(1));
        FAULTS_OK(dvt_block_load(other, path, ctx));
        if (!run->failed) {
            FAULTS_ADD(dvt_block_forward(other, pixels(1, dvt_cpu_id(1))));
            /* loading over existing values changes all or nothing */
            FAULTS_OK(dvt_block_load(net, path, DVT_CONTEXTS(dvt_cpu())));
            add_values(run, net, dvt_cpu());
        }
    }
    remove(path);
}
#endif

/* ---- data ---- */
static dvt_array *halve(void *user, dvt_array *x) {
    (void)user;
    return dvt_mul_scalar(x, 0.5);
}

static dvt_dataset *images(int64_t n) {
    double mean = 0.5, deviation = 0.25;
    dvt_array *x = dvt_astype(
        dvt_mod_scalar(dvt_arange(0, (double)n * 16, 1, DVT_I32, dvt_cpu()), 250), DVT_U8);
    dvt_transform *three[3];
    dvt_dataset *data =
        dvt_dataset_arrays(dvt_reshape(x, DVT_SHAPE(n, 4, 4, 1)), classes(n, dvt_cpu()));
    three[0] = dvt_transform_to_tensor();
    three[1] = dvt_transform_normalize(&mean, &deviation, 1);
    three[2] = dvt_transform_new(halve, NULL);
    return dvt_dataset_transform_first(data, dvt_transform_compose(three, 3));
}

static void load_epochs(dvt_fault_run *run, int workers) {
    dvt_dataset *data = images(7);
    dvt_loader_desc desc;
    dvt_loader *loader;
    dvt_array *x, *y;
    int epoch;
    memset(&desc, 0, sizeof desc);
    desc.batch_size = 3;
    desc.shuffle = true;
    desc.last_batch = DVT_LAST_ROLLOVER;
    desc.num_workers = workers;
    loader = dvt_loader_new(data, &desc);
    FAULTS_TRUE(loader);
    for (epoch = 0; loader && epoch < 2 && !run->failed; epoch++)
        while (dvt_loader_next(loader, &x, &y))
            DVT_SCOPE {
                FAULTS_ADD(x);
                FAULTS_ADD(y);
            }
    FAULTS_OK(dvt_error_code());
}

DVT_FAULTS(nn_loader) {
    load_epochs(run, 0);
}

DVT_FAULTS(nn_loader_with_workers) {
    load_epochs(run, 2);
}

DVT_FAULTS(nn_split_and_load) {
    dvt_array *part[2] = {NULL, NULL};
    FAULTS_OK(dvt_array_split_and_load(pixels(5, dvt_cpu()), DVT_CONTEXTS(dvt_cpu(), dvt_cpu_id(1)),
                                       part));
    if (!run->failed) {
        FAULTS_ADD(part[0]);
        FAULTS_ADD(part[1]);
    }
}

DVT_FAULTS(nn_metrics) {
    dvt_metric *accuracy = dvt_metric_accuracy(), *top = dvt_metric_top_k_accuracy(2),
               *loss = dvt_metric_mean_loss();
    dvt_array *p = dvt_reshape(dvt_arange(0, 6, 1, DVT_F32, dvt_cpu()), DVT_SHAPE(2, 3)),
              *l = classes(2, dvt_cpu());
    double values[3];
    if (!p || !l || !accuracy || !top || !loss) {
        run->failed = 1;
        return;
    }
    FAULTS_OK(dvt_metric_update(accuracy, l, p));
    FAULTS_OK(dvt_metric_update(top, l, p));
    FAULTS_OK(dvt_metric_update(loss, NULL, p));
    values[0] = dvt_metric_get(accuracy);
    values[1] = dvt_metric_get(top);
    values[2] = dvt_metric_get(loss);
    dvt_fault_bytes(run, values, sizeof values);
}

DVT_FAULTS(nn_progress_and_curve) {
    dvt_progress *progress = dvt_progress_new("epoch 1", 10);
    dvt_curve *curve = dvt_curve_new("loss", "epoch", "loss");
    char text[200] = "";
    int i;
    FAULTS_TRUE(progress && curve);
    for (i = 0; curve && i < 20; i++)
        FAULTS_OK(dvt_curve_add(curve, i % 2 ? "train" : "test", i, 1.0 / (i + 1)));
    if (progress)
        dvt_progress_format(progress, 3, 60, text, sizeof text);
    dvt_fault_bytes(run, text, strlen(text));
#if !defined(DEVTENSOR_NO_FILES)
    if (curve && !run->failed) {
        char path[300];
        const char *base = getenv("TMPDIR");
        snprintf(path, sizeof path, "%s/dvt-faults-%ld.svg", base && base[0] ? base : "/tmp",
                 (long)getpid());
        FAULTS_OK(dvt_curve_save(curve, path));
        remove(path);
    }
#endif
}

/* ---- training ---- */
/* Runs two steps on two contexts. A failing step changes no replica. */
static void train(dvt_fault_run *run, dvt_optimizer optimizer, dvt_ctx a, dvt_ctx b) {
    dvt_ctx_list ctxs = DVT_CONTEXTS(a, b);
    dvt_block *net = convnet();
    dvt_array *x = pixels(4, dvt_cpu()), *y = classes(4, dvt_cpu());
    dvt_params *params;
    dvt_trainer *trainer;
    int step, i;
    if (!net || !x || !y || dvt_block_initialize(net, dvt_init_xavier(), ctxs) != DVT_OK ||
        !dvt_block_forward(net, dvt_as_in_ctx(x, a)) ||
        !(params = dvt_block_collect_params(net, NULL)) ||
        !(trainer = dvt_trainer_new(params, optimizer))) {
        run->failed = 1;
        return;
    }
    for (step = 0; step < 2 && !run->failed; step++)
        DVT_SCOPE {
            dvt_array *xs[2] = {NULL, NULL}, *ys[2] = {NULL, NULL}, *losses[2] = {NULL, NULL};
            FAULTS_OK(dvt_split_and_load(x, ctxs, xs));
            FAULTS_OK(dvt_split_and_load(y, ctxs, ys));
            DVT_RECORD {
                for (i = 0; i < 2 && !run->failed; i++)
                    losses[i] =
                        dvt_loss_softmax_cross_entropy(dvt_block_forward(net, xs[i]), ys[i]);
            }
            if (!run->failed)
                FAULTS_OK(dvt_backward_from(losses, NULL, 2, DVT_FREE_GRAPH));
            if (!run->failed) {
                dvt_array *wa = dvt_param_data(dvt_params_at(params, 0), a),
                          *wb = dvt_param_data(dvt_params_at(params, 0), b);
                dvt_array *last =
                    dvt_param_data(dvt_params_at(params, dvt_params_len(params) - 1), b);
                uint64_t first = dvt_fault_look(wa), end = dvt_fault_look(last);
                FAULTS_OK(dvt_trainer_step(trainer, 4));
                if (run->failed) {
                    CHECK(dvt_fault_look(wa) == first);
                    CHECK(dvt_fault_look(last) == end);
                }
                CHECK(dvt_fault_look(wa) == dvt_fault_look(wb));
            }
        }
    if (!run->failed) {
        add_values(run, net, a);
        add_values(run, net, b);
    }
}

DVT_FAULTS(nn_training_step) {
    dvt_optimizer sgd = dvt_optimizer_sgd(0.1);
    sgd.momentum = 0.9;
    sgd.weight_decay = 0.01;
    train(run, sgd, dvt_cpu(), dvt_cpu_id(1));
}

DVT_FAULTS_MOST(nn_training_step_adam, 150) {
    train(run, dvt_optimizer_adam(0.01), dvt_cpu(), dvt_cpu_id(1));
}

DVT_FAULTS_MOST(nn_training_step_rmsprop, 150) {
    dvt_optimizer rmsprop = dvt_optimizer_rmsprop(0.01);
    rmsprop.centered = true;
    train(run, rmsprop, dvt_cpu(), dvt_cpu_id(1));
}

DVT_FAULTS_MOST(nn_training_step_virtual_gpus, 250) {
    FAULTS_OK(dvt_set_virtual_gpus(2, 0));
    if (!run->failed)
        DVT_SCOPE {
            train(run, dvt_optimizer_sgd(0.1), dvt_gpu(0), dvt_gpu(1));
        }
    dvt_discard_all();
    FAULTS_OK(dvt_set_virtual_gpus(0, 0));
}

DVT_FAULTS_MOST(nn_clip_gradients, 200) {
    dvt_block *net = dvt_nn_dense(2, DVT_IDENTITY);
    dvt_params *params;
    dvt_trainer *trainer;
    dvt_array *loss = NULL;
    double norm;
    if (dvt_block_initialize(net, dvt_init_one(), DVT_CONTEXTS(dvt_cpu())) != DVT_OK ||
        !(params = dvt_block_collect_params(net, NULL)) ||
        !(trainer = dvt_trainer_new(params, dvt_optimizer_adagrad(0.1)))) {
        run->failed = 1;
        return;
    }
    DVT_RECORD {
        loss = dvt_loss_l2(dvt_block_forward(net, pixels(2, dvt_cpu())),
                           dvt_zeros(DVT_SHAPE(2, 2), DVT_F32, dvt_cpu()));
    }
    FAULTS_OK(dvt_backward(loss));
    FAULTS_OK(dvt_trainer_allreduce(trainer));
    if (!run->failed) {
        norm = dvt_trainer_clip_global_norm(trainer, 0.5);
        FAULTS_TRUE(norm == norm);
        dvt_fault_bytes(run, &norm, sizeof norm);
    }
    if (!run->failed)
        FAULTS_OK(dvt_trainer_update(trainer, 2));
    if (!run->failed)
        add_values(run, net, dvt_cpu());
}

#else

DVT_TEST(faults_nn_left_out) {
    SKIP("DEVTENSOR_NO_NN");
}

#endif
