/* Floating-point arithmetic in f16, bf16, f32, f64 and packed pairs. f16 and bf16 are computed in
   f32, which rounds once for sums and products; their fma rounds once through f64 (rt_float.h). */
#include <string.h>

#include "emit.h"

static int is_half(const ptx_type *type) {
    return type->bits == 16;
}

/* Flushes an operand; saturates, clips and flushes a result, as the modifiers say. */
static const char *flushed(emitter *e, const ptx_type *type, const char *value) {
    if (!has(e, "ftz") || type->bits == 64)
        return value;
    if (is_half(type)) /* subnormal float16 */
        return say(e, "(__builtin_fabsf(%s) < 0x1p-14f ? __builtin_copysignf(0, %s) : %s)", value,
                   value, value);
    return say(e, "flush32(%s)", value);
}

static const char *finished(emitter *e, const ptx_type *type, const char *value) {
    if (has(e, "sat"))
        value = say(e, type->bits == 64 ? "saturate64(%s)" : "saturate32(%s)", value);
    if (has(e, "relu"))
        value = say(e, "relu32(%s)", value);
    return pattern(e, type, flushed(e, type, value));
}

/* Tells whether a result needs directed rounding. f16 and bf16 round again before they are flushed
   or written; f32 does not. */
static int directed(emitter *e, const ptx_type *type) {
    int mode = rounding(e);
    if (mode > 0 && is_half(type))
        refuse(e, "directed rounding of a half");
    return mode > 0 ? mode : 0;
}

static const char *binary(emitter *e, const ptx_type *type, const char *const *a, char sign,
                          const char *name) {
    int mode = directed(e, type);
    const char *x = flushed(e, type, a[0]), *y = flushed(e, type, a[1]);
    return finished(e, type,
                    mode ? say(e, "%s_rounded_%s(%s, %s, %d)", name, type->name, x, y, mode)
                         : say(e, "(%s %c %s)", x, sign, y));
}

static const char *add_lane(emitter *e, const ptx_type *type, const char *const *a) {
    return binary(e, type, a, '+', "add");
}

static const char *sub_lane(emitter *e, const ptx_type *type, const char *const *a) {
    const char *negated[2] = {a[0], say(e, "(-%s)", a[1])};
    return binary(e, type, rounding(e) > 0 ? negated : a, rounding(e) > 0 ? '+' : '-', "add");
}

static const char *mul_lane(emitter *e, const ptx_type *type, const char *const *a) {
    return binary(e, type, a, '*', "mul");
}

static void emit_add(emitter *e) {
    each_lane(e, only_type(e), 2, add_lane);
}

static void emit_sub(emitter *e) {
    each_lane(e, only_type(e), 2, sub_lane);
}

static void emit_mul(emitter *e) {
    each_lane(e, only_type(e), 2, mul_lane);
}

static const char *fma_lane(emitter *e, const ptx_type *type, const char *const *a) {
    int mode = directed(e, type);
    const char *x = flushed(e, type, a[0]), *y = flushed(e, type, a[1]),
               *z = flushed(e, type, a[2]);
    if (is_half(type)) {
        int relu = has(e, "relu"), saturate = has(e, "sat");
        const char *r = type->kind == PTX_FLOAT
                            ? say(e, "fma_f16(%s, %s, %s, %d, %d)", x, y, z, relu, saturate)
                            : say(e, "fma_bf16(%s, %s, %s, %d)", x, y, z, relu);
        if (type->kind == PTX_BFLOAT && saturate)
            refuse(e, ".sat of bf16");
        return has(e, "ftz") ? say(e, "(%s & 0x7c00 ? %s : %s & 0x8000)", r, r, r) : r;
    }
    if (mode)
        return finished(e, type,
                        say(e, "fma_rounded_%s(%s, %s, %s, %d)", type->name, x, y, z, mode));
    return finished(e, type,
                    say(e, "__builtin_fma%s(%s, %s, %s)", type->bits == 32 ? "f" : "", x, y, z));
}

static void emit_fma(emitter *e) {
    each_lane(e, only_type(e), 3, fma_lane);
}

static const char *div_lane(emitter *e, const ptx_type *type, const char *const *a) {
    if (is_half(type))
        refuse(e, "the type");
    return binary(e, type, a, '/', "div");
}

static void emit_div(emitter *e) {
    static const char *const quick[] = {"approx", "full", NULL};
    which(e, quick);
    each_lane(e, only_type(e), 2, div_lane);
}

static const char *unary_lane(emitter *e, const ptx_type *type, const char *const *a) {
    const char *op = e->in->opcode, *x = flushed(e, type, a[0]);
    int mode = directed(e, type), approx = has(e, "approx"), wide = type->bits == 64;
    if (wide && approx && has(e, "ftz") && op[1] != 'q')
        return say(e, "bits_f64(%s_approx_f64(%s))", op, x);
    if (!strcmp(op, "rcp"))
        return finished(e, type,
                        mode ? say(e, "div_rounded_%s(1, %s, %d)", type->name, x, mode)
                             : say(e, "(1 / %s)", x));
    if (!strcmp(op, "sqrt"))
        return finished(e, type,
                        mode ? say(e, "sqrt_rounded_%s(%s, %d)", type->name, x, mode)
                             : say(e, "__builtin_sqrt%s(%s)", wide ? "" : "f", x));
    if (!strcmp(op, "rsqrt") && wide)
        return finished(e, type, say(e, "(1 / __builtin_sqrt(%s))", x));
    static const char *const names[][2] = {{"rsqrt", "reciprocal_sqrt32"}, {"sin", "sin_approx"},
                                           {"cos", "cos_approx"},          {"lg2", "log2_approx"},
                                           {"ex2", "exp2_approx"},         {"tanh", "tanh_approx"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i][0], op)) {
            if (wide || (is_half(type) && i < 4))
                refuse(e, "the type");
            return finished(e, type, say(e, "%s(%s)", names[i][1], x));
        }
    return "0";
}

static void emit_unary(emitter *e) {
    each_lane(e, only_type(e), 1, unary_lane);
}

/* Changes only the sign, whatever the bits are. */
static void emit_abs_neg(emitter *e) {
    const ptx_type *type = only_type(e);
    int bits = type->bits, negates = e->in->opcode[0] == 'n';
    uint64_t sign = 1ull << (element_type(type)->bits - 1);
    if (type->element)
        sign |= sign << (bits / 2);
    if (!expect_operands(e, 2, 2))
        return;
    const char *r = say(e, "((%s)(%s %s 0x%llxu))", c_bits(bits), bits_of(e, operand(e, 1), bits),
                        negates ? "^" : "& ~", (unsigned long long)sign);
    if (has(e, "ftz") && !type->element)
        r = pattern(e, type,
                    flushed(e, type, say(e, bits == 16 ? "f16_to_f32(%s)" : "as_f32(%s)", r)));
    else if (has(e, "ftz"))
        refuse(e, ".ftz of a pair");
    if (has(e, "ftz") && type->kind == PTX_BFLOAT)
        refuse(e, ".ftz of bf16");
    set_bits(e, operand(e, 0), r);
}

static const char *min_max_lane(emitter *e, const ptx_type *type, const char *const *a) {
    const char *x = flushed(e, type, a[0]), *y = flushed(e, type, a[1]);
    int xor = has(e, "xorsign");
    if (xor) {
        if (!has(e, "abs") || type->bits == 64)
            refuse(e, "the form");
        const char *r = say(e, "%s_%sf32(__builtin_fabsf(%s), __builtin_fabsf(%s))", e->in->opcode,
                            has(e, "NaN") ? "nan_" : "", x, y);
        return finished(e, type, say(e, "xor_sign(%s, %s, %s)", r, x, y));
    }
    return finished(e, type,
                    say(e, "%s_%s%s(%s, %s)", e->in->opcode, has(e, "NaN") ? "nan_" : "",
                        type->bits == 64 ? "f64" : "f32", x, y));
}

static void emit_min_max(emitter *e) {
    const ptx_type *type = only_type(e);
    if (e->in->operands == 4)
        refuse(e, "three inputs");
    else
        each_lane(e, type, 2, min_max_lane);
}

static void emit_copysign(emitter *e) {
    const ptx_type *type = only_type(e);
    int bits = type->bits;
    if (bits != 32 && bits != 64)
        refuse(e, "the type");
    if (!expect_operands(e, 3, 3))
        return;
    const char *sign = bits == 32 ? "0x80000000u" : "0x8000000000000000u";
    set_bits(e, operand(e, 0),
             say(e, "(%s & %s) | (%s & ~%s)", bits_of(e, operand(e, 1), bits), sign,
                 bits_of(e, operand(e, 2), bits), sign));
}

static void emit_testp(emitter *e) {
    static const char *const properties[] = {"finite", "infinite",  "number", "notanumber",
                                             "normal", "subnormal", NULL};
    const ptx_type *type = only_type(e);
    int property = which(e, properties);
    if (property < 0 || type->bits < 32)
        refuse(e, "the form");
    if (expect_operands(e, 2, 2))
        set_bits(e, operand(e, 0),
                 say(e, "(u8)test_property(%s, %s, %d)", value_of(e, operand(e, 1), type),
                     type->bits == 32 ? "0x1p-126" : "0x1p-1022", property));
}

const emit_rule emit_float_rules[] = {
    {"add", emit_add, 'f'},           {"sub", emit_sub, 'f'},     {"mul", emit_mul, 'f'},
    {"fma", emit_fma, 'f'},           {"mad", emit_fma, 'f'},     {"div", emit_div, 'f'},
    {"rcp", emit_unary, 'f'},         {"sqrt", emit_unary, 'f'},  {"rsqrt", emit_unary, 'f'},
    {"sin", emit_unary, 'f'},         {"cos", emit_unary, 'f'},   {"lg2", emit_unary, 'f'},
    {"ex2", emit_unary, 'f'},         {"tanh", emit_unary, 'f'},  {"abs", emit_abs_neg, 'f'},
    {"neg", emit_abs_neg, 'f'},       {"min", emit_min_max, 'f'}, {"max", emit_min_max, 'f'},
    {"copysign", emit_copysign, 'f'}, {"testp", emit_testp, 'f'}, {NULL, NULL, 0}};
