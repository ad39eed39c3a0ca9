/* atom and red: read, modify, write. No other thread runs in between (sim_module.h). */
#include <string.h>

#include "emit.h"

enum { ADD, MIN, MAX, AND, OR, XOR, EXCH, CAS, INC, DEC };

/* Returns one lane of a packed addition, computed from the variable `old`. */
static const char *add_packed(emitter *e, const ptx_type *type, const ptx_operand *b) {
    const ptx_type *element = element_type(type);
    const char *kind = element->kind == PTX_FLOAT ? "f16" : "bf16";
    const char *half[2];
    for (int i = 0; i < 2; i++)
        half[i] = say(e, "f32_to_%s(%s_to_f32((u16)(old >> %d)) + %s)", kind, kind, 16 * i,
                      lane_of(e, b, type, i));
    return say(e, "pair32(%s, %s)", half[0], half[1]);
}

static const char *add(emitter *e, const ptx_type *type, const ptx_operand *b) {
    if (!is_float(type))
        return say(e, "old + %s", bits_of(e, b, type->bits));
    if (type->bits == 32 && type->element)
        return add_packed(e, type, b);
    if (type->element)
        refuse(e, "the type");
    const char *value = value_of(e, b, type);
    if (type->bits >= 32)
        return pattern(e, type, say(e, "as_f%d(old) + %s", type->bits, value));
    return pattern(e, type, say(e, "%s_to_f32(old) + %s", type->name, value));
}

/* Returns the new value, computed from `old`. */
static const char *changed(emitter *e, const ptx_type *type, int op, const ptx_operand *b,
                           const ptx_operand *c) {
    int bits = type->bits;
    const char *t = c_type(type), *v = bits_of(e, b, bits);
    if (op != ADD && is_float(type))
        refuse(e, "the type");
    if ((op == INC || op == DEC) && (type->kind != PTX_UNSIGNED || bits != 32))
        refuse(e, "the type");
    switch (op) {
    case ADD:
        return add(e, type, b);
    case MIN:
    case MAX:
        v = value_of(e, b, type);
        return say(e, "(%s)old %c %s ? old : (%s)%s", t, op == MIN ? '<' : '>', v, c_bits(bits), v);
    case AND:
        return say(e, "old & %s", v);
    case OR:
        return say(e, "old | %s", v);
    case XOR:
        return say(e, "old ^ %s", v);
    case EXCH:
        return v;
    case CAS:
        return say(e, "old == %s ? %s : old", v, bits_of(e, c, bits));
    case INC:
        return say(e, "old >= %s ? 0 : old + 1", v);
    default:
        return say(e, "old == 0 || old > %s ? %s : old - 1", v, v);
    }
}

static void emit_atom(emitter *e) {
    static const char *const ops[] = {"add",  "min", "max", "and", "or", "xor",
                                      "exch", "cas", "inc", "dec", NULL};
    static const char *const orders[] = {"relaxed", "acquire", "release", "acq_rel", NULL};
    static const char *const scopes[] = {"cta", "cluster", "gpu", "sys", NULL};
    int returns = e->in->opcode[0] == 'a', op = which(e, ops), bits;
    const ptx_type *type = only_type(e);
    ptx_space space = space_of(e);
    which(e, orders);
    which(e, scopes);
    has(e, "noftz");
    int policy = has(e, "L2::cache_hint");
    int values = op == CAS ? 2 : 1;
    bits = type->bits;
    if (op < 0 || bits < 16 || (op != CAS && op != EXCH && op != ADD && bits < 32)) {
        refuse(e, "the operation");
        return;
    }
    if (!expect_operands(e, returns + 1 + values + policy, returns + 1 + values + policy))
        return;
    const char *t = c_bits(bits);
    put(e, "u64 a = %s; %s old = load_%s(a);",
        checked_address(e, operand(e, returns), space, bits / 8, "SIM_ATOMIC"), t, t);
    const ptx_operand *b = operand(e, returns + 1);
    const char *value = changed(e, type, op, b, values == 2 ? operand(e, returns + 2) : b);
    put(e, "store_%s(a, (%s)(%s));", t, t, value);
    if (returns) {
        put(e, "T->budget -= COST_POLL;");
        set_bits(e, operand(e, 0), "old");
    }
}

const emit_rule emit_atomic_rules[] = {
    {"atom", emit_atom, 0}, {"red", emit_atom, 0}, {NULL, NULL, 0}};
