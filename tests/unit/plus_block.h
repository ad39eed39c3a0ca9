/* The smallest trainable network, x + weight, and the lists of contexts on which trainers are
   tested. */
#ifndef DVT_PLUS_BLOCK_H
#define DVT_PLUS_BLOCK_H
#include "../dvt_test.h"
#if !defined(DEVTENSOR_NO_NN)

static dvt_array *plus_weight(dvt_block *self, void *user, dvt_array *x) {
    (void)user;
    return dvt_add(x, dvt_block_data(self, "weight", dvt_ctx_of(x)));
}

/* Returns the block y = x + weight, with a weight of one element that starts from `value`. */
static dvt_block *plus(double value) {
    dvt_block_desc desc;
    dvt_block *block;
    memset(&desc, 0, sizeof desc);
    desc.kind = "Plus";
    desc.forward = plus_weight;
    block = dvt_block_new(&desc);
    dvt_block_add_param(block, "weight", DVT_SHAPE(1), DVT_F32, dvt_init_constant(value));
    return block;
}

static double weight_on(dvt_block *net, dvt_ctx ctx) {
    return dvt_item(dvt_block_data(net, "weight", ctx));
}

/* Runs backward of `times` * (0 + weight) on ctx. */
static void back(dvt_block *net, dvt_ctx ctx, double times) {
    dvt_array *y = NULL;
    DVT_RECORD {
        y = dvt_mul_scalar(dvt_block_forward(net, dvt_zeros(DVT_SHAPE(1), DVT_F32, ctx)), times);
    }
    CHECK_INT(dvt_backward(y), DVT_OK);
}

/* Returns the lists of contexts that must all give the same results. */
static int context_lists(dvt_ctx_list *lists) {
    lists[0] = DVT_CONTEXTS(dvt_gpu(0), dvt_gpu(1));
    lists[1] = DVT_CONTEXTS(dvt_cpu(), dvt_cpu_id(1));
    lists[2] = DVT_CONTEXTS(dvt_cpu(), dvt_gpu(1));
    lists[3] = DVT_CONTEXTS(dvt_gpu(1), dvt_cpu_id(3));
    return 4;
}
#endif
#endif
