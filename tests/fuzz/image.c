/* PNG, PGM and PPM images, found by content. */
#include "fuzz.h"

static dvt_array *read_image(const void *data, size_t size, const char *path, int i) {
    (void)i;
    return path ? dvt_load_image(path, dvt_cpu()) : dvt_read_image(data, size, dvt_cpu());
}

DVT_FUZZ(image) {
    fuzz_read(read_image, data, size);
    return 0;
}
