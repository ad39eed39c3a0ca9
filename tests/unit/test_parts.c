/* Tests of training in parts: losses, weights and running statistics have the same bits for any
   list of contexts. */
#include "../dvt_test.h"
#if !defined(DEVTENSOR_NO_NN)

static dvt_block *parts_net(void) {
    dvt_block *net = dvt_nn_sequential();
    DVT_NN_ADD(net, dvt_nn_conv2d(3, 3, DVT_IDENTITY), dvt_nn_batch_norm(),
               dvt_nn_activation(DVT_RELU), dvt_nn_max_pool2d(2, 2), dvt_nn_dense(9, DVT_RELU),
               dvt_nn_dropout(0.3), dvt_nn_dense(3, DVT_IDENTITY));
    return net;
}

/* Everything that must agree: the losses of all steps, then all parameters. */
typedef struct trained {
    double value[2048];
    int n;
} trained;

static dvt_array *parts_forward(dvt_block *net, dvt_array *x, dvt_array *y) {
    return dvt_loss_softmax_cross_entropy(dvt_block_forward(net, x), y);
}

/* One training with a generator of its own, so that all trainings see the same batches. */
typedef struct training {
    dvt_block *net;
    dvt_params *params;
    dvt_trainer *trainer;
    dvt_ctx_list ctxs;
} training;

static training training_begin(dvt_ctx_list ctxs, dvt_optimizer optimizer, int parts) {
    training t;
    int i;
    dvt_seed(3);
    t.ctxs = ctxs;
    t.net = parts_net();
    CHECK_INT(dvt_block_initialize(t.net, dvt_init_xavier(), ctxs), DVT_OK);
    DVT_PREDICT_MODE {
        for (i = 0; i < ctxs.n; i++)
            CHECK(dvt_block_forward(
                      t.net, dvt_zeros(DVT_SHAPE(1, 1, 8, 8), DVT_F32, ctxs.ctx[i])) != NULL);
    }
    t.params = dvt_block_collect_params(t.net, NULL);
    t.trainer = dvt_trainer_new(t.params, optimizer);
    CHECK_INT(dvt_trainer_set_parts(t.trainer, parts), DVT_OK);
    return t;
}

static void training_batch(int64_t rows, int step, dvt_array **x, dvt_array **y) {
    dvt_key key = dvt_key_fold_in(dvt_key_new(5), (uint32_t)step);
    *x = dvt_key_uniform(key, -1, 1, DVT_SHAPE(rows, 1, 8, 8), DVT_F32, dvt_cpu());
    *y = dvt_key_randint(key, 0, 3, DVT_SHAPE(rows), DVT_I32, dvt_cpu());
}

static void training_step(training *t, int64_t rows, int step) {
    dvt_array *x, *y, *px, *py, *loss;
    training_batch(rows, step, &x, &y);
    DVT_FOR_TRAINER_PARTS(t->trainer, x, y, px, py) {
        DVT_RECORD {
            loss = parts_forward(t->net, px, py);
        }
        CHECK_INT(dvt_backward(loss), DVT_OK);
        CHECK_INT(dvt_trainer_add_loss(t->trainer, loss), DVT_OK);
    }
    CHECK_INT(dvt_error_code(), DVT_OK);
    CHECK_INT(dvt_trainer_step(t->trainer, rows), DVT_OK);
}

static void training_run(training *t, int steps, trained *out) {
    int i, k;
    out->n = 0;
    for (i = 0; i < steps; i++) {
        DVT_SCOPE {
            /* The last batches of an epoch are short; 5 rows leave parts without rows. */
            training_step(t, i % 10 == 9 ? 5 : i % 10 == 8 ? 31 : 36, i);
            out->value[out->n++] = dvt_trainer_loss(t->trainer);
        }
    }
    for (i = 0; i < dvt_params_len(t->params); i++) {
        dvt_param *p = dvt_params_at(t->params, i);
        int64_t n = dvt_shape_size(dvt_param_shape(p));
        double *first = dvt_test_values(dvt_param_data(p, t->ctxs.ctx[0]));
        for (k = 1; k < t->ctxs.n; k++) {
            double *other = dvt_test_values(dvt_param_data(p, t->ctxs.ctx[k]));
            CHECK(memcmp(first, other, sizeof *first * (size_t)n) == 0);
            free(other);
        }
        CHECK(out->n + n <= 2048);
        memcpy(out->value + out->n, first, sizeof *first * (size_t)n);
        out->n += (int)n;
        free(first);
    }
}

static void train_parts(dvt_ctx_list ctxs, dvt_optimizer optimizer, int parts, int steps,
                        trained *out) {
    DVT_SCOPE {
        training t = training_begin(ctxs, optimizer, parts);
        training_run(&t, steps, out);
    }
}

DVT_TEST(parts_same_bits_on_any_contexts) {
    static trained one, many;
    dvt_ctx_list lists[6];
    dvt_optimizer optimizers[2];
    int i, o;
    CHECK_INT(dvt_set_virtual_gpus(4, 0), DVT_OK);
    lists[0] = DVT_CONTEXTS(dvt_gpu(0));
    lists[1] = DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(1));
    lists[2] = DVT_CONTEXTS(dvt_gpu(2), dvt_gpu(0), dvt_gpu(1));
    lists[3] = DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(1), dvt_gpu(2), dvt_gpu(3));
    lists[4] = DVT_CONTEXTS(dvt_cpu(), dvt_gpu(0), dvt_gpu(1));
    lists[5] = DVT_CONTEXTS(dvt_cpu(), dvt_cpu_id(1), dvt_gpu(0), dvt_gpu(1), dvt_cpu_id(2));
    optimizers[0] = dvt_optimizer_sgd(0.1);
    optimizers[0].momentum = 0.9;
    optimizers[1] = dvt_optimizer_adam(0.01);
    for (o = 0; o < 2; o++) {
        int steps = o ? 20 : 100;
        train_parts(DVT_CONTEXTS(dvt_cpu()), optimizers[o], 12, steps, &one);
        CHECK(one.value[0] > 0.5 && one.value[0] < 5);
        for (i = dvt_test_on_gpus() ? 6 : o ? 0 : 2; i < (o ? 6 : 5); i++) {
            train_parts(lists[i], optimizers[o], 12, steps, &many);
            CHECK_INT(many.n, one.n);
            CHECK(memcmp(one.value, many.value, sizeof(double) * (size_t)one.n) == 0);
        }
        /* The number of parts is part of the result: the statistics are those of parts. */
        train_parts(DVT_CONTEXTS(dvt_cpu()), optimizers[o], 6, steps, &many);
        CHECK(memcmp(one.value, many.value, sizeof(double) * (size_t)one.n) != 0);
    }
    dvt_set_virtual_gpus(0, 0);
}

/* Without dropout and batch normalization, parts compute the gradients of whole batches. */
DVT_TEST(parts_agree_with_whole_batches) {
    int parts, i;
    for (parts = 0; parts <= 7; parts++) {
        dvt_block *net = dvt_nn_dense(2, DVT_IDENTITY);
        dvt_array *x, *y, *px, *py, *loss;
        dvt_trainer *t;
        double loss_mean = 0;
        dvt_seed(1);
        CHECK_INT(dvt_block_initialize(net, dvt_init_normal(1), DVT_CONTEXTS(dvt_cpu())), DVT_OK);
        dvt_block_forward(net, dvt_zeros(DVT_SHAPE(1, 3), DVT_F32, dvt_cpu()));
        t = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_sgd(0.1));
        CHECK_INT(dvt_trainer_set_parts(t, parts), DVT_OK);
        for (i = 0; i < 3; i++) {
            dvt_key key = dvt_key_fold_in(dvt_key_new(2), (uint32_t)i);
            x = dvt_key_uniform(key, -1, 1, DVT_SHAPE(5, 3), DVT_F32, dvt_cpu());
            y = dvt_key_uniform(key, -1, 1, DVT_SHAPE(5, 2), DVT_F32, dvt_cpu());
            if (parts) {
                DVT_FOR_TRAINER_PARTS(t, x, y, px, py) {
                    DVT_RECORD {
                        loss = dvt_loss_l2(dvt_block_forward(net, px), py);
                    }
                    dvt_backward(loss);
                    dvt_trainer_add_loss(t, loss);
                }
            } else {
                DVT_RECORD {
                    loss = dvt_loss_l2(dvt_block_forward(net, x), y);
                }
                dvt_backward(loss);
                loss_mean = dvt_item(dvt_mean(loss, DVT_ALL));
            }
            CHECK_INT(dvt_trainer_step(t, 5), DVT_OK);
            if (parts)
                loss_mean = dvt_trainer_loss(t);
        }
        /* By NumPy, in float64, from the weights and batches that these keys give. */
        {
            static double weight[6], mean;
            double *now =
                dvt_test_values(dvt_param_data(dvt_block_param(net, "weight"), dvt_cpu()));
            for (i = 0; i < 6 && parts; i++)
                CHECK_CLOSE(now[i], weight[i], 1e-6);
            if (parts)
                CHECK_CLOSE(loss_mean, mean, 1e-6);
            memcpy(weight, now, sizeof weight);
            mean = loss_mean;
            free(now);
        }
    }
}

DVT_TEST(parts_running_statistics_move_once) {
    dvt_block *net = dvt_nn_batch_norm();
    dvt_array *x = DVT_ARRAY(float, DVT_SHAPE(4, 1), dvt_cpu(), 1, 3, 5, 9);
    dvt_array *px, *py, *loss;
    dvt_trainer *t;
    dvt_block_initialize(net, dvt_init_one(), DVT_CONTEXTS(dvt_cpu()));
    DVT_PREDICT_MODE {
        dvt_block_forward(net, x);
    }
    t = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_sgd(0.1));
    CHECK_INT(dvt_trainer_set_parts(t, 2), DVT_OK);
    DVT_FOR_TRAINER_PARTS(t, x, x, px, py) {
        DVT_RECORD {
            loss = dvt_loss_l2(dvt_block_forward(net, px), py);
        }
        dvt_backward(loss);
    }
    /* Nothing moves before the step. */
    CHECK_VALUES(dvt_block_data(net, "running_mean", dvt_cpu()), 0, 0);
    CHECK(isnan(dvt_trainer_loss(t)));
    CHECK_INT(dvt_trainer_step(t, 4), DVT_OK);
    /* Means 2 and 7, variances 1 and 4: 0.9 * old + 0.1 * (2 + 7) / 2, and 0.9 + 0.1 * 2.5. */
    CHECK_VALUES(dvt_block_data(net, "running_mean", dvt_cpu()), 1e-6, 0.45);
    CHECK_VALUES(dvt_block_data(net, "running_var", dvt_cpu()), 1e-6, 1.15);
}

/* Random numbers of a part do not depend on the numbers drawn before on its context. */
DVT_TEST(parts_random_numbers_are_those_of_the_part) {
    dvt_block *net = dvt_nn_dense(1, DVT_IDENTITY);
    dvt_array *x = dvt_ones(DVT_SHAPE(4, 2), DVT_F32, dvt_cpu());
    dvt_array *px, *py;
    double drawn[2][4], after[2];
    dvt_trainer *t;
    int run, i;
    dvt_block_initialize(net, dvt_init_one(), DVT_CONTEXTS(dvt_cpu()));
    dvt_block_forward(net, x);
    t = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_sgd(0.1));
    for (run = 0; run < 2; run++) {
        dvt_seed(9);
        CHECK_INT(dvt_trainer_set_parts(t, 4), DVT_OK);
        i = 0;
        DVT_FOR_TRAINER_PARTS(t, x, x, px, py) {
            /* Numbers of the stream, and of keys, do not move those of the part. */
            drawn[run][i++] = dvt_item(dvt_uniform(0, 1, DVT_SHAPE(1), DVT_F32, dvt_cpu()));
            if (run)
                dvt_key_uniform(dvt_key_new(1), 0, 1, DVT_SHAPE(7), DVT_F32, dvt_cpu());
            DVT_RECORD {
                py = dvt_block_forward(net, px);
            }
            dvt_backward(py);
        }
        CHECK_INT(i, 4);
        dvt_trainer_step(t, 4);
        after[run] = dvt_item(dvt_uniform(0, 1, DVT_SHAPE(1), DVT_F32, dvt_cpu()));
    }
    CHECK(memcmp(drawn[0], drawn[1], sizeof drawn[0]) == 0);
    CHECK(drawn[0][0] != drawn[0][1] && drawn[0][1] != drawn[0][2]);
    CHECK(after[0] == after[1]);
}

DVT_TEST(parts_with_added_gradients) {
    dvt_block *net = dvt_nn_dense(1, DVT_IDENTITY);
    dvt_params *params;
    dvt_array *x = DVT_ARRAY(float, DVT_SHAPE(3, 1), dvt_cpu(), 1, 2, 3);
    dvt_array *px, *py, *loss;
    dvt_trainer *t;
    int step;
    dvt_block_initialize(net, dvt_init_one(), DVT_CONTEXTS(dvt_cpu()));
    dvt_block_forward(net, x);
    params = dvt_block_collect_params(net, NULL);
    CHECK_INT(dvt_params_set_grad_req(params, DVT_GRAD_ADD), DVT_OK);
    t = dvt_trainer_new(params, dvt_optimizer_sgd(1));
    CHECK_INT(dvt_trainer_set_parts(t, 3), DVT_OK);
    for (step = 0; step < 2; step++) {
        DVT_FOR_TRAINER_PARTS(t, x, x, px, py) {
            int twice;
            for (twice = 0; twice < 2; twice++) {
                DVT_RECORD {
                    loss = dvt_block_forward(net, px);
                }
                dvt_backward(loss);
            }
        }
        CHECK_INT(dvt_trainer_allreduce(t), DVT_OK);
        CHECK_VALUES(dvt_param_grad(dvt_block_param(net, "weight"), dvt_cpu()), 0, 12);
        CHECK_INT(dvt_trainer_allreduce(t), DVT_OK); /* once only */
        CHECK_VALUES(dvt_param_grad(dvt_block_param(net, "weight"), dvt_cpu()), 0, 12);
        CHECK_INT(dvt_trainer_update(t, 3), DVT_OK);
        CHECK_VALUES(dvt_block_data(net, "weight", dvt_cpu()), 0, 1 - 4 * (step + 1));
        if (!step)
            dvt_params_zero_grad(params);
    }
    /* Without zero_grad the sum of the batch before would count again. */
    CHECK(dvt_trainer_next_part(t, x, x, &px, &py));
    DVT_RECORD {
        loss = dvt_block_forward(net, px);
    }
    dvt_backward(loss);
    CHECK_ERROR(dvt_trainer_next_part(t, x, x, &px, &py), DVT_ERR_VALUE);
}

DVT_TEST(parts_errors) {
    dvt_block *net = dvt_nn_dense(1, DVT_IDENTITY), *other = dvt_nn_dense(1, DVT_IDENTITY);
    dvt_array *x = dvt_ones(DVT_SHAPE(4, 2), DVT_F32, dvt_cpu());
    dvt_array *px, *py, *loss;
    dvt_trainer *t;
    dvt_block_initialize(other, dvt_init_one(), DVT_CONTEXTS(dvt_cpu()));
    t = dvt_trainer_new(dvt_block_collect_params(other, NULL), dvt_optimizer_sgd(0.1));
    CHECK_INT(dvt_trainer_set_parts(t, 2), DVT_OK);
    CHECK_ERROR(dvt_trainer_next_part(t, x, x, &px, &py), DVT_ERR_UNINITIALIZED);
    dvt_block_initialize(net, dvt_init_one(), DVT_CONTEXTS(dvt_cpu()));
    dvt_block_forward(net, x);
    t = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_sgd(0.1));
    CHECK_ERROR(dvt_trainer_next_part(t, x, x, &px, &py), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_trainer_set_parts(t, -1), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_trainer_set_parts(t, 4097), DVT_ERR_RANGE);
    CHECK_ERROR(dvt_trainer_set_parts(NULL, 1), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_trainer_add_loss(t, x), DVT_ERR_VALUE);
    CHECK(isnan(dvt_trainer_loss(t)));
    CHECK_INT(dvt_trainer_set_parts(t, 2), DVT_OK);
    CHECK_ERROR(dvt_trainer_next_part(t, NULL, x, &px, &py), DVT_ERR_NULL_ARGUMENT);
    CHECK_ERROR(dvt_trainer_next_part(t, x, dvt_rows(x, 0, 1), &px, &py), DVT_ERR_SHAPE);
    CHECK(px == NULL && py == NULL);
    /* A step of a whole batch would lose the guarantee silently. */
    DVT_RECORD {
        loss = dvt_block_forward(net, x);
    }
    dvt_backward(loss);
    CHECK_ERROR(dvt_trainer_step(t, 4), DVT_ERR_VALUE);
    /* A batch that is left before its end. */
    CHECK(dvt_trainer_next_part(t, x, x, &px, &py));
    CHECK_ERROR(dvt_trainer_set_parts(t, 3), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_trainer_step(t, 4), DVT_ERR_VALUE);
    /* Parts without backward are stale. */
    CHECK(dvt_trainer_next_part(t, x, x, &px, &py));
    CHECK_INT(dvt_dim(px, 0), 2);
    CHECK(dvt_trainer_next_part(t, x, x, &px, &py));
    CHECK(!dvt_trainer_next_part(t, x, x, &px, &py));
    CHECK_ERROR(dvt_trainer_next_part(t, x, x, &px, &py), DVT_ERR_VALUE);
    CHECK_ERROR(dvt_trainer_step(t, 4), DVT_ERR_STALE_GRAD);
    CHECK_VALUES(dvt_block_data(net, "weight", dvt_cpu()), 0, 1, 1);
}
#endif
