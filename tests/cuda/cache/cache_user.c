/* For cache.sh: runs one kernel on gpu(0), checks its result, and prints where the kernel came
   from. */
#include "devtensor_under_test.h"
#include <stdio.h>

int main(void) {
    dvt_array *x = dvt_full(DVT_SHAPE(3), 7, DVT_F32, dvt_gpu(0));
    dvt_jit_stats stats;
    double value = x ? dvt_item_at(x, DVT_SHAPE(2)) : 0;
    stats = dvt_get_jit_stats();
    if (value != 7) {
        printf("failed: %s\n", dvt_error());
        return 1;
    }
    printf("compiled %d, from disk %d\n", (int)stats.compiled, (int)stats.from_disk);
    return 0;
}
