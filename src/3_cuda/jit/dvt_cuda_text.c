/* The source of programs: args.h, base.cu, the definitions of a variant, the functions that it
   needs, the family's file. */
#include "3_cuda/dvt_cuda.h"

/* The lines of all files; each file begins with its #line. */
static const char *const dvti_cuda_lines[] = {
#include "devtensor_kernels.cu.inc"
};

#define DVTI_CUDA_FAMILY_FILE(name, fuse) #name ".cu",
static const char *const dvti_cuda_files[] = {DVTI_CUDA_FAMILY_TABLE(DVTI_CUDA_FAMILY_FILE)};
#undef DVTI_CUDA_FAMILY_FILE

typedef struct dvti_cuda_row {
    const char *f, *i;           /* expressions of the op table */
    const char *function, *math; /* float32: our own function, and its files; NULL: f is used */
} dvti_cuda_row;

/* Returns NULL if the operation is not elementwise. */
static const dvti_cuda_row *dvti_cuda_row_of(dvti_op op) {
    /* in the order of dvti_op */
    static const dvti_cuda_row rows[] = {
#define DVTI_UNARY(name, rule, cost, f, i, vector, math, ...)                                      \
    {#f, #i, "dvti_gpu_" #name "(x)", math},
#define DVTI_BINARY(name, rule, cost, f, i, vector, math, ...)                                     \
    {#f, #i, "dvti_gpu_" #name "(a, b)", math},
#define DVTI_SPECIAL(name, operands, rule, cost, f, i, ...) {#f, #i, NULL, NULL},
        DVTI_UNARY_TABLE(DVTI_UNARY) DVTI_BINARY_TABLE(DVTI_BINARY) DVTI_SPECIAL_TABLE(DVTI_SPECIAL)
#undef DVTI_UNARY
#undef DVTI_BINARY
#undef DVTI_SPECIAL
    };

    return (int)op < DVTI_LENGTH(rows) ? &rows[op] : NULL;
}

DVTI_FN const char *dvti_cuda_function_text(dvti_op op, const char **files) {
    const dvti_cuda_row *row = dvti_cuda_row_of(op);
    if (!row || !row->math)
        return NULL;
    *files = row->math;
    return row->function;
}

DVTI_FN const char *dvti_cuda_op_text(dvti_op op, bool integer) {
    const dvti_cuda_row *row = dvti_cuda_row_of(op);
    return !row ? NULL : integer ? row->i : row->f;
}

static void dvti_cuda_add_file(dvti_text *text, const char *name) {
    char marker[64];
    size_t length = (size_t)snprintf(marker, sizeof marker, "#line 1 \"%s\"\n", name);
    int i = 0;
    while (dvti_cuda_lines[i] && strncmp(dvti_cuda_lines[i], marker, length) != 0)
        i++;
    for (; dvti_cuda_lines[i]; i++) {
        if (strncmp(dvti_cuda_lines[i], "#line 1 ", 8) == 0 &&
            strncmp(dvti_cuda_lines[i], marker, length) != 0)
            break;
        dvti_text_add(text, "%s", dvti_cuda_lines[i]);
    }
}

DVTI_FN void dvti_cuda_add_row_functions(dvti_text *text) {
    dvti_text_add(text, "#define DVTI_ROW_FN __device__ inline\n");
    dvti_cuda_add_file(text, "row_functions.inl");
}

DVTI_FN void dvti_cuda_add_functions(dvti_text *text, const char *files) {
    char name[32];
    dvti_cuda_add_file(text, "primitives.cu");
    dvti_cuda_add_file(text, "basics.inl");
    while (*files) {
        size_t length = strcspn(files, " ");
        snprintf(name, sizeof name, "%.*s", (int)length, files);
        dvti_cuda_add_file(text, name);
        files += length + strspn(files + length, " ");
    }
    dvti_cuda_add_file(text, "primitives_end.cu");
}

DVTI_FN void dvti_cuda_add_exp_below(dvti_text *text, dvt_dtype dtype) {
    if (dtype == DVT_F64 || !dvt_dtype_is_float(dtype))
        return;
    dvti_cuda_add_functions(text, "exp.inl");
    dvti_cuda_add_file(text, "exp_below.cu");
}

static void dvti_cuda_write_source(dvti_cuda_program program, dvti_text *text) {
    static const char *const dtype[DVT_DTYPE_COUNT] = {"F32", "F64", "F16", "BF16", "I8",
                                                       "U8",  "I32", "I64", "BOOL"};
    int i;
    dvti_text_add(text, "#line 1 \"head\"\n"
                        "typedef long long int64_t;\n"
                        "typedef unsigned long long uint64_t;\n");
    for (i = 0; i < DVT_DTYPE_COUNT; i++)
        dvti_text_add(text, "#define DVT_%s %d\n", dtype[i], i);
    dvti_cuda_add_file(text, "args.h");
    dvti_cuda_add_file(text, "base.cu");
    dvti_text_add(text, "#line 1 \"variant\"\n");
    switch (program.family) {
#define DVTI_CUDA_DESCRIBE_CASE(name, fuse)                                                        \
    case DVTI_CUDA_FAMILY_##name:                                                                  \
        dvti_cuda_describe_##name(program.variant, text);                                          \
        break;
        DVTI_CUDA_FAMILY_TABLE(DVTI_CUDA_DESCRIBE_CASE)
#undef DVTI_CUDA_DESCRIBE_CASE
    case DVTI_CUDA_FAMILY_COUNT:
        break;
    }
    if (program.family == DVTI_CUDA_FAMILY_conv || program.family == DVTI_CUDA_FAMILY_conv_mma)
        dvti_cuda_add_file(text, "conv_patch.cu");
    dvti_cuda_add_file(text, dvti_cuda_files[program.family]);
}

DVTI_FN char *dvti_cuda_source(dvti_cuda_program program) {
    dvti_text text = dvti_text_begin(NULL, 0);
    char *source;
    dvti_cuda_write_source(program, &text);
    source = (char *)dvti_alloc(text.length + 1);
    if (source) {
        text = dvti_text_begin(source, text.length + 1);
        dvti_cuda_write_source(program, &text);
    }
    return source;
}
