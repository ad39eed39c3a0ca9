/* safetensors files. Their index is JSON and works by its path only: see json.c. */
#include "fuzz.h"

static dvt_array *read_safetensors(const void *data, size_t size, const char *path, int i) {
    (void)i;
    return fuzz_list(path ? dvti_list_load("fuzz", path, dvt_cpu(), dvti_safetensors_list)
                          : dvt_read_safetensors(data, size, dvt_cpu()));
}

DVT_FUZZ(safetensors) {
    fuzz_read(read_safetensors, data, size);
    return 0;
}
