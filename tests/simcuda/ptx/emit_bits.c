/* Logic, shifts, bit fields, permutes and plain moves. */
#include <string.h>

#include "emit.h"

static void emit_logic(emitter *e) {
    const ptx_type *type = only_type(e);
    const char sign = !strcmp(e->in->opcode, "and")  ? '&'
                      : !strcmp(e->in->opcode, "or") ? '|'
                                                     : '^';
    if (type->kind != PTX_BITS && type->kind != PTX_PREDICATE)
        refuse(e, "the type");
    if (!expect_operands(e, 3, 3))
        return;
    const char *t = c_bits(type->bits);
    set_bits(e, operand(e, 0),
             say(e, "(%s)(%s %c %s)", t, value_of(e, operand(e, 1), type), sign,
                 value_of(e, operand(e, 2), type)));
}

static void emit_not(emitter *e) {
    const ptx_type *type = only_type(e);
    if (!expect_operands(e, 2, 2))
        return;
    const char *a = value_of(e, operand(e, 1), type);
    int logical = type->kind == PTX_PREDICATE || e->in->opcode[0] == 'c'; /* cnot */
    set_bits(e, operand(e, 0), say(e, "(%s)%s%s", c_bits(type->bits), logical ? "!" : "~", a));
}

/* Shifts by more than the width give zero, or the sign bit in all places. */
static void emit_shift(emitter *e) {
    const ptx_type *type = only_type(e);
    int bits = type->bits, left = e->in->opcode[2] == 'l';
    if (!expect_operands(e, 3, 3))
        return;
    put(e, "%s a = %s; u32 n = %s;", c_type(type), value_of(e, operand(e, 1), type),
        bits_of(e, operand(e, 2), 32));
    if (left)
        set_bits(e, operand(e, 0),
                 say(e, "n < %d ? (%s)((%s)a << n) : 0", bits, c_bits(bits), c_bits(bits)));
    else if (type->kind == PTX_SIGNED)
        set_bits(e, operand(e, 0), say(e, "a >> (n < %d ? n : %d)", bits, bits - 1));
    else
        set_bits(e, operand(e, 0), say(e, "n < %d ? a >> n : 0", bits));
}

static void emit_funnel(emitter *e) {
    static const char *const sides[] = {"l", "r", NULL};
    static const char *const modes[] = {"clamp", "wrap", NULL};
    int side = which(e, sides), mode = which(e, modes);
    if (only_type(e)->bits != 32 || side < 0 || mode < 0)
        refuse(e, "the form");
    if (!expect_operands(e, 4, 4))
        return;
    put(e, "u32 n = %s;", bits_of(e, operand(e, 3), 32));
    set_bits(e, operand(e, 0),
             say(e, "funnel_%s(%s, %s, %s)", side == 0 ? "left" : "right",
                 bits_of(e, operand(e, 1), 32), bits_of(e, operand(e, 2), 32),
                 mode ? "n & 31" : "n < 32 ? n : 32"));
}

static void emit_extract(emitter *e) {
    const ptx_type *type = only_type(e);
    if (!expect_operands(e, 4, 4))
        return;
    set_bits(e, operand(e, 0),
             say(e, "(%s)extract_field(%s, %s, %s, %d, %d)", c_bits(type->bits),
                 bits_of(e, operand(e, 1), type->bits), bits_of(e, operand(e, 2), 32),
                 bits_of(e, operand(e, 3), 32), type->bits, type->kind == PTX_SIGNED));
}

static void emit_insert(emitter *e) {
    int bits = only_type(e)->bits;
    if (!expect_operands(e, 5, 5))
        return;
    set_bits(e, operand(e, 0),
             say(e, "(%s)insert_field(%s, %s, %s, %s, %d)", c_bits(bits),
                 bits_of(e, operand(e, 1), bits), bits_of(e, operand(e, 2), bits),
                 bits_of(e, operand(e, 3), 32), bits_of(e, operand(e, 4), 32), bits));
}

static void emit_find(emitter *e) {
    const ptx_type *type = only_type(e);
    int shift_amount = has(e, "shiftamt");
    if (!expect_operands(e, 2, 2))
        return;
    put(e, "%s a = %s;", c_type(type), value_of(e, operand(e, 1), type));
    if (type->kind == PTX_SIGNED)
        put(e, "if (a < 0) a = ~a;");
    set_bits(e, operand(e, 0),
             say(e, "find_bit((%s)a, %d, %d)", c_bits(type->bits), type->bits, shift_amount));
}

static void emit_count(emitter *e) {
    int bits = only_type(e)->bits;
    if (!expect_operands(e, 2, 2))
        return;
    const char *a = bits_of(e, operand(e, 1), bits);
    if (e->in->opcode[0] == 'p')
        set_bits(e, operand(e, 0), say(e, "(u32)__builtin_popcountll(%s)", a));
    else if (e->in->opcode[0] == 'c')
        set_bits(e, operand(e, 0), say(e, "leading_zeros(%s, %d)", a, bits));
    else
        set_bits(e, operand(e, 0), say(e, "bit_reverse%d(%s)", bits, a));
}

static void emit_permute(emitter *e) {
    static const char *const modes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16", NULL};
    int mode = which(e, modes);
    only_type(e);
    if (!expect_operands(e, 4, 4))
        return;
    const char *a = bits_of(e, operand(e, 1), 32), *b = bits_of(e, operand(e, 2), 32),
               *c = bits_of(e, operand(e, 3), 32);
    set_bits(e, operand(e, 0),
             mode < 0 ? say(e, "permute(%s, %s, %s)", a, b, c)
                      : say(e, "permute_mode(%s, %s, %s, %d)", a, b, c, mode));
}

/* lop3.or.b32 d|p, a, b, c, table, q: p tells whether the result, or'ed with q, is not zero. */
static void emit_logic3(emitter *e) {
    static const char *const folds[] = {"or", "and", NULL};
    int fold = which(e, folds);
    only_type(e);
    if (!expect_operands(e, fold < 0 ? 5 : 6, fold < 0 ? 5 : 6))
        return;
    const ptx_operand *to = operand(e, 0), *table = operand(e, 4);
    if (table->kind != PTX_OP_INTEGER || (fold >= 0) != (to->kind == PTX_OP_PAIR))
        refuse(e, "the operands");
    put(e, "u32 r = logic3(%s, %s, %s, %u);", bits_of(e, operand(e, 1), 32),
        bits_of(e, operand(e, 2), 32), bits_of(e, operand(e, 3), 32), (unsigned)table->value & 255);
    if (to->kind != PTX_OP_PAIR) {
        set_bits(e, to, "r");
        return;
    }
    put(e, "u8 q = (r != 0) %s %s;", fold == 1 ? "&" : "|", predicate(e, operand(e, 5)));
    set_bits(e, to->item[0], "r");
    set_bits(e, to->item[1], "q");
}

static void emit_nth(emitter *e) {
    only_type(e);
    if (expect_operands(e, 4, 4))
        set_bits(e, operand(e, 0),
                 say(e, "find_nth_set(%s, %s, (s32)%s)", bits_of(e, operand(e, 1), 32),
                     bits_of(e, operand(e, 2), 32), bits_of(e, operand(e, 3), 32)));
}

static void emit_mask(emitter *e) {
    static const char *const modes[] = {"clamp", "wrap", NULL};
    int mode = which(e, modes);
    const ptx_type *type = only_type(e);
    if (type->bits != 32 || mode < 0)
        refuse(e, "the form");
    if (!expect_operands(e, 3, 3))
        return;
    const char *a = bits_of(e, operand(e, 1), 32), *b = bits_of(e, operand(e, 2), 32);
    if (e->in->opcode[0] == 'b')
        set_bits(e, operand(e, 0), say(e, "bit_mask(%s, %s, %d)", a, b, mode));
    else
        set_bits(e, operand(e, 0),
                 say(e, "extend_sign(%s, %s, %d, %d)", a, b, mode, type->kind == PTX_SIGNED));
}

/* mov.b64 {low, high}, d; and the reverse. */
static void unpack(emitter *e, const ptx_operand *to, const char *from, int bits) {
    int part = bits / to->items;
    put(e, "%s v = %s;", c_bits(bits), from);
    for (int i = 0; i < to->items; i++)
        if (!is_sink(to->item[i]))
            set_bits(e, to->item[i], say(e, "(%s)(v >> %d)", c_bits(part), i * part));
}

static const char *pack(emitter *e, const ptx_operand *from, int bits) {
    int part = bits / from->items;
    const char *all = "0";
    for (int i = 0; i < from->items; i++)
        all = say(e, "%s | (%s)%s << %d", all, c_bits(bits), bits_of(e, from->item[i], part),
                  i * part);
    return say(e, "(%s)(%s)", c_bits(bits), all);
}

static void emit_mov(emitter *e) {
    const ptx_type *type = only_type(e);
    if (!expect_operands(e, 2, 2))
        return;
    const ptx_operand *to = operand(e, 0), *from = operand(e, 1);
    const ptx_operand *vector = to->kind == PTX_OP_VECTOR ? to : from;
    if (vector->kind == PTX_OP_VECTOR &&
        (vector->items < 2 || vector->items > 4 || type->bits % vector->items || type->bits < 16))
        refuse(e, "the parts of the vector");
    else if (to->kind == PTX_OP_VECTOR && from->kind == PTX_OP_VECTOR)
        refuse(e, "vectors on both sides");
    else if (to->kind == PTX_OP_VECTOR)
        unpack(e, to, bits_of(e, from, type->bits), type->bits);
    else if (from->kind == PTX_OP_VECTOR)
        set_bits(e, to, pack(e, from, type->bits));
    else if (type->kind == PTX_PREDICATE)
        set_bits(e, to, predicate(e, from));
    else
        set_bits(e, to, bits_of(e, from, type->bits));
}

const emit_rule emit_bits_rules[] = {
    {"and", emit_logic, 0},   {"or", emit_logic, 0},   {"xor", emit_logic, 0},
    {"not", emit_not, 0},     {"cnot", emit_not, 0},   {"shl", emit_shift, 0},
    {"shr", emit_shift, 0},   {"shf", emit_funnel, 0}, {"bfe", emit_extract, 0},
    {"bfi", emit_insert, 0},  {"bfind", emit_find, 0}, {"popc", emit_count, 0},
    {"clz", emit_count, 0},   {"brev", emit_count, 0}, {"prmt", emit_permute, 0},
    {"lop3", emit_logic3, 0}, {"fns", emit_nth, 0},    {"bmsk", emit_mask, 0},
    {"szext", emit_mask, 0},  {"mov", emit_mov, 0},    {NULL, NULL, 0}};
