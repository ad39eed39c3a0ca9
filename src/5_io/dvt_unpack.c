/* Decompresses what wraps deflate: gzip (RFC 1952) with all optional header fields and several
   members, zlib (RFC 1950), and the members of zip archives. Verifies lengths and checksums. The
   result is a source that inflates while it is read. Needs 110 KiB of memory for any size. */
#include "5_io/dvt_formats.h"

typedef enum dvti_wrapper { DVTI_GZIP, DVTI_ZLIB, DVTI_ZIPPED } dvti_wrapper;

struct dvti_unpack {
    dvti_wrapper wrapper;
    dvti_source own;  /* of gzip: the source before decompression */
    dvti_source *raw; /* that one, or the caller's */
    dvti_crc crc;
    bool inside;     /* after a member's header */
    int64_t members; /* started so far; only gzip has more than one */
    uint32_t sum;    /* checksum of the member's output so far */
    int64_t length;  /* of that output */
    /* zlib and zip: the expected length. Zip: the expected checksum, and the end of the compressed
       bytes in raw. */
    int64_t want;
    uint32_t want_sum;
    int64_t end;
    dvti_inflater inflater;
};

/* ---- gzip ---- */
/* Reads the next byte of a header and adds it to the header's checksum. */
static unsigned dvti_gzip_byte(dvti_unpack *g) {
    unsigned char byte = (unsigned char)dvti_source_le(g->raw, 1);
    g->sum = dvti_crc_more(&g->crc, g->sum, &byte, 1);
    return byte;
}

static void dvti_gzip_skip(dvti_unpack *g, unsigned n) {
    for (; n && !g->raw->ended; n--)
        dvti_gzip_byte(g);
}

static void dvti_gzip_skip_text(dvti_unpack *g) {
    while (dvti_gzip_byte(g) && !g->raw->ended)
        continue;
}

static bool dvti_gzip_header(dvti_unpack *g) {
    unsigned magic, method, flags, length, sum;
    g->sum = 0;
    magic = dvti_gzip_byte(g);
    magic |= dvti_gzip_byte(g) << 8;
    if (magic != 0x8b1f)
        return dvti_inflate_fail(&g->inflater, "something that is not gzip follows its end");
    method = dvti_gzip_byte(g);
    flags = dvti_gzip_byte(g);
    dvti_gzip_skip(g, 6);
    if (!g->raw->ended && (method != 8 || flags & 0xe0))
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
    if (flags & 2 && dvti_source_le(g->raw, 2) != sum && !g->raw->ended)
        return dvti_inflate_fail(&g->inflater, "the checksum of its header is wrong");
    return !g->raw->ended || dvti_inflate_fail(&g->inflater, "it ends in the middle");
}

/* Starts the next member. Skips zeros after a member, which are padding of tapes and disks. Returns
   false at the end or on an error. */
static bool dvti_gzip_next(dvti_unpack *g) {
    bool padded = false;
    while (g->members > 0 && dvti_source_peek(g->raw, 1) && *g->raw->at == 0) {
        size_t n = 1;
        while (n < g->raw->ready && g->raw->at[n] == 0)
            n++;
        dvti_source_skip(g->raw, (int64_t)n);
        padded = true;
    }
    if (g->members > 0 && !dvti_source_peek(g->raw, 1))
        return false;
    if (padded)
        return dvti_inflate_fail(&g->inflater, "something that is not gzip follows its end");
    if (!dvti_gzip_header(g))
        return false;
    g->members++;
    g->inside = true;
    g->sum = 0;
    g->length = 0;
    dvti_inflate_begin(&g->inflater);
    return true;
}

static bool dvti_gzip_trailer(dvti_unpack *g) {
    uint32_t sum = (uint32_t)dvti_source_le(g->raw, 4),
             length = (uint32_t)dvti_source_le(g->raw, 4);
    if (g->raw->ended)
        return dvti_inflate_fail(&g->inflater, "it ends in the middle");
    if (length != (uint32_t)g->length)
        return dvti_inflate_fail(&g->inflater, "it has another length than its trailer says");
    return sum == g->sum || dvti_inflate_fail(&g->inflater, "its checksum is wrong");
}

/* ---- zlib and zip ---- */
/* Starts the only stream. Returns false at its end or on an error. */
static bool dvti_single_next(dvti_unpack *g) {
    unsigned head;
    if (g->members > 0)
        return false;
    if (g->wrapper == DVTI_ZLIB) {
        head = (unsigned)dvti_source_be(g->raw, 2);
        if (g->raw->ended)
            return dvti_inflate_fail(&g->inflater, "it ends in the middle");
        /* Method 8, a window of at most 32 KiB, a multiple of 31, and no dictionary. */
        if ((head >> 8 & 15) != 8 || head >> 12 > 7 || head % 31 != 0 || head & 0x20)
            return dvti_inflate_fail(&g->inflater, "its zlib header is damaged");
    }
    g->members = 1;
    g->inside = true;
    g->sum = g->wrapper == DVTI_ZLIB;
    dvti_inflate_begin(&g->inflater);
    return true;
}

static bool dvti_single_trailer(dvti_unpack *g) {
    uint32_t want = g->wrapper == DVTI_ZLIB ? (uint32_t)dvti_source_be(g->raw, 4) : g->want_sum;
    if (g->raw->ended)
        return dvti_inflate_fail(&g->inflater, "it ends in the middle");
    if (g->length != g->want)
        return dvti_inflate_fail(&g->inflater, "it is shorter than its header says");
    if (g->wrapper == DVTI_ZIPPED && g->raw->taken != g->end)
        return dvti_inflate_fail(&g->inflater,
                                 "it has another compressed size than its header says");
    return want == g->sum || dvti_inflate_fail(&g->inflater, "its checksum is wrong");
}

/* ---- all ---- */
/* Adds n bytes of output to the member's length and checksum. */
static bool dvti_unpack_count(dvti_unpack *g, const unsigned char *at, size_t n) {
    g->length += (int64_t)n;
    if (g->wrapper != DVTI_GZIP && g->length > g->want)
        return dvti_inflate_fail(&g->inflater, "it is longer than its header says");
    g->sum = g->wrapper == DVTI_ZLIB ? dvti_adler_more(g->sum, at, n)
                                     : dvti_crc_more(&g->crc, g->sum, at, n);
    return true;
}

/* Appends to the inflater's output; *got is the number of bytes. Returns false at the end or on an
   error. */
static bool dvti_unpack_run(dvti_unpack *g, size_t *got) {
    dvti_inflater *s = &g->inflater;
    bool gzip = g->wrapper == DVTI_GZIP;
    *got = 0;
    while (*got == 0) {
        size_t before = s->n;
        bool ended;
        if (!g->inside && !(gzip ? dvti_gzip_next(g) : dvti_single_next(g)))
            return false;
        if (!dvti_inflate(s, &ended))
            return false;
        *got = s->n - before;
        if (!dvti_unpack_count(g, s->out + before, *got))
            return false;
        g->inside = !ended;
        if (ended && !(gzip ? dvti_gzip_trailer(g) : dvti_single_trailer(g)))
            return false;
    }
    return true;
}

DVTI_FN bool dvti_unpack_more(dvti_source *in) {
    dvti_unpack *g = in->unpack;
    dvti_inflater *s = &g->inflater;
    size_t got;
    bool more;
    dvti_inflate_slide(s, in->ready);
    more = dvti_unpack_run(g, &got);
    if (g->raw->reported)
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

/* Allocates the state of `in`. Returns false with HOST_MEMORY set. */
static bool dvti_unpack_new(dvti_source *in, dvti_wrapper wrapper) {
    dvti_unpack *g = (dvti_unpack *)dvti_alloc_zero(sizeof *g);
    if (!g) {
        dvti_fail_memory(in->function, (int64_t)sizeof *g);
        in->reported = true;
        return false;
    }
    g->wrapper = wrapper;
    dvti_crc_build(&g->crc);
    in->unpack = g;
    return true;
}

DVTI_FN bool dvti_source_gunzip(dvti_source *in) {
    dvti_source raw;
    dvti_unpack *g;
    if (!dvti_source_peek(in, 2) || in->at[0] != 0x1f || in->at[1] != 0x8b)
        return true;
    raw = *in;
    if (!dvti_unpack_new(in, DVTI_GZIP))
        return false;
    g = in->unpack;
    g->own = raw;
    g->raw = g->inflater.raw = &g->own;
    if (!in->known || !dvti_mul(dvti_source_left(in), DVTI_DEFLATE_RATIO, &in->remaining))
        in->remaining = in->known ? INT64_MAX : DVTI_SOURCE_MOST;
    in->known = false;
    in->seekable = false;
    in->fd = -1;
    in->mapping = NULL;
    in->buffer = NULL;
    in->pull = NULL;
    in->at = g->inflater.out;
    in->ready = 0;
    return true;
}

/* Begins a source of the single stream at raw, with `bytes` bytes of content. */
static bool dvti_source_single(dvti_source *in, dvti_source *raw, dvti_wrapper wrapper,
                               int64_t bytes) {
    dvti_source_memory(in, raw->function, NULL, 0);
    in->what = raw->what;
    in->path = raw->path;
    in->seekable = false;
    if (!dvti_unpack_new(in, wrapper))
        return false;
    in->unpack->raw = in->unpack->inflater.raw = raw;
    in->unpack->want = bytes;
    in->remaining = bytes;
    in->at = in->unpack->inflater.out;
    return true;
}

DVTI_FN bool dvti_source_zlib(dvti_source *in, dvti_source *raw, int64_t bytes) {
    return dvti_source_single(in, raw, DVTI_ZLIB, bytes);
}

DVTI_FN bool dvti_source_zipped(dvti_source *in, dvti_source *raw, int64_t packed, int64_t bytes,
                                uint32_t crc) {
    if (!dvti_source_single(in, raw, DVTI_ZIPPED, bytes))
        return false;
    in->unpack->end = raw->taken + packed;
    in->unpack->want_sum = crc;
    return true;
}

DVTI_FN void dvti_unpack_free(dvti_unpack *unpack) {
    if (unpack && unpack->wrapper == DVTI_GZIP)
        dvti_source_close(&unpack->own);
    dvti_free(unpack);
}
