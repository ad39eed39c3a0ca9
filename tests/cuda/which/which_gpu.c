/* For gpu_check.sh: prints the name of gpu(0) and the version of its driver, or nothing and the
   reason on stderr. --table: all devices. */
#include "devtensor_under_test.h"
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    dvt_device_info info;
    dvt_set_log_level(DVT_LOG_OFF);
    if (dvt_device_query(dvt_gpu(0), &info) != DVT_OK || info.driver_version == 0) {
        fprintf(stderr, "%s\n", dvt_gpu_reason());
        return 1;
    }
    if (argc > 1 && strcmp(argv[1], "--table") == 0)
        dvt_print_devices();
    else
        printf("%s, driver for CUDA %d.%d\n", info.name, info.driver_version / 1000,
               info.driver_version % 1000 / 10);
    return 0;
}
