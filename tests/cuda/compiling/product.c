/* Multiplies two float16 matrices on gpu(0), twice: on compute capability 9.0 by wgmma, where its
   program can be had, else by mma.sync. Prints how many programs were compiled and read from disk,
   or the error. */
#include "product.h"

int main(void) {
    dvt_jit_stats stats;
    dvt_set_log_level(DVT_LOG_OFF);
    if (!multiply() || !multiply() || dvt_error_code() != DVT_OK) {
        printf("%s\n", dvt_status_name(dvt_error_code()));
        return 1;
    }
    stats = dvt_get_jit_stats();
    printf("compiled %d, from disk %d\n", (int)stats.compiled, (int)stats.from_disk);
    return 0;
}
