/* dvt_prewarm on a GPU: its programs are not compiled again, and it has no other visible effect. */
#include "on_gpu.h"
#if !defined(DEVTENSOR_NO_NN)

#define OTHERS 3 /* further programs that a network may need: the tile sizes depend on the GPU */

DVT_TEST(gpu_prewarm_leaves_no_trace) {
    dvt_memory_stats before, after;
    dvt_array *x, *y;
    NEEDS_GPU;
    dvt_seed(5);
    x = dvt_copyto(dvt_uniform(0, 1, DVT_SHAPE(9), DVT_F32, dvt_gpu(0)), dvt_cpu());
    dvt_seed(5);
    CHECK_INT(dvt_memory_query(dvt_gpu(0), &before), DVT_OK);
    DVT_RECORD {
        CHECK_INT(dvt_prewarm(dvt_gpu(0)), DVT_OK);
        CHECK(dvt_is_recording() && dvt_is_training());
    }
    CHECK_INT(dvt_memory_query(dvt_gpu(0), &after), DVT_OK);
    CHECK_INT(after.used, before.used);
    CHECK_INT(dvt_error_code(), DVT_OK);
    y = dvt_uniform(0, 1, DVT_SHAPE(9), DVT_F32, dvt_gpu(0));
    SAME_ON_GPU(y, x, 0, "the numbers after it");
}

DVT_TEST(gpu_prewarm_once) {
    dvt_jit_stats first, second;
    NEEDS_GPU;
    CHECK_INT(dvt_prewarm(dvt_gpu(0)), DVT_OK);
    first = dvt_get_jit_stats();
    CHECK_INT(dvt_prewarm(dvt_gpu(0)), DVT_OK);
    second = dvt_get_jit_stats();
    CHECK(first.loaded > 50);
    CHECK_INT(second.loaded, first.loaded);
    CHECK_INT(second.compiled, first.compiled);
    CHECK_INT(second.from_disk, first.from_disk);
}

static dvt_block *lenet(void) {
    dvt_block *net = dvt_nn_sequential();
    DVT_NN_ADD(net, dvt_nn_conv2d(6, 5, DVT_RELU), dvt_nn_max_pool2d(2, 2),
               dvt_nn_conv2d(16, 3, DVT_SIGMOID), dvt_nn_avg_pool2d(2, 2),
               dvt_nn_dense(120, DVT_RELU), dvt_nn_dense(84, DVT_TANH),
               dvt_nn_dense(10, DVT_IDENTITY));
    return net;
}

static void one_step(dvt_block *net, dvt_optimizer optimizer) {
    dvt_array *x = dvt_ones(DVT_SHAPE(8, 1, 28, 28), DVT_F32, dvt_gpu(0));
    dvt_array *labels = dvt_zeros(DVT_SHAPE(8), DVT_I64, dvt_gpu(0)), *loss = NULL;
    CHECK_INT(dvt_block_reinitialize(net, dvt_init_xavier(), DVT_CONTEXTS(dvt_gpu(0))), DVT_OK);
    DVT_RECORD {
        loss = dvt_loss_softmax_cross_entropy(dvt_block_forward(net, x), labels);
    }
    CHECK_INT(dvt_backward(loss), DVT_OK);
    CHECK_INT(dvt_trainer_step(dvt_trainer_new(dvt_block_collect_params(net, NULL), optimizer), 8),
              DVT_OK);
    CHECK(dvt_item(dvt_mean(loss, DVT_ALL)) > 0);
}

/* Loaded, whether compiled now or by an earlier process. */
DVT_TEST(gpu_prewarm_before_lenet) {
    int64_t before;
    NEEDS_GPU;
    CHECK_INT(dvt_prewarm(dvt_gpu(0)), DVT_OK);
    before = dvt_get_jit_stats().loaded;
    one_step(lenet(), dvt_optimizer_sgd(0.1));
    one_step(lenet(), dvt_optimizer_adam(0.1));
    CHECK(dvt_get_jit_stats().loaded <= before + OTHERS);
}
#endif
