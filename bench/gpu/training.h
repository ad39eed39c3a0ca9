/* Rows of training: LeNet's steps, an epoch of MNIST, the time to 0.99 on its test images. */
#ifndef TRAINING_H
#define TRAINING_H
#include "check.h"

#define MOST_EPOCHS 30

static dvt_loader *loader_of(dvt_dataset *data, bool train, int64_t batch) {
    dvt_loader_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.batch_size = batch;
    desc.shuffle = train;
    return (dvt_loader *)dvt_retain(
        dvt_loader_new(dvt_dataset_transform_first(data, lenet_transform()), &desc));
}

static dvt_dataset *find_mnist(dvt_dataset_part part) {
    const char *places[3];
    int i;
    places[0] = getenv("DEVTENSOR_DATA");
    places[1] = "../shared/data";
    places[2] = "shared/data";
    dvt_set_log_level(DVT_LOG_OFF);
    for (i = 0; i < 3; i++) {
        dvt_dataset *data = places[i] ? dvt_dataset_mnist(places[i], part) : NULL;
        if (data)
            return data;
        dvt_clear_error();
    }
    return NULL;
}

static dvt_trainer *new_trainer(const row *r) {
    dvt_trainer *trainer =
        dvt_trainer_new(dvt_block_collect_params(r->net, NULL),
                        is_op(r, "mnist_099") ? dvt_optimizer_adam(0.002) : dvt_optimizer_sgd(0.1));
    must(trainer != NULL, "dvt_trainer_new");
    return (dvt_trainer *)dvt_retain(trainer);
}

/* Returns false when the data of the row are not here. */
static bool fill_training(row *r) {
    dvt_ctx_list devices = DVT_CONTEXTS(dvt_gpu(0));
    int64_t batch = argument(r, "batch", 256), i;
    bool mnist = is_op(r, "mnist_099"), fed = is_op(r, "lenet_fed");
    dvt_ctx ctx = fed ? dvt_cpu() : dvt_gpu(0);
    r->unit = "million samples/s";
    r->work = 1e-6 * (double)batch;
    if (mnist || is_op(r, "lenet_epoch")) {
        dvt_dataset *train = find_mnist(DVT_DATASET_TRAIN), *test = find_mnist(DVT_DATASET_TEST);
        if (!train || !test)
            return false;
        r->train = loader_of(train, true, batch);
        r->test = loader_of(test, false, batch);
        must(r->train && r->test, "dvt_loader_new");
        r->work = mnist ? 1 : 1e-6 * 60000;
        r->unit = mnist ? "trainings/s" : r->unit;
    }
    r->net = (dvt_block *)dvt_retain(lenet());
    must(dvt_block_initialize(r->net, dvt_init_xavier(), devices) == DVT_OK, "initializing");
    r->trainer = new_trainer(r);
    r->in[0] = dvt_uniform(-1, 1, DVT_SHAPE(batch, 1, 28, 28), DVT_F32, ctx);
    r->in[1] = dvt_empty(DVT_SHAPE(batch), DVT_I32, dvt_cpu());
    must(r->in[0] && r->in[1], "the batch");
    for (i = 0; i < batch; i++)
        ((int32_t *)dvt_data(r->in[1]))[i] = (int32_t)(i % 10);
    r->in[0] = (dvt_array *)dvt_retain(r->in[0]);
    r->in[1] = (dvt_array *)dvt_retain(dvt_copyto(r->in[1], ctx));
    return r->in[0] && r->in[1];
}

/* A step on a batch that is on the GPU; the loss stays there. */
static bool resident_step(row *r) {
    dvt_array *losses = NULL;
    DVT_RECORD {
        losses = dvt_loss_softmax_cross_entropy(dvt_block_forward(r->net, r->in[0]), r->in[1]);
    }
    must(dvt_backward(losses) == DVT_OK, "dvt_backward");
    must(dvt_trainer_step(r->trainer, argument(r, "batch", 256)) == DVT_OK, "dvt_trainer_step");
    return true;
}

/* A step on a batch of the host; reads the loss. */
static bool fed_step(row *r) {
    train_batch(r->net, r->trainer, DVT_CONTEXTS(dvt_gpu(0)), r->in[0], r->in[1],
                argument(r, "batch", 256));
    return true;
}

static bool whole_epoch(row *r) {
    dvt_array *x, *y;
    DVT_FOR_BATCHES(r->train, x, y) {
        train_batch(r->net, r->trainer, DVT_CONTEXTS(dvt_gpu(0)), x, y, dvt_dim(x, 0));
    }
    must(dvt_error_code() == DVT_OK, "reading a batch");
    return true;
}

/* One step and one look at the test images: compiles and loads what an epoch needs. */
static void one_batch(row *r) {
    DVT_SCOPE {
        fed_step(r);
        evaluate(r->net, dvt_gpu(0), r->test);
    }
}

/* Trains anew until 0.99 of the test images are right, and looks after each epoch. */
static bool until_099(row *r) {
    int epoch;
    must(dvt_block_reinitialize(r->net, dvt_init_xavier(), DVT_CONTEXTS(dvt_gpu(0))) == DVT_OK,
         "initializing");
    dvt_release(r->trainer);
    r->trainer = new_trainer(r);
    for (epoch = 0; epoch < MOST_EPOCHS; epoch++) {
        whole_epoch(r);
        if (evaluate(r->net, dvt_gpu(0), r->test) >= 0.99)
            return true;
    }
    must(false, "reaching 0.99");
    return false;
}

/* Returns the norm of x - y over that of y, in float64 on cpu(). */
static double difference(dvt_array *x, dvt_array *y) {
    dvt_array *got = as_double(x, dvt_cpu()), *want = as_double(y, dvt_cpu());
    double size = dvt_item(dvt_norm(want, DVT_ALL));
    return dvt_item(dvt_norm(dvt_sub(got, want), DVT_ALL)) / (size > 0 ? size : 1);
}

/* Compares LeNet's losses and gradients on gpu(0) with those on cpu(), from the same parameters. */
static row_error lenet_error(int64_t batch) {
    row_error e;
    memset(&e, 0, sizeof e);
    e.spot = -1;
    DVT_SCOPE {
        dvt_ctx ctxs[2];
        dvt_array *losses[2], *y = dvt_empty(DVT_SHAPE(batch), DVT_I32, dvt_cpu());
        dvt_array *x = dvt_uniform(-1, 1, DVT_SHAPE(batch, 1, 28, 28), DVT_F32, dvt_cpu());
        dvt_block *net = lenet();
        dvt_params *params = dvt_block_collect_params(net, NULL);
        int i;
        ctxs[0] = dvt_gpu(0);
        ctxs[1] = dvt_cpu();
        must(x && y && params, "lenet_error");
        for (i = 0; i < batch; i++)
            ((int32_t *)dvt_data(y))[i] = i % 10;
        must(dvt_block_initialize(net, dvt_init_xavier(), DVT_CONTEXTS(ctxs[0], ctxs[1])) == DVT_OK,
             "initializing");
        for (i = 0; i < 2; i++) {
            DVT_RECORD {
                losses[i] = dvt_loss_softmax_cross_entropy(
                    dvt_block_forward(net, dvt_as_in_ctx(x, ctxs[i])), dvt_as_in_ctx(y, ctxs[i]));
            }
            must(dvt_backward(losses[i]) == DVT_OK, "dvt_backward");
        }
        e.whole = difference(losses[0], losses[1]);
        for (i = 0; i < dvt_params_len(params); i++) {
            dvt_param *p = dvt_params_at(params, i);
            double off = difference(dvt_param_grad(p, ctxs[0]), dvt_param_grad(p, ctxs[1]));
            if (!isnan(e.whole) && !(off <= e.whole)) /* a NaN stays */
                e.whole = off;
        }
        must(dvt_error_code() == DVT_OK, "the comparison");
    }
    return e;
}

#endif
