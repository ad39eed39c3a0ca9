/* For modules that count: basic blocks, and the classes of their instructions. A thread counts how
   often it enters each block; the classes are added up at translation time. */
#include <stdio.h>
#include <string.h>

#include "emit.h"

static int is_among(const char *word, const char *const *list) {
    for (; *list; list++)
        if (!strcmp(word, *list))
            return 1;
    return 0;
}

/* Returns the last type in the name; of conversions, the source. */
static const ptx_type *last_type(const ptx_instruction *in) {
    const ptx_type *type = NULL;
    for (int i = 0; i < in->modifiers; i++)
        if (ptx_type_named(in->modifier[i]))
            type = ptx_type_named(in->modifier[i]);
    return type;
}

static int has_modifier(const ptx_instruction *in, const char *name) {
    for (int i = 0; i < in->modifiers; i++)
        if (!strcmp(in->modifier[i], name))
            return 1;
    return 0;
}

static sim_class arithmetic_class(const ptx_instruction *in) {
    static const char *const adders[] = {"add", "sub", "mul", "fma", "mad", NULL};
    static const char *const special[] = {"ex2", "lg2", "rcp",  "rsqrt", "sqrt",
                                          "sin", "cos", "tanh", "div",   NULL};
    const ptx_type *type = last_type(in);
    if (!type || !is_float(type))
        return SIM_CLASS_INTEGER;
    if (is_among(in->opcode, special))
        return SIM_CLASS_SPECIAL;
    if (type->element || type->bits == 16)
        return SIM_CLASS_HALF;
    if (type->bits == 64)
        return SIM_CLASS_FP64;
    return is_among(in->opcode, adders) ? SIM_CLASS_FP32 : SIM_CLASS_INTEGER;
}

/* Returns the class, or SIM_CLASSES for an instruction in none. */
static sim_class class_of(const ptx_instruction *in) {
    static const char *const free[] = {"mov",          "cvta",      "isspacep",
                                       "createpolicy", "discard",   "applypriority",
                                       "prefetch",     "prefetchu", NULL};
    static const char *const memory[] = {"ld", "ldu",      "st",       "atom", "red",
                                         "cp", "ldmatrix", "stmatrix", NULL};
    static const char *const exchange[] = {"shfl", "vote", "match", "redux", "activemask", NULL};
    static const char *const control[] = {"bra",       "brx",      "call",       "ret",    "exit",
                                          "trap",      "bar",      "barrier",    "membar", "fence",
                                          "nanosleep", "mbarrier", "setmaxnreg", NULL};
    if (is_among(in->opcode, free) || has_modifier(in, "param") || has_modifier(in, "const"))
        return SIM_CLASSES;
    if (is_among(in->opcode, memory))
        return has_modifier(in, "commit_group") || has_modifier(in, "wait_group") ||
                       has_modifier(in, "wait_all")
                   ? SIM_CLASS_CONTROL
                   : SIM_CLASS_MEMORY;
    if (is_among(in->opcode, exchange))
        return SIM_CLASS_EXCHANGE;
    if (is_among(in->opcode, control))
        return SIM_CLASS_CONTROL;
    if (!strcmp(in->opcode, "mma"))
        return SIM_CLASS_MATRIX;
    if (!strcmp(in->opcode, "wgmma"))
        return has_modifier(in, "mma_async") ? SIM_CLASS_MATRIX : SIM_CLASS_CONTROL;
    return !strcmp(in->opcode, "cvt") ? SIM_CLASS_CONVERT : arithmetic_class(in);
}

/* Adds the multiply-adds of an mma, whose shape is a part of its name: m16n8k16. A warp does a
   quarter of those of a wgmma. */
static void count_macs(emitter *e, const ptx_instruction *in) {
    const ptx_type *type = NULL;
    unsigned m = 0, n = 0, k = 0;
    for (int i = 0, types = 0; i < in->modifiers; i++) {
        sscanf(in->modifier[i], "m%un%uk%u", &m, &n, &k);
        if (ptx_type_named(in->modifier[i]) && types++ == 1) /* d, a, b, c */
            type = ptx_type_named(in->modifier[i]);
    }
    if (!type)
        return;
    sim_class macs = type->kind == PTX_TF32 ? SIM_CLASS_MACS_TF32
                     : type->bits == 16     ? SIM_CLASS_MACS_16
                     : type->bits == 64     ? SIM_CLASS_MACS_64
                                            : SIM_CLASS_MACS_8;
    e->instructions[macs] += m * n * k / (strcmp(in->opcode, "wgmma") ? 1 : 4);
}

void end_code_block(emitter *e) {
    if (!e->in_code_block)
        return;
    ptx_put(e->code_blocks, "{{");
    for (int i = 0; i < SIM_CLASSES; i++)
        ptx_put(e->code_blocks, "%u%s", e->instructions[i], i + 1 < SIM_CLASSES ? ", " : "}},\n");
    memset(e->instructions, 0, sizeof e->instructions);
    e->in_code_block = 0;
}

void count_instruction(emitter *e, const ptx_instruction *in) {
    static const char *const ends[] = {"bra", "brx", "ret", "exit", "trap", NULL};
    sim_class class;
    if (in->label) {
        end_code_block(e);
        return;
    }
    if (!e->in_code_block)
        put(e, "T->trips[%d]++;\n", e->n_code_blocks++);
    e->in_code_block = 1;
    class = class_of(in);
    if (class != SIM_CLASSES)
        e->instructions[class]++;
    if (class == SIM_CLASS_MATRIX)
        count_macs(e, in);
    if (is_among(in->opcode, ends))
        end_code_block(e);
}
