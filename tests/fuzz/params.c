/* MXNet's .params files. */
#include "fuzz.h"

static dvt_array *read_params(const void *data, size_t size, const char *path, int i) {
    (void)i;
    return fuzz_list(path ? dvt_load_params(path, dvt_cpu())
                          : dvt_read_params(data, size, dvt_cpu()));
}

DVT_FUZZ(params) {
    fuzz_read(read_params, data, size);
    return 0;
}
