/* Facts about functions that are needed before they are emitted: call graph, waiting, stack and
   shared memory. */
#include <string.h>

#include "emit.h"

static int is_one_of(const char *word, const char *const *list) {
    for (; *list; list++)
        if (!strcmp(word, *list))
            return 1;
    return 0;
}

static int has_part(const ptx_instruction *in, const char *part) {
    for (int i = 0; i < in->modifiers; i++)
        if (!strcmp(in->modifier[i], part))
            return 1;
    return 0;
}

static void note_callee(ptx_context *context, ptx_function *f, ptx_function *callee) {
    for (int i = 0; i < f->callees; i++)
        if (f->callee[i] == callee)
            return;
    PTX_APPEND(context, f->callee, f->callees, callee);
}

static void note_shared(ptx_context *context, ptx_function *f, ptx_symbol *symbol) {
    for (int i = 0; i < f->shareds; i++)
        if (f->shared[i] == symbol)
            return;
    PTX_APPEND(context, f->shared, f->shareds, symbol);
}

/* Records names in an operand: shared variables, and functions that are called or whose address is
   taken. */
static void note_names(ptx_context *context, ptx_function *f, const ptx_instruction *in,
                       const ptx_operand *o) {
    for (int i = 0; i < o->items; i++)
        note_names(context, f, in, o->item[i]);
    ptx_symbol *symbol = o->name ? ptx_find(in->scope, o->name, NULL) : NULL;
    if (symbol && symbol->space == PTX_SHARED)
        note_shared(context, f, symbol);
    if (symbol && symbol->space == PTX_FUNCTION)
        note_callee(context, f, symbol->function);
}

static int jumps_back(const ptx_instruction *in, int place) {
    if (in->label || (strcmp(in->opcode, "bra") != 0 && strcmp(in->opcode, "brx") != 0))
        return 0;
    for (int i = 0; i < in->operands; i++) {
        const ptx_operand *o = in->operand[i];
        const ptx_symbol *s = o->name ? ptx_find(in->scope, o->name, NULL) : NULL;
        if (s && s->space == PTX_LABEL && s->targets)
            return 1; /* not analyzed: assume that it does */
        if (s && s->space == PTX_LABEL && s->offset <= (uint64_t)place)
            return 1;
    }
    return 0;
}

/* Tells whether an instruction reads memory in a way that waits for another thread's write. */
static int polls(const ptx_instruction *in) {
    int load = !strcmp(in->opcode, "ld") && (has_part(in, "volatile") || has_part(in, "relaxed") ||
                                             has_part(in, "acquire") || has_part(in, "mmio"));
    return load || !strcmp(in->opcode, "atom");
}

static void look_at_code(ptx_context *context, ptx_function *f) {
    static const char *const waiting[] = {
        "bar", "barrier",   "shfl",     "vote",     "match", "redux",    "elect",
        "mma", "nanosleep", "ldmatrix", "stmatrix", "wgmma", "mbarrier", NULL};
    int loops = 0, polling = 0;
    for (int i = 0; i < f->length; i++) {
        const ptx_instruction *in = f->code[i];
        if (in->label)
            continue;
        for (int k = 0; k < in->operands; k++)
            note_names(context, f, in, in->operand[k]);
        f->synchronizes |= is_one_of(in->opcode, waiting);
        f->synchronizes |= !f->is_kernel && !strcmp(in->opcode, "exit");
        loops |= jumps_back(in, i);
        polling |= polls(in);
        for (int k = 0; k < in->operands && !strcmp(in->opcode, "call"); k++) {
            const ptx_operand *o = in->operand[k];
            const ptx_symbol *s = o->name ? ptx_find(in->scope, o->name, NULL) : NULL;
            f->calls_pointer |= s && s->space == PTX_REG;
        }
    }
    f->synchronizes |= (loops && polling) || f->calls_pointer;
}

/* Estimates the host stack: every register may be spilled twice; temporaries; .local arrays and
   buffers. */
static void look_at_variables(ptx_function *f) {
    uint64_t registers = 0, arrays = 0;
    for (int i = 0; i < f->variables; i++) {
        const ptx_symbol *s = f->variable[i];
        if (s->space == PTX_REG)
            registers += s->range ? (uint64_t)s->range : 1;
        else if (s->space == PTX_LOCAL)
            f->local_bytes += s->size;
        else if (s->space == PTX_PARAM)
            arrays += s->size + 16;
    }
    f->stack_bytes = 1024 + 16 * registers + 8 * (uint64_t)f->length + arrays + f->local_bytes;
}

enum { UNSEEN, OPEN, DONE };

static void close_over_calls(ptx_function *f) {
    uint64_t local = 0, stack = 0;
    f->state = OPEN;
    for (int i = 0; i < f->callees; i++) {
        ptx_function *c = f->callee[i];
        if (c->state == OPEN) {
            f->recursive = 1;
            continue;
        }
        if (c->state == UNSEEN)
            close_over_calls(c);
        f->recursive |= c->recursive;
        f->synchronizes |= c->synchronizes;
        f->calls_pointer |= c->calls_pointer;
        local = c->local_bytes > local ? c->local_bytes : local;
        stack = c->stack_bytes > stack ? c->stack_bytes : stack;
    }
    f->recursive |= f->calls_pointer;
    f->local_bytes += local;
    f->stack_bytes += stack;
    f->state = DONE;
}

/* Spreads facts over cycles of the call graph. A cycle is closed before all of its members are
   known, so the facts of each are passed to all once more. */
static void spread_over_cycles(ptx_module *m) {
    for (int changed = 1; changed;) {
        changed = 0;
        for (int i = 0; i < m->functions; i++)
            for (int k = 0; k < m->function[i]->callees; k++) {
                ptx_function *f = m->function[i];
                const ptx_function *c = f->callee[k];
                if ((c->synchronizes && !f->synchronizes) || (c->recursive && !f->recursive)) {
                    f->synchronizes |= c->synchronizes;
                    f->recursive |= c->recursive;
                    changed = 1;
                }
            }
    }
}

static uint64_t aligned(uint64_t offset, uint64_t align) {
    return (offset + align - 1) & ~(align - 1);
}

void emit_facts(ptx_module *m) {
    for (int i = 0; i < m->functions; i++) {
        look_at_code(m->context, m->function[i]);
        look_at_variables(m->function[i]);
    }
    for (int i = 0; i < m->functions; i++)
        if (m->function[i]->state == UNSEEN)
            close_over_calls(m->function[i]);
    spread_over_cycles(m);
    for (int i = 0; i < m->functions; i++)
        for (int k = 0; k < m->function[i]->shareds && !m->function[i]->is_kernel; k++) {
            ptx_symbol *s = m->function[i]->shared[k];
            if (s->is_fixed || s->count == 0)
                continue;
            s->is_fixed = 1;
            s->offset = aligned(m->fixed_shared, s->align);
            m->fixed_shared = s->offset + s->size;
        }
}

static int reaches_within(const ptx_function *f, const ptx_function *callee, int depth) {
    if (f == callee || f->calls_pointer)
        return 1;
    for (int i = 0; i < f->callees && depth; i++)
        if (reaches_within(f->callee[i], callee, depth - 1))
            return 1;
    return 0;
}

int reaches(const ptx_function *f, const ptx_function *callee) {
    return reaches_within(f, callee, 64);
}

static int uses_fixed(const ptx_module *m, const ptx_function *kernel) {
    for (int i = 0; i < m->functions; i++)
        for (int k = 0; k < m->function[i]->shareds; k++)
            if (m->function[i]->shared[k]->is_fixed && reaches(kernel, m->function[i]))
                return 1;
    return 0;
}

uint64_t place_shared(ptx_module *m, const ptx_function *kernel, uint64_t *dynamic) {
    uint64_t offset = uses_fixed(m, kernel) ? m->fixed_shared : 0, align = 16;
    for (int i = 0; i < kernel->shareds; i++) {
        ptx_symbol *s = kernel->shared[i];
        if (s->is_fixed || s->count == 0)
            continue;
        s->offset = aligned(offset, s->align);
        offset = s->offset + s->size;
    }
    for (int i = 0; i < m->variables; i++)
        if (m->variable[i]->space == PTX_SHARED && m->variable[i]->count == 0)
            align = m->variable[i]->align > align ? m->variable[i]->align : align;
    *dynamic = aligned(offset, align);
    for (int i = 0; i < m->variables; i++)
        if (m->variable[i]->space == PTX_SHARED && m->variable[i]->count == 0)
            m->variable[i]->offset = *dynamic;
    return offset;
}
