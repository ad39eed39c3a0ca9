/* IDX files, plain or compressed as the input is. */
#include "fuzz.h"

static dvt_array *read_idx(const void *data, size_t size, const char *path, int i) {
    (void)i;
    return path ? dvt_load_idx(path, dvt_cpu()) : dvt_read_idx(data, size, dvt_cpu());
}

DVT_FUZZ(idx) {
    fuzz_read(read_idx, data, size);
    return 0;
}
