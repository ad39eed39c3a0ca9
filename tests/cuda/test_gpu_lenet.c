/* Trains the LeNet of the examples for a few steps from the same weights on cpu(), gpu(0) and two
   GPUs. Losses and weights must agree up to the rounding of float32 sums in another order, and bit
   for bit between both GPUs. */
#include "on_gpu.h"
#include "../../examples/drawn_data.h"
#include "../../examples/lenet.h"

enum { STEPS = 4, BATCH = 12, PARAMETERS = 60170 };

typedef struct outcome {
    double losses[STEPS], *weights;
} outcome;

/* Returns images of classes 0 to 9 with their labels, the same for each context. */
static void batch(uint64_t *state, dvt_array **x, dvt_array **y) {
    uint8_t pixels[BATCH * 28 * 28];
    int32_t labels[BATCH];
    int i;
    for (i = 0; i < BATCH; i++) {
        labels[i] = i % 10;
        drawn_figure(pixels + i * 28 * 28, i % 10, state);
    }
    *x = dvt_as_in_dtype(dvt_from_host(pixels, DVT_SHAPE(BATCH, 1, 28, 28), DVT_U8, dvt_cpu()),
                         DVT_F32);
    *x = dvt_mul_scalar(*x, 1.0 / 255);
    *y = dvt_from_host(labels, DVT_SHAPE(BATCH), DVT_I32, dvt_cpu());
}

/* Returns all weights in one block, which the caller frees. Checks that the other contexts have the
   same bits. */
static double *weights_of(dvt_params *params, dvt_ctx_list ctxs) {
    double *all = (double *)calloc(PARAMETERS, sizeof(double));
    int64_t at = 0, n;
    int i, k;
    for (i = 0; i < dvt_params_len(params); i++) {
        dvt_param *p = dvt_params_at(params, i);
        n = dvt_shape_size(dvt_param_shape(p));
        for (k = 0; k < ctxs.n && at + n <= PARAMETERS; k++) {
            double *values = dvt_test_values(dvt_param_data(p, ctxs.ctx[k]));
            if (!CHECK(values != NULL))
                continue;
            if (k == 0)
                memcpy(all + at, values, sizeof(double) * (size_t)n);
            else
                CHECK(memcmp(all + at, values, sizeof(double) * (size_t)n) == 0);
            free(values);
        }
        at += n;
    }
    CHECK_INT(at, PARAMETERS);
    return all;
}

static outcome train(dvt_ctx_list ctxs) {
    outcome out;
    uint64_t state = 5;
    int step;
    DVT_SCOPE {
        dvt_block *net = lenet();
        dvt_params *params;
        dvt_trainer *trainer;
        dvt_array *x, *y;
        dvt_optimizer sgd = dvt_optimizer_sgd(0.05);
        sgd.momentum = 0.9;
        dvt_seed(3);
        /* Initialized on one context and copied, so that all start with the same bits. */
        must(dvt_block_initialize(net, dvt_init_xavier(), ctxs) == DVT_OK, "dvt_block_initialize");
        params = dvt_block_collect_params(net, NULL);
        trainer = dvt_trainer_new(params, sgd);
        for (step = 0; step < STEPS; step++) {
            batch(&state, &x, &y);
            out.losses[step] = train_batch(net, trainer, ctxs, x, y, BATCH) / BATCH;
        }
        out.weights = weights_of(params, ctxs);
    }
    return out;
}

static double apart(const outcome *a, const outcome *b) {
    double most = 0;
    int i;
    for (i = 0; i < PARAMETERS; i++)
        most = isnan(a->weights[i]) ? INFINITY : fmax(most, fabs(a->weights[i] - b->weights[i]));
    return most;
}

/* A step of training on a batch that is on the GPU. Kernels that split a sum start a second time,
   which this does not count: make bench-gpu-host shows 29 launches for 256 images. */
DVT_TEST(gpu_lenet_step_starts_few_kernels) {
    dvt_ctx_list ctxs = DVT_CONTEXTS(dvt_gpu(0));
    uint64_t state = 5;
    dvt_block *net = lenet();
    dvt_trainer *trainer;
    dvt_array *x, *y, *losses = NULL;
    dvt_stats before = dvt_get_stats(), after;
    int step;
    NEEDS_GPU;
    must(dvt_block_initialize(net, dvt_init_xavier(), ctxs) == DVT_OK, "dvt_block_initialize");
    trainer = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_adam(0.01));
    batch(&state, &x, &y);
    x = dvt_copyto(x, dvt_gpu(0));
    y = dvt_copyto(y, dvt_gpu(0));
    for (step = 0; step < 2; step++) { /* the second one makes no states */
        before = dvt_get_stats();
        DVT_RECORD {
            losses = dvt_loss_softmax_cross_entropy(dvt_block_forward(net, x), y);
        }
        CHECK_INT(dvt_backward(losses), DVT_OK);
        CHECK_INT(dvt_trainer_step(trainer, BATCH), DVT_OK);
    }
    after = dvt_get_stats();
    CHECK_INT(after.kernels - before.kernels, 26);
}

DVT_TEST(gpu_lenet_trains_as_on_the_cpu) {
    outcome cpu, one, two;
    int step;
    NEEDS_GPU;
    CHECK_INT(dvt_set_virtual_gpus(2, 0), DVT_OK);
    cpu = train(DVT_CONTEXTS(dvt_cpu()));
    one = train(DVT_CONTEXTS(dvt_gpu(0)));
    two = train(DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(1)));
    for (step = 0; step < STEPS; step++) {
        CHECK_CLOSE(one.losses[step], cpu.losses[step], 2e-5);
        CHECK_CLOSE(two.losses[step], cpu.losses[step], 2e-5);
    }
    CHECK(cpu.losses[STEPS - 1] < cpu.losses[0]);
    CHECK_CLOSE(apart(&one, &cpu), 0, 2e-5);
    CHECK_CLOSE(apart(&two, &cpu), 0, 2e-5);
    free(cpu.weights);
    free(one.weights);
    free(two.weights);
    dvt_set_virtual_gpus(0, 0);
}
