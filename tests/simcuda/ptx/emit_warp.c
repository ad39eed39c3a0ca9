/* Warp collectives: shuffles, votes, matches, reductions. */
#include <string.h>

#include "emit.h"

/* Writes r and q, the result and its predicate, to "d" or "d|p". */
static void set_pair(emitter *e, const ptx_operand *to) {
    if (to->kind == PTX_OP_PAIR) {
        set_bits(e, to->item[0], "r");
        set_bits(e, to->item[1], "q");
    } else {
        set_bits(e, to, "r");
    }
}

static void call_warp(emitter *e, const char *fn, const char *value, const ptx_operand *mask) {
    put(e, "u8 q; u32 r = warp_call(T, %s, %s, %s, &q, SITE(%d));", fn, value, bits_of(e, mask, 32),
        site(e));
}

static void emit_shfl(emitter *e) {
    static const char *const modes[] = {"up", "down", "bfly", "idx", NULL};
    int mode = which(e, modes);
    if (!has(e, "sync") || mode < 0 || only_type(e)->bits != 32) {
        refuse(e, "the form");
        return;
    }
    if (!expect_operands(e, 5, 5))
        return;
    put(e, "u8 q; u32 r = warp_shuffle(T, shfl_%s, %s, %s, %s, %s, &q, SITE(%d));", modes[mode],
        bits_of(e, operand(e, 1), 32), bits_of(e, operand(e, 2), 32), bits_of(e, operand(e, 3), 32),
        bits_of(e, operand(e, 4), 32), site(e));
    set_pair(e, operand(e, 0));
}

static void emit_vote(emitter *e) {
    static const char *const modes[] = {"any", "all", "uni", "ballot", NULL};
    int mode = which(e, modes);
    only_type(e);
    if (!has(e, "sync") || mode < 0 || !expect_operands(e, 3, 3)) {
        refuse(e, "the form");
        return;
    }
    call_warp(e, say(e, "vote_%s", modes[mode]), predicate(e, operand(e, 1)), operand(e, 2));
    set_pair(e, operand(e, 0));
}

static void emit_match(emitter *e) {
    const ptx_type *type = only_type(e);
    int any = has(e, "any"), all = has(e, "all");
    if (!has(e, "sync") || any == all || type->bits < 32 || !expect_operands(e, 3, 3)) {
        refuse(e, "the form");
        return;
    }
    if (any && operand(e, 0)->kind == PTX_OP_PAIR)
        refuse(e, "a predicate of match.any");
    call_warp(e, any ? "match_any" : "match_all", bits_of(e, operand(e, 1), type->bits),
              operand(e, 2));
    set_pair(e, operand(e, 0));
}

static void emit_redux(emitter *e) {
    static const char *const ops[] = {"add", "min", "max", "and", "or", "xor", NULL};
    const ptx_type *type = only_type(e);
    int op = which(e, ops), orders = op == 1 || op == 2;
    if (!has(e, "sync") || op < 0 || type->bits != 32 || is_float(type) ||
        (orders && type->kind == PTX_BITS) || !expect_operands(e, 3, 3)) {
        refuse(e, "the form");
        return;
    }
    call_warp(e, say(e, "redux_%s%s%s", ops[op], orders ? "_" : "", orders ? type->name : ""),
              bits_of(e, operand(e, 1), 32), operand(e, 2));
    set_pair(e, operand(e, 0));
}

/* Every lane runs alone here, so its mask has one bit. Correct code must not expect more. */
static void emit_activemask(emitter *e) {
    only_type(e);
    if (expect_operands(e, 1, 1))
        set_bits(e, operand(e, 0), "1u << T->lane");
}

static void emit_elect(emitter *e) {
    if (!has(e, "sync") || !expect_operands(e, 2, 2)) {
        refuse(e, "the form");
        return;
    }
    call_warp(e, "elect", "0", operand(e, 1));
    set_pair(e, operand(e, 0));
}

const emit_rule emit_warp_rules[] = {{"shfl", emit_shfl, 0},
                                     {"vote", emit_vote, 0},
                                     {"match", emit_match, 0},
                                     {"redux", emit_redux, 0},
                                     {"activemask", emit_activemask, 0},
                                     {"elect", emit_elect, 0},
                                     {NULL, NULL, 0}};
