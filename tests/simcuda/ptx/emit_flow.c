/* Branches, calls, exits and barriers. */
#include <string.h>

#include "emit.h"

/* Emits a jump to a label. A backward jump is charged for the instructions that it repeats. */
static void jump(emitter *e, const char *name) {
    const ptx_symbol *label = ptx_find(e->in->scope, name, NULL);
    if (!label || label->space != PTX_LABEL || label->targets) {
        refuse(e, say(e, "%s is no label", name));
        return;
    }
    if (label->offset <= (uint64_t)e->place)
        put(e, "TICK(%d, SITE(%d));", e->place - (int)label->offset + 1, site(e));
    put(e, "goto %s;", label->c_name);
}

static void emit_bra(emitter *e) {
    has(e, "uni");
    if (expect_operands(e, 1, 1) && operand(e, 0)->kind == PTX_OP_NAME)
        jump(e, operand(e, 0)->name);
    else
        refuse(e, "the target");
}

/* brx.idx index, list: a switch. */
static void emit_brx(emitter *e) {
    has(e, "uni");
    if (!has(e, "idx") || !expect_operands(e, 2, 2) || operand(e, 1)->kind != PTX_OP_NAME) {
        refuse(e, "the form");
        return;
    }
    const ptx_symbol *list = ptx_find(e->in->scope, operand(e, 1)->name, NULL);
    if (!list || !list->targets) {
        refuse(e, "the list of targets");
        return;
    }
    put(e, "switch (%s) {", bits_of(e, operand(e, 0), 32));
    for (int i = 0; i < list->n_targets; i++) {
        put(e, "case %d: ", i);
        jump(e, list->targets[i]);
    }
    put(e,
        "default: fault(T, SIM_FAULT_ILLEGAL, \"an index beyond the branch targets\", SITE(%d)); }",
        site(e));
}

/* Returns the buffers of a parenthesized list, each after a comma. */
static const char *buffers(emitter *e, const ptx_operand *list) {
    const char *text = "";
    for (int i = 0; list && i < list->items; i++) {
        const ptx_operand *o = list->item[i];
        const ptx_symbol *s = o->kind == PTX_OP_NAME ? ptx_find(e->in->scope, o->name, NULL) : NULL;
        if (!s || s->space != PTX_PARAM)
            refuse(e, "an argument that is no .param variable");
        else
            text = say(e, "%s, %s", text, s->c_name);
    }
    return text;
}

/* Calls a function without a body that the simulator provides. */
static void call_external(emitter *e, const char *name, const ptx_operand *result,
                          const ptx_operand *arguments) {
    int given = arguments ? arguments->items : 0;
    if (!strcmp(name, "vprintf") && given == 2 && result) {
        put(e, "rt_vprintf(T%s%s, SITE(%d));", buffers(e, result), buffers(e, arguments), site(e));
    } else if (!strcmp(name, "__assertfail") && given == 5) {
        ptx_operand first = *arguments;
        first.items = 4;
        put(e, "rt_assertfail(T%s, SITE(%d));", buffers(e, &first), site(e));
    } else {
        refuse(e, say(e, "the function %s has no body here", name));
    }
}

static void call_pointer(emitter *e, const char *reg, const ptx_operand *result,
                         const ptx_operand *arguments) {
    int n = (result ? result->items : 0) + (arguments ? arguments->items : 0);
    put(e, "((void (*)(sim_thread *");
    while (n-- > 0)
        put(e, ", char *");
    put(e, "))(uintptr_t)%s)(T%s%s);", reg, buffers(e, result), buffers(e, arguments));
}

static void emit_call(emitter *e) {
    has(e, "uni");
    int i = 0, n = e->in->operands;
    ptx_operand **o = e->in->operand;
    const ptx_operand *result = i < n && o[i]->kind == PTX_OP_LIST ? o[i++] : NULL;
    const ptx_operand *callee = i < n && o[i]->kind == PTX_OP_NAME ? o[i++] : NULL;
    const ptx_operand *arguments = i < n && o[i]->kind == PTX_OP_LIST ? o[i++] : NULL;
    if (!callee) {
        refuse(e, "the callee");
        return;
    }
    put(e, "TICK(16, SITE(%d));", site(e));
    const char *reg = register_named(e, callee->name);
    const ptx_symbol *symbol = reg ? NULL : ptx_find(e->in->scope, callee->name, NULL);
    if (reg) {
        call_pointer(e, reg, result, arguments);
    } else if (!symbol || symbol->space != PTX_FUNCTION) {
        refuse(e, say(e, "%s is no function", callee->name));
    } else if (!symbol->function->is_defined) {
        call_external(e, callee->name, result, arguments);
    } else {
        const ptx_function *f = symbol->function;
        if ((result ? result->items : 0) != f->results ||
            (arguments ? arguments->items : 0) != f->params)
            refuse(e, "the number of arguments");
        put(e, "%s(T%s%s);", f->c_name, buffers(e, result), buffers(e, arguments));
    }
}

static void emit_ret(emitter *e) {
    has(e, "uni");
    if (e->in->opcode[0] == 'e' && !e->function->is_kernel)
        put(e, "T->driver->exit(T); __builtin_unreachable();");
    else
        put(e, "LEAVE");
}

static void emit_trap(emitter *e) {
    put(e, "fault(T, SIM_FAULT_TRAP, \"trap instruction\", SITE(%d));", site(e));
}

static void emit_nothing(emitter *e) {
    static const char *const parts[] = {"launch_dependents", "wait", NULL};
    which(e, parts);
}

static void emit_nanosleep(emitter *e) {
    only_type(e);
    put(e, "T->driver->yield(T, SIM_YIELD_SLEEP, SITE(%d));", site(e));
}

/* bar.warp.sync mask */
static void warp_barrier(emitter *e) {
    if (!has(e, "sync"))
        refuse(e, "the form");
    if (expect_operands(e, 1, 1))
        put(e, "T->driver->collective(T, warp_sync, %s, 0, SITE(%d));",
            bits_of(e, operand(e, 0), 32), site(e));
}

/* bar.red.popc.u32 d, barrier{, count}, {!}p and its variants. */
static void reducing_barrier(emitter *e, int aligned) {
    static const char *const folds[] = {"popc", "and", "or", NULL};
    static const char *const kinds[] = {"SIM_BARRIER_POPC", "SIM_BARRIER_AND", "SIM_BARRIER_OR"};
    int fold = which(e, folds), n = e->in->operands;
    only_type(e);
    if (fold < 0 || !expect_operands(e, 3, 4)) {
        refuse(e, "the form");
        return;
    }
    set_bits(e, operand(e, 0),
             say(e, "T->driver->barrier(T, %s, %s, %s, %s, %d, SITE(%d))", kinds[fold],
                 bits_of(e, operand(e, 1), 32), n == 4 ? bits_of(e, operand(e, 2), 32) : "0",
                 predicate(e, operand(e, n - 1)), aligned, site(e)));
}

static void emit_bar(emitter *e) {
    int aligned = has(e, "aligned") | !strcmp(e->in->opcode, "bar");
    if (has(e, "warp")) {
        warp_barrier(e);
        return;
    }
    has(e, "cta");
    if (has(e, "red")) {
        reducing_barrier(e, aligned);
        return;
    }
    int arrives = has(e, "arrive");
    if (!arrives && !has(e, "sync"))
        refuse(e, "the form");
    if (expect_operands(e, arrives ? 2 : 1, 2))
        put(e, "T->driver->barrier(T, %s, %s, %s, 0, %d, SITE(%d));",
            arrives ? "SIM_BARRIER_ARRIVE" : "SIM_BARRIER_SYNC", bits_of(e, operand(e, 0), 32),
            e->in->operands == 2 ? bits_of(e, operand(e, 1), 32) : "0", aligned, site(e));
}

const emit_rule emit_flow_rules[] = {{"bra", emit_bra, 0},
                                     {"brx", emit_brx, 0},
                                     {"call", emit_call, 0},
                                     {"ret", emit_ret, 0},
                                     {"exit", emit_ret, 0},
                                     {"trap", emit_trap, 0},
                                     {"brkpt", emit_trap, 0},
                                     {"pmevent", emit_nothing, 0},
                                     {"griddepcontrol", emit_nothing, 0},
                                     {"nanosleep", emit_nanosleep, 0},
                                     {"bar", emit_bar, 0},
                                     {"barrier", emit_bar, 0},
                                     {NULL, NULL, 0}};
