/* Compresses to deflate (RFC 1951), optionally inside zlib (RFC 1950). Input is cut into blocks of
   32 KiB. Matches reach into the block before. Hash chains find them, and a match is dropped when
   the next position has a longer one. Every block gets the smallest of three forms: stored, fixed
   codes, own codes.

   window: | the block before | this block |   0, 32768, 65536 */
#include "5_io/dvt_formats.h"

#define DVTI_DEFLATE_BLOCK 32768 /* also the maximum distance of a match */
#define DVTI_DEFLATE_OUT 16384
#define DVTI_DEFLATE_HASH 15
#define DVTI_DEFLATE_TRIES 64 /* candidates of one position */
#define DVTI_DEFLATE_LAZY 32  /* matches of this length are taken at once */
#define DVTI_DEFLATE_LONGEST 258
#define DVTI_DEFLATE_FAR 4096 /* from farther away, 3 bytes are shorter as they are */

typedef struct dvti_codes {
    uint16_t code[288]; /* the first bit is the lowest */
    unsigned char length[288];
} dvti_codes;

struct dvti_deflater {
    dvti_sink sink;
    void *user;
    bool zlib;
    uint32_t adler;
    uint64_t bits;
    int n_bits;
    size_t n_out;
    int64_t written;   /* bytes given to sink */
    size_t begin, end; /* the block in the window */
    size_t hashed;     /* positions before this one are in the chains */
    uint16_t base;     /* of positions, modulo 65536: the place of window[0] in the input */
    int n_tokens;
    int64_t extra;         /* extra bits of the block's matches */
    uint32_t literal[286]; /* frequencies; also of lengths */
    uint32_t distance[30];
    uint16_t head[1 << DVTI_DEFLATE_HASH]; /* the last position with a hash */
    uint16_t prev[DVTI_DEFLATE_BLOCK];     /* the one before, by position modulo 32768 */
    uint32_t token[DVTI_DEFLATE_BLOCK];    /* a byte, or distance << 9 | length */
    unsigned char window[2 * DVTI_DEFLATE_BLOCK];
    unsigned char out[DVTI_DEFLATE_OUT];
};

/* ---- bits ---- */
static void dvti_deflate_flush(dvti_deflater *s) {
    if (s->n_out)
        s->sink(s->user, s->out, s->n_out);
    s->written += (int64_t)s->n_out;
    s->n_out = 0;
}

static void dvti_deflate_put(dvti_deflater *s, unsigned value, int n) {
    s->bits |= (uint64_t)value << s->n_bits;
    for (s->n_bits += n; s->n_bits >= 8; s->n_bits -= 8) {
        s->out[s->n_out++] = (unsigned char)s->bits;
        s->bits >>= 8;
        if (s->n_out == DVTI_DEFLATE_OUT)
            dvti_deflate_flush(s);
    }
}

static void dvti_deflate_align(dvti_deflater *s) {
    dvti_deflate_put(s, 0, -s->n_bits & 7);
}

/* ---- matches ---- */
static unsigned dvti_deflate_hash(const unsigned char *at) {
    uint32_t three = (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16;
    return three * 0x9e3779b1u >> (32 - DVTI_DEFLATE_HASH);
}

/* Adds the positions before `until` to the chains. The last two of a block wait for the next. */
static void dvti_deflate_insert(dvti_deflater *s, size_t until) {
    for (; s->hashed < until && s->hashed + 3 <= s->end; s->hashed++) {
        uint16_t place = (uint16_t)(s->base + s->hashed);
        uint16_t *head = &s->head[dvti_deflate_hash(s->window + s->hashed)];
        s->prev[place % DVTI_DEFLATE_BLOCK] = *head;
        *head = place;
    }
}

/* Returns the length of the longest match at `at`; 0: none of 3 bytes or more. Chains may hold
   positions that the window has left; their distances are too large or do not grow. Every candidate
   is compared, so a position that aliases a new one does no harm. */
static unsigned dvti_deflate_match(dvti_deflater *s, size_t at, unsigned *distance) {
    size_t most = DVTI_MIN(s->end - at, (size_t)DVTI_DEFLATE_LONGEST), best = 2, last = 0;
    const unsigned char *here = s->window + at;
    uint16_t place = (uint16_t)(s->base + at), candidate;
    int tries;
    *distance = 0;
    dvti_deflate_insert(s, at);
    if (most < 3)
        return 0;
    candidate = s->head[dvti_deflate_hash(here)];
    for (tries = 0; tries < DVTI_DEFLATE_TRIES && best < most; tries++) {
        size_t back = (uint16_t)(place - candidate), n = 0;
        const unsigned char *there;
        if (back <= last || back > at || back > DVTI_DEFLATE_BLOCK)
            break;
        there = here - back;
        if (there[best] == here[best])
            while (n < most && there[n] == here[n])
                n++;
        if (n > best && (n > 3 || back <= DVTI_DEFLATE_FAR)) {
            best = n;
            *distance = (unsigned)back;
        }
        last = back;
        candidate = s->prev[candidate % DVTI_DEFLATE_BLOCK];
    }
    return best > 2 ? (unsigned)best : 0;
}

/* Returns the symbol of a number by its leading bits: the exponent, and `keep` bits after the first
   one. The lower *extra bits follow as they are. */
static unsigned dvti_deflate_symbol(unsigned value, int keep, int *extra) {
    int k = 0;
    while (value >> (k + keep + 1))
        k++;
    *extra = k;
    return ((unsigned)k << keep) + (value >> k);
}

static unsigned dvti_deflate_length_symbol(unsigned length, int *extra) {
    *extra = 0;
    return length == DVTI_DEFLATE_LONGEST ? 285 : 257 + dvti_deflate_symbol(length - 3, 2, extra);
}

/* Appends a byte (distance 0) or a match. */
static void dvti_deflate_token(dvti_deflater *s, unsigned value, unsigned distance) {
    int extra;
    s->token[s->n_tokens++] = distance << 9 | value;
    if (!distance) {
        s->literal[value]++;
        return;
    }
    s->literal[dvti_deflate_length_symbol(value, &extra)]++;
    s->extra += extra;
    s->distance[dvti_deflate_symbol(distance - 1, 1, &extra)]++;
    s->extra += extra;
}

static void dvti_deflate_parse(dvti_deflater *s) {
    size_t at = s->begin;
    s->n_tokens = 0;
    s->extra = 0;
    memset(s->literal, 0, sizeof s->literal);
    memset(s->distance, 0, sizeof s->distance);
    s->literal[256] = 1; /* the end of the block */
    while (at < s->end) {
        unsigned distance, next_distance, next, length = dvti_deflate_match(s, at, &distance);
        while (length && length < DVTI_DEFLATE_LAZY) {
            next = dvti_deflate_match(s, at + 1, &next_distance);
            if (next <= length)
                break;
            dvti_deflate_token(s, s->window[at++], 0);
            length = next;
            distance = next_distance;
        }
        dvti_deflate_token(s, length ? length : s->window[at], distance);
        at += length ? length : 1;
    }
    dvti_deflate_insert(s, s->end);
}

/* ---- codes ---- */
static int dvti_deflate_compare(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Counts the code lengths of a Huffman tree of n symbols in ascending order of weight (the high
   bits). Lengths above `most` count as `most`. */
static void dvti_deflate_tree(const uint32_t *sorted, int n, int most, int *count) {
    uint32_t weight[2 * 288];
    uint16_t parent[2 * 288];
    int depth[2 * 288], leaf = 0, node = n, made, i;
    for (i = 0; i < n; i++)
        weight[i] = sorted[i] >> 9;
    for (made = n; made < 2 * n - 1; made++) {
        weight[made] = 0;
        for (i = 0; i < 2; i++) { /* the two lightest; nodes are made in ascending order */
            bool is_leaf = leaf < n && (node == made || weight[leaf] <= weight[node]);
            int child = is_leaf ? leaf++ : node++;
            weight[made] += weight[child];
            parent[child] = (uint16_t)made;
        }
    }
    depth[2 * n - 2] = 0;
    for (i = 2 * n - 3; i >= 0; i--) {
        depth[i] = depth[parent[i]] + 1;
        if (i < n)
            count[DVTI_MIN(depth[i], most)]++;
    }
}

/* Chooses codes of at most `most` bits for n symbols. At least two get one, because some decoders
   refuse a tree of a single leaf. */
static void dvti_deflate_choose(dvti_codes *codes, const uint32_t *frequency, int n, int most) {
    uint32_t sorted[288];
    int count[16], used = 0, i, bits, at = 0;
    int64_t space = 0;
    memset(count, 0, sizeof count);
    memset(codes->length, 0, sizeof codes->length);
    for (i = 0; i < n; i++)
        if (frequency[i])
            sorted[used++] = frequency[i] << 9 | (uint32_t)i;
    for (i = 0; used < 2; i++)
        if (!frequency[i])
            sorted[used++] = (uint32_t)i;
    qsort(sorted, (size_t)used, sizeof *sorted, dvti_deflate_compare);
    dvti_deflate_tree(sorted, used, most, count);
    /* Shortened codes exceed the space. A longest code moves below a shorter one, as its sibling,
       until they fit. */
    for (bits = 1; bits <= most; bits++)
        space += (int64_t)count[bits] << (most - bits);
    for (; space > (int64_t)1 << most; space--) {
        for (bits = most - 1; !count[bits]; bits--)
            continue;
        count[bits]--;
        count[bits + 1] += 2;
        count[most]--;
    }
    for (bits = most; bits > 0; bits--)
        for (; count[bits]; count[bits]--)
            codes->length[sorted[at++] & 511] = (unsigned char)bits;
}

/* Numbers the codes: by length, then by symbol. */
static void dvti_deflate_number(dvti_codes *codes, int n) {
    unsigned count[16], next[16], code = 0;
    int i, bits;
    memset(count, 0, sizeof count);
    for (i = 0; i < n; i++)
        count[codes->length[i]]++;
    count[0] = 0;
    for (bits = 1; bits < 16; bits++) {
        code = (code + count[bits - 1]) << 1;
        next[bits] = code;
    }
    for (i = 0; i < n; i++) {
        unsigned reversed = 0, rest;
        if (!codes->length[i])
            continue;
        rest = next[codes->length[i]]++;
        for (bits = 0; bits < codes->length[i]; bits++, rest >>= 1)
            reversed = reversed << 1 | (rest & 1);
        codes->code[i] = (uint16_t)reversed;
    }
}

static int64_t dvti_deflate_cost(const dvti_codes *codes, const uint32_t *frequency, int n) {
    int64_t bits = 0;
    int i;
    for (i = 0; i < n; i++)
        bits += (int64_t)frequency[i] * codes->length[i];
    return bits;
}

/* ---- the code lengths of a block ---- */
/* Code lengths as they are sent: themselves, or 16 to 18 for runs, with `extra` more bits. */
typedef struct dvti_lengths {
    int literals, distances, order; /* how many are sent */
    int n;
    unsigned char symbol[288 + 32], value[288 + 32];
    uint32_t frequency[19];
    dvti_codes codes;
    int64_t bits; /* the whole header of the block */
} dvti_lengths;

static const unsigned char dvti_deflate_order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                     11, 4,  12, 3, 13, 2, 14, 1, 15};

static int dvti_deflate_run_bits(unsigned symbol) {
    return symbol < 16 ? 0 : symbol == 16 ? 2 : symbol == 17 ? 3 : 7;
}

static void dvti_deflate_runs(dvti_lengths *to, const unsigned char *length, int n) {
    int i, run;
    for (i = 0; i < n; i += run) {
        unsigned symbol = length[i], value = 0;
        for (run = 1; run < 138 && i + run < n && length[i + run] == length[i]; run++)
            continue;
        if (length[i] == 0 && run >= 3) {
            symbol = run < 11 ? 17 : 18;
            value = (unsigned)run - (run < 11 ? 3 : 11);
        } else if (i > 0 && length[i] == length[i - 1] && run >= 3) {
            run = DVTI_MIN(run, 6);
            symbol = 16;
            value = (unsigned)run - 3;
        } else
            run = 1;
        to->symbol[to->n] = (unsigned char)symbol;
        to->value[to->n++] = (unsigned char)value;
        to->frequency[symbol]++;
    }
}

static void dvti_deflate_plan(dvti_lengths *to, const dvti_codes *literal,
                              const dvti_codes *distance) {
    unsigned char both[288 + 32];
    int i;
    memset(to, 0, sizeof *to);
    for (to->literals = 286; !literal->length[to->literals - 1]; to->literals--)
        continue;
    for (to->distances = 30; to->distances > 1 && !distance->length[to->distances - 1];)
        to->distances--;
    memcpy(both, literal->length, (size_t)to->literals);
    memcpy(both + to->literals, distance->length, (size_t)to->distances);
    dvti_deflate_runs(to, both, to->literals + to->distances);
    dvti_deflate_choose(&to->codes, to->frequency, 19, 7);
    dvti_deflate_number(&to->codes, 19);
    for (to->order = 19; !to->codes.length[dvti_deflate_order[to->order - 1]]; to->order--)
        continue;
    to->order = DVTI_MAX(to->order, 4);
    to->bits = 14 + 3 * to->order + dvti_deflate_cost(&to->codes, to->frequency, 19);
    for (i = 16; i < 19; i++)
        to->bits += (int64_t)to->frequency[i] * dvti_deflate_run_bits((unsigned)i);
}

static void dvti_deflate_put_lengths(dvti_deflater *s, const dvti_lengths *lengths) {
    int i;
    dvti_deflate_put(s, (unsigned)lengths->literals - 257, 5);
    dvti_deflate_put(s, (unsigned)lengths->distances - 1, 5);
    dvti_deflate_put(s, (unsigned)lengths->order - 4, 4);
    for (i = 0; i < lengths->order; i++)
        dvti_deflate_put(s, lengths->codes.length[dvti_deflate_order[i]], 3);
    for (i = 0; i < lengths->n; i++) {
        unsigned symbol = lengths->symbol[i];
        dvti_deflate_put(s, lengths->codes.code[symbol], lengths->codes.length[symbol]);
        dvti_deflate_put(s, lengths->value[i], dvti_deflate_run_bits(symbol));
    }
}

/* ---- blocks ---- */
static void dvti_deflate_fixed(dvti_codes *literal, dvti_codes *distance) {
    int i;
    for (i = 0; i < 288; i++)
        literal->length[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    memset(distance->length, 0, sizeof distance->length);
    memset(distance->length, 5, 32);
}

static void dvti_deflate_put_tokens(dvti_deflater *s, const dvti_codes *literal,
                                    const dvti_codes *distance) {
    int i, extra;
    for (i = 0; i < s->n_tokens; i++) {
        unsigned value = s->token[i] & 511, back = s->token[i] >> 9, symbol = value;
        if (!back) {
            dvti_deflate_put(s, literal->code[symbol], literal->length[symbol]);
            continue;
        }
        symbol = dvti_deflate_length_symbol(value, &extra);
        dvti_deflate_put(s, literal->code[symbol], literal->length[symbol]);
        dvti_deflate_put(s, (value - 3) & ((1u << extra) - 1), extra);
        symbol = dvti_deflate_symbol(back - 1, 1, &extra);
        dvti_deflate_put(s, distance->code[symbol], distance->length[symbol]);
        dvti_deflate_put(s, (back - 1) & ((1u << extra) - 1), extra);
    }
    dvti_deflate_put(s, literal->code[256], literal->length[256]);
}

static void dvti_deflate_put_stored(dvti_deflater *s) {
    unsigned n = (unsigned)(s->end - s->begin);
    size_t i;
    dvti_deflate_align(s);
    dvti_deflate_put(s, n, 16);
    dvti_deflate_put(s, n ^ 0xffffu, 16);
    for (i = s->begin; i < s->end; i++)
        dvti_deflate_put(s, s->window[i], 8);
}

/* Writes the block in its smallest form. */
static void dvti_deflate_block(dvti_deflater *s, bool last) {
    dvti_codes literal, distance, fixed_literal, fixed_distance;
    dvti_lengths lengths;
    int64_t own, fixed, stored = 8 * (int64_t)(s->end - s->begin) + 32 + 7;
    dvti_deflate_parse(s);
    dvti_deflate_choose(&literal, s->literal, 286, 15);
    dvti_deflate_choose(&distance, s->distance, 30, 15);
    dvti_deflate_plan(&lengths, &literal, &distance);
    dvti_deflate_fixed(&fixed_literal, &fixed_distance);
    own = lengths.bits + dvti_deflate_cost(&literal, s->literal, 286) +
          dvti_deflate_cost(&distance, s->distance, 30) + s->extra;
    fixed = dvti_deflate_cost(&fixed_literal, s->literal, 286) +
            dvti_deflate_cost(&fixed_distance, s->distance, 30) + s->extra;
    dvti_deflate_put(s, last, 1);
    if (stored < own && stored < fixed) {
        dvti_deflate_put(s, 0, 2);
        dvti_deflate_put_stored(s);
    } else if (fixed <= own) {
        dvti_deflate_put(s, 1, 2);
        dvti_deflate_number(&fixed_literal, 288);
        dvti_deflate_number(&fixed_distance, 32);
        dvti_deflate_put_tokens(s, &fixed_literal, &fixed_distance);
    } else {
        dvti_deflate_put(s, 2, 2);
        dvti_deflate_put_lengths(s, &lengths);
        dvti_deflate_number(&literal, 286);
        dvti_deflate_number(&distance, 30);
        dvti_deflate_put_tokens(s, &literal, &distance);
    }
}

/* Makes the full block the one before, and begins the next. */
static void dvti_deflate_next(dvti_deflater *s) {
    dvti_deflate_block(s, false);
    if (s->end == 2 * DVTI_DEFLATE_BLOCK) {
        memmove(s->window, s->window + DVTI_DEFLATE_BLOCK, DVTI_DEFLATE_BLOCK);
        s->hashed -= DVTI_DEFLATE_BLOCK;
        s->base = (uint16_t)(s->base + DVTI_DEFLATE_BLOCK);
    }
    s->begin = s->end = DVTI_DEFLATE_BLOCK;
}

DVTI_FN dvti_deflater *dvti_deflate_begin(const char *function, bool zlib, dvti_sink sink,
                                          void *user) {
    dvti_deflater *s = (dvti_deflater *)dvti_alloc_zero(sizeof *s);
    if (!s) {
        dvti_fail_memory(function, (int64_t)sizeof *s);
        return NULL;
    }
    s->sink = sink;
    s->user = user;
    s->zlib = zlib;
    s->adler = 1;
    if (zlib) {
        dvti_deflate_put(s, 0x78, 8); /* deflate with a window of 32 KiB */
        dvti_deflate_put(s, 0x9c, 8); /* usual compression; makes both a multiple of 31 */
    }
    return s;
}

DVTI_FN void dvti_deflate(dvti_deflater *s, const void *bytes, size_t n) {
    const unsigned char *at = (const unsigned char *)bytes;
    if (s->zlib)
        s->adler = dvti_adler_more(s->adler, bytes, n);
    while (n) {
        size_t step = DVTI_MIN(n, s->begin + DVTI_DEFLATE_BLOCK - s->end);
        memcpy(s->window + s->end, at, step);
        s->end += step;
        at += step;
        n -= step;
        if (s->end == s->begin + DVTI_DEFLATE_BLOCK)
            dvti_deflate_next(s);
    }
}

DVTI_FN int64_t dvti_deflate_end(dvti_deflater *s) {
    int64_t written;
    int shift;
    dvti_deflate_block(s, true);
    dvti_deflate_align(s);
    for (shift = 24; s->zlib && shift >= 0; shift -= 8)
        dvti_deflate_put(s, s->adler >> shift & 255, 8);
    dvti_deflate_flush(s);
    written = s->written;
    dvti_free(s);
    return written;
}

#undef DVTI_DEFLATE_BLOCK
#undef DVTI_DEFLATE_OUT
#undef DVTI_DEFLATE_HASH
#undef DVTI_DEFLATE_TRIES
#undef DVTI_DEFLATE_LAZY
#undef DVTI_DEFLATE_LONGEST
#undef DVTI_DEFLATE_FAR
