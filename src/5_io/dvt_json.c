/* JSON texts from untrusted sources (RFC 8259), read by a cursor. Memory holds only the latest
   string or number. Strings are checked as UTF-8, and their escapes are replaced. Values nest 32
   levels deep at most, which also bounds the recursion. */
#include "5_io/dvt_formats.h"

#define DVTI_JSON_DEPTH 32

/* ---- UTF-8 (RFC 3629): shortest forms only, no surrogates, up to U+10FFFF ---- */
DVTI_FN size_t dvti_utf8(const unsigned char *at, size_t n) {
    const unsigned first = at[0];
    size_t length = first < 0x80   ? 1
                    : first < 0xc2 ? 0
                    : first < 0xe0 ? 2
                    : first < 0xf0 ? 3
                    : first < 0xf5 ? 4
                                   : 0,
           i;
    if (length > n)
        return 0;
    for (i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if ((first == 0xe0 && at[1] < 0xa0) || (first == 0xed && at[1] >= 0xa0) ||
        (first == 0xf0 && at[1] < 0x90) || (first == 0xf4 && at[1] >= 0x90))
        return 0;
    return length;
}

DVTI_FN bool dvti_utf8_valid(const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    size_t n = strlen(text), length;
    for (; n > 0; at += length, n -= length) {
        length = dvti_utf8(at, n);
        if (length == 0)
            return false;
    }
    return true;
}

/* ---- bytes ---- */
DVTI_FN void dvti_json_begin(dvti_json *json, dvti_source *in, int64_t bytes) {
    memset(json, 0, sizeof *json);
    json->in = in;
    json->left = bytes;
    json->text = dvti_writer_begin();
}

DVTI_FN void dvti_json_free(dvti_json *json) {
    dvti_writer_free(&json->text);
}

static bool dvti_json_wrong(dvti_json *json, const char *why) {
    json->failed = true;
    return dvti_source_wrong(json->in,
                             "it is not JSON: at byte %lld %s; fetch or write the file again",
                             (long long)json->in->taken, why);
}

/* Returns the next byte, -1 at the end. */
static int dvti_json_look(dvti_json *json) {
    if (json->failed || json->left == 0 || !dvti_source_peek(json->in, 1))
        return -1;
    return *json->in->at;
}

static void dvti_json_step(dvti_json *json, size_t n) {
    dvti_source_skip(json->in, (int64_t)n);
    json->left -= (int64_t)n;
}

/* Returns the next byte that is not white space. */
static int dvti_json_next(dvti_json *json) {
    int c = dvti_json_look(json);
    for (; c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = dvti_json_look(json))
        dvti_json_step(json, 1);
    return c;
}

static bool dvti_json_expect(dvti_json *json, char c, const char *why) {
    if (dvti_json_next(json) != c)
        return dvti_json_wrong(json, why);
    dvti_json_step(json, 1);
    return true;
}

/* Ends json->text with a 0 that its length does not count. */
static bool dvti_json_text_end(dvti_json *json) {
    dvti_writer_bytes(&json->text, "", 1);
    if (json->text.failed) {
        dvti_fail_memory(json->in->function, (int64_t)json->text.capacity * 2);
        json->failed = json->in->reported = true;
        return false;
    }
    json->text.length--;
    return true;
}

/* ---- strings ---- */
/* Reads four hexadecimal digits. Returns -1 when they are not there. */
static int dvti_json_hex(dvti_json *json) {
    int value = 0, i;
    for (i = 0; i < 4; i++) {
        int c = dvti_json_look(json);
        if (c >= '0' && c <= '9')
            c -= '0';
        else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
            c = (c | 32) - 'a' + 10;
        else
            return -1;
        value = 16 * value + c;
        dvti_json_step(json, 1);
    }
    return value;
}

/* Reads what follows \u: a character, or the two surrogates of one above U+FFFF. */
static int dvti_json_code(dvti_json *json) {
    int high = dvti_json_hex(json), low;
    if (high < 0xd800 || high > 0xdfff)
        return high;
    if (high > 0xdbff || dvti_json_look(json) != '\\')
        return -1;
    dvti_json_step(json, 1);
    if (dvti_json_look(json) != 'u')
        return -1;
    dvti_json_step(json, 1);
    low = dvti_json_hex(json);
    return low < 0xdc00 || low > 0xdfff ? -1 : 0x10000 + (high - 0xd800) * 0x400 + (low - 0xdc00);
}

static bool dvti_json_escape(dvti_json *json) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    unsigned char at[4];
    const char *found;
    size_t n, i;
    int c;
    dvti_json_step(json, 1); /* the backslash */
    c = dvti_json_look(json);
    found = c > 0 ? strchr(from, c) : NULL;
    if (!found && c != 'u')
        return dvti_json_wrong(json, "is an unknown escape");
    dvti_json_step(json, 1);
    if (found) {
        dvti_writer_bytes(&json->text, to + (found - from), 1);
        return true;
    }
    c = dvti_json_code(json);
    if (c <= 0)
        return dvti_json_wrong(json, c ? "a \\u escape gives no character"
                                       : "a text has a zero character, which C cannot hold");
    n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (i = n - 1; i > 0; i--, c >>= 6)
        at[i] = (unsigned char)(0x80 | (c & 0x3f));
    at[0] = (unsigned char)((n == 1 ? 0 : 0xf00 >> n) | c);
    dvti_writer_bytes(&json->text, at, n);
    return true;
}

/* Reads a string after its first quote. */
static bool dvti_json_quoted(dvti_json *json) {
    const dvti_source *in = json->in;
    json->text.length = 0;
    for (;;) {
        int c = dvti_json_look(json);
        size_t n = 1;
        if (c < 0x20)
            return dvti_json_wrong(json, c < 0 ? "a string does not end"
                                               : "a control character is in a string");
        if (c == '"')
            break;
        if (c == '\\') {
            if (!dvti_json_escape(json))
                return false;
            continue;
        }
        if (c >= 0x80) {
            dvti_source_peek(json->in, 4); /* fewer may remain */
            n = dvti_utf8(in->at, (size_t)DVTI_MIN((int64_t)in->ready, json->left));
            if (n == 0)
                return dvti_json_wrong(json, "a string is not UTF-8");
        }
        dvti_writer_bytes(&json->text, in->at, n);
        dvti_json_step(json, n);
    }
    dvti_json_step(json, 1);
    return dvti_json_text_end(json);
}

/* ---- numbers and words ---- */
/* Appends the next byte to the text if it is one of these. */
static bool dvti_json_take(dvti_json *json, const char *any_of) {
    int c = dvti_json_look(json);
    if (c <= 0 || !strchr(any_of, c))
        return false;
    dvti_writer_bytes(&json->text, json->in->at, 1);
    dvti_json_step(json, 1);
    return true;
}

static bool dvti_json_digits(dvti_json *json) {
    bool any = false;
    while (dvti_json_take(json, "0123456789"))
        any = true;
    return any;
}

static bool dvti_json_number(dvti_json *json) {
    bool good;
    json->text.length = 0;
    dvti_json_take(json, "-");
    good = dvti_json_take(json, "0") || dvti_json_digits(json);
    if (good && dvti_json_take(json, "."))
        good = dvti_json_digits(json);
    if (good && dvti_json_take(json, "eE")) {
        dvti_json_take(json, "+-");
        good = dvti_json_digits(json);
    }
    return good ? dvti_json_text_end(json) : dvti_json_wrong(json, "a digit is missing");
}

static dvti_json_kind dvti_json_word(dvti_json *json, const char *word, dvti_json_kind kind) {
    for (; *word; word++) {
        if (dvti_json_look(json) != *word) {
            dvti_json_wrong(json, "is a word other than true, false and null");
            return DVTI_JSON_WRONG;
        }
        dvti_json_step(json, 1);
    }
    return kind;
}

/* ---- values ---- */
static dvti_json_kind dvti_json_open(dvti_json *json, dvti_json_kind kind) {
    if (json->depth == DVTI_JSON_DEPTH) {
        dvti_json_wrong(json, "more than 32 objects and arrays are open");
        return DVTI_JSON_WRONG;
    }
    json->depth++;
    json->fresh = true;
    dvti_json_step(json, 1);
    return kind;
}

DVTI_FN dvti_json_kind dvti_json_value(dvti_json *json) {
    int c = dvti_json_next(json);
    switch (c) {
    case '{':
        return dvti_json_open(json, DVTI_JSON_OBJECT);
    case '[':
        return dvti_json_open(json, DVTI_JSON_ARRAY);
    case '"':
        dvti_json_step(json, 1);
        return dvti_json_quoted(json) ? DVTI_JSON_STRING : DVTI_JSON_WRONG;
    case 't':
        return dvti_json_word(json, "true", DVTI_JSON_TRUE);
    case 'f':
        return dvti_json_word(json, "false", DVTI_JSON_FALSE);
    case 'n':
        return dvti_json_word(json, "null", DVTI_JSON_NULL);
    default:
        break;
    }
    if (c == '-' || (c >= '0' && c <= '9'))
        return dvti_json_number(json) ? DVTI_JSON_NUMBER : DVTI_JSON_WRONG;
    dvti_json_wrong(json, "a value is missing");
    return DVTI_JSON_WRONG;
}

/* Goes to the next member or item, past the comma that separates it from the one before. */
static bool dvti_json_element(dvti_json *json, char close) {
    int c = dvti_json_next(json);
    bool first = json->fresh;
    json->fresh = false;
    if (c == close) {
        json->depth--;
        dvti_json_step(json, 1);
        return false;
    }
    return first || dvti_json_expect(json, ',', "a comma is missing");
}

DVTI_FN bool dvti_json_member(dvti_json *json) {
    return dvti_json_element(json, '}') && dvti_json_expect(json, '"', "a key is missing") &&
           dvti_json_quoted(json) && dvti_json_expect(json, ':', "a colon is missing");
}

DVTI_FN bool dvti_json_item(dvti_json *json) {
    return dvti_json_element(json, ']');
}

DVTI_FN bool dvti_json_string(dvti_json *json) {
    return dvti_json_expect(json, '"', "a string is missing") && dvti_json_quoted(json);
}

DVTI_FN bool dvti_json_size(dvti_json *json, int64_t *value) {
    const char *at;
    *value = 0;
    if (dvti_json_value(json) != DVTI_JSON_NUMBER)
        return dvti_json_wrong(json, "a number is missing");
    for (at = json->text.at; *at >= '0' && *at <= '9'; at++)
        if (!dvti_mul(*value, 10, value) || !dvti_sum(*value, *at - '0', value))
            return dvti_json_wrong(json, "a number does not fit in 63 bits");
    return *at == 0 ||
           dvti_json_wrong(
               json, "a number has a sign, a fraction or an exponent where a size is expected");
}

DVTI_FN bool dvti_json_skip(dvti_json *json) {
    dvti_json_kind kind = dvti_json_value(json);
    if (kind == DVTI_JSON_OBJECT)
        while (dvti_json_member(json) && dvti_json_skip(json))
            continue;
    else if (kind == DVTI_JSON_ARRAY)
        while (dvti_json_item(json) && dvti_json_skip(json))
            continue;
    return !json->failed;
}

DVTI_FN bool dvti_json_end(dvti_json *json) {
    int c = dvti_json_next(json);
    return (c < 0 && !json->failed && !json->in->reported) ||
           dvti_json_wrong(json, "something follows the end");
}

/* ---- writing ---- */
DVTI_FN void dvti_json_write(dvti_writer *writer, const char *text) {
    char escape[8];
    dvti_writer_text(writer, "\"");
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            dvti_writer_text(writer, "\\");
        if (c >= 0x20)
            dvti_writer_bytes(writer, text, 1);
        else {
            snprintf(escape, sizeof escape, "\\u%04x", c);
            dvti_writer_text(writer, escape);
        }
    }
    dvti_writer_text(writer, "\"");
}

#undef DVTI_JSON_DEPTH
