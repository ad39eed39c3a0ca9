/* Reading gzip (RFC 1952) and deflate (RFC 1951). Codes of up to 11 bits are looked up in a table, the rare longer ones
   are found by counting. The output is checked against the checksum and the length that the file gives. */
#include "5_io/dvt_io_internal.h"

#define DVTI_LOOKUP_BITS 11
#define DVTI_MAX_CODE 15

typedef struct dvti_huffman {
    uint16_t
        lookup[1 << DVTI_LOOKUP_BITS]; /* symbol * 16 + length of its code; 0: longer, or none */
    uint16_t count[DVTI_MAX_CODE + 1]; /* codes of each length */
    uint16_t symbol[288];              /* by length, then by value */
} dvti_huffman;

typedef struct dvti_inflater {
    const unsigned char *in, *end;
    uint64_t bits;
    int n_bits;
    unsigned char *out;
    size_t n, capacity, limit;
    size_t start;      /* of this member's output: matches do not reach before it */
    const char *wrong; /* what is wrong with the data; NULL so far */
    bool no_memory, full;
    dvti_huffman literal, distance;
} dvti_inflater;

/* ---- bits ---- */
static void dvti_refill(dvti_inflater *s) {
    if (s->end - s->in >= 8) {
        uint64_t word = 0;
        int i;
        for (i = 7; i >= 0; i--) /* one load, where the compiler sees it */
            word = word << 8 | s->in[i];
        s->bits |= word << s->n_bits;
        s->in += (63 - s->n_bits) >> 3;
        s->n_bits |= 56;
        return;
    }
    while (s->n_bits <= 56 && s->in < s->end) {
        s->bits |= (uint64_t)*s->in++ << s->n_bits;
        s->n_bits += 8;
    }
}

static bool dvti_inflate_fail(dvti_inflater *s, const char *wrong) {
    if (!s->wrong)
        s->wrong = wrong;
    return false;
}

static unsigned dvti_take_bits(dvti_inflater *s, int n) {
    unsigned value;
    if (s->n_bits < n)
        dvti_refill(s);
    if (s->n_bits < n) {
        dvti_inflate_fail(s, "it ends in the middle");
        return 0;
    }
    value = (unsigned)(s->bits & (((uint64_t)1 << n) - 1));
    s->bits >>= n;
    s->n_bits -= n;
    return value;
}

/* Back to whole bytes: what was read ahead is given back. */
static void dvti_align(dvti_inflater *s) {
    s->in -= s->n_bits >> 3;
    s->bits = 0;
    s->n_bits = 0;
}

/* ---- codes ---- */
/* From the length of each symbol's code. A set of codes must be complete, except that one code, or none, may stand alone
   with one bit. */
static bool dvti_huffman_build(dvti_huffman *h, const unsigned char *length, int n) {
    uint16_t next[DVTI_MAX_CODE + 2], offset[DVTI_MAX_CODE + 2];
    int left = 1, i, bits, used;
    unsigned code = 0;
    memset(h, 0, sizeof *h);
    for (i = 0; i < n; i++)
        h->count[length[i]]++;
    used = n - h->count[0];
    h->count[0] = 0;
    offset[1] = 0;
    for (bits = 1; bits <= DVTI_MAX_CODE; bits++) {
        left = left * 2 - h->count[bits];
        if (left < 0)
            return false;
        code = (code + h->count[bits - 1]) << 1;
        next[bits] = (uint16_t)code;
        offset[bits + 1] = (uint16_t)(offset[bits] + h->count[bits]);
    }
    if (left > 0 && !(used == 0 || (used == 1 && h->count[1] == 1)))
        return false;
    for (i = 0; i < n; i++) {
        unsigned reversed = 0, rest;
        int k;
        bits = length[i];
        if (!bits)
            continue;
        h->symbol[offset[bits]++] = (uint16_t)i;
        rest = next[bits]++;
        for (k = 0; k < bits; k++, rest >>= 1)
            reversed = reversed << 1 | (rest & 1);
        for (; bits <= DVTI_LOOKUP_BITS && reversed < 1u << DVTI_LOOKUP_BITS;
             reversed += 1u << bits)
            h->lookup[reversed] = (uint16_t)(i * 16 + bits);
    }
    return true;
}

/* The symbol of a code longer than the table, or -1. Codes of one length are consecutive numbers. */
static int dvti_decode_long(dvti_inflater *s, const dvti_huffman *h) {
    int code = 0, first = 0, index = 0, bits;
    for (bits = 1; bits <= DVTI_MAX_CODE && bits <= s->n_bits; bits++) {
        int count = h->count[bits];
        code |= (int)(s->bits >> (bits - 1) & 1);
        if (code - first < count) {
            s->bits >>= bits;
            s->n_bits -= bits;
            return h->symbol[index + code - first];
        }
        index += count;
        first = (first + count) << 1;
        code <<= 1;
    }
    dvti_inflate_fail(s, s->n_bits < DVTI_MAX_CODE ? "it ends in the middle"
                                                   : "it has a code without meaning");
    return -1;
}

/* With at least 15 bits in the buffer, or all that are left. */
static int dvti_decode(dvti_inflater *s, const dvti_huffman *h) {
    unsigned entry = h->lookup[s->bits & ((1u << DVTI_LOOKUP_BITS) - 1)];
    int length = (int)(entry & 15);
    if (length == 0 || length > s->n_bits)
        return dvti_decode_long(s, h);
    s->bits >>= length;
    s->n_bits -= length;
    return (int)(entry >> 4);
}

/* ---- output ---- */
static bool dvti_inflate_room(dvti_inflater *s, size_t n) {
    size_t need = s->n + n;
    if (need <= s->capacity)
        return true;
    if (n > s->limit - s->n) {
        s->full = true;
        return dvti_inflate_fail(s, "it holds more than expected");
    }
    if (!dvti_grow((void **)&s->out, &s->capacity, need, 1)) {
        s->no_memory = true;
        return dvti_inflate_fail(s, "");
    }
    s->capacity = DVTI_MIN(s->capacity, s->limit);
    return true;
}

static bool dvti_copy_match(dvti_inflater *s, size_t distance, size_t length) {
    unsigned char *to;
    const unsigned char *from;
    if (distance > s->n - s->start)
        return dvti_inflate_fail(s, "it refers to data before its beginning");
    if (!dvti_inflate_room(s, length))
        return false;
    to = s->out + s->n;
    from = to - distance;
    s->n += length;
    if (distance >= length)
        memcpy(to, from, length);
    else if (distance == 1)
        memset(to, *from, length);
    else /* repeats what it has just written */
        while (length--)
            *to++ = *from++;
    return true;
}

/* ---- blocks ---- */
static const uint16_t dvti_length_base[29] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                              15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                              67, 83, 99, 115, 131, 163, 195, 227, 258};
static const unsigned char dvti_length_extra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                                    2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
static const uint16_t dvti_distance_base[30] = {
    1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
    193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
static const unsigned char dvti_distance_extra[30] = {0, 0, 0,  0,  1,  1,  2,  2,  3,  3,
                                                      4, 4, 5,  5,  6,  6,  7,  7,  8,  8,
                                                      9, 9, 10, 10, 11, 11, 12, 12, 13, 13};

static bool dvti_inflate_match(dvti_inflater *s, int symbol) {
    unsigned length, distance;
    if (symbol > 285)
        return dvti_inflate_fail(s, "it has a length without meaning");
    length = dvti_length_base[symbol - 257];
    length += dvti_take_bits(s, dvti_length_extra[symbol - 257]);
    if (s->n_bits < DVTI_MAX_CODE)
        dvti_refill(s);
    symbol = dvti_decode(s, &s->distance);
    if (symbol < 0 || s->wrong)
        return false;
    if (symbol > 29)
        return dvti_inflate_fail(s, "it has a distance without meaning");
    distance = dvti_distance_base[symbol];
    distance += dvti_take_bits(s, dvti_distance_extra[symbol]);
    return !s->wrong && dvti_copy_match(s, distance, length);
}

static bool dvti_inflate_codes(dvti_inflater *s) {
    for (;;) {
        int symbol;
        if (s->n_bits < 48)
            dvti_refill(s);
        symbol = dvti_decode(s, &s->literal);
        while (symbol >= 0 && symbol < 256) {
            if (s->n >= s->capacity && !dvti_inflate_room(s, 1))
                return false;
            s->out[s->n++] = (unsigned char)symbol;
            if (s->n_bits < DVTI_MAX_CODE)
                dvti_refill(s);
            symbol = dvti_decode(s, &s->literal);
        }
        if (symbol < 0)
            return false;
        if (symbol == 256)
            return true;
        if (!dvti_inflate_match(s, symbol))
            return false;
    }
}

static bool dvti_inflate_stored(dvti_inflater *s) {
    unsigned length, check;
    s->bits >>= s->n_bits & 7;
    s->n_bits -= s->n_bits & 7;
    length = dvti_take_bits(s, 16);
    check = dvti_take_bits(s, 16);
    if (s->wrong)
        return false;
    if (length != (check ^ 0xffffu))
        return dvti_inflate_fail(s, "the length of a stored block contradicts itself");
    dvti_align(s);
    if ((size_t)(s->end - s->in) < length)
        return dvti_inflate_fail(s, "it ends in the middle");
    if (!length)
        return true;
    if (!dvti_inflate_room(s, length))
        return false;
    memcpy(s->out + s->n, s->in, length);
    s->in += length;
    s->n += length;
    return true;
}

static void dvti_fixed_codes(dvti_inflater *s) {
    unsigned char length[288];
    int i;
    for (i = 0; i < 288; i++)
        length[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    dvti_huffman_build(&s->literal, length, 288);
    memset(length, 5, 32);
    dvti_huffman_build(&s->distance, length, 32);
}

/* The code lengths of both tables are themselves coded. */
static bool dvti_dynamic_codes(dvti_inflater *s) {
    static const unsigned char order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                            11, 4,  12, 3, 13, 2, 14, 1, 15};
    unsigned char length[288 + 32];
    int literals = (int)dvti_take_bits(s, 5) + 257, distances = (int)dvti_take_bits(s, 5) + 1;
    int codes = (int)dvti_take_bits(s, 4) + 4, i, n = 0;
    if (s->wrong)
        return false;
    if (literals > 286 || distances > 30)
        return dvti_inflate_fail(s, "it has too many codes");
    memset(length, 0, sizeof length);
    for (i = 0; i < codes; i++)
        length[order[i]] = (unsigned char)dvti_take_bits(s, 3);
    if (s->wrong || !dvti_huffman_build(&s->literal, length, 19))
        return dvti_inflate_fail(s, "its codes are not a tree");
    while (n < literals + distances) {
        int symbol, repeat = 1, value = 0;
        dvti_refill(s);
        symbol = dvti_decode(s, &s->literal);
        if (symbol < 0)
            return false;
        if (symbol < 16)
            value = symbol;
        else if (symbol == 16) {
            if (n == 0)
                return dvti_inflate_fail(s, "it repeats a code length before the first");
            value = length[n - 1];
            repeat = 3 + (int)dvti_take_bits(s, 2);
        } else if (symbol == 17)
            repeat = 3 + (int)dvti_take_bits(s, 3);
        else
            repeat = 11 + (int)dvti_take_bits(s, 7);
        if (s->wrong)
            return false;
        if (n + repeat > literals + distances)
            return dvti_inflate_fail(s, "it has too many code lengths");
        memset(length + n, value, (size_t)repeat);
        n += repeat;
    }
    if (length[256] == 0)
        return dvti_inflate_fail(s, "it has no code for the end of a block");
    return (dvti_huffman_build(&s->literal, length, literals) &&
            dvti_huffman_build(&s->distance, length + literals, distances)) ||
           dvti_inflate_fail(s, "its codes are not a tree");
}

static bool dvti_inflate(dvti_inflater *s) {
    unsigned last, type;
    s->start = s->n;
    do {
        last = dvti_take_bits(s, 1);
        type = dvti_take_bits(s, 2);
        if (s->wrong)
            return false;
        if (type == 3)
            return dvti_inflate_fail(s, "it has a block of no known type");
        if (type == 1)
            dvti_fixed_codes(s);
        if (type == 2 && !dvti_dynamic_codes(s))
            return false;
        if (!(type == 0 ? dvti_inflate_stored(s) : dvti_inflate_codes(s)))
            return false;
    } while (!last);
    dvti_align(s);
    return true;
}

/* ---- checksum: four bytes at a time ---- */
typedef struct dvti_crc {
    uint32_t table[4][256];
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
        for (k = 1; k < 4; k++) {
            value = crc->table[k - 1][i];
            crc->table[k][i] = value >> 8 ^ crc->table[0][value & 255];
        }
}

static uint32_t dvti_crc_of(const dvti_crc *crc, const unsigned char *at, size_t n) {
    uint32_t value = 0xffffffffu;
    for (; n >= 4; n -= 4, at += 4) {
        value ^=
            (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        value = crc->table[3][value & 255] ^ crc->table[2][value >> 8 & 255] ^
                crc->table[1][value >> 16 & 255] ^ crc->table[0][value >> 24];
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

#undef DVTI_LOOKUP_BITS
#undef DVTI_MAX_CODE
