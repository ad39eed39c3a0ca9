/* GGUF files. */
#include "fuzz.h"

static dvt_array *read_gguf(const void *data, size_t size, const char *path, int i) {
    (void)i;
    return fuzz_list(path ? dvt_load_gguf(path, dvt_cpu()) : dvt_read_gguf(data, size, dvt_cpu()));
}

DVT_FUZZ(gguf) {
    fuzz_read(read_gguf, data, size);
    return 0;
}
