/* Decodes deflate (RFC 1951). A table decodes codes of up to 11 bits; longer ones, which are rare,
   are decoded bit by bit. A fast loop runs while input and output are far from their ends; a
   careful loop handles the rest. Decoding stops between two symbols when the output is full, and
   resumes later. */
#include "5_io/dvt_formats.h"

#define DVTI_MAX_CODE DVTI_INFLATE_CODE
#define DVTI_LOOKUP_BITS DVTI_INFLATE_LOOKUP

/* ---- bits ---- */
/* Reads 64 bits, little-endian; compilers emit a single load. */
static uint64_t dvti_load_64(const unsigned char *at) {
    uint32_t low =
        (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
    uint32_t high =
        (uint32_t)at[4] | (uint32_t)at[5] << 8 | (uint32_t)at[6] << 16 | (uint32_t)at[7] << 24;
    return (uint64_t)high << 32 | low;
}

/* Tells raw how far it was read. The position may be lower than before, after dvti_align. */
static void dvti_inflate_sync(dvti_inflater *s) {
    int64_t used = s->in ? (int64_t)(s->in - s->raw->at) : 0;
    if (used) {
        s->raw->at += used;
        s->raw->ready = (size_t)((int64_t)s->raw->ready - used);
        s->raw->taken += used;
    }
}

/* Makes n bytes ready at s->in, or all that remain. */
static bool dvti_inflate_input(dvti_inflater *s, size_t n) {
    bool enough;
    dvti_inflate_sync(s);
    enough = dvti_source_peek(s->raw, n);
    s->in = s->raw->at;
    s->end = s->raw->ready ? s->in + s->raw->ready : s->in;
    return enough;
}

static void dvti_refill(dvti_inflater *s) {
    if (s->end - s->in >= 8 || dvti_inflate_input(s, 8)) {
        s->bits |= dvti_load_64(s->in) << s->n_bits;
        s->in += (63 - s->n_bits) >> 3;
        s->n_bits |= 56;
        return;
    }
    while (s->n_bits <= 56 && s->in < s->end) {
        s->bits |= (uint64_t)*s->in++ << s->n_bits;
        s->n_bits += 8;
    }
}

DVTI_FN bool dvti_inflate_fail(dvti_inflater *s, const char *wrong) {
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

/* Skips to a byte boundary. Returns the bytes that were read ahead. */
static void dvti_align(dvti_inflater *s) {
    s->in -= s->n_bits >> 3;
    s->bits = 0;
    s->n_bits = 0;
}

/* ---- codes ---- */
/* Builds the decoder from the code length of each symbol. The code must be complete. Exceptions are
   no code at all, and one code of one bit. */
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

/* Returns the symbol of a code longer than the table index, or -1. Codes of one length are
   consecutive numbers. */
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

/* Requires at least 15 bits in the buffer, or all remaining ones. */
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
/* Returns whether the longest match fits. Checked before every symbol. */
static bool dvti_inflate_space(const dvti_inflater *s) {
    return DVTI_INFLATE_SPACE - s->n >= 258;
}

DVTI_FN void dvti_inflate_slide(dvti_inflater *s, size_t keep) {
    size_t drop = DVTI_MAX(keep, (size_t)DVTI_INFLATE_HISTORY);
    if (s->n <= drop)
        return;
    drop = s->n - drop;
    memmove(s->out, s->out + drop, s->n - drop);
    s->n -= drop;
    s->start = s->start > drop ? s->start - drop : 0;
}

static bool dvti_copy_match(dvti_inflater *s, size_t distance, size_t length) {
    unsigned char *to;
    const unsigned char *from;
    if (distance > s->n - s->start)
        return dvti_inflate_fail(s, "it refers to data before its beginning");
    to = s->out + s->n;
    from = to - distance;
    s->n += length;
    if (distance >= length)
        memcpy(to, from, length);
    else if (distance == 1)
        memset(to, *from, length);
    else /* overlapping: repeats bytes that it has just written */
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

/* Space that the fast loop needs. Input: 8 bytes for each refill. Output: three literals, the
   longest match, and the 7 bytes that the word copy may write after it. */
#define DVTI_FAST_IN 16
#define DVTI_FAST_OUT (3 + 258 + 8)
/* DVTI_FILL fills the local bit buffer to at least 56 bits, as dvti_refill does. DVTI_DROP consumes
   n bits. */
#define DVTI_FILL (bits |= dvti_load_64(in) << n_bits, in += (63 - n_bits) >> 3, n_bits |= 56)
#define DVTI_DROP(n) (bits >>= (n), n_bits -= (int)(n))
#define DVTI_LOW(n) ((unsigned)bits & ((1u << (n)) - 1))

/* Copies a match; may overwrite 7 bytes after it. */
static void dvti_copy_fast(unsigned char *to, size_t distance, size_t length) {
    const unsigned char *from = to - distance, *end = to + length;
    if (distance >= 8)
        for (; to < end; to += 8, from += 8)
            memcpy(to, from, 8);
    else if (distance == 1)
        memset(to, *from, length);
    else
        while (to < end)
            *to++ = *from++;
}

/* Decodes with all state in local variables. Stops close to the end of input or output, and before
   rare or invalid codes, which the careful loop handles. Returns true at the end of the block. */
static bool dvti_inflate_fast(dvti_inflater *s) {
    const uint16_t *literals = s->literal.lookup, *distances = s->distance.lookup;
    const unsigned char *in = s->in;
    unsigned char *out = s->out + s->n, *start = s->out + s->start;
    uint64_t bits = s->bits;
    int n_bits = s->n_bits;
    bool ended = false;
    while (s->end - in >= DVTI_FAST_IN &&
           (size_t)(s->out + DVTI_INFLATE_SPACE - out) >= DVTI_FAST_OUT) {
        unsigned entry, code, literal = 0, distance;
        size_t length;
        DVTI_FILL;
        /* Three literals take at most 33 bits. */
        entry = literals[DVTI_LOW(DVTI_LOOKUP_BITS)];
        while (entry - 1 < 256 * 16 - 1 && literal++ < 3) {
            *out++ = (unsigned char)(entry >> 4);
            DVTI_DROP(entry & 15);
            entry = literals[DVTI_LOW(DVTI_LOOKUP_BITS)];
        }
        if (entry - 1 < 256 * 16 - 1)
            continue;
        if (entry == 0 || entry >> 4 > 285)
            break;
        if (entry >> 4 == 256) {
            DVTI_DROP(entry & 15);
            ended = true;
            break;
        }
        DVTI_FILL; /* needs 11 + 5 + 11 + 13 bits */
        {
            uint64_t kept_bits = bits;
            int kept = n_bits;
            DVTI_DROP(entry & 15);
            code = (entry >> 4) - 257;
            length = dvti_length_base[code] + DVTI_LOW(dvti_length_extra[code]);
            DVTI_DROP(dvti_length_extra[code]);
            entry = distances[DVTI_LOW(DVTI_LOOKUP_BITS)];
            code = entry >> 4;
            distance = 0;
            if (entry && code < 30) {
                DVTI_DROP(entry & 15);
                distance = dvti_distance_base[code] + DVTI_LOW(dvti_distance_extra[code]);
                DVTI_DROP(dvti_distance_extra[code]);
            }
            if (distance == 0 || distance > (size_t)(out - start)) {
                bits = kept_bits; /* the careful loop decodes the length again */
                n_bits = kept;
                break;
            }
        }
        dvti_copy_fast(out, distance, length);
        out += length;
    }
    s->in = in;
    s->bits = bits;
    s->n_bits = n_bits;
    s->n = (size_t)(out - s->out);
    return ended;
}

#undef DVTI_FAST_IN
#undef DVTI_FAST_OUT
#undef DVTI_FILL
#undef DVTI_DROP
#undef DVTI_LOW

/* Decodes literals up to a match, and the match; then the fast loop may continue. Stops at the end
   of the block, or when the output is full. */
static bool dvti_inflate_codes(dvti_inflater *s) {
    while (dvti_inflate_space(s)) {
        int symbol = 0;
        if (dvti_inflate_fast(s)) {
            s->block = DVTI_INFLATE_NONE;
            return true;
        }
        while (symbol < 256 && dvti_inflate_space(s)) {
            if (s->n_bits < DVTI_MAX_CODE)
                dvti_refill(s);
            symbol = dvti_decode(s, &s->literal);
            if (symbol < 0)
                return false;
            if (symbol < 256)
                s->out[s->n++] = (unsigned char)symbol;
        }
        if (symbol == 256) {
            s->block = DVTI_INFLATE_NONE;
            return true;
        }
        if (symbol > 256 && !dvti_inflate_match(s, symbol))
            return false;
    }
    return true;
}

static bool dvti_inflate_stored(dvti_inflater *s) {
    while (s->stored) {
        size_t n = DVTI_INFLATE_SPACE - s->n, ready;
        if (!n)
            return true;
        if (s->in == s->end && !dvti_inflate_input(s, 1))
            return dvti_inflate_fail(s, "it ends in the middle");
        ready = (size_t)(s->end - s->in);
        n = DVTI_MIN(n, DVTI_MIN(ready, (size_t)s->stored));
        memcpy(s->out + s->n, s->in, n);
        s->in += n;
        s->n += n;
        s->stored -= (unsigned)n;
    }
    s->block = DVTI_INFLATE_NONE;
    return true;
}

static bool dvti_inflate_begin_stored(dvti_inflater *s) {
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
    s->stored = length;
    s->block = DVTI_INFLATE_STORED;
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

/* Reads the code lengths of both tables, which are themselves Huffman-coded. */
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

static bool dvti_inflate_begin_block(dvti_inflater *s) {
    unsigned type;
    s->last = dvti_take_bits(s, 1) != 0;
    type = dvti_take_bits(s, 2);
    if (s->wrong)
        return false;
    if (type == 3)
        return dvti_inflate_fail(s, "it has a block of no known type");
    if (type == 0)
        return dvti_inflate_begin_stored(s);
    s->block = DVTI_INFLATE_CODES;
    if (type == 2)
        return dvti_dynamic_codes(s);
    dvti_fixed_codes(s);
    return true;
}

DVTI_FN void dvti_inflate_begin(dvti_inflater *s) {
    s->bits = 0;
    s->n_bits = 0;
    s->block = DVTI_INFLATE_NONE;
    s->last = false;
    s->start = s->n;
}

DVTI_FN bool dvti_inflate(dvti_inflater *s, bool *ended) {
    bool ok = true;
    *ended = false;
    s->in = s->raw->at;
    s->end = s->raw->ready ? s->in + s->raw->ready : s->in;
    while (ok && !*ended && dvti_inflate_space(s)) {
        if (s->block == DVTI_INFLATE_STORED)
            ok = dvti_inflate_stored(s);
        else if (s->block == DVTI_INFLATE_CODES)
            ok = dvti_inflate_codes(s);
        else if (!s->last)
            ok = dvti_inflate_begin_block(s);
        else {
            dvti_align(s);
            *ended = true;
        }
    }
    dvti_inflate_sync(s);
    return ok && !s->wrong;
}

#undef DVTI_MAX_CODE
#undef DVTI_LOOKUP_BITS
