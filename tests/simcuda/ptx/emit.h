/* PTX to C. Each register becomes an unsigned local variable, each label a label, each instruction
   a statement. There is no dispatch loop and no reconvergence, because every thread has its own
   stack. The functions that the statements call are in rt/.

   The rule against silent errors: an emitter calls has() or type_at() for every part of an
   instruction's name that it understands. emit_instruction rejects an instruction with a part that
   was not queried. Rejections are errors with text, function and line. */
#ifndef EMIT_H
#define EMIT_H

#include "ptx.h"
#include "ptx_translate.h"
#include "../sim_module.h"

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
    const char **accumulator; /* registers of wgmma, and copies of them; emit_async.c */
    int accumulators;
    const ptx_instruction *site_of; /* the instruction that the last site is for */
    /* emit_count.c, only in modules that count */
    ptx_text *code_blocks; /* elements of the table of basic blocks; NULL in other modules */
    int n_code_blocks;
    uint32_t instructions[SIM_CLASSES]; /* of the basic block that is being emitted */
    int in_code_block;
} emitter;

typedef struct emit_rule {
    const char *opcode;
    void (*emit)(emitter *);
    char types; /* 'i': when the last type is not a float; 'f': when it is one; 0: always */
} emit_rule;

/* One table per class of instructions, each terminated by an empty rule. */
extern const emit_rule emit_integer_rules[], emit_bits_rules[], emit_float_rules[],
    emit_compare_rules[], emit_convert_rules[], emit_memory_rules[], emit_atomic_rules[],
    emit_flow_rules[], emit_warp_rules[], emit_matrix_rules[], emit_async_rules[];

/* ---- emit.c: the parts of an instruction's name ---- */
void refuse(emitter *, const char *why);
int has(emitter *, const char *modifier); /* also marks it as understood */
int which(emitter *,
          const char *const
              *modifiers); /* index of the one that is present, or -1; the list ends in NULL */
/* Returns the n-th type in the name; rejects the instruction when there is none. */
const ptx_type *type_at(emitter *, int n);
int types_in(emitter *);
const ptx_type *only_type(emitter *);
int is_float(const ptx_type *);
int rounding(emitter *); /* RN 0, RZ 1, RM 2, RP 3 for .rn .rz .rm .rp; -1 for none */
int expect_operands(emitter *, int least, int most); /* 0 after a rejection */
int site(emitter *); /* index of this instruction's site in the table of sites */

/* ---- emit_operand.c: operands as C ---- */
#define say(e, ...) ptx_format((e)->context, __VA_ARGS__)
#define put(e, ...) ptx_put((e)->body, __VA_ARGS__)
ptx_operand *operand(emitter *, int n); /* an empty one after a rejection */
const char *c_type(const ptx_type *);   /* u32, s16, f32, ...: of the value; f32 for float16 */
const char *c_bits(int bits);           /* u8 to u128 */
const char *bits_of(emitter *, const ptx_operand *, int bits);          /* the bit pattern */
const char *value_of(emitter *, const ptx_operand *, const ptx_type *); /* of type c_type */
const char *lane_of(emitter *, const ptx_operand *, const ptx_type *,
                    int lane);                                       /* of a packed pair */
const char *pattern(emitter *, const ptx_type *, const char *value); /* a value back to bits */
void set_bits(emitter *, const ptx_operand *, const char *expression);
void set_value(emitter *, const ptx_operand *, const ptx_type *, const char *value);
int is_sink(const ptx_operand *);
const char *lvalue(emitter *, const ptx_operand *);      /* a register to assign to */
const char *predicate(emitter *, const ptx_operand *);   /* 0 or 1, negation included */
const char *register_named(emitter *, const char *name); /* NULL when it is not a register */
const ptx_type *element_type(const ptx_type *packed);

/* Calls one of these for each lane of a packed type, or once. Returns the bits of the result from
   the values of the operands. */
typedef const char *lane_fn(emitter *, const ptx_type *, const char *const *argument);
void each_lane(emitter *, const ptx_type *, int arguments, lane_fn *);

/* ---- emit_address.c ---- */
ptx_space space_of(emitter *); /* the state space in the name; generic when there is none */
const char *symbol_address(emitter *, const ptx_symbol *,
                           int64_t offset); /* its value in its own space */
/* Returns the checked host address of `bytes` bytes at a memory operand. kind is the name of a
   sim_access_kind. */
const char *checked_address(emitter *, const ptx_operand *, ptx_space, int bytes, const char *kind);

/* Returns the unchecked address of a memory operand in its own space. */
const char *plain_address(emitter *, const ptx_operand *);

/* ---- emit_async.c ---- */
void emit_bulk_copy(emitter *);  /* cp.async.bulk */
int emit_proxy_fence(emitter *); /* returns 0 for another fence */
/* Finds the registers that hold accumulators of wgmma in the function. */
void find_accumulators(emitter *);
/* Emits a check before an instruction that uses one: no product may be unfinished. */
void check_accumulators(emitter *);

/* ---- emit_facts.c, emit_function.c, emit_module.c ---- */
void emit_facts(
    ptx_module *); /* fills in the members of ptx_function about calls, stack and shared memory */
int reaches(const ptx_function *, const ptx_function *callee);
/* Assigns offsets to the kernel's shared variables. Returns the static bytes; *dynamic is where
   dynamic memory starts. */
uint64_t place_shared(ptx_module *, const ptx_function *kernel, uint64_t *dynamic);
void emit_instruction(emitter *);
void emit_prototype(emitter *, const ptx_function *);
void emit_function(emitter *, ptx_function *);
const char *emit_module(ptx_module *, const ptx_mode *); /* the C text without the prelude */

/* ---- emit_count.c ---- */
/* Emit what counts the entry of a basic block, before an instruction that begins one. Counts the
   instruction. */
void count_instruction(emitter *, const ptx_instruction *);
void end_code_block(emitter *);
const char *quoted(emitter *, const char *text); /* as a C string literal */

#endif
