/* PTX text to tokens. A word that starts with a percent sign includes a joined dotted part: %tid.x
   is one word. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ptx.h"

void ptx_syntax(ptx_parser *p, const char *what) {
    const char *start = p->token.start ? p->token.start : p->at;
    int length = (int)strcspn(start, "\n");
    ptx_error(p->context, "PTX line %d: %s at \"%.*s\"%s%s", p->token.line, what,
              length > 120 ? 120 : length, start, p->function ? " in " : "",
              p->function ? p->function->name : "");
    ptx_leave(p->context, PTX_UNSUPPORTED);
}

static void skip_blank(ptx_parser *p) {
    for (;; p->at++) {
        if (*p->at == '\n')
            p->line++;
        else if (p->at[0] == '/' && p->at[1] == '/')
            p->at += strcspn(p->at, "\n") - 1;
        else if (p->at[0] == '/' && p->at[1] == '*') {
            const char *end = strstr(p->at + 2, "*/");
            if (!end)
                ptx_syntax(p, "a comment without an end");
            for (; p->at < end + 1; p->at++)
                p->line += *p->at == '\n';
        } else if (!isspace((unsigned char)*p->at))
            return;
    }
}

static size_t word_length(const char *s) {
    size_t n = 0;
    while (isalnum((unsigned char)s[n]) || s[n] == '_' || s[n] == '$')
        n++;
    return n;
}

/* Returns the length of a dotted word; ".L1::no_allocate" is one. */
static size_t dot_length(const char *s) {
    size_t n = 1 + word_length(s + 1);
    while (s[n] == ':' && s[n + 1] == ':')
        n += 2 + word_length(s + n + 2);
    return n;
}

static void lex_number(ptx_parser *p, ptx_token *t) {
    const char *s = p->at;
    char *end;
    t->kind = PTX_NUMBER;
    t->number = PTX_OP_INTEGER;
    errno = 0;
    if (s[0] == '0' && strchr("fFdD", s[1]) && s[1]) {
        int is_float = s[1] == 'f' || s[1] == 'F';
        size_t digits = is_float ? 8 : 16;
        char hex[17] = "";
        strncpy(hex, s + 2, digits);
        t->value = strtoull(hex, &end, 16);
        if (end != hex + digits)
            ptx_syntax(p, "a float constant with too few digits");
        t->number = is_float ? PTX_OP_F32 : PTX_OP_F64;
        end = (char *)s + 2 + digits;
    } else {
        int binary = s[0] == '0' && (s[1] == 'b' || s[1] == 'B');
        t->value = strtoull(binary ? s + 2 : s, &end, binary ? 2 : 0);
        int is_hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
        if (!is_hex && (*end == '.' || *end == 'e' || *end == 'E')) {
            double value = strtod(s, &end);
            memcpy(&t->value, &value, sizeof value);
            t->number = PTX_OP_F64;
        }
        end += *end == 'U';
    }
    if (errno || isalnum((unsigned char)*end) || *end == '_')
        ptx_syntax(p, "a number that makes no sense");
    p->at = end;
}

static void lex_string(ptx_parser *p, ptx_token *t) {
    const char *start = ++p->at;
    while (*p->at && *p->at != '"' && *p->at != '\n')
        p->at += p->at[0] == '\\' && p->at[1] ? 2 : 1;
    if (*p->at != '"')
        ptx_syntax(p, "a string without an end");
    t->kind = PTX_STRING;
    t->text = ptx_copy(p->context, start, (size_t)(p->at - start));
    p->at++;
}

void ptx_next(ptx_parser *p) {
    const char *before = p->at;
    skip_blank(p);
    ptx_token *t = &p->token;
    memset(t, 0, sizeof *t);
    t->start = p->at;
    t->line = p->line;
    t->joined = before == p->at;
    unsigned char c = (unsigned char)*p->at;
    if (!c) {
        t->kind = PTX_END;
    } else if (isdigit(c)) {
        lex_number(p, t);
    } else if (c == '"') {
        lex_string(p, t);
    } else if (c == '.' && word_length(p->at + 1)) {
        t->kind = PTX_DOT;
        size_t n = dot_length(p->at);
        t->text = ptx_copy(p->context, p->at, n);
        p->at += n;
    } else if (isalpha(c) || c == '_' || c == '$' || c == '%') {
        t->kind = PTX_WORD;
        size_t n = (c == '%') + word_length(p->at + (c == '%'));
        if (c == '%' && p->at[n] == '.')
            n += dot_length(p->at + n);
        t->text = ptx_copy(p->context, p->at, n);
        p->at += n;
    } else {
        t->kind = PTX_MARK;
        t->mark = (char)c;
        p->at++;
    }
    t->end = p->at;
}

int ptx_is(const ptx_parser *p, const char *text) {
    const ptx_token *t = &p->token;
    if (t->kind == PTX_MARK)
        return text[0] == t->mark && !text[1];
    return (t->kind == PTX_WORD || t->kind == PTX_DOT) && !strcmp(t->text, text);
}

int ptx_take(ptx_parser *p, const char *text) {
    if (!ptx_is(p, text))
        return 0;
    ptx_next(p);
    return 1;
}

void ptx_expect(ptx_parser *p, const char *text) {
    if (!ptx_take(p, text))
        ptx_syntax(p, ptx_format(p->context, "expected \"%s\"", text));
}

const char *ptx_expect_word(ptx_parser *p) {
    if (p->token.kind != PTX_WORD)
        ptx_syntax(p, "expected a name");
    const char *text = p->token.text;
    ptx_next(p);
    return text;
}

uint64_t ptx_expect_integer(ptx_parser *p) {
    int minus = ptx_take(p, "-");
    if (p->token.kind != PTX_NUMBER || p->token.number != PTX_OP_INTEGER)
        ptx_syntax(p, "expected an integer");
    uint64_t value = p->token.value;
    ptx_next(p);
    return minus ? 0 - value : value;
}
