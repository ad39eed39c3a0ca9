/* Addresses: state spaces, symbol names as addresses, and the check for each kind of access. */
#include <string.h>

#include "emit.h"

ptx_space space_of(emitter *e) {
    static const char *const names[] = {"global",       "shared",      "local",
                                        "const",        "param",       "shared::cta",
                                        "param::entry", "param::func", NULL};
    static const ptx_space spaces[] = {PTX_GLOBAL, PTX_SHARED, PTX_LOCAL, PTX_CONST,
                                       PTX_PARAM,  PTX_SHARED, PTX_PARAM, PTX_PARAM};
    int n = which(e, names);
    return n < 0 ? PTX_GENERIC : spaces[n];
}

/* Returns the offset of a shared variable. Dynamic shared memory starts after the static variables
   of the kernel. That offset is known in a kernel, but not in a device function, which may have
   several callers. */
static const char *shared_offset(emitter *e, const ptx_symbol *symbol, int64_t offset) {
    if (symbol->count == 0 && !e->function->is_kernel)
        return say(e, "(B->shared_size - B->dynamic_size + %lldu)", (long long)offset);
    return say(e, "%lluu", (unsigned long long)symbol->offset + (unsigned long long)offset);
}

const char *symbol_address(emitter *e, const ptx_symbol *symbol, int64_t offset) {
    switch (symbol->space) {
    case PTX_SHARED:
        return shared_offset(e, symbol, offset);
    case PTX_GLOBAL:
    case PTX_CONST:
        if (symbol->is_external)
            refuse(e, say(e, "%s is external", symbol->name));
        break;
    case PTX_PARAM:
        if (symbol->is_kernel_param)
            return say(e, "(u64)(uintptr_t)B->params + %lld",
                       (long long)symbol->offset + (long long)offset);
        break;
    case PTX_FUNCTION:
        if (!symbol->function->is_defined)
            refuse(e, say(e, "%s has no body", symbol->name));
        break;
    case PTX_LOCAL:
        break;
    default:
        refuse(e, say(e, "the address of %s", symbol->name));
    }
    return say(e, "(u64)(uintptr_t)%s + %lldll", symbol->c_name, (long long)offset);
}

static const char *at(emitter *e, const char *space, const char *address, int bytes,
                      const char *kind) {
    return say(e, "at_%s(T, %s, %d, %s%sSITE(%d))", space, address, bytes, kind, *kind ? ", " : "",
               site(e));
}

static int inside(const ptx_symbol *symbol, int64_t offset, int bytes) {
    return offset >= 0 && (uint64_t)offset + (uint64_t)bytes <= symbol->size &&
           (((uint64_t)offset + symbol->offset) & (uint64_t)(bytes - 1)) == 0;
}

/* Returns the address of a variable by name. Parameters and local arrays are checked at translation
   time. */
static const char *of_symbol(emitter *e, const ptx_symbol *symbol, const ptx_operand *o,
                             ptx_space space, int bytes, const char *kind) {
    const char *address = symbol_address(e, symbol, o->offset);
    if (symbol->space != space && (space != PTX_GENERIC || symbol->space == PTX_SHARED))
        refuse(e, say(e, "%s is in another state space", symbol->name));
    switch (symbol->space) {
    case PTX_PARAM:
        if (!inside(symbol, o->offset, bytes))
            refuse(e, say(e, "outside the parameter %s", symbol->name));
        return address;
    case PTX_LOCAL:
        return inside(symbol, o->offset, bytes) && !e->code_blocks
                   ? address
                   : at(e, "local", address, bytes, "");
    case PTX_SHARED:
        return at(e, "shared", address, bytes, kind);
    default:
        return at(e, "global", address, bytes, kind);
    }
}

const char *checked_address(emitter *e, const ptx_operand *o, ptx_space space, int bytes,
                            const char *kind) {
    if (o->kind != PTX_OP_MEMORY) {
        refuse(e, "an operand that is no address");
        return "0";
    }
    const char *reg = o->name ? register_named(e, o->name) : "0";
    const ptx_symbol *symbol = reg ? NULL : ptx_find(e->in->scope, o->name, NULL);
    if (symbol)
        return of_symbol(e, symbol, o, space, bytes, kind);
    if (!reg) {
        refuse(e, say(e, "%s is not declared", o->name));
        return "0";
    }
    if (space == PTX_SHARED)
        return at(e, "shared", say(e, "(u32)(%s + %lldu)", reg, (long long)o->offset), bytes, kind);
    const char *address = say(e, "((u64)%s + %lldll)", reg, (long long)o->offset);
    switch (space) {
    case PTX_LOCAL:
        return at(e, "local", address, bytes, "");
    case PTX_PARAM: /* of a function: a buffer of the caller, whose size is unknown here */
        return e->function->is_kernel ? at(e, "param", address, bytes, "") : address;
    case PTX_GENERIC:
        return at(e, "generic", address, bytes, kind);
    default:
        return at(e, "global", address, bytes, kind);
    }
}

const char *plain_address(emitter *e, const ptx_operand *o) {
    if (o->kind != PTX_OP_MEMORY || !o->name) {
        refuse(e, "an operand that is no address");
        return "0";
    }
    const char *reg = register_named(e, o->name);
    if (reg)
        return say(e, "(%s + %lld)", reg, (long long)o->offset);
    const ptx_symbol *symbol = ptx_find(e->in->scope, o->name, NULL);
    if (symbol)
        return symbol_address(e, symbol, o->offset);
    refuse(e, say(e, "%s is not declared", o->name));
    return "0";
}
