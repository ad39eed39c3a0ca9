/* mma.sync, ldmatrix and stmatrix. The layouts are in rt/rt_matrix.h. */
#include <string.h>

#include "emit.h"

typedef struct shape {
    const char *name;
    int m, k;
    const char *inputs; /* the types of A and B with this layout in this shape */
} shape;

static const shape shapes[] = {{"m16n8k16", 16, 16, "f16 bf16 s8 u8"},
                               {"m16n8k8", 16, 8, "f16 bf16 tf32"},
                               {"m16n8k4", 16, 4, "tf32"},
                               {"m16n8k32", 16, 32, "s8 u8"},
                               {"m8n8k16", 8, 16, "s8 u8"},
                               {"m8n8k4", 8, 4, "f64"}};

static int is_listed(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return 1;
    return 0;
}

static const char *element_name(const ptx_type *type) {
    static const char *const names[][2] = {
        {"f16", "EL_F16"}, {"bf16", "EL_BF16"}, {"tf32", "EL_TF32"}, {"s8", "EL_S8"},
        {"u8", "EL_U8"},   {"f32", "EL_F32"},   {"s32", "EL_S32"},   {"f64", "EL_F64"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i][0], type->name))
            return names[i][1];
    return "EL_F32";
}

/* Tells whether these accumulator types are valid for these inputs. */
static int fits(const ptx_type *a, const ptx_type *b, const ptx_type *c, const ptx_type *d) {
    int integers = a->bits == 8 && a->kind != PTX_FP8;
    if (c != d || (a != b && !(integers && b->bits == 8)))
        return 0;
    if (integers)
        return !strcmp(c->name, "s32");
    if (a->bits == 64)
        return c == a;
    return !strcmp(c->name, "f32") || (!strcmp(a->name, "f16") && !strcmp(c->name, "f16"));
}

/* Checks the number of registers in the vector operands d, a, b, c. */
static int counts_fit(emitter *e, const shape *s, const ptx_type *a, const ptx_type *c) {
    int wide = a->bits == 64, per = wide ? 1 : 32 / (a->kind == PTX_TF32 ? 32 : a->bits);
    int cells = s->m * 8 / 32, accumulators = c->bits == 16 ? cells / 2 : cells;
    int expected[4] = {accumulators, s->m * s->k / 32 / per, 8 * s->k / 32 / per, accumulators};
    for (int i = 0; i < 4; i++) {
        const ptx_operand *o = operand(e, i);
        if ((o->kind == PTX_OP_VECTOR ? o->items : 1) != expected[i])
            return 0;
    }
    return 1;
}

/* Returns the function of this combination, written once per module. */
static const char *shape_function(emitter *e, const shape *s, const ptx_type *const t[4],
                                  int saturates) {
    const char *name = say(e, "mma_%s_%s_%s_%s%s", s->name, t[0]->name, t[1]->name, t[2]->name,
                           saturates ? "_sat" : "");
    const char *use =
        say(e, "RT_MMA(%s, %d, %d, %s, %s, %s, %s, %d)\n", name, s->m, s->k, element_name(t[1]),
            element_name(t[2]), element_name(t[3]), element_name(t[0]), saturates);
    if (!strstr(e->shapes->data, use))
        ptx_put(e->shapes, "%s", use);
    return name;
}

static void put_inputs(emitter *e, const ptx_operand *o, int bits, int *n) {
    if (o->kind != PTX_OP_VECTOR) {
        put(e, "T->in[%d] = %s;", (*n)++, bits_of(e, o, bits));
        return;
    }
    for (int i = 0; i < o->items; i++)
        put(e, "T->in[%d] = %s;", (*n)++, bits_of(e, o->item[i], bits));
}

static void put_outputs(emitter *e, const ptx_operand *o, int bits) {
    if (o->kind != PTX_OP_VECTOR) {
        set_bits(e, o, say(e, "(%s)T->out[0]", c_bits(bits)));
        return;
    }
    for (int i = 0; i < o->items; i++)
        set_bits(e, o->item[i], say(e, "(%s)T->out[%d]", c_bits(bits), i));
}

static void emit_mma(emitter *e) {
    const shape *s = NULL;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (has(e, shapes[i].name))
            s = &shapes[i];
    int saturates = has(e, "satfinite");
    if (!s || types_in(e) != 4 || !has(e, "sync") || !has(e, "aligned") || !has(e, "row") ||
        !has(e, "col") || !expect_operands(e, 4, 4)) {
        refuse(e, "the shape or the form");
        return;
    }
    const ptx_type *t[4]; /* d, a, b, c */
    for (int i = 0; i < 4; i++)
        t[i] = type_at(e, i);
    if (!is_listed(s->inputs, t[1]->name) || !is_listed(s->inputs, t[2]->name) ||
        !fits(t[1], t[2], t[3], t[0]) || !counts_fit(e, s, t[1], t[3]) ||
        (saturates && t[1]->bits != 8)) {
        refuse(e, "the types or the number of registers");
        return;
    }
    int n = 0, bits = t[1]->bits == 64 ? 64 : 32;
    for (int i = 1; i < 4; i++)
        put_inputs(e, operand(e, i), bits, &n);
    put(e, "matrix_call(T, %s, SITE(%d));", shape_function(e, s, t, saturates), site(e));
    put_outputs(e, operand(e, 0), bits);
}

static void emit_ldmatrix(emitter *e) {
    static const char *const numbers[] = {"x1", "x2", "x4", NULL};
    int stores = e->in->opcode[0] == 's', number = which(e, numbers), transposed = has(e, "trans");
    ptx_space space = space_of(e);
    if (number < 0 || !has(e, "sync") || !has(e, "aligned") || !has(e, "m8n8") ||
        only_type(e)->bits != 16 || !expect_operands(e, 2, 2)) {
        refuse(e, "the form");
        return;
    }
    const ptx_operand *registers = operand(e, !stores ? 0 : 1);
    int count = registers->kind == PTX_OP_VECTOR ? registers->items : 1, n = 1;
    if (count != 1 << number)
        refuse(e, "the number of registers");
    const char *address = plain_address(e, operand(e, stores ? 0 : 1));
    if (space == PTX_GENERIC)
        address = say(e, "((u64)%s - (u64)(uintptr_t)B->shared)", address);
    else if (space != PTX_SHARED)
        refuse(e, "the state space");
    put(e, "T->in[0] = (u32)%s;", address);
    if (stores)
        put_inputs(e, registers, 32, &n);
    put(e, "matrix_call(T, %s_%s%s, SITE(%d));", e->in->opcode, numbers[number],
        transposed ? "_trans" : "", site(e));
    if (!stores)
        put_outputs(e, registers, 32);
}

const emit_rule emit_matrix_rules[] = {{"mma", emit_mma, 0},
                                       {"ldmatrix", emit_ldmatrix, 0},
                                       {"stmatrix", emit_ldmatrix, 0},
                                       {NULL, NULL, 0}};
