/* LeNet and its training loop, as in step 6 of MXNet's np tutorial. The programs of this directory
   share them. */
#ifndef LENET_H
#define LENET_H
#include "devtensor.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program with a message if `ok` is false. Only examples may do that. */
static inline void must(bool ok, const char *what) {
    if (!ok) {
        fprintf(stderr, "%s failed: %s%s%s\n", what, dvt_error(), dvt_error_site()[0] ? " at " : "",
                dvt_error_site());
        exit(1);
    }
}

/* Creates LeNet: 60,170 parameters, for 1 x 28 x 28 images. */
static inline dvt_block *lenet(void) {
    dvt_block *net = dvt_nn_sequential();
    DVT_NN_ADD(net, dvt_nn_conv2d(6, 5, DVT_RELU), dvt_nn_max_pool2d(2, 2),
               dvt_nn_conv2d(16, 3, DVT_RELU), dvt_nn_max_pool2d(2, 2), dvt_nn_dense(120, DVT_RELU),
               dvt_nn_dense(84, DVT_RELU), dvt_nn_dense(10, DVT_IDENTITY));
    return net;
}

/* Trains one batch on several contexts: forward and backward on each, concurrently, then one step
   of the trainer. Returns the sum of the losses. Reading that sum is the only copy to host
   memory. */
static inline double train_batch(dvt_block *net, dvt_trainer *trainer, dvt_ctx_list devices,
                                 dvt_array *x, dvt_array *y, int64_t batch_size) {
    dvt_array *xs[DVT_MAX_CONTEXTS], *ys[DVT_MAX_CONTEXTS], *losses[DVT_MAX_CONTEXTS];
    double sum = 0;
    int i;
    must(dvt_array_split_and_load(x, devices, xs) == DVT_OK, "dvt_split_and_load");
    must(dvt_array_split_and_load(y, devices, ys) == DVT_OK, "dvt_split_and_load");
    DVT_RECORD {
        for (i = 0; i < devices.n; i++)
            losses[i] = dvt_loss_softmax_cross_entropy(dvt_block_forward(net, xs[i]), ys[i]);
    }
    for (i = 0; i < devices.n; i++)
        must(dvt_backward(losses[i]) == DVT_OK, "dvt_backward");
    must(dvt_trainer_step(trainer, batch_size) == DVT_OK, "dvt_trainer_step");
    for (i = 0; i < devices.n; i++)
        sum += dvt_item(dvt_sum(losses[i], DVT_ALL));
    return sum;
}

/* Trains one epoch. Returns the loss as the tutorial prints it: the sum over batches, divided by
   their number and size. */
static inline double train_epoch(dvt_block *net, dvt_trainer *trainer, dvt_ctx_list devices,
                                 dvt_loader *loader, int64_t batch_size, dvt_progress *progress) {
    double sum = 0, seen = 0;
    int64_t done = 0;
    dvt_array *x, *y;
    DVT_FOR_BATCHES(loader, x, y) {
        sum += train_batch(net, trainer, devices, x, y, batch_size);
        seen += (double)dvt_dim(x, 0);
        dvt_progress_update(progress, ++done, sum / seen);
    }
    must(dvt_error_code() == DVT_OK, "reading a batch");
    dvt_progress_finish(progress);
    return sum / (double)dvt_loader_len(loader) / (double)batch_size;
}

/* Returns the share of samples whose class is predicted correctly. */
static inline double evaluate(dvt_block *net, dvt_ctx device, dvt_loader *loader) {
    dvt_metric *accuracy = dvt_metric_accuracy();
    dvt_array *x, *y;
    DVT_FOR_BATCHES(loader, x, y) {
        dvt_array *output = dvt_block_forward(net, dvt_as_in_ctx(x, device));
        must(dvt_metric_update(accuracy, dvt_as_in_ctx(y, device), output) == DVT_OK,
             "dvt_metric_update");
    }
    must(dvt_error_code() == DVT_OK, "evaluating");
    return dvt_metric_get(accuracy);
}

/* Returns the transform of the tutorial: to [0, 1], then (x - 0.13) / 0.31. */
static inline dvt_transform *lenet_transform(void) {
    static const double mean = 0.13, deviation = 0.31;
    dvt_transform *steps[2];
    steps[0] = dvt_transform_to_tensor();
    steps[1] = dvt_transform_normalize(&mean, &deviation, 1);
    return dvt_transform_compose(steps, 2);
}

/* Reads Fashion-MNIST from the first directory that has it: the argument, DEVTENSOR_DATA, data/,
   ../shared/data. Returns NULL if none has. */
static inline dvt_dataset *find_fashion_mnist(const char *folder, bool train) {
    const char *places[4];
    int i;
    places[0] = folder;
    places[1] = getenv("DEVTENSOR_DATA");
    places[2] = "data";
    places[3] = "../shared/data";
    for (i = 0; i < 4; i++)
        if (places[i] && places[i][0]) {
            dvt_dataset *data;
            dvt_set_log_level(DVT_LOG_OFF); /* a directory without the files is not an error here */
            data =
                dvt_dataset_fashion_mnist(places[i], train ? DVT_DATASET_TRAIN : DVT_DATASET_TEST);
            dvt_set_log_level(DVT_LOG_WARNING);
            if (data)
                return data;
            if (i == 0 ||
                dvt_error_code() != DVT_ERR_IO) /* requested explicitly, or present but damaged */
                must(false, "reading Fashion-MNIST");
            dvt_clear_error();
        }
    return NULL;
}

#endif
