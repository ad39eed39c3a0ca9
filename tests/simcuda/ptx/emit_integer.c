/* Integer arithmetic: sums, products, quotients, carries, minimum and maximum. */
#include "emit.h"

/* Returns the double-width C type with the sign of `type`, for products and sums before
   truncation. */
static const char *wide_type(const ptx_type *type) {
    int is_signed = type->kind == PTX_SIGNED;
    return type->bits == 16   ? (is_signed ? "s32" : "u32")
           : type->bits == 32 ? (is_signed ? "s64" : "u64")
                              : (is_signed ? "s128" : "u128");
}

static const char *add_lane(emitter *e, const ptx_type *type, const char *const *a) {
    return say(e, "((%s)(%s + %s))", c_bits(type->bits), a[0], a[1]);
}

static const char *sub_lane(emitter *e, const ptx_type *type, const char *const *a) {
    return say(e, "((%s)(%s - %s))", c_bits(type->bits), a[0], a[1]);
}

/* Emits carry in and out: CC is the function's carry flag, a borrow for differences. */
static void emit_carry(emitter *e, const ptx_type *type, int subtracts, int carry_in,
                       int carry_out) {
    int bits = type->bits;
    if (bits != 32 && bits != 64)
        refuse(e, "carry for this type");
    if (!expect_operands(e, 3, 3))
        return;
    put(e, "%s w = (%s)%s %s %s", c_bits(2 * bits), c_bits(2 * bits),
        bits_of(e, operand(e, 1), bits), subtracts ? "-" : "+", bits_of(e, operand(e, 2), bits));
    put(e, "%s;", !carry_in ? "" : subtracts ? " - CC" : " + CC");
    set_bits(e, operand(e, 0), say(e, "(%s)w", c_bits(bits)));
    if (carry_out)
        put(e, "CC = (u32)(w >> %d) & 1;", bits);
}

static void emit_add_sub(emitter *e) {
    const ptx_type *type = only_type(e);
    int subtracts = e->in->opcode[0] == 's', carry_in = e->in->opcode[3] == 'c';
    int carry_out = has(e, "cc");
    if (carry_in || carry_out) {
        emit_carry(e, type, subtracts, carry_in, carry_out);
    } else if (has(e, "sat")) {
        if (type->kind != PTX_SIGNED || type->bits != 32 || type->element)
            refuse(e, ".sat is for s32 only");
        if (expect_operands(e, 3, 3))
            set_bits(e, operand(e, 0),
                     say(e, "(u32)saturate_s32((s64)%s %s %s)", value_of(e, operand(e, 1), type),
                         subtracts ? "-" : "+", value_of(e, operand(e, 2), type)));
    } else {
        each_lane(e, type, 2, subtracts ? sub_lane : add_lane);
    }
}

/* Returns the product of operands 1 and 2, truncated as .lo, .hi or .wide require. *bits receives
   the width of the result. */
static const char *product(emitter *e, const ptx_type *type, int *bits) {
    static const char *const parts[] = {"lo", "hi", "wide", NULL};
    int part = which(e, parts);
    const char *wide = wide_type(type);
    const char *all = say(e, "((%s)%s * (%s)%s)", wide, value_of(e, operand(e, 1), type), wide,
                          value_of(e, operand(e, 2), type));
    *bits = type->bits;
    if (type->bits == 8 || type->element || type->kind == PTX_PREDICATE)
        refuse(e, "the type");
    if (part == 1)
        return say(e, "((%s)(%s >> %d))", c_bits(*bits), all, *bits);
    if (part == 2) {
        if (type->bits == 64)
            refuse(e, ".wide of 64 bits");
        *bits *= 2;
    } else if (part < 0) {
        refuse(e, "one of .lo, .hi, .wide is missing");
    }
    return say(e, "((%s)%s)", c_bits(*bits), all);
}

static void emit_mul(emitter *e) {
    int bits;
    const ptx_type *type = only_type(e);
    if (!expect_operands(e, 3, 3))
        return;
    const char *expression = product(e, type, &bits);
    set_bits(e, operand(e, 0), expression);
}

static void emit_mad(emitter *e) {
    int bits;
    const ptx_type *type = only_type(e);
    if (!expect_operands(e, 4, 4))
        return;
    int carry_in = e->in->opcode[3] == 'c', carry_out = has(e, "cc"), is_hi = has(e, "hi");
    const char *p = product(e, type, &bits), *c = bits_of(e, operand(e, 3), bits);
    if (has(e, "sat")) {
        if (!is_hi || type->kind != PTX_SIGNED || type->bits != 32)
            refuse(e, ".sat is for mad.hi.s32 only");
        put(e, "u32 r = (u32)saturate_s32((s64)(s32)%s + (s32)%s);", p, c);
    } else if (carry_in || carry_out) {
        if ((bits != 32 && bits != 64) || bits != type->bits)
            refuse(e, "carry for this type");
        put(e, "%s w = (%s)%s + %s%s; %s r = (%s)w;", c_bits(2 * bits), c_bits(2 * bits), p, c,
            carry_in ? " + CC" : "", c_bits(bits), c_bits(bits));
        if (carry_out)
            put(e, "CC = (u32)(w >> %d) & 1;", bits);
    } else {
        put(e, "%s r = (%s)(%s + %s);", c_bits(bits), c_bits(bits), p, c);
    }
    set_bits(e, operand(e, 0), "r");
}

static void emit_mul24(emitter *e) {
    const ptx_type *type = only_type(e);
    int adds = e->in->opcode[1] == 'a', high = has(e, "hi"), saturates = has(e, "sat");
    if (!expect_operands(e, adds ? 4 : 3, adds ? 4 : 3))
        return;
    if (type->bits != 32 || (!high && !has(e, "lo")) || (saturates && !(adds && high)))
        refuse(e, "the form");
    const char *t = type->kind == PTX_SIGNED ? "s64" : "u64";
    put(e, "%s p = ", t);
    for (int i = 1; i <= 2; i++) /* 24 bits, extended */
        put(e, "%s((%s)((u64)%s << 40) >> 40)", i == 2 ? " * " : "", t,
            bits_of(e, operand(e, i), 32));
    put(e, "; u32 r = (u32)(p >> %d);", high ? 16 : 0);
    if (saturates)
        put(e, "r = (u32)saturate_s32((s64)(s32)r + (s32)%s);", bits_of(e, operand(e, 3), 32));
    else if (adds)
        put(e, "r += %s;", bits_of(e, operand(e, 3), 32));
    set_bits(e, operand(e, 0), "r");
}

static void emit_div(emitter *e) {
    const ptx_type *type = only_type(e);
    if ((type->kind != PTX_SIGNED && type->kind != PTX_UNSIGNED) || type->bits < 16 ||
        type->element)
        refuse(e, "the type");
    if (!expect_operands(e, 3, 3))
        return;
    set_bits(e, operand(e, 0),
             say(e, "(%s)%s_%s(%s, %s)", c_bits(type->bits), e->in->opcode, type->name,
                 value_of(e, operand(e, 1), type), value_of(e, operand(e, 2), type)));
}

static const char *abs_lane(emitter *e, const ptx_type *type, const char *const *a) {
    const char *u = c_bits(type->bits);
    return say(e, "((%s)(%s < 0 ? 0 - (%s)%s : (%s)%s))", u, a[0], u, a[0], u, a[0]);
}

static const char *neg_lane(emitter *e, const ptx_type *type, const char *const *a) {
    const char *u = c_bits(type->bits);
    return say(e, "((%s)(0 - (%s)%s))", u, u, a[0]);
}

static void emit_abs_neg(emitter *e) {
    const ptx_type *type = only_type(e);
    if (type->kind != PTX_SIGNED)
        refuse(e, "the type");
    each_lane(e, type, 1, e->in->opcode[0] == 'a' ? abs_lane : neg_lane);
}

static const char *min_max_lane(emitter *e, const ptx_type *type, const char *const *a) {
    char sign = e->in->opcode[1] == 'i' ? '<' : '>';
    const char *t = c_type(type);
    const char *r = say(e, "((%s)(%s %c %s ? %s : %s))", t, a[0], sign, a[1], a[0], a[1]);
    if (has(e, "relu"))
        r = say(e, "(%s > 0 ? %s : 0)", r, r);
    return say(e, "((%s)%s)", c_bits(type->bits), r);
}

static void emit_min_max(emitter *e) {
    const ptx_type *type = only_type(e);
    if (type->kind != PTX_SIGNED && type->kind != PTX_UNSIGNED)
        refuse(e, "the type");
    if (type->kind == PTX_UNSIGNED && has(e, "relu"))
        refuse(e, ".relu of an unsigned type");
    each_lane(e, type, 2, min_max_lane);
}

static void emit_sad(emitter *e) {
    const ptx_type *type = only_type(e);
    if (!expect_operands(e, 4, 4))
        return;
    const char *t = c_type(type), *u = c_bits(type->bits);
    put(e, "%s a = %s; %s b = %s;", t, value_of(e, operand(e, 1), type), t,
        value_of(e, operand(e, 2), type));
    set_bits(e, operand(e, 0),
             say(e, "(%s)(%s + (a > b ? (%s)a - (%s)b : (%s)b - (%s)a))", u,
                 bits_of(e, operand(e, 3), type->bits), u, u, u, u));
}

static void emit_dot(emitter *e) {
    const ptx_type *a = type_at(e, 0), *b = type_at(e, 1);
    int four = e->in->opcode[2] == '4', high = !four && has(e, "hi");
    if (a->bits != 32 || b->bits != 32 || (!four && !high && !has(e, "lo")))
        refuse(e, "the form");
    if (!expect_operands(e, 4, 4))
        return;
    const char *tail = four ? "" : high ? ", 1" : ", 0";
    set_bits(e, operand(e, 0),
             say(e, "(u32)dot%c(%s, %d, %s, %d%s, (s32)%s)", four ? '4' : '2',
                 bits_of(e, operand(e, 1), 32), a->kind == PTX_SIGNED,
                 bits_of(e, operand(e, 2), 32), b->kind == PTX_SIGNED, tail,
                 bits_of(e, operand(e, 3), 32)));
}

const emit_rule emit_integer_rules[] = {{"add", emit_add_sub, 'i'},
                                        {"sub", emit_add_sub, 'i'},
                                        {"addc", emit_add_sub, 'i'},
                                        {"subc", emit_add_sub, 'i'},
                                        {"mul", emit_mul, 'i'},
                                        {"mad", emit_mad, 'i'},
                                        {"madc", emit_mad, 'i'},
                                        {"mul24", emit_mul24, 'i'},
                                        {"mad24", emit_mul24, 'i'},
                                        {"div", emit_div, 'i'},
                                        {"rem", emit_div, 'i'},
                                        {"abs", emit_abs_neg, 'i'},
                                        {"neg", emit_abs_neg, 'i'},
                                        {"min", emit_min_max, 'i'},
                                        {"max", emit_min_max, 'i'},
                                        {"sad", emit_sad, 'i'},
                                        {"dp4a", emit_dot, 'i'},
                                        {"dp2a", emit_dot, 'i'},
                                        {NULL, NULL, 0}};
