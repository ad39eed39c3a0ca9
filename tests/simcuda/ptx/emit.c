/* Emits one instruction: its guard, the rule for its opcode, and the check that every part of its
   name was used. */
#include <string.h>

#include "emit.h"

void refuse(emitter *e, const char *why) {
    ptx_error(e->context, "%s %s, PTX line %d: unsupported instruction \"%s\": %s",
              e->function->is_kernel ? "kernel" : "function", e->function->name, e->in->line,
              e->in->text, why);
}

int has(emitter *e, const char *modifier) {
    for (int i = 0; i < e->in->modifiers; i++)
        if (!strcmp(e->in->modifier[i], modifier)) {
            e->in->used |= 1u << i;
            return 1;
        }
    return 0;
}

int which(emitter *e, const char *const *modifiers) {
    for (int i = 0; modifiers[i]; i++)
        if (has(e, modifiers[i]))
            return i;
    return -1;
}

int types_in(emitter *e) {
    int n = 0;
    for (int i = 0; i < e->in->modifiers; i++)
        n += ptx_type_named(e->in->modifier[i]) != NULL;
    return n;
}

const ptx_type *type_at(emitter *e, int n) {
    for (int i = 0; i < e->in->modifiers; i++) {
        const ptx_type *type = ptx_type_named(e->in->modifier[i]);
        if (type && n-- == 0) {
            e->in->used |= 1u << i;
            return type;
        }
    }
    refuse(e, "a type is missing");
    return ptx_type_named("b32");
}

const ptx_type *only_type(emitter *e) {
    if (types_in(e) > 1)
        refuse(e, "more than one type");
    return type_at(e, 0);
}

int rounding(emitter *e) {
    static const char *const modes[] = {"rn", "rz", "rm", "rp", NULL};
    return which(e, modes);
}

int expect_operands(emitter *e, int least, int most) {
    if (e->in->operands >= least && e->in->operands <= most)
        return 1;
    refuse(e, "the number of operands");
    return 0;
}

const char *quoted(emitter *e, const char *text) {
    ptx_text *out = ptx_text_new(e->context);
    ptx_put(out, "\"");
    for (; *text; text++)
        if (*text == '\n')
            ptx_put(out, "\\n");
        else if (*text == '"' || *text == '\\' || *text == '?')
            ptx_put(out, "\\%c", *text);
        else
            ptx_put_bytes(out, text, 1);
    ptx_put(out, "\"");
    return out->data;
}

int site(emitter *e) {
    const ptx_instruction *in = e->in;
    if (e->site_of == in)
        return e->n_sites - 1;
    const char *file = in->source_file < e->module->files ? e->module->file[in->source_file] : NULL;
    int known = file && in->source_line;
    ptx_put(e->sites, "{%s, %s, %d, %d, %s},\n", quoted(e, e->function->name), quoted(e, in->text),
            in->line, known ? in->source_line : 0, known ? quoted(e, file) : "NULL");
    e->site_of = in;
    return e->n_sites++;
}

int is_float(const ptx_type *type) {
    return type->kind == PTX_FLOAT || type->kind == PTX_BFLOAT;
}

static const emit_rule *rule_for(emitter *e) {
    const ptx_type *type = NULL;
    for (int i = 0; i < e->in->modifiers; i++)
        if (ptx_type_named(e->in->modifier[i]))
            type = ptx_type_named(e->in->modifier[i]);
    char types = type && is_float(type) ? 'f' : 'i';
    static const emit_rule *const tables[] = {
        emit_integer_rules, emit_bits_rules,   emit_float_rules, emit_compare_rules,
        emit_convert_rules, emit_memory_rules, emit_flow_rules,  emit_atomic_rules,
        emit_warp_rules,    emit_matrix_rules, emit_async_rules};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const emit_rule *rule = tables[i]; rule->opcode; rule++)
            if (!strcmp(rule->opcode, e->in->opcode) && (!rule->types || rule->types == types))
                return rule;
    return NULL;
}

static void check_used(emitter *e) {
    for (int i = 0; i < e->in->modifiers; i++)
        if (!(e->in->used >> i & 1)) {
            refuse(e, say(e, "\".%s\" is not known for it", e->in->modifier[i]));
            return;
        }
}

void emit_instruction(emitter *e) {
    ptx_instruction *in = e->in;
    if (in->label) {
        put(e, "%s:;\n", in->label->c_name);
        return;
    }
    const emit_rule *rule = rule_for(e);
    if (!rule) {
        refuse(e, "the opcode is not known for these types");
        return;
    }
    int errors = e->context->errors;
    if (in->guard) {
        const char *guard = register_named(e, in->guard);
        if (!guard)
            refuse(e, "the guard is no register");
        else
            put(e, "if (%s%s) ", in->guard_negated ? "!" : "", guard);
    }
    put(e, "{ ");
    check_accumulators(e);
    rule->emit(e);
    put(e, " }\n");
    if (e->context->errors == errors)
        check_used(e);
}
