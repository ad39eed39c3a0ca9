/* Compression: the inflater, and zlib where it is there, give the input again. The first byte of
   the input selects the wrapper, and how often the rest is repeated. */
#include "fuzz.h"
#if defined(DVT_FUZZ_ZLIB)
#include <zlib.h>
#endif

#define MOST ((size_t)1 << 18)

typedef struct packed {
    size_t n;
    uint8_t at[2 * MOST];
} packed;

static void take(void *user, const void *bytes, size_t n) {
    packed *to = (packed *)user;
    FUZZ_CHECK(n <= sizeof to->at - to->n);
    memcpy(to->at + to->n, bytes, n);
    to->n += n;
}

static void check_ours(const packed *from, const uint8_t *input, size_t n, bool zlib) {
    static uint8_t again[MOST];
    dvti_source raw, in;
    dvti_crc crc;
    dvti_crc_build(&crc);
    dvti_source_memory(&raw, "fuzz", from->at, from->n);
    if (zlib ? dvti_source_zlib(&in, &raw, (int64_t)n)
             : dvti_source_zipped(&in, &raw, (int64_t)from->n, (int64_t)n,
                                  dvti_crc_more(&crc, 0, input, n))) {
        FUZZ_CHECK(dvti_source_read(&in, again, (int64_t)n) && dvti_source_at_end(&in));
        FUZZ_CHECK(memcmp(again, input, n) == 0 && dvti_source_at_end(&raw));
    }
    dvti_source_close(&in);
}

#if defined(DVT_FUZZ_ZLIB)
static void check_zlib(const packed *from, const uint8_t *input, size_t n, bool zlib) {
    static uint8_t again[MOST];
    z_stream z;
    memset(&z, 0, sizeof z);
    FUZZ_CHECK(inflateInit2(&z, zlib ? 15 : -15) == Z_OK);
    z.next_in = (Bytef *)from->at;
    z.avail_in = (uInt)from->n;
    z.next_out = again;
    z.avail_out = MOST;
    FUZZ_CHECK(inflate(&z, Z_FINISH) == Z_STREAM_END && z.avail_in == 0);
    FUZZ_CHECK(z.total_out == n && memcmp(again, input, n) == 0);
    inflateEnd(&z);
}
#endif

DVT_FUZZ(deflate) {
    static uint8_t input[MOST];
    static packed out;
    dvti_deflater *deflater;
    size_t n = 0, times, step;
    bool zlib;
    if (size < 1)
        return 0;
    fuzz_begin();
    zlib = data[0] & 1;
    for (times = (size_t)(data[0] >> 1) + 1; times; times--) {
        step = size - 1 < MOST - n ? size - 1 : MOST - n;
        memcpy(input + n, data + 1, step);
        n += step;
    }
    out.n = 0;
    deflater = dvti_deflate_begin("fuzz", zlib, take, &out);
    if (deflater) {
        step = n / 3; /* pieces of input do not matter */
        dvti_deflate(deflater, input, step);
        dvti_deflate(deflater, input + step, n - step);
        FUZZ_CHECK(dvti_deflate_end(deflater) == (int64_t)out.n);
        FUZZ_CHECK(out.n <= n + n / 4096 + 64);
        check_ours(&out, input, n, zlib);
#if defined(DVT_FUZZ_ZLIB)
        check_zlib(&out, input, n, zlib);
#endif
    }
    fuzz_end();
    return 0;
}

#undef MOST
