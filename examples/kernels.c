/* Own kernels: CUDA source for a GPU, C functions that stand in for it elsewhere, an expression,
   and the time that they take. */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"
#include <math.h>
#include <stdio.h>

/* Counts how often each color of an image occurs. One block counts in shared memory. */
static const char source[] =
    "extern \"C\" __global__ void count(const unsigned char *color, int *counts, int n)\n"
    "{\n"
    "    __shared__ int part[256];\n"
    "    part[threadIdx.x] = 0;\n"
    "    __syncthreads();\n"
    "    for (int i = threadIdx.x; i < n; i += 256)\n"
    "        atomicAdd(&part[color[i]], 1);\n"
    "    __syncthreads();\n"
    "    counts[threadIdx.x] = part[threadIdx.x];\n"
    "}\n";

static void count_on_host(void *user, const dvt_kernel_call *call) {
    const unsigned char *color = (const unsigned char *)call->arg[0].data;
    int32_t *counts = (int32_t *)call->arg[1].data;
    int64_t i;
    (void)user;
    for (i = 0; i < 256; i++)
        counts[i] = 0;
    for (i = 0; i < call->arg[2].i; i++)
        counts[color[i]]++;
}

static double swish(void *user, const double *value) {
    (void)user;
    return value[0] / (1 + exp(-value[1] * value[0]));
}

int main(void) {
    const dvt_ctx dev = dvt_try_gpu(0);
    const int64_t n = 100000;
    dvt_array *x = dvt_normal(0, 1, DVT_SHAPE(n), DVT_F32, dev);
    dvt_array *color = dvt_randint(0, 8, DVT_SHAPE(n), DVT_U8, dev);
    dvt_array *counts = dvt_empty(DVT_SHAPE(256), DVT_I32, dev), *y;
    dvt_kernel *count = dvt_kernel_new(source, "count");
    dvt_kernel *activation = dvt_kernel_expression("x, beta", "x / (1 + exp(-beta * x))");
    dvt_event *begin, *end;
    dvt_kernel_set_host(count, count_on_host, NULL);
    dvt_kernel_set_element(activation, swish, NULL);

    dvt_range_push("kernels"); /* a profiler shows it */
    begin = dvt_event_record(dev);
    dvt_kernel_launch(count, DVT_SHAPE(1), DVT_SHAPE(256), 0,
                      DVT_ARGS(DVT_IN(color), DVT_OUT(counts), DVT_INT32(n)));
    y = dvt_kernel_apply(activation, DVT_ARGS(DVT_IN(x), DVT_DOUBLE(1)));
    end = dvt_event_record(dev);
    dvt_range_pop();

    dvt_print(dvt_rows(counts, 0, 8));
    printf("counted %lld of %lld\n", (long long)dvt_item_int(dvt_sum(counts, DVT_ALL)),
           (long long)n);
    printf("largest difference from dvt_silu: %.1g\n",
           dvt_item(dvt_max(dvt_abs(dvt_sub(y, dvt_silu(x))), DVT_ALL)));
    printf("%.3f ms on %s\n", dvt_event_elapsed(begin, end), dvt_ctx_name(dev));
    if (dvt_error_code() != DVT_OK)
        fprintf(stderr, "%s\n", dvt_error());
    return dvt_error_code() != DVT_OK;
}
