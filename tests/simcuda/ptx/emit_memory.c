/* Loads and stores, address conversions, fences, hints without effect here, and cp.async. */
#include <string.h>

#include "emit.h"

/* Accepts cache hints, which have no effect here. The policy is an extra operand. */
static void skip_hints(emitter *e) {
    static const char *const hints[] = {"ca", "cg", "cs", "cv", "lu", "wb", "wt", "nc", NULL};
    which(e, hints);
    for (int i = 0; i < e->in->modifiers; i++)
        if (!strncmp(e->in->modifier[i], "L1::", 4) || !strncmp(e->in->modifier[i], "L2::", 4) ||
            !strcmp(e->in->modifier[i], "nc"))
            e->in->used |= 1u << i;
}

/* Tells from memory order and scope whether the access is strong. */
static int is_strong(emitter *e) {
    static const char *const scopes[] = {"cta", "cluster", "gpu", "sys", NULL};
    which(e, scopes);
    has(e, "weak");
    int strong = has(e, "volatile") | has(e, "relaxed") | has(e, "acquire") | has(e, "release");
    return strong | has(e, "mmio");
}

static int vector_length(emitter *e) {
    static const char *const lengths[] = {"v2", "v4", "v8", NULL};
    int n = which(e, lengths);
    return n < 0 ? 1 : 2 << n;
}

/* Returns the registers of a vector operand, or the one of a scalar. */
static ptx_operand **elements(emitter *e, ptx_operand **o, int length) {
    int is_vector = (*o)->kind == PTX_OP_VECTOR;
    if (is_vector != (length > 1) || (is_vector && (*o)->items != length))
        refuse(e, "the length of the vector");
    if (is_vector && (*o)->items == length)
        return (*o)->item;
    return length == 1 ? o : NULL;
}

/* Returns the C type of the transfer: signed when the register may have to be sign-extended. */
static const char *moved_type(const ptx_type *type) {
    return type->kind == PTX_SIGNED ? c_type(type) : c_bits(type->bits);
}

static void emit_ld(emitter *e) {
    const ptx_type *type = only_type(e);
    int length = vector_length(e), strong = is_strong(e), bytes = type->bits / 8;
    ptx_space space = space_of(e);
    skip_hints(e);
    if (!expect_operands(e, 2, 3))
        return;
    ptx_operand **to = elements(e, &e->in->operand[0], length);
    put(e, "u64 a = %s;",
        checked_address(e, operand(e, 1), space, bytes * length,
                        strong ? "SIM_LOAD_STRONG" : "SIM_LOAD"));
    for (int i = 0; to && i < length; i++)
        set_bits(e, to[i], say(e, "load_%s(a + %d)", moved_type(type), i * bytes));
    if (strong)
        put(e, "T->budget -= COST_POLL;");
}

static void emit_st(emitter *e) {
    const ptx_type *type = only_type(e);
    int length = vector_length(e), strong = is_strong(e), bytes = type->bits / 8;
    ptx_space space = space_of(e);
    skip_hints(e);
    if (!expect_operands(e, 2, 3))
        return;
    ptx_operand **from = elements(e, &e->in->operand[1], length);
    if (space == PTX_CONST)
        refuse(e, "a store to constant memory");
    put(e, "u64 a = %s;",
        checked_address(e, operand(e, 0), space, bytes * length,
                        strong ? "SIM_STORE_STRONG" : "SIM_STORE"));
    for (int i = 0; from && i < length; i++)
        put(e, "store_%s(a + %d, %s);", c_bits(type->bits), i * bytes,
            bits_of(e, from[i], type->bits));
}

static void emit_cvta(emitter *e) {
    int bits = only_type(e)->bits, to = has(e, "to");
    ptx_space space = space_of(e);
    if (!expect_operands(e, 2, 2))
        return;
    const char *a = bits_of(e, operand(e, 1), bits);
    if (bits != 64 || space == PTX_GENERIC)
        refuse(e, "the form");
    if (space == PTX_SHARED)
        a = say(e, "%s %c (u64)(uintptr_t)B->shared", a, to ? '-' : '+');
    set_bits(e, operand(e, 0), a);
}

static void emit_isspacep(emitter *e) {
    ptx_space space = space_of(e);
    if (!expect_operands(e, 2, 2))
        return;
    put(e, "u64 a = %s; u8 s = a - (u64)(uintptr_t)B->shared < B->shared_size;",
        bits_of(e, operand(e, 1), 64));
    put(e, "u8 l = (u8)in_local(T, a, 1);");
    put(e, "u8 p = a - (u64)(uintptr_t)B->params < B->params_size;");
    if (space == PTX_CONST || space == PTX_GENERIC)
        refuse(e, "the state space");
    set_bits(e, operand(e, 0),
             space == PTX_SHARED  ? "s"
             : space == PTX_LOCAL ? "l"
             : space == PTX_PARAM ? "p"
                                  : "!(s | l | p)");
}

/* prefetch, discard and similar. */
static void emit_hint(emitter *e) {
    static const char *const parts[] = {"L1", "L2", NULL};
    which(e, parts);
    space_of(e);
    skip_hints(e);
    if (has(e, "tensormap"))
        refuse(e, "a tensor map");
}

static void emit_createpolicy(emitter *e) {
    has(e, "fractional");
    skip_hints(e);
    only_type(e);
    set_bits(e, operand(e, 0), "0");
}

static void emit_fence(emitter *e) {
    static const char *const scopes[] = {"cta", "cluster", "gl", "gpu", "sys", NULL};
    static const char *const orders[] = {"sc", "acq_rel", "acquire", "release", NULL};
    if (emit_proxy_fence(e))
        return;
    int scope = which(e, scopes);
    which(e, orders);
    if (scope < 0)
        refuse(e, "the scope");
    put(e, "if (T->driver->fence) T->driver->fence(T, '%c', SITE(%d));",
        scope < 0 ? 'c' : "ccggs"[scope], site(e));
}

/* cp.async.cg.shared.global [to], [from], 16{, valid bytes}{, policy}; or with a predicate that
   suppresses the read when it is true. */
static void begin_copy(emitter *e) {
    const ptx_operand *size = operand(e, 2);
    int operands = e->in->operands;
    int policy = has(e, "L2::cache_hint");
    skip_hints(e);
    has(e, "shared");
    has(e, "shared::cta");
    has(e, "global");
    if (!expect_operands(e, 3, 5) || size->kind != PTX_OP_INTEGER ||
        (size->value != 4 && size->value != 8 && size->value != 16)) {
        refuse(e, "the operands");
        return;
    }
    const char *valid = say(e, "%d", (int)size->value);
    const ptx_operand *extra = operands - policy > 3 ? operand(e, 3) : NULL;
    if (extra) {
        int number = -1;
        const ptx_symbol *s =
            extra->kind == PTX_OP_NAME ? ptx_find(e->in->scope, extra->name, &number) : NULL;
        valid = s && s->type && s->type->kind == PTX_PREDICATE
                    ? say(e, "%s ? 0 : %s", predicate(e, extra), valid)
                    : bits_of(e, extra, 32);
    }
    put(e, "async_begin(T, (u32)(%s), %s, %d, %s, SITE(%d));", plain_address(e, operand(e, 0)),
        plain_address(e, operand(e, 1)), (int)size->value, valid, site(e));
}

static void emit_cp(emitter *e) {
    if (!has(e, "async") || has(e, "mbarrier"))
        refuse(e, "the form");
    else if (has(e, "bulk"))
        emit_bulk_copy(e);
    else if (has(e, "commit_group"))
        put(e, "async_commit(T, SITE(%d));", site(e));
    else if (has(e, "wait_all"))
        put(e, "async_wait(T, 0, 1);");
    else if (has(e, "wait_group"))
        put(e, "async_wait(T, %s, 0);", bits_of(e, operand(e, 0), 64));
    else
        begin_copy(e);
}

const emit_rule emit_memory_rules[] = {{"ld", emit_ld, 0},
                                       {"ldu", emit_ld, 0},
                                       {"st", emit_st, 0},
                                       {"cvta", emit_cvta, 0},
                                       {"isspacep", emit_isspacep, 0},
                                       {"prefetch", emit_hint, 0},
                                       {"prefetchu", emit_hint, 0},
                                       {"applypriority", emit_hint, 0},
                                       {"discard", emit_hint, 0},
                                       {"createpolicy", emit_createpolicy, 0},
                                       {"membar", emit_fence, 0},
                                       {"fence", emit_fence, 0},
                                       {"cp", emit_cp, 0},
                                       {NULL, NULL, 0}};
