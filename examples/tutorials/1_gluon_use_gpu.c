/* "GPUs", MXNet Gluon (English), cell by cell. The document needs two GPUs; without them the
   program uses virtual ones. Some of its cells mix devices that the author took for one. They run
   as written, and then as meant. */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"
#include "show.h"

int main(void) {
    dvt_array *x, *y, *z;
    dvt_block *net;

    block("1", "!nvidia-smi");
    dvt_print_devices();
    need_gpus(2);

    block("2", "mx.cpu(), mx.gpu(), mx.gpu(1)");
    dvt_set_log_level(DVT_LOG_OFF);
    dvt_set_print_style(DVT_PRINT_MXNET);
    printf("(%s, %s, %s)\n", dvt_ctx_name(dvt_cpu()), dvt_ctx_name(dvt_gpu(0)),
           dvt_ctx_name(dvt_gpu(1)));

    block("3", "x = nd.array([1, 2, 3]); x");
    x = DVT_ARRAY(float, DVT_SHAPE(3), dvt_cpu(), 1, 2, 3);
    dvt_print(x);

    block("4", "x.context");
    puts(dvt_ctx_name(dvt_ctx_of(x)));

    block("5", "x = nd.ones((2, 3), ctx=mx.gpu()); x");
    x = dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_gpu(0));
    dvt_print(x);

    block("6", "y = nd.random.uniform(shape=(2, 3), ctx=mx.gpu(1)); y");
    y = dvt_uniform(0, 1, DVT_SHAPE(2, 3), DVT_F32, dvt_gpu(1));
    dvt_print(y);

    block("7", "z = x.copyto(mx.gpu(1)); y + z; print(x); print(z)");
    z = dvt_copyto(x, dvt_gpu(1));
    dvt_add(y, z);
    dvt_print(x);
    dvt_print(z);

    block("8", "z = x.as_in_context(mx.gpu()); z");
    z = dvt_as_in_ctx(x, dvt_gpu(0));
    dvt_print(z);

    block("9", "y.as_in_context(mx.gpu()) is y");
    puts(python_bool(dvt_as_in_ctx(y, dvt_gpu(0)) == y));
    printf("and on gpu(1), where y is: %s\n", python_bool(dvt_as_in_ctx(y, dvt_gpu(1)) == y));

    block("10", "y.copyto(mx.gpu()) is y");
    puts(python_bool(dvt_copyto(y, dvt_gpu(0)) == y));
    printf("and on gpu(1), where y is: %s\n", python_bool(dvt_copyto(y, dvt_gpu(1)) == y));

    block("11", "(z + 2).exp() * y");
    if (!dvt_mul(dvt_exp(dvt_add_scalar(z, 2)), y))
        show_error(); /* z is on gpu(0), y on gpu(1) */
    puts("and with z on gpu(1):");
    z = dvt_as_in_ctx(z, dvt_gpu(1));
    dvt_print(dvt_mul(dvt_exp(dvt_add_scalar(z, 2)), y));

    block("11 text", "an array on the CPU with one on the GPU: an error");
    x = DVT_ARRAY(float, DVT_SHAPE(3), dvt_cpu(), 1, 2, 3);
    dvt_add(x, y);
    show_error();

    block("12", "net = nn.Sequential(); net.add(nn.Dense(1)); net.initialize(ctx=mx.gpu())");
    net = dvt_nn_sequential();
    DVT_NN_ADD(net, dvt_nn_dense(1, DVT_IDENTITY));
    dvt_block_initialize(net, dvt_init_uniform(0.07), DVT_CONTEXTS(dvt_gpu(0)));

    block("13", "net(y)");
    if (!dvt_block_forward(net, y))
        show_error(); /* net is on gpu(0), y on gpu(1) */
    puts("and with y on gpu(0):");
    y = dvt_as_in_ctx(y, dvt_gpu(0));
    dvt_print(dvt_block_forward(net, y));

    block("14", "net[0].weight.data()");
    dvt_print(dvt_block_data(dvt_block_at(net, 0), "weight", dvt_gpu(0)));

    block("exercise 1", "large and small tasks on CPU and GPU");
    exercise_large_and_small(dvt_gpu(0));

    block("exercise 2", "reading and writing parameters on the GPU");
    {
        dvt_block *same = dvt_nn_sequential();
        DVT_NN_ADD(same, dvt_nn_dense(1, DVT_IDENTITY));
        exercise_parameters(net, same, dvt_gpu(0), "tutorial1.params");
    }
    return finish();
}
