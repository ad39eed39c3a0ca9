/* gzip, with zlib as the oracle: the same bytes, or both fail. The first byte of the input selects
   whether the rest is a file, or deflated data that get a header and the checksum of zlib. */
#include "fuzz.h"
#if defined(DVT_FUZZ_ZLIB)
#include <zlib.h>
#endif

#define MOST ((size_t)1 << 20)

/* Returns our result in out; -1 on an error. */
static int64_t ours(const uint8_t *data, size_t size, const char *path, uint8_t *out) {
    dvti_source in;
    int64_t n = 0;
    bool good = true;
    dvt_clear_error();
    if (path)
        good = dvti_source_open(&in, "fuzz", path);
    else
        dvti_source_memory(&in, "fuzz", data, size);
    good = good && dvti_source_gunzip(&in);
    while (good && (size_t)n < MOST && dvti_source_peek(&in, 1)) {
        size_t m = in.ready < MOST - (size_t)n ? in.ready : MOST - (size_t)n;
        good = dvti_source_read(&in, out + n, (int64_t)m);
        n += (int64_t)m;
    }
    good = good && !in.reported;
    FUZZ_CHECK(good || dvt_error_code() == DVT_ERR_FORMAT ||
               dvt_error_code() == DVT_ERR_HOST_MEMORY);
    dvti_source_close(&in);
    return good ? n : -1;
}

#if defined(DVT_FUZZ_ZLIB)
/* Returns the result of zlib: member after member; zeros may follow. */
static int64_t theirs(const uint8_t *data, size_t size, uint8_t *out) {
    z_stream z;
    int64_t n = -1;
    memset(&z, 0, sizeof z);
    if (inflateInit2(&z, 15 + 16) != Z_OK)
        return -1;
    z.next_in = (Bytef *)data;
    z.avail_in = (uInt)size;
    z.next_out = out;
    z.avail_out = MOST;
    for (;;) {
        int code = inflate(&z, Z_NO_FLUSH);
        if (code == Z_STREAM_END) {
            uInt zeros = 0;
            while (zeros < z.avail_in && z.next_in[zeros] == 0)
                zeros++;
            if (zeros == z.avail_in) {
                n = (int64_t)(MOST - z.avail_out);
                break;
            }
            if (zeros || inflateReset(&z) != Z_OK)
                break;
        } else if (code != Z_OK || (z.avail_in == 0 && z.avail_out > 0) || z.avail_out == 0) {
            if (z.avail_out == 0)
                n = MOST; /* more is not compared */
            break;
        }
    }
    inflateEnd(&z);
    return n;
}

/* Makes a file of deflated data: zlib's output gives the checksum and the length. Returns its
   size. */
static size_t wrap(const uint8_t *data, size_t size, uint8_t *file, uint8_t *out) {
    static const uint8_t head[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
    z_stream z;
    size_t used = size;
    int k, code = Z_DATA_ERROR;
    memset(&z, 0, sizeof z);
    memcpy(file, head, sizeof head);
    if (inflateInit2(&z, -15) == Z_OK) {
        z.next_in = (Bytef *)data;
        z.avail_in = (uInt)size;
        z.next_out = out;
        z.avail_out = MOST;
        code = inflate(&z, Z_FINISH);
        used = size - z.avail_in;
        inflateEnd(&z);
    }
    if (code != Z_STREAM_END)
        used = size;
    memcpy(file + 10, data, used);
    if (code != Z_STREAM_END)
        return 10 + used;
    for (k = 0; k < 4; k++) {
        file[10 + used + (size_t)k] = (uint8_t)(crc32(0, out, (uInt)(MOST - z.avail_out)) >> 8 * k);
        file[14 + used + (size_t)k] = (uint8_t)((MOST - z.avail_out) >> 8 * k);
    }
    return 18 + used;
}
#endif

DVT_FUZZ(gzip) {
    static uint8_t mine[MOST], other[MOST], file[65536 + 32];
    int64_t n, m;
    const char *path;
    if (size < 1 || size > 65536)
        return 0;
    fuzz_begin();
    memcpy(file, data + 1, size - 1);
    size--;
#if defined(DVT_FUZZ_ZLIB)
    if (data[0] & 1)
        size = wrap(data + 1, size, file, other);
#endif
    n = ours(file, size, NULL, mine);
#if defined(DVT_FUZZ_ZLIB)
    if (size >= 2 && file[0] == 0x1f && file[1] == 0x8b) {
        m = theirs(file, size, other);
        FUZZ_CHECK(n == m || n == (int64_t)MOST || m == (int64_t)MOST);
        FUZZ_CHECK(n <= 0 || n != m || memcmp(mine, other, (size_t)n) == 0);
    }
#endif
    path = fuzz_file(file, size);
    if (*path) {
        FUZZ_TRICKLE(data[0] & 2 && size < 2000 ? (unsigned)size * 2654435761u | 1 : 0);
        m = ours(NULL, 0, path, other);
        FUZZ_TRICKLE(0);
        FUZZ_CHECK(n == m && (n <= 0 || memcmp(mine, other, (size_t)n) == 0));
    }
    fuzz_end();
    return 0;
}

#undef MOST
