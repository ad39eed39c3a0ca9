/* Parses the inside of a function: scopes, labels, declarations, instructions and their
   operands. */
#include <ctype.h>
#include <string.h>

#include "ptx.h"

void ptx_position(ptx_parser *p) {
    ptx_expect(p, ".loc");
    p->source_file = (int)ptx_expect_integer(p);
    p->source_line = (int)ptx_expect_integer(p);
    ptx_expect_integer(p);
    while (ptx_take(p, ",")) {
        if (ptx_take(p, "function_name")) {
            ptx_expect_word(p);
            if (ptx_take(p, "+"))
                ptx_expect_integer(p);
        } else if (ptx_take(p, "inlined_at")) {
            for (int i = 0; i < 3; i++)
                ptx_expect_integer(p);
        } else {
            ptx_syntax(p, "unknown attribute of .loc");
        }
    }
}

static ptx_operand *parse_operand(ptx_parser *p);

static void add_item(ptx_parser *p, ptx_operand *list, ptx_operand *item) {
    PTX_APPEND(p->context, list->item, list->items, item);
}

static ptx_operand *parse_items(ptx_parser *p, ptx_operand *list, ptx_operand_kind kind,
                                const char *end) {
    list->kind = kind;
    while (!ptx_is(p, end)) {
        add_item(p, list, parse_operand(p));
        if (!ptx_take(p, ","))
            break;
    }
    ptx_expect(p, end);
    return list;
}

/* "+8", "-4", "+-4" after a name. */
static int64_t parse_offset(ptx_parser *p) {
    int64_t offset = 0;
    while (ptx_is(p, "+") || ptx_is(p, "-")) {
        ptx_take(p, "+");
        offset += (int64_t)ptx_expect_integer(p);
    }
    return offset;
}

static ptx_operand *parse_memory(ptx_parser *p, ptx_operand *o) {
    o->kind = PTX_OP_MEMORY;
    if (p->token.kind == PTX_WORD) {
        o->name = ptx_expect_word(p);
        o->offset = parse_offset(p);
    } else {
        o->offset = (int64_t)ptx_expect_integer(p);
    }
    if (ptx_take(p, ",")) { /* of a tensor map, with coordinates */
        ptx_expect(p, "{");
        parse_items(p, o, PTX_OP_MEMORY, "}");
    }
    ptx_expect(p, "]");
    return o;
}

static ptx_operand *parse_number(ptx_parser *p, ptx_operand *o) {
    int minus = ptx_take(p, "-");
    if (p->token.kind != PTX_NUMBER)
        ptx_syntax(p, "expected an operand");
    o->kind = p->token.number;
    o->value = p->token.value;
    if (minus && o->kind == PTX_OP_INTEGER)
        o->value = 0 - o->value;
    else if (minus)
        o->value ^= o->kind == PTX_OP_F32 ? 1ull << 31 : 1ull << 63;
    ptx_next(p);
    return o;
}

static ptx_operand *parse_operand(ptx_parser *p) {
    ptx_operand *o = ptx_new(p->context, sizeof *o);
    if (ptx_take(p, "{"))
        return parse_items(p, o, PTX_OP_VECTOR, "}");
    if (ptx_take(p, "("))
        return parse_items(p, o, PTX_OP_LIST, ")");
    if (ptx_take(p, "["))
        return parse_memory(p, o);
    o->negated = ptx_take(p, "!");
    if (p->token.kind != PTX_WORD)
        return parse_number(p, o);
    o->kind = PTX_OP_NAME;
    o->name = ptx_expect_word(p);
    o->offset = parse_offset(p);
    if (!ptx_take(p, "|"))
        return o;
    ptx_operand *pair = ptx_new(p->context, sizeof *pair);
    pair->kind = PTX_OP_PAIR;
    add_item(p, pair, o);
    add_item(p, pair, parse_operand(p));
    return pair;
}

static char *one_line(ptx_parser *p, const char *start, const char *end) {
    char *text = ptx_new(p->context, (size_t)(end - start) + 1), *to = text;
    for (; start < end; start++)
        if (!isspace((unsigned char)*start))
            *to++ = *start;
        else if (to > text && to[-1] != ' ')
            *to++ = ' ';
    return text;
}

static ptx_instruction *new_instruction(ptx_parser *p) {
    ptx_instruction *in = ptx_new(p->context, sizeof *in);
    in->scope = p->scope;
    in->line = p->token.line;
    in->source_line = p->source_line;
    in->source_file = p->source_file;
    PTX_APPEND(p->context, p->function->code, p->function->length, in);
    return in;
}

static void parse_instruction(ptx_parser *p) {
    ptx_instruction *in = new_instruction(p);
    const char *start = p->token.start;
    if (ptx_take(p, "@")) {
        in->guard_negated = ptx_take(p, "!");
        in->guard = ptx_expect_word(p);
    }
    in->opcode = ptx_expect_word(p);
    while (p->token.kind == PTX_DOT && p->token.joined) {
        if (in->modifiers == PTX_MODIFIERS)
            ptx_syntax(p, "an instruction with too many parts");
        in->modifier[in->modifiers++] = p->token.text + 1;
        ptx_next(p);
    }
    while (!ptx_is(p, ";")) {
        PTX_APPEND(p->context, in->operand, in->operands, parse_operand(p));
        if (!ptx_take(p, ","))
            break;
    }
    in->text = one_line(p, start, p->token.start);
    ptx_expect(p, ";");
}

static void parse_targets(ptx_parser *p, ptx_symbol *label) {
    do
        PTX_APPEND(p->context, label->targets, label->n_targets, ptx_expect_word(p));
    while (ptx_take(p, ","));
    ptx_expect(p, ";");
}

/* Parses a word followed by a colon: a label, a list of branch targets, or a prototype for calls
   through pointers. */
static void parse_label(ptx_parser *p, const char *name) {
    ptx_symbol *label = ptx_declare(p, name, PTX_LABEL);
    if (ptx_take(p, ".branchtargets")) {
        parse_targets(p, label);
    } else if (ptx_take(p, ".callprototype")) {
        while (!ptx_take(p, ";"))
            if (p->token.kind == PTX_END)
                ptx_syntax(p, "a prototype without an end");
            else
                ptx_next(p);
    } else if (ptx_is(p, ".calltargets")) {
        ptx_syntax(p, "unsupported: .calltargets");
    } else {
        ptx_instruction *in = new_instruction(p);
        in->label = label;
        label->offset = (uint64_t)p->function->length - 1;
    }
}

/* Tells whether the next word is a label, without consuming it. */
static int is_label(const ptx_parser *p) {
    const char *s = p->token.end;
    if (p->token.kind != PTX_WORD)
        return 0;
    while (*s == ' ' || *s == '\t')
        s++;
    return s[0] == ':' && s[1] != ':';
}

static void parse_pragma(ptx_parser *p) {
    ptx_next(p);
    ptx_expect(p, ";");
}

void ptx_body(ptx_parser *p) {
    ptx_scope *outermost = p->scope;
    for (;;) {
        if (p->token.kind == PTX_END)
            ptx_syntax(p, "a function without an end");
        if (ptx_take(p, "{")) {
            ptx_scope *inner = ptx_new(p->context, sizeof *inner);
            inner->outer = p->scope;
            p->scope = inner;
        } else if (ptx_is(p, "}")) {
            ptx_next(p);
            if (p->scope == outermost)
                return;
            p->scope = p->scope->outer;
        } else if (ptx_is(p, ".loc")) {
            ptx_position(p);
        } else if (ptx_take(p, ".pragma")) {
            parse_pragma(p);
        } else if (p->token.kind == PTX_DOT) {
            ptx_variables(p);
        } else if (is_label(p)) {
            const char *name = ptx_expect_word(p);
            ptx_expect(p, ":");
            parse_label(p, name);
        } else if (!ptx_take(p, ";")) {
            parse_instruction(p);
        }
    }
}
