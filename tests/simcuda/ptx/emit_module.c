/* Emits a module: its variables, its functions, and the tables that sim_module.h describes. */
#include <inttypes.h>
#include <string.h>

#include "emit.h"

/* Returns a constant as a number of the element's width; a decimal constant of an f32 is
   narrowed. */
static uint64_t init_bits(const ptx_symbol *s, const ptx_init *init) {
    uint64_t value = init->symbol ? 0 : init->value;
    if (init->kind == PTX_OP_F64 && s->type->bits == 32) {
        double wide;
        memcpy(&wide, &value, 8);
        float narrow = (float)wide;
        uint32_t bits;
        memcpy(&bits, &narrow, 4);
        return bits;
    }
    return s->type->bits < 64 ? value & ((1ull << s->type->bits) - 1) : value;
}

static int is_placed(const ptx_symbol *s) {
    return (s->space == PTX_GLOBAL || s->space == PTX_CONST) && !s->is_external;
}

static void emit_variable(emitter *e, const ptx_symbol *s) {
    put(e, "static void *%s; /* %s */\n", s->c_name, s->name);
    if (!s->inits)
        return;
    if (s->type->bits > 64)
        ptx_error(e->context, "variable %s: unsupported initializer of 128 bits", s->name);
    put(e, "static const %s %s_init[%" PRIu64 "] = {", c_bits(s->type->bits), s->c_name, s->count);
    for (int i = 0; i < s->inits; i++)
        put(e, "%s0x%" PRIx64, i ? ", " : "", init_bits(s, &s->init[i]));
    put(e, "};\n");
}

/* Emits the addresses in initializers. Returns their number. */
static int emit_relocs(emitter *e, const ptx_symbol *s) {
    int n = 0;
    for (int i = 0; i < s->inits; i++) {
        const ptx_init *init = &s->init[i];
        if (!init->symbol)
            continue;
        const ptx_symbol *to = ptx_find(e->module->scope, init->symbol, NULL);
        int is_function = to && to->space == PTX_FUNCTION && to->function->is_defined;
        if (s->type->bits != 64 || !to || !(is_function || is_placed(to)))
            ptx_error(e->context, "variable %s: unsupported initializer %s", s->name, init->symbol);
        else
            put(e, "{%d, %d, %d, %s, %lldll},\n", s->index, i * 8, is_function ? -1 : to->index,
                is_function ? to->c_name : "NULL", (long long)init->value);
        n++;
    }
    return n;
}

static void emit_variable_tables(emitter *e, int *globals, int *relocs) {
    ptx_module *m = e->module;
    put(e, "static const sim_global globals[] = {\n");
    for (int i = 0; i < m->variables; i++) {
        const ptx_symbol *s = m->variable[i];
        if (!is_placed(s))
            continue;
        put(e, "{\"%s\", %" PRIu64 ", %" PRIu64 ", %s%s, &%s, %d},\n", s->name, s->size, s->align,
            s->inits ? s->c_name : "NULL", s->inits ? "_init" : "", s->c_name,
            s->space == PTX_CONST);
        ++*globals;
    }
    put(e, "{0}};\nstatic const sim_reloc relocs[] = {\n");
    for (int i = 0; i < m->variables; i++)
        if (is_placed(m->variable[i]))
            *relocs += emit_relocs(e, m->variable[i]);
    put(e, "{0}};\n");
}

static void emit_kernel_facts(emitter *e, const ptx_function *f, ptx_text *table) {
    uint64_t dynamic, size = 0;
    uint64_t fixed = place_shared(e->module, f, &dynamic);
    put(e, "static const sim_param %s_params[] = {", f->c_name);
    for (int i = 0; i < f->params; i++) {
        const ptx_symbol *s = f->param[i];
        put(e, "{%d, %d, %d}, ", (int)s->offset, (int)s->size, (int)s->align);
        size = s->offset + s->size;
    }
    put(e, "{0}};\nstatic const sim_shared %s_shared[] = {", f->c_name);
    int shareds = 0;
    for (int i = 0; i < e->module->variables; i++) {
        const ptx_symbol *s = e->module->variable[i];
        int mine = 0;
        for (int k = 0; k < f->shareds; k++)
            mine |= f->shared[k] == s;
        if (s->space != PTX_SHARED || !(mine || (s->is_fixed && s->offset + s->size <= fixed)))
            continue;
        put(e, "{\"%s\", %d, %d}, ", s->name, (int)s->offset, (int)s->size);
        shareds++;
    }
    put(e, "{0}};\n");
    ptx_put(table,
            "{\"%s\", %s, %s_params, %d, %d, %d, %d, %d, %d, %d, %d, %u, {%u, %u, %u}, %s_shared, "
            "%d},\n",
            f->name, f->c_name, f->c_name, f->params, (int)size, (int)fixed, (int)dynamic,
            (int)f->local_bytes, (int)f->stack_bytes + 16384, f->recursive, f->synchronizes,
            f->max_threads, f->required[0], f->required[1], f->required[2], f->c_name, shareds);
}

/* Emits functions and kernels. Each kernel follows the placement of its shared variables, which may
   differ between kernels. */
static void emit_functions(emitter *e, ptx_text *table, int *kernels) {
    ptx_module *m = e->module;
    for (int i = 0; i < m->functions; i++)
        if (m->function[i]->is_defined) {
            emit_prototype(e, m->function[i]);
            put(e, ";\n");
        }
    for (int i = 0; i < m->functions; i++) {
        ptx_function *f = m->function[i];
        if (!f->is_defined)
            continue;
        if (f->is_kernel) {
            emit_kernel_facts(e, f, table);
            ++*kernels;
        }
        emit_function(e, f);
    }
}

const char *emit_module(ptx_module *m, const ptx_mode *mode) {
    emitter state = {0}, *e = &state;
    ptx_text *out = ptx_text_new(m->context), *kernels = ptx_text_new(m->context);
    int n_kernels = 0, n_globals = 0, n_relocs = 0;
    e->context = m->context;
    e->module = m;
    e->body = ptx_text_new(m->context);
    e->sites = ptx_text_new(m->context);
    e->shapes = ptx_text_new(m->context);
    if (mode->counted)
        e->code_blocks = ptx_text_new(m->context);
    emit_facts(m);
    for (int i = 0; i < m->variables; i++)
        if (is_placed(m->variable[i])) {
            m->variable[i]->index = n_globals++;
            emit_variable(e, m->variable[i]);
        }
    emit_functions(e, kernels, &n_kernels);
    n_globals = 0;
    emit_variable_tables(e, &n_globals, &n_relocs);
    ptx_put(out, "#define SITE(n) (&sites[n])\nstatic const sim_site sites[%d];\n%s%s",
            e->n_sites + 1, e->shapes->data, e->body->data);
    ptx_put(out, "static const sim_kernel kernels[] = {\n%s{0}};\n", kernels->data);
    ptx_put(out, "static const sim_site sites[%d] = {\n%s};\n", e->n_sites + 1, e->sites->data);
    if (mode->counted)
        ptx_put(out, "static const sim_code_block code_blocks[] = {\n%s{{0}}};\n",
                e->code_blocks->data);
    ptx_put(out,
            "__attribute__((visibility(\"default\"))) const sim_module sim_module_export = {\n"
            "SIM_ABI, SIM_CHECK, %d, kernels, %d, globals, %d, relocs, %d, release_thread,\n",
            m->arch, n_kernels, n_globals, n_relocs);
    ptx_put(out, "%d, sites, %d, %s, %d, %s,\n", mode->counted, e->n_sites,
            mode->counted ? "code_blocks" : "NULL", e->n_code_blocks,
            quoted(e, mode->usage ? mode->usage : ""));
    ptx_put(out, "#if SIM_ASYNC\nend_async_block\n#else\nNULL\n#endif\n};\n");
    return out->data;
}
