/* Minutes long: the tutorials' LeNet on the real Fashion-MNIST, ten epochs, to the accuracy that the same setting gives elsewhere.
   bench/lenet_accuracy.c measures the means over seeds; these are single runs, with a little room below the asked for mean. */
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
    test_data = dvt_loader_new(dvt_transform_first(test_set, lenet_transform()), &desc);
    desc.shuffle = true;
    train_data = dvt_loader_new(dvt_transform_first(train_set, lenet_transform()), &desc);
    dvt_seed(0);
    CHECK(dvt_initialize(net, init, devices, false) == DVT_OK);
    trainer = dvt_trainer_new(dvt_collect_params(net, NULL), dvt_sgd(0.1));
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

/* Every float32 within a stride of 61 bit patterns, against the double function. */
DVT_TEST(functions_over_all_of_float32) {
    static const int64_t n = 1 << 20;
    float *bits = (float *)malloc((size_t)n * 4), *got = (float *)malloc((size_t)n * 4);
    uint64_t at = 0;
    double worst = 0;
    while (at < 0x100000000u)
        DVT_SCOPE {
            int64_t count = 0, i;
            for (; count < n && at < 0x100000000u; count++, at += 61) {
                uint32_t word = (uint32_t)at;
                memcpy(bits + count, &word, 4);
            }
            {
                dvt_array *x = dvt_from_host(bits, DVT_SHAPE(count), DVT_F32, dvt_cpu());
                CHECK(dvt_to_host(dvt_exp(x), got, count * 4) == DVT_OK);
            }
            for (i = 0; i < count; i++) {
                double want = exp((double)bits[i]), error;
                if (want != want || want > 3.4028234e38 || want < 1.2e-38) {
                    CHECK(want != want ? got[i] != got[i]
                          : want > 1   ? got[i] >= 3.4e38f
                                       : got[i] <= 1.3e-38f);
                    continue;
                }
                error = fabs((double)got[i] - want) / want;
                worst = error > worst ? error : worst;
            }
        }
    printf("exp: largest relative error %.3g\n", worst);
    CHECK(worst < 1.2e-7);
    free(bits);
    free(got);
}
