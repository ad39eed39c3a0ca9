/* PTX as the translator represents it: types, symbols, operands, instructions, functions, a module,
   and the context that owns them all. The parser builds it from text (ptx_lex.c, ptx_parse.c,
   ptx_body.c); emit_module writes it as C (emit*.c). */
#ifndef PTX_H
#define PTX_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "ptx_compile.h"

/* ---- the context: memory, text, errors (ptx_context.c) ---- */

typedef struct ptx_context {
    jmp_buf leave;     /* target of memory and syntax errors; its caller frees all memory */
    ptx_result reason; /* reason of the longjmp */
    struct ptx_chunk *chunks;
    struct ptx_text *log;
    int errors;
} ptx_context;

/* A growing text. Always zero-terminated. */
typedef struct ptx_text {
    ptx_context *context;
    char *data;
    size_t size, capacity;
} ptx_text;

void *ptx_new(ptx_context *, size_t bytes); /* zeroed; lives as long as the context */
char *ptx_copy(ptx_context *, const char *text, size_t length);
ptx_text *ptx_text_new(ptx_context *);
void ptx_put(ptx_text *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ptx_put_bytes(ptx_text *, const char *data, size_t size);
char *ptx_format(ptx_context *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ptx_error(ptx_context *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ptx_leave(ptx_context *, ptx_result) __attribute__((noreturn));

/* Calls work(context, user) in a new context, in which it may longjmp or report errors. Returns the
   reason, with the errors in *log (NULL for none; the caller frees it). Frees what work
   allocated. */
ptx_result ptx_within(void (*work)(ptx_context *, void *user), void *user, char **log);

/* Appends to an array in the context's memory, which doubles when it is full. */
#define PTX_APPEND(context, array, count, item)                                                    \
    do {                                                                                           \
        if (((count) & ((count)-1)) == 0) {                                                        \
            void *grown_ =                                                                         \
                ptx_new(context, ((count) ? 2 * (size_t)(count) : 1) * sizeof *(array));           \
            if (count)                                                                             \
                memcpy(grown_, array, (size_t)(count) * sizeof *(array));                          \
            (array) = grown_;                                                                      \
        }                                                                                          \
        (array)[(count)++] = (item);                                                               \
    } while (0)

/* ---- types (ptx_types.c) ---- */

typedef enum ptx_class {
    PTX_BITS,
    PTX_UNSIGNED,
    PTX_SIGNED,
    PTX_FLOAT,  /* f16, f32, f64 */
    PTX_BFLOAT, /* bf16 */
    PTX_TF32,
    PTX_FP8, /* e4m3, e5m2 */
    PTX_PREDICATE
} ptx_class;

typedef struct ptx_type {
    const char *name;
    ptx_class kind;
    int bits;
    const char *element; /* packed pairs: the type of each element */
} ptx_type;

const ptx_type *ptx_type_named(const char *name); /* NULL when it is not a type */

/* ---- symbols ---- */

typedef enum ptx_space {
    PTX_GENERIC,
    PTX_REG,
    PTX_PARAM,
    PTX_SHARED,
    PTX_LOCAL,
    PTX_GLOBAL,
    PTX_CONST,
    PTX_LABEL,
    PTX_FUNCTION
} ptx_space;

typedef struct ptx_function ptx_function;

typedef enum ptx_operand_kind {
    PTX_OP_NAME,    /* register, special register, variable, label, function; with offset */
    PTX_OP_INTEGER, /* value */
    PTX_OP_F32,     /* value holds the bits */
    PTX_OP_F64,
    PTX_OP_MEMORY, /* [name + offset], or [offset] without a name; items: coordinates */
    PTX_OP_VECTOR, /* {a, b, ...} */
    PTX_OP_LIST,   /* (a, b, ...) of a call */
    PTX_OP_PAIR    /* a|b */
} ptx_operand_kind;

/* One element of an initializer: a number, or an address. */
typedef struct ptx_init {
    uint64_t value;
    ptx_operand_kind kind;
    const char *symbol;
} ptx_init;

typedef struct ptx_symbol {
    const char *name;
    ptx_space space;
    const ptx_type *type;
    int range;            /* registers: "%r<10>" declares %r0 to %r9 */
    uint64_t count;       /* array elements, 1 for a scalar, 0 for "[]" */
    uint64_t size, align; /* bytes */
    int is_external, is_kernel_param;
    int is_fixed; /* shared: at one offset in all kernels, because a device function uses it */
    ptx_init *init;
    int inits;
    const char *c_name;
    uint64_t
        /* shared: in the block's memory; kernel parameter: in the buffer; label: its index in the
           body */
        offset;
    int index;            /* global, const: index in the module's table */
    const char **targets; /* label of .branchtargets */
    int n_targets;
    ptx_function *function;
    struct ptx_symbol *next;
} ptx_symbol;

typedef struct ptx_scope {
    struct ptx_scope *outer;
    ptx_symbol *first, *last; /* in order: registers, which are looked up most often, come early */
} ptx_scope;

/* Returns the innermost symbol of that name. For a register of a range *number is its index. */
ptx_symbol *ptx_find(const ptx_scope *, const char *name, int *number);

/* ---- code ---- */

typedef struct ptx_operand {
    ptx_operand_kind kind;
    int negated; /* !p */
    const char *name;
    int64_t offset;
    uint64_t value;
    struct ptx_operand **item;
    int items;
} ptx_operand;

enum { PTX_MODIFIERS = 24 }; /* longer names are a syntax error */

typedef struct ptx_instruction {
    const char *guard; /* predicate register or NULL */
    int guard_negated;
    const char *opcode;
    const char *modifier[PTX_MODIFIERS];
    int modifiers;
    unsigned used; /* bit i: modifier i has been understood */
    ptx_operand **operand;
    int operands;
    int line, source_line, source_file;
    const char *text;
    const ptx_scope *scope;
    ptx_symbol *label; /* a label stands here instead of an instruction */
} ptx_instruction;

struct ptx_function {
    const char *name, *c_name;
    int is_kernel, is_defined;
    ptx_scope *scope;
    ptx_symbol **result; /* .param of the return value: at most one in practice */
    int results;
    ptx_symbol **param;
    int params;
    ptx_symbol **variable; /* registers and arrays of all its scopes */
    int variables;
    ptx_instruction **code;
    int length;
    uint32_t max_threads, required[3];
    /* filled in by emit_facts.c */
    ptx_function **callee;
    int callees;
    ptx_symbol **shared; /* variables that it uses itself */
    int shareds;
    int synchronizes; /* must be able to yield to other threads */
    int calls_pointer, recursive, state;
    uint64_t local_bytes, stack_bytes; /* including its callees */
};

typedef struct ptx_module {
    ptx_context *context;
    int arch;
    ptx_scope *scope;
    ptx_function **function;
    int functions;
    ptx_symbol **variable; /* module-scope shared, global and const variables */
    int variables;
    const char **file; /* .file names, by number */
    int files;
    uint64_t fixed_shared; /* bytes of the shared variables with is_fixed */
} ptx_module;

ptx_module *ptx_parse(ptx_context *, const char *text);

/* ---- between the files of the parser ---- */

typedef enum ptx_token_kind {
    PTX_END,
    PTX_WORD,
    PTX_DOT,
    PTX_NUMBER,
    PTX_STRING,
    PTX_MARK
} ptx_token_kind;

typedef struct ptx_token {
    ptx_token_kind kind;
    const char *text;        /* the word, with its dot or percent sign; the string's contents */
    char mark;               /* PTX_MARK: the character */
    ptx_operand_kind number; /* PTX_NUMBER: integer, f32 or f64 */
    uint64_t value;
    const char *start, *end; /* in the source */
    int line;
    int joined; /* no space between it and the previous token */
} ptx_token;

typedef struct ptx_parser {
    ptx_context *context;
    ptx_module *module;
    const char *at;
    int line;
    ptx_token token; /* the next one */
    ptx_function *function;
    ptx_scope *scope;
    int source_line, source_file;
    int names; /* numbers for C names */
} ptx_parser;

void ptx_next(ptx_parser *);
int ptx_is(const ptx_parser *,
           const char *text); /* is the next token this mark, word or dotted word? */
int ptx_take(ptx_parser *, const char *text); /* the same, and consumes it */
void ptx_expect(ptx_parser *, const char *text);
const char *ptx_expect_word(ptx_parser *);
uint64_t ptx_expect_integer(ptx_parser *); /* with an optional minus */
void ptx_syntax(ptx_parser *, const char *what) __attribute__((noreturn));

ptx_symbol *ptx_declare(ptx_parser *, const char *name, ptx_space);
void ptx_variables(
    ptx_parser *);               /* ".shared .align 4 .b8 name[16] = {...};", after linkage words */
void ptx_body(ptx_parser *);     /* after the opening brace of a function */
void ptx_position(ptx_parser *); /* .loc */

#endif
