/* cvt: between integers, floats, float16, bfloat16 and packed small floats, with every rounding
   mode. */
#include <string.h>

#include "emit.h"

typedef struct conversion {
    const ptx_type *to, *from;
    int rounding; /* of the result: -1 for none */
    int integral; /* .rni .rzi .rmi .rpi: -1 for none */
    int saturate, flush, relu, finite;
} conversion;

static conversion read_conversion(emitter *e) {
    static const char *const integral[] = {"rni", "rzi", "rmi", "rpi", NULL};
    conversion c;
    c.to = type_at(e, 0);
    c.from = type_at(e, 1);
    c.rounding = rounding(e);
    if (has(e, "rna"))
        c.rounding = 4; /* RNA of rt_base.h */
    c.integral = which(e, integral);
    c.saturate = has(e, "sat");
    c.flush = has(e, "ftz");
    c.relu = has(e, "relu");
    c.finite = has(e, "satfinite");
    if (types_in(e) != 2)
        refuse(e, "the number of types");
    return c;
}

static int is_any_float(const ptx_type *type) {
    return is_float(type) || type->kind == PTX_TF32 || type->kind == PTX_FP8;
}

static void integer_to_integer(emitter *e, const conversion *c) {
    const char *a = value_of(e, operand(e, 1), c->from);
    const char *t = c_type(c->to);
    set_bits(e, operand(e, 0),
             c->saturate ? say(e, "clamp_%s((s128)%s)", t, a) : say(e, "(%s)%s", t, a));
}

static void float_to_integer(emitter *e, const conversion *c) {
    const char *a = value_of(e, operand(e, 1), c->from);
    int wide = c->from->bits == 64 || c->to->bits == 64;
    if (c->integral < 0 || c->to->kind == PTX_BITS)
        refuse(e, "the rounding or the type");
    if (c->flush)
        a = say(e, "flush32(%s)", a);
    set_bits(e, operand(e, 0),
             say(e, "f64_to_%s(round_integral(%s, %d), %d)", c_type(c->to), a, c->integral, wide));
}

/* Converts an exact or odd f64 to a float format of 16 or 8 bits. */
static const char *small(emitter *e, const conversion *c, const ptx_type *to, const char *value) {
    return say(e, "f64_to_small(%s, &format_%s, %d, %d)", value, to->name,
               c->rounding > 0 ? c->rounding : 0, c->finite);
}

static void integer_to_float(emitter *e, const conversion *c) {
    const char *a = value_of(e, operand(e, 1), c->from);
    const char *wide = c->from->kind == PTX_SIGNED ? "s64" : "u64";
    const char *r;
    if (c->from->kind == PTX_BITS || c->to->element || c->rounding < 0)
        refuse(e, "the rounding or the types");
    if (c->to->bits == 16) {
        if (c->saturate)
            refuse(e, ".sat of a half");
        r = small(e, c, c->to, say(e, "%s_to_odd(%s)", wide, a));
        set_bits(e, operand(e, 0), say(e, "(u16)%s", r));
        return;
    }
    if (c->to->bits == 32)
        r = c->rounding > 0 ? say(e, "f64_to_f32_rounded(%s_to_odd(%s), %d)", wide, a, c->rounding)
                            : say(e, "(f32)%s", a);
    else
        r = c->rounding > 0 ? say(e, "%s_rounded_f64(%s, %d)", wide, a, c->rounding)
                            : say(e, "(f64)%s", a);
    if (c->saturate)
        r = say(e, "saturate%d(%s)", c->to->bits, r);
    set_value(e, operand(e, 0), c->to, r);
}

/* Returns a float with the steps that come before it is rounded to the new type. */
static const char *prepared(emitter *e, const conversion *c, const ptx_type *from, const char *a) {
    if (c->flush && from->bits == 32 && from->kind == PTX_FLOAT)
        a = say(e, "flush32(%s)", a);
    if (c->integral >= 0)
        a = say(e, "round_integral(%s, %d)", a, c->integral);
    if (c->saturate)
        a = say(e, "saturate64(%s)", a);
    if (c->relu)
        a = say(e, "relu32(%s)", a);
    return a;
}

/* Returns one float value as the bits of a float type. */
static const char *to_float(emitter *e, const conversion *c, const ptx_type *to,
                            const ptx_type *from, const char *a) {
    int narrows = to->bits < from->bits || (to->bits == 16 && to->kind != from->kind);
    a = prepared(e, c, from, a);
    if (c->finite && to->kind == PTX_FLOAT && to->bits >= 32)
        refuse(e, ".satfinite of this type");
    if (narrows && c->rounding < 0 && c->integral < 0)
        refuse(e, "a rounding is missing");
    if (to->kind == PTX_TF32) {
        const char *r = say(e, "(f32)round_to(%s, 10, -126, %d)", a, c->rounding);
        if (c->finite || c->rounding < 0)
            refuse(e, "the rounding or .satfinite");
        return say(e, "bits_f32(%s)", r);
    }
    if (to->bits == 16 && from->bits == 32 && c->rounding == 0 && !c->finite)
        return pattern(e, to, a);
    if (to->bits <= 16)
        return say(e, "(%s)%s", c_bits(to->bits), small(e, c, to, a));
    if (to->bits == 64)
        return say(e, "bits_f64(%s)", a);
    const char *r = from->bits == 64 && c->rounding > 0
                        ? say(e, "f64_to_f32_rounded(%s, %d)", a, c->rounding)
                        : say(e, "(f32)%s", a);
    return pattern(e, to, c->flush ? say(e, "flush32(%s)", r) : r);
}

/* Returns the value of one lane of a packed small float, or of an f16, bf16 or f32. */
static const char *lane_value(emitter *e, const ptx_operand *o, const ptx_type *type, int lane) {
    if (type->kind != PTX_FP8)
        return type->element ? lane_of(e, o, type, lane) : value_of(e, o, type);
    return say(e, "small_to_f64((%s >> %d) & 255, &format_%s)", bits_of(e, o, 16), 8 * lane,
               element_type(type)->name);
}

/* cvt.rn.f16x2.f32 d, high, low; or pair to pair. */
static void to_pair(emitter *e, const conversion *c) {
    const ptx_type *to = element_type(c->to), *from = element_type(c->from);
    int two_inputs = !c->from->element;
    const char *lane[2];
    if (!expect_operands(e, two_inputs ? 3 : 2, two_inputs ? 3 : 2))
        return;
    for (int i = 0; i < 2; i++) {
        const ptx_operand *o = operand(e, two_inputs ? 2 - i : 1);
        lane[i] = to_float(e, c, to, from, lane_value(e, o, c->from, i));
    }
    set_bits(e, operand(e, 0),
             c->to->bits == 32 ? say(e, "pair32(%s, %s)", lane[0], lane[1])
                               : say(e, "(u16)(%s | %s << 8)", lane[0], lane[1]));
}

/* cvt.pack.sat.u8.s32.b32 d, a, b, c: two clamped integers, and above them the lower part of c. */
static void emit_pack(emitter *e) {
    const ptx_type *to = type_at(e, 0), *from = type_at(e, 1);
    int bits = to->bits, keeps = types_in(e) == 3;
    if (!has(e, "sat") || from->bits != 32 || from->kind != PTX_SIGNED || bits < 8 || bits > 16 ||
        keeps != (bits == 8))
        refuse(e, "the form");
    if (keeps)
        type_at(e, 2);
    if (!expect_operands(e, keeps ? 4 : 3, keeps ? 4 : 3))
        return;
    const char *t = c_type(to), *u = c_bits(bits);
    put(e, "u32 r = (u32)(%s)clamp_%s(%s) << %d | (%s)clamp_%s(%s);", u, t,
        value_of(e, operand(e, 1), from), bits, u, t, value_of(e, operand(e, 2), from));
    set_bits(e, operand(e, 0), keeps ? say(e, "r | %s << 16", bits_of(e, operand(e, 3), 32)) : "r");
}

static void emit_cvt(emitter *e) {
    if (has(e, "pack")) {
        emit_pack(e);
        return;
    }
    conversion c = read_conversion(e);
    int to_is_float = is_any_float(c.to), from_is_float = is_any_float(c.from);
    if (c.to->element) {
        if (!to_is_float || !from_is_float)
            refuse(e, "the types");
        to_pair(e, &c);
        return;
    }
    if (c.from->element || c.from->kind == PTX_FP8)
        refuse(e, "the types");
    if (!expect_operands(e, 2, 2))
        return;
    if (!to_is_float && !from_is_float)
        integer_to_integer(e, &c);
    else if (!to_is_float)
        float_to_integer(e, &c);
    else if (!from_is_float)
        integer_to_float(e, &c);
    else
        set_bits(e, operand(e, 0),
                 to_float(e, &c, c.to, c.from, value_of(e, operand(e, 1), c.from)));
}

const emit_rule emit_convert_rules[] = {{"cvt", emit_cvt, 0}, {NULL, NULL, 0}};
