/* For drivers.sh: prints the driver's state as a program sees it. One line per fact; warnings are
   counted. */
#include "devtensor_under_test.h"
#include <stdio.h>
#include <string.h>

static int warnings;

static void count(void *user, dvt_log_level level, const char *message) {
    (void)user;
    if (level == DVT_LOG_WARNING) {
        warnings++;
        printf("warning: %s\n", message);
    }
}

/* Prints the sum, which is 6 when the context computes. */
static void sum_on(const char *what, dvt_ctx ctx) {
    DVT_SCOPE {
        const float values[] = {1, 2, 3};
        dvt_array *x = dvt_from_host(values, DVT_SHAPE(3), DVT_F32, ctx);
        double sum = dvt_item(dvt_sum(dvt_add_scalar(dvt_sub_scalar(x, 1), 1), DVT_ALL));
        if (dvt_error_code() == DVT_OK)
            printf("%s %s gives %g\n", what, dvt_ctx_name(ctx), sum);
        else
            printf("%s %s: %s: %s\n", what, dvt_ctx_name(ctx), dvt_status_name(dvt_error_code()),
                   dvt_error());
        dvt_clear_error();
    }
}

/* Copies three times through all contexts; large enough for every copy path. */
static void copy_around(int n) {
    const int64_t size = 300000;
    int round, i;
    for (round = 0; round < 3; round++)
        DVT_SCOPE {
            dvt_array *first = dvt_arange(0, (double)size, 1, DVT_F32, dvt_cpu()), *x = first;
            for (i = 0; i <= n; i++)
                x = dvt_copyto(x, i < n ? dvt_gpu(i) : dvt_gpu(0));
            x = dvt_copyto(x, dvt_cpu());
            printf("around: %s\n", !x ? dvt_error()
                                   : memcmp(dvt_data(x), dvt_data(first), (size_t)size * 4) == 0
                                       ? "the same"
                                       : "different");
            dvt_clear_error();
        }
}

int main(void) {
    int n, i;
    dvt_set_logger(count, NULL);
    n = dvt_num_gpus();
    printf("%d gpus\nreason: %s\n", n, dvt_gpu_reason());
    sum_on("the sum on", dvt_cpu());
    sum_on("the sum on", dvt_try_gpu(0));
    for (i = 0; i < n; i++)
        sum_on("the sum on", dvt_gpu(i));
    if (n == 0)
        sum_on("asked for", dvt_gpu(0));
    else
        copy_around(n);
    printf("compiled %d, from disk %d\n%d warnings\n", (int)dvt_get_jit_stats().compiled,
           (int)dvt_get_jit_stats().from_disk, warnings);
    return 0;
}
