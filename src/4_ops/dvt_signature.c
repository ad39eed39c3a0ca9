/* Reads the parameter list of a CUDA kernel from its source, to compare a call with it. This is no
   parser of C++: it knows comments, strings and brackets, and gives up where it could be wrong. */
#include "4_ops/dvt_own_kernel.h"

DVTI_FN size_t dvti_identifier(const char *text) {
    size_t n = 0;
    while (text[n] == '_' || (text[n] >= 'a' && text[n] <= 'z') ||
           (text[n] >= 'A' && text[n] <= 'Z') || (n && text[n] >= '0' && text[n] <= '9'))
        n++;
    return n < DVTI_IDENTIFIER ? n : 0;
}

static bool dvti_is_word(const char *text, size_t n, const char *word) {
    return strlen(word) == n && strncmp(text, word, n) == 0;
}

/* Returns the beginning of the next token: skips white space, comments and, at the beginning of a
   line, preprocessor lines, which set *macros. */
static const char *dvti_next_token(const char *at, bool *macros) {
    for (;;) {
        if (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n' || *at == '\f' || *at == '\v')
            at++;
        else if (at[0] == '/' && at[1] == '/')
            at += strcspn(at, "\n");
        else if (at[0] == '/' && at[1] == '*') {
            const char *end = strstr(at + 2, "*/");
            at = end ? end + 2 : at + strlen(at);
        } else if (*at == '#') {
            *macros = true;
            for (; *at && *at != '\n'; at++)
                if (at[0] == '\\' && at[1])
                    at++;
        } else
            return at;
    }
}

/* Returns the end of the token. */
static const char *dvti_token_end(const char *at) {
    const char quote = *at;
    size_t n = 0;
    if (quote == '"' || quote == '\'') {
        for (at++; *at && *at != quote; at++)
            if (at[0] == '\\' && at[1])
                at++;
        return *at ? at + 1 : at;
    }
    while (at[n] == '_' || (at[n] >= '0' && at[n] <= '9') || (at[n] >= 'a' && at[n] <= 'z') ||
           (at[n] >= 'A' && at[n] <= 'Z'))
        n++;
    return at + (n ? n : 1);
}

/* ---- types ---- */
typedef struct dvti_type_words {
    bool is_unsigned, has_int, is_char, is_short, known;
    int longs;
    const char *other; /* the last word that is no keyword, and their number */
    size_t other_length;
    int others;
} dvti_type_words;

static void dvti_type_word(dvti_type_words *w, const char *at, size_t n) {
    w->known = true;
    if (dvti_is_word(at, n, "unsigned"))
        w->is_unsigned = true;
    else if (dvti_is_word(at, n, "int"))
        w->has_int = true;
    else if (dvti_is_word(at, n, "char"))
        w->is_char = true;
    else if (dvti_is_word(at, n, "short"))
        w->is_short = true;
    else if (dvti_is_word(at, n, "long"))
        w->longs++;
    else if (!dvti_is_word(at, n, "signed")) {
        w->known = false;
        w->other = at;
        w->other_length = n;
        w->others++;
    }
}

typedef struct dvti_known_type {
    const char *name;
    int dtype; /* of elements; -1: any */
    dvt_arg_kind scalar;
    bool narrow;
} dvti_known_type;

static dvti_known_type dvti_type_of(const dvti_type_words *w, const char *first, size_t n) {
    static const dvti_known_type named[] = {
        {"float", DVT_F32, DVT_ARG_FLOAT, false},   {"double", DVT_F64, DVT_ARG_DOUBLE, false},
        {"int32_t", DVT_I32, DVT_ARG_INT32, false}, {"uint32_t", -1, DVT_ARG_INT32, false},
        {"int64_t", DVT_I64, DVT_ARG_INT64, false}, {"uint64_t", -1, DVT_ARG_INT64, false},
        {"size_t", -1, DVT_ARG_INT64, false},       {"int8_t", DVT_I8, DVT_ARG_NONE, true},
        {"uint8_t", -1, DVT_ARG_NONE, true},        {"int16_t", -1, DVT_ARG_NONE, true},
        {"uint16_t", -1, DVT_ARG_NONE, true},       {"bool", -1, DVT_ARG_NONE, true}};
    dvti_known_type type = {NULL, -1, DVT_ARG_NONE, false};
    int i;
    if (first) {
        for (i = 0; i < DVTI_LENGTH(named); i++)
            if (dvti_is_word(first, n, named[i].name))
                return named[i];
        return type;
    }
    type.narrow = w->is_char || w->is_short;
    if (type.narrow || w->longs == 1) /* `long` differs between systems */
        return type;
    type.scalar = w->longs ? DVT_ARG_INT64 : DVT_ARG_INT32;
    if (!w->is_unsigned)
        type.dtype = w->longs ? DVT_I64 : DVT_I32;
    return type;
}

/* ---- parameters ---- */
/* Reads one parameter up to the comma or parenthesis that ends it. Returns NULL for anything that
   may be a macro, a template or a function. */
static const char *dvti_parameter_read(const char *at, dvti_parameter *p, bool *macros) {
    dvti_type_words words;
    const char *first = NULL, *name = NULL;
    size_t first_length = 0, name_length = 0;
    bool keyword = false;
    dvti_known_type type;
    memset(&words, 0, sizeof words);
    memset(p, 0, sizeof *p);
    for (at = dvti_next_token(at, macros); *at && *at != ',' && *at != ')';
         at = dvti_next_token(at, macros)) {
        const char *end = dvti_token_end(at);
        const size_t n = (size_t)(end - at);
        if (*macros || strchr("(<>{}=;:&\"'", *at))
            return NULL;
        if (*at == '*' || *at == '[')
            p->pointer = true;
        else if (dvti_is_word(at, n, "const"))
            p->constant = p->constant || !p->pointer;
        else if (dvti_is_word(at, n, "__restrict__") || dvti_is_word(at, n, "__restrict") ||
                 dvti_is_word(at, n, "volatile") || *at == ']' || (*at >= '0' && *at <= '9'))
            ;
        else {
            int others = words.others;
            dvti_type_word(&words, at, n);
            if (words.others == others)
                keyword = true;
            else if (others == 0 && !keyword) {
                first = at;
                first_length = n;
            } else {
                name = at;
                name_length = n;
            }
        }
        at = end;
    }
    if (!*at || words.others > (keyword ? 1 : 2) || (!keyword && !first))
        return NULL;
    type = dvti_type_of(&words, first, first_length);
    if (first && !type.name && !p->pointer && !name)
        return NULL; /* may be a macro with any number of parameters */
    p->dtype = p->pointer ? type.dtype : -1;
    p->scalar = p->pointer ? DVT_ARG_NONE : type.scalar;
    p->narrow = !p->pointer && type.narrow;
    if (name && name_length < sizeof p->name)
        memcpy(p->name, name, name_length);
    return at;
}

static void dvti_parameters_read(const char *at, dvti_signature *out) {
    dvti_parameter ignored;
    bool macros = false;
    int n = 0;
    at = dvti_next_token(at, &macros);
    if (macros)
        return;
    if (dvti_is_word(at, (size_t)(dvti_token_end(at) - at), "void")) {
        const char *end = dvti_next_token(dvti_token_end(at), &macros);
        at = *end == ')' ? end : at;
    }
    if (*at == ')') {
        out->n = 0;
        return;
    }
    for (;; at++, n++) {
        at = dvti_parameter_read(at, n < DVT_KERNEL_ARGS ? &out->parameter[n] : &ignored, &macros);
        if (!at)
            return;
        if (*at == ')')
            break;
    }
    out->n = n + 1;
}

/* Returns whether `#if` comes before `end`: then another definition may be compiled. */
static bool dvti_is_conditional(const char *source, const char *end) {
    for (; source < end; source++)
        if (*source == '#') {
            const char *word = source + 1 + strspn(source + 1, " \t");
            if (word[0] == 'i' && word[1] == 'f')
                return true;
        }
    return false;
}

static bool dvti_signatures_agree(const dvti_signature *a, const dvti_signature *b) {
    int k;
    bool agree = a->n == b->n;
    for (k = 0; agree && k < a->n && k < DVT_KERNEL_ARGS; k++) {
        const dvti_parameter *p = &a->parameter[k], *q = &b->parameter[k];
        agree = p->pointer == q->pointer && p->constant == q->constant && p->narrow == q->narrow &&
                p->dtype == q->dtype && p->scalar == q->scalar;
    }
    return agree;
}

/* Declarations that differ, as in two namespaces: which one is launched is not known here. */
DVTI_FN void dvti_signature_read(const char *source, const char *name, dvti_signature *out) {
    dvti_signature one;
    const char *at, *end;
    bool macros = false, global = false, named = false;
    int found = 0;
    out->n = -1;
    for (at = dvti_next_token(source, &macros); *at; at = dvti_next_token(end, &macros)) {
        end = dvti_token_end(at);
        if (global && named && *at == '(') {
            memset(&one, 0, sizeof one);
            one.n = -1;
            if (!dvti_is_conditional(source, at))
                dvti_parameters_read(end, &one);
            if (found++ && !dvti_signatures_agree(out, &one))
                one.n = -1;
            *out = one;
            if (out->n < 0)
                return;
            global = false;
        }
        named = dvti_is_word(at, (size_t)(end - at), name);
        if (dvti_is_word(at, (size_t)(end - at), "__global__"))
            global = true;
        else if (*at == ';' || *at == '{')
            global = false;
    }
}
