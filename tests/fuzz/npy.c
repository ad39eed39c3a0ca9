/* .npy files. */
#include "fuzz.h"

static dvt_array *read_npy(const void *data, size_t size, const char *path, int i) {
    (void)i;
    return path ? dvt_load_npy(path, dvt_cpu()) : dvt_read_npy(data, size, dvt_cpu());
}

DVT_FUZZ(npy) {
    fuzz_read(read_npy, data, size);
    return 0;
}
