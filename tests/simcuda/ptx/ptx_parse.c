/* Parses the outside of a PTX module: directives, variables with their initializers, function
   headers. */
#include <stdlib.h>
#include <string.h>

#include "ptx.h"

ptx_symbol *ptx_declare(ptx_parser *p, const char *name, ptx_space space) {
    ptx_symbol *symbol = ptx_new(p->context, sizeof *symbol);
    symbol->name = name;
    symbol->space = space;
    symbol->count = 1;
    symbol->c_name = ptx_format(p->context, "v%d", p->names++);
    if (p->scope->last)
        p->scope->last->next = symbol;
    else
        p->scope->first = symbol;
    p->scope->last = symbol;
    return symbol;
}

static ptx_space space_named(const char *word) {
    static const struct {
        const char *name;
        ptx_space space;
    } spaces[] = {{".reg", PTX_REG},     {".param", PTX_PARAM},   {".shared", PTX_SHARED},
                  {".local", PTX_LOCAL}, {".global", PTX_GLOBAL}, {".const", PTX_CONST}};

    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (!strcmp(spaces[i].name, word))
            return spaces[i].space;
    return PTX_GENERIC;
}

/* Skips ".ptr .global .align 4" of a kernel parameter, which describes the pointer's target and not
   the layout. */
static void skip_pointer_attribute(ptx_parser *p) {
    if (p->token.kind == PTX_DOT && space_named(p->token.text) != PTX_GENERIC)
        ptx_next(p);
    if (ptx_take(p, ".align"))
        ptx_expect_integer(p);
}

typedef struct declaration {
    ptx_space space;
    const ptx_type *type;
    uint64_t align;
} declaration;

/* Parses ".shared .align 4 .b8", in any order. */
static declaration parse_declaration(ptx_parser *p) {
    declaration d = {PTX_GENERIC, NULL, 0};
    while (p->token.kind == PTX_DOT) {
        const char *word = p->token.text;
        const ptx_type *type = ptx_type_named(word + 1);
        ptx_next(p);
        if (space_named(word) != PTX_GENERIC)
            d.space = space_named(word);
        else if (!strcmp(word, ".align"))
            d.align = ptx_expect_integer(p);
        else if (!strcmp(word, ".ptr"))
            skip_pointer_attribute(p);
        else if (type)
            d.type = type;
        else
            ptx_syntax(p,
                       ptx_format(p->context, "unsupported declaration word \"%s\" before", word));
    }
    if (!d.type || d.space == PTX_GENERIC)
        ptx_syntax(p, "a declaration without a type or a state space");
    return d;
}

static ptx_init parse_init(ptx_parser *p) {
    ptx_init init = {0, PTX_OP_INTEGER, NULL};
    int generic = 0, minus = ptx_take(p, "-");
    if (p->token.kind == PTX_NUMBER) {
        init.value = minus ? 0 - p->token.value : p->token.value;
        init.kind = p->token.number;
        if (minus && p->token.number != PTX_OP_INTEGER)
            ptx_syntax(p, "a minus before a float constant");
        ptx_next(p);
        if (ptx_is(p, "("))
            ptx_syntax(p, "unsupported initializer: a byte of an address");
        return init;
    }
    init.symbol = ptx_expect_word(p);
    if (!strcmp(init.symbol, "generic") && ptx_take(p, "(")) {
        generic = 1;
        init.symbol = ptx_expect_word(p);
    }
    if (generic)
        ptx_expect(p, ")");
    if (ptx_take(p, "+"))
        init.value = ptx_expect_integer(p);
    else if (ptx_is(p, "-"))
        init.value = ptx_expect_integer(p);
    return init;
}

static void parse_initializer(ptx_parser *p, ptx_symbol *symbol) {
    if (!ptx_take(p, "{")) {
        PTX_APPEND(p->context, symbol->init, symbol->inits, parse_init(p));
        return;
    }
    do {
        if (ptx_is(p, "{"))
            ptx_syntax(p, "unsupported initializer: braces in braces");
        if (ptx_is(p, "}"))
            break;
        PTX_APPEND(p->context, symbol->init, symbol->inits, parse_init(p));
    } while (ptx_take(p, ","));
    ptx_expect(p, "}");
}

/* Parses one "name", "name<10>", "name[16][4]" of a declaration. */
static ptx_symbol *parse_declarator(ptx_parser *p, declaration d) {
    ptx_symbol *symbol = ptx_declare(p, ptx_expect_word(p), d.space);
    symbol->type = d.type;
    int is_open = 0;
    if (ptx_take(p, "<")) {
        uint64_t range = ptx_expect_integer(p);
        if (d.space != PTX_REG || range > 1000000)
            ptx_syntax(p, "a range that makes no sense");
        symbol->range = (int)range;
        ptx_expect(p, ">");
    }
    while (ptx_take(p, "[")) {
        if (ptx_is(p, "]"))
            is_open = 1;
        else
            symbol->count *= ptx_expect_integer(p);
        ptx_expect(p, "]");
    }
    if (is_open)
        symbol->count = 0;
    if (ptx_take(p, "="))
        parse_initializer(p, symbol);
    if (is_open && symbol->inits)
        symbol->count = (uint64_t)symbol->inits;
    uint64_t element = (uint64_t)d.type->bits / 8;
    symbol->size = symbol->count * element;
    symbol->align = d.align ? d.align : element;
    if (symbol->align & (symbol->align - 1))
        ptx_syntax(p, "an alignment that is no power of two");
    if ((uint64_t)symbol->inits > symbol->count)
        ptx_syntax(p, ptx_format(p->context, "too many initializers for %s", symbol->name));
    return symbol;
}

void ptx_variables(ptx_parser *p) {
    declaration d = parse_declaration(p);
    do {
        ptx_symbol *symbol = parse_declarator(p, d);
        if (p->function)
            PTX_APPEND(p->context, p->function->variable, p->function->variables, symbol);
        if (!p->function || d.space == PTX_SHARED)
            PTX_APPEND(p->context, p->module->variable, p->module->variables, symbol);
        if (p->function && (d.space == PTX_GLOBAL || d.space == PTX_CONST))
            PTX_APPEND(p->context, p->module->variable, p->module->variables, symbol);
    } while (ptx_take(p, ","));
    ptx_expect(p, ";");
}

static void parse_params(ptx_parser *p, ptx_symbol ***list, int *count) {
    if (!ptx_take(p, "("))
        return;
    uint64_t offset = 0;
    while (!ptx_is(p, ")")) {
        declaration d = parse_declaration(p);
        ptx_symbol *symbol = parse_declarator(p, d);
        if (d.space != PTX_PARAM)
            ptx_syntax(p, "unsupported: parameters in registers");
        offset = (offset + symbol->align - 1) & ~(symbol->align - 1);
        symbol->offset = offset;
        symbol->is_kernel_param = p->function->is_kernel;
        offset += symbol->size;
        PTX_APPEND(p->context, *list, *count, symbol);
        if (!ptx_take(p, ","))
            break;
    }
    ptx_expect(p, ")");
}

static void parse_triple(ptx_parser *p, uint32_t value[3]) {
    value[0] = value[1] = value[2] = 1;
    for (int i = 0; i < 3; i++) {
        value[i] = (uint32_t)ptx_expect_integer(p);
        if (!ptx_take(p, ","))
            break;
    }
}

/* Parses the words between the parameters and the body. */
static void parse_tuning(ptx_parser *p, ptx_function *f) {
    uint32_t triple[3];
    for (;;)
        if (ptx_take(p, ".maxntid")) {
            parse_triple(p, triple);
            f->max_threads = triple[0] * triple[1] * triple[2];
        } else if (ptx_take(p, ".reqntid")) {
            parse_triple(p, f->required);
        } else if (ptx_take(p, ".minnctapersm") || ptx_take(p, ".maxnctapersm") ||
                   ptx_take(p, ".maxnreg")) {
            ptx_expect_integer(p);
        } else if (ptx_take(p, ".pragma")) {
            ptx_next(p);
            ptx_expect(p, ";");
        } else if (ptx_is(p, ".noreturn")) {
            ptx_next(p);
        } else {
            return;
        }
}

/* Returns the earlier declaration of a function, or a new one. */
static ptx_function *function_named(ptx_parser *p, const char *name) {
    ptx_symbol *symbol = ptx_find(p->module->scope, name, NULL);
    if (symbol) {
        if (symbol->space != PTX_FUNCTION || symbol->function->is_defined)
            ptx_syntax(p, ptx_format(p->context, "%s is declared twice", name));
        return symbol->function;
    }
    symbol = ptx_declare(p, name, PTX_FUNCTION);
    ptx_function *f = ptx_new(p->context, sizeof *f);
    f->name = name;
    f->c_name = symbol->c_name;
    symbol->function = f;
    PTX_APPEND(p->context, p->module->function, p->module->functions, f);
    return f;
}

static void parse_function(ptx_parser *p, int is_kernel) {
    ptx_scope *outside = p->scope;
    ptx_scope *scope = ptx_new(p->context, sizeof *scope);
    scope->outer = outside;
    ptx_function header = {0};
    header.is_kernel = is_kernel;
    p->function = &header;
    p->scope = scope;
    header.name = "a function's header";
    if (!is_kernel)
        parse_params(p, &header.result, &header.results);
    p->scope = outside;
    ptx_take(p, ".noreturn");
    ptx_function *f = function_named(p, ptx_expect_word(p));
    p->scope = scope;
    parse_params(p, &header.param, &header.params);
    f->is_kernel = is_kernel;
    f->scope = scope;
    f->result = header.result;
    f->results = header.results;
    f->param = header.param;
    f->params = header.params;
    p->function = f;
    parse_tuning(p, f);
    if (!ptx_take(p, ";")) {
        f->is_defined = 1;
        ptx_expect(p, "{");
        ptx_body(p);
    }
    p->scope = outside;
    p->function = NULL;
}

static void parse_file(ptx_parser *p) {
    uint64_t number = ptx_expect_integer(p);
    if (p->token.kind != PTX_STRING || number > 100000)
        ptx_syntax(p, "a .file that makes no sense");
    while ((uint64_t)p->module->files <= number)
        PTX_APPEND(p->context, p->module->file, p->module->files, NULL);
    p->module->file[number] = p->token.text;
    ptx_next(p);
    while (ptx_take(p, ","))
        ptx_expect_integer(p);
}

static void skip_section(ptx_parser *p) {
    while (!ptx_is(p, "{") && p->token.kind != PTX_END)
        ptx_next(p);
    while (!ptx_is(p, "}")) {
        if (p->token.kind == PTX_END)
            ptx_syntax(p, "a .section without an end");
        ptx_next(p);
    }
    ptx_next(p);
}

static void parse_target(ptx_parser *p) {
    const char *target = ptx_expect_word(p);
    if (strncmp(target, "sm_", 3) != 0)
        ptx_syntax(p, "expected a target like sm_80");
    p->module->arch = atoi(target + 3);
    while (ptx_take(p, ","))
        ptx_expect_word(p);
}

static void parse_linked(ptx_parser *p) {
    int is_external = 0;
    while (ptx_is(p, ".visible") || ptx_is(p, ".extern") || ptx_is(p, ".weak") ||
           ptx_is(p, ".common")) {
        is_external |= ptx_is(p, ".extern");
        ptx_next(p);
    }
    if (ptx_take(p, ".entry")) {
        parse_function(p, 1);
    } else if (ptx_take(p, ".func")) {
        parse_function(p, 0);
    } else {
        int first = p->module->variables;
        ptx_variables(p);
        for (int i = first; i < p->module->variables; i++)
            p->module->variable[i]->is_external = is_external;
    }
}

ptx_module *ptx_parse(ptx_context *context, const char *text) {
    ptx_parser parser = {0}, *p = &parser;
    p->context = context;
    p->module = ptx_new(context, sizeof *p->module);
    p->module->context = context;
    p->scope = p->module->scope = ptx_new(context, sizeof *p->scope);
    p->at = text;
    p->line = 1;
    ptx_next(p);
    while (p->token.kind != PTX_END) {
        if (ptx_take(p, ".version"))
            ptx_next(p);
        else if (ptx_take(p, ".target"))
            parse_target(p);
        else if (ptx_take(p, ".address_size")) {
            if (ptx_expect_integer(p) != 64)
                ptx_syntax(p, "only 64-bit addresses are supported");
        } else if (ptx_take(p, ".file"))
            parse_file(p);
        else if (ptx_take(p, ".section"))
            skip_section(p);
        else if (ptx_is(p, ".loc"))
            ptx_position(p);
        else if (ptx_take(p, ".pragma")) {
            ptx_next(p);
            ptx_expect(p, ";");
        } else
            parse_linked(p);
    }
    if (!p->module->arch)
        ptx_syntax(p, "a module without .target");
    return p->module;
}
