/* Operands as C expressions, and results as bits of registers. */
#include <inttypes.h>
#include <string.h>

#include "emit.h"

ptx_operand *operand(emitter *e, int n) {
    if (n < e->in->operands)
        return e->in->operand[n];
    refuse(e, "an operand is missing");
    ptx_operand *none = ptx_new(e->context, sizeof *none);
    none->kind = PTX_OP_INTEGER;
    return none;
}

const char *c_bits(int bits) {
    switch (bits) {
    case 8:
        return "u8";
    case 16:
        return "u16";
    case 32:
        return "u32";
    case 64:
        return "u64";
    default:
        return "u128";
    }
}

const ptx_type *element_type(const ptx_type *packed) {
    return packed->element ? ptx_type_named(packed->element) : packed;
}

const char *c_type(const ptx_type *type) {
    if (type->kind == PTX_SIGNED && !type->element)
        return type->name;
    if (type->kind == PTX_FLOAT && type->bits == 64 && !type->element)
        return "f64";
    if ((type->kind == PTX_FLOAT || type->kind == PTX_BFLOAT || type->kind == PTX_TF32) &&
        !type->element)
        return "f32";
    return c_bits(type->bits);
}

int is_sink(const ptx_operand *o) {
    return o->kind == PTX_OP_NAME && !strcmp(o->name, "_");
}

const char *register_named(emitter *e, const char *name) {
    int number = -1;
    const ptx_symbol *symbol = ptx_find(e->in->scope, name, &number);
    if (!symbol || symbol->space != PTX_REG)
        return NULL;
    return number < 0 ? symbol->c_name : say(e, "%s_%d", symbol->c_name, number);
}

static const char *special_register(emitter *e, const char *name) {
    static const char *const known[][2] = {
        {"%tid.x", "T->tid.x"},
        {"%tid.y", "T->tid.y"},
        {"%tid.z", "T->tid.z"},
        {"%ntid.x", "B->ntid.x"},
        {"%ntid.y", "B->ntid.y"},
        {"%ntid.z", "B->ntid.z"},
        {"%ctaid.x", "B->ctaid.x"},
        {"%ctaid.y", "B->ctaid.y"},
        {"%ctaid.z", "B->ctaid.z"},
        {"%nctaid.x", "B->nctaid.x"},
        {"%nctaid.y", "B->nctaid.y"},
        {"%nctaid.z", "B->nctaid.z"},
        {"%laneid", "T->lane"},
        {"%warpid", "T->warp"},
        {"%nwarpid", "((B->ntid.x * B->ntid.y * B->ntid.z + 31) / 32)"},
        {"%smid", "B->smid"},
        {"%nsmid", "B->nsmid"},
        {"%gridid", "B->gridid"},
        {"%lanemask_eq", "(1u << T->lane)"},
        {"%lanemask_lt", "((1u << T->lane) - 1)"},
        {"%lanemask_le", "((2u << T->lane) - 1)"},
        {"%lanemask_gt", "~((2u << T->lane) - 1)"},
        {"%lanemask_ge", "~((1u << T->lane) - 1)"},
        {"%clock", "((u32)T->driver->clock(T))"},
        {"%clock_hi", "((u32)(T->driver->clock(T) >> 32))"},
        {"%clock64", "T->driver->clock(T)"},
        {"%globaltimer", "T->driver->clock(T)"},
        {"%globaltimer_lo", "((u32)T->driver->clock(T))"},
        {"%globaltimer_hi", "((u32)(T->driver->clock(T) >> 32))"},
        {"%dynamic_smem_size", "B->dynamic_size"},
        {"%total_smem_size", "B->shared_size"},
        {"%clusterid.x", "B->ctaid.x"}, /* without clusters, each block is its own cluster */
        {"%clusterid.y", "B->ctaid.y"},
        {"%clusterid.z", "B->ctaid.z"},
        {"%nclusterid.x", "B->nctaid.x"},
        {"%nclusterid.y", "B->nctaid.y"},
        {"%nclusterid.z", "B->nctaid.z"},
        {"%cluster_ctaid.x", "0u"},
        {"%cluster_ctaid.y", "0u"},
        {"%cluster_ctaid.z", "0u"},
        {"%cluster_nctaid.x", "1u"},
        {"%cluster_nctaid.y", "1u"},
        {"%cluster_nctaid.z", "1u"},
        {"%cluster_ctarank", "0u"},
        {"%cluster_nctarank", "1u"},
        {"%is_explicit_cluster", "0u"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i][0], name))
            return known[i][1];
    if (!strcmp(name, "WARP_SZ"))
        return "32u";
    refuse(e, say(e, "%s is not known", name));
    return "0";
}

static const char *name_bits(emitter *e, const ptx_operand *o, int bits) {
    const char *reg = register_named(e, o->name);
    if (reg)
        return say(e, "((%s)%s)", c_bits(bits), reg);
    const ptx_symbol *symbol = ptx_find(e->in->scope, o->name, NULL);
    if (symbol)
        return say(e, "((%s)(%s))", c_bits(bits), symbol_address(e, symbol, o->offset));
    return say(e, "((%s)%s)", c_bits(bits), special_register(e, o->name));
}

static const char *constant_bits(emitter *e, const ptx_operand *o, int bits) {
    uint64_t value = o->value;
    if (o->kind == PTX_OP_F64 && bits == 32) { /* a decimal constant for an f32 instruction */
        double wide;
        memcpy(&wide, &value, 8);
        float narrow = (float)wide;
        uint32_t pattern_of_it;
        memcpy(&pattern_of_it, &narrow, 4);
        value = pattern_of_it;
    } else if ((o->kind == PTX_OP_F32 && bits != 32) || (o->kind == PTX_OP_F64 && bits != 64)) {
        refuse(e, "a float constant of another width");
    }
    if (bits < 64)
        value &= (1ull << bits) - 1;
    return say(e, "((%s)0x%" PRIx64 "u)", c_bits(bits), value);
}

const char *bits_of(emitter *e, const ptx_operand *o, int bits) {
    if (o->negated)
        return predicate(e, o);
    switch (o->kind) {
    case PTX_OP_NAME:
        return name_bits(e, o, bits);
    case PTX_OP_INTEGER:
    case PTX_OP_F32:
    case PTX_OP_F64:
        return constant_bits(e, o, bits);
    default:
        refuse(e, "the kind of an operand");
        return "0";
    }
}

const char *predicate(emitter *e, const ptx_operand *o) {
    if (o->kind == PTX_OP_INTEGER)
        return o->value ? "1" : "0";
    const char *reg = o->kind == PTX_OP_NAME ? register_named(e, o->name) : NULL;
    if (!reg) {
        refuse(e, "a predicate that is no register");
        return "0";
    }
    return o->negated ? say(e, "(!%s)", reg) : reg;
}

static const char *typed(emitter *e, const ptx_type *type, const char *bits) {
    switch (type->kind) {
    case PTX_SIGNED:
        return say(e, "((%s)%s)", type->name, bits);
    case PTX_FLOAT:
        return say(e,
                   type->bits == 64   ? "as_f64(%s)"
                   : type->bits == 32 ? "as_f32(%s)"
                                      : "f16_to_f32(%s)",
                   bits);
    case PTX_BFLOAT:
        return say(e, "bf16_to_f32(%s)", bits);
    case PTX_TF32:
        return say(e, "as_f32(%s)", bits);
    default:
        return bits;
    }
}

const char *value_of(emitter *e, const ptx_operand *o, const ptx_type *type) {
    if (type->kind == PTX_PREDICATE)
        return predicate(e, o);
    /* an f32 constant in an f16 instruction: the f16 bits are used */
    return typed(e, type, bits_of(e, o, type->bits));
}

const char *lane_of(emitter *e, const ptx_operand *o, const ptx_type *packed, int lane) {
    const ptx_type *type = element_type(packed);
    const char *all = bits_of(e, o, packed->bits);
    return typed(e, type, say(e, "((%s)(%s >> %d))", c_bits(type->bits), all, lane * type->bits));
}

const char *pattern(emitter *e, const ptx_type *type, const char *value) {
    if (type->kind == PTX_FLOAT)
        return say(e,
                   type->bits == 64   ? "bits_f64(%s)"
                   : type->bits == 32 ? "bits_f32(%s)"
                                      : "f32_to_f16(%s)",
                   value);
    if (type->kind == PTX_BFLOAT)
        return say(e, "f32_to_bf16(%s)", value);
    return value;
}

const char *lvalue(emitter *e, const ptx_operand *o) {
    const char *reg = o->kind == PTX_OP_NAME && !o->offset ? register_named(e, o->name) : NULL;
    if (reg)
        return reg;
    refuse(e, "a result that is no register");
    return "*(u32 *)0";
}

void set_bits(emitter *e, const ptx_operand *o, const char *expression) {
    if (!is_sink(o))
        put(e, "%s = %s;", lvalue(e, o), expression);
}

void set_value(emitter *e, const ptx_operand *o, const ptx_type *type, const char *value) {
    set_bits(e, o, pattern(e, type, value));
}

void each_lane(emitter *e, const ptx_type *type, int arguments, lane_fn *fn) {
    const char *argument[4];
    const char *result[2] = {"0", "0"};
    int lanes = type->element ? 2 : 1;
    const ptx_type *element = element_type(type);
    if (!expect_operands(e, arguments + 1, arguments + 1))
        return;
    for (int lane = 0; lane < lanes; lane++) {
        for (int i = 0; i < arguments; i++)
            argument[i] = lanes == 2 ? lane_of(e, operand(e, i + 1), type, lane)
                                     : value_of(e, operand(e, i + 1), type);
        result[lane] = fn(e, element, argument);
    }
    if (lanes == 1)
        set_bits(e, operand(e, 0), result[0]);
    else
        set_bits(e, operand(e, 0), say(e, "pair%d(%s, %s)", type->bits, result[0], result[1]));
}
