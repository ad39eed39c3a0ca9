/* Hashes the bits of results, so that those of machines with other processors can be compared. With
   DVT_TEST_BITS=FILE, tests append a line for each kind of results. The lines must be the same on
   every machine (tests/neon/run.sh). */
#ifndef BITS_H
#define BITS_H
#include "isa.h"

#define BITS_BEGIN UINT64_C(0xcbf29ce484222325)

/* Computes FNV-1a of 64 bits over each element from its lowest byte on. All NaN count as one. */
static inline uint64_t bits_add(uint64_t hash, dvt_dtype dtype, int64_t n, const void *values) {
    const int64_t size = dvt_dtype_size(dtype);
    const unsigned char *p = (const unsigned char *)values;
    const int one = 1;
    /* Big-endian machines have the highest byte first. */
    const int64_t reversed = *(const char *)&one ? 0 : size - 1;
    int64_t i, k;
    for (i = 0; i < n; i++, p += size) {
        const bool none = dvt_dtype_is_float(dtype) && isnan(dvti_load_f64(values, dtype, i));
        for (k = 0; k < size; k++)
            hash =
                (hash ^ (none ? 0xffu : p[reversed ? reversed - k : k])) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static inline void bits_report(const char *what, uint64_t hash) {
    const char *name = getenv("DVT_TEST_BITS");
    FILE *file = name && *name ? fopen(name, "a") : NULL;
    if (file) {
        fprintf(file, "%s %016llx\n", what, (unsigned long long)hash);
        fclose(file);
    }
}

#endif
