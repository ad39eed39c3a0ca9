/* gzip (RFC 1952): all optional header fields, several members, and verification of header
   checksums, lengths and CRCs. Turns a compressed source into a decompressed one that inflates
   while it is read. Needs 100 KiB of memory for any file size. */
#include "5_io/dvt_io_internal.h"

/* ---- CRC-32, eight bytes at a time ---- */
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

/* Extends the checksum `value` (0: of no bytes) by these bytes. */
static uint32_t dvti_crc_more(const dvti_crc *crc, uint32_t value, const unsigned char *at,
                              size_t n) {
    value = ~value;
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

/* ---- members ---- */
struct dvti_gunzip {
    dvti_source raw;
    dvti_crc crc;
    bool inside;          /* after a member's header */
    int64_t members;      /* started so far */
    uint32_t sum, length; /* of the member's output so far */
    dvti_inflater inflater;
};

/* Reads the next byte of a header and adds it to the header's checksum. */
static unsigned dvti_gzip_byte(dvti_gunzip *g) {
    unsigned char byte = (unsigned char)dvti_source_le(&g->raw, 1);
    g->sum = dvti_crc_more(&g->crc, g->sum, &byte, 1);
    return byte;
}

static void dvti_gzip_skip(dvti_gunzip *g, unsigned n) {
    for (; n && !g->raw.ended; n--)
        dvti_gzip_byte(g);
}

static void dvti_gzip_skip_text(dvti_gunzip *g) {
    while (dvti_gzip_byte(g) && !g->raw.ended)
        continue;
}

static bool dvti_gzip_header(dvti_gunzip *g) {
    unsigned magic, method, flags, length, sum;
    g->sum = 0;
    magic = dvti_gzip_byte(g);
    magic |= dvti_gzip_byte(g) << 8;
    if (magic != 0x8b1f)
        return dvti_inflate_fail(&g->inflater, "something that is not gzip follows its end");
    method = dvti_gzip_byte(g);
    flags = dvti_gzip_byte(g);
    dvti_gzip_skip(g, 6);
    if (!g->raw.ended && (method != 8 || flags & 0xe0))
        return dvti_inflate_fail(&g->inflater, "its header has an unknown method or flag");
    if (flags & 4) {
        length = dvti_gzip_byte(g);
        length |= dvti_gzip_byte(g) << 8;
        dvti_gzip_skip(g, length);
    }
    if (flags & 8)
        dvti_gzip_skip_text(g);
    if (flags & 16)
        dvti_gzip_skip_text(g);
    sum = g->sum & 0xffffu;
    if (flags & 2 && dvti_source_le(&g->raw, 2) != sum && !g->raw.ended)
        return dvti_inflate_fail(&g->inflater, "the checksum of its header is wrong");
    return !g->raw.ended || dvti_inflate_fail(&g->inflater, "it ends in the middle");
}

/* Starts the next member. Skips zeros after a member, which are padding of tapes and disks. Returns
   false at the end or on an error. */
static bool dvti_gzip_next(dvti_gunzip *g) {
    bool padded = false;
    while (g->members > 0 && dvti_source_peek(&g->raw, 1) && *g->raw.at == 0) {
        size_t n = 1;
        while (n < g->raw.ready && g->raw.at[n] == 0)
            n++;
        dvti_source_skip(&g->raw, (int64_t)n);
        padded = true;
    }
    if (g->members > 0 && !dvti_source_peek(&g->raw, 1))
        return false;
    if (padded)
        return dvti_inflate_fail(&g->inflater, "something that is not gzip follows its end");
    if (!dvti_gzip_header(g))
        return false;
    g->members++;
    g->inside = true;
    g->sum = g->length = 0;
    dvti_inflate_begin(&g->inflater);
    return true;
}

static bool dvti_gzip_trailer(dvti_gunzip *g) {
    uint32_t sum = (uint32_t)dvti_source_le(&g->raw, 4),
             length = (uint32_t)dvti_source_le(&g->raw, 4);
    g->inside = false;
    if (g->raw.ended)
        return dvti_inflate_fail(&g->inflater, "it ends in the middle");
    if (length != g->length)
        return dvti_inflate_fail(&g->inflater, "it has another length than its trailer says");
    return sum == g->sum || dvti_inflate_fail(&g->inflater, "its checksum is wrong");
}

/* Appends to the inflater's output; *got is the number of bytes. Returns false at the end or on an
   error. */
static bool dvti_gunzip_run(dvti_gunzip *g, size_t *got) {
    dvti_inflater *s = &g->inflater;
    *got = 0;
    while (*got == 0) {
        size_t before = s->n;
        bool ended;
        if (!g->inside && !dvti_gzip_next(g))
            return false;
        if (!dvti_inflate(s, &ended))
            return false;
        *got = s->n - before;
        g->sum = dvti_crc_more(&g->crc, g->sum, s->out + before, *got);
        g->length += (uint32_t)*got;
        if (ended && !dvti_gzip_trailer(g))
            return false;
    }
    return true;
}

DVTI_FN bool dvti_gunzip_more(dvti_source *in) {
    dvti_gunzip *g = in->gunzip;
    dvti_inflater *s = &g->inflater;
    size_t got;
    bool more;
    dvti_inflate_slide(s, in->ready);
    more = dvti_gunzip_run(g, &got);
    if (g->raw.reported)
        in->reported = true;
    else if (s->wrong)
        dvti_source_wrong(
            in, "the compressed data cannot be read: %s; fetch or write the file again", s->wrong);
    if (in->reported)
        return false;
    if (!more) {
        in->known = true;
        in->remaining = 0;
        return false;
    }
    if ((int64_t)got > in->remaining)
        return dvti_source_wrong(
            in,
            "it holds more than %lld bytes, the limit for pipes and devices; write it to a regular "
            "file first",
            (long long)DVTI_SOURCE_MOST);
    in->ready += got;
    in->remaining -= (int64_t)got;
    in->at = s->out + s->n - in->ready;
    return true;
}

DVTI_FN bool dvti_source_gunzip(dvti_source *in) {
    dvti_gunzip *g;
    if (!dvti_source_peek(in, 2) || in->at[0] != 0x1f || in->at[1] != 0x8b)
        return true;
    g = (dvti_gunzip *)dvti_alloc(sizeof *g);
    if (!g) {
        dvti_fail_memory(in->function, (int64_t)sizeof *g);
        in->reported = true;
        return false;
    }
    memset(g, 0, sizeof *g);
    dvti_crc_build(&g->crc);
    g->raw = *in;
    g->inflater.raw = &g->raw;
    if (!in->known || !dvti_mul(dvti_source_left(in), DVTI_DEFLATE_RATIO, &in->remaining))
        in->remaining = in->known ? INT64_MAX : DVTI_SOURCE_MOST;
    in->known = false;
    in->fd = -1;
    in->buffer = NULL;
    in->gunzip = g;
    in->at = g->inflater.out;
    in->ready = 0;
    return true;
}

DVTI_FN void dvti_gunzip_free(dvti_gunzip *gunzip) {
    if (gunzip)
        dvti_source_close(&gunzip->raw);
    dvti_free(gunzip);
}
