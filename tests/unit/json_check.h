/* Checks that a text is JSON (RFC 8259), with a reader of its own. */
#ifndef JSON_CHECK_H
#define JSON_CHECK_H
#include <ctype.h>
#include <string.h>

static const char *json_value(const char *at);

static const char *json_blank(const char *at) {
    while (at && *at && strchr(" \t\r\n", *at))
        at++;
    return at;
}

static const char *json_text(const char *at) {
    if (!at || *at++ != '"')
        return NULL;
    for (; *at != '"'; at++) {
        if ((unsigned char)*at < 0x20)
            return NULL;
        if (*at == '\\' && !strchr("\"\\/bfnrtu", *++at))
            return NULL;
    }
    return at + 1;
}

static const char *json_members(const char *at, char end, int named) {
    at = json_blank(at + 1);
    if (*at == end)
        return at + 1;
    for (;;) {
        if (named) {
            at = json_blank(json_text(json_blank(at)));
            if (!at || *at++ != ':')
                return NULL;
        }
        at = json_blank(json_value(json_blank(at)));
        if (!at || (*at != ',' && *at != end))
            return NULL;
        if (*at++ == end)
            return at;
    }
}

/* Returns the end of the value, or NULL when it is none. */
static const char *json_value(const char *at) {
    const char *begin = at;
    if (!at || !*at)
        return NULL;
    if (*at == '{')
        return json_members(at, '}', 1);
    if (*at == '[')
        return json_members(at, ']', 0);
    if (*at == '"')
        return json_text(at);
    if (strncmp(at, "true", 4) == 0 || strncmp(at, "null", 4) == 0)
        return at + 4;
    if (strncmp(at, "false", 5) == 0)
        return at + 5;
    at += *at == '-';
    if (!isdigit((unsigned char)*at) || (at[0] == '0' && isdigit((unsigned char)at[1])))
        return NULL;
    while (*at && strchr("0123456789.eE+-", *at))
        at++;
    return at > begin ? at : NULL;
}

static int json_whole(const char *text) {
    const char *end = json_blank(json_value(json_blank(text)));
    return end && !*end;
}

#endif
