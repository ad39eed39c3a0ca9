/* Work that a kernel does with its result: bias, relu and relu's mask after products, relu after
   convolutions, the loss with the logarithms of softmax. Each gives the bits of the operations that
   it replaces, on the same GPU. */
#include "on_gpu.h"

static void same_bits(dvt_array *got, dvt_array *want, const char *what) {
    same_on_gpu(dvt_copyto(got, dvt_gpu(0)), dvt_copyto(want, dvt_cpu()), 0, 0, what, __FILE__,
                __LINE__);
}

static dvt_array *on_gpu(dvt_shape shape, dvt_dtype dtype) {
    return dvt_copyto(random_on_cpu(shape, dtype, -1, 1), dvt_gpu(0));
}

/* ---- products: rows, units and depth reach every kernel, with and without splits ---- */
typedef struct product {
    int64_t rows, depth, units;
    const char *what;
} product;

static const product products[] = {
    {5, 7, 3, "a small tile"},       {70, 33, 65, "ragged tiles"}, {64, 64, 64, "aligned tiles"},
    {130, 24, 136, "several tiles"}, {1, 40, 9, "a row"},          {9, 40, 1, "a column"},
    {1, 1500, 1, "one element"},     {8, 1200, 16, "split depth"}, {1, 9000, 2, "a long row"},
};

static void check_product(const product *p, dvt_dtype dtype) {
    dvt_array *x = on_gpu(DVT_SHAPE(p->rows, p->depth), dtype);
    dvt_array *w = on_gpu(DVT_SHAPE(p->units, p->depth), dtype);
    dvt_array *bias = on_gpu(DVT_SHAPE(p->units), dtype), *plain, *dense, *gradient = NULL;
    dvt_stats before, after;
    plain = dvt_matmul(x, dvt_transpose(w, DVT_AXES(1, 0)));
    dvt_wait(plain);
    before = dvt_get_stats();
    dense = dvt_linear(x, w, bias);
    after = dvt_get_stats();
    CHECK_INT(after.kernels - before.kernels, 1);
    same_bits(dense, dvt_add(plain, bias), p->what);
    /* the mask, by the gradient of a product of relu's result */
    CHECK_INT(dvt_attach_grad(x, DVT_GRAD_WRITE), DVT_OK);
    DVT_RECORD {
        dense = dvt_linear(dvt_relu(x), w, NULL);
    }
    gradient = on_gpu(DVT_SHAPE(p->rows, p->units), dtype);
    before = dvt_get_stats();
    CHECK_INT(dvt_backward_from(&dense, &gradient, 1, DVT_FREE_GRAPH), DVT_OK);
    after = dvt_get_stats();
    CHECK_INT(after.kernels - before.kernels, 1);
    same_bits(dvt_grad(x), dvt_where_scalar(dvt_relu(x), dvt_matmul(gradient, w), 0), p->what);
}

DVT_TEST(gpu_epilogue_of_products) {
    static const dvt_dtype dtypes[] = {DVT_F32, DVT_F16, DVT_BF16, DVT_F64};
    size_t i;
    int d, used = IN_FULL ? 4 : 2;
    NEEDS_GPU;
    for (i = 0; i < sizeof products / sizeof products[0]; i++)
        for (d = 0; d < used && (d == 0 || EACH(i, 2)); d++)
            DVT_SCOPE {
                check_product(&products[i], dtypes[d]);
            }
}

#if !defined(DEVTENSOR_NO_NN)
/* A dense layer with relu, whose zeros and NaN are those of relu. */
DVT_TEST(gpu_epilogue_of_layers) {
    dvt_ctx_list here = DVT_CONTEXTS(dvt_gpu(0));
    dvt_array *x, *y, *w, *b;
    dvt_block *layer;
    dvt_stats before, after;
    NEEDS_GPU;
    layer = dvt_nn_dense(20, DVT_RELU);
    CHECK_INT(dvt_block_initialize(layer, dvt_init_xavier(), here), DVT_OK);
    x = on_gpu(DVT_SHAPE(12, 30), DVT_F32);
    CHECK(dvt_fill(dvt_index(x, 3), (double)NAN) != NULL);
    y = dvt_block_forward(layer, x);
    before = dvt_get_stats();
    y = dvt_block_forward(layer, x);
    after = dvt_get_stats();
    CHECK_INT(after.kernels - before.kernels, 1);
    w = dvt_block_data(layer, "weight", dvt_gpu(0));
    b = dvt_block_data(layer, "bias", dvt_gpu(0));
    same_bits(y, dvt_relu(dvt_linear(x, w, b)), "dense");
    layer = dvt_nn_conv2d(6, 3, DVT_RELU);
    CHECK_INT(dvt_block_initialize(layer, dvt_init_xavier(), here), DVT_OK);
    x = on_gpu(DVT_SHAPE(2, 3, 9, 8), DVT_F32);
    y = dvt_block_forward(layer, x);
    before = dvt_get_stats();
    y = dvt_block_forward(layer, x);
    after = dvt_get_stats();
    CHECK_INT(after.kernels - before.kernels, 1);
    w = dvt_block_data(layer, "weight", dvt_gpu(0));
    b = dvt_block_data(layer, "bias", dvt_gpu(0));
    same_bits(y, dvt_relu(dvt_conv2d(x, w, b, NULL)), "convolution");
}

/* ---- the loss ---- */
static void check_loss(int64_t rows, int64_t n, dvt_dtype dtype, dvt_dtype labels) {
    dvt_array *x = on_gpu(DVT_SHAPE(rows, n), dtype), *label, *fused = NULL, *apart = NULL;
    dvt_array *second = dvt_copy(x), *weight = on_gpu(DVT_SHAPE(rows), dtype);
    dvt_stats before, after;
    label = dvt_copyto(dvt_astype(random_on_cpu(DVT_SHAPE(rows), DVT_F64, 0, (double)n), labels),
                       dvt_gpu(0));
    CHECK_INT(dvt_attach_grad(x, DVT_GRAD_WRITE), DVT_OK);
    CHECK_INT(dvt_attach_grad(second, DVT_GRAD_WRITE), DVT_OK);
    DVT_RECORD {
        before = dvt_get_stats();
        fused = dvt_loss_softmax_cross_entropy(x, label);
        after = dvt_get_stats();
        apart = dvt_neg(dvt_pick(dvt_log_softmax(second, -1), label, DVT_AXES(-1)));
    }
    CHECK_INT(after.kernels - before.kernels, 1);
    same_bits(fused, apart, "the loss");
    before = dvt_get_stats();
    CHECK_INT(dvt_backward_from(&fused, NULL, 1, DVT_RETAIN_GRAPH), DVT_OK);
    after = dvt_get_stats();
    CHECK_INT(after.kernels - before.kernels, 1);
    CHECK_INT(dvt_backward_from(&apart, NULL, 1, DVT_RETAIN_GRAPH), DVT_OK);
    same_bits(dvt_grad(x), dvt_grad(second), "its gradient");
    CHECK_INT(dvt_backward_from(&fused, &weight, 1, DVT_FREE_GRAPH), DVT_OK);
    CHECK_INT(dvt_backward_from(&apart, &weight, 1, DVT_FREE_GRAPH), DVT_OK);
    same_bits(dvt_grad(x), dvt_grad(second), "its gradient from a gradient");
}

DVT_TEST(gpu_cross_entropy_is_its_parts) {
    static const int64_t lengths[] = {1, 3, 10, 100, 257, 1000, 16700};
    int i;
    NEEDS_GPU;
    for (i = 0; i < 7; i++)
        DVT_SCOPE {
            check_loss(lengths[i] > 1000 ? 2 : 9, lengths[i], DVT_F32, DVT_I32);
        }
    check_loss(5, 12, DVT_F64, DVT_I64);
    check_loss(6, 200, DVT_F32, DVT_U8);
}
#endif
