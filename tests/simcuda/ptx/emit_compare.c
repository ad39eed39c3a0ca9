/* Comparisons and selections. */
#include <string.h>

#include "emit.h"

typedef struct comparison {
    const char *name;
    const char *integers, *floats; /* formats that use both operands twice; NULL: not allowed */
    int is_unsigned;
} comparison;

static const comparison comparisons[] = {
    {"eq", "(%s == %s)", "(%s == %s)", 0},
    {"ne", "(%s != %s)", "(%s < %s || %s > %s)", 0}, /* ordered: false for NaN */
    {"lt", "(%s < %s)", "(%s < %s)", 0},
    {"le", "(%s <= %s)", "(%s <= %s)", 0},
    {"gt", "(%s > %s)", "(%s > %s)", 0},
    {"ge", "(%s >= %s)", "(%s >= %s)", 0},
    {"lo", "(%s < %s)", NULL, 1},
    {"ls", "(%s <= %s)", NULL, 1},
    {"hi", "(%s > %s)", NULL, 1},
    {"hs", "(%s >= %s)", NULL, 1},
    {"equ", NULL, "!(%s < %s || %s > %s)", 0},
    {"neu", NULL, "(%s != %s)", 0},
    {"ltu", NULL, "!(%s >= %s)", 0},
    {"leu", NULL, "!(%s > %s)", 0},
    {"gtu", NULL, "!(%s <= %s)", 0},
    {"geu", NULL, "!(%s < %s)", 0},
    {"num", NULL, "!__builtin_isunordered(%s, %s)", 0},
    {"nan", NULL, "__builtin_isunordered(%s, %s)", 0},
};

/* Inserts a, b, a, b at the format's placeholders. */
static const char *fill(emitter *e, const char *format, const char *a, const char *b) {
    ptx_text *out = ptx_text_new(e->context);
    for (int n = 0; *format; format++)
        if (format[0] == '%' && format[1] == 's') {
            ptx_put(out, "%s", n++ & 1 ? b : a);
            format++;
        } else {
            ptx_put_bytes(out, format, 1);
        }
    return out->data;
}

static const comparison *comparison_of(emitter *e) {
    for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++)
        if (has(e, comparisons[i].name))
            return &comparisons[i];
    refuse(e, "the comparison");
    return &comparisons[0];
}

static const char *compare(emitter *e, const comparison *how, const ptx_type *type, const char *a,
                           const char *b) {
    if (!is_float(type)) {
        int orders = strcmp(how->name, "eq") != 0 && strcmp(how->name, "ne") != 0;
        if (!how->integers || type->kind == PTX_PREDICATE || type->bits == 8 ||
            (type->kind == PTX_BITS && orders && !how->is_unsigned) ||
            (how->is_unsigned && type->kind == PTX_SIGNED))
            refuse(e, "the comparison of this type");
        return how->integers ? fill(e, how->integers, a, b) : "0";
    }
    if (!how->floats)
        refuse(e, "the comparison of this type");
    if (has(e, "ftz") && type->bits == 32) {
        a = say(e, "flush32(%s)", a);
        b = say(e, "flush32(%s)", b);
    } else if (has(e, "ftz")) {
        refuse(e, ".ftz of this type");
    }
    return how->floats ? fill(e, how->floats, a, b) : "0";
}

/* Combines the comparison with operand 3 when there is .and, .or or .xor. */
static const char *combine(emitter *e, const char *condition) {
    static const char *const combiners[] = {"and", "or", "xor", NULL};
    int combiner = which(e, combiners);
    if (e->in->operands != (combiner < 0 ? 3 : 4))
        refuse(e, "the number of operands");
    if (combiner < 0)
        return condition;
    return say(e, "(%s %c %s)", condition, "&|^"[combiner], predicate(e, operand(e, 3)));
}

static void emit_setp(emitter *e) {
    const ptx_type *type = only_type(e);
    const comparison *how = comparison_of(e);
    const ptx_operand *to = operand(e, 0), *a = operand(e, 1), *b = operand(e, 2);
    const char *condition[2];
    for (int lane = 0; lane < 2; lane++)
        if (type->element)
            condition[lane] = compare(e, how, element_type(type), lane_of(e, a, type, lane),
                                      lane_of(e, b, type, lane));
        else if (lane == 0)
            condition[0] = compare(e, how, type, value_of(e, a, type), value_of(e, b, type));
    put(e, "u8 t = %s;", condition[0]);
    put(e, "u8 f = %s;", type->element ? condition[1] : "!t");
    const char *first = combine(e, "t"), *second = combine(e, "f");
    if (to->kind == PTX_OP_PAIR) { /* one result may be an operand of the other */
        put(e, "u8 x = %s, y = %s;", first, second);
        set_bits(e, to->item[0], "x");
        set_bits(e, to->item[1], "y");
    } else if (type->element) {
        refuse(e, "one predicate for a pair");
    } else {
        set_bits(e, to, first);
    }
}

static void emit_set(emitter *e) {
    const ptx_type *to = type_at(e, 0), *from = type_at(e, 1);
    const comparison *how = comparison_of(e);
    const ptx_operand *a = operand(e, 1), *b = operand(e, 2);
    if (!from->element) {
        const char *t =
            combine(e, compare(e, how, from, value_of(e, a, from), value_of(e, b, from)));
        if (to->element)
            refuse(e, "the types");
        set_bits(e, operand(e, 0),
                 is_float(to) ? pattern(e, to, say(e, "(%s)%s", c_type(to), t))
                              : say(e, "(%s)(0 - %s)", c_bits(to->bits), t));
        return;
    }
    const char *lane[2];
    int masks = !to->element; /* set.eq.u32.f16x2: all ones in the lanes that compare true */
    for (int i = 0; i < 2; i++) {
        const char *t = combine(
            e, compare(e, how, element_type(from), lane_of(e, a, from, i), lane_of(e, b, from, i)));
        lane[i] =
            masks ? say(e, "(u16)(0 - %s)", t) : pattern(e, element_type(to), say(e, "(f32)%s", t));
    }
    if (to->bits != 32)
        refuse(e, "the types");
    set_bits(e, operand(e, 0), say(e, "pair32(%s, %s)", lane[0], lane[1]));
}

static void emit_selp(emitter *e) {
    int bits = only_type(e)->bits;
    if (!expect_operands(e, 4, 4))
        return;
    set_bits(e, operand(e, 0),
             say(e, "%s ? %s : %s", predicate(e, operand(e, 3)), bits_of(e, operand(e, 1), bits),
                 bits_of(e, operand(e, 2), bits)));
}

static void emit_slct(emitter *e) {
    const ptx_type *type = type_at(e, 0), *by = type_at(e, 1);
    if (!expect_operands(e, 4, 4))
        return;
    const char *c = value_of(e, operand(e, 3), by);
    if (has(e, "ftz"))
        c = say(e, "flush32(%s)", c);
    set_bits(e, operand(e, 0),
             say(e, "%s >= 0 ? %s : %s", c, bits_of(e, operand(e, 1), type->bits),
                 bits_of(e, operand(e, 2), type->bits)));
}

const emit_rule emit_compare_rules[] = {{"setp", emit_setp, 0},
                                        {"set", emit_set, 0},
                                        {"selp", emit_selp, 0},
                                        {"slct", emit_slct, 0},
                                        {NULL, NULL, 0}};
