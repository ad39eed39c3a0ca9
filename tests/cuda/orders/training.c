/* Trains a small network on one to four GPUs. The replicas keep the same bits in every execution
   order, and agree with one GPU. Prints a hash of the weights for each, which orders.sh compares
   between orders. */
#include "dvt_test.h"

#define IMAGES 12
#define STEPS 3

static dvt_block *network(void) {
    dvt_block *net = dvt_nn_sequential();
    DVT_NN_ADD(net, dvt_nn_conv2d(2, 3, DVT_RELU), dvt_nn_max_pool2d(2, 2),
               dvt_nn_dense(5, DVT_TANH), dvt_nn_dense(3, DVT_IDENTITY));
    return net;
}

static void batch(int step, dvt_array **x, dvt_array **y) {
    float *px;
    int32_t *py;
    int i;
    *x = dvt_empty(DVT_SHAPE(IMAGES, 1, 8, 8), DVT_F32, dvt_cpu());
    *y = dvt_empty(DVT_SHAPE(IMAGES), DVT_I32, dvt_cpu());
    px = (float *)dvt_data(*x);
    py = (int32_t *)dvt_data(*y);
    for (i = 0; i < IMAGES * 64; i++)
        px[i] = (float)((i * 29 + step * 13) % 83) / 83;
    for (i = 0; i < IMAGES; i++)
        py[i] = (i + step) % 3;
}

static void train_step(dvt_block *net, dvt_trainer *trainer, dvt_ctx_list gpus, int step) {
    dvt_array *x, *y, *xs[8], *ys[8], *losses[8] = {NULL};
    int i;
    batch(step, &x, &y);
    CHECK_INT(dvt_split_and_load(x, gpus, xs), DVT_OK);
    CHECK_INT(dvt_split_and_load(y, gpus, ys), DVT_OK);
    DVT_RECORD {
        for (i = 0; i < gpus.n; i++)
            losses[i] = dvt_loss_softmax_cross_entropy(dvt_block_forward(net, xs[i]), ys[i]);
    }
    for (i = 0; i < gpus.n; i++)
        CHECK_INT(dvt_backward(losses[i]), DVT_OK);
    CHECK_INT(dvt_trainer_step(trainer, IMAGES), DVT_OK);
}

/* Returns all weights of the first GPU, after checking that all GPUs have the same bits. The caller
   frees them. */
static float *weights_of(dvt_block *net, dvt_ctx_list gpus, int64_t *total) {
    dvt_params *params = dvt_block_collect_params(net, NULL);
    float *all = NULL;
    int i, k;
    *total = 0;
    for (i = 0; i < dvt_params_len(params); i++) {
        dvt_param *p = dvt_params_at(params, i);
        int64_t n = dvt_shape_size(dvt_param_shape(p)), bytes = n * (int64_t)sizeof(float);
        float *other = (float *)malloc((size_t)bytes);
        all = (float *)realloc(all, (size_t)(*total + n) * sizeof(float));
        CHECK_INT(dvt_to_host(dvt_param_data(p, gpus.ctx[0]), all + *total, bytes), DVT_OK);
        for (k = 1; k < gpus.n; k++) {
            CHECK_INT(dvt_to_host(dvt_param_data(p, gpus.ctx[k]), other, bytes), DVT_OK);
            dvt_test_check(memcmp(other, all + *total, (size_t)bytes) == 0, __FILE__, __LINE__,
                           "%s on gpu(%d) has other bits than on gpu(0)", dvt_param_name(p), k);
        }
        free(other);
        *total += n;
    }
    return all;
}

static float *train_on(int n, int64_t *total) {
    dvt_ctx_list gpus = dvt_try_all_gpus();
    dvt_block *net = network();
    dvt_optimizer optimizer = dvt_optimizer_sgd(0.2);
    dvt_trainer *trainer;
    int step;
    gpus.n = n;
    optimizer.momentum = 0.9;
    dvt_seed(11);
    CHECK_INT(dvt_block_initialize(net, dvt_init_xavier(), gpus), DVT_OK);
    trainer = dvt_trainer_new(dvt_block_collect_params(net, NULL), optimizer);
    for (step = 0; step < STEPS; step++)
        DVT_SCOPE {
            train_step(net, trainer, gpus, step);
        }
    return weights_of(net, gpus, total);
}

DVT_TEST(order_training) {
    float *one = NULL;
    int64_t total, size, i;
    int n;
    if (dvt_num_gpus() < 4)
        SKIP("needs four gpus");
    for (n = 1; n <= 4; n++)
        DVT_SCOPE {
            float *many = train_on(n, &total), far = 0;
            uint64_t hash = 0xcbf29ce484222325u;
            if (n == 1) {
                one = many;
                size = total;
            }
            CHECK_INT(total, size);
            for (i = 0; i < total; i++)
                far = fmaxf(far, many[i] == many[i] ? fabsf(many[i] - one[i]) : 1);
            CHECK_CLOSE(far, 0, 1e-5);
            for (i = 0; i < total * (int64_t)sizeof(float); i++)
                hash = (hash ^ ((unsigned char *)many)[i]) * 0x100000001b3u;
            printf("weights after training on %d: %016llx\n", n, (unsigned long long)hash);
            if (n > 1)
                free(many);
        }
    free(one);
}
