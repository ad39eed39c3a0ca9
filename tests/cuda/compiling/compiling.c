/* While one thread waits for the compiler, others use the same GPU: they allocate, copy and release
   memory, and wait. Prints "ok". */
#include "common.h"
#include <pthread.h>

static void *compute(void *user) {
    DVT_SCOPE {
        dvt_array *x = (dvt_array *)user;
        require(dvt_exp(x) == NULL && strstr(dvt_error(), "NVRTC_ERROR_COMPILATION") != NULL,
                "the failing compilation");
        dvt_clear_error();
    }
    return NULL;
}

int main(void) {
    void *nvrtc = dlopen(getenv("DEVTENSOR_NVRTC_PATH"), RTLD_NOW | RTLD_LOCAL);
    float numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    dvt_array *x = dvt_empty(DVT_SHAPE(8), DVT_F32, dvt_gpu(0)), *y;
    pthread_t thread;
    int i;
    require(nvrtc != NULL, "the double of NVRTC");
    require(x != NULL, "dvt_empty");
    dvt_set_log_level(DVT_LOG_OFF);
    require(pthread_create(&thread, NULL, compute, x) == 0, "pthread_create");
    named(nvrtc, "waiting_nvrtc_begun")();
    for (i = 0; i < 3; i++)
        DVT_SCOPE {
            y = dvt_from_host(numbers, DVT_SHAPE(8), DVT_F32, dvt_gpu(0));
            require(y && dvt_to_host(y, numbers, sizeof numbers) == DVT_OK, "copies");
            require(dvt_wait(y) == DVT_OK, "dvt_wait");
        }
    named(nvrtc, "waiting_nvrtc_end")();
    require(pthread_join(thread, NULL) == 0, "pthread_join");
    puts("ok");
    return 0;
}
