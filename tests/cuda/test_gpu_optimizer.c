/* Optimizer steps on a GPU: every kind and option gives the bits of cpu(). */
#include "on_gpu.h"
#if !defined(DEVTENSOR_NO_NN)

#define STEPS 3

/* y = x * weight: the gradient of the weight is x. */
static dvt_array *times_weight(dvt_block *self, void *user, dvt_array *x) {
    (void)user;
    return dvt_mul(x, dvt_block_data(self, "weight", dvt_ctx_of(x)));
}

static dvt_block *times(dvt_array *weight) {
    dvt_ctx_list here = DVT_CONTEXTS(dvt_ctx_of(weight));
    dvt_block_desc desc;
    dvt_block *block;
    memset(&desc, 0, sizeof desc);
    desc.kind = "Times";
    desc.forward = times_weight;
    block = dvt_block_new(&desc);
    dvt_block_add_param(block, "weight", dvt_shape_of(weight), dvt_dtype_of(weight),
                        dvt_init_zero());
    CHECK_INT(dvt_block_initialize(block, dvt_init_zero(), here), DVT_OK);
    CHECK_INT(dvt_param_set_data(dvt_block_param(block, "weight"), weight), DVT_OK);
    return block;
}

/* Returns the weight after some steps on its context; the gradients are the rows of `gradients`. */
static dvt_array *trained(dvt_optimizer optimizer, dvt_array *weight, dvt_array *gradients) {
    dvt_block *net = times(weight);
    dvt_trainer *trainer = dvt_trainer_new(dvt_block_collect_params(net, NULL), optimizer);
    dvt_array *y = NULL;
    int t;
    for (t = 0; t < STEPS; t++) {
        DVT_RECORD {
            y = dvt_block_forward(net, dvt_index(gradients, t));
        }
        CHECK_INT(dvt_backward(y), DVT_OK);
        CHECK_INT(dvt_trainer_step(trainer, 2), DVT_OK);
    }
    return dvt_block_data(net, "weight", dvt_ctx_of(weight));
}

static void same_steps(dvt_optimizer optimizer, int64_t n, dvt_dtype dtype, const char *what) {
    DVT_SCOPE {
        dvt_array *weight = random_on_cpu(DVT_SHAPE(n), dtype, -1, 1);
        dvt_array *gradients = random_on_cpu(DVT_SHAPE(STEPS, n), dtype, -3, 3);
        SAME_ON_GPU(
            trained(optimizer, dvt_copyto(weight, dvt_gpu(0)), dvt_copyto(gradients, dvt_gpu(0))),
            trained(optimizer, weight, gradients), 0, what);
    }
}

/* Tests every row of the table with and without decay and clipping. 1027 elements are a tail and
   more than one block. */
static void with_options(dvt_optimizer optimizer, const char *what) {
    same_steps(optimizer, 1027, DVT_F32, what);
    optimizer.weight_decay = 0.125;
    same_steps(optimizer, 37, DVT_F32, what);
    optimizer.clip_gradient = 0.5;
    same_steps(optimizer, 3, DVT_F32, what);
    same_steps(optimizer, 1, DVT_F32, what);
}

DVT_TEST(gpu_sgd) {
    dvt_optimizer optimizer = dvt_optimizer_sgd(0.1);
    NEEDS_GPU;
    with_options(optimizer, "sgd");
    optimizer.momentum = 0.9;
    with_options(optimizer, "sgd with momentum");
    optimizer.nesterov = true;
    with_options(optimizer, "sgd, Nesterov");
}

DVT_TEST(gpu_adam) {
    NEEDS_GPU;
    with_options(dvt_optimizer_adam(0.05), "adam");
    with_options(dvt_optimizer_adamw(0.05, 0.01), "adamw");
}

DVT_TEST(gpu_rmsprop) {
    dvt_optimizer optimizer = dvt_optimizer_rmsprop(0.05);
    NEEDS_GPU;
    with_options(optimizer, "rmsprop");
    optimizer.centered = true;
    with_options(optimizer, "rmsprop, centered");
    optimizer.momentum = 0.9;
    optimizer.epsilon = 1e-4;
    with_options(optimizer, "rmsprop, centered, with momentum");
}

DVT_TEST(gpu_adagrad) {
    NEEDS_GPU;
    with_options(dvt_optimizer_adagrad(0.1), "adagrad");
}

DVT_TEST(gpu_optimizer_of_every_dtype) {
    static const dvt_dtype dtypes[] = {DVT_F64, DVT_F16, DVT_BF16};
    int i;
    NEEDS_GPU;
    for (i = 0; i < 3; i++) {
        same_steps(dvt_optimizer_sgd(0.1), 269, dtypes[i], dvt_dtype_name(dtypes[i]));
        same_steps(dvt_optimizer_adam(0.1), 269, dtypes[i], dvt_dtype_name(dtypes[i]));
    }
}

/* ---- many parameters: one launch for those of one dtype, with the bits of one launch each ---- */
#define MANY 160 /* more than the arguments of one launch hold */

static dvt_array *sum_of_parameters(dvt_block *self, void *user, dvt_array *x) {
    dvt_array *sum = dvt_zeros(DVT_SHAPE(1), DVT_F64, dvt_ctx_of(x));
    char name[16];
    int i;
    (void)user;
    for (i = 0; i < MANY; i++) {
        dvt_array *p;
        snprintf(name, sizeof name, "p%d", i);
        p = dvt_as_in_dtype(dvt_block_data(self, name, dvt_ctx_of(x)), DVT_F64);
        sum = dvt_add(sum, dvt_sum(dvt_mul(dvt_square(p), x), DVT_ALL));
    }
    return sum;
}

/* Returns all parameters in float64, joined, after some steps. Sizes, dtypes and factors differ. */
static dvt_array *many_trained(dvt_optimizer optimizer, dvt_ctx ctx, int64_t *kernels) {
    static const int64_t sizes[] = {1, 3, 40, 256, 1030, 2, 4100, 17};
    dvt_ctx_list here = DVT_CONTEXTS(ctx);
    dvt_array *all[MANY], *x = dvt_full(DVT_SHAPE(1), 0.5, DVT_F64, ctx), *y = NULL;
    dvt_trainer *trainer;
    dvt_block_desc desc;
    dvt_block *block;
    dvt_stats before, after;
    char name[16];
    int i, t;
    memset(&desc, 0, sizeof desc);
    desc.kind = "Many";
    desc.forward = sum_of_parameters;
    block = dvt_block_new(&desc);
    dvt_seed(7);
    for (i = 0; i < MANY; i++) {
        dvt_param *p;
        snprintf(name, sizeof name, "p%d", i);
        p = dvt_block_add_param(block, name, DVT_SHAPE(sizes[i % 8]),
                                i % 20 == 6   ? DVT_F16
                                : i % 20 == 9 ? DVT_F64
                                              : DVT_F32,
                                dvt_init_uniform(1));
        CHECK_INT(dvt_param_set_lr_mult(p, i % 3 ? 1 : 0.5), DVT_OK);
        CHECK_INT(dvt_param_set_wd_mult(p, i % 7 ? 1 : 0), DVT_OK);
    }
    CHECK_INT(dvt_block_initialize(block, dvt_init_uniform(1), here), DVT_OK);
    trainer = dvt_trainer_new(dvt_block_collect_params(block, NULL), optimizer);
    for (t = 0; t < 2; t++) {
        DVT_RECORD {
            y = dvt_block_forward(block, x);
        }
        CHECK_INT(dvt_backward(y), DVT_OK);
        before = dvt_get_stats();
        CHECK_INT(dvt_trainer_step(trainer, 1), DVT_OK);
        after = dvt_get_stats();
        *kernels = after.kernels - before.kernels;
    }
    for (i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "p%d", i);
        all[i] = dvt_as_in_dtype(dvt_block_data(block, name, ctx), DVT_F64);
    }
    return dvt_concat(all, MANY, 0);
}

DVT_TEST(gpu_optimizer_updates_many_at_once) {
    dvt_optimizer optimizer[2];
    int64_t kernels;
    int i;
    NEEDS_GPU;
    optimizer[0] = dvt_optimizer_sgd(0.1);
    optimizer[1] = dvt_optimizer_adamw(0.05, 0.01);
    for (i = 0; i < 2; i++)
        DVT_SCOPE {
            dvt_array *want = many_trained(optimizer[i], dvt_cpu(), &kernels);
            CHECK_INT(kernels, MANY);
            SAME_ON_GPU(many_trained(optimizer[i], dvt_gpu(0), &kernels), want, 0,
                        "many parameters");
            CHECK_INT(kernels, 3); /* float32, float16, float64 */
        }
}

/* NaN and infinities affect only their own element; clipping bounds infinities and keeps NaN. */
DVT_TEST(gpu_optimizer_special_values) {
    dvt_optimizer clipped = dvt_optimizer_sgd(1);
    dvt_array *w, *g;
    NEEDS_GPU;
    clipped.clip_gradient = 2;
    w = dvt_ones(DVT_SHAPE(4), DVT_F32, dvt_cpu());
    g = dvt_zeros(DVT_SHAPE(STEPS, 4), DVT_F32, dvt_cpu());
    CHECK(dvt_copy_into(dvt_index(g, 0), DVT_ARRAY(float, DVT_SHAPE(4), dvt_cpu(), NAN, INFINITY,
                                                   -INFINITY, 1)) != NULL);
    SAME_ON_GPU(trained(dvt_optimizer_sgd(1), dvt_copyto(w, dvt_gpu(0)), dvt_copyto(g, dvt_gpu(0))),
                trained(dvt_optimizer_sgd(1), w, g), 0, "NaN and infinities");
    SAME_ON_GPU(trained(clipped, dvt_copyto(w, dvt_gpu(0)), dvt_copyto(g, dvt_gpu(0))),
                trained(clipped, w, g), 0, "NaN and infinities, clipped");
}

#endif
