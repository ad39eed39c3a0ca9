/* Text for messages and tables, and environment values. */
#include "1_base/dvt_base.h"

DVTI_FN dvti_text dvti_text_begin(char *buffer, size_t size) {
    dvti_text text;
    text.at = buffer;
    text.size = buffer ? size : 0;
    text.length = 0;
    if (text.size)
        buffer[0] = 0;
    return text;
}

DVTI_FN void dvti_text_add(dvti_text *text, const char *format, ...) {
    size_t space = text->size > text->length ? text->size - text->length : 0;
    va_list args;
    int written;
    va_start(args, format);
    written = vsnprintf(space ? text->at + text->length : NULL, space, format, args);
    va_end(args);
    if (written > 0)
        text->length += (size_t)written;
}

DVTI_FN void dvti_text_char(dvti_text *text, char c, int64_t times) {
    for (; times > 0; times--) {
        if (text->length + 1 < text->size) {
            text->at[text->length] = c;
            text->at[text->length + 1] = 0;
        }
        text->length++;
    }
}

DVTI_FN char *dvti_name_buffer(void) {
    static DVTI_TLS char ring[16][DVTI_NAME_SIZE];
    static DVTI_TLS unsigned next;
    return ring[next++ % 16];
}

DVTI_FN const char *dvti_range_text(int64_t low, int64_t high) {
    char *buffer;
    if (high < low)
        return "none, since it is empty";
    buffer = dvti_name_buffer();
    snprintf(buffer, DVTI_NAME_SIZE, "%lld to %lld", (long long)low, (long long)high);
    return buffer;
}

DVTI_FN const char *dvti_shape_text(dvt_shape shape) {
    char *buffer = dvti_name_buffer();
    dvti_text text = dvti_text_begin(buffer, DVTI_NAME_SIZE);
    int i;
    dvti_text_add(&text, "(");
    for (i = 0; i < shape.ndim && i < DVT_MAX_DIMS; i++)
        dvti_text_add(&text, "%s%lld", i ? ", " : "", (long long)shape.dim[i]);
    if (shape.ndim < 0 || shape.ndim > DVT_MAX_DIMS)
        dvti_text_add(&text, "%s...: %d axes)", shape.ndim < 0 ? "" : ", ", shape.ndim);
    else
        dvti_text_add(&text, shape.ndim == 1 ? ",)" : ")");
    return buffer;
}

DVTI_FN const char *dvti_brief(char *buffer, size_t size, int n,
                               const char *(*name)(const void *user, int i), const void *user) {
    dvti_text text = dvti_text_begin(buffer, size);
    int i, shown = n > 8 ? 6 : n;
    size_t end = 0; /* of the names that fit: none is cut but a long one */
    if (n == 0)
        dvti_text_add(&text, "none");
    for (i = 0; i < shown && end == text.length; i++) {
        dvti_text_add(&text, "%s'%.80s'", i ? ", " : "", name(user, i));
        if (i == 0 || text.length + (i + 1 < n ? 30 : 1) <= size)
            end = text.length;
    }
    if (end == text.length && shown < n) {
        dvti_text_add(&text, ", ..., '%.80s' (%d in all)", name(user, n - 1), n);
        if (text.length < size)
            end = text.length;
    }
    if (n > 0 && end < text.length) {
        text.length = end;
        dvti_text_add(&text, ", ... (%d in all)", n);
    }
    return buffer;
}

static const char *dvti_brief_item(const void *user, int i) {
    return ((const char *const *)user)[i];
}

DVTI_FN const char *dvti_brief_names(char *buffer, size_t size, int n, const char *const *names) {
    return dvti_brief(buffer, size, n, dvti_brief_item, (const void *)names);
}

DVTI_FN size_t dvti_path_directory(const char *path) {
    size_t n = strlen(path);
#if defined(_WIN32)
    while (n > 0 && path[n - 1] != '/' && path[n - 1] != '\\')
        n--;
#else
    while (n > 0 && path[n - 1] != '/')
        n--;
#endif
    return n;
}

/* A set-user-id program must ignore the environment of its caller. */
DVTI_FN const char *dvti_env(const char *name) {
    const char *value;
#if defined(__linux__) && defined(AT_SECURE)
    if (getauxval(AT_SECURE))
        return NULL;
#endif
    value = getenv(name);
    return value && value[0] ? value : NULL;
}

DVTI_FN int64_t dvti_env_int(const char *name, int64_t low, int64_t high, int64_t fallback) {
    const char *value = dvti_env(name);
    char *end;
    long long number;
    if (!value)
        return fallback;
    errno = 0;
    number = strtoll(value, &end, 10);
    if (errno || end == value || *end || number < low || number > high) {
        dvti_log(DVT_LOG_WARNING, "%s=%s is not a whole number of %lld..%lld; %lld is used", name,
                 value, (long long)low, (long long)high, (long long)fallback);
        return fallback;
    }
    return number;
}

DVTI_FN int64_t dvti_parse_bytes(const char *text) {
    char *end;
    long long number;
    int64_t unit = 1, bytes;
    errno = 0;
    number = strtoll(text, &end, 10);
    if (errno || end == text || number < 0)
        return -1;
    if (*end == 'K' || *end == 'k')
        unit = 1024;
    else if (*end == 'M' || *end == 'm')
        unit = 1024 * 1024;
    else if (*end == 'G' || *end == 'g')
        unit = (int64_t)1024 * 1024 * 1024;
    if (unit > 1)
        end++;
    if (end[0] == 'i' && end[1] == 'B')
        end += 2;
    else if (end[0] == 'B')
        end++;
    return *end == 0 && dvti_mul(number, unit, &bytes) ? bytes : -1;
}
