/* Instructions of compute capability 9.0: mbarriers, copies by tensor maps, wgmma. Their state and
   their checks are in rt/rt_async.h. */
#include <stdio.h>
#include <string.h>

#include "emit.h"

/* Returns the shared address of a memory operand. */
static const char *shared_at(emitter *e, const ptx_operand *o) {
    return say(e, "(u32)(%s)", plain_address(e, o));
}

static void take_shared(emitter *e) {
    static const char *const spaces[] = {"shared", "shared::cta", NULL};
    if (which(e, spaces) < 0)
        refuse(e, "the state space");
}

static void emit_mbarrier_arrive(emitter *e) {
    int expects = has(e, "expect_tx"), operands = e->in->operands;
    if (!expect_operands(e, 2, 3))
        return;
    if (!is_sink(operand(e, 0)) || (expects && operands != 3)) {
        refuse(e, "the form");
        return;
    }
    const char *at = shared_at(e, operand(e, 1));
    const char *number = operands == 3 ? bits_of(e, operand(e, 2), 32) : "1";
    if (expects)
        put(e, "mbarrier_expect(T, %s, %s, SITE(%d));", at, number, site(e));
    put(e, "mbarrier_arrive(T, %s, %s, SITE(%d));", at, expects ? "1" : number, site(e));
}

static void emit_mbarrier(emitter *e) {
    int waits = has(e, "try_wait");
    take_shared(e);
    if (only_type(e)->bits != 64)
        refuse(e, "the type");
    if (has(e, "init") && expect_operands(e, 2, 2)) {
        put(e, "mbarrier_init(T, %s, %s, SITE(%d));", shared_at(e, operand(e, 0)),
            bits_of(e, operand(e, 1), 32), site(e));
    } else if (has(e, "arrive")) {
        emit_mbarrier_arrive(e);
    } else if ((waits || has(e, "test_wait")) && has(e, "parity") && expect_operands(e, 3, 3)) {
        put(e, "u8 done = mbarrier_test(T, %s, %s, %d, SITE(%d));", shared_at(e, operand(e, 1)),
            bits_of(e, operand(e, 2), 32), waits, site(e));
        set_bits(e, operand(e, 0), "done");
    } else {
        refuse(e, "the form");
    }
}

/* cp.async.bulk.tensor.Nd.shared::cluster.global.mbarrier::complete_tx::bytes [to], [map, {..}],
   [mbarrier]; */
void emit_bulk_copy(emitter *e) {
    static const char *const axes[] = {"1d", "2d", "3d", "4d", "5d", NULL};
    static const char *const spaces[] = {"shared::cluster", "shared::cta", NULL};
    int rank = which(e, axes) + 1;
    if (!has(e, "tensor") || which(e, spaces) < 0 || !has(e, "global") || rank == 0 ||
        !has(e, "mbarrier::complete_tx::bytes") || !expect_operands(e, 3, 3) ||
        operand(e, 1)->items != rank) {
        refuse(e, "the form");
        return;
    }
    has(e, "tile");
    const ptx_operand *map = operand(e, 1);
    put(e, "s32 at[] = {");
    for (int i = 0; i < rank; i++)
        put(e, "(s32)%s, ", bits_of(e, map->item[i], 32));
    put(e, "}; bulk_begin(T, %s, %s, %d, at, ", shared_at(e, operand(e, 0)), plain_address(e, map),
        rank);
    put(e, "%s, SITE(%d));", shared_at(e, operand(e, 2)), site(e));
}

/* fence.proxy.async and fence.mbarrier_init; false: another fence. */
int emit_proxy_fence(emitter *e) {
    static const char *const spaces[] = {"shared::cta", "shared::cluster", "global", NULL};
    if (has(e, "proxy") && has(e, "async"))
        which(e, spaces);
    else if (!has(e, "mbarrier_init") || !has(e, "release") || !has(e, "cluster"))
        return 0;
    put(e, "proxy_fence(T, SITE(%d));", site(e));
    return 1;
}

static int immediate(emitter *e, int n) {
    const ptx_operand *o = operand(e, n);
    if (o->kind != PTX_OP_INTEGER)
        refuse(e, "an operand that is no constant");
    return (int)o->value;
}

/* wgmma.mma_async.sync.aligned.m64nNkK.f32.T.T d, a, b, adds, 1, 1, transposed a, transposed b;
   TF32 has no transposed operands. */
static void emit_product(emitter *e) {
    const ptx_type *in = types_in(e) == 3 ? type_at(e, 1) : NULL;
    const ptx_operand *d = operand(e, 0);
    int n = 0, k = 0, end = 0, tf32 = in && strcmp(in->name, "tf32") == 0;
    for (int i = 0; i < e->in->modifiers; i++)
        if (sscanf(e->in->modifier[i], "m64n%dk%d%n", &n, &k, &end) == 2 && end &&
            !e->in->modifier[i][end] && has(e, e->in->modifier[i]))
            break;
    if (n < 8 || n > 256 || n % 8 || !in || (in->bits != 16 && !tf32) || k != (tf32 ? 8 : 16) ||
        type_at(e, 2) != in || strcmp(type_at(e, 0)->name, "f32") != 0 ||
        !expect_operands(e, tf32 ? 6 : 8, tf32 ? 6 : 8) || d->kind != PTX_OP_VECTOR ||
        d->items != n / 2 || operand(e, 1)->kind != PTX_OP_NAME) {
        refuse(e, "the shape or the form");
        return;
    }
    if (immediate(e, 4) != 1 || immediate(e, 5) != 1)
        refuse(e, "a negated operand");
    put(e, "u32 d[] = {");
    for (int i = 0; i < d->items; i++)
        put(e, "%s, ", bits_of(e, d->item[i], 32));
    put(e, "}; static const product_kind kind = {%d, %s, {%d, %d}};\n", n,
        tf32                     ? "EL_TF32"
        : in->kind == PTX_BFLOAT ? "EL_BF16"
                                 : "EL_F16",
        tf32 ? 0 : immediate(e, 6), tf32 ? 0 : immediate(e, 7));
    put(e, "product_call_group(T, (product_call){d, %s, %s, %s}, &kind, SITE(%d));\n",
        bits_of(e, operand(e, 1), 64), bits_of(e, operand(e, 2), 64), predicate(e, operand(e, 3)),
        site(e));
    for (int i = 0; i < d->items; i++)
        set_bits(e, d->item[i], say(e, "d[%d]", i));
}

static void emit_wgmma(emitter *e) {
    if (!has(e, "sync") || !has(e, "aligned"))
        refuse(e, "the form");
    else if (has(e, "fence") && expect_operands(e, 0, 0))
        put(e, "product_fence(T, SITE(%d));", site(e));
    else if (has(e, "commit_group") && expect_operands(e, 0, 0))
        put(e, "product_commit(T, SITE(%d));", site(e));
    else if (has(e, "wait_group") && expect_operands(e, 1, 1))
        put(e, "T->in[0] = %d; matrix_call(T, product_wait, SITE(%d));", immediate(e, 0), site(e));
    else if (has(e, "mma_async"))
        emit_product(e);
    else
        refuse(e, "the form");
}

/* Registers are not counted here. */
static void emit_setmaxnreg(emitter *e) {
    static const char *const ways[] = {"inc", "dec", NULL};
    only_type(e);
    if (which(e, ways) < 0 || !has(e, "sync") || !has(e, "aligned") || !expect_operands(e, 1, 1))
        refuse(e, "the form");
    else if (immediate(e, 0) < 24 || immediate(e, 0) > 256 || immediate(e, 0) % 8)
        refuse(e, "the number of registers");
}

/* ---- accumulators ---- */

static int in_list(const emitter *e, const char *name) {
    for (int i = 0; i < e->accumulators; i++)
        if (!strcmp(e->accumulator[i], name))
            return 1;
    return 0;
}

/* Adds a register, by its name in C; returns whether it is new. */
static int add_accumulator(emitter *e, const ptx_operand *o) {
    const char *name = o->kind == PTX_OP_NAME ? register_named(e, o->name) : NULL;
    if (!name || in_list(e, name))
        return 0;
    PTX_APPEND(e->context, e->accumulator, e->accumulators, name);
    return 1;
}

static int is_accumulator(emitter *e, const ptx_operand *o) {
    for (int i = 0; i < o->items; i++)
        if (is_accumulator(e, o->item[i]))
            return 1;
    if (o->kind != PTX_OP_NAME && o->kind != PTX_OP_MEMORY)
        return 0;
    const char *name = o->name ? register_named(e, o->name) : NULL;
    return name && in_list(e, name);
}

void find_accumulators(emitter *e) {
    const ptx_function *f = e->function;
    e->accumulators = 0;
    for (int changed = 1; changed;) {
        changed = 0;
        for (int i = 0; i < f->length; i++) {
            const ptx_instruction *in = e->in = f->code[i];
            if (in->label || in->operands < 2)
                continue;
            const ptx_operand *d = in->operand[0];
            if (!strcmp(in->opcode, "wgmma"))
                for (int k = 0; k < d->items; k++)
                    changed |= add_accumulator(e, d->item[k]);
            else if (!strcmp(in->opcode, "mov") && is_accumulator(e, in->operand[1]))
                changed |= add_accumulator(e, d);
        }
    }
}

void check_accumulators(emitter *e) {
    if (!e->accumulators || !strcmp(e->in->opcode, "wgmma") || !strcmp(e->in->opcode, "mov"))
        return;
    for (int i = 0; i < e->in->operands; i++)
        if (is_accumulator(e, e->in->operand[i])) {
            put(e, "product_settled(T, SITE(%d));\n", site(e));
            return;
        }
}

const emit_rule emit_async_rules[] = {{"mbarrier", emit_mbarrier, 0},
                                      {"wgmma", emit_wgmma, 0},
                                      {"setmaxnreg", emit_setmaxnreg, 0},
                                      {NULL, NULL, 0}};
