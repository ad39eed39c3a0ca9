/* Emits a function: its header, its variables as C locals, its code. */
#include "emit.h"

void emit_prototype(emitter *e, const ptx_function *f) {
    put(e, "static void %s(sim_thread *T", f->c_name);
    for (int i = 0; i < f->results; i++)
        put(e, ", char *%s", f->result[i]->c_name);
    for (int i = 0; i < f->params && !f->is_kernel; i++)
        put(e, ", char *%s", f->param[i]->c_name);
    put(e, ")");
}

static void declare_registers(emitter *e, const ptx_symbol *s) {
    const char *type = c_bits(s->type->bits);
    if (!s->range) {
        put(e, "%s %s = 0;\n", type, s->c_name);
        return;
    }
    for (int i = 0; i < s->range; i++)
        put(e, "%s%s_%d = 0%s", i == 0 ? type : "", i == 0 ? say(e, " %s", s->c_name) : s->c_name,
            i, i + 1 < s->range ? ", " : ";\n");
}

/* Returns whether the function has local arrays, which it must remove from the thread's list on
   return. */
static int declare_variables(emitter *e, const ptx_function *f) {
    int locals = 0;
    for (int i = 0; i < f->variables; i++) {
        const ptx_symbol *s = f->variable[i];
        if (s->space == PTX_REG)
            declare_registers(e, s);
        else if (s->space == PTX_LOCAL || s->space == PTX_PARAM)
            put(e, "_Alignas(%d) char %s[%llu];\n", s->align < 16 ? 16 : (int)s->align, s->c_name,
                (unsigned long long)(s->size ? s->size : 1));
        locals += s->space == PTX_LOCAL;
    }
    for (int i = 0; i < f->variables; i++) {
        const ptx_symbol *s = f->variable[i];
        if (s->space == PTX_LOCAL)
            put(e, "sim_local %s_entry; enter_local(T, &%s_entry, %s, %llu);\n", s->c_name,
                s->c_name, s->c_name, (unsigned long long)s->size);
    }
    return locals > 0;
}

void emit_function(emitter *e, ptx_function *f) {
    e->function = f;
    emit_prototype(e, f);
    put(e, " { /* %s */\nconst sim_block *const B = T->block;\nu32 CC = 0;\n", f->name);
    put(e, "const sim_local *const outer = T->locals;\n");
    int has_locals = declare_variables(e, f);
    find_accumulators(e);
    put(e, "#undef LEAVE\n#define LEAVE %sreturn;\n", has_locals ? "T->locals = outer; " : "");
    for (int i = 0; i < f->length; i++) {
        e->in = f->code[i];
        e->place = i;
        if (e->code_blocks)
            count_instruction(e, e->in);
        emit_instruction(e);
    }
    if (e->code_blocks)
        end_code_block(e);
    put(e, "LEAVE\n}\n\n");
}
