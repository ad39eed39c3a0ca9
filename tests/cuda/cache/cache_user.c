/* For cache.sh: runs one kernel on gpu(0), checks its result, and prints where the kernel came
   from. With OWN it is a kernel of the program, which computes that number; with OWN=7,7.0 there is
   one for each number. */
#include "devtensor_under_test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dvt_array *own(const char *number) {
    char source[200];
    dvt_array *x = dvt_empty(DVT_SHAPE(3), DVT_F32, dvt_gpu(0));
    snprintf(source, sizeof source,
             "extern \"C\" __global__ void set(float *x) { x[threadIdx.x] = %.20s; }", number);
    return dvt_kernel_launch(dvt_kernel_new(source, "set"), DVT_SHAPE(1), DVT_SHAPE(3), 0,
                             DVT_ARGS(DVT_OUT(x))) == DVT_OK
               ? x
               : NULL;
}

int main(void) {
    char *number = getenv("OWN");
    dvt_array *x = number ? NULL : dvt_full(DVT_SHAPE(3), 7, DVT_F32, dvt_gpu(0));
    dvt_jit_stats stats;
    double value;
    for (number = number ? strtok(number, ",") : NULL; number; number = strtok(NULL, ","))
        x = own(number);
    value = x ? dvt_item_at(x, DVT_SHAPE(2)) : 0;
    stats = dvt_get_jit_stats();
    if (value != 7) {
        printf("failed: %s\n", dvt_error());
        return 1;
    }
    printf("compiled %d, from disk %d\n", (int)stats.compiled, (int)stats.from_disk);
    return 0;
}
