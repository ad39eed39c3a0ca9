/* "使用GPU来计算", the Chinese MXNet Gluon notebook with its printed outputs, cell by cell. With MXNet's
   random engine the numbers on gpu(0) are those of the notebook. Without two GPUs the program uses
   virtual ones. */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"
#include "show.h"

int main(void) {
    dvt_array *x, *y, *z, *yy, *zz, *data, *list[3];
    dvt_block *net;

    dvt_set_log_level(DVT_LOG_OFF);
    dvt_set_rng_engine(DVT_RNG_MXNET);
    dvt_set_print_style(DVT_PRINT_MXNET);

    block("1", "!nvidia-smi");
    dvt_print_devices(); /* also prints why there is no GPU, as in the notebook */
    need_gpus(2);

    block("2", "pip.main(['show', pkg]): which package is installed");
    printf("Name: devtensor\nVersion: %s\n", dvt_version());

    block("3", "[mx.cpu(), mx.gpu(), mx.gpu(1)]");
    show_devices(DVT_CONTEXTS(dvt_cpu(), dvt_gpu(0), dvt_gpu(1)), DVT_PRINT_MXNET, "\n");

    block("4", "x = nd.array([1,2,3]); x.context");
    x = DVT_ARRAY(float, DVT_SHAPE(3), dvt_cpu(), 1, 2, 3);
    puts(dvt_ctx_name(dvt_ctx_of(x)));

    block("5", "a = nd.array([1,2,3], ctx=mx.gpu()); b = nd.zeros; c = nd.random.uniform; (a,b,c)");
    list[0] = DVT_ARRAY(float, DVT_SHAPE(3), dvt_gpu(0), 1, 2, 3);
    list[1] = dvt_zeros(DVT_SHAPE(3, 2), DVT_F32, dvt_gpu(0));
    list[2] = dvt_uniform(0, 1, DVT_SHAPE(2, 3), DVT_F32, dvt_gpu(0));
    show_tuple(list, 3);

    block("6", "nd.array([1,2,3], ctx=mx.gpu(10)): an error, caught and written");
    if (!DVT_ARRAY(float, DVT_SHAPE(3), dvt_gpu(10), 1, 2, 3)) {
        puts(dvt_error());
        dvt_clear_error();
    }

    block("8", "y = x.copyto(mx.gpu()); z = x.as_in_context(mx.gpu())");
    y = dvt_copyto(x, dvt_gpu(0));
    z = dvt_as_in_ctx(x, dvt_gpu(0));
    list[0] = y;
    list[1] = z;
    show_tuple(list, 2);

    block("9", "(yy is y, zz is z)");
    yy = dvt_as_in_ctx(y, dvt_gpu(0));
    zz = dvt_copyto(z, dvt_gpu(0));
    printf("(%s, %s)\n", python_bool(yy == y), python_bool(zz == z));

    block("10", "nd.exp(z + 2) * y");
    puts("");
    dvt_print(dvt_mul(dvt_exp(dvt_add_scalar(z, 2)), y));

    block("12", "x + y on two contexts: an error, caught and written");
    if (!dvt_add(x, y)) {
        puts(dvt_error());
        dvt_clear_error();
    }

    block("11", "print(y); print(y.asnumpy()); print(y.sum().asscalar())");
    dvt_print(y);
    show(y, DVT_PRINT_STR);
    printf("%.1f\n", dvt_item(dvt_sum(y, DVT_ALL)));

    block("12b",
          "net = gluon.nn.Sequential(); net.add(gluon.nn.Dense(1)); net.initialize(ctx=mx.gpu())");
    net = dvt_nn_sequential();
    DVT_NN_ADD(net, dvt_nn_dense(1, DVT_IDENTITY));
    dvt_block_initialize(net, dvt_init_uniform(0.07), DVT_CONTEXTS(dvt_gpu(0)));

    block("13", "data = nd.random.uniform(shape=[3,2], ctx=mx.gpu()); net(data)");
    data = dvt_uniform(0, 1, DVT_SHAPE(3, 2), DVT_F32, dvt_gpu(0));
    dvt_print(dvt_block_forward(net, data));

    block("14", "net[0].weight.data()");
    dvt_print(dvt_block_data(dvt_block_at(net, 0), "weight", dvt_gpu(0)));

    block("exercise 1", "large and small products on CPU and GPU");
    exercise_large_and_small(dvt_gpu(0));
    block("exercise 2", "the speed of copies between CPU and GPU");
    exercise_transfer(dvt_gpu(0));
    block("exercise 3", "reading and writing a model on the GPU");
    {
        dvt_block *same = dvt_nn_sequential();
        DVT_NN_ADD(same, dvt_nn_dense(1, DVT_IDENTITY));
        exercise_parameters(net, same, dvt_gpu(0), "tutorial2.params");
    }
    return finish();
}
