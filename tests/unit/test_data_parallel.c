/* Tests of training on several contexts: every replica keeps the same bits, and the result agrees
   with that of one context. */
#include "../dvt_test.h"
#if !defined(DEVTENSOR_NO_NN)

static void bits_equal(dvt_params *params) {
    int i, k;
    for (i = 0; i < dvt_params_len(params); i++) {
        dvt_param *p = dvt_params_at(params, i);
        dvt_ctx_list ctxs = dvt_param_ctxs(p);
        double *first = dvt_test_values(dvt_param_data(p, ctxs.ctx[0]));
        for (k = 1; k < ctxs.n; k++) {
            double *other = dvt_test_values(dvt_param_data(p, ctxs.ctx[k]));
            size_t bytes = sizeof(double) * (size_t)dvt_shape_size(dvt_param_shape(p));
            CHECK(memcmp(first, other, bytes) == 0);
            free(other);
        }
        free(first);
    }
}

/* Returns the lists of contexts whose results must agree. */
static int context_lists(dvt_ctx_list *lists) {
    lists[0] = DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(1));
    lists[1] = DVT_CONTEXTS(dvt_cpu(), dvt_cpu_id(1));
    lists[2] = DVT_CONTEXTS(dvt_cpu(), dvt_gpu(1));
    lists[3] = DVT_CONTEXTS(dvt_gpu(1), dvt_cpu_id(3));
    return 4;
}

/* ---- a small LeNet on one context and on several ---- */
static dvt_block *small_lenet(void) {
    dvt_block *net = dvt_nn_sequential();
    DVT_NN_ADD(net, dvt_nn_conv2d(3, 3, DVT_RELU), dvt_nn_max_pool2d(2, 2),
               dvt_nn_conv2d(4, 3, DVT_RELU), dvt_nn_max_pool2d(2, 2), dvt_nn_dense(8, DVT_RELU),
               dvt_nn_dense(4, DVT_IDENTITY));
    return net;
}

static void train_step(dvt_block *net, dvt_trainer *t, dvt_ctx_list ctxs, dvt_array *x,
                       dvt_array *y) {
    dvt_array *xs[8], *ys[8], *losses[8];
    int i;
    memset(losses, 0, sizeof losses);
    CHECK_INT(dvt_array_split_and_load(x, ctxs, xs), DVT_OK);
    CHECK_INT(dvt_array_split_and_load(y, ctxs, ys), DVT_OK);
    DVT_RECORD {
        for (i = 0; i < ctxs.n; i++)
            losses[i] = dvt_loss_softmax_cross_entropy(dvt_block_forward(net, xs[i]), ys[i]);
    }
    for (i = 0; i < ctxs.n; i++)
        CHECK_INT(dvt_backward(losses[i]), DVT_OK);
    CHECK_INT(dvt_trainer_step(t, dvt_dim(x, 0)), DVT_OK);
}

/* The images are the same for every list of contexts: train_on restarts this generator. */
static uint64_t image_state;

static double drawn(double high) {
    image_state = image_state * 6364136223846793005u + 1442695040888963407u;
    return high * (double)(image_state >> 11) * 0x1p-53;
}

/* Makes a batch of images whose class is the position of their bright corner. */
static void corners(int64_t n, dvt_array **x, dvt_array **y) {
    float *px;
    int32_t *py;
    int64_t i, r, c;
    *x = dvt_empty(DVT_SHAPE(n, 1, 14, 14), DVT_F32, dvt_cpu());
    *y = dvt_empty(DVT_SHAPE(n), DVT_I32, dvt_cpu());
    px = (float *)dvt_data(*x);
    py = (int32_t *)dvt_data(*y);
    for (i = 0; i < n; i++) {
        py[i] = (int32_t)drawn(4);
        for (r = 0; r < 14; r++)
            for (c = 0; c < 14; c++)
                px[(i * 14 + r) * 14 + c] =
                    (float)drawn(0.5) + (float)(r / 7 == py[i] / 2 && c / 7 == py[i] % 2);
    }
}

/* Returns the weights after `steps` steps as one block of doubles, which the caller frees. */
static double *train_on(dvt_ctx_list ctxs, dvt_optimizer optimizer, int steps, int64_t batch,
                        int64_t *size) {
    dvt_block *net;
    dvt_params *params;
    dvt_trainer *t;
    double *all = NULL;
    int i;
    image_state = 1;
    dvt_seed(7);
    net = small_lenet();
    CHECK_INT(dvt_block_initialize(net, dvt_init_xavier(), ctxs), DVT_OK);
    params = dvt_block_collect_params(net, NULL);
    t = dvt_trainer_new(params, optimizer);
    for (i = 0; i < steps; i++) {
        DVT_SCOPE {
            dvt_array *x, *y;
            corners(batch, &x, &y);
            train_step(net, t, ctxs, x, y);
        }
        bits_equal(params);
    }
    *size = 0;
    for (i = 0; i < dvt_params_len(params); i++) {
        dvt_param *p = dvt_params_at(params, i);
        int64_t n = dvt_shape_size(dvt_param_shape(p));
        double *values = dvt_test_values(dvt_param_data(p, ctxs.ctx[0]));
        all = (double *)realloc(all, sizeof(double) * (size_t)(*size + n));
        memcpy(all + *size, values, sizeof(double) * (size_t)n);
        *size += n;
        free(values);
    }
    return all;
}

DVT_TEST(trainer_data_parallel_agrees) {
    dvt_ctx_list lists[5];
    dvt_optimizer optimizers[2];
    int i, o, n;
    CHECK_INT(dvt_set_virtual_gpus(3, 0), DVT_OK);
    n = context_lists(lists);
    lists[n++] = DVT_CONTEXTS(dvt_gpu(2), dvt_gpu(0), dvt_gpu(1));
    optimizers[0] = dvt_optimizer_sgd(0.1);
    optimizers[0].momentum = 0.9;
    optimizers[1] = dvt_optimizer_adam(0.01);
    for (o = 0; o < 2; o++) {
        DVT_SCOPE {
            int64_t size, other, k;
            double *one, *many, far;
            one = train_on(DVT_CONTEXTS(dvt_cpu()), optimizers[o], 5, 13, &size);
            for (i = 0; i < n; i++) {
                many = train_on(lists[i], optimizers[o], 5, 13, &other);
                CHECK_INT(other, size);
                far = 0;
                for (k = 0; k < size; k++)
                    far = fmax(far, isnan(many[k]) ? 1 : fabs(many[k] - one[k]));
                CHECK_CLOSE(far, 0, 2e-4);
                free(many);
            }
            free(one);
        }
    }
    dvt_set_virtual_gpus(0, 0);
}

DVT_TEST(trainer_learns) {
    dvt_block *net;
    dvt_trainer *t;
    dvt_metric *accuracy = dvt_metric_accuracy();
    dvt_ctx_list gpus;
    int i;
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    DVT_SCOPE {
        gpus = DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(1));
        net = small_lenet();
        CHECK_INT(dvt_block_initialize(net, dvt_init_xavier(), gpus), DVT_OK);
        t = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_adam(0.01));
        for (i = 0; i < 60; i++) {
            DVT_SCOPE {
                dvt_array *x, *y;
                corners(32, &x, &y);
                train_step(net, t, gpus, x, y);
                if (i >= 50)
                    CHECK_INT(
                        dvt_metric_update(accuracy, dvt_as_in_ctx(y, dvt_gpu(1)),
                                          dvt_block_forward(net, dvt_as_in_ctx(x, dvt_gpu(1)))),
                        DVT_OK);
            }
        }
        CHECK(dvt_metric_get(accuracy) > 0.95);
    }
    dvt_set_virtual_gpus(0, 0);
}
#endif
