/* "Step 6: Use GPUs to increase efficiency", MXNet np, block by block: LeNet on one device and data-parallel on two.
   The training block runs on a small drawn data set here, so that it takes seconds; examples/run.c is the same loop on Fashion-MNIST. */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"
#include "../drawn_data.h"
#include "../lenet.h"
#include "show.h"

static dvt_dataset *drawn(int64_t n, uint64_t seed) {
    dvt_array *x = dvt_empty(DVT_SHAPE(n, 28, 28, 1), DVT_U8, dvt_cpu());
    dvt_array *y = dvt_empty(DVT_SHAPE(n), DVT_I32, dvt_cpu());
    must(x && y, "making room for the drawn images");
    drawn_images((uint8_t *)dvt_data(x), (int32_t *)dvt_data(y), n, seed);
    return dvt_dataset_arrays(x, y);
}

static dvt_loader *loader(dvt_dataset *data, int64_t batch_size, bool shuffle) {
    dvt_loader_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.batch_size = batch_size;
    desc.shuffle = shuffle;
    desc.num_workers = 4;
    return dvt_loader_new(dvt_transform_first(data, lenet_transform()), &desc);
}

int main(void) {
    dvt_ctx gpu, gpu_1;
    dvt_ctx_list devices;
    dvt_array *x, *y;
    dvt_block *net = lenet();
    dvt_loader *train_data, *valid_data;
    dvt_trainer *trainer;
    int64_t batch_size = 256 / SHARE;
    double loss = 0, first = 0, accuracy;
    int epoch;

    dvt_set_log_level(DVT_LOG_ERROR);
    block("2", "npx.num_gpus()");
    printf("%d\n", dvt_num_gpus());

    block("10",
          "gpu = npx.gpu() if npx.num_gpus() > 0 else npx.cpu(); x = np.ones((3,4), ctx=gpu)");
    gpu = dvt_num_gpus() > 0 ? dvt_gpu(0) : dvt_cpu();
    x = dvt_ones(DVT_SHAPE(3, 4), DVT_F32, gpu);
    show(x, DVT_PRINT_NP);

    block("11", "gpu_1 = npx.gpu(1) if npx.num_gpus() > 1 else npx.cpu(); x.copyto(gpu_1)");
    gpu_1 = dvt_num_gpus() > 1 ? dvt_gpu(1) : dvt_cpu();
    show(dvt_copyto(x, gpu_1), DVT_PRINT_NP);

    block("21", "y = np.random.uniform(size=(3,4), ctx=gpu); x + y");
    y = dvt_uniform(0, 1, DVT_SHAPE(3, 4), DVT_F32, gpu);
    x = dvt_add(x, y);
    printf("shape %lldx%lld on %s, all in [1, 2): %s\n", (long long)dvt_dim(x, 0),
           (long long)dvt_dim(x, 1), dvt_ctx_name(dvt_ctx_of(x)),
           truth(dvt_item(dvt_min(x, DVT_ALL, false)) >= 1 &&
                 dvt_item(dvt_max(x, DVT_ALL, false)) < 2));

    block("16", "net = LeNet");
    dvt_initialize(net, dvt_init_xavier(), DVT_CONTEXTS(dvt_cpu()), false);
    dvt_forward(net, dvt_zeros(DVT_SHAPE(1, 1, 28, 28), DVT_F32, dvt_cpu()));
    dvt_print_block(net);

    block("20", "net.load_parameters('net.params', ctx=gpu)");
    must(dvt_save_parameters(net, "tutorial4.params") == DVT_OK, "dvt_save_parameters");
    net = lenet();
    must(dvt_load_parameters(net, "tutorial4.params", DVT_CONTEXTS(gpu), NULL) == DVT_OK,
         "dvt_load_parameters");
    remove("tutorial4.params");
    printf("on %s\n",
           dvt_ctx_name(dvt_param_ctxs(dvt_block_param(dvt_block_at(net, 0), "weight")).ctx[0]));

    block("22", "x = np.random.uniform(size=(1,1,28,28), ctx=gpu); net(x)");
    y = dvt_forward(net, dvt_uniform(0, 1, DVT_SHAPE(1, 1, 28, 28), DVT_F32, gpu));
    printf("shape %lldx%lld on %s\n", (long long)dvt_dim(y, 0), (long long)dvt_dim(y, 1),
           dvt_ctx_name(dvt_ctx_of(y)));

    block("23", "train_data, valid_data");
    train_data = loader(drawn(4000 / SHARE, 1), batch_size, true);
    valid_data = loader(drawn(1000 / SHARE, 2), batch_size, false);
    printf("%lld and %lld batches\n", (long long)dvt_loader_len(train_data),
           (long long)dvt_loader_len(valid_data));

    block("24", "devices = [gpu, gpu_1]; net.collect_params().initialize(force_reinit=True, "
                "ctx=devices); training");
    devices = DVT_CONTEXTS(gpu, gpu_1);
    show_contexts(devices);
    dvt_params_initialize(dvt_collect_params(net, NULL), dvt_init_uniform(0.07), devices, true);
    trainer = dvt_trainer_new(dvt_collect_params(net, NULL), dvt_sgd(0.1));
    for (epoch = 0; epoch < 6; epoch++) {
        double tic = dvt_seconds();
        loss = train_epoch(net, trainer, devices, train_data, batch_size, NULL);
        if (epoch == 0)
            first = loss;
        printf("~ Epoch %d: loss %.3f, in %.1f sec\n", epoch, loss, dvt_seconds() - tic);
    }
    accuracy = evaluate(net, gpu, valid_data);
    printf("the loss fell: %s\n", truth(loss < first));
    printf("~ accuracy %.3f\n", accuracy);
    printf("better than chance by far: %s\n", truth(accuracy > 0.5));
    return finish();
}
