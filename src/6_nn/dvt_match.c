/* Regular expressions for names of parameters. They are compiled to a small program; all threads of
   the program advance together, so no pattern takes exponential time. Source: Thompson, 1968.
   Supports . * + ? [..] ( ) | ^ $, \ before punctuation, \d \w \s. A match starts at the first
   character and may end anywhere. */
#include "6_nn/dvt_nn_internal.h"

enum {
    DVTI_PAT_CHAR,
    DVTI_PAT_ANY,
    DVTI_PAT_SET,
    DVTI_PAT_BEGIN,
    DVTI_PAT_END,
    DVTI_PAT_SPLIT,
    DVTI_PAT_JUMP,
    DVTI_PAT_MATCH
};

#define DVTI_PAT_DEPTH 50

typedef struct dvti_pat_reader {
    const char *function, *text, *at;
    dvti_pattern *out;
    int depth;
} dvti_pat_reader;

static bool dvti_pat_bad(dvti_pat_reader *r, const char *why) {
    dvti_fail(DVT_ERR_VALUE,
              "%s: the pattern \"%.100s\" is wrong at character %lld: %s; expected a regular "
              "expression of literals . * + ? [..] ( ) | ^ $ and \\ before punctuation",
              r->function, r->text, (long long)(r->at - r->text) + 1, why);
    return false;
}

static bool dvti_pat_reserve(dvti_pat_reader *r, size_t more) {
    dvti_pattern *p = r->out;
    if (dvti_grow((void **)&p->step, &p->capacity, p->count + more, sizeof *p->step))
        return true;
    dvti_fail_memory(r->function, (int64_t)(sizeof *p->step * (p->count + more)));
    return false;
}

static dvti_pattern_step *dvti_pat_emit(dvti_pat_reader *r, int op) {
    dvti_pattern_step *step;
    if (!dvti_pat_reserve(r, 1))
        return NULL;
    step = &r->out->step[r->out->count++];
    memset(step, 0, sizeof *step);
    step->op = (unsigned char)op;
    return step;
}

/* Inserts a step before those that start at `at`. Jumps are relative and stay within the moved
   steps, so they remain valid. */
static dvti_pattern_step *dvti_pat_insert(dvti_pat_reader *r, size_t at, int op) {
    dvti_pattern *p = r->out;
    if (!dvti_pat_reserve(r, 1))
        return NULL;
    memmove(p->step + at + 1, p->step + at, (p->count - at) * sizeof *p->step);
    p->count++;
    memset(&p->step[at], 0, sizeof p->step[at]);
    p->step[at].op = (unsigned char)op;
    return &p->step[at];
}

/* ---- sets of characters ---- */
static void dvti_pat_set_add(uint32_t *set, unsigned low, unsigned high) {
    for (; low <= high; low++)
        set[low / 32] |= (uint32_t)1 << low % 32;
}

/* Adds \d \w \s or their complements; returns false for any other letter. */
static bool dvti_pat_set_class(uint32_t *set, char letter) {
    uint32_t found[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    int i;
    switch (letter) {
    case 'd':
    case 'D':
        dvti_pat_set_add(found, '0', '9');
        break;
    case 'w':
    case 'W':
        dvti_pat_set_add(found, '0', '9');
        dvti_pat_set_add(found, 'A', 'Z');
        dvti_pat_set_add(found, 'a', 'z');
        dvti_pat_set_add(found, '_', '_');
        break;
    case 's':
    case 'S':
        dvti_pat_set_add(found, 9, 13);
        dvti_pat_set_add(found, ' ', ' ');
        break;
    default:
        return false;
    }
    for (i = 0; i < 8; i++)
        set[i] |= letter < 'a' ? ~found[i] : found[i];
    return true;
}

static bool dvti_pat_is_punctuation(char c) {
    return c > ' ' && c < 127 && !(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z') &&
           !(c >= 'a' && c <= 'z');
}

/* Reads one member of [..] into *c. A class is added to the set at once and sets *is_class. */
static bool dvti_pat_member(dvti_pat_reader *r, uint32_t *set, unsigned *c, bool *is_class) {
    *is_class = false;
    if (*r->at != '\\') {
        *c = (unsigned char)*r->at++;
        return true;
    }
    r->at++;
    if (dvti_pat_is_punctuation(*r->at)) {
        *c = (unsigned char)*r->at++;
        return true;
    }
    if (!dvti_pat_set_class(set, *r->at))
        return dvti_pat_bad(r, "an unknown escape");
    r->at++;
    *is_class = true;
    return true;
}

/* Reads a set after its '['. A ']' in first position is a member. */
static bool dvti_pat_brackets(dvti_pat_reader *r) {
    uint32_t set[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    bool opposite = *r->at == '^', first = true, is_class;
    dvti_pattern_step *step;
    unsigned low, high;
    int i;
    if (opposite)
        r->at++;
    for (; first || *r->at != ']'; first = false) {
        if (!*r->at)
            return dvti_pat_bad(r, "a [ without its ]");
        if (!dvti_pat_member(r, set, &low, &is_class))
            return false;
        if (is_class)
            continue;
        high = low;
        if (r->at[0] == '-' && r->at[1] && r->at[1] != ']') {
            r->at++;
            if (!dvti_pat_member(r, set, &high, &is_class))
                return false;
            if (is_class || high < low)
                return dvti_pat_bad(r, "a range that runs backwards");
        }
        dvti_pat_set_add(set, low, high);
    }
    r->at++;
    if (!(step = dvti_pat_emit(r, DVTI_PAT_SET)))
        return false;
    for (i = 0; i < 8; i++)
        step->set[i] = opposite ? ~set[i] : set[i];
    return true;
}

/* ---- the grammar: alternatives of sequences of repeated atoms ---- */
static bool dvti_pat_alternatives(dvti_pat_reader *r);

static bool dvti_pat_group(dvti_pat_reader *r) {
    const char *open = r->at - 1;
    if (++r->depth > DVTI_PAT_DEPTH)
        return dvti_pat_bad(r, "groups are nested too deeply");
    if (r->at[0] == '?' && r->at[1] == ':')
        r->at += 2;
    else if (r->at[0] == '?')
        return dvti_pat_bad(r, "(?...) is known only as (?:...)");
    if (!dvti_pat_alternatives(r))
        return false;
    if (*r->at != ')') {
        r->at = open;
        return dvti_pat_bad(r, "a ( without its )");
    }
    r->at++;
    r->depth--;
    return true;
}

static bool dvti_pat_escape(dvti_pat_reader *r) {
    char c = *r->at;
    dvti_pattern_step *step;
    uint32_t set[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    bool literal = dvti_pat_is_punctuation(c);
    if (!literal && !dvti_pat_set_class(set, c))
        return dvti_pat_bad(r, c ? "an unknown escape" : "a \\ at the end");
    if (!(step = dvti_pat_emit(r, literal ? DVTI_PAT_CHAR : DVTI_PAT_SET)))
        return false;
    step->c = (unsigned char)c;
    memcpy(step->set, set, sizeof set);
    r->at++;
    return true;
}

static bool dvti_pat_atom(dvti_pat_reader *r, bool *anchor) {
    char c = *r->at++;
    dvti_pattern_step *step;
    *anchor = c == '^' || c == '$';
    switch (c) {
    case '(':
        return dvti_pat_group(r);
    case '[':
        return dvti_pat_brackets(r);
    case '\\':
        return dvti_pat_escape(r);
    case '*':
    case '+':
    case '?':
        r->at--;
        return dvti_pat_bad(r, "there is nothing to repeat");
    case '{':
        r->at--;
        return dvti_pat_bad(r, "counted repetition is not known; write it out, or \\{");
    default:
        break;
    }
    step = dvti_pat_emit(r, c == '.'   ? DVTI_PAT_ANY
                            : c == '^' ? DVTI_PAT_BEGIN
                            : c == '$' ? DVTI_PAT_END
                                       : DVTI_PAT_CHAR);
    if (!step)
        return false;
    step->c = (unsigned char)c;
    return true;
}

/* Compiles repetitions: x* is a split over x and a jump back, x+ is x and a split back, x? is a
   split over x. */
static bool dvti_pat_repeat(dvti_pat_reader *r, size_t start) {
    char kind = *r->at++;
    int32_t length = (int32_t)(r->out->count - start);
    dvti_pattern_step *step;
    if (kind == '+') {
        if (!(step = dvti_pat_emit(r, DVTI_PAT_SPLIT)))
            return false;
        step->x = -length;
        step->y = 1;
    } else {
        if (!(step = dvti_pat_insert(r, start, DVTI_PAT_SPLIT)))
            return false;
        step->x = 1;
        step->y = length + (kind == '*' ? 2 : 1);
        if (kind == '*') {
            if (!(step = dvti_pat_emit(r, DVTI_PAT_JUMP)))
                return false;
            step->x = -(length + 1);
        }
    }
    if (*r->at == '?') /* a lazy quantifier changes what matches, not whether */
        r->at++;
    if (*r->at == '*' || *r->at == '+' || *r->at == '?')
        return dvti_pat_bad(r, "a repetition is repeated");
    return true;
}

static bool dvti_pat_sequence(dvti_pat_reader *r) {
    while (*r->at && *r->at != '|' && *r->at != ')') {
        size_t start = r->out->count;
        bool anchor;
        if (!dvti_pat_atom(r, &anchor))
            return false;
        if (*r->at != '*' && *r->at != '+' && *r->at != '?')
            continue;
        if (anchor)
            return dvti_pat_bad(r, "there is nothing to repeat");
        if (!dvti_pat_repeat(r, start))
            return false;
    }
    return true;
}

/* Compiles a|b|c: each alternative but the last has a split over it and a jump to the end. The end
   is known only after all are read. Until then each jump holds the distance to the previous jump,
   and the first holds 0. */
static bool dvti_pat_alternatives(dvti_pat_reader *r) {
    size_t jump = 0;
    int32_t back = 0;
    bool any = false;
    for (;;) {
        size_t start = r->out->count;
        dvti_pattern_step *step;
        if (!dvti_pat_sequence(r))
            return false;
        if (*r->at != '|')
            break;
        if (!(step = dvti_pat_insert(r, start, DVTI_PAT_SPLIT)))
            return false;
        step->x = 1;
        step->y = (int32_t)(r->out->count - start) + 1;
        if (!(step = dvti_pat_emit(r, DVTI_PAT_JUMP)))
            return false;
        start = r->out->count - 1;
        step->x = any ? (int32_t)(start - jump) : 0;
        jump = start;
        any = true;
        r->at++;
    }
    for (; any; jump -= (size_t)back) {
        back = r->out->step[jump].x;
        r->out->step[jump].x = (int32_t)(r->out->count - jump);
        any = back != 0;
    }
    return true;
}

DVTI_FN void dvti_pattern_free(dvti_pattern *pattern) {
    dvti_free(pattern->step);
    dvti_free(pattern->now);
    dvti_free(pattern->next);
    dvti_free(pattern->stack);
    dvti_free(pattern->seen);
    memset(pattern, 0, sizeof *pattern);
}

DVTI_FN bool dvti_pattern_compile(const char *function, const char *text, dvti_pattern *out) {
    dvti_pat_reader r;
    bool good;
    memset(out, 0, sizeof *out);
    r.function = function;
    r.text = r.at = text;
    r.out = out;
    r.depth = 0;
    if (strlen(text) > 10000) {
        dvti_fail(DVT_ERR_VALUE, "%s: the pattern has %llu characters; expected at most 10000",
                  function, (unsigned long long)strlen(text));
        return false;
    }
    good = dvti_pat_alternatives(&r) && (!*r.at || dvti_pat_bad(&r, "a ) without its (")) &&
           dvti_pat_emit(&r, DVTI_PAT_MATCH);
    if (good) {
        out->now = (int32_t *)dvti_alloc(out->count * sizeof *out->now);
        out->next = (int32_t *)dvti_alloc(out->count * sizeof *out->next);
        out->stack = (int32_t *)dvti_alloc(2 * out->count * sizeof *out->stack);
        out->seen = (size_t *)dvti_alloc(out->count * sizeof *out->seen);
        if (!out->now || !out->next || !out->stack || !out->seen) {
            dvti_fail_memory(function, (int64_t)(out->count * 4 * sizeof *out->now));
            good = false;
        }
    }
    if (!good)
        dvti_pattern_free(out);
    return good;
}

/* ---- running ---- */
/* Follows jumps from `from` and appends the steps that read a character to `list`. Returns true
   when MATCH is reached. */
static bool dvti_pat_follow(dvti_pattern *p, int32_t from, int32_t *list, int32_t *n,
                            const char *text, size_t at) {
    int32_t depth = 0;
    p->stack[depth++] = from;
    while (depth) {
        int32_t i = p->stack[--depth];
        const dvti_pattern_step *step = &p->step[i];
        if (p->seen[i] == at + 1)
            continue;
        p->seen[i] = at + 1;
        switch (step->op) {
        case DVTI_PAT_MATCH:
            return true;
        case DVTI_PAT_SPLIT:
            p->stack[depth++] = i + step->y;
            p->stack[depth++] = i + step->x;
            break;
        case DVTI_PAT_JUMP:
            p->stack[depth++] = i + step->x;
            break;
        case DVTI_PAT_BEGIN:
            if (at == 0)
                p->stack[depth++] = i + 1;
            break;
        case DVTI_PAT_END:
            if (!text[at])
                p->stack[depth++] = i + 1;
            break;
        default:
            list[(*n)++] = i;
        }
    }
    return false;
}

static bool dvti_pat_reads(const dvti_pattern_step *step, unsigned char c) {
    if (step->op == DVTI_PAT_SET)
        return step->set[c / 32] >> c % 32 & 1;
    return step->op == DVTI_PAT_ANY ? c != '\n' : step->c == c;
}

DVTI_FN bool dvti_pattern_match(dvti_pattern *p, const char *text) {
    int32_t n = 0, m, k, *swap;
    size_t at;
    memset(p->seen, 0, p->count * sizeof *p->seen);
    if (dvti_pat_follow(p, 0, p->now, &n, text, 0))
        return true;
    for (at = 0; text[at] && n; at++) {
        m = 0;
        for (k = 0; k < n; k++)
            if (dvti_pat_reads(&p->step[p->now[k]], (unsigned char)text[at]) &&
                dvti_pat_follow(p, p->now[k] + 1, p->next, &m, text, at + 1))
                return true;
        swap = p->now;
        p->now = p->next;
        p->next = swap;
        n = m;
    }
    return false;
}

#undef DVTI_PAT_DEPTH
