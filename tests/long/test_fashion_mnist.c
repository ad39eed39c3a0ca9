/* Trains the tutorials' LeNet on the real Fashion-MNIST for ten epochs, which takes minutes, and
   checks the accuracy known for this setting. bench/lenet_accuracy.c measures means over seeds.
   These are single runs, so the bounds are a little below the means. */
#include "dvt_test.h"
#include "../../examples/lenet.h"

static double accuracy_of(dvt_dataset *train_set, dvt_dataset *test_set, dvt_init init,
                          dvt_ctx_list devices) {
    dvt_loader_desc desc;
    dvt_loader *train_data, *test_data;
    dvt_block *net = lenet();
    dvt_trainer *trainer;
    int epoch;
    memset(&desc, 0, sizeof desc);
    desc.batch_size = 256;
    desc.num_workers = 1;
    test_data = dvt_loader_new(dvt_dataset_transform_first(test_set, lenet_transform()), &desc);
    desc.shuffle = true;
    train_data = dvt_loader_new(dvt_dataset_transform_first(train_set, lenet_transform()), &desc);
    dvt_seed(0);
    CHECK(dvt_block_initialize(net, init, devices) == DVT_OK);
    trainer = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_sgd(0.1));
    for (epoch = 0; epoch < 10; epoch++)
        train_epoch(net, trainer, devices, train_data, 256, NULL);
    return evaluate(net, devices.ctx[0], test_data);
}

DVT_TEST(lenet_reaches_the_accuracy_of_its_setting) {
    dvt_dataset *train_set = find_fashion_mnist(NULL, true),
                *test_set = find_fashion_mnist(NULL, false);
    double uniform, xavier;
    if (!train_set || !test_set)
        SKIP("Fashion-MNIST was not found (DEVTENSOR_DATA, data/, ../shared/data)");
    uniform = accuracy_of(train_set, test_set, dvt_init_uniform(0.07), DVT_CONTEXTS(dvt_cpu()));
    xavier = accuracy_of(train_set, test_set, dvt_init_xavier(), DVT_CONTEXTS(dvt_cpu()));
    printf("accuracy: Uniform(0.07) %.4f, Xavier %.4f\n", uniform, xavier);
    CHECK(uniform >= 0.85);
    CHECK(xavier >= 0.87);
}
