/* PNG, PGM and PPM images, found by content. PNG is also read with the CRCs of its chunks repaired,
   because a changed byte would not get past them. */
#include "fuzz.h"

static dvt_array *read_image(const void *data, size_t size, const char *path, int i) {
    (void)i;
    return path ? dvt_load_image(path, dvt_cpu()) : dvt_read_image(data, size, dvt_cpu());
}

static void repair(uint8_t *png, size_t size) {
    dvti_crc crc;
    size_t at = 8;
    int k;
    dvti_crc_build(&crc);
    while (at + 12 <= size) {
        uint64_t n = dvti_bytes_value(png + at, 4, true);
        uint32_t sum;
        if (n > size - at - 12)
            break;
        sum = dvti_crc_more(&crc, 0, png + at + 4, (size_t)n + 4);
        for (k = 0; k < 4; k++)
            png[at + 8 + n + (size_t)k] = (uint8_t)(sum >> (24 - 8 * k));
        at += 12 + (size_t)n;
    }
}

DVT_FUZZ(image) {
    static uint8_t copy[65536];
    fuzz_read(read_image, data, size);
    if (size > 8 && size <= sizeof copy && memcmp(data, "\x89PNG", 4) == 0) {
        memcpy(copy, data, size);
        repair(copy, size);
        fuzz_read(read_image, copy, size);
    }
    return 0;
}
