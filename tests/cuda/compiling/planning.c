/* While one thread's kernel is compiled by an NVRTC 11, another thread multiplies on the same GPU.
   A cache has the product's program, so neither its plan nor its launch may wait: the compilation
   ends only after the product. Prints "ok". */
#include "common.h"
#include "product.h"
#include <pthread.h>

static void *compute(void *user) {
    return dvt_retain(dvt_neg((dvt_array *)user));
}

int main(void) {
    void *nvrtc = dlopen(getenv("DEVTENSOR_NVRTC_PATH"), RTLD_NOW | RTLD_LOCAL), *result = NULL;
    float number = 0;
    dvt_array *x;
    pthread_t thread;
    require(nvrtc != NULL, "the double of NVRTC");
    x = dvt_retain(dvt_from_host(&(float){3}, DVT_SHAPE(1), DVT_F32, dvt_gpu(0)));
    require(x != NULL, "dvt_from_host");
    named(nvrtc, "pausing_nvrtc_start")();
    require(pthread_create(&thread, NULL, compute, x) == 0, "pthread_create");
    named(nvrtc, "pausing_nvrtc_begun")();
    require(multiply() && multiply(), "a product during the compilation");
    require(dvt_get_jit_stats().compiled == 0, "the product's program was compiled");
    named(nvrtc, "pausing_nvrtc_end")();
    require(pthread_join(thread, &result) == 0 && result, "pthread_join");
    require(dvt_to_host((dvt_array *)result, &number, sizeof number) == DVT_OK && number == -3,
            "the compiled kernel");
    dvt_release((dvt_array *)result);
    dvt_release(x);
    puts("ok");
    return 0;
}
