/* .npz files: every array that is read is also found by its name. */
#include "fuzz.h"

/* Reads all arrays into one, so that they can be compared. */
static dvt_array *read_npz(const void *data, size_t size, const char *path, int i) {
    dvt_array_list *list =
        path ? dvt_load_npz(path, dvt_cpu()) : dvt_read_npz(data, size, dvt_cpu());
    int64_t sum = 0;
    int n = dvt_array_list_len(list);
    if (!list)
        return NULL;
    for (i = 0; i < n; i++) {
        const char *name = dvt_array_list_name(list, i);
        sum =
            (int64_t)(((uint64_t)sum ^ fuzz_hash(dvt_array_list_at(list, i))) * 31 + strlen(name));
        FUZZ_CHECK(dvt_array_list_find(list, name) == dvt_array_list_at(list, i));
    }
    return dvt_from_host(&sum, DVT_SCALAR, DVT_I64, dvt_cpu());
}

DVT_FUZZ(npz) {
    fuzz_read(read_npz, data, size);
    return 0;
}
