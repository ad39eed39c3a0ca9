/* Prints the test accuracy of the tutorials' LeNet on Fashion-MNIST after n epochs, for
   Uniform(0.07) and Xavier, each the mean of three seeds: `make bench-accuracy`. Writes a Markdown
   table to standard output. */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"
#include "../examples/lenet.h"
#include <time.h>

typedef struct outcome {
    double accuracy, loss, seconds;
} outcome;

static dvt_loader *loader(dvt_dataset *data, bool shuffle, uint64_t seed) {
    dvt_loader_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.batch_size = 256;
    desc.shuffle = shuffle;
    desc.num_workers = 1;
    desc.seed = seed;
    return dvt_loader_new(dvt_dataset_transform_first(data, lenet_transform()), &desc);
}

static outcome train(dvt_dataset *train_set, dvt_dataset *test_set, dvt_init init, int epochs,
                     uint64_t seed) {
    outcome result = {0, 0, 0};
    dvt_ctx_list devices = dvt_try_all_gpus_or_cpu();
    double start = dvt_seconds();
    DVT_SCOPE {
        dvt_block *net = lenet();
        dvt_trainer *trainer;
        dvt_loader *batches = loader(train_set, true, seed);
        int epoch;
        dvt_seed(seed);
        must(dvt_block_initialize(net, init, devices) == DVT_OK, "dvt_block_initialize");
        trainer = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_sgd(0.1));
        must(trainer != NULL, "dvt_trainer_new");
        for (epoch = 0; epoch < epochs; epoch++) {
            result.loss = train_epoch(net, trainer, devices, batches, 256, NULL);
            fprintf(stderr, "  seed %llu epoch %d loss %.4f (%.1f s)\n", (unsigned long long)seed,
                    epoch, result.loss, dvt_seconds() - start);
        }
        result.seconds = (dvt_seconds() - start) / epochs;
        result.accuracy = evaluate(net, devices.ctx[0], loader(test_set, false, 0));
    }
    return result;
}

int main(int argc, char **argv) {
    static const char *const names[2] = {"Uniform(0.07)", "Xavier"};
    static const double floors[2] = {0.86, 0.875};
    int epochs = argc > 1 ? atoi(argv[1]) : 10, kind, failed = 0;
    dvt_dataset *train_set = find_fashion_mnist(NULL, true),
                *test_set = find_fashion_mnist(NULL, false);
    dvt_device_info cpu;
    char date[16];
    time_t now = time(NULL);
    if (!train_set || !test_set) {
        fprintf(stderr,
                "Fashion-MNIST was not found: set DEVTENSOR_DATA to the folder with its files\n");
        return 2;
    }
    strftime(date, sizeof date, "%Y-%m-%d", localtime(&now));
    must(dvt_device_query(dvt_cpu(), &cpu) == DVT_OK, "dvt_device_query");
    printf("# LeNet on Fashion-MNIST, %d epochs, %s\n\n", epochs, date);
    printf("Machine: %s, %d threads; devtensor %s; compiler %s. Batch 256, SGD 0.1. Command: `make "
           "bench-accuracy`.\n\n",
           cpu.name, dvt_num_threads(), dvt_version(),
#if defined(__VERSION__)
           __VERSION__
#else
           "unknown"
#endif
    );
    puts("| initialization | seed 0 | seed 1 | seed 2 | mean | target | training loss | seconds "
         "per epoch |\n"
         "|---|---|---|---|---|---|---|---|");
    for (kind = 0; kind < 2; kind++) {
        outcome o[3];
        double mean = 0, loss = 0, seconds = 0;
        int seed;
        for (seed = 0; seed < 3; seed++) {
            o[seed] = train(train_set, test_set, kind ? dvt_init_xavier() : dvt_init_uniform(0.07),
                            epochs, (uint64_t)seed);
            mean += o[seed].accuracy / 3;
            loss += o[seed].loss / 3;
            seconds += o[seed].seconds / 3;
        }
        printf("| %s | %.4f | %.4f | %.4f | **%.4f** | %.3f | %.3f | %.1f |\n", names[kind],
               o[0].accuracy, o[1].accuracy, o[2].accuracy, mean, floors[kind], loss, seconds);
        fflush(stdout);
        failed += epochs >= 10 && !(mean >= floors[kind]);
    }
    return failed ? 1 : 0;
}
