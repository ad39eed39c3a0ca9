/* The fundamental and packed types of PTX, and the look-up of symbols. */
#include <stdlib.h>
#include <string.h>

#include "ptx.h"

static const ptx_type types[] = {
    {"b8", PTX_BITS, 8, NULL},        {"b16", PTX_BITS, 16, NULL},
    {"b32", PTX_BITS, 32, NULL},      {"b64", PTX_BITS, 64, NULL},
    {"b128", PTX_BITS, 128, NULL},    {"u8", PTX_UNSIGNED, 8, NULL},
    {"u16", PTX_UNSIGNED, 16, NULL},  {"u32", PTX_UNSIGNED, 32, NULL},
    {"u64", PTX_UNSIGNED, 64, NULL},  {"s8", PTX_SIGNED, 8, NULL},
    {"s16", PTX_SIGNED, 16, NULL},    {"s32", PTX_SIGNED, 32, NULL},
    {"s64", PTX_SIGNED, 64, NULL},    {"f16", PTX_FLOAT, 16, NULL},
    {"f32", PTX_FLOAT, 32, NULL},     {"f64", PTX_FLOAT, 64, NULL},
    {"bf16", PTX_BFLOAT, 16, NULL},   {"tf32", PTX_TF32, 32, NULL},
    {"f16x2", PTX_FLOAT, 32, "f16"},  {"bf16x2", PTX_BFLOAT, 32, "bf16"},
    {"f32x2", PTX_FLOAT, 64, "f32"},  {"u16x2", PTX_UNSIGNED, 32, "u16"},
    {"s16x2", PTX_SIGNED, 32, "s16"}, {"e4m3", PTX_FP8, 8, NULL},
    {"e5m2", PTX_FP8, 8, NULL},       {"e4m3x2", PTX_FP8, 16, "e4m3"},
    {"e5m2x2", PTX_FP8, 16, "e5m2"},  {"pred", PTX_PREDICATE, 8, NULL},
};

const ptx_type *ptx_type_named(const char *name) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, name))
            return &types[i];
    return NULL;
}

/* Returns the index of a member of a range, or -1: "%r12" in "%r<20>" is 12, "%r012" and "%r20" are
   not members. */
static int member(const ptx_symbol *symbol, const char *name) {
    size_t prefix = strlen(symbol->name);
    if (strncmp(name, symbol->name, prefix) != 0)
        return -1;
    const char *digits = name + prefix;
    if (!*digits || strspn(digits, "0123456789") != strlen(digits) || strlen(digits) > 9 ||
        (digits[0] == '0' && digits[1]))
        return -1;
    int number = atoi(digits);
    return number < symbol->range ? number : -1;
}

ptx_symbol *ptx_find(const ptx_scope *scope, const char *name, int *number) {
    for (; scope; scope = scope->outer)
        for (ptx_symbol *symbol = scope->first; symbol; symbol = symbol->next) {
            int found = symbol->range ? member(symbol, name) : -1;
            if (found < 0 && (symbol->range || strcmp(symbol->name, name) != 0))
                continue;
            if (number)
                *number = found;
            return symbol;
        }
    return NULL;
}
