/* "Step 6: Use GPUs to increase efficiency", MXNet np, cell by cell: LeNet on one device and
   data-parallel on two. It trains on Fashion-MNIST if it finds the files (DEVTENSOR_DATA, data/,
   ../shared/data), otherwise on synthetic images. */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"
#include "../drawn_data.h"
#include "../lenet.h"
#include "show.h"

static dvt_dataset *drawn(int64_t n, uint64_t seed) {
    dvt_array *x = dvt_empty(DVT_SHAPE(n, 28, 28, 1), DVT_U8, dvt_cpu());
    dvt_array *y = dvt_empty(DVT_SHAPE(n), DVT_I32, dvt_cpu());
    must(x && y, "allocating the synthetic images");
    drawn_images((uint8_t *)dvt_data(x), (int32_t *)dvt_data(y), n, seed);
    return dvt_dataset_arrays(x, y);
}

static dvt_loader *loader(dvt_dataset *data, int64_t batch_size, bool shuffle) {
    dvt_loader_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.batch_size = batch_size;
    desc.shuffle = shuffle;
    desc.num_workers = 4;
    return dvt_loader_new(dvt_dataset_transform_first(data, lenet_transform()), &desc);
}

int main(void) {
    dvt_ctx gpu, gpu_1;
    dvt_ctx_list devices;
    dvt_array *x, *y;
    dvt_block *net = lenet();
    dvt_dataset *train = NULL, *valid = NULL;
    dvt_loader *train_data, *valid_data;
    dvt_trainer *trainer;
    dvt_print_options digits;
    char text[512] = "";
    int64_t batch_size = sized(256, 256);
    bool fashion = getenv("TUTORIAL_SHORT") == NULL;
    double train_loss = 0, first = 0, accuracy;
    int epoch, epochs = getenv("TUTORIAL_SHORT") ? 6 : 10;

    setvbuf(stdout, NULL, _IOLBF, 0); /* epochs take a while: print each line at once */
    dvt_set_log_level(DVT_LOG_ERROR);
    block("2", "from mxnet import np, npx, gluon, autograd; npx.set_np(); npx.num_gpus()");
    dvt_set_print_style(DVT_PRINT_NP);
    printf("%d\n", dvt_num_gpus());

    block("10",
          "gpu = npx.gpu() if npx.num_gpus() > 0 else npx.cpu(); x = np.ones((3,4), ctx=gpu); x");
    gpu = dvt_num_gpus() > 0 ? dvt_gpu(0) : dvt_cpu();
    x = dvt_ones(DVT_SHAPE(3, 4), DVT_F32, gpu);
    dvt_print(x);

    block("11", "gpu_1 = npx.gpu(1) if npx.num_gpus() > 1 else npx.cpu(); x.copyto(gpu_1)");
    gpu_1 = dvt_num_gpus() > 1 ? dvt_gpu(1) : dvt_cpu();
    dvt_print(dvt_copyto(x, gpu_1));

    block("21", "y = np.random.uniform(size=(3,4), ctx=gpu); x + y");
    y = dvt_uniform(0, 1, DVT_SHAPE(3, 4), DVT_F32, gpu);
    dvt_print(dvt_add(x, y));

    block("16", "net = nn.Sequential(); net.add(nn.Conv2D(channels=6, kernel_size=5, ...), ...)");
    dvt_block_initialize(net, dvt_init_xavier(), DVT_CONTEXTS(dvt_cpu()));
    dvt_block_forward(net, dvt_zeros(DVT_SHAPE(1, 1, 28, 28), DVT_F32, dvt_cpu()));
    dvt_block_print(net);

    block("20", "net.load_parameters('net.params', ctx=gpu)");
    must(dvt_block_save(net, "tutorial4.params") == DVT_OK, "dvt_block_save");
    net = lenet();
    must(dvt_block_load(net, "tutorial4.params", DVT_CONTEXTS(gpu)) == DVT_OK, "dvt_block_load");
    remove("tutorial4.params");
    printf("on %s\n",
           dvt_ctx_name(dvt_param_ctxs(dvt_block_param(dvt_block_at(net, 0), "weight")).ctx[0]));

    block("22", "x = np.random.uniform(size=(1,1,28,28), ctx=gpu); net(x)");
    y = dvt_block_forward(net, dvt_uniform(0, 1, DVT_SHAPE(1, 1, 28, 28), DVT_F32, gpu));
    memset(&digits, 0, sizeof digits);
    digits.style = DVT_PRINT_NP;
    digits.precision = 4; /* sums of hundreds of products: their order affects the last digits */
    dvt_format(y, &digits, text, sizeof text, NULL);
    fputs(text, stdout);

    block("23", "batch_size = 256; transformer; train_data; valid_data");
    if (fashion) {
        train = find_fashion_mnist(NULL, true);
        valid = train ? find_fashion_mnist(NULL, false) : NULL;
        dvt_set_log_level(DVT_LOG_ERROR);
    }
    if (!train || !valid) {
        puts("Fashion-MNIST is not used: drawn figures stand in");
        train = drawn(sized(10000, 4000), 1);
        valid = drawn(sized(2000, 1000), 2);
    }
    train_data = loader(train, batch_size, true);
    valid_data = loader(valid, batch_size, false);
    printf("%lld and %lld batches\n", (long long)dvt_loader_len(train_data),
           (long long)dvt_loader_len(valid_data));

    block("24", "devices = [gpu, gpu_1]; net.collect_params().initialize(force_reinit=True, "
                "ctx=devices); training");
    devices = DVT_CONTEXTS(gpu, gpu_1);
    show_devices(devices, DVT_PRINT_NP, "\n");
    dvt_params_reinitialize(dvt_block_collect_params(net, NULL), dvt_init_uniform(0.07), devices);
    trainer = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_sgd(0.1));
    for (epoch = 0; epoch < epochs; epoch++) {
        double tic = dvt_seconds();
        train_loss = train_epoch(net, trainer, devices, train_data, batch_size, NULL);
        if (epoch == 0)
            first = train_loss;
        printf("Epoch %d: loss %.3f, in %.1f sec\n", epoch, train_loss, dvt_seconds() - tic);
    }
    accuracy = evaluate(net, gpu, valid_data);
    printf("the loss fell: %s\n", python_bool(train_loss < first));
    printf("~ accuracy %.3f\n", accuracy);
    printf("better than chance by far: %s\n", python_bool(accuracy > 0.5));
    return finish();
}
