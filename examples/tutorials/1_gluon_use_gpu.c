/* "GPUs", MXNet Gluon (English), block by block. The document needs two GPUs: run it with DEVTENSOR_VIRTUAL_GPUS=2, or without any
   GPU on stand-ins (see gpu_or_stand_in). */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"
#include "show.h"

int main(void) {
    dvt_ctx gpu0 = gpu_or_stand_in(0), gpu1 = gpu_or_stand_in(1);
    dvt_array *x, *y, *z, *data;
    dvt_block *net;
    char table[4096];

    block("1", "nvidia-smi: the devices");
    printf("~ %d characters\n", (int)dvt_devices_format(table, sizeof table));
    fputs(strstr(table, "no GPU") ? "no GPU\n" : "GPUs are listed\n", stdout);

    block("2", "mx.cpu(), mx.gpu(), mx.gpu(1)");
    show_contexts(DVT_CONTEXTS(dvt_cpu(), dvt_gpu(0), dvt_gpu(1)));

    block("3", "x = nd.array([1, 2, 3])");
    x = DVT_ARRAY1(dvt_cpu(), float, 3, {1, 2, 3});
    dvt_print(x);

    block("4", "x.context");
    puts(dvt_ctx_name(dvt_ctx_of(x)));

    block("5", "x = nd.ones((2, 3), ctx=mx.gpu())");
    x = dvt_ones(DVT_SHAPE(2, 3), DVT_F32, gpu0);
    dvt_print(x);

    block("6", "y = nd.random.uniform(shape=(2, 3), ctx=mx.gpu(1))");
    y = dvt_uniform(0, 1, DVT_SHAPE(2, 3), DVT_F32, gpu1);
    dvt_print(y);

    block("7", "z = x.copyto(mx.gpu(1)); y + z; print(x); print(z)");
    z = dvt_copyto(x, gpu1);
    dvt_print(dvt_add(y, z));
    dvt_print(x);
    dvt_print(z);

    block("8", "z = x.as_in_context(mx.gpu())");
    z = dvt_as_in_ctx(x, gpu0);
    dvt_print(z);

    block("9", "y.as_in_context(mx.gpu()) is y, where y is there already");
    printf("%s\n", truth(dvt_as_in_ctx(y, gpu1) == y));

    block("10", "y.copyto(mx.gpu()) is y");
    printf("%s\n", truth(dvt_copyto(y, gpu1) == y));

    block("11", "(z + 2).exp() * y, after bringing z to y");
    z = dvt_as_in_ctx(z, gpu1);
    dvt_print(dvt_mul(dvt_exp(dvt_add_scalar(z, 2)), y));

    block("12", "an array on the CPU with one on the GPU: an error");
    dvt_set_log_level(DVT_LOG_OFF);
    dvt_add(dvt_ones(DVT_SHAPE(2, 3), DVT_F32, dvt_cpu()), y);
    show_error();

    block("13", "net = nn.Sequential(); net.add(nn.Dense(1)); net.initialize(ctx=mx.gpu())");
    net = dvt_sequential();
    DVT_ADD(net, dvt_dense(1, DVT_LINEAR));
    dvt_initialize(net, dvt_init_uniform(0.07), DVT_CONTEXTS(gpu1), false);

    block("14", "net(y)");
    data = dvt_forward(net, y);
    printf("shape %lldx%lld on %s\n", (long long)dvt_dim(data, 0), (long long)dvt_dim(data, 1),
           dvt_ctx_name(dvt_ctx_of(data)));

    block("15", "net[0].weight.data()");
    data = dvt_block_data(dvt_block_at(net, 0), "weight", gpu1);
    printf("shape %lldx%lld on %s\n", (long long)dvt_dim(data, 0), (long long)dvt_dim(data, 1),
           dvt_ctx_name(dvt_ctx_of(data)));

    block("exercise 1", "large and small tasks on CPU and GPU");
    exercise_large_and_small(gpu0);

    block("exercise 2", "reading and writing parameters on the GPU");
    {
        dvt_block *same = dvt_sequential();
        DVT_ADD(same, dvt_dense(1, DVT_LINEAR));
        exercise_parameters(net, same, gpu1, "tutorial1.params");
    }
    return finish();
}
