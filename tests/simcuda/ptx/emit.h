/* PTX to C. Each register becomes an unsigned local variable, each label a label, each instruction
   a statement: no dispatch loop, no reconvergence, because every thread has a stack of its own.
   What the statements call is in rt/.

   The rule against silent mistakes: an emitter calls has() or type_at() for every part of an
   instruction's name that it understands, and emit_instruction refuses an instruction of which a
   part was not asked for. Refusals are errors with text, function and line. */
#ifndef EMIT_H
#define EMIT_H

#include "ptx.h"

typedef struct emitter {
    ptx_context *context;
    ptx_module *module;
    ptx_function *function;
    ptx_instruction *in;
    int place;        /* index of the instruction in the function */
    ptx_text *body;   /* the functions */
    ptx_text *sites;  /* elements of the table of sites */
    ptx_text *shapes; /* uses of RT_MMA */
    int n_sites;
    const ptx_instruction *site_of; /* the instruction that the last site is for */
} emitter;

typedef struct emit_rule {
    const char *opcode;
    void (*emit)(emitter *);
    char types; /* 'i': when the last type is no float; 'f': when it is one; 0: always */
} emit_rule;

/* One table per class of instructions, each ended by an empty rule. */
extern const emit_rule emit_integer_rules[], emit_bits_rules[], emit_float_rules[],
    emit_compare_rules[], emit_convert_rules[], emit_memory_rules[], emit_atomic_rules[],
    emit_flow_rules[], emit_warp_rules[], emit_matrix_rules[];

/* ---- emit.c: the parts of an instruction's name ---- */
void refuse(emitter *, const char *why);
int has(emitter *, const char *modifier); /* and marks it as understood */
int which(emitter *,
          const char *const
              *modifiers); /* index of the one that is there, or -1; the list ends in NULL */
const ptx_type *type_at(emitter *,
                        int n); /* the n-th type in the name; refuses when there is none */
int types_in(emitter *);
const ptx_type *only_type(emitter *);
int is_float(const ptx_type *);
int rounding(emitter *); /* RN 0, RZ 1, RM 2, RP 3 of .rn .rz .rm .rp; -1 when none is there */
int expect_operands(emitter *, int least, int most); /* 0 after refusing */
int site(emitter *); /* the number of this instruction's place in the table of sites */

/* ---- emit_operand.c: operands as C ---- */
#define say(e, ...) ptx_format((e)->context, __VA_ARGS__)
#define put(e, ...) ptx_put((e)->body, __VA_ARGS__)
ptx_operand *operand(emitter *, int n); /* an empty one after refusing */
const char *c_type(const ptx_type *);   /* u32, s16, f32, ...: of the value; a half is an f32 */
const char *c_bits(int bits);           /* u8 to u128 */
const char *bits_of(emitter *, const ptx_operand *, int bits);          /* the bit pattern */
const char *value_of(emitter *, const ptx_operand *, const ptx_type *); /* as a C value of c_type */
const char *lane_of(emitter *, const ptx_operand *, const ptx_type *,
                    int lane);                                       /* of a packed pair */
const char *pattern(emitter *, const ptx_type *, const char *value); /* a value back to bits */
void set_bits(emitter *, const ptx_operand *, const char *expression);
void set_value(emitter *, const ptx_operand *, const ptx_type *, const char *value);
int is_sink(const ptx_operand *);
const char *lvalue(emitter *, const ptx_operand *);      /* a register to assign to */
const char *predicate(emitter *, const ptx_operand *);   /* 0 or 1, negation included */
const char *register_named(emitter *, const char *name); /* NULL when it is none */
const ptx_type *element_type(const ptx_type *packed);

/* Calls one of these per half of a packed type, or once: the bits of the result from the values of
   the operands. */
typedef const char *lane_fn(emitter *, const ptx_type *, const char *const *argument);
void each_lane(emitter *, const ptx_type *, int arguments, lane_fn *);

/* ---- emit_address.c ---- */
ptx_space space_of(emitter *); /* the state space in the name; generic when there is none */
const char *symbol_address(emitter *, const ptx_symbol *,
                           int64_t offset); /* its value in its own space */
/* The checked host address of `bytes` bytes at a memory operand. kind is the name of a
   sim_access_kind. */
const char *checked_address(emitter *, const ptx_operand *, ptx_space, int bytes, const char *kind);

/* The address of a memory operand in its own space, not checked. */
const char *plain_address(emitter *, const ptx_operand *);

/* ---- emit_facts.c, emit_function.c, emit_module.c ---- */
void emit_facts(
    ptx_module *); /* fills in what ptx_function says about calls, stack and shared memory */
int reaches(const ptx_function *, const ptx_function *callee);
/* Gives the kernel's shared variables their offsets. Returns the static bytes; *dynamic is where
   dynamic memory starts. */
uint64_t place_shared(ptx_module *, const ptx_function *kernel, uint64_t *dynamic);
void emit_instruction(emitter *);
void emit_prototype(emitter *, const ptx_function *);
void emit_function(emitter *, ptx_function *);
const char *emit_module(ptx_module *); /* the C text without the prelude */

#endif
