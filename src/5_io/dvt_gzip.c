/* gzip (RFC 1952): headers with everything they may hold, several members, and what each says of itself checked. */
#include "5_io/dvt_io_internal.h"

/* ---- checksum: eight bytes at a time ---- */
typedef struct dvti_crc {
    uint32_t table[8][256];
} dvti_crc;

static void dvti_crc_build(dvti_crc *crc) {
    uint32_t i, value;
    int k;
    for (i = 0; i < 256; i++) {
        value = i;
        for (k = 0; k < 8; k++)
            value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
        crc->table[0][i] = value;
    }
    for (i = 0; i < 256; i++)
        for (k = 1; k < 8; k++) {
            value = crc->table[k - 1][i];
            crc->table[k][i] = value >> 8 ^ crc->table[0][value & 255];
        }
}

static uint32_t dvti_crc_of(const dvti_crc *crc, const unsigned char *at, size_t n) {
    uint32_t value = 0xffffffffu;
    for (; n >= 8; n -= 8, at += 8) {
        uint32_t next =
            (uint32_t)at[4] | (uint32_t)at[5] << 8 | (uint32_t)at[6] << 16 | (uint32_t)at[7] << 24;
        value ^=
            (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        value = crc->table[7][value & 255] ^ crc->table[6][value >> 8 & 255] ^
                crc->table[5][value >> 16 & 255] ^ crc->table[4][value >> 24] ^
                crc->table[3][next & 255] ^ crc->table[2][next >> 8 & 255] ^
                crc->table[1][next >> 16 & 255] ^ crc->table[0][next >> 24];
    }
    for (; n; n--)
        value = value >> 8 ^ crc->table[0][(value ^ *at++) & 255];
    return ~value;
}

/* ---- gzip members ---- */
DVTI_FN bool dvti_is_gzip(const void *bytes, size_t size) {
    const unsigned char *at = (const unsigned char *)bytes;
    return size >= 2 && at[0] == 0x1f && at[1] == 0x8b;
}

static bool dvti_skip_text(dvti_source *in) {
    const unsigned char *end = in->left ? (const unsigned char *)memchr(in->at, 0, in->left) : NULL;
    return end && dvti_source_bytes(in, (uint64_t)(end - in->at) + 1) != NULL;
}

static bool dvti_gzip_header(dvti_inflater *s, const dvti_crc *crc) {
    dvti_source in = dvti_source_begin(s->in, (size_t)(s->end - s->in));
    unsigned magic = (unsigned)dvti_source_le(&in, 2), method = (unsigned)dvti_source_le(&in, 1);
    unsigned flags = (unsigned)dvti_source_le(&in, 1);
    dvti_source_bytes(&in, 6);
    if (magic != 0x8b1f)
        return dvti_inflate_fail(s, "something that is not gzip follows its end");
    if (!in.failed && (method != 8 || flags & 0xe0))
        return dvti_inflate_fail(s, "its header has an unknown method or flag");
    if (flags & 4)
        dvti_source_bytes(&in, dvti_source_le(&in, 2));
    if ((flags & 8 && !dvti_skip_text(&in)) || (flags & 16 && !dvti_skip_text(&in)))
        in.failed = true;
    if (flags & 2 && !in.failed) {
        uint32_t sum = dvti_crc_of(crc, s->in, (size_t)(in.at - s->in)) & 0xffffu;
        if (dvti_source_le(&in, 2) != sum && !in.failed)
            return dvti_inflate_fail(s, "the checksum of its header is wrong");
    }
    if (in.failed)
        return dvti_inflate_fail(s, "it ends in the middle");
    s->in = in.at;
    return true;
}

static bool dvti_gzip_member(dvti_inflater *s, const dvti_crc *crc) {
    uint32_t sum, length;
    dvti_source in;
    if (!dvti_gzip_header(s, crc) || !dvti_inflate(s))
        return false;
    in = dvti_source_begin(s->in, (size_t)(s->end - s->in));
    sum = (uint32_t)dvti_source_le(&in, 4);
    length = (uint32_t)dvti_source_le(&in, 4);
    if (in.failed)
        return dvti_inflate_fail(s, "it ends in the middle");
    s->in = in.at;
    if (length != (uint32_t)(s->n - s->start))
        return dvti_inflate_fail(s, "it has another length than it says");
    if (sum != dvti_crc_of(crc, s->out + s->start, s->n - s->start))
        return dvti_inflate_fail(s, "its checksum is wrong");
    return true;
}

static bool dvti_only_zeros(const unsigned char *at, const unsigned char *end) {
    while (at < end && *at == 0)
        at++;
    return at == end;
}

static bool dvti_gunzip_members(dvti_inflater *s, const dvti_crc *crc) {
    do
        if (!dvti_gzip_member(s, crc))
            return false;
    while (!dvti_only_zeros(s->in, s->end)); /* tapes and disks pad with zeros */
    return true;
}

/* The length that the last member gives for itself: room to begin with, when that is possible at all. */
static size_t dvti_gzip_hint(const unsigned char *at, size_t size, size_t limit) {
    dvti_source in = dvti_source_begin(at + (size < 4 ? 0 : size - 4), size < 4 ? size : 4);
    uint64_t hint = dvti_source_le(&in, 4);
    if (hint == 0 || hint / DVTI_DEFLATE_RATIO > size)
        hint = 1; /* a block even when the output is empty */
    return hint < limit ? (size_t)hint : limit;
}

static bool dvti_gunzip_begin(dvti_inflater *s, dvti_crc *crc, const void *bytes, size_t size,
                              size_t limit) {
    size_t room = dvti_gzip_hint((const unsigned char *)bytes, size, limit);
    s->in = (const unsigned char *)bytes;
    s->end = s->in + size;
    s->limit = limit;
    dvti_crc_build(crc);
    s->out = (unsigned char *)dvti_alloc(room);
    s->capacity = s->out ? room : 0;
    s->no_memory = !s->out;
    return s->out != NULL;
}

/* head: success is also when the limit was reached. */
static bool dvti_gunzip_run(const char *function, const char *what, const void *bytes, size_t size,
                            size_t limit, bool head, void **out, size_t *out_size) {
    dvti_inflater *s = (dvti_inflater *)dvti_alloc_zero(sizeof *s);
    dvti_crc *crc = (dvti_crc *)dvti_alloc(sizeof *crc);
    bool ok = false;
    *out = NULL;
    *out_size = 0;
    if (s && crc && dvti_gunzip_begin(s, crc, bytes, size, limit))
        ok = dvti_gunzip_members(s, crc) || (head && s->full);
    if (!s || !crc || s->no_memory)
        dvti_fail_memory(function, (int64_t)(s ? s->n + 1 : sizeof *s));
    else if (!ok)
        dvti_fail(
            DVT_ERR_FORMAT,
            "%s: %.300s: the compressed data cannot be read: %s; fetch or write the file again",
            function, what, s->wrong);
    if (ok) {
        *out = s->out;
        *out_size = s->n;
    } else if (s)
        dvti_free(s->out);
    dvti_free(s);
    dvti_free(crc);
    return ok;
}

DVTI_FN bool dvti_gunzip(const char *function, const char *what, const void *bytes, size_t size,
                         size_t limit, void **out, size_t *out_size) {
    return dvti_gunzip_run(function, what, bytes, size, limit, false, out, out_size);
}

/* One step of inflating writes less than 65536 bytes, so the limit is not met before n bytes are there. */
DVTI_FN bool dvti_gunzip_head(const char *function, const char *what, const void *bytes,
                              size_t size, unsigned char *head, size_t n, size_t *got) {
    void *out;
    if (!dvti_gunzip_run(function, what, bytes, size, n + 65536, true, &out, got))
        return false;
    *got = DVTI_MIN(*got, n);
    memcpy(head, out, *got);
    dvti_free(out);
    return true;
}
