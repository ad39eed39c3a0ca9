/* The forms of instructions in a PTX text, with the same parser and the same look-ups as the
   emitters. */
#include <stdlib.h>
#include <string.h>

#include "emit.h"
#include "ptx_forms.h"

/* State of the functions below: the instruction, and where its form is written. */
typedef struct description {
    const ptx_function *function;
    const ptx_instruction *in;
    int place;
    ptx_text *out;
} description;

/* A variable as a value, or as the address of an access. */
static const char *symbol_kind(const description *d, const ptx_symbol *s) {
    switch (s->space) {
    case PTX_REG:
        return s->type->kind == PTX_PREDICATE ? "p" : "r";
    case PTX_PARAM:
        return s->is_kernel_param ? "kernel" : "param";
    case PTX_SHARED:
        return s->count == 0 && !d->function->is_kernel ? "dynamic" : "shared";
    case PTX_LOCAL:
        return "local";
    case PTX_GLOBAL:
        return "global";
    case PTX_CONST:
        return "const";
    case PTX_LABEL:
        return s->targets ? "list" : s->offset <= (uint64_t)d->place ? "back" : "label";
    default:
        return s->function->is_defined ? "function" : s->name;
    }
}

static void put_name(const description *d, const ptx_operand *o) {
    int number;
    const ptx_symbol *s = ptx_find(d->in->scope, o->name, &number);
    if (!s) /* a special register, a sink */
        ptx_put(d->out, "%s", o->name);
    else if (s->space == PTX_REG || s->space == PTX_LABEL)
        ptx_put(d->out, "%s%s", o->negated ? "!" : "", symbol_kind(d, s));
    else
        ptx_put(d->out, "&%s", symbol_kind(d, s));
}

static void put_operand(const description *d, const ptx_operand *o);

static void put_memory(const description *d, const ptx_operand *o) {
    int number;
    const ptx_symbol *s = o->name ? ptx_find(d->in->scope, o->name, &number) : NULL;
    ptx_put(d->out, "[%s", s ? symbol_kind(d, s) : "");
    for (int i = 0; i < o->items; i++) {
        ptx_put(d->out, ", ");
        put_operand(d, o->item[i]);
    }
    ptx_put(d->out, "]");
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Describes the elements of a vector. All take the same code path, so each kind is listed once. */
static void put_vector(const description *d, const ptx_operand *o) {
    const char **kind = ptx_new(d->out->context, (size_t)(o->items + 1) * sizeof *kind);
    for (int i = 0; i < o->items; i++) {
        description item = *d;
        item.out = ptx_text_new(d->out->context);
        put_operand(&item, o->item[i]);
        kind[i] = item.out->data;
    }
    qsort(kind, (size_t)o->items, sizeof *kind, by_text);
    ptx_put(d->out, "{%d", o->items);
    for (int i = 0; i < o->items; i++)
        if (i == 0 || strcmp(kind[i], kind[i - 1]) != 0)
            ptx_put(d->out, " %s", kind[i]);
    ptx_put(d->out, "}");
}

static void put_operand(const description *d, const ptx_operand *o) {
    switch (o->kind) {
    case PTX_OP_NAME:
        put_name(d, o);
        break;
    case PTX_OP_INTEGER:
        ptx_put(d->out, "i");
        break;
    case PTX_OP_F32:
        ptx_put(d->out, "f");
        break;
    case PTX_OP_F64:
        ptx_put(d->out, "d");
        break;
    case PTX_OP_MEMORY:
        put_memory(d, o);
        break;
    case PTX_OP_VECTOR:
        put_vector(d, o);
        break;
    case PTX_OP_LIST:
        ptx_put(d->out, "(%d)", o->items);
        break;
    case PTX_OP_PAIR:
        put_operand(d, o->item[0]);
        ptx_put(d->out, "|");
        put_operand(d, o->item[1]);
        break;
    }
}

static void list_instruction(const description *d, const char *kernel, ptx_form_fn *fn,
                             void *user) {
    const ptx_instruction *in = d->in;
    if (in->guard)
        fn(user, kernel, in->guard_negated ? "@!p" : "@p");
    ptx_put(d->out, "%s", in->opcode);
    for (int i = 0; i < in->modifiers; i++)
        ptx_put(d->out, ".%s", in->modifier[i]);
    for (int i = 0; i < in->operands; i++) {
        ptx_put(d->out, i ? ", " : " ");
        put_operand(d, in->operand[i]);
    }
    fn(user, kernel, d->out->data);
}

static void list_function(ptx_context *context, const ptx_function *f, const char *kernel,
                          ptx_form_fn *fn, void *user) {
    description d = {f, NULL, 0, NULL};
    for (d.place = 0; d.place < f->length; d.place++) {
        d.in = f->code[d.place];
        if (d.in->label)
            continue;
        d.out = ptx_text_new(context);
        list_instruction(&d, kernel, fn, user);
    }
}

typedef struct listing {
    const char *ptx;
    ptx_form_fn *fn;
    void *user;
} listing;

static void list_module(ptx_context *context, void *user) {
    const listing *to = user;
    ptx_module *module = ptx_parse(context, to->ptx);
    emit_facts(module);
    for (int k = 0; k < module->functions; k++)
        for (int i = 0; i < module->functions && module->function[k]->is_kernel; i++)
            if (reaches(module->function[k], module->function[i]))
                list_function(context, module->function[i], module->function[k]->name, to->fn,
                              to->user);
}

ptx_result ptx_forms(const char *ptx, ptx_form_fn *fn, void *user, char **log) {
    listing to = {ptx, fn, user};
    return ptx_within(list_module, &to, log);
}
