/* Text from outside: sizes with suffixes, integers in the environment, names of contexts and
   dtypes. Each is compared with a second parser of the same rule. */
#include "fuzz.h"

/* Parses digits with an optional sign after blanks; -1: none, or too many. */
static int number(const char **at, long long *value) {
    int digits = 0, negative;
    while (**at == ' ' || (**at >= '\t' && **at <= '\r'))
        ++*at;
    negative = **at == '-';
    *at += **at == '-' || **at == '+';
    for (*value = 0; **at >= '0' && **at <= '9'; ++*at, digits++)
        if (__builtin_mul_overflow(*value, 10LL, value) ||
            __builtin_add_overflow(*value, negative ? '0' - **at : **at - '0', value))
            return -1;
    return digits ? negative : -1;
}

static int64_t bytes_of(const char *text) {
    long long value;
    int shift = 0, sign = number(&text, &value);
    if (sign < 0 || value < 0)
        return -1;
    switch (*text | 32) {
    case 'k':
        shift = 10;
        break;
    case 'm':
        shift = 20;
        break;
    case 'g':
        shift = 30;
        break;
    default:
        break;
    }
    text += shift > 0;
    text += strncmp(text, "iB", 2) == 0 ? 2 : *text == 'B';
    return *text || value > (INT64_MAX >> shift) ? -1 : (int64_t)value << shift;
}

DVT_FUZZ(text) {
    char text[200];
    const char *at = text;
    long long value;
    dvt_ctx ctx, again;
    dvt_dtype dtype;
    int negative;
    if (size >= sizeof text)
        return 0;
    fuzz_begin();
    memcpy(text, data, size);
    text[size] = 0;
    FUZZ_CHECK(dvti_parse_bytes(text) == bytes_of(text));
    setenv("DVT_FUZZ_TEXT", text, 1);
    negative = number(&at, &value);
    FUZZ_CHECK(dvti_env_int("DVT_FUZZ_TEXT", -5, 100000, 77) ==
               (negative >= 0 && !*at && value >= -5 && value <= 100000 ? value : 77));
    if (dvt_ctx_parse(text, &ctx) == DVT_OK) {
        FUZZ_CHECK(dvt_ctx_parse(dvt_ctx_name(ctx), &again) == DVT_OK);
        FUZZ_CHECK(dvt_ctx_equal(ctx, again));
    } else
        FUZZ_CHECK(dvt_error_code() == DVT_ERR_NAME);
    dvt_clear_error();
    if (dvt_dtype_parse(text, &dtype) == DVT_OK)
        FUZZ_CHECK((int)dtype >= 0 && dtype < DVT_DTYPE_COUNT);
    fuzz_end();
    return 0;
}
