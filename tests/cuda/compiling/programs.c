/* Counts the programs that the first step of LeNet compiles with nothing cached: 256 images of the
   host, SGD, and the loss, on 132 multiprocessors of compute capability 9.0. Prints "ok". */
#include "../../../examples/lenet.h"
#include <dlfcn.h>

enum { BATCH = 256, MOST_PROGRAMS = 12 };

/* Lets the double of NVRTC compile at once. */
static void never_wait(void) {
    void *nvrtc = dlopen(getenv("DEVTENSOR_NVRTC_PATH"), RTLD_NOW | RTLD_LOCAL);
    void *symbol = nvrtc ? dlsym(nvrtc, "waiting_nvrtc_never") : NULL;
    void (*never)(void);
    must(symbol != NULL, "the double of NVRTC");
    memcpy(&never, &symbol, sizeof never);
    never();
}

int main(void) {
    int programs;
    never_wait();
    DVT_SCOPE {
        dvt_ctx_list gpu = DVT_CONTEXTS(dvt_gpu(0));
        dvt_block *net = lenet();
        dvt_trainer *trainer;
        dvt_array *x = dvt_ones(DVT_SHAPE(BATCH, 1, 28, 28), DVT_F32, dvt_cpu());
        dvt_array *y = dvt_zeros(DVT_SHAPE(BATCH), DVT_I32, dvt_cpu());
        must(dvt_block_initialize(net, dvt_init_xavier(), gpu) == DVT_OK, "dvt_block_initialize");
        trainer = dvt_trainer_new(dvt_block_collect_params(net, NULL), dvt_optimizer_sgd(0.1));
        train_batch(net, trainer, gpu, x, y, BATCH);
    }
    programs = (int)dvt_get_jit_stats().compiled;
    if (programs < 2 || programs > MOST_PROGRAMS) {
        printf("%d programs, expected at most %d; DEVTENSOR_JIT_DUMP=directory shows them\n",
               programs, MOST_PROGRAMS);
        return 1;
    }
    puts("ok");
    return 0;
}
