/* The main example: prints the devices, gives a short tour, then trains LeNet as step 6 of MXNet's
   document does, on the best device or on several. Build and run: make run. On two virtual GPUs:
   DEVTENSOR_VIRTUAL_GPUS=2 make run */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"
#include "drawn_data.h"
#include "lenet.h"

typedef struct options {
    const char *data, *curve;
    int epochs;
    bool xavier, keep;
    uint64_t seed;
    int64_t batch_size;
} options;

static const char *const fashion_names[10] = {"t-shirt", "trouser",   "pullover", "dress",
                                              "coat",    "sandal",    "shirt",    "sneaker",
                                              "bag",     "ankle boot"};

static void usage(int status) {
    FILE *out = status ? stderr : stdout;
    fputs("usage: run [--data FOLDER] [--epochs N] [--batch N] [--seed N] [--xavier] [--curve "
          "FILE.svg] [--keep] [--help]\n"
          "FOLDER holds Fashion-MNIST's four IDX files; without it DEVTENSOR_DATA, data/ and "
          "../shared/data are tried.\n"
          "--keep leaves the trained parameters in lenet.params.\n"
          "DEVTENSOR_VIRTUAL_GPUS=2 trains on two virtual GPUs.\n",
          out);
    exit(status);
}

/* Parses an integer of at least 1; ends the program otherwise. */
static int64_t counted(const char *option, const char *text) {
    char *end;
    long long n = strtoll(text, &end, 10);
    if (end == text || *end || n < 1 || n > 1000000000) {
        fprintf(stderr, "run: %s %s; expected a whole number of at least 1\n", option, text);
        usage(2);
    }
    return n;
}

static options parse(int argc, char **argv) {
    options o = {NULL, NULL, 0, false, false, 0, 256};
    int i;
    for (i = 1; i < argc; i++) {
        bool value = i + 1 < argc;
        if (strcmp(argv[i], "--xavier") == 0)
            o.xavier = true;
        else if (strcmp(argv[i], "--keep") == 0)
            o.keep = true;
        else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            usage(0);
        else if (strcmp(argv[i], "--data") == 0 && value)
            o.data = argv[++i];
        else if (strcmp(argv[i], "--curve") == 0 && value)
            o.curve = argv[++i];
        else if (strcmp(argv[i], "--epochs") == 0 && value)
            o.epochs = (int)counted("--epochs", argv[++i]);
        else if (strcmp(argv[i], "--batch") == 0 && value)
            o.batch_size = counted("--batch", argv[++i]);
        else if (strcmp(argv[i], "--seed") == 0 && value)
            o.seed = strtoull(argv[++i], NULL, 10);
        else {
            fprintf(stderr, "run: %s is not an option, or its value is missing\n", argv[i]);
            usage(2);
        }
    }
    return o;
}

/* Creates an array, moves it, provokes an error and prints it, computes. */
static void tour(void) {
    DVT_SCOPED;
    dvt_ctx here = dvt_cpu(), there = dvt_num_gpus() ? dvt_gpu(0) : dvt_cpu_id(1);
    char list[64];
    puts("\n-- a short tour ------------------------------------------------");
    dvt_ctx_list_format(DVT_CONTEXTS(here, there), list, sizeof list);
    printf("two contexts: %s\n", list);
    dvt_array *x = DVT_ARRAY(float, DVT_SHAPE(2, 3), here, 1, 2, 3, 4, 5, 6);
    dvt_array *y = dvt_copyto(x, there);
    puts("\nx is created, y = dvt_copyto(x, there):");
    dvt_print(x);
    dvt_print(y);
    dvt_set_log_level(
        DVT_LOG_OFF); /* the next error is intended, and printed here instead of by the logger */
    if (!dvt_add(x, y))
        printf("\ndvt_add(x, y) says:\n  %s\n", dvt_error());
    dvt_clear_error();
    dvt_set_log_level(DVT_LOG_WARNING);
    puts("\nexp(y + 2) * y, where y lives:");
    dvt_print(dvt_mul(dvt_exp(dvt_add_scalar(y, 2)), y));
}

static dvt_dataset *drawn(int64_t n, uint64_t seed) {
    dvt_array *x = dvt_empty(DVT_SHAPE(n, 28, 28, 1), DVT_U8, dvt_cpu());
    dvt_array *y = dvt_empty(DVT_SHAPE(n), DVT_I32, dvt_cpu());
    must(x && y, "allocating the drawn images");
    drawn_images((uint8_t *)dvt_data(x), (int32_t *)dvt_data(y), n, seed);
    return dvt_dataset_arrays(x, y);
}

static dvt_loader *loader(dvt_dataset *data, int64_t batch_size, bool shuffle, uint64_t seed) {
    dvt_loader_desc desc;
    dvt_loader *result;
    memset(&desc, 0, sizeof desc);
    desc.batch_size = batch_size;
    desc.shuffle = shuffle;
    desc.num_workers = 1;
    desc.seed = seed;
    result = dvt_loader_new(dvt_dataset_transform_first(data, lenet_transform()), &desc);
    must(result != NULL, "dvt_loader_new");
    return result;
}

/* Saves the parameters, loads them into a new net on another context list, and prints its
   predictions for a few test images. */
static void save_load_predict(dvt_block *net, dvt_ctx device, dvt_dataset *test, bool fashion,
                              bool keep) {
    static const char file[] = "lenet.params";
    dvt_block *again = lenet();
    dvt_loader *few = loader(test, 8, false, 0);
    dvt_array *x, *y, *classes;
    int i;
    must(dvt_block_save(net, file) == DVT_OK, "dvt_block_save");
    must(dvt_block_load(again, file, DVT_CONTEXTS(device)) == DVT_OK, "dvt_block_load");
    if (!keep)
        remove(file);
    printf("\nsaved to %s, loaded into a new net on %s%s; its first predictions:\n", file,
           dvt_ctx_name(device), keep ? "" : ", and removed again (--keep leaves it)");
    must(dvt_loader_next(few, &x, &y), "reading images");
    classes = dvt_argmax(dvt_block_forward(again, dvt_as_in_ctx(x, device)), DVT_AXES(-1));
    for (i = 0; i < 8; i++) {
        int says = (int)dvt_item_at(classes, DVT_SHAPE(i)), is = (int)dvt_item_at(y, DVT_SHAPE(i));
        if (fashion)
            printf("  %-11s %s\n", fashion_names[says], says == is ? "right" : fashion_names[is]);
        else
            printf("  class %d, %s\n", says, says == is ? "right" : "wrong");
    }
    must(dvt_error_code() == DVT_OK, "predicting");
}

int main(int argc, char **argv) {
    options o = parse(argc, argv);
    dvt_ctx_list devices = dvt_try_all_gpus_or_cpu();
    dvt_dataset *train, *test;
    dvt_loader *train_data, *test_data;
    dvt_block *net;
    dvt_trainer *trainer;
    dvt_curve *curve = dvt_curve_new("LeNet", "epoch", "loss and accuracy");
    char list[256];
    bool fashion;
    int epoch;

    setvbuf(stdout, NULL, _IOLBF, 0);
    dvt_print_devices();
    tour();

    puts("\n-- LeNet --------------------------------------------------------");
    train = find_fashion_mnist(o.data, true);
    test = train ? find_fashion_mnist(o.data, false) : NULL;
    fashion = train && test;
    if (!fashion) {
        puts("Fashion-MNIST was not found (--data FOLDER, DEVTENSOR_DATA, data/, ../shared/data): "
             "training on 10,000 DRAWN\n"
             "figures made by examples/drawn_data.h instead. Their accuracy says nothing about "
             "Fashion-MNIST.");
        train = drawn(10000, 1);
        test = drawn(2000, 2);
    }
    must(train && test, "the data");
    if (!o.epochs)
        o.epochs = fashion ? 3 : 8; /* the drawn set is smaller: about as many steps */
    dvt_ctx_list_format(devices, list, sizeof list);
    printf("%lld training and %lld test images of %s, on %s\n", (long long)dvt_dataset_len(train),
           (long long)dvt_dataset_len(test), fashion ? "Fashion-MNIST" : "the drawn data set",
           list);

    dvt_seed(o.seed);
    net = lenet();
    must(dvt_block_initialize(net, o.xavier ? dvt_init_xavier() : dvt_init_uniform(0.07),
                              devices) == DVT_OK,
         "dvt_block_initialize");
    trainer = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_sgd(0.1));
    must(trainer != NULL, "dvt_trainer_new");
    train_data = loader(train, o.batch_size, true, o.seed);
    test_data = loader(test, o.batch_size, false, 0);

    for (epoch = 0; epoch < o.epochs; epoch++) {
        char title[32];
        double start = dvt_seconds(), loss, accuracy;
        dvt_progress *progress;
        snprintf(title, sizeof title, "epoch %d", epoch);
        progress = dvt_progress_new(title, dvt_loader_len(train_data));
        loss = train_epoch(net, trainer, devices, train_data, o.batch_size, progress);
        printf("Epoch %d: loss %.3f, in %.1f sec\n", epoch, loss, dvt_seconds() - start);
        accuracy = evaluate(net, devices.ctx[0], test_data);
        printf("         test accuracy %.4f\n", accuracy);
        if (epoch == 0)
            dvt_block_print(net); /* all shapes are known now */
        must(dvt_curve_add(curve, "training loss", epoch, loss) == DVT_OK &&
                 dvt_curve_add(curve, "test accuracy", epoch, accuracy) == DVT_OK,
             "dvt_curve_add");
    }
    if (o.curve) {
        must(dvt_curve_save(curve, o.curve) == DVT_OK, "dvt_curve_save");
        printf("curve written to %s\n", o.curve);
    }
    save_load_predict(net, devices.ctx[0], test, fashion, o.keep);
    return 0;
}
